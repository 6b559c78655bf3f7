#include "report/explanation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "explain/model.h"
#include "report/dump/text.h"
#include "report/timeline.h"

namespace rose::report {
namespace {

using explain::Explanation;
using explain::StoryLine;

constexpr std::size_t kTextFrames = 12, kTextSuspects = 5, kShortSuspects = 3, kMarkdownSuspects = 10,
                      kMarkdownDifferences = 25;

Json arrived_json(const Explanation::StackOf& one) {
  Json frames = Json::array();
  for (const schedule::Frame& frame : one.stack.frames)
    frames.push_back({{"function", frame.function},
                      {"file", frame.file},
                      {"line", frame.line},
                      {"module", frame.module},
                      {"offset", frame.offset}});
  return {{"fault", one.fault},          {"node", one.stack.node}, {"thread", one.stack.thread},
          {"frames", std::move(frames)}, {"why", one.stack.why},   {"incomplete", one.stack.incomplete},
          {"others", one.others}};
}

std::string percent_fine(double share) {
  return share > 0 && share < 0.001 ? "less than 0.1 %" : fmt::format("{:.1f} %", 100 * share);
}

Json counts_json(const std::vector<explain::ValueCount>& counts) {
  Json out = Json::array();
  for (const explain::ValueCount& count : counts)
    out.push_back({{"value", count.value}, {"runs", count.runs}, {"times", count.times}, {"before", count.before}});
  return out;
}

Json value_json(const explain::ValueTable& table) {
  Json out = {{"query", table.query},
              {"node", table.node},
              {"failing", counts_json(table.failing)},
              {"sound", counts_json(table.sound)},
              {"near", counts_json(table.near)},
              {"score", table.score},
              {"differs", table.differs},
              {"function", table.function},
              {"type", table.type},
              {"unlisted", table.unlisted},
              {"only_bug", table.only_bug},
              {"not_told", table.refused},
              {"remarks", table.remarks}};
  if (table.first)
    out["first"] = {{"node", table.first->node},
                    {"thread", table.first->tid},
                    {"elapsed", static_cast<double>(table.first->at_ns) / 1e9},
                    {"value", table.first->value}};
  else out["first"] = Json();
  return out;
}

Json amount_json(const explain::ExchangeCount& count) {
  return {{"messages", {count.least, count.most}},
          {"bytes", {count.least_bytes, count.most_bytes}},
          {"never_taken", count.untaken}};
}

std::string runs_words(const ExplanationReport& r) {
  const Explanation& e = r.explanation;
  return fmt::format(
      "{} runs in {}: of the schedule {} reproduced, {} did not, {} were inconclusive; compared: {} failing, {} "
      "correct, "
      "{} with the fault but without the bug{}",
      r.runs, format_seconds(r.seconds), r.reproduced, r.missed, r.inconclusive, e.failing, e.sound, e.near,
      e.shorter > 0 ? fmt::format(", {} that reproduced with a shorter fault", e.shorter) : "");
}

// Names and messages come from the traced system, so they must be escaped.
std::string md(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (std::string_view("\\`*_[]<>|#").find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

// Formats a line of the story. Its texts come from the traced system and may contain any bytes, so they are made
// printable.
std::string line_text(const StoryLine& line) {
  return fmt::format("{:>14}  {:<8} {}{}", moment_text(line.at_ns), printable(line.node), printable(line.text),
                     line.first_wrong ? "   <- the first difference" : "");
}

std::string frame_text(const schedule::Frame& frame) {
  std::string out = frame.function.empty() ? fmt::format("{}+{:#x}", frame.module, frame.offset) : frame.function;
  if (const std::string at = source_place(frame.file, frame.line); !at.empty()) out += " at " + at;
  else if (!frame.function.empty() && !frame.module.empty()) out += " in " + frame.module;
  return out;
}

std::string short_markdown(const Explanation& e) {
  std::string out = "## In short\n\n";
  for (const ShortLine& line : short_lines(e)) {
    if (line.text.size() == 1) {
      out += fmt::format("- **{}**: {}\n", line.what, md(line.text.front()));
      continue;
    }
    out += fmt::format("- **{}**:\n", line.what);
    for (const std::string& one : line.text) out += fmt::format("  - {}\n", md(one));
  }
  return out + "\n";
}

std::string value_text(const explain::ValueTable& table) {
  std::string out = fmt::format("  {:.2f}  {}{}{}\n", table.score, printable(table.query),
                                table.type.empty() ? "" : ": " + printable(table.type),
                                table.node.empty() ? "" : " on " + printable(table.node));
  if (table.refused.empty())
    out += fmt::format("           failing: {}\n           correct: {}\n", printable(value_counts(table.failing)),
                       printable(value_counts(table.sound)));
  out += fmt::format("           {}\n", printable(value_verdict(table)));
  return out;
}

}  // namespace

std::string others_words(std::size_t others) {
  return fmt::format("It hit {} more thread{}, in no function of the application.", others, others == 1 ? "" : "s");
}

std::vector<ShortLine> short_lines(const Explanation& e) {
  explain::InShort s = explain::in_short(e);
  std::vector<ShortLine> out;
  out.push_back({"Root fault", {s.fault}});
  out.push_back({"The code that received it",
                 {s.received.empty() ? "not known: no stack names a function of the application" : s.received}});
  out.push_back({"The first difference to correct runs",
                 {s.first_wrong.empty() ? "not determined: " + s.why_no_first_wrong : s.first_wrong}});
  if (!s.consequences.empty()) out.push_back({"Consequences", std::move(s.consequences)});
  if (!e.suspects.empty()) {
    std::string best;
    for (std::size_t i = 0; i < std::min(e.suspects.size(), kShortSuspects); ++i)
      best += fmt::format("{}{} ({:.2f})", i == 0 ? "" : ", ", e.suspects[i].function, e.suspects[i].score);
    out.push_back({"The first suspects", {std::move(best)}});
  }
  out.push_back({"Symptom",
                 {s.symptom.empty() ? std::string("the oracle finds the bug; no message or event shows it")
                                    : fmt::format("the oracle prints: {}", s.symptom)}});
  return out;
}

std::string exchange_ends(const explain::ExchangeTable& table) {
  return fmt::format("{} {} {} (port {})", table.from, table.answer ? "answers" : "sends", table.to, table.port);
}

std::string round_words(const explain::Round& round) {
  std::string of;
  for (std::size_t i = 0; i < std::min<std::size_t>(round.functions.size(), 6); ++i)
    of += (i == 0 ? "" : ", ") + round.functions[i];
  if (round.functions.size() > 6) of += fmt::format(" and {} more", round.functions.size() - 6);
  return fmt::format(
      "{} queries about {}; {} distinguish failing from correct runs; {} runs in {}, reading values took {} of their "
      "time",
      round.asked, of, round.differing, round.runs, format_seconds(round.seconds), percent_fine(round.share));
}

std::string value_counts(const std::vector<explain::ValueCount>& counts) {
  std::string out;
  for (const explain::ValueCount& count : counts) {
    out += (out.empty() ? "" : ", ") + count.value;
    if (count.times > 1 || count.times == 0) out += fmt::format(" x{}", count.times);
    if (count.before > 0) out += fmt::format(" ({})", count.before);
  }
  return out.empty() ? "never seen" : out;
}

std::string value_verdict(const explain::ValueTable& table) {
  if (!table.refused.empty()) return "not recorded: " + table.refused;
  std::string out = table.differs.empty() ? "does not distinguish them" : table.differs;
  if (table.only_bug) out += ", only with the bug";
  if (table.first)
    out += fmt::format("; first {} at {} on {}, thread {}", table.first->value, moment_text(table.first->at_ns),
                       table.first->node, table.first->tid);
  if (table.unlisted > 0) out += fmt::format("; {} further values", table.unlisted);
  for (const std::string& remark : table.remarks) out += "; " + remark;
  return out;
}

std::string explanation_json(const ExplanationReport& r) {
  const Explanation& e = r.explanation;
  Json stacks = Json::array(), suspects = Json::array(), story = Json::array(), differences = Json::array();
  for (const Explanation::StackOf& one : e.stacks) stacks.push_back(arrived_json(one));
  for (std::size_t i = 0; i < e.suspects.size(); ++i) {
    const explain::Suspect& s = e.suspects[i];
    Json json = {{"rank", i + 1}, {"function", s.function}, {"score", s.score}, {"why", s.why}, {"node", s.node}};
    Json features = Json::object();
    for (const explain::FeatureEntry& one : explain::features())
      if (s.features[one.feature] != 0) features[std::string(one.name)] = s.features[one.feature];
    json["features"] = std::move(features);
    json["file"] = s.file.empty() ? Json() : Json(s.file);
    json["line"] = s.line > 0 ? Json(s.line) : Json();
    suspects.push_back(std::move(json));
  }
  for (const StoryLine& line : e.story)
    story.push_back({{"ts", line.ts_ns},
                     {"node", line.node},
                     {"text", line.text},
                     {"elapsed", static_cast<double>(line.at_ns) / 1e9},
                     {"evidence", line.evidence},
                     {"first_wrong", line.first_wrong}});
  for (const explain::DifferenceText& d : e.differences)
    differences.push_back({{"node", d.node},
                           {"what", d.words},
                           {"missing", d.missing},
                           {"failing", d.failing},
                           {"sound", d.sound},
                           {"near", d.near},
                           {"only_bug", d.only_bug},
                           {"weight", d.weight}});
  Json values = Json::array(), rounds = Json::array(), recorded = Json::array();
  for (const explain::RecordedDivergence& d : e.recorded)
    recorded.push_back({{"node", d.node},
                        {"key", d.key},
                        {"takes", d.what},
                        {"instead", d.instead.empty() ? Json() : Json(d.instead)},
                        {"alike", d.alike},
                        {"record", d.record},
                        {"recording", d.file},
                        {"elapsed", static_cast<double>(d.at_ns) / 1e9},
                        {"failing", d.failing},
                        {"sound", d.sound}});
  for (const explain::Round& round : e.rounds)
    rounds.push_back({{"functions", round.functions},
                      {"asked", round.asked},
                      {"differing", round.differing},
                      {"runs", round.runs},
                      {"seconds", round.seconds},
                      {"share", round.share}});
  for (const explain::ValueTable& table : e.values) values.push_back(value_json(table));
  Json exchanges = Json::array();
  for (const explain::ExchangeTable& t : e.exchanges)
    exchanges.push_back({{"from", t.from},
                         {"to", t.to},
                         {"port", t.port},
                         {"answers", t.answer},
                         {"failing", amount_json(t.failing)},
                         {"sound", amount_json(t.sound)},
                         {"near", e.near > 0 ? amount_json(t.near) : Json()},
                         {"differs", t.differs}});
  const Json json = {{"verdict", explain::verdict_name(e.verdict)},
                     {"fault", e.fault},
                     {"stacks", std::move(stacks)},
                     {"suspects", std::move(suspects)},
                     {"story", std::move(story)},
                     {"seconds", r.seconds},
                     {"first_answer_seconds", r.first_answer_seconds ? Json(*r.first_answer_seconds) : Json()},
                     {"reason", e.reason},
                     {"faults", e.faults},
                     {"symptom", e.symptom},
                     {"differences", std::move(differences)},
                     {"not_told", e.limits},
                     {"runs",
                      {{"made", r.runs},
                       {"reproduced", r.reproduced},
                       {"not_reproduced", r.missed},
                       {"inconclusive", r.inconclusive},
                       {"failing", e.failing},
                       {"sound", e.sound},
                       {"near", e.near},
                       {"shorter", e.shorter}}},
                     {"chance", e.chance},
                     {"values", std::move(values)},
                     {"rounds", std::move(rounds)},
                     {"recorded", std::move(recorded)},
                     {"exchanges", std::move(exchanges)},
                     {"explanation", r.written}};
  return json_text(json, 2) + "\n";
}

std::string explanation_text(const ExplanationReport& r) {
  const Explanation& e = r.explanation;
  std::string out = fmt::format("{}: {}\n", explain::verdict_name(e.verdict), printable(e.reason));
  if (!e.stacks.empty()) {
    out += "\nwhere the fault hit\n";
    const Explanation::StackOf& first = e.stacks.front();
    out += fmt::format("  '{}' on {}{}\n", printable(first.fault), printable(first.stack.node),
                       first.stack.why.empty() ? "" : ": " + printable(first.stack.why));
    const std::vector<schedule::Frame>& frames = first.stack.frames;
    for (std::size_t i = 0; i < std::min(frames.size(), kTextFrames); ++i)
      out += "    " + printable(frame_text(frames[i])) + "\n";
    if (frames.size() > kTextFrames) out += fmt::format("    and {} more\n", frames.size() - kTextFrames);
  }
  if (!e.suspects.empty()) {
    out += "\nsuspects\n";
    for (std::size_t i = 0; i < std::min(e.suspects.size(), kTextSuspects); ++i) {
      const explain::Suspect& s = e.suspects[i];
      out += fmt::format("  {}. {:.2f}  {}{}\n           {}\n", i + 1, s.score, printable(s.function),
                         s.file.empty() ? "" : " (" + printable(source_place(s.file, s.line)) + ")", printable(s.why));
      if (const std::string weighed = explain::contribution_words(s.features); !weighed.empty())
        out += fmt::format("           {}\n", weighed);
    }
    if (e.suspects.size() > kTextSuspects) out += fmt::format("  and {} more\n", e.suspects.size() - kTextSuspects);
  }
  if (!e.values.empty()) {
    out += "\nrequested values (after the fault; in brackets, before it)\n";
    for (const explain::ValueTable& table : e.values) out += value_text(table);
  }
  if (!e.rounds.empty()) {
    out += "\nrounds of queries\n";
    for (std::size_t i = 0; i < e.rounds.size(); ++i)
      out += fmt::format("  round {}: {}\n", i + 1, printable(round_words(e.rounds[i])));
  }
  if (!e.recorded.empty()) {
    out += "\nwhere the nodes' recordings diverge\n";
    for (const explain::RecordedDivergence& d : e.recorded)
      out += fmt::format("  {:>14}  {}\n", moment_text(d.at_ns), printable(explain::divergence_words(d)));
  }
  if (!e.story.empty()) {
    out += fmt::format("\nwhat happened (run {})\n", r.story.number);
    for (const StoryLine& line : e.story) out += "  " + line_text(line) + "\n";
  }
  if (std::any_of(e.exchanges.begin(), e.exchanges.end(), [](const auto& table) { return !table.differs.empty(); })) {
    out += "\nmessages between nodes whose number differs (in the same time after the fault in all runs)\n";
    for (const explain::ExchangeTable& t : e.exchanges)
      if (!t.differs.empty()) out += fmt::format("  {}: {}\n", printable(exchange_ends(t)), printable(t.differs));
  }
  if (!e.limits.empty()) {
    out += "\nwhat could not be determined\n";
    for (const std::string& limit : e.limits) out += "  - " + printable(limit) + "\n";
  }
  out += "\n" + runs_words(r) + "\n";
  if (!r.written.empty()) out += fmt::format("written: {}\n", printable(r.written));
  return out;
}

std::string explanation_markdown(const ExplanationReport& r) {
  const Explanation& e = r.explanation;
  std::string out =
      fmt::format("# {}: why it fails\n\n**{}**: {}\n\n", md(r.name), explain::verdict_name(e.verdict), md(e.reason));
  if (!e.story.empty()) out += short_markdown(e);
  if (!e.faults.empty()) {
    out += "## The faults\n\n";
    for (std::size_t i = 0; i < e.faults.size(); ++i)
      out += fmt::format("{}. {}{}\n", i + 1, md(e.faults[i]), i == 0 ? " (the first)" : "");
    out += "\n";
  }
  if (!e.stacks.empty()) {
    out += "## The code that received them\n\n";
    for (const Explanation::StackOf& one : e.stacks) {
      out += fmt::format("**{}** on {}, thread {}{}\n\n", md(one.fault), md(one.stack.node), md(one.stack.thread),
                         one.stack.why.empty() ? "" : ": " + md(one.stack.why));
      for (std::size_t i = 0; i < one.stack.frames.size(); ++i)
        out += fmt::format("{}. {}\n", i + 1, md(frame_text(one.stack.frames[i])));
      out += "\n";
      if (one.others > 0) out += others_words(one.others) + "\n\n";
    }
  }
  if (!e.suspects.empty()) {
    out +=
        "## Suspects\n\nThe score is the probability that a suspect is the function to look for, if it is one of them. "
        "What is weighed: `rose explain --show-weights`.\n\n| | function | where | score | why | weighed |\n"
        "|---|---|---|---|---|---|\n";
    for (std::size_t i = 0; i < std::min(e.suspects.size(), kMarkdownSuspects); ++i) {
      const explain::Suspect& s = e.suspects[i];
      out += fmt::format("| {} | {} | {} | {:.2f} | {} | {} |\n", i + 1, md(s.function),
                         md(source_place(s.file, s.line)), s.score, md(s.why), explain::contribution_words(s.features));
    }
    if (e.suspects.size() > kMarkdownSuspects)
      out += fmt::format("\nand {} more; `--json` lists all.\n", e.suspects.size() - kMarkdownSuspects);
    out += "\n";
  }
  if (!e.values.empty()) {
    out +=
        "## Requested values\n\nValues after the fault, in all runs of each side; in brackets, before it. The score "
        "says "
        "how well the value distinguishes them.\n\n| query | node | failing | correct | score | what differs "
        "|\n|---|---|---|---|---|---|\n";
    for (const explain::ValueTable& table : e.values)
      out +=
          fmt::format("| {}{} | {} | {} | {} | {:.2f} | {} |\n", md(table.query),
                      table.type.empty() ? "" : ": " + md(table.type), md(table.node), md(value_counts(table.failing)),
                      md(value_counts(table.sound)), table.score, md(value_verdict(table)));
    out += "\n";
  }
  if (!e.story.empty()) {
    out += fmt::format(
        "## What happened\n\nOf run {}, from the first fault to the symptom. Times are relative to the start of the "
        "workload; those of log lines are when they were written, accurate to some milliseconds.\n\n| at | node | what "
        "| evidence |\n|---|---|---|---|\n",
        r.story.number);
    for (const StoryLine& line : e.story)
      out += fmt::format("| {} | {} | {}{} | {} |\n", moment_text(line.at_ns), md(line.node), md(line.text),
                         line.first_wrong ? " **(the first difference)**" : "", md(line.evidence));
    out += "\n";
  }
  if (!e.differences.empty()) {
    out +=
        "## What is different\n\nWhat occurred in which share of the runs, from the fault on. Ranked by Ochiai's "
        "coefficient; what also varies among failing runs or among correct runs counts less, what is close to the "
        "fault "
        "more.\n\n| node | what | failing | correct | fault without bug | weight "
        "|\n|---|---|---|---|---|---|\n";
    for (std::size_t i = 0; i < std::min(e.differences.size(), kMarkdownDifferences); ++i) {
      const explain::DifferenceText& d = e.differences[i];
      out +=
          fmt::format("| {} | {}{} | {} | {} | {} | {:.2f} |\n", md(d.node), d.missing ? "no longer: " : "",
                      md(d.words), percent(d.failing), percent(d.sound), e.near > 0 ? percent(d.near) : "-", d.weight);
    }
    if (e.differences.size() > kMarkdownDifferences)
      out += fmt::format("\nand {} more.\n", e.differences.size() - kMarkdownDifferences);
    out += "\n";
  }
  if (!e.exchanges.empty()) {
    out +=
        "## Messages between nodes\n\nIn the same time after the fault in all runs; the data of one call counts as a "
        "message. Minimum and maximum over the runs.\n\n| | failing | correct | fault without bug | differs "
        "|\n|---|---|---|---|---|\n";
    for (const explain::ExchangeTable& t : e.exchanges)
      out += fmt::format("| {} | {} | {} | {} | {} |\n", md(exchange_ends(t)), md(explain::amount_words(t.failing)),
                         md(explain::amount_words(t.sound)), e.near > 0 ? md(explain::amount_words(t.near)) : "-",
                         t.differs.empty() ? "no" : "yes");
    out += "\n";
  }
  if (!e.limits.empty()) {
    out += "## What could not be determined\n\n";
    for (const std::string& limit : e.limits) out += "- " + md(limit) + "\n";
    out += "\n";
  }
  if (!e.recorded.empty()) {
    out += fmt::format(
        "## Where the nodes' recordings diverge\n\nMessages that a node recorded itself, after the fault, in run {} "
        "and the others:\n\n",
        r.story.number);
    for (const explain::RecordedDivergence& d : e.recorded)
      out += fmt::format("- {}: {}\n", md(moment_text(d.at_ns)), md(explain::divergence_words(d)));
    out += "\n";
  }
  if (!e.rounds.empty()) {
    out += "## Rounds of queries\n\n";
    for (std::size_t i = 0; i < e.rounds.size(); ++i)
      out += fmt::format("- round {}: {}\n", i + 1, md(round_words(e.rounds[i])));
    out += "\n";
  }
  out += fmt::format("## How\n\n{}. Schedule: {}; configuration: {}.\n", runs_words(r), md(r.schedule_path),
                     md(r.config_path));
  return out;
}

}  // namespace rose::report
