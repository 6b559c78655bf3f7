#include "diagnose/context.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/text.h"
#include "diagnose/forms.h"
#include "diagnose/words.h"
#include "kernel/syscalls.h"

namespace rose::diagnose {

using trace::EventType;

namespace {

constexpr int kFirstEphemeralPort = 32768;
constexpr std::uint64_t kFewEvents = 8;  // so many are never called frequent, however short the dump is

// A rename is known by what it makes: the temporary name it starts from may differ each time.
trace::StringId telling_path(const trace::Event& event, std::string_view syscall) {
  return syscall.starts_with("rename") && event.path2 != 0 ? event.path2 : event.path;
}

}  // namespace

std::optional<ContextEvent> context_event(const trace::Trace& trace, const trace::Event& event, std::string_view node) {
  ContextEvent found;
  Condition& condition = found.condition;
  if (event.type == EventType::af) {
    if (event.function == 0 || trace.str(event.function).empty()) return std::nullopt;
    condition.kind = ConditionKind::function;
    condition.function = trace.str(event.function);
    found.key = "f " + condition.function;
    return found;
  }
  if (event.type != EventType::sys || event.syscall < 0) return std::nullopt;
  const kernel::SyscallInfo* info = kernel::find_syscall(event.syscall);
  if (info == nullptr) return std::nullopt;
  condition.kind = ConditionKind::syscall;
  condition.call.syscall = info->name;
  if (const trace::StringId path = telling_path(event, info->name); path != 0)
    if (std::string glob = path_glob(trace.str(path), node); !glob.empty()) condition.call.path = std::move(glob);
  // Addresses differ between deployments; the port of a service does not.
  if (!condition.call.path && event.peer != 0 && info->sockaddr >= 0)
    if (const int port = parse_endpoint(trace.str(event.peer)).port; port > 0 && port < kFirstEphemeralPort)
      condition.call.peer = fmt::format("*:{}", port);
  // Failed tries do not count, but a connect may well succeed only later.
  if (info->sockaddr < 0) condition.result = "ok";
  found.key = fmt::format("s {} {} {}", condition.call.syscall, condition.call.path.value_or(""),
                          condition.call.peer.value_or(""));
  return found;
}

bool meets(const trace::Trace& trace, const trace::Event& event, const Condition& condition) {
  if (condition.kind == ConditionKind::function)
    return event.type == EventType::af && trace.str(event.function) == condition.function;
  if (condition.kind != ConditionKind::syscall || event.type != EventType::sys) return false;
  const kernel::SyscallInfo* info = kernel::find_syscall(event.syscall);
  if (info == nullptr || info->name != condition.call.syscall) return false;
  if (condition.call.path && !(event.path != 0 && glob_match(*condition.call.path, trace.str(event.path))) &&
      !(event.path2 != 0 && glob_match(*condition.call.path, trace.str(event.path2))))
    return false;
  return !condition.call.peer || (event.peer != 0 && glob_match(*condition.call.peer, trace.str(event.peer)));
}

ContextIndex::ContextIndex(const Inputs& inputs, const NodeMap& nodes)
    : kinds_(static_cast<std::size_t>(nodes.count())), seen_(static_cast<std::size_t>(nodes.count())) {
  const double below = inputs.profile ? inputs.profile->infrequent_below : inputs.config->profile.infrequent_below;
  std::optional<profile::BenignIndex> normal;
  std::set<std::pair<std::string, std::string>> frequent_functions;
  double profiled_seconds = 0;
  if (inputs.profile) {
    normal.emplace(*inputs.profile);
    profiled_seconds = inputs.profile->seconds;
    for (const profile::FunctionRate& rate : inputs.profile->functions)
      if (!rate.infrequent) frequent_functions.emplace(rate.node, rate.function);
  }
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<std::map<std::string, std::size_t>> by_key(kinds_.size());
  std::unordered_map<std::string_view, std::uint32_t> hosts;
  std::int64_t first = 0;
  std::int64_t last = 0;
  for (std::size_t source = 0; source < inputs.traces.size(); ++source) {
    const trace::Trace& trace = inputs.traces[source];
    // Equal strings mean an equal condition: globs are made once, not once an event.
    std::map<std::tuple<int, EventType, int, trace::StringId, trace::StringId, trace::StringId, trace::StringId>,
             std::size_t>
        known;
    for (const trace::Event& event : trace.events) {
      if (event.type != EventType::af && event.type != EventType::sys) continue;
      const int node = nodes.of(source, event);
      if (node < 0) continue;
      const auto at = static_cast<std::size_t>(node);
      if (first == 0 || event.ts_ns < first) first = event.ts_ns;
      last = std::max(last, event.ts_ns);
      const auto [it, fresh] = known.try_emplace(std::tuple(node, event.type, static_cast<int>(event.syscall),
                                                            event.path, event.path2, event.peer, event.function),
                                                 kNone);
      if (fresh) {
        if (std::optional<ContextEvent> made = context_event(trace, event, nodes.name(node))) {
          const auto [kind, first_of_key] = by_key[at].try_emplace(made->key, kinds_[at].size());
          if (first_of_key) {
            bool frequent = false;
            if (event.type == EventType::af) {
              frequent = frequent_functions.contains({nodes.name(node), made->condition.function}) ||
                         frequent_functions.contains({"*", made->condition.function});
            } else if (normal && profiled_seconds > 0) {
              const profile::CallKind* usual = normal->find(trace, event);
              frequent = usual != nullptr && static_cast<double>(usual->count) / profiled_seconds > below;
            }
            kinds_[at].push_back({*std::move(made), 0, frequent});
          }
          it->second = kind->second;
        }
      }
      if (it->second == kNone) continue;
      kinds_[at][it->second].count += std::max<std::uint32_t>(1, event.count);
      const auto [host, new_host] =
          hosts.try_emplace(std::string_view(trace.str(event.node)), static_cast<std::uint32_t>(hosts.size()));
      seen_[at].push_back({event.ts_ns, static_cast<std::uint32_t>(it->second), host->second});
    }
  }
  const double seconds = std::max(1.0, static_cast<double>(last - first) / 1e9);
  for (std::size_t node = 0; node < kinds_.size(); ++node) {
    for (Kind& kind : kinds_[node])
      if (kind.count > kFewEvents && static_cast<double>(kind.count) / seconds > below) kind.frequent = true;
    std::stable_sort(seen_[node].begin(), seen_[node].end(), [](const Seen& a, const Seen& b) { return a.ts < b.ts; });
  }
}

std::vector<ContextEvent> ContextIndex::before(int node, std::int64_t since, std::int64_t until,
                                               std::size_t most) const {
  std::vector<ContextEvent> events;
  if (node < 0) return events;
  const std::vector<Kind>& kinds = kinds_[static_cast<std::size_t>(node)];
  const std::vector<Seen>& seen = seen_[static_cast<std::size_t>(node)];
  const auto after = [](std::int64_t ts, const Seen& s) { return ts < s.ts; };
  const auto begin = std::upper_bound(seen.begin(), seen.end(), since, after);
  const auto end = std::upper_bound(begin, seen.end(), until, after);
  std::unordered_map<std::uint64_t, std::uint64_t> counts;
  const auto count_of = [&](const Seen& s) -> std::uint64_t& { return counts[std::uint64_t{s.host} << 32 | s.kind]; };
  for (auto it = begin; it != end; ++it) ++count_of(*it);
  for (auto it = end; it != begin && events.size() < most;) {
    --it;
    const std::uint64_t occurrence = count_of(*it)--;
    if (kinds[it->kind].frequent) continue;
    events.push_back(kinds[it->kind].event);
    events.back().occurrence = occurrence;
    events.back().ts_ns = it->ts;
  }
  return events;
}

}  // namespace rose::diagnose
