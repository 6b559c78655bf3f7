#include "logs/thrown.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "logs/line/tokens.h"

namespace rose::logs {
namespace {

constexpr std::size_t kLongestJavaName = 512;  // characters; schedules have the same limit
constexpr std::size_t kMostSent = 4;           // exceptions in one trace that peers sent
constexpr std::size_t kMostHeaderLines = 30;   // lines of the message of one exception

bool is_spacing(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trimmed_text(std::string_view text) {
  while (!text.empty() && is_spacing(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_spacing(text.back())) text.remove_suffix(1);
  return text;
}

// The indentation in characters. A tab counts as a fixed width, because indentations are only compared.
std::size_t indent_of(std::string_view line) {
  std::size_t columns = 0;
  for (const char c : line) {
    if (c != ' ' && c != '\t') break;
    columns += c == '\t' ? 8 : 1;
  }
  return columns;
}

bool name_char(char c) {
  return is_alpha(c) || is_digit(c) || c == '_' || c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

// True if the name has the form of a qualified class name. It has at least two parts, and each begins with a letter:
// "org.x.Y$Inner".
bool class_shape(std::string_view name) {
  if (name.size() > kLongestJavaName || name.find('.') == std::string_view::npos) return false;
  bool begins = true;
  for (const char c : name) {
    if (begins ? !name_char(c) || is_digit(c) : !name_char(c) && c != '.') return false;
    begins = c == '.';
  }
  return !begins;
}

std::string_view last_part(std::string_view name) { return name.substr(name.find_last_of(".$") + 1); }

// Parses the text in a frame's parentheses: "Y.java:12", "Y.java", "Native Method", "Unknown Source", "<generated>".
bool read_place(std::string_view text, Frame& frame) {
  if (text == "Native Method" || text == "Unknown Source") return true;
  if (text == "<generated>") {
    frame.generated = true;
    return true;
  }
  const std::size_t colon = text.rfind(':');
  std::string_view file = text.substr(0, colon);
  if (colon != std::string_view::npos) {
    std::uint32_t line = 0;
    const std::string_view digits = text.substr(colon + 1);
    if (digits.empty() || digits.size() > 7) return false;
    for (const char c : digits) {
      if (!is_digit(c)) return false;
      line = line * 10 + static_cast<std::uint32_t>(c - '0');
    }
    frame.line = line;
  }
  file = file.substr(file.rfind('/') + 1);
  if (file.empty() || file.size() > kLongestJavaName || file.find('.') == std::string_view::npos ||
      file.find_first_of(" ()\t") != std::string_view::npos)
    return false;
  frame.file = std::string(file);
  return true;
}

// The line that names an exception.
struct Headline {
  std::string_view class_name, message;
  // "java.io.IOException", if the headline is "org.apache.hadoop.ipc.RemoteException(java.io.IOException): ..."
  std::string_view inner;
};

// Parses a headline at the beginning of the line. `sent`: the line is the text of a RemoteException.
std::optional<Headline> header_at(std::string_view line, bool sent = false) {
  std::size_t end = 0;
  while (end < line.size() && (name_char(line[end]) || line[end] == '.')) ++end;
  Headline header{line.substr(0, end), {}, {}};
  if (header.class_name.ends_with('.') || !class_shape(header.class_name)) return std::nullopt;
  if (end < line.size() && line[end] == '(') {
    const std::size_t close = line.substr(end, kLongestJavaName).find(')');
    if (close == std::string_view::npos) return std::nullopt;
    if (const std::string_view inner = line.substr(end + 1, close - 1); class_shape(inner)) header.inner = inner;
    end += close + 1;
  }
  if (end < line.size() && line[end] != ':') return std::nullopt;
  if (end + 1 < line.size() && line[end + 1] != ' ') return std::nullopt;  // such as "a.b:17"
  if (!exception_word(header.class_name) && !is_upper(last_part(header.class_name).front())) return std::nullopt;
  if (end < line.size()) header.message = trimmed_text(line.substr(end + 1));
  if (!sent && header.inner.empty() &&
      last_part(header.class_name) == "RemoteException")  // older versions: "RemoteException: java.io.IOException: ..."
    if (const std::optional<Headline> inner = header_at(header.message, true)) {
      header.inner = inner->class_name;
      header.message = inner->message;
    }
  return header;
}

std::optional<Headline> header_in(std::string_view line) {
  constexpr std::string_view kUncaught = "Exception in thread \"";
  line = trimmed_text(line);
  if (line.starts_with(kUncaught)) {
    const std::size_t quote = line.find("\" ", kUncaught.size());
    if (quote != std::string_view::npos) line = trimmed_text(line.substr(quote + 2));
  }
  if (std::optional<Headline> found = header_at(line)) return found;
  // The program's own text may precede the headline: "cannot save: java.io.IOException: bad block".
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = at;
    while (at < line.size() && !is_spacing(line[at])) ++at;
    if (begin > 0)
      if (std::optional<Headline> found = header_at(line.substr(begin)); found && exception_word(found->class_name))
        return found;
    while (at < line.size() && is_spacing(line[at])) ++at;
  }
  return std::nullopt;
}

// Parses the number in "... 12 more" or "... 12 common frames omitted".
std::optional<std::size_t> left_out(std::string_view line) {
  if (!line.starts_with("... ")) return std::nullopt;
  line.remove_prefix(4);
  std::size_t number = 0, digits = 0;
  while (digits < line.size() && digits < 6 && is_digit(line[digits]))
    number = number * 10 + static_cast<std::size_t>(line[digits++] - '0');
  const std::string_view rest = line.substr(digits);
  if (digits == 0 || (!rest.starts_with(" more") && !rest.starts_with(" common frames omitted"))) return std::nullopt;
  return number;
}

class Reader {
 public:
  std::vector<StackTrace> read(std::string_view text) {
    while (!text.empty() && traces_.size() < kMostTraces) {
      const std::size_t end = text.find('\n');
      take(text.substr(0, end));
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
    close();
    if (traces_.size() > kMostTraces) traces_.resize(kMostTraces);
    return std::move(traces_);
  }

 private:
  void take(std::string_view line) {
    const std::string_view bare = trimmed_text(line);
    Frame frame;
    const bool framed = read_frame(bare, frame);
    if (suppressed_ && !bare.empty()) {
      // Skip a suppressed exception with its causes, which are indented more than it. It ends at a line that is
      // indented less: at a cause, or, after its first frame, at any such line (before that, the line may belong to its
      // message). If the log has lost the indentation, it ends at the next cause.
      const bool cause = bare.starts_with("Caused by: ") || bare.starts_with("Wrapped by: ");
      if (*suppressed_ == 0 ? cause : indent_of(line) < *suppressed_ && (cause || suppressed_framed_))
        suppressed_.reset();
    }
    suppressed_framed_ = suppressed_framed_ || framed;
    if (bare.starts_with("Suppressed: ") && !trace_.empty()) {
      if (!suppressed_) suppressed_ = indent_of(line);
      suppressed_framed_ = false;
      return;
    }
    if (suppressed_) return;
    if (framed) return take_frame(std::move(frame));
    for (const bool wraps : {false, true}) {
      const std::string_view word = wraps ? "Wrapped by: " : "Caused by: ";
      if (!bare.starts_with(word)) continue;
      if (trace_.empty() || trace_.size() >= kMostCauses) return;
      if (const std::optional<Headline> header = header_in(bare.substr(word.size()))) {
        root_first_ = wraps;
        begin(*header);
      }
      return;
    }
    if (const std::optional<std::size_t> more = left_out(bare)) {
      if (!trace_.empty()) fill(*more);
      return;
    }
    if (!trace_.empty() && trace_.back().frames.empty()) {  // a further line of the exception's message
      add_text(bare);
      return;
    }
    if (!trace_.empty()) {
      if (bare.empty()) take_sent_frames();
      if (bare.empty() || bare.starts_with("...") || bare.starts_with('[') || bare.starts_with("- ")) return;
      close();
    }
    before_.push_back(bare);
    if (before_.size() > kMostHeaderLines) before_.erase(before_.begin());
  }

  void take_frame(Frame frame) {
    if (trace_.empty()) {
      // The last line that names an exception is the headline. The lines after it belong to the exception's message.
      std::optional<Headline> header;
      std::size_t at = before_.size();
      while (at > 0 && !header) header = header_in(before_[--at]);
      if (header) begin(*header);
      for (std::size_t i = at + 1; header && i < before_.size(); ++i) add_text(before_[i]);
      before_.clear();
      if (!header) return;
    }
    if (frame.class_name == "org.apache.hadoop.ipc.Client") take_sent_frames();  // some logs drop empty lines
    std::vector<Frame>& frames = trace_.back().frames;
    if (frames.size() < kMostFrames) frames.push_back(std::move(frame));
  }

  // The text of a RemoteException ends with the peer's stack trace. After an empty line, the program's own stack trace
  // follows.
  void take_sent_frames() {
    Thrown& own = trace_.back();
    if (inner_.empty() || own.frames.empty() || sent_.size() >= kMostSent) return;
    Thrown sent{std::exchange(inner_, {}), own.message, std::exchange(own.frames, {}), 0, true};
    sent_.push_back(std::move(sent));
  }

  void begin(const Headline& header) {
    Thrown& thrown = trace_.emplace_back();
    thrown.class_name = std::string(header.class_name);
    inner_ = std::string(header.inner);
    add_text(header.message);
  }

  void add_text(std::string_view text) {
    std::string& message = trace_.back().message;
    if (text.empty() || message.size() >= kLongestThrownText) return;
    if (!message.empty()) message += ' ';
    for (const char c : text) {
      if (message.size() >= kLongestThrownText) break;
      message += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
    // Do not split a UTF-8 character.
    if (message.size() >= kLongestThrownText) {
      while (!message.empty() && (static_cast<unsigned char>(message.back()) & 0xc0) == 0x80) message.pop_back();
      if (!message.empty() && static_cast<unsigned char>(message.back()) >= 0xc0) message.pop_back();
    }
  }

  // Adds the omitted frames, which are the outermost frames of the enclosing exception.
  void fill(std::size_t more) {
    if (trace_.size() < 2) return;
    const std::vector<Frame>& before = trace_[trace_.size() - 2].frames;
    std::vector<Frame>& frames = trace_.back().frames;
    if (more > before.size() || frames.size() + more > kMostFrames || before.size() >= kMostFrames) return;
    frames.insert(frames.end(), before.end() - static_cast<std::ptrdiff_t>(more), before.end());
  }

  // Ends the current trace, and puts its chain of exceptions in order.
  void close() {
    suppressed_.reset();
    before_.clear();
    std::erase_if(trace_, [](const Thrown& exception) { return exception.frames.empty(); });
    if (root_first_) std::reverse(trace_.begin(), trace_.end());
    root_first_ = false;
    inner_.clear();
    for (Thrown& exception : sent_) trace_.push_back(std::move(exception));
    sent_.clear();
    for (std::size_t i = 1; i < trace_.size(); ++i) {
      const std::vector<Frame>& outer = trace_[i - 1].frames;
      std::vector<Frame>& inner = trace_[i].frames;
      std::size_t& common = trace_[i].common;
      while (common < std::min(outer.size(), inner.size()) &&
             outer[outer.size() - 1 - common] == inner[inner.size() - 1 - common])
        ++common;
    }
    if (!trace_.empty()) traces_.push_back(std::move(trace_));
    trace_.clear();
  }

  std::vector<StackTrace> traces_;
  StackTrace trace_;
  std::vector<std::string_view> before_;   // the last lines that belong to no trace
  std::optional<std::size_t> suppressed_;  // the indentation of the suppressed exception that is being skipped
  bool suppressed_framed_ = false;         // a frame of the suppressed exception was read
  bool root_first_ = false;
  std::string inner_;  // the class of the peer's exception, if the current exception is a RemoteException
  StackTrace sent_;
};

}  // namespace

bool read_frame(std::string_view line, Frame& frame) {
  line = trimmed_text(line);
  if (!line.starts_with("at ")) return false;
  line.remove_prefix(3);
  const std::size_t open = line.find('(');
  if (open == std::string_view::npos || open == 0 || open > 2 * kLongestJavaName) return false;
  const std::size_t close = line.find(')', open);
  if (close == std::string_view::npos) return false;
  frame = {};
  if (!read_place(line.substr(open + 1, close - open - 1), frame)) return false;
  std::string_view name = line.substr(0, open);
  std::string hidden;
  // A class that the JVM generated: "org.x.Y$$Lambda$14/0x0000000840066440.run".
  for (std::size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1)) {
    if (slash + 1 >= name.size() || !is_digit(name[slash + 1])) continue;
    const std::size_t dot = name.find('.', slash);
    if (dot == std::string_view::npos) return false;
    hidden = std::string(name.substr(0, slash)) + std::string(name.substr(dot));
    name = hidden;
    frame.generated = true;
    break;
  }
  name = name.substr(name.rfind('/') + 1);  // removes "java.base@17.0.15/" or "app//"
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || dot + 1 == name.size()) return false;
  const std::string_view class_name = name.substr(0, dot), method = name.substr(dot + 1);
  for (const char c : class_name)
    if (!name_char(c) && c != '.' && c != '-') return false;
  if (!class_name.empty() && class_name.front() == '.') return false;
  for (const char c : method)
    if (!name_char(c) && c != '<' && c != '>' && c != '-') return false;
  frame.class_name = std::string(class_name);
  frame.method = std::string(method);
  for (const std::string_view made : {"$$Lambda", "GeneratedMethodAccessor", "GeneratedConstructorAccessor",
                                      "$$FastClass", "$$EnhancerBy", "$Proxy", "$MockitoMock$"})
    frame.generated = frame.generated || class_name.find(made) != std::string_view::npos;
  return true;
}

std::vector<StackTrace> read_traces(std::string_view text) { return Reader().read(text); }

ThrownKind kind_of(std::string_view class_name) {
  constexpr std::array kStopping =
      std::to_array<std::string_view>({"InterruptedException", "InterruptedIOException", "ClosedByInterruptException",
                                       "CancellationException", "RejectedExecutionException", "ThreadDeath"});
  constexpr std::array kNetwork = std::to_array<std::string_view>(
      {"EOFException", "SocketException", "SocketTimeoutException", "ConnectException", "ClosedChannelException",
       "AsynchronousCloseException", "NoRouteToHostException", "UnknownHostException", "SSLException",
       "SSLHandshakeException", "ConnectionLossException", "SessionExpiredException", "DisconnectException",
       "RemoteException", "TimeoutException", "ConnectTimeoutException", "RetriableCommitFailedException"});
  constexpr std::array kProgram = std::to_array<std::string_view>({"NullPointerException",
                                                                   "ClassCastException",
                                                                   "IllegalStateException",
                                                                   "IllegalArgumentException",
                                                                   "IndexOutOfBoundsException",
                                                                   "ArrayIndexOutOfBoundsException",
                                                                   "StringIndexOutOfBoundsException",
                                                                   "UnsupportedOperationException",
                                                                   "NumberFormatException",
                                                                   "ArithmeticException",
                                                                   "AssertionError",
                                                                   "NoClassDefFoundError",
                                                                   "ClassNotFoundException",
                                                                   "NoSuchMethodError",
                                                                   "StackOverflowError",
                                                                   "ConcurrentModificationException",
                                                                   "NoSuchElementException",
                                                                   "ExceptionInInitializerError",
                                                                   "RuntimeException",
                                                                   "MatchError"});
  const std::string_view last = last_part(class_name);
  const auto is = [&](const auto& names) { return std::find(names.begin(), names.end(), last) != names.end(); };
  if (is(kStopping)) return ThrownKind::stopping;
  if (is(kNetwork)) return ThrownKind::network;
  if (is(kProgram)) return ThrownKind::program;
  return ThrownKind::outside;
}

}  // namespace rose::logs
