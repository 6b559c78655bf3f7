#include "config/config.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <mutex>
#include <set>

#include "base/ascii.h"
#include "base/address.h"
#include "base/file.h"
#include "base/log.h"
#include "base/regex.h"
#include "base/text.h"
#include "base/toml.h"
#include "config/compose.h"
#include "config/placeholders.h"
#include "config/subnet.h"
#include "kernel/noise.h"
#include "logs/clock.h"

namespace rose::config {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kHour = 3600 * kSecond;
constexpr std::int64_t kDay = 24 * kHour;
constexpr std::size_t kMostNodes = 1024;
constexpr std::size_t kMostName = 63;

// Folders, variables, namespaces and cgroups carry it.
std::string name_problem(const std::string& name, bool service = false) {
  const bool shape = name.size() <= kMostName && (is_alpha(name[0]) || is_digit(name[0])) &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return is_alpha(c) || is_digit(c) || c == '_' || c == '.' || c == '-';
                     });
  if (!shape)
    return fmt::format("{} is not a node name: up to {} letters, digits, '_', '.', '-' are accepted, the first a "
                       "letter or digit",
                       toml::quoted(name), kMostName);
  if (name == "client" && !service) return "'client' is the name of rose's own namespace, another one is needed";
  return {};
}

// --- volumes

// Makes a relative source absolute. What is wrong with it otherwise.
std::optional<std::string> resolve_volume(std::string& text, const std::filesystem::path& directory) {
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3 || parts[0].empty()) return "is no volume: SOURCE:TARGET or SOURCE:TARGET:OPTIONS is needed";
  if (!parts[1].starts_with('/')) return fmt::format("has '{}' for a place in the container, an absolute path is needed", parts[1]);
  static const std::vector<std::string> known{"ro", "rw", "z", "Z", "nocopy"};
  if (parts.size() == 3)
    for (const std::string& option : split(parts[2], ','))
      if (std::find(known.begin(), known.end(), option) == known.end())
        return fmt::format("has the option '{}', accepted are ro, rw, z, Z and nocopy", option);
  std::string source = parts[0];
  if (source.starts_with("${")) {
    if (!source.starts_with("${dir}") && !source.starts_with("${run_dir}") && !source.starts_with("${config_dir}"))
      return "begins with a placeholder that is no folder: ${dir}, ${run_dir} and ${config_dir} are";
    if (source.find("/..") != std::string::npos) return "leads out of the folder that it begins with";
  } else if (source.starts_with('.') || source.find('/') != std::string::npos) {
    source = (directory / source).lexically_normal().string();
  } else if (!std::all_of(source.begin(), source.end(), [](char c) { return is_alpha(c) || is_digit(c) || c == '_' || c == '.' || c == '-'; })) {
    return fmt::format("has the source '{}': a path, or the name of a volume of letters, digits, '_', '.' and '-' is needed", source);
  }
  text = source + text.substr(parts[0].size());
  return std::nullopt;
}

// --- the file

class Reader {
 public:
  Reader(const toml::Value& root, std::string_view file, const std::filesystem::path& directory)
      : problems_(file), root_(root, "", problems_) {
    config_.file = std::string(file);
    std::error_code error;
    config_.directory = std::filesystem::absolute(directory.empty() ? "." : directory, error).lexically_normal();
    if (!config_.directory.has_filename() && config_.directory.has_parent_path())
      config_.directory = config_.directory.parent_path();  // "/x/" and "/x" are one
    config_.name = config_.directory.filename().string();
  }

  Result<Config> read() {
    root_.string("name", config_.name);
    read_deployment();
    read_nodes();
    read_workload();
    read_oracle();
    read_options();
    read_log_forms();
    if (!config_.nodes.empty()) check_named_nodes();
    root_.finish();
    ROSE_CHECK(problems_.result());
    if (compose_problem_) return Unexpected(std::move(*compose_problem_));
    return std::move(config_);
  }

 private:
  // Where a node's keys stand, for checks across nodes.
  struct NodePlaces {
    toml::Place name;
    toml::Place ip;
  };

  // An ${ip_...} and where it stands.
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
  std::set<std::string> named_services_;  // in tables of their own
  std::optional<Error> compose_problem_;  // of the file that it names
};

bool Reader::check_placeholders(const std::string& text, toml::Place place, const std::string& key, Where where) {
  std::vector<std::string> named;
  if (auto problem = placeholder_problem(text, where, named)) {
    problems_.add(place, fmt::format("{}: {}", key, problem->what), std::move(problem->hint));
    return false;
  }
  for (std::string& name : named) named_nodes_.push_back({place, key, std::move(name)});
  return true;
}

