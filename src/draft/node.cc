#include "draft/node.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/ascii.h"
#include "base/text.h"
#include "base/units.h"
#include "draft/container.h"
#include "draft/folders.h"
#include "draft/settings.h"
#include "draft/systems.h"
#include "draft/unit.h"

namespace rose::draft {
namespace {

constexpr std::size_t kMostWords = 1000;
constexpr std::size_t kMostWordBytes = 64 * 1024;
constexpr std::size_t kMostValueBytes = 4096;
constexpr std::size_t kMostVariables = 100;

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

// The text's letters, digits, '_' and '-' in lower case, as allowed in a node's name.
std::string as_node_name(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, 24)) {
    const char low = lower_case(c);
    const bool fits = is_lower(low) || is_digit(low) || low == '_' || low == '-';
    if (fits && !(name.empty() && (low == '_' || low == '-'))) name += low;
    else if (!name.empty() && name.back() != '-') name += '-';
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "node" : name;
}

// Erlang runs modules: use the name of the Erlang node, or the module that it starts with.
std::string erlang_name(const std::vector<std::string>& words) {
  std::string starts;
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (words[i] == "-name" || words[i] == "-sname") return words[i + 1].substr(0, words[i + 1].find('@'));
    if (words[i] == "-s" && starts.empty()) starts = words[i + 1];
  }
  return starts;
}

// What a runtime executes: the script, jar or class.
std::string runs_what(const Seen& seen) {
  const Process& process = seen.program ? *seen.program : seen.main;
  if (seen.runtime == "Erlang") return erlang_name(process.argv);
  for (std::size_t i = 1; i < process.argv.size(); ++i) {
    const std::string& word = process.argv[i];
    if (word == "-jar" && i + 1 < process.argv.size()) return base_name(process.argv[i + 1]);
    if (word == "-cp" || word == "-classpath" || word == "--class-path" || word == "-p" || word == "--module-path") {
      ++i;
      continue;
    }
    if (word == "-m" && i + 1 < process.argv.size()) return base_name(process.argv[i + 1]);
    if (word.starts_with('-')) continue;
    const std::string name = base_name(word);
    // For Java, the class in org.x.Main; otherwise the script in server.py, without its extension.
    return seen.runtime == "Java" ? name.substr(name.rfind('.') + 1) : name.substr(0, name.find('.'));
  }
  return "";
}

// True for variables of a login session or of systemd, which do not concern the program.
bool is_session_variable(std::string_view name) {
  static const std::set<std::string, std::less<>> names = {"_",
                                                           "HOME",
                                                           "USER",
                                                           "LOGNAME",
                                                           "SHELL",
                                                           "TERM",
                                                           "PWD",
                                                           "OLDPWD",
                                                           "SHLVL",
                                                           "LANG",
                                                           "LANGUAGE",
                                                           "MAIL",
                                                           "HOSTNAME",
                                                           "DISPLAY",
                                                           "COLORTERM",
                                                           "LS_COLORS",
                                                           "LESSOPEN",
                                                           "LESSCLOSE",
                                                           "LESS",
                                                           "PAGER",
                                                           "EDITOR",
                                                           "VISUAL",
                                                           "PS1",
                                                           "PS2",
                                                           "HISTFILE",
                                                           "HISTSIZE",
                                                           "HISTCONTROL",
                                                           "INVOCATION_ID",
                                                           "JOURNAL_STREAM",
                                                           "NOTIFY_SOCKET",
                                                           "MAINPID",
                                                           "MANAGERPID",
                                                           "LISTEN_PID",
                                                           "LISTEN_FDS",
                                                           "LISTEN_FDNAMES",
                                                           "WATCHDOG_PID",
                                                           "WATCHDOG_USEC",
                                                           "PIDFILE",
                                                           "TMUX",
                                                           "TMUX_PANE",
                                                           "STY",
                                                           "WINDOW",
                                                           "XAUTHORITY",
                                                           "DBUS_SESSION_BUS_ADDRESS",
                                                           "PATH",
                                                           "DEBIAN_FRONTEND",
                                                           "CREDENTIALS_DIRECTORY",
                                                           "CONFIGURATION_DIRECTORY",
                                                           "RUNTIME_DIRECTORY",
                                                           "STATE_DIRECTORY",
                                                           "CACHE_DIRECTORY",
                                                           "LOGS_DIRECTORY",
                                                           "SYSTEMD_EXEC_PID",
                                                           "MEMORY_PRESSURE_WATCH",
                                                           "MEMORY_PRESSURE_WRITE",
                                                           "COLUMNS",
                                                           "LINES",
                                                           "XPC_FLAGS",
                                                           "TERM_PROGRAM",
                                                           "TERM_PROGRAM_VERSION",
                                                           "VTE_VERSION"};
  if (names.contains(name)) return true;
  for (const std::string_view prefix :
       {"SSH_", "SUDO_", "XDG_", "LC_", "ROSE_", "BASH_FUNC_", "GPG_", "BYOBU_", "SYSTEMD_"})
    if (name.starts_with(prefix)) return true;
  return false;
}

