#include "diagnose/extract.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/units.h"
#include "diagnose/network.h"
#include "diagnose/surprise.h"
#include "kernel/syscalls.h"

namespace rose::diagnose {
namespace {

using schedule::Fault;
using schedule::FaultKind;
using schedule::Scope;
using trace::Event;
using trace::EventType;
using trace::ProcessState;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;

constexpr std::int64_t kOneCrash = kSecond;            // ends of one node this close are one crash
constexpr std::int64_t kPauseTogether = 2 * kSecond;   // the tracer samples processes once a second
constexpr std::int64_t kSoon = 10 * kSecond;           // a process that ends itself this soon after a failure reacts to it
constexpr std::int64_t kShutdown = 2 * kSecond;        // failures of a node this soon after its kill are its last breath
constexpr std::int64_t kHeartbeat = 2 * kSecond;       // a silence begins at the last packet before its cause
constexpr std::int64_t kAftermath = 5 * kSecond;       // connections go on failing this long after the cause is gone
constexpr std::int64_t kConnectTimeout = 130 * kSecond;  // Linux gives a connection up after 127 s
constexpr std::int64_t kPromote = 30 * kSecond;
constexpr std::int64_t kMostTimes = 1000;
constexpr std::size_t kMostPorts = 16;  // of one partition

enum class CauseKind { killed, ended_itself, paused, planned, cut };

// Something that explains what comes after it.
struct Cause {
  CauseKind kind = CauseKind::killed;
  int node = -1;
  std::vector<int> peers;  // cut: empty means all
  std::int64_t start = 0;
  std::int64_t end = 0;    // of its direct effect: back again, resumed, healed
  std::string words;       // "n1 was killed"

  [[nodiscard]] bool concerns(int a, int b) const {
    if (kind != CauseKind::cut) return node == a || node == b;
    const auto among = [&](int x) { return x >= 0 && (peers.empty() || std::find(peers.begin(), peers.end(), x) != peers.end()); };
    return (a == node && (b < 0 || among(b))) || (b == node && (a < 0 || among(a)));
  }
};

struct ProcessEvent {
  const Event* event = nullptr;
  int node = -1;
  int signal = 0;          // that ended it; 0: exited
  int exit_code = -1;
  bool main = false;
  bool main_known = false; // some event of the node says which process is the main one
  std::uint64_t weight = 1;
};

// Signals that a process brings on itself, against those sent from outside.
bool own_signal(int signal) {
  switch (signal) {
    case 4:      // SIGILL
    case 5:      // SIGTRAP
    case 6:      // SIGABRT
    case 7:      // SIGBUS
    case 8:      // SIGFPE
    case 11:     // SIGSEGV
    case 13:     // SIGPIPE
    case 31: return true;  // SIGSYS
    default: return false;
  }
}

// The signal that a schedule sends: the observed one if its default is to end a process.
int ending_signal(int signal) {
  switch (signal) {
    case 17:    // SIGCHLD
    case 18:    // SIGCONT
    case 19:    // SIGSTOP
    case 20:    // SIGTSTP
    case 21:    // SIGTTIN
    case 22:    // SIGTTOU
    case 23:    // SIGURG
    case 28:    // SIGWINCH
      return 9;
    default: return signal >= 1 && signal <= 31 ? signal : 9;
  }
}

struct ScfKey {
  std::int32_t node = 0;
  std::int16_t syscall = 0;
  std::int16_t err = 0;
  std::uint32_t pattern = 0;
  std::uint32_t peer = 0;
  bool explained = false;
  bool operator==(const ScfKey&) const = default;
};

struct ScfHash {
  std::size_t operator()(const ScfKey& key) const {
    std::uint64_t h = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.node)) << 32) ^
                      (static_cast<std::uint64_t>(static_cast<std::uint16_t>(key.syscall)) << 17) ^
                      (static_cast<std::uint64_t>(static_cast<std::uint16_t>(key.err)) << 1) ^ (key.explained ? 1 : 0);
    h ^= ((static_cast<std::uint64_t>(key.pattern) << 32) | key.peer) * 0x9e3779b97f4a7c15ULL;
    h ^= h >> 29;
    return static_cast<std::size_t>(h * 0xbf58476d1ce4e5b9ULL);
  }
};

struct ScfGroup {
  ScfKey key;
  const trace::Trace* trace = nullptr;
  const Event* first = nullptr;
  std::uint64_t count = 0;
  std::int64_t first_ts = 0;
  std::int64_t last_ts = 0;
  bool nameless = true;    // every event on an unlinked or cut path
  const Cause* cause = nullptr;
};

// A group that is not benign.
struct Failure {
  const ScfGroup* group = nullptr;
  std::string syscall;
  bool far_more = false;   // the profile has it, but far rarer
  double normal = 0;       // times a run
  int ordinariness = 0;
  bool recovered = false;
  bool newborn = false;    // on a file that was made only after the workload began

  [[nodiscard]] std::tuple<bool, bool, int, std::int64_t> order() const {
    return {group->key.explained, far_more, ordinariness, group->first_ts};
  }
};

// Strings as small numbers, over all dumps.
class Interner {
 public:
  std::uint32_t id(std::string text) {
    const auto [it, fresh] = ids_.try_emplace(std::move(text), static_cast<std::uint32_t>(texts_.size()));
    if (fresh) texts_.push_back(&it->first);
    return it->second;
  }
  const std::string& text(std::uint32_t id) const { return *texts_[id]; }

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<const std::string*> texts_;
};

struct Peer {
  int node = NodeMap::kNone;
  int port = 0;            // 0: ephemeral or unknown
  std::uint32_t id = 0;    // of its text in the group key
  std::string address;
};

class Extractor {
 public:
  Extractor(const Inputs& inputs, const NodeMap& nodes, std::int64_t longest_ns, Plan& plan)
      : inputs_(inputs), nodes_(nodes), longest_ns_(longest_ns), plan_(plan), config_(*inputs.config) {
    for (const config::Node& node : config_.nodes)
      if (node.ready && node.ready->tcp) service_ports_.insert(*node.ready->tcp);
  }

  void run() {
    times();
    collect();
    processes();
    network();
    syscalls();
    explain_own_ends();
    rank();
    finish();
  }

 private:
  // --- when

