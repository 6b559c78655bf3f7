#include "deploy/environment.h"

#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "base/file.h"
#include "deploy/identity.h"
#include "deploy/launch.h"
#include "deploy/network.h"
#include "deploy/ready.h"
#include "folder.h"

using namespace rose;
using namespace rose::deploy;
using rose::test::Folder;

namespace {

std::vector<NodeInfo> two_nodes() {
  NodeInfo a;
  a.name = "n-1";
  a.ip = "10.1.2.1";
  a.dir = "/run-dir/n-1";
  a.netns = "rose-abcdef-n-1";
  a.cgroup = "/cg/rose-abcdef/rose-n-1";
  a.pid_file = "/run-dir/.n-1.pid";
  NodeInfo b = a;
  b.name = "n2";
  b.index = 1;
  b.ip = "";
  b.netns = "";
  b.cgroup = "";
  b.dir = "/run-dir/n2";
  b.pid_file = "/run-dir/.n2.pid";
  return {a, b};
}

const RunFacts kFacts{"/run-dir", "/conf", 7, false};

}  // namespace

TEST_CASE("a failed command's message names a file that exists only beside the configuration", "[deploy]") {
  const Folder beside, where_it_ran;
  const std::filesystem::path config_dir = beside.path, ran_in = where_it_ran.path;
  std::filesystem::create_directories(config_dir / "bin");
  for (const char* file : {"bin/x.pl", "server.py", "both"}) CHECK(write_file(config_dir / file, "x").has_value());
  CHECK(write_file(ran_in / "both", "x").has_value());
  const auto misplaced = [&](const config::Command& command) { return misplaced_word(command, config_dir, ran_in); };
  CHECK(misplaced({"perl", "bin/x.pl"}) ==
        fmt::format("'bin/x.pl' names no file in {}, where the command ran, but one "
                    "beside the configuration: write '${{config_dir}}/bin/x.pl' for that",
                    ran_in.string()));
  CHECK(misplaced({"python3", "-u", "server.py"}).starts_with("'server.py' names no file in "));
  // the first word is not checked here, because it is looked up beside the configuration anyway
  CHECK(misplaced({"bin/x.pl"}).empty());
  CHECK(misplaced({"perl", "both"}).empty());
  CHECK(misplaced({"perl", "bin/y.pl"}).empty());
  CHECK(misplaced({"perl", "bin"}).empty());  // `bin` is a folder
  CHECK(misplaced({"perl", "${config_dir}/bin/x.pl", "/bin/x.pl", "-x", ""}).empty());
}

TEST_CASE("only rose's placeholders are replaced", "[deploy]") {
  const auto nodes = two_nodes();
  const auto in_node = [&](std::string_view text) { return expand(text, kFacts, nodes, &nodes[0]); };
  CHECK(in_node("${node} ${ip} ${ips} ${dir} ${run_dir} ${config_dir}") ==
        "n-1 10.1.2.1 10.1.2.1,127.0.0.1 /run-dir/n-1 /run-dir /conf");
  CHECK(in_node("--peers=${ips}/x${node}") == "--peers=10.1.2.1,127.0.0.1/xn-1");
  // Shell variables stay as they are, also if a placeholder of rose is inside or beside them. So do incomplete
  // placeholders.
  CHECK(in_node("${HOME} $node ${ node} ${} ${nod") == "${HOME} $node ${ node} ${} ${nod");
  CHECK(in_node("${x:-${ip}}") == "${x:-10.1.2.1}");
  // The placeholder for another node's address contains the name of that node.
  CHECK(in_node("${ip_n_1}:1,${ip_n2}:2,${ip_n3}") == "10.1.2.1:1,127.0.0.1:2,${ip_n3}");
  CHECK(expand("${ip_n_1}", kFacts, nodes, nullptr) == "10.1.2.1");
  // "$${" is replaced by "${".
  CHECK(in_node("$${ip}") == "${ip}");
  CHECK(in_node("$$${ip} $${x $$") == "$${ip} ${x $$");
  CHECK(in_node("").empty());
  // Outside a node, placeholders that stand for a node stay as they are, because they may be shell variables.
  CHECK(expand("${node} ${ips}", kFacts, nodes, nullptr) == "${node} 10.1.2.1,127.0.0.1");
}

