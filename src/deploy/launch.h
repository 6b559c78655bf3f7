// Starting one process: straight into its cgroup, network namespace, user, log files and (when
// asked for) seccomp filter, held before its execve until the caller has made its arrangements.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "deploy/clock_calls.h"

namespace rose::deploy {

struct Credentials {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};
// ErrorKind::input for an unknown user.
[[nodiscard]] Result<Credentials> find_user(const std::string& name);

struct LaunchSpec {
  std::string what;  // for messages: "node n1"
  std::string file;  // absolute
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;
  std::string directory;
  std::string stdout_log;  // appended to, made when absent
  std::string stderr_log;
  std::string cgroup;
  int netns = -1;
  const Credentials* user = nullptr;  // null: as rose
  std::vector<int> notified_syscalls;
  ClockCalls notified_clocks = ClockCalls::none;  // with neither there is no filter
};

// A node's log file, appended to, made when absent; it is `user`'s where that is given. ErrorKind::inconclusive when
// the node has put something else there.
[[nodiscard]] Result<Fd> open_log(const std::string& path, const Credentials* user);

// The filter: x86-64 calls with these numbers are notified, and those about clocks, all else is allowed.
[[nodiscard]] std::vector<sock_filter> notify_filter(const std::vector<int>& syscalls,
                                                     ClockCalls clocks = ClockCalls::none);

class Launch {
 public:
  // Returns when the process has prepared itself and waits. It is killed and reaped when this is destroyed before
  // release() has said that it runs.
  [[nodiscard]] static Result<Launch> prepare(const LaunchSpec& spec);
  Launch(Launch&& other) noexcept;
  Launch& operator=(Launch&&) = delete;
  Launch(const Launch&) = delete;
  ~Launch();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] Fd take_listener() { return std::move(listener_); }
  // Lets it go on to execve and waits for the outcome. An error means that the command could not be executed
  // (ErrorKind::input); the process is then reaped. The pidfd of the running process otherwise: a process killed
  // while it waited counts as running, its end shows at the pidfd.
  [[nodiscard]] Result<Fd> release();

 private:
  struct Meeting;
  struct Plan;
  Launch() = default;
  [[nodiscard]] Unexpected trouble(std::string_view what, int err) const;
  Result<Fd> make_meeting();
  Result<void> start(Plan& plan, const std::string& cgroup, int cgroup_fd);
  int clone_child(const Plan& plan, int cgroup_fd);
  [[noreturn]] static void run_child(const Plan& plan, Meeting* meeting);
  void await_child();
  Result<void> take_over_listener();
  void reap();
  std::string what_;
  std::string file_;
  pid_t pid_ = 0;
  Fd pidfd_;
  Fd executed_;  // read end of a pipe that closes at the execve
  Fd listener_;
  Meeting* meeting_ = nullptr;
};

}  // namespace rose::deploy
