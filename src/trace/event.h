// The data model of a trace: events, their strings and their origin. Plain data. dump.h and jsonl.h define the file
// formats; observe makes traces.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace rose::trace {

// An index into a StringTable; 0 means "absent" (null in JSON).
using StringId = std::uint32_t;

// Stores each string once. It is made for millions of strings. The bytes are in chunks that never move, so views stay
// valid. The index is a flat hash table of ids.
class StringTable {
 public:
  StringTable() = default;
  StringTable(const StringTable& other);
  StringTable& operator=(const StringTable& other);
  StringTable(StringTable&& other) noexcept;
  StringTable& operator=(StringTable&& other) noexcept;

  [[nodiscard]] StringId intern(std::string_view text);  // the id is never 0, not even for ""
  // Returns "" for 0 and for unknown ids.
  [[nodiscard]] std::string_view operator[](StringId id) const {
    return id < strings_.size() ? strings_[id] : std::string_view();
  }
  [[nodiscard]] std::size_t size() const { return strings_.size(); }
  // Indexed by id; the first entry stands for "absent".
  [[nodiscard]] std::span<const std::string_view> all() const { return strings_; }
  // The id of a string that is already in the table, or 0.
  [[nodiscard]] StringId find(std::string_view text) const;
  // bytes(): the size of the strings. memory(): all memory that the table uses.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t memory() const {
    return reserved_ + strings_.capacity() * sizeof(std::string_view) + places_.capacity() * sizeof(Place);
  }

 private:
  struct Place {
    std::uint32_t hash = 0;
    StringId id = 0;  // 0: unused entry
  };
  [[nodiscard]] std::size_t place_of(std::string_view text, std::uint32_t hash) const;
  void grow();

  std::vector<std::unique_ptr<char[]>> chunks_;
  char* chunk_end_ = nullptr;
  std::size_t left_ = 0;  // number of bytes that are left in the last chunk
  std::size_t bytes_ = 0, reserved_ = 0;
  std::vector<std::string_view> strings_ = std::vector<std::string_view>(1);
  std::vector<Place> places_;  // its size is a power of two, or 0
};

enum class EventType : std::uint8_t { scf = 1, af = 2, nd = 3, ps = 4, sys = 5 };
inline constexpr std::array kEventTypes = {EventType::scf, EventType::af, EventType::nd, EventType::ps, EventType::sys};
enum class ProcessState : std::uint8_t { none = 0, crashed = 1, exited = 2, paused = 3, started = 4 };
enum class Protocol : std::uint8_t { none = 0, tcp = 6, udp = 17 };

enum EventFlag : std::uint16_t {
  kPlanned = 1,      // PS: `rose node` caused the event
  kOpen = 2,         // ND, PS paused: the silence or pause had not ended when the window was written
  kMain = 4,         // PS: the process is the node's main process
  kInjected = 8,     // a fault of rose's schedule caused the event
  kCoreDumped = 16,  // PS crashed: a core was dumped
  kUnlinked = 32,    // path: the file had been unlinked
  // path: only the end is kept; AF: the function is entered too often, so later entries are not recorded
  kTruncated = 64,
  kOutOfMemory = 128,   // PS crashed: the kernel's OOM killer killed the process
  kBlocked = 256,       // PS paused: a thread waited uninterruptibly (D state), usually for a disk
  kDying = 512,         // SCF: the process was being ended, stopped or frozen, and the failure is a consequence of that
  kOutstanding = 1024,  // ND: data was sent that remained unanswered
  kIdle = 2048,         // ND: all data was answered; if neither this flag nor kOutstanding is set, that is unknown
};

// One record of a trace. Fields that do not apply to its type have the value given here, which means "absent".
struct Event {
  std::int64_t ts_ns = 0;   // wall clock; for an event with a duration, the time of its end
  std::int64_t result = 0;  // SYS: return value; SCF without an error: the bytes that were read or written
  StringId node = 0;
  StringId path = 0;      // SCF, SYS
  StringId path2 = 0;     // SYS, SCF: the second path of a rename, link or symlink
  StringId peer = 0;      // SCF, SYS: "ip:port", "[ip6]:port" or "unix:..."
  StringId function = 0;  // AF
  StringId src = 0;       // ND: address without a port
  StringId dst = 0;
  StringId by = 0;       // PS crashed, exited: the sender of the signal: "runc (41)", "kernel", "itself"
  std::int32_t pid = 0;  // tgid; 0: unknown
  std::int32_t tid = 0;
  std::int32_t fd = -1;
  // ND, PS paused: the duration. PS crashed, exited: the time since the signal that ended the process.
  std::int32_t duration_ms = -1;
  std::int32_t exit_code = -1;  // PS exited
  std::uint32_t packets = 0;    // ND: number of packets between src and dst before the silence
  std::uint32_t count = 1;      // number of equal events that this record stands for
  std::int16_t syscall = -1;    // SCF, SYS: number of the system call on this processor
  std::int16_t err = 0;         // SCF: errno, positive; 0: the call did less than requested, or a signal ended it
  std::uint16_t sport = 0;      // ND: port; 0: unknown
  std::uint16_t dport = 0;
  std::uint8_t signal = 0;  // PS: signal, 0: none; SCF of mmap: SIGBUS, if an access to the mapped file failed
  EventType type = EventType::scf;
  ProcessState state = ProcessState::none;
  Protocol protocol = Protocol::none;
  std::uint16_t flags = 0;  // EventFlag
  std::uint8_t reserved[2] = {};
  std::uint32_t open_flags = 0;  // SYS of the open family: the flags of open
  std::uint32_t requested = 0;   // SCF without an error: number of bytes that were requested
  // ND: how exactly the silence shows when its cause began and ended. The cause began at most begin_within_ms after the
  // silence began, because then the first data was sent that remained unanswered. The cause ended at most end_within_ms
  // before the silence ended.
  std::int32_t begin_within_ms = -1;
  std::int32_t end_within_ms = -1;
  std::int32_t usual_ms = -1;  // ND: the longest silence in the normal use of the connection
};

