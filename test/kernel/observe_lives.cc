// Processes are followed from their first instruction on and forgotten when they end. Their ends and pauses are
// distinguished (test/programs/trace_lives.c).
#include <bpf/bpf.h>
#include <dirent.h>
#include <sched.h>
#include <sys/ptrace.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/clock.h"
#include "bpf/tracer.h"
#include "observe_support.h"
#include "skip.h"
#include "state_of.h"

using namespace rose;
using namespace rose::observe;
using namespace rose::observe::test;
using rose::test::state_of;
using trace::EventType;
using trace::ProcessState;

namespace {

Victim& ready(Victim& victim) {
  REQUIRE(victim.number("ready") == 1);
  return victim;
}

Target tree(const std::string& node, pid_t pid) {
  Target out;
  out.node = node;
  out.pids = {pid};
  return out;
}

// The ids of the processes that the tracer of this process follows, from its map rose_procs. Other tracers, which may
// run in parallel, have their own maps.
std::set<std::uint32_t> followed() {
  std::set<std::uint32_t> pids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    bpf_map_info info{};
    std::uint32_t length = sizeof info;
    if (bpf_obj_get_info_by_fd(fd, &info, &length) != 0 || std::string(info.name) != "rose_procs") continue;
    std::uint32_t key = 0, next = 0;
    for (int error = bpf_map_get_next_key(fd, nullptr, &next); error == 0;
         error = bpf_map_get_next_key(fd, &key, &next)) {
      key = next;
      pids.insert(key);
    }
  }
  return pids;
}

std::vector<trace::Event> pauses(const trace::Trace& trace) {
  std::vector<trace::Event> found;
  for (const auto& event : trace.events) {
    if (event.type == EventType::ps && event.state == ProcessState::paused) found.push_back(event);
  }
  return found;
}

// A memory cgroup with a limit, v2 or v1. The path is empty if the machine has neither.
class MemoryCgroup {
 public:
  MemoryCgroup() {
    const std::string name = "rose-observe-oom-" + std::to_string(::getpid());
    std::ifstream mounts("/proc/self/mounts");
    std::string device, point, type, options, rest;
    while (mounts >> device >> point >> type >> options && std::getline(mounts, rest)) {
      if (type != "cgroup" || (options + ",").find(",memory,") == std::string::npos) continue;
      path_ = std::filesystem::path(point) / name;
      limit_ = "memory.limit_in_bytes";
      swap_ = "memory.memsw.limit_in_bytes";
    }
    if (path_.empty() && !cgroup_root().empty()) {
      std::ofstream(cgroup_root() / "cgroup.subtree_control") << "+memory";
      path_ = cgroup_root() / name;
      limit_ = "memory.max";
      swap_ = "memory.swap.max";
    }
    std::error_code failed;
    std::filesystem::create_directory(path_, failed);
    std::ofstream(path_ / limit_) << (24 << 20);
    std::ofstream(path_ / swap_) << (limit_ == "memory.max" ? 0 : 24 << 20);
    if (!std::filesystem::exists(path_ / limit_, failed)) path_.clear();
  }
  ~MemoryCgroup() {
    if (!path_.empty()) (void)eventually([&] { return ::rmdir(path_.c_str()) == 0 || errno == ENOENT; });
  }
  MemoryCgroup(const MemoryCgroup&) = delete;
  MemoryCgroup& operator=(const MemoryCgroup&) = delete;
  [[nodiscard]] bool there() const { return !path_.empty(); }
  void take(pid_t pid) const { std::ofstream(path_ / "cgroup.procs") << pid << std::flush; }

 private:
  std::filesystem::path path_;
  std::string limit_, swap_;
};

}  // namespace

