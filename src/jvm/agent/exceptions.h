// Exceptions as they are thrown: which watched methods they leave, each told or counted like an entry of a method
// called "org.x.Learner.readPacket throws java.io.EOFException"; and the schedule's conditions on them. Private to the
// agent.
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

inline constexpr std::int32_t kMostFramesSeen = 64;  // of the stack that an exception is thrown on

// An exception of one class that leaves one method. Never freed.
struct Escape {
  Watched* watched = nullptr;  // none: it is not watched
  Visit visit;                 // conditions on it
};

// Under the agent's lock, but for may_look().
class Exceptions {
 public:
  void begin(const Spec& spec, const Jvmti& jvmti);
  [[nodiscard]] bool on() const { return on_; }

  // So many a second are looked at, whatever threads they come from. False from then on; `first`: for the first time in
  // this second.
  [[nodiscard]] bool may_look(bool& first);

  // Those of the methods that an exception of this class leaves on its way to `catcher` (nullptr: nobody's), innermost
  // first; who throws and catches it, too.
  void escapes(const FrameInfo* frames, std::int32_t count, MethodId catcher, std::string_view class_name,
               WatchedMethods& watched, State& state, std::vector<const Escape*>& into);

 private:
  struct Thrower {
    bool wanted = false;  // its exceptions are watched
    std::string name;     // as records have it; "": nobody asks
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
  std::int64_t second_ = 0;  // atomic, as the next
  std::uint32_t in_second_ = 0;
};

}  // namespace rose::jvm
