#include "config/compose.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "base/address.h"
#include "base/ascii.h"
#include "base/file.h"
#include "base/text.h"
#include "base/yaml.h"

namespace rose::config {
namespace {

using compose::Lookup;

constexpr std::size_t kMostServices = 200;
constexpr std::int64_t kMillisecond = 1'000'000;
constexpr int kAlways = 1'000'000;
constexpr std::int64_t kEngineDelay = 100 * kMillisecond;  // engines' first delay of a restart

struct Wrong {
  int line;
  std::string what;
  std::string hint;
};

// "1m30s", "500ms"
std::optional<std::int64_t> duration_of(std::string_view text) {
  static const std::map<std::string_view, std::int64_t> units = {{"us", 1000}, {"ms", kMillisecond}, {"s", kSecond}, {"m", 60 * kSecond}, {"h", 3600 * kSecond}};
  std::int64_t total = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < 0 || number > 1e6) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    std::size_t letters = 0;
    while (letters < text.size() && is_alpha(text[letters])) ++letters;
    const auto unit = units.find(text.substr(0, letters));
    if (unit == units.end()) return std::nullopt;
    total += static_cast<std::int64_t>(number * static_cast<double>(unit->second));
    text.remove_prefix(letters);
  }
  return total;
}

// What rose would replace stays as Compose has it.
std::string kept(std::string text) { return replaced(std::move(text), "${", "$${"); }

class ComposeNodes {
 public:
  ComposeNodes(std::filesystem::path file, const Lookup& lookup, std::vector<std::string>& words)
      : file_(std::move(file)), folder_(file_.parent_path()), lookup_(lookup), words_(words) {}

  Result<std::vector<Node>> read(const Yaml& root) {
    try {
      read_root(root);
    } catch (const Wrong& wrong) {
      return fail(ErrorKind::input, fmt::format("{}:{}: {}", file_.string(), std::max(wrong.line, 1), wrong.what), wrong.hint);
    }
    return std::move(nodes_);
  }

 private:
  [[noreturn]] static void refuse(const Yaml& at, std::string what, std::string hint = {}) { throw Wrong{at.line, std::move(what), std::move(hint)}; }

  std::string resolved(const Yaml& at, const std::string& text) {
    std::vector<std::string> unresolved;
    std::string out = compose::interpolated(text, lookup_, unresolved);
    for (const std::string& name : unresolved) {
      if (text.find("${" + name + ":?") != std::string::npos || text.find("${" + name + "?") != std::string::npos)
        refuse(at, fmt::format("the variable {} is needed and has no value", name), "set it, or write it into .env beside the Compose file");
      say(fmt::format("the variable {} has no value: nothing stands for it, as Compose has it", name));
    }
    return out;
  }
  std::string text(const Yaml& value, std::string_view key) {
    if (!value.is_scalar()) refuse(value, fmt::format("'{}': one value is needed", key));
    return resolved(value, value.text);
  }
  bool truth(const Yaml& value, std::string_view key) {
    const std::string word = text(value, key);
    if (word == "true" || word == "yes" || word == "on") return true;
    if (word == "false" || word == "no" || word == "off") return false;
    refuse(value, fmt::format("'{}': '{}' was found, true or false is needed", key, word));
  }
  std::int64_t duration(const Yaml& value, std::string_view key) {
    const std::string word = text(value, key);
    const auto found = duration_of(word);
    if (!found) refuse(value, fmt::format("'{}': '{}' is no duration such as 1m30s", key, word));
    return *found;
  }
  // One, or a list of them.
  std::vector<std::string> texts(const Yaml& value, std::string_view key) {
    if (value.is_scalar()) return {resolved(value, value.text)};
    if (!value.is_list()) refuse(value, fmt::format("'{}': a list is needed", key));
    std::vector<std::string> found;
    for (const Yaml& item : value.items) found.push_back(text(item, key));
    return found;
  }
  // Words as they are, or a line that is split as a shell splits it.
  std::vector<std::string> command(const Yaml& value, std::string_view key) {
    std::vector<std::string> found = value.is_scalar() ? compose::shell_words(resolved(value, value.text)) : texts(value, key);
    for (std::string& word : found) word = kept(std::move(word));
    return found;
  }
  // {A: 1}, or ["A=1"]; "A" alone is without a value.
  std::vector<std::pair<std::string, std::optional<std::string>>> pairs(const Yaml& value, std::string_view key) {
    std::vector<std::pair<std::string, std::optional<std::string>>> found;
    if (value.is_map()) {
      for (const auto& [name, member] : value.members) {
        if (member.kind == Yaml::Kind::null) found.emplace_back(name, std::nullopt);
        else found.emplace_back(name, text(member, key));
      }
    } else if (value.is_list()) {
      for (const Yaml& item : value.items) {
        const std::string pair = text(item, key);
        const std::size_t equals = pair.find('=');
        if (equals == std::string::npos) found.emplace_back(pair, std::nullopt);
        else found.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
      }
    } else {
      refuse(value, fmt::format("'{}': a map or a list is needed", key));
    }
    return found;
  }
  void say(std::string word) {
    if (std::find(words_.begin(), words_.end(), word) == words_.end()) words_.push_back(std::move(word));
  }
  std::string path(const std::string& text) const {
    if (text.starts_with("~/"))
      if (const char* home = std::getenv("HOME"); home != nullptr) return (std::filesystem::path(home) / text.substr(2)).lexically_normal().string();
    return (folder_ / text).lexically_normal().string();
  }

