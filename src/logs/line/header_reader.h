// The reader behind read_header(). Its functions are in header.cc, header_brackets.cc and header_words.cc.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "logs/line/form.h"

namespace rose::logs {

// Parses the header of one line from left to right. Each step consumes one token, which is a time, a level, a bracket,
// a separator or a name.
class HeaderReader {
 public:
  HeaderReader(std::string_view line, Parts& parts, std::string* layout)
      : line_(line), parts_(parts), layout_(layout) {}

  bool read();

 private:
  // Appends a description of the consumed token to the layout.
  void describe(std::string_view what, char open = 0, char close = 0);

  // Consumes one token of the header. Returns false if the message begins here.
  bool step();

  // Consumes a timestamp, if one begins here.
  bool time_here();

  // Consumes a timestamp between equal marks at the beginning of the line: "{2026-01-02T03:04:05.678Z} message",
  // "~~ 03:04:05 ~~ message", "*1767323045.678* message".
  bool marked_time();

  // Consumes a bracket and its content. Returns false if the bracket is not part of a header.
  bool bracket(char open, char close);

  // Assigns the content of a bracket to a time, a level, a number, a position, a logger or a thread; these are tried in
  // this order. A bracket belongs to the message if nothing in it is recognised.
  bool content(std::string_view inside, char open, char close);

  // Parses what follows the time in the same bracket: " INFO  module", ": INFO/MainProcess", " #123".
  void inside_time(std::string_view rest);

  // "4242:4243:0311/094000.123:ERROR:store.cc(88)" in one bracket: Chromium.
  bool numbers_and_time(std::string_view inside);
  // "I 2026-01-02 03:04:05.678 store" in one bracket: Tornado, Jupyter, SiriDB.
  bool level_and_time(std::string_view inside);

  // "    12.345678": the kernel's time since boot.
  bool since_boot(std::string_view inside);

  static bool erlang_process(std::string_view inside);

  // ZooKeeper writes the class after the thread: "[QuorumPeer[myid=2](plain=...):QuorumPeer@917]",
  // "[main:QuorumPeerConfig@177]".
  void thread(std::string_view inside);

  // Consumes a separator ('-', '|', ':'), or the character by which Redis marks the level.
  bool sign();

  // NLog: "time|LEVEL|logger|message".
  bool level_between_bars();

  // True if "name - " follows.
  [[nodiscard]] bool name_and_dash() const;

  // True if one of the two words from `from` on is a level. Then a word before them is part of the header, too.
  [[nodiscard]] bool level_follows(std::size_t from) const;

  // Consumes a word outside brackets. Returns false if the word belongs to the message.
  bool word();

  void assign_name(std::string_view name);

  [[nodiscard]] bool tab_separated(std::size_t end) const;
  // True if a colon follows; blanks may precede it: "logger      : message".
  [[nodiscard]] bool next_is_colon(std::size_t end) const;
  [[nodiscard]] bool dotted_and_colon_follows(std::size_t end) const;
  [[nodiscard]] bool name_before_dash(std::string_view name, std::size_t end) const;
  // True if the word is a level, and not the beginning of a sentence.
  bool level_word(std::string_view name, bool colon, bool just_timed, std::size_t end);
  static bool all_upper(std::string_view name);
  [[nodiscard]] bool level_like_mongo(std::size_t end) const;
  bool postgres_word(std::string_view name, bool colon);

  // Consumes a word before the timestamp: a name after a level ("INFO main 2024-..."), Redis' process and role
  // ("237:M"), the letter with which a line of Ruby's logger begins ("I,"), or the name of a program.
  bool before_time(std::string_view part, std::size_t end);

  // Consumes the name or number of the program that some loggers write before the timestamp.
  bool program_before_time(std::string_view part, std::size_t end);

  // Parses the fields between '|'. ActiveMQ writes logger and thread after the message. Other loggers, such as loguru,
  // write the names before it: "time | LEVEL | 271 | module:function:line | message".
  bool pipe_word();

  // Kafka writes the logger at the end: "message (kafka.server.KafkaServer)".
  void read_trailing_logger();

  std::string_view line_;
  Parts& parts_;
  std::string* layout_;
  std::size_t at_ = 0;
  // the content of a bracket at the end of the line that was read as the name of a thread; it may be the message
  // instead
  std::string_view last_bracket_;
  bool over_ = false;          // the header is complete
  bool strong_level_ = false;  // the level has a form that suffices for a header without a timestamp
  bool just_timed_ = false;
  bool redis_ = false, ceph_ = false, pipes_ = false;
};

}  // namespace rose::logs
