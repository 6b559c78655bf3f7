#include "inject/sockets.h"

#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "base/file.h"

namespace rose::inject {
namespace {

std::set<std::string> socket_inodes(pid_t pid) {
  std::set<std::string> inodes;
  std::error_code error;
  for (std::filesystem::directory_iterator at(fmt::format("/proc/{}/fd", pid), error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(at->path(), gone).string();
    if (!gone && target.rfind("socket:[", 0) == 0) inodes.insert(target.substr(8, target.size() - 9));
  }
  return inodes;
}

// "0100007F:1CE9": words of four bytes as the machine has them, then the port.
bool parse_endpoint(const std::string& text, rose_endpoint& endpoint) {
  const auto colon = text.find(':');
  if (colon != 8 && colon != 32) return false;
  std::uint32_t words[4] = {};
  for (std::size_t i = 0; i * 8 < colon; ++i) {
    if (std::from_chars(text.data() + i * 8, text.data() + i * 8 + 8, words[i], 16).ec != std::errc{}) return false;
  }
  const bool any = std::all_of(std::begin(words), std::end(words), [](auto word) { return word == 0; });
  if (colon == 32) {
    std::memcpy(endpoint.ip, words, sizeof words);
  } else if (!any) {
    endpoint.ip[10] = endpoint.ip[11] = 0xff;
    std::memcpy(endpoint.ip + 12, words, 4);
  }
  return std::from_chars(text.data() + colon + 1, text.data() + text.size(), endpoint.port, 16).ec == std::errc{};
}

}  // namespace

std::vector<rose_endpoint> endpoints_of(pid_t pid) {
  std::vector<rose_endpoint> found;
  const auto inodes = socket_inodes(pid);
  if (inodes.empty()) return found;
  for (const auto& [file, protocol] : {std::pair{"tcp", IPPROTO_TCP}, {"tcp6", IPPROTO_TCP}, {"udp", IPPROTO_UDP}, {"udp6", IPPROTO_UDP}}) {
    const auto text = read_file(fmt::format("/proc/{}/net/{}", pid, file));
    if (!text) continue;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
      std::istringstream words(line);
      std::vector<std::string> fields;
      for (std::string word; fields.size() < 10 && words >> word;) fields.push_back(word);
      rose_endpoint endpoint{};
      if (fields.size() < 10 || inodes.count(fields[9]) == 0 || !parse_endpoint(fields[1], endpoint)) continue;
      endpoint.protocol = static_cast<__u8>(protocol);
      found.push_back(endpoint);
    }
  }
  return found;
}

}  // namespace rose::inject
