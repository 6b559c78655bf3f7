#include <catch2/catch.hpp>

#include "base/units.h"
#include "observe/waits.h"

using namespace rose;
using namespace rose::observe;

namespace {

rose_blocked thread(std::uint32_t tgid, std::uint32_t tid, std::uint64_t switches, std::uint64_t start = 7) {
  rose_blocked out{};
  out.tgid = tgid;
  out.tid = tid;
  out.switches = switches;
  out.start_ns = start;
  out.node = 2;
  out.flags = ROSE_MAIN;
  return out;
}

std::vector<Waits::Wait> sample(Waits& waits, std::vector<rose_blocked> blocked, std::int64_t second) {
  return waits.sample(blocked, second * kSecond);
}

}  // namespace

TEST_CASE("a wait lasts from the first sample that contains it to the first that does not", "[waits]") {
  Waits waits(3 * kSecond, kSecond);
  CHECK(sample(waits, {}, 0).empty());
  CHECK(sample(waits, {thread(10, 11, 5)}, 1).empty());
  CHECK(sample(waits, {thread(10, 11, 5)}, 2).empty());
  CHECK(waits.ongoing(3 * kSecond).empty());
  CHECK(sample(waits, {thread(10, 11, 5)}, 3).empty());
  CHECK(sample(waits, {thread(10, 11, 5)}, 4).empty());
  const auto going = waits.ongoing(4 * kSecond);
  REQUIRE(going.size() == 1);
  CHECK(going[0].begin_ns == 1 * kSecond);
  CHECK(going[0].end_ns == 4 * kSecond);
  const auto over = sample(waits, {}, 5);
  REQUIRE(over.size() == 1);
  CHECK(over[0].tgid == 10);
  CHECK(over[0].tid == 11);
  CHECK(over[0].node == 2);
  CHECK(over[0].flags == ROSE_MAIN);
  CHECK(over[0].begin_ns == 1 * kSecond);
  CHECK(over[0].end_ns == 5 * kSecond);
  CHECK(waits.ongoing(9 * kSecond).empty());
  CHECK(sample(waits, {}, 6).empty());
}

TEST_CASE("a late sample does not lengthen a short wait", "[waits]") {
  Waits waits(3 * kSecond, kSecond);
  CHECK(sample(waits, {thread(10, 11, 5)}, 1).empty());
  CHECK(waits.ongoing(20 * kSecond).empty());
  CHECK(sample(waits, {}, 20).empty());
  // A wait ends at most one sampling interval after the last sample that contained it. Here the next sample is 20 s
  // later, and its time must not be taken as the end of the wait.
  CHECK(sample(waits, {thread(10, 11, 6)}, 21).empty());
  CHECK(sample(waits, {thread(10, 11, 6)}, 40).empty());
  const auto over = sample(waits, {}, 60);
  REQUIRE(over.size() == 1);
  CHECK(over[0].end_ns == 41 * kSecond);
}

TEST_CASE("many short waits are not one long wait, and a reused thread id is another thread", "[waits]") {
  Waits waits(3 * kSecond, kSecond);
  for (int i = 0; i < 10; ++i) CHECK(sample(waits, {thread(10, 11, static_cast<std::uint64_t>(i))}, i).empty());
  CHECK(waits.ongoing(10 * kSecond).empty());
  for (int i = 0; i < 10; ++i) {
    CHECK(sample(waits, {thread(10, 12, 1, static_cast<std::uint64_t>(i / 2))}, 10 + i).empty());
  }
}

TEST_CASE("simultaneous waits of one process's threads are one event, those of two processes are two", "[waits]") {
  Waits waits(3 * kSecond, kSecond);
  (void)sample(waits, {thread(10, 12, 1)}, 0);
  std::vector<rose_blocked> all;
  for (std::uint32_t tid = 11; tid < 500; ++tid) all.push_back(thread(10, tid, 1));
  all.push_back(thread(600, 600, 1));
  for (int second = 1; second <= 5; ++second) CHECK(sample(waits, all, second).empty());
  CHECK(waits.ongoing(5 * kSecond).size() == 2);
  const auto over = sample(waits, {}, 6);
  REQUIRE(over.size() == 2);
  CHECK(over[0].tid == 12);
  CHECK(over[0].begin_ns == 0);
  CHECK(over[1].tgid == 600);
}

TEST_CASE("memory is bounded, however many threads wait", "[waits]") {
  Waits waits(1, kSecond);
  std::vector<rose_blocked> all;
  for (std::uint32_t tid = 1; tid < 40000; ++tid) all.push_back(thread(tid, tid, 1));
  (void)waits.sample(all, kSecond);
  CHECK(waits.ongoing(2 * kSecond).size() == 16384);
}

TEST_CASE("a frozen cgroup is one pause of its node, with the main process if that is frozen", "[waits]") {
  Waits waits(3 * kSecond, kSecond);
  auto main = thread(10, 10, 5);
  auto helper = thread(20, 21, 5);
  auto other = thread(30, 30, 5);
  auto disk = thread(10, 11, 5);
  helper.flags = 0;
  other.flags = 0;
  other.node = 3;
  for (rose_blocked* frozen : {&main, &helper, &other}) frozen->flags |= ROSE_IN_FREEZER;
  for (int second = 1; second <= 4; ++second) CHECK(sample(waits, {helper, main, other, disk}, second).empty());
  CHECK(waits.ongoing(4 * kSecond).size() == 3);
  const auto over = sample(waits, {}, 5);
  REQUIRE(over.size() == 3);
  CHECK((over[0].tgid == 10 && over[0].tid == 11 && over[0].flags == ROSE_MAIN));
  CHECK((over[1].tgid == 0 && over[1].tid == 0 && over[1].node == 2 && over[1].flags == (ROSE_MAIN | ROSE_IN_FREEZER)));
  CHECK((over[2].tgid == 0 && over[2].node == 3 && over[2].flags == ROSE_IN_FREEZER));
  CHECK(over[1].end_ns - over[1].begin_ns == 4 * kSecond);
}
