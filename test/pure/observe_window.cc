// The window, whose memory is bounded: how events are packed and overwritten, and what a slow reader of a snapshot
// sees.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "observe/window.h"
#include "trace/dump.h"

using namespace rose;
using namespace rose::observe;

namespace {

Decoded failure(std::string path, std::int64_t ts, int err = 2) {
  Decoded out;
  out.event.type = trace::EventType::scf;
  out.event.syscall = 257;
  out.event.err = static_cast<std::int16_t>(err);
  out.event.ts_ns = ts;
  out.path = std::move(path);
  out.has_path = true;
  return out;
}

struct Made {
  std::vector<std::string> names;
  Window window;
  Made(std::uint64_t events, std::uint64_t bytes)
      : names(1), window(events, bytes, {"n1", "n2"}, [this](std::uint32_t i) {
          names[0] = "f" + std::to_string(i);
          return std::string_view(names[0]);
        }) {}
};

// Reads the snapshot as a reader of the dump does.
trace::Trace read(Snapshot& snapshot) {
  trace::Trace trace;
  std::string raw;
  for (;;) {
    const auto block = snapshot.next();
    REQUIRE(block);
    if (!*block) return trace;
    trace::BlockHeader header;
    std::size_t strings = 0;
    REQUIRE_FALSE(trace::open_block((*block)->block, header, raw));
    REQUIRE_FALSE(trace::unpack_events(header, raw, 0, trace, strings));
  }
}
trace::Trace read(Window& window) { return read(*window.snapshot()); }

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

}  // namespace

