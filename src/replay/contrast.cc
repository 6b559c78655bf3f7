#include "replay/contrast.h"

#include <algorithm>
#include <deque>

#include "base/text.h"
#include "base/units.h"

namespace rose::replay {
namespace {

// The number of the occurrence at which the fault fires, so that a variant can change it. nullptr if the fault has
// none.
int* count_of(schedule::Fault& fault) {
  if (fault.kind == schedule::FaultKind::syscall || fault.kind == schedule::FaultKind::exception) return &fault.count;
  if (fault.before) return &fault.before_count;
  if (fault.when.empty()) return nullptr;
  schedule::Condition& last = fault.when.back();
  return last.kind == schedule::ConditionKind::elapsed || last.kind == schedule::ConditionKind::role ? nullptr
                                                                                                     : &last.count;
}

// The most time for which a run is traced after the question to the oracle.
constexpr std::int64_t kLongestAnswer = 10 * kSecond;

struct Turn {
  ContrastRun what = ContrastRun::schedule;
  const schedule::Schedule* schedule = nullptr;
  std::string words;
  const Beside* beside = nullptr;
};

class Turns {
 public:
  Turns(const schedule::Schedule& schedule, const ContrastOptions& options, Contrast& done)
      : schedule_(schedule), options_(options), done_(done) {
    sound_.name = schedule.name;
  }

  // Call this when a run of the schedule reproduced the bug.
  void reproduced(const std::vector<schedule::FaultOutcome>& fired) {
    if (begun_) return;
    begun_ = true;
    for (Beside& one : beside(schedule_, fired, options_.besides)) waiting_.push_back(std::move(one));
  }

  // Call this with the result of a variant: whether it reproduced the bug, or nothing if the run was inconclusive.
  void tried(const Beside& one, std::optional<bool> showed) {
    if (!one.part || !showed) return;
    // Insert the variant after the one that is next, so that variants of this fault alternate with the others.
    if (auto other = other_part(schedule_, one, *showed))
      waiting_.insert(waiting_.begin() + (waiting_.empty() ? 0 : 1), *std::move(other));
  }

  // The runs to make next, in parallel. Empty when there is nothing left to do.
  std::vector<Turn> next() {
    std::vector<Turn> turns;
    int tries = done_.reproduced + done_.missed + done_.inconclusive;
    int sound = done_.sound + done_.sound_hits + done_.sound_unknown;
    // Assume that each run chosen below will have the wanted verdict: reproduced with the schedule, not reproduced
    // without faults.
    int reproduced = done_.reproduced, good = done_.sound;
    while (static_cast<int>(turns.size()) < options_.jobs) {
      // If no run so far was conclusive, further runs will not help.
      const bool hopeless = done_.inconclusive >= options_.wanted && done_.inconclusive == tries;
      const bool more = reproduced < options_.wanted && tries < options_.most_tries() && !hopeless;
      const bool begun = done_.reproduced > 0;
      const bool more_sound = begun && good < options_.wanted && sound < options_.most_sound();
      if (more && (!more_sound || reproduced <= good)) {
        turns.push_back({ContrastRun::schedule, &schedule_, "the schedule", nullptr});
        ++tries, ++reproduced;
        // Until the bug is reproduced for the first time, make only one run at a time.
        if (!begun) break;
      } else if (more_sound) {
        turns.push_back({ContrastRun::sound, &sound_, "without faults", nullptr});
        ++sound, ++good;
      } else if (begun && !waiting_.empty() && besides_.size() < options_.besides) {
        besides_.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
        const Beside& one = besides_.back();
        turns.push_back({one.part && !one.part->of_time ? ContrastRun::shorter : ContrastRun::beside, &one.schedule,
                         one.words, &one});
      } else {
        break;
      }
    }
    return turns;
  }

