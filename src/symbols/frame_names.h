// Names the function at an address and those inlined there, with file and line. Private to symbols.
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
  // For a program counter in the module; `address` is the same address in the file `path`. Innermost first, never
  // empty.
  [[nodiscard]] std::vector<StackFrame> at(Dwfl_Module* module, std::uint64_t pc, std::uint64_t address,
                                           const std::filesystem::path& path);

 private:
  struct Named {
    std::uint64_t address = 0, size = 0;  // size 0: up to the next function
    int binding = 0;                      // 0 global, 1 weak, 2 local
    std::string name, source;
  };
  [[nodiscard]] const Named* in_tables(const std::filesystem::path& path, std::uint64_t address);

  std::map<std::filesystem::path, std::vector<Named>> tables_;  // of files whose debug information names no function
};

}  // namespace rose::symbols
