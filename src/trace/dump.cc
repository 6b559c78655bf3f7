// File format, little-endian:
//
//   magic[8] "ROSEDUMP", u32 version, u32 zero
//   block*:  u32 kind, u32 items, u32 packed size, u32 raw size, u32 crc, u32 zero, then the packed bytes
//
// Kinds: META first and only once; EVTS (block.h describes them); DONE last, with the totals. `packed` is a zlib stream
// of `raw` bytes. The CRC-32 covers the first 16 bytes of the block and the packed bytes, so damage is detected before
// anything is unpacked. A META block is a list of u16 tag, u32 length, bytes. Unknown tags are skipped, so that later
// versions can add tags without a new version number.
//
// Version 1 can still be read. Its STRS blocks (strings in the order of their ids, from 1, each with u32 length and
// bytes) precede the EVTS blocks that use them, and its EVTS blocks consist of rows of 88 bytes.
#include "trace/dump.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "kernel/syscalls.h"
#include "trace/block.h"
#include "trace/limits.h"

namespace rose::trace {

namespace {

constexpr std::string_view kMagic = kDumpMagic;

struct FileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t zero;
};
static_assert(sizeof(FileHeader) == 16);

// A row of version 1.
struct Record {
  std::int64_t ts_ns;
  std::int64_t result;
  std::uint32_t node, path, path2, peer, function, src, dst;
  std::int32_t pid, tid, fd, duration_ms, exit_code;
  std::uint32_t packets, count;
  std::int16_t syscall, err;
  std::uint16_t sport, dport;
  std::uint8_t signal, type, state, protocol, flags;
  std::uint8_t zero[3];
};
static_assert(sizeof(Record) == 88);
static_assert(offsetof(Record, node) == 16 && offsetof(Record, pid) == 44 && offsetof(Record, packets) == 64);
static_assert(offsetof(Record, syscall) == 72 && offsetof(Record, signal) == 80 && offsetof(Record, zero) == 85);

struct Totals {
  std::uint64_t events;
  std::uint64_t strings;
  std::uint64_t missed;  // since version 2: number of events that left the window while the dump was being written
};
static_assert(sizeof(Totals) == 24);
constexpr std::size_t kTotalsOfVersion1 = 16;

// The numbers of retired tags must not be used again.
enum Tag : std::uint16_t {
  kNode = 1,
  kHost = 2,
  kBootId = 3,
  kWallBase = 4,
  kMonotonicBase = 5,
  kWindow = 6,
  kMemory = 7,
  kLost = 8,
  kSuppressed = 9,
  kNetworkDelay = 10,
  kPause = 11,
  kWorkloadTs = 12,
  kBegin = 13,
  kEnd = 14,
  kNodes = 15,      // one for each name
  kAddresses = 16,  // one for each address
  kShift = 17,      // a number that readers add to the time of every event
  kTrigger = 18,
  kSuppressedCall = 19,  // one for each kind of call: u16 syscall, u16 errno, u32 0, u64 count
  kPairsEvicted = 24,
  kHandshakes = 25,  // one for each handshake
  kClock = 26,       // one for each line of Meta::clock
  kLabels = 27,      // one for each label
};

template <typename T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

Event to_event(const Record& r) {
  Event e;
  e.ts_ns = r.ts_ns;
  e.result = r.result;
  e.node = r.node;
  e.path = r.path;
  e.path2 = r.path2;
  e.peer = r.peer;
  e.function = r.function;
  e.src = r.src;
  e.dst = r.dst;
  e.pid = r.pid;
  e.tid = r.tid;
  e.fd = r.fd;
  e.duration_ms = r.duration_ms;
  e.exit_code = r.exit_code;
  e.packets = r.packets;
  e.count = r.count;
  e.syscall = static_cast<std::int16_t>(kernel::native_call(r.syscall));
  e.err = r.err;
  e.sport = r.sport;
  e.dport = r.dport;
  e.signal = r.signal;
  e.type = static_cast<EventType>(r.type);
  e.state = static_cast<ProcessState>(r.state);
  e.protocol = static_cast<Protocol>(r.protocol);
  e.flags = r.flags;
  return e;
}

// Divides a trace into blocks. Each block has its own strings.
Result<void> write(const Trace& trace, DumpWriter::Sink sink) {
  if (trace.events.size() > kMostEvents)
    return fail(ErrorKind::input,
                fmt::format("{} events are more than a dump can hold ({})", trace.events.size(), kMostEvents),
                "select a part of them: rose dump show --format jsonl has --node, --type, --since and --until");
  if (trace.strings.size() > kMostStrings || trace.strings.bytes() > kMostStringBytes)
    return fail(ErrorKind::input,
                fmt::format("{} different paths and names, of {} bytes, are more than a dump can hold ({}, of {})",
                            trace.strings.size(), trace.strings.bytes(), kMostStrings, kMostStringBytes),
                "select a part of the events: rose dump show --format jsonl has --node, --type, --since and --until");
  std::uint64_t refused = 0;
  for (const Event& event : trace.events) {
    const auto fault = event_fault(event, trace.strings.size());
    if (!fault) continue;
    if (refused == 0) log::warning("an event cannot be saved and is counted as lost: {}", *fault);
    ++refused;
  }
  DumpWriter writer(std::move(sink));
  Meta meta = trace.meta;
  meta.lost += refused;
  ROSE_CHECK(writer.begin(meta));
  // by string id: the number of the last block that contains the string (upper 32 bits), and the string's index in it
  std::vector<std::uint64_t> places(trace.strings.size(), 0);
  std::uint64_t block = 1;
  std::vector<Event> events;
  events.reserve(std::min(trace.events.size(), kBlockEvents));
  std::vector<std::string_view> strings(1);
  std::size_t string_bytes = 0;
  const auto close = [&]() -> Result<void> {
    ROSE_TRY(const PackedEvents packed, pack_events(events, strings));
    ROSE_CHECK(writer.add(packed));
    events.clear();
    strings.resize(1);
    string_bytes = 0;
    ++block;
    return {};
  };
  for (const Event& event : trace.events) {
    if (refused > 0 && event_fault(event, trace.strings.size())) continue;
    Event& local = events.emplace_back(event);
    for (StringId* id :
         {&local.node, &local.path, &local.path2, &local.peer, &local.function, &local.src, &local.dst, &local.by}) {
      if (*id == 0) continue;
      std::uint64_t& place = places[*id];
      if (place >> 32 != block) {
        place = block << 32 | strings.size();
        strings.push_back(trace.strings[*id]);
        string_bytes += strings.back().size();
      }
      *id = static_cast<StringId>(place);
    }
    if (events.size() == kBlockEvents || string_bytes >= kBlockStringBytes) ROSE_CHECK(close());
  }
  if (!events.empty()) ROSE_CHECK(close());
  return writer.end();
}

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string_view name)
      : data_(reinterpret_cast<const char*>(bytes.data())), size_(bytes.size()), name_(name) {}

  Result<ReadDump> read() {
    FileHeader header;
    if (size_ < sizeof(header) || std::memcmp(data_, kMagic.data(), kMagic.size()) != 0) return not_ours();
    std::memcpy(&header, data_, sizeof(header));
    version_ = header.version;
    if (version_ < 1 || version_ > kDumpVersion)
      return fail(ErrorKind::input,
                  fmt::format("{}: this is a dump of version {}, at byte 8; this rose reads versions 1 to {}", name_,
                              header.version, kDumpVersion),
                  header.version > kDumpVersion ? "read it with the rose that wrote it, or a newer one" : "");
    std::size_t offset = sizeof(header);
    ReadDump result;
    if (header.zero != 0) {
      return Unexpected(damage(12, "the file header is damaged"));
    }
    bool done = false;
    while (!done && !result.damage) {
      const std::size_t start = offset;
      BlockHeader block;
      if (auto fault = next_block(offset, block)) {
        result.damage = damage(start, std::move(*fault));
        break;
      }
      if (auto fault = take(block, done)) result.damage = damage(start, std::move(*fault));
      if (!have_meta_) break;
    }
    if (!have_meta_) return Unexpected(std::move(*result.damage));  // then nothing is readable
    if (done && offset != size_) result.damage = damage(offset, "more bytes follow the end of the dump");
    result.trace = std::move(trace_);
    sort_by_time(result.trace);
    return result;
  }

 private:
  using Fault = std::optional<std::string>;

  [[nodiscard]] Error damage(std::size_t offset, std::string what) const {
    return {
        ErrorKind::input, fmt::format("{}: damaged at byte {}: {}", name_, offset, what),
        trace_.events.empty() ? "" : fmt::format("the {} events before the damage are readable", trace_.events.size())};
  }

  [[nodiscard]] Unexpected not_ours() const {
    const std::string_view text(data_, std::min<std::size_t>(size_, 64));
    if (size_ == 0) return fail(ErrorKind::input, fmt::format("{}: not a rose dump, the file is empty", name_));
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin != std::string_view::npos && text[begin] == '{')
      return fail(ErrorKind::input, fmt::format("{}: not a rose dump (wrong first bytes)", name_),
                  "it looks like JSON Lines: turn it into a dump with rose dump import");
    if (text.starts_with(kMagic))
      return fail(ErrorKind::input,
                  fmt::format("{}: damaged at byte {}: the file ends inside its header", name_, size_));
    return fail(ErrorKind::input, fmt::format("{}: not a rose dump (wrong first bytes)", name_),
                "a dump is written by rose trace, rose dump or rose dump import");
  }

  // Checks the block at `offset`, moves `offset` behind it, and puts its content into raw_.
  Fault next_block(std::size_t& offset, BlockHeader& block) {
    if (offset == size_) return "the file ends without the mark of a complete dump";
    if (auto fault = open_block({data_ + offset, size_ - offset}, block, raw_)) return fault;
    offset += sizeof(block) + block.packed;
    return std::nullopt;
  }

  Fault take(const BlockHeader& block, bool& done) {
    if ((block.kind == kMetaBlock) == have_meta_) return "blocks are out of order";
    switch (block.kind) {
      case kMetaBlock: return take_meta(block.items);
      case kStringsBlock:
        return version_ == 1 ? take_strings(block.items) : Fault("blocks of strings ended with version 1");
      case kEventsBlock: return version_ == 1 ? take_rows(block.items) : take_columns(block);
      default: done = true; return take_totals();
    }
  }

  Fault take_meta(std::uint32_t items) {
    Meta meta;
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < items; ++i) {
      std::uint16_t tag = 0;
      std::uint32_t length = 0;
      if (raw_.size() - at < sizeof(tag) + sizeof(length)) return "the header is cut short";
      std::memcpy(&tag, raw_.data() + at, sizeof(tag));
      std::memcpy(&length, raw_.data() + at + sizeof(tag), sizeof(length));
      at += sizeof(tag) + sizeof(length);
      if (length > raw_.size() - at) return "the header is cut short";
      if (!take_field(meta, shift_ns_, tag, std::string_view(raw_).substr(at, length)))
        return fmt::format("field {} of the header is not valid", tag);
      at += length;
    }
    if (at != raw_.size()) return "the header is longer than its fields";
    trace_.meta = std::move(meta);
    have_meta_ = true;
    return std::nullopt;
  }

  static bool take_field(Meta& meta, std::int64_t& shift_ns, std::uint16_t tag, std::string_view value) {
    const auto text = [&](std::string& field) {
      if (value.size() > kLongestString) return false;
      field = value;
      return true;
    };
    const auto size = [&](std::uint64_t& field) {
      if (value.size() != sizeof(field)) return false;
      std::memcpy(&field, value.data(), sizeof(field));
      return true;
    };
    const auto time = [&](std::int64_t& field) {
      if (value.size() != sizeof(field)) return false;
      std::memcpy(&field, value.data(), sizeof(field));
      return field >= 0 && field <= kLatestTs;
    };
    switch (tag) {
      case kNode: return text(meta.node);
      case kHost: return text(meta.host);
      case kBootId: return text(meta.boot_id);
      case kWallBase: return time(meta.wall_base_ns);
      case kMonotonicBase: return time(meta.monotonic_base_ns);
      case kWindow: return size(meta.window);
      case kMemory: return size(meta.memory);
      case kLost: return size(meta.lost);
      case kSuppressed: return size(meta.suppressed);
      case kNetworkDelay: return time(meta.network_delay_ns);
      case kPause: return time(meta.pause_ns);
      case kWorkloadTs: return time(meta.workload_ts);
      case kBegin: return time(meta.begin_ns);
      case kEnd: return time(meta.end_ns);
      case kNodes: return text(meta.nodes.emplace_back());
      case kAddresses: return text(meta.addresses.emplace_back());
      case kTrigger: return text(meta.trigger);
      case kSuppressedCall: {
        SuppressedCall call;
        if (value.size() != 16) return false;
        std::memcpy(&call.syscall, value.data(), sizeof(call.syscall));
        call.syscall = static_cast<std::int16_t>(kernel::native_call(call.syscall));
        std::memcpy(&call.err, value.data() + 2, sizeof(call.err));
        std::memcpy(&call.count, value.data() + 8, sizeof(call.count));
        if (call.syscall < 0 || call.syscall >= kernel::kMostSyscalls || call.err < 1 || call.err > kMostErrno)
          return false;
        meta.suppressed_calls.push_back(call);
        return true;
      }
      case kPairsEvicted: return size(meta.pairs_evicted);
      case kHandshakes: return text(meta.handshakes.emplace_back());
      case kClock: return text(meta.clock.emplace_back());
      case kLabels: return text(meta.labels.emplace_back());
      case kShift:
        if (value.size() != sizeof shift_ns) return false;
        std::memcpy(&shift_ns, value.data(), sizeof shift_ns);
        return shift_ns >= -kLatestTs && shift_ns <= kLatestTs;
      default: return true;  // a later version has added this tag
    }
  }

  Fault take_strings(std::uint32_t items) {
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < items; ++i) {
      std::uint32_t length = 0;
      if (raw_.size() - at < sizeof(length)) return "a block of strings is cut short";
      std::memcpy(&length, raw_.data() + at, sizeof(length));
      at += sizeof(length);
      if (length > raw_.size() - at) return "a block of strings is cut short";
      if (length > kLongestString) return fmt::format("a string claims {} bytes", length);
      if (length > kMostStringBytes - trace_.strings.bytes() || trace_.strings.size() >= kMostStrings)
        return "too many strings";
      const std::size_t expected = trace_.strings.size();
      // Writers store each string once. If a string were stored twice, the ids of all later strings would be wrong.
      if (trace_.strings.intern(std::string_view(raw_).substr(at, length)) != expected)
        return "a string is given twice";
      at += length;
    }
    if (at != raw_.size()) return "a block of strings is longer than its strings";
    strings_ += items;
    return std::nullopt;
  }

  Fault take_columns(const BlockHeader& block) {
    std::size_t strings = 0;
    if (auto fault = unpack_events(block, raw_, shift_ns_, trace_, strings)) return fault;
    strings_ += strings;
    return std::nullopt;
  }

  Fault take_rows(std::uint32_t items) {
    if (raw_.size() != std::uint64_t{items} * sizeof(Record)) return "a block of events has the wrong size";
    if (items > kMostEvents - trace_.events.size()) return "too many events";
    const std::size_t before = trace_.events.size();
    for (std::uint32_t i = 0; i < items; ++i) {
      Record record;
      std::memcpy(&record, raw_.data() + std::size_t{i} * sizeof(Record), sizeof(Record));
      const Event event = to_event(record);
      if (auto fault = event_fault(event, trace_.strings.size())) {
        trace_.events.resize(before);  // remove the events of the incomplete block
        return fmt::format("event {} of a block is not valid: {}", i, *fault);
      }
      trace_.events.push_back(event);
    }
    return std::nullopt;
  }

  Fault take_totals() {
    Totals totals{};
    if (raw_.size() != (version_ == 1 ? kTotalsOfVersion1 : sizeof totals))
      return "the closing block has the wrong size";
    std::memcpy(&totals, raw_.data(), raw_.size());
    if (totals.events != trace_.events.size() || totals.strings != strings_)
      return fmt::format("the dump should hold {} events and {} strings, but holds {} and {}", totals.events,
                         totals.strings, trace_.events.size(), strings_);
    trace_.meta.lost += std::min(totals.missed, UINT64_MAX - trace_.meta.lost);
    return std::nullopt;
  }

  const char* data_;
  std::size_t size_;
  std::string_view name_;
  std::uint32_t version_ = 0;
  Trace trace_;
  bool have_meta_ = false;
  std::int64_t shift_ns_ = 0;
  std::uint64_t strings_ = 0;  // number of strings in the blocks that were read
  std::string raw_;
};

}  // namespace

