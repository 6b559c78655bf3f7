// States of processes and entries of functions are recorded exactly, whatever sends a signal, and however a process was
// created.
#include <dlfcn.h>
#include <link.h>
#include <sys/resource.h>

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "kernel/attach.h"
#include "observe_support.h"
#include "skip.h"

using namespace rose;
using namespace rose::observe;
using namespace rose::observe::test;
using trace::EventType;
using trace::ProcessState;

TEST_CASE("ends are recorded with their status or signal") {
  const TestCgroup cgroup("ends");
  auto tracer = start({target("n1", cgroup)});
  struct Case {
    std::vector<std::string> args;
    int exit_code, signal;
  };
  for (const auto& [args, exit_code, signal] :
       {Case{{"exit", "0"}, 0, 0}, Case{{"exit", "42"}, 42, 0}, Case{{"abort"}, -1, SIGABRT},
        Case{{"segv"}, -1, SIGSEGV}, Case{{"die"}, -1, SIGKILL}}) {
    Victim victim(&cgroup, args);
    tracer->set_main("n1", victim.pid());
    victim.run();
    const auto trace = snapshot(*tracer);
    INFO(args[0] << "\n" << describe(trace));
    const auto started = processes(trace, victim.pid(), ProcessState::started);
    REQUIRE(started.size() == 1);
    const auto exited = processes(trace, victim.pid(), ProcessState::exited);
    const auto crashed = processes(trace, victim.pid(), ProcessState::crashed);
    if (signal == 0) {
      REQUIRE(exited.size() == 1);
      CHECK(crashed.empty());
      CHECK(exited[0].exit_code == exit_code);
      CHECK(exited[0].signal == 0);
      CHECK((exited[0].flags & trace::kMain) != 0);
    } else {
      REQUIRE(crashed.size() == 1);
      CHECK(exited.empty());
      CHECK(crashed[0].signal == signal);
      CHECK(crashed[0].exit_code == -1);
      CHECK((crashed[0].flags & trace::kMain) != 0);
      CHECK((crashed[0].flags & trace::kPlanned) == 0);
    }
  }
}

TEST_CASE("the exit of a process with many threads is recorded once") {
  const TestCgroup cgroup("crowd");
  auto tracer = start({target("n1", cgroup)});
  for (int round = 0; round < 20; ++round) {
    Victim victim(&cgroup, {"crowd", "5"});
    REQUIRE(WEXITSTATUS(victim.run()) == 5);
    const auto trace = snapshot(*tracer);
    const auto exited = processes(trace, victim.pid(), ProcessState::exited);
    REQUIRE(exited.size() == 1);
    CHECK(exited[0].exit_code == 5);
    CHECK(processes(trace, victim.pid(), ProcessState::crashed).empty());
  }
}

TEST_CASE("a kill from outside is recorded as planned or unplanned") {
  const TestCgroup cgroup("kill");
  auto tracer = start({target("n1", cgroup)});
  for (const bool planned : {false, true, false}) {
    Victim victim(&cgroup, {"wait"});
    REQUIRE(victim.number("ready") == 1);
    tracer->set_planned("n1", planned);
    ::kill(victim.pid(), SIGKILL);
    victim.wait();
    const auto trace = snapshot(*tracer);
    const auto crashed = processes(trace, victim.pid(), ProcessState::crashed);
    REQUIRE(crashed.size() == 1);
    CHECK(((crashed[0].flags & trace::kPlanned) != 0) == planned);
    CHECK((crashed[0].flags & trace::kMain) == 0);
  }
}

