// The JDK's own classes. Needs nothing but the header: what is loaded into other people's processes uses it, too.
#pragma once

#include <string_view>

namespace rose {

// Of a class's or a method's full name: "java.util.HashMap$Node.getKey".
[[nodiscard]] constexpr bool of_jdk(std::string_view name) {
  for (const std::string_view package : {"java.", "javax.", "jdk.", "sun.", "com.sun."})
    if (name.starts_with(package)) return true;
  return false;
}

}  // namespace rose
