#include "config/compose_project.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "base/file.h"
#include "base/text.h"

namespace rose::compose {
namespace {

constexpr std::size_t kMostFiles = 500;
constexpr std::size_t kMostDepthOfFiles = 8;
constexpr std::size_t kMostExtended = 20;  // length of a chain of `extends`

struct Refusal {
  int file;
  int line;
  std::string what;
  std::string hint;
};

[[noreturn]] void refuse(const Yaml& at, std::string what, std::string hint = {}) {
  throw Refusal{at.file, at.line, std::move(what), std::move(hint)};
}

Yaml* member_of(Yaml& map, std::string_view key) {
  for (auto& [name, value] : map.members)
    if (name == key) return &value;
  return nullptr;
}

void put(Yaml& map, const std::string& key, Yaml value) {
  if (Yaml* there = member_of(map, key)) *there = std::move(value);
  else map.members.emplace_back(key, std::move(value));
}

void drop(Yaml& map, std::string_view key) {
  std::erase_if(map.members, [key](const auto& member) { return member.key == key; });
}

// How a map with this key may also be written: as a list of NAME=VALUE, of NAME:VALUE, or of names only.
enum class Pairs { none, equals, colon, names };
Pairs pairs_of(std::string_view key) {
  static const std::set<std::string_view> with_equals = {"environment", "labels",      "args",
                                                         "sysctls",     "annotations", "additional_contexts"};
  if (with_equals.contains(key)) return Pairs::equals;
  if (key == "extra_hosts") return Pairs::colon;
  if (key == "depends_on" || key == "networks") return Pairs::names;
  return Pairs::none;
}

// Removes values with the tag "!reset", because they count as absent.
void drop_reset(Yaml& value) {
  std::erase_if(value.members, [](const auto& member) { return member.value.tag == Yaml::Tag::reset; });
  std::erase_if(value.items, [](const Yaml& item) { return item.tag == Yaml::Tag::reset; });
  for (auto& [key, member] : value.members) drop_reset(member);
  for (Yaml& item : value.items) drop_reset(item);
}

Yaml as_map(const Yaml& list, Pairs how) {
  Yaml map;
  map.kind = Yaml::Kind::map;
  map.line = list.line;
  map.file = list.file;
  for (const Yaml& item : list.items) {
    Yaml value;
    value.line = item.line;
    value.file = item.file;
    std::string name = item.text;
    const std::size_t between =
        how == Pairs::names ? std::string::npos : item.text.find_first_of(how == Pairs::colon ? "=:" : "=");
    if (between != std::string::npos) {
      name = item.text.substr(0, between);
      value.kind = Yaml::Kind::scalar;
      value.text = item.text.substr(between + 1);
    }
    put(map, name, std::move(value));
  }
  return map;
}

Yaml as_list(const Yaml& value) {
  if (value.is_list()) return value;
  Yaml list;
  list.kind = Yaml::Kind::list;
  list.line = value.line;
  list.file = value.file;
  if (value.is_scalar()) list.items.push_back(value);
  return list;
}

class ProjectReader {
 public:
  ProjectReader(const std::filesystem::path& file, const Lookup& lookup)
      : folder_(file.parent_path()), given_(lookup), lookup_([this](const std::string& name) {
          if (name == "PWD") return std::optional(folder_.string());
          if (name == "COMPOSE_PROJECT_NAME") return std::optional(project_.name);
          return given_(name);
        }) {}

  Result<Project> read(std::string_view text, const std::filesystem::path& file,
                       const std::vector<std::filesystem::path>& further) {
    project_.files.push_back(file);
    auto parsed = parse_yaml(text, file.string());
    if (!parsed) return Unexpected(std::move(parsed).error());
    choose_name(*parsed, further);
    try {
      prepare(*parsed, 0, lookup_);
      Yaml first;
      for (const std::filesystem::path& each_file : further) *parsed = merged(*parsed, load(first, each_file, lookup_));
      project_.root = whole(std::move(*parsed), folder_, lookup_, 0);
    } catch (const Refusal& refusal) {
      return fail(ErrorKind::input,
                  fmt::format("{}:{}: {}", project_.files[static_cast<std::size_t>(refusal.file)].string(),
                              std::max(refusal.line, 1), refusal.what),
                  refusal.hint);
    }
    return std::move(project_);
  }