  void read_root(const Yaml& root);
  void read_service(const std::string& name, const Yaml& value);
  void read_volumes(const Yaml& value);
  void read_volume(const Yaml& value, Container& container);
  void read_depends(const Yaml& value, Container& container);
  void read_health(const Yaml& value, Container& container);
  void read_restart(const Yaml& value, Node& node);
  void read_build(const Yaml& value, Container& container);
  void read_network_settings(const Yaml& value);
  void read_networks(const Yaml& value, Node& node);
  void read_limits(const Yaml& value, Container& container);
  void check_dependencies();

  const std::filesystem::path file_;
  const std::filesystem::path folder_;
  const Lookup& lookup_;
  std::vector<std::string>& words_;
  std::set<std::string> volumes_;    // declared
  std::set<std::string> left_out_;   // services with a profile
  std::vector<std::set<std::string>> networks_;
  std::vector<Node> nodes_;
};

void ComposeNodes::read_root(const Yaml& root) {
  const Yaml* services = root.is_map() ? root.find("services") : nullptr;
  if (services == nullptr || !services->is_map() || services->members.empty()) refuse(root, "there are no 'services'", "a Compose file is a map that names them under 'services:'");
  if (services->members.size() > kMostServices) refuse(*services, fmt::format("{} services, up to {} are accepted", services->members.size(), kMostServices));
  for (const auto& [key, value] : root.members) {
    if (key == "services" || key == "version" || key == "name" || key.starts_with("x-")) continue;
    if (key == "volumes") read_volumes(value);
    else if (key == "networks") read_network_settings(value);
    else {
      refuse(value, fmt::format("rose does not know '{}' of a Compose file", key), "known are services, volumes and networks");
    }
  }
  for (const auto& [name, value] : services->members) {
    if (!value.is_map()) refuse(value, fmt::format("service '{}' is no map", name));
    if (const Yaml* profiles = value.find("profiles"); profiles != nullptr && !profiles->items.empty()) {
      left_out_.insert(name);
      say(fmt::format("service {} has a profile, and is no node", name));
      continue;
    }
    read_service(name, value);
  }
  if (nodes_.empty()) refuse(*services, "all services have profiles: there is no node");
  check_dependencies();
  for (std::size_t i = 1; i < networks_.size(); ++i)
    if (networks_[i] != networks_[0]) say("services have networks of their own: here all nodes are in one, and reach each other");
}

