// Failed calls and calls that change state: the right call and path are reported, and none is lost.
#include <map>
#include <set>
#include <thread>

#include "observe_support.h"
#include "trace/jsonl.h"

using namespace rose;
using namespace rose::observe;
using namespace rose::observe::test;
using trace::EventType;

TEST_CASE("every kind of failed call is recorded with its path or peer") {
  const TestCgroup cgroup("failures");
  const Folder folder;
  const std::string dir = folder.path;
  Victim victim(&cgroup, {"failures", dir, "1"});
  auto tracer = start({target("n1", cgroup)});
  const int status = victim.run();
  REQUIRE(status == 0);
  const int listening = victim.number("listening"), client = victim.number("client");
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));

  const auto scf = [&](const char* syscall, const char* error, const std::string& path, const std::string& path2 = "",
                       const std::string& peer = "") {
    INFO("failed " << syscall << " " << error << " " << path << " " << path2 << " " << peer);
    const auto found = find(trace, {EventType::scf, syscall, error, path, path2, peer, victim.pid()});
    CHECK(found.size() == 1);
    return found.empty() ? trace::Event{} : found.front();
  };
  const auto first = scf("openat", "ENOENT", dir + "/missing");
  CHECK(first.fd == -1);
  CHECK(first.tid == victim.pid());
  CHECK(trace.str(first.node) == "n1");
  CHECK(std::abs(first.ts_ns - wall_ns()) < 60'000'000'000);
  scf("openat", "ENOENT", dir + "/sub/odd");
  scf("openat", "ENOENT", dir + "/sub/gone");
  scf("openat", "ENOENT", "/rose-none/absolute");
  scf("open", "ENOENT", dir + "/old-open");
  scf("openat", "ENOENT", dir);
  CHECK(scf("ioctl", "ENOTTY", dir + "/file").fd >= 0);
  scf("lseek", "EINVAL", dir + "/file");
  scf("rename", "ENOENT", dir + "/from-missing", dir + "/to-new");
  scf("renameat", "ENOENT", dir + "/sub/at-missing", dir + "/at-new");
  scf("link", "ENOENT", dir + "/link-missing", dir + "/link-new");
  scf("symlink", "EEXIST", dir + "/file", "some/target");
  scf("execve", "ENOENT", dir + "/no-such-program");
  scf("mmap", "ENODEV", dir + "/sub");
  CHECK(scf("read", "EBADF", "").fd == 999);
  CHECK((scf("write", "EBADF", dir + "/sub/doomed").flags & trace::kUnlinked) != 0);
  CHECK(trace.str(scf("lseek", "ESPIPE", "").path).starts_with("pipe:["));
  scf("read", "EINVAL", "anon_inode:[eventpoll]");
  const auto named = scf("openat", "ENAMETOOLONG", "");
  CHECK((named.flags & trace::kTruncated) != 0);
  CHECK(trace.str(named.path).ends_with("ppp/tail"));
  CHECK(trace.str(named.path).size() == 4095);
  bool deep = false;
  for (const auto& event : find(trace, {EventType::scf, "openat", "ENOENT", "", "", "", victim.pid()})) {
    if (!trace.str(event.path).ends_with("ddd/deep-end")) continue;
    deep = true;
    CHECK((event.flags & trace::kTruncated) != 0);
    CHECK(trace.str(event.path).size() > 3500);
  }
  CHECK(deep);

  scf("connect", "ECONNREFUSED", "", "", "127.0.0.1:1");
  scf("connect", "ECONNREFUSED", "", "", "[::1]:1");
  scf("connect", "ENOENT", "", "", "unix:/rose-none/socket");
  scf("sendto", "EMSGSIZE", "", "", "127.0.0.1:9");
  scf("sendmsg", "EMSGSIZE", "", "", "127.0.0.1:10");
  scf("sendto", "EMSGSIZE", "", "", "127.0.0.1:11");
  scf("bind", "EADDRINUSE", "", "", "127.0.0.1:" + std::to_string(listening));
  scf("accept", "EMFILE", "", "", "127.0.0.1:" + std::to_string(listening));
  scf("sendto", "EPIPE", "", "", "127.0.0.1:" + std::to_string(client));

  const auto sys = [&](const char* syscall, const std::string& path, const std::string& path2 = "",
                       const std::string& peer = "") {
    INFO("changed " << syscall << " " << path << " " << path2 << " " << peer);
    const auto found = find(trace, {EventType::sys, syscall, "", path, path2, peer, victim.pid()});
    CHECK(found.size() == 1);
    return found.empty() ? trace::Event{} : found.front();
  };
  CHECK(sys("openat", dir + "/file").result >= 0);
  sys("unlink", dir + "/sub/doomed");
  sys("connect", "", "", "127.0.0.1:11");
  sys("connect", "", "", "127.0.0.1:" + std::to_string(listening));
  sys("listen", "", "", "127.0.0.1:" + std::to_string(listening));
  CHECK(sys("accept", "", "", "127.0.0.1:" + std::to_string(client)).result >= 0);
  sys("ftruncate", dir + "/file");
  sys("fsync", dir + "/file");
  sys("rename", dir + "/file", dir + "/renamed");
  sys("symlink", dir + "/pointer", "some/where");
  sys("mkdirat", dir + "/sub/made");
  sys("unlinkat", dir + "/sub/made");
  CHECK(find(trace, {EventType::sys, "openat", "", dir + "/renamed", "", "", 0}).empty());
  CHECK(trace.meta.lost == 0);
}