// True for variables by which a program finds the folders of its unit. Such a folder is covered at its place instead of
// being moved, because a program may also use the folder's path without the variable.
bool names_folder_of_unit(std::string_view name) {
  static const std::set<std::string, std::less<>> names = {"CONFIGURATION_DIRECTORY", "RUNTIME_DIRECTORY",
                                                           "STATE_DIRECTORY", "CACHE_DIRECTORY", "LOGS_DIRECTORY"};
  return names.contains(name);
}

// Some variables are set by sessions as well as by units. They concern the program if its unit sets them itself.
bool concerns_the_program(const Seen& seen, const std::string& name) {
  if (!is_session_variable(name)) return true;
  if (!seen.unit) return false;
  const std::vector<std::string>& own = seen.unit->variables;
  if (name == "HOME" && !seen.main.home.empty()) return true;
  return names_folder_of_unit(name) || std::find(own.begin(), own.end(), name) != own.end();
}

// Why rose.toml cannot represent this command line, or "".
std::string unwritable(const std::vector<std::string>& words) {
  if (words.empty() || words.front().empty()) return "its command line is empty";
  if (words.size() > kMostWords) return fmt::format("its command line has {} words", words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].size() > kMostWordBytes)
      return fmt::format("word {} of its command line has {} bytes", i + 1, words[i].size());
    if (!fits_toml(words[i]))
      return fmt::format("word {} of its command line is not UTF-8, which TOML requires", i + 1);
  }
  return "";
}

// The command line

// The words with which it was started; empty if unknown, and node.question then has the reason.
std::vector<std::string> first_words(Making& making) {
  const Seen& seen = making.seen();
  std::vector<std::string> words = seen.main.argv;
  if (seen.title) {
    words.clear();
    if (seen.unit && !seen.unit->command.empty()) {
      for (const std::string& word : seen.unit->command)
        for (std::string& one : expand_word(word, seen.main.env)) words.push_back(std::move(one));
      making.node.changes.push_back(fmt::format(
          "it replaced its command line by \"{}\", so 'command' is the unit's ExecStart{}", seen.main.argv.front(),
          seen.unit->exact ? "" : " (split at spaces, because systemctl does not report quotes)"));
    } else if (making.node.system != nullptr && !seen.program) {
      if (auto recovered = making.node.system->recover(making)) words = std::move(*recovered);
    }
    if (words.empty() && making.node.question.empty())
      making.node.question = fmt::format("it replaced its command line by \"{}\"", seen.main.argv.front());
    if (words.empty()) return {};
  }
  if (std::string why = unwritable(words); !why.empty()) {
    making.node.question = std::move(why);
    return {};
  }
  return words;
}

// Replaces the program by a path that works from any folder, but keeps the name by which it was called, because some
// programs behave differently depending on their name.
void settle_program(Making& making, std::vector<std::string>& words) {
  const Seen& seen = making.seen();
  const auto fact = seen.paths.find(words.front());
  if (words.front().find('/') != std::string::npos) {
    if (fact != seen.paths.end()) words.front() = fact->second.absolute;
    else if (!words.front().starts_with('/') && !seen.main.exe.empty()) words.front() = seen.main.exe;
    return;
  }
  // A program without a slash was found through PATH when it was started; inspect.cc has looked it up there.
  if (fact != seen.paths.end()) {
    words.front() = fact->second.absolute;
  } else if (!seen.main.exe.empty() && words.front() != base_name(seen.main.exe)) {
    making.node.doubts.push_back(
        fmt::format("it calls itself {}, but the program is {}", words.front(), seen.main.exe));
    words.front() = seen.main.exe;
  } else if (!seen.main.exe.empty()) {
    words.front() = seen.main.exe;
  }
}

