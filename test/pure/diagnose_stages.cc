// What each stage of the extraction passes to the next one.
#include <catch2/catch.hpp>

#include "diagnose/extract/network.h"
#include "diagnose/extract/processes.h"
#include "diagnose_world.h"
#include "evidence/causes.h"
#include "evidence/facts.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;

TEST_CASE("facts are sorted by time and contain no calls; a helper's start counts if no main process is known") {
  const auto config = deployment();
  Dump dump;
  dump.crashed(9, "n1");
  dump.exited(4, "n2", 1, 0);
  dump.started(5, "n1", 0);
  dump.started(12, "n1");
  dump.started(6, "n2", 0);
  dump.silence(2, 8, "n3", "10.77.0.1", "10.77.0.3");
  dump.scf(7, "n1", "fsync", EIO, "/data/log");
  dump.sys(7, "n1", "rename", "/data/log");
  dump.ends(20);
  const Inputs inputs = inputs_of(config, {dump});
  const auto nodes = NodeMap::make(inputs);
  REQUIRE(nodes);
  const Facts facts = read_facts({inputs, *nodes, 60 * kSecond});
  CHECK(facts.times.begin == at(2));  // the time at which the silence began
  CHECK(facts.times.end == at(20));
  CHECK(facts.times.at(at(3)) == "3s after the workload began");
  CHECK(facts.failures == 4);
  REQUIRE(facts.processes.size() == 2);
  CHECK(facts.processes[0].node == 1);
  CHECK_FALSE(facts.processes[0].main_known);
  CHECK(facts.processes[1].main_known);
  CHECK(facts.silences.size() == 1);
  CHECK(facts.back_after(0, at(1)) == at(12));
  CHECK(facts.back_after(1, at(4)) == at(6));
  CHECK(facts.back_after(1, at(6)) == kNever);
}

TEST_CASE("a cause explains failures while it lasts, and several causes explain more") {
  trace::Event event;
  event.err = ECONNREFUSED;
  const auto failed = [&](double t) -> const trace::Event& {
    event.ts_ns = at(t);
    return event;
  };
  // The causes are given in no particular order.
  const Causes ends({{CauseKind::killed, 2, {}, at(30), kNever, "the crash of n3"},
                     {CauseKind::killed, 1, {}, at(10), at(12), "the crash of n2"}},
                    {0, 1, 2});
  CHECK(ends.list().front().node == 1);
  CHECK(ends.explaining(failed(5), 0, 1, true) == nullptr);
  const Cause* cause = ends.explaining(failed(11), 0, 1, true);
  REQUIRE(cause != nullptr);
  CHECK(cause->words == "the crash of n2");
  CHECK(ends.explaining(failed(11), 0, 2, true) == nullptr);
  CHECK(ends.explaining(failed(11), 0, NodeMap::kNone, false) == cause);  // which peer the call was for is unknown
  // shortly after a restart, failed connections are still explained
  CHECK(ends.explaining(failed(16), 0, 1, true) == cause);
  CHECK(ends.explaining(failed(18), 0, 1, true) == nullptr);
  CHECK(ends.explaining(failed(1000), 0, 2, true) != nullptr);
  CHECK(ends.while_ending(failed(11), 1));
  CHECK_FALSE(ends.while_ending(failed(11), 0));
  CHECK_FALSE(ends.while_ending(failed(13), 1));

  const Causes all = ends.with({{CauseKind::partition, 0, {1}, at(20), at(25), "the cut of n1"}});
  CHECK(ends.explaining(failed(22), 1, 0, true) == nullptr);
  REQUIRE(all.explaining(failed(22), 1, 0, true) != nullptr);
  CHECK(all.explaining(failed(22), 1, 0, true)->words == "the cut of n1");
  CHECK(all.explaining(failed(22), 2, 0, true) == nullptr);

  // n3 uses the network of n2, so the address may be that of either.
  const Causes shared({{CauseKind::killed, 2, {}, at(30), kNever, "the crash of n3"},
                       {CauseKind::partition, 1, {0}, at(20), at(25), "the cut of n2"}},
                      {0, 1, 1});
  CHECK(shared.explaining(failed(31), 0, 1, true) != nullptr);
  CHECK(shared.explaining(failed(22), 2, 0, true) != nullptr);
  CHECK_FALSE(shared.while_ending(failed(31), 1));
}

