#include "diagnose/extractor.h"

#include <optional>
#include <unordered_map>

#include "diagnose/surprise.h"
#include "diagnose/thresholds.h"
#include "kernel/syscalls.h"

namespace rose::diagnose {
namespace {

constexpr std::int64_t kShutdown = 2 * kSecond;        // failures of a node this soon after its kill are its last breath
constexpr std::int64_t kAftermath = 5 * kSecond;       // connections go on failing this long after the cause is gone
constexpr std::int64_t kConnectTimeout = 130 * kSecond;  // Linux gives a connection up after 127 s
constexpr std::int64_t kMostTimes = 1000;
constexpr std::uint64_t kFew = 3;          // failures that need not mean that it failed for good
constexpr std::int64_t kWithStart = 60 * kSecond;      // a dump of a run begins this soon before its nodes
constexpr std::int64_t kAfterStart = 3 * kSecond;      // what a program does to start is done by then
constexpr std::int64_t kAfterError = kSecond;          // what deals with an error begins so soon
constexpr std::size_t kMostNoted = 32;                 // times of one kind of failure that are looked at for that
constexpr double kNoRun = 5;                     // a window so many times as long as a run is no run
constexpr std::size_t kMostKinds = 100'000;            // of calls that succeeded

}  // namespace

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
  std::vector<std::int64_t> times;  // of its first kMostNoted events
};

// Calls that are told apart by what they do it to: a path pattern, or the socket that accepts.
using SameCall = std::tuple<int, std::int16_t, std::uint32_t, std::int32_t, std::int32_t>;

struct SameCallHash {
  std::size_t operator()(const SameCall& c) const {
    const auto [node, call, pattern, pid, fd] = c;
    std::uint64_t h = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(node)) << 32 | pattern) * 0x9e3779b97f4a7c15ULL;
    h ^= (static_cast<std::uint64_t>(static_cast<std::uint32_t>(pid)) << 32 | static_cast<std::uint32_t>(fd)) + static_cast<std::uint16_t>(call);
    h ^= h >> 29;
    return static_cast<std::size_t>(h * 0xbf58476d1ce4e5b9ULL);
  }
};

// Nothing for calls whose successes a dump does not hold.
std::optional<SameCall> same_call(int node, const Event& event, std::string_view call, std::uint32_t pattern) {
  const kernel::SyscallInfo* info = kernel::find_syscall(event.syscall);
  if (info == nullptr || !info->state_changing || call.starts_with("open")) return std::nullopt;  // opens: only some of them
  if (call.starts_with("accept")) return SameCall{node, event.syscall, 0, event.pid, event.fd};
  if (pattern == 0) return std::nullopt;
  return SameCall{node, event.syscall, pattern, 0, 0};
}

// A group that is not benign.
struct Failure {
  const ScfGroup* group = nullptr;
  std::string syscall;
  bool far_more = false;   // the profile has it, but far rarer
  double normal = 0;       // times a run
  int ordinariness = 0;
  bool recovered = false;
  bool newborn = false;    // on a file that was made only after the workload began
  std::string follows;     // what it always follows; "" nothing
  std::uint64_t nth = 0;   // of its node's calls of that kind since the node's start; 0: the dump does not tell

