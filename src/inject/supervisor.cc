#include "inject/supervisor.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"
#include "inject/carry_out.h"
#include "jvm/stacks_layout.h"
#include "kernel/arch.h"

// Linux 6.6: wakes the supervisor on the caller's processor, which makes answers four times faster.
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif

namespace rose::inject {
namespace {

constexpr int kAskedPollMs = 1;  // while a JVM is asked, delays are accurate to a millisecond

void add_to(int eventfd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(eventfd, &one, sizeof one);
}

}  // namespace

struct Supervisor::Decision {
  const PlannedChain* fault = nullptr;  // null: continue unchanged
  std::size_t chain = 0;
  bool first = true;                // the first call that the fault changes
  std::optional<std::size_t> turn;  // the call waits for the turn of this event
};

// disarm() waits until no object of this class is left.
class Supervisor::Work {
 public:
  // Returns nothing when the supervisor has been disarmed.
  static std::optional<Work> begin(Supervisor& owner) {
    const std::lock_guard lock(owner.work_mutex_);
    if (owner.disarmed_) return std::nullopt;
    ++owner.working_;
    return Work(owner);
  }
  // Counts another thread that continues this work.
  [[nodiscard]] Work another() const {
    const std::lock_guard lock(owner_->work_mutex_);
    ++owner_->working_;
    return Work(*owner_);
  }
  Work(Work&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
  Work& operator=(Work&&) = delete;
  ~Work() {
    if (owner_ == nullptr) return;
    // Notify while the lock is held, because the waiting thread may destroy the supervisor next.
    const std::lock_guard lock(owner_->work_mutex_);
    if (--owner_->working_ == 0) owner_->work_done_.notify_all();
  }

 private:
  explicit Work(Supervisor& owner) : owner_(&owner) {}
  Supervisor* owner_;
};

class Supervisor::Listener {
 public:
  Listener(Supervisor& owner, pid_t main_pid, Fd listener, std::shared_ptr<Ledger> ledger)
      : owner_(owner),
        main_pid_(main_pid),
        listener_(std::move(listener)),
        ledger_(std::move(ledger)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    (void)::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
    thread_ = std::thread([this] { run(); });
  }
  ~Listener() {
    stop_ = true;
    add_to(wake_.get());
    thread_.join();
  }

  void release(std::size_t chain) {
    {
      const std::lock_guard lock(mutex_);
      released_.insert(chain);
    }
    add_to(wake_.get());
  }
  void wake() { add_to(wake_.get()); }
  [[nodiscard]] bool done() const { return done_; }

  // True if the kernel itself can do what the fault requires: the complete call, without a given result.
  static bool needs_no_hand(const schedule::Fault& fault) {
    return fault.effect == schedule::Effect::full && fault.error == 0 && !fault.result &&
           fault.then_do == schedule::ThenDo::nothing;
  }

 private:
  struct Worker {
    std::thread thread;
    std::atomic<bool> done{false};
  };

