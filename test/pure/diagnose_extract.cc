// Which events of a dump become which candidates, and in which order the candidates are tested.
#include <catch2/catch.hpp>

#include <set>

#include "diagnose/context.h"
#include "diagnose_world.h"
#include "trace/jsonl.h"
#include "trace_random.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::Direction;
using schedule::FaultKind;

namespace {

std::vector<const Candidate*> partitions(const Plan& plan) {
  std::vector<const Candidate*> found;
  for (const Candidate& c : plan.candidates)
    if (c.kind == FaultKind::partition && !c.symptom) found.push_back(&c);
  return found;
}

// A silence, recorded by a tracer that also found out whether anything stayed unanswered.
trace::Event& known_silence(Dump& dump, double from, double to, int dst, int src, bool outstanding,
                            double asked_after = -1) {
  trace::Event& e =
      dump.silence(from, to, fmt::format("n{}", dst), fmt::format("10.77.0.{}", src), fmt::format("10.77.0.{}", dst));
  e.flags = outstanding ? trace::kOutstanding : trace::kIdle;
  if (asked_after >= 0) e.begin_within_ms = static_cast<std::int32_t>(asked_after * 1000);
  return e;
}

}  // namespace

TEST_CASE("idle connections are not partitions, however long, and their usual length is reported") {
  const auto config = deployment();
  Dump dump;
  known_silence(dump, 3, 16.6, 2, 1, false).flags |= trace::kOpen;
  known_silence(dump, 3.1, 16.6, 1, 2, false).usual_ms = 2000;
  known_silence(dump, 5, 12, 3, 1, false);
  dump.crashed(2, "n1");
  dump.ends(16.6);
  const Plan plan = plan_of(config, dump);
  for (const Candidate& c : plan.candidates) CHECK(c.kind != FaultKind::partition);
  CHECK(discarded(plan, "idle: nothing was unanswered between n1 and n2 for up to 13.6s (usually up to 2s)") == 2);
  CHECK(accounted(plan) == plan.failures);
}

TEST_CASE("an idle direction joins the partition that the unanswered opposite direction shows") {
  const auto config = deployment();
  Dump dump;
  known_silence(dump, 5, 12, 1, 2, true, 0.2);
  known_silence(dump, 5, 12, 2, 1, false);
  dump.ends(30);
  const Plan plan = plan_of(config, dump);
  REQUIRE(partitions(plan).size() == 1);
  CHECK(partitions(plan)[0]->fault.direction == Direction::both);
  CHECK(partitions(plan)[0]->count == 2);
  CHECK(partitions(plan)[0]->known == Known::seen);
}

TEST_CASE("a silence in both directions may be a cut of either node") {
  const auto config = deployment();
  Dump dump;
  dump.cut(5, 12, 1, {2});
  dump.ends(30);
  const Plan plan = plan_of(config, dump);
  REQUIRE(partitions(plan).size() == 1);
  const Candidate& cut = *partitions(plan)[0];
  CHECK(cut.fault.direction == Direction::both);
  for (const Direction one_way : {Direction::in, Direction::out})
    CHECK(std::count_if(cut.alternatives.begin(), cut.alternatives.end(), [&](const schedule::Fault& shape) {
            return shape.node == cut.fault.node && shape.peers == cut.fault.peers && shape.direction == one_way;
          }) == 1);
}

TEST_CASE("overlapping silences of a busy and a rare pair are one partition that begins when neither was heard") {
  const auto config = deployment();
  Dump dump;
  known_silence(dump, 2, 20, 1, 2, true, 9.5);   // n1's next message, at 11.5, stays unanswered, too
  known_silence(dump, 11, 20, 1, 3, true, 0.2);  // n1 sent a message at 11.2
  dump.ends(40);
  const Plan plan = plan_of(config, dump);
  REQUIRE(partitions(plan).size() == 1);
  CHECK(partitions(plan)[0]->node == "n1");
  CHECK(partitions(plan)[0]->first_ts == at(11));
  CHECK(partitions(plan)[0]->fault.duration_ns <= 10 * kSecond);
  // If two silences cannot have begun at the same time, they are two faults.
  Dump apart;
  known_silence(apart, 2, 20, 1, 2, true, 1);
  known_silence(apart, 11, 30, 1, 3, true, 0.2);
  apart.ends(40);
  CHECK(partitions(plan_of(config, apart)).size() == 2);
}

TEST_CASE("only unanswered silences in the profile, not idle ones, make a silence benign") {
  const auto config = deployment();
  Dump dump;
  known_silence(dump, 3, 9, 2, 1, true, 0.1);
  dump.ends(30);
  Dump idle;
  known_silence(idle, 10, 40, 2, 1, false).flags |= trace::kOpen;
  CHECK(partitions(plan_of(config, dump, profile_of(idle))).size() == 1);
  Dump asked;
  known_silence(asked, 10, 17, 2, 1, true, 0.1);
  CHECK(partitions(plan_of(config, dump, profile_of(asked))).empty());
  // If the tracer does not know what stayed unanswered, only a silence in the profile that ended before the end of the
  // run shows how long silences usually are. One that lasted to the end of the run does not show this.
  Dump unknown, to_the_end, over;
  unknown.silence(3, 14, "n2", "10.77.0.1", "10.77.0.2");
  unknown.scf(9, "n1", "openat", EACCES, "/data/x");
  unknown.ends(30);
  to_the_end.silence(10, 40, "n2", "10.77.0.1", "10.77.0.2").flags = trace::kOpen;
  over.silence(10, 40, "n2", "10.77.0.1", "10.77.0.2");
  const Plan longer = plan_of(config, unknown, profile_of(to_the_end));
  CHECK(discarded(longer, "benign: the profile contains silences") == 0);
  CHECK(discarded(plan_of(config, unknown, profile_of(over)), "benign: the profile contains silences") == 1);
}

TEST_CASE("an open silence is weighed by its nodes' later events and by unanswered requests") {
  const auto config = deployment();
  const auto plan_with = [&](bool goes_on, std::uint16_t flags) {
    Dump dump;
    dump.scf(4, "n1", "openat", EACCES, "/data/x");
    dump.silence(5, 20, "n2", "10.77.0.1", "10.77.0.2").flags = static_cast<std::uint16_t>(trace::kOpen | flags);
    if (goes_on) dump.scf(15, "n1", "openat", EACCES, "/data/x");
    dump.ends(20);
    return partitions(plan_of(config, dump)).size();
  };
  CHECK(plan_with(true, 0) == 1);
  CHECK(plan_with(false, 0) == 0);
  CHECK(plan_with(false, trace::kOutstanding) == 1);
}

namespace {

trace::Event& short_write(Dump& dump, double t, std::string_view node, std::string_view path, std::int64_t done,
                          std::uint32_t requested, std::string_view call = "write") {
  trace::Event& e = dump.scf(t, node, call, 0, path);
  e.result = done;
  e.requested = requested;
  return e;
}

}  // namespace

TEST_CASE("a write that fails right after a short write to the same file is tried together with it") {
  const auto config = deployment();
  const auto first_of = [&](double after, std::string_view path) {
    Dump dump;
    short_write(dump, 5, "n1", path, 192, 560);
    for (const double t : {5 + after, 5.2, 5.4}) dump.scf(t, "n1", "write", ENOSPC, "/data/n1/wal.log");
    dump.scf(5.6, "n1", "write", ENOSPC, "/data/n1/wal.log");
    dump.ends(20);
    for (const Candidate& c : plan_of(config, dump).candidates)
      if (c.kind == FaultKind::syscall && c.error == "ENOSPC") return c;
    FAIL("no candidate");
    return Candidate{};
  };
  const Candidate torn = first_of(0.001, "/data/n1/wal.log");
  CHECK(torn.fault.effect == schedule::Effect::bytes);
  CHECK(torn.fault.effect_bytes == 192);
  CHECK(torn.fault.result == 192);
  CHECK(torn.fault.times == 4);
  CHECK(torn.why.find("192 bytes") != std::string::npos);
  CHECK(std::any_of(torn.alternatives.begin(), torn.alternatives.end(), [](const schedule::Fault& shape) {
    return shape.error == ENOSPC && shape.effect == schedule::Effect::none;
  }));
  CHECK(first_of(0.02, "/data/n1/wal.log").fault.effect == schedule::Effect::none);  // the rest did not follow at once
  CHECK(first_of(0.001, "/data/n1/other.log").fault.effect == schedule::Effect::none);  // the rest went to another file
}

TEST_CASE("a short write before an exit gives a full disk as first candidate and the short write as second") {
  const auto config = deployment();
  Dump dump;
  short_write(dump, 5, "n1", "/data/n1/wal.log", 1234, 4096);
  dump.exited(5.01, "n1", 1);
  dump.ends(20);
  const Plan plan = plan_of(config, dump);
  const auto ranked = [&](int rank) {
    return *std::find_if(plan.candidates.begin(), plan.candidates.end(), [&](const auto& c) { return c.rank == rank; });
  };
  REQUIRE(plan.candidates.size() == 3);
  CHECK(ranked(1).kind == FaultKind::disk_full);
  CHECK(ranked(1).node == "n1");
  CHECK(ranked(1).known == Known::inferred);
  CHECK(ranked(2).kind == FaultKind::syscall);
  CHECK(ranked(2).syscall == "write");
  CHECK(ranked(2).error.empty());
  CHECK(ranked(2).fault.result == 1234);
  CHECK(ranked(2).fault.effect == schedule::Effect::bytes);
  CHECK(ranked(2).fault.effect_bytes == 1234);
  CHECK(ranked(2).fatal);
  CHECK(ranked(2).why.find("doing only 1234 of 4096 bytes") != std::string::npos);
  CHECK(ranked(3).kind == FaultKind::crash);  // because the node ended by itself
  CHECK(accounted(plan) == plan.failures);
  // A failure that also occurs in runs without faults is benign.
  const Plan usual = plan_of(config, dump, profile_of(dump));
  for (const Candidate& c : usual.candidates) {
    CHECK(c.kind != FaultKind::disk_full);
    CHECK(c.kind != FaultKind::syscall);
  }
}

