#include "diagnose/signs.h"

#include <algorithm>

#include "kernel/syscalls.h"

namespace rose::diagnose {
namespace {

// In the form that candidates have too.
std::set<std::string> signs(const trace::Trace& trace) {
  std::set<std::string> found;
  for (const trace::Event& event : trace.events) {
    if ((event.flags & (trace::kInjected | trace::kPlanned)) != 0) continue;
    if (event.type == trace::EventType::scf)
      found.insert(fmt::format("{} {} {}", trace.str(event.node), kernel::syscall_name(event.syscall), kernel::errno_name(event.err)));
    else if (event.type == trace::EventType::ps && event.state == trace::ProcessState::crashed)
      found.insert(fmt::format("{} ended", trace.str(event.node)));
    else if (event.type == trace::EventType::ps && event.state == trace::ProcessState::exited && event.exit_code != 0)
      found.insert(fmt::format("{} ended", trace.str(event.node)));
  }
  return found;
}

}  // namespace

const schedule::FaultOutcome* outcome_of(const schedule::RunResult& result, std::string_view id) {
  for (const schedule::FaultOutcome& outcome : result.faults)
    if (outcome.id == id) return &outcome;
  return nullptr;
}

Promising::Promising(const Plan& plan) {
  for (const Candidate& c : plan.candidates) {
    if (!c.symptom) continue;
    if (c.kind == schedule::FaultKind::crash) symptoms_.insert(fmt::format("{} ended", c.node));
    if (c.kind == schedule::FaultKind::syscall && c.ordinariness <= 1)
      symptoms_.insert(fmt::format("{} {} {}", c.node, c.syscall, c.error));
  }
}

int Promising::score(const trace::Trace& trace) const {
  if (symptoms_.empty()) return 0;
  int score = 0;
  for (const std::string& sign : signs(trace)) score += symptoms_.contains(sign) ? 1 : 0;
  return score;
}

std::vector<Proposal> Promising::take(std::size_t most) {
  std::stable_sort(misses_.begin(), misses_.end(), [](const Miss& a, const Miss& b) { return a.score > b.score; });
  std::vector<Proposal> proposals;
  for (Miss& miss : misses_) {
    if (proposals.size() >= most) break;
    miss.proposal.again = true;
    proposals.push_back(std::move(miss.proposal));
  }
  misses_.clear();
  return proposals;
}

}  // namespace rose::diagnose
