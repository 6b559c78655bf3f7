// The binary dump: a header with a version, then blocks, each compressed with zlib and with a CRC-32. Dumps may be
// hostile, so sizes are checked before memory is reserved, and string ids and enum values before they are used.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/block.h"
#include "trace/event.h"

namespace rose::trace {

inline constexpr std::uint32_t kDumpVersion = 3;            // the version that is written; 1 and 2 can also be read
inline constexpr std::string_view kDumpMagic = "ROSEDUMP";  // the first bytes of a dump

// Writes the dump atomically, with mode 0600. Events that readers would refuse, which only a bug can produce, are left
// out with a warning and counted as lost, so that the other events are saved.
[[nodiscard]] Result<void> write_dump(const Trace& trace, const std::filesystem::path& path);

// Like write_dump, into memory.
[[nodiscard]] Result<std::string> dump_to_bytes(const Trace& trace);

// Writes a dump from blocks that were packed before. `sink` receives the bytes in order.
class DumpWriter {
 public:
  using Sink = std::function<Result<void>(std::string_view)>;
  explicit DumpWriter(Sink sink) : sink_(std::move(sink)) {}

  // Readers will add `shift_ns` to the time of each event.
  [[nodiscard]] Result<void> begin(const Meta& meta, std::int64_t shift_ns = 0);
  [[nodiscard]] Result<void> add(const PackedEvents& packed);
  // `missed`: number of events that left the window while it was being written. Readers count them as lost.
  [[nodiscard]] Result<void> end(std::uint64_t missed = 0);
  [[nodiscard]] std::uint64_t events() const { return events_; }

 private:
  Sink sink_;
  std::uint64_t events_ = 0, strings_ = 0;
};

struct ReadDump {
  Trace trace;                  // contains the events before the damage
  std::optional<Error> damage;  // names the file and the byte offset
};

// Returns an error if nothing is readable: the file is no dump, or its version is unknown (the error lists the known
// versions). Otherwise returns the events of all complete blocks before the damage.
[[nodiscard]] Result<ReadDump> read_dump(const std::filesystem::path& path);
// Like read_dump, for bytes in memory. The fuzzer uses it. Messages contain `name`.
[[nodiscard]] Result<ReadDump> parse_dump(std::span<const std::byte> bytes, std::string_view name);

}  // namespace rose::trace
