// The tracer: BPF programs that record failures and rare events, a window that keeps the latest of them, and snapshots
// of that window. Does not know schedules or deployments. Targets are nodes: cgroups or process trees.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernel/noise.h"
#include "kernel/privilege.h"
#include "profile/profile.h"
#include "symbols/values.h"
#include "trace/dump.h"
#include "trace/event.h"

namespace rose::observe {

// A function that a profile calls infrequent, and the file in which the profile found it.
struct ProfiledFunction {
  std::string function;
  std::filesystem::path binary;  // "": only Target::binaries are searched
};

// A node to trace: all processes in the cgroups, and the process trees below the pids.
struct Target {
  std::string node;
  std::vector<pid_t> pids;
  std::vector<std::filesystem::path> cgroups;
  // For the dump's header; may be empty. They also identify the node's packets if whole interfaces are traced, and
  // select which messages are recorded.
  std::vector<std::string> addresses;
  std::vector<std::string> labels;  // for the dump's header: "unit:postgresql.service"
  // No other node shares its network namespace. Connections of such a node to itself never count as silent.
  bool own_network = false;
  // Functions to watch in these files, selected by name or glob, or by source file.
  std::vector<std::filesystem::path> binaries;
  std::vector<std::string> functions;
  std::vector<std::string> sources;
  // Further functions to watch, which a profile calls infrequent. They are looked up in the file in which the profile
  // found them and in the programs that the node executes, because production may use another build in another folder.
  // One warning lists all functions that are missing.
  std::vector<ProfiledFunction> profiled;
};

// A code location, and the values to read whenever a thread of a target reaches it.
struct ValuePlace {
  std::filesystem::path binary;
  std::uint64_t offset = 0;  // in the file
  std::vector<symbols::Fetch> fetches;
  // true: the location is not in a file. The agent in a JVM reads the values, and the single fetch identifies the
  // location.
  bool by_agent = false;
};

class KeptPrograms;  // programs that the kernel has verified already; see loaded_programs.h

struct TracerOptions {
  std::uint64_t window = 1'000'000;                // in events
  std::uint64_t memory = std::uint64_t{64} << 20;  // in bytes, including kernel buffers and paths
  std::int64_t network_delay_ns = 5'000'000'000;
  std::int64_t pause_ns = 3'000'000'000;
  std::vector<std::string> interfaces;  // trace these instead of the targets' sockets
  bool count_syscalls = false;          // profile: count every call, at the cost of a map update per call
  double infrequent_below = 0;  // profile: if > 0, functions are counted instead of recorded, and hot ones are detached
  double hot_function_rate =
      0;  // recording: entries per second above which a function is detached; 0: only the total is limited
  double function_share = 0.01;  // recording: share of one CPU that all functions together may cost
  bool inlined = false;          // copies of functions that were inlined are watched, too
  // Maps files that are not executed themselves to equal files that the targets execute.
  std::map<std::filesystem::path, std::filesystem::path> copies;
  // files of the agents (of Java, Python and JavaScript) that report entries of functions
  std::vector<std::filesystem::path> method_agents;
  std::vector<ValuePlace> values;                   // recorded in addition to the window, see take_values()
  double values_share = 0.05;                       // share of one CPU that all their locations together may cost
  std::vector<std::filesystem::path> value_agents;  // files of the JVM agent that reports values
  // record opens that only read a file, if the file was changed after the tracer had started
  bool reads = false;
  bool messages = false;            // record messages between nodes in addition to the window, see take_messages()
  std::string host_node;            // Meta.node
  std::vector<std::string> labels;  // for all targets: "cluster:east"
  kernel::NoiseTable noise = kernel::builtin_noise();  // failures that are counted instead of recorded
  // programs loaded by earlier tracers, to be used again; nullptr: load programs
  std::shared_ptr<KeptPrograms> programs = nullptr;
};
// Creates a value for TracerOptions::programs that all tracers of one command share.
[[nodiscard]] std::shared_ptr<KeptPrograms> keep_programs();

struct SeenValue {
  std::uint32_t place = 0, fetch = 0;  // indices in TracerOptions::values and in the location's fetches
  std::uint32_t node = 0;              // index of the target
  std::int32_t pid = 0, tid = 0;
  std::int64_t ts_ns = 0;   // monotonic; equal for all values read at one location at one time
  bool unreadable = false;  // a pointer that had to be followed was invalid
  bool null = false;        // for a text: the pointer was null
  std::uint8_t form = 0;    // rose_value_form, as reported by a JVM's agent
  std::uint64_t bits = 0;
  std::string text;
};
struct SeenValues {
  std::vector<SeenValue> values;  // in the order of their arrival
  struct Place {
    std::uint64_t visits = 0;  // how often threads of the targets reached it while it was watched
    bool detached = false;     // it was detached at times because it was too busy
  };
  std::vector<Place> places;
  std::uint64_t left_out = 0;  // values that were dropped; the first and last ones of each location and node are kept
};
// Limit of values for each fetch and node. Half of them are the first values, half the last ones.
inline constexpr std::size_t kMostValues = 4000;

// Bytes that a thread of a node sent to or received from an address of another node.
struct SeenMessage {
  std::uint32_t node = 0;  // index of the target
  std::int32_t pid = 0, tid = 0;
  std::int64_t ts_ns = 0;                     // monotonic: when the call returned
  bool taken = false;                         // true: received; false: sent
  bool tcp = true;                            // false: UDP
  std::string own, peer;                      // addresses; for a datagram socket its own may be "0.0.0.0"
  std::uint16_t own_port = 0, peer_port = 0;  // peer 0: a datagram received without asking for its sender
  std::uint32_t end = 0;                      // TCP: sequence number after the last byte, which is equal on both sides
  std::uint32_t bytes = 0;
  std::string data;  // the first bytes
};
struct SeenMessages {
  std::vector<SeenMessage> messages;  // sorted by time
  std::vector<bool> left_out;         // by node: whether messages were dropped
};
inline constexpr std::size_t kMostMessages = 60'000;

// The size of a dump that was written.
struct DumpTotals {
  std::uint64_t events = 0;  // records
  std::uint64_t lost = 0, suppressed = 0;
  std::array<std::uint64_t, 6> by_type{};  // by trace::EventType; an event with a count adds that count
  std::uint64_t left_out = 0;              // part of `lost`: the oldest events, for which there was no room (DumpRoom)
};

// Called once before the events of a dump are written, with their size in bytes. Returns how many bytes may be written.
// If that is less, only the newest events are written.
using DumpRoom = std::function<std::uint64_t(std::uint64_t bytes)>;

struct TracerStats {
  std::uint64_t recorded = 0, lost = 0, suppressed = 0, stored = 0;
  std::uint64_t memory = 0;  // bytes in use, including kernel buffers
};

// An unplanned end: a process of a target was killed by a signal, or a main process exited with a status other than 0.
struct ProcessEnd {
  std::string node;
  pid_t pid = 0;
  int signal = 0;  // 0: it exited
  int exit_code = -1;
};

class Tracer {
 public:
  // Loads and attaches the BPF programs. ErrorKind::environment names the missing capability and the remedy. If a
  // function that a target names does not exist, returns ErrorKind::input with suggestions.
  [[nodiscard]] static Result<std::unique_ptr<Tracer>> start(const TracerOptions& options,
                                                             const std::vector<Target>& targets);
  virtual ~Tracer() = default;  // detaches everything

