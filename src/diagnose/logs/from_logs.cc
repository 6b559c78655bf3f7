#include "diagnose/logs/from_logs.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "diagnose/forms.h"
#include "diagnose/logs/case.h"
#include "diagnose/logs/guesses.h"
#include "diagnose/logs/throw_sites.h"
#include "diagnose/logs/trace.h"
#include "diagnose/nodes.h"
#include "diagnose/thresholds.h"
#include "kernel/syscalls.h"
#include "logs/meaning.h"
#include "logs/quote.h"

namespace rose::diagnose {
namespace {

using logs::Hint;
using logs::kNoTime;
using trace::Event;
using trace::EventType;
using trace::ProcessState;
using trace::StringId;
using trace::Trace;

constexpr std::int64_t kTelling = 1'000'000;  // from a message that tells of its program's end to that end
constexpr std::size_t kMostPaths = 6;         // that a message may mean which names none

bool takes_path(const kernel::SyscallInfo& info) { return info.path >= 0 || info.path2 >= 0 || info.fd >= 0; }
bool is_network_call(std::string_view call) {
  return call == "connect" || call.starts_with("accept") || call.starts_with("send") || call.starts_with("recv") ||
         call == "bind" || call == "listen" || call == "socket";
}
bool ends_connection(int error) {
  switch (error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ETIMEDOUT:
    case ENOTCONN:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN: return true;
    default: return false;
  }
}
bool is_process_call(std::string_view call) {
  return call.starts_with("clone") || call == "vfork" || call == "execve" || call == "mmap" || call == "brk";
}

class FromLogs {
 public:
  FromLogs(Inputs& inputs, const logs::Evidence& evidence, const Trace* control)
      : inputs_(inputs), case_(inputs, evidence, control), beside_(!inputs.traces.empty()), out_(case_) {}

  void build() {
    if (beside_) {
      read_windows();
      read_plan();
    }
    read_down_times();
    for (const Hint& hint : case_.evidence().hints) add(hint);
    for (const logs::ClockJump& jump : case_.evidence().failure.jumps) set_clock(jump);
    if (case_.control() != nullptr && !beside_) {
      if (!inputs_.without.contains("guesses")) {
        Guesses guesses(case_, out_);
        guesses.calls();
        guesses.stops();
      }
      out_.put_control();
    }
    std::move(out_).finish(inputs_);
    notes();
    observables();
  }

 private:
  // --- dumps beside the logs: they hold every failed call, end, pause and silence of their nodes and their time, so
  // what messages say of those is in them, or it was not so. As candidates they would only be there twice. But for
  // silences and pauses, which may be too short for a tracer.

  struct Window {
    std::int64_t begin = 0, end = 0;
    bool whole = true;  // nothing was lost
  };
  struct Still {  // a silence or a pause that a dump holds
    std::string node;
    std::int64_t begin = 0, end = 0;
  };

  void read_windows() {
    const Result<NodeMap> nodes = NodeMap::make(inputs_);
    if (!nodes) return;  // the plan will say so
    for (std::size_t i = 0; i < inputs_.traces.size(); ++i) {
      const Trace& dump = inputs_.traces[i];
      if (dump.events.empty()) continue;
      if (dump.meta.end_ns != 0) last_end_ = std::max(last_end_, dump.meta.end_ns);
      const bool full = dump.meta.window != 0 && dump.events.size() >= dump.meta.window;
      const Window window{full || dump.meta.begin_ns == 0 ? dump.events.front().ts_ns : dump.meta.begin_ns,
                          end_of(dump), dump.meta.lost == 0 && dump.meta.pairs_evicted == 0};
      std::set<int> players;
      StringId last = 0;
      for (const Event& event : dump.events) {
        if (event.type == EventType::nd || (event.type == EventType::ps && event.state == ProcessState::paused)) {
          const int node = nodes->of(i, event);
          still_.push_back({node >= 0 ? nodes->name(node) : std::string(),
                            event.ts_ns - std::max(event.duration_ms, 0) * kMillisecond, event.ts_ns});
        }
        if (!players.empty() && event.node == last) continue;
        last = event.node;
        if (const int node = nodes->of(i, event); node >= 0) players.insert(node);
      }
      for (const int node : players) windows_[nodes->name(node)].push_back(window);
    }
  }