void ComposeNodes::read_network_settings(const Yaml& value) {
  for (const auto& [name, network] : value.members) {
    if (network.kind != Yaml::Kind::null && !network.is_map()) refuse(network, fmt::format("network '{}' is no map", name));
    for (const auto& [key, member] : network.members) {
      if (key == "name" || key == "labels" || key == "attachable" || (key == "driver" && (member.text == "bridge" || member.text == "default"))) continue;
      if (key == "ipam" || key == "internal" || key == "enable_ipv6")
        say(fmt::format("network '{}' has '{}': here all nodes are in the run's own network, at addresses of its subnet", name, key));
      else if (key == "external")
        refuse(member, fmt::format("network '{}' is external: a run has a network of its own", name));
      else
        refuse(member, fmt::format("network '{}' has '{}': a run has a network of its own", name, key), "known are name, labels, attachable, ipam, internal, enable_ipv6 and driver: bridge");
    }
  }
}

void ComposeNodes::read_volumes(const Yaml& value) {
  for (const auto& [name, volume] : value.members) {
    for (const auto& [key, member] : volume.members)
      if (key != "name" && key != "labels" && !(key == "driver" && member.text == "local"))
        refuse(member, fmt::format("volume '{}' has '{}': each run has volumes of its own", name, key), "known are name, labels, and driver: local");
    volumes_.insert(name);
  }
}

void ComposeNodes::read_volume(const Yaml& value, Container& container) {
  std::string source, target, options, type;
  if (value.is_map()) {
    for (const auto& [key, member] : value.members) {
      if (key == "type") type = text(member, key);
      else if (key == "source") source = text(member, key);
      else if (key == "target") target = text(member, key);
      else if (key == "read_only") options = truth(member, key) ? ":ro" : "";
      else refuse(member, fmt::format("rose does not know '{}' of a volume", key), "known are type, source, target and read_only");
    }
    if (type == "tmpfs") {
      container.options.insert(container.options.end(), {"--tmpfs", target});
      return;
    }
    if (type != "bind" && type != "volume") refuse(value, fmt::format("a volume of type '{}', bind, volume or tmpfs is needed", type));
  } else {
    const std::vector<std::string> parts = split(text(value, "volumes"), ':');
    if (parts.size() > 3) refuse(value, fmt::format("'{}' is no volume: SOURCE:TARGET[:OPTIONS] is needed", value.text));
    target = parts.size() > 1 ? parts[1] : parts[0];
    source = parts.size() > 1 ? parts[0] : "";
    for (const std::string& option : parts.size() > 2 ? split(parts[2], ',') : std::vector<std::string>{})
      if (option != "ro" && option != "rw" && option != "z" && option != "Z" && option != "nocopy") refuse(value, fmt::format("a volume with the option '{}', known are ro, rw, z, Z and nocopy", option));
    if (parts.size() > 2) options = ":" + parts[2];
    type = source.starts_with('/') || source.starts_with('.') || source.starts_with('~') ? "bind" : "volume";
  }
  if (!target.starts_with('/')) refuse(value, fmt::format("'{}' is no place in a container: an absolute path is needed", target));
  if (source.find(':') != std::string::npos || target.find(':') != std::string::npos) refuse(value, "a volume whose path has a ':'");
  if (source.empty()) {
    container.options.insert(container.options.end(), {"--volume", target});
    return;
  }
  if (type == "bind") {
    source = path(source);
    if (options.find("ro") == std::string::npos) say(fmt::format("{} is a folder of this machine: all runs share it", source));
  } else if (!volumes_.contains(source)) {
    refuse(value, fmt::format("the volume '{}' is not declared", source), "name it under 'volumes:' at the top");
  }
  container.volumes.push_back(fmt::format("{}:{}{}", kept(source), kept(target), options));
}

