#include "kernel/controllers.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "kernel/cgroup2.h"
#include "kernel/probe.h"

namespace rose::kernel {
namespace {

constexpr std::uint64_t kPeriod = 100'000;  // µs
constexpr std::uint64_t kMillionths = 1'000'000;

// Reads a value from "key value" lines, or from a file with a single number (key "").
std::uint64_t value_in(const std::filesystem::path& file, std::string_view key) {
  const auto text = read_file(file, 1U << 20);
  if (!text) return 0;
  for (const std::string& line : split(*text, '\n')) {
    std::string_view rest = line;
    if (!key.empty()) {
      if (!rest.starts_with(key) || rest.size() <= key.size() || rest[key.size()] != ' ') continue;
      rest.remove_prefix(key.size() + 1);
    }
    std::uint64_t number = 0;
    std::from_chars(rest.data(), rest.data() + rest.size(), number);
    return number;
  }
  return 0;
}

bool has_word(std::string_view text, char between, std::string_view word) {
  const auto words = split(text, between);
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The mount point of the v1 hierarchy with this controller, or "" if it is not mounted.
std::filesystem::path cgroup1_mount(std::string_view controller) {
  std::ifstream file("/proc/self/mountinfo");
  std::string line;
  while (std::getline(file, line)) {
    const auto type = line.find(" - cgroup ");
    if (type == std::string::npos) continue;
    const auto before = split(std::string_view(line).substr(0, type), ' ');
    const auto after = split(std::string_view(line).substr(type + 3), ' ');
    if (before.size() >= 5 && after.size() >= 3 && has_word(after[2], ',', controller)) return before[4];
  }
  return {};
}

// The folder of rose's own cgroup in a v1 hierarchy, for containers in which the root of the hierarchy is read-only.
std::filesystem::path own_folder(const std::filesystem::path& mount, std::string_view controller) {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos ||
        !has_word(std::string_view(line).substr(first + 1, second - first - 1), ',', controller))
      continue;
    return mount / std::filesystem::path(line.substr(second + 1)).relative_path();
  }
  return mount;
}

const char* limit_file(Controller controller, bool v2) {
  if (controller == Controller::memory) return v2 ? "memory.max" : "memory.limit_in_bytes";
  return v2 ? "cpu.max" : "cpu.cfs_quota_us";
}

int write_number(const std::filesystem::path& file, const std::string& value) {
  const Fd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return errno;
  return ::write(fd.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size()) ? 0 : errno;
}

}  // namespace

std::string_view controller_name(Controller controller) { return controller == Controller::memory ? "memory" : "cpu"; }

Result<ControllerPlace> find_controller(Controller controller) {
  const std::string name(controller_name(controller));
  const std::string probe_name = name + "_controller";
  const auto none = [&](std::string what) {
    return fail(
        ErrorKind::environment, fmt::format("the cgroup controller '{}' {}", name, what),
        fmt::format("use a kernel with {}; if cgroup v1 is used, mount this controller: mkdir -p /sys/fs/cgroup/{} && "
                    "mount -t cgroup -o {} none /sys/fs/cgroup/{}; `rose doctor` tests whether it works",
                    controller == Controller::memory ? "CONFIG_MEMCG" : "CONFIG_CFS_BANDWIDTH", name, name, name));
  };
  if (masked(probe_name)) return none("is masked by ROSE_MASK");
  if (const auto mount = cgroup2_mount()) {
    if (const auto there = read_file(*mount / "cgroup.controllers", 65536)) {
      std::string words = *there;
      std::replace(words.begin(), words.end(), '\n', ' ');
      if (has_word(words, ' ', name)) return ControllerPlace{true, *mount, {}};
    }
  }
  const std::filesystem::path mount = cgroup1_mount(name);
  if (mount.empty()) return none("is not mounted, neither with cgroup v2 nor with v1");
  if (::access((mount / (controller == Controller::memory ? "memory.limit_in_bytes" : "cgroup.procs")).c_str(), F_OK) !=
      0)
    return none(fmt::format("in {} has no limits", mount.string()));
  std::filesystem::path own = own_folder(mount, name);
  // Inside a container, rose's own folder may have a different path from the one that the kernel reports.
  if (::access(own.c_str(), W_OK) != 0) own = mount;
  if (::access(mount.c_str(), W_OK) == 0) return ControllerPlace{false, mount, own};
  if (::access(own.c_str(), W_OK) == 0) return ControllerPlace{false, own, own};
  return none(fmt::format("in {} cannot be written to", mount.string()));
}

Result<void> pass_on(Controller controller, const std::filesystem::path& mount, const std::filesystem::path& parent) {
  return pass_on(controller_name(controller), mount, parent);
}

