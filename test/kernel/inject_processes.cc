// Crashes and pauses at calls, functions, offsets and times; the order of conditions.
#include <sched.h>
#include <sys/syscall.h>

#include "deploy/machine/cgroup.h"
#include "inject_rig.h"
#include "symbols/symbols.h"

using namespace rose;
using namespace rose::test;

TEST_CASE("a crash before a call: the call is not executed") {
  Rig rig;
  rig.add({"create", "log.1", "write", "x", "create", "log.2", "print", "survived"});
  rig.start(R"(
[[fault]]
id = "die"
kind = "crash"
node = "n1"
before = { syscall = "openat", path = "*/log.*", count = 2 }
)");
  rig.wait_end();
  const auto outcome = rig.finish().at(0);
  CHECK(rig.out() == "create log.1 = 0\nwrite = 1\n");
  CHECK(rig.read("n1/log.1") == "x");
  CHECK_FALSE(rig.exists("n1/log.2"));
  CHECK(outcome.fired);
  CHECK(outcome.injected >= 1);
  CHECK(outcome.detail == "SIGKILL to 1 process of n1 at openat(" + rig.path("n1/log.2") + ")");
}

TEST_CASE("a crash when a call returns: the call is executed and nothing after it") {
  for (int round = 0; round < 5; ++round) {
    Rig rig;
    rig.add({"create", "log.1", "create", "log.2", "create", "log.3", "print", "survived"});
    rig.start(R"(
[[fault]]
id = "die"
kind = "crash"
node = "n1"
when = [ { syscall = "openat", path = "*/log.*", count = 2 } ]
)");
    rig.wait_end();
    const auto outcome = rig.finish().at(0);
    CHECK(rig.out() == "create log.1 = 0\n");
    CHECK(rig.exists("n1/log.2"));
    CHECK_FALSE(rig.exists("n1/log.3"));
    CHECK(outcome.fired);
    CHECK(outcome.injected >= 1);
    CHECK(outcome.conditions.at(0).met);
  }
}

TEST_CASE("the scope of a crash is all processes, the main one, or all others") {
  for (const std::string scope : {"all", "main", "others"}) {
    INFO(scope);
    Rig rig;
    rig.add({"fork", "print", "child", "gate", "go", "create", "by-child", "sleep", "60000", ";", "sleep", "60000"});
    rig.start(fmt::format(R"(
[[fault]]
id = "die"
kind = "crash"
node = "n1"
scope = "{}"
when = [ {{ syscall = "openat", path = "*/by-child" }} ]
)",
                          scope));
    rig.wait_printed("child");
    const pid_t main = rig.deployment->main_pid(0);
    REQUIRE(main > 0);
    rig.touch("n1/go");
    if (scope == "others") {
      REQUIRE(eventually([&] { return rig.deployment->processes(0) == std::vector<pid_t>{main}; }));
      CHECK(rig.deployment->main_pid(0) == main);
      CHECK_FALSE(rig.printed("create by-child"));
      const auto outcome = rig.finish().at(0);
      CHECK(outcome.fired);
      CHECK(outcome.injected == 1);
      continue;
    }
    REQUIRE(eventually([&] { return rig.deployment->main_pid(0) != main; }));
    if (scope == "all") {
      REQUIRE(eventually([&] { return rig.deployment->processes(0).empty(); }));
      CHECK_FALSE(rig.printed("create by-child"));
    } else {
      rig.wait_printed("create by-child = 0");
      CHECK(rig.deployment->processes(0).size() == 1);
    }
    const auto outcome = rig.finish().at(0);
    CHECK(outcome.fired);
    CHECK(outcome.injected == (scope == "all" ? 2 : 1));
    CHECK(outcome.pid != main);
  }
}