bool Reader::read_command(toml::Table& table, std::string_view key, Where where, Command& into) {
  // `rose init` asks what it cannot know. An answer that is missing is no mistake of the file's form.
  if (const toml::Value* value = table.get(key); value != nullptr && value->type == toml::Type::string && value->text == "?") {
    table.wrong(key, "the question mark that 'rose init' left is still there, a command is needed",
                "the comment above it says what is asked, and shows an example");
    return false;
  }
  Command command;
  if (!table.command(key, command)) return false;
  const toml::Value& list = *table.get(key);
  for (std::size_t i = 0; i < command.size(); ++i)
    if (!check_placeholders(command[i], list.items[i].place, table.path(key), where)) return false;
  into = std::move(command);
  return true;
}

bool Reader::read_command(toml::Table& table, std::string_view key, Where where, std::optional<Command>& into) {
  Command command;
  if (!read_command(table, key, where, command)) return false;
  into = std::move(command);
  return true;
}

void Reader::read_deployment() {
  auto table = root_.table("deployment");
  subnet_place_ = {1, 1};
  if (!table) return;
  subnet_place_ = table->place("subnet");
  std::size_t network = 0;
  if (table->one_of("network", {"netns", "host"}, network))
    config_.deployment.network = network == 0 ? Network::netns : Network::host;
  std::string subnet;
  if (table->string("subnet", subnet)) {
    if (const auto parsed = parse_subnet(subnet); !parsed) {
      table->wrong("subnet", parsed.error());
    } else {
      config_.deployment.subnet = subnet;
      if (config_.deployment.network == Network::host && !problems_.any())
        log::warning("{}:{}:{}: deployment.subnet has no use in \"host\" networks", problems_.file(),
                     subnet_place_.line, subnet_place_.column);
    }
  }
  read_engine(*table);
  read_services(*table);
  read_command(*table, "setup", Where::run, config_.deployment.setup);
  read_command(*table, "teardown", Where::run, config_.deployment.teardown);
  table->finish();
}

// "podman", or with options: ["podman", "--storage-driver=vfs"].
void Reader::read_engine(toml::Table& table) {
  const toml::Value* value = table.get("engine");
  if (value == nullptr) return;
  Command& engine = config_.deployment.engine;
  if (value->type == toml::Type::array) {
    table.command("engine", engine);
  } else if (std::string name; table.string("engine", name)) {
    engine = {name};
  }
  if (engine.empty()) return;
  if (engine.front().empty())
    table.wrong("engine", "an empty name was found, \"podman\", \"docker\" or the path of one is needed");
  else if (std::any_of(engine.begin(), engine.end(), [](const std::string& word) { return word.find_first_of("\t\n") != std::string::npos; }))
    table.wrong("engine", "a word with a tab or line break is not accepted");
  else if (engine.front().find('/') != std::string::npos)
    engine.front() = (config_.directory / engine.front()).lexically_normal().string();
}

void Reader::read_services(toml::Table& table) {
  const toml::Value* value = table.get("compose");
  if (value == nullptr) return;
  std::vector<std::string> names;
  if (value->type == toml::Type::array) {
    if (!table.strings("compose", names)) return;
    if (names.empty()) table.wrong("compose", "the list is empty, one Compose file or more is needed");
  } else if (std::string name; table.string("compose", name)) {
    names.push_back(name);
  }
  if (names.empty()) return;
  std::vector<std::filesystem::path> files;
  for (const std::string& name : names) files.push_back((config_.directory / name).lexically_normal());
  const std::filesystem::path file = files.front();
  config_.deployment.compose = file;
  auto services = read_compose_files(files);
  if (!services) {
    compose_problem_ = std::move(services).error();
    return;
  }
  // Said once, though a command may read its configuration more than once.
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  for (const std::string& word : services->warnings)
    if (said.insert(word).second) log::warning("{}: {}", file.string(), word);
  for (const std::string& word : services->words)
    if (said.insert(word).second) log::debug("{}: {}", file.string(), word);
  take_subnet(table, services->subnet);
  for (Node& node : services->nodes) {
    if (node.container->host_network && config_.deployment.network != Network::host)
      table.wrong("compose", fmt::format("line {}: service '{}' has 'network_mode: host', and each node has a network of its own here; say network = \"host\" in [deployment] if "
                                         "its services cannot do without", node.line, node.name));
    if (const std::string problem = name_problem(node.name, true); !problem.empty()) table.wrong("compose", fmt::format("line {}: {}", node.line, problem));
    if (node.container->health) {
      const Health& health = *node.container->health;
      node.ready = Ready();
      node.ready->health = true;
      node.ready->timeout_ns = health.start_period_ns + health.retries * (health.interval_ns + health.timeout_ns);
    }
    places_.push_back({table.place("compose"), table.place("compose")});
    config_.nodes.push_back(std::move(node));
  }
}

