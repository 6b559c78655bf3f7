#include "inject/sockets.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "base/file.h"
#include "kernel/syscalls.h"

namespace rose::inject {
namespace {

std::set<std::string> socket_inodes(pid_t pid) {
  std::set<std::string> inodes;
  std::error_code error;
  for (std::filesystem::directory_iterator at(fmt::format("/proc/{}/fd", pid), error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(at->path(), gone).string();
    if (!gone && target.rfind("socket:[", 0) == 0) inodes.insert(target.substr(8, target.size() - 9));
  }
  return inodes;
}

// Parses "0100007F:1CE9": 32-bit words in native byte order, then the port.
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

struct Socket {
  std::string protocol;  // "tcp6"
  std::string inode;
  rose_endpoint local{}, remote{};
};

// The sockets in the process's network namespace whose inode numbers are in `wanted`.
std::vector<Socket> sockets_of(pid_t pid, const std::set<std::string>& wanted) {
  std::vector<Socket> found;
  if (wanted.empty()) return found;
  for (const auto& [file, protocol] :
       {std::pair{"tcp", IPPROTO_TCP}, {"tcp6", IPPROTO_TCP}, {"udp", IPPROTO_UDP}, {"udp6", IPPROTO_UDP}}) {
    const auto text = read_file(fmt::format("/proc/{}/net/{}", pid, file));
    if (!text) continue;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      // The columns are: sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
      std::istringstream words(line);
      std::vector<std::string> fields;
      for (std::string word; fields.size() < 10 && words >> word;) fields.push_back(word);
      Socket socket{.protocol = file, .inode = {}, .local = {}, .remote = {}};
      if (fields.size() < 10 || !wanted.contains(fields[9]) || !parse_endpoint(fields[1], socket.local) ||
          !parse_endpoint(fields[2], socket.remote))
        continue;
      socket.inode = fields[9];
      socket.local.protocol = socket.remote.protocol = static_cast<__u8>(protocol);
      found.push_back(std::move(socket));
    }
  }
  return found;
}

std::string inode_of(pid_t pid, int fd) {
  std::error_code gone;
  const std::string target = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/{}", pid, fd), gone).string();
  return target.starts_with("socket:[") ? target.substr(8, target.size() - 9) : std::string();
}

}  // namespace

std::vector<rose_endpoint> endpoints_of(pid_t pid) {
  std::vector<rose_endpoint> found;
  for (const Socket& socket : sockets_of(pid, socket_inodes(pid))) found.push_back(socket.local);
  return found;
}

std::optional<SocketPeer> peer_of(pid_t pid, int fd) {
  const std::string inode = inode_of(pid, fd);
  if (inode.empty()) return std::nullopt;
  for (const Socket& socket : sockets_of(pid, {inode}))
    if (socket.remote.port != 0) return SocketPeer{socket.remote, socket.protocol.substr(0, 3)};
  return std::nullopt;
}

std::optional<SocketWait> socket_wait(pid_t pid, pid_t tid) {
  // The file contains the call's number, its six arguments, the stack pointer and the program counter. If the thread is
  // not in a call, the file contains "running" or "-1 ...".
  std::istringstream words(read_file(fmt::format("/proc/{}/task/{}/syscall", pid, tid)).value_or(""));
  int number = -1;
  std::uint64_t first = 0, second = 0;
  if (!(words >> number >> std::hex >> first >> second)) return std::nullopt;
  switch (number) {
    case SYS_read:
    case SYS_write:
    case SYS_readv:
    case SYS_writev:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_connect: return SocketWait{std::string(kernel::syscall_name(number)), static_cast<int>(first)};
#ifdef SYS_poll
    case SYS_poll:
#endif
    case SYS_ppoll: {
      if (second != 1) return std::nullopt;
      pollfd polled{};
      iovec mine{&polled, sizeof polled}, theirs{reinterpret_cast<void*>(first), sizeof polled};
      if (::process_vm_readv(pid, &mine, 1, &theirs, 1, 0) != static_cast<ssize_t>(sizeof polled) || polled.fd < 0)
        return std::nullopt;
      return SocketWait{std::string(kernel::syscall_name(number)), polled.fd};
    }
    default: return std::nullopt;
  }
}

}  // namespace rose::inject
