// The search on a scripted cluster: which schedules it runs, when a hit is accepted, and when the search ends.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "diagnose/confirm.h"
#include "diagnose/thresholds.h"
#include "diagnose_world.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::FaultKind;
using schedule::OracleAnswer;
using schedule::Schedule;
using schedule::Verdict;

namespace {

Diagnosis diagnosis_of(const config::Config& config, const Dump& dump, Cluster& cluster,
                       std::vector<Progress>* progress = nullptr, bool simplify = false) {
  Inputs inputs = inputs_of(config, {dump});
  inputs.simplify = simplify;
  Result<Diagnosis> d = diagnose::diagnose(inputs, cluster, [&](const Progress& p) {
    if (progress != nullptr) progress->push_back(p);
  });
  if (!d) throw std::runtime_error(d.error().message);
  return *std::move(d);
}

// n1 is partitioned, and all nodes record that. The bug occurs if n1 is partitioned for at least 8 s.
Dump partition_dump() {
  Dump dump;
  dump.cut(5, 17, 1, {2, 3});
  dump.ends(30);
  return dump;
}
bool partitioned(const Schedule& s) {
  const schedule::Fault* f = fault_of(s, FaultKind::partition, "n1");
  return f != nullptr && f->peers.empty() && f->duration_ns >= 8 * kSecond;
}

// Three calls fail, on the files aaa, bbb and ccc. The most surprising failure, EIO, comes first.
Dump calls_dump() {
  Dump dump;
  dump.scf(0.1, "n1", "openat", EIO, "/data/n1/aaa");
  dump.scf(0.2, "n1", "read", ENFILE, "/data/n1/bbb");
  dump.scf(0.3, "n2", "openat", EMFILE, "/data/n2/ccc");
  dump.ends(30);
  return dump;
}

// A lead with these faults, all of which fired. Each of them fails the writes of n2 to another file.
Lead lead_of(const std::vector<std::string>& ids) {
  Lead lead;
  for (const std::string& id : ids) {
    schedule::Fault& fault = lead.schedule.faults.emplace_back();
    fault.id = id;
    fault.kind = FaultKind::syscall;
    fault.node = "n2";
    fault.call.syscall = "write";
    fault.call.path = fmt::format("/data/{}", id);
    lead.fired.insert(id);
  }
  return lead;
}

}  // namespace

TEST_CASE("a partition is found at once and confirmed with as many runs as the test needs") {
  const auto config = deployment();
  Cluster cluster([](const Schedule& s, int) { return Answer{hit_if(partitioned(s)), {}, {}}; });
  std::vector<Progress> progress;
  const Diagnosis d = diagnosis_of(config, partition_dump(), cluster, &progress);
  CHECK(d.verdict == Verdict::reproduced);
  CHECK(d.target_reached);
  CHECK(d.level == 1);
  CHECK(d.schedules == 1);
  CHECK(d.confirm_runs == 3);
  CHECK(d.rate_runs == 8);     // 8 of 8 is hardly possible for a schedule with a rate of 60 %
  CHECK(d.control_runs == 2);  // with only one control run, 8 of 8 against 0 of 1 could be chance
  CHECK(d.control_hits == 0);
  CHECK(d.runs == 1 + 1 + 3 + 8 + 1);
  CHECK(cluster.runs == d.runs);
  CHECK(d.tally.rate() == 1.0);
  REQUIRE(d.found);
  CHECK(partitioned(*d.found));
  CHECK(in_words(d).find("n1") != std::string::npos);
  CHECK(in_words(d).find("8 of 8") != std::string::npos);
  REQUIRE(progress.size() == static_cast<std::size_t>(d.runs));
  CHECK(progress[0].doing.find("control") != std::string::npos);
  CHECK(progress[2].doing.find("confirming, run 1") != std::string::npos);
  CHECK(progress.back().runs_left <= kMostAfterFirst);  // after a hit, fewer runs are left than max_runs permits
}

TEST_CASE("a found schedule is reported before it is minimised") {
  const auto config = deployment();
  Cluster cluster([](const Schedule& s, int) { return Answer{hit_if(partitioned(s)), {}, {}}; });
  Inputs inputs = inputs_of(config, {partition_dump()});
  inputs.simplify = true;
  int before = 0, after = 0;
  const Result<Diagnosis> d = diagnose::diagnose(inputs, cluster, [&](const Progress& p) {
    if (p.found == nullptr) {
      CHECK(after == 0);
      ++before;
      return;
    }
    ++after;
    REQUIRE(p.found->found);
    CHECK_FALSE(p.found->target_reached);  // whether the target is reached is decided later
    CHECK(partitioned(*p.found->found));
    // the schedule is reported in the form in which it was found
    CHECK_FALSE(p.found->found->faults.at(0).when.empty());
    CHECK(p.found->tally.reproduced == 3);
    CHECK(in_words(*p.found).find("3 of 3") != std::string::npos);
    CHECK(p.runs_left <= kMostAfterFirst);  // after a hit, fewer runs are left than max_runs permits
  });
  REQUIRE(d);
  CHECK(before == 1 + 1 + 3);
  CHECK(after == d->simplify_runs + d->rate_runs + 1);  // one more run is made without faults
  CHECK(after > 0);
  CHECK(d->found->faults.at(0).when.empty());  // the bug occurs without the fault's time, so it was removed
}

TEST_CASE("a search can end at the first reproduction or after confirmation") {
  const auto config = deployment();
  Cluster cluster([](const Schedule& s, int) { return Answer{hit_if(partitioned(s)), {}, {}}; });
  Inputs inputs = inputs_of(config, {partition_dump()});
  inputs.stop_after = GENERATE(StopAfter::found, StopAfter::confirmed);
  inputs.simplify = false;
  bool announced = false;
  const Result<Diagnosis> d = diagnose::diagnose(inputs, cluster, [&](const Progress& p) {
    if (p.first == nullptr) return;
    announced = true;
    CHECK(partitioned(p.first->schedule));
  });
  REQUIRE(d);
  REQUIRE(d->found);
  REQUIRE(d->first);
  CHECK(partitioned(d->tried[*d->first].schedule));
  CHECK(d->verdict == Verdict::reproduced);
  if (inputs.stop_after == StopAfter::found) {
    CHECK(d->unconfirmed);
    CHECK_FALSE(d->target_reached);
    CHECK(d->runs == 2);  // the control run, and a run of the first schedule
    CHECK(d->tally.conclusive() == 0);
    CHECK(d->remarks.rate.find("not measured") != std::string::npos);
  } else {
    CHECK_FALSE(d->unconfirmed);
    CHECK(announced);
    CHECK(d->target_reached);
    CHECK(d->simplify_runs == 0);
    CHECK(d->rate_runs == 8);
  }
}

TEST_CASE("a simpler schedule is run no more often than its test needs, with any number of jobs") {
  auto config = deployment();
  config.diagnose.jobs = GENERATE(1, 8);
  Cluster cluster([](const Schedule& s, int) { return Answer{hit_if(partitioned(s)), {}, {}}; });
  const Diagnosis d = diagnosis_of(config, partition_dump(), cluster, nullptr, true);
  CHECK(d.target_reached);
  const auto ideas = std::count_if(d.tried.begin(), d.tried.end(),
                                   [](const Tried& tried) { return tried.note.rfind("simpler:", 0) == 0; });
  CHECK(ideas > 0);
  CHECK(d.simplify_runs <= ideas);
}

