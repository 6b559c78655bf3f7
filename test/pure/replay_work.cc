// Decides whether the workload of a run did the work that it usually does.
#include "replay/work.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "folder.h"
#include "kernel/syscalls.h"

using namespace rose;
using namespace rose::replay;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kMs = 1'000'000;

Work work(const std::string& note, std::int64_t ended_ms, std::optional<observe::Exchanged> exchanged) {
  return {.failed = note != "exited with status 0" && note != "timed out after 1s",
          .timed_out = note == "timed out after 1s",
          .note = note,
          .ended_ns = ended_ms * kMs,
          .exchanged = exchanged};
}

profile::WorkloadUse usual(int failed, std::optional<std::uint64_t> sent, std::optional<std::uint64_t> received) {
  return {.runs = 3, .failed = failed, .sent = sent, .received = received};
}

}  // namespace

TEST_CASE("a run with faults has no verdict if its workload did no work") {
  using enum schedule::OracleAnswer;
  const observe::Exchanged none{}, asked{.sent = 10, .received = 0}, both{.sent = 10, .received = 20};
  const std::string ok = "exited with status 0", failed = "exited with status 1", late = "timed out after 1s";
  const std::string before = "the workload did no work: it exited with status 1 before any fault fired";
  const std::string idle = "the workload did no work: it exited with status 1 and exchanged no data with any node";
  const std::string silent = "the workload exchanged no data with any node, although it does without faults; it ";
  struct Row {
    Work work;
    std::optional<profile::WorkloadUse> usual;
    std::int64_t fired_ms;  // when the first fault fired; negative if none did
    schedule::OracleAnswer oracle;
    std::string doubt;
  };
  const Row rows[] = {
      {work(ok, 100, both), {}, 10, miss, ""},
      {work(failed, 100, both), {}, 10, miss, ""},
      {work(late, 100, both), {}, -1, miss, ""},
      // The workload failed before any fault fired.
      {work(failed, 100, both), {}, 200, miss, before},
      {work(failed, 100, both), {}, -1, miss, before},
      {work(failed, 100, both), {}, 200, hit, before},
      {work(failed, 100, {}), {}, 200, miss, before},
      {work(ok, 100, both), {}, 200, miss, ""},
      // The workload exchanged no data. Without a profile that shows what is usual, a miss is doubted only if the
      // workload failed or timed out.
      {work(ok, 100, none), {}, 10, miss, ""},
      {work(ok, 100, asked), {}, 10, miss, ""},
      {work(failed, 100, none), {}, 10, miss, idle},
      {work(failed, 100, asked), {}, 10, miss, idle},
      {work(failed, 100, none), {}, 10, hit, ""},
      {work(late, 100, none),
       {},
       10,
       miss,
       "the workload did no work: it " + late + " and exchanged no data with any node"},
      {work(late, 100, none), {}, 10, hit, ""},
      {work(late, 100, none), usual(0, 0, 0), 10, miss, ""},
      // Without faults, the workload exchanges data.
      {work(ok, 100, none), usual(0, 5, 7), 10, miss, silent + ok},
      {work(late, 100, none), usual(0, 5, 7), 10, miss, silent + late},
      {work(failed, 100, asked), usual(0, 5, 7), 10, hit, silent + failed},
      {work(ok, 100, both), usual(0, 5, 7), 10, miss, ""},
      // Without faults, the workload sends data and receives none.
      {work(ok, 100, asked), usual(0, 5, 0), 10, miss, ""},
      {work(ok, 100, none), usual(0, 5, 0), 10, miss, silent + ok},
      // Without faults, the workload exchanges no data and succeeds. If it fails, the faults may be the reason. The
      // last workload also failed in all runs without faults.
      {work(ok, 100, none), usual(0, 0, 0), 10, miss, ""},
      {work(failed, 100, none), usual(0, 0, 0), 10, miss, ""},
      {work(failed, 100, none), usual(3, 0, 0), 10, miss, idle},
      // With host networks, the amount of data is unknown.
      {work(ok, 100, {}), usual(0, {}, {}), 10, miss, ""},
      {work(failed, 100, {}), usual(0, {}, {}), 10, miss, ""},
  };
  schedule::Schedule plan;
  plan.faults.emplace_back();
  plan.faults[0].id = "f";
  plan.faults[0].kind = schedule::FaultKind::syscall;
  for (const Row& row : rows) {
    schedule::RunResult result;
    result.oracle = row.oracle;
    result.faults.emplace_back();
    result.faults[0].id = "f";
    result.faults[0].fired = row.fired_ms >= 0;
    result.faults[0].fired_ns = row.fired_ms * kMs;
    INFO(row.work.note << " fired at " << row.fired_ms);
    CHECK(doubt_of(row.work, row.usual, plan, result) == row.doubt);
  }
}

