#include "inject/programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <map>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "deploy/loopback.h"
#include "deploy/network.h"
#include "inject/override.h"
#include "inject/packets_under_way.h"
#include "inject/sockets.h"
#include "jvm/agent_file.h"
#include "kernel/attach.h"
#include "kernel/cgroup2.h"
#include "kernel/net_attach.h"
#include "kernel/old_kernel.h"
#include "kernel/probe.h"
#include "skel/inject.old.skel.h"
#include "skel/inject.skel.h"
#include "skel/network.old.skel.h"
#include "skel/network.skel.h"
#include "symbols/symbols.h"

namespace rose::inject {
namespace {

// Maps an mmapable array map into memory.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (memory_ != nullptr) ::munmap(memory_, size_);
  }
  Result<void> map(const bpf_map* map) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    // The kernel pads each value to 8 bytes.
    const std::size_t value = (bpf_map__value_size(map) + 7) / 8 * 8;
    size_ = (value * bpf_map__max_entries(map) + page - 1) / page * page;
    void* memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
    if (memory == MAP_FAILED) {
      return kernel::bpf_failure(fmt::format("cannot map {}", bpf_map__name(map)), errno);
    }
    memory_ = memory;
    return {};
  }
  template <typename T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

// The contents of notices that must be kept. In addition, each notice is a request to check the state again.
struct Notices {
  std::mutex mutex;
  std::vector<std::pair<std::size_t, Programs::Changed>> changed;
};

int on_notice(void* context, void* data, std::size_t size) {
  rose_notice notice{};
  if (size < sizeof notice) return 0;
  std::memcpy(&notice, data, sizeof notice);
  if (notice.what == ROSE_PAGE_IN) page_in(static_cast<pid_t>(notice.chain), notice.ns);
  if (notice.what == ROSE_CHANGED) {
    auto& notices = *static_cast<Notices*>(context);
    const std::lock_guard lock(notices.mutex);
    if (notices.changed.size() < kMostChangedCalls)
      notices.changed.push_back(
          {notice.chain,
           {static_cast<std::int64_t>(notice.ns), static_cast<pid_t>(notice.tid), static_cast<int>(notice.syscall)}});
  }
  return 0;
}

std::uint32_t depth_below(const std::filesystem::path& root, const std::filesystem::path& folder) {
  std::uint32_t depth = 0;
  for (const auto& part : folder.lexically_relative(root)) depth += part != "." ? 1 : 0;
  return depth;
}

class LoadedPrograms final : public Programs {
 public:
  explicit LoadedPrograms(const Plan& plan) : plan_(plan) {}

  ~LoadedPrograms() override {
    detach();
    ring_buffer__free(ring_);
    rose_network__destroy(network_);
    rose_inject__destroy(inject_);
  }

