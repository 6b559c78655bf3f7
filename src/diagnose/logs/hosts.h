// Which node a name or address in a log means.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "logs/evidence.h"

namespace rose::diagnose {

// The nodes of the deployment, by the names and addresses that messages may use for them.
[[nodiscard]] std::vector<logs::NodeName> node_names_in_logs(const config::Config& config,
                                                             const std::map<std::string, std::string>& host_to_node);

// Which node lines of a log mean that name this host: "web-1" and "shop_web_1" of Compose, "db-0/postgres" of kubectl,
// "n1.example.com", an address, or what --map tells; "" none.
[[nodiscard]] std::string node_of_host(std::string_view host, const config::Config& config,
                                       const std::map<std::string, std::string>& host_to_node);

// Which node wrote the log at this path: a component that is a node's name ("n1.log", "logs/n1/stderr.log"), the last
// one if there are several; otherwise the only node whose name is among the parts of the file's name ("n1-error.log",
// "server_n1.log"); "" none.
[[nodiscard]] std::string node_of_path(const std::filesystem::path& path, const config::Config& config,
                                       const std::map<std::string, std::string>& host_to_node);

}  // namespace rose::diagnose