TEST_CASE("runs that are made ahead are those that follow the likelier outcomes") {
  // The fault's time and its duration matter, so the two forms without them miss. The third form only rounds them.
  Cluster cluster([](const Schedule& s, int) {
    const schedule::Fault* f = fault_of(s, FaultKind::partition, "n1");
    return Answer{hit_if(f != nullptr && !f->when.empty() && f->duration_ns >= 8 * kSecond), {}, {}};
  });
  cluster.free_places = 1;
  Dump dump;
  dump.cut(5.3, 17.6, 1, {2, 3});
  dump.ends(30);
  const Diagnosis d = diagnosis_of(deployment(), dump, cluster, nullptr, true);
  REQUIRE(d.target_reached);
  CHECK(d.simplify_runs == 3);
  CHECK(d.rate_runs == 8);
  // The control run and the trial beside it, then 14 runs in pairs, which are 3 that confirm, 3 simpler forms and 8
  // that measure the rate, and at last the second run without faults.
  INFO(fmt::format("{}", fmt::join(cluster.made, "\n")));
  CHECK(cluster.rounds == 1 + 14 / 2 + 1);
}

TEST_CASE("a run of a simpler schedule is not waited for if it takes far longer than those that reproduced the bug") {
  Cluster cluster([](const Schedule& s, int) { return Answer{hit_if(partitioned(s)), {}, {}}; });
  cluster.workload_of = [](const Schedule& s) { return (s.faults.empty() ? 4 : 7) * kSecond; };
  const Diagnosis d = diagnosis_of(deployment(), partition_dump(), cluster, nullptr, true);
  REQUIRE(d.target_reached);
  const auto limited = static_cast<std::size_t>(std::count(cluster.waits.begin(), cluster.waits.end(), 19 * kSecond));
  CHECK(limited > 0);
  const auto unlimited = static_cast<std::size_t>(std::count(cluster.waits.begin(), cluster.waits.end(), 0));
  CHECK(limited + unlimited == cluster.waits.size());
  // neither the runs before minimisation nor those that measure the rate have a limit
  CHECK(std::count(cluster.waits.begin(), cluster.waits.begin() + 4, 0) == 4);
  CHECK(std::count(cluster.waits.end() - 8, cluster.waits.end(), 0) == 8);
}

TEST_CASE("a fault without which the bug occurred is dropped, even if simplification is off") {
  const auto config = deployment();
  Dump dump = partition_dump();
  dump.crashed(18, "n2");
  // The crash fires in two of three runs. The bug needs either the partition alone or both faults.
  const bool needed = GENERATE(false, true);
  CAPTURE(needed);
  Cluster cluster([&](const Schedule& s, int run) {
    const schedule::Fault* crash = fault_of(s, FaultKind::crash);
    Answer answer;
    const bool comes = crash != nullptr && run % 3 != 0;
    if (crash != nullptr && !comes) answer.unfired = {crash->id};
    // At first both faults are injected together, because both were observed.
    answer.oracle = hit_if(fault_of(s, FaultKind::partition) != nullptr && partitioned(s) && (!needed || comes));
    return answer;
  });
  const Diagnosis d = diagnosis_of(config, dump, cluster);
  REQUIRE(d.found);
  CHECK((fault_of(*d.found, FaultKind::crash) != nullptr) == needed);
  if (needed) return;
  CHECK(d.target_reached);
  CHECK(d.simplify_runs == 0);
  CHECK(d.tally.rate() == 1.0);
  CHECK(in_words(d).find("without 1 other fault") != std::string::npos);
}

TEST_CASE("a failing call is found among others, by rank") {
  const auto config = deployment();
  Cluster cluster([](const Schedule& s, int) {
    const schedule::Fault* f = fault_of(s, FaultKind::syscall, "n1");
    return Answer{hit_if(f != nullptr && f->call.syscall == "read"), {}, {}};
  });
  const Diagnosis d = diagnosis_of(config, calls_dump(), cluster);
  CHECK(d.target_reached);
  CHECK(d.schedules == 2);
  REQUIRE(d.found);
  CHECK(d.found->faults.at(0).call.path == "*/bbb");
  CHECK(d.found->faults.at(0).error == ENFILE);
}

TEST_CASE("equal verdicts give an equal search") {
  const auto config = deployment();
  std::vector<std::string> first;
  for (int round = 0; round < 2; ++round) {
    std::mt19937 random(7);
    Cluster cluster([&](const Schedule& s, int) {
      Answer answer;
      answer.oracle = s.faults.empty() ? OracleAnswer::miss : hit_if(random() % 4 == 0);
      if (random() % 5 == 0) answer.oracle = OracleAnswer::unknown;
      return answer;
    });
    (void)diagnosis_of(config, calls_dump(), cluster);
    if (round == 0) first = cluster.made;
    else CHECK(cluster.made == first);
  }
  CHECK(first.size() > 3);
}

TEST_CASE("calls of attached nodes are failed only if the kernel can override their results") {
  auto config = deployment();
  config.nodes[0].attach = config::Attach{};
  Dump dump;
  dump.scf(3, "n1", "write", ENOSPC, "/data/n1/log");
  dump.ends(10);
  for (const bool overrides : {false, true}) {
    Inputs inputs = inputs_of(config, {dump});
    inputs.overrides = overrides;
    int held = 0, failed = 0;
    Cluster cluster([&](const Schedule& s, int) {
      for (const schedule::Fault& fault : s.faults) {
        if (fault.kind != FaultKind::syscall) continue;
        failed += fault.error != 0 ? 1 : 0;
        held += fault.delay_ns > 0 || fault.effect == schedule::Effect::bytes || fault.effect == schedule::Effect::full
                    ? 1
                    : 0;
      }
      return Answer{hit_if(fault_of(s, FaultKind::syscall, "n1") != nullptr), {}, {}, ""};
    });
    const Result<Diagnosis> d = diagnose::diagnose(inputs, cluster, {});
    REQUIRE(d);
    CHECK(d->target_reached == overrides);
    CHECK((failed > 0) == overrides);
    CHECK(held == 0);
    const bool noted = std::any_of(d->plan.notes.begin(), d->plan.notes.end(), [](const std::string& note) {
      return note.find("n1 is not started by rose") != std::string::npos;
    });
    CHECK(noted == !overrides);
  }
}

TEST_CASE("a bug that occurs without faults is reported at once") {
  const auto config = deployment();
  Cluster cluster([](const Schedule&, int) { return Answer{OracleAnswer::hit, {}, {}}; });
  const Diagnosis d = diagnosis_of(config, partition_dump(), cluster);
  CHECK(d.verdict == Verdict::inconclusive);
  CHECK_FALSE(d.target_reached);
  CHECK_FALSE(d.found);
  CHECK(d.runs == 1);
  CHECK(d.schedules == 0);
  CHECK(d.reason.find("without faults") != std::string::npos);
}

