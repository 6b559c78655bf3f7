// Weights that are read from a file, rules that are switched off, and candidates as text.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "diagnose_world.h"
#include "weights/weights.h"

using namespace rose;

namespace {

std::string message_of(const Result<void>& result) { return result ? "" : result.error().message; }

double value_of(std::string_view name) {
  for (const diagnose::WeightEntry& one : diagnose::weights())
    if (one.name == name) return one.value;
  return -1;
}

// The nodes that the fault affects. A partition without peers separates its node from all others.
std::set<std::string> touched_by(const schedule::Fault& fault) {
  if (fault.peers.empty()) return {"n1", "n2", "n3"};
  std::set<std::string> nodes(fault.peers.begin(), fault.peers.end());
  nodes.insert(fault.node);
  return nodes;
}

}  // namespace

TEST_CASE("every weight has a unique name, a reason and a value that its unit allows", "[diagnose]") {
  const diagnose::OwnWeights own;
  std::set<std::string_view> names;
  for (const diagnose::WeightEntry& one : diagnose::weights()) {
    CHECK(names.insert(one.name).second);
    CHECK(!one.why.empty());
    CAPTURE(one.name);
    CHECK(diagnose::set_weights(fmt::format("{} = {}\n", one.name, one.value), "w"));
  }
  CHECK(names.size() > 100);
  CHECK(diagnose::set_weights(diagnose::weights_toml(), "printed"));
}

TEST_CASE("weights are read by name, and an invalid file changes nothing", "[diagnose]") {
  const double before = value_of("odds-usual");
  {
    const diagnose::OwnWeights own;
    REQUIRE(diagnose::set_weights("odds-usual = 0.25\nheartbeat = 3000000000\nusual-times = 4\n", "w.toml"));
    CHECK(value_of("odds-usual") == 0.25);
    CHECK(diagnose::kOddsUsual == 0.25);
    CHECK(diagnose::kHeartbeat == 3'000'000'000);
    CHECK(diagnose::kUsualTimes == 4);
    CHECK(message_of(diagnose::set_weights("odds-usual = 1\nodds-usua = 2\n", "w.toml")).find("odds-usua") !=
          std::string::npos);
    CHECK(value_of("odds-usual") == 0.25);
    for (const char* wrong :
         {"odds-usual = 0\n", "odds-usual = -1\n", "odds-usual = \"1\"\n", "share-plain = 1.5\n", "shows = 1\n",
          "worse = 1\n", "usual-times = 1.5\n", "heartbeat = 0\n", "odds-usual = nan\n", "odds-usual = inf\n",
          "odds-usual\n", "symptom = 1\n", "fatal = -0.1\n", "symptom = -1000\n"})
      CHECK(message_of(diagnose::set_weights(wrong, "w.toml")).rfind("w.toml:", 0) == 0);
    CHECK(value_of("odds-usual") == 0.25);
  }
  CHECK(value_of("odds-usual") == before);
}

TEST_CASE("parts have unique names", "[diagnose]") {
  std::set<std::string_view> names;
  for (const diagnose::Part& part : diagnose::parts()) {
    CHECK(names.insert(part.name).second);
    CHECK(!part.what.empty());
  }
}

TEST_CASE("a candidate's id does not depend on other candidates, and it lists its nodes and features") {
  using namespace rose::diagnose::test;
  const auto config = deployment();
  Dump few;
  few.crashed(5.0, "n2");
  few.scf(6.0, "n1", "write", ENOSPC, "/data/log");
  few.ends(20);
  Dump more;
  more.scf(1.0, "n3", "rename", EIO, "/data/x");
  more.crashed(5.0, "n2");
  more.scf(6.0, "n1", "write", ENOSPC, "/data/log");
  more.cut(7.0, 15.0, 1, {2, 3});
  more.ends(20);
  std::map<std::string, std::string> ids;
  for (const diagnose::Candidate& c : plan_of(config, few).candidates) ids[c.node + c.syscall] = c.id;
  const diagnose::Plan plan = plan_of(config, more);
  std::set<std::string> all;
  for (const diagnose::Candidate& c : plan.candidates) {
    CHECK(all.insert(c.id).second);
    CHECK(c.features[diagnose::Feature::resource_error] == (c.kind == schedule::FaultKind::syscall ? 1 : 0));
    CHECK(c.features[diagnose::Feature::network] == (c.kind == schedule::FaultKind::partition ? 1 : 0));
    CHECK(c.known == diagnose::Known::seen);
    if (c.kind == schedule::FaultKind::partition)
      CHECK(std::set<std::string>(c.nodes.begin(), c.nodes.end()) == touched_by(c.fault));
    else CHECK(c.nodes == std::vector<std::string>{c.node});
    if (const auto known = ids.find(c.node + c.syscall); known != ids.end() && c.kind != schedule::FaultKind::partition)
      CHECK(c.id == known->second);
  }
}

TEST_CASE("a rule that is left out does not affect ranks") {
  using namespace rose::diagnose::test;
  const auto config = deployment();
  Dump dump;
  dump.crashed(5.0, "n2");
  for (int i = 0; i < 5; ++i) dump.scf(5.5 + i * 0.1, "n1", "connect", ECONNREFUSED, "", "10.77.0.2:7000");
  dump.ends(20);
  const auto symptoms = [&](const std::set<std::string>& without) {
    diagnose::Inputs inputs;
    inputs.sources = {evidence::of_dump(dump.take())};
    inputs.config = &config;
    inputs.without = without;
    diagnose::leave_out_evidence(inputs);
    const auto plan = diagnose::make_plan(inputs);
    REQUIRE(plan);
    return std::pair(plan->candidates.size(), std::count_if(plan->candidates.begin(), plan->candidates.end(),
                                                            [](const diagnose::Candidate& c) { return c.symptom; }));
  };
  CHECK(symptoms({}) == std::pair<std::size_t, long>(2, 1));
  CHECK(symptoms({"symptoms"}) == std::pair<std::size_t, long>(2, 0));
  CHECK(symptoms({"processes"}).second == 0);
  CHECK(symptoms({"calls"}).first == 1);
}
