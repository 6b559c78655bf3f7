// Text without the standard library's shared half. Private to the agent.
#pragma once

#include <cstdint>
#include <string>

namespace rose::jvm {

// A number that is not negative.
inline std::string decimal(std::int64_t number) {
  std::string text;
  do {
    text.insert(text.begin(), static_cast<char>('0' + number % 10));
    number /= 10;
  } while (number > 0);
  return text;
}

}  // namespace rose::jvm
