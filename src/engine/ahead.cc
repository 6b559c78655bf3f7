#include "engine/ahead.h"

#include <algorithm>

namespace rose::engine {

Ahead::Slot& Ahead::slot_of(const schedule::Schedule& schedule, const std::string& fingerprint, std::size_t nth) {
  std::deque<int>& ids = of_schedule_[fingerprint];
  if (nth < ids.size()) return slots_.at(ids[nth]);
  const int id = next_id_++;
  ids.push_back(id);
  return slots_
      .emplace(id,
               Slot{fingerprint, {id, std::make_shared<const std::string>(schedule::to_toml(schedule))}, std::nullopt})
      .first->second;
}

Result<std::vector<Done>> Ahead::make(const std::vector<const schedule::Schedule*>& schedules) {
  std::vector<Job> jobs;
  std::vector<int> asked;
  std::map<std::string, std::size_t> counted;  // by fingerprint: number of its runs that are requested or expected
  std::set<int> wanted;
  const auto want = [&](const schedule::Schedule& schedule) {
    const std::string fingerprint = schedule::fingerprint(schedule);
    const Slot& slot = slot_of(schedule, fingerprint, counted[fingerprint]++);
    wanted.insert(slot.job.id);
    if (!slot.done) jobs.push_back(slot.job);
    return slot.job.id;
  };
  for (const schedule::Schedule* schedule : schedules) asked.push_back(want(*schedule));
  for (const schedule::Schedule& schedule : expected_) want(schedule);
  expected_.clear();

  const std::set<int> begun = crew_.plan(jobs);
  for (auto slot = slots_.begin(); slot != slots_.end();) {
    if (slot->second.done || wanted.contains(slot->first) || begun.contains(slot->first)) {
      ++slot;
      continue;
    }
    std::erase(of_schedule_[slot->second.fingerprint], slot->first);
    slot = slots_.erase(slot);
  }
  while (std::any_of(asked.begin(), asked.end(), [&](int id) { return !slots_.at(id).done; })) {
    ROSE_TRY(Done done, crew_.wait());
    ++made_;
    if (const auto slot = slots_.find(done.id); slot != slots_.end()) slot->second.done = std::move(done);
  }
  std::vector<Done> results;
  for (const int id : asked) {
    Slot& slot = slots_.at(id);
    results.push_back(*std::move(slot.done));
    std::erase(of_schedule_[slot.fingerprint], id);
    if (of_schedule_[slot.fingerprint].empty()) of_schedule_.erase(slot.fingerprint);
    slots_.erase(id);
    ++used_;
  }
  forget_old();
  return results;
}

// If there are more than 8 slots for each worker, drops finished runs, oldest first. They will probably never be
// requested, and their traces use memory.
void Ahead::forget_old() {
  const auto most = static_cast<std::size_t>(8 * std::max(1, crew_.workers()));
  for (auto slot = slots_.begin(); slot != slots_.end() && slots_.size() > most;) {
    if (!slot->second.done) {
      ++slot;
      continue;
    }
    std::erase(of_schedule_[slot->second.fingerprint], slot->first);
    slot = slots_.erase(slot);
  }
}

}  // namespace rose::engine
