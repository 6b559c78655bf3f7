#include "inject/injector.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "deploy/environment.h"
#include "inject/clock.h"
#include "inject/exec_socket.h"
#include "inject/limits.h"
#include "inject/power.h"
#include "inject/log_tail.h"
#include "inject/methods.h"
#include "inject/plan.h"
#include "inject/programs.h"
#include "inject/stacks.h"
#include "inject/state.h"
#include "inject/supervisor.h"
#include "inject/waits.h"

namespace rose::inject {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::uint64_t kLogPollNs = 5'000'000;
constexpr std::uint64_t kSettlePollNs = 20'000'000;

std::uint64_t now_ns() { return static_cast<std::uint64_t>(monotonic_ns()); }

// Does things to one node one after the other, so that the thread that keeps time never waits for a cgroup to freeze.
class NodeWorker {
 public:
  NodeWorker() : thread_([this] { run(); }) {}
  ~NodeWorker() { finish(); }
  void add(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    ready_.notify_one();
  }
  // Returns when all that was added has been done.
  void drain() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return tasks_.empty() && !busy_; });
  }
  // Does what is queued, then ends.
  void finish() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    ready_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    std::unique_lock lock(mutex_);
    for (;;) {
      ready_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
      lock.unlock();
      task();
      lock.lock();
      busy_ = false;
      if (tasks_.empty()) idle_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable ready_, idle_;
  bool busy_ = false;
  std::deque<std::function<void()>> tasks_;
  bool stop_ = false;
  std::thread thread_;
};

// What userspace knows of a chain beyond the shared state.
struct Follow {
  std::atomic<bool> acted{false};    // somebody has carried it out, or does so now
  std::atomic<std::uint64_t> ended_ns{0};
  std::atomic<bool> nobody{false};   // crash, pause: there was no process
  std::atomic<bool> failed{false};   // a limit, a loss of power: it could not be done, `trouble` says why
  std::atomic<bool> lost{false};     // a loss of power: it was done, or cannot be
  std::atomic<bool> paused{false};
  bool crashed = false;              // under crashing_
  bool ending = false;               // the injector thread has ordered the end of a pause
  std::vector<pid_t> struck;         // signalled or stopped; these under mutex_
  std::string call;                  // where it fired
  std::string detail;
  std::string what_was_lost;
  std::string trouble;
};

class ScheduleInjector final : public Injector, private FaultActions {
 public:
  explicit ScheduleInjector(std::unique_ptr<Plan> plan)
      : plan_(std::move(plan)), follow_(plan_->chains.size()), begun_(plan_->chains.size()), entered_(plan_->nodes.size()), blind_(plan_->nodes.size()), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  ~ScheduleInjector() override { disarm(); }

  Result<void> load() {
    ROSE_TRY(programs_, Programs::load(*plan_));
    stacks_ = std::make_unique<Stacks>(*plan_, *programs_);
    limits_ = std::make_unique<Limits>(*plan_);
    state_ = std::make_unique<State>(*plan_, programs_->arrays());
    state_->on_change([this] { ring(); });
    waits_ = std::make_unique<Waits>(*plan_, *state_, Waits::Host{
        [this](std::size_t node, std::function<void()> task) { workers_[node]->add(std::move(task)); },
        [this](std::size_t node) { return deployment_->processes(node); },
        [this](std::size_t i) { release_calls(i); },
        [this](std::size_t i, const Error& why) {
          follow_[i].failed = true;
          trouble(i, why);
          ring();
        }});
    for (std::size_t i = 0; i < plan_->nodes.size(); ++i) {
      const bool clocks = plan_->clocks[i] != deploy::ClockCalls::none;
      clocks_.push_back(clocks ? std::make_unique<NodeClocks>() : nullptr);
      supervisors_.push_back((in_kernel() || plan_->notified[i].empty()) && !clocks
                                 ? nullptr
                                 : std::make_unique<Supervisor>(
                                       *plan_, *state_, plan_->needs_returns() ? programs_.get() : nullptr, i,
                                       static_cast<FaultActions&>(*this), clocks_[i].get()));
    }
    return {};
  }

  bool needs_jvms() const override {
    return plan_->has_methods() || std::find(plan_->java_stacks.begin(), plan_->java_stacks.end(), true) != plan_->java_stacks.end();
  }

  Result<void> arm(deploy::Deployment& deployment, jvm::Session* jvms) override {
    ROSE_ASSERT(deployment_ == nullptr);
    ROSE_ASSERT(jvms != nullptr || !needs_jvms());
    jvms_ = jvms;
    deployment_ = &deployment;
    ROSE_ASSERT(deployment.nodes().size() == plan_->nodes.size());
    nodes_ = deployment.nodes();
    armed_ns_ = now_ns();
    for (std::size_t i = 0; i < plan_->nodes.size(); ++i) {
      workers_.push_back(std::make_unique<NodeWorker>());
      tails_.emplace_back(nodes_[i].logs);
    }
    for (std::size_t i = 0; i < plan_->nodes.size() && jvms_ != nullptr; ++i) {
      jvms_->add_places(plan_->nodes[i], plan_->methods[i]);
      if (i < plan_->java_stacks.size() && plan_->java_stacks[i]) jvms_->tell_stacks(plan_->nodes[i]);
    }
    if (jvms_ != nullptr) stacks_->connect(*jvms_);
    ROSE_CHECK(waits_->start(programs_->arrays().chains));
    ROSE_CHECK(programs_->attach(deployment, jvms_ != nullptr ? jvms_->agent() : std::filesystem::path()));
    ROSE_CHECK(limits_->prepare(deployment));
    ROSE_CHECK(power_.prepare(*plan_, deployment));
    ROSE_CHECK(open_exec_socket(deployment.run_dir()));
    begin_clocks();
    armed_ = true;
    thread_ = std::thread([this] { run(); });
    return {};
  }

