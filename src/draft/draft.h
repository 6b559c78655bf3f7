// A commented rose.toml to start from, out of what runs: processes, systemd units, containers, Compose files. Reads,
// and changes nothing. What it cannot know stands there as a question. Secrets are not written.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace rose::draft {

struct Sources {
  std::vector<int> pids;
  std::vector<std::string> units;
  std::vector<std::string> containers;
  std::filesystem::path compose;  // "" none
};

struct Question {
  int line = 0;
  std::string key;  // "workload.command"
  std::string text;
  bool blocking = false;  // nothing runs before it is answered
};

struct Draft {
  std::string text;                // a rose.toml that config::parse_config accepts but for its questions
  std::vector<std::string> nodes;  // their names
  std::vector<Question> questions;
  std::vector<std::string> doubts;  // what the user should look at: "redis1: ..."
};

// `folder`: where the file will be, as paths in it are relative to it. ErrorKind::usage for what does not exist or
// cannot be one deployment, input for a Compose file that cannot be read, environment when nothing of a target may be
// read.
[[nodiscard]] Result<Draft> make_draft(const Sources& sources, const std::filesystem::path& folder);

// That rose.toml's reader takes it once its questions are answered. A draft that it refuses is a mistake of ours, and
// better said when it is made than at the first run: ErrorKind::bug.
[[nodiscard]] Result<void> check_draft(const Draft& draft, const std::filesystem::path& folder = ".");

}  // namespace rose::draft
