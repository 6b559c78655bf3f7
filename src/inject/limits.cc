#include "inject/limits.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "deploy/descriptors.h"
#include "inject/fault_words.h"
#include "inject/own_disk.h"
#include "kernel/controllers.h"

namespace rose::inject {
namespace {

using kernel::Controller;
using schedule::Fault;
using schedule::FaultKind;

constexpr int kUsedRounds = 100;  // attempts per call of tighten(), because the usage may change after it was read
constexpr int kHeldRounds = 3;    // calls of tighten(), kSettlePollNs apart, before it makes the kernel reclaim memory

Controller controller_of(FaultKind kind) { return kind == FaultKind::memory ? Controller::memory : Controller::cpu; }

// The fault's limit: bytes of memory, millionths of one processor, or a number of descriptors.
std::uint64_t amount_of(const Fault& fault) {
  return fault.kind == FaultKind::cpu ? static_cast<std::uint64_t>(std::llround(fault.resource.share * 1e6))
                                      : static_cast<std::uint64_t>(fault.resource.limit);
}

Unexpected not_changed(const std::filesystem::path& group, int error) {
  return fail_errno(ErrorKind::environment, fmt::format("cannot change the limit of cgroup {}", group.string()), error);
}

Result<void> is_kept(const std::filesystem::path& group, Controller controller, bool v2, std::uint64_t amount) {
  if (kernel::in_force(group, controller, v2, amount)) return {};
  return fail(ErrorKind::environment, fmt::format("cgroup {} does not keep the limit that was set", group.string()));
}

}  // namespace

struct Limits::InForce {
  mutable std::mutex mutex;
  std::optional<std::size_t> node;  // the node on which it was set
  bool on = false;
  std::uint64_t felt_before = 0;  // number of times that the limit had taken effect before the fault began
  std::uint64_t met_before = 0;   // number of times that the limit had been reached before the fault began
  std::uint64_t met = 0;          // number of times that it was reached since then
  std::uint64_t count = 0;        // limited processes, full file systems, or how often the limit took effect
  std::uint64_t bytes = 0;        // disk-full: used bytes of the disks
  std::vector<dev_t> devices;     // disk-full: the disks
  std::uint64_t at_first = 0;     // memory: usage of the node when the fault began, if it was larger than the limit
  std::atomic<bool> unsettled{false};
};

struct Limits::Node {
  std::size_t index = 0;
  std::string name;
  bool attached = false;
  std::mutex mutex;
  std::vector<std::size_t> on;  // faults in effect, in the order in which they began
  deploy::DescriptorLimits descriptors;
  struct Group {
    kernel::ControllerPlace place;
    std::filesystem::path folder;
    std::uint64_t amount = 0;   // 0: no limit
    int held = 0;               // memory: number of calls of tighten() for this limit
    std::uint64_t held_at = 0;  // memory: the usage that the limit was set to
  };
  std::map<FaultKind, Group> groups;  // for memory and cpu
};

Result<void> check_limit(const Fault& fault, const config::Node& node) {
  if (fault.kind == FaultKind::descriptors) {
    if (node.user.empty() || node.user == "root" || !deploy::DescriptorLimits::may_be_raised()) return {};
    return fail(
        ErrorKind::environment,
        fmt::format("changing the descriptor limit of processes of user '{}' needs CAP_SYS_RESOURCE", node.user),
        "run rose as root; start the container it runs in with --privileged");
  }
  if (node.attach) {
    const char* what = fault.kind == FaultKind::disk_full ? "its files are not on a file system of rose"
                                                          : "its cgroups do not belong to rose";
    return fail(ErrorKind::environment, fmt::format("node '{}' was not started by rose: {}", node.name, what),
                "start it with `command`; \"descriptors\" works for attached nodes too");
  }
  if (fault.kind == FaultKind::disk_full) return check_folder(fault, node);
  ROSE_TRY([[maybe_unused]] const auto place, kernel::find_controller(controller_of(fault.kind)));
  return {};
}

Limits::Limits(const Plan& plan, Programs& programs) : plan_(plan), programs_(programs), slow_(plan) {
  for (const Fault& fault : plan.schedule.faults)
    faults_.push_back(schedule::limits(fault.kind) ? std::make_unique<InForce>() : nullptr);
}

Limits::~Limits() { finish(); }

Result<void> Limits::prepare(deploy::Deployment& deployment) {
  deployment_ = &deployment;
  for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
    auto node = std::make_unique<Node>();
    node->index = i;
    node->name = plan_.nodes[i];
    node->attached = plan_.attached[i];
    nodes_.push_back(std::move(node));
  }
  std::map<std::size_t, std::set<std::string>> folders;  // by node: the folders that may get full
  for (std::size_t f = 0; f < faults_.size(); ++f) {
    if (!faults_[f]) continue;
    const Fault& fault = plan_.schedule.faults[f];
    for (const auto& node : nodes_) {
      if (!Plan::may_be(plan_.chains[f].data.node, node->index)) continue;
      if (fault.kind == FaultKind::disk_full) folders[node->index].insert(fault.resource.folder);
      // If rose is killed, this note makes the guardian or heal() end the node. Therefore the previous limits of the
      // node's processes need not be noted.
      if (fault.kind == FaultKind::descriptors && !node->attached)
        ROSE_CHECK(deployment.note("ends", deployment.nodes()[node->index].cgroup.string()));
      if (fault.kind != FaultKind::memory && fault.kind != FaultKind::cpu) continue;
      ROSE_TRY(auto place, kernel::find_controller(controller_of(fault.kind)));
      node->groups.try_emplace(fault.kind, Node::Group{std::move(place), {}, 0});
    }
  }
  for (const auto& node : nodes_) {
    // The folders are sorted by name, so outer folders come first.
    for (const std::string& folder : folders[node->index]) ROSE_CHECK(deployment.add_volumes(node->index, folder));
    for (auto& [kind, group] : node->groups) {
      if (group.place.v2) {
        group.folder = deployment.nodes()[node->index].cgroup;
        ROSE_CHECK(kernel::pass_on(controller_of(kind), group.place.base, group.folder.parent_path()));
        continue;
      }
      group.folder = group.place.base / fmt::format("{}-{}", deployment.id(), node->name);
      ROSE_CHECK(deployment.note("controller", group.folder.string()));
      if (::mkdir(group.folder.c_str(), 0755) != 0)
        return fail_errno(ErrorKind::environment, fmt::format("cannot create cgroup {}", group.folder.string()), errno);
    }
  }
  return slow_.prepare(deployment);
}