// Addresses that a Compose file gives are kept, so that commands that name them are right.
void Reader::take_subnet(toml::Table& table, const std::string& subnet) {
  if (subnet.empty() || table.has("subnet") || config_.deployment.network == Network::host) return;
  if (const auto parsed = parse_subnet(subnet); !parsed) table.wrong("compose", fmt::format("its subnet: {}", parsed.error()));
  else config_.deployment.subnet = subnet;
}

// What Compose does not know of.
void Reader::add_to_service(toml::Table& table, Node& node, NodePlaces& places) {
  std::string name;
  table.string("name", name);
  if (table.string("ip", node.ip)) {
    places.ip = table.place("ip");
    if (!parse_address(node.ip)) table.wrong("ip", fmt::format("{} is not an IP address such as \"10.77.0.1\"", toml::quoted(node.ip)));
  }
  read_ready(table, node);
  read_binaries(table, node);
  table.strings("sources", node.sources);
  table.strings("functions", node.functions);
  read_logs(table, node);
  table.finish();
}

void Reader::read_nodes() {
  std::vector<toml::Table> tables = root_.tables("node", "a list of tables ([[node]])");
  if (tables.size() > kMostNodes) {
    problems_.add(tables[kMostNodes].place(),
                  fmt::format("node: {} nodes are configured, up to {} are accepted", tables.size(), kMostNodes));
    return;
  }
  if (!root_.has("node") && config_.deployment.compose) {
    if (problems_.any() || compose_problem_) return;
    check_names();
    if (config_.deployment.network == Network::netns && !problems_.any()) assign_addresses();
    return;
  }
  if (!root_.has("node")) {
    root_.require("node", "describe each node in a [[node]] table with a name and a command");
    return;
  }
  if (tables.empty()) {
    if (!problems_.any()) problems_.add(root_.place("node"), "node: the list is empty, one node or more is needed");
    return;
  }
  if (compose_problem_) return;
  for (toml::Table& table : tables) read_node(table);
  if (problems_.any()) return;
  check_names();
  if (config_.deployment.network == Network::netns && !problems_.any()) assign_addresses();
}

void Reader::read_node(toml::Table& table) {
  if (const toml::Value* name = table.get("name"); name != nullptr && name->type == toml::Type::string) {
    for (std::size_t i = 0; i < config_.nodes.size(); ++i) {
      Node& service = config_.nodes[i];
      if (service.name != name->text || !service.container || !service.container->service) continue;
      if (!named_services_.insert(service.name).second) {
        table.wrong("name", fmt::format("'{}' is there twice", service.name));
        return;
      }
      add_to_service(table, service, places_[i]);
      return;
    }
  }
  Node node;
  node.line = table.place().line;
  table.require("name");
  if (table.string("name", node.name))
    if (const std::string problem = name_problem(node.name); !problem.empty()) table.wrong("name", problem);

  const bool has_command = table.has("command");
  const bool has_attach = table.has("attach");
  const bool has_image = table.has("image");
  read_command(table, "command", Where::node, node.command);
  read_attach(table, node);
  read_container(table, node);
  if ((has_command || has_image) && has_attach)
    table.wrong("attach", fmt::format("'{}' and 'attach' were both found, exactly one is needed", has_command ? "command" : "image"));
  else if (!has_command && !has_attach && !has_image)
    problems_.add_missing(table.place(), "node: 'command' is missing",
                          "a node has a command, an image, or attach = { pid_file | container | unit | cgroup = \"...\" } for "
                          "a system started by setup");

  if (table.string("ip", node.ip) && !parse_address(node.ip))
    table.wrong("ip", fmt::format("{} is not an IP address such as \"10.77.0.1\"", toml::quoted(node.ip)));
  read_env(table, node);
  read_ready(table, node);
  if (auto restart = table.table("restart")) {
    Restart policy;
    restart->duration("delay", policy.delay_ns, 0, kHour);
    restart->integer("max", policy.max, 0, 1'000'000);
    restart->finish();
    node.restart = policy;
  }
  read_user(table, node);
  if (has_attach)
    for (const std::string_view key : {"env", "restart", "user", "record", "record_libc"})
      if (table.has(key))
        table.wrong(key, fmt::format("'{}' belongs to nodes with a 'command', rose does not start attached ones", key));
  read_binaries(table, node);
  table.strings("sources", node.sources);
  table.strings("functions", node.functions);
  read_logs(table, node);
  const bool says_record = table.boolean("record", node.record);
  if (says_record && !node.record && table.has("record_libc")) table.wrong("record_libc", "'record' is false: what is recorded of the C library is a recording, too");
  read_record_libc(table, node);
  if (node.record && node.env.contains("ROSE_RR") && !says_record)
    table.wrong("record_libc", "'record_libc' sets ROSE_RR, which 'env' sets too: one of them is needed");
  if (says_record && node.record && node.env.contains("ROSE_RR"))
    table.wrong("record", "'record' sets ROSE_RR, which 'env' sets too: one of them is needed");
  table.finish();
  places_.push_back({table.place("name"), table.place("ip")});
  config_.nodes.push_back(std::move(node));
}

