#include "deploy/deployment.h"
#include "deploy/libc_recorder.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/units.h"
#include "deploy/cluster.h"
#include "deploy/guardian.h"
#include "deploy/machine/cgroup.h"
#include "deploy/machine/processes.h"
#include "deploy/volumes.h"
#include "kernel/cgroup2.h"

namespace rose::deploy {
namespace {

// A node that ends this often before it is ready will probably never be ready. rose then reports why it ended, so that
// the user need not wait for the timeout, which is minutes for some health checks. The number is not smaller, because
// some services end once or twice until the services that they need are available.
constexpr int kTellingRestarts = 3;
constexpr std::int64_t kStopGrace = 2 * kSecond;       // at the end of a run
constexpr std::int64_t kCancelledGrace = kSecond / 2;  // after Ctrl-C
constexpr std::int64_t kSetupTimeout = 600 * kSecond;
constexpr std::int64_t kTeardownTimeout = 120 * kSecond;
// After Ctrl-C, teardown still runs, because it undoes what setup did. But it is stopped after this time, because
// Ctrl-C must end rose.
constexpr std::int64_t kTeardownAfterCancel = 30 * kSecond;
constexpr std::int64_t kFirstPoll = 2 * kMillisecond;
constexpr std::int64_t kPoll = 20 * kMillisecond;

bool may_search(const struct stat& info, const Credentials& user) {
  if (user.uid == 0) return true;
  if (info.st_uid == user.uid) return (info.st_mode & S_IXUSR) != 0;
  const bool member =
      info.st_gid == user.gid || std::find(user.groups.begin(), user.groups.end(), info.st_gid) != user.groups.end();
  return (info.st_mode & (member ? S_IXGRP : S_IXOTH)) != 0;
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, HOST_NAME_MAX) == 0 ? name : "";
}

}  // namespace

// Creation

Result<void> Cluster::make() {
  const bool netns = config_.deployment.network == config::Network::netns;
  ROSE_CHECK(identity_.note("run_dir", run_dir_.string()));
  ROSE_CHECK(share_run_folder());
  ROSE_CHECK(make_folders());

  ROSE_TRY(const std::filesystem::path base, cgroup::base());
  cgroup_ = base / identity_.id();
  ROSE_CHECK(identity_.note("cgroup", cgroup_.string()));
  ROSE_CHECK(cgroup::make(cgroup_));
  // The names of nodes' cgroups begin with "rose-", so no node's cgroup has this name.
  ROSE_CHECK(cgroup::make(cgroup_ / "rose.commands"));
  for (NodeInfo& info : infos_) {
    const std::filesystem::path own = cgroup_ / ("rose-" + info.name);
    ROSE_CHECK(cgroup::make(own));
    const auto& attach = states_[info.index]->config->attach;
    // The cgroup of other attached nodes is known only once their processes have been found.
    if (attach && !attach->pid_file) continue;
    info.cgroup = own;
    info.cgroup_id = kernel::cgroup_id(own);
  }

  if (netns) {
    std::vector<Network::Member> members;
    ROSE_CHECK(identity_.note("netns", client_netns_));
    for (const NodeInfo& info : infos_)
      if (info.network == info.index) ROSE_CHECK(identity_.note("netns", info.netns));
    for (const NodeInfo& info : infos_) {
      members.push_back({info.netns, info.bridge_port, info.ip});
      if (info.network != info.index) members.back().of = info.network;
      members.back().container = config_.nodes[info.index].container.has_value();
    }
    ROSE_CHECK(make_holders(members));
    ROSE_TRY(network_, Network::create(client_netns_, config::client_address(config_.deployment),
                                       config::prefix_length(config_.deployment), members));
  }
  for (const NodeInfo& info : infos_)
    if (info.network != info.index && log::is_first_report("network " + info.name))
      log::info("node {0} shares the network and the address of {1}: a network fault on {0} or {1} affects both",
                info.name, infos_[info.network].name);
  ROSE_CHECK(make_own_names());
  ROSE_CHECK(make_nodes());
  if (!config_.deployment.setup) ROSE_CHECK(check_commands());

  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !wake_) return fail_errno(ErrorKind::environment, "cannot watch processes", errno);
  watch(kWake, 0, wake_.get(), EPOLLIN);
  ROSE_TRY(monitor_, start_thread([this] { monitor(); }));
  return {};
}

