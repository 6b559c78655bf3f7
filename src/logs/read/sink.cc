#include "logs/read/sink.h"
#include "logs/mask.h"

#include <algorithm>
#include <functional>

#include "base/ascii.h"
#include "logs/line/continuation.h"
#include "logs/meaning.h"

namespace rose::logs {
namespace {

constexpr std::size_t kMostStreams = 4096;  // streams of one file; if there are more, all further threads share one
// When a file has used up its share, this many messages of each kind are still kept. A quarter of the limit is reserved
// for them.
constexpr std::uint64_t kKeptPerKind = 256;
constexpr std::size_t kExceptionsInKind = 3;  // the first exceptions of a stack trace also determine the kind
// In a file whose newest line comes first, at least kLeastBackward timestamps are smaller than their predecessors. They
// are at least kMostlyBackward times as many as the timestamps that are greater than their predecessors.
constexpr std::size_t kLeastBackward = 2, kMostlyBackward = 20;

bool any_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 ? c != '\t' && c != '\n' : byte == 0x7f;
  });
}

}  // namespace

void Sink::take(LineRole took, std::uint64_t line) {
  line_ = line;
  ++out_.source.lines;
  // Python's logging.exception() writes a message (a warning or an error) and the traceback below it, so this traceback
  // continues the message. The traceback of an uncaught exception is a message of its own.
  if (took == LineRole::message && open_ && !raised_ && !parts_.time && (chained_ || now_.level >= Level::warning) &&
      parts_.text.starts_with("Traceback (most recent call last)"))
    took = LineRole::rest;
  if (took == LineRole::rest && open_ && raised_ && ends_traceback(parts_.text)) took = LineRole::message;
  if (took == LineRole::rest && open_ && is_own_failure(parts_.text)) took = LineRole::message;
  if (took == LineRole::message && open_ && !parts_.time && parts_.level != Level::none && is_place_line())
    return merge_with_place();
  switch (took) {
    case LineRole::nothing: return;
    case LineRole::joined:
      if (open_) append({}, parts_.text);
      return;
    case LineRole::rest:
      ++out_.source.rest;
      if (open_) {
        note_traceback(parts_.text);
        if (exceptions_ < kExceptionsInKind && head_.size() < kMostToMask && names_exception(parts_.text)) {
          ++exceptions_;
          head_ += ' ';
          head_ += parts_.text.substr(parts_.text.find_first_not_of(" \t"));
        }
        append("\n", parts_.text);
        return;
      }
      [[fallthrough]];
    case LineRole::message: begin_message();
  }
}

void Sink::close() {
  finish_message();
  finish_source();
}

void Sink::append(std::string_view between, std::string_view text) {
  if (text_.size() + between.size() >= kLongestText) return;
  text_ += between;
  text_ += text.substr(0, kLongestText - text_.size());
  long_text_ = true;
}

void Sink::note_traceback(std::string_view line) {
  if (line.starts_with("Traceback (most recent call last)")) traceback_ = true, raised_ = chained_ = false;
  else if (line.starts_with("During handling of the above") || line.starts_with("The above exception was"))
    raised_ = false, chained_ = true;
  else if (traceback_ && !line.empty() && line[0] != ' ' && line[0] != '\t' && names_exception(line)) raised_ = true;
}

bool Sink::ends_traceback(std::string_view line) {
  return line.starts_with("-----") || line.starts_with("Exception occurred during") || begins_by_itself(line);
}

bool Sink::is_own_failure(std::string_view line) {
  constexpr std::size_t kLongest = 400;
  constexpr std::uint64_t kMostRead = 10'000;  // the meaning of at most this many lines of one file is read
  const bool everyday = now_.level == Level::info || now_.level == Level::debug || now_.level == Level::trace;
  if (!everyday || line.size() > kLongest || looks_like_rest(line) || ++strays_read_ > kMostRead) return false;
  const Meaning meaning = read_meaning(line);
  return meaning.error != 0 || meaning.panic || meaning.ended;
}

bool Sink::is_place_line() const {
  if (now_.level != Level::none || long_text_ || text_.find('\n') != std::string::npos) return false;
  const std::string_view place = text_;
  const std::size_t space = std::min(place.find(' '), place.size());
  const auto of_name = [](char c) { return is_alpha(c) || is_digit(c) || c == '_' || c == '$'; };
  const std::string_view of_class = place.substr(0, space), method = place.substr(std::min(space + 1, place.size()));
  return std::count(of_class.begin(), of_class.end(), '.') >= 2 &&
         std::all_of(of_class.begin(), of_class.end(), [&](char c) { return of_name(c) || c == '.'; }) &&
         std::all_of(method.begin(), method.end(), [&](char c) { return of_name(c) || c == '<' || c == '>'; });
}

void Sink::merge_with_place() {
  const Message where = now_;
  const std::string place = text_.substr(0, text_.find(' '));
  open_ = false;
  parts_.logger = place;
  begin_message();
  now_.line = where.line;
  now_.ts_ns = where.ts_ns;
}

