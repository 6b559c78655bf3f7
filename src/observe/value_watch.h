// Values that are asked for at places of programs' code: keeps those places attached, lets go of busy ones
// (function_rates decides), attaches them again, and keeps what was seen, bounded. One for the tracer, whose reader
// thread calls it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/function_rates.h"
#include "base/result.h"
#include "bpf/tracer.h"
#include "kernel/attach.h"
#include "observe/function_watch.h"
#include "observe/tracer.h"

namespace rose::observe {

class ValueWatch {
 public:
  ValueWatch() = default;
  ~ValueWatch() { stop(); }
  ValueWatch(const ValueWatch&) = delete;
  ValueWatch& operator=(const ValueWatch&) = delete;

  // ErrorKind::input: more than the kernel's tables hold, or a file that can't be read.
  [[nodiscard]] Result<void> prepare(const std::vector<ValuePlace>& places, std::size_t nodes, double share);
  [[nodiscard]] bool empty() const { return places_.empty(); }
  [[nodiscard]] std::size_t fetches() const { return owners_.size(); }
  // For each place: one a node, and one for all processes that are no node's.
  [[nodiscard]] std::size_t counters() const { return places_.size() * (nodes_ + 1); }

  // `program`, loaded and prepared; `fetches_map` an array of fetches(), `counts_map` a mappable one of counters().
  [[nodiscard]] Result<void> attach(const bpf_program* program, int fetches_map, int counts_map);
  // From time to time.
  void look(std::int64_t now_ns);
  // False: it makes no sense.
  bool take(const rose_value& value);
  [[nodiscard]] SeenValues seen() const;
  void stop();

 private:
  struct Place {
    ValuePlace what;
    int binary = 0;
    std::uint32_t first = 0;  // of its fetches
    kernel::FunctionLink link;
    bool let_go = false;
  };
  // Of one fetch on one node.
  struct Kept {
    std::vector<SeenValue> first;
    std::deque<SeenValue> last;
  };
  [[nodiscard]] Result<void> attach_place(std::uint32_t index);
  [[nodiscard]] std::vector<std::uint64_t> read_counts() const;

  std::size_t nodes_ = 0;
  double share_ = 0;
  Binaries binaries_;
  std::vector<Place> places_;
  std::vector<std::uint32_t> owners_;  // by fetch: its place
  const bpf_program* program_ = nullptr;
  std::unique_ptr<FunctionRates> rates_;
  std::unique_ptr<std::uint64_t, UnmapCounts> mapped_;  // the kernel's counters
  kernel::LinkCloser closer_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Kept> kept_;  // by fetch and node
  std::uint64_t left_out_ = 0;
};

}  // namespace rose::observe
