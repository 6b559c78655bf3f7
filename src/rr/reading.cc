#include "rr/reading.h"

namespace rose::rr {
namespace {

// Reads the field of the header at an offset in FileHead. The field is copied, because the bytes may be misaligned.
template <typename T>
T field(const char* bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
}

std::string_view text(const char* bytes, std::size_t room) {
  std::size_t length = 0;
  while (length < room && bytes[length] != '\0') ++length;
  return {bytes, length};
}

}  // namespace

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::value: return "value";
    case Kind::lock: return "lock";
    case Kind::compare: return "compare";
    case Kind::checkpoint: return "checkpoint";
    case Kind::end: return "end";
  }
  return "?";
}

std::uint64_t Reading::ring_bytes(const char* head, std::uint64_t file_bytes, const char** why) {
  const auto no = [&](const char* reason) {
    *why = reason;
    return std::uint64_t{0};
  };
  if (file_bytes < kHeadBytes) return no("it is too short to be a recording");
  if (std::memcmp(head, kMagic, sizeof kMagic) != 0) return no("it is not a recording of librose-rr");
  if (field<std::uint32_t>(head, offsetof(FileHead, version)) != kVersion)
    return no("it is a recording of another version; this rose reads version 1");
  const auto ring = field<std::uint64_t>(head, offsetof(FileHead, ring_bytes));
  if (field<std::uint32_t>(head, offsetof(FileHead, head_bytes)) != kHeadBytes || ring < kLeastRing ||
      ring > kMostRing || (ring & (ring - 1)) != 0)
    return no("its head is damaged");
  if (file_bytes != kHeadBytes + ring)
    return no(
        "its size differs from that in its header: it is truncated or "
        "incomplete");
  return ring;
}

const char* Reading::open(const char* bytes, std::uint64_t file_bytes) {
  const char* why = nullptr;
  facts_ = Facts{};
  wasted_ = 0;
  facts_.ring_bytes = ring_bytes(bytes, file_bytes, &why);
  if (facts_.ring_bytes == 0) return why;
  ring_ = bytes + kHeadBytes;
  facts_.salt = field<std::uint64_t>(bytes, offsetof(FileHead, salt));
  facts_.began_ns = field<std::int64_t>(bytes, offsetof(FileHead, began_ns));
  facts_.pid = field<std::uint32_t>(bytes, offsetof(FileHead, pid));
  facts_.node = text(bytes + offsetof(FileHead, node), sizeof FileHead::node);
  facts_.host = text(bytes + offsetof(FileHead, host), sizeof FileHead::host);
  facts_.program = text(bytes + offsetof(FileHead, program), sizeof FileHead::program);
  facts_.reserved = field<std::uint64_t>(bytes, offsetof(FileHead, reserved));
  facts_.lost = field<std::uint64_t>(bytes, offsetof(FileHead, lost));
  if (facts_.reserved % 8 != 0 || facts_.reserved > std::uint64_t{1} << 62) return "its head is damaged";
  look();
  return nullptr;
}

bool Reading::at(std::uint64_t position, Record& record) const {
  if (facts_.reserved - position < sizeof(RecordHead)) return false;
  const char* bytes = ring_ + (position & (facts_.ring_bytes - 1));
  RecordHead head;
  std::memcpy(&head, bytes, sizeof head);
  if (head.sum == 0 || head.position != position) return false;
  if (head.bytes < sizeof head || head.bytes % 8 != 0 || head.bytes > most_record(facts_.ring_bytes) ||
      head.bytes > facts_.reserved - position)
    return false;
  if (head.key_bytes == 0 || head.data_bytes > head.bytes ||
      record_bytes(head.key_bytes, head.data_bytes) != head.bytes)
    return false;
  if (head.kind < Kind::value || head.kind > Kind::end || (head.flags & ~kDigest) != 0) return false;
  if ((head.flags & kDigest) != 0 && head.data_bytes != sizeof(Digest)) return false;
  // A hostile file may contain many headers that each require a checksum over much data. In a valid file, only few
  // headers have a checksum that does not match, so give up after many mismatches.
  if (wasted_ > 4 * facts_.ring_bytes) return false;
  if (sum_of(reinterpret_cast<const RecordHead*>(bytes), facts_.salt) != head.sum) {
    wasted_ += head.bytes;
    return false;
  }
  record = {position,
            head.time_ns,
            head.thread,
            head.flags,
            head.kind,
            {bytes + sizeof head, head.key_bytes},
            {bytes + sizeof head + head.key_bytes, head.data_bytes}};
  return true;
}

