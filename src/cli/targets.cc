#include "cli/targets.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "base/ascii.h"
#include "base/log.h"
#include "base/text.h"
#include "deploy/deployment.h"
#include "deploy/machine/containers.h"
#include "kernel/cgroup2.h"

namespace rose::cli {
namespace {

namespace fs = std::filesystem;

observe::Target& node_named(std::vector<observe::Target>& targets, const std::string& name) {
  const auto found =
      std::find_if(targets.begin(), targets.end(), [&](const observe::Target& target) { return target.node == name; });
  if (found != targets.end()) return *found;
  targets.emplace_back().node = name;
  return targets.back();
}

Result<void> add_pid(observe::Target& target, const std::string& option, const std::string& text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc{} || end != text.data() + text.size() || pid <= 0)
    return fail(ErrorKind::usage, fmt::format("{}: '{}' is not a process id", option, text),
                "a process id is a positive number");
  if (!fs::exists(fmt::format("/proc/{}", pid)))
    return fail(ErrorKind::usage, fmt::format("{}: process {} does not exist", option, pid));
  target.pids.push_back(pid);
  return {};
}

// A cgroup v2 folder, which may be empty: processes may enter it later. Accepts "/x.slice", as in /proc/PID/cgroup.
Result<void> add_cgroup(observe::Target& target, const std::string& option, const std::string& name) {
  ROSE_TRY(const fs::path mount, kernel::cgroup2_mount());
  for (const fs::path& folder : {fs::path(name), mount / fs::path(name).relative_path()}) {
    std::error_code error;
    if (!fs::exists(folder / "cgroup.procs", error)) continue;
    target.cgroups.push_back(fs::canonical(folder, error));
    return {};
  }
  return fail(ErrorKind::usage, fmt::format("{}: cgroup '{}' does not exist", option, name),
              fmt::format("name a folder below {}", mount.string()));
}

// Adds a label once. A node may consist of several containers that have the same label.
void add_label(observe::Target& target, std::string label) {
  if (std::find(target.labels.begin(), target.labels.end(), label) == target.labels.end())
    target.labels.push_back(std::move(label));
}

Result<void> add_located(observe::Target& target, const std::string& option, Result<deploy::Located> located) {
  if (!located) {
    Error error = std::move(located.error());
    if (error.kind == ErrorKind::input || error.kind == ErrorKind::inconclusive) error.kind = ErrorKind::usage;
    return Unexpected(std::move(error).in(option));
  }
  for (std::string& label : deploy::labels_of(located->owner)) add_label(target, std::move(label));
  std::error_code error;
  if (located->cgroup.empty()) {
    target.pids.push_back(located->pid);
    return {};
  }
  if (!fs::exists(located->cgroup, error))
    log::info("{} is not running: it is traced from its start", located->cgroup.filename().string());
  target.cgroups.push_back(located->cgroup);
  return {};
}

Result<void> add_one(observe::Target& target, const std::string& option, std::string_view kind,
                     const std::string& value) {
  if (kind == "pid") return add_pid(target, option, value);
  if (kind == "cgroup") return add_cgroup(target, option, value);
  ROSE_TRY(const fs::path mount, kernel::cgroup2_mount());
  if (kind == "unit") add_label(target, "unit:" + printable(value));
  return add_located(target, option,
                     kind == "unit" ? deploy::locate_unit(value, mount) : deploy::locate_container(value, mount));
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name[0] == '\0' ? "localhost" : name.data();
}

Result<std::vector<std::string>> resolve_labels(const TargetOptions& options) {
  std::vector<std::string> labels;
  for (const std::string& label : options.labels) {
    const std::size_t equals = label.find('=');
    const auto in_key = [](char c) { return is_name_char(c) || c == '/'; };
    if (equals == std::string::npos || equals == 0 || equals + 1 == label.size() ||
        label.size() > deploy::kLongestLabel ||
        !std::all_of(label.begin(), label.begin() + static_cast<std::ptrdiff_t>(equals), in_key) ||
        printable(label) != label)
      return fail(
          ErrorKind::usage, fmt::format("--label: '{}' is not a label", printable(label)),
          fmt::format("write KEY=VALUE, such as cluster=east; a key has letters, digits, '-', '_', '.' and '/', "
                      "and a label has {} characters at most",
                      deploy::kLongestLabel));
    labels.push_back(label.substr(0, equals) + ":" + label.substr(equals + 1));
  }
  return labels;
}

Result<std::vector<observe::Target>> resolve_targets(const TargetOptions& options) {
  std::vector<observe::Target> targets;
  for (const int pid : options.pids)
    ROSE_CHECK(add_one(node_named(targets, host_name()), "--pid", "pid", std::to_string(pid)));
  for (const std::string& path : options.cgroups)
    ROSE_CHECK(add_one(node_named(targets, host_name()), "--cgroup", "cgroup", path));
  for (const std::string& unit : options.units)
    ROSE_CHECK(add_one(node_named(targets, host_name()), "--unit", "unit", unit));
  for (const std::string& id : options.containers)
    ROSE_CHECK(add_one(node_named(targets, host_name()), "--container", "container", id));
  for (const std::string& entry : options.nodes) {
    const std::size_t equals = entry.find('=');
    const std::size_t colon = entry.find(':', equals == std::string::npos ? 0 : equals);
    const std::string kind =
        equals == std::string::npos || colon == std::string::npos ? "" : entry.substr(equals + 1, colon - equals - 1);
    if (equals == std::string::npos || equals == 0 || colon + 1 >= entry.size() ||
        (kind != "pid" && kind != "cgroup" && kind != "unit" && kind != "container"))
      return fail(ErrorKind::usage, fmt::format("--node: '{}' does not consist of a name and a target", entry),
                  "write NAME=pid:PID, NAME=cgroup:PATH, NAME=unit:UNIT or NAME=container:ID");
    ROSE_CHECK(add_one(node_named(targets, entry.substr(0, equals)), "--node", kind, entry.substr(colon + 1)));
  }
  return targets;
}

}  // namespace rose::cli