TEST_CASE("calls that fail because the process was killed are marked, and the sender is recorded") {
  const TestCgroup cgroup("churn");
  const Folder folder;
  auto tracer = start({target("n1", cgroup)});
  std::size_t marked = 0;
  const char* rounds = std::getenv("ROSE_TEST_KILLS");
  for (int round = 0; round < (rounds != nullptr ? std::atoi(rounds) : 30); ++round) {
    Victim victim(&cgroup, {"churn", folder.path});
    victim.go();
    REQUIRE(victim.number("ready") == 1);
    // each round waits for another time, and so kills the process at another point of its execution
    std::this_thread::sleep_for(std::chrono::microseconds(round * 331 % 5000));
    const std::int64_t before = wall_ns();
    ::kill(victim.pid(), SIGKILL);
    victim.wait();
    const auto trace = snapshot(*tracer);
    INFO(describe(trace));
    for (const auto& event : find(trace, {EventType::scf, "", "", "", "", "", victim.pid()})) {
      // this failure is usual, because every program tries to open this file when it starts
      if (trace.str(event.path) == "/etc/ld.so.preload") continue;
      CHECK((event.flags & trace::kDying) != 0);
      CHECK(event.ts_ns >= before);
      ++marked;
    }
    const auto crashed = processes(trace, victim.pid(), ProcessState::crashed);
    REQUIRE(crashed.size() == 1);
    CHECK(std::string(trace.str(crashed[0].by)).ends_with(fmt::format("({})", ::getpid())));
    CHECK(crashed[0].duration_ms >= 0);
    CHECK(crashed[0].ts_ns - std::int64_t{crashed[0].duration_ms} * 1'000'000 >= before);
  }
  WARN(marked << " failed calls were marked");
}

TEST_CASE("the sender and time of a termination signal are recorded with the process's end") {
  const TestCgroup cgroup("orderly");
  auto tracer = start({target("n1", cgroup)});
  Victim victim(&cgroup, {"orderly"});
  tracer->set_main("n1", victim.pid());
  victim.go();
  REQUIRE(victim.number("ready") == 1);
  ::kill(victim.pid(), SIGTERM);
  REQUIRE(WEXITSTATUS(victim.wait()) == 143);
  auto trace = snapshot(*tracer);
  INFO(describe(trace));
  const auto exited = processes(trace, victim.pid(), ProcessState::exited);
  REQUIRE(exited.size() == 1);
  CHECK(std::string(trace.str(exited[0].by)).ends_with(fmt::format("({})", ::getpid())));
  CHECK(exited[0].duration_ms >= 280);

  // One process aborts itself. The other one is killed through cgroup.kill, and this test is recorded as the sender.
  Victim aborts(&cgroup, {"abort"}), faults(&cgroup, {"wait"});
  aborts.run();
  REQUIRE(faults.number("ready") == 1);
  cgroup.write("cgroup.kill", "1");
  faults.wait();
  trace = snapshot(*tracer);
  INFO(describe(trace));
  const auto aborted = processes(trace, aborts.pid(), ProcessState::crashed);
  const auto killed = processes(trace, faults.pid(), ProcessState::crashed);
  REQUIRE(aborted.size() == 1);
  REQUIRE(killed.size() == 1);
  CHECK(trace.str(aborted[0].by) == "itself");
  CHECK(std::string(trace.str(killed[0].by)).ends_with(fmt::format("({})", ::getpid())));
}

