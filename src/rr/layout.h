// The format of a recording: a header of one page, then a ring of records. The library writes it to memory that is
// mapped from the file; reading.h reads it. Positions only increase. A record is stored at its position modulo the size
// of the ring, and may continue at the beginning of the ring.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

namespace rose::rr {

inline constexpr char kMagic[8] = {'R', 'O', 'S', 'E', 'R', 'E', 'C', '\n'};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kHeadBytes = 4096;
inline constexpr std::size_t kSegments = 64;
inline constexpr std::uint64_t kLeastRing = 64 << 10;  // the size of a ring is a power of two between these two
inline constexpr std::uint64_t kMostRing = std::uint64_t{4} << 30;
inline constexpr std::size_t kMostKey = 255;
inline constexpr std::size_t kWholeCompared = 64;  // in bytes; for longer values that are compared, a Digest is stored

struct FileHead {
  char magic[8];  // written last
  std::uint32_t version;
  std::uint32_t head_bytes;  // offset of the ring in the file
  std::uint64_t ring_bytes;
  // A random number on which all checksums depend, so that bytes of another recording are not taken for a record of
  // this one.
  std::uint64_t salt;
  std::int64_t began_ns;  // wall clock
  std::uint32_t pid;
  std::uint32_t pad;
  char node[64];  // the value of ROSE_NODE, or ""; all strings end with NUL
  char host[64];
  char program[256];  // target of /proc/self/exe
  char pad2[2048 - 48 - 384];
  // The position of the next record. A writer adds the size of its record with an atomic operation, and the previous
  // value becomes the position of the record. The positions determine the order of the records.
  alignas(64) std::atomic<std::uint64_t> reserved;
  alignas(64) std::atomic<std::uint64_t> lost;  // records that could not be written
  // For each segment, that is, each 64th of the ring: the number of bytes of completed records, over all rounds (passes
  // through the ring). A segment is reused only when all its records of the previous round are complete. In a finished
  // recording, a gap usually means that a call never returned. If this number shows that there was a complete record in
  // the gap, the recording is damaged.
  alignas(64) std::atomic<std::uint64_t> finished[kSegments];
  char pad3[kHeadBytes - 2048 - 128 - 8 * kSegments];
};
static_assert(sizeof(FileHead) == kHeadBytes && std::atomic<std::uint64_t>::is_always_lock_free);

enum class Kind : std::uint8_t { value = 1, lock = 2, compare = 3, checkpoint = 4, end = 5 };
enum Flags : std::uint16_t { kDigest = 1 };  // a Digest is stored instead of the data

struct RecordHead {
  std::uint32_t sum;    // checksum of everything after it; written last; 0: the record is incomplete
  std::uint32_t bytes;  // size of the record including this header, a multiple of 8
  std::uint64_t position;
  std::int64_t time_ns;  // wall clock, with a resolution of a few milliseconds
  std::uint32_t thread;  // thread id in the kernel
  std::uint16_t flags;
  Kind kind;
  std::uint8_t key_bytes;
  std::uint32_t data_bytes;  // number of stored bytes, which follow the key
  std::uint32_t pad;
};
static_assert(sizeof(RecordHead) == 40);

struct Digest {
  std::uint64_t size;
  std::uint64_t hash;
};

inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 32);
}
// `bytes` may be any number. The last word is padded with zeros.
inline std::uint64_t hash_of(const void* data, std::size_t bytes, std::uint64_t hash) {
  const char* at = static_cast<const char*>(data);
  for (; bytes >= 8; at += 8, bytes -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    hash = mixed(hash, word);
  }
  std::uint64_t word = 0;
  if (bytes != 0) std::memcpy(&word, at, bytes);
  return mixed(mixed(hash, word), bytes);
}
// The checksum of a record that is contiguous in memory.
inline std::uint32_t sum_of(const RecordHead* record, std::uint64_t salt) {
  const std::uint64_t hash =
      hash_of(reinterpret_cast<const char*>(record) + sizeof record->sum, record->bytes - sizeof record->sum, salt);
  const auto sum = static_cast<std::uint32_t>(hash ^ (hash >> 32));
  return sum == 0 ? 1 : sum;
}
constexpr std::uint64_t record_bytes(std::uint64_t key, std::uint64_t data) {
  return (sizeof(RecordHead) + key + data + 7) & ~std::uint64_t{7};
}
constexpr std::uint64_t most_record(std::uint64_t ring) { return ring / 4; }

}  // namespace rose::rr
