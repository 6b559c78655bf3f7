// Level 2 on a scripted cluster. Failed calls are injected at the nth occurrence. Crashes and pauses are injected after
// the events that preceded them in production.
#include <catch2/catch.hpp>
#include <set>

#include "diagnose_play.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::ConditionKind;
using schedule::Fault;
using schedule::FaultKind;
using schedule::Schedule;
using schedule::Verdict;

namespace {

config::Config two_levels(int nodes = 3) {
  config::Config config = deployment(nodes);
  config.diagnose.levels = {1, 2};
  return config;
}

const Hit* hit_of(const std::vector<Hit>& hits, FaultKind kind) {
  for (const Hit& hit : hits)
    if (hit.fault->kind == kind) return &hit;
  return nullptr;
}

std::vector<Act> reads(int n) {
  std::vector<Act> acts;
  for (int i = 0; i < n; ++i) acts.push_back(calls(1 + i, "n1", "read", "/run/n1/snapshot", false));
  return acts;
}

Dump read_dump() {
  Dump dump;
  dump.scf(0.2, "n1", "read", EIO, "/data/n1/snapshot");
  dump.ends(30);
  return dump;
}

// A dump in which n1 crashes at `t`, after `acts`.
Dump crash_dump(const std::vector<Act>& acts, double t) {
  Dump dump;
  record(dump, acts, t);
  dump.crashed(t, "n1");
  dump.ends(30);
  return dump;
}

std::vector<std::string> functions_of(const Fault& fault) {
  std::vector<std::string> names;
  for (const schedule::Condition& c : fault.when)
    names.push_back(c.kind == ConditionKind::function ? c.function : c.call.syscall);
  return names;
}

int tried_at(const Diagnosis& d, int level) {
  int n = 0;
  for (const Tried& tried : d.tried) n += tried.level == level ? 1 : 0;
  return n;
}

}  // namespace

TEST_CASE("level 2: the search finds that the seventh matching call must fail") {
  const auto config = two_levels();
  Play play(reads(12), [](const std::vector<Hit>& hits, int) {
    const Hit* hit = hit_of(hits, FaultKind::syscall);
    return hit != nullptr && hit->act == 6;
  });
  const Diagnosis d = diagnosis_of(config, read_dump(), play);
  CHECK(d.target_reached);
  CHECK(d.level == 2);
  REQUIRE(d.found);
  REQUIRE(d.found->faults.size() == 1);
  CHECK(d.found->faults[0].count == 7);
  CHECK(d.found->faults[0].error == EIO);
  CHECK(tried_at(d, 2) <= 8);  // ranges of calls are halved, which needs few schedules
}

TEST_CASE("level 2: syscall_attempts limits the calls that are tried") {
  auto config = two_levels();
  config.diagnose.syscall_attempts = 5;
  Play play(reads(40), [](const std::vector<Hit>&, int) { return false; });
  const Diagnosis d = diagnosis_of(config, read_dump(), play);
  CHECK_FALSE(d.found);
  int most = 0;
  for (const Schedule& s : play.made)
    for (const Fault& f : s.faults) most = std::max(most, f.count);
  CHECK(most == 5);
}

TEST_CASE("level 2: no more calls are tried than the survey or else the profile counted") {
  const auto config = two_levels();
  profile::Profile profile;
  profile.runs = 2;
  profile.seconds = 20;
  profile.syscalls["n1"]["read"] = 8;
  const auto most_failed = [&](std::set<std::string> without) {
    Play play(reads(40), [](const std::vector<Hit>&, int) { return false; });
    Inputs inputs = inputs_of(config, {read_dump()});
    inputs.profile = profile;
    inputs.without = std::move(without);
    (void)diagnose::diagnose(inputs, play, {});
    int most = 0;
    for (const Schedule& s : play.made)
      for (const Fault& f : s.faults) most = std::max(most, f.count);
    return most;
  };
  CHECK(most_failed({}) == 40);  // with the survey, the number of calls is that of the test deployment
  CHECK(most_failed({"survey"}) == 4);
}

TEST_CASE("level 2: a branch ends at the number of calls that runs make") {
  const auto config = two_levels();
  Play play(reads(3), [](const std::vector<Hit>&, int) { return false; });
  const Diagnosis d = diagnosis_of(config, read_dump(), play);
  CHECK_FALSE(d.found);
  CHECK(d.verdict == Verdict::not_reproduced);
  std::set<int> counts;
  for (const Schedule& s : play.made)
    for (const Fault& f : s.faults)
      if (f.when.empty()) counts.insert(f.count);
  CHECK(counts == std::set<int>{1, 2, 3});
}

