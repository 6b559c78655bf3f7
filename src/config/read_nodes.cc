// Reads a [[node]] table.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/address.h"
#include "base/ascii.h"
#include "base/program.h"
#include "base/regex.h"
#include "base/text.h"
#include "config/config_reader.h"
#include "config/image_name.h"

namespace rose::config {
namespace {

constexpr std::size_t kMostNodes = 1024;
constexpr std::size_t kMostName = 63;

// Makes the relative source of a volume absolute. Returns what is wrong with the volume, if anything.
std::optional<std::string> resolve_volume(std::string& text, const std::filesystem::path& directory) {
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3 || parts[0].empty())
    return "is not a volume: SOURCE:TARGET or SOURCE:TARGET:OPTIONS is needed";
  if (!parts[1].starts_with('/'))
    return fmt::format("has '{}' as its path in the container, an absolute path is needed", parts[1]);
  if (parts.size() == 3)
    for (const std::string& option : split(parts[2], ','))
      if (std::string problem = volume_option_problem(option); !problem.empty()) return "has " + problem;
  std::string source = parts[0];
  if (source.starts_with("${")) {
    if (!source.starts_with("${dir}") && !source.starts_with("${run_dir}") && !source.starts_with("${config_dir}"))
      return "begins with a placeholder that is not a folder: use ${dir}, ${run_dir} or ${config_dir}";
    if (source.find("/..") != std::string::npos) return "leaves the folder that it begins with";
  } else if (source.starts_with('.') || source.find('/') != std::string::npos) {
    source = (directory / source).lexically_normal().string();
  } else if (!std::all_of(source.begin(), source.end(), is_name_char)) {
    return fmt::format("has the source '{}': a path or a volume name of letters, digits, '_', '.' and '-' is needed",
                       source);
  }
  text = source + text.substr(parts[0].size());
  return std::nullopt;
}

// Finds the file for a name without a slash: first in the folder `beside` (that of the configuration; empty if the name
// is that of a command), then in the node's PATH. Returns the bare name if this machine has no such file.
std::string locate(const std::string& name, const std::filesystem::path& beside, const Node& node) {
  std::error_code ignored;
  if (!beside.empty() && std::filesystem::is_regular_file(beside / name, ignored)) return (beside / name).string();
  const auto own = node.env.find("PATH");
  std::string found = own != node.env.end() ? program_in(own->second, name) : program_in_path(name);
  return found.empty() ? name : found;
}

}  // namespace

std::string volume_option_problem(std::string_view option) {
  for (const std::string_view known : {"ro", "rw", "z", "Z", "nocopy"})
    if (option == known) return {};
  return fmt::format("the option '{}', accepted are ro, rw, z, Z and nocopy", option);
}

std::string name_problem(const std::string& name, bool service) {
  const bool shape = name.size() <= kMostName && (is_alpha(name[0]) || is_digit(name[0])) &&
                     std::all_of(name.begin(), name.end(), is_name_char);
  if (!shape)
    return fmt::format(
        "{} is not a node name: up to {} letters, digits, '_', '.', '-' are accepted, the first a "
        "letter or digit",
        toml::quoted(name), kMostName);
  if (name == "client" && !service) return "'client' is reserved for rose's own namespace, another name is needed";
  return {};
}

static void read_exceptions(toml::Table& table, Node& node) {
  if (!table.boolean("exceptions", node.exceptions) || !node.exceptions) return;
  if (node.functions.empty() && node.sources.empty())
    table.wrong(
        "exceptions",
        "'exceptions' applies to the methods in `functions` or `sources`: name some, as in functions = [\"org.x.*\"]");
}

// Reads the settings of a [[node]] table for a Compose service. These are settings that Compose does not have.
void ConfigReader::add_to_service(toml::Table& table, Node& node, NodePlaces& places) {
  std::string name;
  table.string("name", name);
  if (table.string("ip", node.ip)) {
    places.ip = table.place("ip");
    if (!parse_address(node.ip))
      table.wrong("ip", fmt::format("{} is not an IP address such as \"10.77.0.1\"", toml::quoted(node.ip)));
    if (!node.network_of.empty())
      table.wrong("ip", fmt::format("'{}' shares the network and the address of '{}'", node.name, node.network_of),
                  fmt::format("set the address of '{}'", node.network_of));
  }
  read_env(table, node);
  read_working_dir(table, node);
  read_ready(table, node);
  read_binaries(table, node);
  table.strings("sources", node.sources);
  table.strings("functions", node.functions);
  read_exceptions(table, node);
  read_logs(table, node);
  table.finish();
}