  [[nodiscard]] std::tuple<bool, bool, int, std::int64_t> order() const {
    return {group->key.explained || !follows.empty(), far_more, ordinariness, group->first_ts};
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

const Cause* Extractor::explaining(const Event& event, int node, int peer_node, bool peer_known) const {
  const std::int64_t grace = event.err == 110 /* ETIMEDOUT */ ? kConnectTimeout : kAftermath;
  for (std::size_t i = lasting_.next(0, event.ts_ns - grace); i < causes_.size(); i = lasting_.next(i + 1, event.ts_ns - grace)) {
    const Cause& cause = causes_[i];
    if (event.ts_ns < cause.start - kSecond / 2) break;  // they are in their order
    if (cause.kind == CauseKind::killed || cause.kind == CauseKind::ended_itself || cause.kind == CauseKind::planned) {
      if (peer_known ? cause.node == peer_node : cause.node != node) return &cause;
    } else if (!peer_known || cause.concerns(node, peer_node)) {
      return &cause;
    }
  }
  return nullptr;
}

bool Extractor::last_breath(const Event& event, int node) const {
  const std::vector<const Cause*>& causes = causes_of_[static_cast<std::size_t>(node)];
  const auto soon = std::lower_bound(causes.begin(), causes.end(), event.ts_ns - kShutdown, [](const Cause* cause, std::int64_t ts) { return cause->start < ts; });
  for (auto it = soon; it != causes.end() && (*it)->start < event.ts_ns; ++it) {
    const Cause* cause = *it;
    if (cause->kind == CauseKind::paused || cause->kind == CauseKind::cut || cause->partly) continue;
    // A worker gives up, its recovery fails on the same disk, then the main process ends: that is one story.
    if (event.ts_ns <= cause->gone && resource_error(event.err)) continue;
    if (event.ts_ns < cause->end) return true;
  }
  return false;
}

void Extractor::order_causes() {
  causes_of_.assign(static_cast<std::size_t>(nodes_.count()), {});
  std::stable_sort(causes_.begin(), causes_.end(), [](const Cause& a, const Cause& b) { return a.start < b.start; });
  std::vector<std::int64_t> ends;
  for (const Cause& cause : causes_) {
    causes_of_[static_cast<std::size_t>(cause.node)].push_back(&cause);
    ends.push_back(cause.end);
  }
  lasting_ = Lasting(ends);
}

void Extractor::syscalls() {
  order_causes();
  Interner patterns;
  Interner peer_texts;
  patterns.id("");
  peer_texts.id("");
  std::unordered_map<ScfKey, std::size_t, ScfHash> index;
  std::vector<ScfGroup> groups;
  std::unordered_map<ScfKey, std::int64_t, ScfHash> succeeded;  // SYS: the last success of the same call
  std::unordered_map<SameCall, std::vector<std::pair<std::int64_t, std::uint64_t>>, SameCallHash> done;  // SYS: when how many such calls succeeded
  std::unordered_map<std::uint64_t, std::int64_t> made;   // by node and path pattern: when such a file was first made
  const auto file = [](int node, std::uint32_t path) { return static_cast<std::uint64_t>(static_cast<std::uint32_t>(node)) << 32 | path; };
  std::uint64_t nameless_calls = 0;
  std::uint64_t impossible = 0;
  std::uint64_t answers = 0;
  std::uint64_t own_folders = 0;
  std::uint64_t internal_codes = 0;
  std::uint64_t last_breaths = 0;
  std::uint64_t planned = 0;
  std::map<std::string, std::uint64_t> strangers;

  std::vector<std::string> call_names(static_cast<std::size_t>(kernel::kMostSyscalls));
  const auto name_of = [&](std::int16_t number) -> const std::string& {
    static const std::string kNone;
    if (number < 0 || number >= kernel::kMostSyscalls) return kNone;
    std::string& name = call_names[static_cast<std::size_t>(number)];
    if (name.empty()) name = kernel::syscall_name(number);
    return name;
  };

  for (std::size_t s = 0; s < inputs_.traces.size(); ++s) {
    const trace::Trace& trace = inputs_.traces[s];
    std::vector<std::uint32_t> pattern_of(trace.strings.size() + 1, UINT32_MAX);
    std::vector<std::int8_t> own_of(trace.strings.size() + 1, -1);
    std::vector<std::int32_t> peer_of(trace.strings.size() + 1, -1);
    std::vector<Peer> peers;
    std::unordered_map<int, bool> connection;  // (err, syscall, has peer) -> is it a connection error
    const auto pattern = [&](trace::StringId id) {
      if (id == 0 || id >= pattern_of.size()) return std::uint32_t{0};
      if (pattern_of[id] == UINT32_MAX) pattern_of[id] = patterns.id(profile::path_pattern(trace.str(id)));
      return pattern_of[id];
    };
    const auto own_folder = [&](trace::StringId id) {
      if (id == 0 || id >= own_of.size()) return false;
      if (own_of[id] < 0) own_of[id] = run_folder(trace.str(id)) ? 1 : 0;
      return own_of[id] == 1;
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
        const std::string& call = name_of(event.syscall);
        if (const std::optional<SameCall> same = same_call(node, event, call, pattern(event.path)); same && done.size() < kMostKinds)
          done[*same].emplace_back(event.ts_ns, weight_of(event));
        const bool renames = call.starts_with("rename");
        if (renames || call.starts_with("open") || call == "creat")
          made.try_emplace(file(node, pattern(renames ? event.path2 : event.path)), event.ts_ns);
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
      if (event.err == 22 /* EINVAL */ && name_of(event.syscall).starts_with("readlink")) {
        answers += weight;
        continue;
      }
      if (own_folder(event.path)) {
        own_folders += weight;
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
      if (fresh) groups.push_back({key, &trace, &event, 0, event.ts_ns, event.ts_ns, true, cause, {}});
      ScfGroup& group = groups[it->second];
      group.count += weight;
      if (group.times.size() < kMostNoted) group.times.push_back(event.ts_ns);
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
  discard("answers, not failures: a name that is no symbolic link", answers);
  discard("the folders that a test run made for itself", own_folders);
  discard("codes inside the kernel that programs never see", internal_codes);
  discard("failures of a node within 2s of its own end", last_breaths);
  discard("connection errors that a planned stop explains", planned);
  for (const auto& [host, events] : strangers) discard(stranger(host), events);

  std::optional<profile::BenignIndex> normal_failures;
  if (inputs_.profile) normal_failures.emplace(*inputs_.profile);
  std::vector<Failure> failures;
  for (const ScfGroup& group : groups) {
    Failure failure;
    failure.group = &group;
    failure.syscall = kernel::syscall_name(group.key.syscall);
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
    const auto birth = made.find(file(group.key.node, group.key.pattern));
    failure.newborn = plan_.workload_ts != 0 && group.key.pattern != 0 && birth != made.end() &&
                      birth->second >= plan_.workload_ts && birth->second <= group.first_ts;
    if (const std::optional<SameCall> same = same_call(group.key.node, *group.first, failure.syscall, group.key.pattern);
        same && seen_from_start(group.key.node)) {
      failure.nth = 1;
      if (const auto before = done.find(*same); before != done.end())
        for (const auto& [ts, calls] : before->second) failure.nth += ts < group.first_ts ? calls : 0;
    }
    failures.push_back(std::move(failure));
  }
  follow(failures);
  // In the order of their ranks: a dump may hold any number of kinds, and only the first can be tried.
  std::stable_sort(failures.begin(), failures.end(), [](const Failure& a, const Failure& b) { return a.order() < b.order(); });
  std::size_t to_try = static_cast<std::size_t>(std::max(1, config_.diagnose.max_runs));
  plan_.candidates.reserve(plan_.candidates.size() + failures.size());
  for (const Failure& failure : failures) {
    add_call(failure, patterns.text(failure.group->key.pattern), to_try > 0);
    if (to_try > 0) --to_try;
  }
}

bool Extractor::run_folder(std::string_view path) const {
  constexpr std::string_view kMark = "/rose-";  // "/tmp/rose-4f3a2b", then the node's name
  const std::size_t at = path.find(kMark);
  if (at == std::string_view::npos) return false;
  std::string_view rest = path.substr(at + kMark.size());
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const std::string_view unique = rest.substr(0, rest.find('/'));
  if (unique.size() != 6 || !std::all_of(unique.begin(), unique.end(), [](unsigned char c) { return std::isalnum(c) != 0; })) return false;
  rest.remove_prefix(unique.size());
  return rest.empty() || config_.find(rest.substr(1)) != nullptr;
}

void Extractor::follow(std::vector<Failure>& failures) const {
  std::vector<std::vector<std::pair<std::int64_t, const Failure*>>> worse(static_cast<std::size_t>(nodes_.count()));
  for (const Failure& failure : failures)
    if (failure.ordinariness <= 1)
      for (const std::int64_t ts : failure.group->times) worse[static_cast<std::size_t>(failure.group->key.node)].emplace_back(ts, &failure);
  for (auto& list : worse) std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (Failure& failure : failures) {
    const ScfGroup& group = *failure.group;
    if (failure.ordinariness == 0 || group.times.size() < group.count || group.key.explained) continue;  // some were not looked at
    const auto node = static_cast<std::size_t>(group.key.node);
    const std::vector<std::int64_t>& starts = starts_[node];
    std::set<std::int64_t> after;
    if (std::all_of(group.times.begin(), group.times.end(), [&](std::int64_t ts) {
          const auto it = std::upper_bound(starts.begin(), starts.end(), ts);
          if (it == starts.begin() || ts - *std::prev(it) > kAfterStart) return false;
          after.insert(*std::prev(it));
          return true;
        }) && after.size() > 1) {
      failure.follows = fmt::format("a start of {}", name(group.key.node));
      continue;
    }
    if (failure.ordinariness < 2) continue;
    const Failure* last = nullptr;
    if (std::all_of(group.times.begin(), group.times.end(), [&](std::int64_t ts) {
          const auto it = std::upper_bound(worse[node].begin(), worse[node].end(), ts, [](std::int64_t t, const auto& w) { return t < w.first; });
          if (it == worse[node].begin() || ts - std::prev(it)->first > kAfterError) return false;
          last = std::prev(it)->second;
          return true;
        }) && last != nullptr)
      failure.follows = fmt::format("{} failing with {}", last->syscall, kernel::errno_name(last->group->key.err));
  }
}

bool Extractor::all_the_time(std::vector<std::int64_t> times) const {
  std::sort(times.begin(), times.end());
  std::size_t apart = times.empty() ? 0 : 1;
  for (std::size_t i = 1; i < times.size(); ++i) apart += times[i] - times[i - 1] > longest_ns_ ? 1 : 0;
  return apart >= kUsualFailures;
}

bool Extractor::seen_from_start(int node) const {
  const std::vector<std::int64_t>& starts = starts_[static_cast<std::size_t>(node)];
  return !starts.empty() && starts.front() - plan_.begin_ts < kWithStart && plan_.workload_ts >= starts.front();
}

bool Extractor::can_fail(int number) {
  if (number >= kernel::kMostSyscalls) return false;
  const kernel::SyscallInfo* info = kernel::find_syscall(number);
  return info == nullptr || (info->name != "exit" && info->name != "exit_group" && info->name != "rt_sigreturn");
}

double Extractor::per_run(const profile::CallKind& kind) const {
  return static_cast<double>(kind.count) / std::max(1, inputs_.profile->runs);
}

double Extractor::longer_than_a_run() const {
  const double run = inputs_.profile->seconds / std::max(1, inputs_.profile->runs);
  if (run <= 0) return 1;
  return std::max(1.0, static_cast<double>(plan_.end_ts - plan_.begin_ts) / 1e9 / run);
}

double Extractor::runs_in_window() const {
  const double longer = longer_than_a_run();
  return longer < kNoRun ? 1 : longer;
}

Peer Extractor::read_peer(std::string_view text, Interner& texts) const {
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

std::string Extractor::peer_glob(const ScfGroup& group) const {
  const auto it = group_peers_.find(group.key.peer);
  if (group.key.peer == 0 || it == group_peers_.end()) return "";
  const Peer& peer = it->second;
  if (peer.address.starts_with("unix:")) return "";
  std::string host = peer.node >= 0 && !nodes_.test_address(peer.node).empty() ? nodes_.test_address(peer.node) : "*";
  if (host.find(':') != std::string::npos) host = fmt::format("[{}]", host);
  if (peer.port == 0) return host == "*" ? std::string{} : host + ":*";
  return fmt::format("{}:{}", host, peer.port);
}

bool Extractor::hot(int node, const std::string& syscall) const {
  if (inputs_.profile && inputs_.profile->seconds > 0) {
    const auto counts = inputs_.profile->syscalls.find(name(node));
    if (counts != inputs_.profile->syscalls.end()) {
      const auto count = counts->second.find(syscall);
      return count != counts->second.end() && static_cast<double>(count->second) >= inputs_.profile->seconds;
    }
  }
  return hot_call(syscall);
}

void Extractor::add_call(const Failure& failure, const std::string& pattern, bool with_shapes) {
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
  if (kernel::names_own_address(syscall)) {
    // Nobody has come yet: what the dump notes is the address that the node itself listens at.
    const auto at = group_peers_.find(group.key.peer);
    if (takes_peer && at != group_peers_.end() && at->second.port != 0) fault.call.local = fmt::format(":{}", at->second.port);
  } else if (!peer.empty()) {
    fault.call.peer = peer;
  }

  // As it was seen: once, so many times, or for good. A full disk fails every call until the end.
  // (A dump that is over soon after says less; of a few failures it is tried that they were all.)
  const std::int64_t length = plan_.end_ts - plan_.begin_ts;
  const std::int64_t near_end = std::max(std::min(2 * kSecond, length / 4), length / 10);
  const bool for_good = group.count > 1 && !failure.recovered && plan_.end_ts - group.last_ts <= near_end;
  if (group.count > 1)
    fault.times = for_good && group.count > kFew ? -1 : static_cast<std::int64_t>(std::min<std::uint64_t>(group.count, kMostTimes));

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
  // Seen from the node's start on, the dump says which one it was.
  if (failure.nth > 1 && failure.nth <= static_cast<std::uint64_t>(std::max(1, config_.diagnose.syscall_attempts))) {
    shape(fault.times, false);
    shapes.back().count = static_cast<int>(failure.nth);
  }
  shape(fault.times, often);
  if (with_shapes || shapes.empty()) shape(fault.times, !often);
  // A message tells of one failed call; of what lasts in practice, others may have failed with nobody to tell of them.
  if (with_shapes && fault.times == 1 && said(*group.first) != nullptr && lasting_error(group.key.err)) shape(-1, true);
  if (with_shapes && fault.times != 1) {
    shape(1, often);
    shape(1, !often);
  }
  if (with_shapes && for_good && fault.times > 0) shape(-1, often);
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
  if (said(*group.first) != nullptr)
    from_log(c, *group.first);
  else if (failure.far_more)
    c.why += fmt::format("the profile has it too, but only {:.1f} times a run", failure.normal);
  else if (inputs_.profile)
    c.why += "the profile never shows it";
  else
    c.why += "no profile says whether it is normal";
  if (c.ordinariness == 0) c.why += "; an error of a disk or resource";
  if (!strict_resource_error(group.key.err) && all_the_time(group.times)) {
    usual_.emplace(c.fault.id, kOddsUsual);
    c.why += "; it fails like that all the time";
  }
  if (c.ordinariness == 3) c.why += "; of a kind that healthy programs see all the time";
  if (group.key.explained && group.cause != nullptr) {
    c.symptom = true;
    c.why += fmt::format("; {} explains it", group.cause->words);
  }
  if (!failure.follows.empty()) {
    c.symptom = true;
    c.why += fmt::format("; it always follows {}", failure.follows);
    followers_.insert(plan_.candidates.size() - 1);
  }
}

schedule::Condition Extractor::elapsed(std::int64_t ns) {
  schedule::Condition condition;
  condition.elapsed_ns = std::max(kTimeStep, ns / kTimeStep * kTimeStep);  // down: rather armed too early than too late
  return condition;
}

}  // namespace rose::diagnose