 private:
  // Chooses the project's name before variables are substituted, because COMPOSE_PROJECT_NAME is one of them. If
  // several files give a name, the last one counts.
  void choose_name(const Yaml& first, const std::vector<std::filesystem::path>& further) {
    std::string named = first.scalar("name");
    for (const std::filesystem::path& file : further)
      if (const auto text = small_file(file))
        if (const auto parsed = parse_yaml(*text, file.string()); parsed && !parsed->scalar("name").empty())
          named = parsed->scalar("name");
    std::vector<std::string> without;
    if (auto given = given_("COMPOSE_PROJECT_NAME"); given && !given->empty()) named = *given;
    else named = interpolated(named, given_, without).value_or("");
    project_.name = project_name(named);
    if (project_.name.empty()) project_.name = project_name(folder_.filename().string());
  }

  // Substitutes variables and records the file that each value comes from.
  void prepare(Yaml& value, int file, const Lookup& lookup) {
    value.file = file;
    if (value.is_scalar() && value.text.find('$') != std::string::npos) {
      std::vector<std::string> without;
      auto text = interpolated(value.text, lookup, without);
      if (!text)
        refuse(value, text.error(),
               text.error().starts_with("the required variable")
                   ? "set it with [deployment] compose_env or in the environment, or add it to .env beside the Compose "
                     "file"
                   : "variables are $NAME or ${NAME}, with :-, -, :+, +, :? or ? and a text behind NAME; write $$ for "
                     "a dollar that begins none");
      for (const std::string& name : without)
        if (std::none_of(project_.without_value.begin(), project_.without_value.end(),
                         [&](const auto& known_entry) { return known_entry.first == name; }))
          project_.without_value.emplace_back(
              name, fmt::format("{}:{}", project_.files[static_cast<std::size_t>(file)].string(), value.line));
      value.text = std::move(*text);
      value.plain = false;
    }
    for (Yaml& item : value.items) prepare(item, file, lookup);
    for (auto& [key, member] : value.members) prepare(member, file, lookup);
  }

  Yaml load(const Yaml& at, const std::filesystem::path& file, const Lookup& lookup) {
    if (project_.files.size() >= kMostFiles) refuse(at, fmt::format("more than {} Compose files", kMostFiles));
    const auto text = small_file(file);
    if (!text) refuse(at, text.error().message);
    project_.files.push_back(file);
    auto parsed = parse_yaml(*text, file.string());
    if (!parsed) refuse(at, parsed.error().message, parsed.error().hint);
    prepare(*parsed, static_cast<int>(project_.files.size()) - 1, lookup);
    return std::move(*parsed);
  }

  // Adds a file's includes and resolves the `extends` of its services.
  Yaml whole(Yaml root, const std::filesystem::path& folder, const Lookup& lookup, std::size_t depth) {
    extend_services(root, folder, lookup);
    drop_reset(root);
    if (folder != folder_) make_absolute(root, folder);
    const Yaml* include = root.find("include");
    if (include != nullptr) {
      if (include->kind != Yaml::Kind::null && !include->is_list())
        refuse(*include, "'include': a list of Compose files is needed");
      const Yaml entries = *include;
      drop(root, "include");
      for (const Yaml& entry : entries.items) include_one(root, entry, folder, lookup, depth);
    }
    return root;
  }

