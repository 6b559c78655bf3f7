#include "trace/event.h"
#include "trace/merge.h"

#include <catch2/catch.hpp>

#include "trace_random.h"
#include "trace_same.h"

using namespace rose::trace;
using rose::trace::test::random_trace;

TEST_CASE("a string table gives each text one id", "[event]") {
  StringTable table;
  CHECK(table[0].empty());
  CHECK(table[17].empty());
  const StringId a = table.intern("a");
  const StringId none = table.intern("");
  CHECK(a != 0);
  CHECK(none != 0);
  CHECK(table.intern("a") == a);
  CHECK(table.intern("") == none);
  CHECK(table[a] == "a");
  CHECK(table.find("a") == a);
  CHECK(table.find("b") == 0);
  CHECK(table.size() == 3);
}

TEST_CASE("copies and moves of a string table are independent", "[event]") {
  auto original = std::make_unique<StringTable>();
  for (int i = 0; i < 1000; ++i) (void)original->intern("text " + std::to_string(i));
  StringTable copy(*original);
  StringTable assigned;
  (void)assigned.intern("old");
  assigned = *original;
  StringTable moved(std::move(*original));
  // The table that was moved from is used again on purpose: it must not return the id 0.
  CHECK(original->intern("again") == 1);
  original.reset();
  for (StringTable* table : {&copy, &assigned, &moved}) {
    CHECK(table->find("old") == 0);
    for (int i = 0; i < 1000; ++i) {
      const std::string text = "text " + std::to_string(i);
      if (table->find(text) != static_cast<StringId>(i + 1)) FAIL(text);
      if ((*table)[static_cast<StringId>(i + 1)] != text) FAIL(text);
    }
    CHECK(table->intern("new") == 1001);
  }
}

TEST_CASE("merging keeps every event in stable order of time", "[event]") {
  std::vector<Trace> traces;
  std::size_t total = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    traces.push_back(random_trace(seed, 300));
    // There are few different times, so that the order of events with equal times is tested, too.
    for (std::size_t i = 0; i < traces.back().events.size(); ++i) {
      traces.back().events[i].ts_ns = 1000 + static_cast<std::int64_t>(i / 10);
      traces.back().events[i].result = static_cast<std::int64_t>(seed * 1000 + i);
      traces.back().events[i].node = traces.back().strings.intern("n" + std::to_string(seed));
    }
    total += 300;
  }
  const Trace merged = merge(traces);
  REQUIRE(merged.events.size() == total);
  for (std::size_t i = 0; i < total; ++i) {
    const Event& e = merged.events[i];
    if (i > 0) {
      const Event& before = merged.events[i - 1];
      REQUIRE(before.ts_ns <= e.ts_ns);
      if (before.ts_ns == e.ts_ns) REQUIRE(before.result < e.result);
    }
    const auto seed = static_cast<std::size_t>(e.result / 1000);
    const Trace& source = traces[seed - 1];
    if (!rose::trace::test::same_event(source, source.events[static_cast<std::size_t>(e.result % 1000)], merged, e))
      FAIL("event " << i << " changed");
  }
}

