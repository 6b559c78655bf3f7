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

  // Adds failed calls: sites of the control run, ranked by the number of messages between the site and the node's first
  // observable, then by the number of calls that the site's thread made in between, as far as the trace shows.
  void add_calls();
  // Adds pauses and partitions, if no message names a cause: each node is paused, or partitioned, for some time.
  void add_stops();

 private:
  // Adds the calls before the first message of `anchor` in this log; before the end of the log if `anchor` is null.
  void add_calls_before(std::size_t log, const logs::Observed* anchor);
  // How far a site is from the anchor.
  struct Distance {
    std::size_t messages = 0, calls = 0;
  };
  void add_failed_call(const trace::Event* done, const std::string& node, std::int64_t ts, const Distance& distance,
                       const std::string& before);
  // The number of messages, summed over all kinds, by which the node's log differs from the one of the control run.
  [[nodiscard]] std::uint64_t unusual_messages(std::size_t log) const;

  const LogCase& case_;
  const logs::Evidence& evidence_;
  LogSource& out_;
  double explicitness_ = 0;  // the greatest weight of a hint: how explicitly the logs name a cause
};

}  // namespace rose::evidence
