#include "explain/runs.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/leaving.h"
#include "base/path.h"
#include "kernel/open_flags.h"
#include "kernel/syscalls.h"
#include "profile/profile.h"

namespace rose::explain {
namespace {

// align() searches at most this many steps before the fault for a step that all runs have.
constexpr std::size_t kLookBack = 60;
constexpr std::int64_t kAboutTheSame = 500'000'000;  // two moments at most this far apart count as about the same time
constexpr std::string_view kFailsWith = " fails with ", kInPart = " does only a part", kToRead = " to read";
constexpr std::size_t kMostWords = 160;  // longest path or message in the words of a kind, in bytes

std::string_view letter(StepKind kind) {
  switch (kind) {
    case StepKind::function: return "f";
    case StepKind::thrown: return "t";
    case StepKind::failed_call: return "e";
    case StepKind::call: return "c";
    case StepKind::message: return "m";
    case StepKind::process: return "p";
    case StepKind::silence: return "s";
    case StepKind::value: return "v";
    case StepKind::sent: return "x";
    case StepKind::taken: return "y";
    case StepKind::caught: return "h";
  }
  return "?";
}

std::string cut_words(std::string text) {
  if (text.size() > kMostWords) text = text.substr(0, kMostWords) + "...";
  return text;
}

std::string place_of(const trace::Trace& trace, const trace::Event& e,
                     const std::map<std::string, std::string>& nodes) {
  if (e.path != 0) return cut_words(profile::tail_pattern(trace.str(e.path), 2));
  if (e.peer == 0) return {};
  std::string peer = profile::peer_pattern(trace.str(e.peer));
  const std::size_t colon = peer.rfind(':');
  if (const auto node = nodes.find(peer.substr(0, colon)); node != nodes.end() && colon != std::string::npos)
    peer = node->second + peer.substr(colon);
  return cut_words(peer);
}

// True for a successful open that can change nothing.
bool only_reads(const trace::Event& e) {
  return e.type == trace::EventType::sys && (e.open_flags & (O_ACCMODE | O_CREAT | O_TRUNC)) == O_RDONLY &&
         kernel::open_flags_argument(kernel::syscall_name(e.syscall)).has_value();
}

std::string call_words(const trace::Trace& trace, const trace::Event& e,
                       const std::map<std::string, std::string>& nodes) {
  const std::string place = place_of(trace, e, nodes);
  std::string words(kernel::syscall_name(e.syscall));
  if (e.type == trace::EventType::scf)
    words += e.err != 0      ? fmt::format("{}{}", kFailsWith, kernel::errno_name(e.err))
             : e.signal != 0 ? fmt::format(" ends in {}", kernel::signal_name(e.signal))
                             : std::string(kInPart);
  else if (only_reads(e)) words += kToRead;
  if (!place.empty()) words += fmt::format(" ({})", place);
  return words;
}

std::string process_words(const trace::Event& e) {
  std::string words = e.flags & trace::kMain ? "its main process " : "a process ";
  words += trace::state_name(e.state);
  if (e.signal != 0) words += fmt::format(" by {}", kernel::signal_name(e.signal));
  if ((e.flags & trace::kOutOfMemory) != 0) words += ", out of memory";
  if (e.state == trace::ProcessState::exited) words += fmt::format(" with status {}", e.exit_code);
  return words;
}

// True for events that are no steps of the program, because the fault or another action of the schedule caused them.
bool is_injected(const trace::Event& e) { return (e.flags & trace::kInjected) != 0; }

// True for calls that rose's agents in a Java, Python or JavaScript runtime make to report functions.
bool is_agents(const trace::Trace& trace, const trace::Event& e) {
  if (e.path == 0) return false;
  const std::string_view path = trace.str(e.path);
  return path.find("/rose.jvm/") != std::string_view::npos || path.find("/rose.python/") != std::string_view::npos ||
         path.find("/rose.node/") != std::string_view::npos;
}
// "sends n2 "put <*>" (port 7000)", "takes n1's "put <*>" (port 7000)", "finds n1's connection closed (port 7000)"
std::string exchange_words(const Exchanged& one, bool taken) {
  if (one.is_end()) return cut_words(fmt::format("finds {}'s connection closed (port {})", one.from, one.port));
  return cut_words(fmt::format("{} {}{} {} (port {})",
                               taken        ? "takes"
                               : one.answer ? "answers"
                                            : "sends",
                               taken ? one.from : one.to, taken ? "'s" : "", one.words, one.port));
}

// The words of an exchange without the peer's name, which is the second word.
std::string without_peer(const Kind& kind) {
  const std::size_t at = kind.words.find(' ') + 1;
  return kind.words.substr(0, at) + "another node" +
         kind.words.substr(std::min(at + kind.peer.size(), kind.words.size()));
}

// A watched function of a run.
struct Watched {
  std::uint32_t kind = kNoKind;
  bool busy = false;         // not all of its entries are kept
  std::int64_t kept_ns = 0;  // time of the last entry that was kept; 0: none yet
};

// The watched functions of a run. If a run has too many events, some function entries are dropped, so that the rest
// covers the whole run: all entries of the rarest functions are kept, and of each other function one entry per
// interval.
class WatchedFunctions {
 public:
  explicit WatchedFunctions(const trace::Trace& trace) {
    if (trace.events.size() <= kMostSteps) return;
    std::map<Name, std::size_t> counts;
    for (const trace::Event& e : trace.events)
      if (e.type == trace::EventType::af) ++counts[name(e)];
    std::vector<std::pair<std::size_t, Name>> rarest;
    std::size_t all = trace.events.size(), busy = 0;
    for (const auto& [function, count] : counts) rarest.emplace_back(count, function), all -= count;
    std::sort(rarest.begin(), rarest.end());
    for (const auto& [count, function] : rarest)
      if ((all += count) > kMostSteps / 2) all_[function].busy = true, ++busy;
    apart_ns_ = (trace.events.back().ts_ns - trace.events.front().ts_ns) / static_cast<std::int64_t>(kMostSteps / 2) *
                static_cast<std::int64_t>(busy);
  }
  Watched& operator[](const trace::Event& entry) { return all_[name(entry)]; }
  bool keeps(Watched& function, const trace::Event& entry) const {
    if (!function.busy) return true;
    if (function.kept_ns != 0 && entry.ts_ns - function.kept_ns < apart_ns_) return false;
    function.kept_ns = entry.ts_ns;
    return true;
  }