TEST_CASE("commands receive the variables of the run", "[deploy]") {
  Variables variables = {{"ROSE_NODE", "of another run"}, {"ROSE_IP_gone", "1.1.1.1"}, {"HOME", "/root"}};
  add_rose_variables(variables, kFacts, two_nodes(), nullptr);
  CHECK(variables == Variables{{"HOME", "/root"},
                               {"ROSE_RUN_DIR", "/run-dir"},
                               {"ROSE_RUN", "7"},
                               {"ROSE_EXEC_SOCKET", "/run-dir/rose.exec.sock"},
                               {"ROSE_NODES", "n-1 n2"},
                               {"ROSE_IP_n_1", "10.1.2.1"},
                               {"ROSE_IP_n2", "127.0.0.1"},
                               {"ROSE_NETNS_n_1", "rose-abcdef-n-1"},
                               {"ROSE_CGROUP_n_1", "/cg/rose-abcdef/rose-n-1"},
                               {"ROSE_PIDFILE_n_1", "/run-dir/.n-1.pid"},
                               {"ROSE_PIDFILE_n2", "/run-dir/.n2.pid"}});
  const auto nodes = two_nodes();
  add_rose_variables(variables, kFacts, nodes, &nodes[1]);
  CHECK(variables["ROSE_NODE"] == "n2");
  CHECK(variables["ROSE_IP"] == "127.0.0.1");
}

TEST_CASE("a program is found by its path or in PATH, and a missing one is refused with a reason", "[deploy]") {
  const Folder folder;
  REQUIRE(write_file(folder.path + "/tool", "#!/bin/sh\n", 0755));
  REQUIRE(write_file(folder.path + "/data", "x", 0644));
  const Variables none = {{"PATH", "/usr/bin:/bin"}};
  const Variables here = {{"PATH", "relative::/nowhere:" + folder.path}};

  CHECK(find_program("./tool", folder.path, none, "node n1").value() == folder.path + "/tool");
  CHECK(find_program("tool", folder.path, here, "node n1").value() == folder.path + "/tool");
  CHECK(find_program("/bin/sh", folder.path, none, "node n1").value() == "/bin/sh");
  CHECK(find_program("sh", folder.path, {}, "node n1"));  // if PATH is not set, the usual folders are searched

  for (const std::string& name : {std::string("tool"), std::string("./nothing"), std::string("./data"),
                                  std::string("./"), std::string(""), folder.path}) {
    const auto found = find_program(name, folder.path, none, "node n1");
    INFO(name);
    REQUIRE(!found);
    CHECK(found.error().kind == ErrorKind::input);
    CHECK(found.error().message.starts_with("node n1: "));
  }
  CHECK(find_program("tool", folder.path, none, "x").error().hint.find("./tool") != std::string::npos);
  CHECK(find_program("./data", folder.path, none, "x").error().hint.find("chmod") != std::string::npos);

  Variables offered = none;
  offer_program(offered, folder.path, "tool");
  CHECK(offered["PATH"] == "/usr/bin:/bin:" + folder.path);
  // PATH already leads to another `tool`, so the offered one must not be used
  offer_program(offered, "/elsewhere", "tool");
  CHECK(offered["PATH"] == "/usr/bin:/bin:" + folder.path);
}

TEST_CASE("interface names are short, and ids are read from names", "[deploy]") {
  CHECK(port_names({"n1", "ten-letter", "eleven-lett", "p2"}) ==
        std::vector<std::string>{"rose-n1", "rose-ten-letter", "rose-_p2", "rose-p2"});
  CHECK(port_names({"a-very-long-name"}) == std::vector<std::string>{"rose-p0"});
  CHECK(id_of("rose-12ab9f-n1") == "rose-12ab9f");
  CHECK(id_of("rose-12ab9f") == "rose-12ab9f");
  CHECK(id_of("rose-12ab9fx-n1") == "rose-12ab9fx-n1");
  CHECK(id_of("rose-mine") == "rose-mine");
}

