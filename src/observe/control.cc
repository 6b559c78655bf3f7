#include "observe/control.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <list>
#include <thread>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "trace/dump.h"

// The protocol, in lines: the client says "rose 1 dump". The answer is
// "rose 1 ok BYTES SUMMARY" and that many bytes, or "rose 1 error KIND MESSAGE<tab>HINT".
namespace rose::observe {
namespace {

constexpr std::string_view kRequest = "rose 1 dump\n";
constexpr std::size_t kMostLine = 4096;
constexpr std::size_t kMostClients = 16;
constexpr std::int64_t kPatience = 10'000'000'000;     // for a client that neither asks nor reads
constexpr std::int64_t kDumpPatience = 60'000'000'000;  // for a tracer that does not answer

// A socket's address. Long paths go through a descriptor of their folder, since sun_path holds 107 bytes.
struct Address {
  sockaddr_un name{};
  Fd folder;
};

Result<Address> address_of(const std::filesystem::path& socket) {
  Address address;
  address.name.sun_family = AF_UNIX;
  std::error_code bad;
  const auto absolute = std::filesystem::absolute(socket, bad);
  const auto file = absolute.filename().string();
  if (bad || file.empty() || file == "." || file == "..") {
    return fail(ErrorKind::usage, fmt::format("'{}' cannot be a socket's path", socket.string()));
  }
  address.folder = Fd(::open(absolute.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!address.folder) {
    return fail(ErrorKind::usage,
                fmt::format("the folder of the control socket '{}': {}", socket.string(), std::strerror(errno)),
                "give another path with --control");
  }
  std::string path = absolute.string();
  if (path.size() >= sizeof address.name.sun_path) path = fmt::format("/proc/self/fd/{}/{}", address.folder.get(), file);
  if (path.size() >= sizeof address.name.sun_path) {
    return fail(ErrorKind::usage, fmt::format("the control socket's name '{}' is too long", file),
                "at most 80 characters behind the last '/'");
  }
  std::memcpy(address.name.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// A descriptor, or an error whose errno the caller may look at through `error`.
Fd connect_to(const Address& address, int& error) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  error = 0;
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.name), sizeof address.name) != 0) {
    error = errno;
    fd.reset();
  }
  return fd;
}

std::string one_line(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
  if (text.size() > kMostLine / 3) text.resize(kMostLine / 3);
  return text;
}

class SocketServer final : public ControlServer {
 public:
  SocketServer(std::filesystem::path path, std::function<Result<trace::Trace>()> snapshot)
      : path_(std::move(path)), snapshot_(std::move(snapshot)) {}

  ~SocketServer() override {
    if (thread_.joinable()) {
      const std::uint64_t one = 1;
      if (::write(stop_.get(), &one, sizeof one) < 0) log::debug("cannot stop the control socket's thread");
      thread_.join();
    }
    // Only our own: another tracer may have taken the name over.
    struct stat now{};
    if (inode_ != 0 && ::lstat(path_.c_str(), &now) == 0 && now.st_ino == inode_) ::unlink(path_.c_str());
  }

  Result<void> listen() {
    std::error_code bad;
    const auto absolute = std::filesystem::absolute(path_, bad);
    if (!bad) path_ = absolute;
    ::mkdir(path_.parent_path().c_str(), 0755);
    ROSE_TRY(const auto address, address_of(path_));
    // One at a time looks at the name and takes it; the lock goes with the descriptor.
    const Fd lock(::open(path_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock || ::flock(lock.get(), LOCK_EX) != 0) {
      return fail_errno(ErrorKind::usage, fmt::format("cannot lock the folder of '{}'", path_.string()), errno);
    }
    struct stat status{};
    if (::lstat(path_.c_str(), &status) == 0) {
      if (!S_ISSOCK(status.st_mode)) {
        return fail(ErrorKind::usage, fmt::format("'{}' exists and is not a socket", path_.string()),
                    "give another path with --control");
      }
      int error = 0;
      const Fd other = connect_to(address, error);
      if (other || error != ECONNREFUSED) {
        return fail(ErrorKind::usage, fmt::format("another tracer answers at '{}'", path_.string()),
                    "give this one a socket of its own with --control");
      }
      log::debug("taking over '{}', left by a tracer that is gone", path_.string());
      ::unlink(path_.c_str());
    }
    listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    stop_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    // The mode is set before the name exists, so that there is no moment at which others may connect.
    if (!listener_ || !stop_ || ::fchmod(listener_.get(), 0600) != 0 ||
        ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address.name), sizeof address.name) != 0 ||
        ::listen(listener_.get(), 16) != 0) {
      return fail_errno(ErrorKind::usage, fmt::format("cannot open the control socket '{}'", path_.string()), errno);
    }
    if (::lstat(path_.c_str(), &status) == 0) inode_ = status.st_ino;
    thread_ = std::thread([this] { run(); });
    return {};
  }

