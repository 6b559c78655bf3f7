// Lines that a terminal, an editor or a web page cut at a width before they were pasted. They are joined again, because
// a path, an address or the words for an error may lie on both sides of a cut.
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
  // How the lines of `sample`, the first lines of a file, were cut; nothing if they were not. `is_node`: see Form.
  [[nodiscard]] static std::optional<Wrap> find(std::span<const std::string> sample, const IsNode& is_node = {});

  // True if `line` continues the line that ended with `before`; both as they are in the file.
  [[nodiscard]] bool continues(std::string_view before, std::string_view line);
  // What the cut removed between two lines: "" or " ".
  [[nodiscard]] std::string_view removed() const { return kind_ == Kind::columns ? "" : " "; }
  // The lines with their continuations joined.
  [[nodiscard]] std::vector<std::string> join(std::span<const std::string> lines);

 private:
  enum class Kind { columns, words };  // cut at a column, or at the last blank before it

  explicit Wrap(Form form) : form_(std::move(form)) {}
  [[nodiscard]] bool begins_message(std::string_view line);

  Form form_;             // recognises the beginnings of messages
  bool objects_ = false;  // the messages are JSON objects
  Kind kind_ = Kind::columns;
  std::size_t width_ = 0;  // characters
};

}  // namespace rose::logs
