// Triggers with real processes, and failures that were declared to be expected.
#include <sys/mount.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/log.h"
#include "base/units.h"
#include "observe/triggers.h"
#include "observe_support.h"
#include "trace/dump.h"

using namespace rose;
using namespace rose::observe;
using namespace rose::observe::test;
using trace::EventType;

namespace {

// A tracer with triggers, as `rose trace` has them.
struct Watched {
  std::unique_ptr<Tracer> tracer;
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<Triggers> triggers;

  Watched(const Target& target, const Folder& folder, const TriggerOptions& options) : tracer(start({target})) {
    auto files = DumpFiles::open(folder / "dump.bin", 5, "host");
    REQUIRE(files);
    recorder = std::make_unique<Recorder>(*tracer, std::move(*files));
    auto started = Triggers::start(options, *tracer, *recorder);
    REQUIRE(started);
    triggers = std::move(*started);
  }
  ~Watched() { triggers.reset(); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  bool dumps(std::size_t count) const {
    return eventually([&] { return recorder->written().size() >= count; });
  }
  trace::Trace read(std::size_t index) {
    auto dump = trace::read_dump(recorder->written().at(index).file);
    if (!dump) FAIL(dump.error().message);
    return std::move(dump->trace);
  }
};

std::string own_cgroup() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return {};
}

}  // namespace

TEST_CASE("a crash triggers a dump, and a crash loop does not fill the disk", "[triggers]") {
  const TestCgroup cgroup("crash");
  const Folder folder;
  TriggerOptions options;
  options.on_crash = true;
  Watched watched(target("n1", cgroup), folder, options);
  Victim orderly(&cgroup, {"exit", "3"});  // its exit is no crash, because a cgroup target has no main process
  orderly.run();
  Victim victim(&cgroup, {"segv"});
  const pid_t pid = victim.pid();
  victim.run();
  REQUIRE(watched.dumps(1));
  const auto trace = watched.read(0);
  INFO(describe(trace));
  CHECK(trace.meta.trigger == "crash: n1: process " + std::to_string(pid) + " was killed by SIGSEGV");
  CHECK(processes(trace, pid, trace::ProcessState::crashed).size() == 1);

  Victim second(&cgroup, {"die"});
  second.run();
  Victim last(&cgroup, {"abort"});
  last.run();
  // When an event is in the tracer's window, the triggers have received it, too. So both ends have reached the triggers
  // before these are stopped.
  REQUIRE(eventually(
      [&] { return !processes(snapshot(*watched.tracer), last.pid(), trace::ProcessState::crashed).empty(); }));
  const TriggerTally tally = watched.triggers->stop();
  CHECK(watched.recorder->written().size() == 1);
  CHECK(tally.left_out == 2);
  CHECK_FALSE(tally.pending);
}

TEST_CASE("a main process's exit status other than 0 triggers a dump", "[triggers]") {
  for (const int status : {0, 7}) {
    const Folder folder;
    Victim victim(nullptr, {"exit", std::to_string(status)});
    Target target;
    target.node = "n1";
    target.pids = {victim.pid()};
    TriggerOptions options;
    options.on_crash = true;
    Watched watched(target, folder, options);
    const pid_t pid = victim.pid();
    victim.run();
    if (status != 0) {
      REQUIRE(watched.dumps(1));
      CHECK(watched.recorder->written()[0].trigger ==
            "crash: n1: the main process " + std::to_string(pid) + " exited with status 7");
    } else {
      REQUIRE(
          eventually([&] { return !processes(snapshot(*watched.tracer), pid, trace::ProcessState::exited).empty(); }));
      CHECK_FALSE(watched.triggers->stop().pending);
      CHECK(watched.recorder->written().empty());
    }
  }
}

