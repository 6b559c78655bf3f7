#include "draft/folders.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "base/result.h"
#include "base/text.h"

namespace rose::draft {
namespace {

bool mentions(std::string_view option, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return option.find(word) != std::string_view::npos; });
}

// True for folders of programs, libraries and system settings, which contain no application data.
bool system_path(std::string_view path) {
  static const std::vector<std::string> folders = {"/usr", "/bin",  "/sbin", "/lib", "/lib64",
                                                   "/etc", "/proc", "/sys",  "/dev", "/boot"};
  return path == "/" ||
         std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) { return is_below(path, folder); });
}

// True for folders that many programs share; a program's own folder is below them.
bool shared_folder(std::string_view path) {
  static const std::set<std::string, std::less<>> folders = {"/",
                                                             "/var",
                                                             "/var/lib",
                                                             "/var/log",
                                                             "/var/cache",
                                                             "/var/spool",
                                                             "/var/run",
                                                             "/var/tmp",
                                                             "/var/local",
                                                             "/run",
                                                             "/tmp",
                                                             "/opt",
                                                             "/srv",
                                                             "/home",
                                                             "/root",
                                                             "/mnt",
                                                             "/media",
                                                             "/data",
                                                             "/var/lib/private",
                                                             "/var/cache/private",
                                                             "/var/log/private",
                                                             "/run/private",
                                                             "/dev",
                                                             "/dev/shm",
                                                             "/run/user",
                                                             "/usr",
                                                             "/usr/local",
                                                             "/usr/local/var",
                                                             "/etc"};
  if (folders.contains(path)) return true;
  // A home folder is shared in the same way.
  return path.starts_with("/home/") && path.find('/', 6) == std::string_view::npos;
}

bool has_written_below(const Seen& seen, const std::string& folder) {
  return std::any_of(seen.written.begin(), seen.written.end(),
                     [&](const std::string& path) { return is_below(path, folder); });
}

bool enters_folder(std::string_view option) {
  static const std::set<std::string, std::less<>> options = {"--chdir",
                                                             "--chdir=",
                                                             "--app-dir",
                                                             "--app-dir=",
                                                             "--cwd",
                                                             "--cwd=",
                                                             "--workdir",
                                                             "--workdir=",
                                                             "--prefix",
                                                             "--pythonpath",
                                                             "--pythonpath=",
                                                             "--working-directory",
                                                             "--working-directory="};
  return options.contains(option);
}

std::string leaf_for(const std::string& path, const Moved& moved) {
  std::string leaf = path.substr(path.rfind('/') + 1);
  std::replace_if(leaf.begin(), leaf.end(), [](char c) { return !is_name_char(c); }, '_');
  if (leaf.empty() || leaf.front() == '.' || leaf == "stdout.log" || leaf == "stderr.log") leaf = "data" + leaf;
  const auto taken = [&](const std::string& name) {
    return std::any_of(moved.places.begin(), moved.places.end(),
                       [&](const auto& place) { return place.second == "${dir}/" + name; });
  };
  std::string name = leaf;
  for (int n = 2; taken(name); ++n) name = fmt::format("{}{}", leaf, n);
  return name;
}

// Splits a value such as "/a,/b", because each part is examined separately.
std::vector<std::string> values_of(std::string_view value) { return split(value, ','); }

struct Named {
  std::string option;
  std::string path;  // as spelled
};

std::vector<Named> named_paths(const Seen& seen, const Words& words, const Variables& variables) {
  std::vector<Named> named;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].done) continue;
    for (std::string& value : values_of(split_word(words[i].text).value))
      if (says_path(seen, words, i, value)) named.push_back({words.option_of(i), std::move(value)});
  }
  for (const auto& [name, value] : variables) {
    const std::string option = lower_case(name);
    for (std::string& part : values_of(value)) named.push_back({option, std::move(part)});
  }
  return named;
}

