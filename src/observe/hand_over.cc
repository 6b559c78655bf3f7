#include "observe/hand_over.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <span>

#include "base/text.h"
#include "base/unix_socket.h"

// The response to "rose 2 recordings" consists of lines: "recording NODE<tab>NAME" for each recording, with a
// descriptor attached to its first byte, "word TEXT" for each problem, and finally "end".
namespace rose::observe {
namespace {

constexpr std::size_t kMostHandedOver = 1 << 20;  // bytes of all lines together

std::string one_line_of(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r' || c == '\0'; }, ' ');
  if (text.size() > 1000) text.resize(1000);
  return text;
}

bool send_line(int socket, std::string_view line, int descriptor, const std::function<bool()>& writable) {
  std::span<const int> descriptors;  // sent with the first byte of the line
  if (descriptor >= 0) descriptors = {&descriptor, 1};
  while (!line.empty()) {
    const ssize_t n = send_with_descriptors(socket, line, descriptors);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno != EAGAIN || !writable())) return false;
    if (n <= 0) continue;
    descriptors = {};
    line.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

bool send_recordings(int socket, const OpenRecordings& recordings, const std::function<bool()>& writable) {
  for (const OpenRecording& one : recordings.all) {
    if (!send_line(socket, fmt::format("recording {}\t{}\n", one_line_of(one.node), one_line_of(one.name)),
                   one.file.get(), writable))
      return false;
  }
  for (const std::string& problem : recordings.problems) {
    if (!send_line(socket, fmt::format("word {}\n", one_line_of(problem)), -1, writable)) return false;
  }
  return send_line(socket, "end\n", -1, writable);
}

Result<OpenRecordings> receive_recordings(int socket, const std::function<bool()>& readable) {
  OpenRecordings got;
  std::deque<Fd> files;
  std::string lines;
  const auto ended = [] { return fail(ErrorKind::input, "the tracer ended, or gave up, while it sent recordings"); };
  for (;;) {
    for (std::size_t end = lines.find('\n'); end != std::string::npos; end = lines.find('\n')) {
      const std::string line = lines.substr(0, end);
      lines.erase(0, end + 1);
      const std::size_t tab = line.find('\t');
      if (line == "end") return got;
      if (line.starts_with("word ")) {
        got.problems.push_back(printable(line.substr(5)));
      } else if (line.starts_with("recording ") && tab != std::string::npos && !files.empty()) {
        OpenRecording one;
        one.node = line.substr(10, tab - 10);
        one.name = line.substr(tab + 1);
        one.file = std::move(files.front());
        files.pop_front();
        struct stat info{};
        const bool plain =
            one.name.find('/') == std::string::npos && one.name != "." && one.name != ".." && !one.name.empty();
        if (::fstat(one.file.get(), &info) != 0 || !S_ISREG(info.st_mode) || !plain) return ended();
        one.bytes = static_cast<std::uint64_t>(info.st_size);
        got.all.push_back(std::move(one));
      } else {
        return fail(ErrorKind::input, "the tracer does not support recordings, or has another version",
                    "use the rose that started the tracer");
      }
    }
    if (lines.size() > kMostHandedOver || !readable()) return ended();
    char bytes[4096];
    SentDescriptors sent;
    const ssize_t n = receive_with_descriptors(socket, bytes, sent);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return ended();
    for (std::size_t i = 0; i < sent.count; ++i) files.push_back(std::move(sent.fds[i]));
    lines.append(bytes, static_cast<std::size_t>(n));
  }
}

}  // namespace rose::observe
