#include "diagnose/context.h"

#include <fcntl.h>

#include <algorithm>
#include <cctype>
#include <tuple>
#include <unordered_map>

#include "base/ports.h"
#include "base/text.h"
#include "diagnose/words.h"
#include "evidence/forms.h"
#include "kernel/open_flags.h"
#include "kernel/syscalls.h"

namespace rose::diagnose {

using trace::EventType;

namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);
// An event that occurs at most this often is not frequent, even if the dump is so short that its rate is high.
constexpr std::uint64_t kFewEvents = 8;

// The tracer records an open only if it has one of these flags, because other opens do not change state.
constexpr std::uint32_t kMakes = O_CREAT | O_TRUNC;

void narrow_to_flags(const trace::Event& event, schedule::CallMatch& call) {
  const std::optional<int> argument = kernel::open_flags_argument(call.syscall);
  const std::uint32_t flags = event.open_flags & kMakes;
  if (!argument || flags == 0) return;  // imported dumps may lack the flags
  std::string text = kernel::open_flags_text(flags);
  text.erase(0, text.find('|') + 1);  // remove the access mode, which precedes the flags
  call.args.emplace(*argument, std::move(text));
}

// True if this part of a name looks generated: mkstemp and similar functions use six or more random letters and digits,
// which hardly ever form a word. Examples: "aB3xZ9", "kQwErT".
bool made_up(std::string_view word) {
  const auto has = [&](int (*kind)(int)) {
    return std::any_of(word.begin(), word.end(), [&](unsigned char c) { return kind(c) != 0; });
  };
  const bool digits = has(std::isdigit), lower = has(std::islower);
  const bool capital_inside = std::any_of(word.begin() + (word.empty() ? 0 : 1), word.end(),
                                          [](unsigned char c) { return std::isupper(c) != 0; });
  return word.size() >= 6 && ((digits && (lower || has(std::isupper))) || (capital_inside && lower));
}

// Replaces the generated parts of a file name by "*", because a temporary name differs in each run: "epoch.aB3xZ9"
// becomes "epoch.*".
std::string steady(std::string_view path) {
  std::string text(path);
  const std::size_t name = text.rfind('/') + 1;  // 0 if there is no folder
  // The names of Python's tempfile: "tmp" and random characters.
  constexpr std::string_view kTmp = "tmp";
  if (text.size() >= name + 8 && std::string_view(text).substr(name).starts_with(kTmp) &&
      std::all_of(text.begin() + static_cast<std::ptrdiff_t>(name), text.end(),
                  [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; }))
    return text.substr(0, name + kTmp.size()) + "*";
  for (std::size_t at = text.size(); at > name;) {
    std::size_t begin = at;
    while (begin > name && std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
    if (made_up(std::string_view(text).substr(begin, at - begin))) text.replace(begin, at - begin, "*");
    at = begin > name ? begin - 1 : name;
  }
  return text;
}

// Identifies the call by its path, or by both if it has two. The first path of a rename is often a temporary name, of
// which only the constant part is kept.
void narrow_to_paths(const trace::TraceBase& trace, const trace::Event& event, const kernel::SyscallInfo& info,
                     std::string_view node, schedule::CallMatch& call) {
  const auto glob_of = [&](trace::StringId path) {
    std::string glob = path == 0 ? std::string{} : path_glob(trace.str(path), node);
    return glob.empty() ? std::nullopt : std::optional(std::move(glob));
  };
  const auto steady_glob = [&]() -> std::optional<std::string> {
    std::string glob = event.path == 0 ? std::string{} : path_glob(steady(trace.str(event.path)), node);
    return glob.empty() ? std::nullopt : std::optional(std::move(glob));
  };
  // Use one path for symlink, because the target of a symbolic link need not be a path.
  const bool both = info.path2 >= 0 && !std::string_view(info.name).starts_with("symlink");
  if (both) call.path2 = glob_of(event.path2);
  call.path = call.path2 ? steady_glob() : glob_of(event.path);
  // If `path2` is not set, `path` may match either path of a call. Set `path2` to "*", so that `path` matches only the
  // first path. Otherwise a symbolic link that points to the file and a link that has the file's name would both match.
  if (!both && info.path2 >= 0 && event.path2 != 0 && call.path) call.path2 = "*";
}

// Identifies the call by the port of a service: addresses and ephemeral ports differ between deployments.
void narrow_to_socket(const trace::TraceBase& trace, const trace::Event& event, const kernel::SyscallInfo& info,
                      std::string_view node, schedule::CallMatch& call) {
  if (event.peer == 0) return;
  const std::string_view text = trace.str(event.peer);
  const bool own = info.name == "listen";
  if (!own && info.sockaddr < 0) return;
  if (const int port = parse_endpoint(text).port; port > 0 && port < kFirstClientPort) {
    if (own) call.local = fmt::format(":{}", port);
    else call.peer = fmt::format("*:{}", port);
  } else if (!own && text.starts_with("unix:/")) {
    if (const std::string glob = path_glob(text.substr(5), node); !glob.empty()) call.peer = "unix:" + glob;
  }
}

bool path_meets(const trace::TraceBase& trace, trace::StringId path, const std::string& glob) {
  return path != 0 && glob_match(glob, trace.str(path));
}

bool address_meets(std::string_view pattern, std::string_view address) {
  if (!pattern.starts_with(':')) return glob_match(pattern, address);
  const std::size_t colon = address.rfind(':');
  return colon != std::string_view::npos && glob_match(pattern, address.substr(colon));
}

bool call_meets(const trace::TraceBase& trace, const trace::Event& event, const kernel::SyscallInfo& info,
                const schedule::CallMatch& call) {
  if (info.name != call.syscall) return false;
  if (call.path2) {
    if (!path_meets(trace, event.path2, *call.path2) || (call.path && !path_meets(trace, event.path, *call.path)))
      return false;
  } else if (call.path && !path_meets(trace, event.path, *call.path) && !path_meets(trace, event.path2, *call.path)) {
    return false;
  }
  // An event has one address: the node's own for calls such as listen, which have no peer, and the peer's for all other
  // calls.
  for (const std::optional<std::string>* address : {&call.peer, &call.local})
    if (*address && (event.peer == 0 || !address_meets(**address, trace.str(event.peer)))) return false;
  if (event.open_flags == 0) return true;
  const std::optional<int> argument = kernel::open_flags_argument(call.syscall);
  const auto wanted = argument ? call.args.find(*argument) : call.args.end();
  if (wanted == call.args.end()) return true;
  const std::optional<std::uint32_t> flags = kernel::open_flags_number(wanted->second);
  return !flags || (event.open_flags & *flags) == *flags;
}

}  // namespace

