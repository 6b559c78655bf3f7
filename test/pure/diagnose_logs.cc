// What the search does with logs: which candidates messages and the lines before them become, and at which times.
#include <catch2/catch.hpp>

#include <fstream>
#include <set>

#include "diagnose/narrow.h"
#include "diagnose_log_inputs.h"
#include "diagnose_play.h"
#include "folder.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::FaultKind;

namespace {

std::string line(double second, const std::string& text) {
  const auto ms = static_cast<int>(second * 1000);
  return fmt::format("2026-01-02 03:{:02}:{:02}.{:03} INFO {}\n", ms / 60'000, ms / 1000 % 60, ms % 1000, text);
}

// The log of a node in a run without faults. Its first line was written when that run began.
std::string usual_log() {
  return line(0, "opening the store") + line(1, "saved table one") + line(2, "checkpoint") + line(3, "closed");
}

std::int64_t log_begin() {
  logs::Templates kinds;
  return logs::read_text(line(0, "x"), {"a", ""}, {}, kinds).nodes[0].messages[0].ts_ns;
}

// Sets the time at which a trace begins to the time at which the logs begin.
trace::Trace beside_logs(trace::Trace trace) {
  const std::int64_t shift = log_begin() - kBase;
  for (trace::Event& event : trace.events) event.ts_ns += shift;
  for (std::int64_t* one : {&trace.meta.workload_ts, &trace.meta.begin_ns, &trace.meta.end_ns})
    if (*one != 0) *one += shift;
  return trace;
}

trace::Trace usual_run() {
  Dump dump;
  dump.started(-0.5, "n2");
  dump.sys(0.5, "n2", "openat", "/run/1/n2/data/store.db");
  dump.sys(1.5, "n2", "openat", "/run/1/n2/data/check.tmp");
  dump.sys(1.9, "n2", "rename", "/run/1/n2/data/check.tmp");
  dump.ends(5);
  return beside_logs(dump.take());
}

// The trace of a run without faults. That run is not counted in `play.runs`.
trace::Trace without_faults(Play& play) {
  const Result<schedule::RunResult> control = play.run({});
  REQUIRE(control);
  play.runs = 0;
  return beside_logs(control->trace);
}

// The plan made from a failure's logs, those of n1, n2, ..., compared with the logs of a run without faults. `control`
// is that run's trace, or nullptr.
Plan planned(const config::Config& config, const std::vector<std::string>& failed,
             const std::vector<std::string>& usual, const trace::Trace* control) {
  const rose::test::Folder folder;
  logs::Templates kinds;
  logs::Evidence evidence;
  const auto read = [&](const char* name, const std::vector<std::string>& texts) {
    std::vector<logs::Input> files;
    for (std::size_t n = 0; n < texts.size(); ++n) {
      files.push_back({folder / fmt::format("n{}.{}.log", n + 1, name), fmt::format("n{}", n + 1)});
      std::ofstream(files.back().path) << texts[n];
    }
    return *logs::read_logs(files, {}, kinds);
  };
  evidence.normal = read("usual", usual);
  evidence.failure = read("failed", failed);
  weigh(evidence, kinds, config);
  Inputs inputs;
  inputs.config = &config;
  add_logs(inputs, evidence, control);
  Result<Plan> plan = make_plan(inputs);
  REQUIRE(plan);
  return *std::move(plan);
}

}  // namespace

TEST_CASE("a message that names call, error and path is the first candidate, with the message as its reason") {
  const auto config = deployment();
  const trace::Trace control = usual_run();
  LogInputs given(config,
                  line(0, "opening the store") + line(1, "saved table one") +
                      line(2, "cannot write /prod/n2/data/store.db: No space left on device"),
                  usual_log(), &control);
  const Plan plan = given.plan();
  REQUIRE(!plan.candidates.empty());
  const Candidate& c = plan.candidates[0];
  CHECK(c.kind == FaultKind::syscall);
  CHECK(c.node == "n2");
  CHECK(c.syscall == "write");
  CHECK(c.error == "ENOSPC");
  REQUIRE(c.fault.call.path);
  CHECK(c.fault.call.path->find("store.db") != std::string::npos);
  CHECK(c.why.find("n2.log:3 of n2: 'cannot write") == 0);
  for (const Candidate& other : plan.candidates) CHECK(other.weight <= c.weight);
  // The message is an observable: a run that reproduces the failure should log it, too.
  bool wanted = false;
  for (const Observable& one : plan.observables)
    wanted = wanted || (one.key.find(" says ") != std::string::npos && one.node == "n2");
  CHECK(wanted);
}

TEST_CASE("a message without a file name refers to the files that the node touched last") {
  const auto config = deployment();
  const trace::Trace control = usual_run();
  LogInputs given(
      config,
      line(0, "opening the store") + line(1, "saved table one") + line(2, "checkpoint failed: No space left on device"),
      usual_log(), &control);
  const Plan plan = given.plan();
  REQUIRE(!plan.candidates.empty());
  REQUIRE(plan.candidates[0].fault.call.path);
  CHECK(plan.candidates[0].fault.call.path->find("check.tmp") != std::string::npos);
  // The reason is the message, although a guess would also give this candidate, because the node used the file at that
  // time.
  CHECK(plan.candidates[0].why.find("n2.log:3 of n2: 'checkpoint failed") == 0);
  CHECK(plan.candidates[0].count == 1);
  for (const Candidate& c : plan.candidates)
    if (c.kind == FaultKind::syscall) CHECK(((c.error != "ENOSPC") == (c.why.find("n2.log:3") != 0)));
}

TEST_CASE("an error that only files return is not injected into sockets, although the message names no file") {
  const auto config = deployment();
  const auto path = [&](const char* error) {
    LogInputs given(config, line(0, "opening the store") + line(2, std::string("save: write: ") + error), usual_log());
    const Plan plan = given.plan();
    const auto c = std::find_if(plan.candidates.begin(), plan.candidates.end(),
                                [](const Candidate& one) { return one.syscall == "write"; });
    REQUIRE(c != plan.candidates.end());
    return c->fault.call.path.value_or("");
  };
  CHECK(path("no space left on device") == "*/*");
  CHECK(path("bad file descriptor").empty());
}

TEST_CASE("a message that matches many calls and files gives at most a dozen faults") {
  const auto config = deployment();
  Dump dump;
  dump.started(-0.5, "n2");
  for (const char* file : {"store.db", "wal.log", "index.idx", "meta.toml", "lock.pid"})
    dump.sys(0.5, "n2", "openat", fmt::format("/run/1/n2/data/{}", file));
  dump.ends(5);
  const trace::Trace control = beside_logs(dump.take());
  const LogInputs given(
      config,
      line(0, "opening the store") + line(1, "saved table one") + line(2, "checkpoint failed: No space left on device"),
      usual_log(), &control);
  std::size_t faults = 0;
  for (const evidence::Observation& observation : given.inputs.sources.back().observations)
    faults += observation.type == trace::EventType::scf && observation.how().words.starts_with("n2.log:3") ? 1 : 0;
  CHECK(faults == 12);
}

TEST_CASE("messages right before a program ends itself are not explained by its end") {
  const auto config = deployment();
  const trace::Trace control = usual_run();
  LogInputs given(config,
                  line(0, "opening the store") + line(1, "saved table one") +
                      line(2, "panic: rename /prod/n2/data/check.tmp: no space left on device"),
                  usual_log(), &control);
  const Plan plan = given.plan();
  std::size_t calls = 0;
  for (const Candidate& c : plan.candidates) calls += c.kind == FaultKind::syscall && c.error == "ENOSPC" ? 1 : 0;
  CHECK(calls >= 3);  // rename, and other calls for which this error is possible
  REQUIRE(!plan.candidates.empty());
  CHECK(plan.candidates[0].syscall.starts_with("rename"));
  for (const Discarded& one : plan.discarded) CHECK(one.why.find("own end") == std::string::npos);
}

TEST_CASE("a connection error is not matched to the node's files") {
  const auto config = deployment();
  const trace::Trace control = usual_run();
  LogInputs given(
      config,
      line(0, "opening the store") + line(1, "saved table one") + line(2, "write failed: Connection reset by peer"),
      usual_log(), &control);
  for (const Candidate& c : given.plan().candidates) {
    INFO(c.why);
    CHECK((c.error != "ECONNRESET" || c.path.empty()));
  }
}

TEST_CASE("a reset is not ruled out by the end of the peer that only the same message suggests") {
  const auto config = deployment();
  const trace::Trace control = usual_run();
  LogInputs given(config,
                  line(0, "opening the store") + line(1, "saved table one") +
                      line(2, "read tcp 10.77.0.2:41234->10.77.0.1:7000: read: connection reset by peer") +
                      line(3, "closed"),
                  usual_log(), &control);
  const Plan plan = given.plan();
  const auto find = [&](FaultKind kind, std::string_view error) {
    return std::find_if(plan.candidates.begin(), plan.candidates.end(),
                        [&](const Candidate& c) { return c.kind == kind && c.error == error; });
  };
  const auto end = find(FaultKind::crash, ""), reset = find(FaultKind::syscall, "ECONNRESET");
  REQUIRE(end != plan.candidates.end());
  REQUIRE(reset != plan.candidates.end());
  CHECK(end->node == "n1");
  INFO(end->why << "; " << reset->why);
  CHECK(reset->perhaps_symptom);
  CHECK_FALSE(reset->symptom);
  CHECK(end->rank < reset->rank);  // a reset is mostly caused by the end of the other side
}

TEST_CASE("if no message names a cause, calls shortly before the failure are tried, nearest first") {
  const auto config = deployment();
  const trace::Trace control = usual_run();
  LogInputs given(
      config,
      line(10, "opening the store") + line(11, "saved table one") + line(12.5, "the table is odd") + line(13, "closed"),
      usual_log(), &control);
  CHECK(std::none_of(given.evidence.hints.begin(), given.evidence.hints.end(),
                     [](const logs::Hint& hint) { return hint.weight > 0.3; }));
  const Plan plan = given.plan();
  const Candidate* best = nullptr;
  for (const Candidate& c : plan.candidates)
    if (c.kind == FaultKind::syscall && (best == nullptr || c.weight > best->weight)) best = &c;
  REQUIRE(best != nullptr);
  CHECK(best->path.find("check.tmp") != std::string::npos);
  // A write that finds a full disk is likelier than an open that fails.
  double write = 0, open = 0;
  for (const Candidate& c : plan.candidates) {
    if (c.kind != FaultKind::syscall || c.path.find("store.db") == std::string::npos) continue;
    if (c.syscall == "write" && c.error == "ENOSPC") write = c.weight;
    if (c.syscall == "openat") open = c.weight;
  }
  CHECK(write > open);
  CHECK(open > 0);
  CHECK(best->why.find("no message names a cause") == 0);
  CHECK(std::any_of(plan.candidates.begin(), plan.candidates.end(),
                    [](const Candidate& c) { return c.kind == FaultKind::crash && c.node == "n2"; }));
}

TEST_CASE("of calls between the same messages, those after which their thread did little come first") {
  const auto config = deployment();
  Dump dump;
  dump.started(-0.5, "n2");
  dump.sys(1.2, "n2", "openat", "/run/1/n2/data/quiet.db").tid = 7;
  dump.sys(1.4, "n2", "openat", "/run/1/n2/data/busy.db").tid = 8;
  for (int i = 0; i < 6; ++i) dump.sys(1.5 + 0.05 * i, "n2", "unlink", "/run/1/n2/data/scratch").tid = 8;
  dump.ends(5);
  const trace::Trace control = beside_logs(dump.take());
  LogInputs given(config, line(0, "opening the store") + line(1, "saved table one") + line(2, "the table is odd"),
                  usual_log(), &control);
  double quiet = 0, busy = 0;
  std::string why;
  for (const Candidate& c : given.plan().candidates) {
    if (c.kind != FaultKind::syscall || c.syscall != "openat") continue;
    if (c.path.find("quiet.db") != std::string::npos) quiet = c.weight;
    if (c.path.find("busy.db") != std::string::npos) {
      busy = c.weight;
      why = c.why;
    }
  }
  CHECK(quiet > busy);
  CHECK(busy > 0);
  CHECK(why.find("its thread made 6 more calls in between") != std::string::npos);
}

TEST_CASE("events of the fault-free run are mapped to the incident's time line") {
  const auto config = deployment();
  const trace::Trace control = usual_run();
  // This log is one day later, and the node was ten times slower.
  LogInputs given(config,
                  line(0, "opening the store") + line(10, "saved table one") + line(20, "checkpoint") +
                      line(30, "closed") + line(31, "odd"),
                  usual_log(), &control);
  REQUIRE(given.inputs.sources.size() == 1);
  std::int64_t first = 0, rename = 0;
  const int number = kernel::find_syscall("rename")->number;
  for (const evidence::Observation& event : given.inputs.sources[0].observations)
    if (event.type == trace::EventType::sys && event.syscall == number) rename = event.ts_ns;
  first = given.evidence.failure.nodes[0].messages[0].ts_ns;
  CHECK(rename - first == 19'000'000'000);
}

TEST_CASE("a node whose log begins again is taken as killed and restarted") {
  const auto config = deployment();
  LogInputs given(config,
                  line(0, "store 3 is starting") + line(1, "saved table one") + line(2, "saved table two") +
                      line(4, "store 3 is starting") + line(5, "recovered"),
                  line(0, "store 3 is starting") + line(1, "saved table one") + line(2, "saved table two"), nullptr);
  const Plan plan = given.plan();
  REQUIRE(!plan.candidates.empty());
  CHECK(plan.candidates[0].kind == FaultKind::crash);
  CHECK(plan.candidates[0].fault.signal == SIGKILL);
  CHECK(plan.candidates[0].why.find("begins again") != std::string::npos);
}

TEST_CASE("a helper's end in a log does not kill the main process, and a partition's reason names the peer") {
  const auto config = deployment();
  LogInputs given(
      config,
      line(1, "checkpoint begins") + line(2, "checkpointer process (PID 27001) was terminated by signal 9: Killed") +
          line(3, "all server processes were started anew") + line(20, "Server b/n3 is DOWN, reason: Layer4 timeout") +
          line(40, "Server b/n1 is DOWN, reason: Layer4 timeout"),
      "", nullptr);
  const Plan plan = given.plan();
  std::size_t cuts = 0;
  bool crash = false;
  for (const Candidate& c : plan.candidates) {
    INFO(c.why);
    if (c.kind == FaultKind::crash) {
      // Here the end of the node is only a possible explanation of its silence.
      if (c.why.find("nothing shows that") != std::string::npos) continue;
      crash = true;
      CHECK(c.fault.scope == schedule::Scope::others);
    }
    if (c.kind != FaultKind::partition) continue;
    ++cuts;
    CHECK(c.why.find("b/" + (c.node == "n2" ? c.peer : c.node)) != std::string::npos);
  }
  CHECK(crash);
  CHECK(cuts == 2);
}

TEST_CASE("a partition from an unnamed peer is inferred, from a named peer it is stated") {
  const auto config = deployment();
  const auto known = [&](const char* text) {
    LogInputs given(config, line(1, "up") + line(20, text), "", nullptr);
    std::set<Known> all;
    for (const Candidate& c : given.plan().candidates)
      if (c.kind == FaultKind::partition) all.insert(c.known);
    return all;
  };
  CHECK(known("lost the connection to a replica") == std::set<Known>{Known::inferred});
  CHECK(known("lost the connection to n3") == std::set<Known>{Known::stated});
}

TEST_CASE("a message about a full disk reports one failed call, but other calls are failed as well") {
  const auto config = deployment();
  const trace::Trace control = usual_run();
  LogInputs given(config,
                  line(0, "opening the store") + line(1, "saved table one") +
                      line(2, "cannot write /prod/n2/data/store.db: No space left on device"),
                  usual_log(), &control);
  const Plan plan = given.plan();
  REQUIRE(!plan.candidates.empty());
  const auto lasting = [](const schedule::Fault& fault) { return fault.times == -1; };
  CHECK(plan.candidates[0].fault.times == 1);
  CHECK(std::any_of(plan.candidates[0].alternatives.begin(), plan.candidates[0].alternatives.end(), lasting));
  CHECK(std::any_of(plan.schedules.begin(), plan.schedules.end(), [&](const schedule::Schedule& one) {
    return one.faults.size() > 1 && std::all_of(one.faults.begin(), one.faults.end(), lasting);
  }));
}

TEST_CASE("a relative path and an absolute path of the same file give one candidate") {
  const auto config = deployment();
  const trace::Trace control = usual_run();
  const std::string full = line(2, "cannot write /prod/n2/data/store.db: No space left on device"),
                    relative = line(2.1, "I/O error: data/store.db: write failed (No space left on device)");
  const auto writes = [&](const std::string& text) {
    LogInputs given(config, line(0, "opening the store") + line(1, "saved table one") + text, usual_log(), &control);
    std::set<std::string> paths;
    for (const Candidate& c : given.plan().candidates)
      if (c.fault.call.syscall == "write") paths.insert(c.fault.call.path.value_or(""));
    return paths;
  };
  CHECK(writes(full).contains("*/data/store.db"));
  CHECK(writes(relative) == writes(full));
  CHECK(writes(full + relative) == writes(full));
}

TEST_CASE("beside a dump, logs add candidates only for what the dump's window does not cover") {
  const auto config = deployment();
  const std::string failed = line(2, "cannot write /prod/n2/data/store.db: No space left on device") +
                             line(3, "store 3 is starting") + line(20, "store 3 is starting");
  const auto seen = [](const std::string& node, double end) {
    Dump dump;
    dump.started(0, node);
    dump.scf(1.9, node, "write", ENOSPC, "/prod/" + node + "/data/store.db");
    dump.crashed(end - 1, node);
    dump.ends(end);
    return beside_logs(dump.take());
  };
  const auto number_of = [](const Plan& plan, FaultKind kind) {
    return std::count_if(plan.candidates.begin(), plan.candidates.end(), [&](const Candidate& c) {
      return c.node == "n2" && c.kind == kind && c.why.find("n2.log:") != std::string::npos;
    });
  };
  // The window of the dump covers the whole failure.
  const trace::Trace whole = seen("n2", 30);
  Inputs alone;
  alone.config = &config;
  alone.sources = {evidence::of_dump(whole)};
  const Result<Plan> before = make_plan(alone);
  REQUIRE(before);
  LogInputs both(config, failed, line(3, "store 3 is starting"), nullptr, {whole});
  const Plan with = both.plan();
  REQUIRE(with.candidates.size() == before->candidates.size());
  for (std::size_t i = 0; i < with.candidates.size(); ++i) {
    CHECK((with.candidates[i].fault == before->candidates[i].fault));
    CHECK(with.candidates[i].weight == Approx(before->candidates[i].weight));
  }
  CHECK(with.observables.size() > before->observables.size());
  // Two other cases: the window of the dump ended before the node did, and the dump belongs to another node.
  LogInputs later(config, failed, line(3, "store 3 is starting"), nullptr, {seen("n2", 8)});
  CHECK(number_of(later.plan(), FaultKind::crash) > 0);
  CHECK(number_of(later.plan(), FaultKind::syscall) == 0);
  LogInputs other(config, failed, line(3, "store 3 is starting"), nullptr, {seen("n1", 30)});
  CHECK(number_of(other.plan(), FaultKind::crash) > 0);
  CHECK(number_of(other.plan(), FaultKind::syscall) > 0);
  // Failures that happened after the last dump was written are more likely to be consequences.
  const auto crash_to_call = [](const Plan& plan) {
    std::map<FaultKind, double> most;
    for (const Candidate& c : plan.candidates)
      if (c.node == "n2" && c.why.find("n2.log:") != std::string::npos) most[c.kind] = std::max(most[c.kind], c.weight);
    return most[FaultKind::crash] / most[FaultKind::syscall];
  };
  Dump early;
  early.started(0, "n1");
  early.ends(0.5);
  LogInputs after(config, failed, line(3, "store 3 is starting"), nullptr, {beside_logs(early.take())});
  CHECK(crash_to_call(after.plan()) > 0);
  CHECK(crash_to_call(after.plan()) < 0.6 * crash_to_call(other.plan()));
  // If a log has no times, those of the run without faults are used. Here, they are long after the end of the dump.
  for (const bool aligned : {false, true}) {
    LogInputs another(config, failed, line(3, "store 3 is starting"));
    logs::Evidence evidence = another.evidence;
    evidence.failure.nodes[0].aligned = aligned;
    for (logs::Message& one : evidence.failure.nodes[0].messages) one.ts_ns += 100 * kSecond;
    logs::Hint end;
    end.kind = logs::Hint::Kind::end;
    end.node = "n2";
    end.ts_ns = log_begin() + 120 * kSecond;
    end.log = 0;
    end.weight = 0.6;
    end.words = "n2.log:2 of n2: the last before it begins again";
    evidence.hints = {end};
    Inputs inputs;
    inputs.config = &config;
    inputs.sources = {evidence::of_dump(whole)};
    add_logs(inputs, evidence, nullptr);
    const Result<Plan> plan = make_plan(inputs);
    REQUIRE(plan);
    CHECK((number_of(*plan, FaultKind::crash) > 0) == !aligned);
  }
  trace::Trace lost = whole;
  lost.meta.lost = 7;
  LogInputs gaps(config, failed, line(3, "store 3 is starting"), nullptr, {lost});
  CHECK(gaps.plan().candidates.size() > before->candidates.size());
}

TEST_CASE("if a log leaves the time of a kill open, each infrequent event of the node is an injection point") {
  const auto config = deployment();
  // The node logs only its starts, with two lines each. It does not log what it does between two starts: a checkpoint,
  // and many other events, most of them before the checkpoint.
  std::vector<Act> acts{{0.1, "n2", "", "openat", "/run/x/store.db"}};
  for (int i = 0; i < 30; ++i) acts.push_back({1 + 0.25 * i, "n2", "put", "", ""});
  acts.push_back({9, "n2", "checkpoint", "", ""});
  const auto bug = static_cast<int>(acts.size());
  acts.push_back({9.1, "n2", "checkpoint", "", "", true, 0x40});
  acts.push_back({9.2, "n2", "checkpoint", "", "", true, 0x80});
  for (int i = 0; i < 6; ++i)
    acts.push_back({10.0 + i, "n2", "", i % 2 == 0 ? "openat" : "unlink", fmt::format("/run/x/scratch.{}", i / 2)});
  acts.push_back({17, "n2", "report", "", ""});
  acts.push_back({18, "n2", "", "rename", "/run/x/report"});
  Code code;
  code.functions["checkpoint"] = {{0x40, PlaceKind::syscall, "pwrite@plt"},
                                  {0x80, PlaceKind::syscall, "ftruncate@plt"}};
  Play play(acts, [bug](const std::vector<Hit>& hits, int) {
    return hits.size() == 1 && hits[0].fault->kind == FaultKind::crash && hits[0].act == bug;
  });
  const trace::Trace usual = without_faults(play);
  const std::string life = "store 3 is starting", ready = "ready for requests";
  LogInputs given(config, line(0, life) + line(0.2, ready) + line(21, life) + line(21.2, ready),
                  line(0, life) + line(0.2, ready), &usual);
  given.inputs.code = &code;
  given.inputs.simplify = false;
  const Plan plan = given.plan();
  REQUIRE(!plan.candidates.empty());
  CHECK(plan.candidates[0].kind == FaultKind::crash);
  CHECK(plan.candidates[0].since_ts != 0);
  CHECK(plan.candidates[0].first_ts > plan.candidates[0].since_ts + 15'000'000'000);
  const Result<Diagnosis> found = rose::diagnose::diagnose(given.inputs, play, {});
  REQUIRE(found);
  CHECK(found->verdict == schedule::Verdict::reproduced);
  CHECK(found->schedules <= 15);
}

TEST_CASE("after an unlogged partition, a logged kill is found at events that only the partition causes") {
  const auto config = deployment();
  std::vector<Act> usual{{0.1, "n2", "", "openat", "/run/x/store.db"}};
  for (int i = 0; i < 40; ++i) usual.push_back({1 + 1.2 * i, "n2", "put", "", ""});
  std::vector<Act> acts;
  Play play(usual, [&](const std::vector<Hit>& hits, int) {
    // The bug occurs if n2 is partitioned and then killed, either at save_keys or at the rename.
    return hits.size() == 2 && hits[0].fault->kind == FaultKind::partition && hits[1].fault->kind == FaultKind::crash &&
           hits[1].fault->node == "n2" && hits[1].act >= 0 &&
           (acts[static_cast<std::size_t>(hits[1].act)].function == "save_keys" ||
            acts[static_cast<std::size_t>(hits[1].act)].syscall == "rename");
  });
  play.acts_of = [&](int) {
    acts = usual;
    const schedule::Fault* cut = fault_of(play.made.back(), FaultKind::partition, "n2");
    if (cut == nullptr || cut->when.empty() || cut->duration_ns < 2'000'000'000) return acts;
    double t = static_cast<double>(cut->when[0].elapsed_ns + cut->duration_ns) / 1e9;
    for (const char* function : {"install", "save_position"}) acts.push_back({t += 0.1, "n2", function, "", ""});
    acts.push_back({t += 0.1, "n2", "", "rename", "/run/x/position"});
    acts.push_back({t += 0.1, "n2", "save_keys", "", ""});
    std::stable_sort(acts.begin(), acts.end(), [](const Act& a, const Act& b) { return a.t < b.t; });
    return acts;
  };
  const trace::Trace without = without_faults(play);
  const std::string life = "store 3 is starting", ready = "ready for requests";
  LogInputs given(config, line(0, life) + line(0.2, ready) + line(31, life) + line(31.2, ready),
                  line(0, life) + line(0.2, ready), &without);
  given.inputs.simplify = false;
  const Plan plan = given.plan();
  CHECK(std::any_of(plan.notes.begin(), plan.notes.end(), [](const std::string& note) {
    return note.find("that no message mentions may have preceded the reported ends and pauses") != std::string::npos;
  }));
  const Result<Diagnosis> found = rose::diagnose::diagnose(given.inputs, play, {});
  REQUIRE(found);
  CHECK(found->verdict == schedule::Verdict::reproduced);
  REQUIRE(found->found);
  CHECK(found->found->faults.size() == 2);
  CHECK(found->schedules <= 40);
}

TEST_CASE("an inferred event does not explain evidence that logs state") {
  LogInputs given(deployment(), line(0, "server is starting") + line(30, "done"), "");
  const auto of = [](logs::Hint::Kind kind, const char* node, const char* peer, double weight) {
    logs::Hint hint;
    hint.kind = kind;
    hint.node = node;
    hint.peer = peer;
    hint.ts_ns = log_begin() + 10 * kSecond;
    hint.until_ns = log_begin() + 16 * kSecond;
    hint.weight = weight;
    hint.log = hint.message = 0;
    hint.words = "a message";
    return hint;
  };
  using Kind = logs::Hint::Kind;
  for (const double stood : {0.28, 0.9}) {
    given.evidence.hints = {of(Kind::silence, "n1", "n2", 0.6), of(Kind::silence, "n1", "n3", 0.6),
                            of(Kind::silence, "n2", "n1", 0.6), of(Kind::silence, "n3", "n1", 0.6),
                            of(Kind::stop, "n1", "", stood)};
    Inputs inputs;
    inputs.config = &given.config;
    add_logs(inputs, given.evidence, nullptr);
    const Result<Plan> plan = make_plan(inputs);
    REQUIRE(plan);
    const auto cut = std::find_if(plan->candidates.begin(), plan->candidates.end(),
                                  [](const Candidate& c) { return c.kind == FaultKind::partition && c.node == "n1"; });
    REQUIRE(cut != plan->candidates.end());
    CHECK(cut->symptom == (stood > 0.5));
  }
}

TEST_CASE("a message in a log whose node is unknown may belong to any of a few nodes") {
  const auto config = deployment();
  const auto named = [&](const std::string& text) {
    logs::Templates kinds;
    logs::Evidence evidence;
    evidence.failure = logs::read_text(text, {"pasted.log", ""}, {}, kinds);
    weigh(evidence, kinds, config);
    Inputs inputs;
    inputs.config = &config;
    add_logs(inputs, evidence, nullptr);
    const Result<Plan> plan = make_plan(inputs);
    REQUIRE(plan);
    std::set<std::string> nodes;
    for (const Candidate& one : plan->candidates) nodes.insert(one.node);
    return nodes;
  };
  CHECK(named("2026-01-02 03:04:05 ERROR write /srv/kv/x: no space left on device\n").size() == config.nodes.size());
}

TEST_CASE("a node that exits because it misses a peer does not explain the silence") {
  const std::string unknown = "could not translate host name \"db\" to address: Temporary failure in name resolution\n";
  const Plan plan = planned(deployment(),
                            {"2026-01-02 03:04:10,100 WARN the action is not kept: " + unknown +
                             "2026-01-02 03:04:10,102 INFO the work begins\nTraceback (most recent call last):\n"
                             "  File \"/srv/x.py\", line 3, in connect\nOperationalError: " +
                             unknown},
                            {}, nullptr);
  const auto cut = std::find_if(plan.candidates.begin(), plan.candidates.end(),
                                [](const Candidate& c) { return c.kind == FaultKind::partition; });
  REQUIRE(cut != plan.candidates.end());
  CHECK_FALSE(cut->symptom);
}

TEST_CASE("connections closed by a node's end are not a partition, and give the time of that end") {
  const auto config = deployment();
  const trace::Trace control = usual_run();
  const std::string open = line(0, "starting server") + line(0.1, "listening"), quiet = open + line(30, "done");
  // In the run without faults, n2 also logs nothing for 2.5 s after its block. So its own log does not show when it
  // ended.
  const std::vector<std::string> usual{
      quiet, open + line(10, "a block is stored") + line(12.5, "the next block is stored") + line(30, "done"), quiet};
  const auto with = [&](const std::string& missed) {
    return planned(config,
                   {open + line(10.5, missed) + line(30, "done"),
                    open + line(10, "a block is stored") + line(13, "starting server") + line(13.1, "listening") +
                        line(30, "done"),
                    open + line(10.6, missed) + line(30, "done")},
                   usual, &control);
  };
  const auto of = [](const Plan& plan, FaultKind kind) {
    const auto found = std::find_if(plan.candidates.begin(), plan.candidates.end(),
                                    [&](const Candidate& c) { return c.kind == kind && c.node == "n2" && !c.symptom; });
    return found == plan.candidates.end() ? nullptr : &*found;
  };
  const Plan closed = with("n2: connection closed by peer");
  REQUIRE(of(closed, FaultKind::crash) != nullptr);
  CHECK(std::abs(of(closed, FaultKind::crash)->first_ts - log_begin() - 10'000'000'000) < 600'000'000);
  CHECK(of(closed, FaultKind::partition) == nullptr);
  // If a node only did not answer, it may have been partitioned before it ended.
  const Plan silent = with("n2: no response from it, not reachable");
  CHECK(of(silent, FaultKind::partition) != nullptr);
}

TEST_CASE("failed calls that no log reports do not determine the time of reported ones") {
  const auto config = deployment();
  Dump dump;
  dump.started(-0.5, "n2");
  dump.sys(0.2, "n2", "ftruncate", "/run/1/n2/data/new.tmp");
  dump.sys(1.5, "n2", "openat", "/run/1/n2/data/check.tmp");
  dump.ends(5);
  trace::Trace control = beside_logs(dump.take());
  control.meta.workload_ts = log_begin();
  LogInputs given(config,
                  line(0, "opening the store") + line(1, "saved table one") +
                      line(4, "cannot write /prod/n2/data/store.db: No space left on device"),
                  line(0, "opening the store") + line(1, "saved table one") + line(2, "closed"), &control);
  const Plan plan = given.plan();
  CHECK(std::any_of(plan.candidates.begin(), plan.candidates.end(),
                    [](const Candidate& c) { return c.assumed && c.error == "ENOSPC"; }));
  const auto of_store = [](const schedule::Fault& fault) {
    return fault.call.path.value_or("").find("store.db") != std::string::npos;
  };
  const auto as_seen = [](const schedule::Fault& fault) {
    return fault.when.size() == 1 && fault.when[0].elapsed_ns >= 3'500'000'000;
  };
  std::size_t together = 0;
  for (std::size_t i = 0; i < plan.schedules.size(); ++i) {
    const std::vector<schedule::Fault>& faults = plan.schedules[i].faults;
    if (plan.schedule_whys[i].find("one cause") == std::string::npos ||
        std::none_of(faults.begin(), faults.end(), of_store))
      continue;
    ++together;
    CHECK(std::all_of(faults.begin(), faults.end(), as_seen));
  }
  CHECK(together > 0);

  given.inputs.limits = {FaultKind::disk_full};
  given.config.diagnose.max_runs = 20;
  Play play({}, [](const std::vector<Hit>&, int) { return false; });
  REQUIRE(diagnose::diagnose(given.inputs, play, {}));
  std::size_t full = 0;
  for (const schedule::Schedule& made : play.made)
    for (const schedule::Fault& fault : made.faults)
      if (fault.kind == FaultKind::disk_full) {
        ++full;
        CHECK(as_seen(fault));
      }
  CHECK(full > 0);
}

TEST_CASE("a pause that reproduces too rarely is tried longer if no log gives its length") {
  const auto config = deployment();
  std::vector<Act> acts;
  for (int i = 0; i < 30; ++i) acts.push_back({0.2 + 0.2 * i, "n2", "put", "", ""});
  Play play(acts, [](const std::vector<Hit>& hits, int run) {
    return std::any_of(hits.begin(), hits.end(), [&](const Hit& hit) {
      return hit.fault->kind == FaultKind::pause && hit.fault->node == "n2" &&
             (hit.fault->duration_ns > 3 * kSecond || run % 2 == 0);
    });
  });
  const trace::Trace without = without_faults(play);
  LogInputs given(config, line(0, "server is starting") + line(8, "applied the last batch twice"),
                  line(0, "server is starting") + line(6, "done"), &without);
  given.inputs.simplify = false;
  const Result<Diagnosis> found = rose::diagnose::diagnose(given.inputs, play, {});
  REQUIRE(found);
  CHECK(found->verdict == schedule::Verdict::reproduced);
  REQUIRE(found->found);
  REQUIRE(found->found->faults.size() == 1);
  CHECK(found->found->faults[0].duration_ns > 3 * kSecond);
  CHECK(found->schedules <= 8);
}

TEST_CASE("a pause inferred from the peers is tried with that length, then with the longest possible") {
  LogInputs given(deployment(), line(0, "server is starting") + line(30, "done"), "");
  logs::Hint stood;
  stood.kind = logs::Hint::Kind::stop;
  stood.node = "n1";
  stood.ts_ns = log_begin() + 10 * kSecond;
  stood.since_ns = log_begin() + 4 * kSecond;
  stood.until_ns = log_begin() + 16 * kSecond;
  stood.weight = 0.5;
  stood.words = "n2 and n3 miss n1";
  stood.log = stood.message = 0;
  given.evidence.hints = {stood};
  Inputs inputs;
  inputs.config = &given.config;
  add_logs(inputs, given.evidence, nullptr);
  const Result<Plan> plan = make_plan(inputs);
  REQUIRE(plan);
  std::vector<std::int64_t> lasts;
  for (const schedule::Schedule& schedule : plan->schedules)
    if (schedule.faults.size() == 1 && schedule.faults[0].kind == FaultKind::pause)
      lasts.push_back(schedule.faults[0].duration_ns / kSecond);
  REQUIRE(lasts.size() >= 2);
  CHECK(lasts.front() == 6);
  CHECK(std::find(lasts.begin(), lasts.end(), 12) != lasts.end());
}

TEST_CASE("two faults that no log reports, and that last while a logged kill happens, are found") {
  const auto config = deployment();
  std::vector<Act> acts;
  for (int i = 0; i < 40; ++i) acts.push_back({1 + 1.2 * i, "n2", "put", "", ""});
  Play play(acts, [](const std::vector<Hit>& hits, int) {
    if (hits.size() != 3 || hits[0].fault->kind != FaultKind::partition || hits[1].fault->kind != FaultKind::pause ||
        hits[2].fault->kind != FaultKind::crash)
      return false;
    const auto on = [&](const Hit& hit) {
      return hits[2].t > hit.t && hits[2].t < hit.t + static_cast<double>(hit.fault->duration_ns) / 1e9;
    };
    return hits[0].fault->node == "n3" && hits[1].fault->node == "n1" && hits[2].fault->node == "n2" && on(hits[0]) &&
           on(hits[1]);
  });
  const trace::Trace without = without_faults(play);
  const std::string life = "store 3 is starting", ready = "ready for requests";
  LogInputs given(config, line(0, life) + line(0.2, ready) + line(31, life) + line(31.2, ready),
                  line(0, life) + line(0.2, ready), &without);
  given.inputs.simplify = false;
  const Result<Diagnosis> found = rose::diagnose::diagnose(given.inputs, play, {});
  REQUIRE(found);
  CHECK(found->verdict == schedule::Verdict::reproduced);
  CHECK(found->schedules <= 60);
}

TEST_CASE("messages of a node's next incarnation do not determine when the workload began") {
  const auto config = deployment();
  trace::Trace control = usual_run();
  control.meta.workload_ts = log_begin() + 3'000'000'000;
  const std::string open = line(0, "starting server") + line(0.5, "listening");
  // The node ended before it had reached the point at which it is ready in the run without faults.
  LogInputs given(config,
                  open + line(5, "a leader is looked for") + line(9, "starting server") + line(9.5, "listening") +
                      line(11, "ready for work") + line(17, "a block is stored"),
                  open + line(2, "ready for work") + line(8, "a block is stored"), &control);
  const Plan plan = given.plan();
  const auto crash = std::find_if(plan.candidates.begin(), plan.candidates.end(),
                                  [](const Candidate& c) { return c.kind == FaultKind::crash; });
  REQUIRE(crash != plan.candidates.end());
  CHECK(std::abs(plan.workload_ts - control.meta.workload_ts) < 100'000'000);
  CHECK(crash->first_ts - plan.workload_ts > 1'900'000'000);
}

TEST_CASE("nodes that restart shortly after each other ended in that order, whatever they logged last") {
  const auto config = deployment();
  const std::string open = line(0, "starting server") + line(0.1, "listening");
  // A supervisor restarts each node 1.1 s after it was killed. n1 had logged nothing in the three seconds before it was
  // killed.
  const std::vector<std::string> killed{
      open + line(10, "a block is stored") + line(14, "starting server") + line(14.1, "listening"),
      open + line(13.1, "connection closed") + line(14.2, "starting server") + line(14.3, "listening"),
      open + line(13.3, "connection closed") + line(14.4, "starting server") + line(14.5, "listening")};
  const Plan plan = planned(config, killed, std::vector<std::string>(3, open + line(10, "a block is stored")), nullptr);
  std::map<std::string, std::int64_t> ended;
  for (const Candidate& c : plan.candidates)
    if (c.kind == FaultKind::crash) ended.emplace(c.node, c.first_ts);
  REQUIRE(ended.size() == 3);
  CHECK(std::abs(ended["n2"] - ended["n1"] - 200'000'000) < 50'000'000);
  CHECK(std::abs(ended["n3"] - ended["n2"] - 200'000'000) < 50'000'000);
}

TEST_CASE("of several faults that each reproduce the bug, narrowing down finds the one with the highest weight") {
  schedule::Schedule all;
  std::set<std::string> fired;
  std::map<std::string, double> believed;
  for (const auto& [id, weight] :
       {std::pair("guess-1", 0.01), {"guess-2", 0.02}, {"guess-3", 0.01}, {"said", 0.6}, {"guess-4", 0.01}}) {
    schedule::Fault fault;
    fault.id = id;
    fault.kind = FaultKind::syscall;
    fault.node = "n2";
    fault.call.syscall = "write";
    all.faults.push_back(fault);
    fired.insert(id);
    believed[id] = weight;
  }
  Narrower narrower(all, fired, believed);
  schedule::Schedule last = all;
  for (int runs = 0; runs < 20; ++runs) {
    const std::optional<Narrower::Part> part = narrower.next();
    if (!part) break;
    // the bug occurs if one of the two faults is in the schedule
    const bool shows = part->schedule.find("said") != nullptr || part->schedule.find("guess-1") != nullptr;
    if (shows) last = part->schedule;
    narrower.learn(shows, {});
  }
  REQUIRE(last.faults.size() == 1);
  CHECK(last.faults[0].id == "said");
}

TEST_CASE("logs without evidence and without a fault-free run give no candidates") {
  const auto config = deployment();
  LogInputs given(config, line(0, "all is well"), "", nullptr);
  CHECK(given.plan().candidates.empty());
}

TEST_CASE("host names in logs match nodes in several forms") {
  const auto config = deployment();  // the nodes n1, n2, ...
  const std::map<std::string, std::string> map = {{"db", "n1"}};
  for (const char* host : {"n2", "n2-1", "shop_n2_1", "n2/postgres", "n2.example.com"}) {
    INFO(host);
    CHECK(node_of_host(host, config, map) == "n2");
  }
  CHECK(node_of_host("db-0/postgres", config, map) == "n1");
  for (const char* host : {"", "web", "n", "-", "an2"}) CHECK(node_of_host(host, config, map).empty());
}

TEST_CASE("a log belongs to the node that its path names") {
  const auto config = deployment();
  const std::map<std::string, std::string> map = {{"db", "n1"}};
  for (const char* path : {"n2.log", "logs/n2/stderr.log", "n1/n2.log.gz", "logs/n2-error.log", "server_n2.2026.log",
                           "n1-logs/app.n2.log"}) {
    INFO(path);
    CHECK(node_of_path(path, config, map) == "n2");
  }
  CHECK(node_of_path("logs/db-slow.log", config, map) == "n1");
  for (const char* path : {"server.log", "n2-logs/server.log", "n1-to-n2.log", "an2.log", "n22.log"}) {
    INFO(path);
    CHECK(node_of_path(path, config, map).empty());
  }
}

TEST_CASE("a schedule whose runs lack the failure's messages is accepted only after others failed") {
  const auto config = deployment();
  Dump dump;
  dump.scf(5, "n1", "write", EIO, "/data/n1/wal");
  dump.crashed(4.5, "n2");
  dump.ends(30);
  for (const bool another : {false, true}) {
    CAPTURE(another);
    Inputs inputs = inputs_of(config, {dump});
    evidence::Source& logs = inputs.sources[0];
    logs.complete = false;
    for (evidence::Observation& observation : logs.observations) {
      const bool names = observation.type == trace::EventType::scf;
      logs.set_origin(observation,
                      {.known = names ? Known::stated : Known::inferred,
                       .reliability = names ? 0.7 : 0.9,
                       .words = names ? "n1.log:7 of n1: 'cannot save: I/O error'" : "n1.log:9 of n1: 'n2 is gone'",
                       .assumed = !names});
    }
    inputs.log_observables = {{"n1 says 1", "n1", 0, "n1.log:7 of n1: 'cannot save: I/O error'"}};
    std::vector<Act> writes;
    for (int i = 1; i <= 6; ++i) {
      Act& write = writes.emplace_back();
      write.t = i;
      write.node = "n1";
      write.syscall = "write";
      write.path = "/data/n1/wal";
    }
    const auto right = [&](const Hit& hit) { return another && hit.fault->kind == FaultKind::syscall && hit.act == 3; };
    const auto wrong = [](const Hit& hit) { return hit.fault->kind == FaultKind::crash; };
    Play play(writes, [&](const std::vector<Hit>& hits, int) {
      return std::any_of(hits.begin(), hits.end(), right) || std::any_of(hits.begin(), hits.end(), wrong);
    });
    play.messages = [&](const std::vector<Hit>& hits) {
      return std::any_of(hits.begin(), hits.end(), right) ? std::vector<std::string>{"n1 says 1"}
                                                          : std::vector<std::string>{};
    };
    const auto d = diagnose::diagnose(inputs, play, nullptr);
    REQUIRE(d);
    REQUIRE(d->found);
    CHECK(d->target_reached);
    REQUIRE(d->found->faults.size() == 1);
    CHECK(d->found->faults[0].kind == (another ? FaultKind::syscall : FaultKind::crash));
    CHECK(d->remarks.doubts.empty() == another);
    const bool waited = std::any_of(d->tried.begin(), d->tried.end(), [](const Tried& one) {
      return one.note.find("other trials come first") != std::string::npos;
    });
    CHECK(waited);
  }
}

TEST_CASE("an error that is logged with a peer's name and path belongs to that peer") {
  const auto config = deployment();
  const std::string usual = line(0, "opening") + line(2, "saved") + line(4, "closed");
  const auto failing = [&](const std::string& text) {
    const Plan plan = planned(config, {usual + line(5, text), usual, usual}, {usual, usual, usual}, nullptr);
    for (const Candidate& c : plan.candidates)
      if (c.error == "ENOSPC") return c.node;
    return std::string();
  };
  CHECK(
      failing(
          "failed to install snapshot: peer=n2 error=\"write /srv/run/n2/data/state.bin: no space left on device\"") ==
      "n2");
  CHECK(failing("failed to install snapshot: error=\"write /srv/run/n1/data/state.bin: no space left on device\"") ==
        "n1");
  CHECK(
      failing("failed to install snapshot: peer=n2 error=\"write /srv/run/data/state.bin: no space left on device\"") ==
      "n1");
  CHECK(failing("failed to copy: error=\"write /srv/run/n2/data/state.bin: no space left on device\"") ==
        "n1");  // no other message shows to which node this folder belongs
}

TEST_CASE("a node that stops logging may be paused, and more likely is if it would have been restarted") {
  auto config = deployment();
  const std::string usual = line(0, "opening") + line(2, "saved") + line(4, "saved") + line(6, "closed");
  std::string missed = "n2 is late";
  const auto candidate = [&](FaultKind kind) -> std::optional<Candidate> {
    const Plan plan =
        planned(config, {usual + line(20, missed) + line(30, "waiting"), line(0, "opening") + line(2, "saved")},
                {usual, usual}, nullptr);
    for (const Candidate& c : plan.candidates)
      if (c.kind == kind && c.node == "n2") return c;
    return std::nullopt;
  };
  const auto hangs = candidate(FaultKind::pause), ends = candidate(FaultKind::crash);
  REQUIRE(hangs);
  REQUIRE(ends);
  CHECK(hangs->weight > ends->weight);
  CHECK(hangs->other_length);                // how long it was paused is unknown
  missed = "n2: connection closed by peer";  // so the machine of n2 answers, and n2 has more likely ended
  REQUIRE(candidate(FaultKind::pause));
  CHECK(candidate(FaultKind::pause)->weight < candidate(FaultKind::crash)->weight);
  missed = "n2 is late";
  config.nodes[1].restart.reset();
  CHECK(candidate(FaultKind::pause)->weight < candidate(FaultKind::crash)->weight);
}

TEST_CASE("a found schedule whose runs contain none of the failure's messages is reported with a warning") {
  const auto config = deployment();
  Dump dump;
  dump.scf(5, "n1", "write", EIO, "/data/n1/wal");
  dump.ends(30);
  for (const bool back : {false, true}) {
    CAPTURE(back);
    Inputs inputs = inputs_of(config, {dump});
    inputs.log_observables = {{"n1 says 1", "n1", 0, "n1.log:7 of n1: 'cannot save: I/O error'"},
                              {"n1 says 2", "n1", 0, ""}};
    Act write;
    write.t = 1;
    write.node = "n1";
    write.syscall = "write";
    write.path = "/data/n1/wal";
    Play play({write}, [](const std::vector<Hit>& hits, int) { return !hits.empty(); });
    play.messages = [back](const std::vector<Hit>& hits) {
      return hits.empty() ? std::vector<std::string>{}
             : back       ? std::vector<std::string>{"n1 says 1"}
                          : std::vector<std::string>{"n1 says 2"};
    };
    const auto d = diagnose::diagnose(inputs, play, nullptr);
    REQUIRE(d);
    REQUIRE(d->found);
    const auto doubted = [&](std::string_view what) {
      return std::any_of(d->remarks.doubts.begin(), d->remarks.doubts.end(),
                         [&](const std::string& doubt) { return doubt.find(what) != std::string::npos; });
    };
    CHECK(doubted("cannot save: I/O error") != back);
    CHECK_FALSE(doubted("says 2"));
    CHECK((in_words(*d).find("messages none occurred") != std::string::npos) != back);
  }
}

TEST_CASE("a node that peers miss while it starts or stops is not partitioned; one missed in between is") {
  const auto config = deployment();
  const std::string one = line(0, "starting server") + line(0.1, "listening on 10.0.0.1:9093");
  const std::string two = line(0, "starting server") + line(5, "listening on 10.0.0.2:9093"),
                    three = line(0, "starting server") + line(6, "listening on 10.0.0.3:9093");
  const auto missed = [](double from, double to, const std::string& name) {
    std::string text;
    for (double at = from; at < to; at += 0.5)
      text += line(at, fmt::format("Connection to {} could not be established", name));
    return text;
  };
  const std::string stops = line(40, "received SIGTERM") + line(40.1, "sockets closed") + line(40.15, "logs closed") +
                            line(40.2, "caches closed") + line(40.25, "timers closed") + line(40.3, "metrics closed") +
                            line(40.35, "all closed");
  const auto cuts = [&](const std::string& between) {
    // Node n3 is the last one to stop.
    const Plan plan = planned(config,
                              {one + missed(1, 5, "n2") + missed(5, 6, "n3") + stops, two + between + stops,
                               three + line(40, "received SIGTERM") + missed(40.5, 44, "n1")},
                              {}, nullptr);
    std::vector<Candidate> found;
    for (const Candidate& c : plan.candidates)
      if (c.kind == FaultKind::partition || c.kind == FaultKind::pause) found.push_back(c);
    return found;
  };
  for (const Candidate& c : cuts("")) {
    INFO(c.why);
    CHECK(c.plainness <= 0.1);
  }
  const std::vector<Candidate> cut = cuts(missed(20, 25, "n1"));
  REQUIRE(!cut.empty());
  CHECK(cut[0].plainness > 0.3);
  CHECK(cut[0].why.find("of n2") != std::string::npos);
  CHECK(std::abs(cut[0].first_ts - log_begin() - 18'000'000'000) < 500'000'000);
  for (std::size_t i = 1; i < cut.size(); ++i) CHECK(cut[i].plainness <= 0.1);
  // Only the end of n3's log exists. It begins with an ordinary line, so it does not show when n3 started to listen.
  const std::string tail =
      line(14, "a compaction is started") + line(15, "a compaction is done") + line(16, "a compaction is started");
  const Plan late = planned(config,
                            {one + missed(10, 14, "n3") + line(16, "all is well"),
                             two + missed(10, 14, "n3") + line(16, "all is well"), tail},
                            {}, nullptr);
  REQUIRE(!late.candidates.empty());
  CHECK(late.candidates[0].plainness > 0.3);
}

TEST_CASE("only a node with a log can have missed what others logged") {
  const auto config = deployment();
  const std::string usual = line(0, "server is starting") + line(6, "done");
  const std::string failed = line(0, "server is starting") + line(5, "applied the last batch twice");
  Play play({{0.5, "n2", "put", "", ""}}, [](const std::vector<Hit>&, int) { return false; });
  const trace::Trace control = without_faults(play);
  const auto believed = [&](std::size_t logs) {
    std::vector<std::string> of_failure{failed, failed, usual}, of_usual(3, usual);
    of_failure.resize(logs);
    of_usual.resize(logs);
    const Plan plan = planned(config, of_failure, of_usual, &control);
    for (const Candidate& c : plan.candidates)
      if (c.kind == FaultKind::pause && c.node == "n3") return c.plainness;
    return 0.0;
  };
  CHECK(believed(2) > 0);
  CHECK(believed(3) > 2 * believed(2));
}

TEST_CASE("if peers have no route to a node, its partition outranks a pause, a failed call and a lost role") {
  const auto config = deployment();
  std::string ticks[3], usual[3];
  const auto tick = [](double at, const std::string& text) { return line(at, "a block is stored, " + text); };
  for (int n = 0; n < 3; ++n)
    for (int second = 0; second <= 40; ++second) {
      usual[n] += tick(second, "as always");
      const bool quiet = (n == 0 && second > 10 && second < 30) ||
                         // n3 has nothing to log, because another node does all the work
                         (n == 2 && second > 14 && second < 30);
      if (!quiet) ticks[n] += tick(second, "as always");
      if (second == 2 && n == 0)
        ticks[n] += line(2.1, "becoming the active controller"),
            usual[n] += line(2.1, "becoming the active controller");
      if (second == 2 && n == 0)
        ticks[n] += line(2.2, "the log begins anew"), usual[n] += line(2.2, "the log begins anew");
      if (n == 1 && second == 13)
        ticks[n] += line(13.1, "becoming the active controller") + line(13.2, "the log begins anew");
      if (n != 0 && second > 11 && second < 28)
        ticks[n] += line(second + 0.5, "Error connecting to node n1:9093\njava.net.SocketException: Invalid argument");
    }
  const Plan plan = planned(config, {ticks[0], ticks[1], ticks[2]}, {usual[0], usual[1], usual[2]}, nullptr);
  REQUIRE(!plan.candidates.empty());
  const Candidate& cut = plan.candidates[0];
  CHECK(cut.kind == FaultKind::partition);
  CHECK(cut.node == "n1");
  CHECK(cut.plainness > 0.5);
  for (const Candidate& c : plan.candidates) {
    INFO(c.why);
    CHECK(c.kind != FaultKind::syscall);
    if (&c != &cut) CHECK(c.plainness < 0.3);
    if (&c != &cut) CHECK(c.kind != FaultKind::partition);
  }
}

TEST_CASE("a node has lost its role if several messages name it, not if one does, and not while nodes start") {
  const auto config = deployment();
  const std::string one = line(0, "starting server") + line(1, "listening"),
                    late = line(0, "starting server") + line(8, "listening");
  const auto role = [](double at) {
    return line(at, "becoming the active controller") + line(at + 0.1, "the log begins anew");
  };
  const auto believed = [&](const std::vector<std::string>& failed, const std::vector<std::string>& usual,
                            const char* node) {
    double most = 0;
    for (const Candidate& c : planned(config, failed, usual, nullptr).candidates)
      if (c.node == node && c.why.find(fmt::format("{} says in a run", node)) != std::string::npos)
        most = std::max(most, c.plainness);
    return most;
  };
  const std::string end = line(40, "done");
  const std::vector<std::string> usual{one + role(2) + end, one + line(3, "voted for the first") + end, one + end};
  const std::vector<std::string> failed{one + role(2) + end, one + line(3, "voted for the first") + role(20) + end,
                                        one + line(19.5, "voted for the first") + end};
  CHECK(believed(failed, usual, "n1") > 0.2);
  CHECK(believed(failed, usual, "n2") < 0.2);
  const auto loads = [&](double at) {
    return line(0, "starting server") + (at < 8 ? line(at, "the loader catches up") : "") + line(8, "listening") +
           (at > 8 ? line(at, "the loader catches up") : "");
  };
  const std::vector<std::string> by_one{one + line(2, "the loader catches up") + end, one + end, late + end};
  CHECK(believed({by_one[0], by_one[1], loads(9) + end}, by_one, "n1") > 0.2);
  CHECK(believed({by_one[0], by_one[1], loads(5) + end}, by_one, "n1") == 0);
}

TEST_CASE("an orderly stop that begins with an error is caused by the program, however much it logs") {
  const auto config = deployment();
  std::string stops;
  for (int i = 0; i < 20; ++i) stops += line(10.1 + 0.01 * i, fmt::format("part {} is shut down", i));
  const std::string begins = line(0, "starting server") + line(1, "listening") + line(2, "store opened"),
                    again = line(14, "starting server") + line(15, "listening") + line(16, "store opened");
  const auto stopped = [&](const std::string& why) {
    LogInputs given(config, begins + line(10, why) + stops + again + line(30, "done"), "");
    const Plan plan = given.plan();
    for (const Candidate& c : plan.candidates)
      if (c.kind == FaultKind::crash && c.why.find("begins again") != std::string::npos &&
          c.why.find("orderly") != std::string::npos)
        return true;
    return false;
  };
  CHECK(stopped("received SIGTERM, shutting down"));
  CHECK_FALSE(stopped("Fatal error during startup. Prepare to shutdown"));
}

TEST_CASE("a node that stops while others continue was stopped, and its peers' messages are not another fault") {
  const auto config = deployment();
  const std::string begins = line(0, "starting server") + line(1, "listening"),
                    stops = line(40, "received SIGTERM, shutting down");
  std::string ticks, missing, few;
  for (int second = 2; second < 40; ++second) ticks += line(second, "a block is stored");
  for (int second = 2; second < 11; ++second) few += line(second, "a block is stored");
  for (int second = 2; second < 40; ++second)
    missing += line(second, second < 12 ? "a block is stored" : "lost connection to n2");
  const std::string early = begins + few + line(11, "received SIGTERM, shutting down") + line(11.2, "all is closed");
  const auto candidates = [&](const std::string& second, const std::string& usually) {
    return planned(config, {begins + missing + stops, second, begins + missing + stops},
                   {begins + ticks + stops, usually, begins + ticks + stops}, nullptr)
        .candidates;
  };
  const std::vector<Candidate> stopped = candidates(early, begins + ticks + stops);
  REQUIRE(!stopped.empty());
  CHECK(stopped[0].kind == FaultKind::crash);
  CHECK(stopped[0].node == "n2");
  CHECK(stopped[0].fault.signal == SIGTERM);
  for (const Candidate& c : stopped) CHECK((c.kind != FaultKind::partition || c.plainness < 0.3));
  // In these runs without faults, n2 also stops early, so its stop is not the fault.
  for (const Candidate& c : candidates(early, early)) CHECK((c.kind != FaultKind::crash || c.plainness < 0.3));
}