// Removes options with which a program leaves the foreground: rose would then miss its end and its output.
void stay_in_foreground(Making& making) {
  Words& words = making.words;
  std::vector<std::string> options = {"--daemon", "--daemonize", "--detach", "--fork", "--background", "-daemon"};
  for (std::size_t i = 0; i < std::min<std::size_t>(words.size(), 3); ++i)
    if (base_name(words[i].text).starts_with("gunicorn")) options.emplace_back("-D");
  for (const std::string& option : options) {
    // uWSGI's --daemonize has a value: the file of its log.
    const std::size_t values = option == "--daemonize" ? 1 : 0;
    if (!words.has({option}) || !words.drop({option}, values)) continue;
    making.node.changes.push_back(fmt::format("{}: left out, so that it stays in the foreground", option));
  }
}

void mask_words(Making& making, std::vector<std::string>& words, Secrets& secrets) {
  const Words before(words);
  std::size_t masked = 0;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const Split split = split_word(words[i]);
    const std::string value = secrets.masked(before.option_of(i), split.value);
    if (value == split.value) continue;
    words[i] = std::string(split.option) + value;
    ++masked;
  }
  if (masked > 0)
    making.node.changes.push_back(
        fmt::format("{} that looked like a secret: replaced by a generated one (rose-secret-...), which is the same "
                    "for equal secrets",
                    masked == 1 ? "a word" : fmt::format("{} words", masked)));
}

// Root executes these commands, and some of the paths lead through folders in which the node's user may put links, even
// between two commands. So no path is looked up twice: a folder is entered, the kernel is asked for its path, and the
// following commands work on "." (mount -c, because mount would otherwise look the path up again).
constexpr std::string_view kAt =
    "at() {\n"
    "  cd -- \"$1\"; there=$(readlink /proc/self/cwd)\n"
    "  [ \"$there\" = \"$1\" ] || { echo \"rose: $1 leads to $there\" >&2; exit 1; }\n"
    "}\n";

// Creates an overlay of a folder on itself, so that the node's changes stay in the run, through restarts. The layers of
// an overlay must not be inside the covered folder. If the run's folder is inside it, the layers are kept in memory,
// and the run's folder is mounted again. `mount -c` is needed because mount would otherwise resolve "..", and the
// resolved path leads into the overlay.
constexpr std::string_view kLayOver =
    "lay_over() {\n"
    "  layers=$over/layers/$1; mkdir -p \"$layers\"\n"
    "  case $over/ in \"$2\"/*) mount -t tmpfs tmpfs \"$layers\";; esac\n"
    "  mkdir -p \"$layers/changes\" \"$layers/work\"\n"
    "  ( at \"$2\"; chown --reference=. \"$layers/changes\"; chmod --reference=. \"$layers/changes\"\n"
    "    mount -c -t overlay -o \"lowerdir=.,upperdir=$layers/changes,workdir=$layers/work\" overlay . )\n"
    "  case $over/ in \"$2\"/*) mount -c --rbind .. \"${over%/*}\";; esac\n"
    "}\n";

// Mounts a file or folder over another one. The shell cannot open a file without following a link or triggering a pipe
// or device, so the kernel is asked afterwards where the mount is. In the separate mount namespace, a wrong mount does
// no harm until root executes a program, and this check executes none. The list of mounts is opened before, because a
// mount might hide it. The kernel escapes blanks in it.
constexpr std::string_view kPut =
    "put() {\n"
    "  if [ -d \"$1\" ]; then ( at \"$2\"; mount -c --bind \"$1\" . ); return; fi\n"
    "  place=$(printf %s \"$2\" | sed 's/\\\\/\\\\134/g; s/ /\\\\040/g; s/\\t/\\\\011/g'); above=${2%/*}\n"
    "  exec 7< /proc/self/mountinfo\n"
    "  ( at \"${above:-/}\"; mount -c --bind \"$1\" \"./${2##*/}\" )\n"
    "  while read -r _ _ _ _ there _; do last=$there; done <&7\n"
    "  exec 7<&-\n"
    "  [ \"$last\" = \"$place\" ] || { echo \"rose: $2 leads to $last\" >&2; exit 1; }\n"
    "}\n";