TEST_CASE("the network stage uses the causes of processes, and the call stage uses both") {
  const auto config = deployment();
  Dump dump;
  dump.crashed(5, "n2");
  dump.started(8, "n2");
  dump.silence(4.5, 8.5, "n1", "10.77.0.2", "10.77.0.1");
  dump.cut(15, 25, 3, {1, 2});
  dump.ends(40);
  const Inputs inputs = inputs_of(config, {dump});
  const auto nodes = NodeMap::make(inputs);
  REQUIRE(nodes);
  const Given given{inputs, *nodes, 60 * kSecond};
  const Facts facts = read_facts(given);
  const Processes processes = extract_processes(given, facts, Programs(given));
  REQUIRE(processes.extracted.candidates.size() == 1);
  REQUIRE(processes.causes.size() == 1);
  CHECK(processes.causes[0].end == at(8));
  const Network network = extract_network(given, facts, processes.causes);
  REQUIRE(network.extracted.candidates.size() == 2);
  CHECK(network.extracted.candidates[0].symptom);
  CHECK_FALSE(network.extracted.candidates[1].symptom);
  CHECK(network.extracted.candidates[1].node == "n3");
  REQUIRE(network.causes.list().size() == 2);
  CHECK(network.causes.list()[1].kind == CauseKind::partition);
}

TEST_CASE("a node that sends packets after its end is taken as running again") {
  const auto config = deployment();
  Dump dump;
  dump.crashed(5, "n2");
  dump.silence(25, 32, "n1", "10.77.0.2", "10.77.0.1");
  const Inputs inputs = inputs_of(config, {dump});
  const auto nodes = NodeMap::make(inputs);
  REQUIRE(nodes);
  const Given given{inputs, *nodes, 60 * kSecond};
  const Facts facts = read_facts(given);
  const Processes processes = extract_processes(given, facts, Programs(given));
  REQUIRE(processes.causes.size() == 1);
  CHECK(processes.causes[0].end == kNever);
  // the middle between the crash and the silence
  CHECK(end_by_signs_of_life(processes.causes, given, facts)[0].end == at(15));
}

TEST_CASE("a process weighs little if the test deployment does not run its program") {
  const auto config = deployment();
  profile::Profile profile;
  profile.runs = 1;
  profile.state_changes.push_back({"n1", "execve", "", "/srv/test/kv-*", "", 1});
  profile.state_changes.push_back({"n2", "execve", "", "/usr/bin/sh", "", 1});
  Dump dump;
  const auto runs = [&](double t, std::int32_t pid, std::string_view program) {
    dump.sys(t, "n1", "execve", program).pid = pid;
  };
  runs(1, 41, "/opt/kv/bin/kv-server");
  runs(1, 50, "/usr/bin/sh");
  runs(2, 50, "/usr/bin/backup");
  runs(1, 51, "/usr/bin/rotate");
  runs(8, 51, "/usr/bin/sh");
  const auto killed = [&](double t, std::int32_t pid) { dump.crashed(t, "n1", SIGKILL, 0).pid = pid; };
  killed(5, 50);
  killed(5.1, 41);
  killed(9, 51);
  killed(12, 52);  // this process was started before the dump begins
  dump.scf(3, "n1", "write", EIO, "/data/wal").pid = 51;
  dump.scf(8.5, "n1", "write", EIO, "/data/wal").pid = 51;
  dump.ends(40);
  const auto foreign_of = [](const Plan& plan) {
    std::vector<std::pair<std::int64_t, bool>> found;
    for (const Candidate& c : plan.candidates) found.emplace_back((c.first_ts - kBase) / kSecond, c.foreign);
    std::sort(found.begin(), found.end());
    return found;
  };
  const Plan plan = plan_of(config, dump, profile);
  const std::vector<std::pair<std::int64_t, bool>> expected{{3, true},  {5, false}, {5, true},
                                                            {8, false}, {9, false}, {12, false}};
  CHECK(foreign_of(plan) == expected);
  for (const Candidate& c : plan.candidates)
    for (const Candidate& other : plan.candidates)
      if (c.kind == other.kind && c.foreign && !other.foreign) CHECK(c.rank > other.rank);
  CHECK(accounted(plan) == plan.failures);
  profile.state_changes.clear();
  for (const auto& [second, foreign] : foreign_of(plan_of(config, dump, profile))) CHECK_FALSE(foreign);
}

TEST_CASE("fault ids are short and unique") {
  Ids ids;
  CHECK(ids.next("cut-n1") == "cut-n1");
  CHECK(ids.next("cut-n1") == "cut-n1-2");
  CHECK(ids.next(std::string(80, 'x')).size() == 56);
  CHECK(ids.next(std::string(80, 'x')) == std::string(56, 'x') + "-2");
  // The name of one node equals the name of another node with a number after it.
  CHECK(ids.next("crash-n1") == "crash-n1");
  CHECK(ids.next("crash-n1") == "crash-n1-2");
  CHECK(ids.next("crash-n1-2") == "crash-n1-2-2");
  CHECK(ids.next("crash-n1") == "crash-n1-3");
}

TEST_CASE("discarded events are listed by number, with each reason once") {
  Discards some;
  some.add("few", 2);
  some.add("none", 0);
  Discards all;
  all.add("many", 5);
  all.add("few", 1);
  all.add_unmatched("web7", 4);
  all.add(some);
  const std::vector<Discarded> list = all.list();
  REQUIRE(list.size() == 3);
  CHECK(list[0].why == "many");
  CHECK(list[1].why.find("'web7'") != std::string::npos);
  CHECK(list[2].events == 3);
}
