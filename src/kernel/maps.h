// The memory mappings of a process from /proc/PID/maps. Lines of an unexpected form are skipped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rose::kernel {

struct MappedRange {
  std::uint64_t begin = 0, end = 0;  // addresses, half open
  std::uint64_t offset = 0;          // in the file
  std::uint64_t inode = 0;           // 0: not backed by a file
  std::string access;                // "r-xp"
  std::string name;                  // a path, "[vdso]", ""

  [[nodiscard]] bool executable() const { return access.size() > 2 && access[2] == 'x'; }
};

[[nodiscard]] std::vector<MappedRange> read_maps(std::string_view text);
// The mappings of a process; empty if it has ended or may not be inspected.
[[nodiscard]] std::vector<MappedRange> maps_of(pid_t pid);

// The file and offset from which an address of this process is mapped.
struct FilePlace {
  std::string file;
  std::uint64_t offset = 0;  // 0: the address is not backed by a file
};
[[nodiscard]] FilePlace own_place(const void* address);

}  // namespace rose::kernel