void ComposeNodes::read_depends(const Yaml& value, Container& container) {
  if (!value.is_map()) {
    for (const Yaml& item : value.items) container.after.push_back({text(item, "depends_on"), Dependency::When::started, item.line});
    if (!value.is_list()) refuse(value, "'depends_on': a list or a map is needed");
    return;
  }
  for (const auto& [name, how] : value.members) {
    Dependency dependency{name, Dependency::When::started, how.line};
    bool required = true;
    for (const auto& [key, member] : how.members) {
      const std::string word = text(member, key);
      if (key == "required") required = truth(member, key);
      else if (key == "restart") continue;  // by Compose's own commands only
      else if (key != "condition") refuse(member, fmt::format("rose does not know '{}' of a dependency", key), "known are condition, required and restart");
      else if (word == "service_healthy") dependency.when = Dependency::When::healthy;
      else if (word == "service_completed_successfully") dependency.when = Dependency::When::completed;
      else if (word != "service_started") refuse(member, fmt::format("unknown condition '{}'", word), "known are service_started, service_healthy and service_completed_successfully");
    }
    if (required || !left_out_.contains(name)) container.after.push_back(dependency);
  }
}

void ComposeNodes::read_health(const Yaml& value, Container& container) {
  Health health;
  bool disabled = false;
  for (const auto& [key, member] : value.members) {
    if (key == "test") {
      if (member.is_scalar()) {
        health.test = {"/bin/sh", "-c", resolved(member, member.text)};
      } else {
        std::vector<std::string> words = texts(member, key);
        const std::string how = words.empty() ? "" : words.front();
        if (how == "NONE") disabled = true;
        else if (how == "CMD" && words.size() > 1) health.test.assign(words.begin() + 1, words.end());
        else if (how == "CMD-SHELL" && words.size() == 2) health.test = {"/bin/sh", "-c", words[1]};
        else refuse(member, "'test': a line, or a list that begins with CMD, CMD-SHELL or NONE is needed");
      }
    } else if (key == "interval") health.interval_ns = duration(member, key);
    else if (key == "timeout") health.timeout_ns = duration(member, key);
    else if (key == "start_period") health.start_period_ns = duration(member, key);
    else if (key == "start_interval") (void)duration(member, key);  // of our own choice, as short as it may be
    else if (key == "disable") disabled = truth(member, key);
    else if (key == "retries") {
      const std::string word = text(member, key);
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), health.retries);
      if (error != std::errc() || end != word.data() + word.size() || health.retries < 1 || health.retries > 10'000) refuse(member, fmt::format("'retries': '{}' is no number from 1 to 10000", word));
    } else refuse(member, fmt::format("rose does not know '{}' of a healthcheck", key), "known are test, interval, timeout, retries, start_period, start_interval and disable");
  }
  if (disabled) return;
  if (health.test.empty()) refuse(value, "a healthcheck without 'test': that of the image is not run", "write it into the Compose file");
  container.health = std::move(health);
}

void ComposeNodes::read_restart(const Yaml& value, Node& node) {
  const std::string word = text(value, "restart");
  if (word == "no" || word == "false") return;
  Restart policy{kEngineDelay, kAlways, false};
  if (word.starts_with("on-failure")) {
    policy.only_failures = true;
    if (word.size() > 10) {
      const std::string_view number = std::string_view(word).substr(std::min<std::size_t>(11, word.size()));
      const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), policy.max);
      if (word[10] != ':' || error != std::errc() || end != number.data() + number.size() || policy.max < 0) refuse(value, fmt::format("unknown restart policy '{}'", word));
    }
  } else if (word != "always" && word != "unless-stopped") {
    refuse(value, fmt::format("unknown restart policy '{}'", word), "known are no, always, unless-stopped and on-failure");
  }
  node.restart = policy;
}

