// Deployments of small victims for tests: the configuration, a run directory, and what a deployment leaves on the
// machine.
#pragma once

#include <net/if.h>
#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "deploy/deployment.h"
#include "deploy/identity.h"
#include "eventually.h"
#include "folder.h"
#include "kernel/cgroup2.h"

namespace rose::deploy {

inline const std::string kVictim = std::string(ROSE_PROGRAMS_DIR) + "/deploy_victim";

struct RunDir : rose::test::Folder {
  [[nodiscard]] std::string read(const std::string& name) const { return read_file(path + "/" + name).value_or(""); }
};

inline config::Config make_config(std::vector<config::Command> commands,
                                  config::Network network = config::Network::netns) {
  config::Config config;
  config.file = "rose.toml";
  config.directory = ROSE_PROGRAMS_DIR;
  config.name = "deploy-test";
  config.deployment.network = network;
  config.deployment.subnet = "10.251.7.0/24";
  for (std::size_t i = 0; i < commands.size(); ++i) {
    config::Node node;
    node.name = fmt::format("n{}", i + 1);
    if (network == config::Network::netns) node.ip = fmt::format("10.251.7.{}", i + 1);
    node.command = commands[i];
    config.nodes.push_back(node);
  }
  return config;
}

inline config::Ready ready_tcp(std::uint16_t port) {
  config::Ready ready;
  ready.tcp = port;
  ready.timeout_ns = 120 * kSecond;
  return ready;
}
inline config::Ready ready_log(const std::string& pattern) {
  config::Ready ready;
  ready.log = pattern;
  ready.timeout_ns = 120 * kSecond;
  return ready;
}

inline std::unique_ptr<Deployment> make(const config::Config& config, const RunDir& dir,
                                        NodeObserver* observer = nullptr) {
  auto made = Deployment::create(config, dir.path, 3, observer);
  if (!made) FAIL(made.error().message << " / " << made.error().hint);
  return std::move(*made);
}

#define REQUIRE_OK(expression)                                                             \
  do {                                                                                     \
    auto require_ok = (expression);                                                        \
    if (!require_ok) FAIL(require_ok.error().message << " / " << require_ok.error().hint); \
  } while (false)

using rose::test::eventually;

// True if the process has ended, although its parent may not have reaped it yet.
inline bool gone(pid_t pid) {
  const auto stat = read_file(fmt::format("/proc/{}/stat", pid));
  return !stat || stat->find(") Z ") != std::string::npos || stat->find(") X ") != std::string::npos;
}

inline CommandResult run(Deployment& deployment, const config::Command& command, const std::string& log = "command",
                         std::int64_t timeout_ns = 120 * kSecond) {
  auto running = deployment.spawn(command, log, timeout_ns);
  if (!running) FAIL(running.error().message);
  return (*running)->wait();
}

inline std::set<std::string> names(const std::string& folder) {
  std::set<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) found.insert(entry.path().filename());
  return found;
}

// The descriptors, children and threads of this process, and the network links of its namespace. Other tests may run in
// parallel and create links, too.
struct Holdings {
  std::size_t descriptors = 0;
  std::size_t children = 0;
  std::size_t threads = 0;
  std::set<std::string> host_links;
};
inline Holdings holdings() {
  Holdings found;
  found.descriptors = names("/proc/self/fd").size();
  found.threads = names("/proc/self/task").size();
  // Use this function to list the links, because /sys may show the links of the namespace in which it was mounted.
  struct if_nameindex* links = ::if_nameindex();
  for (const struct if_nameindex* link = links; link != nullptr && link->if_index != 0; ++link)
    found.host_links.insert(link->if_name);
  ::if_freenameindex(links);
  const std::string self = std::to_string(::getpid());
  for (const std::string& name : names("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto stat = read_file("/proc/" + name + "/stat");
    if (stat && split(stat->substr(stat->rfind(')') + 2), ' ')[1] == self) ++found.children;
  }
  return found;
}
// Everything on this machine that has a name which begins with `id`.
inline std::vector<std::string> traces_of(const std::string& id) {
  std::vector<std::string> found;
  for (const std::string& folder :
       {std::string("/run/netns"), std::string(kLockFolder), kernel::cgroup2_mount().value().string()})
    for (const std::string& name : names(folder))
      if (name.starts_with(id)) found.push_back(folder + "/" + name);
  return found;
}

struct Recorder : NodeObserver {
  std::mutex mutex;
  std::vector<std::string> events;
  std::vector<EndInfo> ends;
  void add(std::string event) {
    std::lock_guard lock(mutex);
    events.push_back(std::move(event));
  }
  std::vector<std::string> seen() {
    std::lock_guard lock(mutex);
    return events;
  }
  void on_start(std::size_t node, pid_t) override { add(fmt::format("start {}", node)); }
  void on_end(std::size_t node, const EndInfo& end) override {
    add(fmt::format("end {} {}{}{}", node, end.signalled ? "signal " : "status ", end.code,
                    end.planned ? " planned" : ""));
    std::lock_guard lock(mutex);
    ends.push_back(end);
  }
  void on_planned(std::size_t node, bool planned) override { add(fmt::format("planned {} {}", node, planned)); }
};

}  // namespace rose::deploy
