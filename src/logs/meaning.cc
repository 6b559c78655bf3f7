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

constexpr double kLeastSlowDisk = 100e6;                       // ns: a disk with moving parts takes less under load
constexpr std::int64_t kSlowDiskUnstated = 1'000'000'000;      // ns: what systems warn of, where no duration is stated
constexpr std::int64_t kHungUnstated = 30'000'000'000;         // ns: of a watchdog whose limit is not stated
constexpr double kLongestSpan = 3600e9;                        // ns
constexpr std::size_t kLongestAnswer = 160;                    // characters between who answered and the error
constexpr std::size_t kUnitBehind = 28;                        // characters between a number and its unit
constexpr std::size_t kBeforeNumber = 28, kBehindNumber = 12;  // characters beside a number that make it a bound

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

// A span of time that a message states. A bound ("expected less than 1s", "limit 3s", "> 5s") is not what happened.
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

// One message, and what it says.
class MessageReader {
 public:
  MessageReader(std::string_view text, const knowledge::NamesOfNodes* nodes)
      : text_(text.substr(0, Sentence::kMost)),
        sentence_(text_, nodes),
        statements_(knowledge::Meanings::in_use().read(sentence_)) {}

  Meaning read();

 private:
  [[nodiscard]] bool says(Says what) const { return first(what) != nullptr; }
  // The one that stands first in the message.
  [[nodiscard]] const Statement* first(Says what) const {
    const Statement* best = nullptr;
    for (const Statement& other_statement : statements_)
      if (other_statement.entry->says == what && (best == nullptr || other_statement.begin < best->begin))
        best = &other_statement;
    return best;
  }
  [[nodiscard]] std::string_view low() const { return sentence_.low(); }

  void read_lost();
  [[nodiscard]] bool names_node_behind(const Statement& statement) const;
  void read_end();
  void read_failure();
  void read_in_vain();
  [[nodiscard]] bool names_another_node() const;
  [[nodiscard]] bool names_lock() const;
  [[nodiscard]] bool fails_in_vain() const;
  [[nodiscard]] bool is_outcast() const;
  void conclude_from_error();
  [[nodiscard]] Found find_error() const;
  [[nodiscard]] Found stated_error(bool vague) const;
  [[nodiscard]] Found error_before_failure() const;
  [[nodiscard]] Operation find_operation(std::size_t from, const Found& error) const;
  [[nodiscard]] bool says_start() const;
  [[nodiscard]] bool is_relayed(const Statement& statement) const;
  [[nodiscard]] bool is_answered(std::size_t begin) const;
  void read_stop();
  [[nodiscard]] std::vector<Stated> spans() const;
  [[nodiscard]] std::int64_t stood() const;
  [[nodiscard]] std::int64_t slow_disk() const;
  [[nodiscard]] int exit_code() const;

  std::string_view text_;
  Sentence sentence_;
  std::vector<Statement> statements_;
  Meaning meaning_;
  Found error_;
};

Found MessageReader::stated_error(bool vague) const {
  const Statement* best = nullptr;  // of the first entry the last one: the cause stands last ("Caused by: ...")
  for (const Statement& statement : statements_)
    if (statement.entry->says == Says::error && statement.entry->vague == vague &&
        (best == nullptr || statement.entry == best->entry))
      best = &statement;
  if (best == nullptr) return {};
  return {best->entry->number, best->begin, best->end - best->begin, vague};
}

Found MessageReader::find_error() const {
  for (const std::string_view words : {"errno", "os error", "system error number", "error number"}) {
    std::size_t place = 0;
    const int number = number_behind(low(), words, &place);
    if (number <= 0 || number >= 134) continue;
    // The words for the number may follow: "[Errno 28] No space left on device".
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
  if (says(Says::in_vain))
    if (const Found number = error_in_brackets(low()); number.error != 0) return number;
  if (const Found number = error_before_failure(); number.error != 0) return number;
  return stated_error(true);
}

// "[22] could not map", "[22]: could not map": a number in brackets right before what was in vain.
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
    if (number > 0 && number < 134) return {number, open, before.size() - open};
  }
  return {};
}

