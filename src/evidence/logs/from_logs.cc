#include "evidence/logs/from_logs.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "evidence/forms.h"
#include "evidence/logs/case.h"
#include "evidence/logs/guesses.h"
#include "evidence/logs/source.h"
#include "evidence/logs/throw_sites.h"
#include "evidence/nodes.h"
#include "kernel/syscalls.h"
#include "logs/meaning.h"
#include "logs/quote.h"
#include "weights/weights.h"

namespace rose::evidence {
namespace {

using logs::Hint;
using logs::kNoTime;
using trace::Event;
using trace::EventType;
using trace::ProcessState;
using trace::StringId;
using trace::Trace;

constexpr std::int64_t kMessageToEnd =
    1'000'000;                         // ns between a message that reports the end of its program and that end
constexpr std::size_t kMostPaths = 6;  // files to try for a message that names none

bool takes_path(const kernel::SyscallInfo& info) { return info.path >= 0 || info.path2 >= 0 || info.fd >= 0; }
bool is_network_call(std::string_view call) {
  return call == "connect" || call.starts_with("accept") || call.starts_with("send") || call.starts_with("recv") ||
         call == "bind" || call == "listen" || call == "socket";
}
// True for errors with which connections fail or end. A read or write that returns one is that of a socket.
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

// Converts the hints of the logs to observations, and collects what else the search needs.
class FromLogs {
 public:
  FromLogs(Evidence& inputs, const logs::Evidence& evidence, const Trace* control, bool dumps_explain)
      : inputs_(inputs),
        case_(inputs, evidence, control),
        with_dumps_(inputs.recorded()),
        dumps_explain_(dumps_explain),
        out_(case_) {}

  void build() {
    if (with_dumps_) read_windows();
    find_restart_delay();
    for (const Hint& hint : case_.evidence().hints) add(hint);
    for (const logs::ClockJump& jump : case_.evidence().failure.jumps) set_clock(jump);
    if (case_.control() != nullptr && !with_dumps_) {
      if (!inputs_.without.contains("guesses")) {
        Guesses guesses(case_, out_);
        guesses.add_calls();
        guesses.add_stops();
      }
      out_.put_control();
    }
    std::move(out_).finish(inputs_);
    notes();
    observables();
  }

 private:
  // --- dumps in addition to logs. A dump contains every failed call, end, pause and silence of its nodes during its
  // time span. So if a message reports such an event, the dump contains it, or it did not happen. Candidates from
  // messages would only repeat those of the dump. The exceptions are silences and pauses, which may be too short for a
  // tracer.

  // The time that a dump covers.
  struct Window {
    std::int64_t begin = 0, end = 0;
    bool whole = true;  // no events were lost
  };
  struct SilentSpan {  // a silence or a pause that a dump contains
    std::string node;
    std::int64_t begin = 0, end = 0;
  };

  // Records which nodes each dump contains, for which time, and which silences and pauses. A full window begins with
  // its first event, because earlier ones were overwritten.
  void read_windows() {
    const Result<NodeMap> nodes = NodeMap::make(inputs_);
    if (!nodes) return;  // the plan will report the error
    for (std::size_t i = 0; i < inputs_.sources.size(); ++i) {
      const Source& dump = inputs_.sources[i];
      if (dump.observations.empty()) continue;
      if (dump.meta.end_ns != 0) last_end_ = std::max(last_end_, dump.meta.end_ns);
      const bool full = dump.meta.window != 0 && dump.observations.size() >= dump.meta.window;
      const Window window{full || dump.meta.begin_ns == 0 ? dump.observations.front().ts_ns : dump.meta.begin_ns,
                          dump.meta.end_ns > 0 ? dump.meta.end_ns : dump.observations.back().ts_ns,
                          dump.meta.lost == 0 && dump.meta.pairs_evicted == 0};
      std::set<int> players;
      StringId last = 0;
      for (const Observation& event : dump.observations) {
        if (event.type == EventType::nd || (event.type == EventType::ps && event.state == ProcessState::paused)) {
          const int node = nodes->of(i, event);
          silent_spans_.push_back({node >= 0 ? nodes->name(node) : std::string(),
                                   event.ts_ns - std::max(event.duration_ms, 0) * kMillisecond, event.ts_ns});
        }
        if (!players.empty() && event.node == last) continue;
        last = event.node;
        if (const int node = nodes->of(i, event); node >= 0) players.insert(node);
      }
      for (const int node : players) windows_[nodes->name(node)].push_back(window);
    }
  }

