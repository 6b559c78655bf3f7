#include <algorithm>
#include <utility>

#include "diagnose/extract/process_faults.h"
#include "diagnose/thresholds.h"

namespace rose::diagnose {
namespace {

// Merges the candidates of one kind into the last one. The other candidates get a count of 0, so that they are removed.
void fold(std::vector<Candidate>& candidates, const std::vector<std::size_t>& alike, std::string_view did,
          const Times& all, std::int64_t longest_ns) {
  std::size_t times = 1;
  for (std::size_t i = 1; i < alike.size(); ++i)
    times += candidates[alike[i]].first_ts - candidates[alike[i - 1]].first_ts > longest_ns ? 1 : 0;
  if (times < kUsualTimes) return;
  Candidate& last = candidates[alike.back()];
  for (std::size_t i = 0; i + 1 < alike.size(); ++i) last.count += std::exchange(candidates[alike[i]].count, 0);
  last.why += fmt::format("; it {} like that {} times in the window", did, alike.size());
  // The number of such events that chance would place between the last of them and the end of the window. If it is
  // small, it is hardly chance that the last event is so close to the end.
  const double window = std::max(1.0, static_cast<double>(all.end - all.begin));
  const double expected = static_cast<double>(alike.size()) * static_cast<double>(all.end - last.last_ts) / window;
  if (expected <= kOddsUsual) {
    last.why += ", but so close to the end of the window this is hardly chance";
    return;
  }
  last.why += ", so it is usual";
  last.usual = std::clamp(kOddsUsual / expected, kOddsUsual, 1.0);
}

}  // namespace

std::vector<Candidate> fold_usual(std::vector<Candidate> candidates, const std::vector<std::vector<std::size_t>>& alike,
                                  std::string_view did, const Times& times, std::int64_t longest_ns) {
  for (const std::vector<std::size_t>& kind : alike) fold(candidates, kind, did, times, longest_ns);
  std::erase_if(candidates, [](const Candidate& c) { return c.count == 0; });
  return candidates;
}

}  // namespace rose::diagnose
