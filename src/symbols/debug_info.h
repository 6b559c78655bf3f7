// Reads DWARF: the functions, parameters and lines of one file, the variables in scope, and where these are stored.
// Private to symbols.
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

// A function, or one inlined copy of a function.
struct FunctionDie {
  Dwarf_Die die;
  std::uint64_t entry = 0;   // address of the first instruction
  std::uint64_t begun = 0;   // address after the prologue; 0: unknown
  std::string inlined_into;  // the function that contains the copy; "" if this is no inlined copy
  std::string name;
};

struct Parameter {
  Dwarf_Die die;
  std::string name;  // "" if it has no name
};

// One contiguous range of code of a source line, in one function or inlined copy. Optimised code may have several
// ranges for a line, one for each path to it.
struct LineCode {
  std::vector<std::uint64_t> addresses;  // sorted
  std::string function;
  std::optional<Dwarf_Die> variable;  // the requested variable, if it is in scope in this code
};
struct LineFound {
  int line = 0;  // the line that has code; 0: neither the line nor the lines after it have code
  bool file_known = false;
  std::vector<LineCode> code;
  std::vector<std::string> in_scope;  // names of the variables in scope, if the requested one is not among them
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
  // One of the places in the source to which an instruction belongs. An instruction of inlined code belongs to several
  // places: its own line in the inlined function, the line of the call in each copy around it, and the line of the call
  // in the function that contains all copies. Lists begin with the innermost place. Their last entry is the place in
  // the containing function; its name is "". `place`: "store.c:71"; "" if unknown. Copies of library functions are left
  // out, so the function into which they were inlined counts as the caller.
  struct InlinedPlace {
    std::string name, place;
  };
  [[nodiscard]] std::vector<InlinedPlace> inlined_at(std::uint64_t address) const;
  // The places in the source at which the function of an inlined copy is called, innermost first.
  [[nodiscard]] static std::vector<InlinedPlace> called_from(FunctionDie& copy);
  // One entry for each inlined copy: the name and the source file of its function, and the address at which the copy
  // begins. Functions that are defined in the header folders of compilers and distributions are left out.
  struct Inlined {
    std::string name, source;
    std::uint64_t entry = 0;
  };
  [[nodiscard]] std::vector<Inlined> all_inlined(std::size_t most) const;
  [[nodiscard]] static std::vector<Parameter> parameters(FunctionDie& function);
  [[nodiscard]] static std::vector<Parameter> results(FunctionDie& function);  // for Go
  [[nodiscard]] static bool takes_more(FunctionDie& function);                 // the function is variadic ("...")
  [[nodiscard]] static int language(Dwarf_Die& die);                           // DW_LANG_*; 0: unknown
  [[nodiscard]] LineFound line(const std::string& file, int line, const std::string& variable) const;

  // The place of the code in the source: "store.c:71". "" if it is unknown.
  [[nodiscard]] std::string source_of(std::uint64_t address) const;

  // Where a variable is stored when a thread is at `address`. `entry`: `address` is the first instruction of a
  // function. `function`: the function to which the frame belongs.
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
