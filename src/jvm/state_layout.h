// The layout of the file in which an agent reports its state. Each JVM has one file, in the run's folder. It contains a
// header, then records of fixed size. Records are only ever appended, and the header's `used` is written last. The file
// remains when the JVM is killed.
#pragma once

#include <cstdint>

namespace rose::jvm {

inline constexpr std::uint64_t kStateMagic = 0x32306d766a736f72;  // "rosjvm02"
inline constexpr std::uint32_t kStateRecords = 8192;              // the most records in a file
inline constexpr std::uint32_t kStateMethods = 4096;              // at most this many of these records are methods
// at most this many further records are exceptions that leave methods
inline constexpr std::uint32_t kStateEscapes = 1024;
inline constexpr std::uint32_t kStateText = 448;
inline constexpr std::uint32_t kNoEntry = 0xffffffff;

struct StateHead {
  std::uint64_t magic = kStateMagic;
  std::uint32_t record_bytes = 0;
  std::uint32_t used = 0;
  std::int32_t pid = 0;          // in the JVM's PID namespace
  std::int32_t breakpoints = 0;  // 1: the agent may set breakpoints; otherwise the reason is among the notes
  char version[64] = {};         // "17.0.15"
  std::uint8_t reserved[4096 - 88] = {};
};
static_assert(sizeof(StateHead) == 4096);

enum class RecordKind : std::uint32_t {
  note = 1,    // a message for the user
  place = 2,   // where a condition or fault of the schedule was found: `entry` identifies it, the text names the method
  method = 3,  // a method whose entries are watched
  // A requested value. `entry` is the number of the request. With kAskedPlaced, the text is the method, '|' and the
  // value's type; otherwise, it is the reason why the value is not read.
  asked = 4,
};

enum MethodState : std::uint32_t {
  kMethodWatched = 1,  // the method is being watched at present
  kMethodUnknown = 2,  // the method was not watched long enough to know its rate
};

enum AskedState : std::uint32_t { kAskedPlaced = 1 };

struct StateRecord {
  std::uint32_t kind = 0;
  std::uint32_t entry = 0;
  std::uint32_t length = 0;  // length of the text
  char text[kStateText] = {};
  std::uint32_t flags = 0;   // MethodState or AskedState; the members below are used for methods only
  std::uint64_t count = 0;   // number of entries that were observed
  std::uint64_t unseen = 0;  // estimated number of entries while the method was detached, in thousandths
  std::uint8_t pad[32] = {};
};
static_assert(sizeof(StateRecord) == 512);

}  // namespace rose::jvm