void ComposeNodes::read_build(const Yaml& value, Container& container) {
  std::string context = ".";
  std::vector<std::string> words;
  if (value.is_scalar()) context = text(value, "build");
  for (const auto& [key, member] : value.members) {
    if (key == "context") context = text(member, key);
    else if (key == "dockerfile") words.insert(words.end(), {"--file", text(member, key)});
    else if (key == "target") words.insert(words.end(), {"--target", text(member, key)});
    else if (key == "args") {
      for (const auto& [name, argument] : pairs(member, key))
        words.insert(words.end(), {"--build-arg", argument ? fmt::format("{}={}", name, *argument) : name});
    } else refuse(member, fmt::format("rose does not know '{}' of a build", key), "known are context, dockerfile, target and args");
  }
  const std::string folder = path(context);
  // The path of the Dockerfile starts in the context.
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == "--file") words[i + 1] = (std::filesystem::path(folder) / words[i + 1]).lexically_normal().string();
  words.push_back(folder);
  container.build = std::move(words);
}

void ComposeNodes::read_networks(const Yaml& value, Node& node) {
  std::set<std::string> names;
  if (value.is_list())
    for (const Yaml& item : value.items) names.insert(text(item, "networks"));
  else if (!value.is_map()) refuse(value, "'networks': a list or a map is needed");
  for (const auto& [name, how] : value.members) {
    names.insert(name);
    for (const auto& [key, member] : how.members) {
      if (key == "aliases") {
        for (std::string& alias : texts(member, key)) node.container->aliases.push_back(std::move(alias));
      } else if (key == "ipv4_address" || key == "ipv6_address") {
        say("addresses of services are rose's: they have them in the run's subnet");
      } else if (key != "priority") {
        refuse(member, fmt::format("rose does not know '{}' of a service's network", key), "known are aliases and ipv4_address");
      }
    }
  }
  networks_.back() = names;
}

void ComposeNodes::read_limits(const Yaml& value, Container& container) {
  for (const auto& [name, limit] : value.members) {
    if (limit.is_scalar()) {
      container.limits.push_back(fmt::format("{}={}", name, text(limit, name)));
      continue;
    }
    const Yaml* soft = limit.find("soft");
    const Yaml* hard = limit.find("hard");
    if (soft == nullptr || hard == nullptr) refuse(limit, fmt::format("ulimit '{}': a number, or 'soft' and 'hard' are needed", name));
    container.limits.push_back(fmt::format("{}={}:{}", name, text(*soft, "soft"), text(*hard, "hard")));
  }
}

