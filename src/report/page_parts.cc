#include "report/page_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/units.h"
#include "report/dump/text.h"
#include "report/markup.h"
#include "report/page_assets.h"
#include "report/results.h"

namespace rose::report {

using schedule::Verdict;

std::string cell(std::string_view text) { return escape(shorten(text, kMostWords)); }

Tone tone_of(Verdict verdict, bool reproducing_is_good) {
  switch (verdict) {
    case Verdict::reproduced: return reproducing_is_good ? Tone{"good", "✓"} : Tone{"bad", "✗"};
    case Verdict::not_reproduced: return reproducing_is_good ? Tone{"bad", "✗"} : Tone{"good", "✓"};
    case Verdict::inconclusive: return {"open", "?"};
  }
  return {"open", "?"};
}

std::string badge(std::string_view words, const Tone& tone) {
  return fmt::format("<span class=\"badge {}\"><span aria-hidden=\"true\">{} </span>{}</span>", tone.style, tone.sign,
                     escape(words));
}

std::string fact(std::string_view value, std::string_view name) {
  return fmt::format("<div><b>{}</b><span>{}</span></div>\n", escape(value), escape(name));
}

std::string steps_html(const schedule::Schedule& schedule) {
  const std::vector<std::string> steps = schedule::steps_in_words(schedule);
  std::string out = "<ol class=\"steps\">\n";
  for (std::size_t i = 0; i < std::min(steps.size(), kMostRows); ++i)
    out += fmt::format("<li>{}</li>\n", cell(steps[i]));
  if (steps.empty()) out += "<li>no fault</li>\n";
  if (steps.size() > kMostRows) out += fmt::format("<li>and {} more</li>\n", steps.size() - kMostRows);
  return out + "</ol>\n";
}

std::string schedule_section(const schedule::Schedule& schedule, std::string_view path) {
  std::string out = "<section>\n<h2>The schedule</h2>\n";
  if (!path.empty()) out += fmt::format("<p class=\"note small\">as in <code>{}</code></p>\n", cell(path));
  return out +
         fmt::format(
             "<pre id=\"toml\">{}</pre>\n<button type=\"button\" data-copy=\"toml\" hidden>Copy</button>\n</section>\n",
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
  for (std::size_t i = 0; i < std::min(notes.size(), kMostRows); ++i)
    out += fmt::format("<li>{}</li>\n", cell(notes[i]));
  if (notes.size() > kMostRows) out += fmt::format("<li>and {} more</li>\n", notes.size() - kMostRows);
  return out + "</ul>\n</section>\n";
}

std::string document(std::string_view over, std::string_view name, const std::string& body,
                     const PageContext& context) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'nonce-{0}'; script-src "
      "'nonce-{0}'; "
      "base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" "
      "content=\"no-referrer\">\n"
      "<title>{1}: {2}</title>\n<style nonce=\"{0}\">\n{3}</style>\n</head>\n<body>\n<main>\n<p "
      "class=\"over\">{1}</p>\n<h1>{2}</h1>\n"
      "{4}</main>\n<div id=\"tip\" role=\"status\"></div>\n<script nonce=\"{0}\">\n{5}</script>\n</body>\n</html>\n",
      escape(context.nonce), escape(over), cell(name), page_style(), body, page_script());
}

// Time lines

