// Events and the order of a schedule: what precedes what, which orders are refused, and that a written schedule has the
// same order.
#include <catch2/catch.hpp>

#include <map>

#include "schedule/order.h"
#include "schedule/outcome.h"
#include "schedule/schedule.h"

using namespace rose;
using namespace rose::schedule;

namespace {

std::map<std::string, std::vector<std::string>> before(std::string_view text) {
  std::map<std::string, std::vector<std::string>> all;
  const auto names = parse_order(text);
  REQUIRE(names.has_value());
  for (const OrderedName& name : *names) all[name.name] = name.before;
  return all;
}

const std::string kHead = "version = 1\n";
const std::string kEvent = "[[event]]\nname = \"created\"\nnode = \"n1\"\nwhen = [ { log = \"created /a\" } ]\n";
const std::string kFault = "[[fault]]\nid = \"cut\"\nkind = \"pause\"\nnode = \"n1\"\nduration = \"1s\"\n";

std::string refused(const std::string& text) {
  const auto read = parse_schedule(text, "s.toml");
  REQUIRE_FALSE(read.has_value());
  return read.error().message;
}

}  // namespace

TEST_CASE("an order defines which events precede which", "[order]") {
  const auto plain = before("created * cut * (closed | restarted) * healed");
  CHECK(plain.at("created").empty());
  CHECK(plain.at("cut") == std::vector<std::string>{"created"});
  CHECK(plain.at("closed") == std::vector<std::string>{"cut"});
  CHECK(plain.at("restarted") == std::vector<std::string>{"cut"});
  CHECK(plain.at("healed") == std::vector<std::string>{"closed", "restarted"});
  const auto loose = before("a * b | c");  // because * takes precedence over |
  CHECK(loose.at("b") == std::vector<std::string>{"a"});
  CHECK(loose.at("c").empty());
  const auto groups = before("(a | b * c) * (d * e | f)");
  CHECK(groups.at("d") == std::vector<std::string>{"a", "c"});
  CHECK(groups.at("f") == std::vector<std::string>{"a", "c"});
  CHECK(groups.at("e") == std::vector<std::string>{"d"});
  CHECK(before("((x))").at("x").empty());
}

TEST_CASE("an invalid order is refused with the column", "[order]") {
  const auto message = [](std::string_view text) {
    const auto names = parse_order(text);
    REQUIRE_FALSE(names.has_value());
    return names.error().message;
  };
  CHECK(message("") == "column 1: the end was found, a name or '(' is needed");
  CHECK(message("a *") == "column 4: the end was found, a name or '(' is needed");
  CHECK(message("a b") == "column 3: 'b' was found, '*', '|' or the end is needed");
  CHECK(message("(a | b") == "column 7: the end was found, ')' is needed");
  CHECK(message("a ** b") == "column 4: '* b' was found, a name or '(' is needed");
  CHECK(message("a * b * a") == "column 9: 'a' already occurs in column 1; each name may occur once");
  CHECK(message(std::string(1000, '(')).find("nested deeper than 64") != std::string::npos);
  CHECK(message("a\x1b[2J").find("\\x1b") != std::string::npos);
}

TEST_CASE("events and an order are parsed, applied and written", "[order]") {
  const auto read =
      parse_schedule(kHead + "order = \"created * written * cut | looked\"\n" + kEvent + kFault, "s.toml");
  REQUIRE(read.has_value());
  REQUIRE(read->events.size() == 1);
  CHECK(read->events[0].name == "created");
  CHECK(read->events[0].node == "n1");
  CHECK(read->events[0].when.at(0).log == "created /a");
  CHECK(read->faults.at(0).after == std::vector<std::string>{"written"});
  // The key `after` is not written, because it follows from the order.
  CHECK(to_toml(*read).find("after") == std::string::npos);
  CHECK(in_words(*read).find("as soon as 'written' has come") != std::string::npos);
  auto again = parse_schedule(to_toml(*read), "t.toml");
  REQUIRE(again.has_value());
  auto plain = *read;
  for (auto* one : {&plain, &*again}) {
    for (auto& event : one->events) event.line = 0;
    for (auto& fault : one->faults) fault.line = 0;
  }
  CHECK(*again == plain);
  const std::string words = in_words(*read);
  CHECK(words.find("in the order created * written * cut | looked, where created is when n1 has logged \"created /a\" "
                   "and written and looked are steps of the workload") != std::string::npos);
  // Without an order, the key `after` of a fault may name an event.
  const auto after = parse_schedule(kHead + kEvent + kFault + "after = [\"created\"]\n", "s.toml");
  REQUIRE(after.has_value());
  CHECK(check_nodes(*after, {"n1"}, "s.toml").has_value());
  CHECK(check_nodes(*after, {"n2"}, "s.toml").error().message.find("is not in the deployment") != std::string::npos);
}

