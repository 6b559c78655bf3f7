// Classifies library functions by name: which of them enter the kernel, and which of them change state that others can
// see. Pure. Private to symbols.
#pragma once

#include <cstdint>
#include <string_view>

#include "symbols/machine.h"

namespace rose::symbols {

struct LibraryCall {
  bool enters = false;   // a call usually makes a system call
  bool changes = false;  // the call changes state that others can see: it writes, renames, connects, forks, ...
  int depth = 0;       // 0: a thin wrapper (write, Go's syscall.Write); 1: it goes through a buffer or a class (fflush)
  bool quiet = false;  // the function only computes, or never returns, so nothing changes before the next call
};

// `linkage_name`: the name as in symbol tables and relocations. `bare`: the demangled name without parameters.
// `library`: the function is in another file, or libraries were linked statically. If this is false, a C function
// called "send" belongs to the program itself.
[[nodiscard]] LibraryCall library_call(std::string_view linkage_name, std::string_view bare, bool library);

// The name of the system call with this number: "write" for 1 on x86-64. "" for calls that are not relevant here.
[[nodiscard]] std::string_view call_of_number(std::uint64_t number, const Machine& machine);

}  // namespace rose::symbols