TEST_CASE("level 2: a call that never occurs at level 1 is not counted") {
  const auto config = two_levels();
  Play play({}, [](const std::vector<Hit>&, int) { return false; });
  const Diagnosis d = diagnosis_of(config, read_dump(), play);
  CHECK(tried_at(d, 2) == 0);
}

TEST_CASE("level 2: two calls take turns, so a late occurrence of the second is found early") {
  const auto config = two_levels();
  Dump dump = read_dump();
  dump.scf(0.3, "n2", "openat", EMFILE, "/data/n2/ccc");
  std::vector<Act> acts = reads(60);
  for (int i = 0; i < 10; ++i) acts.push_back(calls(61 + i, "n2", "openat", "/run/n2/ccc"));
  Play play(acts, [](const std::vector<Hit>& hits, int) {
    return hits.size() == 1 && hits[0].fault->node == "n2" && hits[0].fault->count == 5;
  });
  const Diagnosis d = diagnosis_of(config, dump, play);
  CHECK(d.target_reached);
  CHECK(tried_at(d, 2) <= 8 + 5);
}

TEST_CASE("level 2: a crash right after a function is found") {
  const auto config = two_levels();
  const std::vector<Act> acts{enters(-1, "n1", "main_init"), enters(4, "n1", "storeSnapshot"),
                              enters(9, "n1", "applyLog"), enters(12, "n1", "shutdown")};
  Play play(acts, [](const std::vector<Hit>& hits, int) {
    return hits.size() == 1 && hits[0].fault->kind == FaultKind::crash && hits[0].act == 2;
  });
  const Diagnosis d = diagnosis_of(config, crash_dump(acts, 9.5), play);
  CHECK(d.target_reached);
  CHECK(d.level == 2);
  REQUIRE(d.found);
  CHECK(functions_of(d.found->faults.at(0)) == std::vector<std::string>{"applyLog"});
  CHECK(d.found->faults[0].group.empty());
  CHECK(tried_at(d, 2) == 1);
  CHECK(in_words(d).find("applyLog") != std::string::npos);
}

TEST_CASE("level 2: a crash that needs two functions in order is found") {
  const auto config = two_levels();
  // `applyLog` also occurs too early, when no snapshot was stored. So the fault must first wait for `storeSnapshot`.
  const std::vector<Act> production{enters(4, "n1", "boot"), enters(5, "n1", "storeSnapshot"),
                                    enters(6, "n1", "applyLog")};
  const std::vector<Act> testing{enters(2, "n1", "applyLog"), enters(4, "n1", "boot"), enters(5, "n1", "storeSnapshot"),
                                 enters(6, "n1", "applyLog")};
  Play play(testing, [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].act == 3; });
  const Diagnosis d = diagnosis_of(config, crash_dump(production, 6.2), play);
  CHECK(d.target_reached);
  REQUIRE(d.found);
  CHECK(functions_of(d.found->faults.at(0)) == std::vector<std::string>{"storeSnapshot", "applyLog"});
  CHECK(tried_at(d, 2) == 2);
}

TEST_CASE("level 2: a function called earlier as well is waited for by its occurrence number") {
  const auto config = two_levels();
  const std::vector<Act> acts{enters(1, "n1", "flush"), enters(2, "n1", "flush"), enters(3, "n1", "flush"),
                              enters(8, "n1", "flush")};
  Play play(acts, [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].act == 2; });
  const Diagnosis d = diagnosis_of(config, crash_dump(acts, 3.5), play);
  CHECK(d.target_reached);
  REQUIRE(d.found);
  CHECK(d.found->faults.at(0).when.at(0).count == 3);
  CHECK(tried_at(d, 2) == 2);
}

TEST_CASE("level 2: a repeated function ends the context") {
  const auto config = two_levels();
  const std::vector<Act> acts{enters(1, "n1", "first"), enters(2, "n1", "a"), enters(3, "n1", "b"),
                              enters(4, "n1", "a")};
  Play play(acts, [](const std::vector<Hit>&, int) { return false; });
  const Diagnosis d = diagnosis_of(config, crash_dump(acts, 4.5), play);
  CHECK_FALSE(d.found);
  std::set<std::vector<std::string>> contexts;
  for (const Tried& tried : d.tried)
    if (tried.level == 2 && tried.schedule.roles.empty()) contexts.insert(functions_of(tried.schedule.faults.at(0)));
  CHECK(contexts == std::set<std::vector<std::string>>{{"a"}, {"b", "a"}});
}

