// Clock faults. They change every way of reading a clock, also in children and new program images, but only on the
// selected node, and until the fault ends. A wait for a time lasts until the node's own clock shows that time.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include "inject_rig.h"

using namespace rose;
using namespace rose::test;

namespace {

const std::string kClock = std::string(ROSE_PROGRAMS_DIR) + "/clock_victim";
const std::string kStatic = std::string(ROSE_PROGRAMS_DIR) + "/clock_static";
constexpr double kMsInUs = 1e3;
constexpr double kHour = 3600e6;  // us

double monotonic_minus_real() {
  timespec real{}, monotonic{};
  ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
  ::clock_gettime(CLOCK_REALTIME, &real);
  return static_cast<double>(monotonic.tv_sec - real.tv_sec) * 1e6 +
         static_cast<double>(monotonic.tv_nsec - real.tv_nsec) / 1e3;
}

// How far the clocks of a process were ahead of the real ones, and how long it took to read them.
struct Reading {
  double libc = 0, day = 0, raw = 0, monotonic = 0;  // us
  long time = 0;                                     // s
  double took = 0;                                   // us
};

struct Clocks : Rig {
  Clocks() { leave_to_seccomp(); }
  void watch(const std::string& program, std::vector<std::string> words) {
    add({});
    config.nodes.back().command = {program};
    config.nodes.back().command.insert(config.nodes.back().command.end(), words.begin(), words.end());
  }
  // Waits until the node prints a line of this kind, and returns the reading in it. If there are several such lines,
  // returns the reading that took the least time, because it is the most exact one.
  std::optional<Reading> reading(const std::string& what, std::size_t node = 0) {
    const std::string until_now = out(node);  // complete lines, or a placeholder if the file does not exist yet
    const std::size_t before = until_now.rfind('\n') == std::string::npos ? 0 : until_now.size();
    std::optional<Reading> found;
    (void)eventually([&] {
      const std::string all = out(node);
      const std::size_t end = all.rfind('\n');
      if (end == std::string::npos || end < before) return false;
      for (const std::string& line : split(all.substr(before, end - before), '\n')) {
        Reading one;
        if (line.starts_with(what + " ") &&
            std::sscanf(line.c_str() + what.size(), " %lf %lf %ld %lf %lf %lf", &one.libc, &one.day, &one.time,
                        &one.raw, &one.monotonic, &one.took) == 6) {
          if (!found || one.took < found->took) found = one;
        }
      }
      return found.has_value();
    });
    REQUIRE(found);
    found->monotonic -= monotonic_minus_real();
    return found;
  }
};

void all_ahead(const Reading& reading, double by) {
  const double near = kMsInUs + reading.took;
  CHECK(std::abs(reading.libc - by) < near);
  CHECK(std::abs(reading.day - by) < near);
  CHECK(std::abs(reading.raw - by) < near);
  // because both clocks have a resolution of seconds
  CHECK(std::abs(static_cast<double>(reading.time) * 1e6 - by) < 2.5e6);
  CHECK(std::abs(reading.monotonic) < near);
}

}  // namespace

TEST_CASE("a clock is shifted from a process's first instruction, and only on its node", "[clocks]") {
  Clocks rig;
  rig.watch(kClock, {"spawn"});
  rig.watch(kStatic, {"spawn"});
  rig.watch(kClock, {"watch"});
  rig.start(R"(
[[fault]]
id = "ahead"
kind = "clock"
node = "n1"
shift = "+1h"
[[fault]]
id = "behind"
kind = "clock"
node = "n2"
shift = "-90m"
)");
  for (const char* what : {"now", "once"}) {
    all_ahead(*rig.reading(what, 0), kHour);
    all_ahead(*rig.reading(what, 1), -1.5 * kHour);
  }
  all_ahead(*rig.reading("now", 2), 0);
  // No line of the two changed nodes shows the real time, not even the first one.
  for (const std::size_t node : {std::size_t{0}, std::size_t{1}}) {
    const double by = node == 0 ? kHour : -1.5 * kHour;
    for (const auto& line : split(rig.out(node), '\n')) {
      double libc = 0, took = 0;
      if (std::sscanf(line.c_str(), "%*s %lf %*f %*d %*f %*f %lf", &libc, &took) != 2) continue;
      INFO(line);
      CHECK(std::abs(libc - by) < kMsInUs + took);
    }
  }
  const auto outcomes = rig.finish();
  CHECK(outcomes.at(0).fired);
  CHECK(outcomes.at(1).fired);
}

