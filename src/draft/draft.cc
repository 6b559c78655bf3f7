#include "draft/draft.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/yaml.h"
#include "config/compose.h"
#include "config/config.h"
#include "deploy/machine/cgroup.h"
#include "deploy/machine/containers.h"
#include "deploy/machine/processes.h"
#include "draft/compose.h"
#include "draft/container.h"
#include "draft/inspect.h"
#include "draft/node.h"
#include "draft/services.h"
#include "draft/text.h"
#include "draft/unit.h"
#include "draft/words.h"
#include "kernel/cgroup2.h"
#include "kernel/processes.h"

namespace rose::draft {
namespace {

// A process or unit that becomes a node.
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
  if (target.main <= 0)
    return fail(ErrorKind::usage, fmt::format("{}: it is not running", option),
                "a draft is made from a running system: start it");
  if (!target.unit) {
    // Only its name is known.
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
  for (Target& target : targets) {
    auto one = inspect(target.main, target.members, std::move(target.unit), target.origin);
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

Result<Draft> draft_compose_file(const std::filesystem::path& path, const std::filesystem::path& folder) {
  if (!fits_toml(path.string())) return fail(ErrorKind::usage, "--compose: its name is not UTF-8, which TOML requires");
  auto text = read_file(path, kMostYamlBytes);
  if (!text) return Unexpected(std::move(text).error().in("--compose"));
  // Compose takes variables from the environment, then from .env beside the file.
  const auto dot_env = read_file(path.parent_path() / ".env", kMostYamlBytes);
  const Variables beside = dot_env ? read_dot_env(*dot_env) : Variables{};
  const Lookup lookup = [&](const std::string& name) -> std::optional<std::string> {
    if (const char* value = std::getenv(name.c_str())) return value;
    const auto found = std::find_if(beside.begin(), beside.end(), [&](const auto& each) { return each.first == name; });
    return found == beside.end() ? std::nullopt : std::optional(found->second);
  };
  ROSE_TRY(const ComposeFile file, parse_compose(*text, path.string(), lookup));
  // Services that rose cannot run itself are started by Compose, and rose attaches to them.
  const auto taken = config::read_compose_files({std::filesystem::absolute(path).lexically_normal()});
  Drafted drafted = taken ? draft_services(file, *taken, path_from(path, folder))
                          : draft_compose(file, path_from(path, folder), compose_tool());
  if (!taken)
    drafted.around.about.push_back(fmt::format(
        "LOOK: rose cannot run the services of the file itself: {}. Once that is changed, [deployment] compose is "
        "better: each run has its own containers, and syscall faults need no changes to the images.",
        taken.error().message));
  if (drafted.nodes.empty())
    return fail(ErrorKind::input, fmt::format("{}: none of its services is started by 'up'", path.string()),
                "services with 'profiles' are not");
  Host host = inspect_host();
  // Examples execute their tools inside the containers.
  for (const NodeDraft& node : drafted.nodes)
    if (node.system != nullptr) host.tools.push_back(node.system->example(node).tool);
  return write_draft({path.string()}, drafted.nodes, drafted.around, example_for(drafted.nodes), host);
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

Result<Draft> make_draft(const Sources& sources, const std::filesystem::path& folder) {
  const bool processes = !sources.pids.empty() || !sources.units.empty();
  const int kinds = (processes ? 1 : 0) + (sources.containers.empty() ? 0 : 1) + (sources.compose.empty() ? 0 : 1);
  if (kinds == 0)
    return fail(ErrorKind::usage, "no source for the draft is named",
                "name a running system: --pid PID..., --unit UNIT..., --container ID... or --compose FILE");
  if (kinds > 1)
    return fail(ErrorKind::usage,
                "processes, containers and a Compose file do not form one deployment: they are in different networks",
                "draft them separately, with -o for each, and combine what belongs together");
  auto draft = processes                 ? draft_processes(sources)
               : sources.compose.empty() ? draft_running_containers(sources)
                                         : draft_compose_file(sources.compose, folder);
  if (!draft) return draft;
  ROSE_CHECK(check_draft(*draft, folder));
  return draft;
}

}  // namespace rose::draft
