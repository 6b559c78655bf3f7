#include "observe/storms.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace rose::observe {
namespace {

std::uint64_t size_of(const Decoded& event) {
  return sizeof(Decoded) + 64 + event.path.capacity() + event.path2.capacity() + event.peer.capacity();
}

}  // namespace

Storms::~Storms() {
  if (places_ != nullptr) ::munmap(places_, mapped_);
}

Result<void> Storms::open(int map_fd, std::size_t places, std::uint64_t most_bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  mapped_ = (places * sizeof(rose_storm) + page - 1) / page * page;
  void* at = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
  if (at == MAP_FAILED) return fail_errno(ErrorKind::environment, "cannot map the table of storms", errno);
  places_ = static_cast<rose_storm*>(at);
  count_ = places;
  most_bytes_ = most_bytes;
  return {};
}

void Storms::remember(const Decoded& decoded, std::uint64_t position) {
  Remembered& kept = remembered_[decoded.storm];
  if (kept.position != 0) bytes_ -= size_of(kept.event);
  kept.event = decoded;
  kept.position = position + 1;  // so that it is never 0
  bytes_ += size_of(kept.event);
}

bool Storms::complete(Decoded& counted) const {
  const auto found = remembered_.find(counted.storm);
  if (found == remembered_.end()) return false;
  const auto event = counted.event;
  const auto first_ns = counted.first_ns;
  counted = found->second.event;
  counted.event.ts_ns = event.ts_ns;
  counted.event.pid = event.pid;
  counted.event.tid = event.tid;
  counted.represent(event.count, first_ns);
  return true;
}

void Storms::fetch(rose_storm& storm, bool all, bool reset, std::int64_t now_ns, const Take& take) {
  const auto pending = std::atomic_ref(storm.pending).load(std::memory_order_acquire);
  if (pending == 0 && !reset) return;
  const auto begin = std::atomic_ref(storm.begin_ns).load(std::memory_order_relaxed);
  if (!all && now_ns - static_cast<std::int64_t>(begin) < static_cast<std::int64_t>(ROSE_STORM_NS)) return;
  // A BPF program holds this lock for less than a microsecond and cannot be preempted meanwhile.
  std::atomic_ref busy(storm.busy);
  for (std::uint64_t none = 0; !busy.compare_exchange_weak(none, 1, std::memory_order_acquire); none = 0) ::usleep(1);
  const rose_storm was = storm;
  storm.pending = 0;
  if (reset) {
    storm.key = 0;
    storm.seen = 0;
    storm.reported = 0;
  }
  busy.fetch_sub(1,
                 // subtract instead of storing 0: on old kernels, programs briefly add 1 to try the lock (rose_try)
                 std::memory_order_release);
  if (was.pending == 0) return;
  Decoded counted;
  counted.storm = was.key;
  counted.counted = true;
  counted.node = was.node;
  counted.event.ts_ns = static_cast<std::int64_t>(was.last_ns);
  counted.event.pid = static_cast<std::int32_t>(was.tgid);
  counted.event.tid = static_cast<std::int32_t>(was.tid);
  counted.represent(was.pending, static_cast<std::int64_t>(was.first_ns));
  take(counted);
}

void Storms::fetch(bool all, std::int64_t now_ns, const Take& take) {
  for (std::size_t i = 0; i < count_; ++i) fetch(places_[i], all, false, now_ns, take);
}

void Storms::forget(const std::function<std::uint64_t()>& produced, std::uint64_t consumed, const Take& take) {
  if (forgetting_ && consumed >= forget_at_) {
    std::erase_if(remembered_, [this](const auto& entry) {
      if (entry.second.position > forget_before_) return false;
      bytes_ -= size_of(entry.second.event);
      return true;
    });
    forgetting_ = false;
  }
  if (forgetting_ || bytes_ <= most_bytes_) return;
  // Keep events after this position: they may have been reported because the loop below had already reset their keys.
  forget_before_ = produced();
  for (std::size_t i = 0; i < count_; ++i) fetch(places_[i], true, true, 0, take);
  forget_at_ = produced();
  forgetting_ = true;
}

}  // namespace rose::observe