// Copies a file, and refuses a link.
constexpr std::string_view kTake =
    "take() {\n"
    "  mkdir -p files; rm -rf \"files/$1\"; above=${2%/*}\n"
    "  ( at \"${above:-/}\"; cp -a \"./${2##*/}\" \"$over/files/$1\" )\n"
    "  if [ -L \"files/$1\" ] || [ ! -f \"files/$1\" ]; then echo \"rose: $2 is not a file\" >&2; exit 1; fi\n"
    "  chmod a-s \"files/$1\"\n"
    "}\n";

// What a process inherits: the umask and the limits of the running system. Nodes would otherwise have those of rose.
struct Inherited {
  std::string umask;                // "" if rose has the same
  std::vector<std::string> limits;  // options of prlimit
};

// True if the first limit is higher.
bool exceeds(const std::string& one, const std::string& other) {
  if (other == "unlimited") return false;
  return one == "unlimited" || one.size() > other.size() || (one.size() == other.size() && one > other);
}

Inherited find_inherited(Making& making) {
  const Process& process = making.seen().program ? *making.seen().program : making.seen().main;
  const Host& host = making.host;
  NodeDraft& node = making.node;
  Inherited found;
  if (!process.umask.empty() && !host.umask.empty() && process.umask != host.umask) {
    found.umask = process.umask;
    node.changes.push_back(fmt::format("umask {}, as the running one (rose has {})", process.umask, host.umask));
  }
  for (const Limit& limit : process.limits) {
    const auto own = std::find_if(host.limits.begin(), host.limits.end(),
                                  [&](const Limit& one) { return one.option == limit.option; });
    // Programs raise the soft limit if they need to, so the hard limit alone rarely matters.
    if (own == host.limits.end() || own->soft == limit.soft) continue;
    if (exceeds(limit.soft, own->hard)) {
      node.doubts.push_back(
          fmt::format("its limit '{}' is {}, but 'rose init' may use at most {}: run rose with a higher limit "
                      "(ulimit -H), or a run differs",
                      limit.option, limit.soft, own->hard));
      continue;
    }
    const std::string& hard = exceeds(limit.hard, own->hard) ? own->hard : limit.hard;
    found.limits.push_back(fmt::format("--{}={}:{}", limit.option, limit.soft, hard));
    node.changes.push_back(fmt::format("limit '{}' is {}, as for the running one (prlimit)", limit.option, limit.soft));
  }
  return found;
}