TEST_CASE("contradictory orders and unknown names are refused", "[order]") {
  CHECK(refused(kHead + "order = \"cut * \"\n" + kFault).find("s.toml:2:9: order: column 7") != std::string::npos);
  CHECK(refused(kHead + kEvent + kFault).find("event 'created' is not used") != std::string::npos);
  CHECK(refused(kHead + kEvent + kEvent + kFault).find("'created' occurs twice") != std::string::npos);
  CHECK(refused(kHead + "order = \"created * cut\"\n" + kEvent +
                "[[fault]]\nid = \"created\"\nkind = \"crash\"\nnode = \"n1\"\n")
            .find("taken by the event") != std::string::npos);
  const std::string second = "[[fault]]\nid = \"kill\"\nkind = \"crash\"\nnode = \"n1\"\nafter = [\"cut\"]\n";
  CHECK(refused(kHead + "order = \"kill * cut\"\n" + kFault + second)
            .find("'kill' would depend on itself: the order contradicts an `after`") != std::string::npos);
  const std::string grouped = "[[fault]]\nid = \"kill\"\nkind = \"crash\"\nnode = \"n1\"\ngroup = \"g\"\n";
  CHECK(refused(kHead + "order = \"kill * cut\"\n" + kFault + grouped).find("it may be withdrawn") !=
        std::string::npos);
  CHECK(refused(kHead + "order = \"looked * cut\"\n" + kEvent + kFault).find("event 'created' is not used") !=
        std::string::npos);
  CHECK(refused(kHead + "order = \"looked * cuts\"\n" + kFault)
            .find("order: column 10: 'cuts' is neither an event nor a fault") != std::string::npos);
  CHECK(refused(kHead + "order = \"cut\"\n[[event]]\nname = \"x\"\nnode = \"n1\"\n" + kFault).find("when") !=
        std::string::npos);
  CHECK(refused(kHead + kFault + "after = [\"creatd\"]\n").find("no fault has the id") != std::string::npos);
}

TEST_CASE("a run that kept the order has a verdict, one that did not is inconclusive", "[order]") {
  const auto schedule = parse_schedule(kHead + "order = \"created * cut\"\n" + kEvent + kFault, "s.toml");
  REQUIRE(schedule.has_value());
  RunResult run;
  run.oracle = OracleAnswer::hit;
  FaultOutcome cut;
  cut.id = "cut";
  cut.fired = true;
  run.faults = {cut};
  run.order = {{"created", "event", true, 1, {}}, {"cut", "fault", true, 2, {}}};
  judge(run, *schedule, "");
  CHECK(run.verdict == Verdict::reproduced);
  run.order_broken = "'created' came before 'cut'";
  judge(run, *schedule, "");
  CHECK(run.verdict == Verdict::inconclusive);
  CHECK(run.reason == "not in the required order: 'created' came before 'cut'");
  run.order_broken.clear();
  run.oracle = OracleAnswer::miss;
  run.order[0] = {"created", "event", false, 0, "never logged"};
  judge(run, *schedule, "");
  CHECK(run.verdict == Verdict::inconclusive);
  CHECK(run.reason == "event 'created' never came: never logged");
}
