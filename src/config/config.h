// Reads rose.toml into plain data. Refuses unknown keys, wrong types and out-of-range values with file, line and
// column, the quoted value and the accepted values. Does not look at the machine; deploy does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "knowledge/meanings.h"
#include "logs/line/form.h"

namespace rose::config {

enum class Network { netns, host };
enum class OracleWhen { end, poll };
enum class Backend { automatic, override_return, seccomp };

// argv, without a shell. It has at least one word, unless the comment of a member says that it may be empty.
using Command = std::vector<std::string>;

struct Ready {
  std::optional<std::uint16_t> tcp;  // ready when the node's address accepts a connection
  std::optional<std::string> log;    // ready when this RE2 expression matches a line in stdout.log or stderr.log
  std::optional<Command> command;    // ready when this command exits with status 0
  std::int64_t timeout_ns = 30 * kSecond;
};

struct Restart {
  std::int64_t delay_ns = kSecond;
  int max = 5;                 // maximum number of restarts per run; 0: none
  bool only_failures = false;  // no restart after exit status 0
};

// A node that `setup` starts. Exactly one member is set.
struct Attach {
  std::optional<std::string> pid_file;  // relative to the run directory
  std::optional<std::string> container;
  std::optional<std::string> unit;
  std::optional<std::string> cgroup;
  bool exec = false;  // its processes start through `rose exec`, so their system calls can be traced and changed
};

// The health check of a Compose service.
struct Health {
  Command test;           // executed in the container; empty: the image's health check is used
  bool disabled = false;  // no health check, not even the image's
  // Absent: the value of the image, or else the engine's default.
  std::optional<std::int64_t> interval_ns, timeout_ns, start_period_ns;
  std::optional<int> retries;
};
struct Dependency {
  enum class When { started, healthy, completed };
  std::string node;
  When when = When::started;
  int line = 0;           // line in the Compose file
  int file = 0;           // index of the Compose file
  bool optional = false;  // true: the dependency may be missing from the services that are started
};
// A command that Compose runs in the container when it starts or stops.
struct Hook {
  Command command;
  std::string user;  // "": the container's
  bool privileged = false;
  std::string working_dir;  // "": the container's
  std::map<std::string, std::string> env;
};
struct HandedFile {
  std::string place;  // path in the container
  std::string content;
  unsigned mode = 0444;
};

// Stands for the machine's address in the `hosts` of a container. In a run it becomes the address of the client.
inline constexpr const char* kHostGateway = "host-gateway";

// A node that runs in a container, which rose creates with an engine.
struct Container {
  std::string image;
  std::map<std::string, std::string>
      programs;  // path in the container -> its copy on this machine, made from the image for symbol lookup
  std::optional<Command> entrypoint;  // replaces the image's entrypoint; the image's command is then not used
  std::vector<std::string> options;   // further arguments for the engine's `create`
  std::vector<std::string> aliases;   // further host names of the container
  // The following members are set only for services of a Compose file.
  bool service = false;
  Command build;           // further arguments for the engine's `build`; empty: the image exists or is pulled
  std::string dockerfile;  // for `build`: the text of a Dockerfile that is given inline
  std::vector<std::pair<std::string, std::string>> build_secrets;  // for `build`: secrets that are given inline, by id
  bool build_privileged = false;                                   // for `build`: its commands run with all privileges
  std::vector<std::string> limits;                                 // "nofile=1024:1024"
  std::string hostname, stop_signal;                               // "": the node's name, or the image's signal
  std::string domain;                                              // the domain part of the host name
  std::vector<std::pair<std::string, std::string>>
      hosts;                       // further host names of this container only, each with an address or kHostGateway
  std::int64_t stop_grace_ns = 0;  // 0: the engine's default
  // when to pull the image: "": if it is missing; "always": once per invocation of rose; "never"
  std::string pull;
  std::vector<HandedFile> files;      // secrets and configs whose content is in the Compose file
  std::vector<std::uint16_t> ports;   // TCP ports of the service, those for clients first
  bool name_server = false;           // it declares port 53, so other nodes may use it as a name server
  std::vector<std::string> asks;      // addresses of the nodes that it uses as name servers (`dns`)
  bool host_network = false;          // requires [deployment] network = "host"
  bool host_name_of_machine = false;  // it shares the UTS namespace of the machine
  std::string pid_of, ipc_of;         // the node whose PID or IPC namespace it joins; "": none
  std::optional<Health> health;       // a service is ready when this check passes, unless its node has a `ready`
  std::vector<Dependency> after;      // dependencies that must be started first
  std::vector<Hook> post_start;       // executed after each start, before the node counts as started
  std::vector<Hook> pre_stop;         // executed before an orderly stop
  std::map<std::string, std::string>
      tmpfs;  // mount options of the named volumes that are held in memory: "size=64m", or ""
  // "SOURCE:TARGET[:OPTIONS]". The source is a folder (absolute after parsing, or with ${dir}) or a named volume of the
  // run.
  std::vector<std::string> volumes;
};

struct Node {
  std::string name;
  std::string ip;  // network = "netns": taken from the subnet if the file gives none; network = "host": as given, or ""
  Command command;  // empty with `attach`; for a container, empty means the image's command
  std::map<std::string, std::string> env;
  std::optional<Ready> ready;
  std::optional<Restart> restart;
  std::string
      // "": the node's folder or, in a container, the image's working directory. Otherwise a path relative to the
      // node's folder or, in a container, an absolute path
      working_dir;
  // The user of the node's processes. "": the user of rose. In a container, in the engine's form ("redis", "999:999"),
  // and "" is the image's user.
  std::string user;
  bool begins_as_root = false;  // its command changes to `user` itself, because it must first mount something as root
  // The paths of the files in which functions are looked up, resolved relative to the folder of rose.toml. By default
  // the program of `command`.
  std::vector<std::string> binaries;
  // For programs that each run makes anew in its folder: the copy's path in `binaries` -> the program's path below the
  // run's folder. Not a key of the file.
  std::map<std::string, std::string> made_by_runs;
  std::vector<std::string> sources;
  std::vector<std::string> functions;  // names or globs
  bool exceptions = false;             // also trace exceptions that leave the JVM methods in `functions`
  bool catches = false;                // also trace which methods catch them, as `explain` does; not a key of the file
  bool python = false;            // watch Python functions of the application, as `explain` does; not a key of the file
  bool javascript = false;        // watch functions of Node.js; not a key of the file
  std::vector<std::string> logs;  // files in the node's folder, in addition to stdout.log and stderr.log
  bool record = false;            // the program is linked with librose-rr and records itself
  // Sources of nondeterminism in the C library that are recorded for any program: "time", "random", ... A value implies
  // `record`.
  std::vector<std::string> record_libc;
  std::optional<Attach> attach;
  std::optional<Container> container;
  // The node whose network namespace and address this node shares. "" for the owner of a shared namespace, and for a
  // node that shares with no other.
  std::string network_of;
  int line = 0;  // line of [[node]], for later messages

