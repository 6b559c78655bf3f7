// Failed calls: which of them healthy runs have, too, what explains them, and what the others are.
#include <array>
#include <optional>
#include <unordered_map>

#include "diagnose/extractor.h"
#include "diagnose/failed_calls.h"
#include "diagnose/surprise.h"
#include "diagnose/thresholds.h"
#include "kernel/syscalls.h"

namespace rose::diagnose {
namespace {

constexpr std::int64_t kShutdown = 2 * kSecond;        // failures of a node this soon after its kill are its last breath
constexpr std::int64_t kAftermath = 5 * kSecond;       // connections go on failing this long after the cause is gone
constexpr std::int64_t kConnectTimeout = 130 * kSecond;  // Linux gives a connection up after 127 s
constexpr std::int64_t kWithStart = 60 * kSecond;      // a dump of a run begins this soon before its nodes
constexpr std::int64_t kAfterStart = 3 * kSecond;      // what a program does to start is done by then
constexpr std::int64_t kAfterError = kSecond;          // what deals with an error begins so soon
constexpr std::size_t kMostNoted = 32;                 // times of one kind of failure that are looked at for that
constexpr double kNoRun = 5;                     // a window so many times as long as a run is no run
constexpr std::size_t kMostKinds = 100'000;            // of calls that succeeded

// Why a failed call is left out; each with its words.
enum class LeftOut : std::uint8_t { nameless, impossible, internal, answer, own_folder, last_breath, planned };
constexpr std::array<std::string_view, 7> kLeftOut = {
    "failed calls that the dump does not name",
    "calls that no fault can be injected into",
    "codes inside the kernel that programs never see",
    "answers, not failures: a name that is no symbolic link",
    "the folders that a test run made for itself",
    "failures of a node within 2s of its own end",
    "connection errors that a planned stop explains",
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

}  // namespace

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

// Calls of all dumps, read once: failed ones in groups, and of those that succeeded what they tell of these.
class Extractor::CallReader {
 public:
  explicit CallReader(Extractor& all) : all_(all), call_names_(static_cast<std::size_t>(kernel::kMostSyscalls)) {
    patterns_.id("");
    peer_texts_.id("");
  }

  void read(std::size_t s) {
    const trace::Trace& trace = all_.inputs_.traces[s];
    Texts texts(*this, trace);
    for (const Event& event : trace.events) {
      if (event.type != EventType::scf && event.type != EventType::sys) continue;
      const int node = all_.nodes_.of(s, event);
      if (event.type == EventType::sys) {
        if (node >= 0 && event.result >= 0) success(event, node, texts);
      } else if (node < 0) {
        strangers_[all_.nodes_.dump_name(s, event)] += weight_of(event);
      } else {
        failure(trace, event, node, texts);
      }
    }
  }

  void discard() const {
    for (std::size_t why = 0; why < kLeftOut.size(); ++why) all_.discard(kLeftOut[why], left_out_[why]);
    for (const auto& [host, events] : strangers_) all_.discard(stranger(host), events);
  }

  [[nodiscard]] const std::vector<ScfGroup>& groups() const { return groups_; }
  [[nodiscard]] const std::string& pattern(const ScfGroup& group) const { return patterns_.text(group.key.pattern); }

  // Whether the same call succeeded afterwards.
  [[nodiscard]] bool recovered(const ScfGroup& group) const {
    const auto last = succeeded_.find({group.key.node, group.key.syscall, 0, group.key.pattern, 0, false});
    return last != succeeded_.end() && last->second > group.first_ts;
  }

  // When a file of its path pattern was first made, ahead of the failure.
  [[nodiscard]] std::optional<std::int64_t> file_made(const ScfGroup& group) const {
    const auto made = made_.find(file(group.key.node, group.key.pattern));
    if (group.key.pattern == 0 || made == made_.end() || made->second > group.first_ts) return std::nullopt;
    return made->second;
  }

  // Which one of its node's calls of that kind it was; 0: the dump does not tell.
  [[nodiscard]] std::uint64_t nth(const ScfGroup& group, std::string_view call) const {
    const std::optional<SameCall> same = same_call(group.key.node, *group.first, call, group.key.pattern);
    if (!same) return 0;
    std::uint64_t nth = 1;
    if (const auto before = done_.find(*same); before != done_.end())
      for (const auto& [ts, calls] : before->second) nth += ts < group.first_ts ? calls : 0;
    return nth;
  }

