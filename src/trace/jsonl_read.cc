// Reads JSON Lines. It is written by hand for the same reasons as the writer (jsonl_write.cc).
#include "trace/jsonl.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <charconv>
#include <limits>
#include <unordered_map>

#include "base/ascii.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/utf8.h"
#include "kernel/open_flags.h"
#include "kernel/syscalls.h"
#include "kernel/uring.h"
#include "trace/limits.h"

namespace rose::trace {
namespace {

constexpr int kDeepest = 64;

enum class Key {
  meta,
  ts,
  node,
  type,
  pid,
  tid,
  syscall,
  err,
  result,
  fd,
  path,
  path2,
  peer,
  function,
  src,
  dst,
  state,
  signal,
  exit_code,
  duration_ms,
  planned,
  packets,
  open,
  sport,
  dport,
  proto,
  count,
  main,
  core,
  oom,
  blocked,
  unlinked,
  truncated,
  injected,
  open_flags,
  operation,
  requested,
  outstanding,
  begin_within_ms,
  end_within_ms,
  usual_ms,
  dying,
  by,
  version,
  host,
  boot_id,
  wall_base_ns,
  monotonic_base_ns,
  window,
  memory,
  lost,
  suppressed,
  network_delay_ns,
  pause_ns,
  workload_ts,
  begin_ns,
  end_ns,
  nodes,
  addresses,
  trigger,
  suppressed_calls,
  pairs_evicted,
  handshakes,
  clock,
  labels,
  unknown
};
constexpr auto kKeys = static_cast<std::size_t>(Key::unknown);

using KeyMap = std::unordered_map<std::string_view, Key>;

const KeyMap& event_keys() {
  static const KeyMap keys = {{"meta", Key::meta},
                              {"ts", Key::ts},
                              {"node", Key::node},
                              {"type", Key::type},
                              {"pid", Key::pid},
                              {"tid", Key::tid},
                              {"syscall", Key::syscall},
                              {"errno", Key::err},
                              {"result", Key::result},
                              {"fd", Key::fd},
                              {"path", Key::path},
                              {"path2", Key::path2},
                              {"peer", Key::peer},
                              {"function", Key::function},
                              {"src", Key::src},
                              {"dst", Key::dst},
                              {"state", Key::state},
                              {"signal", Key::signal},
                              {"exit_code", Key::exit_code},
                              {"duration_ms", Key::duration_ms},
                              {"planned", Key::planned},
                              {"packets", Key::packets},
                              {"open", Key::open},
                              {"sport", Key::sport},
                              {"dport", Key::dport},
                              {"proto", Key::proto},
                              {"count", Key::count},
                              {"main", Key::main},
                              {"core", Key::core},
                              {"unlinked", Key::unlinked},
                              {"truncated", Key::truncated},
                              {"injected", Key::injected},
                              {"oom", Key::oom},
                              {"blocked", Key::blocked},
                              {"flags", Key::open_flags},
                              {"op", Key::operation},
                              {"requested", Key::requested},
                              {"outstanding", Key::outstanding},
                              {"begin_within_ms", Key::begin_within_ms},
                              {"end_within_ms", Key::end_within_ms},
                              {"usual_ms", Key::usual_ms},
                              {"dying", Key::dying},
                              {"by", Key::by}};
  return keys;
}

const KeyMap& meta_keys() {
  static const KeyMap keys = {{"version", Key::version},
                              {"node", Key::node},
                              {"host", Key::host},
                              {"boot_id", Key::boot_id},
                              {"wall_base_ns", Key::wall_base_ns},
                              {"monotonic_base_ns", Key::monotonic_base_ns},
                              {"window", Key::window},
                              {"memory", Key::memory},
                              {"lost", Key::lost},
                              {"suppressed", Key::suppressed},
                              {"network_delay_ns", Key::network_delay_ns},
                              {"pause_ns", Key::pause_ns},
                              {"workload_ts", Key::workload_ts},
                              {"begin_ns", Key::begin_ns},
                              {"end_ns", Key::end_ns},
                              {"nodes", Key::nodes},
                              {"addresses", Key::addresses},
                              {"trigger", Key::trigger},
                              {"suppressed_calls", Key::suppressed_calls},
                              {"pairs_evicted", Key::pairs_evicted},
                              {"handshakes", Key::handshakes},
                              {"clock", Key::clock},
                              {"labels", Key::labels}};
  return keys;
}

// Text from the file, shortened and escaped, for use in a message.
std::string shown(std::string_view text) {
  std::string out;
  append_json_string(out, text.substr(0, 60));
  if (out.size() >= 2) {
    out.front() = '\'';
    out.back() = '\'';
  }
  if (text.size() > 60) out += "...";
  return out;
}

// A mistake in a line. The caller adds the file and the line.
struct Fault {
  std::string message;
  std::string hint;
};
using Maybe = std::optional<Fault>;

#define LINE_CHECK(expr)                                             \
  do {                                                               \
    if (Maybe line_check_ = (expr); line_check_) return line_check_; \
  } while (false)

// Parses one line, which contains one JSON object. The depth of recursion is limited to kDeepest. Strings without
// escapes are not copied.
class LineReader {
 public:
  LineReader(Trace& trace, std::vector<std::pair<std::string, std::size_t>>& unknown)
      : trace_(trace), unknown_(unknown) {}

