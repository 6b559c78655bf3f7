#include "symbols/names.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <memory>

#include "base/ascii.h"
#include "base/text.h"
#include "symbols/symbols.h"

namespace rose::symbols {
namespace {

constexpr std::size_t kMostManglingBytes = 4096;
// A mangled name of a few hundred bytes may expand to terabytes, because every substitution ("S1_", "T_") may double
// the text. Names with more substitutions than this stay mangled. In real libraries (LLVM, clang), this concerns 3 of
// 10,000 names.
constexpr int kMostSubstitutions = 24;

constexpr std::string_view kStdString =
    "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
constexpr std::string_view kStdStringNormal =  // in the form that normalise() returns
    "std::__cxx11::basic_string<char,std::char_traits<char>,std::allocator<char>>";
constexpr std::string_view kAnonymous = "(anonymous namespace)::";  // normalise() keeps the space in this name

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'; }
bool is_digits(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

int count_substitutions(std::string_view name) {
  int count = 0;
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    if (name[i] != 'S' && name[i] != 'T') continue;
    std::size_t end = i + 1;
    while (end < name.size() && (is_digit(name[end]) || (name[end] >= 'A' && name[end] <= 'Z'))) {
      ++end;
    }
    if (end < name.size() && name[end] == '_') ++count;
  }
  return count;
}

std::string demangle_cxx(const std::string& name) {
  if (name.size() > kMostManglingBytes || count_substitutions(name) > kMostSubstitutions) return {};
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 && text ? std::string(text.get()) : std::string{};
}

// Suffixes that compilers append to the symbols of a part or a copy of a function.
struct Suffix {
  std::string_view text;
  bool outlined;
  bool numbered;  // a number always follows
};
constexpr std::array<Suffix, 8> kSuffixes = {{{".cold", true, false},
                                              {".part.", true, true},
                                              {".constprop.", false, true},
                                              {".isra.", false, true},
                                              {".lto_priv.", false, true},
                                              {".llvm.", false, true},
                                              {".clone.", false, true},
                                              {".localalias", false, false}}};

// Removes one known suffix from the end of `symbol`. Returns nullptr if there is none.
const Suffix* strip_suffix(std::string_view& symbol) {
  for (const Suffix& suffix : kSuffixes) {
    const std::size_t at = symbol.rfind(suffix.text);
    if (at == std::string_view::npos || at == 0) continue;
    std::string_view rest = symbol.substr(at + suffix.text.size());
    if (suffix.numbered ? !is_digits(rest) : !rest.empty() && !(rest[0] == '.' && is_digits(rest.substr(1)))) {
      continue;
    }
    symbol = symbol.substr(0, at);
    return &suffix;
  }
  return nullptr;
}

// Removes suffixes such as " [clone .cold]" from a demangled name.
void strip_clones(std::string_view& name) {
  while (name.ends_with(']')) {
    const std::size_t at = name.rfind(" [clone ");
    if (at == std::string_view::npos || name.find(']', at) != name.size() - 1) return;
    name = name.substr(0, at);
  }
}

void strip_abi_tags(std::string_view& name) {
  while (name.ends_with(']')) {
    const std::size_t at = name.rfind("[abi:");
    if (at == std::string_view::npos) return;
    name = name.substr(0, at);
  }
}

// Returns the position in `name` at which the parameter list at its end begins, or the size of `name` if there is no
// such list, as in Go's "main.(*Server).Apply" and in "Foo::operator()".
std::size_t parameters_begin(std::string_view name) {
  std::string_view text = name;
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view qualifier : {" const", " volatile", " &&", " &", "&&", "&", " noexcept"}) {
      if (text.ends_with(qualifier)) {
        text.remove_suffix(qualifier.size());
        again = true;
      }
    }
  }
  if (!text.ends_with(')')) return name.size();
  int depth = 0;
  for (std::size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')') ++depth;
    if (text[i] == '(' && --depth == 0) {
      if (i == 0) return name.size();
      const std::string_view before = text.substr(0, i);
      if (before.ends_with("operator") && text.substr(i) == "()" &&
          (before.size() == 8 || !is_word(before[before.size() - 9]))) {
        return name.size();
      }
      // In Go, "pkg.(*T)" alone would be a type, so the text cannot be a function with parameters.
      return before.ends_with('.') ? name.size() : i;
    }
  }
  return name.size();
}

// The position after the return type of a template. `name` contains no parameters.
std::size_t name_begin(std::string_view name) {
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (depth == 0 && c == 'o' && name.substr(i).starts_with("operator") && (i == 0 || !is_word(name[i - 1])) &&
        (i + 8 == name.size() || !is_word(name[i + 8]))) {
      return begin;  // "operator<", "operator new", "operator bool": all text before it is the return type
    }
    if (c == '(' || c == '<' || c == '[' || c == '{') ++depth;
    if ((c == '>' && (i == 0 || name[i - 1] != '-')) || c == ')' || c == ']' || c == '}') --depth;
    if (c == ' ' && depth == 0) begin = i + 1;
  }
  return depth == 0 ? begin : 0;
}

