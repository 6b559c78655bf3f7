// Values that are asked for: arguments, what methods return, variables at lines, fields of objects; read as a thread
// comes by, told to rose's kernel program. Nothing of the application is run for it. Private to the agent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jvm/agent/interface.h"
#include "jvm/agent/spec.h"
#include "jvm/names.h"

namespace rose::jvm {

// One question at one place. Never freed: threads may be on their way to it.
struct Asking {
  AskSpec* spec = nullptr;
  std::int32_t slot = 0;  // of the variable
  char type = 'I';        // of the variable, or of what is returned: its signature's first letter
};

// Where a parameter stands as its method is entered; `number` from 1 on. False: there is none.
[[nodiscard]] bool parameter(std::string_view descriptor, bool is_static, std::int64_t number, std::int32_t& slot,
                             char& type);
// "(IJ)V" -> "V"
[[nodiscard]] std::string_view returned(std::string_view descriptor);
// An array, too.
[[nodiscard]] inline bool is_object(char type) { return type == 'L' || type == '['; }

// Of the calling thread's topmost frame. `missing`: "" or why there is nothing to read in any object of this kind.
void tell_variable(Jvmti jvmti, Jni jni, const Asking& asking, std::string& missing);
// The method that calls the one that the thread enters.
void tell_caller(Jvmti jvmti, Jni jni, const Asking& asking);
void tell_returned(Jvmti jvmti, Jni jni, const Asking& asking, Value value, std::string& missing);

}  // namespace rose::jvm