Result<void> Limits::join(std::size_t index, pid_t pid) {
  Node& node = *nodes_[index];
  const std::lock_guard lock(node.mutex);
  for (const auto& [kind, group] : node.groups) {
    if (group.place.v2) continue;  // v2: the process is in the cgroup from its first instruction on
    if (auto moved = write_control(group.folder / "cgroup.procs", std::to_string(pid)); !moved)
      return Unexpected(std::move(moved).error().in(fmt::format("node {}", node.name)));
  }
  const bool limited = std::any_of(node.on.begin(), node.on.end(), [&](std::size_t f) {
    return plan_.schedule.faults[f].kind == FaultKind::descriptors;
  });
  return limited ? set(node, FaultKind::descriptors) : Result<void>{};
}

// Sets the smallest of the limits in effect for this kind of fault, or removes the limit if none is in effect.
Result<void> Limits::set(Node& node, FaultKind kind, bool again) {
  if (kind == FaultKind::memory || kind == FaultKind::cpu) return set_controller(node, kind);
  std::optional<std::uint64_t> limit;
  for (const std::size_t f : node.on) {
    const Fault& fault = plan_.schedule.faults[f];
    if (fault.kind == FaultKind::descriptors) limit = std::min(limit.value_or(~std::uint64_t{0}), amount_of(fault));
  }
  const auto note = [&](const std::string& value) {
    return node.attached ? deployment_->note("descriptors", value) : Result<void>{};
  };
  const auto list = [&] { return deployment_->processes(node.index); };
  ROSE_TRY(const std::size_t changed, node.descriptors.apply(list, limit, note, again));
  for (const std::size_t f : node.on) {
    if (plan_.schedule.faults[f].kind != FaultKind::descriptors) continue;
    faults_[f]->unsettled = deploy::DescriptorLimits::may_be_raised();
    const std::lock_guard lock(faults_[f]->mutex);
    faults_[f]->count += changed;
  }
  return {};
}

