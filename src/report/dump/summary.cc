#include "report/dump/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <unordered_map>

#include "base/ascii.h"
#include "base/json.h"
#include "base/units.h"
#include "kernel/syscalls.h"
#include "report/dump/phrases.h"
#include "report/dump/text.h"

namespace rose::report {

using trace::Event;
using trace::EventType;
using trace::ProcessState;
using trace::Trace;

namespace {

// A kind counts as more frequent than in the profile if its rate is this many times higher, and only if it occurred at
// least this often, so that small numbers do not matter.
constexpr double kMoreFactor = 4;
constexpr std::uint64_t kMoreCount = 10;

// Ranks an event by its relevance for a failure: unplanned ends and pauses come first, then errors of a disk or another
// resource, silences, other failed calls, and finally what also occurs in normal operation.
int rank(const Event& e) {
  switch (e.type) {
    case EventType::ps: {
      const bool in_order = e.state == ProcessState::started || (e.state == ProcessState::exited && e.exit_code == 0) ||
                            (e.flags & trace::kPlanned) != 0;
      return in_order ? 4 : 0;
    }
    case EventType::scf: return kernel::resource_error(e.err) ? 1 : 3;
    case EventType::nd: return 2;
    case EventType::sys: return 5;
    case EventType::af: return 6;
  }
  return 7;
}

using NodeNames = std::map<std::string, std::string>;  // by address

// The node and its address: "n1 (10.0.0.1)".
std::string end_of_silence(const Trace& trace, trace::StringId address, const NodeNames& nodes) {
  const std::string text = endpoint(trace, address, 0);
  const auto node = nodes.find(text);
  return node == nodes.end() ? text : fmt::format("{} ({})", printable(node->second), text);
}

std::string describe_kind(const Trace& trace, const SummaryRow& row, const NodeNames& nodes) {
  const Event& e = *row.example;
  std::string what;
  if (e.type == EventType::scf) {
    append_call(what, e);
    append_place(what, trace, e, row.peers);
  } else if (e.type == EventType::sys) {
    what = e.syscall < 0 ? "?" : kernel::syscall_name(e.syscall);
    append_place(what, trace, e, row.peers);
  } else if (e.type == EventType::nd) {
    what = fmt::format("{} -> {} silent", end_of_silence(trace, e.src, nodes), end_of_silence(trace, e.dst, nodes));
    if (row.longest_ms > 0)
      what += fmt::format(" for {}{}", row.count > 1 ? "up to " : "",
                          format_duration(row.longest_ms * std::int64_t{1'000'000}));
  } else if (e.type == EventType::ps) {
    append_state(what, e);
    if ((e.flags & trace::kMain) != 0) what += ", main process";
    if ((e.flags & trace::kPlanned) != 0) what += ", planned";
  } else {
    what = e.function == 0 ? "?" : printable(trace.str(e.function));
  }
  if ((e.flags & trace::kInjected) != 0) what += " [injected]";
  return what;
}

// Compares each row with the profile.
class Judge {
 public:
  Judge(const Trace& trace, const profile::Profile& profile)
      : trace_(trace), profile_(profile), benign_(profile), names_(nodes_by_address(trace.meta)) {
    if (!trace.events.empty())
      seconds_ = std::max(1.0, static_cast<double>(trace.events.back().ts_ns - trace.events.front().ts_ns) / 1e9);
  }

  void judge(std::vector<SummaryRow>& rows) const {
    // Several rows may match the same entry of the profile, because patterns replace numbers in the profile's paths.
    std::vector<const void*> known(rows.size(), nullptr);
    // rate per second in the profile; count in this trace
    std::map<const void*, std::pair<double, std::uint64_t>> seen;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      double rate = 0;
      known[i] = find(rows[i], rate);
      if (known[i] == nullptr) continue;
      auto& [expected, count] = seen[known[i]];
      expected = rate;
      count += rows[i].count;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (known[i] == nullptr) {
        rows[i].normal = Normal::fresh;
        continue;
      }
      const auto& [expected, count] = seen[known[i]];
      const bool more =
          expected > 0 && count >= kMoreCount && static_cast<double>(count) / seconds_ > kMoreFactor * expected;
      rows[i].normal = more ? Normal::more : Normal::usual;
    }
  }

