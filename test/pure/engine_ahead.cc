// Speculative runs, with simulated workers. Time passes only while a worker works. The search must be the same with any
// number of workers, and must end sooner if there are more.
#include "engine/ahead.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <queue>

#include "diagnose_play.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;

namespace {

class PlayedCrew final : public engine::Crew {
 public:
  explicit PlayedCrew(int workers) : workers_(workers) {}
  double now = 0;  // seconds on the simulated clock
  // how many seconds a worker's run takes
  std::function<double(int id)> takes = [](int id) { return 20 + id * 7 % 11; };
  std::vector<std::string> order;  // schedules in the order in which they were started
  std::vector<double> began;       // times at which each of them was started

  [[nodiscard]] int workers() const override { return workers_; }
  std::set<int> plan(const std::vector<engine::Job>& jobs) override {
    queue_.clear();
    for (const engine::Job& job : jobs)
      if (!begun_.contains(job.id)) queue_.push_back(job);
    const std::set<int> begun = begun_;
    work();
    return begun;
  }
  Result<engine::Done> wait() override {
    if (running_.empty()) return fail(ErrorKind::environment, "nobody works");
    const auto [at, id] = running_.top();
    running_.pop();
    now = std::max(now, at);
    begun_.erase(id);
    work();
    return engine::Done{id, {}};
  }

 private:
  void work() {
    while (static_cast<int>(running_.size()) < workers_ && !queue_.empty()) {
      const engine::Job job = queue_.front();
      queue_.pop_front();
      begun_.insert(job.id);
      order.push_back(*job.schedule);
      began.push_back(now);
      running_.emplace(now + takes(job.id), job.id);
    }
  }
  int workers_;
  std::deque<engine::Job> queue_;
  std::set<int> begun_;
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> running_;
};

// Makes the runs of a search. Their results are determined by the script, from the number of earlier runs of the same
// schedule, whichever worker made those.
class AheadRunner final : public Runner {
 public:
  AheadRunner(Play& play, PlayedCrew& crew) : ahead(crew), play_(play) {}
  engine::Ahead ahead;
  [[nodiscard]] int room() const override { return ahead.room(); }
  void expect(std::vector<schedule::Schedule> next) override { ahead.expect(std::move(next)); }
  Result<schedule::RunResult> run(const schedule::Schedule& schedule) override {
    return std::move(run_all({&schedule}, {}).front());
  }
  std::vector<Result<schedule::RunResult>> run_all(const std::vector<const schedule::Schedule*>& schedules,
                                                   const Decides&) override {
    const Result<std::vector<engine::Done>> done = ahead.make(schedules);
    std::vector<Result<schedule::RunResult>> results;
    for (std::size_t i = 0; i < schedules.size(); ++i) {
      if (!done) {
        results.emplace_back(Unexpected(Error(done.error())));
        continue;
      }
      int& last = last_[schedule::fingerprint(*schedules[i])];
      in_order = in_order && (*done)[i].id > last;
      last = (*done)[i].id;
      results.push_back(play_.run(*schedules[i]));
    }
    return results;
  }
  bool in_order = true;  // whether the runs of each schedule arrived in the order in which they were started

 private:
  Play& play_;
  std::map<std::string, int> last_;
};

struct SearchRecord {
  std::string search;  // everything that was tried, in its order
  // schedules in the order in which the search requested them, and in the order in which workers started them
  std::vector<std::string> asked, begun;
  std::vector<double> began;
  double seconds = 0;
  int made = 0, used = 0;
  double own_ms = 0;  // how much time this machine spent per run
};

// In production, one fsync() of each of eight files fails. Runs call fsync() twelve times for each file. The bug occurs
// in nine of ten runs in which the ninth call for the last file fails.
SearchRecord search_with(int workers) {
  config::Config config = deployment(3);
  config.diagnose.levels = {1, 2};
  std::vector<Act> acts;
  Dump dump;
  for (int file = 0; file < 8; ++file) {
    const std::string path = fmt::format("/data/n1/part{}", static_cast<char>('a' + file));
    for (int i = 0; i < 12; ++i) acts.push_back({1.0 + i + file * 0.1, "n1", "", "fsync", path, false});
    dump.scf(3 + file, "n1", "fsync", EIO, path);
  }
  std::sort(acts.begin(), acts.end(), [](const Act& a, const Act& b) { return a.t < b.t; });
  dump.ends(30);
  std::map<std::string, int> times;
  Play play(acts, [&](const std::vector<Hit>& hits, int) {
    for (const Hit& hit : hits)
      if (hit.act >= 0 && acts[static_cast<std::size_t>(hit.act)].path.ends_with("parth") &&
          acts[static_cast<std::size_t>(hit.act)].t > 9.5 && acts[static_cast<std::size_t>(hit.act)].t < 10.5)
        return ++times[hit.fault->id] % 10 != 7;
    return false;
  });
  PlayedCrew crew(workers);
  AheadRunner runner(play, crew);
  const Inputs inputs = inputs_of(config, {dump});
  const auto began = std::chrono::steady_clock::now();
  Result<Diagnosis> made = diagnose::diagnose(inputs, runner, {});
  REQUIRE(made);
  SearchRecord record;
  record.own_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count() /
                  std::max(1, made->runs);
  REQUIRE(made->found);
  CHECK(made->target_reached);
  CHECK(runner.in_order);
  CHECK(runner.ahead.used() == made->runs);
  for (const schedule::Schedule& one : play.made) record.search += schedule::fingerprint(one) + "\n";
  for (const schedule::Schedule& one : play.made) record.asked.push_back(schedule::to_toml(one));
  record.begun = crew.order;
  record.began = crew.began;
  record.search +=
      fmt::format("{} of {}\n{}", made->tally.reproduced, made->tally.conclusive(), schedule::to_toml(*made->found));
  record.seconds = crew.now;
  record.made = runner.ahead.made();
  record.used = runner.ahead.used();
  return record;
}

schedule::Schedule named(const std::string& name) {
  schedule::Schedule schedule;
  schedule.name = name;
  schedule::Fault fault;
  fault.id = "f-" + name;
  fault.kind = schedule::FaultKind::crash;
  fault.node = name;
  schedule.faults.push_back(fault);
  return schedule;
}

}  // namespace

