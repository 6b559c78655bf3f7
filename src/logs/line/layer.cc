#include "logs/line/layer.h"

#include <algorithm>
#include <array>
#include <set>

#include "logs/line/chars.h"
#include "logs/line/continuation.h"
#include "logs/line/header.h"
#include "logs/line/machine_layers.h"
#include "logs/line/nested_host.h"
#include "logs/line/tool_layers.h"

namespace rose::logs {
namespace {

// The fields that contain a program's whole line. "message" and "msg" are not among them, because an object with one of
// these keys has further fields of the same message, so the object is the program's own form.
constexpr std::array kWholeLineKeys = std::to_array<std::string_view>({"log", "line", "_raw", "textPayload", "Line"});
constexpr std::array kEnvelopeTimeKeys = std::to_array<std::string_view>(
    {"@timestamp", "timestamp", "time", "ts", "date", "_time", "Time", "receiveTimestamp"});

std::size_t leading_blanks(std::string_view text) { return std::min(text.find_first_not_of(" \t"), text.size()); }

}  // namespace

// Reads {"@timestamp":..., "kubernetes":{"pod_name":"n1-0"}, "log":"the program's line"}.
bool Layer::read_envelope(std::string_view line, LayerFields& out) {
  if (!line.starts_with('{') || !json_.parse(line)) return false;
  const JsonMember* text = nullptr;
  for (const std::string_view key : kWholeLineKeys)
    if (text == nullptr) text = json_.find(key);
  if (text == nullptr || !text->text) return false;
  for (const std::string_view key : kEnvelopeTimeKeys)
    if (const JsonMember* time = out.time ? nullptr : json_.find(key); time != nullptr)
      out.time = read_time(time->value);
  host_ = nested_host(json_.members());
  if (!out.time && host_.empty()) return false;
  for (const char* key : {"severity", "level"})
    if (const JsonMember* level = json_.find(key); level != nullptr && level->text) out.level = level_of(level->value);
  out.host = host_;
  out.text = text->value;
  while (!out.text.empty() && (out.text.back() == '\n' || out.text.back() == '\r')) out.text.remove_suffix(1);
  return true;
}

bool Layer::read(std::string_view line, LayerFields& out) {
  switch (kind_) {
    case Kind::docker: return read_docker(line, json_, out);
    case Kind::cri: return read_cri(line, out);
    case Kind::syslog: return read_syslog(line, out);
    case Kind::syslog_5424: return read_syslog_5424(line, out);
    case Kind::journal_json: return read_journal_json(line, json_, text_, out);
    case Kind::envelope: return read_envelope(line, out);
    case Kind::csv: return csv_.read(line, out);
    case Kind::quote: return read_quote(line, out);
    case Kind::prefix: return read_prefix(line, out);
    case Kind::stern: return read_stern(line, out);
    case Kind::stream: return read_stream(line, out);
    case Kind::origin: return read_origin(line, out);
    case Kind::file_name: return read_file_name(line, out);
    case Kind::timestamp: return read_timestamp(line, out);
    case Kind::indent:
      if (leading_blanks(line) < blanks_) return line.empty();
      out.text = line.substr(blanks_);
      return true;
  }
  return false;
}

bool Layer::take(std::string_view line, LayerFields& out) {
  if (!read(line, out)) return false;
  if (kind_ != Kind::syslog && kind_ != Kind::syslog_5424) return true;
  // Some programs indent every message (Scylla, corosync). Therefore a line continues the message before it only if it
  // has more blanks than the least indented message of its program.
  const std::size_t blanks = leading_blanks(out.text);
  if (blanks == out.text.size()) return true;
  // A file may name any number of programs, so the indentation is tracked only for this many.
  constexpr std::size_t kMostPrograms = 1024;
  auto known = indents_.find(std::string(out.logger));
  if (known == indents_.end()) {
    if (indents_.size() >= kMostPrograms) return true;
    known = indents_.emplace(std::string(out.logger), blanks).first;
  }
  std::size_t& usual = known->second;
  usual = std::min(usual, blanks);
  out.text.remove_prefix(usual);
  return true;
}

bool Layer::is_journal() const { return kind_ == Kind::syslog || kind_ == Kind::syslog_5424 || kind_ == Kind::cri; }

std::string_view Layer::name() const {
  switch (kind_) {
    case Kind::docker: return "docker's JSON";
    case Kind::cri: return "containerd's lines";
    case Kind::syslog: return "syslog (RFC 3164)";
    case Kind::syslog_5424: return "syslog (RFC 5424)";
    case Kind::journal_json: return "the journal as JSON";
    case Kind::envelope: return "a collector's JSON";
    case Kind::csv: return "CSV";
    case Kind::quote: return "quoted lines";
    case Kind::indent: return "indented lines";
    case Kind::prefix: return "lines with a service's name before them";
    case Kind::stern: return "lines with pod and container before them";
    case Kind::stream: return "lines with a time and a stream's name before them";
    case Kind::origin: return "lines with a node's name before them";
    case Kind::file_name: return "lines with a file's name before them";
    case Kind::timestamp: return "lines with a time before them";
  }
  return {};
}

// Seven of ten lines must have the layer. Other lines may be between them, because a tool added them or because they
// continue messages.
bool Layer::fits(std::span<const std::string> sample, const IsNode& is_node) {
  if (kind_ == Kind::origin && !is_node) return false;
  std::size_t fit = 0, lines = 0, further = 0;
  std::set<std::string> origins;
  if (kind_ == Kind::csv && !csv_.find(sample, is_node)) return false;
  if (kind_ == Kind::indent) {
    std::size_t least = std::string::npos;
    for (const std::string& line : sample)
      if (!line.empty()) least = std::min(least, leading_blanks(line));
    if (least == std::string::npos || least == 0) return false;
    blanks_ = least;
    return true;
  }
  for (const std::string& line : sample) {
    if (line.empty()) continue;
    // Skip indented lines: in journalctl's text output, the further lines of a message are indented.
    if (blank_char(line[0])) continue;
    LayerFields out;
    const bool has_it = read(line, out) && (kind_ != Kind::origin || is_node(out.host));
    // Text pasted from a journal contains continuation lines without a timestamp. They do not count against the layer:
    // the earlier lines already prove that the file has it, because no program writes lines of this form itself.
    if (!has_it && fit != 0 && (is_journal() || kind_ == Kind::origin)) {
      Parts parts;
      if (!read_header(line, parts)) continue;
    }
    ++lines;
    if (!has_it) continue;
    ++fit;
    if (kind_ == Kind::stern) origins.insert(std::string(line.substr(0, line.size() - out.text.size())));
    if (kind_ == Kind::stream) origins.emplace(out.host);
    // A program's own header may also begin with a timestamp. The timestamp certainly comes from a tool if the text
    // after it is a continuation or has a timestamp of its own.
    if (kind_ == Kind::timestamp || kind_ == Kind::stern || kind_ == Kind::stream) {
      Parts parts;
      const bool header = read_header(out.text, parts);
      // "Error: ..." looks like a continuation, but may be a message.
      const bool rest = looks_like_rest(out.text) && !out.text.empty() && !names_exception(out.text);
      further += kind_ == Kind::timestamp ? rest || (header && parts.time)
                                          : header || out.text.starts_with('{') || looks_like_rest(out.text);
    }
  }
  if (lines == 0 || fit * 10 < lines * 7) return false;
  // A single line in which the names of columns occur is no table. It may be an object: "web | {"ts":1,"msg":"up"}".
  if (kind_ == Kind::csv && csv_.has_head() && lines == 1) return false;
  if (kind_ == Kind::timestamp) return further != 0 && fit * 10 >= lines * 9;
  // Require repeated names: the first words of sentences differ from line to line, whereas the names of pods or streams
  // are repeated.
  if (kind_ == Kind::stern || kind_ == Kind::stream)
    return further * 10 >= fit * 7 && origins.size() * 2 <= std::max<std::size_t>(fit, 4);
  return true;
}

std::optional<Layer> Layer::choose(std::span<const std::string> sample, const IsNode& is_node) {
  for (const Kind kind : {Kind::docker, Kind::cri, Kind::syslog_5424, Kind::syslog, Kind::journal_json, Kind::csv,
                          Kind::envelope, Kind::quote, Kind::prefix, Kind::stern, Kind::stream, Kind::origin,
                          Kind::file_name, Kind::timestamp, Kind::indent}) {
    Layer layer(kind);
    if (!layer.fits(sample, is_node)) continue;
    layer.csv_.restart();
    return layer;
  }
  return std::nullopt;
}

}  // namespace rose::logs
