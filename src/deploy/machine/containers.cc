#include "deploy/machine/containers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>
#include <vector>

#include "base/ascii.h"
#include "base/json.h"
#include "base/log.h"
#include "base/program.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "deploy/machine/processes.h"

namespace rose::deploy {
namespace {

constexpr std::int64_t kAskTimeout = 10'000'000'000;
constexpr int kMostDepth = 16;
constexpr std::size_t kMostNamed = 8;

bool is_hex(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

bool take_end(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

// Every folder below `top`, parents first, sorted by name on each level.
void walk(const std::filesystem::path& folder, int depth, std::vector<std::filesystem::path>& found) {
  if (depth > kMostDepth) return;
  std::error_code error;
  std::vector<std::filesystem::path> here;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.is_directory(error)) here.push_back(entry.path());
  std::sort(here.begin(), here.end());
  for (const auto& each : here) {
    found.push_back(each);
    walk(each, depth + 1, found);
  }
}

std::vector<std::filesystem::path> all_cgroups(const std::filesystem::path& top) {
  std::vector<std::filesystem::path> found;
  walk(top, 0, found);
  return found;
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMostNamed; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMostNamed) text += fmt::format(" and {} more", names.size() - kMostNamed);
  return text;
}

// The folders of containers (or pods) by id. If several folders have the same id, the outermost one is returned.
std::map<std::string, std::filesystem::path> owned(const std::filesystem::path& top, bool pods) {
  std::map<std::string, std::filesystem::path> found;
  for (const auto& folder : all_cgroups(top)) {
    const auto owner = owner_of_cgroup("/" + folder.lexically_relative(top).string());
    if (owner && owner->pod == pods) found.emplace(owner->id, folder);
  }
  return found;
}

CgroupOwner owner_of_folder(const std::filesystem::path& folder, const std::filesystem::path& top) {
  return owner_of_cgroup("/" + folder.lexically_relative(top).string()).value_or(CgroupOwner{});
}

// Returns nothing if no id has this prefix.
Result<std::optional<std::filesystem::path>> by_id(const std::map<std::string, std::filesystem::path>& all,
                                                   const std::string& id, std::string_view kind) {
  if (const auto whole = all.find(id); whole != all.end()) return whole->second;
  std::vector<std::string> fit;
  for (auto it = all.lower_bound(id); it != all.end() && it->first.starts_with(id); ++it) fit.push_back(it->first);
  if (fit.empty()) return std::nullopt;
  if (fit.size() == 1) return all.at(fit.front());
  return fail(ErrorKind::inconclusive, fmt::format("'{}' is the beginning of {} {} ids", id, fit.size(), kind),
              fmt::format("give more characters of one of these ids: {}", list(fit)));
}

std::optional<std::string> output_of(const std::vector<std::string>& argv) {
  const auto output = run_command(argv, {}, kAskTimeout);
  if (!output) {
    log::debug("{}", output.error().message);
    return std::nullopt;
  }
  if (output->exit_code != 0) {
    log::debug("'{} {}' exited with status {}: {}", argv[0], argv[1], output->exit_code, output->err.substr(0, 200));
    return std::nullopt;
  }
  return output->out;
}

std::optional<std::string> answer_of(const std::vector<std::string>& argv) {
  const auto output = output_of(argv);
  const std::string answer = output ? output->substr(0, output->find('\n')) : "";
  return answer.empty() ? std::nullopt : std::optional(answer);
}

// A container that a tool knows by name. ask_tools() asks only installed tools, and appends their names to `asked`.
struct Named {
  std::string id;
  pid_t pid = 0;
};
std::optional<Named> ask_tools(const std::string& name, std::string& asked) {
  for (const char* tool : {"docker", "podman", "nerdctl"}) {
    if (program_in_path(tool).empty()) continue;
    asked += fmt::format("{}{}", asked.empty() ? "" : ", ", tool);
    const auto answer =
        answer_of({tool, "inspect", "--type", "container", "--format", "{{.Id}} {{.State.Pid}}", "--", name});
    if (!answer) continue;
    const auto words = split(*answer, ' ');
    if (words.size() != 2 || !is_hex(words[0])) continue;
    Named named{words[0], 0};
    std::from_chars(words[1].data(), words[1].data() + words[1].size(), named.pid);
    return named;
  }
  if (!program_in_path("crictl").empty()) {
    asked += fmt::format("{}crictl", asked.empty() ? "" : ", ");
    // crictl takes a name as a regular expression. Therefore the name is anchored, and a name with special characters
    // is not looked up.
    if (name.find_first_of("^$.*+?()[]{}|\\") == std::string::npos)
      if (const auto answer = answer_of({"crictl", "ps", "--quiet", "--no-trunc", "--name", "^" + name + "$"});
          answer && is_hex(*answer))
        return Named{*answer, 0};
  }
  return std::nullopt;
}

std::string string_at(const Json& json, std::initializer_list<const char*> keys) {
  const Json* at = &json;
  for (const char* key : keys) {
    if (!at->is_object() || !at->contains(key)) return {};
    at = &(*at)[key];
  }
  return at->is_string() ? at->get<std::string>() : std::string{};
}

void add_label(std::vector<std::string>& labels, std::string_view key, const std::string& value) {
  if (!value.empty() && value.size() <= kLongestLabel) labels.push_back(fmt::format("{}:{}", key, printable(value)));
}

// Adds the labels of Compose and the kubelet, if they are in `all`.
void add_known_labels(std::vector<std::string>& labels, const Json& all) {
  static constexpr std::array<std::pair<const char*, std::string_view>, 4> kKnown = {{
      {"com.docker.compose.project", "project"},
      {"com.docker.compose.service", "service"},
      {"io.kubernetes.pod.name", "pod"},
      {"io.kubernetes.pod.namespace", "namespace"},
  }};
  for (const auto& [name, key] : kKnown) add_label(labels, key, string_at(all, {name}));
}

bool ask_names(const std::string& id, std::vector<std::string>& labels) {
  for (const char* tool : {"docker", "podman", "nerdctl"}) {
    if (program_in_path(tool).empty()) continue;
    const auto answer = output_of({tool, "inspect", "--type", "container", "--", id});
    const Json json = parse_json(answer.value_or(""));
    if (!json.is_array() || json.empty() || !json.front().is_object()) continue;
    const std::string name = string_at(json.front(), {"Name"});
    add_label(labels, "name", name.starts_with('/') ? name.substr(1) : name);
    if (json.front().contains("Config") && json.front()["Config"].contains("Labels"))
      add_known_labels(labels, json.front()["Config"]["Labels"]);
    return true;
  }
  if (program_in_path("crictl").empty()) return false;
  const auto answer = output_of({"crictl", "inspect", "--output", "json", id});
  const Json json = parse_json(answer.value_or(""));
  if (!json.is_object() || !json.contains("status")) return false;
  add_label(labels, "name", string_at(json, {"status", "metadata", "name"}));
  if (json["status"].contains("labels")) add_known_labels(labels, json["status"]["labels"]);
  return true;
}

bool ask_pod_names(const std::string& uid, std::vector<std::string>& labels) {
  if (program_in_path("crictl").empty()) return false;
  const auto answer = output_of({"crictl", "pods", "--output", "json", "--label", "io.kubernetes.pod.uid=" + uid});
  const Json json = parse_json(answer.value_or(""));
  if (!json.is_object() || !json.contains("items") || !json["items"].is_array() || json["items"].empty()) return false;
  add_label(labels, "pod", string_at(json["items"].front(), {"metadata", "name"}));
  add_label(labels, "namespace", string_at(json["items"].front(), {"metadata", "namespace"}));
  return true;
}

std::map<std::string, std::string> properties(const std::string& text) {
  std::map<std::string, std::string> found;
  for (const std::string& line : split(text, '\n'))
    if (const auto equals = line.find('='); equals != std::string::npos)
      found[line.substr(0, equals)] = line.substr(equals + 1);
  return found;
}

}  // namespace

std::optional<CgroupOwner> owner_of_cgroup(std::string_view path) {
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view above = path.substr(0, slash);
  std::string_view name = path.substr(slash + 1);
  if (take_end(name, ".slice")) {
    // kubepods-burstable-pod6f1d_....slice; podman: machine-libpod_pod_ID.slice
    if (const auto at = name.find("libpod_pod_"); at != std::string_view::npos && is_hex(name.substr(at + 11)))
      return CgroupOwner{std::string(name.substr(at + 11)), true};
    const auto at = name.rfind("-pod");
    if (!name.starts_with("kubepods") && name.find("-kubepods") == std::string_view::npos) return std::nullopt;
    if (at == std::string_view::npos || at + 4 == name.size()) return std::nullopt;
    std::string uid(name.substr(at + 4));
    std::replace(uid.begin(), uid.end(), '_', '-');
    return CgroupOwner{std::move(uid), true};
  }
  if (take_end(name, ".scope")) {
    // Names such as docker-ID, libpod-ID, cri-containerd-ID, crio-ID and nerdctl-ID. conmon is a helper of podman and
    // CRI-O and not a container.
    const auto dash = name.rfind('-');
    if (dash == std::string_view::npos || name.substr(0, dash).ends_with("conmon")) return std::nullopt;
    const auto id = name.substr(dash + 1);
    if (id.size() == 64 && is_hex(id)) return CgroupOwner{std::string(id), false};
    return std::nullopt;
  }
  // Paths of the cgroupfs driver: /docker/ID, /kubepods/burstable/podUID/ID, /libpod_parent/libpod-ID, /k8s.io/ID,
  // /default/ID.
  if (above.find("/kubepods") != std::string_view::npos && name.starts_with("pod") && name.size() > 3)
    return CgroupOwner{std::string(name.substr(3)), true};
  for (const std::string_view prefix : {"libpod-", "crio-"})
    if (name.starts_with(prefix) && name.size() == prefix.size() + 64) name.remove_prefix(prefix.size());
  if (name.size() == 64 && is_hex(name)) return CgroupOwner{std::string(name), false};
  // With containerd, clients choose the ids, so an id may have any form.
  if (above == "/k8s.io" || above == "/default") return CgroupOwner{std::string(name), false};
  return std::nullopt;
}

std::filesystem::path folder_of_container(const std::filesystem::path& folder, const std::filesystem::path& top) {
  for (std::filesystem::path at = folder; is_within(at, top) && at != top; at = at.parent_path())
    if (const auto owner = owner_of_cgroup("/" + at.lexically_relative(top).string()); owner && !owner->pod) return at;
  return {};
}

std::vector<std::string> labels_of(const CgroupOwner& owner) {
  if (owner.id.empty()) return {};
  std::vector<std::string> labels{fmt::format("{}:{}", owner.pod ? "pod-uid" : "container", printable(owner.id))};
  if (!(owner.pod ? ask_pod_names(owner.id, labels) : ask_names(owner.id, labels)))
    log::debug("no tool on this machine knows the name of {} {}", owner.pod ? "pod" : "container", owner.id);
  return labels;
}

Result<Located> locate_container(const std::string& what, const std::filesystem::path& top) {
  if (what.starts_with("pod:")) {
    const std::string uid = what.substr(4);
    const auto pods = owned(top, true);
    ROSE_TRY(const auto folder, by_id(pods, uid, "pod"));
    if (folder && !uid.empty()) return Located{*folder, 0, owner_of_folder(*folder, top)};
    std::vector<std::string> ids;
    for (const auto& [id, unused] : pods) ids.push_back(id);
    return fail(ErrorKind::inconclusive, fmt::format("there is no pod with the uid '{}' on this host", uid),
                ids.empty() ? fmt::format("no cgroup below {} belongs to a pod", top.string())
                            : fmt::format("the pods on this host: {}", list(ids)));
  }
  const auto containers = owned(top, false);
  if (!what.empty()) {
    ROSE_TRY(const auto folder, by_id(containers, what, "container"));
    if (folder) return Located{*folder, 0, owner_of_folder(*folder, top)};
  }
  std::string asked;
  if (const auto named = ask_tools(what, asked)) {
    if (const auto it = containers.find(named->id); it != containers.end())
      return Located{it->second, named->pid, {named->id, false}};
    if (named->pid > 0) return Located{{}, named->pid, {named->id, false}};
    return fail(ErrorKind::inconclusive, fmt::format("container {} is not running", what));
  }
  std::vector<std::string> ids;
  for (const auto& [id, unused] : containers) ids.push_back(id.substr(0, 12));
  const std::string here = ids.empty() ? fmt::format("no cgroup below {} belongs to a container", top.string())
                                       : fmt::format("the containers on this host: {}", list(ids));
  if (asked.empty())
    return fail(ErrorKind::inconclusive,
                fmt::format("no container id begins with '{}', and names cannot be looked up: neither docker, podman, "
                            "nerdctl nor crictl is installed",
                            what),
                fmt::format("give the container's id; {}", here));
  return fail(ErrorKind::inconclusive,
              fmt::format("there is no container '{}': no id has this prefix, and {} {} not know the name", what, asked,
                          asked.find(',') == std::string::npos ? "does" : "do"),
              here);
}

std::filesystem::path slice_path(std::string_view slice) {
  if (slice.empty() || slice == "-.slice") return {};
  std::filesystem::path path;
  std::string_view name = slice;
  if (!take_end(name, ".slice")) return std::filesystem::path(slice);
  for (auto dash = name.find('-'); dash != std::string_view::npos; dash = name.find('-', dash + 1))
    path /= std::string(name.substr(0, dash)) + ".slice";
  return path / std::string(slice);
}

Result<Located> locate_unit(const std::string& unit, const std::filesystem::path& top) {
  const auto output = run_command(
      {"systemctl", "show", "--property=Id,LoadState,ControlGroup,Slice,MainPID", "--", unit}, {}, kAskTimeout);
  if (output && output->exit_code == 0) {
    auto answer = properties(output->out);
    pid_t main = 0;
    const std::string pid = answer["MainPID"];
    std::from_chars(pid.data(), pid.data() + pid.size(), main);
    const std::string group = answer["ControlGroup"];
    if (!group.empty() && group != "/") {
      const std::filesystem::path folder = top / std::filesystem::path(group).relative_path();
      std::error_code error;
      // In the hybrid layout, systemd may keep its folders in v1 only. Then only the main process is known.
      if (!std::filesystem::is_directory(folder, error) && main > 0) return Located{{}, main, {}};
      return Located{folder, main, {}};
    }
    const std::string id = answer["Id"].empty() ? unit : answer["Id"];
    const std::string state = answer["LoadState"];
    if (state != "loaded")
      return fail(ErrorKind::input,
                  fmt::format("there is no unit {} ({})", id, state.empty() ? "systemd does not know it" : state),
                  "'systemctl list-unit-files' lists installed units");
    return Located{top / slice_path(answer["Slice"].empty() ? "system.slice" : answer["Slice"]) / id, 0, {}};
  }
  const std::string name = unit.find('.') == std::string::npos ? unit + ".service" : unit;
  std::vector<std::string> fit;
  for (const auto& folder : all_cgroups(top))
    if (folder.filename() == name) fit.push_back(folder.string());
  if (fit.size() == 1) return Located{fit.front(), 0, {}};
  if (!fit.empty())
    return fail(ErrorKind::inconclusive, fmt::format("there are {} cgroups of a unit {}", fit.size(), name),
                fmt::format("name one with --cgroup: {}", list(fit)));
  const std::string why = output ? output->err.substr(0, output->err.find('\n')) : output.error().message;
  return fail(ErrorKind::inconclusive,
              fmt::format("cannot find unit {}: systemctl does not work ({}), and no cgroup below {} has its name",
                          name, why, top.string()),
              "name its folder with --cgroup");
}

}  // namespace rose::deploy
