#include "base/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/text.h"

namespace rose {

bool is_program(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::string program_in(std::string_view path, std::string_view name) {
  for (const std::string& folder : split(path.empty() ? kUsualPath : path, ':')) {
    if (!folder.starts_with('/')) continue;
    std::string file = folder;
    if (file.back() != '/') file += '/';
    file += name;
    if (is_program(file)) return file;
  }
  return {};
}

std::string program_in_path(std::string_view name) {
  const char* path = std::getenv("PATH");
  return program_in(path == nullptr ? "" : path, name);
}

}  // namespace rose