 private:
  struct Client {
    Fd fd;
    std::string in, out;
    std::size_t sent = 0;
    std::int64_t deadline_ns = 0;
  };

  void run() {
    std::list<Client> clients;
    for (;;) {
      std::vector<pollfd> waits = {{stop_.get(), POLLIN, 0},
                                   {listener_.get(), static_cast<short>(clients.size() < kMostClients ? POLLIN : 0), 0}};
      for (const auto& client : clients) {
        waits.push_back({client.fd.get(), static_cast<short>(client.out.empty() ? POLLIN : POLLOUT), 0});
      }
      ::poll(waits.data(), waits.size(), clients.empty() ? -1 : 1000);
      if (waits[0].revents != 0) return;
      std::size_t i = 2;
      for (auto client = clients.begin(); client != clients.end(); ++i) {
        const bool keep = waits[i].revents != 0 ? serve(*client) : monotonic_ns() < client->deadline_ns;
        client = keep ? std::next(client) : clients.erase(client);
      }
      if ((waits[1].revents & POLLIN) != 0) {
        Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd) clients.push_back({std::move(fd), {}, {}, 0, monotonic_ns() + kPatience});
      }
    }
  }

  // False when the client is done with.
  bool serve(Client& client) {
    if (client.out.empty()) {
      char bytes[256];
      const ssize_t n = ::recv(client.fd.get(), bytes, sizeof bytes, 0);
      if (n < 0 && errno == EAGAIN) return true;
      if (n <= 0) return false;
      client.in.append(bytes, static_cast<std::size_t>(n));
      if (client.in.find('\n') == std::string::npos) return client.in.size() < kMostLine;
      client.out = answer(client.in);
    }
    const ssize_t n = ::send(client.fd.get(), client.out.data() + client.sent, client.out.size() - client.sent, MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    client.sent += static_cast<std::size_t>(n);
    client.deadline_ns = monotonic_ns() + kPatience;
    return client.sent < client.out.size();
  }

  std::string answer(const std::string& request) {
    const auto error = [](const Error& what) {
      return fmt::format("rose 1 error {} {}\t{}\n", static_cast<int>(what.kind), one_line(what.message), one_line(what.hint));
    };
    if (request != kRequest) {
      return error({ErrorKind::usage, "this tracer knows only version 1 of the control protocol",
                    "use the rose that runs the tracer"});
    }
    auto trace = snapshot_();
    if (!trace) return error(trace.error());
    const auto summary = fmt::format("{} events, {} lost", trace->events.size(), trace->meta.lost);
    auto bytes = trace::dump_to_bytes(*trace);
    if (!bytes) return error(bytes.error());
    auto out = fmt::format("rose 1 ok {} {}\n", bytes->size(), summary);
    out += *bytes;
    return out;
  }

  std::filesystem::path path_;
  std::function<Result<trace::Trace>()> snapshot_;
  Fd listener_, stop_;
  ino_t inode_ = 0;
  std::thread thread_;
};

Result<Fd> connect_or_say(const std::filesystem::path& socket) {
  ROSE_TRY(const auto address, address_of(socket));
  int error = 0;
  Fd fd = connect_to(address, error);
  if (fd) return fd;
  if (error == EACCES || error == EPERM) {
    return fail(ErrorKind::usage, fmt::format("the tracer at '{}' is another user's", socket.string()),
                "run as the user who started it, or as root");
  }
  return fail(ErrorKind::usage, fmt::format("no tracer answers at '{}': {}", socket.string(), std::strerror(error)),
              "start one with 'rose trace', or name its socket with --control");
}