  void run() {
    // Signals are handled by the main thread.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    while (!stop_) {
      pollfd watched[2] = {{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      timespec limit{};
      const bool timed = next_due(limit);
      const int ready = ::ppoll(watched, 2, timed ? &limit : nullptr, nullptr);
      if (ready < 0 && errno != EINTR) break;
      if (watched[1].revents != 0) {
        std::uint64_t count = 0;
        [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
        continue_released();
      }
      send_due();
      if ((watched[0].revents & POLLIN) != 0) {
        receive();
      } else if ((watched[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
        break;  // no process is left that could make calls
      }
    }
    stop_ = true;
    for (auto& worker : workers_) worker.thread.join();
    done_ = true;
  }

  bool next_due(timespec& limit) {
    const std::lock_guard lock(mutex_);
    if (delayed_.empty()) return false;
    const auto now = static_cast<std::uint64_t>(monotonic_ns());
    const auto due = delayed_.begin()->first;
    const auto left = due > now ? due - now : 0;
    limit.tv_sec = static_cast<time_t>(left / 1'000'000'000);
    limit.tv_nsec = static_cast<long>(left % 1'000'000'000);
    return true;
  }

  void send_due() {
    for (;;) {
      seccomp_notif_resp response{};
      {
        const std::lock_guard lock(mutex_);
        if (delayed_.empty()) return;
        if (delayed_.begin()->first > static_cast<std::uint64_t>(monotonic_ns()) && !owner_.disarmed_) return;
        response = delayed_.begin()->second;
        delayed_.erase(delayed_.begin());
      }
      send(response);
    }
  }

  void hold(std::uint64_t id, std::size_t chain) {
    {
      const std::lock_guard lock(mutex_);
      held_.emplace(id, chain);
    }
    // The chain may have been released, or the supervisor disarmed, before the call was in the list.
    continue_released();
  }

  // Continues held calls whose pause or block is over or whose event's turn has come, or all of them after disarm().
  void continue_released() {
    std::vector<std::uint64_t> ids;
    {
      const std::lock_guard lock(mutex_);
      for (auto at = held_.begin(); at != held_.end();) {
        if (owner_.disarmed_ || released_.count(at->second) > 0) {
          ids.push_back(at->first);
          at = held_.erase(at);
        } else {
          ++at;
        }
      }
    }
    for (const auto id : ids) continue_call(id);
  }

  // Returns false if the caller was killed meanwhile (ENOENT).
  bool send(seccomp_notif_resp response) {
    bool sent = false;
    while (!(sent = ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &response) == 0) && errno == EINTR) {
    }
    if (ledger_) ledger_->answered(response.id);
    return sent;
  }
  void continue_call(std::uint64_t id) {
    seccomp_notif_resp response{};
    response.id = id;
    response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    send(response);
  }
  // Returns true if the caller gets this answer, or will get it after a delay.
  bool answer(seccomp_notif_resp response, std::int64_t delay_ns) {
    if (delay_ns <= 0) return send(response);
    const bool waits = alive(response.id);
    const std::lock_guard lock(mutex_);
    delayed_.emplace(static_cast<std::uint64_t>(monotonic_ns()) + static_cast<std::uint64_t>(delay_ns), response);
    // The caller may be a worker, so wake the listener's thread.
    add_to(wake_.get());
    return waits;
  }
  [[nodiscard]] bool alive(std::uint64_t id) const {
    return ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
  }

  void receive() {
    seccomp_notif request{};
    if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) return;  // the caller has already ended
    if (ledger_) ledger_->taken(request.id);
    decide(request);
    while (!later_.empty()) {
      const seccomp_notif next = later_.front();
      later_.pop_front();
      decide(next);
    }
  }

  void decide(const seccomp_notif& request) {
    const auto work = Work::begin(owner_);
    if (request.data.arch != kernel::kAuditArch || !work) {
      continue_call(request.id);
      return;
    }
    std::array<std::uint64_t, 6> arguments{};
    std::copy(std::begin(request.data.args), std::end(request.data.args), arguments.begin());
    auto call = std::make_shared<NotifiedCall>(request.data.nr, static_cast<pid_t>(request.pid), arguments, taker_);
    if (owner_.clocks_ != nullptr && owner_.clocks_->take_read_report(*call)) {
      seccomp_notif_resp response{};
      response.id = request.id;
      send(response);
      return;
    }
    const auto decision = owner_.decide(
        *call, [this, id = request.id] { return alive(id); }, own_exec_, main_pid_, request.data.instruction_pointer);
    if (decision.fault == nullptr && decision.turn) {
      owner_.actions_.turn_waits(*decision.turn);
      hold(request.id, *decision.turn);
    } else if (decision.fault == nullptr) {
      answer_clock_call(*call, request);
    } else {
      hit(decision.chain, *call);
      carry(decision, call, request.id, *work);
    }
  }

  // Takes the caller's stack. A JVM has to be asked for the stack. To answer, the threads of its agent may make calls
  // that the filter selects; meanwhile, such calls continue unchanged. All other calls wait.
  void hit(std::size_t chain, NotifiedCall& call) {
    const auto& asked = owner_.plan_.java_stacks;
    if (owner_.node_ >= asked.size() || !asked[owner_.node_]) {
      owner_.actions_.hit(chain, call);
      return;
    }
    std::atomic<bool> finished{false};
    auto started = start_thread([&] {
      owner_.actions_.hit(chain, call);
      finished = true;
      add_to(wake_.get());
    });
    if (!started) return owner_.actions_.hit(chain, call);
    std::thread asking = *std::move(started);
    while (!finished) {
      pollfd watched[2] = {{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      if (::poll(watched, 2, kAskedPollMs) < 0 && errno != EINTR) break;
      if (watched[1].revents != 0) {
        std::uint64_t count = 0;
        [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
        continue_released();
      }
      send_due();
      if ((watched[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) break;
      seccomp_notif request{};
      if ((watched[0].revents & POLLIN) == 0 || ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &request) != 0)
        continue;
      if (ledger_) ledger_->taken(request.id);
      if (is_agents(static_cast<pid_t>(request.pid))) continue_call(request.id);
      else later_.push_back(request);
    }
    asking.join();
  }
  [[nodiscard]] static bool is_agents(pid_t tid) {
    return read_file(fmt::format("/proc/{}/comm", tid)).value_or("") == jvm::kAgentThread;
  }

  // Answers a call that no syscall fault changes. It may concern a clock that is changed on this node.
  void answer_clock_call(NotifiedCall& call, const seccomp_notif& request) {
    const std::uint64_t id = request.id;
    NodeClocks::Answer answer;
    if (owner_.clocks_ != nullptr)
      answer = owner_.clocks_->answer(call, request.data.instruction_pointer, [this, id] { return alive(id); });
    if (!answer.done) {
      continue_call(id);
      if (answer.afterwards) answer.afterwards();
      return;
    }
    seccomp_notif_resp response{};
    response.id = id;
    if (answer.result < 0) response.error = static_cast<__s32>(answer.result);
    else response.val = answer.result;
    send(response);
  }

  void carry(const Decision& decision, const std::shared_ptr<NotifiedCall>& call, std::uint64_t id, const Work& begun) {
    const auto& fault = *decision.fault->fault;
    if (fault.kind == schedule::FaultKind::crash) {
      finish_crash(decision.chain, *call, id, fault.signal, true);
      return;
    }
    if (fault.kind == schedule::FaultKind::pause) {
      if (owner_.actions_.pause_now(decision.chain, call->tgid())) hold(id, decision.chain);
      else continue_call(id);
      return;
    }
    if (fault.kind == schedule::FaultKind::block) {
      owner_.actions_.block_now(decision.chain);
      hold(id, decision.chain);
      return;
    }
    if (fault.effect == schedule::Effect::none || needs_no_hand(fault) ||
        (schedule::is_short_then_fails(fault) && !decision.first)) {
      respond(decision.chain, fault, *call, id, {});
      return;
    }
    std::optional<CarriedFile> file = carried_file(*call);
    if (!file) {
      owner_.actions_.passed_over(decision.chain, call->describe());
      continue_call(id);
      return;
    }
    const bool quick = file->quick;
    const auto work = [this, &fault, call, id, chain = decision.chain,
                       file = std::make_shared<CarriedFile>(*std::move(file))] {
      const std::int64_t most = fault.effect == schedule::Effect::bytes ? fault.effect_bytes : -1;
      const auto done = carry_out(*call, *file, most, [this, id] { return !stop_ && !owner_.disarmed_ && alive(id); });
      respond(chain, fault, *call, id, Carried{done, was_cut(*call, most, done)});
    };
    if (quick) {
      work();
      return;
    }
    // The call may have to wait for a peer, and other calls must be answered meanwhile, so a worker makes it.
    for (auto at = workers_.begin(); at != workers_.end();) {
      if (at->done) {
        at->thread.join();
        at = workers_.erase(at);
      } else {
        ++at;
      }
    }
    auto& worker = workers_.emplace_back();
    auto thread = start_thread([work, &worker, going_on = begun.another()] {
      work();
      worker.done = true;
    });
    if (thread) {
      worker.thread = *std::move(thread);
      return;
    }
    workers_.pop_back();
    work();  // no thread can be started: let other calls wait rather than this call fail
  }

  struct Carried {
    std::int64_t result = 0;  // of the call that rose has made; -errno if it failed
    bool cut = false;         // it did less than was asked for, because of the fault
  };

  void respond(std::size_t chain, const schedule::Fault& fault, NotifiedCall& call, std::uint64_t id,
               const std::optional<Carried>& carried) {
    const std::int64_t done = carried ? carried->result : 0;
    if (fault.then_do == schedule::ThenDo::crash) {
      finish_crash(chain, call, id, SIGKILL, false);
      return;
    }
    seccomp_notif_resp response{};
    response.id = id;
    if (fault.error != 0 && !(schedule::is_short_then_fails(fault) && carried)) {
      response.error = -fault.error;
    } else if (fault.effect == schedule::Effect::bytes && fault.result == fault.effect_bytes && done >= 0) {
      // A short write returns what was really written. If a program writes in a loop, its last write may be shorter
      // than the fault's result. A result larger than the requested size never occurs in reality, and programs that
      // subtract it from the size would write for ever.
      response.val = done;
    } else if (fault.result) {
      response.val = *fault.result;
    } else if (fault.effect == schedule::Effect::none || needs_no_hand(fault)) {
      response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    } else if (done < 0) {
      response.error = static_cast<__s32>(done);
    } else {
      response.val = done;
    }
    const bool same = carried && !carried->cut && fault.delay_ns <= 0 &&
                      response.error == std::min<std::int64_t>(done, 0) &&
                      response.val == std::max<std::int64_t>(done, 0);
    if (!answer(response, fault.delay_ns)) return;
    if (same) owner_.actions_.had_same_result(chain);
    else owner_.actions_.had_effect(chain);
  }

  void finish_crash(std::size_t chain, NotifiedCall& call, std::uint64_t id, int signal, bool continue_if_spared) {
    const bool hit = owner_.actions_.crash_now(chain, call.tgid(), signal);
    if (hit) owner_.actions_.had_effect(chain);
    if (hit && signal == SIGKILL) {  // the caller is killed in this call, so the call is never executed
      if (ledger_) ledger_->answered(id);
      return;
    }
    seccomp_notif_resp response{};
    response.id = id;
    if (hit || !continue_if_spared) {
      // The signal is delivered before the call returns to the program. If the program handles the signal, the call
      // fails with EINTR.
      response.error = -EINTR;
    } else {
      response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    }
    send(response);
  }

  Supervisor& owner_;
  const pid_t main_pid_;
  bool own_exec_ = true;  // the execve by which rose starts the command may still follow
  Fd listener_;
  std::shared_ptr<Ledger> ledger_;
  std::shared_ptr<FileTaker> taker_ = std::make_shared<FileTaker>();
  Fd wake_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> done_{false};
  std::mutex mutex_;
  std::multimap<std::uint64_t, seccomp_notif_resp> delayed_;
  std::map<std::uint64_t, std::size_t> held_;
  std::set<std::size_t> released_;
  std::list<Worker> workers_;
  std::deque<seccomp_notif> later_;  // arrived while a JVM was asked
  std::thread thread_;
};

Supervisor::Supervisor(const Plan& plan, State& state, Programs* programs, std::size_t node, FaultActions& actions,
                       NodeClocks* clocks)
    : plan_(plan), state_(state), programs_(programs), actions_(actions), clocks_(clocks), node_(node) {
  for (std::size_t i = 0; i < plan.conditions.size(); ++i) {
    if (plan.conditions[i].call && Plan::may_be(plan.conditions[i].data.node, node)) {
      conditions_.push_back(static_cast<std::uint32_t>(i));
    }
  }
  for (std::size_t i = 0; i < plan.schedule.faults.size(); ++i) {
    if (plan.chains[i].call && Plan::may_be(plan.chains[i].data.node, node))
      chains_.push_back(static_cast<std::uint32_t>(i));
  }
}

Supervisor::~Supervisor() {
  disarm();
  const std::lock_guard lock(listeners_mutex_);
  listeners_.clear();
}

void Supervisor::add_listener(pid_t pid, Fd listener, std::shared_ptr<Ledger> ledger) {
  const std::lock_guard lock(listeners_mutex_);
  listeners_.remove_if([](const auto& old) { return old->done(); });
  try {
    listeners_.push_back(std::make_unique<Listener>(*this, pid, std::move(listener), std::move(ledger)));
  } catch (const std::system_error& error) {  // no thread could be started
    actions_.broke_down(fmt::format("calls of node {} cannot be answered, and fail: cannot start a thread: {}",
                                    plan_.nodes[node_], error.code().message()));
  }
}

void Supervisor::release(std::size_t chain) {
  {
    const std::lock_guard lock(counting_);
    released_events_.insert(chain);
  }
  const std::lock_guard lock(listeners_mutex_);
  for (auto& listener : listeners_) listener->release(chain);
}

void Supervisor::disarm() {
  {
    const std::lock_guard lock(work_mutex_);
    disarmed_ = true;
  }
  {
    const std::lock_guard lock(listeners_mutex_);
    for (auto& listener : listeners_) listener->wake();
  }
  std::unique_lock lock(work_mutex_);
  work_done_.wait(lock, [this] { return working_ == 0; });
}

bool Supervisor::is_over(std::size_t chain) const {
  if (state_.state(chain) != ROSE_FIRED) return false;
  const auto& fault = *plan_.chains[chain].fault;
  if (fault.kind != schedule::FaultKind::syscall) return true;
  const std::int64_t calls = schedule::changed_calls(fault);
  return calls >= 0 && state_.injected(chain) >= static_cast<std::uint64_t>(calls);
}

bool Supervisor::is_too_early(std::uint32_t id, pid_t tid) {
  const auto& condition = plan_.conditions[id].data;
  const auto& chain = plan_.chains[condition.chain].data;
  if ((chain.flags & (ROSE_IN_TURN | ROSE_HOLDS)) != ROSE_IN_TURN || condition.position + 1 != chain.conditions)
    return false;
  if (!state_.is_there(condition.node, node_) ||
      rose_is_current(&state_.chain(condition.chain), &condition, static_cast<__u32>(tid)) == 0)
    return false;
  if (++begun_[id] < condition.count) return false;
  return state_.predecessors_left(condition.chain) > 0 && released_events_.count(condition.chain) == 0;
}

Supervisor::Decision Supervisor::decide(NotifiedCall& call, const std::function<bool()>& alive, bool& own_exec,
                                        pid_t main_pid, std::uint64_t ip) {
  const std::lock_guard lock(counting_);
  if (own_exec && call.tid() == main_pid) {
    // The only call that the launcher makes after installing its filter is this execve. If execve is not selected, the
    // first call belongs to the node.
    own_exec = false;
    if (call.number() == SYS_execve || call.number() == SYS_execveat) return {};
  }
  // First match the call, then check that the caller is alive, and only then count: what was read from a caller that
  // has died may belong to another process.
  std::vector<std::uint32_t> returning;
  for (const auto id : conditions_) {
    if (state_.pending(id) && plan_.conditions[id].call->matches(call)) returning.push_back(id);
  }
  std::vector<std::uint32_t> meant;
  for (const auto id : chains_) {
    if (state_.state(id) == ROSE_WITHDRAWN || is_over(id)) continue;
    if (plan_.chains[id].call->matches(call)) meant.push_back(id);
  }
  if (returning.empty() && meant.empty()) {
    if (programs_ != nullptr && !conditions_.empty()) programs_->untag(call.tid());
    return {};
  }
  const pid_t tgid = call.tgid();
  if (!alive()) return {};
  if (programs_ != nullptr && !conditions_.empty()) {
    if (returning.empty()) {
      programs_->untag(call.tid());
    } else {
      programs_->tag(call.tid(), call.number(), returning);
    }
  }

  Decision decision;
  // If a signal interrupted the call and it is repeated now, it was already counted the first time.
  if (programs_ != nullptr && programs_->take_restart(call.tid(), call.number(), ip)) return {};

  for (const auto id : returning) {
    if (is_too_early(id, call.tid())) decision.turn = plan_.conditions[id].data.chain;
  }

  // Determine all armed chains before the first one fires. Otherwise this call could fire one fault and thereby arm
  // another one, and count for that one, too.
  std::vector<std::uint32_t> armed;
  for (const auto id : meant) {
    const auto now = state_.state(id);
    if ((now == ROSE_ARMED || now == ROSE_FIRED) && state_.node(id) == node_ + 1) armed.push_back(id);
  }
  for (const auto id : armed) {
    const PlannedChain& chain = plan_.chains[id];
    const auto& fault = *chain.fault;
    if (state_.lost(id)) continue;
    const bool is_syscall = fault.kind == schedule::FaultKind::syscall;
    if (is_over(id)) continue;
    const auto seen = state_.add_seen(id);
    // Only one fault changes a call. Another fault that matches applies to the next call.
    if (seen < chain.call_count || decision.fault != nullptr) continue;
    if (state_.state(id) == ROSE_ARMED) {
      if (!state_.fire(id, static_cast<std::uint32_t>(tgid), static_cast<std::uint32_t>(call.tid()),
                       static_cast<std::uint64_t>(monotonic_ns())))
        continue;
      actions_.fired_at(id, call.describe());
    }
    if (is_syscall) {
      decision.first = state_.add_injected(id) == 1;
      if (!Listener::needs_no_hand(fault))
        actions_.changed(id, call.tid(), call.number(), static_cast<std::uint64_t>(monotonic_ns()));
    }
    decision.fault = &chain;
    decision.chain = id;
  }
  return decision;
}

}  // namespace rose::inject
