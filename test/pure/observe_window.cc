// The window in bounded memory: overwriting, counting texts, collapsing storms.
#include <catch2/catch.hpp>
#include <string>

#include "observe/window.h"

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

std::uint64_t total(const Window& window) {
  std::uint64_t sum = 0;
  for (const auto& slot : window.copy().slots) sum += slot.count;
  return sum;
}

}  // namespace

TEST_CASE("the newest events stay") {
  Window window(1000, std::uint64_t{16} << 20);
  for (int i = 0; i < 50'000; ++i) window.add(failure("/p/" + std::to_string(i), i));
  CHECK(window.size() == 1000);
  CHECK(window.overwritten() == 49'000);
  const auto copy = window.copy();
  REQUIRE(copy.slots.size() == 1000);
  for (int i = 0; i < 1000; ++i) {
    const auto event = unpack(copy.slots[static_cast<std::size_t>(i)]);
    REQUIRE(copy.texts[event.path] == "/p/" + std::to_string(49'000 + i));
    REQUIRE(event.ts_ns == 49'000 + i);
  }
}

TEST_CASE("memory stays within its bound, long paths included") {
  for (const std::uint64_t most : {std::uint64_t{2} << 20, std::uint64_t{8} << 20, std::uint64_t{24} << 20}) {
    Window window(1'000'000, most);
    std::uint64_t highest = 0;
    for (int i = 0; i < 60'000; ++i) {
      window.add(failure("/" + std::string(static_cast<std::size_t>(i % 2000), 'x') + std::to_string(i), i));
      highest = std::max(highest, window.bytes());
    }
    CHECK(highest <= most + (std::uint64_t{1} << 20));
    CHECK(window.bytes() <= most);
    CHECK(window.size() > 500);
    CHECK(window.size() + window.overwritten() == 60'000);
    const auto copy = window.copy();
    CHECK(copy.texts[unpack(copy.slots.back()).path].ends_with("59999"));
  }
}

TEST_CASE("many short records: as many as fit") {
  Window window(1'000'000, std::uint64_t{8} << 20);
  Decoded entered;
  entered.event.type = trace::EventType::af;
  for (int i = 0; i < 400'000; ++i) {
    entered.event.ts_ns = i;
    entered.function = static_cast<std::uint32_t>(i);
    window.add(entered);
  }
  CHECK(window.bytes() <= std::uint64_t{8} << 20);
  CHECK(window.size() > 100'000);
  const auto copy = window.copy();
  for (std::size_t i = 0; i < copy.slots.size(); ++i) {
    REQUIRE(function_of(copy.slots[i]) == 400'000 - copy.slots.size() + i);
  }
}

TEST_CASE("storms collapse, the first ones and what is different are kept") {
  Window window(10'000, std::uint64_t{8} << 20);
  constexpr std::int64_t kMs = 1'000'000;
  for (int i = 0; i < 3000; ++i) {
    window.add(failure("/storm", i * kMs));  // three seconds of it
    if (i == 1500) window.add(failure("/storm", i * kMs, 13));
    if (i % 100 == 0) window.add(failure("/other", i * kMs));
  }
  CHECK(total(window) == 3000 + 1 + 30);
  const auto copy = window.copy();
  std::uint64_t storm = 0;
  bool different = false;
  for (const auto& slot : copy.slots) {
    const auto event = unpack(slot);
    if (copy.texts[event.path] == "/storm" && event.err == 2) ++storm;
    different |= event.err == 13 && event.count == 1;
  }
  CHECK(different);
  CHECK(storm >= 16);
  CHECK(storm <= 16 + 4);
  // A counted record bears the time of the last.
  std::int64_t last = 0;
  for (const auto& slot : copy.slots) last = std::max(last, slot.ts_ns);
  CHECK(last == 2999 * kMs);
}

TEST_CASE("equal events far apart are no storm") {
  Window window(10'000, std::uint64_t{8} << 20);
  for (int i = 0; i < 100; ++i) window.add(failure("/slow", i * std::int64_t{1'500'000'000}));
  CHECK(window.size() == 100);
}

TEST_CASE("a storm whose record was overwritten begins a new one") {
  Window window(20, std::uint64_t{8} << 20);
  std::uint64_t added = 0;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 40; ++i, ++added) window.add(failure("/storm", static_cast<std::int64_t>(added)));
    for (int i = 0; i < 25; ++i, ++added) window.add(failure("/x" + std::to_string(added), static_cast<std::int64_t>(added)));
  }
  CHECK(window.size() == 20);
  for (const auto& slot : window.copy().slots) CHECK(window.copy().texts[slot.text[0]].starts_with("/x"));
  for (int i = 0; i < 40; ++i, ++added) window.add(failure("/storm", static_cast<std::int64_t>(added)));
  const auto copy = window.copy();
  std::uint64_t counted = 0;
  for (const auto& slot : copy.slots) {
    if (copy.texts[slot.text[0]] == "/storm") counted += slot.count;
  }
  CHECK(counted == 40);
}

TEST_CASE("events come out of their slots as they went in") {
  Window window(100, std::uint64_t{4} << 20);
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
  in.event.flags = trace::kMain | trace::kCoreDumped;
  in.node = 255;
  window.add(in);
  const auto copy = window.copy();
  const auto nd = unpack(copy.slots[0]);
  CHECK(nd.duration_ms == 7300);
  CHECK(nd.packets == 412);
  CHECK(nd.count == 1);
  CHECK(nd.sport == 65535);
  CHECK(nd.dport == 7000);
  CHECK(nd.protocol == trace::Protocol::udp);
  CHECK(copy.texts[nd.src] == "10.0.0.1");
  CHECK(copy.texts[nd.dst] == "fe80::1");
  const auto ps = unpack(copy.slots[1]);
  CHECK(ps.state == trace::ProcessState::crashed);
  CHECK(ps.signal == 64);
  CHECK(ps.exit_code == -1);
  CHECK(ps.flags == (trace::kMain | trace::kCoreDumped));
  CHECK(copy.slots[1].node == 255);
}
