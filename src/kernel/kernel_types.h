// The kernel's types (BTF). A command that loads programs needs them several times. Reading them takes about 20 ms and
// 6 MiB, so a KeepKernelTypes keeps what was read.
#pragma once

#include <memory>

struct btf;

namespace rose::kernel {

// The kernel's types, or null if the kernel does not describe them. Each call reads them again. While a KeepKernelTypes
// exists, however, all callers share what the first call has read.
[[nodiscard]] std::shared_ptr<const btf> kernel_types();

class KeepKernelTypes {
 public:
  KeepKernelTypes();
  ~KeepKernelTypes();
  KeepKernelTypes(const KeepKernelTypes&) = delete;
  KeepKernelTypes& operator=(const KeepKernelTypes&) = delete;
};

}  // namespace rose::kernel
