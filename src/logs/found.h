// Parts of a message that several readers of meaning.cc look for: the error that is named and where, the path, the
// peer, the call.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "logs/meaning.h"

namespace rose::logs {

// The words that name the error, and their position.
struct Found {
  int error = 0;
  std::size_t at = std::string_view::npos;
  std::size_t length = 0;
  bool vague = false;  // only the class of the error: "IO error"

  [[nodiscard]] bool of_space() const;
  [[nodiscard]] bool covers(std::size_t i) const { return at != std::string_view::npos && i >= at && i < at + length; }
};

[[nodiscard]] bool word_char(char c);
// The number there; -1: there is none.
[[nodiscard]] int number_at(std::string_view text, std::size_t at);
// "signal 9", "errno 28", "os error 28": the number behind the words; -1: they are not there. `place`: where the words
// that it stands behind begin.
[[nodiscard]] int number_behind(std::string_view low, std::string_view words, std::size_t* place = nullptr);

// "{error,enospc}": Erlang's atoms, whole words between signs.
[[nodiscard]] Found error_atom(std::string_view low);
// "Can't connect to MySQL server on '10.0.0.2' (111)": a number alone, of a message that says that something failed.
[[nodiscard]] Found error_in_brackets(std::string_view low);
// "ENOSPC" as a word of its own.
[[nodiscard]] Found error_name(std::string_view text);
// "SIGKILL" as a word of its own; 0: none is named.
[[nodiscard]] int signal_name(std::string_view text);

// A line of a stack trace names code, not what it worked on: Java's "\tat x.Y.z(", Python's "  File \"x.py\", line 3".
[[nodiscard]] bool code_line(std::string_view line);
// The call that a message names as a call, in the forms of Go ("write /x: no space left on device"), perror ("fsync:
// ..."), nginx ("pwrite() "/x" failed (28: ..."), Node.js ("ENOSPC: no space left on device, write") and in the JDK's
// native methods, whose call `native` becomes.
[[nodiscard]] Operation named_call(std::string_view low, const Found& error, std::string_view& native);

// The path nearest to the error: quoted, or a word with a slash.
[[nodiscard]] std::string find_path(std::string_view text, const Found& error);
// "10.0.0.1:7000", "[fe80::1]:7000"; the last one of the line: "local -> peer".
[[nodiscard]] std::string find_peer(std::string_view text);

}  // namespace rose::logs
