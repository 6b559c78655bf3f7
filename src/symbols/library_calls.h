// Classifies library functions by name: which of them enter the kernel, and which change state that others can see.
// Pure. Private to symbols.
#pragma once

#include <cstdint>
#include <string_view>

#include "symbols/machine.h"

namespace rose::symbols {

struct LibraryCall {
  bool enters = false;   // usually makes a system call
  bool changes = false;  // the call changes state: it writes, renames, connects, forks, ...
  int depth = 0;         // 0: a thin wrapper (write, Go's syscall.Write); 1: through a buffer or a class (fflush)
  bool quiet = false;    // only computes or never returns, so that nothing changes before the next call
};

// `linkage_name` as in symbol tables and relocations; `bare` is the demangled name without parameters. `library`: it
// comes from another file, or libraries were linked in; otherwise a C function called "send" is the program's own.
[[nodiscard]] LibraryCall library_call(std::string_view linkage_name, std::string_view bare, bool library);

// "write" for 1 on x86-64; "" for calls that are not relevant here.
[[nodiscard]] std::string_view call_of_number(std::uint64_t number, const Machine& machine);

}  // namespace rose::symbols
