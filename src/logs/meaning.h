// Reads what a message reports: a failed call and its error, a missing peer, a process that was killed or ended, a
// stop. Uses the patterns of src/knowledge; for a message that no pattern matches, the Meaning is empty. Pure. Reads
// the text once and makes few allocations.
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
  lock,
  set_mode,
  set_owner
};

inline constexpr std::int64_t kLeastPause = 500'000'000;  // ns: shorter pauses are normal

// "The writer" is the node that logs the message.
struct Meaning {
  int error = 0;  // an errno, which the message gives by name, number or text, or by a corresponding exception; 0: none
  bool vague = false;  // the words mean a class of errors ("disk failed"), and `error` is its most likely member
  Operation operation = Operation::unknown;
  // The message names the call itself, and not only its purpose: "write /x: ...", "write() failed (28: ...)".
  bool exact = false;
  std::string path;  // the file that the error concerns; "": none
  std::string peer;  // "ip:port" or "ip"; "": none
  int signal = 0;    // the signal that ended a process
  int exit_code = -1;
  bool ended = false;   // a process was ended or ends itself; `signal`, `exit_code` or `panic` say how
  bool helper = false;  // ended: the process is a child of the writer
  bool main = false;    // ended: the message says that the process is a service, a container or a main process
  bool panic = false;   // the writer ends by a panic, an abort or an uncaught exception
  // the message contains a traceback of Python; if the exception was not caught, this is the last output
  bool traceback = false;
  bool out_of_memory = false;
  bool lost = false;  // a peer is missing, silent or refuses connections
  // lost: the offset after the words that report the missing peer; 0: no words, only an error shows that it is missing
  std::size_t lost_end = 0;
  bool cut_off = false;     // the network interface of the writer is down, or its kernel drops packets
  bool unresolved = false;  // a host name was not resolved: the missing peer may be the name server
  bool outcast = false;     // the other nodes excluded the writer from the cluster
  // lost: the machine of the peer answered, as it does when the peer's process ends. The machine of a partitioned peer
  // does not answer.
  bool closed = false;
  bool of_peer = false;  // the error occurred on another node, which sent it to the writer
  bool failed = false;   // an operation on a file failed, and no reason is stated; `error` is 0
  bool late = false;  // an action or a wait took too long: a timeout, a missed heartbeat, a slow disk, a stopped clock
  std::int64_t own_pause_ns = 0;  // how long the writer was paused, as the message states it; 0: no pause is reported
  // the message states no duration ("resumed from suspend"), so own_pause_ns is a default
  bool pause_unstated = false;
  std::int64_t other_pause_ns = 0;  // how long the writer, a manager, suspended another node; 0: it suspended none
  std::int64_t slow_disk_ns = 0;    // duration of the disk operation that is reported as slow; 0: none is reported
  std::optional<ClockWords> clock;  // set if a clock is reported as wrong
  // the system call that a native method of the JDK makes, if the message shows that this method threw; "": unknown
  std::string_view call;
  bool torn = false;         // the data of a file are incomplete or damaged
  bool unclean = false;      // the writer's previous process did not shut down cleanly
  bool divided = false;      // nodes on both sides of a partition run
  bool reunited = false;     // partitioned nodes are connected again
  bool stopping = false;     // an orderly stop begins, or has ended
  std::size_t stop_end = 0;  // the offset after the words that report a stop; 0: no stop is reported
  bool gave_up = false;      // the writer ends because of a failure that the message states
  bool starting = false;     // a program starts
  bool serving = false;      // the writer accepts requests from now on

  [[nodiscard]] bool reports_anything() const {
    return error != 0 || ended || panic || gave_up || traceback || lost || late || cut_off || outcast || unresolved ||
           failed || torn || unclean || divided || reunited || out_of_memory || own_pause_ns >= kLeastPause ||
           other_pause_ns > 0 || slow_disk_ns > 0 || clock;
  }
};

// `nodes`: names and addresses of nodes; null if none are known.
[[nodiscard]] Meaning read_meaning(std::string_view text, const knowledge::NamesOfNodes* nodes = nullptr);

// The system calls that return this error in practice during this operation, most likely first. Empty if it makes no
// sense to inject the error into any call. `exact`: only the calls that perform the operation itself.
[[nodiscard]] std::vector<std::string_view> calls_that_fail(int error, Operation operation, bool exact = false);
// The system calls that perform an operation. Used for messages that report its failure but name no error.
[[nodiscard]] std::vector<std::string_view> calls_of_operation(Operation operation);
// The errors that a call returns in practice, most frequent first. Used if the log names no error.
[[nodiscard]] std::vector<int> errors_of(std::string_view syscall);

}  // namespace rose::logs
