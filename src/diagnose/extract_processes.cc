#include "diagnose/extractor.h"

#include <cmath>

#include "base/units.h"
#include "diagnose/thresholds.h"
#include "kernel/syscalls.h"

namespace rose::diagnose {
using schedule::Scope;

namespace {

constexpr std::int64_t kLivedOn = 2 * kSecond;         // processes seen this long after others ended did not end with them
constexpr double kManyEnds = 20;                       // expected in the window: then chance alone makes
constexpr double kMoreByChance = 1.5;                  // times as many of them
constexpr std::size_t kUsualTimes = 8;                 // ends or pauses of one kind, at different times, and the node lived with them
constexpr std::int64_t kSurelyGone = 10 * kSecond;     // nothing that was under way arrives so late
constexpr std::int64_t kHelpersGone = 60 * kSecond;    // nor do helpers do anything any more
constexpr std::int64_t kOneCrash = kSecond;            // ends of one node this close are one crash
constexpr std::int64_t kAllStop = 30 * kSecond;        // nodes that are stopped one after the other are so within this
constexpr std::int64_t kPauseTogether = 2 * kSecond;   // the tracer samples processes once a second

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

}  // namespace

bool Extractor::profiled(const ProcessEvent& p, const std::map<std::tuple<int, int, int, int>, std::uint64_t>& in_dump) const {
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
  const double expected = std::ceil(static_cast<double>(normal) / inputs_.profile->runs) * runs_in_window();
  return normal > 0 && static_cast<double>(in_dump.at(kind_of(p))) <= expected * (expected >= kManyEnds ? kMoreByChance : 1);
}

std::tuple<int, int, int, int> Extractor::kind_of(const ProcessEvent& p) {
  const bool exited = p.event->state == ProcessState::exited;
  return {p.node, static_cast<int>(p.event->state), exited ? p.exit_code : p.signal, p.main ? 1 : 0};
}

void Extractor::processes() {
  std::map<std::tuple<int, int, int, int>, std::uint64_t> in_dump;
  for (const ProcessEvent& p : ps_)
    if ((p.event->flags & trace::kPlanned) == 0) in_dump[kind_of(p)] += p.weight;

  const std::int64_t stopped = all_stopped();
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
    if (event.ts_ns >= stopped && orderly(p)) {
      discard("the whole deployment was stopped in order at the end of the dump", p.weight);
      causes_.push_back({CauseKind::planned, p.node, {}, event.ts_ns, kNever, fmt::format("the stop of {}", name(p.node))});
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
  // Before anything remembers where a candidate stands but what ended by itself.
  std::vector<std::size_t> moved(plan_.candidates.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < plan_.candidates.size(); ++i) {
    moved[i] = kept;
    if (plan_.candidates[i].count == 0) continue;
    if (kept != i) plan_.candidates[kept] = std::move(plan_.candidates[i]);
    ++kept;
  }
  plan_.candidates.resize(kept);
  for (std::size_t& index : own_ends_) index = moved[index];
}

// A dump that began late, or of another tool, has no starts. But a node that ends once more, or whose packets arrive, was
// there again: what it did in between is not explained by its end any more.
void Extractor::end_causes_by_signs_of_life() {
  const auto gone = [](const Cause& c) { return c.end == kNever && (c.kind == CauseKind::killed || c.kind == CauseKind::ended_itself) && !c.partly; };
  if (std::none_of(causes_.begin(), causes_.end(), gone)) return;
  std::vector<std::vector<std::int64_t>> spoke(static_cast<std::size_t>(nodes_.count()));  // surely itself
  std::vector<std::vector<std::int64_t>> acted(static_cast<std::size_t>(nodes_.count()));  // a helper of it, perhaps
  for (const auto& [s, event] : silences_) {
    const int src = event->src == 0 ? NodeMap::kNone : nodes_.of_address(inputs_.traces[s].str(event->src));
    if (src < 0 || event->duration_ms < 0) continue;
    spoke[static_cast<std::size_t>(src)].push_back(event->ts_ns - event->duration_ms * kMs);  // its last packet before the silence
    if ((event->flags & trace::kOpen) == 0) spoke[static_cast<std::size_t>(src)].push_back(event->ts_ns);
  }
  for (const ProcessEvent& p : ps_)
    if (p.event->state != ProcessState::paused && (p.main || !p.main_known)) spoke[static_cast<std::size_t>(p.node)].push_back(p.event->ts_ns);
  for (std::size_t s = 0; s < inputs_.traces.size(); ++s)
    for (const Event& event : inputs_.traces[s].events) {
      if (event.type != EventType::af && event.type != EventType::sys && event.type != EventType::scf) continue;
      const int node = nodes_.of(s, event);
      if (node < 0) continue;
      std::vector<std::int64_t>& list = acted[static_cast<std::size_t>(node)];
      if (list.empty() || std::abs(event.ts_ns - list.back()) > kSurelyGone) list.push_back(event.ts_ns);
    }
  for (auto* lists : {&spoke, &acted})
    for (std::vector<std::int64_t>& list : *lists) std::sort(list.begin(), list.end());
  const auto first_after = [](const std::vector<std::int64_t>& list, std::int64_t ts) {
    const auto it = std::upper_bound(list.begin(), list.end(), ts);
    return it == list.end() ? kNever : *it;
  };
  for (Cause& cause : causes_) {
    if (!gone(cause)) continue;
    const auto node = static_cast<std::size_t>(cause.node);
    const std::int64_t sign = std::min(first_after(spoke[node], cause.start + kSurelyGone), first_after(acted[node], cause.start + kHelpersGone));
    if (sign != kNever) cause.end = cause.start + (sign - cause.start) / 2;  // some time in between
  }
}

// What `systemctl stop` and its like make of a process.
bool Extractor::orderly(const ProcessEvent& p) {
  if (p.event->state == ProcessState::crashed) return p.signal == 15 || p.signal == 2;
  return p.event->state == ProcessState::exited && (p.exit_code == 0 || p.exit_code == 128 + 15 || p.exit_code == 128 + 2);
}

// When somebody stopped all nodes, before the dump was written perhaps: each of them (two at least) ended in order
// within a short time, at least one by a signal, and none came back. kNever: nobody did.
std::int64_t Extractor::all_stopped() const {
  std::vector<std::int64_t> last(static_cast<std::size_t>(nodes_.count()), -1);
  bool signalled = false;
  for (const ProcessEvent& p : ps_) {
    if (p.main_known && !p.main) continue;
    if (p.event->state != ProcessState::crashed && p.event->state != ProcessState::exited) continue;
    last[static_cast<std::size_t>(p.node)] = orderly(p) ? p.event->ts_ns : -1;  // they come by time
    signalled = signalled || (orderly(p) && p.signal != 0);
  }
  std::int64_t first = kNever;
  std::int64_t end = 0;
  for (int node = 0; node < nodes_.count(); ++node) {
    if (!nodes_.watched(node)) continue;
    const std::int64_t ts = last[static_cast<std::size_t>(node)];
    if (ts < 0 || back_after(node, ts) != kNever) return kNever;
    first = std::min(first, ts);
    end = std::max(end, ts);
  }
  const auto stopped = std::count_if(last.begin(), last.end(), [](std::int64_t ts) { return ts >= 0; });
  return signalled && stopped > 1 && end - first <= kAllStop ? first : kNever;
}

bool Extractor::outside(const ProcessEvent& p) {
  return p.signal != 0 && !own_signal(p.signal);
}

bool Extractor::lived_on(int node, std::span<const ProcessEvent> ended) {
  if (lives_.empty()) {
    lives_.resize(static_cast<std::size_t>(nodes_.count()));
    for (std::size_t s = 0; s < inputs_.traces.size(); ++s)
      for (const Event& event : inputs_.traces[s].events) {
        const int of = event.pid > 0 ? nodes_.of(s, event) : -1;
        if (of < 0) continue;
        auto& life = lives_[static_cast<std::size_t>(of)].try_emplace(event.pid, event.ts_ns, event.ts_ns).first->second;
        life = {std::min(life.first, event.ts_ns), std::max(life.second, event.ts_ns)};
      }
    for (auto& lives : lives_) std::erase_if(lives, [](const auto& entry) { return entry.second.second - entry.second.first <= kLivedOn; });
  }
  const auto& lives = lives_[static_cast<std::size_t>(node)];
  return std::any_of(lives.begin(), lives.end(), [&](const auto& entry) {
    const auto& [pid, life] = entry;
    return life.first < ended.front().event->ts_ns && life.second > ended.back().event->ts_ns + kLivedOn &&
           std::none_of(ended.begin(), ended.end(), [pid = pid](const ProcessEvent& p) { return p.event->pid == pid; });
  });
}

void Extractor::crashes_of(int node, const std::vector<ProcessEvent>& ends) {
  std::map<std::tuple<bool, int, int>, std::size_t> own;  // repeated ends of one kind -> candidate
  std::map<std::pair<int, Scope>, std::vector<std::size_t>> killed;  // the same from outside
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
      killed[{p.signal, fault.scope}].push_back(plan_.candidates.size());
      const std::string signal = kernel::signal_name(p.signal);
      Candidate& c = add(FaultKind::crash, node, std::move(fault), weight, ts);
      c.why = fmt::format("{}{} was ended by {} {}{}", p.main_known && !p.main ? "a process of " : "", name(node), signal,
                          at(ts), processes);
      c.out_of_memory = (p.event->flags & trace::kOutOfMemory) != 0;
      if (c.out_of_memory) c.why += ", by the kernel for its memory";
      from_log(c, *p.event);
      causes_.push_back({CauseKind::killed, node, {}, ts, back, fmt::format("the crash of {} ({})", name(node), at(ts))});
      if (back < kNever && !config_.nodes[static_cast<std::size_t>(node)].restart)
        came_back_.insert(node);
      continue;
    }
    // A dump that began after the node, and holds no end of its main process, does not tell which one that is.
    const bool partly = !p.main_known && lived_on(node, std::span(ends).subspan(first, j - first));
    const std::string who = (partly ? "a process of " : "") + name(node);
    causes_.push_back({CauseKind::ended_itself, node, {}, ts, back, fmt::format("the end of {} ({})", who, at(ts)), partly,
                       p.event->ts_ns});
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
    c.why = p.signal != 0 ? fmt::format("{} ended itself by {} {}", who, kernel::signal_name(p.signal), at(ts))
            : p.exit_code >= 0 ? fmt::format("{} ended itself with status {} {}", who, p.exit_code, at(ts))
                               : fmt::format("{} ended {}, its status is not known", who, at(ts));
    from_log(c, *p.event);
  }
  for (const auto& [kind, candidates] : killed) fold_usual(candidates, "ended");
}

