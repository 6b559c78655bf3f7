// The words of a message, as the patterns of meanings.h are matched against them. Names in code and settings are cut
// into their words ("SocketTimeoutException", "node-left"), "couldn't" and "could not" are one word, and paths, URLs
// and stack frames are no words at all. A name or address of a node is one word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rose::knowledge {

// Names and addresses by which messages may speak of nodes; true: of the one that writes.
using NamesOfNodes = std::unordered_map<std::string, bool>;

// What patterns have for a node's name: for that of another one than the one that writes, and of that one itself.
inline constexpr std::string_view kOtherNode = "@node", kOwnNode = "@self";

struct Word {
  std::string_view text;     // in small letters
  std::size_t begin = 0;     // in the message
  std::size_t end = 0;       // behind it
  std::uint32_t clause = 0;  // patterns and negations do not reach into the next one
  bool matches = true;       // false: part of a path, an address or a stack frame
  bool key = false;          // of a setting's or field's name: "timeout=3s"
  char before = 0;           // the character before it; 0: the message begins
  char after = 0;            // the next character that is no blank; 0: the line ends
  std::string_view node;     // kOtherNode or kOwnNode, of which it is a name; "" it is none
};

class Sentence {
 public:
  // Reads the first `kMost` characters. `nodes`: null: none are known.
  explicit Sentence(std::string_view text, const NamesOfNodes* nodes = nullptr);
  Sentence(const Sentence&) = delete;
  Sentence& operator=(const Sentence&) = delete;

  static constexpr std::size_t kMost = 8000;

  [[nodiscard]] const std::vector<Word>& words() const { return words_; }
  [[nodiscard]] std::string_view low() const { return low_; }  // the message in small letters

 private:
  void read_line(std::size_t begin, std::size_t end);
  void read_compound(std::size_t begin, std::size_t end, bool in_frame);
  bool read_name(std::size_t begin, std::size_t end, bool in_frame);
  void add(std::size_t begin, std::size_t end, bool matches, bool key);
  [[nodiscard]] char behind(std::size_t at) const;

  std::string_view text_;
  const NamesOfNodes* nodes_;
  std::string low_;
  std::vector<Word> words_;
  std::uint32_t clause_ = 0;
};

}  // namespace rose::knowledge
