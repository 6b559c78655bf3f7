// Target cgroups that appear later, disappear and appear again, as when units and containers are restarted. Also
// several tracers in parallel.
#include <bpf/bpf.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "observe_support.h"

namespace rose::observe::test {
namespace {

// Starts a process that is in the cgroup from its first instruction on.
pid_t run_in(const std::filesystem::path& cgroup, const std::function<void()>& does) {
  const Fd folder(::open(cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(folder);
  clone_args args{};
  args.flags = CLONE_INTO_CGROUP;
  args.exit_signal = SIGCHLD;
  args.cgroup = static_cast<std::uint64_t>(folder.get());
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  REQUIRE(pid >= 0);
  if (pid == 0) {
    does();
    ::_exit(0);
  }
  REQUIRE(::waitpid(static_cast<pid_t>(pid), nullptr, 0) == pid);
  return static_cast<pid_t>(pid);
}

// Starts a process whose first call fails.
pid_t fail_at_once(const std::filesystem::path& cgroup, const char* path) {
  return run_in(cgroup, [&] { ::open(path, O_RDONLY); });
}

bool recorded(Tracer& tracer, const char* path, pid_t pid) {
  return find(snapshot(tracer), {trace::EventType::scf, "", "ENOENT", path, "", "", pid}).size() == 1;
}

// The number of programs that are attached to the sockets of a cgroup for incoming packets.
std::uint32_t packet_programs(const std::filesystem::path& cgroup) {
  const Fd folder(::open(cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::uint32_t ids[64], flags = 0, count = 64;
  return folder && bpf_prog_query(folder.get(), BPF_CGROUP_INET_INGRESS, 0, &flags, ids, &count) == 0 ? count : 0;
}

void take_away(const std::filesystem::path& cgroup) {
  // the kernel may hold the folder for a moment after the last process has ended
  REQUIRE(eventually([&] { return ::rmdir(cgroup.c_str()) == 0; }));
}

}  // namespace

TEST_CASE("a target cgroup that is recreated is traced from its first process") {
  const TestCgroup parent("again");
  const auto unit = parent.path() / "x.service";
  REQUIRE(std::filesystem::create_directory(unit));
  Target node;
  node.node = "n1";
  node.cgroups = {unit};
  auto tracer = start({node});
  CHECK(recorded(*tracer, "/rose-first", fail_at_once(unit, "/rose-first")));
  CHECK(packet_programs(unit) == 1);
  for (int round = 0; round < 20; ++round) {
    take_away(unit);
    REQUIRE(std::filesystem::create_directory(unit));
    const auto path = "/rose-again-" + std::to_string(round);
    CHECK(recorded(*tracer, path.c_str(), fail_at_once(unit, path.c_str())));
  }
  CHECK(eventually([&] { return packet_programs(unit) == 1; }));
  // Processes in a new folder below the cgroup are traced, too.
  REQUIRE(std::filesystem::create_directory(unit / "below"));
  CHECK(recorded(*tracer, "/rose-below", fail_at_once(unit / "below", "/rose-below")));
  // A folder beside it is not one of the targets.
  REQUIRE(std::filesystem::create_directory(parent.path() / "y.service"));
  CHECK_FALSE(recorded(*tracer, "/rose-beside", fail_at_once(parent.path() / "y.service", "/rose-beside")));
  take_away(unit / "below");
  take_away(unit);
  // The parent of a target cgroup may be created again together with the target.
  const auto slice = parent.path() / "a.slice";
  Target inner;
  inner.node = "inner";
  inner.cgroups = {slice / "z.service"};
  auto second = start({node, inner});
  for (int round = 0; round < 3; ++round) {
    REQUIRE(std::filesystem::create_directories(slice / "z.service"));
    const auto path = "/rose-inner-" + std::to_string(round);
    const pid_t pid = fail_at_once(slice / "z.service", path.c_str());
    const auto trace = snapshot(*second);
    const auto found = find(trace, {trace::EventType::scf, "", "ENOENT", path, "", "", pid});
    REQUIRE(found.size() == 1);
    CHECK(trace.str(found[0].node) == "inner");
    CHECK(eventually([&] { return packet_programs(slice / "z.service") == 1; }));
    take_away(slice / "z.service");
    take_away(slice);
  }
  take_away(parent.path() / "y.service");
}

TEST_CASE("a target cgroup is traced even if its record was lost in a full ring") {
  const TestCgroup parent("untold");
  const auto unit = parent.path() / "x.service";
  Target node;
  node.node = "n1";
  node.cgroups = {unit};
  auto tracer = start({node});
  const FullRing ring;
  for (int round = 0; round < 3; ++round) {
    INFO("round " << round);
    bool missed = false;
    for (int tries = 0; tries < 1000 && !missed; ++tries) {
      std::error_code ignored;
      if (std::filesystem::exists(unit, ignored)) take_away(unit);
      const auto before = ring.missed().cgroups;
      ring.fill();
      REQUIRE(std::filesystem::create_directory(unit));
      missed = ring.missed().cgroups != before;  // false if the tracer read the ring in between, so that it had space
    }
    REQUIRE(missed);
    CHECK(eventually([&] { return packet_programs(unit) == 1; }));
    CHECK(recorded(*tracer, "/rose-untold", fail_at_once(unit, "/rose-untold")));
    take_away(unit);
  }
}

TEST_CASE("calls of a container runtime before it executes the program are not recorded") {
  const TestCgroup cgroup("runtime");
  auto tracer = start({target("n1", cgroup)});
  for (const char* name : {"runc:[2:INIT]", "youki:[2:INIT]", "crun", "crunch"}) {
    const pid_t pid = run_in(cgroup.path(), [&] {
      ::prctl(PR_SET_NAME, name);
      ::open("/rose-setup", O_RDONLY);
      ::close(::open("/dev/null", O_WRONLY | O_CREAT, 0600));
      if (const pid_t helper = ::fork(); helper == 0) ::_exit(0);
      else ::waitpid(helper, nullptr, 0);
      ::execl("/bin/sh", "sh", "-c", ": < /rose-program; exit 3", nullptr);
    });
    const auto trace = snapshot(*tracer);
    INFO(name << "\n" << describe(trace));
    const std::size_t own = std::string_view(name) == "crunch" ? 1 : 0;
    CHECK(find(trace, {trace::EventType::scf, "", "ENOENT", "/rose-setup", "", "", pid}).size() == own);
    CHECK(find(trace, {trace::EventType::sys, "openat", "", "/dev/null", "", "", pid}).size() == own);
    CHECK(find(trace, {trace::EventType::scf, "", "ENOENT", "/rose-program", "", "", pid}).size() == 1);
    CHECK(processes(trace, pid, trace::ProcessState::started).size() == 1);
    CHECK(processes(trace, pid, trace::ProcessState::exited).size() == 1);
    const auto helpers = std::count_if(trace.events.begin(), trace.events.end(), [](const trace::Event& e) {
      return e.state == trace::ProcessState::exited && e.exit_code == 0;
    });
    CHECK(static_cast<std::size_t>(helpers) == own);
  }
}

TEST_CASE("packet programs are attached only to the outermost of nested node cgroups, also after recreation") {
  const TestCgroup parent("outermost");
  const auto outer = parent.path() / "outer", inner = outer / "inner";
  Target first, second;
  first.node = "inner";
  first.cgroups = {inner};
  second.node = "outer";
  second.cgroups = {outer};
  auto tracer = start({first, second});
  for (int round = 0; round < 3; ++round) {
    REQUIRE(std::filesystem::create_directories(inner));
    CHECK(eventually([&] { return packet_programs(outer) == 1; }));
    CHECK(packet_programs(inner) == 0);
    CHECK(recorded(*tracer, "/rose-in-inner", fail_at_once(inner, "/rose-in-inner")));
    take_away(inner);
    take_away(outer);
  }
}

TEST_CASE("a frozen cgroup is recorded, also one created later") {
  const TestCgroup parent("freeze-later");
  const auto unit = parent.path() / "x.service";
  Target node;
  node.node = "n1";
  node.cgroups = {unit};
  TracerOptions options;
  options.pause_ns = 1'000'000;
  auto tracer = start({node}, options);
  REQUIRE(std::filesystem::create_directory(unit));
  const auto write = [&](const char* file, const std::string& text) { std::ofstream(unit / file) << text; };
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  write("cgroup.procs", std::to_string(child));
  const auto paused = [&] {
    Want want;
    want.type = trace::EventType::ps;
    const auto trace = snapshot(*tracer);
    for (const auto& event : find(trace, want))
      if (event.state == trace::ProcessState::paused) return true;
    return false;
  };
  CHECK_FALSE(paused());
  write("cgroup.freeze", "1");
  CHECK(eventually(paused));  // reported although the pause has not ended
  write("cgroup.freeze", "0");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(eventually(paused));
  take_away(unit);
}

TEST_CASE("a path outside of the cgroup file system is refused as target") {
  Target node;
  node.node = "n1";
  node.cgroups = {"/tmp/rose-not-a-cgroup/x.service"};
  const auto tracer = Tracer::start({}, {node});
  REQUIRE_FALSE(tracer.has_value());
  CHECK(tracer.error().kind == ErrorKind::input);
  CHECK(tracer.error().message.find("/tmp/rose-not-a-cgroup/x.service") != std::string::npos);
}

TEST_CASE("several tracers of one target each record everything and stop independently") {
  const TestCgroup cgroup("several");
  auto first = start({target("a", cgroup)}), second = start({target("b", cgroup)}),
       third = start({target("c", cgroup)});
  CHECK(packet_programs(cgroup.path()) == 3);
  pid_t pid = fail_at_once(cgroup.path(), "/rose-three");
  for (auto* tracer : {first.get(), second.get(), third.get()}) CHECK(recorded(*tracer, "/rose-three", pid));
  second.reset();
  pid = fail_at_once(cgroup.path(), "/rose-two");
  CHECK(recorded(*first, "/rose-two", pid));
  CHECK(recorded(*third, "/rose-two", pid));
  CHECK(eventually([&] { return packet_programs(cgroup.path()) == 2; }));
  first.reset();
  pid = fail_at_once(cgroup.path(), "/rose-one");
  CHECK(recorded(*third, "/rose-one", pid));
  third.reset();
  CHECK(eventually([&] { return packet_programs(cgroup.path()) == 0; }));
}

}  // namespace rose::observe::test
