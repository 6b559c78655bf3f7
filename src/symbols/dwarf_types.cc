#include "symbols/dwarf_types.h"

#include <dwarf.h>

#include <algorithm>

namespace rose::symbols {
namespace {

constexpr std::uint8_t kFirstResult = 0, kSecondResult = 1;  // rax and rdx, by their DWARF numbers
constexpr int kMostQualifiers = 32;
constexpr std::size_t kMostMembersSeen = 4096;
constexpr int kDeepestMember = 6;  // deepest nesting of anonymous members and base classes
constexpr std::size_t kMostNames = 512;

bool is_structure(int tag) {
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}
bool is_pointer(int tag) {
  return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
}
bool is_reference(int tag) { return tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type; }

std::optional<Dwarf_Die> referred(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Die found;
  if (dwarf_attr_integrate(die, name, &attribute) == nullptr || dwarf_formref_die(&attribute, &found) == nullptr)
    return std::nullopt;
  return found;
}

std::optional<std::uint64_t> number(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr_integrate(die, name, &attribute) == nullptr || dwarf_formudata(&attribute, &value) != 0)
    return std::nullopt;
  return value;
}

std::string name_of_die(Dwarf_Die* die) {
  const char* name = dwarf_diename(die);
  return name != nullptr ? std::string(std::string_view(name).substr(0, 200)) : std::string();
}

struct Member {
  Dwarf_Die die;
  std::string name;
  std::uint64_t offset = 0;
  bool base = false;  // the member is a base class
  bool bits = false;  // the member is a bit field
};

// The members of a type that occupy space.
std::vector<Member> members_of(Dwarf_Die* type) {
  std::vector<Member> out;
  Dwarf_Die die;
  if (dwarf_child(type, &die) != 0) return out;
  std::size_t seen = 0;
  do {
    const int tag = dwarf_tag(&die);
    if (tag != DW_TAG_member && tag != DW_TAG_inheritance) continue;
    // Skip static members.
    if (dwarf_hasattr(&die, DW_AT_external) != 0 || dwarf_hasattr(&die, DW_AT_declaration) != 0) continue;
    Member member{die, name_of_die(&die), number(&die, DW_AT_data_member_location).value_or(0),
                  tag == DW_TAG_inheritance, dwarf_hasattr(&die, DW_AT_bit_size) != 0};
    out.push_back(std::move(member));
  } while (dwarf_siblingof(&die, &die) == 0 && ++seen < kMostMembersSeen);
  return out;
}

struct Found {
  Dwarf_Die die;  // the DIE of the member
  std::uint64_t offset = 0;
  bool bits = false;
};

std::optional<Found> find_member(Dwarf_Die* type, const std::string& name, int depth = 0) {
  if (depth > kDeepestMember) return std::nullopt;
  std::vector<Member> members = members_of(type);
  for (Member& member : members)
    if (!member.base && member.name == name) return Found{member.die, member.offset, member.bits};
  for (Member& member : members) {
    if (!member.base && !member.name.empty()) continue;
    auto inner = type_of(&member.die);
    if (!inner || !is_structure(dwarf_tag(&*inner))) continue;
    if (auto found = find_member(&*inner, name, depth + 1)) {
      found->offset += member.offset;
      return found;
    }
  }
  return std::nullopt;
}

void names_below(Dwarf_Die* type, std::vector<std::string>& out, int depth = 0) {
  if (depth > kDeepestMember) return;
  for (Member& member : members_of(type)) {
    if (out.size() >= 12) return;
    if (!member.name.empty() && !member.base) {
      out.push_back(member.name);
    } else if (auto inner = type_of(&member.die); inner && is_structure(dwarf_tag(&*inner))) {
      names_below(&*inner, out, depth + 1);
    }
  }
}

std::string listed(Dwarf_Die* type) {
  std::vector<std::string> names;
  names_below(type, names);
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? "it has none" : out;
}

bool is_char(Dwarf_Die* type) {
  if (dwarf_tag(type) != DW_TAG_base_type || size_of(type) != 1) return false;
  const auto encoding = number(type, DW_AT_encoding);
  return encoding == DW_ATE_signed_char || encoding == DW_ATE_unsigned_char || encoding == DW_ATE_UTF;
}

// The first pointer in a type, which may be a member at any depth.
std::optional<Found> first_pointer(Dwarf_Die* type, int depth = 0) {
  if (depth > kDeepestMember + 2) return std::nullopt;
  for (Member& member : members_of(type)) {
    auto inner = type_of(&member.die);
    if (!inner) continue;
    if (dwarf_tag(&*inner) == DW_TAG_pointer_type) return Found{member.die, member.offset, false};
    if (!is_structure(dwarf_tag(&*inner))) continue;
    if (auto found = first_pointer(&*inner, depth + 1)) {
      found->offset += member.offset;
      return found;
    }
  }
  return std::nullopt;
}

struct CountedText {
  std::uint64_t text = 0, length = 0;  // offsets of the pointer and of the length
};

std::optional<CountedText> pair_of(Dwarf_Die* type, const char* text, const char* length) {
  const auto pointer = find_member(type, text), count = find_member(type, length);
  if (!pointer || !count) return std::nullopt;
  return CountedText{pointer->offset, count->offset};
}

// Recognises libstdc++'s std::string and string_view, Rust's str and String, and Go's string.
std::optional<CountedText> as_text(Dwarf_Die* type) {
  const std::string name = name_of_die(type);
  if (name.starts_with("basic_string<char") || name == "string") {
    if (auto dataplus = find_member(type, "_M_dataplus")) {
      auto inner = type_of(&dataplus->die);
      const auto length = find_member(type, "_M_string_length");
      if (inner && length)
        if (const auto pointer = find_member(&*inner, "_M_p"))
          return CountedText{dataplus->offset + pointer->offset, length->offset};
    }
  }
  if (name.starts_with("basic_string_view<char")) return pair_of(type, "_M_str", "_M_len");
  if (name == "&str" || name == "&mut str") return pair_of(type, "data_ptr", "length");
  if (name == "string") return pair_of(type, "str", "len");
  if (name != "String") return std::nullopt;
  auto vec = find_member(type, "vec");
  auto inner = vec ? type_of(&vec->die) : std::nullopt;
  if (!inner) return std::nullopt;
  auto length = find_member(&*inner, "len");
  auto pointer = first_pointer(&*inner);
  if (!length || !pointer) return std::nullopt;
  return CountedText{vec->offset + pointer->offset, vec->offset + length->offset};
}

bool has_reals(Dwarf_Die* type, int depth = 0) {
  if (depth > kDeepestMember) return true;
  const int tag = dwarf_tag(type);
  if (tag == DW_TAG_base_type) return number(type, DW_AT_encoding) == DW_ATE_float;
  if (tag == DW_TAG_array_type) {
    auto element = type_of(type);
    return !element || has_reals(&*element, depth + 1);
  }
  if (!is_structure(tag)) return false;
  for (Member& member : members_of(type)) {
    auto inner = type_of(&member.die);
    if (!inner || has_reals(&*inner, depth + 1)) return true;
  }
  return false;
}

std::shared_ptr<const std::map<std::int64_t, std::string>> enumerators(Dwarf_Die* type) {
  auto names = std::make_shared<std::map<std::int64_t, std::string>>();
  Dwarf_Die die;
  if (dwarf_child(type, &die) != 0) return names;
  do {
    Dwarf_Attribute attribute;
    Dwarf_Sword value = 0;
    if (dwarf_tag(&die) != DW_TAG_enumerator || dwarf_attr(&die, DW_AT_const_value, &attribute) == nullptr ||
        dwarf_formsdata(&attribute, &value) != 0)
      continue;
    names->emplace(value, name_of_die(&die));
  } while (names->size() < kMostNames && dwarf_siblingof(&die, &die) == 0);
  return names;
}

// Sets `out` to read a value of `size` bytes that is stored at `stand`.
void put_bits(const Stand& stand, std::uint64_t size, Reading& out) {
  if (stand.how == Stand::How::unknown) {
    out.refused = stand.refused;
    return;
  }
  if (stand.how == Stand::How::pieces) {
    out.refused = "location not supported: in several pieces";
    return;
  }
  out.fetch.at = stand.chain;
  out.form.size = static_cast<std::uint8_t>(size);
  if (stand.how == Stand::How::value) {
    out.fetch.kind = Fetch::Kind::word;
    out.form.shift = stand.shift;
  } else {
    out.fetch.kind = Fetch::Kind::memory;
    out.fetch.size = static_cast<std::uint8_t>(size);
  }
}

void put_text(const Stand& text, Reading& out) {
  out.form.kind = Form::Kind::text;
  if (text.how != Stand::How::memory) {
    out.refused = text.refused.empty() ? "location not supported: a text in registers" : text.refused;
    return;
  }
  out.fetch.kind = Fetch::Kind::text;
  out.fetch.at = text.chain;
}

// Sets the chain that yields the word stored at `stand`.
bool word_chain(const Stand& stand, Chain& out, std::string& refused) {
  if (stand.how == Stand::How::value && stand.shift == 0) {
    out = stand.chain;
    return true;
  }
  const Stand behind = pointed_to(stand);
  if (behind.how != Stand::How::memory) refused = behind.refused;
  else out = behind.chain;
  return behind.how == Stand::How::memory;
}

Result<Reading> read_value(Dwarf_Die type, Stand stand, const std::string& name, int depth) {
  Reading out;
  if (stand.how == Stand::How::unknown) {
    out.refused = stand.refused;
    return out;
  }
  const int tag = dwarf_tag(&type);
  const std::uint64_t size = is_pointer(tag) ? 8 : size_of(&type);
  const bool fits = size == 1 || size == 2 || size == 4 || size == 8;
  if (is_pointer(tag)) {
    auto target = type_of(&type);
    if (is_reference(tag) && target && depth < kDeepestMember)
      return read_value(*target, pointed_to(stand), name, depth + 1);
    if (target && is_char(&*target)) {
      put_text(pointed_to(stand), out);
      return out;
    }
    out.form.kind = Form::Kind::pointer;
    put_bits(stand, 8, out);
    return out;
  }
  if (tag == DW_TAG_base_type || tag == DW_TAG_enumeration_type) {
    if (!fits) {
      out.refused = fmt::format("location not supported: a number of {} bytes", size);
      return out;
    }
    if (tag == DW_TAG_enumeration_type) {
      out.form.kind = Form::Kind::enumeration;
      out.form.names = enumerators(&type);
    } else {
      const auto encoding = number(&type, DW_AT_encoding).value_or(DW_ATE_unsigned);
      out.form.kind = encoding == DW_ATE_boolean  ? Form::Kind::boolean
                      : encoding == DW_ATE_float  ? Form::Kind::real
                      : encoding == DW_ATE_signed ? Form::Kind::integer
                      : size == 1 && name_of_die(&type) != "u8" && name_of_die(&type) != "uint8" && is_char(&type)
                          ? Form::Kind::character
                      : encoding == DW_ATE_signed_char ? Form::Kind::integer
                                                       : Form::Kind::natural;
      if (out.form.kind == Form::Kind::character && name_of_die(&type) == "unsigned char")
        out.form.kind = Form::Kind::natural;
    }
    put_bits(stand, size, out);
    return out;
  }
  if (tag == DW_TAG_array_type) {
    auto element = type_of(&type);
    if (element && is_char(&*element)) {
      put_text(stand, out);
      return out;
    }
    return fail(ErrorKind::input, fmt::format("'{}' is an array, which cannot be recorded", name));
  }
  if (is_structure(tag)) {
    if (const auto text = as_text(&type)) {
      out.form.kind = Form::Kind::text;
      out.fetch.kind = Fetch::Kind::counted;
      const Stand pointer = part_of(stand, text->text, 8), length = part_of(stand, text->length, 8);
      if (pointer.how == Stand::How::unknown) out.refused = pointer.refused;
      else if (length.how == Stand::How::unknown) out.refused = length.refused;
      else if (word_chain(pointer, out.fetch.at, out.refused)) (void)word_chain(length, out.fetch.length, out.refused);
      return out;
    }
    // If the type contains only one value (an atomic, or a structure around a number), read that value.
    std::vector<Member> members = members_of(&type);
    std::erase_if(members, [](Member& member) {
      auto inner = type_of(&member.die);
      return inner && is_structure(dwarf_tag(&*inner)) && members_of(&*inner).empty();
    });
    if (members.size() == 1 && depth < kDeepestMember && !members[0].bits) {
      if (auto inner = type_of(&members[0].die); inner && tag != DW_TAG_union_type)
        return read_value(*inner,
                          part_of(stand, members[0].offset, is_pointer(dwarf_tag(&*inner)) ? 8 : size_of(&*inner)),
                          name, depth + 1);
    }
    return fail(ErrorKind::input, fmt::format("'{}' is a structure: name one of its members", name),
                fmt::format("its members: {}", listed(&type)));
  }
  out.refused = "location not supported: its type is unknown";
  return out;
}

// The number of words of a Go type, as in go_words().
std::optional<std::size_t> go_words_of(Dwarf_Die type, int depth) {
  const int tag = dwarf_tag(&type);
  if (depth > kDeepestMember) return std::nullopt;
  if (is_pointer(tag) || tag == DW_TAG_subroutine_type) return 1;
  if (tag == DW_TAG_base_type) return number(&type, DW_AT_encoding) == DW_ATE_float || size_of(&type) > 8 ? 0 : 1;
  if (!is_structure(tag)) return std::nullopt;
  std::size_t words = 0;
  for (Member& member : members_of(&type)) {
    auto inner = type_of(&member.die);
    const auto more = inner ? go_words_of(*inner, depth + 1) : std::nullopt;
    if (!more) return std::nullopt;
    words += *more;
  }
  return words;
}

// How to distinguish the variants of a Rust enum by a number. `reading` contains the names of the variants.
struct Variants {
  Reading reading;
  std::uint64_t offset = 0, size = 0;  // of that number in the enum
};

std::optional<Variants> variants_of(Dwarf_Die* type) {
  Dwarf_Die part, teller, variant;
  if (dwarf_child(type, &part) != 0) return std::nullopt;
  while (dwarf_tag(&part) != DW_TAG_variant_part)
    if (dwarf_siblingof(&part, &part) != 0) return std::nullopt;
  Dwarf_Attribute attribute;
  if (dwarf_attr(&part, DW_AT_discr, &attribute) == nullptr || dwarf_formref_die(&attribute, &teller) == nullptr ||
      dwarf_child(&part, &variant) != 0)
    return std::nullopt;
  auto telling = type_of(&teller);
  if (!telling) return std::nullopt;
  Variants out{
      .reading = {}, .offset = number(&teller, DW_AT_data_member_location).value_or(0), .size = size_of(&*telling)};
  if (out.size != 1 && out.size != 2 && out.size != 4 && out.size != 8) return std::nullopt;
  auto names = std::make_shared<std::map<std::int64_t, std::string>>();
  do {
    Dwarf_Die member;
    if (dwarf_tag(&variant) != DW_TAG_variant || dwarf_child(&variant, &member) != 0) continue;
    const std::string name = name_of_die(&member);
    Dwarf_Word bits = 0;
    if (dwarf_attr(&variant, DW_AT_discr_value, &attribute) == nullptr) out.reading.form.otherwise = name;
    else if (dwarf_formudata(&attribute, &bits) == 0) names->emplace(static_cast<std::int64_t>(bits), name);
  } while (names->size() < kMostNames && dwarf_siblingof(&variant, &variant) == 0);
  out.reading.form.kind = Form::Kind::enumeration;
  out.reading.form.names = std::move(names);
  return out;
}

}  // namespace

