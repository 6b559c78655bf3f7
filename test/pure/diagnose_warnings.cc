// Before runs are made that will be useless, a warning says so, and what can be done. Also tests how schedules are
// distinguished while they are tried.
#include <catch2/catch.hpp>

#include "diagnose/words.h"
#include "diagnose_play.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::Fault;
using schedule::FaultKind;
using schedule::Schedule;

namespace {

bool warns(const std::vector<std::string>& warnings, std::string_view of, std::string_view remedy) {
  return std::any_of(warnings.begin(), warnings.end(), [&](const std::string& warning) {
    return warning.find(of) != std::string::npos && warning.find(remedy) != std::string::npos;
  });
}

profile::Profile with_workload(std::int64_t length_ns, std::optional<std::int64_t> last_exchange_ns, bool hit = false) {
  profile::Profile profile = profile_of(Dump{});
  profile::learn_workload(profile, false, 1000, 1000,
                          {.length_ns = length_ns, .last_exchange_ns = last_exchange_ns, .hit = hit});
  return profile;
}

Dump killed_at(double t) {
  Dump dump;
  dump.started(-2, "n1");
  dump.crashed(t, "n1");
  dump.ends(40);
  return dump;
}

constexpr std::string_view kLate = "but these faults of the dump came later";
constexpr std::string_view kGoOn = "let the workload run for at least";

}  // namespace

TEST_CASE("faults after the end of the workload are reported before the first run") {
  const auto config = deployment();
  const Plan late = plan_of(config, killed_at(17), with_workload(7 * kSecond, 6 * kSecond));
  REQUIRE(late.warnings.size() == 1);
  CHECK(warns(late.warnings, kLate, kGoOn));
  CHECK(late.warnings[0].find("crash of n1 at 17s") != std::string::npos);
  CHECK(plan_of(config, killed_at(6), with_workload(7 * kSecond, 6 * kSecond)).warnings.empty());
  // If production had no workload whose end is known, the warning is not given.
  Dump unknown(false);
  unknown.crashed(17, "n1");
  unknown.ends(40);
  CHECK(plan_of(config, unknown, with_workload(7 * kSecond, 6 * kSecond)).warnings.empty());
  // Once a run has shown how long the workload takes, that duration decides.
  Inputs inputs = inputs_of(config, {killed_at(17)});
  inputs.profile = with_workload(7 * kSecond, 6 * kSecond);
  const auto plan = make_plan(inputs, 30 * kSecond);
  REQUIRE(plan);
  CHECK(plan->warnings.empty());
}

TEST_CASE("a workload that idles at its end and an oracle that hits without faults are reported") {
  const auto config = deployment();
  const Plan idle = plan_of(config, killed_at(6), with_workload(30 * kSecond, 20 * kSecond));
  CHECK(warns(idle.warnings, "exchanges nothing with the nodes in its last 10s", "go on working until its end"));
  CHECK(plan_of(config, killed_at(6), with_workload(30 * kSecond, 27 * kSecond)).warnings.empty());
  CHECK(plan_of(config, killed_at(6), with_workload(30 * kSecond, {})).warnings.empty());

  const Plan hits = plan_of(config, killed_at(6), with_workload(30 * kSecond, 29 * kSecond, true));
  CHECK(
      warns(hits.warnings, "the oracle found the bug in 1 of 1 runs without faults", "examine only this run's files"));
}

TEST_CASE("hosts that match no node are reported as a warning that names --map") {
  const auto config = deployment();
  Dump dump;
  dump.scf(1, "db-7", "pwrite64", EIO, "/srv/journal");
  dump.scf(1, "db-8", "pwrite64", EIO, "/srv/journal");
  dump.ends(10);
  CHECK(warns(plan_of(config, dump).warnings, "could not match 'db-7'", "--map db-7=NODE"));
}

TEST_CASE("calls and functions of the dump that the survey lacks are reported before the second trial") {
  const auto config = deployment();
  for (const bool own : {false, true}) {
    CAPTURE(own);
    Dump dump;
    Act compacts{3, "n1", "compactLog", "", ""};
    record(dump, {compacts}, 3.5);
    dump.crashed(3.5, "n1");
    dump.scf(2, "n2", "pwrite64", EIO, "/srv/n2/journal");
    if (own) dump.scf(2.5, "n1", "pwrite64", EIO, "/srv/n1/journal");
    dump.ends(30);
    Play play({{1, "n1", "applyLog", "", ""}, {2, "n2", "", "openat", "/run/n2/other"}},
              [](const std::vector<Hit>&, int) { return false; });
    std::vector<std::string> warned;
    int runs = -1;
    Inputs inputs = inputs_of(config, {dump});
    const auto d = diagnose::diagnose(inputs, play, [&](const Progress& p) {
      if (p.warnings == nullptr || !warns(*p.warnings, "that the nodes never make", "extend the workload")) return;
      if (runs < 0) runs = p.schedules;
      warned = *p.warnings;
    });
    REQUIRE(d);
    CHECK(runs <= 2);  // the survey comes after the first trial
    CHECK(warns(warned, "pwrite64(*/journal) on n2", "extend the workload"));
    // If n1 has a fault of its own, what n1 does later may be a consequence, so there is no warning.
    CHECK(warns(warned, "compactLog of n1", "extend the workload") == !own);
  }
}

TEST_CASE("an oracle that hits in a run in which no fault was effective is reported at once") {
  const auto config = deployment();
  Cluster cluster([&](const Schedule& schedule, int) {
    Answer answer;
    if (schedule.faults.empty()) return answer;
    answer.oracle = schedule::OracleAnswer::hit;
    for (const Fault& fault : schedule.faults) answer.idle.push_back(fault.id);
    return answer;
  });
  const auto d = diagnose::diagnose(inputs_of(config, {killed_at(6)}), cluster, {});
  REQUIRE(d);
  CHECK(warns(d->plan.warnings, "in a run in which no fault had an effect", "examine only this run's files"));
}

TEST_CASE("progress lines distinguish schedules that differ only in their contexts") {
  const auto parse = [](std::string_view first, std::string_view second) {
    const auto schedule = schedule::parse_schedule(fmt::format(R"(
version = 1
name = "s"
[[fault]]
id = "cut"
kind = "partition"
node = "n1"
duration = "2s"
when = [ {} ]
[[fault]]
id = "kill"
kind = "crash"
node = "n2"
when = [ {} ]
)",
                                                               first, second),
                                                   "s.toml");
    REQUIRE(schedule);
    return short_words(*schedule);
  };
  std::set<std::string> lines;
  for (const char* first : {R"({ elapsed = "1s" })", R"({ elapsed = "2s" })", R"({ function = "f" })"})
    for (const char* second :
         {R"({ syscall = "rename", path2 = "*/epoch" })", R"({ syscall = "rename", path2 = "*/epoch", count = 2 })",
          R"({ function = "g", offset = 8 })", R"({ function = "g", offset = 16 })", R"({ log = "ready" })",
          R"({ state = "started" })"})
      lines.insert(parse(first, second));
  CHECK(lines.size() == 18);
  CHECK(lines.contains("2 faults: cut at 1s for 2s; kill after the 2nd rename(*/epoch)"));
}
