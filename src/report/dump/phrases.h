// Texts that the views of a trace share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/dump/show.h"
#include "trace/event.h"

namespace rose::report {

// Collects lines, so that `out` is not called for every line.
class Lines {
 public:
  explicit Lines(const Output& out) : out_(out) {}
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  ~Lines() {
    if (!buffer_.empty()) out_(buffer_);
  }
  void add(std::string_view line) {
    // Empty columns must not leave trailing blanks.
    line = line.substr(0, line.find_last_not_of(' ') + 1);
    buffer_ += line;
    buffer_ += '\n';
    if (buffer_.size() < (std::size_t{1} << 16)) return;
    out_(buffer_);
    buffer_.clear();
  }

 private:
  const Output& out_;
  std::string buffer_;
};

[[nodiscard]] std::string node_of(const trace::TraceBase& trace, const trace::Event& event);
// The time in seconds: "+1.234567".
[[nodiscard]] std::string offset_text(std::int64_t ns);
[[nodiscard]] std::string endpoint(const trace::TraceBase& trace, trace::StringId address, std::uint16_t port);

// The other names of nodes, with one line for each node: "db: unit postgresql.service, cluster east". Only the first
// nodes are listed.
[[nodiscard]] std::vector<std::string> label_lines(const trace::Meta& meta);

// Appends the call and its error: "openat ENOENT".
void append_call(std::string& out, const trace::Event& e);
// Appends what a call works on: its paths and its peer. `peers`, unless "", replaces the event's own peer.
void append_place(std::string& out, const trace::TraceBase& trace, const trace::Event& e, std::string_view peers = {});
// Appends the state of a process: "crashed by SIGKILL".
void append_state(std::string& out, const trace::Event& e);

}  // namespace rose::report