TEST_CASE("kills by the OOM killer are distinguished from others") {
  const MemoryCgroup memory;
  if (!memory.there()) rose::test::skip_case("needs a cgroup memory controller, v1 or v2");
  const TestCgroup cgroup("oom");
  Victim eater(&cgroup, {"eat"}, "trace_lives"), killed(&cgroup, {"wait"}, "trace_lives");
  ready(eater), ready(killed);
  memory.take(eater.pid());
  const bool by_pid = GENERATE(false, true);
  auto tracer = start({by_pid ? tree("n1", eater.pid()) : target("n1", cgroup)});
  const int status = eater.run();
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(WTERMSIG(status) == SIGKILL);
  ::kill(killed.pid(), SIGKILL);
  killed.wait();
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  const auto oom = processes(trace, eater.pid(), ProcessState::crashed);
  REQUIRE(oom.size() == 1);
  CHECK(oom[0].signal == SIGKILL);
  CHECK((oom[0].flags & trace::kOutOfMemory) != 0);
  const auto other = processes(trace, killed.pid(), ProcessState::crashed);
  REQUIRE(other.size() == (by_pid ? 0 : 1));
  if (!by_pid) CHECK((other[0].flags & trace::kOutOfMemory) == 0);
}

TEST_CASE("a core dump is recorded, and so is a failed one") {
  std::ifstream file("/proc/sys/kernel/core_pattern");
  std::string pattern;
  std::getline(file, pattern);
  if (pattern.empty() || pattern[0] == '|' || pattern[0] == '/')
    rose::test::skip_case("needs a core_pattern that writes into the folder of the process, not '" + pattern + "'");
  const Folder folder;
  const TestCgroup cgroup("core");
  auto tracer = start({target("n1", cgroup)});
  Victim dumps(&cgroup, {"core", folder.path}, "trace_lives");
  REQUIRE(WCOREDUMP(ready(dumps).run()));
  Victim aborts(&cgroup, {"abort"});
  const int status = aborts.run();
  REQUIRE(WIFSIGNALED(status));
  const auto trace = snapshot(*tracer);
  const auto dumped = processes(trace, dumps.pid(), ProcessState::crashed);
  REQUIRE(dumped.size() == 1);
  CHECK(dumped[0].signal == SIGABRT);
  CHECK((dumped[0].flags & trace::kCoreDumped) != 0);
  const auto aborted = processes(trace, aborts.pid(), ProcessState::crashed);
  REQUIRE(aborted.size() == 1);
  CHECK(((aborted[0].flags & trace::kCoreDumped) != 0) == (WCOREDUMP(status) != 0));
}

TEST_CASE("uninterruptible waits above the threshold are recorded during and after them; a vfork is not") {
  const TestCgroup cgroup("blocked");
  TracerOptions options;
  options.pause_ns = 600'000'000;  // so the tracer takes a sample every 200 ms
  Victim blocked(&cgroup, {"blocked"}, "trace_lives"), brief(&cgroup, {"blocked"}, "trace_lives");
  Victim vforks(&cgroup, {"vfork"}, "trace_lives");
  ready(blocked), ready(brief), ready(vforks);
  auto tracer = start({target("n1", cgroup)}, options);
  vforks.go();
  const std::int64_t began_brief = monotonic_ns();
  brief.go();
  REQUIRE(eventually([&] {
    const char state = state_of(brief.pid());
    return state == 'D' || state == 'Z';
  }));
  if (state_of(brief.pid()) == 'Z' && WEXITSTATUS(brief.wait()) == 77) rose::test::skip_case("needs userfaultfd");
  brief.send("x");
  REQUIRE(brief.wait() == 0);
  const std::int64_t brief_ms = (monotonic_ns() - began_brief) / 1'000'000;
  const std::int64_t began = monotonic_ns();
  blocked.go();
  std::vector<trace::Event> open;
  REQUIRE(eventually([&] {
    open = processes(snapshot(*tracer), blocked.pid(), ProcessState::paused);
    return open.size() == 1 && open[0].duration_ms >= 1200;
  }));
  CHECK(is_open(open[0]));
  CHECK((open[0].flags & trace::kBlocked) != 0);
  REQUIRE(state_of(vforks.pid()) == 'D');  // the process that called vfork was in this state all the time
  vforks.send("x");
  REQUIRE(vforks.wait() == 0);
  blocked.send("x");
  REQUIRE(blocked.wait() == 0);
  const std::int64_t took_ms = (monotonic_ns() - began) / 1'000'000;
  std::vector<trace::Event> over;
  CHECK(eventually([&] {
    over = processes(snapshot(*tracer), blocked.pid(), ProcessState::paused);
    return over.size() == 1 && !is_open(over[0]);
  }));
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  REQUIRE(over.size() == 1);
  CHECK((over[0].flags & trace::kBlocked) != 0);
  CHECK(over[0].signal == 0);
  CHECK(over[0].tid == blocked.pid());
  CHECK(over[0].duration_ms >= open[0].duration_ms);
  CHECK(over[0].duration_ms <= took_ms + 200);  // the next sample detects the end
  // The brief wait is reported only if a busy machine prolonged it to at least 400 ms, so that two samples contained it
  // and a third one was due.
  const bool brief_reported = !processes(trace, brief.pid(), ProcessState::paused).empty();
  CHECK((!brief_reported || brief_ms >= 400));
  CHECK(pauses(trace).size() == (brief_reported ? 2 : 1));
}

