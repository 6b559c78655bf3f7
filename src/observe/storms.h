// The user half of the kernel's storms: what they counted and have not told is fetched from their table, and what
// they tell by key alone is completed.
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

  // `places` of the map `map_fd`, which stays the caller's. `most_bytes`: for what is remembered of them.
  [[nodiscard]] Result<void> open(int map_fd, std::size_t places, std::uint64_t most_bytes);

  // An event with a key is what later counts of that key mean. `position`: of its record in the ring.
  void remember(const Decoded& decoded, std::uint64_t position);
  // Fills in what `counted` is; false when its key is not known.
  [[nodiscard]] bool complete(Decoded& counted) const;

  using Take = std::function<void(Decoded&)>;  // counted events, not completed yet
  // Takes what was counted; unless `all`, only of seconds that are over.
  void fetch(bool all, std::int64_t now_ns, const Take& take);

  // When more is remembered than there is room for: every place is told to begin anew, and what was told
  // before is forgotten once the ring is read up to where it was then. `produced` and `consumed`: of the ring.
  void forget(const std::function<std::uint64_t()>& produced, std::uint64_t consumed, const Take& take);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  void fetch(rose_storm& storm, bool all, bool reset, std::int64_t now_ns, const Take& take);

  struct Told {
    Decoded event;
    std::uint64_t position = 0;
  };
  rose_storm* places_ = nullptr;
  std::size_t count_ = 0, mapped_ = 0;
  std::uint64_t bytes_ = 0, most_bytes_ = 0;
  bool forgetting_ = false;
  std::uint64_t forget_before_ = 0, forget_at_ = 0;  // positions in the ring
  std::unordered_map<std::uint64_t, Told> told_;
};

}  // namespace rose::observe
