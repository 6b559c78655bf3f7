// Which calls are matched by a CallMatch.
#include "inject/match.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "inject/call.h"
#include "inject/override.h"

using namespace rose;
using namespace rose::inject;

namespace {

struct FakeCall final : CallFacts {
  int nr = SYS_openat;
  std::array<std::uint64_t, 6> arguments{};
  std::vector<std::string> path_list;
  std::string peer_text, local_text, process_text;
  [[nodiscard]] int number() const override { return nr; }
  [[nodiscard]] std::uint64_t argument(int i) const override { return arguments.at(static_cast<std::size_t>(i)); }
  const std::vector<std::string>& paths() override { return path_list; }
  const std::string& peer() override { return peer_text; }
  const std::string& local() override { return local_text; }
  const std::string& process() override { return process_text; }
};

schedule::CallMatch match(const std::string& syscall, std::optional<std::string> path = {}) {
  schedule::CallMatch m;
  m.syscall = syscall;
  m.path = std::move(path);
  return m;
}

}  // namespace

TEST_CASE("addresses match by glob or by port alone") {
  CHECK(address_matches("10.0.0.1:80", "10.0.0.1:80"));
  CHECK(address_matches("10.0.*:80", "10.0.0.1:80"));
  CHECK(address_matches(":80", "10.0.0.1:80"));
  CHECK(address_matches(":80", "[::1]:80"));
  CHECK_FALSE(address_matches(":80", "10.0.0.1:8080"));
  CHECK_FALSE(address_matches("*", ""));
  CHECK(address_matches("unix:/run/*", "unix:/run/x.sock"));
}

TEST_CASE("addresses are printed as in traces") {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(2888);
  v4.sin_addr.s_addr = htonl(0x0a000001);
  CHECK(address_text(&v4, sizeof v4) == "10.0.0.1:2888");
  CHECK(address_text(&v4, 4).empty());
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(1);
  v6.sin6_addr = in6addr_loopback;
  CHECK(address_text(&v6, sizeof v6) == "[::1]:1");
  std::memset(&v6.sin6_addr, 0, 10);
  std::memset(v6.sin6_addr.s6_addr + 10, 0xff, 2);
  std::memcpy(v6.sin6_addr.s6_addr + 12, &v4.sin_addr, 4);
  CHECK(address_text(&v6, sizeof v6) == "10.0.0.1:1");
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  std::strcpy(un.sun_path, "/run/s");
  CHECK(address_text(&un, sizeof un) == "unix:/run/s");
  CHECK(address_text(&un, sizeof(sa_family_t)).empty());
}

TEST_CASE("arguments match by number and by flag") {
  struct Case {
    const char* text;
    std::uint64_t argument;
    bool matches;
  };
  const Case cases[] = {
      {"3", 3, true},
      {"3", 0x100000003, false},
      {"0x10", 16, true},
      {"0644", 0644, true},
      {"-100", 0xffffff9c, true},
      {"-100", 0xffffffffffffff9c, true},
      {"AT_FDCWD", 0xffffff9c, true},
      {"AT_FDCWD", 0xffffffffffffff9c, true},
      {"O_CREAT", O_CREAT | O_WRONLY, true},
      {"O_CREAT", O_WRONLY, false},
      {"O_CREAT|O_TRUNC", O_CREAT | O_WRONLY, false},
      {"O_CREAT | O_TRUNC", O_CREAT | O_TRUNC | O_RDWR, true},
      {"O_RDONLY", O_WRONLY, false},
      {"O_RDONLY", O_CLOEXEC, true},
      {"O_RDWR|O_CREAT", O_CREAT | O_WRONLY, false},
      {"SOCK_STREAM", SOCK_STREAM | SOCK_CLOEXEC, true},
      {"SOCK_STREAM", SOCK_DGRAM, false},
      {"SEEK_END", 2, true},
      {"SEEK_SET", 1, false},
  };
  for (const auto& one : cases) {
    INFO(one.text << " and " << one.argument);
    const auto parsed = parse_argument(1, one.text);
    REQUIRE(parsed);
    CHECK(parsed->matches(one.argument) == one.matches);
  }
  const auto slip = parse_argument(1, "O_CRAET");
  REQUIRE_FALSE(slip);
  CHECK(slip.error().hint == "did you mean 'O_CREAT'?");
  CHECK_FALSE(parse_argument(6, "1"));
  CHECK_FALSE(parse_argument(1, ""));
}