TEST_CASE("a crash fires at a function's entry and at an offset inside it") {
  const auto functions = symbols::list_functions(kVictim);
  REQUIRE(functions);
  std::uint64_t entry = 0, middle = 0;
  for (const auto& function : *functions) {
    if (function.name == "step_function") entry = function.address;
    if (function.name == "step_middle") middle = function.address;
  }
  REQUIRE(middle > entry);
  // step_function writes "a<n>" and then "b<n>". A crash at the 3rd entry leaves two complete pairs, and a crash in the
  // middle of the 3rd call also leaves an "a3". ROSE_TEST_CRASHES: the number of crashes of each kind.
  const char* wanted = std::getenv("ROSE_TEST_CRASHES");
  const int rounds = 2 * (wanted != nullptr ? std::atoi(wanted) : 15);
  for (int round = 0; round < rounds; ++round) {
    const bool inside = round % 2 == 1;
    Rig rig;
    rig.add({"create", "data", "repeat", "6", "call", ";", "print", "survived"});
    rig.start(
        fmt::format("[[fault]]\nid = \"die\"\nkind = \"crash\"\nnode = \"n1\"\n"
                    "when = [ {{ function = \"step_function\", count = 3{} }} ]\n",
                    inside ? fmt::format(", offset = {}", middle - entry) : ""));
    rig.wait_end();
    const auto outcome = rig.finish().at(0);
    REQUIRE(rig.read("n1/data") == (inside ? "a1\nb1\na2\nb2\na3\n" : "a1\nb1\na2\nb2\n"));
    REQUIRE(outcome.fired);
    REQUIRE_FALSE(rig.printed("survived"));
  }
}

TEST_CASE("then = crash leaves a torn write") {
  Rig rig;
  rig.leave_to_seccomp();
  rig.add({"append", "data", "write", "first\n", "write", "second\n", "print", "survived"});
  rig.start(R"(
[[fault]]
id = "torn"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/data"
count = 2
result = 0
effect = { bytes = 3 }
then = "crash"
)");
  rig.wait_end();
  const auto outcome = rig.finish().at(0);
  CHECK(rig.read("n1/data") == "first\nsec");
  CHECK(rig.out() == "append data = 0\nwrite = 6\n");
  CHECK(outcome.fired);
}

TEST_CASE("a process that another signal ends before a call does not execute it") {
  Rig rig;
  rig.add({"create", "a", "create", "b", "print", "survived"});
  rig.start(R"(
[[fault]]
id = "abort"
kind = "crash"
node = "n1"
signal = "SIGABRT"
before = { syscall = "openat", path = "*/b" }
)");
  rig.wait_end();
  CHECK(rig.finish().at(0).fired);
  CHECK_FALSE(rig.exists("n1/b"));
  CHECK_FALSE(rig.printed("survived"));
}

TEST_CASE("a crash at a time after another fault and a restart; the node is restarted after each crash") {
  Rig rig;
  auto& node = rig.add({"print", "up", "sleep", "60000"});
  node.restart = config::Restart{.delay_ns = 10 * kMillisecond, .max = 5};
  rig.start(R"(
[[fault]]
id = "first"
kind = "crash"
node = "n1"
when = [ { elapsed = "100ms" } ]
[[fault]]
id = "second"
kind = "crash"
node = "n1"
after = ["first"]
when = [ { state = "started", node = "n1" }, { elapsed = "150ms" } ]
)");
  REQUIRE(eventually([&] { return rig.lines("up") == 3; }));
  REQUIRE(eventually([&] { return rig.injector->finished(); }));
  const auto outcomes = rig.finish();
  REQUIRE(outcomes.at(0).fired);
  REQUIRE(outcomes.at(1).fired);
  CHECK(outcomes.at(0).fired_ns >= 100 * kMillisecond);
  CHECK(outcomes.at(1).conditions.at(0).met_ns > outcomes.at(0).fired_ns);
  CHECK(outcomes.at(1).fired_ns - outcomes.at(1).conditions.at(0).met_ns >= 150 * kMillisecond);
}

TEST_CASE("due faults fire before the run continues, even if other threads get no processor") {
  Rig rig;
  rig.add({"sleep", "60000"});
  rig.add({"sleep", "60000"});
  rig.prepare(R"(
[[fault]]
id = "crash"
kind = "crash"
node = "n1"
[[fault]]
id = "stall"
kind = "pause"
node = "n2"
duration = "1h"
)");
  // Put all threads on one processor, on which the scheduler prefers this thread whenever it is ready to run.
  cpu_set_t one;
  cpu_set_t before;
  CPU_ZERO(&one);
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_SET(::sched_getcpu(), &one);
  const auto all_on = [](const cpu_set_t& set) {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
      ::sched_setaffinity(std::stoi(task.path().filename()), sizeof set, &set);
  };
  const sched_param ahead{.sched_priority = 1};
  const sched_param usual{.sched_priority = 0};
  all_on(one);
  (void)::sched_setscheduler(0, SCHED_FIFO, &ahead);  // if this is not permitted, the test is weaker, but still valid
  rig.begin();
  rig.injector->catch_up();
  const auto outcomes = rig.injector->outcomes();
  const bool paused = deploy::cgroup::frozen(rig.deployment->nodes()[1].cgroup);
  REQUIRE(::sched_setscheduler(0, SCHED_OTHER, &usual) == 0);
  all_on(before);
  for (const auto& outcome : outcomes) {
    INFO(outcome.id << " " << outcome.why_not);
    CHECK(outcome.fired);
    CHECK(outcome.injected == 1);
  }
  CHECK(paused);
}

