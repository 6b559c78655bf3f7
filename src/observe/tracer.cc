#include "observe/tracer.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"
#include "bpf/tracer.h"
#include "kernel/attach.h"
#include "kernel/lru.h"
#include "kernel/privilege.h"
#include "kernel/syscalls.h"
#include "observe/clock_steps.h"
#include "observe/decode.h"
#include "observe/function_watch.h"
#include "observe/network_watch.h"
#include "observe/places.h"
#include "observe/ring.h"
#include "observe/shapes.h"
#include "observe/storms.h"
#include "observe/targets.h"
#include "observe/waits.h"
#include "observe/window.h"
#include "skel/tracer.skel.h"

namespace rose::observe {
namespace {

constexpr const char* kMethodStub = "rose_jvm_enter";  // jvm/agent_file.h
constexpr std::size_t kMostEnds = 256;  // of processes, that nobody has taken yet
constexpr std::uint64_t kLeastMemory = std::uint64_t{2} << 20;

// What tracepoints pass changed with kernel versions.
struct TracepointForms {
  // io_uring_complete: (data, ring, request, user data, result, ...) before Linux 6.11, (data, ring, request,
  // completion) since.
  bool uring_result = false;
  // mark_victim: (data, thread id) before Linux 6.9 (commit 72ba14deb40a), (data, task, user id) since.
  bool victim_task = false;
};
TracepointForms tracepoint_forms() {
  static const TracepointForms answer = [] {
    TracepointForms forms;
    btf* kernel = btf__load_vmlinux_btf();
    if (kernel == nullptr) return forms;
    const auto arguments = [&](const char* name) -> const btf_type* {
      const auto id = btf__find_by_name_kind(kernel, name, BTF_KIND_TYPEDEF);
      if (id <= 0) return nullptr;
      const btf_type* type = btf__type_by_id(kernel, btf__type_by_id(kernel, static_cast<std::uint32_t>(id))->type);
      if (type != nullptr && btf_is_ptr(type)) type = btf__type_by_id(kernel, type->type);
      return type != nullptr && btf_is_func_proto(type) ? type : nullptr;
    };
    if (const auto* form = arguments("btf_trace_io_uring_complete")) forms.uring_result = btf_vlen(form) > 4;
    if (const auto* form = arguments("btf_trace_mark_victim"); form != nullptr && btf_vlen(form) >= 2) {
      const auto* type = btf__type_by_id(kernel, btf_params(form)[1].type);
      forms.victim_task = type != nullptr && btf_is_ptr(type);
    }
    btf__free(kernel);
    return forms;
  }();
  return answer;
}

trace::Event describe_wait(const Waits::Wait& wait) {
  trace::Event event;
  event.type = trace::EventType::ps;
  event.state = trace::ProcessState::paused;
  event.ts_ns = wait.end_ns;
  event.pid = static_cast<std::int32_t>(wait.tgid);
  event.tid = static_cast<std::int32_t>(wait.tid);
  event.duration_ms =
      static_cast<std::int32_t>(std::min<std::int64_t>((wait.end_ns - wait.begin_ns) / 1'000'000, INT32_MAX));
  event.flags = trace::kBlocked;
  if ((wait.flags & ROSE_MAIN) != 0) event.flags |= trace::kMain;
  if ((wait.flags & ROSE_PLANNED) != 0) event.flags |= trace::kPlanned;
  return event;
}

// Links are kept as libbpf's, for tracepoints.
struct LinkCloser {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
struct SkeletonCloser {
  void operator()(rose_tracer* skeleton) const { rose_tracer__destroy(skeleton); }
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
  Result<DumpTotals> write_dump(const trace::DumpWriter::Sink& sink,
                                const std::function<void(trace::Meta&)>& amend) override;
  profile::RunCounts counts() override;
  TracerStats stats() override;
  kernel::Capabilities still_needed() override;
  void leave_out(pid_t pid) override;
  std::vector<ProcessEnd> take_ends() override;
  int ends_fd() const override { return ends_fd_.get(); }

 private:
  Result<void> check();
  Result<void> find_targets();
  Result<void> load();
  Result<void> attach();
  Result<void> follow_processes();
  void stop();
  void run();
  void drain(std::uint64_t up_to);
  std::size_t take_some(std::size_t most);
  void take(std::span<const std::byte> record);
  void take_counted(Decoded& counted);
  void warn_of_hot_method();
  void tend_storms(bool all);
  void note_end(const Decoded& decoded);
  void take_missed();
  void sample_waits();
  void forget_pauses_that_were_none();
  void note_let_go(std::uint32_t function, std::uint32_t node);
  void write_node(std::size_t node);
  [[nodiscard]] int node_index(const std::string& name) const;
  [[nodiscard]] rose_stats kernel_stats() const;
  [[nodiscard]] std::vector<trace::SuppressedCall> suppressed_calls() const;
  [[nodiscard]] std::vector<std::uint64_t> per_cpu_sums(bpf_map* map, std::uint32_t entries) const;
  // Every block of the window as it is now, oldest first, and one with what goes on still.
  Result<std::uint64_t> read_window(const std::function<Result<void>(const trace::Meta&, std::int64_t offset)>& begin,
                                    const std::function<Result<void>(const trace::PackedEvents&)>& take);
  [[nodiscard]] trace::Meta meta(std::int64_t offset);
  [[nodiscard]] trace::Trace ongoing();
  void add_ongoing_pauses(trace::Trace& trace, const std::vector<trace::StringId>& nodes);

  TracerOptions options_;
  std::vector<Target> targets_;
  Places places_;                        // targets
  std::vector<NodeCgroup> surrounding_;  // of targets that are processes

