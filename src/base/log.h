// Messages for the user, on stderr, one write each. Results never go through this header.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace rose::log {

enum class Level { quiet, normal, verbose };

void set_level(Level level);
[[nodiscard]] Level level();

// Prints "rose: TEXT" unless --quiet is given.
void info(std::string_view text);
// Prints "rose: warning: TEXT", even with --quiet.
void warning(std::string_view text);
// Prints "rose: error: TEXT" and "rose: hint: HINT".
void error(std::string_view text, std::string_view hint = {});
// Printed only with --verbose, but always kept for the report of ROSE_BUG.
void debug(std::string_view text);

// Shows progress unless --quiet is given. On a terminal, each line overwrites the previous one. Elsewhere, lines are
// printed one after another, and a line that equals the previous one is dropped.
void progress(std::string_view text);
// Ends the line that progress() overwrites, so that later output starts on a new line.
void end_progress();

// True if this is the first call with this text in this process; false for all texts after the first few thousand. A
// command makes many runs, and a message that is the same in each of them is printed once.
[[nodiscard]] bool is_first_report(const std::string& what);
// Prints a warning if is_first_report() is true for its text.
void warn_once(const std::string& text);

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