TEST_CASE("an outcome is read only after its crash has been counted") {
  cpu_set_t before, one;
  CPU_ZERO(&one);
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_SET(::sched_getcpu(), &one);
  const auto self = static_cast<pid_t>(::syscall(SYS_gettid));
  for (int round = 0; round < 20; ++round) {
    Rig rig;
    rig.add({"gate", "go", "create", "log", "print", "survived"});
    rig.start(
        "[[fault]]\nid = \"die\"\nkind = \"crash\"\nnode = \"n1\"\nbefore = { syscall = \"openat\", path = \"*/log\" "
        "}\n");
    // Whenever this thread, which waits for the node's end, is ready to run, the thread that kills the node loses the
    // processor. So the outcome may be read between the kill and its count.
    const sched_param idle{.sched_priority = 0};
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      const pid_t tid = std::stoi(task.path().filename());
      ::sched_setaffinity(tid, sizeof one, &one);
      if (tid != self) ::sched_setscheduler(tid, SCHED_IDLE, &idle);
    }
    rig.touch("n1/go");
    const std::int64_t until = monotonic_ns() + 90 * kSecond;
    while (!rig.deployment->processes(0).empty() && monotonic_ns() < until) ::usleep(20);
    const auto outcome = rig.finish().at(0);
    ::sched_setaffinity(0, sizeof before, &before);
    REQUIRE(outcome.fired);
    REQUIRE(outcome.injected == 1);
    REQUIRE(outcome.detail == "SIGKILL to 1 process of n1 at openat(" + rig.path("n1/log") + ")");
  }
}

