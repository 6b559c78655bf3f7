#include "observe/dump_plan.h"

#include <algorithm>

namespace rose::observe {

std::string_view trigger_word(TriggerKind kind) {
  switch (kind) {
    case TriggerKind::signal: return "signal";
    case TriggerKind::control: return "control";
    case TriggerKind::oracle: return "oracle";
    case TriggerKind::crash: return "crash";
    case TriggerKind::log: return "log";
    case TriggerKind::together: return "together";
    case TriggerKind::end: return "end";
  }
  return "end";
}

std::string Cause::text() const {
  std::string out(trigger_word(kind));
  if (!what.empty()) out += ": " + what;
  return out;
}

DumpPlan::Answer DumpPlan::trigger(Cause cause, std::int64_t now) {
  const bool asked = on_request(cause.kind);
  const bool joins = std::any_of(planned_.begin(), planned_.end(),
                                 [&](const Planned& planned) { return on_request(planned.cause.kind) == asked; });
  if (joins) {
    ++left_out_;
    return Answer::joined;
  }
  if (!asked) {
    if (last_ns_ && now - *last_ns_ < cooldown_ns_) {
      ++left_out_;
      return Answer::cooling;
    }
    last_ns_ = now;
  }
  planned_.push_back({std::move(cause), now + after_ns_});
  return Answer::planned;
}

std::optional<Cause> DumpPlan::due(std::int64_t now) {
  const auto found =
      std::find_if(planned_.begin(), planned_.end(), [&](const Planned& planned) { return planned.at_ns <= now; });
  if (found == planned_.end()) return std::nullopt;
  Cause cause = std::move(found->cause);
  planned_.erase(found);
  return cause;
}

std::int64_t DumpPlan::failed(Cause cause, std::int64_t now) {
  const std::int64_t wait = retry_ns_;
  retry_ns_ = std::min(retry_ns_ * 2, kLastRetry);
  planned_.push_back({std::move(cause), now + wait});
  return wait;
}

std::optional<std::int64_t> DumpPlan::next_ns() const {
  std::optional<std::int64_t> next;
  for (const Planned& planned : planned_) next = std::min(next.value_or(planned.at_ns), planned.at_ns);
  return next;
}

std::optional<Cause> DumpPlan::pending() const {
  // Prefer the automatic trigger, because it explains more than a request.
  const Cause* best = nullptr;
  for (const Planned& planned : planned_) {
    if (best == nullptr || on_request(best->kind)) best = &planned.cause;
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

std::uint64_t DumpPlan::take_left_out() {
  const std::uint64_t fresh = left_out_ - reported_left_out_;
  reported_left_out_ = left_out_;
  return fresh;
}

OracleAnswers::Meaning OracleAnswers::take(std::optional<int> exit_status) {
  ++asked;
  if (exit_status == 0) {
    if (!armed_) return Meaning::nothing;
    armed_ = false;
    ++hits;
    return Meaning::hit;
  }
  if (exit_status == 1) {
    armed_ = true;
    return Meaning::nothing;
  }
  ++unclear;
  return Meaning::unclear;
}

}  // namespace rose::observe
