// A ledger on two hosts: the primary takes bookings, the standby follows. A standby that was away for long gets what
// it missed at once, by way of a file of its own, so that the journal is never half of something.
// Usage: ledgerd OWN-ADDRESS PRIMARY-ADDRESS FOLDER
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kPort = 7000;
constexpr std::size_t kLongAway = 20;   // bookings
constexpr int kAliveMs = 50;
constexpr int kSilenceMs = 600;
constexpr int kConnectMs = 300;

std::mutex mutex;   // of all that follows
std::string folder;
std::vector<std::string> bookings;
std::size_t position = 0;   // the primary has booked so many, and so have we
int journal = -1;

void complain(const std::string& what) { std::fprintf(stderr, "ledgerd: %s: %s\n", what.c_str(), std::strerror(errno)); }

sockaddr_in address_of(const std::string& ip) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  if (inet_pton(AF_INET, ip.c_str(), &address.sin_addr) != 1) {
    std::fprintf(stderr, "'%s' is no address\n", ip.c_str());
    std::exit(2);
  }
  return address;
}

bool write_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(fd, text.data() + done, text.size() - done);
    if (wrote <= 0) return false;
    done += static_cast<std::size_t>(wrote);
  }
  return true;
}

bool send_all(int fd, const std::string& text) {
  return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

// Lines of a connection; nothing at its end or after `timeout_ms` of silence (-1: for ever).
class Lines {
 public:
  explicit Lines(int fd) : fd_(fd) {}
  std::optional<std::string> next(int timeout_ms) {
    for (;;) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      pollfd wait{fd_, POLLIN, 0};
      if (poll(&wait, 1, timeout_ms) <= 0) return std::nullopt;
      char piece[16384];
      const ssize_t got = read(fd_, piece, sizeof piece);
      if (got <= 0) return std::nullopt;
      buffer_.append(piece, static_cast<std::size_t>(got));
    }
  }

 private:
  int fd_;
  std::string buffer_;
};

void start_ledger() {
  for (const char* name : {"", "/journal", "/resync"}) mkdir((folder + name).c_str(), 0755);
  std::ifstream saved(folder + "/journal/ledger.wal");
  for (std::string line; std::getline(saved, line);) bookings.push_back(line);
  position = bookings.size();
  journal = open((folder + "/journal/ledger.wal").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (journal < 0) {
    complain("ledger.wal");
    std::exit(1);
  }
}

bool book(const std::string& text) {
  if (!write_all(journal, text + "\n")) {
    complain("ledger.wal");
    return false;
  }
  bookings.push_back(text);
  ++position;
  return true;
}

// --- primary

void feed_standby(int fd, std::size_t at) {
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(kAliveMs))) {
    std::ostringstream out;
    {
      const std::lock_guard lock(mutex);
      if (position > at + kLongAway) out << "resync " << position - at << '\n';
      else if (position == at) out << "alive\n";
      const char* verb = position > at + kLongAway ? "" : "book ";
      for (; at < position; ++at) out << verb << bookings[at] << '\n';
    }
    if (!send_all(fd, out.str())) return;
  }
}

void serve(int fd) {
  Lines lines(fd);
  while (const std::optional<std::string> line = lines.next(-1)) {
    std::istringstream in(*line);
    std::string verb;
    std::size_t at = 0;
    in >> verb;
    std::ostringstream out;
    if (verb == "stand-by" && in >> at) {
      feed_standby(fd, at);
      break;
    }
    const std::lock_guard lock(mutex);
    if (verb == "book") {
      out << (book(line->substr(5)) ? "ok\n" : "failed\n");
    } else if (verb == "list") {
      out << position << ' ' << bookings.size() << '\n';
      for (const std::string& booking : bookings) out << booking << '\n';
    } else {
      break;
    }
    if (!send_all(fd, out.str())) break;
  }
  close(fd);
}

// --- standby

// Into a file first; what is whole there goes into the journal at once.
bool receive_missed(Lines& lines, std::size_t count) {
  std::vector<std::string> missed;
  while (missed.size() < count) {
    std::optional<std::string> line = lines.next(kSilenceMs);
    if (!line) return false;
    missed.push_back(*std::move(line));
  }
  const std::lock_guard lock(mutex);
  const std::string path = folder + "/resync/from-" + std::to_string(position) + ".wal";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) {
    complain(path);
    return false;
  }
  std::size_t stored = 0;
  for (const std::string& booking : missed) {
    if (!write_all(fd, booking + "\n")) {
      complain(path);
      break;
    }
    ++stored;
  }
  std::string whole;
  for (std::size_t i = 0; i < stored; ++i) whole += missed[i] + "\n";
  const bool good = write_all(journal, whole);
  close(fd);
  unlink(path.c_str());
  if (!good) return false;
  bookings.insert(bookings.end(), missed.begin(), missed.begin() + static_cast<std::ptrdiff_t>(stored));
  position += count;
  std::fprintf(stderr, "as far as the primary again: %zu\n", position);
  return true;
}

int connect_to(const sockaddr_in& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  pollfd wait{fd, POLLOUT, 0};
  int error = 0;
  socklen_t size = sizeof error;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      (errno == EINPROGRESS && poll(&wait, 1, kConnectMs) == 1 &&
       getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0))
    return fd;
  close(fd);
  return -1;
}

void stand_by(const std::string& primary) {
  const sockaddr_in address = address_of(primary);
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
    const int fd = connect_to(address);
    if (fd < 0) continue;
    Lines lines(fd);
    send_all(fd, "stand-by " + std::to_string(position) + "\n");
    while (const std::optional<std::string> line = lines.next(kSilenceMs)) {
      if (line->starts_with("resync ")) {
        if (!receive_missed(lines, std::strtoul(line->c_str() + 7, nullptr, 10))) break;
      } else if (line->starts_with("book ")) {
        const std::lock_guard lock(mutex);
        if (!book(line->substr(5))) break;
      }
    }
    close(fd);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: ledgerd OWN-ADDRESS PRIMARY-ADDRESS FOLDER\n");
    return 2;
  }
  const std::string own = argv[1], primary = argv[2];
  folder = argv[3];
  start_ledger();
  const sockaddr_in address = address_of(own);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0 || listen(listener, 16) < 0) {
    complain("cannot listen");
    return 1;
  }
  if (own != primary) std::thread(stand_by, primary).detach();
  for (;;) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) std::thread(serve, fd).detach();
  }
}