// Runs the command with mounts over the files that the running system uses: overlays over the folders in which the node
// works, empty folders over its data, and copies of configuration files with the run's addresses. The command gets the
// user, the groups, the umask and the limits of the running system.
void cover(Making& making, const Covers& covers, const std::vector<std::pair<std::string, Patch>>& patches,
           const Homes& homes) {
  NodeDraft& node = making.node;
  const Process& process = making.seen().main;
  const Inherited inherited = find_inherited(making);
  const bool mounts = !covers.paths.empty() || !patches.empty() || !homes.folders.empty();
  const bool other_groups = !node.user.empty() && !process.group.empty();
  if (!mounts && !other_groups && inherited.umask.empty() && inherited.limits.empty()) return;
  std::string start = "exec";
  for (const std::string& option : inherited.limits)
    start += (option == inherited.limits.front() ? " prlimit " : " ") + option;
  if (other_groups)
    start += fmt::format(" setpriv --reuid {} --regid {} --groups {}", node.user, process.group, process.groups);
  else if (mounts && !node.user.empty())
    start += fmt::format(" setpriv --reuid {} --regid \"$group\" --init-groups", node.user);
  start += " \"$@\"";
  if (!inherited.umask.empty()) start = fmt::format("umask {}\n{}", inherited.umask, start);
  if (other_groups)
    node.changes.push_back(
        fmt::format("user {} with the groups of the running one: set with setpriv, because {} has "
                    "others by default",
                    node.user, node.user));
  if (!mounts) {
    if (node.binary.empty()) node.binary = making.words[0].text;
    making.words.prepend({"sh", "-ec", start, "sh"});
    if (other_groups) node.begins_as_root = true;
    return;
  }
  // What root creates at each start is in a folder that only root may enter. Its entries have numbers as names: if
  // their names were paths, these could lead through a folder that belongs to the user.
  std::string script = "own=$PWD; over=$ROSE_RUN_DIR/$ROSE_NODE.over\nmkdir -p -m 700 \"$over\"; cd \"$over\"\n";
  // Run id before anything is mounted over the files that it needs.
  if (!node.user.empty() && !other_groups) script += fmt::format("group=$(id -g {})\n", node.user);
  script += escaped(kAt);
  int number = 0;
  if (!homes.folders.empty()) {
    script += escaped(kLayOver);
    for (const std::string& path : homes.folders)
      script += fmt::format("lay_over {} {}\n", ++number, escaped(shell_word(path)));
  }
  if (!patches.empty() || !covers.paths.empty()) script += escaped(kPut);
  if (!patches.empty()) script += escaped(kTake);
  number = 0;
  for (const auto& [path, patch] : patches) {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(path, error);
    const std::string file = escaped(shell_word(error ? path : real.string()));
    script += fmt::format("take {} {}\nsed -E -i", ++number, file);
    for (const std::string& expression : patch.expressions) script += fmt::format(" \\\n  -e '{}'", expression);
    script += fmt::format(" files/{0}\nput \"$over/files/{0}\" {1}\n", number, file);
  }
  if (!covers.paths.empty()) {
    script +=
        "mkdir -p empty; i=0\n"
        "while [ \"$1\" != -- ]; do\n"
        "  i=$((i + 1))\n"
        "  if [ -d \"$1\" ]; then mkdir -p empty/$i; else : >> empty/$i; fi\n";
    if (!node.user.empty()) script += fmt::format("  chown {} empty/$i\n", node.user);
    script += "  put \"$over/empty/$i\" \"$1\"; shift\ndone\nshift\n";
  }
  script += homes.begins_in.empty() ? "cd \"$own\"\n" : fmt::format("at {}\n", escaped(shell_word(homes.begins_in)));
  // unshare and mount require root, so the user is changed after them.
  script += start;
  std::vector<std::string> front = {"unshare", "--mount", "sh", "-ec", script, "sh"};
  for (const std::string& path : covers.paths) front.push_back(escaped(path));
  if (!covers.paths.empty()) front.push_back("--");
  if (node.binary.empty()) node.binary = making.words[0].text;
  making.words.prepend(std::move(front));
  if (!covers.paths.empty())
    node.changes.push_back(
        fmt::format("it writes to {}, which its command line does not name: in a run, empty files or folders of the "
                    "run's folder are mounted over these paths, for this node only (unshare, mount --bind)",
                    fmt::join(covers.paths, ", ")));
  if (!homes.folders.empty())
    node.changes.push_back(fmt::format(
        "it works in {}, also in a run; but its changes there go to the run's folder, for this node only (unshare, "
        "mount -t overlay)",
        fmt::join(homes.folders, ", ")));
  if (!node.user.empty()) {
    if (!other_groups)
      node.changes.push_back(fmt::format("user {}: set with setpriv, because mount requires root", node.user));
    node.begins_as_root = true;
  }
}

// Other keys of the node

void add_variables(Making& making, const Moved& moved, Secrets& secrets, Rewritten& rewritten) {
  NodeDraft& node = making.node;
  std::size_t others = 0;
  std::size_t inherited = 0;
  const Variables& own = making.host.environment;
  for (const auto& [name, value] : making.seen().main.env) {
    if (!concerns_the_program(making.seen(), name)) continue;
    if (std::find(own.begin(), own.end(), std::pair(name, value)) != own.end()) {
      ++inherited;
      continue;
    }
    // Of two variables with the same name, programs see the first.
    if (std::any_of(node.env.begin(), node.env.end(), [&](const Variable& known) { return known.name == name; }))
      continue;
    if (!is_environment_name(name)) {
      ++others;
    } else if (node.env.size() >= kMostVariables) {
      node.env_left.push_back(fmt::format("{}: there are more than {}", name, kMostVariables));
      break;
    } else if (value.size() > kMostValueBytes) {
      node.env_left.push_back(fmt::format("{}: it has {} bytes", name, value.size()));
    } else if (!fits_toml(value)) {
      node.env_left.push_back(fmt::format("{}: it is not UTF-8, which TOML requires", name));
    } else {
      Variable variable{name, secrets.masked(name, value), ""};
      if (variable.value != value) {
        variable.comment = "looked like a secret: replaced by a generated one";
        variable.value = making.book.rewrite(making.self, name, escaped(variable.value), rewritten);
      } else {
        const std::string place = move_value(making.seen(), value, moved);
        variable.value = place != value ? place : making.book.rewrite(making.self, name, escaped(value), rewritten);
        if (variable.value != escaped(value)) variable.comment = fmt::format("was {}", value);
      }
      node.env.push_back(std::move(variable));
    }
  }
  if (inherited > 0)
    node.env_left.push_back(
        fmt::format("{} with the same value in the environment of 'rose init': nodes inherit such variables from rose",
                    inherited == 1 ? "one" : std::to_string(inherited)));
  if (others > 0) node.env_left.push_back(fmt::format("{} with invalid names", others));
}