std::optional<Dwarf_Die> type_of(Dwarf_Die* die) {
  auto type = referred(die, DW_AT_type);
  for (int i = 0; type && i < kMostQualifiers; ++i) {
    switch (dwarf_tag(&*type)) {
      case DW_TAG_typedef:
      case DW_TAG_const_type:
      case DW_TAG_volatile_type:
      case DW_TAG_restrict_type:
      case DW_TAG_atomic_type:
      case DW_TAG_immutable_type: type = referred(&*type, DW_AT_type); continue;
      default: return type;
    }
  }
  return std::nullopt;
}

std::uint64_t size_of(Dwarf_Die* type) { return number(type, DW_AT_byte_size).value_or(0); }

std::string type_name(Dwarf_Die* die) {
  std::string behind;
  auto type = referred(die, DW_AT_type);
  std::string front;
  for (int i = 0; i < kMostQualifiers; ++i) {
    if (!type) return front + "void" + behind;
    switch (dwarf_tag(&*type)) {
      case DW_TAG_const_type: front = "const "; break;
      case DW_TAG_pointer_type: behind = "*" + behind; break;
      case DW_TAG_reference_type: behind = "&" + behind; break;
      case DW_TAG_rvalue_reference_type: behind = "&&" + behind; break;
      case DW_TAG_volatile_type:
      case DW_TAG_restrict_type:
      case DW_TAG_atomic_type: break;
      case DW_TAG_array_type: behind = "[]" + behind; break;
      default: {
        const std::string name = name_of_die(&*type);
        return front + (name.empty() ? "(no name)" : name) + behind;
      }
    }
    type = referred(&*type, DW_AT_type);
  }
  return {};
}

