#include "deploy/ready.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/read_at.h"
#include "base/regex.h"
#include "base/text.h"
#include "base/units.h"

namespace rose::deploy {
namespace {

class TcpProbe : public Probe {
 public:
  TcpProbe(int netns_fd, std::string ip, std::uint16_t port) : netns_fd_(netns_fd), ip_(std::move(ip)), port_(port) {}

  Result<bool> ready() override {
    if (!socket_) begin();
    if (!socket_) return false;
    if (connected_) return true;
    pollfd p{socket_.get(), POLLOUT, 0};
    if (::poll(&p, 1, 0) == 0) return false;  // the connection attempt is still in progress
    int err = 0;
    socklen_t size = sizeof err;
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &err, &size);
    socket_.reset();
    return err == 0;
  }

  std::string missing() const override { return fmt::format("nothing accepts connections at {}:{}", ip_, port_); }

 private:
  void begin() {
    sockaddr_storage address{};
    socklen_t size = 0;
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
    if (::inet_pton(AF_INET, ip_.c_str(), &v4->sin_addr) == 1) {
      v4->sin_family = AF_INET;
      v4->sin_port = htons(port_);
      size = sizeof *v4;
    } else if (::inet_pton(AF_INET6, ip_.c_str(), &v6->sin6_addr) == 1) {
      v6->sin6_family = AF_INET6;
      v6->sin6_port = htons(port_);
      size = sizeof *v6;
    } else {
      return;
    }
    // The socket is created in the node's namespace, to which it then belongs. The other calls work from any namespace.
    in_netns(netns_fd_,
             [&] { socket_ = Fd(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); });
    if (!socket_) return;
    if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0) connected_ = true;
    else if (errno != EINPROGRESS) socket_.reset();
  }

  int netns_fd_;
  std::string ip_;
  std::uint16_t port_;
  Fd socket_;
  bool connected_ = false;
};

// A line that is too long is searched in overlapping pieces.
constexpr std::size_t kOverlap = 1024;
constexpr std::size_t kChunk = 65536;
constexpr std::size_t kMostAtOnce = 256 * kChunk;

class LogProbe : public Probe {
 public:
  LogProbe(std::string text, Regex pattern, std::vector<LogStart> logs)
      : text_(std::move(text)), pattern_(std::move(pattern)) {
    for (LogStart& log : logs) logs_.push_back({std::move(log.path), std::move(log.folder), log.offset, {}});
  }

  Result<bool> ready() override {
    for (Log& log : logs_)
      if (search(log)) return true;
    return false;
  }

  std::string missing() const override { return fmt::format("no line of its logs matches '{}'", text_); }

 private:
  struct Log {
    std::filesystem::path path, folder;
    std::uint64_t offset;
    std::string rest;  // incomplete line
  };

  bool search(Log& log) {
    const Fd fd = open_inside(log.folder, log.path);
    if (!fd) return false;
    std::vector<char> buffer(kChunk);
    bool more = false;
    // The remaining output is searched by the next call, so that a node that writes without end does not delay other
    // nodes.
    for (std::size_t left = kMostAtOnce; left > 0; left -= kChunk) {
      // Skip a hole, which may be far larger than the disk. Either no data follows it yet, or a line begins where the
      // data begins.
      const auto data = next_data(fd.get(), log.offset);
      if (!data) break;
      if (std::exchange(log.offset, *data) != *data) log.rest.clear();
      const ssize_t n = ::pread(fd.get(), buffer.data(), buffer.size(), static_cast<off_t>(log.offset));
      if (n <= 0) break;
      more = true;
      log.offset += static_cast<std::uint64_t>(n);
      log.rest.append(buffer.data(), static_cast<std::size_t>(n));
      std::size_t begin = 0;
      for (std::size_t end; (end = log.rest.find('\n', begin)) != std::string::npos; begin = end + 1)
        if (pattern_.found_in(std::string_view(log.rest).substr(begin, end - begin))) return true;
      log.rest.erase(0, begin);
      if (log.rest.size() > kChunk) {
        if (pattern_.found_in(log.rest)) return true;
        log.rest.erase(0, log.rest.size() - kOverlap);
      }
    }
    return more && !log.rest.empty() && pattern_.found_in(log.rest);
  }