 private:
  using Name = std::pair<trace::StringId, trace::StringId>;  // the function and its node
  static Name name(const trace::Event& e) { return {e.function, e.node}; }
  std::map<Name, Watched> all_;
  std::int64_t apart_ns_ = 0;
};

// The kind of a watched function's entry, of its exit by an exception, or of catching an exception.
Kind kind_of_entry(std::string_view function) {
  Kind kind;
  if (const Leaving leaving = leaving_of(function); !leaving.exception.empty()) {
    kind.what = leaving.caught ? StepKind::caught : StepKind::thrown;
    kind.function = leaving.method;
    kind.words = leaving.caught ? fmt::format("catches {} in {}", leaving.exception, leaving.method)
                                : fmt::format("leaves {} by {}", leaving.method, leaving.exception);
    return kind;
  }
  kind.what = StepKind::function;
  kind.function = function;
  kind.words = "enters " + kind.function;
  return kind;
}

// The kind of any other event; nothing if the event is not compared.
std::optional<Kind> kind_of(const trace::Trace& trace, const trace::Event& e,
                            const std::map<std::string, std::string>& nodes) {
  Kind kind;
  switch (e.type) {
    case trace::EventType::af: return std::nullopt;
    case trace::EventType::scf:
      if (kernel::runtime_asks(e.err, kernel::syscall_name(e.syscall),
                               e.path != 0 ? trace.str(e.path) : std::string_view()))
        return std::nullopt;
      kind.what = StepKind::failed_call;
      kind.words = call_words(trace, e, nodes);
      if (const std::string_view extension = e.path != 0 ? extension_of(trace.str(e.path)) : "";
          e.err == ENOENT && !extension.empty())
        kind.lookup = fmt::format("{} {}", kernel::syscall_name(e.syscall), extension);
      break;
    case trace::EventType::sys:
      kind.what = StepKind::call;
      kind.words = call_words(trace, e, nodes);
      kind.changes_file = e.path != 0 && !only_reads(e);
      break;
    case trace::EventType::ps:
      kind.what = StepKind::process;
      kind.words = process_words(e);
      kind.out_of_memory = (e.flags & trace::kOutOfMemory) != 0;
      break;
    case trace::EventType::nd: {
      const auto name = [&](trace::StringId id) {
        const auto node = nodes.find(std::string(trace.str(id)));
        return node != nodes.end() ? node->second : std::string(trace.str(id));
      };
      kind.what = StepKind::silence;
      kind.node = name(e.dst);
      kind.words = "hears nothing from " + name(e.src);
      break;
    }
  }
  return kind;
}

bool is_agents(const LogLine& line) { return line.text.starts_with("Picked up JAVA_TOOL_OPTIONS:"); }

}  // namespace

bool opens_to_read(const Kind& kind) {
  return kind.what == StepKind::call && kind.words.find(std::string(kToRead) + " (") != std::string::npos;
}

bool takes_effect(schedule::FaultKind fault, const Kind& kind) {
  using schedule::FaultKind;
  if (kind.what == StepKind::process) return fault == FaultKind::memory && kind.out_of_memory;
  if (kind.what != StepKind::failed_call) return false;
  const std::string_view words = kind.words;
  if (fault == FaultKind::disk_full && words.find(kInPart) != std::string_view::npos) return true;
  const std::size_t at = words.find(kFailsWith);
  if (at == std::string_view::npos) return false;
  const std::string_view error = words.substr(at + kFailsWith.size(), words.find(" (") - at - kFailsWith.size());
  switch (fault) {
    // Recordings of older versions have the error "E0" for a call that wrote only a part.
    case FaultKind::disk_full: return error == "ENOSPC" || error == "EDQUOT" || error == "E0";
    case FaultKind::descriptors: return error == "EMFILE" || error == "ENFILE";
    case FaultKind::memory: return error == "ENOMEM";
    default: return false;
  }
}

std::uint32_t Kinds::of(Kind kind) {
  std::string key = fmt::format("{}|{}|{}", letter(kind.what), kind.node,
                                kind.what == StepKind::function ? kind.function : kind.words);
  const auto [place, fresh] = ids_.emplace(std::move(key), static_cast<std::uint32_t>(kinds_.size()));
  if (fresh) kinds_.push_back(std::move(kind));
  return place->second;
}

std::vector<const schedule::FaultOutcome*> fired(const Run& run) {
  std::vector<const schedule::FaultOutcome*> out;
  for (const schedule::FaultOutcome& fault : run.faults)
    if (fault.fired) out.push_back(&fault);
  std::stable_sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->fired_ns < b->fired_ns; });
  return out;
}

