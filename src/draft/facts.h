// What was observed about a running system, as plain data. inspect.h, unit.h, container.h and compose.h fill it in; the
// code that uses it is pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rose::draft {

struct Listen {
  std::string address;  // "0.0.0.0", "127.0.0.1", "::"
  std::uint16_t port = 0;
  bool operator==(const Listen&) const = default;
};

// The peer of a connection that the process made.
struct Remote {
  std::string address;
  std::uint16_t port = 0;
  bool operator==(const Remote&) const = default;
};

// A word of a command line that is an existing path.
struct PathFact {
  std::string absolute;  // absolute path; relative ones are resolved against the process's working directory
  bool folder = false;
  bool writable = false;  // by the process's user, without root's privileges
};

using Variables = std::vector<std::pair<std::string, std::string>>;  // in the order of the environment
// The value of the variable `name`; "" if there is no such variable.
[[nodiscard]] const std::string& value_of(const Variables& variables, std::string_view name);

// A resource limit. Nodes inherit their limits from rose. `soft` and `hard` are numbers or "unlimited".
struct Limit {
  std::string option;  // of prlimit: "nofile"
  std::string soft;
  std::string hard;
  bool operator==(const Limit&) const = default;
};

struct Process {
  pid_t pid = 0;
  std::vector<std::string> argv;
  std::string exe;       // resolved; "" if it could not be read
  bool deleted = false;  // the file has been replaced or removed
  std::string cwd;
  Variables env;
  std::string user;  // "" for root or a user without a name
  // Its group and supplementary groups as numbers, if they are not those of `user` on this machine; otherwise "".
  std::string group;
  std::string groups;              // separated by commas
  std::string home;                // HOME, if it is an existing folder of `user`; otherwise ""
  std::string umask;               // "0027"; "" if unknown
  std::vector<Limit> limits;       // only those limits that programs notice (read_limits())
  std::size_t passed_sockets = 0;  // sockets that systemd opened and passed to it (LISTEN_FDS)
};

// An address in a configuration file.
struct SettingAddress {
  int line = 0;
  std::string keyword;  // first word of the line
  std::string spelled;  // "[::1]"
  std::string host;     // "::1"
  std::optional<std::uint16_t> port;
};

// A configuration file named on the command line.
struct Settings {
  std::string path;
  std::vector<std::string> paths;  // absolute paths that the file contains
  std::vector<SettingAddress> addresses;
  std::vector<std::string> secrets;  // keywords of lines that set a secret ("requirepass"), without the values
};

// A unit as systemd describes it.
struct Unit {
  std::string name;                  // "redis-server.service"
  std::vector<std::string> command;  // ExecStart
  bool exact = false;                // `command` has the words of ExecStart; otherwise it is split at spaces
  std::string restart;               // "always", "on-failure", ...; "" or "no": never restarted
  std::int64_t restart_delay_ns = 0;
  std::int64_t restarts = 0;  // StartLimitBurst; 0: unknown
  std::string pid_file;
  std::vector<std::string> folders;  // absolute paths of the unit's state, cache, log and runtime folders
  std::vector<std::string> environment_files;
  std::vector<std::string> before;     // commands of ExecStartPre, with single spaces between their words
  std::vector<std::string> variables;  // names that it sets itself, by Environment= or an environment file
  std::vector<std::string> sockets;    // units that pass sockets to it: "app.socket"
  bool done = false;                   // it has no process because its command has ended, as intended (Type=oneshot)
};

// A future node: a main process and the processes that belong to it.
struct Seen {
  std::string origin;  // "pid 812", "unit redis-server.service"
  Process main;
  bool title = false;              // the process has overwritten its command line with a title
  std::optional<Process> program;  // the process that does the work, if the main process is a shell or another wrapper
  std::optional<Unit> unit;
  std::string started_by;  // the script that started it, if any: "/opt/x/start.sh (pid 80)"
  std::string runtime;     // "Java", "Python", ...: its functions are not in the program's file
  std::size_t processes = 1;
  std::vector<Listen> tcp;  // sorted by port
  std::vector<Listen> udp;
  std::vector<Remote> remotes;
  std::vector<std::string>
      written;  // absolute paths that it writes: regular files open for writing, listening Unix sockets, pid files
  std::vector<std::string> sockets;  // of `written`: those that are sockets
  std::vector<std::string> needed;   // files mapped as code
  std::vector<Settings> settings;
  std::map<std::string, PathFact> paths;  // words of the command line that are existing paths, by the word as spelled
  std::vector<std::string> addresses;     // addresses of its network namespace, including loopback
  // id of its network namespace; processes in the same namespace share addresses and ports
  std::string network;
  std::vector<std::string> output;       // where stdout and stderr go, as text
  std::optional<std::size_t> functions;  // number of functions in its program's file; absent: not determined
  std::vector<std::string> unread;       // what could not be read, and why
};

// The machine, and what nodes inherit from rose on it.
struct Host {
  std::vector<std::string> names;  // "localhost", "db1", "db1.example.org"
  bool has(const std::string& tool) const;
  Variables environment;           // of rose itself; nodes inherit it
  std::string umask;               // of rose itself; "" if unknown
  std::vector<Limit> limits;       // of rose itself
  std::vector<std::string> tools;  // tools used in examples that are in PATH
};

}  // namespace rose::draft
