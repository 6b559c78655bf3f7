// The profile: learns from fault-free runs which failures occur without faults, and how frequent calls and functions
// are. Compares dumps with what it has learned. Plain data, its JSON form and pure functions. It makes no runs itself.
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

// If, in fault-free runs, a call looked for at least this many names with one extension (such as ".class") that did not
// exist, it is normal that a further name does not exist.
inline constexpr std::size_t kManyLookups = 20;

// If a name was not found in this many folders, it was searched for along a path, as Erlang and Python search for
// modules. The profile then keeps one kind for the name ("*/lists.beam") instead of one for each folder.
inline constexpr std::size_t kManyFolders = 20;
// If this many such names were not found in a folder, the folder is part of a search path. If a name was not found in
// at least kFewFolders folders, and all of them are part of a search path, then it was searched for along that path,
// too. Such a name may be missing in fewer folders because one of the next folders contains it.
inline constexpr std::size_t kManyNames = 20;
inline constexpr std::size_t kFewFolders = 4;

// Replaces numbers in paths (pids, ids, temporary names) by "*", so that runs can be compared:
// "/tmp/rose-x1/n1/snapshot.12" gives "/tmp/rose-*/n1/snapshot.*". Hexadecimal runs of 6 or more digits count as
// numbers.
[[nodiscard]] std::string path_pattern(std::string_view path);
// The last `parts` components of the path's pattern, in any folder: "*/n1/snapshot.*". If they contain no letter, more
// components are added ("*/wal/*/*"), so that the glob never matches everything.
[[nodiscard]] std::string tail_pattern(std::string_view path, int parts = 2);

// The peer without the parts that differ between runs: "10.77.0.2:43210" gives "10.77.0.2:*" (ports from 32768 are
// ephemeral), "unix:/tmp/x.1234" gives "unix:/tmp/x.*".
[[nodiscard]] std::string peer_pattern(std::string_view peer);

// A failure, or a state-changing call, that occurs without faults.
struct CallKind {
  std::string node;  // "*": any node
  std::string syscall;
  std::string error;        // "ENOENT"; "" for SYS
  std::string path;         // a pattern; "" if none
  std::string peer;         // "" if none; without an ephemeral port
  std::uint64_t count = 0;  // over all runs
};

// The FunctionRate::binary of Java methods, which are in no file that could be probed.
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
  std::string state;   // crashed, exited or paused; stops by `rose node` do not count
  std::string signal;  // "" if none
  int exit_code = -1;
  bool main = false;
  std::uint64_t count = 0;
};

struct Silence {
  std::string src, dst;  // names of nodes if known, otherwise addresses
  std::int64_t longest_ms = 0;
  int port = 0;                   // port of the service; 0: any
  bool open = false;              // a silence had not ended at the end of a run, so its full length is unknown
  std::int64_t idle_ms = 0;       // longest silence in which all data was answered
  std::optional<bool> answers{};  // whether `src` offers the service; nothing: unknown, so either is possible

  // True if a connection with these ports belongs to this service. `sport` and `dport`: source and destination; 0:
  // unknown.
  [[nodiscard]] bool is_of(std::uint16_t sport, std::uint16_t dport) const {
    if (port == 0 || (sport == 0 && dport == 0)) return true;
    // If all peers offer the same service, each direction has requests and answers. Long silences of the requests may
    // be normal while those of the answers are not, so the two are distinguished.
    return (port == dport && !answers.value_or(false)) || (port == sport && answers.value_or(true));
  }
};

// How the workload used the nodes, over all runs.
struct WorkloadUse {
  int runs = 0;
  int failed = 0;  // runs in which the workload ended by itself with a status other than 0
  // Bytes that the workload exchanged with the nodes, in the run with the fewest. No value: unknown, for example in
  // host networks.
  std::optional<std::uint64_t> sent, received;
  std::int64_t longest_ms = 0;  // longest duration of the workload; 0: unknown
  std::int64_t idle_ms = 0;     // the longest time at the end of a workload in which it exchanged nothing
  int hits = 0;                 // runs in which the oracle found the bug

  // True if the workload received data in every run, or sent data in every run.
  [[nodiscard]] bool exchanges() const { return sent && received && (*sent > 0 || *received > 0); }
};

