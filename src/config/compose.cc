#include "config/compose.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/address.h"
#include "base/ascii.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "config/compose_reader.h"
#include "config/subnet.h"

namespace rose::config {
namespace {

constexpr std::size_t kMostServices = 200;

// Parses "1m30s", "500ms" or "2d".
std::optional<std::int64_t> duration_of(std::string_view text) {
  static const std::map<std::string_view, std::int64_t> units = {{"ns", 1},
                                                                 {"us", 1000},
                                                                 {"\u00b5s", 1000},
                                                                 {"\u03bcs", 1000},
                                                                 {"ms", kMillisecond},
                                                                 {"s", kSecond},
                                                                 {"m", 60 * kSecond},
                                                                 {"h", 3600 * kSecond},
                                                                 {"d", 24 * 3600 * kSecond},
                                                                 {"w", 7 * 24 * 3600 * kSecond}};
  std::int64_t total = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < 0 || number > 1e6) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    std::size_t letters = 0;
    while (letters < text.size() && !is_digit(text[letters]) && text[letters] != '.') ++letters;
    const auto unit = units.find(text.substr(0, letters));
    if (unit == units.end())
      return number == 0 && letters == 0 && text.empty() ? std::optional<std::int64_t>(total) : std::nullopt;
    total += static_cast<std::int64_t>(number * static_cast<double>(unit->second));
    text.remove_prefix(letters);
  }
  return total;
}

}  // namespace

std::string kept(std::string text) { return replaced(std::move(text), "${", "$${"); }

// Values

void ComposeReader::add(std::vector<std::string>& to, std::string word) {
  if (std::find(to.begin(), to.end(), word) == to.end()) to.push_back(std::move(word));
}

void ComposeReader::each(const Yaml& map, const Keys& readers, const std::string& whose) {
  for (const auto& [key, member] : map.members) {
    if (key.starts_with("x-")) continue;
    const auto reader = readers.find(key);
    if (reader == readers.end()) {
      std::vector<std::string> known;
      for (const auto& [one, unused] : readers) known.push_back(one);
      const std::string near = did_you_mean(key, known);
      refuse(member, fmt::format("{}: unknown key '{}'", whose, key),
             near.empty() ? fmt::format("known are {}", fmt::join(known, ", ")) : near);
    }
    reader->second(member, key);
  }
}

std::string ComposeReader::text(const Yaml& value, std::string_view key) {
  if (!value.is_scalar()) refuse(value, fmt::format("'{}': a single value is needed", key));
  return value.text;
}

bool ComposeReader::truth(const Yaml& value, std::string_view key) {
  const std::string word = lower_case(text(value, key));
  if (word == "true" || word == "y" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "n" || word == "no" || word == "off") return false;
  refuse(value, fmt::format("'{}': '{}' was found, true or false is needed", key, value.text));
}

std::int64_t ComposeReader::duration(const Yaml& value, std::string_view key) {
  const std::string word = text(value, key);
  const auto found = duration_of(word);
  if (!found) refuse(value, fmt::format("'{}': '{}' is not a duration such as 1m30s", key, word));
  return *found;
}

std::string ComposeReader::size(const Yaml& value, std::string_view key) {
  std::string word = text(value, key);
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  std::string unit = lower_case(std::string(end, static_cast<std::size_t>(word.data() + word.size() - end)));
  while (unit.starts_with(' ')) unit.erase(0, 1);
  if (unit.ends_with("ib")) unit.erase(unit.size() - 2);
  else if (unit.ends_with('b')) unit.pop_back();
  const bool known = unit.empty() || (unit.size() == 1 && std::string_view("kmgtp").find(unit[0]) != std::string::npos);
  if (!word.empty() && (error != std::errc() || !known))
    refuse(value, fmt::format("'{}': '{}' is not a number of bytes such as 512m or 1.5g", key, word));
  return word;
}

std::string ComposeReader::bytes(const Yaml& value, std::string_view key) {
  const std::string word = size(value, key);
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc()) return word;
  for (const char* unit = end; unit != word.data() + word.size(); ++unit)
    if (const std::size_t power = std::string_view("kmgtp").find(lower_case(*unit)); power != std::string::npos)
      number *= std::pow(1024.0, static_cast<double>(power + 1));
  constexpr double kMost = 9e18;
  if (!(number >= 0 && number <= kMost)) refuse(value, fmt::format("'{}': '{}' is no size", key, word));
  return std::to_string(static_cast<std::int64_t>(number));
}

