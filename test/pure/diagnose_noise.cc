// Unrelated events of a day in the window must not change what the search finds: whichever host they happened on,
// however near and however usual they are, and however many runs are inconclusive.
#include <catch2/catch.hpp>

#include "diagnose_play.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::FaultKind;
using schedule::OracleAnswer;
using schedule::Schedule;

namespace {

double weight_of(const Plan& plan, FaultKind kind, std::string_view node) {
  double weight = 0;
  for (const Candidate& c : plan.candidates) weight += c.kind == kind && c.node == node ? c.weight : 0;
  return weight;
}

}  // namespace

TEST_CASE("noise: frequent pauses of one node during a day are one candidate") {
  const auto config = deployment();
  const auto planned = [&](int pauses) {
    Dump dump;
    for (int i = 0; i < pauses; ++i) dump.paused(kHour * i, kHour * i + 5, "n2");
    dump.crashed(24 * kHour - 20, "n1");
    dump.ends(24 * kHour);
    const Plan plan = plan_of(config, dump);
    CHECK(accounted(plan) == plan.failures);
    if (pauses > 8) CHECK(weight_of(plan, FaultKind::crash, "n1") > 5 * weight_of(plan, FaultKind::pause, "n2"));
    return std::count_if(plan.candidates.begin(), plan.candidates.end(),
                         [](const Candidate& c) { return c.kind == FaultKind::pause; });
  };
  CHECK(planned(20) == 1);
  CHECK(planned(3) == 3);
}

TEST_CASE("noise: a usual event at the window's end keeps its weight") {
  const auto config = deployment();
  const auto share = [&](double last) {
    Dump dump;
    for (int i = 0; i < 11; ++i) dump.crashed(2 * kHour * i, "n1");
    dump.crashed(24 * kHour - last, "n1");
    dump.scf(24 * kHour - last - 1, "n2", "openat", EMFILE, "/data/n2/table");
    dump.ends(24 * kHour);
    const Plan plan = plan_of(config, dump);
    return weight_of(plan, FaultKind::crash, "n1") / weight_of(plan, FaultKind::syscall, "n2");
  };
  CHECK(share(1) > 1);
  CHECK(share(2 * kHour) < 1);
}

TEST_CASE("noise: a frequent failure is not ordinary if its node ends right after it") {
  const auto config = deployment();
  const auto share = [&](bool ends) {
    Dump dump;
    for (int i = 0; i < 5; ++i) dump.scf(4 * kHour * i, "n1", "openat", ELOOP, "/data/n1/checkpoint");
    dump.scf(24 * kHour - 2000, "n1", "openat", ELOOP, "/data/n1/checkpoint");
    if (ends) dump.exited(24 * kHour - 1999.8, "n1", 1);
    dump.scf(24 * kHour - 1000, "n2", "openat", ELOOP, "/data/n2/table");
    dump.ends(24 * kHour);
    const Plan plan = plan_of(config, dump);
    const auto failed = std::find_if(plan.candidates.begin(), plan.candidates.end(),
                                     [](const Candidate& c) { return c.kind == FaultKind::syscall && c.node == "n1"; });
    REQUIRE(failed != plan.candidates.end());
    CHECK((failed->why.find("it fails like this all the time; the last time n1 ended itself right after it") !=
           std::string::npos) == ends);
    return weight_of(plan, FaultKind::syscall, "n1") / weight_of(plan, FaultKind::syscall, "n2");
  };
  CHECK(share(true) > 3 * share(false));
}

TEST_CASE("noise: of equal faults the last weighs most, and it weighs more the longer ago the others were") {
  const auto config = deployment();
  const auto of_last = [&](double apart) {
    Dump dump;
    dump.scf(0, "n2", "openat", ELOOP, "/data/n2/table");
    dump.scf(apart, "n1", "openat", ELOOP, "/data/n1/table");
    dump.ends(apart + 1);
    const Plan plan = plan_of(config, dump);
    return weight_of(plan, FaultKind::syscall, "n1") / weight_of(plan, FaultKind::syscall, "n2");
  };
  CHECK(of_last(10) > 1);
  CHECK(of_last(1000) > 2 * of_last(10));
}

