#include "logs/line/level.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"

namespace rose::logs {
namespace {

struct LevelWord {
  std::string_view word;
  Level level;
};
constexpr std::array kLevelWords = std::to_array<LevelWord>({
    {"info", Level::info},
    {"warn", Level::warning},
    {"error", Level::error},
    {"debug", Level::debug},
    {"warning", Level::warning},
    {"err", Level::error},
    {"fatal", Level::fatal},
    {"trace", Level::trace},
    {"notice", Level::notice},
    {"note", Level::notice},
    {"critical", Level::fatal},
    {"crit", Level::fatal},
    {"severe", Level::error},
    {"emerg", Level::fatal},
    {"alert", Level::fatal},
    {"panic", Level::fatal},
    {"inf", Level::info},
    {"wrn", Level::warning},
    {"dbg", Level::debug},
    {"trc", Level::trace},
    {"ftl", Level::fatal},
    {"information", Level::info},
    {"fine", Level::debug},
    {"finer", Level::debug},
    {"finest", Level::trace},
    {"config", Level::info},
    {"system", Level::notice},
    {"emergency", Level::fatal},
    {"verbose", Level::debug},
    {"dpanic", Level::fatal},
    {"pnc", Level::fatal},
    {"dbug", Level::debug},
    {"eror", Level::error},
    {"grave", Level::error},
    {"infos", Level::info},
    {"advertencia", Level::warning},
    {"warnung", Level::warning},
    {"i", Level::info},
    {"w", Level::warning},
    {"e", Level::error},
    {"d", Level::debug},
    {"f", Level::fatal},
    {"t", Level::trace},
    {"v", Level::debug},
    {"n", Level::notice},
    // java.util.logging writes levels in the language of the machine.
    {"schwerwiegend", Level::error},
    {"avertissement", Level::warning},
    {"avvertenza", Level::warning},
    {"informazioni", Level::info},
    {"konfiguration", Level::info},
    {"fein", Level::debug},
    {"feiner", Level::debug},
    {"información", Level::info},
    {"informaciÓn", Level::info},
    {"advertência", Level::warning},
    {"advertÊncia", Level::warning},
    {"aviso", Level::warning},
    {"informações", Level::info},
    {"informaÇÕes", Level::info},
    {"allvarlig", Level::error},
    {"varning", Level::warning},
    {"重大", Level::error},
    {"致命的", Level::error},
    {"警告", Level::warning},
    {"情報", Level::info},
    {"構成", Level::info},
    {"严重", Level::error},
    {"信息", Level::info},
    {"配置", Level::info},
    {"嚴重", Level::error},
    {"資訊", Level::info},
    {"심각", Level::error},
    {"경고", Level::warning},
    {"정보", Level::info},
});
constexpr std::size_t kLongestWord = 15;  // in bytes

}  // namespace

std::string_view level_name(Level level) {
  constexpr std::array<std::string_view, 8> kNames = {"",       "trace",   "debug", "info",
                                                      "notice", "warning", "error", "fatal"};
  return kNames[static_cast<std::size_t>(level)];
}

Level level_of(std::string_view word) {
  const auto of_word = [](char c) { return is_alpha(c) || (static_cast<unsigned char>(c) & 0x80) != 0; };
  if (word.empty() || word.size() > kLongestWord || !of_word(word[0])) return Level::none;
  std::array<char, kLongestWord> low{};
  std::transform(word.begin(), word.end(), low.begin(), [](char c) { return lower_case(c); });
  const std::string_view wanted(low.data(), word.size());
  for (const LevelWord& level_word : kLevelWords) {
    if (level_word.word == wanted) return level_word.level;
  }
  return Level::none;
}

Level level_of_severity(int severity) {
  constexpr std::array kLevels = {Level::fatal,   Level::fatal,  Level::fatal, Level::error,
                                  Level::warning, Level::notice, Level::info,  Level::debug};
  return kLevels[static_cast<std::size_t>(std::clamp(severity, 0, 7))];
}

}  // namespace rose::logs