unsigned ComposeReader::file_mode(const Yaml& value, std::string_view key) {
  const std::string word = text(value, key);
  std::string_view digits = word;
  int base = 10;
  const std::string start = lower_case(digits.substr(0, 2));
  if (start == "0o" || start == "0x" || start == "0b") {
    base = start == "0o" ? 8 : start == "0x" ? 16 : 2;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits.front() == '0') {
    base = 8;
  }
  unsigned mode = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), mode, base);
  constexpr unsigned kMost = 07777;
  if (error != std::errc() || end != digits.data() + digits.size() || mode > kMost)
    refuse(value, fmt::format("'{}': '{}' is not the mode of a file, such as 0440", key, word));
  return mode;
}

int ComposeReader::number(const Yaml& value, std::string_view key, int least) {
  const std::string word = text(value, key);
  int found = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), found);
  if (error != std::errc() || end != word.data() + word.size() || found < least || found > 10'000)
    refuse(value, fmt::format("'{}': '{}' is not a number from {} to 10000", key, word, least));
  return found;
}

// Reads a string or a list of strings.
std::vector<std::string> ComposeReader::texts(const Yaml& value, std::string_view key) {
  if (value.is_scalar()) return {value.text};
  if (!value.is_list()) refuse(value, fmt::format("'{}': a list is needed", key));
  std::vector<std::string> found;
  for (const Yaml& item : value.items) found.push_back(text(item, key));
  return found;
}

// Reads a list of words, or a line, which is split into words as a shell would do it.
std::vector<std::string> ComposeReader::command(const Yaml& value, std::string_view key) {
  std::vector<std::string> found;
  if (!value.is_scalar()) {
    found = texts(value, key);
  } else if (auto words = compose::shell_words(value.text)) {
    found = std::move(*words);
  } else {
    refuse(value, fmt::format("'{}': quotes without an end, or parentheses outside of quotes", key),
           "Compose refuses it too: for a shell, write [\"sh\", \"-c\", \"...\"]");
  }
  for (std::string& word : found) word = kept(std::move(word));
  return found;
}

// Reads pairs from a map such as {A: 1} or a list such as ["A=1"]. A name alone, as in ["A"], has no value.
std::vector<std::pair<std::string, std::optional<std::string>>> ComposeReader::pairs(const Yaml& value,
                                                                                     std::string_view key) {
  std::vector<std::pair<std::string, std::optional<std::string>>> found;
  if (value.is_map()) {
    for (const auto& [name, member] : value.members) {
      if (member.kind == Yaml::Kind::null) found.emplace_back(name, std::nullopt);
      else found.emplace_back(name, member.plain ? compose::plain_value(text(member, key)) : text(member, key));
    }
  } else if (value.is_list()) {
    for (const Yaml& item : value.items) {
      const std::string pair = text(item, key);
      const std::size_t equals = pair.find('=');
      const std::string name = pair.substr(0, equals);
      std::erase_if(found, [&](const auto& entry) { return entry.first == name; });  // the last value counts
      if (equals == std::string::npos) found.emplace_back(name, std::nullopt);
      else found.emplace_back(name, pair.substr(equals + 1));
    }
  } else if (value.kind != Yaml::Kind::null) {
    refuse(value, fmt::format("'{}': a map or a list is needed", key));
  }
  return found;
}

// Top level of the file

namespace {

// The hint for a reference to something that the file does not define: parts of a project are often kept in separate
// files.
// The first names of a list that may be long.
std::string first_of(std::vector<std::string> names) {
  constexpr std::size_t kMost = 20;
  const std::size_t all = names.size();
  names.resize(std::min(all, kMost));
  return fmt::format("{}{}", fmt::join(names, ", "), all > kMost ? fmt::format(" and {} more", all - kMost) : "");
}

constexpr const char* kOfSeveralFiles = "if it is in another file, name both: compose = [\"FIRST\", \"SECOND\"]";

}  // namespace

