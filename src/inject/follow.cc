#include "inject/follow.h"

#include <utility>

#include "base/log.h"

namespace rose::inject {

bool carried_out(const PlannedChain& chain, const Follow& follow) {
  switch (chain.data.kind) {
    case ROSE_CHAIN_CRASH:
    case ROSE_CHAIN_PAUSE:
    case ROSE_CHAIN_PARTITION:
    case ROSE_CHAIN_CLOCK:
    case ROSE_CHAIN_RESOURCE: return follow.complete;
    case ROSE_CHAIN_SYSCALL: return chain.fault->then_do != schedule::ThenDo::crash || follow.complete;
    default: return true;  // in effect as soon as it fires
  }
}

Remarks Follows::remarks(std::size_t chain) const {
  const std::lock_guard lock(mutex_);
  return remarks_[chain];
}

void Follows::struck(std::size_t chain, std::vector<pid_t> pids) {
  const std::lock_guard lock(mutex_);
  remarks_[chain].struck = std::move(pids);
}

void Follows::call(std::size_t chain, std::string text) {
  const std::lock_guard lock(mutex_);
  remarks_[chain].call = std::move(text);
}

void Follows::detail(std::size_t chain, std::string text) {
  const std::lock_guard lock(mutex_);
  remarks_[chain].detail = std::move(text);
}

void Follows::lost_data(std::size_t chain, std::string text) {
  const std::lock_guard lock(mutex_);
  remarks_[chain].lost_data = std::move(text);
}

void Follows::trouble(std::size_t chain, const Error& error) {
  log::warning("{} '{}': {}", plan_.chains[chain].data.kind == ROSE_CHAIN_MARK ? "event" : "fault",
               plan_.chains[chain].fault->id, error.message);
  note(chain, error.message);
}

void Follows::note(std::size_t chain, std::string trouble) {
  const std::lock_guard lock(mutex_);
  remarks_[chain].trouble = std::move(trouble);
}

}  // namespace rose::inject
