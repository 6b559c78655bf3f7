// Faults that may have happened although no message of an incident's logs mentions them. Needs a run without faults.
// Private to diagnose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "diagnose/logs/case.h"
#include "diagnose/logs/trace.h"

namespace rose::diagnose {

class Guesses {
 public:
  // Both must outlive it.
  Guesses(const LogCase& log_case, LogTrace& out);

  // Sites of the run without faults, by how few messages stand between them and the first observable, then by how
  // little their threads did in between, as far as the trace shows.
  void calls();
  // Where logs say nothing of processes and the network, both are possible: each node stands still, or is cut off, for
  // a while.
  void stops();

 private:
  void near(std::size_t log, const logs::Observed* anchor);
  struct Distance {
    std::size_t messages = 0, calls = 0;
  };
  void call(const trace::Event* done, const std::string& node, std::int64_t ts, const Distance& distance,
            const std::string& before);
  // How many messages of each kind the node says more, or fewer, than in the run without faults.
  [[nodiscard]] std::uint64_t unusual_messages(std::size_t log) const;

  const LogCase& case_;
  const logs::Evidence& evidence_;
  LogTrace& out_;
  double plainness_ = 0;  // how plainly logs name a cause at all
};

}  // namespace rose::diagnose
