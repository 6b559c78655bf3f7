// The user-space half of storms: reads counts that BPF programs have not reported from their table, and completes
// counts that are reported by key only.
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

  // `places`: entries of the map `map_fd`, which the caller keeps. `most_bytes`: memory for remembered events.
  [[nodiscard]] Result<void> open(int map_fd, std::size_t places, std::uint64_t most_bytes);

  // An event with a key defines what later counts with that key mean. `position`: of its record in the ring.
  void remember(const Decoded& decoded, std::uint64_t position);
  // Completes `counted`; returns false if its key is unknown.
  [[nodiscard]] bool complete(Decoded& counted) const;

  using Take = std::function<void(Decoded&)>;  // counted events that are not completed yet
  // Reads counts; unless `all`, only those of seconds that are over.
  void fetch(bool all, std::int64_t now_ns, const Take& take);

  // Called when too much is remembered: makes every key start again, and forgets what was remembered before once the
  // ring has been read up to its current position. `produced` and `consumed`: positions of the ring.
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
  std::uint64_t forget_before_ = 0, forget_at_ = 0;  // positions in the ring
  std::unordered_map<std::uint64_t, Remembered> remembered_;  // by key
};

}  // namespace rose::observe
