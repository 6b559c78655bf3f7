#include "draft/services.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/toml.h"
#include "draft/systems.h"

namespace rose::draft {
namespace {

// For a replica such as "web-2": the service "web".
const Service* service_of(const ComposeFile& file, const std::string& node) {
  const auto named = [&file](const std::string& name) -> const Service* {
    for (const Service& service : file.services)
      if (service.name == name) return &service;
    return nullptr;
  };
  if (const Service* whole = named(node)) return whole;
  return named(node.substr(0, node.rfind('-')));
}

std::uint16_t port_of(const Service& service, const System* system) {
  if (!service.ports.empty()) return service.ports.front().target;
  if (!service.expose.empty()) return service.expose.front();
  return system != nullptr ? system->usual_port() : 0;
}

NodeDraft node_of(const config::Node& taken, const Service* service, const std::set<std::string>& completing) {
  const config::Container& container = *taken.container;
  NodeDraft node;
  node.name = taken.name;
  node.variable = variable_name(taken.name);
  node.service = true;
  // The image of a service that is built has a generated name, which does not identify the system.
  if (service != nullptr && !service->image.empty()) node.system = find_system_of_image(service->image);
  const std::string title = node.system != nullptr ? std::string(node.system->title()) : "a service";
  node.about.push_back(fmt::format("{}: {}, from line {}: {}", taken.name, title, taken.line,
                                   container.build.empty() ? "image " + container.image : "built as the file defines"));
  if (taken.restart)
    node.about.push_back(taken.restart->only_failures ? "Restarted when it fails, as the file defines."
                                                      : "Restarted whenever it ends, as the file defines.");
  node.port = service != nullptr ? port_of(*service, node.system) : 0;
  if (completing.contains(taken.name)) node.ready_note = "it ends by itself, and others wait for its end: no 'ready'";
  else if (container.health) node.ready_note = "it is ready when its health check passes";
  else if (node.port != 0) node.ready = fmt::format("{{ tcp = {}, timeout = \"120s\" }}", node.port);
  for (const std::string& volume : container.volumes) {
    const std::string source = volume.substr(0, volume.find(':'));
    if (source.starts_with('/') && !volume.ends_with(":ro") && volume.find(":ro,") == std::string::npos)
      node.doubts.push_back(
          fmt::format("{} is a folder of this machine, and writable in the container: all runs share it and see what "
                      "earlier ones left. A volume is empty in each run",
                      source));
  }
  return node;
}

}  // namespace

Drafted draft_services(const ComposeFile& file, const config::ComposeNodes& taken, const std::string& path) {
  Drafted drafted;
  std::set<std::string> completing;
  for (const config::Node& node : taken.nodes)
    for (const config::Dependency& one : node.container->after)
      if (one.when == config::Dependency::When::completed) completing.insert(one.node);
  bool host = false;
  for (const config::Node& node : taken.nodes) {
    drafted.nodes.push_back(node_of(node, service_of(file, node.name), completing));
    host = host || node.container->host_network;
  }
  Surroundings& around = drafted.around;
  around.network = host ? "host" : "netns";
  around.compose = path;
  around.about.push_back(
      "The Compose file is not changed. In each run its services are nodes, in the run's own containers, volumes and "
      "network; podman or docker creates them. A [[node]] with the name of a service adds what the file does not "
      "define.");
  if (host)
    around.about.push_back(
        "LOOK: services share this machine's network (network_mode: host), so all nodes do: runs are made one after "
        "the other, and partitions are not possible.");
  for (const std::string& warning : taken.warnings) around.about.push_back(fmt::format("LOOK: {}.", warning));
  for (const std::string& word : taken.words) around.about.push_back(fmt::format("({}.)", word));
  return drafted;
}

}  // namespace rose::draft
