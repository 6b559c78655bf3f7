// The files that rose loads into processes of Node.js. They are embedded in this program.
#pragma once

#include <string_view>

namespace rose::javascript {

[[nodiscard]] std::string_view addon_bytes();
[[nodiscard]] std::string_view agent_bytes();

}  // namespace rose::javascript