TEST_CASE("a short read is a candidate, and SIGBUS on a mapped file points to its disk") {
  const auto config = deployment();
  Dump dump;
  short_write(dump, 5, "n1", "/data/n1/table", 100, 4096, "pread64");
  short_write(dump, 6, "n2", "/data/n2/wal", 0, 512).count = 3;
  trace::Event& bus = dump.scf(7, "n3", "mmap", 0, "/data/n3/map");
  bus.signal = SIGBUS;
  dump.ends(20);
  const Plan plan = plan_of(config, dump);
  const auto of = [&](FaultKind kind, std::string_view node) {
    return std::find_if(plan.candidates.begin(), plan.candidates.end(),
                        [&](const Candidate& c) { return c.kind == kind && c.node == node; });
  };
  const auto none = plan.candidates.end();
  REQUIRE(of(FaultKind::syscall, "n1") != none);
  CHECK(of(FaultKind::syscall, "n1")->ordinariness == 0);
  CHECK(of(FaultKind::disk_full, "n1") == none);
  REQUIRE(of(FaultKind::syscall, "n2") != none);
  CHECK(of(FaultKind::syscall, "n2")->fault.result == 0);
  CHECK(of(FaultKind::syscall, "n2")->fault.effect == schedule::Effect::none);
  CHECK(of(FaultKind::disk_full, "n2") != none);
  CHECK(of(FaultKind::syscall, "n3") == none);
  REQUIRE(of(FaultKind::disk_full, "n3") != none);
  CHECK(of(FaultKind::disk_full, "n3")->why.find("ending in SIGBUS") != std::string::npos);
  CHECK(accounted(plan) == plan.failures);
  // The schedules must be valid.
  for (const Candidate& c : plan.candidates) {
    schedule::Schedule one;
    one.name = "one";
    one.faults = {c.fault};
    one.faults.front().after.clear();  // because `after` refers to a fault of another schedule
    const auto read = schedule::parse_schedule(schedule::to_toml(one), "one");
    INFO(schedule::to_toml(one) << (read ? "" : read.error().message));
    CHECK(read);
  }
}

TEST_CASE("calls that fail in a process that is being killed are not candidates") {
  const auto config = deployment();
  Dump dump;
  dump.scf(4.9, "n1", "openat", EMFILE, "/data/n1/wal");  // before the signal, so it is evidence
  dump.scf(4.9999, "n1", "clone", ENOMEM).flags = trace::kDying;
  dump.scf(5.1, "n1", "write", EIO, "/data/n1/wal");             // after the signal, which was sent at 5.0
  dump.scf(5.1, "n1", "write", EIO, "/data/n1/other").pid = 77;  // another process that belongs to the same node
  trace::Event& killed = dump.crashed(5.2, "n1");
  killed.duration_ms = 200;
  killed.by = dump.intern("bash (4242)");
  dump.ends(20);
  const Plan plan = plan_of(config, dump);
  const auto crash = std::find_if(plan.candidates.begin(), plan.candidates.end(),
                                  [](const Candidate& c) { return c.kind == FaultKind::crash; });
  REQUIRE(crash != plan.candidates.end());
  CHECK(crash->first_ts == at(5.0));
  CHECK(crash->why.find("sent by bash (4242)") != std::string::npos);
  std::vector<std::string> calls;
  for (const Candidate& c : plan.candidates)
    if (c.kind == FaultKind::syscall) calls.push_back(c.syscall + " " + c.error);
  CHECK(calls == std::vector<std::string>{"openat EMFILE"});
  CHECK(accounted(plan) == plan.failures);

  // A process that was asked to end and ends in an orderly way still writes to its disk, so failed calls are evidence.
  Dump asked;
  asked.scf(5.1, "n1", "futex", EPERM);
  asked.scf(5.2, "n1", "fsync", EIO, "/data/n1/wal");
  asked.exited(6, "n1", 143).duration_ms = 1000;
  asked.ends(20);
  calls.clear();
  for (const Candidate& c : plan_of(config, asked).candidates)
    if (c.kind == FaultKind::syscall) calls.push_back(c.syscall + " " + c.error);
  CHECK(calls == std::vector<std::string>{"fsync EIO"});
}

TEST_CASE("a main process that was asked to end was stopped from outside, whatever its status") {
  const auto config = deployment();
  // `by` asks n1 to end, and n1 ends in an orderly way with this status.
  const auto stopped = [&](std::string_view by, int status, std::uint8_t flags = trace::kMain) {
    Dump dump;
    dump.started(-1, "n1");
    trace::Event& end = dump.exited(6, "n1", status, flags);
    end.duration_ms = 300;
    if (!by.empty()) end.by = dump.intern(by);
    dump.started(7, "n1");
    dump.ends(20);
    return plan_of(config, dump);
  };
  for (const int status : {0, 1, 143}) {
    const Plan plan = stopped("systemd (1)", status);
    INFO("status " << status);
    REQUIRE(plan.candidates.size() == 1);
    const Candidate& c = plan.candidates[0];
    CHECK(c.kind == FaultKind::crash);
    CHECK(c.fault.signal == SIGTERM);
    CHECK(c.first_ts == at(5.7));  // when n1 was asked to end
    CHECK_FALSE(c.own_end);
    CHECK(c.why.find("sent by systemd (1)") != std::string::npos);
    CHECK(accounted(plan) == plan.failures);
  }
  for (const std::string_view by : {"", "kernel", "itself"}) {
    INFO("by " << by);
    CHECK(stopped(by, 0).candidates.empty());
  }
  CHECK(stopped("systemd (1)", 0, 0).candidates.empty());  // this process is a helper
}

TEST_CASE("kills of several processes of a node within a second are one crash") {
  Dump dump;
  dump.started(-1, "n1");
  dump.crashed(5.0, "n2");
  dump.crashed(5.2, "n2", SIGKILL, 0);
  dump.crashed(5.9, "n2", SIGKILL, 0);
  dump.started(6.5, "n2");
  dump.ends(20);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 1);
  const Candidate& c = plan.candidates[0];
  CHECK(c.kind == FaultKind::crash);
  CHECK(c.node == "n2");
  CHECK(c.count == 3);
  CHECK(c.rank == 1);
  CHECK(c.fault.signal == SIGKILL);
  CHECK(c.fault.scope == schedule::Scope::all);
  CHECK(c.first_ts == at(5));
  CHECK(plan.failures == 3);
  CHECK(accounted(plan) == plan.failures);
  REQUIRE(plan.schedules.size() == 1);
  REQUIRE(plan.schedules[0].faults.size() == 1);
  REQUIRE(plan.schedules[0].faults[0].when.size() == 1);
  CHECK(plan.schedules[0].faults[0].when[0].elapsed_ns == 5 * kSecond);
}

TEST_CASE("brackets and backslashes in globs are literal in the search, as in injected conditions") {
  Dump dump;
  dump.sys(1, "n1", "rename", "/srv/[1]/a\\b");
  const trace::Trace trace = dump.take();
  schedule::Condition condition;
  condition.kind = schedule::ConditionKind::syscall;
  condition.call.syscall = "rename";
  for (const auto& [glob, meant] : std::vector<std::pair<std::string, bool>>{{"*/[1]/a\\b", true},
                                                                             {"*/[1]/*", true},
                                                                             {"*/?1?/*", true},
                                                                             {"*/[0-9]/*", false},
                                                                             {"*/a\\*", true},
                                                                             {"*/1/*", false}}) {
    INFO(glob);
    condition.call.path = glob;
    CHECK(meets(trace, trace.events.at(0), condition) == meant);
  }
}

TEST_CASE("kills that are far apart are separate crashes, and SIGTERM is kept as the signal") {
  Dump dump;
  dump.crashed(2, "n1", SIGTERM);
  dump.started(3, "n1");
  dump.crashed(8.26, "n1");
  dump.ends(20);
  auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 2);
  CHECK(plan.candidates[0].fault.signal == SIGTERM);
  CHECK(plan.candidates[1].fault.signal == SIGKILL);
  const schedule::Schedule& both = plan.schedules.at(0);
  REQUIRE(both.faults.size() == 2);
  CHECK(both.faults[0].when.at(0).elapsed_ns == 2 * kSecond);
  CHECK(both.faults[1].after == std::vector<std::string>{both.faults[0].id});
  CHECK(both.faults[1].when.at(0).elapsed_ns == 6300 * kMillisecond);  // times are rounded to steps of 100 ms
}

TEST_CASE("planned stops, starts and exits with status 0 are not candidates") {
  Dump dump;
  dump.crashed(3, "n1", SIGKILL, trace::kMain | trace::kPlanned);
  dump.started(4, "n1");
  dump.exited(5, "n2", 0);
  dump.ends(20);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  CHECK(plan.candidates.empty());
  CHECK(plan.schedules.empty());
  CHECK(plan.failures == 2);
  CHECK(discarded(plan, "planned") == 1);
  CHECK(discarded(plan, "status 0") == 1);
  CHECK(plan.discarded_share == Approx(1.0));
}

TEST_CASE("the end of a helper process counts only if a signal from outside ended it") {
  Dump dump;
  dump.started(-1, "n1");
  dump.exited(2, "n1", 1, 0);
  dump.crashed(3, "n1", SIGPIPE, 0);
  dump.crashed(6, "n1", SIGKILL, 0);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 1);
  CHECK(plan.candidates[0].first_ts == at(6));
  CHECK(discarded(plan, "helper") == 2);
  CHECK(accounted(plan) == 3);
}

TEST_CASE("a helper's kill after which the main process exits is one candidate with the kill's signal") {
  Dump dump;
  dump.started(-1, "n1");
  dump.crashed(6, "n1", SIGKILL, 0);
  dump.exited(6.3, "n1", 1, trace::kMain);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 1);
  CHECK(plan.candidates[0].count == 2);
  CHECK(plan.candidates[0].fault.signal == SIGKILL);
  CHECK_FALSE(plan.candidates[0].symptom);
}

