// The layout of log lines. A form splits a line into time, level, thread, logger and text. The form of a file is the
// one that most of its first lines fit. Layers, such as a container's JSON around a server's own lines, are removed
// first. A line that fits no form continues the message before it if it looks like a continuation; otherwise it is a
// separate message.
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
#include "logs/line/level.h"
#include "logs/line/times.h"

namespace rose::logs {

// Views into the line or into the form's buffers. They are valid until the next line is read.
struct Parts {
  std::optional<TimeStamp> time;
  Level level = Level::none;
  std::string_view thread;  // as written in the line; a number does not identify the thread in another run
  std::string_view logger;
  std::string_view host;
  std::string_view text;
};

// A form given in rose.toml, for files that no built-in form fits.
struct CustomForm {
  std::string files = "*";  // a glob that the file's path must match
  std::string
      pattern;  // RE2 with groups named time, level, thread, logger, host, message; "": only time and zone are used
  std::string time;                     // format with strftime's conversions; "": the time is recognised automatically
  std::optional<std::int64_t> zone_ns;  // ns east of Greenwich, for times without a zone
};
// The reason why the pattern cannot be used; "" if it can.
[[nodiscard]] std::string pattern_problem(const std::string& pattern);

enum class LineRole {
  message,  // the line begins a message
  rest,     // the line continues the message before it
  joined,   // the line is the rest of a line that the log of the container had split
  nothing,  // the line is empty or a separator
};

using IsNode = std::function<bool(std::string_view host)>;

class Form {
 public:
  // The form that fits most lines of `sample`, which are the first lines of the file. `custom` may be nullptr.
  // `is_node` returns true for the host name of a node; it may be an empty function object.
  [[nodiscard]] static Form choose(std::span<const std::string> sample, const CustomForm* custom = nullptr,
                                   const IsNode& is_node = {});
  Form(Form&&) noexcept;
  Form& operator=(Form&&) noexcept;
  ~Form();

  // Parses the next line of the file into `parts`.
  [[nodiscard]] LineRole take(std::string_view line, Parts& parts);

  // Describes the form in words: "docker's JSON around lines of 'time [thread] level logger - message'".
  [[nodiscard]] std::string words() const;
  // True for the journal's export format. The reader must then parse the fields itself, because the format does not
  // consist of lines.
  [[nodiscard]] bool is_journal_export() const;
  // Parses the MESSAGE field of a journal entry.
  [[nodiscard]] LineRole take_inner(std::string_view text, Parts& parts);

  struct Inner;

 private:
  Form();
  std::unique_ptr<Inner> inner_;
};

}  // namespace rose::logs
