#include "jvm/agent_file.h"

// The assembler copies the file; nothing else in this translation unit.
__asm__(
    ".pushsection .rodata\n"
    ".balign 16\n"
    "rose_jvm_agent_begin:\n"
    ".incbin \"" ROSE_JVM_AGENT "\"\n"
    "rose_jvm_agent_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" const char rose_jvm_agent_begin[];
extern "C" const char rose_jvm_agent_end[];

namespace rose::jvm {

std::string_view agent_bytes() {
  return {rose_jvm_agent_begin, static_cast<std::size_t>(rose_jvm_agent_end - rose_jvm_agent_begin)};
}

}  // namespace rose::jvm
