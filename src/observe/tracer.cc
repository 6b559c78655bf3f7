#include "observe/tracer.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <tuple>

#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"
#include "kernel/kernel_types.h"
#include "kernel/lru.h"
#include "kernel/old_kernel.h"
#include "kernel/privilege.h"
#include "kernel/probe.h"
#include "observe/call_signatures.h"
#include "observe/kernel_tracer.h"
#include "skel/tracer.old.skel.h"

namespace rose::observe {
namespace {

// The functions through which agents report entries of functions (of Java, Python and JavaScript), and the agent of a
// JVM reports values (jvm/agent/stubs.h).
constexpr const char *kMethodStub = "rose_jvm_enter", *kValueStub = "rose_jvm_value";
constexpr std::uint64_t kLeastMemory = std::uint64_t{2} << 20;

// The arguments of some tracepoints differ between kernel versions.
struct TracepointForms {
  // mark_victim: (data, thread id) before Linux 6.9 (commit 72ba14deb40a), (data, task, user id) since.
  bool victim_task = false;
};
TracepointForms tracepoint_forms() {
  static const TracepointForms answer = [] {
    TracepointForms forms;
    const std::shared_ptr<const btf> types = kernel::kernel_types();
    const btf* kernel = types.get();
    if (kernel == nullptr) return forms;
    const auto arguments = [&](const char* name) -> const btf_type* {
      const auto id = btf__find_by_name_kind(kernel, name, BTF_KIND_TYPEDEF);
      if (id <= 0) return nullptr;
      const btf_type* type = btf__type_by_id(kernel, btf__type_by_id(kernel, static_cast<std::uint32_t>(id))->type);
      if (type != nullptr && btf_is_ptr(type)) type = btf__type_by_id(kernel, type->type);
      return type != nullptr && btf_is_func_proto(type) ? type : nullptr;
    };
    if (const auto* form = arguments("btf_trace_mark_victim"); form != nullptr && btf_vlen(form) >= 2) {
      const auto* type = btf__type_by_id(kernel, btf_params(form)[1].type);
      forms.victim_task = type != nullptr && btf_is_ptr(type);
    }
    return forms;
  }();
  return answer;
}

}  // namespace

Result<void> KernelTracer::check() {
  static const kernel::Capability known = kernel::probe("event_clock");
  if (!known.ok && !known.untried)
    return fail(ErrorKind::environment, fmt::format("the times of events would be wrong: {}", known.detail),
                known.remedy);
  if (targets_.empty()) return fail(ErrorKind::usage, "there is nothing to trace", "name at least one target");
  if (targets_.size() > ROSE_MOST_NODES) {
    return fail(ErrorKind::input, fmt::format("{} nodes are more than the {} that a tracer supports", targets_.size(),
                                              int{ROSE_MOST_NODES}));
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
      return fail(ErrorKind::usage,
                  fmt::format("process {} belongs to two nodes, '{}' and '{}'", pid, owner->second, target.node));
    }
  }
  if (options_.memory < kLeastMemory) {
    return fail(ErrorKind::usage, fmt::format("{} bytes of memory are not enough for tracing", options_.memory),
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
        log::warning("network delays of node '{}' are not traced: {}", targets_[node].node, cgroup.error().message);
        continue;
      }
      surrounding_.push_back({std::move(*cgroup), node});
    }
  }
  return {};
}

Result<void> KernelTracer::load() {
  kernel::route_libbpf_log();
  skeleton_ = Programs(kernel::open_skeleton(rose_tracer__create_skeleton, rose_tracer_old__elf_bytes));
  if (!skeleton_) return kernel::bpf_failure("cannot open the tracer's programs", errno);
  ROSE_CHECK(set_constants());
  ROSE_CHECK(share_memory());
  size_maps();
  choose_programs();
  ROSE_CHECK(load_programs(skeleton_, options_.programs));
  missed_before_ = kernel::missed_runs(skeleton_->obj);
  network_.use(network_parts());
  ROSE_CHECK(fill_maps());
  return open_window();
}

