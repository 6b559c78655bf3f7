// The operations that advance a schedule, made by many threads at the same time on ordinary memory. Also which plans
// are refused.
#include "inject/state.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <thread>

#include "inject/plan.h"

using namespace rose;
using namespace rose::inject;

namespace {

config::Config three_nodes() {
  config::Config config;
  config.file = "rose.toml";
  config.directory = "/";
  for (int i = 1; i <= 3; ++i) {
    config::Node node;
    node.name = fmt::format("n{}", i);
    node.ip = fmt::format("10.0.0.{}", i);
    node.command = {"/bin/true"};
    node.binaries = {std::string(ROSE_PROGRAMS_DIR) + "/inject_victim"};
    config.nodes.push_back(node);
  }
  return config;
}

Result<std::unique_ptr<Plan>> plan_of(const std::string& text, const config::Config& config = three_nodes(),
                                      bool allow_attached = false) {
  auto schedule = schedule::parse_schedule("version = 1\nname = \"t\"\n" + text, "t.toml");
  if (!schedule) return Unexpected(std::move(schedule).error());
  return make_plan(*schedule, config, allow_attached);
}

struct Memory {
  std::unique_ptr<Plan> plan;
  std::vector<rose_chain> chains;
  std::vector<rose_condition> conditions;
  std::vector<rose_word> edges, groups;
  rose_settings settings{};
  std::vector<rose_role> roles = std::vector<rose_role>(ROSE_MAX_ROLES);
  std::unique_ptr<State> state;

