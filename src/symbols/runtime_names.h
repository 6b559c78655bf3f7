// The names of code that a runtime compiles while the program runs. They come from the list that the runtime writes for
// perf, with lines "START SIZE NAME" in which the numbers are hexadecimal (Linux,
// tools/perf/Documentation/jit-interface.txt). Node.js, Python 3.12 and others write it to /tmp/perf-PID.map. The list
// may be hostile, so it is read line by line, up to a limit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rose::symbols {

struct RuntimeName {
  std::string function;
  std::string file;  // "" if unknown
  int line = 0;      // the first line of the function; 0: unknown
};

// The names, by address. Addresses that no line covers are missing. If several lines cover an address, the last line
// counts, because the runtime reuses memory for new code.
[[nodiscard]] std::map<std::uint64_t, RuntimeName> runtime_names(const std::filesystem::path& list,
                                                                 std::vector<std::uint64_t> addresses);

// Divides "JS:*handle /srv/app.js:12:3" (V8) or "py::handle:/srv/app.py" (Python) into its parts. Any other name is
// kept whole.
[[nodiscard]] RuntimeName parse_runtime_name(std::string_view text);

}  // namespace rose::symbols
