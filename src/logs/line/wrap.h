// Joins lines that a terminal, an editor or a web page cut at a width before they were pasted. This is necessary
// because a path, an address or the words for an error may lie on both sides of a cut.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "logs/line/form.h"

namespace rose::logs {

class Wrap {
 public:
  // Determines how the lines of `sample`, which are the first lines of a file, were cut. Returns nothing if they were
  // not cut. `is_node`: see Form.
  [[nodiscard]] static std::optional<Wrap> find(std::span<const std::string> sample, const IsNode& is_node = {});

  // True if `line` continues the line that ended with `before`. Both must be as they are in the file.
  [[nodiscard]] bool continues(std::string_view before, std::string_view line);
  // The text that the cut removed between two lines: "" or " ".
  [[nodiscard]] std::string_view removed() const { return kind_ == Kind::columns ? "" : " "; }
  // Joins each continuation to the line that it continues, and returns the resulting lines.
  [[nodiscard]] std::vector<std::string> join(std::span<const std::string> lines);

 private:
  enum class Kind { columns, words };  // columns: lines were cut at a column; words: at the last blank before it

  explicit Wrap(Form form) : form_(std::move(form)) {}
  [[nodiscard]] bool begins_message(std::string_view line);

  Form form_;             // recognises the beginnings of messages
  bool objects_ = false;  // the messages are JSON objects
  Kind kind_ = Kind::columns;
  std::size_t width_ = 0;  // width at which the lines were cut, in characters
};

}  // namespace rose::logs
