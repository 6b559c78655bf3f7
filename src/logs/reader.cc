#include "logs/reader.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "logs/line/header.h"
#include "logs/line/lines.h"
#include "logs/line/time_parts.h"
#include "logs/line/wrap.h"
#include "logs/meaning.h"
#include "logs/time_keeper.h"

namespace rose::logs {
namespace {

constexpr std::size_t kSampleLines = 400;
constexpr std::size_t kSampleBytes = std::size_t{256} << 10;
constexpr std::size_t kMostStreams = 4096;      // streams of one file; all further threads share one stream
constexpr std::size_t kLeastMessages = 20'000;  // every file may keep this many messages
// When a file has used up its share, this many messages of each kind are still kept. A quarter of the limit is reserved
// for them.
constexpr std::uint64_t kKeptPerKind = 256;
// Nodes that may share one file; lines of further nodes are assigned to no node.
constexpr std::size_t kMostNodesOfFile = 15;
// The times of the same message in two files may differ by this much, because one of the files may have only whole
// seconds.
constexpr std::int64_t kDuplicateWithin = kSecond;
constexpr std::size_t kMostHosts = 4096;  // hosts that the lines of one file may name
constexpr std::size_t kLongestHost = 64;  // characters of a host's name in reports
// The longest line, in characters and in words, that counts as a heading: it names the node of the part of a file that
// follows.
constexpr std::size_t kLongestHeading = 120;
constexpr std::size_t kWordsOfHeading = 5;
constexpr std::size_t kLongestPrompt = 60;
// In a file whose newest line comes first, at least kLeastBackward timestamps are smaller than their predecessor, and
// at least kMostlyBackward times as many as are greater.
constexpr std::size_t kLeastBackward = 2, kMostlyBackward = 20;
constexpr std::size_t kMostUnknownHosts = 8;  // hosts in reports that are no nodes
constexpr std::size_t kExceptionsInKind = 3;  // lines of a stack trace that determine the kind

// Maps masked texts to kinds, so that most lines need no search in the tree. The size is fixed: a text that finds no
// free slot is looked up each time.
class KindCache {
 public:
  KindCache() : places_(std::size_t{1} << 16) {}
  [[nodiscard]] const TemplateId* find(std::uint64_t hash) const {
    for (std::size_t i = hash & mask(), n = 0; n < kProbes; i = (i + 1) & mask(), ++n) {
      if (places_[i].hash == hash) return &places_[i].id;
      if (places_[i].hash == 0) return nullptr;
    }
    return nullptr;
  }
  void add(std::uint64_t hash, TemplateId id) {
    for (std::size_t i = hash & mask(), n = 0; n < kProbes; i = (i + 1) & mask(), ++n) {
      if (places_[i].hash != 0) continue;
      places_[i] = {hash, id};
      return;
    }
  }

 private:
  static constexpr std::size_t kProbes = 16;
  struct Place {
    std::uint64_t hash = 0;
    TemplateId id = 0;
  };
  [[nodiscard]] std::size_t mask() const { return places_.size() - 1; }
  std::vector<Place> places_;
};

bool any_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 ? c != '\t' && c != '\n' : byte == 0x7f;
  });
}

// The messages of one node in one file. They use kinds and streams of the file.
struct FileResult {
  Source source;
  Templates kinds;
  std::vector<Message> messages;
  std::vector<std::string> streams;
  std::vector<std::uint64_t> counts;
  Logs::Texts texts;
};

// How much of one file was kept so far, for all nodes together.
struct Kept {
  std::size_t messages = 0, text = 0;
};

// Collects the messages of one node in one file.
class Sink {
 public:
  Sink(Parts& parts, const TimeKeeper& clock, std::size_t most_messages, std::size_t most_text, Kept& kept,
       FileResult& out)
      : parts_(parts), clock_(clock), most_messages_(most_messages), most_text_(most_text), kept_(kept), out_(out) {}

  [[nodiscard]] Source& source() { return out_.source; }