TEST_CASE("a stopped process is paused from SIGSTOP to SIGCONT") {
  const TestCgroup cgroup("stop");
  TracerOptions options;
  options.pause_ns = 200'000'000;
  Victim victim(&cgroup, {"wait"});
  Victim killed(&cgroup, {"wait"});
  REQUIRE(victim.number("ready") == 1);
  REQUIRE(killed.number("ready") == 1);
  auto tracer = start({target("n1", cgroup)}, options);
  // The pause is too short to be reported, unless the machine was slow.
  std::int64_t begin = monotonic_ns();
  int status = 0;
  ::kill(victim.pid(), SIGSTOP);
  REQUIRE(::waitpid(victim.pid(), &status, WUNTRACED) == victim.pid());
  ::kill(victim.pid(), SIGCONT);
  const std::size_t before = monotonic_ns() - begin < options.pause_ns
                                 ? 0
                                 : processes(snapshot(*tracer), victim.pid(), ProcessState::paused).size();
  begin = monotonic_ns();
  ::kill(victim.pid(), SIGSTOP);
  // SIGSTOP and not SIGTSTP, because SIGTSTP does not stop a process in an orphaned process group
  ::kill(killed.pid(), SIGSTOP);
  std::vector<trace::Event> open;
  REQUIRE(eventually([&] {
    open = processes(snapshot(*tracer), victim.pid(), ProcessState::paused);
    return open.size() > before && open.back().duration_ms >= 250;
  }));
  REQUIRE(open.size() == before + 1);
  CHECK(is_open(open.back()));
  CHECK(open.back().signal == SIGSTOP);
  ::kill(victim.pid(), SIGCONT);
  const std::int64_t most_ms = (monotonic_ns() - begin) / 1'000'000 + 1;
  ::kill(killed.pid(), SIGKILL);
  killed.wait();
  const auto after = snapshot(*tracer);
  INFO(describe(after));
  const auto paused = processes(after, victim.pid(), ProcessState::paused);
  REQUIRE(paused.size() == before + 1);
  CHECK_FALSE(is_open(paused.back()));
  CHECK(paused.back().duration_ms >= open.back().duration_ms);
  CHECK(paused.back().duration_ms <= most_ms);
  const auto until_killed = processes(after, killed.pid(), ProcessState::paused);
  REQUIRE(until_killed.size() == 1);
  CHECK(until_killed[0].signal == SIGSTOP);
  CHECK(processes(after, killed.pid(), ProcessState::crashed).size() == 1);
}

TEST_CASE("a frozen cgroup is a paused node") {
  const TestCgroup cgroup("freeze");
  TracerOptions options;
  options.pause_ns = 150'000'000;
  Victim victim(&cgroup, {"wait"});
  REQUIRE(victim.number("ready") == 1);
  const bool by_pid = GENERATE(false, true);
  Target tree;
  tree.node = "n1";
  tree.pids = {victim.pid()};
  auto tracer = start({by_pid ? tree : target("n1", cgroup)}, options);
  cgroup.write("cgroup.freeze", "1");
  REQUIRE(eventually([&] {
    const auto trace = snapshot(*tracer);
    const auto open = processes(trace, 0, ProcessState::paused);
    return open.size() == 1 && (open[0].flags & trace::kOpen) != 0;
  }));
  cgroup.write("cgroup.freeze", "0");
  REQUIRE(eventually([&] {
    const auto trace = snapshot(*tracer);
    const auto done = processes(trace, 0, ProcessState::paused);
    return done.size() == 1 && (done[0].flags & trace::kOpen) == 0 && done[0].duration_ms >= 150 &&
           (done[0].flags & trace::kMain) != 0;
  }));
}

namespace {

std::string libm_path() {
  void* handle = ::dlopen("libm.so.6", RTLD_NOW);
  REQUIRE(handle != nullptr);
  link_map* map = nullptr;
  REQUIRE(::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0);
  return map->l_name;
}

std::vector<std::string> entered(const trace::Trace& trace, pid_t pid) {
  std::vector<std::string> names;
  for (const auto& event : trace.events) {
    if (event.type == EventType::af && event.pid == pid) names.emplace_back(trace.str(event.function));
  }
  return names;
}

}  // namespace

TEST_CASE("functions of a program and a library are traced, also after a restart") {
  const TestCgroup cgroup("functions"), other("functions-other");
  Target node = target("n1", cgroup);
  node.binaries = {ROSE_PROGRAMS_DIR "/trace_victim", libm_path()};
  node.functions = {"rose_victim_rare", "cbrt"};
  auto tracer = start({node});
  for (int round = 0; round < 2; ++round) {
    Victim victim(&cgroup, {"functions", "10"});
    Victim stranger(&other, {"functions", "10"});
    REQUIRE(victim.run() == 0);
    REQUIRE(stranger.run() == 0);
    const auto trace = snapshot(*tracer);
    INFO(describe(trace));
    CHECK(entered(trace, victim.pid()) == std::vector<std::string>{"rose_victim_rare", "cbrt"});
    CHECK(entered(trace, stranger.pid()).empty());
  }
}

