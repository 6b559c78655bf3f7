// Runs that are made in parallel start in their order, and only some of them are busy at a time.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "base/cancel.h"
#include "replay/admission.h"

using namespace rose;
using rose::replay::Admission;

TEST_CASE("a run starts when an earlier one has ended or only waits") {
  constexpr std::size_t kRuns = 12;
  for (const std::size_t most : {1U, 2U, 5U}) {
    Admission admission(most);
    std::atomic<std::size_t> busy = 0, most_seen = 0, admitted = 0;
    std::atomic<bool> in_order = true;
    std::vector<std::thread> runs;
    for (std::size_t i = 0; i < kRuns; ++i)
      runs.emplace_back([&, i] {
        if (!admission.wait(i)) return;
        const std::size_t now = ++busy;
        for (std::size_t seen = most_seen; seen < now && !most_seen.compare_exchange_weak(seen, now);) {
        }
        // With one busy run at a time, the order in which runs get here is the order in which they were admitted.
        if (most == 1 && admitted != i) in_order = false;
        ++admitted;
        std::this_thread::yield();
        --busy;
        admission.no_longer_busy(i);
        admission.no_longer_busy(i);  // called again at the end of a run that had begun to wait; has no effect
      });
    for (std::thread& run : runs) run.join();
    CHECK(admitted == kRuns);
    CHECK(in_order);
    CHECK(most_seen <= most);
  }
}

TEST_CASE("a run that is cancelled before it was admitted does not start") {
  Admission admission(1);
  REQUIRE(admission.wait(0));
  cancel::Part part;
  std::atomic<int> admitted = -1;
  std::thread second([&] {
    const cancel::Within within(part);
    admitted = admission.wait(1) ? 1 : 0;
  });
  part.request();
  second.join();
  CHECK(admitted == 0);
}