TEST_CASE("a fault that waits only for a time counts as fired at that time, however late the machine was") {
  schedule::Schedule plan;
  plan.faults.emplace_back();
  plan.faults[0].id = "f";
  plan.faults[0].kind = schedule::FaultKind::crash;
  schedule::RunResult result;
  result.faults.emplace_back();
  result.faults[0].id = "f";
  result.faults[0].fired = true;
  result.faults[0].fired_ns = 50 * kMs;
  const Work quick = work("exited with status 1", 5, observe::Exchanged{.sent = 1, .received = 1});
  CHECK(doubt_of(quick, {}, plan, result).empty());
  plan.faults[0].when = {schedule::Condition::elapsed(4 * kMs)};
  CHECK(doubt_of(quick, {}, plan, result).empty());
  plan.faults[0].when = {schedule::Condition::elapsed(6 * kMs)};
  CHECK_FALSE(doubt_of(quick, {}, plan, result).empty());
}

TEST_CASE("the usual amount of work comes from a profile or is unknown") {
  const rose::test::Folder folder;
  config::Config config;
  config.directory = folder.path;
  CHECK_FALSE(usual_of(config, "")->work);
  profile::Profile made;
  REQUIRE(profile::write_profile(made, folder / "profile.json"));
  CHECK_FALSE(usual_of(config, "")->work);  // the profile of an older rose contains nothing about the workload
  profile::learn_workload(made, false, 300, 40);
  profile::learn_workload(made, true, 200, 50);
  REQUIRE(profile::write_profile(made, folder / "profile.json"));
  const auto usual = usual_of(config, "");
  REQUIRE(usual);
  const auto& known = usual->work;
  REQUIRE(known);
  CHECK(known->runs == 2);
  CHECK(known->failed == 1);
  CHECK(known->sent == 200U);
  CHECK(known->received == 40U);
  profile::learn_workload(made, false, {}, {});
  CHECK_FALSE(made.workload->exchanges());
  CHECK_FALSE(usual_of(config, folder / "no.json"));
}

