#include "base/toml.h"

// toml++ is compiled only here, with exceptions and from its source instead of Debian's library, to work around flaws
// of version 3.3. First, it limits the nesting depth of values but not of dotted keys (3.4 does), and its tables are
// destroyed recursively, so a long dotted key overflows the stack: see check_depth. Second, some malformed files (such
// as "[[[") violate its assertions, which would end the process or, with NDEBUG, lead to undefined behaviour. Here
// assertions throw, and parse() catches the exception. Third,
// to ask whether U+FEFD may be in a key is undefined behaviour: check_depth refuses it outside of strings and comments.
namespace {
struct BrokenAssertion {};
[[noreturn]] void broken_assertion() { throw BrokenAssertion{}; }
}  // namespace
#undef NDEBUG  // for this file only: otherwise toml++ would disable TOML_ASSERT
#define TOML_ASSERT(expr)            \
  do {                               \
    if (!(expr)) broken_assertion(); \
  } while (false)
#define TOML_EXCEPTIONS 1
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/text.h"
#include "base/units.h"
#include "base/utf8.h"

namespace rose::toml {
namespace {

constexpr int kMostDots = 32;            // in one dotted key
constexpr std::size_t kMostQuoted = 60;  // longest part of a value shown in a message, in bytes

std::string at(std::string_view file, Place place) { return fmt::format("{}:{}:{}", file, place.line, place.column); }

Place place_of(const ::toml::source_region& region) {
  // Tables that do not appear in the text (the root, parents of dotted keys) have no position.
  const Place place{static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
  return place.line == 0 ? Place{1, 1} : place;
}

// Finds keys with too many parts, and U+FEFD. A minimal scanner that recognises strings and comments and treats any
// sequence of names, strings and dots as a key. Numbers contain at most one dot, so they cannot be mistaken for long
// keys.
Result<void> check_depth(std::string_view text, std::string_view file) {
  Place place{1, 1};
  int dots = 0;
  std::size_t i = 0;
  const auto next = [&] {
    if (text[i] == '\n') {
      ++place.line;
      place.column = 0;
    }
    ++place.column;
    ++i;
  };
  const auto starts = [&](std::string_view what) { return text.substr(i, what.size()) == what; };
  while (i < text.size()) {
    const char c = text[i];
    if (c == '#') {
      while (i < text.size() && text[i] != '\n') next();
    } else if (c == '"' || c == '\'') {
      const bool many = starts(c == '"' ? "\"\"\"" : "'''");
      for (int n = many ? 3 : 1; n > 0; --n) next();
      while (i < text.size()) {
        if (c == '"' && text[i] == '\\' && i + 1 < text.size()) {
          next();
          next();
        } else if (many ? starts(c == '"' ? "\"\"\"" : "'''") : (text[i] == c || text[i] == '\n')) {
          break;
        } else {
          next();
        }
      }
      // A multi-line string may end in up to five quotes, of which two belong to its content.
      for (int n = many ? 5 : 1; n > 0 && i < text.size() && text[i] == c; --n) next();
    } else if (c == '.') {
      if (++dots > kMostDots)
        return fail(ErrorKind::input, fmt::format("{}: a key of more than {} parts", at(file, place), kMostDots));
      next();
    } else if (starts("\xef\xbb\xbd")) {  // U+FEFD
      return fail(ErrorKind::input,
                  fmt::format("{}: not valid TOML: a character that belongs into quotes", at(file, place)));
    } else {
      const bool name = is_digit(c) || is_alpha(c) || c == '_' || c == '-' || c == ' ' || c == '\t';
      if (!name) dots = 0;
      next();
    }
  }
  return {};
}

// Finds the line that violates an assertion in toml++. The parser reads in order, so exactly those prefixes of the text
// that include this line trigger the violation.
int broken_line(std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n' || i + 1 == text.size()) ends.push_back(i + 1);
  const auto breaks = [&](std::size_t end) {
    try {
      [[maybe_unused]] const auto table = ::toml::parse(text.substr(0, end));
    } catch (const BrokenAssertion&) {
      return true;
    } catch (const ::toml::parse_error&) {
      return false;
    }
    return false;
  };
  const auto it = std::partition_point(ends.begin(), ends.end(), [&](std::size_t end) { return !breaks(end); });
  return static_cast<int>(it - ends.begin()) + 1;
}

Value convert(const ::toml::node& node) {
  Value value;
  value.place = place_of(node.source());
  switch (node.type()) {
    case ::toml::node_type::string:
      value.type = Type::string;
      value.text = node.as_string()->get();
      break;
    case ::toml::node_type::integer:
      value.type = Type::integer;
      value.integer = node.as_integer()->get();
      break;
    case ::toml::node_type::floating_point:
      value.type = Type::real;
      value.real = node.as_floating_point()->get();
      break;
    case ::toml::node_type::boolean:
      value.type = Type::boolean;
      value.boolean = node.as_boolean()->get();
      break;
    case ::toml::node_type::array:
      value.type = Type::array;
      for (const ::toml::node& item : *node.as_array()) value.items.push_back(convert(item));
      break;
    case ::toml::node_type::table:
      value.type = Type::table;
      for (const auto& [key, member] : *node.as_table())
        value.members.push_back({std::string(key.str()), place_of(key.source()), convert(member)});
      std::sort(value.members.begin(), value.members.end(),
                [](const Member& a, const Member& b) { return a.place < b.place; });
      break;
    default: value.type = Type::date; break;
  }
  return value;
}

std::string_view article(Type type) {
  switch (type) {
    case Type::string: return "a string";
    case Type::integer: return "an integer";
    case Type::real: return "a decimal";
    case Type::boolean: return "a boolean";
    case Type::date: return "a date";
    case Type::array: return "a list";
    case Type::table: return "a table";
  }
  return "a value";
}

std::string wrong_type(const Value& value, std::string_view what) {
  if (value.type == Type::array || value.type == Type::table || value.type == Type::date)
    return fmt::format("{} was found, {} is needed", article(value.type), what);
  return fmt::format("{} is {}, {} is needed", toml::quoted(value), article(value.type), what);
}

// Control characters would corrupt the terminal on which the message is shown.
void append_escaped(std::string& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  switch (c) {
    case '\n': out += "\\n"; return;
    case '\t': out += "\\t"; return;
    case '\r': out += "\\r"; return;
    default:
      if (byte < 0x20 || byte == 0x7f) out += fmt::format("\\u{:04x}", byte);
      else out += c;
  }
}

std::string double_quoted(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", word);
  return text;
}

}  // namespace

const Member* Value::find(std::string_view key) const {
  for (const Member& member : members)
    if (member.key == key) return &member;
  return nullptr;
}

Result<Value> parse(std::string_view text, std::string_view file) {
  if (text.size() > kMostBytes)
    return fail(ErrorKind::input, fmt::format("{}: larger than {} MiB", file, kMostBytes >> 20));
  ROSE_CHECK(check_depth(text, file));
  try {
    return convert(::toml::parse(text));
  } catch (const ::toml::parse_error& error) {
    std::string why;
    for (const char c : error.description()) append_escaped(why, c);
    if (why.rfind("Error while ", 0) == 0) why.replace(0, 1, "e");
    if (const std::size_t macro = why.find(" (TOML_"); macro != std::string::npos) why.resize(macro);
    const bool again = why.find("redefine existing table") != std::string::npos;
    return fail(ErrorKind::input, fmt::format("{}: not valid TOML: {}", at(file, place_of(error.source())), why),
                again ? "tables that may occur several times need double brackets each time: [[node]], [[fault]]" : "");
  } catch (const BrokenAssertion&) {
    return fail(ErrorKind::input, fmt::format("{}: not valid TOML", at(file, {broken_line(text), 1})));
  }
}

std::string quoted(std::string_view text) {
  std::string out = "'";
  std::size_t end = std::min(text.size(), kMostQuoted);
  // Do not cut inside a UTF-8 sequence.
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  for (const char c : text.substr(0, end)) append_escaped(out, c);
  if (end < text.size()) out += "...";
  return out + "'";
}

std::string quoted(const Value& value) {
  switch (value.type) {
    case Type::string: return toml::quoted(value.text);
    case Type::integer: return fmt::format("'{}'", value.integer);
    case Type::real: return fmt::format("'{}'", value.real);
    case Type::boolean: return fmt::format("'{}'", value.boolean);
    default: return std::string(article(value.type));
  }
}

std::string literal(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) {
      out += '?';
      ++i;
    } else if (length > 1) {
      out += text.substr(i, length);
      i += length;
    } else {
      if (text[i] == '"' || text[i] == '\\') out += '\\';
      append_escaped(out, text[i]);
      ++i;
    }
  }
  return out + "\"";
}