// Commands and nodes see the names of the run in a mount namespace of their own. The run's folder is a shared mount.
// Therefore, if a command (such as `setup`) mounts a file system in it for a node, all namespaces see the mount.
Result<void> Cluster::share_run_folder() {
  // If there are attached nodes, this namespace is not used: the nodes would be outside it, and mounts that an incident
  // makes must reach them.
  for (const config::Node& node : config_.nodes)
    if (node.attach) return {};
  if (!std::filesystem::is_directory(run_dir_))
    return fail(ErrorKind::input, fmt::format("run directory {} does not exist", run_dir_.string()));
  ROSE_CHECK(identity_.note("shared", run_dir_.string()));
  if (auto shared = share_folder(run_dir_); !shared) {
    no_names(shared.error());
    return {};
  }
  shared_ = true;
  return {};
}

Result<void> Cluster::make_own_names() {
  if (!shared_) return {};
  ROSE_TRY(const OpenFolder own, own_folder());
  const auto write = [&](const char* name, const std::string& text) -> Result<std::filesystem::path> {
    ROSE_TRY(const Fd file, own.create(name, std::nullopt, 0644));
    // Sets the mode independently of rose's umask, because every user looks up names.
    if (const int err = ::fchmod(file.get(), 0644) != 0 ? errno : write_bytes(file.get(), text); err != 0)
      return fail_errno(ErrorKind::environment, fmt::format("cannot write {}", (own.path() / name).string()), err);
    return own.path() / name;
  };
  const auto machine = read_file("/etc/hosts", std::size_t{1} << 20);
  ROSE_TRY(const std::filesystem::path hosts,
           write("hosts", process_hosts(config_, infos_, machine.value_or(""), host_name())));
  std::filesystem::path resolver;
  if (network_) {
    ROSE_TRY(resolver, write("resolv.conf", kNoNameServer));
  }
  auto made = make_names(hosts, resolver);
  if (made) names_ = std::move(*made);
  else no_names(made.error());
  return {};
}

// Warns that the nodes' names cannot be used, once per process. Without the right to mount, as in an unprivileged
// container, runs still work, but commands and nodes can use only addresses.
void Cluster::no_names(const Error& why) {
  static std::atomic<bool> reported{false};
  if (reported.exchange(true)) return;
  log::warning("commands and nodes cannot use the nodes' names, only their addresses (ROSE_IP_<node>): {}",
               why.message);
}

