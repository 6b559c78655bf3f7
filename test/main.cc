// The main of every test program: Catch2's, after a look at whether the tests can run here at all, and with a list of
// the cases that could not. When no case could, the program has skipped: exit 77.
#define CATCH_CONFIG_RUNNER
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "skip.h"

namespace {

struct Cases {
  std::size_t run = 0;
  std::map<std::string, std::set<std::string>> skipped;  // by name: what is missing
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
};
CATCH_REGISTER_LISTENER(Counter)

}  // namespace

void rose::test::skip_case(const std::string& missing) {
  cases().skipped[Catch::getResultCapture().getCurrentTestName()].insert(missing);
  throw Catch::TestFailureException();  // ends the case; what failed is reported elsewhere, and here nothing did
}

int main(int argc, char** argv) {
  if (std::getenv("ROSE_TEST_NEEDS_ROOT") != nullptr && ::geteuid() != 0) {
    std::puts("SKIPPED: needs root (namespaces, cgroups, BPF)");
    return 77;
  }
  const int failed = Catch::Session().run(argc, argv);
  const Cases& all = cases();
  for (const auto& [name, reasons] : all.skipped) {
    for (const std::string& missing : reasons) std::printf("SKIPPED: %s: %s\n", name.c_str(), missing.c_str());
  }
  if (!all.skipped.empty()) std::printf("%zu of %zu test cases skipped\n", all.skipped.size(), all.run);
  return failed == 0 && all.run > 0 && all.skipped.size() == all.run ? 77 : failed;
}