TEST_CASE("call matchers select by call, path and peer") {
  auto opens = CallMatcher::compile(match("open*", "*/log.*"));
  REQUIRE(opens);
  CHECK(opens->selects(SYS_openat));
  CHECK(opens->selects(SYS_open));
  CHECK_FALSE(opens->selects(SYS_read));
  FakeCall call;
  CHECK_FALSE(opens->matches(call));
  call.path_list = {"/x/other", "/data/log.1"};
  CHECK(opens->matches(call));  // one of the call's two paths is enough
  call.nr = SYS_read;
  CHECK_FALSE(opens->matches(call));
  CHECK(opens->describe() == "open*(*/log.*)");

  auto narrow = match("openat");
  narrow.process = "java*";
  narrow.args[2] = "O_CREAT";
  const auto matcher = CallMatcher::compile(narrow);
  REQUIRE(matcher);
  call.nr = SYS_openat;
  call.process_text = "java";
  CHECK_FALSE(matcher->matches(call));
  call.arguments[2] = O_CREAT;
  CHECK(matcher->matches(call));
  call.process_text = "python";
  CHECK_FALSE(matcher->matches(call));
}

TEST_CASE("a matcher that cannot match anything is refused") {
  const auto unknown = CallMatcher::compile(match("fdatasinc"));
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().kind == ErrorKind::input);
  CHECK(unknown.error().hint == "did you mean 'fdatasync'?");
  CHECK_FALSE(CallMatcher::compile(match("getpid", "*/x")));
  CHECK_FALSE(CallMatcher::compile(match("exit_group")));
  CHECK_FALSE(CallMatcher::compile(match("nothing*")));
  auto peer = match("mkdir");
  peer.peer = ":1";
  CHECK_FALSE(CallMatcher::compile(peer));
}

TEST_CASE("the override backend gets each call's arguments for file and peer") {
  const auto arguments = [](const char* name) { return arguments_of(kernel::find_syscall(name)->number); };
  CHECK(arguments("connect").sockaddr == 1);
  CHECK(arguments("connect").binds == 0);
  CHECK(arguments("bind").binds == 1);
  for (const char* sender : {"sendmsg", "sendmmsg"}) CHECK(arguments(sender).message == 1);
  for (const char* other : {"sendto", "recvmsg", "recvmmsg", "write"}) CHECK(arguments(other).message == 0);
  CHECK(arguments("renameat2").path2 == 3);
}

TEST_CASE("a call with two paths matches by either one or by both") {
  FakeCall call;
  call.nr = SYS_rename;
  call.path_list = {"/data/epoch.tmp", "/data/epoch"};
  const auto matches = [&](std::optional<std::string> path, std::optional<std::string> path2) {
    schedule::CallMatch wanted = match("rename*", std::move(path));
    wanted.path2 = std::move(path2);
    const auto compiled = CallMatcher::compile(wanted);
    REQUIRE(compiled);
    return compiled->matches(call);
  };
  CHECK(matches("*/epoch", {}));
  CHECK(matches("*/epoch.tmp", {}));
  CHECK(matches("*/epoch.tmp", "*/epoch"));
  CHECK(matches({}, "*/epoch"));
  CHECK_FALSE(matches("*/epoch", "*/epoch"));
  CHECK_FALSE(matches("*/epoch", "*/epoch.tmp"));
  CHECK_FALSE(matches({}, "*/epoch.tmp"));
  call.path_list = {"/data/epoch"};  // the call's other path could not be read
  CHECK_FALSE(matches({}, "*/epoch"));

  schedule::CallMatch one_path = match("openat");
  one_path.path2 = "*";
  const auto refused = CallMatcher::compile(one_path);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("`path2` can never match") != std::string::npos);
}
