// Splits a message into the words that the patterns of meanings.h are matched against. Identifiers are split into their
// words ("SocketTimeoutException", "node-left"). "couldn't" and "could not" are the same single word. A node's name or
// address is one word. Paths, URLs and stack frames never match.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rose::knowledge {

// Names and addresses by which messages may mention nodes. The value is true for names of the node that writes the
// message.
using NamesOfNodes = std::unordered_map<std::string, bool>;

// The placeholders in patterns for a node's name: of another node, and of the node that writes the message.
inline constexpr std::string_view kOtherNode = "@node", kOwnNode = "@self";

struct Word {
  std::string_view text;     // in lower case
  std::size_t begin = 0;     // offset into the message
  std::size_t end = 0;       // offset after its last character
  std::uint32_t clause = 0;  // patterns and negations do not extend across clauses
  bool matches = true;       // false: part of a path, an address or a stack frame
  bool key = false;          // part of the name of a setting or field: "timeout=3s"
  char before = 0;           // the character before it; 0: the message begins here
  char after = 0;            // the next character that is not a blank; 0: the line ends
  std::string_view node;     // kOtherNode or kOwnNode if it is a node's name; else ""
};

class Sentence {
 public:
  // Reads the first kMost characters. `nodes` may be null if no node names are known.
  explicit Sentence(std::string_view text, const NamesOfNodes* nodes = nullptr);
  Sentence(const Sentence&) = delete;
  Sentence& operator=(const Sentence&) = delete;

  static constexpr std::size_t kMost = 8000;

  [[nodiscard]] const std::vector<Word>& words() const { return words_; }
  [[nodiscard]] std::string_view low() const { return low_; }  // the message in lower case

 private:
  void read_line(std::size_t begin, std::size_t end);
  void read_compound(std::size_t begin, std::size_t end, bool in_frame);
  bool read_name(std::size_t begin, std::size_t end, bool in_frame);
  void add(std::size_t begin, std::size_t end, bool matches, bool key);
  [[nodiscard]] bool says_what_failed(std::size_t at) const;  // "failed to open the log"
  [[nodiscard]] bool verb_of_end_at(std::size_t at) const;    // "took", "failed"
  [[nodiscard]] char next_char(std::size_t at) const;

  std::string_view text_;
  const NamesOfNodes* nodes_;
  std::string low_;
  std::vector<Word> words_;
  std::uint32_t clause_ = 0;
};

}  // namespace rose::knowledge
