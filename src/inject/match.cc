#include "inject/match.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

#include "base/text.h"
#include "base/trim.h"

namespace rose::inject {
namespace {

struct FlagName {
  const char* name;
  std::uint64_t value;
  std::uint64_t mask;  // the bits that the flag's value occupies
};

#define FLAG(name) {#name, static_cast<std::uint32_t>(name), static_cast<std::uint32_t>(name)}
#define VALUE(name, mask) {#name, static_cast<std::uint32_t>(name), mask}
constexpr std::uint64_t kWhole = 0xffffffff;  // for int arguments, because the upper half of the register is undefined

// Flags by which calls are commonly selected; others can be given as numbers.
constexpr FlagName kFlags[] = {
    VALUE(O_RDONLY, O_ACCMODE),
    VALUE(O_WRONLY, O_ACCMODE),
    VALUE(O_RDWR, O_ACCMODE),
    FLAG(O_CREAT),
    FLAG(O_EXCL),
    FLAG(O_NOCTTY),
    FLAG(O_TRUNC),
    FLAG(O_APPEND),
    FLAG(O_NONBLOCK),
    FLAG(O_DSYNC),
    FLAG(O_SYNC),
    FLAG(O_DIRECT),
    FLAG(O_DIRECTORY),
    FLAG(O_NOFOLLOW),
    FLAG(O_CLOEXEC),
    FLAG(O_NOATIME),
    FLAG(O_PATH),
    FLAG(O_TMPFILE),
    VALUE(AT_FDCWD, kWhole),
    FLAG(AT_REMOVEDIR),
    FLAG(AT_SYMLINK_NOFOLLOW),
    FLAG(AT_SYMLINK_FOLLOW),
    FLAG(AT_EMPTY_PATH),
    VALUE(SEEK_SET, kWhole),
    VALUE(SEEK_CUR, kWhole),
    VALUE(SEEK_END, kWhole),
    VALUE(SEEK_DATA, kWhole),
    VALUE(SEEK_HOLE, kWhole),
    FLAG(LOCK_SH),
    FLAG(LOCK_EX),
    FLAG(LOCK_NB),
    FLAG(LOCK_UN),
    FLAG(FALLOC_FL_KEEP_SIZE),
    FLAG(FALLOC_FL_PUNCH_HOLE),
    FLAG(FALLOC_FL_ZERO_RANGE),
    FLAG(FALLOC_FL_COLLAPSE_RANGE),
    FLAG(FALLOC_FL_INSERT_RANGE),
    FLAG(RENAME_NOREPLACE),
    FLAG(RENAME_EXCHANGE),
    FLAG(RENAME_WHITEOUT),
    VALUE(F_DUPFD, kWhole),
    VALUE(F_DUPFD_CLOEXEC, kWhole),
    VALUE(F_GETFD, kWhole),
    VALUE(F_SETFD, kWhole),
    VALUE(F_GETFL, kWhole),
    VALUE(F_SETFL, kWhole),
    VALUE(F_SETLK, kWhole),
    VALUE(F_SETLKW, kWhole),
    VALUE(F_GETLK, kWhole),
    VALUE(F_OFD_SETLK, kWhole),
    VALUE(F_OFD_SETLKW, kWhole),
    VALUE(AF_UNIX, kWhole),
    VALUE(AF_INET, kWhole),
    VALUE(AF_INET6, kWhole),
    VALUE(AF_NETLINK, kWhole),
    VALUE(AF_PACKET, kWhole),
    VALUE(SOCK_STREAM, 0xf),
    VALUE(SOCK_DGRAM, 0xf),
    VALUE(SOCK_RAW, 0xf),
    VALUE(SOCK_SEQPACKET, 0xf),
    FLAG(SOCK_NONBLOCK),
    FLAG(SOCK_CLOEXEC),
    FLAG(MSG_PEEK),
    FLAG(MSG_DONTWAIT),
    FLAG(MSG_NOSIGNAL),
    FLAG(MSG_WAITALL),
    FLAG(MSG_TRUNC),
    FLAG(MSG_MORE),
    FLAG(MSG_OOB),
    FLAG(MSG_ZEROCOPY),
    VALUE(SHUT_RD, kWhole),
    VALUE(SHUT_WR, kWhole),
    VALUE(SHUT_RDWR, kWhole),
    VALUE(SOL_SOCKET, kWhole),
    FLAG(PROT_READ),
    FLAG(PROT_WRITE),
    FLAG(PROT_EXEC),
    VALUE(PROT_NONE, kWhole),
    VALUE(MAP_SHARED, 0xf),
    VALUE(MAP_PRIVATE, 0xf),
    FLAG(MAP_FIXED),
    FLAG(MAP_ANONYMOUS),
    FLAG(MAP_HUGETLB),
    FLAG(MAP_POPULATE),
    FLAG(MS_SYNC),
    FLAG(MS_ASYNC),
    FLAG(MS_INVALIDATE),
    VALUE(MADV_DONTNEED, kWhole),
    VALUE(MADV_FREE, kWhole),
    VALUE(MADV_WILLNEED, kWhole),
    VALUE(EPOLL_CTL_ADD, kWhole),
    VALUE(EPOLL_CTL_MOD, kWhole),
    VALUE(EPOLL_CTL_DEL, kWhole),
    VALUE(S_IFREG, S_IFMT),
    VALUE(S_IFDIR, S_IFMT),
};
#undef FLAG
#undef VALUE

std::optional<std::uint64_t> parse_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text.starts_with('0')) {
    base = 8;  // octal, as for file modes
  }
  std::uint64_t value = 0;
  const auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (err != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return negative ? std::uint64_t{0} - value : value;
}

bool takes_path(const kernel::SyscallInfo& info) { return info.path >= 0 || info.path2 >= 0 || info.fd >= 0; }
bool takes_address(const kernel::SyscallInfo& info) { return info.sockaddr >= 0 || info.fd >= 0; }

}  // namespace

