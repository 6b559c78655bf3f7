#include "draft/net_tables.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/address.h"

namespace rose::draft {
namespace {

// Splits a line into at most `most` words; the last one contains the rest.
std::vector<std::string_view> columns(std::string_view line, std::size_t most) {
  std::vector<std::string_view> words;
  while (words.size() < most) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const std::size_t end = words.size() + 1 == most ? line.size() : std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

template <typename Number>
bool read_number(std::string_view text, int base, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// Reads an address and a port in the kernel's form: "0100007F:1B59", with 32 instead of 8 digits before the colon for
// IPv6. The address consists of 32-bit words in native byte order.
bool read_endpoint(std::string_view text, std::string& address, std::uint16_t& port) {
  const std::size_t colon = text.find(':');
  if (colon != 8 && colon != 32) return false;
  Address parsed;
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t i = 0; i < colon / 8; ++i) {
    std::uint32_t word = 0;
    if (!read_number(text.substr(i * 8, 8), 16, word)) return false;
    std::memcpy(bytes.data() + i * 4, &word, 4);
  }
  if (colon == 8) parsed = Address::ipv4({bytes[0], bytes[1], bytes[2], bytes[3]});
  else parsed.bytes = bytes;
  address = parsed.text();
  return read_number(text.substr(colon + 1), 16, port);
}

}  // namespace

void each_line(std::string_view text, const std::function<void(std::string_view)>& what) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    what(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool read_socket_line(std::string_view line, Socket& socket) {
  const auto words = columns(line, 11);
  return words.size() >= 10 && read_endpoint(words[1], socket.address, socket.port) &&
         read_endpoint(words[2], socket.remote, socket.remote_port) && read_number(words[3], 16, socket.state) &&
         read_number(words[9], 10, socket.inode);
}

std::string read_unix_line(std::string_view line, std::uint64_t& inode) {
  const auto words = columns(line, 8);
  std::uint32_t flags = 0;
  constexpr std::uint32_t kAccepts = 0x10000;
  if (words.size() < 8 || !read_number(words[3], 16, flags) || (flags & kAccepts) == 0 ||
      !read_number(words[6], 10, inode))
    return "";
  return words[7].starts_with('/') ? std::string(words[7]) : "";
}

std::vector<std::string> read_fib_trie(std::string_view text) {
  std::vector<std::string> found;
  std::string last;
  each_line(text, [&](std::string_view line) {
    const std::size_t dash = line.find("|-- ");
    if (dash != std::string_view::npos) {
      last = std::string(line.substr(dash + 4));
    } else if (line.find("host LOCAL") != std::string_view::npos && !last.empty()) {
      if (std::find(found.begin(), found.end(), last) == found.end() && parse_address(last)) found.push_back(last);
      last.clear();
    }
  });
  return found;
}

std::vector<std::string> read_if_inet6(std::string_view text) {
  std::vector<std::string> found;
  each_line(text, [&](std::string_view line) {
    if (line.size() < 32) return;
    Address address;
    for (std::size_t i = 0; i < 16; ++i)
      if (!read_number(line.substr(i * 2, 2), 16, address.bytes[i])) return;
    found.push_back(address.text());
  });
  return found;
}

}  // namespace rose::draft
