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
  // A redactor for the names of this machine and of the user who runs rose. The names root and nobody are not secret.
  [[nodiscard]] static Redactor of_this_machine();

  // Another name to replace; "" and "localhost" are ignored.
  void add_host(std::string_view name);
  // A word that is never replaced.
  void keep(std::string_view word) { kept_.emplace(word); }
  // Replacements in text that was already redacted are kept.
  [[nodiscard]] std::string operator()(std::string_view text);

 private:
  std::string word(std::string_view word);
  const std::string& known(std::string_view what, std::string_view text);

  std::vector<std::string> hosts_, users_;
  std::map<std::string, std::string, std::less<>> replaced_;
  std::map<std::string, int, std::less<>> count_;  // number of replacements of each kind ("host", "address", ...)
  std::set<std::string, std::less<>> made_;        // the replacements made so far
  std::set<std::string, std::less<>> kept_;
};

}  // namespace rose
