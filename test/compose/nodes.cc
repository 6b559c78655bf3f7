// Prints the nodes that rose makes of Compose files, as JSON: compose_nodes [--profile NAME]... FILE...
// The members of a node have the names of Compose's keys where rose has a member of its own for the key; "options" are
// the arguments for the engine.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "config/compose.h"

using nlohmann::json;
using namespace rose;
using namespace rose::config;

namespace {

// rose writes "$${" for a "${" that is none of its own placeholders.
std::string plain(std::string text) {
  for (std::size_t at = 0; (at = text.find("$${", at)) != std::string::npos; at += 2) text.erase(at, 1);
  return text;
}

json plain(const Command& words) {
  json list = json::array();
  for (const std::string& word : words) list.push_back(plain(word));
  return list;
}

json plain(const std::map<std::string, std::string>& texts) {
  json map = json::object();
  for (const auto& [name, text] : texts) map[name] = plain(text);
  return map;
}

json of_health(const Health& health) {
  json found = {{"test", plain(health.test)}, {"disable", health.disabled}};
  if (health.interval_ns) found["interval"] = *health.interval_ns;
  if (health.timeout_ns) found["timeout"] = *health.timeout_ns;
  if (health.start_period_ns) found["start_period"] = *health.start_period_ns;
  if (health.retries) found["retries"] = *health.retries;
  return found;
}

json of_hooks(const std::vector<Hook>& hooks) {
  json list = json::array();
  for (const Hook& hook : hooks)
    list.push_back({{"command", plain(hook.command)},
                    {"user", hook.user},
                    {"privileged", hook.privileged},
                    {"working_dir", hook.working_dir},
                    {"environment", plain(hook.env)}});
  return list;
}

json of_node(const Node& node) {
  const Container& container = *node.container;
  json after = json::object();
  for (const Dependency& other : container.after)
    after[other.node] = {{"condition", other.when == Dependency::When::healthy     ? "service_healthy"
                                       : other.when == Dependency::When::completed ? "service_completed_successfully"
                                                                                   : "service_started"},
                         {"required", !other.optional}};
  json files = json::object();
  for (const HandedFile& file : container.files) files[file.place] = {{"content", file.content}, {"mode", file.mode}};
  json hosts = json::array();
  for (const auto& [host, address] : container.hosts) hosts.push_back(host + "=" + address);
  json found = {{"name", node.name},
                {"ip", node.ip},
                {"image", container.image},
                {"build", plain(container.build)},
                {"dockerfile_inline", container.dockerfile},
                {"command", plain(node.command)},
                {"environment", plain(node.env)},
                {"user", node.user},
                {"hostname", container.hostname},
                {"domainname", container.domain},
                {"aliases", container.aliases},
                {"options", plain(container.options)},
                {"ulimits", container.limits},
                {"stop_signal", container.stop_signal},
                {"stop_grace_period", container.stop_grace_ns},
                {"files", files},
                {"ports", container.ports},
                {"dns", container.asks},
                {"extra_hosts", hosts},
                {"network_of", node.network_of},
                {"host_network", container.host_network},
                {"pid_of", container.pid_of},
                {"ipc_of", container.ipc_of},
                {"uts", container.host_name_of_machine ? "host" : ""},
                {"depends_on", after},
                {"post_start", of_hooks(container.post_start)},
                {"pre_stop", of_hooks(container.pre_stop)},
                {"tmpfs_volumes", plain(container.tmpfs)},
                {"volumes", plain(container.volumes)}};
  if (container.entrypoint) found["entrypoint"] = plain(*container.entrypoint);
  if (container.health) found["healthcheck"] = of_health(*container.health);
  if (node.restart) found["restart"] = {{"max", node.restart->max}, {"only_failures", node.restart->only_failures}};
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  ComposeChoice choice;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--profile" && i + 1 < argc) choice.profiles.emplace_back(argv[++i]);
    else files.emplace_back(argv[i]);
  }
  if (files.empty()) {
    std::fprintf(stderr, "usage: compose_nodes [--profile NAME]... FILE...\n");
    return 3;
  }
  const auto read = read_compose_files(files, choice);
  json answer;
  if (!read) {
    answer["refused"] = read.error().message;
  } else {
    answer["nodes"] = json::array();
    for (const Node& node : read->nodes) answer["nodes"].push_back(of_node(node));
    answer["words"] = read->words;
    answer["warnings"] = read->warnings;
  }
  std::puts(answer.dump(1).c_str());
}
