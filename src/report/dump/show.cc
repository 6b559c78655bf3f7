#include "report/dump/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <map>
#include <vector>

#include "base/ascii.h"
#include "base/text.h"
#include "base/units.h"
#include "kernel/open_flags.h"
#include "kernel/syscalls.h"
#include "kernel/uring.h"
#include "report/dump/phrases.h"
#include "trace/jsonl.h"
#include "trace/limits.h"

namespace rose::report {

using trace::Event;
using trace::EventType;
using trace::ProcessState;
using trace::Trace;

namespace {

constexpr std::string_view kTypeNames = "scf, af, nd, ps, sys";

}  // namespace

Result<std::int64_t> parse_moment(std::string_view option, std::string_view text, const Trace& trace) {
  const std::string hint =
      "a time is 2.5s (after the first event), -10s (before the last), or wall-clock nanoseconds since 1970";
  const auto refuse = [&] {
    return fail(ErrorKind::usage, fmt::format("{}: '{}' is not a time", option, printable(text)), hint);
  };
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos) {
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value > trace::kLatestTs) return refuse();
    return value;
  }
  const bool from_end = text.starts_with('-');
  const bool signed_ = from_end || text.starts_with('+');
  const auto duration = parse_duration_ns(signed_ ? text.substr(1) : text);
  if (!duration) return refuse();
  if (trace.events.empty()) return 0;
  return from_end ? trace.events.back().ts_ns - *duration : trace.events.front().ts_ns + *duration;
}

Result<std::set<EventType>> parse_types(std::string_view option, std::string_view text) {
  std::set<EventType> types;
  for (const std::string& name : split(text, ',')) {
    const auto found = std::find_if(trace::kEventTypes.begin(), trace::kEventTypes.end(),
                                    [&](EventType type) { return name == trace::type_name(type); });
    if (found == trace::kEventTypes.end())
      return fail(ErrorKind::usage, fmt::format("{}: '{}' is not a type of event", option, printable(name)),
                  fmt::format("one or more of {}, separated by commas", kTypeNames));
    types.insert(*found);
  }
  return types;
}

Result<void> check_filter(const ShowFilter& filter, const Trace& trace) {
  if (filter.node) {
    const std::vector<std::string> names = node_names(trace);
    if (std::find(names.begin(), names.end(), *filter.node) == names.end()) {
      std::string known;
      for (const std::string& name : names) known += (known.empty() ? "" : ", ") + printable(name);
      return fail(ErrorKind::usage, fmt::format("--node: the dump contains no node '{}'", printable(*filter.node)),
                  known.empty() ? "it contains no nodes" : fmt::format("its nodes are {}", known));
    }
  }
  if (filter.since_ns && filter.until_ns && *filter.since_ns > *filter.until_ns)
    return fail(ErrorKind::usage, "--since is after --until", "swap them");
  return {};
}

bool matches(const ShowFilter& filter, const Trace& trace, const Event& event) {
  if (!filter.types.empty() && !filter.types.contains(event.type)) return false;
  if (filter.since_ns && event.ts_ns < *filter.since_ns) return false;
  if (filter.until_ns && event.ts_ns > *filter.until_ns) return false;
  if (filter.node) {
    const std::string_view name = event.node == 0 ? std::string_view(trace.meta.node) : trace.str(event.node);
    if (name != *filter.node) return false;
  }
  return true;
}

std::string describe(const trace::TraceBase& trace, const Event& e) {
  std::string out;
  switch (e.type) {
    case EventType::scf:
    case EventType::sys:
      append_call(out, e);
      append_place(out, trace, e);
      if (e.open_flags != 0) out += " " + kernel::open_flags_text(e.open_flags);
      if (e.fd >= 0) out += fmt::format(" fd {}", e.fd);
      if ((e.flags & trace::kDying) != 0) out += ", as its process was being ended";
      break;
    case EventType::af:
      out += e.function == 0 ? "?" : printable(trace.str(e.function));
      if ((e.flags & trace::kTruncated) != 0) out += " entered too often: later entries are not recorded";
      break;
    case EventType::nd:
      out += fmt::format("{} -> {}", endpoint(trace, e.src, e.sport), endpoint(trace, e.dst, e.dport));
      if (e.protocol != trace::Protocol::none) out += e.protocol == trace::Protocol::tcp ? " tcp" : " udp";
      out += " silent";
      if (e.duration_ms >= 0) out += " for " + format_duration(e.duration_ms * std::int64_t{1'000'000});
      out += fmt::format(" after {} packet{}", e.packets, e.packets == 1 ? "" : "s");
      if ((e.flags & trace::kOutstanding) != 0) out += ", unanswered";
      else if ((e.flags & trace::kIdle) != 0) out += ", idle";
      if (e.usual_ms > 0) out += fmt::format(" (usually {})", format_duration(e.usual_ms * std::int64_t{1'000'000}));
      break;
    case EventType::ps:
      append_state(out, e);
      if (e.state == ProcessState::crashed || e.state == ProcessState::exited) {
        if (e.by != 0) out += fmt::format(", sent by {}", printable(trace.str(e.by)));
        if (e.duration_ms > 0)
          out += fmt::format(", {} earlier", format_duration(e.duration_ms * std::int64_t{1'000'000}));
      } else if (e.duration_ms >= 0) out += " for " + format_duration(e.duration_ms * std::int64_t{1'000'000});
      if ((e.flags & trace::kCoreDumped) != 0) out += ", core dumped";
      if ((e.flags & trace::kMain) != 0) out += ", main process";
      if ((e.flags & trace::kPlanned) != 0) out += ", planned";
      break;
  }
  if ((e.flags & trace::kOpen) != 0) out += ", not over yet";
  if (e.count > 1) out += fmt::format(" x{}", e.count);
  if ((e.flags & trace::kInjected) != 0) out += " [injected]";
  return out;
}