#ifdef __x86_64__
TEST_CASE("a function that the kernel cannot probe does not prevent the others from being watched") {
  const TestCgroup cgroup("unprobed");
  const Target node = watched("n1", cgroup, {"rose_victim_*"});
  {
    Victim running(&cgroup, {"functions", "1"});
    auto tracer = start({node});
    REQUIRE(running.run() == 0);
    const auto names = entered(snapshot(*tracer), running.pid());
    CHECK(names == std::vector<std::string>{"rose_victim_rare", "rose_victim_often"});
  }
  // The program does not run yet. A function that cannot be counted must not count as infrequent.
  TracerOptions options;
  options.infrequent_below = 2.0;
  auto tracer = start({node}, options);
  std::set<std::string> counted;
  for (const auto& rate : tracer->counts().functions) counted.insert(rate.function);
  CHECK(counted == std::set<std::string>{"rose_victim_rare", "rose_victim_often"});
}
#endif

TEST_CASE("nodes that share a binary trace their own functions") {
  const TestCgroup a("shared-a"), b("shared-b");
  auto tracer = start({watched("a", a, {"rose_victim_rare"}), watched("b", b, {"rose_victim_often"})});
  Victim in_a(&a, {"functions", "3"}), in_b(&b, {"functions", "3"});
  REQUIRE(in_a.run() == 0);
  REQUIRE(in_b.run() == 0);
  const auto trace = snapshot(*tracer);
  CHECK(entered(trace, in_a.pid()) == std::vector<std::string>{"rose_victim_rare"});
  CHECK(entered(trace, in_b.pid()) == std::vector<std::string>(3, "rose_victim_often"));
}

TEST_CASE("profile: functions are counted, and hot ones are detached") {
  const TestCgroup cgroup("rates");
  const Target node = watched("n1", cgroup, {"rose_victim_*"});
  TracerOptions options;
  options.infrequent_below = 2.0;
  auto tracer = start({node}, options);
  const auto count_of = [&](const std::string& name) {
    for (const auto& rate : tracer->counts().functions) {
      if (rate.function == name) return rate;
    }
    return profile::FunctionRate{};
  };
  Victim first(&cgroup, {"functions", "2000"});
  REQUIRE(first.run() == 0);
  constexpr std::uint64_t kMore = 4;
  for (std::uint64_t i = 0; i < kMore; ++i) {
    Victim again(&cgroup, {"functions", "50"});
    REQUIRE(again.run() == 0);
  }
  const auto often = count_of("rose_victim_often");
  CHECK(often.count >= 8);
  CHECK(often.per_second > 2.0);
  CHECK_FALSE(often.infrequent);
  CHECK(often.node == "n1");
  const auto seldom = count_of("rose_victim_rare");
  CHECK(seldom.count >= kMore + 1);
  CHECK(seldom.count <= kMore + 2);  // a call counts twice while two links are attached to the function
  // In counting mode, no events are recorded.
  CHECK(entered(snapshot(*tracer), first.pid()).empty());
}

TEST_CASE("recording: a function that becomes hot is detached and recorded as such; others stay attached") {
  const TestCgroup cgroup("turns-hot");
  const Target node = watched("n1", cgroup, {"rose_victim_*"});
  TracerOptions options;
  options.hot_function_rate = 100;
  auto tracer = start({node}, options);
  constexpr std::uint64_t kCalls = 400'000;
  Victim hot(&cgroup, {"functions", std::to_string(kCalls)});
  REQUIRE(hot.run() == 0);
  Victim after(&cgroup, {"functions", "1"});
  REQUIRE(after.run() == 0);
  const auto trace = snapshot(*tracer);
  std::uint64_t calls = 0, notes = 0, rare = 0;
  for (const auto& event : trace.events) {
    if (event.type != EventType::af) continue;
    const auto name = trace.str(event.function);
    if ((event.flags & trace::kTruncated) != 0) {
      CHECK(name == "rose_victim_often");
      ++notes;
    } else if (name == "rose_victim_often") {
      calls += event.count;
    } else {
      ++rare;
    }
  }
  CHECK(notes == 1);
  CHECK(calls > 0);
  CHECK(calls < kCalls);
  CHECK(rare == 2);  // no entry was lost or reported twice when links were replaced
}

