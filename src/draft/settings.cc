#include "draft/settings.h"

#include <algorithm>
#include <set>

#include "base/ascii.h"
#include "draft/net_tables.h"
#include "draft/secrets.h"

namespace rose::draft {
namespace {

constexpr std::size_t kMostFound = 2000;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// The keyword of a line: its first word, such as "listen", "bind-address:", "dataDir=".
std::string keyword_of(std::string_view line) {
  while (!line.empty() && (is_space(line.front()) || line.front() == '-')) line.remove_prefix(1);
  std::size_t end = 0;
  while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) || line[end] == '_' ||
                               line[end] == '-' || line[end] == '.'))
    ++end;
  return std::string(line.substr(0, end));
}

// A bare address may have many meanings ("allow 127.0.0.1"). Only these keywords set the address to listen at.
bool says_listen(std::string_view word) {
  const std::string keyword = lower_case(word);
  return keyword.find("listen") != std::string::npos || keyword.find("bind") != std::string::npos ||
         keyword.find("advertise") != std::string::npos || keyword == "host" || keyword == "address" ||
         keyword == "interface";
}

std::string for_sed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view(".[]\\/()+*?{}^$|").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

bool is_settings(std::string_view path, std::string_view text) {
  for (const std::string_view end :
       {".py", ".jar", ".so", ".js", ".rb", ".sh", ".pl", ".php", ".pem", ".crt", ".key", ".war", ".class"})
    if (path.ends_with(end)) return false;
  return text.size() <= kMostSettingsBytes && !text.starts_with("#!") && text.find('\0') == std::string_view::npos;
}

Settings read_settings(std::string path, std::string_view text, const std::vector<std::string>& names) {
  Settings settings;
  settings.path = std::move(path);
  int number = 0;
  std::set<std::string> paths;
  each_line(text, [&](std::string_view line) {
    ++number;
    const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    if (begin == line.size() || line[begin] == '#' || line[begin] == ';' || line.size() > 4096) return;
    const std::string keyword = keyword_of(line);
    if (names_secret(keyword) && settings.secrets.size() < kMostFound) settings.secrets.push_back(keyword);
    for (const FoundAddress& found : find_addresses(line, names)) {
      if (settings.addresses.size() >= kMostFound) break;
      const bool plain =
          std::string_view(found.host).find_first_not_of("0123456789abcdefABCDEF.:") == std::string_view::npos;
      if (!found.port && (!says_listen(keyword) || !plain)) continue;
      settings.addresses.push_back(
          {number, keyword, std::string(line.substr(found.begin, found.end - found.begin)), found.host, found.port});
    }
    for (std::size_t at = line.find('/'); at != std::string_view::npos && paths.size() < kMostFound;
         at = line.find('/', at)) {
      const bool starts = at == 0 || std::string_view(" \t\"'=:,").find(line[at - 1]) != std::string_view::npos;
      const std::size_t end = std::min(line.find_first_of(" \t\"';,\r)", at), line.size());
      if (starts && end - at > 1 && !(at > 0 && line[at - 1] == ':' && line.substr(at, 2) == "//"))
        paths.insert(std::string(line.substr(at, end - at)));
      at = std::max(end, at + 1);
    }
  });
  settings.paths.assign(paths.begin(), paths.end());
  return settings;
}

Patch patch_settings(const Settings& settings, std::size_t self, const AddressBook& book, Rewritten& result) {
  Patch patch;
  std::set<std::string> seen;
  for (const SettingAddress& address : settings.addresses) {
    std::optional<std::size_t> whose;
    if (address.port) whose = book.owner(self, address.host, *address.port);
    else if (book.listens_there(self, address.host)) whose = self;
    const std::string shown = address.port ? fmt::format("{}:{}", address.spelled, *address.port) : address.spelled;
    if (!whose) continue;
    const std::string ip = book.placeholder(self, *whose);
    const std::string expression = address.port ? fmt::format("s/(^|[^0-9.]){}([: ]+{})($|[^0-9])/\\1{}\\2\\3/g",
                                                              for_sed(address.spelled), *address.port, ip)
                                                : fmt::format("/^[ \\t-]*{}/s/(^|[^0-9.]){}($|[^0-9.])/\\1{}\\2/g",
                                                              for_sed(address.keyword), for_sed(address.spelled), ip);
    patch.own = patch.own || *whose == self;
    if (!seen.insert(expression).second) continue;
    patch.expressions.push_back(expression);
    result.changes.push_back(fmt::format("{} in line {} of {}: {} ({}), in a copy that is mounted over it in a run",
                                         shown, address.line, settings.path, ip, book.name(*whose)));
  }
  return patch;
}

}  // namespace rose::draft
