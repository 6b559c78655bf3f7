// Pings (test/programs/inject_pinger.c) from a node's place in the world.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#include "inject_rig.h"

namespace rose::test {

inline const std::string kPinger = std::string(ROSE_PROGRAMS_DIR) + "/inject_pinger";

enum Answer { kEcho = 0, kSilence = 1, kRefused = 3 };

// Runs a program from a node's place in the world: its namespace and its cgroup.
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

}  // namespace rose::test