Result<ComposeNodes> ComposeReader::read() {
  try {
    const Yaml& root = project_.root;
    const Yaml* services = root.is_map() ? root.find("services") : nullptr;
    if (services == nullptr || !services->is_map() || services->members.empty())
      refuse(root, "there are no 'services'", "'services' is missing");
    if (services->members.size() > kMostServices)
      refuse(*services, fmt::format("{} services, up to {} are accepted", services->members.size(), kMostServices));
    std::vector<std::string> unset;
    for (const auto& [name, where] : project_.without_value) unset.push_back(fmt::format("{} ({})", name, where));
    if (!unset.empty())
      warn(fmt::format("{} not set and replaced by nothing, as Compose does: {}",
                       unset.size() == 1 ? "one variable is" : "some variables are", first_of(unset)));
    const Known fine = [](const Yaml&, const std::string&) {};
    each(
        root,
        {{"services", fine},
         {"version", fine},
         {"name", fine},
         {"volumes", [this](const Yaml& value, const std::string&) { read_volumes_of_file(value); }},
         {"networks", [this](const Yaml& value, const std::string&) { read_networks_of_file(value); }},
         {"secrets", [this](const Yaml& value, const std::string& key) { read_handed_of_file(value, key, secrets_); }},
         {"configs", [this](const Yaml& value, const std::string& key) { read_handed_of_file(value, key, configs_); }}},
        "the top of the file");
    // All services are read, so that all problems are reported at once.
    std::optional<Error> problems;
    for (const auto& [name, value] : services->members) {
      try {
        if (!value.is_map()) refuse(value, fmt::format("service '{}' is not a map", name));
        if (is_started(name, value)) read_service(name, value);
      } catch (const Wrong& wrong) {
        Error error = problem(wrong);
        if (!problems) problems = std::move(error);
        else problems->message += "\n" + error.message;
      }
    }
    if (problems) return Unexpected(std::move(*problems));
    if (found_.nodes.empty()) {
      if (profiles_.empty()) refuse(*services, "no service is started: none has a replica");
      refuse(*services,
             fmt::format("no service is started: each has a profile ({}), and COMPOSE_PROFILES selects none",
                         fmt::join(profiles_, ", ")),
             fmt::format("choose with [deployment] compose_profiles = [\"{0}\"], --compose-profile {0} of 'rose init', "
                         "or COMPOSE_PROFILES={0}",
                         *profiles_.begin()));
    }
    for (Node& node : found_.nodes) {
      for (const auto& [alias, by] : linked_names_[node.name]) node.container->aliases.push_back(alias);
      if (!replicas_.contains(node.name) && !named_containers_.contains(node.name))
        node.container->aliases.push_back(fmt::format("{}-{}-1", project_.name, node.name));
    }
    share_networks();
    share_processes();
    share_memory();
    check_dependencies();
    check_networks();
    settle_name_servers();
    make_replicas();
  } catch (const Wrong& wrong) {
    return Unexpected(problem(wrong));
  }
  if (!valueless_.empty())
    warn(fmt::format(
        "variables of 'environment' without a value, which are not set here, are not set in containers either, as with "
        "Compose: {}",
        first_of({valueless_.begin(), valueless_.end()})));
  return std::move(found_);
}

Error ComposeReader::problem(const Wrong& wrong) const {
  return {ErrorKind::input,
          fmt::format("{}:{}: {}", project_.files[static_cast<std::size_t>(wrong.file)].string(),
                      std::max(wrong.line, 1), wrong.what),
          wrong.hint};
}

std::string ComposeReader::without_value(const Yaml& at) const {
  const std::string place = fmt::format("{}:{}", project_.files[static_cast<std::size_t>(at.file)].string(), at.line);
  std::vector<std::string> names;
  for (const auto& [name, where] : project_.without_value)
    if (where == place) names.push_back(name);
  return names.empty() ? ""
                       : fmt::format(": {} {} no value", fmt::join(names, ", "), names.size() == 1 ? "has" : "have");
}

