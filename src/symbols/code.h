// The code of a function: where in it calls are made, as a search for the one place that matters wants them. x86-64.
// Every file is taken for hostile.
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
  syscall,  // an instruction that enters the kernel, or a call of what does: write@plt, a helper that writes
  call,     // any other call, tail jumps included
  other,    // any other instruction
};

struct Place {
  std::uint64_t offset = 0;  // bytes from the function's entry; an instruction begins there, and it can be probed
  PlaceKind kind = PlaceKind::other;
  std::string name;      // "write@plt", "Log::append", "syscall", "through a pointer"; of others the instruction: "ret"
  bool changes = false;  // syscall: it changes what others can see (write, rename, connect), as far as names tell
  int depth = 0;         // syscall: how many calls below this one the kernel is entered
  bool loop = false;     // some jump leads back over it: one call of the function may come by very often
};

// The ways out of a function, besides exceptions.
struct Exits {
  std::vector<std::uint64_t>
      returns;  // file offsets of its return instructions, those of the parts that were split off included
  std::vector<std::string> jumps;  // functions that it ends by jumping to: what those return, it returns
  bool whole = true;               // all of its code could be read
};

class CodeFile {
 public:
  // ErrorKind::input: as list_functions().
  [[nodiscard]] static Result<CodeFile> open(const std::filesystem::path& binary);
  CodeFile(CodeFile&&) noexcept;
  CodeFile& operator=(CodeFile&&) noexcept;
  ~CodeFile();

  // The places in the function of that name (as name_matches() has it; of several, the longest), best first: system
  // calls (those that change something, then the most direct), other calls, then returns, the begins of what jumps
  // lead to, and all the rest; each sort by offset. Not its entry. Not for several threads at a time.
  // ErrorKind::input: no such function, or its code can't be read.
  [[nodiscard]] Result<std::vector<Place>> places(std::string_view function) const;

  // Of the function that begins at an address of the file. ErrorKind::input: none does, or its code can't be read.
  [[nodiscard]] Result<Exits> exits(std::uint64_t address) const;
  // Does the code of that function jump back to the address, or over it?
  [[nodiscard]] bool loops_back(std::uint64_t function, std::uint64_t address) const;

 private:
  class Reader;
  explicit CodeFile(std::unique_ptr<Reader> reader);
  std::unique_ptr<Reader> reader_;
};

}  // namespace rose::symbols
