// Finds clocks that were set while a log was written: the timestamps of the log jump back, or far ahead, and those of
// the other nodes' logs do not. Removes the jumps from the timestamps, so that all logs share one time line. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "logs/line/times.h"

namespace rose::logs {

class Logs;

struct ClockJump {
  std::size_t log = 0;              // index into Logs::nodes
  std::int64_t at_ns = 0;           // when the clock was set: the corrected time of the first message after that
  std::int64_t until_ns = kNoTime;  // when it was set right again: the time of the first message after that; kNoTime:
                                    // not seen
  std::int64_t change_ns = 0;       // negative: the clock was set back
  double weight = 0;                // how reliable the evidence is, 0..1
  std::string words;                // "server.log:17 of n1: its times jump forward by 1h, and back 9s later"
};

// Call this while the messages of each file are still together and in the order of the file.
[[nodiscard]] std::vector<ClockJump> undo_clock_jumps(Logs& logs);

}  // namespace rose::logs
