#include "base/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace rose {

bool AddressRange::contains(const AddressRange& other) const {
  if (other.prefix < prefix) return false;
  for (int bit = 0; bit < prefix; ++bit) {
    const auto mask = 0x80U >> (bit % 8);
    const auto at = static_cast<std::size_t>(bit / 8);
    if ((ip[at] & mask) != (other.ip[at] & mask)) return false;
  }
  return true;
}

bool AddressRange::is_loopback() const {
  return parse_address_range("127.0.0.0/8")->contains(*this) || parse_address_range("::1")->contains(*this);
}

std::optional<AddressRange> parse_address_range(std::string_view text) {
  AddressRange range;
  const auto slash = text.find('/');
  const std::string address(text.substr(0, slash));
  int family_bits = 128;
  in_addr four{};
  if (::inet_pton(AF_INET, address.c_str(), &four) == 1) {
    family_bits = 32;
    range.ip[10] = range.ip[11] = 0xff;
    std::memcpy(&range.ip[12], &four, 4);
  } else if (::inet_pton(AF_INET6, address.c_str(), range.ip.data()) != 1) {
    return std::nullopt;
  }
  if (slash == std::string_view::npos) return range;
  const std::string_view digits = text.substr(slash + 1);
  int prefix = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
  if (error != std::errc{} || end != digits.data() + digits.size() || prefix < 0 || prefix > family_bits) return std::nullopt;
  range.prefix = 128 - family_bits + prefix;
  return range;
}

}  // namespace rose
