// The results of explain, as JSON, as text, and as a file that can be attached to a ticket.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "explain/explain.h"
#include "report/page.h"

namespace rose::report {

struct ExplanationReport {
  explain::Explanation explanation;
  std::string name;  // name of the deployment
  schedule::Schedule schedule;
  std::string schedule_path, config_path, written;   // written: path of explanation.md
  schedule::RunResult story;                         // the run that is shown, with its trace
  int runs = 0;                                      // total number of runs
  int reproduced = 0, missed = 0, inconclusive = 0;  // numbers of runs of the schedule, by verdict
  double seconds = 0;
  // time until the first answer, before any query; nothing: nothing was compared, or there were no queries
  std::optional<double> first_answer_seconds;
};

// The values in the failing or in the correct runs. For example, "-1, 0 x12 (40)" means: after the fault, -1 once and 0
// twelve times; before the fault, 0 forty times.
[[nodiscard]] std::string value_counts(const std::vector<explain::ValueCount>& counts);
// How the values of failing and correct runs differ, and where they do so first. If no values were recorded, the
// reason.
[[nodiscard]] std::string value_verdict(const explain::ValueTable& table);

// One line of the summary of what happened from the fault to the symptom, as plain text without markup.
struct ShortLine {
  std::string_view what;          // for example "Root fault"
  std::vector<std::string> text;  // for consequences, one text for each
};
[[nodiscard]] std::vector<ShortLine> short_lines(const explain::Explanation& explanation);
// What a round queried, what it found, and what it cost.
[[nodiscard]] std::string round_words(const explain::Round& round);
// How many other threads the fault affected, in addition to the one whose stack is shown.
[[nodiscard]] std::string others_words(std::size_t others);
// The sender and the receiver of these messages: "n1 sends n2 (port 7000)".
[[nodiscard]] std::string exchange_ends(const explain::ExchangeTable& table);

[[nodiscard]] std::string explanation_json(const ExplanationReport& report);
[[nodiscard]] std::string explanation_text(const ExplanationReport& report);
[[nodiscard]] std::string explanation_markdown(const ExplanationReport& report);
// The report as an HTML page, in which the story is shown on the run's time line.
[[nodiscard]] std::string explanation_html(const ExplanationReport& report, const PageContext& context);

}  // namespace rose::report
