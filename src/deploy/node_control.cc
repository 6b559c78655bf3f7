// Acts on single nodes: signals and pauses for schedules, and the requests of `rose node`.
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/text.h"
#include "deploy/cluster.h"
#include "deploy/machine/cgroup.h"
#include "deploy/machine/processes.h"
#include "kernel/processes.h"

namespace rose::deploy {
// Signals and pauses

std::vector<pid_t> Cluster::processes(std::size_t node) const {
  std::unique_lock lock(mutex_);
  const std::filesystem::path folder = infos_[node].cgroup;
  const pid_t pid = states_[node]->pid;
  lock.unlock();
  if (!folder.empty()) return cgroup::processes(folder);
  return pid == 0 ? std::vector<pid_t>{} : kernel::with_descendants({pid});
}

Result<void> Cluster::signal(std::size_t node, Scope scope, int number) {
  const NodeState& state = *states_[node];
  std::unique_lock lock(mutex_);
  const std::filesystem::path folder = infos_[node].cgroup;
  const bool down = state.pid == 0;
  if (scope == Scope::main && !down) {
    // The lock ensures that the process is not reaped meanwhile.
    const bool sent = state.pidfd ? kernel::pidfd_signal(state.pidfd.get(), number) : ::kill(state.pid, number) == 0;
    if (!sent && errno != ESRCH)
      return fail_errno(ErrorKind::environment, fmt::format("cannot signal node {}", infos_[node].name), errno);
    return {};
  }
  lock.unlock();
  if (scope == Scope::main || (down && (folder.empty() || !cgroup::populated(folder))))
    return fail(ErrorKind::inconclusive, fmt::format("node {} is not running", infos_[node].name));
  if (state.config->attach && !folder.empty()) ROSE_CHECK(check_without_rose(folder));
  if (folder.empty()) {
    for (const pid_t pid : processes(node)) (void)kernel::signal_listed(pid, [&] { return processes(node); }, number);
  } else if (number == SIGKILL) {
    ROSE_CHECK(cgroup::kill(folder));
  } else {
    cgroup::signal(folder, number);
  }
  return {};
}

Result<void> Cluster::stand_still(std::size_t node, Scope scope, bool wait) {
  NodeState& state = *states_[node];
  std::unique_lock lock(mutex_);
  const std::filesystem::path folder = infos_[node].cgroup;
  const bool attached = state.config->attach.has_value();
  const pid_t pid = state.pid;
  lock.unlock();
  if (scope == Scope::all && !folder.empty()) {
    if (attached) ROSE_CHECK(check_without_rose(folder));
    // Note it first, so that heal() finds an attached node that stays frozen because rose was killed.
    if (attached) ROSE_CHECK(identity_.note("frozen", folder.string()));
    {
      std::lock_guard again(mutex_);
      state.paused = true;
    }
    return wait ? cgroup::freeze(folder, true) : cgroup::order_freeze(folder, true);
  }
  if (attached)
    for (const pid_t each : scope == Scope::all ? processes(node) : std::vector<pid_t>{pid})
      if (const auto stat = kernel::process_stat(each))
        ROSE_CHECK(identity_.note("stopped", fmt::format("{} {}", each, stat->start_ticks)));
  {
    std::lock_guard again(mutex_);
    (scope == Scope::all ? state.paused : state.main_paused) = true;
  }
  return signal(node, scope, SIGSTOP);
}

Result<void> Cluster::resume(std::size_t node, Scope scope) {
  NodeState& state = *states_[node];
  std::unique_lock lock(mutex_);
  const std::filesystem::path folder = infos_[node].cgroup;
  (scope == Scope::all ? state.paused : state.main_paused) = false;
  const bool down = state.pid == 0;
  lock.unlock();
  if (scope == Scope::all && !folder.empty()) {
    if (std::error_code error; !std::filesystem::exists(folder, error))
      return {};  // the cgroup of an attached node, which was removed with its processes
    ROSE_CHECK(cgroup::freeze(folder, false));
    if (state.config->attach) ROSE_CHECK(identity_.note("thawed", folder.string()));
    wake();  // a restart may be waiting for this
    return {};
  }
  if (down) return {};  // it died while paused, so there is nothing to resume
  return signal(node, scope, SIGCONT);
}

Result<void> Cluster::foresee_stops(std::size_t node) {
  std::unique_lock lock(mutex_);
  const std::filesystem::path folder = infos_[node].cgroup;
  lock.unlock();
  if (!states_[node]->config->attach || folder.empty()) return {};
  for (const pid_t pid : cgroup::processes(folder))
    if (const auto stat = kernel::process_stat(pid); stat && stat->state == 'T')
      ROSE_CHECK(identity_.note("stood", fmt::format("{} {}", pid, stat->start_ticks)));
  return identity_.note("stops", folder.string());
}

// rose node

std::string Cluster::status(std::size_t node) const {
  std::lock_guard lock(mutex_);
  const NodeState& state = *states_[node];
  if (state.pid == 0) return fmt::format("{} down starts {}", infos_[node].name, state.starts);
  return fmt::format("{} {} pid {} starts {}", infos_[node].name, state.paused || state.main_paused ? "paused" : "up",
                     state.pid, state.starts);
}

bool Cluster::wait_down(std::size_t node, std::int64_t timeout_ns) {
  const std::int64_t until = monotonic_ns() + timeout_ns;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (states_[node]->pid == 0 && !states_[node]->ending && !cgroup::populated(infos_[node].cgroup)) return true;
    if (monotonic_ns() >= until || stopping_) return false;
    changed_.wait_for(lock, std::chrono::milliseconds(10));
  }
}

