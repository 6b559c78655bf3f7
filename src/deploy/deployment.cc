#include "deploy/deployment.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "deploy/cgroup.h"
#include "deploy/command.h"
#include "deploy/control.h"
#include "deploy/environment.h"
#include "deploy/identity.h"
#include "deploy/launch.h"
#include "deploy/network.h"
#include "deploy/processes.h"
#include "deploy/ready.h"

namespace rose::deploy {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kStopGrace = 2 * kSecond;              // at the end of a run
constexpr std::int64_t kCancelledGrace = kSecond / 2;         // after Ctrl-C
constexpr std::int64_t kPlannedStopGrace = 10 * kSecond;      // rose node stop
constexpr std::int64_t kKillTimeout = 10 * kSecond;
constexpr std::int64_t kSetupTimeout = 600 * kSecond;
constexpr std::int64_t kTeardownTimeout = 120 * kSecond;
constexpr std::int64_t kTeardownAfterCancel = 30 * kSecond;  // it undoes what setup did, but Ctrl-C must end rose
constexpr std::int64_t kAttachTimeout = 10 * kSecond;
constexpr std::int64_t kFirstPoll = 2 * kMillisecond;
constexpr std::int64_t kPoll = 20 * kMillisecond;
constexpr std::int64_t kAttachPoll = 100 * kMillisecond;
constexpr std::int64_t kFrozenPoll = 50 * kMillisecond;

struct NodeState {
  const config::Node* config = nullptr;
  std::optional<Credentials> user;
  LaunchSpec spec;  // all but file and notified_syscalls, which are looked up late
  Fd events;        // its cgroup.events; the monitor's

  // One `rose node` request at a time.
  std::mutex operation;

