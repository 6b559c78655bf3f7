// Guesses faults that no message of the incident's logs mentions. Needs the control run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "evidence/logs/case.h"
#include "evidence/logs/source.h"

namespace rose::evidence {

class Guesses {
 public:
  // Both must outlive this object.
  Guesses(const LogCase& log_case, LogSource& out);

  // Adds failed calls and an end of the process before the most important observable of each node (its anchor); if no
  // node has an observable, before the end of each log. Calls that succeeded in the control run are guessed to have
  // failed. They are ranked by the number of messages between the call and the anchor, then by the number of recorded
  // calls that the same thread made in between.
  void add_calls();
  // Adds a pause and a partition of each node, unless a message names a cause.
  void add_stops();

 private:
  // Adds failed calls and an end of the process before the first message of `anchor` in this log; before the end of the
  // log if `anchor` is null.
  void add_calls_before(std::size_t log, const logs::Observed* anchor);
  // How far a site is from the anchor.
  struct Distance {
    std::size_t messages = 0, calls = 0;
  };
  void add_failed_call(const trace::Event* done, const std::string& node, std::int64_t ts, const Distance& distance,
                       const std::string& before);
  // By how many messages the node's log differs from its log of the control run, summed over all kinds of messages.
  [[nodiscard]] std::uint64_t unusual_messages(std::size_t log) const;

  const LogCase& case_;
  const logs::Evidence& evidence_;
  LogSource& out_;
  // the greatest weight of a hint other than an exception: how explicitly the logs name a cause
  double explicitness_ = 0;
};

}  // namespace rose::evidence