  void times() {
    std::int64_t begin = kNever;
    std::int64_t end = 0;
    std::int64_t workload = 0;
    for (const trace::Trace& trace : inputs_.traces) {
      if (trace.meta.begin_ns > 0) begin = std::min(begin, trace.meta.begin_ns);
      end = std::max(end, trace.meta.end_ns);
      for (const Event& event : trace.events) {
        begin = std::min(begin, event.ts_ns - std::max<std::int64_t>(0, event.duration_ms) * kMs);
        end = std::max(end, event.ts_ns);
      }
      if (trace.meta.workload_ts > 0 && (workload == 0 || trace.meta.workload_ts < workload)) workload = trace.meta.workload_ts;
      if (trace.meta.lost > 0)
        note(fmt::format("{} events were lost by the tracer of '{}': the cause may be among them", trace.meta.lost,
                         trace.meta.node.empty() ? trace.meta.host : trace.meta.node));
    }
    if (begin == kNever) begin = end;
    if (workload > end) {
      note("the dump says that the workload began after its last event: that is not believed");
      workload = 0;
    }
    plan_.begin_ts = begin;
    plan_.end_ts = end;
    plan_.workload_ts = workload;
  }

  std::string at(std::int64_t ts) const {
    if (plan_.workload_ts != 0)
      return ts >= plan_.workload_ts ? fmt::format("{} after the workload began", format_duration(ts - plan_.workload_ts))
                                     : fmt::format("{} before the workload began", format_duration(plan_.workload_ts - ts));
    return fmt::format("{} into the dump", format_duration(std::max<std::int64_t>(0, ts - plan_.begin_ts)));
  }

  // --- bookkeeping

  void note(std::string text) { plan_.notes.push_back(std::move(text)); }
  void discard(std::string_view why, std::uint64_t events) {
    if (events == 0) return;
    const auto it = discarded_.find(why);
    if (it == discarded_.end())
      discarded_.emplace(std::string(why), events);
    else
      it->second += events;
  }
  static std::uint64_t weight_of(const Event& event) { return std::max<std::uint32_t>(1, event.count); }
  const std::string& name(int node) const { return nodes_.name(node); }

  // Short enough for the schedule's file form, whatever the node is called.
  std::string unique_id(std::string base) {
    if (base.size() > 56) base.resize(56);
    const int n = ++ids_[base];
    return n == 1 ? base : fmt::format("{}-{}", base, n);
  }

  // --- one walk over all events: counts, and the few that are not SCF

  void collect() {
    main_known_.assign(static_cast<std::size_t>(nodes_.count()), false);
    starts_.resize(static_cast<std::size_t>(nodes_.count()));
    std::map<std::string, std::uint64_t> strangers;
    for (std::size_t s = 0; s < inputs_.traces.size(); ++s) {
      for (const Event& event : inputs_.traces[s].events) {
        if (event.type == EventType::af || event.type == EventType::sys) continue;
        if (event.type == EventType::ps && event.state == ProcessState::started) {
          const int node = nodes_.of(s, event);
          if (node < 0) continue;
          if ((event.flags & trace::kMain) != 0) main_known_[static_cast<std::size_t>(node)] = true;
          started_.push_back({&event, node});
          continue;
        }
        plan_.failures += weight_of(event);
        if (event.type == EventType::scf) continue;
        if (event.type == EventType::nd) {
          silences_.push_back({s, &event});
          continue;
        }
        const int node = nodes_.of(s, event);
        if (node < 0) {
          strangers[nodes_.dump_name(s, event)] += weight_of(event);
          continue;
        }
        if ((event.flags & trace::kMain) != 0) main_known_[static_cast<std::size_t>(node)] = true;
        ProcessEvent process{&event, node, 0, event.exit_code, (event.flags & trace::kMain) != 0, false, weight_of(event)};
        process.signal = event.signal;
        ps_.push_back(process);
      }
    }
    for (const auto& [host, events] : strangers) discard(stranger(host), events);
    std::stable_sort(ps_.begin(), ps_.end(),
                     [](const ProcessEvent& a, const ProcessEvent& b) { return a.event->ts_ns < b.event->ts_ns; });
    for (ProcessEvent& p : ps_) p.main_known = main_known_[static_cast<std::size_t>(p.node)];
    for (const auto& [event, node] : started_)
      if (!main_known_[static_cast<std::size_t>(node)] || (event->flags & trace::kMain) != 0)
        starts_[static_cast<std::size_t>(node)].push_back(event->ts_ns);
    for (std::vector<std::int64_t>& starts : starts_) std::sort(starts.begin(), starts.end());
  }

  static std::string stranger(const std::string& host) {
    return host.empty() ? std::string("their host is not named and matches no node of the deployment (see --map)")
                        : fmt::format("host '{}' matches no node of the deployment (see --map)", host);
  }

  std::int64_t back_after(int node, std::int64_t ts) const {
    const std::vector<std::int64_t>& starts = starts_[static_cast<std::size_t>(node)];
    const auto it = std::upper_bound(starts.begin(), starts.end(), ts);
    return it == starts.end() ? kNever : *it;
  }

  // --- processes

  // Ends that the fault-free runs show as often, by node and manner.
  bool profiled(const ProcessEvent& p, const std::map<std::tuple<int, int, int, int>, std::uint64_t>& in_dump) const {
    if (!inputs_.profile || inputs_.profile->runs <= 0) return false;
    std::uint64_t normal = 0;
    for (const profile::ProcessKind& kind : inputs_.profile->processes) {
      if (kind.node != "*" && kind.node != name(p.node)) continue;
      if (kind.state != trace::state_name(p.event->state)) continue;
      const int signal = kind.signal.empty() ? 0 : kernel::signal_number(kind.signal).value_or(-1);
      if (p.event->state == ProcessState::crashed && signal != p.signal) continue;
      if (p.event->state == ProcessState::exited && kind.exit_code != p.exit_code) continue;
      if (p.main_known && kind.main != p.main) continue;
      normal += kind.count;
    }
    const std::uint64_t runs = static_cast<std::uint64_t>(inputs_.profile->runs);
    return normal > 0 && in_dump.at(kind_of(p)) <= (normal + runs - 1) / runs;
  }
  static std::tuple<int, int, int, int> kind_of(const ProcessEvent& p) {
    const bool exited = p.event->state == ProcessState::exited;
    return {p.node, static_cast<int>(p.event->state), exited ? p.exit_code : p.signal, p.main ? 1 : 0};
  }