// A service without profiles is always started. A service with profiles is started if one of them is selected: by
// `compose_profiles` in rose.toml if it is set, otherwise by COMPOSE_PROFILES. "*" selects all profiles.
bool ComposeReader::is_started(const std::string& name, const Yaml& value) {
  const Yaml* profiles = value.find("profiles");
  if (profiles == nullptr) return true;
  const std::vector<std::string> own = texts(*profiles, "profiles");
  if (own.empty()) return true;
  const std::vector<std::string> wanted = split(lookup_("COMPOSE_PROFILES").value_or(""), ',');
  for (const std::string& wanted_name : wanted)
    if (wanted_name == "*" || std::find(own.begin(), own.end(), wanted_name) != own.end()) {
      add(found_.profiles, wanted_name);
      return true;
    }
  profiles_.insert(own.begin(), own.end());
  left_out_.insert(name);
  say(fmt::format("service {} has the profile {} and is not a node: compose_profiles = [\"{}\"] starts it", name,
                  fmt::join(own, ", "), own.front()));
  return false;
}

void ComposeReader::read_networks_of_file(const Yaml& value) {
  for (const auto& [name, network] : value.members) {
    const std::string& named = name;
    networks_declared_.insert(name);
    if (network.kind != Yaml::Kind::null && !network.is_map())
      refuse(network, fmt::format("network '{}' is not a map", name));
    const Known fine = [](const Yaml&, const std::string&) {};
    const Known none = [&](const Yaml&, const std::string& key) {
      say(fmt::format("network '{}' has '{}', which has no effect: all nodes are in the run's own network", named,
                      key));
    };
    each(network,
         {{"name", fine},
          {"labels", fine},
          {"attachable", fine},
          {"enable_ipv4", fine},
          {"internal", none},
          {"enable_ipv6", none},
          {"driver_opts", none},
          {"driver",
           [&](const Yaml& member, const std::string& key) {
             if (member.text != "bridge" && member.text != "default") none(member, key);
           }},
          {"external",
           [&](const Yaml& member, const std::string& key) {
             if (member.is_map() || truth(member, key))
               warn(fmt::format(
                   "network '{}' is external: a run has its own network and cannot reach what else is in it", named));
           }},
          {"ipam",
           [&](const Yaml& member, const std::string& key) {
             const Yaml* configs = member.find("config");
             for (const Yaml& item : configs == nullptr ? std::vector<Yaml>{} : configs->items) {
               // Engines accept any address of the network.
               const std::string subnet = masked_subnet(item.scalar("subnet"));
               if (subnet.empty()) continue;
               if (auto parsed = parse_subnet(subnet); !parsed)
                 warn(fmt::format("network '{}': the subnet is ignored: {}", named, parsed.error()));
               else subnets_.try_emplace(named, subnet);
             }
             if (!subnets_.contains(named)) none(member, key);
           }}},
         fmt::format("network '{}'", name));
  }
}

// Returns those of the mount's options that tmpfs supports. nodev and nosuid are always in effect.
std::string ComposeReader::tmpfs_options(const Yaml& value, const std::string& volume, const std::string& all) {
  static constexpr std::array kKnown =
      std::to_array<std::string_view>({"size", "mode", "uid", "gid", "nr_inodes", "nr_blocks"});
  static constexpr std::array kWithout = std::to_array<std::string_view>({"", "rw", "nodev", "nosuid", "noatime"});
  std::vector<std::string> known;
  for (const std::string& option : split(all, ',')) {
    if (std::find(kWithout.begin(), kWithout.end(), option) != kWithout.end()) continue;
    if (option == "noexec") {
      warn(fmt::format("volume '{}': 'noexec' has no effect", volume));
      continue;
    }
    if (std::find(kKnown.begin(), kKnown.end(), option.substr(0, option.find('='))) == kKnown.end())
      refuse(value, fmt::format("volume '{}' is mounted with '{}'", volume, option),
             "known are size, mode, uid, gid, nr_inodes, nr_blocks, nodev, nosuid and noexec");
    known.push_back(option);
  }
  return fmt::format("{}", fmt::join(known, ","));
}

