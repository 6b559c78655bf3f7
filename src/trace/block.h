// Blocks, what dumps are made of: framed, compressed, with a checksum each. A block of events stands alone: it
// brings its own strings, so that it can be made long before a dump is asked for, written as it is, and read
// though its neighbours are damaged.
//
// Raw form of a block of events (EVTS of version 2), numbers as LEB128 where nothing else is said:
//
//   strings, strings*: bytes shared with the string before, bytes that follow, those bytes
//   the first event's time, then the column of differences to the event before, always in full
//   a column for each other field of Event, in the order of block.cc: u8 width (1, 2, 4, 8), then that many bytes
//   an event, little-endian; or u8 0 and one u64 that all events have. Signed numbers are zigzag.
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

// Writers close a block with this many events, or when its strings have grown past the bytes.
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
  std::uint32_t crc;  // of the 16 bytes above and the packed ones
  std::uint32_t zero;
};
static_assert(sizeof(BlockHeader) == 24);

// A block of any kind as it stands in a file. `cost`: bytes a reader will need for it beyond `raw`.
[[nodiscard]] Result<std::string> frame_block(BlockKind kind, std::uint32_t items, std::string_view raw,
                                              std::size_t cost = 0);

// The block at the beginning of `bytes`: checks it, leaves its content in `raw`. What is wrong with it, or nothing.
[[nodiscard]] std::optional<std::string> open_block(std::string_view bytes, BlockHeader& header, std::string& raw);

struct PackedEvents {
  std::string block;
  std::uint32_t events = 0;
  std::uint32_t strings = 0;
  std::uint64_t string_bytes = 0;
  std::array<std::uint64_t, 6> by_type{};  // counted ones as often as they happened; by number of EventType
};

// String ids in `events` are places in `strings`, of which the first stands for "absent".
[[nodiscard]] Result<PackedEvents> pack_events(std::span<const Event> events,
                                               std::span<const std::string_view> strings);

// Appends the events of an opened block of version 2, their times moved by `shift_ns`; all of them or none.
// What is wrong with it, or nothing. `strings` becomes how many it brought.
[[nodiscard]] std::optional<std::string> unpack_events(const BlockHeader& header, std::string_view raw,
                                                       std::int64_t shift_ns, Trace& into, std::size_t& strings);

}  // namespace rose::trace