// False if the main process ignores the stop signal: the init process of a container ignores signals without a handler.
// In that case, the process will not end, so waiting for its end is useless.
bool Cluster::heeds_its_end(std::size_t node) const {
  std::unique_lock lock(mutex_);
  const NodeState& state = *states_[node];
  if (!state.container || state.pid == 0) return true;
  const pid_t pid = state.pid;
  const int signal = state.container->stop_signal;
  lock.unlock();
  return kernel::heeds(pid, signal);
}

void Cluster::terminate(std::size_t node) const {
  if (const auto& container = states_[node]->container) {
    // As with docker and podman, only the main process gets the signal. It may pass the signal on.
    std::lock_guard lock(mutex_);
    const NodeState& state = *states_[node];
    if (!state.pidfd) return;
    (void)kernel::pidfd_signal(state.pidfd.get(), container->stop_signal);
    // A stopped process handles signals only after it continues.
    (void)kernel::pidfd_signal(state.pidfd.get(), SIGCONT);
    return;
  }
  cgroup::signal(infos_[node].cgroup, SIGTERM);
  // A stopped process handles SIGTERM only after it continues.
  cgroup::signal(infos_[node].cgroup, SIGCONT);
}

void Cluster::set_planned(std::size_t node, bool planned) {
  NodeState& state = *states_[node];
  bool tell = false;
  {
    std::lock_guard lock(mutex_);
    tell = std::exchange(state.planned, planned) != planned;
    if (planned) state.restart_at_ns = 0;
  }
  if (tell) tell_planned(node, planned);
}

