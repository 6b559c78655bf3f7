#include "logs/line/form.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/ascii.h"
#include "base/regex.h"
#include "logs/line/chars.h"
#include "logs/line/colours.h"
#include "logs/line/continuation.h"
#include "logs/line/fields.h"
#include "logs/line/fixed_forms.h"
#include "logs/line/header.h"
#include "logs/line/json_line.h"
#include "logs/line/layer.h"
#include "logs/line/time_form.h"
#include "logs/line/time_parts.h"

namespace rose::logs {
namespace {

// The groups of a pattern in rose.toml, in the order of Inner::groups.
constexpr std::array kGroups =
    std::to_array<std::string_view>({"time", "level", "thread", "logger", "host", "message"});

constexpr std::size_t kMostPrograms = 1024;  // programs in one file whose lines are counted separately

enum class Kind { plain, header, json, logfmt, klog, access, custom };

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::plain: return "text without times";
    case Kind::header: return {};
    case Kind::json: return "JSON, one object per line";
    case Kind::logfmt: return "key=value";
    case Kind::klog: return "glog";
    case Kind::access: return "a web server's access log";
    case Kind::custom: return "the pattern of rose.toml";
  }
  return {};
}

// True for a function in a stack trace of Go: "net/http.(*conn).serve(0xc0000)".
bool is_call(std::string_view line) {
  const std::size_t open = line.find('(');
  return open != std::string_view::npos && open > 0 && line.ends_with(')') && line.find(' ') > open;
}

// True if the line begins with exactly one blank, as it does if levels are aligned to the right. Frames of a stack have
// a deeper indentation.
bool is_padded(std::string_view line) { return line.size() > 1 && line[0] == ' ' && !blank_char(line[1]); }

}  // namespace

std::string pattern_problem(const std::string& pattern) {
  const Regex regex(pattern);
  if (const std::string problem = regex.problem(); !problem.empty())
    return fmt::format("is not a regular expression (RE2): {}", problem);
  bool message = false;
  for (const auto& [name, index] : regex.groups()) {
    if (!is_any(name, kGroups))
      return fmt::format("has a group named '{}', accepted are time, level, thread, logger, host and message", name);
    if (static_cast<std::size_t>(index) >= Regex::kMostGroups)
      return fmt::format("has more than {} groups", Regex::kMostGroups - 1);
    message = message || name == "message";
  }
  return message ? "" : "has no group named message: (?P<message>...) is needed";
}

struct Form::Inner {
  std::vector<Layer> layers;  // outermost first
  bool journal_export = false;
  std::vector<std::string> layer_colours;  // the buffers for without_colours(), one for each layer
  Kind kind = Kind::plain;
  std::vector<Kind> also;  // other kinds of lines in the sample
  std::string layout;
  const CustomForm* custom = nullptr;
  std::optional<Regex> regex;
  // Indices of the pattern's groups, in the order of kGroups; 0: none.
  std::array<std::size_t, kGroups.size()> groups{};
  JsonLine json;
  std::vector<JsonMember> members;
  std::string colours, fields, values, nested;
  // The lines of one program, if a layer names the program of each line. `formed`: number of lines that fit this form.
  // `formless`: number of lines that neither fit it nor look like a continuation.
  struct FormOfProgram {
    std::size_t formed = 0, formless = 0;
  };
  std::map<std::string, FormOfProgram> formed;
  std::string last_program;  // the program that wrote the last line, if a layer names programs
  bool scarce = false;  // the form has no time, and few lines of the sample fit it, such as "Error: ..." between others
  bool padded = false;  // most lines of the sample begin with one blank; see is_padded()
  bool open = false;    // the log of the container has split a line, and the next part is still to come
  std::size_t strays = 0;  // consecutive lines that fit no form and were treated as continuations

