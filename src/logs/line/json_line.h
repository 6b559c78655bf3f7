// Parses a JSON object on one line. Only the members at the top level are split; nested values stay text. No recursion,
// and one buffer of the line's length as the only allocation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rose::logs {

struct JsonMember {
  std::string_view key;
  std::string_view value;  // of a string: unescaped, without quotes; else as written
  bool text = false;       // the value is a string
};

class JsonLine {
 public:
  // False if the line is no object or is truncated. Views stay valid until the next call, and as long as the line does.
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