Result<void> Limits::set_controller(Node& node, FaultKind kind) {
  const Controller controller = controller_of(kind);
  Node::Group& group = node.groups.at(kind);
  const bool v2 = group.place.v2;
  std::uint64_t amount = 0;
  for (const std::size_t f : node.on) {
    const Fault& fault = plan_.schedule.faults[f];
    if (fault.kind == kind) amount = amount == 0 ? amount_of(fault) : std::min(amount, amount_of(fault));
    if (fault.kind == kind) faults_[f]->unsettled = false;
  }
  if (amount == group.amount) return {};
  if (group.amount != 0) {
    // Remove the old limit first. In cgroup v1, memory.limit_in_bytes may not exceed memory.memsw.limit_in_bytes, which
    // limited() writes second, so a larger limit would be refused.
    group.amount = 0;
    if (const int error = kernel::write_all(group.folder, kernel::unlimited(controller, v2)); error != 0)
      return not_changed(group.folder, error);
  }
  if (amount == 0) return {};
  group.amount = amount;
  if (kind != FaultKind::memory || v2) {
    const int error = kernel::write_all(group.folder, kernel::limited(controller, v2, amount));
    return error == 0 ? is_kept(group.folder, controller, v2, amount) : not_changed(group.folder, error);
  }
  group.held = 0;
  ROSE_TRY(const bool narrowed, tighten(node));
  for (const std::size_t f : node.on) {
    if (plan_.schedule.faults[f].kind != kind) continue;
    faults_[f]->unsettled = !narrowed;
    const std::lock_guard lock(faults_[f]->mutex);
    faults_[f]->at_first = narrowed ? 0 : group.held_at;
  }
  return {};
}

// Sets the memory limit if possible, and returns true if it is in force. Otherwise sets the limit to the node's current
// usage, so that the next page exceeds it. The kernel tries to reclaim memory before it sets a limit below the usage,
// which takes tenths of a second if nothing can be reclaimed. Therefore such a limit is requested only if the usage has
// not fallen below it after kHeldRounds calls.
Result<bool> Limits::tighten(Node& node) {
  const auto found = node.groups.find(FaultKind::memory);
  if (found == node.groups.end() || found->second.amount == 0) return true;
  Node::Group& group = found->second;
  const bool make_room = ++group.held > kHeldRounds;
  for (int round = 0; round < kUsedRounds; ++round) {
    const std::uint64_t used = kernel::memory_used(group.folder, false);
    if (used <= group.amount || make_room) {
      const int error = kernel::write_all(group.folder, kernel::limited(Controller::memory, false, group.amount));
      if (error == 0) return is_kept(group.folder, Controller::memory, false, group.amount).map([] { return true; });
      if (error != EBUSY) return not_changed(group.folder, error);
    }
    if (used <= group.amount) continue;
    const int error = kernel::write_all(group.folder, kernel::limited(Controller::memory, false, used));
    if (error == 0) {
      group.held_at = used;
      return false;
    }
    if (error != EBUSY) return not_changed(group.folder, error);
  }
  return false;
}

