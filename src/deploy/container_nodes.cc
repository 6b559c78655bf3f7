// Nodes in containers: determines what the engine must create and remove.
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/units.h"
#include "deploy/cluster.h"
#include "deploy/enter/enter.h"
#include "deploy/machine/cgroup.h"
#include "deploy/machine/processes.h"
#include "deploy/names.h"
#include "deploy/volumes.h"
#include "kernel/syscalls.h"

namespace rose::deploy {
namespace {

constexpr std::size_t kMadeAtOnce = 8;
constexpr std::int64_t kRemoveTimeout = 60 * kSecond;
constexpr std::int64_t kCompletes = 600 * kSecond;  // for a service that must complete before others start
// a container does not count as unhealthy before this time, because test machines may be slow
constexpr std::int64_t kUnhealthyAfter = 10 * kSecond;
constexpr std::int64_t kSettleTimeout =
    5 * kSecond;  // from the end of the last container until the engine's helpers have ended

// False for variables about folders and files of this machine, which have no meaning in a container.
bool means_something_inside(const std::string& variable) {
  return variable == "ROSE_NODE" || variable == "ROSE_NODES" || variable == "ROSE_IP" || variable == "ROSE_RUN" ||
         variable.starts_with("ROSE_IP_");
}

// For `--init`, podman executes a separate program, which its package does not always include. In that case rose's
// entry point is used.
bool has_init_of_podman() {
  for (const char* folder : {"/usr/libexec/podman", "/usr/local/libexec/podman", "/usr/lib/podman",
                             "/usr/local/lib/podman", "/usr/bin", "/usr/libexec/catatonit"})
    if (::access(fmt::format("{}/catatonit", folder).c_str(), X_OK) == 0) return true;
  return false;
}

Result<int> stop_signal(const std::string& text) {
  if (text.empty()) return SIGTERM;
  const std::string name =
      text.starts_with("SIG") || (text.front() >= '0' && text.front() <= '9') ? text : "SIG" + text;
  if (const auto number = kernel::signal_number(name)) return *number;
  int number = 0;
  for (const char c : name) number = c >= '0' && c <= '9' && number < 1000 ? number * 10 + (c - '0') : -1000;
  if (number > 0 && number <= 64) return number;
  return fail(ErrorKind::input, fmt::format("its stop signal '{}' is unknown", printable(text)));
}

// The nodes that have at least two volumes in common with another node. While podman creates a container, it holds the
// locks of all volumes of the container, and takes them in any order. Two podman commands would then wait for each
// other for ever, so such containers are created one after the other.
std::set<std::size_t> sharing_volumes(const config::Config& config) {
  std::vector<std::set<std::string>> names(config.nodes.size());
  for (std::size_t node = 0; node < names.size(); ++node)
    if (const auto& container = config.nodes[node].container)
      for (const std::string& volume : container->volumes)
        if (!volume.starts_with('/') && !volume.starts_with('$'))
          names[node].insert(volume.substr(0, volume.find(':')));
  std::set<std::size_t> sharing;
  for (std::size_t a = 0; a < names.size(); ++a)
    for (std::size_t b = a + 1; b < names.size(); ++b)
      if (std::count_if(names[a].begin(), names[a].end(), [&](const auto& one) { return names[b].contains(one); }) >= 2)
        sharing.insert({a, b});
  return sharing;
}

// Podman refuses the options uid and gid. Without them, everybody may write to the file system, as to /tmp.
std::string tmpfs_of_podman(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return text;
  std::vector<std::string> kept;
  for (const std::string& option : split(text.substr(colon + 1), ','))
    if (!option.starts_with("uid=") && !option.starts_with("gid=")) kept.push_back(option);
  return fmt::format("{}{}{}", text.substr(0, colon), kept.empty() ? "" : ":", fmt::join(kept, ","));
}

}  // namespace

bool mentions(const config::Node& node, std::string_view placeholder) {
  return std::any_of(node.command.begin(), node.command.end(),
                     [&](const std::string& word) { return word.find(placeholder) != std::string::npos; }) ||
         std::any_of(node.env.begin(), node.env.end(),
                     [&](const auto& entry) { return entry.second.find(placeholder) != std::string::npos; });
}

bool is_read_only(const std::vector<std::string>& parts) {
  if (parts.size() < 3) return false;
  const std::vector<std::string> options = split(parts[2], ',');
  return std::find(options.begin(), options.end(), "ro") != options.end();
}

bool Cluster::has_containers() const {
  return std::any_of(config_.nodes.begin(), config_.nodes.end(),
                     [](const config::Node& node) { return node.container.has_value(); });
}

Result<void> Cluster::make_containers() {
  if (!has_containers()) return {};
  if (!engine_) {
    ROSE_TRY(engine_, find_engine(config_.deployment.engine));
  }
  ROSE_CHECK(cgroup::make(cgroup_ / kEngineCgroup));
  const std::filesystem::path folders = run_dir_ / kEnterFolders;
  if (::mkdir(folders.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_errno(ErrorKind::environment, fmt::format("cannot create {}", folders.string()), errno);
  ROSE_CHECK(place_engine_command());
  ROSE_CHECK(make_data());
  name_server_ = std::make_unique<NameServer>();
  made_alone_ = sharing_volumes(config_);
  std::vector<std::size_t> later;
  for (const NodeInfo& info : infos_) {
    ROSE_CHECK(cancel::check());
    if (!config_.nodes[info.index].container) continue;
    if (auto planned = plan_container(info.index); !planned)
      return Unexpected(std::move(planned).error().in("node " + info.name));
    if (!made_by_start(info.index)) later.push_back(info.index);
  }
  ROSE_CHECK(name_server_->start());
  ROSE_CHECK(mount_volumes());
  // Two concurrent podman commands that need the same volume may both create it, and the second one then fails.
  for (const std::string& volume : shared_volumes_) {
    if (!held_volumes_.at(volume).folder.empty()) continue;  // mount_volumes() has made it
    ROSE_TRY([[maybe_unused]] const std::string made,
             ask_engine(make_volume_words(*engine_, volume), fmt::format("make volume {}", volume), kRemoveTimeout));
  }
  for (const std::vector<std::size_t>& round : owners_first(std::move(later))) ROSE_CHECK(create_containers(round));
  return {};
}

// Podman looks up files of a container (for example, to find the number of a user) at the place where the container's
// overlay is mounted. These mounts are visible only in this machine's mount namespace. In the mount namespace of the
// run's names, `podman exec --user NAME` would therefore find no user, and `podman cp` no file. So commands find a
// podman in PATH that first enters this machine's namespace. (Docker's daemon is in no namespace of a run, so docker
// needs none of this.)
Result<void> Cluster::place_engine_command() {
  if (!engine_->podman || !names_) return {};
  const std::filesystem::path program = engine_->command.front();
  if (::mkdir(engine_commands().c_str(), 0755) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot create {}", engine_commands().string()), errno);
  return write_file(engine_commands() / program.filename(),
                    fmt::format("#!/bin/sh\nexec nsenter --mount=/proc/{}/ns/mnt --wd=. {} \"$@\"\n", ::getpid(),
                                shell_quoted(program.string())),
                    0755);
}

// An engine creates several containers in parallel in hardly more time than a single one.
Result<void> Cluster::create_containers(const std::vector<std::size_t>& later) {
  for (std::size_t first = 0; first < later.size(); first += kMadeAtOnce) {
    ROSE_CHECK(cancel::check());
    const std::size_t end = std::min(later.size(), first + kMadeAtOnce);
    std::vector<Result<std::string>> made(end - first, Result<std::string>(""));
    std::vector<std::thread> makers;
    for (std::size_t i = first; i < end; ++i) {
      ContainerState& container = *states_[later[i]]->container;
      container.made = true;
      makers.emplace_back([&, i] {
        const auto lock = alone(later[i]);
        made[i - first] = ask_engine(container.making, "create its container", kMakeTimeout);
      });
    }
    for (std::thread& maker : makers) maker.join();
    for (std::size_t i = first; i < end; ++i)
      if (!made[i - first]) return Unexpected(std::move(made[i - first]).error().in("node " + infos_[later[i]].name));
  }
  return {};
}

// True if the node waits neither for another node's health nor for its completion, and the same holds for the owners of
// its namespaces.
bool Cluster::starts_at_once(std::size_t node) const {
  for (const std::size_t owner : owners(node))
    if (!starts_at_once(owner)) return false;
  const auto& after = config_.nodes[node].container->after;
  return std::all_of(after.begin(), after.end(),
                     [](const config::Dependency& one) { return one.when == config::Dependency::When::started; });
}

// True if the command that starts the container also creates it. Each podman command loads and locks the whole state of
// podman, so one command that creates and starts is faster than two; docker's commands are fast. A container that joins
// namespaces can only be created once the owners of the namespaces exist.
bool Cluster::made_by_start(std::size_t node) const {
  return engine_->podman && (!owners(node).empty() || (starts_at_once(node) && !made_alone_.contains(node)));
}

// While it exists, no other container of made_alone_ is created. Holds nothing for other nodes.
std::unique_lock<std::mutex> Cluster::alone(std::size_t node) {
  return made_alone_.contains(node) ? std::unique_lock(making_alone_) : std::unique_lock<std::mutex>();
}

// The part of the specification that does not depend on the image.
ContainerSpec Cluster::named_spec(std::size_t node) const {
  const NodeInfo& info = infos_[node];
  const config::Node& config = config_.nodes[node];
  ContainerSpec spec;
  spec.name = info.container;
  spec.options = config.container->options;
  spec.enter = run_dir_ / kEnterFolders / info.name;
  const bool init = std::find(spec.options.begin(), spec.options.end(), "--init") != spec.options.end();
  if (init && engine_->podman && !has_init_of_podman())
    spec.options.insert(spec.options.end(), {"--init-path", (spec.enter / ROSE_ENTER_PROGRAM).string()});
  if (engine_->podman)
    for (std::size_t i = 0; i + 1 < spec.options.size(); ++i)
      if (spec.options[i] == "--tmpfs") spec.options[i + 1] = tmpfs_of_podman(spec.options[i + 1]);
  spec.run = identity_.id();
  spec.image = config.container->image;
  if (!config.working_dir.empty()) spec.options.insert(spec.options.end(), {"--workdir", config.working_dir});
  if (!facts_.host_network) {
    // As with engines, the host name belongs to the network namespace, so the container gets the host name of the
    // namespace's owner.
    const NodeInfo& owner = infos_[info.network];
    const std::string& hostname = config_.nodes[owner.index].container->hostname;
    spec.hostname = hostname.empty() ? owner.name : hostname;
    spec.netns = fmt::format("{}/{}", kNetnsFolder, info.netns);
    // With `uts: host`, the container has the host name of the machine instead.
    if (config.container->host_name_of_machine) {
      spec.hostname.clear();
      spec.options.insert(spec.options.end(), {"--uts", "host"});
    }
    if (!engine_->podman) spec.holder = fmt::format("{}-network-of-{}", identity_.id(), owner.name);
  }
  const auto container_of = [&](const std::string& name) {
    const auto other =
        std::find_if(infos_.begin(), infos_.end(), [&](const NodeInfo& one) { return one.name == name; });
    return other == infos_.end() ? "" : other->container;
  };
  spec.pid_of = container_of(config.container->pid_of);
  spec.ipc_of = container_of(config.container->ipc_of);
  spec.user = config.user;
  std::vector<std::string> lowered;
  spec.limits = permitted_limits(*engine_, config.container->limits, lowered);
  for (const std::string& what : lowered)
    log::warn_once(fmt::format("node {}: the limit {}, because rose may not raise its own limits (no CAP_SYS_RESOURCE)",
                               config.name, what));
  for (const std::string& limit : inherited_limits())
    if (std::none_of(spec.limits.begin(), spec.limits.end(), [&](const std::string& own) {
          return own.substr(0, own.find('=')) == limit.substr(0, limit.find('='));
        }))
      spec.limits.push_back(limit);
  return spec;
}

// For each node, creates a container that holds the node's network namespace. This is done only for docker, because its
// containers can join only the network namespace of another container. Called before the network is created, because
// the network uses these namespaces.
Result<void> Cluster::make_holders(std::vector<Network::Member>& members) {
  if (!has_containers()) return {};
  ROSE_TRY(engine_, find_engine(config_.deployment.engine));
  if (engine_->podman) return {};
  const std::filesystem::path folders = run_dir_ / kEnterFolders;
  if (::mkdir(folders.c_str(), 0700) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot create {}", folders.string()), errno);
  // An empty tar file.
  const std::filesystem::path archive = folders / "empty.tar";
  ROSE_CHECK(write_file(archive, std::string(1024, '\0'), 0600));
  const std::string image = identity_.id() + "-network";
  ROSE_CHECK(identity_.note("engine", undo_line(remove_image_words(*engine_, image))));
  holder_image_ = image;
  ROSE_TRY([[maybe_unused]] const std::string imported,
           ask_engine(holder_image_words(*engine_, archive.string(), image), "create an empty image", kMakeTimeout));
  std::vector<std::size_t> which;
  for (const NodeInfo& info : infos_) {
    if (!config_.nodes[info.index].container || info.network != info.index) continue;
    ROSE_CHECK(cancel::check());
    const ContainerSpec spec = named_spec(info.index);
    ROSE_CHECK(place_entry(spec.enter));
    ROSE_CHECK(identity_.note("engine", undo_line(remove_words(*engine_, {spec.holder}))));
    holders_.push_back(spec.holder);
    which.push_back(info.index);
    ROSE_TRY([[maybe_unused]] const std::string made,
             ask_engine(holder_words(*engine_, spec, image), fmt::format("create the network of node {}", info.name),
                        kMakeTimeout));
  }
  ROSE_TRY(const std::vector<pid_t> pids, start_holders(*engine_, holders_));
  for (std::size_t i = 0; i < which.size(); ++i) members[which[i]].holder = pids[i];
  return {};
}

// Determines the engine's command that creates the container, and notes for heal() what it creates.
Result<void> Cluster::plan_container(std::size_t node) {
  const NodeInfo& info = infos_[node];
  NodeState& state = *states_[node];
  const config::Node& config = config_.nodes[node];
  ROSE_TRY(const Image image, have_image(*engine_, *config.container, config_.deployment.setup.has_value()));
  state.container = std::make_unique<ContainerState>();
  ContainerState& container = *state.container;
  ROSE_TRY(container.stop_signal,
           stop_signal(config.container->stop_signal.empty() ? image.stop_signal : config.container->stop_signal));
  settle_health(node, image);
  const auto& entrypoint = config.container->entrypoint;
  container.argv = entrypoint ? expand(*entrypoint, facts_, infos_, &info) : image.entrypoint;
  const std::vector<std::string> further = !config.command.empty() ? state.spec.argv
                                           : entrypoint            ? std::vector<std::string>{}
                                                                   : image.command;
  container.argv.insert(container.argv.end(), further.begin(), further.end());
  if (container.argv.empty())
    return fail(ErrorKind::input, fmt::format("image '{}' names no command", config.container->image),
                "set its command: command = [...]");

  container.spec = named_spec(node);
  ContainerSpec& spec = container.spec;
  for (const auto& [name, value] : state.spec.env)
    if (means_something_inside(name) || config.env.contains(name)) spec.env[name] = value;
  if (observer_ != nullptr) {
    Variables own = image.env;
    for (const auto& [name, value] : spec.env) own[name] = value;
    container.observers = observer_->environment(node, own);
  }
  if (spec.holder.empty() || info.network != node) ROSE_CHECK(place_entry(spec.enter));
  ROSE_CHECK(place_names(node, image));
  ROSE_CHECK(place_folders(node, image));

  ROSE_TRY(container.making, making_words(*engine_, spec, made_by_start(node)));
  return identity_.note("engine", undo_line(remove_words(*engine_, {spec.name}, is_joined(node))));
}

// Gives the container its own hosts file and resolv.conf, because containers may change them. rose's name server is not
// started in the network of a container that is itself a name server and needs the port.
Result<void> Cluster::place_names(std::size_t node, const Image& image) {
  ContainerSpec& spec = states_[node]->container->spec;
  const auto file = [&](const char* name) { return run_dir_ / kEnterFolders / (infos_[node].name + name); };
  spec.hosts = file(".hosts");
  const std::string hosts = container_hosts(config_, infos_, node);
  ROSE_CHECK(write_file(spec.hosts, hosts, 0644));
  if (facts_.host_network) return {};
  const std::size_t owner = infos_[node].network;
  if (owner == node && !image.name_server && !is_name_server(owner)) {
    if (auto added = name_server_->add(network_->node_fd(owner), hosts); added) asking_.insert(owner);
    else log::warning("node {}: its names are in /etc/hosts only: {}", infos_[node].name, added.error().message);
  }
  spec.resolver = file(".resolv.conf");
  return write_file(spec.resolver, resolver_text(asking_.contains(owner), config_.nodes[node].container->asks), 0644);
}

// True if a node in this network declares the port of name servers.
bool Cluster::is_name_server(std::size_t owner) const {
  return std::any_of(infos_.begin(), infos_.end(), [&](const NodeInfo& info) {
    const config::Node& node = config_.nodes[info.index];
    return info.network == owner &&
           ((node.container && node.container->name_server) || (node.ready && node.ready->tcp == kNamePort));
  });
}

// Some volumes are folders and files of this machine to which nodes may write. Makes the run's own versions of them.
// Nodes that name the same source share its version within the run.
Result<void> Cluster::make_data() {
  std::vector<std::filesystem::path> sources;
  struct User {
    std::filesystem::path source, target;
    std::size_t node;
  };
  std::vector<User> users;
  for (const NodeInfo& info : infos_) {
    const auto& container = config_.nodes[info.index].container;
    if (!container) continue;
    for (const std::string& volume : container->volumes) {
      const std::vector<std::string> parts = split(expand(volume, facts_, infos_, &info), ':');
      const std::filesystem::path source = std::filesystem::path(parts.front()).lexically_normal();
      if (!source.is_absolute() || is_within(source, run_dir_) || is_read_only(parts)) continue;
      if (!is_data(source)) continue;
      sources.push_back(source);
      users.push_back({source, parts[1], info.index});
    }
  }
  if (sources.empty()) return {};
  std::string folder = "data";  // the name is made unique below, because a node may have it
  const std::vector<std::string> nodes = config_.node_names();
  while (std::find(nodes.begin(), nodes.end(), folder) != nodes.end()) folder += "-of-run";
  ROSE_TRY(const OpenFolder run, OpenFolder::open(run_dir_));
  ROSE_TRY([[maybe_unused]] const OpenFolder made, run.make(folder, std::nullopt));
  std::vector<std::string> names;
  for (const std::filesystem::path& source : outermost(std::move(sources))) {
    if (log::is_first_report(source.string()))
      log::info("{}: each run has its own version, and what nodes write there stays in it", described_data(source));
    const std::filesystem::path shown = run_dir_ / folder / data_name(source, names);
    std::error_code error;
    if (std::filesystem::is_directory(source, error)) ROSE_CHECK(identity_.note("data", shown.string()));
    std::vector<FaultPlace*> places;
    std::set<std::size_t> sharing;
    for (const User& user : users) {
      if (user.source != source && !is_within(user.source, source)) continue;
      sharing.insert(user.node);
      for (FaultPlace* place : places_at(user.node, user.target))
        if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
    }
    ROSE_TRY(const bool may_lose_power, settle_uses(places, sharing.size(), source.string()));
    // With disk faults, the folder is copied, because an overlay contains only what nodes have changed, and faults must
    // affect all of the data.
    const bool plain = !places.empty() && std::filesystem::is_directory(source, error);
    if (plain) {
      ROSE_TRY(OpenFolder at, run.make(std::filesystem::path(folder) / shown.filename(), std::nullopt));
      ROSE_CHECK(identity_.note("ends", cgroup_.string()));
      ROSE_CHECK(mount_for(places, std::move(at), {}, may_lose_power));
    } else if (is_within(run_dir_, source)) {
      const std::string layers = shown.filename().string() + std::string(kLayers);
      ROSE_TRY(const OpenFolder at, run.make(std::filesystem::path(folder) / layers, std::nullopt));
      ROSE_CHECK(identity_.note("ends", cgroup_.string()));
      ROSE_CHECK(identity_.note("volume", at.path().string()));
      mounts_ = true;
      ROSE_TRY(Volume volume, Volume::make(at, identity_.id()));
      volumes_.push_back(std::make_unique<Volume>(std::move(volume)));
    }
    ROSE_TRY(RunData data, RunData::make(source, shown, identity_.id(), plain));
    data_.push_back(std::move(data));
  }
  return {};
}

void Cluster::dissolve_data() {
  for (const RunData& data : data_)
    if (data.is_mounted()) undo(leave_shared(data.shown()));
  data_.clear();
}

// Determines the mounts of the container: the requested volumes, and the folders to which the command refers, at the
// same paths as on this machine.
Result<void> Cluster::place_folders(std::size_t node, const Image& image) {
  const NodeInfo& info = infos_[node];
  ContainerState& container = *states_[node]->container;
  const config::Node& config = config_.nodes[node];
  std::vector<std::string> volumes;
  for (const std::string& volume : config.container->volumes) volumes.push_back(expand(volume, facts_, infos_, &info));
  if (mentions(config, "${dir}")) volumes.push_back(fmt::format("{0}:{0}", info.dir.string()));
  if (mentions(config, "${run_dir}")) {
    // Root in a container is root in its volumes, so it could replace files that rose and commands write by name. Those
    // files are directly in the run's folder, which is therefore mounted read-only. Only the nodes' folders, in which
    // rose does not follow names, are writable.
    volumes.push_back(fmt::format("{0}:{0}:ro", run_dir_.string()));
    for (const NodeInfo& one : infos_)
      if (one.index != info.index || !mentions(config, "${dir}"))
        volumes.push_back(fmt::format("{0}:{0}", one.dir.string()));
  }
  if (mentions(config, "${config_dir}")) volumes.push_back(fmt::format("{0}:{0}:ro", config_.directory.string()));
  ROSE_CHECK(name_volumes(node, image, volumes));
  const auto own_volume = [this](const std::string& name) { return fmt::format("{}-{}", identity_.id(), name); };
  const auto note_volume = [&, this](const std::string& own, const std::vector<std::string>& parts) -> Result<void> {
    HeldVolume& held = held_volumes_[own];
    held.name = fmt::format("{} at {}", parts.front(), parts[1]);
    held.nodes.insert(node);
    for (FaultPlace* place : is_read_only(parts) ? std::vector<FaultPlace*>{} : places_at(node, parts[1]))
      if (std::find(held.places.begin(), held.places.end(), place) == held.places.end()) held.places.push_back(place);
    if (std::find(run_volumes_.begin(), run_volumes_.end(), own) != run_volumes_.end()) {
      shared_volumes_.insert(own);
      return {};
    }
    ROSE_CHECK(identity_.note("engine", undo_line(remove_volume_words(*engine_, own))));
    run_volumes_.push_back(own);
    return {};
  };
  for (std::string& volume : volumes) {
    const std::vector<std::string> parts = split(volume, ':');
    const std::filesystem::path source = parts.front();
    if (const auto held = config.container->tmpfs.find(parts.front()); held != config.container->tmpfs.end()) {
      ROSE_TRY(const std::filesystem::path folder, memory_volume(held->first, held->second));
      // A disk fault affects a volume in memory only if its `path` names the volume.
      for (FaultPlace* place : places_at(node, parts[1])) {
        if (place->inside != parts[1]) continue;
        if (!place->fills)
          return fail(ErrorKind::input, fmt::format("its volume {} is held in memory, not on a disk", parts[1]),
                      "only \"disk-full\" can affect it");
        for (const auto& made : volumes_)
          if (made->folder() == folder) place->volumes.push_back(made.get());
      }
      volume = folder.string() + volume.substr(parts.front().size());
    } else if (!source.is_absolute()) {
      // The source is a name: a volume that belongs to the run.
      const std::string own = own_volume(parts.front());
      ROSE_CHECK(note_volume(own, parts));
      volume = own + volume.substr(parts.front().size());
    } else if (const auto data = std::find_if(data_.begin(), data_.end(),
                                              [&](const RunData& one) {
                                                const auto normal = source.lexically_normal();
                                                return !is_read_only(parts) &&
                                                       (normal == one.source() || is_within(normal, one.source()));
                                              });
               data != data_.end()) {
      const std::filesystem::path inside = source.lexically_normal().lexically_relative(data->source());
      const std::filesystem::path shown = inside == "." ? data->shown() : data->shown() / inside;
      // As with engines, a missing folder is created, but only in the run's version. Creating fails if a file or a
      // symbolic link has this name. Then nothing is missing, or the engine reports it.
      if (inside != ".") {
        ROSE_TRY(const OpenFolder top, OpenFolder::open(data->shown()));
        if (const auto made = top.make(inside, std::nullopt); !made) log::debug("{}", made.error().message);
      }
      volume = shown.string() + volume.substr(parts.front().size());
    } else if (source == info.dir || is_within(source, info.dir)) {
      ROSE_TRY(const OpenFolder top, OpenFolder::open(info.dir));
      ROSE_TRY([[maybe_unused]] const OpenFolder made, top.make(source.lexically_relative(info.dir), std::nullopt));
      container.folders.push_back({info.dir, {}});
      for (std::filesystem::path folder; const auto& part : source.lexically_relative(info.dir)) {
        if (part == ".") continue;
        folder /= part;
        container.folders.push_back({info.dir, folder});
      }
    } else if (std::error_code error; config.container->service && !std::filesystem::exists(source, error)) {
      // With Compose, the missing folder would be created, and all runs would share it.
      const std::string own = own_volume(fmt::format("folder-{:016x}", std::hash<std::string>()(source.string())));
      if (log::is_first_report(source.string()))
        log::info("{} does not exist: each run uses an empty folder instead; if it has to be a file, create it first",
                  source.string());
      ROSE_CHECK(note_volume(own, parts));
      volume = own + volume.substr(parts.front().size());
    } else if (!std::filesystem::exists(source, error)) {
      return fail(ErrorKind::input, fmt::format("its volume {} does not exist", source.string()),
                  "relative paths are relative to the configuration file's folder");
    }
  }
  ROSE_CHECK(write_handed(node, volumes));
  if (observer_ != nullptr)
    for (const std::filesystem::path& folder : observer_->folders(node)) {
      volumes.push_back(fmt::format("{0}:{0}:ro", folder.string()));
      volumes.push_back(fmt::format("{0}:{0}", (folder / info.name).string()));
      container.folders.push_back({folder, info.name});
    }
  for (const auto& [place, file] : config.container->programs) volumes.push_back(fmt::format("{}:{}:ro", file, place));
  std::sort(volumes.begin(), volumes.end());
  volumes.erase(std::unique(volumes.begin(), volumes.end()), volumes.end());
  container.spec.volumes = std::move(volumes);
  return {};
}

// Engines interpret the size of a volume differently. Therefore rose mounts the file system itself, in the run's
// folder, and all nodes that share the volume use it.
Result<std::filesystem::path> Cluster::memory_volume(const std::string& name, const std::string& options) {
  const std::filesystem::path folder = run_dir_ / "volumes" / name;
  for (const auto& volume : volumes_)
    if (volume->folder() == folder) return folder;
  ROSE_TRY(const OpenFolder run, OpenFolder::open(run_dir_));
  ROSE_TRY(const OpenFolder at, run.make(folder.lexically_relative(run_dir_), std::nullopt));
  // any node may use the volume, so all nodes of the run end if rose is killed
  ROSE_CHECK(identity_.note("ends", cgroup_.string()));
  ROSE_CHECK(identity_.note("volume", folder.string()));
  mounts_ = true;
  ROSE_TRY(Volume volume, Volume::make(at, identity_.id(), options.empty() ? "mode=1777" : "mode=1777," + options));
  volumes_.push_back(std::make_unique<Volume>(std::move(volume)));
  return folder;
}

// Writes the secrets and configs whose content is in the Compose file to files, and adds volumes that mount these
// files.
Result<void> Cluster::write_handed(std::size_t node, std::vector<std::string>& volumes) {
  const std::vector<config::HandedFile>& files = config_.nodes[node].container->files;
  if (files.empty()) return {};
  const std::filesystem::path folder = run_dir_ / kEnterFolders / (infos_[node].name + ".files");
  if (::mkdir(folder.c_str(), 0755) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot create {}", folder.string()), errno);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::filesystem::path file = folder / std::to_string(i);
    ROSE_CHECK(write_file(file, files[i].content, static_cast<mode_t>(files[i].mode)));
    volumes.push_back(fmt::format("{}:{}:ro", file.string(), files[i].place));
  }
  return {};
}

ContainerStart Cluster::container_start(std::size_t node) {
  const NodeState& state = *states_[node];
  ContainerState& container = *state.container;
  ContainerStart start;
  start.what = state.spec.what;
  start.makes = !std::exchange(container.made, true);
  start.engine = start.makes ? container.making : start_words(*engine_, container.spec.name);
  start.enter = container.spec.enter;
  start.argv = container.argv;
  for (const auto& [name, value] : state.spec.env)
    if (!name.starts_with("ROSE_") || means_something_inside(name)) start.env[name] = value;
  for (const auto& [name, value] : container.observers) start.env[name] = value;
  start.stdout_log = state.spec.stdout_log;
  start.stderr_log = state.spec.stderr_log;
  start.engine_log = (run_dir_ / fmt::format("engine-{}.log", infos_[node].name)).string();
  start.cgroup = infos_[node].cgroup;
  start.engine_cgroup = cgroup_ / kEngineCgroup;
  if (state.starts == 0) start.folders = container.folders;
  start.notified_syscalls = state.spec.notified_syscalls;
  start.notified_clocks = state.spec.notified_clocks;
  return start;
}

void Cluster::remove_containers() {
  if (!engine_) return;
  const auto remove = [this](const std::vector<std::string>& words, std::string_view what) {
    undo(ask_engine(words, what, kRemoveTimeout).map([](const std::string&) {}));
  };
  // Wait for the engine's processes, which record how their containers ended.
  (void)cgroup::wait_empty(cgroup_ / kEngineCgroup, kSettleTimeout);
  std::vector<std::string> names;
  bool joined = false;
  for (const NodeInfo& info : infos_) {
    NodeState& state = *states_[info.index];
    state.held.reset();
    state.engine.kill();
    if (state.container && state.container->made) names.push_back(state.container->spec.name);
    joined = joined || !owners(info.index).empty();
  }
  names.insert(names.end(), holders_.begin(), holders_.end());
  if (!names.empty()) remove(remove_words(*engine_, names, joined), "remove the run's containers");
  drop_volumes();
  for (const std::string& volume : run_volumes_)
    remove(remove_volume_words(*engine_, volume), fmt::format("remove volume {}", volume));
  if (!holder_image_.empty()) remove(remove_image_words(*engine_, holder_image_), "remove an image");
  remove_tree(run_dir_ / kEnterFolders);
}

// Engines take some time to start a container. All containers without dependencies are therefore prepared in parallel
// up to their entry points, so that the nodes then start almost at the same time, like nodes that are processes of this
// machine.
void Cluster::hold_containers() {
  std::vector<std::size_t> nodes;
  for (const NodeInfo& info : infos_)
    if (states_[info.index]->container && starts_at_once(info.index)) nodes.push_back(info.index);
  for (const std::vector<std::size_t>& round : owners_first(std::move(nodes))) hold_containers(round);
}

void Cluster::hold_containers(const std::vector<std::size_t>& nodes) {
  std::vector<std::pair<std::size_t, ContainerStart>> starts;
  on_monitor([&] {
    for (const std::size_t node : nodes) {
      NodeState& state = *states_[node];
      if (auto asked = ask_calls(node); !asked) {
        state.held.emplace(Unexpected(std::move(asked).error()));
        continue;
      }
      starts.emplace_back(node, container_start(node));
    }
  });
  for (std::size_t first = 0; first < starts.size() && !cancel::requested(); first += kMadeAtOnce) {
    std::vector<std::thread> starters;
    for (std::size_t i = first; i < std::min(starts.size(), first + kMadeAtOnce); ++i) {
      const auto hold = [this, &starts, i] {
        const auto lock = starts[i].second.makes ? alone(starts[i].first) : std::unique_lock<std::mutex>();
        states_[starts[i].first]->held.emplace(ContainerLaunch::prepare(starts[i].second));
      };
      if (auto thread = start_thread(hold)) starters.push_back(*std::move(thread));
      else hold();
    }
    for (std::thread& starter : starters) starter.join();
  }
}

// Waits until the service may start according to its dependencies, with Compose's semantics.
Result<void> Cluster::await_dependencies(std::size_t node) {
  if (!config_.nodes[node].container) return {};
  const std::vector<std::string> names = config_.node_names();
  for (const config::Dependency& one : config_.nodes[node].container->after) {
    const auto other = static_cast<std::size_t>(std::find(names.begin(), names.end(), one.node) - names.begin());
    if (one.when == config::Dependency::When::healthy && !has_ready(other))
      return fail(
          ErrorKind::input,
          fmt::format("node {} waits for {} to be healthy, but neither the Compose file nor the image '{}' has a "
                      "health check",
                      infos_[node].name, one.node, config_.nodes[other].container->image),
          "add 'healthcheck' to the service, or 'ready' to a [[node]] with its name");
    ROSE_CHECK(await_hooks(other));
    if (one.when == config::Dependency::When::healthy) ROSE_CHECK(await_ready({other}, true));
    if (one.when == config::Dependency::When::completed) ROSE_CHECK(await_completed(other));
  }
  return {};
}

Result<void> Cluster::await_completed(std::size_t node) {
  const std::int64_t until = monotonic_ns() + kCompletes;
  const NodeState& state = *states_[node];
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      if (state.failure) return Unexpected(*state.failure);
      if (state.starts > 0 && state.pid == 0 && !state.ending && state.restart_at_ns == 0 && !state.end_note.empty()) {
        if (state.end_status == 0) return {};
        break;
      }
    }
    if (monotonic_ns() >= until)
      return Unexpected(not_ready(node, fmt::format("did not complete within {}", format_duration(kCompletes))));
    if (!cancel::sleep(20 * kMillisecond)) return cancel::check();
  }
  std::unique_lock lock(mutex_);
  const std::string note = state.end_note;
  lock.unlock();
  return Unexpected(not_ready(node, note + ", and others wait for its completion"));
}

// Hooks of containers. Like the health check, a hook runs inside the container, but it does not belong to the node:
// faults do not affect it, and it is not traced. Processes that a hook leaves running end with the container.

void Cluster::begin_hooks(std::size_t node) {
  NodeState& state = *states_[node];
  if (!state.container || config_.nodes[node].container->post_start.empty()) return;
  {
    std::lock_guard lock(mutex_);
    state.in_hooks = true;
  }
  const auto work = [this, node, &state] {
    auto done = post_start(node);
    std::lock_guard lock(mutex_);
    if (!done) state.hook_failure = std::move(done).error();
    state.in_hooks = false;
    changed_.notify_all();
  };
  if (auto thread = start_thread(work)) state.hooks = *std::move(thread);
  else work();
}

// As in Compose, a service starts only once the hooks of the services that it depends on have ended.
Result<void> Cluster::await_hooks(std::size_t node) {
  std::unique_lock lock(mutex_);
  const NodeState& state = *states_[node];
  while (state.in_hooks && !cancel::requested()) changed_.wait_for(lock, std::chrono::milliseconds(100));
  if (state.hook_failure) return Unexpected(*state.hook_failure);
  lock.unlock();
  return cancel::check();
}

void Cluster::end_hooks() {
  for (const auto& state : states_)
    if (state->hooks.joinable()) state->hooks.join();
}

Result<void> Cluster::post_start(std::size_t node) {
  for (const config::Hook& hook : config_.nodes[node].container->post_start)
    ROSE_CHECK(run_hook(node, hook, "post_start", kHookTimeout, false));
  return {};
}

// Runs the pre_stop hooks, unless the container is down, ending or paused.
Result<void> Cluster::pre_stop(std::size_t node, std::int64_t timeout_ns, bool at_end) {
  const NodeState& state = *states_[node];
  if (!state.container) return {};
  {
    std::lock_guard lock(mutex_);
    if (state.pid == 0 || state.ending || state.paused || state.main_paused) return {};
  }
  for (const config::Hook& hook : config_.nodes[node].container->pre_stop)
    ROSE_CHECK(run_hook(node, hook, "pre_stop", timeout_ns, at_end));
  return {};
}

// `at_end`: the run is ending, so cancellation does not stop the hook.
Result<void> Cluster::run_hook(std::size_t node, const config::Hook& hook, const std::string& kind,
                               std::int64_t timeout_ns, bool at_end) {
  const NodeInfo& info = infos_[node];
  config::Command words = engine_->command;
  words.emplace_back("exec");
  if (!hook.user.empty()) words.insert(words.end(), {"--user", hook.user});
  if (hook.privileged) words.emplace_back("--privileged");
  if (!hook.working_dir.empty()) words.insert(words.end(), {"--workdir", hook.working_dir});
  for (const auto& [name, value] : hook.env) words.insert(words.end(), {"--env", fmt::format("{}={}", name, value)});
  words.push_back(states_[node]->container->spec.name);
  words.insert(words.end(), hook.command.begin(), hook.command.end());
  const int incarnation = starts(node);
  const std::string log = fmt::format("{}-{}", kind, info.name);
  ROSE_TRY(const std::unique_ptr<RunningCommand> running,
           spawn_as(words, log, {.timeout_ns = timeout_ns, .sees_machine = true, .leave_descendants = true}, nullptr));
  for (const std::int64_t until = monotonic_ns() + timeout_ns;
       !running->finished() && !cancel::requested() && monotonic_ns() < until;) {
    if (stopping_ && !at_end) {
      running->kill();
      return fail(ErrorKind::cancelled, "the run is ending");
    }
    pollfd waits{running->fd(), POLLIN, 0};
    (void)::poll(&waits, 1, 50);
  }
  const CommandResult result = running->wait();
  if (result.cancelled) return fail(ErrorKind::cancelled, fmt::format("interrupted during {} of {}", kind, info.name));
  if (result.ok()) return {};
  if (main_pid(node) == 0 || starts(node) != incarnation) {
    log::warning("node {} ended before its {} hook was done", info.name, kind);
    return {};
  }
  const std::string last = tail(run_dir_ / (log + ".log"), 5);
  return fail(ErrorKind::inconclusive,
              fmt::format("node {}: its {} hook '{}' {}", info.name, kind, fmt::join(hook.command, " "), result.note),
              last.empty() ? "" : fmt::format("last lines of {}.log:\n{}", log, last));
}

// The nodes in the order of the file, except that each node comes after the nodes that it depends on.
std::vector<std::size_t> Cluster::start_order() const {
  const std::vector<std::string> names = config_.node_names();
  std::vector<std::size_t> order;
  const auto stands = [&](const std::string& name) {
    return std::any_of(order.begin(), order.end(), [&](std::size_t i) { return names[i] == name; });
  };
  while (order.size() < names.size()) {
    const std::size_t before = order.size();
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (stands(names[i])) continue;
      const auto& container = config_.nodes[i].container;
      if (container && !std::all_of(container->after.begin(), container->after.end(),
                                    [&](const auto& one) { return stands(one.node); }))
        continue;
      order.push_back(i);
      break;
    }
    ROSE_ASSERT(order.size() > before);  // the configuration contains no cycles
  }
  return order;
}

// Settings of the health check in the Compose file override those of the image.
void Cluster::settle_health(std::size_t node, const Image& image) {
  const config::Container& service = *config_.nodes[node].container;
  if (!service.service || (service.health && service.health->disabled)) return;
  config::Health health = service.health.value_or(config::Health());
  const config::Health images = image.health.value_or(config::Health());
  if (health.test.empty()) health.test = images.test;
  if (health.test.empty()) return;
  const auto settle = [](auto& value, const auto& other, auto usual) {
    if (!value) value = other.value_or(usual);
  };
  settle(health.interval_ns, images.interval_ns, 30 * kSecond);
  settle(health.timeout_ns, images.timeout_ns, 30 * kSecond);
  settle(health.start_period_ns, images.start_period_ns, std::int64_t{0});
  settle(health.retries, images.retries, 3);
  states_[node]->container->health = std::move(health);
}

const config::Health* Cluster::health_of(std::size_t node) const {
  const NodeState& state = *states_[node];
  return !state.config->ready && state.container && state.container->health ? &*state.container->health : nullptr;
}

// After this time, an engine would call the container unhealthy, because as many checks as configured have failed in a
// row. Waiting for the node then ends. The run continues, unless another service waits for this one's health.
std::int64_t Cluster::ready_timeout(std::size_t node, bool strict) const {
  if (const auto& ready = states_[node]->config->ready) return ready->timeout_ns;
  const config::Health* health = health_of(node);
  if (health == nullptr) return kAttachTimeout;
  const std::int64_t failed = *health->start_period_ns + *health->retries * *health->interval_ns;
  return strict ? failed + *health->retries * *health->timeout_ns : std::max(failed, kUnhealthyAfter);
}

void Cluster::unhealthy(std::size_t node, const std::string& why) const {
  const std::string& name = infos_[node].name;
  if (log::is_first_report("unhealthy " + name))
    log::warning("node {} is not healthy ({}); no service waits for its health, so runs continue, as with Compose",
                 name, why);
}

config::Command Cluster::health_command(std::size_t node) const {
  config::Command words = engine_->command;
  words.insert(words.end(), {"exec", states_[node]->container->spec.name});
  for (const std::string& word : states_[node]->container->health->test) words.push_back(replaced(word, "${", "$${"));
  return words;
}

}  // namespace rose::deploy
