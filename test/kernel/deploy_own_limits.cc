// The limits of a cgroup v2 folder are copied to another folder on the real kernel, with every v2 controller of this
// machine.
#include <catch2/catch.hpp>

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "deploy/machine/cgroup.h"
#include "kernel/cgroup2.h"
#include "kernel/controllers.h"
#include "kernel/own_limits.h"
#include "skip.h"

using namespace rose;

TEST_CASE("limits that a container engine set are copied into a node's own cgroup") {
  const auto mount = kernel::cgroup2_mount();
  const auto base = deploy::cgroup::base();
  if (!mount || !base) test::skip_case("cgroup v2");
  struct Limit {
    const char* controller;
    const char* file;
    const char* value;
  };
  std::string words = read_file(*mount / "cgroup.controllers", 4096).value_or("");
  std::replace(words.begin(), words.end(), '\n', ' ');
  const auto there = split(words, ' ');
  std::vector<Limit> usable;
  for (const Limit& one : {Limit{"memory", "memory.max", "100663296"}, Limit{"pids", "pids.max", "50"},
                           Limit{"cpu", "cpu.max", "50000 100000"}, Limit{"hugetlb", "hugetlb.2MB.max", "4194304"}})
    if (std::find(there.begin(), there.end(), one.controller) != there.end()) usable.push_back(one);
  if (usable.empty()) test::skip_case("a controller of memory, pids, cpu or hugetlb in cgroup v2");

  // The root cgroup enables some controllers for its children. This is a setting of the machine, so it must be
  // restored.
  const std::string passed = read_file(*mount / "cgroup.subtree_control", 4096).value_or("");
  const std::filesystem::path own = *base / ("rose-own-limits-" + std::to_string(::getpid()));
  const std::filesystem::path engines = own / "engines", node = own / "node";
  for (const auto& folder : {own, engines, node}) REQUIRE(deploy::cgroup::make(folder));
  for (const Limit& one : usable) {
    REQUIRE(kernel::pass_on(one.controller, *mount, own));
    REQUIRE(write_control(engines / one.file, one.value));
  }
  const auto limits = kernel::own_limits(engines);
  CHECK(limits.size() == usable.size());
  CHECK(kernel::own_limits(node).empty());
  REQUIRE(kernel::take_over(limits, *mount, node / "rose.container"));
  CHECK(kernel::own_limits(node / "rose.container") == limits);
  CHECK(kernel::own_limits(node).empty());                              // so faults can use the node's own folder
  REQUIRE(kernel::take_over(limits, *mount, node / "rose.container"));  // as after a restart
  const auto refused =
      kernel::take_over({{std::string(usable.front().file), {"a word"}}}, *mount, node / "rose.container");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("a word") != std::string::npos);
  CHECK(deploy::cgroup::destroy(own));
  for (const Limit& one : usable)
    if (passed.find(one.controller) == std::string::npos)
      (void)write_control(*mount / "cgroup.subtree_control", std::string("-") + one.controller);
}
