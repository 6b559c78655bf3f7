// The reader behind compose.h. compose.cc reads the top level of the file and combines the services, compose_service.cc
// reads one service.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/yaml.h"
#include "config/compose.h"
#include "config/compose_project.h"

namespace rose::config {

class ComposeReader {
 public:
  ComposeReader(std::filesystem::path file, compose::Project project, const compose::Lookup& lookup)
      : folder_(file.parent_path()), project_(std::move(project)), lookup_(lookup) {}
  Result<ComposeNodes> read();

 private:
  struct Wrong {
    int file;
    int line;
    std::string what;
    std::string hint;
  };
  // A secret or config declared at the top level: a file on this machine, or literal content.
  struct Handed {
    std::string file;
    std::optional<std::string> content;
    const Yaml* external = nullptr;
    std::string unset;  // the variable from which the content would come, if that variable has no value
  };
  using Known = std::function<void(const Yaml&, const std::string&)>;
  using Keys = std::map<std::string, Known>;

  [[noreturn]] static void refuse(const Yaml& at, std::string what, std::string hint = {}) {
    throw Wrong{at.file, at.line, std::move(what), std::move(hint)};
  }
  void say(std::string word) { add(found_.words, std::move(word)); }
  std::set<std::string> valueless_;  // variables of 'environment' without a value, which are not set here
  void warn(std::string word) { add(found_.warnings, std::move(word)); }
  static void add(std::vector<std::string>& to, std::string word);
  // Names the variables without a value in the line of `at`, for a message: ": IMAGE has no value". "" if there are
  // none.
  [[nodiscard]] std::string without_value(const Yaml& at) const;
  [[nodiscard]] Error problem(const Wrong& wrong) const;
  // Calls the reader of each member. Keys that begin with "x-" are extensions and ignored.
  static void each(const Yaml& map, const Keys& readers, const std::string& whose);

  static std::string text(const Yaml& value, std::string_view key);
  static bool truth(const Yaml& value, std::string_view key);
  static std::int64_t duration(const Yaml& value, std::string_view key);
  // Reads a size in the engines' form: "512m", "1.5GiB", "-1". May be empty.
  static std::string size(const Yaml& value, std::string_view key);
  // Reads a size and returns it as a plain number of bytes, because mount options do not accept units such as "mb".
  // Returns "" if the text is empty.
  static std::string bytes(const Yaml& value, std::string_view key);
  // Reads the mode of a file. As in Compose, 0440, 0o440 and 288 are the same number.
  static unsigned file_mode(const Yaml& value, std::string_view key);
  static int number(const Yaml& value, std::string_view key, int least);
  static std::vector<std::string> texts(const Yaml& value, std::string_view key);
  static std::vector<std::string> command(const Yaml& value, std::string_view key);
  static std::vector<std::pair<std::string, std::optional<std::string>>> pairs(const Yaml& value, std::string_view key);
  [[nodiscard]] std::string path(const std::string& text) const { return compose::path_from(folder_, text); }

  struct Service;
  void read_networks_of_file(const Yaml& value);
  void read_volumes_of_file(const Yaml& value);
  std::string tmpfs_options(const Yaml& value, const std::string& volume, const std::string& all);
  void read_handed_of_file(const Yaml& value, const std::string& kind, std::map<std::string, Handed>& into);
  bool is_started(const std::string& name, const Yaml& value);
  void check_dependencies();
  struct Joined {
    std::string named;  // the service that `network_mode`, `pid` or `ipc` names
    std::string owner;  // the service that has the namespace: `named`, or the service whose namespace `named` shares
  };
  // Returns every service that shares a namespace. Each such service is also started after the service that it names.
  std::map<std::string, Joined> join(const std::map<std::string, const Yaml*>& shared, std::string_view key,
                                     std::string_view noun);
  void share_networks();
  void share_processes();
  void share_memory();
  void read_namespace(const Yaml& value, const std::string& key, Service& service);
  [[nodiscard]] const Node* service_of_container(const std::string& name) const;
  void check_networks();
  void settle_name_servers();
  void make_replicas();

