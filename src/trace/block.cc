#include "trace/block.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernel/open_flags.h"
#include "kernel/syscalls.h"
#include "trace/frames.h"
#include "trace/limits.h"

namespace rose::trace {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");
static_assert(offsetof(BlockHeader, crc) == 16);

constexpr std::size_t kStringCost = 16;  // memory for each string in a table, in addition to its bytes

std::uint32_t block_crc(const BlockHeader& header, const void* packed) {
  uLong crc = ::crc32(0, reinterpret_cast<const Bytef*>(&header), offsetof(BlockHeader, crc));
  crc = ::crc32(crc, static_cast<const Bytef*>(packed), header.packed);
  return static_cast<std::uint32_t>(crc);
}

// The columns after the times. Their order is part of the file format, so later versions may only append columns. If a
// block of an earlier version lacks columns, a reader fills them with default values.
template <typename Use>
bool each_column(Use&& use) {
  return use(&Event::result) && use(&Event::node) && use(&Event::path) && use(&Event::path2) && use(&Event::peer) &&
         use(&Event::function) && use(&Event::src) && use(&Event::dst) && use(&Event::pid) && use(&Event::tid) &&
         use(&Event::fd) && use(&Event::duration_ms) && use(&Event::exit_code) && use(&Event::packets) &&
         use(&Event::count) && use(&Event::syscall) && use(&Event::err) && use(&Event::sport) && use(&Event::dport) &&
         use(&Event::signal) && use(&Event::type) && use(&Event::state) && use(&Event::protocol) &&
         use(&Event::flags) && use(&Event::open_flags);
}
template <typename Use>
bool each_column_of_version3(Use&& use) {
  return use(&Event::by) && use(&Event::requested) && use(&Event::begin_within_ms) && use(&Event::end_within_ms) &&
         use(&Event::usual_ms);
}

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
std::int64_t unzigzag(std::uint64_t value) { return static_cast<std::int64_t>((value >> 1) ^ (0 - (value & 1))); }

template <typename T>
std::uint64_t to_number(T value) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<std::uint64_t>(value);
  } else if constexpr (std::is_signed_v<T>) {
    return zigzag(value);
  } else {
    return value;
  }
}

template <typename T>
bool from_number(std::uint64_t number, T& value) {
  if constexpr (std::is_enum_v<T>) {
    if (number > std::numeric_limits<std::underlying_type_t<T>>::max()) return false;
    value = static_cast<T>(number);
  } else if constexpr (std::is_signed_v<T>) {
    const std::int64_t wide = unzigzag(number);
    if (wide < std::numeric_limits<T>::min() || wide > std::numeric_limits<T>::max()) return false;
    value = static_cast<T>(wide);
  } else {
    if (number > std::numeric_limits<T>::max()) return false;
    value = static_cast<T>(number);
  }
  return true;
}

std::uint8_t width_of(std::uint64_t all) { return all <= 0xff ? 1 : all <= 0xffff ? 2 : all <= 0xffffffff ? 4 : 8; }

void append_varint(std::string& out, std::uint64_t number) {
  while (number >= 0x80) {
    out += static_cast<char>(number | 0x80);
    number >>= 7;
  }
  out += static_cast<char>(number);
}

// Appends `number(i)` for each event, with `width` bytes each.
template <typename Number>
void append_column(std::string& out, std::uint8_t width, std::size_t events, Number&& number) {
  out += static_cast<char>(width);
  const std::size_t at = out.size();
  out.resize(at + events * width);
  char* to = out.data() + at;
  const auto put = [&]<typename T>(T) {
    for (std::size_t i = 0; i < events; ++i, to += sizeof(T)) {
      const T value = static_cast<T>(number(i));
      std::memcpy(to, &value, sizeof value);
    }
  };
  switch (width) {
    case 1: put(std::uint8_t{}); break;
    case 2: put(std::uint16_t{}); break;
    case 4: put(std::uint32_t{}); break;
    default: put(std::uint64_t{}); break;
  }
}