  // True if the line has the form of a continuation. If most lines begin with a blank, a blank does not make a line a
  // continuation.
  [[nodiscard]] bool is_rest(std::string_view line) const {
    return looks_like_rest(padded && is_padded(line) ? line.substr(1) : line);
  }
  bool read_custom(std::string_view line, Parts& parts) {
    std::array<std::string_view, Regex::kMostGroups> found;
    if (!regex->find(line, found)) return false;
    const auto group = [&](std::size_t index) {
      return groups[index] == 0 ? std::string_view() : found[groups[index]];
    };
    if (const std::string_view time = group(0); !time.empty())
      parts.time = custom->time.empty() ? read_time(time) : read_time_as(time, custom->time);
    parts.level = level_of(group(1));
    parts.thread = group(2);
    parts.logger = group(3);
    parts.host = group(4);
    parts.text = group(5);
    return true;
  }

  // Tools that put a timestamp before each line (`kubectl logs --timestamps`, `docker logs -t`) leave the program's own
  // timestamp and level after it.
  void read_inner_header(Parts& parts) {
    if (!parts.time || parts.level != Level::none || parts.text.empty()) return;
    Parts inside;
    const bool object =
        parts.text.front() == '{' && json.parse(parts.text) && read_fields(json.members(), inside, fields, nested);
    if (!object && !(read_time(parts.text) && read_header(parts.text, inside))) return;
    if (!inside.time || (!object && inside.time->kind != TimeKind::date_time)) return;
    parts.level = inside.level;
    parts.text = inside.text;
    if (!inside.logger.empty()) parts.logger = inside.logger;
    if (!inside.thread.empty()) parts.thread = inside.thread;
  }

  bool read(Kind which, std::string_view line, Parts& parts) {
    switch (which) {
      case Kind::plain: return false;
      case Kind::header:
        if (!read_header(line, parts)) return false;
        read_inner_header(parts);
        return true;
      case Kind::json:
        return line.starts_with('{') && json.parse(line) && read_fields(json.members(), parts, fields, nested);
      case Kind::logfmt:
        return parse_logfmt(attributes_of(line), members, values) && read_fields(members, parts, fields, nested);
      case Kind::klog: return read_klog(line, parts);
      case Kind::access: return read_access(line, parts);
      case Kind::custom: return read_custom(line, parts);
    }
    return false;
  }

  // Counts a line of the last program. `formed_line`: the line fits the form; `itself`: it does not look like a
  // continuation. Returns true if few of this program's lines fit the form.
  bool mostly_formless(bool formed_line, bool itself) {
    constexpr std::size_t kFew = 2;  // at most this many continuation lines of a message may look like messages
    auto known = formed.find(last_program);
    if (known == formed.end()) {
      if (formed.size() >= kMostPrograms) return true;
      known = formed.emplace(last_program, FormOfProgram()).first;
    }
    FormOfProgram& of = known->second;
    if (formed_line) ++of.formed;
    else if (itself) ++of.formless;
    return of.formless > kFew * of.formed;
  }

  // Parses a line whose layers were removed. Tries the main kind, then the other kinds in the sample. A line that fits
  // none of them is a message or a continuation.
  LineRole take_inner(std::string_view text, Parts& parts) {
    parts = {};
    text = without_colours(text, colours);
    if (read(kind, text, parts)) return strays = 0, LineRole::message;
    for (const Kind other : also) {
      parts = {};
      if (read(other, text, parts)) return strays = 0, LineRole::message;
    }
    parts = {};
    parts.text = text;
    if (text.empty()) return LineRole::nothing;
    if (begins_by_itself(text)) return strays = 0, LineRole::message;
    if (is_rest(text)) return LineRole::rest;
    if (kind == Kind::plain || (scarce && !is_call(text))) return LineRole::message;
    // If the lines with timestamps fit a form, a line between them that fits none continues the message before it. If
    // many such lines follow each other, however, each of them is a message.
    constexpr std::size_t kMostStrays = 64;
    return ++strays > kMostStrays ? LineRole::message : LineRole::rest;
  }
};

Form::Form() : inner_(std::make_unique<Inner>()) {}
Form::Form(Form&&) noexcept = default;
Form& Form::operator=(Form&&) noexcept = default;
Form::~Form() = default;

