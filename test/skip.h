// A test case that cannot run here prints `SKIPPED: <case>: <what is missing>` on stdout and is counted. main.cc
// decides whether the whole program counts as skipped.
#pragma once

#include <string>

namespace rose::test {

// Ends the case, the section or the generated value without a result. `missing`: the feature, and how to get it.
[[noreturn]] void skip_case(const std::string& missing);

}  // namespace rose::test
