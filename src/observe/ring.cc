#include "observe/ring.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace rose::observe {
namespace {

constexpr std::uint32_t kBusy = 1U << 31;
constexpr std::uint32_t kDiscarded = 1U << 30;
constexpr std::size_t kHeader = 8;

std::uint64_t load_position(const void* page) {
  return std::atomic_ref<std::uint64_t>(*static_cast<std::uint64_t*>(const_cast<void*>(page)))
      .load(std::memory_order_acquire);
}

}  // namespace

Ring::~Ring() {
  if (consumer_ != nullptr) ::munmap(consumer_, page_);
  if (producer_ != nullptr) ::munmap(producer_, page_ + 2 * (mask_ + 1));
}

Result<void> Ring::open(int map_fd, std::size_t bytes) {
  page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  mask_ = bytes - 1;
  void* consumer = ::mmap(nullptr, page_, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
  if (consumer == MAP_FAILED) return fail_errno(ErrorKind::environment, "cannot map the ring buffer", errno);
  consumer_ = consumer;
  // The data is mapped twice in a row, so that a record that wraps around is contiguous.
  void* producer = ::mmap(nullptr, page_ + 2 * bytes, PROT_READ, MAP_SHARED, map_fd, static_cast<off_t>(page_));
  if (producer == MAP_FAILED) return fail_errno(ErrorKind::environment, "cannot map the ring buffer", errno);
  producer_ = producer;
  consumed_ = load_position(consumer_);
  return {};
}

std::uint64_t Ring::produced() const { return load_position(producer_); }

std::size_t Ring::consume(const std::function<void(std::span<const std::byte>)>& take, std::size_t most) {
  const auto* data = static_cast<const std::byte*>(producer_) + page_;
  std::size_t taken = 0;
  std::uint64_t end = produced();
  while (consumed_ < end && taken < most) {
    const std::byte* at = data + (consumed_ & mask_);
    auto& word = *reinterpret_cast<std::uint32_t*>(const_cast<std::byte*>(at));
    const std::uint32_t length = std::atomic_ref<std::uint32_t>(word).load(std::memory_order_acquire);
    if ((length & kBusy) != 0) break;
    const std::uint32_t bytes = length & ~(kBusy | kDiscarded);
    if ((length & kDiscarded) == 0) {
      take({at + kHeader, bytes});
      ++taken;
    }
    consumed_ += (bytes + kHeader + 7) & ~std::uint64_t{7};
    // Space is released in batches, because the kernel's producers read this word, too, and frequent updates would slow
    // them down.
    if ((taken & 63) == 0) {
      std::atomic_ref<std::uint64_t>(*static_cast<std::uint64_t*>(consumer_))
          .store(consumed_, std::memory_order_release);
    }
    if (consumed_ >= end) end = produced();
  }
  std::atomic_ref<std::uint64_t>(*static_cast<std::uint64_t*>(consumer_)).store(consumed_, std::memory_order_release);
  return taken;
}

}  // namespace rose::observe