TEST_CASE("functions that only untraced processes call often are detached as well") {
  const TestCgroup cgroup("not-the-strangers"), other("strangers");
  const Target node = watched("n1", cgroup, {"rose_victim_*"});
  const bool counts = GENERATE(false, true);
  INFO("counting: " << counts);
  TracerOptions options;
  options.hot_function_rate = 100;
  if (counts) options.infrequent_below = 2;
  constexpr int kCalls = 300'000;
  const auto run = [&] {
    Victim stranger(&other, {"functions", std::to_string(kCalls)});
    const std::int64_t begin = monotonic_ns();
    REQUIRE(stranger.run() == 0);
    return static_cast<double>(monotonic_ns() - begin) / kCalls;
  };
  auto tracer = start({node}, options);
  const double first = run(), second = run();
  const auto trace = snapshot(*tracer);
  INFO("a call cost " << first << " ns, then " << second << " ns; an entry costs " << kernel::uprobe_seconds() * 1e9);
  // Nothing is recorded about untraced processes, except a note that the function is no longer traced.
  std::size_t notes = 0;
  for (const auto& event : trace.events) {
    if (event.type != EventType::af) continue;
    CHECK((event.flags & trace::kTruncated) != 0);
    CHECK(trace.str(event.function) == "rose_victim_often");
    ++notes;
  }
  CHECK(notes == (counts ? 0 : 1));
  // Each entry of a function with a probe costs microseconds. If the function had not been detached, the second run
  // would also have had this cost for every call.
  CHECK(second < kernel::uprobe_seconds() * 1e9 / 4);
}

TEST_CASE("profiled functions that another build lacks are skipped, those in another file are found") {
  const TestCgroup cgroup("profiled");
  const Folder folder;
  Target node = target("n1", cgroup);
  const std::string here = ROSE_PROGRAMS_DIR "/trace_victim";
  SECTION("the profile's path exists") {
    node.profiled = {{"rose_victim_rare", here}, {"rose_victim_of_another_build", here}};
    auto tracer = start({node});
    Victim victim(&cgroup, {"functions", "3"});
    REQUIRE(victim.run() == 0);
    CHECK(entered(snapshot(*tracer), victim.pid()) == std::vector<std::string>{"rose_victim_rare"});
  }
  SECTION("the path does not exist: the node's running program with that name is used") {
    Victim victim(&cgroup, {"functions", "3"});
    // Until the process has executed its program, it is a copy of this test.
    REQUIRE(eventually([&] {
      std::error_code bad;
      return std::filesystem::read_symlink("/proc/" + std::to_string(victim.pid()) + "/exe", bad).filename() ==
             "trace_victim";
    }));
    node.profiled = {{"rose_victim_rare", "/nowhere/rose/trace_victim"},
                     {"rose_victim_gone", "/nowhere/rose/trace_victim"}};
    auto tracer = start({node});
    REQUIRE(victim.run() == 0);
    CHECK(entered(snapshot(*tracer), victim.pid()) == std::vector<std::string>{"rose_victim_rare"});
  }
  SECTION("neither path nor name exists: the program of the node's process is used") {
    std::filesystem::copy_file(here, folder / "victim-2.1");
    Victim victim(&cgroup, {"functions", "3"}, std::filesystem::relative(folder / "victim-2.1", ROSE_PROGRAMS_DIR));
    REQUIRE(eventually([&] {
      std::error_code bad;
      return std::filesystem::read_symlink("/proc/" + std::to_string(victim.pid()) + "/exe", bad).filename() ==
             "victim-2.1";
    }));
    node.cgroups.clear();
    node.pids = {victim.pid()};
    node.profiled = {{"rose_victim_rare", "/nowhere/rose/trace_victim"}};
    auto tracer = start({node});
    REQUIRE(victim.run() == 0);
    CHECK(entered(snapshot(*tracer), victim.pid()) == std::vector<std::string>{"rose_victim_rare"});
  }
  SECTION("the given binary is used before any process runs") {
    node.binaries = {here};
    node.profiled = {{"rose_victim_rare", "/nowhere/rose/victim"}};
    auto tracer = start({node});
    Victim victim(&cgroup, {"functions", "3"});
    REQUIRE(victim.run() == 0);
    CHECK(entered(snapshot(*tracer), victim.pid()) == std::vector<std::string>{"rose_victim_rare"});
  }
  SECTION("without any binary a warning is reported, and everything else is traced") {
    node.profiled = {{"rose_victim_rare", "/nowhere/rose/victim"}};
    auto tracer = start({node});
    Victim victim(&cgroup, {"functions", "3"});
    REQUIRE(victim.run() == 0);
    const auto trace = snapshot(*tracer);
    CHECK(entered(trace, victim.pid()).empty());
    CHECK(processes(trace, victim.pid(), ProcessState::exited).size() == 1);
    const auto messages = log::recent();
    CHECK(std::count_if(messages.begin(), messages.end(), [](const std::string& line) {
            return line.find("1 of 1 functions") != std::string::npos &&
                   line.find("'rose_victim_rare' of node 'n1'") != std::string::npos;
          }) == 1);
  }
  SECTION("an unknown function in the configuration is an error") {
    node.binaries = {here};
    node.functions = {"rose_victim_of_another_build"};
    const auto tracer = Tracer::start({}, {node});
    REQUIRE_FALSE(tracer);
    CHECK(tracer.error().kind == ErrorKind::input);
    CHECK_FALSE(tracer.error().hint.empty());
  }
}

