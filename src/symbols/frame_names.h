// What stands at an address of code: the function, and those that were inlined there, with file and line. Private to
// this room.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "symbols/gopclntab.h"
#include "symbols/unwind.h"

struct Dwfl_Module;

namespace rose::symbols {

class FrameNames {
 public:
  // At a program counter in the module; `address` is the same in the file `path`. Innermost first, one at least.
  [[nodiscard]] std::vector<StackFrame> at(Dwfl_Module* module, std::uint64_t pc, std::uint64_t address,
                                           const std::filesystem::path& path);

 private:
  struct Named {
    std::uint64_t address = 0, size = 0;
    std::string name, source;
  };
  [[nodiscard]] const Named* in_tables(const std::filesystem::path& path, std::uint64_t address);

  std::map<std::filesystem::path, std::vector<Named>> tables_;  // of files that libdw finds no name in
};

}  // namespace rose::symbols