namespace {

constexpr std::size_t kMarks = 3600;         // most marks on all time lines of a page together
constexpr std::size_t kText = 600'000;       // most bytes of text on these marks
constexpr std::size_t kMostKeyMoments = 40;  // of one time line

std::string legend(bool faults, bool story) {
  const auto item = [](std::string_view id, std::string_view style, std::string_view shape, std::string_view words) {
    const std::string picture =
        fmt::format("<svg viewBox=\"-8 -8 16 16\" class=\"{}\" aria-hidden=\"true\">{}</svg>", style, shape);
    if (id.empty()) return fmt::format("<span><label>{}{}</label></span>\n", picture, words);
    return fmt::format("<label><input type=\"checkbox\" id=\"k-{}\" checked>{}{}</label>\n", id, picture, words);
  };
  std::string out = "<div class=\"legend\">\n";
  if (faults) {
    out += item("", "fault", "<path d=\"M-6.5-6H6.5L0 6.5z\" fill=\"#c8320f\"/>", "fault");
    out += item("", "cond", "<circle r=\"5\" fill=\"none\" stroke=\"#c8320f\" stroke-width=\"1.6\"/>",
                story ? "step of the story" : "condition met");
  }
  out += item("ps", "ps",
              "<path d=\"M-5.5-3.5-3.5-5.5 0-2 3.5-5.5 5.5-3.5 2 0 5.5 3.5 3.5 5.5 0 2-3.5 5.5-5.5 3.5-2 0z\" "
              "fill=\"#a3277c\"/>",
              "process crashed (&#9633; exited, &#9656; started, bar: paused)");
  out += item("nd", "nd", "<rect x=\"-8\" y=\"-4\" width=\"16\" height=\"8\" fill=\"#2b6cb0\" fill-opacity=\".6\"/>",
              "silence of a connection");
  out += item("scf", "scf", "<rect x=\"-1\" y=\"-7\" width=\"2\" height=\"14\" fill=\"#c26a00\"/>", "failed call");
  out += item("af", "af", "<path d=\"M0-5 4.2 0 0 5-4.2 0z\" fill=\"#0b7a5c\"/>", "rare function entered");
  out +=
      item("sys", "sys", "<rect x=\"-1\" y=\"-4\" width=\"2\" height=\"8\" fill=\"#64748b\"/>", "state-changing call");
  return out + "</div>\n";
}

std::string key_table(const Panel& panel, const TimelineOptions& options) {
  std::size_t left_out = 0;
  const std::vector<KeyMoment> moments = key_moments(panel, options, kMostKeyMoments, left_out);
  if (moments.empty()) return {};
  std::string name = panel.title;
  if (name.size() > 1 && name[1] >= 'a') name[0] = static_cast<char>(name[0] | 0x20);
  std::string out = fmt::format(
      "<details><summary>In words: {}</summary>\n<div class=\"scroll\"><table><thead><tr><th class=\"n\">at</th>"
      "<th>node</th><th>kind</th><th>what</th></tr></thead><tbody>\n",
      cell(name));
  for (const KeyMoment& moment : moments)
    out += fmt::format("<tr><td class=\"t\">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", moment_text(moment.at_ns),
                       cell(moment.node), moment.kind, cell(moment.text));
  out += "</tbody></table></div>\n";
  if (left_out > 0) out += fmt::format("<p class=\"note small\">and {} more, on the time line</p>\n", left_out);
  return out + "</details>\n";
}

Stretch joined(const Stretch& a, const Stretch& b) {
  return {std::min(a.from_ns, b.from_ns), std::max(a.to_ns, b.to_ns)};
}

}  // namespace

