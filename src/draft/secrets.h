// Detects passwords, tokens and keys, and replaces them in a draft by generated words. Equal secrets get equal
// replacements, so that nodes which shared a secret still do. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace rose::draft {

class Secrets {
 public:
  // Returns `value`, or its replacement if it is a secret. `name` is the variable or option that it belongs to, or "".
  // A longer text (a script, a URL, "host=x password=y") is searched for embedded secrets.
  [[nodiscard]] std::string masked(std::string_view name, std::string_view value);
  [[nodiscard]] std::size_t count() const { return made_.size(); }

 private:
  std::string stand_in(std::string_view secret);
  std::string masked_url(std::string_view text);
  std::string masked_words(std::string_view text);
  std::map<std::string, std::string, std::less<>> made_;
};

// True for "REDIS_PASSWORD", "--requirepass", "aws.secretKey"; false for "PASSIVE", "--bypass".
[[nodiscard]] bool names_secret(std::string_view name);
// True for tokens that can be recognised by their form alone.
[[nodiscard]] bool is_token(std::string_view value);

}  // namespace rose::draft
