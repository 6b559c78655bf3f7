// What happened on each node, as inline SVG on one time axis: a trace's events thinned to a bounded number of marks
// (counted, never dropped silently), and what a run or a diagnosis adds to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trace/event.h"

namespace rose::report {

enum class MomentKind {
  fault,      // injected, or suspected in the incident
  condition,  // met
  step,       // of the story that is told
};

// What is not an event of the trace. Times are nanoseconds since the panel's zero.
struct Moment {
  MomentKind kind = MomentKind::fault;
  std::string node;  // a lane's name; "": the first lane
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;  // <= begin_ns: a point
  bool open = false;        // it went on to the end of the stretch shown
  std::string label;        // stands beside the mark; short
  std::string text;         // the whole of it
};

// Through all lanes: the workload began, the oracle found the bug.
struct Boundary {
  std::int64_t at_ns = 0;
  std::string label;
  bool alarm = false;
};

struct Source {
  const trace::Trace* trace = nullptr;
  // The lane of an event; asked once for each name of the trace. By default the event's node.
  std::function<std::string(const trace::Event&)> node;
};

struct Panel {
  std::string title;
  std::string note;  // "aligned at the first fault", ...
  std::vector<Source> sources;
  std::int64_t zero_ns = 0;  // wall clock of its time zero
  std::vector<Moment> moments;
  std::vector<Boundary> boundaries;
};

struct Stretch {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  [[nodiscard]] std::int64_t length() const { return to_ns - from_ns; }
};

struct TimelineOptions {
  std::vector<std::string> lanes;  // these first, also when nothing happened on them
  Stretch stretch;                 // of all panels, so that their axes are aligned
  std::size_t marks = 3000;        // at most, of events in one panel
  std::size_t text = 400'000;      // bytes of words on marks in one panel; then only counts
  int number = 0;                  // of the panel in its page: makes ids unique
};

// From the panel's first to its last event, moment or boundary.
[[nodiscard]] Stretch extent(const Panel& panel);

// The <svg> of one panel.
[[nodiscard]] std::string timeline_svg(const Panel& panel, const TimelineOptions& options);

// The same in words, for who does not see it: what matters, in order. HTML table rows.
struct KeyMoment {
  std::int64_t at_ns = 0;
  std::string node;
  std::string kind;  // "fault", "condition", "process", "silence", "oracle"
  std::string text;
};
// At most `most`; `left_out` is how many more there are.
[[nodiscard]] std::vector<KeyMoment> key_moments(const Panel& panel, const TimelineOptions& options, std::size_t most,
                                                 std::size_t& left_out);

// "+1.234567 s", "-0.5 s": as precise as given, no zeros at the end.
[[nodiscard]] std::string moment_text(std::int64_t ns);

}  // namespace rose::report
