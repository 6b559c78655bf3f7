// Which events of a run's trace are marked as injected: those of the calls and processes that were changed, and no
// others that are similar.
#include "replay/injected.h"

#include <signal.h>
#include <sys/syscall.h>

#include <catch2/catch.hpp>
#include <cerrno>

using namespace rose;
using namespace rose::replay;
using trace::Event;
using trace::EventType;
using trace::ProcessState;

namespace {

constexpr std::int64_t kOffset = 1'763'755'200'000'000'000;  // how far the wall clock is ahead of the monotonic clock

struct World {
  trace::Trace trace;
  schedule::Schedule schedule;
  inject::InjectionRecord record;

  Event& call(std::int64_t at, int tid, int syscall, int err) {
    Event& event = trace.events.emplace_back();
    event.ts_ns = kOffset + at;
    event.type = err != 0 ? EventType::scf : EventType::sys;
    event.node = trace.strings.intern("n1");
    event.pid = 40;
    event.tid = tid;
    event.syscall = static_cast<std::int16_t>(syscall);
    event.err = static_cast<std::int16_t>(err);
    return event;
  }
  Event& process(std::int64_t at, std::string_view node, int pid, ProcessState state, int signal = 0) {
    Event& event = trace.events.emplace_back();
    event.ts_ns = kOffset + at;
    event.type = EventType::ps;
    event.node = trace.strings.intern(node);
    event.pid = event.tid = pid;
    event.state = state;
    event.signal = static_cast<std::uint8_t>(signal);
    event.flags = trace::kMain;
    return event;
  }
  std::size_t fault(int error, std::optional<std::int64_t> result = {}) {
    schedule::Fault& made = schedule.faults.emplace_back();
    made.kind = schedule::FaultKind::syscall;
    made.error = error;
    made.result = result;
    return schedule.faults.size() - 1;
  }
  // The positions of the events that are marked.
  std::vector<std::size_t> marked() {
    mark_injected(trace, schedule, record, kOffset);
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < trace.events.size(); ++i)
      if ((trace.events[i].flags & trace::kInjected) != 0) found.push_back(i);
    return found;
  }
};

using Found = std::vector<std::size_t>;

}  // namespace

TEST_CASE("of many equal failures those whose calls were changed are marked as injected", "[replay]") {
  World world;
  const auto fault = world.fault(EIO);
  world.call(100, 7, SYS_write, EIO);      // before the fault
  world.call(210, 7, SYS_write, EIO);      // this call was changed, at 200
  world.call(220, 7, SYS_write, EIO);      // right after it, a failure of the disk itself
  world.call(230, 8, SYS_write, EIO);      // by another thread
  world.call(240, 7, SYS_read, EIO);       // another call
  world.call(900'000, 8, SYS_write, EIO);  // this call was changed at 300, and took long
  world.call(900'100, 8, SYS_write, EIO);
  world.record.calls = {{fault, 200, 7, SYS_write}, {fault, 300, 8, SYS_write}};
  CHECK(world.marked() == Found{1, 5});
}

TEST_CASE("a false result is marked as injected, and one that was not traced marks no other event", "[replay]") {
  World world;
  const auto lie = world.fault(0, 0);
  const auto short_read = world.fault(0, 3);
  world.call(210, 7, SYS_fsync, 0);
  world.call(220, 7, SYS_fsync, 0);
  world.call(400, 7, SYS_read, EINTR);
  world.record.calls = {{lie, 200, 7, SYS_fsync}, {short_read, 300, 7, SYS_read}};
  CHECK(world.marked() == Found{0});
}

TEST_CASE("a short write, and the failures that follow it, are marked as injected", "[replay]") {
  World world;
  const auto full = world.fault(ENOSPC, 235);
  world.schedule.faults[full].effect_bytes = 235;
  REQUIRE(schedule::is_short_then_fails(world.schedule.faults[full]));
  for (const std::int64_t at : {205, 210}) {
    Event& part = world.call(at, 7, SYS_write, 0);
    part.type = EventType::scf;
    part.requested = 707;
    part.result = at == 205 ? 100 : 235;  // the first one is a short write of another call
  }
  world.call(220, 7, SYS_write, ENOSPC);
  world.call(230, 7, SYS_write, ENOSPC);
  world.record.calls = {{full, 208, 7, SYS_write}, {full, 215, 7, SYS_write}};
  CHECK(world.marked() == Found{1, 2});
}

TEST_CASE("a record that combines several calls accounts for as many injected calls", "[replay]") {
  World world;
  const auto fault = world.fault(EIO);
  world.call(210, 7, SYS_write, EIO).count = 3;
  world.call(900, 7, SYS_write, EIO);
  world.record.calls = {{fault, 200, 7, SYS_write}, {fault, 300, 7, SYS_write}, {fault, 400, 7, SYS_write}};
  SECTION("all of its calls are injected") { CHECK(world.marked() == Found{0}); }
  SECTION("a later call is injected too") {
    world.record.calls.push_back({fault, 800, 7, SYS_write});
    CHECK(world.marked() == Found{0, 1});
  }
}

TEST_CASE("injected ends and pauses are marked, others at the same time are not", "[replay]") {
  World world;
  world.process(50, "n1", 41, ProcessState::crashed, SIGKILL);  // before the fault
  world.process(110, "n1", 42, ProcessState::crashed, SIGKILL);
  // a process that was created while the node was being killed
  world.process(120, "n1", 43, ProcessState::crashed, SIGKILL);
  world.process(130, "n1", 44, ProcessState::crashed, SIGSEGV);  // this process crashed by itself
  world.process(140, "n2", 45, ProcessState::crashed, SIGKILL);  // a process of another node
  world.process(200, "n1", 46, ProcessState::started);
  world.process(300, "n1", 46, ProcessState::crashed, SIGKILL);  // killed by the kernel, after the node's restart
  inject::ProcessAction action;
  action.node = "n1";
  action.at_ns = 100;
  action.whole = true;
  action.signal = SIGKILL;
  action.pids = {42};
  SECTION("the whole node") {
    world.record.processes = {action};
    CHECK(world.marked() == Found{1, 2});
  }
  SECTION("one process") {
    action.whole = false;
    world.record.processes = {action};
    CHECK(world.marked() == Found{1});
  }
  SECTION("a pause") {
    world.trace.events.clear();
    // this pause ended when the injected one began
    world.process(5'000'090, "n1", 42, ProcessState::paused).duration_ms = 5;
    world.process(12'000'000, "n1", 42, ProcessState::paused).duration_ms = 12;
    // a later pause, because of a slow disk
    world.process(30'000'000, "n1", 42, ProcessState::paused).duration_ms = 10;
    action.at_ns = 6'000'000;
    action.ended_ns = 12'000'000;
    action.pause = true;
    world.record.processes = {action};
    CHECK(world.marked() == Found{1});
  }
}
