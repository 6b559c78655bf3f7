// Command lines as words whose options are told apart from their values, and changed without losing
// what was there. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rose::draft {

// "${" as rose.toml wants it: "$${".
[[nodiscard]] std::string escaped(std::string_view text);

// rose.toml can hold it: UTF-8 without NUL.
[[nodiscard]] bool fits_toml(std::string_view text);

// /proc/PID/cmdline as words. Programs may write over it: `title` says that it is no command line any more.
struct CommandLine {
  std::vector<std::string> words;
  bool title = false;
};
[[nodiscard]] CommandLine read_command_line(std::string_view bytes);

// A word may be an option with its value: "--dir=/x", "-Ddir=/x", "dir=/x".
struct Split {
  std::string_view option;  // up to and with the '='; "" when it is a value alone
  std::string_view value;
};
[[nodiscard]] Split split_word(std::string_view word);

class Words {
 public:
  Words() = default;
  explicit Words(std::vector<std::string> words);

  struct Word {
    std::string text;   // as rose.toml will have it, placeholders included
    bool done = false;  // ours: not to be looked at again
  };

  [[nodiscard]] bool empty() const { return words_.empty(); }
  [[nodiscard]] std::size_t size() const { return words_.size(); }
  [[nodiscard]] const Word& operator[](std::size_t i) const { return words_[i]; }
  [[nodiscard]] std::vector<std::string> texts() const;
  void set(std::size_t i, std::string text, bool done = true) { words_[i] = {std::move(text), done}; }

  // What names the value at `i`: the option of the same word, or the word before when that is an option. Lower case.
  [[nodiscard]] std::string option_of(std::size_t i) const;

  // Options whose value is the next word or follows a '='. `options` are the spellings: {"--port", "-p"}.
  [[nodiscard]] bool has(const std::vector<std::string>& options) const;
  [[nodiscard]] std::string value(const std::vector<std::string>& options) const;  // "" when absent
  // Takes an option out, with the values that follow (a word that begins with '-' and no digit ends them). False: was
  // not there.
  bool drop(const std::vector<std::string>& options, std::size_t most_values);
  // Puts `text` in place of its value, or appends `spelling` (which may end in '=') and `text`.
  void put(const std::vector<std::string>& options, std::string_view spelling, std::string text);
  void append(std::string text) { words_.push_back({std::move(text), true}); }
  void prepend(std::vector<std::string> texts);

 private:
  std::vector<Word> words_;
};

}  // namespace rose::draft
