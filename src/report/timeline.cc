#include "report/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "base/units.h"
#include "report/dump/phrases.h"
#include "report/dump/show.h"
#include "report/markup.h"

namespace rose::report {

using trace::Event;
using trace::EventType;
using trace::ProcessState;

namespace {

// Sizes in units of the SVG's view box. The script of the page also uses the values of kLeft and kPlot (page.js).
constexpr double kWidth = 1200;
constexpr double kLeft = 150;
constexpr double kPlot = 1040;
constexpr double kTick = 1.6;  // width of the mark of an instant
constexpr double kRow = 17;
constexpr double kLaneGap = 6;
constexpr double kLetter = 6.1;  // average width of a character in a label
constexpr std::size_t kMostLanes = 40;
constexpr std::size_t kMostMoments = 400;
constexpr std::size_t kMostFaultRows = 12;
constexpr std::size_t kMostTitle = 240;
constexpr int kFinestBins = 1 << 17;

enum Row : int { kProcess, kSilence, kFailure, kFunction, kChange, kRows };

struct RowStyle {
  std::string_view style, label, one, many,
      colour;  // used if the style sheet is not applied
};
constexpr std::array<RowStyle, kRows> kRowStyles = {
    {{"ps", "process", "process event", "process events", "#a3277c"},
     {"nd", "silent", "silence", "silences", "#2b6cb0"},
     {"scf", "failed", "failed call", "failed calls", "#c26a00"},
     {"af", "function", "function", "functions", "#0b7a5c"},
     {"sys", "changed", "state-changing call", "state-changing calls", "#64748b"}}};

Row row_of(const Event& e) {
  switch (e.type) {
    case EventType::ps: return kProcess;
    case EventType::nd: return kSilence;
    case EventType::scf: return kFailure;
    case EventType::af: return kFunction;
    case EventType::sys: return kChange;
  }
  return kFailure;
}

std::int64_t duration_of(const Event& e) {
  return (e.type == EventType::nd || e.type == EventType::ps) && e.duration_ms > 0
             ? e.duration_ms * std::int64_t{1'000'000}
             : 0;
}

// Groups the digits: 12345 becomes "12,345".
std::string grouped(std::uint64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

// Events that share a mark are combined if these keys are equal.
std::uint64_t kind_key(const Event& e, std::size_t source) {
  std::uint64_t hash = 1469598103934665603ULL;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 1099511628211ULL; };
  for (const std::uint64_t value :
       {std::uint64_t{source}, std::uint64_t(e.type), std::uint64_t(std::uint16_t(e.syscall)),
        std::uint64_t(std::uint16_t(e.err)), std::uint64_t{e.path}, std::uint64_t{e.path2}, std::uint64_t{e.peer},
        std::uint64_t{e.function}, std::uint64_t{e.src}, std::uint64_t{e.dst}, std::uint64_t(e.state),
        std::uint64_t{e.signal}, std::uint64_t(e.flags & (trace::kInjected | trace::kMain))})
    mix(value);
  return hash;
}

struct Reference {
  std::uint32_t source = 0;
  std::uint32_t index = 0;
};

// The events of one lane and row that share a mark.
struct Cell {
  std::uint32_t first = 0;  // index in the group's events
  std::uint32_t last = 0;   // index of the last event
  std::int64_t begin_ns = 0, end_ns = 0;
};

struct Group {
  std::vector<Reference> events;  // sorted by time
  std::vector<Cell> cells;
};

// Arranges items with labels in rows, so that labels do not overlap.
class Shelf {
 public:
  explicit Shelf(std::size_t most) : most_(most) {}
  std::size_t place(double from, double to) {
    for (std::size_t i = 0; i < ends_.size(); ++i)
      if (ends_[i] <= from) {
        ends_[i] = to;
        return i;
      }
    if (ends_.size() < most_) {
      ends_.push_back(to);
      return ends_.size() - 1;
    }
    return most_ - 1;
  }
  [[nodiscard]] std::size_t rows() const { return ends_.size(); }