  // `first`: no event was read before this line, so it may be a meta line.
  Maybe read(std::string_view line, std::size_t number, bool first) {
    at_ = line.data();
    end_ = line.data() + line.size();
    line_ = number;
    Event event;
    bool is_meta = false;
    bool other = false;
    seen_.reset();
    skip_space();
    const auto field = [&](Key key) -> Maybe {
      if (key != Key::meta) {
        other = true;
        return event_field(key, event);
      }
      is_meta = true;
      if (!first) return Fault{"a meta line may come only before the events", "join dumps with rose dump merge"};
      const auto outer = seen_;
      seen_.reset();
      if (at_ == end_ || *at_ != '{') return wrong("meta", "an object");
      LINE_CHECK(object(meta_keys(), [&](Key inner) { return meta_field(inner, trace_.meta); }));
      seen_ = outer;
      return std::nullopt;
    };
    LINE_CHECK(object(event_keys(), field));
    skip_space();
    if (at_ != end_) return Fault{fmt::format("{} follows the object", shown(rest())), "one object a line"};
    if (is_meta) {
      if (other) return Fault{"the meta line has other fields besides meta", {}};
      return std::nullopt;
    }
    if (!seen_[static_cast<std::size_t>(Key::ts)])
      return Fault{"an event needs ts", "ts is wall-clock time in nanoseconds since 1970"};
    if (!seen_[static_cast<std::size_t>(Key::type)]) return Fault{"an event needs type", "one of scf, af, nd, ps, sys"};
    if (trace_.events.size() >= kMostEvents)
      return Fault{fmt::format("more events than one trace holds ({})", kMostEvents), {}};
    trace_.events.push_back(event);
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::string_view rest() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
  }

  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  bool take_word(std::string_view word) {
    if (!rest().starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  [[nodiscard]] Fault malformed(std::string_view wanted) const {
    if (at_ == end_) return {fmt::format("the line ends where {} is expected", wanted), {}};
    return {fmt::format("{} where {} is expected", shown(rest()), wanted), {}};
  }

  [[nodiscard]] Fault wrong(std::string_view key, std::string_view wanted) const {
    // The wrong value, up to a character that cannot be part of it.
    std::string_view value = rest();
    if (!value.empty() && value.front() != '"') value = value.substr(0, value.find_first_of(",}] \t\r\n"));
    return {fmt::format("{} must be {}, not {}", key, wanted, shown(value)), {}};
  }

  // Reads an object that begins at the position, with '{'. For each known key, calls `field` with the position at the
  // key's value. Unknown keys are skipped and noted.
  template <typename F>
  Maybe object(const KeyMap& keys, F&& field) {
    if (!take('{')) return malformed("an object");
    skip_space();
    if (take('}')) return std::nullopt;
    for (;;) {
      std::string_view name;
      LINE_CHECK(string(name, key_scratch_));
      const auto found = keys.find(name);
      const Key key = found == keys.end() ? Key::unknown : found->second;
      if (key == Key::unknown) {
        note_unknown(name);
      } else {
        key_name_ = found->first;
        const auto bit = static_cast<std::size_t>(key);
        if (seen_[bit]) return Fault{fmt::format("{} occurs twice", key_name_), {}};
        seen_[bit] = true;
      }
      skip_space();
      if (!take(':')) return malformed("':'");
      skip_space();
      if (key == Key::unknown) {
        LINE_CHECK(skip_value(1));
      } else {
        LINE_CHECK(field(key));
      }
      skip_space();
      if (take('}')) return std::nullopt;
      if (!take(',')) return malformed("',' or '}'");
      skip_space();
    }
  }

  void note_unknown(std::string_view name) {
    // A few names are enough for the message, and a hostile file must not fill the memory with names.
    if (unknown_.size() >= 8) return;
    for (const auto& [known, line] : unknown_) {
      if (known == name) return;
    }
    unknown_.emplace_back(name, line_);
  }

  Maybe hex4(std::uint32_t& code) {
    if (end_ - at_ < 4) return Fault{"a \\u escape is cut short", {}};
    const auto [stop, error] = std::from_chars(at_, at_ + 4, code, 16);
    if (error != std::errc() || stop != at_ + 4) return Fault{"a \\u escape needs four hex digits", {}};
    at_ += 4;
    return std::nullopt;
  }

  Maybe escape(std::string& out) {
    if (at_ == end_) return malformed("an escape");
    const char c = *at_++;
    switch (c) {
      case '"':
      case '\\':
      case '/': out += c; return std::nullopt;
      case 'b': out += '\b'; return std::nullopt;
      case 'f': out += '\f'; return std::nullopt;
      case 'n': out += '\n'; return std::nullopt;
      case 'r': out += '\r'; return std::nullopt;
      case 't': out += '\t'; return std::nullopt;
      case 'u': break;
      default: --at_; return malformed("a known escape");
    }
    std::uint32_t code = 0;
    LINE_CHECK(hex4(code));
    if (code >= 0xd800 && code <= 0xdbff) {
      std::uint32_t low = 0;
      if (!take_word("\\u")) return Fault{fmt::format("\\u{:04x} is half of a surrogate pair", code), {}};
      LINE_CHECK(hex4(low));
      if (low < 0xdc00 || low > 0xdfff) return Fault{fmt::format("\\u{:04x} is half of a surrogate pair", code), {}};
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc80 && code <= 0xdcff) {
      out += static_cast<char>(code - 0xdc00);  // this is one byte of a string that is not UTF-8
      return std::nullopt;
    } else if (code >= 0xdc00 && code <= 0xdfff) {
      return Fault{fmt::format("\\u{:04x} is half of a surrogate pair", code), {}};
    }
    char bytes[4];
    out.append(bytes, put_utf8(code, bytes));
    return std::nullopt;
  }

  // `text` refers to the line or, if there were escapes, to `scratch`.
  Maybe string(std::string_view& text, std::string& scratch) {
    if (!take('"')) return malformed("a string");
    const char* begin = at_;
    bool copied = false;
    for (;;) {
      const char* run = at_;
      while (at_ != end_ && *at_ != '"' && *at_ != '\\' && static_cast<unsigned char>(*at_) >= 0x20) ++at_;
      if (copied) scratch.append(run, at_);
      if (at_ == end_) return Fault{"a string does not end on its line", {}};
      if (*at_ == '"') break;
      if (*at_ != '\\') return Fault{"a control character inside a string", "write it as \\u00xx"};
      if (!copied) {
        scratch.assign(begin, at_);
        copied = true;
      }
      ++at_;
      LINE_CHECK(escape(scratch));
    }
    text = copied ? std::string_view(scratch) : std::string_view(begin, static_cast<std::size_t>(at_ - begin));
    ++at_;
    if (text.size() > kLongestString)
      return Fault{fmt::format("a string of {} bytes, the most is {}", text.size(), kLongestString), {}};
    return std::nullopt;
  }

  // Reads a number, and checks that it follows the grammar of JSON.
  Maybe number_token(std::string_view& token, bool& integer) {
    const char* begin = at_;
    const auto digits = [&] {
      const char* from = at_;
      while (at_ != end_ && is_digit(*at_)) ++at_;
      return at_ != from;
    };
    integer = true;
    take('-');
    if (!take('0') && !digits()) return malformed("a value");
    if (take('.')) {
      integer = false;
      if (!digits()) return malformed("a digit");
    }
    if (take('e') || take('E')) {
      integer = false;
      if (!take('+')) take('-');
      if (!digits()) return malformed("a digit");
    }
    token = {begin, static_cast<std::size_t>(at_ - begin)};
    return std::nullopt;
  }

  Maybe skip_value(int depth) {
    if (depth > kDeepest) return Fault{fmt::format("values nested deeper than {}", kDeepest), {}};
    if (at_ == end_) return malformed("a value");
    switch (*at_) {
      case '"': {
        std::string_view text;
        return string(text, scratch_);
      }
      case '{':
      case '[': {
        const bool is_object = *at_++ == '{';
        const char close = is_object ? '}' : ']';
        skip_space();
        if (take(close)) return std::nullopt;
        for (;;) {
          if (is_object) {
            std::string_view name;
            LINE_CHECK(string(name, scratch_));
            skip_space();
            if (!take(':')) return malformed("':'");
            skip_space();
          }
          LINE_CHECK(skip_value(depth + 1));
          skip_space();
          if (take(close)) return std::nullopt;
          if (!take(',')) return malformed(is_object ? "',' or '}'" : "',' or ']'");
          skip_space();
        }
      }
      case 't': return take_word("true") ? Maybe() : malformed("a value");
      case 'f': return take_word("false") ? Maybe() : malformed("a value");
      case 'n': return take_word("null") ? Maybe() : malformed("a value");
      default: {
        std::string_view token;
        bool integer = false;
        return number_token(token, integer);
      }
    }
  }

  template <typename T>
  Maybe integer(T& field, std::int64_t least, std::uint64_t most, bool null_allowed = true) {
    const char* begin = at_;
    if (null_allowed && take_word("null")) return std::nullopt;
    if (at_ == end_ || (*at_ != '-' && (*at_ < '0' || *at_ > '9'))) return wrong(key_name_, "an integer");
    std::string_view token;
    bool whole = false;
    LINE_CHECK(number_token(token, whole));
    if (!whole) {
      at_ = begin;
      return wrong(key_name_, "an integer");
    }
    const auto out_of_range = [&] {
      return Fault{fmt::format("{} is {}, it must be {} to {}", key_name_, shown(token), least, most), {}};
    };
    if (token.front() == '-') {
      std::int64_t value = 0;
      const auto [stop, error] = std::from_chars(token.begin(), token.end(), value);
      if (error != std::errc() || value < least) return out_of_range();
      field = static_cast<T>(value);
    } else {
      std::uint64_t value = 0;
      const auto [stop, error] = std::from_chars(token.begin(), token.end(), value);
      if (error != std::errc() || value > most || (least > 0 && value < static_cast<std::uint64_t>(least)))
        return out_of_range();
      field = static_cast<T>(value);
    }
    return std::nullopt;
  }

  Maybe flag(Event& event, EventFlag bit) {
    if (take_word("null") || take_word("false")) return std::nullopt;
    if (!take_word("true")) return wrong(key_name_, "true or false");
    event.flags |= bit;
    return std::nullopt;
  }

  // Reads whether data was outstanding. null means unknown.
  Maybe outstanding(Event& event) {
    if (take_word("null")) return std::nullopt;
    if (take_word("true")) event.flags |= kOutstanding;
    else if (take_word("false")) event.flags |= kIdle;
    else return wrong(key_name_, "true, false or null");
    return std::nullopt;
  }

  // Accepts a string or null. `is_null` is set to true for null.
  Maybe string_or_null(std::string_view& text, bool& is_null) {
    is_null = take_word("null");
    if (is_null) return std::nullopt;
    if (at_ == end_ || *at_ != '"') return wrong(key_name_, "a string");
    return string(text, scratch_);
  }

  Maybe interned(StringId& field) {
    std::string_view text;
    bool is_null = false;
    LINE_CHECK(string_or_null(text, is_null));
    if (is_null) return std::nullopt;
    const std::size_t before = trace_.strings.size();
    field = trace_.strings.intern(text);
    if (trace_.strings.size() == before) return std::nullopt;
    string_bytes_ += text.size();
    if (trace_.strings.size() > kMostStrings || string_bytes_ > kMostStringBytes)
      return Fault{"more distinct strings than one trace holds", {}};
    return std::nullopt;
  }

  Maybe plain_text(std::string& field) {
    std::string_view text;
    bool is_null = false;
    LINE_CHECK(string_or_null(text, is_null));
    if (!is_null) field = text;
    return std::nullopt;
  }

  Maybe texts(std::vector<std::string>& field) {
    if (take_word("null")) return std::nullopt;
    if (!take('[')) return wrong(key_name_, "a list of strings");
    skip_space();
    if (take(']')) return std::nullopt;
    for (;;) {
      if (at_ == end_ || *at_ != '"') return wrong(key_name_, "a list of strings");
      std::string_view text;
      LINE_CHECK(string(text, scratch_));
      field.emplace_back(text);
      skip_space();
      if (take(']')) return std::nullopt;
      if (!take(',')) return malformed("',' or ']'");
      skip_space();
    }
  }

  // Reads a list such as ["read EAGAIN 300"].
  Maybe suppressed_calls(Meta& meta) {
    std::vector<std::string> list;
    LINE_CHECK(texts(list));
    for (const std::string& text : list) {
      const std::vector<std::string> words = split(text, ' ');
      const std::optional<int> call = words.size() == 3 ? kernel::syscall_number(words[0]) : std::nullopt;
      const std::optional<int> err = words.size() == 3 ? kernel::errno_number(words[1]) : std::nullopt;
      std::uint64_t count = 0;
      if (!call || !err || *err > kMostErrno ||
          std::from_chars(words[2].data(), words[2].data() + words[2].size(), count).ptr !=
              words[2].data() + words[2].size())
        return Fault{fmt::format("{} does not consist of a call, its error and a count", shown(text)),
                     "such as \"read EAGAIN 300\""};
      meta.suppressed_calls.push_back({static_cast<std::int16_t>(*call), static_cast<std::int16_t>(*err), count});
    }
    return std::nullopt;
  }

  [[nodiscard]] static Fault unknown_word(std::string_view key, std::string_view word,
                                          const std::vector<std::string>& known, std::string_view form) {
    std::string hint = did_you_mean(word, known);
    if (hint.empty()) hint = form;
    return {fmt::format("unknown {} {}", key, shown(word)), std::move(hint)};
  }

  Maybe event_field(Key key, Event& e) {
    constexpr std::uint64_t kInt = std::numeric_limits<std::int32_t>::max();
    constexpr std::uint64_t kUint = std::numeric_limits<std::uint32_t>::max();
    switch (key) {
      case Key::ts: return integer(e.ts_ns, 0, static_cast<std::uint64_t>(kLatestTs), false);
      case Key::pid: return integer(e.pid, 0, kInt);
      case Key::tid: return integer(e.tid, 0, kInt);
      case Key::fd: return integer(e.fd, -1, kInt);
      case Key::result:
        return integer(e.result, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
      case Key::duration_ms: return integer(e.duration_ms, -1, kInt);
      case Key::exit_code: return integer(e.exit_code, -1, kMostExitCode);
      case Key::packets: return integer(e.packets, 0, kUint);
      case Key::count: return integer(e.count, 1, kUint);
      case Key::sport: return integer(e.sport, 0, 65535);
      case Key::dport: return integer(e.dport, 0, 65535);
      case Key::node: return interned(e.node);
      case Key::path: return interned(e.path);
      case Key::path2: return interned(e.path2);
      case Key::peer: return interned(e.peer);
      case Key::function: return interned(e.function);
      case Key::src: return interned(e.src);
      case Key::dst: return interned(e.dst);
      case Key::by: return interned(e.by);
      case Key::requested: return integer(e.requested, 0, kUint);
      case Key::begin_within_ms: return integer(e.begin_within_ms, -1, kInt);
      case Key::end_within_ms: return integer(e.end_within_ms, -1, kInt);
      case Key::usual_ms: return integer(e.usual_ms, -1, kInt);
      case Key::outstanding: return outstanding(e);
      case Key::dying: return flag(e, kDying);
      case Key::planned: return flag(e, kPlanned);
      case Key::open: return flag(e, kOpen);
      case Key::main: return flag(e, kMain);
      case Key::core: return flag(e, kCoreDumped);
      case Key::oom: return flag(e, kOutOfMemory);
      case Key::blocked: return flag(e, kBlocked);
      case Key::unlinked: return flag(e, kUnlinked);
      case Key::truncated: return flag(e, kTruncated);
      case Key::injected: return flag(e, kInjected);
      default: return read_name_field(key, e);
    }
  }

  Maybe read_name_field(Key key, Event& e) {
    std::string_view word;
    bool is_null = false;
    LINE_CHECK(string_or_null(word, is_null));
    if (!is_null) return read_name(key, word, e);
    if (key == Key::type) return Fault{"an event needs type", "one of scf, af, nd, ps, sys"};
    return std::nullopt;
  }

  // Reads a field whose text must be a name that rose knows.
  static Maybe read_name(Key key, std::string_view word, Event& e) {
    switch (key) {
      case Key::type:
        for (const EventType type : {EventType::scf, EventType::af, EventType::nd, EventType::ps, EventType::sys}) {
          if (word != type_name(type)) continue;
          e.type = type;
          return std::nullopt;
        }
        return unknown_word("type", word, {"scf", "af", "nd", "ps", "sys"}, "one of scf, af, nd, ps, sys");
      case Key::state:
        for (const ProcessState state :
             {ProcessState::crashed, ProcessState::exited, ProcessState::paused, ProcessState::started}) {
          if (word != state_name(state)) continue;
          e.state = state;
          return std::nullopt;
        }
        return unknown_word("state", word, {"crashed", "exited", "paused", "started"},
                            "one of crashed, exited, paused, started");
      case Key::syscall:
        if (const auto number = kernel::syscall_number(word)) {
          e.syscall = static_cast<std::int16_t>(*number);
          return std::nullopt;
        }
        return unknown_word("syscall", word, kernel::syscall_names(),
                            "a name such as openat, or syscall_470 for one newer than this rose");
      case Key::err:
        if (const auto number = kernel::errno_number(word)) {
          e.err = static_cast<std::int16_t>(*number);
          return std::nullopt;
        }
        return unknown_word("errno", word, kernel::errno_names(), "a name such as ENOENT");
      case Key::signal:
        if (const auto number = kernel::signal_number(word)) {
          e.signal = static_cast<std::uint8_t>(*number);
          return std::nullopt;
        }
        return unknown_word("signal", word, {"SIGKILL", "SIGTERM", "SIGABRT", "SIGSEGV", "SIGINT", "SIGSTOP"},
                            "a name such as SIGKILL, or SIG34 for real-time signals");
      case Key::operation:
        if (const auto number = kernel::uring_operation_number(word)) {
          e.result = *number;
          return std::nullopt;
        }
        return Fault{fmt::format("unknown op {}", shown(word)),
                     "an operation of io_uring such as READ, or op_70 for one newer than this rose"};
      case Key::open_flags:
        if (const auto number = kernel::open_flags_number(word)) {
          e.open_flags = *number;
          return std::nullopt;
        }
        return Fault{fmt::format("flags are {}, not those of an open", shown(word)),
                     "names joined by |, such as O_WRONLY|O_CREAT|O_TRUNC; bits without a name as 0x..."};
      case Key::proto:
        if (word == "tcp") {
          e.protocol = Protocol::tcp;
        } else if (word == "udp") {
          e.protocol = Protocol::udp;
        } else {
          return unknown_word("proto", word, {"tcp", "udp"}, "tcp or udp");
        }
        return std::nullopt;
      default: ROSE_BUG("a key without a reader");
    }
  }

  Maybe meta_field(Key key, Meta& meta) {
    constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
    const auto time = [&](std::int64_t& field) { return integer(field, 0, static_cast<std::uint64_t>(kLatestTs)); };
    switch (key) {
      case Key::version: {
        std::uint64_t version = 1;
        LINE_CHECK(integer(version, 0, kAny));
        if (version != 1)
          return Fault{fmt::format("the file is of version {}; this rose reads version 1", version), {}};
        return std::nullopt;
      }
      case Key::node: return plain_text(meta.node);
      case Key::host: return plain_text(meta.host);
      case Key::boot_id: return plain_text(meta.boot_id);
      case Key::wall_base_ns: return time(meta.wall_base_ns);
      case Key::monotonic_base_ns: return time(meta.monotonic_base_ns);
      case Key::window: return integer(meta.window, 0, kAny);
      case Key::memory: return integer(meta.memory, 0, kAny);
      case Key::lost: return integer(meta.lost, 0, kAny);
      case Key::suppressed: return integer(meta.suppressed, 0, kAny);
      case Key::network_delay_ns: return time(meta.network_delay_ns);
      case Key::pause_ns: return time(meta.pause_ns);
      case Key::workload_ts: return time(meta.workload_ts);
      case Key::begin_ns: return time(meta.begin_ns);
      case Key::end_ns: return time(meta.end_ns);
      case Key::trigger: return plain_text(meta.trigger);
      case Key::suppressed_calls: return suppressed_calls(meta);
      case Key::nodes: return texts(meta.nodes);
      case Key::addresses: return texts(meta.addresses);
      case Key::pairs_evicted: return integer(meta.pairs_evicted, 0, kAny);
      case Key::handshakes: return texts(meta.handshakes);
      case Key::clock: return texts(meta.clock);
      case Key::labels: return texts(meta.labels);
      default: ROSE_BUG("a key without a reader");
    }
  }

  Trace& trace_;
  std::vector<std::pair<std::string, std::size_t>>& unknown_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::size_t line_ = 0;
  std::size_t string_bytes_ = 0;
  std::bitset<kKeys> seen_;
  std::string_view key_name_;
  std::string key_scratch_;
  std::string scratch_;
};

#undef LINE_CHECK

}  // namespace

Result<Trace> parse_jsonl(std::string_view text, std::string_view name, std::string* warning) {
  constexpr std::string_view kBom = "\xef\xbb\xbf";
  if (text.starts_with(kBom)) text.remove_prefix(kBom.size());
  if (text.starts_with("ROSEDUMP"))
    return fail(ErrorKind::input, fmt::format("{}: this is already a dump, not JSON Lines", name),
                "rose dump show, merge and diagnose read it as it is");
  Trace trace;
  std::vector<std::pair<std::string, std::size_t>> unknown;
  LineReader reader(trace, unknown);
  std::size_t number = 0;
  bool first = true;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (auto fault = reader.read(line, number, first))
      return fail(ErrorKind::input, fmt::format("{}:{}: {}", name, number, fault->message), std::move(fault->hint));
    first = false;
  }
  if (first)
    return fail(ErrorKind::input, fmt::format("{}: the file contains neither a meta line nor an event", name),
                "one JSON object a line; README shows the fields");
  if (!unknown.empty()) {
    std::string names;
    for (const auto& [field, line] : unknown) {
      if (!names.empty()) names += ", ";
      names += shown(field);
    }
    std::string message = fmt::format("{}:{}: unknown fields are ignored: {}", name, unknown.front().second, names);
    if (warning != nullptr) *warning = std::move(message);
    else log::warning(message);
  }
  sort_by_time(trace);
  return trace;
}

Result<Trace> read_jsonl(const std::filesystem::path& path) {
  ROSE_TRY(const std::string content, read_file(path));
  return parse_jsonl(content, path.string());
}

}  // namespace rose::trace
