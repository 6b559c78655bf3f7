// Files that a program carries inside itself.
#pragma once

#include <cstddef>
#include <string_view>

// At namespace scope of a translation unit that nothing is joined with: the assembler copies `file` (a string literal),
// and ROSE_EMBEDDED(symbol) is its bytes. The build has to be told that the object depends on the file.
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
