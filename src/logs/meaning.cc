#include "logs/meaning.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "kernel/syscalls.h"
#include "logs/message_reader.h"

namespace rose::logs {
namespace {

using knowledge::Says;
using knowledge::Statement;

bool on_files(Operation operation) {
  switch (operation) {
    case Operation::open:
    case Operation::read:
    case Operation::write:
    case Operation::sync:
    case Operation::truncate:
    case Operation::rename:
    case Operation::unlink:
    case Operation::mkdir:
    case Operation::set_mode:
    case Operation::set_owner: return true;
    default: return false;
  }
}

}  // namespace

// True if the message reports the start of a program. Such words do not count in the value of a field, because the
// value may describe something else: "status = started". "version" counts only if a version number follows.
bool MessageReader::reports_start() const {
  return std::any_of(statements_.begin(), statements_.end(), [&](const Statement& statement) {
    if (statement.entry->says != Says::starting) return false;
    std::string_view before = low().substr(0, statement.begin);
    while (!before.empty() && (before.back() == ' ' || before.back() == '"')) before.remove_suffix(1);
    if (before.ends_with('=')) return false;
    // The words do not count as a part of a longer identifier: "starting_partitioned_network".
    if (statement.end < low().size() && (low()[statement.end] == '_' || low()[statement.end] == '-')) return false;
    if (!statement.entry->words.starts_with("version")) return true;
    // The version of a program has several parts, "7.0.0". The versions of blocks, protocols and files have one part.
    const std::size_t digit = low().find_first_of("0123456789", statement.end);
    if (digit == std::string_view::npos || digit > statement.end + 4) return false;
    const std::size_t following = low().find_first_not_of("0123456789", digit);
    return following != std::string_view::npos && low()[following] == '.';
  });
}

void MessageReader::read_stop() {
  bool relayed = false;
  for (const Statement& statement : statements_) {
    if (statement.entry->says != Says::stopping) continue;
    if (is_relayed(statement)) relayed = true;
    else if (meaning_.stop_end == 0 || statement.end < meaning_.stop_end) meaning_.stop_end = statement.end;
  }
  const bool stopping = meaning_.stop_end != 0;
  meaning_.gave_up = stopping && (meaning_.error != 0 || has(Says::in_vain) || has(Says::gave_up));
  meaning_.stopping = stopping && !meaning_.gave_up;
  if (relayed && !stopping) meaning_.lost = meaning_.closed = true;
}

int MessageReader::exit_code() const {
  for (const std::string_view words :
       {"exit code", "exit status", "exitcode", "exited with code", "exited with status", "exited with exit code",
        "zero status", "with status", "with code", "exited (", "status=", "code"})
    if (const int code = number_after(low(), words); code > 0 && code < 256) return code;
  return -1;
}

// Reads how a process ended: by a signal, with an exit code, or by a kill without a stated signal.
void MessageReader::read_end() {
  int signal = signal_name(text_);
  if (signal == 0) signal = std::max(0, number_after(low(), "signal"));
  const bool gone = has(Says::gone);
  if (signal == 0 && gone) signal = signal_words(low());
  if (signal == 0 && mentions(low(), {"code=killed", "code=dumped"}))
    signal = std::max(0, number_after(low(), "status="));
  if (gone && signal > 0 && signal < 65 && signal != SIGCHLD) {
    meaning_.ended = true;
    meaning_.signal = signal;
  } else if (const int code = gone ? exit_code() : -1; code > 0) {
    meaning_.ended = true;
    meaning_.exit_code = code;
    if (code == 128 + SIGKILL || code == 128 + SIGTERM) meaning_.signal = code - 128;
    if (code == SIGKILL) meaning_.signal = code;  // the code is the raw status that wait() returns
  }
  if (!meaning_.ended && has(Says::sigkill)) {
    meaning_.ended = true;
    meaning_.signal = signal > 0 && signal < 65 ? signal : SIGKILL;
  }
  meaning_.main = meaning_.ended && has(Says::no_helper);
  meaning_.helper = meaning_.ended && has(Says::helper) && !meaning_.main;
  // In "server process (PID 88) was terminated by signal 6: Aborted", a child ended, and the writer itself survives.
  if (meaning_.helper || meaning_.out_of_memory) meaning_.panic = false;
  if (meaning_.out_of_memory) {
    meaning_.ended = true;
    meaning_.signal = SIGKILL;
  }
}

// Reads the peer, the operation and the path of a failed call.
void MessageReader::read_failure() {
  meaning_.peer = find_peer(text_);
  // Python and Node.js print both paths of a rename: "[Errno 18] ...: 'a' -> 'b'".
  meaning_.operation =
      low().find("' -> '") != std::string_view::npos ? Operation::rename : named_call(low(), error_, meaning_.call);
  meaning_.exact = meaning_.operation != Operation::unknown;
  // If the error's number precedes the description of what failed, the operation follows the number.
  const bool before = !meaning_.exact && error_.error != 0 && low()[error_.at] == '[';
  if (before) meaning_.operation = find_operation(error_.at, error_);
  if (!meaning_.exact && meaning_.operation == Operation::unknown) meaning_.operation = find_operation(0, error_);
  if (meaning_.error == EAGAIN && names_lock()) meaning_.operation = Operation::lock;
  meaning_.path = find_path(text_, error_);
  if (meaning_.operation == Operation::accept) meaning_.path.clear();  // it is the address of a Unix socket
  // A connection has no path. If there is a path, the call that exceeded the limit of descriptors opened that file.
  if (meaning_.operation == Operation::unknown && !meaning_.path.empty() &&
      (meaning_.error == EMFILE || meaning_.error == ENFILE))
    meaning_.operation = Operation::open;
}

// Reads a failure of which the message states no error. If several attempts are reported as failed, the last one is the
// failed call: "Error saving the database, unable to open x.new".
void MessageReader::read_in_vain() {
  std::size_t last = 0;
  for (const Statement& statement : statements_)
    if (statement.entry->says == Says::in_vain) last = std::max(last, statement.begin);
  meaning_.operation = find_operation(last, {});
  if (meaning_.operation == Operation::unknown) meaning_.operation = find_operation(0, {});
  meaning_.path = find_path(text_, error_);
  const std::string peer = find_peer(text_);
  meaning_.failed = on_files(meaning_.operation) && peer.empty() && (!meaning_.path.empty() || has(Says::on_disk));
  // The failed attempt concerned this peer: "failure trying primary 10.0.0.1#53", "cannot forward the request to n2".
  if (!peer.empty() || (!meaning_.failed && names_another_node())) {
    meaning_.lost = true;
    meaning_.peer = peer;
  }
}

// True if the message reports a failed attempt. The "failed" of an assertion does not count, because the words before
// it are code: "Assertion `reads_in_progress == 0' failed".
bool MessageReader::has_failed_attempt() const {
  return std::any_of(statements_.begin(), statements_.end(), [&](const Statement& statement) {
    return statement.entry->says == Says::in_vain &&
           std::none_of(statements_.begin(), statements_.end(), [&](const Statement& other) {
             return other.entry->says == Says::panic && other.begin <= statement.begin && statement.end <= other.end;
           });
  });
}

bool MessageReader::names_lock() const {
  return std::any_of(sentence_.words().begin(), sentence_.words().end(), [](const knowledge::Word& word) {
    return word.text == "lock" || word.text == "locks" || word.text == "locked" || word.text == "locking" ||
           word.text.starts_with("lockfile") || word.text == "directory" || word.text == "folder";
  });
}

Meaning MessageReader::read() {
  error_ = find_error();
  meaning_.error = error_.error, meaning_.vague = error_.vague;
  meaning_.of_peer = kernel::resource_error(meaning_.error) && is_answered(error_.at);
  read_lost();
  meaning_.outcast = is_outcast();
  meaning_.late = has(Says::late) && !has(Says::stood) && !has(Says::hung) && !has(Says::woke) && !meaning_.outcast;
  meaning_.panic = has(Says::panic);
  meaning_.traceback = low().find("traceback (most recent call last)") != std::string_view::npos;
  meaning_.cut_off = has(Says::cut_off);
  meaning_.unresolved = has(Says::lookup);
  meaning_.torn = has(Says::torn) && error_.error == 0;
  meaning_.unclean = has(Says::unclean);
  meaning_.divided = has(Says::divided);
  meaning_.reunited = has(Says::reunited);
  // If the other nodes excluded the writer, the message does not report another node as missing.
  if (meaning_.outcast) meaning_.lost = meaning_.closed = false;
  const bool in_vain = has_failed_attempt();
  read_stop();
  meaning_.starting = reports_start();
  meaning_.serving = has(Says::serving) && !in_vain;
  meaning_.own_pause_ns = own_pause();
  meaning_.other_pause_ns = other_pause();
  meaning_.slow_disk_ns = slow_disk();
  meaning_.clock = read_clock_words(low(), statements_);
  // "time jumped (probably wake from sleep)": the clock is right, and the jump is how the program noticed the pause.
  if (has(Says::woke)) meaning_.clock.reset();
  // If the clock was set back, the message reports no pause: after a pause, time has only advanced.
  if (meaning_.clock && meaning_.clock->stepped && !meaning_.clock->either_way && meaning_.clock->off_ns < 0)
    meaning_.own_pause_ns = 0;
  meaning_.out_of_memory = has(Says::killed);
  read_end();
  if (meaning_.error != 0 || meaning_.lost || meaning_.late) read_failure();
  else if (!meaning_.ended && in_vain) read_in_vain();
  if (meaning_.torn && meaning_.path.empty()) meaning_.path = find_path(text_, error_);
  conclude_from_error();
  return std::move(meaning_);
}

Meaning read_meaning(std::string_view text, const knowledge::NamesOfNodes* nodes) {
  return MessageReader(text, nodes).read();
}

}  // namespace rose::logs
