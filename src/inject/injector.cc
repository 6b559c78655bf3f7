#include "inject/injector.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "deploy/environment.h"
#include "inject/clock.h"
#include "inject/cut_waits.h"
#include "inject/exec_socket.h"
#include "inject/fault_words.h"
#include "inject/follow.h"
#include "inject/limits.h"
#include "inject/methods.h"
#include "inject/node_worker.h"
#include "inject/outcomes.h"
#include "inject/own_conditions.h"
#include "inject/plan.h"
#include "inject/process_stops.h"
#include "inject/programs.h"
#include "inject/stacks.h"
#include "inject/state.h"
#include "inject/steps.h"
#include "inject/supervisor.h"
#include "inject/time_zero.h"
#include "inject/waits.h"

namespace rose::inject {
namespace {

constexpr std::uint64_t kSettlePollNs = 20'000'000;

class ScheduleInjector final : public Injector, private FaultActions {
 public:
  explicit ScheduleInjector(std::unique_ptr<Plan> plan)
      : plan_(std::move(plan)),
        follow_(*plan_),
        facts_(plan_->nodes.size()),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  ~ScheduleInjector() override { disarm(); }

  Result<void> load() {
    ROSE_TRY(programs_, Programs::load(*plan_));
    stacks_ = std::make_unique<Stacks>(*plan_, *programs_);
    limits_ = std::make_unique<Limits>(*plan_, *programs_);
    state_ = std::make_unique<State>(*plan_, programs_->arrays());
    state_->on_change([this] { ring(); });
    waits_ = std::make_unique<Waits>(
        *plan_, *state_,
        Waits::Host{[this](std::size_t node, std::function<void()> task) { workers_[node]->add(std::move(task)); },
                    [this](std::size_t node) { return deployment_->processes(node); },
                    [this](std::size_t i) { release_calls(i); },
                    [this](std::size_t i, const Error& why) {
                      follow_[i].failed = true;
                      follow_.trouble(i, why);
                      ring();
                    }});
    conditions_ = std::make_unique<OwnConditions>(*plan_, *state_, zero_,
                                                  [this](std::size_t node) { return limits_->killed(node); });
    process_stops_ = std::make_unique<ProcessStops>(
        *plan_, *state_, follow_, *programs_, *stacks_,
        ProcessStops::Host{[this](std::size_t node, pid_t pid) { conditions_->process_state(node, "paused", pid); },
                           [this](std::size_t i) { release_calls(i); }});
    outcomes_ = std::make_unique<Outcomes>(OutcomeSources{*plan_, *state_, zero_, *programs_, follow_, *limits_,
                                                          *waits_, *process_stops_, methods_, facts_});
    for (std::size_t i = 0; i < plan_->nodes.size(); ++i) {
      const bool clocks = plan_->clocks[i] != deploy::ClockCalls::none;
      clocks_.push_back(clocks ? std::make_unique<NodeClocks>() : nullptr);
      if (clocks) clocks_.back()->on_read([this](std::size_t fault) { ++follow_[fault].changed; });
      if (clocks && plan_->stacks > 0)
        clocks_.back()->on_reader(plan_->stacks, [this](std::size_t fault, const NodeClocks::Reader& reader) {
          if (const pid_t tgid = reader.call.tgid(); tgid != 0) stacks_->take_reader(fault, tgid, reader);
        });
      supervisors_.push_back((plan_->in_kernel() || plan_->notified[i].empty()) && !clocks
                                 ? nullptr
                                 : std::make_unique<Supervisor>(*plan_, *state_,
                                                                plan_->needs_returns() ? programs_.get() : nullptr, i,
                                                                static_cast<FaultActions&>(*this), clocks_[i].get()));
      facts_[i].supervised = supervisors_[i] != nullptr;
    }
    return {};
  }

  bool needs_jvms() const override {
    return plan_->has_methods() ||
           std::find(plan_->java_stacks.begin(), plan_->java_stacks.end(), true) != plan_->java_stacks.end();
  }

