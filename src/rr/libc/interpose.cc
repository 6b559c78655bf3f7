// librose-rr-libc.so, for LD_PRELOAD: records nondeterministic calls of the C library, without changes to the program.
// It contains librose-rr, which writes the records. ROSE_RR_LIBC lists what is recorded: time, random, pid, hostname,
// ready.
//
// Each call has a key, such as "libc/ready/poll/0.2", which consists of its source, its name and its thread. The first
// thread has the name "0". The name of any other thread consists of the name of its parent, that is, the thread that
// created it, and of its number among the threads that the parent created: "0.2" is the second thread that "0" created.
// These names are the same in a replay, so the replay follows the recorded order of these calls, within a thread and
// between threads. Nothing else is recorded, such as the data of sockets or the order of locks.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <atomic>
#include <cstdint>
#include <string_view>

#include "rr/layout.h"
#include "rr/rose_rr.h"

#define ROSE_LIBC extern "C" __attribute__((visibility("default")))
// This TLS model avoids __tls_get_addr, which may allocate memory.
#define ROSE_THREAD static thread_local __attribute__((tls_model("initial-exec")))

namespace {

enum Source : unsigned { kTime = 1, kRandom = 2, kPid = 4, kHostname = 8, kReady = 16 };
constexpr struct {
  std::string_view name;
  unsigned source;
} kSources[] = {{"time", kTime}, {"random", kRandom}, {"pid", kPid}, {"hostname", kHostname}, {"ready", kReady}};

constexpr std::size_t kMostThreadName = 200;

// The function of the C library that the function of the same name in this file replaces.
template <typename F>
class Next {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}
  F operator*() {
    F found = found_.load(std::memory_order_relaxed);
    if (found == nullptr) {
      found = reinterpret_cast<F>(::dlsym(RTLD_NEXT, name_));
      if (found == nullptr) ::abort();  // cannot happen: a program cannot call a function that its C library lacks
      found_.store(found, std::memory_order_relaxed);
    }
    return found;
  }

 private:
  const char* name_;
  std::atomic<F> found_{nullptr};
};
#pragma GCC diagnostic ignored "-Wignored-attributes"  // attributes of the function types are irrelevant here
#define NEXT(name) constinit Next<decltype(&::name)> next_##name(#name)

NEXT(clock_gettime);
NEXT(gettimeofday);
NEXT(time);
NEXT(timespec_get);
NEXT(getrandom);
NEXT(getentropy);
NEXT(arc4random);
NEXT(arc4random_buf);
NEXT(arc4random_uniform);
NEXT(getpid);
NEXT(getppid);
NEXT(gethostname);
NEXT(uname);
NEXT(select);
NEXT(pselect);
NEXT(poll);
NEXT(ppoll);
NEXT(epoll_wait);
NEXT(epoll_pwait);
NEXT(epoll_ctl);
NEXT(pthread_create);

std::atomic<unsigned> sources{0};

ROSE_THREAD int inside;  // the thread is in a function of this file, whose own calls must not be recorded
ROSE_THREAD char thread_name[kMostThreadName];  // "": not determined yet
ROSE_THREAD unsigned children;

std::string_view last_part(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);  // without a slash, rfind + 1 is 0
  return path;
}

