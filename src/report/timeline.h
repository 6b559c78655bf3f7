// Draws what happened on each node as inline SVG with a common time axis: the events of a trace, and the moments that a
// run or a diagnosis adds. The number of marks is limited; events are combined and counted, but never silently dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trace/event.h"

namespace rose::report {

enum class MomentKind {
  fault,      // a fault that was injected, or is suspected in the incident
  condition,  // a condition that was met
  step,       // a step of the story
};

// An item that is not an event of the trace. Times are in nanoseconds relative to the panel's zero.
struct Moment {
  MomentKind kind = MomentKind::fault;
  std::string node;  // name of the lane; "": the first lane
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;  // if not later than begin_ns, the item is an instant
  bool open = false;        // the item continues to the end of the range
  std::string label;        // short text, which is shown beside the mark
  std::string text;         // full text
};

// A line through all lanes, for example at the start of the workload or at the oracle's hit.
struct Boundary {
  std::int64_t at_ns = 0;
  std::string label;
  bool alarm = false;
};

// Events of one trace that are to be drawn.
struct Source {
  // `range`: events of the trace `of`, sorted by time. The trace and these events must outlive the source.
  template <typename Events>
  Source(const trace::TraceBase& of, const Events& range) : trace(&of) {
    events.reserve(range.size());
    for (const trace::Event& event : range) events.push_back(&event);
  }
  explicit Source(const trace::Trace& of) : Source(of, of.events) {}

  const trace::TraceBase* trace;
  std::vector<const trace::Event*> events;
  // Determines the lane of an event. It is called once for each name of a node in the trace. By default, the lane is
  // the event's node.
  std::function<std::string(const trace::Event&)> node;
};

struct Panel {
  std::string title;
  std::string note;  // such as "aligned at the first fault"
  std::vector<Source> sources;
  std::int64_t zero_ns = 0;  // wall clock at the panel's time zero
  std::vector<Moment> moments;
  std::vector<Boundary> boundaries;
};

struct Stretch {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  [[nodiscard]] std::int64_t length() const { return to_ns - from_ns; }
};

struct TimelineOptions {
  std::vector<std::string> lanes;  // these lanes come first, even if they have no events
  Stretch stretch;                 // the same range for all panels, so that their axes are aligned
  std::size_t marks = 3000;        // most marks on one panel
  std::size_t text = 400'000;      // most bytes of text on the marks of one panel; further marks have only counts
  int number = 0;                  // number of the panel on its page, which makes ids unique
};

// The range from the panel's first to its last event, moment or boundary.
[[nodiscard]] Stretch extent(const Panel& panel);

// The <svg> element of one panel.
[[nodiscard]] std::string timeline_svg(const Panel& panel, const TimelineOptions& options);

// The content of the chart as text, for readers who cannot see the chart: the most important moments, in order, as rows
// of a table.
struct KeyMoment {
  std::int64_t at_ns = 0;
  std::string node;
  std::string kind;  // "fault", "condition", "step", "process", "silence", "workload", "oracle"
  std::string text;
};
// The most important moments, at most `most`. `left_out` receives the number of the other moments.
[[nodiscard]] std::vector<KeyMoment> key_moments(const Panel& panel, const TimelineOptions& options, std::size_t most,
                                                 std::size_t& left_out);

// The time without trailing zeros: "+1.234567 s", "-0.5 s".
[[nodiscard]] std::string moment_text(std::int64_t ns);

}  // namespace rose::report
