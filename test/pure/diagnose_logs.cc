// What logs become for the search: candidates by what messages say, by what stands before them, and on which time line.
#include <catch2/catch.hpp>

#include "diagnose/from_logs.h"
#include "diagnose_world.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::FaultKind;

namespace {

std::string line(double second, const std::string& text) {
  const auto ms = static_cast<int>(second * 1000);
  return fmt::format("2026-01-02 03:{:02}:{:02}.{:03} INFO {}\n", ms / 60'000, ms / 1000 % 60, ms % 1000, text);
}

// Of one node; `usual` is the log of a run without faults, of which `control` is the trace.
struct Told {
  logs::Templates kinds;
  logs::Evidence evidence;
  Inputs inputs;

  Told(const config::Config& config, const std::string& failed, const std::string& usual, const trace::Trace* control) {
    inputs.config = &config;
    if (!usual.empty()) evidence.normal = logs::read_text(usual, {"n2.log", "n2"}, {}, kinds);
    evidence.failure = logs::read_text(failed, {"n2.log", "n2"}, {}, kinds);
    evidence.difference = logs::compare(evidence.failure, evidence.normal, kinds);
    evidence.hints = logs::find_hints(evidence.failure, evidence.normal, evidence.difference, node_names_in_logs(config, {}));
    add_logs(inputs, evidence, control);
  }
  Plan plan() {
    Result<Plan> made = make_plan(inputs);
    if (!made) FAIL(made.error().message);
    return *std::move(made);
  }
};

// The run without faults began at kBase; its log's first line was written then.
std::string usual_log() { return line(0, "opening the store") + line(1, "saved table one") + line(2, "checkpoint") + line(3, "closed"); }

trace::Trace usual_run(std::int64_t log_begin) {
  Dump dump;
  dump.started(-0.5, "n2");
  dump.sys(0.5, "n2", "openat", "/run/1/n2/data/store.db");
  dump.sys(1.5, "n2", "openat", "/run/1/n2/data/check.tmp");
  dump.sys(1.9, "n2", "rename", "/run/1/n2/data/check.tmp");
  dump.ends(5);
  trace::Trace trace = dump.take();
  for (trace::Event& event : trace.events) event.ts_ns += log_begin - kBase;
  for (std::int64_t* one : {&trace.meta.workload_ts, &trace.meta.begin_ns, &trace.meta.end_ns})
    if (*one != 0) *one += log_begin - kBase;
  return trace;
}

std::int64_t log_begin() {
  logs::Templates kinds;
  return logs::read_text(line(0, "x"), {"a", ""}, {}, kinds).nodes[0].messages[0].ts_ns;
}

}  // namespace

TEST_CASE("a message that names call, error and path is the first candidate, with the message as its reason") {
  const auto config = deployment();
  const trace::Trace control = usual_run(log_begin());
  Told told(config, line(0, "opening the store") + line(1, "saved table one") + line(2, "cannot write /prod/n2/data/store.db: No space left on device"),
            usual_log(), &control);
  const Plan plan = told.plan();
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
  // What a right run must write again.
  bool wanted = false;
  for (const Observable& one : plan.observables) wanted = wanted || (one.key.find(" says ") != std::string::npos && one.node == "n2");
  CHECK(wanted);
}

TEST_CASE("a message that names no file means those that the node had just touched") {
  const auto config = deployment();
  const trace::Trace control = usual_run(log_begin());
  Told told(config, line(0, "opening the store") + line(1, "saved table one") + line(2, "checkpoint failed: No space left on device"), usual_log(), &control);
  const Plan plan = told.plan();
  REQUIRE(!plan.candidates.empty());
  REQUIRE(plan.candidates[0].fault.call.path);
  CHECK(plan.candidates[0].fault.call.path->find("check.tmp") != std::string::npos);
}

TEST_CASE("what a program says before it ends itself is not explained by its end") {
  const auto config = deployment();
  const trace::Trace control = usual_run(log_begin());
  Told told(config, line(0, "opening the store") + line(1, "saved table one") + line(2, "panic: rename /prod/n2/data/check.tmp: no space left on device"), usual_log(), &control);
  const Plan plan = told.plan();
  std::size_t calls = 0;
  for (const Candidate& c : plan.candidates) calls += c.kind == FaultKind::syscall && c.error == "ENOSPC" ? 1 : 0;
  CHECK(calls >= 3);  // rename itself, and what else returns that
  REQUIRE(!plan.candidates.empty());
  CHECK(plan.candidates[0].syscall.starts_with("rename"));
  for (const Discarded& one : plan.discarded) CHECK(one.why.find("own end") == std::string::npos);
}

TEST_CASE("an error of a connection is none of the files that the node works on") {
  const auto config = deployment();
  const trace::Trace control = usual_run(log_begin());
  Told told(config, line(0, "opening the store") + line(1, "saved table one") + line(2, "write failed: Connection reset by peer"), usual_log(), &control);
  for (const Candidate& c : told.plan().candidates) {
    INFO(c.why);
    CHECK((c.error != "ECONNRESET" || c.path.empty()));
  }
}

TEST_CASE("where no message names a cause, the calls that come shortly before are tried, nearest first") {
  const auto config = deployment();
  const trace::Trace control = usual_run(log_begin());
  Told told(config, line(10, "opening the store") + line(11, "saved table one") + line(12.5, "the table is odd") + line(13, "closed"), usual_log(), &control);
  CHECK(std::none_of(told.evidence.hints.begin(), told.evidence.hints.end(), [](const logs::Hint& hint) { return hint.weight > 0.3; }));
  const Plan plan = told.plan();
  const Candidate* best = nullptr;
  for (const Candidate& c : plan.candidates)
    if (c.kind == FaultKind::syscall && (best == nullptr || c.weight > best->weight)) best = &c;
  REQUIRE(best != nullptr);
  CHECK(best->path.find("check.tmp") != std::string::npos);
  // A full disk is likelier than a file that can't be opened.
  double write = 0, open = 0;
  for (const Candidate& c : plan.candidates) {
    if (c.kind != FaultKind::syscall || c.path.find("store.db") == std::string::npos) continue;
    if (c.syscall == "write" && c.error == "ENOSPC") write = c.weight;
    if (c.syscall == "openat") open = c.weight;
  }
  CHECK(write > open);
  CHECK(open > 0);
  CHECK(best->why.find("no message names a cause") == 0);
  CHECK(std::any_of(plan.candidates.begin(), plan.candidates.end(), [](const Candidate& c) { return c.kind == FaultKind::crash && c.node == "n2"; }));
}

TEST_CASE("what the run without faults did stands on the incident's time line") {
  const auto config = deployment();
  const trace::Trace control = usual_run(log_begin());
  // Ten times as slow, a day later.
  Told told(config, line(0, "opening the store") + line(10, "saved table one") + line(20, "checkpoint") + line(30, "closed") + line(31, "odd"), usual_log(), &control);
  REQUIRE(told.inputs.traces.size() == 1);
  std::int64_t first = 0, rename = 0;
  const int number = kernel::find_syscall("rename")->number;
  for (const trace::Event& event : told.inputs.traces[0].events)
    if (event.type == trace::EventType::sys && event.syscall == number) rename = event.ts_ns;
  first = told.evidence.failure.nodes[0].messages[0].ts_ns;
  CHECK(rename - first == 19'000'000'000);
}

TEST_CASE("a node that begins again was killed, and comes back") {
  const auto config = deployment();
  Told told(config, line(0, "store 3 is starting") + line(1, "saved table one") + line(2, "saved table two") + line(4, "store 3 is starting") + line(5, "recovered"),
            line(0, "store 3 is starting") + line(1, "saved table one") + line(2, "saved table two"), nullptr);
  const Plan plan = told.plan();
  REQUIRE(!plan.candidates.empty());
  CHECK(plan.candidates[0].kind == FaultKind::crash);
  CHECK(plan.candidates[0].fault.signal == SIGKILL);
  CHECK(plan.candidates[0].why.find("begins again") != std::string::npos);
}

TEST_CASE("logs that say nothing, and no run to compare with, leave nothing to try") {
  const auto config = deployment();
  Told told(config, line(0, "all is well"), "", nullptr);
  CHECK(told.plan().candidates.empty());
}

TEST_CASE("hosts that lines of logs name are nodes by several forms of their names") {
  const auto config = deployment();  // n1, n2, ...
  const std::map<std::string, std::string> map = {{"db", "n1"}};
  for (const char* host : {"n2", "n2-1", "shop_n2_1", "n2/postgres", "n2.example.com"}) {
    INFO(host);
    CHECK(node_of_host(host, config, map) == "n2");
  }
  CHECK(node_of_host("db-0/postgres", config, map) == "n1");
  for (const char* host : {"", "web", "n", "-", "an2"}) CHECK(node_of_host(host, config, map).empty());
}
