// The functions that programs call (rose_rr.h). Environment variables decide whether they do nothing, record or replay.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "rr/play.h"
#include "rr/ring.h"
#include "rr/rose_rr.h"

#undef rose_rr_replaying
#undef rose_rr_on
#undef rose_rr_record
#undef rose_rr_compare
#undef rose_rr_lock
#undef rose_rr_locked
#undef rose_rr_checkpoint_due

#define ROSE_RR_API extern "C" __attribute__((visibility("default")))

ROSE_RR_API int rose_rr_mode_;
int rose_rr_mode_ = 0;

namespace rose::rr {
namespace {

// Values of rose_rr_mode_. The file is opened by the first call and not when the library is loaded, because a daemon
// may fork between these two events, and a forked child records nothing.
enum Mode : int { off = 0, undecided = 1, recording = 2, replaying = 3 };

constinit Ring ring;
constinit Play play;
pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
std::atomic<std::uint64_t> last_checkpoint = UINT64_MAX;
char folder_at_start[4096];  // relative names refer to this folder, because the program may change its directory

void warn(const char* format, ...) __attribute__((format(printf, 1, 2)));
void warn(const char* format, ...) {
  char line[1024];
  va_list args;
  va_start(args, format);
  std::vsnprintf(line, sizeof line, format, args);
  va_end(args);
  std::fprintf(stderr, "rose-rr: %s\n", line);
}

void set_mode(Mode mode) { __atomic_store_n(&rose_rr_mode_, static_cast<int>(mode), __ATOMIC_RELEASE); }
Mode mode_now() { return static_cast<Mode>(__atomic_load_n(&rose_rr_mode_, __ATOMIC_ACQUIRE)); }

// Parses "16MiB" and rounds it up to a valid ring size. Returns 0 if it is not a size.
std::uint64_t window_bytes(const char* text) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long number = std::strtoull(text, &end, 10);
  if (end == text || errno != 0 || number == 0 || *text == '-') return 0;
  std::uint64_t unit = 0;
  if (*end == '\0' || std::strcmp(end, "B") == 0) unit = 1;
  else if (std::strcmp(end, "KiB") == 0) unit = 1 << 10;
  else if (std::strcmp(end, "MiB") == 0) unit = 1 << 20;
  else if (std::strcmp(end, "GiB") == 0) unit = 1 << 30;
  if (unit == 0 || number > kMostRing / unit) return 0;
  std::uint64_t ring_bytes = kLeastRing;
  while (ring_bytes < number * unit) ring_bytes *= 2;
  return ring_bytes;
}

// The number that stands for %n in `name`, that is, the number between `before` and `behind`. 0 if there is none.
unsigned long number_in(const char* name, std::string_view before, std::string_view behind) {
  const std::string_view text(name);
  if (text.size() <= before.size() + behind.size() || std::memcmp(name, before.data(), before.size()) != 0 ||
      std::memcmp(name + text.size() - behind.size(), behind.data(), behind.size()) != 0)
    return 0;
  unsigned long number = 0;
  for (std::size_t i = before.size(); i < text.size() - behind.size(); ++i) {
    const char c = text[i];
    if (c < '0' || c > '9' || number > 100'000'000) return 0;
    number = 10 * number + static_cast<unsigned long>(c - '0');
  }
  return number;
}

class Folder {
 public:
  explicit Folder(int fd) : fd_(fd) {}
  Folder(const Folder&) = delete;
  ~Folder() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int fd() const { return fd_; }
  template <typename Visit>
  void each(Visit visit) const {
    const int again = ::openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* all = again < 0 ? nullptr : ::fdopendir(again);
    if (all == nullptr) {
      if (again >= 0) ::close(again);
      return;
    }
    while (const dirent* entry = ::readdir(all)) visit(entry->d_name);
    ::closedir(all);
  }