Result<void> pass_on(std::string_view controller, const std::filesystem::path& mount,
                     const std::filesystem::path& parent) {
  std::filesystem::path folder = mount;
  std::vector<std::filesystem::path> chain{folder};
  if (parent != mount)
    for (const auto& part : parent.lexically_relative(mount)) chain.push_back(folder /= part);
  for (const auto& each : chain) {
    const auto passed = read_file(each / "cgroup.subtree_control", 65536);
    std::string words = passed.value_or("");
    std::replace(words.begin(), words.end(), '\n', ' ');
    if (has_word(words, ' ', controller)) continue;
    if (auto written = write_control(each / "cgroup.subtree_control", fmt::format("+{}", controller)); !written)
      return Unexpected(std::move(written).error().in(
          fmt::format("enabling the controller '{}' for {}", controller, parent.string())));
  }
  return {};
}

std::vector<ControlWrite> limited(Controller controller, bool v2, std::uint64_t amount) {
  const std::string value = std::to_string(amount);
  if (controller == Controller::memory) {
    // Without the limit for swap, memory would be swapped out instead of being refused.
    if (v2) return {{"memory.swap.max", "0", true}, {"memory.max", value}};
    return {{"memory.limit_in_bytes", value}, {"memory.memsw.limit_in_bytes", value, true}};
  }
  const std::uint64_t quota = std::max<std::uint64_t>(amount * kPeriod / kMillionths, 1000);  // the kernel's minimum
  if (v2) return {{"cpu.max", fmt::format("{} {}", quota, kPeriod)}};
  return {{"cpu.cfs_period_us", std::to_string(kPeriod)}, {"cpu.cfs_quota_us", std::to_string(quota)}};
}

std::vector<ControlWrite> unlimited(Controller controller, bool v2) {
  if (controller == Controller::memory) {
    if (v2) return {{"memory.max", "max"}, {"memory.swap.max", "max", true}};
    return {{"memory.memsw.limit_in_bytes", "-1", true}, {"memory.limit_in_bytes", "-1"}};
  }
  if (v2) return {{"cpu.max", fmt::format("max {}", kPeriod)}};
  return {{"cpu.cfs_quota_us", "-1"}};
}

int write_all(const std::filesystem::path& folder, const std::vector<ControlWrite>& writes) {
  for (const ControlWrite& one : writes) {
    const int error = write_number(folder / one.file, one.value);
    if (error == 0 || (one.optional && error == ENOENT)) continue;
    return error;
  }
  return 0;
}

bool in_force(const std::filesystem::path& folder, Controller controller, bool v2, std::uint64_t amount) {
  const std::uint64_t found = value_in(folder / limit_file(controller, v2), "");
  if (controller == Controller::memory)
    return found > 0 && found <= amount && amount - found < static_cast<std::uint64_t>(::getpagesize());
  const auto writes = limited(controller, v2, amount);
  std::uint64_t quota = 0;
  const std::string& text = writes.back().value;
  std::from_chars(text.data(), text.data() + text.size(), quota);
  return found == quota;
}

std::uint64_t memory_used(const std::filesystem::path& folder, bool v2) {
  return value_in(folder / (v2 ? "memory.current" : "memory.usage_in_bytes"), "");
}

std::uint64_t times_felt(const std::filesystem::path& folder, Controller controller, bool v2) {
  if (controller == Controller::cpu) return value_in(folder / "cpu.stat", "nr_throttled");
  return value_in(folder / (v2 ? "memory.events" : "memory.oom_control"), "oom_kill");
}

std::uint64_t times_met(const std::filesystem::path& folder, Controller controller, bool v2) {
  if (controller == Controller::cpu) return times_felt(folder, controller, v2);
  return v2 ? value_in(folder / "memory.events", "max") : value_in(folder / "memory.failcnt", "");
}

Result<void> dissolve(const std::filesystem::path& folder, const std::filesystem::path& into) {
  std::error_code bad;
  for (const auto& entry : std::filesystem::directory_iterator(folder, bad))
    if (entry.is_directory(bad)) ROSE_CHECK(dissolve(entry.path(), into));
  const std::int64_t until = monotonic_ns() + 10 * kSecond;
  for (;;) {
    // Read the list again each time, because processes may fork while they are being moved.
    for (const std::string& pid : split(read_file(folder / "cgroup.procs", 1U << 24).value_or(""), '\n'))
      if (!pid.empty() && pid != "0") (void)write_number(into / "cgroup.procs", pid);
    if (::rmdir(folder.c_str()) == 0 || errno == ENOENT) return {};
    if (errno != EBUSY || monotonic_ns() > until)
      return fail_errno(ErrorKind::environment, fmt::format("cannot remove cgroup {}", folder.string()), errno);
    ::usleep(500);
  }
}

}  // namespace rose::kernel
