// Builds the source of evidence that represents the logs: what messages report, what may have happened before these
// messages, and, as context, what nodes do in a run without faults.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "evidence/evidence.h"
#include "evidence/logs/case.h"
#include "evidence/observation.h"

namespace rose::evidence {

class LogSource {
 public:
  // An empty source that covers the incident's time.
  explicit LogSource(const LogCase& log_case);

  [[nodiscard]] Observation observation(trace::EventType type, const std::string& node, std::int64_t ts);
  [[nodiscard]] trace::StringId intern(std::string_view text) { return out_.strings.intern(text); }
  void put(Observation observation, Origin origin);
  // True if the source already contains a failed call with the same node, call, error, file pattern and peer.
  [[nodiscard]] bool has_failed_call(const Observation& failed) const { return failed_.contains(key_of(failed)); }
  // Adds an observation that is no candidate and only gives context to others.
  void put_context(Observation observation);
  // Adds a silence of the connection between two nodes: no packets in either direction from `begin` to `end`. `node`:
  // the node whose log reports it.
  void put_silence(const std::string& node, const std::string& peer, std::int64_t begin, std::int64_t end,
                   Origin origin);

  // States that the incident differs from the control run from `ts` on, so put_control() leaves out the node's later
  // events.
  void cut_off(const std::string& node, std::int64_t ts);
  // Adds the events of the control run as context: a fault can wait for the events that precede it. Must be called
  // after all calls of cut_off().
  void put_control();

  // Appends the source to `inputs`.
  void finish(Evidence& inputs) &&;

 private:
  using FailedCall = std::tuple<trace::StringId, std::int16_t, std::int16_t, std::string, trace::StringId>;
  [[nodiscard]] FailedCall key_of(const Observation& failed) const;

  const LogCase& case_;
  Source out_;
  std::set<FailedCall> failed_;
  std::map<std::string, std::int64_t> cut_;
};

}  // namespace rose::evidence
