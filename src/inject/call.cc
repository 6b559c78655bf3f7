#include "inject/call.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/address.h"
#include "base/path.h"
#include "kernel/processes.h"

namespace rose::inject {
namespace {

constexpr std::string_view kSocketLink = "socket:[";  // how the target of a socket's link in /proc/PID/fd begins

// The complete target of a link under /proc; "" if it cannot be read.
std::string read_link(const std::string& path) {
  std::string target(PATH_MAX, '\0');
  const auto size = ::readlink(path.c_str(), target.data(), target.size());
  if (size < 0) return {};
  target.resize(static_cast<std::size_t>(size));
  return target;
}

std::string read_small(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::string text(4096, '\0');
  const auto size = ::read(file.get(), text.data(), text.size());
  text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return text;
}

}  // namespace

NotifiedCall::NotifiedCall(int number, pid_t tid, const std::array<std::uint64_t, 6>& arguments,
                           std::shared_ptr<FileTaker> taker)
    : number_(number),
      tid_(tid),
      arguments_(arguments),
      info_(kernel::find_syscall(number)),
      taker_(std::move(taker)) {}

std::uint64_t NotifiedCall::argument(int index) const {
  const std::uint64_t argument = arguments_[static_cast<std::size_t>(index)];
  if (index != 2 || number_ != SYS_openat2) return argument;
  std::uint64_t flags = 0;
  const auto how = read_memory(argument, sizeof flags);
  if (how.size() == sizeof flags) std::memcpy(&flags, how.data(), sizeof flags);
  return flags;
}

pid_t NotifiedCall::tgid() {
  if (tgid_ >= 0) return tgid_;
  tgid_ = 0;
  const auto status = read_small(fmt::format("/proc/{}/status", tid_));
  if (const auto at = status.find("\nTgid:"); at != std::string::npos) tgid_ = std::atoi(status.c_str() + at + 6);
  return tgid_;
}

std::string NotifiedCall::read_memory(std::uint64_t address, std::size_t size) const {
  std::string data(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    iovec mine{data.data() + done, size - done};
    iovec theirs{reinterpret_cast<void*>(address + done), size - done};
    const auto got = ::process_vm_readv(tid_, &mine, 1, &theirs, 1, 0);
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  data.resize(done);
  return data;
}

Fd NotifiedCall::memory(const std::function<bool()>& alive) const {
  // The open file refers to the memory and not to the thread's id. So if the thread still waits in its call after the
  // file was opened, the memory is that of this thread.
  Fd opened(::open(fmt::format("/proc/{}/mem", tid_).c_str(), O_RDWR | O_CLOEXEC));
  return opened && alive() ? std::move(opened) : Fd();
}

bool NotifiedCall::write_memory(std::uint64_t address, const void* data, std::size_t size,
                                const std::function<bool()>& alive) const {
  const Fd opened = memory(alive);
  return opened && ::pwrite(opened.get(), data, size, static_cast<off_t>(address)) == static_cast<ssize_t>(size);
}

std::string NotifiedCall::read_string(std::uint64_t address) const {
  constexpr std::size_t kPage = 4096;
  std::string text;
  // Read page by page: a string near the end of a mapping must be readable even if the next page is not mapped.
  while (text.size() < PATH_MAX) {
    const std::size_t here = kPage - (address + text.size()) % kPage;
    const auto part = read_memory(address + text.size(), std::min<std::size_t>(here, 256));
    if (part.empty()) return {};
    const auto end = part.find('\0');
    text += part.substr(0, end);
    if (end != std::string::npos) return text;
  }
  return {};
}

std::string NotifiedCall::link_path(const std::string& link) const {
  auto path = read_link(fmt::format("/proc/{}/{}", tid_, link));
  if (!path.starts_with('/')) return path;
  constexpr std::string_view kGone = " (deleted)";
  if (path.ends_with(kGone)) path.resize(path.size() - kGone.size());
  // The kernel reports the path relative to rose's root, so the caller's root is removed from it.
  const auto root = read_link(fmt::format("/proc/{}/root", tid_));
  if (root.size() > 1 && path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/'))
    path.erase(0, root.size());
  return path.empty() ? "/" : path;
}

std::string NotifiedCall::descriptor_path(int fd) const { return link_path(fmt::format("fd/{}", fd)); }

void NotifiedCall::add_path(int path_argument, int dirfd_argument) {
  const auto address = argument(path_argument);
  const auto text = address == 0 ? std::string() : read_string(address);
  const int dirfd = dirfd_argument < 0 ? AT_FDCWD : static_cast<int>(argument(dirfd_argument));
  if (text.empty()) {
    // An empty path (with AT_EMPTY_PATH and similar flags) refers to the descriptor itself.
    if (dirfd >= 0) {
      if (auto path = descriptor_path(dirfd); !path.empty()) paths_.push_back(std::move(path));
    }
    return;
  }
  std::string base;
  if (!text.starts_with('/')) {
    base = dirfd >= 0 ? descriptor_path(dirfd) : link_path("cwd");
    if (base.empty()) {  // the folder to which the path is relative is unknown: for example, dirfd is not open
      paths_.push_back(text);
      return;
    }
  }
  paths_.push_back(join_path(base, text));
}

const std::vector<std::string>& NotifiedCall::paths() {
  if (have_paths_) return paths_;
  have_paths_ = true;
  if (info_ == nullptr) return paths_;
  if (info_->path >= 0) add_path(info_->path, info_->dirfd);
  if (info_->path2 >= 0) add_path(info_->path2, info_->dirfd2);
  if (info_->path < 0 && info_->path2 < 0 && info_->fd >= 0) {
    auto path = descriptor_path(static_cast<int>(argument(info_->fd)));
    if (!path.empty()) paths_.push_back(std::move(path));
  }
  return paths_;
}

Fd NotifiedCall::duplicate(int fd, int& err) {
  const std::string path = descriptor_path(fd);
  if (path.empty() || file_answers(std::to_string(tid_), fd, path, tid_)) return take(fd, err);
  err = -EXDEV;
  return {};
}

Fd NotifiedCall::take(int fd, int& err) { return taker_->take(tid_, tgid(), fd, err); }

std::string NotifiedCall::address_argument() const {
  if (info_ == nullptr || info_->sockaddr < 0) return {};
  const auto address = argument(info_->sockaddr);
  // For connect, bind and sendto, the argument after the address is its length.
  const auto size = info_->sockaddr < 5 ? argument(info_->sockaddr + 1) : 0;
  if (address == 0 || size < sizeof(sa_family_t) || size > sizeof(sockaddr_storage)) return {};
  const auto data = read_memory(address, size);
  return address_text(data.data(), data.size());
}

void NotifiedCall::look_at_socket() {
  if (have_socket_) return;
  have_socket_ = true;
  if (info_ == nullptr || info_->fd < 0) return;
  const auto fd = static_cast<int>(argument(info_->fd));
  int err = 0;
  if (const Fd socket = descriptor_path(fd).starts_with(kSocketLink) ? take(fd, err) : Fd()) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0) {
      local_ = address_text(&address, size);
    }
    const sa_family_t family = address.ss_family;
    size = sizeof address;
    if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0) {
      peer_ = address_text(&address, size);
    }
    // Peers have the same form as in traces. The peer of a netlink socket is the kernel, and is named after the
    // protocol. If the peer of a Unix socket has no name, the name of the caller's own socket is used.
    if (int protocol = 0; family == AF_NETLINK) {
      socklen_t length = sizeof protocol;
      if (::getsockopt(socket.get(), SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0)
        peer_ = netlink_text(static_cast<std::uint64_t>(protocol));
    } else if (family == AF_UNIX && (peer_.empty() || peer_ == "unix:")) {
      peer_ = local_;
    }
  }
  auto named = address_argument();
  // sendmsg and sendmmsg pass the address in a msghdr. The msghdr of recvmsg is not read, because there the address is
  // an output.
  if (named.empty() && kernel::names_peer_in_message(info_->name)) {
    msghdr header{};
    const auto data = read_memory(argument(1), sizeof header);
    if (data.size() == sizeof header) {
      std::memcpy(&header, data.data(), sizeof header);
      if (header.msg_name != nullptr && header.msg_namelen <= sizeof(sockaddr_storage)) {
        const auto name = read_memory(reinterpret_cast<std::uint64_t>(header.msg_name), header.msg_namelen);
        named = address_text(name.data(), name.size());
      }
    }
  }
  if (!named.empty()) (info_->name == "bind" ? local_ : peer_) = std::move(named);
}

const std::string& NotifiedCall::peer() {
  look_at_socket();
  return peer_;
}

const std::string& NotifiedCall::local() {
  look_at_socket();
  return local_;
}

const std::string& NotifiedCall::process() {
  if (have_process_) return process_;
  have_process_ = true;
  process_ = read_small(fmt::format("/proc/{}/comm", tgid()));
  if (process_.ends_with('\n')) process_.pop_back();
  return process_;
}

std::string NotifiedCall::describe() {
  std::string what;
  for (const auto& path : paths()) {
    if (!what.empty()) what += ", ";
    what += path;
  }
  if (what.empty() || what.starts_with("socket:")) {
    if (!peer().empty()) {
      what = "peer " + peer();
    } else if (!local().empty()) {
      what = "local " + local();
    }
  }
  return fmt::format("{}({})", kernel::syscall_name(number_), what);
}

std::string address_text(const void* address, std::size_t size) {
  sockaddr_storage storage{};
  std::memcpy(&storage, address, std::min(size, sizeof storage));
  if (storage.ss_family == AF_INET && size >= sizeof(sockaddr_in)) {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof in);
    std::array<std::uint8_t, 4> bytes{};
    std::memcpy(bytes.data(), &in.sin_addr, bytes.size());
    return Address::ipv4(bytes).with_port(ntohs(in.sin_port));
  }
  if (storage.ss_family == AF_INET6 && size >= sizeof(sockaddr_in6) - 4) {
    sockaddr_in6 in{};
    std::memcpy(&in, &storage, sizeof in);
    Address ip;
    std::memcpy(ip.bytes.data(), &in.sin6_addr, ip.bytes.size());
    return ip.with_port(ntohs(in.sin6_port));
  }
  if (storage.ss_family == AF_UNIX && size > offsetof(sockaddr_un, sun_path)) {
    return unix_text({reinterpret_cast<const char*>(&storage) + offsetof(sockaddr_un, sun_path),
                      std::min(size, sizeof(sockaddr_un)) - offsetof(sockaddr_un, sun_path)});
  }
  return {};
}

}  // namespace rose::inject