void Reader::read_record_libc(toml::Table& table, Node& node) {
  if (!table.strings("record_libc", node.record_libc)) return;
  const toml::Value& list = *table.get("record_libc");
  static constexpr std::string_view kSources[] = {"time", "random", "pid", "hostname", "ready"};
  for (std::size_t i = 0; i < node.record_libc.size(); ++i)
    if (std::find(std::begin(kSources), std::end(kSources), node.record_libc[i]) == std::end(kSources))
      problems_.add(list.items[i].place, fmt::format("{}[{}]: {} is no source that can be recorded", table.path("record_libc"), i, toml::quoted(node.record_libc[i])),
                    fmt::format("known are {}", fmt::join(kSources, ", ")));
  if (node.container) table.wrong("record_libc", "'record_libc' is for programs of this machine: a container may have another C library");
  node.record = node.record || !node.record_libc.empty();
}

void Reader::read_user(toml::Table& table, Node& node) {
  if (!table.string("user", node.user)) return;
  const auto letters = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return is_alpha(c) || is_digit(c) || c == '_' || c == '.' || c == '-'; });
  };
  if (node.container) {
    const std::size_t colon = node.user.find(':');
    const std::string_view user = std::string_view(node.user).substr(0, colon);
    const std::string_view group = colon == std::string::npos ? std::string_view("x") : std::string_view(node.user).substr(colon + 1);
    if (user.empty() || group.empty() || !letters(user) || !letters(group))
      table.wrong("user", fmt::format("{} is not a user of a container such as \"redis\", \"999\" or \"999:999\"", toml::quoted(node.user)));
  } else if (node.user.size() > 32 || !(is_alpha(node.user[0]) || node.user[0] == '_') || !letters(node.user)) {
    table.wrong("user", fmt::format("{} is not a user name such as \"nobody\"", toml::quoted(node.user)));
  }
}

void Reader::read_container(toml::Table& table, Node& node) {
  Container container;
  if (table.string("image", container.image))
    if (container.image.starts_with('-') || container.image.find_first_of(" \t\n") != std::string::npos)
      table.wrong("image", fmt::format("{} is not the name of an image such as \"docker.io/library/redis:7\" or \"localhost/kv:1\"", toml::quoted(container.image)));
  if (table.strings("volumes", container.volumes)) {
    const toml::Value& list = *table.get("volumes");
    for (std::size_t i = 0; i < container.volumes.size(); ++i) {
      const std::string path = fmt::format("{}[{}]", table.path("volumes"), i);
      if (!check_placeholders(container.volumes[i], list.items[i].place, path, Where::node)) continue;
      if (auto problem = resolve_volume(container.volumes[i], config_.directory))
        problems_.add(list.items[i].place, fmt::format("{}: {} {}", path, toml::quoted(container.volumes[i]), *problem),
                      "such as \"${dir}:/data\", \"./redis.conf:/etc/redis.conf:ro\" or \"cache:/var/cache\"");
    }
  }
  read_command(table, "entrypoint", Where::node, container.entrypoint);
  read_engine_options(table, container);
  if (table.strings("aliases", container.aliases))
    for (const std::string& alias : container.aliases)
      if (alias.empty() || alias.size() > 253 ||
          !std::all_of(alias.begin(), alias.end(), [](char c) { return is_alpha(c) || is_digit(c) || c == '.' || c == '-' || c == '_'; }))
        table.wrong("aliases", fmt::format("{} is not a host's name such as \"db.example.org\"", toml::quoted(alias)));
  if (table.has("image")) {
    node.container = std::move(container);
    return;
  }
  for (const std::string_view key : {"volumes", "entrypoint", "options", "aliases"})
    if (table.has(key)) table.wrong(key, fmt::format("'{}' belongs to nodes with an 'image'", key));
}

