#include "jvm/names.h"

#include "base/glob.h"
#include "base/jdk.h"

namespace rose::jvm {
namespace {

// True if `end` is the whole text, or the end of the text after one of its dots.
bool ends_at_segment(std::string_view text, std::string_view end) {
  return text.ends_with(end) && (text.size() == end.size() || text[text.size() - end.size() - 1] == '.');
}

// Replaces '$' and '/' by '.', because '$' separates inner classes as '.' separates packages. A '$' at the end, which
// marks a Scala object, is removed.
std::string plain(std::string_view name) {
  while (name.size() > 1 && name.back() == '$') name.remove_suffix(1);
  std::string out;
  out.reserve(name.size());
  for (const char c : name) {
    const char plain_c = c == '$' || c == '/' ? '.' : c;
    // Foo$.m and Foo$$anonfun become Foo.m and Foo.anonfun.
    if (plain_c == '.' && !out.empty() && out.back() == '.') continue;
    out.push_back(plain_c);
  }
  return out;
}

std::string_view last_segment(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '-' || static_cast<unsigned char>(c) >= 0x80;
}

// Removes one type from the front of a descriptor and returns it: "byte[]", "java.util.List". Returns "" if there is
// none.
std::string take_type(std::string_view& descriptor) {
  std::size_t arrays = 0;
  while (arrays < descriptor.size() && descriptor[arrays] == '[') ++arrays;
  if (arrays == descriptor.size()) return {};
  std::string name;
  std::size_t taken = arrays + 1;
  switch (descriptor[arrays]) {
    case 'B': name = "byte"; break;
    case 'C': name = "char"; break;
    case 'D': name = "double"; break;
    case 'F': name = "float"; break;
    case 'I': name = "int"; break;
    case 'J': name = "long"; break;
    case 'S': name = "short"; break;
    case 'Z': name = "boolean"; break;
    case 'L': {
      const auto end = descriptor.find(';', arrays);
      if (end == std::string_view::npos) return {};
      name = class_of_signature(descriptor.substr(arrays, end + 1 - arrays));
      taken = end + 1;
      break;
    }
    default: return {};
  }
  descriptor.remove_prefix(taken);
  for (std::size_t i = 0; i < arrays; ++i) name += "[]";
  return name;
}

bool take_parameters(std::string_view descriptor, std::vector<std::string>& into) {
  if (descriptor.empty() || descriptor.front() != '(') return false;
  descriptor.remove_prefix(1);
  while (!descriptor.empty() && descriptor.front() != ')') {
    into.push_back(take_type(descriptor));
    if (into.back().empty()) return false;
  }
  return !descriptor.empty();
}

// The type of a parameter that the user wrote as `text`, without type arguments and without the parameter's name:
// "List" for "List<String> names", "byte[]" for "byte...".
std::string written_type(std::string_view text) {
  std::string out;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<') ++depth;
    if (depth == 0 && c == '.' && text.substr(i) == "...") {
      out += "[]";
      break;
    }
    if (depth == 0 && c != ' ') out.push_back(c == '$' ? '.' : c);
    // The parameter's name follows its type.
    if (depth == 0 && c == ' ' && !out.empty()) break;
    if (c == '>') --depth;
  }
  return out;
}

}  // namespace

NamePattern::NamePattern(std::string_view text) : text_(text) {
  const auto open = text.find('(');
  if (open != std::string_view::npos) {
    has_parameters_ = true;
    std::string_view inside = text.substr(open + 1);
    const auto close = inside.rfind(')');
    if (close != std::string_view::npos) inside = inside.substr(0, close);
    text = text.substr(0, open);
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t i = 0; i <= inside.size(); ++i) {
      if (i < inside.size() && inside[i] == '<') ++depth;
      if (i < inside.size() && inside[i] == '>') --depth;
      if (i < inside.size() && (inside[i] != ',' || depth > 0)) continue;
      std::string_view one = inside.substr(begin, i - begin);
      while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
      if (!one.empty()) parameters_.push_back(written_type(one));
      begin = i + 1;
    }
  }
  // plain() also changes '$' in a method's own name (Scala's setter "x_$eq" becomes "x_.eq"). This does no harm,
  // because it changes the names that are compared with this pattern in the same way.
  name_ = plain(text);
  glob_ = name_.find_first_of("*?") != std::string::npos;
  of_jdk_ = of_jdk(name_);
}

