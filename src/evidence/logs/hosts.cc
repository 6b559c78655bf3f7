#include "evidence/logs/hosts.h"

#include <algorithm>
#include <set>

#include "base/ascii.h"

namespace rose::evidence {

std::string node_of_host(std::string_view host, const config::Config& config,
                         const std::map<std::string, std::string>& host_to_node) {
  const auto known = [&](std::string_view name) -> std::string {
    if (const auto mapped = host_to_node.find(std::string(name)); mapped != host_to_node.end()) return mapped->second;
    if (config.find(std::string(name)) != nullptr) return std::string(name);
    for (const config::Node& node : config.nodes)
      if (!node.ip.empty() && node.ip == name && node.network_of.empty()) return node.name;
    return {};
  };
  const std::string_view pod = host.substr(0, host.find('/'));
  std::string_view service = pod;
  while (!service.empty() && is_digit(service.back())) service.remove_suffix(1);
  if (service.size() < pod.size() && !service.empty() && (service.back() == '-' || service.back() == '_'))
    service.remove_suffix(1);
  else service = pod;
  for (const std::string_view name :
       {host, pod, pod.substr(0, pod.find('.')), service, service.substr(service.find_first_of("-_") + 1)})
    if (std::string node = known(name); !node.empty()) return node;
  return {};
}

std::string node_of_path(const std::filesystem::path& path, const config::Config& config,
                         const std::map<std::string, std::string>& host_to_node) {
  std::string found;
  for (const std::filesystem::path& part : path) {
    std::string name = part.string();
    name = name.substr(0, name.find('.'));
    if (const auto mapped = host_to_node.find(name); mapped != host_to_node.end()) name = mapped->second;
    if (config.find(name) != nullptr) found = name;
  }
  if (!found.empty()) return found;
  const std::string file = path.filename().string();
  const auto contains = [&](const std::string& name) {
    const auto inside = [&](std::size_t at) { return at < file.size() && (is_alpha(file[at]) || is_digit(file[at])); };
    for (auto at = file.find(name); at != std::string::npos; at = file.find(name, at + 1))
      if (!(at > 0 && inside(at - 1)) && !inside(at + name.size())) return true;
    return false;
  };
  std::set<std::string> nodes;
  for (const config::Node& node : config.nodes)
    if (contains(node.name)) nodes.insert(node.name);
  for (const auto& [host, node] : host_to_node)
    if (contains(host)) nodes.insert(node);
  // Of "web" and "web-1" in "web-1.access.log", the longer name is meant.
  std::erase_if(nodes, [&](const std::string& name) {
    return std::any_of(nodes.begin(), nodes.end(), [&](const std::string& other) {
      return other.size() > name.size() && other.find(name) != std::string::npos && contains(other);
    });
  });
  return nodes.size() == 1 ? *nodes.begin() : std::string();
}

std::vector<logs::NodeName> node_names_in_logs(const config::Config& config,
                                               const std::map<std::string, std::string>& host_to_node) {
  std::vector<logs::NodeName> names;
  for (const config::Node& node : config.nodes) {
    logs::NodeName name{node.name, {}};
    if (!node.ip.empty() && node.network_of.empty()) name.also.push_back(node.ip);
    for (const auto& [host, mapped] : host_to_node)
      if (mapped == node.name) name.also.push_back(host);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace rose::evidence
