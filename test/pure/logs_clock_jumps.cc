// A clock that is set while a log is written must be distinguished from silences, late lines and changes of the time
// zone.
#include "logs/clock_jumps.h"

#include <fmt/format.h>

#include "base/units.h"
#include "folder.h"
#include "logs_support.h"

using namespace rose;
using namespace rose::logs;
using namespace rose::logs::test;

namespace {

constexpr int kHour = 3600;

std::string line(int second, const std::string& text = "tick") {
  return fmt::format("2026-01-02 {:02}:{:02}:{:02},123 INFO  [main:Server] {} {}\n", 3 + second / kHour,
                     second / 60 % 60, second % 60, text, second);
}

// The log of a node that writes a line every two seconds. `off` gives the number of seconds by which the clock is ahead
// at a given second.
template <typename Off>
std::string ticking(int from, int to, Off&& off) {
  std::string text;
  for (int second = from; second <= to; second += 2) text += line(second + off(second));
  return text;
}
std::string right(int from = 600, int to = 660) {
  return ticking(from, to, [](int) { return 0; });
}

struct Cluster {
  rose::test::Folder folder;
  Templates kinds;
  Logs logs;
  explicit Cluster(const std::vector<std::string>& texts) {
    std::vector<Input> inputs;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string node = fmt::format("n{}", i + 1);
      REQUIRE(write_file(folder / (node + ".log"), texts[i]));
      inputs.push_back({folder / (node + ".log"), node});
    }
    logs = read_files(inputs, kinds);
  }
  [[nodiscard]] std::int64_t time(std::size_t node, std::size_t message) const {
    return logs.nodes.at(node).messages.at(message).ts_ns;
  }
};

}  // namespace

TEST_CASE("timestamps that jump ahead while the peers' do not are a clock step") {
  const Cluster c({right(), right(), ticking(600, 660, [](int second) { return second > 630 ? kHour : 0; })});
  REQUIRE(c.logs.jumps.size() == 1);
  const ClockJump& jump = c.logs.jumps[0];
  CHECK(c.logs.nodes[jump.log].node == "n3");
  CHECK(jump.change_ns == kHour * kSecond);
  CHECK(jump.at_ns == c.time(0, 16));
  CHECK(jump.until_ns == kNoTime);
  CHECK(jump.weight >= 0.8);
  CHECK(jump.words == "n3.log:17 of n3: its times jump forward by 1h");
  // After the jump is found, the times of n3 are the same as those of the others.
  for (std::size_t i = 0; i < 31; ++i) CHECK(c.time(2, i) == c.time(0, i));
}

TEST_CASE("a quiet log that ends a little later than the others has no clock step") {
  const Cluster c({right(), right(), ticking(600, 646, [](int) { return 0; }) + line(661)});
  CHECK(c.logs.jumps.empty());
}

TEST_CASE("if the peers log little, a log that continues after theirs has no clock step") {
  const auto goes_on = ticking(600, 630, [](int) { return 0; }) + ticking(653, 665, [](int) { return 0; });
  CHECK(Cluster({goes_on, line(600) + line(601) + line(607)}).logs.jumps.empty());
  // gaps as long as this one are usual in this log
  CHECK(Cluster({goes_on, right(590, 604) + right(629, 631)}).logs.jumps.empty());
  CHECK(Cluster({goes_on, right(600, 632)}).logs.jumps.size() == 1);
}

TEST_CASE("a silent node that is stopped after the others is not one with a clock step") {
  const auto stop = line(645, "User requested shutdown") + line(645, "Calling fsync on the file") +
                    line(645, "Saving the snapshot") + line(645, "DB saved on disk") + line(645, "ready to exit");
  const auto silent = ticking(600, 630, [](int) { return 0; });
  CHECK(Cluster({silent + stop, right(600, 637)}).logs.jumps.empty());
  // these messages do not report a stop
  CHECK(Cluster({silent + ticking(645, 655, [](int) { return 0; }), right(600, 637)}).logs.jumps.size() == 1);
}

