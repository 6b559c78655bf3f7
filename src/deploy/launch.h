// Starts a process directly in its cgroup and network namespace, with its user, log files and optionally a seccomp
// filter, and holds it before its execve until the caller is ready.
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
// Returns ErrorKind::input for an unknown user.
[[nodiscard]] Result<Credentials> find_user(const std::string& name);

struct LaunchSpec {
  std::string what;  // for messages: "node n1"
  std::string file;  // absolute
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;
  std::string directory;
  std::string inside;  // the folder below `directory` in which it starts; no part of the path may be a symbolic link
  std::string stdout_log;  // appended to, created if missing
  std::string stderr_log;
  std::string cgroup;
  int netns = -1;
  int names = -1;                     // the mount namespace with the run's names (deploy/names.h); -1: rose's own
  const Credentials* user = nullptr;  // null: the user of rose
  bool changes_user = true;           // false: only the logs belong to `user`, and the process changes its user itself
  std::vector<int> notified_syscalls;
  ClockCalls notified_clocks = ClockCalls::none;  // if it is `none` and notified_syscalls is empty, there is no filter
};

// Opens a node's log file for appending. If the file is missing, creates it with `user` as its owner. Returns
// ErrorKind::inconclusive if the node has replaced it by something that is not a log file.
[[nodiscard]] Result<Fd> open_log(const std::string& path, const Credentials* user);

// The filter. It notifies rose of calls with these numbers and of calls about clocks, and allows all others. It also
// allows all calls that are made with the numbers of another architecture (such as 32-bit calls).
[[nodiscard]] std::vector<sock_filter> notify_filter(const std::vector<int>& syscalls,
                                                     ClockCalls clocks = ClockCalls::none);

class Launch {
 public:
  // Starts the process and returns once it is prepared and waits. If this object is destroyed before release() has
  // succeeded, the process is killed and reaped.
  [[nodiscard]] static Result<Launch> prepare(const LaunchSpec& spec);
  Launch(Launch&& other) noexcept;
  Launch& operator=(Launch&&) = delete;
  Launch(const Launch&) = delete;
  ~Launch();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] Fd take_listener() { return std::move(listener_); }
  // Lets the process call execve and waits for the result. Returns the pidfd of the process. An error means that the
  // command could not be executed (ErrorKind::input); the process has been reaped then. If the process was killed while
  // it waited, the pidfd is returned, too, and shows that the process has ended.
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
