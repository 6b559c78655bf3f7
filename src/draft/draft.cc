#include "draft/draft.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "config/compose.h"
#include "config/compose_project.h"
#include "config/config.h"
#include "deploy/machine/cgroup.h"
#include "deploy/machine/containers.h"
#include "deploy/machine/processes.h"
#include "draft/container.h"
#include "draft/inspect.h"
#include "draft/manifest.h"
#include "draft/manifest_values.h"
#include "draft/node.h"
#include "draft/services.h"
#include "draft/text.h"
#include "draft/unit.h"
#include "draft/words.h"
#include "kernel/cgroup2.h"
#include "kernel/processes.h"

namespace rose::draft {
namespace {

// A process or unit of which the draft makes a node.
struct Target {
  std::string origin;
  pid_t main = 0;
  std::vector<pid_t> members;
  std::optional<Unit> unit;
};

Result<Target> target_of_pid(int pid) {
  const std::string option = fmt::format("--pid {}", pid);
  const auto stat = kernel::process_stat(pid);
  if (pid <= 0 || !stat)
    return fail(ErrorKind::usage, fmt::format("{}: there is no such process", option),
                "name a running process: 'pgrep -a redis' lists them");
  Target target;
  target.main = first_of_its_kind(pid);
  target.origin = fmt::format("pid {}", target.main);
  if (target.main != pid) log::info("{} is a worker of {}, which is drafted instead", pid, target.main);
  const std::string unit = unit_of(target.main);
  if (!unit.empty()) target.unit = ask_unit(unit);
  return target;
}

Result<Target> target_of_unit(const std::string& name) {
  const std::string option = fmt::format("--unit {}", name);
  auto mount = kernel::cgroup2_mount();
  if (!mount) return Unexpected(std::move(mount).error().in(option));
  auto located = deploy::locate_unit(name, *mount);
  if (!located) {
    Error error = std::move(located).error();
    error.kind = ErrorKind::usage;
    return Unexpected(std::move(error).in(option));
  }
  Target target;
  target.unit = ask_unit(name);
  if (!located->cgroup.empty()) target.members = deploy::cgroup::processes(located->cgroup);
  target.main = located->pid > 0 ? located->pid : deploy::leading_process(target.members);
  if (target.main <= 0) {
    const std::string full = target.unit ? target.unit->name : name;
    if (target.unit && target.unit->done)
      return fail(ErrorKind::usage, fmt::format("{}: its command has ended, as intended (Type=oneshot)", option),
                  "what it prepares belongs to 'setup' or 'form' in [deployment]; draft the services that still run");
    if (const std::size_t dot = full.rfind('.');
        dot != std::string::npos && full.substr(dot) != ".service" && full.substr(dot) != ".scope")
      return fail(ErrorKind::usage, fmt::format("{}: a unit of this kind has no processes of its own", option),
                  fmt::format("name the service that it starts: 'systemctl list-dependencies {}', 'systemctl show "
                              "--property=Triggers {}'",
                              full, full));
    return fail(ErrorKind::usage, fmt::format("{}: it is not running", option),
                "a draft is made from a running system: start it");
  }
  if (!target.unit) {
    // Only the name of the unit is known.
    target.unit = Unit{};
    target.unit->name = name.find('.') == std::string::npos ? name + ".service" : name;
  }
  target.origin = fmt::format("unit {}", target.unit->name);
  return target;
}

// Assigns each process to one node: that of its nearest ancestor that is a target.
void share_out(std::vector<Target>& targets) {
  std::set<pid_t> mains;
  for (const Target& target : targets) mains.insert(target.main);
  for (Target& target : targets) {
    if (target.members.empty()) target.members = kernel::with_descendants({target.main});
    std::set<pid_t> others;
    for (const pid_t main : mains)
      if (main != target.main && std::find(target.members.begin(), target.members.end(), main) != target.members.end())
        for (const pid_t pid : kernel::with_descendants({main})) others.insert(pid);
    std::erase_if(target.members, [&](pid_t pid) { return others.contains(pid); });
  }
}

Result<Draft> draft_processes(const Sources& sources) {
  std::vector<Target> targets;
  for (const int pid : sources.pids) {
    ROSE_TRY(Target target, target_of_pid(pid));
    targets.push_back(std::move(target));
  }
  for (const std::string& unit : sources.units) {
    ROSE_TRY(Target target, target_of_unit(unit));
    targets.push_back(std::move(target));
  }
  for (std::size_t i = 0; i < targets.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (targets[i].main == targets[j].main)
        return fail(ErrorKind::usage, fmt::format("process {} is named twice: {} and {} are one node", targets[i].main,
                                                  targets[j].origin, targets[i].origin));
  share_out(targets);
  std::vector<Seen> seen;
  std::vector<std::string> origins;
  for (const Target& target : targets) {
    auto one = inspect(target.main, target.members, target.unit, target.origin);
    if (!one) return Unexpected(std::move(one).error());
    origins.push_back(target.origin);
    seen.push_back(std::move(*one));
  }
  const Host host = inspect_host();
  Secrets secrets;
  const std::vector<NodeDraft> nodes = draft_nodes(seen, host, secrets);
  Surroundings around;
  around.setup = folder_setup(nodes);
  std::string watch = "In production: rose trace";
  for (std::size_t i = 0; i < nodes.size(); ++i)
    watch += fmt::format(" --node {}={}", nodes[i].name,
                         i < sources.pids.size() ? fmt::format("pid:{}", targets[i].main)
                                                 : fmt::format("unit:{}", targets[i].unit->name));
  around.next = {watch + " -o dump.bin"};
  return write_draft(origins, nodes, around, example_for(nodes), host);
}

Result<Draft> draft_running_containers(const Sources& sources) {
  std::vector<Container> containers;
  std::vector<Seen> seen;
  std::vector<std::string> origins;
  for (const std::string& what : sources.containers) {
    ROSE_TRY(Container container, ask_container(what));
    for (const Container& other : containers)
      if (other.pid == container.pid)
        return fail(ErrorKind::usage, fmt::format("--container {}: it is named twice", what));
    const std::string origin = fmt::format("container {}", container.name);
    auto one = inspect_inside(container.pid, kernel::with_descendants({container.pid}), origin);
    if (!one) return Unexpected(std::move(one).error());
    origins.push_back(origin);
    seen.push_back(std::move(*one));
    containers.push_back(std::move(container));
  }
  const Host host = inspect_host();
  Secrets secrets;
  const Drafted drafted = draft_containers(containers, seen, host, secrets);
  return write_draft(origins, drafted.nodes, drafted.around, example_for(drafted.nodes), host);
}

// The path as written in rose.toml: relative if the file is in its folder or below.
std::string path_from(const std::filesystem::path& file, const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(file, error).lexically_normal();
  const std::filesystem::path from = std::filesystem::absolute(folder.empty() ? "." : folder, error).lexically_normal();
  const std::string relative = whole.lexically_relative(from).string();
  return relative.empty() || relative.starts_with("..") ? whole.string() : relative;
}

Result<Draft> draft_compose_files(const Sources& sources, const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> shown;
  for (const std::filesystem::path& path : sources.compose) {
    if (!fits_toml(path.string()))
      return fail(ErrorKind::usage, "--compose: its name is not UTF-8, which TOML requires");
    std::error_code error;
    if (!std::filesystem::exists(path, error))
      return fail(ErrorKind::usage, fmt::format("--compose: {} does not exist", path.string()));
    files.push_back(std::filesystem::absolute(path).lexically_normal());
    shown.push_back(path_from(path, folder));
  }
  ROSE_TRY(const config::ComposeNodes taken, config::read_compose_files(files, {sources.profiles, {}}));
  const Host host = inspect_host();
  const Drafted drafted = draft_services(taken, shown, host);
  return write_draft(shown, drafted.nodes, drafted.around, example_for(drafted.nodes), host);
}

Result<Draft> draft_manifest_files(const Sources& sources, const std::string& folder) {
  std::vector<ManifestText> texts;
  std::vector<std::string> shown;
  for (const std::filesystem::path& path : sources.manifests) {
    ROSE_TRY(std::string text, compose::small_file(path, kMostManifestBytes));
    texts.push_back({path.string(), std::move(text)});
    shown.push_back(path.string());
  }
  const Host host = inspect_host();
  ROSE_TRY(DraftedManifests made, draft_manifests(texts, folder, host));
  Draft draft = write_draft(shown, made.drafted.nodes, made.drafted.around, example_for(made.drafted.nodes), host);
  draft.files = std::move(made.files);
  return draft;
}

}  // namespace

Result<void> check_draft(const Draft& draft, const std::filesystem::path& folder) {
  std::string answered = draft.text;
  for (std::size_t at = answered.find("= \"?\"\n"); at != std::string::npos; at = answered.find("= \"?\"\n", at))
    answered.replace(at, 6, "= [\"true\"]\n");
  const auto config = config::parse_config(answered, "the draft", folder.empty() ? "." : folder);
  if (!config)
    return fail(ErrorKind::bug, fmt::format("the draft is not a valid configuration: {}", config.error().message),
                "please report this");
  return {};
}

Result<Draft> make_draft(const Sources& sources, const std::filesystem::path& folder, const std::string& files) {
  const bool processes = !sources.pids.empty() || !sources.units.empty();
  const int kinds = (processes ? 1 : 0) + (sources.containers.empty() ? 0 : 1) + (sources.compose.empty() ? 0 : 1) +
                    (sources.manifests.empty() ? 0 : 1);
  if (kinds == 0)
    return fail(ErrorKind::usage, "no source for the draft is named",
                "name a running system: --pid PID..., --unit UNIT..., --container ID..., --compose FILE... or "
                "--manifest FILE...");
  if (kinds > 1)
    return fail(ErrorKind::usage,
                "processes, containers, Compose files and manifests do not form one deployment: they are in different "
                "networks",
                "draft them separately, with -o for each, and combine what belongs together");
  if (!sources.profiles.empty() && sources.compose.empty())
    return fail(ErrorKind::usage, "--compose-profile chooses services of a Compose file",
                "name it with --compose FILE");
  auto draft = processes                    ? draft_processes(sources)
               : !sources.compose.empty()   ? draft_compose_files(sources, folder)
               : !sources.manifests.empty() ? draft_manifest_files(sources, files)
                                            : draft_running_containers(sources);
  if (!draft) return draft;
  ROSE_CHECK(check_draft(*draft, folder));
  return draft;
}

}  // namespace rose::draft