 private:
  // The matching entry of the profile. `rate` receives the rate per second in the profile; 0: unknown.
  const void* find(const SummaryRow& row, double& rate) const {
    const Event& e = *row.example;
    const auto per_second = [&](std::uint64_t count) {
      return profile_.seconds > 0 ? static_cast<double>(count) / profile_.seconds : 0.0;
    };
    switch (e.type) {
      case EventType::scf:
      case EventType::sys: {
        const profile::CallKind* kind = benign_.find(trace_, e);
        if (kind != nullptr) rate = per_second(kind->count);
        return kind;
      }
      case EventType::af:
        for (const profile::FunctionRate& function : profile_.functions) {
          if (function.count == 0 || function.function != trace_.str(e.function)) continue;
          rate = function.per_second;
          return &function;
        }
        return nullptr;
      case EventType::ps: {
        // Starting a program is not a failure, and a stop by `rose node` was intended.
        if (e.state == ProcessState::started || (e.flags & trace::kPlanned) != 0) return &profile_;
        const std::string signal = e.signal == 0 ? "" : kernel::signal_name(e.signal);
        for (const profile::ProcessKind& kind : profile_.processes) {
          if (kind.state != state_name(e.state) || kind.signal != signal || kind.exit_code != e.exit_code) continue;
          if (kind.main != ((e.flags & trace::kMain) != 0)) continue;
          rate = per_second(kind.count);
          return &kind;
        }
        return nullptr;
      }
      case EventType::nd:
        for (const profile::Silence& silence : profile_.silences) {
          if (!is_end(silence.src, e.src) || !is_end(silence.dst, e.dst)) continue;
          if (!silence.is_of(e.sport, e.dport)) continue;
          const bool asked = (e.flags & trace::kOutstanding) != 0;
          if (row.longest_ms <= (asked ? silence.longest_ms : std::max(silence.longest_ms, silence.idle_ms)))
            return &silence;
        }
        return nullptr;
    }
    return nullptr;
  }

  [[nodiscard]] bool is_end(const std::string& name, trace::StringId address) const {
    const std::string text(trace_.str(address));
    const auto found = names_.find(text);
    return name == text || (found != names_.end() && name == found->second);
  }

  const Trace& trace_;
  const profile::Profile& profile_;
  profile::BenignIndex benign_;
  NodeNames names_;
  double seconds_ = 1;
};

std::string call_list(const std::vector<trace::SuppressedCall>& calls) {
  std::string list;
  for (const trace::SuppressedCall& call : calls) {
    list += fmt::format("{}{} {} x{}", list.empty() ? "" : ", ", kernel::syscall_name(call.syscall),
                        kernel::errno_name(call.err), call.count);
  }
  return list;
}

// Events for which these values are equal form one row.
using Kind = std::array<std::uint32_t, 11>;
struct KindHash {
  std::size_t operator()(const Kind& kind) const {
    std::uint64_t hash = 0;
    for (const std::uint32_t part : kind) hash = (hash ^ part) * 0x9e3779b97f4a7c15ULL + (hash >> 29);
    return static_cast<std::size_t>(hash ^ (hash >> 32));
  }
};

constexpr std::size_t kMostLines = 1000;  // in the text form

}  // namespace

std::string_view normal_name(Normal normal) {
  switch (normal) {
    case Normal::fresh: return "new";
    case Normal::more: return "more";
    case Normal::usual: return "usual";
  }
  return "new";
}

