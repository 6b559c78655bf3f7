// Threads that wait at a call or at a location in the program. Only the selected thread waits, and it continues when
// its time has come.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <utility>

#include "inject/holder.h"
#include "inject_rig.h"
#include "state_of.h"

using namespace rose;
using namespace rose::test;

namespace {

// Three threads sync the same file, and each writes a line. The program prints "all" when all are done.
std::vector<std::string> three_threads(std::string file) {
  return {"append", std::move(file), "threads", "3",    "1",       "fsync", "print", "synced",
          ";",      "print",         "all",     "gate", "../never"};
}

// The number of traced threads of the process.
int traced(pid_t pid) {
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid)))
    n += kernel::tracer_of(std::atoi(entry.path().filename().c_str())) != 0 ? 1 : 0;
  return n;
}

bool stands_in(const schedule::FaultOutcome& held, const std::string& call) {
  return read_file(fmt::format("/proc/{}/task/{}/syscall", held.pid, held.tid)).value_or("").starts_with(call + " ");
}

// A child process that does nothing until it is killed.
struct Child {
  Child() : pid(::fork()) {
    if (pid != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }
  void end() {
    if (std::exchange(reaped, true)) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  const pid_t pid;
  bool reaped = false;
};

}  // namespace

TEST_CASE("a process whose id was reused is neither traced nor continued", "[block]") {
  Child own, other, ended;  // forked before the holder starts; later, they would inherit its socket and keep it open
  const auto chains = std::make_unique<rose_chain[]>(ROSE_MAX_CHAINS);
  auto holder = inject::Holder::start(chains.get(), {0});
  REQUIRE(holder);
  const Fd theirs = kernel::open_pidfd(own.pid);
  REQUIRE(theirs);
  const auto is_traced = [](pid_t pid) { return kernel::tracer_of(pid) != 0; };

  // As if the thread to be held had ended and its id had been reused by a thread of another process.
  CHECK((*holder)->hold(0, own.pid, theirs.get(), other.pid));
  CHECK(eventually([&] { return !is_traced(other.pid); }));
  // As if the process had ended and its id had been reused by another process.
  const Fd was = kernel::open_pidfd(ended.pid);
  ended.end();
  ::kill(other.pid, SIGSTOP);
  CHECK(eventually([&] { return kernel::process_stat(other.pid)->state == 'T'; }));
  (*holder)->watch(other.pid, was.get());
  CHECK((*holder)->hold(0, other.pid, was.get(), other.pid));
  CHECK(eventually([&] { return !is_traced(other.pid); }));
  // A stopped process wakes for a moment to be attached and detached, then it stops again.
  CHECK(eventually([&] { return kernel::process_stat(other.pid)->state == 'T'; }));

  CHECK(kernel::signal_listed(other.pid, [&] { return std::vector<pid_t>{own.pid}; }, SIGKILL) == false);
  CHECK(kernel::signal_listed(own.pid, [&] { return std::vector<pid_t>{own.pid}; }, SIGSTOP));
  CHECK(eventually([&] { return kernel::process_stat(own.pid)->state == 'T'; }));
  CHECK(kernel::process_stat(other.pid)->state == 'T');
  (*holder)->stop();
}

TEST_CASE("the nth thread is held before its call until a condition is met; others continue", "[block]") {
  Rig rig;
  rig.leave_to_seccomp();
  rig.add(three_threads("log.1"));
  rig.add(three_threads("log.1"));
  rig.add({"gate", "../go", "print", "went", "gate", "../never"});
  rig.start(R"(
[[fault]]
id = "wait"
kind = "block"
node = "n1"
at = { syscall = "fsync", path = "*/log.1" }
count = 2
until = [ { log = "went", node = "n3" } ]
)");
  REQUIRE(eventually([&] { return rig.lines("synced") == 2; }));
  rig.wait_printed("all", 1);
  CHECK(rig.lines("synced", 1) == 3);
  const auto held = rig.injector->outcomes().at(0);
  CHECK(held.fired);
  CHECK_FALSE(held.ended_ns);
  CHECK(held.injected == 1);
  CHECK(held.pid == rig.deployment->main_pid(0));
  CHECK(held.tid != held.pid);
  CHECK(stands_in(held, "74"));
  CHECK_FALSE(rig.printed("all"));
  rig.touch("go");
  rig.wait_printed("all");
  const auto outcome = rig.finish().at(0);
  CHECK(outcome.fired);
  CHECK(outcome.seen == 2);
  CHECK(outcome.injected == 1);
  CHECK(outcome.ended_ns > outcome.fired_ns);
  CHECK(outcome.detail == "a thread waits before fsync(" + rig.path("n1/log.1") + ")");
}

TEST_CASE("a block ends by its duration, and when the run ends", "[block]") {
  Rig rig;
  rig.leave_to_seccomp();
  rig.add(three_threads("log.1"));
  rig.add(three_threads("log.1"));
  rig.start(R"(
[[fault]]
id = "short"
kind = "block"
node = "n1"
at = { syscall = "fsync", count = 3 }
duration = "200ms"
until = [ { log = "never", node = "n2" } ]
[[fault]]
id = "long"
kind = "block"
node = "n2"
at = { syscall = "fsync" }
duration = "600s"
)");
  rig.wait_printed("all", 0);
  REQUIRE(eventually([&] { return rig.lines("synced", 1) == 2; }));
  rig.injector->disarm();
  const auto outcomes = rig.injector->outcomes();
  rig.wait_printed("all", 1);  // held threads are released when the run ends
  rig.finish();
  CHECK(*outcomes.at(0).ended_ns - outcomes.at(0).fired_ns == 200 * 1'000'000);
  CHECK(outcomes.at(0).detail.find("released after 200ms: what it waited for did not happen") != std::string::npos);
  CHECK(outcomes.at(1).fired);
  CHECK(outcomes.at(1).ended_ns > outcomes.at(1).fired_ns);
  CHECK(outcomes.at(1).detail.find("released after") == std::string::npos);
}

TEST_CASE("a process with a blocked thread can be killed, and the blocked call is never executed", "[block]") {
  Rig rig;
  rig.leave_to_seccomp();
  rig.add({"create", "log.1", "threads", "1", "1", "rename", "log.1", "log.2", ";"});
  rig.start(R"(
[[fault]]
id = "wait"
kind = "block"
node = "n1"
at = { syscall = "rename" }
duration = "600s"
[[fault]]
id = "die"
kind = "crash"
node = "n1"
after = ["wait"]
)");
  rig.wait_end();
  const auto outcomes = rig.finish();
  CHECK(outcomes.at(0).fired);
  CHECK(outcomes.at(1).fired);
  CHECK(rig.exists("n1/log.1"));
  CHECK_FALSE(rig.exists("n1/log.2"));
}

TEST_CASE("a block on a call that is not made does not fire; the override backend refuses blocks", "[block]") {
  const std::string never = R"(
[[fault]]
id = "wait"
kind = "block"
node = "n1"
at = { syscall = "fsync", path = "*/log.1" }
count = 2
duration = "1s"
)";
  {
    Rig rig;
    rig.leave_to_seccomp();
    rig.add({"create", "log.1", "fsync", "create", "log.2", "fsync", "fdatasync", "print", "done"});
    rig.start(never);
    rig.wait_end();
    const auto outcome = rig.finish().at(0);
    CHECK_FALSE(outcome.fired);
    CHECK(outcome.why_not == "1 matching calls of fsync(*/log.1) were seen on n1 of 2 required");
  }
  Rig rig;
  rig.config.inject.syscall = config::Backend::override_return;
  rig.add({"print", "done"});
  const auto refused = rig.try_prepare(never);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::input);
  CHECK(refused.error().message ==
        "the override backend for syscall faults cannot be used: fault 'wait': a held call waits in user space");
}