TEST_CASE("an inconclusive fault-free run is repeated once") {
  const auto config = deployment();
  SECTION("the second run is conclusive") {
    Cluster cluster([](const Schedule& s, int run) {
      return Answer{run == 0 ? OracleAnswer::unknown : hit_if(partitioned(s)), {}, {}};
    });
    const Diagnosis d = diagnosis_of(config, partition_dump(), cluster);
    CHECK(d.target_reached);
    CHECK(d.runs == 2 + 1 + 3 + 8 + 1);
  }
  SECTION("the second run is inconclusive too") {
    Cluster cluster(
        [](const Schedule&, int) { return Answer{OracleAnswer::unknown, {}, {}, "the oracle is missing"}; });
    const Diagnosis d = diagnosis_of(config, partition_dump(), cluster);
    CHECK(d.verdict == Verdict::inconclusive);
    CHECK(d.runs == 2);
    CHECK(d.reason.find("the oracle is missing") != std::string::npos);
  }
}

TEST_CASE("a schedule with a rate of 60 % is kept, and reported with its rate if no better one is found") {
  auto config = deployment();
  config.diagnose.levels = {1};
  int right = 0;
  Cluster cluster([&](const Schedule& s, int) {
    const schedule::Fault* f = fault_of(s, FaultKind::syscall, "n1");
    const bool is_right = f != nullptr && f->call.syscall == "read";
    // The bug occurs in 3 of 5 runs, in a fixed pattern.
    static constexpr bool kPattern[] = {true, true, false, true, false};
    return Answer{hit_if(is_right && kPattern[right++ % 5]), {}, {}};
  });
  const Diagnosis d = diagnosis_of(config, calls_dump(), cluster);
  CHECK(d.verdict == Verdict::not_reproduced);
  CHECK_FALSE(d.target_reached);
  REQUIRE(d.found);
  CHECK(d.found->faults.at(0).call.path == "*/bbb");
  CHECK(d.tally.conclusive() == 10);  // all runs of the schedule count for the rate
  CHECK(d.tally.rate() == Approx(0.6).margin(0.11));
  // The result of the schedule's test is reported, too, because with such a rate 8 of 10 runs may reproduce the bug by
  // chance.
  CHECK_THAT(d.reason,
             Catch::Contains("no schedule reached the target rate of 80 %") &&
                 Catch::Contains(fmt::format("in {} of {} confirming runs, and in {} of 10 runs", d.tested.reproduced,
                                             d.tested.conclusive(), d.tally.reproduced)));
  CHECK_FALSE(in_words(d).empty());
  CHECK(d.schedules >= 3);  // the search continued after the schedule that reproduces too rarely
  CHECK(d.level == 1);
}

TEST_CASE("a better schedule that is found later replaces a flaky one") {
  const auto config = deployment();
  int flaky = 0;
  Cluster cluster([&](const Schedule& s, int) {
    if (const schedule::Fault* f = fault_of(s, FaultKind::syscall, "n2"); f != nullptr && s.faults.size() == 1)
      return Answer{OracleAnswer::hit, {}, {}};
    const schedule::Fault* f = fault_of(s, FaultKind::syscall, "n1");
    return Answer{hit_if(f != nullptr && f->call.syscall == "openat" && flaky++ % 2 == 0), {}, {}};
  });
  const Diagnosis d = diagnosis_of(config, calls_dump(), cluster);
  CHECK(d.target_reached);
  CHECK(d.found->faults.at(0).node == "n2");
  CHECK(d.tally.rate() == 1.0);
  CHECK(d.schedules <= 12);  // the schedule that reproduces too rarely was refined before others were tried
}

TEST_CASE("a fault that never fires ends its branch") {
  auto config = deployment();
  Dump dump;
  dump.scf(8, "n1", "write", ENOSPC, "/data/n1/wal");  // this fault has several shapes
  dump.scf(9, "n2", "openat", EIO, "/data/n2/ccc");
  dump.ends(30);
  std::set<std::string> with_write;
  Cluster cluster([&](const Schedule& s, int) {
    Answer answer;
    for (const schedule::Fault& f : s.faults)
      if (f.call.syscall == "write") {
        answer.unfired.push_back(f.id);
        with_write.insert(schedule::fingerprint(s));
      }
    return answer;
  });
  const Diagnosis d = diagnosis_of(config, dump, cluster);
  CHECK_FALSE(d.target_reached);
  CHECK_FALSE(d.found);
  CHECK(d.verdict == Verdict::not_reproduced);
  // The fault is tried at its time, earlier, and without a time. Its call is never made, so it is not combined with
  // others, and none of its schedules is repeated.
  CHECK(with_write.size() <= 6);
  int tries = 0;
  for (const std::string& made : cluster.made) tries += with_write.contains(made) ? 1 : 0;
  CHECK(tries == static_cast<int>(with_write.size()));
}

TEST_CASE("if a call came before its fault was armed, the fault is armed earlier") {
  auto config = deployment();
  Dump dump;
  dump.scf(10, "n1", "read", EIO, "/data/n1/snapshot");
  dump.ends(30);
  Cluster cluster([&](const Schedule& s, int) {
    // In the test deployment the call comes after six seconds. If it is already failed at the start, the bug does not
    // occur.
    Answer answer;
    const schedule::Fault* f = fault_of(s, FaultKind::syscall, "n1");
    if (f == nullptr) return answer;
    const std::int64_t from = f->when.empty() ? 0 : f->when[0].elapsed_ns;
    if (from > 6 * kSecond) answer.unfired.push_back(f->id);
    answer.oracle = hit_if(from > 0 && from <= 6 * kSecond);
    return answer;
  });
  const Diagnosis d = diagnosis_of(config, dump, cluster);
  CHECK(d.target_reached);
  CHECK(d.schedules == 2);
  REQUIRE(d.found);
  CHECK(d.found->faults.at(0).when.at(0).elapsed_ns == 4 * kSecond);
}

TEST_CASE("a first fault that is not reached rules out all schedules that wait for it") {
  const auto config = deployment();
  Dump dump;
  dump.paused(3, 8, "n2");
  dump.crashed(12, "n1");
  dump.crashed(20, "n3");
  dump.ends(30);
  Cluster cluster([](const Schedule& s, int) {
    Answer answer;
    bool lost = false;
    for (const schedule::Fault& f : s.faults) {
      lost = lost || f.kind == FaultKind::pause;
      if (lost) answer.unfired.push_back(f.id);
    }
    return answer;
  });
  const Diagnosis d = diagnosis_of(config, dump, cluster);
  int with_pause = 0;
  for (const Tried& tried : d.tried) with_pause += fault_of(tried.schedule, FaultKind::pause) != nullptr ? 1 : 0;
  CHECK(with_pause == 1);
  CHECK(d.verdict == Verdict::not_reproduced);  // only the runs without the pause count for the verdict
}

TEST_CASE("a run with an unknown oracle answer is repeated once and does not count") {
  const auto config = deployment();
  int tries = 0;
  Cluster cluster([&](const Schedule& s, int) {
    if (s.faults.empty()) return Answer{};
    return Answer{++tries == 1 ? OracleAnswer::unknown : hit_if(partitioned(s)), {}, {}};
  });
  const Diagnosis d = diagnosis_of(config, partition_dump(), cluster);
  CHECK(d.target_reached);
  CHECK(d.schedules == 1);
  CHECK(d.runs == 1 + 2 + 3 + 8 + 1);
  CHECK(d.tally.inconclusive == 0);
}