  Result<void> arm(deploy::Deployment& deployment, jvm::Session* jvms) override {
    ROSE_ASSERT(deployment_ == nullptr);
    ROSE_ASSERT(jvms != nullptr || !needs_jvms());
    jvms_ = jvms;
    deployment_ = &deployment;
    ROSE_ASSERT(deployment.nodes().size() == plan_->nodes.size());
    nodes_ = deployment.nodes();
    zero_.armed(now_ns());
    for (std::size_t i = 0; i < plan_->nodes.size(); ++i) {
      workers_.push_back(std::make_unique<NodeWorker>());
      conditions_->add_node(nodes_[i].logs, nodes_[i].dir);
    }
    for (std::size_t i = 0; i < plan_->nodes.size() && jvms_ != nullptr; ++i) {
      jvms_->add_places(plan_->nodes[i], plan_->methods[i]);
      if (i < plan_->java_stacks.size() && plan_->java_stacks[i]) jvms_->request_stacks(plan_->nodes[i]);
    }
    if (jvms_ != nullptr) stacks_->connect(*jvms_);
    if (!plan_->rules.empty()) cuts_ = std::make_unique<NodeWorker>();
    ROSE_CHECK(waits_->start(programs_->arrays().chains));
    ROSE_CHECK(programs_->attach(deployment, jvms_ != nullptr ? jvms_->agent() : std::filesystem::path()));
    ROSE_CHECK(limits_->prepare(deployment));
    ROSE_CHECK(process_stops_->prepare(deployment));
    ROSE_CHECK(open_exec_socket(deployment.run_dir()));
    begin_clocks();
    armed_ = true;
    thread_ = std::thread([this] { run(); });
    return {};
  }

  void connect(const python::Session& python) override { stacks_->connect(python); }

  void workload_began(std::int64_t zero_ns) override {
    // Search again, because a socket that was created before its process moved to the node, and bound afterwards, can
    // be found only now.
    for (std::size_t i = 0; i < plan_->nodes.size(); ++i) {
      look_at_sockets(i);
      if (plan_->stacks == 0) continue;
      if (const auto pids = deployment_->processes(i); !pids.empty()) stacks_->note_root(i, pids.front());
    }
    zero_.began(static_cast<std::uint64_t>(zero_ns));
    state_->begin(static_cast<std::uint64_t>(zero_ns));
  }

  void catch_up() override {
    if (!armed_ || disarmed_) return;
    {
      std::unique_lock lock(rounds_mutex_);
      const auto wanted = ++rounds_wanted_;
      ring();
      round_done_.wait(lock, [&] { return rounds_done_ >= wanted; });
    }
    for (auto& worker : workers_) worker->drain();
    if (cuts_) cuts_->drain();
  }

  void disarm() override {
    if (disarmed_.exchange(true) || !state_) return;
    if (exec_socket_) exec_socket_->close();
    for (auto& supervisor : supervisors_) {
      if (supervisor) supervisor->disarm();
    }
    if (programs_) programs_->detach();
    if (thread_.joinable()) {
      ring();
      thread_.join();
      programs_->drain();  // reads the last changes
    }
    for (auto& worker : workers_) worker->finish();
    if (cuts_) cuts_->finish();
    for (std::size_t i = 0; i < plan_->chains.size(); ++i) follow_[i].complete = true;
    if (waits_) waits_->end();
    end_clocks();
    if (limits_) limits_->finish();
    const auto now = now_ns();
    // Heal links before resuming paused nodes: a node that resumes while it is still partitioned may start an election
    // that the schedule did not ask for.
    for (std::size_t i = 0; i < plan_->schedule.faults.size(); ++i) {
      if (!ROSE_LASTS(plan_->chains[i].data.kind) || state_->fired_ns(i) == 0) continue;
      state_->end(i, now);
      follow_[i].ended_ns = state_->until_ns(i);
    }
    for (std::size_t i = 0; i < plan_->schedule.faults.size(); ++i) {
      if (plan_->chains[i].data.kind == ROSE_CHAIN_PAUSE && state_->fired_ns(i) != 0) process_stops_->end_pause(i);
    }
    process_stops_->look();
    resolve_stacks();
    const std::lock_guard lock(mutex_);
    if (jvms_ != nullptr) methods_.read(*plan_, *jvms_);
    final_ = outcomes_->faults(resolved_stacks_);
  }

