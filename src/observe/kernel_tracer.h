// The tracer's implementation, in three files: attaching (tracer.cc), processing records (tracer_records.cc) and
// answering requests (tracer_answers.cc).
#pragma once

#include <bpf/libbpf.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "bpf/tracer.h"
#include "kernel/attach.h"
#include "observe/clock_steps.h"
#include "observe/decode.h"
#include "observe/function_watch.h"
#include "observe/loaded_programs.h"
#include "observe/message_watch.h"
#include "observe/network_watch.h"
#include "observe/ring.h"
#include "observe/storms.h"
#include "observe/targets.h"
#include "observe/traced_cgroups.h"
#include "observe/tracer.h"
#include "observe/value_watch.h"
#include "observe/waits.h"
#include "observe/window.h"
#include "skel/tracer.skel.h"

namespace rose::observe {

// For libbpf's links of tracepoints.
struct LinkCloser {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};

class KernelTracer final : public Tracer {
 public:
  KernelTracer(TracerOptions options, std::vector<Target> targets)
      : options_(std::move(options)), targets_(std::move(targets)) {}
  ~KernelTracer() override { stop(); }

  Result<void> begin();

  void set_main(const std::string& node, pid_t pid) override;
  void set_planned(const std::string& node, bool planned) override;
  Result<trace::Trace> snapshot() override;
  Result<DumpTotals> write_dump(const trace::DumpWriter::Sink& sink, const std::function<void(trace::Meta&)>& amend,
                                const DumpRoom& room) override;
  profile::RunCounts counts() override;
  TracerStats stats() override;
  kernel::Capabilities still_needed() override;
  void leave_out(pid_t pid) override;
  SeenValues take_values() override;
  SeenMessages take_messages() override;
  std::vector<ProcessEnd> take_ends() override;
  int ends_fd() const override { return ends_fd_.get(); }

 private:
  Result<void> check();
  Result<void> find_targets();
  Result<void> load();
  Result<void> set_constants();
  [[nodiscard]] NetworkWatch::Kernel network_parts() const;
  Result<void> share_memory();
  void size_maps();
  void choose_programs();
  Result<void> fill_maps();
  Result<void> open_window();
  Result<void> attach();
  Result<void> follow_processes();
  void stop();
  void run();
  void drain(std::uint64_t up_to);
  std::size_t take_some(std::size_t most);
  void take(std::span<const std::byte> record);
  void take_counted(Decoded& counted);
  void warn_of_hot_method();
  void update_storms(bool all);
  void note_end(const Decoded& decoded);
  void take_missed();
  void sample_waits();
  void sample_connections();
  void forget_false_pauses();
  void note_detached(std::uint32_t function, std::uint32_t node);
  void write_node(std::size_t node);
  [[nodiscard]] int node_index(const std::string& name) const;
  [[nodiscard]] rose_stats kernel_stats() const;
  [[nodiscard]] std::vector<trace::SuppressedCall> suppressed_calls() const;
  [[nodiscard]] std::vector<std::uint64_t> per_cpu_sums(bpf_map* map, std::uint32_t entries) const;
  // Passes every block of the current window to `take`, the oldest first, and then one block with the silences and
  // pauses that have not ended.
  Result<std::uint64_t> read_window(const std::function<Result<void>(const trace::Meta&, std::int64_t offset)>& begin,
                                    const std::function<Result<void>(const trace::PackedEvents&)>& take,
                                    const DumpRoom& room = {}, std::uint64_t* left_out = nullptr);
  [[nodiscard]] trace::Meta meta(std::int64_t offset);
  [[nodiscard]] trace::Trace ongoing();
  void add_ongoing_pauses(trace::Trace& trace, const std::vector<trace::StringId>& nodes);

  TracerOptions options_;
  std::vector<Target> targets_;
  TracedCgroups places_;                 // cgroups that are targets
  std::vector<NodeCgroup> surrounding_;  // cgroups of targets that are processes

  int cpus_ = 1;
  std::uint64_t ring_bytes_ = 0;
  std::uint64_t kernel_bytes_ = 0;
  // declared before all members that map its memory or attach its programs, so that it is destroyed after them
  Programs skeleton_;
  // Number of times that the kernel skipped running a program while earlier tracers used the programs.
  std::uint64_t missed_before_ = 0;
  std::vector<std::unique_ptr<bpf_link, LinkCloser>> links_;
  NetworkWatch network_;

  std::mutex mutex_;  // protects the ring, the window, the counters and nodes_
  Ring ring_;
  Storms storms_;
  std::int64_t fetched_ns_ = 0;
  std::size_t storm_places_ = 0;
  std::unique_ptr<Window> window_;
  Decoded decoded_;
  std::vector<rose_node> nodes_;
  std::uint64_t recorded_ = 0, unreadable_ = 0;
  std::uint64_t missed_cgroups_ = 0, missed_ends_ = 0;  // used by the reader thread only
  // Samples are frequent enough that every pause above the threshold is seen at least twice.
  const std::int64_t sample_ns_ = std::clamp<std::int64_t>(options_.pause_ns / 3, 100'000'000, 1'000'000'000);
  Waits waits_{options_.pause_ns, sample_ns_};
  std::int64_t begin_ns_ = 0;
  ClockSteps clock_steps_{wall_offset_ns()};

  std::mutex ends_mutex_;  // held only briefly, so that the reader never waits for the consumer
  std::vector<ProcessEnd> ends_;
  Fd ends_fd_;

  // The link of the iterator over all tasks. Atomic, because the reader thread already runs when attach() sets it.
  std::atomic<int> waits_link_ = -1;

  Fd wake_, epoll_;
  std::atomic<bool> stopping_ = false;
  std::thread reader_;
  ValueWatch values_;      // guarded by mutex_ once the reader runs
  MessageWatch messages_;  // guarded by mutex_ once the reader runs
  std::vector<kernel::FunctionLink> method_links_;
  FunctionWatch functions_;  // the last member, because its thread calls back into this object
};

// Describes a thread that has waited in a call for longer than the pause threshold.
[[nodiscard]] trace::Event describe_wait(const Waits::Wait& wait);

}  // namespace rose::observe
