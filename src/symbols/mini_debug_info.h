// MiniDebugInfo is the symbol table that Fedora, RHEL and related distributions leave in stripped programs. It is an
// ELF file, compressed with xz, in the section .gnu_debugdata. The bytes may be hostile. Private to symbols.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rose::symbols {

// The ELF file in the section. Empty if it is damaged, or too large for a symbol table.
[[nodiscard]] std::vector<char> unpack_mini_debug_info(std::span<const std::uint8_t> section);

}  // namespace rose::symbols