Run condense(const schedule::RunResult& result, const std::vector<LogLine>& lines, Group group, Kinds& kinds) {
  const trace::Trace& trace = result.trace;
  Run run;
  run.group = group;
  run.number = result.number;
  run.faults = result.faults;
  run.values = result.values;
  run.zero_ns = trace.meta.workload_ts;
  if (run.zero_ns == 0) run.zero_ns = trace.events.empty() ? trace.meta.begin_ns : trace.events.front().ts_ns;
  const std::map<std::string, std::string> nodes = trace::nodes_by_address(trace.meta);
  std::unordered_map<std::int32_t, std::uint32_t> last;  // by thread
  const auto node_of = [&](const trace::Event& e) {
    return std::string(e.node != 0 ? trace.str(e.node) : std::string_view(trace.meta.node));
  };
  WatchedFunctions functions(trace);
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    run.cut_short = run.steps.size() >= kMostSteps;
    if (run.cut_short) break;
    const trace::Event& e = trace.events[i];
    if (is_injected(e) || is_agents(trace, e)) continue;
    const bool entry = e.type == trace::EventType::af;
    std::uint32_t id = kNoKind;
    if (entry) {
      Watched& function = functions[e];
      if (function.kind == kNoKind) {
        Kind kind = kind_of_entry(trace.str(e.function));
        kind.node = node_of(e);
        function.kind = kinds.of(std::move(kind));
        if (function.busy) kinds.at(function.kind).sampled = true;
      }
      id = function.kind;
      if ((e.flags & trace::kTruncated) != 0) {
        kinds.at(id).sampled = true;
        run.let_go.insert(id);
        continue;
      }
      if (!functions.keeps(function, e)) {
        if (e.tid != 0) last[e.tid] = id;
        continue;
      }
    } else {
      std::optional<Kind> kind = kind_of(trace, e, nodes);
      if (!kind) continue;
      if (kind->node.empty()) kind->node = node_of(e);
      id = kinds.of(*std::move(kind));
    }
    Step step{.ts_ns = e.ts_ns, .kind = id, .pid = e.pid, .tid = e.tid, .source = static_cast<std::uint32_t>(i)};
    // A silence is recorded when it ends. The step is placed at its beginning, that is, when the pair last
    // communicated.
    if (e.type == trace::EventType::nd && e.duration_ms > 0) step.ts_ns -= std::int64_t{e.duration_ms} * 1'000'000;
    if (const auto in = last.find(e.tid); in != last.end() && e.tid != 0) step.in = in->second;
    if (entry) last[e.tid] = id;
    run.steps.push_back(step);
  }
  for (std::size_t i = 0; i < lines.size() && run.steps.size() < 2 * kMostSteps; ++i) {
    const LogLine& line = lines[i];
    if (is_agents(line)) continue;
    Kind kind{.what = StepKind::message,
              .node = line.node,
              .function = {},
              .words = std::to_string(line.kind),
              .message = line.kind};
    run.steps.push_back(
        {.ts_ns = line.ts_ns, .kind = kinds.of(std::move(kind)), .source = static_cast<std::uint32_t>(i)});
  }
  run.exchanged = exchanged(result.messages, nodes);
  run.talkative = result.talkative;
  for (std::size_t i = 0; i < run.exchanged.size(); ++i) {
    const Exchanged& one = run.exchanged[i];
    const auto source = static_cast<std::uint32_t>(i);
    std::uint32_t id = kNoKind;
    if (!one.is_end()) {
      Kind sent{.what = StepKind::sent, .node = one.from, .function = {}, .words = exchange_words(one, false)};
      sent.peer = one.to;
      id = kinds.of(std::move(sent));
      run.steps.push_back({.ts_ns = one.ts_ns, .kind = id, .pid = one.pid, .tid = one.tid, .source = source});
    }
    if (one.taken_ns == 0) continue;
    Kind taken{.what = StepKind::taken, .node = one.to, .function = {}, .words = exchange_words(one, true)};
    taken.peer = one.from;
    taken.as_sent = id;
    run.steps.push_back({.ts_ns = one.taken_ns,
                         .kind = kinds.of(std::move(taken)),
                         .pid = one.taken_pid,
                         .tid = one.taken_tid,
                         .source = source});
  }
  std::stable_sort(run.steps.begin(), run.steps.end(), [](const Step& a, const Step& b) { return a.ts_ns < b.ts_ns; });
  last.clear();
  for (Step& step : run.steps) {
    const StepKind what = kinds[step.kind].what;
    if (what == StepKind::function) last[step.tid] = step.kind;
    else if (is_exchange(what))
      if (const auto in = last.find(step.tid); in != last.end()) step.in = in->second;
  }
  // A symptom may appear only when the oracle looks for it, which is after the workload has ended.
  if (result.oracle_ns) run.end_ns = run.zero_ns + *result.oracle_ns;
  else if (result.workload_end_ns) run.end_ns = std::max(run.zero_ns + *result.workload_end_ns, trace.meta.end_ns);
  if (run.end_ns == 0) run.end_ns = run.steps.empty() ? run.zero_ns : run.steps.back().ts_ns;
  return run;
}

