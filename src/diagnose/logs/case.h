// An incident's logs, and the run without faults beside them: which node they mean, and when that was. Private to
// diagnose.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/diagnose.h"
#include "logs/evidence.h"
#include "trace/event.h"

namespace rose::diagnose {

// From the time of the run without faults to that of the incident, by the messages that both have.
class TimeLine {
 public:
  void add(std::int64_t normal, std::int64_t failure);
  // Where no message is in both.
  void shift(std::int64_t by) { shift_ = by; }
  [[nodiscard]] bool empty() const { return points_.empty(); }
  [[nodiscard]] std::int64_t operator()(std::int64_t normal) const;

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> points_;
  std::int64_t shift_ = 0;
};

[[nodiscard]] std::int64_t begin_of(const trace::Trace& trace);
[[nodiscard]] std::int64_t end_of(const trace::Trace& trace);

class LogCase {
 public:
  // All must outlive it. `control`: of the run without faults; may be nullptr.
  LogCase(const Inputs& inputs, const logs::Evidence& evidence, const trace::Trace* control);

  [[nodiscard]] const Inputs& inputs() const { return inputs_; }
  [[nodiscard]] const logs::Evidence& evidence() const { return evidence_; }
  [[nodiscard]] const trace::Trace* control() const { return control_; }

  [[nodiscard]] std::string node_of(const std::string& name) const;
  [[nodiscard]] std::string name_of(std::size_t log) const;  // by its place among the failure's
  [[nodiscard]] std::string_view name_in_control(const trace::Event& event) const;
  // Whether the node makes such calls: what the profile counted, where there is one.
  [[nodiscard]] bool makes(const std::string& node, std::string_view call) const;

  [[nodiscard]] bool timed() const { return timed_; }  // some message of the failure has a time
  [[nodiscard]] std::int64_t first() const { return first_; }
  [[nodiscard]] std::int64_t last() const { return last_; }
  // A time of the run without faults on the incident's time line; of all nodes together, or as this one's messages have
  // it.
  [[nodiscard]] std::int64_t there(std::int64_t normal) const { return common_(normal); }
  [[nodiscard]] std::int64_t there(std::string_view node, std::int64_t normal) const;
  // The time of a message without one: as far into the run as those of its neighbours.
  [[nodiscard]] std::int64_t time_of(const logs::Hint& hint) const;
  // A process that was killed said its last message before, and not what it says next in a run without faults.
  [[nodiscard]] std::int64_t latest(const logs::Hint& hint, const std::string& node) const;

 private:
  void read_times();

  const Inputs& inputs_;
  const logs::Evidence& evidence_;
  const trace::Trace* control_;
  std::map<std::string, TimeLine, std::less<>> lines_;  // by node
  TimeLine common_;
  std::int64_t first_ = logs::kNoTime, last_ = 0;
  bool timed_ = false;
};

}  // namespace rose::diagnose