TEST_CASE("level 2: without traced functions, a crash after a rename is found") {
  const auto config = two_levels();
  Act rename = calls(7, "n1", "rename", "/data/n1/epoch.tmp");
  const std::vector<Act> acts{calls(1, "n1", "openat", "/data/n1/log.1"), calls(5, "n1", "unlink", "/data/n1/old"),
                              rename, calls(9, "n1", "unlink", "/data/n1/log.1")};
  Play play(acts, [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].act == 2; });
  const Diagnosis d = diagnosis_of(config, crash_dump(acts, 7.4), play);
  CHECK(d.target_reached);
  REQUIRE(d.found);
  const Fault& fault = d.found->faults.at(0);
  REQUIRE(fault.when.size() == 1);
  CHECK(fault.when[0].kind == ConditionKind::syscall);
  CHECK(fault.when[0].call.syscall == "rename");
  CHECK(fault.when[0].call.path == "*/epoch.tmp");
  CHECK(schedule::parse_schedule(schedule::to_toml(*d.found), "s.toml"));
}

TEST_CASE("level 2: frequent calls are not part of a context") {
  const auto config = two_levels();
  std::vector<Act> acts{calls(2, "n1", "rename", "/data/n1/epoch")};
  for (int i = 0; i < 60; ++i) acts.push_back(calls(3 + 0.05 * i, "n1", "fsync", "/data/n1/wal"));
  Play play(acts, [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].act == 0; });
  SECTION("frequent in the dump") {
    const Diagnosis d = diagnosis_of(config, crash_dump(acts, 6.1), play);
    CHECK(d.target_reached);
    CHECK(tried_at(d, 2) == 1);
  }
  SECTION("frequent in the profile") {
    Dump normal;
    for (int i = 0; i < 60; ++i) normal.sys(0.1 * i, "n1", "fsync", "/data/n1/wal");
    Dump dump;
    dump.sys(2, "n1", "rename", "/data/n1/epoch");
    dump.sys(5, "n1", "fsync", "/data/n1/wal");
    dump.crashed(5.1, "n1");
    dump.ends(30);
    const Diagnosis d = diagnosis_of(config, dump, play, profile_of(normal, 2, 10));
    CHECK(d.target_reached);
    CHECK(tried_at(d, 2) == 1);
  }
}

TEST_CASE("a crash that needs a power loss is found at its time or after the node's last event") {
  const std::vector<Act> acts{calls(2, "n1", "rename", "/run/n1/log.1"), calls(5, "n1", "unlink", "/run/n1/log.0"),
                              enters(6, "n1", "serve")};
  for (const bool after_last : {false, true}) {
    auto config = two_levels();
    if (after_last) config.nodes[0].container = config::Container{};
    Play play(acts, [&](const std::vector<Hit>& hits, int) {
      return hits.size() == 1 && hits[0].fault->lose == schedule::Loss::unsynced && (!after_last || hits[0].act == 1);
    });
    Inputs inputs = inputs_of(config, {crash_dump(acts, 5.5)});
    inputs.power = true;
    const auto d = diagnose::diagnose(inputs, play, {});
    REQUIRE(d);
    CHECK(d->target_reached);
    REQUIRE(d->found);
    const Fault* fault = fault_of(*d->found, FaultKind::crash, "n1");
    REQUIRE(fault != nullptr);
    CHECK(fault->lose == schedule::Loss::unsynced);
    if (after_last) CHECK(functions_of(*fault).back() == "unlink");
    CHECK(schedule::parse_schedule(schedule::to_toml(*d->found), "s.toml"));
  }
}

TEST_CASE("a power loss is tried only if disks support it and the node did not end itself") {
  const std::vector<Act> acts{calls(5, "n1", "unlink", "/run/n1/log.0")};
  for (const bool able : {false, true}) {
    const auto config = two_levels();
    Dump dump;
    record(dump, acts, 5.5);
    dump.crashed(5.5, "n1", able ? SIGSEGV : SIGKILL);
    dump.ends(30);
    Inputs inputs = inputs_of(config, {dump});
    inputs.power = able;
    Play play(acts, [&](const std::vector<Hit>&, int) { return false; });
    REQUIRE(diagnose::diagnose(inputs, play, {}));
    for (const Schedule& schedule : play.made)
      for (const Fault& fault : schedule.faults) CHECK(fault.lose == schedule::Loss::nothing);
  }
}

