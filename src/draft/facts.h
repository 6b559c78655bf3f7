// What was seen of a system that runs, as plain data. look.h, unit.h, container.h and compose.h fill it in; what is
// made of it is pure.
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

// Of a connection that the process made.
struct Remote {
  std::string address;
  std::uint16_t port = 0;
  bool operator==(const Remote&) const = default;
};

// A word of a command line that is a path: what is there.
struct PathFact {
  std::string absolute;  // with the process's working directory in front when it was relative
  bool folder = false;
  bool writable = false;  // by the process's user, and not only because that is root
};

using Variables = std::vector<std::pair<std::string, std::string>>;  // as in the environment, in its order

struct Process {
  pid_t pid = 0;
  std::vector<std::string> argv;
  std::string exe;       // resolved; "" when it could not be read
  bool deleted = false;  // the file was replaced or removed since
  std::string cwd;
  Variables env;
  std::string user;  // "" when it is root, or has no name
};

// An address in a configuration file.
struct SettingAddress {
  int line = 0;
  std::string keyword;  // the line's first word
  std::string spelled;  // "[::1]"
  std::string host;     // "::1"
  std::optional<std::uint16_t> port;
};

// A configuration file that the command line names.
struct Settings {
  std::string path;
  std::vector<std::string> paths;  // absolute ones in it
  std::vector<SettingAddress> addresses;
  std::vector<std::string> secrets;  // keywords of lines that set one: "requirepass"; never the values
};

// As systemd describes it.
struct Unit {
  std::string name;                  // "redis-server.service"
  std::vector<std::string> command;  // ExecStart, split at spaces: systemd tells no quotes
  std::string restart;               // "always", "on-failure", ...; "" or "no": never
  std::int64_t restart_delay_ns = 0;
  std::int64_t restarts = 0;  // StartLimitBurst; 0: unknown
  std::string pid_file;
  std::vector<std::string> folders;  // of its own, absolute: state, cache, logs, runtime
  std::vector<std::string> environment_files;
};

// One node to be: a main process and what belongs to it.
struct Seen {
  std::string origin;  // "pid 812", "unit redis-server.service"
  Process main;
  bool title = false;              // it wrote something else over its command line
  std::optional<Process> program;  // what does the work, when the main process is a shell or another wrapper
  std::optional<Unit> unit;
  std::string started_by;  // the script it came from, when there is one: "/opt/x/start.sh (pid 80)"
  std::string runtime;     // "Java", "Python", ... : methods are no functions of a file
  std::size_t processes = 1;
  std::vector<Listen> tcp;  // sorted by port
  std::vector<Listen> udp;
  std::vector<Remote> remotes;
  std::vector<std::string>
      written;  // what it writes, absolute: regular files open for writing, Unix sockets it listens at, pid files
  std::vector<std::string> sockets;  // those of them that are sockets
  std::vector<std::string> needed;   // files it has mapped as code
  std::vector<Settings> settings;
  std::map<std::string, PathFact> paths;  // words of the command line, as spelled, that exist as paths
  std::vector<std::string> addresses;     // of its network namespace, loopback among them
  std::string network;              // names its network namespace; those of one namespace share addresses and ports
  std::vector<std::string> output;  // where stdout and stderr go, in words
  std::optional<std::size_t> functions;  // that its program's file names; absent: not looked for
  std::vector<std::string> unread;       // what could not be read, and why
};

// The machine.
struct Host {
  std::vector<std::string> names;  // "localhost", "db1", "db1.example.org"
  bool has(const std::string& tool) const;
  Variables environment;           // rose's own, which nodes inherit
  std::vector<std::string> tools;  // of those that examples use, the ones in PATH
};

}  // namespace rose::draft