  // The factor for a hint at this node and time: how likely it is in spite of the dumps. A log without timestamps has
  // those of the control run, which do not show whether a dump covers the message.
  [[nodiscard]] double weight_beside_dumps(const std::string& node, std::int64_t ts, std::size_t log) const {
    if (!with_dumps_) return 1;
    const std::vector<logs::NodeLog>& logs = case_.evidence().failure.nodes;
    const bool timed = case_.timed() && !(log < logs.size() && logs[log].aligned);
    // Dumps are written after the failure. What happens later is probably a consequence, or the end of the system.
    if (timed && last_end_ != 0 && ts > last_end_ + kClocksApart) return kWithDump;
    const auto windows = windows_.find(node);
    if (windows == windows_.end()) return kUnwatchedNode;
    double left = kUnwatchedNode;
    for (const Window& span : windows->second)
      if (!timed || (ts >= span.begin - kClocksApart && ts <= span.end + kClocksApart))
        left = std::min(left, span.whole ? 0 : kWithDump);
    return left;
  }

  // True if a dump contains a silence or a pause of this node at about that time.
  [[nodiscard]] bool dump_has(const Hint& hint, const std::string& node) const {
    const std::int64_t ts = case_.time_of(hint);
    return std::any_of(silent_spans_.begin(), silent_spans_.end(), [&](const SilentSpan& span) {
      return (span.node.empty() || span.node == node || span.node == hint.peer) && ts >= span.begin - kClocksApart &&
             ts <= span.end + kClocksApart;
    });
  }

  // One supervisor restarts all nodes, always after the same delay. The delay is at most the shortest time between the
  // last message of a process and the first message of the next process of its node. A node that was silent for longer
  // was therefore still running at the beginning of its silence.
  void find_restart_delay() {
    std::set<std::string> ended;
    std::int64_t shortest = 0;
    for (const Hint& hint : case_.evidence().hints) {
      if (!between_lives(hint)) continue;
      const std::int64_t down = hint.until_ns - hint.ts_ns;
      shortest = ended.empty() ? down : std::min(shortest, down);
      ended.insert(case_.node_of(hint.node));
    }
    if (ended.size() > 1) restart_delay_ = shortest;
  }
  // True if the hint's only evidence is that the log has a later life.
  [[nodiscard]] bool between_lives(const Hint& hint) const {
    return hint.kind == Hint::Kind::end && !hint.itself && !hint.reported && !hint.helper && !hint.missed &&
           hint.ts_ns != kNoTime && hint.until_ns != kNoTime && hint.until_ns > hint.ts_ns &&
           !case_.evidence().failure.nodes[hint.log].aligned;
  }

  // --- what messages report