// Words of the engine's own; what rose itself says there must stay what it is.
void Reader::read_engine_options(toml::Table& table, Container& container) {
  if (!table.strings("options", container.options) || container.options.empty()) return;
  const toml::Value& list = *table.get("options");
  if (!container.options.front().starts_with('-'))
    problems_.add(list.items[0].place, fmt::format("{}[0]: {} is no option of the engine's 'create'", table.path("options"), toml::quoted(container.options.front())),
                  R"(each word by itself, such as ["--cap-add", "NET_ADMIN"])");
  for (std::size_t i = 0; i < container.options.size(); ++i) {
    const std::string_view option = std::string_view(container.options[i]).substr(0, container.options[i].find('='));
    for (const std::string_view ours : {"--name", "--network", "--net", "--entrypoint", "--rm", "--detach", "-d", "--log-driver", "--pod", "--restart", "--hostname", "-h"})
      if (option == ours)
        problems_.add(list.items[i].place, fmt::format("{}[{}]: {} is said by rose itself", table.path("options"), i, toml::quoted(container.options[i])),
                      "nodes have names, networks, logs and restarts as the other keys say");
  }
}

void Reader::read_env(toml::Table& table, Node& node) {
  auto env = table.table("env");
  if (!env) return;
  for (const toml::Member& member : table.get("env")->members) {
    const std::string& key = member.key;
    const std::string path = env->path(key);
    const bool shape = !key.empty() && !is_digit(key[0]) &&
                       std::all_of(key.begin(), key.end(), [](char c) { return is_alpha(c) || is_digit(c) || c == '_'; });
    if (!shape) {
      problems_.add(member.place, fmt::format("node.env: {} is not a variable's name: letters, digits and '_' are "
                                              "accepted, the first not a digit",
                                              toml::quoted(key)));
    } else if (member.value.type != toml::Type::string) {
      problems_.add(member.value.place, fmt::format("{}: {} was found, a string is needed", path, toml::quoted(member.value)),
                    "values of variables are strings: write them in quotes");
    } else if (member.value.text.find('\0') != std::string::npos) {
      problems_.add(member.value.place, fmt::format("{}: {} contains a NUL character, which is not accepted", path,
                                                    toml::quoted(member.value)));
    } else if (check_placeholders(member.value.text, member.value.place, path, Where::node)) {
      node.env[key] = member.value.text;
    }
  }
}

void Reader::read_ready(toml::Table& table, Node& node) {
  auto ready_table = table.table("ready");
  if (!ready_table) return;
  Ready ready;
  std::uint16_t port = 0;
  if (ready_table->integer("tcp", port, 1, 65535)) ready.tcp = port;
  if (ready_table->string("log", ready.log))
    if (const std::string problem = Regex(*ready.log).problem(); !problem.empty())
      ready_table->wrong("log", fmt::format("{} is not a regular expression (RE2): {}",
                                            toml::quoted(*ready.log), problem));
  read_command(*ready_table, "command", Where::node, ready.command);
  ready_table->duration("timeout", ready.timeout_ns, kMs, kDay);
  ready_table->finish();
  std::vector<std::string_view> found;
  for (const std::string_view key : {"tcp", "log", "command"})
    if (ready_table->has(key)) found.push_back(key);
  if (found.empty())
    problems_.add_missing(ready_table->place(), "node.ready: one of 'tcp', 'log', 'command' is missing");
  else if (found.size() > 1)
    problems_.add(ready_table->place(),
                  fmt::format("node.ready: '{}' and '{}' were both found, exactly one of 'tcp', 'log', 'command' is needed",
                              found[0], found[1]));
  node.ready = std::move(ready);
}

void Reader::read_attach(toml::Table& table, Node& node) {
  auto attach_table = table.table("attach");
  if (!attach_table) return;
  Attach attach;
  attach_table->string("pid_file", attach.pid_file);
  attach_table->string("container", attach.container);
  attach_table->string("unit", attach.unit);
  attach_table->string("cgroup", attach.cgroup);
  attach_table->boolean("exec", attach.exec);
  attach_table->finish();
  std::vector<std::string_view> found;
  for (const std::string_view key : {"pid_file", "container", "unit", "cgroup"})
    if (attach_table->has(key)) found.push_back(key);
  if (found.empty())
    problems_.add_missing(attach_table->place(),
                          "node.attach: one of 'pid_file', 'container', 'unit', 'cgroup' is missing");
  else if (found.size() > 1)
    problems_.add(attach_table->place(),
                  fmt::format("node.attach: '{}' and '{}' were both found, exactly one of 'pid_file', 'container', "
                              "'unit', 'cgroup' is needed",
                              found[0], found[1]));
  node.attach = std::move(attach);
}