std::vector<std::string> simple_members(Dwarf_Die* typed) {
  constexpr std::size_t kMostSimple = 4;
  const auto simple = [](Dwarf_Die* type) {
    const int tag = dwarf_tag(type);
    return tag == DW_TAG_base_type || tag == DW_TAG_enumeration_type || tag == DW_TAG_pointer_type ||
           (is_structure(tag) && as_text(type).has_value());
  };
  auto type = type_of(typed);
  std::vector<std::string> out;
  if (!type) return out;
  const bool pointer = is_pointer(dwarf_tag(&*type));
  auto target = pointer ? type_of(&*type) : type;
  if (!is_reference(dwarf_tag(&*type)) && simple(&*type)) out.emplace_back();
  else if (target && simple(&*target)) out.emplace_back();
  if (!target || !is_structure(dwarf_tag(&*target)) || as_text(&*target)) return out;
  for (Member& member : members_of(&*target)) {
    if (out.size() > kMostSimple) break;
    auto inner = type_of(&member.die);
    if (member.base || member.bits || member.name.empty() || member.name.starts_with("_vptr") || !inner ||
        !simple(&*inner))
      continue;
    out.push_back((pointer ? "->" : ".") + member.name);
  }
  return out;
}

Stand returned_stand(Dwarf_Die* type, bool rust) {
  const int tag = dwarf_tag(type);
  if (tag == DW_TAG_base_type && number(type, DW_AT_encoding) == DW_ATE_float)
    return Stand::nowhere("location not supported: in a floating-point register");
  if (!is_structure(tag))
    return size_of(type) > 8 ? Stand::nowhere("location not supported: in two registers")
                             : Stand::in_register(kFirstResult);
  const auto convention = number(type, DW_AT_calling_convention);
  const std::uint64_t size = size_of(type);
  // Unlike C++, Rust does not return the address of the memory that it was given for the result.
  if (rust && size > 16) return Stand::nowhere("location not supported: in memory whose address is not returned");
  if (convention == DW_CC_pass_by_reference || size > 16) return Stand::at({kFirstResult, {0}});
  if (rust) return Stand::nowhere(fmt::format("location not supported: how Rust returns '{}'", name_of_die(type)));
  if (size == 0 || has_reals(type)) return Stand::nowhere("location not supported: in floating-point registers");
  if (size <= 8) return Stand::in_register(kFirstResult);
  Stand both;
  both.how = Stand::How::pieces;
  both.pieces = {{Stand::in_register(kFirstResult), 8}, {Stand::in_register(kSecondResult), size - 8}};
  return both;
}

