// The network from which nodes get their addresses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/address.h"
#include "base/result.h"
#include "config/config.h"

namespace rose::config {

// In a large IPv6 network, only the first 65,536 addresses are used.
struct Subnet {
  AddressRange range;

  [[nodiscard]] bool is_ipv4() const { return range.address.is_ipv4(); }
  // The prefix length in the notation of the address family: 24 for an IPv4 network whose `range` has a prefix of 120.
  [[nodiscard]] int prefix() const { return is_ipv4() ? range.prefix - 96 : range.prefix; }
  [[nodiscard]] std::uint32_t network() const { return range.address.tail(); }
  [[nodiscard]] std::uint32_t last() const {
    const int bits = 128 - range.prefix;
    return network() | ((1U << (is_ipv4() ? bits : std::min(bits, 16))) - 1);
  }
  [[nodiscard]] std::uint32_t client() const { return last() - 1; }
  [[nodiscard]] bool contains(const Address& other) const {
    return range.contains({other}) && other == range.address.with_tail(other.tail()) && other.tail() <= last();
  }
  [[nodiscard]] std::string text(std::uint32_t tail) const { return range.address.with_tail(tail).text(); }
};

// Returns the subnet, or what is wrong with the text.
Expected<Subnet, std::string> parse_subnet(const std::string& text);

// The network that contains the address: "172.21.0.0/16" for "172.21.80.0/16". Returns other texts unchanged.
std::string masked_subnet(const std::string& text);

// The subnet of a deployment whose configuration was accepted.
Subnet subnet_of(const Deployment& deployment);

}  // namespace rose::config
