#include "evidence/failed_calls.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/ports.h"
#include "base/units.h"
#include "evidence/call_keys.h"
#include "evidence/path_search.h"
#include "evidence/surprise.h"
#include "kernel/syscalls.h"
#include "weights/weights.h"

namespace rose::evidence {
namespace {

constexpr std::size_t kMostNoted = 32;       // at most this many timestamps are kept for each group
constexpr std::size_t kMostKinds = 100'000;  // at most this many kinds of successful calls are counted

// Why a failed call is not a candidate; kLeftOut has the text for each reason.
enum class LeftOut : std::uint8_t {
  without_name,
  impossible,
  internal,
  answer,
  own_folder,
  while_ending,
  planned,
  dying
};
constexpr std::array<std::string_view, 8> kLeftOut = {
    "failed calls without a name in the dump",
    "calls that no fault can be injected into",
    "codes inside the kernel that programs never see",
    "results, not failures: a name that is not a symbolic link",
    "folders that a test run created",
    "failures of a node within 2s of its own end",
    "connection errors that a planned stop explains",
    "consequences: calls of processes that were being ended, stopped or frozen",
};

// False for exit, which never returns, and for the return from a signal handler, whose result is not an error.
bool can_fail(int number) {
  if (number >= kernel::kMostSyscalls) return false;
  const kernel::SyscallInfo* info = kernel::find_syscall(number);
  return info == nullptr || (info->name != "exit" && info->name != "exit_group" && info->name != "rt_sigreturn");
}

// True for the folder of a test run of rose, or for a node's folder in it. Such a path occurs in no other deployment.
bool run_folder(std::string_view path, const config::Config& config) {
  constexpr std::string_view kMark = "/rose-";  // "/tmp/rose-4f3a2b/n1"
  const std::size_t at = path.find(kMark);
  if (at == std::string_view::npos) return false;
  std::string_view rest = path.substr(at + kMark.size());
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const std::string_view unique = rest.substr(0, rest.find('/'));
  if (unique.size() != 6 ||
      !std::all_of(unique.begin(), unique.end(), [](unsigned char c) { return std::isalnum(c) != 0; }))
    return false;
  rest.remove_prefix(unique.size());
  return rest.empty() || config.find(rest.substr(1)) != nullptr;
}

std::set<std::uint16_t> service_ports(const config::Config& config) {
  std::set<std::uint16_t> ports;
  for (const config::Node& node : config.nodes)
    if (node.ready && node.ready->tcp) ports.insert(*node.ready->tcp);
  return ports;
}

// True if the dump contains all events of the node since its first start, so that its calls can be counted.
bool seen_from_start(const Facts& facts, int node) {
  const std::vector<std::int64_t>& starts = facts.starts[static_cast<std::size_t>(node)];
  return !starts.empty() && starts.front() - facts.times.begin < kBeforeStart && facts.times.workload >= starts.front();
}

// Reads the calls of all dumps in one pass.
class Reader {
 public:
  Reader(const Given& given, const Programs& programs, const Causes& causes)
      : given_(given),
        programs_(programs),
        causes_(causes),
        service_ports_(service_ports(given.config())),
        call_names_(static_cast<std::size_t>(kernel::kMostSyscalls)) {
    for (std::size_t s = 0; s < given.inputs.sources.size(); ++s) read(s);
  }

  [[nodiscard]] FailedCalls result(const Facts& facts) && {
    FailedCalls calls;
    calls.groups = std::move(groups_);
    for (std::size_t i = 0; i < calls.groups.size(); ++i) {
      FailedCall& group = calls.groups[i];
      group.pattern = patterns_.text(keys_[i].pattern);
      group.recovered = recovered(group, keys_[i]);
      group.on_new_file = facts.times.workload != 0 && created_between(group, keys_[i], facts.times.workload);
      if (seen_from_start(facts, group.node)) group.nth = nth(group, keys_[i]);
    }
    for (std::size_t why = 0; why < kLeftOut.size(); ++why) calls.discards.add(kLeftOut[why], left_out_[why]);
    for (const auto& [host, events] : unmatched_hosts_) calls.discards.add_unmatched(host, events);
    return calls;
  }