bool is_go_error(Dwarf_Die* typed) {
  auto type = type_of(typed);
  return type && type_name(typed) == "error" && is_structure(dwarf_tag(&*type));
}

std::optional<std::size_t> go_words(Dwarf_Die* typed) {
  auto type = type_of(typed);
  return type ? go_words_of(*type, 0) : std::nullopt;
}

std::optional<Reading> returned_variant(Dwarf_Die* function) {
  auto type = type_of(function);
  if (!type || dwarf_tag(&*type) != DW_TAG_structure_type) return std::nullopt;
  std::optional<Variants> variants = variants_of(&*type);
  if (!variants) return std::nullopt;
  Reading out = std::move(variants->reading);
  out.form.type = type_name(function);
  Stand stand = returned_stand(&*type, true);
  // Rust returns a value of at most 16 bytes in two registers: either as two scalars or as its bytes in memory order. A
  // number at offset 0 or 8 is in the same register in both cases. At other offsets, its register is not known.
  if (const std::uint64_t size = size_of(&*type); size > 0 && size <= 16) {
    stand = Stand{.how = Stand::How::pieces, .chain = {}, .pieces = {}, .refused = {}};
    stand.pieces.push_back({Stand::in_register(kFirstResult), std::min<std::uint64_t>(size, 8)});
    if (size > 8) stand.pieces.push_back({Stand::in_register(kSecondResult), size - 8});
    if (variants->offset != 0 && variants->offset != 8)
      stand = Stand::nowhere(fmt::format("location not supported: how Rust returns '{}'", name_of_die(&*type)));
  }
  put_bits(part_of(stand, variants->offset, variants->size), variants->size, out);
  return out;
}

