// The trace that logs become: events that they tell of, or that are guessed, among what the run without faults did.
// Private to diagnose.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/logs/case.h"
#include "trace/event.h"

namespace rose::diagnose {

class LogTrace {
 public:
  // A trace with the case's times.
  explicit LogTrace(const LogCase& log_case);

  [[nodiscard]] trace::Event event(trace::EventType type, const std::string& node, std::int64_t ts);
  [[nodiscard]] trace::StringId intern(std::string_view text) { return out_.strings.intern(text); }
  void put(const trace::Event& event, LogEvidence::OfEvent evidence);
  // Is there a failed call already of this node and kind, with this error, of such a file and peer?
  [[nodiscard]] bool tells(const trace::Event& failed) const { return failed_.contains(key_of(failed)); }
  // Adds an event that only helps to interpret the others.
  void put_beside(const trace::Event& event) { made_.push_back({event, {}}); }
  // Adds a silence: nothing was sent from one to the other in either direction.
  void put_silence(const std::string& node, const std::string& peer, std::int64_t begin, std::int64_t end,
                   double weight, const std::string& words, bool inferred = false);

  // From here on the incident went another way than the run without faults.
  void cut_off(const std::string& node, std::int64_t ts);
  // The run without faults itself: what comes before the causes is what they may wait for.
  void put_control();

  // Gives the trace to `inputs`, with what is said of its events.
  void finish(Inputs& inputs) &&;

 private:
  struct Made {
    trace::Event event;
    LogEvidence::OfEvent evidence;
  };

  using FailedCall = std::tuple<trace::StringId, std::int16_t, std::int16_t, std::string, trace::StringId>;
  [[nodiscard]] FailedCall key_of(const trace::Event& failed) const;

  const LogCase& case_;
  trace::Trace out_;
  std::vector<Made> made_;
  std::set<FailedCall> failed_;
  std::map<std::string, std::int64_t> cut_;
};

}  // namespace rose::diagnose
