// The names of exceptions that leave methods of Java, as traces, profiles and schedules have them:
// "org.x.Learner.readPacket throws java.io.EOFException"; also of one that is thrown and caught in it.
#pragma once

#include <string_view>

namespace rose {

inline constexpr std::string_view kThrows = " throws ";

struct Leaving {
  std::string_view method, exception;
};

// Of other names `exception` is empty.
[[nodiscard]] inline Leaving leaving_of(std::string_view name) {
  const std::size_t at = name.find(kThrows);
  if (at == std::string_view::npos) return {name, {}};
  return {name.substr(0, at), name.substr(at + kThrows.size())};
}

}  // namespace rose
