// Certain and merely possible faults: which of them is reported, which others also reproduce the bug, and which ones
// the user rules out.
#include <algorithm>
#include <catch2/catch.hpp>

#include "diagnose/hypothesis.h"
#include "diagnose/thresholds.h"
#include "diagnose_play.h"
#include "weights/weights.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::FaultKind;
using schedule::OracleAnswer;
using schedule::Schedule;
using schedule::Verdict;

namespace {

// n2 is killed. Long after that, n1 and n3 fall silent towards each other until the dump is written.
Dump kill_and_silence() {
  Dump dump;
  dump.crashed(5, "n2", SIGKILL);
  for (const auto& [node, src, dst] :
       {std::tuple{"n1", "10.77.0.3", "10.77.0.1"}, std::tuple{"n3", "10.77.0.1", "10.77.0.3"}})
    dump.silence(16, 30, node, src, dst).flags |= trace::kOpen;
  dump.ends(30);
  return dump;
}

bool killed(const Schedule& s) { return fault_of(s, FaultKind::crash, "n2") != nullptr; }
bool cut(const Schedule& s) { return fault_of(s, FaultKind::partition) != nullptr; }

struct Made {
  Diagnosis d;
  std::vector<Schedule> runs;
};
Made diagnosed(const Dump& dump, const std::function<bool(const Schedule&)>& bug, std::set<std::string> ruled_out = {},
               std::set<std::string> without = {}) {
  static const config::Config config = deployment();
  Made made;
  Cluster cluster([&](const Schedule& s, int) {
    made.runs.push_back(s);
    return Answer{hit_if(bug(s)), {}, {}};
  });
  Inputs inputs = inputs_of(config, {dump});
  inputs.ruled_out = std::move(ruled_out);
  inputs.without = std::move(without);
  Result<Diagnosis> d = diagnose::diagnose(inputs, cluster, {});
  REQUIRE(d);
  made.d = *std::move(d);
  return made;
}

const Candidate& candidate(const Diagnosis& d, FaultKind kind) {
  const auto found = std::find_if(d.plan.candidates.begin(), d.plan.candidates.end(),
                                  [&](const Candidate& c) { return c.kind == kind; });
  REQUIRE(found != d.plan.candidates.end());
  return *found;
}

}  // namespace

TEST_CASE("a kill is not dropped in favour of an uncertain silence, which becomes its rival") {
  // Here, every partition also reproduces the bug, although production may have had none.
  const Made made = diagnosed(kill_and_silence(), [](const Schedule& s) { return killed(s) || cut(s); });
  CHECK(is_certain(candidate(made.d, FaultKind::crash)));
  CHECK_FALSE(is_certain(candidate(made.d, FaultKind::partition)));
  CHECK(made.d.target_reached);
  REQUIRE(made.d.found);
  CHECK(killed(*made.d.found));
  CHECK_FALSE(cut(*made.d.found));
  REQUIRE(made.d.rivals.size() == 1);
  const Rival& rival = made.d.rivals[0];
  CHECK(rival.id == candidate(made.d, FaultKind::partition).id);
  CHECK(cut(rival.schedule));
  CHECK_FALSE(killed(rival.schedule));
  CHECK_FALSE(rival.certain);
  CHECK(rival.tally.rate() == 1);
  CHECK(rival.tally.conclusive() == kMostOfRival);
  CHECK(rival.would_have_shown.find("retransmissions") != std::string::npos);
  CHECK(rival.test.find("TcpRetransSegs") != std::string::npos);
  CHECK(made.d.runs <= 2 + kMostAfterFirst);
}

TEST_CASE("without the part 'rivals' no rival is reported") {
  const Made made =
      diagnosed(kill_and_silence(), [](const Schedule& s) { return killed(s) || cut(s); }, {}, {"rivals"});
  CHECK(made.d.rivals.empty());
}

TEST_CASE("a silence that is needed beside the kill stays, and there is no rival") {
  const Made made = diagnosed(kill_and_silence(), [](const Schedule& s) { return killed(s) && cut(s); });
  CHECK(made.d.target_reached);
  REQUIRE(made.d.found);
  CHECK(killed(*made.d.found));
  CHECK(cut(*made.d.found));
  CHECK(made.d.rivals.empty());
}

TEST_CASE("a kill that runs do not need stays, and the silence alone is its rival") {
  const Made made = diagnosed(kill_and_silence(), cut);
  CHECK(made.d.target_reached);
  REQUIRE(made.d.found);
  CHECK(killed(*made.d.found));
  CHECK(cut(*made.d.found));
  REQUIRE(made.d.rivals.size() == 1);
  CHECK(made.d.rivals[0].schedule.faults.size() == 1);
  CHECK(cut(made.d.rivals[0].schedule));
}