  // How much is left of what a message says of this node at that time. A log without times has those of the run without
  // faults, which say nothing of when it was in a dump.
  [[nodiscard]] double beside_dumps(const std::string& node, std::int64_t ts, std::size_t log) const {
    if (!beside_) return 1;
    const std::vector<logs::NodeLog>& logs = case_.evidence().failure.nodes;
    const bool timed = case_.timed() && !(log < logs.size() && logs[log].aligned);
    // Dumps are written when the failure has shown: what came after the last one is rather what came of it, or the
    // system's own end.
    if (timed && last_end_ != 0 && ts > last_end_ + kClocksApart) return kWithDump;
    const auto windows = windows_.find(node);
    if (windows == windows_.end()) return kUnwatchedNode;
    double left = kUnwatchedNode;
    for (const Window& span : windows->second)
      if (!timed || (ts >= span.begin - kClocksApart && ts <= span.end + kClocksApart))
        left = std::min(left, span.whole ? 0 : kWithDump);
    return left;
  }

  // Nothing in the dumps is worth a trial by itself.
  void read_plan() {
    const Result<Plan> plan = make_plan(inputs_);
    dumps_tell_nothing_ =
        plan && std::all_of(plan->candidates.begin(), plan->candidates.end(), [](const Candidate& c) {
          return c.symptom || (c.kind == schedule::FaultKind::syscall && (c.profiled || c.ordinariness > 1));
        });
  }

  // Whether dumps hold a silence or a pause of this node around then.
  [[nodiscard]] bool dump_has(const Hint& hint, const std::string& node) const {
    const std::int64_t ts = case_.time_of(hint);
    return std::any_of(still_.begin(), still_.end(), [&](const Still& still) {
      return (still.node.empty() || still.node == node || still.node == hint.peer) &&
             ts >= still.begin - kClocksApart && ts <= still.end + kClocksApart;
    });
  }

  // One supervisor starts all nodes anew, always after the same time: at most the shortest time from a last message to
  // the first one of the next life. A node that was silent for longer before it began again was still running at first.
  void read_down_times() {
    std::set<std::string> ended;
    std::int64_t shortest = 0;
    for (const Hint& hint : case_.evidence().hints) {
      if (!between_lives(hint)) continue;
      const std::int64_t down = hint.until_ns - hint.ts_ns;
      shortest = ended.empty() ? down : std::min(shortest, down);
      ended.insert(case_.node_of(hint.node));
    }
    if (ended.size() > 1) down_ = shortest;
  }
  [[nodiscard]] bool between_lives(const Hint& hint) const {
    return hint.kind == Hint::Kind::end && !hint.itself && !hint.reported && !hint.helper && !hint.missed &&
           hint.ts_ns != kNoTime && hint.until_ns != kNoTime && hint.until_ns > hint.ts_ns &&
           !case_.evidence().failure.nodes[hint.log].aligned;
  }

  // --- what messages say

  // The node that failed: a peer's error comes with its path and its name ("peer=n2 error="write /srv/n2/data/x:
  // ..."").
  [[nodiscard]] std::string whose(const Hint& hint) const {
    const std::string own = case_.node_of(hint.node);
    const auto in_path = [&](const std::string& name) {
      return hint.path.find(fmt::format("/{}/", name)) != std::string::npos;
    };
    if (hint.kind != Hint::Kind::call || hint.path.empty() || own.empty() || in_path(own)) return own;
    const logs::Logs& failure = case_.evidence().failure;
    const std::string_view text = failure.text(failure.nodes[hint.log].messages[hint.message]);
    for (const config::Node& other : inputs_.config->nodes) {
      if (!in_path(other.name)) continue;
      const auto word = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '/' || c == '.';
      };
      for (std::size_t at = text.find(other.name); at != std::string_view::npos; at = text.find(other.name, at + 1)) {
        const std::size_t end = at + other.name.size();
        if ((at == 0 || !word(text[at - 1])) && (end == text.size() || !word(text[end]))) return other.name;
      }
    }
    return own;
  }