// True if this is the program that was recorded, and not a debugger or shell that starts that program. Only that
// program is replayed. This function runs before the program is initialised, so it uses raw system calls.
bool is_recorded_program() {
  const char* given = ::secure_getenv("ROSE_RR");
  if (given == nullptr || std::strncmp(given, "replay:", 7) != 0) return true;
  const int file = ::open(given + 7, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return true;  // librose-rr will report the reason
  rose::rr::FileHead head;
  const bool whole = ::pread(file, &head, sizeof head, 0) == static_cast<ssize_t>(sizeof head);
  ::close(file);
  char own[4096];
  const ssize_t length = ::readlink("/proc/self/exe", own, sizeof own);
  if (!whole || length <= 0) return true;
  return last_part({head.program, ::strnlen(head.program, sizeof head.program)}) ==
         last_part({own, static_cast<std::size_t>(length)});
}

// Reads the list once, before the program starts, because the program may change its environment.
__attribute__((constructor)) void loaded() {
  const char* given = ::secure_getenv("ROSE_RR_LIBC");
  if (given == nullptr || *given == '\0' || !is_recorded_program()) return;
  unsigned all = 0;
  for (const char* at = given; *at != '\0';) {
    const char* end = ::strchrnul(at, ',');
    const std::string_view name(at, static_cast<std::size_t>(end - at));
    unsigned found = 0;
    for (const auto& one : kSources)
      if (one.name == name) found = one.source;
    if (found == 0) {
      std::fprintf(stderr,
                   "rose-rr: ROSE_RR_LIBC: '%.*s' is not one of time, random, pid, hostname, ready; nothing of the C "
                   "library is recorded\n",
                   static_cast<int>(name.size()), at);
      return;
    }
    all |= found;
    at = *end == '\0' ? end : end + 1;
  }
  sources.store(all, std::memory_order_relaxed);
}

// A call that is recorded or replayed. If the object converts to false, the call is neither recorded nor replayed, and
// the caller must only call the C library.
class Call {
 public:
  Call(unsigned source, const char* name) {
    if ((sources.load(std::memory_order_relaxed) & source) == 0 || inside != 0) return;
    ++inside;
    on_ = rose_rr_on() != 0;
    if (!on_) {
      --inside;
      return;
    }
    replaying_ = rose_rr_replaying() != 0;
    const char* thread = thread_name[0] == '\0' ? "0" : thread_name;
    const char* of = "";
    for (const auto& one : kSources)
      if (one.source == source) of = one.name.data();
    std::snprintf(key_, sizeof key_, "libc/%s/%s/%s", of, name, thread);
  }
  Call(const Call&) = delete;
  ~Call() {
    if (on_) --inside;
  }
  explicit operator bool() const { return on_; }
  // True if the C library must be called. In a replay, the recording supplies the result instead.
  [[nodiscard]] bool needs_library() const { return !replaying_; }
  // When recording, stores `data`. When replaying, replaces `data` by what was recorded.
  void record_or_replay(void* data, std::size_t bytes) { rose_rr_record(key_, data, bytes); }
  std::size_t record_or_replay(void* data, std::size_t bytes, std::size_t room) {
    return rose_rr_record_sized(key_, data, bytes, room);
  }

 private:
  bool on_ = false, replaying_ = false;
  char key_[kMostThreadName + 40];
};

// Handles a call that cannot fail and whose only result is a number.
template <typename Function>
auto number(unsigned source, const char* name, Function function) {
  Call call(source, name);
  if (!call) return function();
  auto answer = call.needs_library() ? function() : decltype(function()){};
  call.record_or_replay(&answer, sizeof answer);
  return answer;
}

template <typename Result, typename Value>
struct Outcome {
  Result result;
  int err;
  Value value;
};

template <typename Result, typename Value, typename Function>
Result call_recorded(Call& call, Value* into, Function function) {
  Outcome<Result, Value> outcome;
  std::memset(static_cast<void*>(&outcome), 0, sizeof outcome);  // the padding is recorded, too, so it must be zero
  if (call.needs_library()) {
    outcome.result = function();
    outcome.err = errno;
    if (into != nullptr) std::memcpy(static_cast<void*>(&outcome.value), into, sizeof outcome.value);
  }
  call.record_or_replay(&outcome, sizeof outcome);
  if (into != nullptr) std::memcpy(static_cast<void*>(into), &outcome.value, sizeof outcome.value);
  if (outcome.result == static_cast<Result>(-1)) errno = outcome.err;
  return outcome.result;
}

// False for clocks of CPU time. They are not recorded, because in a replay they must show the CPU time of the replay.
bool is_wall(clockid_t clock) {
  return clock >= 0 && clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID;
}

// Handles a call that returns bytes. The result is recorded first, then the bytes.
template <typename Function>
ssize_t call_recorded_bytes(Call& call, void* to, std::size_t room, Function function) {
  struct {
    ssize_t result;
    long err;
  } outcome{0, 0};
  if (call.needs_library()) {
    outcome.result = function();
    outcome.err = errno;
  }
  call.record_or_replay(&outcome, sizeof outcome);
  if (outcome.result > 0) call.record_or_replay(to, static_cast<std::size_t>(outcome.result), room);
  if (outcome.result < 0) errno = static_cast<int>(outcome.err);
  return outcome.result;
}

// Maps between descriptors and the data that epoll returns for them. The program chooses the data, which are often an
// address and therefore differ in a replay. So the descriptor is recorded instead, and a replay maps it to the data
// that the program has registered in the replay.
class Watched {
 public:
  void update(int set, int fd, const epoll_event* event) {
    ::pthread_mutex_lock(&lock_);
    std::size_t at = 0;
    while (at < count_ && (all_[at].set != set || all_[at].fd != fd)) ++at;
    if (at < count_) std::memmove(all_ + at, all_ + at + 1, (--count_ - at) * sizeof *all_);
    if (event != nullptr) {
      if (count_ == room_) {
        const std::size_t room = room_ == 0 ? 64 : 2 * room_;
        void* more = ::realloc(all_, room * sizeof *all_);
        if (more == nullptr) ::abort();
        all_ = static_cast<Registration*>(more);
        room_ = room;
      }
      all_[count_++] = {set, fd, event->data.u64};
    }
    ::pthread_mutex_unlock(&lock_);
  }
  int fd_of(int set, std::uint64_t data) {
    int fd = -1;
    ::pthread_mutex_lock(&lock_);
    for (std::size_t i = count_; i > 0 && fd < 0; --i)
      if (all_[i - 1].set == set && all_[i - 1].data == data) fd = all_[i - 1].fd;
    ::pthread_mutex_unlock(&lock_);
    return fd;
  }
  bool data_of(int set, int fd, std::uint64_t& data) {
    bool found = false;
    ::pthread_mutex_lock(&lock_);
    for (std::size_t i = 0; i < count_; ++i)
      if (all_[i].set == set && all_[i].fd == fd) data = all_[i].data, found = true;
    ::pthread_mutex_unlock(&lock_);
    return found;
  }

 private:
  struct Registration {
    int set, fd;
    std::uint64_t data;
  };
  // Sorted by the time of registration. A later registration takes precedence over an earlier one with the same data,
  // whose descriptor may have been closed: this file does not intercept close().
  Registration* all_ = nullptr;
  std::size_t count_ = 0, room_ = 0;
  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
};
constinit Watched watched;

struct Ready {
  std::uint32_t events;
  std::int32_t fd;  // -1: unknown; `data` is then stored unchanged
  std::uint64_t data;
};

// Handles a call that returns the number of ready descriptors, or -1 with an errno.
template <typename Function>
int call_recorded_status(Call& call, Function function) {
  struct {
    int result, err;
  } outcome{0, 0};
  if (call.needs_library()) {
    outcome.result = function();
    outcome.err = errno;
  }
  call.record_or_replay(&outcome, sizeof outcome);
  if (outcome.result < 0) errno = outcome.err;
  return outcome.result;
}

template <typename Function>
int call_recorded_epoll(Call& call, int set, epoll_event* events, int most, Function function) {
  const int result = call_recorded_status(call, function);
  for (int i = 0; i < result && i < most; ++i) {
    Ready ready{events[i].events, -1, events[i].data.u64};
    if (call.needs_library()) ready.fd = watched.fd_of(set, events[i].data.u64);
    if (ready.fd >= 0) ready.data = 0;
    call.record_or_replay(&ready, sizeof ready);
    events[i].events = ready.events;
    if (call.needs_library()) continue;
    events[i].data.u64 = ready.data;
    if (ready.fd >= 0 && !watched.data_of(set, ready.fd, ready.data))
      continue;  // the program registered other descriptors than when it was recorded; later records will show this
    events[i].data.u64 = ready.data;
  }
  return result;
}

template <typename Function>
int call_recorded_poll(Call& call, pollfd* fds, nfds_t count, Function function) {
  const int result = call_recorded_status(call, function);
  constexpr nfds_t kAtOnce = 64;
  for (nfds_t from = 0; result > 0 && from < count; from += kAtOnce) {
    short revents[kAtOnce] = {};
    const nfds_t part = count - from < kAtOnce ? count - from : kAtOnce;
    for (nfds_t i = 0; i < part; ++i) revents[i] = fds[from + i].revents;
    call.record_or_replay(revents, part * sizeof revents[0]);
    for (nfds_t i = 0; i < part; ++i) fds[from + i].revents = revents[i];
  }
  for (nfds_t i = 0; result == 0 && i < count; ++i) fds[i].revents = 0;
  return result;
}

struct Sets {
  fd_set read, write, failed;
  timeval left;
};
template <typename Function>
int call_recorded_select(Call& call, fd_set* read, fd_set* write, fd_set* failed, timeval* left, Function function) {
  Outcome<int, Sets> outcome;
  std::memset(static_cast<void*>(&outcome), 0, sizeof outcome);
  if (call.needs_library()) {
    outcome.result = function();
    outcome.err = errno;
    if (read != nullptr) outcome.value.read = *read;
    if (write != nullptr) outcome.value.write = *write;
    if (failed != nullptr) outcome.value.failed = *failed;
    if (left != nullptr) outcome.value.left = *left;
  }
  call.record_or_replay(&outcome, sizeof outcome);
  if (outcome.result < 0) errno = outcome.err;
  if (left != nullptr) *left = outcome.value.left;
  if (outcome.result < 0) return outcome.result;
  if (read != nullptr) *read = outcome.value.read;
  if (write != nullptr) *write = outcome.value.write;
  if (failed != nullptr) *failed = outcome.value.failed;
  return outcome.result;
}

struct Begin {
  void* (*run)(void*);
  void* argument;
  char name[kMostThreadName];
};
void* begin_thread(void* given) {
  auto* begin = static_cast<Begin*>(given);
  std::memcpy(thread_name, begin->name, sizeof thread_name);
  const auto run = begin->run;
  void* const argument = begin->argument;
  ::free(begin);
  return run(argument);
}

}  // namespace

