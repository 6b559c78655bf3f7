// Messages for people, on stderr, one write each. Results never go through here.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace rose::log {

enum class Level { quiet, normal, verbose };

void set_level(Level level);
[[nodiscard]] Level level();

// "rose: <text>"; hidden by --quiet.
void info(std::string_view text);
// "rose: warning: <text>"; always shown.
void warning(std::string_view text);
// "rose: error: <text>" and "rose: hint: <hint>".
void error(std::string_view text, std::string_view hint = {});
// Shown with --verbose; always remembered for ROSE_BUG.
void debug(std::string_view text);

// A live line on a terminal (overwritten by the next one), a plain line otherwise; hidden by
// --quiet. Off a terminal, a line equal to the last one is not repeated.
void progress(std::string_view text);
// Ends the live line, so that what follows starts on a line of its own.
void end_progress();

// The last few messages, oldest first.
[[nodiscard]] std::vector<std::string> recent();

template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args)
  requires(sizeof...(Args) > 0)
{
  info(std::string_view(fmt::format(format, std::forward<Args>(args)...)));
}
template <typename... Args>
void warning(fmt::format_string<Args...> format, Args&&... args)
  requires(sizeof...(Args) > 0)
{
  warning(std::string_view(fmt::format(format, std::forward<Args>(args)...)));
}
template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args)
  requires(sizeof...(Args) > 0)
{
  debug(std::string_view(fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace rose::log
