// Replaces what a report should not reveal to third parties: host names, addresses, user names, long tokens. Equal
// texts get equal replacements, so that relations between them remain visible.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rose {

class Redactor {
 public:
  // `hosts`, `users`: names that are replaced wherever they appear as a word.
  Redactor(std::vector<std::string> hosts, std::vector<std::string> users)
      : hosts_(std::move(hosts)), users_(std::move(users)) {}
  // For this machine and the user who runs rose. The names root and nobody are not secret.
  [[nodiscard]] static Redactor of_this_machine();

  // Another name to replace; "" and "localhost" are ignored.
  void add_host(std::string_view name);
  // A word that stays as it is.
  void keep(std::string_view word) { kept_.emplace(word); }
  // Text that is already redacted is returned unchanged.
  [[nodiscard]] std::string operator()(std::string_view text);

 private:
  std::string word(std::string_view word);
  const std::string& known(std::string_view what, std::string_view text);

  std::vector<std::string> hosts_, users_;
  std::map<std::string, std::string, std::less<>> replaced_;
  std::map<std::string, int, std::less<>> count_;  // of each sort
  std::set<std::string, std::less<>> made_;        // what it replaces others by
  std::set<std::string, std::less<>> kept_;
};

}  // namespace rose