  void add(const Hint& hint) {
    const std::string node = whose(hint);
    if (node.empty()) {
      add_of_some_node(hint);
      return;
    }
    if (hint.kind == Hint::Kind::thrown) {
      add_exception(hint, node);
      return;
    }
    if (hint.kind == Hint::Kind::clock) {
      add_clock(hint, node);
      return;
    }
    double left = beside_dumps(node, case_.time_of(hint), hint.log);
    if (hint.kind == Hint::Kind::end && hint.until_ns != kNoTime)
      left = std::max(left, beside_dumps(node, hint.until_ns, hint.log));  // some time in between
    // Short ones, and those that no tracer could see, stand in no dump.
    if ((hint.kind == Hint::Kind::silence || hint.kind == Hint::Kind::stop) && !dump_has(hint, node))
      left = std::max(left, dumps_tell_nothing_ ? 1 : kWithDump);
    if (left == 0) return;
    const double weight = hint.weight * left;
    switch (hint.kind) {
      case Hint::Kind::call: add_call(hint, node, weight); return;
      case Hint::Kind::end: hint.fell_silent ? fell_silent(hint, node, weight) : add_end(hint, node, weight); return;
      case Hint::Kind::stop: add_stop(hint, node, weight); return;
      case Hint::Kind::silence: add_silence(hint, node, weight); return;
      case Hint::Kind::limit: add_limit(hint, node, weight); return;
      case Hint::Kind::thrown:
      case Hint::Kind::clock: return;
    }
  }

  // Which node wrote it is not known. Of few, it may be any but the one that it speaks of.
  void add_of_some_node(const Hint& hint) {
    constexpr std::size_t kFew = 3;
    ++nameless_;
    std::vector<std::string> may_be;
    for (const config::Node& other_node : inputs_.config->nodes)
      if (other_node.name != hint.peer) may_be.push_back(other_node.name);
    if (may_be.empty() || may_be.size() > kFew || hint.kind == Hint::Kind::thrown) return;
    for (const std::string& name : may_be) {
      Hint copy = hint;
      copy.node = name;
      copy.weight /= static_cast<double>(may_be.size());
      add(copy);
    }
  }

  void add_end(const Hint& hint, const std::string& node, double weight) {
    // Whatever else the message tells of came before the end, and may be its cause.
    const std::int64_t logged_ns = case_.time_of(hint);
    std::int64_t gone = gone_at(hint, node);
    const std::int64_t since = gone > logged_ns + kTelling ? logged_ns : 0;
    if (gone == logged_ns) gone += kTelling;
    Event end = out_.event(EventType::ps, node, gone);
    end.state = hint.signal != 0 ? ProcessState::crashed : ProcessState::exited;
    end.signal = static_cast<std::uint8_t>(hint.signal);
    end.exit_code = hint.exit_code;
    // Which one its main process is, something must tell.
    if (hint.helper && alive_.insert(node).second) out_.put_beside(start(node, std::min(case_.first(), gone - 1)));
    end.flags = static_cast<decltype(end.flags)>((hint.helper ? 0 : trace::kMain) |
                                                 (hint.out_of_memory ? trace::kOutOfMemory : 0));
    const bool inferred = (!hint.reported && !hint.itself) || hint.unnamed;  // from a silence, or from the next life
    out_.put(end, {weight, hint.words, since, false, inferred});
    if (hint.until_ns != kNoTime)
      out_.put(start(node, std::max(hint.until_ns, end.ts_ns + 1'000'000)), {weight, hint.words});
    if (hint.weight >= kLeastHint) out_.cut_off(node, end.ts_ns);
  }