 private:
  std::size_t most_;
  std::vector<double> ends_;
};

struct Lane {
  std::string name;
  std::array<Group, kRows> groups;
  std::uint64_t events = 0;
  double top = 0;
  std::array<double, kRows> row_top{};
  double fault_top = 0;
  Shelf faults{kMostFaultRows};
};

struct PlacedMoment {
  const Moment* moment = nullptr;
  std::size_t lane = 0;
  std::size_t row = 0;
  bool flipped = false;  // the label is to the left of the item
};

class Drawing {
 public:
  Drawing(const Panel& panel, const TimelineOptions& options)
      : panel_(panel), options_(options), stretch_(options.stretch) {
    if (stretch_.length() <= 0) stretch_.to_ns = stretch_.from_ns + 1'000'000'000;
    for (const std::string& name : options.lanes) lane(name);
    collect();
    place_moments();
    thin();
    layout();
  }

  std::string svg() {
    const double height = bottom_ + 30;
    out_ += fmt::format(
        "<svg class=\"tl\" viewBox=\"0 0 {0} {1:.0f}\" width=\"{0}\" height=\"{1:.0f}\" role=\"img\" "
        "aria-labelledby=\"t{2} d{2}\" data-from=\"{3:.9f}\" data-to=\"{4:.9f}\" font-family=\"sans-serif\" "
        "font-size=\"11\">\n",
        kWidth, height, options_.number, seconds(stretch_.from_ns), seconds(stretch_.to_ns));
    out_ += fmt::format("<title id=\"t{}\">{}</title>\n<desc id=\"d{}\">{}</desc>\n", options_.number,
                        escape(panel_.title), options_.number, escape(description()));
    definitions();
    background();
    axis();
    out_ += fmt::format("<g class=\"z\" clip-path=\"url(#c{})\">\n", options_.number);
    for (int row = kChange; row >= kProcess; --row) draw_row(static_cast<Row>(row));
    draw_boundaries();
    draw_moments();
    out_ += "</g>\n</svg>\n";
    return std::move(out_);
  }

 private:
  static double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

  double x(std::int64_t ns) const {
    return kLeft + kPlot * static_cast<double>(ns - stretch_.from_ns) / static_cast<double>(stretch_.length());
  }
  std::int64_t clipped(std::int64_t ns) const { return std::clamp(ns, stretch_.from_ns, stretch_.to_ns); }

  std::size_t lane(const std::string& name) {
    if (const auto known = lane_of_.find(name); known != lane_of_.end()) return known->second;
    if (lanes_.size() >= kMostLanes) {
      // Deployments are rarely that large, but a hostile dump may name a million nodes.
      if (lanes_.size() == kMostLanes) lanes_.emplace_back();
      ++other_nodes_;
      lanes_.back().name = fmt::format("{} more", grouped(other_nodes_));
      if (lane_of_.size() < 10 * kMostLanes) lane_of_.emplace(name, kMostLanes);
      return kMostLanes;
    }
    lanes_.emplace_back().name = name;
    lane_of_.emplace(name, lanes_.size() - 1);
    return lanes_.size() - 1;
  }

  void collect() {
    for (std::size_t s = 0; s < panel_.sources.size(); ++s) {
      const Source& source = panel_.sources[s];
      const trace::TraceBase& trace = *source.trace;
      constexpr std::uint32_t kUnasked = std::numeric_limits<std::uint32_t>::max();
      std::vector<std::uint32_t> lanes(trace.strings.size() + 1, kUnasked);
      address_names_.merge(nodes_by_address(trace.meta));
      for (std::size_t i = 0; i < source.events.size(); ++i) {
        const Event& e = *source.events[i];
        const std::int64_t end = e.ts_ns - panel_.zero_ns;
        if (end < stretch_.from_ns) {
          ++before_;
          continue;
        }
        if (end - duration_of(e) > stretch_.to_ns) {
          ++after_;
          continue;
        }
        std::uint32_t& at = lanes[std::min<std::size_t>(e.node, lanes.size() - 1)];
        if (at == kUnasked) at = static_cast<std::uint32_t>(lane(source.node ? source.node(e) : node_of(trace, e)));
        lanes_[at].groups[row_of(e)].events.push_back({static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(i)});
        lanes_[at].events += e.count;
      }
    }
    if (panel_.sources.size() < 2) return;
    for (Lane& one : lanes_)
      for (Group& group : one.groups)
        std::stable_sort(group.events.begin(), group.events.end(),
                         [&](const Reference& a, const Reference& b) { return event(a).ts_ns < event(b).ts_ns; });
  }

  const Event& event(const Reference& r) const { return *panel_.sources[r.source].events[r.index]; }