TEST_CASE("a hit is confirmed before schedules with unknown answers are repeated") {
  auto config = deployment();
  config.diagnose.jobs = 4;
  std::set<std::string> unclear;
  std::size_t asked = 0;
  Cluster cluster([&](const Schedule& s, int) {
    if (s.faults.empty()) return Answer{};
    if (s.faults.size() == 1 && s.faults[0].error == EIO) return Answer{OracleAnswer::hit, {}, {}};
    unclear.insert(schedule::fingerprint(s));
    ++asked;
    return Answer{OracleAnswer::unknown, {}, {}};
  });
  const Diagnosis d = diagnosis_of(config, calls_dump(), cluster);
  CHECK(d.target_reached);
  CHECK(asked > 0);
  CHECK(asked == unclear.size());
}

TEST_CASE("inconclusive confirmation runs are bounded and count for neither side") {
  const auto config = deployment();
  SECTION("some runs are inconclusive") {
    int tries = 0;
    Cluster cluster([&](const Schedule& s, int) {
      if (s.faults.empty()) return Answer{};
      return Answer{++tries % 3 == 2 ? OracleAnswer::unknown : hit_if(partitioned(s)), {}, {}};
    });
    const Diagnosis d = diagnosis_of(config, partition_dump(), cluster);
    CHECK(d.target_reached);
    CHECK(d.tested.reproduced == 3);
    CHECK(d.tested.inconclusive > 0);
    CHECK(d.tally.inconclusive > 0);
    CHECK(d.tally.rate() == 1.0);
  }
  SECTION("all runs are inconclusive") {
    int tries = 0;
    Cluster cluster([&](const Schedule& s, int) {
      if (s.faults.empty()) return Answer{};
      return Answer{++tries == 1 ? OracleAnswer::hit : OracleAnswer::unknown, {}, {}};
    });
    auto small = deployment();
    small.diagnose.max_runs = 60;
    const Diagnosis d = diagnosis_of(small, partition_dump(), cluster);
    CHECK_FALSE(d.target_reached);
    CHECK(d.runs <= 60);
    CHECK(d.tally.conclusive() == 0);
    CHECK(d.tally.inconclusive <= 10 / 2 + 3);
  }
}

TEST_CASE("a search with only inconclusive runs is inconclusive") {
  const auto config = deployment();
  Cluster cluster([](const Schedule& s, int) {
    return Answer{
        s.faults.empty() ? OracleAnswer::miss : OracleAnswer::unknown, {}, {}, "node n2 was not ready in 10s"};
  });
  const Diagnosis d = diagnosis_of(config, calls_dump(), cluster);
  CHECK(d.verdict == Verdict::inconclusive);
  CHECK_FALSE(d.found);
  CHECK(d.reason.find("n2 was not ready") != std::string::npos);
  for (const Tried& tried : d.tried) CHECK(tried.tally.runs() <= 2);
}

TEST_CASE("promising schedules that missed are repeated after all first trials") {
  const auto config = deployment();
  int of_partition = 0;
  Dump dump = partition_dump();
  dump.scf(0.2, "n2", "openat", EIO, "/data/n2/ccc");
  Cluster cluster([&](const Schedule& s, int) {
    if (!partitioned(s)) return Answer{};
    if (s.faults.size() > 1) return Answer{};
    return Answer{hit_if(++of_partition > 1), {}, {}};  // the first run of the schedule must miss
  });
  const Diagnosis d = diagnosis_of(config, dump, cluster);
  CHECK(d.target_reached);
  REQUIRE(d.found);
  CHECK(d.found->faults.size() == 1);
  CHECK(d.schedules > 1);
  // Each tested schedule is listed once.
  std::set<std::string> seen;
  for (const Tried& tried : d.tried) CHECK(seen.insert(schedule::fingerprint(tried.schedule)).second);
}

TEST_CASE("schedules whose runs showed the dump's symptoms are repeated before others") {
  const auto config = deployment();
  Dump dump = calls_dump();
  dump.crashed(0.9, "n2", SIGABRT);  // n2 aborts after its call on the file ccc failed
  Cluster cluster([&](const Schedule& s, int) {
    Answer answer;
    const schedule::Fault* f = fault_of(s, FaultKind::syscall, "n2");
    if (f != nullptr && s.faults.size() == 1) {
      Dump seen;
      seen.crashed(1, "n2", SIGABRT);
      answer.trace = seen.take();
    }
    return answer;
  });
  const Diagnosis d = diagnosis_of(config, dump, cluster);
  CHECK_FALSE(d.found);
  std::vector<std::string> again;  // schedules that ran twice, in the order of their second runs
  std::set<std::string> seen;
  for (const std::string& made : cluster.made)
    if (!seen.insert(made).second) again.push_back(made);
  REQUIRE(again.size() >= 2);
  for (const Tried& tried : d.tried)
    if (schedule::fingerprint(tried.schedule) == again[0]) CHECK(tried.schedule.faults.at(0).call.path == "*/ccc");
}

TEST_CASE("a schedule that consists of a symptom alone is reported as such") {
  const auto config = deployment();
  Dump dump = calls_dump();
  dump.crashed(0.9, "n2", SIGABRT);  // n2 aborts after its call on the file ccc failed
  const auto found_by = [&](FaultKind kind) {
    Cluster cluster([&](const Schedule& s, int) {
      return Answer{hit_if(s.faults.size() == 1 && fault_of(s, kind, "n2") != nullptr), {}, {}};
    });
    return diagnosis_of(config, dump, cluster);
  };
  const Diagnosis symptom = found_by(FaultKind::crash);
  REQUIRE(symptom.target_reached);
  CHECK(in_words(symptom).find("a consequence, not a cause") != std::string::npos);
  const Diagnosis cause = found_by(FaultKind::syscall);
  REQUIRE(cause.target_reached);
  CHECK(in_words(cause).find("consequence") == std::string::npos);
}

TEST_CASE("max_runs is not exceeded in any phase") {
  for (int most = 1; most <= 25; ++most) {
    auto config = deployment();
    config.diagnose.max_runs = most;
    int right = 0;
    Cluster cluster([&](const Schedule& s, int) { return Answer{hit_if(partitioned(s) && right++ % 3 != 2), {}, {}}; });
    const Diagnosis d = diagnosis_of(config, partition_dump(), cluster);
    INFO("max_runs " << most);
    CHECK(cluster.runs <= most);
    CHECK(d.runs == cluster.runs);
    if (most == 1) {
      CHECK(d.verdict == Verdict::inconclusive);
      CHECK(d.reason.find("max_runs") != std::string::npos);
    }
  }
}

TEST_CASE("a search that max_runs ends without a hit names max_runs") {
  auto config = deployment();
  config.diagnose.max_runs = 3;
  Cluster cluster([](const Schedule&, int) { return Answer{}; });
  const Diagnosis d = diagnosis_of(config, calls_dump(), cluster);
  CHECK(d.runs == 3);
  CHECK(d.verdict == Verdict::not_reproduced);
  CHECK(d.reason.find("max_runs = 3") != std::string::npos);
}