  // Guarded by the deployment's mutex.
  pid_t pid = 0;                   // 0: down
  Fd pidfd;                        // invalid for an instant while it starts
  bool adopted = false;            // main process is not rose's child (a daemon's, an attached one): no exit status
  int starts = 0;
  int restarts = 0;                // by the restart policy
  std::int64_t restart_at_ns = 0;  // 0: none is due
  bool planned = false;            // ends are planned, and not followed by a restart
  bool paused = false;
  bool main_paused = false;
  std::int64_t attach_at_ns = 0;   // when to look for an attached one again
  std::optional<Error> failure;    // it could not be started
  std::string end_note;            // how it ended last; "" while it runs or is about to
  std::vector<LogStart> logs;      // of the current incarnation
};

std::string describe(const EndInfo& end) {
  if (!end.signalled) return fmt::format("exited with status {}", end.code);
  return fmt::format("was killed by signal {} ({})", end.code, ::strsignal(end.code));
}

std::uint64_t file_size(const std::filesystem::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

// Beside and renamed, so that a reader never meets half a number; not synced, it is worth nothing after a crash.
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

bool may_search(const struct stat& info, const Credentials& user) {
  if (user.uid == 0) return true;
  if (info.st_uid == user.uid) return (info.st_mode & S_IXUSR) != 0;
  const bool member = info.st_gid == user.gid ||
                      std::find(user.groups.begin(), user.groups.end(), info.st_gid) != user.groups.end();
  return (info.st_mode & (member ? S_IXGRP : S_IXOTH)) != 0;
}

class Cluster final : public Deployment {
 public:
  Cluster(const config::Config& config, std::filesystem::path run_dir, int run_number, NodeObserver* observer,
          Identity identity)
      : config_(config), observer_(observer), run_dir_(std::move(run_dir)), identity_(std::move(identity)) {
    facts_ = {run_dir_, config_.directory, run_number, config_.deployment.network == config::Network::host};
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  ~Cluster() override { stop(); }

  Result<void> make();

  const std::vector<NodeInfo>& nodes() const override { return infos_; }
  const std::filesystem::path& run_dir() const override { return run_dir_; }
  const std::string& client_netns() const override { return client_netns_; }
  const std::string& id() const override { return identity_.id(); }
  int node_netns_fd(std::size_t node) const override { return network_ ? network_->node_fd(node) : -1; }
  int client_netns_fd() const override { return network_ ? network_->client_fd() : -1; }

  Result<void> start() override;
  Result<std::unique_ptr<RunningCommand>> spawn(const config::Command& command, std::string_view log_name,
                                                std::int64_t timeout_ns) override {
    ROSE_CHECK(cancel::check());
    return spawn_as(command, log_name, {.timeout_ns = timeout_ns}, nullptr);
  }

  pid_t main_pid(std::size_t node) const override {
    std::lock_guard lock(mutex_);
    return states_[node]->pid;
  }
  std::vector<pid_t> processes(std::size_t node) const override;
  int starts(std::size_t node) const override {
    std::lock_guard lock(mutex_);
    return states_[node]->starts;
  }
  Result<void> signal(std::size_t node, Scope scope, int signal) override;
  Result<void> pause(std::size_t node, Scope scope) override;
  Result<void> resume(std::size_t node, Scope scope) override;
  void stop() override;

 private:
  // Which descriptor an epoll event is about.
  enum Source : std::uint64_t { kWake, kPidfd, kEvents };
  static std::uint64_t tag(Source source, std::size_t node) { return (std::uint64_t{source} << 32) | node; }

  Result<void> make_folders();
  Result<void> make_nodes();
  Result<void> check_commands();
  Variables command_variables(const NodeInfo* node) const;
  Result<std::unique_ptr<RunningCommand>> spawn_as(const config::Command& command, std::string_view log_name,
                                                   const CommandLimits& limits, const NodeInfo* node);
  Result<void> run_setup();
  void run_teardown();

  // The monitor thread: everything that starts nodes, sees them end or calls the observer.
  void monitor();
  void on_monitor(const std::function<void()>& task);
  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
  }
  void watch(Source source, std::size_t node, int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = tag(source, node);
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  int next_timeout_ms() const;
  void run_timers();
  Result<void> launch(std::size_t node);
  Result<void> attach(std::size_t node);
  void main_ended(std::size_t node);
  void cgroup_changed(std::size_t node);
  bool adopt_leader(std::size_t node);
  void finish_end(std::size_t node, EndInfo end);
  void tell_planned(std::size_t node, bool planned) {
    if (observer_ != nullptr) observer_->on_planned(node, planned);
  }

  Result<std::unique_ptr<Probe>> make_probe(std::size_t node);
  Result<void> await_ready(const std::vector<std::size_t>& which);
  Error not_ready(std::size_t node, std::string message) const;

  Result<std::string> request(const std::string& action, const std::string& name);
  Result<void> stop_node(std::size_t node, int signal);
  Result<void> start_node(std::size_t node);
  std::string status(std::size_t node) const;
  bool wait_down(std::size_t node, std::int64_t timeout_ns);
  void terminate(std::size_t node) const;
  void end_nodes();
  void resume_attached();

  const config::Config config_;
  NodeObserver* const observer_;
  const std::filesystem::path run_dir_;
  RunFacts facts_;
  Identity identity_;
  std::filesystem::path cgroup_;
  std::string client_netns_;
  std::unique_ptr<Network> network_;
  std::vector<NodeInfo> infos_;
  std::vector<std::unique_ptr<NodeState>> states_;
  std::atomic<unsigned> commands_{0};
  std::atomic<bool> stopping_{false};
  bool started_ = false;
  bool stopped_ = false;
  std::mutex stop_mutex_;

  mutable std::mutex mutex_;  // the states, the tasks
  std::condition_variable changed_;
  Fd epoll_;
  Fd wake_;
  std::deque<std::function<void()>> tasks_;
  bool quit_ = false;
  std::thread monitor_;
  std::unique_ptr<ControlServer> control_;
};

// --- Making ---

Result<void> Cluster::make() {
  const bool netns = config_.deployment.network == config::Network::netns;
  ROSE_CHECK(make_folders());

  ROSE_TRY(const std::filesystem::path base, cgroup::base());
  cgroup_ = base / identity_.id();
  ROSE_CHECK(identity_.note("run_dir", run_dir_.string()));
  ROSE_CHECK(identity_.note("cgroup", cgroup_.string()));
  ROSE_CHECK(cgroup::make(cgroup_));
  // Nodes' folders begin with "rose-", so none is called like this one.
  ROSE_CHECK(cgroup::make(cgroup_ / "rose.commands"));
  for (NodeInfo& info : infos_) {
    const std::filesystem::path own = cgroup_ / ("rose-" + info.name);
    ROSE_CHECK(cgroup::make(own));
    const auto& attach = states_[info.index]->config->attach;
    if (attach && !attach->pid_file) continue;  // theirs, found later
    info.cgroup = own;
    info.cgroup_id = cgroup::id(own);
  }

  if (netns) {
    std::vector<Network::Member> members;
    for (const NodeInfo& info : infos_) members.push_back({info.netns, info.bridge_port, info.ip});
    ROSE_TRY(network_, Network::create(client_netns_, config::client_address(config_.deployment),
                                       config::prefix_length(config_.deployment), members));
  }
  ROSE_CHECK(make_nodes());
  if (!config_.deployment.setup) ROSE_CHECK(check_commands());

  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !wake_) return fail_errno(ErrorKind::environment, "cannot watch processes", errno);
  watch(kWake, 0, wake_.get(), EPOLLIN);
  monitor_ = std::thread([this] { monitor(); });
  return {};
}

Result<void> Cluster::make_folders() {
  if (config_.nodes.empty()) return fail(ErrorKind::input, "the configuration has no [[node]]");
  if (!std::filesystem::is_directory(run_dir_))
    return fail(ErrorKind::input, fmt::format("run directory {} does not exist", run_dir_.string()));
  const bool netns = config_.deployment.network == config::Network::netns;
  const std::vector<std::string> names = config_.node_names();
  const std::vector<std::string> ports = port_names(names);
  if (netns) {
    client_netns_ = identity_.id() + "-client";
    // A node may be called "client".
    while (std::find(names.begin(), names.end(), client_netns_.substr(identity_.id().size() + 1)) != names.end())
      client_netns_ += "s";
  }
  for (std::size_t i = 0; i < config_.nodes.size(); ++i) {
    const config::Node& node = config_.nodes[i];
    if (netns && node.ip.empty())
      return fail(ErrorKind::input, fmt::format("node {} has no address", node.name),
                  fmt::format("give it an ip in {}", config_.deployment.subnet));
    if (node.command.empty() && !node.attach)
      return fail(ErrorKind::input, fmt::format("node {} has neither command nor attach", node.name));
    if (node.attach && node.ready && node.ready->log)
      return fail(ErrorKind::input, fmt::format("node {}: ready.log needs a node that rose starts", node.name),
                  "use ready = { tcp = ... } or { command = [...] } with attach");
    NodeInfo info;
    info.name = node.name;
    info.index = i;
    info.ip = node.ip;
    info.dir = run_dir_ / node.name;
    info.pid_file = run_dir_ / fmt::format(".{}.pid", node.name);  // node names do not begin with a dot
    if (netns) {
      info.netns = fmt::format("{}-{}", identity_.id(), node.name);
      info.bridge_port = ports[i];
    }
    auto state = std::make_unique<NodeState>();
    state->config = &node;
    if (!node.user.empty()) {
      auto user = find_user(node.user);
      if (!user) return Unexpected(std::move(user).error().in("node " + node.name));
      state->user = std::move(*user);
    }
    if (::mkdir(info.dir.c_str(), 0755) != 0)
      return fail_errno(ErrorKind::input, fmt::format("cannot make {}", info.dir.string()), errno);
    if (state->user) {
      if (::chown(info.dir.c_str(), state->user->uid, state->user->gid) != 0)
        return fail_errno(ErrorKind::environment, fmt::format("cannot give {} to {}", info.dir.string(), node.user),
                          errno);
      // Its folder is of no use to it unless it can be reached.
      struct stat above {};
      if (::stat(run_dir_.c_str(), &above) == 0 && !may_search(above, *state->user))
        ::chmod(run_dir_.c_str(), (above.st_mode & 07777) | 0111);
      for (std::filesystem::path folder = run_dir_.parent_path(); folder != folder.root_path();
           folder = folder.parent_path())
        if (::stat(folder.c_str(), &above) == 0 && !may_search(above, *state->user))
          log::warning("node {}: user {} cannot reach its folder {} by path, {} is closed to it", node.name, node.user,
                       info.dir.string(), folder.string());
    }
    infos_.push_back(std::move(info));
    states_.push_back(std::move(state));
  }
  return {};
}

Result<void> Cluster::make_nodes() {
  for (const NodeInfo& info : infos_) {
    NodeState& state = *states_[info.index];
    if (state.config->attach) continue;
    LaunchSpec& spec = state.spec;
    spec.what = "node " + info.name;
    spec.argv = expand(state.config->command, facts_, infos_, &info);
    spec.env = inherited();
    add_rose_variables(spec.env, facts_, infos_, &info);
    for (const auto& [name, value] : state.config->env) spec.env[name] = expand(value, facts_, infos_, &info);
    spec.directory = info.dir.string();
    spec.stdout_log = (info.dir / "stdout.log").string();
    spec.stderr_log = (info.dir / "stderr.log").string();
    spec.cgroup = info.cgroup.string();
    spec.netns = node_netns_fd(info.index);
    spec.user = state.user ? &*state.user : nullptr;
    state.events = Fd(::open((info.cgroup / "cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
    if (!state.events)
      return fail_errno(ErrorKind::environment, fmt::format("cannot watch cgroup {}", info.cgroup.string()), errno);
  }
  return {};
}

// Before anything starts where possible: a setup command may still build what is run.
Result<void> Cluster::check_commands() {
  for (const NodeInfo& info : infos_) {
    NodeState& state = *states_[info.index];
    if (state.config->attach) continue;
    ROSE_TRY(state.spec.file, find_program(state.spec.argv.front(), config_.directory, state.spec.env, state.spec.what));
    // Programs look for themselves by argv[0], and the node's folder is not where the path starts.
    if (state.spec.argv.front().find('/') != std::string::npos) state.spec.argv.front() = state.spec.file;
  }
  const Variables variables = command_variables(nullptr);
  const auto check = [&](const config::Command& command, std::string_view what) -> Result<void> {
    const config::Command expanded = expand(command, facts_, infos_, nullptr);
    ROSE_TRY([[maybe_unused]] const std::string found,
             find_program(expanded.front(), config_.directory, variables, what));
    return {};
  };
  if (config_.workload) ROSE_CHECK(check(config_.workload->command, "workload"));
  if (config_.oracle) ROSE_CHECK(check(config_.oracle->command, "oracle"));
  if (config_.deployment.teardown) ROSE_CHECK(check(*config_.deployment.teardown, "teardown"));
  return {};
}

// --- Commands beside the nodes ---

Variables Cluster::command_variables(const NodeInfo* node) const {
  Variables variables = inherited();
  add_rose_variables(variables, facts_, infos_, node);
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (self.filename() == "rose") offer_program(variables, self.parent_path(), "rose");
  return variables;
}

Result<std::unique_ptr<RunningCommand>> Cluster::spawn_as(const config::Command& command, std::string_view log_name,
                                                          const CommandLimits& limits, const NodeInfo* node) {
  if (command.empty()) return fail(ErrorKind::input, fmt::format("{}: the command is empty", log_name));
  LaunchSpec spec;
  spec.what = log_name;
  spec.argv = expand(command, facts_, infos_, node);
  spec.env = command_variables(node);
  ROSE_TRY(spec.file, find_program(spec.argv.front(), config_.directory, spec.env, log_name));
  if (spec.argv.front().find('/') != std::string::npos) spec.argv.front() = spec.file;
  spec.directory = run_dir_.string();
  spec.stdout_log = spec.stderr_log = (run_dir_ / fmt::format("{}.log", log_name)).string();
  spec.cgroup = (cgroup_ / "rose.commands" / fmt::format("rose-{}", ++commands_)).string();
  spec.netns = client_netns_fd();
  return run_beside(spec, limits);
}

Result<void> Cluster::run_setup() {
  if (!config_.deployment.setup) return {};
  ROSE_TRY(const std::unique_ptr<RunningCommand> setup,
           spawn_as(*config_.deployment.setup, "setup", {.timeout_ns = kSetupTimeout, .leave_descendants = true},
                    nullptr));
  const CommandResult result = setup->wait();
  if (result.cancelled) return fail(ErrorKind::cancelled, "interrupted during setup");
  if (!result.ok()) {
    const std::string last = tail(run_dir_ / "setup.log", 10);
    return fail(ErrorKind::inconclusive, fmt::format("setup {}", result.note),
                last.empty() ? "" : fmt::format("last lines of setup.log:\n{}", last));
  }
  return {};
}

void Cluster::run_teardown() {
  if (!config_.deployment.teardown) return;
  auto teardown = spawn_as(*config_.deployment.teardown, "teardown",
                           {.timeout_ns = kTeardownTimeout, .after_cancel_ns = kTeardownAfterCancel}, nullptr);
  if (!teardown) {
    log::warning(teardown.error().message);
    return;
  }
  if (const CommandResult result = (*teardown)->wait(); !result.ok())
    log::warning("teardown {} (see {})", result.note, (run_dir_ / "teardown.log").string());
}

// --- The monitor ---

void Cluster::on_monitor(const std::function<void()>& task) {
  if (std::this_thread::get_id() == monitor_.get_id()) {
    task();
    return;
  }
  std::unique_lock lock(mutex_);
  if (quit_) return;  // nobody is left to run it; whoever asks finds the run ending
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
    for (const std::int64_t at : {state->restart_at_ns, state->attach_at_ns})
      if (at != 0 && (next < 0 || at < next)) next = at;
  if (next < 0 || stopping_) return -1;
  // Rounded up: woken early it would only spin.
  return static_cast<int>(std::clamp<std::int64_t>((next - monotonic_ns() + kMillisecond - 1) / kMillisecond, 0, 60'000));
}

void Cluster::run_timers() {
  if (stopping_) return;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    NodeState& state = *states_[i];
    bool restart = false;
    bool look = false;
    {
      std::lock_guard lock(mutex_);
      const std::int64_t now = monotonic_ns();
      restart = state.restart_at_ns != 0 && now >= state.restart_at_ns;
      // Not into a frozen folder: it would wait there, half started.
      if (restart && cgroup::frozen(infos_[i].cgroup)) {
        state.restart_at_ns = now + kFrozenPoll;
        restart = false;
      }
      if (restart) {
        state.restart_at_ns = 0;
        state.end_note.clear();  // on its way up again, not down for good
        ++state.restarts;
      }
      look = state.attach_at_ns != 0 && now >= state.attach_at_ns;
      if (look) state.attach_at_ns = 0;
    }
    if (restart)
      if (auto launched = launch(i); !launched && !stopping_)
        log::warning("restart of {}", launched.error().message);
    if (look && !attach(i)) {
      std::lock_guard lock(mutex_);
      // Units and containers are asked for with a program each time.
      const config::Attach& target = *state.config->attach;
      state.attach_at_ns = monotonic_ns() + (target.unit || target.container ? kSecond : kAttachPoll);
    }
  }
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

Result<void> Cluster::launch(std::size_t node) {
  NodeState& state = *states_[node];
  const NodeInfo& info = infos_[node];
  const auto failed = [&](Error error) -> Result<void> {
    std::lock_guard lock(mutex_);
    state.failure = error;
    changed_.notify_all();
    return Unexpected(std::move(error));
  };
  if (stopping_) return failed({ErrorKind::cancelled, "the run is ending", ""});
  // What an earlier incarnation left would take its ports.
  if (cgroup::populated(info.cgroup)) {
    if (auto killed = cgroup::kill(info.cgroup); !killed) return failed(std::move(killed).error());
    if (!cgroup::wait_empty(info.cgroup, kKillTimeout))
      return failed({ErrorKind::inconclusive, fmt::format("node {}: old processes do not die", info.name), ""});
  }
  {
    std::lock_guard lock(mutex_);
    state.failure.reset();
    state.end_note.clear();
    state.restart_at_ns = 0;
    state.logs = {{state.spec.stdout_log, file_size(state.spec.stdout_log)},
                  {state.spec.stderr_log, file_size(state.spec.stderr_log)}};
  }
  state.spec.notified_syscalls = observer_ != nullptr ? observer_->notified_syscalls(node) : std::vector<int>{};
  auto prepared = Launch::prepare(state.spec);
  if (!prepared) return failed(std::move(prepared).error());
  const pid_t pid = prepared->pid();
  {
    std::lock_guard lock(mutex_);
    state.pid = pid;
    state.adopted = false;
    ++state.starts;
  }
  write_pid_file(info.pid_file, pid);
  if (observer_ != nullptr) {
    if (Fd listener = prepared->take_listener()) observer_->on_listener(node, pid, std::move(listener));
    observer_->on_start(node, pid);
  }
  auto running = prepared->release();
  if (!running) {
    Error error = std::move(running).error();
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

// Finds where the system that setup started is. A process that setup left in its own cgroup gets
// the node's: only so are nodes started by one setup told apart.
Result<void> Cluster::attach(std::size_t node) {
  NodeState& state = *states_[node];
  NodeInfo& info = infos_[node];
  ROSE_TRY(Attached found, find_attached(*state.config->attach, run_dir_)
                               .map_error([&](Error error) { return std::move(error).in("node " + info.name); }));
  const std::filesystem::path own = cgroup_ / ("rose-" + info.name);
  if (found.cgroup.string().starts_with(cgroup_.string() + "/") && found.cgroup != own) {
    // Twice: what was forked meanwhile is a descendant too.
    for (int round = 0; round < 2; ++round)
      for (const pid_t pid : with_descendants(found.pid))
        if (cgroup::of_process(pid) != own) (void)write_control(own / "cgroup.procs", std::to_string(pid));
    found.cgroup = own;
  }
  Fd pidfd = open_pidfd(found.pid);
  if (!pidfd)
    return fail(ErrorKind::inconclusive, fmt::format("node {}: process {} has ended", info.name, found.pid));
  {
    std::lock_guard lock(mutex_);
    info.cgroup = found.cgroup;
    info.cgroup_id = found.cgroup.empty() ? 0 : cgroup::id(found.cgroup);
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

void Cluster::main_ended(std::size_t node) {
  NodeState& state = *states_[node];
  EndInfo end;
  bool child = false;
  bool orderly = false;
  {
    std::lock_guard lock(mutex_);
    if (!state.pidfd) return;  // an event that was already on its way
    end.pid = state.pid;
    child = !state.adopted;
    if (child) {
      siginfo_t info{};
      if (::waitid(P_PIDFD, static_cast<id_t>(state.pidfd.get()), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
        return;
      end.signalled = info.si_code != CLD_EXITED;
      end.code = info.si_status;
    }
    // Its number may belong to another from here on.
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, state.pidfd.get(), nullptr);
    state.pidfd.reset();
    state.pid = 0;
    orderly = !end.signalled && end.code == 0 && !state.planned && !stopping_;
  }
  // A main process that leaves others behind in good order was only the door of a daemon.
  if (orderly && adopt_leader(node)) return;
  finish_end(node, end);
}

bool Cluster::adopt_leader(std::size_t node) {
  NodeState& state = *states_[node];
  if (state.config->attach) return false;
  // One that ends between the list and the pidfd leaves the next one leading.
  for (int attempt = 0; attempt < 16; ++attempt) {
    const pid_t leader = leading_process(cgroup::processes(infos_[node].cgroup));
    if (leader == 0) return false;
    Fd pidfd = open_pidfd(leader);
    if (!pidfd || cgroup::of_process(leader) != infos_[node].cgroup) continue;
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
  // Reading rearms the notification.
  char buffer[256];
  [[maybe_unused]] const ssize_t n = ::pread(states_[node]->events.get(), buffer, sizeof buffer, 0);
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Cluster::finish_end(std::size_t node, EndInfo end) {
  NodeState& state = *states_[node];
  // A pid file of a node that is down would name a stranger before long.
  ::unlink(infos_[node].pid_file.c_str());
  {
    std::lock_guard lock(mutex_);
    end.planned = state.planned || stopping_;
    state.pid = 0;
    state.end_note = describe(end);
    const auto& policy = state.config->restart;
    if (!end.planned && policy && state.restarts < policy->max) state.restart_at_ns = monotonic_ns() + policy->delay_ns;
    if (state.config->attach && !stopping_) state.attach_at_ns = monotonic_ns() + kAttachPoll;
    // Zero means none.
    if (state.restart_at_ns != 0) state.restart_at_ns = std::max<std::int64_t>(state.restart_at_ns, 1);
  }
  log::debug("node {} {}{}", infos_[node].name, describe(end), end.planned ? " (planned)" : "");
  if (observer_ != nullptr) observer_->on_end(node, end);
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

// --- Start and readiness ---

Result<void> Cluster::start() {
  ROSE_ASSERT(!started_);
  ROSE_CHECK(cancel::check());
  started_ = true;
  ROSE_TRY(control_, ControlServer::create(run_dir_, [this](const std::string& action, const std::string& node) {
             return request(action, node);
           }));
  if (config_.deployment.setup) {
    ROSE_CHECK(run_setup());
    ROSE_CHECK(check_commands());
  }
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    ROSE_CHECK(cancel::check());
    all.push_back(i);
    if (states_[i]->config->attach) {
      std::lock_guard lock(mutex_);
      states_[i]->attach_at_ns = monotonic_ns();
      wake();
      continue;
    }
    Result<void> launched;
    on_monitor([&] { launched = launch(i); });
    ROSE_CHECK(launched);
  }
  return await_ready(all);
}

Result<std::unique_ptr<Probe>> Cluster::make_probe(std::size_t node) {
  const NodeInfo& info = infos_[node];
  const config::Ready& ready = *states_[node]->config->ready;
  if (ready.tcp) return tcp_probe(client_netns_fd(), reachable_ip(info), *ready.tcp);
  if (ready.log) {
    std::unique_lock lock(mutex_);
    std::vector<LogStart> logs = states_[node]->logs;
    lock.unlock();
    return log_probe(*ready.log, std::move(logs)).map_error([&](Error error) {
      return std::move(error).in(fmt::format("node {}: ready.log", info.name));
    });
  }
  if (!ready.command) return fail(ErrorKind::input, fmt::format("node {}: ready names no way to tell", info.name));
  return command_probe(*ready.command, [this, &info, &ready] {
    return spawn_as(*ready.command, "ready-" + info.name, {.timeout_ns = ready.timeout_ns}, &info);
  });
}

Error Cluster::not_ready(std::size_t node, std::string message) const {
  const NodeInfo& info = infos_[node];
  std::string log = "stderr.log";
  std::string last = tail(info.dir / log, 10);
  if (last.empty()) last = tail(info.dir / (log = "stdout.log"), 10);
  return {ErrorKind::inconclusive, fmt::format("node {} {}", info.name, message),
          last.empty() ? "it printed nothing" : fmt::format("last lines of {}/{}:\n{}", info.name, log, last)};
}

Result<void> Cluster::await_ready(const std::vector<std::size_t>& which) {
  struct Waiting {
    std::size_t node;
    std::int64_t until_ns;
    int incarnation = 0;
    std::unique_ptr<Probe> probe;
  };
  std::vector<Waiting> waiting;
  for (const std::size_t node : which) {
    const auto& ready = states_[node]->config->ready;
    waiting.push_back({node, monotonic_ns() + (ready ? ready->timeout_ns : kAttachTimeout), 0, nullptr});
  }
  std::int64_t nap = kFirstPoll;
  for (;;) {
    for (auto it = waiting.begin(); it != waiting.end();) {
      const std::size_t node = it->node;
      const NodeState& state = *states_[node];
      pid_t pid = 0;
      int incarnation = 0;
      std::string for_good;  // how it ended, when nothing will start it again
      {
        std::lock_guard lock(mutex_);
        if (state.failure) return Unexpected(*state.failure);
        pid = state.pid;
        incarnation = state.starts;
        if (pid == 0 && state.restart_at_ns == 0 && !state.config->attach) for_good = state.end_note;
      }
      bool ready = false;
      if (!state.config->ready) {
        // Started is all there is to know, even when it ended since.
        ready = incarnation > 0;
      } else if (pid != 0) {
        if (it->incarnation != incarnation) {
          ROSE_TRY(it->probe, make_probe(node));
          it->incarnation = incarnation;
        }
        ROSE_TRY(const bool answer, it->probe->ready());
        // The answer of one that died while it was asked says nothing about the next one.
        ready = answer && main_pid(node) != 0 && starts(node) == incarnation;
      }
      if (ready) {
        it = waiting.erase(it);
        continue;
      }
      if (!for_good.empty() && state.config->ready)
        return Unexpected(not_ready(node, for_good + " before it was ready"));
      if (monotonic_ns() >= it->until_ns) {
        if (incarnation == 0) {
          auto found = find_attached(*state.config->attach, run_dir_);
          return Unexpected(found ? not_ready(node, "could not be attached to")
                                  : std::move(found).error().in("node " + infos_[node].name));
        }
        const std::int64_t timeout_ns = state.config->ready ? state.config->ready->timeout_ns : kAttachTimeout;
        return Unexpected(not_ready(node, fmt::format("was not ready within {}: {}", format_duration(timeout_ns),
                                                      it->probe ? it->probe->missing() : "it was down")));
      }
      ++it;
    }
    if (waiting.empty()) return {};
    if (stopping_) return fail(ErrorKind::cancelled, "the run is ending");
    cancel::sleep(nap);
    ROSE_CHECK(cancel::check());
    nap = std::min(nap * 2, kPoll);
  }
}

// --- Signals and pauses ---

std::vector<pid_t> Cluster::processes(std::size_t node) const {
  std::unique_lock lock(mutex_);
  const std::filesystem::path folder = infos_[node].cgroup;
  const pid_t pid = states_[node]->pid;
  lock.unlock();
  if (!folder.empty()) return cgroup::processes(folder);
  return pid == 0 ? std::vector<pid_t>{} : with_descendants(pid);
}

Result<void> Cluster::signal(std::size_t node, Scope scope, int number) {
  const NodeState& state = *states_[node];
  std::unique_lock lock(mutex_);
  const std::filesystem::path folder = infos_[node].cgroup;
  const bool down = state.pid == 0;
  if (scope == Scope::main && !down) {
    // Under the lock: the number is not reaped meanwhile.
    const bool sent = state.pidfd ? pidfd_signal(state.pidfd.get(), number) : ::kill(state.pid, number) == 0;
    if (!sent && errno != ESRCH)
      return fail_errno(ErrorKind::environment, fmt::format("cannot signal node {}", infos_[node].name), errno);
    return {};
  }
  lock.unlock();
  if (scope == Scope::main || (down && (folder.empty() || !cgroup::populated(folder))))
    return fail(ErrorKind::inconclusive, fmt::format("node {} is not running", infos_[node].name));
  if (folder.empty()) {
    for (const pid_t pid : processes(node)) ::kill(pid, number);
  } else if (number == SIGKILL) {
    ROSE_CHECK(cgroup::kill(folder));
  } else {
    cgroup::signal(folder, number);
  }
  return {};
}

Result<void> Cluster::pause(std::size_t node, Scope scope) {
  NodeState& state = *states_[node];
  std::unique_lock lock(mutex_);
  const std::filesystem::path folder = infos_[node].cgroup;
  const bool attached = state.config->attach.has_value();
  const pid_t pid = state.pid;
  lock.unlock();
  if (scope == Scope::all && !folder.empty()) {
    // Noted first: an attached system that stays frozen after rose is killed must be found.
    if (attached) ROSE_CHECK(identity_.note("frozen", folder.string()));
    {
      std::lock_guard again(mutex_);
      state.paused = true;
    }
    return cgroup::freeze(folder, true);
  }
  if (attached)
    for (const pid_t each : scope == Scope::all ? processes(node) : std::vector<pid_t>{pid})
      if (const auto stat = process_stat(each))
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
    ROSE_CHECK(cgroup::freeze(folder, false));
    if (state.config->attach) ROSE_CHECK(identity_.note("thawed", folder.string()));
    wake();  // a restart may have waited for this
    return {};
  }
  if (down) return {};  // it died paused: nothing to wake
  return signal(node, scope, SIGCONT);
}

// --- rose node ---

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
    if (states_[node]->pid == 0 && !cgroup::populated(infos_[node].cgroup)) return true;
    if (monotonic_ns() >= until || stopping_) return false;
    changed_.wait_for(lock, std::chrono::milliseconds(10));
  }
}

void Cluster::terminate(std::size_t node) const {
  cgroup::signal(infos_[node].cgroup, SIGTERM);
  // A stopped process acts on SIGTERM only once it runs again.
  cgroup::signal(infos_[node].cgroup, SIGCONT);
}

Result<void> Cluster::stop_node(std::size_t node, int number) {
  NodeState& state = *states_[node];
  Result<void> sent;
  on_monitor([&] {
    bool tell = false;
    {
      std::lock_guard lock(mutex_);
      tell = !state.planned;
      state.planned = true;
      state.restart_at_ns = 0;
    }
    if (tell) tell_planned(node, true);
    if (number == SIGKILL)
      sent = cgroup::kill(infos_[node].cgroup);
    else
      terminate(node);
  });
  ROSE_CHECK(sent);
  if (wait_down(node, number == SIGKILL ? kKillTimeout : kPlannedStopGrace)) return {};
  if (stopping_) return fail(ErrorKind::cancelled, "the run is ending");
  ROSE_CHECK(cgroup::kill(infos_[node].cgroup));
  if (wait_down(node, kKillTimeout)) return {};
  return fail(ErrorKind::inconclusive, fmt::format("node {} does not end", infos_[node].name));
}

Result<void> Cluster::start_node(std::size_t node) {
  NodeState& state = *states_[node];
  Result<void> launched;
  on_monitor([&] {
    {
      std::lock_guard lock(mutex_);
      if (state.pid != 0) return;  // the restart policy was faster
    }
    launched = launch(node);
    bool tell = false;
    if (launched) {
      std::lock_guard lock(mutex_);
      tell = state.planned;
      state.planned = false;
    }
    if (tell) tell_planned(node, false);
  });
  ROSE_CHECK(launched);
  return await_ready({node});
}

Result<std::string> Cluster::request(const std::string& action, const std::string& name) {
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
                "use what its setup command used");
  std::lock_guard operation(state.operation);
  if (stopping_) return fail(ErrorKind::cancelled, "the run is ending");
  if (state.spec.file.empty())
    return fail(ErrorKind::inconclusive, fmt::format("node {} has not been started yet", name),
                "nodes start after the setup command");
  if (action != "start") ROSE_CHECK(stop_node(node, action == "kill" ? SIGKILL : SIGTERM));
  if (action == "start" || action == "restart") ROSE_CHECK(start_node(node));
  return status(node);
}

// --- Stop ---

void Cluster::resume_attached() {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (!states_[i]->config->attach) continue;
    std::unique_lock lock(mutex_);
    const bool all = states_[i]->paused;
    const bool main = states_[i]->main_paused;
    lock.unlock();
    for (const Scope scope : {Scope::all, Scope::main})
      if (scope == Scope::all ? all : main)
        if (auto resumed = resume(i, scope); !resumed) log::warning(resumed.error().message);
  }
}

void Cluster::end_nodes() {
  std::vector<std::size_t> own;
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (!states_[i]->config->attach) own.push_back(i);
  // Thawed from here and not by the monitor, which may itself wait for a frozen node to start.
  for (const std::size_t i : own)
    if (cgroup::frozen(infos_[i].cgroup))
      if (auto thawed = cgroup::freeze(infos_[i].cgroup, false); !thawed) log::warning(thawed.error().message);
  resume_attached();
  on_monitor([&] {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      {
        std::lock_guard lock(mutex_);
        if (std::exchange(states_[i]->planned, true)) continue;
      }
      tell_planned(i, true);
    }
  });
  for (const std::size_t i : own) terminate(i);
  const std::int64_t until = monotonic_ns() + (cancel::requested() ? kCancelledGrace : kStopGrace);
  for (const std::size_t i : own)
    (void)cgroup::wait_empty(infos_[i].cgroup, std::max<std::int64_t>(until - monotonic_ns(), 0));
  for (const std::size_t i : own)
    if (cgroup::populated(infos_[i].cgroup))
      if (auto killed = cgroup::kill(infos_[i].cgroup); !killed) log::warning(killed.error().message);
  for (const std::size_t i : own)
    if (!cgroup::wait_empty(infos_[i].cgroup, kKillTimeout))
      log::warning("node {} does not end: a process of it is stuck in the kernel", infos_[i].name);
  {
    // Until the monitor has seen and told all ends.
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(5), [&] {
      return std::all_of(own.begin(), own.end(), [&](std::size_t i) { return states_[i]->pid == 0; });
    });
  }
  on_monitor([&] {
    for (std::size_t i = 0; i < states_.size(); ++i) tell_planned(i, false);
  });
}

void Cluster::stop() {
  std::lock_guard stop_lock(stop_mutex_);
  if (std::exchange(stopped_, true)) return;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (monitor_.joinable()) {
    end_nodes();
    control_.reset();
    {
      std::lock_guard lock(mutex_);
      quit_ = true;
    }
    wake();
    monitor_.join();
  }
  if (started_) run_teardown();
  if (!cgroup_.empty())
    if (auto destroyed = cgroup::destroy(cgroup_); !destroyed) log::warning(destroyed.error().message);
  for (const auto& state : states_) state->events.reset();
  for (const NodeInfo& info : infos_) ::unlink(info.pid_file.c_str());
  if (network_) {
    if (auto removed = network_->remove(); !removed) log::warning(removed.error().message);
  }
  identity_.release();
}

}  // namespace

Result<std::unique_ptr<Deployment>> Deployment::create(const config::Config& config,
                                                       const std::filesystem::path& run_dir, int run_number,
                                                       NodeObserver* observer) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(run_dir, error).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();  // "run/" -> "run"
  ROSE_TRY(Identity identity, Identity::create());
  auto cluster = std::make_unique<Cluster>(config, std::move(absolute), run_number, observer, std::move(identity));
  ROSE_CHECK(cluster->make());
  return cluster;
}

}  // namespace rose::deploy
