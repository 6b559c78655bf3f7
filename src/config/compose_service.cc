// Reads one service of a Compose file.
#include <algorithm>
#include <charconv>
#include <optional>

#include "base/address.h"
#include "base/ascii.h"
#include "base/file.h"
#include "base/text.h"
#include "config/compose_reader.h"
#include "config/config_reader.h"

namespace rose::config {
namespace {

constexpr int kAlways = 1'000'000;
constexpr std::int64_t kEngineDelay = 100'000'000;  // delay before an engine's first restart
constexpr int kMostReplicas = 64;

// Makes a part of an image's name from `text`. Such names consist of lower-case letters and digits, so each sequence of
// other characters becomes a dash.
std::string image_part(std::string_view text) {
  std::string part;
  for (const char c : text) {
    const char low = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    const bool plain = is_digit(low) || (low >= 'a' && low <= 'z');
    if (plain) part += low;
    else if (!part.empty() && part.back() != '-') part += '-';
  }
  while (part.ends_with('-')) part.pop_back();
  return part.empty() ? "x" : part;
}

bool is_propagation(std::string_view option) {
  if (option.starts_with('r') && option != "rw" && option != "ro") option.remove_prefix(1);
  return option == "private" || option == "shared" || option == "slave";
}

constexpr const char* kSetVariable =
    "set the variable with [deployment] compose_env or in the environment, or add it to .env beside the Compose file";

bool is_empty(const Yaml& value) {
  return value.kind == Yaml::Kind::null || (value.is_list() && value.items.empty()) ||
         (value.is_map() && value.members.empty());
}

// These options set the consistency of shared folders on macOS. They have no effect on Linux.
bool means_nothing_here(std::string_view option) {
  return option == "cached" || option == "delegated" || option == "consistent";
}

}  // namespace

ComposeReader::Keys ComposeReader::service_keys(Service& service) {
  Keys keys = run_keys(service);
  keys.merge(option_keys(service));
  keys.merge(keys_without_effect());
  return keys;
}

ComposeReader::Keys ComposeReader::run_keys(Service& service) {
  Container& container = service.container();
  Node& node = service.node;
  return {
      {"image",
       [this, &container](const Yaml& member, const std::string& key) {
         container.image = text(member, key);
         if (container.image.empty())
           refuse(member, fmt::format("'image' is empty{}", without_value(member)), kSetVariable);
       }},
      {"build", [this, &container](const Yaml& member, const std::string&) { read_build(member, container); }},
      {"command",
       [&node](const Yaml& member, const std::string& key) {
         if (member.kind != Yaml::Kind::null) node.command = command(member, key);
       }},
      {"entrypoint",
       [&container](const Yaml& member, const std::string& key) {
         if (member.kind != Yaml::Kind::null) container.entrypoint = command(member, key);
       }},
      {"environment", [this, &service](const Yaml& member, const std::string&) { read_environment(member, service); }},
      {"env_file", [&service](const Yaml& member, const std::string&) { service.env_files = &member; }},
      {"volumes",
       [this, &service](const Yaml& member, const std::string&) {
         if (!member.is_list()) refuse(member, "'volumes': a list is needed");
         std::map<std::string, const Yaml*> last;  // the last entry for each target
         for (const Yaml& item : member.items) last[compose::target_of(item)] = &item;
         for (const Yaml& item : member.items)
           if (last[compose::target_of(item)] == &item) read_volume(item, service);
       }},
      {"secrets", [this, &container](const Yaml& member,
                                     const std::string& key) { read_handed(member, key, secrets_, container); }},
      {"configs", [this, &container](const Yaml& member,
                                     const std::string& key) { read_handed(member, key, configs_, container); }},
      {"depends_on", [this, &container](const Yaml& member, const std::string&) { read_depends(member, container); }},
      {"links", [this, &container](const Yaml& member, const std::string&) { read_links(member, container); }},
      {"healthcheck", [this, &container](const Yaml& member, const std::string&) { read_health(member, container); }},
      {"restart", [this, &node](const Yaml& member, const std::string&) { read_restart(member, node); }},
      {"post_start",
       [&container](const Yaml& member, const std::string& key) { read_hooks(member, key, container.post_start); }},
      {"pre_stop",
       [&container](const Yaml& member, const std::string& key) { read_hooks(member, key, container.pre_stop); }},
      {"networks", [this, &service](const Yaml& member, const std::string&) { read_networks(member, service); }},
      {"network_mode",
       [this, &service](const Yaml& member, const std::string&) { read_network_mode(member, service); }},
      {"deploy", [this, &service](const Yaml& member, const std::string&) { read_deploy(member, service); }},
      {"scale", [&service](const Yaml& member, const std::string& key) { service.replicas = number(member, key, 0); }},
      {"ulimits", [this, &container](const Yaml& member, const std::string&) { read_limits(member, container); }},
      {"user", [&node](const Yaml& member, const std::string& key) { node.user = text(member, key); }},
      {"hostname",
       [&container](const Yaml& member, const std::string& key) { container.hostname = text(member, key); }},
      {"domainname",
       [&container](const Yaml& member, const std::string& key) { container.domain = text(member, key); }},
      {"container_name",
       [this, &node, &container](const Yaml& member, const std::string& key) {
         std::string name = text(member, key);
         if (name.empty()) return;
         containers_[name] = node.name;
         container.aliases.push_back(std::move(name));
         named_containers_.insert(node.name);
       }},
      {"ports", [this, &container](const Yaml& member, const std::string&) { read_ports(member, container); }},
      {"expose", [&container](const Yaml& member, const std::string&) { read_exposed(member, container); }},
      {"extra_hosts", [&container](const Yaml& member, const std::string&) { read_hosts(member, container); }},
      {"stop_signal",
       [&container](const Yaml& member, const std::string& key) { container.stop_signal = text(member, key); }},
      {"stop_grace_period",
       [&container](const Yaml& member, const std::string& key) { container.stop_grace_ns = duration(member, key); }},
      {"pull_policy",
       [&container](const Yaml& member, const std::string& key) {
         const std::string policy = text(member, key);
         // If the service is built, the engine's cache decides what has to be built again. Policies that depend on the
         // age of an image have no effect, because all runs of a command must use the same image.
         if (policy.empty() || policy == "missing" || policy == "if_not_present" || policy == "build" ||
             policy == "daily" || policy == "weekly" || policy.starts_with("every_"))
           return;
         if (policy != "always" && policy != "never" && policy != "refresh")
           refuse(member, fmt::format("'pull_policy': '{}' was found", policy),
                  "known are missing, always, never, build, daily, weekly, every_<duration> and refresh");
         container.pull = policy == "refresh" ? "always" : policy;
       }},
  };
}

ComposeReader::Keys ComposeReader::option_keys(Service& service) {
  Container& container = service.container();
  const auto list_option = [&service](std::string flag) -> Known {
    return [&service, flag](const Yaml& member, const std::string& key) {
      std::set<std::string> known;
      for (std::string& word : texts(member, key))
        if (known.insert(word).second) service.option(flag, std::move(word));
    };
  };
  const auto one_option = [&service](std::string flag) -> Known {
    return [&service, flag](const Yaml& member, const std::string& key) {
      if (std::string word = text(member, key); !word.empty()) service.option(flag, std::move(word));
    };
  };
  const auto size_option = [&service](std::string flag) -> Known {
    return [&service, flag](const Yaml& member, const std::string& key) {
      if (std::string word = size(member, key); !word.empty()) service.option(flag, std::move(word));
    };
  };
  const auto switch_option = [&container](std::string flag) -> Known {
    return [&container, flag](const Yaml& member, const std::string& key) {
      if (truth(member, key)) container.options.push_back(flag);
    };
  };
  const auto pair_option = [&service](std::string flag, char between) -> Known {
    return [&service, flag, between](const Yaml& member, const std::string& key) {
      for (const auto& [left, right] : pairs(member, key))
        service.option(flag, right ? fmt::format("{}{}{}", left, between, *right) : left);
    };
  };
  const Known name_space = [this, &service](const Yaml& member, const std::string& key) {
    read_namespace(member, key, service);
  };
  return {
      {"working_dir", one_option("--workdir")},
      {"shm_size", size_option("--shm-size")},
      {"platform", one_option("--platform")},
      {"mem_limit", size_option("--memory")},
      {"mem_reservation", size_option("--memory-reservation")},
      {"memswap_limit", size_option("--memory-swap")},
      {"mem_swappiness", one_option("--memory-swappiness")},
      {"oom_score_adj", one_option("--oom-score-adj")},
      {"oom_kill_disable", switch_option("--oom-kill-disable")},
      {"cpus", one_option("--cpus")},
      {"cpu_shares", one_option("--cpu-shares")},
      {"cpu_period", one_option("--cpu-period")},
      {"cpu_quota", one_option("--cpu-quota")},
      {"cpuset", one_option("--cpuset-cpus")},
      {"pids_limit", one_option("--pids-limit")},
      {"userns_mode", one_option("--userns")},
      {"cgroup", one_option("--cgroupns")},
      {"ipc", name_space},
      {"pid", name_space},
      {"cap_add", list_option("--cap-add")},
      {"cap_drop", list_option("--cap-drop")},
      {"tmpfs", list_option("--tmpfs")},
      {"security_opt", list_option("--security-opt")},
      {"group_add", list_option("--group-add")},
      {"devices",
       [&service](const Yaml& member, const std::string& key) {
         if (!member.is_list()) refuse(member, fmt::format("'{}': a list is needed", key));
         for (const Yaml& item : member.items) service.option("--device", device(item, key));
       }},
      {"device_cgroup_rules", list_option("--device-cgroup-rule")},
      {"read_only", switch_option("--read-only")},
      {"init", switch_option("--init")},
      {"privileged", switch_option("--privileged")},
      {"tty", switch_option("--tty")},
      {"stdin_open", switch_option("--interactive")},
      {"sysctls", pair_option("--sysctl", '=')},
      {"labels", pair_option("--label", '=')},
      {"annotations", pair_option("--annotation", '=')},
      {"uts",
       [&service](const Yaml& member, const std::string& key) {
         const std::string word = text(member, key);
         if (!word.empty() && word != "host")
           refuse(member, fmt::format("'{}': '{}' was found", key, word), "only host is possible");
         service.container().host_name_of_machine = word == "host";
       }},
      {"dns", [&container](const Yaml& member, const std::string& key) { container.asks = texts(member, key); }},
      {"blkio_config", [this, &service](const Yaml& member, const std::string&) { read_blocks(member, service); }},
  };
}

ComposeReader::Keys ComposeReader::keys_without_effect() {
  const auto left_out = [this](std::string why) -> Known {
    return [this, why](const Yaml&, const std::string&) { say(why); };
  };
  const Known fine = [](const Yaml&, const std::string&) {};
  return {
      {"logging", left_out("'logging' has no effect: output goes to the nodes' stdout.log and stderr.log")},
      {"dns_search", left_out("'dns_search' has no effect: a run has no domain of its own")},
      {"dns_opt", left_out("'dns_opt' has no effect: the run has its own name server")},
      {"mac_address", left_out("'mac_address' has no effect: rose assigns addresses")},
      {"cgroup_parent", left_out("'cgroup_parent' has no effect: nodes are in the run's cgroups")},
      {"storage_opt", left_out("'storage_opt' has no effect: the engine's configuration applies")},
      {"label_file", left_out("'label_file' has no effect in a run")},
      {"runtime",
       [this](const Yaml& member, const std::string& key) {
         warn(fmt::format(
             "'runtime: {}' must be set for the engine: [deployment] engine = [\"podman\", \"--runtime={}\"]",
             text(member, key), text(member, key)));
       }},
      {"profiles", fine},
      {"attach", fine},
      {"pull_refresh_after", fine},
      {"develop", fine},
      {"volumes_from",
       [](const Yaml& member, const std::string&) {
         if (!is_empty(member)) refuse(member, "'volumes_from' is not supported", "name the volumes in both services");
       }},
      {"external_links",
       [](const Yaml& member, const std::string&) {
         if (is_empty(member)) return;
         refuse(member, "'external_links': a run has its own network, without other containers of this machine");
       }},
      {"isolation", fine},
      {"credential_spec", left_out("'credential_spec' has no effect: it applies to Windows only")},
      {"cpu_count", left_out("'cpu_count' has no effect: it applies to Windows only")},
      {"cpu_rt_period", left_out("'cpu_rt_period' has no effect: rose does not limit real-time scheduling")},
      {"cpu_rt_runtime", left_out("'cpu_rt_runtime' has no effect: rose does not limit real-time scheduling")},
      {"cpu_percent", left_out("'cpu_percent' has no effect: it applies to Windows only")},
      {"provider",
       [](const Yaml& member, const std::string&) {
         refuse(member, "'provider': a program outside of the run starts this service, which rose does not support",
                "replace it by an image in a second file of 'compose'");
       }},
      {"models",
       [](const Yaml& member, const std::string&) {
         if (is_empty(member)) return;
         refuse(member, "'models': Docker's model runner is outside of the run, so rose does not support it");
       }},
      {"pre_start",
       [](const Yaml& member, const std::string&) {
         if (is_empty(member)) return;
         refuse(member, "'pre_start' is not supported",
                "make it a service of its own, and let this one wait for it: depends_on with the condition "
                "service_completed_successfully");
       }},
      {"use_api_socket",
       [](const Yaml& member, const std::string& key) {
         if (truth(member, key))
           refuse(member, "'use_api_socket': containers of a run do not get the socket of the engine",
                  "set it to false in a second file of 'compose'");
       }},
      {"gpus",
       [this](const Yaml&, const std::string&) { warn("'gpus' has no effect: name the devices under 'devices'"); }},
  };
}

void ComposeReader::read_service(const std::string& name, const Yaml& value) {
  Service service;
  service.node.name = name;
  service.node.line = value.line;
  service.node.container = Container();
  service.container().service = true;
  each(value, service_keys(service), fmt::format("service '{}'", name));
  check_own_network(value, name);
  Node& node = service.node;
  Container& container = service.container();
  if (service.env_files != nullptr) read_env_files(service);
  for (const auto& [variable, setting] : service.environment) node.env[variable] = kept(setting);
  if (service.deployed_restart) node.restart = service.deployed_restart;
  if (!container.domain.empty() && container.hostname.empty()) container.hostname = name;
  if (container.image.empty() && container.build.empty())
    refuse(value, fmt::format("service '{}' has neither 'image' nor 'build'", name),
           "if another file has it, name both: compose = [\"FIRST\", \"SECOND\"]");
  if (container.image.empty())
    container.image = fmt::format("localhost/rose-{}-{}", image_part(folder_.filename().string()), image_part(name));
  const int replicas = service.replicas.value_or(1);
  if (replicas > kMostReplicas)
    refuse(value, fmt::format("service '{}' has {} replicas, up to {} are accepted", name, replicas, kMostReplicas));
  if (replicas == 0) {
    left_out_.insert(name);
    say(fmt::format("service {} has no replicas and is not a node", name));
    return;
  }
  if (replicas > 1 && named_containers_.contains(name))
    refuse(value, fmt::format("service '{}' has a 'container_name' and {} replicas", name, replicas),
           "names of containers are unique, so Compose refuses it too: leave out 'container_name'");
  if (replicas > 1) replicas_[name] = replicas;
  networks_.push_back(std::move(service.networks));
  found_.nodes.push_back(std::move(node));
}

// Reads `pid` and `ipc`. Other services may not have been read yet, so values that name a service are resolved later.
void ComposeReader::read_namespace(const Yaml& value, const std::string& key, Service& service) {
  const std::string mode = text(value, key);
  const bool pid = key == "pid";
  if (mode.empty()) return;
  if (mode.starts_with("service:") || mode.starts_with("container:")) {
    (pid ? shared_pid_ : shared_ipc_)[service.node.name] = &value;
    return;
  }
  if (mode != "host" && mode != "private" && (pid || (mode != "shareable" && mode != "none")))
    refuse(value, fmt::format("'{}': '{}' was found", key, mode),
           fmt::format("known are host, private, {}service:NAME and container:NAME", pid ? "" : "shareable, none, "));
  (pid ? pid_modes_ : ipc_modes_)[service.node.name] = mode;
  // A private PID namespace is Docker's default, for which it has no option.
  if (!pid || mode == "host") service.option("--" + key, mode);
}

void ComposeReader::read_environment(const Yaml& value, Service& service) {
  for (const auto& [variable, setting] : pairs(value, "environment")) {
    if (setting) service.environment[variable] = *setting;
    else if (auto own = lookup_(variable)) service.environment[variable] = std::move(*own);
    else valueless_.insert(variable);
  }
}

void ComposeReader::read_env_files(Service& service) {
  const Yaml& value = *service.env_files;
  const std::vector<Yaml> list{value};
  std::map<std::string, std::string> from_files;
  for (const Yaml& item : value.is_list() ? value.items : list) {
    std::string file;
    bool required = true;
    bool raw = false;
    if (item.is_scalar()) {
      file = item.text;
    } else if (const Yaml* at = item.find("path"); at != nullptr) {
      file = text(*at, "path");
      if (const Yaml* needed = item.find("required")) required = truth(*needed, "required");
      if (const Yaml* format = item.find("format")) {
        raw = text(*format, "format") == "raw";
        if (!raw) refuse(*format, fmt::format("'format': '{}' was found", text(*format, "format")), "known is raw");
      }
    } else {
      refuse(item, "'env_file': a path is needed");
    }
    const Result<std::string> content = compose::small_file(path(file));
    std::error_code error;
    if (!content && (required || std::filesystem::exists(path(file), error)))
      refuse(value, fmt::format("'env_file': {}", content.error().message));
    if (!content) continue;
    if (raw) {
      for (const std::string& line : split(*content, '\n'))
        if (const std::size_t equals = line.find('='); equals != std::string::npos && equals > 0 && line[0] != '#')
          from_files[line.substr(0, equals)] = line.substr(equals + 1);
      continue;
    }
    // As with Compose, the variables of the project come first, then those of `environment`, then those of earlier
    // files.
    const compose::Lookup known = [&](const std::string& name) {
      auto found = lookup_(name);
      for (const auto* variables : {&service.environment, &from_files})
        if (const auto at = variables->find(name); !found && at != variables->end()) found = at->second;
      return found;
    };
    auto read = compose::read_dot_env(*content, known);
    if (!read) refuse(value, fmt::format("'env_file': {}:{}: {}", path(file), read.error().line, read.error().what));
    for (auto& [variable, setting] : *read) from_files[variable] = std::move(setting);
  }
  for (auto& [variable, setting] : from_files) service.node.env[variable] = kept(std::move(setting));
}

void ComposeReader::read_bind(const Yaml& value, std::string source, const std::string& target,
                              const std::string& options, Service& service) {
  source = path(source);
  if (source.find(':') != std::string::npos || target.find(':') != std::string::npos)
    refuse(value, "the path of a volume must not contain a ':'");
  std::error_code error;
  const bool writes = options.find("ro") == std::string::npos;
  if (std::filesystem::is_socket(source, error))
    warn(fmt::format(
        "{} is a socket of this machine: what the service asks for there is answered by this machine, not by the run",
        source));
  else if (writes && compose::belongs_to_machine(source) && std::filesystem::exists(source, error))
    warn(fmt::format("{} is mounted as it is: what the service writes there changes this machine", source));
  else if (writes && std::filesystem::is_directory(source, error))
    say(fmt::format("{} is a folder of this machine: each run has its own version of it", source));
  service.container().volumes.push_back(fmt::format("{}:{}{}", kept(source), kept(target), options));
}

void ComposeReader::read_volume(const Yaml& value, Service& service) {
  std::string source, target, options, type, tmpfs;
  bool made = true;
  if (value.is_map()) {
    const Known fine = [](const Yaml&, const std::string&) {};
    std::vector<std::string> words;
    each(value,
         {{"type", [&](const Yaml& member, const std::string& key) { type = text(member, key); }},
          {"source", [&](const Yaml& member, const std::string& key) { source = text(member, key); }},
          {"target", [&](const Yaml& member, const std::string& key) { target = text(member, key); }},
          {"read_only",
           [&](const Yaml& member, const std::string& key) {
             if (truth(member, key)) words.emplace_back("ro");
           }},
          {"consistency", fine},
          {"bind",
           [&](const Yaml& member, const std::string&) {
             if (const Yaml* create = member.find("create_host_path")) made = truth(*create, "create_host_path");
             if (const std::string label = member.scalar("selinux"); !label.empty()) words.push_back(label);
             if (const std::string spread = member.scalar("propagation"); !spread.empty()) words.push_back(spread);
           }},
          {"volume",
           [&](const Yaml& member, const std::string&) {
             if (const Yaml* part = member.find("subpath"))
               refuse(*part, "'subpath': a run's volumes start empty and are mounted as a whole");
             if (const Yaml* copy = member.find("nocopy"); copy != nullptr && truth(*copy, "nocopy"))
               words.emplace_back("nocopy");
           }},
          {"tmpfs",
           [&](const Yaml& member, const std::string&) {
             if (const Yaml* size = member.find("size"); size != nullptr && !size->text.empty())
               tmpfs += ",size=" + bytes(*size, "size");
             if (const Yaml* mode = member.find("mode"); mode != nullptr && !mode->text.empty())
               tmpfs += fmt::format(",mode={:o}", file_mode(*mode, "mode"));
           }}},
         "a volume");
    if (type == "tmpfs") {
      service.option("--tmpfs", tmpfs.empty() ? target : target + ":" + tmpfs.substr(1));
      return;
    }
    if (type == "image")
      refuse(value, "a volume of type 'image' is not supported",
             "copy the image's files to a folder, and mount that folder in a second file of 'compose'");
    if (type != "bind" && type != "volume")
      refuse(value, fmt::format("the type of a volume is '{}', bind, volume or tmpfs is needed", type));
    if (!words.empty()) options = fmt::format(":{}", fmt::join(words, ","));
  } else {
    const std::vector<std::string> parts = split(text(value, "volumes"), ':');
    if (parts.size() > 3)
      refuse(value, fmt::format("'{}' is not a volume: SOURCE:TARGET[:OPTIONS] is needed", value.text));
    target = parts.size() > 1 ? parts[1] : parts[0];
    source = parts.size() > 1 ? parts[0] : "";
    std::vector<std::string> words;
    for (const std::string& option : parts.size() > 2 ? split(parts[2], ',') : std::vector<std::string>{}) {
      if (volume_option_problem(option).empty() || is_propagation(option)) words.push_back(option);
      else if (const std::string low = lower_case(option); low == "ro" || low == "rw") words.push_back(low);
      else if (!option.empty() && !means_nothing_here(option))
        say(
            fmt::format("service {}: the option '{}' of a volume has no effect, also in Compose: ro, rw, z, Z, nocopy "
                        "and the kinds of propagation have one",
                        service.node.name, option));
    }
    if (parts.size() > 1 && (source.empty() || target.empty()))
      refuse(value,
             fmt::format("the volume '{}' has no {}{}", value.text, source.empty() ? "source" : "target",
                         without_value(value)),
             kSetVariable);
    if (!words.empty()) options = fmt::format(":{}", fmt::join(words, ","));
    type = compose::is_folder(source) ? "bind" : "volume";
  }
  if (!target.starts_with('/'))
    refuse(value, fmt::format("'{}' is not a path in a container: an absolute path is needed", target));
  target = std::filesystem::path(target).lexically_normal().string();
  while (target.size() > 1 && target.ends_with('/')) target.pop_back();
  if (source.empty() && type == "bind") refuse(value, "a volume of type 'bind' needs a source");
  if (source.empty()) {
    service.option("--volume", target);
    return;
  }
  if (type == "bind") {
    std::error_code error;
    if (!made && !std::filesystem::exists(path(source), error))
      refuse(value, fmt::format("{} does not exist, and 'create_host_path' is false", path(source)));
    read_bind(value, source, target, options, service);
    return;
  }
  const auto declared = volumes_.find(source);
  if (declared == volumes_.end())
    refuse(value, fmt::format("the volume '{}' is not declared", source), "name it under 'volumes:' at the top");
  if (!declared->second.folder.empty()) {
    read_bind(value, declared->second.folder, target, options, service);
    return;
  }
  if (declared->second.tmpfs) service.container().tmpfs[source] = *declared->second.tmpfs;
  service.container().volumes.push_back(fmt::format("{}:{}{}", kept(source), kept(target), options));
}

// Reads `secrets` or `configs` of a service. A file of this machine is mounted as it is; literal content is written to
// a new file for each run.
void ComposeReader::read_handed(const Yaml& value, const std::string& kind, const std::map<std::string, Handed>& all,
                                Container& container) {
  if (!value.is_list()) refuse(value, fmt::format("'{}': a list is needed", kind));
  for (const Yaml& item : value.items) {
    std::string source = item.is_scalar() ? item.text : "";
    std::string target;
    std::optional<unsigned> mode;
    bool owned = false;  // `uid` or `gid` is given, so users other than root must be able to read the file
    each(item,
         {{"source", [&](const Yaml& member, const std::string& key) { source = text(member, key); }},
          {"target", [&](const Yaml& member, const std::string& key) { target = text(member, key); }},
          {"mode",
           [&](const Yaml& member, const std::string& key) {
             if (!member.is_scalar() || !member.text.empty()) mode = file_mode(member, key);
           }},
          {"uid",
           [&](const Yaml&, const std::string&) {
             owned = true;
             say(fmt::format("'uid' of {} has no effect: all users can read it", kind));
           }},
          {"gid",
           [&](const Yaml&, const std::string&) {
             owned = true;
             say(fmt::format("'gid' of {} has no effect: all users can read it", kind));
           }}},
         fmt::format("one of '{}'", kind));
    const auto found = all.find(source);
    if (found == all.end())
      refuse(item, fmt::format("'{}' is not declared", source), fmt::format("name it under '{}:' at the top", kind));
    if (!found->second.unset.empty())
      refuse(item, fmt::format("{} '{}' is the variable {}, which is not set", kind, source, found->second.unset),
             kSetVariable);
    if (found->second.external != nullptr)
      refuse(*found->second.external,
             fmt::format("{} '{}' is external: it belongs to a swarm and is not available here", kind, source),
             "use 'file: PATH' in a copy of the Compose file");
    if (target.empty()) target = kind == "secrets" ? "/run/secrets/" + source : "/" + source;
    if (!target.starts_with('/')) target = "/run/secrets/" + target;
    if (found->second.content)
      container.files.push_back({target, *found->second.content, (mode.value_or(0444) | (owned ? 0444U : 0U)) & 0777});
    else if (!found->second.file.empty())
      container.volumes.push_back(fmt::format("{}:{}:ro", kept(found->second.file), kept(target)));
    else refuse(item, fmt::format("{} '{}' has neither 'file', 'environment' nor 'content'", kind, source));
  }
}

void ComposeReader::read_depends(const Yaml& value, Container& container) {
  if (!value.is_map()) {
    if (!value.is_list()) refuse(value, "'depends_on': a list or a map is needed");
    for (const Yaml& item : value.items)
      container.after.push_back({text(item, "depends_on"), Dependency::When::started, item.line, item.file, false});
    return;
  }
  for (const auto& [name, how] : value.members) {
    Dependency dependency{name, Dependency::When::started, how.line, how.file, false};
    each(how,
         {{"required", [&](const Yaml& member, const std::string& key) { dependency.optional = !truth(member, key); }},
          {"restart", [](const Yaml& member,
                         const std::string& key) { (void)truth(member, key); }},  // only affects Compose's own commands
          {"condition",
           [&](const Yaml& member, const std::string& key) {
             const std::string word = text(member, key);
             if (word == "service_healthy") dependency.when = Dependency::When::healthy;
             else if (word == "service_completed_successfully") dependency.when = Dependency::When::completed;
             else if (word != "service_started")
               refuse(member, fmt::format("unknown condition '{}'", word),
                      "known are service_started, service_healthy and service_completed_successfully");
           }}},
         "a dependency");
    container.after.push_back(dependency);
  }
}

// Each entry is "db" or "db:database": a dependency on the service db and, after the colon, an alias for it.
void ComposeReader::read_links(const Yaml& value, Container& container) {
  if (!value.is_list()) refuse(value, "'links': a list is needed");
  for (const Yaml& item : value.items) {
    const std::string link = text(item, "links");
    const std::string other = link.substr(0, link.find(':'));
    if (std::none_of(container.after.begin(), container.after.end(),
                     [&](const Dependency& dependency) { return dependency.node == other; }))
      container.after.push_back({other, Dependency::When::started, item.line, item.file, false});
    if (other.size() < link.size()) linked_names_[other].emplace_back(link.substr(other.size() + 1), "");
  }
}

void ComposeReader::read_health(const Yaml& value, Container& container) {
  Health health;
  const auto time = [](std::optional<std::int64_t>& into) -> Known {
    return [&into](const Yaml& member, const std::string& key) { into = duration(member, key); };
  };
  each(value,
       {{"test",
         [&](const Yaml& member, const std::string& key) {
           if (member.is_scalar()) {
             health.test = {"/bin/sh", "-c", member.text};
             return;
           }
           std::vector<std::string> words = texts(member, key);
           const std::string how = words.empty() ? "" : words.front();
           if (how == "NONE") health.disabled = true;
           else if (how == "CMD" && words.size() > 1) health.test.assign(words.begin() + 1, words.end());
           // As with engines, further words become $0, $1, ... of the shell.
           else if (how == "CMD-SHELL" && words.size() > 1) {
             health.test = {"/bin/sh", "-c"};
             health.test.insert(health.test.end(), words.begin() + 1, words.end());
           } else if (!words.empty() && how != "CMD" && how != "CMD-SHELL")
             refuse(member, fmt::format("'test': the list begins with '{}'", how),
                    "a line, or a list that begins with CMD, CMD-SHELL or NONE is needed");
           else if (!words.empty()) refuse(member, fmt::format("'test': nothing follows {}", how));
         }},
        {"interval", time(health.interval_ns)},
        {"timeout", time(health.timeout_ns)},
        {"start_period", time(health.start_period_ns)},
        {"start_interval",
         [](const Yaml& member, const std::string& key) {
           (void)duration(member, key);
         }},  // checked, but otherwise ignored
        {"disable", [&](const Yaml& member, const std::string& key) { health.disabled = truth(member, key); }},
        {"retries",
         [&](const Yaml& member, const std::string& key) {
           if (const int retries = number(member, key, 0); retries > 0) health.retries = retries;  // 0: the default
         }}},
       "a healthcheck");
  container.health = std::move(health);
}

namespace {

constexpr std::uint16_t kNamePort = 53;

struct ContainerPort {
  std::uint16_t first = 0;  // of a range, the first port
  bool tcp = true;
};

// The port in the container that "127.0.0.1:8080:80/tcp", "8080:80" or "9000-9001:80-81" names; nothing if it names
// none. Like Compose, ignores the case of the protocol and what follows a second slash.
std::optional<ContainerPort> port_of(std::string_view text) {
  ContainerPort port;
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    std::string_view protocol = text.substr(slash + 1);
    const std::string word = lower_case(protocol.substr(0, protocol.find('/')));
    if (!word.empty() && word != "tcp" && word != "udp" && word != "sctp") return std::nullopt;
    port.tcp = word.empty() || word == "tcp";
    text = text.substr(0, slash);
  }
  text = text.substr(text.rfind(':') + 1);
  const auto number = [](std::string_view word) {
    std::uint16_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size() ? value : std::uint16_t{0};
  };
  const std::size_t dash = text.find('-');
  port.first = number(text.substr(0, dash));
  if (port.first == 0 || (dash != std::string_view::npos && number(text.substr(dash + 1)) == 0)) return std::nullopt;
  return port;
}

bool is_name_port(const std::optional<ContainerPort>& port) { return port && port->first == kNamePort; }

void add_port(std::vector<std::uint16_t>& ports, const std::optional<ContainerPort>& port) {
  if (port && port->tcp && std::find(ports.begin(), ports.end(), port->first) == ports.end())
    ports.push_back(port->first);
}

}  // namespace

