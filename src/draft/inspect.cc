#include "draft/inspect.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>

#include "base/file.h"
#include "base/program.h"
#include "base/text.h"
#include "deploy/machine/cgroup.h"
#include "deploy/machine/containers.h"
#include "deploy/machine/processes.h"
#include "draft/net_tables.h"
#include "draft/settings.h"
#include "draft/systems.h"
#include "draft/words.h"
#include "kernel/processes.h"
#include "symbols/interpreters.h"
#include "symbols/symbols.h"

namespace rose::draft {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostCommandBytes = std::size_t{8} << 20;
constexpr std::size_t kMostTableBytes = std::size_t{256} << 20;
constexpr std::size_t kMostDescriptors = 100'000;  // per node
constexpr std::size_t kMostProcesses = 4096;
constexpr std::uintmax_t kMostProgramBytes = std::uintmax_t{512} << 20;

std::string proc_file(pid_t pid, std::string_view name) { return fmt::format("/proc/{}/{}", pid, name); }

// The target of a link in /proc; `error` is set to errno if it cannot be read.
std::string link_target(const std::string& path, int* error = nullptr) {
  std::array<char, 4096> buffer{};
  const ssize_t n = ::readlink(path.c_str(), buffer.data(), buffer.size());
  if (error != nullptr) *error = n < 0 ? errno : 0;
  return n < 0 ? "" : std::string(buffer.data(), static_cast<std::size_t>(n));
}

bool take_suffix(std::string& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.resize(text.size() - suffix.size());
  return true;
}

std::string user_name(uid_t uid) {
  if (uid == 0) return "";
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? "" : entry.pw_name;
}

// The text after "NAME:" in /proc/PID/status, without blanks at its ends.
std::string status_field(const std::string& status, std::string_view name) {
  const std::string start = fmt::format("\n{}:", name);
  const std::size_t at = status.find(start);
  if (at == std::string::npos) return "";
  const std::size_t begin = status.find_first_not_of(" \t", at + start.size());
  const std::size_t end = status.find('\n', at + start.size());
  if (begin == std::string::npos || begin >= end) return "";
  const std::string text = status.substr(begin, end - begin);
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

// The effective id in the field "Uid" or "Gid", which is the second number of the field.
std::optional<unsigned> effective_id(const std::string& status, std::string_view field) {
  unsigned real = 0;
  unsigned effective = 0;
  if (std::sscanf(status_field(status, field).c_str(), "%u %u", &real, &effective) != 2) return std::nullopt;
  return effective;
}

// Sets the groups of the process if they differ from those that its user has on this machine: a unit's Group= and
// SupplementaryGroups= change them.
void look_at_groups(const std::string& status, Process& process) {
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  if (process.user.empty() || ::getpwnam_r(process.user.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr)
    return;
  const std::optional<unsigned> effective = effective_id(status, "Gid");
  if (!effective) return;
  std::set<unsigned> now;
  for (const std::string& word : split(status_field(status, "Groups"), ' '))
    if (unsigned group = 0; std::sscanf(word.c_str(), "%u", &group) == 1) now.insert(group);
  now.insert(*effective);
  std::vector<gid_t> usual(1024);
  int count = static_cast<int>(usual.size());
  if (::getgrouplist(process.user.c_str(), entry.pw_gid, usual.data(), &count) < 0) return;
  usual.resize(static_cast<std::size_t>(count));
  if (*effective == entry.pw_gid && now == std::set<unsigned>(usual.begin(), usual.end())) return;
  process.group = std::to_string(*effective);
  process.groups = fmt::format("{}", fmt::join(now, ","));
}

// Reads lines such as "Max open files            1024                 4096                 files".
std::vector<Limit> read_limits(const std::string& text) {
  // Assumption: programs notice these limits. The others count what all processes of a user do, or differ between every
  // login and every unit.
  static const std::map<std::string_view, std::string_view> options = {
      {"Max open files", "nofile"}, {"Max file size", "fsize"},  {"Max address space", "as"},
      {"Max data size", "data"},    {"Max stack size", "stack"}, {"Max core file size", "core"}};
  std::vector<Limit> limits;
  each_line(text, [&](std::string_view line) {
    const std::size_t end = line.find("  ");
    const auto option = options.find(line.substr(0, end));
    if (end == std::string_view::npos || option == options.end()) return;
    std::vector<std::string> words = split(line.substr(end), ' ');
    std::erase(words, "");
    if (words.size() >= 2) limits.push_back({std::string(option->second), words[0], words[1]});
  });
  return limits;
}

// The effective user of a process.
std::optional<uid_t> uid_of(pid_t pid) {
  const auto status = read_file(proc_file(pid, "status"), 1 << 20);
  return status ? effective_id(*status, "Uid") : std::nullopt;
}

// True for shells and other programs that only start another program.
bool is_wrapper(std::string_view exe) {
  static const std::set<std::string, std::less<>> names = {"sh",
                                                           "bash",
                                                           "dash",
                                                           "ash",
                                                           "ksh",
                                                           "zsh",
                                                           "busybox",
                                                           "sudo",
                                                           "su",
                                                           "runuser",
                                                           "setpriv",
                                                           "tini",
                                                           "dumb-init",
                                                           "catatonit",
                                                           "runsv",
                                                           "nohup",
                                                           "timeout",
                                                           "env",
                                                           "start-stop-daemon",
                                                           "unshare",
                                                           "gosu",
                                                           "su-exec",
                                                           "s6-supervise",
                                                           "daemonize",
                                                           "setsid"};
  return names.contains(exe.substr(exe.rfind('/') + 1));
}

// The language of the code that the program `exe` runs, if it is an interpreter or a JVM; otherwise "". Shells do not
// count, because they only start programs. `mapped`: the files that the process has mapped as code.
std::string runtime_of(std::string_view exe, const std::vector<std::string>& mapped) {
  if (std::any_of(mapped.begin(), mapped.end(),
                  [](const std::string& file) { return symbols::language_run_by(file) == "Java"; }))
    return "Java";
  return is_wrapper(exe) ? std::string() : std::string(symbols::language_run_by(exe));
}

std::string reason(int error) { return std::strerror(error); }

// Reads the files of one process; what may not be read is added to `unread`.
std::optional<Process> look_at_process(pid_t pid, bool& title, std::vector<std::string>& unread) {
  const auto line = read_file(proc_file(pid, "cmdline"), kMostCommandBytes);
  if (!line) return std::nullopt;
  Process process;
  process.pid = pid;
  int error = 0;
  process.exe = link_target(proc_file(pid, "exe"), &error);
  process.deleted = take_suffix(process.exe, " (deleted)");
  if (error != 0 && error != ENOENT)
    unread.push_back(fmt::format("its program (/proc/{}/exe: {})", pid, reason(error)));
  process.cwd = link_target(proc_file(pid, "cwd"), &error);
  if (error != 0)
    unread.push_back(
        fmt::format("its working directory (/proc/{}/cwd: {}); relative paths stay as they are", pid, reason(error)));
  CommandLine command = read_command_line(*line);
  // The path of a program may contain spaces. If the first word is the path of an existing program, it is not a title.
  title = command.title && !is_program(command.words.front());
  process.argv = std::move(command.words);
  const auto environment = read_file(proc_file(pid, "environ"), kMostCommandBytes);
  if (!environment) {
    unread.push_back(fmt::format("its environment ({})", environment.error().message));
  } else {
    for (const std::string& entry : split(*environment, '\0'))
      if (const std::size_t equals = entry.find('='); equals != std::string::npos && equals > 0)
        process.env.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  const auto status = read_file(proc_file(pid, "status"), 1 << 20);
  if (!status) return std::nullopt;
  const std::optional<uid_t> uid = effective_id(*status, "Uid");
  if (!uid) return std::nullopt;
  process.user = user_name(*uid);
  look_at_groups(*status, process);
  const std::string& home = value_of(process.env, "HOME");
  if (struct stat info{}; !process.user.empty() && home.starts_with('/') && ::stat(home.c_str(), &info) == 0 &&
                          S_ISDIR(info.st_mode) && info.st_uid == *uid)
    process.home = home;
  process.umask = status_field(*status, "Umask");
  if (const auto limits = read_file(proc_file(pid, "limits"), 1 << 20)) process.limits = read_limits(*limits);
  // Programs pass these variables on to their children, so LISTEN_PID is needed: it says for which process they are
  // meant.
  if (value_of(process.env, "LISTEN_PID") == std::to_string(pid)) {
    const std::string& sockets = value_of(process.env, "LISTEN_FDS");
    std::from_chars(sockets.data(), sockets.data() + sockets.size(), process.passed_sockets);
  }
  if (*uid != 0 && process.user.empty())
    unread.push_back(fmt::format(
        "the name of its user {}: this machine has no name for that number, so it runs as root in a run", *uid));
  return process;
}

// Open files

struct Open {
  std::set<std::uint64_t> sockets;
  std::set<std::string> written;
};

void look_at_descriptors(pid_t pid, Open& open, std::size_t& budget, std::vector<std::string>& unread) {
  const std::string folder = proc_file(pid, "fd");
  DIR* directory = ::opendir(folder.c_str());
  if (directory == nullptr) {
    if (errno != ENOENT) unread.push_back(fmt::format("its open files and sockets ({}: {})", folder, reason(errno)));
    return;
  }
  while (const dirent* entry = ::readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    if (budget == 0) break;
    --budget;
    std::string target = link_target(folder + "/" + entry->d_name);
    std::uint64_t inode = 0;
    if (std::sscanf(target.c_str(), "socket:[%lu]", &inode) == 1) {
      open.sockets.insert(inode);
      continue;
    }
    const bool standard = std::strcmp(entry->d_name, "1") == 0 || std::strcmp(entry->d_name, "2") == 0;
    if (!target.starts_with('/') || standard || take_suffix(target, " (deleted)")) continue;
    if (target.starts_with("/dev/") || target.starts_with("/proc/") || target.starts_with("/sys/") ||
        target.starts_with("/memfd:"))
      continue;
    const auto info = read_file(fmt::format("/proc/{}/fdinfo/{}", pid, entry->d_name), 1 << 20);
    unsigned flags = 0;
    const std::size_t at = info ? info->find("flags:") : std::string::npos;
    if (at == std::string::npos || std::sscanf(info->c_str() + at, "flags: %o", &flags) != 1) continue;
    struct stat file{};
    if ((flags & O_ACCMODE) != O_RDONLY && ::stat(target.c_str(), &file) == 0 && S_ISREG(file.st_mode))
      open.written.insert(target);
  }
  ::closedir(directory);
}

// The sockets in the network namespace of the process.
void look_at_network(pid_t pid, const Open& open, Seen& seen) {
  std::vector<Socket> own;
  for (const char* table : {"net/tcp", "net/tcp6", "net/udp", "net/udp6"}) {
    const auto text = read_file(proc_file(pid, table), kMostTableBytes);
    if (!text) {
      if (!std::string_view(table).ends_with('6'))
        seen.unread.push_back(fmt::format("its sockets ({})", text.error().message));
      continue;
    }
    const bool udp = std::string_view(table).find("udp") != std::string_view::npos;
    each_line(*text, [&](std::string_view line) {
      Socket socket;
      if (!read_socket_line(line, socket) || !open.sockets.contains(socket.inode)) return;
      constexpr int kListening = 10;
      if (udp) {
        if (socket.remote_port == 0) seen.udp.push_back({socket.address, socket.port});
      } else if (socket.state == kListening) {
        seen.tcp.push_back({socket.address, socket.port});
      } else {
        own.push_back(std::move(socket));
      }
    });
  }
  const auto by_port = [](const Listen& a, const Listen& b) {
    return std::tie(a.port, a.address) < std::tie(b.port, b.address);
  };
  for (auto* listens : {&seen.tcp, &seen.udp}) {
    std::sort(listens->begin(), listens->end(), by_port);
    listens->erase(std::unique(listens->begin(), listens->end()), listens->end());
  }
  for (const Socket& socket : own) {
    const bool accepted =
        std::any_of(seen.tcp.begin(), seen.tcp.end(), [&](const Listen& listen) { return listen.port == socket.port; });
    const Remote remote{socket.remote, socket.remote_port};
    if (!accepted && remote.port != 0 &&
        std::find(seen.remotes.begin(), seen.remotes.end(), remote) == seen.remotes.end() && seen.remotes.size() < 1000)
      seen.remotes.push_back(remote);
  }
  if (const auto text = read_file(proc_file(pid, "net/unix"), kMostTableBytes))
    each_line(*text, [&](std::string_view line) {
      std::uint64_t inode = 0;
      const std::string path = read_unix_line(line, inode);
      if (!path.empty() && open.sockets.contains(inode)) seen.sockets.push_back(path);
    });
  if (const auto text = read_file(proc_file(pid, "net/fib_trie"), kMostTableBytes))
    seen.addresses = read_fib_trie(*text);
  if (const auto text = read_file(proc_file(pid, "net/if_inet6"), kMostTableBytes))
    for (std::string& address : read_if_inet6(*text)) seen.addresses.push_back(std::move(address));
  seen.network = link_target(proc_file(pid, "ns/net"));
}

std::vector<std::string> mapped_code(pid_t pid) {
  std::set<std::string> files;
  if (const auto text = read_file(proc_file(pid, "maps"), kMostTableBytes))
    each_line(*text, [&](std::string_view line) {
      const std::size_t path = line.find('/');
      const std::size_t space = line.find(' ');
      if (path == std::string_view::npos || space == std::string_view::npos || line.size() < space + 4 ||
          line[space + 3] != 'x')
        return;
      files.insert(std::string(line.substr(path)));
    });
  return {files.begin(), files.end()};
}

// Describes where the process's output goes.
std::vector<std::string> look_at_output(const Process& process) {
  std::map<std::string, std::string> where;
  for (const int fd : {1, 2}) {
    const std::string link = fmt::format("/proc/{}/fd/{}", process.pid, fd);
    std::string target = link_target(link);
    struct stat info{};
    const bool known = ::stat(link.c_str(), &info) == 0;
    // systemd sets this variable to the device and inode number of the journal's socket.
    if (known && value_of(process.env, "JOURNAL_STREAM") == fmt::format("{}:{}", info.st_dev, info.st_ino))
      target = "the journal";
    else if (target.starts_with("pipe:")) target = "a pipe";
    else if (target.starts_with("socket:")) target = "a socket (possibly the journal's)";
    if (!target.empty() && target != "/dev/null")
      where[target] += where[target].empty() ? (fd == 1 ? "stdout" : "stderr") : " and stderr";
  }
  std::vector<std::string> lines;
  for (const auto& [target, streams] : where)
    lines.push_back(fmt::format("Its {} {} to {}; in a run, to stdout.log and stderr.log of its folder.", streams,
                                streams.find(' ') == std::string::npos ? "goes" : "go", target));
  return lines;
}

// Paths

void add_path(Seen& seen, const std::string& word, uid_t uid) {
  if (word.empty() || word.size() > 4096 || word.find('\0') != std::string::npos || seen.paths.contains(word)) return;
  const bool relative = word.front() != '/';
  if (relative && (seen.main.cwd.empty() || word.front() == '-')) return;
  const std::string absolute = relative ? fs::path(seen.main.cwd + "/" + word).lexically_normal().string() : word;
  struct stat info{};
  if (::stat(absolute.c_str(), &info) != 0) return;
  // A word such as "data" or "7" may be no path, so it counts as a path only if it names a folder.
  if (relative && word.find('/') == std::string::npos && word.find('.') == std::string::npos && !S_ISDIR(info.st_mode))
    return;
  PathFact fact;
  fact.absolute = absolute;
  fact.folder = S_ISDIR(info.st_mode);
  fact.writable = info.st_uid == uid && (info.st_mode & S_IWUSR) != 0;
  seen.paths.emplace(word, std::move(fact));
}

void look_at_paths(Seen& seen) {
  const auto uid = uid_of(seen.main.pid).value_or(0);
  const std::vector<std::string>& argv = seen.main.argv;
  const auto add_words = [&](const std::vector<std::string>& words) {
    if (words.empty()) return;
    // Adds the program, under the name by which it was started.
    const std::string& name = words.front();
    std::string program = name;
    if (name.find('/') == std::string::npos) program = program_in(value_of(seen.main.env, "PATH"), name);
    else if (!name.starts_with('/'))
      program = seen.main.cwd.empty() ? "" : fs::path(seen.main.cwd + "/" + name).lexically_normal().string();
    std::error_code ignored;
    const bool same = seen.main.exe.empty() || fs::equivalent(program, seen.main.exe, ignored);
    if (!program.empty() && is_program(program) && (same || seen.program || words != argv))
      seen.paths[name] = {program, false, false};
    for (std::size_t i = 1; i < words.size(); ++i) {
      const bool value = i > 1 || !words[i].starts_with('-');
      const Split split_of = split_word(words[i]);
      for (const std::string& part : split(split_of.value, ',')) {
        // Without a slash, a relative path is likely only after an option or as the script of a runtime.
        const bool likely = part.find('/') != std::string::npos || (i > 1 && words[i - 1].starts_with('-')) ||
                            !split_of.option.empty() || (!seen.runtime.empty() && value) ||
                            (is_wrapper(seen.main.exe) && value);
        if (likely) add_path(seen, part, uid);
      }
    }
  };
  if (!seen.title) add_words(argv);
  // The first word of a title still names the program.
  if (seen.title && !argv.empty()) {
    add_words({argv.front().substr(0, argv.front().find_first_of(" :"))});
    for (const std::string& word : split(argv.front(), ' '))
      if (word.starts_with('/')) add_path(seen, word, uid);
  }
  if (seen.unit) add_words(seen.unit->command);
  for (const auto& [name, value] : seen.main.env)
    if (value.starts_with('/') && value.size() < 4096 && name != "PATH" && name != "PWD" && name != "OLDPWD" &&
        name != "HOME")
      for (const std::string& part : split(value, ',')) add_path(seen, part, uid);
}

// Configuration files

// True for a file that contains only this process's id.
bool is_pid_file(const std::string& path, pid_t pid) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > 32) return false;
  auto content = read_file(path, 64);
  if (!content) return false;
  while (!content->empty() && std::isspace(static_cast<unsigned char>(content->back()))) content->pop_back();
  return *content == std::to_string(pid);
}

// Pid files are not kept open, so look in the usual folders and those in the configuration.
void find_pid_files(Seen& seen) {
  std::set<std::string> candidates;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/run", error)) {
    if (entry.path().extension() == ".pid") candidates.insert(entry.path());
    if (!entry.is_directory(error)) continue;
    for (const auto& inner : fs::directory_iterator(entry.path(), error))
      if (inner.path().extension() == ".pid") candidates.insert(inner.path());
  }
  for (const Settings& settings : seen.settings) candidates.insert(settings.paths.begin(), settings.paths.end());
  for (const auto& [word, fact] : seen.paths)
    if (!fact.folder) candidates.insert(fact.absolute);
  for (const std::string& path : candidates)
    if (is_pid_file(path, seen.main.pid)) seen.written.push_back(fs::path(path).lexically_normal().string());
}

void look_at_settings(Seen& seen) {
  std::set<std::string> files;
  for (const auto& [word, fact] : seen.paths)
    if (!fact.folder && fact.absolute != seen.main.exe && !is_program(fact.absolute)) files.insert(fact.absolute);
  // log files contain addresses too but are not configuration
  for (const std::string& file : seen.written) files.erase(file);
  for (const char* output : {"fd/1", "fd/2"}) files.erase(link_target(proc_file(seen.main.pid, output)));
  if (const System* system = find_system(seen); system != nullptr && files.empty() &&
                                                !system->usual_settings().empty() &&
                                                ::access(std::string(system->usual_settings()).c_str(), F_OK) == 0)
    files.emplace(system->usual_settings());
  const std::vector<std::string> names = inspect_host().names;
  const auto uid = uid_of(seen.main.pid).value_or(0);
  for (const std::string& file : files) {
    struct stat info{};
    if (::stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
        static_cast<std::size_t>(info.st_size) > kMostSettingsBytes)
      continue;
    const auto text = read_file(file, kMostSettingsBytes);
    if (!text) {
      seen.unread.push_back(fmt::format("what it names ({})", text.error().message));
      continue;
    }
    if (is_settings(file, *text)) seen.settings.push_back(read_settings(file, *text, names));
  }
  // Adds folders that the configuration names and the process's user owns: the process may write to them although no
  // file in them is open. Root is left out, because it may write to every folder.
  for (const Settings& settings : seen.settings)
    for (const std::string& path : settings.paths)
      if (struct stat info{};
          uid != 0 && ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == uid)
        seen.written.push_back(fs::path(path).lexically_normal().string());
}

// The process that does the work, if the main process is a shell: the descendant that listens, else the oldest
// descendant that is not a wrapper.
pid_t working_process(pid_t main, const std::vector<pid_t>& members, const std::function<bool(pid_t)>& listens) {
  pid_t oldest = 0;
  for (const pid_t pid : members) {
    if (pid == main) continue;
    const std::string exe = link_target(proc_file(pid, "exe"));
    if (exe.empty() || is_wrapper(exe)) continue;
    if (listens(pid)) return pid;
    if (oldest == 0) oldest = pid;
  }
  return oldest;
}

std::optional<std::size_t> count_functions(const std::string& exe) {
  std::error_code error;
  const auto size = fs::file_size(exe, error);
  if (exe.empty() || error || size > kMostProgramBytes) return std::nullopt;
  const auto functions = symbols::list_functions(exe);
  return functions ? std::optional(functions->size()) : std::nullopt;
}

// The script that started the process, if the script still runs as its parent.
std::string script_above(pid_t pid) {
  const auto stat = kernel::process_stat(pid);
  if (!stat || stat->ppid <= 1) return "";
  const std::string exe = link_target(proc_file(stat->ppid, "exe"));
  const auto line = read_file(proc_file(stat->ppid, "cmdline"), kMostCommandBytes);
  if (!is_wrapper(exe) || !line) return "";
  const CommandLine command = read_command_line(*line);
  // The script is the first argument that is a path. A login shell has no such argument.
  for (std::size_t i = 1; i < command.words.size(); ++i)
    if (!command.words[i].starts_with('-') && !command.words[i].starts_with("/dev/") &&
        command.words[i].find('/') != std::string::npos && command.words[i].find(' ') == std::string::npos)
      return fmt::format("{} (pid {})", command.words[i], stat->ppid);
  return "";
}

std::string last_cgroup_part(pid_t pid, std::string* whole = nullptr) {
  const auto content = read_file(proc_file(pid, "cgroup"), 1 << 20);
  if (!content) return "";
  std::string best;
  // Use the line with the longest path, because the lines of some hierarchies name only an outer group, or the root.
  each_line(*content, [&](std::string_view line) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) return;
    const std::string_view path = line.substr(second + 1);
    if (path.size() > best.size()) best = std::string(path);
  });
  if (whole != nullptr) *whole = best;
  return best.substr(best.rfind('/') + 1);
}

}  // namespace

