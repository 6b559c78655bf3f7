// The agent that rose carries inside itself.
#pragma once

#include <string_view>

namespace rose::jvm {

// A shared library (src/jvm/agent), as it is to stand in a file.
[[nodiscard]] std::string_view agent_bytes();

// The function of it that kernel programs are attached to.
inline constexpr const char* kVisitStub = "rose_jvm_visit";
// The one by which entries of watched methods are told: (name, whether it is let go of).
inline constexpr const char* kEnterStub = "rose_jvm_enter";
// The one by which values are told: (value, number of its place).
inline constexpr const char* kValueStub = "rose_jvm_value";

}  // namespace rose::jvm
