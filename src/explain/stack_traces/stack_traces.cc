#include "explain/stack_traces/stack_traces.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/text.h"
#include "base/trim.h"
#include "logs/thrown.h"

namespace rose::explain {
namespace {

int line_number(std::string_view text) {
  int line = 0;
  std::from_chars(text.data(), text.data() + text.size(), line);
  return std::max(line, 0);
}

std::vector<schedule::Frame> java(std::string_view text) {
  std::vector<schedule::Frame> out;
  const std::vector<logs::StackTrace> traces = logs::read_traces(text);
  if (traces.empty() || traces.front().empty()) return out;
  for (const logs::Frame& one : traces.front().back().frames) {
    if (out.size() == kMostTraceFrames) break;
    schedule::Frame frame;
    frame.function = one.class_name + "." + one.method;
    frame.file = one.file;
    frame.line = static_cast<int>(one.line);
    out.push_back(std::move(frame));
  }
  return out;
}

// Lines such as ` File "x.py", line 12, in f`, the innermost function last.
std::vector<schedule::Frame> python(const std::vector<std::string>& lines) {
  std::vector<schedule::Frame> out;
  bool begun = false;
  for (const std::string& each : lines) {
    const std::string_view line = trimmed(each);
    if (line.find("Traceback (most recent call last)") != std::string_view::npos) {
      if (begun) break;  // text that follows the trace
      begun = true;
    }
    if (!begun || !line.starts_with("File \"")) continue;
    const std::size_t end = line.find('"', 6), number = line.find(", line "), in = line.find(", in ");
    if (end == std::string_view::npos || number == std::string_view::npos || in == std::string_view::npos ||
        in < number)
      continue;
    schedule::Frame frame;
    frame.file = line.substr(6, end - 6);
    frame.line = line_number(line.substr(number + 7));
    frame.function = line.substr(in + 5);
    if (frame.function == "<module>") frame.function = "main";
    out.push_back(std::move(frame));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

// Pairs of lines such as `main.(*shelf).put(0x1, ...)` and `\t/src/shelf.go:12 +0x1d`. Only the first goroutine is
// read.
std::vector<schedule::Frame> go(const std::vector<std::string>& lines) {
  std::vector<schedule::Frame> out;
  bool begun = false;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    const std::string_view line = trimmed(lines[i]);
    if (line.starts_with("goroutine ") && line.ends_with("]:")) {
      if (begun) break;
      begun = true;
      continue;
    }
    const std::string_view place = trimmed(lines[i + 1]);
    const std::size_t colon = place.find(".go:"), arguments = line.rfind('(');
    if (!begun || colon == 0 || colon == std::string_view::npos || arguments == std::string_view::npos ||
        arguments == 0)
      continue;
    schedule::Frame frame;
    frame.function = line.substr(0, arguments);
    if (frame.function.starts_with("created by ")) break;
    frame.file = place.substr(0, colon + 3);
    frame.line = line_number(place.substr(colon + 4));
    if (frame.function != "panic") out.push_back(std::move(frame));
    ++i;
  }
  return out;
}

// Reads the file and the line from "/srv/store.js:41:8" or "/srv/store.js:41".
bool set_place(std::string_view text, schedule::Frame& frame) {
  const std::size_t last = text.rfind(':');
  if (last == std::string_view::npos || line_number(text.substr(last + 1)) == 0) return false;
  const std::string_view before = text.substr(0, last);
  const std::size_t colon = before.rfind(':');
  const bool column = colon != std::string_view::npos && line_number(before.substr(colon + 1)) > 0;
  frame.file = column ? before.substr(0, colon) : before;
  frame.line = line_number(column ? before.substr(colon + 1) : text.substr(last + 1));
  return !frame.file.empty() && frame.file.find_first_of(" ()\t") == std::string::npos;
}

// Lines such as ` at async Store.save (/srv/store.js:41:8)`. If a function has no name, the line contains only the
// place.
std::vector<schedule::Frame> javascript(const std::vector<std::string>& lines) {
  std::vector<schedule::Frame> out;
  for (const std::string& each : lines) {
    std::string_view line = trimmed(each);
    if (!line.starts_with("at ")) {
      if (!out.empty()) break;  // text that follows the trace, or the error's own fields
      continue;
    }
    line.remove_prefix(3);
    for (const std::string_view word : {"async ", "new "})
      if (line.starts_with(word)) line.remove_prefix(word.size());
    schedule::Frame frame;
    const std::size_t open = line.rfind(" (");
    const bool named = open != std::string_view::npos && line.ends_with(')');
    if (!set_place(named ? line.substr(open + 2, line.size() - open - 3) : line, frame)) continue;
    if (frame.file.starts_with("file://")) frame.file.erase(0, 7);
    if (frame.file.starts_with("node:") || frame.file.starts_with("internal/")) continue;  // a frame of the runtime
    if (named) frame.function = line.substr(0, std::min(line.find(" [as "), open));
    if (!named || frame.function == "Object.<anonymous>" || frame.function == "<anonymous>")
      frame.function = frame.file.substr(frame.file.rfind('/') + 1) + ":" + std::to_string(frame.line);
    out.push_back(std::move(frame));
  }
  return out;
}

// Lines such as `   at Shop.Store.Save(String path) in /srv/Store.cs:line 42`. Frames of the runtime have no position.
std::vector<schedule::Frame> dotnet(const std::vector<std::string>& lines) {
  std::vector<schedule::Frame> out;
  for (const std::string& each : lines) {
    const std::string_view line = trimmed(each);
    const std::size_t open = line.find('('), in = line.find(") in "), number = line.rfind(":line ");
    if (!line.starts_with("at ") || open == std::string_view::npos || in == std::string_view::npos ||
        number == std::string_view::npos || open > in || in + 5 > number)
      continue;
    schedule::Frame frame;
    frame.function = line.substr(3, open - 3);
    frame.file = line.substr(in + 5, number - in - 5);
    frame.line = line_number(line.substr(number + 6));
    if (!frame.function.empty() && frame.line > 0) out.push_back(std::move(frame));
  }
  return out;
}

// Lines such as "/srv/store.rb:41:in `save': no space (Errno::ENOSPC)" and `\tfrom /srv/store.rb:12:in 'Store#put'`.
std::vector<schedule::Frame> ruby(const std::vector<std::string>& lines) {
  std::vector<schedule::Frame> out;
  for (const std::string& each : lines) {
    std::string_view line = trimmed(each);
    if (line.starts_with("from ")) line.remove_prefix(5);
    std::size_t in = line.find(":in ");
    if (in != std::string_view::npos && in > 0)
      if (const std::size_t space = line.rfind(' ', in - 1); space != std::string_view::npos)
        line.remove_prefix(space + 1), in -= space + 1;  // text of the message before the trace
    const std::size_t quote = in == std::string_view::npos ? in : in + 4;
    schedule::Frame frame;
    if (in == std::string_view::npos || quote >= line.size() || (line[quote] != '`' && line[quote] != '\'') ||
        !set_place(line.substr(0, in), frame) || !frame.file.ends_with(".rb")) {
      if (!out.empty()) break;
      continue;
    }
    const std::size_t end = line.find('\'', quote + 1);
    if (end == std::string_view::npos) continue;
    frame.function = line.substr(quote + 1, end - quote - 1);
    for (const std::string_view within : {"block in ", "rescue in ", "ensure in "})
      while (frame.function.starts_with(within)) frame.function.erase(0, within.size());
    if (frame.function == "<main>" || frame.function == "<top (required)>") frame.function = "main";
    out.push_back(std::move(frame));
  }
  return out;
}

// Pairs of lines such as `   2: shelf::put::h0123456789abcdef` and `at ./src/main.rs:12:5`.
std::vector<schedule::Frame> rust(const std::vector<std::string>& lines) {
  std::vector<schedule::Frame> out;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    const std::string_view line = trimmed(lines[i]);
    std::string_view place = trimmed(lines[i + 1]);
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos || colon == 0 || line.find_first_not_of("0123456789") != colon ||
        !place.starts_with("at "))
      continue;
    place.remove_prefix(3);
    schedule::Frame frame;
    frame.function = line.substr(colon + 2);
    constexpr std::size_t kHash = 19;  // "::h" and sixteen digits
    if (const std::size_t hash = frame.function.rfind("::h");
        hash != std::string::npos && hash + kHash == frame.function.size())
      frame.function.resize(hash);
    if (set_place(place, frame)) out.push_back(std::move(frame));
    ++i;
  }
  return out;
}

}  // namespace

std::vector<schedule::Frame> read_stack_trace(std::string_view text) {
  if (std::vector<schedule::Frame> frames = java(text); !frames.empty()) return frames;
  struct Form {
    std::string_view sign;  // identifies a trace of this language
    std::vector<schedule::Frame> (*read)(const std::vector<std::string>&);
  };
  static constexpr Form kForms[] = {{"Traceback (most recent call last)", python},
                                    {"goroutine ", go},
                                    {":line ", dotnet},
                                    {"stack backtrace:", rust},
                                    {"    at ", javascript},
                                    {".rb:", ruby}};
  std::vector<std::string> lines;
  for (const Form& form : kForms) {
    if (text.find(form.sign) == std::string_view::npos) continue;
    if (lines.empty()) lines = split(text, '\n');
    std::vector<schedule::Frame> frames = form.read(lines);
    std::erase_if(frames, [](const schedule::Frame& frame) { return frame.function.empty(); });
    if (frames.size() > kMostTraceFrames) frames.resize(kMostTraceFrames);
    if (!frames.empty()) return frames;
  }
  return {};
}

}  // namespace rose::explain