void ComposeReader::read_ports(const Yaml& value, Container& container) {
  say("ports are not published: nodes are reached at their names and addresses (ROSE_IP_<node>)");
  std::vector<std::uint16_t> ports;
  for (const Yaml& item : value.items) {
    const std::string protocol = item.is_scalar() ? "" : item.scalar("protocol");
    const std::string word = item.is_scalar()   ? item.text
                             : protocol.empty() ? item.scalar("target")
                                                : fmt::format("{}/{}", item.scalar("target"), protocol);
    const std::optional<ContainerPort> port = port_of(word);
    if (!port && item.is_scalar())
      refuse(item, fmt::format("'{}' names no port of the container{}", item.text, without_value(item)),
             without_value(item).empty()
                 ? "a number from 1 to 65535 or a range is needed, followed by /udp or /sctp if it is not TCP"
                 : kSetVariable);
    add_port(ports, port);
    if (is_name_port(port)) container.name_server = true;
  }
  for (const std::uint16_t port : container.ports) add_port(ports, ContainerPort{port});
  container.ports = std::move(ports);
}

void ComposeReader::read_exposed(const Yaml& value, Container& container) {
  for (const Yaml& item : value.items) {
    const std::optional<ContainerPort> port = port_of(item.text);
    add_port(container.ports, port);
    if (is_name_port(port)) container.name_server = true;
  }
}