pid_t first_of_its_kind(pid_t pid) {
  for (int depth = 0; depth < 64; ++depth) {
    const auto stat = kernel::process_stat(pid);
    if (!stat || stat->ppid <= 1) return pid;
    const std::string exe = link_target(proc_file(pid, "exe"));
    if (exe.empty() || exe != link_target(proc_file(stat->ppid, "exe"))) return pid;
    // Two processes of the same interpreter may run different scripts, so compare their command lines.
    if (is_wrapper(exe) || !runtime_of(exe, {}).empty()) {
      const auto own = read_file(proc_file(pid, "cmdline"), kMostCommandBytes);
      const auto above = read_file(proc_file(stat->ppid, "cmdline"), kMostCommandBytes);
      if (!own || !above || *own != *above) return pid;
    }
    pid = stat->ppid;
  }
  return pid;
}

std::string unit_of(pid_t pid) {
  std::string whole;
  const std::string last = last_cgroup_part(pid, &whole);
  // Units of user managers are managed by another systemd instance.
  return last.ends_with(".service") && whole.find("/user.slice") == std::string::npos ? last : "";
}

std::string container_of(pid_t pid) {
  std::string whole;
  (void)last_cgroup_part(pid, &whole);
  for (std::string path = whole; path.size() > 1; path = path.substr(0, path.rfind('/')))
    if (const auto owner = deploy::owner_of_cgroup(path); owner && !owner->pod) return owner->id;
  return "";
}

