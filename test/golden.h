// Compares output with files under test/golden. If ROSE_REFRESH_GOLDEN=1 is set (for `ctest -L pure` or for one test
// program), the files are written anew, and git diff then shows what changed.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace rose::test {

inline std::filesystem::path golden_path(const std::string& name) {
  return std::filesystem::path(ROSE_TEST_DIR) / "golden" / name;
}

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  return content.str();
}

inline void check_golden(const std::string& name, const std::string& actual) {
  const auto path = golden_path(name);
  if (const char* refresh = std::getenv("ROSE_REFRESH_GOLDEN"); refresh != nullptr && std::string(refresh) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary | std::ios::trunc) << actual;
  }
  INFO("golden file " << path << "; refresh with ROSE_REFRESH_GOLDEN=1");
  REQUIRE(std::filesystem::exists(path));
  CHECK(actual == slurp(path));
}

}  // namespace rose::test
