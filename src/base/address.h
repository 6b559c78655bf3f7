// IP addresses and ranges of them, both families in one form.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rose {

struct AddressRange {
  std::array<std::uint8_t, 16> ip{};  // IPv4 as ::ffff:a.b.c.d
  int prefix = 128;                   // of those 128 bits

  [[nodiscard]] bool contains(const AddressRange& other) const;
  // 127.0.0.0/8 and ::1.
  [[nodiscard]] bool is_loopback() const;
};

// "10.0.0.9", "10.0.0.0/8", "fd00::1", "fd00::/64".
[[nodiscard]] std::optional<AddressRange> parse_address_range(std::string_view text);

}  // namespace rose
