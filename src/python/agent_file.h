// The files that rose loads into Python processes. They are embedded in this program.
#pragma once

#include <string_view>

namespace rose::python {

[[nodiscard]] std::string_view agent_bytes();
[[nodiscard]] std::string_view site_bytes();

}  // namespace rose::python