TEST_CASE("without a main-process flag every killed process counts, and exit status 137 is SIGKILL") {
  Dump dump;
  dump.crashed(3, "n1", SIGKILL, 0);
  dump.exited(9, "n2", 137, 0);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 2);
  CHECK(plan.candidates[0].node == "n1");
  CHECK(plan.candidates[1].node == "n2");
  CHECK(plan.candidates[1].fault.signal == SIGKILL);
}

TEST_CASE("a process that ends itself soon after a failed call is a symptom") {
  Dump dump;
  dump.scf(4.0, "n1", "openat", EIO, "/var/lib/kv/n1/snapshot.7");
  dump.crashed(4.5, "n1", SIGABRT);
  dump.ends(20);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 2);
  CHECK(plan.candidates[0].kind == FaultKind::syscall);
  CHECK(plan.candidates[0].path == "*/snapshot.*");
  CHECK(plan.candidates[0].error == "EIO");
  CHECK_FALSE(plan.candidates[0].symptom);
  CHECK(plan.candidates[1].kind == FaultKind::crash);
  CHECK(plan.candidates[1].symptom);
  CHECK(plan.candidates[1].why.find("openat") != std::string::npos);
  CHECK(plan.schedules.front().faults.at(0).kind == FaultKind::syscall);
}

TEST_CASE("a process that ends itself after another node's crash is a symptom") {
  Dump dump;
  dump.crashed(4, "n1");
  dump.crashed(6, "n2", SIGSEGV);
  dump.exited(7, "n3", 1);
  dump.started(7.5, "n3");
  dump.exited(8.8, "n3", 1);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 3);
  CHECK(plan.candidates[0].node == "n1");
  CHECK(plan.candidates[1].symptom);
  CHECK(plan.candidates[2].symptom);
  CHECK(plan.candidates[2].count == 2);  // the two equal exits of n3 are one candidate
  // Symptoms are also tested, but last.
  CHECK(plan.schedules.front().faults.size() == 1);
  CHECK(plan.schedules.front().faults.at(0).node == "n1");
  CHECK(plan.schedules.back().faults.at(0).node != "n1");
}

TEST_CASE("a process that ends itself for no visible reason ranks after kills") {
  Dump dump;
  dump.crashed(2, "n2", SIGSEGV);
  dump.crashed(9, "n1", SIGKILL);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 2);
  CHECK(plan.candidates[0].node == "n1");
  CHECK(plan.candidates[1].node == "n2");
  CHECK_FALSE(plan.candidates[1].symptom);
  CHECK(plan.candidates[1].fault.signal == SIGSEGV);
}

TEST_CASE("ends that are as frequent in the profile are benign, more frequent ones are not") {
  Dump clean;
  clean.crashed(3, "n1");
  Dump once;
  once.crashed(7, "n1");
  Dump twice;
  twice.crashed(3, "n1");
  twice.started(4, "n1");
  twice.crashed(9, "n1");
  const auto config = deployment();
  const Plan benign = plan_of(config, once, profile_of(clean, 3));
  CHECK(benign.candidates.empty());
  CHECK(discarded(benign, "benign") == 1);
  const Plan more = plan_of(config, twice, profile_of(clean, 3));
  CHECK(more.candidates.size() == 2);
}

TEST_CASE("a pause keeps its duration, and processes of a node paused together are one pause") {
  Dump dump;
  dump.paused(4.0, 10.0, "n1");
  dump.paused(4.9, 10.2, "n1", 0);
  dump.ends(30);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 1);
  CHECK(plan.candidates[0].kind == FaultKind::pause);
  CHECK(plan.candidates[0].count == 2);
  CHECK(plan.candidates[0].fault.duration_ns == 6200 * kMillisecond);
  CHECK(plan.candidates[0].first_ts == at(4));
}

TEST_CASE("a blocked process is a separate candidate that ranks after pauses") {
  Dump dump;
  auto& blocked = dump.paused(4.0, 10.0, "n1");
  blocked.flags |= trace::kBlocked;
  dump.paused(4.5, 9.0, "n1");
  dump.paused(20.0, 25.0, "n2");
  dump.ends(30);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 3);
  CHECK(plan.candidates[0].node == "n1");
  CHECK(plan.candidates[0].fault.duration_ns == 4500 * kMillisecond);
  CHECK(plan.candidates[1].node == "n2");
  CHECK(plan.candidates[2].node == "n1");
  CHECK(plan.candidates[2].kind == FaultKind::pause);
  CHECK(plan.candidates[2].fault.duration_ns == 6 * kSecond);
  CHECK(plan.candidates[2].why.find("uninterruptible") != std::string::npos);
}

TEST_CASE("a pause still open at the dump's end lasts to the end of the run, or as long as in the dump") {
  Dump dump;
  dump.paused(4.0, 9.0, "n1", trace::kMain | trace::kOpen);
  dump.ends(14);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  // the longest time that a workload of this deployment may take
  CHECK(plan.candidates.at(0).fault.duration_ns == 60 * kSecond);
  REQUIRE(plan.candidates[0].other_length);
  CHECK(plan.candidates[0].other_length->duration_ns == 10 * kSecond);
  REQUIRE(plan.schedules.size() >= 2);
  CHECK(plan.schedules[0].faults.at(0).duration_ns == 60 * kSecond);
  CHECK(plan.schedules[1].faults.at(0).duration_ns == 10 * kSecond);
  // A dump without the start of a workload is not the dump of a whole run, so the length of the run is unknown.
  dump.meta().workload_ts = 0;
  const Plan window = plan_of(config, dump);
  CHECK(window.schedules.at(0).faults.at(0).duration_ns == 10 * kSecond);
  CHECK(std::any_of(window.schedules.begin(), window.schedules.end(),
                    [](const schedule::Schedule& one) { return one.faults.at(0).duration_ns == 60 * kSecond; }));
}

TEST_CASE("silences that begin together are one partition of the node they share") {
  Dump dump;
  dump.cut(5, 17, 1, {2, 3});
  dump.ends(40);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 1);
  const Candidate& c = plan.candidates[0];
  CHECK(c.kind == FaultKind::partition);
  CHECK(c.node == "n1");
  CHECK(c.fault.peers.empty());  // without peers, the partition is from all other nodes
  CHECK(c.fault.direction == Direction::both);
  CHECK(c.count == 4);
  CHECK(c.fault.duration_ns >= 12 * kSecond);
  CHECK(c.fault.duration_ns <= 12200 * kMillisecond);
  CHECK(plan.schedules.at(0).faults.at(0).when.at(0).elapsed_ns == 5 * kSecond);
}

TEST_CASE("a partition from some peers names them, and has a wider partition as alternative") {
  Dump dump;
  dump.cut(5, 17, 2, {3, 4});
  dump.scf(1, "n1", "openat", ENOENT, "/x/y");
  dump.scf(1, "n5", "openat", ENOENT, "/x/y");
  const auto config = deployment(5);
  const Plan plan = plan_of(config, dump);
  const Candidate& c = plan.candidates.at(0);
  CHECK(c.node == "n2");
  CHECK(c.fault.peers == std::vector<std::string>{"n3", "n4"});
  REQUIRE_FALSE(c.alternatives.empty());
  CHECK(c.alternatives[0].peers.empty());
}

TEST_CASE("two groups cut off from each other give one partition per node of the smaller group") {
  Dump dump;
  dump.cut(5, 17, 1, {3, 4, 5});
  dump.cut(5.2, 17.1, 2, {3, 4, 5});
  const auto config = deployment(5);
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 2);
  for (const Candidate& c : plan.candidates) {
    CHECK((c.node == "n1" || c.node == "n2"));
    CHECK(c.fault.peers == std::vector<std::string>{"n3", "n4", "n5"});
  }
  const schedule::Schedule& first = plan.schedules.at(0);
  REQUIRE(first.faults.size() == 2);
  CHECK(first.faults[1].after.size() == 1);
  CHECK((first.faults[1].when.empty() || first.faults[1].when[0].elapsed_ns <= 200 * kMillisecond));
  CHECK(accounted(plan) == plan.failures);
}

TEST_CASE("a partition is one-way only if the other direction was traced and active") {
  Dump dump;
  dump.scf(1, "n2", "openat", ENOENT, "/x/y");  // shows that n2 and n3 were traced, too
  dump.scf(1, "n3", "openat", ENOENT, "/x/y");
  dump.silence(5, 17, "n1", "10.77.0.2", "10.77.0.1");
  dump.silence(5, 17, "n1", "10.77.0.3", "10.77.0.1");
  // The silence seen by n2 begins later, because n1 retransmits at growing intervals.
  dump.silence(10, 15.2, "n2", "10.77.0.1", "10.77.0.2");
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  const Candidate& c = plan.candidates.at(0);
  CHECK(c.node == "n1");
  CHECK(c.fault.direction == Direction::in);
  CHECK(c.fault.duration_ns == 12 * kSecond);
  CHECK(c.count == 3);
  REQUIRE(!c.alternatives.empty());
  CHECK(c.alternatives[0].direction == Direction::both);

  Dump blind;  // only n1 was traced
  blind.silence(5, 17, "n1", "10.77.0.2", "10.77.0.1");
  blind.silence(5, 17, "n1", "10.77.0.3", "10.77.0.1");
  const Plan both = plan_of(config, blind);
  CHECK(both.candidates.at(0).node == "n1");
  CHECK(both.candidates.at(0).fault.direction == Direction::both);
}

TEST_CASE("a partition is not one-way if only a client reports a silence, because its server would not notice one") {
  for (const std::uint16_t from_port : {std::uint16_t{7000}, std::uint16_t{40000}}) {
    INFO(from_port);
    Dump dump;
    dump.scf(1, "n2", "openat", ENOENT, "/x/y");  // shows that n2 was traced, too
    trace::Event& silence = dump.silence(5, 17, "n1", "10.77.0.2", "10.77.0.1");
    silence.sport = from_port;
    silence.dport = from_port == 7000 ? 0 : 7000;
    const auto config = deployment();
    const Plan plan = plan_of(config, dump);
    CHECK((plan.candidates.at(0).fault.direction == Direction::both) == (from_port == 7000));
  }
}

