// The tracer: kernel programs that see what failed, a window that keeps the last of it, and
// snapshots of that window. Targets are nodes: cgroups or process trees.
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

// A function that a profile calls infrequent, and the file that it was in there.
struct ProfiledFunction {
  std::string function;
  std::filesystem::path binary;  // "": only Target::binaries are searched
};

// One node to watch: everything in the cgroups, and the process trees below the pids.
struct Target {
  std::string node;
  std::vector<pid_t> pids;
  std::vector<std::filesystem::path> cgroups;  // v2 folders; descendants included
  std::vector<std::string> addresses;          // for the dump's meta; may be empty
  std::vector<std::string> labels;             // likewise: "unit:postgresql.service"
  bool own_network =
      false;  // no other node shares its network namespace: who sends to itself is never told to be silent
  // Functions to watch in these files, by name or glob, or by source file.
  std::vector<std::filesystem::path> binaries;
  std::vector<std::string> functions;
  std::vector<std::string> sources;
  // These are watched where they are found, here or in what the node runs: production may have another build, in
  // another folder. What is not found is told in one warning.
  std::vector<ProfiledFunction> profiled;
};

// A place of a file's code, and what is read there whenever a thread of a target comes by.
struct ValuePlace {
  std::filesystem::path binary;
  std::uint64_t offset = 0;  // in the file
  std::vector<symbols::Fetch> fetches;
  bool told = false;  // no place of a file: the agent in a JVM reads it (room jvm), its one fetch stands for it
};

struct TracerOptions {
  std::uint64_t window = 1'000'000;                // events
  std::uint64_t memory = std::uint64_t{64} << 20;  // bytes, kernel buffers and paths included
  std::int64_t network_delay_ns = 5'000'000'000;
  std::int64_t pause_ns = 3'000'000'000;
  std::vector<std::string> interfaces;  // watch these instead of the targets' sockets
  bool count_syscalls = false;          // profile: count every call (costs a map update a call)
  double infrequent_below = 0;  // profile: > 0 counts functions instead of recording them and lets go of hot ones
  double hot_function_rate =
      0;  // recording: a function entered so often a second is let go of; 0: only all together count
  double function_share = 0.01;  // recording: of one CPU, that all functions together may cost
  std::vector<std::filesystem::path>
      method_agents;               // files of the agent for JVMs (room jvm): the entries that they tell are recorded
  std::vector<ValuePlace> values;  // recorded beside the window: see take_values()
  double values_share = 0.05;      // of one CPU, that all of their places together may cost
  std::vector<std::filesystem::path> value_agents;  // files of the agent that tells values of JVMs
  bool messages = false;            // what nodes say to each other is recorded beside the window: see take_messages()
  std::string host_node;            // Meta.node
  std::vector<std::string> labels;  // of all targets: "cluster:east"
  kernel::NoiseTable noise = kernel::builtin_noise();  // failures that are counted, not recorded
};

struct SeenValue {
  std::uint32_t place = 0, fetch = 0;  // of TracerOptions::values, and of the place
  std::uint32_t node = 0;              // of the targets
  std::int32_t pid = 0, tid = 0;
  std::int64_t ts_ns = 0;   // monotonic; all that is read at one place at one time has the same
  bool unreadable = false;  // a pointer on the way led to what is not in memory
  bool null = false;        // of a text: there is none
  std::uint8_t form = 0;    // rose_value_form: what a JVM's agent says it is
  std::uint64_t bits = 0;
  std::string text;
};
struct SeenValues {
  std::vector<SeenValue> values;  // as they came
  struct Place {
    std::uint64_t comings = 0;  // of threads of targets, while it was watched
    bool let_go = false;        // at times it was too busy to be watched
  };
  std::vector<Place> places;
  std::uint64_t left_out = 0;  // more than are kept: of each place and node the first and the last are
};
inline constexpr std::size_t kMostValues = 4000;  // of one fetch on one node: the first half, and the last