Result<void> KernelTracer::set_constants() {
  auto& fixed = *skeleton_->rodata;
  const auto tables = call_signatures(options_.noise);
  std::copy(tables.noise.begin(), tables.noise.end(), std::begin(fixed.rose_noise));
  std::copy(tables.signatures.begin(), tables.signatures.end(), std::begin(fixed.rose_signatures));
  std::copy(tables.changing.begin(), tables.changing.end(), std::begin(fixed.rose_changing));
  std::copy(tables.classes.begin(), tables.classes.end(), std::begin(fixed.rose_classes));
  const auto levels = places_.levels();
  if (levels.size() > ROSE_MOST_LEVELS) {
    return fail(ErrorKind::input, fmt::format("target cgroups of {} different depths are more than the {} supported",
                                              levels.size(), int{ROSE_MOST_LEVELS}));
  }
  std::copy(levels.begin(), levels.end(), std::begin(fixed.rose_levels));
  fixed.rose_level_count = static_cast<std::uint32_t>(levels.size());
  fixed.rose_node_count = static_cast<std::uint32_t>(targets_.size());
  fixed.rose_pause_ns = static_cast<std::uint64_t>(options_.pause_ns);
  const auto forms = tracepoint_forms();
  fixed.rose_uring_form = kernel::uring_form();
  fixed.rose_victim_task = forms.victim_task ? 1 : 0;
  return {};
}

NetworkWatch::Kernel KernelTracer::network_parts() const {
  const auto& maps = skeleton_->maps;
  const auto& progs = skeleton_->progs;
  return {progs.rose_ingress,     progs.rose_tc,        progs.rose_xdp,         progs.rose_closed,
          progs.rose_resent,      progs.rose_socket,    progs.rose_socket_scan, maps.rose_pairs,
          maps.rose_fresh,        maps.rose_conns,      maps.rose_over,         maps.rose_addresses,
          maps.rose_attached,     maps.rose_handshakes, maps.rose_found,        &skeleton_->rodata->rose_network,
          progs.rose_connections, maps.rose_closing};
}

// Divides the memory: at most one eighth for the ring, about one fifth for network pairs, and most of the rest for the
// window.
Result<void> KernelTracer::share_memory() {
  auto& fixed = *skeleton_->rodata;
  // A per-CPU map has one value per possible CPU. With too small a buffer, the kernel would write beyond it.
  cpus_ = libbpf_num_possible_cpus();
  if (cpus_ < 1)
    return kernel::bpf_failure("cannot determine the number of processors (/sys/devices/system/cpu/possible)", -cpus_);
  ring_bytes_ = std::bit_floor(std::clamp<std::uint64_t>(options_.memory / 8, 256 << 10, 8 << 20));
  fixed.rose_wakeup_bytes = ring_bytes_ / 8;
  fixed.rose_ring_limit = ring_bytes_ - ring_bytes_ / 8;
  const auto storms = static_cast<std::uint32_t>(std::bit_floor(std::clamp<std::uint64_t>(
      options_.memory / 64 / sizeof(rose_storm) / static_cast<std::uint64_t>(cpus_), 64, 1024)));
  fixed.rose_storm_slots = storms;
  storm_places_ = std::size_t{storms} * static_cast<std::size_t>(cpus_);
  network_.prepare(network_parts(), options_, targets_, places_, surrounding_);
  kernel_bytes_ = network_.kernel_bytes() + ring_bytes_ + 1024 * (64 + 8 * static_cast<std::uint64_t>(cpus_)) +
                  static_cast<std::uint64_t>(cpus_) * ROSE_SCRATCHES * (ROSE_RECORD_BYTES + 8) +
                  storm_places_ * sizeof(rose_storm);
  kernel_bytes_ += std::uint64_t{kernel::lru_entries(1024)} * 6 * 128 + std::uint64_t{kernel::lru_entries(512)} * 80;
  return {};
}

