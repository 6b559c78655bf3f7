// Demangles Rust's v0 scheme, https://doc.rust-lang.org/rustc/symbol-mangling/v0.html. Depth and output are limited,
// because back references allow a short hostile name to stand for an endless one.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "symbols/names.h"

namespace rose::symbols {
namespace {

constexpr int kMostDepth = 64;
constexpr std::size_t kMostRustText = 16384;
constexpr int kMostSteps = 20000;

class Rust {
 public:
  explicit Rust(std::string_view text) : text_(text) {}

  std::string run() {
    if (is_digit(peek())) return {};  // the name is of a newer version of the scheme
    path(true);
    // What follows is the crate that instantiates the function. It is not part of the name.
    return failed_ ? std::string{} : std::move(out_);
  }

 private:
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char next() {
    const char c = peek();
    if (c == '\0') fail();
    ++at_;
    return c;
  }
  bool eat(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void fail() { failed_ = true; }
  void print(std::string_view text) {
    if (muted_ > 0) return;
    if (out_.size() + text.size() > kMostRustText) return fail();
    out_ += text;
  }

  std::uint64_t base62() {
    if (eat('_')) return 0;
    std::uint64_t value = 0;
    while (!failed_) {
      const char c = next();
      if (c == '_') break;
      std::uint64_t digit = 0;
      if (is_digit(c)) digit = static_cast<std::uint64_t>(c - '0');
      else if (c >= 'a' && c <= 'z') digit = static_cast<std::uint64_t>(c - 'a') + 10;
      else if (c >= 'A' && c <= 'Z') digit = static_cast<std::uint64_t>(c - 'A') + 36;
      else fail();
      if (value > (UINT64_MAX - digit) / 62) fail();
      value = value * 62 + digit;
    }
    return value + 1;
  }
  std::uint64_t disambiguator() { return eat('s') ? base62() + 1 : 0; }

  // Returns the bytes of an identifier without changes. Unicode identifiers ("u...") stay in Punycode.
  std::string_view identifier() {
    eat('u');
    std::size_t length = 0;
    if (peek() < '0' || peek() > '9') fail();
    while (is_digit(peek()) && !failed_) {
      length = length * 10 + static_cast<std::size_t>(next() - '0');
      if (length > text_.size()) fail();
    }
    eat('_');
    if (failed_ || length > text_.size() - at_) {
      fail();
      return {};
    }
    const std::string_view name = text_.substr(at_, length);
    at_ += length;
    return name;
  }

  // Runs `parse` at an earlier position. Only references to earlier positions are valid, so the recursion ends.
  template <typename Parse>
  void back_reference(Parse parse) {
    const std::size_t start = at_ - 1;
    const std::uint64_t target = base62();
    if (failed_ || target >= start) return fail();
    const std::size_t saved = at_;
    at_ = target;
    parse();
    at_ = saved;
  }

  bool enter() {
    if (failed_ || ++steps_ > kMostSteps || depth_ >= kMostDepth) {
      fail();
      return false;
    }
    ++depth_;
    return true;
  }

  void path(bool in_value) {
    if (!enter()) return;
    switch (const char tag = next()) {
      case 'C':
        disambiguator();
        print(identifier());
        break;
      case 'N': {
        const char space = next();
        path(in_value);
        const std::uint64_t number = disambiguator();
        const std::string_view name = identifier();
        if (space >= 'A' && space <= 'Z') {  // upper-case letters mark closures and shims
          print("::{");
          print(space == 'C' ? "closure" : space == 'S' ? "shim" : std::string_view(&space, 1));
          if (!name.empty()) {
            print(":");
            print(name);
          }
          print("#" + std::to_string(number) + "}");
        } else if (!name.empty()) {
          print("::");
          print(name);
        }
        break;
      }
      case 'M':
      case 'X':
        // Do not print the path of an impl block, because it only distinguishes identical blocks.
        disambiguator();
        ++muted_;
        path(in_value);
        --muted_;
        // Print a method of a named type as the legacy scheme does, and as users write it: "raft::Log::append".
        if (tag == 'M' && names_type()) {
          type();
          break;
        }
        print("<");
        type();
        if (tag == 'X') {
          print(" as ");
          path(false);
        }
        print(">");
        break;
      case 'Y':
        print("<");
        type();
        print(" as ");
        path(false);
        print(">");
        break;
      case 'I':
        path(in_value);
        print(in_value ? "::<" : "<");
        list(", ", [this] { generic_argument(); });
        print(">");
        break;
      case 'B': back_reference([this, in_value] { path(in_value); }); break;
      default: fail();
    }
    --depth_;
  }

  // True if the type at this position is a path ("raft::Log"), which may also be a back reference.
  [[nodiscard]] bool names_type() {
    if (peek() != 'B') return peek() == 'C' || peek() == 'N' || peek() == 'I';
    const std::size_t saved = at_;
    ++at_;
    const std::uint64_t target = base62();
    const char tag = target < saved ? text_[target] : '\0';
    at_ = saved;
    return tag == 'C' || tag == 'N' || tag == 'I';
  }

  template <typename Parse>
  int list(std::string_view separator, Parse parse) {
    int count = 0;
    while (!failed_ && !eat('E')) {
      if (count++ > 0) print(separator);
      parse();
    }
    return count;
  }

  void generic_argument() {
    if (eat('L')) {
      lifetime();
    } else if (eat('K')) {
      constant();
    } else {
      type();
    }
  }
  void lifetime() {
    base62();
    print("'_");
  }
  void binder() {
    if (eat('G')) base62();
  }

  static std::string_view basic(char tag) {
    switch (tag) {
      case 'a': return "i8";
      case 'b': return "bool";
      case 'c': return "char";
      case 'd': return "f64";
      case 'e': return "str";
      case 'f': return "f32";
      case 'h': return "u8";
      case 'i': return "isize";
      case 'j': return "usize";
      case 'l': return "i32";
      case 'm': return "u32";
      case 'n': return "i128";
      case 'o': return "u128";
      case 's': return "i16";
      case 't': return "u16";
      case 'u': return "()";
      case 'v': return "...";
      case 'x': return "i64";
      case 'y': return "u64";
      case 'z': return "!";
      case 'p': return "_";
      default: return {};
    }
  }

  void type() {
    if (!enter()) return;
    const char tag = peek();
    if (const std::string_view name = basic(tag); !name.empty()) {
      ++at_;
      print(name);
      --depth_;
      return;
    }
    switch (tag) {
      case 'R':
      case 'Q':
        ++at_;
        print("&");
        if (eat('L')) base62();
        if (tag == 'Q') print("mut ");
        type();
        break;
      case 'P':
      case 'O':
        ++at_;
        print(tag == 'P' ? "*const " : "*mut ");
        type();
        break;
      case 'A':
      case 'S':
        ++at_;
        print("[");
        type();
        if (tag == 'A') {
          print("; ");
          constant();
        }
        print("]");
        break;
      case 'T': {
        ++at_;
        print("(");
        if (list(", ", [this] { type(); }) == 1) print(",");
        print(")");
        break;
      }
      case 'F':
        ++at_;
        binder();
        if (eat('U')) print("unsafe ");
        if (eat('K')) {
          print("extern \"");
          print(eat('C') ? "C" : identifier());
          print("\" ");
        }
        print("fn(");
        list(", ", [this] { type(); });
        print(")");
        if (!eat('u')) {
          print(" -> ");
          type();
        }
        break;
      case 'D':
        ++at_;
        print("dyn ");
        binder();
        list(" + ", [this] { dyn_trait(); });
        if (eat('L')) {
          if (base62() != 0) print(" + '_");
        } else {
          fail();
        }
        break;
      case 'B':
        ++at_;
        back_reference([this] { type(); });
        break;
      default: path(false);
    }
    --depth_;
  }

  // Prints a trait such as "Iterator<Item = u8>". Associated types are printed in the same brackets as the arguments of
  // the trait.
  void dyn_trait() {
    bool open = false;
    if (eat('I')) {
      path(false);
      print("<");
      list(", ", [this] { generic_argument(); });
      open = true;
    } else {
      path(false);
    }
    while (!failed_ && eat('p')) {
      print(open ? ", " : "<");
      open = true;
      print(identifier());
      print(" = ");
      type();
    }
    if (open) print(">");
  }

  void constant() {
    if (!enter()) return;
    if (eat('p')) {
      print("_");
    } else if (eat('B')) {
      back_reference([this] { constant(); });
    } else {
      const char tag = next();
      if (basic(tag).empty()) fail();  // names that users write contain no structured constants
      const bool negative = eat('n');
      const std::size_t start = at_;
      while (!failed_ && peek() != '_') next();
      const std::string_view digits = text_.substr(start < text_.size() ? start : text_.size(), at_ - start);
      eat('_');
      if (!failed_) number(tag, negative, digits);
    }
    --depth_;
  }
  void number(char tag, bool negative, std::string_view digits) {
    std::uint64_t value = 0;
    for (const char c : digits) {
      if (is_digit(c)) value = value << 4 | static_cast<std::uint64_t>(c - '0');
      else if (c >= 'a' && c <= 'f') value = value << 4 | static_cast<std::uint64_t>(c - 'a' + 10);
      else return fail();
    }
    if (tag == 'b') return print(value != 0 ? "true" : "false");
    if (negative) print("-");
    if (digits.size() > 16) {
      print("0x");
      print(digits);
    } else {
      print(std::to_string(value));
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
  int depth_ = 0;
  int steps_ = 0;
  int muted_ = 0;
  bool failed_ = false;
};

}  // namespace

std::string demangle_rust_v0(std::string_view linkage_name) {
  if (!linkage_name.starts_with("_R")) return {};
  return Rust(linkage_name.substr(2)).run();
}

}  // namespace rose::symbols
