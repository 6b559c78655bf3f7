// The main() of every test program. It checks whether the tests can run here at all, calls Catch2's main(), and lists
// the cases that could not run. If no case could run, the program exits with 77, which means skipped.
//
// Cases run in a random order, so that none depends on another. The seed is ROSE_TEST_SEED or, without it, the time.
// For each case that failed, the command that repeats it is printed.
#define CATCH_CONFIG_RUNNER
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "skip.h"

namespace {

struct Cases {
  std::size_t run = 0;
  std::map<std::string, std::set<std::string>> skipped;  // the missing features, by name of the case
  std::vector<std::string> failed;
};
Cases& cases() {
  static Cases all;
  return all;
}

class Counter final : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    TestEventListenerBase::testCaseStarting(info);
    ++cases().run;
  }
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    TestEventListenerBase::testCaseEnded(stats);
    if (!stats.totals.testCases.allOk()) cases().failed.push_back(stats.testInfo.name);
  }
};
CATCH_REGISTER_LISTENER(Counter)

// A test that needs root gets its own network namespace, so that its fixed ports are free even while the same test runs
// elsewhere on the machine.
bool enter_own_network() {
  if (::unshare(CLONE_NEWNET) != 0) return false;
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  const bool up = socket >= 0 && ::ioctl(socket, SIOCSIFFLAGS, &request) == 0;
  ::close(socket);
  return up;
}

// Quotes a test name for the shell, and escapes the characters that have a meaning in patterns of Catch2.
std::string quoted(const std::string& name) {
  std::string text = "'";
  for (const char c : name) {
    if (c == ',' || c == '[' || c == ']' || c == '\\') text += '\\';
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return text + "'";
}

// Holds a lock until the process ends. Tests that change a setting of the whole machine (ROSE_TEST_ALONE) hold it
// exclusively, and all others share it. It also applies to tests of other clones.
void share_machine() {
  const int lock = ::open("/run/lock/rose-tests", O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
  if (lock >= 0) (void)::flock(lock, std::getenv("ROSE_TEST_ALONE") != nullptr ? LOCK_EX : LOCK_SH);
}

std::string environment() {
  std::string text;
  for (const char* name : {"ROSE_TEST_NEEDS_ROOT", "ROSE_TEST_ALONE", "ROSE_TEST_BACKEND"})
    if (const char* value = std::getenv(name); value != nullptr) text += std::string(name) + "=" + value + " ";
  return text;
}

}  // namespace

void rose::test::skip_case(const std::string& missing) {
  cases().skipped[Catch::getResultCapture().getCurrentTestName()].insert(missing);
  throw Catch::TestFailureException();  // ends the case, which is reported as skipped and not as failed
}

int main(int argc, char** argv) {
  if (std::getenv("ROSE_TEST_NEEDS_ROOT") != nullptr && ::geteuid() != 0) {
    std::puts("SKIPPED: needs root (namespaces, cgroups, BPF)");
    return 77;
  }
  if (std::getenv("ROSE_TEST_NEEDS_ROOT") != nullptr && !enter_own_network()) {
    std::puts("SKIPPED: needs a network namespace of its own");
    return 77;
  }
  share_machine();
  Catch::Session session;
  const char* wanted = std::getenv("ROSE_TEST_SEED");
  const auto seed = wanted != nullptr ? static_cast<unsigned>(std::strtoul(wanted, nullptr, 10))
                                      : static_cast<unsigned>(std::time(nullptr)) ^ static_cast<unsigned>(::getpid());
  session.configData().runOrder = Catch::RunTests::InRandomOrder;
  session.configData().rngSeed = seed;
  if (const int wrong = session.applyCommandLine(argc, argv); wrong != 0) return wrong;
  std::printf("seed %u\n", seed);
  const int failed = session.run();
  const Cases& all = cases();
  if (!all.failed.empty()) std::printf("to repeat what failed:\n");
  for (const std::string& name : all.failed)
    std::printf("  ROSE_TEST_SEED=%u %s%s %s\n", seed, environment().c_str(), argv[0], quoted(name).c_str());
  for (const auto& [name, reasons] : all.skipped) {
    for (const std::string& missing : reasons) std::printf("SKIPPED: %s: %s\n", name.c_str(), missing.c_str());
  }
  if (!all.skipped.empty()) std::printf("%zu of %zu test cases skipped\n", all.skipped.size(), all.run);
  return failed == 0 && all.run > 0 && all.skipped.size() == all.run ? 77 : failed;
}