// The functions that librose-rr calls instead of the intercepted ones; see own_calls.h

extern "C" {
int rose_own_clock_gettime(clockid_t clock, timespec* now) { return (*next_clock_gettime)(clock, now); }
int rose_own_gethostname(char* name, size_t room) { return (*next_gethostname)(name, room); }
int rose_own_pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*), void* argument) {
  return (*next_pthread_create)(thread, how, run, argument);
}
pid_t rose_own_getpid(void) { return (*next_getpid)(); }
ssize_t rose_own_getrandom(void* to, size_t bytes, unsigned flags) { return (*next_getrandom)(to, bytes, flags); }
}

// Threads

ROSE_LIBC int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*),
                             void* argument) noexcept {
  if (sources.load(std::memory_order_relaxed) == 0 || inside != 0)
    return (*next_pthread_create)(thread, how, run, argument);
  auto* begin = static_cast<Begin*>(::malloc(sizeof(Begin)));
  if (begin == nullptr) return EAGAIN;
  begin->run = run;
  begin->argument = argument;
  const char* own = thread_name[0] == '\0' ? "0" : thread_name;
  const int length = std::snprintf(begin->name, sizeof begin->name, "%s.%u", own, ++children);
  if (length >= static_cast<int>(sizeof begin->name))
    std::strcpy(begin->name, "deep");  // all threads that are nested so deeply (two hundred generations) share one key
  const int result = (*next_pthread_create)(thread, how, begin_thread, begin);
  if (result != 0) {
    --children;
    ::free(begin);
  }
  return result;
}

