// Chooses the next queries, and summarises an explanation in a few sentences.
#include <fmt/format.h>

#include <algorithm>

#include "explain/explain.h"
#include "explain/function_names.h"

namespace rose::explain {
namespace {

constexpr std::size_t kMostConsequences = 4;

std::string words_of_line(const StoryLine& line) {
  return fmt::format("{}{}{}", line.node.empty() ? "" : line.node + ": ", line.text,
                     line.evidence.empty() ? "" : fmt::format(" [{}]", line.evidence));
}

// The innermost function of the application on any of the stacks.
std::string received_by(const Explanation& e) {
  for (const Explanation::StackOf& one : e.stacks)
    for (const schedule::Frame& frame : one.stack.frames)
      if (!frame.function.empty() && !is_library(frame))
        return fmt::format("{} on {}{}", at_place(frame), one.stack.node,
                           one.stack.why.empty() ? "" : ": " + one.stack.why);
  return {};
}

}  // namespace

std::vector<std::string> path_of(const Input& input) {
  const Run& run = input.runs[input.story_run];
  std::vector<std::string> order;
  for (const Step& step : run.steps) {
    const Kind& kind = input.kinds[step.kind];
    if (kind.what != StepKind::function || step.ts_ns <= run.cut_ns || step.ts_ns > run.end_ns) continue;
    if (std::find(order.begin(), order.end(), kind.function) == order.end()) order.push_back(kind.function);
  }
  std::vector<std::string> out;
  for (std::size_t first = 0, last = order.size(); first < last;) {
    out.push_back(order[first++]);
    if (first < last) out.push_back(order[--last]);
  }
  return out;
}

std::vector<std::string> next_functions(const Explanation& e, const std::set<std::string>& asked, std::size_t most) {
  std::vector<std::string> out;
  // Suspects, stacks and callees may spell the name of the same function differently, so compare keys.
  std::set<std::string> known, one_sided;
  for (const std::string& function : asked) known.insert(key_of(function));
  for (const Suspect& suspect : e.suspects)
    if (!suspect.fresh.empty() || !suspect.lost.empty()) one_sided.insert(key_of(suspect.function));
  const auto add = [&](const std::string& function) {
    schedule::Frame frame;
    frame.function = function;
    if (is_applications(frame) && known.insert(key_of(function)).second) out.push_back(function);
  };
  for (const Suspect& suspect : e.suspects) add(suspect.function);
  for (const DifferenceText& difference : e.differences) {
    const std::string_view callee = difference.callee;
    if (!callee.ends_with("@plt") && callee != "through a pointer") add(difference.callee);
  }
  for (const Explanation::StackOf& one : e.stacks)
    for (const schedule::Frame& frame : one.stack.frames)
      if (!is_library(frame)) add(frame.function);
  for (const std::string& function : e.path) add(function);
  std::stable_partition(out.begin(), out.end(),
                        [&](const std::string& function) { return !one_sided.contains(key_of(function)); });
  out.resize(std::min(out.size(), most));
  return out;
}

std::vector<std::string> result_functions(const Explanation& e, const std::set<std::string>& asked) {
  std::vector<std::string> out;
  std::set<std::string> known;
  for (const std::string& function : asked) known.insert(key_of(function));
  for (const Explanation::StackOf& one : e.stacks)
    for (const schedule::Frame& frame : one.stack.frames)
      if (is_applications(frame) && known.insert(key_of(frame.function)).second) out.push_back(frame.function);
  for (const std::string& function : next_functions(e, asked, SIZE_MAX))
    if (known.insert(key_of(function)).second) out.push_back(function);
  return out;
}

InShort in_short(const Explanation& e) {
  InShort out;
  if (!e.faults.empty()) out.fault = e.faults.front();
  out.received = received_by(e);
  const auto wrong =
      std::find_if(e.story.begin(), e.story.end(), [](const StoryLine& line) { return line.first_wrong; });
  if (wrong != e.story.end()) {
    out.first_wrong = words_of_line(*wrong);
  } else {
    out.why_no_first_wrong =
        e.differences.empty() ? "failing and correct runs do not differ beyond chance in anything that was recorded"
        : e.near > 0 ? "no step was recorded in all failing runs that is absent from correct runs and from runs with a "
                       "harmless fault"
                     : "no step was recorded in all failing runs and in no correct one";
  }
  const auto begin = wrong != e.story.end() ? wrong + 1 : e.story.begin();
  for (auto line = begin; line != e.story.end() && out.consequences.size() < kMostConsequences; ++line) {
    if (line->kind == StoryLine::Kind::fault || line->kind == StoryLine::Kind::thread ||
        line->kind == StoryLine::Kind::symptom || line->usual)
      continue;
    out.consequences.push_back(words_of_line(*line));
  }
  out.symptom = e.symptom;
  return out;
}

void drop_silent_values(Explanation& explanation, const std::vector<std::string>& asked) {
  std::erase_if(explanation.values, [&](const ValueTable& table) {
    return table.score <= 0 && std::find(asked.begin(), asked.end(), table.query) == asked.end();
  });
}

}  // namespace rose::explain
