// Tests the socket through which `rose node` sends its requests to a deployment.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "deploy/control.h"
#include "deploy/deployment.h"
#include "folder.h"

using namespace rose;
using namespace rose::deploy;

TEST_CASE("if no thread can be started, a request is refused and the deployment continues", "[deploy]") {
  const rose::test::Folder folder;
  REQUIRE(::chmod(folder.path.c_str(), 0777) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // The limit on the number of processes does not apply to root, so the child becomes another user.
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    const auto server = ControlServer::create(
        folder.path,
        [](const std::string& action, const std::string& node) -> Result<std::string> { return action + " " + node; });
    if (!server) ::_exit(3);
    rlimit limit{};
    ::getrlimit(RLIMIT_NPROC, &limit);
    const rlimit none{1, limit.rlim_max};
    ::setrlimit(RLIMIT_NPROC, &none);
    const auto refused = node_request(folder.path, "status", "n1");
    if (refused || refused.error().message.find("thread") == std::string::npos) ::_exit(4);
    ::setrlimit(RLIMIT_NPROC, &limit);
    const auto answer = node_request(folder.path, "status", "n1");
    ::_exit(answer && *answer == "status n1" ? 0 : 5);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
