// Records requested values at code locations: attaches the locations, detaches busy ones, attaches these again later,
// and stores the values up to a limit. base/function_rates.h decides which locations are busy. Owned by the tracer and
// called by its reader thread.
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

  // Returns ErrorKind::input if there are more locations or values than can be watched, or if a file cannot be read.
  [[nodiscard]] Result<void> prepare(const TracerOptions& options, std::size_t nodes);
  [[nodiscard]] bool empty() const { return places_.empty(); }
  [[nodiscard]] std::size_t fetches() const { return owners_.size(); }
  // Number of counters: for each location, one per node and one for all other processes.
  [[nodiscard]] std::size_t counters() const { return places_.size() * (nodes_ + 1); }

  // `program` is loaded and prepared; `fetches_map`: an array of fetches(), `counts_map`: a mappable array of
  // counters().
  [[nodiscard]] Result<void> attach(const bpf_program* program, int fetches_map, int counts_map);
  // Call this periodically.
  void look(std::int64_t now_ns);
  // Returns false if the record is malformed.
  bool take(const rose_value& value);
  [[nodiscard]] SeenValues seen() const;
  void stop();

 private:
  struct Place {
    ValuePlace what;
    int binary = 0;
    std::uint32_t first = 0;    // index of its first fetch
    kernel::FunctionLink link;  // if it is in no group
    bool grouped = false;       // the link of its binary's group includes it
    bool detached = false;
  };
  // The values of one fetch on one node.
  struct Kept {
    std::vector<SeenValue> first;
    std::deque<SeenValue> last;
  };
  [[nodiscard]] kernel::ProbePoint point_of(std::uint32_t index) const;
  [[nodiscard]] Result<void> attach_place(std::uint32_t index);
  [[nodiscard]] Result<kernel::FunctionLink> attach_group(int binary) const;
  void detach(const std::vector<std::uint32_t>& places);
  [[nodiscard]] std::vector<std::uint64_t> read_counts() const;

  std::size_t nodes_ = 0;
  double share_ = 0;
  Binaries binaries_;
  std::vector<Place> places_;
  std::map<int, kernel::FunctionLink> groups_;  // by binary: the link of all locations that were never busy
  std::vector<std::uint32_t> owners_;           // by fetch: its location
  const bpf_program* program_ = nullptr;
  std::unique_ptr<FunctionRates> rates_;
  std::unique_ptr<std::uint64_t, UnmapCounts> mapped_;  // counters of the BPF program
  kernel::LinkCloser closer_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Kept> kept_;  // by fetch and node
  std::uint64_t left_out_ = 0;
};

}  // namespace rose::observe