  std::string text_;
  Regex pattern_;
  std::vector<Log> logs_;
};

// After a negative answer, the command is not repeated for this multiple of its duration. Otherwise probes that start
// an interpreter or a JVM would take processor time from the nodes for which they wait. The pause is limited, so that
// readiness is still noticed soon.
constexpr std::int64_t kRestPerQuestion = 6;
constexpr std::int64_t kLongestRest = 500 * kMillisecond;

class CommandProbe : public Probe {
 public:
  CommandProbe(std::string name, SpawnReady spawn) : name_(std::move(name)), spawn_(std::move(spawn)) {}

  Result<bool> ready() override {
    if (!running_) {
      if (monotonic_ns() < next_ns_) return false;
      asked_ns_ = monotonic_ns();
      ROSE_TRY(running_, spawn_());
      return false;
    }
    if (!running_->finished()) return false;
    const CommandResult result = running_->wait();
    running_.reset();
    note_ = result.note;
    const std::int64_t now = monotonic_ns();
    next_ns_ = now + std::min(kRestPerQuestion * (now - asked_ns_), kLongestRest);
    return result.ok();
  }

  std::string missing() const override {
    return note_.empty() ? fmt::format("its readiness command '{}' has not ended", name_)
                         : fmt::format("its readiness command '{}' {}", name_, note_);
  }

 private:
  std::string name_;
  SpawnReady spawn_;
  std::unique_ptr<RunningCommand> running_;
  std::int64_t asked_ns_ = 0, next_ns_ = 0;
  std::string note_;
};

}  // namespace

std::unique_ptr<Probe> tcp_probe(int netns_fd, const std::string& ip, std::uint16_t port) {
  return std::make_unique<TcpProbe>(netns_fd, ip, port);
}

Result<std::unique_ptr<Probe>> log_probe(const std::string& pattern, std::vector<LogStart> logs) {
  Regex compiled(pattern);
  if (const std::string problem = compiled.problem(); !problem.empty())
    return fail(ErrorKind::input, fmt::format("'{}' is not a regular expression: {}", pattern, problem),
                std::string(kRegexForm));
  return std::unique_ptr<Probe>(std::make_unique<LogProbe>(pattern, std::move(compiled), std::move(logs)));
}

std::unique_ptr<Probe> command_probe(const config::Command& command, SpawnReady spawn) {
  return std::make_unique<CommandProbe>(command.front(), std::move(spawn));
}

static std::string tail_of(const Fd& fd, std::size_t lines, std::size_t most) {
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0) return {};
  const auto size = static_cast<std::uint64_t>(info.st_size);
  std::string text(std::min<std::uint64_t>(size, most), '\0');
  const ssize_t n = ::pread(fd.get(), text.data(), text.size(), static_cast<off_t>(size - text.size()));
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::size_t begin = text.size();
  for (std::size_t i = 0; i < lines && begin > 0; ++i) {
    const std::size_t found = text.rfind('\n', begin - 1);
    if (found == std::string::npos) {
      begin = 0;
      break;
    }
    begin = found;
  }
  if (begin > 0 && begin < text.size()) ++begin;
  // Java's stack traces contain tabs, which would otherwise be printed as control characters.
  return replaced(text.substr(begin), "\t", "    ");
}

std::string tail(const std::filesystem::path& path, std::size_t lines, std::size_t most) {
  return tail_of(open_regular(path), lines, most);
}

LastWords last_words(const std::filesystem::path& node) {
  constexpr std::size_t kMost = 2048;
  std::string output;
  for (const std::string& line : split(tail_of(open_inside(node, "stderr.log"), 10, kMost), '\n'))
    if (!line.starts_with("Picked up JAVA_TOOL_OPTIONS:")) output += (output.empty() ? "" : "\n") + line;
  if (!output.empty()) return {"stderr.log", output};
  return {"stdout.log", tail_of(open_inside(node, "stdout.log"), 10, kMost)};
}

}  // namespace rose::deploy
