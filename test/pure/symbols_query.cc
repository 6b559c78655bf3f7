// Which queries of values are accepted, and with which message others are refused.
#include <catch2/catch.hpp>

#include "symbols/query.h"

using namespace rose;
using namespace rose::symbols;

namespace {

Query read(const std::string& text) {
  const auto query = parse_query(text);
  INFO(text << (query ? "" : ": " + query.error().message));
  REQUIRE(query);
  return *query;
}

}  // namespace

TEST_CASE("arguments, results and variables are distinguished") {
  const Query numbered = read("store(arg2)");
  CHECK(numbered.kind == Query::Kind::argument);
  CHECK(numbered.function == "store");
  CHECK(numbered.name == "arg2");
  CHECK(numbered.number == 2);
  const Query named = read(" Raft::append( entry->term.low ) ");
  CHECK(named.function == "Raft::append");
  CHECK(named.name == "entry");
  CHECK(named.number == 0);
  CHECK(named.members == std::vector<std::string>{"term", "low"});
  CHECK(read("f(*out)").contents);
  // Parentheses may belong to the function's name. The last parentheses contain the argument.
  CHECK(read("Raft::append(Entry const&)(term)").function == "Raft::append(Entry const&)");
  CHECK(read("operator()(x)").function == "operator()");
  CHECK(read("main.(*raft).becomeLeader(r)").function == "main.(*raft).becomeLeader");
  CHECK(read("call(void (*)(int))(arg1)").function == "call(void (*)(int))");

  const Query result = read("Raft::append:return");
  CHECK(result.kind == Query::Kind::result);
  CHECK(result.function == "Raft::append");
  CHECK(read("find:return->value.size").members == std::vector<std::string>{"value", "size"});
  CHECK(read("f:returned:return").function == "f:returned");

  const Query calls = read("Raft::append:calls");
  CHECK(calls.kind == Query::Kind::calls);
  CHECK(calls.function == "Raft::append");
  const Query receivers = read("Raft::append:return:callers");
  CHECK(receivers.kind == Query::Kind::callers);
  CHECK(receivers.function == "Raft::append");
  CHECK(receivers.at_return);
  const Query callers = read("Raft::append:callers");
  CHECK(!callers.at_return);
  CHECK(callers.kind == Query::Kind::callers);
  CHECK(callers.function == "Raft::append");

  const Query variable = read("src/store.c:123:count");
  CHECK(variable.kind == Query::Kind::variable);
  CHECK(variable.file == "src/store.c");
  CHECK(variable.line == 123);
  CHECK(variable.name == "count");
  CHECK(read("a.c:1:this->total_").members == std::vector<std::string>{"total_"});
}

TEST_CASE("an invalid query is refused with the accepted forms") {
  const std::pair<std::string, std::string> cases[] = {
      {"", "empty"},
      {"   ", "empty"},
      {"store", "neither"},
      {"store()", "names no argument"},
      {"(arg1)", "names no function"},
      {"store(arg0)", "from 1 to"},
      {"store(arg99999999999)", "from 1 to"},
      {"store(1)", "does not begin with a name"},
      {"store(a b)", "neither '.member'"},
      {"store(a.)", "has no name"},
      {"store(a->)", "has no name"},
      {"store(a[1])", "neither '.member'"},
      {"store(a.b.c.d.e.f.g.h)", "more than"},
      {"store)", "not opened"},
      {"*(arg1)", "one function"},
      {"::return", "is not a line number"},
      {":return", "neither"},
      {"a.c:0:x", "is not a line number"},
      {"a.c:x:y", "is not a line number"},
      {"a.c:99999999999999999999:y", "is not a line number"},
      {":12:y", "no file"},
      {"a.c:12:", "names no variable"},
      {"a\nb(arg1)", "printed"},
      {std::string(2000, 'a') + "(arg1)", "longer"},
  };
  for (const auto& [text, why] : cases) {
    const auto query = parse_query(text);
    CAPTURE(text, why);
    REQUIRE(!query);
    CHECK(query.error().kind == ErrorKind::usage);
    INFO(query.error().message);
    CHECK(query.error().message.find(why) != std::string::npos);
    CHECK(query.error().hint.find("f:return") != std::string::npos);
  }
}
