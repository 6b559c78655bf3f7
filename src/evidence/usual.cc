#include "evidence/usual.h"

#include <algorithm>
#include <utility>

#include "weights/weights.h"

namespace rose::evidence {

using namespace weights;
std::vector<std::int64_t> incidents_of(std::vector<std::int64_t> times, std::int64_t longest_ns) {
  std::sort(times.begin(), times.end());
  std::vector<std::int64_t> first;
  for (std::size_t i = 0; i < times.size(); ++i)
    if (i == 0 || times[i] - times[i - 1] > longest_ns) first.push_back(times[i]);
  return first;
}

bool all_the_time(std::vector<std::int64_t> times, std::int64_t longest_ns) {
  return incidents_of(std::move(times), longest_ns).size() >= kUsualFailures;
}

}  // namespace rose::evidence