TEST_CASE("a clock is shifted while conditions hold, and correct afterwards", "[clocks]") {
  Clocks rig;
  rig.watch(kClock, {"spawn"});
  rig.add({"print", "up", "gate", rig.path("go"), "print", "wrong", "gate", rig.path("less"), "print", "less", "gate",
           rig.path("stop"), "print", "right", "sleep", "100000"});
  rig.start(R"(
[[fault]]
id = "both"
kind = "clock"
node = "n1"
shift = "+30s"
clocks = ["realtime", "monotonic"]
when = [ { log = "^wrong", node = "n2" } ]
until = [ { log = "^right", node = "n2" } ]
[[fault]]
id = "more"
kind = "clock"
node = "n1"
shift = "-10s"
after = ["both"]
until = [ { log = "^less", node = "n2" } ]
[[fault]]
id = "brief"
kind = "clock"
node = "n2"
shift = "+1s"
duration = "100ms"
after = ["both"]
)");
  (void)rig.reading("once");
  all_ahead(*rig.reading("now"), 0);  // from here on, a child also prints times
  rig.touch("go");
  REQUIRE(eventually([&] { return rig.injector->outcomes().at(1).injected >= 2; }));
  const Reading two = *rig.reading("now");
  CHECK(std::abs(two.libc - 20e6) < kMsInUs + two.took);
  CHECK(std::abs(two.monotonic - 30e6) < kMsInUs + two.took);
  rig.touch("less");
  REQUIRE(eventually([&] { return rig.injector->outcomes().at(1).ended_ns.has_value(); }));
  REQUIRE(eventually([&] { return std::abs(rig.reading("now")->libc - 30e6) < kSecond / 1e3; }));
  const Reading one = *rig.reading("once");
  CHECK(std::abs(one.libc - 30e6) < kMsInUs + one.took);
  CHECK(std::abs(one.monotonic - 30e6) < kMsInUs + one.took);
  rig.touch("stop");
  REQUIRE(eventually([&] { return rig.injector->finished(); }));
  REQUIRE(eventually([&] { return std::abs(rig.reading("now")->libc) < kSecond / 1e3; }));
  all_ahead(*rig.reading("once"), 0);
  const auto outcomes = rig.finish();
  CHECK(*outcomes.at(2).ended_ns - outcomes.at(2).fired_ns == 100'000'000);
}

TEST_CASE("the stacks of threads that read a wrong clock are recorded", "[clocks]") {
  Clocks rig;
  rig.stacks = true;
  rig.watch(kClock, {"watch"});
  rig.watch(kStatic, {"watch"});  // a program without a vDSO reads the clock by system calls
  rig.start(R"(
[[fault]]
id = "ahead"
kind = "clock"
node = "n1"
shift = "+1h"
[[fault]]
id = "behind"
kind = "clock"
node = "n2"
shift = "-1h"
)");
  all_ahead(*rig.reading("now", 0), kHour);
  all_ahead(*rig.reading("now", 1), -kHour);
  for (const schedule::FaultOutcome& outcome : rig.finish()) {
    INFO(outcome.id);
    REQUIRE(!outcome.stacks.empty());
    const schedule::Stack& stack = outcome.stacks.front();
    CHECK(stack.why == "reads the clock");
    CHECK(stack.incomplete.empty());
    CHECK(std::any_of(stack.frames.begin(), stack.frames.end(),
                      [](const schedule::Frame& frame) { return frame.function == "print_clocks"; }));
    CHECK(std::any_of(stack.frames.begin(), stack.frames.end(),
                      [](const schedule::Frame& frame) { return frame.function == "main"; }));
  }
}

TEST_CASE("a clock can drift or stand still", "[clocks]") {
  Clocks rig;
  rig.watch(kClock, {"watch"});
  rig.watch(kClock, {"watch"});
  const std::int64_t before = monotonic_ns();
  rig.start(R"(
[[fault]]
id = "fast"
kind = "clock"
node = "n1"
drift = 3.0
[[fault]]
id = "still"
kind = "clock"
node = "n2"
freeze = true
shift = "+1h"
)");
  const double fast = rig.reading("now", 0)->libc, still = rig.reading("now", 1)->libc;
  const std::int64_t began = monotonic_ns();
  // A program that prints a clock may be delayed after it has read the clock. The longer the test observes, the smaller
  // the share of this delay becomes.
  double later = 0, stood = 0;
  REQUIRE(eventually(
      [&] {
        const auto passed = static_cast<double>(monotonic_ns() - began) / 1e3;
        later = rig.reading("now", 0)->libc;
        stood = rig.reading("now", 1)->libc;
        return passed > 1e6 && later - fast >= 2 * 0.95 * passed && still - stood >= 0.95 * passed;
      },
      120 * kSecond));
  // The clock cannot have gained more than twice the time that has passed since a moment before the fault began.
  CHECK(later <= 2 * static_cast<double>(monotonic_ns() - before) / 1e3);
  CHECK(stood < kHour);
}