 private:
  // What the strings of one dump mean, each looked at once.
  class Texts {
   public:
    Texts(CallReader& reader, const trace::Trace& trace)
        : reader_(reader), trace_(trace), pattern_of_(trace.strings.size() + 1, UINT32_MAX), own_of_(trace.strings.size() + 1, -1),
          peer_of_(trace.strings.size() + 1, -1) {}

    std::uint32_t pattern(trace::StringId id) {
      if (id == 0 || id >= pattern_of_.size()) return 0;
      if (pattern_of_[id] == UINT32_MAX) pattern_of_[id] = reader_.patterns_.id(profile::path_pattern(trace_.str(id)));
      return pattern_of_[id];
    }
    bool own_folder(trace::StringId id) {
      if (id == 0 || id >= own_of_.size()) return false;
      if (own_of_[id] < 0) own_of_[id] = reader_.all_.run_folder(trace_.str(id)) ? 1 : 0;
      return own_of_[id] == 1;
    }
    const Peer& peer(trace::StringId id) {
      static const Peer kNoPeer;
      if (id == 0 || id >= peer_of_.size()) return kNoPeer;
      if (peer_of_[id] < 0) {
        peer_of_[id] = static_cast<std::int32_t>(peers_.size());
        peers_.push_back(reader_.all_.read_peer(trace_.str(id), reader_.peer_texts_));
      }
      return peers_[static_cast<std::size_t>(peer_of_[id])];
    }

   private:
    CallReader& reader_;
    const trace::Trace& trace_;
    std::vector<std::uint32_t> pattern_of_;
    std::vector<std::int8_t> own_of_;
    std::vector<std::int32_t> peer_of_;
    std::vector<Peer> peers_;
  };

  void success(const Event& event, int node, Texts& texts) {
    const std::uint32_t pattern = texts.pattern(event.path);
    std::int64_t& last = succeeded_[{node, event.syscall, 0, pattern, 0, false}];
    last = std::max(last, event.ts_ns);
    // Opens are SYS events only when they create or truncate; a rename makes its second path.
    const std::string& call = name_of(event.syscall);
    if (const std::optional<SameCall> same = same_call(node, event, call, pattern); same && done_.size() < kMostKinds)
      done_[*same].emplace_back(event.ts_ns, weight_of(event));
    const bool renames = call.starts_with("rename");
    if (renames || call.starts_with("open") || call == "creat") made_.try_emplace(file(node, renames ? texts.pattern(event.path2) : pattern), event.ts_ns);
  }

