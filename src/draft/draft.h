// Writes a commented rose.toml from a running system: processes, systemd units, containers, Compose files. Only reads,
// and changes nothing. What it cannot determine is written as a question. Secrets are not written.
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
  std::filesystem::path compose;  // "" if none
};

struct Question {
  int line = 0;
  std::string key;  // "workload.command"
  std::string text;
  bool blocking = false;  // nothing can run before it is answered
};

struct Draft {
  std::string text;                // a rose.toml that config::parse_config accepts once its questions are answered
  std::vector<std::string> nodes;  // their names
  std::vector<Question> questions;
  std::vector<std::string> doubts;  // what the user should check: "redis1: ..."
};

// `folder`: where the file will be written; paths in it are relative to that. Returns ErrorKind::usage if a source does
// not exist or the sources cannot form one deployment, `input` if a Compose file cannot be read, `environment` if
// nothing about a target may be read.
[[nodiscard]] Result<Draft> make_draft(const Sources& sources, const std::filesystem::path& folder);

// Checks that the parser accepts the draft once its questions are answered. If it does not, that is a bug in rose,
// which should be found now instead of at the first run: ErrorKind::bug.
[[nodiscard]] Result<void> check_draft(const Draft& draft, const std::filesystem::path& folder = ".");

}  // namespace rose::draft
