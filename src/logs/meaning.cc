#include "logs/meaning.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>

#include "base/ascii.h"
#include "kernel/syscalls.h"
#include "knowledge/meanings.h"
#include "logs/found.h"
#include "logs/spans.h"

namespace rose::logs {
namespace {

using knowledge::Says;
using knowledge::Sentence;
using knowledge::Statement;

// Durations in ns. A disk operation is slow from kLeastSlowDisk on, because even a rotating disk under load is faster.
// If a message states no duration, the others are used: the threshold at which systems usually warn, and the limit of a
// watchdog.
constexpr double kLeastSlowDisk = 100e6;
constexpr std::int64_t kSlowDiskUnstated = 1'000'000'000, kHungUnstated = 30'000'000'000;
constexpr double kLongestSpan = 3600e9;  // ns; a longer duration is not that of a pause or an operation
// Distances in characters.
constexpr std::size_t kLongestAnswer = 160;                   // between the node that answered and the error
constexpr std::size_t kUnitDistance = 28;                     // between a number and its unit
constexpr std::size_t kBeforeNumber = 28, kAfterNumber = 12;  // around a number, for words that mark it as a limit

constexpr std::array kOperations = std::to_array<std::pair<std::string_view, Operation>>({
    {"open", Operation::open},
    {"read", Operation::read},
    {"write", Operation::write},
    {"sync", Operation::sync},
    {"truncate", Operation::truncate},
    {"rename", Operation::rename},
    {"unlink", Operation::unlink},
    {"mkdir", Operation::mkdir},
    {"connect", Operation::connect},
    {"accept", Operation::accept},
    {"listen", Operation::listen},
    {"send", Operation::send},
    {"receive", Operation::receive},
    {"spawn", Operation::spawn},
    {"memory", Operation::memory},
    {"socket", Operation::socket},
    {"watch", Operation::watch},
});

Operation operation_named(std::string_view name) {
  const auto found =
      std::find_if(kOperations.begin(), kOperations.end(), [&](const auto& entry) { return entry.first == name; });
  return found == kOperations.end() ? Operation::unknown : found->second;
}

bool on_files(Operation operation) {
  switch (operation) {
    case Operation::open:
    case Operation::read:
    case Operation::write:
    case Operation::sync:
    case Operation::truncate:
    case Operation::rename:
    case Operation::unlink:
    case Operation::mkdir: return true;
    default: return false;
  }
}

// A duration that a message states. A limit ("expected less than 1s", "limit 3s", "> 5s") does not count as a measured
// duration.
struct Stated {
  std::size_t at = 0;
  double ns = 0;
  bool bound = false;
};

bool mentions(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return text.starts_with(word); });
}

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return text.ends_with(word); });
}

// Reads the meaning of one message.
class MessageReader {
 public:
  MessageReader(std::string_view text, const knowledge::NamesOfNodes* nodes)
      : text_(text.substr(0, Sentence::kMost)),
        sentence_(text_, nodes),
        statements_(knowledge::Meanings::in_use().read(sentence_)) {}

  Meaning read();

 private:
  [[nodiscard]] bool has(Says what) const { return first(what) != nullptr; }
  // The first match in the message.
  [[nodiscard]] const Statement* first(Says what) const {
    const Statement* best = nullptr;
    for (const Statement& other_statement : statements_)
      if (other_statement.entry->says == what && (best == nullptr || other_statement.begin < best->begin))
        best = &other_statement;
    return best;
  }
  [[nodiscard]] std::string_view low() const { return sentence_.low(); }

  void read_lost();
  [[nodiscard]] bool precedes_node_name(const Statement& statement) const;
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
  [[nodiscard]] bool is_relayed(const Statement& statement) const;
  [[nodiscard]] bool is_answered(std::size_t begin) const;
  void read_stop();
  [[nodiscard]] std::vector<Stated> spans() const;
  [[nodiscard]] std::int64_t own_pause() const;
  [[nodiscard]] std::int64_t slow_disk() const;
  [[nodiscard]] int exit_code() const;

  std::string_view text_;
  Sentence sentence_;
  std::vector<Statement> statements_;
  Meaning meaning_;
  Found error_;
};