Stretch widened(const Stretch& stretch, double share) {
  const auto by =
      static_cast<std::int64_t>(static_cast<double>(std::max<std::int64_t>(stretch.length(), 1'000'000'000)) * share);
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min() / 4;
  return {std::max(stretch.from_ns - by, kLeast), std::min(stretch.to_ns + by, -kLeast)};
}

namespace {

// The range that contains the moments which explain the panel. It is shown because most of a long window is irrelevant.
Stretch focus_of(const Panel& panel) {
  Stretch stretch{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (const Moment& moment : panel.moments)
    stretch = joined(stretch, {moment.begin_ns, std::max(moment.begin_ns, moment.end_ns)});
  for (const Boundary& boundary : panel.boundaries) stretch = joined(stretch, {boundary.at_ns, boundary.at_ns});
  return stretch.from_ns <= stretch.to_ns ? stretch : extent(panel);
}

// The range that all panels show. A window from production may span hours, and a run half a minute, so events far from
// both ranges are counted instead of drawn.
Stretch common_stretch(const std::vector<Panel>& panels) {
  Stretch focus = focus_of(panels.front());
  Stretch whole = extent(panels.front());
  for (const Panel& panel : panels) {
    focus =
        joined(focus, panel.sources.size() == 1 && panels.size() > 1 && &panel != &panels.front() ? extent(panel)
                                                                                                  : focus_of(panel));
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

}  // namespace

std::string timeline_section(const std::vector<Panel>& panels, const PageContext& context, const Stretch* given) {
  if (panels.empty()) return {};
  TimelineOptions options;
  options.lanes = context.nodes;
  options.stretch = given != nullptr ? *given : common_stretch(panels);
  options.marks = kMarks / panels.size();
  options.text = kText / panels.size();
  const bool faults =
      std::any_of(panels.begin(), panels.end(), [](const Panel& panel) { return !panel.moments.empty(); });
  const bool story = std::any_of(panels.begin(), panels.end(), [](const Panel& panel) {
    return std::any_of(panel.moments.begin(), panel.moments.end(),
                       [](const Moment& moment) { return moment.kind == MomentKind::step; });
  });
  std::string out = "<section id=\"lines\">\n<h2>Time line</h2>\n" + legend(faults, story);
  out +=
      "<div class=\"tools\"><button type=\"button\" data-do=\"in\">Zoom in</button><button type=\"button\" "
      "data-do=\"out\">Zoom out</button>"
      "<button type=\"button\" data-do=\"left\">Earlier</button><button type=\"button\" "
      "data-do=\"right\">Later</button>"
      "<button type=\"button\" data-do=\"reset\">All</button><span class=\"note small\">Drag over a stretch to zoom "
      "into it, click a mark to keep "
      "its words. Keys, once the chart has the focus: <kbd>&#8592;</kbd> <kbd>&#8594;</kbd> from mark to mark, "
      "<kbd>+</kbd> <kbd>-</kbd> zoom, "
      "<kbd>0</kbd> all.</span></div>\n";
  for (const Panel& panel : panels) {
    ++options.number;
    out += fmt::format("<h3>{}</h3>\n", cell(panel.title));
    if (!panel.note.empty()) out += fmt::format("<p class=\"note small\">{}</p>\n", cell(panel.note));
    // The text of a selected mark is shown below the chart.
    out += "<div class=\"chart\"><div class=\"scroll\">" + timeline_svg(panel, options) +
           "</div>\n<pre class=\"words\" aria-live=\"polite\" hidden></pre></div>\n" + key_table(panel, options);
  }
  return out + "</section>\n";
}

Panel run_panel(const schedule::Schedule& schedule, const schedule::RunResult& run, std::string title) {
  Panel panel;
  panel.title = std::move(title);
  if (!run.trace.events.empty()) panel.sources.emplace_back(run.trace);
  panel.zero_ns = run.trace.meta.workload_ts != 0 ? run.trace.meta.workload_ts : run.trace.meta.begin_ns;
  if (panel.zero_ns == 0 && !run.trace.events.empty()) panel.zero_ns = run.trace.events.front().ts_ns;
  for (const schedule::FaultOutcome& outcome : run.faults) {
    const schedule::Fault* fault = schedule.find(outcome.id);
    if (fault == nullptr) continue;
    std::string node = !outcome.node.empty()            ? outcome.node
                       : schedule::role_of(fault->node) ? std::string()
                                                        : fault->node;
    for (std::size_t i = 0; i < outcome.conditions.size(); ++i) {
      const schedule::ConditionOutcome& condition = outcome.conditions[i];
      if (!condition.met) continue;
      Moment moment{
          MomentKind::condition, condition.node.empty() ? node : condition.node, condition.met_ns, 0, false, {}, {}};
      moment.label = std::to_string(i + 1);
      moment.text =
          fmt::format("condition {} of {} of '{}': {}", i + 1, outcome.conditions.size(), outcome.id, condition.words);
      panel.moments.push_back(std::move(moment));
    }
    if (!outcome.fired) continue;
    Moment moment{MomentKind::fault, node, outcome.fired_ns, outcome.ended_ns.value_or(0), false, outcome.id, {}};
    const bool lasts = schedule::lasts(fault->kind);
    moment.open = lasts && !outcome.ended_ns;
    if (!lasts) moment.end_ns = 0;
    moment.text = fmt::format("'{}' fired: {}{}{}", outcome.id, schedule::in_words(*fault),
                              outcome.detail.empty() ? "" : "; ", outcome.detail);
    if (!outcome.effective()) moment.text += fmt::format("; without effect: {}", outcome.no_effect);
    const char* how = "; in ";
    for (const std::string& frame : frames_in_short(outcome)) moment.text += std::exchange(how, ", ") + frame;
    panel.moments.push_back(moment);
    for (const std::string& other : fault->side) {
      moment.node = other;
      panel.moments.push_back(moment);
    }
  }
  for (const schedule::OrderOutcome& one : run.order) {
    if (!one.came || one.kind == "fault") continue;  // faults are shown already
    const schedule::Event* event = schedule.find_event(one.name);
    if (event == nullptr) {
      panel.boundaries.push_back({one.ns, fmt::format("step {}", one.name), false});
      continue;
    }
    Moment moment{MomentKind::condition, event->node, one.ns, 0, false, one.name, {}};
    moment.text =
        fmt::format("event '{}' of the order{}", one.name,
                    one.held_ns > 0 ? fmt::format(", held for {} until its turn", format_duration(one.held_ns)) : "");
    panel.moments.push_back(std::move(moment));
  }
  if (run.trace.meta.workload_ts != 0 || !run.faults.empty()) panel.boundaries.push_back({0, "workload begins", false});
  if (run.workload_end_ns) panel.boundaries.push_back({*run.workload_end_ns, "workload ends", false});
  if (run.oracle == schedule::OracleAnswer::hit)
    panel.boundaries.push_back({run.oracle_ns ? *run.oracle_ns : std::max<std::int64_t>(extent(panel).to_ns, 0),
                                "the oracle found the bug", true});
  return panel;
}

std::string fault_section(const schedule::Schedule& schedule, const schedule::RunResult& run, std::string_view title) {
  const std::vector<FaultRow> rows = fault_rows(schedule, run);
  if (rows.empty()) return {};
  std::string out = fmt::format(
      "<section>\n<h2>{}</h2>\n<div class=\"scroll\"><table><thead><tr><th>fault and its conditions</th>"
      "<th class=\"n\">at</th><th>node</th><th>process/thread</th><th class=\"n\">seen</th><th>where, or why not</th>"
      "</tr></thead><tbody>\n",
      escape(title));
  for (std::size_t i = 0; i < std::min(rows.size(), kMostRows); ++i) {
    const FaultRow& row = rows[i];
    if (row.kind == FaultRow::Kind::fault) {
      const schedule::Fault* fault = schedule.find(row.what);
      out += fmt::format("<tr class=\"head\"><td colspan=\"6\">{}<br><span class=\"note\">{}</span></td></tr>\n",
                         cell(row.what), fault == nullptr ? "" : cell(schedule::in_words(*fault)));
      continue;
    }
    const bool never = row.at == "never" || (row.kind == FaultRow::Kind::effective && row.at == "no");
    out += fmt::format(
        "<tr><td class=\"in\">{}</td><td class=\"t{}\">{}</td><td>{}</td><td>{}</td><td "
        "class=\"n\">{}</td><td>{}</td></tr>\n",
        cell(row.what),
        never                               ? " no"
        : row.kind == FaultRow::Kind::fired ? " yes"
                                            : "",
        escape(row.at), cell(row.node), escape(row.thread), escape(row.seen), cell(row.detail));
  }
  out += "</tbody></table></div>\n";
  if (rows.size() > kMostRows)
    out += fmt::format("<p class=\"note small\">and {} more rows</p>\n", rows.size() - kMostRows);
  return out + "</section>\n";
}

std::string order_section(const schedule::Schedule& schedule, const schedule::RunResult& run, std::string_view title) {
  if (run.order.empty()) return {};
  std::string out =
      fmt::format("<section>\n<h2>{}</h2>\n<p><code>{}</code></p>\n", escape(title), cell(schedule.order));
  if (!run.order_broken.empty())
    out += fmt::format("<p class=\"note\">Not in this order: {}</p>\n", cell(run.order_broken));
  out +=
      "<div class=\"scroll\"><table><thead><tr><th>name</th><th>kind</th><th class=\"n\">came at</th><th "
      "class=\"n\">held until its turn</th>"
      "<th>what it waited for</th></tr></thead><tbody>\n";
  std::vector<const schedule::OrderOutcome*> rows;
  for (const schedule::OrderOutcome& one : run.order) rows.push_back(&one);
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    return std::pair(!a->came, a->ns) < std::pair(!b->came, b->ns);
  });
  for (const schedule::OrderOutcome* one : rows)
    out += fmt::format("<tr><td>{}</td><td>{}</td><td class=\"t{}\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
                       cell(one->name), cell(one->kind), one->came ? " yes" : " no",
                       one->came ? fmt::format("{:+.3f} s", static_cast<double>(one->ns) / 1e9) : "never",
                       one->held_ns > 0 ? format_duration(one->held_ns) : "", cell(one->why_not));
  return out + "</tbody></table></div>\n</section>\n";
}

}  // namespace rose::report
