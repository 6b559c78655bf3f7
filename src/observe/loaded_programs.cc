#include "observe/loaded_programs.h"

#include <bpf/bpf.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "base/log.h"
#include "kernel/attach.h"
#include "observe/ring.h"
#include "observe/tracer.h"

namespace rose::observe {
namespace {

// Programs that were detached may still be running on another processor and writing to their maps. All of rose's
// programs run within an RCU read-side section, and this call returns after a grace period. (It fails on kernels with
// nohz_full=.)
bool wait_for_running_programs() { return ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0; }

bool zero_array(const bpf_map* map) {
  const int fd = bpf_map__fd(map);
  const std::size_t each = (bpf_map__value_size(map) + 7) / 8 * 8;
  const std::uint32_t entries = bpf_map__max_entries(map);
  if ((bpf_map__map_flags(map) & BPF_F_MMAPABLE) != 0) {
    void* at = ::mmap(nullptr, each * entries, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return false;
    std::memset(at, 0, each * entries);
    ::munmap(at, each * entries);
    return true;
  }
  const bool by_cpu = bpf_map__type(map) == BPF_MAP_TYPE_PERCPU_ARRAY;
  const std::vector<std::byte> zero(each * (by_cpu ? static_cast<std::size_t>(libbpf_num_possible_cpus()) : 1));
  for (std::uint32_t key = 0; key < entries; ++key)
    if (bpf_map_update_elem(fd, &key, zero.data(), BPF_ANY) != 0) return false;
  return true;
}

bool empty_table(const bpf_map* map) {
  const int fd = bpf_map__fd(map);
  std::vector<std::byte> key(bpf_map__key_size(map));
  while (bpf_map_get_next_key(fd, nullptr, key.data()) == 0)
    if (bpf_map_delete_elem(fd, key.data()) != 0) return false;
  return errno == ENOENT;
}

// Values of cgroup storage cannot be deleted, so they are zeroed. The kernel deletes the values of removed cgroups.
bool zero_cgroup_values(const bpf_map* map) {
  const int fd = bpf_map__fd(map);
  std::vector<std::byte> key(bpf_map__key_size(map));
  const std::vector<std::byte> zero(bpf_map__value_size(map));
  for (int error = bpf_map_get_next_key(fd, nullptr, key.data()); error == 0;
       error = bpf_map_get_next_key(fd, key.data(), key.data()))
    if (bpf_map_update_elem(fd, key.data(), zero.data(), BPF_EXIST) != 0 && errno != ENOENT) return false;
  return errno == ENOENT;
}

bool drop_records(const bpf_map* map) {
  Ring ring;
  if (!ring.open(bpf_map__fd(map), bpf_map__max_entries(map))) return false;
  ring.consume([](std::span<const std::byte>) {}, SIZE_MAX);
  return ring.consumed() == ring.produced();
}

bool clear(const bpf_map* map) {
  switch (bpf_map__type(map)) {
    case BPF_MAP_TYPE_ARRAY:
    case BPF_MAP_TYPE_PERCPU_ARRAY:
      // Maps with settings are read-only. They need not be cleared, because their content is part of the key.
      return (bpf_map__map_flags(map) & BPF_F_RDONLY_PROG) != 0 || zero_array(map);
    case BPF_MAP_TYPE_HASH:
    case BPF_MAP_TYPE_LRU_HASH:
    case BPF_MAP_TYPE_PERCPU_HASH: return empty_table(map);
    case BPF_MAP_TYPE_CGROUP_STORAGE: return zero_cgroup_values(map);
    case BPF_MAP_TYPE_RINGBUF: return drop_records(map);
    default: return false;
  }
}

// True if the programs mark sockets. Such programs cannot be cleared: sockets keep the node that rose_socket assigned
// to them, and no call can list these sockets.
bool marks_sockets(const rose_tracer& programs) { return bpf_program__autoload(programs.progs.rose_socket); }

// True if probes may still run after the tracer has stopped. Without uprobe_multi links, probes are removed in the
// background (kernel/attach.h).
bool removes_probes_later(const rose_tracer& programs) {
  const auto& progs = programs.progs;
  return !kernel::has_uprobe_multi() &&
         (bpf_program__autoload(progs.rose_function) || bpf_program__autoload(progs.rose_function_count) ||
          bpf_program__autoload(progs.rose_method) || bpf_program__autoload(progs.rose_value) ||
          bpf_program__autoload(progs.rose_java_value));
}

// Restores the state that the programs' maps have after loading. Returns false if that failed; the programs must then
// be destroyed.
bool clear(const rose_tracer& programs) {
  if (!wait_for_running_programs()) {
    log::debug("the tracer's programs are not kept: membarrier: {}", std::strerror(errno));
    return false;
  }
  const bpf_map* map = nullptr;
  bpf_object__for_each_map(map, programs.obj) {
    // rose_sockets is empty, see marks_sockets()
    if (bpf_map__fd(map) < 0 || map == programs.maps.rose_sockets) continue;
    if (clear(map)) continue;
    log::debug("the tracer's programs are not kept: cannot clear {}: {}", bpf_map__name(map), std::strerror(errno));
    return false;
  }
  return true;
}

template <typename T>
void append(std::string& key, T value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

std::string KeptPrograms::key_of(const rose_tracer& opened) {
  std::string key;
  const bpf_map* map = nullptr;
  bpf_object__for_each_map(map, opened.obj) {
    append(key, bpf_map__max_entries(map));
    append(key, bpf_map__map_flags(map));
    std::size_t size = 0;
    const void* first = bpf_map__is_internal(map) ? bpf_map__initial_value(const_cast<bpf_map*>(map), &size) : nullptr;
    if (first != nullptr) key.append(static_cast<const char*>(first), size);
  }
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, opened.obj) append(key, bpf_program__autoload(program));
  return key;
}

rose_tracer* KeptPrograms::take(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& one) { return one.key == key; });
  if (found == kept_.end()) return nullptr;
  rose_tracer* programs = found->programs;
  kept_.erase(found);
  most_in_use_ = std::max(most_in_use_, ++in_use_);
  return programs;
}

void KeptPrograms::count_loaded() {
  const std::lock_guard lock(mutex_);
  most_in_use_ = std::max(most_in_use_, ++in_use_);
}

void KeptPrograms::put_back(std::string key, rose_tracer* programs) {
  const bool usable = clear(*programs);
  std::vector<rose_tracer*> unneeded;
  {
    const std::lock_guard lock(mutex_);
    --in_use_;
    if (usable) kept_.push_back({std::move(key), programs});
    else unneeded.push_back(programs);
    while (!kept_.empty() && kept_.size() + in_use_ > most_in_use_) {
      unneeded.push_back(kept_.front().programs);
      kept_.erase(kept_.begin());
    }
  }
  for (rose_tracer* one : unneeded) rose_tracer__destroy(one);
}

KeptPrograms::~KeptPrograms() {
  for (const Kept& one : kept_) rose_tracer__destroy(one.programs);
}

void ProgramsCloser::operator()(rose_tracer* programs) const {
  if (kept_) kept_->put_back(key_, programs);
  else rose_tracer__destroy(programs);
}

std::shared_ptr<KeptPrograms> keep_programs() { return std::make_shared<KeptPrograms>(); }

Result<void> load_programs(Programs& opened, const std::shared_ptr<KeptPrograms>& kept) {
  const bool may_keep = kept != nullptr && !marks_sockets(*opened) && !removes_probes_later(*opened);
  std::string key = may_keep ? KeptPrograms::key_of(*opened) : "";
  if (may_keep) {
    if (rose_tracer* same = kept->take(key)) {
      opened = Programs(same, ProgramsCloser(kept, std::move(key)));
      return {};
    }
  }
  if (const int error = rose_tracer__load(opened.get()); error != 0)
    return kernel::bpf_failure("cannot load the tracer's programs", -error);
  if (may_keep) {
    kept->count_loaded();
    rose_tracer* loaded = opened.release();
    opened = Programs(loaded, ProgramsCloser(kept, std::move(key)));
  }
  return {};
}

}  // namespace rose::observe
