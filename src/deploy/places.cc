// File systems for the faults of a run, in the places in which a node keeps files: its folder, and its container's
// volumes. A volume's file system is mounted on the engine's folder for that volume before a container uses it.
// Therefore the engine can still create the volume and copy into it what the image has there.
#include <algorithm>
#include <functional>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "base/trim.h"
#include "base/units.h"
#include "deploy/cluster.h"
#include "deploy/machine/processes.h"
#include "deploy/volumes.h"

namespace rose::deploy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUnnamed = "at";  // prefix of the names that rose gives to unnamed volumes
constexpr std::int64_t kVolumeTimeout = 60 * kSecond;

template <typename T>
void add_once(std::vector<T>& all, T one) {
  if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
}

bool any(const std::vector<FaultPlace*>& places, bool FaultPlace::* use) {
  return std::any_of(places.begin(), places.end(), [&](const FaultPlace* one) { return one->*use; });
}

fs::path normal(const fs::path& path) {
  fs::path text = path.lexically_normal();
  return text.has_filename() || text == "/" ? text : text.parent_path();
}

}  // namespace

// A power loss of a whole node does not affect volumes that other nodes share, because these nodes continue to run and
// would keep using the file system that was replaced.
Result<bool> settle_uses(std::vector<FaultPlace*>& places, std::size_t nodes, const std::string& what) {
  const bool shared = nodes > 1;
  for (const FaultPlace* one : places)
    if (shared && one->loses_power && !one->inside.empty())
      return fail(ErrorKind::input,
                  fmt::format("{} is mounted in {} nodes: it cannot lose power while one of them runs", what, nodes),
                  "restrict the fault with 'path' to a volume of one node");
  if (shared) std::erase_if(places, [](const FaultPlace* one) { return !one->fills && !one->slows; });
  if (any(places, &FaultPlace::fills) && (any(places, &FaultPlace::slows) || any(places, &FaultPlace::loses_power)))
    return fail(ErrorKind::input,
                fmt::format("{}: a disk that gets full cannot also lose power or be slow in the same schedule", what),
                "restrict the faults with 'path' to folders that do not share a volume");
  return !shared;
}

Result<void> Cluster::add_volumes(std::size_t node, const fs::path& inside) {
  return take_place(node, inside, &FaultPlace::fills);
}

Result<void> Cluster::add_disks(std::size_t node, const fs::path& inside, bool paced) {
  return take_place(node, inside, paced ? &FaultPlace::slows : &FaultPlace::loses_power);
}

std::vector<const Volume*> Cluster::volumes(std::size_t node, const fs::path& inside) const {
  for (const auto& place : places_)
    if (place->node == node && place->inside == inside && place->fills) return place->volumes;
  return {};
}

std::vector<Disk*> Cluster::disks(std::size_t node, const fs::path& inside) const {
  for (const auto& place : places_)
    if (place->node == node && place->inside == inside && !place->fills) return place->disks;
  return {};
}

Result<void> Cluster::take_place(std::size_t node, const fs::path& inside, bool FaultPlace::* use) {
  ROSE_ASSERT(!started_);
  const bool fills = use == &FaultPlace::fills;
  FaultPlace* place = nullptr;
  for (const auto& one : places_)
    if (one->node == node && one->inside == inside && one->fills == fills) place = one.get();
  if (place == nullptr) {
    places_.push_back(std::make_unique<FaultPlace>());
    place = places_.back().get();
    place->node = node;
    place->inside = inside;
  }
  place->*use = true;
  const auto folder = in_node_folder(node, inside);
  if (!folder || (folder->empty() && !fills && keeps_elsewhere(node))) return {};  // see name_volumes()
  ROSE_TRY(OpenFolder at, volume_folder(node, *folder));
  ROSE_CHECK(note_end(node));  // heal() must end the node before it unmounts this and moves the files
  std::vector<std::string> outside;
  if (folder->empty() && !fills) outside = {"stdout.log", "stderr.log"};
  return mount_for({place}, std::move(at), outside, true);
}

// Returns `inside` relative to the node's folder; nothing if it is not in the node's folder but elsewhere in the
// container.
std::optional<fs::path> Cluster::in_node_folder(std::size_t node, const fs::path& inside) const {
  const auto& container = config_.nodes[node].container;
  if (inside.is_relative()) return inside;
  if (!container) return std::nullopt;
  const NodeInfo& info = infos_[node];
  for (const std::string& volume : container->volumes) {
    const std::vector<std::string> parts = split(expand(volume, facts_, infos_, &info), ':');
    const fs::path source = normal(parts.front());
    const fs::path target = normal(parts[1]);
    if ((source != info.dir && !is_within(source, info.dir)) || (inside != target && !is_within(inside, target)))
      continue;
    return normal((source / inside.lexically_relative(target)).lexically_normal()).lexically_relative(info.dir);
  }
  return std::nullopt;
}