// Each entry is "name:address" or "name=address". The address may be an IPv6 address.
void ComposeReader::read_hosts(const Yaml& value, Container& container) {
  const auto add = [&](const Yaml& at, const std::string& host, std::string_view address) {
    while (address.starts_with(' ')) address.remove_prefix(1);
    if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
    if (host.empty() || (address != kHostGateway && !parse_address(std::string(address))))
      refuse(at, fmt::format("'extra_hosts': '{}' is not a name with an IP address or host-gateway",
                             at.is_scalar() && value.is_list() ? at.text : fmt::format("{}:{}", host, address)));
    container.hosts.emplace_back(host, address);
  };
  for (const auto& [host, addresses] : value.members)
    for (const std::string& address : texts(addresses, "extra_hosts")) add(addresses, host, address);
  for (const Yaml& item : value.items) {
    const std::string pair = text(item, "extra_hosts");
    const std::size_t between = std::min(pair.find_first_of("=:"), pair.size());
    add(item, pair.substr(0, between), pair.substr(std::min(between + 1, pair.size())));
  }
}

// Returns "SOURCE:TARGET:PERMISSIONS" for the short or the long form.
std::string ComposeReader::device(const Yaml& value, std::string_view key) {
  if (!value.is_map()) return text(value, key);
  std::string source, target, permissions;
  each(value,
       {{"source", [&](const Yaml& member, const std::string& name) { source = text(member, name); }},
        {"target", [&](const Yaml& member, const std::string& name) { target = text(member, name); }},
        {"permissions", [&](const Yaml& member, const std::string& name) { permissions = text(member, name); }}},
       "a device");
  if (source.empty()) refuse(value, "a device without a source");
  if (target.empty()) target = source;
  return permissions.empty() ? fmt::format("{}:{}", source, target)
                             : fmt::format("{}:{}:{}", source, target, permissions);
}