void Sink::begin_message() {
  finish_message();
  traceback_ = raised_ = chained_ = false;
  note_traceback(parts_.text);
  open_ = true;
  Message& message = now_;
  message = {};
  message.line = line_;
  message.level = parts_.level;
  message.ts_ns = last_ns_;
  if (parts_.time) {
    ++out_.source.timed;
    message.ts_ns = last_ns_ = clock_.take(*parts_.time);
    last_kind_ = parts_.time->kind;
    out_.source.time_kind = std::max(out_.source.time_kind, last_kind_);
    out_.source.zoned = out_.source.zoned || parts_.time->zoned;
    out_.source.dated = out_.source.dated || last_kind_ == TimeKind::date_time;
  }
  kind_of_time_ = last_kind_;
  if (out_.source.host.empty() && !parts_.host.empty()) out_.source.host = parts_.host;
  message.stream = stream_of();
  logger_.assign(parts_.logger);
  text_.assign(parts_.text.substr(0, kLongestText));
  head_.assign(text_, 0, std::min(text_.find('\n'), kMostToMask));
  exceptions_ = 0;
  long_text_ = false;
  // The message may already contain continuation lines (stack traces in JSON).
  for (std::size_t at = text_.find('\n'); at != std::string::npos && exceptions_ < kExceptionsInKind;
       at = text_.find('\n', at + 1)) {
    const std::string_view line = std::string_view(text_).substr(at + 1, text_.find('\n', at + 1) - at - 1);
    if (!names_exception(line)) continue;
    ++exceptions_;
    head_ += ' ';
    head_ += line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
  }
}

std::uint32_t Sink::stream_of() {
  std::string_view name = parts_.thread;
  if (name.find_first_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string_view::npos)
    name = parts_.logger;
  if (name == last_stream_name_ && stream_known_) return last_stream_;
  last_stream_name_.assign(name);
  stream_known_ = true;
  mask(name, masked_);
  const auto found = stream_ids_.find(masked_);
  if (found != stream_ids_.end()) return last_stream_ = found->second;
  if (out_.streams.size() >= kMostStreams) return last_stream_ = 0;
  last_stream_ = static_cast<std::uint32_t>(out_.streams.size());
  stream_ids_.emplace(masked_, last_stream_);
  out_.streams.push_back(masked_);
  return last_stream_;
}

void Sink::finish_message() {
  if (!open_) return;
  open_ = false;
  ++out_.source.messages;
  mask(head_, masked_);
  const std::uint64_t hash = (std::hash<std::string_view>()(masked_) ^ (std::hash<std::string_view>()(logger_) * 31) ^
                              (static_cast<std::uint64_t>(now_.level) << 56)) |
                             1;
  TemplateId kind = 0;
  if (const TemplateId* known = cache_.find(hash)) {
    kind = *known;
  } else {
    mask(logger_, masked_logger_);
    kind = out_.kinds.learn(masked_, now_.level, masked_logger_);
    cache_.add(hash, kind);
  }
  if (out_.counts.size() <= kind) out_.counts.resize(kind + 1);
  const std::uint64_t count = ++out_.counts[kind];
  if (kept_.messages >= most_.messages &&
      (count > kKeptPerKind || kept_.messages >= most_.messages + most_.messages / 4))
    return;
  ++kept_.messages;
  now_.kind = kind;
  if (kept_.text + text_.size() <= most_.text ||
      (count <= kTextsPerKind && kept_.text + text_.size() <= most_.text + most_.text / 4)) {
    kept_.text += text_.size();
    if (any_control(text_)) {
      for (char& c : text_) {
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') c = '?';
        if (c == 0x7f) c = '?';
      }
    }
    out_.texts.bytes += text_;
    out_.texts.ends.push_back(static_cast<std::uint32_t>(out_.texts.bytes.size()));
    now_.text = static_cast<std::uint32_t>(out_.texts.ends.size());
  }
  const std::size_t place = out_.messages.size();
  out_.messages.push_back(now_);
  // Timestamps without a date are completed after the last line was read.
  if (kind_of_time_ == TimeKind::no_date || kind_of_time_ == TimeKind::since_boot)
    incomplete_.emplace_back(place, kind_of_time_);
}

bool Sink::is_newest_first() const {
  std::size_t back = 0, forth = 0;
  for (std::size_t i = 1; i < out_.messages.size(); ++i) {
    const std::int64_t before = out_.messages[i - 1].ts_ns, ts = out_.messages[i].ts_ns;
    if (before == kNoTime) continue;
    back += ts < before ? 1 : 0;
    forth += ts > before ? 1 : 0;
  }
  return back >= kLeastBackward && forth * kMostlyBackward <= back;
}

void Sink::finish_source() {
  Source& source = out_.source;
  source.kept = out_.messages.size();
  source.overflow = out_.kinds.overflow();
  for (const auto& [index, kind] : incomplete_) {
    if (out_.messages[index].ts_ns != kNoTime) out_.messages[index].ts_ns += clock_.offset(kind);
  }
  for (const Message& written : out_.messages) {
    if (written.ts_ns == kNoTime) continue;
    if (source.first_ns == kNoTime || written.ts_ns < source.first_ns) source.first_ns = written.ts_ns;
    if (source.last_ns == kNoTime || written.ts_ns > source.last_ns) source.last_ns = written.ts_ns;
  }
  source.newest_first = is_newest_first();
  // Lines before the first timestamp get the time of that timestamp.
  for (Message& written : out_.messages) {
    if (written.ts_ns != kNoTime) break;
    written.ts_ns = source.first_ns;
  }
  if (source.newest_first) std::reverse(out_.messages.begin(), out_.messages.end());
  if (out_.streams.empty()) out_.streams.emplace_back();
  out_.counts.resize(out_.kinds.size());
}

}  // namespace rose::logs