  explicit Memory(const std::string& text) {
    auto made = plan_of(text);
    if (!made) FAIL(made.error().message);
    plan = std::move(*made);
    chains.resize(plan->chains.size());
    conditions.resize(plan->conditions.size());
    edges.resize(plan->edges.size());
    groups.resize(plan->chains.size() + 1);
    state = std::make_unique<State>(
        *plan, SharedArrays{chains.data(), conditions.data(), edges.data(), groups.data(), &settings, roles.data()});
  }
};

void in_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (auto& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("counting is exact with racing threads, and each condition is met once") {
  for (int round = 0; round < 50; ++round) {
    Memory m(R"(
[[fault]]
id = "a"
kind = "crash"
node = "n1"
when = [ { syscall = "read", count = 1000 }, { syscall = "write", count = 500 } ]
)");
    std::atomic<int> completed{0};
    in_threads(8, [&](int) {
      for (int i = 0; i < 200; ++i) {
        m.state->count(0, 1, 1, 1);
        if (m.state->count(1, 1, 1, 2)) ++completed;
      }
    });
    // The threads make 1600 reads, so the first condition is met. Writes before the thousandth read must not count.
    REQUIRE(m.state->met_ns(0) == 1);
    const auto position = ROSE_POSITION(m.state->progress(0));
    REQUIRE(position >= 1);
    while (m.state->state(0) != ROSE_FIRED) m.state->count(1, 1, 1, 3);
    REQUIRE(completed <= 1);
    REQUIRE(m.settings.contended == 0);
  }
}

TEST_CASE("with racing threads `after` waits for all faults, and one fault of a group fires") {
  for (int round = 0; round < 200; ++round) {
    Memory m(R"(
[[fault]]
id = "a"
kind = "syscall"
node = "n1"
syscall = "read"
error = "EIO"
[[fault]]
id = "b"
kind = "syscall"
node = "n1"
syscall = "read"
error = "EIO"
group = "g"
[[fault]]
id = "c"
kind = "syscall"
node = "n1"
syscall = "read"
error = "EIO"
group = "g"
[[fault]]
id = "d"
kind = "syscall"
node = "n2"
syscall = "write"
error = "EIO"
after = ["a", "b"]
)");
    CHECK(m.state->state(0) == ROSE_ARMED);
    CHECK(m.state->state(3) == ROSE_WAITING);
    std::atomic<int> fired{0};
    in_threads(6, [&](int i) {
      if (m.state->fire(static_cast<std::size_t>(i % 3), 1, 1, 5)) ++fired;
    });
    REQUIRE(fired == 2);
    REQUIRE(m.state->state(0) == ROSE_FIRED);
    const bool b = m.state->state(1) == ROSE_FIRED;
    REQUIRE(b != (m.state->state(2) == ROSE_FIRED));
    REQUIRE(m.state->lost(b ? 2 : 1));
    REQUIRE(m.state->state(3) == (b ? ROSE_ARMED : ROSE_WAITING));
  }
}

TEST_CASE("same_thread requires the thread that met the previous condition") {
  Memory m(R"(
[[fault]]
id = "a"
kind = "crash"
node = "n1"
when = [ { syscall = "read" }, { syscall = "write", same_thread = true } ]
)");
  CHECK_FALSE(m.state->count(1, 7, 7, 1));
  m.state->count(0, 7, 4'000'000, 1);
  CHECK_FALSE(m.state->count(1, 7, 8, 2));
  CHECK(m.state->count(1, 7, 4'000'000, 3));
  CHECK(m.state->state(0) == ROSE_FIRED);
}

TEST_CASE("partitions begin when they fire and end by `until`") {
  Memory m(R"(
[[fault]]
id = "cut"
kind = "partition"
node = "n1"
until = [ { log = "healed", node = "n2" } ]
)");
  REQUIRE(m.plan->rules.size() == 1);
  CHECK(m.state->until_ns(0) == 0);
  CHECK_FALSE(m.state->count(0, 0, 0, 5));  // before the run begins, `until` does not count
  m.state->begin(10);
  CHECK(m.state->fire(0, 0, 0, 20));
  CHECK(m.state->until_ns(0) == ~std::uint64_t{0});
  CHECK(m.state->count(0, 0, 0, 500));
  CHECK(m.state->until_ns(0) == 500);
  m.state->end(0, 900);
  CHECK(m.state->until_ns(0) == 500);
}

TEST_CASE("impossible faults are refused with a hint") {
  struct Case {
    const char* text;
    ErrorKind kind;
    const char* message;
    const char* hint;
  };
  const Case cases[] = {
      {"id = \"a\"\nkind = \"crash\"\nnode = \"n4\"", ErrorKind::input, "unknown node 'n4'", "'n1'"},
      {"id = \"a\"\nkind = \"partition\"\nnode = \"n1\"\npeers = [\"m2\"]", ErrorKind::input, "unknown node 'm2'",
       "n2"},
      {"id = \"a\"\nkind = \"partition\"\nnode = [\"n1\", \"n2\", \"n3\"]", ErrorKind::input, "no other node", ""},
      {"id = \"a\"\nkind = \"partition\"\nnode = [\"n1\", \"m2\"]", ErrorKind::input, "unknown node 'm2'", "n2"},
      {"id = \"a\"\nkind = \"syscall\"\nnode = \"n1\"\nsyscall = \"rename\"\nerror = \"EIO\"\neffect = \"full\"",
       ErrorKind::input, "effect = \"full\" is not possible for 'rename'", "fsync"},
      {"id = \"a\"\nkind = \"syscall\"\nnode = \"n1\"\nsyscall = \"fsync\"\nresult = 0\neffect = { bytes = 3 }",
       ErrorKind::input, "{ bytes = n } is not possible for 'fsync'", "pwrite64"},
      {"id = \"a\"\nkind = \"syscall\"\nnode = \"n1\"\nsyscall = \"write\"\nerror = \"EIO\"\ndelay = \"1s\"\nthen = "
       "\"crash\"",
       ErrorKind::input, "`delay` together with", "leave one"},
      {"id = \"a\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ { function = \"no_such_function_here\" } ]",
       ErrorKind::input, "no function 'no_such_function_here'", ""},
      {"id = \"a\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ { function = \"step_functoin\" } ]", ErrorKind::input,
       "no function 'step_functoin'", "did you mean 'step_function'?"},
      {"id = \"a\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ { role = { function = \"step_functoin\" } } ]",
       ErrorKind::input, "no function 'step_functoin'", "did you mean 'step_function'?"},
      {"id = \"a\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ { function = \"probed_function\", offset = 0x5000 } ]",
       ErrorKind::input, "offset 0x5000 is outside 'probed_function", "bytes long"},
      {"id = \"a\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ { function = \"probed_function\", offset = 1 } ]",
       ErrorKind::input, "no instruction begins at offset 0x1 of 'probed_function", "inside an instruction"},
  };
  for (const auto& one : cases) {
    const auto made = plan_of(std::string("[[fault]]\n") + one.text + "\n");
    INFO(one.text);
    REQUIRE_FALSE(made);
    INFO(made.error().message << " / " << made.error().hint);
    CHECK(made.error().kind == one.kind);
    CHECK(made.error().message.find(one.message) != std::string::npos);
    CHECK(made.error().hint.find(one.hint) != std::string::npos);
  }
}

TEST_CASE("instruction boundaries are recognised") {
  // the code is: push rbp; mov rbp,rsp; call +0; ret
  const std::string code("\x55\x48\x89\xe5\xe8\x00\x00\x00\x00\xc3", 10);
  for (const std::uint64_t good : {0U, 1U, 4U, 9U}) CHECK(is_instruction_boundary(code, good));
  for (const std::uint64_t bad : {2U, 3U, 5U, 8U, 10U, 11U}) CHECK_FALSE(is_instruction_boundary(code, bad));
}

TEST_CASE("attached nodes need permission, and their syscalls cannot be changed") {
  auto config = three_nodes();
  config.deployment.network = config::Network::host;
  config.nodes[0].attach = config::Attach{.pid_file = "x", .container = {}, .unit = {}, .cgroup = {}};
  const std::string crash = "[[fault]]\nid = \"a\"\nkind = \"crash\"\nnode = \"n1\"\n";
  const auto refused = plan_of(crash, config);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::environment);
  CHECK(refused.error().hint.find("--allow-attached") != std::string::npos);
  CHECK(plan_of(crash, config, true));
  config.inject.syscall = config::Backend::seccomp;  // the override backend could inject this fault, but seccomp cannot
  const auto syscall = plan_of(
      "[[fault]]\nid = \"a\"\nkind = \"syscall\"\nnode = \"n1\"\nsyscall = \"read\"\nerror = \"EIO\"\n", config, true);
  REQUIRE_FALSE(syscall);
  CHECK(syscall.error().kind == ErrorKind::environment);
  CHECK(syscall.error().hint.find("rose exec") != std::string::npos);
  config.nodes[0].attach->exec = true;
  CHECK(plan_of("[[fault]]\nid = \"a\"\nkind = \"syscall\"\nnode = \"n1\"\nsyscall = \"read\"\nerror = \"EIO\"\n",
                config, true));
}

TEST_CASE("a fault on a role is bound once, to the node that has it when its conditions are met") {
  Memory m(R"(
[[role]]
name = "leader"
function = "step_function"
[[fault]]
id = "a"
kind = "crash"
node = "@leader"
when = [ { syscall = "read", node = "n1" } ]
[[fault]]
id = "b"
kind = "syscall"
node = "@leader"
syscall = "read"
error = "EIO"
)");
  CHECK(m.plan->sites.size() == 1);
  CHECK(m.plan->sites[0].conditions == std::vector<std::uint32_t>{ROSE_SITE_ROLE});
  CHECK(m.state->state(1) == ROSE_WAITING);
  m.state->count(0, 1, 1, 5);
  CHECK(m.state->state(0) == ROSE_WAITING);
  CHECK_FALSE(m.state->settle(0, 1, 1, 6));
  m.roles[0].holder = 3;
  CHECK(m.state->settle(0, 1, 1, 7));
  CHECK(m.state->settle(1, 1, 1, 7));
  m.roles[0].holder = 1;
  CHECK(m.state->state(0) == ROSE_FIRED);
  CHECK(m.state->state(1) == ROSE_ARMED);
  CHECK(m.state->node(0) == 3);
  CHECK(m.state->node(1) == 3);
  CHECK(m.state->is_there(ROSE_ROLE_NODES, 0));
  CHECK(m.state->is_there(ROSE_CHAIN_NODES, 2));
  CHECK_FALSE(m.state->is_there(ROSE_ROLE_NODES, 2));
}
