#include "report/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <map>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "kernel/open_flags.h"
#include "kernel/syscalls.h"
#include "kernel/uring.h"
#include "trace/jsonl.h"
#include "trace/limits.h"
#include "trace/utf8.h"

namespace rose::report {

using trace::Event;
using trace::EventType;
using trace::ProcessState;
using trace::Trace;

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;
constexpr std::array kTypes = {EventType::scf, EventType::af, EventType::nd, EventType::ps, EventType::sys};
constexpr std::string_view kTypeNames = "scf, af, nd, ps, sys";

// Collects whole lines, so that `out` is not called once a line.
class Lines {
 public:
  explicit Lines(const Output& out) : out_(out) {}
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  ~Lines() {
    if (!buffer_.empty()) out_(buffer_);
  }
  void add(std::string_view line) {
    // Columns that happen to be empty leave no blanks at the end.
    line = line.substr(0, line.find_last_not_of(' ') + 1);
    buffer_ += line;
    buffer_ += '\n';
    if (buffer_.size() < kChunk) return;
    out_(buffer_);
    buffer_.clear();
  }

 private:
  const Output& out_;
  std::string buffer_;
};

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

std::string node_of(const Trace& trace, const Event& event) {
  const std::string_view name = event.node == 0 ? std::string_view(trace.meta.node) : trace.str(event.node);
  return name.empty() ? "-" : printable(name);
}

// "+1.234567", seconds after `from`.
std::string offset_text(std::int64_t ns) {
  const bool before = ns < 0;
  const std::uint64_t us = static_cast<std::uint64_t>(before ? -ns : ns) / 1000;
  return fmt::format("{}{}.{:06}", before ? '-' : '+', us / 1'000'000, us % 1'000'000);
}

std::string endpoint(const Trace& trace, trace::StringId address, std::uint16_t port) {
  std::string text = address == 0 ? "?" : printable(trace.str(address));
  if (port == 0) return text;
  return text.find(':') == std::string::npos ? fmt::format("{}:{}", text, port) : fmt::format("[{}]:{}", text, port);
}

void append_call(std::string& out, const Event& e) {
  out += e.syscall < 0 ? "?" : kernel::syscall_name(e.syscall);
  constexpr int kUringEnter = 426;
  if (e.type == EventType::scf && e.syscall == kUringEnter && e.result > 0)
    out += " " + kernel::uring_operation_name(static_cast<int>(std::min<std::int64_t>(e.result, 999)));
  if (e.type == EventType::scf)
    out += e.err == 0 ? " failed" : " " + kernel::errno_name(e.err);
  else
    out += fmt::format(" = {}", e.result);
}

// Where a call was made: the paths, else the peer.
void append_place(std::string& out, const Trace& trace, const Event& e) {
  if (e.path != 0) {
    out += ' ';
    if ((e.flags & trace::kTruncated) != 0) out += "...";
    out += printable(trace.str(e.path));
    if ((e.flags & trace::kUnlinked) != 0) out += " (unlinked)";
  }
  if (e.path2 != 0) out += " -> " + printable(trace.str(e.path2));
  if (e.peer != 0) out += " peer " + printable(trace.str(e.peer));
}

void append_state(std::string& out, const Event& e) {
  if ((e.flags & trace::kBlocked) != 0 && e.state == ProcessState::paused)
    out += "blocked in uninterruptible wait";
  else
    out += e.state == ProcessState::none ? "changed" : state_name(e.state);
  if (e.state == ProcessState::crashed || e.signal != 0)
    out += e.signal == 0 ? "" : " by " + kernel::signal_name(e.signal);
  if (e.exit_code >= 0) out += fmt::format(" with status {}", e.exit_code);
  if ((e.flags & trace::kOutOfMemory) != 0) out += ", out of memory";
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = trace::utf8_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    // U+0080 to U+009f are controls as well.
    const bool control = first < 0x20 || first == 0x7f ||
                         (first == 0xc2 && length == 2 && static_cast<unsigned char>(text[1]) < 0xa0);
    const std::size_t taken = std::max<std::size_t>(length, 1);
    if (length == 0 || control) {
      for (const char c : text.substr(0, taken)) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += text.substr(0, taken);
    }
    text.remove_prefix(taken);
  }
  return out;
}

