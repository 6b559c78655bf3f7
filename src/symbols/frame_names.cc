#include "symbols/frame_names.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "symbols/code_scopes.h"
#include "symbols/elf.h"
#include "symbols/names.h"
#include "symbols/symbols.h"

namespace rose::symbols {
namespace {

constexpr std::size_t kMostInlined = 32;     // most levels of inlining at one address
constexpr std::size_t kMostUnits = 200'000;  // if the file has no address index, at most this many units are searched
constexpr std::size_t kMostMangledBytes = 16'384;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Scopes = std::unique_ptr<Dwarf_Die, Free>;

std::string printed(const char* linkage_name) {
  if (linkage_name == nullptr) return {};
  const std::string_view name(linkage_name);
  if (name.size() > kMostMangledBytes) return std::string(name.substr(0, kMostMangledBytes));
  std::string text = demangle(name);
  if (has_rust_hash(text)) text.resize(text.size() - 19);
  return text;
}

std::string name_of(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned wanted : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    if (dwarf_attr_integrate(die, wanted, &attribute) == nullptr) continue;
    if (const char* name = dwarf_formstring(&attribute); name != nullptr && *name != '\0') return printed(name);
  }
  const char* name = dwarf_diename(die);
  return name != nullptr ? scope_of(die) + name : std::string();
}

// The unit that contains the address. If there is no address index, all units are searched; compilers other than GCC
// omit the index.
std::optional<Dwarf_Die> unit_at(Dwfl_Module* module, std::uint64_t pc, Dwarf_Addr& bias) {
  if (Dwarf_Die* unit = dwfl_module_addrdie(module, pc, &bias); unit != nullptr) return *unit;
  Dwarf_Die* unit = nullptr;
  for (std::size_t n = 0; n < kMostUnits && (unit = dwfl_module_nextcu(module, unit, &bias)) != nullptr; ++n) {
    if (dwarf_haspc(unit, pc - bias) > 0) return *unit;
  }
  return std::nullopt;
}

std::string file_of_call(Dwarf_Die* unit, Dwarf_Die* inlined) {
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &number) != 0) return {};
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_getsrcfiles(unit, &files, &count) != 0 || number >= count) return {};
  const char* name = dwarf_filesrc(files, number, nullptr, nullptr);
  return name != nullptr ? name : "";
}

int line_of_call(Dwarf_Die* inlined) {
  Dwarf_Attribute attribute;
  Dwarf_Word line = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) != 0 || line > 100'000'000) return 0;
  return static_cast<int>(line);
}

// The names from DWARF: first the inlined functions, then the function itself. Empty if DWARF does not contain the
// address.
std::vector<StackFrame> by_dwarf(Dwfl_Module* module, std::uint64_t pc) {
  Dwarf_Addr bias = 0;
  Dwarf* dwarf = dwfl_module_getdwarf(module, &bias);
  if (dwarf == nullptr || !is_safe_to_read(dwarf_getelf(dwarf))) return {};
  auto unit = unit_at(module, pc, bias);
  if (!unit) return {};
  std::string file;
  int line = 0;
  if (Dwarf_Line* source = dwarf_getsrc_die(&*unit, pc - bias); source != nullptr) {
    if (const char* name = dwarf_linesrc(source, nullptr, nullptr); name != nullptr) file = name;
    dwarf_lineno(source, &line);
  }
  std::vector<StackFrame> frames;
  for (Dwarf_Die& scope : scopes_at(&*unit, pc - bias)) {
    if (frames.size() == kMostInlined) break;
    Dwarf_Die* die = &scope;
    const int tag = dwarf_tag(die);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    StackFrame frame;
    frame.function = name_of(die);
    frame.file = file;
    frame.line = line;
    frame.inlined = tag == DW_TAG_inlined_subroutine;
    const bool last = !frame.inlined;
    frames.push_back(std::move(frame));
    if (last) return frames;
    file = file_of_call(&*unit, die);
    line = line_of_call(die);
  }
  // An inlined function without a function around it means that the debug information is damaged, so do not use it.
  return {};
}

}  // namespace

const FrameNames::Named* FrameNames::in_tables(const std::filesystem::path& path, std::uint64_t address) {
  auto known = tables_.find(path);
  if (known == tables_.end()) {
    std::vector<Named> table;
    if (const auto file = ElfFile::open(path); file) {
      const auto sources = file->sources();
      for (auto& symbol : file->functions()) {
        const auto source = sources.find(symbol.address);
        Named named{symbol.address, symbol.size, symbol.binding, std::move(symbol.linkage_name),
                    source == sources.end() ? "" : source->second};
        // If a function has several names, keep the one with the strongest binding, because programs use this one.
        if (table.empty() || table.back().address != named.address) table.push_back(std::move(named));
        else if (named.binding <= table.back().binding) table.back() = std::move(named);
      }
    }
    known = tables_.emplace(path, std::move(table)).first;
  }
  const auto& table = known->second;
  auto at = std::upper_bound(table.begin(), table.end(), address,
                             [](std::uint64_t wanted, const Named& one) { return wanted < one.address; });
  if (at == table.begin()) return nullptr;
  --at;
  return at->size == 0 || address - at->address < at->size ? &*at : nullptr;
}

std::vector<StackFrame> FrameNames::at(Dwfl_Module* module, std::uint64_t pc, std::uint64_t address,
                                       const std::filesystem::path& path) {
  if (auto frames = by_dwarf(module, pc); !frames.empty()) {
    if (!frames.back().function.empty()) return frames;
  }
  // Do not use dwfl_module_addrinfo(), because in a damaged file it returns names without an end.
  StackFrame frame;
  if (const Named* named = in_tables(path, address); named != nullptr) {
    frame.function = printed(named->name.c_str());
    frame.file = named->source;
  }
  return {frame};
}

}  // namespace rose::symbols
