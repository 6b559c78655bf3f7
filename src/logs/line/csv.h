// Reads logs that a collector exported as CSV (RFC 4180), with or without a header row.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "logs/line/form.h"
#include "logs/line/json_line.h"
#include "logs/line/layer_fields.h"

namespace rose::logs {

class CsvTable {
 public:
  // Determines the columns by the first lines of a file. Returns false if they are no table. `is_node`: see Form.
  bool find(std::span<const std::string> sample, const IsNode& is_node);
  [[nodiscard]] bool has_head() const { return !head_.empty(); }

  // Reads the next line, which may continue a row. Returns false if the line is no row.
  [[nodiscard]] bool read(std::string_view line, LayerFields& out);
  // Forgets an unfinished row. Call this before the file is read from its beginning.
  void restart() { in_quotes_ = false; }

 private:
  bool find_columns(std::string_view head);
  bool derive_columns(std::span<const std::string> sample, const IsNode& is_node);

  std::string head_;  // the header row; "" if there is none
  // The columns that are used; nullopt if the rows have no such column.
  std::optional<std::size_t> time_column_, text_column_, host_column_, level_column_;
  bool in_quotes_ = false;  // the text of the last row continues in the next line
  std::string host_, text_;
  JsonLine nested_;
};

}  // namespace rose::logs
