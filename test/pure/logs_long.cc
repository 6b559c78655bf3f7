// Logs of several hours: the everyday messages of a system before and after an outage, and logs of a system in which
// nothing went wrong.
#include "logs_support.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>

#include "base/units.h"
#include "folder.h"
#include "logs/evidence.h"

using namespace rose;
using namespace rose::logs;
using namespace rose::logs::test;

namespace {

constexpr int kHour = 3600;

std::string at(int seconds, const std::string& text) {
  return fmt::format("2024-03-11 {:02}:{:02}:{:02} {}\n", 10 + seconds / kHour, seconds / 60 % 60, seconds % 60, text);
}

// A node's log of one hour. Every ten seconds it contains one of several everyday messages, except in the gap. `lines`,
// which must be sorted by time, are added.
std::string hour(const std::vector<std::pair<int, std::string>>& lines, int gap_from = 0, int gap_to = 0) {
  static const std::vector<std::string> usual = {"INFO compacted the table", "INFO answered a client",
                                                 "INFO wrote a checkpoint", "INFO took a snapshot"};
  std::string text;
  std::size_t next = 0;
  for (int seconds = 0; seconds < kHour; seconds += 10) {
    for (; next < lines.size() && lines[next].first <= seconds; ++next)
      text += at(lines[next].first, lines[next].second);
    if (seconds < gap_from || seconds >= gap_to) text += at(seconds, usual[static_cast<std::size_t>(seconds / 10 % 4)]);
  }
  for (; next < lines.size(); ++next) text += at(lines[next].first, lines[next].second);
  return text;
}

// The hints in the logs of n1, n2, ..., if there is no run without faults.
struct Long {
  rose::test::Folder folder;
  Templates kinds;
  Evidence evidence;

  explicit Long(const std::vector<std::string>& texts) {
    std::vector<Input> inputs;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      inputs.push_back({folder / fmt::format("{}.log", i + 1), fmt::format("n{}", i + 1)});
      std::ofstream(inputs.back().path) << texts[i];
    }
    evidence.failure = read_files(inputs, kinds);
    evidence.difference = compare(evidence.failure, evidence.normal, kinds);
    evidence.hints = find_hints(evidence.failure, evidence.normal, evidence.difference,
                                {{"n1", {"10.0.0.1"}}, {"n2", {"10.0.0.2"}}, {"n3", {"10.0.0.3"}}});
  }
  [[nodiscard]] const Hint* find(Hint::Kind kind, const std::string& node) const {
    for (const Hint& hint : evidence.hints)
      if (hint.kind == kind && hint.node == node) return &hint;
    return nullptr;
  }
};

}  // namespace

TEST_CASE("a single everyday error in an hour of a log is only a weak hint", "[logs]") {
  const std::string reset = "WARN read from 10.0.0.77:4011: Connection reset by peer";
  const Long middle({hour({{1200, reset}}), hour({}), hour({})});
  for (const Hint& hint : middle.evidence.hints) CHECK(hint.passing);
  const Hint* call = middle.find(Hint::Kind::call, "n1");
  REQUIRE(call != nullptr);
  CHECK(call->error == ECONNRESET);
  CHECK(call->syscalls.size() == 1);
  // An error of a disk may belong to the outage wherever it is in the log; other errors only if they are near its end.
  const Long last({hour({{3500, reset}}), hour({}), hour({})});
  REQUIRE(last.find(Hint::Kind::call, "n1") != nullptr);
  CHECK_FALSE(last.find(Hint::Kind::call, "n1")->passing);
  const Long disk({hour({{1200, "ERROR write /data/x: Input/output error"}}), hour({}), hour({})});
  REQUIRE(disk.find(Hint::Kind::call, "n1") != nullptr);
  CHECK_FALSE(disk.find(Hint::Kind::call, "n1")->passing);
}

TEST_CASE("an error that stands alone counts less than errors that several messages report together", "[logs]") {
  const std::string alone = "ERROR read /data/x: Input/output error";
  const std::vector<std::pair<int, std::string>> outage = {{3000, "ERROR no answer from n2 within 5s"},
                                                           {3001, "ERROR write /data/y: No space left on device"},
                                                           {3002, "ERROR fsync /data/z: No space left on device"}};
  std::vector<std::pair<int, std::string>> both = {{600, alone}};
  both.insert(both.end(), outage.begin(), outage.end());
  const Long with({hour(both), hour({}), hour({})}), without({hour({{600, alone}}), hour({}), hour({})});
  const auto weight = [](const Long& logs) {
    for (const Hint& hint : logs.evidence.hints)
      if (hint.kind == Hint::Kind::call && hint.path == "/data/x") return hint.weight;
    return 0.0;
  };
  CHECK(weight(with) > 0);
  CHECK(weight(with) < weight(without));
}

