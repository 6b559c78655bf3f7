#include "logs/line/continuation.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/begins_with.h"
#include "logs/line/chars.h"
#include "logs/line/tokens.h"

namespace rose::logs {
namespace {

// True for the name of an exception: "java.io.IOException", "OSError", "kafka.common.errors.TimeoutException",
// "std::bad_alloc".
bool exception_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestName || !(is_alpha(name[0]))) return false;
  for (const char c : name) {
    if (!is_alpha(c) && !is_digit(c) && c != '.' && c != '_' && c != '$' && c != ':') return false;
  }
  return name.ends_with("Exception") || name.ends_with("Error") || name.ends_with("Throwable") ||
         name.ends_with("Interrupt") || name.ends_with("Failure") || name.ends_with("Timeout") ||
         name.ends_with("Exit") || name.ends_with("::bad_alloc");
}

// Reads a word and the blanks after it. `blanks`: the fewest blanks that separate columns.
std::string_view take_column(std::string_view& line, std::size_t blanks) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  const std::size_t next = std::min(line.find_first_not_of(' ', end), line.size());
  if (next - end < blanks) return {};
  line.remove_prefix(next);
  return word;
}

// True for an event in the output of `kubectl describe` and `kubectl get events`, whose rows may be indented:
// "  Warning  BackOff  102s (x54 over 17m)  kubelet  message".
bool is_event_row(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view kind = take_column(line, 2);
  if (kind != "Normal" && kind != "Warning") return false;
  const std::string_view reason = take_column(line, 2);
  return !reason.empty() && reason[0] >= 'A' && reason[0] <= 'Z' && !line.empty() &&
         (is_digit(line[0]) || line.starts_with("<unknown>") || line.starts_with("<invalid>"));
}

// True for a numbered frame of a native stack trace: "3. 0x9044c6f DB::Part::remove() in /usr/bin/x",
// "3. DB::Part::remove() @ 0x0000000009044c6f", "#3 0x00007f1 in main () at x.c:7", "#3: 0x55d1 x + 0x40".
bool is_numbered_frame(std::string_view line) {
  constexpr std::size_t kMostDigits = 3;
  if (line.starts_with('#')) line.remove_prefix(1);
  const std::size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
  if (digits == 0 || digits > kMostDigits) return false;
  line.remove_prefix(digits);
  if (line.starts_with('.') || line.starts_with(':')) line.remove_prefix(1);
  const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
  if (blanks == 0) return false;
  return line.substr(blanks).starts_with("0x") || line.find(" @ 0x") != std::string_view::npos;
}

}  // namespace

bool names_exception(std::string_view line) {
  while (!line.empty() && blank_char(line.front())) line.remove_prefix(1);
  if (line.starts_with("Caused by: ") || line.starts_with("Suppressed: ") || line.starts_with("Exception in thread ") ||
      line.starts_with("Wrapped by: "))
    return true;
  const std::size_t end = std::min(line.find(": "), line.size());
  std::string_view name = line.substr(0, end);
  if (name.ends_with(':')) name.remove_suffix(1);
  return exception_name(name);
}

bool begins_by_itself(std::string_view line) {
  static constexpr std::array kBeginnings = std::to_array<std::string_view>({"panic: ",
                                                                             "fatal error: ",
                                                                             "runtime: ",
                                                                             "terminate called",
                                                                             "Segmentation fault",
                                                                             "Aborted",
                                                                             "Bus error",
                                                                             "Killed",
                                                                             "Illegal instruction",
                                                                             "*** ",
                                                                             "double free",
                                                                             "free(): ",
                                                                             "malloc(): ",
                                                                             "corrupted ",
                                                                             "thread '",
                                                                             "Exception in thread ",
                                                                             "Traceback (most recent call last)",
                                                                             "Fatal Python error",
                                                                             "Assertion failed",
                                                                             "SUMMARY: ",
                                                                             "==",
                                                                             "OpenJDK ",
                                                                             "# A fatal error",
                                                                             "java.lang.OutOfMemoryError",
                                                                             "Uncaught ",
                                                                             "unexpected fault address",
                                                                             "SIGSEGV",
                                                                             "SIGABRT",
                                                                             "WARNING: DATA RACE",
                                                                             "Error: ",
                                                                             "error: ",
                                                                             "ERROR: ",
                                                                             "FATAL: "});
  if (begins_with_any(line, kBeginnings) || is_event_row(line)) return true;
  return line.find(": Assertion `") != std::string_view::npos;
}

bool looks_like_rest(std::string_view line) {
  if (line.empty()) return true;
  if (is_event_row(line)) return false;
  if (is_numbered_frame(line)) return true;
  if (blank_char(line[0])) return true;
  static constexpr std::array kBeginnings = std::to_array<std::string_view>(
      {"at ", "Caused by: ", "Suppressed: ", "... ", "}", ")", "]", "goroutine ", "created by ",
       "Wrapped by: ", "During handling of the above", "The above exception was",
       "stack backtrace:", "note: ", "[signal ", "File \"", "main.", "runtime.", "exit status"});
  if (begins_with_any(line, kBeginnings)) return true;
  return names_exception(line) && !line.starts_with("Exception in thread");
}

}  // namespace rose::logs
