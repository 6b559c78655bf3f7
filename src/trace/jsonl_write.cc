// Writes JSON Lines. It is written by hand for two reasons: nlohmann/json refuses the lone surrogates that represent
// bytes that are not UTF-8, and writing a dump of a million events must not take seconds.
#include "trace/jsonl.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <unordered_map>

#include "base/utf8.h"
#include "kernel/open_flags.h"
#include "kernel/syscalls.h"
#include "kernel/uring.h"
#include "trace/limits.h"

namespace rose::trace {
namespace {

void append_number(std::string& out, auto value) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

// Appends members `"key":value` of one object.
class Object {
 public:
  explicit Object(std::string& out) : out_(out) { out_ += '{'; }
  void end() { out_ += '}'; }

  void key(std::string_view name) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += '"';
    out_ += name;
    out_ += "\":";
  }
  void null(std::string_view name) {
    key(name);
    out_ += "null";
  }
  void number(std::string_view name, auto value) {
    key(name);
    append_number(out_, value);
  }
  // Writes null if the value equals `absent`.
  template <typename T>
  void number_or_null(std::string_view name, T value, T absent) {
    value == absent ? null(name) : number(name, value);
  }
  void boolean(std::string_view name, bool value) {
    key(name);
    out_ += value ? "true" : "false";
  }
  void text(std::string_view name, std::string_view value) {
    key(name);
    append_json_string(out_, value);
  }
  // Writes one of rose's own names, which need no escapes.
  void word(std::string_view name, std::string_view value) {
    key(name);
    out_ += '"';
    out_ += value;
    out_ += '"';
  }
  void list(std::string_view name, const std::vector<std::string>& values) {
    key(name);
    out_ += '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += ',';
      append_json_string(out_, values[i]);
    }
    out_ += ']';
  }

 private:
  std::string& out_;
  bool first_ = true;
};

const std::string& cached_syscall_name(int number) {
  static const auto names = [] {
    std::vector<std::string> all;
    for (int i = 0; i < kernel::kMostSyscalls; ++i) all.push_back(kernel::syscall_name(i));
    return all;
  }();
  return names[static_cast<std::size_t>(number)];
}

const std::string& cached_errno_name(int err) {
  static const auto names = [] {
    std::vector<std::string> all;
    for (int i = 0; i <= kMostErrno; ++i) all.push_back(kernel::errno_name(i));
    return all;
  }();
  return names[static_cast<std::size_t>(err)];
}

constexpr int kUringEnter = 426;

// Consecutive calls of open usually have the same flags, so cache the last text.
const std::string& cached_open_flags(std::uint32_t flags) {
  thread_local std::pair<std::uint32_t, std::string> last = {0, kernel::open_flags_text(0)};
  if (last.first != flags) last = {flags, kernel::open_flags_text(flags)};
  return last.second;
}

