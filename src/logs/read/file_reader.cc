#include "logs/read/file_reader.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/text.h"
#include "logs/read/journal.h"
#include "logs/read/pasted.h"

namespace rose::logs {
namespace {

constexpr std::size_t kSampleLines = 400;
constexpr std::size_t kSampleBytes = std::size_t{256} << 10;
// The most nodes that may share one file; lines of further nodes are assigned to no node.
constexpr std::size_t kMostNodesOfFile = 15;
constexpr std::size_t kMostHosts = 4096;      // lines that name further hosts are assigned to no node
constexpr std::size_t kLongestHost = 64;      // characters of a host's name in reports
constexpr std::size_t kMostUnknownHosts = 8;  // reports name at most this many hosts that are no nodes

}  // namespace

FileReader::FileReader(Bytes bytes, const Input& input, const ReadOptions& options, Share most,
                       std::deque<FileResult>& out)
    : lines_(std::move(bytes)), options_(options), out_(out), most_(most) {
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

void FileReader::read() {
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
    if (form_->is_journal_export()) read_journal();
    else read_lines();
  }
  close();
}

void FileReader::take_sample() {
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
  } else if (controls * 20 > bytes) {  // of random bytes, one in twelve is a control character
    source_.problem = "its content is binary, so it contains no messages";
  }
}

void FileReader::take_unwrapped(std::string_view line) {
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

void FileReader::take_pending() {
  if (pending_lines_ == 0) return;
  take(pending_);
  line_ += std::exchange(pending_lines_, 0) - 1;
}

void FileReader::take(std::string_view line) {
  ++line_;
  if (names_nodes()) {
    const auto names_node = [&](std::string_view word) { return !options_.node_of(word).empty(); };
    if (const std::string node = node_in_heading(line, names_node); !node.empty()) {
      part_ = node;
      return;
    }
  }
  if (is_omission(line) || is_prompt(line)) return;
  const LineRole took = form_->take(line, parts_);
  if (parts_.host.empty() && took == LineRole::message) parts_.host = writer_in(parts_);
  add_line(took);
}

void FileReader::find_year(const std::vector<std::string>& sample, const IsNode& is_node) {
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

void FileReader::find_writer(const std::vector<std::string>& sample, const IsNode& is_node) {
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

std::string_view FileReader::writer_in(const Parts& parts) const {
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

Sink& FileReader::add_sink(const std::string& node, std::string_view host) {
  FileResult& result = out_.emplace_back();
  result.source = source_;
  if (!node.empty()) {
    result.source.node = node;
    result.source.host = printable(host.substr(0, kLongestHost));
    result.source.shared = true;
  }
  sinks_.push_back(std::make_unique<Sink>(parts_, clock_, most_, kept_, result));
  return *sinks_.back();
}

Sink& FileReader::sink_of(LineRole took) {
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

void FileReader::close() {
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

void FileReader::read_lines() {
  std::string_view line;
  for (const std::string& sample_line : sample_) take_unwrapped(sample_line);
  while (lines_.next(line)) take_unwrapped(line);
  take_pending();
}

void FileReader::read_journal() {
  JournalReader journal(lines_, sample_.empty() ? std::string_view() : sample_[0]);
  JournalEntry entry;
  while (journal.next(entry)) {
    line_ = journal.lines_read();
    LineRole took = form_->take_inner(entry.message, parts_);
    if (took == LineRole::rest) took = LineRole::message;
    parts_.time = entry.time;
    if (parts_.level == Level::none) parts_.level = entry.level;
    if (parts_.logger.empty()) parts_.logger = entry.identifier.empty() ? entry.unit : entry.identifier;
    parts_.host = entry.host;
    add_line(took);
  }
  line_ = journal.lines_read();
  if (!journal.problem().empty()) sinks_[0]->source().problem = journal.problem();
}

}  // namespace rose::logs