void ComposeReader::read_blocks(const Yaml& value, Service& service) {
  const auto devices = [&service](std::string flag, std::string_view amount) -> Known {
    return [&service, flag = std::move(flag), amount](const Yaml& member, const std::string& key) {
      if (!member.is_list()) refuse(member, fmt::format("'{}': a list is needed", key));
      for (const Yaml& item : member.items) {
        std::string path, word;
        each(item,
             {{"path", [&](const Yaml& node_value, const std::string& of) { path = text(node_value, of); }},
              {std::string(amount),
               [&](const Yaml& node_value, const std::string& of) { word = text(node_value, of); }}},
             fmt::format("one of '{}'", key));
        if (path.empty() || word.empty()) refuse(item, fmt::format("each of '{}' needs 'path' and '{}'", key, amount));
        service.option(flag, fmt::format("{}:{}", path, word));
      }
    };
  };
  each(value,
       {{"weight",
         [&](const Yaml& member, const std::string& key) { service.option("--blkio-weight", text(member, key)); }},
        {"weight_device", devices("--blkio-weight-device", "weight")},
        {"device_read_bps", devices("--device-read-bps", "rate")},
        {"device_write_bps", devices("--device-write-bps", "rate")},
        {"device_read_iops", devices("--device-read-iops", "rate")},
        {"device_write_iops", devices("--device-write-iops", "rate")}},
       "'blkio_config'");
}