  void include_one(Yaml& root, const Yaml& entry, const std::filesystem::path& folder, const Lookup& lookup,
                   std::size_t depth) {
    if (depth >= kMostDepthOfFiles) refuse(entry, "files include each other too deeply");
    std::vector<std::string> paths;
    std::filesystem::path home;
    std::vector<std::string> env_files;
    if (entry.is_scalar()) paths.push_back(entry.text);
    for (const auto& [key, value] : entry.members) {
      const Yaml list = as_list(value);
      if (key == "path")
        for (const Yaml& item : list.items) paths.push_back(item.text);
      else if (key == "project_directory") home = path_from(folder, value.text);
      else if (key == "env_file")
        for (const Yaml& item : list.items) env_files.push_back(path_from(folder, item.text));
      else
        refuse(value, fmt::format("unknown key '{}' in an include", key),
               "known are path, project_directory and env_file");
    }
    if (paths.empty()) refuse(entry, "an include without a path");
    const std::filesystem::path first = path_from(folder, paths.front());
    if (home.empty()) home = first.parent_path();
    const bool named = !env_files.empty();
    if (!named) env_files.push_back((home / ".env").string());
    Variables variables;
    for (const std::string& file : env_files) {
      const auto text = small_file(file);
      if (!text && named) refuse(entry, fmt::format("'env_file': {}", text.error().message));
      if (!text) continue;
      auto read = read_dot_env(*text, lookup);
      if (!read) refuse(entry, fmt::format("{}:{}: {}", file, read.error().line, read.error().what));
      for (auto& variable : *read) variables.push_back(std::move(variable));
    }
    const Lookup further = [&](const std::string& name) -> std::optional<std::string> {
      if (auto value = lookup(name)) return value;
      for (auto at = variables.rbegin(); at != variables.rend(); ++at)
        if (at->first == name) return at->second;
      return std::nullopt;
    };
    Yaml all;
    all.kind = Yaml::Kind::map;
    for (const std::string& path : paths) all = merged(all, load(entry, path_from(folder, path), further));
    all = whole(std::move(all), home, further, depth + 1);
    for (auto& [key, members] : all.members) {
      if (key == "services" || key == "networks" || key == "volumes" || key == "secrets" || key == "configs") {
        Yaml* there = member_of(root, key);
        if (there == nullptr) {
          put(root, key, std::move(members));
          continue;
        }
        there->kind = Yaml::Kind::map;
        for (auto& [name, value] : members.members) {
          if (key == "services" && there->find(name) != nullptr)
            refuse(*there->find(name),
                   fmt::format("service '{}' is also in {}, which is included", name, first.string()));
          if (there->find(name) == nullptr) there->members.emplace_back(name, std::move(value));
        }
      }
    }
  }

  void extend_services(Yaml& root, const std::filesystem::path& folder, const Lookup& lookup) {
    Yaml* services = member_of(root, "services");
    if (services == nullptr) return;
    const Yaml before = *services;
    for (auto& [name, service] : services->members) service = extended(before, name, service, folder, lookup, 0);
  }

  Yaml extended(const Yaml& services, const std::string& name, const Yaml& service, const std::filesystem::path& folder,
                const Lookup& lookup, std::size_t depth) {
    const Yaml* extends = service.is_map() ? service.find("extends") : nullptr;
    if (extends == nullptr) return service;
    if (depth >= kMostExtended)
      refuse(*extends, fmt::format("service '{}' extends itself through other services", name));
    std::string base = extends->is_scalar() ? extends->text : extends->scalar("service");
    for (const auto& [key, value] : extends->members)
      if (key != "service" && key != "file")
        refuse(value, fmt::format("unknown key '{}' in 'extends'", key), "known are service and file");
    if (base.empty()) refuse(*extends, "'extends': the name of a service is needed");
    Yaml under;
    if (const std::string file = extends->is_map() ? extends->scalar("file") : ""; !file.empty()) {
      const std::filesystem::path path = path_from(folder, file);
      Yaml other = load(*extends, path, lookup);
      const Yaml* theirs = other.find("services");
      const Yaml* found = theirs == nullptr ? nullptr : theirs->find(base);
      if (found == nullptr) refuse(*extends, fmt::format("{} has no service '{}'", path.string(), base));
      under = extended(*theirs, base, *found, path.parent_path(), lookup, depth + 1);
      absolute_service(under, path.parent_path());
    } else {
      const Yaml* found = services.find(base);
      if (found == nullptr)
        refuse(*extends, fmt::format("'{}' extends '{}', which is not a service of this file", name, base));
      under = extended(services, base, *found, folder, lookup, depth + 1);
    }
    Yaml own = service;
    drop(own, "extends");
    Yaml both = merged(under, own);
    both.line = service.line;
    both.file = service.file;
    return both;
  }

  static void absolute(Yaml& value, const std::filesystem::path& folder) {
    if (value.is_scalar() && !value.text.empty()) value.text = path_from(folder, value.text);
  }
  static void absolute_service(Yaml& service, const std::filesystem::path& folder) {
    if (Yaml* build = member_of(service, "build")) {
      Yaml* context = build->is_map() ? member_of(*build, "context") : build;
      if (context != nullptr && context->is_scalar() && !is_remote(context->text)) absolute(*context, folder);
    }
    for (const char* key : {"env_file", "label_file"})
      if (Yaml* files = member_of(service, key)) {
        absolute(*files, folder);
        for (Yaml& item : files->items) {
          absolute(item, folder);
          if (Yaml* path = member_of(item, "path")) absolute(*path, folder);
        }
      }
    if (Yaml* volumes = member_of(service, "volumes"))
      for (Yaml& volume : volumes->items) {
        if (volume.is_map() && volume.scalar("type") == "bind") {
          if (Yaml* source = member_of(volume, "source")) absolute(*source, folder);
        } else if (volume.is_scalar() && is_folder(volume.text)) {
          const std::size_t colon = volume.text.find(':');
          if (colon != std::string::npos)
            volume.text = path_from(folder, volume.text.substr(0, colon)) + volume.text.substr(colon);
        }
      }
  }
  static void make_absolute(Yaml& root, const std::filesystem::path& folder) {
    if (Yaml* services = member_of(root, "services"))
      for (auto& [name, service] : services->members) absolute_service(service, folder);
    for (const char* key : {"secrets", "configs"})
      if (Yaml* all = member_of(root, key))
        for (auto& [name, one] : all->members)
          if (Yaml* file = member_of(one, "file")) absolute(*file, folder);
  }