  std::vector<schedule::FaultOutcome> outcomes() const override {
    const std::lock_guard lock(mutex_);
    return final_ ? *final_ : outcomes_->faults(resolved_stacks_);
  }

  std::vector<schedule::OrderOutcome> order(std::string& broken) const override { return outcomes_->order(broken); }

  Result<void> step(const std::string& name, StepPart part) override {
    return make_step(
        *plan_, *state_, follow_, name, part, [this] { return armed_.load(); }, [this] { return disarmed_.load(); });
  }

  InjectionRecord record() const override {
    InjectionRecord all;
    {
      const std::lock_guard lock(record_mutex_);
      all = record_;
    }
    for (const auto& [i, call] : programs_->changed()) all.calls.push_back({i, call.at_ns, call.tid, call.syscall});
    for (std::size_t i = 0; i < plan_->schedule.faults.size(); ++i) {
      const auto& chain = plan_->chains[i];
      const bool pause = chain.data.kind == ROSE_CHAIN_PAUSE;
      if ((!pause && chain.data.kind != ROSE_CHAIN_CRASH && chain.fault->then_do != schedule::ThenDo::crash) ||
          state_->state(i) != ROSE_FIRED || follow_[i].no_process)
        continue;
      ProcessAction action{i,
                           plan_->nodes[state_->node_of(i)],
                           static_cast<std::int64_t>(state_->fired_ns(i)),
                           static_cast<std::int64_t>(follow_[i].ended_ns.load()),
                           pause,
                           chain.fault->scope == schedule::Scope::all,
                           chain.data.kind == ROSE_CHAIN_CRASH ? chain.fault->signal : SIGKILL,
                           follow_.remarks(i).struck};
      // A BPF program has signalled this process.
      if (const auto done = static_cast<pid_t>(state_->chain(i).signalled); done != 0) action.pids.push_back(done);
      all.processes.push_back(std::move(action));
    }
    return all;
  }

  bool finished() const override {
    for (std::size_t i = 0; i < plan_->schedule.faults.size(); ++i) {
      const auto& fault = plan_->schedule.faults[i];
      if (state_->state(i) == ROSE_WITHDRAWN || state_->lost(i)) continue;
      if (state_->state(i) != ROSE_FIRED || !carried_out(plan_->chains[i], follow_[i])) return false;
      switch (fault.kind) {
        case schedule::FaultKind::syscall:
        case schedule::FaultKind::exception:
          if (fault.times >= 0 && state_->injected(i) < static_cast<std::uint64_t>(schedule::changed_calls(fault)))
            return false;
          break;
        case schedule::FaultKind::crash:
          if (process_stops_->loses_power(i) && !follow_[i].no_process && !follow_[i].lost) return false;
          break;
        case schedule::FaultKind::pause:
        case schedule::FaultKind::partition:
        case schedule::FaultKind::network:
        case schedule::FaultKind::clock:
        case schedule::FaultKind::descriptors:
        case schedule::FaultKind::memory:
        case schedule::FaultKind::cpu:
        case schedule::FaultKind::disk_full:
        case schedule::FaultKind::disk_slow:
        case schedule::FaultKind::block:
          // A fault without an end lasts until the end of the run.
          if ((fault.duration_ns > 0 || !fault.until.empty()) && follow_[i].ended_ns == 0) return false;
          break;
      }
    }
    return true;
  }

  std::string trouble() const override {
    const std::lock_guard lock(record_mutex_);
    return trouble_;
  }

  std::string backend() const override { return describe(plan_->backend); }