  // Adds a line. Corrects the line's role if only the open message shows it.
  void take(LineRole took, std::uint64_t line) {
    line_ = line;
    ++out_.source.lines;
    // logging.exception() of Python writes the traceback below its message, whereas no message precedes an uncaught
    // exception.
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

  void close() {
    finish_message();
    finish_source();
  }

 private:
  void append(std::string_view between, std::string_view text) {
    if (text_.size() + between.size() >= kLongestText) return;
    text_ += between;
    text_ += text.substr(0, kLongestText - text_.size());
    long_text_ = true;
  }

  // Tracks whether a Python traceback has begun. It ends with its exception, unless another traceback follows, of an
  // exception that was raised while the first one was handled. Later lines on the same output come from other programs.
  void note_traceback(std::string_view line) {
    if (line.starts_with("Traceback (most recent call last)")) traceback_ = true, raised_ = chained_ = false;
    else if (line.starts_with("During handling of the above") || line.starts_with("The above exception was"))
      raised_ = false, chained_ = true;
    else if (traceback_ && !line.empty() && line[0] != ' ' && line[0] != '\t' && names_exception(line)) raised_ = true;
  }
  static bool ends_traceback(std::string_view line) {
    return line.starts_with("-----") || line.starts_with("Exception occurred during") || begins_by_itself(line);
  }

  // True if the line reports a failure and follows a message of an ordinary level. Such a line may be the last output
  // of a program: it has no timestamp, but is not part of the message before it.
  bool is_own_failure(std::string_view line) {
    constexpr std::size_t kLongest = 400;
    constexpr std::uint64_t kMostRead = 10'000;  // at most this many lines of one file are read for this
    const bool everyday = now_.level == Level::info || now_.level == Level::debug || now_.level == Level::trace;
    if (!everyday || line.size() > kLongest || looks_like_rest(line) || ++strays_read_ > kMostRead) return false;
    const Meaning meaning = read_meaning(line);
    return meaning.error != 0 || meaning.panic || meaning.ended;
  }

  // True if the open message is the first line of two that java.util.logging writes: "Jan 2, 2026 3:04:05 AM
  // com.example.Server run". The second line has level and text: "INFO: up".
  bool is_place_line() const {
    if (now_.level != Level::none || long_text_ || text_.find('\n') != std::string::npos) return false;
    const std::string_view place = text_;
    const std::size_t space = std::min(place.find(' '), place.size());
    const auto of_name = [](char c) { return is_alpha(c) || is_digit(c) || c == '_' || c == '$'; };
    const std::string_view of_class = place.substr(0, space), method = place.substr(std::min(space + 1, place.size()));
    return std::count(of_class.begin(), of_class.end(), '.') >= 2 &&
           std::all_of(of_class.begin(), of_class.end(), [&](char c) { return of_name(c) || c == '.'; }) &&
           std::all_of(method.begin(), method.end(), [&](char c) { return of_name(c) || c == '<' || c == '>'; });
  }
  void merge_with_place() {
    const Message where = now_;
    const std::string place = text_.substr(0, text_.find(' '));
    open_ = false;
    parts_.logger = place;
    begin_message();
    now_.line = where.line;
    now_.ts_ns = where.ts_ns;
  }

  // Opens a message with the line in `parts_`. head_ receives the text that determines the message's kind.
  void begin_message() {
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

  // Uses the name of the thread or logger, because a name identifies the stream across runs, whereas a number differs
  // in each run.
  std::uint32_t stream_of() {
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

  // Counts the open message. Keeps the message and its text if the limits permit.
  void finish_message() {
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
    if (kept_.messages >= most_messages_ &&
        (count > kKeptPerKind || kept_.messages >= most_messages_ + most_messages_ / 4))
      return;
    ++kept_.messages;
    now_.kind = kind;
    if (kept_.text + text_.size() <= most_text_ ||
        (count <= kTextsPerKind && kept_.text + text_.size() <= most_text_ + most_text_ / 4)) {
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

  // True if most timestamps decrease, as in the output of `journalctl -r` and in what web pages show and export. A
  // clock that was set back causes only a single decrease.
  [[nodiscard]] bool is_newest_first() const {
    std::size_t back = 0, forth = 0;
    for (std::size_t i = 1; i < out_.messages.size(); ++i) {
      const std::int64_t before = out_.messages[i - 1].ts_ns, ts = out_.messages[i].ts_ns;
      if (before == kNoTime) continue;
      back += ts < before ? 1 : 0;
      forth += ts > before ? 1 : 0;
    }
    return back >= kLeastBackward && forth * kMostlyBackward <= back;
  }

  // Completes the timestamps, and puts the messages in the order in which they were written.
  void finish_source() {
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

  Parts& parts_;
  TimeKeeper clock_;
  std::size_t most_messages_, most_text_;
  Kept& kept_;
  FileResult& out_;
  KindCache cache_;
  std::unordered_map<std::string, std::uint32_t> stream_ids_;
  std::vector<std::pair<std::size_t, TimeKind>> incomplete_;

  std::uint64_t line_ = 0;
  Message now_;
  bool open_ = false, long_text_ = false;
  std::string text_, head_, logger_, masked_, masked_logger_, last_stream_name_;
  bool stream_known_ = false;
  std::uint32_t last_stream_ = 0;
  // The state of a Python traceback: it has begun; its exception was read; another traceback of the same message
  // follows.
  bool traceback_ = false, raised_ = false, chained_ = false;
  std::size_t exceptions_ = 0;
  std::uint64_t strays_read_ = 0;
  std::int64_t last_ns_ = kNoTime;
  TimeKind last_kind_ = TimeKind::date_time, kind_of_time_ = TimeKind::date_time;
};

class FileReader {
 public:
  FileReader(Bytes bytes, const Input& input, const ReadOptions& options, std::size_t most_messages,
             std::size_t most_text, std::deque<FileResult>& out)
      : lines_(std::move(bytes)), options_(options), out_(out), most_messages_(most_messages), most_text_(most_text) {
    source_.path = input.path;
    source_.folder = input.folder;
    source_.node = input.node;
    source_.log = log_name(input.path);
    source_.packing = lines_.source().packing();
    std::int64_t zone = options.zone_ns;
    for (const CustomForm& custom : options.custom) {
      if (!glob_match(custom.files, input.path.string()) && !glob_match(custom.files, source_.log)) continue;
      custom_ = &custom;
      if (custom.zone_ns) {
        zone = *custom.zone_ns;
        source_.zoned = true;
      }
      break;
    }
    const std::int64_t written = lines_.source().modified_ns();
    clock_ = TimeKeeper(zone, written != 0 ? written : wall_ns());
  }

  void read() {
    take_sample();
    if (source_.problem.empty()) {
      IsNode is_node;
      if (names_nodes()) is_node = [&](std::string_view host) { return !options_.node_of(host).empty(); };
      // A user's pattern describes the lines as they are in the file, so do not join lines.
      if (custom_ == nullptr || custom_->pattern.empty()) wrap_ = Wrap::find(sample_, is_node);
      const std::vector<std::string> whole = wrap_ ? wrap_->join(sample_) : std::vector<std::string>();
      const std::vector<std::string>& first_lines = wrap_ ? whole : sample_;
      form_ = Form::choose(first_lines, custom_, is_node);
      if (is_node) find_writer(first_lines, is_node);
      source_.form = form_->words();
      find_year(first_lines, is_node);
      add_sink("", "");
      if (form_->is_journal_export()) {
        read_journal();
      } else {
        std::string_view line;
        for (const std::string& sample_line : sample_) take_unwrapped(sample_line);
        while (lines_.next(line)) take_unwrapped(line);
        take_pending();
      }
    }
    close();
  }

 private:
  void take_sample() {
    std::string_view line;
    std::size_t bytes = 0, controls = 0;
    while (sample_.size() < kSampleLines && bytes < kSampleBytes && lines_.next(line)) {
      bytes += line.size() + 1;
      controls += static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 9 || (byte > 13 && byte < 27);
      }));
      sample_.emplace_back(line);
      // The journal's export format is recognised by its first line. It may contain binary fields, so it must not be
      // read line by line.
      if (sample_.size() == 1 && (line.starts_with("__CURSOR=") || line.starts_with("__REALTIME_TIMESTAMP="))) return;
    }
    using namespace std::string_view_literals;
    if (sample_.empty()) return;
    if (sample_[0].starts_with("LPKSHHRH")) {
      source_.problem = "it is a file of the journal itself: `journalctl --file FILE -o export` writes it as text";
    } else if (sample_[0].starts_with("\xff\xfe"sv) || sample_[0].starts_with("\xfe\xff"sv)) {
      source_.problem = "it is UTF-16: `iconv -f UTF-16 -t UTF-8` converts it to UTF-8, which can be read";
    } else if (controls * 20 > bytes) {  // in random bytes, one in twelve is such a character
      source_.problem = "its content is binary, so it contains no messages";
    }
  }

  // Takes a line as it is in the file. If the line was cut, it is kept until its continuations have been read.
  void take_unwrapped(std::string_view line) {
    if (!wrap_) return take(line);
    if (pending_lines_ != 0 && wrap_->continues(before_, line) &&
        pending_.size() + line.size() < LineReader::kLongestLine) {
      pending_.append(wrap_->removed()).append(line);
      ++pending_lines_;
    } else {
      take_pending();
      pending_.assign(line);
      pending_lines_ = 1;
    }
    before_.assign(line);
  }
  void take_pending() {
    if (pending_lines_ == 0) return;
    take(pending_);
    line_ += std::exchange(pending_lines_, 0) - 1;
  }

  void take(std::string_view line) {
    ++line_;
    if (is_part_heading(line) || is_omission(line) || is_prompt(line)) return;
    const LineRole took = form_->take(line, parts_);
    if (parts_.host.empty() && took == LineRole::message) parts_.host = writer_in(parts_);
    add_line(took);
  }

  // True if the lines of this file may come from several nodes.
  [[nodiscard]] bool names_nodes() const { return options_.node_of && source_.node.empty(); }

  // Several programs may write into one file. If only some of them write the year, the year of their lines is used for
  // the others.
  void find_year(const std::vector<std::string>& sample, const IsNode& is_node) {
    bool yearless = false;
    std::int64_t dated = kNoTime;
    Form form = Form::choose(sample, custom_, is_node);
    for (const std::string& line : sample) {
      Parts parts;
      if (form.take(line, parts) != LineRole::message || !parts.time) continue;
      if (parts.time->kind == TimeKind::date_time && dated == kNoTime) dated = parts.time->ns;
      yearless = yearless || parts.time->kind == TimeKind::no_year;
    }
    if (yearless && dated != kNoTime) clock_.near(dated);
  }

  // Determines which part of a line names the node that wrote it, unless a layer names the host. It is the part that is
  // a node's name in most lines of the sample.
  void find_writer(const std::vector<std::string>& sample, const IsNode& is_node) {
    std::size_t messages = 0;
    std::array<std::size_t, 3> named{};
    constexpr std::array kParts = {Writer::thread, Writer::logger, Writer::bracket};
    Form form = Form::choose(sample, custom_, is_node);
    for (const std::string& line : sample) {
      Parts parts;
      if (form.take(line, parts) != LineRole::message || !parts.time) continue;
      if (!parts.host.empty()) return;
      ++messages;
      for (std::size_t i = 0; i < kParts.size(); ++i) {
        writer_ = kParts[i];
        const std::string_view name = writer_in(parts);
        named[i] += !name.empty() && is_node(name) ? 1 : 0;
      }
    }
    const auto most = std::max_element(named.begin(), named.end());
    const bool mostly = *most != 0 && *most * 10 >= messages * 7;
    writer_ = mostly ? kParts[static_cast<std::size_t>(most - named.begin())] : Writer::unstated;
  }

  [[nodiscard]] std::string_view writer_in(const Parts& parts) const {
    switch (writer_) {
      case Writer::unstated: return {};
      case Writer::thread: return parts.thread;
      case Writer::logger: return parts.logger;
      case Writer::bracket: {
        const std::size_t end = parts.text.starts_with('[') ? parts.text.find(']') : std::string_view::npos;
        return end == std::string_view::npos || end > kLongestHost ? std::string_view() : parts.text.substr(1, end - 1);
      }
    }
    return {};
  }

  // True for a line that names the node of the part of the file that follows: "==> n1.log <==" of `tail -f`, "n1:", "##
  // node n1", "**n1 logs**" in a report.
  bool is_part_heading(std::string_view line) {
    if (!names_nodes() || line.empty() || line.size() > kLongestHeading) return false;
    const bool of_tail = line.starts_with("==> ") && line.ends_with(" <==");
    if (!of_tail && line.back() != ':' && line[0] != '#' && line[0] != '*' && line[0] != '-') return false;
    std::string host;
    std::size_t words = 0;
    for (std::size_t at = 0; at < line.size();) {
      std::size_t end = at;
      while (end < line.size() && (is_name_char(line[end]) || line[end] == '/')) ++end;
      if (end == at) {
        ++at;
        continue;
      }
      std::string_view word = line.substr(at, end - at);
      at = end;
      if (word.find_first_not_of("-./") == std::string_view::npos) continue;
      ++words;
      word.remove_prefix(std::min(word.rfind('/') + 1, word.size()));  // npos + 1 is 0: the whole word
      for (const std::string_view ending : {".log", ".txt", ".out"})
        if (word.ends_with(ending)) word.remove_suffix(ending.size());
      if (!host.empty() || options_.node_of(word).empty()) continue;
      host = word;
    }
    if (host.empty() || words > kWordsOfHeading) return false;
    part_ = host;
    return true;
  }
  // True for marks of omitted lines ("[...]", "..."), and for the fences around code in a report.
  static bool is_omission(std::string_view line) {
    if (line.empty() || line.size() > 24) return false;
    return line.starts_with("```") || line == "[...]" || line == "..." || line == "[..]" || line == "(...)" ||
           line == "<...>" || line == "[snip]" || line == "<snip>" || line == "\xe2\x80\xa6" ||
           line == "[\xe2\x80\xa6]";
  }

  // True for a shell prompt before pasted output: "$ grep ...", "[root@n1 tmp]# grep ...", "user@n1:~$ kubectl ...".
  static bool is_prompt(std::string_view line) {
    if (line.starts_with("$ ")) return true;
    const std::size_t end = line.substr(0, kLongestPrompt).find_first_of("$#");
    if (end == std::string_view::npos || end == 0 || end + 1 >= line.size() || line[end + 1] != ' ') return false;
    const std::string_view prompt = line.substr(0, end);
    const std::size_t at = prompt.find('@');
    if (at == std::string_view::npos || at == 0) return false;
    return line[0] == '[' ? prompt.back() == ']' : prompt.find(' ') == std::string_view::npos;
  }

  void add_line(LineRole took) { sink_of(took).take(took, line_); }

  Sink& add_sink(const std::string& node, std::string_view host) {
    FileResult& result = out_.emplace_back();
    result.source = source_;
    if (!node.empty()) {
      result.source.node = node;
      result.source.host = printable(host.substr(0, kLongestHost));
      result.source.shared = true;
    }
    sinks_.push_back(std::make_unique<Sink>(parts_, clock_, most_messages_, most_text_, kept_, result));
    return *sinks_.back();
  }

  // The sink for the current line. In a file of several nodes, each line names its host or continues the message before
  // it.
  Sink& sink_of(LineRole took) {
    if (!names_nodes()) return *sinks_[0];
    if (parts_.host.empty() && !part_.empty()) parts_.host = part_;
    if (parts_.host.empty()) return took == LineRole::message ? *sinks_[0] : *sinks_[last_];
    if (parts_.host == last_host_) return *sinks_[last_];
    last_host_.assign(parts_.host);
    const auto known = sink_of_host_.find(last_host_);
    if (known != sink_of_host_.end()) return *sinks_[last_ = known->second];
    last_ = 0;
    if (sink_of_host_.size() >= kMostHosts) return *sinks_[0];
    const std::string node = options_.node_of(last_host_);
    if (!node.empty()) {
      while (last_ < sinks_.size() && sinks_[last_]->source().node != node) ++last_;
      if (last_ == sinks_.size() && sinks_.size() > kMostNodesOfFile) last_ = 0;
      else if (last_ == sinks_.size()) add_sink(node, last_host_);
    } else if (std::vector<std::string>& unknown_hosts = sinks_[0]->source().unknown_hosts;
               unknown_hosts.size() < kMostUnknownHosts) {
      unknown_hosts.push_back(printable(last_host_.substr(0, kLongestHost)));
    }
    sink_of_host_.emplace(last_host_, last_);
    return *sinks_[last_];
  }

  void close() {
    if (sinks_.empty()) add_sink("", "");
    for (const std::unique_ptr<Sink>& sink : sinks_) sink->close();
    // If the sink without a node is empty, remove it. The next sink then carries the facts about the whole file.
    if (sinks_.size() > 1 && out_.front().source.messages == 0) out_.pop_front();
    Source& first = out_.front().source;
    if (out_.size() == 1 && !first.shared) first.lines = line_;
    first.bytes = lines_.bytes();
    first.cut = lines_.cut();
    if (!lines_.source().damage().empty() && first.problem.empty()) first.problem = lines_.source().damage();
  }

  // Reads the journal's export format: entries of KEY=VALUE lines that end with an empty line. A binary value follows
  // its KEY as an 8-byte length and the bytes.
  void read_journal() {
    std::string message, identifier, host, unit;
    std::optional<TimeStamp> time;
    Level level = Level::none;
    const auto end_entry = [&] {
      if (time && !message.empty()) {
        LineRole took = form_->take_inner(message, parts_);
        if (took == LineRole::rest) took = LineRole::message;
        parts_.time = time;
        if (parts_.level == Level::none) parts_.level = level;
        if (parts_.logger.empty()) parts_.logger = identifier.empty() ? unit : identifier;
        parts_.host = host;
        add_line(took);
      }
      message.clear();
      time.reset();
      level = Level::none;
    };
    const auto field = [&](std::string_view key, std::string_view value) {
      if (key == "__REALTIME_TIMESTAMP") {
        TimeStamp stamp;
        stamp.zoned = true;
        for (const char c : value.substr(0, 16)) stamp.ns = is_digit(c) ? stamp.ns * 10 + (c - '0') : stamp.ns;
        stamp.ns *= 1000;
        time = stamp;
      } else if (key == "MESSAGE") {
        message.assign(value.substr(0, kLongestText));
      } else if (key == "SYSLOG_IDENTIFIER") {
        identifier.assign(value);
      } else if (key == "_SYSTEMD_UNIT") {
        unit.assign(value);
      } else if (key == "_HOSTNAME") {
        host.assign(value);
      } else if (key == "PRIORITY" && value.size() == 1 && value[0] >= '0' && value[0] <= '7') {
        constexpr std::array kLevels = {Level::fatal,   Level::fatal,  Level::fatal, Level::error,
                                        Level::warning, Level::notice, Level::info,  Level::debug};
        level = kLevels[static_cast<std::size_t>(value[0] - '0')];
      }
    };
    std::string_view line;
    std::string name;
    bool first = true;
    for (;;) {
      if (first && !sample_.empty()) line = sample_[0];
      else if (!lines_.next(line)) break;
      first = false;
      ++line_;
      if (line.empty()) {
        end_entry();
        identifier.clear();
        unit.clear();
        continue;
      }
      const std::size_t equals = line.find('=');
      if (equals != std::string_view::npos) {
        field(line.substr(0, equals), line.substr(equals + 1));
        continue;
      }
      name.assign(line.substr(0, 256));
      std::string_view bytes;
      if (!lines_.take(8, bytes)) break;
      std::uint64_t length = 0;
      for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
      if (length > std::uint64_t{768} << 20) {
        sinks_[0]->source().problem =
            fmt::format("a field of the journal claims to have {} bytes, so nothing was read from there on", length);
        break;
      }
      if (lines_.take(length, bytes)) field(name, bytes);
      if (!lines_.next(line)) break;  // skip the newline after the bytes
    }
    end_entry();
  }

  LineReader lines_;
  const ReadOptions& options_;
  Source source_;                // what is known about the file before its lines are read
  std::deque<FileResult>& out_;  // one for each node; the first one has the lines whose node is unknown
  std::size_t most_messages_, most_text_;
  const CustomForm* custom_ = nullptr;
  std::optional<Form> form_;
  std::optional<Wrap> wrap_;
  // used with wrap_: the joined lines that were not taken yet, and the line that was read last
  std::string pending_, before_;
  std::uint64_t pending_lines_ = 0;
  std::vector<std::string> sample_;
  TimeKeeper clock_{0, 0};
  Parts parts_;
  std::uint64_t line_ = 0;
  Kept kept_;
  std::vector<std::unique_ptr<Sink>> sinks_;
  std::unordered_map<std::string, std::size_t> sink_of_host_;
  std::string last_host_;
  std::string part_;  // the host named by the heading of the current part; "" if there is none
  // The part of a line that names the node which wrote it, if no layer does.
  enum class Writer : std::uint8_t { unstated, thread, logger, bracket };
  Writer writer_ = Writer::unstated;
  std::size_t last_ = 0;
};

// Adds the messages of one file to the logs. Replaces the file's own kinds and streams by common ones.
void add_file(FileResult& file, Logs& logs, Templates& templates,
              std::unordered_map<std::string, std::uint32_t>& streams) {
  std::vector<TemplateId> kinds(file.kinds.size());
  for (TemplateId i = 0; i < kinds.size(); ++i) kinds[i] = templates.learn(file.kinds, i);
  std::vector<std::uint32_t> stream_of(file.streams.size());
  for (std::size_t i = 0; i < stream_of.size(); ++i) {
    const auto [at, added] = streams.try_emplace(file.streams[i], static_cast<std::uint32_t>(logs.streams.size()));
    if (added) logs.streams.push_back(file.streams[i]);
    stream_of[i] = at->second;
  }
  const auto source = static_cast<std::uint16_t>(logs.sources.size());
  for (Message& message : file.messages) {
    message.kind = kinds[message.kind];
    message.stream = stream_of[message.stream];
    message.source = source;
  }
  // Find the node to which the messages belong.
  const Source& about = file.source;
  const std::string name = !about.node.empty() ? about.node : !about.host.empty() ? about.host : about.log;
  auto node = std::find_if(logs.nodes.begin(), logs.nodes.end(),
                           [&](const NodeLog& log) { return log.node == about.node && log.name == name; });
  if (node == logs.nodes.end()) {
    logs.nodes.push_back({about.node, name, {}, {}});
    node = logs.nodes.end() - 1;
  }
  node->counts.resize(std::max(node->counts.size(), templates.size()));
  for (std::size_t i = 0; i < kinds.size(); ++i) node->counts[kinds[i]] += file.counts[i];
  if (node->messages.empty()) {
    node->messages = std::move(file.messages);
  } else {
    node->messages.insert(node->messages.end(), file.messages.begin(), file.messages.end());
    file.messages = {};
  }
  logs.sources.push_back(std::move(file.source));
  logs.texts.push_back(std::move(file.texts));
}

void move_source(Logs& logs, std::size_t i, std::int64_t by) {
  logs.sources[i].first_ns += by;
  logs.sources[i].last_ns += by;
  for (NodeLog& node : logs.nodes)
    for (Message& message : node.messages)
      if (message.source == i && message.ts_ns != kNoTime) message.ts_ns += by;
}

// The logs of one incident cover the same days. A file whose times have no year gets the year in which it ends closest
// to the end of the files that state the year.
void align_years(Logs& logs) {
  std::int64_t last = kNoTime;
  for (const Source& source : logs.sources)
    if (source.last_ns != kNoTime && source.dated) last = std::max(last, source.last_ns);
  if (last == kNoTime) return;
  for (std::size_t i = 0; i < logs.sources.size(); ++i) {
    Source& source = logs.sources[i];
    if (source.last_ns == kNoTime || source.dated || source.time_kind != TimeKind::no_year) continue;
    int year = 0, other_year = 0;
    unsigned month = 0, day = 0, ignored = 0;
    date_of(last / kDay, other_year, ignored, ignored);
    date_of(source.last_ns / kDay, year, month, day);
    std::int64_t best = 0;
    for (const int candidate : {other_year - 1, other_year, other_year + 1}) {
      const std::int64_t by = (days_of(candidate, month, day) - days_of(year, month, day)) * kDay;
      if (std::abs(source.last_ns + by - last) < std::abs(source.last_ns + best - last)) best = by;
    }
    if (best == 0) continue;
    move_source(logs, i, best);
    source.year_of_others = true;
  }
}

// Moves files that state no zone, because their clocks may have another zone than those of the other files.
// Assumptions: logs of one incident cover about the same time, and zones differ by whole quarters of an hour.
// Goal: a log is not moved because its node stopped early or was started late.
// Derivation: a log is moved if its times overlap those of the other files only after the move (one end of the log
// decides how far), or if its first and its last time differ from theirs by the same number of quarters. The
// probability that both differences are by chance within kSlackOfEnds (120 s) of the same number of quarters is about
// (2 * 120 / 900)^2 * 1/112.
constexpr std::int64_t kQuarter = 900 * kSecond;
constexpr std::int64_t kMostZone = 14 * 3600 * kSecond;
constexpr std::int64_t kSlack = 60 * kSecond;
constexpr std::int64_t kSlackOfEnds = 120 * kSecond;
constexpr std::int64_t kLeastZone = 2 * kQuarter;  // no two zones differ by less

std::int64_t in_quarters(std::int64_t apart) {
  return (apart >= 0 ? apart + kQuarter / 2 : apart - kQuarter / 2) / kQuarter * kQuarter;
}

// The files of one log, which may have been rotated, and the time that they cover.
struct Covered {
  std::vector<std::size_t> sources;
  std::int64_t first = kNoTime, last = kNoTime;
  bool zoned = false;
  void add(std::int64_t begin, std::int64_t end) {
    first = first == kNoTime ? begin : std::min(first, begin);
    last = last == kNoTime ? end : std::max(last, end);
  }
  [[nodiscard]] bool overlaps(const Covered& other, std::int64_t moved = 0) const {
    return last + moved >= other.first - kSlack && first + moved <= other.last + kSlack;
  }
};

// `stated`: the other files state their zone. A log that does not overlap them is then moved so that it ends at about
// the same time.
std::int64_t zone_shift(const Covered& log, const Covered& others, bool stated) {
  const std::int64_t at_end = others.last - log.last, at_begin = others.first - log.first;
  const auto moves = [&](std::int64_t by) {
    return std::abs(by) >= kLeastZone && std::abs(by) <= kMostZone && log.overlaps(others, by);
  };
  const std::int64_t by = in_quarters(at_end);
  if (by == in_quarters(at_begin) && moves(by) && std::abs(at_end - by) <= kSlackOfEnds &&
      std::abs(at_begin - by) <= kSlackOfEnds)
    return by;
  if (log.overlaps(others)) return 0;
  // If a node ended early or started late, only one end of its log coincides with the others.
  const std::int64_t of_begin = in_quarters(at_begin);
  if (std::abs(at_begin - of_begin) <= kSlackOfEnds && std::abs(at_end - by) > kSlackOfEnds && moves(of_begin))
    return of_begin;
  return moves(by) && (stated || std::abs(at_end - by) <= kSlackOfEnds) ? by : 0;
}

void align_zones(Logs& logs) {
  std::map<std::pair<std::string, std::string>, Covered> by_log;
  for (std::size_t i = 0; i < logs.sources.size(); ++i) {
    const Source& source = logs.sources[i];
    if (source.first_ns == kNoTime) continue;
    Covered& log = by_log[{source.node.empty() ? source.host : source.node, source.log}];
    log.sources.push_back(i);
    log.add(source.first_ns, source.last_ns);
    log.zoned = log.zoned || source.zoned;
  }
  // The times of files that state their zone are right. If there are none, those on which most files agree are right.
  Covered right;
  for (const auto& [name, log] : by_log)
    if (log.zoned) right.add(log.first, log.last);
  const bool stated = right.first != kNoTime;
  std::set<const Covered*> kept;
  if (!stated) {
    for (const auto& [name, log] : by_log) {
      std::set<const Covered*> same;
      Covered all;
      for (const auto& [other_name, other] : by_log) {
        if (std::abs(other.first - log.first) > kSlackOfEnds && std::abs(other.last - log.last) > kSlackOfEnds)
          continue;
        same.insert(&other);
        all.add(other.first, other.last);
      }
      if (same.size() <= kept.size()) continue;
      kept = std::move(same);
      right = all;
    }
  }
  if (right.first == kNoTime) return;
  for (const auto& [name, log] : by_log) {
    if (log.zoned || kept.contains(&log)) continue;
    const std::int64_t shift = zone_shift(log, right, stated);
    if (shift == 0) continue;
    for (const std::size_t i : log.sources) {
      move_source(logs, i, shift);
      logs.sources[i].shifted_ns = shift;
    }
  }
}

void merge_by_time(Logs& logs) {
  for (NodeLog& node : logs.nodes) {
    // Lines of one file were written in their order, so they keep it even if their timestamps do not ascend. Files are
    // merged by time; a file without timestamps comes last.
    std::vector<std::vector<Message>> files(logs.sources.size());
    bool several = false;
    for (std::size_t i = 1; i < node.messages.size() && !several; ++i)
      several = node.messages[i].source != node.messages[0].source;
    if (!several) continue;
    for (const Message& message : node.messages) files[message.source].push_back(message);
    // Merge the files by the time of their next message; if times are equal, by the order of the arguments.
    std::vector<std::size_t> at(files.size());
    const auto time_at = [&](std::size_t file) {
      const Message& message = files[file][at[file]];
      return message.ts_ns == kNoTime ? std::numeric_limits<std::int64_t>::max() : message.ts_ns;
    };
    std::vector<std::size_t> heap;
    const auto later = [&](std::size_t a, std::size_t b) {
      const std::int64_t ta = time_at(a), tb = time_at(b);
      return ta != tb ? ta > tb : a > b;
    };
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (!files[i].empty()) heap.push_back(i);
    }
    std::make_heap(heap.begin(), heap.end(), later);
    node.messages.clear();
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), later);
      const std::size_t file = heap.back();
      heap.pop_back();
      node.messages.push_back(files[file][at[file]++]);
      if (at[file] == files[file].size()) continue;
      heap.push_back(file);
      std::push_heap(heap.begin(), heap.end(), later);
    }
  }
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