// Calls `each` for the suffixes that are also names of a Go function: those that begin at a component of the path, and
// the name without the package. For "go.etcd.io/etcd/raft.(*raft).becomeLeader", these are
// "etcd/raft.(*raft).becomeLeader", "raft.(*raft).becomeLeader" and "(*raft).becomeLeader". Separators in type
// arguments do not count.
template <typename Each>
void each_go_tail(std::string_view name, const Each& each) {
  const std::string_view path = name.substr(0, name.find_first_of("[("));
  const std::size_t slash = path.rfind('/');
  for (std::size_t at = path.find('/'); at != std::string_view::npos; at = path.find('/', at + 1)) {
    if (at + 1 < name.size()) each(name.substr(at + 1));
  }
  const std::size_t dot = path.find('.', slash == std::string_view::npos ? 0 : slash);
  if (dot != std::string_view::npos && dot + 1 < name.size()) each(name.substr(dot + 1));
}

std::string without_anonymous(std::string text) { return replaced(std::move(text), kAnonymous, ""); }

bool names_outlined(std::string_view pattern) {
  return pattern.find(".cold") != std::string_view::npos || pattern.find(".part.") != std::string_view::npos ||
         pattern.find("[clone") != std::string_view::npos;
}

}  // namespace

std::string normalise(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ' ') {
      out += text[i];
      continue;
    }
    while (i + 1 < text.size() && text[i + 1] == ' ') ++i;
    // A space has a meaning only between two words: "unsigned long", "operator new".
    if (!out.empty() && is_word(out.back()) && i + 1 < text.size() && is_word(text[i + 1])) out += ' ';
  }
  out = replaced(std::move(out), kStdStringNormal, "std::string");
  return out;
}

Spelling spell(std::string_view name, std::string_view linkage_name) {
  Spelling spelling;
  std::string_view symbol = linkage_name.empty() ? name : linkage_name;
  while (const Suffix* suffix = strip_suffix(symbol)) spelling.outlined |= suffix->outlined;
  spelling.thunk = name.find("thunk to ") != std::string_view::npos &&
                   (name.starts_with("non-virtual ") || name.starts_with("virtual ") || name.starts_with("covariant "));

  std::string_view text = name;
  strip_clones(text);
  while (strip_suffix(text) != nullptr) {
  }
  const std::size_t parameters = parameters_begin(text);
  std::string_view bare = text.substr(0, parameters);
  const std::size_t begin = spelling.thunk ? 0 : name_begin(bare);
  spelling.full = normalise(text.substr(begin));
  bare = bare.substr(begin);
  strip_abi_tags(bare);
  spelling.bare = normalise(bare);
  // If the name is not mangled and contains a dot, it is a Go name, unless the dot precedes the number of a local
  // symbol ("inner.0").
  if (name == linkage_name && spelling.bare.find("::") == std::string::npos) {
    const std::size_t dot = spelling.bare.find('.');
    spelling.go =
        dot != std::string::npos && dot > 0 && dot + 1 < spelling.bare.size() && !is_digit(spelling.bare[dot + 1]);
  }
  return spelling;
}

bool spelling_matches(std::string_view pattern, std::string_view name, std::string_view linkage_name,
                      const Spelling& spelling) {
  if (pattern.empty()) return false;
  if (pattern == name || pattern == linkage_name) return true;
  if (spelling.outlined) {
    return names_outlined(pattern) && (glob_match(pattern, name) || glob_match(pattern, linkage_name));
  }
  if (spelling.thunk && pattern.find("thunk") == std::string_view::npos) return false;
  if (pattern.starts_with("_Z") || pattern.starts_with("_R")) return glob_match(pattern, linkage_name);
  if (names_outlined(pattern)) return glob_match(pattern, name);

  const auto matches = [&](std::string_view wanted) {
    if (glob_match(wanted, spelling.bare) || glob_match(wanted, spelling.full)) return true;
    if (spelling.go) {
      bool any = false;
      each_go_tail(spelling.bare, [&](std::string_view tail) { any = any || glob_match(wanted, tail); });
      return any;
    }
    if (spelling.full.find(kAnonymous) == std::string::npos) return false;
    // Users may omit the anonymous namespace and write only "flush".
    return glob_match(wanted, without_anonymous(spelling.bare)) || glob_match(wanted, without_anonymous(spelling.full));
  };
  std::string wanted = normalise(pattern);
  if (matches(wanted)) return true;
  if (!has_rust_hash(wanted)) return false;
  // If the pattern contains a hash, it must be the hash of this function.
  const std::string_view hash = std::string_view(wanted).substr(wanted.size() - 17);
  if (linkage_name.find(std::string("17").append(hash)) == std::string_view::npos) return false;
  wanted.resize(wanted.size() - 19);
  return matches(wanted);
}

