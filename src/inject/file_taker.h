// Duplicates descriptors of nodes' threads. Between a look at a descriptor and its duplication, another thread of the
// node may put another file in its place, and a process that closes a file of a FUSE file system waits, perhaps for
// ever and not to be killed, for its server, which may be the node itself. Therefore another process duplicates it,
// looks at the duplicate, and hands it over only if its file system answers. Otherwise that process is left with it,
// and another one takes its place.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace rose::inject {

class FileTaker {
 public:
  FileTaker() = default;
  FileTaker(const FileTaker&) = delete;
  FileTaker& operator=(const FileTaker&) = delete;
  ~FileTaker();

  // On failure, `err` is -errno; -EXDEV: it is no socket, no pipe, and no file of a file system that can be trusted to
  // answer, or too many processes are left with such files.
  [[nodiscard]] Fd take(pid_t tid, pid_t tgid, int fd, int& err);

 private:
  bool start();
  void leave();

  std::mutex mutex_;
  Fd socket_;
  pid_t pid_ = 0;
  std::vector<pid_t> left_;  // with a file that they may never have closed
};

// True for sockets, pipes, and files of file systems that can be trusted to answer (kernel::trusts_mounts_of). `of`:
// the process in /proc whose descriptor it is; `path`: the descriptor's link there; `tid`: the thread that has the
// mounts. The file itself is not accessed, because that might wait for ever.
[[nodiscard]] bool file_answers(std::string_view of, int fd, std::string_view path, pid_t tid);

}  // namespace rose::inject