void show_text(const Trace& trace, const ShowFilter& filter, const Output& out) {
  Lines lines(out);
  const trace::Meta& meta = trace.meta;
  const std::int64_t origin = trace.events.empty() ? meta.begin_ns : trace.events.front().ts_ns;
  std::size_t shown = 0;
  std::size_t node_width = 4;
  std::size_t time_width = 4;
  std::size_t process_width = 7;
  const auto process = [](const Event& e) -> std::string {
    if (e.pid == 0 && e.tid == 0) return "-";
    if (e.tid == 0 || e.tid == e.pid) return fmt::format("{}", e.pid);
    return fmt::format("{}/{}", e.pid, e.tid);
  };
  std::map<trace::StringId, std::string> nodes;  // there are few nodes, so each name is escaped only once
  for (const Event& e : trace.events) {
    if (!matches(filter, trace, e)) continue;
    ++shown;
    auto& node = nodes[e.node];
    if (node.empty()) node = node_of(trace, e);
    node_width = std::max(node_width, std::min<std::size_t>(node.size(), 24));
    time_width = std::max(time_width, offset_text(e.ts_ns - origin).size());
    process_width = std::max(process_width, process(e).size());
  }
  std::string title = "# rose dump";
  if (!meta.node.empty()) title += " of " + printable(meta.node);
  if (!meta.host.empty() && meta.host != meta.node) title += " on " + printable(meta.host);
  lines.add(title);
  if (!trace.events.empty()) {
    lines.add(fmt::format("# first event {}, last {} s later", wall_clock(origin),
                          offset_text(trace.events.back().ts_ns - origin).substr(1)));
  } else if (meta.begin_ns != 0) {
    lines.add(fmt::format("# begun {}", wall_clock(meta.begin_ns)));
  }
  std::string counts = shown == trace.events.size()
                           ? fmt::format("# {} events", shown)
                           : fmt::format("# {} of {} events shown", shown, trace.events.size());
  if (meta.window != 0) counts += fmt::format(", the window contained {}", meta.window);
  counts += fmt::format(", {} lost", meta.lost);
  if (meta.suppressed != 0) counts += fmt::format(", {} expected ones omitted", meta.suppressed);
  lines.add(counts);
  if (!meta.trigger.empty()) lines.add("# written by " + printable(meta.trigger));
  if (meta.pairs_evicted != 0)
    lines.add(fmt::format("# {} connections were dropped for lack of memory: their silences are missing",
                          meta.pairs_evicted));
  for (const std::string& clock : meta.clock) lines.add("# " + printable(clock));
  for (const std::string& label : label_lines(meta)) lines.add("# " + label);
  if (meta.workload_ts != 0)
    lines.add(fmt::format("# the workload began at {}", offset_text(meta.workload_ts - origin)));
  if (shown == 0) return;
  lines.add(fmt::format("{:>{}}  {:<{}}  type  {:<{}}  what", "time", time_width, "node", node_width, "process",
                        process_width));
  for (const Event& e : trace.events) {
    if (!matches(filter, trace, e)) continue;
    lines.add(fmt::format("{:>{}}  {:<{}}  {:<4}  {:<{}}  {}", offset_text(e.ts_ns - origin), time_width, nodes[e.node],
                          node_width, upper_case(type_name(e.type)), process(e), process_width, describe(trace, e)));
  }
}

void show_jsonl(const Trace& trace, const ShowFilter& filter, const Output& out) {
  Lines lines(out);
  lines.add(trace::meta_to_json(trace.meta));
  for (const Event& e : trace.events) {
    if (matches(filter, trace, e)) lines.add(trace::event_to_json(trace, e));
  }
}

}  // namespace rose::report
