// Duplicates descriptors of nodes' threads. Between the examination of a descriptor and its duplication, another thread
// of the node may replace the file. If the new file belongs to a FUSE file system, closing the duplicate blocks until
// the FUSE server answers, perhaps for ever, and a process that is blocked in this way cannot be killed. The server may
// be the node itself. Therefore, a child process makes the duplicate, examines it, and passes it on only if its file
// system can be trusted to answer. Otherwise, the child is left behind with the file, and another child takes its
// place.
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

  // On failure, `err` is -errno. -EXDEV means that the file is neither a socket, nor a pipe, nor a file of a file
  // system that can be trusted to answer, or that the child did not answer in time, or that no child could be started
  // (for example because too many were left behind).
  [[nodiscard]] Fd take(pid_t tid, pid_t tgid, int fd, int& err);

 private:
  bool start();
  void leave();

  std::mutex mutex_;
  Fd socket_;
  pid_t pid_ = 0;
  std::vector<pid_t> left_;  // children left behind with files, because closing the files may block for ever
};

// True for sockets, pipes, and files of file systems that can be trusted to answer. These are the mounts of rose's own
// mount namespace, and those of the thread `tid` if kernel::trusts_mounts_of(tid). Also true if the descriptor has been
// closed meanwhile. `of`: the process in /proc that has the descriptor. `path`: the target of the descriptor's link
// there. The file itself is not accessed, because that might block for ever.
[[nodiscard]] bool file_answers(std::string_view of, int fd, std::string_view path, pid_t tid);

}  // namespace rose::inject