class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}
  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  bool number(std::uint64_t& out) {
    out = 0;
    for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      out |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool bytes(std::size_t count, const char*& out) {
    if (count > left()) return false;
    out = at_;
    at_ += count;
    return true;
  }

 private:
  const char *at_, *end_;
};

// Calls `take(i, number)` for each event of a column, and stops if `take` returns false. `may_be_one`: the column may
// have the form that stores one value for all events.
template <typename Take>
bool read_column(Cursor& cursor, std::size_t events, bool may_be_one, Take&& take) {
  const char* at = nullptr;
  if (!cursor.bytes(1, at)) return false;
  const auto width = static_cast<std::uint8_t>(*at);
  if (width == 0) {
    std::uint64_t number = 0;
    if (!may_be_one || !cursor.bytes(sizeof number, at)) return false;
    std::memcpy(&number, at, sizeof number);
    for (std::size_t i = 0; i < events; ++i) {
      if (!take(i, number)) return false;
    }
    return true;
  }
  if (width != 1 && width != 2 && width != 4 && width != 8) return false;
  if (!cursor.bytes(events * width, at)) return false;
  const auto get = [&]<typename T>(T) {
    for (std::size_t i = 0; i < events; ++i, at += sizeof(T)) {
      T value;
      std::memcpy(&value, at, sizeof value);
      if (!take(i, std::uint64_t{value})) return false;
    }
    return true;
  };
  switch (width) {
    case 1: return get(std::uint8_t{});
    case 2: return get(std::uint16_t{});
    case 4: return get(std::uint32_t{});
    default: return get(std::uint64_t{});
  }
}

}  // namespace

Result<std::string> frame_block(BlockKind kind, std::uint32_t items, std::string_view raw, std::size_t cost) {
  if (raw.size() > kMostBlockBytes)
    return fail(ErrorKind::input,
                fmt::format("a block of {} bytes is larger than a dump allows ({})", raw.size(), kMostBlockBytes));
  std::string block;
  uLongf size = 0;
  const auto pack = [&](int level) {
    size = ::compressBound(raw.size());
    block.resize(sizeof(BlockHeader) + size);
    return ::compress2(reinterpret_cast<Bytef*>(block.data() + sizeof(BlockHeader)), &size,
                       reinterpret_cast<const Bytef*>(raw.data()), raw.size(), level) == Z_OK;
  };
  // Use level 1, which is the fastest, because a dump is written while the traced system has a failure.
  if (!pack(1) || ((raw.size() + cost) / kMostRatio > size && !pack(0)))
    return fail(ErrorKind::environment, "not enough memory to compress a dump");
  BlockHeader header{kind, items, static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(raw.size()), 0, 0};
  header.crc = block_crc(header, block.data() + sizeof header);
  std::memcpy(block.data(), &header, sizeof header);
  block.resize(sizeof header + size);
  block.shrink_to_fit();
  return block;
}

std::optional<std::string> open_block(std::string_view bytes, BlockHeader& header, std::string& raw) {
  if (bytes.size() < sizeof header) return "the file ends inside a block header";
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes.remove_prefix(sizeof header);
  if (auto fault = header_fault(header)) return fault;
  if (header.packed > bytes.size())
    return fmt::format("the file ends inside a block ({} of {} bytes)", bytes.size(), header.packed);
  if (header.zero != 0 || block_crc(header, bytes.data()) != header.crc) return "a block's checksum does not match";
  raw.resize(header.raw);
  uLongf size = header.raw;
  uLong used = header.packed;
  // zlib needs a valid output pointer, even if the block is empty.
  Bytef nothing = 0;
  const int rc = ::uncompress2(raw.empty() ? &nothing : reinterpret_cast<Bytef*>(raw.data()), &size,
                               reinterpret_cast<const Bytef*>(bytes.data()), &used);
  if (rc != Z_OK || size != header.raw || used != header.packed) return "a block does not unpack";
  return std::nullopt;
}

