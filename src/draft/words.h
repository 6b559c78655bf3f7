// Splits command lines into words, and distinguishes options from values. Options can be changed while the other words
// stay as they are. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rose::draft {

// Escapes "${" for rose.toml: "$${".
[[nodiscard]] std::string escaped(std::string_view text);

// True if rose.toml can contain it: UTF-8 without NUL.
[[nodiscard]] bool fits_toml(std::string_view text);

// /proc/PID/cmdline as words. `title`: the program has overwritten it, so it is no longer a command line.
struct CommandLine {
  std::vector<std::string> words;
  bool title = false;
};
[[nodiscard]] CommandLine read_command_line(std::string_view bytes);

// A word that may contain an option and its value: "--dir=/x", "-Ddir=/x", "dir=/x".
struct Split {
  std::string_view option;  // including the '='; "" if it is only a value
  std::string_view value;
};
[[nodiscard]] Split split_word(std::string_view word);

class Words {
 public:
  Words() = default;
  explicit Words(std::vector<std::string> words);

  struct Word {
    std::string text;   // as written in rose.toml, with placeholders
    bool done = false;  // inserted by rose, so it is not examined again
  };

  [[nodiscard]] bool empty() const { return words_.empty(); }
  [[nodiscard]] std::size_t size() const { return words_.size(); }
  [[nodiscard]] const Word& operator[](std::size_t i) const { return words_[i]; }
  [[nodiscard]] std::vector<std::string> texts() const;
  void set(std::size_t i, std::string text, bool done = true) { words_[i] = {std::move(text), done}; }

  // The name of the value at `i`, in lower case: the option in the same word, or the previous word if that is an
  // option.
  [[nodiscard]] std::string option_of(std::size_t i) const;

  // Options whose value is the next word or follows '='. `options` lists the spellings: {"--port", "-p"}.
  [[nodiscard]] bool has(const std::vector<std::string>& options) const;
  [[nodiscard]] std::string value(const std::vector<std::string>& options) const;  // "" if absent
  // Removes an option with up to `most_values` values (a word that starts with '-' and no digit ends them). Returns
  // false if it was absent.
  bool drop(const std::vector<std::string>& options, std::size_t most_values);
  // Replaces the option's value by `text`, or appends `spelling` (which may end in '=') and `text`.
  void put(const std::vector<std::string>& options, std::string_view spelling, std::string text);
  void append(std::string text) { words_.push_back({std::move(text), true}); }
  void prepend(std::vector<std::string> texts);

 private:
  std::vector<Word> words_;
};

}  // namespace rose::draft
