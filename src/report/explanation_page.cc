// The page of `rose explain --report`.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "explain/model.h"
#include "report/dump/text.h"
#include "report/explanation.h"
#include "report/page_parts.h"

namespace rose::report {
namespace {

using explain::Explanation;
using explain::StoryLine;

Tone tone_of(explain::Verdict verdict) {
  switch (verdict) {
    case explain::Verdict::explained: return {"good", "✓"};
    case explain::Verdict::not_reproduced: return {"bad", "✗"};
    case explain::Verdict::nothing_found:
    case explain::Verdict::inconclusive: return {"open", "?"};
  }
  return {"open", "?"};
}

std::string short_section(const Explanation& e) {
  if (e.story.empty()) return {};
  std::string out = "<section>\n<h2>In short</h2>\n<dl>\n";
  for (const ShortLine& line : short_lines(e)) {
    out += fmt::format("<dt>{}</dt>\n", cell(line.what));
    for (const std::string& one : line.text) out += fmt::format("<dd>{}</dd>\n", cell(one));
  }
  return out + "</dl>\n</section>\n";
}

// Each row contains what each feature adds to the score, so that the page can leave features out and rank the suspects
// again (page.js).
std::string suspects_section(const Explanation& e) {
  if (e.suspects.empty()) return {};
  std::set<std::string_view> present;
  std::string rows;
  for (std::size_t i = 0; i < e.suspects.size(); ++i) {
    const explain::Suspect& s = e.suspects[i];
    std::string adds;
    for (const explain::Contribution& one : explain::contributions(s.features)) {
      present.insert(one.name);
      adds += fmt::format("{}{}:{:.4f}", adds.empty() ? "" : " ", one.name, one.value);
    }
    rows += fmt::format(
        "<tr data-adds=\"{}\"><td class=\"n\">{}</td><td><code>{}</code></td><td>{}</td><td class=\"n\">{:.2f}</td>"
        "<td>{}</td><td>{}</td></tr>\n",
        adds, i + 1, cell(s.function), cell(source_place(s.file, s.line)), s.score, cell(s.why),
        explain::contribution_words(s.features));
  }
  std::string boxes;
  for (const explain::FeatureEntry& one : explain::features())
    if (present.contains(one.name))
      boxes += fmt::format("<label title=\"{}\"><input type=\"checkbox\" value=\"{}\" checked> {}</label>\n",
                           cell(std::string(one.what)), one.name, one.name);
  return fmt::format(
      "<section>\n<h2>Suspects</h2>\n<p>The score is the probability that a suspect is the function to look for, if it "
      "is "
      "one of them.</p>\n<div class=\"tools legend\" id=\"features\">weighed: {}</div>\n<div class=\"scroll\"><table "
      "id=\"suspects\"><thead><tr><th class=\"n\">rank</th><th>function</th><th>where</th><th class=\"n\">score</th>"
      "<th>why</th><th>weighed</th></tr></thead><tbody>\n{}</tbody></table></div>\n</section>\n",
      boxes, rows);
}

std::string stacks_section(const Explanation& e) {
  if (e.stacks.empty()) return {};
  std::string out = "<section>\n<h2>The code that received the faults</h2>\n";
  for (const Explanation::StackOf& one : e.stacks) {
    out += fmt::format("<p><b>{}</b> on {}, thread {}{}</p>\n<ol>\n", cell(one.fault), cell(one.stack.node),
                       cell(one.stack.thread), one.stack.why.empty() ? "" : ": " + cell(one.stack.why));
    for (const schedule::Frame& frame : one.stack.frames) {
      const std::string at = source_place(frame.file, frame.line);
      const std::string name =
          frame.function.empty() ? fmt::format("{}+{:#x}", frame.module, frame.offset) : frame.function;
      out += fmt::format("<li><code>{}</code>{}</li>\n", cell(name), at.empty() ? "" : " " + cell(at));
    }
    out += "</ol>\n";
    if (one.others > 0) out += fmt::format("<p class=\"note small\">{}</p>\n", cell(others_words(one.others)));
    if (!one.stack.incomplete.empty())
      out += fmt::format("<p class=\"note small\">{}</p>\n", cell(one.stack.incomplete));
  }
  return out + "</section>\n";
}

std::string story_section(const ExplanationReport& r) {
  const Explanation& e = r.explanation;
  if (e.story.empty()) return {};
  std::string out = fmt::format(
      "<section>\n<h2>What happened</h2>\n<p class=\"note small\">Of run {}. Times count from the beginning of the "
      "workload; log lines have the "
      "time at which they were written, to some milliseconds.</p>\n<div class=\"scroll\"><table><thead><tr><th "
      "class=\"n\">step</th>"
      "<th class=\"n\">at</th><th>node</th><th>what</th><th>evidence</th></tr></thead><tbody>\n",
      r.story.number);
  for (std::size_t i = 0; i < e.story.size(); ++i) {
    const StoryLine& line = e.story[i];
    out += fmt::format("<tr><td class=\"n\">{}</td><td class=\"t\">{}</td><td>{}</td><td>{}{}</td><td>{}</td></tr>\n",
                       i + 1, moment_text(line.at_ns), cell(line.node), cell(line.text),
                       line.first_wrong ? " <b>The first difference.</b>" : "", cell(line.evidence));
  }
  return out + "</tbody></table></div>\n</section>\n";
}

std::string values_section(const Explanation& e) {
  if (e.values.empty()) return {};
  std::string out =
      "<section>\n<h2>Requested values</h2>\n<p class=\"note small\">Values from the fault on, in all runs of each "
      "side; in brackets, before it. The "
      "score says how well the value distinguishes them.</p>\n<div "
      "class=\"scroll\"><table><thead><tr><th>query</th><th>node</th><th>failing</th><th>correct</th>"
      "<th class=\"n\">score</th><th>what differs</th></tr></thead><tbody>\n";
  for (const explain::ValueTable& table : e.values)
    out += fmt::format(
        "<tr><td><code>{}</code>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{:.2f}</td><td>{}</td></tr>\n",
        cell(table.query), table.type.empty() ? "" : ": " + cell(table.type), cell(table.node),
        cell(value_counts(table.failing)), cell(value_counts(table.sound)), table.score, cell(value_verdict(table)));
  return out + "</tbody></table></div>\n</section>\n";
}

std::string rounds_section(const Explanation& e) {
  if (e.rounds.empty()) return {};
  std::string out = "<section>\n<h2>Rounds of queries</h2>\n<ol>\n";
  for (const explain::Round& round : e.rounds) out += fmt::format("<li>{}</li>\n", cell(round_words(round)));
  return out + "</ol>\n</section>\n";
}

std::string exchanges_section(const Explanation& e) {
  if (e.exchanges.empty()) return {};
  std::string out =
      "<section>\n<h2>Messages between nodes</h2>\n<p class=\"note small\">In as long a time from the fault on in all "
      "runs; what one call sends is a message. "
      "The least and the most of any run.</p>\n<div "
      "class=\"scroll\"><table><thead><tr><th>who</th><th>failing</th><th>correct</th><th>fault without bug</th>"
      "<th>differs</th></tr></thead><tbody>\n";
  for (const explain::ExchangeTable& t : e.exchanges)
    out += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", cell(exchange_ends(t)),
                       cell(explain::amount_words(t.failing)), cell(explain::amount_words(t.sound)),
                       e.near > 0 ? cell(explain::amount_words(t.near)) : "-", t.differs.empty() ? "no" : "yes");
  return out + "</tbody></table></div>\n</section>\n";
}

std::string recorded_section(const Explanation& e) {
  if (e.recorded.empty()) return {};
  std::string out = "<section>\n<h2>Where the nodes' recordings diverge</h2>\n<ul>\n";
  for (const explain::RecordedDivergence& d : e.recorded)
    out += fmt::format("<li>{}: {}</li>\n", cell(moment_text(d.at_ns)), cell(explain::divergence_words(d)));
  return out + "</ul>\n</section>\n";
}

std::string differences_section(const Explanation& e) {
  if (e.differences.empty()) return {};
  std::string out =
      "<section>\n<h2>What is different</h2>\n<p class=\"note small\">What occurred in which share of the runs, from "
      "the fault on. Ranked by Ochiai's coefficient; what also varies among failing runs or among correct runs counts "
      "less, what is close to the fault more.</p>\n<div "
      "class=\"scroll\"><table><thead><tr><th>node</th><th>what</th><th class=\"n\">failing</th>"
      "<th class=\"n\">correct</th><th class=\"n\">fault without bug</th><th "
      "class=\"n\">weight</th></tr></thead><tbody>\n";
  for (const explain::DifferenceText& d : e.differences)
    out += fmt::format(
        "<tr><td>{}</td><td>{}{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{:.2f}</td></tr>\n",
        cell(d.node), d.missing ? "no longer: " : "", cell(d.words), percent(d.failing), percent(d.sound),
        e.near > 0 ? percent(d.near) : "-", d.weight);
  return out + "</tbody></table></div>\n</section>\n";
}

// The panel of the run that is shown. It contains the steps of the story instead of the conditions.
Panel story_panel(const ExplanationReport& r) {
  Panel panel = run_panel(r.schedule, r.story,
                          fmt::format("Run {}, {}", r.story.number, schedule::verdict_name(r.story.verdict)));
  std::erase_if(panel.moments, [](const Moment& moment) { return moment.kind == MomentKind::condition; });
  for (std::size_t i = 0; i < r.explanation.story.size(); ++i) {
    const StoryLine& line = r.explanation.story[i];
    if (line.kind == StoryLine::Kind::fault || line.kind == StoryLine::Kind::symptom) continue;
    Moment moment{MomentKind::step,
                  line.node,
                  line.at_ns,
                  0,
                  false,
                  std::to_string(i + 1),
                  fmt::format("step {}: {}", i + 1, line.text)};
    panel.moments.push_back(std::move(moment));
  }
  return panel;
}

}  // namespace

