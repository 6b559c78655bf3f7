#include "base/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace rose {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::size_t kTail = kMapped.size();

}  // namespace

Address Address::ipv4(const std::array<std::uint8_t, 4>& bytes) {
  Address address;
  std::copy(kMapped.begin(), kMapped.end(), address.bytes.begin());
  std::copy(bytes.begin(), bytes.end(), address.bytes.begin() + kTail);
  return address;
}

bool Address::is_ipv4() const { return std::equal(kMapped.begin(), kMapped.end(), bytes.begin()); }

std::uint32_t Address::tail() const {
  std::uint32_t tail = 0;
  std::memcpy(&tail, &bytes[kTail], sizeof tail);
  return ntohl(tail);
}

Address Address::with_tail(std::uint32_t tail) const {
  Address other = *this;
  tail = htonl(tail);
  std::memcpy(&other.bytes[kTail], &tail, sizeof tail);
  return other;
}

std::string Address::text() const {
  char text[INET6_ADDRSTRLEN] = {};
  if (is_ipv4()) ::inet_ntop(AF_INET, &bytes[kTail], text, sizeof text);
  else ::inet_ntop(AF_INET6, bytes.data(), text, sizeof text);
  return text;
}

std::string Address::with_port(std::uint16_t port) const {
  return is_ipv4() ? fmt::format("{}:{}", text(), port) : fmt::format("[{}]:{}", text(), port);
}

bool AddressRange::contains(const AddressRange& other) const {
  return other.prefix >= prefix && AddressRange{other.address, prefix}.network() == network();
}

Address AddressRange::network() const {
  Address network = address;
  for (int bit = prefix; bit < 128; ++bit)
    network.bytes[static_cast<std::size_t>(bit / 8)] &= static_cast<std::uint8_t>(~(0x80U >> (bit % 8)));
  return network;
}

bool AddressRange::is_loopback() const {
  return parse_address_range("127.0.0.0/8")->contains(*this) || parse_address_range("::1")->contains(*this);
}

std::optional<Address> parse_address(std::string_view text) {
  const std::string terminated(text);
  Address address;
  if (::inet_pton(AF_INET6, terminated.c_str(), address.bytes.data()) == 1) return address;
  std::array<std::uint8_t, 4> four{};
  if (::inet_pton(AF_INET, terminated.c_str(), four.data()) == 1) return Address::ipv4(four);
  return std::nullopt;
}

std::optional<AddressRange> parse_address_range(std::string_view text) {
  const auto slash = text.find('/');
  const auto address = parse_address(text.substr(0, slash));
  if (!address) return std::nullopt;
  AddressRange range{*address};
  if (slash == std::string_view::npos) return range;
  const int family_bits = text.substr(0, slash).find(':') == std::string_view::npos ? 32 : 128;
  const std::string_view digits = text.substr(slash + 1);
  int prefix = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
  if (error != std::errc{} || end != digits.data() + digits.size() || prefix < 0 || prefix > family_bits)
    return std::nullopt;
  range.prefix = 128 - family_bits + prefix;
  return range;
}

}  // namespace rose
