#include "observe/traced_cgroups.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <set>

#include "base/log.h"
#include "kernel/attach.h"
#include "kernel/old_kernel.h"

namespace rose::observe {

Result<void> TracedCgroups::add(const std::filesystem::path& folder, std::uint32_t node) {
  ROSE_TRY(auto cgroup, find_cgroup(folder));
  if (cgroup.name.size() >= ROSE_CGROUP_PATH) {
    return fail(ErrorKind::input, fmt::format("the name of cgroup '{}' is too long", folder.string()),
                fmt::format("at most {} characters are supported", ROSE_CGROUP_PATH - 1));
  }
  for (const auto& other : cgroups_) {
    if (other.cgroup.name != cgroup.name || other.node == node) continue;
    return fail(ErrorKind::usage, fmt::format("cgroup '{}' belongs to two nodes", folder.string()),
                "give each node its own cgroup, or name nodes that share one by their processes: --node NAME=pid:PID");
  }
  cgroups_.push_back({std::move(cgroup), node});
  return {};
}

std::vector<std::uint32_t> TracedCgroups::levels() const {
  std::set<std::uint32_t, std::greater<>> levels;
  for (const auto& place : cgroups_) levels.insert(place.cgroup.level);
  return {levels.begin(), levels.end()};
}

Result<void> TracedCgroups::fill(int cgroups, int freezable, int places) {
  const auto many = [] { return fail(ErrorKind::input, "more than 1024 target cgroups"); };
  for (std::size_t i = 0; i < cgroups_.size(); ++i) {
    const auto& [cgroup, node] = cgroups_[i];
    char name[ROSE_CGROUP_PATH] = {};
    std::memcpy(name, cgroup.name.c_str(), cgroup.name.size());
    const rose_place value{node, static_cast<std::uint32_t>(i)};
    std::uint64_t words[ROSE_CGROUP_PATH / 8];
    std::memcpy(words, name, sizeof words);
    const rose_place_sums sums = rose_sums_of(words);
    const void* key = kernel::is_old() ? static_cast<const void*>(&sums) : name;
    if (bpf_map_update_elem(places, key, &value, BPF_ANY) != 0) return many();
    // Read the id only now, because from here on the kernel reports cgroups that are created. Read it again below, in
    // case the cgroup was removed before its id was entered into the maps.
    const std::uint64_t id = cgroup_id(cgroup.path);
    if (id == 0) continue;
    for (const int map : {cgroups, freezable}) {
      if (bpf_map_update_elem(map, &id, &node, BPF_ANY) != 0) return many();
    }
    if (cgroup_id(cgroup.path) == id) continue;
    for (const int map : {cgroups, freezable}) bpf_map_delete_elem(map, &id);
  }
  return {};
}

void TracedCgroups::note(const rose_cgroup& record) {
  if (record.gone != 0) {
    log::debug("cgroup {} was removed", record.id);
  } else if (record.place < cgroups_.size()) {
    log::debug("cgroup {} was created", cgroups_[record.place].cgroup.name);
  }
  changed_ = true;
}

}  // namespace rose::observe
