#include "diagnose/code.h"

#include <set>

namespace rose::diagnose {

std::vector<std::string> places_in_words(const schedule::Schedule& schedule, CodeMap* code) {
  if (code == nullptr) return {};
  std::vector<std::string> sentences;
  std::set<std::string> reported;
  for (const schedule::Fault& fault : schedule.faults)
    for (const schedule::Condition& condition : fault.when) {
      if (condition.kind != schedule::ConditionKind::function || condition.offset.value_or(0) == 0) continue;
      const std::string where = fmt::format("{}+{:#x}", condition.function, *condition.offset);
      const Result<std::vector<CodePlace>> places =
          code->places(condition.node.empty() ? fault.node : condition.node, condition.function);
      if (!places || !reported.insert(where).second) continue;
      for (const CodePlace& place : *places) {
        if (place.offset != *condition.offset) continue;
        const char* what = place.kind == PlaceKind::other ? "is the instruction" : "is where it calls";
        sentences.push_back(fmt::format("{} {} {}.", where, what, place.name));
      }
    }
  return sentences;
}

}  // namespace rose::diagnose
