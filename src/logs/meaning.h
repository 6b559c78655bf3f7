// What the words of a message say happened: a call that failed and how, a peer that is lost, a process that was killed
// or ended, a stop. A table of the words that systems use; what it does not know stays unsaid. Pure, one pass, no
// allocation to speak of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "knowledge/sentence.h"
#include "logs/clock_words.h"

namespace rose::logs {

enum class Operation : std::uint8_t {
  unknown,
  open,
  read,
  write,
  sync,
  truncate,
  rename,
  unlink,
  mkdir,
  connect,
  accept,
  listen,
  send,
  receive,
  spawn,
  memory,
  socket,
  watch,
  lock
};

inline constexpr std::int64_t kLeastStood = 500'000'000;  // ns: shorter standstills are everyday

struct Meaning {
  int error = 0;  // errno that is named, by its name, number or text, or by an exception that stands for one; 0: none
  bool vague = false;  // the error is what such words mostly stand for: "disk failed"
  Operation operation = Operation::unknown;
  bool exact =
      false;  // the message names the call itself, not what it was for: "write /x: ...", "write() failed (28: ...)"
  std::string path;  // that the error is about; "" none
  std::string peer;  // "ip:port", "ip"; "" none
  int signal = 0;    // that is said to have ended something
  int exit_code = -1;
  bool ended = false;      // a process was ended, or ends itself, by `signal` or `exit_code` or in a panic
  bool helper = false;     // ended: a process that the one that writes had started
  bool panic = false;      // the one that writes ends: a panic, an abort, an uncaught exception
  bool traceback = false;  // Python's, of an exception: if it was not caught, this was the last output
  bool out_of_memory = false;
  bool lost = false;          // a peer is gone, silent or refuses
  std::size_t lost_at = 0;    // lost: behind the words that say so; 0: an error does
  bool cut_off = false;       // its own network interface is down
  bool unresolved = false;    // a name was not resolved: the one that answers for names may be what is missed
  bool outcast = false;       // others took the one that writes for gone
  bool closed = false;        // lost: its machine answered, as when its process ends; one that is cut off says nothing
  bool of_peer = false;       // the error is not the writer's: another node reported it
  bool failed = false;        // something with a file was tried in vain, and why is not said: `error` is 0
  bool late = false;          // a timeout, a missed heartbeat, a slow disk, a stopped clock: something waited
  std::int64_t stood_ns = 0;  // it stood still for so long, as it says itself; 0: no word of that
  std::int64_t slow_disk_ns = 0;    // a disk, or a call that waits for one, took so long; 0: no word of that
  std::optional<ClockWords> clock;  // one is said to be wrong
  std::string_view call;     // the system call behind a native method of the JDK that threw the error; "" none is named
  bool torn = false;         // what was read from a file is not what had been written
  bool unclean = false;      // when it ended last, it had not stopped in order
  bool reunited = false;     // nodes that had been apart are together again
  bool stopping = false;     // an orderly stop begins or is done
  std::size_t stops_at = 0;  // stopping: behind the words that say so
  bool gave_up = false;      // the one that writes ends, for what it tells went wrong
  bool starting = false;     // a program begins
  bool serving = false;      // it can be reached from now on

  [[nodiscard]] bool says_something() const {
    return error != 0 || ended || panic || gave_up || traceback || lost || late || cut_off || outcast || unresolved ||
           failed || torn || unclean || reunited || out_of_memory || stood_ns >= kLeastStood || slow_disk_ns > 0 ||
           clock;
  }
};

// `nodes`: names and addresses of nodes; null: none are known.
[[nodiscard]] Meaning read_meaning(std::string_view text, const knowledge::NamesOfNodes* nodes = nullptr);

// The system calls that return this error when they do that, likeliest first (what write, open, fsync, connect, ...
// return in practice); empty when none can be injected sensibly. `exact`: only those that the operation makes.
[[nodiscard]] std::vector<std::string_view> calls_that_fail(int error, Operation operation, bool exact = false);
// The same where a message says that this failed, and not how.
[[nodiscard]] std::vector<std::string_view> calls_of_operation(Operation operation);
// The errors that a call returns in practice, most frequent first: what is tried where a log names none.
[[nodiscard]] std::vector<int> errors_of(std::string_view syscall);

}  // namespace rose::logs
