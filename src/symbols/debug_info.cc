#include "symbols/debug_info.h"

#include "symbols/code_scopes.h"
#include "symbols/go_library.h"

#include <dwarf.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "symbols/names.h"
#include "symbols/rust_library.h"
#include "symbols/symbols.h"

namespace rose::symbols {
namespace {

constexpr std::size_t kMostUnitsSeen = 200'000;
constexpr std::size_t kMostDiesSeen = 5'000'000;  // at most this many DIEs are visited in one search
constexpr int kDeepestDie = 64;
constexpr std::size_t kMostParameters = 64;
constexpr std::size_t kMostScopeNames = 24;
constexpr int kNextLines = 20;  // if a line has no code, this many further lines are searched
constexpr std::size_t kMostScopeBytes = 4096;
constexpr std::size_t kMostInlinedPlaces = 8;                     // most inlined places of one address
constexpr std::size_t kMostInlinedBytes = std::size_t{16} << 20;  // most bytes of the names and files of all copies

using ScopeList = std::unique_ptr<Dwarf_Die, decltype(&std::free)>;

std::string plain_name(Dwarf_Die* die) {
  const char* name = dwarf_diename(die);
  return name != nullptr ? std::string(std::string_view(name).substr(0, 4096)) : std::string();
}

// The linkage name; "" if there is none.
std::string linkage_name(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned wanted : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    if (dwarf_attr_integrate(die, wanted, &attribute) == nullptr) continue;
    if (const char* name = dwarf_formstring(&attribute); name != nullptr && *name != '\0')
      return demangle(std::string_view(name).substr(0, 4096));
  }
  return {};
}

bool is_go(Dwarf_Die& die) {
  Dwarf_Die unit;
  return dwarf_diecu(&die, &unit, nullptr, nullptr) != nullptr && dwarf_srclang(&unit) == DW_LANG_Go;
}

std::string full_name(Dwarf_Die* die) {
  std::string name = linkage_name(die);
  if (name.empty()) name = (is_go(*die) ? std::string() : scope_of(die)) + plain_name(die);
  return name;
}

std::optional<std::uint64_t> first_address(Dwarf_Die* die) {
  Dwarf_Addr address = 0;
  if (dwarf_entrypc(die, &address) == 0 && address != 0) return address;
  Dwarf_Addr base = 0, begin = 0, end = 0;
  if (dwarf_ranges(die, 0, &base, &begin, &end) > 0 && begin != 0) return begin;
  return std::nullopt;
}

// Visits every DIE below a given one. If `each` returns false, the children of the DIE are skipped.
class Walk {
 public:
  explicit Walk(std::function<bool(Dwarf_Die&)> each) : each_(std::move(each)) {}
  void below(Dwarf_Die& parent, int depth = 0) {
    Dwarf_Die die;
    if (depth > kDeepestDie || dwarf_child(&parent, &die) != 0) return;
    do {
      if (++seen_ > kMostDiesSeen) return;
      if (each_(die)) below(die, depth + 1);
    } while (dwarf_siblingof(&die, &die) == 0);
  }

