#include "deploy/dns/answer.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/ascii.h"
#include "base/text.h"

namespace rose::deploy {
namespace {

constexpr std::uint16_t kAddress = 1, kPointer = 12, kAddress6 = 28, kAny = 255, kInternet = 1;
constexpr std::size_t kHeader = 12;
constexpr std::size_t kMostName = 255;  // octets, RFC 1035 2.3.4
// An answer has at most 28 octets. With the question, this number of answers fits into a datagram of 1232 octets.
constexpr std::size_t kMostAnswers = 24;
constexpr std::uint32_t kTimeToLive = 600;  // in seconds; Docker's name server uses the same
constexpr std::uint16_t kPointToQuestion = 0xC000 | kHeader;
enum Code : std::uint8_t { kFine = 0, kFailed = 2, kNoSuchName = 3, kNotImplemented = 4 };

std::uint16_t word_at(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[at]) << 8 |
                                    static_cast<unsigned char>(bytes[at + 1]));
}

void put(std::string& bytes, std::uint32_t value, int octets) {
  for (int i = octets - 1; i >= 0; --i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
}

struct Query {
  std::string name;  // in lower case, without the final dot
  std::uint16_t type = 0;
  std::size_t end = 0;  // position after the question
};

// Reads the only question of a query. Compressed names are not accepted, because they occur only in answers.
bool read_question(std::string_view packet, Query& query) {
  std::size_t at = kHeader;
  for (;;) {
    if (at >= packet.size()) return false;
    const std::size_t length = static_cast<unsigned char>(packet[at++]);
    if (length == 0) break;
    if (length > 63 || at + length > packet.size() || query.name.size() + length >= kMostName) return false;
    if (!query.name.empty()) query.name += '.';
    query.name += lower_case(packet.substr(at, length));
    at += length;
  }
  if (at + 4 > packet.size() || word_at(packet, at + 2) != kInternet) return false;
  query.type = word_at(packet, at);
  query.end = at + 4;
  return true;
}

// The name of the address in a reverse name: for "2.0.77.10.in-addr.arpa", the name of 10.77.0.2. "" if there is none.
std::string name_of_reverse(const std::string& asked, const NameTable& names) {
  constexpr std::string_view kSuffix = ".in-addr.arpa";
  if (!asked.ends_with(kSuffix)) return "";
  std::vector<std::string> parts = split(asked.substr(0, asked.size() - kSuffix.size()), '.');
  std::reverse(parts.begin(), parts.end());
  const std::string address = fmt::format("{}", fmt::join(parts, "."));
  for (const auto& [name, addresses] : names)
    if (std::find(addresses.begin(), addresses.end(), address) != addresses.end()) return name;
  return "";
}

std::string encoded(const std::string& name) {
  std::string bytes;
  for (const std::string& label : split(name, '.')) {
    if (label.empty() || label.size() > 63) return "";
    bytes += static_cast<char>(label.size());
    bytes += label;
  }
  bytes += '\0';
  return bytes;
}

}  // namespace

std::vector<HostLine> read_hosts(const std::string& text) {
  std::vector<HostLine> lines;
  for (const std::string& line : split(text, '\n')) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : line.substr(0, line.find('#')) + " ") {
      if (c != ' ' && c != '\t' && c != '\r') word += c;
      else if (!word.empty()) words.push_back(std::exchange(word, {}));
    }
    if (words.size() > 1) lines.push_back({words.front(), {words.begin() + 1, words.end()}});
  }
  return lines;
}

NameTable name_table(const std::string& hosts) {
  NameTable names;
  for (const HostLine& line : read_hosts(hosts))
    for (const std::string& name : line.names) {
      std::vector<std::string>& addresses = names[lower_case(name)];
      if (std::find(addresses.begin(), addresses.end(), line.address) == addresses.end())
        addresses.push_back(line.address);
    }
  return names;
}

std::string dns_answer(std::string_view packet, const NameTable& names) {
  if (packet.size() < kHeader || (packet[2] & 0x80) != 0) return "";  // the packet is too short, or itself an answer
  Query query;
  const bool ordinary = (packet[2] & 0x78) == 0 && word_at(packet, 4) == 1;
  const bool read = ordinary && read_question(packet, query);
  Code code = kNotImplemented;
  std::uint16_t count = 0;
  std::string answers;
  const auto answer = [&](std::uint16_t type, const std::string& data) {
    put(answers, kPointToQuestion, 2);
    put(answers, type, 2);
    put(answers, kInternet, 2);
    put(answers, kTimeToLive, 4);
    put(answers, static_cast<std::uint32_t>(data.size()), 2);
    answers += data;
    ++count;
  };
  if (read) {
    code = kFailed;
    if (const auto known = names.find(query.name); known != names.end()) {
      code = kFine;
      for (const std::string& address : known->second) {
        std::string data(sizeof(in6_addr), '\0');
        const bool four = ::inet_pton(AF_INET, address.c_str(), data.data()) == 1;
        if (!four && ::inet_pton(AF_INET6, address.c_str(), data.data()) != 1) continue;
        data.resize(four ? sizeof(in_addr) : sizeof(in6_addr));
        const std::uint16_t type = four ? kAddress : kAddress6;
        if ((query.type == type || query.type == kAny) && count < kMostAnswers) answer(type, data);
      }
    } else if (query.type == kPointer) {
      const std::string name = encoded(name_of_reverse(query.name, names));
      code = name.size() > 1 ? kFine : kNoSuchName;
      if (code == kFine) answer(kPointer, name);
    }
  }
  std::string made(packet.substr(0, 2));
  // The flags of an answer: the query's operation code and "recursion desired" are copied, and "recursion available" is
  // set.
  made += static_cast<char>(0x80 | (packet[2] & 0x79));
  made += static_cast<char>(0x80 | code);
  put(made, read ? 1 : 0, 2);
  put(made, count, 2);
  put(made, 0, 4);
  if (read) made += packet.substr(kHeader, query.end - kHeader);
  return made + answers;
}

}  // namespace rose::deploy
