// Maps names and addresses in logs to nodes.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "logs/evidence.h"

namespace rose::evidence {

// The nodes of the deployment, with the names and addresses by which messages may mention them.
[[nodiscard]] std::vector<logs::NodeName> node_names_in_logs(const config::Config& config,
                                                             const std::map<std::string, std::string>& host_to_node);

// The node that is meant by a host's name in the lines of a log: "web-1" and "shop_web_1" of Compose, "db-0/postgres"
// of kubectl, "n1.example.com", an address, or a host given with --map. "" if no node is meant.
[[nodiscard]] std::string node_of_host(std::string_view host, const config::Config& config,
                                       const std::map<std::string, std::string>& host_to_node);

// The node that wrote the log at this path: the last path component that is a node's name ("n1.log",
// "logs/n1/stderr.log"), else the only node whose name is part of the file's name ("n1-error.log", "server_n1.log"). ""
// if there is none.
[[nodiscard]] std::string node_of_path(const std::filesystem::path& path, const config::Config& config,
                                       const std::map<std::string, std::string>& host_to_node);

}  // namespace rose::evidence
