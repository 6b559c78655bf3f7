#include "diagnose/conclude.h"

#include <algorithm>

#include "base/units.h"
#include "diagnose/feedback.h"
#include "diagnose/hypothesis.h"
#include "evidence/forms.h"
#include "weights/weights.h"

namespace rose::diagnose {

using schedule::Tally;
using schedule::Verdict;

namespace {
constexpr std::size_t kMostMissing = 3;  // missing messages quoted in the result
}  // namespace

bool workload_ended_early(const Diagnosis& diagnosis, const Tried& tried) {
  const std::int64_t incident = diagnosis.plan.end_ts - diagnosis.plan.begin_ts;
  return tried.longest_hit_ns > 0 && diagnosis.workload_ns >= kSecond &&
         kFarSooner * tried.longest_hit_ns < std::min(diagnosis.workload_ns, 2 * incident);
}

bool resembles_incident(const Inputs& inputs, const Diagnosis& diagnosis, const Tried& tried) {
  if (inputs.recorded()) return ends_missing(diagnosis.plan, tried).empty();
  return messages_missing(inputs.log_observables, diagnosis, tried).words.empty() &&
         !workload_ended_early(diagnosis, tried);
}

void Conclusion::nothing_to_try() {
  d_.verdict = Verdict::inconclusive;
  d_.reason = d_.plan.failures == 0
                  ? std::string(!inputs_.reported()
                                    ? "the dump contains no failure: nothing failed, fell silent or ended in its window"
                                    : "neither the logs nor the run without faults contain anything to try: no message "
                                      "names a failure, and no call of the nodes precedes one")
                  : fmt::format(
                        "nothing in the dump looks like a fault: all {} failures are normal or belong to no node; see "
                        "'rose diagnose --plan'",
                        d_.plan.failures);
}

std::string Conclusion::ended_early() const {
  if (lab_.left() <= 0) return fmt::format(" (all max_runs = {} runs were made)", inputs_.config->diagnose.max_runs);
  return {};
}

// The reason why all faults of the schedule look like consequences of something else in the dump; "" if at least one
// fault does not look like a consequence.
std::string Conclusion::consequence(const Schedule& schedule) const {
  std::string why;
  for (const Fault& fault : schedule.faults) {
    const auto candidate = std::find_if(d_.plan.candidates.begin(), d_.plan.candidates.end(),
                                        [&](const Candidate& c) { return c.fault.id == fault.id; });
    if (candidate == d_.plan.candidates.end() || !candidate->symptom) return {};
    if (why.empty()) why = candidate->why;
  }
  return why;
}

// A warning if too few of the failure's messages occurred in the runs of `found`, because an oracle that accepts
// several failures may have found another one. "" if enough of them occurred.
std::string Conclusion::missing_messages(const Tried& found) const {
  auto [missing, of] = messages_missing(inputs_.log_observables, d_, found);
  if (of == 0 && !inputs_.recorded())
    return "But the failure's logs contain no message that a run without faults does not contain: only the oracle "
           "shows that this is the same failure.";
  if (missing.empty()) return {};
  const std::size_t all = missing.size();
  if (all > kMostMissing) missing.resize(kMostMissing);
  return fmt::format(
      "But of the failure's messages {} occurred in these runs ({}{}{}): this may be another failure that the oracle "
      "does not distinguish.",
      all == of ? "none" : fmt::format("only {} of {} messages", of - all, of),
      all == of ? "" : "not: ", fmt::join(missing, "; "),
      all > kMostMissing ? fmt::format("; and {} more", all - kMostMissing) : "");
}

std::string Conclusion::missing_ends(const Tried& found) const {
  if (!inputs_.recorded()) return {};
  const std::vector<std::string> missing = ends_missing(d_.plan, found);
  if (missing.empty()) return {};
  return fmt::format(
      "But in production {}; in these runs it did not: this may be another failure that the oracle does not "
      "distinguish.",
      fmt::join(missing, ", and "));
}

// A warning if the schedule repeats an end that a process caused itself, because such a schedule does not show why the
// process ended itself. "" otherwise.
std::string Conclusion::ended_themselves(const Schedule& schedule) const {
  for (const Fault& fault : schedule.faults)
    for (const Candidate& c : d_.plan.candidates)
      if (c.fault.id == fault.id && c.own_end && !c.symptom && fault.kind == FaultKind::crash)
        return fmt::format(
            "But {} ended itself in production ({}): the schedule repeats that end. Its cause is not known.", c.node,
            c.why);
  return {};
}

Remarks Conclusion::remarks(const Found& end) const {
  Remarks made;
  made.places = places_in_words(end.lead.schedule, inputs_.code);
  const auto [low, high] = d_.interval;
  if (d_.unconfirmed) made.rate = "The bug was reproduced in one run. How often it is reproduced was not measured.";
  else
    made.rate =
        fmt::format("The bug then occurs in {} of {} runs ({}; with 95 % confidence between {} and {}).",
                    d_.tally.reproduced, d_.tally.conclusive(), percent(d_.tally.rate()), percent(low), percent(high));
  if (d_.control_runs > 0)
    made.rate += fmt::format(" Without faults it occurred in {} of {}.", d_.control_hits, d_.control_runs);
  if (const std::string why = consequence(end.lead.schedule); !why.empty())
    made.doubts.push_back(
        fmt::format("But in the dump this looks like a consequence, not a cause ({}). Earlier faults were tried and "
                    "did not reproduce the bug; if the oracle checks for this consequence itself, it proves nothing.",
                    why));
  if (std::string missing = missing_messages(d_.tried[end.lead.tried]); !missing.empty())
    made.doubts.push_back(std::move(missing));
  const Tried& tried = d_.tried[end.lead.tried];
  if (std::string missing = missing_ends(tried); !missing.empty()) made.doubts.push_back(std::move(missing));
  if (workload_ended_early(d_, tried))
    made.doubts.push_back(fmt::format(
        "But in these runs the workload ended after {} at most, whereas it takes {} without faults: possibly the "
        "oracle only notices what the workload did not do.",
        format_duration(rounded(tried.longest_hit_ns)), format_duration(rounded(d_.workload_ns))));
  if (std::string ends = ended_themselves(end.lead.schedule); !ends.empty()) made.doubts.push_back(std::move(ends));
  if (end.dropped > 0)
    made.simpler.push_back(fmt::format("The bug also occurs without {} other fault{} of the evidence, so {} omitted.",
                                       end.dropped, end.dropped == 1 ? "" : "s",
                                       end.dropped == 1 ? "that one was" : "those were"));
  if (!end.changes.empty()) made.simpler.push_back(fmt::format("Simplified: {}.", fmt::join(end.changes, "; ")));
  return made;
}

void Conclusion::conclude(const std::optional<Found>& end) {
  if (end && d_.unconfirmed) {
    const Lead& lead = end->lead;
    d_.verdict = Verdict::reproduced;
    d_.level = lead.level;
    d_.schedules = lead.schedules;
    d_.found = lead.schedule;
    d_.remarks = remarks(*end);
    d_.reason = fmt::format(
        "the schedule reproduced the bug in run {}; the search ended there, so its replay rate is not known", d_.runs);
  } else if (end) {
    const Lead& lead = end->lead;
    // The schedule passed its screening, but its final test has not decided yet whether it reaches the target rate.
    const bool open = !end->decided && !lead.accepted && lead.promising;
    d_.target_reached = lead.accepted;
    d_.verdict = d_.target_reached || open ? Verdict::reproduced : Verdict::not_reproduced;
    d_.level = lead.level;
    if (lead.accepted || lead.promising) d_.schedules = lead.schedules;
    if (!end->decided) {
      d_.tested = d_.tally = lead.tally;
      d_.interval = lead.accepted ? lead.interval : lead.tally.interval();
    }
    d_.confirm_runs = d_.tested.runs();
    d_.found = lead.schedule;
    d_.rivals = rivals_of(inputs_, d_, lead.schedule, d_.tried[lead.tried]);
    d_.remarks = remarks(*end);
    const std::string rate = end->rate_measured
                                 ? fmt::format("{} of {} runs made to measure its rate ({})", d_.tally.reproduced,
                                               d_.tally.conclusive(), percent(d_.tally.rate()))
                                 : fmt::format("{} of {} confirming runs ({})", d_.tally.reproduced,
                                               d_.tally.conclusive(), percent(d_.tally.rate()));
    if (d_.target_reached) d_.reason = fmt::format("the schedule reproduces the bug in {}", rate);
    else if (open && !d_.interrupted)
      d_.reason =
          fmt::format("the schedule reproduced the bug in {}; whether it reaches the target is not decided", rate);
    else if (d_.interrupted)
      d_.reason = fmt::format("interrupted; the best schedule so far reproduced the bug in {}", rate);
    else
      d_.reason = fmt::format("no schedule reached the target rate of {}; the best reproduced the bug in {}{}{}",
                              percent(inputs_.config->diagnose.target_rate),
                              end->rate_measured ? fmt::format("{} of {} confirming runs, and in ",
                                                               d_.tested.reproduced, d_.tested.conclusive())
                                                 : "",
                              rate, ended_early());
  } else {
    conclude_without();
  }
  if (d_.control_hits > 0 && !noted_)
    d_.plan.notes.push_back(fmt::format(
        "the bug occurred in {} of {} runs in which no fault had an effect: it may occur rarely without faults",
        d_.control_hits, d_.control_runs));
  noted_ = noted_ || d_.control_hits > 0;
}

void Conclusion::conclude_without() {
  int conclusive_runs = 0;
  for (const Tried& tried : d_.tried)
    if (tried.level > 0) conclusive_runs += tried.tally.conclusive();
  if (d_.schedules == 0) {
    d_.verdict = Verdict::inconclusive;
    d_.reason = lab_.left() <= 0 ? std::string("max_runs left no run for a schedule after the runs without faults")
                                 : std::string(
                                       "no schedule was tried: the selected levels had nothing to propose; level 3 "
                                       "refines what level 2 reached");
  } else if (d_.interrupted) {
    d_.verdict = Verdict::inconclusive;
    d_.reason = fmt::format("interrupted; none of the {} schedules tried so far reproduced the bug", d_.schedules);
  } else if (conclusive_runs == 0) {
    d_.verdict = Verdict::inconclusive;
    d_.reason = fmt::format("no run of the {} schedules tried was conclusive; the last one: {}", d_.schedules,
                            d_.tried.back().note);
  } else {
    d_.verdict = Verdict::not_reproduced;
    d_.reason = fmt::format("none of the {} schedules tried reproduced the bug{}", d_.schedules, ended_early());
  }
}

}  // namespace rose::diagnose
