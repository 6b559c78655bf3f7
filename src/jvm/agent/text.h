// Text functions that do not need the C++ runtime library. Private to the agent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "jvm/names.h"

namespace rose::jvm {

// A method's name as used in records. It contains the parameters if the class has several methods of that name.
inline std::string display_name(std::string_view class_name, std::string_view method, std::string_view descriptor,
                                bool overloaded) {
  std::string text(class_name);
  text += '.';
  text += method;
  if (overloaded) text += parameters_of(descriptor);
  return text;
}

// Formats a number that is not negative.
inline std::string decimal(std::int64_t number) {
  std::string text;
  do {
    text.insert(text.begin(), static_cast<char>('0' + number % 10));
    number /= 10;
  } while (number > 0);
  return text;
}

}  // namespace rose::jvm