// True if no part of the node's folder is visible in the container. The folder then contains only the node's output.
bool Cluster::keeps_elsewhere(std::size_t node) const {
  const config::Node& config = config_.nodes[node];
  if (!config.container || mentions(config, "${dir}") || mentions(config, "${run_dir}")) return false;
  const NodeInfo& info = infos_[node];
  return std::none_of(config.container->volumes.begin(), config.container->volumes.end(), [&](const std::string& one) {
    const fs::path source = normal(split(expand(one, facts_, infos_, &info), ':').front());
    return source == info.dir || is_within(source, info.dir);
  });
}

// The node's fault places that contain the path `target` of its container.
std::vector<FaultPlace*> Cluster::places_at(std::size_t node, const fs::path& target) const {
  std::vector<FaultPlace*> found;
  const fs::path path = normal(target);
  for (const auto& one : places_)
    if (one->node == node &&
        (one->inside.empty() || (one->inside.is_absolute() && (one->inside == path || is_within(path, one->inside)))))
      found.push_back(one.get());
  return found;
}

// Mounts one file system on the folder `at` for all these places, or uses the one that is already mounted there.
Result<void> Cluster::mount_for(const std::vector<FaultPlace*>& places, OpenFolder at,
                                const std::vector<std::string>& outside, bool may_lose_power) {
  const fs::path path = at.path();
  const auto here = [&](const auto& one) { return one->folder() == path; };
  if (any(places, &FaultPlace::fills)) {
    if (std::none_of(volumes_.begin(), volumes_.end(), here)) {
      ROSE_CHECK(identity_.note("volume", path.string()));
      mounts_ = true;
      ROSE_TRY(Volume volume, Volume::make(at, identity_.id()));
      volumes_.push_back(std::make_unique<Volume>(std::move(volume)));
    }
    const Volume* made = std::find_if(volumes_.begin(), volumes_.end(), here)->get();
    for (FaultPlace* place : places) add_once(place->volumes, made);
    return {};
  }
  if (std::none_of(disks_.begin(), disks_.end(), here)) {
    ROSE_TRY(const OpenFolder own, own_folder());
    ROSE_CHECK(identity_.note("volume", path.string()));
    mounts_ = true;
    ROSE_TRY(Disk disk, Disk::make(std::move(at), own, identity_.id(), outside, any(places, &FaultPlace::slows)));
    if (!may_lose_power) disk.keep_power();
    disks_.push_back(std::make_unique<Disk>(std::move(disk)));
  }
  Disk* made = std::find_if(disks_.begin(), disks_.end(), here)->get();
  for (FaultPlace* place : places) add_once(place->disks, made);
  return {};
}

