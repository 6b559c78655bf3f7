#include "deploy/enter_file.h"

// The assembler copies the file; nothing else in this translation unit.
__asm__(
    ".pushsection .rodata\n"
    ".balign 16\n"
    "rose_enter_begin:\n"
    ".incbin \"" ROSE_ENTER_FILE "\"\n"
    "rose_enter_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" const char rose_enter_begin[];
extern "C" const char rose_enter_end[];

namespace rose::deploy {

std::string_view enter_program() { return {rose_enter_begin, static_cast<std::size_t>(rose_enter_end - rose_enter_begin)}; }

}  // namespace rose::deploy
