#include "logs/template.h"

#include <algorithm>

#include "logs/mask.h"

namespace rose::logs {
namespace {

constexpr std::size_t kLongestWord = 64;
// At most this many first words of messages of one length have a branch of their own. Later first words share a branch
// (Drain's maxChild).
constexpr std::size_t kMostFirstWords = 100;
constexpr std::size_t kCrowded = 64;  // from this many kinds in one leaf on, a smaller similarity is sufficient
constexpr double kSimilarInCrowd = 0.3;
constexpr std::size_t kMostDistinctWords = 500'000;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 12) + (hash >> 4);
  return hash * 0xff51afd7ed558ccdULL;
}

bool plain_word(const std::string& word) {
  return std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

}  // namespace

Templates::Word Templates::word(std::string_view text) {
  if (texts_.empty()) {
    texts_.push_back(&ids_.emplace("<*>", kAny).first->first);
    plain_.push_back(false);
  }
  text = text.substr(0, kLongestWord);
  const auto found = ids_.find(std::string(text));
  if (found != ids_.end()) return found->second;
  if (ids_.size() >= kMostDistinctWords) return kAny;
  const auto [at, added] = ids_.emplace(std::string(text), static_cast<Word>(texts_.size()));
  texts_.push_back(&at->first);
  plain_.push_back(plain_word(at->first));
  return at->second;
}

TemplateId Templates::other(Level level) {
  const auto [at, added] =
      others_.try_emplace(static_cast<std::uint8_t>(level), static_cast<TemplateId>(kinds_.size()));
  if (added) {
    Kind kind;
    kind.level = level;
    kind.other = true;
    kind.first = static_cast<std::uint32_t>(words_.size());
    kind.words = 1;
    words_.push_back(word("<*>"));
    kinds_.push_back(kind);
  }
  return at->second;
}

// Returns the kind in the leaf that is most similar to the words, or a new kind. Words in which the message and the
// kind differ become placeholders.
TemplateId Templates::place(const std::vector<Word>& words, Level level, Word logger, std::uint32_t errors) {
  // The tree has a fixed depth. The levels are the length (with level, logger and errors), then the first two words. A
  // word is not used if it contains placeholders or digits, or if there are too many different words.
  const std::uint64_t top = mix(mix(mix(words.size(), static_cast<std::uint64_t>(level)), logger), errors);
  const auto route = [&](std::size_t i) -> Word {
    if (i >= words.size() || words[i] == kAny) return kAny;
    return texts_[words[i]]->find_first_of("<>0123456789") == std::string::npos ? words[i] : kAny;
  };
  Word first = route(0);
  std::uint64_t key = mix(mix(top, first), route(1));
  auto leaf = leaves_.find(key);
  if (leaf == leaves_.end()) {
    std::uint32_t& count = children_[top];
    if (first != kAny && count >= kMostFirstWords) {
      first = kAny;
      key = mix(mix(top, kAny), kAny);
      leaf = leaves_.find(key);
    } else {
      ++count;
    }
  }
  const bool full = leaf != leaves_.end() && leaf->second.size() >= kMostInLeaf;
  if (leaf != leaves_.end()) {
    const double wanted = leaf->second.size() >= kCrowded ? kSimilarInCrowd : kSimilar;
    TemplateId best = 0;
    double best_score = -1;
    for (std::size_t n = 0; n < std::min(leaf->second.size(), kMostInLeaf); ++n) {
      const TemplateId id = leaf->second[n];
      const Kind& kind = kinds_[id];
      if (kind.words != words.size() || kind.level != level || kind.logger != logger || kind.errors != errors)
        continue;  // this kind belongs to another key with the same hash
      double cost = 0;
      for (std::size_t i = 0; i < words.size(); ++i) {
        const Word mine = words_[kind.first + i];
        if (mine == words[i] || mine == kAny || words[i] == kAny) {
          cost += mine == words[i] ? 0 : 0.01;
          continue;
        }
        // If two words that consist of lower-case letters differ ("up", "down"), this distinguishes messages more than
        // different names and ids do.
        cost += plain_[mine] && plain_[words[i]] ? 2 : 1;
      }
      const double score = words.empty() ? 1 : 1 - cost / static_cast<double>(words.size());
      if (score > best_score) {
        best_score = score;
        best = id;
      }
    }
    if (best_score >= wanted) {
      for (std::size_t i = 0; i < words.size(); ++i) {
        Word& mine = words_[kinds_[best].first + i];
        if (mine != words[i]) mine = kAny;
      }
      return best;
    }
  }
  // A leaf becomes full if words vary that do not have the form of a variable part (names of tables, texts of users).
  // Its further messages share one additional kind, so that the cost of a message stays constant.
  if (full && leaf->second.size() > kMostInLeaf) return leaf->second.back();
  if (kinds_.size() >= kMost) {
    ++overflow_;
    return other(level);
  }
  Kind kind;
  kind.level = level;
  kind.logger = logger;
  kind.errors = errors;
  kind.first = static_cast<std::uint32_t>(words_.size());
  kind.words = static_cast<std::uint32_t>(words.size());
  if (full) words_.insert(words_.end(), words.size(), kAny);
  else words_.insert(words_.end(), words.begin(), words.end());
  kinds_.push_back(kind);
  const auto id = static_cast<TemplateId>(kinds_.size() - 1);
  leaves_[key].push_back(id);
  return id;
}

TemplateId Templates::learn(std::string_view masked, Level level, std::string_view logger) {
  (void)word("<*>");
  scratch_.clear();
  for (std::size_t at = 0; at < masked.size() && scratch_.size() < kMostWords;) {
    const std::size_t end = std::min(masked.find(' ', at), masked.size());
    scratch_.push_back(scratch_.size() + 1 == kMostWords ? kAny : word(masked.substr(at, end - at)));
    at = end + 1;
  }
  return place(scratch_, level, logger.empty() ? kAny : word(logger), error_words(masked));
}

TemplateId Templates::learn(const Templates& other_set, TemplateId id) {
  const Kind& kind = other_set.kinds_[id];
  if (kind.other) return other(kind.level);
  (void)word("<*>");
  scratch_.clear();
  for (std::size_t i = 0; i < kind.words; ++i) {
    const Word part = other_set.words_[kind.first + i];
    scratch_.push_back(part == kAny ? kAny : word(*other_set.texts_[part]));
  }
  const Word logger = kind.logger == kAny ? kAny : word(*other_set.texts_[kind.logger]);
  return place(scratch_, kind.level, logger, kind.errors);
}

std::string_view Templates::logger(TemplateId id) const {
  const Word logger = kinds_[id].logger;
  return logger == kAny ? std::string_view() : std::string_view(*texts_[logger]);
}

std::string Templates::text(TemplateId id) const {
  const Kind& kind = kinds_[id];
  std::string out;
  for (std::size_t i = 0; i < kind.words; ++i) {
    if (i != 0) out += ' ';
    out += *texts_[words_[kind.first + i]];
  }
  return out;
}

}  // namespace rose::logs
