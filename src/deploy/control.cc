#include "deploy/control.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/unix_socket.h"
#include "deploy/deployment.h"

namespace rose::deploy {
namespace {

constexpr std::size_t kMostRequestBytes = 1024;
constexpr std::size_t kMostAnswerBytes = 65536;
constexpr std::size_t kMostConnections = 64;
constexpr std::int64_t kRequestTimeout = 5'000'000'000;
// Longer than any stop (10 s) followed by any readiness timeout that is likely to be configured.
constexpr std::int64_t kAnswerTimeout = 3600'000'000'000;

// Reads one line without its newline. Returns false if it is too long, late or incomplete. The wait also ends when
// `other_fd` (-1: none) is readable.
bool read_line(int fd, std::string& line, std::size_t most, std::int64_t timeout_ns, int other_fd) {
  const std::int64_t until = monotonic_ns() + timeout_ns;
  for (;;) {
    const std::int64_t left = until - monotonic_ns();
    if (left <= 0) return false;
    pollfd waits[2] = {{fd, POLLIN, 0}, {other_fd, POLLIN, 0}};
    const timespec ts{left / 1'000'000'000, left % 1'000'000'000};
    if (::ppoll(waits, 2, &ts, nullptr) < 0 && errno != EINTR) return false;
    if (waits[0].revents == 0) {
      if (waits[1].revents != 0) return false;
      continue;
    }
    char buffer[1024];
    const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    line.append(buffer, static_cast<std::size_t>(n));
    if (const std::size_t end = line.find('\n'); end != std::string::npos) {
      line.resize(end);
      return true;
    }
    if (line.size() > most) return false;
  }
}

void send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the client has disconnected
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// Fields are separated by tabs, so they must not contain tabs or newlines.
std::string field(std::string text) {
  for (char& c : text)
    if (c == '\t' || c == '\n') c = c == '\n' ? '\v' : ' ';
  return text;
}
std::string error_answer(const Error& error) {
  return fmt::format("error\t{}\t{}\t{}\n", static_cast<int>(error.kind), field(error.message), field(error.hint));
}
std::string unfield(std::string text) {
  for (char& c : text)
    if (c == '\v') c = '\n';
  return text;
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::create(const std::filesystem::path& run_dir, Handler handler) {
  std::unique_ptr<ControlServer> server(new ControlServer);
  server->run_dir_ = run_dir;
  server->handler_ = std::move(handler);
  server->listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  server->quit_ = Fd(::eventfd(0, EFD_CLOEXEC));
  if (!server->listener_ || !server->quit_)
    return fail_errno(ErrorKind::environment, fmt::format("cannot open the control socket in {}", run_dir.string()),
                      errno);
  ROSE_TRY(const UnixAddress address, unix_address(run_dir / kControlSocket));
  // Set before bind, which creates the file with this mode.
  ::fchmod(server->listener_.get(), 0600);
  if (::bind(server->listener_.get(), address.get(), address.size()) != 0 ||
      ::chmod((run_dir / kControlSocket).c_str(), 0600) != 0 || ::listen(server->listener_.get(), 16) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot create {}", (run_dir / kControlSocket).string()),
                      errno);
  ROSE_TRY(server->thread_, start_thread([raw = server.get()] { raw->accept_all(); }));
  return server;
}

ControlServer::~ControlServer() {
  const std::uint64_t one = 1;
  if (quit_) [[maybe_unused]]
    const ssize_t n = ::write(quit_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
  for (Connection& connection : connections_) connection.thread.join();
  if (thread_.get_id() == std::thread::id() && listener_) ::unlink((run_dir_ / kControlSocket).c_str());
}

void ControlServer::accept_all() {
  for (;;) {
    pollfd waits[2] = {{listener_.get(), POLLIN, 0}, {quit_.get(), POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0) continue;
    if (waits[1].revents != 0) return;
    Fd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::lock_guard lock(mutex_);
    for (auto it = connections_.begin(); it != connections_.end();) {
      if (it->done) {
        it->thread.join();
        it = connections_.erase(it);
      } else {
        ++it;
      }
    }
    if (!connection) continue;
    if (connections_.size() >= kMostConnections) {
      send_all(connection.get(), error_answer({ErrorKind::inconclusive, "too many requests at once", ""}));
      continue;
    }
    Connection& entry = connections_.emplace_back();
    entry.fd = std::move(connection);
    auto thread = start_thread([this, &entry] {
      serve(std::move(entry.fd));
      std::lock_guard done_lock(mutex_);
      entry.done = true;
    });
    if (thread) {
      entry.thread = *std::move(thread);
      continue;
    }
    send_all(entry.fd.get(), error_answer(thread.error()));
    connections_.pop_back();
  }
}

void ControlServer::serve(Fd connection) {
  std::string line;
  if (!read_line(connection.get(), line, kMostRequestBytes, kRequestTimeout, quit_.get())) {
    send_all(connection.get(),
             error_answer({ErrorKind::usage, "a request is one line 'ACTION NODE' of at most 1024 bytes", ""}));
    return;
  }
  const std::size_t space = line.find(' ');
  const auto answer = handler_(line.substr(0, space), space == std::string::npos ? "" : line.substr(space + 1));
  if (answer) send_all(connection.get(), fmt::format("ok\t{}\n", field(*answer)));
  else send_all(connection.get(), error_answer(answer.error()));
}

Result<void> step_request(const std::filesystem::path& run_dir, std::string_view step, bool done) {
  ROSE_CHECK(node_request(run_dir, done ? "step-done" : "step", step));
  return {};
}

Result<std::string> node_request(const std::filesystem::path& run_dir, std::string_view action, std::string_view node) {
  constexpr const char* kHint =
      "'rose node' and 'rose step' work inside a workload, incident, oracle or ready command of a run, where "
      "ROSE_RUN_DIR is set";
  if (action.size() + node.size() + 2 > kMostRequestBytes || node.find('\n') != std::string_view::npos)
    return fail(ErrorKind::usage, "the name is too long or contains a line break");
  Result<UnixAddress> address = unix_address(run_dir / kControlSocket);
  if (!address) return fail(ErrorKind::usage, address.error().message, kHint);
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return fail_errno(ErrorKind::environment, "socket", errno);
  if (::connect(socket.get(), address->get(), address->size()) != 0) {
    const int err = errno;
    if (err == EACCES || err == EPERM) return fail_errno(ErrorKind::environment, "cannot reach the deployment", err);
    return fail(ErrorKind::usage,
                fmt::format("no deployment is running in '{}' ({})", run_dir.string(), std::strerror(err)), kHint);
  }
  send_all(socket.get(), fmt::format("{} {}\n", action, node));
  std::string line;
  if (!read_line(socket.get(), line, kMostAnswerBytes, kAnswerTimeout, cancel::fd())) {
    ROSE_CHECK(cancel::check());
    return fail(ErrorKind::inconclusive, "the deployment ended before it responded");
  }
  const std::vector<std::string> fields = split(line, '\t');
  if (fields.size() == 2 && fields[0] == "ok") return unfield(fields[1]);
  int kind = 0;
  if (fields.size() == 4 && fields[0] == "error" &&
      std::from_chars(fields[1].data(), fields[1].data() + fields[1].size(), kind).ec == std::errc() && kind >= 0 &&
      kind <= static_cast<int>(ErrorKind::bug))
    return fail(static_cast<ErrorKind>(kind), unfield(fields[2]), unfield(fields[3]));
  return fail(ErrorKind::inconclusive, fmt::format("the deployment sent an invalid response: '{}'", line));
}

}  // namespace rose::deploy
