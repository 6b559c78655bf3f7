// Three nodes. From the namespace and cgroup of each, requests such as pings can be sent to the others
// (test/programs/inject_pinger.c).
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#include <cstdlib>

#include "inject_rig.h"

namespace rose::test {

inline const std::string kPinger = std::string(ROSE_PROGRAMS_DIR) + "/inject_pinger";

enum Answer { kEcho = 0, kSilence = 1, kRefused = 3 };

// Starts a program in the node's namespace and cgroup.
inline pid_t start_at(Rig& rig, std::size_t node, const std::string& program, const std::vector<std::string>& words) {
  const auto& info = rig.deployment->nodes()[node];
  const std::string cgroup = (info.cgroup / "cgroup.procs").string();
  const int netns = rig.deployment->node_netns_fd(node);
  const int procs = ::open(cgroup.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(procs >= 0);
  std::vector<char*> arguments{const_cast<char*>(program.c_str())};
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::write(procs, "0", 1) != 1) ::_exit(90);
    if (netns >= 0 && ::setns(netns, CLONE_NEWNET) != 0) ::_exit(91);
    ::execv(program.c_str(), arguments.data());
    ::_exit(92);
  }
  ::close(procs);
  return child;
}

inline pid_t start_ping(Rig& rig, std::size_t node, const std::vector<std::string>& words) {
  return start_at(rig, node, kPinger, words);
}

inline Answer end_ping(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  const int code = WEXITSTATUS(status);
  REQUIRE((code == kEcho || code == kSilence || code == kRefused));
  return static_cast<Answer>(code);
}

// Three nodes, each with a port. The test supplies their scripts. In a host deployment all have the same address and
// different ports.
class ThreeNodes : public Rig {
 public:
  // `six`: requests go to the IPv6 addresses of the nodes.
  ThreeNodes(config::Network network, int base, bool six) : Rig(network), base_(base), six_(six) {}

  [[nodiscard]] bool on_host() const { return config.deployment.network == config::Network::host; }
  [[nodiscard]] int port(int node) const { return on_host() ? base_ + node : base_; }
  [[nodiscard]] std::string ip(int node) const {
    if (six_) return on_host() ? "::1" : fmt::format("fd00:251::{}", node + 1);
    return on_host() ? "127.0.0.1" : fmt::format("10.251.9.{}", node + 1);
  }
  // Assigns the IPv6 addresses for requests to the nodes of a netns deployment.
  void add_addresses() {
    for (int i = 0; i < 3 && six_ && !on_host(); ++i)
      deploy::in_netns(deployment->node_netns_fd(static_cast<std::size_t>(i)),
                       [&] { REQUIRE(std::system(("ip -6 addr add " + ip(i) + "/64 dev rose0 nodad").c_str()) == 0); });
  }
  void wait_fired(std::size_t fault = 0) {
    REQUIRE(eventually([&] { return injector->outcomes().at(fault).fired; }));
  }

 protected:
  // Sets the message by which the node that was added last says that it is ready.
  void is_ready_when(const std::string& message) {
    config.nodes.back().ready = config::Ready{.tcp = {}, .log = message, .command = {}, .timeout_ns = 120 * kSecond};
  }

 private:
  int base_;
  bool six_;
};

}  // namespace rose::test