TEST_CASE("opens that only read are recorded on request, if the file was changed since the tracer started") {
  const TestCgroup cgroup("reads");
  const Folder folder;
  TracerOptions options;
  options.reads = true;
  auto tracer = start({target("n1", cgroup)}, options);
  Victim victim(&cgroup, {"failures", folder.path, "1"});
  REQUIRE(victim.run() == 0);
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  const auto found = find(trace, {EventType::sys, "openat", "", folder.path + "/renamed", "", "", victim.pid()});
  REQUIRE(found.size() == 1);
  CHECK((found[0].open_flags & (O_ACCMODE | O_CREAT)) == O_RDONLY);
  for (const char* other : {"/etc/passwd", "/proc/self/status"})
    CHECK(find(trace, {EventType::sys, "openat", "", other, "", "", victim.pid()}).empty());
}

TEST_CASE("short writes, short reads and SIGBUS of a mapped file are recorded as failures") {
  const TestCgroup cgroup("short");
  const Folder folder;
  auto tracer = start({target("n1", cgroup)});
  Victim victim(&cgroup, {"short", folder.path});
  REQUIRE(WEXITSTATUS(victim.run()) == 0);
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  std::vector<trace::Event> silent;
  for (const auto& event : find(trace, {EventType::scf, "", "", "", "", "", victim.pid()}))
    if (event.err == 0) silent.push_back(event);
  const std::string full = folder.path + "/full", sparse = folder.path + "/sparse";
  REQUIRE(silent.size() == 3);
  CHECK(kernel::syscall_name(silent[0].syscall) == "write");
  CHECK(trace.str(silent[0].path) == full);
  CHECK(silent[0].requested == 1 << 20);
  CHECK(silent[0].result == 64 << 10);
  CHECK(kernel::syscall_name(silent[1].syscall) == "mmap");
  CHECK(trace.str(silent[1].path) == sparse);
  CHECK(silent[1].signal == SIGBUS);
  CHECK(kernel::syscall_name(silent[2].syscall) == "pread64");
  CHECK(trace.str(silent[2].path) == full);
  CHECK(silent[2].requested == 8192);
  CHECK(silent[2].result == 4096);
  // The JSON form contains these values, too.
  CHECK(trace::event_to_json(trace, silent[0]).find("\"errno\":null,\"result\":65536,\"requested\":1048576") !=
        std::string::npos);
}

TEST_CASE("an exec is recorded as a state change with the program's path") {
  const TestCgroup cgroup("exec");
  auto tracer = start({target("n1", cgroup)});
  Victim victim(&cgroup, {"exit", "3"});
  REQUIRE(WEXITSTATUS(victim.run()) == 3);
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  CHECK(find(trace, {EventType::sys, "execve", "", ROSE_PROGRAMS_DIR "/trace_victim", "", "", victim.pid()}).size() ==
        1);
}

TEST_CASE("eight threads fail at once: nothing is lost silently, and no path is wrong") {
  const TestCgroup cgroup("threads");
  constexpr int kThreads = 8, kEach = 20'000;
  Victim victim(&cgroup, {"threads", std::to_string(kThreads), std::to_string(kEach)});
  auto tracer = start({target("n1", cgroup)});
  REQUIRE(victim.run() == 0);
  const auto trace = snapshot(*tracer);
  std::uint64_t seen = 0, wrong = 0;
  std::map<int, std::set<int>> numbers;
  for (const auto& event : trace.events) {
    const std::string path(trace.str(event.path));
    if (event.type != EventType::scf || !path.starts_with("/rose-none/")) continue;
    ++seen;
    int tid = 0, number = 0;
    if (std::sscanf(path.c_str(), "/rose-none/%d/%d", &tid, &number) != 2 || tid != event.tid ||
        event.pid != victim.pid() || !numbers[tid].insert(number).second || event.count != 1) {
      ++wrong;
    }
  }
  CHECK(wrong == 0);
  const auto stats = tracer->stats();
  WARN("of " << kThreads * kEach << " failures " << seen << " recorded, " << stats.lost << " counted as lost");
  CHECK(numbers.size() == kThreads);
  CHECK(seen + trace.meta.lost >= std::uint64_t{kThreads} * kEach);
  CHECK(seen <= std::uint64_t{kThreads} * kEach);
  if (stats.lost == 0) CHECK(seen == std::uint64_t{kThreads} * kEach);
}

