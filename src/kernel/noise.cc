#include "kernel/noise.h"

#include <cerrno>
#include <initializer_list>

#include "base/text.h"

namespace rose::kernel {
namespace {

constexpr std::string_view kForm =
    "write CALL:ERROR to add (globs of calls allowed: '*:ENOENT'), -CALL:ERROR to remove, or 'none' to clear the list";

std::size_t index_of(int number) { return static_cast<std::size_t>(number); }

void expect(NoiseTable& table, std::initializer_list<int> errors, std::initializer_list<std::string_view> calls) {
  for (const std::string_view call : calls) {
    const SyscallInfo* info = find_syscall(call);
    if (info == nullptr) ROSE_BUG("the built-in list names a call that does not exist");
    for (const int err : errors) table.expected[index_of(info->number)].set(index_of(err));
  }
}

}  // namespace

NoiseTable builtin_noise() {
  NoiseTable table;
  for (const std::string_view call :
       {"read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "sendfile", "accept", "accept4",
        "recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg"}) {
    if (const SyscallInfo* info = find_syscall(call)) table.again_when_nonblocking.set(index_of(info->number));
  }
  // These calls fail with EAGAIN if the flag RWF_NOWAIT or SPLICE_F_NONBLOCK is given.
  expect(table, {EAGAIN}, {"preadv2", "pwritev2", "splice", "tee", "vmsplice"});
  expect(table, {EINPROGRESS, EALREADY}, {"connect"});
  expect(table, {EAGAIN, EINTR, ETIMEDOUT}, {"futex", "futex_wait", "futex_waitv", "io_uring_enter"});
  expect(table, {EINTR, ETIMEDOUT},
         {"poll", "ppoll", "epoll_wait", "epoll_pwait", "epoll_pwait2", "clock_nanosleep", "mq_timedreceive"});
  expect(table, {EINTR},
         {"select", "pselect6", "nanosleep", "pause", "rt_sigsuspend", "wait4", "waitid", "io_getevents",
          "io_pgetevents"});
  expect(table, {EAGAIN, EINTR}, {"rt_sigtimedwait", "semtimedop"});
  return table;
}

Result<void> change_noise(NoiseTable& table, std::string_view rule) {
  if (rule == "none") {
    table = {};
    return {};
  }
  const bool out = rule.starts_with('-');
  const std::string_view pair = out ? rule.substr(1) : rule;
  const std::size_t colon = pair.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == pair.size())
    return fail(ErrorKind::usage, fmt::format("invalid rule '{}': expected CALL:ERROR", rule), std::string(kForm));
  const std::string_view call = pair.substr(0, colon), error = pair.substr(colon + 1);
  const std::optional<int> err = errno_number(error);
  if (!err || *err <= 0 || *err >= NoiseTable::kErrnos) {
    const std::string hint = did_you_mean(error, errno_names());
    return fail(ErrorKind::usage, fmt::format("unknown error '{}'", error),
                hint.empty() ? "a name such as ENOENT" : hint);
  }
  std::vector<int> numbers;
  if (const SyscallInfo* info = find_syscall(call)) {
    numbers.push_back(info->number);
  } else {
    for (const SyscallInfo& each : all_syscalls()) {
      if (glob_match(call, each.name)) numbers.push_back(each.number);
    }
  }
  if (numbers.empty()) {
    const std::string hint = did_you_mean(call, syscall_names());
    return fail(ErrorKind::usage, fmt::format("unknown syscall '{}'", call), hint.empty() ? std::string(kForm) : hint);
  }
  bool changed = false;
  for (const int number : numbers) {
    const bool was = table.expected[index_of(number)].test(index_of(*err)) ||
                     (*err == EAGAIN && table.again_when_nonblocking.test(index_of(number)));
    changed |= was;
    table.expected[index_of(number)].set(index_of(*err), !out);
    if (out && *err == EAGAIN) table.again_when_nonblocking.reset(index_of(number));
  }
  // A rule without effect is probably a mistake, so it is refused.
  if (out && !changed)
    return fail(ErrorKind::usage, fmt::format("'{}' removes an entry that is not in the list", rule),
                "'rose trace --noise list' prints the list");
  return {};
}

Result<NoiseTable> noise_table(const std::vector<std::string>& rules) {
  NoiseTable table = builtin_noise();
  for (const std::string& rule : rules) ROSE_CHECK(change_noise(table, rule));
  return table;
}

std::vector<std::string> describe_noise(const NoiseTable& table) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& what, const auto& has) {
    std::string calls;
    for (const SyscallInfo& info : all_syscalls()) {
      if (has(info.number)) calls += " " + std::string(info.name);
    }
    if (!calls.empty()) lines.push_back(what + ":" + calls);
  };
  add("EAGAIN when non-blocking", [&](int number) { return table.again_when_nonblocking.test(index_of(number)); });
  for (int err = 1; err < NoiseTable::kErrnos; ++err)
    add(errno_name(err), [&](int number) { return table.expected[index_of(number)].test(index_of(err)); });
  return lines;
}

}  // namespace rose::kernel
