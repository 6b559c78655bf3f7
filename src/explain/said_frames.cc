#include "explain/said_frames.h"

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
    if (out.size() == kMostSaidFrames) break;
    schedule::Frame frame;
    frame.function = one.class_name + "." + one.method;
    frame.file = one.file;
    frame.line = static_cast<int>(one.line);
    out.push_back(std::move(frame));
  }
  return out;
}

// `  File "x.py", line 12, in f`, the innermost last.
std::vector<schedule::Frame> python(const std::vector<std::string>& lines) {
  std::vector<schedule::Frame> out;
  bool begun = false;
  for (const std::string& each : lines) {
    const std::string_view line = trimmed(each);
    if (line.starts_with("Traceback (most recent call last)")) {
      if (begun) break;  // what came of it
      begun = true;
    }
    if (!begun || !line.starts_with("File \"")) continue;
    const std::size_t end = line.find('"', 6), number = line.find(", line "), in = line.find(", in ");
    if (end == std::string_view::npos || number == std::string_view::npos || in == std::string_view::npos || in < number) continue;
    schedule::Frame frame;
    frame.file = line.substr(6, end - 6);
    frame.line = line_number(line.substr(number + 7));
    frame.function = line.substr(in + 5);
    if (frame.function == "<module>") frame.function = "main";
    out.push_back(std::move(frame));
  }
  std::reverse(out.begin(), out.end());
  if (out.size() > kMostSaidFrames) out.resize(kMostSaidFrames);
  return out;
}

// `main.(*shelf).put(0x1, ...)` and, on the next line, `\t/src/shelf.go:12 +0x1d`, of the first goroutine.
std::vector<schedule::Frame> go(const std::vector<std::string>& lines) {
  std::vector<schedule::Frame> out;
  bool begun = false;
  for (std::size_t i = 0; i + 1 < lines.size() && out.size() < kMostSaidFrames; ++i) {
    const std::string_view line = trimmed(lines[i]);
    if (line.starts_with("goroutine ") && line.ends_with("]:")) {
      if (begun) break;
      begun = true;
      continue;
    }
    const std::string_view place = trimmed(lines[i + 1]);
    const std::size_t colon = place.find(".go:"), arguments = line.rfind('(');
    if (!begun || colon == 0 || colon == std::string_view::npos || arguments == std::string_view::npos || arguments == 0) continue;
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

}  // namespace

std::vector<schedule::Frame> said_frames(std::string_view text) {
  if (std::vector<schedule::Frame> frames = java(text); !frames.empty()) return frames;
  const bool of_python = text.find("Traceback (most recent call last)") != std::string_view::npos, of_go = text.find("goroutine ") != std::string_view::npos;
  if (!of_python && !of_go) return {};
  const std::vector<std::string> lines = split(text, '\n');
  return of_python ? python(lines) : go(lines);
}

}  // namespace rose::explain
