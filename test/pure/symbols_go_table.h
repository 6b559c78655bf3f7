// Makes Go's table of functions (.gopclntab) by hand, in each of its layouts.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

namespace rose::symbols::test {

template <typename T>
inline void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <typename T>
inline void put_at(std::string& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// A table of two functions: "main.a" of a.go at 0x1000, and "main.(*B).c" of b.go at 0x1040, which ends at 0x1080.
inline std::string table(int version) {
  std::string bytes;
  put<std::uint32_t>(bytes, version == 2    ? 0xfffffffb
                            : version == 16 ? 0xfffffffa
                            : version == 18 ? 0xfffffff0
                                            : 0xfffffff1);
  put<std::uint32_t>(bytes, 0x08010000);
  put<std::uint64_t>(bytes, 2);
  const bool relative = version >= 18;
  const std::uint64_t base = relative ? 0 : 0x1000;
  if (version == 2) {
    const std::size_t functions = bytes.size();
    bytes.append(5 * 8 + 4, '\0');
    const std::size_t names = bytes.size();
    bytes += std::string("main.a\0main.(*B).c\0a.go\0b.go\0", 29);
    const std::size_t values = bytes.size();
    bytes += std::string("\4\1\0\6\1\0", 6);  // the offsets of file 1 and of file 2
    const std::size_t files = bytes.size();
    put<std::uint32_t>(bytes, 3);
    put<std::uint32_t>(bytes, static_cast<std::uint32_t>(names + 19));
    put<std::uint32_t>(bytes, static_cast<std::uint32_t>(names + 24));
    put_at<std::uint32_t>(bytes, functions + 40, static_cast<std::uint32_t>(files));
    for (unsigned i = 0; i < 2; ++i) {
      put_at<std::uint64_t>(bytes, functions + 16 * i, 0x1000 + 0x40 * i);
      put_at<std::uint64_t>(bytes, functions + 16 * i + 8, bytes.size());
      put<std::uint64_t>(bytes, 0x1000 + 0x40 * i);
      for (const std::uint32_t word : {static_cast<std::uint32_t>(names + 7 * i), 0U, 0U, 0U,
                                       static_cast<std::uint32_t>(values + 3 * i), 0U, 0U, 0U})
        put(bytes, word);
    }
    put_at<std::uint64_t>(bytes, functions + 32, 0x1080);
    return bytes;
  }
  const std::size_t header = bytes.size();
  bytes.append((relative ? 7 : 6) * 8, '\0');
  std::size_t word = header;
  const auto part = [&] {
    put_at<std::uint64_t>(bytes, word, bytes.size());
    word += 8;
  };
  put_at<std::uint64_t>(bytes, word, 2);
  word += 8;
  if (relative) {
    put_at<std::uint64_t>(bytes, word, 0x401000);
    word += 8;
  }
  part();
  bytes += std::string("main.a\0main.(*B).c\0", 19);
  part();
  put<std::uint32_t>(bytes, 0);
  put<std::uint32_t>(bytes, 5);
  part();
  bytes += std::string("a.go\0b.go\0", 10);
  part();
  bytes += std::string("\0\2\1\0\4\1\0", 7);  // the first byte is unused, as offset 0 means none; then files 0 and 1
  part();
  const std::size_t functions = bytes.size();
  const unsigned field = relative ? 4 : 8;
  bytes.append(5 * field, '\0');
  const auto set = [&](std::size_t i, std::uint64_t value) {
    if (field == 4) put_at<std::uint32_t>(bytes, functions + i * field, static_cast<std::uint32_t>(value));
    else put_at<std::uint64_t>(bytes, functions + i * field, value);
  };
  for (unsigned i = 0; i < 2; ++i) {
    set(2 * i, base + 0x40 * i);
    set(2 * i + 1, bytes.size() - functions);
    if (relative) put<std::uint32_t>(bytes, 0x40 * i);
    else put<std::uint64_t>(bytes, base + 0x40 * i);
    for (const std::uint32_t value : {7 * i, 0U, 0U, 0U, 1 + 3 * i, 0U, 0U, 0U}) put(bytes, value);
  }
  set(4, base + 0x80);
  return bytes;
}

}  // namespace rose::symbols::test
