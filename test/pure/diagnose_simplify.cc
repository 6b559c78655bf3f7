// A schedule that was found is simplified step by step, as long as the simpler one still reproduces the bug.
#include <catch2/catch.hpp>

#include "diagnose/simplify.h"
#include "diagnose_world.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::Condition;
using schedule::ConditionKind;
using schedule::Fault;
using schedule::FaultKind;
using schedule::Schedule;

namespace {

Condition elapsed(double seconds) {
  Condition c;
  c.elapsed_ns = static_cast<std::int64_t>(seconds * 1e9);
  return c;
}
Condition entered(const std::string& function) {
  Condition c;
  c.kind = ConditionKind::function;
  c.function = function;
  return c;
}
Fault fault(const std::string& id, FaultKind kind, const std::string& node, std::vector<Condition> when = {},
            std::vector<std::string> after = {}) {
  Fault f;
  f.id = id;
  f.kind = kind;
  f.node = node;
  f.when = std::move(when);
  f.after = std::move(after);
  if (kind == FaultKind::pause || kind == FaultKind::partition) f.duration_ns = 12 * kSecond;
  if (kind == FaultKind::syscall) {
    f.call.syscall = "write";
    f.call.path = "*/wal";
    f.error = EIO;
  }
  return f;
}

// Runs the simplifier, with `reproduces` in place of runs. `asked` contains what it proposed, in this order.
struct Simplified {
  Schedule schedule;
  std::vector<std::string> changes;
  std::vector<std::string> asked;
};
Simplified simplify(const Schedule& schedule, const std::function<bool(const Schedule&)>& reproduces,
                    std::set<std::string> fired = {}) {
  if (fired.empty())
    for (const Fault& f : schedule.faults) fired.insert(f.id);
  Simplifier simplifier(schedule, fired);
  Simplified result;
  while (const auto idea = simplifier.next()) {
    REQUIRE(result.asked.size() < 200);
    result.asked.push_back(idea->what);
    INFO(idea->what);
    // Every proposed schedule must stay the same when it is written and read again.
    const auto back = schedule::parse_schedule(schedule::to_toml(idea->schedule), "idea.toml");
    REQUIRE(back);
    CHECK(schedule::fingerprint(*back) == schedule::fingerprint(idea->schedule));
    simplifier.learn(reproduces(idea->schedule));
  }
  result.schedule = simplifier.current();
  result.changes = simplifier.changes();
  return result;
}

bool has(const Schedule& s, std::string_view id) { return s.find(id) != nullptr; }

}  // namespace

TEST_CASE("many faults are dropped at once, and the remaining ones keep their total delay") {
  Schedule s;
  s.name = "many";
  for (int i = 0; i < 16; ++i)
    s.faults.push_back(
        fault(fmt::format("f{}", i), FaultKind::crash, "n1", {elapsed(1)},
              i == 0 ? std::vector<std::string>{} : std::vector<std::string>{fmt::format("f{}", i - 1)}));
  const Simplified r = simplify(s, [](const Schedule& t) {
    std::int64_t total = 0;
    for (const Fault* f = t.find("f9"); f != nullptr; f = f->after.empty() ? nullptr : t.find(f->after[0]))
      for (const Condition& c : f->when) total += c.elapsed_ns;
    return total == 10 * kSecond;
  });
  REQUIRE(r.schedule.faults.size() == 1);
  CHECK(r.schedule.faults[0].id == "f9");
  CHECK(r.schedule.faults[0].when.size() == 1);
  CHECK(r.asked.size() <= 12);  // if the faults were left out one by one, at least 16 schedules would be needed
}

TEST_CASE("faults that never fired are dropped first") {
  Schedule s;
  s.faults = {fault("a", FaultKind::crash, "n1"), fault("b", FaultKind::crash, "n2"),
              fault("c", FaultKind::crash, "n3")};
  const Simplified r = simplify(s, [](const Schedule& t) { return has(t, "b"); }, {"b"});
  CHECK(r.asked.at(0) == "without a; without c");
  REQUIRE(r.schedule.faults.size() == 1);
}

