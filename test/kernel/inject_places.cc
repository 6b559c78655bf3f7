// The places that src/symbols finds inside functions, as conditions: each can be probed, and counting them disturbs nobody.
#include "inject_rig.h"
#include "symbols/code.h"

using namespace rose;
using namespace rose::test;

namespace {

std::vector<symbols::Place> places_of(const std::string& function) {
  const auto file = symbols::CodeFile::open(kVictim);
  REQUIRE(file);
  auto places = file->places(function);
  if (!places) FAIL(places.error().message);
  return *places;
}

// Faults that never come: they count how often the node comes by each place, once it has entered the function.
std::string looks(const std::string& function, const std::vector<symbols::Place>& places) {
  std::string text;
  for (std::size_t i = 0; i < places.size(); ++i)
    text += fmt::format("[[fault]]\nid = \"look-{}\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ {{ function = \"{}\" }}, "
                        "{{ function = \"{}\", offset = {}, count = 1000000000 }} ]\n", i, function, function, places[i].offset);
  return text;
}

}  // namespace

TEST_CASE("a look at the places of a function counts them and does nothing") {
  Rig rig;
  rig.add({"create", "data", "call", "call", "print", "survived"});
  const auto places = places_of("step_function");
  REQUIRE(places.size() > 8);
  rig.start(looks("step_function", places));
  rig.wait_end();
  CHECK(rig.said("survived"));
  CHECK(rig.read("n1/data") == "a1\nb1\na2\nb2\n");
  const auto outcomes = rig.finish();
  REQUIRE(outcomes.size() == places.size());
  int writes = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    INFO(places[i].name << " at " << places[i].offset);
    CHECK_FALSE(outcomes[i].fired);
    REQUIRE(outcomes[i].conditions.size() == 2);
    CHECK(outcomes[i].conditions[0].met);
    CHECK_FALSE(outcomes[i].conditions[1].met);
    CHECK(outcomes[i].conditions[1].seen <= 2);
    if (places[i].name == "syscall@plt" || places[i].name.starts_with("ret")) {
      ++writes;
      CHECK(outcomes[i].conditions[1].seen == 2);
    }
  }
  CHECK(writes >= 3);  // two calls and the return
}

TEST_CASE("the node dies at a place: what came before it is done, the call that stands there is not") {
  const auto places = places_of("step_function");
  std::vector<symbols::Place> calls;
  for (const auto& place : places)
    if (place.kind == symbols::PlaceKind::syscall && place.name == "syscall@plt") calls.push_back(place);
  REQUIRE(calls.size() == 2);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Rig rig;
    rig.add({"create", "data", "call", "call", "print", "survived"});
    rig.start(fmt::format("[[fault]]\nid = \"it\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ {{ function = \"step_function\", count = 2 }}, "
                          "{{ function = \"step_function\", offset = {} }} ]\n", calls[i].offset));
    rig.wait_end();
    CHECK_FALSE(rig.said("survived"));
    CHECK(rig.read("n1/data") == (i == 0 ? "a1\nb1\n" : "a1\nb1\na2\n"));
    CHECK(rig.finish().front().fired);
  }
}

TEST_CASE("every place of a large function can be probed") {
  Rig rig;
  rig.add({"print", "survived"});
  auto places = places_of("main");
  const auto file = symbols::CodeFile::open(kVictim);
  REQUIRE(file);
  if (places.size() > 1500) places.resize(1500);
  rig.start(looks("main", places));
  rig.wait_end();
  CHECK(rig.said("survived"));
  std::uint64_t passed = 0;
  for (const auto& outcome : rig.finish()) passed += outcome.conditions.back().seen > 0 ? 1 : 0;
  CHECK(passed > 3);
}
