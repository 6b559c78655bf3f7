// The binary dump: versioned header, then zlib-compressed blocks with a CRC-32 each. Every dump is
// taken for hostile: sizes are checked before memory is reserved, string ids and enums before use.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/event.h"

namespace rose::trace {

inline constexpr std::uint32_t kDumpVersion = 1;

// Written beside and renamed, 0600. Events that no reader would accept (a bug of whoever made them)
// are left out with a warning and counted as lost: the others must still be saved.
[[nodiscard]] Result<void> write_dump(const Trace& trace, const std::filesystem::path& path);

// The same into memory.
[[nodiscard]] Result<std::string> dump_to_bytes(const Trace& trace);

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
