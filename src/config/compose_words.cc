#include "config/compose_words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>

#include "base/ascii.h"
#include "base/text.h"

namespace rose::compose {
namespace {

constexpr std::size_t kMostOfOne = 1000;
constexpr int kMostNesting = 8;         // "${A:-${B:-...}}"
constexpr std::size_t kMostShown = 60;  // bytes of a text in a message

bool name_letter(char c) { return is_alpha(c) || is_digit(c) || c == '_'; }

bool begins_name(char c) { return is_alpha(c) || c == '_'; }

class Interpolation {
 public:
  Interpolation(const Lookup& lookup, std::vector<std::string>& unresolved)
      : lookup_(lookup), unresolved_(unresolved) {}

  // Describes the first problem; "" if there is none.
  std::string problem;

  std::string text(std::string_view text, int depth = 0) {
    std::string out;
    while (!text.empty() && problem.empty()) {
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
      if (!braces && !begins_name(text[1])) {
        out += '$';
        text.remove_prefix(1);
        continue;
      }
      std::size_t end = braces ? 2 : 1;
      if (end < text.size() && begins_name(text[end]))
        while (end < text.size() && name_letter(text[end])) ++end;
      const std::string name(text.substr(braces ? 2 : 1, end - (braces ? 2 : 1)));
      std::string_view rest;
      if (braces) {
        const std::size_t close = closing(text, end);
        if (close == std::string_view::npos) return no_variable(text);
        rest = text.substr(end, close - end);
        end = close + 1;
      }
      const bool known = rest.empty() || rest.substr(rest.starts_with(':') ? 1 : 0).find_first_of("-+?") == 0;
      if (name.empty() || !known || depth > kMostNesting) return no_variable(text.substr(0, end));
      out += value(name, rest, depth);
      text.remove_prefix(end);
    }
    return out;
  }

 private:
  // Returns the position of the brace that closes the "${" at the beginning. Defaults may contain variables themselves.
  static std::size_t closing(std::string_view text, std::size_t from) {
    int open = 1;
    for (std::size_t at = from; at < text.size(); ++at) {
      if (text.substr(at, 2) == "${") ++open;
      if (text[at] == '}' && --open == 0) return at;
    }
    return std::string_view::npos;
  }

  std::string no_variable(std::string_view text) {
    problem = fmt::format("'{}' is not a variable", printable(std::string(text.substr(0, kMostShown))));
    return {};
  }

  std::string value(const std::string& name, std::string_view rest, int depth) {
    const std::optional<std::string> value = lookup_(name);
    const bool empty_counts = rest.starts_with(':');
    const std::string_view form = empty_counts ? rest.substr(1) : rest;
    const bool has = value && !(empty_counts && value->empty());
    if (form.starts_with('-')) return has ? *value : text(form.substr(1), depth + 1);
    if (form.starts_with('+')) return has ? text(form.substr(1), depth + 1) : "";
    if (has) return *value;
    if (form.starts_with('?')) {
      problem = fmt::format("the required variable {} is {}", name, value ? "empty" : "not set");
      const std::string reason = text_of_reason(form.substr(1), depth);
      if (!reason.empty()) problem += ": " + reason;
    } else if (!value && std::find(unresolved_.begin(), unresolved_.end(), name) == unresolved_.end() &&
               unresolved_.size() < kMostOfOne) {
      unresolved_.push_back(name);
    }
    return {};
  }

  [[nodiscard]] std::string text_of_reason(std::string_view reason, int depth) const {
    std::vector<std::string> without;
    return printable(Interpolation(lookup_, without).text(reason, depth + 1));
  }

  const Lookup& lookup_;
  std::vector<std::string>& unresolved_;
};

}  // namespace

Expected<std::string, std::string> interpolated(std::string_view text, const Lookup& lookup,
                                                std::vector<std::string>& unresolved) {
  Interpolation interpolation(lookup, unresolved);
  std::string out = interpolation.text(text);
  if (!interpolation.problem.empty()) return UnexpectedOf(std::move(interpolation.problem));
  return out;
}

namespace {

// An integer in Go's syntax: decimal, or with the prefix 0x, 0o, 0b or 0. Returns nothing if the text is not an integer
// or exceeds 64 bits.
std::optional<std::string> integer_of(std::string_view text) {
  const bool minus = text.starts_with('-');
  if (minus || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char form = lower_case(text[1]);
    if (!is_digit(form) && form != 'x' && form != 'o' && form != 'b') return std::nullopt;
    base = form == 'x' ? 16 : form == 'b' ? 2 : 8;
    text.remove_prefix(is_digit(form) ? 1 : 2);
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (minus && (number == 0 || number > std::uint64_t{1} << 63)) return std::nullopt;
  return fmt::format("{}{}", minus ? "-" : "", number);
}

// Converts a real number to the text that Go prints: the shortest form, in scientific notation if the exponent is below
// -4 or at least 6. Returns nothing if the text is not a real number.
std::optional<std::string> real_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.find_first_not_of("0123456789.eE+-") != std::string_view::npos || digits.starts_with('-'))
    return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  std::array<char, 400> buffer;
  const auto print = [&](std::chars_format format) {
    return std::string(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, format).ptr);
  };
  const std::string with_exponent = print(std::chars_format::scientific);
  const int exponent = std::atoi(with_exponent.c_str() + with_exponent.find('e') + 1);
  return exponent < -4 || exponent >= 6 ? with_exponent : print(std::chars_format::fixed);
}