// Returns an error if the node's user could replace a folder on the path to the node's folder. rose uses that path, and
// would then act on another folder.
Result<void> Cluster::check_path(const NodeInfo& info, const Credentials& user) const {
  UserGroups groups{user.uid, user.groups};
  groups.groups.push_back(user.gid);
  std::error_code ignored;
  const std::filesystem::path real = std::filesystem::canonical(info.dir, ignored);
  for (const std::filesystem::path& path : {info.dir, real.empty() ? info.dir : real})
    if (const auto folder = exchangeable_by(groups, path))
      return fail(ErrorKind::input,
                  fmt::format("node {}: its user {} may replace entries of {}, a parent of the run's folder {}",
                              info.name, config_.nodes[info.index].user, folder->string(), run_dir_.string()),
                  "use a folder that belongs to root and that others cannot write to (--report, or "
                  "TMPDIR without it)");
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
    // Avoids the name of a node that is called "client".
    while (std::find(names.begin(), names.end(), client_netns_.substr(identity_.id().size() + 1)) != names.end())
      client_netns_ += "s";
  }
  for (std::size_t i = 0; i < config_.nodes.size(); ++i) {
    const config::Node& node = config_.nodes[i];
    if (netns && node.ip.empty())
      return fail(ErrorKind::input, fmt::format("node {} has no address", node.name),
                  fmt::format("give it an ip in {}", config_.deployment.subnet));
    if (node.command.empty() && !node.attach && !node.container)
      return fail(ErrorKind::input, fmt::format("node {} has neither command nor attach", node.name));
    if (node.attach && node.ready && node.ready->log)
      return fail(ErrorKind::input, fmt::format("node {}: ready.log needs a node that rose starts", node.name),
                  "use ready = { tcp = ... } or { command = [...] } with attach");
    NodeInfo info;
    info.name = node.name;
    info.index = i;
    info.network = config_.network_owner(i);
    info.ip = node.ip;
    info.dir = run_dir_ / node.name;
    if (node.container) info.container = fmt::format("{}-{}", identity_.id(), node.name);
    if (node.attach && node.attach->container) info.container = *node.attach->container;
    // cannot be a node's name, because those do not begin with a dot
    info.pid_file = run_dir_ / fmt::format(".{}.pid", node.name);
    if (netns) {
      info.netns = fmt::format("{}-{}", identity_.id(), names[info.network]);
      info.bridge_port = ports[info.network];
    }
    auto state = std::make_unique<NodeState>();
    state->config = &node;
    if (!node.user.empty() && !node.container) {
      auto user = find_user(node.user);
      if (!user) return Unexpected(std::move(user).error().in("node " + node.name));
      state->user = std::move(*user);
    }
    if (::mkdir(info.dir.c_str(), 0755) != 0)
      return fail_errno(ErrorKind::input, fmt::format("cannot create {}", info.dir.string()), errno);
    ROSE_TRY(const OpenFolder own, OpenFolder::open(info.dir));
    if (state->user) {
      ROSE_CHECK(check_path(info, *state->user));
      ROSE_CHECK(own.give({state->user->uid, state->user->gid}, 0755));
      // The node's user must be able to reach the node's folder.
      struct stat above{};
      if (::stat(run_dir_.c_str(), &above) == 0 && !may_search(above, *state->user))
        ::chmod(run_dir_.c_str(), (above.st_mode & 07777) | 0111);
      for (std::filesystem::path folder = run_dir_.parent_path(); folder != folder.root_path();
           folder = folder.parent_path())
        if (::stat(folder.c_str(), &above) == 0 && !may_search(above, *state->user))
          log::warning(
              "node {}: user {} cannot reach its folder {}, because {} has no search permission for it: grant it "
              "(chmod "
              "o+x), or place runs elsewhere (--report, or TMPDIR without it)",
              node.name, node.user, info.dir.string(), folder.string());
    }
    info.logs = {info.dir / "stdout.log", info.dir / "stderr.log"};
    for (const std::string& file : node.logs) info.logs.push_back(info.dir / file);
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
    if (!state.config->container) spec.env = inherited();  // a container has the environment of its image
    add_rose_variables(spec.env, facts_, infos_, &info);
    // Each start of the process makes a new recording.
    if (state.config->record) spec.env["ROSE_RR"] = fmt::format("record:{}/{}", info.dir.string(), kRecordingName);
    for (const auto& [name, value] : state.config->env) spec.env[name] = expand(value, facts_, infos_, &info);
    if (!state.config->record_libc.empty()) {
      ROSE_TRY(const std::filesystem::path library, place_libc_recorder(run_dir_));
      add_libc_recorder(spec.env, library, state.config->record_libc);
    }
    spec.directory = info.dir.string();
    if (!state.config->working_dir.empty() && !state.config->container) {
      ROSE_TRY([[maybe_unused]] const OpenFolder made, volume_folder(info.index, state.config->working_dir));
      spec.inside = state.config->working_dir;
    }
    spec.stdout_log = (info.dir / "stdout.log").string();
    spec.stderr_log = (info.dir / "stderr.log").string();
    spec.cgroup = info.cgroup.string();
    spec.netns = node_netns_fd(info.index);
    spec.names = names_.get();
    spec.user = state.user ? &*state.user : nullptr;
    spec.changes_user = !state.config->begins_as_root;
    state.events = Fd(::open((info.cgroup / "cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
    if (!state.events)
      return fail_errno(ErrorKind::environment, fmt::format("cannot watch cgroup {}", info.cgroup.string()), errno);
  }
  return {};
}

// Checks the nodes' commands before anything starts. With a setup command this is done later, because setup may build
// the programs.
Result<void> Cluster::check_commands() {
  for (const NodeInfo& info : infos_) {
    NodeState& state = *states_[info.index];
    if (state.config->attach || state.config->container) continue;
    ROSE_TRY(state.spec.file,
             find_program(state.spec.argv.front(), config_.directory, state.spec.env, state.spec.what));
    if (!state.config->record_libc.empty())
      if (auto takes = check_takes_recorder(state.spec.file); !takes)
        return Unexpected(std::move(takes).error().in(state.spec.what + ": record_libc"));
    // Programs determine their own path from argv[0]. Make it absolute, because a program would resolve a relative path
    // from the node's folder.
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
  if (config_.deployment.form) ROSE_CHECK(check(*config_.deployment.form, "form"));
  return {};
}

Result<OpenFolder> Cluster::volume_folder(std::size_t node, const std::filesystem::path& inside) {
  ROSE_ASSERT(!started_);
  const auto& user = states_[node]->user;
  ROSE_TRY(const OpenFolder top, OpenFolder::open(infos_[node].dir));
  return top.make(inside, user ? std::optional(Owner{user->uid, user->gid}) : std::nullopt);
}

// Opens the folder for rose's own files in the run (disk images, copies of files). Creates it if it is missing.
Result<OpenFolder> Cluster::own_folder() {
  const std::filesystem::path path = run_dir_ / kOwnFolder;
  if (std::error_code absent; !std::filesystem::exists(std::filesystem::symlink_status(path, absent)))
    ROSE_CHECK(make_own_folder(path, 0700));
  ROSE_TRY(OpenFolder own, OpenFolder::open(path));
  ROSE_TRY(const struct stat status, own.status());
  if (status.st_uid != ::geteuid() || (status.st_mode & 077) != 0)
    return fail(ErrorKind::environment, fmt::format("{} does not belong to root alone", path.string()));
  return own;
}

// Volumes and disks are found by the deployment's id, wherever nodes have moved them and even if they were only partly
// created. If the node's user has unmounted or moved one of them meanwhile, the descriptors in `held` keep its files
// until they are rescued.
void Cluster::dissolve_volumes() {
  if (!std::exchange(mounts_, false)) return;
  std::vector<OpenFolder> held;
  for (const auto& volume : volumes_) held.push_back(volume->release());
  for (const auto& disk : disks_)
    if (auto top = disk->release()) held.push_back(std::move(*top));
  disks_.clear();
  volumes_.clear();
  for (const volume::Mounted& mounted : volume::of(identity_.id())) {
    const auto dissolved = volume::dissolve(mounted);
    if (!dissolved) log::warning(dissolved.error().message);
    else if (*dissolved == volume::Dissolved::put_back)
      std::erase_if(held, [&](const OpenFolder& top) { return volume::number(top) == mounted.number; });
  }
  for (const OpenFolder& top : held) {
    const auto rescued = volume::rescue(top, run_dir_ / kRescueFolder);
    const std::string where = printable(top.path().string());
    const std::string why = "a process of the node's user may have unmounted it or replaced its folder";
    if (rescued)
      log::warning("the files of the file system that rose mounted at {} are in {} ({})", where, rescued->string(),
                   why);
    else
      log::warning("files of the file system that rose mounted at {} are lost ({}): {}", where, why,
                   rescued.error().message);
  }
  held.clear();
  for (const volume::Mounted& mounted : volume::of(identity_.id()))
    undo(fail(ErrorKind::environment,
              fmt::format("the file system at {} is still mounted", printable(mounted.point.string()))));
  remove_tree(run_dir_ / kOwnFolder);
}

// Commands beside the nodes

Variables Cluster::command_variables(const NodeInfo* node) const {
  Variables variables = inherited();
  add_rose_variables(variables, facts_, infos_, node);
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (self.filename() == "rose") offer_program(variables, self.parent_path(), "rose");
  if (std::filesystem::exists(engine_commands(), error)) prefer_programs(variables, engine_commands());
  return variables;
}

Result<std::unique_ptr<RunningCommand>> Cluster::spawn_as(const config::Command& command, std::string_view log_name,
                                                          const CommandLimits& limits, const NodeInfo* node,
                                                          const Variables& further) {
  if (command.empty()) return fail(ErrorKind::input, fmt::format("{}: the command is empty", log_name));
  LaunchSpec spec;
  spec.what = log_name;
  spec.argv = expand(command, facts_, infos_, node);
  spec.env = command_variables(node);
  for (const auto& [name, value] : further) spec.env[name] = value;
  ROSE_TRY(spec.file, find_program(spec.argv.front(), config_.directory, spec.env, log_name));
  if (spec.argv.front().find('/') != std::string::npos) spec.argv.front() = spec.file;
  spec.directory = run_dir_.string();
  spec.stdout_log = spec.stderr_log = (run_dir_ / fmt::format("{}.log", log_name)).string();
  spec.cgroup = (cgroup_ / "rose.commands" / fmt::format("rose-{}", ++commands_)).string();
  spec.netns = client_netns_fd();
  spec.names = limits.sees_machine ? -1 : names_.get();
  return run_beside(spec, limits);
}

// Adds the observer's variables. For nodes in containers, the observer is asked once the images are known, because
// images have variables, too.
void Cluster::add_observers_variables() {
  if (observer_ == nullptr) return;
  for (const NodeInfo& info : infos_) {
    NodeState& state = *states_[info.index];
    if (state.config->container && !state.config->attach) continue;
    for (const auto& [name, value] : observer_->environment(info.index, state.spec.env)) {
      if (state.config->attach) setup_variables_[fmt::format("ROSE_{}_{}", name, variable_name(info.name))] = value;
      else state.spec.env[name] = value;
    }
  }
}

Result<void> Cluster::run_setup() {
  if (!config_.deployment.setup) return {};
  return run_to_end(*config_.deployment.setup, "setup", setup_variables_);
}

// Runs the `form` command, which forms a cluster of the started nodes. Everything it starts is part of the run.
Result<void> Cluster::run_form() {
  if (!config_.deployment.form) return {};
  return run_to_end(*config_.deployment.form, "form", {});
}

Result<void> Cluster::run_to_end(const config::Command& command, std::string_view what, const Variables& further) {
  ROSE_TRY(const std::unique_ptr<RunningCommand> running,
           spawn_as(command, what, {.timeout_ns = kSetupTimeout, .leave_descendants = true}, nullptr, further));
  const CommandResult result = running->wait();
  if (result.cancelled) return fail(ErrorKind::cancelled, fmt::format("interrupted during {}", what));
  if (result.ok()) return {};
  const std::string last = tail(run_dir_ / fmt::format("{}.log", what), 10);
  std::string hint = last.empty() ? "" : fmt::format("last lines of {}.log:\n{}", what, last);
  if (const std::string word = misplaced_word(command, facts_.config_dir, run_dir_); !word.empty())
    hint += (hint.empty() ? "" : "\n") + word;
  return fail(ErrorKind::inconclusive, fmt::format("{} {}", what, result.note), hint);
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

// Start and readiness

Result<void> Cluster::prepare() {
  ROSE_ASSERT(!prepared_);
  ROSE_CHECK(cancel::check());
  prepared_ = true;
  ROSE_TRY(control_, ControlServer::create(run_dir_, [this](const std::string& action, const std::string& node) {
             return request(action, node);
           }));
  add_observers_variables();
  if (config_.deployment.setup) {
    ROSE_CHECK(run_setup());
    ROSE_CHECK(check_commands());
  }
  return {};
}

Result<void> Cluster::start() {
  ROSE_ASSERT(!started_);
  started_ = true;
  if (!prepared_) ROSE_CHECK(prepare());
  ROSE_CHECK(make_containers());
  hold_containers();
  std::vector<std::size_t> all;
  for (const std::size_t i : start_order()) {
    ROSE_CHECK(cancel::check());
    ROSE_CHECK(await_dependencies(i));
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
    begin_hooks(i);
  }
  ROSE_CHECK(run_form());
  return await_ready(all);
}

Result<std::unique_ptr<Probe>> Cluster::make_probe(std::size_t node) {
  const NodeInfo& info = infos_[node];
  if (const config::Health* health = health_of(node)) {
    const config::Command command = health_command(node);
    const std::int64_t timeout_ns = *health->timeout_ns;
    return command_probe(command, [this, command, timeout_ns, &info] {
      return spawn_as(command, "health-" + info.name, {.timeout_ns = timeout_ns, .sees_machine = true}, nullptr);
    });
  }
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
  if (!ready.command)
    return fail(ErrorKind::input, fmt::format("node {}: ready needs one of tcp, log, command", info.name));
  return command_probe(*ready.command, [this, &info, &ready] {
    return spawn_as(*ready.command, "ready-" + info.name, {.timeout_ns = ready.timeout_ns}, &info);
  });
}

Error Cluster::not_ready(std::size_t node, std::string message) const {
  const NodeInfo& info = infos_[node];
  {
    // Report restarts by the restart policy, because otherwise the user could mistake a node that ends repeatedly for a
    // slow node.
    std::lock_guard lock(mutex_);
    const NodeState& state = *states_[node];
    if (state.restarts > 0) {
      const bool says_how = message.find(state.last_end) != std::string::npos;
      message += fmt::format("; its restart policy started it {} times{}", state.restarts,
                             says_how ? std::string() : fmt::format(", and it last {}", state.last_end));
    }
  }
  const auto [log, last] = last_words(info.dir);
  std::string hint = last.empty() ? fmt::format("node {} printed nothing", info.name)
                                  : fmt::format("last lines of {}/{}:\n{}", info.name, log, last);
  if (const std::string word = misplaced_word(states_[node]->config->command, facts_.config_dir, info.dir);
      !word.empty() && !states_[node]->config->container)
    hint += "\n" + word;
  return {ErrorKind::inconclusive, fmt::format("node {} {}", info.name, message), hint};
}

Result<void> Cluster::await_ready(const std::vector<std::size_t>& which, bool strict) {
  struct Waiting {
    std::size_t node;
    std::int64_t until_ns;
    int incarnation = 0;
    std::unique_ptr<Probe> probe;
  };
  std::vector<Waiting> waiting;
  for (const std::size_t node : which)
    waiting.push_back({node, monotonic_ns() + ready_timeout(node, strict), 0, nullptr});
  std::int64_t nap = kFirstPoll;
  for (;;) {
    for (auto it = waiting.begin(); it != waiting.end();) {
      const std::size_t node = it->node;
      const NodeState& state = *states_[node];
      pid_t pid = 0;
      int incarnation = 0;
      int restarts = 0;
      std::string for_good;  // how it ended, if it will not be restarted
      bool in_hooks = false;
      {
        std::lock_guard lock(mutex_);
        if (state.failure) return Unexpected(*state.failure);
        if (state.hook_failure) return Unexpected(*state.hook_failure);
        in_hooks = state.in_hooks;
        pid = state.pid;
        incarnation = state.starts;
        restarts = state.restarts;
        if (pid == 0 && state.restart_at_ns == 0 && !state.config->attach) for_good = state.end_note;
      }
      if (in_hooks) {
        it->until_ns = monotonic_ns() + ready_timeout(node, strict);
        ++it;
        continue;
      }
      bool ready = false;
      if (!has_ready(node)) {
        // Without a probe, a node is ready when it has been started, even if it has ended since.
        ready = incarnation > 0;
      } else if (pid != 0) {
        if (it->incarnation != incarnation) {
          ROSE_TRY(it->probe, make_probe(node));
          it->incarnation = incarnation;
        }
        ROSE_TRY(const bool answer, it->probe->ready());
        // If the process died during the probe, the answer does not apply to its successor.
        ready = answer && main_pid(node) != 0 && starts(node) == incarnation;
      }
      if (ready) {
        it = waiting.erase(it);
        continue;
      }
      if (!for_good.empty() && has_ready(node)) return Unexpected(not_ready(node, for_good + " before it was ready"));
      if (restarts >= kTellingRestarts && log::is_first_report("keeps ending " + infos_[node].name)) {
        const Error now = not_ready(node, "is not ready yet");
        log::warning("{}; it has {} more to become ready; {}", now.message,
                     format_duration(std::max<std::int64_t>(it->until_ns - monotonic_ns(), 0) / kSecond * kSecond),
                     now.hint);
      }
      if (monotonic_ns() >= it->until_ns) {
        if (incarnation == 0) {
          std::lock_guard lock(mutex_);
          if (state.unattached) return Unexpected(*state.unattached);
          // The timeout limits how long the node may take. On a busy machine, the timeout may pass before rose has
          // searched for the node at all. In that case, wait longer.
          if (monotonic_ns() >= it->until_ns + kAttachTimeout)
            return Unexpected(not_ready(node, "was not searched for in time"));
          ++it;
          continue;
        }
        if (!strict && health_of(node) != nullptr) {
          unhealthy(node, it->probe ? it->probe->missing() : "it was down");
          it = waiting.erase(it);
          continue;
        }
        return Unexpected(
            not_ready(node, fmt::format("was not ready within {}: {}", format_duration(ready_timeout(node, strict)),
                                        it->probe ? it->probe->missing() : "it was down")));
      }
      ++it;
    }
    if (waiting.empty()) {
      // Wait until the observer was informed of all starts, because the caller relies on that.
      on_monitor([] {});
      return {};
    }
    if (stopping_) return fail(ErrorKind::cancelled, "the run is ending");
    cancel::sleep(nap);
    ROSE_CHECK(cancel::check());
    nap = std::min(nap * 2, kPoll);
  }
}

// Stop

void Cluster::resume_attached() {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (!states_[i]->config->attach) continue;
    std::unique_lock lock(mutex_);
    const bool all = states_[i]->paused;
    const bool main = states_[i]->main_paused;
    lock.unlock();
    for (const Scope scope : {Scope::all, Scope::main})
      if (scope == Scope::all ? all : main) undo(resume(i, scope));
  }
}

void Cluster::undo(const Result<void>& done) {
  if (done) return;
  log::warning(done.error().message);
  undone_ = false;
}

void Cluster::end_nodes() {
  std::vector<std::size_t> own;
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (!states_[i]->config->attach) own.push_back(i);
  // This thread thaws the nodes, because the monitor may itself be waiting for a frozen node to start.
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
  // After Ctrl-C, hooks are skipped, so that rose ends soon.
  if (!cancel::requested()) {
    std::vector<std::thread> hooks;
    for (const std::size_t i : own) {
      if (!states_[i]->container || config_.nodes[i].container->pre_stop.empty()) continue;
      const auto work = [this, i] {
        if (auto done = pre_stop(i, kPlannedStopGrace, true);
            !done && log::is_first_report("pre_stop " + infos_[i].name))
          log::warning("{}", done.error().message);
      };
      if (auto thread = start_thread(work)) hooks.push_back(*std::move(thread));
      else work();
    }
    for (std::thread& thread : hooks) thread.join();
  }
  for (const std::size_t i : own)
    if (heeds_its_end(i)) terminate(i);
    else if (auto killed = cgroup::kill(infos_[i].cgroup); !killed) log::warning(killed.error().message);
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
    // Wait until the monitor has reported the ends of all nodes.
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(has_containers() ? 15 : 5), [&] {
      return std::all_of(own.begin(), own.end(),
                         [&](std::size_t i) { return states_[i]->pid == 0 && !states_[i]->ending; });
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
  end_hooks();
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
  if (prepared_) run_teardown();
  remove_containers();
  if (!cgroup_.empty()) undo(cgroup::destroy(cgroup_));
  for (const auto& state : states_) state->events.reset();
  for (const NodeInfo& info : infos_) ::unlink(info.pid_file.c_str());
  dissolve_data();
  dissolve_volumes();
  if (names_ || shared_) {
    names_.reset();
    undo(leave_shared(run_dir_));
    remove_tree(run_dir_ / kOwnFolder);
  }
  name_server_.reset();
  if (network_) undo(network_->remove());
  if (undone_) {
    identity_.release();
  } else {
    log::warning("what could not be undone is recorded: 'rose heal' tries again");
    identity_.leave();
  }
}

Result<std::unique_ptr<Deployment>> Deployment::create(const config::Config& config,
                                                       const std::filesystem::path& run_dir, int run_number,
                                                       NodeObserver* observer) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(run_dir, error).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();  // "run/" becomes "run"
  ensure_guardian();
  ROSE_TRY(Identity identity, Identity::create());
  auto cluster = std::make_unique<Cluster>(config, std::move(absolute), run_number, observer, std::move(identity));
  ROSE_CHECK(cluster->make());
  return cluster;
}

}  // namespace rose::deploy