void ComposeReader::read_restart(const Yaml& value, Node& node) {
  const std::string word = text(value, "restart");
  if (word == "no" || word == "false" || word == "never" || word.empty()) return;
  Restart policy{kEngineDelay, kAlways, false};
  if (word.starts_with("on-failure")) {
    policy.only_failures = true;
    if (word.size() > 10) {
      const std::string_view count = std::string_view(word).substr(std::min<std::size_t>(11, word.size()));
      const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), policy.max);
      if (word[10] != ':' || error != std::errc() || end != count.data() + count.size() || policy.max < 0)
        refuse(value, fmt::format("unknown restart policy '{}'", word));
      if (policy.max == 0) policy.max = kAlways;
    }
  } else if (word != "always" && word != "unless-stopped") {
    refuse(value, fmt::format("unknown restart policy '{}'", word),
           "known are no, always, unless-stopped and on-failure");
  }
  node.restart = policy;
}

void ComposeReader::read_hooks(const Yaml& value, const std::string& key, std::vector<Hook>& hooks) {
  if (!value.is_list()) refuse(value, fmt::format("'{}': a list is needed", key));
  for (const Yaml& item : value.items) {
    if (!item.is_map()) refuse(item, fmt::format("one of '{}' is not a map with a 'command'", key));
    Hook hook;
    each(item,
         {{"command", [&](const Yaml& member, const std::string& name) { hook.command = command(member, name); }},
          {"user", [&](const Yaml& member, const std::string& name) { hook.user = kept(text(member, name)); }},
          {"privileged", [&](const Yaml& member, const std::string& name) { hook.privileged = truth(member, name); }},
          {"working_dir",
           [&](const Yaml& member, const std::string& name) { hook.working_dir = kept(text(member, name)); }},
          {"environment",
           [&](const Yaml& member, const std::string& name) {
             for (const auto& [variable, setting] : pairs(member, name))
               if (setting) hook.env[variable] = kept(*setting);
           }}},
         fmt::format("one of '{}'", key));
    if (hook.command.empty()) refuse(item, fmt::format("one of '{}' has no 'command'", key));
    hooks.push_back(std::move(hook));
  }
}

