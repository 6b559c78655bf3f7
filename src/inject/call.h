// A call that a thread is about to make, as its seccomp notification tells, and what it works on: paths, peers,
// the process. Reads the thread's memory and /proc lazily; answers are only as good as the notification is
// alive, which the supervisor checks afterwards.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "inject/match.h"
#include "kernel/syscalls.h"

namespace rose::inject {

class NotifiedCall final : public CallFacts {
 public:
  NotifiedCall(int number, pid_t tid, const std::array<std::uint64_t, 6>& arguments);

  [[nodiscard]] int number() const override { return number_; }
  [[nodiscard]] std::uint64_t argument(int index) const override { return arguments_[static_cast<std::size_t>(index)]; }
  const std::vector<std::string>& paths() override;
  const std::string& peer() override;
  const std::string& local() override;
  const std::string& process() override;

  [[nodiscard]] pid_t tid() const { return tid_; }
  [[nodiscard]] pid_t tgid();  // 0: gone
  // Our duplicate of the thread's descriptor: the same open file description. -errno in `err` when there is none.
  [[nodiscard]] Fd duplicate(int fd, int& err);
  // Up to `size` bytes of its memory; what could be read of it.
  [[nodiscard]] std::string read_memory(std::uint64_t address, std::size_t size) const;
  [[nodiscard]] bool write_memory(std::uint64_t address, const void* data, std::size_t size) const;
  // "read(/data/snapshot.3)"
  [[nodiscard]] std::string describe();

 private:
  [[nodiscard]] std::string read_string(std::uint64_t address) const;
  // What a link of the caller's in /proc says, such as "cwd": a path as the caller has it.
  [[nodiscard]] std::string link_path(const std::string& link) const;
  [[nodiscard]] std::string descriptor_path(int fd) const;
  void add_path(int path_argument, int dirfd_argument);
  [[nodiscard]] std::string address_argument() const;
  void look_at_socket();

  int number_;
  pid_t tid_;
  pid_t tgid_ = -1;
  std::array<std::uint64_t, 6> arguments_;
  const kernel::SyscallInfo* info_;
  bool have_paths_ = false, have_socket_ = false, have_process_ = false;
  std::vector<std::string> paths_;
  std::string peer_, local_, process_;
};

// "1.2.3.4:80", "[::1]:80" (IPv4-mapped as IPv4), "unix:/run/x", "" for what has no address.
[[nodiscard]] std::string address_text(const void* address, std::size_t size);

}  // namespace rose::inject
