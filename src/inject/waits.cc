#include "inject/waits.h"

#include <signal.h>

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "kernel/processes.h"

namespace rose::inject {
namespace {

std::uint64_t clock_ns() { return static_cast<std::uint64_t>(monotonic_ns()); }

std::string debugger_of(pid_t tid) {
  const pid_t by = kernel::tracer_of(tid);
  if (by == 0) return "somebody";
  const auto name = read_file(fmt::format("/proc/{}/comm", by), 64);
  return fmt::format("'{}' (process {})", name ? printable(name->substr(0, name->find('\n'))) : "?", by);
}

}  // namespace

Waits::Waits(const Plan& plan, State& state, Host host)
    : plan_(plan), state_(state), host_(std::move(host)), waits_(plan.chains.size()) {}

Result<void> Waits::start(const rose_chain* chains) {
  if (plan_.holders.empty()) return {};
  ROSE_TRY(holder_, Holder::start(chains, plan_.holders));
  state_.settings().holder = static_cast<__u32>(holder_->pid());
  return {};
}

void Waits::watch(std::size_t i) {
  if (waits_[i].watched.exchange(true)) return;
  const std::size_t node = state_.node_of(i);
  host_.later(node, [this, node] {
    for (const pid_t pid : host_.processes(node)) watch_process(pid);
  });
}

void Waits::watch_start(std::size_t node, pid_t pid) {
  for (const std::size_t i : plan_.holders) {
    if (!waits_[i].watched || waits_[i].ended_ns != 0 || state_.node_of(i) != node) continue;
    watch_process(pid);
    return;
  }
}

// Accepts processes of all nodes, because the conditions of an event may be met on a node other than its own.
Fd Waits::open(pid_t pid) const {
  return kernel::open_listed(pid, [&] {
    std::vector<pid_t> all;
    for (std::size_t node = 0; node < plan_.nodes.size(); ++node) {
      const std::vector<pid_t> its = host_.processes(node);
      all.insert(all.end(), its.begin(), its.end());
    }
    return all;
  });
}

void Waits::watch_process(pid_t pid) {
  if (const Fd process = open(pid)) holder_->watch(pid, process.get());
}

bool Waits::take(std::size_t i) {
  if (waits_[i].taken) return true;
  if (__atomic_load_n(&state_.chain(i).signalled, __ATOMIC_ACQUIRE) == 0) return false;
  waits_[i].taken = true;
  waits_[i].since_ns = state_.armed_ns(i);
  host_.later(state_.node_of(i), [this, i] { hold(i); });
  return true;
}

// Called when the BPF program has sent the thread its signal.
void Waits::hold(std::size_t i) {
  const auto& shared = state_.chain(i);
  const auto pid = static_cast<pid_t>(shared.pid), tid = static_cast<pid_t>(shared.tid);
  Result<void> held;
  if (shared.signalled == ROSE_NOT_HELD) {
    held = fail(ErrorKind::environment,
                fmt::format("thread {} of process {} cannot wait: {} traces it", tid, pid, debugger_of(tid)),
                "detach the debugger or strace");
  } else if (const Fd process = open(pid)) {
    held = holder_->hold(i, pid, process.get(), tid);
  }  // otherwise the process has ended
  if (held) return;
  waits_[i].failed = true;
  host_.failed(i, held.error());
}

void Waits::release(std::size_t i, std::uint64_t when) {
  waits_[i].ended_ns = when;
  if (waits_[i].taken) host_.later(state_.node_of(i), [this, i] { holder_->release(i); });
  host_.release_calls(i);
}

void Waits::hold_for_turn(std::size_t i) {
  std::uint64_t never = 0;
  waits_[i].since_ns.compare_exchange_strong(never, clock_ns());
}

bool Waits::follow_turn(std::size_t i, std::uint64_t& next) {
  Wait& wait = waits_[i];
  const auto& chain = plan_.chains[i].data;
  const bool threads = (chain.flags & ROSE_HOLDS) != 0;
  const bool turn = state_.predecessors_left(i) == 0;
  if (threads && state_.state(i) != ROSE_ARMED) {
    if (!turn && state_.node(i) != 0 && ROSE_POSITION(state_.progress(i)) + 1 == chain.conditions) watch(i);
    return false;
  }
  if (threads && !take(i)) {
    next = std::min(next, clock_ns() + kSignalPollNs);
    return false;
  }
  if (wait.since_ns == 0 || wait.ended_ns != 0) return false;
  const std::int64_t most = plan_.chains[i].fault->duration_ns;
  const auto due = wait.since_ns + static_cast<std::uint64_t>(most);
  if (!turn && due > clock_ns() && !wait.failed) {
    next = std::min(next, due);
    return false;
  }
  if (!turn)
    log::warning("event '{}' came before its turn, and {}", plan_.chains[i].fault->id,
                 wait.failed ? "could not be held" : fmt::format("was released after {}", format_duration(most)));
  const auto& shared = state_.chain(i);
  const bool came = threads && state_.fire(i, shared.pid, shared.tid, clock_ns());
  release(i, clock_ns());
  return came;
}

std::int64_t Waits::lasted_ns(std::size_t i) const {
  const Wait& wait = waits_[i];
  return wait.since_ns != 0 && wait.ended_ns != 0 ? static_cast<std::int64_t>(wait.ended_ns - wait.since_ns) : 0;
}

void Waits::end() {
  if (!holder_) return;
  holder_->stop();
  for (const std::size_t i : plan_.holders) {
    const auto signalled = state_.chain(i).signalled;
    // The thread got its signal (SIGSTOP) too late to be held. The signal stopped the whole process, so continue it.
    if (signalled != 0 && signalled != ROSE_NOT_HELD && holder_->held(i) == Hold::none)
      if (const Fd process = open(static_cast<pid_t>(signalled))) (void)kernel::pidfd_signal(process.get(), SIGCONT);
  }
}

}  // namespace rose::inject