void ComposeNodes::read_service(const std::string& name, const Yaml& value) {
  Node node;
  node.name = name;
  node.line = value.line;
  node.container = Container();
  Container& container = *node.container;
  container.service = true;
  networks_.emplace_back();
  networks_.back().insert("default");
  const auto option = [&container](std::string_view flag, std::string word) { container.options.insert(container.options.end(), {std::string(flag), std::move(word)}); };
  std::map<std::string, std::string> from_files;

  using Reader = std::function<void(const Yaml&, const std::string&)>;
  const auto list_option = [&](std::string flag) -> Reader {
    return [&, flag](const Yaml& member, const std::string& key) {
      for (std::string& word : texts(member, key)) option(flag, std::move(word));
    };
  };
  const auto one_option = [&](std::string flag) -> Reader {
    return [&, flag](const Yaml& member, const std::string& key) { option(flag, text(member, key)); };
  };
  const auto switch_option = [&](std::string flag) -> Reader {
    return [&, flag](const Yaml& member, const std::string& key) {
      if (truth(member, key)) container.options.push_back(flag);
    };
  };
  const auto pair_option = [&](std::string flag, char between) -> Reader {
    return [&, flag, between](const Yaml& member, const std::string& key) {
      for (const auto& [left, right] : pairs(member, key)) option(flag, right ? fmt::format("{}{}{}", left, between, *right) : left);
    };
  };
  const auto left_out = [&](std::string why) -> Reader {
    return [&, why](const Yaml&, const std::string&) { say(why); };
  };
  const std::map<std::string, Reader> readers = {
      {"image", [&](const Yaml& member, const std::string& key) { container.image = text(member, key); }},
      {"build", [&](const Yaml& member, const std::string&) { read_build(member, container); }},
      {"command", [&](const Yaml& member, const std::string& key) { if (member.kind != Yaml::Kind::null) node.command = command(member, key); }},
      {"entrypoint", [&](const Yaml& member, const std::string& key) { if (member.kind != Yaml::Kind::null) container.entrypoint = command(member, key); }},
      {"environment", [&](const Yaml& member, const std::string& key) {
         for (const auto& [variable, setting] : pairs(member, key)) {
           if (setting) node.env[variable] = kept(*setting);
           else if (const auto own = lookup_(variable)) node.env[variable] = kept(*own);
         }
       }},
      {"env_file", [&](const Yaml& member, const std::string& key) {
         std::vector<std::pair<std::string, bool>> files;
         const std::vector<Yaml> one{member};
         for (const Yaml& item : member.is_list() ? member.items : one) {
           if (item.is_scalar()) files.emplace_back(text(item, key), true);
           else if (const Yaml* at = item.find("path")) {
             const Yaml* required = item.find("required");
             files.emplace_back(text(*at, key), required == nullptr || truth(*required, "required"));
           } else refuse(item, "'env_file': a path is needed");
         }
         for (const auto& [file, required] : files) {
           // A pipe or device would hold rose up.
           const Result<std::string> content = open_regular(path(file)) ? read_file(path(file), std::size_t{1} << 20)
                                                                        : fail(ErrorKind::input, fmt::format("{} is no file that can be read", path(file)));
           if (!content && required) refuse(member, fmt::format("'env_file': {}", content.error().message));
           if (content)
             for (auto& [variable, setting] : compose::read_dot_env(*content)) from_files[variable] = kept(setting);
         }
       }},
      {"volumes", [&](const Yaml& member, const std::string&) {
         if (!member.is_list()) refuse(member, "'volumes': a list is needed");
         for (const Yaml& item : member.items) read_volume(item, container);
       }},
      {"depends_on", [&](const Yaml& member, const std::string&) { read_depends(member, container); }},
      {"healthcheck", [&](const Yaml& member, const std::string&) { read_health(member, container); }},
      {"restart", [&](const Yaml& member, const std::string&) { read_restart(member, node); }},
      {"networks", [&](const Yaml& member, const std::string&) { read_networks(member, node); }},
      {"ulimits", [&](const Yaml& member, const std::string&) { read_limits(member, container); }},
      {"user", [&](const Yaml& member, const std::string& key) { node.user = text(member, key); }},
      {"hostname", [&](const Yaml& member, const std::string& key) { container.hostname = text(member, key); }},
      {"container_name", [&](const Yaml& member, const std::string& key) { container.aliases.push_back(text(member, key)); }},
      {"stop_signal", [&](const Yaml& member, const std::string& key) { container.stop_signal = text(member, key); }},
      {"stop_grace_period", [&](const Yaml& member, const std::string& key) { container.stop_grace_ns = duration(member, key); }},
      {"working_dir", one_option("--workdir")},
      {"shm_size", one_option("--shm-size")},
      {"platform", one_option("--platform")},
      {"cap_add", list_option("--cap-add")},
      {"cap_drop", list_option("--cap-drop")},
      {"tmpfs", list_option("--tmpfs")},
      {"security_opt", list_option("--security-opt")},
      {"group_add", list_option("--group-add")},
      {"devices", list_option("--device")},
      {"read_only", switch_option("--read-only")},
      {"init", switch_option("--init")},
      {"privileged", switch_option("--privileged")},
      {"sysctls", pair_option("--sysctl", '=')},
      {"labels", pair_option("--label", '=')},
      {"extra_hosts", [&](const Yaml& member, const std::string& key) {
         for (const auto& [host, address] : pairs(member, key)) option("--add-host", address ? fmt::format("{}:{}", host, *address) : host);
       }},
      {"ports", left_out("ports are not published: nodes are reached at their addresses (ROSE_IP_<node>)")},
      {"expose", [](const Yaml&, const std::string&) {}},
      {"annotations", pair_option("--annotation", '=')},
      {"logging", left_out("'logging' is rose's: output goes to the nodes' stdout.log and stderr.log")},
      {"profiles", [](const Yaml&, const std::string&) {}},
      {"pull_policy", [&](const Yaml& member, const std::string& key) {
         if (const std::string policy = text(member, key); policy != "missing" && policy != "if_not_present")
           refuse(member, fmt::format("'pull_policy': '{}' was found, images are pulled when they are missing", policy));
       }},
  };
  for (const auto& [key, member] : value.members) {
    if (key.starts_with("x-")) continue;
    const auto reader = readers.find(key);
    if (reader == readers.end()) {
      std::vector<std::string> known;
      for (const auto& [one, unused] : readers) known.push_back(one);
      const std::string near = did_you_mean(key, known);
      refuse(member, fmt::format("service '{}': rose does not know '{}'", name, key), near.empty() ? fmt::format("known are {}", fmt::join(known, ", ")) : near);
    }
    reader->second(member, key);
  }
  for (auto& [variable, setting] : from_files) node.env.emplace(variable, std::move(setting));
  if (container.image.empty() && container.build.empty()) refuse(value, fmt::format("service '{}' has neither 'image' nor 'build'", name));
  if (container.image.empty()) container.image = fmt::format("localhost/rose-{}-{}", folder_.filename().string(), name);
  nodes_.push_back(std::move(node));
}

