#include "inject/state.h"

#include <sched.h>

namespace rose::inject {

State::State(const Plan& plan, SharedArrays arrays) : arrays_(arrays), chains_(plan.chains.size()) {
  for (std::size_t i = 0; i < plan.conditions.size(); ++i) arrays_.conditions[i] = plan.conditions[i].data;
  for (std::size_t i = 0; i < plan.edges.size(); ++i) arrays_.edges[i] = {plan.edges[i], 0};
  for (std::size_t i = 0; i < chains_; ++i) arrays_.chains[i] = plan.chains[i].data;
}

bool State::pending(std::size_t condition) const {
  const auto& data = arrays_.conditions[condition];
  const auto chain_state = state(data.chain);
  if (chain_state != ROSE_WAITING) return false;
  const auto position = ROSE_POSITION(progress(data.chain));
  return position == ROSE_CLOSED || position <= data.position;
}

bool State::is_current(std::size_t condition) const {
  const auto& data = arrays_.conditions[condition];
  return state(data.chain) == ROSE_WAITING && ROSE_POSITION(progress(data.chain)) == data.position;
}

std::optional<std::uint64_t> State::current_since(std::size_t condition) const {
  const auto& data = arrays_.conditions[condition];
  if (data.position == 0) return opened_ns(data.chain);
  const auto met = met_ns(condition - 1);
  return met == 0 ? std::nullopt : std::optional(met);
}

namespace {

// Old kernels have no atomic operation for BPF programs that returns the previous value. There, programs take this lock
// for each step, and so does user space. A program waits only briefly; if it does not get the lock, it makes the step
// without it and counts the step as contended.
class Step {
 public:
  explicit Step(rose_settings& settings) : settings_(settings.locks != 0 ? &settings : nullptr) {
    while (settings_ != nullptr && !__sync_bool_compare_and_swap(&settings_->lock, 0, 1)) ::sched_yield();
  }
  ~Step() {
    if (settings_ != nullptr) __sync_fetch_and_sub(&settings_->lock, 1);
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

 private:
  rose_settings* settings_;
};

}  // namespace

std::size_t State::node_of(std::size_t chain) const {
  const auto known = node(chain);
  ROSE_ASSERT(known > 0);
  return known - 1;
}

bool State::is_there(std::uint32_t where, std::size_t node) const {
  if (where < ROSE_ROLE_NODES) return where == node;
  if (where == ROSE_ANY_NODE) return true;
  return (where >= ROSE_CHAIN_NODES ? this->node(where - ROSE_CHAIN_NODES) : holder(where - ROSE_ROLE_NODES)) ==
         node + 1;
}

bool State::settle(std::size_t index, std::uint32_t pid, std::uint32_t tid, std::uint64_t now) {
  auto& chain = arrays_.chains[index];
  if ((chain.flags & ROSE_WAITS_FOR_CALL) == 0) return fire(index, pid, tid, now);
  {
    const Step step(*arrays_.settings);
    if (!bind(chain)) return false;
    rose_arm(&chain, now);
  }
  if (ring_) ring_();
  return true;
}

bool State::count(std::size_t condition, std::uint32_t pid, std::uint32_t tid, std::uint64_t now, std::uint32_t node) {
  auto& data = arrays_.conditions[condition];
  auto& chain = arrays_.chains[data.chain];
  int step = ROSE_NOTHING;
  {
    const Step lock(*arrays_.settings);
    step = rose_count(&chain, &data, arrays_.settings, pid, tid, now);
  }
  if (step >= ROSE_MET) data.met_node = node + 1;
  if (step == ROSE_COMPLETE) settle(data.chain, pid, tid, now);
  if (step >= ROSE_MET && ring_) ring_();
  return step == ROSE_COMPLETE;
}

bool State::fire(std::size_t index, std::uint32_t pid, std::uint32_t tid, std::uint64_t now) {
  auto& chain = arrays_.chains[index];
  bool mine = false;
  {
    const Step step(*arrays_.settings);
    if (!bind(chain)) return false;
    std::uint32_t* group = chain.group != 0 ? &arrays_.groups[chain.group].value : nullptr;
    mine = rose_fire(&chain, static_cast<std::uint32_t>(index), group, pid, tid, now);
    if (mine) {
      if (chain.kind == ROSE_CHAIN_END) end(chain.target, now);
      for (std::uint32_t e = 0; e < chain.edges; ++e) {
        rose_open(&arrays_.chains[arrays_.edges[chain.first_edge + e].value], now);
      }
    }
  }
  if (ring_) ring_();
  return mine;
}

bool State::bind(rose_chain& chain) const {
  return rose_bind(&chain, chain.node < ROSE_ROLE_NODES ? nullptr : &arrays_.roles[chain.node - ROSE_ROLE_NODES]) != 0;
}

void State::begin(std::uint64_t now) {
  const Step step(*arrays_.settings);
  for (std::size_t i = 0; i < chains_; ++i) {
    if (arrays_.chains[i].flags & ROSE_AT_WORKLOAD) rose_open(&arrays_.chains[i], now);
  }
  if (ring_) ring_();
}

void State::end(std::size_t index, std::uint64_t now) {
  auto& until = arrays_.chains[index].until_ns;
  for (;;) {
    const std::uint64_t old = load(until);
    if (old <= now || __sync_bool_compare_and_swap(&until, old, now)) return;
  }
}

bool State::lost(std::size_t index) const {
  const auto& chain = arrays_.chains[index];
  if (chain.group == 0) return false;
  const auto winner = load(arrays_.groups[chain.group].value);
  return winner != 0 && winner != index + 1;
}

}  // namespace rose::inject
