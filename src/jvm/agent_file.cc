#include "jvm/agent_file.h"

#include "base/embedded_file.h"

ROSE_EMBED_FILE(rose_jvm_agent, ROSE_JVM_AGENT);

namespace rose::jvm {

std::string_view agent_bytes() { return ROSE_EMBEDDED(rose_jvm_agent); }

}  // namespace rose::jvm