// What ends or stands still all the time, and the node lived with it, is one candidate: the last time, which came nearest
// to the failure.
void Extractor::fold_usual(const std::vector<std::size_t>& candidates, std::string_view did) {
  std::size_t times = 1;
  for (std::size_t i = 1; i < candidates.size(); ++i)
    times += plan_.candidates[candidates[i]].first_ts - plan_.candidates[candidates[i - 1]].first_ts > longest_ns_ ? 1 : 0;
  if (times < kUsualTimes) return;
  Candidate& last = plan_.candidates[candidates.back()];
  for (std::size_t i = 0; i + 1 < candidates.size(); ++i) {
    last.count += plan_.candidates[candidates[i]].count;
    plan_.candidates[candidates[i]].count = 0;  // gone
  }
  last.why += fmt::format("; it {} like that {} times in the window", did, candidates.size());
  // Right at the end of the window it is a coincidence all the same: so many are to be expected between it and the end.
  const double window = std::max(1.0, static_cast<double>(plan_.end_ts - plan_.begin_ts));
  const double expected = static_cast<double>(candidates.size()) * static_cast<double>(plan_.end_ts - last.last_ts) / window;
  if (expected <= kOddsUsual) {
    last.why += ", but hardly by chance so near to its end";
    return;
  }
  last.why += ", so it is usual";
  usual_.emplace(last.fault.id, std::clamp(kOddsUsual / expected, kOddsUsual, 1.0));
}