void ComposeReader::read_volumes_of_file(const Yaml& value) {
  for (const auto& [name, volume] : value.members) {
    const std::string& named = name;
    if (name.empty() || name.front() == '.' || !std::all_of(name.begin(), name.end(), is_name_char))
      refuse(volume, fmt::format("'{}' is not a valid volume name", name),
             "letters, digits, '.', '_' and '-' are accepted, but no '.' at the beginning");
    if (volume.kind != Yaml::Kind::null && !volume.is_map())
      refuse(volume, fmt::format("volume '{}' is not a map", name));
    volumes_[name] = {};
    const Known fine = [](const Yaml&, const std::string&) {};
    each(volume,
         {{"name", fine},
          {"labels", fine},
          {"external",
           [&](const Yaml& member, const std::string& key) {
             if (member.is_map() || truth(member, key))
               warn(fmt::format("volume '{}' is external: each run uses an empty one of its own instead", named));
           }},
          {"driver",
           [&](const Yaml& member, const std::string& key) {
             if (const std::string driver = text(member, key); driver != "local")
               refuse(
                   member,
                   fmt::format("volume '{}' has the driver '{}': each run uses its own volumes with the driver local",
                               named, driver));
           }},
          {"driver_opts",
           [&](const Yaml& member, const std::string&) {
             if (member.is_map() && member.members.empty()) return;
             const std::string type = member.scalar("type");
             const std::string how = member.scalar("o");
             if (type == "tmpfs") {
               volumes_[named].tmpfs = tmpfs_options(member, named, how);
               return;
             }
             if (how != "bind" && !how.starts_with("bind,"))
               refuse(member, fmt::format("volume '{}' is of type '{}': each run uses its own volumes", named, type),
                      "known are type: tmpfs, and o: bind with a device");
             volumes_[named].folder = path(member.scalar("device"));
           }}},
         fmt::format("volume '{}'", name));
  }
}

void ComposeReader::read_handed_of_file(const Yaml& value, const std::string& kind,
                                        std::map<std::string, Handed>& into) {
  for (const auto& [name, one] : value.members) {
    Handed handed;
    const Known fine = [](const Yaml&, const std::string&) {};
    each(one,
         {{"name", fine},
          {"labels", fine},
          {"file", [&](const Yaml& member, const std::string& key) { handed.file = path(text(member, key)); }},
          {"content", [&](const Yaml& member, const std::string& key) { handed.content = text(member, key); }},
          {"environment",
           [&](const Yaml& member, const std::string& key) {
             const std::string variable = text(member, key);
             handed.content = lookup_(variable);
             if (!handed.content) handed.unset = variable;
           }},
          {"external",
           [&](const Yaml& member, const std::string& key) {
             if (member.is_map() || truth(member, key)) handed.external = &member;
           }}},
         fmt::format("{} '{}'", kind, name));
    into[name] = std::move(handed);
  }
}

// All services together

void ComposeReader::check_networks() {
  const std::set<std::string>* first = nullptr;
  for (std::size_t i = 0; i < networks_.size(); ++i) {
    if (shared_.contains(found_.nodes[i].name)) continue;
    if (first == nullptr) first = &networks_[i];
    if (networks_[i] != *first)
      say("services have different networks: in a run all nodes share one network and can reach each other");
  }
}

// Finds the service by `container_name`, or by the name that Compose would generate for its container. Returns nullptr
// if none of the started services has this name.
const Node* ComposeReader::service_of_container(const std::string& name) const {
  const auto given = containers_.find(name);
  for (const Node& node : found_.nodes)
    if (given != containers_.end()
            ? node.name == given->second
            : !named_containers_.contains(node.name) && name == fmt::format("{}-{}-1", project_.name, node.name))
      return &node;
  return nullptr;
}