TEST_CASE("children are traced from their first instruction, in any cgroup") {
  const TestCgroup elsewhere("starts");
  Victim victim(nullptr, {"starts", ROSE_PROGRAMS_DIR "/trace_lives", (elsewhere.path() / "cgroup.procs").string()},
                "trace_lives");
  ready(victim);
  auto tracer = start({tree("n1", victim.pid())});
  REQUIRE(victim.run() == 0);
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  for (const char* kind : {"clone", "clone3", "vfork", "spawn", "daemon", "moved", "moved-child"}) {
    INFO(kind);
    CHECK(find(trace, {EventType::scf, "openat", "ENOENT", std::string("/rose-none/") + kind, "", "", 0}).size() == 1);
  }
  CHECK(trace.meta.lost == 0);
  // Wait, because the daemon may not have ended yet.
  CHECK(eventually([] { return followed().empty(); }));
}

TEST_CASE("5,000 short-lived threads and 1,000 children are recorded, and their state is freed") {
  const TestCgroup cgroup("brief");
  Victim victim(&cgroup, {"brief", "5000", "1000"});
  const bool as_tree = GENERATE(false, true);
  auto tracer = start({as_tree ? tree("pids", victim.pid()) : target("n1", cgroup)});
  const std::int64_t began = monotonic_ns();
  REQUIRE(victim.run() == 0);
  const double seconds = static_cast<double>(monotonic_ns() - began) / 1e9;
  const auto trace = snapshot(*tracer);
  std::size_t threads = 0, children = 0, ended = 0, events = 0, wrong = 0;
  for (const auto& event : find(trace, {EventType::scf, "openat", "ENOENT", "", "", "", 0})) {
    if (!trace.str(event.path).starts_with("/rose-none/")) continue;
    if (trace.str(event.path) != "/rose-none/" + std::to_string(event.tid) + "/0") ++wrong;
    ++(event.pid == victim.pid() ? threads : children);
  }
  for (const auto& event : trace.events) {
    if (event.type == EventType::ps && event.state == ProcessState::exited && event.exit_code == 7) {
      ended += event.count;
      ++events;
    }
  }
  CHECK(wrong == 0);
  CHECK(threads == 5000);
  CHECK(children == 1000);
  CHECK(ended == 1000);
  // Equal ends are reported individually only a few times per second on each processor, however many there are.
  const auto processors = static_cast<double>(std::thread::hardware_concurrency());
  CHECK(static_cast<double>(events) <= processors * (ROSE_STORM_FEW + 1) * (seconds + 2));
  CHECK(trace.meta.lost == 0);
  CHECK(followed().empty());
}

