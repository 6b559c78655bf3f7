// Finds where a program keeps a value that a query asks for (a variable, an argument, a result, a caller): in which
// register, or at which address. Uses DWARF if the file has it, and otherwise only the registers in which the calling
// convention (psABI) passes arguments and results. x86-64 and arm64. Files may be hostile. It works on the file, so the
// result holds for every process that runs the file.
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

// This text stands for a caller in another file.
inline constexpr std::string_view kOutsideFile = "code outside the file";
// This text precedes the function that started a goroutine, if that function is reported as the caller of the
// goroutine's function.
inline constexpr std::string_view kGoStatement = "go statement in ";
// This text precedes a function that passed the called function to a library, which then calls it: the start routine of
// a thread, a callback.
inline constexpr std::string_view kHandedOver = "a library, from ";
// This text is between a caller and the function into which it was inlined: "put (store.c:71), inlined into save
// (store.c:12)".
inline constexpr std::string_view kInlinedInto = ", inlined into ";
// This text is between a call that a function makes and the inlined function in which the call is: "croak (hall.cc:71),
// in the inlined grumble".
inline constexpr std::string_view kInInlined = ", in the inlined ";
// This text precedes the caller of the caller that was reported before it.
inline constexpr std::string_view kFurtherOut = "further out: ";
// The name of the function that is the caller of each goroutine's function.
inline constexpr std::string_view kGoroutineBegins = "runtime.goexit";

// Values of "f:return.error", that is, of the last result of a Go function whose type is `error`. The other values are
// the types of errors ("*fs.PathError"); kAnError stands for types whose names the file does not contain.
inline constexpr std::string_view kNoError = "nil", kAnError = "an error";

inline constexpr std::uint8_t kNoRegister = 0xff;
inline constexpr std::size_t kMostReads = 7;  // most pointers that are followed on the way to a value

// How to compute an address. It begins with a register (by DWARF number) plus the first offset. Then, for each further
// offset, the word at the address is read, and the offset is added to it. Sums are modulo 2^64.
struct Chain {
  std::uint8_t base = kNoRegister;
  std::vector<std::uint64_t> offsets = {0};
};

struct Fetch {
  enum class Kind {
    word,     // the result of the chain
    memory,   // the `size` bytes at the address that the chain yields
    text,     // the NUL-terminated text at that address
    counted,  // the text at that address; the chain `length` yields its length
    // An address of code. It is stored relative to the instruction that reads it, so that it does not depend on where
    // the file is loaded.
    code,
  };
  Kind kind = Kind::word;
  std::uint8_t size = 8;  // for memory: 1, 2, 4 or 8
  Chain at, length;
};

// Names the code at an address in a file.
class CodeNames {
 public:
  virtual ~CodeNames() = default;
  [[nodiscard]] virtual std::string at(
      std::uint64_t address) const = 0;  // "store (store.c:71)"; "" outside the file's code
  // The caller of the function at this address, if the call comes from another file: "a library, from main". "" if
  // unknown.
  [[nodiscard]] virtual std::string handed_over(std::uint64_t) const { return {}; }
};

// How the bits are interpreted. `code`: as a return address, which names the caller. `creator`: as the address of the
// code that started the goroutine; it is read at the same time as the caller, and counts only if the caller is
// kGoroutineBegins. `outer`: as the caller of the caller that was read before.
struct Form {
  enum class Kind { raw, integer, natural, boolean, character, real, pointer, enumeration, text, code, creator, outer };
  Kind kind = Kind::raw;
  std::uint8_t size = 8;                                             // number of significant bytes
  std::uint8_t shift = 0;                                            // number of bits before them, which are skipped
  std::shared_ptr<const std::map<std::int64_t, std::string>> names;  // for an enumeration: the names of its values
  std::string otherwise;                  // for an enumeration: the name of all other values; "": they have none
  std::shared_ptr<const CodeNames> code;  // for code and creator: names the calls that return to an address
  std::uint64_t origin = 0;               // for code and creator: the address at which the value is read
  std::string type;                       // "unsigned int"; "" if unknown
};

// A place at which the value is recorded.
struct Site {
  std::uint64_t offset = 0;  // offset in the file
  Fetch fetch;
  Form form;
  std::string function;  // the function that contains the place
};

struct Answer {
  std::vector<Site> sites;
  std::vector<std::string> remarks;  // cases in which the value will not be recorded
  std::string refused;               // why nothing can be recorded, as a sentence; "" if there are sites
};

class ValueFile {
 public:
  // Fails with ErrorKind::input under the same conditions as list_functions().
  [[nodiscard]] static Result<ValueFile> open(const std::filesystem::path& binary);
  ValueFile(ValueFile&&) noexcept;
  ValueFile& operator=(ValueFile&&) noexcept;
  ~ValueFile();

  // If the file has no such function, line, argument, variable or member, fails with ErrorKind::input, and the error
  // contains similar names. Not thread-safe.
  [[nodiscard]] Result<Answer> answer(const Query& query);

  // The queries that are possible about a function: about its arguments, about simple members of what they point to,
  // about its result, its calls and its callers. Empty if the function is not in this file.
  [[nodiscard]] std::vector<std::string> questions(const std::string& function);

 private:
  class Reader;
  explicit ValueFile(std::shared_ptr<Reader> reader);
  std::shared_ptr<Reader> reader_;  // shared with answers that contain addresses of code
};

// A value as text, and as a number if it is one.
struct FormattedValue {
  std::string text;
  bool is_number = false;
  double number = 0;
};
// `bits` is the word or the memory that was read. For a counted text, `bits` is the length of the whole text, and
// `text` contains its beginning.
[[nodiscard]] FormattedValue format_value(const Form& form, std::uint64_t bits, std::string_view text);

}  // namespace rose::symbols