TEST_CASE("level 2: a role that another node has in the test is followed to that node") {
  const auto config = two_levels();
  const std::vector<Act> production{enters(4, "n1", "becomeLeader"), enters(8, "n1", "sendSnapshot")};
  const std::vector<Act> testing{enters(4, "n3", "becomeLeader"), enters(8, "n3", "sendSnapshot")};
  Play play(testing, [](const std::vector<Hit>& hits, int) {
    return hits.size() == 1 && hits[0].fault->node == "n3" && hits[0].act == 1;
  });
  const Diagnosis d = diagnosis_of(config, crash_dump(production, 8.3), play);
  CHECK(d.target_reached);
  REQUIRE(d.found);
  CHECK(tried_at(d, 2) >= 2);
  const Fault* fault = fault_of(*d.found, FaultKind::crash, "n3");
  REQUIRE(fault != nullptr);
  CHECK(functions_of(*fault) == std::vector<std::string>{"sendSnapshot"});
  CHECK(schedule::parse_schedule(schedule::to_toml(*d.found), "s.toml"));
}

TEST_CASE("level 2: alternatives are kept if the role's node differs from run to run") {
  const auto config = two_levels();
  const std::vector<Act> production{enters(8, "n1", "sendSnapshot")};
  Play play({}, [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].act == 0; });
  play.acts_of = [](int run) { return std::vector<Act>{enters(8, run % 2 == 0 ? "n2" : "n3", "sendSnapshot")}; };
  const Diagnosis d = diagnosis_of(config, crash_dump(production, 8.3), play);
  CHECK(d.target_reached);
  REQUIRE(d.found);
  CHECK(fault_of(*d.found, FaultKind::crash, "n2") != nullptr);
  CHECK(fault_of(*d.found, FaultKind::crash, "n3") != nullptr);
  for (const Fault& fault : d.found->faults) CHECK_FALSE(fault.group.empty());
}

TEST_CASE("level 2: if a node has the role only in some runs, its context is also tried on the other nodes") {
  const auto config = two_levels();
  const std::vector<Act> production{enters(1, "n1", "boot"), enters(8, "n1", "handOver")};
  Play play({}, [](const std::vector<Hit>& hits, int) {
    return hits.size() == 1 && hits[0].act == 3 && !hits[0].fault->group.empty();
  });
  play.acts_of = [&](int run) {
    // n1 has the role only in runs of a schedule whose single fault waits for handOver() alone. In all other runs, n2
    // and n3 have it in turn.
    const std::vector<Fault>& faults = play.made.back().faults;
    const bool first = faults.size() == 1 && faults[0].when.size() == 1 && faults[0].when[0].function == "handOver";
    return std::vector<Act>{enters(1, "n1", "boot"), enters(1, "n2", "boot"), enters(1, "n3", "boot"),
                            enters(8,
                                   first          ? "n1"
                                   : run % 2 == 0 ? "n2"
                                                  : "n3",
                                   "handOver")};
  };
  const Diagnosis d = diagnosis_of(config, crash_dump(production, 8.3), play);
  CHECK(d.target_reached);
  REQUIRE(d.found);
  CHECK(d.found->faults.size() == 3);
  CHECK(functions_of(d.found->faults[0]) == std::vector<std::string>{"handOver"});
  // tried: handOver() on n1; boot() and handOver() on n1, which shows that n1 has lost the role; handOver() on any node
  CHECK(tried_at(d, 2) >= 3);
}

TEST_CASE("level 2: a hit on a node that seldom has the role is tried on all nodes") {
  const auto config = two_levels(4);
  const std::vector<Act> production{enters(8, "n1", "announce")};
  Play play({}, [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].act == 0; });
  int leaders = 0;
  play.acts_of = [&](int) {
    const std::vector<Fault>& faults = play.made.back().faults;
    const bool context = !faults.empty() && !faults[0].when.empty() && faults[0].when[0].function == "announce";
    return std::vector<Act>{enters(8, fmt::format("n{}", 1 + (context ? leaders++ % 4 : 0)), "announce")};
  };
  const Diagnosis d = diagnosis_of(config, crash_dump(production, 8.3), play);
  CHECK(d.target_reached);
  REQUIRE(d.found);
  CHECK(d.found->faults.size() == 4);
  CHECK(d.tally.inconclusive == 0);
}