TEST_CASE("a log line triggers a dump after the configured delay", "[triggers]") {
  const TestCgroup cgroup("log");
  const Folder folder;
  TriggerOptions options;
  options.logs = {{folder / "db.log", "panic: [a-z]+"}};
  options.after_ns = 1500 * kMillisecond;
  Watched watched(target("n1", cgroup), folder, options);
  // This program fails repeatedly.
  Victim victim(&cgroup, {"now-and-then"});
  victim.go();
  REQUIRE(eventually([&] {
    return !find(snapshot(*watched.tracer), {EventType::scf, "openat", "ENOENT", "/rose-none/now"}).empty();
  }));
  const std::int64_t written_ns = wall_ns();
  std::ofstream(folder / "db.log") << "all is well\npanic: disk\n";
  REQUIRE(watched.dumps(1));
  const auto trace = watched.read(0);
  CHECK(trace.meta.trigger.starts_with("log: "));
  CHECK(trace.meta.trigger.ends_with("db.log: panic: disk"));
  CHECK(trace.meta.end_ns - written_ns >= options.after_ns);
  const auto seen = find(trace, {EventType::scf, "openat", "ENOENT", "/rose-none/now"});
  REQUIRE_FALSE(seen.empty());
  CHECK(seen.front().ts_ns < written_ns);
  CHECK(seen.back().ts_ns > written_ns);
}

