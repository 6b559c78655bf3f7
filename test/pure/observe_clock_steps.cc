// Which readings of the clocks show that the wall clock was set. The readings are scripted.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "observe/clock_steps.h"

using rose::observe::ClockSteps;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kOffset = 1'763'755'200 * kSecond;

}  // namespace

TEST_CASE("a clock step is recorded with its size and its time on the new clock") {
  ClockSteps steps(kOffset);
  std::int64_t offset = kOffset;
  const auto read = [&] { return offset; };
  steps.look(1 * kSecond, read);
  offset += 900'000;  // as if a reading were inexact
  steps.look(2 * kSecond, read);
  CHECK(steps.sentences("h1", offset).empty());
  offset = kOffset + 3600 * kSecond;
  steps.look(3 * kSecond, read);
  steps.look(4 * kSecond, read);
  offset -= 2 * kSecond;
  steps.look(5 * kSecond, read);
  CHECK(steps.sentences("h1", offset) ==
        std::vector<std::string>{"h1: the clock was set forward by 1h at 2025-11-21 21:00:01.000000000 UTC; earlier "
                                 "times are corrected as if it had been right before",
                                 "h1: the clock was set back by 2s at 2025-11-21 21:00:03.000000000 UTC; earlier times "
                                 "are corrected as if it had been right before"});
}

TEST_CASE("an interruption between two readings of a clock is not a clock step") {
  ClockSteps steps(kOffset);
  int reads = 0;
  steps.look(kSecond, [&] { return ++reads == 1 ? kOffset + 5'000'000 : kOffset; });
  CHECK(reads == 2);
  CHECK(steps.sentences("h1", kOffset).empty());
}

TEST_CASE("of many clock steps the latest are recorded, with the number of earlier ones") {
  ClockSteps steps(kOffset);
  for (int i = 1; i <= 40; ++i) steps.look(i * kSecond, [&] { return kOffset + i * kSecond; });
  const auto sentences = steps.sentences("h1", kOffset + 40 * kSecond);
  REQUIRE(sentences.size() == 33);
  CHECK(sentences[0] == "h1: the clock was set 8 times more before");
}
