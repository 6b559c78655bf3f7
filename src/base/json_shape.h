// Examines the shape of an untrusted JSON text before the text is parsed. Code that walks the value is recursive, so a
// deeply nested text could exhaust the stack. The library finds an object's member by comparing all names, so an object
// with many members could take hours.
#pragma once

#include <cstddef>
#include <string_view>

namespace rose {

// Enough for every object that rose and the systems it knows write; an object of this size is parsed in milliseconds.
inline constexpr std::size_t kMostJsonMembers = 4096;

// True if arrays and objects are nested at most `depth` deep and no object has more than `members` members. The text
// need not be valid JSON.
[[nodiscard]] bool json_within(std::string_view text, int depth, std::size_t members = kMostJsonMembers);

}  // namespace rose