namespace {

Error ended_meanwhile(const std::string& origin) {
  return {ErrorKind::usage, fmt::format("{}: the process ended while it was inspected", origin), ""};
}

// Reads the files of the main process, as both inspect() and inspect_inside() need them.
Result<Seen> begin_look(pid_t main, const std::string& origin) {
  const auto stat = kernel::process_stat(main);
  if (!stat) return fail(ErrorKind::usage, fmt::format("{}: there is no process {}", origin, main));
  if (stat->state == 'Z' || stat->state == 'X')
    return fail(ErrorKind::usage, fmt::format("{}: process {} has ended", origin, main));
  Seen seen;
  seen.origin = origin;
  auto process = look_at_process(main, seen.title, seen.unread);
  if (!process) return Unexpected(ended_meanwhile(origin));
  seen.main = std::move(*process);
  if (seen.main.argv.empty() && seen.main.exe.empty())
    return fail(ErrorKind::usage, fmt::format("{}: process {} is a kernel thread", origin, main),
                "name a program's process");
  return seen;
}

struct Descriptors {
  Open all;
  std::map<pid_t, Open> of;
};

Descriptors look_at_members(pid_t main, const std::vector<pid_t>& members, Seen& seen) {
  Descriptors open;
  std::size_t budget = kMostDescriptors;
  seen.processes = std::max<std::size_t>(members.size(), 1);
  for (std::size_t i = 0; i < members.size() && i < kMostProcesses; ++i) {
    Open& one = open.of[members[i]];
    std::vector<std::string> unread;
    look_at_descriptors(members[i], one, budget, unread);
    if (members[i] == main) seen.unread.insert(seen.unread.end(), unread.begin(), unread.end());
    open.all.sockets.insert(one.sockets.begin(), one.sockets.end());
    open.all.written.insert(one.written.begin(), one.written.end());
  }
  if (budget == 0)
    seen.unread.push_back(fmt::format("all of its open files: there are more than {}", kMostDescriptors));
  look_at_network(main, open.all, seen);
  return open;
}

// True if the process has another root directory, in which paths have another meaning. (A private /tmp has a different
// mount namespace but the same root.)
bool has_other_root(pid_t pid) {
  struct stat own{};
  struct stat its{};
  return ::stat("/", &own) == 0 && ::stat(proc_file(pid, "root/.").c_str(), &its) == 0 &&
         (own.st_dev != its.st_dev || own.st_ino != its.st_ino);
}

}  // namespace