std::uint64_t times_of(const trace::Event& event) { return std::max<std::uint32_t>(1, event.count); }

std::optional<ContextEvent> context_event(const trace::TraceBase& trace, const trace::Event& event,
                                          std::string_view node) {
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
  schedule::CallMatch& call = condition.call;
  condition.kind = ConditionKind::syscall;
  call.syscall = info->name;
  narrow_to_paths(trace, event, *info, node, call);
  if (!call.path && !call.path2) narrow_to_socket(trace, event, *info, node, call);
  narrow_to_flags(event, call);
  condition.result = "ok";  // the tracer records a nonblocking connect that is in progress as a success, too
  found.key = fmt::format("s {} {} {} {} {}", call.syscall, call.path.value_or(""), call.path2.value_or(""),
                          call.peer.value_or(call.local.value_or("")),
                          call.args.empty() ? std::string{} : call.args.begin()->second);
  return found;
}

bool meets(const trace::TraceBase& trace, const trace::Event& event, const Condition& condition) {
  if (condition.kind == ConditionKind::function)
    return event.type == EventType::af && trace.str(event.function) == condition.function;
  if (condition.kind != ConditionKind::syscall || event.type != EventType::sys) return false;
  const kernel::SyscallInfo* info = kernel::find_syscall(event.syscall);
  return info != nullptr && call_meets(trace, event, *info, condition.call);
}