TEST_CASE("the window keeps exactly the requested number of newest events") {
  for (const std::uint64_t most : {1U, 3U, 1000U, 20'000U}) {
    Made made(most, 16 * kMiB);
    Window& window = made.window;
    for (int i = 0; i < 50'000; ++i) {
      window.add(failure("/p/" + std::to_string(i), i));
      if (i % 7919 != 0) continue;
      const auto trace = read(window);
      REQUIRE(trace.events.size() == std::min<std::uint64_t>(most, static_cast<std::uint64_t>(i) + 1));
      REQUIRE(trace.events.back().ts_ns == i);
    }
    CHECK(window.size() == most);
    const auto trace = read(window);
    REQUIRE(trace.events.size() == most);
    for (std::size_t i = 0; i < most; ++i) {
      REQUIRE(trace.str(trace.events[i].path) == "/p/" + std::to_string(50'000 - most + i));
      REQUIRE(trace.events[i].ts_ns == static_cast<std::int64_t>(50'000 - most + i));
      REQUIRE(trace.str(trace.events[i].node) == "n1");
    }
  }
}

TEST_CASE("a shortened snapshot keeps the newest events") {
  constexpr int kEvents = 50'000;
  Made made(100'000, 16 * kMiB);
  for (int i = 0; i < kEvents; ++i) made.window.add(failure("/p/" + std::to_string(i * 7919), i));
  std::uint64_t all = 0;
  // The limits are a third of the snapshot's bytes, less than its newest block, all of its bytes, and less than any
  // block.
  for (const std::uint64_t part : {3U, 20U, 1U, 1'000'000U}) {
    const auto snapshot = made.window.snapshot();
    const auto bytes = snapshot->pack();
    REQUIRE(bytes);
    all = *bytes;
    const std::uint64_t left_out = snapshot->shorten(all / part);
    const auto packed = snapshot->pack();
    REQUIRE(packed);
    CAPTURE(part, all, *packed, left_out);
    CHECK(*packed <= all / part);
    CHECK((left_out == 0) == (part == 1));
    CHECK(snapshot->empty() == (part == 1'000'000));
    const auto trace = read(*snapshot);
    CHECK(trace.events.size() + left_out == kEvents);
    if (trace.events.empty()) continue;
    CHECK(trace.events.back().ts_ns == kEvents - 1);
    CHECK(trace.events.front().ts_ns == static_cast<std::int64_t>(left_out));
    CHECK(trace.str(trace.events.back().path) == "/p/" + std::to_string((kEvents - 1) * 7919));
  }
}

TEST_CASE("the window's memory stays within its bound, also with long paths") {
  for (const auto& [most, count] : {std::pair(2 * kMiB, 20'000), std::pair(24 * kMiB, 60'000)}) {
    Made made(1'000'000, most);
    Window& window = made.window;
    std::uint64_t highest = 0;
    for (int i = 0; i < count; ++i) {
      // This text compresses badly, so that the limit is reached.
      std::string text = "/" + std::to_string(i) + "/";
      std::uint64_t word = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL + 1;
      for (int j = 0; j < i % 1000; ++j) {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        text += static_cast<char>(' ' + word % 90);
      }
      window.add(failure(std::move(text), i));
      highest = std::max(highest, window.bytes());
    }
    CHECK(highest <= most + most / 16);
    window.settle();
    CHECK(window.bytes() <= most);
    CHECK(window.size() > 500);
    const auto trace = read(window);
    CHECK(trace.str(trace.events.back().path).starts_with("/" + std::to_string(count - 1) + "/"));
    CHECK(trace.events.size() == window.size());
  }
}

TEST_CASE("many short records are packed to a fraction of their size") {
  Made made(1'000'000, 8 * kMiB);
  Window& window = made.window;
  Decoded entered;
  entered.event.type = trace::EventType::af;
  for (int i = 0; i < 600'000; ++i) {
    entered.event.ts_ns = i * std::int64_t{1'000} + (i * std::int64_t{7919}) % 1000;
    entered.function = static_cast<std::uint32_t>(i % 3000);
    window.add(entered);
  }
  window.settle();
  CHECK(window.bytes() <= 8 * kMiB);
  CHECK(window.size() == 600'000);
  const auto trace = read(window);
  REQUIRE(trace.events.size() == 600'000);
  for (std::size_t i = 0; i < trace.events.size(); i += 997)
    REQUIRE(trace.str(trace.events[i].function) == "f" + std::to_string(i % 3000));
}

TEST_CASE("a snapshot does not change while the window advances") {
  Made made(10'000, 16 * kMiB);
  Window& window = made.window;
  for (int i = 0; i < 10'000; ++i) window.add(failure("/a/" + std::to_string(i), i));
  const auto snapshot = window.snapshot();
  for (int i = 10'000; i < 40'000; ++i) window.add(failure("/b/" + std::to_string(i), i));
  CHECK(snapshot->events() == 10'000);
  const auto trace = read(*snapshot);
  CHECK(snapshot->missed() == 0);
  REQUIRE(trace.events.size() == 10'000);
  CHECK(trace.events.front().ts_ns == 0);
  CHECK(trace.events.back().ts_ns == 9'999);
  CHECK(read(window).events.front().ts_ns == 30'000);
}

TEST_CASE("a window of long paths fits the dump reader's limit and contains the newest events") {
  // These paths compress so well that 64 MiB hold more than a gigabyte of them.
  Made made(1'000'000, 64 * kMiB);
  Window& window = made.window;
  constexpr int kEvents = 150'000;
  const std::string folder = "/" + std::string(3900, 'x') + "/";
  std::uint64_t word = 1;
  for (int i = 0; i < kEvents; ++i) {
    std::string path = folder;
    for (int j = 0; j < 8; ++j) {
      word = word * 6364136223846793005ULL + 1442695040888963407ULL;
      path += fmt::format("{:016x}", word);
    }
    window.add(failure(std::move(path), i));
  }
  std::string dump;
  trace::DumpWriter writer([&](std::string_view bytes) -> Result<void> {
    dump += bytes;
    return {};
  });
  REQUIRE(writer.begin({}));
  const auto snapshot = window.snapshot();
  for (;;) {
    const auto block = snapshot->next();
    REQUIRE(block);
    if (!*block) break;
    REQUIRE(writer.add(**block));
  }
  REQUIRE(writer.end(snapshot->missed()));
  const auto read = trace::parse_dump(std::as_bytes(std::span(dump)), "dump");
  REQUIRE(read);
  INFO((read->damage ? read->damage->message : "whole"));
  CHECK_FALSE(read->damage);
  REQUIRE_FALSE(read->trace.events.empty());
  CHECK(read->trace.events.size() == window.size());
  CHECK(read->trace.events.back().ts_ns == kEvents - 1);
  CHECK(read->trace.events.size() > kEvents * 3 / 4);
}

TEST_CASE("snapshots that were read are released, also without new events") {
  Made made(1000, 4 * kMiB);
  made.window.add(failure("/p", 1));
  for (int i = 0; i < 1000; ++i) (void)made.window.snapshot();
  CHECK(made.window.snapshots() <= 1);
}

TEST_CASE("a dump that is not read is overwritten, and the lost part is counted") {
  Made made(1'000'000, 4 * kMiB);
  Window& window = made.window;
  const auto add = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      std::string text = "/";
      std::uint64_t word = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL + 1;
      for (int j = 0; j < 200; ++j) {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        text += static_cast<char>(' ' + word % 90);
      }
      window.add(failure(std::move(text), i));
    }
  };
  add(0, 40'000);
  const auto snapshot = window.snapshot();
  const auto held = snapshot->events();
  std::uint64_t highest = 0;
  for (int i = 0; i < 40; ++i) {
    add(40'000 + i * 1000, 41'000 + i * 1000);
    highest = std::max(highest, window.bytes());
  }
  CHECK(highest <= 4 * kMiB + 4 * kMiB / 16);
  const auto trace = read(*snapshot);
  CHECK(snapshot->missed() > 0);
  CHECK(trace.events.size() + snapshot->missed() == held);
  if (!trace.events.empty()) CHECK(trace.events.back().ts_ns == 39'999);
  CHECK(read(window).events.back().ts_ns == 79'999);
}

TEST_CASE("snapshots are read while events arrive and blocks are packed") {
  Made made(50'000, 8 * kMiB);
  Window& window = made.window;
  std::mutex turn;
  std::thread adder([&] {
    for (int i = 0; i < 400'000; ++i) {
      const std::lock_guard lock(turn);
      window.add(failure("/p/" + std::to_string(i % 977), i));
    }
  });
  std::vector<trace::Trace> traces;
  for (int round = 0; round < 20; ++round) {
    std::shared_ptr<Snapshot> snapshot;
    {
      const std::lock_guard lock(turn);
      snapshot = window.snapshot();
    }
    traces.push_back(read(*snapshot));
  }
  adder.join();
  for (const auto& trace : traces) {
    for (std::size_t i = 1; i < trace.events.size(); ++i)
      REQUIRE(trace.events[i].ts_ns == trace.events[i - 1].ts_ns + 1);
  }
  CHECK(read(window).events.size() == 50'000);
}

TEST_CASE("events are equal after being packed and read back") {
  Made made(100, 4 * kMiB);
  Window& window = made.window;
  Decoded in;
  in.event.type = trace::EventType::nd;
  in.event.duration_ms = 7300;
  in.event.packets = 412;
  in.event.sport = 65535;
  in.event.dport = 7000;
  in.event.protocol = trace::Protocol::udp;
  in.src = "10.0.0.1";
  in.dst = "fe80::1";
  window.add(in);
  in = {};
  in.event.type = trace::EventType::ps;
  in.event.state = trace::ProcessState::crashed;
  in.event.signal = 64;
  in.event.exit_code = -1;
  in.event.flags = trace::kMain | trace::kCoreDumped | trace::kOutOfMemory | trace::kBlocked;
  in.node = 1;
  window.add(in);
  const auto trace = read(window);
  const auto& nd = trace.events[0];
  CHECK(nd.duration_ms == 7300);
  CHECK(nd.packets == 412);
  CHECK(nd.count == 1);
  CHECK(nd.sport == 65535);
  CHECK(nd.dport == 7000);
  CHECK(nd.protocol == trace::Protocol::udp);
  CHECK(trace.str(nd.src) == "10.0.0.1");
  CHECK(trace.str(nd.dst) == "fe80::1");
  const auto& ps = trace.events[1];
  CHECK(ps.state == trace::ProcessState::crashed);
  CHECK(ps.signal == 64);
  CHECK(ps.exit_code == -1);
  CHECK(ps.flags == (trace::kMain | trace::kCoreDumped | trace::kOutOfMemory | trace::kBlocked));
  CHECK(trace.str(ps.node) == "n2");
}