Found MessageReader::stated_error(bool vague) const {
  // the last match of the first entry, because the cause comes last ("Caused by: ...")
  const Statement* best = nullptr;
  for (const Statement& statement : statements_)
    if (statement.entry->says == Says::error && statement.entry->vague == vague &&
        (best == nullptr || statement.entry == best->entry))
      best = &statement;
  if (best == nullptr) return {};
  return {best->entry->number, best->begin, best->end - best->begin, vague};
}

// The error that the message names. If it has several forms, the most explicit one is used, in this order: a number
// after "errno" or similar words, the text of an error, its name, a number in brackets, a class of errors.
Found MessageReader::find_error() const {
  for (const std::string_view words : {"errno", "os error", "system error number", "error number"}) {
    std::size_t place = 0;
    const int number = number_after(low(), words, &place);
    if (number <= 0 || number >= kErrnoEnd) continue;
    // The error's text may follow its number: "[Errno 28] No space left on device".
    std::size_t end = low().find_first_of("0123456789", place);
    for (const Statement& statement : statements_)
      if (statement.entry->says == Says::error && statement.entry->number == number && statement.begin >= end &&
          statement.begin - end < 8)
        end = statement.end;
    return {number, place, end - place};
  }
  if (const Found found = stated_error(false); found.error != 0) return found;
  if (const Found name = error_name(text_); name.error != 0) return name;
  if (const Found atom = error_atom(low()); atom.error != 0) return atom;
  if (const Statement* in_vain = first(Says::in_vain)) {
    if (const Found number = error_at_end(low()); number.error != 0) return number;
    if (const Found number = error_in_brackets(low(), in_vain->begin); number.error != 0) return number;
  }
  if (const Found number = error_before_failure(); number.error != 0) return number;
  return stated_error(true);
}

// An error number in brackets just before the words for a failed attempt: "[22] could not map", "[22]: could not map".
Found MessageReader::error_before_failure() const {
  for (const Statement& statement : statements_) {
    if (statement.entry->says != Says::in_vain) continue;
    std::string_view before = low().substr(0, statement.begin);
    while (!before.empty() && (before.back() == ' ' || before.back() == ':')) before.remove_suffix(1);
    if (!before.ends_with(']')) continue;
    const std::size_t open = before.rfind('[');
    if (open == std::string_view::npos || (open != 0 && before[open - 1] != ' ')) continue;
    const std::string_view digits = before.substr(open + 1, before.size() - open - 2);
    if (digits.empty() || digits.size() > 3 || digits.find_first_not_of("0123456789") != digits.npos) continue;
    const int number = number_at(low(), open + 1);
    if (number > 0 && number < kErrnoEnd) return {number, open, before.size() - open};
  }
  return {};
}

// The last operation that is named before the error. If there is none, the first one after it.
Operation MessageReader::find_operation(std::size_t from, const Found& error) const {
  const Statement* best = nullptr;
  bool before = false;
  for (const Statement& statement : statements_) {
    if (statement.entry->says != Says::operation || statement.begin < from || error.covers(statement.begin)) continue;
    const bool here_before = error.at != std::string_view::npos && statement.begin < error.at;
    const bool better = best == nullptr || (here_before && (!before || statement.begin > best->begin)) ||
                        (!here_before && !before && statement.begin < best->begin);
    if (!better) continue;
    best = &statement;
    before = here_before;
  }
  return best == nullptr ? Operation::unknown : operation_named(best->entry->name);
}

// True if the message reports the start of a program. Such words do not count in the value of a field, because it may
// describe something else: "status = started". "version" counts only if a version number follows.
bool MessageReader::reports_start() const {
  return std::any_of(statements_.begin(), statements_.end(), [&](const Statement& statement) {
    if (statement.entry->says != Says::starting) return false;
    std::string_view before = low().substr(0, statement.begin);
    while (!before.empty() && (before.back() == ' ' || before.back() == '"')) before.remove_suffix(1);
    if (before.ends_with('=')) return false;
    // The words do not count as a part of a longer identifier: "starting_partitioned_network".
    if (statement.end < low().size() && (low()[statement.end] == '_' || low()[statement.end] == '-')) return false;
    if (!statement.entry->words.starts_with("version")) return true;
    // The version of a program has several parts, "7.0.0". Those of blocks, protocols and files have one.
    const std::size_t digit = low().find_first_of("0123456789", statement.end);
    if (digit == std::string_view::npos || digit > statement.end + 4) return false;
    const std::size_t following = low().find_first_not_of("0123456789", digit);
    return following != std::string_view::npos && low()[following] == '.';
  });
}