TEST_CASE("partitions at different times are different faults") {
  Dump dump;
  dump.cut(5, 15, 1, {2, 3});
  dump.cut(30, 42, 3, {1, 2});
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 2);
  CHECK(plan.candidates[0].node == "n1");
  CHECK(plan.candidates[1].node == "n3");
  CHECK(plan.schedules.at(0).faults.at(1).when.at(0).elapsed_ns == 25 * kSecond);
}

TEST_CASE("a silence still open at the dump's end lasts to the end of the run, or as long as in the dump") {
  Dump dump;
  dump.silence(5, 11, "n1", "10.77.0.2", "10.77.0.1").flags |= trace::kOpen;
  dump.silence(5, 11, "n1", "10.77.0.3", "10.77.0.1").flags |= trace::kOpen;
  dump.ends(25);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  CHECK(plan.candidates.at(0).fault.duration_ns == 0);
  CHECK(plan.candidates[0].why.find("still so when the dump was written") != std::string::npos);
  REQUIRE(plan.schedules.size() >= 2);
  CHECK(plan.schedules[0].faults.at(0).duration_ns == 0);
  CHECK(plan.schedules[1].faults.at(0).duration_ns == 20 * kSecond);
}

TEST_CASE("silences with clients and silences as long as in the profile are discarded and counted") {
  Dump clean;
  clean.silence(3, 12, "n2", "10.77.0.1", "10.77.0.2");
  Dump dump;
  dump.silence(5, 13.5, "n2", "10.77.0.1", "10.77.0.2");
  dump.silence(5, 20, "n2", "10.77.0.254", "10.77.0.2");
  dump.silence(5, 20, "n2", "10.77.0.3", "10.77.0.2");
  const auto config = deployment();
  const Plan plan = plan_of(config, dump, profile_of(clean));
  REQUIRE(plan.candidates.size() == 1);
  CHECK(plan.candidates[0].count == 1);
  CHECK(discarded(plan, "benign") == 1);
  CHECK(
      discarded(
          plan,
          "not a node of the deployment: only nodes can be cut off from each other, so if a client has to be cut off, "
          "make the client a node") == 1);
  CHECK(accounted(plan) == 3);
}

TEST_CASE("silences of one service do not make those of another service between the same nodes benign") {
  Dump clean;
  clean.silence(3, 18, "n2", "10.77.0.1", "10.77.0.2").dport = 3888;
  Dump dump;
  dump.silence(5, 13.5, "n2", "10.77.0.1", "10.77.0.2").dport = 3888;
  dump.silence(5, 13.5, "n2", "10.77.0.1", "10.77.0.2").dport = 2888;
  const auto config = deployment();
  const Plan plan = plan_of(config, dump, profile_of(clean));
  REQUIRE(plan.candidates.size() == 1);
  CHECK(plan.candidates[0].kind == FaultKind::partition);
  CHECK(discarded(plan, "benign") == 1);
  // In an old profile, silences have no port. Such a silence makes silences on all ports benign.
  auto old = profile_of(clean);
  old.silences.at(0).port = 0;
  CHECK(plan_of(config, dump, old).candidates.empty());
}

TEST_CASE("if all nodes listen on one port, profiled silences of requests do not make those of responses benign") {
  Dump clean;
  clean.silence(3, 18, "n2", "10.77.0.1", "10.77.0.2").dport = 9093;  // n1 rarely sends requests to n2
  Dump dump;
  dump.silence(5, 13.5, "n2", "10.77.0.1", "10.77.0.2").dport = 9093;
  dump.silence(5, 13.5, "n2", "10.77.0.1", "10.77.0.2").sport = 9093;
  const auto config = deployment();
  const Plan plan = plan_of(config, dump, profile_of(clean));
  REQUIRE(plan.candidates.size() == 1);
  CHECK(plan.candidates[0].kind == FaultKind::partition);
  CHECK(discarded(plan, "benign") == 1);
  // A profile that does not record which of the two ends is the server makes silences in both directions benign.
  auto old = profile_of(clean);
  old.silences.at(0).answers.reset();
  CHECK(plan_of(config, dump, old).candidates.empty());
}

TEST_CASE("a silence that lasted to the end of a fault-free run is tried last, whatever its length in the dump") {
  Dump clean;
  clean.silence(3, 12, "n2", "10.77.0.1", "10.77.0.2").flags |= trace::kOpen;
  clean.ends(12);
  Dump dump;  // the dump's run lasted longer than that of the profile
  dump.silence(3, 24, "n2", "10.77.0.1", "10.77.0.2").flags |= trace::kOpen;
  dump.scf(20, "n3", "openat", EACCES, "/data/n3/snapshot.0");
  dump.ends(24);
  const auto config = deployment();
  SECTION("the silence in the profile was open when the run ended") {
    const Plan plan = plan_of(config, dump, profile_of(clean));
    REQUIRE(plan.candidates.size() == 2);
    CHECK(plan.candidates[0].syscall == "openat");
    CHECK(plan.candidates[1].kind == FaultKind::partition);
    CHECK(plan.candidates[1].symptom);
  }
  SECTION("the silence in the profile ended before the run did") {
    Dump ended;
    ended.silence(3, 10, "n2", "10.77.0.1", "10.77.0.2");
    ended.ends(12);
    const Plan plan = plan_of(config, dump, profile_of(ended));
    REQUIRE(plan.candidates.size() == 2);
    CHECK(plan.candidates[0].kind == FaultKind::partition);
  }
}

TEST_CASE("a silence that a crash or pause explains is a symptom; one that began before it is not") {
  Dump dump;
  dump.crashed(10, "n1");
  dump.silence(9.6, 25, "n2", "10.77.0.1", "10.77.0.2");
  dump.silence(2, 8, "n3", "10.77.0.2", "10.77.0.3");
  dump.paused(40, 50, "n3");
  dump.silence(39.5, 50.2, "n2", "10.77.0.3", "10.77.0.2");
  dump.started(26, "n1");
  dump.ends(60);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 5);
  CHECK(plan.candidates[0].kind == FaultKind::crash);
  CHECK(plan.candidates[1].kind == FaultKind::pause);
  CHECK(plan.candidates[2].kind == FaultKind::partition);
  CHECK_FALSE(plan.candidates[2].symptom);
  CHECK(plan.candidates[2].first_ts == at(2));
  CHECK(plan.candidates[3].symptom);
  CHECK(plan.candidates[4].symptom);
  // The first schedule contains all faults, in the order of their times.
  const schedule::Schedule& first = plan.schedules.at(0);
  REQUIRE(first.faults.size() == 3);
  CHECK(first.faults[0].kind == FaultKind::partition);
  CHECK(first.faults[1].kind == FaultKind::crash);
  CHECK(first.faults[2].kind == FaultKind::pause);
}

TEST_CASE("a partition that begins well before a crash is a separate fault") {
  Dump dump;
  dump.cut(5, 25, 1, {2, 3});
  dump.crashed(9, "n1");
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 2);
  CHECK_FALSE(plan.candidates[0].symptom);
  CHECK_FALSE(plan.candidates[1].symptom);
  CHECK(plan.schedules.at(0).faults.at(0).kind == FaultKind::partition);
  CHECK(plan.schedules.at(0).faults.at(1).kind == FaultKind::crash);
}

TEST_CASE("an abort that coincides with the beginning of a silence explains it") {
  Dump dump;
  dump.scf(5, "n1", "fsync", EIO, "/data/wal.log");
  dump.crashed(5.5, "n1", SIGABRT);
  dump.cut(5.1, 30, 1, {2, 3});
  dump.ends(30);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 3);
  CHECK(plan.candidates[0].syscall == "fsync");
  CHECK(plan.candidates[1].symptom);
  CHECK(plan.candidates[2].symptom);
}

// On real hosts, helper processes end all the time: cron jobs, health checks, workers.
TEST_CASE("the end of a helper does not explain a later silence, but may explain one that begins with it") {
  const auto plan = [](double from) {
    Dump dump;
    dump.started(0.1, "n1");
    dump.crashed(10, "n1", SIGSEGV, 0);
    for (int i = 0; i < 4; ++i) dump.scf(11 + i, "n1", "openat", ENOENT, fmt::format("/etc/option-{}", i));
    dump.cut(from, 30, 1, {2, 3});
    dump.ends(31);
    return plan_of(deployment(), dump);
  };
  const auto cut = [](const Plan& made) {
    return *std::find_if(made.candidates.begin(), made.candidates.end(),
                         [](const Candidate& c) { return c.kind == FaultKind::partition; });
  };
  const Plan apart = plan(15), together = plan(10.1);
  CHECK_FALSE(cut(apart).symptom);
  CHECK_FALSE(cut(apart).perhaps_symptom);
  CHECK_FALSE(cut(together).symptom);
  CHECK(cut(together).perhaps_symptom);
  INFO(cut(together).why);
  CHECK(cut(together).why.find("the end of a process of n1 (") != std::string::npos);
  CHECK(cut(together).why.find(") may explain it") != std::string::npos);
  CHECK(cut(together).weight < cut(apart).weight);
  for (const Plan& made : {apart, together})
    for (const Candidate& c : made.candidates) {
      if (c.kind == FaultKind::syscall) CHECK(c.weight < cut(made).weight);
      if (c.kind == FaultKind::crash) CHECK(c.fault.scope == schedule::Scope::others);
    }
}

TEST_CASE("a node of which no main process is known, and which communicates after an end, has not ended") {
  Dump dump;
  dump.crashed(5, "n1", SIGKILL, 0);
  dump.cut(20, 30, 1, {2, 3});
  dump.ends(40);
  const Plan plan = plan_of(deployment(), dump);
  for (const Candidate& c : plan.candidates) CHECK_FALSE(c.symptom);
}

