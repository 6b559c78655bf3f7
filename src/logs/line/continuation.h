// Determines which lines without a header begin a message, and which continue the message before them.
#pragma once

#include <string_view>

namespace rose::logs {

// True if the line begins a message ("panic: ...", "Segmentation fault").
[[nodiscard]] bool begins_by_itself(std::string_view line);
// True if the line continues the message before it ("\tat org.x.Y", "Caused by: ...").
[[nodiscard]] bool looks_like_rest(std::string_view line);
// True for a line of a stack trace that names the exception: "java.io.IOException: No space left on device", "Caused
// by: ...", "OSError: [Errno 28] ...".
[[nodiscard]] bool names_exception(std::string_view line);

}  // namespace rose::logs