void KernelTracer::size_maps() {
  auto& maps = skeleton_->maps;
  const auto nodes = static_cast<std::uint32_t>(targets_.size());
  const auto at_least_one = [](std::size_t entries) {
    return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(entries));
  };
  bpf_map__set_max_entries(maps.rose_ring, static_cast<std::uint32_t>(ring_bytes_));
  bpf_map__set_max_entries(maps.rose_storms, static_cast<std::uint32_t>(storm_places_));
  bpf_map__set_max_entries(maps.rose_nodes, nodes);
  bpf_map__set_max_entries(maps.rose_stats, nodes);
  bpf_map__set_max_entries(maps.rose_calls, options_.count_syscalls ? nodes * ROSE_SYSCALLS : 1);
  bpf_map__set_max_entries(maps.rose_entries, at_least_one(functions_.counters()));
  bpf_map__set_max_entries(maps.rose_fetches, at_least_one(values_.fetches()));
  bpf_map__set_max_entries(maps.rose_comings, at_least_one(values_.counters()));
  bpf_map__set_max_entries(maps.rose_gates, nodes);
  bpf_map__set_max_entries(maps.rose_node_addrs, options_.messages ? 1024 : 1);
  // Maps for short-lived entries (handshakes, processes that start and end), and for the ports of services.
  for (bpf_map* map : {maps.rose_began, maps.rose_ended, maps.rose_syns, maps.rose_services, maps.rose_signalled})
    bpf_map__set_max_entries(map, kernel::lru_entries(1024));
  bpf_map__set_max_entries(maps.rose_closing, kernel::lru_entries(1024));
  bpf_map__set_max_entries(maps.rose_doomed, kernel::lru_entries(512));
}

// Programs that are not needed are not loaded.
void KernelTracer::choose_programs() {
  auto& progs = skeleton_->progs;
  const auto uprobe = [](bpf_program* program, bool wanted) {
    bpf_program__set_autoload(program, wanted);
    if (wanted) kernel::prepare_uprobe(program);
  };
  uprobe(progs.rose_function, functions_.size() != 0 && !functions_.counting());
  uprobe(progs.rose_function_count, functions_.size() != 0 && functions_.counting());
  uprobe(progs.rose_method, !options_.method_agents.empty());
  uprobe(progs.rose_value, !values_.empty());
  uprobe(progs.rose_java_value, !options_.value_agents.empty());
  bpf_program__set_autoload(progs.rose_sys_count, options_.count_syscalls);
  bpf_program__set_autoload(progs.rose_transfers, options_.messages);
  bpf_program__set_autoload(progs.rose_cgroup_mkdir, !places_.empty());
  bpf_program__set_autoload(progs.rose_cgroup_rmdir, !places_.empty() || !surrounding_.empty());
}

Result<void> KernelTracer::fill_maps() {
  auto& maps = skeleton_->maps;
  for (const auto& [cgroup, node] : surrounding_) {
    if (cgroup.level == 0) continue;  // the root cgroup cannot be frozen
    const std::uint64_t id = cgroup.id;
    const std::uint32_t value = node;
    bpf_map_update_elem(bpf_map__fd(maps.rose_freezable), &id, &value, BPF_NOEXIST);
  }
  if (options_.messages) ROSE_CHECK(MessageWatch::fill(bpf_map__fd(maps.rose_node_addrs), targets_));
  return {};
}

// Creates the ring buffer and the window.
Result<void> KernelTracer::open_window() {
  auto& maps = skeleton_->maps;
  nodes_.resize(targets_.size());
  ROSE_CHECK(ring_.open(bpf_map__fd(maps.rose_ring), ring_bytes_));
  const std::uint64_t texts = options_.memory / 64;  // memory for the texts of storms
  ROSE_CHECK(storms_.open(bpf_map__fd(maps.rose_storms), storm_places_, texts));
  const std::uint64_t used = kernel_bytes_ + texts;
  const std::uint64_t left = options_.memory > used ? options_.memory - used : 0;
  std::vector<std::string> names;
  for (const auto& target : targets_) names.push_back(target.node);
  window_ =
      std::make_unique<Window>(options_.window, std::max(left, options_.memory / 4), std::move(names),
                               [this](std::uint32_t function) { return std::string_view(functions_.name(function)); });
  return {};
}

