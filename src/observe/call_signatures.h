// The tables that the BPF programs need about system calls: the positions of path, descriptor and address arguments,
// which failures are expected noise, and which successes are events.
#pragma once

#include <array>
#include <cstdint>

#include "bpf/tracer.h"
#include "kernel/noise.h"

namespace rose::observe {

struct CallSignatures {
  std::array<rose_call_signature, ROSE_SYSCALLS> signatures{};
  std::array<std::uint64_t, ROSE_SYSCALLS / 64> changing{};  // bit per call: a success can be a SYS event
  std::array<std::uint8_t, ROSE_SYSCALLS> classes{};         // by call: enum rose_call_class
  // One bit per call and errno: the failure is expected.
  std::array<std::uint64_t, std::size_t{ROSE_SYSCALLS} * ROSE_NOISE_WORDS> noise{};
};

[[nodiscard]] CallSignatures call_signatures(const kernel::NoiseTable& noise);

}  // namespace rose::observe
