#include "symbols/code_scopes.h"

#include <dwarf.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace rose::symbols {
namespace {

constexpr int kDeepestScope = 64;  // deepest nesting

bool holds_functions(int tag) {
  return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
         tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type;
}

// Used if dwarf_getscopes finds nothing. That function does not descend into namespaces, which contain Rust's
// functions. The result begins with the outermost scope: first the function, then what is inlined into it, and so on.
bool find_code(Dwarf_Die* parent, std::uint64_t pc, int depth, std::vector<Dwarf_Die>& out) {
  Dwarf_Die die;
  if (depth > kDeepestScope || dwarf_child(parent, &die) != 0) return false;
  do {
    const int tag = dwarf_tag(&die);
    const bool code = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
    if (holds_functions(tag)) {
      if (out.empty() && find_code(&die, pc, depth + 1, out)) return true;
    } else if ((code || tag == DW_TAG_lexical_block) && dwarf_haspc(&die, pc) > 0) {
      if (code) out.push_back(die);
      find_code(&die, pc, depth + 1, out);
      return true;
    }
  } while (dwarf_siblingof(&die, &die) == 0);
  return false;
}

}  // namespace

std::vector<Dwarf_Die> scopes_at(Dwarf_Die* unit, std::uint64_t pc) {
  std::vector<Dwarf_Die> out;
  Dwarf_Die* found = nullptr;
  const int around = dwarf_getscopes(unit, pc, &found);
  const std::unique_ptr<Dwarf_Die, decltype(&std::free)> scopes(found, &std::free);
  if (around <= 0) {
    find_code(unit, pc, 0, out);
    std::reverse(out.begin(), out.end());
    return out;
  }
  found = nullptr;
  const int depth = dwarf_getscopes_die(&scopes.get()[0], &found);
  const std::unique_ptr<Dwarf_Die, decltype(&std::free)> chain(found, &std::free);
  for (int i = 0; i < depth; ++i) out.push_back(chain.get()[i]);
  return out;
}

std::string scope_of(Dwarf_Die* function) {
  Dwarf_Die declared = *function, next;
  Dwarf_Attribute attribute;
  for (int hops = 0; hops < 4; ++hops) {
    if (dwarf_attr(&declared, DW_AT_abstract_origin, &attribute) == nullptr &&
        dwarf_attr(&declared, DW_AT_specification, &attribute) == nullptr)
      break;
    if (dwarf_formref_die(&attribute, &next) == nullptr) break;
    declared = next;
  }
  Dwarf_Die* found = nullptr;
  const int depth = dwarf_getscopes_die(&declared, &found);
  const std::unique_ptr<Dwarf_Die, decltype(&std::free)> chain(found, &std::free);
  std::string out;
  for (int i = 1; i < depth; ++i) {
    const int tag = dwarf_tag(&chain.get()[i]);
    // A C function (`extern "C"`) that is declared in a namespace: its symbol does not contain the namespace.
    if (i == 1 && tag == DW_TAG_namespace && dwarf_hasattr_integrate(function, DW_AT_external) != 0) return {};
    if (tag != DW_TAG_namespace && tag != DW_TAG_structure_type && tag != DW_TAG_class_type && tag != DW_TAG_union_type)
      continue;
    const char* name = dwarf_diename(&chain.get()[i]);
    if (name == nullptr && tag != DW_TAG_namespace) continue;
    out.insert(0, std::string(name != nullptr ? name : kAnonymousScope) + "::");
  }
  return out;
}

}  // namespace rose::symbols