  int cpus_ = 1;
  std::uint64_t ring_bytes_ = 0;
  std::uint64_t kernel_bytes_ = 0;
  std::unique_ptr<rose_tracer, SkeletonCloser> skeleton_;
  std::vector<std::unique_ptr<bpf_link, LinkCloser>> links_;
  NetworkWatch network_;

  std::mutex mutex_;  // the ring, the window, the counters and nodes_
  Ring ring_;
  Storms storms_;
  std::int64_t fetched_ns_ = 0;
  std::size_t storm_places_ = 0;
  std::unique_ptr<Window> window_;
  Decoded decoded_;
  std::vector<rose_node> nodes_;
  std::uint64_t recorded_ = 0, unreadable_ = 0;
  std::uint64_t missed_cgroups_ = 0, missed_ends_ = 0;  // of the reader thread
  // Every pause that counts is seen at least twice.
  const std::int64_t sample_ns_ = std::clamp<std::int64_t>(options_.pause_ns / 3, 100'000'000, 1'000'000'000);
  Waits waits_{options_.pause_ns, sample_ns_};
  std::int64_t begin_ns_ = 0;
  ClockSteps clock_steps_{wall_offset_ns()};

  std::mutex ends_mutex_;  // held for moments only: the reader never waits for whoever takes them
  std::vector<ProcessEnd> ends_;
  Fd ends_fd_;

  std::atomic<int> waits_link_ = -1;  // the walk over all tasks; of the reader thread

  Fd wake_, epoll_;
  std::atomic<bool> stopping_ = false;
  std::thread reader_;
  std::vector<kernel::FunctionLink> method_links_;
  std::set<std::string> hot_methods_;  // that were told
  FunctionWatch functions_;  // last: its thread tells us of what it let go of
};

Result<void> KernelTracer::check() {
  if (targets_.empty()) return fail(ErrorKind::usage, "there is nothing to trace", "name at least one target");
  if (targets_.size() > ROSE_MOST_NODES) {
    return fail(ErrorKind::input, fmt::format("{} nodes are more than the {} one tracer can tell apart",
                                              targets_.size(), int{ROSE_MOST_NODES}));
  }
  std::set<std::string> names;
  std::map<pid_t, std::string> owners;
  for (const auto& target : targets_) {
    if (!names.insert(target.node).second) {
      return fail(ErrorKind::usage, fmt::format("node '{}' is named twice", target.node));
    }
    if (target.pids.empty() && target.cgroups.empty()) {
      return fail(ErrorKind::usage, fmt::format("node '{}' has neither processes nor cgroups to trace", target.node));
    }
    for (const pid_t pid : target.pids) {
      const auto [owner, fresh] = owners.emplace(pid, target.node);
      if (fresh || owner->second == target.node) continue;
      return fail(ErrorKind::usage, fmt::format("process {} is given to two nodes, '{}' and '{}'", pid, owner->second, target.node));
    }
  }
  if (options_.memory < kLeastMemory) {
    return fail(ErrorKind::usage, fmt::format("{} bytes of memory are too few to trace with", options_.memory),
                "give at least 2MiB (the default is 64MiB)");
  }
  return {};
}

Result<void> KernelTracer::find_targets() {
  for (std::uint32_t node = 0; node < targets_.size(); ++node) {
    for (const auto& path : targets_[node].cgroups) ROSE_CHECK(places_.add(path, node));
    for (const pid_t pid : targets_[node].pids) {
      if (!kernel::process_exists(pid)) {
        return fail(ErrorKind::input, fmt::format("node '{}': there is no process {}", targets_[node].node, pid));
      }
      auto cgroup = cgroup_of(pid);
      if (!cgroup) {
        log::warning("network delays of node '{}' are not seen: {}", targets_[node].node, cgroup.error().message);
        continue;
      }
      surrounding_.push_back({std::move(*cgroup), node});
    }
  }
  return {};
}

Result<void> KernelTracer::load() {
  kernel::route_libbpf_log();
  skeleton_.reset(rose_tracer__open());
  if (!skeleton_) return kernel::bpf_failure("cannot open the tracer's programs", errno);
  auto& maps = skeleton_->maps;
  auto& progs = skeleton_->progs;
  auto& fixed = *skeleton_->rodata;

  const auto tables = call_tables(options_.noise);
  std::copy(tables.noise.begin(), tables.noise.end(), std::begin(fixed.rose_noise));
  std::copy(tables.shapes.begin(), tables.shapes.end(), std::begin(fixed.rose_shapes));
  std::copy(tables.changing.begin(), tables.changing.end(), std::begin(fixed.rose_changing));
  const auto levels = places_.levels();
  if (levels.size() > ROSE_MOST_LEVELS) {
    return fail(ErrorKind::input, fmt::format("target cgroups of {} different depths are more than the {} supported",
                                              levels.size(), int{ROSE_MOST_LEVELS}));
  }
  std::copy(levels.begin(), levels.end(), std::begin(fixed.rose_levels));
  fixed.rose_level_count = static_cast<std::uint32_t>(levels.size());
  const auto nodes = static_cast<std::uint32_t>(targets_.size());
  fixed.rose_node_count = nodes;
  fixed.rose_pause_ns = static_cast<std::uint64_t>(options_.pause_ns);
  const auto forms = tracepoint_forms();
  fixed.rose_uring_result = forms.uring_result ? 1 : 0;
  fixed.rose_victim_task = forms.victim_task ? 1 : 0;

  // Of the memory, an eighth at most waits in the ring and about as much holds network pairs; the window has the rest.
  // Values of maps that each processor has its own of are as many: with too few, the kernel would write past ours.
  cpus_ = libbpf_num_possible_cpus();
  if (cpus_ < 1) return kernel::bpf_failure("cannot tell how many processors there may be (/sys/devices/system/cpu/possible)", -cpus_);
  ring_bytes_ = std::bit_floor(std::clamp<std::uint64_t>(options_.memory / 8, 256 << 10, 8 << 20));
  fixed.rose_wakeup_bytes = ring_bytes_ / 8;
  fixed.rose_ring_limit = ring_bytes_ - ring_bytes_ / 8;
  const auto storms = static_cast<std::uint32_t>(std::bit_floor(std::clamp<std::uint64_t>(
      options_.memory / 64 / sizeof(rose_storm) / static_cast<std::uint64_t>(cpus_), 64, 1024)));
  fixed.rose_storm_slots = storms;
  storm_places_ = std::size_t{storms} * static_cast<std::size_t>(cpus_);
  const NetworkWatch::Kernel network{
      progs.rose_ingress, progs.rose_tc,    progs.rose_xdp,    progs.rose_closed,
      progs.rose_resent,  progs.rose_socket, progs.rose_socket_scan,
      maps.rose_pairs,    maps.rose_fresh,  maps.rose_conns,   maps.rose_over,
      maps.rose_addresses, maps.rose_attached, maps.rose_handshakes, &fixed.rose_network};
  network_.prepare(network, options_, targets_, places_, surrounding_);
  kernel_bytes_ = network_.kernel_bytes() + ring_bytes_ + 1024 * (64 + 8 * static_cast<std::uint64_t>(cpus_)) +
                  static_cast<std::uint64_t>(cpus_) * ROSE_SCRATCHES * (ROSE_RECORD_BYTES + 8) +
                  storm_places_ * sizeof(rose_storm);
  const bool counting = options_.count_syscalls;
  const auto entries = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(functions_.counters()));
  bpf_map__set_max_entries(maps.rose_ring, static_cast<std::uint32_t>(ring_bytes_));
  bpf_map__set_max_entries(maps.rose_storms, static_cast<std::uint32_t>(storm_places_));
  bpf_map__set_max_entries(maps.rose_nodes, nodes);
  bpf_map__set_max_entries(maps.rose_stats, nodes);
  bpf_map__set_max_entries(maps.rose_calls, counting ? nodes * ROSE_SYSCALLS : 1);
  bpf_map__set_max_entries(maps.rose_entries, entries);
  // For what goes on at once: handshakes, and processes that come and go; and the ports of services.
  for (bpf_map* map : {maps.rose_began, maps.rose_ended, maps.rose_pending, maps.rose_services})
    bpf_map__set_max_entries(map, kernel::lru_entries(1024));
  bpf_map__set_max_entries(maps.rose_doomed, kernel::lru_entries(512));
  kernel_bytes_ += std::uint64_t{kernel::lru_entries(1024)} * 4 * 128 + std::uint64_t{kernel::lru_entries(512)} * 80;

