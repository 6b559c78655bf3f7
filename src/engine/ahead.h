// Runs made ahead of the search. Workers are kept busy with what it will likely ask for; it gets them in its own order,
// so the same seed and verdicts give the same search, whoever makes the runs and however many they are.
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

  // As many further runs may be made ahead as keep everybody busy while results are on their way.
  [[nodiscard]] int room() const { return 2 * crew_.workers(); }
  // What will likely be asked for after the next runs, the likeliest first.
  void expect(std::vector<schedule::Schedule> next) { expected_ = std::move(next); }
  // A run of each, in their order: of one schedule always the one that was begun first.
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
  std::map<int, Slot> slots_;                           // by id: to be made, under way, or made and not asked for yet
  std::map<std::string, std::deque<int>> of_schedule_;  // by fingerprint: ids in the order in which they were planned
};

}  // namespace rose::engine
