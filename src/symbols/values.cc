#include "symbols/values.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "base/text.h"
#include "symbols/code.h"
#include "symbols/elf.h"
#include "symbols/symbols.h"

namespace rose::symbols {
namespace {

constexpr std::size_t kMostFunctions = 16;  // that one query means

// Of arguments, in their order, as DWARF numbers them.
constexpr std::uint8_t kSystemV[] = {5, 4, 1, 2, 8, 9};               // rdi, rsi, rdx, rcx, r8, r9
constexpr std::uint8_t kGo[] = {0, 3, 2, 5, 4, 8, 9, 10, 11};         // rax, rbx, rcx, rdi, rsi, r8, r9, r10, r11
constexpr std::uint8_t kReturned = 0, kCaller = 7;

}  // namespace

class ValueFile::Reader {
 public:
  Reader(std::filesystem::path path, ElfFile file, CodeFile code) : path_(std::move(path)), file_(std::move(file)), code_(std::move(code)) {}

  Result<Answer> answer(const Query& query) {
    if (query.kind == Query::Kind::variable) return variable(query);
    ROSE_TRY(const std::vector<Function> functions, find_functions(path_, {query.function}, {}));
    if (functions.size() > kMostFunctions)
      return fail(ErrorKind::input, fmt::format("'{}' means {} functions of '{}': more than {} are not asked at once", query.function, functions.size(),
                                                path_.native(), kMostFunctions));
    Answer answer;
    for (const Function& function : functions) {
      if (query.kind == Query::Kind::argument) ROSE_CHECK(argument(query, function, answer));
      else ROSE_CHECK(result(query, function, answer));
    }
    if (!answer.sites.empty()) answer.refused.clear();
    return answer;
  }

 private:
  [[nodiscard]] std::string no_debug_info(std::string_view what) const {
    return fmt::format("{} is known by debug information only, and '{}' has none: build it with -g, or put its debug file beside it", what, path_.native());
  }

  Result<void> argument(const Query& query, const Function& function, Answer& answer) const {
    if (query.number == 0) return fail(ErrorKind::input, no_debug_info(fmt::format("argument '{}' of '{}'", query.name, query.function)),
                                       "without it arguments have numbers: f(arg1)");
    if (!query.members.empty() || query.contents)
      return fail(ErrorKind::input, no_debug_info(fmt::format("what argument {} of '{}' holds", query.number, query.function)));
    Site site;
    site.offset = function.probe_offset;
    site.function = function.name;
    const auto n = static_cast<std::size_t>(query.number) - 1;
    if (file_.is_go()) {
      if (n >= std::size(kGo)) {
        answer.refused = fmt::format("only the first {} words of arguments are in registers: build with debug information for the others", std::size(kGo));
        return {};
      }
      site.fetch.at.base = kGo[n];
    } else if (n < std::size(kSystemV)) {
      site.fetch.at.base = kSystemV[n];
    } else {  // behind the return address
      site.fetch.kind = Fetch::Kind::memory;
      site.fetch.at = {kCaller, {8 + 8 * (n - std::size(kSystemV))}};
    }
    answer.sites.push_back(std::move(site));
    return {};
  }

  Result<void> result(const Query& query, const Function& function, Answer& answer) const {
    if (!query.members.empty()) return fail(ErrorKind::input, no_debug_info(fmt::format("what '{}' returns in a member", query.function)));
    ROSE_TRY(const Exits exits, code_.exits(function.address));
    for (const std::uint64_t offset : exits.returns) {
      Site site;
      site.offset = offset;
      site.function = function.name;
      site.fetch.at.base = kReturned;
      answer.sites.push_back(std::move(site));
    }
    tell_exits(function, exits, answer);
    return {};
  }

