// Watches functions of the application: finds and attaches them, detaches hot ones, and attaches these again later.
// base/function_rates.h decides which functions are hot. Owned by the tracer; works in its own thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/function_rates.h"
#include "base/result.h"
#include "kernel/attach.h"
#include "observe/binaries.h"
#include "observe/tracer.h"
#include "symbols/symbols.h"

namespace rose::observe {

struct UnmapCounts {
  std::size_t bytes = 0;
  void operator()(std::uint64_t* counts) const;
};

class FunctionWatch {
 public:
  // For recording: called when a function was detached, once for each node that requested the function.
  using OnDetach = std::function<void(std::uint32_t function, std::uint32_t node)>;

  FunctionWatch() = default;
  ~FunctionWatch() { stop(); }
  FunctionWatch(const FunctionWatch&) = delete;
  FunctionWatch& operator=(const FunctionWatch&) = delete;

  // Finds the functions that the targets request. If `infrequent_below` > 0, functions are counted instead of recorded.
  [[nodiscard]] Result<void> find(const std::vector<Target>& targets, const TracerOptions& options);
  [[nodiscard]] std::size_t size() const { return functions_.size(); }
  // Number of counters: for each function, one per node and one for all other processes.
  [[nodiscard]] std::size_t counters() const { return functions_.size() * (nodes_.size() + 1); }
  [[nodiscard]] bool counting() const { return infrequent_below_ > 0; }
  [[nodiscard]] const std::string& name(std::uint32_t function) const { return functions_[function].name; }
  // True if the node requested the function. Nodes that share a binary may request different functions.
  [[nodiscard]] bool wanted(std::uint32_t function, std::uint32_t node) const {
    return wanted_[function * nodes_.size() + node];
  }

  // Attaches `program`, which is loaded and prepared. `counts_map`: a mappable array of counters().
  [[nodiscard]] Result<void> attach(const bpf_program* program, int counts_map, OnDetach on_detach);
  // For recording: handles an entry that the link with this number reported. Returns false if another link has already
  // reported the same entry.
  [[nodiscard]] bool entered(std::uint32_t function, std::uint32_t link, std::uint32_t tid);
  void stop();

  // For counting: the rates in this run, for the functions that each node requested.
  [[nodiscard]] std::vector<profile::FunctionRate> rates();

 private:
  struct Watched {
    std::string name;
    int binary = 0;
    std::uint64_t offset = 0;
  };
  // Functions attached by one link.
  struct Group {
    int binary = 0;
    std::vector<std::uint32_t> functions;
    kernel::FunctionLink link;
  };
  using Add = std::function<void(int binary, const symbols::Function& function, std::uint32_t node)>;
  void find_profiled(const std::vector<Target>& targets, const Add& add);
  [[nodiscard]] Result<Group> attach_group(int binary, std::vector<std::uint32_t> functions);
  void failed(int binary, const std::vector<std::uint32_t>& functions, const Error& why);
  [[nodiscard]] std::vector<std::uint64_t> read_counts() const;
  void run();
  void look();
  void drop(const std::vector<std::uint32_t>& gone);
  void attach_due(std::int64_t now, const std::vector<std::uint64_t>& counts);
  void merge_groups();

  std::vector<std::string> nodes_;
  Binaries binaries_;
  std::vector<Watched> functions_;
  std::vector<bool> wanted_;  // index: [function * nodes + node]
  double infrequent_below_ = 0;
  double hot_rate_ = 0;
  double share_ = 0;
  symbols::Copies copies_ = symbols::Copies::none;
  OnDetach on_detach_;

  const bpf_program* program_ = nullptr;
  std::uint32_t next_link_ = 0;
  std::vector<Group> groups_;
  std::int64_t merge_after_ns_ = 0;
  kernel::LinkCloser closer_;
  std::unique_ptr<FunctionRates> rates_;
  std::unique_ptr<std::uint64_t, UnmapCounts> mapped_;  // counters of the BPF programs

  // The last entry of each thread while two links may report the same entry.
  struct Last {
    std::uint32_t tid = 0, function = 0, link = 0;
  };
  std::vector<Last> last_;
  std::atomic<std::int64_t> doubled_until_ns_ = 0;

  std::mutex mutex_;  // protects groups_ and rates_
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread watcher_;
};

}  // namespace rose::observe