std::string trimmed_path(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// The new location of `path`, or "".
std::string new_place(const std::string& path, const Moved& moved) {
  const std::string whole = trimmed_path(path);
  for (const auto& [from, to] : moved.places) {
    if (whole == from) return to;
    if (is_below(whole, from)) return to + whole.substr(from.size());
  }
  return "";
}

// True for an existing file that is only read. It keeps its path, although its folder is moved, because the new folder
// is empty.
bool only_read(const Seen& seen, const Moved& moved, const std::string& path) {
  if (moved.places.contains(path) || std::find(seen.written.begin(), seen.written.end(), path) != seen.written.end())
    return false;
  return std::any_of(seen.paths.begin(), seen.paths.end(),
                     [&](const auto& each) { return !each.second.folder && each.second.absolute == path; });
}

// True if word `i` is the class path of a JVM: folders and jars separated by colons, "classes:lib/*".
bool is_class_path(const Seen& seen, const Words& words, std::size_t i) {
  const std::string option = seen.runtime == "Java" ? words.option_of(i) : "";
  return option == "-cp" || option == "-classpath" || option == "--class-path" || option == "--module-path";
}

std::string absolute_class_path(const Seen& seen, std::string_view value) {
  std::string out;
  for (const std::string& part : split(value, ':')) {
    const bool relative = !part.empty() && part.front() != '/' && !seen.main.cwd.empty();
    out += (relative ? trimmed_path(std::filesystem::path(seen.main.cwd + "/" + part).lexically_normal().string())
                     : part) +
           ":";
  }
  out.pop_back();
  return out;
}

}  // namespace

bool is_below(std::string_view path, std::string_view folder) {
  if (!path.starts_with(folder)) return false;
  return path.size() == folder.size() || folder == "/" || path[folder.size()] == '/';
}

bool says_path(const Seen& seen, const Words& words, std::size_t i, std::string_view part) {
  if (part.find('/') != std::string_view::npos) return true;
  const std::string option = words.option_of(i);
  if (option == "-c" || option == "-f" || option == "-d" ||
      mentions(option, {"dir", "data", "file", "path", "conf", "log", "root", "home", "jar"}))
    return true;
  // Other words count only if they may name the script that a shell or another runtime executes.
  if ((seen.runtime.empty() && !seen.program) || !split_word(words[i].text).option.empty()) return false;
  if (i == 1 || !words[i - 1].text.starts_with('-')) return true;
  // An existing file that follows an option counts, too, because the option may take no value (`python3 -u server.py`).
  // After -m it does not count, because -m takes a module name.
  const auto fact = seen.paths.find(std::string(part));
  return words[i - 1].text != "-m" && fact != seen.paths.end() && !fact->second.folder;
}

Moved find_places(const Seen& seen, const Words& words, const Variables& variables) {
  Moved moved;
  // Outer folders first, so that files inside them are moved with them.
  std::map<std::string, Named> own;
  for (const Named& named : named_paths(seen, words, variables)) {
    const auto fact = seen.paths.find(named.path);
    const bool tells_data =
        (named.option == "--dir" ||
         mentions(named.option, {"data", "wal", "stor", "dbpath", "db-path", "state", "journal", "log", "spool"})) &&
        !mentions(named.option, {"conf", "etc", "plugin", "module", "lib", "template", "cert", "ssl", "tls", "class"});
    if (fact == seen.paths.end()) {
      // A pid file or socket need not exist at present.
      if (named.path.starts_with('/') && mentions(named.option, {"pidfile", "pid-file", "pid_file", "socket"}))
        own.emplace(named.path, named);
      continue;
    }
    const std::string path = trimmed_path(fact->second.absolute);
    if (system_path(path) || shared_folder(path) || enters_folder(named.option)) continue;
    if (!seen.main.exe.empty() && is_below(seen.main.exe, path)) continue;
    const bool written = has_written_below(seen, path);
    const bool file_of_its_own = mentions(named.option, {"pid", "log", "sock"});
    if (written || (fact->second.writable && (fact->second.folder ? tells_data : file_of_its_own)))
      own.emplace(path, named);
  }
  for (const auto& [path, named] : own) {
    const auto fact = seen.paths.find(named.path);
    const bool folder = fact != seen.paths.end() && fact->second.folder;
    if (const std::string place = new_place(path, moved); !place.empty()) {
      // A folder inside a moved one has to be created, because the moved one is empty in each run.
      constexpr std::string_view kDir = "${dir}/";
      if (folder && place.starts_with(kDir)) moved.folders.push_back(place.substr(kDir.size()));
      continue;
    }
    const std::string leaf = leaf_for(path, moved);
    moved.places[path] = "${dir}/" + leaf;
    if (folder) moved.folders.push_back(leaf);
    moved.changes.push_back(fmt::format("{}{}: ${{dir}}/{}{}", path,
                                        named.option.empty() ? "" : fmt::format(" of {}", named.option), leaf,
                                        folder ? ", empty in each run" : ""));
  }
  return moved;
}

