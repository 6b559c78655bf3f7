// rose.toml as plain data. Reading refuses unknown keys, wrong types and out-of-range values with
// file, line and column, the value quoted and the accepted values named.
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
#include "logs/line/form.h"

namespace rose::config {

enum class Network { netns, host };
enum class OracleWhen { end, poll };
enum class Backend { automatic, override_return, seccomp };

using Command = std::vector<std::string>;  // argv, never a shell line; not empty once parsed

struct Ready {
  std::optional<std::uint16_t> tcp;  // the node's own address accepts a connection
  std::optional<std::string> log;    // RE2, searched in stdout.log and stderr.log
  std::optional<Command> command;    // exit 0 means ready
  bool health = false;               // its container's health check passes
  std::int64_t timeout_ns = 30 * kSecond;
};

struct Restart {
  std::int64_t delay_ns = kSecond;
  int max = 5;                 // restarts a run; 0 means none
  bool only_failures = false;  // not after an exit with status 0
};

// A system started by `setup`; exactly one is set.
struct Attach {
  std::optional<std::string> pid_file;  // relative to the run directory
  std::optional<std::string> container;
  std::optional<std::string> unit;
  std::optional<std::string> cgroup;
  bool exec = false;  // its processes come in through `rose exec`: syscalls can be watched and changed
};

// What a Compose file says of a service beside its command.
struct Health {
  Command test;  // in the container
  std::int64_t interval_ns = 30 * kSecond;
  std::int64_t timeout_ns = 30 * kSecond;
  std::int64_t start_period_ns = 0;
  int retries = 3;
};
struct Dependency {
  enum class When { started, healthy, completed };
  std::string node;
  When when = When::started;
  int line = 0;           // of the Compose file
  int file = 0;           // which of its files
  bool optional = false;  // fine when it is not started
};
struct HandedFile {
  std::string place;  // in the container
  std::string content;
  unsigned mode = 0444;
};

// A node that runs in a container, which rose has an engine make.
struct Container {
  std::string image;
  std::map<std::string, std::string>
      programs;  // place in the container -> file here: what was taken out of the image to be looked into
  std::optional<Command> entrypoint;  // instead of the image's, whose command then does not count either
  std::vector<std::string> options;   // further words of the engine's `create`
  std::vector<std::string> aliases;   // further names by which others know it
  // Of Compose alone:
  bool service = false;
  Command build;                      // further words of the engine's `build`; empty: the image is there, or pulled
  std::vector<std::string> limits;    // "nofile=1024:1024"
  std::string hostname, stop_signal;  // "": the node's name, the image's
  std::int64_t stop_grace_ns = 0;     // 0: the usual
  std::string pull;                   // "": when it is missing; "always": once a command; "never"
  std::vector<HandedFile> files;      // secrets and configs that the file itself says
  bool host_network = false;          // asked for: [deployment] network must say so too
  std::optional<Health> health;
  std::vector<Dependency> after;  // it is started once these are
  std::map<std::string, std::string>
      tmpfs;  // of the named volumes those that are held in memory, with their mount's options: "size=64m", or ""
  std::vector<std::string> volumes;  // "SOURCE:TARGET[:OPTIONS]": a folder (absolute once parsed, or with ${dir}) or a
                                     // named volume of the run
};

struct Node {
  std::string name;
  std::string ip;   // netns: assigned from the subnet when absent in the file; host: as given or ""
  Command command;  // empty when attach is set; of a container: "" when it is the image's own
  std::map<std::string, std::string> env;
  std::optional<Ready> ready;
  std::optional<Restart> restart;
  std::string user;  // "": as rose; of a container as its engine takes it ("redis", "999:999"), "": the image's
  std::vector<std::string> binaries;  // resolved against the file; default command[0]
  std::vector<std::string> sources;
  std::vector<std::string> functions;    // names or globs
  bool exceptions = false;               // those that leave the JVM's methods among these are events, too
  std::vector<std::string> logs;         // files in the node's folder, besides stdout.log and stderr.log
  bool record = false;                   // its program is linked with librose-rr, and records itself
  std::vector<std::string> record_libc;  // these sources of the C library are recorded, of any program: "time",
                                         // "random", ...; then `record` is set
  std::optional<Attach> attach;
  std::optional<Container> container;
  int line = 0;  // where [[node]] stands, for later messages

  // Is rose there before the node's first instruction, because rose starts it or its processes come in through `rose
  // exec`? Only of such nodes can every kernel see and change the calls; the override backend, where a kernel has it,
  // can of any node.
  [[nodiscard]] bool entered_by_rose() const { return !attach || attach->exec; }
};

struct Deployment {
  Network network = Network::netns;
  std::string subnet = "10.77.0.0/24";
  std::optional<Command> setup;
  std::optional<Command> teardown;
  std::optional<std::filesystem::path> compose;  // a Compose file, whose services are nodes
  Command engine;  // of containers: its command's first words; empty: podman or docker, whichever works
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
  double infrequent_below = 2.0;  // calls a second
};

struct TraceOptions {
  std::uint64_t window = 1'000'000;                // events
  std::uint64_t memory = std::uint64_t{64} << 20;  // bytes
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
  int jobs = 1;
  std::string engine = "local";             // or "slurm", "ssh", "kubernetes", or a command that starts one worker
  int workers = 0;                          // 0: not said
  std::vector<std::string> hosts;           // of the engine ssh
  std::string worker = "rose";              // the program there
  std::vector<std::string> engine_options;  // passed on to srun, ssh, kubectl
  std::vector<std::string> exclude;         // globs of what of this file's folder does not travel to workers
  std::int64_t worker_silence_ns = 60'000'000'000;  // one that says nothing for as long is lost
  std::uint64_t seed = 1;
  bool simplify = true;  // a schedule that was found is made simpler, at the cost of further runs
};

struct InjectOptions {
  Backend syscall = Backend::automatic;
};

struct Config {
  std::filesystem::path file;       // as given
  std::filesystem::path directory;  // absolute folder of the file: relative paths start here
  std::string name;
  Deployment deployment;
  std::vector<Node> nodes;
  std::optional<Workload> workload;
  std::optional<Oracle> oracle;
  ProfileOptions profile;
  TraceOptions trace;
  DiagnoseOptions diagnose;
  InjectOptions inject;
  std::vector<logs::CustomForm> log_forms;  // the first whose glob fits a file counts

  [[nodiscard]] const Node* find(std::string_view node) const;
  [[nodiscard]] std::vector<std::string> node_names() const;
};

[[nodiscard]] Result<Config> read_config(const std::filesystem::path& path);
// `name` stands in messages; `directory` is where relative paths start.
[[nodiscard]] Result<Config> parse_config(std::string_view text, std::string_view name,
                                          const std::filesystem::path& directory);

// The client's address: the last host address of the subnet (.254 of a /24).
[[nodiscard]] std::string client_address(const Deployment& deployment);
// Prefix length of the subnet.
[[nodiscard]] int prefix_length(const Deployment& deployment);

}  // namespace rose::config
