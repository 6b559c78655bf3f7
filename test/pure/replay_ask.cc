// A query by the user that cannot be answered is an error. A query that rose proposed is dropped instead.
#include <catch2/catch.hpp>

#include "replay/ask.h"

using namespace rose;

TEST_CASE("a proposed query that no program can answer is noted, and the others are made") {
  config::Config config;
  config::Node& node = config.nodes.emplace_back();
  node.name = "n1";
  node.binaries = {std::string(ROSE_PROGRAMS_DIR) + "/stack_victim"};
  const std::vector<std::string> queries = {"stacks::no_such_function(arg1)", "stacks::work(number)"};
  const auto refused = replay::ask(config, queries);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("no_such_function") != std::string::npos);
  const auto asked = replay::ask(config, queries, true);
  REQUIRE(asked);
  REQUIRE(asked->questions.size() == 2);
  CHECK_FALSE(asked->questions[0].refused.empty());
  CHECK(asked->questions[1].refused.empty());
  CHECK_FALSE(asked->places.empty());
}

TEST_CASE("the caller of a goroutine's function is what started the goroutine") {
  struct Names : symbols::CodeNames {
    [[nodiscard]] std::string at(std::uint64_t address) const override {
      return address == 0x10   ? "runtime.goexit (+0x1)"
             : address == 0x20 ? "main.begin (shop.go:7)"
                               : "main.sell (+0x2)";
    }
  };
  replay::ValueQueries asked;
  asked.questions.push_back({"main.fill:callers", "main.fill", {}, {}, {}});
  asked.places.push_back({"/shop", 0x100, {{}, {}}});
  replay::ValueQueries::Meaning caller, creator;
  caller.form.kind = symbols::Form::Kind::code;
  creator.form.kind = symbols::Form::Kind::creator;
  caller.form.code = creator.form.code = std::make_shared<Names>();
  asked.meanings = {{caller, creator}};
  observe::SeenValues seen;
  const auto add = [&](std::int64_t ts_ns, std::uint32_t fetch, std::uint64_t address, bool unreadable = false) {
    observe::SeenValue& value = seen.values.emplace_back();
    value.ts_ns = ts_ns, value.fetch = fetch, value.bits = address + 1, value.unreadable = unreadable;
  };
  add(1, 0, 0x10), add(1, 1, 0x20);        // the go statement in begin() started this goroutine
  add(2, 0, 0x30), add(2, 1, 0x20);        // called by another function, in the same goroutine
  add(3, 0, 0x10), add(3, 1, 0x20, true);  // the goroutine's first function; what started the goroutine is unreadable
  std::vector<std::string> texts;
  for (const schedule::Value& value : replay::recorded_values(asked, seen, {"n1"}, 0)) texts.push_back(value.text);
  CHECK(texts == std::vector<std::string>{"go statement in main.begin (shop.go:7)", "main.sell (+0x2)",
                                          "runtime.goexit (+0x1)"});
}

TEST_CASE("an address of code is looked up once, however often it is a value") {
  struct Names : symbols::CodeNames {
    [[nodiscard]] std::string at(std::uint64_t address) const override {
      ++lookups;
      return address == 0x10 ? "main.save (shop.go:7)" : "main.sell (shop.go:9)";
    }
    mutable int lookups = 0;
  };
  const auto names = std::make_shared<Names>();
  replay::ValueQueries asked;
  asked.questions.push_back({"main.fill:return:callers", "main.fill", {}, {}, {}});
  asked.places.push_back({"/shop", 0x100, {{}}});
  replay::ValueQueries::Meaning caller;
  caller.form.kind = symbols::Form::Kind::code;
  caller.form.code = names;
  asked.meanings = {{caller}};
  observe::SeenValues seen;
  for (int i = 0; i < 100; ++i) seen.values.emplace_back().bits = i % 2 == 0 ? 0x11 : 0x21;
  const std::vector<schedule::Value> values = replay::recorded_values(asked, seen, {"n1"}, 0);
  REQUIRE(values.size() == 100);
  CHECK(values[98].text == "main.save (shop.go:7)");
  CHECK(values[99].text == "main.sell (shop.go:9)");
  CHECK(names->lookups == 2);
}