std::string move_value(const Seen& seen, const std::string& value, const Moved& moved) {
  std::string out;
  for (const std::string& part : values_of(value)) {
    const std::string place = part.starts_with('/') && !only_read(seen, moved, part) ? new_place(part, moved) : "";
    out += (place.empty() ? part : place) + ",";
  }
  out.pop_back();
  return out;
}

void move_words(const Seen& seen, Words& words, Moved& moved) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].done) continue;
    const Split split = split_word(words[i].text);
    if (is_class_path(seen, words, i)) {
      if (std::string whole = absolute_class_path(seen, split.value); whole != split.value) {
        moved.changes.push_back(fmt::format("{}: {} (it runs in {})", split.value, whole, seen.main.cwd));
        words.set(i, escaped(std::string(split.option) + whole), false);
      }
      continue;
    }
    std::string out;
    bool changed = false;
    for (const std::string& part : values_of(split.value)) {
      const auto fact = says_path(seen, words, i, part) ? seen.paths.find(part) : seen.paths.end();
      const std::string absolute = fact == seen.paths.end() ? part : fact->second.absolute;
      std::string place =
          absolute.starts_with('/') && !only_read(seen, moved, absolute) ? new_place(absolute, moved) : "";
      if (place.empty() && absolute != part) {
        place = escaped(absolute);
        moved.changes.push_back(fmt::format("{}: {} (it runs in {})", part, absolute, seen.main.cwd));
      }
      changed = changed || !place.empty();
      out += (place.empty() ? part : place) + ",";
    }
    out.pop_back();
    if (changed) words.set(i, std::string(split.option) + out, false);
  }
}

Homes find_homes(const Seen& seen, const Words& words) {
  Homes homes;
  // Use the path without links, because a link may lead elsewhere later.
  const auto take = [&](const std::string& named) {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(named, error);
    const std::string path = error ? named : real.string();
    if (path.empty() || system_path(path)) return false;
    const bool own = path == "/root" || path.starts_with("/home/") || !shared_folder(path);
    // These characters separate the options of the mount.
    const bool mountable = path.find_first_of(":,\\\"") == std::string::npos && fits_toml(path);
    auto& into = own && mountable ? homes.folders : homes.left;
    if (std::find(into.begin(), into.end(), path) == into.end()) into.push_back(path);
    return own && mountable;
  };
  if (take(trimmed_path(seen.main.cwd))) homes.begins_in = homes.folders.back();
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto fact = seen.paths.find(std::string(split_word(words[i].text).value));
    if (enters_folder(words.option_of(i)) && fact != seen.paths.end() && fact->second.folder)
      (void)take(trimmed_path(fact->second.absolute));
  }
  // systemd sets HOME for a unit with User=. Nodes would otherwise have the HOME of rose, which that user may not
  // enter.
  std::vector<std::string> left = homes.left;
  if (seen.unit && !seen.main.home.empty()) (void)take(trimmed_path(seen.main.home));
  homes.left = std::move(left);  // a HOME that cannot get an overlay is not reported, because the node need not have
                                 // files there
  for (const std::string& path : std::exchange(homes.folders, {})) homes.add(path);
  return homes;
}

