// Capabilities are dropped, in separate child processes.
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kernel/privilege.h"

namespace rose::kernel {
namespace {

// Returns the exit code of a child, which may change its own privileges freely.
int in_child(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::uint64_t status_set(const std::string& key) {
  std::ifstream file("/proc/thread-self/status");
  std::string line;
  while (std::getline(file, line))
    if (line.starts_with(key + ":")) return std::stoull(line.substr(key.size() + 1), nullptr, 16);
  return ~std::uint64_t{0};
}

TEST_CASE("dropped capabilities are removed from every set, and kept ones remain") {
  if (::geteuid() != 0) return;
  CHECK(in_child([] {
          const Capabilities keep{CAP_BPF, CAP_NET_ADMIN};
          if (!drop_capabilities(keep)) return 1;
          if (status_set("CapEff") != keep.bits()) return 2;
          if (status_set("CapPrm") != keep.bits()) return 3;
          if (status_set("CapBnd") != keep.bits()) return 4;
          if (status_set("CapInh") != 0 || status_set("CapAmb") != 0) return 5;
          if (status_set("NoNewPrivs") != 1) return 6;
          return 0;
        }) == 0);
  // The same for a process with ambient capabilities.
  CHECK(in_child([] {
          if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, CAP_BPF, 0, 0) != 0) return 1;
          if (!drop_capabilities({})) return 2;
          return effective_capabilities().empty() && status_set("CapBnd") == 0 ? 0 : 3;
        }) == 0);
}

TEST_CASE("every thread drops its capabilities, and commands may still run as root") {
  if (::geteuid() != 0) return;
  CHECK(in_child([] {
          std::atomic<int> found = 0;
          std::atomic<bool> over = false;
          std::vector<std::thread> threads;
          for (int i = 0; i < 8; ++i)
            threads.emplace_back([&] {
              while (!over) std::this_thread::yield();
              if (status_set("CapPrm") == (std::uint64_t{1} << CAP_BPF)) ++found;
            });
          if (!drop_capabilities({CAP_BPF}, Commands::as_root)) return 1;
          over = true;
          for (auto& thread : threads) thread.join();
          if (found != 8) return 2;
          if (status_set("NoNewPrivs") != 0) return 3;
          // A program that is executed has root's capabilities again.
          return std::system("grep -q '^CapEff:.*[1-9a-f][0-9a-f]*ff$' /proc/self/status") == 0 ? 0 : 4;
        }) == 0);
}

TEST_CASE("missing capabilities are listed one by one") {
  if (::geteuid() != 0) return;
  CHECK(in_child([] {
          if (!drop_capabilities({CAP_BPF})) return 1;
          const auto checked =
              check_capabilities({{CAP_BPF, "to load"}, {CAP_PERFMON, "to attach"}, {CAP_NET_ADMIN, "to see packets"}});
          if (checked) return 2;
          const Error& error = checked.error();
          if (error.kind != ErrorKind::environment) return 3;
          if (error.message != "not permitted: this needs CAP_PERFMON (to attach), CAP_NET_ADMIN (to see packets)")
            return 4;
          if (error.hint.find("cap_perfmon,cap_net_admin+ep") == std::string::npos) return 5;
          return check_capabilities({{CAP_BPF, ""}}) ? 0 : 6;
        }) == 0);
  CHECK(in_child([] {
          if (!drop_capabilities({CAP_SYS_ADMIN})) return 1;
          return check_capabilities({{CAP_BPF, ""}, {CAP_PERFMON, ""}}) ? 0 : 2;
        }) == 0);
}

TEST_CASE("capability sets are printed as text") {
  CHECK(to_text({}) == "none");
  CHECK(to_text({CAP_BPF, CAP_NET_ADMIN}) == "CAP_NET_ADMIN, CAP_BPF");
}

}  // namespace
}  // namespace rose::kernel
