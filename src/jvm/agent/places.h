// The locations of the agent's breakpoints. Every hit looks one up in any thread without a lock; changes are made under
// the agent's lock. Published entries are never freed, because threads may use them at any time.
#pragma once

#include <cstdint>
#include <vector>

#include "jvm/agent/interface.h"
#include "jvm/agent/spec.h"
#include "jvm/state_layout.h"

namespace rose::jvm {

struct PlacedQuery;
struct Watched;

// What a visit reports to the BPF program. Immutable after construction.
struct Visit {
  std::vector<std::uint32_t> entries;  // roles, conditions, exceptions
  std::vector<const Throw*> throws;    // in the order of `entries`
  bool noted = false;                  // record the thread's stack before reporting, because the process may be killed
};

struct Place {
  MethodId method = nullptr;
  Location location = 0;
  Object klass = nullptr;            // a weak reference
  Visit entered;                     // if it is the entry of a method: reported on a call
  Visit passed;                      // reported whenever a thread reaches it
  const Watched* watched = nullptr;  // if it is the entry of a watched method
  // Values to read on entry of the method, whenever a thread reaches the location, and on return.
  std::vector<const PlacedQuery*> at_entry, at_pass, at_return;
  // Set if the method contains jumps back to its entry: a breakpoint there is hit by calls and by jumps. Breakpoints on
  // those jumps, and on the instructions after them, tell the two apart.
  Place* jumps_to = nullptr;
  std::vector<Place*> guards;  // the breakpoints for this entry
  std::uint32_t users = 0;     // reference count of the breakpoint
};

class Places {
 public:
  Places();
  // Lock-free.
  [[nodiscard]] const Place* find(MethodId method, Location location) const;
  // The remaining methods must be called under the agent's lock.
  // Replaces an existing entry at the same location.
  void publish(Place* place);
  [[nodiscard]] const std::vector<Place*>& all() const { return all_; }

 private:
  struct Slots {
    std::size_t mask;
    Place** slots;
  };
  static std::size_t hash(MethodId method, Location location);
  void insert(Slots& into, Place* place);
  Slots* table_;  // atomic
  std::vector<Place*> all_;
};

}  // namespace rose::jvm
