// How many runs are made at the same time is determined by the resources that the control runs used.
#include "replay/side_by_side.h"

#include <catch2/catch.hpp>

using namespace rose;
using namespace rose::replay;

namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

config::Config two_nodes() {
  config::Config config;
  for (const char* name : {"n1", "n2"}) {
    config::Node node;
    node.name = name;
    config.nodes.push_back(std::move(node));
  }
  return config;
}

Run run_that_writes(const std::string& directory, const std::string& node, const std::string& path, int pid = 41) {
  Run run;
  run.directory_made_in = directory;
  trace::Event event;
  event.type = trace::EventType::sys;
  event.pid = pid;
  event.node = run.result.trace.strings.intern(node);
  event.path = run.result.trace.strings.intern(path);
  run.result.trace.events.push_back(event);
  return run;
}

}  // namespace

TEST_CASE("the number of parallel runs is limited by processors and free memory") {
  const RunLoad idle{.ready_ns = kSecondNs, .workload_ns = 9 * kSecondNs, .cpu_seconds = 0.1, .memory = 10 << 20};
  CHECK(fitting_runs(idle, 2, 8 * kGiB, 8) == 8);
  RunLoad busy = idle;
  busy.cpu_seconds = 5;  // a run uses half a processor, and all runs may together use three quarters of two
  CHECK(fitting_runs(busy, 2, 8 * kGiB, 8) == 3);
  CHECK(fitting_runs(busy, 8, 8 * kGiB, 64) == 12);
  busy.cpu_seconds = 40;
  CHECK(fitting_runs(busy, 2, 8 * kGiB, 8) == 1);
  RunLoad large = idle;
  large.memory = kGiB;
  CHECK(fitting_runs(large, 2, 8 * kGiB, 8) == 4);
  CHECK(fitting_runs(large, 2, kGiB / 2, 8) == 1);
  // The start of a run takes 1 s and uses one processor. With slack, parallel starts may take 1.45 s. In that time,
  // three quarters of two processors complete two starts.
  RunLoad busy_start = idle;
  busy_start.start_cpu_seconds = 1;
  CHECK(fitting_runs(busy_start, 2, 8 * kGiB, 8) == 2);
  CHECK(fitting_runs(busy_start, 8, 8 * kGiB, 64) == 8);
}

TEST_CASE("numbers of parallel runs that would clearly not keep the timing are not measured") {
  CHECK(fewer_runs(8) == 4);
  CHECK(fewer_runs(3) == 2);
  CHECK(fewer_runs(2) == 1);
  CHECK(fewer_runs(8, 1.2) == 4);
  CHECK(fewer_runs(8, 2.5) == 3);
  CHECK(fewer_runs(8, 5) == 1);
  CHECK(fewer_runs(2, 40) == 1);
  TimingRange range;
  range.add({.ready_ns = 2 * kSecondNs, .workload_ns = 10 * kSecondNs, .cpu_seconds = 0, .memory = 0});
  CHECK(range.excess({.ready_ns = 2 * kSecondNs, .workload_ns = 10 * kSecondNs}) < 1);
  CHECK(range.excess({.ready_ns = 2 * range.ready_ns, .workload_ns = 10 * kSecondNs}) == 2);
  CHECK(range.excess({.ready_ns = 2 * kSecondNs, .workload_ns = 3 * range.workload_ns}) == 3);
}

TEST_CASE("a run is out of range if it started or worked clearly more slowly than control runs") {
  TimingRange range;
  RunLoad load{.ready_ns = 100 * kSecondNs, .workload_ns = 100 * kSecondNs, .cpu_seconds = 0, .memory = 0};
  CHECK(range.outside(load, false).empty());  // nothing is known yet, so nothing is outside
  range.add({.ready_ns = 2 * kSecondNs, .workload_ns = 10 * kSecondNs, .cpu_seconds = 0, .memory = 0});
  CHECK(range.outside({.ready_ns = 2 * kSecondNs, .workload_ns = 12 * kSecondNs}, false).empty());
  CHECK(range.outside({.ready_ns = 4 * kSecondNs, .workload_ns = 10 * kSecondNs}, true).find("ready") !=
        std::string::npos);
  const RunLoad slow_work{.ready_ns = 2 * kSecondNs, .workload_ns = 20 * kSecondNs};
  CHECK(range.outside(slow_work, false).find("workload") != std::string::npos);
  CHECK(range.outside(slow_work, true).empty());  // this may be an effect of the faults, so it does not count
  CHECK(range.outside({.ready_ns = kSecondNs / 10, .workload_ns = kSecondNs}, false).empty());
}

TEST_CASE("deployments that exist only once have one run at a time") {
  config::Config config = two_nodes();
  CHECK(never_side_by_side(config).empty());
  config.nodes[1].attach.emplace();
  CHECK(never_side_by_side(config).find("n2") != std::string::npos);
  config.nodes[1].attach.reset();
  config.deployment.network = config::Network::host;
  CHECK(never_side_by_side(config).find("host") != std::string::npos);
}

TEST_CASE("a file outside the run directories that two runs write is shared") {
  config::Config config = two_nodes();
  const auto shared = [&](const Run& one, const Run& other) {
    return shared_path(changed_outside(config, one), changed_outside(config, other));
  };
  const Run one = run_that_writes("/tmp/r/run-0001", "n1", "/var/lib/x/log");
  CHECK(shared(one, run_that_writes("/tmp/r/run-0002", "n1", "/var/lib/x/log")) ==
        "n1 writes /var/lib/x/log in every run");
  CHECK(shared(one, run_that_writes("/tmp/r/run-0002", "n1", "/var/lib/x/other")).empty());
  CHECK(shared(run_that_writes("/tmp/r/run-0001", "n1", "/tmp/r/run-0001/n1/log"),
               run_that_writes("/tmp/r/run-0002", "n1", "/tmp/r/run-0002/n1/log"))
            .empty());
  CHECK(shared(run_that_writes("/a", "n1", "/dev/null"), run_that_writes("/b", "n1", "/dev/null")).empty());
  // A path that contains the id of the process that wrote it belongs to this process only.
  CHECK(changed_outside(config, run_that_writes("/a", "n1", "/tmp/hsperfdata_root/2107", 2107)).empty());
  CHECK(changed_outside(config, run_that_writes("/a", "n1", "/var/x-2107.pid", 2107)).empty());
  CHECK(changed_outside(config, run_that_writes("/a", "n1", "/var/x/21070", 2107)).size() == 1);
  // "#" and a number is the path of a file without a name (O_TMPFILE), which no other run can open.
  CHECK(changed_outside(config, run_that_writes("/a", "n1", "/tmp/#9978908")).empty());
  CHECK(changed_outside(config, run_that_writes("/a", "n1", "/tmp/#99x")).size() == 1);
  config.nodes[0].container.emplace();  // the paths in a container are below the container's own root
  CHECK(shared(one, run_that_writes("/tmp/r/run-0002", "n1", "/var/lib/x/log")).empty());
}

TEST_CASE("if parallel runs disturb each other, two at a time are measured before one at a time is chosen") {
  for (int jobs = kMostAutomaticJobs; jobs > 2; jobs = fewer_runs(jobs)) CHECK(fewer_runs(jobs) >= 2);
  CHECK(fewer_runs(8) == 4);
  CHECK(fewer_runs(3) == 2);
  CHECK(fewer_runs(2) == 1);
}