// The file that a name without a slash stands for: beside the configuration (if a file and not a
// command is named), else in the PATH the node is started with; the bare name when this machine has neither.
std::string locate(const std::string& name, const std::filesystem::path& beside, const Node& node) {
  std::error_code ignored;
  if (!beside.empty() && std::filesystem::is_regular_file(beside / name, ignored)) return (beside / name).string();
  const auto own = node.env.find("PATH");
  const char* inherited = std::getenv("PATH");
  const std::string path = own != node.env.end() ? own->second : inherited != nullptr ? inherited : "";
  for (const std::string& folder : split(path, ':')) {
    if (folder.empty() || folder.front() != '/') continue;
    const std::filesystem::path file = std::filesystem::path(folder) / name;
    if (std::filesystem::is_regular_file(file, ignored)) return file.string();
  }
  return name;
}

void Reader::read_binaries(toml::Table& table, Node& node) {
  const toml::Value* value = table.get("binary");
  std::vector<std::string> names;
  if (value == nullptr) {
    if (!node.command.empty() && !node.container) names.push_back(node.command.front());
  } else if (value->type == toml::Type::array) {
    table.strings("binary", names);
  } else {
    std::string name;
    if (table.string("binary", name)) names.push_back(std::move(name));
  }
  if (node.container) {
    // Paths in the image, where deploy/image_files looks.
    node.binaries = std::move(names);
    return;
  }
  for (std::string& name : names) {
    constexpr std::string_view kConfigDir = "${config_dir}";
    for (std::size_t at = name.find(kConfigDir); at != std::string::npos; at = name.find(kConfigDir, at)) {
      name.replace(at, kConfigDir.size(), config_.directory.string());
      at += config_.directory.string().size();
    }
    if (name.find("${") != std::string::npos) {
      // A program that exists only in the run cannot be looked into beforehand.
      if (value != nullptr)
        table.wrong("binary", fmt::format("{} has a placeholder, only ${{config_dir}} is accepted here", toml::quoted(name)));
      continue;
    }
    if (name.find('/') != std::string::npos)
      name = (config_.directory / name).lexically_normal().string();
    else
      name = locate(name, value != nullptr ? config_.directory : std::filesystem::path{}, node);
    node.binaries.push_back(name);
  }
}

// Each run has its own: a file elsewhere would hold what other runs wrote.
void Reader::read_logs(toml::Table& table, Node& node) {
  if (!table.strings("logs", node.logs)) return;
  const toml::Value& list = *table.get("logs");
  for (std::size_t i = 0; i < node.logs.size(); ++i) {
    const std::filesystem::path file = std::filesystem::path(node.logs[i]).lexically_normal();
    const bool inside = file.is_relative() && file.has_filename() && file != "." && *file.begin() != "..";
    if (!inside || node.logs[i].find("${") != std::string::npos)
      problems_.add(list.items[i].place, fmt::format("{}: {} is not a file in the node's folder, such as \"server.log\" or \"log/server.log\"",
                                                     table.path("logs"), toml::quoted(node.logs[i])),
                    "stdout.log and stderr.log are read anyway");
    node.logs[i] = file.string();
  }
}

void Reader::check_names() {
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < config_.nodes.size(); ++i) {
    const std::string& name = config_.nodes[i].name;
    const auto [it, fresh] = seen.emplace(variable_name(name), i);
    if (fresh) continue;
    const Node& other = config_.nodes[it->second];
    if (other.name == name)
      problems_.add(places_[i].name, fmt::format("node.name: '{}' is taken by the node in line {}, names must differ",
                                                 name, other.line));
    else
      problems_.add(places_[i].name, fmt::format("node.name: '{}' and '{}' (line {}) give one variable, ROSE_IP_{}; "
                                                 "names must differ in more than '-' and '_'",
                                                 name, other.name, other.line, it->first));
  }
}

void Reader::check_named_nodes() {
  std::vector<std::string> variables;
  for (const Node& node : config_.nodes) variables.push_back(variable_name(node.name));
  for (const NamedNode& named : named_nodes_) {
    if (std::find(variables.begin(), variables.end(), named.name) != variables.end()) continue;
    std::string accepted;
    for (const std::string& one : variables) accepted += fmt::format("{}${{ip_{}}}", accepted.empty() ? "" : ", ", one);
    problems_.add(named.place, fmt::format("{}: {} names no node, accepted are {}", named.key,
                                           toml::quoted("${ip_" + named.name + "}"), accepted),
                  "a '-' or '.' in a node's name becomes '_'");
  }
}