TEST_CASE("the seccomp filter notifies the selected calls", "[deploy]") {
  CHECK(notify_filter({}).size() == 5);
  const auto filter = notify_filter({0, 257});
  REQUIRE(filter.size() == 9);
  CHECK(filter[4].k == 0);
  CHECK(filter[6].k == 257);
}

// Evaluates a seccomp filter as the kernel does, and returns the filter's result.
std::uint32_t answer_of(const std::vector<sock_filter>& filter, int number, std::array<std::uint64_t, 6> arguments) {
  seccomp_data data{};
  data.nr = number;
  data.arch = AUDIT_ARCH_X86_64;
  std::copy(arguments.begin(), arguments.end(), data.args);
  std::uint32_t value = 0;
  for (std::size_t at = 0; at < filter.size(); ++at) {
    const sock_filter& one = filter[at];
    switch (one.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&value, reinterpret_cast<const char*>(&data) + one.k, sizeof value);
        break;
      case BPF_ALU | BPF_AND | BPF_K: value &= one.k; break;
      case BPF_JMP | BPF_JEQ | BPF_K: at += value == one.k ? one.jt : one.jf; break;
      case BPF_RET | BPF_K: return one.k;
      default: FAIL("an instruction of another kind");
    }
  }
  FAIL("it ends without an answer");
  return 0;
}

TEST_CASE("the seccomp filter notifies relevant clock calls and no others", "[deploy]") {
  constexpr std::uint64_t kTime = 0x7ffd00001000;
  const auto real = notify_filter({SYS_read}, ClockCalls::realtime), all = notify_filter({}, ClockCalls::all);
  const auto notified = [](const std::vector<sock_filter>& filter, int number, std::array<std::uint64_t, 6> arguments) {
    return answer_of(filter, number, arguments) == SECCOMP_RET_USER_NOTIF;
  };
  CHECK(notified(real, SYS_read, {}));
  CHECK_FALSE(notified(all, SYS_read, {}));
  CHECK(notified(real, SYS_arch_prctl, {ARCH_SET_FS}));
  CHECK_FALSE(notified(real, SYS_arch_prctl, {ARCH_GET_FS}));
  CHECK(notified(real, SYS_gettimeofday, {}));
  CHECK(notified(real, SYS_time, {}));
  for (const std::uint64_t clock : {CLOCK_REALTIME, CLOCK_REALTIME_COARSE, CLOCK_TAI})
    CHECK(notified(real, SYS_clock_gettime, {clock}));
  for (const std::uint64_t clock : {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME}) {
    CHECK_FALSE(notified(real, SYS_clock_gettime, {clock}));
    CHECK(notified(all, SYS_clock_gettime, {clock}));
  }
  CHECK_FALSE(notified(all, SYS_clock_gettime, {CLOCK_THREAD_CPUTIME_ID}));
  CHECK(notified(real, SYS_clock_nanosleep, {CLOCK_REALTIME, TIMER_ABSTIME, kTime}));
  CHECK_FALSE(notified(real, SYS_clock_nanosleep, {CLOCK_REALTIME, 0, kTime}));
  CHECK_FALSE(notified(real, SYS_clock_nanosleep, {CLOCK_MONOTONIC, TIMER_ABSTIME, kTime}));
  CHECK(notified(real, SYS_timerfd_settime, {3, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, kTime}));
  CHECK_FALSE(notified(real, SYS_timerfd_settime, {3, 0, kTime}));
  constexpr std::uint64_t kWait = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME;
  CHECK(notified(real, SYS_futex, {1, kWait, 0, kTime}));
  CHECK(notified(real, SYS_futex, {1, kWait | FUTEX_PRIVATE_FLAG, 0, kTime}));
  CHECK_FALSE(notified(all, SYS_futex, {1, kWait, 0, 0}));  // this wait has no time limit
  CHECK_FALSE(notified(real, SYS_futex, {1, FUTEX_WAIT_BITSET, 0, kTime}));
  CHECK(notified(all, SYS_futex, {1, FUTEX_WAIT_BITSET, 0, kTime}));
  CHECK_FALSE(notified(all, SYS_futex, {1, FUTEX_WAIT, 0, kTime}));
  CHECK_FALSE(notified(all, SYS_futex, {1, FUTEX_WAKE, 1, kTime}));
}

