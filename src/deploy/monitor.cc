// The monitor thread: starts nodes, detects their ends and calls the observer.
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "deploy/cluster.h"
#include "deploy/machine/cgroup.h"
#include "deploy/machine/processes.h"
#include "kernel/cgroup2.h"
#include "kernel/processes.h"

namespace rose::deploy {
namespace {

constexpr std::int64_t kAttachPoll = 100 * kMillisecond;
constexpr std::int64_t kEngineTells = 10 * kSecond;  // from a container's end until its engine has reported it
constexpr std::int64_t kFrozenPoll = 50 * kMillisecond;
constexpr int kMostLooks = 1'000;  // attempts to find the leading process, while processes replace each other

std::uint64_t file_size(const std::filesystem::path& folder, const std::filesystem::path& file) {
  const auto status = status_inside(folder, file);
  return status ? static_cast<std::uint64_t>(status->st_size) : 0;
}

// The file is renamed into place, so that readers never see an incomplete number. It is not synced, because it is
// useless after a crash.
void write_pid_file(const std::filesystem::path& path, pid_t pid) {
  const std::string temporary = path.string() + ".new";
  {
    const Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
    const std::string text = fmt::format("{}\n", pid);
    if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      log::warning("cannot write {}: {}", path.string(), std::strerror(errno));
      return;
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    log::warning("cannot write {}: {}", path.string(), std::strerror(errno));
}

}  // namespace

std::string describe(const EndInfo& end) {
  if (!end.signalled) return fmt::format("exited with status {}", end.code);
  return fmt::format("was killed by signal {} ({})", end.code, ::strsignal(end.code));
}

void Cluster::on_monitor(const std::function<void()>& task) {
  if (std::this_thread::get_id() == monitor_.get_id()) {
    task();
    return;
  }
  std::unique_lock lock(mutex_);
  if (quit_) return;  // the monitor runs no more tasks, and the caller will find that the run is ending
  bool done = false;
  tasks_.push_back([&] {
    task();
    std::lock_guard done_lock(mutex_);
    done = true;
    changed_.notify_all();
  });
  wake();
  changed_.wait(lock, [&] { return done; });
}

int Cluster::next_timeout_ms() const {
  std::lock_guard lock(mutex_);
  std::int64_t next = -1;
  for (const auto& state : states_)
    for (const std::int64_t at :
         {stopping_ ? 0 : state->restart_at_ns, stopping_ ? 0 : state->attach_at_ns, state->engine_due_ns})
      if (at != 0 && (next < 0 || at < next)) next = at;
  if (next < 0) return -1;
  // Rounded up, because waking up too early would only cause another wait.
  return static_cast<int>(
      std::clamp<std::int64_t>((next - monotonic_ns() + kMillisecond - 1) / kMillisecond, 0, 60'000));
}

void Cluster::run_timers() {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    std::unique_lock lock(mutex_);
    const std::int64_t due = states_[i]->engine_due_ns;
    lock.unlock();
    if (due != 0 && monotonic_ns() >= due) engine_ended(i, true);
  }
  if (stopping_) return;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    NodeState& state = *states_[i];
    bool restart = false;
    bool look = false;
    {
      std::lock_guard lock(mutex_);
      const std::int64_t now = monotonic_ns();
      restart = state.restart_at_ns != 0 && now >= state.restart_at_ns;
      // Do not restart into a frozen folder, where the process would be stuck half-started, nor before the owner of its
      // namespace runs.
      if (restart && (cgroup::frozen(infos_[i].cgroup) || !missing_owner(i).empty())) {
        state.restart_at_ns = now + kFrozenPoll;
        restart = false;
      }
      if (restart) {
        state.restart_at_ns = 0;
        state.end_note.clear();  // the node is about to run
        if (!state.with) ++state.restarts;
      }
      look = state.attach_at_ns != 0 && now >= state.attach_at_ns;
      if (look) state.attach_at_ns = 0;
    }
    if (restart)
      if (auto launched = launch(i); !launched && !stopping_) not_restarted(launched.error());
    if (!look) continue;
    if (auto attached = attach(i); !attached) {
      std::lock_guard lock(mutex_);
      state.unattached = std::move(attached).error();
      // For units and containers, each check starts a program, so they are checked less often.
      const config::Attach& target = *state.config->attach;
      state.attach_at_ns = monotonic_ns() + (target.unit || target.container ? kSecond : kAttachPoll);
    }
  }
}

// Records that a restart failed, so that the run is not judged. If the program can no longer be executed
// (ErrorKind::input), the run is judged all the same, because the system under test itself caused that.
void Cluster::not_restarted(const Error& error) {
  log::warning("restart of {}", error.message);
  if (error.kind == ErrorKind::input) return;
  std::lock_guard lock(mutex_);
  if (trouble_.empty()) trouble_ = fmt::format("restart of {}", error.message);
}

void Cluster::monitor() {
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (states_[i]->events) watch(kEvents, i, states_[i]->events.get(), EPOLLPRI);
  for (;;) {
    epoll_event events[32];
    const int count = ::epoll_wait(epoll_.get(), events, 32, next_timeout_ms());
    for (int i = 0; i < count; ++i) {
      const auto source = static_cast<Source>(events[i].data.u64 >> 32);
      const auto node = static_cast<std::size_t>(events[i].data.u64 & 0xffffffff);
      if (source == kWake) {
        std::uint64_t value = 0;
        [[maybe_unused]] const ssize_t n = ::read(wake_.get(), &value, sizeof value);
      } else if (source == kPidfd) {
        main_ended(node);
      } else if (source == kEngine) {
        engine_ended(node, false);
      } else {
        cgroup_changed(node);
      }
    }
    for (;;) {
      std::function<void()> task;
      {
        std::lock_guard lock(mutex_);
        if (tasks_.empty()) {
          if (quit_) return;
          break;
        }
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
    run_timers();
  }
}

Unexpected Cluster::not_started(NodeState& state, Error error) {
  std::lock_guard lock(mutex_);
  state.failure = error;
  changed_.notify_all();
  return Unexpected(std::move(error));
}

Result<void> Cluster::launch(std::size_t node) {
  NodeState& state = *states_[node];
  const NodeInfo& info = infos_[node];
  const auto failed = [&](Error error) { return not_started(state, std::move(error)); };
  if (stopping_) return failed({ErrorKind::cancelled, "the run is ending", ""});
  std::unique_lock owners_lock(mutex_);
  const std::string owner = missing_owner(node);
  owners_lock.unlock();
  if (!owner.empty())
    return failed({ErrorKind::inconclusive,
                   fmt::format("node {} joins a namespace of {}, which does not run", info.name, owner),
                   fmt::format("it can start while {} runs", owner)});
  // Kill processes left by an earlier incarnation, because they would keep its ports.
  if (!state.held && cgroup::populated(info.cgroup)) {
    if (auto killed = cgroup::kill(info.cgroup); !killed) return failed(std::move(killed).error());
    if (!cgroup::wait_empty(info.cgroup, kKillTimeout))
      return failed({ErrorKind::inconclusive, fmt::format("node {}: old processes do not end", info.name), ""});
  }
  {
    std::lock_guard lock(mutex_);
    state.failure.reset();
    state.end_note.clear();
    state.with.reset();
    state.restart_at_ns = 0;
    state.logs.clear();
    for (const std::filesystem::path& file : info.logs)
      state.logs.push_back({file, file_size(info.dir, file), info.dir});
  }
  if (state.held) {
    Result<ContainerLaunch> held = std::move(*state.held);
    state.held.reset();
    return let_run(node, std::move(held));
  }
  if (auto asked = ask_calls(node); !asked) return failed(std::move(asked).error());
  if (state.container) return let_run(node, ContainerLaunch::prepare(container_start(node)));
  return let_run(node, Launch::prepare(state.spec));
}

// Determines which calls the filter reports to rose. If rose dies, nobody answers these calls, so the lock file notes
// that the node must then be ended.
Result<void> Cluster::ask_calls(std::size_t node) {
  LaunchSpec& spec = states_[node]->spec;
  spec.notified_syscalls = observer_ != nullptr ? observer_->notified_syscalls(node) : std::vector<int>{};
  spec.notified_clocks = observer_ != nullptr ? observer_->notified_clocks(node) : ClockCalls::none;
  if (spec.notified_syscalls.empty() && spec.notified_clocks == ClockCalls::none) return {};
  return note_end(node);
}

Result<void> Cluster::note_end(std::size_t node) {
  if (std::exchange(states_[node]->end_noted, true)) return {};
  return identity_.note("ends", infos_[node].cgroup.string());
}

// `prepared`: a Launch or ContainerLaunch with a held process.
template <typename Held>
Result<void> Cluster::let_run(std::size_t node, Result<Held> prepared) {
  NodeState& state = *states_[node];
  const NodeInfo& info = infos_[node];
  const auto failed = [&](Error error) { return not_started(state, std::move(error)); };
  if (!prepared) return failed(std::move(prepared).error());
  const pid_t pid = prepared->pid();
  if constexpr (std::is_same_v<Held, ContainerLaunch>) state.engine = prepared->take_engine();
  {
    std::lock_guard lock(mutex_);
    state.pid = pid;
    state.adopted = false;
    ++state.starts;
  }
  write_pid_file(info.pid_file, pid);
  if (state.container && state.starts == 1)
    if (auto synced = sync_disks(node); !synced) log::warning("node {}: {}", info.name, synced.error().message);
  if (observer_ != nullptr) {
    if (Fd listener = prepared->take_listener()) observer_->on_listener(node, pid, std::move(listener));
    observer_->on_start(node, pid);
  }
  auto running = prepared->release();
  if (!running) {
    Error error = std::move(running).error();
    if constexpr (std::is_same_v<Held, ContainerLaunch>) state.engine.kill();
    finish_end(node, {pid, false, 127, false});
    {
      std::lock_guard lock(mutex_);
      state.restart_at_ns = 0;  // it would fail again
    }
    return failed(std::move(error));
  }
  {
    std::lock_guard lock(mutex_);
    state.pidfd = std::move(*running);
    watch(kPidfd, node, state.pidfd.get(), EPOLLIN);
    changed_.notify_all();
  }
  log::debug("node {} started, pid {}", info.name, pid);
  return {};
}

// Finds the system that setup started. A process that setup left in setup's cgroup is moved to the node's cgroup,
// because otherwise nodes started by one setup could not be distinguished.
Result<void> Cluster::attach(std::size_t node) {
  NodeState& state = *states_[node];
  NodeInfo& info = infos_[node];
  ROSE_TRY(Attached found, find_attached(*state.config->attach, run_dir_).map_error([&](Error error) {
    return std::move(error).in("node " + info.name);
  }));
  const std::filesystem::path own = cgroup_ / ("rose-" + info.name);
  if (found.cgroup.string().starts_with(cgroup_.string() + "/") && found.cgroup != own) {
    // Repeated, because processes that are forked during the first pass are descendants, too.
    for (int round = 0; round < 2; ++round)
      for (const pid_t pid : kernel::with_descendants({found.pid}))
        if (kernel::cgroup_folder_of(pid) != own) (void)write_control(own / "cgroup.procs", std::to_string(pid));
    found.cgroup = own;
  }
  // If rose itself moved the processes there, the folder belongs to the node alone, so no check is needed.
  const Result<void> alone = found.cgroup == own ? Result<void>{} : check_alone(found);
  if (const Result<void> fit = alone ? check_apart(node, found.cgroup) : alone; !fit) {
    Error error = Error(fit.error()).in("node " + info.name);
    std::lock_guard lock(mutex_);
    // The node is running again but cannot be attached. Nothing waits for its readiness any more, so the error is
    // reported here.
    if (state.starts > 0 && (!state.unattached || state.unattached->message != error.message))
      log::warning("{}", error.message);
    return Unexpected(std::move(error));
  }
  Fd pidfd = kernel::open_pidfd(found.pid);
  if (!pidfd) return fail(ErrorKind::inconclusive, fmt::format("node {}: process {} has ended", info.name, found.pid));
  {
    std::lock_guard lock(mutex_);
    info.cgroup = found.cgroup;
    info.cgroup_id = found.cgroup.empty() ? 0 : kernel::cgroup_id(found.cgroup);
    state.pid = found.pid;
    state.adopted = true;
    state.attach_at_ns = 0;
    ++state.starts;
  }
  write_pid_file(info.pid_file, found.pid);
  if (observer_ != nullptr) observer_->on_start(node, found.pid);
  std::lock_guard lock(mutex_);
  state.pidfd = std::move(pidfd);
  watch(kPidfd, node, state.pidfd.get(), EPOLLIN);
  changed_.notify_all();
  return {};
}

// Fails if `folder` overlaps with the cgroup of another node: the programs in the kernel distinguish nodes by their
// cgroups, and pausing one node must not pause another.
Result<void> Cluster::check_apart(std::size_t node, const std::filesystem::path& folder) const {
  if (folder.empty()) return {};
  std::lock_guard lock(mutex_);
  for (const NodeInfo& other : infos_) {
    if (other.index == node || other.cgroup.empty() || states_[other.index]->starts == 0) continue;
    if (!is_within(folder, other.cgroup) && !is_within(other.cgroup, folder)) continue;
    return fail(ErrorKind::inconclusive,
                fmt::format("its cgroup {} is not separate from that of node {}, {}", folder.string(), other.name,
                            other.cgroup.string()),
                "give each node its own cgroup");
  }
  return {};
}

void Cluster::main_ended(std::size_t node) {
  NodeState& state = *states_[node];
  EndInfo end;
  bool child = false;
  bool orderly = false;
  {
    std::lock_guard lock(mutex_);
    if (!state.pidfd) return;  // an event that was already pending
    end.pid = state.pid;
    child = !state.adopted && !state.container;
    if (child) {
      siginfo_t info{};
      if (::waitid(P_PIDFD, static_cast<id_t>(state.pidfd.get()), &info, WEXITED | WNOHANG) != 0) return;
      if (info.si_pid == 0) {
        const auto stat = kernel::process_stat(state.pid);
        if (stat && stat->state != 'Z' && stat->state != 'X') return;
        log::warning("node {}: another process traces it and holds its exit status back; assuming that it was killed",
                     infos_[node].name);
        info.si_status = SIGKILL;
        info.si_code = CLD_KILLED;
      }
      end.signalled = info.si_code != CLD_EXITED;
      end.code = info.si_status;
    }
    // Stop watching the process now, because once it is reaped its id may belong to another process.
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, state.pidfd.get(), nullptr);
    state.pidfd.reset();
    state.pid = 0;
    state.with = ended_with(node);
    if (state.container) {
      // The process is a child of the engine, which will report how the process ended.
      ::unlink(infos_[node].pid_file.c_str());
      state.ending = true;
      state.ended_pid = end.pid;
      state.engine_due_ns = monotonic_ns() + kEngineTells;
      watch(kEngine, node, state.engine.fd(), EPOLLIN);
      return;
    }
    orderly = !end.signalled && end.code == 0 && !state.planned && !stopping_;
  }
  // If the main process ends normally and leaves other processes, it has only started a daemon.
  if (orderly && adopt_leader(node)) return;
  finish_end(node, end);
}

void Cluster::engine_ended(std::size_t node, bool late) {
  NodeState& state = *states_[node];
  {
    std::lock_guard lock(mutex_);
    if (!state.ending || state.engine_due_ns == 0) return;
  }
  const int fd = state.engine.fd();
  int status = state.engine.reap();  // closes its descriptor, which removes it from the epoll set
  if (status < 0 && !late) return;
  if (status < 0) {
    log::warning("node {}: its engine does not report how it ended; assuming that it was killed", infos_[node].name);
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    state.engine.kill();
    status = 128 + SIGKILL;
  }
  // Unlike main_ended(), this does not look for a process that leads the node from now on: the processes left in the
  // container's namespaces were killed with its init process.
  EndInfo end{0, status > 128 && status <= 128 + 64, status > 128 && status <= 128 + 64 ? status - 128 : status, false};
  {
    std::lock_guard lock(mutex_);
    end.pid = state.ended_pid;
    state.engine_due_ns = 0;
  }
  finish_end(node, end);
}

bool Cluster::adopt_leader(std::size_t node) {
  NodeState& state = *states_[node];
  if (state.config->attach) return false;
  // A process that ends during this check may have left another one that was not in the list, so the check is repeated.
  // As long as there are processes, one of them is the leader.
  for (int attempt = 0; attempt < kMostLooks; ++attempt) {
    const std::vector<pid_t> here = cgroup::processes(infos_[node].cgroup);
    if (here.empty()) return false;
    const pid_t leader = leading_process(here);
    if (leader == 0) continue;
    Fd pidfd = kernel::open_pidfd(leader);
    if (!pidfd || kernel::cgroup_folder_of(leader) != infos_[node].cgroup) continue;
    write_pid_file(infos_[node].pid_file, leader);
    std::lock_guard lock(mutex_);
    state.pid = leader;
    state.adopted = true;
    state.pidfd = std::move(pidfd);
    watch(kPidfd, node, state.pidfd.get(), EPOLLIN);
    changed_.notify_all();
    return true;
  }
  return false;
}

void Cluster::cgroup_changed(std::size_t node) {
  // Reading the file rearms the notification.
  char buffer[256];
  [[maybe_unused]] const ssize_t n = ::pread(states_[node]->events.get(), buffer, sizeof buffer, 0);
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Cluster::finish_end(std::size_t node, EndInfo end) {
  NodeState& state = *states_[node];
  // The id in the pid file may soon belong to another process, so the file is removed while the node is down.
  ::unlink(infos_[node].pid_file.c_str());
  end_others(node);
  {
    std::lock_guard lock(mutex_);
    end.planned = state.planned || stopping_ || (state.with && states_[*state.with]->planned);
    state.pid = 0;
    state.ending = false;
    state.end_note = state.last_end = describe(end);
    state.end_status = end.signalled ? 128 + end.code : end.code;
    const auto& policy = state.config->restart;
    if (!end.planned && policy && state.restarts < policy->max && !(policy->only_failures && state.end_status == 0))
      state.restart_at_ns = monotonic_ns() + policy->delay_ns;
    // As in Compose, the node restarts together with the owner of its namespace.
    if (state.with && !state.planned && !stopping_) state.restart_at_ns = monotonic_ns();
    if (state.config->attach && !stopping_) state.attach_at_ns = monotonic_ns() + kAttachPoll;
    // Zero would mean that no restart is scheduled.
    if (state.restart_at_ns != 0) state.restart_at_ns = std::max<std::int64_t>(state.restart_at_ns, 1);
  }
  log::debug("node {} {}{}", infos_[node].name, describe(end), end.planned ? " (planned)" : "");
  if (observer_ != nullptr) observer_->on_end(node, end);
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

}  // namespace rose::deploy
