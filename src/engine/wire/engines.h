// What starts workers: the command line for one of them, of each engine. None goes through a shell of ours; what
// another host's shell will read is quoted.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace rose::engine {

enum class EngineKind { local, slurm, ssh, kubernetes, command };

struct EngineOptions {
  std::string engine = "local";           // "local", "slurm", "ssh", "kubernetes", or a command that starts one worker
  int workers = 0;                        // 0: not said
  std::vector<std::string> hosts = {};    // ssh
  std::string worker = "rose";            // where rose is found there
  std::vector<std::string> options = {};  // passed on to srun, ssh or kubectl
  bool apart = false;                     // two of them must not be on one host, whose network the nodes share
};

class Engine {
 public:
  // Error (usage) when something is missing or makes no sense for this engine.
  [[nodiscard]] static Result<Engine> make(const EngineOptions& options);

  [[nodiscard]] EngineKind kind() const { return kind_; }
  [[nodiscard]] int workers() const { return workers_; }
  // `start`: of this worker, 0 for the first; where one could not be had, the next host is asked. `number` is its own.
  [[nodiscard]] std::vector<std::string> argv(int worker, int start, int number) const;
  // Where argv() starts it: a host's name, or the engine's.
  [[nodiscard]] std::string place(int worker, int start) const;

 private:
  EngineKind kind_ = EngineKind::local;
  int workers_ = 1;
  EngineOptions options_;
  std::vector<std::string> command_;
};

// Words as a shell parts them: blanks, '...', "..." and \ count, nothing else does. Error (usage): a quote without its
// end, no word.
[[nodiscard]] Result<std::vector<std::string>> words_of(const std::string& command);

}  // namespace rose::engine