std::map<std::string, ComposeReader::Joined> ComposeReader::join(const std::map<std::string, const Yaml*>& shared,
                                                                 std::string_view key, std::string_view noun) {
  std::vector<std::string> names;
  for (const Node& node : found_.nodes) names.push_back(node.name);
  const auto is_started = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::map<std::string, Joined> found;
  for (const auto& [name, at] : shared) {
    if (!is_started(name)) continue;
    const std::string& mode = at->text;
    const std::string wanted = mode.substr(mode.find(':') + 1);
    const bool container = mode.starts_with("container:");
    const Node* of_container = container ? service_of_container(wanted) : nullptr;
    if (container && of_container == nullptr)
      refuse(*at, fmt::format("'{}': '{}' is the container of no service that is started here", key, wanted),
             fmt::format("a run has {}, without other containers of this machine",
                         key == "network_mode" ? "its own network" : "its own containers"));
    if (!container && !is_started(wanted) && left_out_.contains(wanted))
      refuse(*at, fmt::format("'{}' shares the {} of '{}', which is not started", name, noun, wanted),
             "it has no replica, or a profile: compose_profiles selects the services that are started");
    if (!container && !is_started(wanted))
      refuse(*at, fmt::format("'{}': there is no service '{}'", key, wanted), did_you_mean(wanted, names));
    found[name].named = container ? of_container->name : wanted;
  }
  for (auto& [name, one] : found) {
    one.owner = one.named;
    for (std::size_t steps = 0; found.contains(one.owner); ++steps) {
      if (steps > found.size() || one.owner == name)
        refuse(*shared.at(name), fmt::format("'{}' shares its own {}{}", name, noun,
                                             one.named == name ? "" : ", through other services"));
      one.owner = found.at(one.owner).named;
    }
  }
  for (Node& node : found_.nodes) {
    const auto entry = found.find(node.name);
    if (entry == found.end()) continue;
    const Yaml& at = *shared.at(node.name);
    std::vector<Dependency>& after = node.container->after;
    if (std::none_of(after.begin(), after.end(),
                     [&](const Dependency& other) { return other.node == entry->second.named; }))
      after.push_back({entry->second.named, Dependency::When::started, at.line, at.file, false});
  }
  return found;
}

void ComposeReader::share_networks() {
  const std::map<std::string, Joined> joined = join(shared_, "network_mode", "network");
  for (Node& node : found_.nodes) {
    const auto entry = joined.find(node.name);
    if (entry == joined.end()) continue;
    node.network_of = entry->second.owner;
    say(fmt::format("service {} shares the network and the address of {}: a fault of that network affects both",
                    node.name, node.network_of));
  }
}

void ComposeReader::share_processes() {
  const std::map<std::string, Joined> joined = join(shared_pid_, "pid", "PID namespace");
  for (Node& node : found_.nodes) {
    const auto entry = joined.find(node.name);
    if (entry == joined.end()) continue;
    const auto mode = pid_modes_.find(entry->second.owner);
    if (mode != pid_modes_.end() && mode->second == "host") {
      node.container->options.insert(node.container->options.end(), {"--pid", "host"});
      continue;
    }
    node.container->pid_of = entry->second.owner;
    say(
        fmt::format("service {0} is in the PID namespace of {1}: when {1} ends, the kernel ends {0} too, and {0} is "
                    "started again with {1}",
                    node.name, entry->second.owner));
  }
}

void ComposeReader::share_memory() {
  const std::map<std::string, Joined> joined = join(shared_ipc_, "ipc", "IPC namespace");
  std::set<std::string> made_shareable;
  for (Node& node : found_.nodes) {
    const auto entry = joined.find(node.name);
    if (entry == joined.end()) continue;
    const std::string& owner = entry->second.owner;
    const auto found = ipc_modes_.find(owner);
    const std::string mode = found == ipc_modes_.end() ? "" : found->second;
    std::vector<std::string>& options = node.container->options;
    if (mode == "private" || mode == "none")
      refuse(*shared_ipc_.at(node.name),
             fmt::format("'{}' shares the IPC namespace of '{}', which has 'ipc: {}'", node.name, owner, mode),
             fmt::format("'{}' needs 'ipc: shareable'", owner));
    if (mode == "host") {
      options.insert(options.end(), {"--ipc", "host"});
      continue;
    }
    node.container->ipc_of = owner;
    say(
        fmt::format("service {0} shares memory and semaphores with {1}; after a restart of {1} alone it keeps those of "
                    "before, as with Compose",
                    node.name, owner));
    // `--shm-size` is removed, because the size is that of the owner's /dev/shm and podman refuses to set another one.
    if (const auto size = std::find(options.begin(), options.end(), "--shm-size"); size != options.end()) {
      options.erase(size, size + 2);
      warn(fmt::format("'shm_size' of service {} has no effect: it uses /dev/shm of {}", node.name, owner));
    }
    if (!mode.empty() || !made_shareable.insert(owner).second) continue;
    warn(
        fmt::format("service {} needs 'ipc: shareable', because {} shares its IPC namespace; it is used here, but "
                    "Docker's default refuses it",
                    owner, node.name));
    for (Node& other : found_.nodes)
      if (other.name == owner) other.container->options.insert(other.container->options.end(), {"--ipc", "shareable"});
  }
}