TEST_CASE("conditions that are not needed are dropped, the others keep their order") {
  Schedule s;
  s.faults = {fault("crash", FaultKind::crash, "n1", {entered("a"), entered("b"), entered("c")})};
  const Simplified r = simplify(s, [](const Schedule& t) {
    const auto& when = t.faults[0].when;
    return when.size() >= 2 && when[when.size() - 2].function == "b" && when.back().function == "c";
  });
  REQUIRE(r.schedule.faults[0].when.size() == 2);
  CHECK(r.changes == std::vector<std::string>{"crash does not wait for a"});
}

TEST_CASE("an order that is not needed is dropped, unless a time counts from it") {
  Schedule s;
  s.faults = {fault("cut", FaultKind::partition, "n1", {elapsed(5)}),
              fault("crash", FaultKind::crash, "n2", {entered("f")}, {"cut"})};
  s.faults[0].duration_ns = kSecond;
  SECTION("the second fault has a context") {
    const Simplified r = simplify(s, [](const Schedule& t) {
      return t.faults.size() == 2 && !t.faults[0].when.empty() && !t.faults[1].when.empty();
    });
    CHECK(r.schedule.faults[1].after.empty());
  }
  SECTION("the second fault has a time") {
    s.faults[1].when = {elapsed(3)};
    const Simplified r = simplify(s, [](const Schedule& t) {
      return t.faults.size() == 2 && !t.faults[0].when.empty() && !t.faults[1].when.empty();
    });
    CHECK(r.schedule.faults[1].after == std::vector<std::string>{"cut"});
  }
}

TEST_CASE("durations are halved as long as the bug reproduces, and keep a margin") {
  Schedule s;
  s.faults = {fault("cut", FaultKind::partition, "n1", {elapsed(5)})};
  SECTION("the shortest duration is enough") {
    const Simplified r = simplify(s, [](const Schedule& t) { return !t.faults[0].when.empty(); });
    CHECK(r.schedule.faults[0].duration_ns == 3 * kSecond);  // a shorter duration would give no information
    CHECK(r.changes == std::vector<std::string>{"cut lasts 3s instead of 12s"});
  }
  SECTION("five seconds are needed, so six are too few on a slower machine") {
    const Simplified r = simplify(
        s, [](const Schedule& t) { return !t.faults[0].when.empty() && t.faults[0].duration_ns >= 5 * kSecond; });
    CHECK(r.schedule.faults[0].duration_ns == 8 * kSecond);
    CHECK(r.changes == std::vector<std::string>{"cut lasts 8s instead of 12s"});
  }
  SECTION("eight seconds are needed") {
    const Simplified r = simplify(
        s, [](const Schedule& t) { return !t.faults[0].when.empty() && t.faults[0].duration_ns >= 8 * kSecond; });
    CHECK(r.schedule.faults[0].duration_ns == 12 * kSecond);
    CHECK(r.changes.empty());
  }
  SECTION("the whole duration is needed") {
    const Simplified r = simplify(
        s, [](const Schedule& t) { return !t.faults[0].when.empty() && t.faults[0].duration_ns >= 12 * kSecond; });
    CHECK(r.schedule.faults[0].duration_ns == 12 * kSecond);
    CHECK(r.changes.empty());
  }
}

TEST_CASE("calls fail once instead of always, times are rounded, and paths become patterns") {
  Schedule s;
  s.faults = {fault("bad", FaultKind::syscall, "n1", {elapsed(4.7)})};
  s.faults[0].times = -1;
  s.faults[0].call.path = "/srv/n1/data/segment-17.log";
  const Simplified r = simplify(s, [](const Schedule& t) { return !t.faults[0].when.empty(); });
  CHECK(r.schedule.faults[0].times == 1);
  CHECK(r.schedule.faults[0].when[0].elapsed_ns == 5 * kSecond);
  CHECK(r.schedule.faults[0].call.path == "*/data/segment-*.log");
  CHECK(r.changes.size() == 3);
}

