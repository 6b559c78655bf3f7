// Computes sizes of BPF LRU maps. Each processor takes free elements in batches and keeps them
// (kernel/bpf/bpf_lru_list.c). A processor that finds no free element evicts one, even if other processors hold unused
// elements. Therefore a map must be larger than the number of elements that it is meant to hold.
#pragma once

#include <cstdint>

namespace rose::kernel {

// The max_entries for a BPF_MAP_TYPE_LRU_HASH that is certain to hold `wanted` elements.
[[nodiscard]] std::uint32_t lru_entries(std::uint32_t wanted);

// The max_entries for a given number of processors. `fair`: the kernel derives the batch size from the map size (Linux
// 6.16, commit d4adf1c9ee77). On older kernels, a batch always has 128 elements, so that the batches of eight
// processors use up a map of 1,024.
[[nodiscard]] std::uint32_t lru_entries(std::uint32_t wanted, std::uint32_t processors, bool fair);

// True if this kernel derives the batch size from the map size. This is tried once and then remembered.
[[nodiscard]] bool has_fair_lru();

}  // namespace rose::kernel