TEST_CASE("level 2: a fault that waits for an amplified fault follows it, with the roles exchanged") {
  const auto config = two_levels();
  Dump dump;
  dump.event(5, trace::EventType::af, "n1").function = dump.intern("sendSnapshot");
  dump.crashed(6, "n1");
  dump.crashed(9, "n2");
  dump.ends(30);
  Play play({enters(5, "n3", "sendSnapshot")}, [](const std::vector<Hit>& hits, int) {
    return hits.size() == 2 && hits[0].fault->node == "n3" && hits[0].act == 0 && hits[1].fault->node == "n2" &&
           hits[1].t - hits[0].t == Approx(3);
  });
  const Diagnosis d = diagnosis_of(config, dump, play);
  CHECK(d.target_reached);
  REQUIRE(d.found);
  CHECK(schedule::parse_schedule(schedule::to_toml(*d.found), "s.toml"));
}

TEST_CASE("level 2: if no node reaches an event, its amplification is undone and the event before it is tried") {
  const auto config = two_levels();
  const std::vector<Act> production{enters(4, "n1", "store"), enters(5, "n1", "neverInTest")};
  Play play({enters(4, "n1", "store")},
            [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].act == 0; });
  const Diagnosis d = diagnosis_of(config, crash_dump(production, 5.5), play);
  CHECK(d.target_reached);
  REQUIRE(d.found);
  REQUIRE(d.found->faults.size() == 1);
  CHECK(d.found->faults[0].group.empty());
  CHECK(functions_of(d.found->faults[0]) == std::vector<std::string>{"store"});
  CHECK(tried_at(d, 2) == 3);  // tried: neverInTest() on n1; neverInTest() on any node; store() on n1
}

TEST_CASE("level 2: a fault of a host that may be several nodes is widened to all of them in one schedule") {
  const auto config = two_levels();
  const std::vector<std::string> files{"wal", "snapshot", "manifest", "lock", "index"};
  Dump normal, dump;
  for (const std::string& file : files)
    for (int i = 1; i <= 3; ++i) {
      normal.sys(1, fmt::format("n{}", i), "rename", fmt::format("/run/n{}/{}", i, file));
      dump.sys(1, fmt::format("store{}", 6 + i), "rename", fmt::format("/srv/kv/{}/{}", 6 + i, file));
    }
  record(dump, {enters(5, "store8", "neverInTest")}, 5.5);
  dump.crashed(5.5, "store8");
  dump.ends(30);
  Play play({enters(4, "n1", "store")}, [](const std::vector<Hit>&, int) { return false; });
  const Diagnosis d = diagnosis_of(config, dump, play, profile_of(normal, 2));
  std::size_t widened = 0, turned = 0;
  for (const Tried& tried : d.tried) {
    if (tried.schedule.faults.empty()) continue;
    const Fault& fault = tried.schedule.faults[0];
    if (functions_of(fault) != std::vector<std::string>{"neverInTest"}) continue;
    widened += fault.group.empty() ? 0 : 1;
    turned += fault.group.empty() && fault.node != "n1" ? 1 : 0;
  }
  CHECK(turned >= 1);
  CHECK(widened == 1);
}

TEST_CASE("level 2: a function that the test build lacks ends the branch but not the diagnosis") {
  const auto config = two_levels();
  const std::vector<Act> production{enters(4, "n1", "store"), enters(5, "n1", "inlined")};
  Play play({enters(4, "n1", "store")},
            [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].act == 0; });
  play.unknown = {"inlined"};
  const Diagnosis d = diagnosis_of(config, crash_dump(production, 5.5), play);
  CHECK(d.target_reached);
  bool noted = false;
  for (const Tried& tried : d.tried) noted = noted || tried.note.find("no function 'inlined'") != std::string::npos;
  CHECK(noted);
}

TEST_CASE("level 2: a wider context that is not reached ends the branch") {
  const auto config = two_levels();
  const std::vector<Act> production{enters(1, "n1", "a"), enters(2, "n1", "b"), enters(3, "n1", "c")};
  // In the test deployment, no node ever calls b().
  Play play({enters(1, "n1", "a"), enters(3, "n1", "c")}, [](const std::vector<Hit>&, int) { return false; });
  const Diagnosis d = diagnosis_of(config, crash_dump(production, 3.5), play);
  CHECK_FALSE(d.found);
  CHECK(tried_at(d, 2) <= 4);  // tried: c; b and c on n1; c on the first node that reaches it; b and c on any node
}

