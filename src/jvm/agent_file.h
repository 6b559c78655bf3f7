// The JVM agent that is embedded in rose.
#pragma once

#include <string_view>

namespace rose::jvm {

// The bytes of the shared library (src/jvm/agent).
[[nodiscard]] std::string_view agent_bytes();

// The function of the agent that BPF programs are attached to.
inline constexpr const char* kVisitStub = "rose_jvm_visit";
// The function that reports entries of watched methods: (name, whether it was detached).
inline constexpr const char* kEnterStub = "rose_jvm_enter";
// The function that reports values: (value, number of its location).
inline constexpr const char* kValueStub = "rose_jvm_value";

}  // namespace rose::jvm
