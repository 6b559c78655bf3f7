// The binary dump: versioned header, then zlib-compressed blocks with a CRC-32 each. Every dump is
// taken for hostile: sizes are checked before memory is reserved, string ids and enums before use.
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

inline constexpr std::uint32_t kDumpVersion = 2;  // written; 1 is read too

// Written beside and renamed, 0600. Events that no reader would accept (a bug of whoever made them)
// are left out with a warning and counted as lost: the others must still be saved.
[[nodiscard]] Result<void> write_dump(const Trace& trace, const std::filesystem::path& path);

// The same into memory.
[[nodiscard]] Result<std::string> dump_to_bytes(const Trace& trace);

// A dump in steps, for whoever has its blocks already. `sink` gets the bytes in order.
class DumpWriter {
 public:
  using Sink = std::function<Result<void>(std::string_view)>;
  explicit DumpWriter(Sink sink) : sink_(std::move(sink)) {}

  // Readers add `shift_ns` to the time of each event.
  [[nodiscard]] Result<void> begin(const Meta& meta, std::int64_t shift_ns = 0);
  [[nodiscard]] Result<void> add(const PackedEvents& packed);
  // `missed`: events that went out of the window while it was being written; readers count them as lost.
  [[nodiscard]] Result<void> end(std::uint64_t missed = 0);
  [[nodiscard]] std::uint64_t events() const { return events_; }

 private:
  Sink sink_;
  std::uint64_t events_ = 0, strings_ = 0;
};

struct ReadDump {
  Trace trace;                  // everything before the damage
  std::optional<Error> damage;  // names the file and the byte offset
};

// Error when nothing at all is readable (foreign file, unknown version: says which it found and
// which it knows); otherwise the events of all whole blocks before the damage.
[[nodiscard]] Result<ReadDump> read_dump(const std::filesystem::path& path);
// The same on bytes, for the fuzzer; `name` stands in messages.
[[nodiscard]] Result<ReadDump> parse_dump(std::span<const std::byte> bytes, std::string_view name);

}  // namespace rose::trace