// --- Time

ROSE_LIBC int clock_gettime(clockid_t clock, timespec* now) noexcept {
  if (is_wall(clock))
    if (Call call(kTime, "clock_gettime"); call)
      return call_recorded<int>(call, now, [&] { return (*next_clock_gettime)(clock, now); });
  return (*next_clock_gettime)(clock, now);
}
ROSE_LIBC int gettimeofday(timeval* now, void* zone) noexcept {
  if (Call call(kTime, "gettimeofday"); call)
    return call_recorded<int>(call, now, [&] { return (*next_gettimeofday)(now, zone); });
  return (*next_gettimeofday)(now, zone);
}
ROSE_LIBC time_t time(time_t* now) noexcept {
  Call call(kTime, "time");
  if (!call) return (*next_time)(now);
  time_t seconds = call.needs_library() ? (*next_time)(nullptr) : 0;
  call.record_or_replay(&seconds, sizeof seconds);
  if (now != nullptr) *now = seconds;
  return seconds;
}
ROSE_LIBC int timespec_get(timespec* now, int base) noexcept {
  if (Call call(kTime, "timespec_get"); call)
    return call_recorded<int>(call, now, [&] { return (*next_timespec_get)(now, base); });
  return (*next_timespec_get)(now, base);
}

// --- Random numbers

ROSE_LIBC ssize_t getrandom(void* to, size_t bytes, unsigned flags) noexcept {
  if (Call call(kRandom, "getrandom"); call)
    return call_recorded_bytes(call, to, bytes, [&] { return (*next_getrandom)(to, bytes, flags); });
  return (*next_getrandom)(to, bytes, flags);
}
ROSE_LIBC int getentropy(void* to, size_t bytes) noexcept {
  Call call(kRandom, "getentropy");
  if (!call) return (*next_getentropy)(to, bytes);
  return call_recorded_bytes(call, to, bytes,
                             [&] { return (*next_getentropy)(to, bytes) == 0 ? static_cast<ssize_t>(bytes) : -1; }) < 0
             ? -1
             : 0;
}
ROSE_LIBC std::uint32_t arc4random(void) noexcept {
  return number(kRandom, "arc4random", [] { return (*next_arc4random)(); });
}
ROSE_LIBC void arc4random_buf(void* to, size_t bytes) noexcept {
  Call call(kRandom, "arc4random_buf");
  if (!call || call.needs_library()) (*next_arc4random_buf)(to, bytes);
  if (call) call.record_or_replay(to, bytes);
}
ROSE_LIBC std::uint32_t arc4random_uniform(std::uint32_t bound) noexcept {
  return number(kRandom, "arc4random_uniform", [&] { return (*next_arc4random_uniform)(bound); });
}

