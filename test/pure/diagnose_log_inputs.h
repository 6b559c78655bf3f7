// Creates the inputs of a search from the log of a failure.
#pragma once

#include <catch2/catch.hpp>

#include "diagnose_world.h"
#include "evidence/logs/from_logs.h"
#include "evidence/logs/hosts.h"

namespace rose::diagnose::test {

// Compares the failure's logs with those of a run without faults, and sets the weights of their messages.
inline void weigh(logs::Evidence& evidence, const logs::Templates& kinds, const config::Config& config) {
  evidence.difference = logs::compare(evidence.failure, evidence.normal, kinds);
  evidence.hints =
      logs::find_hints(evidence.failure, evidence.normal, evidence.difference, node_names_in_logs(config, {}));
}

// The evidence in the logs of a failure, without a comparison with any run.
inline logs::Evidence evidence_of(const std::vector<logs::Input>& files, logs::Templates& kinds,
                                  const config::Config& config) {
  logs::Evidence evidence;
  Result<logs::Logs> read = logs::read_logs(files, {}, kinds);
  REQUIRE(read);
  evidence.failure = *std::move(read);
  weigh(evidence, kinds, config);
  return evidence;
}

// The inputs of a search for which one node has a log. `usual` is that node's log in a run without faults, and
// `control` that run's trace.
struct LogInputs {
  config::Config config;
  logs::Templates kinds;
  logs::Evidence evidence;
  Inputs inputs;

  LogInputs(config::Config with, const std::string& failed, const std::string& usual,
            const trace::Trace* control = nullptr, std::vector<trace::Trace> dumps = {})
      : config(std::move(with)) {
    inputs.config = &config;
    for (trace::Trace& dump : dumps) inputs.sources.push_back(evidence::of_dump(std::move(dump)));
    if (!usual.empty()) evidence.normal = logs::read_text(usual, {"n2.log", "n2"}, {}, kinds);
    evidence.failure = logs::read_text(failed, {"n2.log", "n2"}, {}, kinds);
    weigh(evidence, kinds, config);
    add_logs(inputs, evidence, control);
  }
  LogInputs(const LogInputs&) = delete;
  LogInputs& operator=(const LogInputs&) = delete;
  Plan plan() {
    Result<Plan> made = make_plan(inputs);
    if (!made) FAIL(made.error().message);
    return *std::move(made);
  }
};

}  // namespace rose::diagnose::test