  const std::filesystem::path folder_;
  const Lookup& given_;
  const Lookup lookup_;
  Project project_;
};

}  // namespace

Result<std::string> small_file(const std::filesystem::path& path, std::size_t most) {
  if (!open_regular(path)) return fail(ErrorKind::input, fmt::format("{} is not a readable file", path.string()));
  return read_file(path, most);
}

std::string path_from(const std::filesystem::path& folder, const std::string& text) {
  std::filesystem::path whole = folder / text;
  if (text == "~" || text.starts_with("~/"))
    if (const char* home = std::getenv("HOME"); home != nullptr) whole = home + text.substr(1);
  std::string path = whole.lexically_normal().string();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

bool is_remote(std::string_view context) {
  return context.find("://") != std::string_view::npos || context.starts_with("git@") ||
         context.starts_with("github.com/");
}

bool belongs_to_machine(const std::filesystem::path& source) {
  for (const char* machine :
       {"/proc", "/sys", "/dev", "/run", "/var/run", "/boot", "/lib/modules", "/var/lib/docker", "/var/lib/containers"})
    if (source == machine || source.string().starts_with(std::string(machine) + '/')) return true;
  std::error_code error;
  return source == "/" || std::filesystem::canonical(source, error) == "/";
}

bool is_folder(std::string_view source) {
  return source.starts_with('/') || source.starts_with('.') || source.starts_with('~');
}

std::string target_of(const Yaml& value) {
  if (value.is_map()) return value.scalar("target");
  const std::vector<std::string> parts = split(value.text, ':');
  return parts.size() > 1 ? parts[1] : parts.empty() ? "" : parts[0];
}

Yaml merged(const Yaml& base, const Yaml& own, std::string_view key) {
  if (own.tag != Yaml::Tag::none || base.tag == Yaml::Tag::reset) return own;
  if (own.kind == Yaml::Kind::null) return base;
  if (base.kind == Yaml::Kind::null || key == "command" || key == "entrypoint" || key == "test") return own;
  if (const Pairs how = pairs_of(key);
      how != Pairs::none && (base.is_list() || own.is_list()) && !base.is_scalar() && !own.is_scalar()) {
    // A NAME without a value stands for the value of the variable NAME, so it overrides an earlier value.
    Yaml both = base.is_list() ? as_map(base, how) : base;
    for (const auto& [name, value] : (own.is_list() ? as_map(own, how) : own).members) {
      const Yaml* there = both.find(name);
      put(both, name, there != nullptr && there->is_map() ? merged(*there, value, name) : value);
    }
    return both;
  }
  if (base.is_map() && own.is_map()) {
    Yaml both = base;
    both.line = own.line;
    both.file = own.file;
    for (const auto& [name, value] : own.members) {
      const Yaml* there = both.find(name);
      put(both, name, there == nullptr ? value : merged(*there, value, name));
    }
    return both;
  }
  const bool lists = (base.is_list() && own.is_list()) || key == "env_file" || key == "tmpfs" || key == "dns" ||
                     key == "dns_search" || key == "label_file";
  if (!lists || base.is_map() || own.is_map()) return own;
  Yaml both = as_list(base);
  for (const Yaml& item : as_list(own).items) {
    if (key == "volumes" || key == "devices")
      std::erase_if(both.items, [&](const Yaml& node_value) { return target_of(node_value) == target_of(item); });
    both.items.push_back(item);
  }
  return both;
}

Result<Project> read_project(std::string_view text, const std::filesystem::path& file,
                             const std::vector<std::filesystem::path>& further, const Lookup& lookup) {
  return ProjectReader(file, lookup).read(text, file, further);
}

}  // namespace rose::compose