// Expected failures of one kind, which were counted but not stored.
struct SuppressedCall {
  std::int16_t syscall = 0;
  std::int16_t err = 0;
  std::uint64_t count = 0;
  friend bool operator==(const SuppressedCall&, const SuppressedCall&) = default;
};

// The header of a dump.
struct Meta {
  std::uint32_t version = 1;
  std::string node;  // the tracer's own node or host; "" if several were merged
  std::string host;
  std::string boot_id;
  std::int64_t wall_base_ns = 0;  // wall_base_ns and monotonic_base_ns: the two clocks, read at the same instant
  std::int64_t monotonic_base_ns = 0;
  std::uint64_t window = 0;           // capacity of the window in events
  std::uint64_t memory = 0;           // capacity of the window in bytes
  std::uint64_t lost = 0;             // number of events that happened, but are not in the dump
  std::uint64_t suppressed = 0;       // number of expected failures that were counted, but not stored
  std::int64_t network_delay_ns = 0;  // network_delay_ns and pause_ns: the thresholds that were in effect; 0: unknown
  std::int64_t pause_ns = 0;
  std::int64_t workload_ts = 0;  // start of the workload; 0: unknown
  std::int64_t begin_ns = 0;     // start of tracing; 0: unknown
  std::int64_t end_ns = 0;       // when the window was written; 0: unknown
  std::string trigger;           // why the window was written: "crash: n1: ..."; "" if unknown
  // `suppressed` by kind, as far as it is known; the most frequent kind comes first
  std::vector<SuppressedCall> suppressed_calls;
  std::vector<std::string> nodes;  // in the order of the configuration file
  // Addresses of nodes as "name=ip". With these, ND events of one dump can be assigned to the nodes of another dump.
  std::vector<std::string> addresses;
  std::vector<std::string>
      labels;  // other names of a node, as "name=KEY:VALUE": "db=unit:postgresql.service", "db=cluster:east"
  // number of connections that were dropped for lack of memory, so that their silences are missing
  std::uint64_t pairs_evicted = 0;
  // Lines in the form that trace/clock.h describes. They relate the clock of this host to the clocks of other hosts.
  std::vector<std::string> handshakes;
  // Sentences about changes of the host's clock, and about offsets between hosts that were found when dumps were
  // merged.
  std::vector<std::string> clock;
};

// What the events of a trace refer to.
struct TraceBase {
  Meta meta;
  StringTable strings;

  [[nodiscard]] std::string_view str(StringId id) const { return strings[id]; }
};

struct Trace : TraceBase {
  std::vector<Event> events;  // sorted by time
};

// Sorts stably by time.
void sort_by_time(Trace& trace);

// Collects every node of a trace: those of the header first, then others in the order of their first event. Events
// without a node belong to meta.node.
class NodeNames {
 public:
  explicit NodeNames(const TraceBase& trace);  // must outlive this object
  void add(const Event& event);
  [[nodiscard]] std::vector<std::string> list() &&;

 private:
  void add(std::string_view name);

  const TraceBase& trace_;
  std::vector<std::string> names_;
  std::unordered_set<std::string_view> seen_;
  std::vector<bool> known_;  // by StringId
  bool nameless_ = false;
};
[[nodiscard]] std::vector<std::string> node_names(const Trace& trace);
// A parsed entry of Meta::labels. Nothing if the text has another form.
struct Label {
  std::string node, key, value;
};
[[nodiscard]] std::optional<Label> to_label(std::string_view line);
// Node names by address, from the header.
[[nodiscard]] std::map<std::string, std::string> nodes_by_address(const Meta& meta);

[[nodiscard]] std::string_view type_name(EventType type);       // for example "scf"
[[nodiscard]] std::string_view state_name(ProcessState state);  // for example "crashed"

}  // namespace rose::trace