std::optional<std::string> day_of(std::string_view text) {
  const std::vector<std::string> parts = split(text, '-');
  std::array<int, 3> numbers{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts.size() != 3 || parts[i].empty() || !std::all_of(parts[i].begin(), parts[i].end(), is_digit) ||
        (i == 0 ? parts[i].size() != 4 : parts[i].size() > 2))
      return std::nullopt;
    numbers[i] = std::atoi(parts[i].c_str());
  }
  const std::chrono::year_month_day day(std::chrono::year(numbers[0]),
                                        std::chrono::month(static_cast<unsigned>(numbers[1])),
                                        std::chrono::day(static_cast<unsigned>(numbers[2])));
  if (parts.size() != 3 || !day.ok()) return std::nullopt;
  return fmt::format("{:04}-{:02}-{:02} 00:00:00 +0000 UTC", numbers[0], numbers[1], numbers[2]);
}

}  // namespace

std::string plain_value(std::string_view text) {
  if (text == "True" || text == "TRUE") return "true";
  if (text == "False" || text == "FALSE") return "false";
  const char first = text.empty() ? '\0' : text.front();
  if (!is_digit(first) && first != '+' && first != '-' && first != '.') return std::string(text);
  if (auto day = day_of(text)) return *day;
  const std::string number = replaced(std::string(text), "_", "");
  if (auto integer = integer_of(number)) return *integer;
  if (auto real = real_of(number)) return *real;
  return std::string(text);
}

// Splits as go-shellwords does, which Compose uses.
std::optional<std::vector<std::string>> shell_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  bool escaped = false;
  bool backquoted = false;
  bool dollar = false;  // within "$( )"
  char quote = '\0';
  for (const char c : text) {
    if (escaped) {
      word += c;
      escaped = false;
      inside = true;
      continue;
    }
    if (c == '\\') {
      if (quote == '\'') word += c;
      else escaped = true;
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      if (quote != '\0' || backquoted || dollar) word += c;
      else if (std::exchange(inside, false)) words.push_back(std::exchange(word, {}));
      continue;
    }
    if (c == '`' && quote == '\0' && !dollar) backquoted = !backquoted;
    if (c == ')' && quote == '\0' && !backquoted) dollar = !dollar;
    if (c == '(' && quote == '\0' && !backquoted) {
      if (dollar || !word.ends_with('$')) return std::nullopt;
      dollar = true;
      word += c;
      continue;
    }
    if ((c == '"' && quote != '\'' && !dollar) || (c == '\'' && quote != '"' && !dollar)) {
      if (quote != '\0') inside = true;
      quote = quote == '\0' ? c : '\0';
      continue;
    }
    if (std::string_view(";&|<>").find(c) != std::string_view::npos && quote == '\0' && !backquoted && !dollar) {
      // In "2>file", the 2 is a descriptor and not a word.
      if (c == '>' && !word.empty() && is_digit(word.front())) inside = false;
      break;
    }
    inside = true;
    word += c;
  }
  if (escaped || quote != '\0' || backquoted || dollar) return std::nullopt;
  if (inside) words.push_back(std::move(word));
  return words;
}

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r'; }
bool is_space(char c) { return is_blank(c) || c == '\n'; }

void trim_right(std::string_view& text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
}