// Adds the file systems that are mounted inside these volumes (for example by `setup`). They hide files of the volumes,
// and without this function they would stay writable.
void Limits::add_others(std::size_t f, std::vector<const deploy::Volume*>& volumes) {
  std::vector<std::unique_ptr<deploy::Volume>> others;
  for (const deploy::Volume* volume : volumes)
    for (deploy::Volume& other : volume->others_in()) {
      const auto held = [&](const auto& of) {
        return std::any_of(of.begin(), of.end(), [&](const auto& one) { return one->folder() == other.folder(); });
      };
      if (held(others) || std::any_of(others_.begin(), others_.end(), [&](const auto& of) { return held(of.second); }))
        continue;
      others.push_back(std::make_unique<deploy::Volume>(std::move(other)));
    }
  for (const auto& other : others) volumes.push_back(other.get());
  others_[f] = std::move(others);
}

// Call with the fault's mutex held.
Result<void> Limits::fill(std::size_t f, const Node& node) {
  InForce& limit = *faults_[f];
  const std::lock_guard lock(full_mutex_);
  auto volumes = deployment_->volumes(node.index, plan_.schedule.faults[f].resource.folder);
  add_others(f, volumes);
  limit.devices.clear();
  for (const deploy::Volume* volume : volumes) {
    ROSE_TRY(const dev_t device, volume->device());
    ROSE_CHECK(programs_.watch_disk(device));
    limit.devices.push_back(device);
  }
  limit.met_before = met(f);
  limit.bytes = 0;
  limit.count = volumes.size();
  for (const deploy::Volume* volume : volumes) {
    Full& full = full_[volume];
    const bool first = full.by.empty();
    if (first) {
      ROSE_TRY(const auto room, volume->room());
      full.bytes = room.bytes;
    }
    full.by.insert(f);
    if (first) ROSE_CHECK(volume->fill());
    ROSE_TRY(const auto room, volume->room());
    limit.bytes += room.bytes;
  }
  return {};
}

Result<void> Limits::make_room(std::size_t f, const Node& node) {
  const std::lock_guard lock(full_mutex_);
  Result<void> done;
  auto volumes = deployment_->volumes(node.index, plan_.schedule.faults[f].resource.folder);
  for (const auto& other : others_[f]) volumes.push_back(other.get());
  for (const deploy::Volume* volume : volumes) {
    const auto full = full_.find(volume);
    if (full == full_.end() || full->second.by.erase(f) == 0 || !full->second.by.empty()) continue;
    if (auto resized = volume->resize(full->second.bytes); !resized && done) done = std::move(resized);
  }
  for (const auto& other : others_[f]) full_.erase(other.get());
  others_.erase(f);
  return done;
}

Result<void> Limits::begin(std::size_t f, std::size_t index) {
  const Fault& fault = plan_.schedule.faults[f];
  Node& node = *nodes_[index];
  const std::lock_guard lock(node.mutex);
  {
    InForce& limit = *faults_[f];
    const std::lock_guard own(limit.mutex);
    limit.node = index;
    limit.on = true;
    if (fault.kind == FaultKind::disk_slow) {
      slow_.begin(f, index);
      return {};
    }
    if (const auto group = node.groups.find(fault.kind); group != node.groups.end())
      limit.felt_before = kernel::times_felt(group->second.folder, controller_of(fault.kind), group->second.place.v2);
    if (fault.kind != FaultKind::disk_full) limit.met_before = met(f);
  }
  node.on.push_back(f);
  note_limiting(node, fault.kind);
  const auto put = [&]() -> Result<void> {
    if (fault.kind != FaultKind::disk_full) return set(node, fault.kind);
    const std::lock_guard own(faults_[f]->mutex);
    return fill(f, node);
  };
  auto done = put();
  if (done) return {};
  // The limit may have been set in part, so remove it.
  std::erase(node.on, f);
  note_limiting(node, fault.kind);
  (void)(fault.kind == FaultKind::disk_full ? make_room(f, node) : set(node, fault.kind));
  const std::lock_guard own(faults_[f]->mutex);
  faults_[f]->on = false;
  return done;
}