void Extractor::pauses_of(int node, const std::vector<ProcessEvent>& pauses) {
  struct Pause {
    std::int64_t start = 0, end = 0;
    std::uint64_t weight = 0;
    bool counts = false;
    bool open = false;
    bool blocked = false;  // waited uninterruptibly, as on a stuck disk: a consequence of something, mostly
    const Event* event = nullptr;
  };
  std::vector<Pause> found;
  std::vector<Pause> each;
  for (const ProcessEvent& p : pauses) {
    const bool open = (p.event->flags & trace::kOpen) != 0;
    const std::int64_t shortest = pause_threshold();
    const std::int64_t length = p.event->duration_ms > 0 ? p.event->duration_ms * kMs : shortest;
    const bool blocked = (p.event->flags & trace::kBlocked) != 0;
    // A freeze has no process and comes from outside, as a signal does, also when it takes only a part of the node.
    const bool frozen = !blocked && p.event->pid == 0;
    Pause pause{p.event->ts_ns - length, p.event->ts_ns, p.weight, !p.main_known || p.main || p.signal != 0 || frozen,
                open, blocked, p.event};
    if (open) pause.end = std::max(pause.end, plan_.end_ts);
    each.push_back(pause);
  }
  std::stable_sort(each.begin(), each.end(), [](const Pause& a, const Pause& b) {
    return std::pair(a.blocked, a.start) < std::pair(b.blocked, b.start);
  });
  for (const Pause& pause : each) {
    if (!found.empty() && pause.blocked == found.back().blocked && pause.start - found.back().start <= kPauseTogether && pause.start <= found.back().end) {
      found.back().end = std::max(found.back().end, pause.end);
      found.back().weight += pause.weight;
      found.back().counts = found.back().counts || pause.counts;
      found.back().open = found.back().open || pause.open;
    } else {
      found.push_back(pause);
    }
  }
  std::vector<std::size_t> stopped;  // from outside
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
    if (!pause.blocked) stopped.push_back(plan_.candidates.size());
    Candidate& c = add(FaultKind::pause, node, std::move(fault), pause.weight, pause.start);
    c.last_ts = pause.end;
    c.blocked = pause.blocked;
    c.why = fmt::format("{} {} for {}, from {}{}", name(node),
                        pause.blocked ? "was blocked in uninterruptible wait (as on a slow disk)" : "was paused", format_duration(rounded(pause.end - pause.start)),
                        at(pause.start), pause.open ? ", and still was when the dump was written" : "");
    from_log(c, *pause.event);
    causes_.push_back({CauseKind::paused, node, {}, pause.start, pause.end,
                       fmt::format("the pause of {} ({})", name(node), at(pause.start))});
  }
  fold_usual(stopped, "stood still");
}

}  // namespace rose::diagnose
