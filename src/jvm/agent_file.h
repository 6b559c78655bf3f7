// The JVM agent that is embedded in rose.
#pragma once

#include <string_view>

namespace rose::jvm {

// The bytes of the shared library (src/jvm/agent).
[[nodiscard]] std::string_view agent_bytes();

// The function of the agent to which the injector's BPF programs are attached. jvm/agent/stubs.h has all such
// functions.
inline constexpr const char* kVisitStub = "rose_jvm_visit";

}  // namespace rose::jvm
