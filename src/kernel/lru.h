// How large a BPF LRU map must be made to hold what it is meant to hold. Processors take free elements in batches and
// keep them for themselves (kernel/bpf/bpf_lru_list.c); who finds none left evicts, though others still have some.
#pragma once

#include <cstdint>

namespace rose::kernel {

// The elements for a map (BPF_MAP_TYPE_LRU_HASH) that holds `wanted` of them, whichever processors put them in.
[[nodiscard]] std::uint32_t lru_entries(std::uint32_t wanted);

// The same for `processors`. `fair`: the kernel sizes the batches by the map (Linux 6.16, commit d4adf1c9ee77), instead
// of taking 128 elements whatever there are: a map of 1,024 is used up by eight processors.
[[nodiscard]] std::uint32_t lru_entries(std::uint32_t wanted, std::uint32_t processors, bool fair);

// Whether this kernel does; tried once and remembered.
[[nodiscard]] bool has_fair_lru();

}  // namespace rose::kernel
