#include "report/page.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/units.h"
#include "report/markup.h"
#include "report/page_assets.h"
#include "report/summary.h"
#include "report/text.h"

namespace rose::report {

using schedule::Verdict;

namespace {

constexpr std::size_t kMarks = 3600;         // of all time lines of a page
constexpr std::size_t kText = 600'000;       // bytes of words on them
constexpr std::size_t kMostKeyMoments = 40;  // a time line
constexpr std::size_t kMostRows = 300;       // of a table
constexpr std::size_t kMostWords = 1500;     // bytes of a cell
constexpr std::size_t kMostToml = 64'000;

// --- small pieces

std::string cell(std::string_view text) { return escape(shorten(text, kMostWords)); }

struct Tone {
  std::string_view style, sign;
};

Tone tone_of(Verdict verdict, bool reproducing_is_good) {
  switch (verdict) {
    case Verdict::reproduced: return reproducing_is_good ? Tone{"good", "✓"} : Tone{"bad", "✗"};
    case Verdict::not_reproduced: return reproducing_is_good ? Tone{"bad", "✗"} : Tone{"good", "✓"};
    case Verdict::inconclusive: return {"open", "?"};
  }
  return {"open", "?"};
}

std::string badge(std::string_view words, const Tone& tone) {
  return fmt::format("<span class=\"badge {}\"><span aria-hidden=\"true\">{} </span>{}</span>", tone.style, tone.sign, escape(words));
}

// The rate and its interval on a scale from 0 to 1, and where the target is.
std::string rate_sentence(const schedule::Tally& tally) {
  if (tally.conclusive() == 0) return "<p>No run could be judged.</p>\n";
  const auto [low, high] = tally.interval();
  return fmt::format("<p>In {} of {} conclusive runs: {}, with 95 % confidence between {} and {}.</p>\n", tally.reproduced,
                     tally.conclusive(), percent(tally.rate()), percent(low), percent(high));
}

std::string rate_bar(const schedule::Tally& tally, double target) {
  const auto [low, high] = tally.interval();
  const auto x = [](double share) { return 8 + 440 * share; };
  std::string out = fmt::format(
      "<svg class=\"rate\" viewBox=\"0 0 460 40\" width=\"460\" height=\"40\" role=\"img\" font-family=\"sans-serif\" font-size=\"11\">"
      "<title>Replay rate {}, 95 % interval {} to {}, target {}</title>"
      "<rect class=\"track\" x=\"8\" y=\"8\" width=\"440\" height=\"11\" rx=\"5.5\" fill=\"#eee\" stroke=\"#ccc\"/>",
      percent(tally.rate()), percent(low), percent(high), percent(target));
  if (tally.conclusive() > 0)
    out += fmt::format("<rect class=\"band\" x=\"{:.1f}\" y=\"8\" width=\"{:.1f}\" height=\"11\" fill=\"#1d5fc4\" fill-opacity=\".3\"/>"
                       "<circle class=\"point\" cx=\"{:.1f}\" cy=\"13.5\" r=\"6\" fill=\"#1d5fc4\"/>",
                       x(low), std::max(2.0, x(high) - x(low)), x(tally.rate()));
  out += fmt::format("<line class=\"target\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"3\" y2=\"24\" stroke=\"#333\" stroke-width=\"1.5\"/>"
                     "<text x=\"{0:.1f}\" y=\"36\" text-anchor=\"middle\">target {1}</text>"
                     "<text x=\"8\" y=\"36\">0</text><text x=\"448\" y=\"36\" text-anchor=\"end\">{2}</text></svg>",
                     x(target), percent(target), target > 0.85 ? "" : "100 %");
  return out;
}

std::string mini_bar(const schedule::Tally& tally) {
  if (tally.conclusive() == 0) return "<span class=\"dim\">-</span>";
  return fmt::format("{} <svg viewBox=\"0 0 40 8\" width=\"40\" height=\"8\" aria-hidden=\"true\"><rect width=\"40\" height=\"8\" rx=\"2\" "
                     "fill=\"#888\" fill-opacity=\".25\"/><rect width=\"{:.1f}\" height=\"8\" rx=\"2\" fill=\"#1d5fc4\"/></svg>",
                     percent(tally.rate()), 40 * tally.rate());
}

std::string fact(std::string_view value, std::string_view name) {
  return fmt::format("<div><b>{}</b><span>{}</span></div>\n", escape(value), escape(name));
}

// Several lines that may be numbered "1. ": a list of steps.
std::string steps_html(const schedule::Schedule& schedule) {
  std::string out = "<ol class=\"steps\">\n";
  std::string text = schedule::in_words(schedule);
  std::size_t number = 0;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::string_view line = std::string_view(text).substr(start, end - start);
    start = end + 1;
    const std::string prefix = fmt::format("{}. ", ++number);
    if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
    if (number > kMostRows) continue;
    out += fmt::format("<li>{}</li>\n", cell(line));
  }
  if (number > kMostRows) out += fmt::format("<li>and {} more</li>\n", number - kMostRows);
  return out + "</ol>\n";
}

// What the diagnosis says beyond the steps; the rate has a place of its own.
std::string remarks_html(const diagnose::Diagnosis& diagnosis) {
  const std::string steps = schedule::in_words(*diagnosis.found);
  std::string_view rest = diagnosis.words;
  if (rest.starts_with(steps)) rest.remove_prefix(steps.size());
  std::string out;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (!line.empty() && !line.starts_with("The bug then shows")) out += fmt::format("<p>{}</p>\n", cell(line));
  }
  return out;
}

