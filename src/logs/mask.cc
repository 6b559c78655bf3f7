#include "logs/mask.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"

namespace rose::logs {
namespace {

enum CharClass : std::uint8_t { other_char, space_char, mark_char, digit_class, hex_letter, letter_class };

constexpr std::array<std::uint8_t, 256> kClasses = [] {
  std::array<std::uint8_t, 256> classes{};
  for (int c = 0; c < 256; ++c) {
    if (c <= ' ') classes[static_cast<std::size_t>(c)] = space_char;
    else if (is_digit(c)) classes[static_cast<std::size_t>(c)] = digit_class;
    else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) classes[static_cast<std::size_t>(c)] = hex_letter;
    else if ((c >= 'g' && c <= 'z') || (c >= 'G' && c <= 'Z')) classes[static_cast<std::size_t>(c)] = letter_class;
  }
  for (const char c : {',', ';', '(', ')', '[', ']', '{', '}', '"', '\'', '=', '<', '>', '|', '`'})
    classes[static_cast<unsigned char>(c)] = mark_char;
  return classes;
}();

std::uint8_t class_of(char c) { return kClasses[static_cast<unsigned char>(c)]; }
bool digit_of(char c) { return class_of(c) == digit_class; }

// The number of characters of each class in a word. They are counted during the search for the end of the word.
struct Shape {
  std::size_t digits = 0, hex = 0, letters = 0, dots = 0, colons = 0, slashes = 0, dashes = 0, others = 0;
};

bool ipv4(std::string_view word) {  // a port or a prefix length may follow
  int parts = 0;
  std::size_t i = 0;
  for (; parts < 4; ++parts) {
    std::size_t digits = 0;
    while (i < word.size() && digit_of(word[i])) ++i, ++digits;
    if (digits == 0 || digits > 3) return false;
    if (parts < 3 && (i >= word.size() || word[i++] != '.')) return false;
  }
  if (i == word.size()) return true;
  if (word[i] != ':' && word[i] != '/') return false;
  return std::all_of(word.begin() + static_cast<std::ptrdiff_t>(i) + 1, word.end(), digit_of);
}

bool uuid(std::string_view word, const Shape& shape) {
  return word.size() == 36 && shape.dashes == 4 && shape.digits + shape.hex == 32 && word[8] == '-' && word[13] == '-';
}

bool number(std::string_view word, const Shape& shape) {  // "-12.5", "12.5ms", "30%", "1_000"
  std::size_t i = word[0] == '-' || word[0] == '+' || word[0] == '#' || word[0] == '~' ? 1 : 0;
  if (i >= word.size() || !digit_of(word[i])) return false;
  while (i < word.size() && (digit_of(word[i]) || word[i] == '.' || word[i] == '_')) ++i;
  if (i == word.size()) return true;
  return word.size() - i <= 4 && shape.digits + shape.dots + 5 >= word.size() && shape.colons == 0 &&
         shape.slashes == 0 && std::all_of(word.begin() + static_cast<std::ptrdiff_t>(i), word.end(), [](char c) {
           return !digit_of(c) && c != '-';
         });
}

// "2026-11-22T18:13:27.081Z", "18:13:27", "2026-11-22"
bool clock_or_date(std::string_view word, const Shape& shape) {
  if (!digit_of(word[0])) return false;
  if (shape.colons == 2 && shape.letters + shape.hex == 0 && word.size() >= 7) return true;
  if (shape.dashes == 2 && word.size() >= 10 && word[4] == '-' && word[7] == '-' && shape.letters <= 2) return true;
  return false;
}

void put_digits_as_signs(std::string_view word, std::string& out) {
  for (std::size_t i = 0; i < word.size();) {
    if (!digit_of(word[i])) {
      out += word[i++];
      continue;
    }
    while (i < word.size() && digit_of(word[i])) ++i;
    out += "<n>";
  }
}

// True if a small number after this word belongs to the meaning: "exit code 1", "errno=28", "signal 9", "HTTP status
// 502".
bool names_a_code(std::string_view before) {
  constexpr std::array kWords =
      std::to_array<std::string_view>({"code", "status", "errno", "signal", "Errno", "Code", "Status", "exited"});
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) { return before.ends_with(word); });
}

// Appends the word, or a placeholder if the word is variable. `before` is the previous word.
void put_word(std::string_view word, const Shape& shape, std::string_view before, std::string& out) {
  if (shape.digits == 0 && shape.slashes == 0) {
    // Keep hexadecimal words without digits, such as "deadbeef", because they cannot be distinguished from other words.
    if (shape.colons >= 2 && shape.letters == 0 && shape.hex + shape.colons == word.size()) {
      out += "<addr>";
    } else {
      out += word;
    }
    return;
  }
  std::string_view tail;
  while (word.size() > 1 && (word.back() == '.' || word.back() == ':' || word.back() == '!' || word.back() == '?')) {
    tail = std::string_view(word.data() + word.size() - 1, tail.size() + 1);
    word.remove_suffix(1);
  }
  if (shape.slashes != 0) {
    if (word.find("://") != std::string_view::npos) {
      out += "<url>";
    } else if (word.front() == '/' && word.size() > 1 && shape.slashes + shape.dots < word.size()) {
      // Java prints addresses in this form: "/127.0.0.1:2888".
      out += ipv4(word.substr(1)) ? "<addr>" : "<path>";
    } else if (ipv4(word)) {
      out += "<addr>";
    } else if (shape.digits + shape.slashes + shape.dashes + shape.dots + shape.colons == word.size()) {
      out += "<n>";  // such as "3/5" or "1/0/0/2/3"
    } else if (word.find('.') != std::string_view::npos && shape.digits != 0 && shape.colons == 0) {
      out += "<path>";
    } else {
      put_digits_as_signs(word, out);
    }
    out += tail;
    return;
  }
  if (number(word, shape)) {
    out += word.size() <= 3 && names_a_code(before) ? std::string(word) : "<n>";
  } else if (shape.dots >= 3 && ipv4(word)) {
    out += "<addr>";
  } else if (uuid(word, shape) || clock_or_date(word, shape)) {
    out += shape.colons != 0 || word.size() < 36 ? "<n>" : "<id>";
  } else if (shape.colons >= 2 && shape.letters == 0 && shape.others == 0 && shape.dots <= 3) {
    out += "<addr>";
  } else if ((word.starts_with("0x") && word.size() > 3) ||
             (word.size() >= 8 && shape.digits + shape.hex == word.size() && shape.hex != 0)) {
    out += "<id>";
  } else {
    put_digits_as_signs(word, out);
  }
  out += tail;
}