 private:
  int fd_;
};

// Replaces %p and %n in `given`, and opens the file of that name.
bool open_recording(const char* given) {
  char path[4096], why[256] = "";
  std::size_t at = 0, number_at = SIZE_MAX, slash = SIZE_MAX;
  const auto put = [&](std::string_view text) {
    for (const char c : text)
      if (at + 24 < sizeof path) path[at++] = c;
  };
  if (*given != '/' && folder_at_start[0] != '\0') {
    put(folder_at_start);
    put("/");
  }
  for (const char* c = given; *c != '\0'; ++c) {
    if (*c == '%' && c[1] == 'p') {
      char pid[24];
      std::snprintf(pid, sizeof pid, "%d", static_cast<int>(::getpid()));
      put(pid);
      ++c;
    } else if (*c == '%' && c[1] == 'n' && number_at == SIZE_MAX) {
      number_at = at;
      ++c;
    } else {
      put({c, 1});
    }
  }
  path[at] = '\0';
  for (std::size_t i = 0; i < at; ++i)
    if (path[i] == '/') slash = i;
  if (number_at != SIZE_MAX && slash != SIZE_MAX && number_at <= slash) {
    warn("ROSE_RR=record:%s: %%n is possible in the file's name only, not in a folder's; nothing is recorded", given);
    return false;
  }
  const char* text = std::getenv("ROSE_RR_WINDOW");
  const std::uint64_t bytes = text == nullptr || *text == '\0' ? 16 << 20 : window_bytes(text);
  if (bytes == 0) {
    warn("ROSE_RR_WINDOW='%s' is not a size from 64KiB to 4GiB, such as 16MiB; nothing is recorded", text);
    return false;
  }
  text = std::getenv("ROSE_RR_KEEP");
  char* end = nullptr;
  const unsigned long keep = text == nullptr || *text == '\0' ? 8 : std::strtoul(text, &end, 10);
  if (keep == 0 || keep > 1'000'000 || (end != nullptr && *end != '\0')) {
    warn("ROSE_RR_KEEP='%s' is not a number from 1; nothing is recorded", text);
    return false;
  }
  char folder_name[4096] = ".";
  if (slash != SIZE_MAX) {
    std::memcpy(folder_name, path, slash + 1);
    folder_name[slash + 1] = '\0';
  }
  const Folder folder(::open(folder_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.fd() < 0) {
    warn("%s: %s; nothing is recorded", folder_name, std::strerror(errno));
    return false;
  }
  const char* name = path + (slash == SIZE_MAX ? 0 : slash + 1);
  const char* node = std::getenv("ROSE_NODE");
  if (number_at == SIZE_MAX) {
    if (ring.create(folder.fd(), name, bytes, node == nullptr ? "" : node, why, sizeof why)) return true;
    warn("%s %s; nothing is recorded%s", path, why,
         errno == EEXIST ? " (with %n in its name, each process gets its own)" : "");
    return false;
  }
  const std::string_view before(name, static_cast<std::size_t>(path + number_at - name)), behind(path + number_at);
  unsigned long newest = 0;
  folder.each([&](const char* there) {
    const unsigned long number = number_in(there, before, behind);
    if (number > newest) newest = number;
  });
  for (int tries = 0; tries < 100; ++tries) {
    char numbered[512];
    const int length = std::snprintf(numbered, sizeof numbered, "%.*s%lu%.*s", static_cast<int>(before.size()),
                                     before.data(), ++newest, static_cast<int>(behind.size()), behind.data());
    if (length < 0 || length >= static_cast<int>(sizeof numbered)) break;
    if (ring.create(folder.fd(), numbered, bytes, node == nullptr ? "" : node, why, sizeof why)) {
      folder.each([&](const char* there) {
        const unsigned long number = number_in(there, before, behind);
        if (number != 0 && number + keep <= newest) ::unlinkat(folder.fd(), there, 0);
      });
      return true;
    }
    if (errno != EEXIST) break;
  }
  warn("%s %s; nothing is recorded", path, why);
  return false;
}

// The handler of fatal signals. In the recording, the crash follows all records, also those of other threads. So wait
// until all of them have been replayed, or until there is no more progress.
void before_death(int signal) {
  play.wait_before_death();
  struct sigaction plain{};
  plain.sa_handler = SIG_DFL;
  ::sigaction(signal, &plain, nullptr);
  // End the process by this signal, with the default action. Returning from the handler is not enough: a SIGSEGV caused
  // by an instruction, or the signal of abort(), would occur again, but a signal sent by another process would not.
  ::raise(signal);
}

void open_replay(const char* path) {
  const char* text = std::getenv("ROSE_RR_PATIENCE");
  double patience = 10;
  if (text != nullptr && *text != '\0') {
    char* end = nullptr;
    patience = std::strtod(text, &end);
    if (end == text || (*end != '\0' && std::strcmp(end, "s") != 0) || !(patience >= 0.5 && patience <= 86400)) {
      warn("ROSE_RR_PATIENCE='%s' is not a time from 0.5s to 86400s", text);
      ::_exit(2);
    }
  }
  const char* outcome = std::getenv("ROSE_RR_OUTCOME");
  play.begin(path, outcome != nullptr && *outcome != '\0' ? outcome : nullptr, patience);
  if (!play.is_ours()) return;
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    struct sigaction there{};
    if (::sigaction(signal, nullptr, &there) != 0 || there.sa_handler != SIG_DFL) continue;
    struct sigaction ours{};
    ours.sa_handler = before_death;
    ours.sa_flags = SA_NODEFER;
    ::sigaction(signal, &ours, nullptr);
  }
}

void forget() { rose_rr_mode_ = off; }

Mode decide() {
  ::pthread_mutex_lock(&opening);
  Mode mode = mode_now();
  if (mode == undecided) {
    mode = off;
    const char* given = ::secure_getenv("ROSE_RR");
    if (given == nullptr) given = "";
    if (std::strncmp(given, "record:", 7) == 0 && given[7] != '\0') {
      if (open_recording(given + 7)) mode = recording;
    } else if (std::strncmp(given, "replay:", 7) == 0 && given[7] != '\0') {
      open_replay(given + 7);
      if (play.is_ours()) mode = replaying;
    } else if (*given != '\0') {
      warn("ROSE_RR='%s': expected record:FILE or replay:FILE; nothing is recorded", given);
    }
    if (mode != off) ::pthread_atfork(nullptr, nullptr, forget);
    set_mode(mode);
  }
  ::pthread_mutex_unlock(&opening);
  return mode;
}

Mode now() {
  const Mode mode = mode_now();
  return mode == undecided ? decide() : mode;
}

__attribute__((constructor)) void loaded() {
  const char* given = ::secure_getenv("ROSE_RR");
  if (given == nullptr || *given == '\0') return;
  if (::getcwd(folder_at_start, sizeof folder_at_start) == nullptr) folder_at_start[0] = '\0';
  set_mode(undecided);
}

// Called when exit() runs, or when the library is unloaded.
__attribute__((destructor)) void unloading() {
  const Mode mode = mode_now();
  if (mode == recording) ring.append(Kind::end, 0, {"exit", 4}, {nullptr, 0});
  if (mode == replaying) play.exiting();
  set_mode(off);
}

// Returns the key, or a valid one if the program gave an invalid key. An invalid key is a bug of the program, but it
// must not end the program.
std::string_view checked(const char* key) {
  const std::size_t length = key == nullptr ? 0 : ::strnlen(key, kMostKey + 1);
  if (length != 0 && length <= kMostKey) return {key, length};
  static std::atomic<bool> warned = false;
  if (!warned.exchange(true)) warn("a key has 1 to 255 bytes, this one has %s", length == 0 ? "none" : "more");
  return length == 0 ? std::string_view("(no key)") : std::string_view(key, kMostKey);
}

void append(Kind kind, const char* name, const void* data, std::size_t size) {
  const std::string_view key = checked(name);
  const bool is_hash = kind == Kind::compare && size > kWholeCompared;
  const bool too_large = record_bytes(key.size(), size) > most_record(ring.bytes()) || size > most_record(ring.bytes());
  if (!is_hash && !too_large) {
    ring.append(kind, 0, {key.data(), key.size()}, {data, size});
    return;
  }
  if (!is_hash) {
    static std::atomic<bool> warned = false;
    if (!warned.exchange(true))
      warn("'%s' has %zu bytes, more than a quarter of the window: it cannot be replayed (ROSE_RR_WINDOW)", name, size);
  }
  const Digest digest{size, hash_of(data, size, 0)};
  ring.append(kind, kDigest, {key.data(), key.size()}, {&digest, sizeof digest});
}

}  // namespace
}  // namespace rose::rr