void Homes::add(const std::string& path) {
  if (std::any_of(folders.begin(), folders.end(), [&](const std::string& other) { return is_below(path, other); }))
    return;
  std::erase_if(folders, [&](const std::string& other) { return is_below(other, path); });
  folders.push_back(path);
}

Covers find_covers(const Seen& seen, const Words& words, const Moved& moved, const std::vector<std::string>& homes) {
  std::set<std::string> needed(seen.needed.begin(), seen.needed.end());
  needed.insert(homes.begin(), homes.end());
  needed.insert(seen.main.exe);
  if (seen.program) needed.insert(seen.program->exe);
  for (std::size_t i = 0; i < words.size(); ++i)
    for (const std::string& part : values_of(split_word(words[i].text).value))
      if (part.starts_with('/')) needed.insert(trimmed_path(part));
  needed.erase("");
  const auto holds_needed = [&](const std::string& folder) {
    return std::any_of(needed.begin(), needed.end(), [&](const std::string& path) { return is_below(path, folder); });
  };
  std::vector<std::string> written = seen.written;
  if (seen.unit) {
    written.insert(written.end(), seen.unit->folders.begin(), seen.unit->folders.end());
    if (!seen.unit->pid_file.empty()) written.push_back(seen.unit->pid_file);
  }
  Covers covers;
  std::set<std::string> chosen;
  for (const std::string& named : written) {
    // Use the path without links, because the draft's script refuses to cover a path that leads through a link, such as
    // "/var/run/x" or the state folder of a unit with DynamicUser=.
    std::error_code error;
    const std::filesystem::path real = std::filesystem::weakly_canonical(named, error);
    const std::string path = error || !named.starts_with('/') ? named : real.string();
    if (path.empty() || is_below(path, "/proc") || is_below(path, "/sys") || is_below(path, "/dev")) continue;
    if (!new_place(path, moved).empty() || !new_place(named, moved).empty()) continue;
    // A folder that contains files that the node needs gets an overlay, because a cover would hide these files. The
    // folders of a unit contain data, so even one that is also the working folder is covered and is empty in a run.
    const bool own_data =
        seen.unit && std::find(seen.unit->folders.begin(), seen.unit->folders.end(), named) != seen.unit->folders.end();
    if (!own_data && std::find(homes.begin(), homes.end(), path) != homes.end()) continue;
    if (!shared_folder(path) && std::any_of(needed.begin(), needed.end(), [&](const std::string& one) {
          return one != path && is_below(one, path);
        })) {
      covers.overlays.push_back(path);
      continue;
    }
    // Find the outermost folder that belongs to the node and contains nothing that it executes or reads.
    std::string cover;
    for (std::size_t slash = path.find('/', 1); cover.empty(); slash = path.find('/', slash + 1)) {
      const std::string folder = path.substr(0, slash);
      if (!shared_folder(folder) && !holds_needed(folder)) cover = folder;
      if (slash == std::string::npos) break;
    }
    if (cover.empty()) cover = path;
    const bool single = cover == path && shared_folder(path.substr(0, std::max<std::size_t>(path.rfind('/'), 1)));
    if (single && std::find(seen.sockets.begin(), seen.sockets.end(), named) != seen.sockets.end())
      covers.uncovered.push_back(path);
    else chosen.insert(cover);
  }
  for (const std::string& path : chosen) {
    const bool inside = std::any_of(chosen.begin(), chosen.end(),
                                    [&](const std::string& other) { return other != path && is_below(path, other); });
    if (!inside) covers.paths.push_back(path);
  }
  return covers;
}

}  // namespace rose::draft
