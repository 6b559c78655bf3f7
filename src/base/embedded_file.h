// Embeds files in the program.
#pragma once

#include <cstddef>
#include <string_view>

// Use at namespace scope, in a translation unit that is excluded from unity builds. The assembler copies `file` (a
// string literal); ROSE_EMBEDDED(symbol) gives its bytes. The compiler does not report `file` as a dependency, so CMake
// must declare that the object depends on it.
#define ROSE_EMBED_FILE(symbol, file)     \
  __asm__(                                \
      ".pushsection .rodata\n"            \
      ".balign 16\n" #symbol              \
      "_begin:\n"                         \
      ".incbin \"" file "\"\n" #symbol    \
      "_end:\n"                           \
      ".byte 0\n"                         \
      ".popsection\n");                   \
  extern "C" const char symbol##_begin[]; \
  extern "C" const char symbol##_end[]

#define ROSE_EMBEDDED(symbol) \
  (std::string_view(symbol##_begin, static_cast<std::size_t>(symbol##_end - symbol##_begin)))
