// Programs that run code which is not their own: their functions say nothing of an application.
#pragma once

#include <string_view>

namespace rose::symbols {

// By its name, with or without a version: "/usr/bin/python3.11". A program of an application may be called node, too: Node.js lies in a folder "bin".
[[nodiscard]] bool interprets(std::string_view program);

}  // namespace rose::symbols