// Removes duplicates, because two files may contain the same message (a program's log and its output, or its log and
// syslog's). Keeps the longer text (for example the one with a stack trace) and the more precise of the two times. The
// messages must be sorted by time.
void remove_duplicates(Logs& logs) {
  for (NodeLog& node : logs.nodes) {
    const auto other_log = [&](const Message& message) {
      return logs.sources[message.source].log != logs.sources[node.messages[0].source].log;
    };
    if (std::none_of(node.messages.begin(), node.messages.end(), other_log)) continue;
    // By text: recent messages that have no duplicate in another log yet. All messages of one text are from the same
    // log.
    std::unordered_map<std::string_view, std::deque<std::size_t>> alone;
    std::vector<bool> dropped(node.messages.size());
    std::size_t past = 0;
    for (std::size_t i = 0; i < node.messages.size(); ++i) {
      const Message& message = node.messages[i];
      const std::string_view text = first_line(logs.text(message));
      if (message.ts_ns == kNoTime || text.empty()) continue;
      for (; past < i && node.messages[past].ts_ns < message.ts_ns - kDuplicateWithin; ++past) {
        const auto at = alone.find(first_line(logs.text(node.messages[past])));
        if (at == alone.end() || at->second.front() != past) continue;
        at->second.pop_front();
        if (at->second.empty()) alone.erase(at);
      }
      std::deque<std::size_t>& same = alone[text];
      if (same.empty() || logs.sources[node.messages[same.front()].source].log == logs.sources[message.source].log) {
        same.push_back(i);
        continue;
      }
      const std::size_t before = same.front();
      same.pop_front();
      if (same.empty()) alone.erase(text);
      const bool more = logs.text(message).size() > logs.text(node.messages[before]).size();
      const std::size_t place = node.messages[before].ts_ns % kSecond == 0 ? i : before;
      Message kept = node.messages[more ? i : before];
      --node.counts[node.messages[more ? before : i].kind];
      kept.ts_ns = node.messages[place].ts_ns;
      node.messages[place] = kept;
      dropped[place == i ? before : i] = true;
    }
    std::size_t i = 0;
    std::erase_if(node.messages, [&](const Message&) { return dropped[i++]; });
  }
}

