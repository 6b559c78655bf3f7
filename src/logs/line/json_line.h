// Parses a JSON object on one line. Splits only the members at the top level; nested values remain text. Uses no
// recursion, and allocates only one buffer of the line's length.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rose::logs {

struct JsonMember {
  std::string_view key;
  std::string_view value;  // for a string: unescaped and without quotes; otherwise as written
  bool text = false;       // the value is a string
};

class JsonLine {
 public:
  // Returns false if the line is no object or is truncated. Views stay valid until the next call, and only as long as
  // the line exists.
  bool parse(std::string_view line);
  [[nodiscard]] const std::vector<JsonMember>& members() const { return members_; }
  [[nodiscard]] const JsonMember* find(std::string_view key) const;

 private:
  bool string(std::string_view line, std::size_t& at, std::string_view& value);
  static bool other(std::string_view line, std::size_t& at, std::string_view& value);

  std::vector<JsonMember> members_;
  std::string buffer_;
  std::size_t used_ = 0;
};

}  // namespace rose::logs
