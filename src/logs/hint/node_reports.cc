#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

#include "kernel/syscalls.h"
#include "logs/hint/findings.h"
#include "logs/hint/reports.h"
#include "logs/hint/spoken_of.h"

namespace rose::logs {
namespace {

constexpr std::uint64_t kMostRead = 500;  // messages of one kind that are read one by one
constexpr std::size_t kLongLog = 500;     // messages of a log that tells what is usual by itself
constexpr std::size_t kHeading = 32;      // characters of a first line that names a part of the program, at most
constexpr std::size_t kErrorAlone = 60;   // characters of a message that says nothing but how the one before it failed
constexpr double kSaysItStood = 0.6;      // its message tells of a pause of its own
constexpr double kOwnClock = 0.8;         // it says that its own clock is wrong,
constexpr double kOneOfTwoClocks = 0.6;   // or that another one's differs
constexpr double kSpokenOf = 0.6;         // others miss it
constexpr double kNobodyNamed = 0.4;      // factor: of two nodes one misses an unnamed peer, which may be a client
constexpr double kAnyOfSeveral = 0.25;    // times this: the same of more nodes
constexpr double kOwnInterface = 0.7;     // its own interface is down, by which it spoke with the others or not
constexpr double kUnresolved = 0.4;       // a name is not resolved: the server for names is missed, or the name is gone
constexpr double kUnresolvedToo = 0.3;    // the node's name is one of several that are not resolved
constexpr double kUnclean = 0.5;          // it says that its last end was none in order,
constexpr double kTorn = 0.4;             // or that what it wrote is not whole,
constexpr double kTornRead = 0.25;        // which its disk may have got wrong, too
constexpr double kOutcast = 0.5;          // the others took it for gone, and it was cut off
constexpr double kOutcastStood = 0.45;    // or stood still,
constexpr std::int64_t kOutcastFor = 15 * kSecond;  // for so long, as a rule
constexpr double kRefused =
    0.6;  // no process listens there any more, and the machine answers: usually the process has ended
constexpr double kSpeaksOn = 0.2;       // times this: but its own log goes on; had it begun again, that would say so
constexpr double kRefusedByCut = 0.25;  // a rule of a firewall may say so, too

// Whether the log has messages both before and well after the first report.
bool speaks_around(const NodeLog* log, const Repeated& report) {
  if (log == nullptr || !is_timed(*log) || report.first->ts_ns == kNoTime) return false;
  return log->messages.front().ts_ns < report.first->ts_ns && log->messages.back().ts_ns > report.first->ts_ns + kEarly;
}

// "Error: Is a directory." as a message of its own, right behind the one that says what failed.
bool take_error_behind(const Findings& found, const NodeLog& here, const Message& message, Meaning& meaning) {
  const Message* next = &message + 1;
  if (next == here.messages.data() + here.messages.size() || next->stream != message.stream) return false;
  const std::string_view text = found.failure.text(*next);
  if (text.size() > kErrorAlone) return false;
  const Meaning behind = read_meaning(text);
  if (behind.error == 0 || behind.operation != Operation::unknown || !behind.path.empty() || !behind.peer.empty())
    return false;
  meaning.error = behind.error;
  meaning.failed = false;
  return true;
}

double weight_of(Level level) {
  return level == Level::info || level == Level::debug || level == Level::trace ? kInPassing : 1;
}

// What the messages of a node report.
class NodeReports {
 public:
  NodeReports(Findings& found, std::size_t n) : found_(found), n_(n), here_(found.node(n)) {}

  void read();
  void add_hints();

 private:
  // What messages of one kind say.
  struct Kind {
    std::uint64_t times = 0;
    bool says = false;
    Meaning meaning;    // of the last one that was read
    std::string other;  // the node it speaks of
  };

  // The error is that of another node, which answered with it.
  [[nodiscard]] static bool is_of_other(const Kind& kind) { return kind.meaning.of_peer && !kind.other.empty(); }
  // Gives back what the lines behind the message tell of a call, if they do.
  std::optional<FailedCall> read_behind(const Message& message);
  // Whether the next message was taken for a part of this one.
  bool read_itself(const Message& message, Kind& kind);
  [[nodiscard]] bool is_nothing(const Message& message, const Meaning& meaning) const;
  [[nodiscard]] bool misses_at_debug(const Message& message, const Kind& kind) const;
  void keep(const Message& message, const Kind& kind, const std::optional<FailedCall>& behind_call);
  void keep_failure(const Message& message, const Kind& kind, double weight,
                    const std::optional<FailedCall>& behind_call);
  void keep_missing(const Message& message, const Kind& kind, double weight);
  void keep_clock(const Message& message, const Kind& kind, double weight);
  void add_refusal(const std::string& other, const Report& report, bool unnamed);
  [[nodiscard]] bool is_of_an_end(const Report& report) const;
  void add_unresolved();
  void add_last_end();
  void add_outcast();
  void add_standstill();
  void add_processes();
  void add_clocks();
  void add_slow_disk();

