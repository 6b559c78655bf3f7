#include "inject/process_stops.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "deploy/machine/cgroup.h"
#include "inject/fault_words.h"
#include "inject/time_zero.h"
#include "kernel/processes.h"
#include "kernel/syscalls.h"

namespace rose::inject {

Result<void> ProcessStops::prepare(deploy::Deployment& deployment) {
  deployment_ = &deployment;
  return power_.prepare(plan_, deployment);
}

bool ProcessStops::kills(std::size_t i) const {
  const auto& chain = plan_.chains[i];
  if (chain.data.kind == ROSE_CHAIN_CRASH) return !chain.call || plan_.in_kernel();
  return plan_.in_kernel() && chain.data.kind == ROSE_CHAIN_SYSCALL && chain.fault->then_do == schedule::ThenDo::crash;
}

bool ProcessStops::may_pause(std::size_t node) const {
  return std::any_of(plan_.chains.begin(), plan_.chains.end(), [node](const PlannedChain& chain) {
    return chain.data.kind == ROSE_CHAIN_PAUSE && Plan::may_be(chain.data.node, node);
  });
}

deploy::Scope ProcessStops::scope_of(std::size_t i) const {
  return plan_.chains[i].fault->scope == schedule::Scope::all ? deploy::Scope::all : deploy::Scope::main;
}

// The processes that a process fault affects.
std::vector<pid_t> ProcessStops::targets(std::size_t i) const {
  const auto& chain = plan_.chains[i];
  if (chain.fault->scope == schedule::Scope::all) return deployment_->processes(state_.node_of(i));
  const pid_t main = deployment_->main_pid(state_.node_of(i));
  if (chain.fault->scope == schedule::Scope::others) {
    std::vector<pid_t> pids = deployment_->processes(state_.node_of(i));
    std::erase(pids, main);
    return pids;
  }
  return main > 0 ? std::vector<pid_t>{main} : std::vector<pid_t>{};
}

void ProcessStops::crash_once(std::size_t i) {
  const std::lock_guard lock(crashing_);
  const auto& chain = plan_.chains[i];
  if (follows_[i].crashed.exchange(true)) return;
  crash(i, chain.data.kind == ROSE_CHAIN_CRASH ? chain.fault->signal : SIGKILL);
}

void ProcessStops::on_end(std::size_t node) {
  for (std::size_t i = 0; i < plan_.schedule.faults.size(); ++i) {
    if (!kills(i) || state_.state(i) != ROSE_FIRED || state_.node_of(i) != node) continue;
    follows_[i].acted = true;
    crash_once(i);
  }
  for (const std::size_t i : plan_.losses)
    if (state_.state(i) == ROSE_FIRED && state_.node_of(i) == node && !follows_[i].no_process) lose_power(i);
}

// Remembers the process, to check later whether the signal has ended it. Called before the signal is sent, or right
// after a BPF program has sent it. A process that ignores the signal is not remembered, because it can end only for
// other reasons.
void ProcessStops::watch_end(std::size_t i, pid_t pid, int signal) {
  if (signal != SIGKILL && kernel::ignores(pid, signal)) return;
  Fd pidfd = kernel::open_pidfd(pid);
  const std::lock_guard lock(watching_);
  if (signal == SIGKILL || !pidfd) ended_.insert(i);
  else signalled_[i].push_back(std::move(pidfd));
}

void ProcessStops::look() {
  const std::lock_guard lock(watching_);
  for (const auto& [chain, processes] : signalled_)
    for (const Fd& process : processes) {
      pollfd one{process.get(), POLLIN, 0};
      if (::poll(&one, 1, 0) > 0) ended_.insert(chain);
    }
  signalled_.clear();
}

bool ProcessStops::ended_some(std::size_t i) const {
  const std::lock_guard lock(watching_);
  if (ended_.contains(i)) return true;
  const auto known = signalled_.find(i);
  if (known == signalled_.end()) return false;
  return std::any_of(known->second.begin(), known->second.end(), [](const Fd& process) {
    pollfd one{process.get(), POLLIN, 0};
    return ::poll(&one, 1, 0) > 0;
  });
}

// Sends the signal to the processes that the crash affects. A BPF program may already have signalled one of them
// (`done`), which met the last condition. Returns true if `caller` is among the signalled processes.
bool ProcessStops::crash(std::size_t i, int signal, pid_t caller) {
  const auto& chain = plan_.chains[i];
  const auto done = static_cast<pid_t>(state_.chain(i).signalled);
  const auto pids = targets(i);
  follows_.struck(i, pids);
  // The deployment kills the whole node or its main process at once. With other signals, or if the main process is
  // spared, the processes are signalled one by one.
  const bool at_once = signal == SIGKILL && chain.fault->scope != schedule::Scope::others;
  // Processes may be stopped to read their stacks only if they are killed at once: otherwise a surviving parent would
  // notice that its child was stopped.
  take_from_outside(i, pids, at_once);
  std::uint64_t count = 0;
  bool hit = false;
  if (at_once) {
    if (auto ok = deployment_->signal(state_.node_of(i), scope_of(i), signal); !ok) {
      // The process that the BPF program killed may have been the last one, so there is nothing left to signal.
      if (ok.error().kind != ErrorKind::inconclusive) follows_.trouble(i, ok.error());
    }
    count = pids.size();
    if (count > 0 || done != 0) {
      const std::lock_guard lock(watching_);
      ended_.insert(i);
    }
    hit = chain.fault->scope == schedule::Scope::all || std::find(pids.begin(), pids.end(), caller) != pids.end();
  } else {
    if (done != 0) watch_end(i, done, signal);
    const auto listed = [&] { return deployment_->processes(state_.node_of(i)); };
    for (const pid_t pid : pids) {
      if (pid == done) continue;
      watch_end(i, pid, signal);
      const auto& folder = deployment_->nodes()[state_.node_of(i)].cgroup;
      if (folder.empty() ? !kernel::signal_listed(pid, listed, signal) : !deploy::cgroup::signal(folder, pid, signal))
        continue;
      ++count;
      hit = hit || pid == caller;
    }
  }
  // The process that the BPF program killed is counted separately. If it was still in the list, do not count it twice.
  const bool listed = std::find(pids.begin(), pids.end(), done) != pids.end();
  if (done != 0 && listed && at_once) --count;
  // For a syscall fault with then = "crash", changed calls are counted instead, by the supervisor.
  if (chain.data.kind == ROSE_CHAIN_CRASH) state_.add_injected(i, count);
  if (done == 0 && count == 0) follows_[i].no_process = true;
  follows_.detail(i, fmt::format("{} to {} of {}", kernel::signal_name(signal),
                                 processes_text(count + (done != 0 ? 1 : 0)), name_of(i)));
  follows_[i].complete = true;
  return hit;
}

void ProcessStops::lose_power(std::size_t i) {
  if (follows_[i].lost) return;
  auto lost = power_.lose(plan_, i, state_.node_of(i));
  if (!lost) {
    follows_[i].failed = true;
    follows_.trouble(i, lost.error());
  } else {
    follows_.lost_data(i, std::move(*lost));
  }
  follows_[i].lost = true;
}

void ProcessStops::pause(std::size_t i) {
  const auto pids = targets(i);
  if (pids.empty() && state_.chain(i).signalled == 0) {
    follows_[i].no_process = true;
    follows_[i].complete = true;
    return;
  }
  follows_[i].paused = true;
  follows_.struck(i, pids);
  if (auto ok = deployment_->pause(state_.node_of(i), scope_of(i)); !ok) follows_.trouble(i, ok.error());
  else ++follows_[i].changed;
  take_from_outside(i, pids, false);
  paused(i, pids.size());
}

ProcessStops::Met ProcessStops::last_met_by(std::size_t i) const {
  const auto& chain = plan_.chains[i].data;
  for (std::uint32_t k = chain.conditions; k-- > 0;) {
    const auto& met = state_.condition(chain.first_condition + k);
    const auto where = met.node < ROSE_ROLE_NODES ? met.node : met.met_node - 1;
    if (met.kind != ROSE_ON_ELAPSED && met.met_tid != 0 && where == state_.node_of(i))
      return {static_cast<pid_t>(met.met_pid), static_cast<pid_t>(met.met_tid)};
  }
  return {};
}

// For a process fault that did not fire in a thread of an affected process: takes stacks of the affected process that
// last met one of the fault's conditions. If there is none, takes stacks of the main process if it is affected, and
// otherwise of the first affected process.
void ProcessStops::take_from_outside(std::size_t i, const std::vector<pid_t>& pids, bool killed) {
  const bool outside =
      plan_.stacks != 0 && state_.chain(i).signalled == 0 && !plan_.chains[i].call && programs_.stacks(i).empty();
  if (pids.empty() || !outside) return;
  const auto main = deployment_->main_pid(state_.node_of(i));
  const bool listed = std::find(pids.begin(), pids.end(), main) != pids.end();
  Stacks::Process process{.pid = listed ? main : pids.front(),
                          .likely = 0,
                          .stopped = plan_.chains[i].data.kind == ROSE_CHAIN_PAUSE,
                          .killed = killed,
                          .listed = [this, i] { return deployment_->processes(state_.node_of(i)); }};
  if (const Met last = last_met_by(i); std::find(pids.begin(), pids.end(), last.pid) != pids.end())
    process.pid = last.pid, process.likely = last.tid;
  stacks_.take_process(i, process, what_happens(plan_, i, ""));
}

void ProcessStops::paused(std::size_t i, std::size_t count) {
  state_.add_injected(i, std::max<std::size_t>(count, 1) - (state_.chain(i).signalled != 0 ? 1 : 0));
  follows_.detail(i, fmt::format("{} of {} stopped", processes_text(count), name_of(i)));
  follows_[i].complete = true;
  host_.paused(state_.node_of(i), static_cast<pid_t>(state_.chain(i).pid));
}

void ProcessStops::end_pause(std::size_t i) {
  auto& follow = follows_[i];
  if (!follow.paused.exchange(false)) return;
  // If another pause with the same scope is still in effect, the processes remain stopped.
  bool other = false;
  for (std::size_t k = 0; k < plan_.schedule.faults.size(); ++k) {
    other = other || (k != i && follows_[k].paused && state_.node_of(k) == state_.node_of(i) &&
                      plan_.chains[k].fault->scope == plan_.chains[i].fault->scope);
  }
  if (!other) {
    if (auto ok = deployment_->resume(state_.node_of(i), scope_of(i)); !ok) follows_.trouble(i, ok.error());
    // Also continue the process that the BPF program stopped itself, if it still belongs to the node.
    const auto stopped = static_cast<pid_t>(state_.chain(i).signalled);
    const auto& folder = deployment_->nodes()[state_.node_of(i)].cgroup;
    const auto listed = [&] { return deployment_->processes(state_.node_of(i)); };
    if (stopped != 0 && folder.empty()) (void)kernel::signal_listed(stopped, listed, SIGCONT);
    else if (stopped != 0) (void)deploy::cgroup::signal(folder, stopped, SIGCONT);
  }
  host_.release_calls(i);
  follow.ended_ns = now_ns();
}

bool ProcessStops::crash_now(std::size_t i, pid_t tgid, int signal) {
  follows_[i].acted = true;
  return crash(i, signal, tgid);
}

bool ProcessStops::pause_now(std::size_t i, pid_t tgid) {
  follows_[i].acted = true;
  const auto pids = targets(i);
  if (pids.empty()) {
    follows_[i].complete = true;
    return false;
  }
  follows_[i].paused = true;
  follows_.struck(i, pids);
  if (plan_.chains[i].fault->scope == schedule::Scope::all) {
    // Do not wait until all processes have stopped, because the caller can stop only when its call is held, after this
    // function has returned.
    if (auto ok = deployment_->pause_at_once(state_.node_of(i)); !ok) follows_.trouble(i, ok.error());
    else ++follows_[i].changed;
  } else if (auto ok = deployment_->pause(state_.node_of(i), deploy::Scope::main); !ok) {
    follows_.trouble(i, ok.error());
  } else {
    ++follows_[i].changed;
  }
  paused(i, pids.size());
  return std::find(pids.begin(), pids.end(), tgid) != pids.end();
}

}  // namespace rose::inject