 private:
  // Caches what the strings of one dump mean.
  class Texts {
   public:
    Texts(Reader& reader, const Source& source)
        : reader_(reader),
          source_(source),
          pattern_of_(source.strings.size() + 1, UINT32_MAX),
          own_of_(source.strings.size() + 1, -1),
          peer_of_(source.strings.size() + 1, -1) {}

    std::uint32_t pattern(trace::StringId id) {
      if (id == 0 || id >= pattern_of_.size()) return 0;
      if (pattern_of_[id] == UINT32_MAX) pattern_of_[id] = reader_.patterns_.id(profile::path_pattern(source_.str(id)));
      return pattern_of_[id];
    }
    bool own_folder(trace::StringId id) {
      if (id == 0 || id >= own_of_.size()) return false;
      if (own_of_[id] < 0) own_of_[id] = run_folder(source_.str(id), reader_.given_.config()) ? 1 : 0;
      return own_of_[id] == 1;
    }
    const Peer& peer(trace::StringId id) {
      static const Peer kNoPeer;
      if (id == 0 || id >= peer_of_.size()) return kNoPeer;
      if (peer_of_[id] < 0) {
        peer_of_[id] = static_cast<std::int32_t>(peers_.size());
        peers_.push_back(reader_.read_peer(source_.str(id)));
      }
      return peers_[static_cast<std::size_t>(peer_of_[id])];
    }

   private:
    Reader& reader_;
    const Source& source_;
    std::vector<std::uint32_t> pattern_of_;
    std::vector<std::int8_t> own_of_;
    std::vector<std::int32_t> peer_of_;
    std::vector<Peer> peers_;
  };

  // The time span from the signal that ended a process until the process had ended.
  struct Ending {
    std::int64_t from = 0, to = 0;
    bool orderly = false;  // the process handled the signal and then exited by itself
  };
  using Endings = std::map<std::pair<int, std::int32_t>, std::vector<Ending>>;

  [[nodiscard]] Endings endings(std::size_t s) const {
    Endings found;
    for (const Observation& event : given_.inputs.sources[s].observations) {
      if (event.type != EventType::ps || event.pid == 0 || end_began(event) >= event.ts_ns) continue;
      found[{given_.nodes.of(s, event), event.pid}].push_back(
          {end_began(event), event.ts_ns, event.state == ProcessState::exited});
    }
    return found;
  }

  // True if the call failed because its process was ending. Resource errors of a process that ended in an orderly way
  // are an exception: such a process still writes its data, so its errors are evidence of a broken disk.
  static bool dying(const Event& event, int node, const Endings& endings) {
    if ((event.flags & trace::kDying) != 0) return true;
    const auto of = endings.find({node, event.pid});
    return of != endings.end() && std::any_of(of->second.begin(), of->second.end(), [&](const Ending& ending) {
             return event.ts_ns >= ending.from && event.ts_ns <= ending.to &&
                    !(ending.orderly && kernel::resource_error(event.err));
           });
  }

  void read(std::size_t s) {
    const Source& source = given_.inputs.sources[s];
    Texts texts(*this, source);
    const Endings ending = endings(s);
    const std::vector<bool> searched = search_steps(source);
    for (std::size_t i = 0; i < source.observations.size(); ++i) {
      const Observation& event = source.observations[i];
      if (event.type != EventType::scf && event.type != EventType::sys) continue;
      const int node = given_.nodes.of(s, event);
      if (event.type == EventType::sys) {
        if (node >= 0 && event.result >= 0) success(event, node, texts);
      } else if (node < 0) {
        unmatched_hosts_[given_.nodes.dump_name(s, event)] += weight_of(event);
      } else if (dying(event, node, ending)) {
        left_out_[static_cast<std::size_t>(LeftOut::dying)] += weight_of(event);
      } else {
        failure(source, event, node, searched[i], texts);
      }
    }
  }