  Findings& found_;
  std::size_t n_;
  const NodeLog& here_;
  std::map<FailedCall, Report> calls_;
  std::map<std::pair<std::string, FailedCall>, Report> calls_of_others_;  // by the node whose calls they are
  std::map<std::pair<Operation, std::string>, Report> in_vain_;           // operation, path
  std::map<std::string, Report> peers_, refusing_, unnamed_;              // by node
  std::set<std::string> answered_;                                        // of peers_: whose machine answered
  std::map<std::pair<std::string, int>, Report> processes_;               // by node; signal, or 1000 and the exit code
  std::map<std::string, Report> clocks_;   // by the node whose clock it is, or differs from the own; "" unknown
  Report longest_;                         // of the pauses that it tells of
  Report cut_off_;                         // by its own interface
  Report outcast_;                         // from the others, as it says itself
  Report torn_, unclean_;                  // what its last life left behind
  Report unresolved_;                      // the first name that was not resolved
  std::set<std::string> names_looked_up_;  // nodes that were not found by their names
  Report slowest_;                         // of the calls that waited for a disk
  std::uint64_t read_behind_ = 0;
};

// EINVAL of a peer: a route to it that is a black hole. It is no call's that can be made to fail with that.
bool no_route_to_peer(const Meaning& meaning) {
  return meaning.error == EINVAL && (meaning.lost || !meaning.peer.empty());
}

bool fails_some_call(const Meaning& meaning) {
  return meaning.error != 0 && !calls_that_fail(meaning.error, meaning.operation).empty();
}

FailedCall call_of(const Meaning& meaning) {
  return {meaning.error, meaning.path, meaning.lost ? meaning.peer : std::string()};
}

void NodeReports::read() {
  std::unordered_map<TemplateId, Kind> kinds;
  const Message* read_before = nullptr;  // read together with the message before it
  for (const Message& message : here_.messages) {
    if (&message == read_before) continue;
    const std::optional<FailedCall> behind_call = read_behind(message);
    Kind& kind = kinds[message.kind];
    // Messages of one kind say one thing, apart from what stands below a heading; each stood as long as it says.
    if (kind.times != 0 && !kind.says && kind.meaning.stood_ns == 0 &&
        (kind.times > kMostRead || found_.failure.text(message).find('\n') > kHeading))
      continue;
    if (++kind.times <= kMostRead && read_itself(message, kind))
      read_before = &message + 1;  // of different paths and peers
    if (kind.meaning.says_something()) keep(message, kind, behind_call);
  }
  fold_paths(calls_);
}

std::optional<FailedCall> NodeReports::read_behind(const Message& message) {
  const std::string_view behind = found_.text_behind(message);
  if (behind.empty() || ++read_behind_ > kMostRead) return std::nullopt;
  const Meaning meaning = read_meaning(behind);
  if (fails_some_call(meaning) && !no_route_to_peer(found_.meaning(message)))
    put(calls_[call_of(meaning)], message, meaning, kPlain);
  if (meaning.failed) put(in_vain_[{meaning.operation, meaning.path}], message, meaning, kPlain);
  return call_of(meaning);
}

bool NodeReports::read_itself(const Message& message, Kind& kind) {
  kind.meaning = found_.meaning(n_, message);
  kind.says = kind.says || kind.meaning.says_something();
  const bool next_too = kind.meaning.failed && take_error_behind(found_, here_, message, kind.meaning);
  kind.other =
      kind.says ? spoken_of(found_.names, here_.node, kind.meaning, found_.failure.text(message)) : std::string();
  return next_too;
}

// It reports nothing wrong: it is logged for debugging, belongs to a start that went well, or is logged all the time.
bool NodeReports::is_nothing(const Message& message, const Meaning& meaning) const {
  if (meaning.ended || meaning.panic || (kernel::resource_error(meaning.error) && !meaning.vague)) return false;
  if (found_.is_of_start(n_, message)) return true;
  if (meaning.clock || meaning.stood_ns != 0) return false;
  return message.level == Level::debug || message.level == Level::trace ||
         (here_.messages.size() >= kLongLog && found_.is_everyday(n_, message.kind));
}

// It reports, at a level that is otherwise ignored, that a node is missing, and names it.
bool NodeReports::misses_at_debug(const Message& message, const Kind& kind) const {
  const bool of_connection = kind.meaning.error == 0 || kind.meaning.error == ECONNREFUSED;
  return message.level == Level::debug && kind.meaning.lost && of_connection && !kind.other.empty() &&
         !kind.meaning.clock && !found_.is_everyday(n_, message.kind) && !found_.is_of_start(n_, message);
}

void NodeReports::keep(const Message& message, const Kind& kind, const std::optional<FailedCall>& behind_call) {
  const Meaning& meaning = kind.meaning;
  if (found_.at_debug ? !misses_at_debug(message, kind) : is_nothing(message, meaning)) return;
  const Observed* observed = found_.observed_as(n_, message.kind);
  double weight = observed != nullptr                    ? observed->weight
                  : found_.is_everyday(n_, message.kind) ? kEveryday
                  : found_.normal.nodes.empty()          ? kPlain
                                                         : kUsual;
  if (found_.at_debug) weight *= kInPassing;
  if (meaning.cut_off) put(cut_off_, message, meaning, weight);
  if (meaning.unresolved) {
    put(unresolved_, message, meaning, weight);
    names_looked_up_.insert(kind.other);
  }
  if (meaning.outcast) put(outcast_, message, meaning, weight);
  // What is only reported in passing is the end of what a program recovers: "invalid record, recovery ends here".
  if (meaning.torn && weight_of(message.level) == 1) put(torn_, message, meaning, weight);
  if (meaning.unclean) put(unclean_, message, meaning, weight);
  found_.reunited = found_.reunited || meaning.reunited;
  const bool misses = !is_of_other(kind) && !meaning.clock && !meaning.cut_off && meaning.slow_disk_ns == 0 &&
                      (meaning.lost || meaning.late);
  const bool for_a_reason = misses && found_.misses_for_a_reason(n_, kind.other, message.ts_ns);
  if (for_a_reason) weight = std::min(weight, kUsual);
  keep_failure(message, kind, weight * weight_of(message.level), behind_call);
  if (meaning.clock) keep_clock(message, kind, weight);
  else if (misses && !for_a_reason) keep_missing(message, kind, weight);
  if (meaning.stood_ns >= kLeastStood && (longest_.first == nullptr || meaning.stood_ns > longest_.meaning.stood_ns)) {
    longest_ = {};
    put(longest_, message, meaning, weight);
  }
  if (meaning.slow_disk_ns > 0 && (slowest_.first == nullptr || meaning.slow_disk_ns > slowest_.meaning.slow_disk_ns)) {
    slowest_ = {};
    put(slowest_, message, meaning, weight);
  }
  if (!meaning.ended || meaning.panic) return;
  // Helpers that are ended in an orderly stop exit as they like.
  const auto at = static_cast<std::size_t>(&message - here_.messages.data());
  if (meaning.signal == 0 && kind.times <= kMostRead && stops_in_order(found_.failure, found_.names, here_, 0, at))
    return;
  put(processes_[{kind.other.empty() ? here_.node : kind.other,
                  meaning.signal != 0 ? meaning.signal : 1000 + meaning.exit_code}],
      message, meaning, weight);
}

void NodeReports::keep_failure(const Message& message, const Kind& kind, double weight,
                               const std::optional<FailedCall>& behind_call) {
  const Meaning& meaning = kind.meaning;
  if (is_of_other(kind)) {
    if (fails_some_call(meaning)) put(calls_of_others_[{kind.other, call_of(meaning)}], message, meaning, weight);
    return;
  }
  if (fails_some_call(meaning) && !no_route_to_peer(meaning) && behind_call != call_of(meaning))
    put(calls_[call_of(meaning)], message, meaning, weight);
  if (meaning.failed) put(in_vain_[{meaning.operation, meaning.path}], message, meaning, weight);
}

void NodeReports::keep_missing(const Message& message, const Kind& kind, double weight) {
  const std::vector<NodeName>& names = found_.names;
  if (kind.meaning.closed && !kind.other.empty()) answered_.insert(kind.other);
  if (!kind.other.empty())
    put((kind.meaning.error == ECONNREFUSED ? refusing_ : peers_)[kind.other], message, kind.meaning, weight);
  else if ((kind.meaning.peer.empty() || kind.meaning.peer.starts_with("127.")) && !here_.node.empty() &&
           (names.size() == 2 || kind.meaning.lost))
    // With more than two nodes, any other may be meant.
    for (const NodeName& other : names)
      if (other.node != here_.node)
        put(unnamed_[other.node], message, kind.meaning, weight * (names.size() == 2 ? kNobodyNamed : kAnyOfSeveral));
}

void NodeReports::keep_clock(const Message& message, const Kind& kind, double weight) {
  put(clocks_[kind.meaning.clock->own ? here_.node : kind.other], message, kind.meaning, weight);
}

// A socket of the node's own, which nobody listens at: the process that did has ended.
void add_end_behind_socket(Findings& found, std::size_t n, const Report& report) {
  const Meaning& meaning = report.meaning;
  const bool nobody = meaning.error == ENOENT || meaning.error == ECONNREFUSED;
  if (!nobody || !meaning.path.ends_with(".sock") || !meaning.peer.empty()) return;
  Hint& hint = found.add(Hint::Kind::end, n, *report.first, kRefused * report.weight);
  hint.signal = SIGKILL;
  hint.count = report.count;
  hint.reported = hint.helper = true;
}

void NodeReports::add_hints() {
  for (const auto& [key, report] : calls_) {
    add_call(found_, n_, report);
    add_end_behind_socket(found_, n_, report);
  }
  for (const auto& [key, report] : calls_of_others_) {
    const std::size_t before = found_.hints.size();
    add_call(found_, n_, report);
    for (std::size_t i = before; i < found_.hints.size(); ++i) found_.hints[i].node = key.first;
  }
  for (const auto& [key, report] : in_vain_)
    if (!is_of_an_end(report)) add_in_vain(found_, n_, report);
  for (const auto& [other, report] : peers_)
    add_silence(found_, n_, other, report,
                report.meaning.unresolved && names_looked_up_.size() > 1 ? kUnresolvedToo : kSpokenOf, false,
                answered_.contains(other));
  if (cut_off_.first != nullptr && !here_.node.empty())
    for (const NodeName& other : found_.names)
      if (other.node != here_.node) add_silence(found_, n_, other.node, cut_off_, kOwnInterface, true);
  for (const auto& [other, report] : unnamed_)
    if ((found_.names.size() == 2 || (peers_.empty() && refusing_.empty())) && !peers_.contains(other) &&
        !refusing_.contains(other)) {
      if (report.meaning.error == ECONNREFUSED) add_refusal(other, report, true);
      else add_silence(found_, n_, other, report, kSpokenOf, true);
    }
  for (const auto& [other, report] : refusing_) add_refusal(other, report, false);
  add_unresolved();
  add_outcast();
  add_standstill();
  add_processes();
  add_clocks();
  add_slow_disk();
  add_last_end();
}

void NodeReports::add_refusal(const std::string& other, const Report& report, bool unnamed) {
  if (!peers_.contains(other)) add_silence(found_, n_, other, report, kRefusedByCut, unnamed);
  if (std::any_of(found_.hints.begin(), found_.hints.end(),
                  [&](const Hint& hint) { return hint.kind == Hint::Kind::end && hint.node == other; }))
    return;
  Hint& hint = found_.add(Hint::Kind::end, n_, *report.first,
                          kRefused * report.weight * (speaks_around(found_.log_of(other), report) ? kSpeaksOn : 1));
  hint.node = other;
  hint.signal = SIGKILL;
  hint.count = report.count;
  hint.reported = true;
  hint.unnamed = unnamed;
}

// A supervisor says of a service that it failed, because its process has ended: that explains the failure.
bool NodeReports::is_of_an_end(const Report& report) const {
  return report.meaning.path.empty() && std::any_of(processes_.begin(), processes_.end(), [&](const auto& process) {
           const Message& end = *process.second.first;
           return &end < report.first && (end.ts_ns == kNoTime || report.first->ts_ns - end.ts_ns <= kEarly);
         });
}

// Names are resolved by a server for names, which is rarely one of the nodes: what fails is the call that asks it.
// Where several names are not found, it is rather that server than each of the nodes.
void NodeReports::add_unresolved() {
  if (unresolved_.first == nullptr) return;
  const bool of_a_node = names_looked_up_.size() == 1 && !names_looked_up_.contains("");
  Hint& hint = found_.add(Hint::Kind::call, n_, unresolved_, of_a_node ? kUnresolved : kPlain);
  hint.error = ENETUNREACH;
  hint.syscalls = {"connect", "sendto"};
  hint.peer = "*:53";
}

// What it finds of its last life when it begins: it ended before all was written, as where power is lost. What is torn
// may have been read wrongly instead. An end that the logs show explains both, and so does a failure before that.
void NodeReports::add_last_end() {
  const Report& report = unclean_.first != nullptr ? unclean_ : torn_;
  if (report.first == nullptr || here_.node.empty()) return;
  const bool seen = std::any_of(found_.hints.begin(), found_.hints.end(), [&](const Hint& hint) {
    const bool ends = hint.kind == Hint::Kind::end || hint.kind == Hint::Kind::call || hint.kind == Hint::Kind::limit;
    return ends && hint.node == here_.node && (hint.ts_ns == kNoTime || hint.ts_ns < report.first->ts_ns);
  });
  if (!seen) {
    Hint& hint =
        found_.add(Hint::Kind::end, n_, *report.first, (&report == &unclean_ ? kUnclean : kTorn) * report.weight);
    hint.signal = SIGKILL;
    hint.missed = true;
    hint.words += "; its last end left that behind";
  }
  if (torn_.first == nullptr) return;
  Hint& read = found_.add(Hint::Kind::call, n_, torn_, kTornRead);
  read.error = EIO;
  read.syscalls = calls_of_operation(Operation::read);
  read.path = torn_.meaning.path;
}

// The others took it for gone: they did not hear from it, as when it was cut off or stood still.
void NodeReports::add_outcast() {
  if (outcast_.first == nullptr || here_.node.empty()) return;
  for (const NodeName& other : found_.names)
    if (other.node != here_.node) add_silence(found_, n_, other.node, outcast_, kOutcast, true);
  if (longest_.first != nullptr) return;
  Hint& hint = found_.add(Hint::Kind::stop, n_, *outcast_.first, kOutcastStood * outcast_.weight);
  hint.took_ns = kOutcastFor;
  hint.missed = true;
  if (hint.ts_ns == kNoTime) return;
  hint.until_ns = hint.ts_ns;
  hint.ts_ns -= kOutcastFor;
}

void NodeReports::add_standstill() {
  if (longest_.first == nullptr) return;
  Hint& hint = found_.add(Hint::Kind::stop, n_, *longest_.first, kSaysItStood * longest_.weight);
  hint.took_ns = longest_.meaning.stood_ns;
  if (hint.ts_ns == kNoTime) return;
  hint.until_ns = longest_.first->ts_ns;
  hint.ts_ns = hint.until_ns - longest_.meaning.stood_ns;
}

void NodeReports::add_slow_disk() {
  if (slowest_.first == nullptr) return;
  Hint& hint = found_.add(Hint::Kind::limit, n_, slowest_, kPlain);
  hint.limit = Hint::Limit::disk_slow;
  hint.took_ns = slowest_.meaning.slow_disk_ns;
  // It reports the call when that is over, or while it still waits.
  if (hint.ts_ns != kNoTime) hint.ts_ns -= hint.took_ns;
}

void NodeReports::add_processes() {
  // A helper that aborts or crashes by itself, after a call that failed, is a consequence of that call.
  const auto by_itself = [](int signal) {
    return signal == SIGABRT || signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE;
  };
  for (const auto& [key, report] : processes_) {
    if (report.meaning.helper && by_itself(report.meaning.signal) && !calls_.empty()) continue;
    Hint& hint = found_.add(Hint::Kind::end, n_, *report.first, kPlain * report.weight);
    hint.node = key.first;
    hint.signal = report.meaning.signal;
    hint.exit_code = report.meaning.exit_code;
    hint.itself = report.meaning.signal == 0;
    hint.reported = true;
    hint.helper = report.meaning.helper && key.first == here_.node;
    hint.out_of_memory = report.meaning.out_of_memory;
    hint.count = report.count;
  }
}

// A node that reports a difference of clocks does not know which of the two is right.
void NodeReports::add_clocks() {
  for (const auto& [other, report] : clocks_) {
    const auto add = [&, &report = report](double weight, const std::string& node, const std::string& peer) -> Hint& {
      Hint& hint = found_.add(Hint::Kind::clock, n_, report, weight);
      hint.node = node;
      hint.peer = peer;
      hint.clock = *report.meaning.clock;
      return hint;
    };
    if (report.meaning.clock->own) {
      add(kOwnClock, here_.node, here_.node);
      continue;
    }
    if (!other.empty()) add(kOneOfTwoClocks, other, here_.node);
    Hint& own = add(other.empty() ? kOneOfTwoClocks * kNobodyNamed : kOneOfTwoClocks, here_.node, other);
    own.clock.off_ns = -own.clock.off_ns;
  }
}

}  // namespace

void find_reports(Findings& found, std::size_t n) {
  NodeReports reports(found, n);
  reports.read();
  reports.add_hints();
}

}  // namespace rose::logs