Logs put_together(std::vector<std::deque<FileResult>>& files, Templates& templates) {
  Logs logs;
  std::unordered_map<std::string, std::uint32_t> streams;
  for (std::deque<FileResult>& file : files) {
    for (FileResult& result : file) {
      add_file(result, logs, templates, streams);
      result = {};
    }
  }
  for (NodeLog& node : logs.nodes) node.counts.resize(templates.size());
  align_years(logs);
  align_zones(logs);
  logs.jumps = undo_clock_jumps(logs);
  merge_by_time(logs);
  remove_duplicates(logs);
  return logs;
}

bool all_digit_chars(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

}  // namespace

std::string_view Logs::text(const Message& message) const {
  if (message.text == 0) return {};
  const Texts& of = texts[message.source];
  const std::size_t begin = message.text == 1 ? 0 : of.ends[message.text - 2];
  return std::string_view(of.bytes).substr(begin, of.ends[message.text - 1] - begin);
}

std::string log_name(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  const auto strip = [&](std::string_view suffix) {
    if (!name.ends_with(suffix) || name.size() == suffix.size()) return false;
    name.resize(name.size() - suffix.size());
    return true;
  };
  for (bool more = true; more;) {
    more = strip(".gz") || strip(".xz") || strip(".zst") || strip(".bz2") || strip(".old");
    // Remove suffixes such as ".1", ".20261122" and "-20261122", also before an extension: "app-2026-11-22.log".
    const std::size_t dot = name.rfind('.');
    if (dot != std::string::npos && dot != 0 && all_digit_chars(std::string_view(name).substr(dot + 1))) {
      name.resize(dot);
      more = true;
    }
  }
  const std::size_t ending = std::min(name.rfind('.'), name.size());
  std::size_t begin = ending;
  while (begin > 0 && (all_digit_chars(name.substr(begin - 1, 1)) || name[begin - 1] == '-' || name[begin - 1] == '_'))
    --begin;
  if (ending - begin >= 8 && begin != 0 && !all_digit_chars(name.substr(begin, 1))) name.erase(begin, ending - begin);
  return name;
}