bool is_wild(const Listen& listen) { return listen.address == "0.0.0.0" || listen.address == "::"; }

// Chooses the port that shows that the node is ready: one to which other nodes can connect.
void choose_ready(Making& making) {
  NodeDraft& node = making.node;
  const Seen& seen = making.seen();
  if (seen.tcp.empty()) {
    if (node.ready.empty())
      node.doubts.push_back(
          "it listens at no TCP port: 'ready' could wait for a line of its log, { log = \"...\" }, or for a command");
    return;
  }
  const bool reachable = making.reachable;
  const auto open = std::find_if(seen.tcp.begin(), seen.tcp.end(),
                                 [&](const Listen& listen) { return reachable || is_wild(listen); });
  if (open == seen.tcp.end()) {
    node.doubts.push_back(fmt::format(
        "it listens at {} only, so nothing can reach it in a run; its command line does not set this address. "
        "A copy of its configuration file must name 0.0.0.0; then ready = {{ tcp = {} }} is possible",
        fmt::format("{}:{}", seen.tcp.front().address, seen.tcp.front().port), seen.tcp.front().port));
    return;
  }
  if (node.port == 0) node.port = open->port;
  const bool known =
      std::any_of(seen.tcp.begin(), seen.tcp.end(), [&](const Listen& listen) { return listen.port == node.port; });
  if (node.ready.empty()) node.ready = fmt::format("{{ tcp = {}, timeout = \"30s\" }}", known ? node.port : open->port);
}

void describe(Making& making, Secrets& secrets) {
  const Seen& seen = making.seen();
  NodeDraft& node = making.node;
  std::string what = node.system != nullptr  ? std::string(node.system->title())
                     : seen.main.exe.empty() ? "a program"
                                             : base_name(seen.main.exe);
  std::string line = fmt::format("{}: {}", node.name, what);
  line += fmt::format(", from {}", seen.origin);
  if (seen.processes > 1) line += fmt::format(", {} processes", seen.processes);
  node.about.push_back(line);
  if (seen.program)
    node.about.push_back(fmt::format("Started by {}; the working process is {} (pid {}).",
                                     base_name(seen.main.argv.empty() ? "" : seen.main.argv.front()), seen.program->exe,
                                     seen.program->pid));
  if (!seen.started_by.empty())
    node.about.push_back(fmt::format("It was started by {}, which may have prepared something.", seen.started_by));
  const auto list = [](const std::vector<Listen>& listens) {
    std::string text;
    for (std::size_t i = 0; i < listens.size() && i < 12; ++i) {
      const bool six = listens[i].address.find(':') != std::string::npos;
      text += fmt::format("{}{}{}{}:{}", text.empty() ? "" : ", ", six ? "[" : "", listens[i].address, six ? "]" : "",
                          listens[i].port);
    }
    if (listens.size() > 12) text += fmt::format(" and {} more", listens.size() - 12);
    return text;
  };
  if (!seen.tcp.empty()) node.about.push_back("Listens at " + list(seen.tcp) + ".");
  if (!seen.udp.empty()) node.about.push_back("UDP: " + list(seen.udp) + ".");
  for (const std::string& line_of : seen.output) node.about.push_back(line_of);
  std::vector<std::string> logs;
  for (const std::string& path : seen.written)
    if (path.find("log") != std::string::npos && logs.size() < 4) logs.push_back(path);
  if (!logs.empty())
    node.about.push_back(
        fmt::format("It writes files that may be logs: {} ('rose trace --dump-on-log' watches them in production).",
                    fmt::join(logs, ", ")));
  if (!seen.runtime.empty())
    node.about.push_back(
        fmt::format("It runs {}: calls, connections and processes are traced, but the program's own {} are not "
                    "functions in a file.",
                    seen.runtime, seen.runtime == "Java" ? "methods" : "functions"));
  for (const std::string& line_of : seen.unread) node.doubts.push_back("could not be read: " + line_of);
  if (seen.main.passed_sockets > 0)
    node.doubts.push_back(fmt::format(
        "systemd opened {} of its sockets{}, and a run does not: it may not start, or not listen. Then let "
        "'command' begin with 'systemd-socket-activate --listen PORT', and add '--setenv NAME' for each "
        "variable that it needs",
        seen.main.passed_sockets,
        seen.unit && !seen.unit->sockets.empty() ? fmt::format(" ({})", fmt::join(seen.unit->sockets, ", ")) : ""));
  if (seen.unit && !seen.unit->before.empty()) {
    std::string commands;
    for (const std::string& command : seen.unit->before)
      commands += fmt::format("{}'{}'", commands.empty() ? "" : ", ", secrets.masked("", command));
    node.doubts.push_back(
        fmt::format("its unit runs {} before it (ExecStartPre), and a run does not: if it needs what this prepares, "
                    "add it to 'setup' in [deployment] or to its own command",
                    commands));
  }
  if (seen.main.deleted)
    node.doubts.push_back(fmt::format("{} was replaced or removed since it was started", seen.main.exe));
}

