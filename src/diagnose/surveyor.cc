#include "diagnose/surveyor.h"

#include <map>
#include <set>
#include <utility>

#include "base/text.h"

namespace rose::diagnose {
namespace {

// Only the calls of nodes that rose starts can be counted.
bool can_count(const World& world, const std::string& name) {
  const config::Node* node = world.inputs->config->find(name);
  return node != nullptr && !node->attach;
}

// True if counting the fault's calls would slow the node down (kTooBusy).
bool too_busy(const World& world, const Fault& fault) {
  if (!world.inputs->profile || world.inputs->profile->seconds <= 0) return false;
  const auto node = world.inputs->profile->syscalls.find(fault.node);
  if (node == world.inputs->profile->syscalls.end()) return false;
  double calls = 0;
  for (const auto& [name, count] : node->second)
    if (glob_match(fault.call.syscall, name)) calls += static_cast<double>(count);
  return calls / world.inputs->profile->seconds > kTooBusy;
}

struct Counting {
  Schedule schedule;
  std::map<std::string, Question> by_counter;  // by the id of its counter
};
Counting counting(const World& world, std::vector<Question> questions) {
  Counting made;
  std::set<std::string> keys;
  made.schedule.name = world.inputs->config->name;
  for (Question& question : questions) {
    if (made.schedule.faults.size() >= kMostQuestions) break;
    if (!keys.insert(key_of(question)).second) continue;
    const std::string id = fmt::format("count-{}", made.schedule.faults.size() + 1);
    made.schedule.faults.push_back(counter_for(question, id));
    made.by_counter.emplace(id, std::move(question));
  }
  return made;
}

// Makes the run; returns false if the deployment cannot count what the questions ask about.
Result<bool> count(World& world, Lab& lab, std::vector<Question> questions) {
  const auto [schedule, by_counter] = counting(world, std::move(questions));
  const std::size_t index =
      lab.enter(schedule, 0,
                fmt::format("a survey: how often {} calls and places are reached without faults", by_counter.size()))
          .index;
  ROSE_TRY(
      std::vector<Lab::Made> made,
      lab.run({index}, fmt::format("a survey without faults: {} calls and places are counted", by_counter.size())));
  if (!made[0].armed) return false;
  RunResult& result = made[0].result;
  // An inconclusive run has no answers. Another run would hardly be better, so the survey ends.
  if (result.oracle == OracleAnswer::unknown) return true;
  for (const auto& [id, question] : by_counter)
    if (const schedule::FaultOutcome* outcome = outcome_of(result, id))
      if (const std::optional<Answer> answer = read_answer(question, *outcome))
        world.survey.answers.emplace(key_of(question), *answer);
  world.survey.made = true;
  if (!result.trace.events.empty()) world.survey.trace = std::move(result.trace);
  return true;
}

struct Questions {
  std::vector<Question> all, calls;
};
Questions questions(const World& world) {
  std::vector<Question> calls;
  for (const Candidate& c : world.plan.candidates) {
    if (!hits_by_count(c.kind) || (c.kind == schedule::FaultKind::syscall && too_busy(world, c.fault))) continue;
    const auto ask = [&](const Fault& fault) {
      if (can_count(world, fault.node)) calls.push_back({fault.node, fault.when, visit_condition(fault)});
    };
    Fault plain = c.fault;
    plain.when.clear();
    ask(plain);
    if (!c.fault.when.empty()) ask(c.fault);
    for (const Fault& shape : c.alternatives)
      if (!shape.when.empty() || c.kind == schedule::FaultKind::exception) ask(shape);
  }
  std::vector<Question> all = calls;
  if (world.level(3))
    for (Question& question : place_questions_ahead(world))
      if (can_count(world, question.node)) all.push_back(std::move(question));
  return {std::move(all), std::move(calls)};
}

// Removes guesses about calls that this deployment never makes, because such guesses cannot be tried.
void drop_uncalled_guesses(World& world) {
  if (!world.survey.made) return;
  std::erase_if(world.plan.candidates, [&](const Candidate& c) {
    if (!c.assumed || c.kind != schedule::FaultKind::syscall || !world.inputs->recorded()) return false;
    Fault plain = c.fault;
    plain.when.clear();
    const Answer* answer = world.survey.find({plain.node, {}, visit_condition(plain)});
    return answer != nullptr && answer->times == 0;
  });
}

}  // namespace

std::optional<Schedule> survey_schedule(const World& world) {
  std::vector<Question> all = questions(world).all;
  if (all.empty()) return std::nullopt;
  return counting(world, std::move(all)).schedule;
}

Result<void> make_survey(World& world, Lab& lab) {
  auto [all, calls] = questions(world);
  for (std::vector<Question>* some : {&all, &calls}) {
    if (some->empty() || lab.left() <= 1) continue;
    ROSE_TRY(const bool made, count(world, lab, std::move(*some)));
    if (made) break;
  }
  drop_uncalled_guesses(world);
  return {};
}

}  // namespace rose::diagnose