// Several faults may limit the same resource. The stacks of threads that reach the limit are recorded for the newest of
// these faults: either its limit is the lowest, or it is at least the latest change.
void Limits::note_limiting(const Node& node, FaultKind kind) {
  const auto newest = std::find_if(node.on.rbegin(), node.on.rend(),
                                   [&](std::size_t f) { return plan_.schedule.faults[f].kind == kind; });
  programs_.set_limiting(node.index, kind, newest == node.on.rend() ? std::nullopt : std::optional(*newest));
}

// How often the node has reached the limit since the counter was created.
std::uint64_t Limits::met(std::size_t f) const {
  const Fault& fault = plan_.schedule.faults[f];
  const Node& node = *nodes_[*faults_[f]->node];
  switch (fault.kind) {
    case FaultKind::descriptors: return programs_.descriptors_lacked(node.index);
    case FaultKind::disk_full: return programs_.room_lacked(node.index, faults_[f]->devices);
    case FaultKind::memory:
    case FaultKind::cpu: {
      const auto group = node.groups.find(fault.kind);
      return group == node.groups.end()
                 ? 0
                 : kernel::times_met(group->second.folder, controller_of(fault.kind), group->second.place.v2);
    }
    default: return 0;
  }
}

std::uint64_t Limits::killed(std::size_t index) const {
  const Node& node = *nodes_.at(index);
  // Do not lock the node here. begin() holds its mutex while the kernel reclaims memory, and the caller must not wait
  // for that. From prepare() to finish() the groups and their folders do not change.
  const auto group = node.groups.find(FaultKind::memory);
  if (group == node.groups.end()) return 0;
  return kernel::times_felt(group->second.folder, Controller::memory, group->second.place.v2);
}

// Records how often the limit has been reached, and how often it has taken effect, so far.
void Limits::look(std::size_t f) {
  const Fault& fault = plan_.schedule.faults[f];
  InForce& limit = *faults_[f];
  const std::lock_guard own(limit.mutex);
  if (!limit.on) return;
  limit.met = met(f) - limit.met_before;
  limit.count = felt(fault, limit);
}

// How often the limit has taken effect since it was set. Call with the mutex of `limit` held.
std::uint64_t Limits::felt(const Fault& fault, const InForce& limit) const {
  if (!limit.on) return limit.count;
  const auto& groups = nodes_[*limit.node]->groups;
  const auto group = groups.find(fault.kind);
  if (group == groups.end()) return limit.count;
  return kernel::times_felt(group->second.folder, controller_of(fault.kind), group->second.place.v2) -
         limit.felt_before;
}

Result<void> Limits::end(std::size_t f) {
  InForce& limit = *faults_[f];
  std::size_t index = 0;
  {
    const std::lock_guard own(limit.mutex);
    if (!limit.on) return {};
    index = *limit.node;
  }
  Node& node = *nodes_[index];
  const std::lock_guard lock(node.mutex);
  look(f);
  std::erase(node.on, f);
  limit.unsettled = false;
  {
    const std::lock_guard own(limit.mutex);
    limit.on = false;
  }
  const Fault& fault = plan_.schedule.faults[f];
  if (fault.kind == FaultKind::disk_slow) {
    slow_.end(f);
    return {};
  }
  note_limiting(node, fault.kind);
  return fault.kind == FaultKind::disk_full ? make_room(f, node) : set(node, fault.kind);
}

bool Limits::unsettled(std::size_t f) const { return faults_[f] && faults_[f]->unsettled; }