void Reader::assign_addresses() {
  const Subnet subnet = subnet_of(config_.deployment);
  const auto fixed = [](const Node& node) { return node.attach.has_value(); };  // lives where it lives
  std::map<std::uint32_t, const Node*> taken;
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < config_.nodes.size(); ++i) {
    Node& node = config_.nodes[i];
    if (fixed(node)) continue;
    ++wanted;
    if (node.ip.empty()) continue;
    const auto address = parse_address(node.ip);
    const auto wrong = [&](std::string_view why) {
      problems_.add(places_[i].ip, fmt::format("node.ip: '{}' {}", node.ip, why));
    };
    const std::string range = fmt::format("{} to {} are accepted", subnet.text(subnet.network() + 1),
                                          subnet.text(subnet.client() - 1));
    if (!address || !subnet.contains(*address))
      wrong(fmt::format("is not in the subnet {}, {}", config_.deployment.subnet, range));
    else if (address->tail() == subnet.network() || address->tail() == subnet.last())
      wrong(fmt::format("is the {} address of {}, {}",
                        address->tail() == subnet.network() ? "network" : address->is_ipv4() ? "broadcast" : "last",
                        config_.deployment.subnet, range));
    else if (address->tail() == subnet.client())
      wrong(fmt::format("is the client's address, {}", range));
    else if (const auto [it, fresh] = taken.emplace(address->tail(), &node); !fresh)
      wrong(fmt::format("is taken by node '{}', addresses must differ", it->second->name));
    else
      node.ip = address->text();  // an IPv6 address has many spellings
  }
  if (problems_.any()) return;
  const std::size_t room = subnet.last() - subnet.network() - 2;  // not the first, the last and the client's
  if (wanted > room) {
    problems_.add(subnet_place_, fmt::format("deployment.subnet: '{}' has room for {} nodes, {} are configured",
                                             config_.deployment.subnet, room, wanted),
                  fmt::format("give a larger subnet, such as \"{}\"", subnet.is_ipv4() ? "10.77.0.0/16" : "fd00:77::/64"));
    return;
  }
  std::uint32_t next = subnet.network() + 1;
  for (Node& node : config_.nodes) {
    if (fixed(node) || !node.ip.empty()) continue;
    while (taken.contains(next)) ++next;
    taken.emplace(next, &node);
    node.ip = subnet.text(next);
  }
}

void Reader::read_workload() {
  auto table = root_.table("workload");
  if (!table) return;
  Workload workload;
  table->require("command");
  read_command(*table, "command", Where::run, workload.command);
  table->duration("timeout", workload.timeout_ns, kMs, kDay);
  table->finish();
  config_.workload = std::move(workload);
}

void Reader::read_oracle() {
  auto table = root_.table("oracle");
  if (!table) return;
  Oracle oracle;
  table->require("command");
  read_command(*table, "command", Where::run, oracle.command);
  std::size_t when = 0;
  if (table->one_of("when", {"end", "poll"}, when)) oracle.when = when == 0 ? OracleWhen::end : OracleWhen::poll;
  table->duration("every", oracle.every_ns, 10 * kMs, kHour);
  table->duration("timeout", oracle.timeout_ns, kMs, kDay);
  table->finish();
  config_.oracle = std::move(oracle);
}

