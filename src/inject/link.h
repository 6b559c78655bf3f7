// Delays packets on bad links: BPF programs (bpf/network/link.h) pass them to rose through a TAP interface, and rose
// sends them on when they are due. When rose ends, the kernel removes the interface, and packets pass as if the link
// were good.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "inject/shared.h"

namespace rose::inject {

// How packets of a rule are delayed; all 0 for a rule that delays none.
struct HoldRule {
  std::int64_t delay_ns = 0;
  std::int64_t jitter_ns = 0;
  std::uint64_t reorder = 0;  // probability that a packet is not delayed, as a multiple of 2^-32
  std::uint64_t rate = 0;     // in bits per second
  std::uint64_t seed = 0;
};

struct HoldCounts {
  std::uint64_t held = 0;       // packets of the rule that arrived, including dropped ones
  std::uint64_t ahead = 0;      // packets that overtook others (reorder)
  std::uint64_t overflown = 0;  // packets that were dropped because the queue was full
  std::uint64_t at_once = 0;    // packets that were hardly delayed, because they did not reach the limited rate
};

class PacketHold {
 public:
  // Creates the interface in the calling thread's network namespace and starts to serve it. `bridge`: the interface
  // number of the bridge of which it becomes a port; 0: none. The port receives no flooded packets and learns no
  // addresses.
  [[nodiscard]] static Result<std::unique_ptr<PacketHold>> create(std::vector<HoldRule> rules, int bridge);
  virtual ~PacketHold() = default;

  // Sends all held packets immediately. Later packets are not delayed.
  virtual void stop() = 0;
  [[nodiscard]] virtual int interface() const = 0;
  [[nodiscard]] virtual HoldCounts counts(std::size_t rule) const = 0;
};

// Disables offloads of this interface in the calling thread's network namespace, so that packets leave it as they would
// on a wire. With offloads, packets are combined into large ones without checksums.
void make_plain(const std::string& interface);

// Decides when, and in which order, packets are sent. Makes no system calls.
class HoldQueue {
 public:
  struct Packet {
    std::int64_t due_ns = 0;
    std::uint64_t number = 0;  // order of arrival, which decides between packets with the same due time
    std::string bytes;
  };
  explicit HoldQueue(std::vector<HoldRule> rules);

  // Adds a frame that arrived now and has the VLAN tag of its rule. Returns false if the frame is dropped, because the
  // queue is full or the tag names no rule.
  bool take(std::string frame, std::int64_t now_ns);
  // The frame that is due first, or nullptr.
  [[nodiscard]] const Packet* first() const { return heap_.empty() ? nullptr : &heap_.front(); }
  void pop();
  [[nodiscard]] HoldCounts counts(std::size_t rule) const;

 private:
  struct State {
    HoldCounts counts;
    std::int64_t free_ns[2] = {};  // by direction: when a slow link will have sent all earlier packets
  };
  std::vector<HoldRule> rules_;
  std::vector<State> states_;
  std::vector<Packet> heap_;
  struct Flow {
    std::uint64_t key = 0;
    std::int64_t due_ns = 0;
  };
  // by hash of the connection: when its last packet is due, so that jitter does not reorder packets
  std::vector<Flow> flows_;
  std::uint64_t numbers_ = 0;
  std::uint64_t bytes_ = 0;  // bytes in the queue
};

}  // namespace rose::inject
