#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_set>

#include "kernel/syscalls.h"
#include "profile/profile.h"

namespace rose::profile {
namespace {

constexpr char kSeparator = '\x1f';

// Joins several strings to one hash key, which is cheaper than hashing a tuple of strings.
template <typename... Parts>
std::string key_of(const Parts&... parts) {
  std::string key;
  ((key += parts, key += kSeparator), ...);
  return key;
}

std::string node_of(const trace::TraceBase& trace, const trace::Event& event) {
  const std::string_view node = trace.str(event.node);
  return std::string(node.empty() ? std::string_view(trace.meta.node) : node);
}

// Caches patterns by string id, because the same path occurs thousands of times.
class Patterns {
 public:
  explicit Patterns(const trace::Trace& trace) : trace_(trace) {}
  const std::string& path(trace::StringId id) { return remember(paths_, id, path_pattern); }
  const std::string& peer(trace::StringId id) { return remember(peers_, id, peer_pattern); }

 private:
  using Memory = std::unordered_map<trace::StringId, std::string>;
  const std::string& remember(Memory& memory, trace::StringId id, std::string (*make)(std::string_view)) {
    const auto found = memory.find(id);
    return found != memory.end() ? found->second : memory.emplace(id, make(trace_.str(id))).first->second;
  }
  const trace::Trace& trace_;
  Memory paths_;
  Memory peers_;
};

// A vector of entries of the profile with a hash index, used while one run is added.
template <typename Kind>
class Table {
 public:
  template <typename Key>
  Table(std::vector<Kind>& kinds, Key key) : kinds_(kinds) {
    for (std::size_t i = 0; i < kinds.size(); ++i) at_.emplace(key(kinds[i]), i);
  }
  // The entry with this key; inserts `fresh` if there is none.
  Kind& at(const std::string& key, Kind fresh) {
    const auto [found, is_new] = at_.emplace(key, kinds_.size());
    if (is_new) kinds_.push_back(std::move(fresh));
    return kinds_[found->second];
  }

 private:
  std::vector<Kind>& kinds_;
  std::unordered_map<std::string, std::size_t> at_;
};

std::string call_key(const CallKind& kind) { return key_of(kind.node, kind.syscall, kind.error, kind.path, kind.peer); }
std::string function_key(const FunctionRate& rate) { return key_of(rate.node, rate.function); }
std::string process_key(const ProcessKind& kind) {
  return key_of(kind.node, kind.state, kind.signal, std::to_string(kind.exit_code), kind.main ? "1" : "0");
}
std::string silence_key(const Silence& silence) {
  return key_of(silence.src, silence.dst,
                fmt::format("{} {}", silence.port, silence.answers ? *silence.answers ? "answers" : "asks" : ""));
}

// The port with its colon. Patterns of ephemeral ports are equal (":*").
std::string_view port_of(std::string_view peer) {
  const std::size_t colon = peer.rfind(':');
  return colon == std::string_view::npos ? std::string_view{} : peer.substr(colon);
}
bool peers_agree(std::string_view a, std::string_view b) {
  if (a == b) return true;
  if (a.empty() || b.empty()) return false;
  if (a.starts_with("unix:") || b.starts_with("unix:"))
    return a.starts_with("unix:/") && b.starts_with("unix:/") && tail_pattern(a.substr(5)) == tail_pattern(b.substr(5));
  const std::string_view port = port_of(a);
  return !port.empty() && port == port_of(b);
}

// The name by which failures are distinguished: the error, "short" for a short transfer, or the signal of a failed
// access to a mapping.
std::string error_name(const trace::Event& event) {
  if (event.err == 0 && event.requested != 0) return "short";
  if (event.err == 0 && event.signal != 0) return kernel::signal_name(event.signal);
  return kernel::errno_name(event.err);
}

CallKind call_of(const trace::TraceBase& trace, const trace::Event& event) {
  CallKind call;
  call.node = node_of(trace, event);
  call.syscall = kernel::syscall_name(event.syscall);
  if (event.type == trace::EventType::scf) call.error = error_name(event);
  call.path = path_pattern(trace.str(event.path));
  call.peer = peer_pattern(trace.str(event.peer));
  return call;
}

bool is_call(const trace::Event& event) {
  return (event.type == trace::EventType::scf || event.type == trace::EventType::sys) && event.syscall >= 0;
}

// Ranks the entries of the profile that match a call: same node first, then equal path, then equal peer, then the more
// frequent entry.
auto fit(const CallKind& kind, const CallKind& call) {
  return std::make_tuple(kind.node == call.node, kind.path == call.path, kind.peer == call.peer, kind.count);
}

const CallKind* better(const CallKind* a, const CallKind* b, const CallKind& call) {
  if (a == nullptr) return b;
  return fit(*b, call) > fit(*a, call) ? b : a;
}

// "*/name", which matches the name in any folder; "" for a path without a folder.
std::string in_any_folder(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos || slash + 1 == path.size() ? "" : "*" + std::string(path.substr(slash));
}

// Recognises names that a node's calls searched for along a path, from the names that were not found and their folders.
class Searches {
 public:
  explicit Searches(const std::vector<CallKind>& failures) {
    for (const CallKind& kind : failures) {
      const std::string any = name_of(kind);
      if (any.empty()) continue;
      Name& name = names_[key_of(kind.node, kind.syscall, any)];
      // A pattern with a wildcard matches many different files. If many of these are missing in many folders, it is
      // still not normal that another one is missing, so such patterns are not joined.
      name.plain = any.find('*', 1) == std::string::npos;
      if (kind.path != any) name.folders.push_back(folder_of(kind));
      else if (name.plain) name.joined = true;
    }
    std::unordered_map<std::string, std::size_t> names_in;
    for (const auto& [key, name] : names_)
      if (name.plain && name.folders.size() >= kManyFolders)
        for (const std::string& folder : name.folders) ++names_in[folder];
    for (const auto& [folder, names] : names_in)
      if (names >= kManyNames) path_.insert(folder);
  }