 private:
  std::function<bool(Dwarf_Die&)> each_;
  std::size_t seen_ = 0;
};

bool path_ends(std::string_view path, std::string_view wanted) {
  if (wanted.empty() || path.size() < wanted.size() || !path.ends_with(wanted)) return false;
  return path.size() == wanted.size() || wanted.starts_with('/') || path[path.size() - wanted.size() - 1] == '/';
}

bool is_function(int tag) { return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine; }

// Returns the innermost variable with that name in scope. A variable of the unit is returned only if no function around
// the code has one. `names` receives the other names in scope.
std::optional<Dwarf_Die> in_scopes(Dwarf_Die* scopes, int count, const std::string& name,
                                   std::set<std::string>& names) {
  for (int i = 0; i < count; ++i) {
    Dwarf_Die die;
    const bool unit = dwarf_tag(&scopes[i]) == DW_TAG_compile_unit;
    if (dwarf_child(&scopes[i], &die) != 0) continue;
    std::size_t seen = 0;
    std::optional<Dwarf_Die> last;  // the last one, because it hides earlier declarations in the same block
    do {
      const int tag = dwarf_tag(&die);
      if (tag != DW_TAG_variable && tag != DW_TAG_formal_parameter) continue;
      const std::string own = plain_name(&die);
      if (own == name) last = die;
      else if (!unit && !own.empty() && names.size() < kMostScopeNames) names.insert(own);
    } while (dwarf_siblingof(&die, &die) == 0 && ++seen < 100'000);
    if (last) return last;
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<DebugInfo> DebugInfo::open(const ElfFile& file) {
  for (Elf* elf : {file.debug_handle(), file.handle()}) {
    if (elf == nullptr || !is_safe_to_read(elf)) continue;
    Dwarf* dwarf = dwarf_begin_elf(elf, DWARF_C_READ, nullptr);
    if (dwarf == nullptr) continue;
    Dwarf_CU* unit = nullptr;
    Dwarf_Die die, sub;
    Dwarf_Half version = 0;
    std::uint8_t type = 0;
    // if this fails, the file has only unwind tables
    if (dwarf_get_units(dwarf, unit, &unit, &version, &type, &die, &sub) != 0) {
      dwarf_end(dwarf);
      continue;
    }
    std::unique_ptr<DebugInfo> info(new DebugInfo());
    info->dwarf_ = dwarf;
    info->machine_ = &file.machine();
    info->eh_frame_ = dwarf_getcfi_elf(file.handle());
    info->debug_frame_ = dwarf_getcfi(dwarf);
    return info;
  }
  return nullptr;
}

DebugInfo::~DebugInfo() {
  if (eh_frame_ != nullptr) dwarf_cfi_end(eh_frame_);
  dwarf_end(dwarf_);
}

std::optional<Dwarf_Die> DebugInfo::unit_at(std::uint64_t address) const {
  Dwarf_Die found;
  if (dwarf_addrdie(dwarf_, address, &found) != nullptr) return found;
  // Compilers other than GCC omit the address index (.debug_aranges), so search all units.
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die, sub;
  Dwarf_Half version = 0;
  std::uint8_t type = 0;
  for (std::size_t n = 0; n < kMostUnitsSeen && dwarf_get_units(dwarf_, unit, &unit, &version, &type, &die, &sub) == 0;
       ++n)
    if (dwarf_haspc(&die, address) > 0) return die;
  return std::nullopt;
}

std::optional<FunctionDie> DebugInfo::function_at(std::uint64_t address) const {
  auto unit = unit_at(address);
  if (!unit) return std::nullopt;
  // The first code of a function may belong to an inlined function, so take the function around it.
  for (Dwarf_Die& scope : scopes_at(&*unit, address)) {
    Dwarf_Die* die = &scope;
    if (dwarf_tag(die) != DW_TAG_subprogram) continue;
    FunctionDie found{*die, address, 0, {}, full_name(die)};
    Dwarf_Addr* breaks = nullptr;
    if (dwarf_entry_breakpoints(die, &breaks) > 0) found.begun = breaks[0];
    std::free(breaks);
    if (found.begun < address || dwarf_haspc(die, found.begun) <= 0) found.begun = 0;
    return found;
  }
  return std::nullopt;
}

namespace {

// Finds the names that full_name() returns, for many functions of a unit. A function with internal linkage has no
// linkage name, so its namespaces and classes are taken from its position in the tree.
class Names {
 public:
  [[nodiscard]] std::string of(Dwarf_Die& function) {
    std::string name = linkage_name(&function);
    if (!name.empty()) return name;
    Dwarf_Die unit;
    if (dwarf_diecu(&function, &unit, nullptr, nullptr) != nullptr && dwarf_dieoffset(&unit) != unit_) {
      unit_ = dwarf_dieoffset(&unit);
      scopes_.clear();
      seen_ = 0;
      below(unit, {}, 0);
    }
    Dwarf_Attribute attribute;
    Dwarf_Die declared = function;  // if the function is defined outside its class or namespace, its declaration there
    if (dwarf_attr(&function, DW_AT_specification, &attribute) != nullptr) dwarf_formref_die(&attribute, &declared);
    const auto scope = scopes_.find(dwarf_dieoffset(&declared));
    return (scope == scopes_.end() ? std::string() : scope->second) + plain_name(&function);
  }

 private:
  void below(Dwarf_Die& parent, const std::string& scope, int depth) {
    Dwarf_Die die;
    if (depth > kDeepestDie || scope.size() > kMostScopeBytes || dwarf_child(&parent, &die) != 0) return;
    do {
      if (++seen_ > kMostDiesSeen) return;
      const int tag = dwarf_tag(&die);
      const std::string name = plain_name(&die);
      if (tag == DW_TAG_namespace)
        below(die, fmt::format("{}{}::", scope, name.empty() ? kAnonymousScope : name), depth + 1);
      else if ((tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type) && !name.empty())
        below(die, fmt::format("{}{}::", scope, name), depth + 1);
      else if (tag == DW_TAG_subprogram && !scope.empty()) scopes_.emplace(dwarf_dieoffset(&die), scope);
    } while (dwarf_siblingof(&die, &die) == 0);
  }

  Dwarf_Off unit_ = std::numeric_limits<Dwarf_Off>::max();
  std::map<Dwarf_Off, std::string> scopes_;  // the scopes of the unit's functions
  std::size_t seen_ = 0;
};

}  // namespace

// Calls `each(copy, origin, outer)` for every inlined copy, with the DIE of the copy, the DIE of the inlined function,
// and the name of the function whose code contains the copy. Stops when `each` returns false.
void DebugInfo::for_each_inlined(const std::function<bool(Dwarf_Die&, Dwarf_Die&, const std::string&)>& each) const {
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die, sub;
  Dwarf_Half version = 0;
  std::uint8_t type = 0;
  bool more = true;
  for (std::size_t n = 0;
       n < kMostUnitsSeen && more && dwarf_get_units(dwarf_, unit, &unit, &version, &type, &die, &sub) == 0; ++n) {
    std::string outer;
    Walk walk([&](Dwarf_Die& one) {
      if (!more) return false;
      const int tag = dwarf_tag(&one);
      if (tag == DW_TAG_subprogram) {
        outer = plain_name(&one);
        return true;
      }
      if (tag != DW_TAG_inlined_subroutine)
        return tag == DW_TAG_lexical_block || tag == DW_TAG_namespace || tag == DW_TAG_structure_type ||
               tag == DW_TAG_class_type;
      Dwarf_Attribute attribute;
      Dwarf_Die origin;
      if (dwarf_attr(&one, DW_AT_abstract_origin, &attribute) != nullptr &&
          dwarf_formref_die(&attribute, &origin) != nullptr)
        more = each(one, origin, outer);
      return more;
    });
    walk.below(die);
  }
}

std::vector<FunctionDie> DebugInfo::inlined(const std::string& name, std::size_t most) const {
  std::vector<FunctionDie> out;
  std::map<Dwarf_Off, bool> known;  // by origin: whether it has the name
  Names names;
  for_each_inlined([&](Dwarf_Die& copy, Dwarf_Die& origin, const std::string& outer) {
    const auto [is, fresh] = known.try_emplace(dwarf_dieoffset(&origin), false);
    // Users may omit the namespaces and classes of a function that has no linkage name.
    for (const std::string& own :
         fresh ? std::vector{names.of(origin), plain_name(&origin)} : std::vector<std::string>()) {
      Function function;
      function.name = function.linkage_name = own;
      is->second = is->second || (may_be_named(name, own, own) && name_matches(name, function));
    }
    if (is->second)
      if (const auto entry = first_address(&copy)) out.push_back({copy, *entry, 0, outer, full_name(&copy)});
    return out.size() < most;
  });
  return out;
}

namespace {

// The path of the source file in which the inlined copy is called, as in the line table. "" if it is unknown.
std::string_view call_file(Dwarf_Die& copy) {
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0;
  Dwarf_Die unit;
  Dwarf_Files* files = nullptr;
  std::size_t known = 0;
  if (dwarf_formudata(dwarf_attr(&copy, DW_AT_call_file, &attribute), &file) != 0 ||
      dwarf_diecu(&copy, &unit, nullptr, nullptr) == nullptr || dwarf_getsrcfiles(&unit, &files, &known) != 0 ||
      file >= known)
    return {};
  const char* path = dwarf_filesrc(files, file, nullptr, nullptr);
  return path != nullptr ? std::string_view(path).substr(0, kMostScopeBytes) : std::string_view();
}

// The place at which the inlined copy is called: "store.c:71". "" if it is unknown.
std::string call_place(Dwarf_Die& copy) {
  Dwarf_Attribute attribute;
  Dwarf_Word line = 0;
  const std::string_view file = call_file(copy);
  if (file.empty() || dwarf_formudata(dwarf_attr(&copy, DW_AT_call_line, &attribute), &line) != 0) return {};
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), line);
}

// The path of the source file that defines the function `origin`, of which `copy` is an inlined copy. "" if it is
// unknown. Go's compiler does not record this file. But if the copy contains inlined calls, they are calls in this
// file; otherwise, the first instruction of the copy belongs to this file.
std::string_view source_of_inlined(Dwarf_Die& origin, Dwarf_Die& copy) {
  if (const char* file = dwarf_decl_file(&origin)) return std::string_view(file).substr(0, kMostScopeBytes);
  if (!is_go(origin)) return {};
  Dwarf_Die inner;
  if (dwarf_child(&copy, &inner) == 0) {
    std::size_t seen = 0;
    do {
      if (dwarf_tag(&inner) == DW_TAG_inlined_subroutine) return call_file(inner);
    } while (++seen < kMostParameters && dwarf_siblingof(&inner, &inner) == 0);
  }
  Dwarf_Die unit;
  const auto entry = first_address(&copy);
  if (!entry || dwarf_diecu(&copy, &unit, nullptr, nullptr) == nullptr) return {};
  Dwarf_Line* line = dwarf_getsrc_die(&unit, *entry);
  const char* file = line != nullptr ? dwarf_linesrc(line, nullptr, nullptr) : nullptr;
  return file != nullptr ? std::string_view(file).substr(0, kMostScopeBytes) : std::string_view();
}

// True if a function belongs to the libraries of compilers or distributions. `file` is its source file.
bool is_of_library(std::string_view name, std::string_view file) {
  const bool go = file.ends_with(".go");  // the folder is not decisive, because /usr/src may contain Go modules
  return of_go_library(name, file) || (!go && (file.starts_with("/usr/") || of_rust_library(file)));
}

}  // namespace

namespace {

// Makes the list of inlined places. `scopes`: the scopes around some code, innermost first. `place`: where the code is
// in the source.
template <class Scopes>
std::vector<DebugInfo::InlinedPlace> places_in(Scopes& scopes, std::string place) {
  std::vector<DebugInfo::InlinedPlace> out;
  for (Dwarf_Die& scope : scopes) {
    if (dwarf_tag(&scope) == DW_TAG_subprogram || out.size() + 1 == kMostInlinedPlaces) break;
    if (dwarf_tag(&scope) != DW_TAG_inlined_subroutine) continue;
    Dwarf_Attribute attribute;
    Dwarf_Die origin;
    if (dwarf_formref_die(dwarf_attr_integrate(&scope, DW_AT_abstract_origin, &attribute), &origin) == nullptr)
      continue;
    const char* source = dwarf_decl_file(&origin);
    std::string name = full_name(&scope), call = call_place(scope);
    if (!name.empty() && !is_of_library(name, source != nullptr ? source : ""))
      out.push_back({std::move(name), std::exchange(place, std::move(call))});
    else if (!call.empty()) place = std::move(call);
  }
  out.push_back({{}, std::move(place)});
  return out;
}

}  // namespace

std::vector<DebugInfo::InlinedPlace> DebugInfo::called_from(FunctionDie& copy) {
  Dwarf_Die* around = nullptr;
  const int count = dwarf_getscopes_die(&copy.die, &around);
  const std::span<Dwarf_Die> outer(around, around != nullptr && count > 0 ? static_cast<std::size_t>(count) : 0);
  std::span<Dwarf_Die> without_copy = outer.subspan(std::min<std::size_t>(outer.size(), 1));
  std::vector<InlinedPlace> out = places_in(without_copy, call_place(copy.die));
  std::free(around);
  return out;
}

std::vector<DebugInfo::InlinedPlace> DebugInfo::inlined_at(std::uint64_t address) const {
  auto unit = unit_at(address);
  std::vector<Dwarf_Die> scopes = unit ? scopes_at(&*unit, address) : std::vector<Dwarf_Die>();
  return places_in(scopes, source_of(address));
}

std::vector<DebugInfo::Inlined> DebugInfo::all_inlined(std::size_t most) const {
  std::vector<Inlined> out;
  std::map<Dwarf_Off, Inlined> known;  // by origin; if the name is empty, the function is excluded
  std::size_t bytes = 0;
  Names names;
  for_each_inlined([&](Dwarf_Die& copy, Dwarf_Die& origin, const std::string&) {
    const auto [function, fresh] = known.try_emplace(dwarf_dieoffset(&origin));
    if (fresh) {
      const std::string_view file = source_of_inlined(origin, copy);
      std::string name = names.of(origin);
      if (!file.empty() && !is_of_library(name, file)) function->second = {std::move(name), std::string(file), 0};
    }
    if (function->second.name.empty()) return true;
    if (const auto entry = first_address(&copy)) {
      out.push_back(function->second);
      out.back().entry = *entry;
      bytes += function->second.name.size() + function->second.source.size();
    }
    return out.size() < most && bytes < kMostInlinedBytes;
  });
  return out;
}

namespace {

std::vector<Parameter> children_of(Dwarf_Die* function, bool results) {
  std::vector<Parameter> out;
  Dwarf_Die die;
  if (dwarf_child(function, &die) != 0) return out;
  do {
    if (dwarf_tag(&die) != DW_TAG_formal_parameter) continue;
    bool result = false;
    Dwarf_Attribute attribute;
    if (dwarf_attr_integrate(&die, DW_AT_variable_parameter, &attribute) != nullptr)
      dwarf_formflag(&attribute, &result);
    if (result != results) continue;
    std::string name = plain_name(&die);
    // In a function with `defer`, Go's compiler lists a result twice: in its register, and on the stack.
    if (results && std::any_of(out.begin(), out.end(), [&](const Parameter& one) { return one.name == name; }))
      continue;
    out.push_back({die, std::move(name)});
  } while (out.size() < kMostParameters && dwarf_siblingof(&die, &die) == 0);
  return out;
}

}  // namespace

std::vector<Parameter> DebugInfo::parameters(FunctionDie& function) { return children_of(&function.die, false); }
std::vector<Parameter> DebugInfo::results(FunctionDie& function) { return children_of(&function.die, true); }

bool DebugInfo::takes_more(FunctionDie& function) {
  Dwarf_Die die;
  if (dwarf_child(&function.die, &die) != 0) return false;
  std::size_t seen = 0;
  do {
    if (dwarf_tag(&die) == DW_TAG_unspecified_parameters) return true;
  } while (dwarf_siblingof(&die, &die) == 0 && ++seen < 10'000);
  return false;
}

int DebugInfo::language(Dwarf_Die& die) {
  Dwarf_Die unit;
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr) return 0;
  const int language = dwarf_srclang(&unit);
  return language < 0 ? 0 : language;
}

LineFound DebugInfo::line(const std::string& file, int wanted, const std::string& variable) const {
  struct Row {
    int line;
    std::uint64_t address;
    Dwarf_Die unit;
    // number of the stretch to which the row belongs; a stretch is a sequence of line table entries for one line
    std::size_t stretch;
  };
  std::vector<Row> rows;
  std::size_t stretches = 0;
  LineFound found;
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die, sub;
  Dwarf_Half version = 0;
  std::uint8_t type = 0;
  for (std::size_t n = 0; n < kMostUnitsSeen && dwarf_get_units(dwarf_, unit, &unit, &version, &type, &die, &sub) == 0;
       ++n) {
    Dwarf_Files* files = nullptr;
    std::size_t file_count = 0;
    if (dwarf_getsrcfiles(&die, &files, &file_count) != 0) continue;
    bool mentioned = false;
    for (std::size_t i = 0; i < file_count && !mentioned; ++i) {
      const char* path = dwarf_filesrc(files, i, nullptr, nullptr);
      mentioned = path != nullptr && path_ends(path, file);
    }
    if (!mentioned) continue;
    Dwarf_Lines* lines = nullptr;
    std::size_t count = 0;
    if (dwarf_getsrclines(&die, &lines, &count) != 0) continue;
    int before = 0;
    for (std::size_t i = 0; i < count; ++i) {
      Dwarf_Line* one = dwarf_onesrcline(lines, i);
      int number = 0, now = 0;
      if (dwarf_lineno(one, &now) != 0 || std::exchange(before, now) != now) ++stretches;
      bool statement = false, end = false;
      Dwarf_Addr address = 0;
      const char* path = dwarf_linesrc(one, nullptr, nullptr);
      if (path == nullptr || !path_ends(path, file)) continue;
      found.file_known = true;
      if (dwarf_lineno(one, &number) != 0 || number < wanted || number > wanted + kNextLines) continue;
      if (dwarf_linebeginstatement(one, &statement) != 0 || !statement || dwarf_lineendsequence(one, &end) != 0 ||
          end || dwarf_lineaddr(one, &address) != 0)
        continue;
      if (rows.size() < 100'000) rows.push_back({number, address, die, stretches});
    }
  }
  if (rows.empty()) return found;
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return std::tuple(a.line, a.address) < std::tuple(b.line, b.address); });
  found.line = rows.front().line;
  std::map<std::pair<Dwarf_Off, std::uint64_t>, LineCode> by_scope;
  std::set<std::string> names;
  for (Row& row : rows) {
    if (row.line != found.line || by_scope.size() >= 64) break;
    Dwarf_Die* list = nullptr;
    const int count = dwarf_getscopes(&row.unit, row.address, &list);
    const ScopeList scopes(list, &std::free);
    if (count <= 0) continue;
    Dwarf_Die* function = nullptr;
    for (int i = 0; i < count && function == nullptr; ++i)
      if (is_function(dwarf_tag(&scopes.get()[i]))) function = &scopes.get()[i];
    if (function == nullptr) continue;
    LineCode& code = by_scope[{dwarf_dieoffset(function), row.stretch}];
    code.function = full_name(function);
    code.addresses.push_back(row.address);
    if (!code.variable) code.variable = in_scopes(scopes.get(), count, variable, names);
  }
  for (auto& [key, code] : by_scope) found.code.push_back(std::move(code));
  found.in_scope.assign(names.begin(), names.end());
  return found;
}

std::string DebugInfo::source_of(std::uint64_t address) const {
  auto unit = unit_at(address);
  Dwarf_Line* line = unit ? dwarf_getsrc_die(&*unit, address) : nullptr;
  int number = 0;
  const char* path = line != nullptr ? dwarf_linesrc(line, nullptr, nullptr) : nullptr;
  if (path == nullptr || dwarf_lineno(line, &number) != 0) return {};
  const std::string_view name(path);
  return fmt::format("{}:{}", name.substr(name.rfind('/') + 1).substr(0, 200), number);
}

Stand DebugInfo::stand(Dwarf_Die variable, std::uint64_t address, bool entry, Dwarf_Die* function) const {
  Context context{address, entry, eh_frame_, debug_frame_, machine_, function};
  return stand_of(&variable, context);
}

Stand DebugInfo::stand(Dwarf_Die variable, std::uint64_t address) const {
  auto function = function_at(address);
  return stand(variable, address, false, function ? &function->die : nullptr);
}

}  // namespace rose::symbols
