// BPF_LINK_CREATE for features of newer kernels, because Debian 12's headers and libbpf know neither TCX nor
// uprobe_multi.
#pragma once

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace rose::kernel {

inline constexpr std::uint32_t kTcxIngress = 46;
inline constexpr std::uint32_t kTcxEgress = 47;
inline constexpr std::uint32_t kUprobeMulti = 48;

// The part of union bpf_attr that BPF_LINK_CREATE reads, reduced to the members that rose uses. The kernel accepts a
// structure of another size than its own as long as the members that it does not know are zero.
struct LinkCreate {
  std::uint32_t prog_fd = 0;
  std::uint32_t target_fd = 0;  // or an ifindex
  std::uint32_t attach_type = 0;
  std::uint32_t flags = 0;
  std::uint64_t path = 0;
  std::uint64_t offsets = 0;
  std::uint64_t ref_ctr_offsets = 0;
  std::uint64_t cookies = 0;
  std::uint32_t count = 0;
  std::uint32_t multi_flags = 0;
  std::uint32_t pid = 0;
  std::uint32_t pad = 0;
};
static_assert(sizeof(LinkCreate) == 64);

// Returns the link's descriptor (always close-on-exec), or -errno.
[[nodiscard]] inline int link_create(const LinkCreate& attr) {
  const long fd = ::syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof attr);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

}  // namespace rose::kernel
