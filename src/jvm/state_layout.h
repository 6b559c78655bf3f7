// The layout of the file in which an agent reports its state: one per JVM, in the run's folder. A header and records of
// fixed size that are only ever appended; `used` is written last. The file survives a JVM that is killed.
#pragma once

#include <cstdint>

namespace rose::jvm {

inline constexpr std::uint64_t kStateMagic = 0x32306d766a736f72;  // "rosjvm02"
inline constexpr std::uint32_t kStateRecords = 8192;              // at most
inline constexpr std::uint32_t kStateMethods = 4096;              // at most, of all records
inline constexpr std::uint32_t kStateEscapes = 1024;              // exceptions that leave methods, in addition
inline constexpr std::uint32_t kStateText = 448;
inline constexpr std::uint32_t kNoEntry = 0xffffffff;

struct StateHead {
  std::uint64_t magic = kStateMagic;
  std::uint32_t record_bytes = 0;
  std::uint32_t used = 0;
  std::int32_t pid = 0;          // in the JVM's PID namespace
  std::int32_t breakpoints = 0;  // 1: it may set them; otherwise the reason is among the notes
  char version[64] = {};         // "17.0.15"
  std::uint8_t reserved[4096 - 88] = {};
};
static_assert(sizeof(StateHead) == 4096);

enum class RecordKind : std::uint32_t {
  note = 1,    // a message for the user
  place = 2,   // where a condition or fault of the schedule was found: `entry` identifies it, the text names the method
  method = 3,  // a method whose entries are watched
  // A requested value: `entry` is its number. With kAskedPlaced the text is the method, '|' and its type, otherwise the
  // reason why it is not read.
  asked = 4,
};

enum MethodState : std::uint32_t {
  kMethodWatched = 1,  // at present
  kMethodUnknown = 2,  // not watched long enough to know its rate
};

enum AskedState : std::uint32_t { kAskedPlaced = 1 };

struct StateRecord {
  std::uint32_t kind = 0;
  std::uint32_t entry = 0;
  std::uint32_t length = 0;  // length of the text
  char text[kStateText] = {};
  std::uint32_t flags = 0;   // the following members are for methods
  std::uint64_t count = 0;   // observed entries
  std::uint64_t unseen = 0;  // estimated entries while it was detached, in thousandths
  std::uint8_t pad[32] = {};
};
static_assert(sizeof(StateRecord) == 512);

}  // namespace rose::jvm
