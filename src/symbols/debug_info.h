// Reads DWARF: the functions, parameters and lines of one file, the variables in scope and their locations. Private to
// symbols.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "symbols/dwarf_location.h"
#include "symbols/elf.h"

namespace rose::symbols {

// A function, or an inlined copy of one.
struct FunctionDie {
  Dwarf_Die die;
  std::uint64_t entry = 0;   // address of the first instruction
  std::uint64_t begun = 0;   // address after the prologue; 0: unknown
  std::string inlined_into;  // the function that contains the copy; "" if it is not an inlined copy
  std::string name;
};

struct Parameter {
  Dwarf_Die die;
  std::string name;  // "" if it has no name
};

// The code of a source line in one function or inlined copy. Optimised code may have several contiguous ranges for it,
// one for each path to the line.
struct LineCode {
  std::vector<std::uint64_t> addresses;  // sorted
  std::string function;
  std::optional<Dwarf_Die> variable;  // the requested variable, if it is in scope there
};
struct LineFound {
  int line = 0;  // 0: no code at the line or after it
  bool file_known = false;
  std::vector<LineCode> code;
  std::vector<std::string> in_scope;  // names of the variables in scope, if the requested variable is not
};

class DebugInfo {
 public:
  // Returns nullptr if the file has no debug information.
  [[nodiscard]] static std::unique_ptr<DebugInfo> open(const ElfFile& file);
  ~DebugInfo();
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;

  [[nodiscard]] std::optional<FunctionDie> function_at(std::uint64_t address) const;
  // The inlined copies of functions with that name, at most `most`.
  [[nodiscard]] std::vector<FunctionDie> inlined(const std::string& name, std::size_t most) const;
  // One place of code that was inlined. Such code belongs to several places at once: its place in the copy, the place
  // of the call in each copy around it, and that in the function that contains all of them. The list begins with the
  // innermost place and ends with that function, whose name is "". `place`: "store.c:71", "" if unknown. Copies of
  // library functions are left out: the function into which they were inlined called them.
  struct InlinedPlace {
    std::string name, place;
  };
  [[nodiscard]] std::vector<InlinedPlace> inlined_at(std::uint64_t address) const;
  // The places from which a copy was called.
  [[nodiscard]] static std::vector<InlinedPlace> called_from(FunctionDie& copy);
  // Inlined copies of all functions, with `name`, `entry` and source file of the function. Functions defined in the
  // header folders of compilers and distributions are left out.
  struct Inlined {
    std::string name, source;
    std::uint64_t entry = 0;
  };
  [[nodiscard]] std::vector<Inlined> all_inlined(std::size_t most) const;
  [[nodiscard]] static std::vector<Parameter> parameters(FunctionDie& function);
  [[nodiscard]] static std::vector<Parameter> results(FunctionDie& function);  // for Go
  [[nodiscard]] static bool takes_more(FunctionDie& function);                 // variadic: "..."
  [[nodiscard]] static int language(Dwarf_Die& die);                           // DW_LANG_*; 0: unknown
  [[nodiscard]] LineFound line(const std::string& file, int line, const std::string& variable) const;

  // The place in the source: "store.c:71"; "" if unknown.
  [[nodiscard]] std::string source_of(std::uint64_t address) const;

  // The location of a variable at an address. `function`: the function to which the frame belongs.
  [[nodiscard]] Stand stand(Dwarf_Die variable, std::uint64_t address, bool entry, Dwarf_Die* function) const;
  [[nodiscard]] Stand stand(Dwarf_Die variable, std::uint64_t address) const;

 private:
  DebugInfo() = default;
  void for_each_inlined(const std::function<bool(Dwarf_Die&, Dwarf_Die&, const std::string&)>& each) const;
  [[nodiscard]] std::optional<Dwarf_Die> unit_at(std::uint64_t address) const;

  Dwarf* dwarf_ = nullptr;
  Dwarf_CFI* eh_frame_ = nullptr;
  Dwarf_CFI* debug_frame_ = nullptr;  // owned by dwarf_
  const Machine* machine_ = &machine::kOwn;
};

}  // namespace rose::symbols