TEST_CASE("threads and descendants that already run are traced") {
  Victim victim(nullptr, {"tree"});
  const int child = victim.number("child");
  REQUIRE(child > 0);
  Target by_pid;
  by_pid.node = "tree";
  by_pid.pids = {victim.pid()};
  auto tracer = start({by_pid});
  victim.end_input();
  REQUIRE(victim.wait() == 0);
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  CHECK(find(trace, {EventType::scf, "openat", "ENOENT", "/rose-none/child", "", "", child}).size() == 1);
  const auto thread = find(trace, {EventType::scf, "openat", "ENOENT", "/rose-none/thread", "", "", victim.pid()});
  REQUIRE(thread.size() == 1);
  CHECK(thread[0].tid != victim.pid());
  const auto ended = processes(trace, victim.pid(), trace::ProcessState::exited);
  REQUIRE(ended.size() == 1);
  CHECK((ended[0].flags & trace::kMain) != 0);
  const auto child_ended = processes(trace, child, trace::ProcessState::exited);
  REQUIRE(child_ended.size() == 1);
  CHECK((child_ended[0].flags & trace::kMain) == 0);
}

TEST_CASE("expected noise is counted, and a timed-out receive is not noise") {
  const TestCgroup cgroup("noise");
  Victim victim(&cgroup, {"noise"});
  auto tracer = start({target("n1", cgroup)});
  REQUIRE(victim.run() == 0);
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  CHECK(trace.meta.suppressed == 101);
  CHECK(find(trace, {EventType::scf, "read", "EAGAIN", "", "", "", 0}).empty());
  CHECK(find(trace, {EventType::scf, "recvfrom", "EAGAIN", "", "", "", victim.pid()}).size() == 1);
}

TEST_CASE("a storm of equal failures is combined into records with counts") {
  const TestCgroup cgroup("storm");
  Victim victim(&cgroup, {"same", "5000"});
  auto tracer = start({target("n1", cgroup)});
  REQUIRE(victim.run() == 0);
  const auto trace = snapshot(*tracer);
  std::uint64_t sum = 0, records = 0;
  for (const auto& event : find(trace, {EventType::scf, "openat", "ENOENT", "/rose-none/same", "", "", victim.pid()})) {
    sum += event.count;
    ++records;
  }
  CHECK(sum == 5000);
  CHECK(records < 5000 / 10);
  CHECK(records > 10);  // because each of the first failures has its own record
  CHECK(find(trace, {EventType::scf, "openat", "ENOENT", "/rose-none/other", "", "", victim.pid()}).size() == 1);
  CHECK(trace.meta.lost == 0);
}

TEST_CASE("under a storm on all processors every failure is counted, and infrequent events are kept") {
  const TestCgroup cgroup("storms");
  constexpr int kThreads = 2, kEach = 600'000;
  TracerOptions options;
  // a small window is enough: each processor reports the count of a repeated failure only once per second
  options.window = kThreads * kEach / 100;
  options.memory = std::uint64_t{8} << 20;
  Victim victim(&cgroup, {"storm", std::to_string(kThreads), std::to_string(kEach)});
  auto tracer = start({target("n1", cgroup)}, options);
  // Take snapshots of the table of frequent failures while it is changing.
  victim.go();
  std::thread reader([&] {
    for (int i = 0; i < 20; ++i) (void)tracer->snapshot();
  });
  const int status = victim.wait();
  reader.join();
  REQUIRE(status == 0);
  const auto trace = snapshot(*tracer);
  std::uint64_t sum = 0, records = 0;
  for (const auto& event : find(trace, {EventType::scf, "openat", "ENOENT", "/rose-none/same", "", "", victim.pid()})) {
    sum += event.count;
    ++records;
    CHECK((event.count == 1 || event.duration_ms >= 0));
  }
  WARN(kThreads * kEach << " failures in " << records << " records");
  CHECK(sum == std::uint64_t{kThreads} * kEach);
  CHECK(records < sum / 100);
  CHECK(find(trace, {EventType::scf, "openat", "ENOENT", "/rose-none/other", "", "", victim.pid()}).size() == 1);
  // Other events may be lost while the reader waits for a processor, but then they are counted.
  CHECK(trace.meta.lost < 100);
}

