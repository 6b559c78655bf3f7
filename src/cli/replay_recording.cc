#include "cli/replay_recording.h"

#include <fmt/chrono.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "observe/recordings.h"
#include "replay/alone.h"

namespace rose::cli {
namespace {

std::string time_text(std::int64_t wall) {
  const auto seconds = static_cast<std::time_t>(wall / 1'000'000'000);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(seconds));
}

std::string whose(const replay::RecordingFacts& facts) {
  std::string text = facts.node.empty() ? "a process" : "node " + facts.node;
  text += fmt::format(" (pid {}", facts.pid);
  if (!facts.host.empty()) text += " on " + facts.host;
  return text + fmt::format(", {} to {} UTC)", time_text(facts.began_ns), time_text(facts.ended_ns));
}

// What is missing in the recording, one sentence each.
std::vector<std::string> remarks(const replay::RecordingFacts& facts) {
  std::vector<std::string> lines;
  if (facts.overwritten)
    lines.push_back(
        fmt::format("its beginning was overwritten: the replay starts at a checkpoint, {} of {} records are replayed",
                    facts.replayable, facts.records));
  if (facts.damaged)
    lines.push_back(fmt::format("it is damaged at byte {} of the recorded data, and ends there", facts.cut_at));
  if (facts.unfinished != 0)
    lines.push_back(fmt::format("{} {} not returned when the process was killed", facts.unfinished,
                                facts.unfinished == 1 ? "call had" : "calls had"));
  return lines;
}

std::string alone_json(const replay::AloneResult& result) {
  const replay::RecordingFacts& facts = result.recording;
  Json json = {{"outcome", result.replayed() ? "replayed" : "diverged"},
               {"recording", facts.path.string()},
               {"node", facts.node.empty() ? Json() : Json(facts.node)},
               {"records", facts.replayable},
               {"taken", result.taken},
               {"overwritten", facts.overwritten},
               {"unfinished", facts.unfinished},
               {"cut_at", facts.damaged ? Json(facts.cut_at) : Json()},
               {"divergence", nullptr},
               {"command",
                {{"status", result.signalled ? Json() : Json(result.code)},
                 {"signal", result.signalled ? Json(result.code) : Json()}}},
               {"seconds", result.seconds}};
  if (result.divergence) {
    const replay::Divergence& at = *result.divergence;
    json["divergence"] = {
        {"record", at.record}, {"position", at.position}, {"key", at.key}, {"expected", at.expected}, {"got", at.got}};
  }
  return json_line(json);
}

std::string alone_text(const replay::AloneResult& result) {
  if (result.divergence) {
    const replay::Divergence& at = *result.divergence;
    return fmt::format("diverged at record {} of {}: expected {}, got {}\n", at.record, result.recording.replayable,
                       at.expected, at.got);
  }
  return fmt::format("replayed to its {}: {} records in {:.1f} s; {}\n", result.recording.damaged ? "cut" : "end",
                     result.taken, result.seconds, result.ended);
}

}  // namespace

std::string recordings_beside(const std::filesystem::path& dump) {
  std::string text;
  for (const replay::FoundRecording& one : replay::recordings_under(observe::recordings_folder(dump))) {
    const std::string what =
        one.facts ? fmt::format("{} records of {}", one.facts->replayable, whose(*one.facts)) : one.problem;
    text += fmt::format("recording {}: {}\n", printable(one.path.string()), what);
  }
  if (!text.empty())
    text += fmt::format("rose replay --recording {} --node NODE -- CMD replays one of them\n",
                        printable(observe::recordings_folder(dump).string()));
  return text;
}

Result<int> replay_recording(AloneOptions options, const Common& common) {
  if (!options.command.empty() && options.command.front() == "--") options.command.erase(options.command.begin());
  if (options.command.empty())
    return fail(ErrorKind::usage, "--recording needs the command to replay, after --",
                "rose replay --recording FILE -- CMD [ARG...]");
  std::optional<std::int64_t> patience;
  if (!options.patience.empty()) {
    ROSE_TRY(const std::int64_t given, duration_option("--patience", options.patience));
    if (given < 500'000'000 || given > 86'400'000'000'000)
      return fail(ErrorKind::usage, fmt::format("--patience {} is out of range", options.patience),
                  "from 500ms to 24h");
    patience = given;
  }
  ROSE_TRY(const replay::RecordingFacts facts, replay::find_recording(options.recording, options.node));
  log::info("{}: {} records of {}", facts.path.string(), facts.records, whose(facts));
  for (const std::string& remark : remarks(facts)) log::info("{}: {}", facts.path.string(), remark);
  ROSE_TRY(const replay::AloneResult result, replay::replay_alone(facts, options.command, patience, common.json));
  print(common.json ? alone_json(result) : alone_text(result));
  return result.replayed() ? 0 : 1;
}

}  // namespace rose::cli
