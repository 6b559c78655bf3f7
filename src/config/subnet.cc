#include "config/subnet.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/text.h"
#include "base/toml.h"

namespace rose::config {
namespace {

constexpr int kLeastPrefix = 8;
constexpr int kMostPrefix = 29;
constexpr int kLeastPrefixV6 = 16;
constexpr int kMostPrefixV6 = 125;

// The parts of "10.77.0.0/24". A part that is wrong or missing is nothing.
std::pair<std::optional<Address>, std::optional<int>> address_and_prefix(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string digits = slash == std::string::npos ? "" : text.substr(slash + 1);
  std::pair<std::optional<Address>, std::optional<int>> parts;
  if (const auto address = parse_address(std::string_view(text).substr(0, slash))) parts.first = *address;
  if (!digits.empty() && digits.size() <= 3 && std::all_of(digits.begin(), digits.end(), is_digit))
    parts.second = std::stoi(digits);
  return parts;
}

}  // namespace

Expected<Subnet, std::string> parse_subnet(const std::string& text) {
  const auto [address, written] = address_and_prefix(text);
  const bool v6 = address && !address->is_ipv4();
  const int least = v6 ? kLeastPrefixV6 : kLeastPrefix;
  const int most = v6 ? kMostPrefixV6 : kMostPrefix;
  const std::string accepted =
      address ? fmt::format("an {} network with a prefix of {} to {} such as \"{}\"", v6 ? "IPv6" : "IPv4", least, most,
                            v6 ? "fd00:77::/64" : "10.77.0.0/24")
              : std::string("a network such as \"10.77.0.0/24\" or \"fd00:77::/64\"");
  if (!address || !written) return UnexpectedOf(fmt::format("{} is not {}", toml::quoted(text), accepted));
  const int prefix = *written;
  if (prefix < least || prefix > most)
    return UnexpectedOf(fmt::format("{} has a prefix of {}, {} is needed", toml::quoted(text), prefix, accepted));
  const AddressRange range{*address, v6 ? prefix : 96 + prefix};
  if (range.network() != *address)
    return UnexpectedOf(fmt::format("{} is an address inside its network, which is \"{}/{}\"", toml::quoted(text),
                                    range.network().text(), prefix));
  return Subnet{range};
}

std::string masked_subnet(const std::string& text) {
  const auto [address, written] = address_and_prefix(text);
  const int prefix = written.value_or(0) + (address && address->is_ipv4() ? 96 : 0);
  if (!address || !written || prefix > 128) return text;
  return fmt::format("{}/{}", AddressRange{*address, prefix}.network().text(), *written);
}

Subnet subnet_of(const Deployment& deployment) {
  const auto subnet = parse_subnet(deployment.subnet);
  ROSE_ASSERT(subnet.has_value());
  return *subnet;
}

}  // namespace rose::config
