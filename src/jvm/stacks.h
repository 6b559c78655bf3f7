// Where the threads of a node's JVMs are, as their agents tell it: asked of a JVM that runs, or read from what it left
// behind (jvm/stacks_layout.h). The files are the nodes' own: nothing in them is trusted.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "jvm/stacks_layout.h"

namespace rose::jvm {

// While rose holds a thread nobody waits longer than this for the JVM to say where it is: one that is inside the JVM
// itself (loading a class) is told only once it goes on. On a busy machine it takes a while until the agent has its
// turn at all: that is kBeginNs.
inline constexpr std::int64_t kAskNs = 100'000'000, kBeginNs = 500'000'000;

struct JavaFrame {
  std::string function;  // "org.x.Store.append"; "" unknown
  std::string file;      // "Store.java"; "" unknown
  int line = 0;          // 0: unknown
};

struct JavaStack {
  std::int64_t at_ns = 0;         // of the monotonic clock
  int tid = 0;                    // as the JVM sees it
  bool kept = false;              // an exception's, or of a thread that stood still; else where the thread came by last
  std::vector<JavaFrame> frames;  // the innermost first
  std::string missing;            // why frames are; "" when all are there
};

// The name of a JVM's file, if the process has mapped one ("0123456789abcdef.stacks" in the text of /proc/PID/maps); ""
// none.
[[nodiscard]] std::string stacks_file(std::string_view maps);
// Asks the JVM behind this file where a thread is. `tid`: as the host sees it. From one thread of rose at a time for
// each file.
[[nodiscard]] JavaStack ask(const std::filesystem::path& file, pid_t tid);
// What JVMs that have their files in this folder noted themselves.
[[nodiscard]] std::vector<JavaStack> noted(const std::filesystem::path& folder);
// The same of one file's bytes.
[[nodiscard]] std::vector<JavaStack> parse_noted(std::string_view bytes);

// Of those the one that a thread was at when something happened to it at that time; nullptr: none. `tid` as the host
// sees it.
[[nodiscard]] const JavaStack* stack_of(const std::vector<JavaStack>& stacks, int tid, std::int64_t at_ns);

}  // namespace rose::jvm