Result<void> Cluster::stop_node(std::size_t node, int number) {
  const NodeState& state = *states_[node];
  if (number != SIGKILL && state.container && !state.config->container->pre_stop.empty()) {
    on_monitor([&] { set_planned(node, true); });  // it is planned from now on, because a hook may end the node
    if (auto done = pre_stop(node, kHookTimeout, false); !done) {
      on_monitor([&] { set_planned(node, false); });
      Error error = std::move(done).error();
      error.message += "; as with Compose, it is not stopped";
      return Unexpected(std::move(error));
    }
  }
  Result<void> sent;
  on_monitor([&] {
    set_planned(node, true);
    if (number == SIGKILL) sent = cgroup::kill(infos_[node].cgroup);
    else terminate(node);  // if it ignores the signal, it is killed below
  });
  ROSE_CHECK(sent);
  if (number == SIGKILL || heeds_its_end(node))
    if (wait_down(node, number == SIGKILL ? kKillTimeout
                        : state.config->container && state.config->container->stop_grace_ns > 0
                            ? state.config->container->stop_grace_ns
                            : kPlannedStopGrace))
      return {};
  if (stopping_) return fail(ErrorKind::cancelled, "the run is ending");
  ROSE_CHECK(cgroup::kill(infos_[node].cgroup));
  if (wait_down(node, kKillTimeout)) return {};
  return fail(ErrorKind::inconclusive, fmt::format("node {} does not end", infos_[node].name));
}

Result<void> Cluster::start_node(std::size_t node) {
  NodeState& state = *states_[node];
  {
    // The container may have ended although the engine has not reported how. Wait for that report.
    std::unique_lock lock(mutex_);
    const std::int64_t until = monotonic_ns() + kKillTimeout;
    while (state.ending && !stopping_ && monotonic_ns() < until) changed_.wait_for(lock, std::chrono::milliseconds(10));
  }
  Result<void> launched;
  bool started = false;  // started here, not by the restart policy
  on_monitor([&] {
    {
      std::lock_guard lock(mutex_);
      if (state.pid != 0 || state.ending) return;  // the restart policy was faster
    }
    launched = launch(node);
    started = launched.has_value();
    if (launched) set_planned(node, false);
  });
  ROSE_CHECK(launched);
  if (started && state.container) ROSE_CHECK(post_start(node));
  return await_ready({node});
}

Result<std::string> Cluster::step(const std::string& name, bool done) {
  if (!on_step_)
    return fail(ErrorKind::usage, "this run's schedule has no `order`, so there are no steps",
                "add order = \"...\" to the schedule");
  ROSE_CHECK(on_step_(name, done));
  return name;
}

Result<std::string> Cluster::request(const std::string& action, const std::string& name) {
  if (action == "step" || action == "step-done") return step(name, action == "step-done");
  const std::vector<std::string> names = config_.node_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    std::string list;
    for (const std::string& each : names) list += (list.empty() ? "" : ", ") + each;
    const std::string guess = did_you_mean(name, names);
    return fail(ErrorKind::usage, fmt::format("there is no node '{}'", name),
                guess.empty() ? fmt::format("the nodes are {}", list) : guess);
  }
  const auto node = static_cast<std::size_t>(found - names.begin());
  static const std::vector<std::string> actions = {"stop", "start", "restart", "kill", "status"};
  if (std::find(actions.begin(), actions.end(), action) == actions.end()) {
    const std::string guess = did_you_mean(action, actions);
    return fail(ErrorKind::usage, fmt::format("unknown action '{}'", action),
                guess.empty() ? "accepted are stop, start, restart, kill and status" : guess);
  }
  if (action == "status") return status(node);
  NodeState& state = *states_[node];
  if (state.config->attach)
    return fail(ErrorKind::usage, fmt::format("node {} is attached: rose neither starts nor stops it", name),
                "use the tools of its setup command");
  std::lock_guard operation(state.operation);
  if (stopping_) return fail(ErrorKind::cancelled, "the run is ending");
  if (state.container ? !state.container->made : state.spec.file.empty())
    return fail(ErrorKind::inconclusive, fmt::format("node {} has not been started yet", name),
                "nodes start after the setup command");
  if (action != "start") ROSE_CHECK(stop_node(node, action == "kill" ? SIGKILL : SIGTERM));
  if (action == "start" || action == "restart") ROSE_CHECK(start_node(node));
  return status(node);
}

}  // namespace rose::deploy