TEST_CASE("timed waits end when the changed clock reaches their deadline", "[clocks]") {
  Clocks rig;
  rig.watch(kClock, {"wait", "100"});
  rig.watch(kClock, {"wait", "300"});
  rig.watch(kStatic, {"wait", "100"});
  rig.start(R"(
[[fault]]
id = "ahead"
kind = "clock"
node = "n1"
shift = "+1h"
[[fault]]
id = "fast"
kind = "clock"
node = "n2"
drift = 3.0
[[fault]]
id = "behind"
kind = "clock"
node = "n3"
shift = "-1h"
)");
  for (const std::size_t node : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    // The waits for a condition variable, a semaphore, a sleep and a timer. Take the smallest of several values,
    // because the waiting thread may be scheduled late.
    std::array<long, 4> least{};
    REQUIRE(eventually(
        [&] {
          least.fill(INT64_MAX);
          for (const auto& line : split(rig.out(node), '\n')) {
            std::array<long, 4> took{};
            if (std::sscanf(line.c_str(), "waited %ld %ld %ld %ld", &took[0], &took[1], &took[2], &took[3]) != 4)
              continue;
            for (std::size_t i = 0; i < took.size(); ++i) least[i] = std::min(least[i], took[i]);
          }
          // The wait must not take an hour. At triple speed, it takes only a part of 300 ms.
          return std::all_of(least.begin(), least.end(), [](long took) { return took < 280'000; });
        },
        300 * kSecond));
    std::printf("node %zu waited %ld %ld %ld %ld us\n", node + 1, least[0], least[1], least[2], least[3]);
    for (const long took : least) CHECK(took > 99'000);
    CHECK_FALSE(rig.printed("no ticks", node));
    // During a wait, rose changes the program's time value in memory, and restores it afterwards. The victim prints
    // "spoiled" if the value is not restored, and "late" if it is restored only after the call has returned. That
    // happens only if the program was scheduled so late that the time of the wait had already passed.
    CHECK_FALSE(rig.printed("spoiled", node));
    // On a busy machine, the first rounds may all be late.
    CHECK(eventually(
        [&] {
          const auto lines = split(rig.out(node), '\n');
          const auto waits = std::count_if(lines.begin(), lines.end(),
                                           [](const std::string& line) { return line.starts_with("waited "); });
          return 2 * rig.lines("late", node) <= waits;
        },
        300 * kSecond));
  }
}

// The cost is printed but not checked, because other processes may use the machine.
TEST_CASE("the cost of reading a clock is printed", "[clocks]") {
  Clocks rig;
  rig.watch(kClock, {"cost"});
  rig.watch(kClock, {"cost"});
  rig.start(R"(
[[fault]]
id = "ahead"
kind = "clock"
node = "n1"
shift = "+1h"
)");
  const auto least = [&](std::size_t node) {
    double best = 1e9;
    for (const auto& line : split(rig.out(node), '\n')) {
      double ns = 0;
      if (std::sscanf(line.c_str(), "cost %lf", &ns) == 1) best = std::min(best, ns);
    }
    return best;
  };
  const auto rounds = [&](std::size_t node) { return split(rig.out(node), '\n').size(); };
  REQUIRE(eventually([&] { return rounds(0) > 6 && rounds(1) > 6; }));
  std::printf("a clock read: %.1f ns, shifted %.1f ns\n", least(1), least(0));
  CHECK(least(0) < 1e9);
}

TEST_CASE("clocks of attached nodes are not changed", "[clocks]") {
  Clocks rig;
  rig.watch(kClock, {"watch"});
  rig.config.nodes[0].attach = config::Attach{};
  rig.allow_attached = true;
  const auto refused = rig.try_prepare("[[fault]]\nid = \"f\"\nkind = \"clock\"\nnode = \"n1\"\nshift = \"1h\"\n");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("node 'n1' was not started by rose, so its clocks cannot be changed") !=
        std::string::npos);
}
