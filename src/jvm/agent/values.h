// Reads requested values when a thread reaches a location, and reports them to rose's BPF program. A value is an
// argument, a return value, a variable at a line, or a field of an object. The agent never executes code of the
// application. Private to the agent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jvm/agent/interface.h"
#include "jvm/agent/spec.h"
#include "jvm/names.h"

namespace rose::jvm {

// One request at one location. It is never freed, because threads may use it at any time.
struct PlacedQuery {
  AskSpec* spec = nullptr;
  std::int32_t slot = 0;  // slot of the variable
  char type = 'I';        // first letter of the signature of the variable or return value
};

// The slot of parameter `number` (from 1) on entry of a method. Returns false if there is no such parameter.
[[nodiscard]] bool parameter(std::string_view descriptor, bool is_static, std::int64_t number, std::int32_t& slot,
                             char& type);
// The return type in a descriptor: "V" for "(IJ)V".
[[nodiscard]] std::string_view returned(std::string_view descriptor);
// True for the types of objects, including arrays.
[[nodiscard]] inline bool is_object(char type) { return type == 'L' || type == '['; }

// Reports a variable of the topmost frame of the calling thread. If the requested field cannot exist (the class has no
// such field, or the value is no object), `missing` is set to the reason.
void report_variable(Jvmti jvmti, Jni jni, const PlacedQuery& asking, std::string& missing);
// Reports the caller of the method that the thread enters.
void report_caller(Jvmti jvmti, Jni jni, const PlacedQuery& asking);
void report_returned(Jvmti jvmti, Jni jni, const PlacedQuery& asking, Value value, std::string& missing);

}  // namespace rose::jvm
