// How lines of a log are laid out: each form takes a line apart into time, level, thread, logger and text. A file's
// form is chosen by what most of its first lines fit; forms may be nested once (a container's JSON around a server's
// own lines). What stands in no form is text: of the message before it where it looks like the rest of one, else of its
// own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "logs/line/times.h"

namespace rose::logs {

enum class Level : std::uint8_t { none, trace, debug, info, notice, warning, error, fatal };
[[nodiscard]] std::string_view level_name(Level level);  // "warning"; "" for none
// "WARN", "warning", "WRN", "E": what logs write for it; none when it is no level.
[[nodiscard]] Level level_of(std::string_view word);

// Views into the line, or into the form's own buffers: valid until the next line is taken.
struct Parts {
  std::optional<TimeStamp> time;
  Level level = Level::none;
  std::string_view thread;  // as written; a number says little about another run
  std::string_view logger;
  std::string_view host;
  std::string_view text;
};

// From rose.toml, where no form fits.
struct CustomForm {
  std::string files = "*";  // a glob on the file's path
  std::string
      pattern;       // RE2 with groups named time, level, thread, logger, host, message; "": only time and zone count
  std::string time;  // strftime's letters; "": the time is recognised
  std::optional<std::int64_t> zone_ns;  // of times that say none
};
// What is wrong with the pattern: "" when it can be used.
[[nodiscard]] std::string pattern_problem(const std::string& pattern);

enum class Took {
  message,  // a message begins
  rest,     // a further line of the message before
  joined,   // the same line goes on: a container's log had cut it
  nothing,  // an empty line, a separator
};

using IsNode = std::function<bool(std::string_view host)>;

class Form {
 public:
  // The form that fits most lines of `sample`, the file's first lines. `custom` may be nullptr. `is_node` tells whether
  // a host's name is that of a node; it may be empty.
  [[nodiscard]] static Form choose(std::span<const std::string> sample, const CustomForm* custom = nullptr,
                                   const IsNode& is_node = {});
  Form(Form&&) noexcept;
  Form& operator=(Form&&) noexcept;
  ~Form();

  [[nodiscard]] Took take(std::string_view line, Parts& parts);

  // "docker's JSON around lines of 'time [thread] level logger - message'".
  [[nodiscard]] std::string words() const;
  // The journal's export form is read by fields, not by lines: the reader does that.
  [[nodiscard]] bool is_journal_export() const;
  // Takes apart what a journal entry's MESSAGE says.
  [[nodiscard]] Took take_inner(std::string_view text, Parts& parts);

  struct Inner;

 private:
  Form();
  std::unique_ptr<Inner> inner_;
};

}  // namespace rose::logs
