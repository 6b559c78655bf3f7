// A failure that follows a restart is a consequence of it if it also follows a restart in the profile, or in a run with
// a planned restart.
#include <catch2/catch.hpp>

#include "diagnose_world.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::FaultKind;
using schedule::Schedule;

namespace {

constexpr int kFiles = 40;

std::string file(int i) {
  return fmt::format("/srv/n1/part-{}/lock{}", std::string(1, static_cast<char>('a' + i % 26)), i < 26 ? "" : "s");
}

// The files that n1 does not find at each restart, and the failures that the other nodes have meanwhile.
void recovers(Dump& dump, double t) {
  for (int i = 0; i < kFiles; ++i) dump.scf(t + 5 + 0.1 * i, "n1", "openat", ENXIO, file(i));
  dump.scf(t + 1, "n2", "sendto", EHOSTDOWN, "", "10.77.0.1:7000");
}

// n1 is killed and recovers. After that, a disk fails.
Dump incident() {
  Dump dump;
  dump.started(-2, "n1");
  dump.crashed(8, "n1");
  dump.started(9, "n1");
  recovers(dump, 9);
  dump.scf(16, "n1", "pwrite64", EIO, "/srv/n1/journal");
  dump.ends(40);
  return dump;
}

// A run in which rose ends the node, which then starts again.
trace::Trace restarted(const std::string& node, double t) {
  Dump dump;
  dump.started(-2, node);
  dump.crashed(t, node, SIGKILL, trace::kMain | trace::kInjected);
  dump.started(t + 1, node);
  if (node == "n1") recovers(dump, t + 1);
  dump.ends(30);
  return dump.take();
}

profile::Profile usual() {
  Dump dump;
  dump.started(-2, "n1");
  dump.scf(1, "n1", "openat", ENOENT, "/srv/n1/usual");
  dump.ends(30);
  return profile_of(dump);
}

std::size_t failed_calls(const Plan& plan) {
  return static_cast<std::size_t>(std::count_if(plan.candidates.begin(), plan.candidates.end(),
                                                [](const Candidate& c) { return c.kind == FaultKind::syscall; }));
}

bool only_ends(const Schedule& schedule, std::string_view node) {
  return schedule.faults.size() == 1 && schedule.faults[0].kind == FaultKind::crash && schedule.faults[0].node == node;
}

}  // namespace

TEST_CASE("a profile with a restart discards failures that follow from a restart") {
  const auto config = deployment();
  profile::Profile profile = usual();
  REQUIRE(failed_calls(plan_of(config, incident(), profile)) == kFiles + 2);
  REQUIRE(profile::learn_restart(profile.restarts, restarted("n1", 10), "n1"));
  const Plan plan = plan_of(config, incident(), profile);
  REQUIRE(failed_calls(plan) == 1);
  CHECK(plan.candidates.size() == 2);  // they are the disk's failure and the kill
  CHECK(
      std::any_of(plan.candidates.begin(), plan.candidates.end(), [](const Candidate& c) { return c.error == "EIO"; }));
  CHECK(discarded(plan, "consequences of a restart") == kFiles + 1);
  CHECK(accounted(plan) == plan.failures);
}

TEST_CASE("a transfer that is short after every restart is a consequence of it") {
  const auto config = deployment();
  const auto reads_in_part = [](Dump& dump, double t) {
    trace::Event& read = dump.scf(t, "n1", "read", 0, "/srv/n1/tail");
    read.requested = 4096;
  };
  Dump restart;
  restart.started(-2, "n1");
  restart.crashed(10, "n1", SIGKILL, trace::kMain | trace::kInjected);
  restart.started(11, "n1");
  recovers(restart, 11);
  reads_in_part(restart, 12);
  restart.ends(30);
  Dump production = incident();
  reads_in_part(production, 10);
  profile::Profile profile = usual();
  REQUIRE(failed_calls(plan_of(config, production, profile)) == kFiles + 3);
  REQUIRE(profile::learn_restart(profile.restarts, restart.take(), "n1"));
  CHECK(failed_calls(plan_of(config, production, profile)) == 1);
}

TEST_CASE("failures before the restart, or far more frequent than after one, are kept") {
  const auto config = deployment();
  profile::Profile profile = usual();
  REQUIRE(profile::learn_restart(profile.restarts, restarted("n1", 10), "n1"));
  Dump early = incident();
  early.scf(3, "n1", "openat", ENXIO, file(0));
  CHECK(failed_calls(plan_of(config, early, profile)) == 2);
  Dump often = incident();
  often.scf(20, "n1", "openat", ENXIO, file(1)).count = 100;
  CHECK(failed_calls(plan_of(config, often, profile)) == 2);
  Dump without;  // in this run there is no restart, so no failure is a consequence of one
  without.scf(16, "n1", "openat", ENXIO, file(0));
  without.ends(40);
  CHECK(failed_calls(plan_of(config, without, profile)) == 1);
}

