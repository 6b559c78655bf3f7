// One run, made as replay makes it: which events in its trace are marked as injected, and when they happened; and how
// long it waits for its workload.
#include "replay_rig.h"

using namespace rose;
using namespace rose::test;

TEST_CASE("a run's trace distinguishes injected results from similar ones", "[replay]") {
  const Folder folder;
  const auto config = one_node(
      "marks", {kVictim,  "create",   "there",     "gate",  "../go", "openr",    "absent-1", "openr", "there",
                "openr",  "absent-2", "openr",     "there", "openr", "absent-3", "rename",   "there", "elsewhere",
                "rename", "there",    "elsewhere", "print", "done",  "gate",     "../end"},
      "touch go; until grep -q done n1/stdout.log; do sleep 0.01; done", 30 * kSecond);
  const auto schedule = schedule::parse_schedule(R"(
version = 1
name = "marks"
[[fault]]
id = "gone"
kind = "syscall"
node = "n1"
syscall = "openat"
path = "*/n1/there"
error = "ENOENT"
count = 2
times = 2
[[fault]]
id = "lie"
kind = "syscall"
node = "n1"
syscall = "rename*"
path = "*/n1/there"
result = 0
)",
                                                 "test.toml");
  REQUIRE(schedule);
  const auto run = run_of(config, run_options(config, folder), *schedule);
  CHECK(run.result.verdict == schedule::Verdict::reproduced);
  const trace::Trace& trace = run.result.trace;
  std::vector<std::string> marked;
  std::vector<std::string> others;
  for (const trace::Event& event : trace.events) {
    if (event.type != trace::EventType::scf && event.type != trace::EventType::sys) continue;
    const std::string path(trace.str(event.path));
    const std::string name =
        fmt::format("{} {}", kernel::syscall_name(event.syscall), path.substr(path.rfind('/') + 1));
    if (path.find("/n1/") == std::string::npos) continue;
    ((event.flags & trace::kInjected) != 0 ? marked : others).push_back(name);
    // The times of events and of faults must be comparable: a result cannot be earlier than the fault that injected it.
    if ((event.flags & trace::kInjected) != 0 && event.err == ENOENT)
      CHECK(event.ts_ns - trace.meta.workload_ts >= run.result.faults.at(0).fired_ns);
  }
  CHECK(marked == std::vector<std::string>{"openat there", "openat there", "rename there"});
  for (const char* own : {"openat absent-1", "openat absent-2", "openat absent-3"})
    CHECK(std::count(others.begin(), others.end(), own) == 1);
  CHECK(std::count(others.begin(), others.end(), "rename there") == 1);
}

TEST_CASE("a workload that takes far longer than others is ended, and its run is inconclusive", "[replay]") {
  const Folder folder;
  const auto config = one_node("waits", {"/bin/sleep", "600"}, "exec sleep 600", 300 * kSecond);
  auto options = run_options(config, folder);
  options.wait_at_most_ns = kSecond / 5;
  const auto run = replay::run_once(config, {}, options);
  REQUIRE(run);
  CHECK(run->result.verdict == schedule::Verdict::inconclusive);
  CHECK(run->result.reason.find("its workload had not ended after 200ms") != std::string::npos);
  CHECK(run->result.oracle == schedule::OracleAnswer::unknown);  // because the oracle was not run
}