TEST_CASE("if the disk is full, a triggered dump is written once there is room", "[triggers]") {
  const TestCgroup cgroup("full");
  const Folder folder, logs;
  REQUIRE(::mount("rose-test", folder.path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=1m") == 0);
  const std::unique_ptr<const char, void (*)(const char*)> mounted(
      folder.path.c_str(), [](const char* path) { ::umount2(path, MNT_DETACH); });
  TriggerOptions options;
  options.logs = {{logs / "db.log", "panic"}};
  Watched watched(target("n1", cgroup), folder, options);
  Victim victim(&cgroup, {"failures", logs.path, "1"});
  REQUIRE(victim.run() == 0);
  const auto filler = folder / "filler";
  {
    std::ofstream file(filler);
    const std::string page(4096, 'x');
    while (file << page << std::flush) {
    }
  }
  std::ofstream(logs / "db.log") << "panic\n";
  const auto failed = [] {
    const auto messages = log::recent();
    return std::any_of(messages.begin(), messages.end(), [](const std::string& line) {
      return line.find("panic") != std::string::npos && line.find("No space left on device") != std::string::npos;
    });
  };
  REQUIRE(eventually(failed));
  CHECK(watched.recorder->written().empty());
  // Neither a part of a dump nor an unfinished file is left.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
  std::filesystem::remove(filler);
  REQUIRE(watched.dumps(1));
  const auto trace = watched.read(0);
  CHECK(trace.meta.trigger.ends_with("db.log: panic"));
  CHECK_FALSE(find(trace, {EventType::scf, "openat", "ENOENT"}).empty());
}

TEST_CASE("an oracle is run repeatedly and triggers a dump at each new hit", "[triggers]") {
  const TestCgroup cgroup("oracle");
  const Folder folder;
  const auto flag = folder / "bug";
  TriggerOptions options;
  const auto asked = folder / "asked";
  options.oracle = "test -e '" + flag.string() + "'; bug=$?; echo >>'" + asked.string() + "'; exit $bug";
  options.every_ns = 30 * kMillisecond;
  options.cooldown_ns = 0;
  Watched watched(target("n1", cgroup), folder, options);
  std::ofstream{flag};
  REQUIRE(watched.dumps(1));
  CHECK(watched.recorder->written()[0].trigger.starts_with("oracle: test -e '" + flag.string()));
  // An oracle that keeps finding the bug has no new hit. If it finds the bug again after a miss, that is a new hit.
  const auto asked_again = [&] {
    const auto before = std::filesystem::file_size(asked);
    // Wait for two more runs, because the first may have begun before the change.
    return eventually([&] { return std::filesystem::file_size(asked) >= before + 2; });
  };
  REQUIRE(asked_again());
  std::filesystem::remove(flag);
  REQUIRE(asked_again());
  std::ofstream{flag};
  REQUIRE(watched.dumps(2));
  const TriggerTally tally = watched.triggers->stop();
  CHECK(watched.recorder->written().size() == 2);
  CHECK(tally.oracle.hits == 2);
  CHECK(tally.oracle.asked > 2);
  CHECK(tally.oracle.unclear == 0);
}

TEST_CASE("an oracle that times out is killed with all its processes", "[triggers]") {
  const TestCgroup cgroup("deaf");
  const Folder folder;
  const auto pids = folder / "pids";
  TriggerOptions options;
  options.oracle = "echo $$ >> '" + pids.string() + "'; sleep 600 & wait";
  options.every_ns = 30 * kMillisecond;
  options.oracle_timeout_ns = 200 * kMillisecond;
  Watched watched(target("n1", cgroup), folder, options);
  const auto asked = [&] {
    std::ifstream file(pids);
    std::vector<pid_t> all;
    for (pid_t pid = 0; file >> pid;) all.push_back(pid);
    return all;
  };
  REQUIRE(eventually([&] { return asked().size() >= 3; }));
  const TriggerTally tally = watched.triggers->stop();
  CHECK(tally.oracle.unclear >= 2);
  CHECK(watched.recorder->written().empty());
  // A process that has ended may be a zombie of init for a moment.
  for (const pid_t pid : asked()) CHECK(eventually([&] { return ::kill(-pid, 0) != 0 && errno == ESRCH; }));
}

TEST_CASE("an oracle's own failures are not recorded", "[triggers]") {
  const TestCgroup cgroup("aside");
  const Folder folder;
  const std::string before = own_cgroup();
  REQUIRE_FALSE(before.empty());
  cgroup.write("cgroup.procs", "0");
  TriggerOptions options;
  options.oracle = "/bin/cat /rose-none/by-the-oracle; echo >>" + (folder / "asked").string() + "; exit 1";
  options.every_ns = 30 * kMillisecond;
  {
    Watched watched(target("n1", cgroup), folder, options);
    REQUIRE(::open("/rose-none/by-the-target", O_RDONLY) < 0);
    // Wait for the second run of the oracle, because it begins only after the first run has ended.
    CHECK(eventually([&] {
      std::error_code not_yet;
      const auto lines = std::filesystem::file_size(folder / "asked", not_yet);
      return !not_yet && lines >= 2;
    }));
    const TriggerTally tally = watched.triggers->stop();
    const auto trace = snapshot(*watched.tracer);
    CHECK(tally.oracle.asked >= 1);
    CHECK(tally.oracle.unclear == 0);
    CHECK(find(trace, {EventType::scf, "openat", "ENOENT", "/rose-none/by-the-target"}).size() == 1);
    CHECK(find(trace, {EventType::scf, "openat", "ENOENT", "/rose-none/by-the-oracle"}).empty());
  }
  std::ofstream(cgroup_root().string() + before + "/cgroup.procs") << "0";
}

TEST_CASE("expected failures are counted by kind, and the noise list can be changed", "[noise]") {
  const TestCgroup cgroup("noise-list");
  const auto run = [&](const std::vector<std::string>& rules) {
    TracerOptions options;
    auto table = kernel::noise_table(rules);
    REQUIRE(table);
    options.noise = *table;
    const Folder folder;  // the victim needs an empty folder
    auto tracer = start({target("n1", cgroup)}, options);
    Victim victim(&cgroup, {"failures", folder.path, "1"});
    REQUIRE(victim.run() == 0);
    return snapshot(*tracer);
  };
  const auto counted = [](const trace::Trace& trace, const char* call, int err) {
    std::uint64_t count = 0;
    for (const auto& kind : trace.meta.suppressed_calls)
      if (kernel::syscall_name(kind.syscall) == call && kind.err == err) count += kind.count;
    return count;
  };
  const auto plain = run({});
  const auto recorded = find(plain, {EventType::scf, "openat", "ENOENT"}).size();
  CHECK(recorded >= 3);
  CHECK(counted(plain, "openat", ENOENT) == 0);

  const auto suppressed = run({"open*:ENOENT"});
  CHECK(find(suppressed, {EventType::scf, "openat", "ENOENT"}).empty());
  CHECK(find(suppressed, {EventType::scf, "open", "ENOENT"}).empty());
  CHECK(find(suppressed, {EventType::scf, "execve", "ENOENT"}).size() == 1);
  CHECK(counted(suppressed, "openat", ENOENT) >= recorded);
  CHECK(suppressed.meta.suppressed >= counted(suppressed, "openat", ENOENT));
}