std::string explanation_html(const ExplanationReport& r, const PageContext& context) {
  const Explanation& e = r.explanation;
  std::string body = fmt::format("<section>\n<p class=\"lead\">{}{}</p>\n",
                                 badge(explain::verdict_name(e.verdict), tone_of(e.verdict)), cell(e.reason));
  body += "<h3>Injected faults</h3>\n" + steps_html(r.schedule);
  if (!e.symptom.empty()) body += fmt::format("<h3>Symptom</h3>\n<p>{}</p>\n", cell(e.symptom));
  body += "<div class=\"facts\">\n" + fact(std::to_string(r.runs), "runs") +
          fact(std::to_string(e.failing), "failing") + fact(std::to_string(e.sound), "correct") +
          fact(std::to_string(e.near), "fault without bug") + fact(format_seconds(r.seconds), "in all") +
          "</div>\n</section>\n";
  body += short_section(e) + suspects_section(e) + values_section(e) + story_section(r) + stacks_section(e);
  if (!r.story.trace.events.empty()) body += timeline_section({story_panel(r)}, context);
  body += differences_section(e) + exchanges_section(e) + recorded_section(e) + rounds_section(e);
  if (!e.limits.empty()) {
    body += "<section>\n<h2>What could not be determined</h2>\n<ul>\n";
    for (const std::string& limit : e.limits) body += fmt::format("<li>{}</li>\n", cell(limit));
    body += "</ul>\n</section>\n";
  }
  body += schedule_section(r.schedule, r.schedule_path) + environment_section(context);
  return document("rose explain", r.name, body, context);
}

}  // namespace rose::report
