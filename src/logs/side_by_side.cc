#include "logs/side_by_side.h"

#include <algorithm>

namespace rose::logs {
namespace {

std::string line_of(const Logs& logs, const Message& message) {
  std::string_view text = logs.text(message);
  text = text.substr(0, text.find('\n'));
  if (text.size() <= kMostSideBySideText) return std::string(text.empty() ? std::string_view("(not kept)") : text);
  std::size_t end = kMostSideBySideText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // do not split a UTF-8 character
  return std::string(text.substr(0, end)) + "...";
}

// A row has one index into the messages of each of the two logs. kNone means that this log lacks the line.
constexpr std::uint32_t kNone = UINT32_MAX;
using Row = std::pair<std::uint32_t, std::uint32_t>;

// The rows for two logs. `matched` contains the pairs of matching messages.
std::vector<Row> merge(std::size_t failure, std::size_t run, const std::vector<Matched>& matched) {
  std::vector<Row> rows;
  std::uint32_t a = 0, b = 0;
  const auto until = [&](std::size_t end_a, std::size_t end_b) {
    while (a < end_a) rows.emplace_back(a++, kNone);
    while (b < end_b) rows.emplace_back(kNone, b++);
  };
  for (const Matched& pair : matched) {
    until(pair.failure, pair.normal);
    rows.emplace_back(a++, b++);
  }
  until(failure, run);
  return rows;
}

}  // namespace

std::vector<SideBySide> side_by_side(const Logs& failure, const Logs& run, const Templates& kinds) {
  const Difference difference = compare(failure, run, kinds);
  std::vector<SideBySide> all;
  for (std::size_t n = 0; n < failure.nodes.size(); ++n) {
    const NodeLog& node = failure.nodes[n];
    const NodeDifference& of = difference.nodes[n];
    static const NodeLog nothing;
    const NodeLog& other = of.normal == kNoNode ? nothing : run.nodes[of.normal];
    const std::vector<Row> rows = merge(node.messages.size(), other.messages.size(), of.matched);
    std::vector<bool> kept(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].first != kNone && rows[i].second != kNone) continue;
      for (std::size_t k = i - std::min(i, kContextRows); k < std::min(rows.size(), i + kContextRows + 1); ++k)
        kept[k] = true;
    }
    for (std::size_t i = 0; i < std::min(rows.size(), kContextRows); ++i) kept[i] = kept[rows.size() - 1 - i] = true;
    SideBySide& out = all.emplace_back();
    out.node = node.name;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!kept[i] || out.rows.size() >= kMostSideBySideRows) {
        if (out.rows.empty() || out.rows.back().left_out == 0) out.rows.emplace_back();
        ++out.rows.back().left_out;
        continue;
      }
      SideBySideRow& row = out.rows.emplace_back();
      if (rows[i].first != kNone) {
        row.failure = line_of(failure, node.messages[rows[i].first]);
        row.failure_ns = node.messages[rows[i].first].ts_ns;
      }
      if (rows[i].second != kNone) {
        row.run = line_of(run, other.messages[rows[i].second]);
        row.run_ns = other.messages[rows[i].second].ts_ns;
      }
    }
  }
  return all;
}

}  // namespace rose::logs
