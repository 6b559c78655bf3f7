// Builds the command line that starts a worker, for each engine. No local shell is used; words for a remote shell are
// quoted.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace rose::engine {

enum class EngineKind { local, slurm, ssh, kubernetes, command };

struct EngineOptions {
  std::string engine = "local";           // "local", "slurm", "ssh", "kubernetes", or a command that starts one worker
  int workers = 0;                        // 0: not set
  std::vector<std::string> hosts = {};    // for ssh
  std::string worker = "rose";            // path of rose on the worker's host
  std::vector<std::string> options = {};  // passed on to srun, ssh or kubectl
  bool apart = false;  // workers must be on different hosts, because the nodes use the host's network
};

class Engine {
 public:
  // Returns ErrorKind::usage if a setting is missing or does not apply to this engine.
  [[nodiscard]] static Result<Engine> make(const EngineOptions& options);

  [[nodiscard]] EngineKind kind() const { return kind_; }
  [[nodiscard]] int workers() const { return workers_; }
  // `start` counts the starts of this worker from 0; after a failure, the next host is used. `number` is unique among
  // all starts.
  [[nodiscard]] std::vector<std::string> argv(int worker, int start, int number) const;
  // Where argv() starts the worker: the name of a host, or that of the engine.
  [[nodiscard]] std::string place(int worker, int start) const;

 private:
  EngineKind kind_ = EngineKind::local;
  int workers_ = 1;
  EngineOptions options_;
  std::vector<std::string> command_;
};

// Splits a command like a shell, with blanks, '...', "..." and \ as the only special characters. Returns
// ErrorKind::usage for an unterminated quote or an empty command.
[[nodiscard]] Result<std::vector<std::string>> words_of(const std::string& command);

}  // namespace rose::engine
