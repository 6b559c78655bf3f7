// The BPF objects for kernels before Linux 5.17 (bpf/rose_old.h lists what those kernels lack). Each skeleton opens the
// object that this kernel can load.
#pragma once

#include <bpf/libbpf.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include "kernel/core_types.h"

namespace rose::kernel {

// True if the kernel lacks bpf_loop (Linux 5.17). This is tried once and then remembered. ROSE_MASK=bpf_loop in the
// environment makes it true, so that the objects for old kernels can be tested.
[[nodiscard]] bool is_old();

// Opens a skeleton with the object for this kernel. `create` is NAME__create_skeleton; `old_bytes` is
// NAME_old__elf_bytes, or null if old kernels load the same object. Returns null and sets errno on failure.
template <typename Skeleton>
Skeleton* open_skeleton(int (*create)(Skeleton*), const void* (*old_bytes)(std::size_t*) = nullptr) {
  auto* out = static_cast<Skeleton*>(std::calloc(1, sizeof(Skeleton)));
  if (out == nullptr || create(out) != 0) {
    std::free(out);
    errno = ENOMEM;
    return nullptr;
  }
  const auto bytes = old_bytes != nullptr && is_old() ? old_bytes : Skeleton::elf_bytes;
  out->skeleton->data = const_cast<void*>(bytes(&out->skeleton->data_sz));
  LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = core_types(bytes));
  if (const int error = bpf_object__open_skeleton(out->skeleton, &options); error != 0) {
    Skeleton::destroy(out);
    errno = -error;
    return nullptr;
  }
  return out;
}

}  // namespace rose::kernel