Result<Reading> read_down(Dwarf_Die* typed, Stand stand, const std::vector<std::string>& members, bool contents,
                          const std::string& name) {
  auto type = type_of(typed);
  std::string so_far = name;
  if (!type) return fail(ErrorKind::input, fmt::format("the type of '{}' is unknown", name));
  std::string type_text = type_name(typed);
  for (const std::string& wanted : members) {
    // Follow at most two levels, as in a reference to a pointer.
    for (int i = 0; i < 2 && type && is_pointer(dwarf_tag(&*type)); ++i) {
      stand = pointed_to(stand);
      type = type_of(&*type);
    }
    if (!type || !is_structure(dwarf_tag(&*type)))
      return fail(ErrorKind::input, fmt::format("'{}' has no members: it is not a structure", so_far));
    auto found = find_member(&*type, wanted);
    if (!found)
      return fail(ErrorKind::input, fmt::format("'{}' has no member '{}'", so_far, wanted),
                  fmt::format("its members: {}", listed(&*type)));
    if (found->bits)
      return fail(ErrorKind::input,
                  fmt::format("'{}' of '{}' is a bit field, which cannot be recorded", wanted, so_far));
    so_far += "." + wanted;
    type_text = type_name(&found->die);
    type = type_of(&found->die);
    if (!type) return fail(ErrorKind::input, fmt::format("the type of '{}' is unknown", so_far));
    stand = part_of(stand, found->offset, is_pointer(dwarf_tag(&*type)) ? 8 : size_of(&*type));
  }
  if (contents) {
    if (!is_pointer(dwarf_tag(&*type))) return fail(ErrorKind::input, fmt::format("'{}' is not a pointer", so_far));
    stand = pointed_to(stand);
    Dwarf_Die pointer = *type;
    type = type_of(&pointer);
    type_text = type_name(&pointer);
    if (!type) return fail(ErrorKind::input, fmt::format("what '{}' points to has no type", so_far));
  }
  ROSE_TRY(Reading out, read_value(*type, std::move(stand), so_far, 0));
  out.form.type = type_text;
  return out;
}

}  // namespace rose::symbols
