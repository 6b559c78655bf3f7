// Layout, everything little-endian:
//
//   magic[8] "ROSEDUMP", u32 version, u32 zero
//   block*:  u32 kind, u32 items, u32 packed size, u32 raw size, u32 crc, u32 zero, then the packed bytes
//
// Kinds: META once and first; STRS (strings in order of their ids, from 1, each u32 length + bytes)
// ahead of the EVTS that use them; DONE last, with the totals. `packed` is a zlib stream of `raw` bytes.
// The CRC-32 covers the block's first 16 bytes and the packed bytes, so damage in either shows before
// anything is unpacked. A META block is a list of u16 tag, u32 length, bytes; unknown tags are
// passed over, so later versions can add some without a new version number.
#include "trace/dump.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <functional>

#include "base/file.h"
#include "base/log.h"
#include "trace/limits.h"

namespace rose::trace {

namespace {

static_assert(std::endian::native == std::endian::little, "records are copied as they are");

constexpr std::string_view kMagic = "ROSEDUMP";

struct FileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t zero;
};
static_assert(sizeof(FileHeader) == 16);

enum Kind : std::uint32_t {
  kMetaBlock = 0x4154454d,     // "META"
  kStringsBlock = 0x53525453,  // "STRS"
  kEventsBlock = 0x53545645,   // "EVTS"
  kDoneBlock = 0x454e4f44,     // "DONE"
};

struct BlockHeader {
  std::uint32_t kind;
  std::uint32_t items;
  std::uint32_t packed;
  std::uint32_t raw;
  std::uint32_t crc;
  std::uint32_t zero;
};
static_assert(sizeof(BlockHeader) == 24 && offsetof(BlockHeader, crc) == 16);

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
};
static_assert(sizeof(Totals) == 16);

constexpr std::size_t kBlockEvents = std::size_t{1} << 16;
constexpr std::size_t kMostBlockBytes = std::size_t{1} << 24;  // raw
static_assert(kBlockEvents * sizeof(Record) <= kMostBlockBytes);
// Deflate can squeeze 1000:1, so a small hostile file could ask for gigabytes. Writers store a block
// plainly rather than go beyond this ratio, readers refuse it: a file costs memory in proportion to its size.
constexpr std::size_t kMostRatio = 100;
// A block of strings is closed when it has grown past this; the last string may be a long one.
constexpr std::size_t kStringsBlockBytes = std::size_t{1} << 22;
static_assert(kStringsBlockBytes + kLongestString + 4 <= kMostBlockBytes);

// Retired numbers stay retired.
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
  kNodes = 15,      // once a name
  kAddresses = 16,  // once an address
};

template <typename T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::uint32_t block_crc(const BlockHeader& header, const void* packed) {
  uLong crc = ::crc32(0, reinterpret_cast<const Bytef*>(&header), offsetof(BlockHeader, crc));
  crc = ::crc32(crc, static_cast<const Bytef*>(packed), header.packed);
  return static_cast<std::uint32_t>(crc);
}

