#include "deploy/deployment.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "deploy/command.h"
#include "deploy/control.h"
#include "deploy/identity.h"
#include "deploy/machine/cgroup.h"
#include "deploy_rig.h"
#include "kernel/capability_sets.h"
#include "kernel/cgroup2.h"
#include "kernel/privilege.h"

using namespace rose;
using namespace rose::deploy;

namespace {

// Connects a UDP socket. This sends nothing, but shows whether the address can be reached. Returns 0 or an errno.
int connect_datagrams(const char* ip, std::uint16_t port) {
  const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  REQUIRE(::inet_pton(AF_INET, ip, &to.sin_addr) == 1);
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ? 0 : errno;
}

}  // namespace

TEST_CASE("nodes reach each other and clients reach nodes", "[deploy]") {
  const RunDir dir;
  auto config = make_config({{kVictim, "serve", "7000"}, {kVictim, "serve", "7000"}, {kVictim, "serve", "7000"}});
  for (auto& node : config.nodes) node.ready = ready_tcp(7000);
  auto deployment = make(config, dir);
  REQUIRE_OK(deployment->start());
  REQUIRE(deployment->nodes().size() == 3);
  for (const NodeInfo& node : deployment->nodes()) {
    INFO(node.name);
    CHECK(run(*deployment, {"./deploy_victim", "ask", node.ip, "7000"}).ok());
    CHECK(node.cgroup_id != 0);
    CHECK(cgroup::processes(node.cgroup) == std::vector<pid_t>{deployment->main_pid(node.index)});
    CHECK(read_file(node.pid_file).value() == fmt::format("{}\n", deployment->main_pid(node.index)));
    CHECK(dir.read(node.name + "/stdout.log") == "serving as " + node.name + "\n");
    CHECK(run(*deployment, {"ip", "-o", "link", "show", node.bridge_port}).ok());
    CHECK(run(*deployment, {"ip", "netns", "exec", node.netns, "ip", "link", "show", "rose0"}).ok());
  }
  CHECK(dir.read("command.log").find("10.251.7.3:7000 is n3") != std::string::npos);
  // A connection from one node's namespace to another's passes through the bridge.
  int status = -1;
  in_netns(deployment->node_netns_fd(0), [&] {
    const auto output = run_command({kVictim, "ask", "10.251.7.2", "7000"});
    if (output) status = output->exit_code;
  });
  CHECK(status == 0);
  // Name servers outside the deployment cannot be reached, so a query fails at once. A name server inside it can be
  // reached.
  in_netns(deployment->node_netns_fd(0), [&] {
    CHECK(connect_datagrams("192.0.2.1", 53) == EACCES);
    CHECK(connect_datagrams("192.0.2.1", 54) == 0);
    CHECK(connect_datagrams("10.251.7.2", 53) == 0);
  });
  // The host has neither the addresses nor the bridge, because they exist only in the namespaces.
  CHECK(run_command({"ip", "-o", "addr"}).value().out.find("10.251.7.") == std::string::npos);
  CHECK(names("/sys/class/net").count("rosebr0") == 0);
  const std::string id = deployment->id();
  CHECK(!traces_of(id).empty());
  deployment->stop();
  CHECK(traces_of(id).empty());
  CHECK(!std::filesystem::exists(deployment->nodes()[0].pid_file));
  CHECK(!std::filesystem::exists(dir.path + "/" + kControlSocket));
  deployment->stop();  // stopping twice is allowed
}

TEST_CASE("two deployments with the same addresses run side by side", "[deploy]") {
  const RunDir a, b;
  auto config = make_config({{kVictim, "serve", "7000"}, {kVictim, "serve", "7000"}});
  for (auto& node : config.nodes) node.ready = ready_tcp(7000);
  auto one = make(config, a);
  config.nodes[0].name = "other";
  auto two = make(config, b);
  CHECK(one->id() != two->id());
  REQUIRE_OK(one->start());
  REQUIRE_OK(two->start());
  CHECK(run(*one, {kVictim, "ask", "10.251.7.1", "7000"}).ok());
  CHECK(run(*two, {kVictim, "ask", "10.251.7.1", "7000"}).ok());
  CHECK(a.read("command.log") == "10.251.7.1:7000 is n1\n");
  CHECK(b.read("command.log") == "10.251.7.1:7000 is other\n");
}

TEST_CASE("another user's lock on the folder of namespaces does not block a deployment", "[deploy]") {
  {
    const RunDir dir;  // this makes sure that /run/netns exists and has the right mode
    (void)make(make_config({{"sleep", "1000"}}), dir);
  }
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
    const int folder = ::open("/run/netns", O_RDONLY | O_DIRECTORY);
    if (folder < 0 || ::flock(folder, LOCK_EX) != 0 || ::write(ready[1], "x", 1) != 1) ::_exit(2);
    for (;;) ::pause();
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  std::atomic<bool> done{false};
  std::thread release([&] {  // without this, a deployment that waits for the lock would hang
    (void)eventually([&] { return done.load(); }, 60 * kSecond);
    ::kill(stranger, SIGKILL);
    ::waitpid(stranger, nullptr, 0);
  });
  const RunDir dir;
  auto deployment = make(make_config({{"sleep", "1000"}}), dir);
  REQUIRE_OK(deployment->start());
  CHECK(::waitpid(stranger, nullptr, WNOHANG) == 0);  // the child still holds the lock
  done = true;
  release.join();
  for (const int fd : ready) ::close(fd);
}

TEST_CASE("a host network has no namespaces", "[deploy]") {
  const RunDir dir;
  auto config = make_config({{kVictim, "serve", "27431"}}, config::Network::host);
  config.nodes[0].ready = ready_tcp(27431);
  auto deployment = make(config, dir);
  CHECK(deployment->client_netns().empty());
  CHECK(deployment->client_netns_fd() == -1);
  CHECK(deployment->node_netns_fd(0) == -1);
  CHECK(deployment->nodes()[0].netns.empty());
  REQUIRE_OK(deployment->start());
  // commands do not run in the folder that contains the program
  CHECK(run(*deployment, {"sh", "-c", "exec ./deploy_victim ask $ROSE_IP_n1 27431"}).code == 127);
  CHECK(run(*deployment, {"sh", "-c", "exec ${config_dir}/deploy_victim ask $ROSE_IP_n1 27431"}).ok());
}

