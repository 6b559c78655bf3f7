// The locations of the agent's breakpoints. At every hit, a thread looks up the location without a lock; changes are
// made under the agent's lock. Published entries are never freed, because threads may use them at any time.
#pragma once

#include <cstdint>
#include <vector>

#include "jvm/agent/interface.h"
#include "jvm/agent/spec.h"
#include "jvm/state_layout.h"

namespace rose::jvm {

struct PlacedQuery;
struct Watched;

// What a visit reports to the BPF program. It does not change after construction.
struct Visit {
  std::vector<std::uint32_t> entries;  // the numbers that the BPF program has for roles, conditions and exceptions
  std::vector<const Throw*> throws;    // in the order of `entries`
  bool noted = false;                  // record the thread's stack before reporting, because the process may be killed
};

struct Place {
  MethodId method = nullptr;
  Location location = 0;
  Object klass = nullptr;            // a weak reference
  Visit entered;                     // at the entry of a method: reported for a call, but not for a jump to the entry
  Visit passed;                      // reported at any other location, and at the entry of a method after a jump
  const Watched* watched = nullptr;  // not null for the entry of a watched method
  // Values to read: when the method is entered, whenever a thread reaches the location, and when the method returns.
  std::vector<const PlacedQuery*> at_entry, at_pass, at_return;
  // Set for a jump back to the entry of its method. A breakpoint at the entry is hit by calls and by jumps. Breakpoints
  // on the jumps, and on the instructions that may follow them, tell the two apart.
  Place* jumps_to = nullptr;
  // for an entry: the breakpoints on the jumps and on the instructions that may follow them
  std::vector<Place*> guards;
  std::uint32_t users = 0;  // reference count of the breakpoint
};

class Places {
 public:
  Places();
  // Takes no lock.
  [[nodiscard]] const Place* find(MethodId method, Location location) const;
  // The remaining methods must be called under the agent's lock. publish() replaces the Place that was published for
  // the same location before.
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
