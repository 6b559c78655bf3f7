// Names for what an exception does to a Java method or a Python function, as in traces and profiles: it leaves the
// function ("org.x.Learner.readPacket throws java.io.EOFException"), or the function catches an exception that left
// another one ("store.Store.put catches exception"). An exception that is thrown and caught in the same method has a
// name of the first form. Schedules use only the first form.
#pragma once

#include <string_view>

namespace rose {

inline constexpr std::string_view kThrows = " throws ", kCatches = " catches ";

struct Leaving {
  std::string_view method, exception;
  bool caught = false;  // the second form
};

// For names in any other form, `exception` is empty.
[[nodiscard]] inline Leaving leaving_of(std::string_view name) {
  for (const std::string_view verb : {kThrows, kCatches})
    if (const std::size_t at = name.find(verb); at != std::string_view::npos)
      return {name.substr(0, at), name.substr(at + verb.size()), verb == kCatches};
  return {name, {}};
}

}  // namespace rose