  void workload_began(std::int64_t zero_ns) override {
    // Once more: a socket that was made before its process came to the node, and bound afterwards, is known by now.
    for (std::size_t i = 0; i < plan_->nodes.size(); ++i) {
      look_at_sockets(i);
      if (plan_->stacks == 0) continue;
      if (const auto pids = deployment_->processes(i); !pids.empty()) stacks_->note_root(i, pids.front());
    }
    workload_ns_ = static_cast<std::uint64_t>(zero_ns);
    state_->begin(workload_ns_);
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
      programs_->drain();  // what was changed last
    }
    for (auto& worker : workers_) worker->finish();
    if (waits_) waits_->end();
    end_clocks();
    if (limits_) limits_->finish();
    const auto now = now_ns();
    // Heal links before resuming paused nodes: a node that wakes up partitioned may start an election we never
    // asked for.
    for (std::size_t i = 0; i < plan_->schedule.faults.size(); ++i) {
      if (!ROSE_LASTS(plan_->chains[i].data.kind) || state_->fired_ns(i) == 0) continue;
      state_->end(i, now);
      follow_[i].ended_ns = state_->until_ns(i);
    }
    for (std::size_t i = 0; i < plan_->schedule.faults.size(); ++i) {
      if (plan_->chains[i].data.kind == ROSE_CHAIN_PAUSE && state_->fired_ns(i) != 0) end_pause(i);
    }
    tell_stacks();
    const std::lock_guard lock(mutex_);
    if (jvms_ != nullptr) methods_.read(*plan_, *jvms_);
    final_ = compute();
  }

  std::vector<schedule::FaultOutcome> outcomes() const override {
    const std::lock_guard lock(mutex_);
    return final_ ? *final_ : compute();
  }

  std::vector<schedule::OrderOutcome> order(std::string& broken) const override {
    std::vector<schedule::OrderOutcome> all;
    std::map<std::string, std::uint64_t> came;  // by name: when
    for (const auto& name : plan_->order) {
      const std::size_t i = chain_named(name.name);
      schedule::OrderOutcome out{name.name, "fault", state_->state(i) == ROSE_FIRED, since_workload(state_->fired_ns(i)), {}};
      if (const Mark* mark = mark_named(name.name); mark != nullptr) out.kind = mark->step ? "step" : "event";
      out.held_ns = waits_->lasted_ns(i);
      if (out.came) came[name.name] = state_->fired_ns(i);
      if (!out.came) out.why_not = why_not(i, state_->progress(i), false);
      all.push_back(std::move(out));
    }
    for (const auto& name : plan_->order) {
      const auto late = came.find(name.name);
      if (late == came.end()) continue;
      for (const std::string& early : name.before) {
        const auto first = came.find(early);
        if (first != came.end() && first->second <= late->second) continue;
        if (broken.empty())
          broken = fmt::format("'{}' came before '{}'{}", name.name, early, first == came.end() ? ", which never came" : "");
      }
    }
    return all;
  }

  Result<void> step(const std::string& name, StepPart part) override {
    const Mark* mark = mark_named(name);
    if (mark == nullptr || !mark->step) {
      std::vector<std::string> steps;
      for (const Mark& one : plan_->marks)
        if (one.step) steps.push_back(one.name);
      std::string hint = did_you_mean(name, steps);
      if (hint.empty()) hint = steps.empty() ? "its `order` names none" : fmt::format("its steps are {}", fmt::join(steps, ", "));
      return fail(ErrorKind::usage, fmt::format("the schedule's order has no step '{}'", name), std::move(hint));
    }
    const auto open = [&] { return armed_ && state_->state(mark->chain) != ROSE_WAITING; };
    while (!open() && !disarmed_) ::usleep(2'000);
    if (!open() || disarmed_) return fail(ErrorKind::cancelled, fmt::format("the run ends, and it was not yet the turn of step '{}'", name));
    if (part == StepPart::begin && begun_[mark->chain].exchange(true))
      return fail(ErrorKind::usage, fmt::format("step '{}' was begun already: it comes once", name));
    if (part == StepPart::end) (void)state_->fire(mark->chain, 0, 0, now_ns());
    return {};
  }

  Deeds deeds() const override {
    Deeds all;
    {
      const std::lock_guard lock(deeds_mutex_);
      all = deeds_;
    }
    for (const auto& [i, call] : programs_->changed()) all.calls.push_back({i, call.at_ns, call.tid, call.syscall});
    for (std::size_t i = 0; i < plan_->schedule.faults.size(); ++i) {
      const auto& chain = plan_->chains[i];
      const bool pause = chain.data.kind == ROSE_CHAIN_PAUSE;
      if ((!pause && chain.data.kind != ROSE_CHAIN_CRASH && chain.fault->then_do != schedule::ThenDo::crash) ||
          state_->state(i) != ROSE_FIRED || follow_[i].nobody)
        continue;
      Stroke stroke{i, name_of(i), static_cast<std::int64_t>(state_->fired_ns(i)), static_cast<std::int64_t>(follow_[i].ended_ns.load()),
                    pause, chain.fault->scope == schedule::Scope::all,
                    chain.data.kind == ROSE_CHAIN_CRASH ? chain.fault->signal : SIGKILL, {}};
      {
        const std::lock_guard lock(mutex_);
        stroke.pids = follow_[i].struck;
      }
      // What the kernel signalled on the spot.
      if (const auto done = static_cast<pid_t>(state_->chain(i).signalled); done != 0) stroke.pids.push_back(done);
      all.strokes.push_back(std::move(stroke));
    }
    return all;
  }

  bool finished() const override {
    for (std::size_t i = 0; i < plan_->schedule.faults.size(); ++i) {
      const auto& fault = plan_->schedule.faults[i];
      if (state_->state(i) == ROSE_WITHDRAWN || state_->lost(i)) continue;
      if (state_->state(i) != ROSE_FIRED) return false;
      switch (fault.kind) {
        case schedule::FaultKind::syscall:
        case schedule::FaultKind::exception:
          if (fault.times >= 0 && state_->injected(i) < static_cast<std::uint64_t>(fault.times)) return false;
          break;
        case schedule::FaultKind::crash:
          if (!follow_[i].acted || (loses(i) && !follow_[i].nobody && !follow_[i].lost)) return false;
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
          // One without end lasts as long as the run.
          if ((fault.duration_ns > 0 || !fault.until.empty()) && follow_[i].ended_ns == 0) return false;
          break;
      }
    }
    return true;
  }

  std::string backend() const override {
    return describe(plan_->backend);
  }

  // ---- deploy::NodeObserver ----
  std::map<std::string, std::string> environment(std::size_t node, const std::map<std::string, std::string>& own) override {
    return jvms_ != nullptr ? jvms_->environment(plan_->nodes[node], own) : std::map<std::string, std::string>();
  }

  std::vector<int> notified_syscalls(std::size_t node) override {
    return in_kernel() ? std::vector<int>() : plan_->notified[node];
  }

  deploy::ClockCalls notified_clocks(std::size_t node) override { return plan_->clocks[node]; }

  void on_listener(std::size_t node, pid_t pid, Fd listener) override {
    if (supervisors_[node]) supervisors_[node]->add_listener(pid, std::move(listener));
  }

  void on_start(std::size_t node, pid_t pid) override {
    if (!armed_ || disarmed_) return;
    programs_->set_main(node, pid);
    waits_->watch_start(node, pid);
    if (auto ok = limits_->join(node, pid); !ok) log::warning("{}", ok.error().message);
    if (plan_->attached[node] && may_pause(node)) {
      if (auto ok = deployment_->foresee_stops(node); !ok) log::warning("{}", ok.error().message);
    }
    // The cgroup of a system that rose did not start is known only now.
    if (auto ok = programs_->add_node(deployment_->nodes()[node]); !ok) log::warning("{}", ok.error().message);
    blind_[node] = deployment_->nodes()[node].cgroup.empty();
    look_at_sockets(node);
    process_state(node, "started", pid);
  }

  void on_end(std::size_t node, const deploy::EndInfo& end) override {
    if (!armed_ || disarmed_) return;
    for (std::size_t i = 0; i < plan_->schedule.faults.size(); ++i) {
      if (!crashes_from_here(i) || state_->state(i) != ROSE_FIRED || node_of(i) != node) continue;
      follow_[i].acted = true;
      crash_once(i);
    }
    // Before it may start again.
    for (const std::size_t i : plan_->losses)
      if (state_->state(i) == ROSE_FIRED && node_of(i) == node && !follow_[i].nobody) lose_power(i);
    process_state(node, end.signalled ? "crashed" : "exited", end.pid);
  }

 private:
  // Calls are decided by the kernel's program; what it cannot do itself is left to us.
  [[nodiscard]] bool in_kernel() const { return plan_->backend.backend == CallBackend::override_return; }

  // The node is killed by us once the fault has fired; else by the supervisor, before it answers the call.
  [[nodiscard]] bool crashes_from_here(std::size_t i) const {
    const auto& chain = plan_->chains[i];
    if (chain.data.kind == ROSE_CHAIN_CRASH) return !chain.call || in_kernel();
    return in_kernel() && chain.data.kind == ROSE_CHAIN_SYSCALL && chain.fault->then_do == schedule::ThenDo::crash;
  }

  [[nodiscard]] bool loses(std::size_t i) const { return plan_->chains[i].fault->lose != schedule::Loss::nothing; }

  void lose_power(std::size_t i) {
    if (follow_[i].lost) return;
    auto lost = power_.lose(*plan_, i, node_of(i));
    if (!lost) {
      follow_[i].failed = true;
      trouble(i, lost.error());
    } else {
      const std::lock_guard lock(mutex_);
      follow_[i].what_was_lost = std::move(*lost);
    }
    follow_[i].lost = true;
  }

  [[nodiscard]] bool may_pause(std::size_t node) const {
    return std::any_of(plan_->chains.begin(), plan_->chains.end(), [node](const PlannedChain& chain) {
      return chain.data.kind == ROSE_CHAIN_PAUSE && Plan::may_be(chain.data.node, node);
    });
  }

  [[nodiscard]] const Mark* mark_named(const std::string& name) const {
    const auto at = std::find_if(plan_->marks.begin(), plan_->marks.end(), [&](const Mark& one) { return one.name == name; });
    return at == plan_->marks.end() ? nullptr : &*at;
  }

  // Of a fault, event or step.
  [[nodiscard]] std::size_t chain_named(const std::string& name) const {
    if (const Mark* mark = mark_named(name); mark != nullptr) return mark->chain;
    const auto& faults = plan_->schedule.faults;
    return static_cast<std::size_t>(std::find_if(faults.begin(), faults.end(), [&](const auto& one) { return one.id == name; }) - faults.begin());
  }

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

  // For nodes that come in through `rose exec`: before setup starts them.
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
      entered_[node] = true;
      supervisors_[node]->add_listener(pid, std::move(listener), std::move(ledger));
    };
    ROSE_TRY(exec_socket_, ExecSocket::open(run_dir / deploy::kExecSocket, std::move(host)));
    return {};
  }

  // Conditions met by userspace are counted as the kernel does: all that are current first, then each of them once.
  void process_state(std::size_t node, std::string_view what, pid_t pid) {
    std::vector<std::size_t> current;
    for (std::size_t i = 0; i < plan_->conditions.size(); ++i) {
      const auto& condition = plan_->conditions[i];
      if (condition.data.kind == ROSE_ON_PROCESS && state_->is_there(condition.data.node, node) &&
          condition.source->state == what && is_current(i)) {
        current.push_back(i);
      }
    }
    for (const auto i : current) state_->count(i, static_cast<std::uint32_t>(pid), 0, now_ns(), static_cast<std::uint32_t>(node));
  }

  // Of a chain that has fired: it is known then.
  [[nodiscard]] std::size_t node_of(std::size_t chain) const {
    const auto node = state_->node(chain);
    ROSE_ASSERT(node > 0);
    return node - 1;
  }
  [[nodiscard]] const std::string& name_of(std::size_t chain) const { return plan_->nodes[node_of(chain)]; }

  [[nodiscard]] bool is_current(std::size_t condition) const {
    const auto& data = plan_->conditions[condition].data;
    return state_->state(data.chain) == ROSE_WAITING &&
           ROSE_POSITION(state_->progress(data.chain)) == data.position;
  }

  // When the condition became the current one; 0: it counts from the very beginning. Nothing while the stamp isn't
  // written yet: who writes it rings afterwards.
  [[nodiscard]] std::optional<std::uint64_t> current_since(std::size_t condition) const {
    const auto& data = plan_->conditions[condition].data;
    if (data.position > 0) {
      const auto met = state_->met_ns(condition - 1);
      return met == 0 ? std::nullopt : std::optional(met);
    }
    return state_->opened_ns(data.chain);
  }

  void run() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    ::prctl(PR_SET_TIMERSLACK, 1UL);  // faults at their exact time
    while (!disarmed_) {
      const auto round = wanted_round();
      const auto next = reconcile();
      end_round(round);
      const auto now = now_ns();
      const auto left = next > now ? next - now : 0;
      const timespec limit{static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
      pollfd watched[2] = {{programs_->bell_fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      (void)::ppoll(watched, 2, next == kNever ? nullptr : &limit, nullptr);
      std::uint64_t count = 0;
      [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
      programs_->drain();
    }
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

  // Looks at the whole state, does what is due and says when it must look again at the latest. Everything is found
  // in the shared state, so a lost bell loses nothing.
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
          // Its last condition's thread is about to fire it; but it may be waiting for somebody to take a role.
          if (chain.data.node >= ROSE_ROLE_NODES) again |= state_->settle(i, 0, 0, now_ns());
          continue;
        }
        const std::size_t current = chain.data.first_condition + position;
        const auto kind = plan_->conditions[current].data.kind;
        if (kind == ROSE_ON_ELAPSED) {
          const auto due = due_ns(current);
          if (due > now_ns()) {
            next = std::min(next, due);
          } else {
            state_->count(current, 0, 0, now_ns());
            again = true;
          }
        } else if (kind == ROSE_ON_ROLE) {
          // Who takes it from now on meets it in the kernel; this is for who has it already.
          const auto& data = plan_->conditions[current].data;
          const auto holder = state_->holder(data.role);
          if (holder != 0 && state_->is_there(data.node, holder - 1)) {
            state_->count(current, 0, 0, now_ns(), holder - 1);
            again = true;
          }
        }
      }
      again |= read_logs(next);
    }
    return next;
  }

  [[nodiscard]] std::uint64_t due_ns(std::size_t condition) const {
    const auto since = current_since(condition);
    if (!since) return kNever;
    std::uint64_t base = *since;
    if (base == 0) base = workload_ns_;
    return base == 0 ? kNever : base + static_cast<std::uint64_t>(plan_->conditions[condition].source->elapsed_ns);
  }

  // True when a line moved something.
  bool read_logs(std::uint64_t& next) {
    bool moved = false, waiting = false;
    std::vector<bool> needed(plan_->nodes.size());
    for (std::size_t i = 0; i < plan_->conditions.size(); ++i) {
      const auto& condition = plan_->conditions[i];
      if (condition.data.kind != ROSE_ON_LOG || !state_->pending(i)) continue;
      waiting = true;
      for (std::size_t node = 0; node < needed.size(); ++node) {
        if (!Plan::may_be(condition.data.node, node)) continue;
        needed[node] = true;
        moved = moved || read_log(i, node);
      }
    }
    if (waiting) next = std::min(next, now_ns() + kLogPollNs);
    // After the reading: what stands in a sample must not be newer than its time.
    for (std::size_t node = 0; node < needed.size(); ++node) {
      if (needed[node]) tails_[node].sample(now_ns());
    }
    return moved;
  }

  bool read_log(std::size_t i, std::size_t node) {
    const auto& condition = plan_->conditions[i];
    if (!is_current(i)) return false;
    auto& reader = readers_[{i, node}];
    if (!reader.begun) {
      const auto since = current_since(i);
      if (!since) return false;
      tails_[node].begin(reader, *since);
    }
    bool moved = false;
    LogTail::read(reader, [&](std::string_view line) {
      if (!state_->is_there(condition.data.node, node) || !condition.log->found_in(line)) return true;
      state_->count(i, 0, 0, now_ns(), static_cast<std::uint32_t>(node));
      if (is_current(i)) return true;
      moved = true;
      return false;
    });
    return moved;
  }

  // Carries out what has fired, and ends what has lasted long enough. Returns when to look again.
  std::uint64_t follow_fired(std::size_t i) {
    auto& follow = follow_[i];
    const auto& chain = plan_->chains[i];
    const auto fired = state_->fired_ns(i);
    switch (chain.data.kind) {
      case ROSE_CHAIN_CRASH:
      case ROSE_CHAIN_SYSCALL:
        if (crashes_from_here(i) && !follow.acted.exchange(true)) {
          workers_[node_of(i)]->add([this, i] { crash_once(i); });
        }
        return kNever;
      case ROSE_CHAIN_PAUSE:
        if ((!chain.call || in_kernel()) && !follow.acted.exchange(true)) {
          workers_[node_of(i)]->add([this, i] { pause(i); });
        }
        if (follow.ending || chain.fault->duration_ns == 0) return kNever;
        if (const auto due = fired + static_cast<std::uint64_t>(chain.fault->duration_ns); due > now_ns()) return due;
        order_end(i);
        return kNever;
      case ROSE_CHAIN_PARTITION:
      case ROSE_CHAIN_NETWORK: {
        if (!follow.acted.exchange(true)) log::debug("fault '{}' is in force", chain.fault->id);
        const auto until = state_->until_ns(i);
        if (follow.ended_ns != 0 || until == kNever) return kNever;
        if (until > now_ns()) return until;
        follow.ended_ns = until;
        return kNever;
      }
      case ROSE_CHAIN_CLOCK: {
        if (!follow.acted.exchange(true)) {
          clocks_[node_of(i)]->begin(i, chain.fault->clock);
          tell_clocks(i);
        }
        const auto until = state_->until_ns(i);
        if (follow.ended_ns != 0 || until == kNever) return kNever;
        if (until > now_ns()) return until;
        follow.ended_ns = until;
        clocks_[node_of(i)]->end(i);
        tell_clocks(i);
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
        if (!follow.acted.exchange(true)) workers_[node_of(i)]->add([this, i] { limit(i); });
        const auto until = state_->until_ns(i);
        if (follow.ended_ns != 0) return kNever;
        if (until <= now_ns()) {
          follow.ended_ns = until;
          workers_[node_of(i)]->add([this, i] {
            if (auto ok = limits_->end(i); !ok) trouble(i, ok.error());
          });
          return kNever;
        }
        if (!limits_->unsettled(i)) return until;
        workers_[node_of(i)]->add([this, i] { limits_->settle(i); });
        return std::min(until, now_ns() + kSettlePollNs);
      }
      case ROSE_CHAIN_END: {
        const auto target = chain.data.target;
        if (plan_->chains[target].data.kind == ROSE_CHAIN_PAUSE && !follow_[target].ending) order_end(target);
        return kNever;
      }
      default:
        return kNever;
    }
  }

  void limit(std::size_t i) {
    if (auto ok = limits_->begin(i, node_of(i)); !ok) {
      follow_[i].failed = true;
      trouble(i, ok.error());
    }
    ring();  // it may have to be looked after
  }

  // Those that nothing has to come before are wrong when the first node starts.
  void begin_clocks() {
    for (std::size_t i = 0; i < plan_->schedule.faults.size(); ++i) {
      const auto& chain = plan_->chains[i];
      if (chain.data.kind != ROSE_CHAIN_CLOCK || chain.data.conditions != 0 || (chain.data.flags & ROSE_AT_WORKLOAD) != 0) continue;
      if (ROSE_POSITION(state_->progress(i)) == ROSE_CLOSED || !state_->fire(i, 0, 0, now_ns())) continue;
      follow_[i].acted = true;
      clocks_[node_of(i)]->begin(i, chain.fault->clock);
    }
  }

  // Again a little later: a process that is being made at this moment has its parent's clock, and is not in the node's list yet.
  void tell_clocks(std::size_t i) {
    const std::size_t node = node_of(i);
    const bool ends = follow_[i].ended_ns != 0;
    workers_[node]->add([this, i, node, ends] {
      for (const unsigned after_us : {0U, 2'000U, 20'000U}) {
        ::usleep(after_us);
        const std::size_t told = clocks_[node]->tell(deployment_->processes(node));
        if (!ends) state_->add_injected(i, told > state_->injected(i) ? told - state_->injected(i) : 0);
      }
    });
  }

  // What the nodes still do, they do at the real time.
  void end_clocks() {
    for (std::size_t node = 0; node < clocks_.size(); ++node) {
      if (!clocks_[node] || deployment_ == nullptr) continue;
      for (std::size_t i = 0; i < plan_->schedule.faults.size(); ++i) clocks_[node]->end(i);
      (void)clocks_[node]->tell(deployment_->processes(node));
    }
  }

  void order_end(std::size_t i) {
    follow_[i].ending = true;
    workers_[node_of(i)]->add([this, i] { end_pause(i); });
  }

  // By the node's worker, or by who hears first that the process which the kernel killed on the spot has ended: the
  // rest of the node must be gone before it starts again, and the new start be spared.
  void crash_once(std::size_t i) {
    const std::lock_guard lock(crashing_);
    const auto& chain = plan_->chains[i];
    if (std::exchange(follow_[i].crashed, true)) return;
    crash(i, chain.data.kind == ROSE_CHAIN_CRASH ? chain.fault->signal : SIGKILL);
  }

  void trouble(std::size_t i, const Error& error) {
    log::warning("{} '{}': {}", plan_->chains[i].data.kind == ROSE_CHAIN_MARK ? "event" : "fault", plan_->chains[i].fault->id, error.message);
    const std::lock_guard lock(mutex_);
    follow_[i].trouble = error.message;
  }

  // The processes that a process fault is about.
  [[nodiscard]] std::vector<pid_t> targets(std::size_t i) const {
    const auto& chain = plan_->chains[i];
    if (chain.fault->scope == schedule::Scope::all) return deployment_->processes(node_of(i));
    const pid_t main = deployment_->main_pid(node_of(i));
    if (chain.fault->scope == schedule::Scope::others) {
      std::vector<pid_t> pids = deployment_->processes(node_of(i));
      std::erase(pids, main);
      return pids;
    }
    return main > 0 ? std::vector<pid_t>{main} : std::vector<pid_t>{};
  }

  // Ends the node. The process that met the last condition may have been signalled by the kernel already.
  bool crash(std::size_t i, int signal, pid_t caller = 0) {
    const auto& chain = plan_->chains[i];
    const auto done = static_cast<pid_t>(state_->chain(i).signalled);
    const auto pids = targets(i);
    note_struck(i, pids);
    take_from_outside(i, pids);
    const bool all = chain.fault->scope == schedule::Scope::all;
    // The whole node and its main process are the deployment's to kill; others are signalled one by one.
    const bool at_once = signal == SIGKILL && chain.fault->scope != schedule::Scope::others;
    std::uint64_t count = 0;
    bool hit = false;
    if (at_once) {
      if (auto ok = deployment_->signal(node_of(i), all ? deploy::Scope::all : deploy::Scope::main, signal); !ok) {
        // The one that was killed on the spot may have been the last: nothing is left to signal.
        if (ok.error().kind != ErrorKind::inconclusive) trouble(i, ok.error());
      }
      count = pids.size();
      hit = all || std::find(pids.begin(), pids.end(), caller) != pids.end();
    } else {
      for (const pid_t pid : pids) {
        if (pid == done || ::kill(pid, signal) != 0) continue;
        ++count;
        hit = hit || pid == caller;
      }
    }
    // Killed on the spot and gone from the list, or still in it: it is one either way.
    const bool listed = std::find(pids.begin(), pids.end(), done) != pids.end();
    if (done != 0 && listed && at_once) --count;
    // A syscall fault with then = "crash" counts the calls it changed, which the supervisor has done.
    if (chain.data.kind == ROSE_CHAIN_CRASH) state_->add_injected(i, count);
    if (done == 0 && count == 0) follow_[i].nobody = true;
    add_detail(i, fmt::format("{} to {} of {}", kernel::signal_name(signal),
                              count + (done != 0 ? 1 : 0) == 1 ? "1 process" : fmt::format("{} processes", count + (done != 0 ? 1 : 0)),
                              name_of(i)));
    return hit;
  }

  void note_struck(std::size_t i, const std::vector<pid_t>& pids) {
    const std::lock_guard lock(mutex_);
    follow_[i].struck = pids;
  }

  void add_detail(std::size_t i, std::string text) {
    const std::lock_guard lock(mutex_);
    follow_[i].detail = std::move(text);
  }

  void pause(std::size_t i) {
    const auto& chain = plan_->chains[i];
    const auto pids = targets(i);
    if (pids.empty() && state_->chain(i).signalled == 0) {
      follow_[i].nobody = true;
      return;
    }
    follow_[i].paused = true;
    note_struck(i, pids);
    const bool all = chain.fault->scope == schedule::Scope::all;
    if (auto ok = deployment_->pause(node_of(i), all ? deploy::Scope::all : deploy::Scope::main); !ok) {
      trouble(i, ok.error());
    }
    take_from_outside(i, pids);
    paused(i, pids.size());
  }

  // The main process, if it is among them.
  void take_from_outside(std::size_t i, const std::vector<pid_t>& pids) {
    if (pids.empty() || !hits_from_outside(i)) return;
    const auto main = deployment_->main_pid(node_of(i));
    const bool listed = std::find(pids.begin(), pids.end(), main) != pids.end();
    stacks_->take_process(i, listed ? main : pids.front(), what_happens(i, ""), plan_->chains[i].data.kind == ROSE_CHAIN_PAUSE);
  }

  void paused(std::size_t i, std::size_t processes) {
    state_->add_injected(i, std::max<std::size_t>(processes, 1) - (state_->chain(i).signalled != 0 ? 1 : 0));
    add_detail(i, fmt::format("{} of {} stopped", processes == 1 ? "1 process" : fmt::format("{} processes", processes),
                              name_of(i)));
    process_state(node_of(i), "paused", static_cast<pid_t>(state_->chain(i).pid));
  }

  // In the node's worker, or when that has ended.
  void end_pause(std::size_t i) {
    auto& follow = follow_[i];
    if (!follow.paused.exchange(false)) return;
    const auto& chain = plan_->chains[i];
    const bool all = chain.fault->scope == schedule::Scope::all;
    // Another pause of the same kind may still be on.
    bool other = false;
    for (std::size_t k = 0; k < plan_->schedule.faults.size(); ++k) {
      other = other || (k != i && follow_[k].paused && node_of(k) == node_of(i) &&
                        plan_->chains[k].fault->scope == chain.fault->scope);
    }
    if (!other) {
      if (auto ok = deployment_->resume(node_of(i), all ? deploy::Scope::all : deploy::Scope::main); !ok) {
        trouble(i, ok.error());
      }
      // What the kernel program stopped on the spot, if it still is the node's.
      const auto stopped = static_cast<pid_t>(state_->chain(i).signalled);
      const auto pids = deployment_->processes(node_of(i));
      if (stopped != 0 && std::find(pids.begin(), pids.end(), stopped) != pids.end()) ::kill(stopped, SIGCONT);
    }
    release_calls(i);
    follow.ended_ns = now_ns();
  }

  // What supervisors hold for this chain goes on.
  void release_calls(std::size_t i) {
    for (const auto& supervisor : supervisors_)
      if (supervisor) supervisor->release(i);
  }

  // Of a thread that waits: it goes on.
  void end_block(std::size_t i, std::uint64_t when) {
    follow_[i].ended_ns = when;
    waits_->release(i, when);
    if (const auto cap = plan_->chains[i].data.duration_ns; !plan_->chains[i].fault->until.empty() && when >= state_->fired_ns(i) + cap) {
      const std::lock_guard lock(mutex_);
      follow_[i].trouble = fmt::format("let go after {}: what it waited for had not come", format_duration(static_cast<std::int64_t>(cap)));
    }
  }

  // ---- FaultActions: called by supervisors ----
  bool crash_now(std::size_t i, pid_t tgid, int signal) override {
    follow_[i].acted = true;
    return crash(i, signal, tgid);
  }

  bool pause_now(std::size_t i, pid_t tgid) override {
    const auto& chain = plan_->chains[i];
    follow_[i].acted = true;
    const auto pids = targets(i);
    const bool mine = std::find(pids.begin(), pids.end(), tgid) != pids.end();
    if (pids.empty()) return false;
    follow_[i].paused = true;
    note_struck(i, pids);
    if (chain.fault->scope == schedule::Scope::all) {
      // Not waiting until all stand still: the caller here does so only in its held call.
      if (auto ok = deployment_->pause_at_once(node_of(i)); !ok) trouble(i, ok.error());
    } else if (auto ok = deployment_->pause(node_of(i), deploy::Scope::main); !ok) {
      trouble(i, ok.error());
    }
    paused(i, pids.size());
    ring();
    return mine;
  }

  void block_now(std::size_t i) override {
    follow_[i].acted = true;
    state_->add_injected(i);
    ring();  // somebody has to look for its end
  }

  void turn_waits(std::size_t i) override {
    waits_->came_early(i);
    ring();
  }

  void fired_at(std::size_t i, const std::string& call) override {
    const std::lock_guard lock(mutex_);
    follow_[i].call = call;
  }

  void changed(std::size_t i, pid_t tid, int syscall, std::uint64_t at) override {
    const std::lock_guard lock(deeds_mutex_);
    if (deeds_.calls.size() < kMostChangedCalls) deeds_.calls.push_back({i, static_cast<std::int64_t>(at), tid, syscall});
  }

  // Before it is done: afterwards nothing may be left of the thread.
  void hit(std::size_t i, NotifiedCall& call) override {
    if (plan_->stacks == 0) return;
    const auto tgid = call.tgid();
    if (tgid != 0) stacks_->take(i, tgid, call.tid(), what_happens(i, call.describe()));
  }

  // "at the entry of f", "behind f+0x2a"
  static std::string place_words(const schedule::Fault& fault) {
    if (fault.at_line) return fmt::format("at line {} of {}", *fault.at_line, fault.function);
    if (fault.offset && *fault.offset != 0) return fmt::format("at {}+{:#x}", fault.function, *fault.offset);
    return fmt::format("at the entry of {}", fault.function);
  }

  // ---- stacks ----
  // What the fault does to the thread, for people.
  [[nodiscard]] std::string what_happens(std::size_t i, const std::string& call) const {
    const auto& chain = plan_->chains[i];
    const auto& fault = *chain.fault;
    if (fault.kind == schedule::FaultKind::exception) return fmt::format("{} throws {}", fault.function, fault.throws);
    std::string what = fault.kind == schedule::FaultKind::pause ? "is stopped" : fmt::format("gets {}", kernel::signal_name(fault.signal));
    if (fault.kind == schedule::FaultKind::block && chain.call) return fmt::format("waits ahead of {}", call.empty() ? chain.call->describe() : call);
    if (fault.kind == schedule::FaultKind::block) return fmt::format("waits {}", place_words(fault));
    if (fault.kind == schedule::FaultKind::crash || fault.kind == schedule::FaultKind::pause) {
      if (!call.empty()) return fmt::format("{} ahead of {}", what, call);
      if (chain.data.conditions == 0) return what;
      return fmt::format("{} at the {}", what, plan_->conditions[chain.data.first_condition + chain.data.conditions - 1].words);
    }
    const auto where = call.empty() && chain.call ? chain.call->describe() : call;
    if (fault.then_do == schedule::ThenDo::crash) return fmt::format("gets SIGKILL in {}", where);
    if (fault.error != 0) return fmt::format("{} fails with {}", where, kernel::errno_name(fault.error));
    if (fault.result) return fmt::format("{} returns {}", where, *fault.result);
    return fault.delay_ns > 0 ? fmt::format("{} waits {}", where, format_duration(fault.delay_ns)) : where;
  }

  void tell_stacks() {
    if (plan_->stacks == 0 || deployment_ == nullptr) return;
    std::vector<std::vector<pid_t>> living;
    for (std::size_t i = 0; i < plan_->nodes.size(); ++i) living.push_back(deployment_->processes(i));
    auto told = stacks_->tell(
        living, [this](std::size_t i) { return node_of(i); },
        [this](std::size_t i) { return what_happens(i, programs_->fired_at(i)); });
    for (auto& [i, stacks] : told) {
      for (auto& stack : stacks) stack.ns = since_workload(static_cast<std::uint64_t>(stack.ns));
    }
    const std::lock_guard lock(mutex_);
    told_ = std::move(told);
  }

  // Of a process fault that nothing in the node brought about, or not in the node it is about.
  [[nodiscard]] bool hits_from_outside(std::size_t i) const {
    return plan_->stacks != 0 && state_->chain(i).signalled == 0 && !plan_->chains[i].call && programs_->stacks(i).empty();
  }

  // ---- results ----
  [[nodiscard]] std::int64_t since_workload(std::uint64_t at) const {
    if (at == 0) return 0;
    // A run whose workload never began counts from when the schedule was armed.
    const std::uint64_t zero = workload_ns_ != 0 ? workload_ns_.load() : armed_ns_;
    const auto since = static_cast<std::int64_t>(at) - static_cast<std::int64_t>(zero);
    return since == 0 ? 1 : since;  // 0 means "did not" in places
  }

  [[nodiscard]] std::vector<schedule::FaultOutcome> compute() const {
    std::vector<schedule::FaultOutcome> all;
    for (std::size_t i = 0; i < plan_->schedule.faults.size(); ++i) {
      const auto& chain = plan_->chains[i];
      const auto& shared = state_->chain(i);
      const auto& fault = *chain.fault;
      const auto now_state = state_->state(i);
      schedule::FaultOutcome out;
      out.id = fault.id;
      out.fired = now_state == ROSE_FIRED && !follow_[i].nobody && !follow_[i].failed && (!loses(i) || follow_[i].lost);
      out.armed = out.fired || now_state == ROSE_FIRED || now_state == ROSE_ARMED;
      out.withdrawn = now_state != ROSE_FIRED && (now_state == ROSE_WITHDRAWN || state_->lost(i));
      out.seen = state_->seen(i);
      const auto stopped = programs_->stopped(i);
      const auto carried = programs_->carried(i);
      out.injected = state_->injected(i);
      if (chain.data.kind == ROSE_CHAIN_PARTITION) out.injected = stopped.packets;
      if (chain.data.kind == ROSE_CHAIN_NETWORK) {
        out.injected = carried.link.touched;
        out.seen = carried.link.matched;
      }
      if (now_state == ROSE_FIRED) {
        out.fired_ns = since_workload(state_->fired_ns(i));
        out.pid = static_cast<int>(shared.pid);
        out.tid = static_cast<int>(shared.tid);
        out.node = name_of(i);
      }
      out.ended_ns = since_workload(follow_[i].ended_ns);
      const auto at = follow_[i].call.empty() && now_state == ROSE_FIRED ? programs_->fired_at(i) : follow_[i].call;
      out.detail = follow_[i].detail.empty() ? at
                   : at.empty()              ? follow_[i].detail
                                             : fmt::format("{} at {}", follow_[i].detail, at);
      if (out.fired && chain.data.kind == ROSE_CHAIN_PARTITION) {
        std::vector<std::string> side{name_of(i)};
        side.insert(side.end(), fault.side.begin(), fault.side.end());
        out.detail = fmt::format("{} cut off, {} packets stopped", fmt::join(side, " and "), out.injected);
        if (fault.reject) out.detail += fmt::format(", {} of them answered", stopped.rejected);
      }
      if (out.fired && chain.data.kind == ROSE_CHAIN_CLOCK)
        out.detail = out.injected == 0 ? fmt::format("{}, for all processes that begin", out.node)
                                       : fmt::format("{}, {} that ran and all that begin", out.node, out.injected == 1 ? "1 process" : fmt::format("{} processes", out.injected));
      if (out.fired && chain.data.kind == ROSE_CHAIN_NETWORK) out.detail = link_detail(carried);
      if (out.fired && chain.data.kind == ROSE_CHAIN_RESOURCE) std::tie(out.detail, out.injected) = limits_->told(i);
      if (out.fired && chain.data.kind == ROSE_CHAIN_BLOCK) {
        out.detail = fmt::format("a thread {}", what_happens(i, follow_[i].call));
        if (waits_->held(i) == Hold::stopped) out.detail += "; its process stood still for a moment";
      }
      if (out.fired && chain.data.kind == ROSE_CHAIN_EXCEPTION) {
        const auto entry = entry_of(i);
        const auto where = methods_.found_in(entry);
        out.detail = fmt::format("{} thrown in {}", fault.throws, where.empty() ? fault.function : where);
        // Ordered, and not done.
        if (!methods_.not_thrown(entry).empty()) out.fired = false, out.injected = 0;
      }
      if (!follow_[i].what_was_lost.empty()) out.detail += fmt::format("; {}", follow_[i].what_was_lost);
      if (!follow_[i].trouble.empty()) out.detail += fmt::format(" ({})", follow_[i].trouble);
      const auto progress = state_->progress(i);
      for (std::uint32_t k = 0; k < chain.data.conditions; ++k) {
        const std::size_t id = chain.data.first_condition + k;
        schedule::ConditionOutcome condition;
        condition.words = plan_->conditions[id].words;
        condition.wanted = plan_->conditions[id].data.count;
        const auto position = ROSE_POSITION(progress);
        if (position != ROSE_CLOSED && position > k) {
          condition.met = true;
          const auto& met = state_->condition(id);
          condition.met_ns = since_workload(state_->met_ns(id));
          condition.seen = plan_->conditions[id].data.count;
          condition.pid = static_cast<int>(met.met_pid);
          condition.tid = static_cast<int>(met.met_tid);
          const auto where = met.node < ROSE_ROLE_NODES ? met.node : met.met_node - 1;
          if (where < plan_->nodes.size() && met.kind != ROSE_ON_ELAPSED) condition.node = plan_->nodes[where];
        } else if (position == k) {
          condition.seen = ROSE_SEEN(progress);
        }
        out.conditions.push_back(condition);
      }
      if (const auto told = told_.find(i); told != told_.end() && out.fired) out.stacks = told->second;
      if (!out.fired) out.why_not = why_not(i, progress, out.withdrawn);
      all.push_back(std::move(out));
    }
    return all;
  }

  // "12 packets delayed, 3 lost, of 40"
  static std::string link_detail(const Programs::Carried& carried) {
    std::vector<std::string> parts;
    const auto add = [&](std::uint64_t count, const char* what) {
      if (count > 0) parts.push_back(fmt::format("{} {}", count, what));
    };
    add(carried.held.held - carried.held.ahead - carried.held.overflown, "held back");
    add(carried.held.ahead, "sent ahead");
    add(carried.link.lost, "lost");
    add(carried.held.overflown, "lost in a full queue");
    add(carried.link.duplicated, "duplicated");
    add(carried.link.corrupted, "corrupted");
    if (parts.empty()) return fmt::format("{} packets went over it unharmed", carried.link.matched);
    return fmt::format("of {} packets {}", carried.link.matched, fmt::join(parts, ", "));
  }

  // Of an exception, as the nodes' agents know it.
  [[nodiscard]] std::uint32_t entry_of(std::size_t chain) const {
    const auto& throws = plan_->throws;
    const auto at = std::find_if(throws.begin(), throws.end(), [chain](const rose_throw& one) { return one.chain == chain; });
    return ROSE_SITE_THROW | static_cast<std::uint32_t>(at - throws.begin());
  }

  [[nodiscard]] std::string why_not(std::size_t i, std::uint64_t progress, bool withdrawn) const {
    const auto& chain = plan_->chains[i];
    const auto& fault = *chain.fault;
    if (withdrawn) {
      for (std::size_t k = 0; k < plan_->schedule.faults.size(); ++k) {
        if (k != i && plan_->schedule.faults[k].group == fault.group && state_->state(k) == ROSE_FIRED) {
          return fmt::format("'{}' of the same group fired first", plan_->schedule.faults[k].id);
        }
      }
      return "another of its group fired first";
    }
    if (follow_[i].nobody) {
      return fmt::format("{} had no living process when its time came", name_of(i));
    }
    if (state_->state(i) == ROSE_FIRED && loses(i) && !follow_[i].lost) return "the run ended before the disk lost its power";
    if (follow_[i].failed) return fmt::format("its time came, but {}", follow_[i].trouble);
    const auto position = ROSE_POSITION(progress);
    const bool held = waits_->began(i);
    if (position == ROSE_CLOSED || held) {
      if (chain.data.flags & ROSE_AT_WORKLOAD) return "the workload never began";
      std::string missing;
      for (const auto& id : fault.after) {
        if (state_->fired_ns(chain_named(id)) == 0) missing += fmt::format("{}'{}'", missing.empty() ? "" : " and ", id);
      }
      if (held) return fmt::format("it was about to come, and waited for {}, which did not come", missing);
      return fmt::format("it comes after {}, which did not {}", missing, plan_->marks.empty() ? "fire" : "come");
    }
    if (position < chain.data.conditions) {
      const auto& condition = plan_->conditions[chain.data.first_condition + position];
      const auto seen = ROSE_SEEN(progress);
      std::string how = fmt::format("{} of {} seen", seen, condition.data.count);
      if (condition.data.kind == ROSE_ON_ELAPSED) how = "the run ended before";
      if (condition.data.kind == ROSE_ON_FUNCTION && seen == 0) how = "never reached";
      if (condition.data.kind == ROSE_ON_FUNCTION && seen == 0 && !condition.source->offset) how = "never entered";
      if (condition.data.kind == ROSE_ON_ROLE) how = "it never was";
      const bool seen_in_kernel = condition.data.kind == ROSE_ON_FUNCTION || condition.data.kind == ROSE_ON_SYSCALL || condition.data.kind == ROSE_ON_ROLE;
      if (const auto where = condition.data.node; seen_in_kernel && where < blind_.size() && blind_[where]) {
        how = fmt::format("{} lives in the machine's top cgroup, where its calls and functions are not told from others'; "
                          "start it in a cgroup of its own", plan_->nodes[where]);
      } else if (condition.data.kind == ROSE_ON_FUNCTION && seen == 0) {
        const auto why = methods_.unreachable(chain.data.first_condition + position);
        if (!why.empty()) how += fmt::format(" ({})", why);
      }
      return fmt::format("condition {} of {} ({}) was not met: {}", position + 1, chain.data.conditions, condition.words, how);
    }
    if (chain.data.kind == ROSE_CHAIN_MARK && (chain.data.flags & ROSE_WAITS_FOR_CALL) != 0)
      return begun_[i] ? "it was begun, and its command has not ended" : fmt::format("nobody made it: 'rose step {}' in the workload does", fault.id);
    if (state_->node(i) == 0) {
      return fmt::format("its conditions were met, but no node was {}", plan_->where(chain.data.node));
    }
    if (chain.data.kind == ROSE_CHAIN_EXCEPTION) {
      const auto entry = entry_of(i);
      if (const auto why = methods_.not_thrown(entry); state_->fired_ns(i) != 0 && !why.empty()) return fmt::format("its time came, but {}", why);
      const auto seen = state_->seen(i);
      if (seen > 0) return fmt::format("{} came by {} {} times of the {} asked for", name_of(i), fault.function, seen, chain.call_count);
      const auto why = methods_.unreachable(entry);
      return fmt::format("{} never came by {} once it was armed{}", name_of(i), fault.function, why.empty() ? "" : fmt::format(" ({})", why));
    }
    if (chain.data.kind == ROSE_CHAIN_BLOCK && !chain.call) {
      const auto seen = state_->seen(i);
      if (seen > 0) return fmt::format("threads of {} came to {} {} times of the {} asked for", name_of(i), fault.function, seen, chain.call_count);
      const auto why = methods_.unreachable(block_entry(i));
      return fmt::format("no thread of {} came to {} once it was armed{}", name_of(i), fault.function, why.empty() ? "" : fmt::format(" ({})", why));
    }
    if (chain.call) {
      const auto seen = state_->seen(i);
      if (plan_->enters[node_of(i)] && supervisors_[node_of(i)] && !entered_[node_of(i)]) {
        return fmt::format("no process of {} was started through `rose exec`", name_of(i));
      }
      if (seen == 0) return fmt::format("no call matched {} on {} once it was armed", chain.call->describe(), name_of(i));
      return fmt::format("{} matching calls of {} were seen on {} of the {} asked for", seen, chain.call->describe(),
                         name_of(i), chain.call_count);
    }
    return "its conditions were met as the run ended";
  }

  std::unique_ptr<Plan> plan_;
  std::vector<Follow> follow_;
  std::vector<std::atomic<bool>> begun_;    // by chain: steps of the workload that are being made, or were
  std::vector<std::atomic<bool>> entered_;  // by node: somebody came in by rose exec
  std::vector<std::atomic<bool>> blind_;    // by node: it has no cgroup of its own, so the kernel programs don't know it
  Fd wake_;
  std::unique_ptr<Programs> programs_;
  std::unique_ptr<State> state_;
  deploy::Deployment* deployment_ = nullptr;
  jvm::Session* jvms_ = nullptr;
  std::vector<deploy::NodeInfo> nodes_;
  std::atomic<bool> armed_{false}, disarmed_{false};
  std::atomic<std::uint64_t> workload_ns_{0};
  std::uint64_t armed_ns_ = 0;
  std::vector<LogTail> tails_;
  std::map<std::pair<std::size_t, std::size_t>, LogTail::Reader> readers_;  // by condition and node
  mutable std::mutex deeds_mutex_;
  Deeds deeds_;
  std::mutex rounds_mutex_;
  std::condition_variable round_done_;
  std::uint64_t rounds_wanted_ = 0, rounds_done_ = 0;
  std::mutex crashing_;
  mutable std::mutex mutex_;
  std::optional<std::vector<schedule::FaultOutcome>> final_;
  std::unique_ptr<Stacks> stacks_;
  std::unique_ptr<Limits> limits_;
  PowerLosses power_;
  std::unique_ptr<Waits> waits_;
  Stacks::Told told_;  // under mutex_
  MethodReports methods_;
  std::vector<std::unique_ptr<NodeWorker>> workers_;
  std::thread thread_;
  std::vector<std::unique_ptr<NodeClocks>> clocks_;  // by node: null where none is changed
  std::unique_ptr<ExecSocket> exec_socket_;  // outlives the listeners that came through it: then it tells them that rose goes
  // Last: their threads use all of the above until they have ended.
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
