// Messages as templates: what changes from one message of a kind to the next (numbers, addresses, ids, paths) becomes a
// sign, and messages that then differ in few words are one kind. After Drain (He, Zhu, Zheng, Lyu: "Drain: An Online
// Log Parsing Approach with Fixed Depth Tree", ICWS 2017), with one addition: words that name an error (an errno's name
// or text, an exception, a signal) never become a sign, since they are what is looked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "logs/line/form.h"

namespace rose::logs {

using TemplateId = std::uint32_t;

// "dial tcp 127.0.0.1:6223: connection refused" -> "dial tcp <addr>: connection refused". Only the first line counts:
// of it what becomes kMostMasked characters, wherever long paths end, at most kMostToMask. Signs: <n> a number, <addr>,
// <path>, <url>, <id>.
inline constexpr std::size_t kMostMasked = 1000;
inline constexpr std::size_t kMostToMask = 4 * kMostMasked;
void mask(std::string_view text, std::string& masked);

// Words of a masked text that name an error, as one number; 0: it has none.
[[nodiscard]] std::uint32_t error_words(std::string_view masked);

class Templates {
 public:
  Templates() = default;
  Templates(const Templates&) = delete;  // texts_ points into ids_
  Templates& operator=(const Templates&) = delete;
  Templates(Templates&&) = default;
  Templates& operator=(Templates&&) = default;

  static constexpr std::size_t kMost = 50'000;     // kinds; what comes then is one kind a level ("other")
  static constexpr std::size_t kMostWords = 64;    // of a template; the rest is one sign
  static constexpr std::size_t kMostInLeaf = 128;  // kinds with one beginning; what is like none of them is one more
  static constexpr double kSimilar = 0.6;          // share of equal words from which two messages are of one kind

  // The kind of a masked text; messages of different levels or loggers are never of one. Kinds keep their ids; their
  // texts become more general.
  TemplateId learn(std::string_view masked, Level level, std::string_view logger);
  // The same for a kind of other templates: how those of many files become one set.
  TemplateId learn(const Templates& other, TemplateId id);

  [[nodiscard]] std::size_t size() const { return kinds_.size(); }
  [[nodiscard]] std::string text(TemplateId id) const;  // "open <path>: <*> refused"
  [[nodiscard]] Level level(TemplateId id) const { return kinds_[id].level; }
  [[nodiscard]] std::string_view logger(TemplateId id) const;
  [[nodiscard]] std::uint64_t overflow() const {
    return overflow_;
  }  // messages that became "other" since there were too many kinds

 private:
  using Word = std::uint32_t;
  static constexpr Word kAny = 0;  // "<*>"
  struct Kind {
    Level level = Level::none;
    bool other = false;
    Word logger = 0;
    std::uint32_t errors = 0;
    std::uint32_t first = 0, words = 0;  // in words_
  };

  Word word(std::string_view text);
  TemplateId place(const std::vector<Word>& words, Level level, Word logger, std::uint32_t errors);
  TemplateId other(Level level);

  std::vector<Kind> kinds_;
  std::vector<Word> words_;
  std::unordered_map<std::string, Word> ids_;
  std::vector<const std::string*> texts_;  // by word
  std::vector<bool> plain_;                // by word: small letters only
  std::unordered_map<std::uint64_t, std::vector<TemplateId>>
      leaves_;  // by level, logger, length, errors and the first two words
  std::unordered_map<std::uint64_t, std::uint32_t> children_;  // how many first words a length has
  std::unordered_map<std::uint8_t, TemplateId> others_;
  std::vector<Word> scratch_;
  std::uint64_t overflow_ = 0;
};

}  // namespace rose::logs
