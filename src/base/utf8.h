// UTF-8 validation. Paths and log lines may contain any bytes, but JSON and terminals require UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rose {

// The length of the well-formed UTF-8 sequence at the beginning of `text` (Unicode table 3-7), or 0 if there is none.
inline std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto tail = [&](std::size_t i) { return byte(i) >= 0x80 && byte(i) <= 0xbf; };
  if (text.empty()) return 0;
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return text.size() >= 2 && tail(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (text.size() < 3 || !tail(1) || !tail(2)) return 0;
    if (first == 0xe0 && byte(1) < 0xa0) return 0;  // overlong
    if (first == 0xed && byte(1) > 0x9f) return 0;  // a surrogate
    return 3;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (text.size() < 4 || !tail(1) || !tail(2) || !tail(3)) return 0;
    if (first == 0xf0 && byte(1) < 0x90) return 0;
    if (first == 0xf4 && byte(1) > 0x8f) return 0;
    return 4;
  }
  return 0;
}

// Writes a code point as UTF-8 (at most 3 bytes below 0x10000, else 4) and returns the length. Surrogates are accepted.
inline std::size_t put_utf8(std::uint32_t code, char* out) {
  const auto tail = [&](unsigned shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) {
    out[0] = static_cast<char>(code);
    return 1;
  }
  if (code < 0x800) {
    out[0] = static_cast<char>(0xc0 | (code >> 6));
    out[1] = tail(0);
    return 2;
  }
  if (code < 0x10000) {
    out[0] = static_cast<char>(0xe0 | (code >> 12));
    out[1] = tail(6);
    out[2] = tail(0);
    return 3;
  }
  out[0] = static_cast<char>(0xf0 | (code >> 18));
  out[1] = tail(12);
  out[2] = tail(6);
  out[3] = tail(0);
  return 4;
}

// True if the whole text is valid UTF-8.
inline bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// The code point of one character, as delimited by utf8_length.
inline std::uint32_t code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(character[i])); };
  switch (character.size()) {
    case 2: return (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
    case 3: return (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    case 4: return (byte(0) & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
    default: return byte(0);
  }
}

// True if the character, as delimited by utf8_length, is one that terminals interpret instead of showing it: control
// characters (C0, DEL, C1), those that change the direction or order of the text around them (CVE-2021-42574), line
// separators, and invisible ones.
inline bool is_control(std::string_view character) {
  const std::uint32_t code = code_point(character);
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xad || code == 0x61c || code == 0x180e ||
         (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x206f) || code == 0xfeff || (code >= 0xfff9 && code <= 0xfffb) ||
         (code >= 0xe0000 && code <= 0xe007f);
}

}  // namespace rose
