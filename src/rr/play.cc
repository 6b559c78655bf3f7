#include "rr/play.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>

// The macros of rose_rr.h are meant for callers outside the library.
#undef rose_rr_replaying

namespace rose::rr {
namespace {

constexpr std::size_t kMostWorkers = 1024;
constexpr int kTickMs = 100;

class Locked {
 public:
  explicit Locked(pthread_mutex_t& lock) : lock_(lock) { ::pthread_mutex_lock(&lock_); }
  Locked(const Locked&) = delete;
  ~Locked() { ::pthread_mutex_unlock(&lock_); }

 private:
  pthread_mutex_t& lock_;
};

std::uint64_t self() {
  static thread_local char of_this_thread;
  return reinterpret_cast<std::uintptr_t>(&of_this_thread);
}
thread_local std::size_t last_taken = SIZE_MAX;  // index of the last record that this thread has taken

// Makes a key printable, because a key may contain any bytes.
void put_key(char* to, std::size_t room, std::string_view key) {
  std::size_t at = 0;
  for (const char c : key) {
    if (at + 5 >= room) break;
    if (c >= ' ' && c < 0x7f && c != '\\') to[at++] = c;
    else at += static_cast<std::size_t>(std::snprintf(to + at, room - at, "\\x%02x", static_cast<unsigned char>(c)));
  }
  to[at] = '\0';
}

bool fits(std::string_view pattern, std::string_view key) {
  if (pattern.empty() || pattern.back() != '*') return pattern == key;
  pattern.remove_suffix(1);
  return key.size() >= pattern.size() && std::memcmp(key.data(), pattern.data(), pattern.size()) == 0;
}

// Writes out the program's buffered output. A stream that another thread has locked is skipped, because it may be
// locked forever.
void flush_output() {
  for (std::FILE* stream : {stdout, stderr}) {
    if (::ftrylockfile(stream) != 0) continue;
    ::fflush_unlocked(stream);
    ::funlockfile(stream);
  }
}

// The CPU time of all threads of the process.
std::int64_t cpu_ms() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return used.tv_sec * 1000 + used.tv_nsec / 1'000'000;
}

}  // namespace

struct Play::Waiter {
  std::string_view key;
  pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
  Waiter* next = nullptr;
};
struct Play::Worker {
  Play* play = nullptr;
  bool busy = false;
  std::size_t item = 0;
  rose_rr_function function = nullptr;
  void* context = nullptr;
  pthread_cond_t given = PTHREAD_COND_INITIALIZER;
  Worker* next = nullptr;
};
struct Play::Reproducer {
  char pattern[kMostKey + 1];
  rose_rr_function function = nullptr;
  void* context = nullptr;
  Reproducer* next = nullptr;
};

void Play::refuse(const char* path, const char* why) {
  std::fprintf(stderr, "rose-rr: %s: %s\n", path, why);
  if (outcome_ != nullptr) {
    std::snprintf(outcome_->message, sizeof outcome_->message, "%s", why);
    outcome_->state.store(State::refused);
  }
  flush_output();
  ::_exit(2);
}

void Play::claim(const char* path) {
  outcome_ = &own_;
  if (path == nullptr) return;
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  struct stat info{};
  void* page = MAP_FAILED;
  if (fd >= 0 && ::fstat(fd, &info) == 0 && info.st_size >= static_cast<off_t>(sizeof(Outcome)))
    page = ::mmap(nullptr, sizeof(Outcome), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd >= 0) ::close(fd);
  if (page == MAP_FAILED) refuse(path, "ROSE_RR_OUTCOME is not a page for the outcome; 'rose replay' sets it");
  auto* outcome = static_cast<Outcome*>(page);
  // If the process that claimed the outcome before has ended, a debugger has started the program again. If that process
  // still exists, this process is a program that it started, which is not part of the recording.
  std::uint32_t before = 0;
  const auto own = static_cast<std::uint32_t>(::getpid());
  while (!outcome->pid.compare_exchange_strong(before, own)) {
    if (before == own) break;
    if (::kill(static_cast<pid_t>(before), 0) == 0 || errno != ESRCH) {
      ours_ = false;
      ::munmap(page, sizeof(Outcome));
      return;
    }
  }
  outcome_ = outcome;
}