// True if the match is within what another node said: "error message from n2: it is shutting down", "connection to n2
// failed: FATAL: the system is shutting down". If the text after the colon has no subject, it is about the writer
// itself: "cannot connect: exiting".
bool MessageReader::is_relayed(const Statement& statement) const {
  if (is_answered(statement.begin)) return true;
  return std::any_of(statements_.begin(), statements_.end(), [&](const Statement& other_statement) {
    const bool of_peer = other_statement.entry->says == Says::lost || other_statement.entry->says == Says::closed;
    if ((!of_peer && other_statement.entry->says != Says::relayed) || other_statement.end > statement.begin)
      return false;
    const std::string_view between = low().substr(other_statement.end, statement.begin - other_statement.end);
    const std::size_t colon = between.rfind(':');
    if (colon == std::string_view::npos || between.find('\n') != std::string_view::npos) return false;
    const auto words = std::count_if(sentence_.words().begin(), sentence_.words().end(), [&](const auto& word) {
      return word.begin > other_statement.end + colon && word.end <= statement.begin;
    });
    return other_statement.entry->says == Says::relayed || words >= 2;
  });
}

// True if the text at `begin` belongs to the answer of another node, which the message reports without a colon, or
// after more than one: "n2 answered that its disk is full", "rpc error: code = Unknown desc = write /x: no space left
// on device". A comma ends the answer.
bool MessageReader::is_answered(std::size_t begin) const {
  return std::any_of(statements_.begin(), statements_.end(), [&](const Statement& statement) {
    if (statement.entry->says != Says::answered || statement.begin > begin) return false;
    const std::string_view between = low().substr(statement.end, begin - std::min(begin, statement.end));
    return between.size() <= kLongestAnswer && between.find_first_of(",;\n") == std::string_view::npos;
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

// All durations in the message, in the order of the text.
std::vector<Stated> MessageReader::spans() const {
  std::vector<Stated> all;
  for (std::size_t at = low().find_first_of("0123456789"); at != std::string_view::npos;) {
    Span span = read_span(low(), at);
    const std::string_view before = low().substr(at - std::min(at, kBeforeNumber), std::min(at, kBeforeNumber));
    if (ends_with_any(before, {" for ", " of ", "took ", "lasted "}))
      if (const Span clock = read_clock_span(low(), at); clock.ns > 0) span = clock;
    const bool word = at != 0 && (word_char(low()[at - 1]) || low()[at - 1] == '.' || low()[at - 1] == '/');
    double ns = span.ns;
    // The unit may be in another place: "pause (ms) 5210", "pause of 11832 > 5000 (milliseconds)", "takes_ms=4217".
    if (ns == 0 &&
        (mentions(before, {"(ms)", "_ms=", "millis=", "millis:"}) ||
         mentions(low().substr(std::min(low().size(), span.end), kUnitDistance), {"(milliseconds)", "(ms)"})))
      ns = span.number * 1e6;
    if (!word && ns > 0 && ns < kLongestSpan) {
      const std::string_view near = before.substr(before.find_last_of("[](),;0123456789") + 1);
      const std::string_view following = low().substr(std::min(low().size(), span.end), kAfterNumber);
      // In "exceeded the 100ms timeout for 8.39s", the duration after "for" is the measured one.
      const bool lasted = near.ends_with(" for ");
      const bool of_bound =
          mentions(near, {"limit", "thresh", "expect", "interval", "instead of", "less than", "timeout", "max", "allow",
                          "within", "more than", "at least", "> ", "every"});
      all.push_back(
          {at, ns,
           (of_bound && !lasted) || begins_with_any(following, {" timeout", " limit", " thresh", " interval"})});
    }
    at = low().find_first_of("0123456789", std::max(at + 1, span.end));
  }
  return all;
}

// How long the writer was paused, if the message states it: "local pause of 8123456789ns", "We slept 35000ms instead of
// 3000ms". 0 if it reports no pause.
std::int64_t MessageReader::own_pause() const {
  std::vector<Stated> stated;
  for (const Statement& statement : statements_) {
    if (statement.entry->says != Says::stood) continue;
    if (mentions(low().substr(statement.begin, statement.end - statement.begin),
                 {" may ", " might ", " can ", " could ", " would "}))
      continue;
    if (stated.empty()) stated = spans();
    // "last active 5m ago" is a pause only if the message also states a limit, and is not about another node.
    if (mentions(low().substr(statement.begin, statement.end - statement.begin), {" ago"}) &&
        (names_another_node() || std::ranges::none_of(stated, &Stated::bound)))
      continue;
    for (const Stated& span : stated)
      if (span.at >= statement.begin && !span.bound) return std::llround(span.ns);
  }
  if (const Statement* hung = first(Says::hung)) {
    for (const Stated& span : spans())
      if (span.at >= hung->begin) return std::llround(span.ns);
    return kHungUnstated;
  }
  return 0;
}

// The duration of a disk operation that the message reports as slow. 0 if it reports none.
std::int64_t MessageReader::slow_disk() const {
  if (!has(Says::slow_disk)) return 0;
  double longest = 0, bound = 0;
  for (const Stated& stated : spans())
    (stated.bound ? bound : longest) = std::max(stated.bound ? bound : longest, stated.ns);
  if (longest == 0) longest = bound;
  if (longest == 0) return kSlowDiskUnstated;
  return longest >= kLeastSlowDisk ? std::llround(longest) : 0;
}

int MessageReader::exit_code() const {
  for (const std::string_view words :
       {"exit code", "exit status", "exitcode", "exited with code", "exited with status", "exited with exit code",
        "zero status", "with status", "with code", "exited (", "status=", "code"})
    if (const int code = number_after(low(), words); code > 0 && code < 256) return code;
  return -1;
}

// Reads how a process ended: by a signal, with an exit code, or that it was killed.
void MessageReader::read_end() {
  int signal = signal_name(text_);
  if (signal == 0) signal = std::max(0, number_after(low(), "signal"));
  const bool gone = has(Says::gone);
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
  if (meaning_.helper) meaning_.panic = false;
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
  // A connection has no path. If there is a path, the call that exceeded the limit of descriptors opened that file.
  if (meaning_.operation == Operation::unknown && !meaning_.path.empty() &&
      (meaning_.error == EMFILE || meaning_.error == ENFILE))
    meaning_.operation = Operation::open;
}

// Reads a failure without an error. If several attempts are reported as failed, the last one is the failed call: "Error
// saving the database, unable to open x.new".
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

bool MessageReader::names_another_node() const {
  return std::any_of(sentence_.words().begin(), sentence_.words().end(),
                     [](const knowledge::Word& word) { return word.node == knowledge::kOtherNode; });
}

// Reads whether a peer is missing, and where in the message this is reported.
void MessageReader::read_lost() {
  const Statement *closed = first(Says::closed), *lost = first(Says::lost), *stood = first(Says::stood);
  // In "failed to send out heartbeat on time", the writer itself is late, and no peer is missing.
  if (lost != nullptr && stood != nullptr && lost->begin < stood->end && stood->begin < lost->end) lost = nullptr;
  meaning_.closed = closed != nullptr;
  const Statement* statement = lost != nullptr ? lost : closed;
  if (statement == nullptr) return;
  meaning_.lost = true;
  meaning_.lost_end = statement->end;
  // Of several matches, use the one that a node's name follows: "Lost half of the members. Current members are [n1],
  // lost members are [n2]".
  for (const Statement& other_statement : statements_)
    if ((other_statement.entry->says == Says::lost || other_statement.entry->says == Says::closed) &&
        precedes_node_name(other_statement)) {
      meaning_.lost_end = other_statement.end;
      return;
    }
}

// True if the next word, apart from "is" or "are", is the name of another node: "members are [n2]", "member: n2".
bool MessageReader::precedes_node_name(const Statement& statement) const {
  const auto& words = sentence_.words();
  const auto next = std::find_if(words.begin(), words.end(), [&](const knowledge::Word& word) {
    return word.begin >= statement.end && word.text != "is" && word.text != "are" && word.text != "was" &&
           word.text != "were";
  });
  return next != words.end() && next->node == knowledge::kOtherNode &&
         low().substr(statement.end, next->begin - statement.end).find_first_of(",;") == std::string_view::npos;
}

// True if the others excluded the writer: "This node was removed", but not "this node's peer n2 was removed".
bool MessageReader::is_outcast() const {
  return std::any_of(statements_.begin(), statements_.end(), [&](const Statement& statement) {
    if (statement.entry->says != Says::outcast) return false;
    return std::none_of(sentence_.words().begin(), sentence_.words().end(), [&](const knowledge::Word& word) {
      return word.node == knowledge::kOtherNode && word.begin >= statement.begin && word.end <= statement.end;
    });
  });
}

// True if the message is about a connection, and not about a disk: "An I/O error occurred while sending to the
// backend."
bool is_of_connection(std::string_view low) {
  // A closed connection also yields "End of file".
  const bool file = low.find("file") != std::string_view::npos && low.find("end of file") == std::string_view::npos;
  return !file && mentions(low, {"connection", "socket", "sending to", "receiving from", "backend", "remote host"}) &&
         !mentions(low, {"disk", "sector", " dev ", "device", "block", "journal", "volume"});
}

// Concludes from the error whether the peer's machine answered. A refused or reset connection means that the peer's
// machine answered; a timeout or a missing route means that it did not.
void MessageReader::conclude_from_error() {
  switch (meaning_.error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE: meaning_.lost = meaning_.closed = true; break;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
      meaning_.lost = true;
      meaning_.closed = false;
      break;
    case EIO:  // in "I/O error: tcp://10.0.0.2:9000: r/w timeout", a read or write of a connection failed
      if (!meaning_.path.empty()) break;
      if ((meaning_.peer.empty() || !(meaning_.late || meaning_.lost)) && !is_of_connection(low())) break;
      meaning_.error = 0;
      meaning_.operation = Operation::unknown;
      meaning_.lost = true;
      break;
    case EINVAL:  // a blackhole route returns this error
      if (!meaning_.peer.empty()) meaning_.lost = true;
      break;
    default: break;
  }
}

Meaning MessageReader::read() {
  error_ = find_error();
  meaning_.error = error_.error, meaning_.vague = error_.vague;
  meaning_.of_peer = kernel::resource_error(meaning_.error) && is_answered(error_.at);
  read_lost();
  meaning_.outcast = is_outcast();
  meaning_.late = has(Says::late) && !has(Says::stood) && !has(Says::hung) && !meaning_.outcast;
  meaning_.panic = has(Says::panic);
  meaning_.traceback = low().find("traceback (most recent call last)") != std::string_view::npos;
  meaning_.cut_off = has(Says::cut_off);
  meaning_.unresolved = has(Says::lookup);
  meaning_.torn = has(Says::torn) && error_.error == 0;
  meaning_.unclean = has(Says::unclean);
  meaning_.reunited = has(Says::reunited);
  // The others excluded the writer, so the message does not report another node as missing.
  if (meaning_.outcast) meaning_.lost = meaning_.closed = false;
  const bool in_vain = has_failed_attempt();
  read_stop();
  meaning_.starting = reports_start();
  meaning_.serving = has(Says::serving) && !in_vain;
  meaning_.own_pause_ns = own_pause();
  meaning_.slow_disk_ns = slow_disk();
  meaning_.clock = read_clock_words(low(), statements_);
  // A clock that was set back is no pause, because a pause cannot set a clock back.
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

}  // namespace

Meaning read_meaning(std::string_view text, const knowledge::NamesOfNodes* nodes) {
  return MessageReader(text, nodes).read();
}

}  // namespace rose::logs
