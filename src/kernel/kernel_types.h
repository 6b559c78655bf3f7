// The kernel's types (BTF). Reading them takes about 20 ms and 6 MiB, and a command that loads programs asks for them
// several times.
#pragma once

#include <memory>

struct btf;

namespace rose::kernel {

// Null if the kernel does not describe its types. They are read again for each caller, except while a KeepKernelTypes
// exists: then all share what the first one has read.
[[nodiscard]] std::shared_ptr<const btf> kernel_types();

class KeepKernelTypes {
 public:
  KeepKernelTypes();
  ~KeepKernelTypes();
  KeepKernelTypes(const KeepKernelTypes&) = delete;
  KeepKernelTypes& operator=(const KeepKernelTypes&) = delete;
};

}  // namespace rose::kernel
