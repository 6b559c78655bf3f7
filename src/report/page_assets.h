// page.css and page.js, embedded at build time (CMakeLists.txt).
#pragma once

#include <string_view>

namespace rose::report {

[[nodiscard]] std::string_view page_style();
[[nodiscard]] std::string_view page_script();

}  // namespace rose::report
