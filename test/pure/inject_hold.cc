// When packets that were delayed for a bad link are sent on.
#include <catch2/catch.hpp>

#include "base/units.h"
#include "inject/link.h"

using namespace rose;
using namespace rose::inject;

namespace {

constexpr std::int64_t kMsNs = 1'000'000;

// An IPv4 UDP packet from `port`, with the tag of the rule numbered `rule`.
std::string frame(unsigned rule, std::size_t size = 100, unsigned to_side = 0, unsigned port = 1000) {
  std::string bytes(size, '\0');
  const unsigned tag = ROSE_TAG(rule, to_side, 0U);
  const auto put = [&](std::size_t at, unsigned value) {
    if (at < size) bytes[at] = static_cast<char>(value);
  };
  put(12, 0x81);
  put(14, tag >> 8);
  put(15, tag & 0xff);
  put(16, 8);
  put(18, 0x45);
  put(18 + 9, 17);
  put(18 + 20, port >> 8);
  put(18 + 21, port & 0xff);
  return bytes;
}

std::vector<std::int64_t> all_due(HoldQueue& queue) {
  std::vector<std::int64_t> due;
  for (; queue.first() != nullptr; queue.pop()) due.push_back(queue.first()->due_ns);
  return due;
}

}  // namespace

TEST_CASE("a delayed packet is sent after its delay, in order of arrival") {
  HoldQueue queue(std::vector<HoldRule>{{}, {.delay_ns = 50 * kMsNs}});
  for (std::int64_t i = 0; i < 100; ++i) REQUIRE(queue.take(frame(1), i * kMsNs));
  for (std::int64_t i = 0; i < 100; ++i) {
    REQUIRE(queue.first() != nullptr);
    CHECK(queue.first()->due_ns == (50 + i) * kMsNs);
    CHECK(queue.first()->number == static_cast<std::uint64_t>(i + 1));
    queue.pop();
  }
  CHECK(queue.first() == nullptr);
  CHECK(queue.counts(1).held == 100);
  CHECK(queue.counts(0).held == 0);
}

TEST_CASE("jitter is uniform, repeatable, and keeps each connection in order") {
  const HoldRule rule{.delay_ns = 30 * kMsNs, .jitter_ns = 20 * kMsNs, .seed = 7};
  const auto alone = [&](std::uint64_t seed) {
    HoldRule other = rule;
    other.seed = seed;
    HoldQueue queue(std::vector<HoldRule>{other});
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < 4000; ++i) {
      REQUIRE(queue.take(frame(0), i * kSecond));
      all.push_back(queue.first()->due_ns - i * kSecond);
      queue.pop();
    }
    return all;
  };
  std::vector<std::int64_t> delays = alone(7);
  CHECK(delays == alone(7));
  CHECK(delays != alone(8));
  std::sort(delays.begin(), delays.end());
  CHECK(delays.front() >= 10 * kMsNs);
  CHECK(delays.back() <= 50 * kMsNs);
  for (const int percent : {10, 50, 90})
    CHECK(std::abs(delays[delays.size() * static_cast<std::size_t>(percent) / 100] -
                   (10 + 40 * percent / 100) * kMsNs) < 2 * kMsNs);

  // Packets sent at the same time keep their order if they belong to one connection. Those of two connections may
  // overtake each other.
  HoldQueue queue(std::vector<HoldRule>{rule});
  for (unsigned i = 0; i < 200; ++i) REQUIRE(queue.take(frame(0, 100 + i, 0, 1000 + i % 2), i));
  std::size_t last[2] = {};
  bool passed = false;
  std::size_t before = 0;
  for (; queue.first() != nullptr; queue.pop()) {
    const std::size_t size = queue.first()->bytes.size();
    CHECK(size > last[size % 2]);
    passed = passed || size < before;
    last[size % 2] = before = size;
  }
  CHECK(passed);
}

TEST_CASE("the requested share of packets overtakes delayed ones") {
  HoldQueue queue(std::vector<HoldRule>{{.delay_ns = 50 * kMsNs, .reorder = std::uint64_t{1} << 30}});
  for (std::int64_t i = 0; i < 10'000; ++i) REQUIRE(queue.take(frame(0), 0));
  const auto due = all_due(queue);
  const auto ahead = std::count(due.begin(), due.end(), 0);
  CHECK(ahead > 2'300);
  CHECK(ahead < 2'700);
  CHECK(queue.counts(0).ahead == static_cast<std::uint64_t>(ahead));
  CHECK(std::count(due.begin(), due.end(), 50 * kMsNs) == 10'000 - ahead);
}

TEST_CASE("a link with a low rate sends one packet at a time per direction, and drops on overflow") {
  HoldQueue queue(std::vector<HoldRule>{{.rate = 8'000'000}});  // the rate is one byte per microsecond
  const std::size_t tag = 4;
  for (int i = 0; i < 3; ++i) REQUIRE(queue.take(frame(0, 1000 + tag), 0));
  REQUIRE(queue.take(frame(0, 1000 + tag, 1), 0));
  CHECK(all_due(queue) == std::vector<std::int64_t>{kMsNs, kMsNs, 2 * kMsNs, 3 * kMsNs});
  int taken = 0;
  while (queue.take(frame(0, 1000 + tag), 10 * kMsNs)) REQUIRE(++taken < 1000);
  CHECK(taken == 301);
  CHECK(queue.counts(0).overflown == 1);
  // As soon as there is space again, packets are accepted.
  CHECK(queue.take(frame(0, 1000 + tag), 20 * kMsNs));
}

TEST_CASE("frames that no rule delays are dropped") {
  HoldQueue queue(std::vector<HoldRule>{{.delay_ns = kMsNs}});
  CHECK_FALSE(queue.take(frame(1), 0));  // there is no such rule
  CHECK_FALSE(queue.take(std::string(), 0));
  CHECK_FALSE(queue.take(std::string(17, '\x81'), 0));
  CHECK_FALSE(queue.take(std::string(60, '\0'), 0));  // the frame has no tag
  CHECK(queue.take(frame(0, 18), 0));                 // the frame is a tag and nothing else
  CHECK(queue.take(frame(0, 30), 0));                 // the IP header is cut
  CHECK(all_due(queue).size() == 2);
}

TEST_CASE("packets that a limited rate hardly delays pass unchanged") {
  // the first rule's rate is one byte per microsecond
  HoldQueue queue(std::vector<HoldRule>{{.rate = 8'000'000}, {.delay_ns = 1000}});
  std::int64_t now = 0;
  REQUIRE(queue.take(frame(0, 800), now));
  CHECK(queue.counts(0).at_once == 1);
  // Two further packets, sent at the same time, must wait for the first one.
  REQUIRE(queue.take(frame(0, 800), now));
  REQUIRE(queue.take(frame(0, 800), now));
  CHECK(queue.counts(0).at_once == 1);
  CHECK(queue.counts(0).held == 3);
  // The second rule requires a delay, so even a short one is kept.
  REQUIRE(queue.take(frame(1, 100), now));
  CHECK(queue.counts(1).at_once == 0);
}
