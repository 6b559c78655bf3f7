#include "logs/line/csv.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/ascii.h"
#include "logs/line/nested_host.h"

namespace rose::logs {
namespace {

// Reads one field of a CSV row from `at` on. Doubled quotes become one quote. `open` is set if the closing quote is
// missing, so that the field continues in the next line.
std::string csv_field(std::string_view row, std::size_t& at, bool& open) {
  std::string field;
  open = false;
  if (at < row.size() && row[at] == '"') {
    for (++at;; ++at) {
      if (at >= row.size()) {
        open = true;
        return field;
      }
      if (row[at] != '"') field += row[at];
      else if (at + 1 < row.size() && row[at + 1] == '"') field += row[at++];
      else break;
    }
    at = std::min(row.find(',', at), row.size());
  } else {
    const std::size_t end = std::min(row.find(',', at), row.size());
    field = row.substr(at, end - at);
    at = end;
  }
  if (at < row.size()) ++at;  // skip the comma
  return field;
}

std::vector<std::string> csv_row(std::string_view row, bool& open) {
  std::vector<std::string> fields;
  open = false;
  for (std::size_t at = 0; at < row.size() && fields.size() < 64 && !open;) fields.push_back(csv_field(row, at, open));
  return fields;
}

}  // namespace

bool CsvTable::find(std::span<const std::string> sample, const IsNode& is_node) {
  if (!find_columns(sample.front())) return derive_columns(sample, is_node);
  head_ = sample.front();
  return true;
}

bool CsvTable::find_columns(std::string_view head) {
  // this is JSON, which also has quoted names separated by commas
  if (head.starts_with('{') || head.starts_with('[')) return false;
  bool open = false;
  const std::vector<std::string> names = csv_row(head, open);
  if (open || names.size() < 2) return false;
  constexpr std::array kTimes =
      std::to_array<std::string_view>({"@timestamp", "timestamp", "time", "date", "ts", "_time", "tsns"});
  constexpr std::array kTexts =
      std::to_array<std::string_view>({"line", "message", "log", "msg", "_raw", "text", "content", "@message"});
  constexpr std::array kLevels = std::to_array<std::string_view>({"level", "severity", "log.level", "detected_level"});
  constexpr std::array kOrigins = std::to_array<std::string_view>({"labels", "resource", "kubernetes", "source"});
  const auto column = [&](std::span<const std::string_view> wanted) -> std::optional<std::size_t> {
    for (const std::string_view name : wanted)
      for (std::size_t i = 0; i < names.size(); ++i)
        if (lower_case(names[i]) == name) return i;
    return std::nullopt;
  };
  time_column_ = column(kTimes);
  text_column_ = column(kTexts);
  level_column_ = column(kLevels);
  host_column_ = column(kHostNames);
  if (!host_column_) host_column_ = column(kOrigins);
  return time_column_ && text_column_;
}

// Guesses the columns of rows without a header. The time is the first column with a timestamp in every row; the level
// is the first column with a level in every row; the host is the first column with a node's name in every row. The
// longest of the other columns is the text.
bool CsvTable::derive_columns(std::span<const std::string> sample, const IsNode& is_node) {
  constexpr std::size_t kFewestColumns = 3;
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : sample) {
    if (line.empty()) continue;
    if (line[0] != '"') return false;  // exports without a header have quotes around the first field
    bool open = false;
    rows.push_back(csv_row(line, open));
    if (open || rows.back().size() < kFewestColumns || rows.back().size() != rows.front().size()) return false;
  }
  if (rows.empty()) return false;
  const auto all = [&](std::size_t column, const auto& fits) {
    return std::all_of(rows.begin(), rows.end(), [&](const auto& row) { return fits(row[column]); });
  };
  const auto is_time = [](const std::string& field) {
    const auto time = read_time(field);
    return time && time->length == field.size();
  };
  time_column_ = level_column_ = host_column_ = text_column_ = std::nullopt;
  std::size_t longest = 0;
  for (std::size_t column = 0; column < rows.front().size(); ++column) {
    if (!time_column_ && all(column, is_time)) {
      time_column_ = column;
    } else if (!level_column_ && all(column, [](const auto& field) { return level_of(field) != Level::none; })) {
      level_column_ = column;
    } else if (!host_column_ && is_node && all(column, is_node)) {
      host_column_ = column;
    } else {
      std::size_t size = 0;
      for (const auto& row : rows) size += row[column].size();
      if (size > longest) text_column_ = column;
      longest = std::max(longest, size);
    }
  }
  return time_column_ && text_column_;
}

bool CsvTable::read(std::string_view line, LayerFields& out) {
  if (!head_.empty() && line == head_) return out.nothing = true;
  text_.clear();
  if (in_quotes_) {  // the field continues up to the closing quote
    std::size_t at = 0;
    for (; at < line.size(); ++at) {
      if (line[at] != '"') text_ += line[at];
      else if (at + 1 < line.size() && line[at + 1] == '"') text_ += line[at++];
      else break;
    }
    in_quotes_ = at >= line.size();
    out.text = text_;
    out.rest = true;
    return true;
  }
  bool open = false;
  std::vector<std::string> fields = csv_row(line, open);
  if (fields.size() <= std::max(*time_column_, *text_column_)) return false;
  const auto time = read_time(fields[*time_column_]);
  if (!time) return false;
  in_quotes_ = open && fields.size() == *text_column_ + 1;
  out.time = time;
  out.time->length = 0;
  if (host_column_ && *host_column_ < fields.size()) {
    host_ = fields[*host_column_];
    if (host_.starts_with('{')) host_ = nested_.parse(host_) ? nested_host(nested_.members()) : std::string();
    out.host = host_;
  }
  if (level_column_ && *level_column_ < fields.size()) out.level = level_of(fields[*level_column_]);
  text_ = std::move(fields[*text_column_]);
  out.text = text_;
  return true;
}

}  // namespace rose::logs
