// Short helper commands of rose's own (ip, tc, docker), run without a shell.
#pragma once

#include <cstdint>
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
[[nodiscard]] Result<Output> run_command(const std::vector<std::string>& argv,
                                         std::string_view input = {},
                                         std::int64_t timeout_ns = 30'000'000'000);

}  // namespace rose
