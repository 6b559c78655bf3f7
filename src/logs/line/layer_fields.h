// The fields of a line that a collector, a container runtime or a terminal added; see layer.h.
#pragma once

#include <optional>
#include <string_view>

#include "logs/line/level.h"
#include "logs/line/times.h"

namespace rose::logs {

// The fields that a layer adds to the line inside it. They are views into the line or into the layer's buffers, and are
// valid until the layer reads its next line.
struct LayerFields {
  std::optional<TimeStamp> time;
  Level level = Level::none;
  std::string_view host, logger, text;
  bool partial = false;  // the layer has split the program's line, which continues in the next line
  bool whole = false;    // the line is a separate message, whatever it looks like
  bool nothing = false;  // the line contains nothing of the program, such as the header row of a table
  bool rest = false;     // the line continues the message before it
};

}  // namespace rose::logs