TEST_CASE("alternatives of one group are changed together, and reduced if only one ever fired") {
  Schedule s;
  for (const char* node : {"n1", "n2", "n3"}) {
    s.faults.push_back(fault(fmt::format("crash-{}", node), FaultKind::crash, node, {entered("a"), entered("b")}));
    s.faults.back().group = "anywhere";
  }
  SECTION("all of them fire, and all stay") {
    const Simplified r = simplify(s, [](const Schedule& t) {
      return t.faults.size() == 3 && t.faults[0].when.size() == 1 && t.faults[0].when == t.faults[2].when;
    });
    CHECK(r.schedule.faults.size() == 3);
    CHECK(r.schedule.faults[1].when.size() == 1);
  }
  SECTION("only one of them ever fired") {
    const Simplified r = simplify(s, [](const Schedule& t) { return has(t, "crash-n2"); }, {"crash-n2"});
    REQUIRE(r.schedule.faults.size() == 1);
    CHECK(r.schedule.faults[0].group.empty());
  }
}

TEST_CASE("a count that does not matter becomes 1, and the change says so") {
  Schedule s;
  s.faults = {fault("crash", FaultKind::crash, "n1", {entered("save")})};
  s.faults[0].when[0].count = 5;
  SECTION("any count reproduces") {
    const Simplified r = simplify(s, [](const Schedule& t) { return !t.faults[0].when.empty(); });
    CHECK(r.schedule.faults[0].when.at(0).count == 1);
    REQUIRE(r.changes.size() == 1);
    CHECK(r.changes[0] ==
          "crash comes at the 1st save instead of the 5th; both reproduce it, so the count does not matter");
  }
  SECTION("the third or a later one reproduces") {
    const Simplified r =
        simplify(s, [](const Schedule& t) { return !t.faults[0].when.empty() && t.faults[0].when[0].count >= 3; });
    CHECK(r.schedule.faults[0].when.at(0).count == 3);
    CHECK(r.changes == std::vector<std::string>{"crash comes at the 3rd save instead of the 5th"});
  }
  SECTION("counts of a failed call and of a crash before a call") {
    s.faults = {fault("bad", FaultKind::syscall, "n1"), fault("crash", FaultKind::crash, "n1")};
    s.faults[0].count = 4;
    s.faults[1].before = schedule::CallMatch{};
    s.faults[1].before->syscall = "rename";
    s.faults[1].before_count = 2;
    const Simplified r = simplify(s, [](const Schedule& t) { return t.faults.size() == 2; });
    CHECK(r.schedule.faults[0].count == 1);
    CHECK(r.schedule.faults[1].before_count == 1);
  }
}

TEST_CASE("a certain fault is not dropped while an uncertain one stays") {
  Schedule s;
  s.faults = {fault("kill", FaultKind::crash, "n1", {elapsed(1)}),
              fault("silence", FaultKind::partition, "n2", {elapsed(5)}, {"kill"})};
  const auto kept = [&](const std::function<bool(const Schedule&)>& reproduces) {
    Simplifier simplifier(s, {"kill", "silence"}, true, {"kill"});
    std::vector<std::string> asked;
    while (const auto idea = simplifier.next()) {
      asked.push_back(idea->what);
      REQUIRE(asked.size() < 20);
      simplifier.learn(reproduces(idea->schedule));
    }
    CHECK(asked == std::vector<std::string>{"without silence"});
    return simplifier.current();
  };
  SECTION("the certain fault is enough alone") {
    const Schedule found = kept([](const Schedule&) { return true; });
    CHECK(found.faults.size() == 1);
    CHECK(has(found, "kill"));
  }
  SECTION("the certain fault is not enough: both stay, although the other one would be enough alone") {
    CHECK(kept([](const Schedule& t) { return has(t, "silence"); }).faults.size() == 2);
  }
}
