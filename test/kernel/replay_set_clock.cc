// Sets the clock of the whole machine during a run. This is a separate test program that runs alone, because other
// tests measure times.
#include <sys/timex.h>

#include <fstream>
#include <thread>

#include "logs/untimed.h"
#include "replay/log_times.h"
#include "replay_rig.h"

using namespace rose;
using namespace rose::test;

namespace {

// Sets the clock back by twenty milliseconds. The destructor sets it forward again.
class SetBack {
 public:
  SetBack() : set_(set(-kBy)) {}
  SetBack(const SetBack&) = delete;
  SetBack& operator=(const SetBack&) = delete;
  ~SetBack() {
    if (set_) (void)set(kBy);
  }
  explicit operator bool() const { return set_; }

 private:
  static constexpr long kBy = 20'000;
  static bool set(long by_us) {
    timex change{};
    change.modes = ADJ_SETOFFSET;
    change.time.tv_sec = by_us < 0 ? -1 : 0;
    change.time.tv_usec = by_us < 0 ? 1'000'000 + by_us : by_us;
    return ::clock_adjtime(CLOCK_REALTIME, &change) >= 0;
  }
  const bool set_;
};

}  // namespace

TEST_CASE("when the clock is set during a run, its events, start and log lines share one time line", "[replay]") {
  const Folder folder;
  const auto config =
      one_node("set", {kVictim, "gate", "../go", "openr", "absent", "print", "failed", "gate", "../end"},
               "touch go; until [ -e done ]; do sleep 0.01; done", 300 * kSecond);
  const auto schedule = schedule::parse_schedule(R"(
version = 1
name = "set"
[[fault]]
id = "first"
kind = "syscall"
node = "n1"
syscall = "openat"
path = "*/n1/absent"
error = "EIO"
)",
                                                 "test.toml");
  REQUIRE(schedule);
  std::unique_ptr<SetBack> back;
  std::thread setting([&] {
    if (eventually([&] { return read_file(folder / "n1/stdout.log").value_or("").find("failed") != std::string::npos; },
                   300 * kSecond))
      back = std::make_unique<SetBack>();
    (void)write_file(folder / "done", "");
  });
  const auto run = replay::run_once(config, *schedule, run_options(config, folder));
  setting.join();
  if (!run) FAIL(run.error().message);
  REQUIRE(back);
  if (!*back) skip_case("needs to set the machine's clock (CAP_SYS_TIME)");
  const trace::Trace& trace = run->result.trace;
  REQUIRE(run->result.faults.size() == 1);
  REQUIRE(run->result.faults[0].fired);
  const std::int64_t fired = trace.meta.workload_ts + run->result.faults[0].fired_ns;
  std::size_t failed = 0;
  for (const trace::Event& event : trace.events) {
    if (event.type != trace::EventType::scf || !trace.str(event.path).ends_with("/n1/absent")) continue;
    ++failed;
    // No event may precede the fault that caused it.
    CHECK(event.ts_ns >= fired);
  }
  CHECK(failed == 1);
}

TEST_CASE("when the clock is set between two log lines, the later one stays later", "[replay]") {
  const Folder folder;
  const std::filesystem::path file = folder / "stderr.log";
  auto times = replay::LogTimes::watch({folder.path});
  REQUIRE(times);
  logs::Watch watch([&] { return std::vector<logs::Input>{{file, "n1"}}; });
  std::ofstream(file) << "one\n";
  REQUIRE(eventually([&] { return watch.marks() == 1; }));
  const SetBack back;
  if (!back) skip_case("needs to set the machine's clock (CAP_SYS_TIME)");
  std::ofstream(file, std::ios::app) << "two\n";
  REQUIRE(eventually([&] { return watch.marks() == 2; }));
  watch.stop();
  const auto& marks = watch.growth().at(file);
  CHECK(marks[0].ts_ns <= marks[1].ts_ns);
  times->stop();
  const auto lines = times->times(file);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] <= lines[1]);
}
