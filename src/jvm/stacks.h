// The stacks of threads in a node's JVMs: requested from a running JVM, or read from what it recorded
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

// How long a request waits while rose holds a thread. A thread inside the JVM (for example loading a class) is reported
// only after it continues. kBeginNs is longer, because on a busy machine it takes time until the agent is scheduled.
inline constexpr std::int64_t kAskNs = 100'000'000, kBeginNs = 500'000'000;

struct JavaFrame {
  std::string function;  // "org.x.Store.append"; "" if unknown
  std::string file;      // "Store.java"; "" if unknown
  int line = 0;          // 0: unknown
};

struct JavaStack {
  std::int64_t at_ns = 0;  // CLOCK_MONOTONIC
  int tid = 0;             // in the JVM's PID namespace
  // a stack at an exception or of a stopped thread; false: the location that the thread reached last
  bool kept = false;
  std::vector<JavaFrame> frames;  // innermost first
  std::string missing;            // why frames are missing; "" if complete
};

// The name of the JVM's file if the process maps one ("0123456789abcdef.stacks" in /proc/PID/maps); "" if none.
[[nodiscard]] std::string stacks_file(std::string_view maps);
// Requests the stack of a thread from the JVM with this file. `tid` is in the host's PID namespace. Only one thread of
// rose may use a file at a time.
[[nodiscard]] JavaStack ask(const std::filesystem::path& file, pid_t tid);
// The stacks that JVMs with files in this folder recorded themselves.
[[nodiscard]] std::vector<JavaStack> noted(const std::filesystem::path& folder);
// Parses the bytes of one such file.
[[nodiscard]] std::vector<JavaStack> parse_noted(std::string_view bytes);

// The stack of a thread at the time of an event; nullptr if there is none. `tid` is in the thread's own PID namespace.
[[nodiscard]] const JavaStack* stack_of(const std::vector<JavaStack>& stacks, int tid, std::int64_t at_ns);

}  // namespace rose::jvm
