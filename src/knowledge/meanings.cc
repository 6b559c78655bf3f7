#include "knowledge/meanings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/ascii.h"
#include "base/toml.h"
#include "kernel/syscalls.h"
#include "knowledge/files.h"

namespace rose::knowledge {
namespace {

constexpr std::size_t kGap = 3;         // the most words that ".." may stand for
constexpr std::size_t kWideGap = 8;     // the most words that "..." may stand for
constexpr std::size_t kFillers = 3;     // the most words between a negation and the words that it denies
constexpr std::size_t kCondition = 12;  // the most words between "if" and the words that it makes conditional

constexpr std::array kSays = std::to_array<std::string_view>(
    {"error",     "operation", "lost",     "closed",  "cut-off",  "outcast",   "late",    "in-vain",  "on-disk",
     "slow-disk", "stood",     "hung",     "woke",    "suspends", "panic",     "gave-up", "stopping", "starting",
     "serving",   "killed",    "gone",     "sigkill", "helper",   "no-helper", "lookup",  "clock",    "torn",
     "unclean",   "divided",   "reunited", "relayed", "answered", "other"});

// The words that one element of a pattern matches. "read*" matches beginnings of words, and "*ms" endings.
struct WordSet {
  std::unordered_set<std::string> whole;
  std::vector<std::string> beginnings, endings;

  [[nodiscard]] bool has(std::string_view word) const {
    return whole.contains(std::string(word)) ||
           std::any_of(beginnings.begin(), beginnings.end(),
                       [&](const auto& beginning) { return word.starts_with(beginning); }) ||
           std::any_of(endings.begin(), endings.end(), [&](const auto& ending) { return word.ends_with(ending); });
  }
  void add(std::string_view word) {
    if (word.ends_with('*')) beginnings.emplace_back(word.substr(0, word.size() - 1));
    else if (word.starts_with('*')) endings.emplace_back(word.substr(1));
    else whole.emplace(word);
  }
};

// The non-empty parts of a text that `by` separates.
std::vector<std::string_view> parts_of(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(by, at), text.size());
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool denies(std::string_view word) {
  return one_of(word, {"not", "no", "never", "without", "isnot", "wasnot", "doesnot", "didnot", "willnot", "hasnot",
                       "havenot", "arenot", "donot", "cannot", "couldnot"});
}
bool is_hedge(std::string_view word) {
  return one_of(word, {"may", "might", "could", "would", "should", "can", "avoid", "avoids", "prevent", "prevents",
                       "unless", "whether", "possibly", "cause", "causing", "likely", "probably", "perhaps", "maybe"});
}
bool is_filler(std::string_view word) {
  return one_of(word, {"be",     "been", "being", "a",           "an", "the",    "yet",  "any", "is",      "to", "get",
                       "become", "have", "also",  "potentially", "it", "longer", "from", "due", "because", "of"});
}

// True if no value follows. In the setting "heartbeat timeout 5000", a value follows.
bool ends_phrase(const Word& word) {
  return word.after == 0 || std::string_view(",;.!)]}\"'").find(word.after) != std::string_view::npos;
}

// "This may cause failure detection to mark members as unreachable": everything after such a verb is only possible.
bool is_causal(std::string_view verb) {
  return verb == "cause" || verb == "lead" || verb == "result" || verb == "trigger" || verb == "make";
}

// True if the words before word `first` deny the match that begins there, or say that it is only possible.
bool is_denied(const std::vector<Word>& words, std::size_t first) {
  std::size_t i = first;
  for (std::size_t skipped = 0; i > 0 && words[i - 1].clause == words[first].clause; --i) {
    const std::string_view before = words[i - 1].text;
    if (denies(before) || is_hedge(before)) return true;
    if (!is_filler(before) || ++skipped > kFillers) break;
  }
  for (std::size_t k = first, n = 0; k > 0 && n < kCondition && words[k - 1].clause == words[first].clause; --k, ++n)
    if (words[k - 1].text == "if" || (is_hedge(words[k - 1].text) && is_causal(words[k].text))) return true;
  return false;
}

// True if the words are the name of a counter that is zero: "stall: 00:00:0.000", "timeouts=0".
bool is_zero_counter(std::string_view following) {
  const std::size_t value = following.find_first_not_of(":= ");
  if (value == std::string_view::npos) return false;
  if (following.substr(0, value).find_first_of(":=") == std::string_view::npos) return false;
  const std::string_view number = following.substr(value, following.find_first_not_of("0123456789:.", value) - value);
  return number.find('0') != std::string_view::npos && number.find_first_of("123456789") == std::string_view::npos;
}

// True if a count of zero follows: "dropped 0 packets".
bool counts_zero(Says says, const std::vector<Word>& words, std::size_t end) {
  const bool countable = says == Says::lost || says == Says::closed || says == Says::late || says == Says::in_vain;
  return countable && words[end - 1].after == '0' && end < words.size() && words[end].text == "0";
}

}  // namespace

struct Meanings::Element {
  WordSet words;
  std::size_t gap = 0;  // at most this many words of any kind may precede the element's word
  bool optional = false, begins = false, ends = false;
  char before = 0;  // the character required right before the word; 0: any
  char after = 0;   // the character required after the word; 0: any; only with '=', the element also matches the name
                    // of a field
};

struct Meanings::Pattern {
  std::vector<Element> elements;
  bool denies = false;  // the pattern itself contains a negation or possibility: "not .. responding"
};

// Finds the patterns that may begin with a word.
struct Meanings::Index {
  std::vector<Pattern> patterns;  // indexed by the number of the entry
  std::unordered_map<std::string, std::vector<std::uint32_t>> by_word;
  std::vector<std::pair<std::string, std::uint32_t>> by_beginning, by_ending;