namespace {
// The time that the collector wrote. It has no year, so it gets the year in which it is closest to the program's own
// time.
TimeStamp with_year_of(TimeStamp yearless, const TimeStamp& dated) {
  constexpr std::int64_t kDayNs = 86'400'000'000'000;
  int stated = 0, standing_in = 0;
  unsigned month = 0, day = 0;
  date_of(dated.ns / kDayNs, stated, month, day);
  date_of(yearless.ns / kDayNs, standing_in, month, day);
  std::int64_t best = 0;
  for (const int year : {stated, stated - 1, stated + 1}) {
    const std::int64_t ns = days_of(year, month, day) * kDayNs + yearless.ns % kDayNs;
    if (best == 0 || std::abs(ns - dated.ns) < std::abs(best - dated.ns)) best = ns;
  }
  yearless.ns = best;
  yearless.kind = TimeKind::date_time;
  return yearless;
}
}  // namespace

LineRole Form::take(std::string_view line, Parts& parts) {
  Inner& in = *inner_;
  LayerFields all;
  all.text = line;
  bool wrapped = false;
  for (std::size_t i = 0; i < in.layers.size(); ++i) {
    LayerFields out;
    // A line without this layer was inserted by a tool, or it continues a message that contained line feeds.
    if (!in.layers[i].take(without_colours(all.text, in.layer_colours[i]), out)) break;
    wrapped = true;
    if (out.nothing) return LineRole::nothing;
    // Of several layers, the outermost one with a time is the most reliable: its time usually has a date and a zone,
    // and comes from the same clock for all lines of the container.
    if (!all.time) all.time = out.time;
    if (out.level != Level::none) all.level = out.level;
    if (all.host.empty()) all.host = out.host;
    if (!out.logger.empty()) all.logger = out.logger;
    all.partial = all.partial || out.partial;
    all.whole = all.whole || out.whole;
    all.rest = all.rest || out.rest;
    all.text = out.text;
  }
  if (!wrapped) return in.take_inner(line, parts);
  if (std::exchange(in.open, all.partial)) {
    parts = {};
    parts.text = all.text;
    return LineRole::joined;
  }
  if (all.rest) {
    parts = {};
    parts.text = all.text;
    return LineRole::rest;
  }
  const LineRole took = in.take_inner(all.text, parts);
  if (all.time && all.time->kind == TimeKind::no_year && parts.time && parts.time->kind == TimeKind::date_time)
    parts.time = with_year_of(*all.time, *parts.time);
  else if (all.time) parts.time = all.time;
  if (parts.level == Level::none) parts.level = all.level;
  if (parts.logger.empty()) parts.logger = all.logger;
  if (parts.host.empty()) parts.host = all.host;
  if (all.logger.empty()) return took == LineRole::rest && all.whole ? LineRole::message : took;
  // Several programs, such as systemd and the kernel, write into one journal. A line of one program never continues a
  // message of another program. If most lines of a program do not have this form, each of its lines is a message unless
  // it looks like a continuation.
  const bool other_program = all.logger != in.last_program;
  in.last_program.assign(all.logger);
  const bool itself = !looks_like_rest(all.text);
  const bool formless = in.mostly_formless(took == LineRole::message, itself) && itself;
  if (took == LineRole::rest && (all.whole || other_program || formless)) return LineRole::message;
  return took;
}

LineRole Form::take_inner(std::string_view text, Parts& parts) { return inner_->take_inner(text, parts); }

bool Form::is_journal_export() const { return inner_->journal_export; }

std::string Form::words() const {
  std::string inner(kind_name(inner_->kind));
  if (inner_->kind == Kind::header) inner = fmt::format("'{}'", inner_->layout);
  std::string around(inner_->journal_export ? std::string_view("the journal's export form") : std::string_view());
  for (const Layer& layer : inner_->layers)
    around += fmt::format("{}{}", around.empty() ? "" : " around ", layer.name());
  if (around.empty()) return inner;
  if (inner_->kind == Kind::plain) return around;
  return fmt::format("{} around {}", around, inner);
}