void Play::begin(const char* path, const char* outcome, double patience_s) {
  patience_s_ = patience_s;
  claim(outcome);
  if (!ours_) return;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) refuse(path, std::strerror(errno));
  struct stat info{};
  alignas(8) static char head[kHeadBytes];
  const char* why = "it is not a regular file";
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) refuse(path, why);
  const ssize_t got = ::pread(fd, head, sizeof head, 0);
  const std::uint64_t ring = Reading::ring_bytes(
      head, got < static_cast<ssize_t>(sizeof head) ? 0 : static_cast<std::uint64_t>(info.st_size), &why);
  if (ring == 0) refuse(path, why);
  // Make a private copy, because the file may change or shrink during the replay.
  const std::uint64_t file = kHeadBytes + ring;
  void* bytes = ::mmap(nullptr, file + most_record(ring), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bytes == MAP_FAILED) refuse(path, "there is not enough memory for it");
  char* to = static_cast<char*>(bytes);
  for (std::uint64_t have = 0; have < file;) {
    const ssize_t more = ::pread(fd, to + have, file - have, static_cast<off_t>(have));
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) refuse(path, more < 0 ? std::strerror(errno) : "it shrank while it was read");
    have += static_cast<std::uint64_t>(more);
  }
  ::close(fd);
  std::memcpy(to + file, to + kHeadBytes, most_record(ring));
  Reading reading;
  if (const char* wrong = reading.open(to, file)) refuse(path, wrong);
  const Facts& facts = reading.facts();
  if (facts.lost != 0)
    refuse(path, "records were lost during recording (ROSE_RR_WINDOW was too small): it cannot be replayed");
  if (facts.records == 0) refuse(path, "it contains no record");
  if (!load(reading))
    refuse(path,
           "its beginning was overwritten, and no checkpoint is left to start from: record with a larger "
           "ROSE_RR_WINDOW, or make checkpoints more often");
  outcome_->version = kOutcomeVersion;
  outcome_->total = count_;
  outcome_->taken.store(0);
  outcome_->state.store(State::playing);
  if (!start_thread(watch, this)) refuse(path, "no thread could be started");
}

bool Play::load(Reading& reading) {
  const Facts& facts = reading.facts();
  const std::size_t most = facts.records;
  records_ = static_cast<Record*>(std::calloc(most + 1, sizeof(Record)));
  following_ = static_cast<std::uint32_t*>(std::calloc(most + 1, sizeof(std::uint32_t)));
  if (records_ == nullptr || following_ == nullptr) return false;
  Record record;
  for (std::uint64_t position = facts.begin; count_ < most && reading.next(position, record);) {
    if (facts.overwritten && count_ == 0 && (record.kind != Kind::checkpoint || (record.flags & kDigest) != 0))
      continue;
    if (record.kind == Kind::end) {
      ended_ = true;
      break;
    }
    records_[count_++] = record;
  }
  must_restore_ = facts.overwritten;
  if (facts.overwritten && count_ == 0) return false;
  // Go through the records from the end to the beginning, to find the next record of the same thread for each of them.
  std::size_t slots = 16;
  while (slots < 2 * count_) slots *= 2;
  struct Seen {
    std::uint32_t thread, index;  // index + 1; 0: the slot is unused
  };
  auto* seen = static_cast<Seen*>(std::calloc(slots, sizeof(Seen)));
  if (seen == nullptr) return false;
  for (std::size_t i = count_; i-- > 0;) {
    const std::uint32_t thread = records_[i].thread;
    std::size_t slot = mixed(0, thread) & (slots - 1);
    while (seen[slot].index != 0 && seen[slot].thread != thread) slot = (slot + 1) & (slots - 1);
    following_[i] = seen[slot].index == 0 ? static_cast<std::uint32_t>(count_) : seen[slot].index - 1;
    seen[slot] = {thread, static_cast<std::uint32_t>(i) + 1};
  }
  std::free(seen);
  return true;
}