TEST_CASE("programs executed in rapid succession are all counted; infrequent events are kept") {
  constexpr std::uint64_t kPrograms = 3000;
  const TestCgroup cgroup("execs");
  Victim victim(&cgroup, {"execs", std::to_string(kPrograms)}, "trace_lives");
  ready(victim);
  const bool as_tree = GENERATE(false, true);
  auto tracer = start({as_tree ? tree("n1", victim.pid()) : target("n1", cgroup)});
  const std::int64_t began = monotonic_ns();
  REQUIRE(victim.run() == 0);
  const double seconds = static_cast<double>(monotonic_ns() - began) / 1e9;
  const auto trace = snapshot(*tracer);
  struct {
    std::uint64_t counted = 0, events = 0;
    void add(const trace::Event& event) { counted += event.count, ++events; }
  } started, executed, exited;
  for (const auto& event : trace.events) {
    if (event.pid == victim.pid()) continue;
    if (event.type == EventType::sys && kernel::syscall_name(event.syscall) == "execve") executed.add(event);
    if (event.type == EventType::ps && event.state == ProcessState::started) started.add(event);
    if (event.type == EventType::ps && event.state == ProcessState::exited && event.exit_code == 7) exited.add(event);
  }
  WARN(kPrograms << " programs in " << seconds << " s: " << started.events << " starts, " << executed.events
                 << " calls, " << exited.events << " ends in events");
  const double most = static_cast<double>(std::thread::hardware_concurrency()) * (ROSE_STORM_FEW + 1) * (seconds + 2);
  for (const auto& kind : {started, executed, exited}) {
    CHECK(kind.counted == kPrograms);
    CHECK(static_cast<double>(kind.events) <= most);
  }
  CHECK(trace.meta.lost == 0);
  CHECK(find(trace, {EventType::scf, "openat", "ENOENT", "/rose-none/before", "", "", victim.pid()}).size() == 1);
  CHECK(followed() == std::set<std::uint32_t>{});
}

TEST_CASE("killed processes are recorded even if the ring is full") {
  const TestCgroup cgroup("flood");
  const unsigned threads = std::min(64U, 8 * std::max(1U, std::thread::hardware_concurrency()));
  Victim flood(&cgroup, {"threads", std::to_string(threads), "2000000000"});
  // The tracer's threads inherit this policy, so they run only when no other thread needs the processor, and the ring
  // fills up.
  const sched_param none{};
  REQUIRE(::sched_setscheduler(0, SCHED_IDLE, &none) == 0);
  TracerOptions options;
  options.memory = 4 << 20;
  auto tracer = start({target("n1", cgroup)}, options);
  REQUIRE(::sched_setscheduler(0, SCHED_OTHER, &none) == 0);
  flood.go();
  std::uint64_t lost = 0;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(eventually([&] { return tracer->stats().lost > lost + 1000; }));
    Victim victim(&cgroup, {"die"});
    victim.run();
    lost = tracer->stats().lost;
    // Stop the flood, because otherwise the end would be reported much later.
    REQUIRE(::kill(flood.pid(), SIGSTOP) == 0);
    INFO("death " << i << ", " << lost << " events lost");
    REQUIRE(eventually([&] {
      const auto ends = tracer->take_ends();
      return std::any_of(ends.begin(), ends.end(),
                         [&](const ProcessEnd& end) { return end.pid == victim.pid() && end.signal == SIGKILL; });
    }));
    REQUIRE(::kill(flood.pid(), SIGCONT) == 0);
  }
}

TEST_CASE("a killed process is handled even if its record was lost in a full ring") {
  const TestCgroup cgroup("untold");
  auto tracer = start({target("n1", cgroup)});
  const FullRing ring;
  pid_t missed = 0;
  for (int tries = 0; tries < 1000 && missed == 0; ++tries) {
    Victim victim(&cgroup, {"die"});
    const auto before = ring.missed().ends;
    std::atomic<bool> ended{false};
    std::thread keep_full([&] {
      while (!ended) ring.fill();
    });
    victim.run();
    ended = true;
    keep_full.join();
    if (const auto now = ring.missed(); now.ends != before) missed = victim.pid();
    else std::this_thread::sleep_for(1s);  // the tracer reports only some of many equal ends per second
  }
  REQUIRE(missed != 0);
  CHECK(eventually([&] {
    const auto ends = tracer->take_ends();
    return std::any_of(ends.begin(), ends.end(),
                       [&](const ProcessEnd& end) { return end.pid == missed && end.signal == SIGKILL; });
  }));
  CHECK(tracer->stats().lost > 0);
}