Result<std::size_t> receive(int fd, char* bytes, std::size_t most) {
  const std::int64_t limit = monotonic_ns() + kDumpPatience;
  for (;;) {
    ROSE_CHECK(cancel::check());
    pollfd waits[2] = {{fd, POLLIN, 0}, {cancel::fd(), POLLIN, 0}};
    const int ready = ::poll(waits, cancel::fd() >= 0 ? 2 : 1, 1000);
    if (ready > 0 && waits[0].revents != 0) {
      const ssize_t n = ::recv(fd, bytes, most, 0);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR && errno != EAGAIN) return fail_errno(ErrorKind::input, "reading the tracer's answer", errno);
    }
    if (monotonic_ns() > limit) {
      return fail(ErrorKind::environment, "the tracer does not answer", "is its process stopped?");
    }
  }
}

}  // namespace

std::filesystem::path default_control_socket() {
  if (::geteuid() == 0) return "/run/rose/trace.sock";
  if (const char* folder = std::getenv("XDG_RUNTIME_DIR"); folder != nullptr && *folder == '/') {
    return std::filesystem::path(folder) / "rose-trace.sock";
  }
  return std::filesystem::path(fmt::format("/run/user/{}", ::geteuid())) / "rose-trace.sock";
}

Result<std::unique_ptr<ControlServer>> ControlServer::start(const std::filesystem::path& socket,
                                                            std::function<Result<trace::Trace>()> snapshot) {
  auto server = std::make_unique<SocketServer>(socket, std::move(snapshot));
  ROSE_CHECK(server->listen());
  return server;
}

Result<std::string> request_dump(const std::filesystem::path& socket, const std::filesystem::path& out,
                                 std::int64_t after_ns) {
  // A wrong path is worth knowing before the wait, not after it.
  ROSE_TRY(Fd fd, connect_or_say(socket));
  if (after_ns > 0) {
    fd.reset();
    if (!cancel::sleep(after_ns)) ROSE_CHECK(cancel::check());
    ROSE_TRY(fd, connect_or_say(socket));
  }
  if (::send(fd.get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(kRequest.size())) {
    return fail_errno(ErrorKind::input, fmt::format("asking the tracer at '{}'", socket.string()), errno);
  }
  std::string head;
  std::vector<char> bytes(std::size_t{1} << 16);
  while (head.find('\n') == std::string::npos && head.size() < kMostLine) {
    ROSE_TRY(const auto n, receive(fd.get(), bytes.data(), bytes.size()));
    if (n == 0) break;
    head.append(bytes.data(), n);
  }
  const auto end = head.find('\n');
  const auto foreign = [&] {
    return fail(ErrorKind::input, fmt::format("what answers at '{}' is no tracer of this version", socket.string()),
                "use the rose that runs the tracer");
  };
  if (end == std::string::npos) return foreign();
  const auto line = head.substr(0, end);
  if (line.starts_with("rose 1 error ")) {
    const auto rest = std::string_view(line).substr(13);
    const auto space = rest.find(' ');
    const auto tab = rest.find('\t');
    int kind = static_cast<int>(ErrorKind::bug);
    if (space == std::string_view::npos || tab == std::string_view::npos || tab < space) return foreign();
    std::from_chars(rest.data(), rest.data() + space, kind);
    if (kind < 0 || kind > static_cast<int>(ErrorKind::bug)) return foreign();
    return fail(static_cast<ErrorKind>(kind), fmt::format("the tracer says: {}", rest.substr(space + 1, tab - space - 1)),
                std::string(rest.substr(tab + 1)));
  }
  if (!line.starts_with("rose 1 ok ")) return foreign();
  const auto rest = std::string_view(line).substr(10);
  std::uint64_t size = 0;
  const auto number = std::from_chars(rest.data(), rest.data() + rest.size(), size);
  if (number.ec != std::errc() || number.ptr == rest.data() + rest.size() || *number.ptr != ' ') return foreign();
  const std::string summary(number.ptr + 1, rest.data() + rest.size());

  ROSE_TRY(auto file, AtomicFile::create(out));
  std::uint64_t have = std::min<std::uint64_t>(head.size() - end - 1, size);
  ROSE_CHECK(file.write(std::string_view(head).substr(end + 1, have)));
  while (have < size) {
    ROSE_TRY(const auto n, receive(fd.get(), bytes.data(), std::min<std::uint64_t>(bytes.size(), size - have)));
    if (n == 0) {
      return fail(ErrorKind::input, fmt::format("the tracer ended after {} of {}", format_size(have), format_size(size)),
                  "nothing was written; its own window goes to its -o file when it ends in order");
    }
    ROSE_CHECK(file.write(std::string_view(bytes.data(), n)));
    have += n;
  }
  ROSE_CHECK(file.commit());
  return summary;
}

}  // namespace rose::observe