TEST_CASE("level 2: an order of events that differs from production ends the branch") {
  const auto config = two_levels();
  const std::vector<Act> production{enters(1, "n1", "x"), enters(2, "n1", "a"), enters(3, "n1", "b"),
                                    enters(4, "n1", "c")};
  // In the test deployment, the node calls x() between b() and c(). In production, it did not.
  const std::vector<Act> testing{enters(1, "n1", "x"), enters(2, "n1", "a"), enters(3, "n1", "b"),
                                 enters(3.5, "n1", "x"), enters(4, "n1", "c")};
  const auto contexts = [&](bool traced) {
    Play play(testing, [](const std::vector<Hit>&, int) { return false; });
    play.traced = traced;
    const Diagnosis d = diagnosis_of(config, crash_dump(production, 4.5), play);
    std::set<std::vector<std::string>> all;
    for (const Tried& tried : d.tried)
      if (tried.level == 2 && tried.schedule.roles.empty()) all.insert(functions_of(tried.schedule.faults.at(0)));
    return all;
  };
  CHECK(contexts(true) == std::set<std::vector<std::string>>{{"c"}, {"b", "c"}});
  CHECK(contexts(false).size() == 4);  // if runs are not traced, it is enough that conditions were met in their order
}

TEST_CASE("level 2: a pause keeps its duration when it gets a context") {
  const auto config = two_levels();
  Dump dump;
  const std::vector<Act> acts{enters(5, "n2", "acquireLease"), enters(20, "n2", "release")};
  record(dump, acts, 6);
  dump.paused(6, 14, "n2");
  dump.ends(30);
  Play play(acts, [](const std::vector<Hit>& hits, int) {
    return hits.size() == 1 && hits[0].fault->kind == FaultKind::pause && hits[0].act == 0;
  });
  const Diagnosis d = diagnosis_of(config, dump, play);
  CHECK(d.target_reached);
  CHECK(d.level == 2);
  REQUIRE(d.found);
  CHECK(d.found->faults.at(0).duration_ns == 8 * kSecond);
  CHECK(functions_of(d.found->faults[0]) == std::vector<std::string>{"acquireLease"});
}

TEST_CASE("level 2: a partition gets a function as its context") {
  const auto config = two_levels();
  const std::vector<Act> acts{enters(2, "n1", "boot"), enters(4, "n1", "election"), enters(9, "n1", "election")};
  Dump dump;
  record(dump, acts, 5);
  dump.cut(5, 17, 1, {2, 3});
  SECTION("the function is entered on the partitioned node") {
    dump.ends(30);
    Play play(acts, [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].act == 1; });
    const Diagnosis d = diagnosis_of(config, dump, play);
    CHECK(d.target_reached);
    CHECK(d.level == 2);
    REQUIRE(d.found);
    const Fault& cut = d.found->faults.at(0);
    CHECK(cut.kind == FaultKind::partition);
    CHECK(functions_of(cut) == std::vector<std::string>{"election"});
    CHECK(cut.duration_ns > 0);
    CHECK(schedule::parse_schedule(schedule::to_toml(*d.found), "s.toml"));
  }
  SECTION("a partition is not amplified") {
    dump.ends(30);
    Play play({enters(4, "n2", "election")}, [](const std::vector<Hit>&, int) { return false; });
    const Diagnosis d = diagnosis_of(config, dump, play);
    CHECK(tried_at(d, 2) == 2);  // one with election(), and one with boot(), which does not occur, either
    for (const Tried& tried : d.tried)
      for (const Fault& f : tried.schedule.faults) CHECK(f.group.empty());
  }
  SECTION("of a partition and a later crash, each gets its context in turn while the other keeps its time") {
    dump.event(8, trace::EventType::af, "n2").function = dump.intern("storeSnapshotData");
    dump.crashed(8.1, "n2");
    dump.ends(30);
    const std::vector<Act> testing{enters(2, "n2", "storeSnapshotData"), enters(4, "n1", "election"),
                                   enters(9, "n2", "storeSnapshotData")};
    Play play(testing, [](const std::vector<Hit>& hits, int) {
      return hits.size() == 2 && hits[0].fault->kind == FaultKind::partition && hits[0].t == Approx(5) &&
             hits[1].act == 2;
    });
    const Diagnosis d = diagnosis_of(config, dump, play);
    CHECK(d.target_reached);
    REQUIRE(d.found);
    CHECK(d.found->faults.size() == 2);
    for (const Fault& f : d.found->faults)
      if (f.kind == FaultKind::partition)
        for (const schedule::Condition& c : f.when) CHECK(c.kind == ConditionKind::elapsed);
  }
}