void ComposeNodes::check_dependencies() {
  std::map<std::string, const Node*> known;
  for (const Node& node : nodes_) known[node.name] = &node;
  // In turns: whoever depends only on those that stand already is next.
  std::set<std::string> standing;
  for (const Node& node : nodes_)
    for (const Dependency& one : node.container->after) {
      if (!known.contains(one.node)) throw Wrong{one.line, fmt::format("'{}' depends on '{}', which is no service that is started", node.name, one.node), ""};
      if (one.when == Dependency::When::healthy && !known[one.node]->container->health)
        throw Wrong{one.line, fmt::format("'{}' waits for '{}' to be healthy, which has no healthcheck", node.name, one.node), ""};
    }
  for (bool more = true; more;) {
    more = false;
    for (const Node& node : nodes_) {
      const auto& after = node.container->after;
      if (standing.contains(node.name) || !std::all_of(after.begin(), after.end(), [&](const Dependency& one) { return standing.contains(one.node); })) continue;
      standing.insert(node.name);
      more = true;
    }
  }
  for (const Node& node : nodes_)
    if (!standing.contains(node.name)) throw Wrong{node.line, fmt::format("'{}' depends on itself, by way of others", node.name), ""};
}

}  // namespace

Result<std::vector<Node>> read_compose(std::string_view text, const std::filesystem::path& file, const compose::Lookup& lookup, std::vector<std::string>& words) {
  ROSE_TRY(const Yaml root, parse_yaml(text, file.string()));
  return ComposeNodes(file, lookup, words).read(root);
}

Result<std::vector<Node>> read_compose_file(const std::filesystem::path& file, std::vector<std::string>& words) {
  ROSE_TRY(const std::string text, read_file(file, kMostYamlBytes));
  compose::Variables own;
  if (const auto dot_env = read_file(file.parent_path() / ".env", kMostYamlBytes)) own = compose::read_dot_env(*dot_env);
  return read_compose(text, file, [&own](const std::string& name) -> std::optional<std::string> {
    if (const char* value = std::getenv(name.c_str()); value != nullptr) return value;
    for (auto at = own.rbegin(); at != own.rend(); ++at)
      if (at->first == name) return at->second;
    return std::nullopt;
  }, words);
}

}  // namespace rose::config