Result<PackedEvents> pack_events(std::span<const Event> events, std::span<const std::string_view> strings) {
  std::vector<Event> portable;
  if constexpr (!kernel::kPortableNumbers) {
    portable.assign(events.begin(), events.end());
    for (Event& event : portable) {
      event.syscall = static_cast<std::int16_t>(kernel::portable_call(event.syscall));
      event.open_flags = kernel::portable_open_flags(event.open_flags);
    }
    events = portable;
  }
  std::size_t string_bytes = 0;
  for (const auto text : strings) {
    string_bytes += text.size();
    if (text.size() > kLongestString)
      return fail(ErrorKind::input,
                  fmt::format("a string of {} bytes is longer than a dump allows ({})", text.size(), kLongestString));
  }
  const std::size_t count = strings.empty() ? 0 : strings.size() - 1;
  const std::size_t cost = events.size() * sizeof(Event) + string_bytes + count * kStringCost;
  const auto build = [&](bool share) {
    std::string raw;
    raw.reserve(string_bytes / 2 + events.size() * 24 + 512);
    append_varint(raw, count);
    std::string_view before;
    for (std::size_t i = 1; i <= count; ++i) {
      const std::string_view text = strings[i];
      std::size_t shared = 0;
      if (share) {
        const std::size_t most = std::min(before.size(), text.size());
        shared = static_cast<std::size_t>(
            std::mismatch(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(most), before.begin()).first -
            text.begin());
      }
      append_varint(raw, shared);
      append_varint(raw, text.size() - shared);
      raw.append(text.substr(shared));
      before = text;
    }
    const auto gap = [&](std::size_t i) {
      const auto ts = [](const Event& event) { return static_cast<std::uint64_t>(event.ts_ns); };
      return zigzag(static_cast<std::int64_t>(ts(events[i]) - (i == 0 ? 0 : ts(events[i - 1]))));
    };
    // Store the first difference separately. It is large, and would make the whole column wider.
    append_varint(raw, events.empty() ? 0 : gap(0));
    std::uint64_t all = 0;
    for (std::size_t i = 1; i < events.size(); ++i) all |= gap(i);
    append_column(raw, width_of(all), events.empty() ? 0 : events.size() - 1,
                  [&](std::size_t i) { return gap(i + 1); });
    const auto put = [&](auto field) {
      bool same = true;
      std::uint64_t any = 0;
      for (const Event& event : events) {
        any |= to_number(event.*field);
        same &= event.*field == events[0].*field;
      }
      if (same) {
        const std::uint64_t one = events.empty() ? 0 : to_number(events[0].*field);
        raw += '\0';
        raw.append(reinterpret_cast<const char*>(&one), sizeof one);
      } else {
        append_column(raw, width_of(any), events.size(), [&](std::size_t i) { return to_number(events[i].*field); });
      }
      return true;
    };
    (void)each_column(put);
    (void)each_column_of_version3(put);
    return raw;
  };
  std::string raw = build(true);
  // If the strings are almost equal, a block with shared prefixes may be so small that readers refuse it (kMostRatio).
  // Then store the strings in full.
  if ((raw.size() + cost) / kMostRatio > raw.size()) raw = build(false);
  PackedEvents packed;
  packed.events = static_cast<std::uint32_t>(events.size());
  packed.strings = static_cast<std::uint32_t>(count);
  packed.string_bytes = string_bytes;
  for (const Event& event : events) {
    if (const auto type = static_cast<std::size_t>(event.type); type < packed.by_type.size())
      packed.by_type[type] += event.count;
  }
  ROSE_TRY(packed.block, frame_block(kEventsBlock, packed.events, raw, cost));
  return packed;
}

