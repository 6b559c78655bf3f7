// For every kind of condition, an event that meets it, and a deployment in which these events happen.
#pragma once

#include "inject_ping.h"
#include "symbols/symbols.h"

namespace rose::test {

inline std::uint64_t middle_offset() {
  const auto functions = symbols::list_functions(kVictim);
  REQUIRE(functions);
  std::uint64_t entry = 0, middle = 0;
  for (const auto& function : *functions) {
    if (function.name == "step_function") entry = function.address;
    if (function.name == "step_middle") middle = function.address;
  }
  REQUIRE(middle > entry);
  return middle - entry;
}

struct Moment {
  std::string name;
  std::string when;   // the condition of the fault
  std::string other;  // another fault, to which the condition refers
  std::string data;   // the content of n1/data at exactly this moment
  bool x1, x2;        // which folders exist at this moment
  bool goes;          // n1 must be released before the event can happen
};

inline std::vector<Moment> moments() {
  return {
      {"elapsed", "when = [ { elapsed = \"150ms\" } ]", "", "", false, false, false},
      {"function", "when = [ { function = \"step_function\", count = 2 } ]", "", "a1\nb1\n", true, true, true},
      {"offset", fmt::format("when = [ {{ function = \"step_function\", offset = {}, count = 2 }} ]", middle_offset()),
       "", "a1\nb1\na2\n", true, true, true},
      {"syscall", "when = [ { syscall = \"mkdir\", path = \"*/x?\", count = 2 } ]", "", "", true, true, true},
      {"result", "when = [ { syscall = \"mkdir\", result = \"EEXIST\" } ]", "", "", true, true, true},
      {"log", "when = [ { log = \"^mark$\" } ]", "", "a1\nb1\na2\nb2\n", true, true, true},
      {"log of another", "when = [ { log = \"leaving\", node = \"n3\" } ]", "", "", false, false, false},
      {"state", "when = [ { state = \"exited\", node = \"n3\" } ]", "", "", false, false, false},
      {"role", "when = [ { role = { function = \"step_function\" }, node = \"n1\" } ]", "", "", true, true, true},
      {"after", "after = [\"first\"]\nwhen = [ { function = \"step_function\" } ]",
       "[[fault]]\nid = \"first\"\nkind = \"syscall\"\nnode = \"n1\"\nsyscall = \"mkdir\"\npath = \"*/x1\"\nerror = "
       "\"EIO\"\n",
       "", false, true, true},
  };
}

struct Stage : Rig {
  // `then`: the steps that n1 executes after the event of the condition.
  explicit Stage(const std::vector<std::string>& then = {"mkdir", "last", "print", "survived", "sleep", "60000"})
      : Rig(config::Network::netns) {
    std::vector<std::string> steps = {"create", "data", "gate", "go",   "mkdir", "x1",   "mkdir", "x2",
                                      "mkdir",  "x2",   "call", "call", "print", "mark", "gate",  "done"};
    steps.insert(steps.end(), then.begin(), then.end());
    add(std::move(steps));
    add({"server", "7100", "print", "up", "sleep", "60000"});
    add({"gate", "go", "print", "leaving", "exit", "0"});
    config.nodes[1].ready = config::Ready{.tcp = {}, .log = "up", .command = {}, .timeout_ns = 120 * kSecond};
  }
  void reach(const Moment& moment, const std::string& fault) {
    reach_with(moment, fmt::format("[[fault]]\nid = \"it\"\nnode = \"n1\"\n{}\n{}\n", fault, moment.when));
  }
  // Arms faults that each wait for the condition.
  void reach_with(const Moment& moment, const std::string& faults) {
    prepare(moment.other + faults);
    REQUIRE(eventually([&] { return exists("n1/data"); }));
    REQUIRE(pings(kPatient));
    begin();
    if (moment.goes) {
      touch("n1/go");
    } else {
      touch("n3/go");
    }
  }
  // The time limit in ms for a ping that must be answered. It is long, because a busy machine may answer late.
  static constexpr const char* kPatient = "20000";
  bool pings(const char* limit_ms = "300") {
    return end_ping(start_ping(*this, 0, {"tcp", "10.251.9.2", "7100", limit_ms})) == kEcho;
  }
  void wait_fired() {
    REQUIRE(eventually([&] { return injector->outcomes().back().fired; }));
  }
  // How far n1 has come: its output, and the folders that it has created.
  [[nodiscard]] std::string standing() const {
    return stands(read("n1/data"), exists("n1/x1"), exists("n1/x2"), exists("n1/last"));
  }
  static std::string standing(const Moment& moment) { return stands(moment.data, moment.x1, moment.x2, false); }

 private:
  static std::string stands(const std::string& data, bool x1, bool x2, bool last) {
    return fmt::format("data '{}' x1 {} x2 {} last {}", data, x1, x2, last);
  }
};

}  // namespace rose::test
