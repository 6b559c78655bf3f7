// Disassembles a function (x86-64 or arm64) and lists the places in it at which a fault could be injected, the most
// promising ones first (see CodeFile::places()). Input files may be hostile.
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
  syscall,  // a `syscall` instruction, or a call that leads to one: write@plt, a helper function that writes
  call,     // any other call, including tail jumps
  other,    // any other instruction
};

struct Place {
  std::uint64_t offset = 0;  // bytes from the function's entry to an instruction that can be probed
  PlaceKind kind = PlaceKind::other;
  std::string name;  // "write@plt", "Log::append", "syscall", "through a pointer"; for other places the mnemonic: "ret"
  // syscall: according to its name, it changes state that others can see (write, rename, connect)
  bool changes = false;
  int depth = 0;      // syscall: number of calls between this one and the kernel
  bool loop = false;  // the place is in a loop, so one call of the function may execute it many times
};

// The instructions through which a function returns. Exceptions are not included.
struct Exits {
  // file offsets of the return instructions, including those in parts that the compiler split off
  std::vector<std::uint64_t> returns;
  // functions to which it jumps at its end (tail calls), so that it returns what they return
  std::vector<std::string> jumps;
  bool whole = true;  // false if some code of the function could not be read
};

class CodeFile {
 public:
  // Fails with ErrorKind::input under the same conditions as list_functions().
  [[nodiscard]] static Result<CodeFile> open(const std::filesystem::path& binary);
  CodeFile(CodeFile&&) noexcept;
  CodeFile& operator=(CodeFile&&) noexcept;
  ~CodeFile();

  // The places in the function that `function` denotes (name_matches()). If it denotes several functions, the longest
  // one is used. System calls come first (those that change state first, then the most direct ones), then other calls,
  // then returns, targets of jumps and all other instructions. Places of equal rank are sorted by offset. The entry of
  // the function is not included. Not thread-safe. Fails with ErrorKind::input if the function does not exist or its
  // code cannot be read.
  [[nodiscard]] Result<std::vector<Place>> places(std::string_view function) const;

  // The exits of the function that begins at this address in the file. Fails with ErrorKind::input if no function
  // begins there, or if its code cannot be read.
  [[nodiscard]] Result<Exits> exits(std::uint64_t address) const;
  // True if the function's code contains a jump back over the address, that is, from the address or behind it to the
  // address or before it.
  [[nodiscard]] bool loops_back(std::uint64_t function, std::uint64_t address) const;

 private:
  class Reader;
  explicit CodeFile(std::unique_ptr<Reader> reader);
  std::unique_ptr<Reader> reader_;
};

}  // namespace rose::symbols