  void processes() {
    std::map<std::tuple<int, int, int, int>, std::uint64_t> in_dump;
    for (const ProcessEvent& p : ps_)
      if ((p.event->flags & trace::kPlanned) == 0) in_dump[kind_of(p)] += p.weight;

    std::vector<std::vector<ProcessEvent>> ends(static_cast<std::size_t>(nodes_.count()));
    std::vector<std::vector<ProcessEvent>> pauses(static_cast<std::size_t>(nodes_.count()));
    for (ProcessEvent p : ps_) {
      const Event& event = *p.event;
      const bool helper = p.main_known && !p.main;
      if ((event.flags & trace::kPlanned) != 0) {
        discard("planned: the workload or incident did it with `rose node`", p.weight);
        if (event.state == ProcessState::crashed || event.state == ProcessState::exited)
          causes_.push_back({CauseKind::planned, p.node, {}, event.ts_ns, back_after(p.node, event.ts_ns),
                             fmt::format("the planned stop of {}", name(p.node))});
        continue;
      }
      if (profiled(p, in_dump)) {
        discard("benign: the profile shows that processes end or pause like that as often", p.weight);
        continue;
      }
      switch (event.state) {
        case ProcessState::paused:
          pauses[static_cast<std::size_t>(p.node)].push_back(p);
          break;
        case ProcessState::crashed:
          if (p.signal == 0) p.signal = 9;  // other tools may not say which
          if (helper && p.signal == 13) {
            discard("a helper process of a node ended", p.weight);
            break;
          }
          ends[static_cast<std::size_t>(p.node)].push_back(p);
          break;
        case ProcessState::exited:
          if (p.exit_code == 0) {
            discard("benign: processes that ended with status 0", p.weight);
          } else if (helper) {
            discard("a helper process of a node ended", p.weight);
          } else {
            // A shell says so when what it ran was killed.
            if (p.exit_code == 128 + 9 || p.exit_code == 128 + 15) p.signal = p.exit_code - 128;
            ends[static_cast<std::size_t>(p.node)].push_back(p);
          }
          break;
        case ProcessState::none:
        case ProcessState::started: discard("process events without a state", p.weight); break;
      }
    }
    for (int node = 0; node < nodes_.count(); ++node) {
      crashes_of(node, ends[static_cast<std::size_t>(node)]);
      pauses_of(node, pauses[static_cast<std::size_t>(node)]);
    }
  }

  static bool outside(const ProcessEvent& p) {
    return p.signal != 0 && !own_signal(p.signal);
  }

  void crashes_of(int node, const std::vector<ProcessEvent>& ends) {
    std::map<std::tuple<bool, int, int>, std::size_t> own;  // repeated ends of one kind -> candidate
    for (std::size_t i = 0; i < ends.size();) {
      // What ends at the same moment ended together; who leads decides what it was.
      std::size_t lead = i;
      std::uint64_t weight = 0;
      std::size_t j = i;
      for (; j < ends.size() && ends[j].event->ts_ns - ends[i].event->ts_ns <= kOneCrash; ++j) {
        weight += ends[j].weight;
        const ProcessEvent& l = ends[lead];
        const ProcessEvent& p = ends[j];
        const bool lead_crashed = l.event->state == ProcessState::crashed;
        // The main process stands for the node, unless it only reacted to the kill of another.
        if (p.main && !l.main && (outside(p) || !outside(l))) lead = j;
        else if (p.main == l.main && outside(p) && !outside(l) && !lead_crashed) lead = j;
      }
      const ProcessEvent p = ends[lead];
      const std::int64_t ts = ends[i].event->ts_ns;
      const std::int64_t back = back_after(node, ts);
      const std::size_t first = i;
      const std::string processes = j - i > 1 ? fmt::format(", {} processes at once", j - i) : "";
      i = j;

      Fault fault;
      fault.kind = FaultKind::crash;
      fault.node = name(node);
      if (outside(p)) {
        fault.id = unique_id("crash-" + name(node));
        fault.signal = ending_signal(p.signal);
        // The main process lived on: what it makes of the end of its workers may be the bug.
        if (p.main_known && std::none_of(ends.begin() + first, ends.begin() + j, [](const ProcessEvent& e) { return e.main; }))
          fault.scope = Scope::others;
        const std::string signal = kernel::signal_name(p.signal);
        Candidate& c = add(FaultKind::crash, node, std::move(fault), weight, ts);
        c.why = fmt::format("{}{} was ended by {} {}{}", p.main_known && !p.main ? "a process of " : "", name(node), signal,
                            at(ts), processes);
        causes_.push_back({CauseKind::killed, node, {}, ts, back, fmt::format("the crash of {} ({})", name(node), at(ts))});
        if (back < kNever && !config_.nodes[static_cast<std::size_t>(node)].restart)
          came_back_.insert(node);
        continue;
      }
      causes_.push_back({CauseKind::ended_itself, node, {}, ts, back, fmt::format("the end of {} ({})", name(node), at(ts))});
      const std::tuple<bool, int, int> kind{p.signal != 0, p.signal, p.exit_code};
      if (const auto it = own.find(kind); it != own.end()) {
        plan_.candidates[it->second].count += weight;
        plan_.candidates[it->second].last_ts = ts;
        continue;
      }
      own.emplace(kind, plan_.candidates.size());
      fault.id = unique_id("crash-" + name(node));
      fault.signal = ending_signal(p.signal);
      own_ends_.push_back(plan_.candidates.size());
      Candidate& c = add(FaultKind::crash, node, std::move(fault), weight, ts);
      c.why = p.signal != 0 ? fmt::format("{} ended itself by {} {}", name(node), kernel::signal_name(p.signal), at(ts))
              : p.exit_code >= 0 ? fmt::format("{} ended itself with status {} {}", name(node), p.exit_code, at(ts))
                                 : fmt::format("{} ended {}, its status is not known", name(node), at(ts));
    }
  }

