#include "explain/reporters.h"

#include <algorithm>
#include <tuple>

#include "explain/explain.h"
#include "explain/function_names.h"
#include "symbols/values.h"

namespace rose::explain {
namespace {

// a result is new if at most this share of the correct runs also return it, only earlier
constexpr double kMostEarlier = 0.5;

std::string function_of(const Question& question) {
  if (!question.function.empty()) return question.function.substr(0, question.function.find(" (inlined into "));
  return question.text.substr(0, std::min(question.text.find(":return"), question.text.rfind(':')));
}

}  // namespace

Reporters::Reporters(const Input& input, const Comparison& comparison) : input_(input) {
  for (const Difference& d : comparison.differences) {
    const Kind& kind = input.kinds[d.kind];
    if (kind.what == StepKind::value && input.questions[kind.question].about_calls() && d.next == kNoKind && !d.missing)
      acting_.insert(key_of(kind.function));
    const bool result = kind.what == StepKind::value && input.questions[kind.question].about_result();
    // A result that correct runs also return, only earlier, is nothing new.
    if (d.next == kNoKind && !d.missing && d.earlier <= kMostEarlier && (result || kind.what == StepKind::thrown))
      fresh_.emplace(d.kind, d.harmless ? kHarmlessResult : 1);
  }
  std::set<std::string> unreadable;
  for (const Question& question : input.questions)
    if (question.about_result() && !question.refused.empty()) unreadable.insert(key_of(function_of(question)));
  for (const Question& question : input.questions)
    if (const std::string key = key_of(function_of(question));
        (question.about_result() || question.about_calls()) && question.refused.empty() && !unreadable.contains(key))
      asked_.insert(key);
  for (const Run& run : input.runs)
    if (run.group == Group::failing) take(run);
  // A function that returns what was reported to it has passed the report on, whether it is an error or another result.
  for (const auto& [key, receiver] : receivers_)
    for (const std::string& text : receiver.texts)
      if (texts_[key].contains(text)) errors_.emplace(key, receiver.recipient.function);
}

bool Reporters::reported(const std::string& function) const { return reporters_.contains(key_of(function)); }

bool Reporters::acts(const std::string& function) const { return acting_.contains(key_of(function)); }

bool Reporters::known(const std::string& function) const { return asked_.contains(key_of(function)); }

std::vector<Reporters::Recipient> Reporters::recipients() const {
  std::vector<std::pair<std::int64_t, Recipient>> out;
  const auto failing = static_cast<double>(std::count_if(input_.runs.begin(), input_.runs.end(),
                                                         [](const Run& run) { return run.group == Group::failing; }));
  for (const auto& [key, one] : receivers_) {
    std::vector<std::int64_t> after = one.after_ns;
    std::sort(after.begin(), after.end());
    Recipient recipient = one.recipient;
    recipient.share = recipient.counts *
                      std::min(1.0, static_cast<double>(after.size()) / std::max(1.0, std::min(failing, asked_runs_)));
    if (!errors_.contains(key) && !left_.contains(key)) out.emplace_back(after[after.size() / 2], std::move(recipient));
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return std::pair(-a.second.counts, a.first) < std::pair(-b.second.counts, b.first);
  });
  std::vector<Recipient> recipients;
  for (auto& [after, one] : out) recipients.push_back(std::move(one));
  return recipients;
}

void Reporters::take(const Run& run) {
  using Hit = std::tuple<std::int64_t, std::int32_t, std::string>;  // time, thread and function
  std::map<Hit, std::string> receivers;
  std::map<std::pair<std::int32_t, std::string>, std::string> callers;  // by thread and function: the last caller
  for (const schedule::Value& value : run.values)
    if (value.question < input_.questions.size() && input_.questions[value.question].about_receivers())
      receivers[{value.ts_ns, value.tid, key_of(function_of(input_.questions[value.question]))}] =
          caller_in(value.text);
  asked_runs_ += receivers.empty() ? 0 : 1;
  std::set<std::string> here;
  const auto report = [&](const Step& step, const std::string& caller, const std::string& text) {
    const Kind& kind = input_.kinds[step.kind];
    schedule::Frame frame;
    frame.function = caller;
    if (caller.empty() || caller == symbols::kOutsideFile || !is_applications(frame)) return;
    Receiver& receiver = receivers_[key_of(caller)];
    if (!text.empty()) receiver.texts.insert(text);
    if (here.insert(key_of(caller)).second) receiver.after_ns.push_back(step.ts_ns - run.cut_ns);
    if (const double counts = fresh_.at(step.kind); counts > receiver.recipient.counts)
      receiver.recipient = {caller, kind.node, kind.function, 0, counts};
  };
  for (const Step& step : run.steps) {
    const Kind& kind = input_.kinds[step.kind];
    if (kind.what == StepKind::value && input_.questions[kind.question].about_callers())
      callers[{step.tid, key_of(function_of(input_.questions[kind.question]))}] = kind.function;
    if (step.ts_ns <= run.cut_ns || step.ts_ns > run.end_ns || !fresh_.contains(step.kind)) continue;
    const std::string key = key_of(kind.function);
    reporters_.insert(key);
    if (kind.what == StepKind::thrown) {
      left_.insert(key);
      const auto caller = callers.find({step.tid, key});
      if (caller == callers.end()) continue;
      // The function that the exception leaves is not added to errors_: its work was aborted and may be half done, so
      // it may still be the function that mishandled the fault.
      report(step, caller->second, {});
      continue;
    }
    const schedule::Value& value = run.values[step.source];
    texts_[key].insert(value.text);
    if (is_error(input_.questions[kind.question], value)) errors_.emplace(key, kind.function);
    if (const auto to = receivers.find({value.ts_ns, value.tid, key}); to != receivers.end())
      report(step, to->second, value.text);
  }
}

}  // namespace rose::explain