Result<Seen> inspect_inside(pid_t main, const std::vector<pid_t>& members, const std::string& origin) {
  ROSE_TRY(Seen seen, begin_look(main, origin));
  (void)look_at_members(main, members, seen);
  return seen;
}

Result<Seen> inspect(pid_t main, const std::vector<pid_t>& members, std::optional<Unit> unit,
                     const std::string& origin) {
  const auto before = kernel::process_stat(main);
  ROSE_TRY(Seen seen, begin_look(main, origin));
  if (has_other_root(main)) {
    const std::string id = container_of(main);
    return fail(ErrorKind::usage,
                fmt::format("{}: process {} has its own root directory, so its paths are not those of this machine",
                            origin, main),
                id.empty() ? "use --container for a container"
                           : fmt::format("it runs in a container: --container {}", id.substr(0, 12)));
  }
  seen.unit = std::move(unit);
  seen.needed = mapped_code(main);
  seen.runtime = runtime_of(seen.main.exe, seen.needed);
  seen.started_by = script_above(main);
  Descriptors open = look_at_members(main, members, seen);
  seen.written.assign(open.all.written.begin(), open.all.written.end());
  seen.written.insert(seen.written.end(), seen.sockets.begin(), seen.sockets.end());
  seen.output = look_at_output(seen.main);

  if (is_wrapper(seen.main.exe)) {
    const pid_t working = working_process(main, members, [&](pid_t pid) {
      Seen only;
      if (open.of.contains(pid)) look_at_network(pid, open.of[pid], only);
      return !only.tcp.empty();
    });
    if (working != 0) {
      bool title = false;
      std::vector<std::string> unread;
      seen.program = look_at_process(working, title, unread);
      const auto mapped = mapped_code(working);
      seen.needed.insert(seen.needed.end(), mapped.begin(), mapped.end());
      if (seen.program) seen.runtime = runtime_of(seen.program->exe, mapped);
    }
  }
  seen.functions = count_functions(seen.program ? seen.program->exe : seen.main.exe);
  look_at_paths(seen);
  look_at_settings(seen);
  find_pid_files(seen);
  const auto now = kernel::process_stat(main);
  if (!now || !before || now->start_ticks != before->start_ticks || now->state == 'Z')
    return Unexpected(ended_meanwhile(origin));
  return seen;
}

const std::string& value_of(const Variables& variables, std::string_view name) {
  static const std::string none;
  const auto found =
      std::find_if(variables.begin(), variables.end(), [&](const auto& each) { return each.first == name; });
  return found == variables.end() ? none : found->second;
}

bool Host::has(const std::string& tool) const { return std::find(tools.begin(), tools.end(), tool) != tools.end(); }

Host inspect_host() {
  Host host;
  host.names = {"localhost"};
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' && host.names.front() != name.data())
    host.names.emplace_back(name.data());
  for (const char* tool : {"redis-cli", "psql", "curl", "etcdctl", "bash", "mosquitto_pub", "docker", "podman",
                           "podman-compose", "nerdctl"})
    if (!program_in_path(tool).empty()) host.tools.emplace_back(tool);
  if (const auto status = read_file("/proc/self/status", 1 << 20)) host.umask = status_field(*status, "Umask");
  if (const auto limits = read_file("/proc/self/limits", 1 << 20)) host.limits = read_limits(*limits);
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (const char* equals = std::strchr(*entry, '='))
      host.environment.emplace_back(std::string(static_cast<const char*>(*entry), equals), equals + 1);
  return host;
}

}  // namespace rose::draft