  bpf_program__set_autoload(progs.rose_sys_count, counting);
  bpf_program__set_autoload(progs.rose_function, functions_.size() != 0 && !functions_.counting());
  bpf_program__set_autoload(progs.rose_function_count, functions_.size() != 0 && functions_.counting());
  bpf_program__set_autoload(progs.rose_method, !options_.method_agents.empty());
  if (!options_.method_agents.empty()) kernel::prepare_uprobe(progs.rose_method);
  bpf_program__set_autoload(progs.rose_cgroup_mkdir, !places_.empty());
  bpf_program__set_autoload(progs.rose_cgroup_rmdir, !places_.empty() || !surrounding_.empty());
  if (functions_.size() != 0) {
    kernel::prepare_uprobe(functions_.counting() ? progs.rose_function_count : progs.rose_function);
  }
  if (const int error = rose_tracer__load(skeleton_.get()); error != 0) {
    return kernel::bpf_failure("cannot load the tracer's programs", -error);
  }

  nodes_.resize(nodes);
  for (const auto& [cgroup, node] : surrounding_) {
    if (cgroup.level == 0) continue;  // the root cannot be frozen
    const std::uint64_t id = cgroup.id;
    const std::uint32_t value = node;
    bpf_map_update_elem(bpf_map__fd(maps.rose_freezable), &id, &value, BPF_NOEXIST);
  }
  ROSE_CHECK(ring_.open(bpf_map__fd(maps.rose_ring), ring_bytes_));
  const std::uint64_t texts = options_.memory / 64;  // of storms
  ROSE_CHECK(storms_.open(bpf_map__fd(maps.rose_storms), storm_places_, texts));
  const std::uint64_t used = kernel_bytes_ + texts;
  const std::uint64_t left = options_.memory > used ? options_.memory - used : 0;
  std::vector<std::string> names;
  for (const auto& target : targets_) names.push_back(target.node);
  window_ = std::make_unique<Window>(options_.window, std::max(left, options_.memory / 4), std::move(names),
                                     [this](std::uint32_t function) { return std::string_view(functions_.name(function)); });
  return {};
}

Result<void> KernelTracer::attach() {
  auto& progs = skeleton_->progs;
  struct Tracepoint {
    bpf_program* program;
    bool optional;
  };
  // Cgroups and processes first: what is followed must be known before its calls are looked at.
  const Tracepoint tracepoints[] = {{progs.rose_cgroup_mkdir, false}, {progs.rose_cgroup_rmdir, false},
                                    {progs.rose_fork, false},  {progs.rose_exit, false},     {progs.rose_exec, false},
                                    {progs.rose_signal, false}, {progs.rose_continued, false}, {progs.rose_frozen, true},
                                    {progs.rose_emptied, true},
                                    {progs.rose_victim, true}, {progs.rose_waits, true},
                                    {progs.rose_closed, true}, {progs.rose_resent, true}, {progs.rose_uring, true}, {progs.rose_sys_exit, false},
                                    {progs.rose_sys_count, false}};
  for (const auto& [program, optional] : tracepoints) {
    if (!bpf_program__autoload(program)) continue;
    bpf_link* link = bpf_program__attach(program);
    if (link == nullptr) {
      const int error = errno;
      if (optional) {
        log::debug("cannot attach {}: {}", bpf_program__name(program), std::strerror(error));
        continue;
      }
      return kernel::bpf_failure(fmt::format("cannot attach {}", bpf_program__name(program)), error);
    }
    links_.emplace_back(link);
    if (program == progs.rose_waits) waits_link_ = bpf_link__fd(link);
    if (program == progs.rose_cgroup_rmdir) {
      auto& maps = skeleton_->maps;
      ROSE_CHECK(places_.fill(bpf_map__fd(maps.rose_cgroups), bpf_map__fd(maps.rose_freezable), bpf_map__fd(maps.rose_places)));
    }
    if (program == progs.rose_fork) ROSE_CHECK(follow_processes());
  }
  ROSE_CHECK(network_.attach(&skeleton_->bss->rose_network_counts));
  for (const auto& agent : options_.method_agents) {
    ROSE_TRY(const auto stub, symbols::find_functions(agent, {kMethodStub}, {}));
    ROSE_TRY(auto link, kernel::attach_functions(progs.rose_method, agent, {{.offset = stub.front().offset, .cookie = 0}}));
    method_links_.push_back(std::move(link));
  }
  return functions_.attach(functions_.counting() ? progs.rose_function_count : progs.rose_function,
                           bpf_map__fd(skeleton_->maps.rose_entries),
                           [this](std::uint32_t function, std::uint32_t node) { note_let_go(function, node); });
}

Result<void> KernelTracer::follow_processes() {
  const int map = bpf_map__fd(skeleton_->maps.rose_procs);
  for (std::uint32_t node = 0; node < targets_.size(); ++node) {
    const auto& roots = targets_[node].pids;
    for (const pid_t pid : roots) {
      const auto key = static_cast<std::uint32_t>(pid);
      const std::uint32_t value = node | ROSE_PROC_MAIN;
      bpf_map_update_elem(map, &key, &value, BPF_ANY);
      if (!kernel::process_exists(pid)) bpf_map_delete_elem(map, &key);  // it went before anyone watched
    }
  }
  // Forks of processes in the map are followed from now on; those made by processes that were not
  // yet in it are found by looking again until nothing new appears.
  bool fresh = true;
  for (int round = 0; fresh && round < 20; ++round) {
    fresh = false;
    for (std::uint32_t node = 0; node < targets_.size(); ++node) {
      if (targets_[node].pids.empty()) continue;
      for (const pid_t pid : kernel::with_descendants(targets_[node].pids)) {
        const auto key = static_cast<std::uint32_t>(pid);
        const std::uint32_t value = node;
        if (bpf_map_update_elem(map, &key, &value, BPF_NOEXIST) != 0) continue;
        if (kernel::process_exists(pid)) {
          fresh = true;
        } else {
          bpf_map_delete_elem(map, &key);
        }
      }
    }
  }
  return {};
}

Result<void> KernelTracer::begin() {
  ROSE_CHECK(check());
  ROSE_CHECK(kernel::check_capabilities({{CAP_BPF, "to load programs into the kernel"},
                                         {CAP_PERFMON, "to attach them to system calls and functions"},
                                         {CAP_NET_ADMIN, "to see packets arrive"}}));
  ROSE_CHECK(functions_.find(targets_, options_));
  ROSE_CHECK(find_targets());
  ROSE_CHECK(load());
  wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  ends_fd_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_ || !epoll_ || !ends_fd_) return fail_errno(ErrorKind::environment, "cannot make an epoll descriptor", errno);
  for (const int fd : {wake_.get(), bpf_map__fd(skeleton_->maps.rose_ring)}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return fail_errno(ErrorKind::environment, "cannot wait for the ring buffer", errno);
    }
  }
  begin_ns_ = monotonic_ns();
  ROSE_TRY(reader_, start_thread([this] { run(); }));
  return attach();
}

void KernelTracer::stop() {
  if (reader_.joinable()) {
    stopping_ = true;
    const std::uint64_t one = 1;
    if (::write(wake_.get(), &one, sizeof one) < 0) log::debug("cannot wake the tracer's reader");
    reader_.join();
  }
  functions_.stop();
  method_links_.clear();
  network_.detach();
  links_.clear();
}

void KernelTracer::run() {
  // In a storm the reader competes with the very threads that fail: it must not be starved by them.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), -10);
  constexpr int timeout_ms = 100;
  std::int64_t sampled_ns = 0;
  bool more = false;
  while (!stopping_) {
    epoll_event events[2];
    ::epoll_wait(epoll_.get(), events, 2, more ? 0 : timeout_ms);
    {
      const std::lock_guard lock(mutex_);
      more = take_some(4096) == 4096;
      tend_storms(false);
    }
    take_missed();
    if (places_.changed()) network_.follow();
    if (const std::int64_t now = monotonic_ns(); now - sampled_ns >= sample_ns_) {
      sampled_ns = now;
      clock_steps_.look(now, wall_offset_ns);
      sample_waits();
      forget_pauses_that_were_none();
    }
    network_.tick();
  }
}

std::size_t KernelTracer::take_some(std::size_t most) {
  return ring_.consume([this](std::span<const std::byte> record) { take(record); }, most);
}

void KernelTracer::take(std::span<const std::byte> record) {
  rose_cgroup cgroup;
  if (record.size() >= sizeof cgroup) {
    std::memcpy(&cgroup, record.data(), sizeof cgroup);
    if (cgroup.head.kind == ROSE_CGROUP) return places_.note(cgroup);
  }
  if (!decode(record, decoded_) || decoded_.node >= targets_.size()) {
    ++unreadable_;
    return;
  }
  if (decoded_.counted) {
    take_counted(decoded_);
    return;
  }
  if (decoded_.storm != 0) storms_.remember(decoded_, ring_.consumed());
  if (decoded_.event.type == trace::EventType::af) {
    if (decoded_.function == ROSE_NAMED) {
      warn_of_hot_method();
    } else if (decoded_.function >= functions_.size()) {
      ++unreadable_;
      return;
    }
    if (decoded_.function != ROSE_NAMED &&
        (!functions_.wanted(decoded_.function, decoded_.node) ||
         !functions_.entered(decoded_.function, decoded_.link, static_cast<std::uint32_t>(decoded_.event.tid))))
      return;
  }
  if (decoded_.event.type == trace::EventType::nd && targets_[decoded_.node].own_network && decoded_.src == decoded_.dst) return;
  if (decoded_.event.type == trace::EventType::ps) note_end(decoded_);
  recorded_ += decoded_.event.count;
  window_->add(decoded_);
}

// The agent has let go of it.
void KernelTracer::warn_of_hot_method() {
  if ((decoded_.event.flags & trace::kTruncated) == 0 || hot_methods_.size() >= 1024) return;
  if (hot_methods_.insert(decoded_.path).second)
    log::warning("'{}' is entered too often: not recorded for a while at a time while it is that busy", decoded_.path);
}

void KernelTracer::take_counted(Decoded& counted) {
  const auto count = counted.event.count;
  if (!storms_.complete(counted)) {
    unreadable_ += count;
    return;
  }
  recorded_ += count;
  if (counted.event.type == trace::EventType::ps) note_end(counted);
  window_->add(counted);
}

// What the ring had no room for is acted upon all the same; it is counted as lost already.
void KernelTracer::take_missed() {
  const volatile rose_missed& now = skeleton_->bss->rose_missed;
  if (const std::uint64_t cgroups = now.cgroups; cgroups != missed_cgroups_) {
    missed_cgroups_ = cgroups;
    places_.note_missed();
  }
  if (const std::uint64_t ends = now.ends; ends != missed_ends_) {
    missed_ends_ = ends;
    Decoded last;
    last.node = now.node;
    last.event.type = trace::EventType::ps;
    last.event.pid = static_cast<std::int32_t>(now.tgid);
    last.event.signal = static_cast<std::uint8_t>(now.signal);
    last.event.exit_code = now.exit_code;
    last.event.state = last.event.signal != 0 ? trace::ProcessState::crashed : trace::ProcessState::exited;
    if ((now.flags & ROSE_MAIN) != 0) last.event.flags |= trace::kMain;
    if ((now.flags & ROSE_PLANNED) != 0) last.event.flags |= trace::kPlanned;
    if (last.node < targets_.size()) note_end(last);
  }
}

// What storms counted goes to the window once a second, and whenever it is read.
void KernelTracer::tend_storms(bool all) {
  const std::int64_t now = monotonic_ns();
  if (!all && now - fetched_ns_ < 1'000'000'000) return;
  fetched_ns_ = now;
  std::vector<Decoded> unknown;
  const Storms::Take take = [&](Decoded& counted) {
    Decoded whole = counted;
    if (storms_.complete(whole))
      take_counted(counted);
    else
      unknown.push_back(counted);
  };
  storms_.fetch(all, now, take);
  storms_.forget([this] { return ring_.produced(); }, ring_.consumed(), take);
  if (unknown.empty()) return;
  // Their first records are still in the ring.
  drain(ring_.produced());
  for (auto& counted : unknown) take_counted(counted);
}

void KernelTracer::note_end(const Decoded& decoded) {
  const auto& event = decoded.event;
  const bool crashed = event.state == trace::ProcessState::crashed;
  const bool failed =
      event.state == trace::ProcessState::exited && (event.flags & trace::kMain) != 0 && event.exit_code > 0;
  if ((!crashed && !failed) || (event.flags & trace::kPlanned) != 0) return;
  const std::lock_guard lock(ends_mutex_);
  if (ends_.size() >= kMostEnds) return;
  ends_.push_back({targets_[decoded.node].node, event.pid, event.signal, event.exit_code});
  const std::uint64_t one = 1;
  if (::write(ends_fd_.get(), &one, sizeof one) < 0) log::debug("the end of a process could not be told");
}

void KernelTracer::leave_out(pid_t pid) {
  const auto key = static_cast<std::uint32_t>(pid);
  const std::uint32_t nobody = ROSE_PROC_NODE;
  if (bpf_map_update_elem(bpf_map__fd(skeleton_->maps.rose_procs), &key, &nobody, BPF_ANY) != 0)
    log::debug("process {} cannot be left out", pid);
}

// What was expected, by kind; the rarer ones of very many are in the total only.
std::vector<trace::SuppressedCall> KernelTracer::suppressed_calls() const {
  constexpr std::size_t kMost = 64;
  const int map = bpf_map__fd(skeleton_->maps.rose_quiet);
  std::vector<std::uint64_t> values(static_cast<std::size_t>(cpus_));
  std::vector<trace::SuppressedCall> calls;
  std::uint32_t key = 0, next = 0;
  for (int error = bpf_map_get_next_key(map, nullptr, &next); error == 0 && calls.size() < 4096;
       error = bpf_map_get_next_key(map, &key, &next)) {
    key = next;
    if (bpf_map_lookup_elem(map, &key, values.data()) != 0) continue;
    trace::SuppressedCall call{static_cast<std::int16_t>(key >> 16), static_cast<std::int16_t>(key & 0xffff), 0};
    for (const auto value : values) call.count += value;
    calls.push_back(call);
  }
  std::sort(calls.begin(), calls.end(), [](const auto& a, const auto& b) {
    return std::tuple(b.count, a.syscall, a.err) < std::tuple(a.count, b.syscall, b.err);
  });
  if (calls.size() > kMost) calls.resize(kMost);
  return calls;
}

std::vector<ProcessEnd> KernelTracer::take_ends() {
  const std::lock_guard lock(ends_mutex_);
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(ends_fd_.get(), &count, sizeof count);
  return std::exchange(ends_, {});
}

// Reads all that was produced before the call. A record that is being written on another CPU right
// now holds up those behind it, for microseconds.
void KernelTracer::drain(std::uint64_t up_to) {
  const std::int64_t limit = monotonic_ns() + 2'000'000'000;
  while (ring_.consumed() < up_to && monotonic_ns() < limit) {
    if (take_some(SIZE_MAX) == 0) ::usleep(50);
  }
}

// The dump says where its entries of a function end.
void KernelTracer::note_let_go(std::uint32_t function, std::uint32_t node) {
  Decoded note;
  note.event.type = trace::EventType::af;
  note.event.ts_ns = monotonic_ns();
  note.event.flags = trace::kTruncated;
  note.node = node;
  note.function = function;
  const std::lock_guard lock(mutex_);
  window_->add(note);
}

void KernelTracer::sample_waits() {
  const int link = waits_link_;
  if (link < 0) return;
  const Fd walk(bpf_iter_create(link));
  if (!walk) return;
  std::vector<rose_blocked> blocked;
  std::array<std::byte, 32 * sizeof(rose_blocked)> bytes;
  std::size_t filled = 0;
  for (;;) {
    const ssize_t n = ::read(walk.get(), bytes.data() + filled, bytes.size() - filled);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) break;
    filled += static_cast<std::size_t>(n);
    const std::size_t whole = filled / sizeof(rose_blocked);
    const std::size_t before = blocked.size();
    blocked.resize(before + whole);
    std::memcpy(blocked.data() + before, bytes.data(), whole * sizeof(rose_blocked));
    filled -= whole * sizeof(rose_blocked);
    std::memmove(bytes.data(), bytes.data() + whole * sizeof(rose_blocked), filled);
  }
  const std::lock_guard lock(mutex_);
  for (const auto& wait : waits_.sample(blocked, monotonic_ns())) {
    if (wait.node >= targets_.size()) continue;
    Decoded decoded;
    decoded.node = wait.node;
    decoded.event = describe_wait(wait);
    ++recorded_;
    window_->add(decoded);
  }
}

// A stop signal that is delivered does not stop the process in every case: job control has no effect on process groups
// without a parent in their session, nor on the first process of a pid namespace.
void KernelTracer::forget_pauses_that_were_none() {
  const int paused = bpf_map__fd(skeleton_->maps.rose_paused);
  const std::uint32_t most = bpf_map__max_entries(skeleton_->maps.rose_paused);
  std::uint64_t key = 0, next = 0;
  std::vector<std::uint64_t> none;
  std::uint32_t steps = 0;
  for (int error = bpf_map_get_next_key(paused, nullptr, &next); error == 0 && steps < most;
       error = bpf_map_get_next_key(paused, &key, &next), ++steps) {
    key = next;
    rose_pause pause{};
    if ((key & ROSE_FROZEN) != 0 || bpf_map_lookup_elem(paused, &key, &pause) != 0) continue;
    const std::int64_t age = monotonic_ns() - static_cast<std::int64_t>(pause.since_ns);
    const auto stat = kernel::process_stat(static_cast<pid_t>(pause.tgid));
    const char state = stat ? stat->state : '\0';
    // Threads on their way to stop are runnable, for long where there are too few CPUs; they do not sleep.
    if ((state == 'S' && age > 50'000'000) || (state == 'R' && age > 1'000'000'000)) none.push_back(key);
  }
  for (const auto each : none) bpf_map_delete_elem(paused, &each);
}

int KernelTracer::node_index(const std::string& name) const {
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (targets_[i].node == name) return static_cast<int>(i);
  }
  return -1;
}

void KernelTracer::write_node(std::size_t node) {
  const auto key = static_cast<std::uint32_t>(node);
  bpf_map_update_elem(bpf_map__fd(skeleton_->maps.rose_nodes), &key, &nodes_[node], BPF_ANY);
}

void KernelTracer::set_main(const std::string& node, pid_t pid) {
  const int index = node_index(node);
  if (index < 0 || pid <= 0) return;
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<std::size_t>(index);
  nodes_[at].main_tgid = static_cast<std::uint32_t>(pid);
  write_node(at);
  if (!targets_[at].cgroups.empty()) return;  // its cgroup says whose it is
  const auto key = static_cast<std::uint32_t>(pid);
  const auto value = static_cast<std::uint32_t>(index);
  const int map = bpf_map__fd(skeleton_->maps.rose_procs);
  bpf_map_update_elem(map, &key, &value, BPF_NOEXIST);
  if (!kernel::process_exists(pid)) bpf_map_delete_elem(map, &key);
}

void KernelTracer::set_planned(const std::string& node, bool planned) {
  const int index = node_index(node);
  if (index < 0) return;
  const std::lock_guard lock(mutex_);
  nodes_[static_cast<std::size_t>(index)].planned = planned ? 1 : 0;
  write_node(static_cast<std::size_t>(index));
}

rose_stats KernelTracer::kernel_stats() const {
  rose_stats sum{};
  std::vector<rose_stats> values(static_cast<std::size_t>(cpus_));
  for (std::uint32_t node = 0; node < targets_.size(); ++node) {
    if (bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.rose_stats), &node, values.data()) != 0) continue;
    for (const auto& value : values) {
      sum.recorded += value.recorded;
      sum.lost += value.lost;
      sum.suppressed += value.suppressed;
      sum.foreign += value.foreign;
    }
  }
  return sum;
}