void doubt_lookups(const std::vector<Run>& runs, Kinds& kinds) {
  // by node and lookup: the kinds that occur in correct runs
  std::map<std::pair<std::string, std::string>, std::set<std::uint32_t>> sound;
  for (const Run& run : runs) {
    if (run.group != Group::sound) continue;
    for (const Step& step : run.steps)
      if (const Kind& kind = kinds[step.kind]; !kind.lookup.empty()) sound[{kind.node, kind.lookup}].insert(step.kind);
  }
  for (std::uint32_t id = 0; id < kinds.size(); ++id) {
    Kind& kind = kinds.at(id);
    const auto known = sound.find({kind.node, kind.lookup});
    if (!kind.lookup.empty() && known != sound.end() && known->second.size() >= profile::kManyLookups)
      kind.unsure = true;
  }
}

void doubt_exchanges(const std::vector<Run>& runs, Kinds& kinds) {
  std::set<std::string> nodes;
  for (const Run& run : runs) nodes.insert(run.talkative.begin(), run.talkative.end());
  if (nodes.empty()) return;
  for (std::uint32_t id = 0; id < kinds.size(); ++id) {
    Kind& kind = kinds.at(id);
    if (is_exchange(kind.what) && (nodes.contains(kind.node) || nodes.contains(kind.peer))) kind.unsure = true;
  }
}

