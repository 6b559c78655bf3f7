#include "report/page.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/units.h"
#include "report/dump/summary.h"
#include "report/dump/text.h"
#include "report/markup.h"
#include "report/page_parts.h"

namespace rose::report {

using schedule::Verdict;

namespace {

// Small parts

using Interval = std::pair<double, double>;

std::string rate_sentence(const schedule::Tally& tally, const Interval& interval) {
  if (tally.conclusive() == 0) return "<p>No run was conclusive.</p>\n";
  const auto [low, high] = interval;
  return fmt::format("<p>In {} of {} conclusive runs: {}, with 95 % confidence between {} and {}.</p>\n",
                     tally.reproduced, tally.conclusive(), percent(tally.rate()), percent(low), percent(high));
}

// Draws the rate and its interval on a scale from 0 to 1. The scale also shows the target.
std::string rate_bar(const schedule::Tally& tally, const Interval& interval, double target) {
  const auto [low, high] = interval;
  const auto x = [](double share) { return 8 + 440 * share; };
  std::string out = fmt::format(
      "<svg class=\"rate\" viewBox=\"0 0 460 40\" width=\"460\" height=\"40\" role=\"img\" font-family=\"sans-serif\" "
      "font-size=\"11\">"
      "<title>Replay rate {}, 95 % interval {} to {}, target {}</title>"
      "<rect class=\"track\" x=\"8\" y=\"8\" width=\"440\" height=\"11\" rx=\"5.5\" fill=\"#eee\" stroke=\"#ccc\"/>",
      percent(tally.rate()), percent(low), percent(high), percent(target));
  if (tally.conclusive() > 0)
    out += fmt::format(
        "<rect class=\"band\" x=\"{:.1f}\" y=\"8\" width=\"{:.1f}\" height=\"11\" fill=\"#1d5fc4\" "
        "fill-opacity=\".3\"/>"
        "<circle class=\"point\" cx=\"{:.1f}\" cy=\"13.5\" r=\"6\" fill=\"#1d5fc4\"/>",
        x(low), std::max(2.0, x(high) - x(low)), x(tally.rate()));
  out += fmt::format(
      "<line class=\"target\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"3\" y2=\"24\" stroke=\"#333\" stroke-width=\"1.5\"/>"
      "<text x=\"{0:.1f}\" y=\"36\" text-anchor=\"middle\">target {1}</text>"
      "<text x=\"8\" y=\"36\">0</text><text x=\"448\" y=\"36\" text-anchor=\"end\">{2}</text></svg>",
      x(target), percent(target), target > 0.85 ? "" : "100 %");
  return out;
}

std::string mini_bar(const schedule::Tally& tally) {
  if (tally.conclusive() == 0) return "<span class=\"dim\">-</span>";
  return fmt::format(
      "{} <svg viewBox=\"0 0 40 8\" width=\"40\" height=\"8\" aria-hidden=\"true\"><rect width=\"40\" height=\"8\" "
      "rx=\"2\" "
      "fill=\"#888\" fill-opacity=\".25\"/><rect width=\"{:.1f}\" height=\"8\" rx=\"2\" fill=\"#1d5fc4\"/></svg>",
      percent(tally.rate()), 40 * tally.rate());
}

// Remarks that are neither about steps nor about the rate.
std::string remarks_html(const diagnose::Remarks& remarks) {
  std::string out;
  for (const auto* sentences : {&remarks.places, &remarks.doubts, &remarks.simpler})
    for (const std::string& sentence : *sentences) out += fmt::format("<p>{}</p>\n", cell(sentence));
  return out;
}

std::string next_steps_html(const std::vector<NextStep>& steps) {
  if (steps.empty()) return {};
  std::string out = "<h3>What to do next</h3>\n";
  int number = 0;
  for (const NextStep& step : steps) {
    std::string what = step.what;
    if (!what.empty() && what.front() >= 'a' && what.front() <= 'z')
      what.front() = static_cast<char>(what.front() - 'a' + 'A');
    out += fmt::format("<p>{}</p>\n", cell(what));
    if (step.command.empty()) continue;
    out += fmt::format(
        "<div class=\"command\"><pre id=\"next{0}\">{1}</pre><button type=\"button\" data-copy=\"next{0}\" "
        "hidden>Copy</button></div>\n",
        ++number, cell(step.command));
  }
  return out;
}

// Tables

std::string tried_section(const diagnose::Diagnosis& diagnosis) {
  if (diagnosis.tried.empty()) return {};
  std::string out =
      "<section>\n<h2>Everything tried</h2>\n<div class=\"scroll\"><table><thead><tr><th "
      "class=\"n\">#</th><th>level</th><th>schedule</th>"
      "<th class=\"n\">runs</th><th class=\"n\">reproduced</th><th class=\"n\">not</th><th class=\"n\">could not "
      "tell</th><th>rate</th>"
      "<th>why, and the result</th></tr></thead><tbody>\n";
  const std::string found = diagnosis.found ? schedule::fingerprint(*diagnosis.found) : std::string();
  // Of a long search, show only the first and the last schedules, and those that reproduced the bug.
  const std::size_t half = kMostRows / 2;
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < diagnosis.tried.size(); ++i) {
    const diagnose::Tried& entry = diagnosis.tried[i];
    const bool best = !found.empty() && schedule::fingerprint(entry.schedule) == found;
    if (i >= half && i + half < diagnosis.tried.size() && !best && entry.tally.reproduced == 0) {
      ++left_out;
      continue;
    }
    out += fmt::format(
        "<tr{}><td class=\"n\">{}</td><td class=\"level\">{}</td><td class=\"pre\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td>"
        "<td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td><td>{}{}</td></tr>\n",
        best ? " class=\"found\"" : "", i + 1, entry.level == 0 ? "no fault" : std::to_string(entry.level),
        cell(diagnose::in_words(entry)), entry.tally.runs(), entry.tally.reproduced, entry.tally.not_reproduced,
        entry.tally.inconclusive, mini_bar(entry.tally), best ? "<b>found: </b>" : "", cell(entry.note));
  }
  out += "</tbody></table></div>\n";
  if (left_out > 0)
    out += fmt::format(
        "<p class=\"note small\">{} in between that never reproduced it are left out; diagnosis.json has all</p>\n",
        left_out);
  return out + "</section>\n";
}

std::string not_tried_section(const std::vector<diagnose::NotTried>& next) {
  if (next.empty()) return {};
  std::string out =
      "<section>\n<h2>Not tried</h2>\n<p>What the search would try next, most likely first.</p>\n<div "
      "class=\"scroll\"><table><thead><tr>"
      "<th>level</th><th>faults</th><th>why</th></tr></thead><tbody>\n";
  for (const diagnose::NotTried& one : next)
    out += fmt::format("<tr><td class=\"level\">{}</td><td class=\"pre\">{}</td><td>{}</td></tr>\n", one.level,
                       cell(schedule::in_words(one.schedule)), cell(one.why));
  return out + "</tbody></table></div>\n</section>\n";
}

std::string dump_section(const diagnose::Plan& plan) {
  std::string out =
      fmt::format("<section>\n<h2>Evidence from production</h2>\n<p>{} considered, {} of them discarded.</p>\n",
                  plural(plan.failures, "failure"), percent(plan.discarded_share));
  if (!plan.candidates.empty()) {
    out +=
        "<h3>Candidates, most likely first</h3>\n<div class=\"scroll\"><table><thead><tr><th "
        "class=\"n\">rank</th><th>fault</th>"
        "<th class=\"n\">events</th><th>why</th></tr></thead><tbody>\n";
    const std::vector<const diagnose::Candidate*> candidates = diagnose::by_rank(plan);
    for (std::size_t i = 0; i < std::min(candidates.size(), kMostRows / 3); ++i) {
      const diagnose::Candidate& candidate = *candidates[i];
      out += fmt::format("<tr><td class=\"n\">{}</td><td>{}{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
                         candidate.rank, cell(schedule::in_words(candidate.fault)),
                         candidate.symptom ? " <span class=\"note\">(symptom)</span>" : "", candidate.count,
                         cell(candidate.why));
    }
    out += "</tbody></table></div>\n";
    if (candidates.size() > kMostRows / 3)
      out += fmt::format("<p class=\"note small\">and {} more</p>\n", candidates.size() - kMostRows / 3);
  }
  if (!plan.discarded.empty()) {
    out +=
        "<h3>Discarded, and why</h3>\n<div class=\"scroll\"><table><thead><tr><th "
        "class=\"n\">events</th><th>why</th></tr></thead><tbody>\n";
    for (std::size_t i = 0; i < std::min(plan.discarded.size(), kMostRows / 3); ++i)
      out += fmt::format("<tr><td class=\"n\">{}</td><td>{}</td></tr>\n", plan.discarded[i].events,
                         cell(plan.discarded[i].why));
    out += "</tbody></table></div>\n";
    if (plan.discarded.size() > kMostRows / 3)
      out += fmt::format("<p class=\"note small\">and {} more</p>\n", plan.discarded.size() - kMostRows / 3);
  }
  return out + "</section>\n";
}

// Logs

constexpr std::size_t kMostLogs = 600'000;  // limit in bytes

// The log of the failure beside the log of the run. The faults are inserted between the lines of the run.
std::string logs_section(const std::vector<logs::SideBySide>& all, const schedule::RunResult& run) {
  std::string out;
  std::size_t bytes = 0;
  for (const logs::SideBySide& node : all) {
    if (bytes > kMostLogs || node.rows.empty()) continue;
    const std::size_t begin = out.size();
    out += fmt::format(
        "<h3>{}</h3>\n<div class=\"scroll\"><table class=\"beside\"><thead><tr><th class=\"n\">s</th><th>the "
        "failure</th>"
        "<th class=\"n\">s</th><th>run {}</th></tr></thead><tbody>\n",
        cell(node.node), run.number);
    const std::int64_t zero = run.trace.meta.workload_ts;
    const auto seconds = [](std::int64_t ts, std::int64_t since) {
      return ts == logs::kNoTime || since == logs::kNoTime || since == 0
                 ? std::string()
                 : fmt::format("{:.3f}", static_cast<double>(ts - since) / 1e9);
    };
    // The first column shows the time since the failure's first line, because it is unknown when the failure's workload
    // started.
    std::int64_t first = logs::kNoTime;
    for (const logs::SideBySideRow& row : node.rows)
      if (first == logs::kNoTime) first = row.failure_ns;
    std::vector<const schedule::FaultOutcome*> faults;
    for (const schedule::FaultOutcome& fault : run.faults)
      if (fault.fired && zero != 0) faults.push_back(&fault);
    std::stable_sort(faults.begin(), faults.end(),
                     [](const auto* a, const auto* b) { return a->fired_ns < b->fired_ns; });
    std::size_t next = 0;
    const auto faults_until = [&](std::int64_t ts) {
      for (; next < faults.size() && faults[next]->fired_ns + zero <= ts; ++next)
        out += fmt::format(
            "<tr class=\"fault\"><td class=\"n\"></td><td></td><td class=\"n\">{:.3f}</td><td>{}{}{}</td></tr>\n",
            static_cast<double>(faults[next]->fired_ns) / 1e9, cell(faults[next]->id),
            faults[next]->node.empty() ? "" : " on " + cell(faults[next]->node),
            faults[next]->detail.empty() ? "" : ": " + cell(faults[next]->detail));
    };
    for (const logs::SideBySideRow& row : node.rows) {
      if (row.left_out != 0) {
        out += fmt::format("<tr><td></td><td colspan=\"3\" class=\"note\">{} left out</td></tr>\n",
                           plural(row.left_out, "row"));
        continue;
      }
      if (row.run_ns != logs::kNoTime) faults_until(row.run_ns);
      out += fmt::format("<tr{}><td class=\"n\">{}</td><td>{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
                         row.failure.empty() ? " class=\"right\""
                         : row.run.empty()   ? " class=\"left\""
                                             : "",
                         seconds(row.failure_ns, first), cell(row.failure), seconds(row.run_ns, zero), cell(row.run));
    }
    faults_until(std::numeric_limits<std::int64_t>::max());
    out += "</tbody></table></div>\n";
    bytes += out.size() - begin;
  }
  if (out.empty()) return {};
  return "<section>\n<h2>The failure's logs beside the run's</h2>\n<p class=\"note small\">Lines that both contain are "
         "in the same row, even if their numbers differ. "
         "The failure's seconds count from its first line here, the run's from the beginning of its workload.</p>\n" +
         out + "</section>\n";
}

// The incident

// The candidates that became faults of the found schedule. If no schedule was found, the most likely candidates.
std::vector<const diagnose::Candidate*> explained(const diagnose::Diagnosis& diagnosis) {
  std::vector<const diagnose::Candidate*> chosen;
  for (const diagnose::Candidate* candidate : diagnose::by_rank(diagnosis.plan)) {
    if (!diagnosis.found) {
      if (chosen.size() < 5 && !candidate->symptom) chosen.push_back(candidate);
      continue;
    }
    // A copy for another node has a name that begins with the original's ("crash-n1-on-n2").
    const bool used =
        std::any_of(diagnosis.found->faults.begin(), diagnosis.found->faults.end(), [&](const schedule::Fault& fault) {
          return fault.id == candidate->fault.id || fault.id.starts_with(candidate->fault.id + "-on-");
        });
    if (used) chosen.push_back(candidate);
  }
  return chosen;
}

Panel incident_panel(const diagnose::Diagnosis& diagnosis, const std::vector<Source>& incident,
                     const schedule::RunResult* run) {
  Panel panel;
  panel.title = "The incident";
  panel.sources = incident;
  const std::vector<const diagnose::Candidate*> candidates = explained(diagnosis);
  panel.zero_ns = diagnosis.plan.workload_ts;
  if (panel.zero_ns != 0) {
    panel.boundaries.push_back({0, "workload begins", false});
  } else if (!candidates.empty()) {
    const diagnose::Candidate* first = *std::min_element(
        candidates.begin(), candidates.end(), [](const auto* a, const auto* b) { return a->first_ts < b->first_ts; });
    panel.zero_ns = first->first_ts;
    panel.note =
        "Times are relative to the first suspected fault: the dump does not contain the start of the workload.";
    if (run != nullptr)
      for (const schedule::FaultOutcome& outcome : run->faults)
        if (outcome.fired && (outcome.id == first->fault.id || outcome.id.starts_with(first->fault.id + "-on-"))) {
          panel.zero_ns -= outcome.fired_ns;
          panel.note = fmt::format(
              "Aligned with the run below at its first fault, '{}': the dump does not contain the start of the "
              "workload.",
              outcome.id);
          break;
        }
  } else {
    panel.zero_ns = diagnosis.plan.begin_ts;
  }
  for (const diagnose::Candidate* candidate : candidates) {
    Moment moment{
        MomentKind::fault, candidate->node, candidate->first_ts - panel.zero_ns, 0, false, candidate->fault.id, {}};
    const bool lasts = schedule::lasts(candidate->kind);
    if (lasts) moment.end_ns = candidate->last_ts - panel.zero_ns;
    moment.text = fmt::format("seen in the dump as '{}': {}", candidate->fault.id, candidate->why);
    panel.moments.push_back(std::move(moment));
  }
  std::size_t dumps = 0;
  for (const Source& source : incident) {
    const trace::Meta& meta = source.trace->meta;
    if (meta.end_ns == 0 || ++dumps > 4) continue;
    panel.boundaries.push_back(
        {meta.end_ns - panel.zero_ns,
         meta.trigger.empty() ? "dump written" : fmt::format("dump written ({})", shorten(meta.trigger, 60)), false});
  }
  return panel;
}

}  // namespace

