// Makes recordings, in memory or on disk, and reads them.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/subprocess.h"
#include "folder.h"
#include "rr/reading.h"
#include "rr/ring.h"

namespace rose::rr::test {

// The bytes of the file, followed by a copy of the beginning of its ring, as Reading::open requires.
inline std::string mapped(std::string bytes) {
  const std::uint64_t size = bytes.size();
  if (size > kHeadBytes) bytes.append(bytes.substr(kHeadBytes, most_record(size - kHeadBytes)));
  return bytes;
}

struct Read {
  explicit Read(std::string file) : size(file.size()), bytes(mapped(std::move(file))) {
    why = reading.open(bytes.data(), size);
    if (why != nullptr) return;
    Record record;
    for (std::uint64_t at = reading.facts().begin; reading.next(at, record);) records.push_back(record);
  }
  Read(const Read&) = delete;
  std::uint64_t size;
  std::string bytes;
  Reading reading;
  const char* why = nullptr;
  std::vector<Record> records;
};

inline std::string file_of(const std::filesystem::path& path) { return read_file(path).value(); }

struct MadeRing {
  rose::test::Folder folder;
  Ring ring;
  explicit MadeRing(std::uint64_t bytes = kLeastRing) {
    const int fd = ::open(folder.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char why[256] = "";
    REQUIRE(ring.create(fd, "r", bytes, "n1", why, sizeof why));
    ::close(fd);
  }
  bool append(const std::string& key, const std::string& data, Kind kind = Kind::value) {
    return ring.append(kind, 0, {key.data(), key.size()}, {data.data(), data.size()});
  }
  [[nodiscard]] std::string file() const { return file_of(folder / "r"); }
};

// Runs rr_victim with these variables in its environment.
inline Output victim(const std::vector<std::string>& variables, const std::vector<std::string>& arguments,
                     std::string_view input = {}) {
  std::vector<std::string> argv = {"env"};
  argv.insert(argv.end(), variables.begin(), variables.end());
  argv.push_back(ROSE_RR_VICTIM);
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  auto output = run_command(argv, input);
  REQUIRE(output.has_value());
  return *output;
}

}  // namespace rose::rr::test
