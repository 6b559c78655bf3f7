// Determines which functions of a file use another function: they call it, or refer to it in their code, directly or
// through a table of functions. For example, a function that passes a callback or the start routine of a thread to a
// library refers to it in this way. x86-64 and arm64. Pure. Private to symbols.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbols/elf.h"
#include "symbols/symbols.h"

namespace rose::symbols {

// True for functions of the C++ and Rust standard libraries that are compiled into the programs which use them.
[[nodiscard]] bool is_compiled_in(std::string_view name, std::string_view linkage_name = {});

class Users {
 public:
  // `functions` contains all functions of the file, sorted by address.
  Users(const ElfFile& file, const std::vector<Function>& functions);
  // The function of the application that uses the function at this address. If a function of the standard library uses
  // it, the users of that function are taken instead. nullptr if there is no such function of the application, or more
  // than one. If `calls` is false, functions that only call the given one do not count.
  [[nodiscard]] const Function* only_user(std::uint64_t address, bool calls) const;

 private:
  struct User {
    const Function* function;
    bool calls;
  };
  std::unordered_map<std::uint64_t, std::vector<User>> users_;  // key: the address of the function that they use
};

}  // namespace rose::symbols
