#include "draft/words.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/text.h"
#include "base/utf8.h"

namespace rose::draft {
namespace {

bool is_option(std::string_view word) {
  return word.size() >= 2 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != ':';
}

bool names_option(std::string_view word, const std::vector<std::string>& options) {
  return std::any_of(options.begin(), options.end(), [&](const std::string& option) {
    return word == option || (word.size() > option.size() && word.starts_with(option) && word[option.size()] == '=');
  });
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "${") out += '$';
    out += text[i];
  }
  return out;
}

bool fits_toml(std::string_view text) { return is_utf8(text) && text.find('\0') == std::string_view::npos; }

CommandLine read_command_line(std::string_view bytes) {
  CommandLine line;
  if (bytes.empty()) return line;
  // Each word ends in a NUL, except possibly the last one if the text was cut.
  if (bytes.back() == '\0') bytes.remove_suffix(1);
  line.words = split(bytes, '\0');
  // A title, which may contain spaces, overwrites the first word and the words after it. The rest is filled with NULs.
  const std::string& first = line.words.front();
  const bool alone =
      std::all_of(line.words.begin() + 1, line.words.end(), [](const std::string& word) { return word.empty(); });
  if (alone && first.find(' ') != std::string::npos) {
    line.title = true;
    line.words.resize(1);
    while (!line.words[0].empty() && line.words[0].back() == ' ') line.words[0].pop_back();
  }
  return line;
}

Split split_word(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return {{}, word};
  // The part before '=' must be a possible name: "http://x?a=b" is a value.
  const std::string_view name = word.substr(0, equals);
  const bool shape = std::all_of(name.begin(), name.end(), is_name_char);
  if (!shape) return {{}, word};
  return {word.substr(0, equals + 1), word.substr(equals + 1)};
}

Words::Words(std::vector<std::string> words) {
  for (std::string& word : words) words_.push_back({escaped(word), false});
}

std::vector<std::string> Words::texts() const {
  std::vector<std::string> texts;
  for (const Word& word : words_) texts.push_back(word.text);
  return texts;
}

std::string Words::option_of(std::size_t i) const {
  std::string_view option = split_word(words_[i].text).option;
  if (option.empty() && i > 0 && is_option(words_[i - 1].text) && split_word(words_[i - 1].text).option.empty())
    option = words_[i - 1].text;
  return lower_case(option);
}

bool Words::has(const std::vector<std::string>& options) const {
  return std::any_of(words_.begin(), words_.end(), [&](const Word& word) { return names_option(word.text, options); });
}

std::string Words::value(const std::vector<std::string>& options) const {
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if (!names_option(words_[i].text, options)) continue;
    const Split split = split_word(words_[i].text);
    if (!split.option.empty()) return std::string(split.value);
    return i + 1 < words_.size() ? words_[i + 1].text : "";
  }
  return "";
}

bool Words::drop(const std::vector<std::string>& options, std::size_t most_values) {
  bool found = false;
  for (std::size_t i = 0; i < words_.size();) {
    if (!names_option(words_[i].text, options)) {
      ++i;
      continue;
    }
    found = true;
    std::size_t end = i + 1;
    if (split_word(words_[i].text).option.empty())
      while (end < words_.size() && end - i <= most_values && !is_option(words_[end].text)) ++end;
    words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(i), words_.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return found;
}

void Words::put(const std::vector<std::string>& options, std::string_view spelling, std::string text) {
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if (!names_option(words_[i].text, options)) continue;
    const Split split = split_word(words_[i].text);
    if (!split.option.empty()) {
      words_[i] = {std::string(split.option) + text, true};
    } else {
      if (i + 1 == words_.size()) words_.emplace_back();
      words_[i + 1] = {std::move(text), true};
    }
    return;
  }
  if (spelling.ends_with('=')) {
    append(std::string(spelling) + text);
  } else {
    append(std::string(spelling));
    append(std::move(text));
  }
}

void Words::prepend(std::vector<std::string> texts) {
  std::vector<Word> front;
  for (std::string& text : texts) front.push_back({std::move(text), true});
  words_.insert(words_.begin(), std::make_move_iterator(front.begin()), std::make_move_iterator(front.end()));
}

}  // namespace rose::draft
