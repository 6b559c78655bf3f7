// Dumps of a million events are written, read, merged and summarised, once with the few paths of a failing disk, and
// once with a different path for each event.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>

#include "report/dump/show.h"
#include "report/dump/summary.h"
#include "trace/dump.h"
#include "trace/merge.h"

namespace {

using namespace rose;

constexpr std::size_t kEvents = 1'000'000;
enum Paths { repeated = 0, distinct = 1 };

trace::Trace million(Paths paths, std::int64_t offset_ns) {
  trace::Trace trace;
  trace.meta.node = "n1";
  const trace::StringId nodes[] = {trace.strings.intern("n1"), trace.strings.intern("n2"), trace.strings.intern("n3")};
  trace.events.reserve(kEvents);
  for (std::size_t i = 0; i < kEvents; ++i) {
    trace::Event& event = trace.events.emplace_back();
    event.ts_ns = 1'700'000'000'000'000'000 + static_cast<std::int64_t>(i) * 20'011 + offset_ns;
    event.node = nodes[i % 3];
    event.pid = 4'000 + static_cast<std::int32_t>(i % 3);
    event.tid = event.pid + static_cast<std::int32_t>(i * 7 % 64);
    event.syscall = static_cast<std::int16_t>(i % 5 == 0 ? 1 : 257);
    event.err = static_cast<std::int16_t>(i % 5 == 0 ? 28 : 2);
    event.fd = i % 5 == 0 ? static_cast<std::int32_t>(i % 900) : -1;
    const std::size_t file = paths == distinct ? i : i * 2'654'435'761U % 500;
    event.path = trace.strings.intern(fmt::format("/var/lib/service/segments/{}/segment-{:08}.log", file % 50, file));
  }
  return trace;
}

const trace::Trace& trace_of(Paths paths) {
  static std::optional<trace::Trace> made[2];
  if (!made[paths]) made[paths] = million(paths, 0);
  return *made[paths];
}

void write_million(benchmark::State& state) {
  const auto& trace = trace_of(static_cast<Paths>(state.range(0)));
  for (auto _ : state) {
    const auto bytes = trace::dump_to_bytes(trace);
    if (!bytes) return state.SkipWithError(bytes.error().message.c_str());
    state.counters["MB"] = static_cast<double>(bytes->size()) / 1e6;
  }
}

void read_million(benchmark::State& state) {
  const auto bytes = trace::dump_to_bytes(trace_of(static_cast<Paths>(state.range(0))));
  if (!bytes) return state.SkipWithError(bytes.error().message.c_str());
  for (auto _ : state) {
    const auto read = trace::parse_dump(std::as_bytes(std::span(*bytes)), "bench");
    if (!read || read->damage) return state.SkipWithError("unreadable");
  }
}

// Merges two halves of the million events. Their times alternate.
void merge_million(benchmark::State& state) {
  const auto& whole = trace_of(static_cast<Paths>(state.range(0)));
  std::vector<trace::Trace> halves(2);
  for (std::size_t i = 0; i < whole.events.size(); ++i) {
    trace::Trace& half = halves[i % 2];
    trace::Event event = whole.events[i];
    event.node = half.strings.intern(whole.str(event.node));
    event.path = half.strings.intern(whole.str(event.path));
    half.events.push_back(event);
  }
  for (auto _ : state) benchmark::DoNotOptimize(trace::merge(halves));
}

void summarise_million(benchmark::State& state) {
  const auto& trace = trace_of(static_cast<Paths>(state.range(0)));
  std::size_t bytes = 0;
  for (auto _ : state) report::show_summary(trace, {}, nullptr, [&](std::string_view text) { bytes += text.size(); });
  benchmark::DoNotOptimize(bytes);
}

#define ROSE_BENCH(name) \
  BENCHMARK(name)->ArgName("distinct")->Arg(repeated)->Arg(distinct)->Unit(benchmark::kMillisecond)->MinTime(1)
ROSE_BENCH(write_million);
ROSE_BENCH(read_million);
ROSE_BENCH(merge_million);
ROSE_BENCH(summarise_million);

}  // namespace
