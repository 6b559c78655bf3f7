// Level 1: how the results of runs determine which schedules come next.
#include <catch2/catch.hpp>

#include "diagnose_play.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::FaultKind;
using schedule::OracleAnswer;

TEST_CASE("level 1: a call that is made only because of a partition is tried together with it") {
  auto config = deployment();
  config.diagnose.levels = {1};
  Dump dump;
  dump.cut(5, 9, 2, {1, 3});
  dump.scf(9.5, "n2", "write", ENOSPC, "/data/n2/resync/from-52.wal");
  dump.ends(30);
  int alone = 0;
  Cluster cluster([&](const schedule::Schedule& schedule, int) {
    Answer answer;
    const bool cut = fault_of(schedule, schedule::FaultKind::partition, "n2") != nullptr;
    const schedule::Fault* call = fault_of(schedule, schedule::FaultKind::syscall, "n2");
    if (call != nullptr && !cut) {
      ++alone;
      answer.unfired = {call->id};
    }
    if (call != nullptr && cut) answer.oracle = OracleAnswer::hit;
    return answer;
  });
  Inputs inputs = inputs_of(config, {dump});
  const Result<Diagnosis> d = diagnose::diagnose(inputs, cluster, {});
  REQUIRE(d);
  CHECK(alone > 0);  // a schedule with this call alone was also tried
  CHECK(d->target_reached);
  REQUIRE(d->found);
  CHECK(d->found->faults.size() == 2);
}

TEST_CASE("level 1: a call that failed right before one of several faults is tried together with it") {
  // The node n2 rewrites its table while the disk is full, and is then killed. There are many other events.
  std::vector<Act> acts;
  for (int i = 0; i < 12; ++i) acts.push_back({0.5 + i, "n2", "", "write", "/data/n2/table.tmp", false});
  Dump dump(false);
  dump.crashed(8.6, "n3");
  dump.paused(12.7, 16.4, "n1");
  dump.scf(22.77, "n2", "write", ENOSPC, "/data/n2/table.tmp");
  dump.crashed(22.89, "n2");
  dump.ends(40);
  Play play(acts, [](const std::vector<Hit>& hits, int) {
    const auto at = [&](FaultKind kind) {
      const auto hit = std::find_if(hits.begin(), hits.end(),
                                    [&](const Hit& h) { return h.fault->kind == kind && h.fault->node == "n2"; });
      return hit == hits.end() ? -1 : hit->t;
    };
    const double failed = at(FaultKind::syscall);
    return failed >= 0 && at(FaultKind::crash) > failed && at(FaultKind::crash) < failed + 0.6;
  });
  const Diagnosis d = diagnosis_of(deployment(), dump, play);
  INFO(d.schedules << " schedules, " << d.runs << " runs");
  CHECK(d.target_reached);
  CHECK(d.schedules <= 6);
  REQUIRE(d.found);
  CHECK(d.found->faults.size() == 2);
}