  void pauses_of(int node, const std::vector<ProcessEvent>& pauses) {
    struct Pause {
      std::int64_t start = 0, end = 0;
      std::uint64_t weight = 0;
      bool counts = false;
      bool open = false;
    };
    std::vector<Pause> found;
    std::vector<Pause> each;
    for (const ProcessEvent& p : pauses) {
      const bool open = (p.event->flags & trace::kOpen) != 0;
      const std::int64_t shortest = pause_threshold();
      const std::int64_t length = p.event->duration_ms > 0 ? p.event->duration_ms * kMs : shortest;
      Pause pause{p.event->ts_ns - length, p.event->ts_ns, p.weight, !p.main_known || p.main || p.signal != 0, open};
      if (open) pause.end = std::max(pause.end, plan_.end_ts);
      each.push_back(pause);
    }
    std::stable_sort(each.begin(), each.end(), [](const Pause& a, const Pause& b) { return a.start < b.start; });
    for (const Pause& pause : each) {
      if (!found.empty() && pause.start - found.back().start <= kPauseTogether && pause.start <= found.back().end) {
        found.back().end = std::max(found.back().end, pause.end);
        found.back().weight += pause.weight;
        found.back().counts = found.back().counts || pause.counts;
        found.back().open = found.back().open || pause.open;
      } else {
        found.push_back(pause);
      }
    }
    for (const Pause& pause : found) {
      if (!pause.counts) {
        discard("a helper process of a node waited", pause.weight);
        continue;
      }
      Fault fault;
      fault.kind = FaultKind::pause;
      fault.node = name(node);
      fault.id = unique_id("pause-" + name(node));
      fault.duration_ns = rounded(pause.end - pause.start);
      Candidate& c = add(FaultKind::pause, node, std::move(fault), pause.weight, pause.start);
      c.last_ts = pause.end;
      c.why = fmt::format("{} was paused for {}, from {}{}", name(node), format_duration(rounded(pause.end - pause.start)),
                          at(pause.start), pause.open ? ", and still was when the dump was written" : "");
      causes_.push_back({CauseKind::paused, node, {}, pause.start, pause.end,
                         fmt::format("the pause of {} ({})", name(node), at(pause.start))});
    }
  }

  std::int64_t pause_threshold() const {
    for (const trace::Trace& trace : inputs_.traces)
      if (trace.meta.pause_ns > 0) return trace.meta.pause_ns;
    return config_.trace.pause_ns;
  }
  std::int64_t network_threshold() const {
    for (const trace::Trace& trace : inputs_.traces)
      if (trace.meta.network_delay_ns > 0) return trace.meta.network_delay_ns;
    return config_.trace.network_delay_ns;
  }

  // --- network

  void network() {
    std::vector<Silence> silences;
    std::map<std::size_t, std::vector<Silence>> explained;  // cause -> silences
    for (const auto& [s, event] : silences_) {
      const trace::Trace& trace = inputs_.traces[s];
      const std::uint64_t weight = weight_of(*event);
      Silence silence;
      silence.events = weight;
      silence.end = event->ts_ns;
      const std::int64_t length = event->duration_ms >= 0 ? event->duration_ms * kMs : network_threshold();
      silence.start = event->ts_ns - length;
      const bool open = (event->flags & trace::kOpen) != 0;
      if (open) silence.end = std::max(silence.end, plan_.end_ts);

      if (!endpoints(s, trace, *event, silence)) continue;
      if (silence.src >= 0 && normal_silence(trace, *event, silence)) {
        discard("benign: the profile shows silences as long between these nodes", weight);
        continue;
      }
      if (silence.src >= 0 && open && silence.start <= plan_.begin_ts + kSecond && plan_.end_ts - plan_.begin_ts > 2 * kSecond &&
          event->packets == 1) {
        discard("idle: nothing was sent between these nodes in the whole dump", weight);
        continue;
      }
      // A silence that begins with the end or pause of either side is no fault of the network.
      const std::size_t none = causes_.size();
      std::size_t cause = none;
      for (std::size_t i = 0; i < causes_.size(); ++i) {
        const Cause& c = causes_[i];
        if (c.node != silence.src && c.node != silence.dst) continue;
        if (silence.start < c.start - kHeartbeat || silence.start > (c.end == kNever ? kNever : c.end + kHeartbeat)) continue;
        if (silence.end < c.start) continue;
        if (cause == none || c.start < causes_[cause].start) cause = i;
      }
      if (cause == none) {
        silences.push_back(silence);
      } else if (causes_[cause].kind == CauseKind::planned) {
        discard("silences that a planned stop explains", weight);
      } else {
        explained[cause].push_back(silence);
      }
    }

    const std::vector<bool> watched = watched_nodes();
    for (const auto& [cause, group] : explained) {
      const std::string because = causes_[cause].words;
      for (const Cut& cut : find_cuts(group, watched)) {
        Candidate& c = add_cut(cut);
        c.symptom = true;
        c.why += fmt::format("; {} explains it", because);
      }
    }
    for (const Cut& cut : find_cuts(std::move(silences), watched)) {
      const Candidate& c = add_cut(cut);
      causes_.push_back({CauseKind::cut, cut.node, cut.all_others ? std::vector<int>{} : cut.peers, cut.start, cut.end,
                         fmt::format("the cut of {} ({})", c.node, at(cut.start))});
    }
  }

  std::vector<bool> watched_nodes() const {
    std::vector<bool> watched;
    for (int i = 0; i < nodes_.count(); ++i) watched.push_back(nodes_.watched(i));
    return watched;
  }

  // Which nodes a silence is between; discards those between others.
  bool endpoints(std::size_t s, const trace::Trace& trace, const Event& event, Silence& silence) {
    const std::string_view src = trace.str(event.src);
    const std::string_view dst = trace.str(event.dst);
    const int receiver = nodes_.of(s, event);
    silence.src = event.src == 0 ? NodeMap::kNone : nodes_.of_address(src);
    silence.dst = event.dst == 0 ? NodeMap::kNone : nodes_.of_address(dst);
    if (silence.dst == NodeMap::kShared || (event.dst == 0 && receiver >= 0)) silence.dst = receiver;
    if (silence.src == NodeMap::kShared) {
      // One address for all: the port of a service tells who is meant.
      const int sender = owner_of_port(event.sport);
      if (sender >= 0 && sender != silence.dst && silence.dst >= 0) {
        silence.src = sender;
        silence.port = event.sport;
      } else if (silence.dst >= 0 && event.dport != 0 && owner_of_port(event.dport) == silence.dst) {
        silence.src = -1;
        silence.port = event.dport;
        return true;
      } else {
        discard("silences between nodes that share one address and cannot be told apart", silence.events);
        return false;
      }
    }
    if (silence.src >= 0 && silence.dst >= 0 && silence.src != silence.dst) return true;
    if (silence.src >= 0 && silence.src == silence.dst) {
      discard("silences of a node with itself", silence.events);
      return false;
    }
    const std::string_view other = silence.src < 0 ? src : dst;
    discard(other.empty() ? std::string("silences without an address")
                          : fmt::format("silences with {}, which is no node of the deployment (a client?)", other),
            silence.events);
    return false;
  }

  int owner_of_port(std::uint16_t port) const {
    int owner = -1;
    for (int i = 0; port != 0 && i < nodes_.count(); ++i) {
      const config::Node& node = config_.nodes[static_cast<std::size_t>(i)];
      if (node.ready && node.ready->tcp == port) owner = owner == -1 ? i : -2;
    }
    return owner;
  }

