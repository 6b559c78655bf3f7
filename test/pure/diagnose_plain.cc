// Level 1: what the runs so far tell of the next schedules.
#include <catch2/catch.hpp>

#include "diagnose_world.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::OracleAnswer;

TEST_CASE("level 1: a call that is made only because of a cut is tried together with it") {
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
  CHECK(alone > 0);  // which shows that nobody makes it then
  CHECK(d->target_reached);
  REQUIRE(d->found);
  CHECK(d->found->faults.size() == 2);
}
