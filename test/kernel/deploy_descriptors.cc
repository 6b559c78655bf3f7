// Limits of descriptors for processes that belong to another user.
#include <catch2/catch.hpp>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deploy/descriptors.h"
#include "skip.h"

using namespace rose;

TEST_CASE("descriptors of another user's process are limited, or refused if that is not possible") {
  if (::geteuid() != 0) test::skip_case("root");
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // because changing the user has reset it
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  CHECK(::read(ready[0], &byte, 1) == 1);
  deploy::DescriptorLimits limits;
  const auto changed =
      limits.apply([child] { return std::vector<pid_t>{child}; }, 8, [](const std::string&) { return Result<void>{}; });
  if (deploy::DescriptorLimits::may_be_raised()) {  // false without CAP_SYS_RESOURCE
    REQUIRE_FALSE(changed);
    CHECK(changed.error().message.find(std::to_string(child)) != std::string::npos);
  } else {
    REQUIRE(changed);
    CHECK(*changed == 1);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}