Result<void> DumpWriter::begin(const Meta& meta, std::int64_t shift_ns) {
  FileHeader header{};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  header.version = kDumpVersion;
  ROSE_CHECK(sink_({reinterpret_cast<const char*>(&header), sizeof(header)}));
  std::string raw;
  std::uint32_t items = 0;
  const auto bytes = [&](Tag tag, std::string_view value) {
    append(raw, static_cast<std::uint16_t>(tag));
    append(raw, static_cast<std::uint32_t>(value.size()));
    raw.append(value);
    ++items;
  };
  const auto number = [&](Tag tag, std::uint64_t value) {
    bytes(tag, {reinterpret_cast<const char*>(&value), sizeof(value)});
  };
  // Readers refuse times that are out of range, so store 0 (unknown) instead. The dump then stays readable.
  const auto time = [&](Tag tag, std::int64_t value) {
    number(tag, value >= 0 && value <= kLatestTs ? static_cast<std::uint64_t>(value) : 0);
  };
  for (const std::string* text : {&meta.node, &meta.host, &meta.boot_id, &meta.trigger}) {
    if (text->size() > kLongestString)
      return fail(ErrorKind::input,
                  fmt::format("a name of {} bytes is longer than a dump allows ({})", text->size(), kLongestString));
  }
  bytes(kNode, meta.node);
  bytes(kHost, meta.host);
  bytes(kBootId, meta.boot_id);
  time(kWallBase, meta.wall_base_ns);
  time(kMonotonicBase, meta.monotonic_base_ns);
  number(kWindow, meta.window);
  number(kMemory, meta.memory);
  number(kLost, meta.lost);
  number(kSuppressed, meta.suppressed);
  time(kNetworkDelay, meta.network_delay_ns);
  time(kPause, meta.pause_ns);
  time(kWorkloadTs, meta.workload_ts);
  time(kBegin, meta.begin_ns);
  time(kEnd, meta.end_ns);
  if (!meta.trigger.empty()) bytes(kTrigger, meta.trigger);
  for (const SuppressedCall& call : meta.suppressed_calls) {
    if (call.syscall < 0 || call.syscall >= kernel::kMostSyscalls || call.err < 0 || call.err > kMostErrno) continue;
    std::string packed;
    append(packed, static_cast<std::int16_t>(kernel::portable_call(call.syscall)));
    append(packed, call.err);
    append(packed, std::uint32_t{0});
    append(packed, call.count);
    bytes(kSuppressedCall, packed);
  }
  if (shift_ns != 0) number(kShift, static_cast<std::uint64_t>(shift_ns));
  for (const std::string& name : meta.nodes) bytes(kNodes, name);
  for (const std::string& address : meta.addresses) bytes(kAddresses, address);
  if (meta.pairs_evicted != 0) number(kPairsEvicted, meta.pairs_evicted);
  for (const std::string& handshake : meta.handshakes) bytes(kHandshakes, handshake);
  for (const std::string& sentence : meta.clock) bytes(kClock, sentence);
  for (const std::string& label : meta.labels) bytes(kLabels, label);
  ROSE_TRY(const std::string block, frame_block(kMetaBlock, items, raw));
  return sink_(block);
}