std::string words(const Source& source) {
  std::string out = fmt::format("{}{}: {} lines, {} messages", source.path.string(),
                                source.shared ? fmt::format(", {} ({})", source.node, source.host) : "", source.lines,
                                source.messages);
  if (source.messages == 0) return out + (source.problem.empty() ? "" : fmt::format("; {}", source.problem));
  out += fmt::format(", {} timed, read as {}", source.timed == source.messages ? "all" : std::to_string(source.timed),
                     source.form);
  if (!source.packing.empty()) out += fmt::format(" ({})", source.packing);
  if (source.rest != 0) out += fmt::format("; {} lines belong to the previous message", source.rest);
  if (source.newest_first) out += "; it begins with the newest message, so it is read from its end";
  if (source.timed != 0 && source.time_kind == TimeKind::no_date)
    out += "; times have no date: it follows from when the file was written";
  if (source.timed != 0 && source.time_kind == TimeKind::no_year)
    out += source.year_of_others ? "; times have no year: it follows from the other files"
                                 : "; times have no year: it follows from when the file was written";
  if (source.timed != 0 && source.time_kind == TimeKind::since_boot)
    out += "; times count from the start of the system or program: dates follow from when the file was written";
  if (source.timed != 0 && !source.zoned && source.time_kind != TimeKind::since_boot)
    out += source.shifted_ns != 0
               ? fmt::format("; times have no zone, and were moved by {}{} to match those of the other files",
                             source.shifted_ns < 0 ? "-" : "", format_duration(std::abs(source.shifted_ns)))
               : "; times have no zone and are taken as UTC";
  if (source.cut != 0)
    out += fmt::format("; {} lines were longer than {}", source.cut, format_size(LineReader::kLongestLine));
  if (source.kept < source.messages)
    out += fmt::format("; {} messages were only counted, not kept", source.messages - source.kept);
  if (source.overflow != 0)
    out += fmt::format("; {} messages have no kind, because there are more than {} kinds of messages", source.overflow,
                       Templates::kMost);
  if (!source.problem.empty()) out += fmt::format("; {}", source.problem);
  return out;
}

