// Counts the events that are no candidates.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rose::evidence {

// Events that are no candidates.
struct Discarded {
  std::string why;
  std::uint64_t events = 0;
};

// Numbers of events that are no candidates, by reason.
class Discards {
 public:
  void add(std::string_view why, std::uint64_t events);
  void add(const Discards& others);
  // For events of a host that corresponds to no node; "": the host has no name.
  void add_unmatched(const std::string& host, std::uint64_t events);
  // The reasons with their numbers of events, the most frequent reason first.
  [[nodiscard]] std::vector<Discarded> list() const;

 private:
  std::map<std::string, std::uint64_t, std::less<>> events_;
};

}  // namespace rose::evidence
