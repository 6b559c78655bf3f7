// Determines which functions of a file use another one: they call it, or refer to it in their code, directly or through
// a table of functions. A function that passes another one to a library refers to it in this way: the start routine of
// a thread, a callback. x86-64 and arm64. Pure. Private to symbols.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbols/elf.h"
#include "symbols/symbols.h"

namespace rose::symbols {

// True for functions of the standard libraries of C++ and Rust, which are compiled into the programs that use them.
[[nodiscard]] bool is_compiled_in(std::string_view name, std::string_view linkage_name = {});

class Users {
 public:
  // `functions`: all functions of the file, sorted by address.
  Users(const ElfFile& file, const std::vector<Function>& functions);
  // The only other function of the application that uses the function at this address. Uses by code of the standard
  // libraries count for the function that uses that code. nullptr if there is none, or several. `calls`: functions that
  // only call it count, too.
  [[nodiscard]] const Function* only_user(std::uint64_t address, bool calls) const;

 private:
  struct User {
    const Function* function;
    bool calls;
  };
  std::unordered_map<std::uint64_t, std::vector<User>> users_;  // by the address of the function that they use
};

}  // namespace rose::symbols
