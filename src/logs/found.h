// Finds the parts of a message from which MessageReader derives the meaning: the error and its position, the path, the
// peer and the call.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "logs/meaning.h"

namespace rose::logs {

// One more than the largest errno of the kernel (include/uapi/asm-generic/errno.h).
inline constexpr int kErrnoEnd = 134;

// The words that name the error, and their position in the message.
struct Found {
  int error = 0;
  std::size_t at = std::string_view::npos;
  std::size_t length = 0;
  bool vague = false;  // only a class of errors is named: "IO error"

  [[nodiscard]] bool is_disk_full() const;
  [[nodiscard]] bool covers(std::size_t i) const { return at != std::string_view::npos && i >= at && i < at + length; }
};

[[nodiscard]] bool word_char(char c);
// The decimal number at `at`. -1 if there is none.
[[nodiscard]] int number_at(std::string_view text, std::size_t at);
// The number after the words: 9 for "signal 9", 28 for "errno 28" and "os error 28". -1 if the words, or the number,
// are missing. `place` receives the offset at which the words begin.
[[nodiscard]] int number_after(std::string_view low, std::string_view words, std::size_t* place = nullptr);

// An atom of Erlang that names an error, as in "{error,enospc}". It must be a whole word between punctuation
// characters.
[[nodiscard]] Found error_atom(std::string_view low);
// An error number alone in parentheses: "Can't connect to MySQL server on '10.0.0.2' (111)". Use this function only for
// messages that report a failed attempt, because numbers with another meaning look the same. Numbers before the offset
// `from` do not count: in "peer (1) failed", the number is that of the peer.
[[nodiscard]] Found error_in_brackets(std::string_view low, std::size_t from);
// An error number after a comma at the end of a message: "failed to connect to 10.0.0.2:9444, error 111".
[[nodiscard]] Found error_at_end(std::string_view low);
// The name of an error as a word: "ENOSPC".
[[nodiscard]] Found error_name(std::string_view text);
// The signal whose name is a word of the message: "SIGKILL"; 0 if there is none.
[[nodiscard]] int signal_name(std::string_view text);
// The signal that is named in words: "exit signal Segmentation fault", "killed by KILL signal"; 0 if there is none.
[[nodiscard]] int signal_words(std::string_view low);

// True for a line of a stack trace: Java's "\tat x.Y.z(", Python's "  File \"x.py\", line 3". Paths in such a line are
// those of source files, not of the file for which the operation failed.
[[nodiscard]] bool is_code_line(std::string_view line);
// The operation of a call that the message names in the form of Go ("write /x: no space left on device"), perror
// ("fsync: ..."), nginx ("pwrite() "/x" failed (28: ...") or Node.js ("ENOSPC: no space left on device, write"), or by
// a native method of the JDK. In the last case, `native` receives the system call that the method makes.
[[nodiscard]] Operation named_call(std::string_view low, const Found& error, std::string_view& native);

// The path nearest to the error. It is in quotes, or it is a word with a slash. "" if there is none.
[[nodiscard]] std::string find_path(std::string_view text, const Found& error);
// The last address in the message: "10.0.0.1:7000", "10.0.0.1". If a message contains two addresses ("local -> peer"),
// the last one is usually that of the peer. "" if there is none.
[[nodiscard]] std::string find_peer(std::string_view text);

}  // namespace rose::logs
