// What a trace is: events, their strings, and where they came from. Plain data; the file forms
// are in dump.h and jsonl.h.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rose::trace {

// Index into a StringTable; 0 means "absent" (null in JSON).
using StringId = std::uint32_t;

// Strings once each. Millions of them: bytes lie in chunks that never move, the index is a flat table of ids.
class StringTable {
 public:
  StringTable() = default;
  StringTable(const StringTable& other);
  StringTable& operator=(const StringTable& other);
  StringTable(StringTable&& other) noexcept;
  StringTable& operator=(StringTable&& other) noexcept;

  [[nodiscard]] StringId intern(std::string_view text);  // never 0; "" is a string of its own
  // "" for 0 and for ids that do not exist.
  [[nodiscard]] std::string_view operator[](StringId id) const {
    return id < strings_.size() ? strings_[id] : std::string_view();
  }
  [[nodiscard]] std::size_t size() const { return strings_.size(); }
  // By id; the first stands for "absent".
  [[nodiscard]] std::span<const std::string_view> all() const { return strings_; }
  // 0 when absent.
  [[nodiscard]] StringId find(std::string_view text) const;
  // Of the strings themselves, and of all that is held for them.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t memory() const {
    return reserved_ + strings_.capacity() * sizeof(std::string_view) + places_.capacity() * sizeof(Place);
  }

 private:
  struct Place {
    std::uint32_t hash = 0;
    StringId id = 0;  // 0: free
  };
  [[nodiscard]] std::size_t place_of(std::string_view text, std::uint32_t hash) const;
  void grow();

  std::vector<std::unique_ptr<char[]>> chunks_;
  char* chunk_end_ = nullptr;
  std::size_t left_ = 0;  // in the last chunk
  std::size_t bytes_ = 0, reserved_ = 0;
  std::vector<std::string_view> strings_ = std::vector<std::string_view>(1);
  std::vector<Place> places_;  // a power of two of them, or none
};

enum class EventType : std::uint8_t { scf = 1, af = 2, nd = 3, ps = 4, sys = 5 };
inline constexpr std::array kEventTypes = {EventType::scf, EventType::af, EventType::nd, EventType::ps, EventType::sys};
enum class ProcessState : std::uint8_t { none = 0, crashed = 1, exited = 2, paused = 3, started = 4 };
enum class Protocol : std::uint8_t { none = 0, tcp = 6, udp = 17 };

enum EventFlag : std::uint16_t {
  kPlanned = 1,        // PS: rose node did it
  kOpen = 2,           // ND, PS paused: still going on when the window was written
  kMain = 4,           // PS: the node's main process
  kInjected = 8,       // a fault of rose's own schedule
  kCoreDumped = 16,    // PS
  kUnlinked = 32,      // path: the file had no name any more
  kTruncated = 64,     // path: only the tail is kept; AF: entered too often, what follows is not recorded
  kOutOfMemory = 128,  // PS crashed: the kernel's OOM killer chose it
  kBlocked = 256,      // PS paused: a thread waited uninterruptibly (D state), usually for a disk
};

// One trace record. Fields that a type does not have hold the "absent" value given here.
struct Event {
  std::int64_t ts_ns = 0;   // wall clock; for events with a duration, their end
  std::int64_t result = 0;  // SYS: what the call returned
  StringId node = 0;
  StringId path = 0;      // SCF, SYS
  StringId path2 = 0;     // SYS, SCF: second path of a rename, link, symlink
  StringId peer = 0;      // SCF, SYS: "ip:port" or "[ip6]:port" or "unix:..."
  StringId function = 0;  // AF
  StringId src = 0;       // ND: address without port
  StringId dst = 0;
  std::int32_t pid = 0;  // tgid; 0: unknown
  std::int32_t tid = 0;
  std::int32_t fd = -1;
  std::int32_t duration_ms = -1;  // ND, PS paused
  std::int32_t exit_code = -1;    // PS exited
  std::uint32_t packets = 0;      // ND: seen on the pair before the silence
  std::uint32_t count = 1;        // equal events that this record stands for
  std::int16_t syscall = -1;      // SCF, SYS: x86-64 number
  std::int16_t err = 0;           // SCF: errno, positive
  std::uint16_t sport = 0;        // ND: 0 unknown
  std::uint16_t dport = 0;
  std::uint8_t signal = 0;  // PS: 0 none
  EventType type = EventType::scf;
  ProcessState state = ProcessState::none;
  Protocol protocol = Protocol::none;
  std::uint16_t flags = 0;  // EventFlag
  std::uint8_t reserved[2] = {};
  std::uint32_t open_flags = 0;  // SYS of the open family: what it was opened with
};

// Failures of one kind that were expected: counted, not stored.
struct SuppressedCall {
  std::int16_t syscall = 0;
  std::int16_t err = 0;
  std::uint64_t count = 0;
  friend bool operator==(const SuppressedCall&, const SuppressedCall&) = default;
};

// The header of a dump.
struct Meta {
  std::uint32_t version = 1;
  std::string node;  // the tracer's own node or host; "" after a merge of several
  std::string host;
  std::string boot_id;
  std::int64_t wall_base_ns = 0;  // both clocks read at one instant
  std::int64_t monotonic_base_ns = 0;
  std::uint64_t window = 0;           // events it could hold
  std::uint64_t memory = 0;           // bytes it could hold
  std::uint64_t lost = 0;             // events that happened and are not in the dump
  std::uint64_t suppressed = 0;       // expected noise, counted and not stored
  std::int64_t network_delay_ns = 0;  // thresholds it was taken with; 0 unknown
  std::int64_t pause_ns = 0;
  std::int64_t workload_ts = 0;                  // when the workload began; 0 unknown
  std::int64_t begin_ns = 0;                     // when tracing began; 0 unknown
  std::int64_t end_ns = 0;                       // when the window was written; 0 unknown
  std::string trigger;                           // why the window was written: "crash: n1: ..."; "" unknown
  std::vector<SuppressedCall> suppressed_calls;  // what `suppressed` counts, where it is known; the most frequent first
  std::vector<std::string> nodes;                // names seen, in file order
  // Addresses by node, as "name=ip": lets ND events of one dump be told to nodes of another.
  std::vector<std::string> addresses;
  std::vector<std::string>
      labels;  // what others call a node, as "name=KEY:VALUE": "db=unit:postgresql.service", "db=cluster:east"
  std::uint64_t pairs_evicted = 0;      // connections forgotten for lack of memory: their silences are not in the dump
  std::vector<std::string> handshakes;  // lines of trace/clock.h: what ties this host's clock to others'
  std::vector<std::string> clock;  // sentences: when the host's clock was set, what a merge found of the hosts' clocks
};

struct Trace {
  Meta meta;
  StringTable strings;
  std::vector<Event> events;  // by timestamp

  [[nodiscard]] std::string_view str(StringId id) const { return strings[id]; }
};

// Stable sort by timestamp.
void sort_by_time(Trace& trace);

// Every node the trace speaks of: those the header lists, then others in the order their first
// events come. Events without a node count for meta.node.
[[nodiscard]] std::vector<std::string> node_names(const Trace& trace);
// One of Meta::labels. Nothing where it is of another form.
struct Label {
  std::string node, key, value;
};
[[nodiscard]] std::optional<Label> to_label(std::string_view line);
// The nodes' names by their addresses, as the header gives them.
[[nodiscard]] std::map<std::string, std::string> nodes_by_address(const Meta& meta);

[[nodiscard]] std::string_view type_name(EventType type);       // "scf"
[[nodiscard]] std::string_view state_name(ProcessState state);  // "crashed"

}  // namespace rose::trace
