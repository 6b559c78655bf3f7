// The workers of a diagnosis: starts them through an engine, assigns jobs and ends them. If a worker dies, hangs or has
// another version than this rose, another worker gets its job, and a new worker is started in its place, up to a limit.
// The loss of the worker and the new start are reported. If a run cannot be read, another worker repeats it. A worker
// that sends several unreadable runs in succession gets no more jobs.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "config/config.h"
#include "engine/crew.h"
#include "engine/wire/engines.h"
#include "engine/wire/tree.h"
#include "jvm/code_book.h"
#include "logs/untimed.h"
#include "profile/profile.h"

namespace rose::engine {

struct FleetOptions {
  std::string version;  // the version of this rose
  std::string config;   // the configuration's file, relative to the tree
  const profile::Profile* profile = nullptr;
  std::map<std::string, std::string> elsewhere;  // programs that nodes use from outside the tree: path and digest
  bool allow_attached = false;
  bool logs = false;                         // workers send the nodes' logs, too
  bool keep = false;                         // the files of all run folders are kept, so workers send them
  std::int64_t silence_ns = 60'000'000'000;  // a worker without a message for this long is considered lost
  std::int64_t run_limit_ns = 0;             // a worker whose run takes longer is considered lost; 0: no limit
  jvm::CodeBook* code_book = nullptr;
  // Called when a run is opened, with the growth of its logs over time. The paths are those in `run_dir`.
  std::function<void(const std::filesystem::path& run_dir, logs::Watch::Growth growth)> seen;
};

// How long a run may take before its worker is considered stuck, although it sends signs of life.
[[nodiscard]] std::int64_t run_limit(const config::Config& config);

class Fleet final : public Crew {
 public:
  // Workers are started when the first jobs are planned.
  Fleet(Engine engine, Tree tree, FleetOptions options);
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;
  ~Fleet() override;  // ends all workers and waits for them

  [[nodiscard]] int workers() const override { return engine_.workers(); }
  std::set<int> plan(const std::vector<Job>& jobs) override;
  [[nodiscard]] Result<Done> wait() override;

 private:
  struct Worker;
  struct Ending;
  // A run as it was received. It is checked by the thread that calls wait().
  struct Arrived {
    Done done;
    std::function<Result<void>()> check;  // checks the run; empty: nothing to check
    Job job;
    int place = 0;
    std::string who;
  };
  [[nodiscard]] std::optional<Done> checked(Arrived arrived);

  void drive();
  [[nodiscard]] std::string only_unusable(const Worker& worker);
  void start(Worker& worker);
  void talk(Worker& worker);
  [[nodiscard]] Result<void> hear(Worker& worker, Message message);
  [[nodiscard]] Result<void> read_from(Worker& worker);
  void read_errors(Worker& worker, bool last);
  void write_to(Worker& worker);
  void feed(Worker& worker);
  void give_jobs();
  void lose(Worker& worker, std::string why, int weight, bool hangs = false);
  void end(Worker& worker, std::string why);
  void reap(bool all);
  bool sweep();
  void give_up(std::string why);
  [[nodiscard]] std::string name(const Worker& worker) const;

  const Engine engine_;
  const Tree tree_;
  const FleetOptions options_;
  std::map<std::string, std::filesystem::path> files_;  // of the tree, by digest

  std::mutex mutex_;  // protects the following members
  std::condition_variable came_;
  std::deque<Job> queue_;
  std::map<int, Job> under_way_;  // jobs that a worker is making, by id
  std::deque<Arrived> done_;
  std::map<int, int> losses_;  // how often a job's worker was lost, or sent unusable data
  struct Unusable {
    int count = 0;    // number of unusable runs in succession
    std::string why;  // why the last of these runs was unusable
  };
  std::vector<Unusable> unusable_;  // by place
  std::optional<Error> error_;
  bool stop_ = false;

  // The following members are used only by the driving thread.
  std::vector<std::unique_ptr<Worker>> crew_;
  std::vector<Ending> endings_;
  // Places where a worker was killed and no other worker has started since, with the index of that worker and the
  // number of its start.
  std::map<std::string, std::pair<int, int>> unswept_;
  std::set<std::string> reported_;  // warnings of workers that were printed
  int started_ = 0;
  Fd wake_;
  std::thread driver_;
};

}  // namespace rose::engine
