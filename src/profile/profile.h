// What is normal: learnt from fault-free runs, compared with dumps. Plain data, its JSON form, and
// the pure functions that learn it from traces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trace/event.h"

namespace rose::profile {

// Files of one kind (".class") that are looked for in vain under so many names, by one call: one more is nothing new.
inline constexpr std::size_t kManyLookups = 20;

// Numbers in paths (pids, ids, temporary names) become "*", so that runs compare:
// "/tmp/rose-x1/n1/snapshot.12" -> "/tmp/rose-*/n*/snapshot.*". Hex runs of 6 or more count as numbers.
[[nodiscard]] std::string path_pattern(std::string_view path);
// The last `parts` components of a pattern, as a glob: "*/n*/snapshot.*". More when they would hold no
// letter ("*/wal/*/*"), so that a tail never means everything.
[[nodiscard]] std::string tail_pattern(std::string_view path, int parts = 2);

// A peer without what differs between runs: "10.77.0.2:43210" -> "10.77.0.2:*" (an ephemeral port, 32768 or
// more), "unix:/tmp/x.1234" -> "unix:/tmp/x.*".
[[nodiscard]] std::string peer_pattern(std::string_view peer);

// A failure, or a state-changing call, that happens without faults.
struct CallKind {
  std::string node;  // "*": every node
  std::string syscall;
  std::string error;        // "ENOENT"; "" for SYS
  std::string path;         // pattern; "" none
  std::string peer;         // "" none; without the ephemeral port
  std::uint64_t count = 0;  // over all runs
};

// FunctionRate::binary of a method of the node's JVMs: it is in no file that could be probed.
inline constexpr const char* kJvm = "jvm";

struct FunctionRate {
  std::string node;
  std::string function;  // demangled
  std::string binary;
  std::uint64_t count = 0;
  double per_second = 0;
  bool infrequent = true;
};

struct ProcessKind {
  std::string node;
  std::string state;   // crashed, exited, paused; stops made by `rose node` are not learnt
  std::string signal;  // "" none
  int exit_code = -1;
  bool main = false;
  std::uint64_t count = 0;
};

struct Silence {
  std::string src, dst;  // node names where known, else addresses
  std::int64_t longest_ms = 0;
  int port = 0;                   // of the service; 0: any
  bool open = false;              // it was not over when a run ended: how long it would have lasted nobody knows
  std::optional<bool> answers{};  // it is `src` that offers the service; nothing: not known, so either

  // Is it of this service, of the source's (`sport`) or the destination's? 0: not that one's.
  [[nodiscard]] bool is_of(std::uint16_t sport, std::uint16_t dport) const {
    if (port == 0 || (sport == 0 && dport == 0)) return true;
    // Where peers offer the same, what one asks says nothing about what it answers.
    return (port == dport && !answers.value_or(false)) || (port == sport && answers.value_or(true));
  }
};

// What the workload did in all of the runs.
struct WorkloadUse {
  int runs = 0;
  int failed = 0;  // ended by itself with another status than 0
  // Bytes that it exchanged with the nodes, in the run with the fewest; nothing: not known, as in host networks.
  std::optional<std::uint64_t> sent, received;

  // In each run some came back, or where none ever does, some were sent.
  [[nodiscard]] bool exchanges() const { return sent && received && (*sent > 0 || *received > 0); }
};

struct Profile {
  std::uint32_t version = 1;
  std::string name;
  int runs = 0;
  double seconds = 0;  // traced, over all runs
  double infrequent_below = 2.0;
  std::vector<CallKind> failures;                                        // benign
  std::vector<CallKind> state_changes;                                   // SYS, with their counts
  std::map<std::string, std::map<std::string, std::uint64_t>> syscalls;  // node -> name -> calls
  std::vector<FunctionRate> functions;
  std::vector<ProcessKind> processes;
  std::vector<Silence> silences;
  std::optional<WorkloadUse> workload;  // nothing: an older rose made the profile
};

// Numbers that a trace alone does not hold.
struct RunCounts {
  double seconds = 0;
  std::map<std::string, std::map<std::string, std::uint64_t>> syscalls;  // node -> name -> calls
  std::vector<FunctionRate> functions;                                   // counts of this run
};

// Adds one fault-free run.
void learn(Profile& profile, const trace::Trace& trace, const RunCounts& counts);

// The workload of one of these runs. `sent`, `received`: nothing where they were not counted.
void learn_workload(Profile& profile, bool failed, std::optional<std::uint64_t> sent,
                    std::optional<std::uint64_t> received);

// What the profile calls infrequent on the node, or on all ("*"); "": on any node. By name and binary, as it can be
// probed in files.
[[nodiscard]] std::set<std::pair<std::string, std::string>> rare_functions(const Profile& profile,
                                                                           std::string_view node);
// The same of methods of JVMs, which are in no file.
[[nodiscard]] std::set<std::string> rare_methods(const Profile& profile, std::string_view node);
// Does it say anything of methods on the node?
[[nodiscard]] bool knows_methods(const Profile& profile, std::string_view node);

// Which failures (or state-changing calls) happen without faults. `profile` must outlive it and stay as it is.
class BenignIndex {
 public:
  explicit BenignIndex(const Profile& profile);
  // Same syscall and errno, and, on any node, the same path pattern or the same tail of it: production and test
  // deployment live in different folders. Peers agree when they are equal or only the address differs, for the same
  // reason. nullptr: it is none.
  [[nodiscard]] const CallKind* find(const trace::Trace& trace, const trace::Event& event) const;

 private:
  void add(const CallKind& kind);
  std::unordered_multimap<std::string, const CallKind*> by_path_;
  std::unordered_multimap<std::string, const CallKind*> by_tail_;
};

[[nodiscard]] std::string to_json(const Profile& profile);
// Of a profile's calls there may be 100,000 kinds and more: `functions` leaves them out, and needs no memory for them.
enum class Part { all, functions };
[[nodiscard]] Result<Profile> parse_profile(std::string_view text, std::string_view name, Part part = Part::all);
[[nodiscard]] Result<Profile> read_profile(const std::filesystem::path& path, Part part = Part::all);
[[nodiscard]] Result<void> write_profile(const Profile& profile, const std::filesystem::path& path);

}  // namespace rose::profile
