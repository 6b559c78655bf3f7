// One JSON object on a line, its members on the top level only; what is nested stays as it is written. No recursion, no
// allocation but one buffer as long as the line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rose::logs {

struct JsonMember {
  std::string_view key;
  std::string_view value;  // of strings without quotes and escapes, else as written
  bool text = false;       // a string
};

class JsonLine {
 public:
  // false: the line is no object, or is cut. Views stay valid until the next call and as long as the line does.
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
