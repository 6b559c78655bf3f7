// If a clock was set during tracing, the search learns this from the tracer's records, or from the times in logs.
#include <catch2/catch.hpp>

#include <algorithm>

#include "base/file.h"
#include "diagnose_log_inputs.h"
#include "diagnose_play.h"
#include "diagnose_world.h"
#include "folder.h"
#include "trace/clock.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::FaultKind;

namespace {

constexpr std::int64_t kHourNs = 3600 * kSecond;

// One dump per host. That of n2 also contains a failed call.
std::vector<Dump> hosts() {
  std::vector<Dump> all(3);
  for (int host = 1; host <= 3; ++host) {
    trace::Meta& meta = all[static_cast<std::size_t>(host - 1)].meta();
    meta.host = meta.node = fmt::format("n{}", host);
    meta.boot_id = fmt::format("boot-{}", host);
    all[static_cast<std::size_t>(host - 1)].sys(1, meta.node, "fsync", "/data/log");
    all[static_cast<std::size_t>(host - 1)].ends(30);
  }
  all[1].scf(7, "n2", "openat", ENOENT, "/etc/config");
  return all;
}

bool set_at(const std::vector<Hit>& hits, double from, double to) {
  return std::any_of(hits.begin(), hits.end(), [&](const Hit& hit) {
    return hit.fault->kind == FaultKind::clock && hit.fault->node == "n3" && hit.fault->clock.shift_ns == kHourNs &&
           hit.t >= from && hit.t <= to;
  });
}

}  // namespace

TEST_CASE("a clock step recorded while a tracer ran is injected at the same time in the test deployment") {
  const auto config = deployment();
  std::vector<Dump> dumps = hosts();
  dumps[2].meta().clock.push_back(trace::step_text("n3", at(6), kHourNs));
  Play play({}, [](const std::vector<Hit>& hits, int) { return set_at(hits, 4, 8); });
  const Result<Diagnosis> d = rose::diagnose::diagnose(inputs_of(config, dumps), play, {});
  REQUIRE(d);
  INFO(d->reason);
  CHECK(d->target_reached);
  CHECK(d->schedules <= 2);

  // If the clock was set back later, the fault has a duration.
  dumps = hosts();
  dumps[2].meta().clock.push_back(trace::step_text("n3", at(6), kHourNs));
  dumps[2].meta().clock.push_back(trace::step_text("n3", at(10), -kHourNs));
  Result<Plan> plan = make_plan(inputs_of(config, dumps));
  REQUIRE(plan);
  const auto clock = std::find_if(plan->candidates.begin(), plan->candidates.end(),
                                  [](const Candidate& c) { return c.kind == FaultKind::clock; });
  REQUIRE(clock != plan->candidates.end());
  CHECK(clock->fault.clock.shift_ns == kHourNs);
  CHECK(clock->fault.duration_ns == 4 * kSecond);
  CHECK(clock->why.find("n3: the clock was set forward by 1h") == 0);

  // Small steps are harmless, because programs that adjust the clock make them. The other two texts do not describe a
  // single step.
  dumps = hosts();
  dumps[2].meta().clock = {trace::step_text("n3", at(6), 20 * kMillisecond),
                           "n3: the clock was set 3 times more before", "n3: clock 2 ms ahead of n1"};
  plan = make_plan(inputs_of(config, dumps));
  REQUIRE(plan);
  CHECK(std::none_of(plan->candidates.begin(), plan->candidates.end(),
                     [](const Candidate& c) { return c.kind == FaultKind::clock; }));
}

TEST_CASE("a clock step of a host that runs several nodes is injected on all of them") {
  const auto config = deployment();
  std::vector<Dump> dumps(1);
  for (const char* node : {"n1", "n2", "n3"}) dumps[0].sys(1, node, "fsync", "/data/log");
  dumps[0].ends(30);
  dumps[0].meta().host = "machine";
  dumps[0].meta().nodes = {"n1", "n2", "n3"};
  dumps[0].meta().clock.push_back(trace::step_text("machine", at(6), -kHourNs));
  Play play({}, [](const std::vector<Hit>& hits, int) {
    return std::count_if(hits.begin(), hits.end(), [](const Hit& hit) {
             return hit.fault->kind == FaultKind::clock && hit.fault->clock.shift_ns == -kHourNs;
           }) == 3;
  });
  const Result<Diagnosis> d = rose::diagnose::diagnose(inputs_of(config, dumps), play, {});
  REQUIRE(d);
  INFO(d->reason);
  CHECK(d->target_reached);
  CHECK(d->schedules <= 3);
}