  // Sets the main process of a node (it may have just been forked). Its PS events are marked accordingly.
  virtual void set_main(const std::string& node, pid_t pid) = 0;
  // Marks later PS events of the node as planned, until called with false.
  virtual void set_planned(const std::string& node, bool planned) = 0;

  // The current window, sorted by time, including silences and pauses that have not ended. It contains everything that
  // happened before the call. Tracing continues.
  [[nodiscard]] virtual Result<trace::Trace> snapshot() = 0;
  // Writes the window as a dump, block by block, without holding all of it in memory. `amend` may add to its header.
  [[nodiscard]] virtual Result<DumpTotals> write_dump(const trace::DumpWriter::Sink& sink,
                                                      const std::function<void(trace::Meta&)>& amend = {},
                                                      const DumpRoom& room = {}) = 0;
  // Writes the dump to a file, atomically and with mode 0600.
  [[nodiscard]] Result<DumpTotals> write_dump(const std::filesystem::path& path,
                                              const std::function<void(trace::Meta&)>& amend = {},
                                              const DumpRoom& room = {});
  // Excludes a process of rose itself and its children, even inside a target's cgroup.
  virtual void leave_out(pid_t pid) = 0;

  // The values recorded so far, including all that were recorded before the call.
  [[nodiscard]] virtual SeenValues take_values() = 0;
  // The messages recorded so far (TracerOptions::messages), including all that were recorded before the call.
  [[nodiscard]] virtual SeenMessages take_messages() = 0;

  // Process ends since the last call. They are available within a fraction of a second. If there are very many, only
  // the first few hundred are returned.
  [[nodiscard]] virtual std::vector<ProcessEnd> take_ends() = 0;
  // A descriptor that is readable while take_ends() has something to return.
  [[nodiscard]] virtual int ends_fd() const = 0;
  // Only useful with count_syscalls or infrequent_below.
  [[nodiscard]] virtual profile::RunCounts counts() = 0;
  [[nodiscard]] virtual TracerStats stats() = 0;
  // The capabilities that are needed to read maps, or that may be needed again after starting.
  [[nodiscard]] virtual kernel::Capabilities still_needed() = 0;
};

}  // namespace rose::observe