TEST_CASE("nothing is learnt from a node that stays down, and a profile keeps what was learnt") {
  profile::Restarts restarts;
  Dump down;
  down.crashed(10, "n1", SIGKILL, trace::kMain | trace::kInjected);
  down.scf(11, "n2", "sendto", EHOSTDOWN, "", "10.77.0.1:7000");
  CHECK_FALSE(profile::learn_restart(restarts, down.take(), "n1"));
  CHECK(restarts.nodes.empty());
  CHECK(restarts.failures.empty());
  CHECK_FALSE(profile::learn_restart(restarts, restarted("n2", 10), "n1"));

  profile::Profile profile = usual();
  REQUIRE(profile::learn_restart(profile.restarts, restarted("n1", 10), "n1"));
  const auto read = profile::parse_profile(profile::to_json(profile), "profile.json");
  REQUIRE(read);
  CHECK(read->restarts.nodes == profile.restarts.nodes);
  REQUIRE(read->restarts.failures.size() == profile.restarts.failures.size());
  CHECK(profile::to_json(*read) == profile::to_json(profile));
}

TEST_CASE("if the profile has no restart, a planned restart is run first") {
  const auto config = deployment();
  Inputs inputs = inputs_of(config, {incident()});
  inputs.profile = usual();
  std::vector<Schedule> made;
  Cluster cluster([&](const Schedule& schedule, int) {
    made.push_back(schedule);
    Answer answer;
    if (only_ends(schedule, "n1")) answer.trace = restarted("n1", 10);
    const schedule::Fault* eio = fault_of(schedule, FaultKind::syscall);
    answer.oracle = hit_if(eio != nullptr && eio->error == EIO);
    return answer;
  });
  const Result<Diagnosis> d = diagnose::diagnose(inputs, cluster, {});
  REQUIRE(d);
  CHECK(d->target_reached);
  REQUIRE(made.size() > 2);
  CHECK(made[0].faults.empty());
  REQUIRE(only_ends(made[1], "n1"));
  CHECK(made[1].faults[0].signal == SIGKILL);
  CHECK(failed_calls(d->plan) == 1);
}

TEST_CASE("a planned restart that reproduces the bug is followed like any other schedule") {
  const auto config = deployment();
  Inputs inputs = inputs_of(config, {incident()});
  inputs.profile = usual();
  Cluster cluster([&](const Schedule& schedule, int) {
    Answer answer;
    if (only_ends(schedule, "n1")) answer.trace = restarted("n1", 10);
    answer.oracle = hit_if(fault_of(schedule, FaultKind::crash, "n1") != nullptr);
    return answer;
  });
  const Result<Diagnosis> d = diagnose::diagnose(inputs, cluster, {});
  REQUIRE(d);
  CHECK(d->target_reached);
  CHECK(d->schedules == 1);
  REQUIRE(d->found);
  CHECK(only_ends(*d->found, "n1"));
}

TEST_CASE("a planned restart that reproduces the bug is followed even if nothing looks like a fault") {
  const auto config = deployment();
  Dump dump;
  dump.started(-2, "n1");
  dump.exited(8, "n1", 0);
  dump.started(9, "n1");
  recovers(dump, 9);
  dump.ends(40);
  Inputs inputs = inputs_of(config, {dump});
  inputs.profile = usual();
  Cluster cluster([&](const Schedule& schedule, int) {
    Answer answer;
    if (only_ends(schedule, "n1")) answer.trace = restarted("n1", 10);
    answer.oracle = hit_if(fault_of(schedule, FaultKind::crash, "n1") != nullptr);
    return answer;
  });
  const Result<Diagnosis> d = diagnose::diagnose(inputs, cluster, {});
  REQUIRE(d);
  CHECK(d->plan.candidates.empty());
  CHECK(d->target_reached);
  REQUIRE(d->found);
  CHECK(only_ends(*d->found, "n1"));
}

TEST_CASE("no planned restart is run if the node would stay down, nothing follows or the profile has one") {
  const auto runs_with = [](const config::Config& config, const Dump& dump, std::optional<profile::Profile> profile) {
    Inputs inputs = inputs_of(config, {dump});
    inputs.profile = std::move(profile);
    inputs.without = {"contexts", "shapes", "parts"};
    int first = -1;
    Cluster cluster([&](const Schedule& schedule, int run) {
      Answer answer;
      if (first < 0 && only_ends(schedule, "n1") && run == 1) first = run;
      answer.oracle = hit_if(fault_of(schedule, FaultKind::syscall) != nullptr);
      return answer;
    });
    const Result<Diagnosis> d = diagnose::diagnose(inputs, cluster, {});
    REQUIRE(d);
    return std::pair(d->tried.at(1).note, d->plan.notes);
  };
  const std::string planned = "a planned restart";
  auto config = deployment();
  CHECK(runs_with(config, incident(), usual()).first.starts_with(planned));
  profile::Profile with = usual();
  REQUIRE(profile::learn_restart(with.restarts, restarted("n1", 10), "n1"));
  CHECK_FALSE(runs_with(config, incident(), with).first.starts_with(planned));
  Dump nothing_after;
  nothing_after.scf(1, "n1", "pwrite64", EIO, "/srv/n1/journal");
  nothing_after.crashed(8, "n1");
  nothing_after.started(9, "n1");
  nothing_after.ends(40);
  CHECK_FALSE(runs_with(config, nothing_after, usual()).first.starts_with(planned));
  config.nodes[0].restart.reset();
  const auto [first, notes] = runs_with(config, incident(), usual());
  CHECK_FALSE(first.starts_with(planned));
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("has no `restart`") != std::string::npos && note.find("set `restart`") != std::string::npos;
  }));
}