// Appends an event. Each type has the keys of the documented format, in their order, with null for absent values. Other
// fields that the event has follow, so that nothing is lost.
void append_event(std::string& out, const Trace& trace, const Event& e) {
  Object object(out);
  const auto string = [&](std::string_view name, StringId id) {
    id == 0 ? object.null(name) : object.text(name, trace.str(id));
  };
  const auto known = [&](std::string_view name, StringId id) {
    if (id != 0) object.text(name, trace.str(id));
  };
  const auto syscall = [&] {
    e.syscall < 0 || e.syscall >= kernel::kMostSyscalls ? object.null("syscall")
                                                        : object.word("syscall", cached_syscall_name(e.syscall));
  };
  const auto error = [&] {
    e.err <= 0 || e.err > kMostErrno ? object.null("errno") : object.word("errno", cached_errno_name(e.err));
  };
  const auto signal = [&] {
    e.signal == 0 ? object.null("signal") : object.word("signal", kernel::signal_name(e.signal));
  };
  const auto state = [&] {
    e.state == ProcessState::none ? object.null("state") : object.word("state", state_name(e.state));
  };
  const auto protocol = [&] {
    e.protocol == Protocol::none ? object.null("proto")
                                 : object.word("proto", e.protocol == Protocol::tcp ? "tcp" : "udp");
  };
  const bool scf = e.type == EventType::scf;
  const bool sys = e.type == EventType::sys;
  const bool af = e.type == EventType::af;
  const bool nd = e.type == EventType::nd;
  const bool ps = e.type == EventType::ps;
  object.number("ts", e.ts_ns);
  string("node", e.node);
  object.word("type", type_name(e.type));
  if (!nd || e.pid != 0) object.number_or_null("pid", e.pid, 0);
  if (scf || sys || af || e.tid != 0) object.number_or_null("tid", e.tid, 0);
  if (scf || sys || e.syscall >= 0) syscall();
  if (scf || e.err != 0) error();
  // The io_uring operation that failed is in `result`, because io_uring_enter has no result of its own here.
  if (scf && e.syscall == kUringEnter && e.result > 0 && e.result <= 255)
    object.word("op", kernel::uring_operation_name(static_cast<int>(e.result)));
  else if (sys || e.result != 0 || e.requested != 0) object.number("result", e.result);
  if (e.requested != 0) object.number("requested", e.requested);
  if (scf || sys || e.fd >= 0) object.number_or_null("fd", e.fd, -1);
  if (scf || sys || e.path != 0) string("path", e.path);
  known("path2", e.path2);
  if (e.open_flags != 0) object.word("flags", cached_open_flags(e.open_flags));
  if (scf || sys || e.peer != 0) string("peer", e.peer);
  if (af || e.function != 0) string("function", e.function);
  if (nd || e.src != 0) string("src", e.src);
  if (nd || e.dst != 0) string("dst", e.dst);
  if (ps || e.state != ProcessState::none) state();
  if (ps || e.signal != 0) signal();
  if (ps || e.exit_code >= 0) object.number_or_null("exit_code", e.exit_code, -1);
  if (nd || ps || e.duration_ms >= 0) object.number_or_null("duration_ms", e.duration_ms, -1);
  if (ps || (e.flags & kPlanned) != 0) object.boolean("planned", (e.flags & kPlanned) != 0);
  if (nd || e.packets != 0) object.number("packets", e.packets);
  if (nd || (e.flags & kOpen) != 0) object.boolean("open", (e.flags & kOpen) != 0);
  if (nd || (e.flags & (kOutstanding | kIdle)) != 0) {
    if ((e.flags & (kOutstanding | kIdle)) == 0) object.null("outstanding");
    else object.boolean("outstanding", (e.flags & kOutstanding) != 0);
  }
  if (e.begin_within_ms >= 0) object.number("begin_within_ms", e.begin_within_ms);
  if (e.end_within_ms >= 0) object.number("end_within_ms", e.end_within_ms);
  if (e.usual_ms >= 0) object.number("usual_ms", e.usual_ms);
  if (nd || e.sport != 0) object.number_or_null("sport", e.sport, std::uint16_t{0});
  if (nd || e.dport != 0) object.number_or_null("dport", e.dport, std::uint16_t{0});
  if (nd || e.protocol != Protocol::none) protocol();
  if (e.count > 1) object.number("count", e.count);
  if ((e.flags & kMain) != 0) object.boolean("main", true);
  if ((e.flags & kCoreDumped) != 0) object.boolean("core", true);
  if ((e.flags & kOutOfMemory) != 0) object.boolean("oom", true);
  if ((e.flags & kBlocked) != 0) object.boolean("blocked", true);
  if ((e.flags & kUnlinked) != 0) object.boolean("unlinked", true);
  if ((e.flags & kTruncated) != 0) object.boolean("truncated", true);
  if ((e.flags & kDying) != 0) object.boolean("dying", true);
  known("by", e.by);
  if ((e.flags & kInjected) != 0) object.boolean("injected", true);
  object.end();
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto escaped = [&](std::string_view prefix, unsigned char byte) {
    out += prefix;
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  };
  out += '"';
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size()) {
      const auto c = static_cast<unsigned char>(text[plain]);
      if (c == '"' || c == '\\') break;
      const std::size_t length = c < 0x80 ? 1 : utf8_length(text.substr(plain));
      if (length == 0 || is_control(text.substr(plain, length))) break;
      plain += length;
    }
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    // also escape a character that terminals would interpret
    if (const std::size_t length = utf8_length(text); length > 1) {
      const std::uint32_t code = code_point(text.substr(0, length));
      const auto unit = [&](std::uint32_t half) { out += fmt::format("\\u{:04x}", half); };
      if (code >= 0x10000) unit(0xd800 + ((code - 0x10000) >> 10));
      unit(code >= 0x10000 ? 0xdc00 + ((code - 0x10000) & 0x3ff) : code);
      text.remove_prefix(length);
      continue;
    }
    const auto c = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default: escaped(c < 0x80 ? "\\u00" : "\\udc", c); break;
    }
  }
  out += '"';
}

std::string event_to_json(const Trace& trace, const Event& event) {
  std::string line;
  append_event(line, trace, event);
  return line;
}

std::string meta_to_json(const Meta& meta) {
  std::string line = "{\"meta\":";
  Object object(line);
  const auto text = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) object.text(name, value);
  };
  const auto number = [&](std::string_view name, auto value) {
    if (value != 0) object.number(name, value);
  };
  object.number("version", meta.version);
  object.text("node", meta.node);
  object.number("window", meta.window);
  object.number("lost", meta.lost);
  text("host", meta.host);
  text("boot_id", meta.boot_id);
  number("wall_base_ns", meta.wall_base_ns);
  number("monotonic_base_ns", meta.monotonic_base_ns);
  number("memory", meta.memory);
  number("suppressed", meta.suppressed);
  number("network_delay_ns", meta.network_delay_ns);
  number("pause_ns", meta.pause_ns);
  number("workload_ts", meta.workload_ts);
  number("begin_ns", meta.begin_ns);
  number("end_ns", meta.end_ns);
  text("trigger", meta.trigger);
  if (!meta.suppressed_calls.empty()) {
    std::vector<std::string> calls;
    for (const SuppressedCall& call : meta.suppressed_calls)
      calls.push_back(
          fmt::format("{} {} {}", kernel::syscall_name(call.syscall), kernel::errno_name(call.err), call.count));
    object.list("suppressed_calls", calls);
  }
  if (!meta.nodes.empty()) object.list("nodes", meta.nodes);
  if (!meta.addresses.empty()) object.list("addresses", meta.addresses);
  number("pairs_evicted", meta.pairs_evicted);
  if (!meta.handshakes.empty()) object.list("handshakes", meta.handshakes);
  if (!meta.clock.empty()) object.list("clock", meta.clock);
  if (!meta.labels.empty()) object.list("labels", meta.labels);
  object.end();
  line += '}';
  return line;
}

void write_jsonl(const Trace& trace, const std::function<void(std::string_view)>& out) {
  constexpr std::size_t kChunk = std::size_t{1} << 16;
  std::string buffer = meta_to_json(trace.meta);
  buffer += '\n';
  for (const Event& event : trace.events) {
    append_event(buffer, trace, event);
    buffer += '\n';
    if (buffer.size() < kChunk) continue;
    out(buffer);
    buffer.clear();
  }
  if (!buffer.empty()) out(buffer);
}

}  // namespace rose::trace
