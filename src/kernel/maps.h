// What a process has mapped, as /proc/PID/maps tells it. The text is not trusted: a line of another form is left out.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rose::kernel {

struct MappedRange {
  std::uint64_t begin = 0, end = 0;  // addresses
  std::uint64_t offset = 0;          // in the file
  std::uint64_t inode = 0;           // 0: no file
  std::string access;                // "r-xp"
  std::string name;                  // a path, "[vdso]", ""

  [[nodiscard]] bool executable() const { return access.size() > 2 && access[2] == 'x'; }
};

[[nodiscard]] std::vector<MappedRange> read_maps(std::string_view text);
// Of a process; none when it is gone or may not be looked at.
[[nodiscard]] std::vector<MappedRange> maps_of(pid_t pid);

// Where an address of this process lies in its file.
struct FilePlace {
  std::string file;
  std::uint64_t offset = 0;  // 0: nowhere
};
[[nodiscard]] FilePlace own_place(const void* address);

}  // namespace rose::kernel
