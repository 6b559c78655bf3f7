// The text form of a trace, as one string.
#pragma once

#include <string>
#include <string_view>

#include "trace/jsonl.h"

namespace rose::fuzz {

inline std::string text_of(const trace::Trace& trace) {
  std::string text;
  trace::write_jsonl(trace, [&](std::string_view lines) { text += lines; });
  return text;
}

}  // namespace rose::fuzz