bool Play::start_thread(void* (*run)(void*), void* argument) {
  // Block all signals in the new thread, because signals for the program must be delivered to the program's own
  // threads.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const bool started = ::pthread_create(&thread, nullptr, run, argument) == 0;
  if (started) ::pthread_detach(thread);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

// The order of records. The functions below must be called with the lock held, unless they take the lock themselves.

void Play::expect_text(char* text, std::size_t room) const {
  const std::size_t next = next_;
  if (next >= count_) {
    std::snprintf(text, room, "the end of the recording");
    return;
  }
  char key[300];
  put_key(key, sizeof key, records_[next].key);
  if (records_[next].data.empty()) std::snprintf(text, room, "%s '%s'", kind_name(records_[next].kind), key);
  else
    std::snprintf(text, room, "%s '%s' of %zu bytes", kind_name(records_[next].kind), key, records_[next].data.size());
}

extern "C" __attribute__((visibility("default"), noinline)) void rose_rr_diverged(void) { __asm__ volatile(""); }

void Play::diverge(const char* expected, const char* got) {
  const std::size_t next = next_;
  Outcome& out = *outcome_;
  std::snprintf(out.expected, sizeof out.expected, "%s", expected);
  std::snprintf(out.got, sizeof out.got, "%s", got);
  out.position = next < count_ ? records_[next].position : 0;
  out.key[0] = '\0';
  if (next < count_) put_key(out.key, sizeof out.key, records_[next].key);
  out.taken.store(next);
  out.state.store(State::diverged);
  std::fprintf(stderr, "rose-rr: diverged at record %zu of %zu: expected %s, got %s\n", next + 1, count_, expected,
               got);
  rose_rr_diverged();  // a place for a breakpoint
  flush_output();
  ::_exit(1);
}

void Play::note_state() {
  outcome_->taken.store(next_);
  if (next_ == count_) outcome_->state.store(State::replayed);
}

void Play::advance() {
  last_taken = next_;
  next_.fetch_add(1);
  taker_ = self();
  note_state();
  for (Waiter* waiter = waiters_; waiter != nullptr; waiter = waiter->next)
    if (next_ == count_ || waiter->key == records_[next_].key) ::pthread_cond_signal(&waiter->turn);
  dispatch();
}

// Ends the replay. Called when the thread that took the last record calls the library again or returns from its
// reproducer. At that point, the thread has processed the record.
void Play::finish() {
  if (finishing_) return;
  finishing_ = true;
  ::pthread_cond_signal(&watch_);
}

void Play::wait_turn(Kind kind, std::string_view key) {
  if (next_ == 0 && must_restore_) {
    char got[400], quoted[300], expected[400];
    put_key(quoted, sizeof quoted, key);
    std::snprintf(got, sizeof got,
                  "%s '%s': the recording's beginning was overwritten, so rose_rr_restore() must come first",
                  kind_name(kind), quoted);
    expect_text(expected, sizeof expected);
    diverge(expected, got);
  }
  Waiter waiter{.key = key};
  waiter.next = waiters_;
  waiters_ = &waiter;
  for (;;) {
    if (next_ < count_ && records_[next_].key == key) break;
    if (next_ == count_ && !ended_ && taker_ == self()) finish();
    ::pthread_cond_wait(&waiter.turn, &lock_);
  }
  Waiter** at = &waiters_;
  while (*at != &waiter) at = &(*at)->next;
  *at = waiter.next;
}

std::size_t Play::await(std::string_view key) {
  const Locked locked(lock_);
  wait_turn(Kind::lock, key);
  return records_[next_].data.size();
}

std::size_t Play::take(Kind kind, std::string_view key, void* data, std::size_t size, std::size_t room, bool sized) {
  const Locked locked(lock_);
  wait_turn(kind, key);
  const Record& record = records_[next_];
  char expected[400], got[400], quoted[300];
  put_key(quoted, sizeof quoted, key);
  const bool whole = (record.flags & kDigest) == 0;
  const std::size_t there = record.data.size();
  if (record.kind != kind || !whole || (sized ? there > room : there != size)) {
    expect_text(expected, sizeof expected);
    if (record.kind != kind) std::snprintf(got, sizeof got, "%s '%s'", kind_name(kind), quoted);
    else if (!whole) std::snprintf(got, sizeof got, "nothing: it was too large for its recording's window");
    else if (sized) std::snprintf(got, sizeof got, "room for %zu bytes", room);
    else std::snprintf(got, sizeof got, "%s '%s' of %zu bytes", kind_name(kind), quoted, size);
    diverge(expected, got);
  }
  if (there != 0) std::memcpy(data, record.data.data(), there);
  advance();
  return there;
}

void Play::compare(Kind kind, std::string_view key, const void* data, std::size_t size) {
  const Locked locked(lock_);
  wait_turn(kind, key);
  const Record& record = records_[next_];
  char expected[512], got[512], quoted[300];
  put_key(quoted, sizeof quoted, key);
  if (record.kind != kind) {
    expect_text(expected, sizeof expected);
    std::snprintf(got, sizeof got, "%s '%s'", kind_name(kind), quoted);
    diverge(expected, got);
  }
  if ((record.flags & kDigest) != 0) {
    Digest was, is{size, hash_of(data, size, 0)};
    std::memcpy(&was, record.data.data(), sizeof was);
    if (was.size != is.size || was.hash != is.hash) {
      std::snprintf(expected, sizeof expected, "%s '%s' of %lu bytes with hash %016lx", kind_name(kind), quoted,
                    was.size, was.hash);
      std::snprintf(got, sizeof got, "%lu bytes with hash %016lx", is.size, is.hash);
      diverge(expected, got);
    }
  } else if (record.data.size() != size || (size != 0 && std::memcmp(record.data.data(), data, size) != 0)) {
    const char* now = static_cast<const char*>(data);
    std::size_t differs = 0;
    while (differs < size && differs < record.data.size() && record.data[differs] == now[differs]) ++differs;
    // Describes `bytes` with the first bytes from the first difference on.
    const auto some = [&](char* text, std::size_t room, std::string_view bytes) {
      std::size_t at = static_cast<std::size_t>(std::snprintf(text, room, "%s '%s' of %zu bytes, from byte %zu on",
                                                              kind_name(kind), quoted, bytes.size(), differs));
      for (std::size_t i = differs; i < bytes.size() && i < differs + 16 && at + 4 < room; ++i)
        at += static_cast<std::size_t>(
            std::snprintf(text + at, room - at, " %02x", static_cast<unsigned char>(bytes[i])));
    };
    some(expected, sizeof expected, record.data);
    some(got, sizeof got, {now, size});
    diverge(expected, got);
  }
  advance();
}

bool Play::checkpoint_due(std::string_view key) {
  const Locked locked(lock_);
  if (last_taken == SIZE_MAX)
    return next_ < count_ && records_[next_].kind == Kind::checkpoint && records_[next_].key == key;
  const std::size_t following = following_[last_taken];
  return following < count_ && records_[following].kind == Kind::checkpoint && records_[following].key == key;
}

bool Play::restore(std::string_view key, const void** data, std::size_t* size) {
  const Locked locked(lock_);
  if (next_ != 0 || count_ == 0 || records_[0].kind != Kind::checkpoint) return false;
  const Record& record = records_[0];
  if (record.key != key || (record.flags & kDigest) != 0) {
    if (!must_restore_ && record.key != key) return false;
    char expected[400], got[400], quoted[300];
    expect_text(expected, sizeof expected);
    put_key(quoted, sizeof quoted, key);
    if (record.key != key) std::snprintf(got, sizeof got, "a call that restores '%s'", quoted);
    else std::snprintf(got, sizeof got, "nothing: it was too large for its recording's window");
    diverge(expected, got);
  }
  *data = record.data.data();
  *size = record.data.size();
  must_restore_ = false;
  advance();
  return true;
}

// Messages that arrive from outside

void Play::reproducer(std::string_view key, rose_rr_function function, void* context) {
  auto* made = static_cast<Reproducer*>(std::calloc(1, sizeof(Reproducer)));
  if (made == nullptr) return;
  std::memcpy(made->pattern, key.data(), key.size());
  made->function = function;
  made->context = context;
  const Locked locked(lock_);
  made->next = reproducers_;
  reproducers_ = made;
  dispatch();
}

void Play::dispatch(bool at_once) {
  const std::size_t next = next_;
  if (next >= count_ || dispatched_ == next || records_[next].kind != Kind::value) return;
  const Reproducer* reproducer = reproducers_;
  while (reproducer != nullptr && !fits(reproducer->pattern, records_[next].key)) reproducer = reproducer->next;
  if (reproducer == nullptr) return;
  Worker* free = nullptr;
  for (Worker* worker = workers_; worker != nullptr; worker = worker->next) {
    if (!worker->busy) free = worker;
    else if (records_[worker->item].key == records_[next].key && !at_once)
      return;  // the message will be delivered when the earlier call returns
  }
  if (free == nullptr) {
    char got[200];
    if (worker_count_ == kMostWorkers) {
      std::snprintf(got, sizeof got, "%zu functions of reproducers that have not returned", worker_count_);
      diverge("room for one more message", got);
    }
    free = static_cast<Worker*>(std::calloc(1, sizeof(Worker)));
    if (free != nullptr) {
      free->play = this;
      free->given = PTHREAD_COND_INITIALIZER;
    }
    if (free == nullptr || !start_thread(work, free))
      diverge("a thread for one more message", "the system provides no more threads");
    free->next = workers_;
    workers_ = free;
    ++worker_count_;
  }
  dispatched_ = next;
  free->busy = true;
  free->item = next;
  free->function = reproducer->function;
  free->context = reproducer->context;
  ::pthread_cond_signal(&free->given);
}

void* Play::work(void* argument) {
  auto* worker = static_cast<Worker*>(argument);
  Play& play = *worker->play;
  ::pthread_mutex_lock(&play.lock_);
  for (;;) {
    while (!worker->busy) ::pthread_cond_wait(&worker->given, &play.lock_);
    const Record& record = play.records_[worker->item];
    char key[kMostKey + 1];
    std::memcpy(key, record.key.data(), record.key.size());
    key[record.key.size()] = '\0';
    ::pthread_mutex_unlock(&play.lock_);
    worker->function(worker->context, key, record.data.data(), record.data.size());
    ::pthread_mutex_lock(&play.lock_);
    worker->busy = false;
    if (play.next_ == play.count_ && !play.ended_ && play.taker_ == self()) play.finish();
    play.dispatch();
  }
}

// The end of the replay

void Play::at_end(void (*function)(void*), void* context) {
  const Locked locked(lock_);
  hook_ = function;
  hook_context_ = context;
}

void Play::end() {
  const Locked locked(lock_);
  Waiter waiter{.key = {}};
  waiter.next = waiters_;
  waiters_ = &waiter;
  while (next_ < count_) ::pthread_cond_wait(&waiter.turn, &lock_);
  Waiter** at = &waiters_;
  while (*at != &waiter) at = &(*at)->next;
  *at = waiter.next;
  gone_ = true;
}

void Play::exiting() {
  const Locked locked(lock_);
  if (gone_ || next_ == count_) {
    gone_ = true;
    return;
  }
  char expected[400];
  expect_text(expected, sizeof expected);
  diverge(expected, "the process ends itself by exit");
}

void Play::wait_before_death() {
  std::size_t seen = SIZE_MAX;
  for (int still = 0; next_.load() < count_ && still < 20;) {
    const std::size_t now = next_.load();
    still = now == seen ? still + 1 : 0;
    seen = now;
    const timespec tick{0, kTickMs * 1'000'000L};
    ::nanosleep(&tick, nullptr);
  }
}

// Ends the replay when it is complete, and reports a divergence when no record has been taken for patience_s_. That
// time is measured in ticks of this thread. A tick in which the process used much CPU time counts as a tenth of a tick,
// because the process may still be computing. If a debugger stops the process, this thread stops, too, so no ticks are
// counted.
void* Play::watch(void* argument) {
  Play& play = *static_cast<Play*>(argument);
  double idle = 0;
  std::size_t seen = SIZE_MAX;
  std::int64_t used = cpu_ms();
  ::pthread_mutex_lock(&play.lock_);
  for (;;) {
    timespec until{};
    ::clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += kTickMs * 1'000'000L;
    if (until.tv_nsec >= 1'000'000'000) {
      until.tv_nsec -= 1'000'000'000;
      ++until.tv_sec;
    }
    if (!play.finishing_) ::pthread_cond_clockwait(&play.watch_, &play.lock_, CLOCK_MONOTONIC, &until);
    const std::int64_t now_used = cpu_ms();
    const bool busy = now_used - used > kTickMs / 2;
    used = now_used;
    if (play.next_ != seen) idle = 0;
    else idle += (busy ? 0.1 : 1.0) * kTickMs / 1000;
    // The function that received the previous message of this key may be waiting for a lock, and the thread that holds
    // the lock may be waiting for the next message. All records of that function precede the next message, so that
    // message may be delivered concurrently.
    if (play.next_ == seen && idle >= 2.0 * kTickMs / 1000) play.dispatch(true);
    seen = play.next_;
    const bool stuck = idle >= play.patience_s_ && !play.gone_;
    if (stuck && play.next_ < play.count_) {
      char expected[400], got[500] = "no call at all";
      std::size_t at = 0, others = 0;
      for (const Waiter* waiter = play.waiters_; waiter != nullptr; waiter = waiter->next) {
        char quoted[120];
        put_key(quoted, sizeof quoted, waiter->key);
        const bool ends = waiter->key.data() == nullptr;
        if (at + 160 > sizeof got) ++others;
        else
          at += static_cast<std::size_t>(
              ends ? std::snprintf(got + at, sizeof got - at, "%srose_rr_end()", at == 0 ? "" : ", ")
                   : std::snprintf(got + at, sizeof got - at, "%s'%s'", at == 0 ? "only calls of " : ", ", quoted));
      }
      if (others != 0) std::snprintf(got + at, sizeof got - at, " and %zu more", others);
      play.expect_text(expected, sizeof expected);
      play.diverge(expected, got);
    }
    if (play.finishing_ || (stuck && play.next_ == play.count_)) {
      const auto hook = play.hook_;
      void* context = play.hook_context_;
      play.hook_ = nullptr;
      play.gone_ = true;
      ::pthread_mutex_unlock(&play.lock_);
      if (hook != nullptr) hook(context);
      flush_output();
      ::_exit(0);
    }
  }
}

}  // namespace rose::rr
