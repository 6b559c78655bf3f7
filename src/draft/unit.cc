#include "draft/unit.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/ascii.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/units.h"
#include "draft/net_tables.h"

namespace rose::draft {
namespace {

constexpr std::int64_t kAskUnitTimeout = 10 * kSecond;

// Returns the words of argv[] in a text such as "{ path=/usr/bin/x ; argv[]=/usr/bin/x --a b ; ignore_errors=no ; ...
// }".
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

// Returns the names in assignments as systemd prints them: NAME and OTHER in the text NAME=value "OTHER=two words".
std::vector<std::string> assigned_names(std::string_view text) {
  std::vector<std::string> names;
  bool quoted = false;
  bool begins = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') ++i;
    else if (text[i] == '"') quoted = !quoted;
    else if (text[i] == ' ' && !quoted) begins = true;
    else if (begins) {
      const std::size_t equals = text.find('=', i);
      if (equals == std::string_view::npos) break;
      names.emplace_back(text.substr(i, equals - i));
      i = equals;
      begins = false;
    }
  }
  return names;
}

// Adds the names that an environment file sets. If the path is a pattern, nothing is read.
void add_names_of_file(const std::string& path, std::vector<std::string>& names) {
  constexpr std::size_t kMostBytes = 1 << 20;
  const auto text = read_file(path, kMostBytes);
  if (!text) return;
  each_line(*text, [&](std::string_view line) {
    const std::size_t begin = line.find_first_not_of(" \t");
    const std::size_t equals = line.find('=');
    if (begin == std::string_view::npos || equals == std::string_view::npos || line[begin] == '#' || equals <= begin)
      return;
    names.emplace_back(line.substr(begin, equals - begin));
  });
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
    if (!(span >= 0 && span <= kMost)) return 0;  // this form also refuses NaN, for which every comparison is false
    total += static_cast<std::int64_t>(span);
    if (total > static_cast<std::int64_t>(kMost)) return 0;
  }
  return total;
}

std::vector<std::string> read_exact_command(std::string_view text) {
  std::vector<std::string> words;
  try {
    const Json json = Json::parse(text);
    for (const Json& word : json.at("data").at(0).at(1)) words.push_back(word.get<std::string>());
  } catch (const Json::exception&) {
    return {};
  }
  return words;
}

std::vector<std::string> expand_word(const std::string& word, const Variables& variables) {
  const auto names = [](std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return is_alpha(c) || is_digit(c) || c == '_'; });
  };
  if (word.size() > 1 && word.front() == '$' && names(std::string_view(word).substr(1))) {
    std::vector<std::string> words = split(value_of(variables, std::string_view(word).substr(1)), ' ');
    std::erase(words, "");
    return words;
  }
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const std::size_t end = word.compare(i, 2, "${") == 0 ? word.find('}', i) : std::string::npos;
    if (end != std::string::npos && names(std::string_view(word).substr(i + 2, end - i - 2))) {
      out += value_of(variables, std::string_view(word).substr(i + 2, end - i - 2));
      i = end;
    } else {
      out += word[i];
      if (word.compare(i, 2, "$$") == 0) ++i;
    }
  }
  return {out};
}

Unit read_unit(std::string_view text) {
  std::map<std::string, std::string> values;
  Unit unit;
  each_line(text, [&](std::string_view line) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return;
    const std::string key(line.substr(0, equals));
    const std::string value(line.substr(equals + 1));
    // Each file has a line of its own, with a value such as "/etc/default/x (ignore_errors=yes)".
    if (key == "EnvironmentFiles" && !value.empty())
      unit.environment_files.push_back(value.substr(0, value.find(" (")));
    if (key == "ExecStartPre")
      if (const std::vector<std::string> words = read_exec(value); !words.empty())
        unit.before.push_back(fmt::format("{}", fmt::join(words, " ")));
    values.emplace(key, value);  // keeps the first of several ExecStart lines
  });
  unit.name = values["Id"];
  unit.command = read_exec(values["ExecStart"]);
  unit.restart = values["Restart"];
  unit.restart_delay_ns = read_time_span(values["RestartUSec"]);
  const std::string burst = values["StartLimitBurst"];
  std::from_chars(burst.data(), burst.data() + burst.size(), unit.restarts);
  unit.pid_file = values["PIDFile"];
  unit.variables = assigned_names(values["Environment"]);
  for (const std::string& name : split(values["TriggeredBy"], ' '))
    if (name.ends_with(".socket")) unit.sockets.push_back(name);
  unit.done = values["ActiveState"] == "active" && values["MainPID"] == "0" && values["Type"] == "oneshot";
  for (const auto& [key, top] : {std::pair{"StateDirectory", "/var/lib/"},
                                 {"CacheDirectory", "/var/cache/"},
                                 {"LogsDirectory", "/var/log/"},
                                 {"RuntimeDirectory", "/run/"}})
    for (const std::string& name : split(values[key], ' '))
      if (!name.empty() && name.find("..") == std::string::npos) unit.folders.push_back(top + name);
  return unit;
}

namespace {

// The unit's path on D-Bus. A byte that is neither a letter nor a digit is written as '_' and two hexadecimal digits:
// '.' becomes "_2e".
std::string object_path(const std::string& unit) {
  std::string path = "/org/freedesktop/systemd1/unit/";
  for (const char c : unit)
    path += is_alpha(c) || is_digit(c) ? std::string(1, c) : fmt::format("_{:02x}", static_cast<unsigned char>(c));
  return path;
}

}  // namespace

std::optional<Unit> ask_unit(const std::string& name) {
  const auto answer = run_command({"systemctl", "show",
                                   "--property=Id,ExecStart,Restart,RestartUSec,StartLimitBurst,PIDFile,StateDirectory,"
                                   "CacheDirectory,LogsDirectory,RuntimeDirectory,EnvironmentFiles,Environment,"
                                   "ExecStartPre,TriggeredBy,ActiveState,MainPID,Type",
                                   "--", name},
                                  {}, kAskUnitTimeout);
  if (!answer || answer->exit_code != 0) {
    log::debug("systemctl reports nothing about {}: {}", name,
               answer ? answer->err.substr(0, 200) : answer.error().message);
    return std::nullopt;
  }
  Unit unit = read_unit(answer->out);
  if (unit.name.empty()) return std::nullopt;
  if (!unit.command.empty()) {
    const auto exact = run_command({"busctl", "--json=short", "get-property", "org.freedesktop.systemd1",
                                    object_path(unit.name), "org.freedesktop.systemd1.Service", "ExecStart"},
                                   {}, kAskUnitTimeout);
    if (exact && exact->exit_code == 0)
      if (std::vector<std::string> words = read_exact_command(exact->out); !words.empty()) {
        unit.command = std::move(words);
        unit.exact = true;
      }
  }
  for (const std::string& file : unit.environment_files) add_names_of_file(file, unit.variables);
  std::erase_if(unit.folders, [](const std::string& path) { return !exists_here(path); });
  if (!unit.pid_file.empty() && !exists_here(unit.pid_file)) unit.pid_file.clear();
  return unit;
}

}  // namespace rose::draft
