// Short helper commands of rose's own (ip, tc, docker), run without a shell.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rose {

struct Output {
  int exit_code = 0;  // 128 + signal when killed
  std::string out;
  std::string err;
};

// Runs argv to its end (PATH is searched, stdin is `input`), at most `timeout_ns`; both outputs are
// kept up to 1 MiB. Error when it cannot be started or times out; its exit status is not judged.
[[nodiscard]] Result<Output> run_command(const std::vector<std::string>& argv, std::string_view input = {},
                                         std::int64_t timeout_ns = 30'000'000'000);

struct SideBySide {
  std::size_t at_once = 64;
  std::int64_t timeout_ns = 30'000'000'000;  // of each, from its start
  // What command `i` writes to stdout, piece by piece. False: nothing more is wanted, it is ended.
  std::function<bool(std::size_t i, std::string_view bytes)> out;
};
struct Ended {
  bool started = false, timed_out = false, refused = false;  // refused: `out` said so
  int exit_code = 0;                                         // as in Output
  std::string err;  // what it wrote to stderr, up to 1 MiB; why it was not started
  double seconds = 0;
};

// Runs many commands as run_command runs one, without input. Ends those that run when rose is cancelled.
[[nodiscard]] Result<std::vector<Ended>> run_side_by_side(const std::vector<std::vector<std::string>>& commands,
                                                          const SideBySide& how);

// Starts argv with these descriptors as its standard ones, in a process group of its own, with signals as in a fresh
// process. Whoever calls waits for it.
[[nodiscard]] Result<pid_t> spawn_process(const std::vector<std::string>& argv, int in, int out, int err);

// "exited with status 3", "was killed by signal 9 (Killed)"; `status` as of wait(2).
[[nodiscard]] std::string describe_status(int status);

}  // namespace rose