TEST_CASE("readiness is detected by a log line or a command", "[deploy]") {
  const RunDir dir;
  auto config = make_config({{"sh", "-c", "sleep 0.05; echo started at stage 4 >&2; exec sleep 100"},
                             {"sh", "-c", "sleep 0.05; touch ready; exec sleep 100"},
                             {"sleep", "100"}});
  config.nodes[0].ready = ready_log("stage [34]$");
  config::Ready command;
  command.command = {"sh", "-c", "test $ROSE_NODE = ${node} && test -e ${dir}/ready"};
  command.timeout_ns = 120 * kSecond;
  config.nodes[1].ready = command;
  auto deployment = make(config, dir);
  REQUIRE_OK(deployment->start());
  CHECK(dir.read("n1/stderr.log") == "started at stage 4\n");
  CHECK(std::filesystem::exists(dir.path + "/n2/ready"));
}

TEST_CASE("a readiness command is repeated only after a pause longer than its run", "[deploy]") {
  const RunDir dir;
  auto config = make_config({{"sleep", "100"}});
  config::Ready command;
  command.command = {
      "sh", "-c",
      "date +%s%N >> ${dir}/asked; sleep 0.02; date +%s%N >> ${dir}/answered; test $(wc -l < ${dir}/asked) -ge 5"};
  command.timeout_ns = 60 * kSecond;
  config.nodes[0].ready = command;
  auto deployment = make(config, dir);
  REQUIRE_OK(deployment->start());
  std::istringstream asked(dir.read("n1/asked")), answered(dir.read("n1/answered"));
  std::int64_t from = 0, to = 0, next = 0;
  asked >> from;
  int rests = 0;
  for (; answered >> to && asked >> next; from = next, ++rests)
    CHECK(next - to >= std::min(6 * (to - from), kSecond / 2));
  CHECK(rests == 4);
}

TEST_CASE("a node that does not become ready is reported with its last output", "[deploy]") {
  const RunDir dir;
  SECTION("it exited") {
    auto config = make_config({{"sh", "-c", "echo cannot find the moon >&2; exit 3"}});
    config.nodes[0].ready = ready_tcp(7000);
    auto deployment = make(config, dir);
    const auto started = deployment->start();
    REQUIRE(!started);
    CHECK(started.error().kind == ErrorKind::inconclusive);
    CHECK(started.error().message == "node n1 exited with status 3 before it was ready");
    CHECK(started.error().hint.find("cannot find the moon") != std::string::npos);
  }
  SECTION("the time limit expired") {
    auto config = make_config({{"sleep", "100"}});
    config.nodes[0].ready = ready_tcp(7000);
    config.nodes[0].ready->timeout_ns = kSecond / 5;
    auto deployment = make(config, dir);
    const auto started = deployment->start();
    REQUIRE(!started);
    CHECK(started.error().kind == ErrorKind::inconclusive);
    CHECK(started.error().message ==
          "node n1 was not ready within 200ms: nothing accepts connections at 10.251.7.1:7000");
  }
  SECTION("its restart policy was exhausted") {
    auto config = make_config({{"sh", "-c", "exit 4"}});
    config.nodes[0].ready = ready_log("never");
    config.nodes[0].restart = config::Restart{kSecond / 100, 3};
    auto deployment = make(config, dir);
    const auto started = deployment->start();
    REQUIRE(!started);
    CHECK(started.error().message ==
          "node n1 exited with status 4 before it was ready; its restart policy started it 3 times");
    CHECK(deployment->starts(0) == 4);
  }
}

TEST_CASE("a command that cannot be executed is an input error", "[deploy]") {
  const RunDir dir;
  SECTION("a missing program is refused before anything starts") {
    auto config = make_config({{"./no-such-program"}});
    const auto made = Deployment::create(config, dir.path, 1, nullptr);
    REQUIRE(!made);
    CHECK(made.error().kind == ErrorKind::input);
    CHECK(made.error().message.find("node n1: command " ROSE_PROGRAMS_DIR "/no-such-program") == 0);
  }
  SECTION("a missing interpreter") {
    std::ofstream(dir.path + "/script") << "#!/no/such/interpreter\n";
    ::chmod((dir.path + "/script").c_str(), 0755);
    auto deployment = make(make_config({{dir.path + "/script"}}), dir);
    const auto started = deployment->start();
    REQUIRE(!started);
    CHECK(started.error().kind == ErrorKind::input);
    CHECK(started.error().message == "node n1: cannot execute " + dir.path + "/script: No such file or directory");
    CHECK(deployment->main_pid(0) == 0);
  }
  SECTION("a missing oracle") {
    auto config = make_config({{"sleep", "100"}});
    config.oracle = config::Oracle{{"no-such-oracle"}, config::OracleWhen::end, kSecond, kSecond};
    const auto made = Deployment::create(config, dir.path, 1, nullptr);
    REQUIRE(!made);
    CHECK(made.error().message.find("oracle: command 'no-such-oracle' is not in PATH") == 0);
  }
  SECTION("a missing command beside the nodes") {
    auto deployment = make(make_config({{"sleep", "100"}}), dir);
    const auto spawned = deployment->spawn({"./gone"}, "workload", kSecond);
    REQUIRE(!spawned);
    CHECK(spawned.error().kind == ErrorKind::input);
  }
  SECTION("an unknown user") {
    auto config = make_config({{"sleep", "100"}});
    config.nodes[0].user = "no-such-user-here";
    const auto made = Deployment::create(config, dir.path, 1, nullptr);
    REQUIRE(!made);
    CHECK(made.error().kind == ErrorKind::input);
    CHECK(made.error().message == "node n1: there is no user 'no-such-user-here' on this machine");
  }
}

