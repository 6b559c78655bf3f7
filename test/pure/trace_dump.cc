#include "trace/dump.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>

#include "folder.h"
#include "trace/frames.h"
#include "trace_random.h"
#include "trace_same.h"

using namespace rose;
using namespace rose::trace;
using rose::trace::test::random_trace;
using rose::trace::test::realistic_trace;
using rose::trace::test::require_same;

namespace {

std::string to_bytes(const Trace& trace) {
  auto bytes = dump_to_bytes(trace);
  REQUIRE(bytes);
  return *bytes;
}

Result<ReadDump> parse(std::string_view bytes) {
  return parse_dump(std::as_bytes(std::span(bytes.data(), bytes.size())), "x.bin");
}

std::uint32_t u32_at(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, 4);
  return value;
}

void put_u32(std::string& bytes, std::size_t at, std::uint32_t value) { std::memcpy(bytes.data() + at, &value, 4); }

// The positions at which the blocks of an intact dump begin, and the position of its end.
std::vector<std::size_t> block_offsets(const std::string& bytes) {
  std::vector<std::size_t> offsets;
  std::size_t at = 16;
  while (at < bytes.size()) {
    offsets.push_back(at);
    at += 24 + u32_at(bytes, at + 8);
  }
  offsets.push_back(at);
  return offsets;
}

// A block with a correct checksum and arbitrary content, as a hostile writer could make it.
std::string forged_block(const char* kind, std::uint32_t items, const std::string& raw, std::uint32_t claimed_raw) {
  uLongf size = compressBound(raw.size());
  std::string packed(size, 0);
  REQUIRE(compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(raw.data()),
                    raw.size(), 9) == Z_OK);
  packed.resize(size);
  std::string block(24, '\0');
  std::memcpy(block.data(), kind, 4);
  put_u32(block, 4, items);
  put_u32(block, 8, static_cast<std::uint32_t>(size));
  put_u32(block, 12, claimed_raw);
  uLong crc = crc32(0, reinterpret_cast<const Bytef*>(block.data()), 16);
  crc = crc32(crc, reinterpret_cast<const Bytef*>(packed.data()), static_cast<uInt>(packed.size()));
  put_u32(block, 16, static_cast<std::uint32_t>(crc));
  return block + packed;
}

std::string forged_block(const char* kind, std::uint32_t items, const std::string& raw) {
  return forged_block(kind, items, raw, static_cast<std::uint32_t>(raw.size()));
}

std::string file_header_1() { return std::string("ROSEDUMP\1\0\0\0\0\0\0\0", 16); }
std::string file_header() { return std::string("ROSEDUMP\2\0\0\0\0\0\0\0", 16); }
std::string empty_meta() { return forged_block("META", 0, ""); }

// A record of version 1, as in a file. It is valid until it is changed.
std::string record() {
  std::string bytes(88, '\0');
  put_u32(bytes, 52, 0xffffffff);  // fd
  put_u32(bytes, 56, 0xffffffff);  // duration_ms
  put_u32(bytes, 60, 0xffffffff);  // exit_code
  put_u32(bytes, 68, 1);           // count
  bytes[81] = 1;                   // type
  return bytes;
}

std::string string_item(std::string_view text) {
  std::string bytes(4, '\0');
  put_u32(bytes, 0, static_cast<std::uint32_t>(text.size()));
  return bytes + std::string(text);
}

// A text that compresses badly.
std::string noise(std::size_t size) {
  std::mt19937_64 rng(1);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(rng());
  return text;
}

}  // namespace

TEST_CASE("random traces are equal after being written and read back", "[dump]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Trace trace = random_trace(seed, seed * 7 % 500);
    for (Event& event : trace.events) event.open_flags = event.packets / 3;
    const auto back = parse(to_bytes(trace));
    REQUIRE(back);
    CHECK_FALSE(back->damage);
    require_same(trace, back->trace);
  }
}