  void failure(const trace::Trace& trace, const Event& event, int node, Texts& texts) {
    if (const std::optional<LeftOut> why = left_out(event, node, texts)) {
      left_out_[static_cast<std::size_t>(*why)] += weight_of(event);
      return;
    }
    const Peer& to = texts.peer(event.peer);
    const Cause* cause = ends_connection(event) ? all_.explaining(event, node, to.node, to.node >= 0) : nullptr;
    if (cause != nullptr && cause->kind == CauseKind::planned) {
      left_out_[static_cast<std::size_t>(LeftOut::planned)] += weight_of(event);
      return;
    }
    const ScfKey key{node, event.syscall, event.err, texts.pattern(event.path), to.id, cause != nullptr};
    const auto [it, fresh] = index_.try_emplace(key, groups_.size());
    if (fresh) groups_.push_back({key, to, &trace, &event, 0, event.ts_ns, event.ts_ns, true, cause, {}});
    ScfGroup& group = groups_[it->second];
    group.count += weight_of(event);
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

  std::optional<LeftOut> left_out(const Event& event, int node, Texts& texts) {
    if (event.syscall < 0 || event.err <= 0) return LeftOut::nameless;
    if (!can_fail(event.syscall)) return LeftOut::impossible;
    if (event.err >= 512 && event.err <= 530) return LeftOut::internal;
    if (event.err == 22 /* EINVAL */ && name_of(event.syscall).starts_with("readlink")) return LeftOut::answer;
    if (texts.own_folder(event.path)) return LeftOut::own_folder;
    if (all_.has_cause(node) && all_.last_breath(event, node)) return LeftOut::last_breath;
    return std::nullopt;
  }

  bool ends_connection(const Event& event) {
    if (all_.causes_.empty()) return false;
    const int kind = (event.err << 11) | (event.syscall << 1) | (event.peer != 0 ? 1 : 0);
    const auto [known, fresh] = connection_.try_emplace(kind, false);
    if (fresh) known->second = connection_error(event.err, name_of(event.syscall), event.peer != 0);
    return known->second;
  }

  const std::string& name_of(std::int16_t number) {
    static const std::string kNone;
    if (number < 0 || number >= kernel::kMostSyscalls) return kNone;
    std::string& name = call_names_[static_cast<std::size_t>(number)];
    if (name.empty()) name = kernel::syscall_name(number);
    return name;
  }

  static std::uint64_t file(int node, std::uint32_t path) { return static_cast<std::uint64_t>(static_cast<std::uint32_t>(node)) << 32 | path; }

  Extractor& all_;
  Interner patterns_;
  Interner peer_texts_;
  std::vector<ScfGroup> groups_;
  std::unordered_map<ScfKey, std::size_t, ScfHash> index_;
  std::unordered_map<ScfKey, std::int64_t, ScfHash> succeeded_;  // the last success of the same call
  std::unordered_map<SameCall, std::vector<std::pair<std::int64_t, std::uint64_t>>, SameCallHash> done_;  // when how many such calls succeeded
  std::unordered_map<std::uint64_t, std::int64_t> made_;         // by node and path pattern: when such a file was first made
  std::unordered_map<int, bool> connection_;                     // (err, syscall, has peer) -> is it a connection error
  std::vector<std::string> call_names_;
  std::array<std::uint64_t, kLeftOut.size()> left_out_{};
  std::map<std::string, std::uint64_t> strangers_;
};

void Extractor::syscalls() {
  CallReader calls(*this);
  for (std::size_t s = 0; s < inputs_.traces.size(); ++s) calls.read(s);
  calls.discard();
  std::vector<Failure> failures = unusual(calls);
  follow(failures);
  // In the order of their ranks: a dump may hold any number of kinds, and only the first can be tried.
  std::stable_sort(failures.begin(), failures.end(), [](const Failure& a, const Failure& b) { return a.order() < b.order(); });
  std::size_t to_try = static_cast<std::size_t>(std::max(1, config_.diagnose.max_runs));
  plan_.candidates.reserve(plan_.candidates.size() + failures.size());
  for (const Failure& failure : failures) {
    add_call(failure, calls.pattern(*failure.group), to_try > 0);
    if (to_try > 0) --to_try;
  }
}

std::vector<Failure> Extractor::unusual(const CallReader& calls) {
  std::optional<profile::BenignIndex> normal_failures;
  if (inputs_.profile) normal_failures.emplace(*inputs_.profile);
  std::vector<Failure> failures;
  for (const ScfGroup& group : calls.groups()) {
    Failure failure;
    failure.group = &group;
    failure.syscall = kernel::syscall_name(group.key.syscall);
    if (const profile::CallKind* kind = normal_failures ? normal_failures->find(*group.trace, *group.first) : nullptr; kind != nullptr) {
      failure.normal = per_run(*kind);
      failure.far_more = static_cast<double>(group.count) > 10 * failure.normal * longer_than_a_run() + 20;
      if (!failure.far_more) {
        discard("benign: the profile shows the same failures without faults", group.count);
        continue;
      }
    }
    failure.ordinariness = ordinariness(group.key.err, failure.syscall, group.trace->str(group.first->path), group.first->peer != 0);
    failure.recovered = calls.recovered(group);
    const std::optional<std::int64_t> made = calls.file_made(group);
    failure.newborn = plan_.workload_ts != 0 && made && *made >= plan_.workload_ts;
    if (seen_from_start(group.key.node)) failure.nth = calls.nth(group, failure.syscall);
    failures.push_back(std::move(failure));
  }
  return failures;
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

}  // namespace rose::diagnose