void add_restart(Making& making) {
  const auto& unit = making.seen().unit;
  NodeDraft& node = making.node;
  if (!unit) {
    node.restart_note = "if something restarts it when it ends";
    return;
  }
  if (unit->restart.empty() || unit->restart == "no") {
    node.restart_note = "its unit does not restart it";
    return;
  }
  node.restart = fmt::format("{{ delay = \"{}\", max = {} }}",
                             format_duration(std::max<std::int64_t>(unit->restart_delay_ns, 1'000'000)),
                             unit->restarts > 0 && unit->restarts <= 1000 ? unit->restarts : 5);
  node.restart_note =
      fmt::format("the unit's Restart={}{}", unit->restart, unit->restart == "always" ? "" : "; here after every end");
}

NodeDraft draft_node(Making making, Secrets& secrets) {
  const Seen& seen = making.seen();
  making.node.user = making.node.owner = seen.main.user;
  describe(making, secrets);
  add_restart(making);
  if (seen.functions && seen.runtime.empty())
    making.node.functions =
        *seen.functions == 0 ? "its program has no symbols: none of its functions can be named"
                             : fmt::format("{} of its functions can be named: functions = [\"...\"]", *seen.functions);
  if (seen.program && fits_toml(seen.program->exe)) making.node.binary = escaped(seen.program->exe);
  std::vector<std::string> words = first_words(making);
  if (words.empty()) {
    making.node.port = seen.tcp.empty() ? 0 : seen.tcp.front().port;
    if (making.node.port != 0) making.node.ready = fmt::format("{{ tcp = {}, timeout = \"30s\" }}", making.node.port);
    return std::move(making.node);
  }
  settle_program(making, words);
  if (!fits_toml(words.front())) words.front() = seen.main.argv.front();
  mask_words(making, words, secrets);
  making.words = Words(words);
  // Do not adapt the words of a wrapper.
  const bool adapts = making.node.system != nullptr && !seen.program;
  if (adapts) making.node.system->adapt(making);
  else stay_in_foreground(making);

  Variables visible;
  for (const auto& variable : seen.main.env)
    if (concerns_the_program(seen, variable.first) && !names_folder_of_unit(variable.first) && variable.first != "HOME")
      visible.push_back(variable);
  Moved moved = find_places(seen, making.words, visible);
  move_words(seen, making.words, moved);
  Rewritten rewritten;
  making.book.rewrite(making.self, making.words, rewritten);
  add_variables(making, moved, secrets, rewritten);
  // If a word or variable named the address at which the node listens, it now has the node's address in the run.
  making.reachable = making.reachable || rewritten.own;
  Homes homes = making.places_known ? Homes{} : find_homes(seen, making.words);
  for (const std::string& path : homes.left)
    if (!seen.runtime.empty())
      making.node.doubts.push_back(fmt::format(
          "it works in {}, but not in a run: there, files that it names by relative paths are missing", path));
  Covers covers = making.places_known ? Covers{} : find_covers(seen, making.words, moved, homes.folders);
  std::erase_if(covers.paths, [&](const std::string& path) {
    if (fits_toml(path)) return false;
    making.node.doubts.push_back(
        fmt::format("it writes to {}, whose name TOML cannot represent: a run would write there, too", path));
    return true;
  });
  for (const std::string& path : covers.overlays) homes.add(path);
  std::vector<std::pair<std::string, Patch>> patches;
  for (const Settings& settings : seen.settings) {
    if (making.places_known || seen.program) break;
    Patch patch = patch_settings(settings, making.self, making.book, rewritten);
    making.reachable = making.reachable || patch.own;
    if (!patch.expressions.empty()) patches.emplace_back(settings.path, std::move(patch));
  }
  NodeDraft& node = making.node;
  node.changes.insert(node.changes.end(), moved.changes.begin(), moved.changes.end());
  node.changes.insert(node.changes.end(), rewritten.changes.begin(), rewritten.changes.end());
  node.doubts.insert(node.doubts.end(), rewritten.doubts.begin(), rewritten.doubts.end());
  for (const std::string& path : covers.uncovered)
    node.doubts.push_back(
        fmt::format("its socket {} is in a folder shared by many programs, and a run would replace that socket: "
                    "let it use another path",
                    path));
  node.folders = moved.folders;
  choose_ready(making);
  if (adapts) making.node.system->finish(making);
  cover(making, covers, patches, homes);
  node.command = making.words.texts();
  return std::move(making.node);
}

}  // namespace