void ConfigReader::read_nodes() {
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
    if (!problems_.any()) problems_.add(root_.place("node"), "node: the list is empty, at least one node is needed");
    return;
  }
  if (compose_problem_) return;
  for (toml::Table& table : tables) read_node(table);
  if (problems_.any()) return;
  check_names();
  if (config_.deployment.network == Network::netns && !problems_.any()) assign_addresses();
}

void ConfigReader::read_node(toml::Table& table) {
  if (const toml::Value* name = table.get("name"); name != nullptr && name->type == toml::Type::string) {
    for (std::size_t i = 0; i < config_.nodes.size(); ++i) {
      Node& service = config_.nodes[i];
      if (service.name != name->text || !service.container || !service.container->service) continue;
      if (!named_services_.insert(service.name).second) {
        table.wrong("name", fmt::format("'{}' occurs twice", service.name));
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
    table.wrong("attach", fmt::format("'{}' and 'attach' were both found, exactly one is needed",
                                      has_command ? "command" : "image"));
  else if (!has_command && !has_attach && !has_image)
    problems_.add_missing(
        table.place(), "node: 'command' is missing",
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
  read_working_dir(table, node);
  if (has_attach)
    for (const std::string_view key :
         {"env", "restart", "user", "begins_as_root", "working_dir", "record", "record_libc"})
      if (table.has(key))
        table.wrong(key, fmt::format("'{}' is for nodes with a 'command', rose does not start attached nodes", key));
  read_binaries(table, node);
  table.strings("sources", node.sources);
  table.strings("functions", node.functions);
  read_exceptions(table, node);
  read_logs(table, node);
  const bool says_record = table.boolean("record", node.record);
  if (says_record && !node.record && table.has("record_libc"))
    table.wrong("record_libc", "'record' is false, but 'record_libc' makes a recording as well");
  read_record_libc(table, node);
  if (node.record && node.env.contains("ROSE_RR") && !says_record)
    table.wrong("record_libc", "'record_libc' sets ROSE_RR, which 'env' sets too: remove one of them");
  if (says_record && node.record && node.env.contains("ROSE_RR"))
    table.wrong("record", "'record' sets ROSE_RR, which 'env' sets too: remove one of them");
  table.finish();
  places_.push_back({table.place("name"), table.place("ip")});
  config_.nodes.push_back(std::move(node));
}

void ConfigReader::read_record_libc(toml::Table& table, Node& node) {
  if (!table.strings("record_libc", node.record_libc)) return;
  const toml::Value& list = *table.get("record_libc");
  static constexpr std::string_view kSources[] = {"time", "random", "pid", "hostname", "ready"};
  for (std::size_t i = 0; i < node.record_libc.size(); ++i)
    if (std::find(std::begin(kSources), std::end(kSources), node.record_libc[i]) == std::end(kSources))
      problems_.add(list.items[i].place,
                    fmt::format("{}[{}]: {} is not a source that can be recorded", table.path("record_libc"), i,
                                toml::quoted(node.record_libc[i])),
                    fmt::format("known are {}", fmt::join(kSources, ", ")));
  if (node.container)
    table.wrong("record_libc",
                "'record_libc' is only for programs of this machine: a container may have another C library");
  node.record = node.record || !node.record_libc.empty();
}

void ConfigReader::read_user(toml::Table& table, Node& node) {
  const bool named = table.string("user", node.user);
  if (table.boolean("begins_as_root", node.begins_as_root) && node.begins_as_root) {
    if (node.container) table.wrong("begins_as_root", "'begins_as_root' is not for nodes with an 'image'");
    else if (!named)
      table.wrong("begins_as_root", "'begins_as_root' needs the 'user' to which the command changes by itself");
  }
  if (!named) return;
  const auto letters = [](std::string_view text) { return std::all_of(text.begin(), text.end(), is_name_char); };
  if (node.container) {
    const std::size_t colon = node.user.find(':');
    const std::string_view user = std::string_view(node.user).substr(0, colon);
    const std::string_view group =
        colon == std::string::npos ? std::string_view("x") : std::string_view(node.user).substr(colon + 1);
    if (user.empty() || group.empty() || !letters(user) || !letters(group))
      table.wrong("user", fmt::format("{} is not a user of a container such as \"redis\", \"999\" or \"999:999\"",
                                      toml::quoted(node.user)));
  } else if (node.user.size() > 32 || !(is_alpha(node.user[0]) || node.user[0] == '_') || !letters(node.user)) {
    table.wrong("user", fmt::format("{} is not a user name such as \"nobody\"", toml::quoted(node.user)));
  }
}

void ConfigReader::read_working_dir(toml::Table& table, Node& node) {
  if (!table.string("working_dir", node.working_dir)) return;
  const std::filesystem::path path = std::filesystem::path(node.working_dir).lexically_normal();
  const std::string shown = toml::quoted(node.working_dir);
  if (node.working_dir.find("${") != std::string::npos) {
    table.wrong("working_dir", fmt::format("{} has a placeholder, which is not accepted here", shown));
  } else if (node.container) {
    if (!path.is_absolute())
      table.wrong("working_dir", fmt::format("{} is not a path in a container: an absolute path is needed", shown));
  } else if (path.empty() || path.is_absolute() || *path.begin() == "..") {
    table.wrong("working_dir", fmt::format("{} is not a folder in the node's folder, such as \"work\"", shown),
                "each run has its own folder, which belongs to the node alone");
  }
  node.working_dir = path == "." ? "" : path.string();
}

void ConfigReader::read_container(toml::Table& table, Node& node) {
  Container container;
  if (table.string("image", container.image))
    if (!is_image_name(container.image))
      table.wrong(
          "image",
          fmt::format("{} is not the name of an image such as \"docker.io/library/redis:7\" or \"localhost/kv:1\"",
                      toml::quoted(container.image)));
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
      if (alias.empty() || alias.size() > 253 || !std::all_of(alias.begin(), alias.end(), [](char c) {
            return is_alpha(c) || is_digit(c) || c == '.' || c == '-' || c == '_';
          }))
        table.wrong("aliases", fmt::format("{} is not a host name such as \"db.example.org\"", toml::quoted(alias)));
  if (table.has("image")) {
    node.container = std::move(container);
    return;
  }
  for (const std::string_view key : {"volumes", "entrypoint", "options", "aliases"})
    if (table.has(key)) table.wrong(key, fmt::format("'{}' is for nodes with an 'image'", key));
}

// Reads the options for the engine, and refuses those that rose itself sets.
void ConfigReader::read_engine_options(toml::Table& table, Container& container) {
  if (!table.strings("options", container.options) || container.options.empty()) return;
  const toml::Value& list = *table.get("options");
  if (!container.options.front().starts_with('-'))
    problems_.add(list.items[0].place,
                  fmt::format("{}[0]: {} is not an option of the engine's 'create'", table.path("options"),
                              toml::quoted(container.options.front())),
                  R"(each word separately, such as ["--cap-add", "NET_ADMIN"])");
  for (std::size_t i = 0; i < container.options.size(); ++i) {
    const std::string_view option = std::string_view(container.options[i]).substr(0, container.options[i].find('='));
    for (const std::string_view ours : {"--name", "--network", "--net", "--entrypoint", "--rm", "--detach", "-d",
                                        "--log-driver", "--pod", "--restart", "--hostname", "-h"})
      if (option == ours)
        problems_.add(list.items[i].place,
                      fmt::format("{}[{}]: {} is set by rose itself", table.path("options"), i,
                                  toml::quoted(container.options[i])),
                      "other keys set the names, networks, logs and restarts of nodes");
  }
  // --add-host is read here instead of being passed on, because rose writes /etc/hosts itself.
  for (std::size_t i = 0; i < container.options.size();) {
    constexpr std::string_view kAddHost = "--add-host";
    const std::string& option = container.options[i];
    const bool apart = option == kAddHost && i + 1 < container.options.size();
    if (!apart && !option.starts_with(std::string(kAddHost) + "=")) {
      ++i;
      continue;
    }
    const std::string entry = apart ? container.options[i + 1] : option.substr(kAddHost.size() + 1);
    const std::size_t colon = entry.find_first_of(":=");
    const std::string address = colon == std::string::npos ? "" : entry.substr(colon + 1);
    if (colon == 0 || (address != kHostGateway && !parse_address(address)))
      problems_.add(table.place("options"),
                    fmt::format("{}: {} is not NAME:ADDRESS", table.path("options"), toml::quoted(entry)));
    container.hosts.emplace_back(entry.substr(0, colon), address);
    const auto at = container.options.begin() + static_cast<std::ptrdiff_t>(i);
    container.options.erase(at, at + (apart ? 2 : 1));
  }
}

void ConfigReader::read_env(toml::Table& table, Node& node) {
  auto env = table.table("env");
  if (!env) return;
  for (const toml::Member& member : table.get("env")->members) {
    const std::string& key = member.key;
    const std::string path = env->path(key);
    const bool shape = !key.empty() && !is_digit(key[0]) && std::all_of(key.begin(), key.end(), [](char c) {
      return is_alpha(c) || is_digit(c) || c == '_' || c == '.' || c == '-';
    });
    if (!shape) {
      problems_.add(member.place,
                    fmt::format("node.env: {} is not the name of a variable: letters, digits, '_', '.' and '-' are "
                                "accepted, the first not a digit",
                                toml::quoted(key)));
    } else if (member.value.type != toml::Type::string) {
      problems_.add(member.value.place,
                    fmt::format("{}: {} was found, a string is needed", path, toml::quoted(member.value)),
                    "values of variables are strings: write them in quotes");
    } else if (member.value.text.find('\0') != std::string::npos) {
      problems_.add(member.value.place, fmt::format("{}: {} contains a NUL character, which is not accepted", path,
                                                    toml::quoted(member.value)));
    } else if (check_placeholders(member.value.text, member.value.place, path, Where::node)) {
      node.env[key] = member.value.text;
    }
  }
}

void ConfigReader::read_ready(toml::Table& table, Node& node) {
  auto ready_table = table.table("ready");
  if (!ready_table) return;
  Ready ready;
  std::uint16_t port = 0;
  if (ready_table->integer("tcp", port, 1, 65535)) ready.tcp = port;
  if (ready_table->string("log", ready.log))
    if (const std::string problem = Regex(*ready.log).problem(); !problem.empty())
      ready_table->wrong("log",
                         fmt::format("{} is not a regular expression (RE2): {}", toml::quoted(*ready.log), problem));
  read_command(*ready_table, "command", Where::node, ready.command);
  ready_table->duration("timeout", ready.timeout_ns, kMillisecond, kDay);
  ready_table->finish();
  std::vector<std::string_view> found;
  for (const std::string_view key : {"tcp", "log", "command"})
    if (ready_table->has(key)) found.push_back(key);
  if (found.empty()) problems_.add_missing(ready_table->place(), "node.ready: needs one of 'tcp', 'log', 'command'");
  else if (found.size() > 1)
    problems_.add(
        ready_table->place(),
        fmt::format("node.ready: '{}' and '{}' were both found, exactly one of 'tcp', 'log', 'command' is needed",
                    found[0], found[1]));
  node.ready = std::move(ready);
}

void ConfigReader::read_attach(toml::Table& table, Node& node) {
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

void ConfigReader::read_binaries(toml::Table& table, Node& node) {
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
    // These paths refer to the image; deploy/image_files reads them from there.
    node.binaries = std::move(names);
    return;
  }
  for (std::string& name : names) {
    auto known = with_config_dir(name, config_.directory.native());
    if (!known) {
      // A program that exists only during a run cannot be inspected beforehand.
      if (value != nullptr)
        table.wrong("binary",
                    fmt::format("{} has a placeholder, only ${{config_dir}} is accepted here", toml::quoted(name)));
      continue;
    }
    name = std::move(*known);
    if (name.find('/') != std::string::npos) name = (config_.directory / name).lexically_normal().string();
    else name = locate(name, value != nullptr ? config_.directory : std::filesystem::path{}, node);
    node.binaries.push_back(name);
  }
}

// Log files must be in the node's folder, which each run has anew. A file outside it would contain lines of other runs.
void ConfigReader::read_logs(toml::Table& table, Node& node) {
  if (!table.strings("logs", node.logs)) return;
  const toml::Value& list = *table.get("logs");
  for (std::size_t i = 0; i < node.logs.size(); ++i) {
    const std::filesystem::path file = std::filesystem::path(node.logs[i]).lexically_normal();
    const bool inside = file.is_relative() && file.has_filename() && file != "." && *file.begin() != "..";
    if (!inside || node.logs[i].find("${") != std::string::npos)
      problems_.add(
          list.items[i].place,
          fmt::format("{}: {} is not a file in the node's folder, such as \"server.log\" or \"log/server.log\"",
                      table.path("logs"), toml::quoted(node.logs[i])),
          "stdout.log and stderr.log are read anyway");
    node.logs[i] = file.string();
  }
}

}  // namespace rose::config