Result<void> DumpWriter::add(const PackedEvents& packed) {
  if (packed.events > kMostEvents - events_)
    return fail(ErrorKind::input, fmt::format("more events than a dump can hold ({})", kMostEvents));
  events_ += packed.events;
  strings_ += packed.strings;
  return sink_(packed.block);
}

Result<void> DumpWriter::end(std::uint64_t missed) {
  const Totals totals{events_, strings_, missed};
  ROSE_TRY(const std::string block,
           frame_block(kDoneBlock, 1, {reinterpret_cast<const char*>(&totals), sizeof(totals)}));
  return sink_(block);
}

Result<void> write_dump(const Trace& trace, const std::filesystem::path& path) {
  ROSE_TRY(AtomicFile file, AtomicFile::create(path));
  ROSE_CHECK(write(trace, [&file](std::string_view bytes) { return file.write(bytes); }));
  return file.commit();
}

Result<std::string> dump_to_bytes(const Trace& trace) {
  std::string bytes;
  ROSE_CHECK(write(trace, [&bytes](std::string_view more) -> Result<void> {
    bytes.append(more);
    return {};
  }));
  return bytes;
}

Result<ReadDump> parse_dump(std::span<const std::byte> bytes, std::string_view name) {
  return Reader(bytes, name).read();
}

Result<ReadDump> read_dump(const std::filesystem::path& path) {
  ROSE_TRY(const std::string content, read_file(path));
  return parse_dump(std::as_bytes(std::span(content)), path.string());
}

}  // namespace rose::trace
