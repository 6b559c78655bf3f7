// Text without the standard library's shared half. Private to the agent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "jvm/names.h"

namespace rose::jvm {

// A method's name as records have it: with its parameters where the class has several of that name.
inline std::string display_name(std::string_view class_name, std::string_view method, std::string_view descriptor,
                                bool overloaded) {
  std::string text(class_name);
  text += '.';
  text += method;
  if (overloaded) text += parameters_of(descriptor);
  return text;
}

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
