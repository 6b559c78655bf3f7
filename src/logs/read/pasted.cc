#include "logs/read/pasted.h"

#include <algorithm>

#include "base/ascii.h"
#include "logs/line/chars.h"

namespace rose::logs {
namespace {

// The longest line, in characters and in words, that counts as a heading. The heading of a section in a report ("## n1
// (the leader, which ...)") may have more words if its first words name the node.
constexpr std::size_t kLongestHeading = 120;
constexpr std::size_t kWordsOfHeading = 5, kWordsBeforeRemark = 3;
constexpr std::size_t kLongestPrompt = 60;

}  // namespace

bool is_omission(std::string_view line) {
  if (line.empty() || line.size() > 24) return false;
  return line.starts_with("```") || line == "[...]" || line == "..." || line == "[..]" || line == "(...)" ||
         line == "<...>" || line == "[snip]" || line == "<snip>" || line == "\xe2\x80\xa6" || line == "[\xe2\x80\xa6]";
}

bool is_prompt(std::string_view line) {
  if (line.starts_with("$ ")) return true;
  const std::size_t end = line.substr(0, kLongestPrompt).find_first_of("$#");
  if (end == std::string_view::npos || end == 0 || end + 1 >= line.size() || line[end + 1] != ' ') return false;
  const std::string_view prompt = line.substr(0, end);
  const std::size_t at = prompt.find('@');
  if (at == std::string_view::npos || at == 0) return false;
  return line[0] == '[' ? prompt.back() == ']' : prompt.find(' ') == std::string_view::npos;
}

std::string node_in_heading(std::string_view line, const std::function<bool(std::string_view)>& names_node) {
  if (line.empty() || line.size() > kLongestHeading) return {};
  const bool of_tail = line.starts_with("==> ") && line.ends_with(" <==");
  if (!of_tail && line.back() != ':' && line[0] != '#' && line[0] != '*' && line[0] != '-') return {};
  const bool of_section = line.starts_with("##") || line.starts_with("**");
  std::string host;
  std::size_t words = 0, named_at = 0;
  for (std::size_t at = 0; at < line.size();) {
    std::size_t end = at;
    while (end < line.size() && (is_name_char(line[end]) || line[end] == '/')) ++end;
    if (end == at) {
      ++at;
      continue;
    }
    std::string_view word = line.substr(at, end - at);
    at = end;
    if (word.find_first_not_of("-./") == std::string_view::npos) continue;
    ++words;
    word.remove_prefix(std::min(word.rfind('/') + 1, word.size()));  // npos + 1 is 0: the whole word
    for (const std::string_view ending : {".log", ".txt", ".out"})
      if (word.ends_with(ending)) word.remove_suffix(ending.size());
    if (!host.empty()) continue;
    host = names_node(word) ? std::string(word) : lower_case(word);  // a heading may begin with a capital letter
    if (!names_node(host)) host.clear();
    else named_at = words;
  }
  const bool short_enough = words <= kWordsOfHeading || (of_section && named_at <= kWordsBeforeRemark);
  return short_enough ? host : std::string();
}

}  // namespace rose::logs