void ComposeReader::read_build(const Yaml& value, Container& container) {
  std::string context = ".";
  std::string dockerfile;
  std::vector<std::string> words;
  if (value.is_scalar()) context = text(value, "build");
  const auto add = [&words](std::string flag, std::string word) {
    words.insert(words.end(), {std::move(flag), std::move(word)});
  };
  const auto each_pair = [&](std::string flag, char between) -> Known {
    return [&, flag, between](const Yaml& member, const std::string& key) {
      for (const auto& [name, argument] : pairs(member, key)) {
        const auto given = argument ? argument : lookup_(name);
        add(flag, given ? fmt::format("{}{}{}", name, between, *given) : name);
      }
    };
  };
  const auto with_flag = [&](std::string flag) -> Known {
    return [&, flag](const Yaml& member, const std::string& key) { add(flag, text(member, key)); };
  };
  const auto when_true = [&](std::string flag) -> Known {
    return [&, flag](const Yaml& member, const std::string& key) {
      if (truth(member, key)) words.push_back(flag);
    };
  };
  const Known none = [this](const Yaml&, const std::string& key) {
    say(fmt::format("'{}' of a build has no effect: the engine has its own cache", key));
  };
  const Known unsigned_image = [this](const Yaml&, const std::string& key) {
    say(fmt::format("'{}' of a build has no effect: it is for images that are published", key));
  };
  each(value,
       {{"context", [&](const Yaml& member, const std::string& key) { context = text(member, key); }},
        {"dockerfile", [&](const Yaml& member, const std::string& key) { dockerfile = text(member, key); }},
        {"target", with_flag("--target")},
        {"args", each_pair("--build-arg", '=')},
        {"labels", each_pair("--label", '=')},
        {"additional_contexts", each_pair("--build-context", '=')},
        {"extra_hosts",
         [&](const Yaml& member, const std::string&) {
           Container own;
           read_hosts(member, own);
           for (const auto& [host, address] : own.hosts) add("--add-host", fmt::format("{}:{}", host, address));
         }},
        {"network", with_flag("--network")},
        {"shm_size", with_flag("--shm-size")},
        {"isolation", with_flag("--isolation")},
        {"dockerfile_inline",
         [&](const Yaml& member, const std::string& key) { container.dockerfile = text(member, key); }},
        {"ssh",
         [&](const Yaml& member, const std::string& key) {
           if (member.is_scalar()) add("--ssh", text(member, key));
           else
             for (const auto& [id, key_file] : pairs(member, key))
               add("--ssh", key_file ? fmt::format("{}={}", id, path(*key_file)) : id);
         }},
        {"secrets",
         [&](const Yaml& member, const std::string& key) {
           if (!member.is_list()) refuse(member, fmt::format("'{}': a list is needed", key));
           for (const Yaml& item : member.items) {
             std::string source = item.is_scalar() ? item.text : "";
             std::string target;
             const Known unused = [this](const Yaml&, const std::string& of) {
               say(fmt::format("'{}' of a build's secret has no effect: the RUN that mounts it decides", of));
             };
             each(item,
                  {{"source", [&](const Yaml& at, const std::string& of) { source = text(at, of); }},
                   {"target", [&](const Yaml& at, const std::string& of) { target = text(at, of); }},
                   {"uid", unused},
                   {"gid", unused},
                   {"mode", unused}},
                  "a build's secret");
             const auto found = secrets_.find(source);
             if (found == secrets_.end())
               refuse(item, fmt::format("'{}' is not declared", source), "name it under 'secrets:' at the top");
             const std::string& id = target.empty() ? source : target;
             if (found->second.content) container.build_secrets.emplace_back(id, *found->second.content);
             else if (!found->second.file.empty()) add("--secret", fmt::format("id={},src={}", id, found->second.file));
             else
               refuse(found->second.external != nullptr ? *found->second.external : item,
                      fmt::format("the secret '{}' of a build has neither 'file' nor 'environment'", source));
           }
         }},
        {"privileged",
         [&](const Yaml& member, const std::string& key) { container.build_privileged = truth(member, key); }},
        {"entitlements",
         [this](const Yaml&, const std::string& key) {
           warn(fmt::format("'{}' of a build has no effect: 'privileged' lets its commands do everything", key));
         }},
        {"ulimits",
         [&](const Yaml& member, const std::string&) {
           Container limited;
           read_limits(member, limited);
           for (std::string& limit : limited.limits) add("--ulimit", std::move(limit));
         }},
        {"provenance", unsigned_image},
        {"sbom", unsigned_image},
        {"no_cache", when_true("--no-cache")},
        {"pull", when_true("--pull")},
        {"tags",
         [&](const Yaml& member, const std::string& key) {
           for (std::string& tag : texts(member, key)) add("--tag", std::move(tag));
         }},
        {"platforms",
         [&](const Yaml& member, const std::string& key) {
           if (texts(member, key).size() == 1) add("--platform", texts(member, key).front());
           else say("'platforms' of a build has no effect: it is built for this machine");
         }},
        {"no_cache_filter", none},
        {"cache_from", none},
        {"cache_to", none}},
       "a build");
  // The path of the Dockerfile is relative to the context.
  const bool remote = compose::is_remote(context);
  const std::string folder = remote ? context : path(context);
  if (!dockerfile.empty())
    add("--file", remote ? dockerfile : (std::filesystem::path(folder) / dockerfile).lexically_normal().string());
  words.push_back(folder);
  container.build = std::move(words);
}