TEST_CASE("dumps of one boot are merged on one clock, although it was set between them", "[event]") {
  constexpr std::int64_t kWall = 1'763'755'200'000'000'000;
  const auto dump = [](std::int64_t monotonic, std::int64_t wall_offset, std::int64_t event_monotonic) {
    Trace trace;
    trace.meta.node = trace.meta.host = "h1";
    trace.meta.boot_id = "boot1";
    trace.meta.monotonic_base_ns = monotonic;
    trace.meta.wall_base_ns = monotonic + wall_offset;
    trace.meta.begin_ns = 1'000'000'000 + wall_offset;
    trace.meta.end_ns = monotonic + wall_offset;
    Event event;
    event.ts_ns = event_monotonic + wall_offset;
    trace.events.push_back(event);
    return trace;
  };
  const int way = GENERATE(1, -1);
  const std::int64_t change = way * std::int64_t{3'600'000'000'000};
  const Trace before = dump(10'000'000'000, kWall, 9'000'000'000),
              after = dump(30'000'000'000, kWall + change, 29'000'000'000);
  const bool swapped = GENERATE(false, true);
  const Trace merged = swapped ? merge({after, before}) : merge({before, after});
  REQUIRE(merged.events.size() == 2);
  CHECK(merged.events[0].ts_ns == 9'000'000'000 + kWall + change);
  CHECK(merged.events[1].ts_ns - merged.events[0].ts_ns == 20'000'000'000);
  CHECK(merged.meta.begin_ns == 1'000'000'000 + kWall + change);
  CHECK(merged.meta.end_ns == 30'000'000'000 + kWall + change);
  CHECK(merged.meta.wall_base_ns - merged.meta.monotonic_base_ns == kWall + change);
  REQUIRE(merged.meta.clock.size() == 1);
  CHECK(merged.meta.clock[0].find(change < 0 ? "h1: the clock was set back by 1h at 2025-11-21 1"
                                             : "h1: the clock was set forward by 1h at 2025-11-21 2") == 0);
  // Readings of one clock differ slightly, so a difference of 0.9 ms is not a clock step.
  CHECK(merge({before, dump(30'000'000'000, kWall + 900'000, 1)}).meta.clock.empty());
  // A dump of another boot has another clock.
  Trace other = after;
  other.meta.boot_id = "boot2";
  CHECK(merge({before, other}).events[0].ts_ns == before.events[0].ts_ns + (change < 0 ? change + 20'000'000'000 : 0));
}

TEST_CASE("merging combines the headers", "[event]") {
  Trace a;
  a.meta.node = "h1";
  a.meta.host = "h1";
  a.meta.boot_id = "boot1";
  a.meta.wall_base_ns = 100;
  a.meta.monotonic_base_ns = 10;
  a.meta.window = 1000;
  a.meta.memory = 50;
  a.meta.lost = 3;
  a.meta.suppressed = 1;
  a.meta.network_delay_ns = 5;
  a.meta.begin_ns = 700;
  a.meta.end_ns = 900;
  a.meta.nodes = {"n1", "n2"};
  a.meta.addresses = {"n1=10.0.0.1"};
  Event unnamed;
  unnamed.ts_ns = 800;
  a.events.push_back(unnamed);
  Trace b;
  b.meta.node = "h2";
  b.meta.host = "h2";
  b.meta.boot_id = "boot2";
  b.meta.wall_base_ns = 200;
  b.meta.window = 500;
  b.meta.lost = 4;
  b.meta.network_delay_ns = 7;
  b.meta.workload_ts = 720;
  b.meta.begin_ns = 600;
  b.meta.end_ns = 850;
  b.meta.nodes = {"n2", "n3"};
  b.meta.addresses = {"n1=10.0.0.1", "n3=10.0.0.3"};
  Trace c = b;
  c.meta.workload_ts = 0;
  c.meta.begin_ns = 0;
  Event stranger;
  stranger.ts_ns = 1;
  stranger.node = c.strings.intern("n9");
  c.events.push_back(stranger);
  const Trace merged = merge({a, b, c});
  CHECK(merged.meta.node.empty());
  CHECK(merged.meta.host.empty());
  CHECK(merged.meta.boot_id.empty());
  CHECK(merged.meta.wall_base_ns == 0);
  CHECK(merged.meta.monotonic_base_ns == 0);
  CHECK(merged.meta.window == 2000);
  CHECK(merged.meta.memory == 50);
  CHECK(merged.meta.lost == 11);
  CHECK(merged.meta.suppressed == 1);
  CHECK(merged.meta.network_delay_ns == 7);
  CHECK(merged.meta.workload_ts == 720);
  CHECK(merged.meta.begin_ns == 600);
  CHECK(merged.meta.end_ns == 900);
  CHECK(merged.meta.nodes == std::vector<std::string>{"n1", "n2", "h1", "n3", "n9"});
  CHECK(merged.meta.addresses == std::vector<std::string>{"n1=10.0.0.1", "n3=10.0.0.3"});
  REQUIRE(merged.events.size() == 2);
  CHECK(merged.str(merged.events[0].node) == "n9");
  CHECK(merged.str(merged.events[1].node) == "h1");  // an event without a node belongs to the tracer's host

  const Trace same = merge({a, a});
  CHECK(same.meta.node == "h1");
  CHECK(same.meta.boot_id == "boot1");
  CHECK(same.meta.wall_base_ns == 100);
  CHECK(merge({}).events.empty());
}
