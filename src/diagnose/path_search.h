// Searches for a name in one folder after another: a program along PATH, a library, a class.
#pragma once

#include <string_view>
#include <vector>

#include "trace/event.h"

namespace rose::diagnose {

// By event: whether it is a failed step of a search along a path. In such a search it is normal that a folder lacks the
// name or may not be read. The search must include a system folder: an application that looks for its own file on each
// of its disks really fails.
[[nodiscard]] std::vector<bool> search_steps(const trace::Trace& trace);

// The path's last component.
[[nodiscard]] std::string_view name_in(std::string_view path);

}  // namespace rose::diagnose