// Replaces the escape sequences of a value in double quotes. "\$" becomes "$$", so that it is not taken for a variable.
std::string unescaped(std::string_view text) {
  static constexpr std::string_view kLetters = "abfnrtv\"\\";
  static constexpr std::string_view kMeaning = "\a\b\f\n\r\t\v\"\\";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    if (const std::size_t at = kLetters.find(next); next != '\0' && at != std::string_view::npos) {
      out += kMeaning[at];
      ++i;
    } else if (next == '$') {
      out += "$$";
      ++i;
    } else if (std::size_t end = i + 2; next == '0') {
      int code = 0;
      while (end < text.size() && end < i + 5 && text[end] >= '0' && text[end] <= '7')
        code = code * 8 + text[end++] - '0';
      if (end == i + 5 && code < 256) {
        out += static_cast<char>(code);
        i = end - 1;
      } else {
        out += text[i];
      }
    } else {
      out += text[i];
    }
  }
  return out;
}

class VariableFile {
 public:
  VariableFile(std::string_view text, const Lookup& lookup) : text_(text), lookup_(lookup) {}

  Expected<Variables, WrongLine> read() {
    while (skip_to_statement()) {
      if (variables_.size() >= kMostOfOne) return wrong(fmt::format("more than {} variables", kMostOfOne));
      if (auto problem = statement(); !problem.empty()) return wrong(std::move(problem));
    }
    return std::move(variables_);
  }

 private:
  UnexpectedOf<WrongLine> wrong(std::string what) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(began_), '\n');
    return UnexpectedOf(WrongLine{static_cast<int>(line), std::move(what)});
  }

  bool skip_to_statement() {
    for (;;) {
      while (at_ < text_.size() && is_space(text_[at_])) ++at_;
      began_ = at_;
      if (at_ == text_.size()) return false;
      if (text_[at_] != '#') return true;
      at_ = std::min(text_.find('\n', at_), text_.size());
    }
  }

  std::string statement() {
    if (text_.substr(at_).starts_with("export") && at_ + 6 < text_.size() && is_space(text_[at_ + 6])) {
      at_ += 6;
      while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    }
    const std::size_t begin = at_;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '=' || c == ':' || c == '\n') break;
      const bool letter = is_alpha(c) || is_digit(c) || static_cast<unsigned char>(c) >= 0x80;
      if (!letter && !is_blank(c) && std::string_view("_.-[]").find(c) == std::string_view::npos)
        return fmt::format("'{}' in the name of a variable", printable(std::string(1, c)));
    }
    std::string_view name = text_.substr(begin, at_ - begin);
    trim_right(name);
    if (name.find(' ') != std::string_view::npos)
      return fmt::format("the name '{}' contains a space", printable(std::string(name)));
    if (at_ == text_.size() || text_[at_] == '\n') {  // a name without a value
      if (auto value = lookup_(std::string(name))) set(name, std::move(*value));
      return {};
    }
    ++at_;
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote == '"' || quote == '\'') return quoted(name, quote);
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view value = text_.substr(at_, end - at_);
    at_ = end;
    value = value.substr(0, value.find(" #"));
    trim_right(value);
    return set_expanded(name, value);
  }

  // Reads a value in quotes, which may extend over several lines.
  std::string quoted(std::string_view name, char quote) {
    std::string value;
    bool escape = false;
    for (std::size_t i = at_ + 1; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == quote && !escape) {
        at_ = i + 1;
        if (quote == '"') return set_expanded(name, unescaped(value));
        set(name, value);
        return {};
      }
      if (c == '\\' && !escape) {
        escape = true;
        continue;
      }
      if (std::exchange(escape, false) && c != quote) value += '\\';
      value += c;
    }
    return fmt::format("the quoted value of '{}' has no end", printable(std::string(name)));
  }

  std::string set_expanded(std::string_view variable, std::string_view value) {
    std::vector<std::string> without;
    auto text = interpolated(
        value,
        [this](const std::string& name) -> std::optional<std::string> {
          if (auto known = lookup_(name)) return known;
          for (auto at = variables_.rbegin(); at != variables_.rend(); ++at)
            if (at->first == name) return at->second;
          return std::nullopt;
        },
        without);
    if (!text) return std::move(text).error();
    set(variable, std::move(*text));
    return {};
  }

  void set(std::string_view name, std::string value) { variables_.emplace_back(name, std::move(value)); }

  const std::string_view text_;
  const Lookup& lookup_;
  std::size_t at_ = 0;
  std::size_t began_ = 0;  // where the current statement began, for messages
  Variables variables_;
};

}  // namespace

Expected<Variables, WrongLine> read_dot_env(std::string_view text, const Lookup& lookup) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return VariableFile(text, lookup).read();
}

std::string project_name(std::string_view text) {
  std::string name;
  for (const char c : lower_case(text))
    if (is_lower(c) || is_digit(c) || (!name.empty() && (c == '-' || c == '_'))) name += c;
  return name;
}

}  // namespace rose::compose
