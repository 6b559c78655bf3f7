#include "report/dump/phrases.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "kernel/syscalls.h"
#include "kernel/uring.h"

namespace rose::report {

using trace::Event;
using trace::EventType;
using trace::ProcessState;
using trace::Trace;

std::string node_of(const trace::TraceBase& trace, const Event& event) {
  const std::string_view name = event.node == 0 ? std::string_view(trace.meta.node) : trace.str(event.node);
  return name.empty() ? "-" : printable(name);
}

std::string offset_text(std::int64_t ns) {
  const bool before = ns < 0;
  const std::uint64_t us = static_cast<std::uint64_t>(before ? -ns : ns) / 1000;
  return fmt::format("{}{}.{:06}", before ? '-' : '+', us / 1'000'000, us % 1'000'000);
}

std::string endpoint(const trace::TraceBase& trace, trace::StringId address, std::uint16_t port) {
  std::string text = address == 0 ? "?" : printable(trace.str(address));
  if (port == 0) return text;
  return text.find(':') == std::string::npos ? fmt::format("{}:{}", text, port) : fmt::format("[{}]:{}", text, port);
}

std::vector<std::string> label_lines(const trace::Meta& meta) {
  constexpr std::size_t kMostLines = 40;
  std::vector<std::string> nodes;
  std::vector<std::string> lines;
  for (const std::string& text : meta.labels) {
    const std::optional<trace::Label> label = trace::to_label(text);
    if (!label) continue;
    const auto at = std::find(nodes.begin(), nodes.end(), label->node);
    const std::string words = printable(label->key + " " + label->value);
    if (at != nodes.end()) {
      lines[static_cast<std::size_t>(at - nodes.begin())] += ", " + words;
    } else {
      nodes.push_back(label->node);
      lines.push_back(printable(label->node) + ": " + words);
    }
  }
  if (lines.size() > kMostLines) {
    const std::size_t more = lines.size() - kMostLines;
    lines.resize(kMostLines);
    lines.push_back(fmt::format("and {} more nodes have labels", more));
  }
  return lines;
}

void append_call(std::string& out, const Event& e) {
  out += e.syscall < 0 ? "?" : kernel::syscall_name(e.syscall);
  constexpr int kUringEnter = 426;
  if (e.type == EventType::scf && e.syscall == kUringEnter && e.result > 0)
    out += " " + kernel::uring_operation_name(static_cast<int>(std::min<std::int64_t>(e.result, 999)));
  if (e.type == EventType::scf && e.err == 0 && e.requested != 0)
    out += fmt::format(" did only {} of {} bytes", e.result, e.requested);
  else if (e.type == EventType::scf && e.err == 0 && e.signal != 0) out += " " + kernel::signal_name(e.signal);
  else if (e.type == EventType::scf) out += e.err == 0 ? " failed" : " " + kernel::errno_name(e.err);
  else out += fmt::format(" = {}", e.result);
}

// True if the event's address is the node's own. For accept, this holds only if the call failed; otherwise the address
// is the peer's.
static bool names_own_address(const Event& e) {
  const kernel::SyscallInfo* info = kernel::find_syscall(e.syscall);
  return info != nullptr && kernel::names_own_address(info->name) &&
         (e.type == EventType::scf || !info->name.starts_with("accept"));
}

void append_place(std::string& out, const trace::TraceBase& trace, const Event& e, std::string_view peers) {
  if (e.path != 0) {
    out += ' ';
    if ((e.flags & trace::kTruncated) != 0) out += "...";
    out += printable(trace.str(e.path));
    if ((e.flags & trace::kUnlinked) != 0) out += " (unlinked)";
  }
  if (e.path2 != 0) out += " -> " + printable(trace.str(e.path2));
  if (e.peer != 0)
    out += (names_own_address(e) ? " local " : " peer ") + printable(peers.empty() ? trace.str(e.peer) : peers);
}

void append_state(std::string& out, const Event& e) {
  if ((e.flags & trace::kBlocked) != 0 && e.state == ProcessState::paused) out += "blocked in uninterruptible wait";
  else out += e.state == ProcessState::none ? "changed" : state_name(e.state);
  if (e.state == ProcessState::crashed || e.signal != 0)
    out += e.signal == 0 ? "" : " by " + kernel::signal_name(e.signal);
  if (e.exit_code >= 0) out += fmt::format(" with status {}", e.exit_code);
  if ((e.flags & trace::kOutOfMemory) != 0) out += ", out of memory";
}

}  // namespace rose::report
