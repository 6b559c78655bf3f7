// What a bad link holds back: packets that the kernel's programs (bpf/network/link.h) hand over through an interface of
// rose's own, and that go on in their time. The interface and all on it vanish with the process: then packets pass as
// if there were no bad link.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "inject/shared.h"

namespace rose::inject {

// What happens to a packet that is held back, by rule; all 0 for a rule that holds none.
struct HoldRule {
  std::int64_t delay_ns = 0;
  std::int64_t jitter_ns = 0;
  std::uint64_t reorder = 0;  // chance of 2^32 to go ahead at once
  std::uint64_t rate = 0;     // bits a second
  std::uint64_t seed = 0;
};

struct HoldCounts {
  std::uint64_t held = 0;
  std::uint64_t ahead = 0;      // went ahead of others (reorder)
  std::uint64_t overflown = 0;  // lost, since the queue of a thin link was full
};

class PacketHold {
 public:
  // Makes the interface in the calling thread's network namespace, as a silent port of the bridge `bridge` (interface
  // number; 0: of none), and begins to serve it.
  [[nodiscard]] static Result<std::unique_ptr<PacketHold>> create(std::vector<HoldRule> rules, int bridge);
  virtual ~PacketHold() = default;

  // What is still held goes on at once; nothing is held any more.
  virtual void stop() = 0;
  [[nodiscard]] virtual int interface() const = 0;
  [[nodiscard]] virtual HoldCounts counts(std::size_t rule) const = 0;
};

// In the calling thread's network namespace: packets leave this interface as they would travel a wire, not bundled by
// the kernel into large ones without checksums.
void make_plain(const std::string& interface);

// The order in which a rule's packets go on. Pure: what is due when.
class HoldQueue {
 public:
  struct Packet {
    std::int64_t due_ns = 0;
    std::uint64_t number = 0;  // ties go by arrival
    std::string bytes;
  };
  explicit HoldQueue(std::vector<HoldRule> rules);

  // A frame that came in now, with its tag. False: dropped, its rule's queue is full.
  bool take(std::string frame, std::int64_t now_ns);
  // The frame that is due first; nullptr when there is none.
  [[nodiscard]] const Packet* first() const { return heap_.empty() ? nullptr : &heap_.front(); }
  void pop();
  [[nodiscard]] HoldCounts counts(std::size_t rule) const;

 private:
  struct State {
    HoldCounts counts;
    std::int64_t free_ns[2] = {};  // by way: when a thin link has sent all that came before
  };
  std::vector<HoldRule> rules_;
  std::vector<State> states_;
  std::vector<Packet> heap_;
  struct Flow {
    std::uint64_t key = 0;
    std::int64_t due_ns = 0;
  };
  std::vector<Flow> flows_;  // by hash: when the last packet of a connection is due, so that jitter does not reorder
  std::uint64_t numbers_ = 0;
  std::uint64_t bytes_ = 0;  // held
};

}  // namespace rose::inject