std::optional<std::string> unpack_events(const BlockHeader& header, std::string_view raw, std::int64_t shift_ns,
                                         Trace& into, std::size_t& strings) {
  const std::size_t items = header.items;
  const std::size_t most = kMostRatio * (std::size_t{header.packed} + 1);
  std::size_t cost = items * sizeof(Event);
  if (cost > most) return fmt::format("a block claims {} events from {} compressed bytes", items, header.packed);
  if (items > kMostEvents - into.events.size()) return "too many events";

  Cursor cursor(raw);
  std::uint64_t count = 0;
  if (!cursor.number(count) || count > cursor.left()) return "a block's strings are cut short";
  std::string text;
  std::string bytes;
  std::vector<std::size_t> ends;
  ends.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t shared = 0, more = 0;
    const char* at = nullptr;
    if (!cursor.number(shared) || !cursor.number(more) || !cursor.bytes(more, at))
      return "a block's strings are cut short";
    if (shared > text.size()) return "a string shares more bytes than the previous one has";
    if (shared + more > kLongestString) return fmt::format("a string claims {} bytes", shared + more);
    cost += shared + more + kStringCost;
    if (cost > most) return fmt::format("a block claims {} bytes from {} compressed ones", cost, header.packed);
    text.resize(shared);
    text.append(at, more);
    bytes += text;
    ends.push_back(bytes.size());
  }

  const std::size_t before = into.events.size();
  into.events.resize(before + items);
  Event* const events = into.events.data() + before;
  const auto refuse = [&](std::string why) {
    into.events.resize(before);  // remove the events of the incomplete block
    return why;
  };
  std::uint64_t first = 0;
  if (!cursor.number(first)) return refuse("a block's times are cut short");
  std::uint64_t ts = static_cast<std::uint64_t>(unzigzag(first));
  if (items > 0) events[0].ts_ns = static_cast<std::int64_t>(ts);
  if (!read_column(cursor, items == 0 ? 0 : items - 1, false, [&](std::size_t i, std::uint64_t gap) {
        ts += static_cast<std::uint64_t>(unzigzag(gap));
        events[i + 1].ts_ns = static_cast<std::int64_t>(ts);
        return true;
      }))
    return refuse("a block's times are not valid");
  int column = 1;
  const auto get = [&](auto field) {
    ++column;
    return read_column(cursor, items, true,
                       [&](std::size_t i, std::uint64_t number) { return from_number(number, events[i].*field); });
  };
  if (!each_column(get) || (cursor.left() != 0 && !each_column_of_version3(get)))
    return refuse(fmt::format("column {} of a block is not valid", column));
  if (cursor.left() != 0) return refuse("a block of events is longer than its columns");
  for (std::size_t i = 0; i < items; ++i) {
    Event& event = events[i];
    // Shift only times that are in range, so that the sum cannot overflow. event_fault refuses the other times.
    if (event.ts_ns >= -kLatestTs && event.ts_ns <= kLatestTs) event.ts_ns += shift_ns;
    if (auto fault = event_fault(event, count + 1))
      return refuse(fmt::format("event {} of a block is not valid: {}", i, *fault));
    if constexpr (!kernel::kPortableNumbers) {
      event.syscall = static_cast<std::int16_t>(kernel::native_call(event.syscall));
      event.open_flags = kernel::native_open_flags(event.open_flags);
    }
  }
  if (count > kMostStrings - std::min(kMostStrings, into.strings.size()) ||
      bytes.size() > kMostStringBytes - std::min(kMostStringBytes, into.strings.bytes()))
    return refuse("too many strings");

  std::vector<StringId> ids(count + 1, 0);
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ids[i + 1] = into.strings.intern(std::string_view(bytes).substr(at, ends[i] - at));
    at = ends[i];
  }
  for (std::size_t i = 0; i < items; ++i) {
    Event& event = events[i];
    for (StringId* id :
         {&event.node, &event.path, &event.path2, &event.peer, &event.function, &event.src, &event.dst, &event.by})
      *id = ids[*id];
  }
  strings = count;
  return std::nullopt;
}

}  // namespace rose::trace