void Merged::apply(std::vector<Run>& runs) const {
  if (none()) return;
  for (Run& run : runs)
    for (Step& step : run.steps) {
      step.kind = (*this)[step.kind];
      step.in = (*this)[step.in];
    }
}

Merged merge_nodes(const std::vector<Run>& runs, Kinds& kinds, const schedule::Schedule& schedule, bool always) {
  // by fault, or by the group to which the fault belongs: the nodes that it hit
  std::map<std::string, std::set<std::string>> nodes;
  const auto name_of = [&](const std::string& id) {
    const schedule::Fault* fault = schedule.find(id);
    return fault != nullptr && !fault->group.empty() ? "group " + fault->group : id;
  };
  for (const Run& run : runs)
    if (run.group == Group::failing)
      for (const schedule::FaultOutcome* fault : fired(run)) nodes[name_of(fault->id)].insert(fault->node);
  if (!always && std::none_of(nodes.begin(), nodes.end(), [](const auto& fault) { return fault.second.size() > 1; }))
    return {};
  std::vector<std::uint32_t> now(kinds.size());
  for (std::uint32_t id = 0; id < now.size(); ++id) {
    Kind kind = kinds[id];
    const bool unsure = kind.unsure, sampled = kind.sampled;
    if (kind.what == StepKind::silence) kind.words = "receives nothing from another node";
    if (is_exchange(kind.what)) kind.words = without_peer(kind);
    // the kind of the sent message has a lower number, so it is mapped already
    if (kind.as_sent != kNoKind) kind.as_sent = now[kind.as_sent];
    kind.node.clear();
    kind.peer.clear();
    now[id] = kinds.of(std::move(kind));
    if (unsure) kinds.at(now[id]).unsure = true;
    if (sampled) kinds.at(now[id]).sampled = true;
  }
  return Merged(std::move(now));
}