TEST_CASE("a search that used up its runs lists the trials that it would make next") {
  auto config = deployment();
  config.diagnose.max_runs = 4;  // a control run, the first trial, the survey, and another trial
  Cluster few([](const Schedule&, int) { return Answer{}; });
  const Diagnosis d = diagnosis_of(config, calls_dump(), few);
  REQUIRE(!d.next.empty());
  CHECK(d.next.size() <= 5);
  CHECK(!d.next[0].why.empty());
  const auto of = [](const Diagnosis& one, const Schedule& schedule) {
    return std::find_if(one.tried.begin(), one.tried.end(), [&](const Tried& tried) {
      return schedule::fingerprint(tried.schedule) == schedule::fingerprint(schedule);
    });
  };
  for (const NotTried& one : d.next) CHECK(of(d, one.schedule) == d.tried.end());
  config.diagnose.max_runs = 20;
  Cluster more([](const Schedule&, int) { return Answer{}; });
  const Diagnosis longer = diagnosis_of(config, calls_dump(), more);
  const auto first_new = std::find_if(longer.tried.begin(), longer.tried.end(),
                                      [&](const Tried& tried) { return of(d, tried.schedule) == d.tried.end(); });
  REQUIRE(first_new != longer.tried.end());
  CHECK(schedule::fingerprint(first_new->schedule) == schedule::fingerprint(d.next[0].schedule));
  // If the bug was found, there is nothing to try next.
  config.diagnose.max_runs = 300;
  Cluster found(
      [](const Schedule& s, int) { return Answer{hit_if(fault_of(s, FaultKind::syscall, "n1") != nullptr), {}, {}}; });
  CHECK(diagnosis_of(config, calls_dump(), found).next.empty());
}

TEST_CASE("confirmation stops as soon as the target cannot be reached any more") {
  const auto config = deployment();
  int tries = 0;
  Cluster cluster([&](const Schedule& s, int) { return Answer{hit_if(!s.faults.empty() && ++tries == 1), {}, {}}; });
  auto one = deployment();
  one.diagnose.max_runs = 1 + 1 + 3;  // a control run, the hit, and three misses
  const Diagnosis d = diagnosis_of(one, partition_dump(), cluster);
  CHECK_FALSE(d.target_reached);
  CHECK(d.tally.not_reproduced == 3);
}

TEST_CASE("minimisation drops faults that are not needed and keeps the rate") {
  const auto config = deployment();
  Dump dump;
  dump.paused(3, 8, "n2");
  dump.crashed(12, "n1");
  dump.crashed(20, "n3");
  dump.ends(30);
  SECTION("only the crash of n1 at its time is needed") {
    Cluster cluster([](const Schedule& s, int) {
      // True if n1 crashes 12 s after the workload began, whatever the fault waits for.
      const schedule::Fault* f = fault_of(s, FaultKind::crash, "n1");
      std::int64_t t = 0;
      for (const schedule::Fault* at = f; at != nullptr;) {
        for (const schedule::Condition& c : at->when) t += c.elapsed_ns;
        at = at->after.empty() ? nullptr : s.find(at->after[0]);
      }
      return Answer{hit_if(f != nullptr && t == 12 * kSecond), {}, {}};
    });
    const Diagnosis d = diagnosis_of(config, dump, cluster, nullptr, true);
    CHECK(d.target_reached);
    REQUIRE(d.found);
    REQUIRE(d.found->faults.size() == 1);
    CHECK(d.found->faults[0].node == "n1");
    CHECK(d.found->faults[0].after.empty());
    CHECK(d.found->faults[0].when.at(0).elapsed_ns == 12 * kSecond);
    CHECK(d.schedules == 1);
    CHECK(d.tally.reproduced == 8);  // only runs of the smaller schedule count
    CHECK(in_words(d).find("2 other faults") != std::string::npos);
  }
  SECTION("all faults are needed") {
    // The bug needs each fault, in the original order and at the original times.
    Cluster cluster([&](const Schedule& s, int) {
      return Answer{hit_if(s.faults.size() == 3 && s.faults[0].duration_ns == 5 * kSecond &&
                           !s.faults[0].when.empty() && !s.faults[1].when.empty() && !s.faults[2].when.empty()),
                    {},
                    {}};
    });
    const Diagnosis d = diagnosis_of(config, dump, cluster, nullptr, true);
    CHECK(d.target_reached);
    CHECK(d.found->faults.size() == 3);
    CHECK(d.found->faults[1].after == std::vector<std::string>{"pause-n2"});
    // Two runs leave out each of the three faults, because a single miss may be chance. Then, one run leaves out each
    // of the three conditions, and one run halves the pause. The bound allows one further run.
    CHECK(d.simplify_runs <= 3 * 2 + 3 + 2);
  }
  SECTION("a smaller schedule that is flaky is rejected") {
    int small = 0;
    Cluster cluster([&](const Schedule& s, int) {
      if (s.faults.size() == 3) return Answer{hit_if(s.faults[0].duration_ns == 5 * kSecond), {}, {}};
      return Answer{hit_if(s.faults.size() == 2 && small++ % 2 == 0), {}, {}};
    });
    const Diagnosis d = diagnosis_of(config, dump, cluster, nullptr, true);
    CHECK(d.target_reached);
    CHECK(d.found->faults.size() == 3);
  }
  SECTION("a smaller schedule that reproduces at first but fails the test is undone") {
    int small = 0;
    Cluster cluster([&](const Schedule& s, int) {
      if (s.faults.size() == 3) return Answer{hit_if(s.faults[0].duration_ns == 5 * kSecond), {}, {}};
      return Answer{hit_if(s.faults.size() == 2 && small++ < 4), {}, {}};
    });
    const Diagnosis d = diagnosis_of(config, dump, cluster, nullptr, true);
    CHECK(d.target_reached);
    CHECK(d.found->faults.size() == 3);
    CHECK(d.tally.rate() == 1.0);
  }
  SECTION("fewer faults are kept although another simplification proves too rare") {
    int shorter = 0;
    Cluster cluster([&](const Schedule& s, int) {
      const schedule::Fault* f = fault_of(s, FaultKind::pause, "n2");
      if (f == nullptr) return Answer{};
      if (f->duration_ns == 5 * kSecond && !f->when.empty()) return Answer{OracleAnswer::hit, {}, {}};
      return Answer{hit_if(!f->when.empty() && shorter++ < 5), {}, {}};
    });
    const Diagnosis d = diagnosis_of(config, dump, cluster, nullptr, true);
    CHECK(d.target_reached);
    REQUIRE(d.found->faults.size() == 1);
    CHECK(d.found->faults[0].duration_ns == 5 * kSecond);
    CHECK(in_words(d).find("2 other faults") != std::string::npos);
    CHECK(in_words(d).find("simpler") == std::string::npos);
  }
  SECTION("each simplification is reported") {
    Cluster cluster([](const Schedule& s, int) {
      const schedule::Fault* f = fault_of(s, FaultKind::pause, "n2");
      return Answer{hit_if(f != nullptr && f->duration_ns >= 2 * kSecond && !f->when.empty()), {}, {}};
    });
    cluster.seconds = 2;  // if runs take longer, fewer of them are spent on shortening the pause
    const Diagnosis d = diagnosis_of(config, dump, cluster, nullptr, true);
    CHECK(d.target_reached);
    CHECK(d.found->faults.at(0).duration_ns == 3 * kSecond);
    CHECK(in_words(d).find("pause-n2 lasts 3s instead of 5s") != std::string::npos);
  }
  SECTION("minimisation uses at most a fixed share of the runs") {
    Cluster cluster([](const Schedule& s, int) { return Answer{hit_if(!s.faults.empty()), {}, {}}; });
    const Diagnosis d = diagnosis_of(config, dump, cluster, nullptr, true);
    CHECK(d.target_reached);
    CHECK(d.runs <= 1 + 1 + kMostAfterFirst);
  }
}