TEST_CASE("children that end between fork and exec are recorded, and their state is freed") {
  Victim victim(nullptr, {"churn", "400"}, "trace_lives");
  ready(victim);
  auto tracer = start({tree("n1", victim.pid())});
  CHECK(followed() == std::set<std::uint32_t>{static_cast<std::uint32_t>(victim.pid())});
  REQUIRE(victim.run() == 0);
  const auto trace = snapshot(*tracer);
  std::size_t exited = 0, killed = 0;
  for (const auto& event : trace.events) {
    if (event.type != EventType::ps || event.pid == victim.pid()) continue;
    exited += event.state == ProcessState::exited && event.exit_code == 3 ? event.count : 0;
    killed +=
        event.state == ProcessState::crashed && event.signal == SIGKILL && (event.flags & trace::kOutOfMemory) == 0
            ? event.count
            : 0;
  }
  CHECK(exited == 200);
  CHECK(killed == 200);
  CHECK(followed().empty());
}

TEST_CASE("failed calls of the 32-bit table are counted as lost and get no wrong name") {
  const TestCgroup cgroup("foreign");
  Victim victim(&cgroup, {"foreign", "25"}, "trace_lives");
  ready(victim);
  auto tracer = start({target("n1", cgroup)});
  const int status = victim.run();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) rose::test::skip_case("needs a kernel with 32-bit system calls");
  REQUIRE(status == 0);
  const auto trace = snapshot(*tracer);
  CHECK(trace.meta.lost == 25);
  CHECK(find(trace, {EventType::scf, "", "", "", "", "", 0}).empty());
}

TEST_CASE("freezing a part of a node or its parent cgroup, and kills while frozen, are recorded") {
  const TestCgroup above("freeze-above");
  const auto node = above.path() / "node", part = node / "part";
  std::filesystem::create_directory(node);
  std::filesystem::create_directory(part);
  TracerOptions options;
  options.pause_ns = 150'000'000;
  {
    Victim whole(nullptr, {"wait"}, "trace_lives"), some(nullptr, {"wait"}, "trace_lives");
    ready(whole), ready(some);
    const auto write = [](const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; };
    write(node / "cgroup.procs", std::to_string(whole.pid()));
    write(part / "cgroup.procs", std::to_string(some.pid()));
    Target target;
    target.node = "n1";
    target.cgroups = {node};
    auto tracer = start({target}, options);
    const auto frozen_for = [&](const std::filesystem::path& folder, std::size_t before) {
      const std::int64_t begin = wall_ns();
      write(folder / "cgroup.freeze", "1");
      REQUIRE(eventually([&] {
        const auto found = pauses(snapshot(*tracer));
        return found.size() == before + 1 && std::count_if(found.begin(), found.end(), is_open) == 1;
      }));
      write(folder / "cgroup.freeze", "0");
      std::vector<trace::Event> found;
      REQUIRE(eventually([&] {
        found = pauses(snapshot(*tracer));
        return found.size() == before + 1 && std::none_of(found.begin(), found.end(), is_open);
      }));
      const auto& last = found.back();
      CHECK(last.pid == 0);
      CHECK(last.duration_ms >= 150);
      CHECK(last.duration_ms <= (wall_ns() - begin) / 1'000'000 + 1);
      return last;
    };
    // If only a part of the node is frozen, one pause without the flag kMain is reported.
    CHECK((frozen_for(part, 0).flags & trace::kMain) == 0);
    // If the whole node is frozen, through its own folder or its parent, one pause of the whole node is reported,
    // although the tracer is notified about each folder below.
    CHECK((frozen_for(node, 1).flags & trace::kMain) != 0);
    CHECK((frozen_for(above.path(), 2).flags & trace::kMain) != 0);
    // If the node is killed while it is frozen, the pause ends with its last process.
    write(part / "cgroup.freeze", "1");
    REQUIRE(eventually([&] { return pauses(snapshot(*tracer)).size() == 4; }));
    ::kill(some.pid(), SIGKILL);
    some.wait();
    REQUIRE(eventually([&] {
      const auto found = pauses(snapshot(*tracer));
      return found.size() == 4 && std::none_of(found.begin(), found.end(), is_open);
    }));
    write(part / "cgroup.freeze", "0");
    CHECK(processes(snapshot(*tracer), some.pid(), ProcessState::crashed).size() == 1);
  }
  CHECK(eventually([&] { return ::rmdir(part.c_str()) == 0; }));
  CHECK(eventually([&] { return ::rmdir(node.c_str()) == 0; }));
}

