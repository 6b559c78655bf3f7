// A replicated key-value store with a fixed primary, the first address. Clients put to the primary; followers stream
// its log, of which it keeps only the latest entries: who lags further behind gets a snapshot.
// Usage: replica OWN-ADDRESS ADDRESSES FOLDER
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "store.h"

namespace {

constexpr int kPort = 7000;
constexpr std::size_t kKept = 60;       // entries of the log
constexpr int kHeartbeatMs = 50;
constexpr int kSilenceMs = 600;         // of the primary, until a follower connects anew
constexpr int kConnectMs = 300;

struct Entry {
  std::uint64_t position;
  std::string key, value;
};

std::mutex mutex;   // of all that follows
std::optional<Store> store;
std::deque<Entry> entries;

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

bool send_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t sent = send(fd, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    done += static_cast<std::size_t>(sent);
  }
  return true;
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
      char piece[65536];
      const ssize_t got = read(fd_, piece, sizeof piece);
      if (got <= 0) return std::nullopt;
      buffer_.append(piece, static_cast<std::size_t>(got));
    }
  }

 private:
  int fd_;
  std::string buffer_;
};

// --- primary

void feed_follower(int fd, std::uint64_t position) {
  for (;;) {
    std::ostringstream out;
    {
      const std::lock_guard lock(mutex);
      if (position < store->position) {
        if (entries.empty() || entries.front().position > position + 1) {
          out << "snapshot " << store->position << ' ' << store->keys.size() << '\n';
          for (const auto& [key, value] : store->keys) out << key << ' ' << value << '\n';
          position = store->position;
        } else {
          for (const Entry& entry : entries)
            if (entry.position > position) out << "entry " << entry.position << ' ' << entry.key << ' ' << entry.value << '\n';
          position = store->position;
        }
      } else {
        out << "alive\n";
      }
    }
    if (!send_all(fd, out.str())) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(kHeartbeatMs));
  }
}

void serve(int fd) {
  Lines lines(fd);
  while (const std::optional<std::string> line = lines.next(-1)) {
    std::istringstream in(*line);
    std::string verb, key, value;
    in >> verb;
    if (verb == "follow") {
      std::uint64_t position = 0;
      in >> position;
      feed_follower(fd, position);
      break;
    }
    std::ostringstream out;
    if (verb == "put" && in >> key >> value) {
      const std::lock_guard lock(mutex);
      store->apply(store->position + 1, key, value);
      entries.push_back({store->position, key, value});
      if (entries.size() > kKept) entries.pop_front();
      out << "ok " << store->position << '\n';
    } else if (verb == "dump") {
      const std::lock_guard lock(mutex);
      out << store->position << ' ' << store->keys.size() << '\n';
      for (const auto& [k, v] : store->keys) out << k << ' ' << v << '\n';
    } else {
      break;
    }
    if (!send_all(fd, out.str())) break;
  }
  close(fd);
}

// --- follower

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

bool receive_snapshot(Lines& lines, std::istringstream& head) {
  std::uint64_t position = 0;
  std::size_t count = 0;
  head >> position >> count;
  std::map<std::string, std::string> keys;
  while (keys.size() < count) {
    const std::optional<std::string> line = lines.next(kSilenceMs);
    if (!line) return false;
    const std::size_t space = line->find(' ');
    keys.emplace(line->substr(0, space), line->substr(space + 1));
  }
  const std::lock_guard lock(mutex);
  store->install(position, std::move(keys));
  return true;
}

void follow(const std::string& primary) {
  const sockaddr_in address = address_of(primary);
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
    const int fd = connect_to(address);
    if (fd < 0) continue;
    Lines lines(fd);
    send_all(fd, "follow " + std::to_string(store->position) + "\n");
    while (const std::optional<std::string> line = lines.next(kSilenceMs)) {
      std::istringstream in(*line);
      std::string verb, key, value;
      std::uint64_t position = 0;
      in >> verb;
      if (verb == "snapshot" && !receive_snapshot(lines, in)) break;
      if (verb == "entry" && in >> position >> key >> value) {
        const std::lock_guard lock(mutex);
        store->apply(position, key, value);
      }
    }
    close(fd);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: replica OWN-ADDRESS ADDRESSES FOLDER\n");
    return 2;
  }
  const std::string own = argv[1], all = argv[2];
  const std::string primary = all.substr(0, all.find(','));
  store.emplace(argv[3]);
  const sockaddr_in address = address_of(own);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0 || listen(listener, 16) < 0) {
    std::perror("cannot listen");
    return 1;
  }
  if (own != primary) std::thread(follow, primary).detach();
  for (;;) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) std::thread(serve, fd).detach();
  }
}