  bool normal_silence(const trace::Trace& trace, const Event& event, const Silence& silence) const {
    if (!inputs_.profile) return false;
    const int port = event.dport != 0 ? event.dport : event.sport;
    for (const profile::Silence& known : inputs_.profile->silences) {
      // A pair's idle connections don't excuse its busy ones.
      if (known.port != 0 && port != 0 && known.port != port) continue;
      const bool by_name = known.src == name(silence.src) && known.dst == name(silence.dst);
      const bool by_address = known.src == trace.str(event.src) && known.dst == trace.str(event.dst);
      // A tenth for timers that are not exact.
      if ((by_name || by_address) && (silence.end - silence.start) / kMs <= known.longest_ms + known.longest_ms / 10) return true;
    }
    return false;
  }

  Candidate& add_cut(const Cut& cut) {
    Fault fault;
    fault.kind = FaultKind::partition;
    fault.node = name(cut.node);
    fault.id = unique_id("cut-" + name(cut.node));
    fault.direction = cut.direction;
    fault.ports = cut.ports;
    if (fault.ports.size() > kMostPorts) fault.ports.resize(kMostPorts);
    fault.duration_ns = rounded(cut.duration);
    std::string others;
    for (const int peer : cut.peers) others += fmt::format("{}{}", others.empty() ? "" : ", ", name(peer));
    if (!cut.all_others)
      for (const int peer : cut.peers) fault.peers.push_back(name(peer));
    const Fault base = fault;
    Candidate& c = add(FaultKind::partition, cut.node, std::move(fault), cut.events, cut.start);
    c.last_ts = cut.end;
    const char* way = cut.direction == schedule::Direction::in    ? "nothing reached {0} from {1}"
                      : cut.direction == schedule::Direction::out ? "nothing reached {1} from {0}"
                                                                  : "silence between {0} and {1}";
    c.why = fmt::format("{} for {}, from {}", fmt::format(fmt::runtime(way), name(cut.node), others.empty() ? "all others" : others),
                        format_duration(rounded(cut.duration)), at(cut.start));
    c.peer = others;
    // Only pairs that talk fall silent: the cut may have gone further than the dump can show.
    if (cut.direction != schedule::Direction::both) {
      Fault both = base;
      both.direction = schedule::Direction::both;
      c.alternatives.push_back(std::move(both));
    }
    if (!base.peers.empty()) {
      Fault wide = base;
      wide.peers.clear();
      c.alternatives.push_back(wide);
      if (cut.peers.size() == 1) {
        wide.node = name(cut.peers[0]);
        wide.id += "-other";
        if (wide.direction != schedule::Direction::both)
          wide.direction = wide.direction == schedule::Direction::in ? schedule::Direction::out : schedule::Direction::in;
        c.alternatives.push_back(std::move(wide));
      }
    }
    return c;
  }

  // --- system calls

  bool has_cause(int node) const { return !causes_of_[static_cast<std::size_t>(node)].empty(); }

  const Cause* explaining(const Event& event, int node, int peer_node, bool peer_known) const {
    const std::int64_t grace = event.err == 110 /* ETIMEDOUT */ ? kConnectTimeout : kAftermath;
    for (const Cause& cause : causes_) {
      if (event.ts_ns < cause.start - kSecond / 2) continue;
      if (cause.end != kNever && event.ts_ns > cause.end + grace) continue;
      if (cause.kind == CauseKind::killed || cause.kind == CauseKind::ended_itself || cause.kind == CauseKind::planned) {
        if (peer_known ? cause.node == peer_node : cause.node != node) return &cause;
      } else if (!peer_known || cause.concerns(node, peer_node)) {
        return &cause;
      }
    }
    return nullptr;
  }

  bool last_breath(const Event& event, int node) const {
    for (const Cause* cause : causes_of_[static_cast<std::size_t>(node)])
      if (cause->kind != CauseKind::paused && cause->kind != CauseKind::cut && event.ts_ns > cause->start &&
          event.ts_ns <= cause->start + kShutdown && event.ts_ns < cause->end)
        return true;
    return false;
  }

