// Programs that an earlier tracer has used. The window and the counters of the next tracer must contain nothing of the
// earlier one.
#include <fstream>
#include <set>

#include "kernel/attach.h"
#include "observe_support.h"

using namespace rose;
using namespace rose::observe;
using namespace rose::observe::test;
using trace::EventType;

namespace {

// The ids of the BPF programs that this process holds.
std::set<std::string> held_programs() {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream file(entry.path());
    bool link = false;
    std::string number;
    for (std::string word, value; file >> word && std::getline(file, value);) {
      if (word == "link_id:") link = true;
      if (word == "prog_id:") number = value;
    }
    if (!link && !number.empty()) found.insert(number);
  }
  return found;
}

std::vector<std::string> failures(const trace::Trace& trace, pid_t pid) {
  std::vector<std::string> found;
  for (const auto& event : find(trace, {.type = EventType::scf, .pid = pid}))
    found.push_back(kernel::syscall_name(event.syscall) + " " + kernel::errno_name(event.err));
  return found;
}

}  // namespace

TEST_CASE("a tracer that reuses loaded programs starts empty and records as the first one did") {
  TracerOptions options;
  options.count_syscalls = true;
  options.messages = true;
  options.programs = keep_programs();
  std::set<std::string> first_programs;
  std::vector<std::string> first_failures;
  {
    const TestCgroup cgroup("kept-first"), other("kept-other");
    const Folder folder, other_folder;
    auto tracer = start({watched("n1", cgroup, {"*"}), watched("n2", other, {"*"})}, options);
    first_programs = held_programs();
    Victim victim(&cgroup, {"failures", folder.path, "1"}), storm(&other, {"failures", other_folder.path, "200"});
    REQUIRE(victim.run() == 0);
    REQUIRE(storm.run() == 0);
    first_failures = failures(snapshot(*tracer), victim.pid());
    REQUIRE(first_failures.size() > 20);
  }
  const TestCgroup cgroup("kept-second"), other("kept-idle");
  const Folder folder;
  auto tracer = start({watched("n1", cgroup, {"*"}), watched("n2", other, {"*"})}, options);
  CHECK((held_programs() == first_programs) == kernel::has_uprobe_multi());
  const auto before = snapshot(*tracer);
  INFO(describe(before));
  CHECK(before.events.empty());
  CHECK(before.meta.handshakes.empty());
  CHECK(before.meta.suppressed_calls.empty());
  CHECK(before.meta.lost == 0);
  CHECK(before.meta.pairs_evicted == 0);
  CHECK(tracer->stats().recorded == 0);
  for (const auto& [node, calls] : tracer->counts().syscalls) CHECK(calls.empty());

  Victim victim(&cgroup, {"failures", folder.path, "1"});
  REQUIRE(victim.run() == 0);
  const auto trace = snapshot(*tracer);
  CHECK(failures(trace, victim.pid()) == first_failures);
  for (const auto& event : trace.events) CHECK(trace.str(event.node) == "n1");
}

TEST_CASE("programs with other settings are loaded separately, also while the first ones are in use") {
  TracerOptions options;
  options.programs = keep_programs();
  const TestCgroup cgroup("kept-one"), other("kept-two");
  auto first = start({target("n1", cgroup)}, options);
  const auto held = held_programs();
  auto second = start({target("n1", other)}, options);
  CHECK(held_programs().size() == 2 * held.size());
  first.reset();
  options.pause_ns *= 2;
  auto third = start({target("n1", cgroup)}, options);
  CHECK(held_programs().size() >= 2 * held.size());
  const Folder folder, other_folder;
  Victim one(&cgroup, {"failures", folder.path, "1"}), two(&other, {"failures", other_folder.path, "1"});
  REQUIRE(one.run() == 0);
  REQUIRE(two.run() == 0);
  CHECK(failures(snapshot(*third), one.pid()) == failures(snapshot(*second), two.pid()));
  CHECK(find(snapshot(*third), {.type = EventType::scf, .pid = two.pid()}).empty());
}
