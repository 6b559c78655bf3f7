#include "replay/injected.h"

#include <algorithm>
#include <map>
#include <utility>

namespace rose::replay {
namespace {

using trace::Event;
using trace::EventType;

// True if the fault makes a call end as the call in the event did.
bool agrees(const Event& event, const schedule::Fault& fault) {
  // The tracer records a call that moved fewer bytes than were asked for as a failure without an error.
  const bool succeeded = event.type == EventType::sys || (event.type == EventType::scf && event.err == 0);
  if (fault.error != 0 && !(succeeded && schedule::is_short_then_fails(fault)))
    return event.type == EventType::scf && event.err == fault.error;
  return succeeded && (!fault.result || event.result == *fault.result);
}

void mark_calls(trace::Trace& trace, const schedule::Schedule& schedule, const inject::InjectionRecord& record,
                std::int64_t offset_ns) {
  std::map<std::pair<int, int>, std::vector<Event*>> by_thread;  // by thread and system call, sorted by time
  for (const inject::ChangedCall& call : record.calls) by_thread[{call.tid, call.syscall}];
  for (Event& event : trace.events) {
    if (event.type != EventType::scf && event.type != EventType::sys) continue;
    if (const auto at = by_thread.find({event.tid, event.syscall}); at != by_thread.end()) at->second.push_back(&event);
  }
  for (auto& [thread, events] : by_thread)
    std::stable_sort(events.begin(), events.end(), [](const Event* a, const Event* b) { return a->ts_ns < b->ts_ns; });
  // One event may stand for several equal ones, and then its time may be that of the first of them.
  std::map<const Event*, std::uint32_t> taken;
  for (const inject::ChangedCall& call : record.calls) {
    const std::int64_t at = call.at_ns + offset_ns;
    const std::vector<Event*>& events = by_thread[{call.tid, call.syscall}];
    const auto next =
        std::find_if(events.begin(), events.end(), [at](const Event* event) { return event->ts_ns >= at; });
    const schedule::Fault& fault = schedule.faults[call.fault];
    if (next != events.begin()) {
      const Event* before = *(next - 1);
      const auto known = taken.find(before);
      if (known != taken.end() && known->second < before->count && agrees(*before, fault)) {
        ++known->second;
        continue;
      }
    }
    if (next == events.end() || !agrees(**next, fault)) continue;
    (*next)->flags |= trace::kInjected;
    ++taken[*next];
  }
}

bool is_ended_by(const Event& event, const inject::ProcessAction& action, std::int64_t offset_ns,
                 std::int64_t next_start) {
  if (event.state != trace::ProcessState::crashed && event.state != trace::ProcessState::exited) return false;
  if (event.ts_ns < action.at_ns + offset_ns) return false;
  if (std::find(action.pids.begin(), action.pids.end(), event.pid) != action.pids.end()) return true;
  return action.whole && event.signal == action.signal && event.ts_ns < next_start;
}

bool is_paused_by(const Event& event, const inject::ProcessAction& action, std::int64_t offset_ns) {
  if (event.state != trace::ProcessState::paused) return false;
  const std::int64_t began = event.ts_ns - std::int64_t{std::max(event.duration_ms, 0)} * 1'000'000;
  const bool meanwhile =
      event.ts_ns >= action.at_ns + offset_ns && (action.ended_ns == 0 || began < action.ended_ns + offset_ns);
  return meanwhile &&
         (action.whole || std::find(action.pids.begin(), action.pids.end(), event.pid) != action.pids.end());
}

void mark_processes(trace::Trace& trace, const inject::InjectionRecord& record, std::int64_t offset_ns) {
  for (const inject::ProcessAction& action : record.processes) {
    const auto is_there = [&](const Event& event) {
      return event.type == EventType::ps && trace.str(event.node) == action.node;
    };
    std::int64_t next_start = INT64_MAX;
    for (const Event& event : trace.events)
      if (is_there(event) && event.state == trace::ProcessState::started && (event.flags & trace::kMain) != 0 &&
          event.ts_ns >= action.at_ns + offset_ns)
        next_start = std::min(next_start, event.ts_ns);
    for (Event& event : trace.events)
      if (is_there(event) &&
          (action.pause ? is_paused_by(event, action, offset_ns) : is_ended_by(event, action, offset_ns, next_start)))
        event.flags |= trace::kInjected;
  }
}

}  // namespace

void mark_injected(trace::Trace& trace, const schedule::Schedule& schedule, const inject::InjectionRecord& record,
                   std::int64_t offset_ns) {
  mark_calls(trace, schedule, record, offset_ns);
  mark_processes(trace, record, offset_ns);
}

}  // namespace rose::replay