TEST_CASE("failed calls of one full disk are tried together first") {
  const auto config = deployment();
  Dump dump;
  for (int i = 0; i < 20; ++i) {
    dump.scf(5 + 0.4 * i, "n1", "write", ENOSPC, "/data/n1/wal");
    dump.scf(5.1 + 0.4 * i, "n1", "openat", ENOSPC, "/data/n1/snapshot.tmp");
  }
  dump.ends(13.5);
  Cluster cluster([](const Schedule& s, int) {
    bool write = false;
    bool open = false;
    for (const schedule::Fault& f : s.faults) {
      write = write || f.call.syscall == "write";
      open = open || f.call.syscall == "openat";
    }
    return Answer{hit_if(write && open), {}, {}};
  });
  const Diagnosis d = diagnosis_of(config, dump, cluster);
  CHECK(d.target_reached);
  CHECK(d.schedules == 1);
  REQUIRE(d.found->faults.size() == 2);
  for (const schedule::Fault& f : d.found->faults) {
    CHECK(f.times == -1);
    CHECK(f.when.at(0).elapsed_ns == 5 * kSecond);
  }
}

TEST_CASE("a failed call after a crash is tried in the dump's order") {
  const auto config = deployment();
  Dump dump;
  dump.crashed(6, "n1");
  dump.scf(9, "n2", "openat", EIO, "/data/n2/ccc");
  dump.ends(30);
  Cluster cluster([](const Schedule& s, int) {
    const schedule::Fault* f = fault_of(s, FaultKind::syscall);
    return Answer{
        hit_if(s.faults.size() == 2 && f != nullptr && f->after == std::vector<std::string>{"crash-n1"}), {}, {}};
  });
  const Diagnosis d = diagnosis_of(config, dump, cluster);
  CHECK(d.target_reached);
  CHECK(d.found->faults.size() == 2);
  CHECK(d.schedules <= 5);
}

TEST_CASE("if the workload's start is unknown, the first fault is tried at several points of it") {
  const auto config = deployment();
  Dump dump(false);
  dump.crashed(7, "n1");
  Cluster cluster([](const Schedule& s, int) {
    const schedule::Fault* f = fault_of(s, FaultKind::crash, "n1");
    return Answer{hit_if(f != nullptr && f->when.at(0).elapsed_ns >= 8 * kSecond), {}, {}};
  });
  cluster.seconds = 20;  // the control run shows that the workload takes 20 s
  const Diagnosis d = diagnosis_of(config, dump, cluster);
  CHECK(d.target_reached);
  CHECK(d.schedules == 3);
  CHECK(d.found->faults.at(0).when.at(0).elapsed_ns == 10 * kSecond);
}

TEST_CASE("a dump without faults is inconclusive after one run") {
  const auto config = deployment();
  Dump dump;
  dump.exited(5, "n1", 0);
  Cluster cluster([](const Schedule&, int) { return Answer{}; });
  const Diagnosis d = diagnosis_of(config, dump, cluster);
  CHECK(d.verdict == Verdict::inconclusive);
  CHECK(d.runs == 1);
  CHECK(d.reason.find("--plan") != std::string::npos);
}

TEST_CASE("an interrupted diagnosis reports its results so far") {
  const auto config = deployment();
  for (const int when : {0, 1, 4}) {
    Cluster cluster([](const Schedule& s, int) { return Answer{hit_if(partitioned(s)), {}, {}}; });
    cluster.fails_at = when;
    const Inputs inputs = inputs_of(config, {partition_dump()});
    const Result<Diagnosis> d = diagnose::diagnose(inputs, cluster, {});
    if (when < 4) {  // at most the run without faults was made, so nothing was found
      REQUIRE_FALSE(d);
      CHECK(d.error().kind == ErrorKind::cancelled);
      continue;
    }
    REQUIRE(d);
    CHECK(d->interrupted);
    CHECK(d->verdict == Verdict::inconclusive);
    CHECK_FALSE(d->target_reached);
    REQUIRE(d->found);
    CHECK(partitioned(*d->found));
    CHECK(d->tally.reproduced == 3);
  }
  // If no run reproduced the bug, the tried schedules are reported.
  Cluster cluster([](const Schedule&, int) { return Answer{}; });
  cluster.fails_at = 4;
  const Result<Diagnosis> d = diagnose::diagnose(inputs_of(config, {calls_dump()}), cluster, {});
  REQUIRE(d);
  CHECK(d->interrupted);
  CHECK(d->verdict == Verdict::inconclusive);
  CHECK_FALSE(d->found);
  CHECK(d->tried.size() >= 3);
  CHECK(d->reason.find("interrupted; none of the ") == 0);
}

TEST_CASE("a diagnosis interrupted during minimisation reports its current schedule") {
  const auto config = deployment();
  // The schedules of all runs are recorded, so that the diagnosis can be interrupted at each run that simplifies or
  // measures the rate.
  std::vector<Schedule> runs;
  const auto diagnosed = [&](std::optional<int> fails_at) {
    runs.clear();
    Cluster cluster([&](const Schedule& s, int) {
      runs.push_back(s);
      return Answer{hit_if(partitioned(s)), {}, {}};
    });
    cluster.fails_at = fails_at;
    Inputs inputs = inputs_of(config, {partition_dump()});
    inputs.simplify = true;
    const Result<Diagnosis> d = diagnose::diagnose(inputs, cluster, {});
    REQUIRE(d);
    return *d;
  };
  const Diagnosis whole = diagnosed({});
  REQUIRE(whole.simplify_runs > 0);
  const int found = whole.runs - whole.simplify_runs - whole.rate_runs;
  std::set<std::string> reported;
  for (int when = found + 1; when < whole.runs; ++when) {
    INFO(when);
    const Diagnosis d = diagnosed(when);
    CHECK(d.interrupted);
    CHECK_FALSE(d.target_reached);  // whether the target is reached is decided last
    CHECK(d.verdict == Verdict::reproduced);
    REQUIRE(d.found);
    const std::string known = schedule::fingerprint(*d.found);
    reported.insert(known);
    // The rate that is reported must be based on runs of the schedule that is reported.
    const auto own =
        std::count_if(runs.begin(), runs.end(), [&](const Schedule& s) { return schedule::fingerprint(s) == known; });
    CHECK(own > 0);
    CHECK(d.tally.runs() <= own);
    CHECK(d.tally.reproduced == d.tally.runs());
  }
  CHECK(reported.contains(schedule::fingerprint(*whole.found)));
}

TEST_CASE("a schedule that passes screening but fails the deciding test is rejected, and the search continues") {
  const auto config = deployment();
  int hits = 0;
  Cluster cluster([&](const Schedule& s, int) {
    return Answer{hit_if(partitioned(s) && hits++ < 4), {}, {}};
  });  // one hit to find it, and 3 of 3 to confirm it
  Inputs inputs = inputs_of(config, {partition_dump()});
  inputs.simplify = false;
  inputs.without = {"surer"};
  const Result<Diagnosis> d = diagnose::diagnose(inputs, cluster, {});
  REQUIRE(d);
  CHECK(d->tested.reproduced == 3);
  CHECK(d->tally.reproduced == 0);
  CHECK_FALSE(d->target_reached);
  CHECK(d->verdict == Verdict::not_reproduced);
  CHECK(d->found);
  CHECK(d->schedules > 1);
}

