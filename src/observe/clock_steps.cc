#include "observe/clock_steps.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/log.h"
#include "base/units.h"
#include "trace/clock.h"

namespace rose::observe {

void ClockSteps::note(std::int64_t monotonic_ns, std::int64_t offset_ns) {
  const Step step{monotonic_ns, offset_ns - offset_ns_};
  offset_ns_ = offset_ns;
  log::info("the wall clock was set {} by {}", step.change_ns < 0 ? "back" : "forward",
            format_duration(std::abs(step.change_ns)));
  const std::lock_guard lock(mutex_);
  steps_.push_back(step);
  if (steps_.size() <= kMost) return;
  steps_.pop_front();
  ++forgotten_;
}

std::vector<std::string> ClockSteps::sentences(const std::string& host, std::int64_t offset_ns) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  if (forgotten_ > 0) out.push_back(fmt::format("{}: the clock was set {} times more before", host, forgotten_));
  for (const Step& step : steps_) out.push_back(trace::step_text(host, step.at_ns + offset_ns, step.change_ns));
  return out;
}

}  // namespace rose::observe