  // If the name was searched for along a path, returns the key that all its kinds get; otherwise "".
  [[nodiscard]] std::string place_of(const CallKind& kind) const {
    const std::string any = name_of(kind);
    if (any.empty()) return "";
    const std::string key = key_of(kind.node, kind.syscall, any);
    const Name& name = names_.at(key);
    const bool many = name.plain && name.folders.size() >= kManyFolders;
    // Other names were searched for in the same folders, so these folders are a search path, and this name was searched
    // for along it. It may be missing in fewer than kManyFolders of them, because the search ends at a folder that
    // contains it. A name whose pattern has a wildcard does not count by the number of its folders.
    const bool same_path =
        name.folders.size() >= kFewFolders && std::all_of(name.folders.begin(), name.folders.end(),
                                                          [&](const std::string& one) { return path_.contains(one); });
    return name.joined || many || same_path ? key : "";
  }

 private:
  struct Name {
    bool plain = false;
    bool joined = false;  // an earlier run already joined the kinds with this name
    std::vector<std::string> folders;
  };
  static std::string name_of(const CallKind& kind) {
    return kind.error == "ENOENT" && kind.peer.empty() ? in_any_folder(kind.path) : "";
  }
  static std::string folder_of(const CallKind& kind) {
    return key_of(kind.node, kind.syscall, kind.path.substr(0, kind.path.rfind('/')));
  }
  std::unordered_map<std::string, Name> names_;
  std::unordered_set<std::string> path_;  // folders in which many names were not found
};

// Joins all kinds of a name that was searched for along a path into one. Otherwise there would be one kind for each
// combination of name and folder, and the profile of an Erlang program would have 24 MB.
void join_searches(std::vector<CallKind>& failures) {
  const Searches searches(failures);
  std::vector<CallKind> kept;
  std::unordered_map<std::string, std::size_t> joined;
  for (CallKind& kind : failures) {
    const std::string place = searches.place_of(kind);
    if (place.empty()) {
      kept.push_back(std::move(kind));
      continue;
    }
    const auto [at, first] = joined.emplace(place, kept.size());
    if (first) {
      kind.path = in_any_folder(kind.path);
      kept.push_back(std::move(kind));
    } else {
      kept[at->second].count += kind.count;
    }
  }
  failures = std::move(kept);
}

// Adds one run to a profile.
class Learner {
 public:
  Learner(Profile& profile, const trace::Trace& trace)
      : trace_(trace),
        nodes_(nodes_by_address(trace.meta)),
        patterns_(trace),
        failures_(profile.failures, call_key),
        changes_(profile.state_changes, call_key),
        functions_(profile.functions, function_key),
        processes_(profile.processes, process_key),
        silences_(profile.silences, silence_key) {}

  // Adds a function that the kernel counted. Its AF events are part of this count and must not be added again.
  void counted(const FunctionRate& rate) {
    const std::string key = function_key(rate);
    counted_.insert(key);
    FunctionRate fresh = rate;
    fresh.count = 0;
    FunctionRate& known = functions_.at(key, std::move(fresh));
    if (known.binary.empty()) known.binary = rate.binary;
    known.count += rate.count;
  }

  void event(const trace::Event& event) {
    // Events that rose itself caused do not show what is normal.
    if ((event.flags & (trace::kPlanned | trace::kInjected)) != 0) return;
    // Failures in a process that is being ended depend on when it is ended. Diagnosis ignores them as well.
    if ((event.flags & trace::kDying) != 0) return;
    switch (event.type) {
      case trace::EventType::scf:
      case trace::EventType::sys: return call(event);
      case trace::EventType::af: return entry(event);
      case trace::EventType::nd: return silence(event);
      case trace::EventType::ps: return process(event);
    }
  }

