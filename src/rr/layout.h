// The form of a recording: a head of one page, then a ring of records. Written by the library into memory that is
// mapped from the file, read by reading.h. Positions grow for ever; a record lies at its position modulo the ring's
// size and may go on at the ring's beginning.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

namespace rose::rr {

inline constexpr char kMagic[8] = {'R', 'O', 'S', 'E', 'R', 'E', 'C', '\n'};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kHeadBytes = 4096;
inline constexpr std::size_t kSegments = 64;
inline constexpr std::uint64_t kLeastRing = 64 << 10;  // both are powers of two, and so is every size between them
inline constexpr std::uint64_t kMostRing = std::uint64_t{4} << 30;
inline constexpr std::size_t kMostKey = 255;
inline constexpr std::size_t kWholeCompared = 64;  // bytes; of more, a Digest is kept

struct FileHead {
  char magic[8];  // written last
  std::uint32_t version;
  std::uint32_t head_bytes;  // where the ring begins
  std::uint64_t ring_bytes;
  std::uint64_t salt;  // goes into every checksum: bytes of another recording inside of a record are none of this one's
  std::int64_t began_ns;  // wall clock
  std::uint32_t pid;
  std::uint32_t pad;
  char node[64];  // ROSE_NODE, "" without; these end with 0
  char host[64];
  char program[256];  // what /proc/self/exe led to
  char pad2[2048 - 48 - 384];
  alignas(64) std::atomic<std::uint64_t> reserved;  // the position of the next record; adding to it gives a record its
                                                    // place in the order
  alignas(64) std::atomic<std::uint64_t> lost;      // records that were given up
  // Bytes of finished records in each 64th of the ring, over all rounds: it is written to again only once all of the
  // last round are finished, and a hole in it is a call that never returned only if nothing is missing from the count.
  alignas(64) std::atomic<std::uint64_t> finished[kSegments];
  char pad3[kHeadBytes - 2048 - 128 - 8 * kSegments];
};
static_assert(sizeof(FileHead) == kHeadBytes && std::atomic<std::uint64_t>::is_always_lock_free);

enum class Kind : std::uint8_t { value = 1, lock = 2, compare = 3, checkpoint = 4, end = 5 };
enum Flags : std::uint16_t { kDigest = 1 };  // a Digest stands for the data

struct RecordHead {
  std::uint32_t sum;    // of all behind it; stored last. 0: not finished
  std::uint32_t bytes;  // of the record with this head, a multiple of 8
  std::uint64_t position;
  std::int64_t time_ns;  // wall clock, to some milliseconds
  std::uint32_t thread;  // the kernel's id
  std::uint16_t flags;
  Kind kind;
  std::uint8_t key_bytes;
  std::uint32_t data_bytes;  // what is kept; it stands behind the key
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
// `bytes` of any length; the last word is filled with zeros.
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
// Of a record that is whole in memory.
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