  Result<void> load() {
    kernel::route_libbpf_log();
    ROSE_TRY(cgroup_root_, kernel::cgroup2_mount());
    inject_ = kernel::open_skeleton(rose_inject__create_skeleton, rose_inject_old__elf_bytes);
    if (inject_ == nullptr) return kernel::bpf_failure("cannot open the injection programs", errno);
    std::size_t listed = 0;
    for (const auto& site : plan_.sites) listed += site.conditions.size();
    bpf_map__set_max_entries(inject_->maps.rose_sites, std::max<std::uint32_t>(1, narrow(plan_.sites.size())));
    bpf_map__set_max_entries(inject_->maps.rose_site_conds, std::max<std::uint32_t>(1, narrow(listed)));
    // Programs that are not needed are not loaded, so that, for example, a kernel without uprobes can still load the
    // others.
    bpf_program__set_autoload(inject_->progs.rose_probe, !plan_.sites.empty());
    bpf_program__set_autoload(inject_->progs.rose_java, plan_.has_methods());
    bpf_map__set_max_entries(inject_->maps.rose_throws, std::max<std::uint32_t>(1, narrow(plan_.throws.size())));
    bpf_program__set_autoload(inject_->progs.rose_sys_exit, plan_.needs_returns());
    bpf_program__set_autoload(inject_->progs.rose_registers, plan_.stacks > 0);
    for (bpf_program* program :
         {inject_->progs.rose_limit_met, inject_->progs.rose_ring_met, inject_->progs.rose_signalled})
      bpf_program__set_autoload(program, plan_.watches_limits());
    inject_->rodata->rose_uring_form = static_cast<__u8>(kernel::uring_form());
    bpf_map__set_max_entries(inject_->maps.rose_stacks, std::max<std::uint32_t>(1, plan_.stack_slots()));
    prepare_calls();
    if (!plan_.sites.empty()) kernel::prepare_uprobe(inject_->progs.rose_probe);
    if (plan_.has_methods()) kernel::prepare_uprobe(inject_->progs.rose_java);
    if (const int err = rose_inject__load(inject_); err != 0) {
      return kernel::bpf_failure("cannot load the injection programs", -err);
    }
    ROSE_CHECK(chains_.map(inject_->maps.rose_chains));
    ROSE_CHECK(conditions_.map(inject_->maps.rose_conds));
    ROSE_CHECK(edges_.map(inject_->maps.rose_edges));
    ROSE_CHECK(settings_.map(inject_->maps.rose_settings));
    ROSE_CHECK(nodes_.map(inject_->maps.rose_nodes));
    ROSE_CHECK(sites_.map(inject_->maps.rose_sites));
    ROSE_CHECK(site_conditions_.map(inject_->maps.rose_site_conds));
    ROSE_CHECK(groups_.map(inject_->maps.rose_groups));
    ROSE_CHECK(roles_.map(inject_->maps.rose_roles));
    ROSE_CHECK(stacks_.map(inject_->maps.rose_stacks));
    settings_.as<rose_settings>()->stacks = plan_.stacks;
    settings_.as<rose_settings>()->locks = kernel::is_old() ? 1 : 0;
    settings_.as<rose_settings>()->stack_slots = plan_.stack_slots();
    ring_ = ring_buffer__new(bpf_map__fd(inject_->maps.rose_notices), on_notice, &notices_, nullptr);
    if (ring_ == nullptr) return kernel::bpf_failure("cannot open the ring buffer", errno);
    std::uint32_t first = 0;
    for (std::size_t i = 0; i < plan_.sites.size(); ++i) {
      const auto& list = plan_.sites[i].conditions;
      sites_.as<rose_site>()[i] = {first, narrow(list.size())};
      for (const auto id : list) site_conditions_.as<rose_word>()[first++].value = id;
    }
    for (std::uint32_t i = 0; i < plan_.throws.size(); ++i) {
      if (bpf_map_update_elem(bpf_map__fd(inject_->maps.rose_throws), &i, &plan_.throws[i], BPF_ANY) != 0)
        return kernel::bpf_failure("cannot pass the schedule's exceptions to the kernel", errno);
    }
    ROSE_CHECK(fill_calls());
    if (plan_.rules.empty()) return {};

    network_ = kernel::open_skeleton(rose_network__create_skeleton, rose_network_old__elf_bytes);
    if (network_ == nullptr) return kernel::bpf_failure("cannot open the partition programs", errno);
    if (bpf_map__reuse_fd(network_->maps.rose_chains, bpf_map__fd(inject_->maps.rose_chains)) != 0 ||
        bpf_map__reuse_fd(network_->maps.rose_settings, bpf_map__fd(inject_->maps.rose_settings)) != 0 ||
        bpf_map__reuse_fd(network_->maps.rose_cgroups, bpf_map__fd(inject_->maps.rose_cgroups)) != 0) {
      return kernel::bpf_failure("cannot share maps between programs", errno);
    }
    bpf_map__set_max_entries(network_->maps.rose_rule_ports,
                             std::max<std::uint32_t>(1, narrow(plan_.rule_ports.size())));
    bpf_map__set_max_entries(network_->maps.rose_nets, std::max<std::uint32_t>(1, narrow(plan_.rule_nets.size())));
    const auto& programs = network_->progs;
    const auto only_if = [](bool needed, std::initializer_list<bpf_program*> those) {
      for (bpf_program* program : those) bpf_program__set_autoload(program, needed);
    };
    only_if(!plan_.on_host, {programs.rose_port, programs.rose_cut});
    only_if(plan_.on_host,
            {programs.rose_egress, programs.rose_ingress, programs.rose_left_egress, programs.rose_left_ingress});
    only_if(plan_.on_host && plan_.rejects(), {programs.rose_loopback});
    // Older kernels cannot load these programs, so they are loaded only if they are needed.
    only_if(plan_.on_host && plan_.has_links(),
            {programs.rose_bound4, programs.rose_bound6, programs.rose_leaves, programs.rose_arrives});
    only_if(plan_.holds_packets(), {programs.rose_let_go});
    network_->rodata->rose_has_links = plan_.has_links();
    if (const int err = rose_network__load(network_); err != 0) {
      return kernel::bpf_failure("cannot load the partition programs", -err);
    }
    ROSE_CHECK(rules_.map(network_->maps.rose_rules));
    return links_.map(network_->maps.rose_links);
  }

  SharedArrays arrays() override {
    return {.chains = chains_.as<rose_chain>(),
            .conditions = conditions_.as<rose_condition>(),
            .edges = edges_.as<rose_word>(),
            .groups = groups_.as<rose_word>(),
            .settings = settings_.as<rose_settings>(),
            .roles = roles_.as<rose_role>()};
  }

