#include "draft/unit.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/log.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/units.h"
#include "draft/net_tables.h"

namespace rose::draft {
namespace {

constexpr std::int64_t kAskUnitTimeout = 10 * kSecond;

// "{ path=/usr/bin/x ; argv[]=/usr/bin/x --a b ; ignore_errors=no ; ... }"
std::vector<std::string> read_exec(std::string_view text) {
  constexpr std::string_view kArgv = "argv[]=";
  const std::size_t at = text.find(kArgv);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + kArgv.size());
  // The arguments may contain " ; ", but the text after them is fixed.
  const std::size_t end = std::min(text.find(" ; ignore_errors="), text.size());
  std::vector<std::string> words = split(text.substr(0, end), ' ');
  std::erase(words, "");
  return words;
}

bool exists_here(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0;
}

}  // namespace

std::int64_t read_time_span(std::string_view text) {
  static const std::map<std::string_view, std::int64_t> units = {{"us", 1000},
                                                                 {"ms", 1'000'000},
                                                                 {"s", kSecond},
                                                                 {"min", 60 * kSecond},
                                                                 {"h", 3600 * kSecond},
                                                                 {"d", 24 * 3600 * kSecond},
                                                                 {"w", 7 * 24 * 3600 * kSecond}};
  std::int64_t total = 0;
  for (const std::string& word : split(text, ' ')) {
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    const auto unit = units.find(std::string_view(end, static_cast<std::size_t>(word.data() + word.size() - end)));
    if (error != std::errc() || unit == units.end()) return 0;
    constexpr double kMost = 365.0 * 24 * 3600 * kSecond;
    const double span = number * static_cast<double>(unit->second);
    if (!(span >= 0 && span <= kMost)) return 0;  // also refuses what is not a number
    total += static_cast<std::int64_t>(span);
    if (total > static_cast<std::int64_t>(kMost)) return 0;
  }
  return total;
}

Unit read_unit(std::string_view text) {
  std::map<std::string, std::string> values;
  Unit unit;
  each_line(text, [&](std::string_view line) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return;
    const std::string key(line.substr(0, equals));
    const std::string value(line.substr(equals + 1));
    // "/etc/default/x (ignore_errors=yes)", one per line.
    if (key == "EnvironmentFiles" && !value.empty())
      unit.environment_files.push_back(value.substr(0, value.find(" (")));
    values.emplace(key, value);  // the first of several ExecStart
  });
  unit.name = values["Id"];
  unit.command = read_exec(values["ExecStart"]);
  unit.restart = values["Restart"];
  unit.restart_delay_ns = read_time_span(values["RestartUSec"]);
  const std::string burst = values["StartLimitBurst"];
  std::from_chars(burst.data(), burst.data() + burst.size(), unit.restarts);
  unit.pid_file = values["PIDFile"];
  for (const auto& [key, top] : {std::pair{"StateDirectory", "/var/lib/"},
                                 {"CacheDirectory", "/var/cache/"},
                                 {"LogsDirectory", "/var/log/"},
                                 {"RuntimeDirectory", "/run/"}})
    for (const std::string& name : split(values[key], ' '))
      if (!name.empty() && name.find("..") == std::string::npos) unit.folders.push_back(top + name);
  return unit;
}

std::optional<Unit> ask_unit(const std::string& name) {
  const auto answer = run_command({"systemctl", "show",
                                   "--property=Id,ExecStart,Restart,RestartUSec,StartLimitBurst,PIDFile,StateDirectory,"
                                   "CacheDirectory,LogsDirectory,"
                                   "RuntimeDirectory,EnvironmentFiles",
                                   "--", name},
                                  {}, kAskUnitTimeout);
  if (!answer || answer->exit_code != 0) {
    log::debug("systemctl reports nothing about {}: {}", name,
               answer ? answer->err.substr(0, 200) : answer.error().message);
    return std::nullopt;
  }
  Unit unit = read_unit(answer->out);
  if (unit.name.empty()) return std::nullopt;
  std::erase_if(unit.folders, [](const std::string& path) { return !exists_here(path); });
  if (!unit.pid_file.empty() && !exists_here(unit.pid_file)) unit.pid_file.clear();
  return unit;
}

}  // namespace rose::draft
