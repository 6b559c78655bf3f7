// IP addresses and address ranges. IPv4 and IPv6 share one representation.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rose {

struct Address {
  std::array<std::uint8_t, 16> bytes{};  // IPv4 as ::ffff:a.b.c.d

  [[nodiscard]] static Address ipv4(const std::array<std::uint8_t, 4>& bytes);
  [[nodiscard]] bool is_ipv4() const;
  // The last 32 bits as a number. They distinguish the nodes of one deployment, which share the other bits.
  [[nodiscard]] std::uint32_t tail() const;
  [[nodiscard]] Address with_tail(std::uint32_t tail) const;
  // "10.0.0.9", "fd00::1".
  [[nodiscard]] std::string text() const;
  // "10.0.0.9:80", "[fd00::1]:80".
  [[nodiscard]] std::string with_port(std::uint16_t port) const;
  bool operator==(const Address&) const = default;
};

struct AddressRange {
  Address address;
  // length in bits, within the 128-bit form: 104 for 10.0.0.0/8, because an IPv4 address follows 96 other bits
  int prefix = 128;

  [[nodiscard]] bool contains(const AddressRange& other) const;
  // The address with all bits after the prefix cleared.
  [[nodiscard]] Address network() const;
  // 127.0.0.0/8 and ::1.
  [[nodiscard]] bool is_loopback() const;
};

[[nodiscard]] std::optional<Address> parse_address(std::string_view text);
// "10.0.0.9", "10.0.0.0/8", "fd00::1", "fd00::/64".
[[nodiscard]] std::optional<AddressRange> parse_address_range(std::string_view text);

}  // namespace rose