std::vector<std::uint64_t> KernelTracer::per_cpu_sums(bpf_map* map, std::uint32_t entries) const {
  std::vector<std::uint64_t> sums(entries, 0);
  std::vector<std::uint64_t> values(static_cast<std::size_t>(cpus_));
  for (std::uint32_t key = 0; key < entries; ++key) {
    if (bpf_map_lookup_elem(bpf_map__fd(map), &key, values.data()) != 0) continue;
    for (const auto value : values) sums[key] += value;
  }
  return sums;
}

void KernelTracer::add_ongoing_pauses(trace::Trace& trace, const std::vector<trace::StringId>& nodes) {
  const std::int64_t now = monotonic_ns();
  std::uint32_t steps = 0;
  const int paused = bpf_map__fd(skeleton_->maps.rose_paused);
  std::uint64_t key = 0, next_key = 0;
  for (int error = bpf_map_get_next_key(paused, nullptr, &next_key); error == 0 && steps < 8192;
       error = bpf_map_get_next_key(paused, &key, &next_key), ++steps) {
    key = next_key;
    rose_pause pause{};
    if (bpf_map_lookup_elem(paused, &key, &pause) != 0 || pause.node >= nodes.size() || pause.since_ns == 0) continue;
    const std::int64_t duration = now - static_cast<std::int64_t>(pause.since_ns);
    if (duration < options_.pause_ns) continue;
    trace::Event event;
    event.type = trace::EventType::ps;
    event.state = trace::ProcessState::paused;
    event.ts_ns = now;
    event.node = nodes[pause.node];
    event.pid = event.tid = static_cast<std::int32_t>(pause.tgid);
    event.signal = static_cast<std::uint8_t>(pause.signal);
    event.duration_ms = static_cast<std::int32_t>(std::min<std::int64_t>(duration / 1'000'000, INT32_MAX));
    event.flags = trace::kOpen;
    if ((pause.flags & ROSE_MAIN) != 0) event.flags |= trace::kMain;
    if ((pause.flags & ROSE_PLANNED) != 0) event.flags |= trace::kPlanned;
    trace.events.push_back(event);
  }
  const std::lock_guard lock(mutex_);
  for (const auto& wait : waits_.ongoing(now)) {
    if (wait.node >= nodes.size()) continue;
    trace::Event event = describe_wait(wait);
    event.node = nodes[wait.node];
    event.flags |= trace::kOpen;
    trace.events.push_back(event);
  }
}