  void success(const Event& event, int node, Texts& texts) {
    const std::uint32_t pattern = texts.pattern(event.path);
    std::int64_t& last = succeeded_[{node, event.syscall, 0, pattern, 0, false}];
    last = std::max(last, event.ts_ns);
    const std::string& call = name_of(event.syscall);
    if (const std::optional<SameCall> same = same_call(node, event, call, pattern);
        same && successes_.size() < kMostKinds)
      successes_[*same].emplace_back(event.ts_ns, weight_of(event));
    // Remember when a file was first created. Dumps contain only opens that create or truncate; a rename creates its
    // second path.
    const bool renames = call.starts_with("rename");
    if (renames || call.starts_with("open") || call == "creat")
      created_.try_emplace(file(node, renames ? texts.pattern(event.path2) : pattern), event.ts_ns);
  }

  void failure(const Source& source, const Observation& event, int node, bool searched, Texts& texts) {
    if (const std::optional<LeftOut> why = left_out(event, node, texts)) {
      left_out_[static_cast<std::size_t>(*why)] += weight_of(event);
      return;
    }
    const Peer& to = texts.peer(event.peer);
    const Cause* cause = ends_connection(event) ? causes_.explaining(event, node, to.node, to.node >= 0) : nullptr;
    if (cause != nullptr && cause->kind == CauseKind::planned) {
      left_out_[static_cast<std::size_t>(LeftOut::planned)] += weight_of(event);
      return;
    }
    // Failures without an error have no errno. For the key, a short transfer gets 0 and an access that ended in SIGBUS
    // gets the negative number of the signal, so that the two are not put into one group.
    const auto err = static_cast<std::int16_t>(event.err != 0 ? event.err : -event.signal);
    const bool foreign = programs_.foreign(node, event.pid, event.ts_ns);
    const ScfKey key{node, event.syscall, err, texts.pattern(event.path), to.id, cause != nullptr, foreign};
    const auto [it, fresh] = index_.try_emplace(key, groups_.size());
    if (fresh) {
      keys_.push_back(key);
      FailedCall& group = groups_.emplace_back();
      group.node = node;
      group.syscall = event.syscall;
      group.err = event.err;
      group.done = event.result;
      group.requested = event.requested;
      group.peer = to;
      group.cause = cause;
      group.foreign = foreign;
      group.source = &source;
      group.first = &event;
      group.first_ts = group.last_ts = event.ts_ns;
    }
    FailedCall& group = groups_[it->second];
    group.count += weight_of(event);
    if (group.times.size() < kMostNoted) group.times.push_back(event.ts_ns);
    if (event.ts_ns < group.first_ts) {
      group.first_ts = event.ts_ns;
      group.first = &event;
      group.source = &source;
      group.cause = cause;
    }
    group.last_ts = std::max(group.last_ts, event.ts_ns);
    if ((event.flags & (trace::kUnlinked | trace::kTruncated)) == 0) group.without_name = false;
    group.searched = group.searched && searched;
  }

  std::optional<LeftOut> left_out(const Event& event, int node, Texts& texts) {
    if (event.syscall < 0 || (event.err <= 0 && !failed_silently(event))) return LeftOut::without_name;
    if (!can_fail(event.syscall)) return LeftOut::impossible;
    if (event.err >= 512 && event.err <= 530) return LeftOut::internal;
    if (event.err == 22 /* EINVAL */ && name_of(event.syscall).starts_with("readlink")) return LeftOut::answer;
    if (texts.own_folder(event.path)) return LeftOut::own_folder;
    if (causes_.while_ending(event, node)) return LeftOut::while_ending;
    return std::nullopt;
  }