TEST_CASE("a certain fault is reported rather than an inferred one, whichever reproduced first") {
  Dump dump;
  dump.scf(12, "n2", "openat", EIO, "/data/n2/wal");
  for (const auto& [node, src, dst] :
       {std::tuple{"n1", "10.77.0.3", "10.77.0.1"}, std::tuple{"n3", "10.77.0.1", "10.77.0.3"}})
    dump.silence(16, 30, node, src, dst).flags |= trace::kOpen;
  dump.ends(30);
  const auto failed = [](const Schedule& s) { return fault_of(s, FaultKind::syscall, "n2") != nullptr; };
  const Made made = diagnosed(dump, [&](const Schedule& s) { return cut(s) || failed(s); });
  CHECK(made.d.target_reached);
  REQUIRE(made.d.found);
  CHECK(failed(*made.d.found));
  CHECK_FALSE(cut(*made.d.found));
  REQUIRE(made.d.rivals.size() == 1);
  CHECK(cut(made.d.rivals[0].schedule));
  SECTION("only the inferred fault reproduces the bug") {
    const Made other = diagnosed(dump, cut);
    CHECK(other.d.target_reached);
    REQUIRE(other.d.found);
    CHECK(cut(*other.d.found));
    CHECK(other.d.rivals.empty());
  }
}

TEST_CASE("a short write is reported rather than a failed write that left as many bytes") {
  // The program may have taken the short write for a complete one, so that the failed write belongs to other data.
  Dump dump;
  trace::Event& part = dump.scf(5, "n1", "write", 0, "/data/n1/wal");
  part.result = 192;
  part.requested = 560;
  for (const double t : {5.001, 5.2, 5.4}) dump.scf(t, "n1", "write", ENOSPC, "/data/n1/wal");
  dump.ends(30);
  const auto leaves_part = [](const Schedule& s) {
    const schedule::Fault* fault = fault_of(s, FaultKind::syscall, "n1");
    return fault != nullptr && fault->effect == schedule::Effect::bytes;
  };
  const auto fails = [&](const Schedule& s) { return leaves_part(s) && s.faults[0].error == ENOSPC; };
  const Made made = diagnosed(dump, leaves_part);
  REQUIRE(made.d.found);
  CHECK(made.d.found->faults.at(0).error == 0);
  CHECK(made.d.found->faults[0].result == 192);
  for (const auto& rival : made.d.rivals) CHECK(rival.would_have_shown.find("E0") == std::string::npos);
  SECTION("only a write that also fails reproduces the bug, because the program writes the rest") {
    const Made other = diagnosed(dump, fails);
    CHECK(other.d.target_reached);
    REQUIRE(other.d.found);
    CHECK(other.d.found->faults.at(0).error == ENOSPC);
    CHECK(other.d.found->faults[0].effect_bytes == 192);
  }
}

TEST_CASE("two kills that both reproduce the bug are rivals of each other") {
  Dump dump;
  dump.crashed(9, "n1", SIGKILL);
  dump.crashed(9.5, "n3", SIGKILL);
  dump.ends(30);
  const Made made = diagnosed(dump, [](const Schedule& s) { return fault_of(s, FaultKind::crash) != nullptr; });
  CHECK(made.d.target_reached);
  REQUIRE(made.d.found);
  REQUIRE(made.d.found->faults.size() == 1);
  REQUIRE(made.d.rivals.size() == 1);
  CHECK(made.d.rivals[0].certain);
  CHECK(made.d.rivals[0].schedule.faults.at(0).node != made.d.found->faults[0].node);
  CHECK(made.d.rivals[0].test.find("who sent the signal") != std::string::npos);
}

TEST_CASE("a hypothesis that the user ruled out is not tried") {
  const auto bug = [](const Schedule& s) { return killed(s) || cut(s); };
  const Made all = diagnosed(kill_and_silence(), bug);
  SECTION("the rival is ruled out") {
    const Made made = diagnosed(kill_and_silence(), bug, {all.d.rivals.at(0).id});
    CHECK(std::none_of(made.runs.begin(), made.runs.end(), cut));
    REQUIRE(made.d.found);
    CHECK(killed(*made.d.found));
    CHECK(made.d.rivals.empty());
    CHECK(std::any_of(made.d.plan.discarded.begin(), made.d.plan.discarded.end(),
                      [](const Discarded& one) { return one.why.find("--rule-out") != std::string::npos; }));
    double sum = 0;
    for (const Candidate& c : made.d.plan.candidates) sum += c.weight;
    CHECK(sum == Approx(1));
  }
  SECTION("the reported candidate is ruled out") {
    const Made made = diagnosed(kill_and_silence(), bug, {candidate(all.d, FaultKind::crash).id});
    CHECK(std::none_of(made.runs.begin(), made.runs.end(), killed));
    REQUIRE(made.d.found);
    CHECK(cut(*made.d.found));
  }
  SECTION("both together are ruled out, while either may be tried alone") {
    const std::string both =
        hypothesis_id({candidate(all.d, FaultKind::crash).id, candidate(all.d, FaultKind::partition).id});
    const Made made = diagnosed(kill_and_silence(), bug, {both});
    CHECK(std::none_of(made.runs.begin(), made.runs.end(), [](const Schedule& s) { return killed(s) && cut(s); }));
    CHECK(std::any_of(made.runs.begin(), made.runs.end(), killed));
  }
  SECTION("an unknown id is refused") {
    const config::Config config = deployment();
    Inputs inputs = inputs_of(config, {kill_and_silence()});
    inputs.ruled_out = {"crash-n2-00000000"};
    const Result<Plan> plan = make_plan(inputs);
    REQUIRE_FALSE(plan);
    CHECK(plan.error().kind == ErrorKind::usage);
    CHECK(plan.error().message.find("crash-n2-00000000") != std::string::npos);
  }
}