Summary summarise(const Trace& trace, const ShowFilter& filter, const profile::Profile* profile) {
  Summary summary;
  std::unordered_map<Kind, std::size_t, KindHash> index;
  index.reserve(std::min<std::size_t>(trace.events.size(), std::size_t{1} << 20));
  // Peers that match the same pattern count as one peer: the kernel chooses the ports of clients, so otherwise each
  // connection of a client would be a separate kind.
  std::unordered_map<trace::StringId, trace::StringId> first_peer;  // by peer
  std::unordered_map<std::string, trace::StringId> first_of_pattern;
  const auto representative = [&](trace::StringId peer) {
    if (peer == 0) return peer;
    const auto [known, fresh] = first_peer.try_emplace(peer, peer);
    if (fresh) known->second = first_of_pattern.try_emplace(profile::peer_pattern(trace.str(peer)), peer).first->second;
    return known->second;
  };
  const trace::StringId own = trace.strings.find(trace.meta.node);
  for (const Event& e : trace.events) {
    if (!matches(filter, trace, e)) continue;
    const bool ends = e.type == EventType::ps;
    const Kind kind{static_cast<std::uint32_t>(e.type) << 16 | static_cast<std::uint32_t>(e.state),
                    e.node == 0 ? own : e.node,
                    static_cast<std::uint32_t>(e.syscall) << 16 | static_cast<std::uint16_t>(e.err),
                    ends ? static_cast<std::uint32_t>(e.signal * 1000 + e.exit_code) : 0,
                    e.path,
                    e.path2,
                    representative(e.peer),
                    e.function,
                    e.src,
                    e.dst,
                    static_cast<std::uint32_t>(e.flags & (trace::kInjected | trace::kPlanned | trace::kMain |
                                                          trace::kOutOfMemory | trace::kBlocked))};
    const auto [found, fresh] = index.try_emplace(kind, summary.rows.size());
    if (fresh) {
      SummaryRow& row = summary.rows.emplace_back();
      row.example = &e;
      row.first_ns = e.ts_ns;
    }
    SummaryRow& row = summary.rows[found->second];
    row.last_ns = e.ts_ns;
    if (e.peer != row.example->peer) row.peers = profile::peer_pattern(trace.str(e.peer));
    row.longest_ms = std::max(row.longest_ms, e.duration_ms);
    row.count += e.count;
    summary.totals[e.type] += e.count;
    summary.collapsed += e.count - 1;
  }
  if (profile != nullptr) {
    Judge(trace, *profile).judge(summary.rows);
    for (const SummaryRow& row : summary.rows) ++summary.kinds[*row.normal];
  }
  // Rare failed calls come first. If thousands of files were not found, this counts as one error of one call, and comes
  // last.
  std::map<std::pair<int, int>, std::uint64_t> together;
  for (const SummaryRow& row : summary.rows)
    if (row.example->type == EventType::scf) together[{row.example->syscall, row.example->err}] += row.count;
  for (SummaryRow& row : summary.rows)
    if (row.example->type == EventType::scf) row.alike = together.at({row.example->syscall, row.example->err});
  std::stable_sort(summary.rows.begin(), summary.rows.end(), [](const SummaryRow& a, const SummaryRow& b) {
    if (a.normal != b.normal) return a.normal < b.normal;
    if (const int first = rank(*a.example), second = rank(*b.example); first != second) return first < second;
    if (a.alike != b.alike) return a.alike < b.alike;
    if (a.count != b.count) return a.count > b.count;
    return a.first_ns < b.first_ns;
  });
  return summary;
}

void show_summary(const Trace& trace, const ShowFilter& filter, const profile::Profile* profile, const Output& out) {
  const Summary summary = summarise(trace, filter, profile);
  const trace::Meta& meta = trace.meta;
  Lines lines(out);
  std::string line;
  for (const EventType type : trace::kEventTypes) {
    if (!line.empty()) line += ", ";
    const auto found = summary.totals.find(type);
    line += fmt::format("{} {}", found == summary.totals.end() ? 0 : found->second, upper_case(type_name(type)));
  }
  lines.add(fmt::format("# {}; {} lost", line, meta.lost));
  for (const std::string& clock : meta.clock) lines.add("# " + printable(clock));
  for (const std::string& label : label_lines(meta)) lines.add("# " + label);
  if (!trace.events.empty())
    lines.add(fmt::format("# first event {}, last {} s later", wall_clock(trace.events.front().ts_ns),
                          offset_text(trace.events.back().ts_ns - trace.events.front().ts_ns).substr(1)));
  if (summary.collapsed != 0)
    lines.add(fmt::format("# {} of them, equal to others at that time, were only counted", summary.collapsed));
  if (meta.suppressed != 0)
    lines.add(fmt::format("# {} expected failures omitted{}{}", meta.suppressed,
                          meta.suppressed_calls.empty() ? "" : ": ", call_list(meta.suppressed_calls)));
  if (!meta.trigger.empty()) lines.add("# written by " + printable(meta.trigger));
  if (profile != nullptr) {
    const auto kinds = [&](Normal normal) {
      const auto found = summary.kinds.find(normal);
      return found == summary.kinds.end() ? 0 : found->second;
    };
    lines.add(fmt::format("# against the profile of {} ({} runs, {:.0f} s): {} new, {} more often than there, {} usual",
                          printable(profile->name), profile->runs, profile->seconds, kinds(Normal::fresh),
                          kinds(Normal::more), kinds(Normal::usual)));
  }
  if (summary.rows.empty()) return;

  const std::int64_t origin = trace.events.front().ts_ns;
  const NodeNames nodes = nodes_by_address(meta);
  std::size_t node_width = 4;
  std::size_t count_width = 5;
  std::size_t time_width = 5;
  const std::span<const SummaryRow> rows(summary.rows.data(), std::min(summary.rows.size(), kMostLines));
  for (const SummaryRow& row : rows) {
    node_width = std::max(node_width, std::min<std::size_t>(node_of(trace, *row.example).size(), 24));
    count_width = std::max(count_width, fmt::formatted_size("{}", row.count));
    time_width =
        std::max({time_width, offset_text(row.first_ns - origin).size(), offset_text(row.last_ns - origin).size()});
  }
  const auto mark = [&](std::string_view text) {
    return profile == nullptr ? std::string() : fmt::format("{:<7}  ", text);
  };
  lines.add(fmt::format("{}type  {:<{}}  {:>{}}  {:>{}}  {:>{}}  what", mark("profile"), "node", node_width, "count",
                        count_width, "first", time_width, "last", time_width));
  for (const SummaryRow& row : rows) {
    lines.add(fmt::format("{}{:<4}  {:<{}}  {:>{}}  {:>{}}  {:>{}}  {}",
                          mark(row.normal ? normal_name(*row.normal) : ""), upper_case(type_name(row.example->type)),
                          node_of(trace, *row.example), node_width, row.count, count_width,
                          offset_text(row.first_ns - origin), time_width, offset_text(row.last_ns - origin), time_width,
                          describe_kind(trace, row, nodes)));
  }
  if (rows.size() < summary.rows.size())
    lines.add(fmt::format("# and {} more kinds: select with --node, --type, --since, or use --json",
                          summary.rows.size() - rows.size()));
}

