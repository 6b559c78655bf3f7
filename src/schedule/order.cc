#include "schedule/order.h"

#include <algorithm>
#include <unordered_map>

#include "base/ascii.h"
#include "base/text.h"

namespace rose::schedule {
namespace {

constexpr std::size_t kMostNames = 256;
constexpr int kDeepest = 64;

// The names that come first and last in a part of an order, as indices into names_.
struct Part {
  std::vector<std::size_t> first, last;
};

class OrderReader {
 public:
  explicit OrderReader(std::string_view text) : text_(text) {}

  Result<std::vector<OrderedName>> read() {
    ROSE_TRY([[maybe_unused]] const Part all, either(0));
    skip();
    if (at_ < text_.size()) return wrong("'*', '|' or the end");
    return std::move(names_);
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  [[nodiscard]] Unexpected wrong(std::string_view wanted) const {
    const std::string found = at_ < text_.size() ? fmt::format("'{}'", printable(text_.substr(at_, 12))) : "the end";
    return fail(ErrorKind::input, fmt::format("column {}: {} was found, {} is needed", at_ + 1, found, wanted),
                "such as \"created * cut * (closed | restarted) * healed\": '*' means then, '|' means in any order");
  }

  Result<Part> either(int depth) {
    ROSE_TRY(Part part, sequence(depth));
    while (take('|')) {
      ROSE_TRY(const Part other, sequence(depth));
      part.first.insert(part.first.end(), other.first.begin(), other.first.end());
      part.last.insert(part.last.end(), other.last.begin(), other.last.end());
    }
    return part;
  }

  Result<Part> sequence(int depth) {
    ROSE_TRY(Part part, one(depth));
    while (take('*')) {
      ROSE_TRY(Part next, one(depth));
      for (const std::size_t late : next.first)
        for (const std::size_t early : part.last) names_[late].before.push_back(names_[early].name);
      part.last = std::move(next.last);
    }
    return part;
  }

  Result<Part> one(int depth) {
    if (take('(')) {
      if (depth == kDeepest)
        return fail(ErrorKind::input, fmt::format("column {}: parentheses are nested deeper than {}", at_, kDeepest));
      ROSE_TRY(Part part, either(depth + 1));
      if (!take(')')) return wrong("')'");
      return part;
    }
    skip();
    const std::size_t begin = at_;
    const auto belongs = [](char c) {
      return is_alpha(c) || is_digit(c) || c == '_' || c == '.' || c == '-' || c == ':';
    };
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    if (at_ == begin) return wrong("a name or '('");
    std::string name(text_.substr(begin, at_ - begin));
    if (const auto known = seen_.find(name); known != seen_.end())
      return fail(ErrorKind::input,
                  fmt::format("column {}: '{}' already occurs in column {}; each name may occur once", begin + 1, name,
                              known->second),
                  "an event that happens twice is two events, the second with count = 2");
    if (names_.size() == kMostNames) return fail(ErrorKind::input, fmt::format("more than {} names", kMostNames));
    seen_.emplace(name, begin + 1);
    names_.push_back({std::move(name), begin + 1, {}});
    return Part{{names_.size() - 1}, {names_.size() - 1}};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<OrderedName> names_;
  std::unordered_map<std::string, std::size_t> seen_;
};

}  // namespace

Result<std::vector<OrderedName>> parse_order(std::string_view text) { return OrderReader(text).read(); }

}  // namespace rose::schedule