TEST_CASE("level 2: a context met in another order is tried at the occurrence with production's order") {
  const auto config = two_levels();
  // In production, the node called flush(), elect() and flush() again before it crashed. A fault at flush() alone is
  // injected too early, because elect() was not called yet.
  const std::vector<Act> production{enters(1, "n1", "flush"), enters(2, "n1", "x"), enters(3, "n1", "elect"),
                                    enters(4, "n1", "flush")};
  SECTION("that occurrence reproduces the bug") {
    Play play(production, [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].act == 3; });
    const Diagnosis d = diagnosis_of(config, crash_dump(production, 4.5), play);
    CHECK(d.target_reached);
    REQUIRE(d.found);
    CHECK(d.found->faults.at(0).when.back().count == 2);
  }
  SECTION("neither occurrence has production's order, and the branch ends") {
    // In production, the node called a(), then c(), then b() before it crashed. In the test, both calls of b() directly
    // follow a().
    const std::vector<Act> other{enters(1, "n1", "a"), enters(2, "n1", "b"), enters(3, "n1", "a"), enters(4, "n1", "c"),
                                 enters(5, "n1", "b")};
    const std::vector<Act> testing{enters(1, "n1", "a"), enters(2, "n1", "c"), enters(2.5, "n1", "a"),
                                   enters(3, "n1", "b"), enters(4, "n1", "c"), enters(4.5, "n1", "a"),
                                   enters(5, "n1", "b")};
    Play play(testing, [](const std::vector<Hit>&, int) { return false; });
    const Diagnosis d = diagnosis_of(config, crash_dump(other, 5.5), play);
    std::vector<std::string> contexts;
    for (const Tried& tried : d.tried)
      if (tried.level == 2 && tried.schedule.roles.empty())
        contexts.push_back(fmt::format("{} {}", fmt::join(functions_of(tried.schedule.faults.at(0)), ","),
                                       tried.schedule.faults[0].when[0].count));
    CHECK(contexts == std::vector<std::string>{"b 1", "b 2", "c,b 1"});
  }
}

TEST_CASE("level 2: one fault at a time gets a context, by rank, while the others keep their times") {
  const auto config = two_levels();
  const std::vector<Act> acts{enters(3, "n1", "f1"), enters(10, "n3", "f3")};
  Dump dump;
  record(dump, acts, 11);
  dump.crashed(4, "n1");
  dump.crashed(11, "n3");
  dump.ends(30);
  Play play(acts, [](const std::vector<Hit>& hits, int) {
    return hits.size() == 2 && hits[0].act == -1 && hits[1].act == 1;
  });
  const Diagnosis d = diagnosis_of(config, dump, play);
  CHECK(d.target_reached);
  REQUIRE(d.found);
  const Fault* first = fault_of(*d.found, FaultKind::crash, "n1");
  const Fault* second = fault_of(*d.found, FaultKind::crash, "n3");
  REQUIRE(first != nullptr);
  REQUIRE(second != nullptr);
  CHECK(first->when.at(0).elapsed_ns == 4 * kSecond);
  CHECK(second->after == std::vector<std::string>{first->id});
  CHECK(functions_of(*second) == std::vector<std::string>{"f3"});
}

TEST_CASE("level 2: a promising schedule that missed is tried again") {
  const auto config = two_levels();
  const std::vector<Act> acts{enters(4, "n1", "store"), enters(9, "n1", "other")};
  int right = 0;
  Play play(acts,
            [&](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].act == 0 && ++right > 1; });
  const Diagnosis d = diagnosis_of(config, crash_dump(acts, 4.5), play);
  CHECK(d.target_reached);
  CHECK(d.level == 2);
}