Result<Logs> read_logs(std::span<const Input> inputs, const ReadOptions& options, Templates& templates) {
  if (inputs.size() > 4096)
    return fail(ErrorKind::input, fmt::format("{} log files are given, at most 4096 can be read", inputs.size()));
  std::vector<Bytes> files;
  std::vector<double> weights;
  double whole = 0;
  for (const Input& input : inputs) {
    ROSE_TRY(Bytes bytes, Bytes::open(input.path, input.folder));
    // A compressed text is about ten times as large when it is decompressed.
    weights.push_back(1 + static_cast<double>(bytes.file_size()) * (bytes.packing().empty() ? 1 : 10));
    whole += weights.back();
    files.push_back(std::move(bytes));
  }
  std::vector<std::deque<FileResult>> results(inputs.size());
  std::vector<std::size_t> by_size(inputs.size());
  for (std::size_t i = 0; i < by_size.size(); ++i) by_size[i] = i;
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t n = next++; n < by_size.size(); n = next++) {
      const std::size_t i = by_size[n];
      const double share = weights[i] / whole;
      const auto messages = std::max(kLeastMessages, static_cast<std::size_t>(share * kMostMessages));
      const auto text = std::max(std::size_t{1} << 20, static_cast<std::size_t>(share * kMostTextBytes));
      FileReader(std::move(files[i]), inputs[i], options, messages, text, results[i]).read();
    }
  };
  const unsigned most =
      options.threads != 0 ? options.threads : std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < std::min<std::size_t>(most, inputs.size()); ++i) threads.emplace_back(work);
    work();
  }
  return put_together(results, templates);
}

Logs read_text(std::string content, const Input& input, const ReadOptions& options, Templates& templates) {
  std::vector<std::deque<FileResult>> results(1);
  FileReader(Bytes::of(std::move(content)), input, options, kMostMessages, kMostTextBytes, results[0]).read();
  return put_together(results, templates);
}

}  // namespace rose::logs