std::string wall_clock(std::int64_t ns) {
  std::int64_t rest = ns % 1'000'000'000;
  auto seconds = static_cast<std::time_t>(ns / 1'000'000'000);
  if (rest < 0) {
    rest += 1'000'000'000;
    --seconds;
  }
  std::tm time{};
  ::gmtime_r(&seconds, &time);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:09} UTC", time.tm_year + 1900, time.tm_mon + 1,
                     time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec, rest);
}

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
    const auto found = std::find_if(kTypes.begin(), kTypes.end(),
                                    [&](EventType type) { return name == trace::type_name(type); });
    if (found == kTypes.end())
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
      return fail(ErrorKind::usage, fmt::format("--node: the dump knows no node '{}'", printable(*filter.node)),
                  known.empty() ? "it names no nodes at all" : fmt::format("its nodes are {}", known));
    }
  }
  if (filter.since_ns && filter.until_ns && *filter.since_ns > *filter.until_ns)
    return fail(ErrorKind::usage, "--since lies after --until", "swap them");
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

std::string describe(const Trace& trace, const Event& e) {
  std::string out;
  switch (e.type) {
    case EventType::scf:
    case EventType::sys:
      append_call(out, e);
      append_place(out, trace, e);
      if (e.open_flags != 0) out += " " + kernel::open_flags_text(e.open_flags);
      if (e.fd >= 0) out += fmt::format(" fd {}", e.fd);
      break;
    case EventType::af:
      out += e.function == 0 ? "?" : printable(trace.str(e.function));
      if ((e.flags & trace::kTruncated) != 0) out += " entered too often: what follows of it is not recorded";
      break;
    case EventType::nd:
      out += fmt::format("{} -> {}", endpoint(trace, e.src, e.sport), endpoint(trace, e.dst, e.dport));
      if (e.protocol != trace::Protocol::none) out += e.protocol == trace::Protocol::tcp ? " tcp" : " udp";
      out += " silent";
      if (e.duration_ms >= 0) out += " for " + format_duration(e.duration_ms * std::int64_t{1'000'000});
      out += fmt::format(" after {} packet{}", e.packets, e.packets == 1 ? "" : "s");
      break;
    case EventType::ps:
      append_state(out, e);
      if (e.duration_ms >= 0) out += " for " + format_duration(e.duration_ms * std::int64_t{1'000'000});
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
  std::map<trace::StringId, std::string> nodes;  // few; escaped once
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
  if (meta.window != 0) counts += fmt::format(", the window held {}", meta.window);
  counts += fmt::format(", {} lost", meta.lost);
  if (meta.suppressed != 0) counts += fmt::format(", {} expected ones left out", meta.suppressed);
  lines.add(counts);
  if (meta.workload_ts != 0)
    lines.add(fmt::format("# the workload began at {}", offset_text(meta.workload_ts - origin)));
  if (shown == 0) return;
  lines.add(fmt::format("{:>{}}  {:<{}}  type  {:<{}}  what", "time", time_width, "node", node_width, "process",
                        process_width));
  for (const Event& e : trace.events) {
    if (!matches(filter, trace, e)) continue;
    lines.add(fmt::format("{:>{}}  {:<{}}  {:<4}  {:<{}}  {}", offset_text(e.ts_ns - origin), time_width,
                          nodes[e.node], node_width, upper(type_name(e.type)), process(e), process_width,
                          describe(trace, e)));
  }
}

void show_summary(const Trace& trace, const ShowFilter& filter, const Output& out) {
  // Equal events count together; what rose injected stands apart from what happened.
  struct Group {
    std::uint64_t count = 0;
    std::int64_t first = 0;
    std::int64_t last = 0;
    const Event* example = nullptr;
  };
  using Key = std::tuple<int, std::string_view, int, int, int, int, trace::StringId, trace::StringId, trace::StringId,
                         trace::StringId, trace::StringId, trace::StringId, int>;
  // Causes of the coarse kind first, as the diagnosis ranks them.
  const auto rank = [](EventType type) {
    switch (type) {
      case EventType::ps: return 0;
      case EventType::nd: return 1;
      case EventType::scf: return 2;
      case EventType::sys: return 3;
      case EventType::af: return 4;
    }
    return 5;
  };
  std::map<Key, Group> groups;
  std::map<EventType, std::uint64_t> totals;
  for (const Event& e : trace.events) {
    if (!matches(filter, trace, e)) continue;
    const std::string_view node = e.node == 0 ? std::string_view(trace.meta.node) : trace.str(e.node);
    const bool ends = e.type == EventType::ps;
    Group& group =
        groups[Key{rank(e.type), node, e.syscall, e.err, static_cast<int>(e.state),
                   ends ? e.signal * 1000 + e.exit_code : 0, e.path, e.path2, e.peer, e.function, e.src, e.dst,
                   e.flags & (trace::kInjected | trace::kPlanned | trace::kMain | trace::kOutOfMemory | trace::kBlocked)}];
    if (group.count == 0) group.first = e.ts_ns;
    group.last = e.ts_ns;
    group.count += e.count;
    if (group.example == nullptr) group.example = &e;
    totals[e.type] += e.count;
  }
  Lines lines(out);
  std::string line;
  for (const EventType type : kTypes) {
    if (!line.empty()) line += ", ";
    line += fmt::format("{} {}", totals[type], upper(type_name(type)));
  }
  lines.add(fmt::format("# {}; {} lost", line, trace.meta.lost));
  if (groups.empty()) return;

  struct Row {
    int rank;
    const Group* group;
    std::string node, count, what;
  };
  std::vector<Row> rows;
  std::size_t node_width = 4;
  std::size_t count_width = 5;
  std::size_t time_width = 5;
  const std::int64_t origin = trace.events.front().ts_ns;
  for (const auto& [key, group] : groups) {
    const Event& e = *group.example;
    std::string what;
    if (e.type == EventType::scf) {
      append_call(what, e);
      append_place(what, trace, e);
    } else if (e.type == EventType::sys) {
      what = e.syscall < 0 ? "?" : kernel::syscall_name(e.syscall);
      append_place(what, trace, e);
    } else if (e.type == EventType::nd) {
      what = fmt::format("{} -> {} silent", endpoint(trace, e.src, 0), endpoint(trace, e.dst, 0));
    } else if (e.type == EventType::ps) {
      append_state(what, e);
      if ((e.flags & trace::kMain) != 0) what += ", main process";
      if ((e.flags & trace::kPlanned) != 0) what += ", planned";
    } else {
      what = e.function == 0 ? "?" : printable(trace.str(e.function));
    }
    if ((e.flags & trace::kInjected) != 0) what += " [injected]";
    rows.push_back({std::get<0>(key), &group, node_of(trace, e), fmt::format("{}", group.count), std::move(what)});
    node_width = std::max(node_width, std::min<std::size_t>(rows.back().node.size(), 24));
    count_width = std::max(count_width, rows.back().count.size());
    time_width = std::max({time_width, offset_text(group.first - origin).size(), offset_text(group.last - origin).size()});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    if (a.group->count != b.group->count) return a.group->count > b.group->count;
    return a.group->first < b.group->first;
  });
  lines.add(fmt::format("type  {:<{}}  {:>{}}  {:>{}}  {:>{}}  what", "node", node_width, "count", count_width, "first",
                        time_width, "last", time_width));
  for (const Row& row : rows) {
    lines.add(fmt::format("{:<4}  {:<{}}  {:>{}}  {:>{}}  {:>{}}  {}", upper(type_name(row.group->example->type)),
                          row.node, node_width, row.count, count_width, offset_text(row.group->first - origin),
                          time_width, offset_text(row.group->last - origin), time_width, row.what));
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
