#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <string>

#include "jvm/state.h"

using namespace rose::jvm;

namespace {

std::string head(std::uint32_t used) {
  StateHead one;
  one.record_bytes = sizeof(StateRecord);
  one.used = used;
  one.pid = 42;
  one.breakpoints = 1;
  std::strcpy(one.version, "17.0.15+6");
  return {reinterpret_cast<const char*>(&one), sizeof one};
}

std::string packed(RecordKind kind, std::string_view text, std::uint32_t entry = 0) {
  StateRecord one;
  one.kind = static_cast<std::uint32_t>(kind);
  one.entry = entry;
  one.length = static_cast<std::uint32_t>(text.size());
  std::memcpy(one.text, text.data(), text.size());
  return {reinterpret_cast<const char*>(&one), sizeof one};
}

}  // namespace

TEST_CASE("the state that a JVM wrote is read back") {
  JvmState state;
  REQUIRE(parse_state(head(2) + packed(RecordKind::note, "no\x1b", 7) + packed(RecordKind::place, "x.A.m", 3), state));
  CHECK(state.pid == 42);
  CHECK(state.breakpoints);
  CHECK(state.version == "17.0.15+6");
  REQUIRE(state.notes.size() == 1);
  CHECK(state.notes[0].entry == 7);
  CHECK(state.notes[0].text == "no?");  // characters that could control a terminal are replaced
  REQUIRE(state.places.size() == 1);
  CHECK(state.places[0].entry == 3);
  CHECK(state.places[0].text == "x.A.m");
}

TEST_CASE("values that a JVM recorded on request are read back") {
  std::string placed = packed(RecordKind::asked, "x.A.m|int", 5);
  const std::uint32_t flags = kAskedPlaced;
  std::memcpy(placed.data() + offsetof(StateRecord, flags), &flags, sizeof flags);
  JvmState state;
  REQUIRE(parse_state(head(2) + placed + packed(RecordKind::asked, "x.A was compiled without names", 6), state));
  REQUIRE(state.asked.size() == 2);
  CHECK(state.asked[0].placed);
  CHECK(state.asked[0].fetch == 5);
  CHECK(state.asked[0].text == "x.A.m|int");
  CHECK_FALSE(state.asked[1].placed);
  CHECK(state.asked[1].fetch == 6);
  CHECK(state.notes.empty());
}

TEST_CASE("a state file of a killed JVM is read up to its end, a foreign file is refused") {
  JvmState state;
  CHECK_FALSE(parse_state("", state));
  CHECK_FALSE(parse_state(std::string(sizeof(StateHead), 'x'), state));
  // The header says that there are more records than the file contains.
  REQUIRE(
      parse_state(head(1000) + packed(RecordKind::note, "a") + packed(RecordKind::note, "b").substr(0, 100), state));
  CHECK(state.notes.size() == 1);
  // Records are left out if their length is too large, or if their kind is unknown because a later version wrote them.
  StateRecord one;
  one.kind = static_cast<std::uint32_t>(RecordKind::note);
  one.length = kStateText + 1;
  JvmState none;
  REQUIRE(parse_state(head(1) + std::string(reinterpret_cast<const char*>(&one), sizeof one), none));
  one.length = 1;
  one.kind = 99;
  REQUIRE(parse_state(head(1) + std::string(reinterpret_cast<const char*>(&one), sizeof one), none));
  CHECK(none.notes.empty());
  CHECK(none.places.empty());
}
