// A schedule: faults with their contexts, as plain data, and as a TOML file that people can write. This folder checks,
// describes and formats schedules; inject executes them.
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
enum class Scope { all, main, others };  // others: all processes of a node except the main one
enum class Effect { none, full, bytes };
enum class ThenDo { nothing, crash };
// unsynced: all data that was not synced is lost; torn: of this data, the first sectors of each file remain; scattered:
// some sectors of each file remain
enum class Loss { nothing, unsynced, torn, scattered };

// network: what happens to packets on the link. Probabilities are from 0 to 1.
struct BadLink {
  std::int64_t delay_ns = 0;
  std::int64_t jitter_ns = 0;  // the delay of each packet varies by up to this much in both directions
  double loss = 0;
  double duplicate = 0;
  double reorder = 0;        // probability that a packet overtakes the delayed ones
  double corrupt = 0;        // probability that one bit is inverted
  std::uint64_t rate = 0;    // bits per second; 0: unlimited
  std::string payload;       // bytes that a packet must contain; "": any packet
  bool connections = false;  // `count` counts connections instead of packets

  friend bool operator==(const BadLink&, const BadLink&) = default;
};

// clock: how the clocks of a node differ from the true time.
struct ClockChange {
  std::int64_t shift_ns = 0;
  double drift = 1;  // speed factor
  bool freeze = false;
  bool realtime = true;    // affects CLOCK_REALTIME and its variants
  bool monotonic = false;  // affects CLOCK_MONOTONIC and its variants

  friend bool operator==(const ClockChange&, const ClockChange&) = default;
};

// descriptors, memory, cpu, disk-full, disk-slow: the limits for a node.
struct Resource {
  std::int64_t limit = 0;  // descriptors: number of open ones per process; memory: bytes of all processes together
  double share = 0;        // cpu: fraction of one processor
  // disk-full, disk-slow, crash with power loss: a folder. The path is relative to the node's folder, or is an absolute
  // one in the node's container. "": the node's folder and the volumes of its container.
  std::string folder;
  std::uint64_t rate = 0;     // disk-slow: most bytes per second; 0: unlimited
  double iops = 0;            // disk-slow: most requests per second
  std::int64_t delay_ns = 0;  // disk-slow: delay that is added to each request

  friend bool operator==(const Resource&, const Resource&) = default;
};

// Selects calls. A call must match all members that are given.
struct CallMatch {
  std::string syscall;               // a name or a glob ("open*")
  std::optional<std::string> path;   // glob for the full path; if there is no `path2`, either path of a call may match
  std::optional<std::string> path2;  // glob for the second path of a call; `path` is then for its first path
  std::optional<std::string> peer;   // glob for "ip:port"
  std::optional<std::string> local;  // ":2888" or a glob for "ip:port"
  std::map<int, std::string> args;   // argument index -> number or flag names ("O_CREAT|O_TRUNC")
  std::optional<std::string> process;  // glob for the process's name (comm)

  friend bool operator==(const CallMatch&, const CallMatch&) = default;
};

// The state of a node of which the kernel has killed a process for lack of memory: its main process or any other one.
inline constexpr std::string_view kOutOfMemory = "out-of-memory";

enum class ConditionKind { elapsed, function, syscall, log, process_state, role };

struct Condition {
  ConditionKind kind = ConditionKind::elapsed;
  std::int64_t elapsed_ns = 0;  // elapsed
  std::string function;         // function, or a role given by its function: demangled name, parameters optional
  // function: bytes from the function's entry (for a JVM's method: offset in the bytecode)
  std::optional<std::uint64_t> offset;
  // function: a JVM's method; the location is the first call on this line of its source
  std::optional<std::uint64_t> line;
  CallMatch call;                     // syscall: the condition is met when the call returns
  std::optional<std::string> result;  // syscall: "ok", "error", an errno name or a number
  std::string log;                    // log: regular expression for the node's output
  std::string state;                  // process_state: crashed, exited, out-of-memory, paused, started
  std::string role;  // role: name of the role; the condition is met when a node has the role or takes it
  std::string node;  // "": the fault's own node (for a role: any node); "@role": as in Fault
  int count = 1;     // which occurrence after the previous condition was met
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
  std::vector<std::string> after;  // faults (ids), events and steps that must come first
  std::string group;               // name of its group; "" if it has none
  std::vector<Condition> when;     // the conditions, in the order in which they must be met
  bool optional = false;           // a run in which the fault was not effective is still conclusive

  // syscall, block:
  CallMatch call;  // block: empty if threads wait at a function
  int error = 0;   // errno; 0: `result` is used; with `result`: see is_short_then_fails()
  std::optional<std::int64_t> result;
  Effect effect = Effect::none;
  std::int64_t effect_bytes = 0;
  std::int64_t delay_ns = 0;
  int count = 1;  // which matching call; network: which packet or connection; block: which thread
  // The number of consecutive calls (packets, ...), beginning with the `count`th; -1: forever. In a file, the default
  // for network faults without `count` is forever.
  std::int64_t times = 1;
  ThenDo then_do = ThenDo::nothing;

  // crash, pause:
  Scope scope = Scope::all;
  int signal = 9;  // crash: the signal
  // the call at which the fault comes: a crash comes instead of this call, a pause before it
  std::optional<CallMatch> before;
  int before_count = 1;
  Loss lose = Loss::nothing;  // crash: unsynced data in `resource.folder` that is lost, too
  double keep = 0.5;          // torn, scattered: fraction of the unsynced sectors of each file that survives

