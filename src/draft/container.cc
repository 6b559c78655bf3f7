#include "draft/container.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include <unistd.h>

#include "base/ascii.h"
#include "base/json.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/toml.h"
#include "base/units.h"
#include "config/image_name.h"
#include "deploy/machine/cgroup.h"
#include "deploy/machine/containers.h"
#include "deploy/machine/processes.h"
#include "draft/systems.h"
#include "kernel/cgroup2.h"
#include "kernel/processes.h"

namespace rose::draft {
namespace {

constexpr std::int64_t kAskEngineTimeout = 20 * kSecond;
constexpr std::size_t kMostRunWords = 2000;

// Returns a member, which may be absent, null or of another type, depending on the engine. If it is absent, returns
// null.
const Json& member(const Json& json, std::string_view key) {
  static const Json none;
  if (!json.is_object()) return none;
  const auto found = json.find(key);
  return found == json.end() ? none : *found;
}

std::string text_in(const Json& json) { return json.is_string() ? json.get<std::string>() : ""; }

// Reads a list of strings, or a single string, which is how podman represents an entry point.
std::vector<std::string> texts_in(const Json& json) {
  std::vector<std::string> texts;
  if (json.is_string() && !json.get<std::string>().empty()) texts.push_back(json.get<std::string>());
  if (json.is_array())
    for (const Json& one : json)
      if (one.is_string()) texts.push_back(one.get<std::string>());
  return texts;
}

const Json& first_of(const Json& json) { return json.is_array() && !json.empty() ? json.front() : json; }

Variables read_environment(const Json& json) {
  Variables variables;
  for (const std::string& entry : texts_in(json))
    if (const std::size_t equals = entry.find('='); equals != std::string::npos && equals > 0)
      variables.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  return variables;
}

std::vector<Mount> read_mounts(const Json& json) {
  std::vector<Mount> mounts;
  if (!json.is_array()) return mounts;
  for (const Json& one : json) {
    Mount mount{text_in(member(one, "Type")), text_in(member(one, "Source")), text_in(member(one, "Destination")),
                true};
    if (member(one, "RW").is_boolean()) mount.writable = member(one, "RW").get<bool>();
    if (mount.type == "volume" && !text_in(member(one, "Name")).empty()) mount.source = text_in(member(one, "Name"));
    if (!mount.target.empty()) mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::optional<std::string> ask_engine(const std::vector<std::string>& argv) {
  const auto answer = run_command(argv, {}, kAskEngineTimeout);
  if (!answer || answer->exit_code != 0) {
    log::debug("{} {} reports nothing about it: {}", argv[0], argv[1],
               answer ? answer->err.substr(0, 200) : answer.error().message);
    return std::nullopt;
  }
  return answer->out;
}

bool tool_exists(const std::string& tool) {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "/usr/bin:/bin" : path, ':'))
    if (folder.starts_with('/') && ::access((folder + "/" + tool).c_str(), X_OK) == 0) return true;
  return false;
}

// New containers

struct Fresh {
  const Container& container;
  const AddressBook& book;
  std::size_t self;
  NodeDraft& node;
  Secrets& secrets;
};

// True if the text can be part of a volume, whose parts are separated by colons.
bool fits_volume(const std::string& text) { return fits_toml(text) && text.find(':') == std::string::npos; }

bool is_volume_name(const std::string& name) {
  const bool anonymous = name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
  return !anonymous && !name.empty() && std::all_of(name.begin(), name.end(), is_name_char);
}

void add_mounts(Fresh& fresh) {
  NodeDraft& node = fresh.node;
  for (const Mount& mount : fresh.container.mounts) {
    if (!fits_volume(mount.target) || !fits_volume(mount.source)) {
      node.doubts.push_back(fmt::format("its mount at {} cannot be written here", mount.target));
    } else if (mount.type == "tmpfs") {
      node.options.insert(node.options.end(), {"--tmpfs", mount.target});
    } else if (mount.type == "bind" && !mount.writable) {
      node.volumes.push_back(escaped(mount.source + ":" + mount.target) + ":ro");
    } else {
      const bool named = mount.type == "volume" && is_volume_name(mount.source);
      node.volumes.push_back(
          fmt::format("{}:{}{}", named ? mount.source : fmt::format("{}-{}", node.name, node.volumes.size() + 1),
                      escaped(mount.target), mount.writable ? "" : ":ro"));
      node.changes.push_back(
          fmt::format("{} {} at {}: replaced by a volume of the run, which at first has the image's files of that path",
                      mount.type == "bind" ? "the folder" : "the volume", mount.source, mount.target));
    }
  }
}

void add_environment(Fresh& fresh, Rewritten& rewritten) {
  for (const auto& [name, value] : fresh.container.env) {
    if (name == "HOSTNAME" || name == "HOME" || name == "container" || name == "TERM" || name == "PATH") continue;
    if (!fits_toml(value) || !is_environment_name(name) || value.size() > 16384) {
      fresh.node.env_left.push_back(fmt::format("{}: it cannot be written here", printable(name)));
      continue;
    }
    const std::string masked = fresh.secrets.masked(name, value);
    fresh.node.env.push_back({name, fresh.book.rewrite(fresh.self, name, escaped(masked), rewritten),
                              masked != value ? "looked like a secret: replaced by a generated one" : ""});
  }
}

// Returns `words` in the form of rose.toml, with secrets replaced, and with placeholders for nodes' addresses.
std::vector<std::string> words_of(Fresh& fresh, const std::vector<std::string>& words, Rewritten& rewritten) {
  // Word 0 represents the program, which the rules ignore.
  std::vector<std::string> args = {"x"};
  args.insert(args.end(), words.begin(), words.end());
  const Words before(args);
  for (std::size_t i = 1; i < args.size(); ++i) {
    const Split parts = split_word(args[i]);
    const std::string masked = fresh.secrets.masked(before.option_of(i), parts.value);
    if (masked == parts.value) continue;
    fresh.node.changes.push_back("a word that looked like a secret: replaced by a generated one");
    args[i] = std::string(parts.option) + masked;
  }
  Words rest(args);
  fresh.book.rewrite(fresh.self, rest, rewritten);
  std::vector<std::string> out;
  for (std::size_t i = 1; i < rest.size(); ++i) out.push_back(rest[i].text);
  return out;
}

void make_fresh(Fresh& fresh) {
  const Container& container = fresh.container;
  NodeDraft& node = fresh.node;
  node.image = container.image;
  if (container.name != node.name) node.aliases.push_back(container.name);
  for (const std::string& alias : container.aliases)
    if (alias != node.name && alias != container.name) node.aliases.push_back(alias);
  // is_volume_name() fits, because aliases may contain the same characters as names of volumes
  std::erase_if(node.aliases, [](const std::string& alias) { return !is_volume_name(alias); });
  if (!container.user.empty()) node.user = container.user;
  if (!container.folder.empty()) node.options.insert(node.options.end(), {"--workdir", container.folder});
  for (const std::string& capability : container.capabilities)
    node.options.insert(node.options.end(), {"--cap-add", capability});
  if (container.memory > 0) node.options.insert(node.options.end(), {"--memory", std::to_string(container.memory)});
  if (!container.restart.empty() && container.restart != "no") {
    node.restart = "{ delay = \"100ms\", max = 5 }";
    node.restart_note = fmt::format("the engine's --restart {}{}", container.restart,
                                    container.restart == "on-failure" ? "; here after every end" : "");
  }
  Rewritten rewritten;
  add_environment(fresh, rewritten);
  add_mounts(fresh);
  // An explicit entry point replaces the image's, and the image's command is then ignored.
  if (container.entrypoint) node.entrypoint = words_of(fresh, *container.entrypoint, rewritten);
  node.command = words_of(fresh, container.args, rewritten);
  node.changes.insert(node.changes.end(), rewritten.changes.begin(), rewritten.changes.end());
  node.doubts.insert(node.doubts.end(), rewritten.doubts.begin(), rewritten.doubts.end());
  if (container.privileged)
    node.doubts.push_back("it is privileged; the new container is not: options = [\"--privileged\"] if it must be");
  if (container.host_network)
    node.doubts.push_back("it shares the host's network; the new container has its own address");
  const auto fit = [](const std::vector<std::string>& words) {
    return words.size() <= kMostRunWords && std::all_of(words.begin(), words.end(), fits_toml);
  };
  if (fit(node.command) && fit(node.entrypoint) && fit(node.options)) return;
  node.doubts.push_back("its command cannot be written in TOML: the image's own command is used");
  node.command.clear();
  node.entrypoint.clear();
  node.options.clear();
}

void describe_container(NodeDraft& node, const Container& container, const Seen& seen, std::string_view title) {
  node.about.push_back(fmt::format("{}: {}, from container {} (image {})", node.name, title,
                                   container.name.empty() ? container.id.substr(0, 12) : container.name,
                                   container.image.empty() ? "unknown" : container.image));
  std::string ports;
  for (const Listen& listen : seen.tcp)
    ports += fmt::format("{}{}:{}", ports.empty() ? "" : ", ", listen.address, listen.port);
  if (!ports.empty()) node.about.push_back(fmt::format("Listens at {}.", ports));
  for (const std::string& unread : seen.unread) node.doubts.push_back("could not be read: " + unread);
}

}  // namespace

Result<Container> read_container(std::string_view json, std::string_view image_json, std::string tool) {
  const Json parsed = parse_json(json);
  const Json& root = first_of(parsed);
  const Json& config = member(root, "Config");
  if (!root.is_object() || !config.is_object() || text_in(member(root, "Id")).empty())
    return fail(ErrorKind::input, fmt::format("the output of '{} inspect' does not describe a container", tool));
  const Json image_parsed = parse_json(image_json);
  const Json& image = member(first_of(image_parsed), "Config");
  const Json& host = member(root, "HostConfig");

  Container container;
  container.tool = std::move(tool);
  container.id = text_in(member(root, "Id"));
  container.name = text_in(member(root, "Name"));
  if (container.name.starts_with('/')) container.name.erase(0, 1);
  container.image = text_in(member(root, "ImageName"));
  if (container.image.empty()) container.image = text_in(member(config, "Image"));
  if (!container.image.empty() && !config::is_image_name(container.image))
    return fail(ErrorKind::input, fmt::format("{} reports the image '{}', which is not the name of an image",
                                              container.tool, printable(container.image)));
  container.args = texts_in(member(config, "Cmd"));
  const auto entrypoint = texts_in(member(config, "Entrypoint"));
  if (!image.is_null()) {
    // Podman joins the words of an entry point, so join those of the image before comparing.
    const auto own = texts_in(member(image, "Entrypoint"));
    const std::string joined = fmt::format("{}", fmt::join(own, " "));
    if (entrypoint != own && !(entrypoint.size() == 1 && entrypoint.front() == joined) && !entrypoint.empty())
      container.entrypoint = entrypoint;
    if (!container.entrypoint && container.args == texts_in(member(image, "Cmd"))) container.args.clear();
  }
  const Variables defaults = read_environment(member(image, "Env"));
  for (auto& variable : read_environment(member(config, "Env")))
    if (std::find(defaults.begin(), defaults.end(), variable) == defaults.end())
      container.env.push_back(std::move(variable));
  container.user = text_in(member(config, "User"));
  if (container.user == text_in(member(image, "User"))) container.user.clear();
  container.folder = text_in(member(config, "WorkingDir"));
  const std::string image_folder = text_in(member(image, "WorkingDir"));
  if (container.folder == (image_folder.empty() ? "/" : image_folder)) container.folder.clear();
  container.mounts = read_mounts(member(root, "Mounts"));
  const Json& network = member(root, "NetworkSettings");
  const Json& networks = member(network, "Networks");
  if (networks.is_object())
    for (const Json& one : networks)
      if (const std::string address = text_in(member(one, "IPAddress")); !address.empty())
        container.addresses.push_back(address);
  if (const std::string address = text_in(member(network, "IPAddress"));
      !address.empty() &&
      std::find(container.addresses.begin(), container.addresses.end(), address) == container.addresses.end())
    container.addresses.push_back(address);
  if (networks.is_object())
    for (const Json& one : networks)
      for (std::string& alias : texts_in(member(one, "Aliases")))
        if (!container.id.starts_with(alias) &&
            std::find(container.aliases.begin(), container.aliases.end(), alias) == container.aliases.end())
          container.aliases.push_back(std::move(alias));
  container.capabilities = texts_in(member(host, "CapAdd"));
  if (member(host, "Memory").is_number_unsigned()) container.memory = member(host, "Memory").get<std::uint64_t>();
  container.privileged = member(host, "Privileged").is_boolean() && member(host, "Privileged").get<bool>();
  container.host_network = text_in(member(host, "NetworkMode")) == "host";
  container.restart = text_in(member(member(host, "RestartPolicy"), "Name"));
  container.health = member(config, "Healthcheck").is_object();
  if (member(member(root, "State"), "Pid").is_number_integer())
    container.pid = member(member(root, "State"), "Pid").get<pid_t>();
  return container;
}

Result<Container> ask_container(const std::string& what) {
  const std::string option = fmt::format("--container {}", what);
  for (const char* tool : {"docker", "podman", "nerdctl"}) {
    if (!tool_exists(tool)) continue;
    const auto json = ask_engine({tool, "inspect", "--type", "container", "--", what});
    if (!json) continue;
    const Json parsed = parse_json(*json);
    const std::string image = text_in(member(first_of(parsed), "Image"));
    const auto image_json = image.empty() ? std::nullopt : ask_engine({tool, "image", "inspect", "--", image});
    auto container = read_container(*json, image_json.value_or(""), tool);
    if (!container) return Unexpected(std::move(container).error().in(option));
    if (container->pid <= 0)
      return fail(ErrorKind::usage, fmt::format("{}: it is not running", option),
                  "a draft is made from a running system: start it");
    return container;
  }
  // No tool knows the container; only its cgroup is known.
  auto mount = kernel::cgroup2_mount();
  if (!mount) return Unexpected(std::move(mount).error().in(option));
  auto located = deploy::locate_container(what, *mount);
  if (!located) {
    Error error = std::move(located).error();
    error.kind = ErrorKind::usage;
    return Unexpected(std::move(error).in(option));
  }
  Container container;
  container.id = what;
  container.name = what;
  container.pid =
      located->cgroup.empty() ? located->pid : deploy::leading_process(deploy::cgroup::processes(located->cgroup));
  if (container.pid <= 0)
    return fail(ErrorKind::usage, fmt::format("{}: it has no process", option),
                "a draft is made from a running system: start it");
  return container;
}

Drafted draft_containers(const std::vector<Container>& containers, const std::vector<Seen>& seen, const Host&,
                         Secrets& secrets) {
  Drafted drafted;
  std::vector<const System*> systems;
  std::vector<Seen> facts = seen;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const System* system = find_system(seen[i]);
    systems.push_back(system != nullptr ? system : find_system_of_image(containers[i].image));
    if (!containers[i].host_network && !containers[i].addresses.empty())
      facts[i].addresses.insert(facts[i].addresses.end(), containers[i].addresses.begin(),
                                containers[i].addresses.end());
    facts[i].unit = Unit{};
    facts[i].unit->name = containers[i].name + ".container";  // node_names() uses a unit's name as the node's name
  }
  const std::vector<std::string> names = node_names(facts, systems);
  std::vector<std::string> variables;
  for (const std::string& name : names) variables.push_back(variable_name(name));
  Host nobody;  // "localhost" in a container means that container
  nobody.names = {"localhost"};
  AddressBook book(facts, names, variables, nobody);
  std::set<std::string> tools;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const Container& container = containers[i];
    NodeDraft node;
    node.name = names[i];
    node.variable = variables[i];
    node.system = systems[i];
    describe_container(node, container, seen[i], node.system != nullptr ? node.system->title() : "a container");
    const auto outside = std::find_if(seen[i].tcp.begin(), seen[i].tcp.end(), [](const Listen& listen) {
      return !listen.address.starts_with("127.") && listen.address != "::1";
    });
    if (outside != seen[i].tcp.end()) {
      node.port = outside->port;
      const bool usual = node.system != nullptr &&
                         std::any_of(seen[i].tcp.begin(), seen[i].tcp.end(),
                                     [&](const Listen& listen) { return listen.port == node.system->usual_port(); });
      if (usual) node.port = node.system->usual_port();
    }
    if (container.tool != "podman" && container.tool != "docker") {
      node.attach = fmt::format("{{ container = {} }}", toml::literal(container.id));
      node.doubts.push_back(
          "neither podman nor docker can tell how it is started, so 'attach' names the running container itself, which "
          "faults would hit. Let [deployment] setup start another container for the test, and name that one instead");
      drafted.nodes.push_back(std::move(node));
      continue;
    }
    tools.insert(container.tool);
    Fresh fresh{container, book, i, node, secrets};
    make_fresh(fresh);
    if (node.port == 0 && !seen[i].tcp.empty()) {
      // The program listens on the loopback address only. Others can reach it only if the command sets the address,
      // which is now ${ip}.
      const Listen& first = seen[i].tcp.front();
      if (std::any_of(node.command.begin(), node.command.end(),
                      [](const std::string& word) { return word.find("${ip}") != std::string::npos; }))
        node.port = first.port;
      else
        node.doubts.push_back(fmt::format(
            "it listens at {}:{} only, so other nodes cannot reach it; its command does not set this address",
            first.address, first.port));
    }
    if (node.port != 0) node.ready = fmt::format("{{ tcp = {}, timeout = \"60s\" }}", node.port);
    take_password(node, [&](const std::string& variable) {
      return std::any_of(node.env.begin(), node.env.end(), [&](const Variable& one) { return one.name == variable; });
    });
    drafted.nodes.push_back(std::move(node));
  }
  if (tools.empty()) {
    drafted.around.network = "host";
    drafted.around.next = {
        "'rose diagnose' and 'rose replay' require --allow-attached. Syscall faults require that 'rose exec' starts "
        "the containers' commands (attach = { ..., exec = true })."};
    return drafted;
  }
  drafted.around.engine = *tools.begin();
  drafted.around.about.push_back(
      "Each run creates new containers of the same images, in its own network; the running ones are not touched.");
  if (tools.size() > 1)
    drafted.around.doubts.push_back(
        "these containers belong to more than one engine, but one engine creates all nodes and therefore needs all "
        "images");
  return drafted;
}

}  // namespace rose::draft