std::string next_steps_html(const std::vector<NextStep>& steps) {
  if (steps.empty()) return {};
  std::string out = "<h3>What to do next</h3>\n";
  int number = 0;
  for (const NextStep& step : steps) {
    std::string what = step.what;
    if (!what.empty() && what.front() >= 'a' && what.front() <= 'z') what.front() = static_cast<char>(what.front() - 'a' + 'A');
    out += fmt::format("<p>{}</p>\n", cell(what));
    if (step.command.empty()) continue;
    out += fmt::format("<div class=\"command\"><pre id=\"next{0}\">{1}</pre><button type=\"button\" data-copy=\"next{0}\" hidden>Copy</button></div>\n",
                       ++number, cell(step.command));
  }
  return out;
}

std::string schedule_section(const schedule::Schedule& schedule, std::string_view path) {
  std::string out = "<section>\n<h2>The schedule</h2>\n";
  if (!path.empty()) out += fmt::format("<p class=\"note small\">as in <code>{}</code></p>\n", cell(path));
  return out + fmt::format("<pre id=\"toml\">{}</pre>\n<button type=\"button\" data-copy=\"toml\" hidden>Copy</button>\n</section>\n",
                           escape(shorten(schedule::to_toml(schedule), kMostToml)));
}

std::string environment_section(const PageContext& context) {
  if (context.environment.empty()) return {};
  std::string out = "<section>\n<h2>Where this comes from</h2>\n<div class=\"scroll\"><table><tbody>\n";
  for (const auto& [name, value] : context.environment)
    out += fmt::format("<tr><th scope=\"row\">{}</th><td class=\"pre\">{}</td></tr>\n", escape(name), cell(value));
  return out + "</tbody></table></div>\n</section>\n";
}

std::string notes_section(const std::vector<std::string>& notes) {
  if (notes.empty()) return {};
  std::string out = "<section>\n<h2>Notes</h2>\n<ul>\n";
  for (std::size_t i = 0; i < std::min(notes.size(), kMostRows); ++i) out += fmt::format("<li>{}</li>\n", cell(notes[i]));
  if (notes.size() > kMostRows) out += fmt::format("<li>and {} more</li>\n", notes.size() - kMostRows);
  return out + "</ul>\n</section>\n";
}

std::string document(std::string_view over, std::string_view name, const std::string& body, const PageContext& context) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'nonce-{0}'; script-src 'nonce-{0}'; "
      "base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<title>{1}: {2}</title>\n<style nonce=\"{0}\">\n{3}</style>\n</head>\n<body>\n<main>\n<p class=\"over\">{1}</p>\n<h1>{2}</h1>\n"
      "{4}</main>\n<div id=\"tip\" role=\"status\"></div>\n<script nonce=\"{0}\">\n{5}</script>\n</body>\n</html>\n",
      escape(context.nonce), escape(over), cell(name), page_style(), body, page_script());
}

// --- time lines

std::string legend(bool faults) {
  const auto item = [](std::string_view id, std::string_view style, std::string_view shape, std::string_view words) {
    const std::string picture = fmt::format("<svg viewBox=\"-8 -8 16 16\" class=\"{}\" aria-hidden=\"true\">{}</svg>", style, shape);
    if (id.empty()) return fmt::format("<span><label>{}{}</label></span>\n", picture, words);
    return fmt::format("<label><input type=\"checkbox\" id=\"k-{}\" checked>{}{}</label>\n", id, picture, words);
  };
  std::string out = "<div class=\"legend\">\n";
  if (faults) {
    out += item("", "fault", "<path d=\"M-6.5-6H6.5L0 6.5z\" fill=\"#c8320f\"/>", "fault");
    out += item("", "cond", "<circle r=\"5\" fill=\"none\" stroke=\"#c8320f\" stroke-width=\"1.6\"/>", "condition met");
  }
  out += item("ps", "ps", "<path d=\"M-5.5-3.5-3.5-5.5 0-2 3.5-5.5 5.5-3.5 2 0 5.5 3.5 3.5 5.5 0 2-3.5 5.5-5.5 3.5-2 0z\" fill=\"#a3277c\"/>",
              "process crashed (&#9633; exited, &#9656; started, bar: paused)");
  out += item("nd", "nd", "<rect x=\"-8\" y=\"-4\" width=\"16\" height=\"8\" fill=\"#2b6cb0\" fill-opacity=\".6\"/>", "silence of a connection");
  out += item("scf", "scf", "<rect x=\"-1\" y=\"-7\" width=\"2\" height=\"14\" fill=\"#c26a00\"/>", "failed call");
  out += item("af", "af", "<path d=\"M0-5 4.2 0 0 5-4.2 0z\" fill=\"#0b7a5c\"/>", "rare function entered");
  out += item("sys", "sys", "<rect x=\"-1\" y=\"-4\" width=\"2\" height=\"8\" fill=\"#64748b\"/>", "state-changing call");
  return out + "</div>\n";
}

