// A ledger on two hosts: the primary takes bookings, the standby follows. A standby that was away for long gets all
// missed bookings together. It collects them in a separate file first, so that the journal is never incomplete.
// Usage: ledgerd OWN-ADDRESS PRIMARY-ADDRESS FOLDER
#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <vector>

#include "lines.h"

namespace {

constexpr std::size_t kLongAway = 20;  // a standby that lacks more bookings than this was away for long
constexpr int kAliveMs = 50;

std::mutex mutex;  // guards all variables below
std::string folder;
std::vector<std::string> bookings;
std::size_t position = 0;  // the number of the primary's bookings that this host has
int journal = -1;

void complain(const std::string& what) {
  std::fprintf(stderr, "ledgerd: %s: %s\n", what.c_str(), std::strerror(errno));
}

bool write_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(fd, text.data() + done, text.size() - done);
    if (wrote <= 0) return false;
    done += static_cast<std::size_t>(wrote);
  }
  return true;
}

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

// Writes the missed bookings to a file first. Those that were written completely are then added to the journal at once.
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

bool take(Lines& lines, const std::string& line) {
  if (line.starts_with("resync ")) return receive_missed(lines, std::strtoul(line.c_str() + 7, nullptr, 10));
  if (!line.starts_with("book ")) return true;
  const std::lock_guard lock(mutex);
  return book(line.substr(5));
}

std::string where() { return "stand-by " + std::to_string(position) + "\n"; }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: ledgerd OWN-ADDRESS PRIMARY-ADDRESS FOLDER\n");
    return 2;
  }
  const std::string own = argv[1], primary = argv[2];
  folder = argv[3];
  start_ledger();
  const int listener = listen_at(own);
  if (own != primary) std::thread(follow, primary, where, take).detach();
  serve_each(listener, serve);
}