 private:
  void call(const trace::Event& event) {
    if (!is_call(event)) return;
    CallKind call;
    call.node = node_of(trace_, event);
    call.syscall = kernel::syscall_name(event.syscall);
    if (event.type == trace::EventType::scf) call.error = error_name(event);
    call.path = patterns_.path(event.path);
    call.peer = patterns_.peer(event.peer);
    const std::string key = call_key(call);
    (event.type == trace::EventType::scf ? failures_ : changes_).at(key, std::move(call)).count += event.count;
  }

  void entry(const trace::Event& event) {
    FunctionRate rate;
    rate.node = node_of(trace_, event);
    rate.function = trace_.str(event.function);
    const std::string key = function_key(rate);
    if (rate.function.empty() || counted_.contains(key)) return;
    functions_.at(key, std::move(rate)).count += event.count;
  }

  void silence(const trace::Event& event) {
    Silence silence{end_of(event.src), end_of(event.dst), 0, event.dport != 0 ? event.dport : event.sport};
    if (silence.port != 0) silence.answers = event.dport == 0;
    const std::string key = silence_key(silence);
    Silence& seen = silences_.at(key, std::move(silence));
    if ((event.flags & trace::kIdle) != 0) {
      seen.idle_ms = std::max<std::int64_t>(seen.idle_ms, event.duration_ms);
      return;
    }
    // The workload may have ended before the run did. Therefore a silence that lasted until the end of the run does not
    // show which length is normal, unless data was outstanding in it.
    const bool open = (event.flags & trace::kOpen) != 0;
    seen.open = seen.open || open;
    if (!open || (event.flags & trace::kOutstanding) != 0)
      seen.longest_ms = std::max<std::int64_t>(seen.longest_ms, event.duration_ms);
  }

  void process(const trace::Event& event) {
    if (event.state == trace::ProcessState::started || event.state == trace::ProcessState::none) return;
    ProcessKind process;
    process.node = node_of(trace_, event);
    process.state = trace::state_name(event.state);
    if (event.signal != 0) process.signal = kernel::signal_name(event.signal);
    process.exit_code = event.exit_code;
    process.main = (event.flags & trace::kMain) != 0;
    const std::string key = process_key(process);
    processes_.at(key, std::move(process)).count += event.count;
  }

  [[nodiscard]] std::string end_of(trace::StringId id) const {
    std::string address(trace_.str(id));
    const auto found = nodes_.find(address);
    return found == nodes_.end() ? address : found->second;
  }

