// The limits of a trace, for every file format. Readers check them before they reserve memory, and later arithmetic
// with times relies on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "trace/event.h"

namespace rose::trace {

inline constexpr std::size_t kMostEvents = std::size_t{1} << 24;
inline constexpr std::size_t kMostStrings = std::size_t{1} << 23;
inline constexpr std::size_t kMostStringBytes = std::size_t{1} << 29;  // of all strings together
inline constexpr std::size_t kLongestString = std::size_t{1} << 20;
// The largest window. The dump of a larger window could exceed the limits of readers, because events may be added while
// the dump is being written.
inline constexpr std::size_t kMostWindow = 16'000'000;

// A time in the year 2116. The sum or difference of two times up to this one fits into 64 bits. So does the sum of such
// a time and a 31-bit duration in milliseconds.
inline constexpr std::int64_t kLatestTs = std::int64_t{1} << 62;
inline constexpr int kMostErrno = 4095;
inline constexpr int kMostSignal = 64;
inline constexpr int kMostExitCode = 255;
inline constexpr std::uint16_t kKnownFlags = 0xfff;

// Returns what is wrong with the event, or nothing. `strings` is the size of the event's string table.
[[nodiscard]] std::optional<std::string> event_fault(const Event& event, std::size_t strings);

}  // namespace rose::trace