Record to_record(const Event& e) {
  Record r{};
  r.ts_ns = e.ts_ns;
  r.result = e.result;
  r.pid = e.pid;
  r.tid = e.tid;
  r.fd = e.fd;
  r.duration_ms = e.duration_ms;
  r.exit_code = e.exit_code;
  r.packets = e.packets;
  r.count = e.count;
  r.syscall = e.syscall;
  r.err = e.err;
  r.sport = e.sport;
  r.dport = e.dport;
  r.signal = e.signal;
  r.type = static_cast<std::uint8_t>(e.type);
  r.state = static_cast<std::uint8_t>(e.state);
  r.protocol = static_cast<std::uint8_t>(e.protocol);
  r.flags = static_cast<std::uint8_t>(e.flags);
  return r;
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
  e.syscall = r.syscall;
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

using Sink = std::function<Result<void>(std::string_view)>;

class Writer {
 public:
  Writer(const Trace& trace, const Sink& sink) : trace_(trace), sink_(sink), ids_(trace.strings.size(), 0) {}

  Result<void> write() {
    if (trace_.events.size() > kMostEvents)
      return fail(ErrorKind::input,
                  fmt::format("{} events are more than one dump holds ({})", trace_.events.size(), kMostEvents),
                  "keep a part of them: rose dump show --format jsonl has --node, --type, --since and --until");
    std::uint64_t refused = 0;
    for (const Event& event : trace_.events) {
      const auto fault = event_fault(event, trace_.strings.size());
      if (!fault) continue;
      if (refused == 0) log::warning("an event cannot be saved and is counted as lost: {}", *fault);
      ++refused;
    }
    FileHeader header{};
    std::memcpy(header.magic, kMagic.data(), kMagic.size());
    header.version = kDumpVersion;
    ROSE_CHECK(sink_({reinterpret_cast<const char*>(&header), sizeof(header)}));
    ROSE_CHECK(write_meta(refused));
    std::vector<Record> records;
    records.reserve(std::min(trace_.events.size(), kBlockEvents));
    std::string strings;
    std::uint32_t fresh = 0;
    for (const Event& event : trace_.events) {
      if (refused > 0 && event_fault(event, trace_.strings.size())) continue;
      Record record = to_record(event);
      const std::pair<StringId, std::uint32_t*> fields[] = {
          {event.node, &record.node},         {event.path, &record.path}, {event.path2, &record.path2},
          {event.peer, &record.peer},         {event.function, &record.function},
          {event.src, &record.src},           {event.dst, &record.dst}};
      for (const auto& [id, field] : fields) {
        if (id == 0) continue;
        if (ids_[id] == 0) {
          ROSE_CHECK(add_string(trace_.strings[id], strings));
          ids_[id] = static_cast<std::uint32_t>(++totals_.strings);
          ++fresh;
        }
        *field = ids_[id];
      }
      // Strings go ahead of the events that name them, so a long run of them may be written at any time.
      if (strings.size() >= kStringsBlockBytes) ROSE_CHECK(write_strings(strings, fresh));
      records.push_back(record);
      ++totals_.events;
      if (records.size() == kBlockEvents) {
        ROSE_CHECK(write_strings(strings, fresh));
        ROSE_CHECK(write_events(records));
      }
    }
    ROSE_CHECK(write_strings(strings, fresh));
    ROSE_CHECK(write_events(records));
    return write_block(kDoneBlock, 1, {reinterpret_cast<const char*>(&totals_), sizeof(totals_)});
  }

 private:
  Result<void> write_meta(std::uint64_t refused) {
    const Meta& meta = trace_.meta;
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
    // No reader accepts other times; better an unknown one than a dump that cannot be read.
    const auto time = [&](Tag tag, std::int64_t value) {
      number(tag, value >= 0 && value <= kLatestTs ? static_cast<std::uint64_t>(value) : 0);
    };
    for (const std::string* text : {&meta.node, &meta.host, &meta.boot_id}) {
      if (text->size() > kLongestString)
        return fail(ErrorKind::input, fmt::format("a name of {} bytes is longer than a dump holds ({})",
                                                  text->size(), kLongestString));
    }
    bytes(kNode, meta.node);
    bytes(kHost, meta.host);
    bytes(kBootId, meta.boot_id);
    time(kWallBase, meta.wall_base_ns);
    time(kMonotonicBase, meta.monotonic_base_ns);
    number(kWindow, meta.window);
    number(kMemory, meta.memory);
    number(kLost, meta.lost + refused);
    number(kSuppressed, meta.suppressed);
    time(kNetworkDelay, meta.network_delay_ns);
    time(kPause, meta.pause_ns);
    time(kWorkloadTs, meta.workload_ts);
    time(kBegin, meta.begin_ns);
    time(kEnd, meta.end_ns);
    for (const std::string& name : meta.nodes) bytes(kNodes, name);
    for (const std::string& address : meta.addresses) bytes(kAddresses, address);
    if (raw.size() > kMostBlockBytes)
      return fail(ErrorKind::input, fmt::format("the dump's header needs {} bytes, the most is {}", raw.size(),
                                                kMostBlockBytes));
    return write_block(kMetaBlock, items, raw);
  }

  Result<void> add_string(std::string_view text, std::string& strings) {
    string_bytes_ += text.size();
    if (text.size() > kLongestString)
      return fail(ErrorKind::input, fmt::format("a string of {} bytes is longer than a dump holds ({})",
                                                text.size(), kLongestString));
    if (string_bytes_ > kMostStringBytes || totals_.strings + 1 >= kMostStrings)
      return fail(ErrorKind::input,
                  fmt::format("the trace has more different strings than a dump holds ({} with {} bytes)",
                              kMostStrings - 1, kMostStringBytes));
    append(strings, static_cast<std::uint32_t>(text.size()));
    strings.append(text);
    return {};
  }

  Result<void> write_strings(std::string& strings, std::uint32_t& fresh) {
    if (fresh == 0) return {};
    ROSE_CHECK(write_block(kStringsBlock, fresh, strings));
    strings.clear();
    fresh = 0;
    return {};
  }

  Result<void> write_events(std::vector<Record>& records) {
    if (records.empty()) return {};
    ROSE_CHECK(write_block(kEventsBlock, static_cast<std::uint32_t>(records.size()),
                           {reinterpret_cast<const char*>(records.data()), records.size() * sizeof(Record)}));
    records.clear();
    return {};
  }

  Result<void> write_block(Kind kind, std::uint32_t items, std::string_view raw) {
    uLongf size = 0;
    const auto pack = [&](int level) {
      size = ::compressBound(raw.size());
      packed_.resize(sizeof(BlockHeader) + size);
      return ::compress2(reinterpret_cast<Bytef*>(packed_.data() + sizeof(BlockHeader)), &size,
                         reinterpret_cast<const Bytef*>(raw.data()), raw.size(), level) == Z_OK;
    };
    // Level 1: a dump is written while the system it watches is in trouble.
    if (!pack(1) || (raw.size() / kMostRatio > size && !pack(0)))
      return fail(ErrorKind::environment, "not enough memory to compress a dump");
    BlockHeader header{kind, items, static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(raw.size()), 0, 0};
    header.crc = block_crc(header, packed_.data() + sizeof(BlockHeader));
    std::memcpy(packed_.data(), &header, sizeof(header));
    return sink_({packed_.data(), sizeof(header) + size});
  }

  const Trace& trace_;
  const Sink& sink_;
  std::vector<std::uint32_t> ids_;  // of the file, by our own
  Totals totals_{};
  std::size_t string_bytes_ = 0;
  std::string packed_;
};

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string_view name)
      : data_(reinterpret_cast<const char*>(bytes.data())), size_(bytes.size()), name_(name) {}

  Result<ReadDump> read() {
    FileHeader header;
    if (size_ < sizeof(header) || std::memcmp(data_, kMagic.data(), kMagic.size()) != 0) return not_ours();
    std::memcpy(&header, data_, sizeof(header));
    if (header.version != kDumpVersion)
      return fail(ErrorKind::input,
                  fmt::format("{}: this is a dump of version {}, at byte 8; this rose reads version {}", name_,
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
    if (!have_meta_) return Unexpected(std::move(*result.damage));  // nothing at all is readable
    if (done && offset != size_)
      result.damage = damage(offset, fmt::format("{} bytes follow the end of the dump", size_ - offset));
    result.trace = std::move(trace_);
    sort_by_time(result.trace);
    return result;
  }

 private:
  using Fault = std::optional<std::string>;

  [[nodiscard]] Error damage(std::size_t offset, std::string what) const {
    return {ErrorKind::input, fmt::format("{}: damaged at byte {}: {}", name_, offset, what),
            trace_.events.empty() ? ""
                                  : fmt::format("the {} events before the damage are readable", trace_.events.size())};
  }

  [[nodiscard]] Unexpected not_ours() const {
    const std::string_view text(data_, std::min<std::size_t>(size_, 64));
    if (size_ == 0) return fail(ErrorKind::input, fmt::format("{}: not a rose dump, the file is empty", name_));
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin != std::string_view::npos && text[begin] == '{')
      return fail(ErrorKind::input, fmt::format("{}: not a rose dump, byte 0 does not begin one", name_),
                  "it looks like JSON Lines: turn it into a dump with rose dump import");
    if (text.starts_with(kMagic))
      return fail(ErrorKind::input, fmt::format("{}: damaged at byte {}: the file ends inside its header", name_, size_));
    return fail(ErrorKind::input, fmt::format("{}: not a rose dump, byte 0 does not begin one", name_),
                "a dump is written by rose trace, rose dump or rose dump import");
  }

  // Reads and checks the block at `offset`, moves past it, leaves its content in raw_.
  Fault next_block(std::size_t& offset, BlockHeader& block) {
    const std::size_t left = size_ - offset;
    if (left == 0) return "the file ends without the mark of a complete dump";
    if (left < sizeof(block)) return "the file ends inside a block header";
    std::memcpy(&block, data_ + offset, sizeof(block));
    if (block.kind != kMetaBlock && block.kind != kStringsBlock && block.kind != kEventsBlock &&
        block.kind != kDoneBlock)
      return fmt::format("no block of a known kind begins here (found {:#010x})", block.kind);
    if (block.raw > kMostBlockBytes)
      return fmt::format("a block claims {} bytes, the most is {}", block.raw, kMostBlockBytes);
    if (block.raw / kMostRatio > block.packed)
      return fmt::format("a block claims {} bytes from {} packed ones", block.raw, block.packed);
    if (block.packed > left - sizeof(block))
      return fmt::format("the file ends inside a block ({} of {} bytes)", left - sizeof(block), block.packed);
    const char* packed = data_ + offset + sizeof(block);
    if (block.zero != 0 || block_crc(block, packed) != block.crc) return "a block's checksum does not match";
    raw_.resize(block.raw);
    uLongf size = block.raw;
    uLong used = block.packed;
    // With nothing to unpack zlib still wants somewhere to write.
    Bytef nothing = 0;
    const int rc = ::uncompress2(raw_.empty() ? &nothing : reinterpret_cast<Bytef*>(raw_.data()), &size,
                                 reinterpret_cast<const Bytef*>(packed), &used);
    if (rc != Z_OK || size != block.raw || used != block.packed) return "a block does not unpack";
    offset += sizeof(block) + block.packed;
    return std::nullopt;
  }

  Fault take(const BlockHeader& block, bool& done) {
    if ((block.kind == kMetaBlock) == have_meta_) return "blocks are out of order";
    switch (block.kind) {
      case kMetaBlock: return take_meta(block.items);
      case kStringsBlock: return take_strings(block.items);
      case kEventsBlock: return take_events(block.items);
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
      if (!take_field(meta, tag, std::string_view(raw_).substr(at, length)))
        return fmt::format("field {} of the header is not valid", tag);
      at += length;
    }
    if (at != raw_.size()) return "the header is longer than its fields";
    trace_.meta = std::move(meta);
    have_meta_ = true;
    return std::nullopt;
  }

  static bool take_field(Meta& meta, std::uint16_t tag, std::string_view value) {
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
      default: return true;  // of a later rose
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
      string_bytes_ += length;
      if (string_bytes_ > kMostStringBytes || trace_.strings.size() >= kMostStrings) return "too many strings";
      const std::size_t expected = trace_.strings.size();
      // Writers give each string once; a repeated one would shift all ids that follow.
      if (trace_.strings.intern(std::string_view(raw_).substr(at, length)) != expected)
        return "a string is given twice";
      at += length;
    }
    if (at != raw_.size()) return "a block of strings is longer than its strings";
    return std::nullopt;
  }

  Fault take_events(std::uint32_t items) {
    if (raw_.size() != std::uint64_t{items} * sizeof(Record)) return "a block of events has the wrong size";
    if (items > kMostEvents - trace_.events.size()) return "too many events";
    const std::size_t before = trace_.events.size();
    for (std::uint32_t i = 0; i < items; ++i) {
      Record record;
      std::memcpy(&record, raw_.data() + std::size_t{i} * sizeof(Record), sizeof(Record));
      const Event event = to_event(record);
      if (auto fault = event_fault(event, trace_.strings.size())) {
        trace_.events.resize(before);  // only whole blocks count
        return fmt::format("event {} of a block is not valid: {}", i, *fault);
      }
      trace_.events.push_back(event);
    }
    return std::nullopt;
  }

  Fault take_totals() {
    Totals totals;
    if (raw_.size() != sizeof(totals)) return "the closing block has the wrong size";
    std::memcpy(&totals, raw_.data(), sizeof(totals));
    if (totals.events != trace_.events.size() || totals.strings != trace_.strings.size() - 1)
      return fmt::format("the dump should hold {} events and {} strings, but holds {} and {}", totals.events,
                         totals.strings, trace_.events.size(), trace_.strings.size() - 1);
    return std::nullopt;
  }

  const char* data_;
  std::size_t size_;
  std::string_view name_;
  Trace trace_;
  bool have_meta_ = false;
  std::size_t string_bytes_ = 0;
  std::string raw_;
};

}  // namespace

Result<void> write_dump(const Trace& trace, const std::filesystem::path& path) {
  ROSE_TRY(AtomicFile file, AtomicFile::create(path));
  const Sink sink = [&file](std::string_view bytes) { return file.write(bytes); };
  ROSE_CHECK(Writer(trace, sink).write());
  return file.commit();
}

Result<std::string> dump_to_bytes(const Trace& trace) {
  std::string bytes;
  const Sink sink = [&bytes](std::string_view more) -> Result<void> {
    bytes.append(more);
    return {};
  };
  ROSE_CHECK(Writer(trace, sink).write());
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
