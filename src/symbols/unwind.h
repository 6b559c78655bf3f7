// The frames of a thread from a copy of its registers and the top of its stack, made when it was met: nothing of the
// process is needed any more but the files it ran. Frames come by .eh_frame or .debug_frame, of separate debug files
// too, else by frame pointers; names by DWARF (with inlined functions as frames of their own), symbol tables,
// MiniDebugInfo, Go's .gopclntab or a runtime's own list. Files and copies are taken for hostile; frames and time are
// bounded.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace rose::symbols {

inline constexpr std::size_t kMostFrames = 256;

// Executable memory.
struct Mapping {
  std::uint64_t start = 0, end = 0;
  std::uint64_t offset = 0;    // in the file
  std::filesystem::path file;  // to be opened by us; "": none is there
  std::string name;            // as the process knows it; "": of no file, such as what a runtime compiled
};

struct Snapshot {
  std::array<std::uint64_t, 17>
      registers{};                  // in the order of the psABI's DWARF numbers; the last is the instruction's address
  std::vector<std::uint8_t> stack;  // from the stack pointer on
  std::vector<Mapping> maps;
  std::filesystem::path
      runtime_list;  // where a runtime names the code that it made, see runtime_names.h; "": it doesn't
};

struct StackFrame {
  std::string function;       // demangled; "" not known
  std::string file;           // "" not known
  int line = 0;               // 0: not known
  std::string binary;         // as the process knows it; "": code of no file
  std::uint64_t address = 0;  // in the binary
  bool inlined = false;       // into the next one
};

struct Unwound {
  std::vector<StackFrame> frames;  // innermost first
  std::string incomplete;          // why there are no more, or why names are missing; "" when nothing is missing
};

// Any thread; takes at most about `limit_ns`.
[[nodiscard]] Unwound unwind(const Snapshot& snapshot, std::int64_t limit_ns = 2'000'000'000);

}  // namespace rose::symbols