TEST_CASE("level 2: equal verdicts give an equal search") {
  const auto config = two_levels();
  const std::vector<Act> acts{enters(1, "n1", "a"),
                              enters(2, "n2", "b"),
                              enters(3, "n1", "c"),
                              enters(4, "n1", "d"),
                              calls(5, "n2", "read", "/run/n2/ccc", false),
                              calls(6, "n2", "read", "/run/n2/ccc", false)};
  Dump dump = crash_dump(acts, 4.5);
  dump.scf(5, "n2", "read", EIO, "/data/n2/ccc");
  dump.crashed(12, "n2");
  std::vector<std::string> first;
  for (int round = 0; round < 2; ++round) {
    std::mt19937 random(11);
    Play play(acts, [&](const std::vector<Hit>& hits, int) { return !hits.empty() && random() % 5 == 0; });
    (void)diagnosis_of(config, dump, play);
    std::vector<std::string> made;
    for (const Schedule& s : play.made) made.push_back(schedule::fingerprint(s));
    if (round == 0) first = made;
    else CHECK(made == first);
  }
  CHECK(first.size() > 10);
}

TEST_CASE("level 2: max_runs is not exceeded") {
  for (int most = 2; most < 20; ++most) {
    auto config = two_levels();
    config.diagnose.max_runs = most;
    Play play(reads(40), [](const std::vector<Hit>&, int) { return false; });
    (void)diagnosis_of(config, read_dump(), play);
    CHECK(play.runs <= most);
  }
}

TEST_CASE("level 2: half a million events before a crash are processed quickly") {
  const auto config = two_levels();
  Dump dump;
  const trace::StringId node = dump.intern("n1");
  std::vector<trace::StringId> functions;
  for (int i = 0; i < 50; ++i) functions.push_back(dump.intern(fmt::format("hot{}", i)));
  for (int i = 0; i < 500'000; ++i) {
    trace::Event& e = dump.event(i * 0.00001, trace::EventType::af, {});
    e.node = node;
    e.function = functions[static_cast<std::size_t>(i) % functions.size()];
  }
  dump.event(4.5, trace::EventType::af, "n1").function = dump.intern("store");
  dump.crashed(5.2, "n1");
  dump.ends(30);
  Play play({enters(4.5, "n1", "store")},
            [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].act == 0; });
  const Diagnosis d = diagnosis_of(config, dump, play);
  CHECK(d.target_reached);
  CHECK(tried_at(d, 2) == 1);
}

TEST_CASE("level 2: a rename is matched by its target and a connect by its port") {
  const auto config = two_levels();
  Dump dump;
  SECTION("rename") {
    dump.sys(5, "n1", "rename", "/data/n1/epoch.XyQw12").path2 = dump.intern("/data/n1/epoch");
    dump.crashed(5.2, "n1");
    dump.ends(30);
    Play play({calls(5, "n1", "rename", "/run/n1/epoch")},
              [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].act == 0; });
    const Diagnosis d = diagnosis_of(config, dump, play);
    REQUIRE(d.found);
    CHECK(d.found->faults.at(0).when.at(0).call.path == "*/epoch.*");
    CHECK(d.found->faults[0].when[0].call.path2 == "*/epoch");
    CHECK(d.found->faults[0].when[0].result == "ok");
  }
  SECTION("connect") {
    dump.sys(5, "n1", "connect", "").peer = dump.intern("192.168.7.9:7000");
    dump.crashed(5.2, "n1");
    dump.ends(30);
    Play play({calls(5, "n1", "connect", "")},
              [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].act == 0; });
    const Diagnosis d = diagnosis_of(config, dump, play);
    REQUIRE(d.found);
    CHECK(d.found->faults.at(0).when.at(0).call.peer == "*:7000");
    CHECK_FALSE(d.found->faults[0].when[0].call.path);
    CHECK(d.found->faults[0].when[0].result == "ok");
    CHECK(schedule::parse_schedule(schedule::to_toml(*d.found), "s.toml"));
  }
  SECTION("an accept is matched without its peer") {
    dump.sys(5, "n1", "accept4", "").peer = dump.intern("192.168.7.9:43210");
    dump.crashed(5.2, "n1");
    dump.ends(30);
    Play play({calls(5, "n1", "accept4", "")},
              [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].act == 0; });
    const Diagnosis d = diagnosis_of(config, dump, play);
    REQUIRE(d.found);
    CHECK(d.found->faults.at(0).when.at(0).call.syscall == "accept4");
    CHECK_FALSE(d.found->faults[0].when[0].call.peer);
  }
}