// With monotonic times, like the window's.
trace::Trace KernelTracer::ongoing() {
  trace::Trace trace;
  std::vector<trace::StringId> nodes;
  for (const auto& target : targets_) nodes.push_back(trace.strings.intern(target.node));
  network_.add_open(trace, 0, nodes);
  add_ongoing_pauses(trace, nodes);
  return trace;
}

trace::Meta KernelTracer::meta(std::int64_t offset) {
  trace::Meta meta;
  meta.node = options_.host_node;
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) == 0) meta.host = host;
  if (auto boot = read_file("/proc/sys/kernel/random/boot_id"); boot) meta.boot_id = boot->substr(0, 36);
  meta.monotonic_base_ns = monotonic_ns();
  meta.wall_base_ns = meta.monotonic_base_ns + offset;
  meta.window = options_.window;
  meta.memory = options_.memory;
  meta.network_delay_ns = options_.network_delay_ns;
  meta.pause_ns = options_.pause_ns;
  meta.begin_ns = begin_ns_ + offset;  // as all times of the dump
  meta.end_ns = meta.wall_base_ns;
  for (const auto& target : targets_) {
    meta.nodes.push_back(target.node);
    for (const auto& address : target.addresses) meta.addresses.push_back(target.node + "=" + address);
  }
  meta.handshakes = network_.handshakes(offset);
  meta.clock = clock_steps_.sentences(meta.host.empty() ? meta.node : meta.host, offset);
  const auto sum = stats();
  meta.lost = sum.lost;
  meta.suppressed = sum.suppressed;
  meta.suppressed_calls = suppressed_calls();
  return meta;
}

