// Recognises classes of the JDK. Header only, because code that is loaded into traced processes uses it too.
#pragma once

#include <string_view>

namespace rose {

// `name` is the full name of a class or method, such as "java.util.HashMap$Node.getKey".
[[nodiscard]] constexpr bool of_jdk(std::string_view name) {
  for (const std::string_view package : {"java.", "javax.", "jdk.", "sun.", "com.sun."})
    if (name.starts_with(package)) return true;
  return false;
}

}  // namespace rose
