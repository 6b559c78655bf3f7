// Names of code that a runtime compiled while the program ran, by the list that it keeps for perf: lines "START SIZE
// NAME", both hexadecimal (Linux, tools/perf/Documentation/jit-interface.txt). Node.js, Python 3.12 and others write it
// to /tmp/perf-PID.map. The list is taken for hostile: it is read line by line, and no further than a bound.
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
  std::string file;  // "" not known
  int line = 0;      // where the function begins; 0: not known
};

// By address; those that no line covers are left out. Of several lines the last counts: code is compiled anew where
// other code was.
[[nodiscard]] std::map<std::uint64_t, RuntimeName> runtime_names(const std::filesystem::path& list,
                                                                 std::vector<std::uint64_t> addresses);

// "JS:*handle /srv/app.js:12:3" (V8) and "py::handle:/srv/app.py" (Python) are taken apart, other names stay as they
// are.
[[nodiscard]] RuntimeName parse_runtime_name(std::string_view text);

}  // namespace rose::symbols
