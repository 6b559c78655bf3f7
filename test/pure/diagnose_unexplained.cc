// If a node ended by itself and nothing in the dump explains why, faults of the resources that it used last are
// hypotheses.
#include <catch2/catch.hpp>

#include "diagnose/survey.h"
#include "diagnose_play.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::Fault;
using schedule::FaultKind;
using schedule::Schedule;

namespace {

// n1 appends to its journal and exits. The cause, a short write, is not a failed call.
Dump exits() {
  Dump dump;
  dump.started(-2, "n1");
  dump.sys(1, "n1", "openat", "/srv/n1/old").open_flags = 0100;
  dump.sys(4, "n1", "fdatasync", "/srv/n1/index");
  dump.sys(5, "n1", "fdatasync", "/srv/n1/journal");
  const trace::StringId peer = dump.intern("10.77.0.2:7000");
  dump.sys(5.1, "n1", "connect", "").peer = peer;
  dump.exited(6, "n1", 1);
  dump.ends(20);
  return dump;
}

const Candidate* of(const Plan& plan, FaultKind kind, std::string_view error = {}, std::string_view path = {}) {
  for (const Candidate& c : plan.candidates)
    if (c.kind == kind && (error.empty() || c.error == error) && (path.empty() || c.path == path)) return &c;
  return nullptr;
}

}  // namespace

TEST_CASE("the disk, files, descriptors, memory and peer of an unexplained exit are hypotheses") {
  const auto config = deployment();
  const Plan plan = plan_of(config, exits());
  const Candidate* end = of(plan, FaultKind::crash);
  REQUIRE(end != nullptr);
  CHECK(end->rank == 1);
  const Candidate* disk = of(plan, FaultKind::disk_full);
  REQUIRE(disk != nullptr);
  CHECK(disk->rank == 2);
  for (const char* path : {"*/journal", "*/index"}) {
    CHECK(of(plan, FaultKind::syscall, "ENOSPC", path) != nullptr);
    CHECK(of(plan, FaultKind::syscall, "EIO", path) != nullptr);
  }
  CHECK(of(plan, FaultKind::syscall, "ENOSPC", "*/old") == nullptr);  // n1 used other files after this one
  CHECK(std::any_of(plan.candidates.begin(), plan.candidates.end(),
                    [](const Candidate& c) { return c.fault.effect == schedule::Effect::bytes; }));
  CHECK(of(plan, FaultKind::descriptors) != nullptr);
  CHECK(of(plan, FaultKind::memory) != nullptr);
  const Candidate* reset = of(plan, FaultKind::syscall, "ECONNRESET");
  REQUIRE(reset != nullptr);
  CHECK(reset->peer == "*:7000");
  for (const Candidate& c : plan.candidates) {
    if (&c == end) continue;
    CHECK(c.known == Known::inferred);
    CHECK(c.count == 0);
    CHECK(c.fault.when.size() == 1);
  }
  CHECK(accounted(plan) == plan.failures);
}

TEST_CASE("an explained exit and a kill from outside give no such hypotheses") {
  const auto config = deployment();
  Dump explained = exits();
  explained.scf(5.9, "n1", "pwrite64", ENOSPC, "/srv/n1/journal");
  CHECK(of(plan_of(config, explained), FaultKind::memory) == nullptr);
  Dump killed;
  killed.sys(5, "n1", "fdatasync", "/srv/n1/journal");
  killed.crashed(6, "n1");
  killed.ends(20);
  CHECK(of(plan_of(config, killed), FaultKind::disk_full) == nullptr);
}

TEST_CASE("the full disk behind an unexplained exit is found, and calls that the survey lacks are not tried") {
  const auto config = deployment();
  Play play({{1, "n1", "", "pwrite64", "/run/n1/journal", false}, {2, "n1", "", "fdatasync", "/run/n1/journal"}},
            [](const std::vector<Hit>& hits, int) {
              return hits.size() == 1 && hits[0].fault->kind == FaultKind::disk_full;
            });
  Inputs inputs = inputs_of(config, {exits()});
  inputs.limits = {FaultKind::disk_full, FaultKind::descriptors};
  const auto d = diagnose::diagnose(inputs, play, {});
  REQUIRE(d);
  CHECK(d->target_reached);
  REQUIRE(d->found);
  CHECK(fault_of(*d->found, FaultKind::disk_full, "n1") != nullptr);
  CHECK(d->schedules <= 8);

  Play never({{1, "n1", "", "pwrite64", "/run/n1/journal", false}}, [](const std::vector<Hit>&, int) { return false; });
  (void)diagnose::diagnose(inputs, never, {});
  for (const Schedule& schedule : never.made)
    for (const Fault& fault : schedule.faults) {
      if (is_counter(fault) || fault.kind != FaultKind::syscall) continue;
      CHECK(fault.call.path != "*/index");
    }
  // On a machine that cannot limit memory, no such fault is tried.
  CHECK(std::none_of(never.made.begin(), never.made.end(),
                     [](const Schedule& s) { return fault_of(s, FaultKind::memory) != nullptr; }));
}
