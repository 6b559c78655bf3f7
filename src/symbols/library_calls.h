// What functions of libraries do to the world, told by their names alone: which of them enter the kernel, and which of
// those change what others can see. Pure. Private to this room.
#pragma once

#include <cstdint>
#include <string_view>

namespace rose::symbols {

struct LibraryCall {
  bool enters = false;   // makes a system call, as a rule
  bool changes = false;  // one that writes, renames, connects, forks, ...
  int depth = 0;       // 0: little else (write, Go's syscall.Write); 1: through a buffer or a class of its own (fflush)
  bool quiet = false;  // only computes, or never returns: before it the world is as it was
};

// `linkage_name` as in symbol tables and relocations; `bare` the demangled one without parameters. `library`: it comes
// from another file, or libraries were linked in; else a C function called "send" is the program's own.
[[nodiscard]] LibraryCall library_call(std::string_view linkage_name, std::string_view bare, bool library);

// "write" of 1; "" for numbers that are not worth a name here.
[[nodiscard]] std::string_view call_of_number(std::uint64_t number);

}  // namespace rose::symbols
