// The logs of a diagnosis: those of the failure as they were given, those of its runs where the deployment writes them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "diagnose/diagnose.h"
#include "logs/evidence.h"
#include "schedule/outcome.h"

namespace rose::cli {

class LogEvidence {
 public:
  // `entries`: FILE or NODE=FILE. Errors (usage, input): an unknown node, a file that can't be read, logs that hold no
  // message.
  [[nodiscard]] static Result<std::unique_ptr<LogEvidence>> read(
      const std::vector<std::string>& entries, const config::Config& config,
      const std::map<std::string, std::string>& host_to_node);

  // A run begins: when its lines are written is watched. Safe to call from several runs at once, as look().
  void begin(const std::filesystem::path& run_dir);
  // Instead of begin(): a run that was made elsewhere, whose lines were watched there.
  void seen(const std::filesystem::path& run_dir, logs::Watch::Growth growth);
  // What a run's logs say: of the first run without faults what is normal, of others which of the failure's messages
  // they have.
  void look(const std::filesystem::path& run_dir, schedule::RunResult& result);
  // Whether a run without faults was looked at.
  [[nodiscard]] bool compared() const { return !evidence_.normal.nodes.empty(); }
  // The failure's logs beside those of a run that reproduced it; empty when that run was not looked at.
  [[nodiscard]] std::vector<logs::Beside> beside(int run) const;
  // Adds what the logs say to the inputs; `control` is the trace of the run that look() saw first, or nullptr.
  void add_to(diagnose::Inputs& inputs, const trace::Trace* control);

 private:
  LogEvidence(const config::Config& config, const std::map<std::string, std::string>& host_to_node)
      : config_(config), host_to_node_(host_to_node) {
    how_.custom = config.log_forms;
  }
  [[nodiscard]] std::vector<logs::Input> logs_of(const std::filesystem::path& run_dir) const;
  [[nodiscard]] std::vector<std::string> notes() const;

  const config::Config& config_;
  const std::map<std::string, std::string> host_to_node_;
  logs::ReadOptions how_;
  std::set<std::string> dump_hosts_;  // of dumps beside the logs
  std::set<std::string> hosts_;       // that lines of the failure's logs name
  logs::Templates kinds_;
  logs::Evidence evidence_;
  std::unique_ptr<logs::Judge> judge_;
  std::mutex mutex_;
  std::map<std::filesystem::path, std::unique_ptr<logs::Watch>> watches_;  // by run
  std::map<int, std::vector<logs::Beside>> beside_;                        // by number, of those that reproduced
};

}  // namespace rose::cli
