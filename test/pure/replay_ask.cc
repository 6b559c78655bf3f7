// Queries of a user must be possible, those that rose proposes need not be.
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