void ComposeReader::read_networks(const Yaml& value, Service& service) {
  service.networks.clear();
  const auto check = [&](const Yaml& at, const std::string& name) {
    if (name != "default" && !networks_declared_.contains(name))
      refuse(at, fmt::format("the network '{}' is not declared", name), "name it under 'networks:' at the top");
  };
  if (value.is_list())
    for (const Yaml& item : value.items) {
      service.networks.insert(text(item, "networks"));
      check(item, item.text);
    }
  else if (!value.is_map()) refuse(value, "'networks': a list or a map is needed");
  for (const auto& [name, how] : value.members) {
    const std::string& network = name;
    service.networks.insert(name);
    check(how, name);
    const Known fine = [](const Yaml&, const std::string&) {};
    const Known address = [&](const Yaml& member, const std::string& key) {
      const std::string wanted = text(member, key);
      const auto subnet = subnets_.find(network);
      const auto parsed = parse_address(wanted);
      if (!parsed) refuse(member, fmt::format("'{}': '{}' is not an IP address", key, wanted));
      // A node has one address, in the one network whose subnet the run uses.
      const bool has_it = subnet != subnets_.end() && (addressed_.empty() || addressed_ == network) &&
                          parsed->is_ipv4() == (subnet->second.find('.') != std::string::npos);
      if (!has_it) {
        warn(fmt::format("{} {} of network '{}' is ignored: nodes get addresses of the run's subnet", key, wanted,
                         network));
        return;
      }
      addressed_ = network;
      found_.subnet = subnet->second;
      service.node.ip = wanted;
    };
    each(how,
         {{"aliases",
           [&](const Yaml& member, const std::string& key) {
             for (std::string& alias : texts(member, key)) service.container().aliases.push_back(std::move(alias));
           }},
          {"ipv4_address", address},
          {"ipv6_address", address},
          {"mac_address", fine},
          {"driver_opts", fine},
          {"link_local_ips", fine},
          {"interface_name", fine},
          {"gw_priority", fine},
          {"priority", fine}},
         "a service's network");
  }
}

