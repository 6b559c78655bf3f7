// A name that is looked for in one folder after the other: a program along PATH, a library, a class.
#pragma once

#include <string_view>
#include <vector>

#include "trace/event.h"

namespace rose::diagnose {

// By event: whether it is a failed step of a search along a path. Then it is no fault that a folder does not have the
// name, or may not be read. Such a search contains a folder of the system; an application that looks for its own file
// on each of its disks really fails.
[[nodiscard]] std::vector<bool> search_steps(const trace::Trace& trace);

// The path's last component.
[[nodiscard]] std::string_view name_in(std::string_view path);

}  // namespace rose::diagnose
