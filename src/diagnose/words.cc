#include "diagnose/words.h"

namespace rose::diagnose {

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

std::string short_words(const Schedule& schedule) {
  if (schedule.faults.empty()) return "no faults";
  if (schedule.faults.size() == 1) return schedule::in_words(schedule.faults[0]);
  std::string ids;
  for (const Fault& fault : schedule.faults) ids += fmt::format("{}{}", ids.empty() ? "" : ", ", fault.id);
  return fmt::format("{} faults: {}", schedule.faults.size(), ids);
}

}  // namespace rose::diagnose