TEST_CASE("an immediate crash does not affect the restart that follows") {
  Rig rig;
  auto& node = rig.add({"append", "starts", "write", "x", "fork", "sleep", "60000", ";"});
  node.restart = config::Restart{.delay_ns = 1, .max = 3};
  rig.start(R"(
[[fault]]
id = "one"
kind = "crash"
node = "n1"
when = [ { syscall = "write", path = "*/starts", count = 2 } ]
[[fault]]
id = "zero"
kind = "crash"
node = "n1"
when = [ { syscall = "write", path = "*/starts" } ]
)");
  REQUIRE(eventually([&] { return rig.read("n1/starts") == "xxx" && rig.deployment->processes(0).size() == 2; }));
  ::usleep(100'000);
  CHECK(rig.deployment->starts(0) == 3);
  rig.finish_fired();
  CHECK(rig.read("n1/starts") == "xxx");
}

TEST_CASE("a pause at a time lasts for its duration") {
  Rig rig;
  for (int i = 0; i < 2; ++i) rig.add({"repeat", "100000", "print", "tick", "sleep", "1", ";"});
  rig.start(R"(
[[fault]]
id = "stall"
kind = "pause"
node = "n1"
duration = "400ms"
when = [ { elapsed = "50ms" } ]
[[fault]]
id = "longer"
kind = "pause"
node = "n2"
duration = "1h"
when = [ { elapsed = "50ms" } ]
[[fault]]
id = "later"
kind = "crash"
node = "n2"
when = [ { elapsed = "1h" } ]
)");
  // Check the long pause. On a busy machine, the short one may be over before the second check.
  REQUIRE(eventually([&] { return rig.injector->outcomes().at(1).fired; }));
  const int before = rig.lines("tick", 1);
  ::usleep(100'000);
  CHECK(rig.lines("tick", 1) == before);
  // The short pause ends by itself. This does not affect longer or later faults.
  REQUIRE(eventually([&] { return rig.injector->outcomes().at(0).ended_ns.has_value(); }));
  const int resumed = rig.lines("tick");
  REQUIRE(eventually([&] { return rig.lines("tick") > resumed + 3; }));
  CHECK(rig.injector->outcomes().at(1).fired);
  CHECK_FALSE(rig.injector->outcomes().at(1).ended_ns);
  const auto outcomes = rig.finish();
  CHECK(*outcomes.at(0).ended_ns - outcomes.at(0).fired_ns >= 400 * kMillisecond);
  CHECK(outcomes.at(1).ended_ns > outcomes.at(0).ended_ns);
  CHECK_FALSE(outcomes.at(2).fired);
}

TEST_CASE("a pause after a call stops the node when it returns, one before a call holds the call") {
  Rig rig;
  rig.add({"create", "a", "create", "b", "create", "c", "print", "done"});
  rig.prepare(R"(
[[fault]]
id = "after-a"
kind = "pause"
node = "n1"
duration = "300ms"
when = [ { syscall = "openat", path = "*/n1/a" } ]
[[fault]]
id = "before-c"
kind = "pause"
node = "n1"
duration = "300ms"
before = { syscall = "openat", path = "*/n1/c" }
)");
  const std::int64_t zero = monotonic_ns();
  rig.begin();
  REQUIRE(eventually([&] { return rig.exists("n1/a"); }));
  // On a busy machine, this check may run only after the pause. In that case the pause was long enough.
  const auto stands = [&](std::size_t fault, const std::function<bool()>& unchanged) {
    ::usleep(100'000);
    if (unchanged()) return true;
    const std::int64_t now = monotonic_ns() - zero;
    return now >= rig.injector->outcomes().at(fault).fired_ns + 300 * kMillisecond;
  };
  CHECK(stands(0, [&] { return rig.out().empty() && !rig.exists("n1/b"); }));
  REQUIRE(eventually([&] { return rig.printed("create b = 0"); }));
  CHECK(stands(1, [&] { return !rig.exists("n1/c"); }));
  rig.wait_end();
  CHECK(rig.printed("done"));
  const auto outcomes = rig.finish();
  for (const auto& one : outcomes) {
    INFO(one.id << " " << one.why_not);
    CHECK(one.fired);
    CHECK(*one.ended_ns - one.fired_ns >= 300 * kMillisecond);
  }
  // The end of the pause is recorded once the node runs again, which may be after the node's next action.
  CHECK(outcomes.at(1).fired_ns - outcomes.at(0).fired_ns >= 300 * kMillisecond);
}

TEST_CASE("disarming resumes paused nodes and releases held calls") {
  Rig rig;
  rig.leave_to_seccomp();
  rig.add({"create", "a", "print", "done"});
  rig.add({"repeat", "100000", "print", "tick", "sleep", "1", ";"});
  rig.start(R"(
[[fault]]
id = "held"
kind = "pause"
node = "n1"
duration = "1h"
before = { syscall = "openat", path = "*/n1/a" }
[[fault]]
id = "stalled"
kind = "pause"
node = "n2"
duration = "1h"
[[fault]]
id = "delayed"
kind = "syscall"
node = "n1"
syscall = "write"
delay = "1h"
)");
  REQUIRE(eventually([&] {
    const auto all = rig.injector->outcomes();
    return all.at(0).fired && all.at(1).fired;
  }));
  CHECK_FALSE(rig.exists("n1/a"));
  rig.injector->disarm();
  rig.wait_end(0);
  CHECK(rig.printed("done"));
  const int ticks = rig.lines("tick", 1);
  CHECK(eventually([&] { return rig.lines("tick", 1) > ticks + 3; }));
}

TEST_CASE("conditions are met in order: events count only after the previous one is met") {
  Rig rig;
  rig.add({"create", "b.1", "create", "b.2", "create", "a.1", "create", "b.3", "create", "b.4", "create", "b.5",
           "print", "survived"});
  rig.start(R"(
[[fault]]
id = "die"
kind = "crash"
node = "n1"
when = [ { syscall = "openat", path = "*/a.*" }, { syscall = "openat", path = "*/b.*", count = 2 } ]
)");
  rig.wait_end();
  const auto outcome = rig.finish().at(0);
  CHECK(outcome.fired);
  CHECK(rig.exists("n1/b.4"));
  CHECK_FALSE(rig.exists("n1/b.5"));
  CHECK(outcome.conditions.at(0).met_ns < outcome.conditions.at(1).met_ns);
  CHECK(outcome.conditions.at(1).met_ns <= outcome.fired_ns);
}

TEST_CASE("a call meets one condition of a chain, and none of a fault that it triggers") {
  Rig rig;
  rig.add({"create", "x.1", "create", "x.2", "create", "x.3", "create", "x.4", "print", "survived"});
  rig.start(R"(
[[fault]]
id = "pause"
kind = "pause"
node = "n1"
duration = "20ms"
when = [ { syscall = "openat", path = "*/x.*" }, { syscall = "openat", path = "*/x.*" } ]
[[fault]]
id = "die"
kind = "crash"
node = "n1"
after = ["pause"]
when = [ { syscall = "openat", path = "*/x.*" } ]
)");
  rig.wait_end();
  const auto outcomes = rig.finish();
  CHECK(outcomes.at(0).fired);
  CHECK(outcomes.at(1).fired);
  CHECK(rig.exists("n1/x.3"));
  CHECK_FALSE(rig.exists("n1/x.4"));
}

TEST_CASE("conditions can require a result and a thread") {
  Rig rig;
  rig.add({"openr", "absent", "create", "f", "create", "mark", "threads", "1", "1", "append", "other-thread", ";",
           "append", "same-thread", "print", "survived"});
  rig.start(R"(
[[fault]]
id = "error"
kind = "syscall"
node = "n1"
syscall = "openat"
path = "*/mark"
error = "EIO"
when = [ { syscall = "openat", path = "*/n1/*", result = "ENOENT" }, { syscall = "openat", path = "*/n1/*", result = "ok" } ]
[[fault]]
id = "die"
kind = "crash"
node = "n1"
when = [ { syscall = "openat", path = "*/n1/f" }, { syscall = "openat", path = "*thread", same_thread = true } ]
)");
  rig.wait_end();
  const auto outcomes = rig.finish();
  CHECK(rig.printed("create mark = EIO"));
  CHECK(rig.printed("append other-thread = 0"));
  CHECK(rig.exists("n1/same-thread"));
  CHECK_FALSE(rig.printed("append same-thread"));
  CHECK(outcomes.at(0).fired);
  CHECK(outcomes.at(1).fired);
}

TEST_CASE("conditions on other nodes, their log lines and their process states are met") {
  Rig rig;
  rig.add({"gate", "../go", "print", "leader: no", "print", "leader: yes", "sleep", "60000"});
  rig.add({"print", "waiting", "sleep", "60000"});
  rig.add({"sleep", "60000"});
  rig.start(R"(
[[fault]]
id = "by-log"
kind = "crash"
node = "n2"
when = [ { log = "^leader: y.s$", node = "n1" } ]
[[fault]]
id = "by-death"
kind = "crash"
node = "n3"
when = [ { state = "crashed", node = "n2" } ]
)");
  rig.wait_printed("waiting", 1);
  CHECK(rig.deployment->processes(1).size() == 1);
  rig.touch("go");
  rig.wait_end(1);
  rig.wait_end(2);
  const auto outcomes = rig.finish();
  CHECK(outcomes.at(0).fired);
  CHECK(outcomes.at(1).fired);
  CHECK(outcomes.at(0).fired_ns < outcomes.at(1).fired_ns);
}

TEST_CASE("a fault on a node that is down does not fire") {
  Rig rig;
  rig.add({"print", "short"});
  rig.add({"sleep", "60000"});
  rig.prepare(R"(
[[fault]]
id = "die"
kind = "crash"
node = "n1"
)");
  rig.wait_end(0);
  REQUIRE(eventually([&] { return rig.deployment->main_pid(0) == 0; }));
  rig.begin();
  REQUIRE(eventually([&] { return rig.injector->finished(); }));
  const auto outcome = rig.finish().at(0);
  CHECK_FALSE(outcome.fired);
  CHECK(outcome.why_not == "n1 had no living process when it was due");
}

TEST_CASE("two injectors at the same time are independent") {
  Rig a, b;
  for (Rig* rig : {&a, &b}) {
    rig->add({"create", "data", "gate", "go", "call", "call", "print", "done"});
  }
  const auto text = [](int count) {
    return fmt::format(
        "[[fault]]\nid = \"die\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ {{ function = \"step_function\", count = "
        "{} }} ]\n",
        count);
  };
  a.start(text(2));
  b.start(text(3));
  a.touch("n1/go");
  b.touch("n1/go");
  a.wait_end();
  b.wait_end();
  CHECK(a.finish().at(0).fired);
  CHECK_FALSE(b.finish().at(0).fired);
  CHECK(a.read("n1/data") == "a1\nb1\n");
  CHECK(b.read("n1/data") == "a1\nb1\na2\nb2\n");
  CHECK(b.printed("done"));
}
