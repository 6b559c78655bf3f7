// Runs short helper commands of rose (ip, tc, docker) without a shell.
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
  int exit_code = 0;  // 128 + signal number if the command was killed
  std::string out;
  std::string err;
};

// Runs argv (PATH is searched, stdin is `input`) for at most `timeout_ns` and keeps up to 1 MiB of each output. Returns
// an error if the command cannot be started or times out. The caller must check the exit code.
[[nodiscard]] Result<Output> run_command(const std::vector<std::string>& argv, std::string_view input = {},
                                         std::int64_t timeout_ns = 30'000'000'000);

struct SideBySide {
  std::size_t at_once = 64;
  std::int64_t timeout_ns = 30'000'000'000;  // per command, from its start
  // Receives what command `i` writes to stdout, in pieces. If it returns false, the command is ended.
  std::function<bool(std::size_t i, std::string_view bytes)> out;
};
struct Ended {
  bool started = false, timed_out = false, refused = false;  // refused: `out` returned false
  int exit_code = 0;                                         // as in Output
  std::string err;  // up to 1 MiB of stderr, or the reason why the command was not started
  double seconds = 0;
};

// Runs many commands in parallel, each as run_command does, without input. Cancellation ends those that still run.
[[nodiscard]] Result<std::vector<Ended>> run_side_by_side(const std::vector<std::vector<std::string>>& commands,
                                                          const SideBySide& how);

// Starts argv with the given descriptors as its standard streams, in its own process group and with default signal
// dispositions. The caller must wait for it.
[[nodiscard]] Result<pid_t> spawn_process(const std::vector<std::string>& argv, int in, int out, int err);

// "exited with status 3", "was killed by signal 9 (Killed)". `status` has the form of wait(2).
[[nodiscard]] std::string describe_status(int status);

}  // namespace rose
