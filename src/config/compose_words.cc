#include "config/compose_words.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/text.h"

namespace rose::compose {
namespace {

constexpr std::size_t kMostOfOne = 1000;
constexpr int kMostNesting = 8;  // "${A:-${B:-...}}"

bool name_letter(char c) { return is_alpha(c) || is_digit(c) || c == '_'; }

std::string interpolate(std::string_view text, const Lookup& lookup, std::vector<std::string>& unresolved, int depth) {
  std::string out;
  while (!text.empty()) {
    const std::size_t dollar = std::min(text.find('$'), text.size());
    out += text.substr(0, dollar);
    text.remove_prefix(dollar);
    if (text.size() < 2) return out + std::string(text);
    if (text[1] == '$') {
      out += '$';
      text.remove_prefix(2);
      continue;
    }
    const bool braces = text[1] == '{';
    std::size_t end = braces ? 2 : 1;
    while (end < text.size() && name_letter(text[end])) ++end;
    const std::string name(text.substr(braces ? 2 : 1, end - (braces ? 2 : 1)));
    if (name.empty() || depth > kMostNesting) {
      out += text.substr(0, 2);
      text.remove_prefix(2);
      continue;
    }
    std::string_view rest;
    if (braces) {
      // Finds the matching brace; defaults may contain variables themselves.
      int open = 1;
      std::size_t close = end;
      for (; close < text.size(); ++close) {
        if (text.substr(close, 2) == "${") ++open;
        if (text[close] == '}' && --open == 0) break;
      }
      if (close == text.size()) return out + std::string(text);
      rest = text.substr(end, close - end);
      end = close + 1;
    }
    const std::optional<std::string> value = lookup(name);
    const bool empty_counts = rest.starts_with(':');
    const std::string_view form = empty_counts ? rest.substr(1) : rest;
    const bool has = value && !(empty_counts && value->empty());
    if (form.starts_with('-')) out += has ? *value : interpolate(form.substr(1), lookup, unresolved, depth + 1);
    else if (form.starts_with('+')) out += has ? interpolate(form.substr(1), lookup, unresolved, depth + 1) : "";
    else if (has) out += *value;
    else if (!value && std::find(unresolved.begin(), unresolved.end(), name) == unresolved.end() &&
             unresolved.size() < kMostOfOne)
      unresolved.push_back(name);
    text.remove_prefix(end);
  }
  return out;
}

}  // namespace

std::string interpolated(std::string_view text, const Lookup& lookup, std::vector<std::string>& unresolved) {
  return interpolate(text, lookup, unresolved, 0);
}

// Compose splits "a b c" into words with a shell's quoting rules.
std::vector<std::string> shell_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
      else if (c == '\\' && quote == '"' && i + 1 < text.size()) word += text[++i];
      else word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      inside = true;
    } else if (c == '\\' && i + 1 < text.size()) {
      word += text[++i];
      inside = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (inside) words.push_back(std::move(word));
      word.clear();
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (inside) words.push_back(std::move(word));
  return words;
}

Variables read_dot_env(std::string_view text) {
  Variables variables;
  for (const std::string& each : split(text, '\n')) {
    std::string_view line = each;
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    if (line.starts_with("export ")) line.remove_prefix(7);
    const std::size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos || equals == 0 || variables.size() >= kMostOfOne)
      continue;
    std::string value(line.substr(equals + 1));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front())
      value = value.substr(1, value.size() - 2);
    variables.emplace_back(line.substr(0, equals), std::move(value));
  }
  return variables;
}

}  // namespace rose::compose
