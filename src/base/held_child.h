// A child process that waits for permission before it executes its command, so that a tracer can register it before its
// first system call. The destructor ends it and waits for it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace rose {

class HeldChild {
 public:
  // `own_group` is for helpers that run in addition to the actual work. The child leads a process group. When the child
  // ends, when end() ends it, or when rose ends, all descendants of the child are ended as well, including those in
  // other sessions and groups. For this purpose, an intermediate process of rose runs between rose and the command, and
  // pid() returns the id of that process. The command's stdin is empty, its stdout is discarded, errors() returns its
  // stderr, and its signal dispositions are the defaults. With `shares_terminal` the child inherits the terminal and
  // everything else from rose.
  enum class Kind { shares_terminal, own_group };
  // Searches PATH. The child runs in the current folder.
  [[nodiscard]] static Result<HeldChild> fork_held(const std::vector<std::string>& argv, Kind kind);
  HeldChild(HeldChild&& other) noexcept;
  HeldChild& operator=(HeldChild&&) = delete;
  ~HeldChild() { end(0); }

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }    // readable once the child has ended
  [[nodiscard]] int errors() const { return errors_.get(); }  // non-blocking; -1 unless own_group

  // Executes the command. Returns ErrorKind::usage if it cannot be executed.
  Result<void> release();

  // Ends the child if it still runs: SIGTERM first, then SIGKILL after `patience_ms` (0: SIGKILL at once). Also kills
  // the processes that it has left behind. Returns its status in the form of wait(2). Call it only once.
  std::optional<int> end(int patience_ms);

  // For example "'CMD' exited with status 1".
  [[nodiscard]] std::string describe(int status) const;

 private:
  HeldChild() = default;
  std::string name_;
  Kind kind_ = Kind::shares_terminal;
  pid_t pid_ = 0;
  Fd go_, failed_, pidfd_, errors_;
};

}  // namespace rose