TEST_CASE("a jump in a log's timestamps is taken as a clock step, also beside a dump that did not record it") {
  const auto config = deployment();
  const auto line = [](std::int64_t ts) { return wall_clock(ts).substr(0, 23) + " INFO tick\n"; };
  rose::test::Folder folder;
  std::vector<logs::Input> files;
  for (const std::string node : {"n1", "n2", "n3"}) {
    std::string text;
    for (int second = 0; second <= 28; ++second) text += line(at(second) + (node == "n3" && second > 6 ? kHourNs : 0));
    REQUIRE(write_file(folder / (node + ".log"), text));
    files.push_back({folder / (node + ".log"), node});
  }
  logs::Templates kinds;
  const logs::Evidence evidence = evidence_of(files, kinds, config);
  for (const bool with_dumps : {true, false}) {
    Inputs inputs = with_dumps ? inputs_of(config, hosts()) : Inputs{};
    inputs.config = &config;
    add_logs(inputs, evidence, nullptr);
    Result<Plan> plan = make_plan(inputs);
    REQUIRE(plan);
    const auto clock = std::find_if(plan->candidates.begin(), plan->candidates.end(),
                                    [](const Candidate& c) { return c.kind == FaultKind::clock; });
    REQUIRE(clock != plan->candidates.end());
    CHECK(clock->rank <= 2);
    CHECK(clock->node == "n3");
    CHECK(clock->fault.clock.shift_ns == kHourNs);
    CHECK(clock->first_ts == at(7));
    CHECK(clock->why == "n3.log:8 of n3: its times jump forward by 1h");
    if (!with_dumps) continue;
    Play play({}, [](const std::vector<Hit>& hits, int) { return set_at(hits, 4, 8); });
    const Result<Diagnosis> d = rose::diagnose::diagnose(inputs, play, {});
    REQUIRE(d);
    INFO(d->reason);
    CHECK(d->target_reached);
    CHECK(d->schedules <= 2);
  }
}

TEST_CASE("from ZOOKEEPER-1366's logs, the leader's clock is inferred to have stepped forward by an hour") {
  const auto config = deployment();
  std::vector<logs::Input> files;
  for (const std::string node : {"n1", "n2", "n3"})
    files.push_back({std::filesystem::path(ROSE_TEST_DIR) / "../examples/bugs/zookeeper-1366/incident-logs" / node /
                         "stdout.log.zst",
                     node});
  logs::Templates kinds;
  const logs::Evidence evidence = evidence_of(files, kinds, config);
  Inputs inputs;
  inputs.config = &config;
  add_logs(inputs, evidence, nullptr);
  REQUIRE(inputs.clock_steps.size() == 1);
  CHECK(inputs.clock_steps[0].node == "n3");
  CHECK(inputs.clock_steps[0].change_ns == kHourNs);
  Result<Plan> plan = make_plan(inputs);
  REQUIRE(plan);
  const auto clock = std::find_if(plan->candidates.begin(), plan->candidates.end(),
                                  [](const Candidate& c) { return c.kind == FaultKind::clock; });
  REQUIRE(clock != plan->candidates.end());
  CHECK(clock->rank <= 3);
}

TEST_CASE("a clock skew that peers report is tried in both directions") {
  const auto config = deployment();
  const auto line = [](double second, const std::string& text) {
    return wall_clock(at(second)).substr(0, 23) + text + "\n";
  };
  rose::test::Folder folder;
  std::vector<logs::Input> files;
  for (const std::string node : {"n1", "n2", "n3"}) {
    std::string text;
    for (int second = 0; second <= 28; ++second) {
      text += line(second, " INFO tick");
      if (node != "n3" && second % 5 == 1)
        text += line(second + 0.5, " WARN the clock difference against n3 is too high [1h0m0.02s > 1s]");
    }
    REQUIRE(write_file(folder / (node + ".log"), text));
    files.push_back({folder / (node + ".log"), node});
  }
  logs::Templates kinds;
  const logs::Evidence evidence = evidence_of(files, kinds, config);
  Inputs inputs;
  inputs.config = &config;
  add_logs(inputs, evidence, nullptr);
  Result<Plan> plan = make_plan(inputs);
  REQUIRE(plan);
  CHECK(std::count_if(plan->candidates.begin(), plan->candidates.end(),
                      // one candidate for each node: either the clock of n3 is wrong, or those of n1 and n2 are
                      [](const Candidate& c) { return c.kind == FaultKind::clock; }) == 3);
  const auto clock = std::max_element(plan->candidates.begin(), plan->candidates.end(),
                                      [](const Candidate& a, const Candidate& b) { return a.weight < b.weight; });
  REQUIRE(clock != plan->candidates.end());
  CHECK(clock->node == "n3");
  CHECK(clock->fault.clock.shift_ns == kHourNs);
  CHECK(clock->why.find("the clock of n3 is 1h") != std::string::npos);
  REQUIRE(clock->alternatives.size() == 1);
  CHECK(clock->alternatives[0].clock.shift_ns == -kHourNs);
  // The bug occurs if the clock of n3 is behind.
  Play play({}, [](const std::vector<Hit>& hits, int) {
    return std::any_of(hits.begin(), hits.end(), [](const Hit& hit) {
      return hit.fault->kind == FaultKind::clock && hit.fault->node == "n3" && hit.fault->clock.shift_ns == -kHourNs;
    });
  });
  const Result<Diagnosis> d = rose::diagnose::diagnose(inputs, play, {});
  REQUIRE(d);
  INFO(d->reason);
  CHECK(d->target_reached);
  CHECK(d->schedules <= 3);
}
