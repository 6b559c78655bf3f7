// Checksums and compression would keep a fuzzer from ever reaching the code after them. The dump fuzzer therefore also
// reads "recipes": uncompressed blocks, which then get correct checksums and sizes. A recipe is a list of blocks, each
// with a letter (M, S, E or D), u32 items, u32 length, bytes. A recipe for a dump of version 1 begins with '1'.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace rose::fuzz {

inline constexpr std::string_view kMagic = "ROSEDUMP";
inline constexpr std::size_t kFileHeader = 16;
inline constexpr std::size_t kBlockHeader = 24;

inline std::uint32_t get_u32(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  if (at + sizeof(value) <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

inline void put_u32(std::string& bytes, std::uint32_t value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

inline std::string cook(std::string_view recipe) {
  std::string dump(kMagic);
  const bool old = recipe.starts_with('1');
  put_u32(dump, old ? 1 : 2);
  put_u32(dump, 0);
  if (old) recipe.remove_prefix(1);
  while (recipe.size() >= 9) {
    const char letter = recipe[0];
    const char* kind = letter == 'M' ? "META" : letter == 'S' ? "STRS" : letter == 'E' ? "EVTS" : "DONE";
    const std::uint32_t items = get_u32(recipe, 1);
    const std::size_t length = std::min<std::size_t>(get_u32(recipe, 5), recipe.size() - 9);
    const std::string_view raw = recipe.substr(9, length);
    recipe.remove_prefix(9 + length);
    uLongf size = ::compressBound(raw.size());
    std::string packed(size, '\0');
    // Store the bytes without compression, so that the fuzzer spends its time in the reader.
    if (::compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(raw.data()),
                    raw.size(), 0) != Z_OK)
      return dump;
    packed.resize(size);
    std::string header(kind);
    put_u32(header, items);
    put_u32(header, static_cast<std::uint32_t>(size));
    put_u32(header, static_cast<std::uint32_t>(raw.size()));
    uLong crc = ::crc32(0, reinterpret_cast<const Bytef*>(header.data()), 16);
    crc = ::crc32(crc, reinterpret_cast<const Bytef*>(packed.data()), static_cast<uInt>(packed.size()));
    put_u32(header, static_cast<std::uint32_t>(crc));
    put_u32(header, 0);
    dump += header + packed;
  }
  return dump;
}

// Converts a valid dump to a recipe.
inline std::string recipe_of(std::string_view dump) {
  std::string recipe = get_u32(dump, 8) == 1 ? "1" : "";
  std::size_t at = kFileHeader;
  while (at + kBlockHeader <= dump.size()) {
    const std::uint32_t packed = get_u32(dump, at + 8);
    std::string raw(get_u32(dump, at + 12), '\0');
    uLongf size = raw.size();
    if (::uncompress(reinterpret_cast<Bytef*>(raw.data()), &size,
                     reinterpret_cast<const Bytef*>(dump.data() + at + kBlockHeader), packed) != Z_OK)
      break;
    recipe += dump[at];
    put_u32(recipe, get_u32(dump, at + 4));
    put_u32(recipe, static_cast<std::uint32_t>(raw.size()));
    recipe += raw;
    at += kBlockHeader + packed;
  }
  return recipe;
}

}  // namespace rose::fuzz