Result<ArgumentMatch> parse_argument(int index, std::string_view text) {
  ArgumentMatch match{.index = index, .value = 0, .mask = 0};
  if (index < 0 || index > 5) {
    return fail(ErrorKind::input, fmt::format("argument {} does not exist", index), "a syscall has arguments 0 to 5");
  }
  if (const auto number = parse_number(trimmed(text))) {
    // An int argument may or may not be sign-extended in its register. Therefore only the lower half of the register is
    // compared if the value may be a negative int, such as -100 or 0xffffff9c.
    const bool sign_matters = (*number > 0x7fffffff && *number <= 0xffffffff) || *number >= 0xffffffff80000000;
    match.mask = sign_matters ? kWhole : ~std::uint64_t{0};
    match.value = *number & match.mask;
    return match;
  }
  for (const auto& part : split(text, '|')) {
    const auto word = trimmed(part);
    if (const auto number = parse_number(word)) {
      match.value |= *number;
      match.mask |= *number;
      continue;
    }
    const FlagName* found = nullptr;
    for (const auto& flag : kFlags) {
      if (word == flag.name) found = &flag;
    }
    if (found == nullptr) {
      std::vector<std::string> names;
      for (const auto& flag : kFlags) names.emplace_back(flag.name);
      auto hint = did_you_mean(word, names);
      if (hint.empty()) hint = "give the argument's value as a number, or flags such as \"O_CREAT|O_TRUNC\"";
      return fail(ErrorKind::input, fmt::format("unknown flag '{}' for argument {}", word, index), std::move(hint));
    }
    match.value |= found->value;
    match.mask |= found->mask;
  }
  return match;
}

