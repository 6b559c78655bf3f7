// Groups messages into kinds. The variable parts of a message (numbers, addresses, ids, paths) are replaced by
// placeholders; messages are of one kind if their masked texts then differ in few words. The method is Drain (He, Zhu,
// Zheng, Lyu: "Drain: An Online Log Parsing Approach with Fixed Depth Tree", ICWS 2017), with one addition: words that
// name an error (an errno's name or text, an exception, a signal) never become placeholders, because the analysis looks
// for these words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "logs/line/level.h"

namespace rose::logs {

using TemplateId = std::uint32_t;

class Templates {
 public:
  Templates() = default;
  Templates(const Templates&) = delete;  // because texts_ points into ids_
  Templates& operator=(const Templates&) = delete;
  Templates(Templates&&) = default;
  Templates& operator=(Templates&&) = default;

  // the most kinds; further messages get one common kind per level ("other")
  static constexpr std::size_t kMost = 50'000;
  static constexpr std::size_t kMostWords = 64;  // the most words of a template; one placeholder stands for the rest
  // The most kinds in one leaf of the tree. Messages that match none of them get one additional kind.
  static constexpr std::size_t kMostInLeaf = 128;
  static constexpr double kSimilar = 0.6;  // the least share of equal words in messages of one kind

  // The kind of a masked text. Messages that differ in level or logger never have the same kind. The id of a kind never
  // changes, but its text may become more general.
  TemplateId learn(std::string_view masked, Level level, std::string_view logger);
  // The kind in this set that corresponds to a kind of another set. Used to merge the kinds of several files.
  TemplateId learn(const Templates& other, TemplateId id);

  [[nodiscard]] std::size_t size() const { return kinds_.size(); }
  [[nodiscard]] std::string text(TemplateId id) const;  // for example "open <path>: <*> refused"
  [[nodiscard]] Level level(TemplateId id) const { return kinds_[id].level; }
  [[nodiscard]] std::string_view logger(TemplateId id) const;
  [[nodiscard]] std::uint64_t overflow() const {
    return overflow_;
  }  // messages in the kind "other", because there were too many kinds

 private:
  using Word = std::uint32_t;
  static constexpr Word kAny = 0;  // "<*>"
  struct Kind {
    Level level = Level::none;
    bool other = false;
    Word logger = 0;
    std::uint32_t errors = 0;
    std::uint32_t first = 0, words = 0;  // the words of the kind: index into words_, and number
  };

  Word word(std::string_view text);
  TemplateId place(const std::vector<Word>& words, Level level, Word logger, std::uint32_t errors);
  TemplateId other(Level level);

  std::vector<Kind> kinds_;
  std::vector<Word> words_;
  std::unordered_map<std::string, Word> ids_;
  std::vector<const std::string*> texts_;  // indexed by Word: the word's text
  std::vector<bool> plain_;                // indexed by Word: true if it consists of lower-case letters
  std::unordered_map<std::uint64_t, std::vector<TemplateId>>
      leaves_;  // key: a hash of level, logger, length, errors and the first two words
  // Key: a hash of length, level, logger and errors; value: the number of different first words of such messages.
  std::unordered_map<std::uint64_t, std::uint32_t> children_;
  std::unordered_map<std::uint8_t, TemplateId> others_;
  std::vector<Word> scratch_;
  std::uint64_t overflow_ = 0;
};

}  // namespace rose::logs