bool is_variable_name(std::string_view name) {
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_alpha(c) || is_digit(c) || c == '_'; });
}

bool is_environment_name(std::string_view name) {
  std::string letters(name);
  std::replace_if(letters.begin(), letters.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return is_variable_name(letters);
}

std::vector<std::string> node_names(const std::vector<Seen>& seen, const std::vector<const System*>& systems) {
  std::vector<std::string> bases;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const Seen& one = seen[i];
    std::string base;
    if (one.unit) {
      base = one.unit->name.substr(0, one.unit->name.rfind('.'));
    } else if (systems[i] != nullptr) {
      base = systems[i]->name();
    } else {
      if (!one.runtime.empty()) base = runs_what(one);
      if (base.empty()) base = base_name((one.program ? *one.program : one.main).exe);
      if (base.empty() && !one.main.argv.empty())
        base = base_name(one.main.argv.front().substr(0, one.main.argv.front().find(' ')));
    }
    bases.push_back(as_node_name(base));
  }
  std::vector<std::string> names;
  std::set<std::string> taken;  // in the form used in variables
  for (std::size_t i = 0; i < bases.size(); ++i) {
    const bool alone = std::count(bases.begin(), bases.end(), bases[i]) == 1 && bases[i] != "client";
    std::string name = alone ? bases[i] : bases[i] + "1";
    // "web" twice and "web2" once must give three names.
    for (int n = 2; taken.contains(variable_name(name)); ++n) name = fmt::format("{}{}", bases[i], n);
    taken.insert(variable_name(name));
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<NodeDraft> draft_nodes(const std::vector<Seen>& seen, const Host& host, Secrets& secrets) {
  std::vector<const System*> systems;
  for (const Seen& one : seen) systems.push_back(find_system(one));
  const std::vector<std::string> names = node_names(seen, systems);
  std::vector<std::string> variables;
  for (const std::string& name : names) variables.push_back(variable_name(name));
  // Comments of the draft show the title that a program wrote over its command line, so secrets in it are replaced
  // here.
  std::vector<Seen> shown = seen;
  for (Seen& one : shown)
    if (one.title && !one.main.argv.empty()) one.main.argv.front() = secrets.masked("", one.main.argv.front());
  const AddressBook book(shown, names, variables, host);
  std::vector<NodeDraft> nodes;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    Making making{shown, i, book, systems, host, Words(), NodeDraft(), false, false};
    making.node.name = names[i];
    making.node.variable = variables[i];
    making.node.system = systems[i];
    nodes.push_back(draft_node(std::move(making), secrets));
  }
  return nodes;
}

}  // namespace rose::draft