// Gives a name to each unnamed volume that faults concern. The engine would otherwise create the volume together with
// the container, and rose could not mount a file system on it before the container uses it. Also makes a named volume
// of each folder that a fault names and that is no volume.
Result<void> Cluster::name_volumes(std::size_t node, const Image& image, std::vector<std::string>& volumes) {
  if (std::none_of(places_.begin(), places_.end(), [&](const auto& one) { return one->node == node; })) return {};
  std::vector<std::string>& options = states_[node]->container->spec.options;
  std::vector<fs::path> taken;
  std::vector<fs::path> in_memory;
  for (const std::string& volume : volumes) taken.push_back(normal(split(volume, ':')[1]));
  const auto add = [&](const fs::path& target) {
    taken.push_back(target);
    volumes.push_back(fmt::format("{}-{}-{:016x}:{}", kUnnamed, infos_[node].name,
                                  std::hash<std::string>()(target.string()), target.string()));
  };
  const auto is_taken = [&](const fs::path& target) {
    return std::find(taken.begin(), taken.end(), target) != taken.end();
  };
  for (std::size_t i = 0; i + 1 < options.size();) {
    const std::vector<std::string> parts = split(options[i + 1], ':');
    const bool anonymous = (options[i] == "--volume" || options[i] == "-v") && parts.size() == 1;
    if (options[i] == "--tmpfs") in_memory.push_back(normal(parts.front()));
    if (!anonymous || places_at(node, parts.front()).empty()) {
      ++i;
      continue;
    }
    if (!is_taken(normal(parts.front()))) add(normal(parts.front()));
    options.erase(options.begin() + static_cast<std::ptrdiff_t>(i),
                  options.begin() + static_cast<std::ptrdiff_t>(i) + 2);
  }
  taken.insert(taken.end(), in_memory.begin(), in_memory.end());
  for (const std::string& target : image.volumes)
    if (!is_taken(normal(target)) && !places_at(node, target).empty()) add(normal(target));
  for (const auto& one : places_) {
    if (one->node != node || !one->inside.is_absolute() || in_node_folder(node, one->inside)) continue;
    const auto refused = [&](std::string_view why, std::string_view hint) {
      return fail(
          ErrorKind::input,
          fmt::format("a fault needs a disk at {} of node {}, but {}", one->inside.string(), infos_[node].name, why),
          std::string(hint));
    };
    if (std::find(in_memory.begin(), in_memory.end(), one->inside) != in_memory.end())
      return refused("this folder is held in memory", "name a folder whose files are on a disk");
    for (const std::string& volume : volumes) {
      const std::vector<std::string> parts = split(volume, ':');
      const fs::path target = normal(parts[1]);
      if (one->inside == target && is_read_only(parts))
        return refused("it is mounted read-only", "name a folder that the node can write to");
      std::error_code error;
      if (one->inside == target && fs::is_regular_file(parts.front(), error))
        return refused("this is a file", "name the folder that it is in");
      if (is_within(one->inside, target) && one->inside != target && fs::path(parts.front()).is_absolute())
        return refused(fmt::format("it is a part of {}, a folder of this machine", target.string()),
                       fmt::format("set path = \"{}\"", target.string()));
    }
    if (!is_taken(one->inside)) add(one->inside);
  }
  return {};
}

Result<void> Cluster::mount_volumes() {
  for (auto& [own, held] : held_volumes_) {
    if (held.places.empty()) continue;
    ROSE_CHECK(cancel::check());
    ROSE_TRY(const bool may_lose_power, settle_uses(held.places, held.nodes.size(), "volume " + held.name));
    if (held.places.empty()) continue;
    ROSE_TRY([[maybe_unused]] const std::string made,
             ask_engine(make_volume_words(*engine_, own), fmt::format("make volume {}", own), kVolumeTimeout));
    ROSE_TRY(std::string folder,
             ask_engine(find_volume_words(*engine_, own), fmt::format("find volume {}", own), kVolumeTimeout));
    folder = std::string(trimmed(folder));
    std::error_code error;
    if (folder.empty() || !fs::is_directory(folder, error))
      return fail(ErrorKind::environment,
                  fmt::format("the engine keeps volume {} in {}, which is not a folder of this machine", held.name,
                              folder.empty() ? "an unknown place" : printable(folder)),
                  "disk faults need an engine that runs on this machine");
    ROSE_TRY(OpenFolder at, OpenFolder::open(folder));
    ROSE_CHECK(identity_.note("ends", cgroup_.string()));  // all nodes, because any may use the volume
    held.folder = folder;
    ROSE_CHECK(mount_for(held.places, std::move(at), {}, may_lose_power));
  }
  return {};
}

// Syncs the files that the engine and rose have copied into the node's volumes, so that a power loss does not lose
// them: in production, these files were on the disk long before the failure.
Result<void> Cluster::sync_disks(std::size_t node) {
  for (const auto& place : places_) {
    if (place->node != node || !place->loses_power) continue;
    for (const Disk* disk : place->disks) ROSE_CHECK(disk->sync());
  }
  return {};
}

// Unmounts the file systems on volumes, because the engine cannot remove a volume on which one is mounted. Their files
// are not copied back, because the volumes are removed anyway.
void Cluster::drop_volumes() {
  const auto is_held = [&](const fs::path& folder) {
    return std::any_of(held_volumes_.begin(), held_volumes_.end(),
                       [&](const auto& one) { return !one.second.places.empty() && one.second.folder == folder; });
  };
  for (const auto& volume : volumes_)
    if (is_held(volume->folder())) undo(volume::detach(volume->release().fd()));
  for (const auto& disk : disks_)
    if (is_held(disk->folder()))
      if (const auto top = disk->release()) undo(volume::detach(top->fd()));
  std::erase_if(volumes_, [&](const auto& one) { return is_held(one->folder()); });
  std::erase_if(disks_, [&](const auto& one) { return is_held(one->folder()); });
}

}  // namespace rose::deploy
