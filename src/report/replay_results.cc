#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "report/dump/text.h"
#include "report/results.h"
#include "report/suite.h"
#include "schedule/record.h"

namespace rose::report {

using schedule::RunResult;
using schedule::Verdict;

namespace {

std::string since_workload(std::int64_t ns) {
  const double seconds = static_cast<double>(ns < 0 ? -ns : ns) / 1e9;
  return ns < 0 ? fmt::format("{:.3f} s before", seconds) : fmt::format("{:.3f} s", seconds);
}

std::string thread_of(int pid, int tid) {
  if (tid <= 0) return pid > 0 ? std::to_string(pid) : "";
  return pid == tid || pid <= 0 ? std::to_string(tid) : fmt::format("{}/{}", pid, tid);
}

std::string why_not(const schedule::FaultOutcome& outcome) {
  if (!outcome.why_not.empty()) return outcome.why_not;
  return outcome.withdrawn ? "another fault of its group fired" : "";
}

// The number of matching calls that the fault saw; "" for a fault that does not wait for a call.
std::string seen_text(const schedule::Fault& fault, const schedule::FaultOutcome& outcome) {
  const bool calls = fault.kind == schedule::FaultKind::syscall || fault.before.has_value();
  if (!calls || (outcome.seen == 0 && !outcome.armed)) return {};
  if (outcome.fired) return plural(outcome.seen, "call");
  return fmt::format("{} of {}", outcome.seen,
                     fault.kind == schedule::FaultKind::syscall ? fault.count : fault.before_count);
}

// True for libraries through which the calls of every program pass.
bool is_plumbing(const schedule::Frame& frame) {
  const auto name = frame.module.substr(frame.module.rfind('/') + 1);
  for (const char* one : {"libc.so", "libc-", "libpthread", "ld-linux", "ld-musl", "libstdc++.so", "libgcc_s.so",
                          "libjvm.so", "libjava.so", "libnio.so", "libnet.so"})
    if (name.starts_with(one)) return true;
  return (frame.module.empty() && frame.function.empty()) || schedule::of_jdk(frame);
}

std::string in_short(const schedule::Frame& frame) {
  constexpr std::size_t kMost = 120;
  const auto last_part = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  std::string text = frame.function;
  if (text.empty())
    text = frame.module.empty() ? fmt::format("code made at run time, {:#x}", frame.offset)
                                : fmt::format("{}+{:#x}", last_part(frame.module), frame.offset);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  if (!frame.file.empty()) text += fmt::format(" at {}", last_part(frame.file));
  if (!frame.file.empty() && frame.line > 0) text += fmt::format(":{}", frame.line);
  return text;
}

Json stack_of_run(const std::string& fault, const schedule::Stack& stack, int run) {
  Json frames = Json::array();
  for (const schedule::Frame& frame : stack.frames)
    frames.push_back({{"function", text_or_null(frame.function)},
                      {"file", text_or_null(frame.file)},
                      {"line", frame.line > 0 ? Json(frame.line) : Json(nullptr)},
                      {"module", text_or_null(frame.module)}});
  return {{"fault", fault},
          {"node", stack.node},
          {"thread", stack.thread},
          {"pid", stack.pid},
          {"tid", stack.tid},
          {"run", run},
          {"why", stack.why},
          {"frames", std::move(frames)},
          {"incomplete", text_or_null(stack.incomplete)}};
}

// For each fault, the stacks from the first run that has any.
Json stacks_json(const ReplayReport& report) {
  Json stacks = Json::array();
  for (const schedule::Fault& fault : report.schedule.faults) {
    const auto all = stacks.size();
    for (const RunResult& run : report.runs) {
      for (const schedule::FaultOutcome& outcome : run.faults)
        for (const schedule::Stack& stack : outcome.stacks)
          if (outcome.id == fault.id) stacks.push_back(stack_of_run(fault.id, stack, run.number));
      if (stacks.size() > all) break;
    }
  }
  return stacks;
}

const char* mark_of(bool expect_fixed, Verdict verdict) {
  if (verdict == Verdict::inconclusive) return "?";
  return (verdict == Verdict::reproduced) != expect_fixed ? "+" : "-";
}

}  // namespace

std::string FaultCount::reason() const {
  std::string text;
  if (effective < fired) text = no_effect;
  if (fired < requested && !why_not.empty()) text += fmt::format("{}{}", text.empty() ? "" : "; ", why_not);
  return text;
}

void conclude(ReplayReport& report) {
  const schedule::Tally& tally = report.tally;
  std::string first_reason;
  for (const RunResult& run : report.runs)
    if (run.verdict == Verdict::inconclusive && first_reason.empty()) first_reason = run.reason;
  const std::string unclear =
      fmt::format("{} of {} runs were inconclusive: {}", tally.inconclusive, tally.runs(), first_reason);
  if (!report.expect_fixed) {
    if (tally.conclusive() == 0 || 2 * tally.conclusive() < tally.runs()) {
      report.verdict = Verdict::inconclusive;
      report.reason = unclear;
      return;
    }
    const bool reached = tally.rate() >= report.target_rate;
    report.verdict = reached ? Verdict::reproduced : Verdict::not_reproduced;
    report.reason = fmt::format("the rate {:.2f} is {} the target {:.2f}", tally.rate(),
                                reached ? "at or above" : "below", report.target_rate);
    return;
  }
  if (tally.reproduced > 0) {
    report.verdict = Verdict::reproduced;
    report.reason =
        fmt::format("the bug still occurs: in {} of {} conclusive runs", tally.reproduced, tally.conclusive());
    return;
  }
  report.verdict = Verdict::inconclusive;
  const std::vector<FaultCount> counts = report.faults();
  const bool any = std::any_of(counts.begin(), counts.end(), [](const FaultCount& one) { return one.effective > 0; });
  const bool failed = !report.runs.empty() && report.failed_workloads == static_cast<int>(report.runs.size());
  if (tally.inconclusive > 0 || tally.conclusive() == 0) {
    report.reason = unclear;
  } else if (!counts.empty() && !any) {
    report.reason = fmt::format("the bug did not occur, but no fault was effective in any run: '{}': {}",
                                counts.front().id, counts.front().reason());
  } else if (counts.empty() && report.schedule.order.empty()) {
    report.reason =
        "the bug did not occur, but the schedule plans neither a fault nor an order, which a fix could withstand";
  } else if (failed && !report.usual_work) {
    report.reason =
        "the bug did not occur, but the workload failed in every run, and no profile says that it does its "
        "work without faults";
  } else if (failed && !report.work_seen) {
    report.reason =
        "the bug did not occur, but the workload failed in every run, and exchanged no data with the nodes "
        "that rose could see";
  } else {
    report.verdict = Verdict::not_reproduced;
    const bool optional = std::any_of(counts.begin(), counts.end(), [](const FaultCount& one) { return one.optional; });
    report.reason = counts.empty() ? "the bug did not occur in any run; no fault was planned"
                    : optional ? "the bug did not occur in any run, and every fault that is not optional was effective"
                               : "the bug did not occur in any run, and every planned fault was effective";
  }
}

std::vector<FaultCount> ReplayReport::faults() const {
  std::vector<FaultCount> counts;
  for (const schedule::Fault& fault : schedule.faults) {
    FaultCount count{.id = fault.id, .requested = static_cast<int>(runs.size()), .optional = fault.optional};
    for (const RunResult& run : runs) {
      const auto outcome = std::find_if(run.faults.begin(), run.faults.end(),
                                        [&](const schedule::FaultOutcome& o) { return o.id == fault.id; });
      if (outcome == run.faults.end()) count.why_not = run.reason;  // the run ended before the faults were armed
      else if (!outcome->fired) count.why_not = report::why_not(*outcome);
      else ++count.fired;
      if (outcome == run.faults.end() || !outcome->fired) continue;
      if (outcome->effective()) ++count.effective;
      else count.no_effect = outcome->no_effect;
    }
    counts.push_back(std::move(count));
  }
  return counts;
}

namespace {

// How often an event or step of the schedule's order happened, over all runs.
struct NameCount {
  std::string name, kind;
  int runs = 0, came = 0;
  int held = 0;         // number of runs in which the event was held until its turn
  std::string why_not;  // the reason in the last run in which it did not happen
};

std::vector<NameCount> names_of_order(const ReplayReport& report) {
  std::vector<NameCount> counts;
  for (const RunResult& run : report.runs) {
    for (const schedule::OrderOutcome& one : run.order) {
      if (one.kind == "fault") continue;
      auto count =
          std::find_if(counts.begin(), counts.end(), [&](const NameCount& known) { return known.name == one.name; });
      if (count == counts.end()) count = counts.insert(counts.end(), {one.name, one.kind, 0, 0, 0, {}});
      ++count->runs;
      if (one.held_ns > 0) ++count->held;
      if (one.came) ++count->came;
      else count->why_not = one.why_not;
    }
  }
  return counts;
}

}  // namespace

const RunResult* ReplayReport::recorded_run() const {
  const RunResult* found = nullptr;
  for (const RunResult& run : runs) {
    if (run.recordings.empty()) continue;
    if (found == nullptr || run.verdict == Verdict::reproduced || found->verdict != Verdict::reproduced) found = &run;
  }
  return found;
}

Json recordings_json(const RunResult& run) {
  Json list = Json::array();
  for (const auto& path : run.recordings) list.push_back(path.string());
  return list;
}

Json replay_object(const ReplayReport& report) {
  Json order = Json::array();
  for (const NameCount& name : names_of_order(report)) {
    Json entry = {{"name", name.name}, {"kind", name.kind}, {"runs", name.runs}, {"came", name.came}};
    if (name.held > 0) entry["held"] = name.held;
    if (name.came < name.runs) entry["why_not"] = name.why_not;
    order.push_back(std::move(entry));
  }
  Json faults = Json::array();
  for (const FaultCount& fault : report.faults()) {
    Json entry = {
        {"id", fault.id}, {"requested", fault.requested}, {"fired", fault.fired}, {"effective", fault.effective}};
    if (fault.optional) entry["optional"] = true;
    if (const schedule::Fault* planned = report.schedule.find(fault.id)) {
      entry["kind"] = schedule::kind_name(planned->kind);
      entry["node"] = planned->node;
      entry["words"] = schedule::in_words(*planned, &report.schedule);
    }
    if (fault.fired < fault.requested) entry["why_not"] = fault.why_not;
    if (fault.effective < fault.fired) entry["no_effect"] = fault.no_effect;
    faults.push_back(std::move(entry));
  }
  Json runs = Json::array();
  for (std::size_t i = 0; i < report.runs.size(); ++i) {
    const RunResult& run = report.runs[i];
    runs.push_back({{"number", run.number},
                    {"verdict", schedule::verdict_name(run.verdict)},
                    {"reason", run.reason},
                    {"seconds", run.seconds},
                    {"directory", text_or_null(run.directory.string())},
                    {"workload", text_or_null(i < report.workloads.size() ? report.workloads[i] : "")},
                    {"faults", schedule::outcomes_json(run.faults)}});
    if (!run.order.empty()) runs.back()["order"] = schedule::order_json(run.order);
    if (!run.order_broken.empty()) runs.back()["order_broken"] = run.order_broken;
    if (!run.recordings.empty()) runs.back()["recordings"] = recordings_json(run);
  }
  Json json = {{"verdict", schedule::verdict_name(report.verdict)},
               {"rate", report.tally.rate()},
               {"interval", interval_json(report.tally)},
               {"runs", report.tally.runs()},
               {"reproduced", report.tally.reproduced},
               {"not_reproduced", report.tally.not_reproduced},
               {"inconclusive", report.tally.inconclusive},
               {"seconds", report.seconds},
               {"faults", std::move(faults)},
               {"reason", report.reason},
               {"target_rate", report.target_rate},
               {"expect", report.expect_fixed ? "fixed" : "bug"},
               {"passed", report.passed()},
               {"words", schedule::in_words(report.schedule)},
               {"backend", text_or_null(report.backend)},
               {"stacks", stacks_json(report)},
               {"run_results", std::move(runs)}};
  if (report.expect_fixed && report.tally.reproduced == 0)
    json["rate_upper_bound"] = schedule::upper_bound_without_hit(report.tally.conclusive());
  if (!report.unchecked.empty()) json["unchecked"] = report.unchecked;
  if (report.flaky()) json["flaky"] = true;
  if (!report.alone.empty()) json["alone"] = report.alone;
  if (!order.empty()) json["order"] = std::move(order);
  return json;
}

std::string replay_json(const ReplayReport& report) { return json_line(replay_object(report)); }

// If `--expect fixed` could not decide because a fault was never effective: what the user can do about this. Otherwise
// "".
std::string advice_on_fix(const ReplayReport& report) {
  if (!report.expect_fixed || report.verdict != Verdict::inconclusive) return "";
  const std::vector<FaultCount> counts = report.faults();
  const bool never =
      std::any_of(counts.begin(), counts.end(), [](const FaultCount& fault) { return fault.effective == 0; });
  if (!never) return "";
  return fmt::format(
      "what to do next: replay it with the build that has the bug. If the fault is effective there, the fix has "
      "removed "
      "what it needs: {}\n",
      counts.size() > 1 ? "`optional = true` lets such a fault be left out, but one of the others must be effective"
                        : "give it a condition or call that both builds reach");
}

std::string replay_text(const ReplayReport& report) {
  std::string out = fmt::format("{}: {}\n", schedule::verdict_name(report.verdict), printable(report.reason));
  out += fmt::format("rate: {}; {}, {} inconclusive, {}\n", rate_text(report.tally),
                     plural(static_cast<std::uint64_t>(report.tally.runs()), "run"), report.tally.inconclusive,
                     format_seconds(report.seconds));
  if (report.expect_fixed && report.tally.reproduced == 0 && report.tally.conclusive() > 0)
    out += fmt::format("remaining rate: at most {} (95 %)\n",
                       percent(schedule::upper_bound_without_hit(report.tally.conclusive())));
  for (const FaultCount& fault : report.faults()) {
    out += fmt::format("{}fault {}: fired in {} of {}, effective in {}", fault.optional ? "optional " : "", fault.id,
                       fault.fired, plural(static_cast<std::uint64_t>(fault.requested), "run"), fault.effective);
    if (const std::string why = fault.reason(); !why.empty()) out += fmt::format(" ({})", printable(why));
    out += "\n";
  }
  for (const NameCount& name : names_of_order(report)) {
    out += fmt::format("{} {}: happened in {} of {}", name.kind, name.name, name.came,
                       plural(static_cast<std::uint64_t>(name.runs), "run"));
    if (name.held > 0) out += fmt::format(", held until its turn in {}", name.held);
    if (name.came < name.runs && !name.why_not.empty()) out += fmt::format(" ({})", printable(name.why_not));
    out += "\n";
  }
  if (report.expect_fixed)
    for (const std::string& what : report.unchecked) out += fmt::format("not checked: {}\n", printable(what));
  if (!report.backend.empty()) out += fmt::format("syscall faults by: {}\n", report.backend);
  out += advice_on_fix(report);
  // Show one run in full: the last one whose outcome was not wanted, because it needs an explanation.
  const RunResult* shown = nullptr;
  for (const RunResult& run : report.runs)
    if (shown == nullptr || mark_of(report.expect_fixed, run.verdict)[0] != '+' ||
        mark_of(report.expect_fixed, shown->verdict)[0] == '+')
      shown = &run;
  if (shown != nullptr && !report.schedule.faults.empty())
    out += fmt::format("\nrun {}, {}: {}\n{}", shown->number, schedule::verdict_name(shown->verdict),
                       printable(shown->reason), fault_table(report.schedule, *shown));
  if (const RunResult* recorded = report.recorded_run()) {
    const bool pins = recorded->verdict == Verdict::reproduced && report.tally.rate() < report.target_rate;
    out += fmt::format("\nrecorded in run {}, {}{} (rose replay --recording FILE -- CMD):\n", recorded->number,
                       schedule::verdict_name(recorded->verdict),
                       pins ? "; the schedule does not reproduce the bug each time, but replaying this recording of "
                              "the failed node does"
                            : "");
    for (const auto& path : recorded->recordings) out += fmt::format("  {}\n", printable(path.string()));
    for (const std::string& command : report.alone) out += fmt::format("  {}\n", printable(command));
  }
  return out;
}

std::vector<std::string> frames_in_short(const schedule::FaultOutcome& outcome) {
  constexpr std::size_t kShown = 6;
  if (outcome.stacks.empty()) return {};
  const schedule::Stack& stack = outcome.stacks.front();
  const auto own =
      std::find_if(stack.frames.begin(), stack.frames.end(), [](const auto& frame) { return !is_plumbing(frame); });
  const auto last_own = std::find_if(stack.frames.rbegin(), stack.frames.rend(), [](const auto& frame) {
    return !is_plumbing(frame) && frame.function != "_start";
  });
  const bool any = own != stack.frames.end() && last_own != stack.frames.rend();
  const auto first = any ? own : stack.frames.begin();
  const auto end = any ? last_own.base() : stack.frames.end();
  std::vector<std::string> lines;
  for (auto frame = first; frame < end && lines.size() < kShown; ++frame) lines.push_back(in_short(*frame));
  const auto left = static_cast<std::size_t>(stack.frames.end() - first) - lines.size();
  if (left > 0) lines.push_back(fmt::format("{} more", plural(left, "frame")));
  if (!stack.incomplete.empty()) lines.push_back(fmt::format("({})", stack.incomplete));
  return lines;
}

std::vector<FaultRow> fault_rows(const schedule::Schedule& schedule, const RunResult& run) {
  using Kind = FaultRow::Kind;
  std::vector<FaultRow> rows;
  for (const schedule::FaultOutcome& outcome : run.faults) {
    const schedule::Fault* fault = schedule.find(outcome.id);
    if (fault == nullptr) continue;
    rows.push_back({Kind::fault, outcome.id, "", "", "", "", ""});
    for (std::size_t i = 0; i < outcome.conditions.size(); ++i) {
      const schedule::ConditionOutcome& condition = outcome.conditions[i];
      // A condition on time counts nothing.
      const bool counted = i >= fault->when.size() || fault->when[i].kind != schedule::ConditionKind::elapsed;
      rows.push_back({Kind::condition, fmt::format("{}. {}", i + 1, condition.words),
                      condition.met ? since_workload(condition.met_ns) : "never", condition.node,
                      thread_of(condition.pid, condition.tid),
                      counted ? fmt::format("{} of {}", condition.seen, condition.wanted) : "", ""});
    }
    if (!outcome.fired) {
      rows.push_back({Kind::fired, "fired", "never", "", "", seen_text(*fault, outcome), why_not(outcome)});
      continue;
    }
    rows.push_back({Kind::fired, "fired", since_workload(outcome.fired_ns), outcome.node,
                    thread_of(outcome.pid, outcome.tid), seen_text(*fault, outcome), outcome.detail});
    const char* how = "  in";
    for (std::string& frame : frames_in_short(outcome))
      rows.push_back({Kind::frame, std::exchange(how, ""), "", "", "", "", std::move(frame)});
    rows.push_back({Kind::effective, "effective", outcome.effective() ? "yes" : "no", "", "", "", outcome.no_effect});
    const bool lasts = schedule::lasts(fault->kind);
    if (outcome.ended_ns)
      rows.push_back({Kind::ended, "ended", since_workload(*outcome.ended_ns), outcome.node, "", "", ""});
    else if (lasts)
      rows.push_back({Kind::ended, "ended", "never", outcome.node, "", "", "it lasted to the end of the run"});
  }
  return rows;
}

std::string fault_table(const schedule::Schedule& schedule, const RunResult& run) {
  std::vector<std::vector<std::string>> table{{"", "at", "node", "pid/thread", "seen", "where, or why not"}};
  std::string out;
  for (const FaultRow& row : fault_rows(schedule, run)) {
    if (row.kind == FaultRow::Kind::fault) {
      table.push_back({printable(row.what)});
      if (const schedule::Fault* fault = schedule.find(row.what))
        out += fmt::format("  {}: {}\n", printable(row.what), printable(schedule::in_words(*fault, &schedule)));
      continue;
    }
    table.push_back(
        {"  " + printable(row.what), row.at, printable(row.node), row.thread, row.seen, printable(row.detail)});
  }
  if (table.size() == 1) return {};
  return out + columns(table, "  ");
}

}  // namespace rose::report
