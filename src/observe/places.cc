#include "observe/places.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <set>

#include "base/log.h"
#include "kernel/attach.h"

namespace rose::observe {

Result<Fd> attach_packets(const bpf_program* program, int attached, const Cgroup& cgroup, std::uint32_t node) {
  ROSE_TRY(Fd link, kernel::attach_cgroup(program, cgroup.path));
  struct {
    std::uint64_t cgroup;
    std::uint32_t type;
    std::uint32_t pad;
  } const key{cgroup.id, BPF_CGROUP_INET_INGRESS, 0};
  const std::uint64_t value = std::uint64_t{node} + 1;
  if (bpf_map_update_elem(attached, &key, &value, BPF_ANY) != 0) {
    return kernel::bpf_failure("cannot tell the packet program its node", errno);
  }
  return link;
}

Result<void> Places::add(const std::filesystem::path& folder, std::uint32_t node) {
  ROSE_TRY(auto cgroup, find_cgroup(folder));
  if (cgroup.name.size() >= ROSE_CGROUP_PATH) {
    return fail(ErrorKind::input, fmt::format("the name of cgroup '{}' is too long", folder.string()),
                fmt::format("at most {} characters can be followed", ROSE_CGROUP_PATH - 1));
  }
  places_.push_back({std::move(cgroup), node, {}, false});
  return {};
}

std::vector<std::uint32_t> Places::levels() const {
  std::set<std::uint32_t, std::greater<>> levels;
  for (const auto& place : places_) levels.insert(place.cgroup.level);
  return {levels.begin(), levels.end()};
}

bool Places::holds(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(places_.begin(), places_.end(), [&](const Place& place) { return place.link && place.cgroup.id == id; });
}

Result<void> Places::fill(int cgroups, int freezable, int places) {
  const auto many = [] { return fail(ErrorKind::input, "more than 1024 target cgroups"); };
  for (std::size_t i = 0; i < places_.size(); ++i) {
    auto& place = places_[i];
    char name[ROSE_CGROUP_PATH] = {};
    std::memcpy(name, place.cgroup.name.c_str(), place.cgroup.name.size());
    const rose_place value{place.node, static_cast<std::uint32_t>(i)};
    if (bpf_map_update_elem(places, name, &value, BPF_ANY) != 0) return many();
    // Looked at only now: one that is made from here on is told by the kernel. The second look is for one
    // that went between the first and its entry.
    place.cgroup.id = cgroup_id(place.cgroup.path);
    if (place.cgroup.id == 0) continue;
    for (const int map : {cgroups, freezable}) {
      if (bpf_map_update_elem(map, &place.cgroup.id, &place.node, BPF_ANY) != 0) return many();
    }
    if (cgroup_id(place.cgroup.path) == place.cgroup.id) continue;
    for (const int map : {cgroups, freezable}) bpf_map_delete_elem(map, &place.cgroup.id);
  }
  return {};
}

Result<void> Places::attach_one(Place& place) {
  place.link.reset();
  place.cgroup.id = cgroup_id(place.cgroup.path);
  if (place.cgroup.id == 0) return {};
  // Where several nodes share a cgroup, its packets count for the first of them: the kernel tells
  // packet programs the cgroup, not the process.
  for (const auto& other : places_) {
    if (&other != &place && other.link && other.cgroup.id == place.cgroup.id) return {};
  }
  auto link = attach_packets(packets_, attached_, place.cgroup, place.node);
  if (link) {
    place.link = std::move(*link);
    return {};
  }
  // It went meanwhile: the kernel tells when it comes back.
  if (cgroup_id(place.cgroup.path) != place.cgroup.id) return {};
  return Unexpected(std::move(link).error());
}

Result<void> Places::attach(const bpf_program* packets, int attached) {
  const std::lock_guard lock(mutex_);
  packets_ = packets;
  attached_ = attached;
  for (auto& place : places_) ROSE_CHECK(attach_one(place));
  return {};
}

void Places::note(const rose_cgroup& record) {
  const std::lock_guard lock(noted_mutex_);
  noted_.push_back(record);
}

void Places::follow() {
  std::vector<rose_cgroup> noted;
  {
    const std::lock_guard lock(noted_mutex_);
    noted.swap(noted_);
  }
  if (noted.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const auto& record : noted) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      auto& place = places_[i];
      if (record.gone != 0) {
        if (place.cgroup.id != record.id) continue;
        log::debug("cgroup {} is gone", place.cgroup.name);
        place.link.reset();
        place.cgroup.id = 0;
      } else if (record.place == i) {
        log::debug("cgroup {} is there (again)", place.cgroup.name);
        if (packets_ == nullptr || (place.link && place.cgroup.id == record.id)) continue;
        auto attached = attach_one(place);
        if (!attached && !place.warned) {
          place.warned = true;
          log::warning("network delays of {} are no longer seen: {}", place.cgroup.name, attached.error().message);
        }
      }
    }
  }
}

void Places::detach() {
  const std::lock_guard lock(mutex_);
  packets_ = nullptr;
  for (auto& place : places_) place.link.reset();
}

}  // namespace rose::observe