  // At the latest.
  [[nodiscard]] std::int64_t gone_at(const Hint& hint, const std::string& node) const {
    const std::int64_t logged_ns = case_.time_of(hint);
    if (hint.itself || hint.reported || hint.missed) return logged_ns;
    std::int64_t gone = case_.latest(hint, node);
    if (!between_lives(hint)) return gone;
    // A process's end closes its connections at once.
    for (const Hint& other : case_.evidence().hints)
      if (other.kind == Hint::Kind::silence && other.closed && other.peer == node && other.ts_ns != kNoTime &&
          other.ts_ns > logged_ns && !case_.evidence().failure.nodes[other.log].aligned)
        gone = std::min(gone, other.ts_ns);
    return down_ != 0 ? std::max(gone, hint.until_ns - down_) : gone;
  }

  Event start(const std::string& node, std::int64_t ts) {
    Event start = out_.event(EventType::ps, node, ts);
    start.state = ProcessState::started;
    start.flags = trace::kMain;
    return start;
  }

  // Its machine answered for a node: of a process that stands still it would have taken the connections.
  [[nodiscard]] bool refused_since(const std::string& node, std::int64_t ts) const {
    return std::any_of(case_.evidence().hints.begin(), case_.evidence().hints.end(), [&](const Hint& other) {
      const bool of_it = other.kind == Hint::Kind::silence
                             ? other.closed && other.peer == node
                             : other.kind == Hint::Kind::end && other.reported && other.node == node;
      return of_it && other.ts_ns != kNoTime && other.ts_ns >= ts;
    });
  }

  // A node that logs nothing any more has ended or is paused. A node that is restarted would have logged its start.
  void fell_silent(const Hint& hint, const std::string& node, double weight) {
    const config::Node* known = inputs_.config->find(node);
    const bool hangs =
        known != nullptr && known->restart && known->restart->max > 0 && !refused_since(node, case_.time_of(hint));
    add_end(hint, node, hangs ? weight * kOtherInterpretation : weight);
    if (hint.itself || beside_) return;
    const std::int64_t since = case_.time_of(hint);
    put_stop(node, since, std::max(since + 1'000'000, case_.last()), trace::kOpen,
             {hangs ? weight : weight * kOtherInterpretation, hint.words, 0, false, true});
  }

  void add_stop(const Hint& hint, const std::string& node, double weight) {
    const std::int64_t since = case_.time_of(hint);
    const std::int64_t until = hint.until_ns != kNoTime ? hint.until_ns : since + hint.took_ns;
    const std::int64_t earliest = hint.since_ns == kNoTime ? 0 : hint.since_ns;
    put_stop(node, since, until, 0, {weight, hint.words, earliest, false, hint.missed});
  }

  void put_stop(const std::string& node, std::int64_t since, std::int64_t until, unsigned flags,
                LogEvidence::OfEvent evidence) {
    Event stop = out_.event(EventType::ps, node, until);
    stop.state = ProcessState::paused;
    stop.duration_ms = static_cast<std::int32_t>(std::min<std::int64_t>((until - since) / 1'000'000, 3'600'000));
    stop.flags = static_cast<decltype(stop.flags)>(trace::kMain | flags);
    out_.put(stop, std::move(evidence));
  }

  void add_silence(const Hint& hint, const std::string& node, double weight) {
    const std::int64_t logged_ns = case_.time_of(hint);
    std::int64_t begin = std::max(case_.first(), logged_ns - kNoticedAfter);
    // That its peer's process ended is why its connections were closed, and nothing fell silent before.
    for (const Hint& other : case_.evidence().hints) {
      if (!hint.closed || !between_lives(other) || other.weight < kLeastReported ||
          case_.node_of(other.node) != hint.peer)
        continue;
      if (const std::int64_t gone = gone_at(other, hint.peer); gone > begin && gone <= logged_ns)
        begin = gone + kTelling;
    }
    const std::int64_t end = std::max(hint.until_ns != kNoTime ? hint.until_ns : begin, begin + kLeastSilence);
    out_.put_silence(node, hint.peer, begin, end, weight, hint.words, hint.unnamed);
  }

