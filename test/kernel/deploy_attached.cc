// Nodes that rose did not start: which of their cgroups rose may use, and which it must leave alone.
#include <catch2/catch.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "deploy/machine/cgroup.h"
#include "deploy_rig.h"
#include "kernel/cgroup2.h"
#include "kernel/processes.h"

using namespace rose;
using namespace rose::deploy;

namespace {

// A cgroup outside the deployment's, in which processes of this test sleep.
class Service {
 public:
  explicit Service(const std::string& name)
      : folder(kernel::cgroup2_mount().value() / fmt::format("rosetest-{}-{}", name, ::getpid())) {
    REQUIRE_OK(cgroup::make(folder));
  }
  Service(const Service&) = delete;
  ~Service() {
    for (const pid_t pid : started_) ::kill(pid, SIGKILL);
    for (const pid_t pid : started_) ::waitpid(pid, nullptr, 0);
    (void)cgroup::destroy(folder);
  }
  pid_t sleeper(const std::filesystem::path& where) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::execlp("sleep", "sleep", "1000", nullptr);
      ::_exit(127);
    }
    started_.push_back(pid);
    REQUIRE_OK(write_control(where / "cgroup.procs", std::to_string(pid)));
    return pid;
  }
  pid_t sleeper() { return sleeper(folder); }

  const std::filesystem::path folder;

 private:
  std::vector<pid_t> started_;
};

// Moves this process to another cgroup for the lifetime of the object.
class Moved {
 public:
  explicit Moved(const std::filesystem::path& to) : from_(kernel::cgroup_folder_of(::getpid())) {
    REQUIRE_OK(write_control(to / "cgroup.procs", std::to_string(::getpid())));
  }
  Moved(const Moved&) = delete;
  ~Moved() { (void)write_control(from_ / "cgroup.procs", std::to_string(::getpid())); }

 private:
  std::filesystem::path from_;
};

config::Attach by_pid_file(const std::string& name) {
  config::Attach attach;
  attach.pid_file = name;
  return attach;
}
config::Attach by_cgroup(const std::filesystem::path& folder) {
  config::Attach attach;
  attach.cgroup = folder.string();
  return attach;
}

config::Config attaching(const std::vector<config::Attach>& nodes) {
  auto config = make_config(std::vector<config::Command>(nodes.size()), config::Network::host);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    config.nodes[i].attach = nodes[i];
    config.nodes[i].ready = ready_tcp(1);  // never ready: the start always fails, and the tests check the reason
    config.nodes[i].ready->timeout_ns = kSecond / 4;
  }
  return config;
}

