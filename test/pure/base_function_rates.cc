// Which functions are detached and sampled again, and how their rates are estimated. The workload and the clock are
// scripted.
#include <catch2/catch.hpp>

#include <cmath>
#include <functional>
#include <vector>

#include "base/function_rates.h"

using rose::FunctionRates;
using rose::RateLimits;

namespace {

constexpr double kLook = 0.01;

// Functions of a program. Each is called `rate(function, seconds)` times per second, whether it is watched or not.
class World {
 public:
  using Rate = std::function<double(std::size_t, double)>;
  World(std::size_t functions, RateLimits limits, Rate rate)
      : rates(functions, 1, limits), counts_(functions), truth_(functions), rest_(functions), rate_(std::move(rate)) {
    for (std::size_t i = 0; i < functions; ++i) rates.attached(i, now(), counts_);
  }
  // Lets time pass. Checks that in each second but the first, probes took no more than the permitted share of the time.
  void run(double seconds) {
    const double until = at_ + seconds;
    while (at_ < until) {
      at_ += kLook;
      for (std::size_t i = 0; i < counts_.size(); ++i) {
        rest_[i] += rate_(i, at_) * kLook;
        const auto calls = static_cast<std::uint64_t>(rest_[i]);
        rest_[i] -= static_cast<double>(calls);
        truth_[i] += calls;
        if (!rates.is_attached(i)) continue;
        counts_[i] += calls;
        entries += calls;
      }
      for (const auto i : rates.to_detach(now(), counts_)) {
        CHECK_FALSE(rates.is_attached(i));
        ++detached;
      }
      for (const auto i : rates.due(now(), 64)) rates.attached(i, now(), counts_);
    }
  }
  [[nodiscard]] std::int64_t now() const { return static_cast<std::int64_t>(1e9 * (100 + at_)); }
  [[nodiscard]] double estimated(std::size_t i) const {
    const auto estimate = rates.estimate(i, 0, now(), counts_, 2);
    return estimate.calls / estimate.seconds;
  }
  [[nodiscard]] double truth(std::size_t i) const { return static_cast<double>(truth_[i]) / at_; }
  [[nodiscard]] const std::vector<std::uint64_t>& counts() const { return counts_; }

  FunctionRates rates;
  std::uint64_t entries = 0, detached = 0;

 private:
  double at_ = 0;
  std::vector<std::uint64_t> counts_, truth_;
  std::vector<double> rest_;
  Rate rate_;
};

}  // namespace

TEST_CASE("infrequent functions stay attached, and their count is exact") {
  World world(3, {}, [](std::size_t i, double) { return i == 0 ? 0 : i == 1 ? 1.0 : 3.0; });
  world.run(60);
  CHECK(world.detached == 0);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto estimate = world.rates.estimate(i, 0, world.now(), world.counts(), 2);
    CHECK(estimate.watched);
    CHECK(estimate.calls == static_cast<double>(world.counts()[i]));
  }
}

