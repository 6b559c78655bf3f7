// Describes the result of a search for people.
#include <algorithm>

#include "diagnose/diagnose.h"
#include "diagnose/survey.h"

namespace rose::diagnose {

std::string in_words(const Diagnosis& diagnosis) {
  if (!diagnosis.found) return {};
  const Remarks& remarks = diagnosis.remarks;
  std::vector<std::string> lines = remarks.places;
  lines.push_back(remarks.rate);
  lines.insert(lines.end(), remarks.doubts.begin(), remarks.doubts.end());
  lines.insert(lines.end(), remarks.simpler.begin(), remarks.simpler.end());
  return fmt::format("{}\n{}", schedule::in_words(*diagnosis.found), fmt::join(lines, "\n"));
}

std::string in_words(const Tried& tried) {
  const std::vector<schedule::Fault>& faults = tried.schedule.faults;
  if (faults.empty() || !std::all_of(faults.begin(), faults.end(), is_counter))
    return schedule::in_words(tried.schedule);
  return fmt::format("no fault: {} {} counted", faults.size(),
                     faults.size() == 1 ? "call or function is" : "calls and functions are");
}

}  // namespace rose::diagnose