  void syscalls() {
    causes_of_.assign(static_cast<std::size_t>(nodes_.count()), {});
    std::stable_sort(causes_.begin(), causes_.end(), [](const Cause& a, const Cause& b) { return a.start < b.start; });
    for (const Cause& cause : causes_) causes_of_[static_cast<std::size_t>(cause.node)].push_back(&cause);

    Interner patterns;
    Interner peer_texts;
    patterns.id("");
    peer_texts.id("");
    std::unordered_map<ScfKey, std::size_t, ScfHash> index;
    std::vector<ScfGroup> groups;
    std::unordered_map<ScfKey, std::int64_t, ScfHash> succeeded;  // SYS: the last success of the same call
    std::map<std::pair<int, std::uint32_t>, std::int64_t> made;   // node, path pattern: when such a file was first made
    std::uint64_t nameless_calls = 0;
    std::uint64_t impossible = 0;
    std::uint64_t internal_codes = 0;
    std::uint64_t last_breaths = 0;
    std::uint64_t planned = 0;
    std::map<std::string, std::uint64_t> strangers;

    for (std::size_t s = 0; s < inputs_.traces.size(); ++s) {
      const trace::Trace& trace = inputs_.traces[s];
      std::vector<std::uint32_t> pattern_of(trace.strings.size() + 1, UINT32_MAX);
      std::vector<std::int32_t> peer_of(trace.strings.size() + 1, -1);
      std::vector<Peer> peers;
      std::unordered_map<int, bool> connection;  // (err, syscall, has peer) -> is it a connection error
      const auto pattern = [&](trace::StringId id) {
        if (id == 0 || id >= pattern_of.size()) return std::uint32_t{0};
        if (pattern_of[id] == UINT32_MAX) pattern_of[id] = patterns.id(profile::path_pattern(trace.str(id)));
        return pattern_of[id];
      };
      const auto peer = [&](trace::StringId id) -> const Peer& {
        static const Peer kNoPeer;
        if (id == 0 || id >= peer_of.size()) return kNoPeer;
        if (peer_of[id] < 0) {
          peer_of[id] = static_cast<std::int32_t>(peers.size());
          peers.push_back(read_peer(trace.str(id), peer_texts));
        }
        return peers[static_cast<std::size_t>(peer_of[id])];
      };

      for (const Event& event : trace.events) {
        if (event.type != EventType::scf && event.type != EventType::sys) continue;
        const int node = nodes_.of(s, event);
        if (event.type == EventType::sys) {
          if (node < 0 || event.result < 0) continue;
          std::int64_t& last = succeeded[{node, event.syscall, 0, pattern(event.path), 0, false}];
          last = std::max(last, event.ts_ns);
          // Opens are SYS events only when they create or truncate; a rename makes its second path.
          const std::string call = kernel::syscall_name(event.syscall);
          const bool renames = call.starts_with("rename");
          if (renames || call.starts_with("open") || call == "creat")
            made.try_emplace({node, pattern(renames ? event.path2 : event.path)}, event.ts_ns);
          continue;
        }
        const std::uint64_t weight = weight_of(event);
        if (node < 0) {
          strangers[nodes_.dump_name(s, event)] += weight;
          continue;
        }
        if (event.syscall < 0 || event.err <= 0) {
          nameless_calls += weight;
          continue;
        }
        if (!can_fail(event.syscall)) {
          impossible += weight;
          continue;
        }
        if (event.err >= 512 && event.err <= 530) {
          internal_codes += weight;
          continue;
        }
        if (has_cause(node) && last_breath(event, node)) {
          last_breaths += weight;
          continue;
        }
        const Peer& to = peer(event.peer);
        const Cause* cause = nullptr;
        if (!causes_.empty()) {
          const int kind = (event.err << 11) | (event.syscall << 1) | (event.peer != 0 ? 1 : 0);
          const auto [it, fresh] = connection.try_emplace(kind, false);
          if (fresh) it->second = connection_error(event.err, kernel::syscall_name(event.syscall), event.peer != 0);
          if (it->second) cause = explaining(event, node, to.node, to.node >= 0);
        }
        if (cause != nullptr && cause->kind == CauseKind::planned) {
          planned += weight;
          continue;
        }
        const ScfKey key{node, event.syscall, event.err, pattern(event.path), to.id, cause != nullptr};
        const auto [it, fresh] = index.try_emplace(key, groups.size());
        if (fresh) groups.push_back({key, &trace, &event, 0, event.ts_ns, event.ts_ns, true, cause});
        ScfGroup& group = groups[it->second];
        group.count += weight;
        if (event.ts_ns < group.first_ts) {
          group.first_ts = event.ts_ns;
          group.first = &event;
          group.trace = &trace;
          group.cause = cause;
        }
        group.last_ts = std::max(group.last_ts, event.ts_ns);
        if ((event.flags & (trace::kUnlinked | trace::kTruncated)) == 0) group.nameless = false;
      }
      for (ScfGroup& group : groups) {
        if (group.trace != &trace || group.key.peer == 0) continue;
        group_peers_.try_emplace(group.key.peer, peer(group.first->peer));
      }
    }
    discard("failed calls that the dump does not name", nameless_calls);
    discard("calls that no fault can be injected into", impossible);
    discard("codes inside the kernel that programs never see", internal_codes);
    discard("failures of a node within 2s of its own end", last_breaths);
    discard("connection errors that a planned stop explains", planned);
    for (const auto& [host, events] : strangers) discard(stranger(host), events);

    std::optional<profile::BenignIndex> normal_failures;
    if (inputs_.profile) normal_failures.emplace(*inputs_.profile);
    std::vector<Failure> failures;
    for (const ScfGroup& group : groups) {
      Failure failure{&group, kernel::syscall_name(group.key.syscall), false, 0, 0, false, false};
      if (normal_failures) {
        if (const profile::CallKind* kind = normal_failures->find(*group.trace, *group.first); kind != nullptr) {
          failure.normal = per_run(*kind);
          failure.far_more = static_cast<double>(group.count) > 10 * failure.normal * longer_than_a_run() + 20;
          if (!failure.far_more) {
            discard("benign: the profile shows the same failures without faults", group.count);
            continue;
          }
        }
      }
      failure.ordinariness = ordinariness(group.key.err, failure.syscall, group.trace->str(group.first->path), group.first->peer != 0);
      const auto it = succeeded.find({group.key.node, group.key.syscall, 0, group.key.pattern, 0, false});
      failure.recovered = it != succeeded.end() && it->second > group.first_ts;
      const auto birth = made.find({group.key.node, group.key.pattern});
      failure.newborn = plan_.workload_ts != 0 && group.key.pattern != 0 && birth != made.end() &&
                        birth->second >= plan_.workload_ts && birth->second <= group.first_ts;
      failures.push_back(std::move(failure));
    }
    // In the order of their ranks: a dump may hold any number of kinds, and only the first can be tried.
    std::stable_sort(failures.begin(), failures.end(), [](const Failure& a, const Failure& b) { return a.order() < b.order(); });
    std::size_t to_try = static_cast<std::size_t>(std::max(1, config_.diagnose.max_runs));
    plan_.candidates.reserve(plan_.candidates.size() + failures.size());
    for (const Failure& failure : failures) {
      add_call(failure, patterns.text(failure.group->key.pattern), to_try > 0);
      if (to_try > 0) --to_try;
    }
  }

  // A process that ends cannot be answered, and a return from a signal handler is no call.
  static bool can_fail(int number) {
    if (number >= kernel::kMostSyscalls) return false;
    const kernel::SyscallInfo* info = kernel::find_syscall(number);
    return info == nullptr || (info->name != "exit" && info->name != "exit_group" && info->name != "rt_sigreturn");
  }

  double per_run(const profile::CallKind& kind) const {
    return static_cast<double>(kind.count) / std::max(1, inputs_.profile->runs);
  }
  double longer_than_a_run() const {
    const double run = inputs_.profile->seconds / std::max(1, inputs_.profile->runs);
    if (run <= 0) return 1;
    return std::max(1.0, static_cast<double>(plan_.end_ts - plan_.begin_ts) / 1e9 / run);
  }

  Peer read_peer(std::string_view text, Interner& texts) const {
    Peer peer;
    const Endpoint endpoint = parse_endpoint(text);
    if (endpoint.address.empty()) {
      peer.address = profile::path_pattern(text);
      peer.id = texts.id(peer.address);
      return peer;
    }
    peer.address = std::string(endpoint.address);
    peer.node = nodes_.of_address(endpoint.address);
    // Linux takes ephemeral ports from 32768 up unless it is told otherwise.
    if (endpoint.port < 32768 || service_ports_.contains(static_cast<std::uint16_t>(endpoint.port))) peer.port = endpoint.port;
    peer.id = texts.id(fmt::format("{}:{}", peer.node >= 0 ? name(peer.node) : peer.address, peer.port));
    return peer;
  }

