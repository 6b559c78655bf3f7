// A test case that cannot run here says so: `SKIPPED: <case>: <what is missing>` on stdout, and is counted. What a
// whole program skips is the business of main.cc.
#pragma once

#include <string>

namespace rose::test {

// Ends the case (the section, the generated value) without judging it. `missing`: the feature, and how to have it.
[[noreturn]] void skip_case(const std::string& missing);

}  // namespace rose::test
