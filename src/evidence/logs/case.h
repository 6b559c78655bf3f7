// Compares the logs of one incident with the logs of the survey's run without faults (the "control run"): maps names in
// the logs to nodes of the configuration, and times of the control run to times of the incident.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evidence/evidence.h"
#include "logs/evidence.h"
#include "trace/event.h"

namespace rose::evidence {

// A piecewise linear map from times of the control run to times of the incident, both wall clock in ns. Its points are
// the messages that both logs contain. Before the first point and after the last point, the difference between the two
// times is that of the nearest point.
class TimeLine {
 public:
  // Adds a point. Points must be added in ascending order of `normal`. A point with the same `normal` as the previous
  // point, or with an earlier `failure`, is ignored, because the map must be monotonic.
  void add(std::int64_t normal, std::int64_t failure);
  // Sets the difference to use if there are no points, in ns.
  void shift(std::int64_t by) { shift_ = by; }
  [[nodiscard]] bool empty() const { return points_.empty(); }
  [[nodiscard]] std::int64_t operator()(std::int64_t normal) const;

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> points_;
  std::int64_t shift_ = 0;
};

// The begin and the end of the trace, wall clock in ns: as its metadata state them, else the time of its first or last
// event.
[[nodiscard]] std::int64_t begin_of(const trace::Trace& trace);
[[nodiscard]] std::int64_t end_of(const trace::Trace& trace);

class LogCase {
 public:
  // The arguments must outlive this object. `control` is the trace of the run without faults; may be nullptr.
  LogCase(const Evidence& inputs, const logs::Evidence& evidence, const trace::Trace* control);

  [[nodiscard]] const Evidence& inputs() const { return inputs_; }
  [[nodiscard]] const logs::Evidence& evidence() const { return evidence_; }
  [[nodiscard]] const trace::Trace* control() const { return control_; }

  // The name of a node in the configuration: `name`, or if that is empty, the only node of the configuration.
  [[nodiscard]] std::string node_of(const std::string& name) const;
  [[nodiscard]] std::string name_of(std::size_t log) const;  // `log`: index into the failure's nodes
  [[nodiscard]] std::string_view name_in_control(const trace::Event& event) const;
  // True if the profile contains such calls of the node, or if there is no profile or it contains no calls of the node
  // at all.
  [[nodiscard]] bool makes_call(const std::string& node, std::string_view call) const;

  [[nodiscard]] bool timed() const { return timed_; }  // at least one message of the failure has a timestamp
  // The times of the failure's first and last message, wall clock in ns. If no message has a timestamp, the begin and
  // the end of the control run; without a control run, 0 and one second.
  [[nodiscard]] std::int64_t first() const { return first_; }
  [[nodiscard]] std::int64_t last() const { return last_; }
  // Converts a time of the control run to the incident's time, using the matched messages of all nodes or of `node`
  // only.
  [[nodiscard]] std::int64_t to_incident(std::int64_t normal) const { return common_(normal); }
  [[nodiscard]] std::int64_t to_incident(std::string_view node, std::int64_t normal) const;
  // The time of the hint's message; the middle of the incident if the message has no timestamp.
  [[nodiscard]] std::int64_t time_of(const logs::Hint& hint) const;
  // The latest time at which the node may have been killed if the message of this hint is its last one. The control run
  // shows when the node would have logged its next message, so the latest time is just before that.
  [[nodiscard]] std::int64_t latest(const logs::Hint& hint, const std::string& node) const;

 private:
  void read_times();

  const Evidence& inputs_;
  const logs::Evidence& evidence_;
  const trace::Trace* control_;
  std::map<std::string, TimeLine, std::less<>> lines_;  // key: node
  TimeLine common_;
  std::int64_t first_ = logs::kNoTime, last_ = 0;
  bool timed_ = false;
};

}  // namespace rose::evidence
