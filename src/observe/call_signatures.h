// What the kernel half must know of each system call: where its path, descriptor and address
// arguments are, which of its failures are expected noise, which of its successes are events.
#pragma once

#include <array>
#include <cstdint>

#include "bpf/tracer.h"
#include "kernel/noise.h"

namespace rose::observe {

struct CallSignatures {
  std::array<rose_call_signature, ROSE_SYSCALLS> signatures{};
  std::array<std::uint64_t, ROSE_SYSCALLS / 64> changing{};  // bit set: a success can be a SYS event
  std::array<std::uint64_t, std::size_t{ROSE_SYSCALLS} * ROSE_NOISE_WORDS> noise{};  // a bit an errno: expected
};

[[nodiscard]] CallSignatures call_signatures(const kernel::NoiseTable& noise);

}  // namespace rose::observe
