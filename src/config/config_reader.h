// The reader behind config.h, in several files: config.cc reads the deployment and its commands, read_nodes.cc the
// [[node]] tables, across_nodes.cc checks what must agree between nodes. Private to config.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/toml.h"
#include "base/units.h"
#include "config/config.h"
#include "config/placeholders.h"

namespace rose::config {

inline constexpr std::int64_t kHour = 3600 * kSecond;
inline constexpr std::int64_t kDay = 24 * kHour;

// Returns what is wrong with the name, or "". Names occur in paths, environment variables, namespaces and cgroups, so
// few characters are allowed.
[[nodiscard]] std::string name_problem(const std::string& name, bool service = false);
// Returns what is wrong with the option of a container's volume ("the option 'x', accepted are ..."), or "".
[[nodiscard]] std::string volume_option_problem(std::string_view option);

// Adds the [[meaning]] tables of a file.
void read_meanings(toml::Table& root, std::vector<knowledge::Entry>& into);
// Adds the [[meaning]] tables of every *.toml file in a folder, in the order of their names; nothing if there is no
// such folder. These files may contain only such tables.
inline constexpr std::string_view kKnowledgeFolder = "knowledge";
[[nodiscard]] Result<void> read_knowledge(const std::filesystem::path& folder, std::vector<knowledge::Entry>& into);

struct ComposeChoice;

class ConfigReader {
 public:
  ConfigReader(const toml::Value& root, std::string_view file, const std::filesystem::path& directory);

  Result<Config> read();

 private:
  // Positions of a node's keys, for the messages of checks that compare nodes.
  struct NodePlaces {
    toml::Place name;
    toml::Place ip;
  };

  // A placeholder ${ip_NAME} and its position.
  struct NamedNode {
    toml::Place place;
    std::string key;
    std::string name;
  };

  bool check_placeholders(const std::string& text, toml::Place place, const std::string& key, Where where);
  bool read_command(toml::Table& table, std::string_view key, Where where, Command& into);
  bool read_command(toml::Table& table, std::string_view key, Where where, std::optional<Command>& into);
  void read_deployment();
  void read_engine(toml::Table& table);
  void read_services(toml::Table& table);
  void take_subnet(toml::Table& table, const std::string& subnet);
  void add_to_service(toml::Table& table, Node& node, NodePlaces& places);
  void read_nodes();
  void read_node(toml::Table& table);
  void read_ready(toml::Table& table, Node& node);
  void read_attach(toml::Table& table, Node& node);
  void read_container(toml::Table& table, Node& node);
  void read_engine_options(toml::Table& table, Container& container);
  void read_user(toml::Table& table, Node& node);
  void read_working_dir(toml::Table& table, Node& node);
  bool read_compose_env(toml::Table& table, ComposeChoice& choice);
  void read_record_libc(toml::Table& table, Node& node);
  void read_binaries(toml::Table& table, Node& node);
  void read_logs(toml::Table& table, Node& node);
  void read_env(toml::Table& table, Node& node);
  void check_names();
  void check_named_nodes();
  void assign_addresses();
  void read_workload();
  void read_oracle();
  void read_options();
  void read_log_forms();

  Config config_;
  toml::Problems problems_;
  toml::Table root_;
  std::vector<NodePlaces> places_;
  std::vector<NamedNode> named_nodes_;
  toml::Place subnet_place_;
  std::set<std::string> named_services_;  // services for which there is a [[node]] table
  std::optional<Error> compose_problem_;  // the error in the Compose file that the configuration names
};

}  // namespace rose::config
