// Durations and sizes as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace rose {

inline constexpr std::int64_t kMillisecond = 1'000'000;  // ns
inline constexpr std::int64_t kSecond = 1'000'000'000;   // ns

// "200ms", "1.5s", "3m", "2h" -> nanoseconds. Refuses signs, missing units and more than 10,000 h;
// the error's message names the accepted form, the caller adds where the value stood.
[[nodiscard]] Result<std::int64_t> parse_duration_ns(std::string_view text);
// The shortest exact form that parse_duration_ns reads back: 12000000000 -> "12s", 1500000000 -> "1.5s".
// Rounded to whole milliseconds.
[[nodiscard]] std::string format_duration(std::int64_t ns);
// A time since 1970: "2025-11-21 20:00:00.123456789 UTC".
[[nodiscard]] std::string wall_clock(std::int64_t ns);

// "64MiB", "512KiB", "1GiB", "4096B" -> bytes.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);
[[nodiscard]] std::string format_size(std::uint64_t bytes);

}  // namespace rose
