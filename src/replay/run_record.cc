#include "replay/run_record.h"

#include <optional>

#include "base/json.h"
#include "base/text.h"
#include "schedule/record.h"

namespace rose::replay {
namespace {

std::optional<schedule::Verdict> verdict_from(const std::string& name) {
  for (const auto verdict :
       {schedule::Verdict::reproduced, schedule::Verdict::not_reproduced, schedule::Verdict::inconclusive})
    if (name == schedule::verdict_name(verdict)) return verdict;
  return std::nullopt;
}

std::string_view answer_name(schedule::OracleAnswer answer) {
  switch (answer) {
    case schedule::OracleAnswer::hit: return "hit";
    case schedule::OracleAnswer::miss: return "miss";
    case schedule::OracleAnswer::unknown: return "unknown";
  }
  return "unknown";
}

Json command_json(const deploy::CommandResult& command) {
  return {{"started", command.started}, {"timed_out", command.timed_out}, {"signalled", command.signalled},
          {"code", command.code},       {"seconds", command.seconds},     {"note", command.note}};
}

deploy::CommandResult command_from(const Json& json) {
  deploy::CommandResult command;
  command.started = json.value("started", command.started);
  command.timed_out = json.value("timed_out", command.timed_out);
  command.signalled = json.value("signalled", command.signalled);
  command.code = json.value("code", command.code);
  command.seconds = json.value("seconds", command.seconds);
  command.note = json.value("note", command.note);
  return command;
}

}  // namespace

Json run_json(const Run& run, const schedule::Schedule& schedule) {
  const schedule::RunResult& result = run.result;
  Json json = {{"number", result.number},
               {"fingerprint", schedule::fingerprint(schedule)},
               {"schedule", schedule::to_toml(schedule)},
               {"verdict", schedule::verdict_name(result.verdict)},
               {"reason", result.reason},
               {"oracle", answer_name(result.oracle)},
               {"seconds", result.seconds},
               {"workload_end_ns", result.workload_end_ns.value_or(0)},
               {"oracle_ns", result.oracle_ns.value_or(0)},
               {"backend", run.backend},
               {"workload", command_json(run.workload)},
               {"faults", schedule::outcomes_json(result.faults)}};
  if (!result.order.empty()) json["order"] = schedule::order_json(result.order);
  if (!result.order_broken.empty()) json["order_broken"] = result.order_broken;
  if (!result.doubt.empty()) json["doubt"] = result.doubt;
  if (!result.messages_seen.empty()) json["messages_seen"] = result.messages_seen;
  if (!run.disturbed.empty()) json["disturbed"] = run.disturbed;
  if (run.incident) json["incident"] = command_json(*run.incident);
  return json;
}

Result<RecordedRun> run_from(const Json& json) {
  RecordedRun read;
  schedule::RunResult& result = read.run.result;
  try {
    read.fingerprint = json.at("fingerprint").get<std::string>();
    result.number = json.at("number").get<int>();
    const std::string verdict = json.at("verdict").get<std::string>();
    const std::optional<schedule::Verdict> parsed = verdict_from(verdict);
    if (!parsed) return fail(ErrorKind::input, fmt::format("unknown verdict '{}'", printable(verdict)));
    result.verdict = *parsed;
    result.reason = json.at("reason").get<std::string>();
    result.doubt = json.value("doubt", std::string());
    const std::string answer = json.at("oracle").get<std::string>();
    bool found = false;
    for (const auto known :
         {schedule::OracleAnswer::hit, schedule::OracleAnswer::miss, schedule::OracleAnswer::unknown})
      if (answer == answer_name(known)) {
        result.oracle = known;
        found = true;
      }
    if (!found) return fail(ErrorKind::input, fmt::format("unknown answer of the oracle '{}'", printable(answer)));
    result.seconds = json.at("seconds").get<double>();
    if (const auto ns = json.value("workload_end_ns", std::int64_t{0}); ns != 0) result.workload_end_ns = ns;
    if (const auto ns = json.value("oracle_ns", std::int64_t{0}); ns != 0) result.oracle_ns = ns;
    result.messages_seen = json.value("messages_seen", std::vector<std::string>{});
    read.run.backend = json.value("backend", std::string());
    if (const auto workload = json.find("workload"); workload != json.end())
      read.run.workload = command_from(*workload);
    ROSE_TRY(result.faults, schedule::outcomes_from(json.at("faults")));
    if (const auto order = json.find("order"); order != json.end()) {
      ROSE_TRY(result.order, schedule::order_from(*order));
    }
    result.order_broken = json.value("order_broken", std::string());
    read.run.disturbed = json.value("disturbed", std::string());
  } catch (const std::exception& e) {
    return fail(ErrorKind::input, e.what());
  }
  return read;
}

}  // namespace rose::replay
