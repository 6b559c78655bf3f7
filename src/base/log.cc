#include "base/log.h"

#include <unistd.h>

#include <deque>
#include <mutex>
#include <set>

#include "base/text.h"

namespace rose::log {
namespace {

constexpr std::size_t kRemembered = 32;

struct State {
  std::mutex mutex;
  Level level = Level::normal;
  bool live_line = false;
  std::string last_progress;
  std::deque<std::string> recent;
};

State& state() {
  static State instance;
  return instance;
}

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0) return;  // stderr is closed, so the message cannot be reported anywhere
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// Messages contain names and output of other programs. Terminal control sequences in them are escaped. After a newline,
// such text could look like a separate message of rose, so a further line that begins with "rose: " is indented.
std::string harmless(std::string_view text) {
  std::string out;
  for (;;) {
    const std::size_t end = text.find('\n');
    if (!out.empty() && text.starts_with("rose: ")) out += "  ";
    out += printable(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

// The caller holds the mutex and has made the line harmless.
void emit(State& s, const std::string& line, bool show) {
  s.recent.push_back(line);
  if (s.recent.size() > kRemembered) s.recent.pop_front();
  if (!show) return;
  std::string out = s.live_line ? "\r\033[K" : "";
  s.live_line = false;
  write_all(out + line + "\n");
}

}  // namespace

void set_level(Level level) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.level = level;
}

Level level() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return s.level;
}

void info(std::string_view text) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  emit(s, harmless(fmt::format("rose: {}", text)), s.level != Level::quiet);
}

void warning(std::string_view text) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  emit(s, harmless(fmt::format("rose: warning: {}", text)), true);
}

void error(std::string_view text, std::string_view hint) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  std::string line = harmless(fmt::format("rose: error: {}", text));
  if (!hint.empty()) line += "\n" + harmless(fmt::format("rose: hint: {}", hint));
  emit(s, line, true);
}

void debug(std::string_view text) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  emit(s, harmless(fmt::format("rose: {}", text)), s.level == Level::verbose);
}

bool is_first_report(const std::string& what) {
  constexpr std::size_t kMost = 4096;
  static std::mutex mutex;
  static std::set<std::string> reported;
  const std::lock_guard lock(mutex);
  return reported.size() < kMost && reported.insert(what).second;
}

void warn_once(const std::string& text) {
  if (is_first_report(text)) warning(std::string_view(text));
}

void progress(std::string_view text) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (s.level == Level::quiet || text == s.last_progress) return;
  s.last_progress = text;
  if (::isatty(STDERR_FILENO) == 0) {
    write_all(fmt::format("rose: {}\n", printable(text)));
    return;
  }
  write_all(fmt::format("\r\033[Krose: {}", printable(text)));
  s.live_line = true;
}

void end_progress() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (s.live_line) write_all("\n");
  s.live_line = false;
}

std::vector<std::string> recent() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return {s.recent.begin(), s.recent.end()};
}

}  // namespace rose::log