// The nearest of the words before the error; if there is none, the first word behind it.
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

// The words are no value of a field: "status = started" says something of something else. A version is one where its
// number follows.
bool MessageReader::says_start() const {
  return std::any_of(statements_.begin(), statements_.end(), [&](const Statement& statement) {
    if (statement.entry->says != Says::starting) return false;
    std::string_view before = low().substr(0, statement.begin);
    while (!before.empty() && (before.back() == ' ' || before.back() == '"')) before.remove_suffix(1);
    if (before.ends_with('=')) return false;
    // A part of a longer name is none: "starting_partitioned_network".
    if (statement.end < low().size() && (low()[statement.end] == '_' || low()[statement.end] == '-')) return false;
    if (!statement.entry->words.starts_with("version")) return true;
    // That of a program has parts, "7.0.0"; those of blocks, protocols and files have none.
    const std::size_t digit = low().find_first_of("0123456789", statement.end);
    if (digit == std::string_view::npos || digit > statement.end + 4) return false;
    const std::size_t behind = low().find_first_not_of("0123456789", digit);
    return behind != std::string_view::npos && low()[behind] == '.';
  });
}

// Somebody else's words, behind what tells that they are: "error message from n2: it is shutting down", "connection to
// n2 failed: FATAL: the system is shutting down". What follows from a failure has no subject: "cannot connect:
// exiting".
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

// "n2 answered that its disk is full", "rpc error: code = Unknown desc = write /x: no space left on device": whether
// what begins there is another node's, reported without a colon or behind more than one. What a comma parts is not.
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
    else if (meaning_.stops_at == 0 || statement.end < meaning_.stops_at) meaning_.stops_at = statement.end;
  }
  const bool stopping = meaning_.stops_at != 0;
  meaning_.gave_up = stopping && (meaning_.error != 0 || says(Says::in_vain) || says(Says::gave_up));
  meaning_.stopping = stopping && !meaning_.gave_up;
  if (relayed && !stopping) meaning_.lost = meaning_.closed = true;
}

std::vector<Stated> MessageReader::spans() const {
  std::vector<Stated> all;
  for (std::size_t at = low().find_first_of("0123456789"); at != std::string_view::npos;) {
    Span span = read_span(low(), at);
    const std::string_view before = low().substr(at - std::min(at, kBeforeNumber), std::min(at, kBeforeNumber));
    if (ends_with_any(before, {" for ", " of ", "took ", "lasted "}))
      if (const Span clock = read_clock_span(low(), at); clock.ns > 0) span = clock;
    const bool word = at != 0 && (word_char(low()[at - 1]) || low()[at - 1] == '.' || low()[at - 1] == '/');
    double ns = span.ns;
    // The unit may stand elsewhere: "pause (ms) 5210", "pause of 11832 > 5000 (milliseconds)", "takes_ms=4217".
    if (ns == 0 && (mentions(before, {"(ms)", "_ms=", "millis=", "millis:"}) ||
                    mentions(low().substr(std::min(low().size(), span.end), kUnitBehind), {"(milliseconds)", "(ms)"})))
      ns = span.number * 1e6;
    if (!word && ns > 0 && ns < kLongestSpan) {
      const std::string_view near = before.substr(before.find_last_of("[](),;0123456789") + 1);
      const std::string_view behind = low().substr(std::min(low().size(), span.end), kBehindNumber);
      // "exceeded the 100ms timeout for 8.39s": what stands behind "for" is how long it took.
      const bool lasted = near.ends_with(" for ");
      const bool of_bound =
          mentions(near, {"limit", "thresh", "expect", "interval", "instead of", "less than", "timeout", "max", "allow",
                          "within", "more than", "at least", "> ", "every"});
      all.push_back(
          {at, ns, (of_bound && !lasted) || begins_with_any(behind, {" timeout", " limit", " thresh", " interval"})});
    }
    at = low().find_first_of("0123456789", std::max(at + 1, span.end));
  }
  return all;
}

