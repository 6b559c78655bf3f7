// Which conditions events become, and which events a condition counts.
#include <fcntl.h>

#include <catch2/catch.hpp>

#include "diagnose/context.h"
#include "diagnose_world.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::Condition;

namespace {

trace::Event& opened(Dump& dump, double t, std::string_view path, std::uint32_t flags, std::string_view node = "n1") {
  trace::Event& event = dump.sys(t, node, "openat", path);
  event.open_flags = flags;
  return event;
}

void renamed(Dump& dump, double t, std::string_view from, std::string_view to) {
  const trace::StringId second = dump.intern(to);
  dump.sys(t, "n1", "rename", from).path2 = second;
}

void socket_call(Dump& dump, double t, std::string_view call, std::string_view address) {
  const trace::StringId text = dump.intern(address);
  dump.sys(t, "n1", call, "").peer = text;
}

// The condition that the event at position `event` of the dump becomes. Positions are those of events sorted by time.
Condition condition_of(const Dump& dump, std::size_t event) {
  const trace::Trace trace = dump.take();
  const auto made = context_event(trace, trace.events.at(event), "n1");
  REQUIRE(made);
  return made->condition;
}

// The positions of those events that the condition counts.
std::vector<std::size_t> counted(const Dump& dump, const Condition& condition) {
  const trace::Trace trace = dump.take();
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < trace.events.size(); ++i)
    if (meets(trace, trace.events[i], condition)) places.push_back(i);
  return places;
}

std::vector<std::uint64_t> occurrences(const Dump& dump) {
  const auto config = deployment();
  const Inputs inputs = inputs_of(config, {dump});
  const auto nodes = NodeMap::make(inputs);
  REQUIRE(nodes);
  const ContextIndex index(inputs, *nodes);
  std::vector<std::uint64_t> list;
  for (const ContextEvent& event : index.before(0, 0, at(1000), 1000)) list.insert(list.begin(), event.occurrence);
  return list;
}

}  // namespace

TEST_CASE("a condition on an open matches the flags that made it an event") {
  Dump dump;
  opened(dump, 1, "/srv/n1/log", O_WRONLY | O_CREAT | O_APPEND);
  opened(dump, 2, "/srv/n1/log", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
  opened(dump, 3, "/srv/n1/log", O_RDWR | O_TRUNC);
  opened(dump, 4, "/srv/n1/log", 0);  // without flags, as in a dump of another tool
  const Condition truncated = condition_of(dump, 2);
  CHECK(truncated.call.args == std::map<int, std::string>{{2, "O_TRUNC"}});
  CHECK(truncated.result == "ok");
  CHECK(counted(dump, truncated) == std::vector<std::size_t>{1, 2, 3});
  const Condition made = condition_of(dump, 1);
  CHECK(made.call.args == std::map<int, std::string>{{2, "O_CREAT|O_TRUNC"}});
  CHECK(counted(dump, made) == std::vector<std::size_t>{1, 3});
  CHECK(condition_of(dump, 3).call.args.empty());

  Dump other;
  trace::Event& event = other.sys(1, "n1", "open", "/srv/n1/log");
  event.open_flags = O_CREAT;
  CHECK(condition_of(other, 0).call.args == std::map<int, std::string>{{1, "O_CREAT"}});
}

TEST_CASE("a condition on a rename matches both its source and its target") {
  Dump dump;
  renamed(dump, 1, "/srv/n1/epoch.tmp", "/srv/n1/epoch");
  renamed(dump, 2, "/srv/n1/epoch", "/srv/n1/epoch.old");
  renamed(dump, 3, "/srv/n1/backup", "/srv/n1/epoch");
  const Condition first = condition_of(dump, 0);
  CHECK(first.call.path == "*/epoch.tmp");
  CHECK(first.call.path2 == "*/epoch");
  for (std::size_t i = 0; i < 3; ++i) CHECK(counted(dump, condition_of(dump, i)) == std::vector<std::size_t>{i});
  CHECK(occurrences(dump) == std::vector<std::uint64_t>{1, 1, 1});
}

TEST_CASE("a temporary file name becomes a pattern, an ordinary word does not") {
  const auto source = [](std::string_view from) {
    Dump dump;
    renamed(dump, 1, from, "/srv/n1/epoch");
    const Condition condition = condition_of(dump, 0);
    CHECK(condition.call.path2 == "*/epoch");
    return condition.call.path.value_or("");
  };
  CHECK(source("/srv/n1/epoch.aB3xYz") == "*/epoch.*");
  CHECK(source("/srv/n1/tmpk3v9x_2q") == "*/tmp*");
  CHECK(source("/srv/n1/.epoch.4711") == "*/.epoch.*");
  CHECK(source("/srv/n1/snapshot.partial") == "*/snapshot.partial");
  CHECK(source("/srv/n1/CURRENT.dbtmp") == "*/CURRENT.dbtmp");
}

TEST_CASE("a condition on a socket call matches the port of the service, on the side that has it") {
  Dump dump;
  socket_call(dump, 1, "connect", "10.0.0.7:2181");
  socket_call(dump, 2, "connect", "10.0.0.8:2182");
  socket_call(dump, 3, "listen", "0.0.0.0:7000");
  socket_call(dump, 4, "connect", "unix:/srv/n1/run.sock");
  socket_call(dump, 5, "accept4", "10.0.0.9:41234");
  CHECK(condition_of(dump, 0).call.peer == "*:2181");
  CHECK(condition_of(dump, 0).result == "ok");
  CHECK(condition_of(dump, 2).call.local == ":7000");
  CHECK_FALSE(condition_of(dump, 2).call.peer);
  CHECK(condition_of(dump, 3).call.peer == "unix:*/run.sock");
  CHECK_FALSE(condition_of(dump, 4).call.peer);
  for (std::size_t i = 0; i < 5; ++i) CHECK(counted(dump, condition_of(dump, i)) == std::vector<std::size_t>{i});
}

TEST_CASE("an event's occurrence number counts all earlier events that meet its condition") {
  Dump dump;
  opened(dump, 1, "/srv/n1/log", O_CREAT | O_TRUNC);
  opened(dump, 2, "/srv/n1/log", O_CREAT);  // its condition counts the event before, too, which also has O_CREAT
  opened(dump, 3, "/srv/n1/log", O_CREAT | O_TRUNC);
  opened(dump, 3.5, "/srv/n2/log", O_CREAT, "n2");  // this event is one of another node
  opened(dump, 4, "/srv/n1/log", O_CREAT);
  opened(dump, 5, "/srv/n1/log", O_CREAT).count = 3;  // events within one second are recorded as one with a count
  opened(dump, 6, "/srv/n1/log", O_CREAT);
  CHECK(occurrences(dump) == std::vector<std::uint64_t>{1, 2, 2, 4, 7, 8});
}

TEST_CASE("a failed bind is injected at the port that was requested") {
  Dump dump;
  dump.scf(1, "n1", "bind", EADDRINUSE, "", "10.82.2.2:61613");
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 1);
  CHECK(plan.candidates[0].fault.call.local == ":61613");
}

TEST_CASE("a condition on a symlink matches the link's name, not its target") {
  Dump dump;
  const trace::StringId target = dump.intern("epoch"), first = dump.intern("soft");
  dump.sys(1, "n1", "symlink", "/srv/n1/soft").path2 = target;
  dump.sys(2, "n1", "symlink", "/srv/n1/softer").path2 = first;
  CHECK(condition_of(dump, 0).call.path == "*/soft");
  CHECK(counted(dump, condition_of(dump, 0)) == std::vector<std::size_t>{0});
}
