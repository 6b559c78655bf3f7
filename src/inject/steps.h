// Steps of the workload in the schedule's order. Each step is made once, when the order allows it.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "inject/follow.h"
#include "inject/injector.h"
#include "inject/plan.h"
#include "inject/state.h"

namespace rose::inject {

// Implements Injector::step. `armed`: true once conditions count. `ended`: true once the run ends.
[[nodiscard]] Result<void> make_step(const Plan& plan, State& state, Follows& follows, const std::string& name,
                                     Injector::StepPart part, const std::function<bool()>& armed,
                                     const std::function<bool()>& ended);

}  // namespace rose::inject
