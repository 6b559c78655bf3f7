// The blocks of a dump. Each has a header, is compressed, and has a checksum. A block of events contains its own
// strings. Therefore it can be packed long before a dump is requested, written as it is, and read even if other blocks
// are damaged.
//
// Uncompressed form of a block of events (EVTS since version 2), with numbers in LEB128 unless stated otherwise:
//
//   number of strings; for each string: number of bytes that it shares with the previous string, number of further
//   bytes, these bytes
//   the first event's time, then a column with the difference of each later time to the time before it; its width is
//   never 0
//   a column for each other field of Event, in the order of block.cc: u8 width (1, 2, 4, 8), then that many bytes for
//   each event, little-endian; or u8 0 and one u64 that is the value in all events. Signed numbers are zigzag-encoded.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/event.h"

namespace rose::trace {

// Writers close a block when it has this number of events, or this number of bytes of strings.
inline constexpr std::size_t kBlockEvents = std::size_t{1} << 13;
inline constexpr std::size_t kBlockStringBytes = std::size_t{1} << 20;

enum BlockKind : std::uint32_t {
  kMetaBlock = 0x4154454d,     // "META"
  kStringsBlock = 0x53525453,  // "STRS", version 1 only
  kEventsBlock = 0x53545645,   // "EVTS"
  kDoneBlock = 0x454e4f44,     // "DONE"
};

struct BlockHeader {
  std::uint32_t kind;
  std::uint32_t items;
  std::uint32_t packed;
  std::uint32_t raw;
  std::uint32_t crc;  // CRC-32 of the 16 bytes above and of the compressed bytes
  std::uint32_t zero;
};
static_assert(sizeof(BlockHeader) == 24);

// Makes a block of any kind. `cost`: the memory that a reader needs for the block in addition to `raw`.
[[nodiscard]] Result<std::string> frame_block(BlockKind kind, std::uint32_t items, std::string_view raw,
                                              std::size_t cost = 0);

// Checks the block at the beginning of `bytes`, and decompresses it into `raw`. Returns what is wrong with the block,
// or nothing.
[[nodiscard]] std::optional<std::string> open_block(std::string_view bytes, BlockHeader& header, std::string& raw);

struct PackedEvents {
  std::string block;
  std::uint32_t events = 0;
  std::uint32_t strings = 0;
  std::uint64_t string_bytes = 0;
  std::array<std::uint64_t, 6> by_type{};  // number of events by EventType; an event with a `count` adds its `count`
};

// Packs events. The string ids in `events` are indices into `strings`, whose first entry stands for "absent".
[[nodiscard]] Result<PackedEvents> pack_events(std::span<const Event> events,
                                               std::span<const std::string_view> strings);

// Appends all events of an opened block of version 2 or 3, and adds `shift_ns` to their times. If the block is invalid,
// appends none, and returns what is wrong. `strings` receives the number of strings in the block.
[[nodiscard]] std::optional<std::string> unpack_events(const BlockHeader& header, std::string_view raw,
                                                       std::int64_t shift_ns, Trace& into, std::size_t& strings);

}  // namespace rose::trace
