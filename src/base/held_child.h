// A child process that waits for the word before it executes its command, so that a tracer can know it before its
// first system call. It is ended and waited for when its owner goes.
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
  // `own_group`: a helper beside the work, in a process group that ends as a whole and with rose. Its input is
  // empty, its output is dropped, errors() has what it says on stderr; signals are as in a fresh process.
  // Otherwise the child shares the terminal, and everything else, with rose.
  enum class Kind { shares_terminal, own_group };
  // PATH is searched. The child runs in the current folder.
  [[nodiscard]] static Result<HeldChild> fork_held(const std::vector<std::string>& argv, Kind kind);
  HeldChild(HeldChild&& other) noexcept;
  HeldChild& operator=(HeldChild&&) = delete;
  ~HeldChild() { end(0); }

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }    // readable once it has ended
  [[nodiscard]] int errors() const { return errors_.get(); }  // does not block; -1 unless own_group

  // Executes the command. ErrorKind::usage when it cannot be executed.
  Result<void> let_go();

  // Ends it when it is still there, SIGTERM first and SIGKILL when `patience_ms` have passed (0: at once), and
  // returns its status as of wait(2). What is left of its own group is killed too. Only once.
  std::optional<int> end(int patience_ms);

  // "'CMD' exited with status 1"
  [[nodiscard]] std::string describe(int status) const;

 private:
  HeldChild() = default;
  std::string name_;
  Kind kind_ = Kind::shares_terminal;
  pid_t pid_ = 0;
  Fd go_, failed_, pidfd_, errors_;
};

}  // namespace rose
