#include "symbols/query.h"

#include <charconv>
#include <optional>

#include "base/trim.h"

namespace rose::symbols {
namespace {

constexpr std::string_view kCalls = ":calls", kCallers = ":callers", kReturn = ":return";

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t name_length(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && (is_letter(text[n]) || (n > 0 && is_digit(text[n])))) ++n;
  return n;
}

std::optional<int> number_of(std::string_view text, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 1 || value > most)
    return std::nullopt;
  return value;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) { query_.text = text; }

  Result<Query> parse() {
    if (text_.size() > kMostQueryBytes) return wrong(fmt::format("it is longer than {} bytes", kMostQueryBytes));
    for (const char c : text_)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return wrong("it has a character that cannot be printed");
    const std::string_view text = trimmed(text_);
    if (text.empty()) return wrong("it is empty");
    if (const std::size_t at = returned(text); at != std::string_view::npos) {
      query_.kind = Query::Kind::result;
      ROSE_CHECK(function(text.substr(0, at)));
      ROSE_CHECK(members(text.substr(at + kReturn.size())));
      return std::move(query_);
    }
    for (const auto& [word, kind] :
         {std::pair{kCalls, Query::Kind::calls}, std::pair{kCallers, Query::Kind::callers}}) {
      if (!text.ends_with(word) || text.size() == word.size() || text[text.size() - word.size() - 1] == ':') continue;
      query_.kind = kind;
      std::string_view name = text.substr(0, text.size() - word.size());
      if (kind == Query::Kind::callers && name.ends_with(kReturn) && name.size() > kReturn.size())
        name.remove_suffix(kReturn.size()), query_.at_return = true;
      ROSE_CHECK(function(name));
      return std::move(query_);
    }
    if (text.back() == ')') return argument(text);
    return variable(text);
  }

 private:
  Unexpected wrong(std::string why) const {
    return fail(ErrorKind::usage, fmt::format("invalid query '{}': {}", text_.substr(0, 120), why),
                fmt::format("accepted are {}", kQueryForms));
  }

  // The position of ":return", which is at the end or before members; npos if there is none.
  static std::size_t returned(std::string_view text) {
    const std::size_t at = text.rfind(kReturn);
    if (at == std::string_view::npos || at == 0 || text[at - 1] == ':') return std::string_view::npos;
    const std::string_view rest = text.substr(at + kReturn.size());
    return rest.empty() || rest.front() == '.' || rest.starts_with("->") ? at : std::string_view::npos;
  }

  Result<void> function(std::string_view name) {
    name = trimmed(name);
    if (name.empty()) return wrong("it names no function");
    if (name == "*" || name.find('?') != std::string_view::npos) return wrong("a query names one function");
    query_.function = name;
    return {};
  }

  Result<void> members(std::string_view rest) {
    while (!rest.empty()) {
      const std::size_t skip = rest.starts_with("->") ? 2 : rest.front() == '.' ? 1 : 0;
      if (skip == 0) return wrong(fmt::format("'{}' is neither '.member' nor '->member'", rest));
      rest.remove_prefix(skip);
      const std::size_t length = name_length(rest);
      if (length == 0) return wrong("a member has no name");
      if (query_.members.size() == kMostMembers)
        return wrong(fmt::format("it follows more than {} members", kMostMembers));
      query_.members.emplace_back(rest.substr(0, length));
      rest.remove_prefix(length);
    }
    return {};
  }

  Result<void> operand(std::string_view text) {
    text = trimmed(text);
    if (text.starts_with('*')) {
      query_.contents = true;
      text = trimmed(text.substr(1));
    }
    const std::size_t length = name_length(text);
    if (length == 0)
      return wrong(text.empty() ? "it names no variable" : fmt::format("'{}' does not begin with a name", text));
    query_.name = text.substr(0, length);
    ROSE_CHECK(members(text.substr(length)));
    return {};
  }

  // Parses f(name). The last parentheses contain the argument, because earlier ones belong to the function:
  // f(int)(name), operator()(name).
  Result<Query> argument(std::string_view text) {
    std::size_t open = std::string_view::npos;
    int depth = 0;
    for (std::size_t i = text.size(); i-- > 0;) {
      if (text[i] == ')') ++depth;
      if (text[i] == '(' && --depth == 0) {
        open = i;
        break;
      }
    }
    if (open == std::string_view::npos) return wrong("a parenthesis is not opened");
    const std::string_view inside = trimmed(text.substr(open + 1, text.size() - open - 2));
    query_.kind = Query::Kind::argument;
    if (inside.empty()) return wrong("it names no argument: give its name or its number (arg1)");
    ROSE_CHECK(function(text.substr(0, open)));
    ROSE_CHECK(operand(inside));
    if (query_.name.starts_with("arg")) {
      const std::string_view digits = std::string_view(query_.name).substr(3);
      const auto number = number_of(digits, static_cast<int>(kMostArguments));
      if (number) query_.number = *number;
      const bool all_digits = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
      if (all_digits && !number) return wrong(fmt::format("arguments have numbers from 1 to {}", kMostArguments));
    }
    return std::move(query_);
  }

  // Parses file.c:123:name.
  Result<Query> variable(std::string_view text) {
    query_.kind = Query::Kind::variable;
    const std::size_t last = text.rfind(':');
    const std::size_t before =
        last == std::string_view::npos || last == 0 ? std::string_view::npos : text.rfind(':', last - 1);
    if (before == std::string_view::npos)
      return wrong(
          "it is neither an argument of a function, nor its return value, calls or callers, nor a variable at a line "
          "of a file");
    const auto line = number_of(trimmed(text.substr(before + 1, last - before - 1)), 10'000'000);
    if (!line) return wrong(fmt::format("'{}' is not a line number", text.substr(before + 1, last - before - 1)));
    query_.file = trimmed(text.substr(0, before));
    query_.line = *line;
    if (query_.file.empty()) return wrong("it names no file");
    ROSE_CHECK(operand(text.substr(last + 1)));
    return std::move(query_);
  }

  std::string_view text_;
  Query query_;
};

}  // namespace

Result<Query> parse_query(std::string_view text) { return Parser(text).parse(); }

}  // namespace rose::symbols
