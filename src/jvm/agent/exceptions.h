// Handles thrown exceptions: determines which watched methods they leave, and reports or counts each like an entry of a
// method named "org.x.Learner.readPacket throws java.io.EOFException". Also evaluates which conditions of the schedule
// they meet. Private to the agent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jvm/agent/interface.h"
#include "jvm/agent/places.h"
#include "jvm/agent/spec.h"
#include "jvm/agent/state.h"
#include "jvm/agent/watched.h"

namespace rose::jvm {

inline constexpr std::int32_t kMostFramesSeen = 64;  // frames of the stack that are examined

// Exceptions of one class that leave one method. Never freed, because threads may use it at any time.
struct Escape {
  Watched* watched = nullptr;  // null if it is not watched
  Visit visit;                 // the schedule's conditions on it
};

// Call under the agent's lock, except for may_look().
class Exceptions {
 public:
  void begin(const Spec& spec, const Jvmti& jvmti);
  [[nodiscard]] bool on() const { return on_; }

  // Limits how many exceptions per second are examined, over all threads. Returns false above the limit; `first` is set
  // for the first one above it in each second.
  [[nodiscard]] bool may_look(bool& first);

  // The methods that an exception of this class leaves on its way to `catcher` (nullptr: it is not caught), innermost
  // first; including a method that throws and catches it.
  void escapes(const FrameInfo* frames, std::int32_t count, MethodId catcher, std::string_view class_name,
               WatchedMethods& watched, State& state, std::vector<const Escape*>& into);

 private:
  struct Thrower {
    bool wanted = false;  // its exceptions are watched
    std::string name;     // the name used in records; "" if not needed
    std::vector<const PlaceSpec*> places;
  };
  const Thrower& thrower(MethodId method);
  [[nodiscard]] Thrower look_at(MethodId method) const;

  const Spec* spec_ = nullptr;
  Jvmti jvmti_;
  bool on_ = false;
  std::vector<std::pair<MethodId, Thrower*>> throwers_;                        // sorted
  std::vector<std::pair<std::pair<MethodId, std::string>, Escape*>> escapes_;  // sorted
  std::size_t watched_ = 0;
  bool full_ = false;
  std::int64_t second_ = 0;  // atomic, like the next one
  std::uint32_t in_second_ = 0;
};

}  // namespace rose::jvm
