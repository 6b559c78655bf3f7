// Sets the clock of the whole machine. This is a separate test program that runs alone, because other tests measure
// times.
#include <sys/timex.h>

#include <algorithm>
#include <cstdlib>

#include "observe_support.h"
#include "skip.h"

using namespace rose;
using namespace rose::observe;
using namespace rose::observe::test;

TEST_CASE("when the clock is set while tracing, times stay in order and the dump records the step") {
  // Sets the clock forward or back, by twenty milliseconds.
  const auto set = [](long by_us) {
    timex change{};
    change.modes = ADJ_SETOFFSET;
    change.time.tv_sec = by_us < 0 ? -1 : 0;
    change.time.tv_usec = by_us < 0 ? 1'000'000 + by_us : by_us;
    return ::clock_adjtime(CLOCK_REALTIME, &change) >= 0;
  };
  const TestCgroup cgroup("clock");
  auto tracer = start({target("n1", cgroup)});
  const std::int64_t begin = snapshot(*tracer).meta.begin_ns;
  if (!set(20'000)) ::rose::test::skip_case("needs to set the machine's clock (CAP_SYS_TIME)");
  const auto reported = [&](const std::string& way) {
    const auto clock = snapshot(*tracer).meta.clock;
    return std::any_of(clock.begin(), clock.end(), [&](const std::string& text) {
      return text.find("the clock was set " + way) != std::string::npos;
    });
  };
  const bool forward = eventually([&] { return reported("forward by "); });
  const auto shifted = snapshot(*tracer).meta;
  REQUIRE(set(-20'000));
  CHECK(forward);
  // The beginning is converted with the clock as it is now, like the time of every event.
  CHECK(std::abs(shifted.begin_ns - begin - 20'000'000) < 2'000'000);
  CHECK(eventually([&] { return reported("back by "); }));
}
