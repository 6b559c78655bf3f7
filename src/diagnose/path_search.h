// A name that is looked for in one folder after the other: a program along PATH, a library, a class.
#pragma once

#include <string_view>
#include <vector>

#include "trace/event.h"

namespace rose::diagnose {

// By event: whether it is a failed step of such a search. That a folder does not have the name, or may not be looked
// into, is no fault then. A search passes a folder of the system; where an application looks for its own file on each
// of its disks, that fails indeed.
[[nodiscard]] std::vector<bool> search_steps(const trace::Trace& trace);

// The path's last component.
[[nodiscard]] std::string_view name_in(std::string_view path);

}  // namespace rose::diagnose
