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
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <list>
#include <optional>
#include <thread>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/units.h"
#include "base/unix_socket.h"
#include "observe/hand_over.h"
#include "trace/dump.h"

// The protocol: the client sends "rose 2 dump" and a newline. The response is a line, either "rose 2 error KIND
// MESSAGE<tab>HINT" or "rose 2 ok". After "rose 2 ok", pieces of the dump follow, each a little-endian u32 length and
// that many bytes, then a length of 0 and a line that describes the content. If the response ends earlier, the dump is
// incomplete. The response to "rose 2 recordings" is described in hand_over.cc.
namespace rose::observe {
namespace {

constexpr std::string_view kRequest = "rose 2 dump\n", kRecordingsRequest = "rose 2 recordings\n";
constexpr std::size_t kMostLine = 4096;
constexpr std::size_t kMostClients = 16;
constexpr std::int64_t kPatience = 10'000'000'000;      // for a client that neither sends its request nor reads
constexpr std::int64_t kDumpPatience = 60'000'000'000;  // for a tracer that does not respond
constexpr std::int64_t kLongestDump = 600'000'000'000;  // for a tracer that responds very slowly
// Limits for one piece, which is a block (trace/block.h), and for a whole dump. Even a dump of 16 million events and
// 512 MiB of names is smaller.
constexpr std::size_t kMostPiece = std::size_t{256} << 20;
constexpr std::uint64_t kMostDump = std::uint64_t{2} << 30;

Result<UnixAddress> socket_address(const std::filesystem::path& socket) {
  return unix_address(socket).map_error([](Error error) {
    error.kind = ErrorKind::usage;
    if (error.hint.empty()) error.hint = "choose another path with --control";
    return error;
  });
}

// Returns a descriptor, or an error with errno in `error`.
Fd connect_to(const UnixAddress& address, int& error) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  error = 0;
  if (!fd || ::connect(fd.get(), address.get(), address.size()) != 0) {
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

// Makes sure that only one process at a time takes over the name of a socket. It locks a temporary file of its own and
// not the folder, because other users may be able to open, and therefore lock, the folder.
class NameLock {
 public:
  static Result<NameLock> take(const std::filesystem::path& socket) {
    constexpr std::int64_t kLongest = 5'000'000'000;
    NameLock lock;
    lock.path_ = socket.string() + ".lock";
    const auto refuse = [&](std::string_view why) {
      return fail(ErrorKind::usage, fmt::format("cannot take the control socket '{}': {}", socket.string(), why),
                  "choose another path with --control");
    };
    for (const std::int64_t limit = monotonic_ns() + kLongest;;) {
      Fd file(::open(lock.path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
      struct stat opened{}, named{};
      if (!file) return refuse(fmt::format("{}: {}", lock.path_.string(), std::strerror(errno)));
      if (::fstat(file.get(), &opened) != 0 || !S_ISREG(opened.st_mode) || opened.st_uid != ::geteuid())
        return refuse(fmt::format("'{}' belongs to another user", lock.path_.string()));
      const bool locked = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
      // If the name does not refer to the locked file, the previous holder has removed that file, so try again.
      if (locked && ::lstat(lock.path_.c_str(), &named) == 0 && named.st_ino == opened.st_ino &&
          named.st_dev == opened.st_dev) {
        lock.file_ = std::move(file);
        return lock;
      }
      if (monotonic_ns() > limit) return refuse(fmt::format("another tracer is using '{}'", lock.path_.string()));
      if (!locked) ::usleep(10'000);
    }
  }
  NameLock(NameLock&&) = default;
  NameLock& operator=(NameLock&&) = delete;
  ~NameLock() {
    if (file_) ::unlink(path_.c_str());
  }

 private:
  NameLock() = default;
  std::filesystem::path path_;
  Fd file_;
};

class SocketServer final : public ControlServer {
 public:
  SocketServer(std::filesystem::path path, Source source, Recordings recordings)
      : path_(std::move(path)), source_(std::move(source)), recordings_(std::move(recordings)) {}

  ~SocketServer() override {
    if (thread_.joinable()) {
      const std::uint64_t one = 1;
      if (::write(stop_.get(), &one, sizeof one) < 0) log::debug("cannot stop the control socket's thread");
      thread_.join();
    }
    // Remove only our own socket: another tracer may have taken over the name.
    struct stat now{};
    if (inode_ != 0 && ::lstat(path_.c_str(), &now) == 0 && now.st_ino == inode_) ::unlink(path_.c_str());
  }

  Result<void> listen() {
    std::error_code bad;
    const auto absolute = std::filesystem::absolute(path_, bad);
    if (!bad) path_ = absolute;
    ::mkdir(path_.parent_path().c_str(), 0755);
    ROSE_TRY(const auto address, socket_address(path_));
    ROSE_TRY(const NameLock lock, NameLock::take(path_));
    struct stat status{};
    if (::lstat(path_.c_str(), &status) == 0) {
      if (!S_ISSOCK(status.st_mode)) {
        return fail(ErrorKind::usage, fmt::format("'{}' exists and is not a socket", path_.string()),
                    "choose another path with --control");
      }
      int error = 0;
      const Fd other = connect_to(address, error);
      if (other || error != ECONNREFUSED) {
        return fail(ErrorKind::usage, fmt::format("another tracer is listening at '{}'", path_.string()),
                    "give this one its own socket with --control");
      }
      log::debug("taking over '{}', left by a tracer that has ended", path_.string());
      ::unlink(path_.c_str());
    }
    listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    stop_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    // Set the mode before the name exists, so that no other user can connect in between.
    if (!listener_ || !stop_ || ::fchmod(listener_.get(), 0600) != 0 ||
        ::bind(listener_.get(), address.get(), address.size()) != 0 || ::listen(listener_.get(), 16) != 0) {
      return fail_errno(ErrorKind::usage, fmt::format("cannot open the control socket '{}'", path_.string()), errno);
    }
    if (::lstat(path_.c_str(), &status) == 0) inode_ = status.st_ino;
    ROSE_TRY(thread_, start_thread([this] { run(); }));
    return {};
  }

 private:
  struct Client {
    Fd fd;
    std::thread thread;
    std::atomic<bool> done = false;
  };

  void run() {
    std::list<Client> clients;
    for (;;) {
      const bool room = clients.size() < kMostClients;
      pollfd waits[2] = {{stop_.get(), POLLIN, 0}, {listener_.get(), static_cast<short>(room ? POLLIN : 0), 0}};
      ::poll(waits, 2, clients.empty() ? -1 : room ? 1000 : 50);
      for (auto client = clients.begin(); client != clients.end();) {
        if (waits[0].revents == 0 && !client->done) {
          ++client;
          continue;
        }
        client->thread.join();
        client = clients.erase(client);
      }
      if (waits[0].revents != 0) return;
      if ((waits[1].revents & POLLIN) == 0) continue;
      Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd) continue;
      auto& client = clients.emplace_back();
      client.fd = std::move(fd);
      auto thread = start_thread([this, &client] {
        serve(client.fd.get());
        client.done = true;
      });
      if (thread) {
        client.thread = std::move(*thread);
        continue;
      }
      log::warning("a request for the window is refused: {}", thread.error().message);
      refuse(client.fd.get(), thread.error());
      clients.pop_back();
    }
  }

  // Waits until the client is readable or writable. Returns false on a timeout or when the server stops.
  [[nodiscard]] bool wait(int fd, short events) const {
    pollfd waits[2] = {{fd, events, 0}, {stop_.get(), POLLIN, 0}};
    return ::poll(waits, 2, static_cast<int>(kPatience / 1'000'000)) > 0 && waits[1].revents == 0;
  }

  [[nodiscard]] bool send(int fd, std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (n < 0 && !wait(fd, POLLOUT)) return false;
      if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  void refuse(int fd, const Error& what) const {
    (void)send(fd, fmt::format("rose 2 error {} {}\t{}\n", static_cast<int>(what.kind), one_line(what.message),
                               one_line(what.hint)));
  }

  void serve(int fd) const {
    std::string request;
    while (request.find('\n') == std::string::npos) {
      if (request.size() >= kMostLine || !wait(fd, POLLIN)) return;
      char bytes[256];
      const ssize_t n = ::recv(fd, bytes, sizeof bytes, 0);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return;
      if (n > 0) request.append(bytes, static_cast<std::size_t>(n));
    }
    if (request == kRecordingsRequest) {
      (void)send_recordings(fd, recordings_ ? recordings_() : OpenRecordings(), [&] { return wait(fd, POLLOUT); });
      return;
    }
    if (request != kRequest) {
      refuse(fd, {ErrorKind::usage, "this tracer knows only version 2 of the control protocol",
                  "use the rose that started the tracer"});
      return;
    }
    bool began = false;
    const auto summary = source_([&](std::string_view bytes) -> Result<void> {
      const auto length = static_cast<std::uint32_t>(bytes.size());
      const bool sent = (began || send(fd, "rose 2 ok\n")) &&
                        send(fd, {reinterpret_cast<const char*>(&length), sizeof length}) && send(fd, bytes);
      began = true;
      if (!sent) return fail(ErrorKind::input, "the client does not read the dump");
      return {};
    });
    if (summary) {
      (void)send(fd, std::string(4, '\0') + one_line(*summary) + "\n");
    } else if (!began) {
      refuse(fd, summary.error());
    } else {
      log::warning("a dump was not sent completely: {}", summary.error().message);
    }
  }

  std::filesystem::path path_;
  Source source_;
  Recordings recordings_;
  Fd listener_, stop_;
  ino_t inode_ = 0;
  std::thread thread_;
};

constexpr std::string_view kStartOne = "start one with 'rose trace', or name its socket with --control";

// A part of a hint, which lists the sockets of other tracers: "; there is ...". Searches the folders in which services
// create their sockets (configs/rose-trace@.service).
std::string others_than(const std::filesystem::path& socket) {
  constexpr std::size_t kMostNamed = 5;
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/run", error), end; !error && it != end; it.increment(error)) {
    const std::filesystem::path other = it->path() / "trace.sock";
    std::error_code unreadable;
    if (it->path().filename().string().starts_with("rose") && other != socket &&
        std::filesystem::is_socket(other, unreadable) && found.size() < kMostNamed)
      found.push_back(other.string());
  }
  if (found.empty()) return {};
  std::sort(found.begin(), found.end());
  return fmt::format("; there is {}", fmt::join(found, ", "));
}

Result<Fd> connect_to_tracer(const std::filesystem::path& socket) {
  std::error_code unreadable;
  if (const auto folder = socket.parent_path();
      !folder.empty() && !std::filesystem::exists(folder, unreadable) && !unreadable)
    return fail(ErrorKind::usage,
                fmt::format("no tracer is listening at '{}': the folder does not exist", socket.string()),
                std::string(kStartOne) + others_than(socket));
  ROSE_TRY(const auto address, socket_address(socket));
  int error = 0;
  Fd fd = connect_to(address, error);
  if (fd) return fd;
  if (error == EACCES || error == EPERM) {
    return fail(ErrorKind::usage, fmt::format("the tracer at '{}' belongs to another user", socket.string()),
                "run as the user who started it, or as root");
  }
  return fail(ErrorKind::usage,
              fmt::format("no tracer is listening at '{}': {}", socket.string(), std::strerror(error)),
              std::string(kStartOne) + others_than(socket));
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
      return fail(ErrorKind::environment, "the tracer does not respond", "is its process stopped?");
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

bool answers(const std::filesystem::path& socket) {
  const auto address = socket_address(socket);
  int error = 0;
  return address && (connect_to(*address, error) || error == EACCES || error == EAGAIN);
}

Result<std::unique_ptr<ControlServer>> ControlServer::start(const std::filesystem::path& socket, Source source,
                                                            Recordings recordings) {
  auto server = std::make_unique<SocketServer>(socket, std::move(source), std::move(recordings));
  ROSE_CHECK(server->listen());
  return server;
}

Result<std::string> request_dump(const std::filesystem::path& socket, const std::filesystem::path& out,
                                 std::int64_t after_ns) {
  std::optional<AtomicFile> file;
  const trace::DumpWriter::Sink sink = [&](std::string_view bytes) -> Result<void> {
    if (!file) {
      ROSE_TRY(AtomicFile made, AtomicFile::create(out));
      file.emplace(std::move(made));
    }
    return bytes.empty() ? Result<void>() : file->write(bytes);
  };
  ROSE_TRY(std::string answer, request_dump(socket, sink, after_ns));
  ROSE_CHECK(file->commit());
  return answer;
}

Result<std::string> request_dump(const std::filesystem::path& socket, const trace::DumpWriter::Sink& out,
                                 std::int64_t after_ns) {
  // Connect before waiting, so that a wrong path is reported immediately.
  ROSE_TRY(Fd fd, connect_to_tracer(socket));
  if (after_ns > 0) {
    fd.reset();
    if (!cancel::sleep(after_ns)) ROSE_CHECK(cancel::check());
    ROSE_TRY(fd, connect_to_tracer(socket));
  }
  // If sending fails with EPIPE, continue: a tracer that refuses the client may have closed the connection after
  // sending the reason.
  const bool asked =
      ::send(fd.get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(kRequest.size());
  if (!asked && errno != EPIPE) {
    return fail_errno(ErrorKind::input, fmt::format("asking the tracer at '{}'", socket.string()), errno);
  }
  std::string bytes;  // received but not processed yet
  std::size_t at = 0;
  std::vector<char> buffer(std::size_t{1} << 16);
  const auto more = [&]() -> Result<bool> {
    bytes.erase(0, std::exchange(at, 0));
    ROSE_TRY(const auto n, receive(fd.get(), buffer.data(), buffer.size()));
    bytes.append(buffer.data(), n);
    return n > 0;
  };
  // Reads up to a newline; returns nothing if the response ends before.
  const auto line = [&]() -> Result<std::optional<std::string>> {
    for (;;) {
      if (const auto end = bytes.find('\n', at); end != std::string::npos) {
        std::string text = bytes.substr(at, end - at);
        at = end + 1;
        return text;
      }
      if (bytes.size() - at > kMostLine) return std::nullopt;
      ROSE_TRY(const bool any, more());
      if (!any) return std::nullopt;
    }
  };
  const auto foreign = [&] {
    return fail(ErrorKind::input, fmt::format("the server at '{}' is not a tracer of this version", socket.string()),
                "use the rose that started the tracer");
  };
  ROSE_TRY(const auto head, line());
  if (!head && !asked)
    return fail_errno(ErrorKind::input, fmt::format("asking the tracer at '{}'", socket.string()), EPIPE);
  if (!head) return foreign();
  if (head->starts_with("rose 2 error ")) {
    const auto rest = std::string_view(*head).substr(13);
    const auto space = rest.find(' ');
    const auto tab = rest.find('\t');
    int kind = static_cast<int>(ErrorKind::bug);
    if (space == std::string_view::npos || tab == std::string_view::npos || tab < space) return foreign();
    std::from_chars(rest.data(), rest.data() + space, kind);
    if (kind < 0 || kind > static_cast<int>(ErrorKind::bug)) return foreign();
    return fail(static_cast<ErrorKind>(kind),
                fmt::format("the tracer reports: {}", rest.substr(space + 1, tab - space - 1)),
                std::string(rest.substr(tab + 1)));
  }
  if (*head != "rose 2 ok") return foreign();

  ROSE_CHECK(out({}));  // report an unwritable output before reading the response
  std::uint64_t have = 0;
  const auto ended = [&] {
    return fail(ErrorKind::input, fmt::format("the tracer ended, or gave up, after {}", format_size(have)),
                "nothing was written; it writes its own window to its -o file when it ends normally");
  };
  const std::int64_t began = monotonic_ns();
  for (;;) {
    ROSE_CHECK(cancel::check());
    std::uint32_t length = 0;
    while (bytes.size() - at < sizeof length) {
      ROSE_TRY(const bool any, more());
      if (!any) return ended();
    }
    std::memcpy(&length, bytes.data() + at, sizeof length);
    at += sizeof length;
    if (length == 0) break;
    // No tracer sends such a large piece or dump, or takes so long. The peer is not a tracer and would fill the disk.
    if (length > kMostPiece || have + length > kMostDump || monotonic_ns() - began > kLongestDump)
      return fail(ErrorKind::input,
                  fmt::format("the server at '{}' sends more than any tracer's window contains ({} so far)",
                              socket.string(), format_size(have)),
                  "nothing was written");
    if (have == 0) {
      while (bytes.size() - at < std::min<std::size_t>(length, trace::kDumpMagic.size())) {
        ROSE_TRY(const bool any, more());
        if (!any) return ended();
      }
      if (!std::string_view(bytes).substr(at).starts_with(trace::kDumpMagic.substr(0, length))) return foreign();
    }
    for (std::size_t left = length; left > 0;) {
      if (at == bytes.size()) {
        ROSE_TRY(const bool any, more());
        if (!any) return ended();
      }
      const auto piece = std::string_view(bytes).substr(at, left);
      ROSE_CHECK(out(piece));
      at += piece.size();
      left -= piece.size();
      have += piece.size();
    }
  }
  if (have == 0) return foreign();  // even an empty window has a header
  ROSE_TRY(const auto summary, line());
  if (!summary) return ended();
  return *summary;
}

Result<OpenRecordings> request_recordings(const std::filesystem::path& socket) {
  ROSE_TRY(const Fd fd, connect_to_tracer(socket));
  if (::send(fd.get(), kRecordingsRequest.data(), kRecordingsRequest.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(kRecordingsRequest.size()))
    return fail_errno(ErrorKind::input, fmt::format("asking the tracer at '{}'", socket.string()), errno);
  const std::int64_t limit = monotonic_ns() + kDumpPatience;
  return receive_recordings(fd.get(), [&] {
    while (cancel::check() && monotonic_ns() < limit) {
      pollfd waits[2] = {{fd.get(), POLLIN, 0}, {cancel::fd(), POLLIN, 0}};
      if (::poll(waits, cancel::fd() >= 0 ? 2 : 1, 1000) > 0 && waits[0].revents != 0) return true;
    }
    return false;
  });
}

}  // namespace rose::observe