  // The peer as the test deployment will show it.
  std::string peer_glob(const ScfGroup& group) const {
    const auto it = group_peers_.find(group.key.peer);
    if (group.key.peer == 0 || it == group_peers_.end()) return "";
    const Peer& peer = it->second;
    if (peer.address.starts_with("unix:")) return "";
    std::string host = peer.node >= 0 && !nodes_.test_address(peer.node).empty() ? nodes_.test_address(peer.node) : "*";
    if (host.find(':') != std::string::npos) host = fmt::format("[{}]", host);
    if (peer.port == 0) return host == "*" ? std::string{} : host + ":*";
    return fmt::format("{}:{}", host, peer.port);
  }

  // Does the node make this call so often that its first one means nothing?
  bool hot(int node, const std::string& syscall) const {
    if (inputs_.profile && inputs_.profile->seconds > 0) {
      const auto counts = inputs_.profile->syscalls.find(name(node));
      if (counts != inputs_.profile->syscalls.end()) {
        const auto count = counts->second.find(syscall);
        return count != counts->second.end() && static_cast<double>(count->second) >= inputs_.profile->seconds;
      }
    }
    return hot_call(syscall);
  }

  // `with_shapes`: it may come to be tried, in all its shapes.
  void add_call(const Failure& failure, const std::string& pattern, bool with_shapes) {
    const ScfGroup& group = *failure.group;
    const std::string& syscall = failure.syscall;
    const std::string_view path = group.trace->str(group.first->path);
    const int node = group.key.node;
    Fault fault;
    fault.kind = FaultKind::syscall;
    fault.node = name(node);
    fault.id = unique_id(fmt::format("fail-{}-{}", syscall, name(node)));
    fault.call.syscall = syscall;
    fault.error = group.key.err;
    // Only what the call can be matched by; other tools may note more than that.
    const kernel::SyscallInfo* info = kernel::find_syscall(group.key.syscall);
    const bool takes_path = info != nullptr && (info->path >= 0 || info->path2 >= 0 || info->fd >= 0);
    const bool takes_peer = info != nullptr && (info->sockaddr >= 0 || info->fd >= 0);
    std::string glob;
    if (!group.nameless && takes_path) glob = path_glob(path, name(node));
    if (!glob.empty()) fault.call.path = glob;
    const std::string peer = takes_peer ? peer_glob(group) : std::string{};
    if (!peer.empty()) fault.call.peer = peer;

    // As it was seen: once, so many times, or for good. A full disk fails every call until the end.
    const std::int64_t near_end = std::max(2 * kSecond, (plan_.end_ts - plan_.begin_ts) / 10);
    if (group.count > 1)
      fault.times = !failure.recovered && plan_.end_ts - group.last_ts <= near_end
                        ? -1
                        : static_cast<std::int64_t>(std::min<std::uint64_t>(group.count, kMostTimes));

    std::vector<Fault> shapes;
    std::int64_t since = plan_.workload_ts != 0 ? group.first_ts - plan_.workload_ts : kSecond / 2;
    if (since > longest_ns_) since = longest_ns_ / 2;  // production runs for days, the test's workload does not
    const auto shape = [&](std::int64_t times, bool timed) {
      if (timed && since < kSecond / 2) return;
      Fault f = fault;
      f.times = times;
      // Somewhat early: armed too late, it would miss the call in half of the runs.
      if (timed) f.when = {elapsed(since - since / 5)};
      shapes.push_back(std::move(f));
    };
    // The first call of a kind made all the time comes with the start and tells nothing; the first call
    // of a rare kind, or on a file made meanwhile, is likely the one that failed, whenever it comes.
    const bool often = !failure.newborn && hot(node, syscall);
    shape(fault.times, often);
    if (with_shapes || shapes.empty()) shape(fault.times, !often);
    if (with_shapes && fault.times != 1) {
      shape(1, often);
      shape(1, !often);
    }
    if (with_shapes && !glob.empty())
      if (std::string wide = path_glob(path, name(node), true); wide != glob) {
        Fault f = shapes.front();
        f.call.path = std::move(wide);
        shapes.push_back(std::move(f));
      }
    Fault first = std::move(shapes.front());
    shapes.erase(shapes.begin());

    Candidate& c = add(FaultKind::syscall, node, std::move(first), group.count, group.first_ts);
    c.alternatives = std::move(shapes);
    c.last_ts = group.last_ts;
    c.syscall = syscall;
    c.error = kernel::errno_name(group.key.err);
    c.path = !glob.empty() ? glob : pattern;
    c.peer = peer;
    c.profiled = failure.far_more;
    c.ordinariness = failure.ordinariness;
    const std::string times = group.count == 1 ? "once" : fmt::format("{} times", group.count);
    c.why = fmt::format("failed {}, first {}; ", times, at(group.first_ts));
    if (failure.far_more)
      c.why += fmt::format("the profile has it too, but only {:.1f} times a run", failure.normal);
    else if (inputs_.profile)
      c.why += "the profile never shows it";
    else
      c.why += "no profile says whether it is normal";
    if (c.ordinariness == 0) c.why += "; an error of a disk or resource";
    if (c.ordinariness == 3) c.why += "; of a kind that healthy programs see all the time";
    if (group.key.explained && group.cause != nullptr) {
      c.symptom = true;
      c.why += fmt::format("; {} explains it", group.cause->words);
    }
  }

  static schedule::Condition elapsed(std::int64_t ns) {
    schedule::Condition condition;
    condition.elapsed_ns = std::max(kStep, ns / kStep * kStep);  // down: rather armed too early than too late
    return condition;
  }

  Candidate& add(FaultKind kind, int node, Fault fault, std::uint64_t count, std::int64_t ts) {
    Candidate& c = plan_.candidates.emplace_back();
    c.kind = kind;
    c.node = name(node);
    c.count = count;
    c.first_ts = ts;
    c.last_ts = ts;
    c.fault = std::move(fault);
    return c;
  }

  // --- causes before consequences

  // Processes that end themselves do so for a reason; if the dump holds one, that is tried first.
  void explain_own_ends() {
    for (const std::size_t index : own_ends_) {
      Candidate& own = plan_.candidates[index];
      const Cause* cause = nullptr;
      for (const Cause& c : causes_) {
        if (c.kind == CauseKind::ended_itself || c.kind == CauseKind::planned) continue;
        const std::int64_t slack = c.kind == CauseKind::cut ? kHeartbeat : 0;
        if (c.start + slack <= own.first_ts) cause = &c;  // the latest before it
      }
      const Candidate* failure = nullptr;
      for (const Candidate& c : plan_.candidates) {
        if (c.kind != FaultKind::syscall || c.node != own.node || c.profiled || c.ordinariness > 2) continue;
        if (c.first_ts > own.first_ts || c.last_ts < own.first_ts - kSoon) continue;
        if (failure == nullptr || c.ordinariness < failure->ordinariness) failure = &c;
      }
      own.symptom = cause != nullptr || failure != nullptr;
      self_ended_.insert(own.fault.id);
      if (failure != nullptr)
        own.why += fmt::format("; it follows {}({}) failing with {}", failure->syscall, failure->path, failure->error);
      else if (cause != nullptr)
        own.why += fmt::format("; {} explains it", cause->words);
      else
        own.why += "; nothing in the dump explains it";
    }
  }

