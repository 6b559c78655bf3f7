// Writes a commented rose.toml from a running system: processes, systemd units, containers, Compose files, manifests.
// Only reads, and changes nothing. What it cannot determine is written as a question. Secrets are not written.
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
  std::vector<std::filesystem::path> compose;  // Compose files; each overrides the previous files
  std::vector<std::string> profiles;           // of Compose; empty: COMPOSE_PROFILES
  std::vector<std::filesystem::path> manifests;
};

// A file that nodes mount, to be written beside the draft: a key of a ConfigMap or a Secret.
struct DraftFile {
  std::string path;  // relative to the draft
  std::string content;
  unsigned mode = 0644;
};

struct Question {
  int line = 0;
  std::string key;  // "workload.command"
  std::string text;
  bool blocking = false;  // nothing can run before it is answered
};

struct Draft {
  std::string text;                // a rose.toml that config::parse_config accepts once its questions are answered
  std::vector<std::string> nodes;  // names of the nodes
  std::vector<Question> questions;
  std::vector<std::string> doubts;  // what the user should check: "redis1: ..."
  std::vector<DraftFile> files;     // in a folder of their own
};

// `folder`: where the file will be written; paths in it are relative to that. `files`: the name of a folder in it for
// further files. Returns ErrorKind::usage if a source does not exist or the sources cannot form one deployment, `input`
// if a file cannot be used (its message has a line for each reason), `environment` if nothing about a target may be
// read.
[[nodiscard]] Result<Draft> make_draft(const Sources& sources, const std::filesystem::path& folder,
                                       const std::string& files = "rose.files");

// Checks that the parser accepts the draft once its questions are answered. If it does not, that is a bug in rose,
// which should be found now instead of at the first run: ErrorKind::bug.
[[nodiscard]] Result<void> check_draft(const Draft& draft, const std::filesystem::path& folder = ".");

}  // namespace rose::draft