TEST_CASE("a trace of many blocks is read back", "[dump]") {
  const Trace trace = realistic_trace(5, 200'000);
  const std::string bytes = to_bytes(trace);
  CHECK(block_offsets(bytes).size() >= 25);
  const auto back = parse(bytes);
  REQUIRE(back);
  CHECK_FALSE(back->damage);
  require_same(trace, back->trace);
}

TEST_CASE("a dump is readable by its owner only, and replaced as a whole", "[dump]") {
  const rose::test::Folder folder;
  const std::string path = folder / "dump.bin";
  const Trace trace = random_trace(3, 100);
  REQUIRE(write_dump(trace, path));
  struct stat info{};
  REQUIRE(stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  const auto back = read_dump(path);
  REQUIRE(back);
  require_same(trace, back->trace);
  REQUIRE(write_dump(random_trace(4, 10), path));
  const auto again = read_dump(path);
  REQUIRE(again);
  CHECK(again->trace.events.size() == 10);
  const std::string nowhere = folder / "missing.bin";
  const auto missing = read_dump(nowhere);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().kind == ErrorKind::input);
  CHECK(missing.error().message.find(nowhere) != std::string::npos);
}

TEST_CASE("traces of identical or similar events stay within the reader's limit on compression", "[dump]") {
  Trace trace;
  Event event;
  event.ts_ns = 1'763'755'200'000'000'000;
  trace.events.assign(100'000, event);
  const std::string bytes = to_bytes(trace);
  CHECK(bytes.size() > 100'000);  // because this is stored without compression
  const auto back = parse(bytes);
  REQUIRE(back);
  CHECK_FALSE(back->damage);
  require_same(trace, back->trace);
  // If events differ only in their times, as failures in a loop do, they must compress well.
  for (std::size_t i = 0; i < trace.events.size(); ++i) trace.events[i].ts_ns += static_cast<std::int64_t>(i) * 1000;
  CHECK(to_bytes(trace).size() < 1'000'000);
  // Strings that are nearly the same.
  for (std::size_t i = 0; i < 3000; ++i)
    trace.events[i].path = trace.strings.intern(std::string(3000, 'x') + std::to_string(i));
  const auto alike = parse(to_bytes(trace));
  REQUIRE(alike);
  CHECK_FALSE(alike->damage);
  require_same(trace, alike->trace);
}

TEST_CASE("events without order are sorted on reading", "[dump]") {
  Trace trace = random_trace(8, 50);
  std::reverse(trace.events.begin(), trace.events.end());
  const auto back = parse(to_bytes(trace));
  REQUIRE(back);
  sort_by_time(trace);
  require_same(trace, back->trace);
}

TEST_CASE("events that cannot be saved are counted as lost, and the rest is saved", "[dump]") {
  Trace trace = random_trace(9, 20);
  trace.meta.lost = 5;
  trace.events[3].syscall = 9999;
  trace.events[4].path = 100'000;
  trace.events[5].count = 0;
  trace.meta.begin_ns = -1;
  const auto back = parse(to_bytes(trace));
  REQUIRE(back);
  CHECK_FALSE(back->damage);
  CHECK(back->trace.events.size() == 17);
  CHECK(back->trace.meta.lost == 8);
  CHECK(back->trace.meta.begin_ns == 0);
}

TEST_CASE("a dump truncated anywhere keeps its complete blocks", "[dump]") {
  const Trace trace = realistic_trace(11, 20'000);
  const std::string bytes = to_bytes(trace);
  const auto offsets = block_offsets(bytes);
  REQUIRE(offsets.size() == 6);  // the blocks are META, three times EVTS and DONE; the last offset is the end
  std::vector<std::size_t> cuts = {0, 1, 7, 8, 15, 16, 17, bytes.size() - 1};
  for (const std::size_t offset : offsets) {
    for (const std::size_t cut : {offset - 1, offset, offset + 1, offset + 23, offset + 24, offset + 25})
      if (cut < bytes.size()) cuts.push_back(cut);
  }
  for (const std::size_t cut : cuts) {
    INFO("cut at " << cut << " of " << bytes.size());
    const auto back = parse(std::string_view(bytes).substr(0, cut));
    std::size_t whole = 0;  // number of the block that is cut
    while (whole + 1 < offsets.size() && offsets[whole + 1] <= cut) ++whole;
    if (cut < offsets[1]) {
      REQUIRE_FALSE(back);
      CHECK(back.error().kind == ErrorKind::input);
      CHECK(back.error().message.find("x.bin") == 0);
      continue;
    }
    REQUIRE(back);
    REQUIRE(back->damage);
    CHECK(back->damage->kind == ErrorKind::input);
    CHECK(back->damage->message.find("x.bin: damaged at byte " + std::to_string(offsets[whole]) + ":") == 0);
    std::size_t events = 0;
    for (std::size_t i = 0; i < whole; ++i)
      if (bytes.compare(offsets[i], 4, "EVTS") == 0) events += u32_at(bytes, offsets[i] + 4);
    CHECK(back->trace.events.size() == events);
    for (std::size_t i = 0; i < events; i += 997)
      CHECK(rose::trace::test::same_event(trace, trace.events[i], back->trace, back->trace.events[i]));
  }
}

TEST_CASE("any changed byte is detected", "[dump]") {
  const Trace trace = random_trace(12, 40);
  const std::string bytes = to_bytes(trace);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string bad = bytes;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    const auto back = parse(bad);
    if (back && !back->damage) FAIL("byte " << at << " changed and nothing said");
  }
}

TEST_CASE("foreign files are refused", "[dump]") {
  struct Case {
    std::string bytes;
    const char* message;
  };
  std::string newer = to_bytes(random_trace(1, 3));
  newer[8] = 7;
  const Case cases[] = {
      {"", "not a rose dump, the file is empty"},
      {"\x7f"
       "ELF something else entirely",
       "not a rose dump (wrong first bytes)"},
      {"ROSEDU", "not a rose dump"},
      {"ROSEDUMP\1", "ends inside its header"},
      {newer, "version 7, at byte 8; this rose reads versions 1 to 3"},
      {"{\"meta\":{\"version\":1}}\n", "not a rose dump"},
  };
  for (const Case& c : cases) {
    const auto back = parse(c.bytes);
    REQUIRE_FALSE(back);
    INFO(back.error().message);
    CHECK(back.error().kind == ErrorKind::input);
    CHECK(back.error().message.find("x.bin: ") == 0);
    CHECK(back.error().message.find(c.message) != std::string::npos);
  }
  CHECK(parse(cases[5].bytes).error().hint.find("rose dump import") != std::string::npos);
}

TEST_CASE("version 1: forged blocks with valid checksums are refused", "[dump]") {
  const auto changed = [](std::size_t at, char value) {
    std::string bytes = record();
    bytes[at] = value;
    return bytes;
  };
  const auto tagged = [](std::uint16_t tag, std::string_view value) {
    std::string bytes(2, '\0');
    std::memcpy(bytes.data(), &tag, 2);
    return bytes + string_item(value);
  };
  const std::string done = forged_block("DONE", 1, std::string(16, '\0'));
  const auto file_header = file_header_1;
  // First check that the unchanged blocks are valid, so that each change below is refused for its own reason.
  {
    const auto back = parse(file_header() + empty_meta() + done);
    REQUIRE(back);
    CHECK_FALSE(back->damage);
    const auto one = parse(file_header() + empty_meta() + forged_block("EVTS", 1, record()));
    REQUIRE(one);
    CHECK(one->trace.events.size() == 1);
    const auto extended = parse(file_header() + forged_block("META", 2, tagged(1, "n1") + tagged(999, "later")) + done);
    REQUIRE(extended);
    CHECK_FALSE(extended->damage);
    CHECK(extended->trace.meta.node == "n1");
  }
  struct Case {
    std::string blocks;  // the blocks that follow a good META
    const char* message;
  };
  const Case cases[] = {
      {forged_block("EVTS", 1, record(), 0xffffffff), "claims 4294967295 bytes"},
      {forged_block("EVTS", 1, record(), 1U << 24), "compressed ones"},
      {forged_block("EVTS", 1, record(), 87), "does not unpack"},
      {forged_block("EVTS", 1, record(), 89), "does not unpack"},
      // a valid block that decompresses to far more bytes than the format allows for its compressed size
      {forged_block("STRS", 0, std::string(1 << 20, '\0')), "compressed ones"},
      {forged_block("EVTS", 2, record()), "wrong size"},
      {forged_block("EVTS", 0xffffffff, record()), "wrong size"},
      {forged_block("EVTS", 1, changed(81, 0)), "type 0"},
      {forged_block("EVTS", 1, changed(81, 6)), "type 6"},
      {forged_block("EVTS", 1, changed(82, 5)), "state 5"},
      {forged_block("EVTS", 1, changed(83, 1)), "protocol 1"},
      {forged_block("EVTS", 1, changed(7, '\x80')), "ts"},
      {forged_block("EVTS", 1, changed(7, '\x41')), "ts"},
      {forged_block("EVTS", 1, changed(73, 3)), "syscall"},
      {forged_block("EVTS", 1, changed(75, '\x80')), "errno"},
      {forged_block("EVTS", 1, changed(80, 65)), "signal"},
      {forged_block("EVTS", 1, changed(68, 0)), "count"},
      {forged_block("EVTS", 1, changed(47, '\x80')), "pid"},
      {forged_block("EVTS", 1, changed(16, 1)), "string 1 does not exist"},
      {forged_block("EVTS", 1, changed(40, 1)), "string 1 does not exist"},
      {forged_block("STRS", 1, string_item("a") + "x"), "longer than its strings"},
      {forged_block("STRS", 2, string_item("a")), "cut short"},
      {forged_block("STRS", 1, std::string("\xff\xff\xff\xff", 4)), "cut short"},
      {forged_block("STRS", 2, string_item("a") + string_item("a")), "given twice"},
      {forged_block("STRS", 1, string_item(noise(kLongestString + 1))), "a string claims"},
      {empty_meta(), "out of order"},
      {forged_block("WHAT", 0, ""), "no block of a known kind"},
      {forged_block("DONE", 1, std::string(15, '\0')), "wrong size"},
      {forged_block("DONE", 1, std::string(16, '\1')), "should hold"},
      {done + "x", "more bytes follow the end"},
      {"", "without the mark of a complete dump"},
  };
  for (const Case& c : cases) {
    const auto back = parse(file_header() + empty_meta() + c.blocks);
    REQUIRE(back);
    REQUIRE(back->damage);
    INFO(back->damage->message << " / " << c.message);
    CHECK(back->damage->message.find("x.bin: damaged at byte ") == 0);
    CHECK(back->damage->message.find(c.message) != std::string::npos);
    CHECK(back->trace.events.empty());
  }
  const std::string metas[] = {
      done,
      forged_block("META", 1, ""),
      forged_block("META", 1, tagged(5, "short")),
      forged_block("META", 1, tagged(13, std::string(8, '\xff'))),
      forged_block("META", 0, "x"),
      forged_block("META", 0xffffffff, tagged(1, "n1")),
  };
  for (const std::string& meta : metas) {
    const auto back = parse(file_header() + meta);
    REQUIRE_FALSE(back);
    CHECK(back.error().message.find("x.bin: damaged at byte 16") == 0);
  }
}

// A block of version 2, not compressed: one string and two events. `given` replaces columns, by number from 1, or the
// times (0).
std::string columns(const std::map<int, std::string>& given = {}, std::string strings = {}) {
  std::string raw = strings.empty() ? std::string("\1\0\2/x", 5) : std::move(strings);
  const auto one = [](std::uint64_t value) {
    std::string bytes(9, '\0');
    std::memcpy(bytes.data() + 1, &value, 8);
    return bytes;
  };
  // the columns are: result node path path2 peer function src dst pid tid fd duration exit packets count syscall err
  // sport dport signal type state protocol flags open_flags; signed ones are zigzag-coded
  const std::uint64_t usual[] = {0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 1, 4, 0, 0, 0, 1, 0, 0, 0, 0};
  raw += given.contains(0) ? given.at(0) : std::string("\x14\1\6", 3);  // the first time is 10, the second one 3 more
  for (int i = 0; i < 25; ++i) raw += given.contains(i + 1) ? given.at(i + 1) : one(usual[i]);
  return raw;
}

// The columns that version 3 added: by, requested, begin_within, end_within, usual.
std::string later_columns() {
  std::string raw;
  for (const char value : {0, 9, 1, 1, 1}) raw += std::string(1, '\0') + std::string(1, value) + std::string(7, '\0');
  return raw;
}

TEST_CASE("columns missing in a version have default values", "[dump]") {
  const auto parsed = [](const std::string& raw) {
    const auto back = parse(file_header() + empty_meta() + forged_block("EVTS", 2, raw));
    REQUIRE(back);
    REQUIRE(back->trace.events.size() == 2);
    return back->trace.events[1];
  };
  const Event older = parsed(columns()), newer = parsed(columns() + later_columns());
  CHECK(older.by == 0);
  CHECK(older.requested == 0);
  CHECK(older.begin_within_ms == -1);
  CHECK(older.usual_ms == -1);
  CHECK(newer.requested == 9);
  CHECK(newer.usual_ms == -1);
}

TEST_CASE("version 2: forged blocks with valid checksums are refused", "[dump]") {
  const auto done = [](char events, char strings, char missed) {
    std::string totals(24, '\0');
    totals[0] = events;
    totals[8] = strings;
    totals[16] = missed;
    return forged_block("DONE", 1, totals);
  };
  // First check that the unchanged blocks are valid.
  {
    const auto back = parse(file_header() + empty_meta() + forged_block("EVTS", 2, columns()) + done(2, 1, 5));
    REQUIRE(back);
    INFO((back->damage ? back->damage->message : ""));
    CHECK_FALSE(back->damage);
    REQUIRE(back->trace.events.size() == 2);
    CHECK(back->trace.events[0].ts_ns == 10);
    CHECK(back->trace.events[1].ts_ns == 13);
    CHECK(back->trace.str(back->trace.events[1].path) == "/x");
    CHECK(back->trace.events[1].err == 2);
    CHECK(back->trace.meta.lost == 5);
  }
  // In a window, times are those of the monotonic clock. The header contains their offset to the wall clock.
  {
    std::string shift(8, '\0');
    put_u32(shift, 0, 1000);
    const std::string meta = forged_block("META", 1, std::string("\x11\0", 2) + string_item(shift));
    const auto back = parse(file_header() + meta + forged_block("EVTS", 2, columns()) + done(2, 1, 0));
    REQUIRE(back);
    CHECK_FALSE(back->damage);
    CHECK(back->trace.events[1].ts_ns == 1013);
    const auto wild =
        parse(file_header() + forged_block("META", 1, std::string("\x11\0", 2) + string_item(std::string(8, '\x7f'))));
    CHECK_FALSE(wild);
  }
  const std::string big = std::string("\1\0\x81\x80\x40", 5) + noise(kLongestString + 1);
  struct Case {
    std::string blocks;
    const char* message;
  };
  const Case cases[] = {
      {forged_block("EVTS", 0xffffffff, columns()), "claims 4294967295 events"},
      {forged_block("EVTS", 3, columns()), "not valid"},
      {forged_block("EVTS", 1, columns()), "not valid"},
      {forged_block("EVTS", 2, columns() + "x"), "column 27"},
      {forged_block("EVTS", 2, columns() + later_columns() + "x"), "longer than its columns"},
      {forged_block("EVTS", 2, columns().substr(0, 40)), "column"},
      {forged_block("EVTS", 2, ""), "cut short"},
      {forged_block("EVTS", 2, columns({}, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f")), "cut short"},
      {forged_block("EVTS", 2, columns({}, std::string("\1\1\2/x", 5))), "shares more"},
      {forged_block("EVTS", 2, columns({}, big)), "a string claims"},
      {forged_block("EVTS", 2, columns({{0, std::string("\x14\0\6\0\0\0\0\0\0\0", 10)}})), "times are not valid"},
      {forged_block("EVTS", 2, columns({{0, std::string("\x14\3\6\0\0", 5)}})), "times are not valid"},
      {forged_block("EVTS", 2, columns({{0, std::string("\x13\1\6", 3)}})), "ts -10"},
      {forged_block("EVTS", 2, columns({{3, std::string("\1\1\2", 3)}})), "string 2 does not exist"},
      {forged_block("EVTS", 2, columns({{9, std::string("\4\0\0\0\0\1\0\0\0", 9)}})), "pid -1"},
      {forged_block("EVTS", 2, columns({{20, std::string("\2\0\0\0\1", 5)}})), "column 21"},
      {forged_block("EVTS", 2, columns({{21, std::string("\1\1\0", 3)}})), "type 0"},
      {forged_block("EVTS", 2, columns({{24, std::string("\2\0\0\0\x80", 5)}})), "flags"},
      {forged_block("STRS", 1, string_item("a")), "ended with version 1"},
      {done(1, 0, 0), "should hold"},
      {forged_block("DONE", 1, std::string(16, '\0')), "wrong size"},
  };
  for (const Case& c : cases) {
    const auto back = parse(file_header() + empty_meta() + c.blocks);
    REQUIRE(back);
    REQUIRE(back->damage);
    INFO(back->damage->message << " / " << c.message);
    CHECK(back->damage->message.find(c.message) != std::string::npos);
    CHECK(back->trace.events.empty());
  }
  // A decompression bomb: each string is encoded as a copy of the previous one.
  std::string bomb("\x91\x4e\0\x80\x80\4", 6);
  bomb += std::string(1 << 16, 'x');
  for (int i = 0; i < 10000; ++i) bomb += std::string("\x80\x80\4\0", 4);
  const auto back = parse(file_header() + empty_meta() + forged_block("EVTS", 2, columns({}, bomb)));
  REQUIRE(back);
  REQUIRE(back->damage);
  CHECK(back->damage->message.find("compressed ones") != std::string::npos);
}

TEST_CASE("a million events are written and read", "[dump]") {
  const std::size_t many = rose::trace::test::big();
  const Trace trace = realistic_trace(21, many);
  const auto seconds = [](auto&& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::string bytes;
  std::size_t events = 0;
  const double writing = seconds([&] { bytes = to_bytes(trace); });
  const double reading = seconds([&] { events = parse(bytes)->trace.events.size(); });
  CHECK(events == many);
  std::printf("%zu events: %.1f MB, written in %.2f s, read in %.2f s\n", many, static_cast<double>(bytes.size()) / 1e6,
              writing, reading);
}

namespace {

std::string numbered_dump(std::size_t events) {
  Trace trace;
  trace.meta.node = "a";
  for (std::size_t i = 0; i < events; ++i) {
    Event& event = trace.events.emplace_back();
    event.node = trace.strings.intern("a");
    event.type = EventType::scf;
    event.ts_ns = static_cast<std::int64_t>(i);
    event.syscall = 1;
    event.err = 5;
  }
  return dump_to_bytes(trace).value();
}

// Returns how many bytes DumpFrames accepts if they arrive in pieces of `piece` bytes.
std::size_t frames_taken(std::string_view bytes, std::size_t piece, bool* complete = nullptr) {
  DumpFrames frames;
  std::size_t all = 0;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const std::string_view part = bytes.substr(at, piece);
    const std::size_t some = frames.take(part);
    all += some;
    if (some < part.size()) break;
  }
  if (complete != nullptr) *complete = frames.complete();
  return all;
}

}  // namespace

TEST_CASE("frames: all bytes of a dump are taken, and none after its end") {
  const std::string whole = numbered_dump(20'000);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, whole.size() * 2}) {
    bool complete = false;
    CHECK(frames_taken(whole, piece, &complete) == whole.size());
    CHECK(complete);
    CHECK(frames_taken(whole.substr(0, whole.size() - 1), piece, &complete) == whole.size() - 1);
    CHECK_FALSE(complete);
    CHECK(frames_taken(whole + whole, piece) == whole.size());
    CHECK(frames_taken(whole + std::string(1 << 20, '\0'), piece) == whole.size());
  }
}

TEST_CASE("frames: bytes that are no dump are refused at once") {
  CHECK(frames_taken("Welcome", 1) == 0);
  CHECK(frames_taken("ROSEDUMQ", 1) == 7);
  CHECK(frames_taken("ROSEDUMQ", 8) == 0);
  CHECK(frames_taken(std::string(1 << 20, '\0'), 4096) == 0);
  std::string block = numbered_dump(1).substr(0, 16);
  CHECK(frames_taken(block + std::string(1 << 20, 'x'), 1 << 20) == 16);
  // A block that claims far more compressed bytes than its content can have.
  block += std::string("EVTS\1\0\0\0\xff\xff\xff\xff\10\0\0\0", 16) + std::string(8, '\0');
  CHECK(frames_taken(block + std::string(1 << 20, 'x'), 1 << 20) == 16);
}
