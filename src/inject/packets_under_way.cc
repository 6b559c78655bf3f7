#include "inject/packets_under_way.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/units.h"
#include "kernel/attach.h"

namespace rose::inject {
namespace {

// Limit for one processor. A longer wait means that something else is wrong.
constexpr std::int64_t kLongestNs = 30 * kSecond;
constexpr int kAgainMs = 20;

// A socket that sends datagrams to itself.
Result<Fd> loop_socket() {
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof own;
  if (!socket || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&own), size) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0 ||
      ::connect(socket.get(), reinterpret_cast<sockaddr*>(&own), size) != 0)
    return fail_errno(ErrorKind::environment, "cannot wait for packets in flight: no socket", errno);
  return socket;
}

// The processors on which this thread may run. The set grows until the kernel accepts its size.
std::vector<cpu_set_t> allowed() {
  std::vector<cpu_set_t> set(1);
  while (::sched_getaffinity(0, set.size() * sizeof(cpu_set_t), set.data()) != 0) {
    if (errno != EINVAL || set.size() >= 64) return {};
    set.resize(set.size() * 2);
  }
  return set;
}

// Waits for the backlog queue of this thread's processor. A datagram that this thread sends over the loopback interface
// is appended to that queue. When it arrives, all earlier packets of the queue have been processed. A full queue drops
// the datagram; then it is sent again.
Result<void> wait_for_backlog(const Fd& socket, std::uint32_t number) {
  const std::int64_t limit = monotonic_ns() + kLongestNs;
  do {
    if (::send(socket.get(), &number, sizeof number, 0) < 0 && errno != EAGAIN && errno != ENOBUFS)
      return fail_errno(ErrorKind::environment, "cannot wait for packets in flight", errno);
    pollfd one{socket.get(), POLLIN, 0};
    if (::poll(&one, 1, kAgainMs) <= 0) continue;
    std::uint32_t got = 0;
    while (::recv(socket.get(), &got, sizeof got, 0) == static_cast<ssize_t>(sizeof got))
      if (got == number) return {};
  } while (monotonic_ns() < limit);
  return fail(
      ErrorKind::environment,
      fmt::format("packets that were in flight when the partition began may have crossed it: this machine did not "
                  "process them within {}",
                  format_duration(kLongestNs)));
}

}  // namespace

// The wait is an update of a map of maps. The kernel guarantees that such an update returns only when all programs that
// might have used the old map have ended.
Result<void> wait_for_programs() {
  const std::uint32_t zero = 0;
  const Fd inner(bpf_map_create(BPF_MAP_TYPE_ARRAY, "rose_grace_in", sizeof zero, sizeof zero, 1, nullptr));
  LIBBPF_OPTS(bpf_map_create_opts, options, .inner_map_fd = static_cast<__u32>(inner.get()));
  const Fd outer(inner ? bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "rose_grace", sizeof zero, sizeof zero, 1, &options)
                       : -1);
  const int inside = inner.get();
  if (!outer || bpf_map_update_elem(outer.get(), &zero, &inside, BPF_ANY) != 0)
    return kernel::bpf_failure("cannot wait for kernel programs to end", errno);
  return {};
}

Result<void> wait_for_backlogs() {
  ROSE_TRY(const Fd socket, loop_socket());
  const std::vector<cpu_set_t> before = allowed();
  const std::size_t size = before.size() * sizeof(cpu_set_t);
  Result<void> arrived;
  std::uint32_t number = 0;
  for (std::size_t cpu = 0; cpu < size * 8 && arrived; ++cpu) {
    if (CPU_ISSET_S(cpu, size, before.data()) == 0) continue;
    std::vector<cpu_set_t> one(before.size());
    CPU_ZERO_S(size, one.data());
    CPU_SET_S(cpu, size, one.data());
    // A processor that was just taken offline has no queue, so it is skipped.
    if (::sched_setaffinity(0, size, one.data()) == 0) arrived = wait_for_backlog(socket, ++number);
  }
  if (!before.empty()) ::sched_setaffinity(0, size, before.data());
  return arrived;
}

}  // namespace rose::inject