bool NamePattern::may_be_in(std::string_view class_name) const {
  const std::string own = plain(class_name);
  if (!glob_) {
    // The simple name of the class must be one of the segments of the pattern.
    const std::string_view simple = last_segment(own);
    if (simple.empty()) return true;  // no compiler gives such a name
    for (std::size_t at = name_.find(simple); at != std::string::npos; at = name_.find(simple, at + 1)) {
      const std::size_t end = at + simple.size();
      if ((at == 0 || name_[at - 1] == '.') && (end == name_.size() || name_[end] == '.')) return true;
    }
    return false;
  }
  if (of_jdk(class_name) && !of_jdk_) return false;
  // The text before the first wildcard must match the class name, beginning at one of its segments.
  const std::string_view literal = std::string_view(name_).substr(0, name_.find_first_of("*?"));
  for (std::size_t begin = 0;;) {
    const std::string_view rest = std::string_view(own).substr(begin);
    const std::size_t common = literal.size() < rest.size() ? literal.size() : rest.size();
    if (rest.substr(0, common) == literal.substr(0, common) &&
        (literal.size() <= rest.size() || literal[rest.size()] == '.'))
      return true;
    const auto dot = own.find('.', begin);
    if (dot == std::string::npos) return false;
    begin = dot + 1;
  }
}

bool NamePattern::matches(const Method& method) const {
  if (glob_ ? of_jdk(method.class_name) && !of_jdk_ : name_.find('.') == std::string::npos) return false;
  if ((method.flags & kBridge) != 0 && !has_parameters_) return false;
  if ((method.flags & kStatic) != 0 && (method.flags & kSynthetic) == 0 && method.source.ends_with(".scala") &&
      method.name.find('$') == std::string_view::npos) {
    return false;
  }
  const std::string owner = plain(method.class_name);
  std::string full = owner;
  full += '.';
  full += plain(method.name);
  const auto named = [&](std::string_view text) {
    if (!glob_) return ends_at_segment(text, name_);
    // Begin the comparison at each segment of the class, but not at the method: "m*" means classes, not the methods of
    // every class.
    for (std::size_t begin = 0; begin < owner.size();) {
      if (glob_match(name_, text.substr(begin))) return true;
      const auto dot = text.find('.', begin);
      // With a leading wildcard, the first comparison has tried all suffixes.
      if (dot == std::string_view::npos || name_.front() == '*') return false;
      begin = dot + 1;
    }
    return false;
  };
  bool found = named(full);
  if (!found && method.name == "<init>") {
    full = owner;
    full += '.';
    full += last_segment(owner);
    found = named(full);
  }
  if (!found || !has_parameters_) return found;
  std::vector<std::string> types;
  if (!take_parameters(method.descriptor, types) || types.size() != parameters_.size()) return false;
  for (std::size_t i = 0; i < types.size(); ++i) {
    for (char& c : types[i]) c = c == '$' ? '.' : c;
    if (!ends_at_segment(types[i], parameters_[i])) return false;
  }
  return true;
}

bool is_of_class(std::string_view class_name, std::string_view wanted) {
  return ends_at_segment(plain(class_name), plain(wanted));
}

bool looks_like_java(std::string_view pattern) {
  if (const Leaving leaving = leaving_of(pattern); !leaving.exception.empty()) {
    for (const char c : leaving.exception)
      if (!is_word(c) && c != '.') return false;
    return looks_like_java(leaving.method);
  }
  const auto open = pattern.find('(');
  if (open != std::string_view::npos) {
    if (pattern.back() != ')') return false;
    pattern = pattern.substr(0, open);
  }
  if (pattern.empty() || pattern.front() == '.' || pattern.back() == '.') return false;
  std::size_t dots = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '.' && pattern[i - 1] == '.') return false;
    if (c == '.') ++dots;
    if (c == '<') {
      const std::string_view rest = pattern.substr(i);
      return (rest == "<init>" || rest == "<clinit>") && i > 0 && pattern[i - 1] == '.';
    }
    if (!is_word(c) && c != '.' && c != '*' && c != '?') return false;
  }
  return dots > 0;
}

bool is_jvm_source(std::string_view file) {
  for (const std::string_view end : {".java", ".kt", ".scala", ".groovy", ".clj"}) {
    if (file.ends_with(end)) return true;
  }
  return false;
}

std::string parameters_of(std::string_view descriptor) {
  std::vector<std::string> types;
  if (!take_parameters(descriptor, types)) return {};
  std::string out = "(";
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (i > 0) out += ',';
    const std::string& type = types[i];
    out += last_segment(type);
  }
  out += ')';
  return out;
}

std::string class_of_signature(std::string_view signature) {
  if (signature.size() < 3 || signature.front() != 'L' || signature.back() != ';') return std::string(signature);
  std::string name(signature.substr(1, signature.size() - 2));
  for (char& c : name) c = c == '/' ? '.' : c;
  return name;
}

}  // namespace rose::jvm