 private:
  const schedule::Schedule& schedule_;
  const ContrastOptions& options_;
  const Contrast& done_;
  bool begun_ = false;
  std::deque<Beside> waiting_, besides_;  // turns contain pointers to elements of besides_
  schedule::Schedule sound_;              // the schedule without faults
};

void count(Contrast& done, const Run& run, const Turn& turn) {
  using schedule::OracleAnswer;
  using schedule::Verdict;
  ++done.runs;
  if (run.result.verdict == Verdict::inconclusive) done.last_reason = run.result.reason;
  switch (turn.what) {
    case ContrastRun::schedule:
      ++(run.result.verdict == Verdict::reproduced       ? done.reproduced
         : run.result.verdict == Verdict::not_reproduced ? done.missed
                                                         : done.inconclusive);
      break;
    case ContrastRun::sound:
      ++(run.result.oracle == OracleAnswer::miss  ? done.sound
         : run.result.oracle == OracleAnswer::hit ? done.sound_hits
                                                  : done.sound_unknown);
      break;
    case ContrastRun::beside:
    case ContrastRun::shorter:
      ++done.besides;
      if (run.result.verdict == Verdict::reproduced) done.besides_that_hit.push_back(turn.words);
      break;
  }
}

}  // namespace

namespace {

// True if the fault waits for an action of the system, and not only for a time.
bool waits_for_step(const schedule::Fault& fault) {
  return fault.before || std::any_of(fault.when.begin(), fault.when.end(), [](const schedule::Condition& condition) {
           return condition.kind != schedule::ConditionKind::elapsed;
         });
}

// a time that is shorter than this is not divided into parts
constexpr std::int64_t kShortest = std::int64_t{kParts} * 1'000'000;

Beside with_part(const schedule::Schedule& schedule, const Beside::Part& part) {
  Beside other{schedule, {}, part};
  schedule::Fault& fault = other.schedule.faults[part.fault];
  const int percent = (100 * part.part + kParts / 2) / kParts;
  const std::string share = percent == 50   ? "half"
                            : percent == 25 ? "a quarter"
                            : percent == 75 ? "three quarters"
                                            : fmt::format("{} %", percent);
  other.words = fmt::format("'{}' {} as {}", fault.id, share, part.of_time ? "late" : "long");
  const std::int64_t ns = part.whole_ns / kParts * part.part;
  if (part.of_time) fault.when = {schedule::Condition::elapsed(ns)};
  else fault.duration_ns = ns;
  return other;
}

// The time at which the fault fired, if a variant can give it another time; otherwise 0. The time is fixed if the fault
// waits for another fault, or if it is on a role, because conditions determine which node has the role.
std::int64_t movable_ns(const schedule::Fault& fault, const std::vector<schedule::FaultOutcome>& fired) {
  const auto outcome =
      std::find_if(fired.begin(), fired.end(), [&](const auto& one) { return one.id == fault.id && one.fired; });
  return !fault.after.empty() || schedule::role_of(fault.node) || outcome == fired.end() ? 0 : outcome->fired_ns;
}

// For a crash or pause with conditions, adds variants that contain the same fault without these conditions.
void at_no_step(const schedule::Schedule& schedule, const std::vector<schedule::FaultOutcome>& fired,
                std::vector<Beside>& out) {
  for (std::size_t i = 0; i < schedule.faults.size(); ++i) {
    const schedule::Fault& fault = schedule.faults[i];
    const bool process = fault.kind == schedule::FaultKind::crash || fault.kind == schedule::FaultKind::pause;
    const std::int64_t fired_ns = movable_ns(fault, fired);
    if (!process || !waits_for_step(fault) || fired_ns <= 0) continue;
    Beside other{schedule, fmt::format("'{}' at half its time, without its conditions", fault.id)};
    other.schedule.faults[i].before.reset();
    other.schedule.faults[i].when = {schedule::Condition::elapsed(fired_ns / 2)};
    out.insert(out.end(), 2, other);  // two runs, because a single run is weak evidence
  }
}

// For a crash at a given time, adds a variant with the same crash at an earlier time. Nodes react to every crash. If
// the bug does not occur in the variant, the reactions in it are harmless.
void earlier(const schedule::Schedule& schedule, const std::vector<schedule::FaultOutcome>& fired,
             std::vector<Beside>& out) {
  for (std::size_t i = 0; i < schedule.faults.size(); ++i) {
    const schedule::Fault& fault = schedule.faults[i];
    const std::int64_t fired_ns = movable_ns(fault, fired);
    if (fault.kind == schedule::FaultKind::crash && !waits_for_step(fault) && fired_ns >= kShortest)
      out.push_back(with_part(schedule, {.fault = i, .whole_ns = fired_ns, .of_time = true}));
  }
}

void one_call_beside(const schedule::Schedule& schedule, std::vector<Beside>& out) {
  for (const int by : {1, -1}) {
    for (std::size_t i = 0; i < schedule.faults.size(); ++i) {
      schedule::Schedule other = schedule;
      int* count = count_of(other.faults[i]);
      if (count == nullptr || *count + by < 1) continue;
      const int before = *count;
      *count += by;
      out.push_back({std::move(other), fmt::format("'{}' at the {} instead of the {}", schedule.faults[i].id,
                                                   ordinal_text(before + by), ordinal_text(before))});
    }
  }
}

// If there are several faults, and none of them belongs to a group of alternatives, adds for each fault a variant
// without it. Each variant is added twice.
void one_less(const schedule::Schedule& schedule, std::vector<Beside>& out) {
  if (schedule.faults.size() < 2 || std::any_of(schedule.faults.begin(), schedule.faults.end(),
                                                [](const auto& fault) { return !fault.group.empty(); }))
    return;
  for (std::size_t i = 0; i < schedule.faults.size(); ++i) {
    Beside other{schedule, fmt::format("without '{}'", schedule.faults[i].id)};
    auto& faults = other.schedule.faults;
    // A fault that depended on the removed one now depends on what the removed one depended on.
    for (schedule::Fault& fault : faults) {
      const auto waits = std::find(fault.after.begin(), fault.after.end(), schedule.faults[i].id);
      if (waits == fault.after.end()) continue;
      fault.after.erase(waits);
      for (const std::string& id : schedule.faults[i].after)
        if (std::find(fault.after.begin(), fault.after.end(), id) == fault.after.end()) fault.after.push_back(id);
    }
    faults.erase(faults.begin() + static_cast<std::ptrdiff_t>(i));
    out.push_back(std::move(other));
  }
  // Add each variant a second time, because a single run is weak evidence.
  const std::vector<Beside> once = out;
  out.insert(out.end(), once.begin(), once.end());
}

// Adds variants with a shorter fault. If the shorter fault is harmless, the effects that both faults have are not the
// cause. If the shorter fault still reproduces the bug, the effects that only the longer one has are not necessary. The
// closer the longest harmless and the shortest harmful length are, the better they separate causes from side effects.
void shorter(const schedule::Schedule& schedule, std::vector<Beside>& out) {
  for (std::size_t i = 0; i < schedule.faults.size(); ++i)
    if (const std::int64_t whole = schedule.faults[i].duration_ns; whole >= kShortest)
      out.push_back(with_part(schedule, {.fault = i, .whole_ns = whole}));
}

}  // namespace

void Contrast::add(const Contrast& later) {
  reproduced += later.reproduced, missed += later.missed, inconclusive += later.inconclusive;
  sound += later.sound, sound_hits += later.sound_hits, sound_unknown += later.sound_unknown;
  besides += later.besides, runs += later.runs;
  if (!later.last_reason.empty()) last_reason = later.last_reason;
  besides_that_hit.insert(besides_that_hit.end(), later.besides_that_hit.begin(), later.besides_that_hit.end());
}

std::vector<Beside> beside(const schedule::Schedule& schedule, const std::vector<schedule::FaultOutcome>& fired,
                           std::size_t most) {
  std::vector<std::vector<Beside>> sorts(4);
  shorter(schedule, sorts[0]);
  at_no_step(schedule, fired, sorts[1]);
  one_call_beside(schedule, sorts[2]);
  one_less(schedule, sorts[3]);
  // If nothing else can be varied, use an earlier crash, because it has some of the same side effects.
  if (std::all_of(sorts.begin(), sorts.end(), [](const auto& sort) { return sort.empty(); }))
    earlier(schedule, fired, sorts[1]);
  std::vector<Beside> out;
  for (std::size_t i = 0; out.size() < most; ++i) {
    bool any = false;
    for (std::vector<Beside>& sort : sorts) {
      if (i >= sort.size()) continue;
      any = true;
      if (out.size() < most) out.push_back(std::move(sort[i]));
    }
    if (!any) break;
  }
  return out;
}

std::optional<Beside> other_part(const schedule::Schedule& schedule, const Beside& tried, bool showed) {
  Beside::Part part = *tried.part;
  (showed ? part.harmful : part.harmless) = part.part;
  if (part.again) return std::nullopt;
  part.part = (part.harmless + part.harmful) / 2;
  part.again = part.part == part.harmless;
  if (part.again && (part.harmless == 0 || !part.of_time)) return std::nullopt;
  return with_part(schedule, part);
}

Result<Contrast> contrast(const config::Config& config, const schedule::Schedule& schedule,
                          const ContrastOptions& options, RunStore& store,
                          const std::function<void(Run&& run, ContrastRun what, const std::string& words)>& each) {
  Contrast done;
  Turns turns(schedule, options, done);
  RunOptions run_options = options.run;
  for (std::vector<Turn> now = turns.next(); !now.empty(); now = turns.next()) {
    run_options.number = options.run.number + done.runs;
    std::vector<const schedule::Schedule*> schedules;
    for (const Turn& turn : now) schedules.push_back(turn.schedule);
    std::vector<Result<Run>> made = run_side_by_side(store, config, schedules, run_options);
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (!made[i]) return Unexpected(std::move(made[i]).error());
      count(done, *made[i], now[i]);
      const schedule::Verdict verdict = made[i]->result.verdict;
      if (now[i].beside != nullptr) {
        const bool judged = verdict == schedule::Verdict::reproduced || verdict == schedule::Verdict::not_reproduced;
        turns.tried(*now[i].beside, judged ? std::optional(verdict == schedule::Verdict::reproduced) : std::nullopt);
      }
      if (now[i].what == ContrastRun::schedule && verdict == schedule::Verdict::reproduced) {
        turns.reproduced(made[i]->result.faults);
        // From now on, trace each run after the question to the oracle for as long as the answer took in this run. In
        // runs without the bug, the oracle finds nothing and ends sooner. Without the longer trace, events that happen
        // while the oracle looks for the symptom would therefore seem to occur only in runs with the bug.
        if (std::optional<std::int64_t>& traced = run_options.traced_answer_ns; traced)
          traced = std::clamp(made[i]->answer_ns, *traced, kLongestAnswer);
      }
      each(*std::move(made[i]), now[i].what, now[i].words);
    }
  }
  return done;
}

}  // namespace rose::replay
