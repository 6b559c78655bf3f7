// What explain found: for machines, for people, as a file that goes with a ticket.
#pragma once

#include <string>
#include <vector>

#include "explain/explain.h"
#include "report/page.h"

namespace rose::report {

struct ExplanationReport {
  explain::Explanation explanation;
  std::string name;  // of the deployment
  schedule::Schedule schedule;
  std::string schedule_path, config_path, written;   // written: explanation.md
  schedule::RunResult story;                         // the run that is told, with its trace
  int runs = 0;                                      // in all
  int reproduced = 0, missed = 0, inconclusive = 0;  // of the schedule
  double seconds = 0;
};

// Of one side: "-1, 0 x12 (40)".
[[nodiscard]] std::string value_counts(const std::vector<explain::ValueCount>& counts);
// What differs, and when first; or why nothing is told.
[[nodiscard]] std::string value_verdict(const explain::ValueTable& table);

// An explanation from the fault to the symptom, in the plain words of the program: neither Markdown nor HTML.
struct ShortLine {
  std::string_view what;          // "Root fault"
  std::vector<std::string> text;  // consequences: one each
};
[[nodiscard]] std::vector<ShortLine> short_lines(const explain::Explanation& explanation);
// What a round asked, what it found, what it cost.
[[nodiscard]] std::string round_words(const explain::Round& round);
// Of a stack that is told: how many threads the fault hit besides.
[[nodiscard]] std::string others_words(std::size_t others);
// "n1 sends n2 (port 7000)"
[[nodiscard]] std::string exchange_ends(const explain::ExchangeTable& table);

[[nodiscard]] std::string explanation_json(const ExplanationReport& report);
[[nodiscard]] std::string explanation_text(const ExplanationReport& report);
[[nodiscard]] std::string explanation_markdown(const ExplanationReport& report);
// The same as a page, with the story on the run's time line.
[[nodiscard]] std::string explanation_html(const ExplanationReport& report, const PageContext& context);

}  // namespace rose::report
