// The interface to those who make runs elsewhere. Tests implement a crew with a thousand workers.
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
  int id = 0;                                   // larger than that of every earlier job
  std::shared_ptr<const std::string> schedule;  // its file form
  int avoid = -1;                               // a worker whose run of it could not be used
};

// A run that was made, in packed form. Small until it is opened.
struct Done {
  int id = 0;
  // Writes the run's files to the folder and returns the rest. Errors as in replay::run_once().
  std::function<Result<replay::Run>(const std::filesystem::path& run_dir)> open;
};

class Crew {
 public:
  virtual ~Crew() = default;
  [[nodiscard]] virtual int workers() const = 0;
  // Replaces the plan: these jobs are to be made, the first ones first. Earlier jobs that have not been started are
  // dropped unless they are in the list. Returns the jobs of any plan that have been started and not yet returned by
  // wait().
  virtual std::set<int> plan(const std::vector<Job>& jobs) = 0;
  // Waits for the next finished job. An error ends the diagnosis: it was cancelled, or no worker is left.
  [[nodiscard]] virtual Result<Done> wait() = 0;
};

}  // namespace rose::engine