// --- Process ids, host name

ROSE_LIBC pid_t getpid(void) noexcept {
  return number(kPid, "getpid", [] { return (*next_getpid)(); });
}
ROSE_LIBC pid_t getppid(void) noexcept {
  return number(kPid, "getppid", [] { return (*next_getppid)(); });
}
ROSE_LIBC int gethostname(char* name, size_t room) noexcept {
  Call call(kHostname, "gethostname");
  if (!call) return (*next_gethostname)(name, room);
  char whole[256] = {};
  const int result = call_recorded<int>(call, &whole, [&] { return (*next_gethostname)(whole, sizeof whole - 1); });
  if (result != 0) return result;
  const std::size_t length = std::strlen(whole);
  std::memcpy(name, whole, length < room ? length + 1 : room);
  if (length < room) return 0;
  errno = ENAMETOOLONG;
  return -1;
}
ROSE_LIBC int uname(utsname* name) noexcept {
  if (Call call(kHostname, "uname"); call) return call_recorded<int>(call, name, [&] { return (*next_uname)(name); });
  return (*next_uname)(name);
}

// --- Ready descriptors

ROSE_LIBC int poll(pollfd* fds, nfds_t count, int timeout) {
  if (Call call(kReady, "poll"); call)
    return call_recorded_poll(call, fds, count, [&] { return (*next_poll)(fds, count, timeout); });
  return (*next_poll)(fds, count, timeout);
}
ROSE_LIBC int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  if (Call call(kReady, "ppoll"); call)
    return call_recorded_poll(call, fds, count, [&] { return (*next_ppoll)(fds, count, timeout, mask); });
  return (*next_ppoll)(fds, count, timeout, mask);
}
// Programs that were compiled with _FORTIFY_SOURCE call these variants.
ROSE_LIBC int __poll_chk(pollfd* fds, nfds_t count, int timeout, size_t bytes) {
  if (bytes / sizeof *fds < count) ::abort();
  return poll(fds, count, timeout);
}
ROSE_LIBC int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask, size_t bytes) {
  if (bytes / sizeof *fds < count) ::abort();
  return ppoll(fds, count, timeout, mask);
}
ROSE_LIBC int __gethostname_chk(char* name, size_t room, size_t bytes) {
  if (bytes < room) ::abort();
  return gethostname(name, room);
}
ROSE_LIBC int select(int count, fd_set* read, fd_set* write, fd_set* failed, timeval* timeout) {
  if (Call call(kReady, "select"); call)
    return call_recorded_select(call, read, write, failed, timeout,
                                [&] { return (*next_select)(count, read, write, failed, timeout); });
  return (*next_select)(count, read, write, failed, timeout);
}
ROSE_LIBC int pselect(int count, fd_set* read, fd_set* write, fd_set* failed, const timespec* timeout,
                      const sigset_t* mask) {
  if (Call call(kReady, "pselect"); call)
    return call_recorded_select(call, read, write, failed, nullptr,
                                [&] { return (*next_pselect)(count, read, write, failed, timeout, mask); });
  return (*next_pselect)(count, read, write, failed, timeout, mask);
}
ROSE_LIBC int epoll_ctl(int set, int what, int fd, epoll_event* event) noexcept {
  const int result = (*next_epoll_ctl)(set, what, fd, event);
  // In a replay, epoll_ctl may fail because the descriptor does not support epoll. The descriptor is noted
  // nevertheless, because the results of epoll_wait come from the recording.
  if ((sources.load(std::memory_order_relaxed) & kReady) != 0 && (result == 0 || rose_rr_replaying() != 0)) {
    const int err = errno;
    watched.update(set, fd, what == EPOLL_CTL_DEL ? nullptr : event);
    errno = err;
  }
  return result;
}
ROSE_LIBC int epoll_wait(int set, epoll_event* events, int most, int timeout) {
  if (Call call(kReady, "epoll_wait"); call)
    return call_recorded_epoll(call, set, events, most, [&] { return (*next_epoll_wait)(set, events, most, timeout); });
  return (*next_epoll_wait)(set, events, most, timeout);
}
ROSE_LIBC int epoll_pwait(int set, epoll_event* events, int most, int timeout, const sigset_t* mask) {
  if (Call call(kReady, "epoll_pwait"); call)
    return call_recorded_epoll(call, set, events, most,
                               [&] { return (*next_epoll_pwait)(set, events, most, timeout, mask); });
  return (*next_epoll_pwait)(set, events, most, timeout, mask);
}
