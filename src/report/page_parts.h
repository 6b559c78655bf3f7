// Components of pages: the document, sections used by several pages, time lines. Private to report.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/page.h"

namespace rose::report {

inline constexpr std::size_t kMostRows = 300;    // most rows of a table
inline constexpr std::size_t kMostWords = 1500;  // most bytes of a cell
inline constexpr std::size_t kMostToml = 64'000;

// The content of a table cell, escaped and shortened.
[[nodiscard]] std::string cell(std::string_view text);

struct Tone {
  std::string_view style, sign;
};
[[nodiscard]] Tone tone_of(schedule::Verdict verdict, bool reproducing_is_good);
[[nodiscard]] std::string badge(std::string_view words, const Tone& tone);
[[nodiscard]] std::string fact(std::string_view value, std::string_view name);
// The steps of the schedule. There is one step for each fault.
[[nodiscard]] std::string steps_html(const schedule::Schedule& schedule);
[[nodiscard]] std::string schedule_section(const schedule::Schedule& schedule, std::string_view path);
[[nodiscard]] std::string environment_section(const PageContext& context);
[[nodiscard]] std::string notes_section(const std::vector<std::string>& notes);
[[nodiscard]] std::string fault_section(const schedule::Schedule& schedule, const schedule::RunResult& run,
                                        std::string_view title);
// What happened to the events and steps in the schedule's order; "" if the schedule has no order.
[[nodiscard]] std::string order_section(const schedule::Schedule& schedule, const schedule::RunResult& run,
                                        std::string_view title);

[[nodiscard]] Stretch widened(const Stretch& stretch, double share);
// What the run's faults did, and its trace if available.
[[nodiscard]] Panel run_panel(const schedule::Schedule& schedule, const schedule::RunResult& run, std::string title);
// `given`: the time range to show. Without it, the range that explains the panels is shown.
[[nodiscard]] std::string timeline_section(const std::vector<Panel>& panels, const PageContext& context,
                                           const Stretch* given = nullptr);

[[nodiscard]] std::string document(std::string_view over, std::string_view name, const std::string& body,
                                   const PageContext& context);

}  // namespace rose::report
