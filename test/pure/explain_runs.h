// Runs written by hand, as if a tracer had recorded them.
#pragma once

#include <fcntl.h>

#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "explain/explain.h"
#include "explain/stack_traces/stack_traces.h"
#include "kernel/syscalls.h"

namespace script {

using namespace rose;

inline constexpr std::int64_t kZero = 1'700'000'000'000'000'000;

class Run {
 public:
  explicit Run(int number) {
    result_.number = number;
    result_.trace.meta.workload_ts = kZero;
    result_.workload_end_ns = 1000 * kMillisecond;
  }
  Run& enters(int ms, const std::string& function, int tid = 1, const std::string& node = "n1") {
    event(ms, trace::EventType::af, tid, node).function = result_.trace.strings.intern(function);
    return *this;
  }
  Run& fails(int ms, const std::string& call, int error, const std::string& path, int tid = 1,
             const std::string& node = "n1") {
    trace::Event& e = event(ms, trace::EventType::scf, tid, node);
    e.syscall = static_cast<std::int16_t>(*kernel::syscall_number(call));
    e.err = static_cast<std::int16_t>(error);
    e.path = result_.trace.strings.intern(path);
    return *this;
  }
  Run& does(int ms, const std::string& call, const std::string& path, int tid = 1, const std::string& node = "n1") {
    trace::Event& e = event(ms, trace::EventType::sys, tid, node);
    e.syscall = static_cast<std::int16_t>(*kernel::syscall_number(call));
    e.path = result_.trace.strings.intern(path);
    if (call == "openat") e.open_flags = O_WRONLY | O_CREAT;
    return *this;
  }
  Run& reads(int ms, const std::string& path, int tid = 1, const std::string& node = "n1") {
    does(ms, "openat", path, tid, node).result_.trace.events.back().open_flags = O_RDONLY;
    return *this;
  }
  Run& prints(int ms, std::uint32_t kind, const std::string& text, const std::string& node = "n1") {
    lines_.push_back({kZero + ms * kMillisecond,
                      node,
                      kind,
                      logs::Level::none,
                      text,
                      node + "/stderr.log:" + std::to_string(lines_.size() + 1),
                      {}});
    return *this;
  }
  Run& prints_trace(int ms, std::uint32_t kind, const std::string& text, const std::string& node = "n1") {
    prints(ms, kind, text, node);
    lines_.back().frames = explain::read_stack_trace(text);
    return *this;
  }
  Run& has(int ms, std::uint32_t question, const std::string& text, double number, int tid = 1,
           const std::string& node = "n1") {
    schedule::Value value;
    value.ts_ns = kZero + ms * kMillisecond;
    value.node = node;
    value.question = question;
    value.pid = 1;
    value.tid = tid;
    value.text = text;
    value.is_number = true;
    value.number = number;
    result_.values.push_back(value);
    return *this;
  }
  // Marks the fault in the trace. The mark is not a step of the program.
  Run& faulted(int ms, int tid = 1, const std::string& node = "n1", const std::string& id = "fault") {
    schedule::FaultOutcome fault;
    fault.id = id;
    fault.armed = fault.fired = true;
    fault.fired_ns = ms * kMillisecond;
    fault.tid = fault.pid = tid;
    fault.node = node;
    fault.detail = "write(/data/log)";
    result_.faults.push_back(fault);
    event(ms, trace::EventType::scf, tid, node).flags = trace::kInjected;
    result_.trace.events.back().syscall = 1;
    result_.trace.events.back().err = 28;
    return *this;
  }
  Run& stack(const std::vector<schedule::Frame>& frames) {
    schedule::Stack stack;
    stack.node = result_.faults.back().node;
    stack.tid = result_.faults.back().tid;
    stack.thread = "writer";
    stack.ns = result_.faults.back().fired_ns;
    stack.frames = frames;
    result_.faults.back().stacks.push_back(stack);
    return *this;
  }
  // Each pair of nodes has one connection. The sequence numbers begin near their highest value, so that they wrap
  // around.
  Run& sends(int ms, const std::string& from, const std::string& to, const std::string& text, int tid = 1,
             bool answer = false) {
    return add_message(ms, from, to, text, tid, answer, false);
  }
  // Receives, in one call, all data that was sent and not received yet.
  Run& takes(int ms, const std::string& from, const std::string& to, int tid = 1, bool answer = false) {
    return add_message(ms, from, to, {}, tid, answer, true);
  }
  // The receiver learns that the other side has closed the connection.
  Run& closed(int ms, const std::string& from, const std::string& to, int tid = 1, bool answer = false) {
    add_message(ms, from, to, {}, tid, answer, true);
    result_.messages.back().bytes = 0;
    return *this;
  }
  Run& talkative(const std::string& node) {
    result_.talkative.push_back(node);
    return *this;
  }
  Run& let_go(const std::string& function) {
    event(1, trace::EventType::af, 1, "n1").function = result_.trace.strings.intern(function);
    result_.trace.events.back().flags = trace::kTruncated;
    return *this;
  }
  Run& out_of_memory(int ms, int pid, const std::string& node = "n1") {
    trace::Event& e = event(ms, trace::EventType::ps, pid, node);
    e.pid = pid;
    e.state = trace::ProcessState::crashed;
    e.signal = 9;
    e.flags = trace::kOutOfMemory;
    return *this;
  }
  Run& of_process(int pid) {  // sets the process of the last event
    result_.trace.events.back().pid = pid;
    return *this;
  }
  Run& ends(int ms) {
    result_.workload_end_ns = ms * kMillisecond;
    return *this;
  }