  // The node on which the failure occurred. A node that reports a peer's error includes the peer's name and path:
  // "peer=n2 error="write /srv/n2/data/x: ...".
  [[nodiscard]] std::string failing_node(const Hint& hint) const {
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

  // Adds what one hint suggests, with less weight if dumps make it unlikely.
  void add(const Hint& hint) {
    const std::string node = failing_node(hint);
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
    double left = weight_beside_dumps(node, case_.time_of(hint), hint.log);
    if (hint.kind == Hint::Kind::end && hint.until_ns != kNoTime)
      left = std::max(left, weight_beside_dumps(node, hint.until_ns, hint.log));  // it ended between these times
    // A dump lacks short silences and pauses, and those that no tracer could observe.
    if ((hint.kind == Hint::Kind::silence || hint.kind == Hint::Kind::stop) && !dump_has(hint, node))
      left = std::max(left, with_dumps_ && !dumps_explain_ ? 1 : kWithDump);
    if (left == 0) return;
    const double weight = hint.weight * left;
    switch (hint.kind) {
      case Hint::Kind::call: add_call(hint, node, weight); return;
      case Hint::Kind::end: hint.ended_early ? add_early_end(hint, node, weight) : add_end(hint, node, weight); return;
      case Hint::Kind::stop: add_stop(hint, node, weight); return;
      case Hint::Kind::silence: add_silence(hint, node, weight); return;
      case Hint::Kind::limit: add_limit(hint, node, weight); return;
      case Hint::Kind::thrown:
      case Hint::Kind::clock: return;
    }
  }

  // Adds a hint from a log of an unknown node. If there are few nodes, it is added for each of them, except for the one
  // that the message is about.
  void add_of_some_node(const Hint& hint) {
    constexpr std::size_t kFew = 3;
    ++without_node_;
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

  // `since`: see Origin::since_ns.
  static Origin origin_of(const Hint& hint, double weight, bool inferred, std::int64_t since = 0) {
    return {inferred ? Known::inferred : Known::stated, weight, hint.words, since, {}, false};
  }

  // Adds the end of a process, and the start of the next one if the logs show it.
  void add_end(const Hint& hint, const std::string& node, double weight) {
    // Place the end after everything else that the message reports, which may be the cause.
    const std::int64_t logged_ns = case_.time_of(hint);
    std::int64_t gone = gone_at(hint, node);
    const std::int64_t since = gone > logged_ns + kMessageToEnd ? logged_ns : 0;
    if (gone == logged_ns) gone += kMessageToEnd;
    Observation end = out_.observation(EventType::ps, node, gone);
    end.state = hint.signal != 0 ? ProcessState::crashed : ProcessState::exited;
    end.signal = static_cast<std::uint8_t>(hint.signal);
    end.exit_code = hint.exit_code;
    // The observations must show which process is the main one.
    if (hint.helper && alive_.insert(node).second) out_.put_context(start(node, std::min(case_.first(), gone - 1)));
    end.flags = static_cast<decltype(end.flags)>((hint.helper ? 0 : trace::kMain) |
                                                 (hint.out_of_memory ? trace::kOutOfMemory : 0));
    // It is inferred from a silence, from the node's next start, or from a message that names no node.
    const bool inferred = (!hint.reported && !hint.itself) || hint.unnamed || hint.passing;
    const Origin origin = origin_of(hint, weight, inferred, since);
    out_.put(end, origin);
    if (hint.until_ns != kNoTime)
      out_.put(start(node, std::max(hint.until_ns, end.ts_ns + 1'000'000)), origin_of(hint, weight, false));
    if (hint.weight >= kLeastHint) out_.cut_off(node, end.ts_ns);
  }

  // The latest time at which the process may have ended.
  [[nodiscard]] std::int64_t gone_at(const Hint& hint, const std::string& node) const {
    const std::int64_t logged_ns = case_.time_of(hint);
    if (hint.itself || hint.reported || hint.missed) return logged_ns;
    std::int64_t gone = case_.latest(hint, node);
    if (!between_lives(hint)) return gone;
    // The end of a process closes its connections at once.
    for (const Hint& other : case_.evidence().hints)
      if (other.kind == Hint::Kind::silence && other.closed && other.peer == node && other.ts_ns != kNoTime &&
          other.ts_ns > logged_ns && !case_.evidence().failure.nodes[other.log].aligned)
        gone = std::min(gone, other.ts_ns);
    return restart_delay_ != 0 ? std::max(gone, hint.until_ns - restart_delay_) : gone;
  }

  Observation start(const std::string& node, std::int64_t ts) {
    Observation start = out_.observation(EventType::ps, node, ts);
    start.state = ProcessState::started;
    start.flags = trace::kMain;
    return start;
  }

  // True if the node's machine refused connections after `ts`. The machine of a paused process would have accepted
  // them.
  [[nodiscard]] bool refused_since(const std::string& node, std::int64_t ts) const {
    return std::any_of(case_.evidence().hints.begin(), case_.evidence().hints.end(), [&](const Hint& other) {
      const bool of_it = other.kind == Hint::Kind::silence
                             ? other.closed && other.peer == node
                             : other.kind == Hint::Kind::end && other.reported && other.node == node;
      return of_it && other.ts_ns != kNoTime && other.ts_ns >= ts;
    });
  }

  // A node that logs nothing more has ended or is paused. If the deployment restarts the node, an end is less likely:
  // the new process would have logged its start.
  void add_early_end(const Hint& hint, const std::string& node, double weight) {
    const config::Node* known = inputs_.config->find(node);
    const bool hangs =
        known != nullptr && known->restart && known->restart->max > 0 && !refused_since(node, case_.time_of(hint));
    add_end(hint, node, hangs ? weight * kOtherInterpretation : weight);
    if (hint.itself || with_dumps_) return;
    const std::int64_t since = case_.time_of(hint);
    put_stop(node, since, std::max(since + 1'000'000, case_.last()), trace::kOpen,
             origin_of(hint, hangs ? weight : weight * kOtherInterpretation, true));
  }

  void add_stop(const Hint& hint, const std::string& node, double weight) {
    const std::int64_t since = case_.time_of(hint);
    const std::int64_t until = hint.until_ns != kNoTime ? hint.until_ns : since + hint.took_ns;
    const std::int64_t earliest = hint.since_ns == kNoTime ? 0 : hint.since_ns;
    put_stop(node, since, until, 0, origin_of(hint, weight, hint.missed || hint.passing, earliest));
  }

  void put_stop(const std::string& node, std::int64_t since, std::int64_t until, unsigned flags, Origin origin) {
    Observation stop = out_.observation(EventType::ps, node, until);
    stop.state = ProcessState::paused;
    stop.duration_ms = static_cast<std::int32_t>(std::min<std::int64_t>((until - since) / 1'000'000, 3'600'000));
    stop.flags = static_cast<decltype(stop.flags)>(trace::kMain | flags);
    out_.put(stop, std::move(origin));
  }

  void add_silence(const Hint& hint, const std::string& node, double weight) {
    const std::int64_t logged_ns = case_.time_of(hint);
    std::int64_t begin = std::max(case_.first(), logged_ns - kNoticedAfter);
    // The end of the peer's process closed its connections, so nothing was silent before it.
    for (const Hint& other : case_.evidence().hints) {
      if (!hint.closed || !between_lives(other) || other.weight < kLeastReported ||
          case_.node_of(other.node) != hint.peer)
        continue;
      if (const std::int64_t gone = gone_at(other, hint.peer); gone > begin && gone <= logged_ns)
        begin = gone + kMessageToEnd;
    }
    const std::int64_t end = std::max(hint.until_ns != kNoTime ? hint.until_ns : begin, begin + kLeastSilence);
    out_.put_silence(node, hint.peer, begin, end, origin_of(hint, weight, hint.unnamed || hint.passing));
  }

  // Adds a failed call for each system call and file that the message may mean. The most likely one comes first; each
  // further one has less weight.
  void add_call(const Hint& hint, const std::string& node, double weight) {
    const std::int64_t ts = case_.time_of(hint);
    std::int64_t later = 0;  // puts the most likely calls first
    std::size_t left = 12;   // faults to try for one message
    for (const std::string_view call : hint.syscalls) {
      const kernel::SyscallInfo* info = kernel::find_syscall(call);
      if (info == nullptr || !case_.makes_call(node, call) || left == 0) continue;
      // If a file is named, calls without a file are not meant.
      const bool without_file = is_network_call(call) || is_process_call(call);
      if (!hint.path.empty() && without_file && !ends_connection(hint.error)) continue;
      std::vector<std::string> paths;
      const bool of_connection = ends_connection(hint.error) && !is_network_call(call);  // a read or write of a socket
      if (of_connection && hint.peer.empty()) continue;
      if (!of_connection && !is_network_call(call) && !is_process_call(call) && takes_path(*info)) {
        if (!hint.path.empty()) paths.push_back(hint.path);
        else paths = files_near(node, ts, call);
        if (paths.empty()) {  // a fault without a path would also hit the output of the program
          if (case_.control() == nullptr) ++without_file_;
          // Use a call without a file only if the message names the call, or if no control run shows which files the
          // node uses.
          if (!hint.exact && case_.control() != nullptr) continue;
          paths.emplace_back(hint.exact ? "" : "/*");
        }
      } else {
        paths.emplace_back();
      }
      for (const std::string& path : paths) {
        if (left == 0) break;
        --left;
        Observation failed = out_.observation(EventType::scf, node, ts + 1000 * later++);
        failed.syscall = static_cast<std::int16_t>(info->number);
        failed.err = static_cast<std::int16_t>(hint.error);
        if (!path.empty()) failed.path = out_.intern(path);
        if (!hint.peer.empty() && (of_connection || is_network_call(call))) failed.peer = out_.intern(hint.peer);
        failed.count =
            hint.count > 1 ? static_cast<std::uint32_t>(std::min<std::uint64_t>(hint.count - 1, 100'000)) : 1;
        // It is inferred if the message names no file, so that `path` is one of the files that the node uses, or if it
        // names no failed call, so that `call` is one of those that lose a peer.
        const bool inferred = (!path.empty() && hint.path.empty()) || hint.unnamed || hint.passing;
        out_.put(failed, origin_of(hint, weight, inferred));
        if (hint.count > 1) {
          failed.ts_ns = std::max(failed.ts_ns + 1, hint.until_ns != kNoTime ? hint.until_ns : ts);
          failed.count = 1;
          out_.put(failed, origin_of(hint, weight, inferred));
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
    inputs_.reported_limits.push_back({kind, node, std::max(case_.first(), case_.time_of(hint)), hint.took_ns,
                                       hint.count, weight, hint.words, hint.passing});
  }

  // Files that the node created or changed in the control run; those used shortly before `ts` first.
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
      const std::int64_t apart = ts - case_.to_incident(node, control_event.ts_ns);
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

  // Adds an exception. The weights of other candidates stay the same: the exception is either the cause or a
  // consequence of one of them. An exception that a peer threw and sent may come from any other node; the survey shows
  // which nodes reach that code.
  void add_exception(const Hint& hint, const std::string& node) {
    const bool sent =
        std::any_of(hint.trace.begin(), hint.trace.end(), [](const logs::Thrown& thrown) { return thrown.elsewhere; });
    bool placed = false;
    for (const config::Node& other_node : inputs_.config->nodes) {
      const bool here = other_node.name == node;
      if (!here && !sent) continue;
      const double weight = (with_dumps_ ? hint.weight * kWithDump : hint.weight) * (here && sent ? kThrownByPeer : 1);
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
    if (!placed && inputs_.config->find(node) != nullptr) ++without_method_;
  }

  // How often the control run had entered the method by that time of the incident.
  [[nodiscard]] std::uint64_t visits(const std::string& node, const std::string& function, std::int64_t ts) const {
    if (case_.control() == nullptr) return 0;
    std::uint64_t visits = 0;
    for (const Event& control_event : case_.control()->events)
      if (control_event.type == EventType::af && case_.name_in_control(control_event) == node &&
          case_.control()->str(control_event.function) == function &&
          case_.to_incident(node, control_event.ts_ns) <= ts)
        ++visits;
    return visits;
  }

  // Logs are used even if there are dumps, because dumps do not record the clock values that a process reads.
  void set_clock(const logs::ClockJump& jump) {
    const std::string node = case_.name_of(jump.log);
    if (inputs_.config->find(node) == nullptr) {
      ++without_node_;
      return;
    }
    inputs_.clock_steps.push_back({node, jump.at_ns, jump.until_ns == kNoTime ? 0 : jump.until_ns - jump.at_ns,
                                   jump.change_ns, jump.weight, jump.words, false, false, Known::inferred});
  }

  // The dump of one host does not show how its clock differs from those of other hosts.
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

  // --- what else the search needs

  // Collects notes for the user: what could not be used, and which faults are tried although no message mentions them.
  void notes() {
    if (without_node_ > 0)
      inputs_.log_notes.push_back(
          fmt::format("{} of logs {} to no known node: name the node with --log NODE=FILE",
                      without_node_ == 1 ? "1 finding" : fmt::format("{} findings", without_node_),
                      without_node_ == 1 ? "belongs" : "belong"));
    if (without_method_ > 0)
      inputs_.log_notes.push_back(fmt::format(
          "{} exception{} of logs {} in no method of a JVM that the node is known to run: none is thrown for {}",
          without_method_, without_method_ == 1 ? "" : "s", without_method_ == 1 ? "comes up" : "come up",
          without_method_ == 1 ? "it" : "them"));
    const bool end_is_reported =
        std::any_of(case_.evidence().hints.begin(), case_.evidence().hints.end(), [](const Hint& hint) {
          return (hint.kind == Hint::Kind::end || hint.kind == Hint::Kind::stop) && hint.weight >= kLeastReported;
        });
    if (end_is_reported && !with_dumps_ && inputs_.config->nodes.size() > 1)
      inputs_.log_notes.push_back(
          "a partition or pause that no message mentions may have preceded them: the search tries that, too, after "
          "what messages mention");
    if (without_file_ > 0)
      inputs_.log_notes.push_back(
          "some messages name an error but no file: a run without faults shows which files the node uses, and those "
          "are tried");
  }

  // Passes the observables to the search, with a quote of those whose meaning is known.
  void observables() {
    std::vector<std::string> quotes;
    for (const logs::Observed& observed : case_.evidence().difference.observed) {
      const logs::Message& message = case_.evidence().failure.nodes[observed.node].messages[observed.first];
      const logs::Logs& failure = case_.evidence().failure;
      quotes.push_back(quote(failure, observed.node, message));
      inputs_.log_observables.push_back(
          {key_of(failure, observed), case_.name_of(observed.node),
           message.ts_ns != kNoTime ? message.ts_ns : case_.last(),
           logs::read_meaning(failure.text(message)).reports_anything() ? quotes.back() : ""});
    }
    // If no observable is understood, any of them may be related to the failure.
    if (std::all_of(inputs_.log_observables.begin(), inputs_.log_observables.end(),
                    [](const Observable& observable) { return observable.words.empty(); }))
      for (std::size_t i = 0; i < quotes.size(); ++i) inputs_.log_observables[i].words = std::move(quotes[i]);
  }

  Evidence& inputs_;
  const LogCase case_;
  const bool with_dumps_;     // there are dumps, which provide sites and contexts
  const bool dumps_explain_;  // see add_logs()
  LogSource out_;
  std::map<std::string, std::vector<Window>> windows_;  // the times that dumps cover; key: node
  std::vector<SilentSpan> silent_spans_;                // the silences and pauses that dumps contain
  std::int64_t last_end_ = 0;                           // when the last dump was written; 0: unknown
  std::int64_t restart_delay_ = 0;                      // how long a restarted node was down, at most; 0: unknown
  std::set<std::string> alive_;                         // nodes of which child processes ended
  std::uint64_t without_node_ = 0;
  std::uint64_t without_file_ = 0;    // errors whose file neither the message nor a control run shows
  std::uint64_t without_method_ = 0;  // exceptions without a method in the deployment
};

}  // namespace

void add_logs(Evidence& inputs, const logs::Evidence& evidence, const Trace* control, bool dumps_explain) {
  FromLogs(inputs, evidence, control, dumps_explain).build();
}

}  // namespace rose::evidence
