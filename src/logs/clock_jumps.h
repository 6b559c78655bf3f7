// Clocks that were set while a log was written: its times jump, back or far ahead, and those of the other nodes do not.
// Tells such jumps, and takes them out of the times, so that everything else sees all logs on one time line. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "logs/line/times.h"

namespace rose::logs {

class Logs;

struct ClockJump {
  std::size_t log = 0;              // index into Logs::nodes
  std::int64_t at_ns = 0;           // on the clock as it was before: of the first message that has a changed time
  std::int64_t until_ns = kNoTime;  // set right again, on that same clock; kNoTime: not seen
  std::int64_t change_ns = 0;       // negative: back
  double weight = 0;                // 0..1: how plainly the times say it
  std::string words;                // "server.log:17 of n1: its times jump forward by 1h, and back 9s later"
};

// The messages of each file must still stand in its own order, file after file.
[[nodiscard]] std::vector<ClockJump> undo_clock_jumps(Logs& logs);

}  // namespace rose::logs
