// What looks like a password, token or key, and what stands for it in a draft: made-up words, the same
// wherever the secret was the same, so that nodes which shared one still do. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace rose::draft {

class Secrets {
 public:
  // `value`, or what stands for it. `name` is that of the variable or option it belongs to, "" for none. A longer text
  // (a script, a URL, "host=x password=y") is searched for secrets of its own.
  [[nodiscard]] std::string masked(std::string_view name, std::string_view value);
  [[nodiscard]] std::size_t count() const { return made_.size(); }

 private:
  std::string stand_in(std::string_view secret);
  std::string masked_url(std::string_view text);
  std::string masked_words(std::string_view text);
  std::map<std::string, std::string, std::less<>> made_;
};

// "REDIS_PASSWORD", "--requirepass", "aws.secretKey": not "PASSIVE", "--bypass".
[[nodiscard]] bool names_secret(std::string_view name);
// Tokens that can be told by their form alone.
[[nodiscard]] bool is_token(std::string_view value);

}  // namespace rose::draft