void show_summary_json(const Trace& trace, const ShowFilter& filter, const profile::Profile* profile,
                       const Output& out) {
  const Summary summary = summarise(trace, filter, profile);
  const trace::Meta& meta = trace.meta;
  Json json;
  for (const EventType type : trace::kEventTypes) {
    const auto found = summary.totals.find(type);
    json["events"][std::string(type_name(type))] = found == summary.totals.end() ? 0 : found->second;
  }
  json["lost"] = meta.lost;
  if (!meta.clock.empty()) json["clock"] = meta.clock;
  if (!meta.labels.empty()) json["labels"] = meta.labels;
  json["collapsed"] = summary.collapsed;
  json["suppressed"] = meta.suppressed;
  json["suppressed_calls"] = Json::array();
  for (const trace::SuppressedCall& call : meta.suppressed_calls)
    json["suppressed_calls"].push_back({{"syscall", kernel::syscall_name(call.syscall)},
                                        {"errno", kernel::errno_name(call.err)},
                                        {"count", call.count}});
  json["trigger"] = meta.trigger.empty() ? Json(nullptr) : Json(printable(meta.trigger));
  json["profile"] = nullptr;
  if (profile != nullptr) {
    json["profile"] = {{"name", profile->name}, {"runs", profile->runs}, {"seconds", profile->seconds}};
    for (const Normal normal : {Normal::fresh, Normal::more, Normal::usual}) {
      const auto found = summary.kinds.find(normal);
      json["profile"][std::string(normal_name(normal))] = found == summary.kinds.end() ? 0 : found->second;
    }
  }
  const NodeNames nodes = nodes_by_address(meta);
  json["rows"] = Json::array();
  for (const SummaryRow& row : summary.rows) {
    const Event& e = *row.example;
    const auto text = [&](trace::StringId id) { return id == 0 ? Json(nullptr) : Json(printable(trace.str(id))); };
    Json entry = {{"type", type_name(e.type)},
                  {"node", node_of(trace, e)},
                  {"normal", row.normal ? Json(normal_name(*row.normal)) : Json(nullptr)},
                  {"count", row.count},
                  {"first_ts", row.first_ns},
                  {"last_ts", row.last_ns},
                  {"what", describe_kind(trace, row, nodes)}};
    if (e.type == EventType::scf || e.type == EventType::sys) {
      entry["syscall"] = e.syscall < 0 ? Json(nullptr) : Json(kernel::syscall_name(e.syscall));
      if (e.type == EventType::scf) entry["errno"] = e.err == 0 ? Json(nullptr) : Json(kernel::errno_name(e.err));
      entry["path"] = text(e.path);
      entry["path2"] = text(e.path2);
      entry["peer"] = row.peers.empty() ? text(e.peer) : Json(printable(row.peers));
    } else if (e.type == EventType::nd) {
      entry["src"] = text(e.src);
      entry["dst"] = text(e.dst);
    } else if (e.type == EventType::ps) {
      entry["state"] = state_name(e.state);
      entry["signal"] = e.signal == 0 ? Json(nullptr) : Json(kernel::signal_name(e.signal));
      entry["exit_code"] = e.exit_code < 0 ? Json(nullptr) : Json(e.exit_code);
    } else {
      entry["function"] = text(e.function);
    }
    json["rows"].push_back(std::move(entry));
  }
  out(json_line(json));
}

}  // namespace rose::report
