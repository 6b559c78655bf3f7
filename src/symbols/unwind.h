// Unwinds a thread from a copy of its registers and of the top of its stack. The process itself is not needed, only the
// files that it executes. Frames are found through .eh_frame or .debug_frame (also in separate debug files), or else
// through frame pointers. Names come from DWARF (inlined functions are separate frames), symbol tables, MiniDebugInfo,
// Go's .gopclntab or a runtime's own list. Files and copies may be hostile, so the number of frames and the time are
// limited.
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
  std::uint64_t offset = 0;    // in the file
  std::filesystem::path file;  // the path to open; "" if there is none
  std::string name;  // the file's name in the process; "": not from a file, such as code that a runtime compiled
};

struct Snapshot {
  // Registers of this machine by DWARF number (psABI); the last one is the instruction pointer.
  std::array<std::uint64_t, machine::kOwn.instruction + 1> registers{};
  std::vector<std::uint8_t> stack;  // from the stack pointer upwards
  std::vector<Mapping> maps;
  std::filesystem::path runtime_list;  // the runtime's list of generated code (runtime_names.h); "" if there is none
};

struct StackFrame {
  std::string function;       // demangled; "" if unknown
  std::string file;           // "" if unknown
  int line = 0;               // 0: unknown
  std::string binary;         // the file's name in the process; "": code that is not from a file
  std::uint64_t address = 0;  // in the binary
  bool inlined = false;       // inlined into the next frame
};

struct Unwound {
  std::vector<StackFrame> frames;  // innermost first
  std::string incomplete;          // why frames or names are missing; "" if the stack is complete
};

// Thread-safe. Takes at most about `limit_ns`.
[[nodiscard]] Unwound unwind(const Snapshot& snapshot, std::int64_t limit_ns = 2'000'000'000);

}  // namespace rose::symbols
