// Recognises searches along a path: a name is looked up in one folder after another, such as a program along PATH, a
// library or a class.
#pragma once

#include <string_view>
#include <vector>

#include "evidence/observation.h"

namespace rose::evidence {

// For each event: whether it is a failed step of such a search. These failures are normal: a folder lacks the name, or
// is not readable. A search counts only if it includes a system folder: an application may also look for a file of its
// own on each of its disks, and then the error is a real failure.
[[nodiscard]] std::vector<bool> search_steps(const Source& source);

// The last component of the path.
[[nodiscard]] std::string_view name_in(std::string_view path);

}  // namespace rose::evidence
