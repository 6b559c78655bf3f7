// What was found, as lines for people.
#include "diagnose/diagnose.h"

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

}  // namespace rose::diagnose