TEST_CASE("stops of one process, earlier stops and ptrace stops are distinguished") {
  const TestCgroup cgroup("stops");
  TracerOptions options;
  options.pause_ns = 300'000'000;
  Victim one(&cgroup, {"wait"}, "trace_lives"), other(&cgroup, {"wait"}, "trace_lives");
  Victim early(&cgroup, {"wait"}, "trace_lives"), traced(&cgroup, {"wait"}, "trace_lives");
  Victim orphan(&cgroup, {"orphan"}, "trace_lives");
  for (Victim* victim : {&one, &other, &early, &traced, &orphan}) ready(*victim);
  ::kill(early.pid(), SIGSTOP);
  int status = 0;
  REQUIRE(::waitpid(early.pid(), &status, WUNTRACED) == early.pid());
  auto tracer = start({target("n1", cgroup)}, options);

  // A process that ptrace stopped, as a debugger does, is not reported.
  REQUIRE(::ptrace(PTRACE_ATTACH, traced.pid(), nullptr, nullptr) == 0);
  REQUIRE(::waitpid(traced.pid(), &status, 0) == traced.pid());
  // SIGTSTP does not stop a process in an orphaned process group.
  ::kill(orphan.pid(), SIGTSTP);
  const std::int64_t begin = wall_ns();
  ::kill(one.pid(), SIGSTOP);
  REQUIRE(::waitpid(one.pid(), &status, WUNTRACED) == one.pid());
  std::vector<trace::Event> open;
  REQUIRE(eventually([&] {
    open = pauses(snapshot(*tracer));
    return open.size() == 2 && open[0].duration_ms >= 350 && open[1].duration_ms >= 350;
  }));
  for (const auto& event : open) {
    CHECK(is_open(event));
    CHECK(event.signal == SIGSTOP);
    CHECK((event.pid == one.pid() || event.pid == early.pid()));
  }
  ::kill(one.pid(), SIGCONT);
  const std::int64_t most_ms = (wall_ns() - begin) / 1'000'000 + 1;
  ::kill(early.pid(), SIGKILL);  // it was stopped, and is now killed
  early.wait();
  REQUIRE(::ptrace(PTRACE_DETACH, traced.pid(), nullptr, nullptr) == 0);
  ::kill(orphan.pid(), SIGCONT);
  for (Victim* victim : {&other, &traced, &orphan}) {
    victim->end_input();
    CHECK(victim->wait() == 0);
  }
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  const auto of_one = processes(trace, one.pid(), ProcessState::paused);
  REQUIRE(of_one.size() == 1);
  CHECK_FALSE(is_open(of_one[0]));
  CHECK(of_one[0].duration_ms >= 350);
  CHECK(of_one[0].duration_ms <= most_ms);
  CHECK(processes(trace, early.pid(), ProcessState::paused).size() == 1);
  CHECK(processes(trace, early.pid(), ProcessState::crashed).size() == 1);
  CHECK(pauses(trace).size() == 2);
}
