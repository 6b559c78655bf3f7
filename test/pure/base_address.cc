#include <catch2/catch.hpp>

#include "base/address.h"

using namespace rose;

TEST_CASE("addresses of both families are parsed and formatted") {
  struct Row {
    const char* text;
    const char* written;  // nullptr if the address is invalid
    const char* with_port;
  };
  const Row rows[] = {{"10.0.0.9", "10.0.0.9", "10.0.0.9:80"},
                      {"fd00::1", "fd00::1", "[fd00::1]:80"},
                      {"FD00:0:0::0001", "fd00::1", "[fd00::1]:80"},
                      {"::ffff:10.0.0.9", "10.0.0.9", "10.0.0.9:80"},
                      {"0.0.0.0", "0.0.0.0", "0.0.0.0:80"},
                      {"::", "::", "[::]:80"},
                      {"", nullptr, nullptr},
                      {"10.0.0", nullptr, nullptr},
                      {"10.0.0.256", nullptr, nullptr},
                      {"10.0.0.9/8", nullptr, nullptr},
                      {"fd00::1::2", nullptr, nullptr},
                      {"n1", nullptr, nullptr}};
  for (const Row& row : rows) {
    INFO(row.text);
    const auto address = parse_address(row.text);
    REQUIRE(address.has_value() == (row.written != nullptr));
    if (!address) continue;
    CHECK(address->text() == row.written);
    CHECK(address->with_port(80) == row.with_port);
    CHECK(address->is_ipv4() == (address->text().find(':') == std::string::npos));
  }
}

TEST_CASE("the tail of an address can be read and replaced") {
  CHECK(parse_address("10.1.2.3")->tail() == 0x0a010203);
  CHECK(parse_address("10.1.2.3")->with_tail(0x0a0102ff).text() == "10.1.2.255");
  CHECK(parse_address("fd00::1:2")->tail() == 0x10002);
  CHECK(parse_address("fd00::1:2")->with_tail(7).text() == "fd00::7");
}

TEST_CASE("a range contains its addresses and smaller ranges") {
  struct Row {
    const char* range;
    const char* other;
    bool contains;
  };
  const Row rows[] = {
      {"10.0.0.0/8", "10.255.0.1", true},   {"10.0.0.0/8", "11.0.0.0", false},   {"10.0.0.0/8", "10.7.0.0/16", true},
      {"10.7.0.0/16", "10.0.0.0/8", false}, {"10.0.0.9", "10.0.0.9", true},      {"10.0.0.9", "10.0.0.8", false},
      {"10.0.0.8/31", "10.0.0.9", true},    {"0.0.0.0/0", "192.0.2.1", true},    {"0.0.0.0/0", "fd00::1", false},
      {"::/0", "10.0.0.1", true},           {"fd00::/64", "fd00::ffff:1", true}, {"fd00::/64", "fd00:0:0:1::", false},
      {"fd00::/125", "fd00::7", true},      {"fd00::/125", "fd00::8", false}};
  for (const Row& row : rows) {
    INFO(row.range << " and " << row.other);
    CHECK(parse_address_range(row.range)->contains(*parse_address_range(row.other)) == row.contains);
  }
  CHECK(parse_address_range("10.1.2.3/8")->network().text() == "10.0.0.0");
  CHECK(parse_address_range("fd00::1:2:3/64")->network().text() == "fd00::");
  CHECK(parse_address_range("127.3.0.1")->is_loopback());
  CHECK(parse_address_range("::1")->is_loopback());
  CHECK_FALSE(parse_address_range("126.0.0.0/7")->is_loopback());
  for (const char* text :
       {"10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8 ", "fd00::/129", "/8", "10.0.0.0/8/8"})
    CHECK_FALSE(parse_address_range(text).has_value());
}