  schedule::RunResult& result() {
    trace::sort_by_time(result_.trace);
    return result_;
  }
  std::vector<explain::LogLine>& lines() { return lines_; }

 private:
  trace::Event& event(int ms, trace::EventType type, int tid, const std::string& node) {
    trace::Event e;
    e.ts_ns = kZero + ms * kMillisecond;
    e.type = type;
    e.pid = 1;
    e.tid = tid;
    e.node = result_.trace.strings.intern(node);
    result_.trace.events.push_back(e);
    return result_.trace.events.back();
  }
  Run& add_message(int ms, const std::string& from, const std::string& to, const std::string& text, int tid,
                   bool answer, bool taken) {
    result_.trace.meta.addresses = {"n1=10.0.0.1", "n2=10.0.0.2", "n3=10.0.0.3"};
    const auto address = [](const std::string& node) { return "10.0.0." + node.substr(1); };
    std::uint32_t& end = ends_[from + ">" + to + (answer ? "!" : "")];
    if (!taken) end = (end == 0 ? 0xfffffff0U : end) + static_cast<std::uint32_t>(text.size());
    schedule::Message one;
    one.ts_ns = kZero + ms * kMillisecond;
    one.node = taken ? to : from;
    one.pid = 1;
    one.tid = tid;
    one.taken = taken;
    const std::uint16_t sender = answer ? 7000 : 40000, receiver = answer ? 40000 : 7000;
    one.own = address(taken ? to : from);
    one.peer = address(taken ? from : to);
    one.own_port = taken ? receiver : sender;
    one.peer_port = taken ? sender : receiver;
    one.end = end;
    one.bytes = taken ? 1 : static_cast<std::uint32_t>(text.size());
    one.data = text.substr(0, 64);
    result_.messages.push_back(one);
    return *this;
  }

  std::map<std::string, std::uint32_t> ends_;
  schedule::RunResult result_;
  std::vector<explain::LogLine> lines_;
};

inline schedule::Schedule one_fault() {
  schedule::Schedule out;
  schedule::Fault fault;
  fault.id = "fault";
  fault.node = "n1";
  fault.call.syscall = "write";
  fault.error = 28;
  out.faults.push_back(fault);
  return out;
}

class Case {
 public:
  Case() { input.schedule = one_fault(); }
  void add(explain::Group group, Run run) {
    input.runs.push_back(explain::condense(run.result(), run.lines(), group, input.kinds));
    if (group != explain::Group::failing || story_taken_) return;
    story_taken_ = true;
    input.story_run = input.runs.size() - 1;
    input.story = std::move(run.result());
    input.lines = std::move(run.lines());
  }
  explain::Explanation explain() {
    if (!input.message) input.message = [](std::uint32_t kind) { return "message " + std::to_string(kind); };
    return explain::explain(input);
  }
  explain::Input input;

 private:
  bool story_taken_ = false;
};

}  // namespace script