// Failures that followed the planned end of a node in the same run, if the node started again.
struct Restarts {
  std::map<std::string, int> nodes;  // number of restarts, by node
  std::vector<CallKind> failures;    // over all restarts
};

struct Profile {
  std::uint32_t version = 1;
  std::string name;
  int runs = 0;
  double seconds = 0;  // traced time, over all runs
  double infrequent_below = 2.0;
  std::vector<CallKind> failures;       // failures that occur without faults, which are benign
  std::vector<CallKind> state_changes;  // SYS events with their counts
  std::map<std::string, std::map<std::string, std::uint64_t>> syscalls;  // node -> name -> calls
  std::vector<FunctionRate> functions;
  std::vector<ProcessKind> processes;
  std::vector<Silence> silences;
  std::optional<WorkloadUse> workload;  // nothing: the profile was made by an older rose
  Restarts restarts;
};

// Counts of a run that its trace does not contain.
struct RunCounts {
  double seconds = 0;
  std::map<std::string, std::map<std::string, std::uint64_t>> syscalls;  // node -> name -> calls
  std::vector<FunctionRate> functions;                                   // rates measured in this run
};

// Adds a fault-free run.
void learn(Profile& profile, const trace::Trace& trace, const RunCounts& counts);

// When a workload ended and the oracle's result.
struct WorkloadEnd {
  std::int64_t length_ns = 0;                    // duration; 0: unknown
  std::optional<std::int64_t> last_exchange_ns;  // since the start of the workload; nothing: unknown
  bool hit = false;                              // the oracle found the bug
};

// Adds the workload of a fault-free run. `sent`, `received`: numbers of bytes, or nothing if they were not counted.
void learn_workload(Profile& profile, bool failed, std::optional<std::uint64_t> sent,
                    std::optional<std::uint64_t> received, const WorkloadEnd& end = {});

// Adds the failures of a run in which `node` was ended on purpose. Returns false, and adds nothing, if the node did not
// start again.
[[nodiscard]] bool learn_restart(Restarts& restarts, const trace::Trace& trace, const std::string& node);

// The functions that are infrequent on this node, or on all nodes if the profile has them for "*". With "" as `node`:
// infrequent on any node. Each is a name and a binary. Only functions that can be probed in a file are returned.
[[nodiscard]] std::set<std::pair<std::string, std::string>> rare_functions(const Profile& profile,
                                                                           std::string_view node);
// Like rare_functions(), for Java methods, which are in no file.
[[nodiscard]] std::set<std::string> rare_methods(const Profile& profile, std::string_view node);
// True if the profile contains methods of the node.
[[nodiscard]] bool knows_methods(const Profile& profile, std::string_view node);

// Decides which failures (or state-changing calls) also occur without faults. `profile` must outlive the index
// unchanged.
class BenignIndex {
 public:
  explicit BenignIndex(const Profile& profile);
  // Uses the failures that follow restarts. `restarts` must outlive the index unchanged.
  explicit BenignIndex(const Restarts& restarts);
  // Finds an entry with the same syscall and errno and a matching path and peer, on any node. Production and the test
  // deployment use different folders, so it is sufficient if the path pattern or its tail is the same. For the same
  // reason, peers match if they are equal or differ only in the address. A name that was searched for in many folders
  // matches in any folder. Returns nullptr if there is no match.
  [[nodiscard]] const CallKind* find(const trace::TraceBase& trace, const trace::Event& event) const;

 private:
  void add(const CallKind& kind);
  std::unordered_multimap<std::string, const CallKind*> by_path_;
  std::unordered_multimap<std::string, const CallKind*> by_tail_;
};

[[nodiscard]] std::string to_json(const Profile& profile);
// A profile may list 100,000 or more kinds of calls. With `functions`, these are skipped and use no memory.
enum class Part { all, functions };
[[nodiscard]] Result<Profile> parse_profile(std::string_view text, std::string_view name, Part part = Part::all);
[[nodiscard]] Result<Profile> read_profile(const std::filesystem::path& path, Part part = Part::all);
[[nodiscard]] Result<void> write_profile(const Profile& profile, const std::filesystem::path& path);

}  // namespace rose::profile