TEST_CASE("a small window keeps the newest events, and snapshots do not stop tracing") {
  const TestCgroup cgroup("window");
  TracerOptions options;
  options.window = 500;
  options.memory = std::uint64_t{8} << 20;
  Victim victim(&cgroup, {"threads", "1", "3000"});
  Victim second(&cgroup, {"threads", "1", "10"});
  auto tracer = start({target("n1", cgroup)}, options);
  REQUIRE(victim.run() == 0);
  const auto before = snapshot(*tracer);
  CHECK(before.events.size() <= 500);
  CHECK(before.meta.lost == 0);
  const std::string last = "/rose-none/" + std::to_string(victim.pid() + 0) + "/";
  int newest = -1, oldest = 1 << 30;
  for (const auto& event : find(before, {EventType::scf, "openat", "ENOENT", "", "", "", victim.pid()})) {
    int tid = 0, number = 0;
    if (std::sscanf(std::string(before.str(event.path)).c_str(), "/rose-none/%d/%d", &tid, &number) != 2) continue;
    newest = std::max(newest, number);
    oldest = std::min(oldest, number);
  }
  CHECK(newest == 2999);
  CHECK(oldest > 2400);
  REQUIRE(second.run() == 0);
  const auto after = snapshot(*tracer);
  CHECK(after.events.size() <= 500);
  CHECK(find(after, {EventType::scf, "openat", "ENOENT", "", "", "", second.pid()}).size() == 10);
  CHECK(tracer->stats().stored <= 500);
  CHECK(tracer->stats().memory <= options.memory);
}

TEST_CASE("two tracers record the same events and do not affect each other") {
  const TestCgroup one("two-a"), other("two-b");
  Victim victim(&one, {"threads", "1", "100"});
  Victim stranger(&other, {"threads", "1", "100"});
  auto first = start({target("a", one)});
  {
    auto second = start({target("a", one), target("b", other)});
    REQUIRE(victim.run() == 0);
    REQUIRE(stranger.run() == 0);
    const auto trace = snapshot(*second);
    CHECK(find(trace, {EventType::scf, "openat", "", "", "", "", victim.pid()}).size() == 100);
    const auto theirs = find(trace, {EventType::scf, "openat", "", "", "", "", stranger.pid()});
    REQUIRE(theirs.size() == 100);
    CHECK(trace.str(theirs[0].node) == "b");
  }
  const auto trace = snapshot(*first);
  CHECK(find(trace, {EventType::scf, "openat", "", "", "", "", victim.pid()}).size() == 100);
  CHECK(find(trace, {EventType::scf, "openat", "", "", "", "", stranger.pid()}).empty());
}

TEST_CASE("a stopped tracer leaves nothing in the kernel") {
  const TestCgroup cgroup("gone");
  const auto held = [] {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      if (std::filesystem::read_symlink(entry.path(), ignored).string().find("bpf") != std::string::npos) ++count;
    }
    return count;
  };
  const int before = held();
  {
    auto tracer = start({target("n1", cgroup)});
    CHECK(held() > before);
  }
  CHECK(held() == before);
}

TEST_CASE("profile: calls are counted by node and name") {
  const TestCgroup cgroup("count");
  TracerOptions options;
  options.count_syscalls = true;
  Victim victim(&cgroup, {"threads", "2", "700"});
  auto tracer = start({target("n1", cgroup)}, options);
  REQUIRE(victim.run() == 0);
  auto counts = tracer->counts();
  CHECK(counts.seconds > 0);
  CHECK(counts.syscalls["n1"]["openat"] == 1400);
  CHECK(counts.syscalls["n1"]["read"] >= 1);
}

TEST_CASE("invalid targets are refused") {
  TracerOptions options;
  CHECK(!Tracer::start(options, {}));
  Target target;
  target.node = "x";
  CHECK(Tracer::start(options, {target}).error().kind == ErrorKind::usage);
  target.cgroups = {"/tmp"};
  CHECK(Tracer::start(options, {target}).error().kind == ErrorKind::input);
  target.cgroups = {"/nowhere"};
  CHECK(Tracer::start(options, {target}).error().kind == ErrorKind::input);
  target.cgroups.clear();
  target.pids = {1 << 22};
  CHECK(Tracer::start(options, {target}).error().kind == ErrorKind::input);
  target.pids = {::getpid()};
  target.functions = {"rose_victim_rrare"};
  target.binaries = {ROSE_PROGRAMS_DIR "/trace_victim"};
  const auto refused = Tracer::start(options, {target});
  REQUIRE(!refused);
  CHECK(refused.error().kind == ErrorKind::input);
}