void Limits::settle(std::size_t f) {
  std::size_t index = 0;
  {
    const std::lock_guard own(faults_[f]->mutex);
    if (!faults_[f]->on) return;
    index = *faults_[f]->node;
  }
  const std::lock_guard lock(nodes_[index]->mutex);
  if (!faults_[f]->unsettled) return;
  if (plan_.schedule.faults[f].kind == FaultKind::descriptors) {
    // Errors are ignored here: if a process cannot be changed, that was reported before.
    (void)set(*nodes_[index], FaultKind::descriptors, true);
    return;
  }
  const auto narrowed = tighten(*nodes_[index]);
  if (!narrowed) log::warning("fault '{}': {}", plan_.schedule.faults[f].id, narrowed.error().message);
  faults_[f]->unsettled = narrowed && !*narrowed;
}

void Limits::finish() {
  if (deployment_ == nullptr) return;
  for (std::size_t f = 0; f < faults_.size(); ++f)
    if (faults_[f])
      if (auto ended = end(f); !ended)
        log::warning("fault '{}': {}", plan_.schedule.faults[f].id, ended.error().message);
  for (const auto& node : nodes_) {
    const std::lock_guard lock(node->mutex);
    for (const auto& [kind, group] : node->groups) {
      if (group.place.v2 || group.folder.empty()) continue;
      if (auto gone = kernel::dissolve(group.folder, group.place.own); !gone) log::warning("{}", gone.error().message);
    }
    node->groups.clear();
  }
  deployment_ = nullptr;
}

std::string Limits::no_effect(std::size_t f) const {
  const Fault& fault = plan_.schedule.faults[f];
  const InForce& limit = *faults_[f];
  if (fault.kind == FaultKind::disk_slow)
    return effect(f).second > 0 ? "" : "no request reached the disk during the fault" + slow_.elsewhere(f);
  const std::lock_guard own(limit.mutex);
  if (!limit.node || (limit.on ? met(f) - limit.met_before : limit.met) > 0) return {};
  // The kernel may have killed a process although its counter of attempts to exceed the limit has not increased. With
  // cgroup v1, the limit is lowered along with the usage. The process may then be killed for an attempt that had
  // already been counted.
  if (fault.kind == FaultKind::memory) {
    if (felt(fault, limit) > 0) return {};
  }
  const std::string& name = plan_.nodes[*limit.node];
  switch (fault.kind) {
    case FaultKind::descriptors: return fmt::format("no call of {} reached the limit", name);
    case FaultKind::memory: return fmt::format("{} never reached the limit", name);
    case FaultKind::cpu: return fmt::format("{} never had to wait for a processor", name);
    default:
      return fmt::format("no call of {} failed for lack of disk space{}", name,
                         elsewhere_words(plan_.in_container[*limit.node], fault));
  }
}

std::pair<std::string, std::uint64_t> Limits::effect(std::size_t f) const {
  const Fault& fault = plan_.schedule.faults[f];
  if (fault.kind == FaultKind::disk_slow) return slow_.effect(f);
  const InForce& limit = *faults_[f];
  const std::lock_guard own(limit.mutex);
  const std::uint64_t count = felt(fault, limit);
  const std::string name = limit.node ? plan_.nodes[*limit.node] : fault.node;
  switch (fault.kind) {
    case FaultKind::descriptors:
      return {fmt::format("{} of {} and their children: at most {} descriptors each", processes_text(count), name,
                          fault.resource.limit),
              count};
    case FaultKind::memory: {
      std::string text =
          fmt::format("{} held to {}", name, format_size(static_cast<std::uint64_t>(fault.resource.limit)));
      if (limit.at_first != 0) text += fmt::format(", at first to the {} in use", format_size(limit.at_first));
      return {fmt::format("{}; the kernel killed {} because of it", text,
                          count == 0 ? "no process" : processes_text(count)),
              count};
    }
    case FaultKind::cpu:
      return {fmt::format("{} limited to {:.4g} of a processor; it had to wait in {} of the kernel's periods", name,
                          fault.resource.share, count),
              count};
    default:
      return {fmt::format("{} is full with {}", place_words(name, fault.resource.folder), format_size(limit.bytes)),
              count};
  }
}

}  // namespace rose::inject
