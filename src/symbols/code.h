// Disassembles a function (x86-64 or arm64) and lists the places in it at which a fault could be injected, best first.
// Input files may be hostile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rose::symbols {

enum class PlaceKind {
  syscall,  // an instruction that enters the kernel, or a call of a function that does: write@plt, a helper that writes
  call,     // any other call, tail jumps included
  other,    // any other instruction
};

struct Place {
  std::uint64_t offset = 0;  // bytes from the function's entry to an instruction that can be probed
  PlaceKind kind = PlaceKind::other;
  std::string name;      // "write@plt", "Log::append", "syscall", "through a pointer"; for others the mnemonic: "ret"
  bool changes = false;  // syscall: it changes state that others can see (write, rename, connect), judged by its name
  int depth = 0;         // syscall: number of calls between this one and the kernel
  bool loop = false;     // a jump leads back over it, so one call of the function may execute it many times
};

// The instructions through which a function returns. Exceptions are not included.
struct Exits {
  std::vector<std::uint64_t> returns;  // file offsets of its return instructions, including those in split-off parts
  std::vector<std::string> jumps;  // functions that it ends with a jump to (tail calls): what they return, it returns
  bool whole = true;               // false if some of its code could not be read
};

class CodeFile {
 public:
  // Returns ErrorKind::input as list_functions() does.
  [[nodiscard]] static Result<CodeFile> open(const std::filesystem::path& binary);
  CodeFile(CodeFile&&) noexcept;
  CodeFile& operator=(CodeFile&&) noexcept;
  ~CodeFile();

  // The places in the function that name_matches() finds (the longest of several). System calls come first
  // (state-changing ones first, then the most direct ones), then other calls, then returns, targets of jumps and all
  // other instructions; each group is sorted by offset. The entry is not included. Not thread-safe. Returns
  // ErrorKind::input if the function does not exist or its code cannot be read.
  [[nodiscard]] Result<std::vector<Place>> places(std::string_view function) const;

  // For the function that begins at this address of the file. Returns ErrorKind::input if none does or its code cannot
  // be read.
  [[nodiscard]] Result<Exits> exits(std::uint64_t address) const;
  // True if the function's code contains a jump back to the address or across it.
  [[nodiscard]] bool loops_back(std::uint64_t function, std::uint64_t address) const;

 private:
  class Reader;
  explicit CodeFile(std::unique_ptr<Reader> reader);
  std::unique_ptr<Reader> reader_;
};

}  // namespace rose::symbols
