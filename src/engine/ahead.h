// Makes runs ahead of the search. Workers are kept busy with runs that the search will probably request. The search
// receives results in its own order, so the same seed and verdicts give the same search whatever the number of workers.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/crew.h"
#include "schedule/schedule.h"

namespace rose::engine {

class Ahead {
 public:
  explicit Ahead(Crew& crew) : crew_(crew) {}

  // The number of further runs that may be made ahead, to keep all workers busy while results are on their way.
  [[nodiscard]] int room() const { return 2 * crew_.workers(); }
  // Sets the runs that will probably be requested after the next call of make(), the most probable ones first. make()
  // plans them after the requested runs, so that no worker is idle.
  void expect(std::vector<schedule::Schedule> next) { expected_ = std::move(next); }
  // Returns a run of each schedule, in the order of `schedules`. If there are several runs of a schedule, it returns
  // the one that was started first.
  [[nodiscard]] Result<std::vector<Done>> make(const std::vector<const schedule::Schedule*>& schedules);

  [[nodiscard]] int made() const { return made_; }
  [[nodiscard]] int used() const { return used_; }

 private:
  struct Slot {
    std::string fingerprint;
    Job job;
    std::optional<Done> done;
  };
  Slot& slot_of(const schedule::Schedule& schedule, const std::string& fingerprint, std::size_t nth);
  void forget_old();

  Crew& crew_;
  int next_id_ = 1;
  int made_ = 0, used_ = 0;
  std::vector<schedule::Schedule> expected_;
  std::map<int, Slot> slots_;                           // by id: planned, being made, or made but not requested yet
  std::map<std::string, std::deque<int>> of_schedule_;  // by fingerprint: ids in the order of planning
};

}  // namespace rose::engine
