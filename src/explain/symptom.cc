#include "explain/symptom.h"

#include <algorithm>
#include <set>

#include "base/ascii.h"
#include "explain/function_names.h"

namespace rose::explain {
namespace {

// shortest word of a function's name that is considered; a word of the symptom needs one letter more
constexpr std::size_t kLeastLetters = 4;
constexpr std::size_t kFew = 2;         // this many functions may share a word, even if there are few functions
constexpr std::size_t kRarerThan = 10;  // in larger programs, one in this number of functions may share a word

// Splits names into words: "applyAll" and "apply_all" give "apply" and "all"; "HTTPServer" gives "http" and "server".
std::set<std::string> words_of(std::string_view text, std::size_t least) {
  std::set<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (word.size() >= least) words.insert(word);
    word.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool after_lower = i > 0 && is_lower(text[i - 1]);
    const bool before_lower = i + 1 < text.size() && is_lower(text[i + 1]);
    if (!is_alpha(text[i]) || (is_upper(text[i]) && (after_lower || before_lower))) end_word();
    if (is_alpha(text[i])) word += lower_case(text[i]);
  }
  end_word();
  return words;
}

// True for words that may occur in any sentence, so that they identify no function.
bool says_nothing(const std::string& word) {
  static const std::set<std::string> known = {"about", "after", "again", "before", "never",  "other",
                                              "since", "still", "their", "there",  "these",  "those",
                                              "until", "where", "which", "while",  "without"};
  return known.contains(word);
}

// True if one word is the beginning of the other: "watch" and "watchable", "seats" and "seat".
bool share_stem(std::string_view one, std::string_view other) {
  return one.starts_with(other) || other.starts_with(one);
}

}  // namespace

std::map<std::string, Named> named_by(std::string_view symptom, const std::vector<std::string>& functions) {
  // by word of the symptom: the functions whose names contain it
  std::map<std::string, std::map<std::string, bool>> having;
  std::set<std::string> words = words_of(symptom, kLeastLetters + 1);
  std::erase_if(words, says_nothing);
  for (const std::string& function : functions) {
    const std::string key = key_of(function);
    const std::size_t own = key.find_last_of(".:") + 1;  // npos + 1 is 0
    const auto contains = [](std::string_view name, const std::string& word) {
      const std::set<std::string> all = words_of(name, kLeastLetters);
      return std::any_of(all.begin(), all.end(), [&](const std::string& one) { return share_stem(one, word); });
    };
    for (const std::string& word : words)
      if (contains(key, word)) having[word][function] = contains(std::string_view(key).substr(own), word);
  }
  std::map<std::string, Named> named;
  for (const auto& [word, of] : having) {
    if (of.size() > std::max(kFew, functions.size() / kRarerThan)) continue;
    for (const auto& [function, own] : of)
      if (const auto [at, fresh] = named.emplace(function, Named{word, own}); !fresh && own && !at->second.own)
        at->second = {word, own};
  }
  return named;
}

}  // namespace rose::explain