TEST_CASE("a node's end that the program caused itself is reported as doubtful") {
  const auto config = deployment();
  Dump dump;
  dump.crashed(12, "n2", SIGABRT);
  dump.ends(30);
  const auto doubts = [&](const Dump& of) {
    Cluster cluster(
        [](const Schedule& s, int) { return Answer{hit_if(fault_of(s, FaultKind::crash, "n2") != nullptr), {}, {}}; });
    return diagnosis_of(config, of, cluster).remarks.doubts;
  };
  const std::vector<std::string> own = doubts(dump);
  REQUIRE(own.size() == 1);
  CHECK(own[0].find("n2 ended itself") != std::string::npos);
  Dump killed;
  killed.crashed(12, "n2", SIGKILL);
  killed.ends(30);
  CHECK(doubts(killed).empty());
}

TEST_CASE("a found schedule is doubtful if no node ended itself as one did in production") {
  const auto config = deployment();
  for (const bool ends : {false, true}) {
    CAPTURE(ends);
    Dump dump;
    dump.started(0, "n1").flags = trace::kMain;
    dump.scf(4, "n2", "write", EIO, "/data/n2/log");
    dump.scf(9.9, "n1", "access", EACCES, "/data/n1/zones");
    dump.exited(10, "n1", 1);
    dump.ends(20);
    Cluster cluster([&](const Schedule& s, int) {
      Answer answer{hit_if(fault_of(s, FaultKind::syscall, "n2") != nullptr), {}, {}};
      Dump run;
      run.scf(1, "n3", "openat", ENOENT, "/none");
      if (ends) run.exited(2, "n1", 1);
      answer.trace = run.take();
      return answer;
    });
    const Diagnosis d = diagnosis_of(config, dump, cluster);
    REQUIRE(d.found);
    REQUIRE(d.remarks.doubts.size() == (ends ? 0 : 1));
    if (!ends) CHECK(d.remarks.doubts[0].find("But in production n1 ended itself with status 1") == 0);
  }
}

TEST_CASE("the search continues for a fault that ends the node which ended itself in production") {
  const auto config = deployment();
  Dump dump;
  dump.started(0, "n1").flags = trace::kMain;
  for (int i = 0; i < 20; ++i)
    dump.scf(3 + 0.1 * i, "n3", "read", EIO, fmt::format("/data/n3/part-{}", static_cast<char>('a' + i)));
  dump.scf(4, "n2", "write", EIO, "/data/n2/log");
  dump.scf(8, "n1", "rename", EACCES, "/data/n1/zones");
  dump.exited(10, "n1", 1);
  dump.ends(20);
  // The bug: n1 ends by itself, but only if its third rename fails. The failed write of n2 causes another failure.
  const auto the_one = [](const Schedule& s) {
    const Fault* rename = fault_of(s, FaultKind::syscall, "n1");
    return rename != nullptr && rename->call.syscall == "rename" && rename->count <= 3 &&
           (rename->times < 0 || rename->count + rename->times > 3);
  };
  Cluster cluster([&](const Schedule& s, int) {
    Answer answer{hit_if(fault_of(s, FaultKind::syscall, "n2") != nullptr || the_one(s)), {}, {}};
    Dump run;
    for (int i = 0; i < 5; ++i) run.sys(1 + i, "n1", "rename", "/data/n1/zones");
    if (the_one(s)) run.exited(6, "n1", 1);
    answer.trace = run.take();
    return answer;
  });
  const Diagnosis d = diagnosis_of(config, dump, cluster);
  REQUIRE(d.found);
  CHECK(fault_of(*d.found, FaultKind::syscall, "n1") != nullptr);
  CHECK(d.remarks.doubts.empty());
  const auto noted = [&](std::string_view what) {
    return std::any_of(d.tried.begin(), d.tried.end(),
                       [&](const Tried& tried) { return tried.note.find(what) != std::string::npos; });
  };
  CHECK(noted("a failure closer to production was found then"));
}

TEST_CASE("a fault that only shortens the workload is doubtful, unless the incident was as short") {
  const auto config = deployment();
  for (const double length : {30.0, 1.0}) {
    Dump dump;
    dump.crashed(0.5, "n2", SIGKILL);
    dump.ends(length);
    Cluster cluster(
        [](const Schedule& s, int) { return Answer{hit_if(fault_of(s, FaultKind::crash, "n2") != nullptr), {}, {}}; });
    cluster.workload_of = [](const Schedule& s) { return s.faults.empty() ? 10 * kSecond : kSecond / 2; };
    const Diagnosis d = diagnosis_of(config, dump, cluster);
    CHECK(d.target_reached);
    CHECK(d.remarks.doubts.size() == (length > 10 ? 1 : 0));
  }
}

TEST_CASE("levels that are not requested are not run, and requested ones add no notes") {
  auto config = deployment();
  Cluster cluster([](const Schedule&, int) { return Answer{}; });
  const Diagnosis d = diagnosis_of(config, calls_dump(), cluster);
  CHECK(d.verdict == Verdict::not_reproduced);
  bool second = false;
  for (const Tried& tried : d.tried) second = second || tried.level == 2;
  CHECK(second);
  for (const std::string& note : d.plan.notes) CHECK(note.find("level") == std::string::npos);

  config.diagnose.levels = {1};
  Cluster again([](const Schedule&, int) { return Answer{}; });
  const Diagnosis first = diagnosis_of(config, calls_dump(), again);
  for (const Tried& tried : first.tried) CHECK(tried.level < 2);
  for (const std::string& note : first.plan.notes) CHECK(note.find("level") == std::string::npos);

  // Level 3 must start from the result of level 2.
  config.diagnose.levels = {3};
  Cluster third([](const Schedule&, int) { return Answer{}; });
  const Diagnosis none = diagnosis_of(config, calls_dump(), third);
  CHECK(none.verdict == Verdict::inconclusive);
  CHECK(none.runs == 1);
}

TEST_CASE("a hit in a run in which no fault fired is noted") {
  const auto config = deployment();
  Cluster cluster([](const Schedule& s, int run) {
    Answer answer;
    if (run != 1) return answer;
    answer.oracle = OracleAnswer::hit;
    for (const schedule::Fault& f : s.faults) answer.unfired.push_back(f.id);
    return answer;
  });
  const Diagnosis d = diagnosis_of(config, calls_dump(), cluster);
  CHECK_FALSE(d.found);
  CHECK(d.plan.notes.back().find("no fault had an effect") != std::string::npos);
}

TEST_CASE("a hit in a run in which no fault was effective is noted") {
  const auto config = deployment();
  Cluster cluster([](const Schedule& s, int run) {
    Answer answer;
    if (run != 1) return answer;
    answer.oracle = OracleAnswer::hit;
    for (const schedule::Fault& f : s.faults) answer.idle.push_back(f.id);
    return answer;
  });
  const Diagnosis d = diagnosis_of(config, calls_dump(), cluster);
  CHECK_FALSE(d.found);
  CHECK(d.plan.notes.back().find("no fault had an effect") != std::string::npos);
}

