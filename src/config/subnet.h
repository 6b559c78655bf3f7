// The network that a deployment's nodes get their addresses from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/address.h"
#include "base/result.h"
#include "config/config.h"

namespace rose::config {

// Of a large IPv6 network, the first 65,536 addresses are given out.
struct Subnet {
  AddressRange range;

  [[nodiscard]] bool is_ipv4() const { return range.address.is_ipv4(); }
  [[nodiscard]] int prefix() const { return is_ipv4() ? range.prefix - 96 : range.prefix; }  // as people write it
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

// What is wrong with it, or the subnet.
tl::expected<Subnet, std::string> parse_subnet(const std::string& text);

// Of a configuration that was read.
Subnet subnet_of(const Deployment& deployment);

}  // namespace rose::config
