// Parses and formats durations and sizes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace rose {

inline constexpr std::int64_t kMillisecond = 1'000'000;  // ns
inline constexpr std::int64_t kSecond = 1'000'000'000;   // ns

// "200ms", "1.5s", "3m" or "2h" in nanoseconds. Refuses signs, missing units and more than 10,000 h. The error message
// gives the accepted form; the caller adds the position.
[[nodiscard]] Result<std::int64_t> parse_duration_ns(std::string_view text);
// The shortest form that parse_duration_ns reads back: 12000000000 gives "12s", 1500000000 gives "1.5s". Rounded to
// milliseconds.
[[nodiscard]] std::string format_duration(std::int64_t ns);
// A time in nanoseconds since 1970, in the form "2025-11-21 20:00:00.123456789 UTC".
[[nodiscard]] std::string wall_clock(std::int64_t ns);

// "64MiB", "512KiB", "1GiB" or "4096B" in bytes.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);
[[nodiscard]] std::string format_size(std::uint64_t bytes);

}  // namespace rose
