#include "kernel/lru.h"

#include <bpf/bpf.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/fd.h"
#include "base/thread.h"

namespace rose::kernel {
namespace {

constexpr std::uint32_t kBatch = 128;  // the kernel's LOCAL_FREE_TARGET

bool go_to(int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  return ::sched_setaffinity(0, sizeof only, &only) == 0;
}

// The map has 256 elements. One processor takes a batch of free elements and uses one of them. Another processor then
// uses more than 128. All elements survive only if the first batch was smaller than 128.
bool try_fair_lru() {
  constexpr std::uint32_t kEntries = 2 * kBatch, kPut = kBatch + 22;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE && processors.size() < 2; ++i) {
    if (CPU_ISSET(i, &allowed)) processors.push_back(i);
  }
  if (processors.size() < 2) return false;
  const Fd map(bpf_map_create(BPF_MAP_TYPE_LRU_HASH, "rose_lru", sizeof(std::uint32_t), sizeof(std::uint32_t), kEntries,
                              nullptr));
  if (!map) return false;
  const auto put = [&](std::uint32_t key) { return bpf_map_update_elem(map.get(), &key, &key, BPF_ANY) == 0; };
  if (!go_to(processors[0]) || !put(0) || !go_to(processors[1])) return false;
  for (std::uint32_t key = 1; key <= kPut; ++key) {
    if (!put(key)) return false;
  }
  std::uint32_t there = 0, value = 0;
  for (std::uint32_t key = 0; key <= kPut; ++key) there += bpf_map_lookup_elem(map.get(), &key, &value) == 0 ? 1 : 0;
  return there == kPut + 1;
}

}  // namespace

std::uint32_t lru_entries(std::uint32_t wanted, std::uint32_t processors, bool fair) {
  // If the batch size depends on the map size, processors hold back at most half of the map.
  const std::uint64_t kept = std::uint64_t{processors} * kBatch;
  const std::uint64_t entries =
      std::uint64_t{wanted} + (fair ? std::min<std::uint64_t>(kept, std::uint64_t{wanted} + processors) : kept);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(entries, std::numeric_limits<std::uint32_t>::max()));
}

bool has_fair_lru() {
  static const bool answer = [] {
    bool fair = false;
    // The trial runs in a thread of its own, because it changes its processor affinity.
    auto trial = start_thread([&] { fair = try_fair_lru(); });
    if (trial) trial->join();
    return fair;
  }();
  return answer;
}

std::uint32_t lru_entries(std::uint32_t wanted) {
  const long processors = ::sysconf(_SC_NPROCESSORS_CONF);
  return lru_entries(wanted, static_cast<std::uint32_t>(std::max(processors, 1L)), has_fair_lru());
}

}  // namespace rose::kernel
