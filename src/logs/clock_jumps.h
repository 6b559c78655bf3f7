// Finds clocks that were set while a log was written: its timestamps jump back or far ahead, and those of the other
// nodes do not. Removes the jumps from the timestamps, so that all logs share one time line. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "logs/line/times.h"

namespace rose::logs {

class Logs;

struct ClockJump {
  std::size_t log = 0;     // index into Logs::nodes
  std::int64_t at_ns = 0;  // by the clock before it was set: the time of the first message with a changed timestamp
  std::int64_t until_ns = kNoTime;  // when the clock was set right again, by the same clock; kNoTime: not seen
  std::int64_t change_ns = 0;       // negative: set back
  double weight = 0;                // 0..1: how reliable the evidence is
  std::string words;                // "server.log:17 of n1: its times jump forward by 1h, and back 9s later"
};

// Call it while the messages of each file are still together and in the file's order.
[[nodiscard]] std::vector<ClockJump> undo_clock_jumps(Logs& logs);

}  // namespace rose::logs