  int notice_fd() const override { return ring_buffer__epoll_fd(ring_); }
  void drain() override { (void)ring_buffer__consume(ring_); }

  Result<void> attach(deploy::Deployment& deployment, const std::filesystem::path& agent) override {
    run_id_ = deployment.id();
    if (!plan_.on_host) client_netns_ = Fd(::fcntl(deployment.client_netns_fd(), F_DUPFD_CLOEXEC, 3));
    if (!plan_.rules.empty()) ROSE_CHECK(attach_network(deployment));
    for (const auto& node : deployment.nodes()) ROSE_CHECK(add_node(node));
    if (plan_.needs_returns()) {
      const int fd = bpf_raw_tracepoint_open("sys_exit", bpf_program__fd(inject_->progs.rose_sys_exit));
      if (fd < 0) return kernel::bpf_failure("cannot attach to the return of syscalls", -fd);
      sys_exit_ = Fd(fd);
    }
    if (plan_.watches_limits()) ROSE_CHECK(watch_limits());
    ROSE_CHECK(entries_.attach(inject_->progs.rose_call, calls_.numbers));
    std::map<std::string, std::vector<kernel::ProbePoint>> points;
    for (std::size_t i = 0; i < plan_.sites.size(); ++i) {
      points[plan_.sites[i].binary.string()].push_back({.offset = plan_.sites[i].offset, .cookie = i});
    }
    for (const auto& [binary, list] : points) {
      ROSE_TRY(auto link, kernel::attach_functions(inject_->progs.rose_probe, binary, list));
      probes_.push_back(std::move(link));
    }
    if (plan_.has_methods()) {
      ROSE_TRY(const auto stub, symbols::find_functions(agent, {jvm::kVisitStub}, {}));
      ROSE_TRY(auto link, kernel::attach_functions(inject_->progs.rose_java, agent,
                                                   {{.offset = stub.front().offset, .cookie = 0}}));
      probes_.push_back(std::move(link));
    }
    return {};
  }

  Result<void> add_node(const deploy::NodeInfo& node) override {
    const std::lock_guard lock(mutex_);
    if (node.cgroup.empty() || node.cgroup_id == 0 || detached_) return {};
    const auto index = narrow(node.index);
    auto& known = nodes_.as<rose_node_state>()[index];
    if (known.cgroup_id == node.cgroup_id) return {};
    if (bpf_map_update_elem(bpf_map__fd(inject_->maps.rose_cgroups), &node.cgroup_id, &index, BPF_ANY) != 0) {
      return kernel::bpf_failure(fmt::format("cannot follow the cgroup of node '{}'", node.name), errno);
    }
    known.cgroup_id = node.cgroup_id;
    const auto level = depth_below(cgroup_root_, node.cgroup);
    auto& levels = settings_.as<rose_settings>()->levels;
    const auto free =
        std::find_if(std::begin(levels), std::end(levels), [level](auto used) { return used == 0 || used == level; });
    if (free == std::end(levels))
      return fail(ErrorKind::environment,
                  fmt::format("the cgroup of node '{}', {}, is {} levels deep, but nodes may be at {} different depths "
                              "at most: what its processes do in cgroups below it is not seen",
                              node.name, node.cgroup.string(), level, std::size(levels)),
                  "place attached nodes at the same depth, such as in one slice");
    *free = level;
    if (plan_.rules.empty() || !plan_.on_host) return {};
    const auto bit = [index](const __u64* set) { return ((set[index / 64] >> (index % 64)) & 1) != 0; };
    const auto involved = std::any_of(plan_.rules.begin(), plan_.rules.end(), [&](const rose_rule& rule) {
      return (rule.flags & ROSE_RULE_OTHERS) != 0 || bit(rule.side) || bit(rule.peers);
    });
    if (!involved) return {};
    ROSE_TRY(auto egress, kernel::attach_cgroup(network_->progs.rose_egress, node.cgroup));
    ROSE_TRY(auto ingress, kernel::attach_cgroup(network_->progs.rose_ingress, node.cgroup));
    cgroup_links_.push_back(std::move(egress));
    cgroup_links_.push_back(std::move(ingress));
    if (!plan_.has_links()) return {};
    for (const auto* program : {network_->progs.rose_bound4, network_->progs.rose_bound6}) {
      ROSE_TRY(auto link, kernel::attach_cgroup(program, node.cgroup));
      cgroup_links_.push_back(std::move(link));
    }
    return {};
  }