namespace {

Diagnosis played(const Dump& dump, Play& play, std::set<std::string> without = {}) {
  static const config::Config config = deployment();
  Inputs inputs = inputs_of(config, {dump});
  inputs.without = std::move(without);
  Result<Diagnosis> d = diagnose::diagnose(inputs, play, {});
  REQUIRE(d);
  return *std::move(d);
}

}  // namespace

TEST_CASE("a pair whose faults missed alone is tried together before either is taken to level 2") {
  const diagnose::OwnWeights own;  // with these weights, the kill is slightly likelier than the failed call
  REQUIRE(diagnose::set_weights("resource-error = -0.7\nto-end = 0\nfirst-error = 0\n", "w.toml"));
  std::vector<Act> acts;
  for (const double t : {1.0, 3.0, 5.0, 7.0})
    acts.push_back(calls(t, "n1", "rename", fmt::format("/data/n1/log.{}", t)));
  acts.push_back(calls(20, "n2", "openat", "/data/n2/wal"));
  acts.back().changes = false;
  Dump dump;
  record(dump, acts, 9);
  dump.crashed(9, "n1", SIGKILL);
  dump.scf(20, "n2", "openat", EIO, "/data/n2/wal");
  dump.ends(30);
  const auto first_of = [](const Diagnosis& d, auto is) {
    return std::find_if(d.tried.begin(), d.tried.end(), is) - d.tried.begin();
  };
  const auto pair = [](const Tried& tried) {
    return fault_of(tried.schedule, FaultKind::crash, "n1") != nullptr &&
           fault_of(tried.schedule, FaultKind::syscall, "n2") != nullptr;
  };
  const auto deep = [](const Tried& tried) {
    return tried.level == 2 && tried.tally.runs() > 0 && fault_of(tried.schedule, FaultKind::crash, "n1") != nullptr;
  };
  Play play(acts, [](const std::vector<Hit>& hits, int) { return hits.size() == 2; });
  const Diagnosis d = played(dump, play);
  CHECK(d.target_reached);
  CHECK(first_of(d, pair) < first_of(d, deep));
  Play again(acts, [](const std::vector<Hit>& hits, int) { return hits.size() == 2; });
  const Diagnosis without = played(dump, again, {"pairs-first"});
  CHECK(first_of(without, pair) > first_of(without, deep));
}

TEST_CASE("a kill is placed by an event of another node right before it") {
  const std::vector<Act> acts{{4, "n3", "Follower::sync", "", ""}, {12, "n2", "Leader::tick", "", ""}};
  Dump dump;
  record(dump, acts, 9);
  dump.crashed(9, "n1", SIGKILL);
  dump.ends(30);
  const auto bug = [](const std::vector<Hit>& hits, int) {
    return hits.size() == 1 && hits[0].fault->node == "n1" && hits[0].act == 0;
  };
  Play play(acts, bug);
  const Diagnosis d = played(dump, play);
  CHECK(d.target_reached);
  REQUIRE(d.found);
  const schedule::Condition& when = d.found->faults.at(0).when.at(0);
  CHECK(when.function == "Follower::sync");
  CHECK(when.node == "n3");
  CHECK(schedule::parse_schedule(schedule::to_toml(*d.found), "s.toml"));
  Play again(acts, bug);
  CHECK_FALSE(played(dump, again, {"elsewhere"}).target_reached);
}

TEST_CASE("no power loss is proposed if the tracer that saw the signal continued") {
  for (const bool went_on : {false, true}) {
    Dump dump;
    dump.crashed(9, "n1", SIGKILL);
    dump.ends(went_on ? 30 : 9);
    dump.meta().host = "db-1";
    static const config::Config config = deployment();
    Inputs inputs = inputs_of(config, {dump});
    inputs.power = true;
    Cluster cluster([](const Schedule&, int) { return Answer{}; });
    const Result<Diagnosis> d = diagnose::diagnose(inputs, cluster, {});
    REQUIRE(d);
    const bool lost = std::any_of(d->tried.begin(), d->tried.end(), [](const Tried& tried) {
      return std::any_of(tried.schedule.faults.begin(), tried.schedule.faults.end(),
                         [](const schedule::Fault& fault) { return fault.lose != schedule::Loss::nothing; });
    });
    CHECK(lost == !went_on);
  }
}