Problems::Problem Problems::make(Place place, std::string_view what, std::string hint) const {
  return {place, Error{ErrorKind::input, fmt::format("{}: {}", at(file_, place), what), std::move(hint)}};
}

void Problems::add(Place place, std::string_view what, std::string hint) {
  if (!wrong_ || place < wrong_->place) wrong_ = make(place, what, std::move(hint));
}

void Problems::add_missing(Place place, std::string_view what, std::string hint) {
  if (!missing_ || place < missing_->place) missing_ = make(place, what, std::move(hint));
}

Result<void> Problems::result() const {
  if (wrong_) return Unexpected(wrong_->error);
  if (missing_) return Unexpected(missing_->error);
  return {};
}

Place Table::place(std::string_view key) const {
  const Member* member = value_->find(key);
  return member == nullptr ? value_->place : member->value.place;
}

std::string Table::path(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const Value* Table::get(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  const Member* member = value_->find(key);
  return member == nullptr ? nullptr : &member->value;
}

const Value* Table::get(std::string_view key, Type type, std::string_view what) {
  const Value* value = get(key);
  if (value == nullptr || value->type == type) return value;
  wrong(key, wrong_type(*value, what));
  return nullptr;
}

bool Table::string(std::string_view key, std::string& into) {
  const Value* value = get(key, Type::string, "a string");
  if (value == nullptr) return false;
  if (value->text.empty()) {
    wrong(key, "'' is empty, some text is needed");
    return false;
  }
  if (value->text.find('\0') != std::string::npos) {
    wrong(key, fmt::format("{} contains a NUL character, which is not accepted", toml::quoted(*value)));
    return false;
  }
  into = value->text;
  return true;
}

bool Table::string(std::string_view key, std::optional<std::string>& into) {
  std::string text;
  if (!string(key, text)) return false;
  into = std::move(text);
  return true;
}

bool Table::boolean(std::string_view key, bool& into) {
  const Value* value = get(key, Type::boolean, "true or false");
  if (value == nullptr) return false;
  into = value->boolean;
  return true;
}

bool Table::read_integer(std::string_view key, std::int64_t& into, std::int64_t least, std::int64_t most) {
  const std::string range = fmt::format("an integer from {} to {}", least, most);
  const Value* value = get(key, Type::integer, range);
  if (value == nullptr) return false;
  if (value->integer < least || value->integer > most) {
    wrong(key, fmt::format("'{}' is out of range, {} is needed", value->integer, range));
    return false;
  }
  into = value->integer;
  return true;
}

bool Table::real(std::string_view key, double& into, double above, double most) {
  const std::string range = fmt::format("a number above {} and up to {}", above, most);
  const Value* value = get(key);
  if (value == nullptr) return false;
  if (value->type != Type::real && value->type != Type::integer) {
    wrong(key, wrong_type(*value, range));
    return false;
  }
  const double number = value->type == Type::real ? value->real : static_cast<double>(value->integer);
  if (!(number > above && number <= most)) {  // this form of the condition also refuses NaN
    wrong(key, fmt::format("{} is out of range, {} is needed", toml::quoted(*value), range));
    return false;
  }
  into = number;
  return true;
}

bool Table::duration(std::string_view key, std::int64_t& ns, std::int64_t least_ns, std::int64_t most_ns) {
  const std::string example = "a duration such as \"1.5s\" (units ms, s, m, h)";
  const Value* value = get(key, Type::string, example);
  if (value == nullptr) return false;
  const Result<std::int64_t> parsed = parse_duration_ns(value->text);
  if (!parsed) {
    wrong(key, fmt::format("{} is not {}", toml::quoted(*value), example));
    return false;
  }
  if (*parsed < least_ns || *parsed > most_ns) {
    wrong(key,
          fmt::format("{} is out of range, {} to {} is accepted", toml::quoted(*value),
                      least_ns > 0 && least_ns < 1'000'000 ? fmt::format("{}ms", static_cast<double>(least_ns) / 1e6)
                                                           : format_duration(least_ns),
                      format_duration(most_ns)));
    return false;
  }
  ns = *parsed;
  return true;
}

bool Table::size(std::string_view key, std::uint64_t& bytes, std::uint64_t least, std::uint64_t most) {
  const std::string example = "a size such as \"64MiB\" (units B, KiB, MiB, GiB)";
  const Value* value = get(key, Type::string, example);
  if (value == nullptr) return false;
  const Result<std::uint64_t> parsed = parse_size(value->text);
  if (!parsed) {
    wrong(key, fmt::format("{} is not {}", toml::quoted(*value), example));
    return false;
  }
  if (*parsed < least || *parsed > most) {
    wrong(key, fmt::format("{} is out of range, {} to {} is accepted", toml::quoted(*value), format_size(least),
                           format_size(most)));
    return false;
  }
  bytes = *parsed;
  return true;
}

std::optional<std::vector<std::string>> Table::texts(std::string_view key, std::string_view what, std::string_view list,
                                                     bool empty_ones) {
  const Value* value = get(key, Type::array, what);
  if (value == nullptr) return std::nullopt;
  if (value->items.empty()) {
    wrong(key, fmt::format("the {} is empty, {} is needed", list, what));
    return std::nullopt;
  }
  std::vector<std::string> read;
  for (const Value& item : value->items) {
    std::string problem;
    if (item.type != Type::string) problem = wrong_type(item, what);
    else if (item.text.empty() && !empty_ones)
      problem = fmt::format("{} is empty, some text is needed", toml::quoted(item));
    else if (item.text.find('\0') != std::string::npos)
      problem = fmt::format("{} contains a NUL character, which is not accepted", toml::quoted(item));
    if (!problem.empty()) {
      problems_->add(item.place, fmt::format("{}: {}", path(key), problem));
      return std::nullopt;
    }
    read.push_back(item.text);
  }
  return read;
}

bool Table::strings(std::string_view key, std::vector<std::string>& into) {
  auto read = texts(key, "a list of strings such as [\"a\", \"b\"]", "list", false);
  if (!read) return false;
  into = *std::move(read);
  return true;
}

bool Table::command(std::string_view key, std::vector<std::string>& into) {
  const std::string_view what = "a list of strings such as [\"./program\", \"argument\"]";
  auto read = texts(key, what, "command", true);
  if (!read) return false;
  if (read->front().empty()) {
    problems_->add(get(key)->items.front().place,
                   fmt::format("{}: '' does not name a program, {} is needed", path(key), what));
    return false;
  }
  into = *std::move(read);
  return true;
}

bool Table::one_of(std::string_view key, const std::vector<std::string>& choices, std::size_t& index) {
  const std::string what = fmt::format("one of {}", double_quoted(choices));
  const Value* value = get(key, Type::string, what);
  if (value == nullptr) return false;
  const auto it = std::find(choices.begin(), choices.end(), value->text);
  if (it == choices.end()) {
    wrong(key, fmt::format("{} is not {}", toml::quoted(*value), what), did_you_mean(value->text, choices));
    return false;
  }
  index = static_cast<std::size_t>(it - choices.begin());
  return true;
}

std::optional<Table> Table::table(std::string_view key) {
  const Value* value = get(key, Type::table, "a table");
  if (value == nullptr) return std::nullopt;
  return Table(*value, path(key), *problems_);
}

std::vector<Table> Table::tables(std::string_view key, std::string_view what) {
  std::vector<Table> list;
  const Value* value = get(key, Type::array, what);
  if (value == nullptr) return list;
  for (const Value& item : value->items) {
    if (item.type != Type::table) problems_->add(item.place, fmt::format("{}: {}", path(key), wrong_type(item, what)));
    else list.emplace_back(item, path(key), *problems_);
  }
  return list;
}

void Table::wrong(std::string_view key, std::string_view what, std::string hint) {
  problems_->add(place(key), fmt::format("{}: {}", path(key), what), std::move(hint));
}

void Table::require(std::string_view key, std::string hint) {
  if (has(key)) return;
  problems_->add_missing(
      value_->place,
      path_.empty() ? fmt::format("'{}' is missing", key) : fmt::format("{}: '{}' is missing", path_, key),
      std::move(hint));
}

void Table::finish() {
  for (const Member& member : value_->members) {
    if (std::find(known_.begin(), known_.end(), member.key) != known_.end()) continue;
    std::string hint = did_you_mean(member.key, known_);
    hint += fmt::format("{}accepted here: {}", hint.empty() ? "" : " ", fmt::join(known_, ", "));
    problems_->add(member.place,
                   fmt::format("{}unknown key {}", path_.empty() ? "" : path_ + ": ", toml::quoted(member.key)),
                   std::move(hint));
    return;  // this is the first problem of the table, so later ones would not be reported
  }
}

}  // namespace rose::toml
