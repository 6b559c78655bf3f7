// Replaces the parts of a path or an address that differ between runs. In case of doubt, words are kept: a pattern that
// is too general would match a real failure and make it look benign.
#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/ascii.h"
#include "base/ports.h"
#include "profile/profile.h"

namespace rose::profile {
namespace {

bool is_alnum(char c) { return is_digit(c) || is_alpha(c); }
bool is_hex(char c) { return hex_digit(c) >= 0; }
bool all(std::string_view text, bool (*is)(char)) { return std::all_of(text.begin(), text.end(), is); }
bool any(std::string_view text, bool (*is)(char)) { return std::any_of(text.begin(), text.end(), is); }

constexpr std::size_t kUuidBytes = 36;
bool starts_with_uuid(std::string_view text) {
  if (text.size() < kUuidBytes) return false;
  for (std::size_t i = 0; i < kUuidBytes; ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !is_hex(text[i])) return false;
  }
  return text.size() == kUuidBytes || !is_alnum(text[kUuidBytes]);
}

// Detects random letters as in mkstemp's names ("aBxYzQ"), as opposed to the capitalisation of words ("LogDir",
// "README").
bool random_case(std::string_view letters) {
  if (!any(letters, is_upper) || !any(letters, is_lower)) return false;
  // Words in CamelCase have at least two letters or are a run of capitals.
  for (std::size_t i = 0; i < letters.size();) {
    std::size_t end = i + 1;
    if (is_upper(letters[i])) {
      while (end < letters.size() && is_upper(letters[end])) ++end;
    }
    while (end < letters.size() && is_lower(letters[end])) ++end;
    if (end - i < 2) return true;
    i = end;
  }
  return false;
}

// Appends the pattern of a token, that is, of consecutive letters and digits. `first`: the token starts its path
// component. `temporary`: "tmp" precedes the token.
void append_token(std::string_view token, bool first, bool temporary, std::string& out) {
  if (!any(token, is_digit)) {
    const bool hex = token.size() >= 8 && all(token, is_hex);
    const bool random = !first && token.size() >= 6 && random_case(token);
    const bool made = temporary && (token.size() == 6 || token.size() == 10) && any(token, is_upper);
    if (hex || random || made) {
      out += '*';
    } else {
      out += token;
    }
    return;
  }
  if (all(token, is_digit) || (token.size() >= 6 && all(token, is_hex)) ||
      (temporary && (token.size() == 6 || token.size() == 10))) {
    out += '*';
    return;
  }
  // Alternating letters and digits: keep the letters if they look like words.
  std::string kept;
  bool words = true;
  int runs = 0;
  for (std::size_t i = 0; i < token.size(); ++runs) {
    std::size_t end = i;
    if (is_digit(token[i])) {
      while (end < token.size() && is_digit(token[end])) ++end;
      kept += '*';
    } else {
      while (end < token.size() && is_alpha(token[end])) ++end;
      const std::string_view letters = token.substr(i, end - i);
      // "n1" at the beginning names a node, whereas the "x1" in "rose-x1" is generated.
      const bool short_word = letters.size() < 3 && !(first && i == 0);
      if (short_word || random_case(letters)) words = false;
      kept += letters;
    }
    i = end;
  }
  if (runs > 2 && first && token.size() >= 3 && is_alpha(token[0]) && is_digit(token[1])) words = false;  // "a1b2c3"
  out += words ? kept : "*";
}

void append_component(std::string_view component, std::string& out) {
  // Names of Python's tempfile module: "tmp" and 8 characters of [a-z0-9_].
  if (component.size() == 11 && component.starts_with("tmp") &&
      std::all_of(component.begin() + 3, component.end(),
                  [](char c) { return is_lower(c) || is_digit(c) || c == '_'; }) &&
      std::any_of(component.begin() + 3, component.end(), is_digit)) {
    out += "tmp*";
    return;
  }
  std::string_view before;
  for (std::size_t i = 0; i < component.size();) {
    if (!is_alnum(component[i])) {
      if (component[i] == '*' && out.ends_with('*')) {
        ++i;
        continue;
      }
      out += component[i++];
      continue;
    }
    if (starts_with_uuid(component.substr(i)) && (i == 0 || !is_alnum(component[i - 1]))) {
      out += '*';
      i += kUuidBytes;
      before = {};
      continue;
    }
    std::size_t end = i;
    while (end < component.size() && is_alnum(component[end])) ++end;
    const std::string_view token = component.substr(i, end - i);
    const bool temporary = before == "tmp" || before == "temp" || before == "TMP";
    append_token(token, before.empty() && (i == 0 || component[i - 1] == '.'), temporary, out);
    before = token;
    i = end;
  }
}

}  // namespace

std::string path_pattern(std::string_view path) {
  std::string out;
  out.reserve(path.size());
  std::size_t start = 0;
  for (;;) {
    const std::size_t end = path.find('/', start);
    append_component(path.substr(start, end - start), out);
    if (end == std::string_view::npos) return out;
    out += '/';
    start = end + 1;
  }
}

std::string tail_pattern(std::string_view path, int parts) {
  const std::string pattern = path_pattern(path);
  bool letters = false;
  for (std::size_t at = pattern.size(); at-- > 0;) {
    letters = letters || is_alpha(pattern[at]);
    if (pattern[at] == '/' && --parts <= 0 && letters) return at == 0 ? pattern : "*" + pattern.substr(at);
  }
  return pattern;
}

std::string peer_pattern(std::string_view peer) {
  if (peer.starts_with("unix:")) return "unix:" + path_pattern(peer.substr(5));
  const std::size_t colon = peer.rfind(':');
  if (colon == std::string_view::npos) return std::string(peer);
  const std::string_view port = peer.substr(colon + 1);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc{} || end != port.data() + port.size() || number < kFirstClientPort) return std::string(peer);
  return std::string(peer.substr(0, colon)) + ":*";
}

}  // namespace rose::profile