// The position of the first record at or after `position`. If there is none, `reserved`. A record is recognised because
// it contains its own position.
std::uint64_t Reading::find(std::uint64_t position) const {
  Record ignored;
  while (position < facts_.reserved && !at(position, ignored)) position += 8;
  return position < facts_.reserved ? position : facts_.reserved;
}

bool Reading::next(std::uint64_t& position, Record& record) const {
  if (position < facts_.begin) position = facts_.begin;
  if (position >= facts_.end) return false;
  if (!at(position, record)) {
    position = find(position);
    if (position >= facts_.end || !at(position, record)) return false;
  }
  position += record_bytes(record.key.size(), record.data.size());
  return true;
}

// Determines where the recording ends. A gap is normally the space of a call that had not returned when the process was
// killed. The thread never continued after such a call, so the other records are replayed without it. If, however, the
// number of completed bytes shows that there was a complete record in the gap, the recording is damaged. Everything
// from the gap on is then ignored.
void Reading::look() {
  const std::uint64_t segment = facts_.ring_bytes / kSegments;
  const std::uint64_t last = facts_.reserved / segment;
  facts_.overwritten = last >= kSegments;
  const std::uint64_t oldest = facts_.overwritten ? (last - kSegments + 1) * segment : 0;
  facts_.begin = find(oldest);

  std::uint64_t found[kSegments] = {};
  const auto count = [&](std::uint64_t from, std::uint64_t to) {
    while (from < to) {
      const std::uint64_t n = from / segment;
      const std::uint64_t part = (to < (n + 1) * segment ? to : (n + 1) * segment) - from;
      found[n % kSegments] += part;
      from += part;
    }
  };
  // The remaining part may begin with the rest of a record whose beginning was overwritten. These bytes count as
  // complete.
  if (facts_.overwritten) count(oldest, facts_.begin);
  Record record;
  for (std::uint64_t position = facts_.begin; position < facts_.reserved;) {
    if (!at(position, record)) {
      position = find(position + 8);
      continue;
    }
    const std::uint64_t bytes = record_bytes(record.key.size(), record.data.size());
    count(position, position + bytes);
    position += bytes;
  }
  const auto missing = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t n = from / segment; n <= (to - 1) / segment; ++n) {
      const auto all = field<std::uint64_t>(ring_ - kHeadBytes,
                                            offsetof(FileHead, finished) + n % kSegments * sizeof(std::uint64_t));
      const std::uint64_t before = n / kSegments * segment;
      if (all > before && all - before > found[n % kSegments]) return true;
    }
    return false;
  };
  std::uint64_t position = facts_.begin;
  while (position < facts_.reserved) {
    if (!at(position, record)) {
      const std::uint64_t behind = find(position + 8);
      if (missing(position, behind)) {
        facts_.damaged = true;
        break;
      }
      ++facts_.unfinished;
      if (behind == facts_.reserved) break;
      position = behind;
      continue;
    }
    position += record_bytes(record.key.size(), record.data.size());
    ++facts_.records;
    facts_.end = position;
    if (record.kind == Kind::end) {
      facts_.ended = true;
      break;
    }
  }
  if (facts_.records == 0) facts_.end = facts_.begin;
}

}  // namespace rose::rr
