#include "inject/own_disk.h"

#include <string>

#include "base/text.h"

namespace rose::inject {
namespace {

using schedule::Fault;
using schedule::FaultKind;

bool may_meet(const Fault& a, const Fault& b) {
  return a.node == b.node || a.node.starts_with('@') || b.node.starts_with('@');
}

// True if one folder contains the other, or both are the same.
bool overlap(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() || a == b || a.starts_with(b + "/") || b.starts_with(a + "/");
}

bool has_own_disk(const Fault& fault) {
  return fault.kind == FaultKind::disk_slow ||
         (fault.kind == FaultKind::crash && fault.lose != schedule::Loss::nothing);
}

}  // namespace

Result<void> check_folder(const Fault& fault, const config::Node& node) {
  if (!fault.resource.folder.starts_with('/') || node.container) return {};
  return fail(
      ErrorKind::input,
      fmt::format("its path '{}' is absolute, but node '{}' is not a container", fault.resource.folder, node.name),
      "name a folder in the node's folder, such as \"data\", or leave 'path' out for the whole folder");
}

std::string place_words(const std::string& node, const std::string& folder) {
  if (folder.empty()) return node;
  return folder.starts_with('/') ? fmt::format("{} of {}", folder, node) : fmt::format("{}/{}", node, folder);
}

std::string elsewhere_words(bool container, const Fault& fault) {
  if (!container || !fault.resource.folder.empty()) return "";
  return "; files of a container that are in no volume are not affected, unless 'path' names their folder in it";
}

Result<void> check_own_disk(const schedule::Schedule& schedule, const Fault& fault, const config::Node& node,
                            std::string_view otherwise) {
  if (node.attach)
    return fail(ErrorKind::environment,
                fmt::format("node '{}' was not started by rose: its files are not on a disk of rose", node.name),
                fmt::format("start it with `command`, or {}", otherwise));
  ROSE_CHECK(check_folder(fault, node));
  for (const Fault& other : schedule.faults) {
    if (&other == &fault || !may_meet(fault, other) || !overlap(fault.resource.folder, other.resource.folder)) continue;
    const bool full = other.kind == FaultKind::disk_full;
    const bool another = has_own_disk(other) && other.resource.folder != fault.resource.folder;
    if (!full && !another) continue;
    return fail(ErrorKind::input, fmt::format("its folder is on the disk of fault '{}' too", other.id),
                full ? "a disk that gets full cannot also lose power or be slow: give each its own 'path'"
                     : "give both the same 'path', or folders of which none contains the other");
  }
  return {};
}

}  // namespace rose::inject
