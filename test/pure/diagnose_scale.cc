// Dumps as large as real ones: a million events of 20 nodes, with thousands of kinds of failures.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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
  // Many of these names have the same pattern, but there are also several hundred folders of different names.
  for (int i = 0; i < 20'000; ++i)
    paths.push_back(trace.strings.intern(fmt::format("/data/segments/segment-{}.log", i)));
  for (int i = 0; i < 700; ++i)
    paths.push_back(
        trace.strings.intern(fmt::format("/data/topics/{}{}{}/index", static_cast<char>('a' + i % 26),
                                         static_cast<char>('a' + i / 26 % 26), static_cast<char>('a' + i / 676))));
  for (int i = 0; i < 5'000; ++i)
    peers.push_back(trace.strings.intern(fmt::format("10.77.0.{}:{}", i % 20 + 1, 40'000 + i)));
  const int calls[] = {0, 1, 257, 42, 45, 44, 74, 87};
  const int errors[] = {2, 11, 17, 104, 32, 111, 110, 5, 28};
  trace.events.reserve(events);
  for (std::size_t i = 0; i < events; ++i) {
    trace::Event& e = trace.events.emplace_back();
    e.ts_ns = kBase + static_cast<std::int64_t>(i) * 100'000;
    e.node = nodes[random() % nodes.size()];
    e.type = i % 10 == 9 ? trace::EventType::sys : trace::EventType::scf;
    // The call and the error are determined by the file or peer, because a file or peer always fails in the same way.
    const std::size_t what = random() % (paths.size() + peers.size());
    e.syscall = static_cast<std::int16_t>(calls[what % std::size(calls)]);
    e.err =
        e.type == trace::EventType::sys ? std::int16_t{0} : static_cast<std::int16_t>(errors[what % std::size(errors)]);
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

// A limit in CPU time, because other tests may run at the same time. Planning takes about one second on any machine,
// but hours if each pair of events is compared.
constexpr double kQuadratic = 60;

double seconds_of(const std::function<void()>& work) {
  const std::clock_t began = std::clock();
  work();
  return static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
}

}  // namespace

TEST_CASE("a large dump is planned in seconds") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
  // in this slow build only the counts are tested; the time limit is meant for a release build
  const std::size_t events = 50'000;
#else
  const std::size_t events = 1'000'000;
#endif
  const auto config = deployment(20);
  Inputs inputs;
  inputs.config = &config;
  inputs.sources.push_back(evidence::of_dump(large_dump(events)));
  profile::Profile profile;
  profile.runs = 3;
  profile.seconds = 60;
  for (int i = 0; i < 500; ++i)
    profile.failures.push_back(
        {"*", "openat", "ENOENT", fmt::format("/usr/share/thing-{}/x", static_cast<char>('a' + i % 26)), "", 3});
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
  CHECK(seconds < kQuadratic);
}

namespace {

// Three hundred hosts have the roles of five nodes, under other names. Each behaves like its node, and sometimes fails,
// ends or falls silent.
trace::Trace fleet_dump(std::size_t events, int hosts, profile::Profile& profile) {
  trace::Trace trace;
  std::mt19937_64 random(12);
  std::vector<trace::StringId> names, ips, made, files, peers;
  for (int i = 0; i < hosts; ++i) {
    names.push_back(trace.strings.intern(fmt::format("host-{}.dc{}.example", i, i % 7)));
    ips.push_back(trace.strings.intern(fmt::format("10.{}.{}.1", 20 + i % 7, i)));
    trace.meta.nodes.push_back(fmt::format("host-{}.dc{}.example", i, i % 7));
    trace.meta.addresses.push_back(fmt::format("host-{}.dc{}.example=10.{}.{}.1", i, i % 7, 20 + i % 7, i));
  }
  for (int node = 0; node < 5; ++node)
    for (int i = 0; i < 40; ++i) {
      const std::string file =
          fmt::format("{}{}", static_cast<char>('a' + node),
                      std::string(static_cast<std::size_t>(i / 5 + 1), static_cast<char>('f' + i % 5)));
      made.push_back(trace.strings.intern(fmt::format("/srv/{}/{}", node, file)));
      profile.state_changes.push_back(
          {fmt::format("n{}", node + 1), "rename", "", fmt::format("/data/{}", file), "", 3});
    }
  for (int i = 0; i < 3'000; ++i)
    files.push_back(trace.strings.intern(
        fmt::format("/var/lib/{}/{}", i % 97,
                    std::string(static_cast<std::size_t>(i / 300 + 2), static_cast<char>('a' + i % 26)))));
  for (int i = 0; i < 5'000; ++i)
    peers.push_back(trace.strings.intern(
        fmt::format("10.{}.{}.1:{}", 20 + i % hosts % 7, i % hosts, i % 2 == 0 ? 7000 : 40'000 + i)));
  const int calls[] = {257, 1, 0, 82, 87};
  const int errors[] = {2, 13, 11, 17, 5};
  const int connection_errors[] = {104, 111, 32};
  trace.events.reserve(events);
  for (std::size_t i = 0; i < events; ++i) {
    trace::Event& e = trace.events.emplace_back();
    const std::size_t host = random() % names.size();
    e.ts_ns = kBase + static_cast<std::int64_t>(i) * 80'000'000;  // together, the events cover most of a day
    e.node = names[host];
    e.pid = e.tid = static_cast<std::int32_t>(host + 100);
    const std::uint64_t what = random() % 1000;
    if (what < 2) {
      e.type = trace::EventType::ps;
      e.state = what == 0 ? trace::ProcessState::crashed : trace::ProcessState::started;
      e.signal = what == 0 ? 9 : 0;
      e.flags = trace::kMain;
    } else if (what < 4) {
      e.type = trace::EventType::nd;
      e.src = ips[random() % ips.size()];
      e.dst = ips[host];
      e.duration_ms = 5'000 + static_cast<std::int32_t>(random() % 60'000);
      e.packets = 100;
      e.sport = 7000;
    } else if (what < 400) {
      e.type = trace::EventType::sys;
      e.syscall = 82;
      e.path = made[host % 5 * 40 + random() % 40];
    } else {
      const std::size_t kind = random();
      e.type = trace::EventType::scf;
      if (what < 700) {
        e.syscall = static_cast<std::int16_t>(calls[kind % 5]);
        e.err = static_cast<std::int16_t>(errors[kind % 5]);
        e.path = files[kind % files.size()];
      } else {
        e.syscall = 42;
        e.err = static_cast<std::int16_t>(connection_errors[kind % 3]);
        e.peer = peers[kind % peers.size()];
      }
    }
  }
  return trace;
}

}  // namespace

TEST_CASE("a million events of three hundred hosts are planned in seconds and half a gigabyte") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
  // in this slow build only the counts are tested; the time limit is meant for a release build
  const std::size_t events = 20'000;
  const bool timed = false;
#else
  const std::size_t events = 1'000'000;
  const bool timed = true;
#endif
  const auto config = deployment(5);
  Inputs inputs;
  inputs.config = &config;
  profile::Profile profile;
  profile.runs = 1;
  profile.seconds = 60;
  inputs.sources.push_back(evidence::of_dump(fleet_dump(events, 300, profile)));
  inputs.profile = profile;
  struct Planned {
    double seconds = 0;
    std::uint64_t failures = 0, total = 0, candidates = 0;
  };
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  const pid_t child = fork();  // a process of its own, because earlier tests have used memory in this one
  REQUIRE(child >= 0);
  if (child == 0) {
    Planned planned;
    planned.seconds = seconds_of([&] {
      if (const Result<Plan> plan = make_plan(inputs))
        planned = {0.0, plan->failures, accounted(*plan), plan->candidates.size()};
    });
    _exit(write(pipe_ends[1], &planned, sizeof planned) == sizeof planned ? 0 : 1);
  }
  close(pipe_ends[1]);
  Planned planned;
  const bool received = read(pipe_ends[0], &planned, sizeof planned) == sizeof planned;
  close(pipe_ends[0]);
  rusage used{};
  int status = 0;
  REQUIRE(wait4(child, &status, 0, &used) == child);
  REQUIRE(received);
  const double mib = static_cast<double>(used.ru_maxrss) / 1024;
  INFO(events << " events: " << planned.candidates << " candidates, " << planned.seconds << " s, " << mib << " MiB");
  CHECK(planned.total == planned.failures);
  CHECK(planned.failures > events / 2);
  CHECK(planned.candidates > 50);
  if (timed) {
    CHECK(planned.seconds < kQuadratic);
    CHECK(mib < 512);
  }
}