  // Lasting faults; see lasts():
  std::int64_t duration_ns = 0;  // 0: until `until` is met, or until the end of the run
  // conditions that end the fault; not for pause; block also ends after `duration` or kMostBlockNs
  std::vector<Condition> until;

  // network:
  BadLink link;
  std::int64_t seed = 1;  // seed of random decisions, which are the same for the same packets

  // clock:
  ClockChange clock;

  // descriptors, memory, cpu, disk-full, disk-slow:
  Resource resource;

  // partition, network:
  std::vector<std::string> side;   // further nodes on the same side as `node`
  std::vector<std::string> peers;  // nodes, addresses or ranges ("10.0.0.0/8"); empty: all other nodes
  Direction direction = Direction::both;
  std::vector<std::uint16_t> ports;
  std::string protocol;  // "", "tcp", "udp"
  double loss = 1.0;     // partition: fraction of packets that is lost; 0 < loss <= 1
  bool reject = false;   // answer as a closed port does, instead of dropping packets silently

  // for exception and block, whose `count` (and the `times` of an exception) counts threads that reach the location:
  std::string throws;                    // "java.io.IOException"
  std::string message;                   // message of the exception; "": a text that names rose
  std::string function;                  // a JVM's method (block: any function); the location is its entry
  std::optional<std::uint64_t> offset;   // or, instead of the entry, the instruction at this offset, as in Condition
  std::optional<std::uint64_t> at_line;  // or the first call on this line of the function's source file

  int line = 0;  // line of [[fault]] in the file; 0: the fault is not from a file

  friend bool operator==(const Fault&, const Fault&) = default;  // including `line`
};

// block: the longest wait if there is no `duration`, even if `until` is not met. The limit is needed so that a run
// always ends.
inline constexpr std::int64_t kMostBlockNs = 60'000'000'000;

// A role, which moves between nodes during a run. The node that last entered the function has the role.
struct Role {
  std::string name;
  std::string function;

  friend bool operator==(const Role&, const Role&) = default;
};

// A named event. It happens when its conditions have been met.
struct Event {
  std::string name;
  std::string node;
  std::vector<Condition> when;
  std::int64_t timeout_ns = kMostBlockNs;  // the longest time that the event is held if it comes before its turn
  int line = 0;

  friend bool operator==(const Event&, const Event&) = default;
};

struct Schedule {
  std::string name;
  std::vector<Role> roles;
  std::vector<Event> events;
  std::string order;  // the order of events, faults and steps of the workload, see order.h; "" if there is none
  std::vector<Fault> faults;

  [[nodiscard]] const Fault* find(std::string_view id) const;
  [[nodiscard]] const Event* find_event(std::string_view event) const;
  [[nodiscard]] const Role* find_role(std::string_view role) const;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// The role's name: "leader" for "@leader". Nothing if the text is the name of a node.
[[nodiscard]] std::optional<std::string_view> role_of(std::string_view node);

[[nodiscard]] Result<Schedule> read_schedule(const std::filesystem::path& path);
[[nodiscard]] Result<Schedule> parse_schedule(std::string_view text, std::string_view name);
// Formats the schedule as a file from which parse_schedule reads an equal schedule. `comment` may have several lines.
[[nodiscard]] std::string to_toml(const Schedule& schedule, std::string_view comment = {});

// Checks that every node and peer exists in the deployment. Errors name the fault, and suggest a similar name.
[[nodiscard]] Result<void> check_nodes(const Schedule& schedule, const std::vector<std::string>& nodes,
                                       std::string_view file);

// Describes the fault in one sentence: "cut n1 off from n2 and n3 for 12s, 5s after the workload began". `schedule` is
// needed to know which names in `after` are faults.
[[nodiscard]] std::string in_words(const Fault& fault, const Schedule* schedule = nullptr);
// Describes what must happen, in order and with nodes, in one sentence for each fault. Alternatives that differ only in
// their node are combined.
[[nodiscard]] std::vector<std::string> steps_in_words(const Schedule& schedule);
// The sentences of steps_in_words() as lines. If there are several, they are numbered.
[[nodiscard]] std::string in_words(const Schedule& schedule);

// Equal for schedules with the same effect. It is the key of a schedule in the record of a diagnosis.
[[nodiscard]] std::string fingerprint(const Schedule& schedule);

[[nodiscard]] std::string_view kind_name(FaultKind kind);  // for example "syscall"
// True if this kind limits a node's descriptors, memory, processor time or disk.
[[nodiscard]] bool limits(FaultKind kind);
// True for a syscall fault with `error` and `result`: the first call does only a part of its work and returns `result`,
// and the `times` calls after it fail with `error`. So a write ends that fills a disk, and the write of its rest.
[[nodiscard]] inline bool is_short_then_fails(const Fault& fault) { return fault.error != 0 && fault.result; }
// The number of calls that a syscall fault changes; -1: all
[[nodiscard]] inline std::int64_t changed_calls(const Fault& fault) {
  return fault.times < 0 ? -1 : fault.times + (is_short_then_fails(fault) ? 1 : 0);
}
// True if faults of this kind begin and end: they have a `duration`, and an `ended_ns` in their outcome.
[[nodiscard]] bool lasts(FaultKind kind);

}  // namespace rose::schedule