  // Reducing the number of marks

  // Events of processes and silences are few and matter most. They have their own share of the marks, so that they are
  // drawn singly even if there are many calls.
  void thin() {
    const std::size_t quarter = options_.marks / 4;
    thin({kProcess, kSilence}, quarter);
    thin({kFailure}, options_.marks - 2 * quarter);
    thin({kFunction, kChange}, quarter);
  }

  void thin(std::initializer_list<Row> rows, std::size_t budget) {
    std::size_t events = 0;
    for (const Lane& one : lanes_)
      for (const Row row : rows) events += one.groups[row].events.size();
    if (events <= budget) {
      cells(rows, 0);
      return;
    }
    int bins = kFinestBins;
    while (bins > 1 && count_cells(rows, bins) > budget) bins /= 2;
    cells(rows, bins);
  }

  std::int64_t bin(const Reference& r, int bins) const {
    const double share = static_cast<double>(clipped(event(r).ts_ns - panel_.zero_ns) - stretch_.from_ns) /
                         static_cast<double>(stretch_.length());
    return static_cast<std::int64_t>(share * bins);
  }

  std::size_t count_cells(std::initializer_list<Row> rows, int bins) const {
    std::size_t count = 0;
    for (const Lane& one : lanes_)
      for (const Row row : rows) {
        std::int64_t last = -1;
        for (const Reference& r : one.groups[row].events) {
          const std::int64_t at = bin(r, bins);
          if (at != last) ++count;
          last = at;
        }
      }
    return count;
  }