ContextIndex::ContextIndex(const Inputs& inputs, const NodeMap& nodes)
    : kinds_(static_cast<std::size_t>(nodes.count())),
      shapes_(static_cast<std::size_t>(nodes.count())),
      seen_(static_cast<std::size_t>(nodes.count())) {
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
  std::vector<std::map<std::string, std::size_t>> by_key(kinds_.size());
  std::unordered_map<std::string_view, std::uint32_t> hosts;
  std::int64_t first = 0;
  std::int64_t last = 0;
  for (std::size_t source = 0; source < inputs.sources.size(); ++source) {
    const evidence::Source& observed = inputs.sources[source];
    // Equal strings and flags give equal conditions, so each condition is built once and not once per event.
    std::map<std::tuple<int, EventType, int, std::uint32_t, trace::StringId, trace::StringId, trace::StringId,
                        trace::StringId>,
             std::size_t>
        known;
    for (const evidence::Observation& event : observed.observations) {
      if (event.type != EventType::af && event.type != EventType::sys) continue;
      const int node = nodes.of(source, event);
      if (node < 0) continue;
      const auto at = static_cast<std::size_t>(node);
      if (first == 0 || event.ts_ns < first) first = event.ts_ns;
      last = std::max(last, event.ts_ns);
      const auto [it, fresh] =
          known.try_emplace(std::tuple(node, event.type, static_cast<int>(event.syscall), event.open_flags & kMakes,
                                       event.path, event.path2, event.peer, event.function),
                            kNone);
      if (fresh) {
        if (std::optional<ContextEvent> made = context_event(observed, event, nodes.name(node))) {
          const auto [kind, first_of_key] = by_key[at].try_emplace(made->key, kinds_[at].size());
          if (first_of_key) {
            bool frequent = false;
            if (event.type == EventType::af) {
              frequent = frequent_functions.contains({nodes.name(node), made->condition.function}) ||
                         frequent_functions.contains({"*", made->condition.function});
            } else if (normal && profiled_seconds > 0) {
              const profile::CallKind* usual = normal->find(observed, event);
              frequent = usual != nullptr && static_cast<double>(usual->count) / profiled_seconds > below;
            }
            kinds_[at].push_back({*std::move(made), 0, frequent});
          }
          it->second = shapes_[at].size();
          shapes_[at].push_back({&observed, &event, kind->second});
        }
      }
      if (it->second == kNone) continue;
      kinds_[at][shapes_[at][it->second].kind].count += times_of(event);
      const auto [host, new_host] =
          hosts.try_emplace(std::string_view(observed.str(event.node)), static_cast<std::uint32_t>(hosts.size()));
      seen_[at].push_back({event.ts_ns, static_cast<std::uint32_t>(it->second), host->second, times_of(event)});
    }
  }
  const double seconds = std::max(1.0, static_cast<double>(last - first) / 1e9);
  for (std::size_t node = 0; node < kinds_.size(); ++node) {
    for (Kind& kind : kinds_[node])
      if (kind.count > kFewEvents && static_cast<double>(kind.count) / seconds > below) kind.frequent = true;
    std::stable_sort(seen_[node].begin(), seen_[node].end(), [](const Seen& a, const Seen& b) { return a.ts < b.ts; });
  }
}

const std::vector<std::size_t>& ContextIndex::shapes_meeting(std::size_t node, std::size_t kind) const {
  const auto [known, fresh] = meeting_.try_emplace({node, kind});
  if (!fresh) return known->second;
  const Condition& condition = kinds_[node][kind].event.condition;
  const std::vector<Shape>& shapes = shapes_[node];
  for (std::size_t i = 0; i < shapes.size(); ++i)
    if (shapes[i].kind == kind || meets(*shapes[i].trace, *shapes[i].event, condition)) known->second.push_back(i);
  return known->second;
}

std::vector<ContextEvent> ContextIndex::before(int node, std::int64_t since, std::int64_t until,
                                               std::size_t most) const {
  std::vector<ContextEvent> events;
  if (node < 0) return events;
  const auto at = static_cast<std::size_t>(node);
  const std::vector<Kind>& kinds = kinds_[at];
  const std::vector<Shape>& shapes = shapes_[at];
  const std::vector<Seen>& seen = seen_[at];
  const auto after = [](std::int64_t ts, const Seen& s) { return ts < s.ts; };
  const auto begin = std::upper_bound(seen.begin(), seen.end(), since, after);
  const auto end = std::upper_bound(begin, seen.end(), until, after);
  // The loop below visits the events from the last to the first. These maps hold the number of events that have not
  // been visited: by host and shape, and by host and condition. A condition also counts events that would give another
  // condition ("*/log.*" also matches what "*/a/log.*" does), because a run counts them as well.
  const auto on = [](std::uint32_t host, std::size_t what) { return std::uint64_t{host} << 32 | what; };
  std::unordered_map<std::uint64_t, std::uint64_t> of_shape, of_kind;
  // by shape: the kinds whose conditions the shape meets
  std::unordered_map<std::size_t, std::vector<std::size_t>> kinds_met;
  std::set<std::size_t> asked;
  for (auto it = begin; it != end; ++it) of_shape[on(it->host, it->shape)] += it->times;
  const auto left = [&](std::size_t kind, std::uint32_t host) -> std::uint64_t {
    if (asked.insert(kind).second)
      for (const std::size_t shape : shapes_meeting(at, kind)) kinds_met[shape].push_back(kind);
    const auto [known, fresh] = of_kind.try_emplace(on(host, kind), 0);
    if (fresh)
      for (const std::size_t shape : shapes_meeting(at, kind))
        if (const auto some = of_shape.find(on(host, shape)); some != of_shape.end()) known->second += some->second;
    return known->second;
  };
  for (auto it = end; it != begin && events.size() < most;) {
    --it;
    const std::size_t kind = shapes[it->shape].kind;
    if (!kinds[kind].frequent) {
      events.push_back(kinds[kind].event);
      events.back().occurrence = left(kind, it->host);
      events.back().ts_ns = it->ts;
    }
    of_shape[on(it->host, it->shape)] -= it->times;
    if (const auto met = kinds_met.find(it->shape); met != kinds_met.end())
      for (const std::size_t index : met->second)
        if (const auto known = of_kind.find(on(it->host, index)); known != of_kind.end()) known->second -= it->times;
  }
  return events;
}

}  // namespace rose::diagnose
