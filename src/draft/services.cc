#include "draft/services.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "base/toml.h"
#include "draft/asks.h"
#include "draft/secrets.h"
#include "draft/systems.h"
#include "draft/words.h"

namespace rose::draft {
namespace {

NodeDraft node_of(const config::Node& taken, const std::set<std::string>& completing, const Host& host) {
  const config::Container& container = *taken.container;
  NodeDraft node;
  node.name = taken.name;
  node.variable = variable_name(taken.name);
  node.service = true;
  // The image of a service that is built has a generated name, which does not identify the system.
  if (container.build.empty()) node.system = find_system_of_image(container.image);
  const std::string title = node.system != nullptr ? std::string(node.system->title()) : "a service";
  node.about.push_back(fmt::format("{}: {}, from line {}: {}", taken.name, title, taken.line,
                                   container.build.empty() ? "image " + container.image : "built as the file defines"));
  if (taken.restart)
    node.about.push_back(taken.restart->only_failures ? "Restarted when it fails, as the file defines."
                                                      : "Restarted whenever it ends, as the file defines.");
  node.port = !container.ports.empty() ? container.ports.front()
              : node.system != nullptr ? node.system->usual_port()
                                       : 0;
  if (completing.contains(taken.name)) node.ready_note = "it ends by itself, and others wait for its end: no 'ready'";
  else if (container.health && !container.health->disabled)
    node.ready_note = "it is ready when its health check passes";
  else if (container.build.empty())
    node.ready = ready_of_image(container.image, node.variable, node.port, container.ports, host.has("curl"));
  if (!node.ready.empty()) node.about.push_back(kAsksItself);
  else if (node.ready_note.empty() && node.port != 0)
    node.ready = fmt::format("{{ tcp = {}, timeout = \"120s\" }}", node.port);
  return node;
}

}  // namespace

Drafted draft_services(const config::ComposeNodes& taken, const std::vector<std::string>& files, const Host& host) {
  Drafted drafted;
  std::set<std::string> completing;
  for (const config::Node& node : taken.nodes)
    for (const config::Dependency& one : node.container->after)
      if (one.when == config::Dependency::When::completed) completing.insert(one.node);
  bool shared = false;
  std::set<std::string> missing;
  for (const config::Node& node : taken.nodes) {
    drafted.nodes.push_back(node_of(node, completing, host));
    for (const std::string& volume : node.container->volumes) {
      const std::string source = volume.substr(0, volume.find(':'));
      std::error_code error;
      if (source.starts_with('/') && !std::filesystem::exists(source, error)) missing.insert(source);
    }
    shared = shared || node.container->host_network;
  }
  Surroundings& around = drafted.around;
  around.network = shared ? "host" : "netns";
  around.compose = files;
  around.compose_profiles = taken.profiles;
  around.about.push_back(
      "The Compose file is not changed. In each run its services are nodes, in the run's own containers, volumes and "
      "network; podman or docker creates them. A [[node]] with the name of a service adds what the file does not "
      "define.");
  for (const auto& [name, value] : taken.from_environment) {
    if (name == "COMPOSE_PROFILES" || name == "HOME" || name == "USER") continue;
    if (!fits_toml(value) || !is_variable_name(name))
      around.doubts.push_back(fmt::format("the value of {} cannot be written here: set it for every command", name));
    else if (Secrets().masked(name, value) != value)
      around.doubts.push_back(fmt::format(
          "{} looks like a secret and is not written: set it for every command, or add it to compose_env", name));
    else around.compose_env.push_back({name, value});
  }
  if (shared)
    around.doubts.emplace_back(
        "services share this machine's network (network_mode: host), so all nodes do: runs are made one after the "
        "other, and partitions are not possible");
  for (const std::string& source : missing)
    around.doubts.push_back(fmt::format(
        "{} does not exist: each run uses an empty folder instead; if it has to be a file, make it first", source));
  for (const std::string& warning : taken.warnings) around.doubts.push_back(warning);
  for (const std::string& word : taken.words) around.about.push_back(fmt::format("({}.)", word));
  return drafted;
}

}  // namespace rose::draft
