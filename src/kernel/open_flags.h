// Converts the flags of open(2) to text, such as "O_WRONLY|O_CREAT|O_TRUNC", and back, without loss. Some flags have
// different values on other processors; these functions use the values of this processor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rose::kernel {

// Writes the access mode first and bits without a name last, as one hexadecimal number: "O_RDONLY|O_CREAT|0x80000000".
[[nodiscard]] std::string open_flags_text(std::uint32_t flags);
// Reads flags in any order, and hexadecimal numbers at any position. Returns nothing if a word is not a flag.
[[nodiscard]] std::optional<std::uint32_t> open_flags_number(std::string_view text);

// The index of the argument with the flags of an open, or with the struct that contains them. Nothing for other calls.
[[nodiscard]] std::optional<int> open_flags_argument(std::string_view syscall);

// portable_open_flags() converts flags to the form used in dumps, which is their values on x86-64, whichever processor
// wrote the dump. native_open_flags() converts them back.
[[nodiscard]] std::uint32_t portable_open_flags(std::uint32_t flags);
[[nodiscard]] std::uint32_t native_open_flags(std::uint32_t portable);

}  // namespace rose::kernel
