// Unwinds a thread from a copy of its registers and of the top of its stack. The process is not needed for this, only
// the files that it executes. Frames are found through .eh_frame or .debug_frame (also in separate debug files); if
// these do not help, through frame pointers. Names come from DWARF (inlined functions are separate frames), symbol
// tables, MiniDebugInfo, Go's .gopclntab or a runtime's own list. Files and copies may be hostile, so the number of
// frames and the time are limited.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "symbols/machine.h"

namespace rose::symbols {

inline constexpr std::size_t kMostFrames = 256;

// A range of executable memory.
struct Mapping {
  std::uint64_t start = 0, end = 0;
  std::uint64_t offset = 0;    // offset in the file
  std::filesystem::path file;  // the path to open; "" if there is none
  // name of the file in the process; "": the code is not from a file, but was for example compiled by a runtime
  std::string name;
};

struct Snapshot {
  // The registers of this machine, by DWARF number (psABI). The last one is the instruction pointer.
  std::array<std::uint64_t, machine::kOwn.instruction + 1> registers{};
  std::vector<std::uint8_t> stack;  // the bytes from the stack pointer upwards
  std::vector<Mapping> maps;
  // the runtime's list of the code that it generated (runtime_names.h); "" if there is none
  std::filesystem::path runtime_list;
};

struct StackFrame {
  std::string function;       // demangled; "" if unknown
  std::string file;           // "" if unknown
  int line = 0;               // 0: unknown
  std::string binary;         // name of the file in the process; "": the code is not from a file
  std::uint64_t address = 0;  // address in the file
  bool inlined = false;       // the function is inlined into that of the next frame
};

struct Unwound {
  std::vector<StackFrame> frames;  // innermost first
  std::string incomplete;          // why frames or names are missing; "" if none are
};

// Thread-safe, but only one call runs at a time. A call takes at most about `limit_ns`, plus the time until earlier
// calls have ended.
[[nodiscard]] Unwound unwind(const Snapshot& snapshot, std::int64_t limit_ns = 2'000'000'000);

}  // namespace rose::symbols
