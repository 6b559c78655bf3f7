// Counts the events that do not become candidates, by reason.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rose::evidence {

// Events that do not become candidates, all for the same reason.
struct Discarded {
  std::string why;
  std::uint64_t events = 0;
};

// The numbers of events that do not become candidates, by reason.
class Discards {
 public:
  void add(std::string_view why, std::uint64_t events);
  void add(const Discards& others);
  // Adds events of a host that corresponds to no node of the deployment. `host`: its name; "" if it has none.
  void add_unmatched(const std::string& host, std::uint64_t events);
  // The reasons with their numbers of events, the most frequent reason first.
  [[nodiscard]] std::vector<Discarded> list() const;

 private:
  std::map<std::string, std::uint64_t, std::less<>> events_;
};

}  // namespace rose::evidence