void ComposeReader::check_dependencies() {
  std::map<std::string, const Node*> known;
  for (Node& node : found_.nodes) {
    std::erase_if(node.container->after, [&](const Dependency& dependency) {
      return dependency.optional && left_out_.contains(dependency.node);
    });
    known[node.name] = &node;
  }
  const auto wrong = [&](const Dependency& dependency, std::string what, std::string hint = {}) {
    throw Wrong{dependency.file, dependency.line, std::move(what), std::move(hint)};
  };
  for (const Node& node : found_.nodes)
    for (const Dependency& dependency : node.container->after) {
      if (!known.contains(dependency.node)) {
        const bool profile = left_out_.contains(dependency.node);
        if (profile)
          wrong(dependency, fmt::format("'{}' depends on '{}', which is not started", node.name, dependency.node),
                "it has no replica, or a profile: compose_profiles selects the services that are started");
        std::vector<std::string> names;
        for (const auto& [name, service] : known) names.push_back(name);
        const std::string near = did_you_mean(dependency.node, names);
        wrong(dependency, fmt::format("'{}' depends on '{}', which is no service", node.name, dependency.node),
              near.empty() ? kOfSeveralFiles : near);
      }
      // If the file has no health check, the image's applies, which is known only when a run is made. So only a
      // disabled check can be refused here.
      if (dependency.when == Dependency::When::healthy && known[dependency.node]->container->health &&
          known[dependency.node]->container->health->disabled)
        wrong(dependency, fmt::format("'{}' waits for '{}' to be healthy, whose healthcheck is disabled", node.name,
                                      dependency.node));
    }
  // Finds cycles: repeatedly adds the services whose dependencies have all been added. The services that remain are in
  // a cycle or depend on one.
  std::set<std::string> standing;
  for (bool more = true; more;) {
    more = false;
    for (const Node& node : found_.nodes) {
      const auto& after = node.container->after;
      if (standing.contains(node.name) || !std::all_of(after.begin(), after.end(), [&](const Dependency& dependency) {
            return standing.contains(dependency.node);
          }))
        continue;
      standing.insert(node.name);
      more = true;
    }
  }
  for (const Node& node : found_.nodes)
    if (!standing.contains(node.name))
      throw Wrong{0, node.line, fmt::format("'{}' depends on itself through other services", node.name), ""};
}

// Only nodes can serve as name servers, because a run's network has no connection to the outside.
void ComposeReader::settle_name_servers() {
  const auto is_node = [this](const std::string& address) {
    return std::any_of(found_.nodes.begin(), found_.nodes.end(), [&](const Node& node) { return node.ip == address; });
  };
  for (Node& node : found_.nodes) {
    for (const std::string& address : node.container->asks)
      if (!is_node(address))
        say(fmt::format("'dns: {}' has no effect: it is no node, and a run's network is isolated", address));
    std::erase_if(node.container->asks, [&](const std::string& address) { return !is_node(address); });
  }
}

