#include "replay/system.h"

#include "base/json.h"

namespace rose::replay {
namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json node_json(const config::Node& node) {
  Json json = {{"name", node.name}, {"ip", node.ip}, {"command", node.command}, {"env", node.env}, {"user", node.user}};
  if (node.begins_as_root) json["begins_as_root"] = true;
  if (!node.working_dir.empty()) json["working_dir"] = node.working_dir;
  if (node.ready)
    json["ready"] = {{"tcp", or_null(node.ready->tcp)},
                     {"log", or_null(node.ready->log)},
                     {"command", or_null(node.ready->command)},
                     {"timeout_ns", node.ready->timeout_ns}};
  if (node.container)
    json["container"] = {{"image", node.container->image},
                         {"volumes", node.container->volumes},
                         {"tmpfs", node.container->tmpfs},
                         {"build", node.container->build},
                         {"entrypoint", or_null(node.container->entrypoint)},
                         {"options", node.container->options},
                         {"limits", node.container->limits}};
  if (!node.network_of.empty()) json["network_of"] = node.network_of;
  if (node.container && !node.container->pid_of.empty()) json["container"]["pid_of"] = node.container->pid_of;
  if (node.container && !node.container->ipc_of.empty()) json["container"]["ipc_of"] = node.container->ipc_of;
  if (node.container)
    for (const auto& [key, hooks] :
         {std::pair("post_start", &node.container->post_start), std::pair("pre_stop", &node.container->pre_stop)})
      for (const config::Hook& hook : *hooks)
        json["container"][key].push_back({{"command", hook.command},
                                          {"user", hook.user},
                                          {"privileged", hook.privileged},
                                          {"working_dir", hook.working_dir},
                                          {"env", hook.env}});
  if (node.restart) json["restart"] = {{"delay_ns", node.restart->delay_ns}, {"max", node.restart->max}};
  if (node.attach)
    json["attach"] = {{"pid_file", or_null(node.attach->pid_file)},
                      {"container", or_null(node.attach->container)},
                      {"unit", or_null(node.attach->unit)},
                      {"cgroup", or_null(node.attach->cgroup)},
                      {"exec", node.attach->exec}};
  return json;
}

}  // namespace

std::string system_json(const config::Config& config) {
  Json json;
  json["seed"] = config.diagnose.seed;
  json["deployment"] = {{"network", config.deployment.network == config::Network::netns ? "netns" : "host"},
                        {"setup", or_null(config.deployment.setup)},
                        {"teardown", or_null(config.deployment.teardown)}};
  if (config.deployment.form) json["deployment"]["form"] = *config.deployment.form;
  for (const config::Node& node : config.nodes) json["node " + node.name] = node_json(node);
  if (config.workload)
    json["workload"] = {{"command", config.workload->command}, {"timeout_ns", config.workload->timeout_ns}};
  if (config.oracle)
    json["oracle"] = {{"command", config.oracle->command},
                      {"poll", config.oracle->when == config::OracleWhen::poll},
                      {"every_ns", config.oracle->every_ns},
                      {"timeout_ns", config.oracle->timeout_ns}};
  return json_text(json, 2) + "\n";
}

std::string system_difference(const std::string& recorded, const std::string& now) {
  const Json before = parse_json(recorded);
  const Json after = parse_json(now);
  if (!before.is_object()) return "system";
  for (const Json* json : {&after, &before})
    for (const auto& [key, value] : json->items()) {
      if (key == "seed") continue;
      const auto a = before.find(key);
      const auto b = after.find(key);
      if (a == before.end() || b == after.end() || *a != *b) return key;
    }
  return {};
}

}  // namespace rose::replay