// Bytes that a thread of a node handed to a connection with an address of a node, or took from one.
struct SeenMessage {
  std::uint32_t node = 0;  // of the targets
  std::int32_t pid = 0, tid = 0;
  std::int64_t ts_ns = 0;                     // monotonic: when the call returned
  bool taken = false;                         // from the connection
  bool tcp = true;                            // else UDP
  std::string own, peer;                      // addresses; of a datagram's socket the own may be "0.0.0.0"
  std::uint16_t own_port = 0, peer_port = 0;  // peer 0: a datagram that was taken without asking who sent it
  std::uint32_t end = 0;  // TCP: the number of the byte behind the last one, which both sides count alike
  std::uint32_t bytes = 0;
  std::string data;  // the first of them
};
struct SeenMessages {
  std::vector<SeenMessage> messages;  // by time
  std::vector<bool> left_out;         // by node: there were more than are told
};
inline constexpr std::size_t kMostMessages = 60'000;

// What a dump that was written holds.
struct DumpTotals {
  std::uint64_t events = 0;  // records
  std::uint64_t lost = 0, suppressed = 0;
  std::array<std::uint64_t, 6> by_type{};  // counted ones as often as they happened; by number of trace::EventType
};

struct TracerStats {
  std::uint64_t recorded = 0, lost = 0, suppressed = 0, stored = 0;
  std::uint64_t memory = 0;  // bytes in use, kernel buffers included
};

// A process of a target that a signal ended, or a main process that exited with a status other than 0; unplanned.
struct ProcessEnd {
  std::string node;
  pid_t pid = 0;
  int signal = 0;  // 0: it exited
  int exit_code = -1;
};

class Tracer {
 public:
  // Loads, attaches and begins. ErrorKind::environment names the missing capability and the remedy.
  // Functions that a target names and that do not exist are ErrorKind::input with suggestions.
  [[nodiscard]] static Result<std::unique_ptr<Tracer>> start(const TracerOptions& options,
                                                             const std::vector<Target>& targets);
  virtual ~Tracer() = default;  // detaches everything

  // The node's main process is now `pid` (it may have just been forked): its PS events are marked so.
  virtual void set_main(const std::string& node, pid_t pid) = 0;
  // PS events of the node that follow are planned, until called with false.
  virtual void set_planned(const std::string& node, bool planned) = 0;

  // The window as it is now, by timestamp, open silences and pauses included. Does not stop anything; everything
  // that happened before the call is in it.
  [[nodiscard]] virtual Result<trace::Trace> snapshot() = 0;
  // The same as a dump, straight from the window and never whole in memory; `amend` may add to its header.
  [[nodiscard]] virtual Result<DumpTotals> write_dump(const trace::DumpWriter::Sink& sink,
                                                      const std::function<void(trace::Meta&)>& amend = {}) = 0;
  // Into a file: beside and renamed, 0600.
  [[nodiscard]] Result<DumpTotals> write_dump(const std::filesystem::path& path,
                                              const std::function<void(trace::Meta&)>& amend = {});
  // A process of rose's own, with what it starts, is no target's, even inside a target's cgroup.
  virtual void leave_out(pid_t pid) = 0;

  // The values so far, all that were seen before the call included.
  [[nodiscard]] virtual SeenValues take_values() = 0;
  // The same of TracerOptions::messages.
  [[nodiscard]] virtual SeenMessages take_messages() = 0;

  // Such ends since last asked, told within a fraction of a second; of a flood, the first few hundred.
  [[nodiscard]] virtual std::vector<ProcessEnd> take_ends() = 0;
  // Readable while there are any.
  [[nodiscard]] virtual int ends_fd() const = 0;
  // Only with count_syscalls or infrequent_below.
  [[nodiscard]] virtual profile::RunCounts counts() = 0;
  [[nodiscard]] virtual TracerStats stats() = 0;
  // Of the capabilities that starting took, those it may need again, or takes to read its maps.
  [[nodiscard]] virtual kernel::Capabilities still_needed() = 0;
};

}  // namespace rose::observe