void ComposeReader::read_network_mode(const Yaml& value, Service& service) {
  const std::string mode = text(value, "network_mode");
  if (mode.empty() || mode == "bridge" || mode == "default") return;
  if (mode == "host") {
    service.container().host_network = true;
  } else if (mode == "none") {
    warn(fmt::format("service {} has 'network_mode: none': in a run it is in the run's network like all nodes",
                     service.node.name));
  } else if (mode.starts_with("service:") || mode.starts_with("container:")) {
    shared_[service.node.name] = &value;
  } else {
    refuse(value, fmt::format("'network_mode': '{}' was found", mode),
           "known are bridge, host, none, service:NAME and container:NAME");
  }
}

// Refuses keys that conflict with `network_mode`. If a service uses another service's network, the settings of that
// network belong to the other service, as in Compose and container engines.
void ComposeReader::check_own_network(const Yaml& service, const std::string& name) {
  const Yaml* mode = service.find("network_mode");
  if (mode == nullptr || text(*mode, "network_mode").empty()) return;
  const auto conflict = [&](const char* key, std::string_view hint) {
    const Yaml* own = service.find(key);
    const bool empty =
        own == nullptr || (own->is_scalar() ? own->text.empty() : own->items.empty() && own->members.empty());
    if (!empty)
      refuse(*own, fmt::format("service '{}' has both 'network_mode: {}' and '{}'", name, mode->text, key),
             std::string(hint));
  };
  conflict("networks", "Compose accepts only one of them");
  if (!mode->text.starts_with("service:") && !mode->text.starts_with("container:")) return;
  for (const char* key : {"ports", "expose", "hostname", "extra_hosts", "links", "mac_address"})
    conflict(key, "it belongs to the network, so it is set at the service whose network this one shares");
}

void ComposeReader::read_limits(const Yaml& value, Container& container) {
  for (const auto& [name, limit] : value.members) {
    if (limit.is_scalar()) {
      container.limits.push_back(fmt::format("{}={}", name, text(limit, name)));
      continue;
    }
    const Yaml* soft = limit.find("soft");
    const Yaml* hard = limit.find("hard");
    if (soft == nullptr || hard == nullptr)
      refuse(limit, fmt::format("ulimit '{}': a number, or 'soft' and 'hard' are needed", name));
    container.limits.push_back(fmt::format("{}={}:{}", name, text(*soft, "soft"), text(*hard, "hard")));
  }
}

void ComposeReader::read_deploy(const Yaml& value, Service& service) {
  const Known swarm = [this](const Yaml&, const std::string& key) {
    say(fmt::format("'{}' of 'deploy' has no effect: it applies to swarms only", key));
  };
  each(value,
       {{"replicas",
         [&](const Yaml& member, const std::string& key) {
           if (!service.replicas) service.replicas = number(member, key, 0);
         }},
        {"mode",
         [&](const Yaml& member, const std::string& key) {
           // Jobs are services, too, as in Compose.
           const std::string mode = text(member, key);
           if (mode != "replicated" && mode != "global" && mode != "replicated-job" && mode != "global-job")
             refuse(member, fmt::format("'mode': '{}' was found", mode),
                    "known are replicated, global (one, as there is one machine), replicated-job and global-job");
         }},
        {"resources", [&](const Yaml& member, const std::string&) { read_resources(member, service); }},
        {"restart_policy",
         [&](const Yaml& member, const std::string&) {
           Restart policy{kEngineDelay, kAlways, false};
           bool never = false;
           each(member,
                {{"condition",
                  [&](const Yaml& item, const std::string& key) {
                    const std::string word = text(item, key);
                    never = word == "none";
                    policy.only_failures = word == "on-failure";
                    if (!never && !policy.only_failures && word != "any" && word != "always" &&
                        word != "unless-stopped" && !word.empty())
                      refuse(item, fmt::format("unknown condition '{}'", word),
                             "known are none, on-failure, any, always and unless-stopped");
                  }},
                 {"delay",
                  [&](const Yaml& item, const std::string& key) {
                    policy.delay_ns = std::max(duration(item, key), kEngineDelay);
                  }},
                 {"max_attempts",
                  [&](const Yaml& item, const std::string& key) {
                    if (const int most = number(item, key, 0); most > 0) policy.max = most;  // 0: unlimited
                  }},
                 {"window", [](const Yaml& item, const std::string& key) { (void)duration(item, key); }}},
                "a restart policy");
           if (never) policy.max = 0;
           service.deployed_restart = policy;
         }},
        {"labels", swarm},
        {"placement", swarm},
        {"update_config", swarm},
        {"rollback_config", swarm},
        {"endpoint_mode", swarm}},
       "'deploy'");
}

void ComposeReader::read_resources(const Yaml& value, Service& service) {
  const auto option = [&service](std::string flag) -> Known {
    return [&service, flag](const Yaml& member, const std::string& key) { service.option(flag, text(member, key)); };
  };
  const auto size_option = [&service](std::string flag) -> Known {
    return [&service, flag](const Yaml& member, const std::string& key) { service.option(flag, size(member, key)); };
  };
  const Known devices = [&](const Yaml&, const std::string& key) {
    warn(fmt::format("service {} requests '{}' in 'deploy', which has no effect: name the devices under 'devices'",
                     service.node.name, key));
  };
  // a reservation of processors is accepted and ignored: it only concerns the scheduler of a cluster
  const Known fine = [](const Yaml&, const std::string&) {};
  each(value,
       {{"limits",
         [&](const Yaml& member, const std::string&) {
           each(member,
                {{"cpus", option("--cpus")}, {"memory", size_option("--memory")}, {"pids", option("--pids-limit")}},
                "limits");
         }},
        {"reservations",
         [&](const Yaml& member, const std::string&) {
           each(member,
                {{"cpus", fine},
                 {"memory", size_option("--memory-reservation")},
                 {"devices", devices},
                 {"generic_resources", devices}},
                "reservations");
         }}},
       "'resources'");
}

}  // namespace rose::config