Result<CallMatcher> CallMatcher::compile(const schedule::CallMatch& match) {
  CallMatcher matcher;
  matcher.syscall_ = match.syscall;
  matcher.path_ = match.path;
  matcher.path2_ = match.path2;
  matcher.peer_ = match.peer;
  matcher.local_ = match.local;
  matcher.process_ = match.process;
  const bool glob = match.syscall.find_first_of("*?") != std::string::npos;
  bool known = false, path_fits = false, address_fits = false;
  const auto add = [&](const kernel::SyscallInfo& info) {
    known = true;
    if (match.path && !takes_path(info)) return;
    if (match.path2 && info.path2 < 0) return;
    path_fits = true;
    if ((match.peer || match.local) && !takes_address(info)) return;
    address_fits = true;
    matcher.numbers_.set(static_cast<std::size_t>(info.number));
  };
  if (glob) {
    for (const auto& info : kernel::all_syscalls()) {
      if (info.number < kernel::kMostSyscalls && glob_match(match.syscall, info.name)) add(info);
    }
  } else if (const auto* info = kernel::find_syscall(match.syscall)) {
    add(*info);
  } else if (const auto number = kernel::syscall_number(match.syscall)) {
    kernel::SyscallInfo bare;
    bare.number = *number;
    bare.name = match.syscall;
    if (*number < kernel::kMostSyscalls) add(bare);
  }
  if (!known) {
    return fail(ErrorKind::input, fmt::format("unknown syscall '{}'", match.syscall),
                did_you_mean(match.syscall, kernel::syscall_names()));
  }
  if (!path_fits) {
    if (match.path2)
      return fail(ErrorKind::input,
                  fmt::format("'{}' does not use two paths, so `path2` can never match", match.syscall));
    return fail(ErrorKind::input,
                fmt::format("'{}' uses neither a path nor a descriptor, so `path` can never match", match.syscall));
  }
  if (!address_fits) {
    return fail(ErrorKind::input,
                fmt::format("'{}' does not use a socket, so `peer` and `local` can never match", match.syscall));
  }
  // exit and exit_group do not return, so they can have no injected result. Programs do not make the call rt_sigreturn
  // themselves.
  for (const char* never : {"exit", "exit_group", "rt_sigreturn"}) {
    const auto number = kernel::syscall_number(never);
    if (!number) continue;
    if (!glob && matcher.selects(*number)) {
      return fail(ErrorKind::input, fmt::format("'{}' cannot be injected into or waited for", never));
    }
    matcher.numbers_.reset(static_cast<std::size_t>(*number));
  }
  for (const auto& [index, text] : match.args) {
    ROSE_TRY(const auto argument, parse_argument(index, text));
    matcher.arguments_.push_back(argument);
  }
  return matcher;
}

std::vector<int> CallMatcher::numbers() const {
  std::vector<int> all;
  for (int number = 0; number < kernel::kMostSyscalls; ++number) {
    if (selects(number)) all.push_back(number);
  }
  return all;
}

bool CallMatcher::matches(CallFacts& call) const {
  if (!selects(call.number())) return false;
  for (const auto& argument : arguments_) {
    if (!argument.matches(call.argument(argument.index))) return false;
  }
  if (path2_) {
    const auto& paths = call.paths();
    if (paths.size() < 2 || !glob_match(*path2_, paths[1]) || (path_ && !glob_match(*path_, paths[0]))) return false;
  } else if (path_) {
    bool any = false;
    for (const auto& path : call.paths()) any = any || glob_match(*path_, path);
    if (!any) return false;
  }
  if (peer_ && !address_matches(*peer_, call.peer())) return false;
  if (local_ && !address_matches(*local_, call.local())) return false;
  if (process_ && !glob_match(*process_, call.process())) return false;
  return true;
}

std::string CallMatcher::describe() const {
  std::string inside;
  const auto add = [&](std::string_view label, const std::optional<std::string>& value) {
    if (!value) return;
    if (!inside.empty()) inside += ", ";
    inside += label;
    inside += *value;
  };
  add("", path_);
  add("to ", path2_);
  add("peer ", peer_);
  add("local ", local_);
  add("process ", process_);
  return inside.empty() ? syscall_ : fmt::format("{}({})", syscall_, inside);
}

bool address_matches(std::string_view pattern, std::string_view address) {
  if (address.empty()) return false;
  if (!pattern.starts_with(':')) return glob_match(pattern, address);
  const auto colon = address.rfind(':');
  return colon != std::string_view::npos && glob_match(pattern, address.substr(colon));
}

}  // namespace rose::inject
