// The file by which an agent tells rose what it does: one for each JVM, mapped by both, in the run's folder. A head,
// then records of fixed size that are only ever added; `used` is written last. It outlives a JVM that is killed.
#pragma once

#include <cstdint>

namespace rose::jvm {

inline constexpr std::uint64_t kStateMagic = 0x32306d766a736f72;  // "rosjvm02"
inline constexpr std::uint32_t kStateRecords = 8192;              // at most
inline constexpr std::uint32_t kStateMethods = 4096;              // of them
inline constexpr std::uint32_t kStateEscapes = 1024;              // exceptions that leave methods, beside these
inline constexpr std::uint32_t kStateText = 448;
inline constexpr std::uint32_t kNoEntry = 0xffffffff;

struct StateHead {
  std::uint64_t magic = kStateMagic;
  std::uint32_t record_bytes = 0;
  std::uint32_t used = 0;
  std::int32_t pid = 0;          // as the JVM sees it
  std::int32_t breakpoints = 0;  // 1: it may set them; else why not is among the notes
  char version[64] = {};         // "17.0.15"
  std::uint8_t reserved[4096 - 88] = {};
};
static_assert(sizeof(StateHead) == 4096);

enum class RecordKind : std::uint32_t {
  note = 1,    // something that people should hear
  place = 2,   // where a schedule's condition or fault stands: `entry` says which, the text where it was found
  method = 3,  // one whose entries are watched, by name
  asked = 4,   // a value that is asked for: `entry` is its fetch; with kAskedPlaced the method that it is read in, '|'
               // and its type, else why it isn't
};

enum MethodState : std::uint32_t {
  kMethodWatched = 1,  // now
  kMethodUnknown = 2,  // not watched for long enough to say how often it is entered
};

enum AskedState : std::uint32_t { kAskedPlaced = 1 };

struct StateRecord {
  std::uint32_t kind = 0;
  std::uint32_t entry = 0;
  std::uint32_t length = 0;  // of the text
  char text[kStateText] = {};
  std::uint32_t flags = 0;   // of a method, as the rest
  std::uint64_t count = 0;   // entries that were seen
  std::uint64_t unseen = 0;  // thousandths of entries that there probably were while it was let go of
  std::uint8_t pad[32] = {};
};
static_assert(sizeof(StateRecord) == 512);

}  // namespace rose::jvm