// The error with which the deployment's start failed.
Error start_error(const config::Config& config, const std::vector<pid_t>& pids = {}) {
  const RunDir dir;
  auto deployment = make(config, dir);
  for (std::size_t i = 0; i < pids.size(); ++i)
    REQUIRE_OK(write_file(fmt::format("{}/{}.pid", dir.path, i), std::to_string(pids[i])));
  const auto started = deployment->start();
  REQUIRE_FALSE(started);
  return started.error();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("attaching to a process is refused if its cgroup holds foreign processes", "[attach]") {
  Service service("shared");
  const pid_t node = service.sleeper();
  const pid_t stranger = service.sleeper();
  const Error error = start_error(attaching({by_pid_file("0.pid")}), {node});
  INFO(error.message << " / " << error.hint);
  CHECK(error.kind == ErrorKind::inconclusive);
  CHECK(has(error.message, fmt::format("process {}", node)));
  CHECK(has(error.message, service.folder.string()));
  CHECK(has(error.message, fmt::format("process {} (sleep)", stranger)));
  CHECK(has(error.hint, "cgroup = "));
}

TEST_CASE("a foreign process in a child of the node's cgroup counts as well", "[attach]") {
  Service service("below");
  const pid_t node = service.sleeper();
  REQUIRE_OK(cgroup::make(service.folder / "sub"));
  const pid_t stranger = service.sleeper(service.folder / "sub");
  CHECK(
      has(start_error(attaching({by_pid_file("0.pid")}), {node}).message, fmt::format("process {} (sleep)", stranger)));
}

TEST_CASE("attaching to a cgroup that holds rose itself is refused", "[attach]") {
  Service service("rose");
  const pid_t node = service.sleeper();
  const Moved moved(service.folder);
  for (const auto& attach : {by_pid_file("0.pid"), by_cgroup(service.folder)}) {
    const Error error = start_error(attaching({attach}), {node});
    INFO(error.message << " / " << error.hint);
    CHECK(has(error.message, service.folder.string()));
    CHECK(has(error.message, "rose itself"));
    CHECK(has(error.hint, "setup"));
  }
  // The top cgroup of the machine is refused, too.
  CHECK(has(start_error(attaching({by_cgroup("/")})).message, "rose itself"));
}

TEST_CASE("attaching to an ancestor of rose is refused, even if no cgroup shows the relation", "[attach]") {
  const RunDir dir;
  const std::filesystem::path top = kernel::cgroup2_mount().value();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // This process is the node, and its child is rose. The node moves to the machine's top cgroup, which also holds
    // other processes. So the node is its process tree, and no cgroup shows that rose descends from it.
    const pid_t node = ::getpid();
    if (!write_control(top / "cgroup.procs", std::to_string(node))) ::_exit(10);
    const pid_t rose = ::fork();
    if (rose == 0) {
      auto deployment = Deployment::create(attaching({by_pid_file("0.pid")}), dir.path, 1, nullptr);
      if (!deployment || !write_file(dir.path + "/0.pid", std::to_string(node))) ::_exit(11);
      const auto started = (*deployment)->start();
      const bool refused = !started && has(started.error().message, "rose itself descends from process") &&
                           has(started.error().hint, "setup");
      deployment->reset();
      ::_exit(refused ? 0 : 12);
    }
    int status = 0;
    ::_exit(::waitpid(rose, &status, 0) == rose && WIFEXITED(status) ? WEXITSTATUS(status) : 13);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("two nodes must not share a cgroup", "[attach]") {
  Service service("twice");
  (void)service.sleeper();
  REQUIRE_OK(cgroup::make(service.folder / "sub"));
  (void)service.sleeper(service.folder / "sub");
  for (const auto& second : {service.folder, service.folder / "sub"}) {
    auto config = attaching({by_cgroup(service.folder), by_cgroup(second)});
    config.nodes[0].ready.reset();
    const Error error = start_error(config);
    INFO(error.message);
    CHECK(has(error.message, "node n1"));
    CHECK(has(error.message, "node n2"));
  }
}

TEST_CASE("a service is attached by its cgroup, a process tree by its first process", "[attach]") {
  Service service("whole");
  const pid_t first = service.sleeper();
  const pid_t second = service.sleeper();
  Service tree("tree");
  const pid_t alone = tree.sleeper();
  const RunDir dir;
  auto config = attaching({by_cgroup(service.folder), by_pid_file("tree.pid")});
  for (auto& node : config.nodes) node.ready.reset();
  config.deployment.setup = config::Command{"sh", "-c", fmt::format("echo {} > tree.pid", alone)};
  auto deployment = make(config, dir);
  REQUIRE_OK(deployment->start());
  CHECK(deployment->main_pid(0) == first);
  CHECK(deployment->processes(0) == std::vector<pid_t>{first, second});
  CHECK(deployment->processes(1) == std::vector<pid_t>{alone});
  REQUIRE_OK(deployment->pause(0, Scope::all));
  CHECK(cgroup::frozen(service.folder));
  CHECK_FALSE(cgroup::frozen(tree.folder));
  REQUIRE_OK(deployment->resume(0, Scope::all));
  CHECK_FALSE(cgroup::frozen(service.folder));
}

TEST_CASE("an attached cgroup into which rose was moved later is neither paused nor signalled", "[attach]") {
  Service service("later");
  (void)service.sleeper();
  const RunDir dir;
  auto config = attaching({by_cgroup(service.folder)});
  config.nodes[0].ready.reset();
  auto deployment = make(config, dir);
  REQUIRE_OK(deployment->start());
  const Moved moved(service.folder);
  const auto paused = deployment->pause(0, Scope::all);
  REQUIRE_FALSE(paused);
  CHECK(has(paused.error().message, "rose itself"));
  CHECK_FALSE(deployment->signal(0, Scope::all, SIGKILL));
  CHECK_FALSE(deployment->processes(0).empty());
}

TEST_CASE("heal resumes only those processes of an attached node that rose stopped", "[attach]") {
  Service service("heal");
  const pid_t node = service.sleeper();
  const pid_t stopped = service.sleeper();  // stopped by its user before rose attached
  const pid_t signalled = service.sleeper();
  const auto state = [](pid_t pid) { return kernel::process_stat(pid).value_or(kernel::ProcessStat{}).state; };
  ::kill(stopped, SIGSTOP);
  REQUIRE(eventually([&] { return state(stopped) == 'T'; }));
  const bool frozen = GENERATE(true, false);
  const RunDir dir;
  int pipe_fds[2];
  REQUIRE(::pipe(pipe_fds) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto config = attaching({by_cgroup(service.folder)});
    config.nodes[0].ready.reset();
    auto deployment = Deployment::create(config, dir.path, 1, nullptr);
    if (!deployment || !(*deployment)->start()) ::_exit(11);
    if (!(*deployment)->foresee_stops(0)) ::_exit(12);
    if (frozen && !(*deployment)->pause_at_once(0)) ::_exit(13);
    ::kill(signalled, SIGSTOP);  // stands for a stop by a BPF program, of which rose has no record
    const std::string id = (*deployment)->id();
    if (::write(pipe_fds[1], id.data(), id.size()) < 0) ::_exit(14);
    for (;;) ::pause();
  }
  char id[64] = {};
  ::close(pipe_fds[1]);
  REQUIRE(::read(pipe_fds[0], id, sizeof id - 1) > 0);
  ::close(pipe_fds[0]);
  if (frozen) REQUIRE(eventually([&] { return cgroup::frozen(service.folder); }));
  if (!frozen) REQUIRE(eventually([&] { return state(signalled) == 'T'; }));
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  const auto healed = heal({id});
  REQUIRE(healed);
  CHECK(healed->failed.empty());
  CHECK_FALSE(cgroup::frozen(service.folder));
  CHECK(eventually([&] { return state(signalled) == 'S' && state(node) == 'S'; }));
  CHECK(state(stopped) == 'T');
}

TEST_CASE("an attached node counts as started only once its observer was notified", "[attach]") {
  struct Slow : NodeObserver {
    std::atomic<bool> notified{false};
    void on_start(std::size_t, pid_t) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      notified = true;
    }
  };
  Service service("heard");
  auto config = attaching({by_pid_file("0.pid")});
  config.nodes[0].ready.reset();
  const RunDir dir;
  REQUIRE_OK(write_file(dir.path + "/0.pid", std::to_string(service.sleeper())));
  Slow observer;
  auto deployment = make(config, dir, &observer);
  REQUIRE_OK(deployment->start());
  CHECK(observer.notified);
}
