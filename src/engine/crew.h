// The interface to workers that make runs on other machines. Tests implement a crew with a thousand workers.
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
  std::shared_ptr<const std::string> schedule;  // the schedule as the text of its file
  // the worker whose run of this job could not be used; it gets the job again only if there is no other worker; -1:
  // none
  int avoid = -1;
};

// A finished run in packed form, which uses little memory until it is opened.
struct Done {
  int id = 0;
  // Writes the run's files to the folder and returns the rest. Errors as in replay::run_once().
  std::function<Result<replay::Run>(const std::filesystem::path& run_dir)> open;
};

class Crew {
 public:
  virtual ~Crew() = default;
  [[nodiscard]] virtual int workers() const = 0;
  // Replaces the plan: these jobs are to be made, in this order. Jobs of earlier plans that have not been started are
  // dropped unless they are in the list. Returns the jobs of any plan that were started but not yet returned by wait().
  virtual std::set<int> plan(const std::vector<Job>& jobs) = 0;
  // Waits for the next finished job. An error ends the diagnosis: it was cancelled, or no worker is left.
  [[nodiscard]] virtual Result<Done> wait() = 0;
};

}  // namespace rose::engine
