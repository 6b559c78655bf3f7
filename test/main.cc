// The main of every test program: Catch2's, after a look at whether the tests can run here at all.
#define CATCH_CONFIG_RUNNER
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>

int main(int argc, char** argv) {
  if (std::getenv("ROSE_TEST_NEEDS_ROOT") != nullptr && ::geteuid() != 0) {
    std::puts("SKIPPED: needs root (namespaces, cgroups, BPF)");
    return 77;
  }
  return Catch::Session().run(argc, argv);
}