TEST_CASE("a partition that stopped no packet does not count as a miss and is tried earlier") {
  const auto config = deployment();
  int idle = 0;
  Cluster cluster([&](const Schedule& s, int) {
    Answer answer;
    if (!partitioned(s)) return answer;
    const schedule::Fault& cut = *fault_of(s, FaultKind::partition, "n1");
    // At such a late time, the fault cannot have an effect, because the nodes no longer send anything.
    if (!cut.when.empty() && cut.when[0].elapsed_ns > 3 * kSecond) {
      ++idle;
      answer.idle.push_back(cut.id);
    } else {
      answer.oracle = OracleAnswer::hit;
    }
    return answer;
  });
  const Diagnosis d = diagnosis_of(config, partition_dump(), cluster);
  CHECK(idle > 0);
  CHECK(d.control_runs >= idle + 1);  // a run whose fault had no effect counts as one without faults
  CHECK(d.target_reached);
  REQUIRE(d.found);
  CHECK(partitioned(*d.found));
}

TEST_CASE("a run whose workload did no work has no verdict") {
  const auto config = deployment();
  Cluster cluster([](const Schedule& s, int) {
    Answer answer;
    if (!s.faults.empty()) answer.doubt = "the workload exchanged no data with any node";
    answer.oracle = OracleAnswer::hit;
    if (s.faults.empty()) answer.oracle = OracleAnswer::miss;
    return answer;
  });
  const Diagnosis d = diagnosis_of(config, partition_dump(), cluster);
  CHECK_FALSE(d.found);
  CHECK(d.verdict == Verdict::inconclusive);
  CHECK(d.control_hits == 0);
}

TEST_CASE("a found schedule is equal after being written and read back") {
  const auto config = deployment();
  Cluster cluster([](const Schedule& s, int) { return Answer{hit_if(partitioned(s)), {}, {}}; });
  const Diagnosis d = diagnosis_of(config, partition_dump(), cluster);
  REQUIRE(d.found);
  const Result<Schedule> back = schedule::parse_schedule(schedule::to_toml(*d.found, in_words(d)), "schedule.toml");
  REQUIRE(back);
  CHECK(schedule::fingerprint(*back) == schedule::fingerprint(*d.found));
}

TEST_CASE("everyday errors are tried only after unusual calls were tried in all shapes") {
  const auto config = deployment();
  Dump dump;
  dump.scf(0.1, "n1", "openat", ENOENT, "/usr/lib/locale/x");
  dump.scf(8, "n1", "write", ENOSPC, "/data/n1/wal");
  dump.ends(30);
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.schedules.size() >= 4);
  CHECK(plan.schedules[0].faults.at(0).call.syscall == "write");
  CHECK(plan.schedules[0].faults.at(0).when.size() == 1);
  CHECK(plan.schedules[1].faults.at(0).call.syscall == "write");
  CHECK(plan.schedules[1].faults.at(0).when.empty());
  CHECK(plan.schedules[2].faults.at(0).call.syscall == "write");
  CHECK(plan.schedules[2].faults.at(0).times == -1);  // nothing in the dump shows that the disk had space again later
  CHECK(plan.schedules[3].faults.at(0).call.syscall == "openat");
}

TEST_CASE("narrowing down keeps the part that shows this failure, not the one that shows another") {
  const auto config = deployment();
  for (const bool part_shows_it : {true, false}) {
    CAPTURE(part_shows_it);
    Dump dump;
    dump.started(0, "n1");
    dump.exited(10, "n1", 1);  // no fault of the schedule causes this end
    dump.ends(20);
    const Inputs inputs = inputs_of(config, {dump});
    Diagnosis d;
    d.plan = *make_plan(inputs);
    Cluster cluster([&](const Schedule& s, int) {
      const bool this_one = part_shows_it ? s.find("d") != nullptr : s.faults.size() == 4;
      Answer answer{hit_if(this_one || s.find("a") != nullptr), {}, {}};
      Dump run;
      run.scf(1, "n3", "openat", ENOENT, "/none");
      if (this_one) run.exited(2, "n1", 1);
      answer.trace = run.take();
      return answer;
    });
    const std::function<void(const Progress&)> silent;
    Lab lab(inputs, cluster, silent, d);
    Lead lead = lead_of({"a", "b", "c", "d"});
    lead.tried = lab.enter(lead.schedule, 1, "all four").index;
    REQUIRE(lab.run({lead.tried}, "all four"));
    Confirmation confirmation(inputs, lab, d);
    REQUIRE(confirmation.narrow(lead, true));
    REQUIRE(lead.schedule.faults.size() == 1);
    CHECK(lead.schedule.faults[0].id == (part_shows_it ? "d" : "a"));
  }
}

TEST_CASE("runs that narrowed a schedule down without a miss count as runs that screen it") {
  const auto config = deployment();
  Dump dump;
  dump.ends(20);
  const Inputs inputs = inputs_of(config, {dump});
  for (const bool misses : {false, true}) {
    CAPTURE(misses);
    Diagnosis d;
    d.plan = *make_plan(inputs);
    const std::string cause = misses ? "h" : "a";  // the parts with the first faults are run first
    Cluster cluster([&](const Schedule& s, int) { return Answer{hit_if(s.find(cause) != nullptr), {}, {}}; });
    const std::function<void(const Progress&)> silent;
    Lab lab(inputs, cluster, silent, d);
    Lead lead = lead_of({"a", "b", "c", "d", "e", "f", "g", "h"});
    lead.tried = lab.enter(lead.schedule, 1, "all eight").index;
    Confirmation confirmation(inputs, lab, d);
    REQUIRE(confirmation.narrow(lead, true));
    REQUIRE(lead.schedule.faults.size() == 1);
    CHECK(lead.schedule.faults[0].id == cause);
    const int before = cluster.runs;
    CHECK(lead.tally.reproduced == (misses ? 1 : 3));
    REQUIRE(confirmation.screen(lead, true));
    CHECK(lead.promising);
    CHECK(lead.tally.reproduced == 3);
    CHECK(cluster.runs - before == (misses ? 2 : 0));
  }
}

TEST_CASE("the first trial precedes the survey if runs are made one after the other") {
  class Parallel final : public Runner {
   public:
    Parallel(Cluster& cluster, int jobs) : cluster_(cluster), jobs_(jobs) {}
    Result<schedule::RunResult> run(const Schedule& schedule) override { return cluster_.run(schedule); }
    int side_by_side() const override { return jobs_; }

   private:
    Cluster& cluster_;
    int jobs_;
  };
  const auto config = deployment();
  // "c": the control run, "s": the survey, "t": a trial
  const auto order = [&](int jobs, bool first_hits) {
    Cluster cluster([&](const Schedule& s, int run) {
      return Answer{hit_if(!s.faults.empty() && run >= (first_hits ? 1 : 6)), {}, {}, ""};
    });
    Parallel runner(cluster, jobs);
    const auto d = diagnose::diagnose(inputs_of(config, {calls_dump()}), runner, {});
    REQUIRE(d);
    CHECK(d->target_reached);
    std::string made;
    for (const std::string& fingerprint : cluster.made)
      for (const Tried& tried : d->tried)
        if (schedule::fingerprint(tried.schedule) == fingerprint)
          made += tried.schedule.faults.empty() ? 'c' : tried.note.starts_with("a survey") ? 's' : 't';
    return made;
  };
  CHECK(order(1, false).starts_with("ctst"));
  CHECK(order(2, false).starts_with("cstt"));
  // A survey that nothing needs is not made.
  CHECK(order(1, true).find('s') == std::string::npos);
}