  const trace::Trace& trace_;
  const std::map<std::string, std::string> nodes_;  // by address
  Patterns patterns_;
  Table<CallKind> failures_, changes_;
  Table<FunctionRate> functions_;
  Table<ProcessKind> processes_;
  Table<Silence> silences_;
  std::unordered_set<std::string> counted_;
};

}  // namespace

void learn(Profile& profile, const trace::Trace& trace, const RunCounts& counts) {
  ++profile.runs;
  const std::int64_t window_ns = trace.meta.end_ns - trace.meta.begin_ns;
  const bool known = trace.meta.begin_ns > 0 && window_ns > 0;
  profile.seconds += counts.seconds > 0 ? counts.seconds : known ? static_cast<double>(window_ns) / 1e9 : 0;
  for (const auto& [node, calls] : counts.syscalls) {
    for (const auto& [name, count] : calls) profile.syscalls[node][name] += count;
  }

  Learner learner(profile, trace);
  for (const FunctionRate& rate : counts.functions) learner.counted(rate);
  for (const trace::Event& event : trace.events) learner.event(event);

  for (FunctionRate& rate : profile.functions) {
    rate.per_second = profile.seconds > 0 ? static_cast<double>(rate.count) / profile.seconds : 0;
    rate.infrequent = rate.per_second < profile.infrequent_below;
  }
  join_searches(profile.failures);
  // Sort, so that the same runs give the same file whatever the order of their events was.
  const auto by = [](auto& kinds, auto key) {
    std::sort(kinds.begin(), kinds.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  };
  by(profile.failures, call_key);
  by(profile.state_changes, call_key);
  by(profile.functions, function_key);
  by(profile.processes, process_key);
  by(profile.silences, silence_key);
}

void learn_workload(Profile& profile, bool failed, std::optional<std::uint64_t> sent,
                    std::optional<std::uint64_t> received, const WorkloadEnd& end) {
  const bool first = !profile.workload;
  if (first) profile.workload.emplace();
  WorkloadUse& use = *profile.workload;
  ++use.runs;
  use.failed += failed ? 1 : 0;
  use.hits += end.hit ? 1 : 0;
  constexpr std::int64_t kMs = 1'000'000;
  use.longest_ms = std::max(use.longest_ms, end.length_ns / kMs);
  if (end.last_exchange_ns) use.idle_ms = std::max(use.idle_ms, (end.length_ns - *end.last_exchange_ns) / kMs);
  const auto least = [first](std::optional<std::uint64_t>& known, const std::optional<std::uint64_t>& now) {
    if (first) known = now;
    else if (known && now) known = std::min(*known, *now);
    else known.reset();
  };
  least(use.sent, sent);
  least(use.received, received);
}

bool learn_restart(Restarts& restarts, const trace::Trace& trace, const std::string& node) {
  const auto of_main = [&](const trace::Event& event) {
    return event.type == trace::EventType::ps && (event.flags & trace::kMain) != 0 && node_of(trace, event) == node;
  };
  std::int64_t ended = 0;
  bool back = false;
  for (const trace::Event& event : trace.events) {
    if (!of_main(event)) continue;
    if (event.state == trace::ProcessState::crashed || event.state == trace::ProcessState::exited) {
      const bool meant = (event.flags & (trace::kPlanned | trace::kInjected)) != 0;
      if (ended == 0 && meant) ended = event.ts_ns;
    } else if (event.state == trace::ProcessState::started) {
      back = back || ended != 0;
    }
  }
  if (!back) return false;
  ++restarts.nodes[node];
  Patterns patterns(trace);
  {
    Table<CallKind> failures(restarts.failures, call_key);
    for (const trace::Event& event : trace.events) {
      if (event.type != trace::EventType::scf || !is_call(event) || event.ts_ns < ended) continue;
      if ((event.flags & (trace::kPlanned | trace::kInjected)) != 0) continue;
      CallKind call;
      call.node = node_of(trace, event);
      call.syscall = kernel::syscall_name(event.syscall);
      call.error = error_name(event);
      call.path = patterns.path(event.path);
      call.peer = patterns.peer(event.peer);
      const std::string key = call_key(call);
      failures.at(key, std::move(call)).count += event.count;
    }
  }
  join_searches(restarts.failures);
  std::sort(restarts.failures.begin(), restarts.failures.end(),
            [](const CallKind& a, const CallKind& b) { return call_key(a) < call_key(b); });
  return true;
}

namespace {

bool is_on(const FunctionRate& function, std::string_view node) {
  return node.empty() || function.node == node || function.node == "*";
}

}  // namespace

std::set<std::pair<std::string, std::string>> rare_functions(const Profile& profile, std::string_view node) {
  std::set<std::pair<std::string, std::string>> rare;
  for (const FunctionRate& function : profile.functions)
    if (function.infrequent && function.binary != kJvm && is_on(function, node))
      rare.emplace(function.function, function.binary);
  return rare;
}

std::set<std::string> rare_methods(const Profile& profile, std::string_view node) {
  std::set<std::string> rare;
  for (const FunctionRate& function : profile.functions)
    if (function.infrequent && function.binary == kJvm && is_on(function, node)) rare.insert(function.function);
  return rare;
}

bool knows_methods(const Profile& profile, std::string_view node) {
  return std::any_of(profile.functions.begin(), profile.functions.end(),
                     [&](const FunctionRate& function) { return function.binary == kJvm && is_on(function, node); });
}

BenignIndex::BenignIndex(const Restarts& restarts) {
  for (const CallKind& kind : restarts.failures) add(kind);
}

BenignIndex::BenignIndex(const Profile& profile) {
  for (const CallKind& kind : profile.failures) add(kind);
  for (const CallKind& kind : profile.state_changes) add(kind);
}

void BenignIndex::add(const CallKind& kind) {
  by_path_.emplace(key_of(kind.syscall, kind.error, kind.path), &kind);
  if (!kind.path.empty()) by_tail_.emplace(key_of(kind.syscall, kind.error, tail_pattern(kind.path)), &kind);
}

const CallKind* BenignIndex::find(const trace::TraceBase& trace, const trace::Event& event) const {
  if (!is_call(event)) return nullptr;
  const CallKind call = call_of(trace, event);
  const CallKind* found = nullptr;
  const auto look = [&](const auto& map, const std::string& key) {
    const auto [begin, end] = map.equal_range(key);
    for (auto at = begin; at != end; ++at) {
      if (peers_agree(at->second->peer, call.peer)) found = better(found, at->second, call);
    }
  };
  look(by_path_, key_of(call.syscall, call.error, call.path));
  if (!call.path.empty()) look(by_tail_, key_of(call.syscall, call.error, tail_pattern(call.path)));
  if (const std::string any = in_any_folder(call.path); !any.empty())
    look(by_path_, key_of(call.syscall, call.error, any));
  return found;
}

}  // namespace rose::profile