TEST_CASE("only the nth thread is held at a function's entry, and signals still reach the others", "[block]") {
  Rig rig;
  for (int node = 0; node < 2; ++node)
    rig.add({"append", "calls", "print", "up", "gate", "../open", "threads", "8", "1", "call", "print", "called", ";",
             "print", "all", "gate", "../never"});
  rig.add({"gate", "../go", "print", "went", "gate", "../never"});
  rig.start(R"(
[[fault]]
id = "wait"
kind = "block"
node = "n1"
at = { function = "step_function" }
count = 3
when = [ { log = "up" } ]
until = [ { log = "went", node = "n3" } ]
)");
  const pid_t main = rig.deployment->main_pid(0);
  // rose traces the thread that will be held before the threads reach the function
  REQUIRE(eventually([&] { return traced(main) == 1; }));
  rig.touch("open");
  REQUIRE(eventually([&] { return rig.lines("called") == 7; }));
  REQUIRE(eventually([&] { return rig.lines("all", 1) == 1; }));
  CHECK(rig.lines("called", 1) == 8);
  CHECK(traced(rig.deployment->main_pid(1)) == 0);
  const auto held = rig.injector->outcomes().at(0);
  CHECK(held.fired);
  CHECK_FALSE(held.ended_ns);
  CHECK(held.injected == 1);
  REQUIRE(held.tid != main);
  CHECK(held.pid == main);
  CHECK(eventually([&] { return state_of(held.tid) == 't'; }));
  // The held thread has executed nothing of the function, which would write "a" first.
  CHECK(split(rig.read("n1/calls"), 'a').size() == 8);
  CHECK(split(rig.read("n1/calls"), 'b').size() == 8);
  CHECK(rig.lines("all") == 0);
  rig.touch("go");
  REQUIRE(eventually([&] { return rig.lines("all") == 1; }));
  REQUIRE(eventually([&] { return rig.injector->outcomes().at(0).ended_ns.has_value(); }));
  const auto outcome = rig.finish().at(0);
  CHECK(split(rig.read("n1/calls"), 'b').size() == 9);
  CHECK(outcome.seen == 3);
  CHECK(outcome.detail == "a thread waits at the entry of step_function");
}

