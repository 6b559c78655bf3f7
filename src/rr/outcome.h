// The result of a replay. It is stored in a page that the replayed process maps from the file ROSE_RR_OUTCOME and that
// `rose replay` reads, so it survives a crash of the process. Strings end with NUL.
#pragma once

#include <atomic>
#include <cstdint>

namespace rose::rr {

inline constexpr std::uint32_t kOutcomeVersion = 1;
enum class State : std::uint32_t { absent = 0, playing = 1, replayed = 2, diverged = 3, refused = 4 };

struct Outcome {
  std::uint32_t version;
  std::atomic<State> state;  // written last
  std::atomic<std::uint32_t> pid;
  std::atomic<std::uint32_t> divergences;
  std::atomic<std::uint64_t> taken;
  std::uint64_t total;
  std::uint64_t position;  // position in the recording, in bytes, of the record that was not reached
  char key[256];           // the key of that record
  char expected[512], got[512];
  char message[512];  // if refused: the reason
};
static_assert(sizeof(Outcome) <= 4096);

}  // namespace rose::rr
