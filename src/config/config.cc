#include "config/config.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "config/compose.h"
#include "config/config_reader.h"
#include "config/subnet.h"
#include "kernel/noise.h"
#include "knowledge/meanings.h"
#include "logs/line/time_form.h"
#include "logs/line/times.h"

namespace rose::config {

ConfigReader::ConfigReader(const toml::Value& root, std::string_view file, const std::filesystem::path& directory)
    : problems_(file), root_(root, "", problems_) {
  config_.file = std::string(file);
  std::error_code error;
  config_.directory = std::filesystem::absolute(directory.empty() ? "." : directory, error).lexically_normal();
  if (!config_.directory.has_filename() && config_.directory.has_parent_path())
    config_.directory = config_.directory.parent_path();  // "/x/" and "/x" are the same folder
  config_.name = config_.directory.filename().string();
}

Result<Config> ConfigReader::read() {
  root_.string("name", config_.name);
  read_deployment();
  read_nodes();
  read_workload();
  read_oracle();
  read_options();
  read_log_forms();
  read_meanings(root_, config_.meanings);
  if (!config_.nodes.empty()) check_named_nodes();
  root_.finish();
  ROSE_CHECK(problems_.result());
  if (compose_problem_) return Unexpected(std::move(*compose_problem_));
  return std::move(config_);
}

bool ConfigReader::check_placeholders(const std::string& text, toml::Place place, const std::string& key, Where where) {
  std::vector<std::string> named;
  if (auto problem = placeholder_problem(text, where, named)) {
    problems_.add(place, fmt::format("{}: {}", key, problem->what), std::move(problem->hint));
    return false;
  }
  for (std::string& name : named) named_nodes_.push_back({place, key, std::move(name)});
  return true;
}

bool ConfigReader::read_command(toml::Table& table, std::string_view key, Where where, Command& into) {
  // `rose init` writes "?" for values that it cannot determine. The message asks for the missing value instead of
  // reporting a wrong one.
  if (const toml::Value* value = table.get(key);
      value != nullptr && value->type == toml::Type::string && value->text == "?") {
    table.wrong(key, "the question mark that 'rose init' wrote is still there, a command is needed",
                "the comment above it explains what is needed, with an example");
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

bool ConfigReader::read_command(toml::Table& table, std::string_view key, Where where, std::optional<Command>& into) {
  Command command;
  if (!read_command(table, key, where, command)) return false;
  into = std::move(command);
  return true;
}

void ConfigReader::read_deployment() {
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
        log::warning("{}:{}:{}: deployment.subnet has no effect with network = \"host\"", problems_.file(),
                     subnet_place_.line, subnet_place_.column);
    }
  }
  read_engine(*table);
  read_services(*table);
  read_command(*table, "setup", Where::run, config_.deployment.setup);
  read_command(*table, "teardown", Where::run, config_.deployment.teardown);
  read_command(*table, "form", Where::run, config_.deployment.form);
  table->finish();
}

// Reads `engine`: a name ("podman"), or a name with options (["podman", "--storage-driver=vfs"]).
void ConfigReader::read_engine(toml::Table& table) {
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
  else if (std::any_of(engine.begin(), engine.end(),
                       [](const std::string& word) { return word.find_first_of("\t\n") != std::string::npos; }))
    table.wrong("engine", "a word with a tab or line break is not accepted");
  else if (engine.front().find('/') != std::string::npos)
    engine.front() = (config_.directory / engine.front()).lexically_normal().string();
}

// Reads compose_env = { TAG = "7" }. Returns false after an error.
bool ConfigReader::read_compose_env(toml::Table& table, ComposeChoice& choice) {
  auto variables = table.table("compose_env");
  if (!variables) return !table.has("compose_env");
  bool good = true;
  for (const toml::Member& member : table.get("compose_env")->members) {
    if (member.value.type == toml::Type::string && member.key.find('=') == std::string::npos) {
      choice.variables.emplace_back(member.key, member.value.text);
      continue;
    }
    problems_.add(
        member.value.place,
        fmt::format("{}: {} was found, a string is needed", variables->path(member.key), toml::quoted(member.value)),
        "values of variables are strings: write them in quotes");
    good = false;
  }
  return good;
}

void ConfigReader::read_services(toml::Table& table) {
  const toml::Value* value = table.get("compose");
  ComposeChoice choice;
  table.strings("compose_profiles", choice.profiles);
  if (!read_compose_env(table, choice)) return;
  for (const char* key : {"compose_profiles", "compose_env"})
    if (value == nullptr && table.has(key))
      table.wrong(key, fmt::format("'{}' is for a Compose file, but there is no 'compose'", key));
  if (value == nullptr) return;
  std::vector<std::string> names;
  if (value->type == toml::Type::array) {
    if (!table.strings("compose", names)) return;
    if (names.empty()) table.wrong("compose", "the list is empty, at least one Compose file is needed");
  } else if (std::string name; table.string("compose", name)) {
    names.push_back(name);
  }
  if (names.empty()) return;
  std::vector<std::filesystem::path> files;
  for (const std::string& name : names) {
    files.push_back((config_.directory / name).lexically_normal());
    std::error_code unreadable;
    if (std::filesystem::exists(files.back(), unreadable) || unreadable) continue;
    table.wrong("compose", fmt::format("{} does not exist", files.back().string()),
                "relative paths are relative to the configuration file's folder");
    return;
  }
  const std::filesystem::path file = files.front();
  config_.deployment.compose = file;
  auto services = read_compose_files(files, choice);
  if (!services) {
    compose_problem_ = std::move(services).error();
    return;
  }
  // A command may read its configuration several times, so each warning is printed once.
  for (const std::string& word : services->warnings) log::warn_once(fmt::format("{}: {}", file.string(), word));
  for (const std::string& word : services->words)
    if (const std::string text = fmt::format("{}: {}", file.string(), word); log::is_first_report(text))
      log::debug("{}", text);
  take_subnet(table, services->subnet);
  for (Node& node : services->nodes) {
    if (node.container->host_network && config_.deployment.network != Network::host)
      table.wrong("compose", fmt::format("line {}: service '{}' has 'network_mode: host', but each node has its own "
                                         "network here; set network = \"host\" in [deployment] if its services need it",
                                         node.line, node.name));
    // Nobody in the machine's network has the address that the file gives a service in a network of its own.
    if (config_.deployment.network == Network::host) node.ip.clear();
    if (const std::string problem = name_problem(node.name, true); !problem.empty())
      table.wrong("compose", fmt::format("line {}: {}", node.line, problem));
    places_.push_back({table.place("compose"), table.place("compose")});
    config_.nodes.push_back(std::move(node));
  }
}

// Uses the subnet of the Compose file. The nodes then keep the addresses that the file gives them, so commands that
// contain these addresses still work.
void ConfigReader::take_subnet(toml::Table& table, const std::string& subnet) {
  if (subnet.empty() || table.has("subnet") || config_.deployment.network == Network::host) return;
  if (const auto parsed = parse_subnet(subnet); !parsed)
    table.wrong("compose", fmt::format("its subnet: {}", parsed.error()));
  else config_.deployment.subnet = subnet;
}

void ConfigReader::read_workload() {
  auto table = root_.table("workload");
  if (!table) return;
  Workload workload;
  table->require("command");
  read_command(*table, "command", Where::run, workload.command);
  table->duration("timeout", workload.timeout_ns, kMillisecond, kDay);
  table->finish();
  config_.workload = std::move(workload);
}

void ConfigReader::read_oracle() {
  auto table = root_.table("oracle");
  if (!table) return;
  Oracle oracle;
  table->require("command");
  read_command(*table, "command", Where::run, oracle.command);
  std::size_t when = 0;
  if (table->one_of("when", {"end", "poll"}, when)) oracle.when = when == 0 ? OracleWhen::end : OracleWhen::poll;
  table->duration("every", oracle.every_ns, 10 * kMillisecond, kHour);
  table->duration("timeout", oracle.timeout_ns, kMillisecond, kDay);
  table->finish();
  config_.oracle = std::move(oracle);
}

void ConfigReader::read_options() {
  if (auto table = root_.table("profile")) {
    table->real("infrequent_below", config_.profile.infrequent_below, 0, 1'000'000);
    table->finish();
  }
  if (auto table = root_.table("trace")) {
    TraceOptions& trace = config_.trace;
    table->integer("window", trace.window, 1000, 16'000'000);
    table->size("memory", trace.memory, std::uint64_t{1} << 20, std::uint64_t{64} << 30);
    table->duration("network_delay", trace.network_delay_ns, 10 * kMillisecond, kHour);
    table->duration("pause", trace.pause_ns, 10 * kMillisecond, kHour);
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
    if (const toml::Value* jobs = table->get("jobs"); jobs != nullptr) {
      if (jobs->type == toml::Type::string && jobs->text == "auto") diagnose.jobs.reset();
      else if (jobs->type == toml::Type::string)
        table->wrong("jobs",
                     fmt::format("{} was found, \"auto\" or an integer from 1 to 64 is needed", toml::quoted(*jobs)));
      else table->integer("jobs", diagnose.jobs.emplace(1), 1, 64);
    }
    table->string("engine", diagnose.engine);
    table->integer("workers", diagnose.workers, 1, 1000);
    table->strings("hosts", diagnose.hosts);
    table->string("worker", diagnose.worker);
    table->strings("engine_options", diagnose.engine_options);
    table->strings("exclude", diagnose.exclude);
    table->duration("worker_silence", diagnose.worker_silence_ns, 1000 * kMillisecond, kDay);
    table->integer("seed", diagnose.seed, 0, std::numeric_limits<std::int64_t>::max());
    table->boolean("simplify", diagnose.simplify);
    const std::string_view levels = "a list of the levels 1, 2, 3 such as [1, 2]";
    if (const toml::Value* list = table->get("levels", toml::Type::array, levels)) {
      std::vector<int> chosen;
      if (list->items.empty()) table->wrong("levels", fmt::format("the list is empty, {} is needed", levels));
      for (const toml::Value& item : list->items) {
        if (item.type != toml::Type::integer || item.integer < 1 || item.integer > 3) {
          problems_.add(item.place,
                        fmt::format("diagnose.levels: {} was found, {} is needed", toml::quoted(item), levels));
          break;
        }
        if (std::find(chosen.begin(), chosen.end(), item.integer) != chosen.end()) {
          problems_.add(item.place, fmt::format("diagnose.levels: '{}' occurs twice", item.integer));
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
      config_.inject.syscall = std::array{Backend::automatic, Backend::override_return, Backend::seccomp}[backend];
    table->finish();
  }
}

void ConfigReader::read_log_forms() {
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
      if (!form.zone_ns)
        table.wrong("zone", fmt::format("{} is not a time zone such as \"+02:00\" or \"UTC\"", toml::quoted(zone)));
    }
    table.finish();
    if (form.pattern.empty() && !form.time.empty() && !table.has("pattern"))
      table.wrong("time", "'time' describes the group 'time' of a 'pattern', but there is no 'pattern'");
    if (form.pattern.empty() && !form.zone_ns && !problems_.any())
      problems_.add_missing(table.place(), "log: one of 'pattern', 'zone' is missing");
    config_.log_forms.push_back(std::move(form));
  }
}

const Node* Config::find(std::string_view node) const {
  const auto it =
      std::find_if(nodes.begin(), nodes.end(), [&](const Node& other_node) { return other_node.name == node; });
  return it == nodes.end() ? nullptr : &*it;
}

std::vector<std::string> Config::node_names() const {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const Node& node : nodes) names.push_back(node.name);
  return names;
}

std::size_t Config::network_owner(std::size_t node) const {
  if (nodes[node].network_of.empty()) return node;
  const Node* owner = find(nodes[node].network_of);
  return owner == nullptr ? node : static_cast<std::size_t>(owner - nodes.data());
}

std::vector<std::size_t> Config::network_members(std::size_t node) const {
  std::vector<std::size_t> members;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (network_owner(i) == network_owner(node)) members.push_back(i);
  return members;
}

Result<Config> read_config(const std::filesystem::path& path) {
  Result<std::string> text = read_file(path, toml::kMostBytes);
  std::error_code unreadable;
  if (!text && !std::filesystem::exists(path, unreadable))
    text.error().hint =
        "name the configuration of the test deployment with -c; 'rose init' writes one for a running system";
  if (!text) return Unexpected(std::move(text).error());
  ROSE_TRY(Config config, parse_config(*text, path.string(), path.parent_path()));
  config.file = path;
  ROSE_CHECK(read_knowledge(config.directory / kKnowledgeFolder, config.meanings));
  knowledge::Meanings::use(config.meanings);
  return config;
}

Result<Config> parse_config(std::string_view text, std::string_view name, const std::filesystem::path& directory) {
  ROSE_TRY(const toml::Value root, toml::parse(text, name));
  return ConfigReader(root, name, directory).read();
}

std::string client_address(const Deployment& deployment) {
  const Subnet subnet = subnet_of(deployment);
  return subnet.text(subnet.client());
}

int prefix_length(const Deployment& deployment) { return subnet_of(deployment).prefix(); }

}  // namespace rose::config
