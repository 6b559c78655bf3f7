#include "kernel/kernel_types.h"

#include <bpf/btf.h>

#include <mutex>

namespace rose::kernel {
namespace {

struct Kept {
  std::mutex mutex;
  int keepers = 0;
  std::shared_ptr<const btf> types;
};
Kept& kept() {
  static Kept one;
  return one;
}

}  // namespace

std::shared_ptr<const btf> kernel_types() {
  Kept& shared = kept();
  const std::lock_guard lock(shared.mutex);
  if (shared.types) return shared.types;
  btf* read = btf__load_vmlinux_btf();
  if (read == nullptr) return nullptr;
  std::shared_ptr<const btf> types(read, [read](const btf*) { btf__free(read); });
  if (shared.keepers > 0) shared.types = types;
  return types;
}

KeepKernelTypes::KeepKernelTypes() {
  Kept& shared = kept();
  const std::lock_guard lock(shared.mutex);
  ++shared.keepers;
}

KeepKernelTypes::~KeepKernelTypes() {
  Kept& shared = kept();
  const std::lock_guard lock(shared.mutex);
  if (--shared.keepers == 0) shared.types.reset();
}

}  // namespace rose::kernel