TEST_CASE("a clock step during an unusually long silence is measured without the silence") {
  const Cluster c(
      {right(), right(), ticking(600, 626, [](int) { return 0; }) + ticking(632, 660, [](int) { return kHour; })});
  REQUIRE(c.logs.jumps.size() == 1);
  CHECK(c.logs.jumps[0].change_ns == kHour * kSecond);
  // The jump is at the first line with a changed time, not at the line before it.
  CHECK(c.logs.jumps[0].at_ns == c.time(0, 16));
}

TEST_CASE("a step backwards, or forwards and back, is recognised from the log alone") {
  const Cluster back({ticking(4600, 4660, [](int second) { return second > 4630 ? -kHour : 0; }), right(4600, 4660)});
  REQUIRE(back.logs.jumps.size() == 1);
  CHECK(back.logs.jumps[0].change_ns == -kHour * kSecond);
  CHECK(back.time(0, 30) == back.time(1, 30));

  const Cluster both({ticking(600, 700, [](int second) { return second > 630 && second <= 650 ? 300 : 0; })});
  REQUIRE(both.logs.jumps.size() == 1);
  CHECK(both.logs.jumps[0].change_ns == 300 * kSecond);
  CHECK(both.logs.jumps[0].until_ns - both.logs.jumps[0].at_ns == 20 * kSecond);
  CHECK(both.logs.jumps[0].words == "n1.log:17 of n1: its times jump forward by 5m, and back 20s later");
  for (std::size_t i = 1; i < 51; ++i) CHECK(both.time(0, i) - both.time(0, i - 1) == 2 * kSecond);

  const Cluster other_way({ticking(4600, 4700, [](int second) { return second > 4630 && second <= 4650 ? -kHour : 0; }),
                           right(4600, 4700)});
  REQUIRE(other_way.logs.jumps.size() == 1);
  CHECK(other_way.logs.jumps[0].change_ns == -kHour * kSecond);
  CHECK(other_way.logs.jumps[0].until_ns != kNoTime);
}

TEST_CASE("silences, late lines and jumps of all logs are not clock steps") {
  // If there is only one node, its log may as well contain a silence of one hour.
  CHECK(Cluster({ticking(600, 660, [](int second) { return second > 630 ? kHour : 0; })}).logs.jumps.empty());
  // The other nodes log later than the jump, so they went on in that hour.
  CHECK(Cluster({right() + right(600 + kHour, 660 + kHour),
                 ticking(600, 660, [](int second) { return second > 630 ? kHour : 0; })})
            .logs.jumps.empty());
  // The times of n2 jump by an hour, but this is a silence: if the clock had been set, n2 would have ended soon after
  // that, while n1 went on for more than 20 minutes.
  CHECK(Cluster({right(600, 2000), ticking(600, 660, [](int second) { return second > 630 ? kHour : 0; })})
            .logs.jumps.empty());
  // One line is late.
  CHECK(Cluster({right(600, 630) + line(600, "slow") + right(632, 660), right()}).logs.jumps.empty());
  // Summer time ends for all nodes.
  const auto winter = ticking(4600, 4660, [](int second) { return second > 4630 ? -kHour : 0; });
  const Cluster zone({winter, winter, winter});
  CHECK(zone.logs.jumps.empty());
  for (std::size_t i = 1; i < 31; ++i) CHECK(zone.time(1, i) - zone.time(1, i - 1) == 2 * kSecond);
  // Times that count from the start of the program, here the kernel, are low again after each start.
  std::string boots;
  for (int start = 0; start < 2; ++start)
    for (int i = 0; i < 20; ++i) boots += fmt::format("[{:5}.000000] kernel: thing {}\n", 100 + i * 3, i);
  CHECK(Cluster({boots, right()}).logs.jumps.empty());
}
