// Names for exceptions that leave Java methods, as in traces, profiles and schedules: "org.x.Learner.readPacket throws
// java.io.EOFException". An exception that is thrown and caught in the same method has a name of this form, too.
#pragma once

#include <string_view>

namespace rose {

inline constexpr std::string_view kThrows = " throws ";

struct Leaving {
  std::string_view method, exception;
};

// For names in any other form, `exception` is empty.
[[nodiscard]] inline Leaving leaving_of(std::string_view name) {
  const std::size_t at = name.find(kThrows);
  if (at == std::string_view::npos) return {name, {}};
  return {name.substr(0, at), name.substr(at + kThrows.size())};
}

}  // namespace rose
