// What a node did before a fault, as conditions to wait for: infrequent functions it entered and
// infrequent calls that changed state. From the dumps and, to compare, from the trace of a run.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/nodes.h"

namespace rose::diagnose {

struct ContextEvent {
  schedule::Condition condition;  // its first occurrence
  std::string key;                // events of one key are the same event, seen again
  std::uint64_t occurrence =
      1;  // which one of its key on its host, counted since the dump's beginning or the fault before
  std::int64_t ts_ns = 0;
};

// The condition that such an event meets; nothing for events that are no context.
[[nodiscard]] std::optional<ContextEvent> context_event(const trace::Trace& trace, const trace::Event& event,
                                                        std::string_view node);
// Does the event of a run's trace meet the condition? (Of the node it concerns; counts are not looked at.)
[[nodiscard]] bool meets(const trace::Trace& trace, const trace::Event& event, const schedule::Condition& condition);

class ContextIndex {
 public:
  // Reads the dumps once; `inputs` must outlive it.
  ContextIndex(const Inputs& inputs, const NodeMap& nodes);

  // The events of `node` in (since, until], the latest first; frequent ones are left out.
  [[nodiscard]] std::vector<ContextEvent> before(int node, std::int64_t since, std::int64_t until,
                                                 std::size_t most) const;

 private:
  struct Seen {
    std::int64_t ts = 0;
    std::uint32_t kind = 0;
    std::uint32_t host = 0;  // several may play one node, and each counts for itself
  };
  struct Kind {
    ContextEvent event;
    std::uint64_t count = 0;
    bool frequent = false;  // the profile says so, or this dump
  };
  std::vector<std::vector<Kind>> kinds_;  // by node
  std::vector<std::vector<Seen>> seen_;   // by node, by time
};

}  // namespace rose::diagnose