  Result<void> add_sockets(const deploy::NodeInfo& node, const std::vector<pid_t>& pids) override {
    const std::lock_guard lock(mutex_);
    if (network_ == nullptr || !plan_.on_host || detached_) return {};
    for (const pid_t pid : pids) {
      for (const auto& endpoint : endpoints_of(pid)) {
        ROSE_CHECK(put(network_->maps.rose_endpoints, endpoint, narrow(node.index)));
      }
    }
    // A socket stays in the cgroup in which it was created. Processes that setup started may have created sockets in
    // the run's cgroup. Containers and units have cgroups of their own.
    const auto run = node.cgroup.parent_path();
    if (left_ || run.filename() != run_id_) return {};
    ROSE_TRY(auto egress, kernel::attach_cgroup(network_->progs.rose_left_egress, run));
    ROSE_TRY(auto ingress, kernel::attach_cgroup(network_->progs.rose_left_ingress, run));
    cgroup_links_.push_back(std::move(egress));
    cgroup_links_.push_back(std::move(ingress));
    left_ = true;
    return {};
  }

  Result<void> wait_for_packets() override {
    if (network_ == nullptr) return {};
    ROSE_CHECK(wait_for_programs());
    // With network = "host", packets are checked where the socket receives them or where they leave the host, and no
    // backlog queue comes after that.
    if (plan_.on_host) return {};
    Result<void> arrived = fail(ErrorKind::environment, "cannot wait for packets in flight");
    deploy::in_netns(client_netns_.get(), [&] { arrived = wait_for_backlogs(); });
    return arrived;
  }

  void set_main(std::size_t node, pid_t pid) override {
    __atomic_store_n(&nodes_.as<rose_node_state>()[node].main_pid, static_cast<std::uint32_t>(pid), __ATOMIC_RELEASE);
  }

  void tag(pid_t tid, int syscall, const std::vector<std::uint32_t>& conditions) override {
    const int map = bpf_map__fd(inject_->maps.rose_pending);
    auto& waiting = settings_.as<rose_settings>()->pending;
    rose_pending pending{};
    pending.syscall = static_cast<__u32>(syscall);
    pending.count = narrow(conditions.size());
    // Write the first element last, because it stores the number of elements.
    for (std::size_t element = (conditions.size() - 1) / ROSE_MAX_PENDING + 1; element-- > 0;) {
      const auto first = element * ROSE_MAX_PENDING;
      const auto count = std::min<std::size_t>(conditions.size() - first, ROSE_MAX_PENDING);
      for (std::size_t i = 0; i < count; ++i) pending.conditions[i] = static_cast<__u16>(conditions[first + i]);
      const std::uint64_t key = ROSE_PENDING_KEY(tid, element);
      if (element == 0) __sync_fetch_and_add(&waiting, 1);
      if (bpf_map_update_elem(map, &key, &pending, BPF_NOEXIST) == 0) continue;
      // If an entry exists, it belonged to a thread that was killed inside its call and whose id was reused.
      if (element == 0) __sync_fetch_and_sub(&waiting, 1);
      if (bpf_map_update_elem(map, &key, &pending, BPF_EXIST) != 0) log::warning("cannot follow thread {}", tid);
    }
  }