  // If `bins` is 0, there is one cell for each event.
  void cells(std::initializer_list<Row> rows, int bins) {
    for (Lane& one : lanes_)
      for (const Row row : rows) {
        Group& group = one.groups[row];
        std::int64_t last = -1;
        for (std::size_t i = 0; i < group.events.size(); ++i) {
          const Event& e = event(group.events[i]);
          const std::int64_t end = clipped(e.ts_ns - panel_.zero_ns);
          const std::int64_t begin = clipped(e.ts_ns - panel_.zero_ns - duration_of(e));
          const std::int64_t at = bins == 0 ? static_cast<std::int64_t>(i) : bin(group.events[i], bins);
          if (at != last || group.cells.empty()) {
            group.cells.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i), begin, end});
          } else {
            Cell& cell = group.cells.back();
            cell.last = static_cast<std::uint32_t>(i);
            cell.begin_ns = std::min(cell.begin_ns, begin);
            cell.end_ns = std::max(cell.end_ns, end);
          }
          last = at;
        }
      }
  }

  // Layout

  void place_moments() {
    for (const Moment& moment : panel_.moments) {
      if (moment.begin_ns > stretch_.to_ns || std::max(moment.end_ns, moment.begin_ns) < stretch_.from_ns) continue;
      if (placed_.size() >= kMostMoments) break;
      PlacedMoment placed;
      placed.moment = &moment;
      placed.lane = moment.node.empty() && !lanes_.empty() ? 0 : lane(moment.node);
      placed_.push_back(placed);
    }
    std::stable_sort(placed_.begin(), placed_.end(), [](const PlacedMoment& a, const PlacedMoment& b) {
      return a.moment->begin_ns < b.moment->begin_ns;
    });
    for (PlacedMoment& placed : placed_) {
      const Moment& moment = *placed.moment;
      const double from = x(clipped(moment.begin_ns));
      const double label = 14 + kLetter * static_cast<double>(std::min<std::size_t>(moment.label.size(), 40));
      double to = std::max(end_x(moment), from + label);
      double begin = from - 6;
      if (from + label > kLeft + kPlot) {
        placed.flipped = true;
        begin = from - label;
        to = std::max(end_x(moment), from + 8);
      }
      placed.row = lanes_[placed.lane].faults.place(begin, to);
    }
  }

  double end_x(const Moment& moment) const {
    if (moment.open) return kLeft + kPlot;
    return x(clipped(std::max(moment.end_ns, moment.begin_ns)));
  }

  void layout() {
    Shelf shelf(4);
    for (const Boundary& boundary : panel_.boundaries) {
      const double from = x(clipped(boundary.at_ns));
      const double length = 10 + kLetter * static_cast<double>(boundary.label.size());
      const bool flipped = from + length > kWidth;
      boundary_row_.push_back(shelf.place(flipped ? from - length : from, flipped ? from + 2 : from + length));
      boundary_flipped_.push_back(flipped);
    }
    top_ = 6 + 15.0 * static_cast<double>(shelf.rows());
    double y = top_;
    for (Lane& one : lanes_) {
      one.top = y;
      y += kLaneGap / 2;
      one.fault_top = y;
      y += kRow * static_cast<double>(one.faults.rows());
      bool any = one.faults.rows() > 0;
      for (int row = 0; row < kRows; ++row) {
        one.row_top[row] = y;
        if (one.groups[row].cells.empty()) continue;
        y += kRow;
        any = true;
      }
      if (!any) y += kRow;
      // leaves room for the count below the name
      if (one.events > 0) y = std::max(y, one.top + kLaneGap / 2 + 2 * kRow - 4);
      y += kLaneGap / 2;
    }
    bottom_ = std::max(y, top_ + kRow);
  }

  // Texts

  std::string description() const {
    std::uint64_t events = 0;
    std::size_t marks = 0;
    for (const Lane& one : lanes_) {
      events += one.events;
      for (const Group& group : one.groups) marks += group.cells.size();
    }
    std::string text = fmt::format("{} events of {} nodes from {} to {}, {} marks", grouped(events), lanes_.size(),
                                   moment_text(stretch_.from_ns), moment_text(stretch_.to_ns), grouped(marks));
    if (before_ + after_ > 0)
      text += fmt::format("; {} events before and {} after this stretch", grouped(before_), grouped(after_));
    return text + ". The table below it lists the most important ones in order.";
  }

  std::string describe_event(const Reference& r) const {
    const Event& e = event(r);
    const trace::TraceBase& trace = *panel_.sources[r.source].trace;
    std::string text = describe(trace, e);
    if (e.type == EventType::nd) {
      const auto name = [&](trace::StringId id) {
        const auto known = address_names_.find(std::string(trace.str(id)));
        return known == address_names_.end() ? std::string("?") : known->second;
      };
      const std::string from = name(e.src);
      const std::string to = name(e.dst);
      if (from != "?" || to != "?") text += fmt::format(" ({} -> {})", from, to);
    }
    return shorten(text, kMostTitle);
  }

  std::string title_of(const Group& group, const Cell& cell, Row row) {
    const Reference first = group.events[cell.first];
    const std::string when = moment_text(cell.begin_ns);
    std::string text;
    if (cell.first == cell.last) {
      const Event& e = event(first);
      text = cell.end_ns > cell.begin_ns ? fmt::format("{} to {}", when, moment_text(cell.end_ns)) : when;
      text += "\n" + describe_event(first);
      if (e.tid != 0 || e.pid != 0)
        text += fmt::format("\npid {}{}", e.pid, e.tid != 0 && e.tid != e.pid ? fmt::format(" tid {}", e.tid) : "");
    } else {
      // number of events of a kind, and index of the first one
      std::unordered_map<std::uint64_t, std::pair<std::uint64_t, std::uint32_t>> kinds;
      std::uint64_t all = 0;
      for (std::uint32_t i = cell.first; i <= cell.last; ++i) {
        const Event& e = event(group.events[i]);
        auto& [count, example] = kinds[kind_key(e, group.events[i].source)];
        if (count == 0) example = i;
        count += e.count;
        all += e.count;
      }
      std::vector<std::pair<std::uint64_t, std::uint32_t>> sorted;
      for (const auto& [key, kind] : kinds) sorted.push_back(kind);
      constexpr std::size_t kShown = 3;
      const std::size_t shown = std::min(sorted.size(), kShown);
      std::partial_sort(
          sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(shown), sorted.end(),
          [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
      text = fmt::format("{} to {}: {} {}", when, moment_text(cell.end_ns), grouped(all), kRowStyles[row].many);
      if (text.size() < text_left_)
        for (std::size_t i = 0; i < shown; ++i)
          text += fmt::format("\n{} x {}", grouped(sorted[i].first), describe_event(group.events[sorted[i].second]));
      if (sorted.size() > kShown) text += fmt::format("\nand {} more kinds", grouped(sorted.size() - kShown));
    }
    std::string escaped = escape(text);
    if (escaped.size() > text_left_) return escape(text.substr(0, text.find('\n')));
    text_left_ -= escaped.size();
    return escaped;
  }

  // Drawing

  void definitions() {
    const int n = options_.number;
    out_ += fmt::format(
        "<defs><clipPath id=\"c{0}\"><rect x=\"{1}\" y=\"0\" width=\"{2}\" height=\"{3:.0f}\"/></clipPath>"
        "<path id=\"fault{0}\" d=\"M-6.5-6H6.5L0 6.5z\"/><circle id=\"cond{0}\" r=\"5.2\"/>"
        "<path id=\"crash{0}\" d=\"M-5.5-3.5-3.5-5.5 0-2 3.5-5.5 5.5-3.5 2 0 5.5 3.5 3.5 5.5 0 2-3.5 5.5-5.5 3.5-2 "
        "0z\"/>"
        "<path id=\"exit{0}\" d=\"M-4-4H4V4H-4z\" fill=\"none\" stroke-width=\"1.6\"/><path id=\"start{0}\" d=\"M-4-5 "
        "5 0-4 5z\"/>"
        "<path id=\"af{0}\" d=\"M0-5 4.2 0 0 5-4.2 0z\"/>",
        n, kLeft - 8, kPlot + 16, bottom_);
    const auto hatch = [&](std::string_view name, int angle, std::string_view style, std::string_view colour) {
      out_ += fmt::format(
          "<pattern id=\"{}{}\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
          "patternTransform=\"rotate({})\">"
          "<rect class=\"{}\" width=\"5\" height=\"5\" fill=\"{}\" fill-opacity=\".28\"/>"
          "<rect class=\"{}\" width=\"1.6\" height=\"5\" fill=\"{}\"/></pattern>",
          name, n, angle, style, colour, style, colour);
    };
    hatch("hf", 45, "fault", "#c8320f");
    hatch("hp", -45, "ps", "#a3277c");
    hatch("hn", 90, "nd", "#2b6cb0");
    out_ += "</defs>\n";
  }

  void background() {
    out_ += "<g class=\"lanes\">\n";
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const Lane& one = lanes_[i];
      const double end = i + 1 < lanes_.size() ? lanes_[i + 1].top : bottom_;
      out_ += fmt::format(
          "<rect class=\"lane{}\" x=\"0\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\" fill=\"#888\" "
          "fill-opacity=\"{}\"/>",
          i % 2, one.top, kWidth, end - one.top, i % 2 == 0 ? ".09" : ".03");
      out_ += fmt::format("<text class=\"node\" x=\"8\" y=\"{:.1f}\" font-weight=\"bold\">{}</text>", one.top + 15,
                          escape(shorten(one.name, 14)));
      if (one.events > 0)
        out_ += fmt::format("<text class=\"dim\" x=\"8\" y=\"{:.1f}\" font-size=\"10\">{} event{}</text>", one.top + 28,
                            grouped(one.events), one.events == 1 ? "" : "s");
      const auto label = [&](double y, std::string_view text) {
        out_ += fmt::format("<text class=\"dim\" x=\"{}\" y=\"{:.1f}\" font-size=\"10\" text-anchor=\"end\">{}</text>",
                            kLeft - 12, y + 12, text);
      };
      if (one.faults.rows() > 0) label(one.fault_top, "faults");
      for (int row = 0; row < kRows; ++row)
        if (!one.groups[row].cells.empty()) label(one.row_top[row], kRowStyles[row].label);
      out_ += "\n";
    }
    out_ += "</g>\n";
  }

  void axis() {
    out_ += fmt::format("<g class=\"axis\" data-top=\"{:.1f}\" data-bottom=\"{:.1f}\">", top_, bottom_);
    // Draw about ten ticks at round times. The script draws them again when the view changes.
    const double length = seconds(stretch_.length());
    double step = std::pow(10.0, std::floor(std::log10(length / 10)));
    for (const double factor : {2.0, 2.5, 2.0})
      if (length / step > 12) step *= factor;
    for (double at = std::ceil(seconds(stretch_.from_ns) / step) * step; at <= seconds(stretch_.to_ns) + step / 1e6;
         at += step) {
      const double px = x(static_cast<std::int64_t>(std::llround(at * 1e9)));
      out_ += fmt::format(
          "<line x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"#888\" stroke-opacity=\".3\"/>"
          "<text x=\"{0:.2f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4}</text>",
          px, top_, bottom_ + 4, bottom_ + 17, moment_text(static_cast<std::int64_t>(std::llround(at * 1e9))));
    }
    out_ += "</g>\n";
  }

  void draw_row(Row row) {
    const RowStyle& row_style = kRowStyles[row];
    out_ += fmt::format("<g class=\"{0}\" fill=\"{1}\" stroke=\"none\">\n", row_style.style, row_style.colour);
    for (const Lane& one : lanes_)
      for (const Cell& cell : one.groups[row].cells) draw_cell(one.groups[row], cell, row, one.row_top[row]);
    out_ += "</g>\n";
  }

  void draw_cell(const Group& group, const Cell& cell, Row row, double y) {
    const int n = options_.number;
    const double from = x(cell.begin_ns);
    const double width = x(cell.end_ns) - from;
    const std::string title = "<title>" + title_of(group, cell, row) + "</title>";
    bool injected = false;
    const Event* worst = &event(group.events[cell.first]);
    for (std::uint32_t i = cell.first; i <= cell.last; ++i) {
      const Event& e = event(group.events[i]);
      injected = injected || (e.flags & trace::kInjected) != 0;
      if (severity(e) > severity(*worst)) worst = &e;
    }
    const std::string_view ours = injected ? " class=\"inj\"" : "";
    switch (row) {
      case kFailure:
      case kChange: {
        const bool tall = row == kFailure;
        out_ += fmt::format("<rect{} x=\"{:.4f}\" y=\"{:.1f}\" width=\"{:.4g}\" height=\"{}\">{}</rect>\n", ours, from,
                            y + (tall ? 2 : 5), std::max(width, kTick), tall ? 13 : 7, title);
        break;
      }
      case kFunction:
        if (width > 6)
          out_ += fmt::format("<rect{} x=\"{:.4f}\" y=\"{:.1f}\" width=\"{:.4g}\" height=\"5\">{}</rect>\n", ours, from,
                              y + 6, width, title);
        else
          out_ +=
              fmt::format("<use{} href=\"#af{}\" x=\"{:.4f}\" y=\"{:.1f}\">{}</use>\n", ours, n, from, y + 8.5, title);
        break;
      case kSilence:
        out_ += fmt::format(
            "<rect{} x=\"{:.4f}\" y=\"{:.1f}\" width=\"{:.4g}\" height=\"9\" fill=\"url(#hn{})\" stroke=\"{}\" "
            "stroke-width=\".8\">{}</rect>\n",
            ours, from, y + 4, std::max(width, 2.0), n, colour_of(row), title);
        break;
      case kProcess: draw_process(cell, *worst, from, width, y, ours, title); break;
      case kRows: break;
    }
  }

  static std::string_view colour_of(Row row) { return kRowStyles[row].colour; }

  static int severity(const Event& e) {
    int value = 0;
    switch (e.state) {
      case ProcessState::crashed: value = 8; break;
      case ProcessState::paused: value = 6; break;
      case ProcessState::exited: value = 4; break;
      case ProcessState::started: value = 2; break;
      case ProcessState::none: break;
    }
    return value + ((e.flags & trace::kMain) != 0 ? 1 : 0) - ((e.flags & trace::kPlanned) != 0 ? 3 : 0);
  }

  void draw_process(const Cell& cell, const Event& worst, double from, double width, double y, std::string_view ours,
                    const std::string& title) {
    const int n = options_.number;
    if (width > 3) {
      out_ += fmt::format(
          "<rect{} x=\"{:.4f}\" y=\"{:.1f}\" width=\"{:.4g}\" height=\"11\" fill=\"url(#hp{})\" stroke=\"{}\" "
          "stroke-width=\".8\">{}</rect>\n",
          ours, from, y + 3, width, n, colour_of(kProcess), title);
      if (cell.first == cell.last) return;
    }
    const std::string_view shape = worst.state == ProcessState::crashed   ? "crash"
                                   : worst.state == ProcessState::started ? "start"
                                   : worst.state == ProcessState::paused  ? "af"
                                                                          : "exit";
    const std::string_view style = injected_style(ours, (worst.flags & trace::kMain) == 0);
    out_ += fmt::format("<use{} href=\"#{}{}\" x=\"{:.4f}\" y=\"{:.1f}\"{}{}>{}</use>\n", style, shape, n, from,
                        y + 8.5, shape == "exit" ? " stroke=\"#a3277c\"" : "",
                        (worst.flags & trace::kMain) == 0 ? " opacity=\".55\"" : "", title);
  }

  // Helper processes start and end often, so they are drawn less prominently than the node's main process.
  static std::string_view injected_style(std::string_view ours, bool helper) {
    if (!helper) return ours;
    return ours.empty() ? " class=\"helper\"" : " class=\"inj helper\"";
  }

  void draw_boundaries() {
    out_ += "<g class=\"bounds\">\n";
    for (std::size_t i = 0; i < panel_.boundaries.size(); ++i) {
      const Boundary& boundary = panel_.boundaries[i];
      if (boundary.at_ns < stretch_.from_ns || boundary.at_ns > stretch_.to_ns) continue;
      const double px = x(boundary.at_ns);
      const double y = 12 + 15.0 * static_cast<double>(boundary_row_[i]);
      const std::string_view style = boundary.alarm ? "alarm" : "bound";
      const std::string_view colour = boundary.alarm ? "#b00020" : "#475569";
      out_ += fmt::format(
          "<line class=\"{0}\" x1=\"{1:.4f}\" x2=\"{1:.4f}\" y1=\"{2:.1f}\" y2=\"{3:.1f}\" stroke=\"{4}\" "
          "stroke-width=\"1.4\" "
          "stroke-dasharray=\"{5}\"/><text class=\"{0}\" x=\"{1:.4f}\" dx=\"{6}\" y=\"{7:.1f}\" text-anchor=\"{8}\" "
          "fill=\"{4}\">{9}"
          "<title>{10}</title></text>\n",
          style, px, y - 8, bottom_, colour, boundary.alarm ? "none" : "4 3", boundary_flipped_[i] ? -5 : 5, y,
          boundary_flipped_[i] ? "end" : "start", escape(boundary.label), escape(moment_text(boundary.at_ns)));
    }
    out_ += "</g>\n";
  }

  void draw_moments() {
    const int n = options_.number;
    for (const MomentKind kind : {MomentKind::condition, MomentKind::step, MomentKind::fault}) {
      const bool fault = kind == MomentKind::fault;
      if (kind == MomentKind::step && std::none_of(placed_.begin(), placed_.end(), [](const auto& placed) {
            return placed.moment->kind == MomentKind::step;
          }))
        continue;
      out_ += fmt::format("<g class=\"{}\" fill=\"#c8320f\">\n", fault ? "fault" : "cond");
      for (const PlacedMoment& placed : placed_) {
        const Moment& moment = *placed.moment;
        if (moment.kind != kind) continue;
        const Lane& one = lanes_[placed.lane];
        const double y = one.fault_top + kRow * static_cast<double>(placed.row);
        const double from = x(clipped(moment.begin_ns));
        const double width = end_x(moment) - from;
        std::string when = moment_text(moment.begin_ns);
        if (moment.end_ns > moment.begin_ns) when += " to " + moment_text(moment.end_ns);
        const std::string title = "<title>" + escape(when + "\n" + shorten(moment.text, 600)) + "</title>";
        if (fault && width > 2)
          out_ += fmt::format(
              "<rect x=\"{:.4f}\" y=\"{:.1f}\" width=\"{:.4g}\" height=\"13\" fill=\"url(#hf{})\" stroke=\"#c8320f\" "
              "stroke-width=\".9\">{}</rect>\n",
              from, y + 2, width, n, title);
        out_ +=
            fmt::format("<use href=\"#{}{}\" x=\"{:.4f}\" y=\"{:.1f}\"{}>{}</use>", fault ? "fault" : "cond", n, from,
                        y + 8.5, fault ? "" : " fill=\"none\" stroke=\"#c8320f\" stroke-width=\"1.6\"", title);
        if (!moment.label.empty())
          out_ += fmt::format("<text x=\"{:.4f}\" dx=\"{}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}{}</text>", from,
                              placed.flipped ? -10 : 10, y + 12.5, placed.flipped ? "end" : "start",
                              fault ? " font-weight=\"bold\"" : " font-size=\"10\"", escape(shorten(moment.label, 40)),
                              title);
        out_ += "\n";
      }
      out_ += "</g>\n";
    }
  }

  const Panel& panel_;
  const TimelineOptions& options_;
  Stretch stretch_;
  std::vector<Lane> lanes_;
  std::map<std::string, std::size_t> lane_of_;
  std::uint64_t other_nodes_ = 0;
  std::map<std::string, std::string> address_names_;
  std::uint64_t before_ = 0, after_ = 0;
  std::vector<PlacedMoment> placed_;
  std::vector<std::size_t> boundary_row_;
  std::vector<bool> boundary_flipped_;
  double top_ = 0, bottom_ = 0;
  std::size_t text_left_ = options_.text;
  std::string out_;
};

}  // namespace