namespace {

// Identifies a step in every run: the nth step of its kind.
struct Anchor {
  std::uint32_t kind = 0;
  std::size_t nth = 0;
  std::size_t before = 0;  // number of anchors that are nearer to the fault
};

std::vector<Anchor> anchors_before(const Run& run, const Kinds& kinds, const Merged& merged, const std::string& node) {
  std::vector<Anchor> out;
  std::unordered_map<std::uint32_t, std::size_t> counts;
  for (const Step& step : run.steps) {
    if (step.ts_ns > run.cut_ns) break;
    const std::uint32_t id = merged[step.kind];
    const Kind& kind = kinds[id];
    const std::size_t nth = ++counts[id];
    if (kind.what == StepKind::silence || kind.what == StepKind::message || kind.what == StepKind::value ||
        is_exchange(kind.what) || kind.unsure || kind.sampled)
      continue;
    if (!kind.node.empty() && !node.empty() && kind.node != node) continue;
    out.push_back({id, nth, 0});
  }
  if (out.size() > kLookBack) out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(kLookBack));
  std::reverse(out.begin(), out.end());
  for (std::size_t i = 0; i < out.size(); ++i) out[i].before = i;
  return out;
}

bool has(const std::vector<Anchor>& anchors, const Anchor& wanted) {
  return std::any_of(anchors.begin(), anchors.end(),
                     [&](const Anchor& a) { return a.kind == wanted.kind && a.nth == wanted.nth; });
}

const Step* find_anchor(const Run& run, const Merged& merged, const Anchor& anchor) {
  std::size_t seen = 0;
  for (const Step& step : run.steps)
    if (merged[step.kind] == anchor.kind && ++seen == anchor.nth) return &step;
  return nullptr;
}

}  // namespace

void align(std::vector<Run>& runs, const Kinds& kinds, const Merged& merged) {
  std::vector<std::int64_t> after;           // of failing runs: time from the start of the workload to the fault
  std::vector<std::vector<Anchor>> anchors;  // of failing runs, nearest first
  for (Run& run : runs) {
    const auto faults = fired(run);
    if (faults.empty()) continue;
    run.cut_ns = run.zero_ns + faults.front()->fired_ns;
    if (run.group != Group::failing) continue;
    after.push_back(faults.front()->fired_ns);
    anchors.push_back(anchors_before(run, kinds, merged, faults.front()->node));
  }
  std::sort(after.begin(), after.end());
  const std::int64_t usual = after.empty() ? 0 : after[after.size() / 2];
  std::vector<Anchor> common;
  if (!anchors.empty())
    for (const Anchor& anchor : anchors.front())
      if (std::all_of(anchors.begin() + 1, anchors.end(), [&](const auto& others) { return has(others, anchor); }))
        common.push_back(anchor);
  std::size_t earliest = 0;  // index of the earliest anchor that is used
  bool by_time = false;
  for (Run& run : runs) {
    if (!fired(run).empty()) continue;
    const Step* found = nullptr;
    std::size_t i = 0;
    while (i < common.size() && (found = find_anchor(run, merged, common[i])) == nullptr) ++i;
    run.found_cut = found != nullptr;
    run.cut_ns = found != nullptr ? found->ts_ns : run.zero_ns + usual;
    if (found != nullptr) earliest = std::max(earliest, i);
    else by_time = true;
  }
  for (Run& run : runs) {
    if (fired(run).empty()) continue;
    run.known_ns = run.cut_ns;
    if (const Step* step = common.empty() ? nullptr : find_anchor(run, merged, common[earliest]); step != nullptr)
      run.known_ns = std::min(run.known_ns, step->ts_ns);
    // Times before the start of the workload cannot be compared, so any step before the cut may then correspond to a
    // later step of correct runs.
    if (by_time) run.known_ns = usual <= 0 ? 0 : std::min(run.known_ns, run.cut_ns - kAboutTheSame);
  }
}

}  // namespace rose::explain
