// Handles thrown exceptions. Determines which watched methods an exception leaves, and reports or counts it like the
// entry of a method, with a name such as "org.x.Learner.readPacket throws java.io.EOFException". If asked, it also
// reports the method that catches it ("org.x.Learner.run catches java.io.EOFException"). Also evaluates which
// conditions of the schedule the exception meets. Private to the agent.
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

// at most this many frames of the stack are examined, innermost first
inline constexpr std::int32_t kMostFramesSeen = 64;

// The exceptions of one class that leave one method, or that it catches. An Escape is never freed, because threads may
// use it at any time.
struct Escape {
  Watched* watched = nullptr;  // null if these exceptions are not watched
  Visit visit;                 // the schedule's conditions on these exceptions
};

// Call under the agent's lock, except for may_look().
class Exceptions {
 public:
  void begin(const Spec& spec, const Jvmti& jvmti);
  [[nodiscard]] bool on() const { return on_; }

  // Limits how many exceptions are examined per second, in all threads together. Returns false for exceptions above the
  // limit; `first` is set for the first of these in each second.
  [[nodiscard]] bool may_look(bool& first);

  // Adds to `into` the methods that an exception of this class leaves on its way to `catcher` (nullptr: it is not
  // caught), innermost first. A method that both throws and catches the exception is included. If catchers are asked
  // for, `catcher` is the last one added.
  void escapes(const FrameInfo* frames, std::int32_t count, MethodId catcher, std::string_view class_name,
               WatchedMethods& watched, State& state, std::vector<const Escape*>& into);

 private:
  struct Thrower {
    bool wanted = false;  // exceptions that leave the method are watched
    std::string name;     // the method's name as used in records; "" if not needed
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
  std::int64_t second_ = 0;  // atomic, like the next member
  std::uint32_t in_second_ = 0;
};

}  // namespace rose::jvm
