// The control socket of a tracer, without a tracer.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "folder.h"
#include "observe/control.h"
#include "trace/dump.h"

using namespace rose;
using namespace rose::observe;
using rose::test::Folder;
namespace fs = std::filesystem;

namespace {

Result<trace::Trace> some(int events) {
  trace::Trace trace;
  trace.meta.node = "n1";
  trace.meta.nodes = {"n1"};
  trace.meta.lost = 3;
  for (int i = 0; i < events; ++i) {
    trace::Event event;
    event.ts_ns = 1000 + i;
    event.node = trace.strings.intern("n1");
    event.syscall = 257;
    event.err = 2;
    event.path = trace.strings.intern("/p/" + std::to_string(i));
    trace.events.push_back(event);
  }
  return trace;
}

// A source that serves a dump of `events` events, as a tracer does.
ControlServer::Source serves(int events) {
  return [events](const trace::DumpWriter::Sink& sink) -> Result<std::string> {
    const auto bytes = trace::dump_to_bytes(*some(events));
    if (!bytes) return Unexpected(bytes.error());
    // The pieces do not begin or end where records do.
    for (std::size_t at = 0; at < bytes->size(); at += 777) {
      if (auto sent = sink(std::string_view(*bytes).substr(at, 777)); !sent) return Unexpected(sent.error());
    }
    return fmt::format("{} events, 3 lost", events);
  };
}

Fd dial(const fs::path& socket) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
  REQUIRE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return fd;
}

}  // namespace

