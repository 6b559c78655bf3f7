#include "report/dump/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/utf8.h"
#include "report/dump/show.h"

namespace rose::report {
namespace {

// The width in characters, not in bytes.
std::size_t width(std::string_view text) {
  std::size_t letters = 0;
  for (std::size_t i = 0; i < text.size(); ++letters) i += std::max<std::size_t>(utf8_length(text.substr(i)), 1);
  return letters;
}

}  // namespace

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json interval_json(const schedule::Tally& tally) {
  const auto [low, high] = tally.interval();
  return Json::array({low, high});
}

std::string source_place(const std::string& file, int line) {
  if (file.empty()) return {};
  return line > 0 ? fmt::format("{}:{}", file, line) : file;
}

std::string percent(double share) {
  // Do not round values close to 0 or 1 to "0 %" or "100 %".
  if (share > 0.99 && share < 1) return fmt::format("{:.1f} %", std::min(share * 100, 99.9));
  if (share > 0 && share < 0.01) return fmt::format("{:.1f} %", std::max(share * 100, 0.1));
  return fmt::format("{:.0f} %", share * 100);
}

std::string rate_text(const schedule::Tally& tally) { return rate_text(tally, tally.interval()); }

std::string rate_text(const schedule::Tally& tally, const std::pair<double, double>& interval) {
  if (tally.conclusive() == 0) return tally.runs() == 0 ? "no run was conclusive" : "no run could be judged";
  const auto [low, high] = interval;
  return fmt::format("{} of {} conclusive runs ({}, 95 % interval {}-{})", tally.reproduced, tally.conclusive(),
                     percent(tally.rate()), percent(low), percent(high));
}

std::string plural(std::uint64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string indented(std::string_view text, std::string_view by) {
  std::string out;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    out += fmt::format("{}{}\n", by, printable(text.substr(start, end - start)));
    start = end + 1;
  }
  return out;
}

std::string columns(const std::vector<std::vector<std::string>>& rows, std::string_view indent) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string format_seconds(double seconds) {
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 7200) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace rose::report