// Returns what went out of the window meanwhile.
Result<std::uint64_t> KernelTracer::read_window(
    const std::function<Result<void>(const trace::Meta&, std::int64_t offset)>& begin,
    const std::function<Result<void>(const trace::PackedEvents&)>& take) {
  std::shared_ptr<Snapshot> window;
  {
    const std::lock_guard lock(mutex_);
    // In this order: what moves from the storms to the ring meanwhile is read then.
    tend_storms(true);
    drain(ring_.produced());
    window = window_->snapshot();
  }
  const std::int64_t offset = wall_offset_ns();
  const trace::Trace now = ongoing();
  trace::Meta head = meta(offset);
  head.pairs_evicted = now.meta.pairs_evicted;
  ROSE_CHECK(begin(head, offset));
  for (;;) {
    ROSE_TRY(const std::optional<trace::PackedEvents> block, window->next());
    if (!block) break;
    ROSE_CHECK(take(*block));
  }
  if (!now.events.empty()) {
    ROSE_TRY(const trace::PackedEvents block, trace::pack_events(now.events, now.strings.all()));
    ROSE_CHECK(take(block));
  }
  return window->missed();
}

Result<trace::Trace> KernelTracer::snapshot() {
  trace::Trace trace;
  std::int64_t shift = 0;
  std::string raw;
  ROSE_TRY(const std::uint64_t missed,
           read_window(
               [&](const trace::Meta& meta, std::int64_t offset) -> Result<void> {
                 trace.meta = meta;
                 shift = offset;
                 return {};
               },
               [&](const trace::PackedEvents& packed) -> Result<void> {
                 trace::BlockHeader header;
                 std::size_t strings = 0;
                 auto fault = trace::open_block(packed.block, header, raw);
                 if (!fault) fault = trace::unpack_events(header, raw, shift, trace, strings);
                 if (fault) return fail(ErrorKind::bug, "a block of the window is not valid: " + *fault);
                 return {};
               }));
  trace.meta.lost += missed;
  trace::sort_by_time(trace);
  return trace;
}

