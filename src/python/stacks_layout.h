// The file in which a Python process stores the functions that its threads are executing:
// RUN/rose.python/NODE/PID.stacks. It is shared memory, so that it can be read after the process was killed. The
// process may write anything into it.
#pragma once

#include <cstdint>

namespace rose::python {

inline constexpr char kStacksMagic[8] = {'R', 'O', 'S', 'E', 'P', 'Y', '1', 0};
inline constexpr std::uint32_t kMostFunctions = 4096;  // numbers of functions are below this; 0 means no function
inline constexpr std::uint32_t kThreads = 1024;        // the index of a thread is its id modulo this
inline constexpr std::uint32_t kFrames = 30;  // at most this many frames of a thread's stack are kept, outermost first

struct StackFunction {
  char name[160];  // "spool.Spool.compact"; cut to fit
  char file[92];
  std::uint32_t line;  // the line where the function begins
};
struct StackThread {
  std::uint32_t tid;
  std::uint32_t depth;  // depth of the stack, which may be larger than kFrames
  std::uint32_t functions[kFrames];
};
struct StacksFile {
  char magic[8];
  std::uint32_t functions;  // number of the next function
  std::uint32_t pad;
  StackFunction function[kMostFunctions];
  StackThread thread[kThreads];
};
static_assert(sizeof(StackFunction) == 256 && sizeof(StackThread) == 128);

}  // namespace rose::python