std::string timeline_svg(const Panel& panel, const TimelineOptions& options) { return Drawing(panel, options).svg(); }

std::string moment_text(std::int64_t ns) {
  const bool before = ns < 0;
  std::string digits = fmt::format("{:.6f}", static_cast<double>(before ? -ns : ns) / 1e9);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits.pop_back();
  if (digits == "0") return "0 s";
  return fmt::format("{}{} s", before ? "-" : "+", digits);
}

Stretch extent(const Panel& panel) {
  Stretch stretch{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  const auto take = [&](std::int64_t begin, std::int64_t end) {
    stretch.from_ns = std::min(stretch.from_ns, begin);
    stretch.to_ns = std::max(stretch.to_ns, end);
  };
  for (const Source& source : panel.sources)
    for (const Event* e : source.events) take(e->ts_ns - duration_of(*e) - panel.zero_ns, e->ts_ns - panel.zero_ns);
  for (const Moment& moment : panel.moments) take(moment.begin_ns, std::max(moment.begin_ns, moment.end_ns));
  for (const Boundary& boundary : panel.boundaries) take(boundary.at_ns, boundary.at_ns);
  if (stretch.from_ns > stretch.to_ns) return {0, 0};
  return stretch;
}

namespace {

// Ranks the events that may be key moments; 0: the event is none. Starts and exits of helper processes are none,
// because they are frequent.
int key_rank(const Event& e) {
  if (e.type == EventType::nd) return 3;
  if (e.type != EventType::ps) return 0;
  if (e.state == ProcessState::crashed || e.state == ProcessState::paused) return 1;
  return (e.flags & trace::kMain) != 0 ? 2 : 0;
}

}  // namespace

std::vector<KeyMoment> key_moments(const Panel& panel, const TimelineOptions& options, std::size_t most,
                                   std::size_t& left_out) {
  std::vector<KeyMoment> all;
  const auto within = [&](std::int64_t at) { return at >= options.stretch.from_ns && at <= options.stretch.to_ns; };
  for (const Moment& moment : panel.moments) {
    std::string text = moment.text;
    if (moment.end_ns > moment.begin_ns) text += fmt::format(", until {}", moment_text(moment.end_ns));
    all.push_back({moment.begin_ns, moment.node,
                   moment.kind == MomentKind::fault  ? "fault"
                   : moment.kind == MomentKind::step ? "step"
                                                     : "condition",
                   std::move(text)});
  }
  for (const Boundary& boundary : panel.boundaries)
    all.push_back({boundary.at_ns, "", boundary.alarm ? "oracle" : "workload", boundary.label});
  left_out = all.size() > most ? all.size() - most : 0;
  all.resize(std::min(all.size(), most));
  // First take crashes and pauses, then starts and exits of main processes, then silences, so that the many events of a
  // less important kind do not displace the others.
  for (int rank = 1; rank <= 3; ++rank)
    for (const Source& source : panel.sources) {
      std::map<trace::StringId, std::string> names;
      for (const Event* event : source.events) {
        const Event& e = *event;
        if (rank != key_rank(e)) continue;
        const std::int64_t begin = e.ts_ns - duration_of(e) - panel.zero_ns;
        if (!within(begin) && !within(e.ts_ns - panel.zero_ns)) continue;
        if (all.size() >= most) {
          ++left_out;
          continue;
        }
        std::string& name = names[e.node];
        if (name.empty()) name = source.node ? source.node(e) : node_of(*source.trace, e);
        all.push_back(
            {begin, name, rank == 3 ? "silence" : "process", shorten(describe(*source.trace, e), kMostTitle)});
      }
    }
  std::stable_sort(all.begin(), all.end(), [](const KeyMoment& a, const KeyMoment& b) { return a.at_ns < b.at_ns; });
  return all;
}

}  // namespace rose::report
