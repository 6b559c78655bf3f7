// One run of a schedule against victims that follow a script (test/programs/inject_victim.cc), in a real deployment.
#pragma once

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "deploy/deployment.h"
#include "eventually.h"
#include "folder.h"
#include "inject/injector.h"
#include "kernel/probe.h"

namespace rose::test {

inline const std::string kVictim = std::string(ROSE_PROGRAMS_DIR) + "/inject_victim";

class Rig {
 public:
  config::Config config;
  bool allow_attached = false;
  bool stacks = false;

  explicit Rig(config::Network network = config::Network::host) {
    if (std::getenv("ROSE_TEST_VERBOSE") != nullptr) log::set_level(log::Level::verbose);
    config.file = "rose.toml";
    config.directory = "/";
    config.name = "inject-test";
    config.deployment.network = network;
    config.deployment.subnet = "10.251.9.0/24";
    // With ROSE_TEST_BACKEND=override in the environment, all tests use the override backend.
    config.inject.syscall = overriding() ? config::Backend::override_return : config::Backend::seccomp;
    if (!overriding()) return;
    if (const auto found = kernel::probe("override_return"); !found.ok) {
      std::printf("SKIPPED: needs bpf_override_return: %s\n", found.detail.c_str());
      std::error_code ignored;
      std::filesystem::remove_all(folder.path, ignored);  // exit() calls no destructor
      std::exit(77);
    }
  }
  [[nodiscard]] static bool overriding() {
    const char* backend = std::getenv("ROSE_TEST_BACKEND");
    return backend != nullptr && std::string(backend) == "override";
  }
  // Call this for a schedule that only the seccomp backend supports. The backend "auto" must detect this.
  void leave_to_seccomp() { config.inject.syscall = config::Backend::automatic; }
  ~Rig() {
    if (injector) injector->disarm();
    if (deployment) deployment->stop();
  }

  // Adds a node that runs the victim with these steps.
  config::Node& add(std::vector<std::string> steps) {
    config::Node node;
    node.name = fmt::format("n{}", config.nodes.size() + 1);
    if (config.deployment.network == config::Network::netns)
      node.ip = fmt::format("10.251.9.{}", config.nodes.size() + 1);
    node.command = {kVictim};
    node.command.insert(node.command.end(), steps.begin(), steps.end());
    node.binaries = {kVictim};
    config.nodes.push_back(std::move(node));
    return config.nodes.back();
  }

  // Starts the run. The workload has started when this returns.
  void start(const std::string& schedule_text) {
    prepare(schedule_text);
    begin();
  }
  void prepare(const std::string& schedule_text) {
    const auto prepared = try_prepare(schedule_text);
    if (!prepared) FAIL(prepared.error().message << " / " << prepared.error().hint);
  }
  Result<void> try_prepare(const std::string& schedule_text) {
    ROSE_TRY(const auto schedule,
             schedule::parse_schedule("version = 1\nname = \"test\"\n" + schedule_text, "test.toml"));
    ROSE_TRY(injector, inject::Injector::create(schedule, config, allow_attached, stacks));
    ROSE_TRY(deployment, deploy::Deployment::create(config, folder.path, 1, injector.get()));
    if (injector->needs_jvms()) {
      ROSE_TRY(jvms, jvm::Session::open(deployment->run_dir()));
    }
    ROSE_CHECK(injector->arm(*deployment, jvms.get()));
    if (jvms) ROSE_CHECK(jvms->write());
    return deployment->start();
  }
  void begin() { injector->workload_began(monotonic_ns()); }

  void touch(const std::string& file) { REQUIRE(write_file(path(file), "")); }
  [[nodiscard]] std::string path(const std::string& file) const { return folder.path + "/" + file; }
  [[nodiscard]] bool exists(const std::string& file) const { return std::filesystem::exists(path(file)); }
  [[nodiscard]] std::string read(const std::string& file) const { return read_file(path(file)).value_or("<none>"); }
  [[nodiscard]] std::string out(std::size_t node = 0) const { return read(fmt::format("n{}/stdout.log", node + 1)); }
  [[nodiscard]] bool printed(const std::string& what, std::size_t node = 0) const {
    return out(node).find(what) != std::string::npos;
  }
  // The number of lines of the node's output that equal this line.
  [[nodiscard]] int lines(const std::string& line, std::size_t node = 0) const {
    int n = 0;
    for (const auto& one : split(out(node), '\n')) n += one == line ? 1 : 0;
    return n;
  }
  void wait_end(std::size_t node = 0) {
    const bool ended = eventually([&] { return deployment->processes(node).empty(); }, 90 * kSecond);
    INFO(out(node));
    REQUIRE(ended);
  }
  void wait_printed(const std::string& what, std::size_t node = 0) {
    const bool appeared = eventually([&] { return printed(what, node); });
    INFO(out(node));
    REQUIRE(appeared);
  }
  // Ends the run. Returns the outcomes in the order of the faults.
  std::vector<schedule::FaultOutcome> finish() {
    injector->disarm();
    auto all = injector->outcomes();
    deployment->stop();
    return all;
  }

  // Like finish(), but also checks that every fault has fired.
  std::vector<schedule::FaultOutcome> finish_fired() {
    auto all = finish();
    for (const auto& one : all) {
      INFO(one.id << ": " << one.why_not);
      CHECK(one.fired);
    }
    return all;
  }

  Folder folder;
  std::unique_ptr<jvm::Session> jvms;
  std::unique_ptr<inject::Injector> injector;  // it must be destroyed after the deployment
  std::unique_ptr<deploy::Deployment> deployment;
};

}  // namespace rose::test
