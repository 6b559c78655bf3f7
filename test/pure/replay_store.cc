// The record of a diagnosis's runs. `--resume` reads it again, even if rose was killed while writing it.
#include "replay/store.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "base/file.h"
#include "folder.h"
#include "replay/system.h"

using namespace rose;
using namespace rose::replay;
namespace fs = std::filesystem;

namespace {

config::Config named(const std::string& name) {
  config::Config config;
  config.name = name;
  config::Node node;
  node.name = "n1";
  node.command = {"/bin/" + name};
  config.nodes.push_back(node);
  return config;
}

schedule::Schedule a_pause() {
  schedule::Fault fault;
  fault.id = "f1";
  fault.node = "n1";
  fault.kind = schedule::FaultKind::pause;
  fault.duration_ns = 50'000'000;
  schedule::Schedule schedule;
  schedule.faults.push_back(fault);
  return schedule;
}

// Records a run as a diagnosis does, with one event in its trace.
void record(RunStore& store, int number, schedule::Verdict verdict) {
  const auto directory = store.next(number);
  REQUIRE(directory);
  Run run;
  run.completed = true;
  run.result.number = number;
  run.result.verdict = verdict;
  run.result.directory = *directory;
  trace::Event event{};
  event.type = trace::EventType::ps;
  event.node = run.result.trace.strings.intern("n1");
  run.result.trace.events.push_back(event);
  const schedule::Schedule schedule = a_pause();
  run.result.faults.emplace_back().id = "f1";
  REQUIRE(store.done(run, schedule));
}

RunStore opened(const fs::path& report) {
  auto store = RunStore::open(report, false, "diagnose");
  REQUIRE(store);
  return std::move(*store);
}

std::vector<int> numbers(const std::vector<RunStore::Recorded>& runs) {
  std::vector<int> found;
  for (const auto& run : runs) found.push_back(run.result.number);
  return found;
}

}  // namespace

TEST_CASE("recorded runs are read back in order with their traces, without unfinished ones", "[replay]") {
  const test::Folder temporary;
  const fs::path report = temporary / "report";
  const config::Config system = named("store");
  {
    RunStore store = opened(report);
    const auto none = store.recorded(system);
    REQUIRE(none);
    CHECK(none->empty());
    record(store, 2, schedule::Verdict::reproduced);  // runs that are made at the same time may end in any order
    record(store, 1, schedule::Verdict::not_reproduced);
    CHECK_FALSE(RunStore::open(report, false, "diagnose"));  // because the record is in use
    REQUIRE(store.next(3));                                  // rose is killed during this run
  }
  // Simulate that rose was also killed while it wrote the line of a fourth run.
  const fs::path file = report / "record.jsonl";
  const auto whole = read_file(file);
  REQUIRE(whole);
  REQUIRE(write_file(file, *whole + R"({"run": 4, "verdict": "repro)"));
  {
    RunStore store = opened(report);
    const auto runs = store.recorded(system);
    REQUIRE(runs);
    REQUIRE(numbers(*runs) == std::vector<int>{1, 2});
    CHECK((*runs)[0].result.verdict == schedule::Verdict::not_reproduced);
    CHECK((*runs)[1].result.verdict == schedule::Verdict::reproduced);
    CHECK((*runs)[1].fingerprint == schedule::fingerprint(a_pause()));
    CHECK(store.recorded_trace(2).events.size() == 1);
    CHECK(store.kept() == std::vector<fs::path>{report / "runs" / "run-0002"});
    CHECK_FALSE(fs::exists(report / "runs" / "run-0003"));
    CHECK(read_file(file).value() == *whole);
    record(store, 3, schedule::Verdict::inconclusive);
  }
  RunStore store = opened(report);
  const auto runs = store.recorded(system);
  REQUIRE(runs);
  CHECK(numbers(*runs) == std::vector<int>{1, 2, 3});
}

TEST_CASE("a damaged record of runs loses only the damaged lines and never blocks", "[replay]") {
  const test::Folder temporary;
  const fs::path report = temporary / "report";
  const config::Config system = named("store");
  {
    RunStore store = opened(report);
    REQUIRE(store.recorded(system));
    for (int number : {1, 2, 3}) record(store, number, schedule::Verdict::reproduced);
  }
  const fs::path file = report / "record.jsonl";
  std::string text = read_file(file).value();
  SECTION("an unknown verdict") {
    const std::string word = "\"reproduced\"";
    text.replace(text.find(word, text.find('\n')), word.size(), "\"perhaps\"");
    REQUIRE(write_file(file, text));
    const auto runs = opened(report).recorded(system);
    REQUIRE(runs);
    CHECK(numbers(*runs) == std::vector<int>{1, 3});
    CHECK_FALSE(fs::exists(report / "runs" / "run-0002"));  // this run must be repeated, so its files are removed
  }
  SECTION("a record of another system") {
    const auto runs = opened(report).recorded(named("other"));
    REQUIRE_FALSE(runs);
    CHECK(runs.error().kind == ErrorKind::input);
    CHECK(runs.error().message.find("another configuration") != std::string::npos);
  }
  SECTION("a pipe in place of a trace") {
    const fs::path trace = report / "traces" / "run-0001.dump";
    REQUIRE(fs::remove(trace));
    REQUIRE(::mkfifo(trace.c_str(), 0600) == 0);
    const RunStore store = opened(report);
    CHECK(store.recorded_trace(1).events.empty());
    CHECK(store.recorded_trace(2).events.size() == 1);
  }
  SECTION("a pipe in place of the record") {
    REQUIRE(fs::remove(file));
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    const auto runs = opened(report).recorded(system);
    REQUIRE_FALSE(runs);
    CHECK(runs.error().message.find("not a file that can be read") != std::string::npos);
  }
  SECTION("a diagnosis that starts over") {
    RunStore store = opened(report);
    REQUIRE(store.start_over(system));
    const auto runs = store.recorded(system);
    REQUIRE(runs);
    CHECK(runs->empty());
    CHECK(fs::is_empty(report / "runs"));
    CHECK(fs::is_empty(report / "traces"));
  }
}