TEST_CASE("runs made ahead: the search is the same with any number of workers, and faster with more of them") {
  const SearchRecord alone = search_with(1);
  for (const int workers : {2, 4, 16, 100, 1000}) {
    const SearchRecord many = search_with(workers);
    INFO(workers << " workers: " << many.made << " runs made, " << many.used << " of them of use; "
                 << alone.seconds / many.seconds << " times as fast, " << many.own_ms << " ms of its own a run");
    CHECK(many.search == alone.search);
    CHECK(many.used == alone.used);
    CHECK(many.seconds < alone.seconds * (workers == 2 ? 0.75 : workers == 4 ? 0.5 : 0.4));
  }
}

TEST_CASE("runs made ahead: with four workers the first four runs of a search all start at once") {
  const SearchRecord record = search_with(4);
  REQUIRE(record.begun.size() > 4);
  REQUIRE(record.asked.size() > 4);
  // The first schedules are the run without faults, the survey, and the first trials.
  for (std::size_t i = 0; i < 4; ++i) {
    INFO(i);
    CHECK(record.begun[i] == record.asked[i]);
    CHECK(record.began[i] == 0);
  }
}

TEST_CASE("runs made ahead: their cost and benefit are printed", "[.simulation]") {
  const SearchRecord alone = search_with(1);
  for (const int workers : {1, 2, 4, 8, 16, 64, 256, 1000}) {
    const SearchRecord many = search_with(workers);
    fmt::print("{:5} workers: {:4} of {:4} runs of use, {:5.2f} times as fast, {:.2f} ms of its own a run\n", workers,
               many.used, many.made, alone.seconds / many.seconds, many.own_ms);
  }
}

TEST_CASE("runs made ahead: of equal schedules the run that began first is used first") {
  PlayedCrew crew(3);
  crew.takes = [](int id) { return id == 1 ? 100.0 : 1.0; };
  engine::Ahead ahead(crew);
  const schedule::Schedule a = named("a");
  ahead.expect({a, a});
  Result<std::vector<engine::Done>> first = ahead.make({&a});
  REQUIRE(first);
  CHECK((*first)[0].id == 1);
  CHECK(crew.now == 100);
  Result<std::vector<engine::Done>> others = ahead.make({&a, &a});
  REQUIRE(others);
  CHECK((*others)[0].id == 2);
  CHECK((*others)[1].id == 3);
  CHECK(crew.now == 100);
  CHECK(ahead.made() == 3);
}

TEST_CASE("runs made ahead: runs no longer expected are not started, requested ones go first") {
  PlayedCrew crew(1);
  engine::Ahead ahead(crew);
  const schedule::Schedule a = named("a"), b = named("b"), c = named("c"), d = named("d");
  ahead.expect({b, c});
  REQUIRE(ahead.make({&a}));  // while this run was made, the worker has started b
  ahead.expect({c});
  REQUIRE(ahead.make({&d}));
  REQUIRE(crew.order.size() >= 3);
  CHECK(crew.order[0] == schedule::to_toml(a));
  CHECK(crew.order[1] == schedule::to_toml(b));
  CHECK(crew.order[2] == schedule::to_toml(d));
  REQUIRE(ahead.make({&b}));  // b has been run already, so no further run is started
  CHECK(std::count(crew.order.begin(), crew.order.end(), schedule::to_toml(b)) == 1);
}

TEST_CASE("runs made ahead: the search fails if no worker is left") {
  PlayedCrew crew(0);
  engine::Ahead ahead(crew);
  const schedule::Schedule a = named("a");
  const Result<std::vector<engine::Done>> made = ahead.make({&a});
  REQUIRE_FALSE(made);
  CHECK(made.error().message == "nobody works");
}