TEST_CASE("a dump requested over the socket contains the tracer's window") {
  const Folder folder;
  const auto socket = folder / "sub" / "t.sock", out = folder / "dump.bin";
  {
    auto server = ControlServer::start(socket, serves(5000));
    REQUIRE(server);
    struct stat status{};
    REQUIRE(::stat(socket.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
    for (int round = 0; round < 3; ++round) {
      const auto answer = request_dump(socket, out, 0);
      REQUIRE(answer);
      CHECK(*answer == "5000 events, 3 lost");
      const auto read = trace::read_dump(out);
      REQUIRE(read);
      CHECK_FALSE(read->damage);
      CHECK(read->trace.events.size() == 5000);
      CHECK(read->trace.str(read->trace.events[4999].path) == "/p/4999");
      REQUIRE(::stat(out.c_str(), &status) == 0);
      CHECK((status.st_mode & 0777) == 0600);
    }
  }
  CHECK_FALSE(fs::exists(socket));
}

TEST_CASE("a delayed dump request does not block other requests") {
  const Folder folder;
  const auto socket = folder / "t.sock";
  std::atomic<int> asked = 0;
  auto server = ControlServer::start(socket, [&](const trace::DumpWriter::Sink& sink) {
    ++asked;
    return serves(1)(sink);
  });
  REQUIRE(server);
  const Fd silent = dial(socket);  // this client connects, but never sends a request
  // The request with the shorter delay must be answered first. On a busy machine it may be sent too late. The test is
  // then repeated with longer delays.
  for (std::int64_t wait_ns = 400'000'000;; wait_ns *= 4) {
    REQUIRE(wait_ns < 1000'000'000'000);
    asked = 0;
    const auto begin = monotonic_ns();
    std::int64_t waited = 0;
    std::thread slow([&] {
      if (request_dump(socket, folder / "slow", wait_ns)) waited = monotonic_ns() - begin;
    });
    const bool quick = request_dump(socket, folder / "quick", 0).has_value();
    const int then = asked;
    const bool in_time = monotonic_ns() - begin < wait_ns;
    slow.join();
    CHECK(quick);
    CHECK(asked == 2);
    CHECK(waited >= wait_ns);
    if (!in_time) continue;
    CHECK(then == 1);
    break;
  }
}

TEST_CASE("the tracer's errors are returned to the client") {
  const Folder folder;
  const auto socket = folder / "t.sock", out = folder / "dump.bin";
  auto server = ControlServer::start(socket, [](const trace::DumpWriter::Sink&) -> Result<std::string> {
    return fail(ErrorKind::environment, "no\nwindow", "look\taround");
  });
  REQUIRE(server);
  const auto answer = request_dump(socket, out, 0);
  REQUIRE_FALSE(answer);
  CHECK(answer.error().kind == ErrorKind::environment);
  CHECK(answer.error().message.find("no window") != std::string::npos);
  CHECK(answer.error().hint == "look around");
  CHECK_FALSE(fs::exists(out));
}

TEST_CASE("a stale socket is replaced, one in use and other files are not") {
  const Folder folder;
  const auto socket = folder / "t.sock";
  {
    const Fd stale(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
    REQUIRE(::bind(stale.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  CHECK_FALSE(request_dump(socket, folder / "d", 0));
  auto first = ControlServer::start(socket, serves(1));
  REQUIRE(first);
  auto second = ControlServer::start(socket, serves(2));
  REQUIRE_FALSE(second);
  CHECK(second.error().kind == ErrorKind::usage);
  CHECK(second.error().hint.find("--control") != std::string::npos);
  CHECK(request_dump(socket, folder / "d", 0).value() == "1 events, 3 lost");

  std::ofstream(folder / "file") << "mine";
  CHECK_FALSE(ControlServer::start(folder / "file", serves(1)));
  CHECK(fs::file_size(folder / "file") == 4);
  CHECK_FALSE(request_dump(folder / "none", folder / "d2", 0));
  CHECK_FALSE(fs::exists(folder / "d2"));
}

TEST_CASE("the control socket's path may be longer than a socket address") {
  const Folder folder;
  const auto deep = folder / std::string(100, 'd') / std::string(100, 'e');
  fs::create_directories(deep);
  const auto socket = deep / "trace.sock";
  auto server = ControlServer::start(socket, serves(7));
  REQUIRE(server);
  CHECK(request_dump(socket, folder / "d", 0).value() == "7 events, 3 lost");
  server->reset();
  CHECK_FALSE(fs::exists(socket));
  CHECK_FALSE(ControlServer::start(deep / std::string(120, 'n'), serves(1)));
}

TEST_CASE("invalid requests are refused, and the server continues") {
  const Folder folder;
  const auto socket = folder / "t.sock";
  auto server = ControlServer::start(socket, serves(1));
  REQUIRE(server);
  {
    const Fd fd = dial(socket);
    REQUIRE(::send(fd.get(), "GET / HTTP/1.1\n", 15, MSG_NOSIGNAL) == 15);
    char answer[512] = {};
    REQUIRE(::recv(fd.get(), answer, sizeof answer - 1, 0) > 0);
    CHECK(std::string(answer).starts_with("rose 2 error "));
  }
  {
    const Fd fd = dial(socket);
    const std::string endless(1 << 16, 'x');
    (void)::send(fd.get(), endless.data(), endless.size(), MSG_NOSIGNAL);
  }
  std::vector<Fd> many;
  for (int i = 0; i < 10; ++i) many.push_back(dial(socket));
  CHECK(request_dump(socket, folder / "d", 0));
}

TEST_CASE("another user's lock on the socket's folder does not block a tracer's start") {
  const Folder folder;
  // Every user may open /run/rose, and therefore can lock it.
  const Fd stranger(::open(folder.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(stranger.get(), LOCK_EX) == 0);
  std::atomic<bool> done = false;
  bool started = false;
  std::thread tracer([&] {
    const auto server = ControlServer::start(folder / "t.sock", serves(1));
    started = server.has_value() && request_dump(folder / "t.sock", folder / "d", 0).has_value();
    done = true;
  });
  for (int i = 0; i < 1000 && !done; ++i) ::usleep(10'000);
  const bool in_time = done;
  ::flock(stranger.get(), LOCK_UN);
  tracer.join();
  CHECK(in_time);
  CHECK(started);
  fs::remove(folder / "d");
  CHECK(fs::is_empty(folder.path));
}

TEST_CASE("of tracers that start on one socket at the same time exactly one gets it") {
  const Folder folder;
  const auto socket = folder / "t.sock";
  for (int round = 0; round < 20; ++round) {
    {
      const Fd stale(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
      REQUIRE(::bind(stale.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    }
    std::vector<std::unique_ptr<ControlServer>> servers(4);
    std::vector<std::thread> tracers;
    for (auto& server : servers) {
      tracers.emplace_back([&] {
        if (auto started = ControlServer::start(socket, serves(1))) server = std::move(*started);
      });
    }
    for (auto& tracer : tracers) tracer.join();
    CHECK(std::count_if(servers.begin(), servers.end(), [](const auto& server) { return server != nullptr; }) == 1);
    CHECK(request_dump(socket, folder / "d", 0));
  }
}

TEST_CASE("a lock file that is a symbolic link is refused") {
  const Folder folder;
  REQUIRE(::symlink("/etc/passwd", (folder / "t.sock.lock").c_str()) == 0);
  const auto refused = ControlServer::start(folder / "t.sock", serves(1));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::usage);
  CHECK(refused.error().hint.find("--control") != std::string::npos);
}

TEST_CASE("if no thread can be started, a request is refused and the tracer continues") {
  const Folder folder;
  REQUIRE(::chmod(folder.path.c_str(), 0777) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // The limit on the number of processes does not apply to root, so the child becomes another user.
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    const auto socket = folder / "t.sock";
    auto server = ControlServer::start(socket, serves(1));
    if (!server) ::_exit(3);
    rlimit limit{};
    ::getrlimit(RLIMIT_NPROC, &limit);
    const rlimit none{1, limit.rlim_max};
    ::setrlimit(RLIMIT_NPROC, &none);
    const auto refused = request_dump(socket, folder / "d", 0);
    if (refused || refused.error().message.find("thread") == std::string::npos) ::_exit(4);
    if (ControlServer::start(folder / "second.sock", serves(1))) ::_exit(5);
    ::setrlimit(RLIMIT_NPROC, &limit);
    ::_exit(request_dump(socket, folder / "d", 0) ? 0 : 6);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

namespace {

// A server at the socket that is not rose. It answers with these bytes, and then sends `forever` again and again.
struct Impostor {
  Impostor(const fs::path& socket, std::string answer, std::string forever)
      : listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
    REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener.get(), 4) == 0);
    thread = std::thread([this, answer = std::move(answer), forever = std::move(forever)] {
      const Fd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      bool going = ::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL) > 0;
      while (going && !forever.empty() && sent < (std::uint64_t{1} << 30)) {
        const ssize_t n = ::send(client.get(), forever.data(), forever.size(), MSG_NOSIGNAL);
        going = n > 0;
        sent += static_cast<std::uint64_t>(std::max<ssize_t>(n, 0));
      }
    });
  }
  ~Impostor() {
    ::shutdown(listener.get(), SHUT_RDWR);
    thread.join();
  }
  Fd listener;
  std::thread thread;
  std::atomic<std::uint64_t> sent = 0;
};

}  // namespace

TEST_CASE("an endless answer from a server that is not a tracer is refused and leaves no file") {
  const Folder folder;
  const auto socket = folder / "t.sock", out = folder / "d";
  const auto refused = [&](const std::string& answer, const std::string& forever) {
    fs::remove(socket);
    Impostor impostor(socket, answer, forever);
    const auto result = request_dump(socket, out, 0);
    REQUIRE_FALSE(result);
    CHECK_FALSE(fs::exists(out));
    CHECK(impostor.sent < (std::uint64_t{64} << 20));
    return result.error().message;
  };
  // Hostile answers: a piece of four gigabytes, data that is no dump, a line that never ends.
  CHECK(refused("rose 2 ok\n\xff\xff\xff\xff", std::string(65536, 'x')).find("more than any tracer's window") !=
        std::string::npos);
  CHECK(refused(std::string("rose 2 ok\n\0\0\1\0", 14), std::string(65540, 'x'))
            .find("is not a tracer of this version") != std::string::npos);
  CHECK(refused(std::string("rose 2 ok\n\0\0\0\0nothing\n", 22), "").find("is not a tracer of this version") !=
        std::string::npos);
  CHECK(refused("rose 2 ", std::string(65536, 'x')).find("is not a tracer") != std::string::npos);
}

TEST_CASE("a dump that the tracer aborts leaves no file") {
  const Folder folder;
  const auto socket = folder / "t.sock";
  auto server = ControlServer::start(socket, [](const trace::DumpWriter::Sink& sink) -> Result<std::string> {
    if (auto sent = sink(std::string(trace::kDumpMagic) + std::string(100'000, 'x')); !sent)
      return Unexpected(sent.error());
    return fail(ErrorKind::environment, "no more");
  });
  REQUIRE(server);
  const auto answer = request_dump(socket, folder / "d", 0);
  REQUIRE_FALSE(answer);
  CHECK(answer.error().message.find("after") != std::string::npos);
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 1);  // only the socket is left
}
