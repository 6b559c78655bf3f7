#include "report/dump/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "kernel/syscalls.h"
#include "trace/jsonl.h"

namespace rose::report {

using trace::Event;
using trace::EventType;
using trace::Trace;

namespace {

// The kernel's thread ids stay below 2^22, so rose's own tracks have larger ids.
constexpr int kFirstOwnTrack = 1 << 23;

std::string json(std::string_view text) {
  std::string out;
  trace::append_json_string(out, text);
  return out;
}

class Export {
 public:
  Export(const Trace& trace, const ShowFilter& filter, const Output& out) : trace_(trace), filter_(filter), out_(out) {}

  void write() {
    // The time stamp of an event with a duration is its end, so the earliest time may be before the first event.
    bool any = false;
    for (const Event& e : trace_.events) {
      if (!matches(filter_, trace_, e)) continue;
      const std::int64_t begin = e.ts_ns - duration_ns(e);
      origin_ = any ? std::min(origin_, begin) : begin;
      any = true;
    }
    const trace::Meta& meta = trace_.meta;
    line(fmt::format(
        R"({{"displayTimeUnit":"ms","otherData":{{"tool":"rose","node":{},"host":{},"origin":{},"origin_ns":"{}","lost":"{}"}},)",
        json(meta.node), json(meta.host), json(any ? wall_clock(origin_) : ""), origin_, meta.lost));
    line("\"traceEvents\":[");
    for (const Event& e : trace_.events) {
      if (matches(filter_, trace_, e)) event(e);
    }
    line("");
    line("]}");
    out_(buffer_);
  }

 private:
  static std::int64_t duration_ns(const Event& e) {
    return e.duration_ms > 0 ? e.duration_ms * std::int64_t{1'000'000} : 0;
  }

  void line(std::string_view text) {
    buffer_ += text;
    buffer_ += '\n';
  }

  // Adds an object to the list, separated by a comma.
  void object(const std::string& text) {
    if (!first_) buffer_ += ",\n";
    first_ = false;
    buffer_ += text;
    if (buffer_.size() < (std::size_t{1} << 16)) return;
    out_(buffer_);
    buffer_.clear();
  }

  // Microseconds with three decimals. They are formatted as integers, because a double would be rounded.
  static std::string micros(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

  int process(const Event& e) {
    const std::string_view name = e.node == 0 ? std::string_view(trace_.meta.node) : trace_.str(e.node);
    const auto [at, fresh] = processes_.emplace(name, static_cast<int>(processes_.size()) + 1);
    if (fresh) {
      object(fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})", at->second,
                         json(name.empty() ? "(no node)" : name)));
      object(
          fmt::format(R"({{"ph":"M","pid":{0},"name":"process_sort_index","args":{{"sort_index":{0}}}}})", at->second));
    }
    return at->second;
  }

  void name_track(int pid, int tid, std::string_view name) {
    object(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", pid, tid,
                       json(name)));
  }

  int thread(int pid, const Event& e) {
    const int tid = e.tid != 0 ? e.tid : e.pid;
    if (threads_.emplace(pid, tid).second)
      name_track(pid, tid, tid == 0 ? "(no thread)" : fmt::format("process {} thread {}", e.pid, tid));
    return tid;
  }

  // Spans on one track must be nested or disjoint, so every pair and every process needs a separate track.
  int own_track(int pid, const std::string& name) {
    const auto [at, fresh] = tracks_.emplace(std::pair(pid, name), kFirstOwnTrack + static_cast<int>(tracks_.size()));
    if (fresh) name_track(pid, at->second, name);
    return at->second;
  }

  // A short name, so that equal events have the same colour. The details are in the arguments.
  std::string name(const Event& e) const {
    switch (e.type) {
      case EventType::scf:
        return fmt::format("{} {}", e.syscall < 0 ? "?" : kernel::syscall_name(e.syscall),
                           e.err == 0 ? "failed" : kernel::errno_name(e.err));
      case EventType::sys: return e.syscall < 0 ? "?" : kernel::syscall_name(e.syscall);
      case EventType::af: return e.function == 0 ? "?" : std::string(trace_.str(e.function));
      case EventType::nd: return "silent";
      case EventType::ps: return e.state == trace::ProcessState::none ? "process" : std::string(state_name(e.state));
    }
    return "?";
  }

  void event(const Event& e) {
    const int pid = process(e);
    const std::string args = fmt::format(R"("args":{{"what":{},"ts_ns":"{}"}})", json(describe(trace_, e)), e.ts_ns);
    std::string title = name(e);
    if ((e.flags & trace::kInjected) != 0) title += " [injected]";
    std::string category(type_name(e.type));
    if ((e.flags & trace::kInjected) != 0) category += ",injected";
    const bool span = e.duration_ms >= 0 && (e.type == EventType::nd || e.type == EventType::ps);
    int tid = 0;
    if (e.type == EventType::nd) {
      const auto end = [&](trace::StringId address, int port) {
        const std::string text(address == 0 ? "?" : trace_.str(address));
        return port == 0 ? text : fmt::format("{} port {}", text, port);
      };
      tid = own_track(pid, fmt::format("network {} -> {}", end(e.src, e.sport), end(e.dst, e.dport)));
    } else if (span) {
      tid = own_track(pid, fmt::format("process {} {}", e.pid, state_name(e.state)));
    } else {
      tid = thread(pid, e);
    }
    if (span) {
      object(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":"{}",{}}})", pid, tid,
                         micros(e.ts_ns - duration_ns(e) - origin_), micros(duration_ns(e)), json(title), category,
                         args));
    } else {
      object(fmt::format(R"({{"ph":"i","s":"t","pid":{},"tid":{},"ts":{},"name":{},"cat":"{}",{}}})", pid, tid,
                         micros(e.ts_ns - origin_), json(title), category, args));
    }
  }

  const Trace& trace_;
  const ShowFilter& filter_;
  const Output& out_;
  std::string buffer_;
  bool first_ = true;
  std::int64_t origin_ = 0;
  std::map<std::string_view, int> processes_;
  std::set<std::pair<int, int>> threads_;
  std::map<std::pair<int, std::string>, int> tracks_;
};

}  // namespace

void show_perfetto(const Trace& trace, const ShowFilter& filter, const Output& out) {
  Export(trace, filter, out).write();
}

}  // namespace rose::report
