// Schedules that differ only slightly from one that reproduces the bug.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "replay/contrast.h"

using namespace rose;
using replay::beside;

namespace {

schedule::Schedule parse(const std::string& text) {
  auto schedule = schedule::parse_schedule("version = 1\nname = \"t\"\n" + text, "t.toml");
  REQUIRE(schedule.has_value());
  return *schedule;
}

schedule::FaultOutcome fired(const std::string& id, std::int64_t ns) {
  schedule::FaultOutcome outcome;
  outcome.id = id;
  outcome.fired = true;
  outcome.fired_ns = ns;
  return outcome;
}

}  // namespace

TEST_CASE("a contrasting run fires a fault of the nth call one call later or earlier", "[contrast]") {
  const auto others = beside(parse("[[fault]]\nid = \"a\"\nkind = \"syscall\"\nnode = \"n1\"\nsyscall = "
                                   "\"write\"\nerror = \"EIO\"\ncount = 3\n"),
                             {}, 6);
  REQUIRE(others.size() == 2);
  CHECK(others[0].schedule.faults[0].count == 4);
  CHECK(others[1].schedule.faults[0].count == 2);
  CHECK(others[1].words == "'a' at the 2nd instead of the 3rd");
}

TEST_CASE("a contrasting run for a first call fires it later only", "[contrast]") {
  const auto others = beside(
      parse("[[fault]]\nid = \"a\"\nkind = \"syscall\"\nnode = \"n1\"\nsyscall = \"write\"\nerror = \"EIO\"\n"), {}, 6);
  REQUIRE(others.size() == 1);
  CHECK(others[0].schedule.faults[0].count == 2);
}

TEST_CASE("two contrasting runs for a crash at a function crash the node at an unrelated time", "[contrast]") {
  const auto schedule =
      parse("[[fault]]\nid = \"k\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ { function = \"f\" } ]\n");
  const auto others = beside(schedule, {fired("k", 3'000'000'000)}, 6);
  REQUIRE(others.size() == 3);  // two runs with a crash at an unrelated time, one with a crash at the second entry
  CHECK(others[0].schedule.faults[0].when.size() == 1);
  CHECK(others[0].schedule.faults[0].when[0].kind == schedule::ConditionKind::elapsed);
  CHECK(others[0].schedule.faults[0].when[0].elapsed_ns == 1'500'000'000);
  CHECK(std::count_if(others.begin(), others.end(),
                      [](const auto& one) { return one.words.find("at half its time") != std::string::npos; }) == 2);
}

TEST_CASE("contrasting runs for a crash at a time approach the latest harmless time", "[contrast]") {
  const auto schedule =
      parse("[[fault]]\nid = \"k\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ { elapsed = \"8s\" } ]\n");
  const auto first = beside(schedule, {fired("k", 8'000'000'000)}, 6);
  REQUIRE(first.size() == 1);
  std::vector<std::string> words;
  for (std::optional<replay::Beside> tried = first[0]; tried;) {
    REQUIRE(words.size() < 10);
    REQUIRE(tried->schedule.faults[0].when.size() == 1);
    const std::int64_t at = tried->schedule.faults[0].when[0].elapsed_ns;
    words.push_back(fmt::format("{}: {}", tried->words, at / 1'000'000));
    tried = other_part(schedule, *tried, at >= 1'800'000'000);
  }
  CHECK(words == std::vector<std::string>{"'k' half as late: 4000", "'k' a quarter as late: 2000",
                                          "'k' 13 % as late: 1000", "'k' 19 % as late: 1500",
                                          "'k' 19 % as late: 1500"});
  // If a schedule has several crashes, their times are not varied. Instead, each crash is left out.
  const auto two =
      beside(parse("[[fault]]\nid = \"k\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ { elapsed = \"8s\" } ]\n"
                   "[[fault]]\nid = \"l\"\nkind = \"crash\"\nnode = \"n2\"\nafter = [\"k\"]\n"),
             {fired("k", 8'000'000'000), fired("l", 8'000'000'000)}, 6);
  CHECK(std::none_of(two.begin(), two.end(), [](const auto& one) { return one.part.has_value(); }));
  CHECK(two.size() == 4);  // each of the two is left out twice
  // The crash happens at once, so no earlier time is possible.
  CHECK(beside(parse("[[fault]]\nid = \"k\"\nkind = \"crash\"\nnode = \"n1\"\n"), {fired("k", 0)}, 6).empty());
}

TEST_CASE("contrasting runs omit each of several faults once, and shorten lasting ones", "[contrast]") {
  const auto schedule = parse(
      "[[fault]]\nid = \"cut\"\nkind = \"partition\"\nnode = \"n1\"\nduration = \"2s\"\nwhen = [ { elapsed = \"1s\" } "
      "]\n"
      "[[fault]]\nid = \"stop\"\nkind = \"pause\"\nnode = \"n2\"\nduration = \"1s\"\nafter = [\"cut\"]\n"
      "[[fault]]\nid = \"kill\"\nkind = \"crash\"\nnode = \"n3\"\nafter = [\"stop\"]\n");
  const auto others = beside(schedule, {fired("cut", 1'000'000'000)}, 20);
  const auto find = [&](const std::string& words) {
    return std::find_if(others.begin(), others.end(), [&](const auto& one) { return one.words == words; });
  };
  const auto without = find("without 'stop'");
  REQUIRE(without != others.end());
  REQUIRE(without->schedule.faults.size() == 2);
  CHECK(without->schedule.faults[1].after == std::vector<std::string>{"cut"});
  REQUIRE(find("'cut' half as long") != others.end());
  CHECK(find("'cut' half as long")->schedule.faults[0].duration_ns == 1'000'000'000);
  REQUIRE(find("'stop' half as long") != others.end());
  CHECK(find("'stop' half as long")->schedule.faults[1].duration_ns == 500'000'000);
  CHECK(beside(schedule, {}, 2).size() == 2);
}

TEST_CASE("contrasting runs find the shortest duration that causes the bug by bisection", "[contrast]") {
  const auto schedule = parse(
      "[[fault]]\nid = \"cut\"\nkind = \"partition\"\nnode = \"n1\"\nduration = \"16s\"\nwhen = [ { elapsed = \"1s\" } "
      "]\n");
  const auto first = beside(schedule, {fired("cut", 1'000'000'000)}, 6);
  REQUIRE(first.size() == 1);
  std::optional<replay::Beside> tried = first[0];
  std::vector<std::string> words;
  std::int64_t harmless = 0, harmful = 16'000'000'000;
  const std::int64_t shows_from = 5'500'000'000;
  while (tried) {
    words.push_back(tried->words);
    REQUIRE(words.size() < 10);
    const std::int64_t lasts = tried->schedule.faults[0].duration_ns;
    CHECK((lasts > harmless && lasts < harmful));
    (lasts >= shows_from ? harmful : harmless) = lasts;
    tried = other_part(schedule, *tried, lasts >= shows_from);
  }
  CHECK(words == std::vector<std::string>{"'cut' half as long", "'cut' a quarter as long", "'cut' 38 % as long",
                                          "'cut' 31 % as long"});
  CHECK(harmless == 5'000'000'000);
  CHECK(harmful == 6'000'000'000);
}