  void add_call(const Hint& hint, const std::string& node, double weight) {
    const std::int64_t ts = case_.time_of(hint);
    std::int64_t later = 0;  // likelier calls stand before others
    std::size_t left = 12;   // faults that one message may stand for
    for (const std::string_view call : hint.syscalls) {
      const kernel::SyscallInfo* info = kernel::find_syscall(call);
      if (info == nullptr || !case_.makes(node, call) || left == 0) continue;
      // A file is named: calls that have none are not meant.
      const bool without_file = is_network_call(call) || is_process_call(call);
      if (!hint.path.empty() && without_file && !ends_connection(hint.error)) continue;
      std::vector<std::string> paths;
      const bool of_connection = ends_connection(hint.error) && !is_network_call(call);  // a read or write of a socket
      if (of_connection && hint.peer.empty()) continue;
      if (!of_connection && !is_network_call(call) && !is_process_call(call) && takes_path(*info)) {
        if (!hint.path.empty()) paths.push_back(hint.path);
        else paths = files_near(node, ts, call);
        if (paths.empty()) {  // any call at all: its output, too
          if (case_.control() == nullptr) ++fileless_;
          // The message names the call, and only its file is not known; or no run shows which files the node uses, and
          // any of them may be meant.
          if (!hint.exact && case_.control() != nullptr) continue;
          paths.emplace_back(hint.exact ? "" : "/*");
        }
      } else {
        paths.emplace_back();
      }
      for (const std::string& path : paths) {
        if (left == 0) break;
        --left;
        Event failed = out_.event(EventType::scf, node, ts + 1000 * later++);
        failed.syscall = static_cast<std::int16_t>(info->number);
        failed.err = static_cast<std::int16_t>(hint.error);
        if (!path.empty()) failed.path = out_.intern(path);
        if (!hint.peer.empty() && (of_connection || is_network_call(call))) failed.peer = out_.intern(hint.peer);
        failed.count =
            hint.count > 1 ? static_cast<std::uint32_t>(std::min<std::uint64_t>(hint.count - 1, 100'000)) : 1;
        const bool inferred = !path.empty() && hint.path.empty();  // one of the files it works on
        out_.put(failed, {weight, hint.words, 0, false, inferred});
        if (hint.count > 1) {
          failed.ts_ns = std::max(failed.ts_ns + 1, hint.until_ns != kNoTime ? hint.until_ns : ts);
          failed.count = 1;
          out_.put(failed, {weight, hint.words, 0, false, inferred});
        }
        weight *= kNextCall;
      }
    }
    if (hint.weight >= kLeastHint) out_.cut_off(node, ts);
  }

  void add_limit(const Hint& hint, const std::string& node, double weight) {
    const auto kind = [&] {
      switch (hint.limit) {
        case Hint::Limit::disk_full: return schedule::FaultKind::disk_full;
        case Hint::Limit::disk_slow: return schedule::FaultKind::disk_slow;
        case Hint::Limit::descriptors: return schedule::FaultKind::descriptors;
      }
      ROSE_BUG("a limit of a hint that is none");
    }();
    inputs_.reported_limits.push_back(
        {kind, node, std::max(case_.first(), case_.time_of(hint)), hint.took_ns, hint.count, weight, hint.words});
  }

  // Files of the node that the run without faults made or changed, those touched last before that moment first.
  [[nodiscard]] std::vector<std::string> files_near(const std::string& node, std::int64_t ts,
                                                    std::string_view call) const {
    std::vector<std::string> files;
    if (case_.control() == nullptr) return files;
    std::vector<std::pair<std::int64_t, std::string>> by_distance;
    for (const Event& control_event : case_.control()->events) {
      if (control_event.type != EventType::sys || control_event.path == 0 ||
          case_.name_in_control(control_event) != node)
        continue;
      const std::string done = kernel::syscall_name(control_event.syscall);
      const bool makes_file = done.starts_with("open") || done == "creat" || done.find("sync") != std::string::npos ||
                              done.starts_with("rename") || done.find("truncate") != std::string::npos ||
                              done == "fallocate" || done == call;
      if (!makes_file || is_network_call(done) || done == "execve") continue;
      const std::string_view path = case_.control()->str(control_event.path);
      if (path.empty() || path[0] != '/' || path.starts_with("/proc/") || path.starts_with("/dev/") ||
          path.starts_with("/sys/"))
        continue;
      const std::int64_t apart = ts - case_.there(node, control_event.ts_ns);
      by_distance.emplace_back(apart >= 0 ? apart : 10 * -apart, std::string(path));
    }
    std::stable_sort(by_distance.begin(), by_distance.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::set<std::string> patterns;
    for (const auto& [distance, path] : by_distance) {
      if (!patterns.insert(profile::path_pattern(path)).second) continue;
      files.push_back(path);
      if (files.size() == kMostPaths) break;
    }
    return files;
  }

  // The likelihoods of other causes stay the same: the exception is the cause, or a symptom of one. An exception that a
  // peer threw and sent was thrown by another node; the survey shows which nodes reach that code.
  void add_exception(const Hint& hint, const std::string& node) {
    const bool sent =
        std::any_of(hint.trace.begin(), hint.trace.end(), [](const logs::Thrown& thrown) { return thrown.elsewhere; });
    bool placed = false;
    for (const config::Node& other_node : inputs_.config->nodes) {
      const bool here = other_node.name == node;
      if (!here && !sent) continue;
      const double weight = (beside_ ? hint.weight * kWithDump : hint.weight) * (here && sent ? kThrownByPeer : 1);
      ReportedException exception{other_node.name,
                                  case_.time_of(hint),
                                  hint.until_ns,
                                  hint.count,
                                  weight,
                                  {},
                                  throw_sites(hint.trace, other_node, !here)};
      if (exception.sites.empty()) continue;
      placed = true;
      exception.last_ts = std::max(exception.last_ts, exception.first_ts);
      exception.visits = visits(other_node.name, exception.sites[0].function, exception.first_ts);
      exception.words =
          fmt::format("{}, with {} in {}", hint.words, exception.sites[0].throws, exception.sites[0].frame);
      inputs_.exceptions.push_back(std::move(exception));
    }
    if (!placed && inputs_.config->find(node) != nullptr) ++nowhere_;
  }

  // How often the run without faults had entered the method by that moment of the incident's time line.
  [[nodiscard]] std::uint64_t visits(const std::string& node, const std::string& function, std::int64_t ts) const {
    if (case_.control() == nullptr) return 0;
    std::uint64_t visits = 0;
    for (const Event& control_event : case_.control()->events)
      if (control_event.type == EventType::af && case_.name_in_control(control_event) == node &&
          case_.control()->str(control_event.function) == function && case_.there(node, control_event.ts_ns) <= ts)
        ++visits;
    return visits;
  }

  // Dumps do not record what a process reads from its clock, so logs count beside dumps, too.
  void set_clock(const logs::ClockJump& jump) {
    const std::string node = case_.name_of(jump.log);
    if (inputs_.config->find(node) == nullptr) {
      ++nameless_;
      return;
    }
    inputs_.clock_steps.push_back({node, jump.at_ns, jump.until_ns == kNoTime ? 0 : jump.until_ns - jump.at_ns,
                                   jump.change_ns, jump.weight, jump.words, false, false, Known::inferred});
  }

  // No dump of one host tells what its clock is beside the others'.
  void add_clock(const Hint& hint, const std::string& node) {
    const std::int64_t off = hint.clock.off_ns;
    const std::string by = fmt::format("{} {}", format_duration(rounded(std::abs(off))),
                                       hint.clock.either_way ? "off"
                                       : off < 0             ? "behind"
                                                             : "ahead");
    inputs_.clock_steps.push_back({node, case_.time_of(hint), 0, off, hint.weight,
                                   fmt::format("{}: the clock of {} is {}", hint.words, node, by), !hint.clock.stepped,
                                   hint.clock.either_way});
  }

  // --- what the search gets besides the trace

  void notes() {
    if (nameless_ > 0)
      inputs_.log_notes.push_back(fmt::format("{} of logs {} to no known node: name the node with --log NODE=FILE",
                                              nameless_ == 1 ? "1 finding" : fmt::format("{} findings", nameless_),
                                              nameless_ == 1 ? "belongs" : "belong"));
    if (nowhere_ > 0)
      inputs_.log_notes.push_back(fmt::format(
          "{} exception{} of logs {} in no method of a JVM that the node is known to run: none is thrown for {}",
          nowhere_, nowhere_ == 1 ? "" : "s", nowhere_ == 1 ? "comes up" : "come up", nowhere_ == 1 ? "it" : "them"));
    const bool end_is_reported =
        std::any_of(case_.evidence().hints.begin(), case_.evidence().hints.end(), [](const Hint& hint) {
          return (hint.kind == Hint::Kind::end || hint.kind == Hint::Kind::stop) && hint.weight >= kLeastReported;
        });
    if (end_is_reported && !beside_ && inputs_.config->nodes.size() > 1)
      inputs_.log_notes.push_back(
          "a partition or pause that no message mentions may have preceded them: the search tries that, too, after "
          "what messages mention");
    if (fileless_ > 0)
      inputs_.log_notes.push_back(
          "some messages name an error but no file: a run without faults shows which files the node uses, and those "
          "are tried");
  }

  void observables() {
    std::vector<std::string> quotes;
    for (const logs::Observed& observed : case_.evidence().difference.observed) {
      const logs::Message& message = case_.evidence().failure.nodes[observed.node].messages[observed.first];
      const logs::Logs& failure = case_.evidence().failure;
      quotes.push_back(quote(failure, observed.node, message));
      inputs_.log_observables.push_back(
          {key_of(failure, observed), case_.name_of(observed.node),
           message.ts_ns != kNoTime ? message.ts_ns : case_.last(),
           logs::read_meaning(failure.text(message)).says_something() ? quotes.back() : ""});
    }
    // Nothing is understood of it: then whatever only the failure has has to do.
    if (std::all_of(inputs_.log_observables.begin(), inputs_.log_observables.end(),
                    [](const Observable& observable) { return observable.words.empty(); }))
      for (std::size_t i = 0; i < quotes.size(); ++i) inputs_.log_observables[i].words = std::move(quotes[i]);
  }

  Inputs& inputs_;
  const LogCase case_;
  const bool beside_;  // there are dumps, which say more: sites and contexts come from them
  LogTrace out_;
  std::map<std::string, std::vector<Window>> windows_;  // of dumps, by node
  std::vector<Still> still_;                            // of dumps
  bool dumps_tell_nothing_ = false;
  std::int64_t last_end_ = 0;    // when the last dump was written; 0 unknown
  std::int64_t down_ = 0;        // of a node that begins again, at most; 0: not known
  std::set<std::string> alive_;  // nodes of which helpers ended
  std::uint64_t nameless_ = 0;
  std::uint64_t fileless_ = 0;  // errors of files that neither the message nor, without a run, anything else names
  std::uint64_t nowhere_ = 0;   // exceptions that could not be assigned to a method
};

}  // namespace

void add_logs(Inputs& inputs, const logs::Evidence& evidence, const Trace* control) {
  FromLogs(inputs, evidence, control).build();
}

}  // namespace rose::diagnose
