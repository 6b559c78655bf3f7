// Random but valid traces, in which every field is used. The same seed gives the same trace. They are for tests that
// write and read traces, and as input of the fuzzers' smoke run.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "trace/event.h"
#include "trace/limits.h"

namespace rose::trace::test {

inline std::string random_text(std::mt19937_64& rng) {
  // Most of the strings are paths. Others are empty, or contain quotes, control characters, UTF-8 and invalid bytes.
  static const std::string pieces[] = {
      "/",  "var",      "lib",  "snapshot.",    "\"", "\\", "\n", "\t",  "\x7f",     "\x01",     "é",       "日本",
      "😀", "\xff\xfe", "\xc3", "\xed\xb2\x80", "0",  "12", ".",  "a b", "\xf0\x9f", "\xe2\x82", "\xc0\xaf"};
  std::string text;
  const auto length = rng() % 12;
  for (std::uint64_t i = 0; i < length; ++i) text += pieces[rng() % std::size(pieces)];
  if (rng() % 16 == 0) text += '\0';
  return text;
}

inline Trace random_trace(std::uint64_t seed, std::size_t events) {
  std::mt19937_64 rng(seed);
  const auto below = [&](std::uint64_t bound) { return rng() % bound; };
  const auto maybe = [&](auto value, auto otherwise) { return below(2) == 0 ? value : otherwise; };
  Trace trace;
  std::vector<StringId> ids = {0};
  for (int i = 0; i < 40; ++i) ids.push_back(trace.strings.intern(random_text(rng)));
  const auto string = [&] { return ids[below(ids.size())]; };
  const auto time = [&] {
    return maybe(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(kLatestTs) + 1)), std::int64_t{0});
  };
  Meta& meta = trace.meta;
  meta.node = random_text(rng);
  meta.host = random_text(rng);
  meta.boot_id = random_text(rng);
  meta.wall_base_ns = time();
  meta.monotonic_base_ns = time();
  meta.window = maybe(rng(), std::uint64_t{0});
  meta.memory = maybe(rng(), std::uint64_t{0});
  meta.lost = maybe(rng(), std::uint64_t{0});
  meta.suppressed = maybe(rng(), std::uint64_t{0});
  meta.network_delay_ns = time();
  meta.pause_ns = time();
  meta.workload_ts = time();
  meta.begin_ns = time();
  meta.end_ns = time();
  meta.suppressed_calls = {{0, 11, 7}, {202, 110, 3}};
  meta.trigger = "crash: n1: process 41 was killed by SIGSEGV";
  for (auto n = below(4); n > 0; --n) meta.nodes.push_back(random_text(rng));
  for (auto n = below(4); n > 0; --n) meta.addresses.push_back(random_text(rng));
  meta.pairs_evicted = below(3) * 1000;
  for (auto n = below(4); n > 0; --n) meta.handshakes.push_back(random_text(rng));
  for (auto n = below(4); n > 0; --n) meta.clock.push_back(random_text(rng));
  for (auto n = below(4); n > 0; --n) meta.labels.push_back(random_text(rng));

  std::int64_t ts = static_cast<std::int64_t>(below(1'763'755'200'123'456'789));
  for (std::size_t i = 0; i < events; ++i) {
    Event e;
    ts += static_cast<std::int64_t>(below(3) * below(1'000'000));
    e.ts_ns = ts;
    e.type = static_cast<EventType>(1 + below(5));
    // An event of any type has all fields, because the file formats must not depend on which of them a tracer sets.
    e.node = string();
    e.path = string();
    e.path2 = maybe(string(), StringId{0});
    e.peer = string();
    e.function = maybe(string(), StringId{0});
    e.src = string();
    e.dst = string();
    e.result = maybe(static_cast<std::int64_t>(rng()), std::int64_t{0});
    e.pid = maybe(static_cast<std::int32_t>(below(std::uint64_t{1} << 31)), 0);
    e.tid = maybe(static_cast<std::int32_t>(below(std::uint64_t{1} << 31)), 0);
    e.fd = maybe(static_cast<std::int32_t>(below(std::uint64_t{1} << 31)), -1);
    e.duration_ms = maybe(static_cast<std::int32_t>(below(std::uint64_t{1} << 31)), -1);
    e.exit_code = maybe(static_cast<std::int32_t>(below(256)), -1);
    e.packets = maybe(static_cast<std::uint32_t>(rng()), 0U);
    e.count = maybe(static_cast<std::uint32_t>(1 + below(0xffffffff)), 1U);
    e.syscall = static_cast<std::int16_t>(static_cast<int>(below(513)) - 1);
    e.err = static_cast<std::int16_t>(below(4096));
    e.sport = static_cast<std::uint16_t>(maybe(below(65536), std::uint64_t{0}));
    e.dport = static_cast<std::uint16_t>(maybe(below(65536), std::uint64_t{0}));
    e.signal = static_cast<std::uint8_t>(below(65));
    e.state = static_cast<ProcessState>(below(5));
    const Protocol protocols[] = {Protocol::none, Protocol::tcp, Protocol::udp};
    e.protocol = protocols[below(3)];
    e.flags = static_cast<std::uint16_t>(below(kKnownFlags + 1));
    if ((e.flags & kIdle) != 0) e.flags = static_cast<std::uint16_t>(e.flags & ~kOutstanding);
    e.by = maybe(string(), StringId{0});
    e.requested = maybe(static_cast<std::uint32_t>(rng()), 0U);
    e.begin_within_ms = maybe(static_cast<std::int32_t>(below(std::uint64_t{1} << 31)), -1);
    e.end_within_ms = maybe(static_cast<std::int32_t>(below(std::uint64_t{1} << 31)), -1);
    e.usual_ms = maybe(static_cast<std::int32_t>(below(std::uint64_t{1} << 31)), -1);
    trace.events.push_back(e);
  }
  return trace;
}

// The number of events of a full window, or fewer if the build is slow.
inline std::size_t big() {
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  return 1'000'000;
#else
  return 150'000;
#endif
}

// A trace that is similar to a tracer's: few nodes, and many calls on few files, sorted by time.
inline Trace realistic_trace(std::uint64_t seed, std::size_t events) {
  std::mt19937_64 rng(seed);
  Trace trace;
  trace.meta.node = "host";
  trace.meta.host = "host";
  trace.meta.window = 1'000'000;
  std::int64_t ts = 1'763'755'200'123'456'789;
  std::vector<StringId> nodes;
  std::vector<StringId> paths;
  for (int i = 1; i <= 3; ++i) {
    nodes.push_back(trace.strings.intern("n" + std::to_string(i)));
    trace.meta.nodes.push_back("n" + std::to_string(i));
  }
  for (int i = 0; i < 5000; ++i)
    paths.push_back(trace.strings.intern("/var/lib/kv/n1/data/segment-" + std::to_string(rng() % 1'000'000) + ".log"));
  for (std::size_t i = 0; i < events; ++i) {
    Event e;
    ts += static_cast<std::int64_t>(rng() % 2'000'000);
    e.ts_ns = ts;
    e.node = nodes[rng() % 3];
    e.type = rng() % 4 == 0 ? EventType::sys : EventType::scf;
    e.pid = 4000 + static_cast<int>(rng() % 3);
    e.tid = e.pid + static_cast<int>(rng() % 8);
    e.syscall = rng() % 2 == 0 ? 257 : 262;
    if (e.type == EventType::scf) e.err = rng() % 8 == 0 ? 11 : 2;
    e.path = paths[rng() % paths.size()];
    trace.events.push_back(e);
  }
  return trace;
}

}  // namespace rose::trace::test