TEST_CASE("a peer that was missed twice in an hour was not missing in between", "[logs]") {
  const Long twice({hour({{300, "WARN no answer from n2"},
                          {3000, "WARN no answer from n2"},
                          {3010, "WARN no answer from n2"},
                          {3020, "WARN no answer from n2"}}),
                    hour({}), hour({})});
  const Hint* silence = twice.find(Hint::Kind::silence, "n1");
  REQUIRE(silence != nullptr);
  CHECK(silence->until_ns - silence->ts_ns == 20 * kSecond);
  CHECK(silence->count == 3);
}

TEST_CASE("a command that fails while its caller lives on is not the end of the node", "[logs]") {
  const std::string failed = "WARN the check command exited with status 2";
  const Long goes_on({hour({{3400, failed}}), hour({}), hour({})});
  const Hint* end = goes_on.find(Hint::Kind::end, "n1");
  REQUIRE(end != nullptr);
  CHECK(end->unnamed);
  CHECK(end->weight < 0.3);
  const Long begins_again({hour({{3400, failed}, {3401, "INFO starting server, version 1.2.3"}}), hour({}), hour({})});
  REQUIRE(begins_again.find(Hint::Kind::end, "n1") != nullptr);
  CHECK_FALSE(begins_again.find(Hint::Kind::end, "n1")->unnamed);
}