  bool ends_connection(const Event& event) {
    if (causes_.list().empty()) return false;
    const int kind = (event.err << 11) | (event.syscall << 1) | (event.peer != 0 ? 1 : 0);
    const auto [known, fresh] = connection_.try_emplace(kind, false);
    if (fresh) known->second = connection_error(event.err, name_of(event.syscall), event.peer != 0);
    return known->second;
  }

  Peer read_peer(std::string_view text) {
    Peer peer;
    const Endpoint endpoint = parse_endpoint(text);
    if (endpoint.address.empty()) {
      peer.address = profile::path_pattern(text);
      peer.id = peer_texts_.id(peer.address);
      return peer;
    }
    peer.address = std::string(endpoint.address);
    peer.node = given_.nodes.of_address(endpoint.address);
    // Ignore the ports of clients.
    if (endpoint.port < kFirstClientPort || service_ports_.contains(static_cast<std::uint16_t>(endpoint.port)))
      peer.port = endpoint.port;
    peer.id = peer_texts_.id(fmt::format("{}:{}", peer.node >= 0 ? given_.name(peer.node) : peer.address, peer.port));
    return peer;
  }

  [[nodiscard]] bool recovered(const FailedCall& group, const ScfKey& key) const {
    const auto last = succeeded_.find({key.node, key.syscall, 0, key.pattern, 0, false});
    return last != succeeded_.end() && last->second > group.first_ts;
  }

  // True if a file with the group's path pattern was first created between `since` and the failure.
  [[nodiscard]] bool created_between(const FailedCall& group, const ScfKey& key, std::int64_t since) const {
    if (key.pattern == 0) return false;
    const auto made = created_.find(file(key.node, key.pattern));
    return made != created_.end() && made->second <= group.first_ts && made->second >= since;
  }

  // See FailedCall::nth.
  [[nodiscard]] std::uint64_t nth(const FailedCall& group, const ScfKey& key) {
    const std::optional<SameCall> same = same_call(key.node, *group.first, name_of(key.syscall), key.pattern);
    if (!same) return 0;
    std::uint64_t nth = 1;
    if (const auto before = successes_.find(*same); before != successes_.end())
      for (const auto& [ts, calls] : before->second) nth += ts < group.first_ts ? calls : 0;
    return nth;
  }

  const std::string& name_of(std::int16_t number) {
    static const std::string kNone;
    if (number < 0 || number >= kernel::kMostSyscalls) return kNone;
    std::string& name = call_names_[static_cast<std::size_t>(number)];
    if (name.empty()) name = kernel::syscall_name(number);
    return name;
  }

  static std::uint64_t file(int node, std::uint32_t path) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(node)) << 32 | path;
  }

  const Given& given_;
  const Programs& programs_;
  const Causes& causes_;
  const std::set<std::uint16_t> service_ports_;
  Interner patterns_;
  Interner peer_texts_;
  std::vector<FailedCall> groups_;
  std::vector<ScfKey> keys_;  // by group
  std::unordered_map<ScfKey, std::size_t, ScfHash> index_;
  std::unordered_map<ScfKey, std::int64_t, ScfHash> succeeded_;  // timestamp of the last success of the same call
  std::unordered_map<SameCall, std::vector<std::pair<std::int64_t, std::uint64_t>>, SameCallHash>
      successes_;  // timestamps and numbers of successful calls of that kind
  // by node and path pattern: the time at which such a file was first created
  std::unordered_map<std::uint64_t, std::int64_t> created_;
  // by error, call, and whether the call has a peer: true for a connection error
  std::unordered_map<int, bool> connection_;
  std::vector<std::string> call_names_;
  std::array<std::uint64_t, kLeftOut.size()> left_out_{};
  std::map<std::string, std::uint64_t> unmatched_hosts_;
};

}  // namespace

FailedCalls read_failed_calls(const Given& given, const Facts& facts, const Programs& programs, const Causes& causes) {
  return Reader(given, programs, causes).result(facts);
}

}  // namespace rose::evidence