  void untag(pid_t tid) override {
    auto& waiting = settings_.as<rose_settings>()->pending;
    if (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) == 0) return;
    const std::uint64_t key = ROSE_PENDING_KEY(tid, 0);
    if (bpf_map_delete_elem(bpf_map__fd(inject_->maps.rose_pending), &key) == 0) __sync_fetch_and_sub(&waiting, 1);
  }

  bool take_restart(pid_t tid, int syscall, std::uint64_t ip) override {
    auto& waiting = settings_.as<rose_settings>()->restarts;
    if (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) == 0) return false;
    const int map = bpf_map__fd(inject_->maps.rose_restarts);
    rose_restart restart{};
    if (bpf_map_lookup_elem(map, &tid, &restart) != 0) return false;
    // A different call is made by a signal handler, before it returns to the interrupted call.
    if (restart.syscall != static_cast<__u32>(syscall) || restart.ip != ip) return false;
    if (bpf_map_delete_elem(map, &tid) == 0) __sync_fetch_and_sub(&waiting, 1);
    return true;
  }

  std::string fired_at(std::size_t chain) const override {
    return overriding() ? describe(firings_.as<rose_firing>()[chain]) : "";
  }

  std::vector<std::pair<std::size_t, Changed>> changed() const override {
    const std::lock_guard lock(notices_.mutex);
    return notices_.changed;
  }

  Stopped stopped(std::size_t chain) const override {
    Stopped sum;
    if (network_ == nullptr) return sum;
    for (std::size_t i = 0; i < plan_.rules.size(); ++i) {
      if (plan_.rules[i].chain != chain) continue;
      sum.packets += __atomic_load_n(&rules_.as<rose_rule>()[i].stopped, __ATOMIC_ACQUIRE);
      sum.rejected += __atomic_load_n(&rules_.as<rose_rule>()[i].rejected, __ATOMIC_ACQUIRE);
    }
    return sum;
  }

  Carried carried(std::size_t chain) const override {
    Carried sum;
    for (std::size_t i = 0; network_ != nullptr && i < plan_.rules.size(); ++i) {
      if (plan_.rules[i].chain != chain) continue;
      sum.link = links_.as<rose_link>()[i];
      if (hold_) sum.held = hold_->counts(i);
    }
    return sum;
  }

  Result<void> watch_disk(dev_t device) override {
    const std::uint32_t key = kernel_device(device);
    const std::uint64_t none = 0;
    if (bpf_map_update_elem(bpf_map__fd(inject_->maps.rose_full_disks), &key, &none, BPF_NOEXIST) == 0 ||
        errno == EEXIST)
      return {};
    return kernel::bpf_failure("cannot watch a disk that is to be full", errno);
  }

  std::uint64_t descriptors_lacked(std::size_t node) const override {
    return __atomic_load_n(&nodes_.as<rose_node_state>()[node].descriptors_lacked, __ATOMIC_ACQUIRE);
  }

  std::uint64_t room_lacked(std::size_t node, const std::vector<dev_t>& disks) const override {
    std::uint64_t all = 0;
    for (const dev_t device : disks) {
      const std::uint32_t key = kernel_device(device);
      std::uint64_t calls = 0;
      (void)bpf_map_lookup_elem(bpf_map__fd(inject_->maps.rose_full_disks), &key, &calls);
      all += calls;
    }
    return all + __atomic_load_n(&nodes_.as<rose_node_state>()[node].room_lacked, __ATOMIC_ACQUIRE);
  }

  void set_limiting(std::size_t node, schedule::FaultKind kind, std::optional<std::size_t> chain) override {
    auto& state = nodes_.as<rose_node_state>()[node];
    __u32* of_kind = kind == schedule::FaultKind::descriptors ? &state.descriptors_chain
                     : kind == schedule::FaultKind::disk_full ? &state.room_chain
                     : kind == schedule::FaultKind::memory    ? &state.memory_chain
                                                              : nullptr;
    if (of_kind != nullptr) __atomic_store_n(of_kind, chain ? narrow(*chain + 1) : 0, __ATOMIC_RELEASE);
  }

  std::vector<const rose_stack*> stacks(std::size_t chain) const override {
    std::vector<const rose_stack*> ready;
    for (std::size_t n = 0; n < plan_.stacks; ++n) {
      const auto at = chain * plan_.stacks + n;
      if (at >= plan_.stack_slots()) break;
      const auto& stack = stacks_.as<rose_stack>()[at];
      if (__atomic_load_n(&stack.ready, __ATOMIC_ACQUIRE) != 0) ready.push_back(&stack);
    }
    return ready;
  }

  Result<StackRegisters> registers(pid_t tid) const override {
    bpf_iter_link_info about{};
    about.task.tid = static_cast<__u32>(tid);
    LIBBPF_OPTS(bpf_link_create_opts, options, .iter_info = &about, .iter_info_len = sizeof about);
    // On old kernels, iterators have no parameters. There, the program searches for the thread `wanted`, which only one
    // caller at a time can set.
    std::unique_lock<std::mutex> one(registers_mutex_, std::defer_lock);
    if (kernel::is_old()) {
      one.lock();
      auto& wanted = settings_.as<rose_settings>()->wanted;
      __atomic_store_n(&wanted, static_cast<std::uint32_t>(tid), __ATOMIC_RELEASE);
    }
    const Fd link(bpf_link_create(bpf_program__fd(inject_->progs.rose_registers), 0, BPF_TRACE_ITER,
                                  kernel::is_old() ? nullptr : &options));
    if (!link) return kernel::bpf_failure("cannot read a thread's registers", errno);
    const Fd iterator(bpf_iter_create(link.get()));
    StackRegisters registers{};
    if (!iterator) return kernel::bpf_failure("cannot read a thread's registers", errno);
    if (::read(iterator.get(), registers.data(), sizeof registers) != static_cast<ssize_t>(sizeof registers))
      return fail(ErrorKind::environment, "the thread ended before its registers could be read");
    return registers;
  }

  void detach() override {
    const std::lock_guard lock(mutex_);
    if (std::exchange(detached_, true)) return;
    entries_.detach();
    probes_.clear();
    const auto missed = (inject_ != nullptr ? kernel::missed_runs(inject_->obj) : 0) +
                        (network_ != nullptr ? kernel::missed_runs(network_->obj) : 0);
    if (missed > 0)
      log::warning("the kernel skipped {} runs of rose's programs: the counts of this run may be too low", missed);
    if (inject_ != nullptr && settings_.as<rose_settings>() != nullptr) {
      if (const auto unread = settings_.as<rose_settings>()->unread; unread > 0) {
        log::warning("{} calls were not matched: their arguments could not be read at their entry", unread);
      }
    }
    sys_exit_.reset();
    limit_links_.clear();
    cgroup_links_.clear();
    loopback_.reset();
    if (!ports_.empty()) {
      deploy::in_netns(client_netns_.get(), [this] { ports_.clear(); });
    }
    host_links_.clear();
    // No further packets are delayed. stop() sends those that are still held. They pass through the classifier in
    // resend_, which knows their destination, so it is detached afterwards.
    if (hold_) hold_->stop();
    resend_.detach();
    open_loopback_.reset();
  }

 private:
  // Returns the number of a device in the kernel's internal form, which differs from that of stat().
  static std::uint32_t kernel_device(dev_t device) { return major(device) << 20 | minor(device); }

  // Only the first tracepoint must exist. The others detect what is less common or optional: writes to full disks
  // through io_uring and mapped memory, and the stack of a thread that the kernel kills for lack of memory.
  Result<void> watch_limits() {
    const std::pair<const char*, const bpf_program*> points[] = {{"sys_exit", inject_->progs.rose_limit_met},
                                                                 {"signal_generate", inject_->progs.rose_signalled},
                                                                 {"io_uring_complete", inject_->progs.rose_ring_met}};
    for (const auto& [point, program] : points) {
      const int fd = bpf_raw_tracepoint_open(point, bpf_program__fd(program));
      if (fd < 0 && program == inject_->progs.rose_limit_met)
        return kernel::bpf_failure("cannot attach to the return of syscalls", -fd);
      if (fd < 0) log::debug("limits are not watched at {}: {}", point, std::strerror(-fd));
      else limit_links_.emplace_back(fd);
    }
    return {};
  }

  [[nodiscard]] bool overriding() const { return plan_.backend.backend == CallBackend::override_return; }

  // Call it before loading. Prepares the override backend's program and the sizes of its maps, or disables the program.
  void prepare_calls() {
    auto& maps = inject_->maps;
    bpf_program__set_autoload(inject_->progs.rose_call, overriding());
    if (!overriding()) {
      for (auto* map : {maps.rose_globs, maps.rose_calls, maps.rose_call_lists, maps.rose_call_items, maps.rose_firings,
                        maps.rose_call_scratch}) {
        bpf_map__set_autocreate(map, false);
      }
      return;
    }
    calls_ = compile_calls(plan_);
    const auto size = [](std::size_t n) { return std::max<std::uint32_t>(1, narrow(n)); };
    bpf_map__set_max_entries(maps.rose_globs, size(calls_.globs.size()));
    bpf_map__set_max_entries(maps.rose_calls, size(calls_.calls.size()));
    bpf_map__set_max_entries(maps.rose_call_lists, size(calls_.lists.size()));
    bpf_map__set_max_entries(maps.rose_call_items, size(calls_.items.size()));
    bpf_map__set_max_entries(maps.rose_firings, size(plan_.chains.size()));
    for (int number = 0; number < static_cast<int>(ROSE_SYSCALLS); ++number) {
      inject_->rodata->rose_signatures[number] = arguments_of(number);
    }
  }

  Result<void> fill_calls() {
    if (!overriding()) return {};
    const auto put = [](const bpf_map* map, const auto& key, const auto& value) {
      return bpf_map_update_elem(bpf_map__fd(map), &key, &value, BPF_ANY) == 0;
    };
    bool ok = true;
    for (std::uint32_t i = 0; i < calls_.globs.size(); ++i)
      ok = ok && put(inject_->maps.rose_globs, i, calls_.globs[i]);
    for (std::uint32_t i = 0; i < calls_.calls.size(); ++i)
      ok = ok && put(inject_->maps.rose_calls, i, calls_.calls[i]);
    for (std::uint32_t i = 0; i < calls_.items.size(); ++i) {
      ok = ok && put(inject_->maps.rose_call_items, i, rose_word{calls_.items[i], 0});
    }
    for (const auto& [key, list] : calls_.lists) ok = ok && put(inject_->maps.rose_call_lists, key, list);
    if (!ok) return kernel::bpf_failure("cannot pass the schedule's calls to the kernel", errno);
    settings_.as<rose_settings>()->own_pid = static_cast<__u32>(::getpid());
    return firings_.map(inject_->maps.rose_firings);
  }

  static std::uint32_t narrow(std::size_t n) { return static_cast<std::uint32_t>(n); }

  template <typename Key>
  Result<void> put(bpf_map* map, const Key& key, std::uint32_t value) {
    if (bpf_map_update_elem(bpf_map__fd(map), &key, &value, BPF_ANY) == 0) return {};
    return kernel::bpf_failure("cannot set up a partition", errno);
  }

  Result<void> attach_network(deploy::Deployment& deployment) {
    const auto& nodes = deployment.nodes();
    std::copy(plan_.rules.begin(), plan_.rules.end(), rules_.as<rose_rule>());
    for (const auto& port : plan_.rule_ports) ROSE_CHECK(put(network_->maps.rose_rule_ports, port, 1));
    for (const auto& net : plan_.rule_nets) ROSE_CHECK(put(network_->maps.rose_nets, net, 1));
    std::copy(plan_.links.begin(), plan_.links.end(), links_.as<rose_link>());
    settings_.as<rose_settings>()->rules = narrow(plan_.rules.size());
    if (plan_.on_host) {
      if (plan_.has_links()) ROSE_CHECK(attach_host_links());
      if (!plan_.rejects()) return {};
      auto link = kernel::attach_tcx(network_->progs.rose_loopback, 1, kernel::Way::in);
      if (!link && !kernel::probe("tcx").ok)
        return fail(ErrorKind::environment,
                    "in a \"host\" deployment this kernel cannot answer packets: it has no TCX links",
                    "use Linux 6.6 or newer, omit action = \"reject\", or set [deployment] network = \"netns\"");
      ROSE_TRY(loopback_, std::move(link));
      return {};
    }
    ROSE_CHECK(put(network_->maps.rose_gate, std::uint32_t{0},
                   static_cast<std::uint32_t>(bpf_program__fd(network_->progs.rose_cut))));
    for (const auto& node : nodes) {
      if (node.network != node.index) continue;
      ROSE_TRY(const rose_mac mac, mac_of(deployment, node));
      ROSE_CHECK(put(network_->maps.rose_macs, mac, narrow(node.index)));
    }
    Result<void> result;
    deploy::in_netns(client_netns_.get(), [&] {
      if (plan_.has_links()) result = prepare_links(nodes);
      for (const std::size_t node : plan_.cut) {
        if (!result) return;
        result = attach_port(nodes[node]);
      }
    });
    if (result && plan_.has_links()) {
      for (const auto& node : nodes)
        deploy::in_netns(deployment.node_netns_fd(node.index), [] { make_plain(deploy::kNodeLink); });
    }
    return result;
  }

  // Call it in the client namespace, before the nodes' ports at the bridge get their classifiers. Disables the offloads
  // of the bridge and of these ports (make_plain()). If the plan delays packets, creates the interface for them.
  Result<void> prepare_links(const std::vector<deploy::NodeInfo>& nodes) {
    make_plain(deploy::kBridge);
    for (const auto& node : nodes) make_plain(node.bridge_port);
    return plan_.holds_packets() ? hold_packets(static_cast<int>(::if_nametoindex(deploy::kBridge))) : Result<void>();
  }

  Result<void> hold_packets(int bridge) {
    ROSE_TRY(hold_, PacketHold::create(plan_.holds, bridge));
    ROSE_TRY(resend_, kernel::PortLink::attach(network_->progs.rose_let_go, hold_->interface(), kernel::Way::in));
    settings_.as<rose_settings>()->hold = static_cast<__u32>(hold_->interface());
    return {};
  }

  // In a "host" deployment, packets between nodes use the loopback interface, and packets to other hosts the remaining
  // interfaces.
  Result<void> attach_host_links() {
    if (!kernel::probe("tcx").ok)
      return fail(ErrorKind::environment,
                  "in a \"host\" deployment this kernel cannot have bad links: it has no TCX links",
                  "use Linux 6.6 or newer, or set [deployment] network = \"netns\"");
    if (plan_.holds_packets()) {
      ROSE_TRY(auto loopback, deploy::OpenLoopback::open());
      open_loopback_.emplace(std::move(loopback));
      ROSE_CHECK(hold_packets(0));
    }
    std::vector<int> interfaces{1};  // loopback has this interface number in every namespace
    const bool others = std::any_of(plan_.rules.begin(), plan_.rules.end(), [](const rose_rule& rule) {
      return (rule.flags & ROSE_RULE_LINK) != 0 && (rule.flags & ROSE_RULE_NETS) != 0;
    });
    if (others) {
      ROSE_TRY(interfaces, ethernet_interfaces());
    }
    std::uint32_t way = 0;
    for (const int interface : interfaces) {
      const bool loopback = interface == 1;
      for (const bool received : {true, false}) {
        // Packets that leave through the loopback interface are received there again, so one direction suffices.
        if (loopback && !received) continue;
        if (++way >= ROSE_MAX_WAYS)
          return fail(ErrorKind::environment, "this machine has more network interfaces than bad links support",
                      fmt::format("at most {}, or name only addresses in 127.0.0.0/8 as peers", ROSE_MAX_WAYS / 2));
        const rose_way value{static_cast<__u32>(interface), received ? 1U : 0U};
        if (bpf_map_update_elem(bpf_map__fd(network_->maps.rose_ways), &way, &value, BPF_ANY) != 0)
          return kernel::bpf_failure("cannot set up a bad link", errno);
        const bool arrives = received && !loopback;
        ROSE_TRY(auto link,
                 kernel::PortLink::attach(arrives ? network_->progs.rose_arrives : network_->progs.rose_leaves,
                                          interface, arrives ? kernel::Way::in : kernel::Way::out));
        host_links_.push_back(std::move(link));
      }
    }
    return {};
  }

  // The loopback interface, followed by all interfaces that are up and have Ethernet headers.
  static Result<std::vector<int>> ethernet_interfaces() {
    std::vector<int> found{1};
    const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    struct if_nameindex* list = ::if_nameindex();
    if (!socket || list == nullptr) return fail_errno(ErrorKind::environment, "cannot list network interfaces", errno);
    for (const auto* one = list; one->if_index != 0; ++one) {
      ifreq request{};
      std::strncpy(request.ifr_name, one->if_name, sizeof request.ifr_name - 1);
      if (one->if_index == 1 || std::string_view(one->if_name).starts_with("rose")) continue;
      if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0 || (request.ifr_flags & IFF_UP) == 0) continue;
      if (::ioctl(socket.get(), SIOCGIFHWADDR, &request) != 0 || request.ifr_hwaddr.sa_family != ARPHRD_ETHER) continue;
      found.push_back(static_cast<int>(one->if_index));
    }
    ::if_freenameindex(list);
    return found;
  }

  // The MAC address of the node's network interface. At the bridge ports of other nodes, it identifies the sender.
  static Result<rose_mac> mac_of(const deploy::Deployment& deployment, const deploy::NodeInfo& node) {
    Result<rose_mac> mac =
        fail(ErrorKind::environment, fmt::format("node '{}' has no link '{}'", node.name, deploy::kNodeLink));
    deploy::in_netns(deployment.node_netns_fd(node.index), [&] {
      const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      ifreq request{};
      std::strncpy(request.ifr_name, deploy::kNodeLink, sizeof request.ifr_name - 1);
      if (!socket || ::ioctl(socket.get(), SIOCGIFHWADDR, &request) != 0) return;
      rose_mac found{};
      std::memcpy(found.bytes, request.ifr_hwaddr.sa_data, sizeof found.bytes);
      mac = found;
    });
    return mac;
  }

  // Call it in the client namespace.
  Result<void> attach_port(const deploy::NodeInfo& node) {
    const auto index = ::if_nametoindex(node.bridge_port.c_str());
    if (index == 0) {
      return fail_errno(ErrorKind::environment,
                        fmt::format("no bridge port '{}' of node '{}'", node.bridge_port, node.name), errno);
    }
    ROSE_CHECK(put(network_->maps.rose_ports, static_cast<std::uint32_t>(index), narrow(node.index)));
    ROSE_TRY(auto link, kernel::PortLink::attach(network_->progs.rose_port, static_cast<int>(index)));
    ports_.push_back(std::move(link));
    return {};
  }

  const Plan& plan_;
  rose_inject* inject_ = nullptr;
  rose_network* network_ = nullptr;
  ring_buffer* ring_ = nullptr;
  Mapping chains_, conditions_, edges_, groups_, roles_, settings_, nodes_, sites_, site_conditions_, rules_, firings_,
      stacks_;
  std::filesystem::path cgroup_root_;
  std::string run_id_;  // name of the run's cgroup
  bool left_ = false;   // the programs for sockets that stayed in that cgroup are attached
  Fd client_netns_;
  mutable Notices notices_;
  mutable std::mutex registers_mutex_;
  std::mutex mutex_;  // protects links and cgroups, because nodes may start while detach() runs
  bool detached_ = false;
  CallTables calls_;
  EntryProbes entries_;
  std::vector<kernel::FunctionLink> probes_;
  Fd sys_exit_;
  std::vector<Fd> limit_links_;
  std::vector<Fd> cgroup_links_;
  std::vector<kernel::PortLink> ports_;
  Fd loopback_;
  Mapping links_;
  std::unique_ptr<PacketHold> hold_;
  kernel::PortLink resend_;
  std::optional<deploy::OpenLoopback> open_loopback_;
  std::vector<kernel::PortLink> host_links_;
};

}  // namespace

Result<std::unique_ptr<Programs>> Programs::load(const Plan& plan) {
  auto programs = std::make_unique<LoadedPrograms>(plan);
  ROSE_CHECK(programs->load());
  return programs;
}

}  // namespace rose::inject
