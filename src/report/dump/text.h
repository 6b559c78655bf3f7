// Helpers for formatting results.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "schedule/rate.h"

namespace rose::report {

[[nodiscard]] Json text_or_null(const std::string& text);
[[nodiscard]] Json interval_json(const schedule::Tally& tally);

[[nodiscard]] std::string percent(double share);                            // "80 %"
[[nodiscard]] std::string source_place(const std::string& file, int line);  // "store.cc:12", "store.cc", ""
[[nodiscard]] std::string rate_text(const schedule::Tally& tally);
// Like the function above, but with another interval: that of a sequential test (RateTest::interval), in which the
// number of runs depends on their results.
[[nodiscard]] std::string rate_text(const schedule::Tally& tally, const std::pair<double, double>& interval);
[[nodiscard]] std::string format_seconds(double seconds);                     // "12.3 s", "4 min 5 s", "1 h 2 min"
[[nodiscard]] std::string plural(std::uint64_t count, std::string_view one);  // "1 run", "2 runs"
// Inserts `by` before each line, and makes the text printable.
[[nodiscard]] std::string indented(std::string_view text, std::string_view by);
// Aligns columns to their widest cell; the last column is not padded.
[[nodiscard]] std::string columns(const std::vector<std::vector<std::string>>& rows, std::string_view indent);

}  // namespace rose::report