TEST_CASE("silences that a planned stop explains are discarded") {
  Dump dump;
  dump.crashed(5, "n1", SIGTERM, trace::kMain | trace::kPlanned);
  dump.cut(4.8, 15, 1, {2, 3});
  dump.scf(6, "n2", "connect", ECONNREFUSED, {}, "10.77.0.1:7000");
  dump.started(15, "n1");
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  CHECK(plan.candidates.empty());
  CHECK(discarded(plan, "planned stop") == 5);
  CHECK(accounted(plan) == plan.failures);
}

TEST_CASE("nodes with one address are distinguished by their service ports, otherwise not at all") {
  auto config = deployment();
  config.deployment.network = config::Network::host;
  for (std::size_t i = 0; i < config.nodes.size(); ++i) {
    config.nodes[i].ip = "127.0.0.1";
    config.nodes[i].ready = config::Ready{};
    config.nodes[i].ready->tcp = static_cast<std::uint16_t>(7001 + i);
  }
  Dump dump;
  for (const int sender : {2, 3}) {
    trace::Event& e = dump.silence(5, 15, "n1", "127.0.0.1", "127.0.0.1");
    e.sport = static_cast<std::uint16_t>(7000 + sender);
    e.dport = 40000;
  }
  dump.silence(5, 15, "n1", "127.0.0.1", "127.0.0.1");  // this silence contains no ports
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 1);
  CHECK(plan.candidates[0].node == "n1");
  CHECK(plan.candidates[0].fault.ports == std::vector<std::uint16_t>{7002, 7003});
  CHECK(discarded(plan, "share one address") == 1);

  Dump served;  // the service of n1 received nothing; the sender is unknown
  trace::Event& e = served.silence(5, 15, "n1", "127.0.0.1", "127.0.0.1");
  e.sport = 40000;
  e.dport = 7001;
  const Plan ports = plan_of(config, served);
  REQUIRE(ports.candidates.size() == 1);
  CHECK(ports.candidates[0].fault.ports == std::vector<std::uint16_t>{7001});
  CHECK(ports.candidates[0].fault.peers.empty());
}

TEST_CASE("equal failures are one candidate, and failures that the profile contains are benign") {
  Dump clean;
  for (int i = 0; i < 4; ++i) clean.scf(0.5 * i, "n1", "mkdir", EEXIST, "/tmp/rose-1/n1/data");
  Dump dump;
  for (int i = 0; i < 5; ++i) dump.scf(0.5 * i, "n2", "mkdir", EEXIST, "/tmp/rose-77/n2/data");
  for (int i = 0; i < 7; ++i) dump.scf(3 + i, "n2", "read", EIO, fmt::format("/tmp/rose-77/n2/snapshot.{}", i));
  dump.ends(20);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump, profile_of(clean));
  REQUIRE(plan.candidates.size() == 1);
  CHECK(plan.candidates[0].count == 7);
  CHECK(plan.candidates[0].syscall == "read");
  CHECK(discarded(plan, "benign") == 5);
  CHECK(plan.failures == 12);
  CHECK(plan.discarded_share == Approx(5.0 / 12));
}

TEST_CASE("failures far more frequent than in the profile are a candidate that ranks after unprofiled ones") {
  Dump clean;
  for (int i = 0; i < 2; ++i) clean.scf(i, "n1", "openat", ENOENT, "/srv/n1/current");
  Dump dump;
  for (int i = 0; i < 500; ++i) dump.scf(0.01 * i, "n1", "openat", ENOENT, "/srv/n1/current");
  dump.scf(8, "n1", "rename", EXDEV, "/srv/n1/epoch");
  const auto config = deployment();
  const Plan plan = plan_of(config, dump, profile_of(clean));
  REQUIRE(plan.candidates.size() == 2);
  CHECK(plan.candidates[0].syscall == "rename");
  CHECK(plan.candidates[1].profiled);
  CHECK(plan.candidates[1].count == 500);
}

TEST_CASE("one more missing file of a kind that fault-free runs also miss ranks as ordinary") {
  Dump clean, dump;
  for (int i = 0; i < 25; ++i)
    clean.scf(1 + i * 0.01, "n1", "newfstatat", ENOENT,
              fmt::format("/srv/lib/org/{}/Some.class", std::string(static_cast<std::size_t>(i + 1), 'x')));
  dump.scf(5, "n1", "newfstatat", ENOENT, "/srv/lib/org/retry/Backoff.class");
  dump.scf(6, "n1", "newfstatat", ENOENT, "/srv/data/CURRENT");
  dump.ends(30);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump, profile_of(clean));
  REQUIRE(plan.candidates.size() == 2);
  CHECK(plan.candidates[0].path.find("CURRENT") != std::string::npos);
  CHECK(plan.candidates[1].ordinariness == 3);
  CHECK(plan.candidates[1].weight < plan.candidates[0].weight / 3);
}

TEST_CASE("a failed lookup in a search path is ordinary; a failed lookup of the application's own file is not") {
  const auto ordinariness = [](const std::vector<std::string>& folders) {
    Dump dump;
    for (std::size_t i = 0; i < folders.size(); ++i)
      dump.scf(1 + 0.001 * static_cast<double>(i), "n1", "newfstatat", EACCES, folders[i] + "/mkdir");
    dump.scf(5, "n1", "openat", EACCES, "/srv/n1/edits");
    const auto config = deployment();
    const Plan plan = plan_of(config, dump);
    std::set<int> out;
    for (const Candidate& c : plan.candidates)
      if (c.syscall == "newfstatat") out.insert(c.ordinariness);
    CHECK(plan.candidates.at(0).syscall == (out.contains(0) ? "newfstatat" : "openat"));
    return out;
  };
  CHECK(ordinariness({"/opt/go/bin", "/home/user/bin", "/opt/tools/bin", "/usr/local/sbin"}) == std::set<int>{3});
  CHECK(ordinariness({"/data1", "/data2", "/data3", "/data4"}) == std::set<int>{0});
  CHECK(ordinariness({"/opt/go/bin", "/opt/go/bin", "/opt/go/bin", "/usr/local/sbin"}) ==
        // a program that looks for a file in the same folder several times is not searching a list of folders
        std::set<int>{0, 3});
}

TEST_CASE("without a profile everyday errors rank last but are kept") {
  Dump dump;
  dump.scf(0.1, "n1", "openat", ENOENT, "/usr/lib/locale/C.utf8/LC_TIME");
  dump.scf(0.2, "n1", "ioctl", ENOTTY);
  dump.scf(0.3, "n1", "recvfrom", EAGAIN);
  dump.scf(0.4, "n1", "wait4", ECHILD);
  dump.scf(0.45, "n1", "epoll_ctl", EPERM, "/data/n1/wal.3");
  dump.scf(0.5, "n1", "openat", ENOENT, "/data/n1/checkpoint");
  dump.scf(5.0, "n1", "accept4", ECONNABORTED);
  dump.scf(6.0, "n1", "write", ENOSPC, "/data/n1/wal.3");
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 8);
  CHECK(plan.candidates[0].error == "ENOSPC");
  CHECK(plan.candidates[1].error == "ECONNABORTED");
  CHECK(plan.candidates[2].path == "*/checkpoint");
  for (std::size_t i = 3; i < 8; ++i) CHECK(plan.candidates[i].ordinariness == 3);
}

TEST_CASE("a crash does not explain a silence of a busy pair that began 1.5 s before it") {
  Dump dump;
  dump.meta().begin_ns = kBase;
  // n1 and n3 were partitioned at 4 s. The kill of n1, 1.5 s later, does not explain the silence, because packets
  // between the two nodes are usually 40 ms apart.
  dump.silence(4, 8, "n1", "10.77.0.3", "10.77.0.1");
  dump.silence(4, 8, "n3", "10.77.0.1", "10.77.0.3");
  dump.crashed(5.5, "n1");
  dump.scf(4.5, "n3", "sendto", EINVAL, {}, "10.77.0.1:7100");  // this error occurs with a blackhole route
  dump.started(6, "n1");
  const auto config = deployment();
  Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 3);
  CHECK(plan.candidates[0].kind == FaultKind::crash);
  CHECK(plan.candidates[1].kind == FaultKind::partition);
  CHECK_FALSE(plan.candidates[1].symptom);
  CHECK(plan.candidates[2].symptom);
  // Only n1 and n3 communicate, so each of them may have been partitioned from all other nodes.
  const auto wide = [&](std::string_view node) {
    return std::any_of(plan.schedules.begin(), plan.schedules.end(), [&](const schedule::Schedule& s) {
      return s.faults.size() == 2 && s.faults[0].kind == FaultKind::partition && s.faults[0].node == node &&
             s.faults[0].peers.empty() && s.faults[1].kind == FaultKind::crash;
    });
  };
  CHECK(wide("n1"));
  CHECK(wide("n3"));
}

TEST_CASE("a failed accept is matched by its local address, because it has no peer yet") {
  Dump dump;
  // the event contains the address on which the node listens
  dump.scf(5, "n1", "accept4", EMFILE, {}, "10.77.0.1:7000");
  dump.scf(6, "n1", "connect", EMFILE, {}, "10.77.0.2:7000");
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 2);
  CHECK(plan.candidates[0].fault.call.local == ":7000");
  CHECK_FALSE(plan.candidates[0].fault.call.peer);
  CHECK(plan.candidates[1].fault.call.peer == "10.77.0.2:7000");
  CHECK_FALSE(plan.candidates[1].fault.call.local);
}

TEST_CASE("a dump that covers a run from its start gives the occurrence number of the failed call") {
  const bool of_a_run = GENERATE(true, false);
  Dump dump(of_a_run);
  dump.started(-2, "n1");
  for (int i = 0; i < 3; ++i) dump.sys(i, "n1", "rename", "/data/n1/epoch.tmp");
  dump.sys(1, "n2", "rename", "/data/n2/epoch.tmp");
  dump.sys(2, "n1", "rename", "/data/n1/vote.tmp");
  dump.scf(5, "n1", "rename", EIO, "/data/n1/epoch.tmp");
  dump.sys(6, "n1", "rename", "/data/n1/epoch.tmp");
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 1);
  // The occurrence number is used only if the dump is that of a run: in production, the number of calls is another one.
  CHECK(plan.candidates[0].fault.call.path);
  CHECK(plan.candidates[0].fault.count == (of_a_run ? 4 : 1));
  if (of_a_run) CHECK(plan.candidates[0].fault.when.empty());
}

