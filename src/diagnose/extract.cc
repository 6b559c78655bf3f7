#include "diagnose/extract.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>

#include "diagnose/extract/calls.h"
#include "diagnose/extract/clocks.h"
#include "diagnose/extract/exceptions.h"
#include "diagnose/extract/limits.h"
#include "diagnose/extract/network.h"
#include "diagnose/extract/processes.h"
#include "diagnose/extract/rank.h"
#include "diagnose/extract/unexplained.h"
#include "diagnose/model.h"
#include "evidence/facts.h"

namespace rose::diagnose {

namespace {

// The restarts of main processes, by node. An end after which the dump shows no start is not a restart.
std::vector<RestartSeen> restarts_of(const Given& given, const Facts& facts, const std::vector<Candidate>& candidates) {
  std::map<int, RestartSeen> seen;
  std::int64_t first = kNever;
  for (const ProcessEvent& p : facts.processes) {
    const ProcessState state = p.event->state;
    if ((p.main_known && !p.main) || (state != ProcessState::crashed && state != ProcessState::exited)) continue;
    if (facts.back_after(p.node, p.event->ts_ns) == kNever) continue;
    const auto [it, fresh] = seen.try_emplace(p.node);
    if (fresh) it->second = {.node = given.name(p.node), .ts = p.event->ts_ns};
    it->second.signal = p.signal;
    it->second.status = state == ProcessState::exited ? std::max(0, p.exit_code) : 0;
    first = std::min(first, p.event->ts_ns);
  }
  const auto after = std::count_if(candidates.begin(), candidates.end(), [&](const Candidate& c) {
    return c.kind == schedule::FaultKind::syscall && !c.symptom && c.first_ts >= first;
  });
  std::vector<RestartSeen> list;
  for (auto& [node, restart] : seen) {
    restart.after = static_cast<std::size_t>(after);
    list.push_back(std::move(restart));
  }
  return list;
}

}  // namespace

Plan extract(const Inputs& inputs, const NodeMap& nodes, std::int64_t longest_ns, const profile::Restarts* restarts) {
  const Given given{inputs, nodes, longest_ns, inputs.without.contains("restarts") ? nullptr : restarts};
  const Facts facts = read_facts(given);
  const Programs programs(given);
  Processes processes = extract_processes(given, facts, programs);
  Network network = extract_network(given, facts, end_by_signs_of_life(std::move(processes.causes), given, facts));
  ExtractedCalls calls = extract_calls(given, facts, programs, network.causes);
  Extracted exceptions = extract_exceptions(given, facts.times);
  Extracted clocks = extract_clocks(given, facts.times);
  Extracted limits = extract_limits(given);

  Plan plan;
  plan.begin_ts = facts.times.begin;
  plan.end_ts = facts.times.end;
  plan.workload_ts = facts.times.workload;
  std::vector<std::vector<Candidate>> kinds;
  kinds.push_back(explain_own_ends(std::move(processes.extracted.candidates), network.causes, calls.candidates));
  for (Candidate& disk : calls.disks)  // if a node ended itself right after a short write, the full disk is the reason
    disk.fatal = std::any_of(calls.candidates.begin(), calls.candidates.end(),
                             [&](const Candidate& c) { return c.fatal && c.node == disk.node && c.error.empty(); });
  Extracted unexplained = suspect_last_used(given, facts, kinds.front());
  kinds.push_back(std::move(calls.disks));
  for (Extracted* extracted :
       std::initializer_list<Extracted*>{&network.extracted, &calls, &exceptions, &clocks, &limits, &unexplained})
    kinds.push_back(std::move(extracted->candidates));
  std::optional<std::int64_t> written;  // not set for logs: unlike a dump, a log does not end because of the failure
  if (inputs.recorded()) written = plan.end_ts;
  plan.candidates = weighed(in_order(std::move(kinds), inputs.without), written, inputs.without);
  plan.observables = observables(inputs, plan.candidates);
  plan.restarts = restarts_of(given, facts, plan.candidates);

  Discards discards = facts.discards;
  plan.notes = nodes.notes();
  plan.replicas = nodes.replicas();
  plan.notes.insert(plan.notes.end(), facts.notes.begin(), facts.notes.end());
  for (const Extracted* extracted : std::initializer_list<const Extracted*>{&processes.extracted, &network.extracted,
                                                                            &calls, &exceptions, &clocks, &limits}) {
    discards.add(extracted->discards);
    plan.notes.insert(plan.notes.end(), extracted->notes.begin(), extracted->notes.end());
  }
  plan.notes.insert(plan.notes.end(), inputs.log_notes.begin(), inputs.log_notes.end());
  for (const int node : processes.came_back)
    plan.notes.push_back(
        fmt::format("{} was restarted after its crash, but its [[node]] has no `restart`: in the test deployment it "
                    "will stay down unless the workload starts it",
                    nodes.name(node)));
  plan.failures = facts.failures;
  plan.discarded = discards.list();
  std::uint64_t total = 0;
  for (const Discarded& discarded : plan.discarded) total += discarded.events;
  plan.discarded_share = plan.failures == 0 ? 0 : static_cast<double>(total) / static_cast<double>(plan.failures);
  return plan;
}

}  // namespace rose::diagnose
