#include "rr/ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <ctime>

namespace rose::rr {
namespace {

#ifndef MADV_POPULATE_WRITE  // exists since Linux 5.14; older kernels refuse it
constexpr int MADV_POPULATE_WRITE = 23;
#endif
constexpr std::uint64_t kMostPopulated = 64 << 20;  // in bytes; further pages are faulted in by the first write to them
// How long append() waits if the ring has wrapped around to a record that another thread is still writing. That thread
// may have been stopped in the middle of the write.
constexpr int kPatienceMs = 5000;

std::int64_t wall_now(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

std::uint32_t thread_id() {
  static thread_local std::uint32_t id = 0;
  if (id == 0) id = static_cast<std::uint32_t>(::gettid());
  return id;
}

void copy_text(char* to, std::size_t room, const char* from) {
  std::size_t i = 0;
  for (; i + 1 < room && from[i] != '\0'; ++i) to[i] = from[i];
  to[i] = '\0';
}

}  // namespace

bool Ring::create(int folder, const char* name, std::uint64_t ring_bytes, const char* node, char* why,
                  std::size_t room) {
  const auto failed = [&](const char* what, int err, int fd) {
    std::snprintf(why, room, "%s: %s", what, std::strerror(err));
    if (fd >= 0) {
      ::unlinkat(folder, name, 0);
      ::close(fd);
    }
    return false;
  };
  const int fd = ::openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) {
    const int err = errno;
    failed("cannot be created", err, -1);
    errno = err;
    return false;
  }
  ::fchmod(fd, 0600);  // sets the mode whatever the umask is
  // Allocate disk space now. If a page could not be allocated later, a write to the page would cause SIGBUS.
  const std::uint64_t file = kHeadBytes + ring_bytes;
  if (const int err = ::posix_fallocate(fd, 0, static_cast<off_t>(file)); err != 0)
    return failed("cannot be given disk space", err, fd);
  void* all =
      ::mmap(nullptr, kHeadBytes + 2 * ring_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return failed("cannot be mapped", errno, fd);
  char* base = static_cast<char*>(all);
  const auto map = [&](char* at, std::uint64_t length, off_t from) {
    return ::mmap(at, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, from) != MAP_FAILED;
  };
  if (!map(base, file, 0) || !map(base + file, ring_bytes, kHeadBytes)) {
    const int err = errno;
    ::munmap(all, kHeadBytes + 2 * ring_bytes);
    return failed("cannot be mapped", err, fd);
  }
  ::close(fd);
  // Fault the pages in now. A page fault while the program runs would delay the program and involve the file system.
  ::madvise(base, file < kMostPopulated ? file : kMostPopulated, MADV_POPULATE_WRITE);

  auto* head = reinterpret_cast<FileHead*>(base);
  head->version = kVersion;
  head->head_bytes = kHeadBytes;
  head->ring_bytes = ring_bytes;
  if (::getrandom(&head->salt, sizeof head->salt, 0) != sizeof head->salt)
    head->salt = static_cast<std::uint64_t>(wall_now(CLOCK_MONOTONIC));
  head->began_ns = wall_now(CLOCK_REALTIME);
  head->pid = static_cast<std::uint32_t>(::getpid());
  copy_text(head->node, sizeof head->node, node);
  ::gethostname(head->host, sizeof head->host - 1);
  const ssize_t length = ::readlink("/proc/self/exe", head->program, sizeof head->program - 1);
  head->program[length > 0 ? length : 0] = '\0';
  std::memcpy(head->magic, kMagic, sizeof kMagic);
  head_ = head;
  ring_ = base + kHeadBytes;
  bytes_ = ring_bytes;
  segment_ = ring_bytes / kSegments;
  return true;
}

// Waits until the records of the previous round in the segments of this range are complete. Otherwise the threads that
// write those records could overwrite the new record. Returns false after kPatienceMs.
bool Ring::wait_for_room(std::uint64_t from, std::uint64_t to) const {
  for (std::uint64_t n = from / segment_; n <= (to - 1) / segment_; ++n) {
    const std::atomic<std::uint64_t>& finished = head_->finished[n % kSegments];
    const std::uint64_t wanted = n / kSegments * segment_;
    for (int waited = 0; finished.load(std::memory_order_acquire) < wanted; ++waited) {
      if (waited == kPatienceMs) return false;
      const timespec millisecond{0, 1'000'000};
      ::nanosleep(&millisecond, nullptr);
    }
  }
  return true;
}

bool Ring::append(Kind kind, std::uint16_t flags, Part key, Part data) {
  const std::uint64_t bytes = record_bytes(key.bytes, data.bytes);
  const std::uint64_t position = head_->reserved.fetch_add(bytes, std::memory_order_acq_rel);
  if (!wait_for_room(position, position + bytes)) {
    head_->lost.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  char* at = ring_ + (position & (bytes_ - 1));
  auto* record = reinterpret_cast<RecordHead*>(at);
  std::atomic_ref<std::uint32_t> sum(record->sum);
  // Clear the checksum first, so that an incomplete record does not have the checksum of an older record. A compiler
  // barrier is sufficient: if the thread is killed, its stores up to the kill are visible in program order.
  sum.store(0, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  record->bytes = static_cast<std::uint32_t>(bytes);
  record->position = position;
  record->time_ns = wall_now(CLOCK_REALTIME_COARSE);
  record->thread = thread_id();
  record->flags = flags;
  record->kind = kind;
  record->key_bytes = static_cast<std::uint8_t>(key.bytes);
  record->data_bytes = static_cast<std::uint32_t>(data.bytes);
  record->pad = 0;
  char* to = at + sizeof *record;
  std::memset(at + bytes - 8, 0, bytes - sizeof *record - key.bytes - data.bytes == 0 ? 0 : 8);
  std::memcpy(to, key.data, key.bytes);
  if (data.bytes != 0) std::memcpy(to + key.bytes, data.data, data.bytes);
  sum.store(sum_of(record, head_->salt), std::memory_order_release);

  for (std::uint64_t from = position; from < position + bytes;) {
    const std::uint64_t n = from / segment_;
    const std::uint64_t to_next = (n + 1) * segment_;
    const std::uint64_t part = (to_next < position + bytes ? to_next : position + bytes) - from;
    head_->finished[n % kSegments].fetch_add(part, std::memory_order_release);
    from += part;
  }
  return true;
}

}  // namespace rose::rr
