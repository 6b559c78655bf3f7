// Converts the addresses of a planted system's nodes from the command line to the form that sockets use. C++.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

inline constexpr std::uint16_t kPort = 7000;

inline sockaddr_in address_of(const std::string& ip) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  if (inet_pton(AF_INET, ip.c_str(), &address.sin_addr) != 1) {
    std::fprintf(stderr, "'%s' is no address\n", ip.c_str());
    std::exit(2);
  }
  return address;
}

// Splits "IP,IP,...".
inline std::vector<std::string> addresses_in(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream in(text);
  for (std::string ip; std::getline(in, ip, ',');) found.push_back(ip);
  return found;
}
