// Names the function at an address, and the functions that are inlined there, with file and line. Private to symbols.
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
  // The frames at a program counter in the module, innermost first; never empty. `address` is the address in the file
  // `path` that corresponds to `pc`.
  [[nodiscard]] std::vector<StackFrame> at(Dwfl_Module* module, std::uint64_t pc, std::uint64_t address,
                                           const std::filesystem::path& path);

 private:
  struct Named {
    std::uint64_t address = 0, size = 0;  // size 0: the function extends to the next one
    int binding = 0;                      // 0: global, 1: weak, 2: local
    std::string name, source;
  };
  [[nodiscard]] const Named* in_tables(const std::filesystem::path& path, std::uint64_t address);

  // used only for files whose debug information names no function
  std::map<std::filesystem::path, std::vector<Named>> tables_;
};

}  // namespace rose::symbols