TEST_CASE("a message that a node logs all the time is not its end, and short pauses are no fault", "[logs]") {
  std::vector<std::pair<int, std::string>> lines;
  for (int seconds = 5; seconds < kHour; seconds += 30) {
    lines.emplace_back(seconds, "WARN task yields due to uncaught exception");
    lines.emplace_back(seconds + 1, fmt::format("INFO young gc took {}ms", 700 + seconds % 7));
  }
  const Long usual({hour(lines), hour({}), hour({})});
  CHECK(usual.find(Hint::Kind::end, "n1") == nullptr);
  CHECK(usual.find(Hint::Kind::stop, "n1") == nullptr);
  lines.emplace_back(3590, "INFO young gc took 9.5s");
  const Long longer({hour(lines), hour({}), hour({})});
  const Hint* stop = longer.find(Hint::Kind::stop, "n1");
  REQUIRE(stop != nullptr);
  CHECK(stop->took_ns == 9'500'000'000);
}

TEST_CASE("an error of a resource in all logs all the time is no hint, unless there is no other", "[logs]") {
  std::vector<std::pair<int, std::string>> lines;
  for (int seconds = 5; seconds < kHour; seconds += 60) lines.emplace_back(seconds, "WARN not enough memory to flush");
  std::vector<std::pair<int, std::string>> with_outage = lines;
  with_outage.emplace_back(3590, "ERROR write /data/x: No space left on device");
  const Long outage({hour(with_outage), hour(lines), hour(lines)});
  CHECK(outage.find(Hint::Kind::call, "n2") == nullptr);
  REQUIRE(outage.find(Hint::Kind::call, "n1") != nullptr);
  CHECK(outage.find(Hint::Kind::call, "n1")->error == ENOSPC);
  const Long only({hour(lines), hour(lines), hour(lines)});
  CHECK(only.find(Hint::Kind::call, "n2") != nullptr);
}

TEST_CASE("one node that misses a peer is enough evidence if the peer's log has an unusual gap", "[logs]") {
  const std::vector<std::pair<int, std::string>> misses = {{3042, "WARN no heartbeat from n2 for 40s"}};
  const Long gap({hour(misses), hour({}, 3000, 3060), hour({})});
  const Hint* stop = gap.find(Hint::Kind::stop, "n2");
  REQUIRE(stop != nullptr);
  CHECK(stop->until_ns - stop->ts_ns < 60 * kSecond);
  const Long none({hour(misses), hour({}), hour({})});
  CHECK(none.find(Hint::Kind::stop, "n2") == nullptr);
}

TEST_CASE("a refusing node that then finds traces of an interrupted life had ended", "[logs]") {
  const std::vector<std::pair<int, std::string>> refused = {
      {3001, "WARN connect to 10.0.0.2:7000: Connection refused"}};
  const Long ended({hour(refused), hour({{3040, "WARN unclean shutdown detected, recovering"}}, 3000, 3040), hour({})});
  const Long alive({hour(refused), hour({}), hour({})});
  const auto weight = [](const Long& logs) {
    const Hint* end = logs.find(Hint::Kind::end, "n2");
    return end == nullptr ? 0 : end->weight;
  };
  CHECK(weight(ended) > 0.8);
  CHECK(weight(alive) < 0.3);
}

TEST_CASE("messages before the one that says that a program is up belong to its start", "[logs]") {
  const std::string torn = "WARN found a corrupted index file, rebuilding it: checksum mismatch";
  const Long start({hour({{1, torn}, {3, "INFO server up and running"}}), hour({}), hour({})});
  CHECK(start.evidence.hints.empty());
  const Long later(
      {hour({{1, "INFO loaded the plugin"}, {3, "INFO server up and running"}, {3500, torn}}), hour({}), hour({})});
  CHECK_FALSE(later.evidence.hints.empty());
}

TEST_CASE("a program's own failure before a gap or a start is an end, even if the log lacks its first start",
          "[logs]") {
  const std::string panic = "ERROR terminating due to java.lang.OutOfMemoryError: Java heap space";
  const Long gap({hour({{2999, panic}}, 3000, 3050), hour({}), hour({})});
  const Hint* end = gap.find(Hint::Kind::end, "n1");
  REQUIRE(end != nullptr);
  CHECK(end->itself);
  const Long start({hour({{2999, panic}, {3001, "INFO starting server, version 1.2.3"}}), hour({}), hour({})});
  CHECK(start.find(Hint::Kind::end, "n1") != nullptr);
  const Long goes_on({hour({{2999, panic}}), hour({}), hour({})});
  CHECK(goes_on.find(Hint::Kind::end, "n1") == nullptr);
}

TEST_CASE("of two programs in one log, the one whose lines stop has ended if its port refuses connections", "[logs]") {
  std::vector<std::pair<int, std::string>> service, until;
  for (int seconds = 5; seconds < kHour; seconds += 20) {
    service.emplace_back(seconds, "INFO the index merged a segment");
    if (seconds < 3000) until.push_back(service.back());
  }
  const std::vector<std::pair<int, std::string>> refused = {
      {3001, "WARN connect to 10.0.0.2:9200: Connection refused"}};
  const Long ended({hour(refused), hour(until), hour({})}), alive({hour(refused), hour(service), hour({})});
  REQUIRE(ended.find(Hint::Kind::end, "n2") != nullptr);
  REQUIRE(alive.find(Hint::Kind::end, "n2") != nullptr);
  CHECK(ended.find(Hint::Kind::end, "n2")->weight > 0.5);
  CHECK(alive.find(Hint::Kind::end, "n2")->weight < 0.3);
}

TEST_CASE("messages of peers during an orderly restart of a node do not report an outage", "[logs]") {
  const std::vector<std::pair<int, std::string>> restart = {{2000, "INFO received SIGTERM, shutting down"},
                                                            {2020, "INFO starting server, version 1.2.3"},
                                                            {2025, "INFO ready for connections"}};
  const std::vector<std::pair<int, std::string>> refused = {{2005, "WARN connect to 10.0.0.2:7000: Connection refused"},
                                                            {2010, "WARN no answer from n2"}};
  const Long planned({hour(refused), hour(restart, 2000, 2020), hour({})});
  for (const Hint& hint : planned.evidence.hints) CHECK(hint.weight < 0.3);
  const Hint* end = planned.find(Hint::Kind::end, "n2");
  REQUIRE(end != nullptr);
  CHECK(end->signal == 15);
  const Long killed({hour(refused), hour({restart.begin() + 1, restart.end()}, 2000, 2020), hour({})});
  REQUIRE(killed.find(Hint::Kind::end, "n2") != nullptr);
  CHECK(killed.find(Hint::Kind::end, "n2")->weight > 0.5);
}

TEST_CASE("an unusual gap is a weak hint at a pause, or at an end if the node then starts", "[logs]") {
  const Long gap({hour({}, 3000, 3060), hour({}), hour({})});
  const Hint* stop = gap.find(Hint::Kind::stop, "n1");
  REQUIRE(stop != nullptr);
  CHECK(stop->until_ns - stop->ts_ns == 70 * kSecond);
  CHECK(stop->weight < 0.3);
  const Long start({hour({{3060, "INFO starting server, version 1.2.3"}}, 3000, 3060), hour({}), hour({})});
  REQUIRE(start.find(Hint::Kind::end, "n1") != nullptr);
  CHECK(start.find(Hint::Kind::stop, "n1") == nullptr);
  const Long all({hour({}, 3000, 3060), hour({}, 3000, 3060), hour({}, 3000, 3060)});
  CHECK(all.evidence.hints.empty());
}
