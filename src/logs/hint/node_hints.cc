// The hints that follow from what the messages of one node report.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <unordered_map>

#include "kernel/syscalls.h"
#include "logs/hint/mentions.h"
#include "logs/hint/node_reports.h"

namespace rose::logs {
namespace {

// Weights of hints, by what a message reports. Factors are marked. "The writer" is the node that logs the message.
constexpr double kReportsPause = 0.6;  // the writer was paused
constexpr double kOwnClock = 0.8;      // the writer's clock is wrong
// The slow disk may be that of the writer or that of a node in the message: the weight for the less likely node.
constexpr double kOtherDisk = 0.7;
constexpr double kOneOfTwoClocks = 0.6;  // two clocks differ: the weight for each of them
constexpr double kMissedByOthers = 0.6;  // a named peer is missing
// The writer's network interface is down. It may not be the interface that connects the writer to the other nodes.
constexpr double kOwnInterface = 0.7;
constexpr double kUnresolved = 0.4;  // a name was not resolved: the name server is missing, or the name was removed
constexpr double kUnresolvedWithOthers = 0.3;  // several names were not resolved: the node of one of them is missing
constexpr double kUnclean = 0.5;               // the writer's previous process did not shut down cleanly
// Like kUnclean, if other nodes also missed the writer shortly before (at most kConfirmedWithin).
constexpr double kConfirmedEnd = 0.9;
constexpr std::int64_t kConfirmedWithin = 300 * kSecond;
// Data that the writer reads are damaged: its previous process was interrupted (kTorn), or the disk returned wrong data
// (kTornRead).
constexpr double kTorn = 0.4, kTornRead = 0.25;
// The other nodes excluded the writer: it was partitioned, or paused for about kOutcastPauseLength (assumed).
constexpr double kOutcast = 0.5, kOutcastPause = 0.45;
constexpr std::int64_t kOutcastPauseLength = 15 * kSecond;
// The machine of a peer refuses the connection. Usually the process that listened there has ended; a firewall may
// refuse, too.
constexpr double kRefused = 0.6, kRefusedByFirewall = 0.25;
constexpr double kLogContinues = 0.2;  // factor for kRefused: the peer's log continues without a new start
// Assumption: if a process reports an exit status and soon after logs kLivesOn messages, and no new start, it lives on.
// The status is that of a command, a task or a child that it ran, whatever the message calls it. Goal: such an exit
// does not count as an end of the node. Derivation: a program that ends prints only a few more lines (kTail is 6).
constexpr std::size_t kLivesOn = 12;
constexpr std::int64_t kLivesOnWithin = 300 * kSecond;
// If a program reports pauses throughout its log, and the longest is less than this many times their median, they are
// usual.
constexpr std::int64_t kUnusualPause = 3;

// True if the log has messages before the first report and well after it.
bool logs_around(const NodeLog* log, const Repeated& report) {
  if (log == nullptr || !is_timed(*log) || report.first->ts_ns == kNoTime) return false;
  return log->messages.front().ts_ns < report.first->ts_ns &&
         log->messages.back().ts_ns > report.first->ts_ns + kEarlyEnd;
}

// True if the peer's log shows that a new process began within a minute after the report: the peer starts, accepts
// requests again, or finds that its previous process had not stopped in an orderly way.
bool begins_anew(const Findings& found, const NodeLog* log, const Repeated& report) {
  constexpr std::int64_t kWithin = 60 * kSecond;
  constexpr std::ptrdiff_t kMostLooked = 300;
  if (log == nullptr || !is_timed(*log) || report.first->ts_ns == kNoTime) return false;
  const auto from = std::lower_bound(log->messages.begin(), log->messages.end(), report.first->ts_ns,
                                     [](const Message& message, std::int64_t ts) { return message.ts_ns < ts; });
  const auto until = from + std::min(kMostLooked, log->messages.end() - from);
  const auto n = static_cast<std::size_t>(log - found.failure.nodes.data());
  return std::any_of(from, until, [&](const Message& message) {
    if (message.ts_ns - report.first->ts_ns > kWithin || found.occurs_throughout(n, message.kind)) return false;
    const Meaning meaning = found.meaning(message);
    return meaning.starting || meaning.serving || meaning.unclean;
  });
}

// Assumption: messages that are logged at a steady rate for hours do not stop by chance. Goal: if several programs
// write into the peer's log, one of them may have ended although the others continue. Derivation: if the mean interval
// is m, the probability that none comes within 8 m is 1 in 3,000 (exp(-8)).
bool part_fell_silent(const NodeLog* log, const Repeated& report) {
  constexpr std::uint64_t kLeast = 12;
  constexpr std::int64_t kIntervals = 8, kWithinIntervals = 3;
  if (log == nullptr || !is_timed(*log) || report.first->ts_ns == kNoTime) return false;
  struct Seen {
    std::uint64_t count = 0;
    std::int64_t first = 0, last = 0;
  };
  std::unordered_map<TemplateId, Seen> kinds;
  for (const Message& message : log->messages) {
    Seen& seen = kinds[message.kind];
    if (seen.count++ == 0) seen.first = message.ts_ns;
    seen.last = message.ts_ns;
  }
  const std::int64_t end = log->messages.back().ts_ns, at = report.first->ts_ns;
  return std::any_of(kinds.begin(), kinds.end(), [&](const auto& kind) {
    const Seen& seen = kind.second;
    if (seen.count < kLeast || seen.last > at + kEarlyEnd) return false;
    const std::int64_t interval = (seen.last - seen.first) / static_cast<std::int64_t>(seen.count - 1);
    return interval > 0 && at - seen.last <= kWithinIntervals * interval && end - seen.last >= kIntervals * interval;
  });
}

// True if no process listens at a Unix socket, because the process that listened there has ended. PostgreSQL's sockets
// are named .s.PGSQL.5432.
bool lacks_listener(const Meaning& meaning) {
  const std::string_view name = std::string_view(meaning.path).substr(meaning.path.rfind('/') + 1);
  const bool socket = name.ends_with(".sock") || name.ends_with(".socket") || name.starts_with(".s.");
  return socket && meaning.peer.empty() && (meaning.error == ENOENT || meaning.error == ECONNREFUSED);
}

void add_end_of_listener(Findings& found, std::size_t n, const Report& report) {
  if (!lacks_listener(report.meaning)) return;
  Hint& hint = found.add(Hint::Kind::end, n, *report.first, kRefused * report.weight);
  hint.signal = SIGKILL;
  hint.count = report.count;
  hint.reported = hint.helper = true;
}

// True if the message names the node that has the problem: "slow disk detected on n2", "n2 has slow ops".
bool has_place(const std::vector<NodeName>& names, std::string_view by, std::string_view text) {
  for (const std::string_view word : {" on", " of", " at"})
    for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
      if (is_object(names, by, text.substr(at + word.size()))) return true;
  for (const std::string_view verb : {" has slow", " is slow"}) {
    const std::size_t at = text.find(verb);
    if (at == std::string_view::npos) continue;
    const std::size_t blank = text.substr(0, at).rfind(' ');
    if (is_object(names, by, text.substr(blank == std::string_view::npos ? 0 : blank))) return true;
  }
  return false;
}

}  // namespace

void NodeReports::add_hints() {
  for (const auto& [key, report] : calls_) {
    add_call(found_, n_, report);
    add_end_of_listener(found_, n_, report);
  }
  for (const auto& [key, report] : calls_of_others_) {
    const std::size_t before = found_.hints.size();
    add_call(found_, n_, report);
    for (std::size_t i = before; i < found_.hints.size(); ++i) found_.hints[i].node = key.first;
  }
  for (const auto& [key, report] : in_vain_)
    if (!follows_an_end(report)) add_in_vain(found_, n_, report);
  for (const auto& [other, report] : peers_)
    add_silence(found_, n_, other, report,
                report.meaning.unresolved && names_looked_up_.size() > 1 ? kUnresolvedWithOthers : kMissedByOthers,
                false, answered_.contains(other));
  if (cut_off_.first != nullptr && !here_.node.empty())
    for (const NodeName& other : found_.names)
      if (other.node != here_.node) add_silence(found_, n_, other.node, cut_off_, kOwnInterface, true);
  for (const auto& [other, report] : unnamed_)
    if ((found_.names.size() == 2 || (peers_.empty() && refusing_.empty())) && !peers_.contains(other) &&
        !refusing_.contains(other)) {
      if (report.meaning.error == ECONNREFUSED || lacks_listener(report.meaning)) add_refusal(other, report, true);
      else add_silence(found_, n_, other, report, kMissedByOthers, true);
    }
  for (const auto& [other, report] : refusing_) add_refusal(other, report, false);
  add_unresolved();
  add_outcast();
  add_standstill();
  add_suspensions();
  add_processes();
  add_clocks();
  add_slow_disk();
  add_last_end();
}

void NodeReports::add_refusal(const std::string& other, const Report& report, bool unnamed) {
  // A Unix socket is reached without a network, so a firewall cannot have refused the connection to it.
  if (!peers_.contains(other) && !lacks_listener(report.meaning))
    add_silence(found_, n_, other, report, kRefusedByFirewall, unnamed);
  bool ended = false;
  for (Hint& hint : found_.hints) {
    if (hint.kind != Hint::Kind::end || hint.node != other) continue;
    ended = true;
    // If a connection was refused while the peer logs nothing, the refusal and the silence show the same end.
    const std::int64_t ts = report.first->ts_ns;
    if (!hint.reported && ts != kNoTime && hint.ts_ns != kNoTime && hint.until_ns != kNoTime && ts >= hint.ts_ns &&
        ts <= hint.until_ns)
      hint.weight = std::max(hint.weight, kRefused * report.weight);
  }
  if (ended) return;
  const NodeLog* log = found_.log_of(other);
  const bool continues =
      logs_around(log, report) && !begins_anew(found_, log, report) && !part_fell_silent(log, report);
  Hint& hint =
      found_.add(Hint::Kind::end, n_, *report.first, kRefused * report.weight * (continues ? kLogContinues : 1));
  hint.node = other;
  hint.signal = SIGKILL;
  hint.count = report.count;
  hint.reported = true;
  hint.unnamed = unnamed;
}

// True if the report follows soon after the end of a process. A supervisor then reports that a service failed because
// its process ended.
bool NodeReports::follows_an_end(const Report& report) const {
  return report.meaning.path.empty() && std::any_of(processes_.begin(), processes_.end(), [&](const auto& process) {
           const Message& end = *process.second.first;
           return &end < report.first && (end.ts_ns == kNoTime || report.first->ts_ns - end.ts_ns <= kEarlyEnd);
         });
}

// The name server is rarely one of the nodes, so the hint is a failed call to the name server. If several names were
// not resolved, the name server is more likely missing than each of these nodes.
void NodeReports::add_unresolved() {
  if (unresolved_.first == nullptr) return;
  const bool of_a_node = names_looked_up_.size() == 1 && !names_looked_up_.contains("");
  Hint& hint = found_.add(Hint::Kind::call, n_, unresolved_, of_a_node ? kUnresolved : kExplicit);
  hint.error = ENETUNREACH;
  hint.syscalls = {"connect", "sendto"};
  hint.peer = "*:53";
}

// If a node finds incomplete data when it starts, its process ended before it had written them, for example in a power
// failure, or the data were read wrongly. An earlier end or failure in the logs is a better explanation.
void NodeReports::add_last_end() {
  const Report& report = unclean_.first != nullptr ? unclean_ : torn_;
  if (report.first == nullptr || here_.node.empty()) return;
  // If others missed the node before it found that it had not shut down cleanly, all of them report the same end.
  if (unclean_.first != nullptr)
    for (Hint& hint : found_.hints)
      if (hint.kind == Hint::Kind::end && hint.node == here_.node && hint.log != n_ && hint.ts_ns != kNoTime &&
          hint.ts_ns <= report.first->ts_ns && report.first->ts_ns - hint.ts_ns <= kConfirmedWithin)
        hint.weight = std::max(hint.weight, kConfirmedEnd * report.weight);
  const bool seen = std::any_of(found_.hints.begin(), found_.hints.end(), [&](const Hint& hint) {
    const bool ends = hint.kind == Hint::Kind::end || hint.kind == Hint::Kind::call || hint.kind == Hint::Kind::limit;
    return ends && hint.node == here_.node && (hint.ts_ns == kNoTime || hint.ts_ns < report.first->ts_ns);
  });
  if (!seen) {
    Hint& hint =
        found_.add(Hint::Kind::end, n_, *report.first, (&report == &unclean_ ? kUnclean : kTorn) * report.weight);
    hint.signal = SIGKILL;
    hint.missed = true;
    hint.until_ns = hint.ts_ns;  // what the program logs after this is no consequence of that end
    hint.words += "; the previous end of this node may have caused it";
  }
  if (torn_.first == nullptr) return;
  Hint& read = found_.add(Hint::Kind::call, n_, torn_, kTornRead);
  read.error = EIO;
  read.syscalls = calls_of_operation(Operation::read);
  read.path = torn_.meaning.path;
}

// The other nodes excluded this node, because they did not hear from it. It was partitioned or paused.
void NodeReports::add_outcast() {
  if (outcast_.first == nullptr || here_.node.empty()) return;
  for (const NodeName& other : found_.names)
    if (other.node != here_.node) add_silence(found_, n_, other.node, outcast_, kOutcast, true);
  if (longest_.first != nullptr) return;
  Hint& hint = found_.add(Hint::Kind::stop, n_, *outcast_.first, kOutcastPause * outcast_.weight);
  hint.took_ns = kOutcastPauseLength;
  hint.missed = true;
  if (hint.ts_ns == kNoTime) return;
  hint.until_ns = hint.ts_ns;
  hint.ts_ns -= kOutcastPauseLength;
}

// True if the node reports pauses throughout its log, and the longest of them is not much longer than the others.
bool NodeReports::is_usual_pause() const {
  const TemplateId kind = longest_.first->kind;
  if (!found_.occurs_throughout(n_, kind)) return false;
  std::vector<std::int64_t> all = pauses_.at(kind);
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  return longest_.meaning.own_pause_ns < kUnusualPause * all[all.size() / 2];
}

void NodeReports::add_standstill() {
  if (longest_.first == nullptr || is_usual_pause()) return;
  Hint& hint = found_.add(Hint::Kind::stop, n_, *longest_.first, kReportsPause * longest_.weight);
  hint.took_ns = longest_.meaning.own_pause_ns;
  if (hint.ts_ns == kNoTime) return;
  hint.until_ns = longest_.first->ts_ns;
  hint.ts_ns = hint.until_ns - longest_.meaning.own_pause_ns;
}

// A manager reports that it suspends a node, or that it resumes a node after some time. If it states no time, the
// suspension is assumed to begin at the time of the message.
void NodeReports::add_suspensions() {
  for (const auto& [other, report] : suspended_) {
    Hint& hint = found_.add(Hint::Kind::stop, n_, report, kReportsPause * report.weight);
    hint.node = other;
    hint.took_ns = report.meaning.other_pause_ns;
    if (hint.ts_ns != kNoTime) hint.until_ns = hint.ts_ns + hint.took_ns;
  }
}

void NodeReports::add_slow_disk() {
  const Report* own = nullptr;
  const auto add = [this](const Report& report, double weight) -> Hint& {
    Hint& hint = found_.add(Hint::Kind::limit, n_, report, weight);
    hint.limit = Hint::Limit::disk_slow;
    hint.took_ns = report.meaning.slow_disk_ns;
    // The call is reported when it ends, or while it is still waiting, so it began earlier by that duration.
    if (hint.ts_ns != kNoTime) hint.ts_ns -= hint.took_ns;
    return hint;
  };
  for (const auto& [other, report] : slowest_) {
    if (own == nullptr || report.meaning.slow_disk_ns > own->meaning.slow_disk_ns) own = &report;
    if (!other.empty())
      add(report, has_place(found_.names, here_.node, found_.failure.text(*report.first)) ? kExplicit : kOtherDisk)
          .node = other;
  }
  // If the message names another node, the writer is probably a coordinator that watches the disks of other nodes.
  if (own != nullptr)
    add(*own, has_place(found_.names, here_.node, found_.failure.text(*own->first)) ? kOtherDisk : kExplicit);
}

bool NodeReports::lives_on_after(const Message& message) const {
  const Message* const end = here_.messages.data() + here_.messages.size();
  const Message* next = &message + 1;
  for (; next != end && next <= &message + kLivesOn; ++next) {
    if (next->ts_ns != kNoTime && next->ts_ns - message.ts_ns > kLivesOnWithin) return false;
    if (found_.meaning(*next).starting) return false;
  }
  return next > &message + kLivesOn;
}

void NodeReports::add_processes() {
  // If a child process crashes after a failed call, the crash is a consequence of that call.
  const auto by_itself = [](int signal) {
    return signal == SIGABRT || signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE;
  };
  for (const auto& [key, report] : processes_) {
    if (report.meaning.helper && by_itself(report.meaning.signal) && !calls_.empty()) continue;
    const bool of_child =
        report.meaning.signal == 0 && !report.meaning.main && key.first == here_.node && lives_on_after(*report.first);
    Hint& hint = found_.add(Hint::Kind::end, n_, *report.first, (of_child ? kLogContinues : kExplicit) * report.weight);
    hint.node = key.first;
    hint.unnamed = of_child;
    hint.signal = report.meaning.signal;
    hint.exit_code = report.meaning.exit_code;
    hint.itself = report.meaning.signal == 0;
    hint.reported = true;
    hint.helper = report.meaning.helper && key.first == here_.node;
    hint.out_of_memory = report.meaning.out_of_memory;
    hint.count = report.count;
  }
}

// A node that reports a difference between two clocks does not know which of them is wrong.
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
    Hint& own = add(other.empty() ? kOneOfTwoClocks * kUnnamedOfTwo : kOneOfTwoClocks, here_.node, other);
    own.clock.off_ns = -own.clock.off_ns;
  }
}

}  // namespace rose::logs
