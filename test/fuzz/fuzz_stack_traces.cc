// Stack traces in logs: no content may crash the reader, and every frame that it returns must have a possible name and
// line.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "explain/stack_traces/stack_traces.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<rose::schedule::Frame> frames =
      rose::explain::read_stack_trace({reinterpret_cast<const char*>(data), size});
  if (frames.size() > rose::explain::kMostTraceFrames) std::abort();
  for (const rose::schedule::Frame& frame : frames)
    if (frame.function.empty() || frame.line < 0 || frame.function.find('\n') != std::string::npos ||
        frame.file.find('\n') != std::string::npos)
      std::abort();
  return 0;
}
