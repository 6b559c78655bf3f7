// What a trace may hold, whichever file form it comes from. Readers check against these before
// they reserve memory; later arithmetic on times relies on them.
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
// A window larger than this would make dumps that no reader takes, with the little that is added when one is written.
inline constexpr std::size_t kMostWindow = 16'000'000;

// Year 2116. Sums and differences of two such times, or of one and a duration in
// milliseconds of 31 bits, stay within 64 bits.
inline constexpr std::int64_t kLatestTs = std::int64_t{1} << 62;
inline constexpr int kMostErrno = 4095;
inline constexpr int kMostSignal = 64;
inline constexpr int kMostExitCode = 255;
inline constexpr std::uint16_t kKnownFlags = 0x1ff;

// What is wrong with the event, or nothing. `strings` is the size of its table.
[[nodiscard]] std::optional<std::string> event_fault(const Event& event, std::size_t strings);

}  // namespace rose::trace