TEST_CASE("noise: the last fault of a day ranks before kills and pauses of earlier hours") {
  const auto config = deployment();
  Dump dump;
  for (int hour = 0; hour < 20; ++hour) {
    if (hour % 2 == 0) dump.crashed(3600 * hour, "n2");
    else dump.paused(3600 * hour, 3600 * hour + 20 + hour, "n3");
  }
  dump.cut(80'000, 80'010, 1, {2, 3});
  dump.scf(80'011, "n2", "read", ECONNRESET, "", "10.77.0.1:7000");
  dump.ends(80'020);
  const Plan plan = plan_of(config, dump);
  const std::vector<const Candidate*> ranked = by_rank(plan);
  REQUIRE(ranked.size() >= 4);
  CHECK(ranked.front()->kind == FaultKind::partition);
  CHECK(plan.candidates.front().kind != FaultKind::partition);  // plan.candidates is not sorted by rank
  for (std::size_t i = 0; i < ranked.size(); ++i) CHECK(ranked[i]->rank == static_cast<int>(i) + 1);
  CHECK(std::any_of(ranked.begin() + 1, ranked.end(), [](const Candidate* c) { return c->symptom; }));
}

TEST_CASE("noise: a host whose window begins late is matched to its node by its calls") {
  const auto config = deployment();
  Dump normal;
  for (const char* node : {"n1", "n2"}) {
    for (const char* file : {"wal", "snapshot", "manifest", "lock"})
      normal.sys(1, node, "rename", fmt::format("/run/{}/{}", node, file));
    normal.event(1, trace::EventType::af, node).function = normal.intern("boot");
  }
  for (const char* file : {"index", "stats"}) normal.sys(1, "n3", "openat", fmt::format("/run/n3/{}", file));
  auto profile = profile_of(normal, 2);
  // nothing enters this function, and only n2 has it
  profile.functions.push_back({"n2", "give_up", "/srv/store", 0, 0, true});
  Dump dump;
  for (int i = 0; i < 3; ++i) {  // these three hosts are healthy, and were traced from their start
    const std::string host = fmt::format("store{}.example", i);
    for (const char* file : {"wal", "snapshot", "manifest", "lock"})
      dump.sys(1, host, "rename", fmt::format("/srv/{}", file));
    const std::string query = fmt::format("query{}.example", i);
    for (const char* file : {"index", "stats"}) dump.sys(1, query, "openat", fmt::format("/srv/{}", file));
  }
  for (const char* file : {"wal", "snapshot", "manifest", "lock"})
    dump.sys(1, "late.example", "rename", fmt::format("/srv/{}", file));
  dump.event(4, trace::EventType::af, "late.example").function = dump.intern("give_up");
  dump.crashed(9, "late.example");
  dump.sys(5, "little.example", "openat", "/srv/index");
  dump.crashed(10, "little.example", SIGTERM);
  dump.sys(5, "stranger.example", "openat", "/srv/something");
  dump.crashed(11, "stranger.example", SIGINT);
  dump.ends(30);
  const Plan plan = plan_of(config, dump, profile);
  std::map<int, std::string> crashed;
  for (const Candidate& c : plan.candidates)
    if (c.kind == FaultKind::crash) crashed[c.fault.signal] = c.node;
  CHECK(crashed[SIGKILL] == "n2");
  CHECK(crashed[SIGTERM] == "n3");
  CHECK_FALSE(crashed.contains(SIGINT));
}

TEST_CASE("noise: the leader is recognised by the direction of connections") {
  const auto config = deployment();
  const auto call = [](Dump& dump, double t, const std::string& host, const char* syscall, std::string peer) {
    trace::Event& e = dump.sys(t, host, syscall, "");
    e.peer = dump.intern(peer);
  };
  // All nodes serve clients and write a journal; n2 and n3 are followers of n1.
  Dump normal;
  for (const int i : {1, 2, 3}) {
    const std::string node = fmt::format("n{}", i);
    for (const char* path : {"journal", "data"}) normal.sys(1, node, "openat", fmt::format("/run/{}/{}", node, path));
    normal.sys(1, node, "mkdir", fmt::format("/run/{}/data", node));
    call(normal, 1, node, "accept4", "10.77.0.254:40000");
    if (i > 1) call(normal, 1, node, "connect", "10.77.0.1:7000");
    if (i > 1) call(normal, 1, "n1", "accept4", fmt::format("10.77.0.{}:40001", i));
  }
  const auto profile = profile_of(normal, 2);
  // The window begins late. It contains little more of these two hosts than one connection between them.
  Dump dump(false);
  for (const char* host : {"alpha", "beta"}) {
    for (const char* path : {"journal", "data"}) dump.sys(1, host, "openat", fmt::format("/srv/{}/{}", host, path));
    dump.sys(1, host, "mkdir", fmt::format("/srv/{}/data", host));
  }
  call(dump, 2, "beta", "accept4", "10.9.9.1:40017");
  call(dump, 2, "alpha", "accept4", "10.9.9.77:40017");
  dump.meta().addresses = {"alpha=10.9.9.1", "beta=10.9.9.2"};
  dump.crashed(5, "beta");
  dump.crashed(6, "alpha", SIGTERM);
  dump.ends(30);
  std::map<int, std::string> crashed;
  for (const Candidate& c : plan_of(config, dump, profile).candidates)
    if (c.kind == FaultKind::crash) crashed[c.fault.signal] = c.node;
  CHECK(crashed[SIGKILL] == "n1");
  CHECK(crashed[SIGTERM] == "n2");
}

TEST_CASE("noise: a node that took over the leader's role is not a second leader if the two connect") {
  const auto config = deployment();
  const auto call = [](Dump& dump, double t, const std::string& host, const char* syscall, std::string peer) {
    trace::Event& e = dump.sys(t, host, syscall, "");
    e.peer = dump.intern(peer);
  };
  const auto keeps = [](Dump& dump, const std::string& host, std::initializer_list<const char*> files) {
    for (const char* file : files) dump.sys(1, host, "rename", fmt::format("/srv/kv/{}", file));
  };
  Dump normal;
  for (const char* node : {"n1", "n2", "n3"}) keeps(normal, node, {"log", "epoch", "vote", "data", "lock", "index"});
  keeps(normal, "n1", {"leases", "sessions"});
  for (const char* node : {"n2", "n3"}) keeps(normal, node, {"received", "applied", "acknowledged"});
  const auto profile = profile_of(normal, 2);
  const auto taken = [&](bool mates) {
    Dump dump;
    for (const char* host : {"alpha", "beta", "gamma"})
      keeps(dump, host, {"log", "epoch", "vote", "data", "lock", "index"});
    for (const char* host : {"alpha", "beta"}) keeps(dump, host, {"leases", "sessions"});
    for (const char* host : {"beta", "gamma"}) keeps(dump, host, {"received", "applied", "acknowledged"});
    dump.meta().addresses = {"alpha=10.9.9.1", "beta=10.9.9.2", "gamma=10.9.9.3"};
    if (mates)
      for (const char* host : {"beta", "gamma"}) call(dump, 1, host, "connect", "10.9.9.1:7000");
    if (mates) call(dump, 10, "gamma", "connect", "10.9.9.2:7000");
    dump.paused(22, 26, "alpha");
    dump.ends(30);
    std::map<std::string, std::string> node_of;  // by name of the host
    for (const std::string& note : plan_of(config, dump, profile).notes)
      for (const char* host : {"alpha", "beta", "gamma"})
        for (const char* node : {"n1", "n2", "n3"})
          if (note.starts_with(fmt::format("'{}' of the dump was matched to node '{}'", host, node)))
            node_of[host] = node;
    return node_of;
  };
  CHECK(taken(true)["alpha"] == "n1");
  CHECK(taken(true)["beta"] != "n1");
  CHECK(taken(true)["gamma"] != taken(true)["beta"]);
  CHECK(taken(false)["beta"] == "n1");  // nothing shows that beta belongs to the same cluster as alpha
}

TEST_CASE("noise: a set of many faults with inconclusive runs is not repeated but halved") {
  const auto config = deployment();
  Dump dump;
  for (int i = 0; i < 12; ++i) dump.crashed(700.0 * i, fmt::format("n{}", 1 + i % 3), i == 3 ? SIGTERM : SIGKILL);
  dump.ends(10'000);
  Inputs inputs = inputs_of(config, {dump});
  Cluster cluster([](const Schedule& s, int) {
    if (s.faults.size() > 4) return Answer{OracleAnswer::unknown, {}, {}, "node n2 was not ready in 10s"};
    return Answer{hit_if(std::any_of(s.faults.begin(), s.faults.end(),
                                     [](const schedule::Fault& f) { return f.signal == SIGTERM; })),
                  {},
                  {},
                  ""};
  });
  const Result<Diagnosis> d = diagnose::diagnose(inputs, cluster, {});
  REQUIRE(d);
  INFO(d->schedules << " schedules, " << d->runs << " runs");
  CHECK(d->target_reached);
  int unjudged = 0;
  bool halved = false;
  for (const Tried& tried : d->tried) {
    if (tried.schedule.faults.size() > 4) {
      CHECK(tried.tally.runs() == 1);
      ++unjudged;
    }
    halved = halved || tried.note.find("half of them") != std::string::npos;
  }
  CHECK(unjudged > 0);
  CHECK(halved);
  CHECK(d->runs - d->simplify_runs - d->rate_runs <= 25);
}

TEST_CASE("noise: calls that nodes need to start are failed together only once the workload has begun") {
  const auto config = deployment();
  Dump dump;
  std::vector<Act> acts;
  const auto path = [](int i) { return fmt::format("/etc/app/{:c}", 'a' + i); };
  for (int i = 0; i < 24; ++i) acts.push_back({-1, "n1", "", "openat", path(i)});
  for (int i = 0; i < 24; ++i) {
    acts.push_back({5 + 0.01 * i, "n1", "", "openat", path(i)});
    dump.scf(4 + 0.01 * i, "n1", "openat", ENOENT, path(i));
  }
  dump.ends(10);
  Play play(acts, [](const std::vector<Hit>& hits, int) {
    return std::any_of(hits.begin(), hits.end(),
                       [](const Hit& hit) { return hit.fault->call.path && hit.fault->call.path->ends_with("/u"); });
  });
  int dead = 0;
  play.dead = [&](const std::vector<Hit>& hits) {
    const bool none = std::any_of(hits.begin(), hits.end(), [](const Hit& hit) { return hit.t < 0; });
    dead += none ? 1 : 0;
    return none;
  };
  Inputs inputs = inputs_of(config, {dump});
  inputs.simplify = false;
  SECTION("the survey shows that they are needed") {}
  SECTION("the first trial shows that they are needed") { inputs.without = {"survey"}; }
  const Result<Diagnosis> made = diagnose::diagnose(inputs, play, {});
  REQUIRE(made);
  const Diagnosis& d = *made;
  INFO(d.schedules << " schedules, " << d.runs << " runs, " << dead << " without an answer");
  CHECK(d.target_reached);
  for (const Tried& tried : d.tried)
    UNSCOPED_INFO(tried.schedule.faults.size() << " faults, " << tried.tally.runs() << " runs: " << tried.note);
  CHECK(dead == (inputs.without.empty() ? 0 : 1));
  CHECK(d.schedules <= 8);
}

TEST_CASE("noise: an occurrence number higher than a run reaches is tried last") {
  const auto config = deployment();
  Dump dump(false);
  std::vector<Act> acts;
  for (int i = 0; i < 38; ++i) dump.sys(100.0 * i, "n1", "rename", "/data/n1/index");
  dump.scf(3800, "n1", "pwrite64", EFBIG, "/data/n1/journal");
  dump.ends(3800.2);
  for (int i = 0; i < 7; ++i) {
    acts.push_back({0.3 + i, "n1", "", "rename", "/run/n1/index"});
    acts.push_back({0.6 + i, "n1", "", "pwrite64", "/run/n1/journal", false});
  }
  Play play(acts, [](const std::vector<Hit>&, int) { return false; });
  const Inputs inputs = inputs_of(config, {dump});
  REQUIRE(diagnose::diagnose(inputs, play, {}));
  const auto first = [&](const auto& is) {
    return std::find_if(play.made.begin(), play.made.end(),
                        [&](const Schedule& made) { return made.faults.size() == 1 && is(made.faults[0]); }) -
           play.made.begin();
  };
  const auto seventh = first([](const schedule::Fault& fault) { return fault.count == 7 && fault.times == 1; });
  const auto never =
      first([](const schedule::Fault& fault) { return !fault.when.empty() && fault.when[0].count == 38; });
  const auto last = static_cast<std::ptrdiff_t>(play.made.size());
  CHECK(seventh < last);
  CHECK(never < last);  // the schedule for the 38th rename is tried, too
  CHECK(seventh < never);
}

TEST_CASE("noise: an old fault is not combined with every step of the last one") {
  const auto config = deployment();
  std::vector<Act> acts;
  Dump dump(false);
  dump.paused(-3 * kHour, -3 * kHour + 8, "n1");
  for (int i = 0; i < 30; ++i)  // many other events, so that the pause is an old event when the last fault occurs
    dump.scf(-2 * kHour + 200 * i, "n1", "access", ENOENT,
             fmt::format("/data/n1/{}{}", static_cast<char>('a' + i % 26), i < 26 ? "file" : "table"));
  int number = 0;
  for (const char* function :
       {"boot", "load", "elect", "append", "store", "apply", "compact", "send", "swap", "tidy"}) {
    acts.push_back({1.0 + number, "n1", function, "", ""});
    dump.event(1.0 + number, trace::EventType::af, "n1").function = dump.intern(function);
    ++number;
  }
  dump.crashed(1.5 + number, "n1");
  dump.ends(2 + number);
  Play play(acts, [&](const std::vector<Hit>&, int) { return false; });
  const Inputs inputs = inputs_of(config, {dump});
  REQUIRE(diagnose::diagnose(inputs, play, {}));
  REQUIRE(play.made.size() > 14);
  const auto both = std::count_if(play.made.begin(), play.made.begin() + 14, [](const Schedule& made) {
    return fault_of(made, FaultKind::pause) != nullptr && fault_of(made, FaultKind::crash) != nullptr;
  });
  CHECK(both <= 3);
}

TEST_CASE("noise: occurrences are counted separately for each host that is mapped to a node") {
  const auto config = deployment();
  Dump dump(false);
  for (int i = 0; i < 20; ++i) dump.sys(-2000 + 50.0 * i, "other.example", "rename", "/srv/index");
  for (int i = 0; i < 3; ++i) dump.sys(1 + i, "this.example", "rename", "/srv/index");
  dump.crashed(3.5, "this.example");
  dump.ends(4);
  std::vector<Act> acts;
  for (int i = 0; i < 6; ++i) acts.push_back({1.0 + i, "n1", "", "rename", "/run/n1/index"});
  Play play(acts, [](const std::vector<Hit>&, int) { return false; });
  Inputs inputs = inputs_of(config, {dump});
  inputs.host_to_node = {{"this.example", "n1"}, {"other.example", "n1"}};
  REQUIRE(diagnose::diagnose(inputs, play, {}));
  const auto waits_for = [&](int nth) {
    return std::any_of(play.made.begin(), play.made.end(), [&](const Schedule& made) {
      const schedule::Fault* crash = fault_of(made, FaultKind::crash, "n1");
      return crash != nullptr && crash->when.size() == 1 && crash->when[0].call.syscall == "rename" &&
             crash->when[0].count == nth;
    });
  };
  CHECK(waits_for(3));
  CHECK_FALSE(waits_for(23));
}

TEST_CASE("noise: for a window that began late, the next occurrence is tried as well") {
  const auto config = deployment();
  const auto schedules = [&](bool late) {
    Dump dump(!late);
    std::vector<Act> acts;
    for (int i = 0; i < 5; ++i) {
      acts.push_back({1.0 + i, "n1", "", "ftruncate", "/run/n1/data.db"});
      acts.push_back({1.1 + i, "n1", "", "pwrite64", "/run/n1/data.db", false});
      acts.push_back({1.2 + i, "n1", "", "pwrite64", "/run/n1/data.db", false});
    }
    for (int i = 1; i < 3; ++i)
      // the dump lacks the first ftruncate, because it was overwritten in the window
      dump.sys(1 + i, "n1", "ftruncate", "/run/n1/data.db");
    dump.crashed(3.05, "n1");
    dump.ends(20);
    // The bug occurs if n1 crashes between the two writes after the third ftruncate.
    Play play(acts, [](const std::vector<Hit>& hits, int) { return hits.size() == 1 && hits[0].act == 8; });
    const Diagnosis d = diagnosis_of(config, dump, play);
    CHECK(d.target_reached);
    return d.schedules;
  };
  const int late = schedules(true);
  INFO(late);
  CHECK(late <= 9);
}

TEST_CASE("noise: a recurring failure is tried with its nearest neighbour, once and as often as seen") {
  const auto config = deployment();
  const auto planned = [&](int early, int late) {
    Dump dump;
    for (int i = 0; i < early; ++i) dump.scf(5 * kHour * (i + 1), "n1", "openat", EACCES, "/data/n1/checkpoint.tmp");
    dump.paused(4 * kHour, 4 * kHour + 5, "n2");
    dump.crashed(14 * kHour - 54, "n1");
    dump.started(14 * kHour - 53, "n1");
    dump.scf(14 * kHour - 52, "n1", "openat", EACCES, "/data/n1/checkpoint.tmp");
    dump.exited(14 * kHour - 51.8, "n1", 1);
    dump.cut(14 * kHour - 25, 14 * kHour - 15, 3, {1, 2});  // at a greater distance from the failure than the crash
    for (int i = 0; i < late; ++i) dump.scf((18 + 3 * i) * kHour, "n1", "openat", EACCES, "/data/n1/checkpoint.tmp");
    dump.ends(24 * kHour);
    std::vector<std::int64_t> times;  // the times in schedules that kill n1 and fail the open that follows
    for (const Schedule& schedule : plan_of(config, dump).schedules)
      if (schedule.faults.size() == 2 && schedule.faults[0].kind == FaultKind::crash &&
          schedule.faults[0].node == "n1" && schedule.faults[1].kind == FaultKind::syscall &&
          schedule.faults[1].after == std::vector<std::string>{schedule.faults[0].id})
        times.push_back(schedule.faults[1].times);
    return times;
  };
  CHECK(planned(0, 0) == std::vector<std::int64_t>{1});
  CHECK(planned(2, 0) == std::vector<std::int64_t>{3, 1});
  CHECK(planned(1, 1) == std::vector<std::int64_t>{3, 1});
}
