// The file by which an agent tells rose where its JVM's threads are: one for each JVM, mapped by the agent, beside its
// state file. A head, by which rose asks; slots, each the frames of one thread as numbers; and what the numbers stand
// for, only ever added to.
#pragma once

#include <cstdint>

namespace rose::jvm {

inline constexpr std::uint64_t kStacksMagic = 0x31306b7473736f72;  // "rosstk01"
inline constexpr std::uint32_t kStackFrames = 96;                  // of one thread, the innermost
inline constexpr std::uint32_t kStackThreads =
    256;  // threads that have a slot of their own, where each place that they come by is noted
inline constexpr std::uint32_t kStackKept =
    255;  // stacks that are kept for good: of exceptions, and of threads that were stopped at a place
inline constexpr std::uint32_t kStackSlots =
    1 + kStackThreads + kStackKept;                  // the first one is the answer to what is asked
inline constexpr std::uint32_t kStackNames = 16384;  // frames by name
inline constexpr std::uint32_t kStackText = 500;
inline constexpr char kAgentThread[] = "rose\n";  // of /proc/TID/comm

enum class StackAnswer : std::uint32_t {
  told = 1,
  stranger = 2,  // no thread of Java's
  refused = 3,   // by the JVM
};

struct StacksHead {
  std::uint64_t magic = kStacksMagic;
  std::int32_t pid = 0;        // as the JVM sees it
  std::uint32_t live = 0;      // 1: somebody answers
  std::uint32_t asked = 0;     // rose counts it up; a futex
  std::int32_t asked_tid = 0;  // as the JVM sees it
  std::uint32_t begun = 0;     // what `asked` is that is looked into
  std::uint32_t answered = 0;  // what `asked` was; a futex
  std::uint32_t answer = 0;    // StackAnswer
  std::uint32_t names = 0;     // that are there
  std::uint32_t kept = 0;      // slots of the last part that are in use
  std::uint32_t padding = 0;
  std::uint8_t reserved[4096 - 48] = {};
};
static_assert(sizeof(StacksHead) == 4096);

struct StackSlot {
  std::int64_t at_ns = 0;   // of the monotonic clock
  std::int32_t tid = 0;     // as the JVM sees it; 0: nobody's
  std::uint32_t count = 0;  // written last
  std::uint32_t more = 0;   // 1: there are outer frames that did not fit
  std::uint32_t reserved = 0;
  std::uint32_t frames[kStackFrames] = {};  // 1 + a name's number, the innermost first; 0: nobody knows
};
static_assert(sizeof(StackSlot) == 24 + 4 * kStackFrames);

struct StackName {
  std::uint32_t line = 0;      // 0: unknown
  std::uint16_t function = 0;  // bytes of the text; behind them the file's
  std::uint16_t file = 0;
  std::uint32_t reserved = 0;
  char text[kStackText] = {};
};
static_assert(sizeof(StackName) == 512);

inline constexpr std::uint64_t kStacksNamesAt = sizeof(StacksHead) + std::uint64_t{kStackSlots} * sizeof(StackSlot);
inline constexpr std::uint64_t kStacksBytes = kStacksNamesAt + std::uint64_t{kStackNames} * sizeof(StackName);

}  // namespace rose::jvm
