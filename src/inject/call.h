// A call that a thread is about to make, as its seccomp notification describes it, and what the call refers to: paths,
// peers, the name of the process. These are read from the thread's memory and /proc on demand. They are correct only if
// the notification is still valid afterwards, which the supervisor checks.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "inject/file_taker.h"
#include "inject/match.h"
#include "kernel/syscalls.h"

namespace rose::inject {

class NotifiedCall final : public CallFacts {
 public:
  NotifiedCall(int number, pid_t tid, const std::array<std::uint64_t, 6>& arguments,
               std::shared_ptr<FileTaker> taker = std::make_shared<FileTaker>());

  [[nodiscard]] int number() const override { return number_; }
  [[nodiscard]] std::uint64_t argument(int index) const override;
  const std::vector<std::string>& paths() override;
  const std::string& peer() override;
  const std::string& local() override;
  const std::string& process() override;

  [[nodiscard]] pid_t tid() const { return tid_; }
  [[nodiscard]] pid_t tgid();  // 0: the thread has ended
  // A duplicate of the thread's descriptor, which refers to the same open file description. On failure, `err` is
  // -errno. -EXDEV means that rose does not duplicate the descriptor, because it is neither a socket, nor a pipe, nor a
  // file of a file system that can be trusted to answer (inject/file_taker.h).
  [[nodiscard]] Fd duplicate(int fd, int& err);
  // Reads up to `size` bytes of the thread's memory; may return fewer.
  [[nodiscard]] std::string read_memory(std::uint64_t address, std::size_t size) const;
  // The thread's memory, as a file that stays bound to this process even if another process takes over the thread's id.
  // Invalid if `alive` reports that the thread no longer waits in this call.
  [[nodiscard]] Fd memory(const std::function<bool()>& alive) const;
  [[nodiscard]] bool write_memory(std::uint64_t address, const void* data, std::size_t size,
                                  const std::function<bool()>& alive) const;
  // The call as text: "read(/data/snapshot.3)".
  [[nodiscard]] std::string describe();

 private:
  [[nodiscard]] std::string read_string(std::uint64_t address) const;
  // The target of one of the caller's links in /proc, such as "cwd", as a path in the caller's view.
  [[nodiscard]] std::string link_path(const std::string& link) const;
  [[nodiscard]] std::string descriptor_path(int fd) const;
  void add_path(int path_argument, int dirfd_argument);
  [[nodiscard]] std::string address_argument() const;
  void look_at_socket();
  // Like duplicate(), but leaves it to FileTaker to check whether the file can be trusted to answer.
  [[nodiscard]] Fd take(int fd, int& err);

  int number_;
  pid_t tid_;
  pid_t tgid_ = -1;
  std::array<std::uint64_t, 6> arguments_;
  const kernel::SyscallInfo* info_;
  std::shared_ptr<FileTaker> taker_;
  bool have_paths_ = false, have_socket_ = false, have_process_ = false;
  std::vector<std::string> paths_;
  std::string peer_, local_, process_;
};

// An address as text: "1.2.3.4:80", "[::1]:80" (IPv4-mapped addresses as IPv4), "unix:/run/x", or "" if there is none.
[[nodiscard]] std::string address_text(const void* address, std::size_t size);

}  // namespace rose::inject