TEST_CASE("a log probe reads only its own incarnation's lines", "[deploy]") {
  const Folder folder;
  const std::string path = folder.path + "/stdout.log";
  REQUIRE(write_file(path, "old: ready\n"));
  auto probe = log_probe("ready (now|soon)|^long.*end$", {{path, 11}, {folder.path + "/absent.log", 0}});
  REQUIRE(probe);
  CHECK(!(*probe)->ready().value());
  const auto append = [&](const std::string& text) { REQUIRE(write_file(path, read_file(path).value() + text)); };
  append("not yet rea");
  CHECK(!(*probe)->ready().value());
  append("dy");
  CHECK(!(*probe)->ready().value());
  append(" now");  // this line has no end yet
  CHECK((*probe)->ready().value());

  REQUIRE(!log_probe("(", {}));
  CHECK(log_probe("(", {}).error().kind == ErrorKind::input);
  // On a line as long as this, a recursive matcher would overflow the stack.
  auto hostile = log_probe("^(a|b)*c", {{path, 0}});
  REQUIRE(write_file(path, std::string(1'000'000, 'a') + "\n"));
  CHECK(!(*hostile)->ready().value());
}

TEST_CASE("a log probe reads no file outside the node's folder", "[deploy]") {
  const Folder folder, elsewhere;
  REQUIRE(write_file(elsewhere / "log", "ready\n"));
  std::filesystem::create_symlink(elsewhere / "log", folder / "server.log");
  std::filesystem::create_symlink(elsewhere.path, folder / "logs");
  for (const char* name : {"server.log", "logs/log"}) {
    auto probe = log_probe("ready", {{folder / name, 0, folder.path}});
    REQUIRE(probe);
    CHECK_FALSE((*probe)->ready().value());
  }
  std::filesystem::create_symlink(elsewhere / "log", folder / "stderr.log");
  CHECK(last_words(folder.path).text.empty());
}

TEST_CASE("a log probe does not block on a pipe", "[deploy]") {
  const Folder folder;
  const std::string path = folder.path + "/stdout.log";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  std::atomic<bool> read{false};
  std::thread reading([&] {
    auto probe = log_probe("ready", {{path, 0}});
    CHECK(!(*probe)->ready().value());
    CHECK(tail(path, 3).empty());
    read = true;
  });
  for (int i = 0; i < 10'000 && !read; ++i) ::usleep(1000);
  CHECK(read);
  while (!read) {
    // because of this writer, opening the pipe for reading does not wait
    const Fd writer(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    ::usleep(1000);
  }
  reading.join();
}

TEST_CASE("the tail of a log is limited in lines and bytes", "[deploy]") {
  const Folder folder;
  const std::string path = folder.path + "/log";
  CHECK(tail(path, 3).empty());
  REQUIRE(write_file(path, "1\n2\n3\n4\n\n"));
  CHECK(tail(path, 2) == "3\n4");
  CHECK(tail(path, 9) == "1\n2\n3\n4");
  REQUIRE(write_file(path, "java.io.IOException\n\tat A.b(A.java:1)\n"));
  CHECK(tail(path, 2) == "java.io.IOException\n    at A.b(A.java:1)");
  REQUIRE(write_file(path, std::string(5000, 'x')));
  CHECK(tail(path, 2).size() == 2048);
}

TEST_CASE("the last output of a node is its stderr, or else its stdout", "[deploy]") {
  const Folder folder;
  CHECK(last_words(folder.path).text.empty());
  REQUIRE(write_file(folder.path + "/stdout.log", "ERROR no such class\n"));
  REQUIRE(write_file(folder.path + "/stderr.log", "Picked up JAVA_TOOL_OPTIONS: \"-agentpath:rose-jvm.so\"\n"));
  CHECK(last_words(folder.path).log == "stdout.log");
  CHECK(last_words(folder.path).text == "ERROR no such class");
  REQUIRE(write_file(folder.path + "/stderr.log", "Picked up JAVA_TOOL_OPTIONS: x\nException in thread main\n"));
  CHECK(last_words(folder.path).log == "stderr.log");
  CHECK(last_words(folder.path).text == "Exception in thread main");
}
