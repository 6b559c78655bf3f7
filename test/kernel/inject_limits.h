// The limits and disks of a node, as they are seen from outside.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "deploy/descriptors.h"
#include "inject_rig.h"
#include "kernel/controllers.h"
#include "skip.h"

namespace rose::test {

inline constexpr std::size_t kPage = 4096;

inline rlimit descriptors_of(pid_t pid) {
  rlimit now{};
  ::prlimit(pid, RLIMIT_NOFILE, nullptr, &now);
  return now;
}

inline bool has_descriptors(pid_t pid, rlim_t limit) {
  const auto now = descriptors_of(pid);
  return now.rlim_cur == limit && (now.rlim_max == limit || deploy::DescriptorLimits::may_be_raised());
}

inline void needs(kernel::Controller controller) {
  if (const auto place = kernel::find_controller(controller); !place) skip_case(place.error().message);
}

// The cgroup that has the node's limits: with cgroup v2 the node's own folder, otherwise rose's folder for the
// controller.
inline std::filesystem::path group_of(const Rig& rig, kernel::Controller controller, const std::string& node) {
  const auto place = kernel::find_controller(controller);
  return place->v2 ? rig.deployment->nodes()[0].cgroup : place->base / (rig.deployment->id() + "-" + node);
}

// True if the folder has this limit, for either version of cgroups.
inline bool in_force(const std::filesystem::path& folder, kernel::Controller controller, std::uint64_t amount) {
  return kernel::in_force(folder, controller, kernel::find_controller(controller)->v2, amount);
}

inline bool mounted(const std::string& folder) {
  std::ifstream file("/proc/self/mountinfo");
  std::string line;
  while (std::getline(file, line))
    if (line.find(" " + folder + " ") != std::string::npos) return true;
  return false;
}

inline int error_of_write(const std::string& file) {
  std::FILE* out = std::fopen(file.c_str(), "w");
  if (out == nullptr) return errno;
  const std::string much(1 << 16, 'x');
  int error = std::fwrite(much.data(), 1, much.size(), out) == much.size() ? 0 : errno;
  if (std::fclose(out) != 0 && error == 0) error = errno;
  return error;
}

inline void make_file(const std::string& path, std::size_t bytes) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  const std::string much(bytes, 'x');
  REQUIRE(::write(file.get(), much.data(), much.size()) == static_cast<ssize_t>(much.size()));
  REQUIRE(::fsync(file.get()) == 0);
}

// Makes `count` reads that bypass the page cache, and returns their durations, sorted.
inline std::vector<std::int64_t> reads(const std::string& path, std::size_t count) {
  Fd file(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (!file && errno == EINVAL)
    file = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // before Linux 6.6, tmpfs has only the cache
  REQUIRE(file);
  alignas(kPage) static char page[kPage];
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t began = monotonic_ns();
    REQUIRE(::pread(file.get(), page, kPage, static_cast<off_t>(i * kPage)) == static_cast<ssize_t>(kPage));
    all.push_back(monotonic_ns() - began);
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace rose::test
