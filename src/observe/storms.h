// Handles storms in user space. A storm is a series of equal events that occur more than a few times per second; BPF
// programs only count them (bpf/tracer/storms.h). This class reads from their table the counts that the programs have
// not reported, and completes reported counts, which have a key instead of the details of the event.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "base/result.h"
#include "bpf/tracer.h"
#include "observe/decode.h"

namespace rose::observe {

class Storms {
 public:
  Storms() = default;
  ~Storms();
  Storms(const Storms&) = delete;
  Storms& operator=(const Storms&) = delete;

  // `places`: number of entries of the map `map_fd`, which the caller owns. `most_bytes`: limit of the memory for
  // remembered events.
  [[nodiscard]] Result<void> open(int map_fd, std::size_t places, std::uint64_t most_bytes);

  // Remembers an event with a key. Later counts with that key get its details. `position`: the position of its record
  // in the ring.
  void remember(const Decoded& decoded, std::uint64_t position);
  // Completes `counted`; returns false if its key is unknown.
  [[nodiscard]] bool complete(Decoded& counted) const;

  using Take = std::function<void(Decoded&)>;  // receives counts, which are not completed yet
  // Reads the counts from the table. Unless `all`, only counts of intervals (ROSE_STORM_NS) that have ended.
  void fetch(bool all, std::int64_t now_ns, const Take& take);

  // If more than `most_bytes` are remembered, resets all keys, so that the programs report the next event of each key
  // in full again. Forgets the older events once the ring has been read up to the position of the reset. `produced` and
  // `consumed` are positions of the ring.
  void forget(const std::function<std::uint64_t()>& produced, std::uint64_t consumed, const Take& take);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  void fetch(rose_storm& storm, bool all, bool reset, std::int64_t now_ns, const Take& take);

  struct Remembered {
    Decoded event;
    std::uint64_t position = 0;
  };
  rose_storm* places_ = nullptr;
  std::size_t count_ = 0, mapped_ = 0;
  std::uint64_t bytes_ = 0, most_bytes_ = 0;
  bool forgetting_ = false;
  std::uint64_t forget_before_ = 0, forget_at_ = 0;           // positions in the ring
  std::unordered_map<std::uint64_t, Remembered> remembered_;  // by key
};

}  // namespace rose::observe
