// Real dumps are large: a million events of 20 nodes, thousands of kinds of failures.
#include <catch2/catch.hpp>
#include <ctime>

#include "diagnose_world.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;

namespace {

trace::Trace large_dump(std::size_t events) {
  trace::Trace trace;
  trace.meta.workload_ts = kBase;
  std::mt19937_64 random(11);
  std::vector<trace::StringId> nodes;
  std::vector<trace::StringId> ips;
  std::vector<trace::StringId> paths;
  std::vector<trace::StringId> peers;
  for (int i = 1; i <= 20; ++i) {
    nodes.push_back(trace.strings.intern(fmt::format("n{}", i)));
    ips.push_back(trace.strings.intern(fmt::format("10.77.0.{}", i)));
  }
  // Many names, fewer patterns; some thousand files that are all distinct.
  for (int i = 0; i < 20'000; ++i) paths.push_back(trace.strings.intern(fmt::format("/data/segments/segment-{}.log", i)));
  for (int i = 0; i < 700; ++i)
    paths.push_back(trace.strings.intern(fmt::format("/data/topics/{}{}{}/index", static_cast<char>('a' + i % 26),
                                                     static_cast<char>('a' + i / 26 % 26), static_cast<char>('a' + i / 676))));
  for (int i = 0; i < 5'000; ++i) peers.push_back(trace.strings.intern(fmt::format("10.77.0.{}:{}", i % 20 + 1, 40'000 + i)));
  const int calls[] = {0, 1, 257, 42, 45, 44, 74, 87};
  const int errors[] = {2, 11, 17, 104, 32, 111, 110, 5, 28};
  trace.events.reserve(events);
  for (std::size_t i = 0; i < events; ++i) {
    trace::Event& e = trace.events.emplace_back();
    e.ts_ns = kBase + static_cast<std::int64_t>(i) * 100'000;
    e.node = nodes[random() % nodes.size()];
    e.type = i % 10 == 9 ? trace::EventType::sys : trace::EventType::scf;
    // What fails is not drawn anew each time: a file or peer fails in one manner.
    const std::size_t what = random() % (paths.size() + peers.size());
    e.syscall = static_cast<std::int16_t>(calls[what % std::size(calls)]);
    e.err = e.type == trace::EventType::sys ? std::int16_t{0} : static_cast<std::int16_t>(errors[what % std::size(errors)]);
    if (what < paths.size()) e.path = paths[what];
    else e.peer = peers[what - paths.size()];
    if (i % 5'000 == 17) {
      e = {};
      e.ts_ns = kBase + static_cast<std::int64_t>(i) * 100'000;
      e.node = nodes[random() % nodes.size()];
      e.type = trace::EventType::ps;
      e.state = i % 10'000 == 17 ? trace::ProcessState::crashed : trace::ProcessState::started;
      e.signal = 9;
    } else if (i % 1'000 == 3) {
      e = {};
      e.ts_ns = kBase + static_cast<std::int64_t>(i) * 100'000;
      e.node = nodes[random() % nodes.size()];
      e.type = trace::EventType::nd;
      e.src = ips[random() % ips.size()];
      e.dst = ips[random() % ips.size()];
      e.duration_ms = 5'000 + static_cast<std::int32_t>(random() % 10'000);
    }
  }
  return trace;
}

// Of this processor's time: the machine may be busy with other tests.
double seconds_of(const std::function<void()>& work) {
  const std::clock_t began = std::clock();
  work();
  return static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
}

}  // namespace

TEST_CASE("a large dump is planned in seconds") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
  const std::size_t events = 50'000;  // for the counts; the time is that of a release build
#else
  const std::size_t events = 1'000'000;
#endif
  const auto config = deployment(20);
  Inputs inputs;
  inputs.config = &config;
  inputs.traces.push_back(large_dump(events));
  profile::Profile profile;
  profile.runs = 3;
  profile.seconds = 60;
  for (int i = 0; i < 500; ++i)
    profile.failures.push_back({"*", "openat", "ENOENT", fmt::format("/usr/share/thing-{}/x", static_cast<char>('a' + i % 26)), "", 3});
  inputs.profile = profile;
  std::uint64_t failures = 0;
  std::uint64_t total = 0;
  const double seconds = seconds_of([&] {
    const Result<Plan> plan = make_plan(inputs);
    REQUIRE(plan);
    failures = plan->failures;
    total = accounted(*plan);
    CHECK(plan->candidates.size() > 5'000);
    UNSCOPED_INFO(plan->candidates.size() << " candidates");
    CHECK(plan->schedules.size() == 300);
  });
  CHECK(total == failures);
  CHECK(failures > events * 8 / 10);
  INFO("planned " << events << " events in " << seconds << " s");
  CHECK(seconds < 3);
}
