#include "evidence/discards.h"

#include <fmt/format.h>

#include <algorithm>

namespace rose::evidence {

void Discards::add(std::string_view why, std::uint64_t events) {
  if (events == 0) return;
  const auto it = events_.find(why);
  if (it == events_.end()) events_.emplace(std::string(why), events);
  else it->second += events;
}

void Discards::add(const Discards& others) {
  for (const auto& [why, events] : others.events_) add(why, events);
}

void Discards::add_unmatched(const std::string& host, std::uint64_t events) {
  add(host.empty() ? std::string("their host has no name and matches no node of the deployment (see --map)")
                   : fmt::format("host '{}' matches no node of the deployment (see --map)", host),
      events);
}

std::vector<Discarded> Discards::list() const {
  std::vector<Discarded> list;
  for (const auto& [why, events] : events_) list.push_back({why, events});
  std::stable_sort(list.begin(), list.end(),
                   [](const Discarded& a, const Discarded& b) { return a.events > b.events; });
  return list;
}

}  // namespace rose::evidence
