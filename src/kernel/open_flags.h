// The flags of an open as text, "O_WRONLY|O_CREAT|O_TRUNC", and back without loss. Numbers are x86-64's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rose::kernel {

// The access mode first; bits without a name last, together in hex: "O_RDONLY|O_CREAT|0x80000000".
[[nodiscard]] std::string open_flags_text(std::uint32_t flags);
// In any order; hex numbers may stand anywhere. Nothing when a word is no flag.
[[nodiscard]] std::optional<std::uint32_t> open_flags_number(std::string_view text);

}  // namespace rose::kernel