void for_each_spelling(std::string_view name, std::string_view linkage_name, const Spelling& spelling,
                       const std::function<void(std::string_view)>& each) {
  each(name);
  if (linkage_name != name) each(linkage_name);
  if (spelling.bare != name) each(spelling.bare);
  if (spelling.full != name && spelling.full != spelling.bare) each(spelling.full);
  if (spelling.go) each_go_tail(spelling.bare, each);
  if (spelling.full.find(kAnonymous) == std::string::npos) return;
  each(without_anonymous(spelling.bare));
  each(without_anonymous(spelling.full));
}

void for_each_lookup(std::string_view pattern, const std::function<void(std::string_view)>& each) {
  each(pattern);
  const std::string wanted = normalise(pattern);
  each(wanted);
  if (has_rust_hash(wanted)) each(std::string_view(wanted).substr(0, wanted.size() - 19));
}

bool has_rust_hash(std::string_view name) {
  if (name.size() < 20) return false;
  const std::string_view tail = name.substr(name.size() - 19);
  return tail.starts_with("::h") &&
         std::all_of(tail.begin() + 3, tail.end(), [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

std::string clean_rust_legacy(std::string_view demangled) {
  if (!has_rust_hash(demangled)) return {};
  demangled.remove_suffix(19);
  struct Escape {
    std::string_view code;
    std::string_view text;
  };
  constexpr std::array<Escape, 9> kEscapes = {{{"$SP$", "@"},
                                               {"$BP$", "*"},
                                               {"$RF$", "&"},
                                               {"$LT$", "<"},
                                               {"$GT$", ">"},
                                               {"$LP$", "("},
                                               {"$RP$", ")"},
                                               {"$C$", ","},
                                               {"$u7e$", "~"}}};
  std::string out;
  bool component_start = true;
  for (std::size_t i = 0; i < demangled.size();) {
    const std::string_view rest = demangled.substr(i);
    if (component_start && rest.starts_with("_$")) {
      ++i;  // before a component that begins with an escape, rustc puts '_', which is not part of the name
      component_start = false;
      continue;
    }
    component_start = false;
    if (rest.starts_with("::")) {
      out += "::";
      i += 2;
      component_start = true;
      continue;
    }
    if (rest.starts_with("..")) {
      out += "::";
      i += 2;
      continue;
    }
    if (rest[0] == '$') {
      bool known = false;
      for (const Escape& escape : kEscapes) {
        if (!rest.starts_with(escape.code)) continue;
        out += escape.text;
        i += escape.code.size();
        known = true;
        break;
      }
      if (known) continue;
      // "$u20$" stands for the ASCII character with this hexadecimal code.
      if (rest.size() >= 5 && rest[1] == 'u' && rest[4] == '$') {
        const std::string hex(rest.substr(2, 2));
        char* end = nullptr;
        const long code = std::strtol(hex.c_str(), &end, 16);
        if (end == hex.c_str() + 2 && code >= 0x20 && code < 0x7f) {
          out += static_cast<char>(code);
          i += 5;
          continue;
        }
      }
    }
    out += rest[0];
    ++i;
  }
  return out;
}

std::string demangle(std::string_view linkage_name) {
  // In "open@@GLIBC_2.2.5", the version is not part of the name. An '@' at the beginning, however, is part of it.
  if (const std::size_t at = linkage_name.find('@'); at != std::string_view::npos && at > 0) {
    linkage_name = linkage_name.substr(0, at);
  }
  std::string_view symbol = linkage_name;
  if (symbol.starts_with("_R")) {
    while (strip_suffix(symbol) != nullptr) {
    }
    std::string name = demangle_rust_v0(symbol);
    if (name.empty()) return std::string(linkage_name);
    if (symbol.size() < linkage_name.size()) {
      name += " [clone ";
      name += linkage_name.substr(symbol.size());
      name += ']';
    }
    return name;
  }
  if (!symbol.starts_with("_Z")) return std::string(linkage_name);
  // Link-time optimisation renames local functions. The number that it appends has no meaning for users.
  for (const std::string_view noise : {".llvm.", ".lto_priv."}) {
    const std::size_t at = symbol.rfind(noise);
    if (at != std::string_view::npos && is_digits(symbol.substr(at + noise.size()))) symbol = symbol.substr(0, at);
  }
  std::string name = demangle_cxx(std::string(symbol));
  if (name.empty()) return std::string(linkage_name);
  if (std::string rust = clean_rust_legacy(name); !rust.empty()) return rust;
  name = replaced(std::move(name), kStdString, "std::string");
  return name;
}

}  // namespace rose::symbols