void Reader::read_options() {
  if (auto table = root_.table("profile")) {
    table->real("infrequent_below", config_.profile.infrequent_below, 0, 1'000'000);
    table->finish();
  }
  if (auto table = root_.table("trace")) {
    TraceOptions& trace = config_.trace;
    table->integer("window", trace.window, 1000, 16'000'000);
    table->size("memory", trace.memory, std::uint64_t{1} << 20, std::uint64_t{64} << 30);
    table->duration("network_delay", trace.network_delay_ns, 10 * kMs, kHour);
    table->duration("pause", trace.pause_ns, 10 * kMs, kHour);
    if (table->strings("noise", trace.noise)) {
      if (const auto noise = kernel::noise_table(trace.noise); !noise)
        table->wrong("noise", noise.error().message, noise.error().hint);
    }
    table->finish();
  }
  if (auto table = root_.table("diagnose")) {
    DiagnoseOptions& diagnose = config_.diagnose;
    table->real("target_rate", diagnose.target_rate, 0, 1);
    table->integer("confirm_runs", diagnose.confirm_runs, 1, 1000);
    table->integer("syscall_attempts", diagnose.syscall_attempts, 1, 10'000);
    table->integer("max_runs", diagnose.max_runs, 1, 100'000);
    table->integer("jobs", diagnose.jobs, 1, 64);
    table->string("engine", diagnose.engine);
    table->integer("workers", diagnose.workers, 1, 1000);
    table->strings("hosts", diagnose.hosts);
    table->string("worker", diagnose.worker);
    table->strings("engine_options", diagnose.engine_options);
    table->strings("exclude", diagnose.exclude);
    table->duration("worker_silence", diagnose.worker_silence_ns, 1000 * kMs, kDay);
    table->integer("seed", diagnose.seed, 0, std::numeric_limits<std::int64_t>::max());
    table->boolean("simplify", diagnose.simplify);
    const std::string_view levels = "a list of the levels 1, 2, 3 such as [1, 2]";
    if (const toml::Value* list = table->get("levels", toml::Type::array, levels)) {
      std::vector<int> chosen;
      if (list->items.empty()) table->wrong("levels", fmt::format("the list is empty, {} is needed", levels));
      for (const toml::Value& item : list->items) {
        if (item.type != toml::Type::integer || item.integer < 1 || item.integer > 3) {
          problems_.add(item.place, fmt::format("diagnose.levels: {} was found, {} is needed", toml::quoted(item), levels));
          break;
        }
        if (std::find(chosen.begin(), chosen.end(), item.integer) != chosen.end()) {
          problems_.add(item.place, fmt::format("diagnose.levels: '{}' is there twice", item.integer));
          break;
        }
        chosen.push_back(static_cast<int>(item.integer));
      }
      diagnose.levels = std::move(chosen);
    }
    table->finish();
  }
  if (auto table = root_.table("inject")) {
    std::size_t backend = 0;
    if (table->one_of("syscall", {"auto", "override", "seccomp"}, backend))
      config_.inject.syscall =
          std::array{Backend::automatic, Backend::override_return, Backend::seccomp}[backend];
    table->finish();
  }
}

void Reader::read_log_forms() {
  for (toml::Table& table : root_.tables("log", "a list of tables ([[log]])")) {
    logs::CustomForm form;
    table.string("files", form.files);
    if (table.string("pattern", form.pattern))
      if (const std::string problem = logs::pattern_problem(form.pattern); !problem.empty())
        table.wrong("pattern", fmt::format("{} {}", toml::quoted(form.pattern), problem),
                    "such as '^(?P<time>[^|]*)\\|(?P<level>[^|]*)\\|(?P<message>.*)$'");
    if (table.string("time", form.time))
      if (const std::string problem = logs::time_form_problem(form.time); !problem.empty())
        table.wrong("time", fmt::format("{} {}", toml::quoted(form.time), problem), "such as \"%d.%m.%Y %H:%M:%S\"");
    std::string zone;
    if (table.string("zone", zone)) {
      form.zone_ns = logs::read_zone(zone);
      if (!form.zone_ns) table.wrong("zone", fmt::format("{} is not a time zone such as \"+02:00\" or \"UTC\"", toml::quoted(zone)));
    }
    table.finish();
    if (form.pattern.empty() && !form.time.empty() && !table.has("pattern"))
      table.wrong("time", "'time' says how the group 'time' of a 'pattern' is read, and there is no 'pattern'");
    if (form.pattern.empty() && !form.zone_ns && !problems_.any())
      problems_.add_missing(table.place(), "log: one of 'pattern', 'zone' is missing");
    config_.log_forms.push_back(std::move(form));
  }
}

}  // namespace

const Node* Config::find(std::string_view node) const {
  const auto it = std::find_if(nodes.begin(), nodes.end(), [&](const Node& one) { return one.name == node; });
  return it == nodes.end() ? nullptr : &*it;
}

std::vector<std::string> Config::node_names() const {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const Node& node : nodes) names.push_back(node.name);
  return names;
}

Result<Config> read_config(const std::filesystem::path& path) {
  ROSE_TRY(const std::string text, read_file(path, toml::kMostBytes));
  ROSE_TRY(Config config, parse_config(text, path.string(), path.parent_path()));
  config.file = path;
  return config;
}

Result<Config> parse_config(std::string_view text, std::string_view name, const std::filesystem::path& directory) {
  ROSE_TRY(const toml::Value root, toml::parse(text, name));
  return Reader(root, name, directory).read();
}

std::string client_address(const Deployment& deployment) {
  const Subnet subnet = subnet_of(deployment);
  return subnet.text(subnet.client());
}

int prefix_length(const Deployment& deployment) { return subnet_of(deployment).prefix(); }

}  // namespace rose::config
