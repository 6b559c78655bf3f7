// The reader behind read_meaning(). Its functions are in meaning.cc, message_errors.cc (errors and operations),
// message_peers.cc (other nodes) and message_times.cc (durations).
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "knowledge/meanings.h"
#include "logs/found.h"
#include "logs/meaning.h"

namespace rose::logs {

// A duration that a message states. `bound`: it is a limit ("expected less than 1s", "limit 3s", "> 5s") and was not
// measured.
struct Stated {
  std::size_t at = 0;
  double ns = 0;
  bool bound = false;
};

[[nodiscard]] inline bool mentions(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// Reads the meaning of one message.
class MessageReader {
 public:
  MessageReader(std::string_view text, const knowledge::NamesOfNodes* nodes)
      : text_(text.substr(0, knowledge::Sentence::kMost)),
        sentence_(text_, nodes),
        statements_(knowledge::Meanings::in_use().read(sentence_)) {}

  Meaning read();

 private:
  [[nodiscard]] bool has(knowledge::Says what) const { return first(what) != nullptr; }
  // The first match of a pattern with this meaning in the message; null if there is none.
  [[nodiscard]] const knowledge::Statement* first(knowledge::Says what) const {
    const knowledge::Statement* best = nullptr;
    for (const knowledge::Statement& other_statement : statements_)
      if (other_statement.entry->says == what && (best == nullptr || other_statement.begin < best->begin))
        best = &other_statement;
    return best;
  }
  [[nodiscard]] std::string_view low() const { return sentence_.low(); }

  void read_lost();
  [[nodiscard]] bool precedes_node_name(const knowledge::Statement& statement) const;
  void read_end();
  void read_failure();
  void read_in_vain();
  [[nodiscard]] bool names_another_node() const;
  [[nodiscard]] bool names_lock() const;
  [[nodiscard]] bool has_failed_attempt() const;
  [[nodiscard]] bool is_outcast() const;
  void conclude_from_error();
  [[nodiscard]] Found find_error() const;
  [[nodiscard]] Found stated_error(bool vague) const;
  [[nodiscard]] Found error_before_failure() const;
  [[nodiscard]] Operation find_operation(std::size_t from, const Found& error) const;
  [[nodiscard]] bool reports_start() const;
  [[nodiscard]] bool is_relayed(const knowledge::Statement& statement) const;
  [[nodiscard]] bool is_answered(std::size_t begin) const;
  void read_stop();
  [[nodiscard]] std::vector<Stated> spans() const;
  [[nodiscard]] std::int64_t own_pause();
  [[nodiscard]] std::int64_t duration_after(std::size_t begin) const;
  [[nodiscard]] bool is_of_another_node(const knowledge::Statement& statement) const;
  [[nodiscard]] std::int64_t other_pause() const;
  [[nodiscard]] std::int64_t slow_disk() const;
  [[nodiscard]] int exit_code() const;

  std::string_view text_;
  knowledge::Sentence sentence_;
  std::vector<knowledge::Statement> statements_;
  Meaning meaning_;
  Found error_;
};

}  // namespace rose::logs
