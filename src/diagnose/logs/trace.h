// Builds the trace that represents the logs: reported and guessed events, and the events of the control run as their
// context. Private to diagnose.
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
  // An empty trace that covers the incident's time.
  explicit LogTrace(const LogCase& log_case);

  [[nodiscard]] trace::Event event(trace::EventType type, const std::string& node, std::int64_t ts);
  [[nodiscard]] trace::StringId intern(std::string_view text) { return out_.strings.intern(text); }
  void put(const trace::Event& event, LogEvidence::OfEvent evidence);
  // True if the trace already contains a failed call with the same node, call, error, file pattern and peer.
  [[nodiscard]] bool has_failed_call(const trace::Event& failed) const { return failed_.contains(key_of(failed)); }
  // Adds an event that is no candidate and only gives context to others.
  void put_context(const trace::Event& event) { made_.push_back({event, {}}); }
  // Adds a silence of the connection between two nodes: no packets in either direction from `begin` to `end`.
  // `inferred`: no message names the peer.
  void put_silence(const std::string& node, const std::string& peer, std::int64_t begin, std::int64_t end,
                   double weight, const std::string& words, bool inferred = false);

  // From `ts` on, the incident differs from the control run: put_control() leaves out the node's later events.
  void cut_off(const std::string& node, std::int64_t ts);
  // Adds the events of the control run: those before a fault are the contexts that it can wait for. Call it last.
  void put_control();

  // Appends the trace, and the evidence for its events, to `inputs`.
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
