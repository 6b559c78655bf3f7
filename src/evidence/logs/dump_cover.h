// Determines by how much dumps reduce the weight of hints from logs. A dump contains every failed call, end, pause and
// silence of its nodes during its time span. So if a message reports such an event, either the dump contains the event,
// too, or it did not happen: a candidate from the message would at best repeat one from the dump. The exceptions are
// silences and pauses that were too short for the tracer to record them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "evidence/evidence.h"
#include "evidence/logs/case.h"
#include "evidence/nodes.h"

namespace rose::evidence {

class DumpCover {
 public:
  // Reads the dumps among the sources of `inputs`. Both arguments must outlive this object.
  DumpCover(const Evidence& inputs, const LogCase& log_case);

  // The factor by which dumps reduce the weight of a hint about this node and time; 1 if there are no dumps. `log`:
  // index of the log that has the message.
  [[nodiscard]] double factor(const std::string& node, std::int64_t ts, std::size_t log) const;

  // True if a dump contains a silence or a pause of this node at about the time of the hint.
  [[nodiscard]] bool has_silence(const logs::Hint& hint, const std::string& node) const;

 private:
  // The time that a dump covers.
  struct Window {
    std::int64_t begin = 0, end = 0;
    bool whole = true;  // no events were lost
  };
  struct SilentSpan {  // a silence or a pause that a dump contains
    std::string node;
    std::int64_t begin = 0, end = 0;
  };

  void read(std::size_t source, const NodeMap& nodes);

  const Evidence& inputs_;
  const LogCase& case_;
  std::map<std::string, std::vector<Window>> windows_;  // the times that dumps cover; key: node
  std::vector<SilentSpan> silent_spans_;                // the silences and pauses that dumps contain
  std::int64_t last_end_ = 0;                           // when the last dump was written; 0: unknown
};

}  // namespace rose::evidence
