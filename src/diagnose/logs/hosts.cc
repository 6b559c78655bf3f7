#include "diagnose/logs/hosts.h"

#include "base/ascii.h"

namespace rose::diagnose {

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

}  // namespace rose::diagnose