using namespace rose::rr;

ROSE_RR_API int rose_rr_replaying(void) { return now() == replaying ? 1 : 0; }
ROSE_RR_API int rose_rr_on(void) { return now() != off ? 1 : 0; }

ROSE_RR_API void rose_rr_record(const char* key, void* data, size_t size) {
  const Mode mode = now();
  if (mode == recording) append(Kind::value, key, data, size);
  else if (mode == replaying) play.take(Kind::value, checked(key), data, size, size, false);
}

ROSE_RR_API size_t rose_rr_record_sized(const char* key, void* data, size_t size, size_t room) {
  const Mode mode = now();
  if (mode == recording) append(Kind::value, key, data, size);
  else if (mode == replaying) return play.take(Kind::value, checked(key), data, size, room, true);
  return size;
}

ROSE_RR_API void rose_rr_compare(const char* key, const void* data, size_t size) {
  const Mode mode = now();
  if (mode == recording) append(Kind::compare, key, data, size);
  else if (mode == replaying) play.compare(Kind::compare, checked(key), data, size);
}

ROSE_RR_API size_t rose_rr_lock(const char* key) { return now() == replaying ? play.await(checked(key)) : 0; }

ROSE_RR_API void rose_rr_locked(const char* key) {
  const Mode mode = now();
  if (mode == recording) append(Kind::lock, key, nullptr, 0);
  else if (mode == replaying) play.take(Kind::lock, checked(key), nullptr, 0, 0, false);
}

