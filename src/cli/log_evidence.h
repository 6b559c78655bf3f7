// The logs of a diagnosis: those of the failure, as given by the user, and those of its runs.
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
  // `entries`: FILE or NODE=FILE. Returns an error (usage, input) for an unknown node, an unreadable file, or logs
  // without any message.
  [[nodiscard]] static Result<std::unique_ptr<LogEvidence>> read(
      const std::vector<std::string>& entries, const config::Config& config,
      const std::map<std::string, std::string>& host_to_node);

  // Called when a run starts. From then on, records when the lines of the run's logs are written. Thread-safe, like
  // look().
  void begin(const std::filesystem::path& run_dir);
  // Replaces begin() for a run on a worker, which has recorded when the lines were written.
  void seen(const std::filesystem::path& run_dir, logs::Watch::Growth growth);
  // Evaluates a run's logs. The first run without faults defines what is normal; in other runs' logs, finds the
  // failure's messages.
  void look(const std::filesystem::path& run_dir, schedule::RunResult& result);
  // True once a run without faults has been evaluated.
  [[nodiscard]] bool compared() const { return !evidence_.normal.nodes.empty(); }
  // The failure's logs side by side with those of a run that reproduced it; empty if that run was not evaluated.
  [[nodiscard]] std::vector<logs::SideBySide> beside(int run) const;
  // The failure's files, as they were read.
  [[nodiscard]] const std::vector<logs::Source>& sources() const { return evidence_.failure.sources; }
  // The hosts that the failure's logs name.
  [[nodiscard]] const std::set<std::string>& hosts() const { return hosts_; }
  // Adds the evidence of the logs to `inputs`. `control`: the trace of the first run without faults, or nullptr.
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
  std::set<std::string> dump_hosts_;  // hosts of the dumps that were given together with the logs
  std::set<std::string> hosts_;       // hosts that the failure's logs name
  logs::Templates kinds_;
  logs::Evidence evidence_;
  std::unique_ptr<logs::ObservableMatcher> matcher_;
  std::mutex mutex_;
  std::map<std::filesystem::path, std::unique_ptr<logs::Watch>> watches_;  // by run
  std::map<int, std::vector<logs::SideBySide>> beside_;  // by number, for runs that reproduced the bug
};

}  // namespace rose::cli