TEST_CASE("a hot function is detached at once, sampled rarely, and rated as hot") {
  World world(1, {}, [](std::size_t, double) { return 50'000.0; });
  world.run(60);
  CHECK(world.entries < 20'000);  // the function was entered 3,000,000 times
  CHECK(world.detached > 3);      // it was attached again and again
  CHECK(world.estimated(0) == Approx(50'000).epsilon(0.2));
}

TEST_CASE("a function that is busy only at the start is rated as infrequent") {
  // The function is called 60 times within 20 ms, then once every 5 seconds.
  World world(1, {}, [](std::size_t, double at) { return at < 0.02 ? 3000.0 : 0.2; });
  world.run(60);
  CHECK(world.truth(0) < 2);
  CHECK(world.estimated(0) < 2);
  CHECK(world.rates.is_attached(0));
}

TEST_CASE("a function that is busy for a large part of the run is not rated as infrequent") {
  for (const double busy : {10.0, 30.0, 50.0}) {
    CAPTURE(busy);
    World world(1, {}, [busy](std::size_t, double at) { return at < busy ? 1000.0 : 0; });
    world.run(60);
    CHECK(world.estimated(0) > 2);
    // While a function is detached, it is unknown when it becomes quiet, so the estimate is less certain.
    CHECK(world.estimated(0) > world.truth(0) / 5);
    CHECK(world.estimated(0) < world.truth(0) * 1.25);
  }
  // This function becomes hot late.
  World late(1, {}, [](std::size_t, double at) { return at > 40 ? 1000.0 : 0; });
  late.run(60);
  CHECK(late.estimated(0) == Approx(late.truth(0)).epsilon(0.5));
}

TEST_CASE("a function called in short bursts is not rated as infrequent") {
  World world(1, {}, [](std::size_t, double at) { return at - static_cast<int>(at) < 0.1 ? 1000.0 : 0; });
  world.run(60);
  CHECK(world.truth(0) > 50);
  CHECK(world.estimated(0) > 2);
}

TEST_CASE("thousands of hot functions together stay within the share of processor time") {
  RateLimits limits;
  limits.entry_seconds = 10e-6;
  World world(4000, limits, [](std::size_t i, double) { return i % 4 == 0 ? 100.0 : 0.5; });
  world.run(2);  // in this time, the rates are learned
  world.entries = 0;
  world.run(20);
  CHECK(static_cast<double>(world.entries) * limits.entry_seconds / 20 < 1.3 * limits.share);
  for (std::size_t i = 0; i < 4000; i += 97) {
    CAPTURE(i);
    CHECK((world.estimated(i) < 2) == (i % 4 != 0));
  }
}

TEST_CASE("the cost of attaching functions again stays within the share") {
  RateLimits limits;
  limits.share = 0.01;
  limits.burst_seconds = 5;
  limits.entry_seconds = 1e-6;
  limits.attach_seconds = 30e-3;
  limits.pause_seconds = 10;
  // All functions stay hot, except the last one, which becomes quiet after a minute.
  World world(60, limits, [](std::size_t i, double t) { return i < 59 || t < 60 ? 1000.0 : 0.0; });
  world.run(600);
  const std::uint64_t again = world.detached - 60;
  CHECK(again > 100);
  CHECK(again <= 200 + 2);  // 200 attachments take 1 % of ten minutes; 2 more are permitted at the start
  CHECK(world.rates.is_attached(59));
  // If probes cost nothing, functions are sampled as often as the pauses permit.
  limits.attach_seconds = 0;
  World cheap(60, limits, [](std::size_t, double) { return 1000.0; });
  cheap.run(600);
  CHECK(cheap.detached - 60 > 3 * again);
}

TEST_CASE("without a hot rate only the share decides which functions are detached") {
  RateLimits limits;
  limits.share = 0.01;
  limits.hot_rate = 0;
  World world(2, limits, [](std::size_t i, double) { return i == 0 ? 20'000.0 : 100.0; });
  world.run(10);
  CHECK(world.rates.is_attached(1));
  CHECK(static_cast<double>(world.entries) * limits.entry_seconds / 10 < 0.02);
}

TEST_CASE("with a window, a function that was quiet is detached as soon as it becomes hot") {
  RateLimits limits;
  limits.share = 1;
  limits.hot_rate = 100;
  limits.hot_calls = 1000;
  limits.window_seconds = 10;
  World world(1, limits, [](std::size_t, double at) { return at < 600 ? 0.1 : 300; });
  world.run(600);
  CHECK(world.detached == 0);
  world.run(15);
  CHECK(world.detached > 0);
}

TEST_CASE("a function detached because of another node is not rated as infrequent") {
  FunctionRates rates(1, 2, {});
  std::vector<std::uint64_t> counts(2);
  std::int64_t now = 1'000'000'000;
  rates.attached(0, now, counts);
  counts[0] = 1000;
  now += 10'000'000;
  REQUIRE(rates.to_detach(now, counts).size() == 1);
  const auto other = rates.estimate(0, 1, now + 5'000'000'000, counts, 2);
  CHECK_FALSE(other.enough);
  CHECK_FALSE(other.watched);
  CHECK(rates.estimate(0, 0, now + 5'000'000'000, counts, 2).calls > 100'000);
}

TEST_CASE("a function that could not be attached again is unknown, and retried after growing pauses") {
  FunctionRates rates(2, 1, {});
  std::vector<std::uint64_t> counts(2);
  const auto at = [](double seconds) { return static_cast<std::int64_t>(1e9 * (100 + seconds)); };
  for (std::size_t i = 0; i < 2; ++i) rates.attached(i, at(0), counts);
  rates.failed(1, at(0.2), counts);
  CHECK_FALSE(rates.is_attached(1));
  CHECK(rates.is_attached(0));
  auto estimate = rates.estimate(1, 0, at(1), counts, 2);
  CHECK_FALSE(estimate.known);
  CHECK_FALSE(estimate.watched);
  CHECK(rates.estimate(0, 0, at(1), counts, 2).known);
  // From here on, each attempt to attach the function fails.
  (void)rates.to_detach(at(0.2), counts);
  std::vector<double> tries;
  for (double now = 0.2; now < 100; now += 0.01) {
    (void)rates.to_detach(at(now), counts);
    const auto due = rates.due(at(now), 64);
    if (due.empty()) continue;
    REQUIRE(due == std::vector<std::uint32_t>{1});
    tries.push_back(now);
    rates.failed(1, at(now), counts);
  }
  REQUIRE(tries.size() >= 3);
  CHECK(tries.size() <= 8);
  for (std::size_t i = 2; i < tries.size(); ++i) CHECK(tries[i] - tries[i - 1] >= tries[i - 1] - tries[i - 2] - 0.05);
  rates.attached(1, at(200), counts);
  CHECK_FALSE(rates.estimate(1, 0, at(200.5), counts, 2).known);
  counts[1] = 3;
  estimate = rates.estimate(1, 0, at(210), counts, 2);
  CHECK(estimate.known);
  CHECK_FALSE(estimate.watched);
}

TEST_CASE("a burst of many functions does not detach infrequent ones") {
  RateLimits limits;
  limits.share = 0.05;
  limits.burst_seconds = 5;
  limits.entry_seconds = 7e-6;
  limits.hot_rate = 0;  // so that functions are detached only because of their share of time
  limits.pause_seconds = 10;
  // The first function is hot from the fifth second on. Four times per second, all others are entered together, twice
  // within a hundredth of a second.
  World world(301, limits, [](std::size_t i, double t) {
    return i == 0 ? (t > 5 ? 30'000.0 : 0.0) : std::lround(t * 100) % 25 == 0 ? 200.0 : 0.0;
  });
  world.run(12);
  CHECK_FALSE(world.rates.is_attached(0));
  for (std::size_t i = 1; i <= 300; ++i) {
    CAPTURE(i);
    REQUIRE(world.rates.is_attached(i));
  }
  CHECK(world.detached <= 2);
}