  static void tell_exits(const Function& function, const Exits& exits, Answer& answer) {
    if (!exits.whole) answer.remarks.push_back(fmt::format("not all of the code of '{}' could be read: some of its returns may be missing", function.name));
    if (exits.jumps.empty() && !exits.returns.empty()) return;
    if (exits.jumps.empty()) {
      answer.refused = fmt::format("'{}' never returns", function.name);
      return;
    }
    std::string to;
    for (std::size_t i = 0; i < std::min<std::size_t>(exits.jumps.size(), 3); ++i) to += fmt::format("{}'{}'", i == 0 ? "" : ", ", exits.jumps[i]);
    if (exits.jumps.size() > 3) to += " and others";
    const std::string words = fmt::format("'{}' ends by jumping to {}: what it returns then is what that returns, and is not seen", function.name, to);
    if (exits.returns.empty()) answer.refused = words;
    else answer.remarks.push_back(words);
  }

  Result<Answer> variable(const Query& query) const {
    return fail(ErrorKind::input, no_debug_info(fmt::format("'{}' at {}:{}", query.name, query.file, query.line)));
  }

  const std::filesystem::path path_;
  const ElfFile file_;
  const CodeFile code_;
};

ValueFile::ValueFile(std::unique_ptr<Reader> reader) : reader_(std::move(reader)) {}
ValueFile::ValueFile(ValueFile&&) noexcept = default;
ValueFile& ValueFile::operator=(ValueFile&&) noexcept = default;
ValueFile::~ValueFile() = default;

Result<ValueFile> ValueFile::open(const std::filesystem::path& binary) {
  ROSE_TRY(ElfFile file, ElfFile::open(binary));
  ROSE_TRY(CodeFile code, CodeFile::open(binary));
  return ValueFile(std::make_unique<Reader>(binary, std::move(file), std::move(code)));
}

Result<Answer> ValueFile::answer(const Query& query) { return reader_->answer(query); }

ToldValue tell_value(const Form& form, std::uint64_t bits, std::string_view text) {
  if (form.kind == Form::Kind::text) return {fmt::format("\"{}\"{}", printable(text), text.size() < bits && bits != 0 ? "..." : ""), false, 0};
  bits >>= form.shift & 63;
  const unsigned size = std::clamp<unsigned>(form.size, 1, 8);
  if (size < 8) bits &= (std::uint64_t{1} << (8 * size)) - 1;
  const unsigned spare = 64 - 8 * size;
  const auto with_sign = static_cast<std::int64_t>(bits << spare) >> spare;
  const auto number = [](std::string words, double value) { return ToldValue{std::move(words), true, value}; };
  switch (form.kind) {
    case Form::Kind::raw:
      // The upper half of a register that holds an int is anything; most often it is zero.
      if (bits > 0x7fffffff && bits <= 0xffffffff)
        return number(fmt::format("{} (as int {})", bits, static_cast<std::int32_t>(bits)), static_cast<double>(bits));
      if (bits >> 63 == 0 && bits >= std::uint64_t{1} << 40) return number(fmt::format("{:#x}", bits), static_cast<double>(bits));
      return number(fmt::format("{}", with_sign), static_cast<double>(with_sign));
    case Form::Kind::integer: return number(fmt::format("{}", with_sign), static_cast<double>(with_sign));
    case Form::Kind::natural: return number(fmt::format("{}", bits), static_cast<double>(bits));
    case Form::Kind::boolean: return number(bits == 0 ? "false" : bits == 1 ? "true" : fmt::format("true ({})", bits), static_cast<double>(bits));
    case Form::Kind::character:
      if (bits >= 0x20 && bits < 0x7f) return number(fmt::format("'{}'", static_cast<char>(bits)), static_cast<double>(bits));
      return number(fmt::format("{}", with_sign), static_cast<double>(with_sign));
    case Form::Kind::pointer:
      return {bits == 0 ? "null" : fmt::format("{:#x}", bits), true, static_cast<double>(bits)};
    case Form::Kind::real: {
      const double value = size == 4 ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))) : std::bit_cast<double>(bits);
      return number(fmt::format("{}", value), value);
    }
    case Form::Kind::enumeration:
      if (form.names) {
        for (const std::int64_t key : {with_sign, static_cast<std::int64_t>(bits)})
          if (const auto name = form.names->find(key); name != form.names->end()) return number(name->second, static_cast<double>(key));
      }
      return number(fmt::format("{}", with_sign), static_cast<double>(with_sign));
    case Form::Kind::text: break;
  }
  return {};
}

}  // namespace rose::symbols
