// The context of a fault: the infrequent functions that its node entered and the infrequent state-changing calls that
// it made before the fault, as conditions. They are taken from the dumps, and compared with the traces of runs.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/diagnose.h"
#include "evidence/nodes.h"

namespace rose::diagnose {

struct ContextEvent {
  schedule::Condition condition;  // has no count, so the first occurrence meets it
  std::string key;                // events with equal keys are occurrences of one event
  // the ordinal of this event among the events of its host that meet the condition, counted from the argument `since`
  // of before()
  std::uint64_t occurrence = 1;
  std::int64_t ts_ns = 0;
};

// The event as a condition for runs on `node`; nothing for events that cannot be part of a context.
[[nodiscard]] std::optional<ContextEvent> context_event(const trace::TraceBase& trace, const trace::Event& event,
                                                        std::string_view node);
// The number of equal events that the record represents.
[[nodiscard]] std::uint64_t times_of(const trace::Event& event);
// True if the event meets the condition. Checks only what happened, neither the condition's node nor its count.
[[nodiscard]] bool meets(const trace::TraceBase& trace, const trace::Event& event,
                         const schedule::Condition& condition);

class ContextIndex {
 public:
  // Reads the dumps once. `inputs` must outlive the index.
  ContextIndex(const Inputs& inputs, const NodeMap& nodes);

  // At most `most` events of `node` in (since, until], the latest first. Frequent events are left out, because they do
  // not identify a point of the execution.
  [[nodiscard]] std::vector<ContextEvent> before(int node, std::int64_t since, std::int64_t until,
                                                 std::size_t most) const;

 private:
  // A set of events that no condition distinguishes.
  struct Shape {
    const trace::TraceBase* trace = nullptr;
    const trace::Event* event = nullptr;  // the first event of this shape
    std::size_t kind = 0;
  };
  struct Seen {
    std::int64_t ts = 0;
    std::uint32_t shape = 0;
    std::uint32_t host = 0;  // several hosts may correspond to one node; each is counted separately
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