std::string key_table(const Panel& panel, const TimelineOptions& options) {
  std::size_t left_out = 0;
  const std::vector<KeyMoment> moments = key_moments(panel, options, kMostKeyMoments, left_out);
  if (moments.empty()) return {};
  std::string name = panel.title;
  if (name.size() > 1 && name[1] >= 'a') name[0] = static_cast<char>(name[0] | 0x20);
  std::string out = fmt::format("<details><summary>In words: {}</summary>\n<div class=\"scroll\"><table><thead><tr><th class=\"n\">at</th>"
                                "<th>node</th><th>kind</th><th>what</th></tr></thead><tbody>\n", cell(name));
  for (const KeyMoment& moment : moments)
    out += fmt::format("<tr><td class=\"t\">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", moment_text(moment.at_ns),
                       cell(moment.node), moment.kind, cell(moment.text));
  out += "</tbody></table></div>\n";
  if (left_out > 0) out += fmt::format("<p class=\"note small\">and {} more, on the time line</p>\n", left_out);
  return out + "</details>\n";
}

Stretch joined(const Stretch& a, const Stretch& b) { return {std::min(a.from_ns, b.from_ns), std::max(a.to_ns, b.to_ns)}; }

Stretch widened(const Stretch& stretch, double share) {
  const auto by = static_cast<std::int64_t>(static_cast<double>(std::max<std::int64_t>(stretch.length(), 1'000'000'000)) * share);
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min() / 4;
  return {std::max(stretch.from_ns - by, kLeast), std::min(stretch.to_ns + by, -kLeast)};
}

// The moments that explain the panel: what is worth seeing of a long window.
Stretch focus_of(const Panel& panel) {
  Stretch stretch{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (const Moment& moment : panel.moments)
    stretch = joined(stretch, {moment.begin_ns, std::max(moment.begin_ns, moment.end_ns)});
  for (const Boundary& boundary : panel.boundaries) stretch = joined(stretch, {boundary.at_ns, boundary.at_ns});
  return stretch.from_ns <= stretch.to_ns ? stretch : extent(panel);
}

// A production window may hold hours, a run half a minute: what is far from both is counted, not drawn.
Stretch common_stretch(const std::vector<Panel>& panels) {
  Stretch focus = focus_of(panels.front());
  Stretch whole = extent(panels.front());
  for (const Panel& panel : panels) {
    focus = joined(focus, panel.sources.size() == 1 && panels.size() > 1 && &panel != &panels.front() ? extent(panel) : focus_of(panel));
    whole = joined(whole, extent(panel));
  }
  const double most = 4 * static_cast<double>(std::max<std::int64_t>(focus.length(), 1'000'000'000));
  Stretch chosen = widened(whole, 0.02);
  if (static_cast<double>(whole.length()) > most) {
    chosen = widened(focus, 0.3);
    chosen = {std::max(chosen.from_ns, whole.from_ns), std::min(chosen.to_ns, whole.to_ns)};
    chosen = widened(chosen, 0.02);
  }
  return chosen;
}

std::string timeline_section(const std::vector<Panel>& panels, const PageContext& context, const Stretch* given = nullptr) {
  if (panels.empty()) return {};
  TimelineOptions options;
  options.lanes = context.nodes;
  options.stretch = given != nullptr ? *given : common_stretch(panels);
  options.marks = kMarks / panels.size();
  options.text = kText / panels.size();
  const bool faults = std::any_of(panels.begin(), panels.end(), [](const Panel& panel) { return !panel.moments.empty(); });
  std::string out = "<section id=\"lines\">\n<h2>Time line</h2>\n" + legend(faults);
  out += "<div class=\"tools\"><button type=\"button\" data-do=\"in\">Zoom in</button><button type=\"button\" data-do=\"out\">Zoom out</button>"
         "<button type=\"button\" data-do=\"left\">Earlier</button><button type=\"button\" data-do=\"right\">Later</button>"
         "<button type=\"button\" data-do=\"reset\">All</button><span class=\"note small\">Drag over a stretch to zoom into it, click a mark to keep "
         "its words. Keys, once the chart has the focus: <kbd>&#8592;</kbd> <kbd>&#8594;</kbd> from mark to mark, <kbd>+</kbd> <kbd>-</kbd> zoom, "
         "<kbd>0</kbd> all.</span></div>\n";
  for (const Panel& panel : panels) {
    ++options.number;
    out += fmt::format("<h3>{}</h3>\n", cell(panel.title));
    if (!panel.note.empty()) out += fmt::format("<p class=\"note small\">{}</p>\n", cell(panel.note));
    // The words of the mark that was chosen stand below its chart.
    out += "<div class=\"chart\"><div class=\"scroll\">" + timeline_svg(panel, options) +
           "</div>\n<pre class=\"words\" aria-live=\"polite\" hidden></pre></div>\n" + key_table(panel, options);
  }
  return out + "</section>\n";
}

// What the run's faults did, and the trace when it is there.
Panel run_panel(const schedule::Schedule& schedule, const schedule::RunResult& run, std::string title) {
  Panel panel;
  panel.title = std::move(title);
  if (!run.trace.events.empty()) panel.sources.push_back({&run.trace, {}});
  panel.zero_ns = run.trace.meta.workload_ts != 0 ? run.trace.meta.workload_ts : run.trace.meta.begin_ns;
  if (panel.zero_ns == 0 && !run.trace.events.empty()) panel.zero_ns = run.trace.events.front().ts_ns;
  for (const schedule::FaultOutcome& outcome : run.faults) {
    const schedule::Fault* fault = schedule.find(outcome.id);
    if (fault == nullptr) continue;
    std::string node = !outcome.node.empty() ? outcome.node : schedule::role_of(fault->node) ? std::string() : fault->node;
    for (std::size_t i = 0; i < outcome.conditions.size(); ++i) {
      const schedule::ConditionOutcome& condition = outcome.conditions[i];
      if (!condition.met) continue;
      Moment moment{MomentKind::condition, condition.node.empty() ? node : condition.node, condition.met_ns, 0, false, {}, {}};
      moment.label = std::to_string(i + 1);
      moment.text = fmt::format("condition {} of {} of '{}': {}", i + 1, outcome.conditions.size(), outcome.id, condition.words);
      panel.moments.push_back(std::move(moment));
    }
    if (!outcome.fired) continue;
    Moment moment{MomentKind::fault, node, outcome.fired_ns, outcome.ended_ns, false, outcome.id, {}};
    const bool lasts = schedule::lasts(fault->kind);
    moment.open = lasts && outcome.ended_ns == 0;
    if (!lasts) moment.end_ns = 0;
    moment.text = fmt::format("'{}' fired: {}{}{}", outcome.id, schedule::in_words(*fault), outcome.detail.empty() ? "" : "; ", outcome.detail);
    panel.moments.push_back(moment);
    for (const std::string& other : fault->side) {
      moment.node = other;
      panel.moments.push_back(moment);
    }
  }
  if (run.trace.meta.workload_ts != 0 || !run.faults.empty()) panel.boundaries.push_back({0, "workload begins", false});
  if (run.workload_end_ns > 0) panel.boundaries.push_back({run.workload_end_ns, "workload ends", false});
  if (run.oracle == schedule::OracleAnswer::hit)
    panel.boundaries.push_back({run.oracle_ns > 0 ? run.oracle_ns : std::max<std::int64_t>(extent(panel).to_ns, 0), "the oracle found the bug", true});
  return panel;
}

// --- tables

std::string fault_section(const schedule::Schedule& schedule, const schedule::RunResult& run, std::string_view title) {
  const std::vector<FaultRow> rows = fault_rows(schedule, run);
  if (rows.empty()) return {};
  std::string out = fmt::format("<section>\n<h2>{}</h2>\n<div class=\"scroll\"><table><thead><tr><th>fault and its conditions</th>"
                                "<th class=\"n\">at</th><th>node</th><th>process/thread</th><th class=\"n\">seen</th><th>where, or why not</th>"
                                "</tr></thead><tbody>\n", escape(title));
  for (std::size_t i = 0; i < std::min(rows.size(), kMostRows); ++i) {
    const FaultRow& row = rows[i];
    if (row.kind == FaultRow::Kind::fault) {
      const schedule::Fault* fault = schedule.find(row.what);
      out += fmt::format("<tr class=\"head\"><td colspan=\"6\">{}<br><span class=\"note\">{}</span></td></tr>\n", cell(row.what),
                         fault == nullptr ? "" : cell(schedule::in_words(*fault)));
      continue;
    }
    const bool never = row.at == "never";
    out += fmt::format("<tr><td class=\"in\">{}</td><td class=\"t{}\">{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
                       cell(row.what), never ? " no" : row.kind == FaultRow::Kind::fired ? " yes" : "", escape(row.at), cell(row.node),
                       escape(row.thread), escape(row.seen), cell(row.detail));
  }
  out += "</tbody></table></div>\n";
  if (rows.size() > kMostRows) out += fmt::format("<p class=\"note small\">and {} more rows</p>\n", rows.size() - kMostRows);
  return out + "</section>\n";
}

std::string tried_section(const diagnose::Diagnosis& diagnosis) {
  if (diagnosis.tried.empty()) return {};
  std::string out =
      "<section>\n<h2>Everything tried</h2>\n<div class=\"scroll\"><table><thead><tr><th class=\"n\">#</th><th>level</th><th>schedule</th>"
      "<th class=\"n\">runs</th><th class=\"n\">reproduced</th><th class=\"n\">not</th><th class=\"n\">could not tell</th><th>rate</th>"
      "<th>why, and what came of it</th></tr></thead><tbody>\n";
  const std::string found = diagnosis.found ? schedule::fingerprint(*diagnosis.found) : std::string();
  // Of a long search the first and the last ones, and the one that was found.
  const std::size_t half = kMostRows / 2;
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < diagnosis.tried.size(); ++i) {
    const diagnose::Tried& entry = diagnosis.tried[i];
    const bool best = !found.empty() && schedule::fingerprint(entry.schedule) == found;
    if (i >= half && i + half < diagnosis.tried.size() && !best && entry.tally.reproduced == 0) {
      ++left_out;
      continue;
    }
    out += fmt::format("<tr{}><td class=\"n\">{}</td><td class=\"level\">{}</td><td class=\"pre\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
                       "<td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td><td>{}{}</td></tr>\n",
                       best ? " class=\"found\"" : "", i + 1, entry.level == 0 ? "no fault" : std::to_string(entry.level),
                       cell(schedule::in_words(entry.schedule)), entry.tally.runs(), entry.tally.reproduced, entry.tally.not_reproduced,
                       entry.tally.inconclusive, mini_bar(entry.tally), best ? "<b>found: </b>" : "", cell(entry.note));
  }
  out += "</tbody></table></div>\n";
  if (left_out > 0) out += fmt::format("<p class=\"note small\">{} in between that never reproduced it are left out; diagnosis.json has all</p>\n", left_out);
  return out + "</section>\n";
}

std::string dump_section(const diagnose::Plan& plan) {
  std::string out = fmt::format("<section>\n<h2>What the dump held</h2>\n<p>{} considered, {} of them discarded.</p>\n",
                                plural(plan.failures, "failure"), percent(plan.discarded_share));
  if (!plan.candidates.empty()) {
    out += "<h3>Candidates, most likely first</h3>\n<div class=\"scroll\"><table><thead><tr><th class=\"n\">rank</th><th>fault</th>"
           "<th class=\"n\">events</th><th>why</th></tr></thead><tbody>\n";
    for (std::size_t i = 0; i < std::min(plan.candidates.size(), kMostRows / 3); ++i) {
      const diagnose::Candidate& candidate = plan.candidates[i];
      out += fmt::format("<tr><td class=\"n\">{}</td><td>{}{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n", candidate.rank,
                         cell(schedule::in_words(candidate.fault)), candidate.symptom ? " <span class=\"note\">(symptom)</span>" : "",
                         candidate.count, cell(candidate.why));
    }
    out += "</tbody></table></div>\n";
    if (plan.candidates.size() > kMostRows / 3)
      out += fmt::format("<p class=\"note small\">and {} more</p>\n", plan.candidates.size() - kMostRows / 3);
  }
  if (!plan.discarded.empty()) {
    out += "<h3>Discarded, and why</h3>\n<div class=\"scroll\"><table><thead><tr><th class=\"n\">events</th><th>why</th></tr></thead><tbody>\n";
    for (std::size_t i = 0; i < std::min(plan.discarded.size(), kMostRows / 3); ++i)
      out += fmt::format("<tr><td class=\"n\">{}</td><td>{}</td></tr>\n", plan.discarded[i].events, cell(plan.discarded[i].why));
    out += "</tbody></table></div>\n";
    if (plan.discarded.size() > kMostRows / 3)
      out += fmt::format("<p class=\"note small\">and {} more</p>\n", plan.discarded.size() - kMostRows / 3);
  }
  return out + "</section>\n";
}

// --- logs

// The failure's log beside the run's, with the faults between the run's lines.
std::string logs_section(const std::vector<logs::Beside>& all, const schedule::RunResult& run) {
  std::string out;
  std::size_t bytes = 0;
  for (const logs::Beside& node : all) {
    if (bytes > kText || node.rows.empty()) continue;
    const std::size_t begin = out.size();
    out += fmt::format("<h3>{}</h3>\n<div class=\"scroll\"><table class=\"beside\"><thead><tr><th class=\"n\">s</th><th>the failure</th>"
                       "<th class=\"n\">s</th><th>run {}</th></tr></thead><tbody>\n", cell(node.node), run.number);
    const std::int64_t zero = run.trace.meta.workload_ts;
    const auto seconds = [](std::int64_t ts, std::int64_t since) { return ts == logs::kNoTime || since == logs::kNoTime || since == 0 ? std::string() : fmt::format("{:.3f}", static_cast<double>(ts - since) / 1e9); };
    std::int64_t first = logs::kNoTime;  // of the failure's lines: its workload's beginning is not known
    for (const logs::BesideRow& row : node.rows)
      if (first == logs::kNoTime) first = row.failure_ns;
    std::vector<const schedule::FaultOutcome*> faults;
    for (const schedule::FaultOutcome& fault : run.faults)
      if (fault.fired && zero != 0) faults.push_back(&fault);
    std::stable_sort(faults.begin(), faults.end(), [](const auto* a, const auto* b) { return a->fired_ns < b->fired_ns; });
    std::size_t next = 0;
    const auto faults_until = [&](std::int64_t ts) {
      for (; next < faults.size() && faults[next]->fired_ns + zero <= ts; ++next)
        out += fmt::format("<tr class=\"fault\"><td class=\"n\"></td><td></td><td class=\"n\">{:.3f}</td><td>{}{}{}</td></tr>\n",
                           static_cast<double>(faults[next]->fired_ns) / 1e9, cell(faults[next]->id), faults[next]->node.empty() ? "" : " on " + cell(faults[next]->node),
                           faults[next]->detail.empty() ? "" : ": " + cell(faults[next]->detail));
    };
    for (const logs::BesideRow& row : node.rows) {
      if (row.left_out != 0) {
        out += fmt::format("<tr><td></td><td colspan=\"3\" class=\"note\">{} left out</td></tr>\n", plural(row.left_out, "row"));
        continue;
      }
      if (row.run_ns != logs::kNoTime) faults_until(row.run_ns);
      out += fmt::format("<tr{}><td class=\"n\">{}</td><td>{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
                         row.failure.empty() ? " class=\"right\"" : row.run.empty() ? " class=\"left\"" : "", seconds(row.failure_ns, first),
                         cell(row.failure), seconds(row.run_ns, zero), cell(row.run));
    }
    faults_until(std::numeric_limits<std::int64_t>::max());
    out += "</tbody></table></div>\n";
    bytes += out.size() - begin;
  }
  if (out.empty()) return {};
  return "<section>\n<h2>The failure's logs beside the run's</h2>\n<p class=\"note small\">Lines that both have stand in one row, whatever their numbers. "
         "The failure's seconds count from its first line here, the run's from the beginning of its workload.</p>\n" + out + "</section>\n";
}

// --- the incident

// The candidates that became the found schedule's faults; when nothing was found, the likeliest.
std::vector<const diagnose::Candidate*> explained(const diagnose::Diagnosis& diagnosis) {
  std::vector<const diagnose::Candidate*> chosen;
  for (const diagnose::Candidate& candidate : diagnosis.plan.candidates) {
    if (!diagnosis.found) {
      if (chosen.size() < 5 && !candidate.symptom) chosen.push_back(&candidate);
      continue;
    }
    // Copies on other nodes are named after the one they come from ("crash-n1-on-n2").
    const bool used = std::any_of(diagnosis.found->faults.begin(), diagnosis.found->faults.end(), [&](const schedule::Fault& fault) {
      return fault.id == candidate.fault.id || fault.id.starts_with(candidate.fault.id + "-on-");
    });
    if (used) chosen.push_back(&candidate);
  }
  return chosen;
}

Panel incident_panel(const diagnose::Diagnosis& diagnosis, const std::vector<Source>& incident, const schedule::RunResult* run) {
  Panel panel;
  panel.title = "The incident";
  panel.sources = incident;
  const std::vector<const diagnose::Candidate*> candidates = explained(diagnosis);
  panel.zero_ns = diagnosis.plan.workload_ts;
  if (panel.zero_ns != 0) {
    panel.boundaries.push_back({0, "workload begins", false});
  } else if (!candidates.empty()) {
    const diagnose::Candidate* first = *std::min_element(candidates.begin(), candidates.end(), [](const auto* a, const auto* b) {
      return a->first_ts < b->first_ts;
    });
    panel.zero_ns = first->first_ts;
    panel.note = "Times count from the first suspected fault: the dump does not say when the workload began.";
    if (run != nullptr)
      for (const schedule::FaultOutcome& outcome : run->faults)
        if (outcome.fired && (outcome.id == first->fault.id || outcome.id.starts_with(first->fault.id + "-on-"))) {
          panel.zero_ns -= outcome.fired_ns;
          panel.note = fmt::format("Aligned with the run below at its first fault, '{}': the dump does not say when the workload began.", outcome.id);
          break;
        }
  } else {
    panel.zero_ns = diagnosis.plan.begin_ts;
  }
  for (const diagnose::Candidate* candidate : candidates) {
    Moment moment{MomentKind::fault, candidate->node, candidate->first_ts - panel.zero_ns, 0, false, candidate->fault.id, {}};
    const bool lasts = schedule::lasts(candidate->kind);
    if (lasts) moment.end_ns = candidate->last_ts - panel.zero_ns;
    moment.text = fmt::format("seen in the dump as '{}': {}", candidate->fault.id, candidate->why);
    panel.moments.push_back(std::move(moment));
  }
  std::size_t dumps = 0;
  for (const Source& source : incident) {
    const trace::Meta& meta = source.trace->meta;
    if (meta.end_ns == 0 || ++dumps > 4) continue;
    panel.boundaries.push_back({meta.end_ns - panel.zero_ns, meta.trigger.empty() ? "dump written" : fmt::format("dump written ({})", shorten(meta.trigger, 60)), false});
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

std::string diagnosis_html(const DiagnosisReport& report, const std::vector<Source>& incident, const schedule::RunResult* run,
                           const PageContext& context) {
  const diagnose::Diagnosis& diagnosis = *report.diagnosis;
  std::string body = "<section>\n";
  body += fmt::format("<p class=\"lead\">{}{}</p>\n", badge(schedule::verdict_name(diagnosis.verdict), tone_of(diagnosis.verdict, true)),
                      cell(diagnosis.reason));
  if (diagnosis.found) {
    body += "<h3>What must happen</h3>\n" + steps_html(*diagnosis.found) + remarks_html(diagnosis);
    body += "<h3>How often the bug shows then</h3>\n" + rate_bar(diagnosis.tally, report.target_rate);
    body += rate_sentence(diagnosis.tally);
  }
  body += "<div class=\"facts\">\n";
  if (diagnosis.found) body += fact(std::to_string(diagnosis.level), "level of the search");
  body += fact(std::to_string(diagnosis.schedules), fmt::format("schedule{} tried{}", diagnosis.schedules == 1 ? "" : "s", diagnosis.target_reached ? " before it was found" : ""));
  body += fact(std::to_string(diagnosis.runs), fmt::format("runs, {} of them to confirm{}", diagnosis.confirm_runs,
                                                             diagnosis.rate_runs > 0 ? fmt::format(", {} to tell the rate", diagnosis.rate_runs) : ""));
  body += fact(format_seconds(report.seconds), "in all");
  body += fact(percent(diagnosis.plan.discarded_share), fmt::format("of {} discarded", plural(diagnosis.plan.failures, "failure")));
  body += "</div>\n" + next_steps_html(next_steps(report)) + "</section>\n";

  std::vector<Panel> panels;
  if (!incident.empty()) panels.push_back(incident_panel(diagnosis, incident, run));
  if (run != nullptr && diagnosis.found)
    panels.push_back(run_panel(*diagnosis.found, *run, fmt::format("Run {}, {}", run->number, schedule::verdict_name(run->verdict))));
  body += timeline_section(panels, context);
  if (run != nullptr && diagnosis.found) body += fault_section(*diagnosis.found, *run, fmt::format("What happened in run {}", run->number));
  if (run != nullptr && diagnosis.found) body += logs_section(report.logs, *run);
  if (diagnosis.found) body += schedule_section(*diagnosis.found, report.schedule_path);
  body += tried_section(diagnosis);
  body += dump_section(diagnosis.plan);
  body += notes_section(diagnosis.plan.notes);
  body += environment_section(context);
  return document("rose diagnose", report.name, body, context);
}

std::string replay_html(const ReplayReport& report, const std::vector<schedule::RunResult>& runs, const PageContext& context) {
  std::string body = "<section>\n";
  body += fmt::format("<p class=\"lead\">{}{}</p>\n", badge(schedule::verdict_name(report.verdict), tone_of(report.verdict, !report.expect_fixed)),
                      cell(report.reason));
  if (report.expect_fixed) body += "<p class=\"note\">Asked: is it fixed? The bug must not show although every planned fault fired.</p>\n";
  body += "<h3>What is made to happen</h3>\n" + steps_html(report.schedule);
  body += "<h3>How often the bug shows then</h3>\n" + rate_bar(report.tally, report.target_rate);
  if (report.expect_fixed && report.tally.reproduced == 0 && report.tally.conclusive() > 0)
    body += fmt::format("<p>In none of {} conclusive runs: the remaining rate is at most {} (95 %).</p>\n", report.tally.conclusive(),
                        percent(schedule::upper_bound_without_hit(report.tally.conclusive())));
  else
    body += rate_sentence(report.tally);
  body += "<div class=\"facts\">\n" + fact(std::to_string(report.tally.runs()), "runs") +
          fact(std::to_string(report.tally.reproduced), "reproduced") + fact(std::to_string(report.tally.not_reproduced), "not reproduced") +
          fact(std::to_string(report.tally.inconclusive), "could not tell") + fact(format_seconds(report.seconds), "in all") + "</div>\n</section>\n";

  std::vector<Panel> panels;
  for (const schedule::RunResult& run : runs)
    panels.push_back(run_panel(report.schedule, run, fmt::format("Run {}, {}", run.number, schedule::verdict_name(run.verdict))));
  body += timeline_section(panels, context);
  for (const schedule::RunResult& run : runs)
    body += fault_section(report.schedule, run, fmt::format("What happened in run {}, {}", run.number, schedule::verdict_name(run.verdict)));

  const std::vector<FaultCount> counts = report.faults();
  if (!counts.empty()) {
    body += "<section>\n<h2>Faults over all runs</h2>\n<div class=\"scroll\"><table><thead><tr><th>fault</th><th class=\"n\">asked for</th>"
            "<th class=\"n\">fired</th><th>where it did not fire</th></tr></thead><tbody>\n";
    for (const FaultCount& count : counts)
      body += fmt::format("<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n", cell(count.id), count.requested,
                          count.fired, count.fired < count.requested ? cell(count.why_not) : "");
    body += "</tbody></table></div>\n</section>\n";
  }
  body += "<section>\n<h2>Runs</h2>\n<div class=\"scroll\"><table><thead><tr><th class=\"n\">run</th><th>verdict</th><th class=\"n\">seconds</th>"
          "<th>why</th><th>kept in</th></tr></thead><tbody>\n";
  for (std::size_t i = 0; i < std::min(report.runs.size(), kMostRows); ++i) {
    const schedule::RunResult& run = report.runs[i];
    const Tone tone = tone_of(run.verdict, !report.expect_fixed);
    body += fmt::format("<tr><td class=\"n\">{}</td><td><span aria-hidden=\"true\">{} </span>{}</td><td class=\"n\">{:.1f}</td><td>{}</td>"
                        "<td><code>{}</code></td></tr>\n", run.number, tone.sign, schedule::verdict_name(run.verdict), run.seconds,
                        cell(run.reason), cell(run.directory.string()));
  }
  body += "</tbody></table></div>\n";
  if (report.runs.size() > kMostRows) body += fmt::format("<p class=\"note small\">and {} more; replay.json has all</p>\n", report.runs.size() - kMostRows);
  body += "</section>\n" + schedule_section(report.schedule, report.schedule_path) + environment_section(context);
  return document("rose replay", report.name, body, context);
}

std::string dump_html(const trace::Trace& trace, const ShowFilter& filter, const std::string& file, const PageContext& context) {
  trace::Trace chosen;
  chosen.meta = trace.meta;
  chosen.strings = trace.strings;
  std::copy_if(trace.events.begin(), trace.events.end(), std::back_inserter(chosen.events),
               [&](const trace::Event& e) { return matches(filter, trace, e); });
  Panel panel;
  panel.title = chosen.events.size() == trace.events.size()
                    ? "The window"
                    : fmt::format("{} of the window's {} events", chosen.events.size(), trace.events.size());
  panel.sources.push_back({&chosen, {}});
  const trace::Meta& meta = trace.meta;
  panel.zero_ns = meta.workload_ts != 0 ? meta.workload_ts : chosen.events.empty() ? meta.begin_ns : chosen.events.front().ts_ns;
  if (meta.workload_ts != 0) panel.boundaries.push_back({0, "workload begins", false});
  const Stretch whole = widened(extent(panel), 0.02);
  PageContext with_nodes = context;
  with_nodes.nodes = filter.node ? std::vector<std::string>{*filter.node} : meta.nodes;
  std::string body = timeline_section({panel}, with_nodes, &whole);
  std::string summary;
  show_summary(trace, filter, nullptr, [&](std::string_view more) {
    if (summary.size() < kMostToml) summary += more;
  });
  body += fmt::format("<section>\n<h2>What failed, how often, where</h2>\n<pre>{}</pre>\n</section>\n", escape(shorten(summary, kMostToml)));
  body += environment_section(context);
  return document("rose dump", file, body, context);
}

}  // namespace rose::report