TEST_CASE("connection errors that the peer's crash explains are symptoms") {
  Dump dump;
  dump.crashed(10, "n1");
  dump.scf(2, "n2", "connect", ECONNREFUSED, {}, "10.77.0.3:7000");  // at this time, no node had ended yet
  dump.scf(10.5, "n2", "connect", ECONNREFUSED, {}, "10.77.0.1:7000");
  dump.scf(11, "n3", "write", EPIPE);                                 // its peer cannot be determined, so it may be n1
  dump.scf(12, "n2", "connect", ECONNREFUSED, {}, "10.77.0.3:7000");  // n3 was running
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 4);
  CHECK(plan.candidates[0].kind == FaultKind::crash);
  CHECK(plan.candidates[1].peer == "10.77.0.3:7000");
  CHECK(plan.candidates[1].count == 2);
  CHECK_FALSE(plan.candidates[1].symptom);
  CHECK(plan.candidates[2].symptom);
  CHECK(plan.candidates[2].peer == "10.77.0.1:7000");
  CHECK(plan.candidates[3].symptom);
  CHECK(plan.candidates[3].error == "EPIPE");
}

TEST_CASE("a partition explains connection errors across it on both nodes, and no others") {
  Dump dump;
  dump.cut(5, 15, 1, {2});
  dump.scf(1, "n3", "openat", ENOENT, "/x/y");
  dump.scf(9, "n1", "connect", ETIMEDOUT, {}, "10.77.0.2:7000");
  dump.scf(9, "n1", "connect", EINVAL, {}, "10.77.0.2:7001");  // the first attempt to connect this socket had failed
  dump.scf(9, "n1", "connect", EMFILE, {}, "10.77.0.2:7002");  // this error is not caused by a partition
  dump.scf(9, "n2", "recvfrom", ECONNRESET, {}, "10.77.0.1:41234");
  dump.scf(9, "n3", "connect", ETIMEDOUT, {}, "10.77.0.1:7000");
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  int symptoms = 0;
  for (const Candidate& c : plan.candidates) {
    if (c.kind != FaultKind::syscall || c.error == "ENOENT") continue;
    CHECK(c.symptom == (c.node != "n3" && c.error != "EMFILE"));
    symptoms += c.symptom ? 1 : 0;
  }
  CHECK(symptoms == 3);
}

TEST_CASE("a peer pattern keeps a server's port and drops an ephemeral port") {
  Dump dump;
  dump.scf(1, "n1", "connect", ECONNREFUSED, {}, "10.77.0.2:2888");
  dump.scf(2, "n1", "recvfrom", ECONNRESET, {}, "10.77.0.2:51234");
  dump.scf(3, "n1", "recvfrom", ECONNRESET, {}, "10.77.0.2:51777");
  dump.scf(4, "n1", "connect", ETIMEDOUT, {}, "192.0.2.9:5432");
  dump.scf(5, "n1", "connect", ENETUNREACH, {}, "[2001:db8::7]:5432");
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 4);
  CHECK(plan.candidates[0].fault.call.peer == "10.77.0.2:2888");
  CHECK(plan.candidates[1].fault.call.peer == "10.77.0.2:*");
  CHECK(plan.candidates[1].count == 2);
  CHECK(plan.candidates[2].fault.call.peer == "*:5432");
  CHECK(plan.candidates[3].fault.call.peer == "*:5432");
}

TEST_CASE("a kill of a worker whose main process survives is injected with scope 'others'") {
  Dump dump;
  dump.started(0, "n1").flags = trace::kMain;
  dump.crashed(10, "n1", SIGKILL, 0);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 1);
  CHECK(plan.candidates[0].fault.scope == schedule::Scope::others);
  REQUIRE(plan.schedules.size() == 1);
  CHECK(plan.schedules[0].faults[0].scope == schedule::Scope::others);
  // Later failures of the node's other processes are not part of the worker's end.
  Dump further = dump;
  further.scf(10.5, "n1", "openat", EACCES, "/data/n1/lock");
  CHECK(discarded(plan_of(config, further), "own end") == 0);
  CHECK(plan_of(config, further).candidates.size() == 2);
  // If both processes ended at the same time, the node was killed.
  dump.crashed(10.1, "n1");
  CHECK(plan_of(config, dump).candidates.at(0).fault.scope == schedule::Scope::all);
}

TEST_CASE("failures of a node right after its own kill are discarded as part of its end") {
  Dump dump;
  dump.crashed(10, "n1");
  dump.scf(10.5, "n1", "write", EBADF);
  dump.scf(13, "n1", "openat", EACCES, "/data/n1/lock");
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  CHECK(discarded(plan, "own end") == 1);
  REQUIRE(plan.candidates.size() == 2);
  CHECK(plan.candidates[1].syscall == "openat");
}

TEST_CASE("the last failure before a node ends itself ranks before earlier ones") {
  Dump dump;
  dump.started(0, "n1").flags = trace::kMain;
  dump.scf(4, "n1", "openat", EACCES, "/data/n1/journal");
  dump.scf(9.9997, "n1", "access", EACCES, "/data/n1/zones");
  dump.exited(10, "n1", 1);
  dump.ends(20);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 3);
  CHECK(plan.candidates[0].syscall == "access");
  CHECK(plan.candidates[0].why.find("n1 ended itself right after it") != std::string::npos);
  CHECK(plan.candidates[0].weight > plan.candidates[1].weight);
  CHECK(plan.candidates[2].own_end);
  CHECK(plan.candidates[2].why.find("it follows access(") != std::string::npos);
}

TEST_CASE("a connection that was already idle does not move the beginning of a partition") {
  Dump dump;
  dump.cut(10, 18, 1, {2, 3});
  dump.silence(2, 18, "n3", "10.77.0.1", "10.77.0.3").packets = 6;
  dump.ends(30);
  const Plan plan = plan_of(deployment(), dump);
  REQUIRE(plan.candidates.size() == 1);
  CHECK(plan.candidates[0].first_ts == at(10));
  CHECK(plan.candidates[0].fault.peers.empty());
  CHECK(plan.candidates[0].fault.duration_ns <= 9 * kSecond);
}

TEST_CASE("a pause that ended with its process gets another length; a helper's pause may be a partition") {
  const auto config = deployment();
  Dump dump;
  dump.started(0, "n1").flags = trace::kMain;
  trace::Event& paused = dump.paused(5.5, 12, "n1", 0);
  paused.signal = SIGSTOP;
  paused.pid = 77;
  dump.ends(40);
  const auto pause = [&](const Dump& of) {
    for (const Candidate& c : plan_of(config, of).candidates)
      if (c.kind == FaultKind::pause) return c;
    return Candidate{};
  };
  CHECK(pause(dump).why.find("a process of n1 was paused for 6.5s") == 0);
  CHECK_FALSE(pause(dump).other_length);
  REQUIRE(pause(dump).alternatives.size() == 1);
  CHECK(pause(dump).alternatives[0].kind == FaultKind::partition);
  dump.crashed(12, "n1", SIGKILL, trace::kPlanned).pid = 77;
  CHECK(pause(dump).other_length);
}

TEST_CASE("an exiting process does not discard failures of the node's surviving processes") {
  // Tracing began when the process was running already, so no event shows which process is the main one.
  Dump dump;
  const auto other = [&](trace::Event& event) { event.pid = event.tid = 7; };
  other(dump.scf(2, "n1", "fsync", EIO, "/data/n1/early"));
  dump.exited(10, "n1", 1, 0);
  other(dump.scf(10.5, "n1", "pwrite64", ENOSPC, "/data/n1/base"));
  const auto config = deployment();
  SECTION("the other process is seen again later") {
    other(dump.scf(20, "n1", "fsync", EIO, "/data/n1/early"));
    dump.ends(30);
    const Plan plan = plan_of(config, dump);
    CHECK(discarded(plan, "own end") == 0);
    REQUIRE(plan.candidates.size() == 3);
    CHECK(
        std::any_of(plan.candidates.begin(), plan.candidates.end(), [](const auto& c) { return c.error == "ENOSPC"; }));
    CHECK(std::any_of(plan.candidates.begin(), plan.candidates.end(),
                      [](const auto& c) { return c.why.find("a process of n1 ended itself with status 1") == 0; }));
  }
  SECTION("no earlier process is seen again") {
    dump.scf(20, "n1", "fsync", EIO, "/data/n1/early").pid = 8;
    dump.ends(30);
    const Plan plan = plan_of(config, dump);
    CHECK(discarded(plan, "own end") == 1);
    CHECK(std::any_of(plan.candidates.begin(), plan.candidates.end(),
                      [](const auto& c) { return c.why.find("n1 ended itself with status 1") == 0; }));
  }
}

TEST_CASE("a disk error that recurs during recovery is one candidate with two occurrences") {
  // The disk of a PostgreSQL server is full: a session panics, then the recovery has no space, either, and the server
  // ends.
  Dump dump;
  dump.started(-1, "n1");
  dump.scf(5.0, "n1", "pwritev", ENOSPC, "/data/n1/wal/xlogtemp.61").pid = 61;
  dump.crashed(5.001, "n1", SIGABRT, 0).pid = 61;
  dump.scf(5.1, "n1", "close", EBADF).pid = 62;
  dump.scf(5.18, "n1", "pwritev", ENOSPC, "/data/n1/wal/xlogtemp.63").pid = 63;
  dump.exited(5.19, "n1", 1);
  dump.scf(5.2, "n1", "unlink", EIO, "/data/n1/wal/late").pid = 64;
  dump.ends(30);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  CHECK(plan.candidates.at(0).error == "ENOSPC");
  CHECK(plan.candidates.at(0).count == 2);
  CHECK(plan.candidates.at(0).fault.times == 2);
}

