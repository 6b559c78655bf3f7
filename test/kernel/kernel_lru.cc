// LRU maps that all processors fill in turn.
#include <bpf/bpf.h>
#include <sched.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "kernel/lru.h"

using namespace rose;

namespace {

// All processors insert elements in turn, `wanted` in total, into a map with `entries`. Returns how many of them the
// map still contains.
std::uint32_t held(std::uint32_t entries, std::uint32_t wanted) {
  const Fd map(bpf_map_create(BPF_MAP_TYPE_LRU_HASH, "rose_test", 4, 4, entries, nullptr));
  REQUIRE(map);
  std::vector<int> processors;
  cpu_set_t allowed;
  REQUIRE(::sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &allowed)) processors.push_back(i);
  }
  bool put = true;
  std::thread([&] {
    // Insert few elements on each processor, so that all of them take a batch before the map is full.
    constexpr std::uint32_t kFew = 7;
    for (std::uint32_t key = 0; key < wanted; ++key) {
      if (key % kFew == 0) {
        cpu_set_t only;
        CPU_ZERO(&only);
        CPU_SET(processors[key / kFew % processors.size()], &only);
        put = put && ::sched_setaffinity(0, sizeof only, &only) == 0;
      }
      put = put && bpf_map_update_elem(map.get(), &key, &key, BPF_ANY) == 0;
    }
  }).join();
  REQUIRE(put);
  std::uint32_t count = 0, value = 0;
  for (std::uint32_t key = 0; key < wanted; ++key) count += bpf_map_lookup_elem(map.get(), &key, &value) == 0 ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("an LRU map holds its number of entries, whichever processors fill it") {
  for (const std::uint32_t wanted : {64U, 102U, 256U, 1024U, 3276U}) {
    INFO(wanted << " elements in " << kernel::lru_entries(wanted) << "; fair: " << kernel::has_fair_lru());
    CHECK(held(kernel::lru_entries(wanted), wanted) == wanted);
  }
}

TEST_CASE("the size of LRU maps grows with the number of processors, within bounds") {
  using kernel::lru_entries;
  CHECK(lru_entries(1024, 1, false) == 1024 + 128);
  CHECK(lru_entries(1024, 64, false) == 1024 + 64 * 128);
  CHECK(lru_entries(1024, 2, true) == 1024 + 256);
  CHECK(lru_entries(1024, 64, true) == 2048 + 64);
  CHECK(lru_entries(26214, 64, true) == 26214 + 64 * 128);
}
