// Who makes runs elsewhere, as far as making them ahead has to know: tests play a crew of a thousand.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "replay/run.h"

namespace rose::engine {

struct Job {
  int id = 0;                                   // greater than that of every job before
  std::shared_ptr<const std::string> schedule;  // its file form
};

// A run that was made: what it showed, as it came. Small until it is opened.
struct Done {
  int id = 0;
  // Writes the run's files into the folder and returns the rest. Errors are those of replay::run_once().
  std::function<Result<replay::Run>(const std::filesystem::path& run_dir)> open;
};

class Crew {
 public:
  virtual ~Crew() = default;
  [[nodiscard]] virtual int workers() const = 0;
  // These are to be made, the first ones first. What was to be made until now and has not begun is forgotten, unless it
  // is among them. Returns those jobs, of any plan, that have begun and were not given back by wait() yet.
  virtual std::set<int> plan(const std::vector<Job>& jobs) = 0;
  // The next one that is done. Errors end the diagnosis: cancelled, or nobody is left to make runs.
  [[nodiscard]] virtual Result<Done> wait() = 0;
};

}  // namespace rose::engine