TEST_CASE("a thread is held inside a function from the process's start, and released when the run ends", "[block]") {
  Rig rig;
  rig.add({"append", "calls", "call", "print", "called", "gate", "../never"});
  rig.start(R"(
[[fault]]
id = "wait"
kind = "block"
node = "n1"
at = { function = "step_middle" }
duration = "600s"
)");
  REQUIRE(eventually([&] { return rig.injector->outcomes().at(0).fired; }));
  const auto held = rig.injector->outcomes().at(0);
  REQUIRE(eventually([&] { return state_of(held.tid) == 't'; }));
  CHECK(rig.read("n1/calls") == "a1\n");
  rig.injector->disarm();
  rig.wait_printed("called");
  CHECK(rig.read("n1/calls") == "a1\nb1\n");
  CHECK(traced(held.pid) == 0);
  const auto outcome = rig.finish().at(0);
  CHECK(outcome.fired);
  CHECK(outcome.detail.starts_with("a thread waits at the entry of step_middle"));
}

TEST_CASE("a thread held at a function dies with its node, and is held again after a restart if requested", "[block]") {
  Rig rig;
  rig.add({"append", "calls", "call", "print", "called", "gate", "../never"}).restart = config::Restart{1'000'000, 5};
  rig.start(R"(
[[fault]]
id = "first"
kind = "block"
node = "n1"
at = { function = "step_function" }
until = [ { state = "crashed" } ]
[[fault]]
id = "die"
kind = "crash"
node = "n1"
after = ["first"]
[[fault]]
id = "second"
kind = "block"
node = "n1"
at = { function = "step_middle" }
after = ["die"]
duration = "300ms"
)");
  rig.wait_printed("called");
  const auto outcomes = rig.finish();
  CHECK(outcomes.at(0).fired);
  CHECK(outcomes.at(1).fired);
  CHECK(outcomes.at(2).fired);
  CHECK(outcomes.at(0).pid != outcomes.at(2).pid);
  CHECK(outcomes.at(0).ended_ns > outcomes.at(0).fired_ns);
  CHECK(*outcomes.at(2).ended_ns - outcomes.at(2).fired_ns == 300'000'000);
  CHECK(rig.lines("called") == 1);
}