std::string fresh_nonce() {
  unsigned char bytes[16];
  std::size_t filled = 0;
  while (filled < sizeof bytes) {
    const ssize_t n = ::getrandom(bytes + filled, sizeof bytes - filled, 0);
    if (n > 0) filled += static_cast<std::size_t>(n);
  }
  std::string out;
  for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

namespace {

std::string rivals_html(const diagnose::Diagnosis& diagnosis) {
  if (diagnosis.rivals.empty()) return {};
  std::string out =
      "<h3>What else reproduces it</h3>\n<p>Runs do not tell which of these happened in production. "
      "<code>--rule-out ID</code> excludes one that did not.</p>\n";
  for (const diagnose::Rival& rival : diagnosis.rivals)
    out += fmt::format("<p><code>{}</code>: {} of {} runs</p>\n{}<p>It would have left: {}.<br>Check: {}.</p>\n",
                       cell(rival.id), rival.tally.reproduced, rival.tally.conclusive(), steps_html(rival.schedule),
                       cell(rival.would_have_shown), cell(rival.test));
  return out;
}

}  // namespace

std::string diagnosis_html(const DiagnosisReport& report, const std::vector<Source>& incident,
                           const schedule::RunResult* run, const PageContext& context) {
  const diagnose::Diagnosis& diagnosis = *report.diagnosis;
  std::string body = "<section>\n";
  body += fmt::format("<p class=\"lead\">{}{}</p>\n",
                      badge(schedule::verdict_name(diagnosis.verdict), tone_of(diagnosis.verdict, true)),
                      cell(diagnosis.reason));
  if (diagnosis.found) {
    body += "<h3>What must happen</h3>\n" + steps_html(*diagnosis.found) + remarks_html(diagnosis.remarks);
    body += "<h3>Replay rate</h3>\n" + rate_bar(diagnosis.tally, diagnosis.interval, report.target_rate);
    body += rate_sentence(diagnosis.tally, diagnosis.interval);
    body += rivals_html(diagnosis);
  }
  body += "<div class=\"facts\">\n";
  if (diagnosis.found) body += fact(std::to_string(diagnosis.level), "level of the search");
  body +=
      fact(std::to_string(diagnosis.schedules), fmt::format("schedule{} tried{}", diagnosis.schedules == 1 ? "" : "s",
                                                            diagnosis.target_reached ? " before it was found" : ""));
  body +=
      fact(std::to_string(diagnosis.runs),
           fmt::format("runs, {} of them to confirm{}", diagnosis.confirm_runs,
                       diagnosis.rate_runs > 0 ? fmt::format(", {} to measure the rate", diagnosis.rate_runs) : ""));
  body += fact(format_seconds(report.seconds), "in all");
  body += fact(percent(diagnosis.plan.discarded_share),
               fmt::format("of {} discarded", plural(diagnosis.plan.failures, "failure")));
  body += "</div>\n" + next_steps_html(next_steps(report)) + "</section>\n";

  std::vector<Panel> panels;
  if (!incident.empty()) panels.push_back(incident_panel(diagnosis, incident, run));
  if (run != nullptr && diagnosis.found)
    panels.push_back(run_panel(*diagnosis.found, *run,
                               fmt::format("Run {}, {}", run->number, schedule::verdict_name(run->verdict))));
  body += timeline_section(panels, context);
  if (run != nullptr && diagnosis.found)
    body += fault_section(*diagnosis.found, *run, fmt::format("What happened in run {}", run->number));
  if (run != nullptr && diagnosis.found) body += logs_section(report.logs, *run);
  if (diagnosis.found) body += schedule_section(*diagnosis.found, report.schedule_path);
  body += tried_section(diagnosis);
  body += not_tried_section(diagnosis.next);
  body += dump_section(diagnosis.plan);
  std::vector<std::string> notes = diagnosis.plan.warnings;
  for (const std::string& note : diagnosis.plan.notes)
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  body += notes_section(notes);
  body += environment_section(context);
  return document("rose diagnose", report.name, body, context);
}

std::string replay_html(const ReplayReport& report, const std::vector<schedule::RunResult>& runs,
                        const PageContext& context) {
  std::string body = "<section>\n";
  body += fmt::format("<p class=\"lead\">{}{}</p>\n",
                      badge(schedule::verdict_name(report.verdict), tone_of(report.verdict, !report.expect_fixed)),
                      cell(report.reason));
  if (report.expect_fixed)
    body +=
        "<p class=\"note\">Asked: is it fixed? The bug must not occur although every planned fault was "
        "effective.</p>\n";
  if (report.expect_fixed)
    for (const std::string& what : report.unchecked)
      body += fmt::format("<p class=\"note\">Not checked: {}</p>\n", cell(what));
  body += "<h3>Injected faults</h3>\n" + steps_html(report.schedule);
  body += "<h3>Replay rate</h3>\n" + rate_bar(report.tally, report.tally.interval(), report.target_rate);
  if (report.expect_fixed && report.tally.reproduced == 0 && report.tally.conclusive() > 0)
    body +=
        fmt::format("<p>In none of {} conclusive runs: the remaining rate is at most {} (95 %).</p>\n",
                    report.tally.conclusive(), percent(schedule::upper_bound_without_hit(report.tally.conclusive())));
  else body += rate_sentence(report.tally, report.tally.interval());
  body += "<div class=\"facts\">\n" + fact(std::to_string(report.tally.runs()), "runs") +
          fact(std::to_string(report.tally.reproduced), "reproduced") +
          fact(std::to_string(report.tally.not_reproduced), "not reproduced") +
          fact(std::to_string(report.tally.inconclusive), "could not tell") +
          fact(format_seconds(report.seconds), "in all") + "</div>\n</section>\n";

  std::vector<Panel> panels;
  for (const schedule::RunResult& run : runs)
    panels.push_back(
        run_panel(report.schedule, run, fmt::format("Run {}, {}", run.number, schedule::verdict_name(run.verdict))));
  body += timeline_section(panels, context);
  for (const schedule::RunResult& run : runs) {
    body += fault_section(report.schedule, run,
                          fmt::format("What happened in run {}, {}", run.number, schedule::verdict_name(run.verdict)));
    body += order_section(report.schedule, run, fmt::format("The order of run {}", run.number));
  }

  const std::vector<FaultCount> counts = report.faults();
  if (!counts.empty()) {
    body +=
        "<section>\n<h2>Faults over all runs</h2>\n<div class=\"scroll\"><table><thead><tr><th>fault</th><th "
        "class=\"n\">asked for</th>"
        "<th class=\"n\">fired</th><th class=\"n\">effective</th><th>why not in all runs</th></tr></thead><tbody>\n";
    for (const FaultCount& count : counts)
      body += fmt::format(
          "<tr><td>{}{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
          cell(count.id), count.optional ? " (optional)" : "", count.requested, count.fired, count.effective,
          cell(count.reason()));
    body += "</tbody></table></div>\n</section>\n";
  }
  body +=
      "<section>\n<h2>Runs</h2>\n<div class=\"scroll\"><table><thead><tr><th class=\"n\">run</th><th>verdict</th><th "
      "class=\"n\">seconds</th>"
      "<th>why</th><th>kept in</th></tr></thead><tbody>\n";
  for (std::size_t i = 0; i < std::min(report.runs.size(), kMostRows); ++i) {
    const schedule::RunResult& run = report.runs[i];
    const Tone tone = tone_of(run.verdict, !report.expect_fixed);
    body += fmt::format(
        "<tr><td class=\"n\">{}</td><td><span aria-hidden=\"true\">{} </span>{}</td><td "
        "class=\"n\">{:.1f}</td><td>{}</td>"
        "<td><code>{}</code></td></tr>\n",
        run.number, tone.sign, schedule::verdict_name(run.verdict), run.seconds, cell(run.reason),
        cell(run.directory.string()));
  }
  body += "</tbody></table></div>\n";
  if (report.runs.size() > kMostRows)
    body +=
        fmt::format("<p class=\"note small\">and {} more; replay.json has all</p>\n", report.runs.size() - kMostRows);
  body += "</section>\n" + schedule_section(report.schedule, report.schedule_path) + environment_section(context);
  return document("rose replay", report.name, body, context);
}

std::string dump_html(const trace::Trace& trace, const ShowFilter& filter, const std::string& file,
                      const PageContext& context) {
  Source chosen(trace);
  std::erase_if(chosen.events, [&](const trace::Event* e) { return !matches(filter, trace, *e); });
  Panel panel;
  panel.title = chosen.events.size() == trace.events.size()
                    ? "The window"
                    : fmt::format("{} of the window's {} events", chosen.events.size(), trace.events.size());
  const trace::Meta& meta = trace.meta;
  panel.zero_ns = meta.workload_ts != 0   ? meta.workload_ts
                  : chosen.events.empty() ? meta.begin_ns
                                          : chosen.events.front()->ts_ns;
  panel.sources.push_back(std::move(chosen));
  if (meta.workload_ts != 0) panel.boundaries.push_back({0, "workload begins", false});
  const Stretch whole = widened(extent(panel), 0.02);
  PageContext with_nodes = context;
  with_nodes.nodes = filter.node ? std::vector<std::string>{*filter.node} : meta.nodes;
  std::string body = timeline_section({panel}, with_nodes, &whole);
  std::string summary;
  show_summary(trace, filter, nullptr, [&](std::string_view more) {
    if (summary.size() < kMostToml) summary += more;
  });
  body += fmt::format("<section>\n<h2>What failed, how often, where</h2>\n<pre>{}</pre>\n</section>\n",
                      escape(shorten(summary, kMostToml)));
  body += environment_section(context);
  return document("rose dump", file, body, context);
}

}  // namespace rose::report
