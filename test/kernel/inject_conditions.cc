// Every kind of condition with every kind of fault. The fault must occur exactly when the condition is met, neither
// earlier nor later. Roles are tested, too.
#include <csignal>

#include "inject/plan.h"
#include "inject/programs.h"
#include "inject_stage.h"
#include "kernel/cgroup2.h"

using namespace rose;
using namespace rose::test;

TEST_CASE("a crash fires at every kind of condition") {
  for (const auto& moment : moments()) {
    INFO(moment.name);
    Stage stage;
    stage.reach(moment, "kind = \"crash\"");
    stage.wait_end(0);
    CHECK(stage.standing() == Stage::standing(moment));
    const auto outcome = stage.finish().back();
    CHECK(outcome.fired);
    CHECK(outcome.node == "n1");
    CHECK_FALSE(stage.printed("survived"));
    for (const auto& condition : outcome.conditions) CHECK(condition.met);
  }
}

// Returns whether the node was paused when the test looked. On a busy machine, a short pause may be over by then.
static bool pauses_at(const Moment& moment, int ms) {
  Stage stage;
  stage.reach(moment, fmt::format("kind = \"pause\"\nduration = \"{}ms\"", ms));
  // Conditions that user space evaluates (time, logs) take effect only after a while.
  REQUIRE(eventually([&] { return stage.injector->outcomes().back().detail.find("stopped") != std::string::npos; }));
  stage.touch("n1/go");
  stage.touch("n1/done");
  ::usleep(100'000);
  const bool stood = stage.standing() == Stage::standing(moment);
  stage.wait_printed("survived");
  const auto outcome = stage.finish().back();
  CHECK(*outcome.ended_ns - outcome.fired_ns >= ms * kMillisecond);
  return stood;
}

TEST_CASE("a pause fires at every kind of condition") {
  for (const auto& moment : moments()) {
    INFO(moment.name);
    bool seen = false;
    for (int ms = 250; !seen && ms <= 16'000; ms *= 4) seen = pauses_at(moment, ms);
    CHECK(seen);
  }
}

// Returns whether a message was lost at this moment. On a busy machine, a short partition may end before the message is
// sent.
static bool cuts_at(const Moment& moment, int ms) {
  Stage stage;
  stage.reach(moment, fmt::format("kind = \"partition\"\npeers = [\"n2\"]\nduration = \"{}ms\"", ms));
  stage.wait_fired();
  const bool cut = !stage.pings();
  REQUIRE(eventually([&] { return stage.injector->finished(); }));
  CHECK(stage.pings(Stage::kPatient));
  const auto outcome = stage.finish().back();
  CHECK(*outcome.ended_ns - outcome.fired_ns >= ms * kMillisecond);
  return cut && outcome.injected > 0;
}

TEST_CASE("a partition fires at every kind of condition") {
  for (const auto& moment : moments()) {
    INFO(moment.name);
    bool seen = false;
    for (int ms = 700; !seen && ms <= 16'000; ms *= 4) seen = cuts_at(moment, ms);
    CHECK(seen);
  }
}

TEST_CASE("every kind of condition arms a syscall fault") {
  for (const auto& moment : moments()) {
    INFO(moment.name);
    Stage stage;
    stage.reach(moment,
                "kind = \"syscall\"\nsyscall = \"mkdir\"\npath = \"*/n1/*\"\nerror = \"EDQUOT\"\ntimes = \"forever\"");
    REQUIRE(eventually([&] { return stage.injector->outcomes().back().armed; }));
    stage.touch("n1/go");
    stage.touch("n1/done");
    stage.wait_printed("survived");
    // The call that meets a condition is executed, but the next call is not.
    CHECK(stage.printed("mkdir last = EDQUOT"));
    CHECK_FALSE(stage.exists("n1/last"));
    CHECK(stage.exists("n1/x1") == moment.x1);
    CHECK(stage.exists("n1/x2") == moment.x2);
    CHECK(stage.finish().back().fired);
  }
}

// ---- roles ----

namespace {

const std::string kLeader = "[[role]]\nname = \"leader\"\nfunction = \"step_function\"\n";

// Nodes that become the leader when their file "lead" appears, and once more with "lead2". If `first_follows`, n1 never
// leads; when its file "act" appears, it makes the same call and prints the same line as a node that leads once more.
struct Electorate : Rig {
  explicit Electorate(config::Network network = config::Network::host, bool first_follows = false) : Rig(network) {
    if (first_follows) {
      add({"create", "data", "print", "up", "gate", "act", "mkdir", "x", "print", "leads again", "sleep", "60000"});
      config.nodes.back().ready = config::Ready{.tcp = {}, .log = "up", .command = {}, .timeout_ns = 120 * kSecond};
    }
    for (int i = first_follows ? 1 : 0; i < 3; ++i) {
      add({"create", "data",        "server", std::to_string(7600 + i),
           "print",  "up",          "gate",   "lead",
           "call",   "print",       "leads",  "gate",
           "lead2",  "mkdir",       "x",      "call",
           "print",  "leads again", "sleep",  "60000"});
      config.nodes.back().ready = config::Ready{.tcp = {}, .log = "up", .command = {}, .timeout_ns = 120 * kSecond};
    }
  }
  void lead(int node) {
    touch(fmt::format("n{}/lead", node + 1));
    wait_printed("leads", static_cast<std::size_t>(node));
  }
  [[nodiscard]] bool lives(std::size_t node) const { return !deployment->processes(node).empty(); }
};

}  // namespace

TEST_CASE("a crash of a role's node fires as soon as a node gets the role") {
  Electorate rig;
  rig.start(kLeader +
            "[[fault]]\nid = \"kill\"\nkind = \"crash\"\nnode = \"@leader\"\nwhen = [ { role = \"leader\" } ]\n");
  CHECK(rig.lives(1));
  rig.touch("n2/lead");
  rig.wait_end(1);
  CHECK(rig.read("n2/data").empty());
  CHECK(rig.lives(0));
  CHECK(rig.lives(2));
  const auto outcome = rig.finish().at(0);
  CHECK(outcome.fired);
  CHECK(outcome.node == "n2");
  CHECK(outcome.conditions.at(0).node == "n2");
  CHECK(outcome.conditions.at(0).tid > 0);
}

TEST_CASE("a fault on a role is bound when its conditions are met") {
  Electorate rig;
  rig.start(kLeader + R"(
[[fault]]
id = "kill"
kind = "crash"
node = "@leader"
when = [ { state = "paused", node = "n2" } ]
[[fault]]
id = "now"
kind = "pause"
node = "n2"
duration = "20ms"
when = [ { log = "leads", node = "n3" } ]
)");
  rig.lead(0);
  rig.lead(2);
  rig.wait_end(2);
  CHECK(rig.lives(0));
  CHECK(rig.lives(1));
  CHECK(rig.finish().at(0).node == "n3");
}

TEST_CASE("conditions on a role's node count only events of that node") {
  for (const std::string condition : {"{ syscall = \"mkdir\", path = \"*/x\", node = \"@leader\" }",
                                      "{ log = \"leads again\" }", "{ function = \"step_function\" }"}) {
    INFO(condition);
    Electorate rig(config::Network::host, true);
    rig.start(
        fmt::format("{}[[fault]]\nid = \"kill\"\nkind = \"crash\"\nnode = \"@leader\"\n"
                    "when = [ {{ role = \"leader\", node = \"n2\" }}, {} ]\n",
                    kLeader, condition));
    rig.lead(1);
    REQUIRE(eventually([&] { return rig.injector->outcomes().at(0).conditions.at(0).met; }));
    // n1 is not the leader, so its call and its line do not count.
    rig.touch("n1/act");
    rig.wait_printed("leads again", 0);
    CHECK(rig.exists("n1/x"));
    CHECK(rig.lives(1));
    rig.touch("n2/lead2");
    rig.wait_end(1);
    CHECK(rig.exists("n2/x"));
    CHECK(rig.read("n2/data") == (condition.find("log") != std::string::npos ? "a1\nb1\na2\nb2\n" : "a1\nb1\n"));
    CHECK(rig.lives(0));
    CHECK(rig.finish().at(0).node == "n2");
  }
}

TEST_CASE("a fault on a role is armed only once a node has the role") {
  for (const std::string fault : {"kind = \"crash\"", "kind = \"syscall\"\nsyscall = \"mkdir\"\nerror = \"EIO\"",
                                  "kind = \"pause\"\nduration = \"200ms\""}) {
    INFO(fault);
    Electorate rig;
    rig.start(fmt::format("{}[[fault]]\nid = \"it\"\nnode = \"@leader\"\n{}\n", kLeader, fault));
    ::usleep(50'000);
    CHECK_FALSE(rig.injector->outcomes().at(0).armed);
    rig.touch("n3/lead");
    REQUIRE(eventually([&] { return rig.injector->outcomes().at(0).armed; }));
    for (int i = 0; i < 3; ++i) rig.touch(fmt::format("n{}/lead2", i + 1));
    if (fault.find("syscall") != std::string::npos) {
      rig.wait_printed("mkdir x = EIO", 2);
      CHECK_FALSE(rig.exists("n3/x"));
    }
    REQUIRE(eventually([&] { return rig.injector->outcomes().at(0).fired; }));
    const auto outcome = rig.finish().at(0);
    CHECK(outcome.node == "n3");
  }
  Electorate rig;
  rig.start(kLeader + "[[fault]]\nid = \"it\"\nnode = \"@leader\"\nkind = \"crash\"\n");
  rig.injector->disarm();
  const auto outcome = rig.finish().at(0);
  CHECK_FALSE(outcome.fired);
  CHECK(outcome.why_not == "its conditions were met, but no node was the leader");
}

TEST_CASE("the node in a role is partitioned until its log line appears") {
  for (const auto network : {config::Network::netns, config::Network::host}) {
    Electorate rig(network);
    rig.start(kLeader + R"(
[[fault]]
id = "cut"
kind = "partition"
node = "@leader"
when = [ { role = "leader", node = "n2" } ]
until = [ { log = "leads again" } ]
)");
    const auto reaches = [&](std::size_t from, int to, const std::string& limit_ms = "60000") {
      const auto ip = network == config::Network::netns ? fmt::format("10.251.9.{}", to + 1) : std::string("127.0.0.1");
      return end_ping(start_ping(rig, from, {"tcp", ip, std::to_string(7600 + to), limit_ms})) == kEcho;
    };
    rig.lead(0);
    CHECK(reaches(1, 0));
    rig.lead(1);
    REQUIRE(eventually([&] { return rig.injector->outcomes().at(0).fired; }));
    CHECK_FALSE(reaches(1, 0, "300"));
    CHECK_FALSE(reaches(2, 1, "300"));
    CHECK(reaches(0, 2));
    // Another node becomes the leader. The partition stays at n2, and only a log line of n2 ends it.
    rig.lead(2);
    CHECK_FALSE(reaches(2, 1, "300"));
    CHECK(reaches(0, 2));
    rig.touch("n3/lead2");
    rig.wait_printed("leads again", 2);
    CHECK_FALSE(reaches(2, 1, "300"));
    rig.touch("n2/lead2");
    REQUIRE(eventually([&] { return reaches(2, 1); }));
    const auto outcome = rig.finish().at(0);
    CHECK(outcome.node == "n2");
    CHECK(outcome.ended_ns > outcome.fired_ns);
  }
}

TEST_CASE("a node in the root cgroup is reported as not observable") {
  if (Rig::overriding()) return;
  Rig rig;
  rig.allow_attached = true;
  rig.add({"print", "up", "gate", "never"});
  const auto top = kernel::cgroup2_mount().value() / "cgroup.procs";
  rig.config.deployment.setup = config::Command{
      "/bin/sh", "-c",
      fmt::format("setsid \"$0\" repeat 100000 call sleep 1 ';' > theirs.log 2>&1 & echo $! > {}; echo $! > theirs.pid",
                  top.string()),
      kVictim};
  rig.config.nodes[0].command.clear();
  rig.config.nodes[0].attach = config::Attach{.pid_file = "theirs.pid", .container = {}, .unit = {}, .cgroup = {}};
  rig.start("[[fault]]\nid = \"end\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ { function = \"step_function\" } ]\n");
  const pid_t theirs = rig.deployment->main_pid(0);
  const auto outcomes = rig.finish();
  ::kill(theirs, SIGKILL);
  CHECK_FALSE(outcomes.at(0).fired);
  INFO(outcomes.at(0).why_not);
  CHECK(outcomes.at(0).why_not.find("root cgroup") != std::string::npos);
}

TEST_CASE("node cgroups at more depths than the programs support are refused") {
  Rig rig;
  for (int i = 0; i < 5; ++i) rig.add({"sleep", "60000"});
  const auto schedule = schedule::parse_schedule(R"(
version = 1
name = "deep"
[[fault]]
id = "crash"
kind = "crash"
node = "n1"
when = [ { function = "step_function" } ]
)",
                                                 "test.toml");
  REQUIRE(schedule);
  const auto plan = inject::make_plan(*schedule, rig.config, false);
  if (!plan) FAIL(plan.error().message);
  const auto programs = inject::Programs::load(**plan);
  REQUIRE(programs);
  std::filesystem::path folder = kernel::cgroup2_mount().value();
  for (std::size_t i = 0; i < 5; ++i) {
    folder /= "rose-none";
    deploy::NodeInfo node;
    node.index = i;
    node.name = fmt::format("n{}", i + 1);
    node.cgroup = folder;
    node.cgroup_id = 1'000'000 + i;
    const auto added = (*programs)->add_node(node);
    if (i < 4) {
      CHECK(added);
      continue;
    }
    REQUIRE_FALSE(added);
    CHECK(added.error().kind == ErrorKind::environment);
    CHECK(added.error().message.find("node 'n5'") != std::string::npos);
    CHECK(added.error().message.find("4 different depths") != std::string::npos);
  }
}
