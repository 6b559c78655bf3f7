// Locates the answer to a query in a program's code, registers and memory, using DWARF if available, and otherwise only
// the psABI's registers. x86-64 and arm64. Files may be hostile. It works on the file, so the result holds for every
// process that runs it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbols/query.h"

namespace rose::symbols {

// Stands for a caller in another file.
inline constexpr std::string_view kOutsideFile = "code outside the file";
// Precedes the function that started a goroutine, if it is reported as the caller of the goroutine's function.
inline constexpr std::string_view kGoStatement = "go statement in ";
// Precedes the function that passed the called function to a library, which calls it: the start routine of a thread, a
// callback.
inline constexpr std::string_view kHandedOver = "a library, from ";
// Between a caller and the function into which it was inlined: "put (store.c:71), inlined into save (store.c:12)".
inline constexpr std::string_view kInlinedInto = ", inlined into ";
// Precedes the caller of the caller that was reported before it.
inline constexpr std::string_view kFurtherOut = "further out: ";
// The function that appears as the caller of each goroutine's function.
inline constexpr std::string_view kGoroutineBegins = "runtime.goexit";

inline constexpr std::uint8_t kNoRegister = 0xff;
inline constexpr std::size_t kMostReads = 7;  // limit for pointers followed on the way to a value

// An address computed from a register (by DWARF number) plus the first offset. Each further offset is added to the word
// that is stored at the address so far. Sums are modulo 2^64.
struct Chain {
  std::uint8_t base = kNoRegister;
  std::vector<std::uint64_t> offsets = {0};
};

struct Fetch {
  enum class Kind {
    word,     // the result of the chain
    memory,   // `size` bytes at that address
    text,     // the NUL-terminated text at that address
    counted,  // the text at that address, with the length that `length` yields
    // An address of code. It is stored relative to the address of the instruction that reads it, so that the result
    // does not depend on where the file is loaded.
    code,
  };
  Kind kind = Kind::word;
  std::uint8_t size = 8;  // for memory: 1, 2, 4 or 8
  Chain at, length;
};

// Names the code at an address of a file.
class CodeNames {
 public:
  virtual ~CodeNames() = default;
  [[nodiscard]] virtual std::string at(
      std::uint64_t address) const = 0;  // "store (store.c:71)"; "" outside the file's code
  // For the function at this address, if code of another file calls it: "a library, from main"; "" if unknown.
  [[nodiscard]] virtual std::string handed_over(std::uint64_t) const { return {}; }
};

// How the bits are interpreted. `code`: a return address, which names the caller. `creator`: the code that started the
// goroutine. It is read at the same time as the caller and counts only if the caller is kGoroutineBegins. `outer`: the
// caller of the caller that was read before.
struct Form {
  enum class Kind { raw, integer, natural, boolean, character, real, pointer, enumeration, text, code, creator, outer };
  Kind kind = Kind::raw;
  std::uint8_t size = 8;                                             // significant bytes
  std::uint8_t shift = 0;                                            // bits to skip before them
  std::shared_ptr<const std::map<std::int64_t, std::string>> names;  // for an enumeration
  std::shared_ptr<const CodeNames> code;  // for code and creator: names the calls that return there
  std::uint64_t origin = 0;               // for code and creator: the address at which it is read
  std::string type;                       // "unsigned int"; "" if unknown
};

// A place at which the value is recorded.
struct Site {
  std::uint64_t offset = 0;  // in the file
  Fetch fetch;
  Form form;
  std::string function;  // the function that contains the place
};

struct Answer {
  std::vector<Site> sites;
  std::vector<std::string> remarks;  // limitations: cases that will not be recorded
  std::string refused;               // why nothing can be recorded, as a sentence; "" if there are sites
};

class ValueFile {
 public:
  // Returns ErrorKind::input under the same conditions as list_functions().
  [[nodiscard]] static Result<ValueFile> open(const std::filesystem::path& binary);
  ValueFile(ValueFile&&) noexcept;
  ValueFile& operator=(ValueFile&&) noexcept;
  ~ValueFile();

  // Returns ErrorKind::input with similar names if the file has no such function, line, argument, variable or member.
  // Not thread-safe.
  [[nodiscard]] Result<Answer> answer(const Query& query);

  // The queries that are possible about a function: its arguments, simple members of what they point to, its result,
  // its calls and its callers. Empty if the function is not in this file.
  [[nodiscard]] std::vector<std::string> questions(const std::string& function);

 private:
  class Reader;
  explicit ValueFile(std::shared_ptr<Reader> reader);
  std::shared_ptr<Reader> reader_;  // shared with the answers that contain code addresses
};

// A value as text, and as a number if it is one.
struct FormattedValue {
  std::string text;
  bool is_number = false;
  double number = 0;
};
// `bits`: the word or memory that was read. For a counted text, `bits` is its whole length, and `text` has the
// beginning.
[[nodiscard]] FormattedValue format_value(const Form& form, std::uint64_t bits, std::string_view text);

}  // namespace rose::symbols
