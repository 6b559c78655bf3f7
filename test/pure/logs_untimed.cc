// Logs without times, and two logs shown side by side.
#include "logs_support.h"

#include <unistd.h>

#include <fstream>

#include "base/clock.h"
#include "base/units.h"
#include "folder.h"
#include "logs/side_by_side.h"
#include "logs/untimed.h"

using namespace rose;
using namespace rose::logs;
using namespace rose::logs::test;

namespace {

// The log of a failure, without times, aligned with a normal log whose lines were written at the given seconds.
struct Aligned {
  Templates kinds;
  Logs failure, normal;
  Aligned(std::string failed, std::string usual, const std::vector<std::int64_t>& seconds, std::int64_t end) {
    normal = read_text(std::move(usual), {"a.log", "n1"}, {}, kinds);
    for (std::size_t i = 0; i < seconds.size(); ++i) normal.nodes[0].messages[i].ts_ns = seconds[i] * kSecond;
    failure = read_text(std::move(failed), {"a.log", "n1"}, {}, kinds);
    align(failure, normal, compare(failure, normal, kinds), end * kSecond);
  }
  [[nodiscard]] double at(std::size_t i) const {
    return static_cast<double>(failure.nodes[0].messages.at(i).ts_ns) / 1e9;
  }
};

}  // namespace

TEST_CASE("a log without timestamps is aligned with a fault-free run", "[logs]") {
  const Aligned one("opened store\nready\ncannot save: No space left on device\nsaved\nclosed\n",
                    "opened store\nready\nsaved\nclosed\n", {1, 2, 10, 20}, 30);
  CHECK(one.failure.nodes[0].aligned);
  CHECK(one.at(0) == 1);
  CHECK(one.at(1) == 2);
  CHECK(one.at(2) == Approx(10).margin(0.001));  // the message is about something that happened before
  CHECK(one.at(2) < 10);
  CHECK(one.at(3) == 10);
  CHECK(one.at(4) == 20);
}

TEST_CASE("lines after the last common line are spread over the remaining time", "[logs]") {
  const Aligned one("ready\npanic in the store\nready\n", "ready\n", {6}, 12);
  CHECK(one.at(0) == 6);
  CHECK(one.at(1) == Approx(8));
  CHECK(one.at(2) == Approx(10));
}

TEST_CASE("timed logs and logs without common lines are not aligned", "[logs]") {
  const Aligned timed("2026-01-02 03:04:05 ready\n", "ready\n", {6}, 12);
  CHECK_FALSE(timed.failure.nodes[0].aligned);
  const Aligned strange("what is this\n", "ready to serve\n", {6}, 12);
  CHECK_FALSE(strange.failure.nodes[0].aligned);
  CHECK(strange.failure.nodes[0].messages[0].ts_ns == kNoTime);
}

TEST_CASE("a watch records when lines are written during a run", "[logs]") {
  const rose::test::Folder folder;
  const std::filesystem::path file = folder / "stderr.log";
  Templates kinds;
  std::int64_t between = 0;
  {
    Watch watch([&] { return std::vector<Input>{{file, "n1"}}; });
    std::ofstream(file) << "store opened\n";
    for (int i = 0; i < 60'000 && watch.marks() == 0; ++i) ::usleep(1000);
    between = wall_ns();
    std::ofstream(file, std::ios::app) << "ready\nserving\n";
    watch.stop();
    Logs logs = read_files({{file, "n1"}}, kinds);
    REQUIRE(logs.nodes[0].messages.size() == 3);
    watch.apply(logs);
    const std::vector<Message>& messages = logs.nodes[0].messages;
    CHECK(messages[0].ts_ns < between);
    CHECK(messages[0].ts_ns > between - 60 * kSecond);
    CHECK(messages[1].ts_ns >= between - kSecond / 50);
    CHECK(messages[2].ts_ns == messages[1].ts_ns);
  }
}

TEST_CASE("recorded write times are kept with the run and read back", "[logs]") {
  const Watch::Growth growth{
      {"/run/1/n1/stderr.log", {{10, 5}, {25, 9}}}, {"/run/1/n2/a b.log", {{1, 3}}}, {"/elsewhere.log", {{1, 1}}}};
  const std::string text = growth_text(growth, "/run/1");
  const Watch::Growth back = growth_of_text(text, "/run/7");
  REQUIRE(back.size() == 2);
  REQUIRE(back.at("/run/7/n1/stderr.log").size() == 2);
  CHECK(back.at("/run/7/n1/stderr.log")[1].size == 25);
  CHECK(back.at("/run/7/n1/stderr.log")[1].ts_ns == 9);
  CHECK(back.at("/run/7/n2/a b.log")[0].ts_ns == 3);
  // Lines that do not have the file's format are ignored.
  CHECK(growth_of_text("1 2\n/x\n3\n4 5 6\n-1 7\n9 8\n2 9\n\xff", "/r").at("/r/x").size() == 1);
}

TEST_CASE("lines that both logs have share a row", "[logs]") {
  Templates kinds;
  std::string usual, failed;
  for (int i = 0; i < 40; ++i) usual += "request " + std::to_string(i) + " done\n";
  failed = usual + "cannot save: No space left on device\n";
  usual += "saved 40 records\n";
  const Logs run = read_text(usual, {"a.log", "n1"}, {}, kinds);
  const Logs failure = read_text(failed, {"a.log", "n1"}, {}, kinds);
  const std::vector<SideBySide> both = side_by_side(failure, run, kinds);
  REQUIRE(both.size() == 1);
  CHECK(both[0].node == "n1");
  const std::vector<SideBySideRow>& rows = both[0].rows;
  REQUIRE(rows.size() == 9);  // three rows, one for what is omitted, three rows, and two that differ
  CHECK(rows[0].failure == "request 0 done");
  CHECK(rows[0].run == "request 0 done");
  CHECK(rows[3].left_out == 34);
  CHECK(rows[7].failure == "cannot save: No space left on device");
  CHECK(rows[7].run.empty());
  CHECK(rows[8].failure.empty());
  CHECK(rows[8].run == "saved 40 records");
}

TEST_CASE("two logs side by side are limited in size and cut at whole characters", "[logs]") {
  Templates kinds;
  std::string failed, run;
  for (int i = 0; i < 1000; ++i) failed += std::string(300, static_cast<char>('a' + i % 26)) + "\n";
  std::string umlauts = "x";
  for (int i = 0; i < 300; ++i) umlauts += "\xc3\xa4";
  run = umlauts + "\n";
  const std::vector<SideBySide> both =
      side_by_side(read_text(failed, {"a.log", "n1"}, {}, kinds), read_text(run, {"a.log", "n1"}, {}, kinds), kinds);
  REQUIRE(both.size() == 1);
  CHECK(both[0].rows.size() <= kMostSideBySideRows + 1);
  for (const SideBySideRow& row : both[0].rows) {
    CHECK(row.failure.size() <= kMostSideBySideText + 3);
    if (row.run.empty()) continue;
    CHECK(row.run.size() == 241 + 3 - 2);
    CHECK(row.run.ends_with("\xa4..."));
  }
}