  // True if rose is present before the node's first instruction: it starts the node itself, or the node's processes
  // start through `rose exec`. The system calls of such nodes can be traced and changed on every kernel. Other nodes
  // require the override backend, which not every kernel has.
  [[nodiscard]] bool entered_by_rose() const { return !attach || attach->exec; }
};

struct Deployment {
  Network network = Network::netns;
  std::string subnet = "10.77.0.0/24";
  std::optional<Command> setup;
  std::optional<Command> teardown;
  std::optional<Command> form;  // executed once all nodes have been started, before rose waits for them to be ready
  std::optional<std::filesystem::path> compose;  // a Compose file whose services are nodes
  Command engine;  // first words of the container engine's command; empty: podman or docker, whichever works
};

struct Workload {
  Command command;
  std::int64_t timeout_ns = 60 * kSecond;
};

struct Oracle {
  Command command;
  OracleWhen when = OracleWhen::end;
  std::int64_t every_ns = kSecond;
  std::int64_t timeout_ns = 30 * kSecond;
};

struct ProfileOptions {
  double infrequent_below = 2.0;  // calls per second
};

struct TraceOptions {
  std::uint64_t window = 1'000'000;                // in events
  std::uint64_t memory = std::uint64_t{64} << 20;  // in bytes
  std::int64_t network_delay_ns = 5 * kSecond;
  std::int64_t pause_ns = 3 * kSecond;
  std::vector<std::string> noise;  // rules that change the list of expected failures
};

struct DiagnoseOptions {
  double target_rate = 0.8;
  int confirm_runs = 10;
  int syscall_attempts = 50;
  std::vector<int> levels = {1, 2, 3};
  int max_runs = 300;
  std::optional<int> jobs;                  // absent: "auto", as many as possible without changing the runs' timing
  std::string engine = "local";             // or "slurm", "ssh", "kubernetes", or a command that starts one worker
  int workers = 0;                          // 0: not set
  std::vector<std::string> hosts;           // for the engine ssh
  std::string worker = "rose";              // the program on the worker's host
  std::vector<std::string> engine_options;  // passed on to srun, ssh or kubectl
  std::vector<std::string> exclude;         // globs for files in this file's folder that are not copied to workers
  std::int64_t worker_silence_ns = 60'000'000'000;  // a worker without a message for this long is considered lost
  std::uint64_t seed = 1;
  bool simplify = true;  // simplify a schedule that reproduces the bug, which takes further runs
};

struct InjectOptions {
  Backend syscall = Backend::automatic;
};

struct Config {
  std::filesystem::path file;       // as given
  std::filesystem::path directory;  // absolute folder of the file; base of relative paths
  std::string name;
  Deployment deployment;
  std::vector<Node> nodes;
  std::optional<Workload> workload;
  std::optional<Oracle> oracle;
  ProfileOptions profile;
  TraceOptions trace;
  DiagnoseOptions diagnose;
  InjectOptions inject;
  std::vector<knowledge::Entry> meanings;   // meanings of this system's messages, in addition to those that rose knows
  std::vector<logs::CustomForm> log_forms;  // the first one whose glob matches a file applies

  [[nodiscard]] const Node* find(std::string_view node) const;
  [[nodiscard]] std::vector<std::string> node_names() const;
  // The index of the node that owns the network namespace of `node`, usually `node` itself.
  [[nodiscard]] std::size_t network_owner(std::size_t node) const;
  // The nodes in the network namespace of `node`, itself included, in file order.
  [[nodiscard]] std::vector<std::size_t> network_members(std::size_t node) const;
};

[[nodiscard]] Result<Config> read_config(const std::filesystem::path& path);
// `name` is used in messages; `directory` is the base of relative paths.
[[nodiscard]] Result<Config> parse_config(std::string_view text, std::string_view name,
                                          const std::filesystem::path& directory);

// The client's address: the last host address of the subnet (.254 in a /24).
[[nodiscard]] std::string client_address(const Deployment& deployment);
// The prefix length of the subnet: 24 for 10.77.0.0/24.
[[nodiscard]] int prefix_length(const Deployment& deployment);

}  // namespace rose::config
