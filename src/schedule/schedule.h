// A schedule: faults with their contexts. Plain data with a TOML file form that people write by hand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rose::schedule {

enum class FaultKind {
  syscall,
  crash,
  pause,
  partition,
  network,
  clock,
  exception,
  descriptors,
  memory,
  cpu,
  disk_full,
  block,
  disk_slow
};
enum class Direction { both, in, out };
enum class Scope { all, main, others };  // others: of a node, all processes but the main one
enum class Effect { none, full, bytes };
enum class ThenDo { nothing, crash };
enum class Loss {
  nothing,
  unsynced,
  torn,
  scattered
};  // of what was not synced: all, or all but some sectors of each file

// network: what a bad link does to the packets it carries. Shares are 0 for never, 1 for always.
struct BadLink {
  std::int64_t delay_ns = 0;
  std::int64_t jitter_ns = 0;  // each packet's delay is as much longer or shorter at most
  double loss = 0;
  double duplicate = 0;
  double reorder = 0;        // go ahead of those that are delayed
  double corrupt = 0;        // one bit is turned over
  std::uint64_t rate = 0;    // bits a second; 0: as fast as it goes
  std::string payload;       // bytes that a packet must hold; "": any packet
  bool connections = false;  // `count` is of connections, not of packets

  friend bool operator==(const BadLink&, const BadLink&) = default;
};

// clock: what a node's clocks show instead of the time.
struct ClockChange {
  std::int64_t shift_ns = 0;
  double drift = 1;  // times as fast
  bool freeze = false;
  bool realtime = true;    // which clocks: CLOCK_REALTIME and its kin,
  bool monotonic = false;  // CLOCK_MONOTONIC and its kin

  friend bool operator==(const ClockChange&, const ClockChange&) = default;
};

// descriptors, memory, cpu, disk-full, disk-slow: how little of a resource a node is left.
struct Resource {
  std::int64_t limit = 0;     // descriptors: open ones of each process; memory: bytes of all together
  double share = 0;           // cpu: of one processor
  std::string folder;         // disk-full, disk-slow, a crash that loses: in the node's folder; "": that one itself
  std::uint64_t rate = 0;     // disk-slow: bytes a second; 0: as many as it can
  double iops = 0;            // ... requests a second
  std::int64_t delay_ns = 0;  // ... more for each

  friend bool operator==(const Resource&, const Resource&) = default;
};

// Which calls are meant: all given parts must match.
struct CallMatch {
  std::string syscall;                 // a name, or a glob over names ("open*")
  std::optional<std::string> path;     // glob on the full path; either path of a call with two
  std::optional<std::string> peer;     // "ip:port" glob
  std::optional<std::string> local;    // ":2888" or "ip:port" glob
  std::map<int, std::string> args;     // argument index -> number or flag names ("O_CREAT|O_TRUNC")
  std::optional<std::string> process;  // glob on the process's name (comm)

  friend bool operator==(const CallMatch&, const CallMatch&) = default;
};

enum class ConditionKind { elapsed, function, syscall, log, process_state, role };

struct Condition {
  ConditionKind kind = ConditionKind::elapsed;
  std::int64_t elapsed_ns = 0;          // elapsed
  std::string function;                 // function (also role, inline): demangled name, parameters optional
  std::optional<std::uint64_t> offset;  // function: bytes from its entry (of a JVM's method: in its bytecode)
  std::optional<std::uint64_t> line;    // function: a JVM's method, at the first call on this line of its source
  CallMatch call;                       // syscall: met when the call returns
  std::optional<std::string> result;    // syscall: "ok", "error", an errno name or a number
  std::string log;                      // log: regex on the node's output
  std::string state;                    // process_state: crashed, exited, paused, started
  std::string role;                     // role: its name; met when a node has it, or takes it
  std::string node;                     // "": the fault's own node (role: any); "@role" as in Fault
  int count = 1;                        // the nth from when the previous condition was met
  bool same_thread = false;

  static Condition elapsed(std::int64_t ns) {
    Condition condition;
    condition.elapsed_ns = ns;
    return condition;
  }

  friend bool operator==(const Condition&, const Condition&) = default;
};

struct Fault {
  std::string id;
  FaultKind kind = FaultKind::syscall;
  std::string node;                // "@role": the node that has the role when the conditions are met
  std::vector<std::string> after;  // ids
  std::string group;               // "": none
  std::vector<Condition> when;     // in order
  bool optional = false;           // a run in which it did not fire, or had no effect, still counts

  // syscall, block
  CallMatch call;  // block: empty when it is at a function
  int error = 0;   // errno; 0: `result` is used
  std::optional<std::int64_t> result;
  Effect effect = Effect::none;
  std::int64_t effect_bytes = 0;
  std::int64_t delay_ns = 0;
  int count = 1;           // the nth matching call; network: the nth packet or connection; block: the nth thread
  std::int64_t times = 1;  // consecutive ones from there; -1: forever (network: when there is no `count`)
  ThenDo then_do = ThenDo::nothing;