// Each replica becomes a node. References to the service become references to all its replicas.
void ComposeReader::make_replicas() {
  if (replicas_.empty()) return;
  std::vector<Node> all;
  for (Node& node : found_.nodes) {
    // As in Compose: the name of a service with replicas means the namespaces of its first replica.
    for (std::string* owner : {&node.network_of, &node.container->pid_of, &node.container->ipc_of})
      if (replicas_.contains(*owner)) *owner += "-1";
    std::vector<Dependency> after;
    for (const Dependency& dependency : node.container->after) {
      const auto many = replicas_.find(dependency.node);
      after.push_back(dependency);
      if (many == replicas_.end()) continue;
      after.back().node = fmt::format("{}-1", dependency.node);
      for (int n = 2; n <= many->second; ++n) {
        after.push_back(dependency);
        after.back().node = fmt::format("{}-{}", dependency.node, n);
      }
    }
    node.container->after = std::move(after);
    const auto many = replicas_.find(node.name);
    if (many == replicas_.end()) {
      all.push_back(std::move(node));
      continue;
    }
    say(fmt::format("service {} has {} replicas: the nodes {}-1 to {}-{}", node.name, many->second, node.name,
                    node.name, many->second));
    for (int n = 1; n <= many->second; ++n) {
      Node replica = node;
      replica.name = fmt::format("{}-{}", node.name, n);
      replica.ip.clear();
      replica.container->aliases.push_back(node.name);
      replica.container->aliases.push_back(fmt::format("{}-{}-{}", project_.name, node.name, n));
      all.push_back(std::move(replica));
    }
  }
  found_.nodes = std::move(all);
}

Result<ComposeNodes> read_compose(std::string_view text, const std::filesystem::path& file,
                                  const compose::Lookup& lookup, const std::vector<std::filesystem::path>& further) {
  ROSE_TRY(compose::Project project, compose::read_project(text, file, further, lookup));
  const compose::Lookup all = [&lookup, name = project.name,
                               folder = file.parent_path().string()](const std::string& variable) {
    if (variable == "COMPOSE_PROJECT_NAME") return std::optional(name);
    if (variable == "PWD") return std::optional(folder);
    return lookup(variable);
  };
  return ComposeReader(file, std::move(project), all).read();
}

Result<compose::Variables> dot_env_beside(const std::filesystem::path& folder, const compose::Lookup& lookup) {
  const std::filesystem::path file = folder / ".env";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return compose::Variables{};
  ROSE_TRY(const std::string text, compose::small_file(file));
  auto read = compose::read_dot_env(text, lookup);
  if (read) return std::move(*read);
  return fail(ErrorKind::input, fmt::format("{}:{}: {}", file.string(), read.error().line, read.error().what));
}

Result<ComposeNodes> read_compose_files(const std::vector<std::filesystem::path>& files, const ComposeChoice& choice) {
  const std::filesystem::path& file = files.front();
  ROSE_TRY(const std::string text, read_file(file, kMostYamlBytes));
  compose::Variables used;
  const auto value_in = [](const compose::Variables& all, const std::string& name) -> std::optional<std::string> {
    for (auto at = all.rbegin(); at != all.rend(); ++at)
      if (at->first == name) return at->second;
    return std::nullopt;
  };
  const compose::Lookup outside = [&](const std::string& name) -> std::optional<std::string> {
    if (name == "COMPOSE_PROFILES" && !choice.profiles.empty())
      return fmt::format("{}", fmt::join(choice.profiles, ","));
    if (auto chosen = value_in(choice.variables, name)) return chosen;
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    if (!value_in(used, name)) used.emplace_back(name, value);
    return value;
  };
  ROSE_TRY(const compose::Variables beside, dot_env_beside(file.parent_path(), outside));
  const compose::Lookup lookup = [&](const std::string& name) {
    auto value = outside(name);
    return value ? value : value_in(beside, name);
  };
  ROSE_TRY(ComposeNodes found, read_compose(text, file, lookup, {files.begin() + 1, files.end()}));
  found.from_environment = std::move(used);
  // If no file is named on its command line, Compose also reads the first of these files that exists.
  std::vector<std::string> overrides = {"compose.override.yml", "compose.override.yaml", "docker-compose.override.yml",
                                        "docker-compose.override.yaml"};
  const std::string stem = file.stem().string();
  if (stem != "compose" && stem != "docker-compose")
    overrides = {fmt::format("{}.override{}", stem, file.extension().string())};
  for (const std::string& name : overrides) {
    std::error_code error;
    if (files.size() != 1 || !std::filesystem::exists(file.parent_path() / name, error)) continue;
    found.warnings.push_back(fmt::format("{0} beside it is not read: compose = [\"{1}\", \"{0}\"] reads both", name,
                                         file.filename().string()));
    break;
  }
  return found;
}

}  // namespace rose::config
