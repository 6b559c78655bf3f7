// The stacks of threads in a node's JVMs. They are requested from a running JVM, or read from what a JVM recorded
// (jvm/stacks_layout.h). Nodes can write these files, so their content is not trusted.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "jvm/stacks_layout.h"

namespace rose::jvm {

// How long rose waits for the stack of a thread that it holds. kBeginNs: until the agent begins to process the request;
// on a busy machine, the agent waits to be scheduled. kAskNs: from then until the answer. A held thread that executes
// the JVM's own code (for example, to load a class) never answers, because the JVM reports its stack only after the
// thread has left that code.
inline constexpr std::int64_t kAskNs = 100'000'000, kBeginNs = 500'000'000;

struct JavaFrame {
  std::string function;  // "org.x.Store.append"; "" if unknown
  std::string file;      // "Store.java"; "" if unknown
  int line = 0;          // 0: unknown
};

struct JavaStack {
  std::int64_t at_ns = 0;  // CLOCK_MONOTONIC
  int tid = 0;             // in the JVM's PID namespace
  // true: the stack of a thread that threw an exception or was stopped; false: the stack at the location that the
  // thread reached last
  bool kept = false;
  std::vector<JavaFrame> frames;  // innermost first
  std::string missing;            // why frames are missing; "" if none are
};

// The name of the stacks file if the process maps one, from the text of /proc/PID/maps: "0123456789abcdef.stacks". ""
// if it maps none.
[[nodiscard]] std::string stacks_file(std::string_view maps);
// Requests the stack of a thread from the JVM with this file. `tid` is in the host's PID namespace. Only one thread of
// rose may call this for a file at a time.
[[nodiscard]] JavaStack ask(const std::filesystem::path& file, pid_t tid);
// The stacks that JVMs recorded in their files in this folder.
[[nodiscard]] std::vector<JavaStack> noted(const std::filesystem::path& folder);
// Parses the bytes of one such file.
[[nodiscard]] std::vector<JavaStack> parse_noted(std::string_view bytes);

// The recorded stack of a thread at the time of an event; nullptr if there is none. `tid` is in the thread's own PID
// namespace.
[[nodiscard]] const JavaStack* stack_of(const std::vector<JavaStack>& stacks, int tid, std::int64_t at_ns);

}  // namespace rose::jvm
