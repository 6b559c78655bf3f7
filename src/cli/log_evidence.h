// The logs of a diagnosis: those of the failure as they were given, those of its runs where the deployment writes them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
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
  // `entries`: FILE or NODE=FILE. Errors (usage, input): an unknown node, a file that can't be read, logs that hold no message.
  [[nodiscard]] static Result<std::unique_ptr<LogEvidence>> read(const std::vector<std::string>& entries, const config::Config& config,
                                                                 const std::map<std::string, std::string>& host_to_node);

  // What a run's logs say: of the first run without faults what is normal, of others which of the failure's messages they have.
  // Safe to call from several runs at once once the first is over.
  void look(const std::filesystem::path& run_dir, schedule::RunResult& result);
  // Adds what the logs say to the inputs; `control` is the trace of the run that look() saw first, or nullptr.
  void add_to(diagnose::Inputs& inputs, const trace::Trace* control);

 private:
  LogEvidence(const config::Config& config, const std::map<std::string, std::string>& host_to_node) : config_(config), host_to_node_(host_to_node) {}
  [[nodiscard]] std::vector<logs::Input> logs_of(const std::filesystem::path& run_dir) const;
  [[nodiscard]] std::vector<std::string> notes() const;

  const config::Config& config_;
  const std::map<std::string, std::string>& host_to_node_;
  logs::Templates kinds_;
  logs::Evidence evidence_;
  std::unique_ptr<logs::Judge> judge_;
};

}  // namespace rose::cli
