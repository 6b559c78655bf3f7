// One run of one node on the machine's own network, made as replay makes it. The node may be a JVM.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "inject_rig.h"
#include "replay/run.h"
#include "skip.h"

namespace rose::test {

// The node is n1. `workload` is a shell command. The oracle reports the bug in every run.
inline config::Config one_node(const std::string& name, std::vector<std::string> command, const std::string& workload,
                               std::int64_t timeout_ns) {
  config::Config config;
  config.file = "rose.toml";
  config.directory = "/";
  config.name = name;
  config.deployment.network = config::Network::host;
  config::Node node;
  node.name = "n1";
  node.command = std::move(command);
  config.nodes = {node};
  config.workload = config::Workload{{"/bin/sh", "-c", workload}, timeout_ns};
  config.oracle = config::Oracle{};
  config.oracle->command = {"/bin/true"};
  config.oracle->timeout_ns = timeout_ns;
  return config;
}

inline replay::RunOptions run_options(const config::Config& config, const Folder& folder) {
  replay::RunOptions options;
  options.run_dir = folder.path;
  options.tracer = replay::tracer_options(config);
  return options;
}

inline replay::Run run_of(const config::Config& config, const replay::RunOptions& options,
                          const schedule::Schedule& schedule = {}) {
  auto run = replay::run_once(config, schedule, options);
  if (!run) FAIL(run.error().message);
  REQUIRE(run->completed);
  return std::move(*run);
}

inline const std::string kClasses = std::string(ROSE_PROGRAMS_DIR) + "/java";

// The JVMs on this machine, each as the path of its program.
inline std::vector<std::string> javas() {
  if (const char* chosen = std::getenv("ROSE_TEST_JAVA")) return {chosen};
  std::set<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/jvm", error)) {
    const auto java = std::filesystem::canonical(entry.path() / "bin/java", error);
    if (!error) found.insert(java.string());
  }
  if (!std::filesystem::exists(kClasses + "/compiled"))
    skip_case("no Java compiler when this was built: apt-get install default-jdk-headless, then build again");
  if (found.empty()) skip_case("no `java`: apt-get install default-jdk-headless");
  return {found.begin(), found.end()};
}

// A JVM that runs one of the classes in test/programs/java. The run lasts until the JVM prints that it is done.
inline config::Config one_jvm(const std::string& name, const std::string& java, const std::vector<std::string>& main) {
  std::vector<std::string> command = {java, "-XX:+UseSerialGC", "-cp", kClasses};
  command.insert(command.end(), main.begin(), main.end());
  config::Config config =
      one_node(name, std::move(command), "until grep -qs done n1/stdout.log; do sleep 0.02; done", 120 * kSecond);
  config.nodes[0].binaries = {java};
  return config;
}

}  // namespace rose::test