TEST_CASE("a disk error right before a kill ranks first and the kill second") {
  Dump clean;
  clean.scf(1, "n1", "mkdir", EEXIST, "/data/n1");
  Dump dump;
  dump.scf(8, "n1", "write", ENOSPC, "/data/n1/wal");
  dump.scf(8.1, "n1", "fsync", ENOSPC, "/data/n1/wal");
  dump.crashed(12, "n1", SIGTERM);
  dump.ends(20);
  const auto config = deployment();
  const Plan plan = plan_of(config, dump, profile_of(clean));
  REQUIRE(plan.candidates.size() == 3);
  CHECK(plan.candidates[0].syscall == "write");
  CHECK(plan.candidates[1].kind == FaultKind::crash);
  // Failures that occur together are first injected together, from the time of the first one on.
  CHECK(plan.schedules.at(0).faults.size() == 2);
  CHECK(plan.schedules.at(0).faults.at(0).when.at(0).elapsed_ns == 8 * kSecond);
  CHECK(plan.schedules.at(0).faults.at(1).when.at(0).elapsed_ns == 8 * kSecond);
}

TEST_CASE("the shape of a failed call follows from how it failed in the dump") {
  const auto config = deployment();
  SECTION("a single failure is injected once") {
    Dump dump;
    dump.scf(0.2, "n1", "openat", EIO, "/data/n1/snapshot.4");
    dump.ends(20);
    const Candidate c = plan_of(config, dump).candidates.at(0);
    CHECK(c.fault.times == 1);
    CHECK(c.fault.when.empty());
    CHECK(c.alternatives.empty());
  }
  SECTION("calls that fail until the end are failed from then on") {
    Dump dump;
    for (int i = 0; i < 30; ++i) dump.scf(5 + 0.5 * i, "n1", "write", ENOSPC, "/data/n1/wal");
    dump.ends(20);
    const Candidate c = plan_of(config, dump).candidates.at(0);
    CHECK(c.fault.times == -1);
    REQUIRE(c.fault.when.size() == 1);  // there are many writes, so the fault must not be injected at the first one
    CHECK(c.fault.when[0].elapsed_ns == 4 * kSecond);  // slightly earlier than the failure
    REQUIRE(c.alternatives.size() == 3);
    CHECK(c.alternatives[0].times == -1);
    CHECK(c.alternatives[0].when.empty());
    CHECK(c.alternatives[1].times == 1);
    CHECK(c.alternatives[1].when.size() == 1);
    CHECK(c.alternatives[2].times == 1);
  }
  SECTION("a write to a file created during the workload is failed at its first occurrence") {
    Dump dump;
    dump.sys(4.9, "n1", "openat", "/data/n1/snapshot-200.tmp");
    dump.scf(5, "n1", "write", ENOSPC, "/data/n1/snapshot-200.tmp");
    dump.ends(20);
    const Candidate c = plan_of(config, dump).candidates.at(0);
    CHECK(c.fault.when.empty());
    CHECK(c.fault.count == 1);
  }
  SECTION("a write to a file that existed before the workload is failed from the time of the failure on") {
    Dump dump;
    dump.sys(-2, "n1", "openat", "/data/n1/log");
    dump.scf(5, "n1", "write", ENOSPC, "/data/n1/log");
    dump.ends(20);
    CHECK(plan_of(config, dump).candidates.at(0).fault.when.size() == 1);
  }
  SECTION("failures that stop are injected as often as they were seen") {
    Dump dump;
    for (int i = 0; i < 6; ++i) dump.scf(5 + 0.1 * i, "n1", "openat", EMFILE, "/data/n1/sst.7");
    dump.ends(60);
    const Candidate c = plan_of(config, dump).candidates.at(0);
    CHECK(c.fault.times == 6);
    CHECK(c.fault.when.empty());  // such opens are rare, so the fault may be injected at the first one
  }
  SECTION("a later success ends the failures") {
    Dump dump;
    for (int i = 0; i < 6; ++i) dump.scf(15 + 0.5 * i, "n1", "mkdir", ENOSPC, "/data/n1/chunk");
    dump.sys(19, "n1", "mkdir", "/data/n1/chunk");
    dump.ends(20);
    CHECK(plan_of(config, dump).candidates.at(0).fault.times == 6);
  }
  SECTION("an unlinked file has no path") {
    Dump dump;
    dump.scf(3, "n1", "write", ENOSPC, "/tmp/#1234 (deleted)").flags |= trace::kUnlinked;
    const Candidate c = plan_of(config, dump).candidates.at(0);
    CHECK_FALSE(c.fault.call.path.has_value());
  }
  SECTION("pipes and sockets have no path") {
    Dump dump;
    dump.scf(3, "n1", "write", EIO, "pipe:[1234]");
    CHECK_FALSE(plan_of(config, dump).candidates.at(0).fault.call.path.has_value());
  }
}

TEST_CASE("paths become patterns that match in the test deployment's folders") {
  const auto config = deployment();
  const auto glob = [&](std::string_view path) {
    Dump dump;
    dump.scf(3, "n1", "openat", EIO, path);
    return plan_of(config, dump).candidates.at(0).path;
  };
  CHECK(glob("/var/lib/zookeeper/version-2/snapshot.1a2b3c") == "*/snapshot.*");
  CHECK(glob("/runs/r-17/n1/wal.log") == "*/wal.log");
  CHECK(glob("/runs/r-17/n1/topics/index") == "*/topics/index");
  CHECK(glob("snapshot.7") == "*/snapshot.*");
  CHECK(glob("/etc/hosts") == "/etc/hosts");
  CHECK(glob("/data/segments/00042") == "*/segments/*");
}

TEST_CASE("a dump with only the fields of the contract can be planned") {
  const std::string text =
      R"({"meta":{"version":1,"node":"n1","window":1000000,"lost":0}}
{"ts":1763755200100000000,"node":"n1","type":"scf","pid":41,"tid":44,"syscall":"openat","errno":"ENOENT","fd":null,"path":"/etc/ld.so.preload","peer":null}
{"ts":1763755203000000000,"node":"n2","type":"scf","pid":51,"tid":51,"syscall":"read","errno":"EIO","fd":7,"path":"/var/lib/x/snapshot.0","peer":null}
{"ts":1763755203200000000,"node":"n2","type":"ps","pid":51,"state":"exited","signal":null,"exit_code":1,"duration_ms":null,"planned":false}
{"ts":1763755204000000000,"node":"n1","type":"sys","pid":41,"tid":44,"syscall":"rename","result":0,"fd":null,"path":"/var/lib/x/epoch.tmp","path2":"/var/lib/x/epoch","peer":null}
{"ts":1763755204100000000,"node":"n1","type":"af","pid":41,"tid":44,"function":"RaftLogCreate"}
{"ts":1763755211000000000,"node":"n1","type":"nd","src":"10.77.0.2","dst":"10.77.0.1","duration_ms":7600,"packets":412,"open":false}
)";
  const Result<trace::Trace> trace = trace::parse_jsonl(text, "events.jsonl");
  REQUIRE(trace);
  const auto config = deployment();
  Inputs inputs;
  inputs.config = &config;
  inputs.sources.push_back(evidence::of_dump(*trace));
  const Result<Plan> plan = make_plan(inputs);
  REQUIRE(plan);
  REQUIRE(plan->candidates.size() == 4);
  CHECK(plan->candidates[0].syscall == "read");
  CHECK(plan->candidates[0].path == "*/snapshot.*");
  CHECK(plan->candidates[1].error == "ENOENT");
  CHECK(plan->candidates[2].symptom);  // the exit of the node
  CHECK(plan->candidates[3].symptom);  // the silence of n2, which the end of n2 explains
  CHECK(accounted(*plan) == plan->failures);
  CHECK(plan->workload_ts == 0);
}

TEST_CASE("a crash in an imported dump without times is tried at several points of the workload") {
  Dump dump(false);
  trace::Event& e = dump.event(100, trace::EventType::ps, "n2");
  e.state = trace::ProcessState::crashed;
  const auto config = deployment();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.candidates.size() == 1);
  CHECK(plan.candidates[0].fault.signal == SIGKILL);
  REQUIRE(plan.schedules.size() >= 1);
  Inputs inputs = inputs_of(config, {dump});
  const Result<Plan> measured = make_plan(inputs, 20 * kSecond);
  REQUIRE(measured);
  REQUIRE(measured->schedules.size() == 3);
  CHECK(measured->schedules[0].faults[0].when.at(0).elapsed_ns == 5 * kSecond);
  CHECK(measured->schedules[1].faults[0].when.at(0).elapsed_ns == kSecond / 2);
  CHECK(measured->schedules[2].faults[0].when.at(0).elapsed_ns == 10 * kSecond);
}

TEST_CASE("a crash with a restart gives a note if the deployment does not restart the node") {
  Dump dump;
  dump.crashed(5, "n1");
  dump.started(7, "n1");
  auto config = deployment();
  CHECK(plan_of(config, dump).notes.empty());
  config.nodes[0].restart.reset();
  const Plan plan = plan_of(config, dump);
  REQUIRE(plan.notes.size() == 1);
  CHECK(plan.notes[0].find("restart") != std::string::npos);
}