Result<void> KernelTracer::attach() {
  auto& progs = skeleton_->progs;
  if (options_.reads) skeleton_->bss->rose_reads_since = wall_ns() / 1'000'000'000;
  struct Tracepoint {
    bpf_program* program;
    bool optional;
  };
  // Attach the programs for cgroups and processes first, because the programs for calls need to know which processes
  // belong to nodes.
  const Tracepoint tracepoints[] = {
      {progs.rose_cgroup_mkdir, false}, {progs.rose_cgroup_rmdir, false}, {progs.rose_fork, false},
      {progs.rose_exit, false},         {progs.rose_exec, false},         {progs.rose_signal, false},
      {progs.rose_continued, false},    {progs.rose_frozen, true},        {progs.rose_emptied, true},
      {progs.rose_victim, true},        {progs.rose_waits, true},         {progs.rose_closed, true},
      {progs.rose_resent, true},        {progs.rose_uring, true},         {progs.rose_sys_exit, false},
      {progs.rose_sys_count, false},    {progs.rose_transfers, false}};
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
      ROSE_CHECK(places_.fill(bpf_map__fd(maps.rose_cgroups), bpf_map__fd(maps.rose_freezable),
                              bpf_map__fd(maps.rose_places)));
    }
    if (program == progs.rose_fork) ROSE_CHECK(follow_processes());
  }
  ROSE_CHECK(network_.attach(&skeleton_->bss->rose_network_counts));
  for (const auto& agent : options_.method_agents) {
    ROSE_TRY(const auto stub, symbols::find_functions(agent, {kMethodStub}, {}));
    ROSE_TRY(auto link,
             kernel::attach_functions(progs.rose_method, agent, {{.offset = stub.front().offset, .cookie = 0}}));
    method_links_.push_back(std::move(link));
  }
  for (const auto& agent : options_.value_agents) {
    ROSE_TRY(const auto stub, symbols::find_functions(agent, {kValueStub}, {}));
    ROSE_TRY(auto link,
             kernel::attach_functions(progs.rose_java_value, agent, {{.offset = stub.front().offset, .cookie = 0}}));
    method_links_.push_back(std::move(link));
  }
  {
    const std::lock_guard lock(mutex_);
    ROSE_CHECK(values_.attach(progs.rose_value, bpf_map__fd(skeleton_->maps.rose_fetches),
                              bpf_map__fd(skeleton_->maps.rose_comings)));
  }
  return functions_.attach(functions_.counting() ? progs.rose_function_count : progs.rose_function,
                           bpf_map__fd(skeleton_->maps.rose_entries),
                           [this](std::uint32_t function, std::uint32_t node) { note_detached(function, node); });
}

Result<void> KernelTracer::follow_processes() {
  const int map = bpf_map__fd(skeleton_->maps.rose_procs);
  for (std::uint32_t node = 0; node < targets_.size(); ++node) {
    const auto& roots = targets_[node].pids;
    for (const pid_t pid : roots) {
      const auto key = static_cast<std::uint32_t>(pid);
      const std::uint32_t value = node | ROSE_PROC_MAIN;
      bpf_map_update_elem(map, &key, &value, BPF_ANY);
      if (!kernel::process_exists(pid)) bpf_map_delete_elem(map, &key);  // it ended before it was traced
    }
  }
  // From now on, the programs add the children of processes that are in the map. A process that was not in the map yet
  // may have forked meanwhile, so repeat the search until it finds no new process.
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
  ROSE_CHECK(values_.prepare(options_, targets_.size()));
  messages_.prepare(targets_.size());
  ROSE_CHECK(find_targets());
  ROSE_CHECK(load());
  wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  ends_fd_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_ || !epoll_ || !ends_fd_)
    return fail_errno(ErrorKind::environment, "cannot create an epoll descriptor", errno);
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
  values_.stop();
  method_links_.clear();
  network_.detach();
  links_.clear();
}

Result<DumpTotals> Tracer::write_dump(const std::filesystem::path& path, const std::function<void(trace::Meta&)>& amend,
                                      const DumpRoom& room) {
  ROSE_TRY(AtomicFile file, AtomicFile::create(path));
  ROSE_TRY(const DumpTotals totals,
           write_dump([&file](std::string_view bytes) { return file.write(bytes); }, amend, room));
  ROSE_CHECK(file.commit());
  return totals;
}

Result<std::unique_ptr<Tracer>> Tracer::start(const TracerOptions& options, const std::vector<Target>& targets) {
  const kernel::KeepKernelTypes types;  // kept only until tracing begins, because tracing may last for months
  auto tracer = std::make_unique<KernelTracer>(options, targets);
  ROSE_CHECK(tracer->begin());
  return tracer;
}

}  // namespace rose::observe