Result<DumpTotals> KernelTracer::write_dump(const trace::DumpWriter::Sink& sink,
                                            const std::function<void(trace::Meta&)>& amend) {
  DumpTotals totals;
  trace::DumpWriter writer(sink);
  ROSE_TRY(const std::uint64_t missed, read_window(
                                           [&](const trace::Meta& meta, std::int64_t offset) {
                                             trace::Meta amended = meta;
                                             if (amend) amend(amended);
                                             totals.lost = amended.lost;
                                             totals.suppressed = amended.suppressed;
                                             return writer.begin(amended, offset);
                                           },
                                           [&](const trace::PackedEvents& packed) {
                                             for (std::size_t i = 0; i < packed.by_type.size(); ++i)
                                               totals.by_type[i] += packed.by_type[i];
                                             return writer.add(packed);
                                           }));
  ROSE_CHECK(writer.end(missed));
  totals.lost += missed;
  totals.events = writer.events();
  return totals;
}

profile::RunCounts KernelTracer::counts() {
  profile::RunCounts out;
  const std::int64_t now = monotonic_ns();
  out.seconds = static_cast<double>(now - begin_ns_) / 1e9;
  const auto nodes = targets_.size();
  if (options_.count_syscalls) {
    const auto sums = per_cpu_sums(skeleton_->maps.rose_calls, static_cast<std::uint32_t>(nodes * ROSE_SYSCALLS));
    for (std::size_t node = 0; node < nodes; ++node) {
      auto& calls = out.syscalls[targets_[node].node];
      for (int nr = 0; nr < ROSE_SYSCALLS; ++nr) {
        const auto count = sums[node * ROSE_SYSCALLS + static_cast<std::size_t>(nr)];
        if (count != 0) calls[kernel::syscall_name(nr)] = count;
      }
    }
  }
  if (functions_.counting()) out.functions = functions_.rates();
  return out;
}