  // crash, pause
  Scope scope = Scope::all;
  int signal = 9;                   // crash
  std::optional<CallMatch> before;  // crash, pause: acts instead of (crash) or ahead of (pause) that call
  int before_count = 1;
  Loss lose = Loss::nothing;  // crash: power goes too, for `resource.folder`
  double keep = 0.5;          // torn, scattered: the share of each file's unsynced sectors that is there

  // what lasts: see lasts()
  std::int64_t duration_ns = 0;  // 0: `until`, or to the end of the run
  std::vector<Condition> until;  // not pause; block: `duration`, or kMostBlockNs, ends it, too

  // network
  BadLink link;
  std::int64_t seed = 1;  // of what happens by chance: the same packets meet the same fate

  // clock
  ClockChange clock;

  // descriptors, memory, cpu, disk-full, disk-slow
  Resource resource;

  // partition, network
  std::vector<std::string> side;   // further nodes that are cut off with `node`
  std::vector<std::string> peers;  // nodes, addresses or ranges ("10.0.0.0/8"); empty: all other nodes
  Direction direction = Direction::both;
  std::vector<std::uint16_t> ports;
  std::string protocol;  // "", "tcp", "udp"
  double loss = 1.0;     // partition: 0 < loss <= 1
  bool reject = false;   // answer the sender as a closed port does, instead of silence

  // exception, block; `count` and (exception) `times` as for syscalls, of threads that come by
  std::string throws;                    // "java.io.IOException"
  std::string message;                   // its text; "": says that rose injected it
  std::string function;                  // a JVM's method (block: any function), at its entry ...
  std::optional<std::uint64_t> offset;   // ... or there, as in Condition
  std::optional<std::uint64_t> at_line;  // ... or on this line of its source, at the first call

  int line = 0;  // where [[fault]] stands; 0: not from a file

  friend bool operator==(const Fault&, const Fault&) = default;  // `line` included
};

// block: without a `duration` of its own a thread waits for its `until` no longer than this.
inline constexpr std::int64_t kMostBlockNs = 60'000'000'000;

// Which node it is changes during a run: whichever last entered the function.
struct Role {
  std::string name;
  std::string function;

  friend bool operator==(const Role&, const Role&) = default;
};

// Something that is seen and has a name: when its conditions have been met.
struct Event {
  std::string name;
  std::string node;
  std::vector<Condition> when;
  std::int64_t timeout_ns = kMostBlockNs;  // it is held no longer, when it comes before its turn
  int line = 0;

  friend bool operator==(const Event&, const Event&) = default;
};

struct Schedule {
  std::string name;
  std::vector<Role> roles;
  std::vector<Event> events;
  std::string order;  // over events, faults and steps of the workload: order.h; "": none
  std::vector<Fault> faults;

  [[nodiscard]] const Fault* find(std::string_view id) const;
  [[nodiscard]] const Event* find_event(std::string_view event) const;
  [[nodiscard]] const Role* find_role(std::string_view role) const;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// "leader" of "@leader"; nothing for a node's name.
[[nodiscard]] std::optional<std::string_view> role_of(std::string_view node);

[[nodiscard]] Result<Schedule> read_schedule(const std::filesystem::path& path);
[[nodiscard]] Result<Schedule> parse_schedule(std::string_view text, std::string_view name);
// The file form; parse_schedule reads back an equal schedule. `comment` (may have several lines)
// becomes a comment at the top.
[[nodiscard]] std::string to_toml(const Schedule& schedule, std::string_view comment = {});

// Against a deployment: every node and peer named must exist. Errors name the fault, suggest.
[[nodiscard]] Result<void> check_nodes(const Schedule& schedule, const std::vector<std::string>& nodes,
                                       std::string_view file);

// One sentence in plain words: "cut n1 off from n2 and n3 for 12s, 5s after the workload began".
// With the schedule it is told from what is awaited which are its faults.
[[nodiscard]] std::string in_words(const Fault& fault, const Schedule* schedule = nullptr);
// What must happen, in which order, on which node: a sentence a fault; alternatives that differ in their node only are
// one.
[[nodiscard]] std::vector<std::string> steps_in_words(const Schedule& schedule);
// The same as lines, numbered if there are several.
[[nodiscard]] std::string in_words(const Schedule& schedule);

// Equal for schedules that do the same: the key of a diagnosis record.
[[nodiscard]] std::string fingerprint(const Schedule& schedule);

[[nodiscard]] std::string_view kind_name(FaultKind kind);  // "syscall"
// Of a node's descriptors, memory, processor time or disk.
[[nodiscard]] bool limits(FaultKind kind);
// Faults of this kind begin and end: they have a `duration`, and an `ended_ns` in what became of them.
[[nodiscard]] bool lasts(FaultKind kind);

}  // namespace rose::schedule
