#include "inject/steps.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "base/text.h"
#include "inject/time_zero.h"

namespace rose::inject {

Result<void> make_step(const Plan& plan, State& state, Follows& follows, const std::string& name,
                       Injector::StepPart part, const std::function<bool()>& armed,
                       const std::function<bool()>& ended) {
  const Mark* mark = plan.mark_named(name);
  if (mark == nullptr || !mark->step) {
    std::vector<std::string> steps;
    for (const Mark& one : plan.marks)
      if (one.step) steps.push_back(one.name);
    std::string hint = did_you_mean(name, steps);
    if (hint.empty())
      hint = steps.empty() ? "its `order` contains no steps" : fmt::format("its steps are {}", fmt::join(steps, ", "));
    return fail(ErrorKind::usage, fmt::format("the schedule's order has no step '{}'", name), std::move(hint));
  }
  const auto open = [&] { return armed() && state.state(mark->chain) != ROSE_WAITING; };
  while (!open() && !ended()) ::usleep(2'000);
  if (!open() || ended())
    return fail(ErrorKind::cancelled, fmt::format("the run ended before the turn of step '{}'", name));
  if (part == Injector::StepPart::begin && follows[mark->chain].begun.exchange(true))
    return fail(ErrorKind::usage, fmt::format("step '{}' has already been started: it happens once", name));
  if (part == Injector::StepPart::end) (void)state.fire(mark->chain, 0, 0, now_ns());
  return {};
}

}  // namespace rose::inject
