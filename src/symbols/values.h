// Where in a program's code, registers and memory the answer to a query stands: by the psABI's registers alone, and by
// DWARF where there is some. x86-64. Every file is taken for hostile. Nothing of a running process is needed: what is
// found holds for all that run the file.
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

inline constexpr std::uint8_t kNoRegister = 0xff;
inline constexpr std::size_t kMostReads = 7;  // pointers followed on the way to a value

// A register (by its DWARF number) and the first offset; then, for each further one, the word that stands there, and
// that offset. Sums are modulo 2^64.
struct Chain {
  std::uint8_t base = kNoRegister;
  std::vector<std::uint64_t> offsets = {0};
};

struct Fetch {
  enum class Kind {
    word,     // what the chain comes to
    memory,   // `size` bytes there
    text,     // the text there, up to its NUL
    counted,  // the text there, as long as `length` comes to
    code,  // the address of code there, counted from the place at which it is read: where the file is loaded makes no
           // difference
  };
  Kind kind = Kind::word;
  std::uint8_t size = 8;  // memory: 1, 2, 4 or 8
  Chain at, length;
};

// What stands at an address of a file's code.
class CodeNames {
 public:
  virtual ~CodeNames() = default;
  [[nodiscard]] virtual std::string at(
      std::uint64_t address) const = 0;  // "store (store.c:71)"; "" in no code of the file
};

// How the bits are told.
struct Form {
  enum class Kind { raw, integer, natural, boolean, character, real, pointer, enumeration, text, code };
  Kind kind = Kind::raw;
  std::uint8_t size = 8;                                             // bytes that count
  std::uint8_t shift = 0;                                            // bits in front of them
  std::shared_ptr<const std::map<std::int64_t, std::string>> names;  // enumeration
  std::shared_ptr<const CodeNames> code;                             // code: of calls that return there
  std::uint64_t origin = 0;  // code: the address of the place at which it is read
  std::string type;          // "unsigned int"; "" not known
};

// One place at which it is recorded.
struct Site {
  std::uint64_t offset = 0;  // in the file
  Fetch fetch;
  Form form;
  std::string function;  // it is in
};

struct Answer {
  std::vector<Site> sites;
  std::vector<std::string> remarks;  // what of it will not be seen
  std::string refused;               // a sentence: why nothing can be recorded; "" with sites
};

class ValueFile {
 public:
  // ErrorKind::input: as list_functions().
  [[nodiscard]] static Result<ValueFile> open(const std::filesystem::path& binary);
  ValueFile(ValueFile&&) noexcept;
  ValueFile& operator=(ValueFile&&) noexcept;
  ~ValueFile();

  // ErrorKind::input: the file has no such function, line, argument, variable or member; near names are suggested.
  // Not for several threads at a time.
  [[nodiscard]] Result<Answer> answer(const Query& query);

  // What may be asked about a function: its arguments, simple members of what they point to, what it returns, its
  // calls, its callers; as queries. None: it is not in this file.
  [[nodiscard]] std::vector<std::string> questions(const std::string& function);

 private:
  class Reader;
  explicit ValueFile(std::shared_ptr<Reader> reader);
  std::shared_ptr<Reader> reader_;  // with the forms of its answers that name code
};

// A value as people read it, and as a number where it is one.
struct ToldValue {
  std::string text;
  bool is_number = false;
  double number = 0;
};
// `bits`: of a word or of memory; of a counted text its whole length, of which `text` has the beginning.
[[nodiscard]] ToldValue tell_value(const Form& form, std::uint64_t bits, std::string_view text);

}  // namespace rose::symbols
