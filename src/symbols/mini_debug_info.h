// MiniDebugInfo: the symbol table that Fedora, RHEL and their kin leave in stripped programs, as an ELF file
// compressed with xz in the section .gnu_debugdata. The bytes are taken for hostile. Private to this room.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rose::symbols {

// What is in it, an ELF file; empty when it is damaged, or larger than a symbol table would be.
[[nodiscard]] std::vector<char> unpack_mini_debug_info(std::span<const std::uint8_t> section);

}  // namespace rose::symbols