TracerStats KernelTracer::stats() {
  const auto sum = kernel_stats();
  const std::lock_guard lock(mutex_);
  TracerStats out;
  out.recorded = recorded_;
  out.lost = sum.lost + sum.foreign + unreadable_ + kernel::missed_runs(skeleton_->obj);
  out.suppressed = sum.suppressed;
  out.stored = window_->size();
  out.memory = kernel_bytes_ + storms_.bytes() + window_->bytes();
  return out;
}

kernel::Capabilities KernelTracer::still_needed() {
  kernel::Capabilities needed;
  // A cgroup that is made again has its sockets watched anew.
  if (!places_.empty() && options_.interfaces.empty()) needed.add({CAP_NET_ADMIN});
  // Functions that were hot are watched again after a while.
  if (functions_.size() != 0) needed.add({CAP_PERFMON, CAP_DAC_READ_SEARCH});
  // Of BPF's commands, Linux 5.19 and later ask for privilege to load and to make maps only; before, for all.
  // Tried in a thread that ends.
  bool readable = false;
  auto trial = start_thread([&] {
    std::vector<rose_stats> values(static_cast<std::size_t>(cpus_));
    const std::uint32_t key = 0;
    kernel::weaken_thread();
    readable = bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.rose_stats), &key, values.data()) == 0;
  });
  if (trial) trial->join();
  if (!readable) needed.add({CAP_BPF});
  return needed;
}

}  // namespace

Result<DumpTotals> Tracer::write_dump(const std::filesystem::path& path, const std::function<void(trace::Meta&)>& amend) {
  ROSE_TRY(AtomicFile file, AtomicFile::create(path));
  ROSE_TRY(const DumpTotals totals, write_dump([&file](std::string_view bytes) { return file.write(bytes); }, amend));
  ROSE_CHECK(file.commit());
  return totals;
}

Result<std::unique_ptr<Tracer>> Tracer::start(const TracerOptions& options, const std::vector<Target>& targets) {
  auto tracer = std::make_unique<KernelTracer>(options, targets);
  ROSE_CHECK(tracer->begin());
  return tracer;
}

}  // namespace rose::observe