namespace {
// A file may have several layers, for example those of a collector, a container runtime and a terminal. More than
// kMostLayers do not occur in practice.
constexpr std::size_t kMostLayers = 5;

bool is_export(const std::string& line) {
  return line.starts_with("__CURSOR=") || line.starts_with("__REALTIME_TIMESTAMP=");
}
}  // namespace

Form Form::choose(std::span<const std::string> sample, const CustomForm* custom, const IsNode& is_node) {
  Form form;
  Inner& in = *form.inner_;
  in.journal_export = !sample.empty() && is_export(sample[0]);
  // Each layer is chosen from what remains of the sample when the layers around it are removed.
  std::vector<std::string> inside;
  std::string colours;
  for (const std::string& line : sample) inside.emplace_back(without_colours(line, colours));
  while (!in.journal_export && !inside.empty() && in.layers.size() < kMostLayers) {
    std::optional<Layer> layer = Layer::choose(inside, is_node);
    if (!layer) break;
    std::vector<std::string> left;
    for (const std::string& line : inside) {
      LayerFields out;
      if (!layer->take(line, out)) left.push_back(line);
      else if (!out.nothing) left.emplace_back(without_colours(out.text, colours));
    }
    inside = std::move(left);
    in.layers.push_back(*std::move(layer));
  }
  in.layer_colours.resize(in.layers.size());
  if (custom != nullptr && !custom->pattern.empty()) {
    in.custom = custom;
    in.regex.emplace(custom->pattern);
    for (const auto& [name, index] : in.regex->groups()) {
      const auto at = std::find(kGroups.begin(), kGroups.end(), name);
      if (at != kGroups.end() && static_cast<std::size_t>(index) < Regex::kMostGroups)
        in.groups[static_cast<std::size_t>(at - kGroups.begin())] = static_cast<std::size_t>(index);
    }
    in.kind = Kind::custom;
    // A user's pattern describes what the program wrote, without what a container runtime or the journal adds.
    std::erase_if(in.layers, [](const Layer& layer) {
      return layer.kind() == Layer::Kind::syslog || layer.kind() == Layer::Kind::syslog_5424 ||
             layer.kind() == Layer::Kind::prefix || layer.kind() == Layer::Kind::stern ||
             layer.kind() == Layer::Kind::stream || layer.kind() == Layer::Kind::origin ||
             layer.kind() == Layer::Kind::timestamp || layer.kind() == Layer::Kind::csv;
    });
    return form;
  }
  constexpr std::array kKinds = {Kind::json, Kind::klog, Kind::access, Kind::logfmt, Kind::header};
  std::array<std::size_t, kKinds.size()> fits{};
  bool timed = !in.layers.empty();
  const auto pads = std::count_if(inside.begin(), inside.end(), is_padded);
  in.padded = static_cast<std::size_t>(pads) * 2 > inside.size();
  for (const std::string& text : inside) {
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      Parts parts;
      if (!in.read(kKinds[i], text, parts)) continue;
      ++fits[i];
      timed = timed || parts.time.has_value();
      if (kKinds[i] == Kind::header && in.layout.empty() && parts.time) (void)read_header(text, parts, &in.layout);
      break;  // take the first kind that fits, because the more specific kinds come first
    }
  }
  const std::size_t best = static_cast<std::size_t>(std::max_element(fits.begin(), fits.end()) - fits.begin());
  if (fits[best] != 0) in.kind = kKinds[best];
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (i != best && fits[i] != 0) in.also.push_back(kKinds[i]);
  }
  if (in.kind == Kind::header && in.layout.empty()) in.layout = "level message";
  // If the lines have no times, perhaps only a few of the messages begin with a level. The lines between these are then
  // messages of their own.
  const auto formless = std::count_if(inside.begin(), inside.end(), [&](const std::string& text) {
    return !text.empty() && !in.is_rest(text) && !is_call(text);
  });
  in.scarce = in.kind == Kind::header && !timed && static_cast<std::size_t>(formless) > 3 * fits[best];
  return form;
}

}  // namespace rose::logs