constexpr std::array kErrorTexts = std::to_array<std::string_view>({"no space left",
                                                                    "permission denied",
                                                                    "connection refused",
                                                                    "connection reset",
                                                                    "broken pipe",
                                                                    "timed out",
                                                                    "timeout",
                                                                    "no such file",
                                                                    "too many open files",
                                                                    "read-only file system",
                                                                    "input/output error",
                                                                    "i/o error",
                                                                    "disk quota",
                                                                    "cannot allocate memory",
                                                                    "out of memory",
                                                                    "no route to host",
                                                                    "network is unreachable",
                                                                    "host is down",
                                                                    "connection aborted",
                                                                    "address already in use",
                                                                    "cannot assign requested address",
                                                                    "file exists",
                                                                    "not a directory",
                                                                    "is a directory",
                                                                    "file too large",
                                                                    "interrupted system call",
                                                                    "resource temporarily unavailable",
                                                                    "operation not permitted",
                                                                    "bad file descriptor",
                                                                    "invalid argument",
                                                                    "stale file handle",
                                                                    "device or resource busy",
                                                                    "directory not empty",
                                                                    "text file busy",
                                                                    "protocol error",
                                                                    "end of file",
                                                                    "unexpected eof",
                                                                    "eof",
                                                                    "deadline exceeded",
                                                                    "context canceled",
                                                                    "segmentation fault",
                                                                    "killed",
                                                                    "aborted",
                                                                    "bus error",
                                                                    "corrupt",
                                                                    "checksum"});

std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

// True for the name of an error, a signal or an exception: "ENOSPC", "SIGKILL", "java.io.IOException", "OSError".
bool error_word(std::string_view word) {
  while (!word.empty() && (word.back() == ':' || word.back() == '.' || word.back() == ',')) word.remove_suffix(1);
  if (word.size() < 4) return false;
  const bool upper =
      std::all_of(word.begin(), word.end(), [](char c) { return (c >= 'A' && c <= 'Z') || digit_of(c); });
  if (upper) return word[0] == 'E' || word.starts_with("SIG");
  return word.ends_with("Exception") || (word.ends_with("Error") && word.size() > 5);
}

}  // namespace

void mask(std::string_view text, std::string& masked) {
  masked.clear();
  text = text.substr(0, std::min(kMostToMask, text.find('\n')));
  std::size_t at = 0;
  std::string_view before;  // the previous word
  while (at < text.size() && masked.size() < kMostMasked) {
    const std::uint8_t kind = class_of(text[at]);
    if (kind == space_char) {
      if (!masked.empty() && masked.back() != ' ') masked += ' ';
      ++at;
      continue;
    }
    if (kind == mark_char) {
      masked += text[at++];
      continue;
    }
    const std::size_t begin = at;
    Shape shape;
    for (; at < text.size(); ++at) {
      const char c = text[at];
      switch (class_of(c)) {
        case digit_class: ++shape.digits; continue;
        case hex_letter: ++shape.hex; continue;
        case letter_class: ++shape.letters; continue;
        case other_char:
          if (c == '.') ++shape.dots;
          else if (c == ':') ++shape.colons;
          else if (c == '/') ++shape.slashes;
          else if (c == '-') ++shape.dashes;
          else ++shape.others;
          continue;
        default: break;
      }
      break;
    }
    const std::string_view word = text.substr(begin, at - begin);
    put_word(word, shape, before, masked);
    before = word;
  }
  while (!masked.empty() && masked.back() == ' ') masked.pop_back();
}

std::uint32_t error_words(std::string_view masked) {
  std::uint32_t found = 0;
  for (std::size_t at = 0; at < masked.size();) {
    const std::size_t end = std::min(masked.find_first_of(" ()[]\"'=,;", at), masked.size());
    const std::string_view word = masked.substr(at, end - at);
    if (error_word(word)) found = found * 31 + hash_of(word.substr(0, word.find_last_not_of(":.,") + 1));
    at = end + 1;
  }
  const std::string low = lower_case(masked);
  for (std::size_t i = 0; i < kErrorTexts.size(); ++i) {
    if (low.find(kErrorTexts[i]) != std::string::npos) found = found * 31 + static_cast<std::uint32_t>(i) + 1;
  }
  return found;
}

}  // namespace rose::logs