TEST_CASE("a thread traced by a debugger is not held, and the debugger is named", "[block]") {
  Rig rig;
  rig.add({"append", "calls", "print", "up", "gate", "../open", "call", "print", "called", "gate", "../never"});
  rig.prepare(R"(
[[fault]]
id = "wait"
kind = "block"
node = "n1"
at = { function = "step_function" }
when = [ { elapsed = "0s" } ]
duration = "600s"
)");
  rig.wait_printed("up");
  const pid_t main = rig.deployment->main_pid(0);
  REQUIRE(::ptrace(static_cast<__ptrace_request>(PTRACE_SEIZE), main, nullptr, nullptr) == 0);
  rig.begin();
  rig.injector->catch_up();
  rig.touch("open");
  rig.wait_printed("called");
  REQUIRE(eventually([&] { return !rig.injector->outcomes().at(0).why_not.empty(); }));
  const auto outcome = rig.finish().at(0);
  CHECK_FALSE(outcome.fired);
  CHECK(outcome.why_not ==
        fmt::format("it was due, but thread {} of process {} cannot wait: 'kernel_inject' (process {}) traces it", main,
                    main, ::getpid()));
}

TEST_CASE("a block at a function that is not entered does not fire, an unknown function is refused", "[block]") {
  const auto at = [](const std::string& function) {
    return "[[fault]]\nid = \"wait\"\nkind = \"block\"\nnode = \"n1\"\nduration = \"1s\"\nat = { function = \"" +
           function + "\" }\n";
  };
  {
    Rig rig;
    rig.add({"print", "up", "gate", "../never"});
    rig.start(at("step_function"));
    rig.wait_printed("up");
    const auto outcome = rig.finish().at(0);
    CHECK_FALSE(outcome.fired);
    CHECK(outcome.why_not == "no thread of n1 reached step_function once it was armed");
  }
  Rig rig;
  rig.add({"print", "up"});
  const auto refused = rig.try_prepare(at("step_functoin"));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.starts_with("fault 'wait': `at`: no function 'step_functoin' in"));
}

TEST_CASE("a thread of an attached node is held at a function; holding its calls is refused", "[block]") {
  const auto attached = [](Rig& rig) {
    rig.allow_attached = true;
    rig.add({"gate", "../go", "print", "went", "gate", "../never"});
    config::Node theirs;
    theirs.name = "theirs";
    theirs.binaries = {kVictim};
    theirs.attach = config::Attach{.pid_file = "theirs.pid", .container = {}, .unit = {}, .cgroup = {}};
    rig.config.deployment.setup =
        config::Command{"/bin/sh", "-c",
                        "setsid \"$0\" append calls print up gate open threads 3 1 call print called ';' print all "
                        "gate never > theirs.log 2>&1 & echo $! > theirs.pid",
                        kVictim};
    rig.config.nodes.push_back(std::move(theirs));
  };
  {
    Rig rig;
    attached(rig);
    rig.start(R"(
[[fault]]
id = "wait"
kind = "block"
node = "theirs"
at = { function = "step_function" }
count = 2
until = [ { log = "went", node = "n1" } ]
)");
    const auto count_lines = [&](const std::string& what) {
      int n = 0;
      for (const auto& line : split(rig.read("theirs.log"), '\n')) n += line == what ? 1 : 0;
      return n;
    };
    const pid_t pid = rig.deployment->main_pid(1);
    REQUIRE(eventually([&] { return count_lines("up") == 1 && traced(pid) == 1; }));
    rig.touch("open");
    REQUIRE(eventually([&] { return rig.injector->outcomes().at(0).fired && count_lines("called") == 2; }));
    CHECK(count_lines("all") == 0);
    rig.touch("go");
    REQUIRE(eventually([&] { return count_lines("all") == 1; }));
    rig.injector->disarm();
    CHECK(traced(pid) == 0);
    CHECK(::kill(pid, 0) == 0);  // it existed before the run, and continues to exist
    const auto outcome = rig.finish().at(0);
    CHECK(outcome.fired);
    CHECK(outcome.seen == 2);
    CHECK(outcome.injected == 1);
    ::kill(pid, SIGKILL);
  }
  Rig rig;
  attached(rig);
  const auto refused = rig.try_prepare(
      "[[fault]]\nid = \"wait\"\nkind = \"block\"\nnode = \"theirs\"\nat = { syscall = \"fsync\" }\nduration = "
      "\"1s\"\n");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::environment);
  INFO(refused.error().message);
  CHECK(refused.error().message.find("'theirs'") != std::string::npos);
}
