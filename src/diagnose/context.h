// What a node did before a fault, as conditions to wait for: infrequent functions it entered and
// infrequent calls that changed state. From the dumps and, to compare, from the trace of a run.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/nodes.h"

namespace rose::diagnose {

struct ContextEvent {
  schedule::Condition condition;  // its first occurrence
  std::string key;                // events of one key are the same event, seen again
  // the nth event on its host that meets the condition, counted from the dump's beginning or the fault before
  std::uint64_t occurrence = 1;
  std::int64_t ts_ns = 0;
};

// The condition that such an event meets; nothing for events that cannot be a context.
[[nodiscard]] std::optional<ContextEvent> context_event(const trace::Trace& trace, const trace::Event& event,
                                                        std::string_view node);
// The number of equal events that an event stands for.
[[nodiscard]] std::uint64_t times_of(const trace::Event& event);
// True if the event of a run's trace meets the condition. Checks only the condition's event, neither node nor count.
[[nodiscard]] bool meets(const trace::Trace& trace, const trace::Event& event, const schedule::Condition& condition);

class ContextIndex {
 public:
  // Reads the dumps once; `inputs` must outlive it.
  ContextIndex(const Inputs& inputs, const NodeMap& nodes);

  // The events of `node` in (since, until], the latest first; frequent ones are left out.
  [[nodiscard]] std::vector<ContextEvent> before(int node, std::int64_t since, std::int64_t until,
                                                 std::size_t most) const;

 private:
  // Events that differ in nothing that a condition looks at.
  struct Shape {
    const trace::Trace* trace = nullptr;
    const trace::Event* event = nullptr;  // the first event of this shape
    std::size_t kind = 0;
  };
  struct Seen {
    std::int64_t ts = 0;
    std::uint32_t shape = 0;
    std::uint32_t host = 0;  // several hosts may play one node; each is counted separately
    std::uint64_t times = 1;
  };
  struct Kind {
    ContextEvent event;
    std::uint64_t count = 0;
    bool frequent = false;  // according to the profile or to this dump
  };
  // The shapes that meet the condition of a kind.
  [[nodiscard]] const std::vector<std::size_t>& shapes_meeting(std::size_t node, std::size_t kind) const;

  std::vector<std::vector<Kind>> kinds_;                                                     // by node
  std::vector<std::vector<Shape>> shapes_;                                                   // by node
  std::vector<std::vector<Seen>> seen_;                                                      // by node, by time
  mutable std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> meeting_;  // by node and kind
};

}  // namespace rose::diagnose