  // deploy::NodeObserver
  std::map<std::string, std::string> environment(std::size_t node,
                                                 const std::map<std::string, std::string>& own) override {
    return jvms_ != nullptr ? jvms_->environment(plan_->nodes[node], own) : std::map<std::string, std::string>();
  }

  std::vector<int> notified_syscalls(std::size_t node) override {
    return plan_->in_kernel() ? std::vector<int>() : plan_->notified[node];
  }

  deploy::ClockCalls notified_clocks(std::size_t node) override { return plan_->clocks[node]; }

  void on_listener(std::size_t node, pid_t pid, Fd listener) override {
    if (supervisors_[node]) supervisors_[node]->add_listener(pid, std::move(listener));
  }

  void on_start(std::size_t node, pid_t pid) override {
    if (!armed_ || disarmed_) return;
    programs_->set_main(node, pid);
    waits_->watch_start(node, pid);
    if (auto ok = limits_->join(node, pid); !ok) broke_down(ok.error().message);
    if (plan_->attached[node] && process_stops_->may_pause(node)) {
      if (auto ok = deployment_->foresee_stops(node); !ok) log::warning("{}", ok.error().message);
    }
    // The cgroup of a system that rose did not start is known only now.
    if (auto ok = programs_->add_node(deployment_->nodes()[node]); !ok) broke_down(ok.error().message);
    facts_[node].blind = deployment_->nodes()[node].cgroup.empty();
    look_at_sockets(node);
    conditions_->process_state(node, "started", pid);
  }

  void on_end(std::size_t node, const deploy::EndInfo& end) override {
    if (!armed_ || disarmed_) return;
    process_stops_->on_end(node);
    conditions_->process_state(node, end.signalled ? "crashed" : "exited", end.pid);
  }

 private:
  void ring() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
  }

  void look_at_sockets(std::size_t node) {
    if (!plan_->attached[node]) return;
    if (auto ok = programs_->add_sockets(deployment_->nodes()[node], deployment_->processes(node)); !ok) {
      log::warning("{}", ok.error().message);
    }
  }

  // Opens the socket for nodes that start through `rose exec`. Called before setup starts them.
  Result<void> open_exec_socket(const std::filesystem::path& run_dir) {
    ExecSocket::Host host{plan_->nodes, std::vector<std::vector<int>>(plan_->nodes.size()), {}};
    bool wanted = false;
    for (std::size_t i = 0; i < plan_->nodes.size(); ++i) {
      if (!plan_->enters[i] || !supervisors_[i]) continue;
      host.syscalls[i] = plan_->notified[i];
      wanted = wanted || !plan_->notified[i].empty();
    }
    if (!wanted) return {};
    host.on_listener = [this](std::size_t node, pid_t pid, Fd listener, std::shared_ptr<Ledger> ledger) {
      facts_[node].entered = true;
      supervisors_[node]->add_listener(pid, std::move(listener), std::move(ledger));
    };
    ROSE_TRY(exec_socket_, ExecSocket::open(run_dir / deploy::kExecSocket, std::move(host)));
    return {};
  }

