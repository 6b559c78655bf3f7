// The layout of the file through which an agent reports stacks. Each JVM has one file, beside its state file; the agent
// maps it. It contains a header with the request, then slots, each with the frames of a thread as numbers, then the
// names for these numbers. Names are only ever appended.
#pragma once

#include <cstdint>

namespace rose::jvm {

inline constexpr std::uint64_t kStacksMagic = 0x31306b7473736f72;  // "rosstk01"
inline constexpr std::uint32_t kStackFrames = 96;  // at most this many frames of a thread, the innermost ones
// at most this many threads have a slot, which contains the thread's stack at the last location that it visited
inline constexpr std::uint32_t kStackThreads = 256;
// at most this many stacks are kept without being overwritten: those at injected exceptions, and of stopped threads
inline constexpr std::uint32_t kStackKept = 255;
// the first slot holds the answer to a request
inline constexpr std::uint32_t kStackSlots = 1 + kStackThreads + kStackKept;
inline constexpr std::uint32_t kStackNames = 16384;  // number of frame names
inline constexpr std::uint32_t kStackText = 500;
inline constexpr char kAgentThread[] = "rose\n";  // as in /proc/TID/comm

enum class StackAnswer : std::uint32_t {
  recorded = 1,
  stranger = 2,  // the thread is not a Java thread
  refused = 3,   // the JVM refused to report the stack
};

struct StacksHead {
  std::uint64_t magic = kStacksMagic;
  std::int32_t pid = 0;        // in the JVM's PID namespace
  std::uint32_t live = 0;      // 1: the agent answers requests
  std::uint32_t asked = 0;     // incremented by rose; a futex
  std::int32_t asked_tid = 0;  // in the JVM's PID namespace
  std::uint32_t begun = 0;     // value of `asked` of the request that is being processed
  std::uint32_t answered = 0;  // value of `asked` of the request that was answered last; a futex
  std::uint32_t answer = 0;    // StackAnswer
  std::uint32_t names = 0;     // number of names
  std::uint32_t kept = 0;      // number of slots in use among the kStackKept last ones
  std::uint32_t padding = 0;
  std::uint8_t reserved[4096 - 48] = {};
};
static_assert(sizeof(StacksHead) == 4096);

struct StackSlot {
  std::int64_t at_ns = 0;   // CLOCK_MONOTONIC
  std::int32_t tid = 0;     // in the JVM's PID namespace; 0: unused
  std::uint32_t count = 0;  // written last
  std::uint32_t more = 0;   // 1: outer frames did not fit
  std::uint32_t reserved = 0;
  std::uint32_t frames[kStackFrames] = {};  // 1 + index of the name, innermost first; 0: unknown
};
static_assert(sizeof(StackSlot) == 24 + 4 * kStackFrames);

struct StackName {
  std::uint32_t line = 0;      // 0: unknown
  std::uint16_t function = 0;  // length of the function's name, which the name of the file follows
  std::uint16_t file = 0;
  std::uint32_t reserved = 0;
  char text[kStackText] = {};
};
static_assert(sizeof(StackName) == 512);

inline constexpr std::uint64_t kStacksNamesAt = sizeof(StacksHead) + std::uint64_t{kStackSlots} * sizeof(StackSlot);
inline constexpr std::uint64_t kStacksBytes = kStacksNamesAt + std::uint64_t{kStackNames} * sizeof(StackName);

}  // namespace rose::jvm
