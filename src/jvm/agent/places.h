// The places in the JVM's methods where the agent's breakpoints stand. Found by any thread without a lock, at every
// hit; changed under the agent's lock. What was once published stays in memory: threads may look at it for as long as
// they like.
#pragma once

#include <cstdint>
#include <vector>

#include "jvm/agent/interface.h"
#include "jvm/agent/spec.h"
#include "jvm/state_layout.h"

namespace rose::jvm {

struct Asking;
struct Watched;

// What a visit tells the kernel's program; made once, never changed.
struct Visit {
  std::vector<std::uint32_t> entries;  // roles, conditions, exceptions
  std::vector<const Throw*> throws;    // as they stand in `entries`
  bool noted = false;                  // where the thread is is noted ahead
};

struct Place {
  MethodId method = nullptr;
  Location location = 0;
  Object klass = nullptr;            // weak
  Visit entered;                     // at the entry of a method: when it is one
  Visit passed;                      // whenever a thread comes by
  const Watched* watched = nullptr;  // at the entry of a watched method
  // Values that are read: as the method is entered; whenever a thread comes by; that it is about to return.
  std::vector<const Asking*> at_entry, at_pass, at_return;
  // Its method has jumps that lead back to its entry, where a breakpoint is hit by calls and jumps alike. Breakpoints
  // on those jumps, and on where each goes on otherwise, tell which it was.
  Place* jumps_to = nullptr;
  std::vector<Place*> guards;  // those of this entry
  std::uint32_t users = 0;     // why the breakpoint is set
};

class Places {
 public:
  Places();
  // Lock-free.
  [[nodiscard]] const Place* find(MethodId method, Location location) const;
  // The rest under the agent's lock.
  [[nodiscard]] Place* find_mutable(MethodId method, Location location) {
    return const_cast<Place*>(find(method, location));
  }
  // Instead of one that stood there.
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