  // Matches the elements of the pattern, from index `element` on, with the words from index `at` on. Returns the index
  // after the last matched word; 0 if there is no match.
  [[nodiscard]] static std::size_t match(const Pattern& pattern, const std::vector<Word>& words, std::size_t at,
                                         std::size_t element, std::uint32_t clause) {
    if (element == pattern.elements.size()) return at;
    const Element& wanted = pattern.elements[element];
    for (std::size_t i = at; i < words.size() && i <= at + wanted.gap && words[i].clause == clause; ++i) {
      const Word& word = words[i];
      const bool fits =
          word.matches && (!word.key || wanted.after == '=') && (wanted.after == 0 || word.after == wanted.after) &&
          (wanted.before == 0 || word.before == wanted.before) &&
          (!wanted.begins || i == 0 || words[i - 1].clause != clause) && (!wanted.ends || ends_phrase(word)) &&
          (wanted.words.has(word.text) || (!word.node.empty() && wanted.words.has(word.node)));
      if (!fits) continue;
      if (const std::size_t end = match(pattern, words, i + 1, element + 1, clause); end != 0) return end;
    }
    return wanted.optional ? match(pattern, words, at, element + 1, clause) : 0;
  }

  template <typename Take>
  void candidates(std::string_view word, const Take& take) const {
    if (const auto found = by_word.find(std::string(word)); found != by_word.end())
      for (const std::uint32_t number : found->second) take(number);
    for (const auto& [beginning, one] : by_beginning)
      if (word.starts_with(beginning)) take(one);
    for (const auto& [ending, one] : by_ending)
      if (word.ends_with(ending)) take(one);
  }
};

// Parses a pattern; configs/rose-toml.md describes the syntax.
Result<Meanings::Pattern> Meanings::pattern_of(std::string_view text, const Classes& classes) {
  const std::string words = lower_case(text);
  Pattern pattern;
  std::size_t gap = 0;
  for (std::string_view word : parts_of(words, ' ')) {
    if (word == ".." || word == "...") {
      gap = word == ".." ? kGap : kWideGap;
      continue;
    }
    Element element;
    element.gap = pattern.elements.empty() ? 0 : gap;
    gap = 0;
    if (word.ends_with('$')) element.ends = true, word.remove_suffix(1);
    if (word.ends_with('?')) element.optional = true, word.remove_suffix(1);
    if (word.starts_with('^')) element.begins = true, word.remove_prefix(1);
    if (word.starts_with('+')) element.before = '+', word.remove_prefix(1);
    if (word.size() > 1 && std::string_view(":({=").find(word.back()) != std::string_view::npos)
      element.after = word.back(), word.remove_suffix(1);
    for (const std::string_view alternative : parts_of(word, '|')) {
      if (!alternative.starts_with('<')) {
        element.words.add(alternative);
        continue;
      }
      const auto known =
          alternative.ends_with('>') ? classes.find(alternative.substr(1, alternative.size() - 2)) : classes.end();
      if (known == classes.end())
        return fail(ErrorKind::input, fmt::format("words: there are no words '{}'", alternative));
      for (const std::string& of_class : known->second) element.words.add(of_class);
    }
    pattern.elements.push_back(std::move(element));
  }
  for (const Element& element : pattern.elements)
    pattern.denies =
        pattern.denies || std::any_of(element.words.whole.begin(), element.words.whole.end(),
                                      [](const std::string& word) { return denies(word) || is_hedge(word); });
  if (pattern.elements.empty() || pattern.elements.front().optional)
    return fail(ErrorKind::input, "words: they must begin with a word that is not optional");
  return pattern;
}

Result<void> Meanings::add(Entry entry) {
  ROSE_TRY(Pattern pattern, pattern_of(entry.words, classes_));
  const auto number = static_cast<std::uint32_t>(entries_.size());
  const WordSet& first = pattern.elements.front().words;
  for (const std::string& whole_word : first.whole) index_->by_word[whole_word].push_back(number);
  for (const std::string& beginning : first.beginnings) index_->by_beginning.emplace_back(beginning, number);
  for (const std::string& ending : first.endings) index_->by_ending.emplace_back(ending, number);
  index_->patterns.push_back(std::move(pattern));
  entries_.push_back(std::move(entry));
  return {};
}

Result<Meanings> Meanings::parse(std::span<const std::pair<std::string_view, std::string_view>> files) {
  Meanings all;
  all.index_ = std::make_shared<Index>();
  std::vector<std::pair<toml::Value, std::string_view>> roots;
  for (const auto& [name, text] : files) {
    ROSE_TRY(toml::Value root, toml::parse(text, name));
    if (const toml::Member* words = root.find("words"))
      for (const toml::Member& member : words->value.members)
        for (const std::string_view word : parts_of(member.value.text, ' '))
          all.classes_[member.key].emplace_back(word);
    roots.emplace_back(std::move(root), name);
  }
  for (const auto& [root, file] : roots) {
    const toml::Member* list = root.find("meaning");
    if (list == nullptr) continue;
    for (const toml::Value& item : list->value.items) {
      const auto wrong = [&, file = file](std::string_view what) {
        return fail(ErrorKind::input, fmt::format("{}:{}: {}", file, item.place.line, what));
      };
      Entry entry;
      std::string says;
      for (const toml::Member& member : item.members) {
        const std::string& value = member.value.text;
        if (member.key == "says") says = value;
        else if (member.key == "words") entry.words = value;
        else if (member.key == "example") entry.example = value;
        else if (member.key == "source") entry.source = value;
        else if (member.key == "vague") entry.vague = member.value.boolean;
        else if (member.key == "apart") entry.apart = member.value.boolean;
        else if (member.key == "error") entry.number = kernel::errno_number(value).value_or(-1);
        else if (member.key == "operation" || member.key == "clock") entry.name = value;
        else return wrong(fmt::format("unknown key '{}'", member.key));
      }
      const auto kind = std::find(kSays.begin(), kSays.end(), says);
      if (kind == kSays.end()) return wrong(fmt::format("says: '{}' is none of {}", says, fmt::join(kSays, ", ")));
      entry.says = static_cast<Says>(kind - kSays.begin());
      if (entry.says == Says::error && entry.number <= 0) return wrong("error: the name of an error is needed");
      if (Result<void> added = all.add(std::move(entry)); !added) return wrong(added.error().message);
    }
  }
  return all;
}

const Meanings& Meanings::built_in() {
  static const Meanings all = [] {
    Result<Meanings> read = parse(files());
    if (!read) ROSE_BUG(read.error().message.c_str());
    return *std::move(read);
  }();
  return all;
}

namespace {

std::atomic<const Meanings*> g_in_use{nullptr};  // null: built_in()

}  // namespace

const Meanings& Meanings::in_use() {
  const Meanings* own = g_in_use.load();
  return own != nullptr ? *own : built_in();
}

void Meanings::use(const std::vector<Entry>& entries) {
  if (entries.empty()) {
    g_in_use = nullptr;
    return;
  }
  // What is made here is never freed, because statements point to the entries. A process usually reads only one
  // configuration, perhaps several times; it is then made once.
  static std::mutex mutex;
  static auto& made = *new std::map<std::vector<std::string>, const Meanings*>;
  std::vector<std::string> key;
  for (const Entry& entry : entries)
    key.push_back(
        fmt::format("{}\n{}\n{}\n{}\n{}", name_of(entry.says), entry.number, entry.name, entry.vague, entry.words));
  const std::lock_guard lock(mutex);
  const Meanings*& known = made[key];
  if (known == nullptr) {
    auto all = std::make_unique<Meanings>(built_in());
    all->index_ = std::make_shared<Index>(*built_in().index_);
    for (const Entry& entry : entries)
      if (!all->add(entry)) ROSE_BUG("a meaning with a problem is in use");
    known = all.release();
  }
  g_in_use = known;
}

std::string Meanings::problem(const Entry& entry) {
  const Meanings& known = built_in();
  Meanings alone;
  alone.classes_ = known.classes_;
  alone.index_ = std::make_shared<Index>();
  if (auto added = alone.add(entry); !added) return added.error().message;
  if (entry.example.empty()) return {};
  const Sentence sentence(entry.example);
  return alone.has(alone.entries_.front(), sentence) ? "" : "example: it does not have the words";
}

std::vector<Statement> Meanings::read(const Sentence& sentence) const {
  const std::vector<Word>& words = sentence.words();
  std::vector<Statement> found;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].matches) continue;
    const auto take = [&](std::uint32_t number) {
      const Entry& entry = entries_[number];
      const std::size_t end = Index::match(index_->patterns[number], words, i, 0, words[i].clause);
      if (end == 0) return;
      const bool of_fact = entry.says == Says::error || entry.says == Says::operation || entry.says == Says::on_disk ||
                           entry.says == Says::helper || entry.says == Says::no_helper || entry.says == Says::other;
      if (!of_fact && (is_denied(words, i) || is_zero_counter(sentence.low().substr(words[end - 1].end)))) return;
      // "n2 is no longer down": the negation may be between the words of the match.
      if (!of_fact &&
          (counts_zero(entry.says, words, end) || (!index_->patterns[number].denies && is_denied(words, end - 1))))
        return;
      const std::string_view matched = sentence.low().substr(words[i].begin, words[end - 1].end - words[i].begin);
      if (entry.apart && matched.find(' ') == std::string_view::npos) return;
      found.push_back({&entry, words[i].begin, words[end - 1].end, words[i].clause});
    };
    index_->candidates(words[i].text, take);
    if (!words[i].node.empty()) index_->candidates(words[i].node, take);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Statement& a, const Statement& b) { return a.entry < b.entry; });
  std::vector<std::pair<std::size_t, std::size_t>> hidden_spans;
  for (const Statement& statement : found)
    if (statement.entry->says == Says::other) hidden_spans.emplace_back(statement.begin, statement.end);
  std::erase_if(found, [&](const Statement& statement) {
    return statement.entry->says != Says::error &&
           std::any_of(hidden_spans.begin(), hidden_spans.end(),
                       [&](const auto& span) { return statement.begin < span.second && statement.end > span.first; });
  });
  return found;
}

bool Meanings::has(const Entry& entry, const Sentence& sentence) const {
  const Pattern& pattern = index_->patterns[static_cast<std::size_t>(&entry - entries_.data())];
  for (std::size_t i = 0; i < sentence.words().size(); ++i)
    if (sentence.words()[i].matches && Index::match(pattern, sentence.words(), i, 0, sentence.words()[i].clause) != 0)
      return true;
  return false;
}

std::string_view name_of(Says says) { return kSays[static_cast<std::size_t>(says)]; }

std::vector<std::string> says_names() { return {kSays.begin(), kSays.end()}; }

}  // namespace rose::knowledge