  void run() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    ::prctl(PR_SET_TIMERSLACK, 1UL);  // so that faults take effect at exact times
    while (!disarmed_) {
      const auto round = wanted_round();
      const auto next = reconcile();
      end_round(round);
      const auto now = now_ns();
      const auto left = next > now ? next - now : 0;
      const timespec limit{static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
      pollfd watched[2] = {{programs_->notice_fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      (void)::ppoll(watched, 2, next == kNever ? nullptr : &limit, nullptr);
      std::uint64_t count = 0;
      [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
      programs_->drain();
    }
    // Carry out faults that fired at the very end, too, because they are reported as fired.
    for (std::size_t i = 0; i < plan_->chains.size(); ++i)
      if (state_->state(i) == ROSE_FIRED) (void)follow_fired(i);
  }

  std::uint64_t wanted_round() {
    const std::lock_guard lock(rounds_mutex_);
    return rounds_wanted_;
  }
  void end_round(std::uint64_t round) {
    {
      const std::lock_guard lock(rounds_mutex_);
      if (rounds_done_ == round) return;
      rounds_done_ = round;
    }
    round_done_.notify_all();
  }

  // Checks the whole state, carries out what is due, and returns the time of the next check. All information is in the
  // shared state, so a lost notice from a BPF program only causes a delay.
  std::uint64_t reconcile() {
    std::uint64_t next = kNever;
    bool again = true;
    while (again) {
      again = false;
      next = kNever;
      for (std::size_t i = 0; i < plan_->chains.size(); ++i) {
        const auto& chain = plan_->chains[i];
        const auto now_state = state_->state(i);
        if (now_state == ROSE_FIRED) {
          next = std::min(next, follow_fired(i));
          continue;
        }
        if (now_state == ROSE_ARMED && chain.data.kind == ROSE_CHAIN_BLOCK && !chain.call) waits_->watch(i);
        if ((chain.data.flags & ROSE_IN_TURN) != 0) again |= waits_->follow_turn(i, next);
        if (now_state != ROSE_WAITING) continue;
        const auto position = ROSE_POSITION(state_->progress(i));
        if (position == ROSE_CLOSED) continue;
        if (chain.data.conditions == 0) {
          if (!(chain.data.flags & ROSE_WAITS_FOR_CALL)) {
            again |= state_->fire(i, 0, 0, now_ns());
          } else if (chain.data.node >= ROSE_ROLE_NODES) {
            again |= state_->settle(i, 0, 0, now_ns());
          }
          continue;
        }
        if (position >= chain.data.conditions) {
          // All conditions are met. Normally, the thread that met the last one is about to fire the chain, and there is
          // nothing to do here. But the chain may be waiting for a node to take a role.
          if (chain.data.node >= ROSE_ROLE_NODES) again |= state_->settle(i, 0, 0, now_ns());
          continue;
        }
        again |= conditions_->look(chain.data.first_condition + position, next);
      }
      again |= conditions_->read_logs(next);
      again |= conditions_->read_kills(next);
    }
    return next;
  }

  // Carries out the fault of a chain that has fired, and ends it when its time is over. Returns the time of the next
  // check.
  std::uint64_t follow_fired(std::size_t i) {
    auto& follow = follow_[i];
    const auto& chain = plan_->chains[i];
    const auto fired = state_->fired_ns(i);
    switch (chain.data.kind) {
      case ROSE_CHAIN_CRASH:
      case ROSE_CHAIN_SYSCALL:
        if (process_stops_->kills(i) && !follow.acted.exchange(true)) {
          workers_[state_->node_of(i)]->add([this, i] { process_stops_->crash_once(i); });
        }
        return kNever;
      case ROSE_CHAIN_PAUSE:
        if ((!chain.call || plan_->in_kernel()) && !follow.acted.exchange(true)) {
          workers_[state_->node_of(i)]->add([this, i] { process_stops_->pause(i); });
        }
        if (follow.ending || chain.fault->duration_ns == 0) return kNever;
        if (const auto due = fired + static_cast<std::uint64_t>(chain.fault->duration_ns); due > now_ns()) return due;
        order_end(i);
        return kNever;
      case ROSE_CHAIN_PARTITION:
      case ROSE_CHAIN_NETWORK: {
        if (!follow.acted.exchange(true)) begin_cut(i);
        const auto until = state_->until_ns(i);
        const auto look = follow.ended_ns == 0 ? look_at_cut(i, fired) : kNever;
        if (follow.ended_ns != 0 || until == kNever) return look;
        if (until > now_ns()) return std::min(until, look);
        follow.ended_ns = until;
        return kNever;
      }
      case ROSE_CHAIN_CLOCK: {
        if (!follow.acted.exchange(true)) {
          clocks_[state_->node_of(i)]->begin(i, chain.fault->clock);
          update_clocks(i);
        }
        const auto until = state_->until_ns(i);
        if (follow.ended_ns != 0 || until == kNever) return kNever;
        if (until > now_ns()) return until;
        follow.ended_ns = until;
        clocks_[state_->node_of(i)]->end(i);
        update_clocks(i);
        return kNever;
      }
      case ROSE_CHAIN_BLOCK: {
        const auto until = state_->until_ns(i);
        if (follow.ended_ns != 0) return kNever;
        if (!chain.call && !waits_->take(i)) return now_ns() + kSignalPollNs;
        if (until > now_ns()) return until;
        end_block(i, until);
        return kNever;
      }
      case ROSE_CHAIN_RESOURCE: {
        if (!follow.acted.exchange(true)) workers_[state_->node_of(i)]->add([this, i] { limit(i); });
        const auto until = state_->until_ns(i);
        if (follow.ended_ns != 0) return kNever;
        if (until <= now_ns()) {
          follow.ended_ns = until;
          workers_[state_->node_of(i)]->add([this, i] {
            if (auto ok = limits_->end(i); !ok) follow_.trouble(i, ok.error());
          });
          return kNever;
        }
        if (!limits_->unsettled(i)) return until;
        workers_[state_->node_of(i)]->add([this, i] { limits_->settle(i); });
        return std::min(until, now_ns() + kSettlePollNs);
      }
      case ROSE_CHAIN_END: {
        const auto target = chain.data.target;
        if (plan_->chains[target].data.kind == ROSE_CHAIN_PAUSE && !follow_[target].ending) order_end(target);
        return kNever;
      }
      default: return kNever;
    }
  }

  void limit(std::size_t i) {
    if (auto ok = limits_->begin(i, state_->node_of(i)); !ok) {
      follow_[i].failed = true;
      follow_.trouble(i, ok.error());
    }
    follow_[i].complete = true;
    ring();  // the limit may have to be adjusted
  }

  // A rule applies to packets from the time at which its fault fires, but packets that passed before may still be in
  // transit. The partition is complete once these have arrived or are lost: from then on, nothing crosses it, even if
  // the machine is busy.
  void begin_cut(std::size_t i) {
    log::debug("fault '{}' is in effect", plan_->chains[i].fault->id);
    if (plan_->chains[i].data.kind != ROSE_CHAIN_PARTITION) return;
    cuts_->add([this, i] {
      if (follow_[i].complete) return;  // completed together with an earlier partition
      std::vector<std::size_t> all;
      for (std::size_t k = 0; k < plan_->schedule.faults.size(); ++k)
        if (plan_->chains[k].data.kind == ROSE_CHAIN_PARTITION && follow_[k].acted && !follow_[k].complete)
          all.push_back(k);
      if (!disarmed_) {
        for (std::size_t node = 0; node < plan_->nodes.size(); ++node) look_at_sockets(node);
        if (auto ok = programs_->wait_for_packets(); !ok) {
          for (const std::size_t k : all) {
            follow_[k].failed = true;
            follow_.trouble(k, ok.error());
          }
        }
      }
      for (const std::size_t k : all) follow_[k].complete = true;
    });
  }

  // Starts clock faults without conditions and `after`, so that they are in effect when the first node starts.
  void begin_clocks() {
    for (std::size_t i = 0; i < plan_->schedule.faults.size(); ++i) {
      const auto& chain = plan_->chains[i];
      if (chain.data.kind != ROSE_CHAIN_CLOCK || chain.data.conditions != 0 ||
          (chain.data.flags & ROSE_AT_WORKLOAD) != 0)
        continue;
      if (ROSE_POSITION(state_->progress(i)) == ROSE_CLOSED || !state_->fire(i, 0, 0, now_ns())) continue;
      follow_[i].acted = true;
      clocks_[state_->node_of(i)]->begin(i, chain.fault->clock);
      follow_[i].complete = true;
    }
  }

  // The update is repeated a little later, because a process that is being forked has its parent's clock but is not yet
  // in the node's list of processes.
  void update_clocks(std::size_t i) {
    const std::size_t node = state_->node_of(i);
    const bool ends = follow_[i].ended_ns != 0;
    workers_[node]->add([this, i, node, ends] {
      for (const unsigned after_us : {0U, 2'000U, 20'000U}) {
        ::usleep(after_us);
        const std::size_t hooked = clocks_[node]->update(deployment_->processes(node));
        if (!ends) state_->add_injected(i, hooked > state_->injected(i) ? hooked - state_->injected(i) : 0);
      }
      follow_[i].complete = true;
    });
  }

  // Restores the clocks of all nodes.
  void end_clocks() {
    for (std::size_t node = 0; node < clocks_.size(); ++node) {
      if (!clocks_[node] || deployment_ == nullptr) continue;
      for (std::size_t i = 0; i < plan_->schedule.faults.size(); ++i) clocks_[node]->end(i);
      (void)clocks_[node]->update(deployment_->processes(node));
    }
  }

  void order_end(std::size_t i) {
    follow_[i].ending = true;
    workers_[state_->node_of(i)]->add([this, i] { process_stops_->end_pause(i); });
  }

  // Searches for threads that wait because of a partition, if a search is due. Returns the time of the next search.
  std::uint64_t look_at_cut(std::size_t i, std::uint64_t fired) {
    if (plan_->stacks == 0 || plan_->chains[i].data.kind != ROSE_CHAIN_PARTITION) return kNever;
    const std::size_t node = state_->node_of(i);
    for (std::uint64_t due = cut_waits_.due(i, fired); due <= now_ns(); due = cut_waits_.due(i, fired)) {
      cut_waits_.looked(i);
      workers_[node]->add([this, i, node] { cut_waits_.take(*plan_, i, node, *deployment_, *stacks_); });
    }
    return cut_waits_.due(i, fired);
  }

  // Lets calls continue that supervisors hold for this chain.
  void release_calls(std::size_t i) {
    for (const auto& supervisor : supervisors_)
      if (supervisor) supervisor->release(i);
  }

  // Lets the thread continue that a block fault holds.
  void end_block(std::size_t i, std::uint64_t when) {
    follow_[i].ended_ns = when;
    waits_->release(i, when);
    if (const auto cap = plan_->chains[i].data.duration_ns;
        !plan_->chains[i].fault->until.empty() && when >= state_->fired_ns(i) + cap) {
      follow_.note(i, fmt::format("released after {}: what it waited for did not happen",
                                  format_duration(static_cast<std::int64_t>(cap))));
    }
  }

  // FaultActions, called by supervisors
  bool crash_now(std::size_t i, pid_t tgid, int signal) override { return process_stops_->crash_now(i, tgid, signal); }

  bool pause_now(std::size_t i, pid_t tgid) override {
    const bool mine = process_stops_->pause_now(i, tgid);
    ring();
    return mine;
  }

  void block_now(std::size_t i) override {
    follow_[i].acted = true;
    state_->add_injected(i);
    ring();  // wakes run(), which ends the block in time
  }

  void turn_waits(std::size_t i) override {
    waits_->hold_for_turn(i);
    ring();
  }

  void fired_at(std::size_t i, const std::string& call) override { follow_.call(i, call); }

  void had_effect(std::size_t i) override { ++follow_[i].changed; }
  void had_same_result(std::size_t i) override { follow_[i].same = true; }
  void passed_over(std::size_t i, const std::string& call) override {
    follow_[i].passed_over = true;
    log::warning("fault '{}': {} continues without the fault: rose does not act on this file",
                 plan_->chains[i].fault->id, call);
  }
  void broke_down(const std::string& why) override {
    log::warning("{}", why);
    const std::lock_guard lock(record_mutex_);
    if (trouble_.empty()) trouble_ = why;
  }

  void changed(std::size_t i, pid_t tid, int syscall, std::uint64_t at) override {
    const std::lock_guard lock(record_mutex_);
    if (record_.calls.size() < kMostChangedCalls)
      record_.calls.push_back({i, static_cast<std::int64_t>(at), tid, syscall});
  }

  // Takes the stack before the fault is carried out, because the thread may not exist afterwards.
  void hit(std::size_t i, NotifiedCall& call) override {
    if (plan_->stacks == 0) return;
    const auto tgid = call.tgid();
    if (tgid != 0) stacks_->take(i, tgid, call.tid(), what_happens(*plan_, i, call.describe()));
  }

  void resolve_stacks() {
    if (plan_->stacks == 0 || deployment_ == nullptr) return;
    std::vector<std::vector<pid_t>> living;
    for (std::size_t i = 0; i < plan_->nodes.size(); ++i) living.push_back(deployment_->processes(i));
    auto resolved = stacks_->resolve(
        living, [this](std::size_t i) { return state_->node_of(i); },
        [this](std::size_t i) { return what_happens(*plan_, i, programs_->fired_at(i)); });
    for (auto& [i, stacks] : resolved) {
      for (auto& stack : stacks) stack.ns = zero_.since(static_cast<std::uint64_t>(stack.ns)).value_or(0);
    }
    const std::lock_guard lock(mutex_);
    resolved_stacks_ = std::move(resolved);
  }

  std::unique_ptr<Plan> plan_;
  Follows follow_;
  std::vector<NodeFacts> facts_;
  TimeZero zero_;
  Fd wake_;
  std::unique_ptr<Programs> programs_;
  std::unique_ptr<State> state_;
  deploy::Deployment* deployment_ = nullptr;
  jvm::Session* jvms_ = nullptr;
  std::vector<deploy::NodeInfo> nodes_;
  std::atomic<bool> armed_{false}, disarmed_{false};
  mutable std::mutex record_mutex_;
  InjectionRecord record_;
  std::string trouble_;  // protected by record_mutex_; see trouble()
  std::mutex rounds_mutex_;
  std::condition_variable round_done_;
  std::uint64_t rounds_wanted_ = 0, rounds_done_ = 0;
  mutable std::mutex mutex_;
  std::optional<std::vector<schedule::FaultOutcome>> final_;
  std::unique_ptr<Stacks> stacks_;
  std::unique_ptr<Limits> limits_;
  std::unique_ptr<Waits> waits_;
  Stacks::ByFault resolved_stacks_;  // protected by mutex_
  MethodReports methods_;
  std::unique_ptr<OwnConditions> conditions_;
  std::unique_ptr<ProcessStops> process_stops_;
  CutWaits cut_waits_;
  std::unique_ptr<Outcomes> outcomes_;
  std::vector<std::unique_ptr<NodeWorker>> workers_;
  std::unique_ptr<NodeWorker> cuts_;  // completes partitions; null if there are no partitions or bad links
  std::thread thread_;
  std::vector<std::unique_ptr<NodeClocks>> clocks_;  // by node: null if no clock of it is changed
  // Must outlive the listeners that were received through it, because its destruction informs the keepers (see
  // exec_socket.h) that rose has ended.
  std::unique_ptr<ExecSocket> exec_socket_;
  // Declared last, and so destroyed first, because their threads use everything above until they end.
  std::vector<std::unique_ptr<Supervisor>> supervisors_;
};

}  // namespace

Result<void> check(const schedule::Schedule& schedule, const config::Config& config, bool allow_attached) {
  ROSE_TRY([[maybe_unused]] const auto plan, make_plan(schedule, config, allow_attached));
  return {};
}

Result<std::unique_ptr<Injector>> Injector::create(const schedule::Schedule& schedule, const config::Config& config,
                                                   bool allow_attached, bool stacks) {
  ROSE_TRY(auto plan, make_plan(schedule, config, allow_attached));
  if (stacks) plan->take_stacks(config);
  auto injector = std::make_unique<ScheduleInjector>(std::move(plan));
  ROSE_CHECK(injector->load());
  return injector;
}

}  // namespace rose::inject