TEST_CASE("hosts are matched by --map, by name, by address and by elimination") {
  auto config = deployment();
  const auto nodes_of = [&](const Inputs& inputs) {
    const Result<Plan> plan = make_plan(inputs);
    REQUIRE(plan);
    std::vector<std::string> nodes;
    for (const Candidate& c : plan->candidates) nodes.push_back(c.node);
    return nodes;
  };
  SECTION("--map assigns two dumps to two nodes") {
    Dump a;
    a.crashed(5, "db-7");
    a.meta().host = "db-7";
    Dump b;
    b.crashed(9, "db-8");
    Inputs inputs = inputs_of(config, {b, a});
    inputs.host_to_node = {{"db-7", "n3"}, {"db-8", "n1"}};
    CHECK(nodes_of(inputs) == std::vector<std::string>{"n3", "n1"});
    const Result<Plan> plan = make_plan(inputs);
    CHECK(plan->schedules.at(0).faults.at(0).node == "n3");
    CHECK(plan->schedules.at(0).faults.at(1).when.at(0).elapsed_ns == 4 * kSecond);
  }
  SECTION("a host is matched by the address in the header") {
    Dump dump;
    dump.crashed(5, "db-7");
    dump.meta().addresses = {"db-7=10.77.0.2"};
    CHECK(nodes_of(inputs_of(config, {dump})) == std::vector<std::string>{"n2"});
  }
  SECTION("a host is matched by the first label of its name") {
    Dump dump;
    dump.crashed(5, "N3.prod.example.com");
    CHECK(nodes_of(inputs_of(config, {dump})) == std::vector<std::string>{"n3"});
  }
  SECTION("the remaining host is matched by elimination, which a note reports") {
    Dump dump;
    dump.crashed(5, "n1");
    dump.crashed(6, "n3");
    dump.crashed(7, "db-7");
    const Inputs inputs = inputs_of(config, {dump});
    CHECK(nodes_of(inputs) == std::vector<std::string>{"n1", "n3", "n2"});
    CHECK(make_plan(inputs)->notes.at(0).find("db-7") != std::string::npos);
  }
  SECTION("hosts that cannot be matched are discarded, counted and reported") {
    Dump dump;
    dump.crashed(5, "db-7");
    dump.scf(6, "db-8", "read", EIO, "/x/y");
    const Inputs inputs = inputs_of(config, {dump});
    const Result<Plan> plan = make_plan(inputs);
    REQUIRE(plan);
    CHECK(plan->candidates.empty());
    CHECK(discarded(*plan, "--map") == 2);
    CHECK(plan->notes.at(0).find("--map") != std::string::npos);
  }
  SECTION("a host with production addresses only is matched by its silences") {
    Dump dump;
    dump.silence(5, 15, "n1", "192.0.2.12", "192.0.2.11");
    dump.silence(5, 15, "n1", "192.0.2.13", "192.0.2.11");
    dump.silence(5, 15, "n2", "192.0.2.11", "192.0.2.12");
    dump.silence(5, 15, "n3", "192.0.2.11", "192.0.2.13");
    const Inputs inputs = inputs_of(config, {dump});
    CHECK(nodes_of(inputs) == std::vector<std::string>{"n1"});
  }
  SECTION("unknown names in --map are refused with a suggestion") {
    Dump dump;
    dump.crashed(5, "db-7");
    Inputs inputs = inputs_of(config, {dump});
    inputs.host_to_node = {{"db-77", "n1"}};
    Result<Plan> plan = make_plan(inputs);
    REQUIRE_FALSE(plan);
    CHECK(plan.error().kind == ErrorKind::input);
    CHECK(plan.error().hint.find("db-7") != std::string::npos);
    inputs.host_to_node = {{"db-7", "n9"}};
    plan = make_plan(inputs);
    REQUIRE_FALSE(plan);
    CHECK(plan.error().kind == ErrorKind::input);
    CHECK(plan.error().message.find("n9") != std::string::npos);
  }
}

TEST_CASE("schedules of one plan are distinct, valid and within max_runs") {
  Dump dump;
  dump.crashed(5, "n1");
  dump.cut(9, 20, 2, {3});
  dump.paused(30, 36, "n3");
  for (int i = 0; i < 200; ++i)
    dump.scf(40 + 0.01 * i, "n1", "openat", EIO, fmt::format("/data/n1/dir{}/file-{}x", i, char('a' + i % 26)));
  auto config = deployment();
  config.diagnose.max_runs = 40;
  const Plan plan = plan_of(config, dump);
  CHECK(plan.schedules.size() == 40);
  CHECK(plan.schedule_whys.size() == plan.schedules.size());
  std::set<std::string> seen;
  for (const schedule::Schedule& s : plan.schedules) {
    CHECK(seen.insert(schedule::fingerprint(s)).second);
    const auto back = schedule::parse_schedule(schedule::to_toml(s), "written");
    if (!back) FAIL(back.error().message + "\n" + schedule::to_toml(s));
    CHECK(schedule::check_nodes(s, config.node_names(), "written"));
  }
}

TEST_CASE("in the plan of any dump, the numbers of events add up") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Inputs inputs;
    const auto config = deployment();
    inputs.config = &config;
    // Some events are changed to nodes that exist; otherwise, none would pass the first filter.
    for (trace::Trace trace : {trace::test::random_trace(seed, 300), trace::test::random_trace(seed + 1000, 50)}) {
      const trace::StringId names[] = {trace.strings.intern("n1"), trace.strings.intern("n2"),
                                       trace.strings.intern("n3")};
      const trace::StringId ips[] = {trace.strings.intern("10.77.0.1"), trace.strings.intern("10.77.0.2"),
                                     trace.strings.intern("10.77.0.3")};
      for (std::size_t i = 0; i < trace.events.size(); ++i) {
        if (i % 4 != 0) trace.events[i].node = names[i % 3];
        if (i % 5 != 0) trace.events[i].src = ips[i % 3];
        if (i % 7 != 0) trace.events[i].dst = ips[(i / 3) % 3];
        trace.events[i].duration_ms = trace.events[i].duration_ms > 0 ? trace.events[i].duration_ms % 40000 : -1;
      }
      inputs.sources.push_back(evidence::of_dump(std::move(trace)));
    }
    const Result<Plan> plan = make_plan(inputs);
    REQUIRE(plan);
    INFO("seed " << seed);
    CHECK(accounted(*plan) == plan->failures);
    for (const schedule::Schedule& s : plan->schedules)
      if (const auto back = schedule::parse_schedule(schedule::to_toml(s), "written"); !back)
        FAIL(back.error().message + "\n" + schedule::to_toml(s));
  }
}

TEST_CASE("an orderly stop of the whole deployment at the end is not a fault") {
  const auto config = deployment();
  Dump dump;
  dump.crashed(6, "n1");
  dump.started(7, "n1");
  dump.crashed(40, "n1", SIGTERM);
  dump.scf(40.5, "n3", "connect", ECONNREFUSED, {}, "10.77.0.1:7000");
  SECTION("all nodes stop") {
    dump.exited(41, "n2", 0);
    dump.crashed(42, "n3", SIGTERM);
    dump.ends(43);
    const Plan plan = plan_of(config, dump);
    REQUIRE(plan.candidates.size() == 1);
    CHECK(plan.candidates[0].first_ts == at(6));
    CHECK(discarded(plan, "stopped normally") == 3);
    CHECK(discarded(plan, "planned stop explains") == 1);
    CHECK(accounted(plan) == plan.failures);
  }
  SECTION("one node stays up") {
    dump.exited(41, "n2", 0);
    dump.scf(42, "n3", "openat", EIO, "/data/n3/x");
    dump.ends(43);
    const Plan plan = plan_of(config, dump);
    CHECK(discarded(plan, "stopped normally") == 0);
    CHECK(std::count_if(plan.candidates.begin(), plan.candidates.end(),
                        [](const Candidate& c) { return c.kind == schedule::FaultKind::crash; }) == 2);
  }
  SECTION("one node restarts, as in a rolling restart") {
    dump.crashed(41, "n2", SIGTERM);
    dump.crashed(42, "n3", SIGTERM);
    dump.started(44, "n1");
    dump.ends(45);
    CHECK(discarded(plan_of(config, dump), "stopped normally") == 0);
  }
  SECTION("nodes are killed instead of stopped") {
    dump.crashed(41, "n2");
    dump.crashed(42, "n3");
    dump.ends(43);
    CHECK(discarded(plan_of(config, dump), "stopped normally") == 0);
  }
}

TEST_CASE("silences of an address that two nodes share are one partition of that network") {
  auto config = deployment(4);
  config.nodes[3].network_of = "n1";
  config.nodes[3].ip = config.nodes[0].ip;
  Dump dump;
  known_silence(dump, 5, 12, 2, 1, true, 0.2);
  known_silence(dump, 5, 12, 3, 1, true, 0.2);
  known_silence(dump, 5, 12, 1, 2, true, 0.2);
  // n4 shares the network of n1. The tracer still recognises the processes of n4 by their cgroup.
  dump.silence(5, 12, "n4", "10.77.0.3", "10.77.0.1").flags = trace::kOutstanding;
  dump.ends(30);
  const Plan plan = plan_of(config, dump);
  REQUIRE(partitions(plan).size() == 1);
  CHECK(partitions(plan)[0]->node == "n1");
  CHECK(partitions(plan)[0]->fault.peers.empty());
  CHECK(partitions(plan)[0]->fault.direction == Direction::both);
  CHECK(std::any_of(plan.notes.begin(), plan.notes.end(), [](const std::string& note) {
    return note.find("'n4' shares the network and the address of 'n1'") != std::string::npos;
  }));
  CHECK(accounted(plan) == plan.failures);
}

TEST_CASE("a node's crash explains failures at the address that it shares with another node") {
  auto config = deployment(3);
  config.nodes[2].network_of = "n1";
  config.nodes[2].ip = config.nodes[0].ip;
  for (const bool shares : {true, false}) {
    if (!shares) config.nodes[2].network_of.clear(), config.nodes[2].ip = "10.77.0.3";
    Dump dump;
    dump.crashed(5, "n3");
    for (int i = 0; i < 5; ++i) dump.scf(5.1 + 0.1 * i, "n2", "connect", ECONNREFUSED, {}, "10.77.0.1:9000");
    dump.ends(30);
    const Plan plan = plan_of(config, dump);
    const auto refused = std::find_if(plan.candidates.begin(), plan.candidates.end(),
                                      [](const Candidate& c) { return c.error == "ECONNREFUSED"; });
    REQUIRE(refused != plan.candidates.end());
    CHECK(refused->symptom == shares);
  }
}