TEST_CASE("a miss is doubted if a node failed before any fault, or if the OOM killer ended it") {
  using enum schedule::OracleAnswer;
  const NodeEnd failed{.node = "n1", .code = 7, .note = "exited with status 7", .ended_ns = 5 * kMs};
  const NodeEnd orderly{.node = "n1", .note = "exited with status 0", .ended_ns = 5 * kMs};
  NodeEnd killed{.node = "n1", .signalled = true, .code = 9, .note = "was killed by signal 9", .ended_ns = 5 * kMs};
  NodeEnd crashed = killed;
  crashed.code = 11;
  NodeEnd late = failed;
  late.ended_ns = 30 * kMs;
  const std::string before = " before any fault fired, and was down at the end";
  const std::string memory = "node n1 was killed by signal 9: the kernel ended it for lack of memory";
  const profile::ProcessKind same{.node = "n1", .state = "exited", .signal = "", .exit_code = 7, .main = true};
  const profile::ProcessKind signal{.node = "n1", .state = "crashed", .signal = "SIGKILL", .main = true};
  profile::ProcessKind others = same;
  others.node = "n2";
  profile::ProcessKind helper = same;
  helper.main = false;
  struct Row {
    NodeEnd end;
    bool down = true;
    bool out_of_memory = false;
    std::vector<profile::ProcessKind> usual;
    std::string doubt;
    schedule::OracleAnswer oracle = miss;
    schedule::FaultKind kind = schedule::FaultKind::syscall;
    std::string of = "n2";
  };
  const Row rows[] = {
      {failed, true, false, {}, "node n1 exited with status 7" + before},
      {crashed, true, false, {}, "node n1 was killed by signal 9" + before},
      {failed, false, false, {}, ""},  // no doubt, because the node was started again
      {late, true, false, {}, ""},     // no doubt, because the fault may be the reason
      {orderly, true, false, {}, ""},
      {killed, true, false, {}, ""},  // no doubt, because the workload may have sent the signal
      {failed, true, false, {}, "", hit},
      {failed, true, false, {same}, ""},
      {failed, true, false, {others, helper, signal}, "node n1 exited with status 7" + before},
      {killed, false, true, {}, memory},
      {killed, true, true, {signal}, ""},
      {killed, true, true, {}, "", hit},
      {killed, true, true, {}, memory, miss, schedule::FaultKind::crash, "n2"},
      {killed, true, true, {}, "", miss, schedule::FaultKind::crash, "n1"},
      {killed, true, true, {}, "", miss, schedule::FaultKind::memory, "@leader"},
  };
  for (const Row& row : rows) {
    schedule::Schedule plan;
    plan.faults.emplace_back();
    plan.faults[0].id = "f";
    plan.faults[0].kind = row.kind;
    plan.faults[0].node = row.of;
    plan.faults[0].when = {schedule::Condition::elapsed(20 * kMs)};
    schedule::RunResult result;
    result.oracle = row.oracle;
    result.faults.emplace_back();
    result.faults[0].id = "f";
    result.faults[0].fired = true;
    result.faults[0].fired_ns = 20 * kMs;
    NodeEnds nodes{.ends = {row.end}, .down = {}};
    nodes.ends[0].out_of_memory = row.out_of_memory;
    if (row.down) nodes.down = {"n1"};
    INFO(row.end.note << " " << row.doubt);
    CHECK(doubt_of(nodes, {{}, row.usual}, plan, result) == row.doubt);
  }
  CHECK(killed_for_memory("3,1034,98,-;Memory cgroup out of memory: Killed process 4711 (redis) total-vm:1kB") == 4711);
  CHECK(killed_for_memory("3,9,98,-;Out of memory: Killed process 7 (a b) total-vm:1kB\n SUBSYSTEM=x") == 7);
  CHECK_FALSE(killed_for_memory("3,9,98,-;Out of memory: Killed process -7 (a)"));
  CHECK_FALSE(killed_for_memory("3,9,98,-;Out of memory: Killed process "));
  CHECK_FALSE(killed_for_memory("6,9,98,-;oom_reaper: reaped process 4711 (redis)"));
  CHECK_FALSE(killed_for_memory(""));
  CHECK(MemoryKills().pids().empty());
}

TEST_CASE("a run is doubted if a call of a node failed because the run's disk was full") {
  const rose::test::Folder run;
  fs::create_directory(run / "n1");
  config::Config config;
  config.nodes.resize(2);
  config.nodes[0].name = "n1";
  config.nodes[1].name = "n2";
  config.nodes[1].container.emplace();
  schedule::Schedule plan;
  plan.faults.emplace_back().node = "n2";
  const auto doubt = [&](const char* node, const char* call, int error, const fs::path& path) {
    trace::Trace trace;
    trace::Event& event = trace.events.emplace_back();
    event.node = trace.strings.intern(node);
    event.path = trace.strings.intern(path.string());
    event.syscall = static_cast<std::int16_t>(kernel::syscall_number(call).value());
    event.err = static_cast<std::int16_t>(error);
    return call_on_full_disk(trace, config, plan, run.path);
  };
  const std::string reason = doubt("n1", "write", ENOSPC, run / "n1/gone/file");
  CHECK(reason.find("was full for a while: write of n1 failed with ENOSPC on ") != std::string::npos);
  CHECK(doubt("n1", "openat", EDQUOT, "relative") != "");
  CHECK(doubt("n1", "write", EIO, run / "n1/file") == "");
  CHECK(doubt("n1", "inotify_add_watch", ENOSPC, run / "n1/file") == "");
  CHECK(doubt("n1", "write", ENOSPC, "/proc/self/file") == "");  // no doubt, because the file is on another file system
  CHECK(doubt("n2", "write", ENOSPC, run / "n1/file") == "");    // no doubt, because the node is a container
  CHECK(doubt("n3", "write", ENOSPC, run / "n1/file") == "");
  for (const char* target : {"n1", "@leader"}) {
    plan.faults[0].node = target;
    plan.faults[0].error = ENOSPC;
    CHECK(doubt("n1", "write", ENOSPC, run / "n1/file") == "");
    plan.faults[0].error = 0;
    plan.faults[0].kind = schedule::FaultKind::disk_full;
    CHECK(doubt("n1", "write", ENOSPC, run / "n1/file") == "");
    plan.faults[0].kind = schedule::FaultKind::pause;
    CHECK(doubt("n1", "write", ENOSPC, run / "n1/file") != "");
  }
}