ROSE_RR_API void rose_rr_reproducer(const char* key, rose_rr_function function, void* context) {
  if (now() == replaying) play.reproducer(checked(key), function, context);
}

ROSE_RR_API int rose_rr_checkpoint_due(const char* key) {
  const Mode mode = now();
  if (mode == replaying) return play.checkpoint_due(checked(key)) ? 1 : 0;
  if (mode != recording) return 0;
  // A checkpoint is due when a quarter of the window has been recorded since the last one. New events overwrite the
  // oldest ones in the window, so at least one of the last three checkpoints remains in it.
  const std::uint64_t last = last_checkpoint.load(std::memory_order_relaxed);
  return last == UINT64_MAX || ring.reserved() - last > ring.bytes() / 4 ? 1 : 0;
}

ROSE_RR_API void rose_rr_checkpoint(const char* key, const void* data, size_t size) {
  const Mode mode = now();
  if (mode == replaying) play.compare(Kind::checkpoint, checked(key), data, size);
  if (mode != recording) return;
  append(Kind::checkpoint, key, data, size);
  last_checkpoint.store(ring.reserved(), std::memory_order_relaxed);
}

ROSE_RR_API int rose_rr_restore(const char* key, const void** data, size_t* size) {
  return now() == replaying && play.restore(checked(key), data, size) ? 1 : 0;
}

ROSE_RR_API void rose_rr_end(void) {
  const Mode mode = now();
  if (mode == recording) ring.append(Kind::end, 0, {"end", 3}, {nullptr, 0});
  else if (mode == replaying) play.end();
}

ROSE_RR_API void rose_rr_at_end(void (*function)(void* context), void* context) {
  if (now() == replaying) play.at_end(function, context);
}