TEST_CASE("functions of a file that an upgrade replaced stay traced") {
  const TestCgroup cgroup("upgraded");
  const Folder folder;
  const auto program = folder / "victim";
  std::filesystem::copy_file(ROSE_PROGRAMS_DIR "/trace_victim", program);
  Target node = target("n1", cgroup);
  node.binaries = {program};
  node.functions = {"rose_victim_*"};
  TracerOptions options;
  options.hot_function_rate = 100;
  auto tracer = start({node}, options);
  // When the function becomes hot, its probe is removed, and a new one is attached later. By then, the file has been
  // unlinked.
  const std::string name = std::filesystem::relative(program, ROSE_PROGRAMS_DIR);
  Victim hot(&cgroup, {"functions", "400000"}, name), after(&cgroup, {"functions", "1"}, name);
  for (const pid_t pid : {hot.pid(), after.pid()}) {
    REQUIRE(eventually([&] {
      std::error_code bad;
      return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", bad).filename() == "victim";
    }));
  }
  std::filesystem::remove(program);
  REQUIRE(hot.run() == 0);
  REQUIRE(after.run() == 0);
  const auto trace = snapshot(*tracer);
  const auto seen = entered(trace, after.pid());
  CHECK(std::count(seen.begin(), seen.end(), "rose_victim_rare") == 1);
}

TEST_CASE("profile: functions that cannot be attached again are not reported as infrequent") {
  if (!kernel::has_uprobe_multi())
    rose::test::skip_case("needs uprobe_multi links: with one probe per function, detaching one affects no other");
  const TestCgroup cgroup("lost");
  const Target node = watched("n1", cgroup, {"rose_victim_*"});
  TracerOptions options;
  options.infrequent_below = 2.0;
  auto tracer = start({node}, options);
  Victim hot(&cgroup, {"functions", "200000"});
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{3, before.rlim_max};  // because then no new link can be created
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const int status = hot.run();
  // The watcher may detect the change only now.
  const bool lost = eventually([&] { return tracer->counts().functions.size() == 1; });
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(lost);
  REQUIRE(status == 0);
  const auto rates = tracer->counts().functions;
  REQUIRE(rates.size() == 1);  // because no rate is known for the other function
  CHECK(rates[0].function == "rose_victim_often");
  CHECK_FALSE(rates[0].infrequent);
}