  struct Service {  // state while a service is read
    Node node;
    std::map<std::string, std::string> environment;  // as given by `environment`, not escaped for placeholders
    const Yaml* env_files = nullptr;                 // read last, because they may use variables of `environment`
    std::set<std::string> networks{"default"};
    std::optional<int> replicas;
    std::optional<Restart> deployed_restart;  // from `deploy`, which has priority over `restart`
    Container& container() { return *node.container; }
    void option(const std::string& flag, std::string word) {
      container().options.insert(container().options.end(), {flag, std::move(word)});
    }
  };
  void read_service(const std::string& name, const Yaml& value);
  Keys service_keys(Service& service);
  Keys run_keys(Service& service);     // the keys that rose itself implements
  Keys option_keys(Service& service);  // the keys that are passed to the engine as options
  Keys keys_without_effect();          // these keys are reported, or refused if ignoring them would change the service
  void read_environment(const Yaml& value, Service& service);
  void read_env_files(Service& service);
  void read_volume(const Yaml& value, Service& service);
  void read_bind(const Yaml& value, std::string source, const std::string& target, const std::string& options,
                 Service& service);
  void read_depends(const Yaml& value, Container& container);
  void read_ports(const Yaml& value, Container& container);
  static void read_exposed(const Yaml& value, Container& container);
  void read_links(const Yaml& value, Container& container);
  void read_health(const Yaml& value, Container& container);
  void read_restart(const Yaml& value, Node& node);
  void read_build(const Yaml& value, Container& container);
  static void read_hooks(const Yaml& value, const std::string& key, std::vector<Hook>& hooks);
  void read_networks(const Yaml& value, Service& service);
  void read_network_mode(const Yaml& value, Service& service);
  static void check_own_network(const Yaml& service, const std::string& name);
  void read_limits(const Yaml& value, Container& container);
  static void read_hosts(const Yaml& value, Container& container);
  void read_blocks(const Yaml& value, Service& service);
  static std::string device(const Yaml& value, std::string_view key);
  void read_deploy(const Yaml& value, Service& service);
  void read_resources(const Yaml& value, Service& service);
  void read_handed(const Yaml& value, const std::string& kind, const std::map<std::string, Handed>& all,
                   Container& container);

  const std::filesystem::path folder_;
  const compose::Project project_;
  const compose::Lookup& lookup_;
  ComposeNodes found_;
  struct Volume {
    std::string folder;  // the folder on this machine that contains the volume; "": the volume belongs to the run
    std::optional<std::string> tmpfs;  // mount options, if the volume is held in memory
  };
  std::map<std::string, Volume> volumes_;  // declared volumes
  std::set<std::string> networks_declared_;
  std::map<std::string, std::string> subnets_;  // by name of the network
  std::string addressed_;                       // the network in which the nodes have addresses
  std::map<std::string, Handed> secrets_, configs_;
  std::set<std::string> left_out_;                 // services that are not started
  std::set<std::string> profiles_;                 // the profiles of those services
  std::map<std::string, std::string> containers_;  // services by `container_name`
  std::set<std::string> named_containers_;         // the services that have a `container_name`
  std::map<std::string, const Yaml*> shared_;      // by service: a `network_mode` that names another container
  std::map<std::string, const Yaml*> shared_pid_, shared_ipc_;  // like shared_, for `pid` and `ipc`
  std::map<std::string, std::string> pid_modes_, ipc_modes_;    // by service: the other values of `pid` and `ipc`
  std::map<std::string, int> replicas_;                         // number of replicas of the services that have several
  std::vector<std::set<std::string>> networks_;                 // by node: the networks that it is in
  std::map<std::string, std::vector<std::pair<std::string, std::string>>>
      // by service: its aliases from the `links` of other services; the second text of each pair is unused
      linked_names_;
};

// Escapes text in which rose would otherwise substitute placeholders.
[[nodiscard]] std::string kept(std::string text);

}  // namespace rose::config
