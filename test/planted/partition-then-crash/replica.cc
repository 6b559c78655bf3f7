// A replicated key-value store with a fixed primary, the first address. Clients put to the primary; followers stream
// its log, of which it keeps only the latest entries: a follower that lags further behind gets a snapshot. Usage:
// replica OWN-ADDRESS ADDRESSES FOLDER
#include <deque>
#include <map>
#include <mutex>
#include <sstream>

#include "lines.h"
#include "store.h"

namespace {

constexpr std::size_t kKept = 60;  // number of entries of the log that are kept
constexpr int kHeartbeatMs = 50;

struct Entry {
  std::uint64_t position;
  std::string key, value;
};

std::mutex mutex;  // guards all variables below
std::optional<Store> store;
std::deque<Entry> entries;

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
            if (entry.position > position)
              out << "entry " << entry.position << ' ' << entry.key << ' ' << entry.value << '\n';
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

bool take(Lines& lines, const std::string& line) {
  std::istringstream in(line);
  std::string verb, key, value;
  std::uint64_t position = 0;
  in >> verb;
  if (verb == "snapshot") return receive_snapshot(lines, in);
  if (verb == "entry" && in >> position >> key >> value) {
    const std::lock_guard lock(mutex);
    store->apply(position, key, value);
  }
  return true;
}

std::string where() { return "follow " + std::to_string(store->position) + "\n"; }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: replica OWN-ADDRESS ADDRESSES FOLDER\n");
    return 2;
  }
  const std::string own = argv[1], primary = addresses_in(argv[2]).front();
  store.emplace(argv[3]);
  const int listener = listen_at(own);
  if (own != primary) std::thread(follow, primary, where, take).detach();
  serve_each(listener, serve);
}
