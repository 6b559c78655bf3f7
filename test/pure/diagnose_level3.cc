// Level 3 without symbols: the crash moves on from its context, call by call.
#include <catch2/catch.hpp>

#include "diagnose_play.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::Fault;
using schedule::FaultKind;
using schedule::Schedule;

namespace {

Act enters(double t, std::string node, std::string function) { return {t, std::move(node), std::move(function), "", ""}; }
Act calls(double t, std::string node, std::string syscall, std::string path, bool changes = true) {
  return {t, std::move(node), "", std::move(syscall), std::move(path), changes};
}

// A snapshot in four steps; only a crash between two of them loses data.
std::vector<Act> snapshot(const std::string& node) {
  return {calls(5, node, "openat", "/run/x/snap.tmp"), calls(5.1, node, "write", "/run/x/snap.tmp", false),
          calls(5.2, node, "fsync", "/run/x/snap.tmp"), calls(5.3, node, "rename", "/run/x/snapshot"),
          calls(5.4, node, "unlink", "/run/x/log.old")};
}

Dump crash_after(const std::vector<Act>& acts, double t, const std::string& node = "n1") {
  Dump dump;
  record(dump, acts, t);
  dump.crashed(t, node);
  dump.ends(30);
  return dump;
}

bool noted(const Diagnosis& d, std::string_view part) {
  for (const std::string& note : d.plan.notes)
    if (note.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("level 3: the crash comes before a later call than the one it was seen after") {
  const auto config = deployment();
  const std::vector<Act> acts = snapshot("n1");
  SECTION("before the unlink") {
    Play play(acts, [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].fault->before && hits[0].act == 4; });
    const Diagnosis d = diagnosis_of(config, crash_after(acts, 5.05), play);
    CHECK(d.target_reached);
    CHECK(d.level == 3);
    REQUIRE(d.found);
    const Fault& fault = d.found->faults.at(0);
    REQUIRE(fault.before);
    CHECK(fault.before->syscall == "unlink");
    CHECK(fault.before->path == "*/log.old");
    CHECK(fault.when.at(0).call.syscall == "openat");
    CHECK(schedule::parse_schedule(schedule::to_toml(*d.found), "s.toml"));
    CHECK_FALSE(noted(d, "level 3"));
  }
  SECTION("before a write, which no trace shows") {
    Play play(acts, [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].fault->before && hits[0].act == 1; });
    const Diagnosis d = diagnosis_of(config, crash_after(acts, 5.05), play);
    CHECK(d.target_reached);
    CHECK(d.level == 3);
    CHECK(d.found->faults.at(0).before->syscall == "write");
  }
}

TEST_CASE("level 3: after a function, before a call in it; what is not there is said") {
  const auto config = deployment();
  std::vector<Act> acts = snapshot("n1");
  acts.insert(acts.begin(), enters(4.9, "n1", "storeSnapshot"));
  SECTION("found") {
    Play play(acts, [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].fault->before && hits[0].act == 3; });
    const Diagnosis d = diagnosis_of(config, crash_after(acts, 4.95), play);
    CHECK(d.target_reached);
    CHECK(d.level == 3);
    CHECK(d.found->faults.at(0).when.at(0).function == "storeSnapshot");
    CHECK(d.found->faults.at(0).before->syscall == "fsync");
  }
  SECTION("not found") {
    Play play(acts, [](const std::vector<Hit>&, int) { return false; });
    const Diagnosis d = diagnosis_of(config, crash_after(acts, 4.95), play);
    CHECK_FALSE(d.found);
    CHECK(noted(d, "offsets inside functions are not in this version"));
    CHECK(d.schedules < 40);
  }
}

TEST_CASE("level 3: the alternatives of an amplified crash all move on") {
  const auto config = deployment();
  Play play(snapshot("n2"), [](const std::vector<Hit>& hits, int) {
    return hits.size() == 1 && hits[0].fault->before && hits[0].fault->node == "n2" && hits[0].act == 3;
  });
  const Diagnosis d = diagnosis_of(config, crash_after(snapshot("n1"), 5.05), play);
  CHECK(d.target_reached);
  CHECK(d.level == 3);
  CHECK(fault_of(*d.found, FaultKind::crash, "n2")->before->syscall == "rename");
}

TEST_CASE("level 3: nothing to do without a context, and no noise about it") {
  const auto config = deployment();
  Dump dump;
  dump.crashed(5, "n1");
  dump.ends(30);
  Play play({}, [](const std::vector<Hit>&, int) { return false; });
  const Diagnosis d = diagnosis_of(config, dump, play);
  CHECK_FALSE(d.found);
  for (const Tried& tried : d.tried) CHECK(tried.level < 2);
  CHECK_FALSE(noted(d, "level"));
}

TEST_CASE("level 3: endless calls at level 2 leave runs for it") {
  auto config = deployment();
  config.diagnose.max_runs = 120;
  std::vector<Act> acts = snapshot("n1");
  for (int i = 0; i < 300; ++i)
    for (const char* file : {"aaa", "bbb", "ccc"}) acts.push_back(calls(6 + 0.01 * i, "n2", "openat", fmt::format("/run/n2/{}", file), false));
  Dump dump = crash_after(acts, 5.05);
  for (const char* file : {"aaa", "bbb", "ccc"}) dump.scf(8, "n2", "openat", EMFILE, fmt::format("/data/n2/{}", file));
  Play play(acts, [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].fault->before && hits[0].act == 3; });
  const Diagnosis d = diagnosis_of(config, dump, play);
  CHECK(d.target_reached);
  CHECK(d.level == 3);
}

TEST_CASE("level 3: a context that is no longer met ends its branch") {
  const auto config = deployment();
  const std::vector<Act> acts{calls(5, "n1", "openat", "/run/x/snap.tmp"), calls(5.2, "n1", "fsync", "/run/x/snap.tmp")};
  Play play(acts, [](const std::vector<Hit>&, int) { return false; });
  int with_before = 0;
  play.acts_of = [&](int) {
    // As if the file were made only once: level 3 never sees it.
    for (const Fault& fault : play.made.back().faults) with_before += fault.before ? 1 : 0;
    return with_before > 0 ? std::vector<Act>{} : acts;
  };
  const Diagnosis d = diagnosis_of(config, crash_after(acts, 5.05), play);
  CHECK_FALSE(d.found);
  int level3 = 0;
  for (const Tried& tried : d.tried) level3 += tried.level == 3 ? 1 : 0;
  CHECK(level3 == 1);
}
