// SHA-256 (FIPS 180-4). Used to name files by their content.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace rose {

class Sha256 {
 public:
  void add(std::string_view bytes);
  // Returns 64 hexadecimal digits. Call it only once.
  [[nodiscard]] std::string finish();

 private:
  void block(const std::uint8_t* bytes);
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> rest_{};
  std::size_t held_ = 0;
  std::uint64_t bytes_ = 0;
};

[[nodiscard]] std::string sha256(std::string_view bytes);

}  // namespace rose