TEST_CASE("the restart policy restarts after every end, up to its maximum", "[deploy]") {
  const RunDir dir;
  auto config = make_config({{"sh", "-c", "echo x >> count; exec sleep 100"}});
  config.nodes[0].restart = config::Restart{kSecond / 20, 2};
  Recorder recorder;
  auto deployment = make(config, dir, &recorder);
  REQUIRE_OK(deployment->start());
  // start() does not wait until the node has written its line
  REQUIRE(eventually([&] { return dir.read("n1/count") == "x\n"; }));
  for (int start = 1; start <= 2; ++start) {
    const pid_t before = deployment->main_pid(0);
    const std::int64_t killed = monotonic_ns();
    REQUIRE_OK(deployment->signal(0, start == 1 ? Scope::all : Scope::main, start == 1 ? SIGKILL : SIGTERM));
    REQUIRE(eventually([&] { return deployment->starts(0) == start + 1 && deployment->main_pid(0) != 0; }));
    CHECK(monotonic_ns() - killed >= kSecond / 20);
    CHECK(deployment->main_pid(0) != before);
    CHECK(eventually([&] {
      return dir.read(".n1.pid") == fmt::format("{}\n", deployment->main_pid(0)) &&
             dir.read("n1/count").size() == static_cast<std::size_t>(2 * (start + 1));
    }));
  }
  REQUIRE_OK(deployment->signal(0, Scope::all, SIGKILL));
  REQUIRE(eventually([&] { return recorder.seen().size() == 6; }));
  ::usleep(150'000);  // three times the delay, after which no further start is expected
  CHECK(deployment->starts(0) == 3);
  CHECK(deployment->main_pid(0) == 0);
  CHECK(!std::filesystem::exists(dir.path + "/.n1.pid"));
  CHECK(recorder.seen() == std::vector<std::string>{"start 0", "end 0 signal 9", "start 0", "end 0 signal 15",
                                                    "start 0", "end 0 signal 9"});
  const auto again = deployment->signal(0, Scope::all, SIGKILL);
  REQUIRE(!again);
  CHECK(again.error().message == "node n1 is not running");
}

TEST_CASE("leftover processes of an incarnation are killed before the next starts", "[deploy]") {
  const RunDir dir;
  auto config = make_config({{"sh", "-c", "setsid sleep 1000 & exec sleep 1000"}});
  config.nodes[0].restart = config::Restart{kSecond / 100, 1};
  auto deployment = make(config, dir);
  REQUIRE_OK(deployment->start());
  REQUIRE(eventually([&] { return deployment->processes(0).size() == 2; }));
  REQUIRE_OK(deployment->signal(0, Scope::main, SIGKILL));
  REQUIRE(eventually([&] { return deployment->starts(0) == 2; }));
  REQUIRE(eventually([&] { return deployment->processes(0).size() == 2; }));
  ::usleep(20'000);
  CHECK(deployment->processes(0).size() == 2);
}

TEST_CASE("a kill of a forking node ends all its processes", "[deploy]") {
  const RunDir dir;
  auto config = make_config({{kVictim, "tree"}});
  auto deployment = make(config, dir);
  REQUIRE_OK(deployment->start());
  REQUIRE(eventually([&] { return deployment->processes(0).size() == 7; }));
  const std::vector<pid_t> all = deployment->processes(0);
  REQUIRE_OK(deployment->signal(0, Scope::all, SIGKILL));
  CHECK(eventually([&] { return deployment->processes(0).empty() && deployment->main_pid(0) == 0; }));
}

TEST_CASE("a daemonizing node is followed to its end", "[deploy]") {
  const RunDir dir;
  auto config = make_config({{kVictim, "daemon", "7000"}});
  config.nodes[0].ready = ready_tcp(7000);
  Recorder recorder;
  auto deployment = make(config, dir, &recorder);
  REQUIRE_OK(deployment->start());
  REQUIRE(eventually([&] {
    const auto pids = deployment->processes(0);
    return pids.size() == 1 && deployment->main_pid(0) == pids[0];
  }));
  CHECK(deployment->starts(0) == 1);
  CHECK(eventually([&] { return dir.read(".n1.pid") == fmt::format("{}\n", deployment->main_pid(0)); }));
  CHECK(recorder.seen() == std::vector<std::string>{"start 0"});
  REQUIRE_OK(deployment->signal(0, Scope::main, SIGKILL));
  CHECK(eventually([&] { return recorder.seen().size() == 2; }));
  CHECK(deployment->main_pid(0) == 0);
}

TEST_CASE("a daemonizing node that forks again during the search for it is followed as well", "[deploy]") {
  for (int time = 0; time < 5; ++time) {
    const RunDir dir;
    auto config = make_config({{kVictim, "relay", "7000", "60"}});
    config.nodes[0].ready = ready_tcp(7000);
    auto deployment = make(config, dir);
    REQUIRE_OK(deployment->start());
    CHECK(eventually([&] {
      const auto pids = deployment->processes(0);
      return pids.size() == 1 && deployment->main_pid(0) == pids[0];
    }));
  }
}

TEST_CASE("a pause freezes all processes of a node, and no restart happens meanwhile", "[deploy]") {
  const RunDir dir;
  auto config = make_config({{kVictim, "serve", "7000"}});
  config.nodes[0].ready = ready_tcp(7000);
  config.nodes[0].restart = config::Restart{kSecond / 100, 3};
  auto deployment = make(config, dir);
  REQUIRE_OK(deployment->start());
  const NodeInfo& node = deployment->nodes()[0];
  REQUIRE_OK(deployment->pause(0, Scope::all));
  CHECK(cgroup::frozen(node.cgroup));
  CHECK(node_request(dir.path, "status", "n1").value() ==
        fmt::format("n1 paused pid {} starts 1", deployment->main_pid(0)));
  // the kernel accepts the connection, but nothing answers
  CHECK(run(*deployment, {kVictim, "ask", node.ip, "7000"}).code == 2);
  REQUIRE_OK(deployment->signal(0, Scope::all, SIGKILL));  // this also reaches frozen processes
  REQUIRE(eventually([&] { return deployment->main_pid(0) == 0; }));
  ::usleep(100'000);
  CHECK(deployment->starts(0) == 1);
  REQUIRE_OK(deployment->resume(0, Scope::all));
  REQUIRE(eventually([&] { return deployment->starts(0) == 2; }));
  REQUIRE(eventually([&] { return run(*deployment, {kVictim, "ask", node.ip, "7000"}).ok(); }));

  REQUIRE_OK(deployment->pause(0, Scope::main));
  const auto state = [&] {
    const auto stat = read_file(fmt::format("/proc/{}/stat", deployment->main_pid(0))).value();
    return stat[stat.rfind(')') + 2];
  };
  CHECK(eventually([&] { return state() == 'T'; }));
  REQUIRE_OK(deployment->resume(0, Scope::main));
  CHECK(eventually([&] { return state() == 'S'; }));
  REQUIRE_OK(deployment->pause(0, Scope::all));  // stop() must thaw the processes
  const pid_t paused = deployment->main_pid(0);
  deployment->stop();
  CHECK(::kill(paused, 0) != 0);
}

TEST_CASE("a node starts with default state, as its user and without further privileges", "[deploy]") {
  const RunDir dir;
  const bool filtered = GENERATE(false, true);
  INFO("filtered: " << filtered);
  struct Answering : NodeObserver {
    bool filtered = false;
    Fd listener;
    std::vector<int> notified_syscalls(std::size_t) override {
      return filtered ? std::vector<int>{SYS_reboot} : std::vector<int>{};
    }
    void on_listener(std::size_t, pid_t, Fd fd) override { listener = std::move(fd); }
  } observer;
  observer.filtered = filtered;
  auto config = make_config({{kVictim, "state"}});
  // The user nobody may not be able to access the build folder.
  std::filesystem::copy(kVictim, dir.path + "/victim");
  config.nodes[0].command[0] = dir.path + "/victim";
  config.nodes[0].user = "nobody";
  config.nodes[0].ready = ready_log("end of state");
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  ::signal(SIGPIPE, SIG_IGN);
  auto deployment = make(config, dir, &observer);
  REQUIRE_OK(deployment->start());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const std::string state = dir.read("n1/stdout.log");
  INFO(state);
  const auto has = [&](const std::string& line) { return state.find(line) != std::string::npos; };
  CHECK(has("Uid:\t65534\t65534\t65534\t65534"));
  CHECK(has("Gid:\t65534\t65534\t65534\t65534"));
  CHECK(has("CapPrm:\t0000000000000000"));
  CHECK(has("CapEff:\t0000000000000000"));
  CHECK(has("NoNewPrivs:\t0"));
  CHECK(has(filtered ? "Seccomp:\t2" : "Seccomp:\t0"));
  CHECK(has("SigBlk:\t0000000000000000"));
  CHECK(has("SigIgn:\t0000000000000000"));
  CHECK(has("session 1"));
  CHECK(has("fd 2\nsession"));  // descriptors 0, 1 and 2, and no others
  CHECK(has("write: done"));
  CHECK(static_cast<bool>(observer.listener) == filtered);
}

TEST_CASE("placeholders and variables are passed to nodes and commands", "[deploy]") {
  const RunDir dir;
  auto config = make_config({{"sh", "-c",
                              "echo ${node} ${ip} ${ips} ${dir} $KV $ROSE_NODE $ROSE_IP $ROSE_IP_n2; pwd; "
                              "echo ${config_dir} $INHERITED; exec sleep 100"},
                             {"sleep", "100"}});
  config.nodes[0].env["KV"] = "to:${ips}";
  config.nodes[0].ready = ready_log("^" ROSE_PROGRAMS_DIR " inherited$");
  ::setenv("INHERITED", "inherited", 1);
  auto deployment = make(config, dir);
  REQUIRE_OK(deployment->start());
  CHECK(dir.read("n1/stdout.log") ==
        fmt::format("n1 10.251.7.1 10.251.7.1,10.251.7.2 {0}/n1 to:10.251.7.1,10.251.7.2 n1 10.251.7.1 10.251.7.2\n"
                    "{0}/n1\n" ROSE_PROGRAMS_DIR " inherited\n",
                    dir.path));
  CHECK(run(*deployment, {"sh", "-c",
                          "pwd; echo $ROSE_RUN $ROSE_RUN_DIR $ROSE_NODES $ROSE_NODE; echo $ROSE_NETNS_n2; "
                          "echo $ROSE_CGROUP_n2; cat $ROSE_PIDFILE_n2"})
            .ok());
  CHECK(dir.read("command.log") == fmt::format("{0}\n3 {0} n1 n2\n{1}-n2\n{2}\n{3}\n", dir.path, deployment->id(),
                                               deployment->nodes()[1].cgroup.string(), deployment->main_pid(1)));
}

TEST_CASE("a command ends with all its processes", "[deploy]") {
  const RunDir dir;
  auto deployment = make(make_config({{"sleep", "100"}}), dir);
  SECTION("the time limit expires") {
    const CommandResult result = run(
        *deployment, {"sh", "-c", "setsid sh -c 'sleep 1000 & echo $! > pid; wait' & wait"}, "workload", kSecond / 2);
    CHECK(result.timed_out);
    CHECK(!result.ok());
    CHECK(result.note == "timed out after 500ms");
    const std::string pid = split(dir.read("pid"), '\n')[0];
    REQUIRE(!pid.empty());
    CHECK(gone(std::stoi(pid)));
  }
  SECTION("leftover processes") {
    const CommandResult result = run(*deployment, {"sh", "-c", "sleep 1000 & exit 5"}, "workload");
    CHECK(result.code == 5);
    CHECK(result.note == "exited with status 5");
    CHECK(cgroup::processes(kernel::cgroup2_mount().value() / deployment->id() / "rose.commands").empty());
  }
  SECTION("the handle is dropped") {
    auto running = deployment->spawn({"sleep", "1000"}, "workload", 100 * kSecond);
    REQUIRE(running);
    CHECK(!(*running)->finished());
    CHECK(cgroup::processes(kernel::cgroup2_mount().value() / deployment->id() / "rose.commands").size() == 1);
    running->reset();
    CHECK(cgroup::processes(kernel::cgroup2_mount().value() / deployment->id() / "rose.commands").empty());
  }
  SECTION("it is killed") {
    auto running = deployment->spawn({"sleep", "1000"}, "workload", 100 * kSecond);
    const CommandResult result = (*running)->kill();
    CHECK(result.cancelled);
    CHECK(result.signalled);
  }
  SECTION("it ends by its own signal") {
    const CommandResult result = run(*deployment, {"sh", "-c", "kill -SEGV $$"});
    CHECK(result.signalled);
    CHECK(result.code == SIGSEGV);
  }
  SECTION("the deployment stops") {
    auto running = deployment->spawn({"sleep", "1000"}, "workload", 100 * kSecond);
    deployment->stop();
    CHECK((*running)->finished());
    CHECK((*running)->wait().signalled);
  }
}

TEST_CASE("setup and teardown run before and after the nodes", "[deploy]") {
  const RunDir dir;
  auto config = make_config({{"sleep", "100"}});
  config.deployment.teardown = config::Command{"sh", "-c", "echo torn; ls n1 > teardown-saw"};
  SECTION("setup makes the program that a node runs") {
    config.deployment.setup = config::Command{"sh", "-c", "cp /bin/sleep made-by-setup; echo done"};
    config.nodes[0].command = {dir.path + "/made-by-setup", "100"};
    auto deployment = make(config, dir);
    REQUIRE_OK(deployment->start());
    CHECK(dir.read("setup.log") == "done\n");
    deployment->stop();
    CHECK(dir.read("teardown.log") == "torn\n");
    CHECK(dir.read("teardown-saw") == "stderr.log\nstdout.log\n");
  }
  SECTION("teardown runs although setup failed") {
    config.deployment.setup = config::Command{"sh", "-c", "echo no moon; exit 2"};
    auto deployment = make(config, dir);
    const auto started = deployment->start();
    REQUIRE(!started);
    CHECK(started.error().kind == ErrorKind::inconclusive);
    CHECK(started.error().message == "setup exited with status 2");
    CHECK(started.error().hint.find("no moon") != std::string::npos);
    deployment.reset();
    CHECK(dir.read("teardown.log") == "torn\n");
  }
}

TEST_CASE("attached nodes are found, distinguished and stopped", "[deploy]") {
  const RunDir dir;
  auto config = make_config({{}, {}});
  config.deployment.setup = config::Command{
      "sh", "-c",
      "for n in a b; do setsid sh -c 'echo $$ > '$n'.pid.new; mv '$n'.pid.new '$n'.pid; sleep 1000 & wait' & done"};
  config.nodes[0].attach = config::Attach{"a.pid", {}, {}, {}};
  config.nodes[1].attach = config::Attach{"b.pid", {}, {}, {}};
  Recorder recorder;
  auto deployment = make(config, dir, &recorder);
  REQUIRE_OK(deployment->start());
  CHECK(fmt::format("{}\n", deployment->main_pid(0)) == dir.read("a.pid"));
  CHECK(fmt::format("{}\n", deployment->main_pid(1)) == dir.read("b.pid"));
  CHECK(eventually([&] { return deployment->processes(0).size() == 2 && deployment->processes(1).size() == 2; }));
  const auto refused = node_request(dir.path, "stop", "n1");
  REQUIRE(!refused);
  CHECK(refused.error().message == "node n1 is attached: rose neither starts nor stops it");
  REQUIRE_OK(deployment->pause(0, Scope::all));
  REQUIRE_OK(deployment->resume(0, Scope::all));
  REQUIRE_OK(deployment->signal(0, Scope::all, SIGKILL));
  CHECK(eventually([&] { return deployment->processes(0).empty() && deployment->main_pid(0) == 0; }));
  CHECK(deployment->processes(1).size() == 2);
  const pid_t other = deployment->main_pid(1);
  deployment->stop();
  CHECK(gone(other));

  SECTION("the pid file is missing") {
    const RunDir second;
    config.deployment.setup.reset();
    config.nodes.resize(1);
    config.nodes[0].ready = ready_tcp(7000);
    config.nodes[0].ready->timeout_ns = kSecond / 4;
    auto none = make(config, second);
    const auto started = none->start();
    REQUIRE(!started);
    CHECK(started.error().message.find("node n1: pid file: cannot open") == 0);
  }
}

TEST_CASE("root does not open what a node's user puts in place of a log", "[deploy]") {
  const RunDir dir;
  auto config = make_config({{"sleep", "100"}});
  config.nodes[0].user = "nobody";
  auto deployment = make(config, dir);
  REQUIRE_OK(deployment->start());
  const std::string log = dir.path + "/n1/stdout.log";
  const std::string secret = dir.path + "/secret";
  REQUIRE(write_file(secret, "root's\n"));
  REQUIRE(std::filesystem::remove(log));
  std::string problem;
  SECTION("a pipe") {
    REQUIRE(::mkfifo(log.c_str(), 0666) == 0);
    problem = "is not a regular file any more";
  }
  SECTION("a symbolic link") {
    std::filesystem::create_symlink(secret, log);
    problem = "is not a regular file any more";
  }
  SECTION("a hard link to root's file") {
    std::filesystem::create_hard_link(secret, log);
    problem = "belongs to another user";
  }
  SECTION("a regular file of the user") {
    REQUIRE(write_file(log, "before\n"));
    REQUIRE(::chown(log.c_str(), 65534, 65534) == 0);
  }
  std::atomic<bool> answered{false};
  Result<std::string> answer = std::string();
  std::thread asking([&] {
    answer = node_request(dir.path, "restart", "n1");
    answered = true;
  });
  CHECK(eventually([&] { return answered.load(); }, 30 * kSecond));
  // open the file for reading, so that a program that still waits for a reader can continue
  const Fd reader(::open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  asking.join();
  INFO((answer ? *answer : answer.error().message));
  CHECK(answer.has_value() == problem.empty());
  if (!answer) CHECK(answer.error().message == fmt::format("{} {}", log, problem));
  struct stat info{};
  REQUIRE(::stat(secret.c_str(), &info) == 0);
  CHECK(info.st_uid == 0);
  deployment->stop();
}

TEST_CASE("rose node stops, starts, restarts and kills", "[deploy]") {
  const RunDir dir;
  auto config = make_config({{kVictim, "serve", "7000"}, {kVictim, "stubborn"}});
  config.nodes[0].ready = ready_tcp(7000);
  config.nodes[0].restart = config::Restart{kSecond / 100, 9};
  config.nodes[1].ready = ready_log("stubborn");
  Recorder recorder;
  auto deployment = make(config, dir, &recorder);
  CHECK(!node_request(dir.path, "status", "n1"));  // it was not started
  REQUIRE_OK(deployment->start());
  struct stat socket{};
  REQUIRE(::stat((dir.path + "/" + kControlSocket).c_str(), &socket) == 0);
  CHECK((socket.st_mode & 0777) == 0600);
  const auto ask = [&](std::string_view action, std::string_view node) { return node_request(dir.path, action, node); };

  CHECK(ask("status", "n1").value() == fmt::format("n1 up pid {} starts 1", deployment->main_pid(0)));
  CHECK(ask("stop", "n1").value() == "n1 down starts 1");
  CHECK(ask("stop", "n1").value() == "n1 down starts 1");
  ::usleep(100'000);  // ten times the restart delay
  CHECK(deployment->main_pid(0) == 0);
  const auto up = [&](int starts) { return fmt::format("n1 up pid {} starts {}", deployment->main_pid(0), starts); };
  const auto says = [&](std::string_view action, int starts) {
    const std::string answer = ask(action, "n1").value();  // must be evaluated before main_pid()
    return answer == up(starts);
  };
  CHECK(says("start", 2));
  CHECK(run(*deployment, {kVictim, "ask", "10.251.7.1", "7000"}).ok());  // because start waits until the node is ready
  CHECK(says("start", 2));
  CHECK(says("restart", 3));
  CHECK(ask("kill", "n1").value() == "n1 down starts 3");
  CHECK(says("restart", 4));
  CHECK(recorder.seen() == std::vector<std::string>{"start 0", "start 1", "planned 0 true", "end 0 signal 15 planned",
                                                    "start 0", "planned 0 false", "planned 0 true",
                                                    "end 0 signal 15 planned", "start 0", "planned 0 false",
                                                    "planned 0 true", "end 0 signal 9 planned", "start 0",
                                                    "planned 0 false"});
  // After the planned ends, an unplanned end is reported as unplanned again.
  REQUIRE_OK(deployment->signal(0, Scope::all, SIGKILL));
  CHECK(eventually([&] { return deployment->starts(0) == 5; }));
  CHECK(std::as_const(recorder.ends).back().planned == false);

  SECTION("invalid requests are refused") {
    const auto unknown = ask("stop", "n11");
    REQUIRE(!unknown);
    CHECK(unknown.error().kind == ErrorKind::usage);
    CHECK(unknown.error().message == "there is no node 'n11'");
    CHECK(unknown.error().hint == "did you mean 'n1'?");
    CHECK(ask("stopp", "n1").error().hint == "did you mean 'stop'?");
    CHECK(ask("stop", std::string(2000, 'x')).error().kind == ErrorKind::usage);
    const RunDir other;
    const auto none = node_request(other.path, "stop", "n1");
    REQUIRE(!none);
    CHECK(none.error().kind == ErrorKind::usage);
    CHECK(none.error().hint.find("ROSE_RUN_DIR") != std::string::npos);
    CHECK(!node_request("/no/such/folder", "stop", "n1"));
  }
  SECTION("a stop that becomes a kill while the run ends") {
    std::thread stopping([&] {
      const auto answer = ask("stop", "n2");
      CHECK(!answer);  // because the run ended first
    });
    REQUIRE(eventually([&] { return recorder.seen().back() == "planned 1 true"; }));
    deployment->stop();
    stopping.join();
  }
}

TEST_CASE("a node killed during its start counts as ended", "[deploy]") {
  const RunDir dir;
  struct Killing : Recorder {
    Deployment* deployment = nullptr;
    Fd listener;
    std::vector<int> notified_syscalls(std::size_t) override { return {SYS_execve, SYS_futex, SYS_exit_group}; }
    void on_listener(std::size_t node, pid_t, Fd fd) override {
      listener = std::move(fd);
      CHECK(deployment->signal(node, Scope::all, SIGKILL));
    }
  } observer;
  auto deployment = make(make_config({{"sleep", "100"}}), dir, &observer);
  observer.deployment = deployment.get();
  REQUIRE_OK(deployment->start());  // without `ready`, it is enough that the node has started
  CHECK(eventually([&] { return observer.seen() == std::vector<std::string>{"start 0", "end 0 signal 9"}; }));
  CHECK(deployment->main_pid(0) == 0);
}

TEST_CASE("the seccomp listener is handed over before the execve", "[deploy]") {
  const RunDir dir;
  // Lets every call continue, and records it.
  struct Supervisor : Recorder {
    Fd listener;
    std::thread thread;
    std::atomic<bool> done{false};
    std::mutex calls_mutex;
    std::map<int, int> calls;
    std::vector<int> selected;
    std::vector<int> notified_syscalls(std::size_t) override { return selected; }
    void on_listener(std::size_t, pid_t, Fd fd) override {
      finish();
      done = false;
      listener = std::move(fd);
      thread = std::thread([this] {
        while (!done) {
          pollfd p{listener.get(), POLLIN, 0};
          if (::poll(&p, 1, 20) <= 0 || (p.revents & POLLIN) == 0) continue;
          seccomp_notif request{};
          if (::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) continue;
          {
            std::lock_guard lock(calls_mutex);
            ++calls[request.data.nr];
          }
          seccomp_notif_resp answer{};
          answer.id = request.id;
          answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
          ::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
        }
      });
    }
    void finish() {
      done = true;
      if (thread.joinable()) thread.join();
      listener.reset();
    }
    int count(int number) {
      std::lock_guard lock(calls_mutex);
      return calls[number];
    }
    ~Supervisor() override { finish(); }
  } observer;
  // The child must not call a supervised function before the listener was handed over. If futex is supervised, the
  // child therefore waits by spinning.
  observer.selected = GENERATE(std::vector<int>{SYS_openat, SYS_execve},
                               std::vector<int>{SYS_openat, SYS_execve, SYS_futex, SYS_getppid, SYS_exit_group});
  auto config = make_config({{kVictim, "open", "/etc/hostname"}});
  config.nodes[0].ready = ready_log("open: done");
  config.nodes[0].restart = config::Restart{kSecond / 100, 1};
  auto deployment = make(config, dir, &observer);
  REQUIRE_OK(deployment->start());
  CHECK(observer.count(SYS_execve) == 1);
  const int opens = observer.count(SYS_openat);
  CHECK(opens >= 2);  // the loader and the program each make one
  CHECK(observer.count(SYS_getppid) == 0);
  REQUIRE_OK(deployment->signal(0, Scope::all, SIGKILL));
  REQUIRE(eventually([&] { return observer.count(SYS_openat) == 2 * opens; }));
  CHECK(observer.count(SYS_execve) == 2);
  deployment->stop();
}

TEST_CASE("cancellation ends waits early, and everything is still undone", "[deploy]") {
  // Do this in a child process, because cancellation cannot be undone.
  const RunDir dir;
  int pipe_fds[2];
  REQUIRE(::pipe(pipe_fds) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (!cancel::install()) ::_exit(10);
    auto config = make_config({{kVictim, "serve", "7000"}});
    config.nodes[0].ready = ready_tcp(7001);  // never ready
    config.nodes[0].ready->timeout_ns = 100 * kSecond;
    config.deployment.teardown = config::Command{"touch", "torn"};
    auto deployment = Deployment::create(config, dir.path, 1, nullptr);
    if (!deployment) ::_exit(11);
    const std::string id = (*deployment)->id();
    if (::write(pipe_fds[1], id.data(), id.size()) < 0) ::_exit(12);
    const auto started = (*deployment)->start();
    if (started || started.error().kind != ErrorKind::cancelled) ::_exit(13);
    (*deployment)->stop();
    ::_exit(0);
  }
  char id[64] = {};
  REQUIRE(::read(pipe_fds[0], id, sizeof id - 1) > 0);
  ::close(pipe_fds[0]);
  ::close(pipe_fds[1]);
  REQUIRE(eventually([&] { return dir.read("n1/stdout.log") == "serving as n1\n"; }));
  ::kill(child, SIGTERM);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(traces_of(id).empty());
  CHECK(std::filesystem::exists(dir.path + "/torn"));
}

TEST_CASE("a second Ctrl-C ends a hanging teardown command, and the rest is undone", "[deploy]") {
  const RunDir dir;
  const std::filesystem::path folder = kernel::cgroup2_mount().value() / fmt::format("rosetest-hangs-{}", ::getpid());
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (!cancel::install()) ::_exit(10);
    LaunchSpec spec;
    spec.what = "teardown";
    spec.file = "/bin/sh";
    spec.argv = {"sh", "-c", "touch begun; exec sleep 10000"};
    spec.env = {{"PATH", "/usr/bin:/bin"}};
    spec.directory = dir.path;
    spec.stdout_log = spec.stderr_log = dir.path + "/teardown.log";
    spec.cgroup = folder.string();
    cancel::request();
    // Run a command as teardown does after a first Ctrl-C, but with a longer timeout.
    auto teardown = run_beside(spec, {.timeout_ns = 3600 * kSecond, .after_cancel_ns = 3600 * kSecond});
    if (!teardown) ::_exit(11);
    const CommandResult result = (*teardown)->wait();
    ::_exit(result.cancelled && result.note == "interrupted" ? 0 : 12);
  }
  CHECK(eventually([&] { return std::filesystem::exists(dir.path + "/begun"); }, 300 * kSecond));
  ::kill(child, SIGINT);
  int status = -1;
  const bool ended = eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; }, 300 * kSecond);
  if (!ended) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  CHECK(ended);
  CHECK(status == 0);
  CHECK_FALSE(std::filesystem::exists(folder));
  (void)cgroup::destroy(folder);
}

TEST_CASE("leftovers of a stopped deployment are recorded, and heal undoes them", "[deploy]") {
  const RunDir dir;
  auto deployment = make(make_config({{"sleep", "1000"}}), dir);
  REQUIRE_OK(deployment->start());
  const std::string id = deployment->id();
  const std::string name = fmt::format("/run/netns/{}-n1", id);
  while (::umount2(name.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) {
  }
  REQUIRE(::unlink(name.c_str()) == 0);
  REQUIRE(std::filesystem::create_directory(name));  // it is a folder, which `ip netns del` cannot remove
  deployment.reset();
  const auto traces = traces_of(id);
  CHECK(traces.size() == 2);  // the namespace, and the lock file that lists it
  auto healed = heal({id});
  REQUIRE(healed);
  CHECK(healed->failed.size() == 1);
  REQUIRE(std::filesystem::remove(name));
  healed = heal({id});
  REQUIRE(healed);
  CHECK(healed->failed.empty());
  CHECK(traces_of(id).empty());
}

TEST_CASE("heal waits for a child that a killed rose had just forked and that holds the lock", "[deploy]") {
  int pipe_fds[2];
  REQUIRE(::pipe(pipe_fds) == 0);
  const pid_t owner = ::fork();
  REQUIRE(owner >= 0);
  if (owner == 0) {
    auto identity = Identity::create();
    if (!identity) ::_exit(1);
    if (::fork() == 0) {
      ::usleep(300'000);
      ::_exit(0);
    }
    const std::string id = identity->id();
    if (::write(pipe_fds[1], id.data(), id.size()) != static_cast<ssize_t>(id.size())) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  char text[64] = {};
  REQUIRE(::read(pipe_fds[0], text, sizeof text - 1) > 0);
  ::close(pipe_fds[0]);
  ::close(pipe_fds[1]);
  REQUIRE(::waitpid(owner, nullptr, 0) == owner);
  const std::string id = text;
  REQUIRE(std::filesystem::exists(fmt::format("{}/{}.lock", kLockFolder, id)));
  const auto healed = heal({id});
  REQUIRE(healed);
  CHECK(healed->alive.empty());
  CHECK(traces_of(id).empty());
}

TEST_CASE("heal undoes what a killed rose left behind, and nothing of a running rose", "[deploy]") {
  // Fork first, while this process has only one thread, because the child creates threads.
  const RunDir dir;
  int pipe_fds[2];
  REQUIRE(::pipe(pipe_fds) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto config = make_config({{kVictim, "tree"}, {"sleep", "1000"}, {}});
    config.deployment.setup = config::Command{"sh", "-c", "setsid sleep 1000 & echo $! > attached.pid"};
    config.nodes[2].attach = config::Attach{"attached.pid", {}, {}, {}};
    auto deployment = Deployment::create(config, dir.path, 1, nullptr);
    if (!deployment || !(*deployment)->start()) ::_exit(11);
    auto command = (*deployment)->spawn({"sleep", "1000"}, "workload", 1000 * kSecond);
    if (!command) ::_exit(12);
    while ((*deployment)->processes(0).size() != 7) ::usleep(1000);
    if (!(*deployment)->pause(1, Scope::all)) ::_exit(13);
    const std::string id = (*deployment)->id();
    if (::write(pipe_fds[1], id.data(), id.size()) < 0) ::_exit(14);
    for (;;) ::pause();
  }
  char buffer[64] = {};
  ::close(pipe_fds[1]);
  REQUIRE(::read(pipe_fds[0], buffer, sizeof buffer - 1) > 0);
  ::close(pipe_fds[0]);
  const std::string id = buffer;
  const RunDir living_dir;
  auto living = make(make_config({{"sleep", "1000"}}), living_dir);
  REQUIRE_OK(living->start());
  const std::vector<std::string> chosen = {id, living->id()};

  // As long as the child lives, heal() must not touch anything that belongs to it.
  auto healed = heal(chosen);
  REQUIRE(healed);
  CHECK(healed->undone.empty());
  CHECK(healed->alive.size() == 2);

  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  const std::filesystem::path folder = kernel::cgroup2_mount().value() / id;
  CHECK(cgroup::processes(folder).size() == 10);  // 7 of the tree, 1 sleep, 1 attached, 1 workload
  healed = heal(chosen);
  REQUIRE(healed);
  CHECK(healed->failed.empty());
  CHECK(healed->alive.size() == 1);
  for (const std::string& line : healed->undone) UNSCOPED_INFO(line);
  CHECK(healed->undone.size() == 6);  // the cgroup, 4 namespaces, the socket
  CHECK(healed->undone.front() == fmt::format("cgroup {}: ended 10 processes, removed", id));
  CHECK(traces_of(id).empty());
  CHECK(!std::filesystem::exists(dir.path + "/" + kControlSocket));
  healed = heal(chosen);
  REQUIRE(healed);
  CHECK(healed->undone.empty());
  CHECK(living->main_pid(0) != 0);

  SECTION("heal removes resources by name alone, without a lock file") {
    const std::string name = "rose-zz" + std::to_string(::getpid());
    REQUIRE_OK(cgroup::make(kernel::cgroup2_mount().value() / name));
    REQUIRE(run_command({"ip", "netns", "add", name}).value().exit_code == 0);
    const auto by_name = heal({name});
    REQUIRE(by_name);
    CHECK(by_name->undone.size() == 2);
    CHECK(traces_of(name).empty());
  }
}

TEST_CASE("without the privilege for namespaces one environment error is reported", "[deploy]") {
  const RunDir dir;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // Act like root in a container, which may remove files, but no namespaces or networks.
    kernel::CapabilitySets sets;
    if (!kernel::get_capabilities(sets)) ::_exit(10);
    for (auto* set : {&sets.effective, &sets.permitted})
      *set &= ~kernel::Capabilities{CAP_SYS_ADMIN, CAP_NET_ADMIN}.bits();
    if (!kernel::set_capabilities(sets)) ::_exit(11);
    const auto made = Deployment::create(make_config({{"sleep", "1"}}), dir.path, 1, nullptr);
    if (made) ::_exit(12);
    if (made.error().kind != ErrorKind::environment) ::_exit(13);
    ::_exit(made.error().hint.find("--privileged") != std::string::npos ? 0 : 14);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("fifty deployments leave nothing behind", "[deploy]") {
  auto config = make_config({{kVictim, "serve", "7000"}, {kVictim, "serve", "7000"}, {kVictim, "serve", "7000"}});
  for (auto& node : config.nodes) node.ready = ready_tcp(7000);
  Recorder recorder;
  std::vector<std::string> ids;
  double created = 0, started = 0, stopped = 0;
  const auto cycle = [&] {
    const RunDir dir;
    const std::int64_t t0 = monotonic_ns();
    auto deployment = make(config, dir, &recorder);
    const std::int64_t t1 = monotonic_ns();
    REQUIRE_OK(deployment->start());
    const std::int64_t t2 = monotonic_ns();
    ids.push_back(deployment->id());
    REQUIRE(run(*deployment, {"true"}).ok());
    const std::int64_t t3 = monotonic_ns();
    deployment.reset();
    created += static_cast<double>(t1 - t0) / 1e6;
    started += static_cast<double>(t2 - t1) / 1e6;
    stopped += static_cast<double>(monotonic_ns() - t3) / 1e6;
  };
  cycle();  // creates the folders in /run that are created only once
  created = started = stopped = 0;
  const Holdings before = holdings();
  for (int i = 0; i < 50; ++i) cycle();
  const Holdings after = holdings();
  std::cout << fmt::format("three nodes, mean of 50: create {:.1f} ms, start {:.1f} ms, stop {:.1f} ms\n", created / 50,
                           started / 50, stopped / 50);
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.children == before.children);
  CHECK(after.threads == before.threads);
  // Other processes may create some links meanwhile. A deployment that left a link behind would leave at least 50.
  std::size_t links = 0;
  for (const std::string& link : after.host_links) links += before.host_links.contains(link) ? 0 : 1;
  CHECK(links < 50);
  REQUIRE(std::set<std::string>(ids.begin(), ids.end()).size() == 51);
  for (const std::string& id : ids) CHECK(traces_of(id).empty());
  const auto listed = run_command({"ip", "netns"}).value().out;
  for (const std::string& id : ids) CHECK(listed.find(id) == std::string::npos);
}
