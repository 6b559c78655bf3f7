// What DWARF tells of one file's functions and lines: parameters, variables in scope, where each stands. Private to
// this room.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "symbols/dwarf_location.h"
#include "symbols/elf.h"

namespace rose::symbols {

// A function, or a copy of it that was inlined into another.
struct FunctionDie {
  Dwarf_Die die;
  std::uint64_t entry = 0;   // address
  std::uint64_t begun = 0;   // address behind the instructions that set up its frame; 0: not known
  std::string inlined_into;  // "": code of its own
  std::string name;
};

struct Parameter {
  Dwarf_Die die;
  std::string name;  // "" none
};

// A line's code: each stretch of it in each function (or inlined copy). Optimised code may have several, one for each
// way to the line.
struct LineCode {
  std::vector<std::uint64_t> addresses;  // lowest first
  std::string function;
  std::optional<Dwarf_Die> variable;  // that is in scope there
};
struct LineFound {
  int line = 0;  // 0: the file has none there, or behind
  bool file_known = false;
  std::vector<LineCode> code;
  std::vector<std::string> in_scope;  // names, where the variable is not
};

class DebugInfo {
 public:
  // nullptr: the file has none.
  [[nodiscard]] static std::unique_ptr<DebugInfo> open(const ElfFile& file);
  ~DebugInfo();
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;

  [[nodiscard]] std::optional<FunctionDie> function_at(std::uint64_t address) const;
  // The copies of functions of that name that were inlined; at most `most`.
  [[nodiscard]] std::vector<FunctionDie> inlined(const std::string& name, std::size_t most) const;
  [[nodiscard]] static std::vector<Parameter> parameters(FunctionDie& function);
  [[nodiscard]] static std::vector<Parameter> results(FunctionDie& function);  // of Go
  [[nodiscard]] static bool takes_more(FunctionDie& function);                 // "..."
  [[nodiscard]] static int language(Dwarf_Die& die);                           // DW_LANG_*; 0 not known
  [[nodiscard]] LineFound line(const std::string& file, int line, const std::string& variable) const;

  // "store.c:71"; "" not known.
  [[nodiscard]] std::string source_of(std::uint64_t address) const;

  // `function`: whose frame it is.
  [[nodiscard]] Stand stand(Dwarf_Die variable, std::uint64_t address, bool entry, Dwarf_Die* function) const;
  [[nodiscard]] Stand stand(Dwarf_Die variable, std::uint64_t address) const;

 private:
  DebugInfo() = default;
  [[nodiscard]] std::optional<Dwarf_Die> unit_at(std::uint64_t address) const;

  Dwarf* dwarf_ = nullptr;
  Dwarf_CFI* eh_frame_ = nullptr;
  Dwarf_CFI* debug_frame_ = nullptr;  // dwarf_'s own
};

}  // namespace rose::symbols