  void rank() {
    const auto order = [&](const Candidate& c) {
      int kind = 0;
      switch (c.kind) {
        case FaultKind::crash:
        case FaultKind::pause: kind = self_ended_.contains(c.fault.id) ? 1 : 0; break;
        case FaultKind::partition: kind = 2; break;
        case FaultKind::syscall: kind = 3; break;
      }
      const bool call = c.kind == FaultKind::syscall;
      return std::tuple(c.symptom ? 1 : 0, kind, call && c.profiled ? 1 : 0, call ? c.ordinariness : 0, c.first_ts);
    };
    std::vector<std::pair<decltype(order(plan_.candidates[0])), std::size_t>> sorted;
    sorted.reserve(plan_.candidates.size());
    for (std::size_t i = 0; i < plan_.candidates.size(); ++i) sorted.emplace_back(order(plan_.candidates[i]), i);
    std::sort(sorted.begin(), sorted.end());
    std::vector<Candidate> ranked;
    ranked.reserve(sorted.size());
    for (const auto& [key, index] : sorted) ranked.push_back(std::move(plan_.candidates[index]));
    plan_.candidates = std::move(ranked);
    promote();
    int rank = 0;
    for (Candidate& candidate : plan_.candidates) candidate.rank = ++rank;
  }

  // A disk that fails right before a node is killed or falls silent may be why: of the paper's order
  // we depart for the first such failure, because a symptom never precedes its cause.
  void promote() {
    const auto first_call = std::find_if(plan_.candidates.begin(), plan_.candidates.end(), [](const Candidate& c) {
      return c.kind == FaultKind::syscall && !c.symptom;
    });
    if (first_call == plan_.candidates.begin() || first_call == plan_.candidates.end()) return;
    auto best = plan_.candidates.end();
    for (auto it = first_call; it != plan_.candidates.end() && !it->symptom; ++it) {
      const int err = it->fault.error;
      if (it->profiled || !strict_resource_error(err)) continue;
      const bool before_all = std::all_of(plan_.candidates.begin(), first_call,
                                          [&](const Candidate& c) { return it->first_ts < c.first_ts; });
      const bool near = std::any_of(plan_.candidates.begin(), first_call, [&](const Candidate& c) {
        const bool same = c.node == it->node ||
                          std::find(c.fault.peers.begin(), c.fault.peers.end(), it->node) != c.fault.peers.end();
        return same && c.first_ts - it->first_ts <= kPromote;
      });
      if (before_all && near && (best == plan_.candidates.end() || it->first_ts < best->first_ts)) best = it;
    }
    if (best == plan_.candidates.end()) return;
    best->why += "; it came before all other faults";
    std::rotate(plan_.candidates.begin(), best, best + 1);
  }

  void finish() {
    for (const int node : came_back_)
      note(fmt::format("{} came back after its crash, but its [[node]] has no `restart`: in the test deployment it will stay down "
                       "unless the workload starts it", name(node)));
    std::uint64_t total = 0;
    for (auto& [why, events] : discarded_) {
      plan_.discarded.push_back({why, events});
      total += events;
    }
    std::stable_sort(plan_.discarded.begin(), plan_.discarded.end(),
                     [](const Discarded& a, const Discarded& b) { return a.events > b.events; });
    plan_.discarded_share = plan_.failures == 0 ? 0 : static_cast<double>(total) / static_cast<double>(plan_.failures);
  }

  const Inputs& inputs_;
  const NodeMap& nodes_;
  const std::int64_t longest_ns_;
  Plan& plan_;
  const config::Config& config_;
  std::set<std::uint16_t> service_ports_;
  std::map<std::string, std::uint64_t, std::less<>> discarded_;
  std::map<std::string, int> ids_;
  std::vector<bool> main_known_;
  std::vector<std::pair<const Event*, int>> started_;
  std::vector<std::vector<std::int64_t>> starts_;       // of a node's main process
  std::vector<ProcessEvent> ps_;
  std::vector<std::pair<std::size_t, const Event*>> silences_;
  std::vector<Cause> causes_;
  std::vector<std::vector<const Cause*>> causes_of_;
  std::vector<std::size_t> own_ends_;                   // candidates, before ranking
  std::set<std::string> self_ended_;                    // their fault ids
  std::set<int> came_back_;
  std::map<std::uint32_t, Peer> group_peers_;
};

}  // namespace

std::int64_t rounded(std::int64_t ns) { return std::max(kStep, (ns + kStep / 2) / kStep * kStep); }

std::string path_glob(std::string_view path, std::string_view node, bool wide) {
  if (!file_path(path) || path.find('\0') != std::string_view::npos) return "";
  if (system_path(path)) return profile::path_pattern(path);
  while (path.starts_with("./")) path.remove_prefix(2);
  while (path.starts_with("../")) path.remove_prefix(3);
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  int parts = 1;
  if (!wide)
    if (const std::size_t at = path.rfind(fmt::format("/{}/", node)); !node.empty() && at != std::string_view::npos) {
      const std::string_view below = path.substr(at + node.size() + 2);
      parts = below.find('/') == std::string_view::npos ? 1 : 2;
    }
  const auto glob = [&](int n) {
    std::string tail = profile::tail_pattern(path, n);
    if (!tail.starts_with('*')) tail = (tail.starts_with('/') ? "*" : "*/") + tail;
    return tail;
  };
  // A name that is all number says nothing without its folder.
  std::string found = glob(parts);
  const auto letters = [](std::string_view text) {
    return std::count_if(text.begin(), text.end(), [](char c) { return c != '*' && c != '/' && c != '.' && c != '-' && c != '_'; });
  };
  if (parts == 1 && letters(found) < 2) found = glob(2);
  return found;
}

void extract(const Inputs& inputs, const NodeMap& nodes, std::int64_t longest_ns, Plan& plan) {
  Extractor(inputs, nodes, longest_ns, plan).run();
}

}  // namespace rose::diagnose