// How long it stood still, as it says itself: "local pause of 8123456789ns", "We slept 35000ms instead of 3000ms"; 0:
// no word of that.
std::int64_t MessageReader::stood() const {
  std::vector<Stated> stated;
  for (const Statement& statement : statements_) {
    if (statement.entry->says != Says::stood) continue;
    if (mentions(low().substr(statement.begin, statement.end - statement.begin),
                 {" may ", " might ", " can ", " could ", " would "}))
      continue;
    if (stated.empty()) stated = spans();
    // "last active 5m ago" is no pause, unless that is too long; and another's is not this program's.
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

// How long a disk, or a call that waits for one, took, where a message says that this was too long; 0: it says no such
// thing.
std::int64_t MessageReader::slow_disk() const {
  if (!says(Says::slow_disk)) return 0;
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
    if (const int code = number_behind(low(), words); code > 0 && code < 256) return code;
  return -1;
}

void MessageReader::read_end() {
  int signal = signal_name(text_);
  if (signal == 0) signal = std::max(0, number_behind(low(), "signal"));
  const bool gone = says(Says::gone);
  if (signal == 0 && mentions(low(), {"code=killed", "code=dumped"}))
    signal = std::max(0, number_behind(low(), "status="));
  if (gone && signal > 0 && signal < 65 && signal != SIGCHLD) {
    meaning_.ended = true;
    meaning_.signal = signal;
  } else if (const int code = gone ? exit_code() : -1; code > 0) {
    meaning_.ended = true;
    meaning_.exit_code = code;
    if (code == 128 + SIGKILL || code == 128 + SIGTERM) meaning_.signal = code - 128;
    if (code == SIGKILL) meaning_.signal = code;  // what wait() returns, as it is
  }
  if (!meaning_.ended && says(Says::sigkill)) {
    meaning_.ended = true;
    meaning_.signal = signal > 0 && signal < 65 ? signal : SIGKILL;
  }
  meaning_.helper = meaning_.ended && says(Says::helper) && !says(Says::no_helper);
  // "server process (PID 88) was terminated by signal 6: Aborted": the one that writes lives on.
  if (meaning_.helper) meaning_.panic = false;
  if (meaning_.out_of_memory) {
    meaning_.ended = true;
    meaning_.signal = SIGKILL;
  }
}

void MessageReader::read_failure() {
  meaning_.peer = find_peer(text_);
  // Python's and Node's form of calls with two paths: "[Errno 18] ...: 'a' -> 'b'".
  meaning_.operation =
      low().find("' -> '") != std::string_view::npos ? Operation::rename : named_call(low(), error_, meaning_.call);
  meaning_.exact = meaning_.operation != Operation::unknown;
  // Behind a number that stands before what failed, that is what failed.
  const bool before = !meaning_.exact && error_.error != 0 && low()[error_.at] == '[';
  if (before) meaning_.operation = find_operation(error_.at, error_);
  if (!meaning_.exact && meaning_.operation == Operation::unknown) meaning_.operation = find_operation(0, error_);
  if (meaning_.error == EAGAIN && names_lock()) meaning_.operation = Operation::lock;
  meaning_.path = find_path(text_, error_);
  // Connections have no path: what took the last descriptor too many was the file.
  if (meaning_.operation == Operation::unknown && !meaning_.path.empty() &&
      (meaning_.error == EMFILE || meaning_.error == ENFILE))
    meaning_.operation = Operation::open;
}

// "Error saving the database, unable to open x.new": of several things that failed, the last one is the call.
void MessageReader::read_in_vain() {
  std::size_t last = 0;
  for (const Statement& statement : statements_)
    if (statement.entry->says == Says::in_vain) last = std::max(last, statement.begin);
  meaning_.operation = find_operation(last, {});
  if (meaning_.operation == Operation::unknown) meaning_.operation = find_operation(0, {});
  meaning_.path = find_path(text_, error_);
  const std::string peer = find_peer(text_);
  meaning_.failed = on_files(meaning_.operation) && peer.empty() && (!meaning_.path.empty() || says(Says::on_disk));
  // "failure trying primary 10.0.0.1#53", "cannot forward the request to n2": what was in vain had to do with that one.
  if (!peer.empty() || (!meaning_.failed && names_another_node())) {
    meaning_.lost = true;
    meaning_.peer = peer;
  }
}

// Not the assertion alone: what it asserts is code, "Assertion `reads_in_progress == 0' failed".
bool MessageReader::fails_in_vain() const {
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

void MessageReader::read_lost() {
  const Statement *closed = first(Says::closed), *lost = first(Says::lost), *stood = first(Says::stood);
  // "failed to send out heartbeat on time": it is late itself, and misses nobody.
  if (lost != nullptr && stood != nullptr && lost->begin < stood->end && stood->begin < lost->end) lost = nullptr;
  meaning_.closed = closed != nullptr;
  const Statement* statement = lost != nullptr ? lost : closed;
  if (statement == nullptr) return;
  meaning_.lost = true;
  meaning_.lost_at = statement->end;
  // "Lost half of the members. Current members are [n1], lost members are [n2]": of several such words those count that
  // the name of a node follows.
  for (const Statement& other_statement : statements_)
    if ((other_statement.entry->says == Says::lost || other_statement.entry->says == Says::closed) &&
        names_node_behind(other_statement)) {
      meaning_.lost_at = other_statement.end;
      return;
    }
}

// "members are [n2]", "member: n2": no other word stands between.
bool MessageReader::names_node_behind(const Statement& statement) const {
  const auto& words = sentence_.words();
  const auto next = std::find_if(words.begin(), words.end(), [&](const knowledge::Word& word) {
    return word.begin >= statement.end && word.text != "is" && word.text != "are" && word.text != "was" &&
           word.text != "were";
  });
  return next != words.end() && next->node == knowledge::kOtherNode &&
         low().substr(statement.end, next->begin - statement.end).find_first_of(",;") == std::string_view::npos;
}

// "This node was removed"; but not "this node's peer n2 was removed".
bool MessageReader::is_outcast() const {
  return std::any_of(statements_.begin(), statements_.end(), [&](const Statement& statement) {
    if (statement.entry->says != Says::outcast) return false;
    return std::none_of(sentence_.words().begin(), sentence_.words().end(), [&](const knowledge::Word& word) {
      return word.node == knowledge::kOtherNode && word.begin >= statement.begin && word.end <= statement.end;
    });
  });
}

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
    case EIO:  // "I/O error: tcp://10.0.0.2:9000: r/w timeout": what was read or written was a connection
      if (meaning_.peer.empty() || !meaning_.path.empty() || !(meaning_.late || meaning_.lost)) break;
      meaning_.error = 0;
      meaning_.operation = Operation::unknown;
      meaning_.lost = true;
      break;
    case EINVAL:  // what a route that is a black hole answers
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
  meaning_.late = says(Says::late) && !says(Says::stood) && !says(Says::hung) && !meaning_.outcast;
  meaning_.panic = says(Says::panic);
  meaning_.traceback = low().find("traceback (most recent call last)") != std::string_view::npos;
  meaning_.cut_off = says(Says::cut_off);
  meaning_.unresolved = says(Says::lookup);
  meaning_.torn = says(Says::torn) && error_.error == 0;
  meaning_.unclean = says(Says::unclean);
  meaning_.reunited = says(Says::reunited);
  if (meaning_.outcast) meaning_.lost = meaning_.closed = false;  // nobody else is
  const bool in_vain = fails_in_vain();
  read_stop();
  meaning_.starting = says_start();
  meaning_.serving = says(Says::serving) && !in_vain;
  meaning_.stood_ns = stood();
  meaning_.slow_disk_ns = slow_disk();
  meaning_.clock = read_clock_words(low(), statements_);
  // A pause cannot set a clock back.
  if (meaning_.clock && meaning_.clock->stepped && !meaning_.clock->either_way && meaning_.clock->off_ns < 0)
    meaning_.stood_ns = 0;
  meaning_.out_of_memory = says(Says::killed);
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
