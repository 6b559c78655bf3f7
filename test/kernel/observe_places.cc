// Paths, sockets and io_uring operations of calls that fail or change state. The trace is compared, call by call, with
// the list that the victim prints (test/programs/trace_places.c). No call may be missing, wrong or additional.
#include <algorithm>

#include "base/text.h"
#include "kernel/attach.h"
#include "kernel/open_flags.h"
#include "kernel/uring.h"
#include "observe_support.h"
#include "skip.h"

using namespace rose;
using namespace rose::observe;
using namespace rose::observe::test;
using trace::EventType;

namespace {

// An event in the format in which the victim prints it.
std::vector<std::string> fields_of(const trace::Trace& trace, const trace::Event& e) {
  std::string marks;
  const auto mark = [&](const std::string& text) { marks += (marks.empty() ? "" : " ") + text; };
  if ((e.flags & trace::kUnlinked) != 0) mark("unlinked");
  if ((e.flags & trace::kTruncated) != 0) mark("truncated");
  if (e.type == EventType::sys && e.result < 0) mark("result " + std::to_string(e.result));
  if (e.type == EventType::scf && e.result > 0) mark("op " + kernel::uring_operation_name(static_cast<int>(e.result)));
  return {std::string(trace::type_name(e.type)),
          kernel::syscall_name(e.syscall),
          e.err != 0 ? kernel::errno_name(e.err) : "",
          std::string(trace.str(e.path)),
          std::string(trace.str(e.path2)),
          std::string(trace.str(e.peer)),
          e.open_flags != 0 ? kernel::open_flags_text(e.open_flags) : "",
          marks};
}

std::string joined(const std::vector<std::string>& fields) {
  std::string out;
  for (const auto& field : fields)
    out += (out.empty() ? "" : " | ") + (field.size() > 300 ? "..." + field.substr(field.size() - 300) : field);
  return out;
}

// Returns false if the victim could not run here, because the kernel lacks a feature.
bool compare(const std::string& mode, TracerOptions options = {}) {
  const TestCgroup cgroup("places");
  const Folder folder;
  Victim victim(&cgroup, {mode, folder.path}, "trace_places");
  REQUIRE(victim.number("ready") == 1);
  const bool by_pid = mode == "uring";  // because its helper threads belong to the process
  Target tree;
  tree.node = "n1";
  tree.pids = {victim.pid()};
  auto tracer = start({by_pid ? tree : target("n1", cgroup)}, options);
  victim.go();
  const std::string output = victim.rest();
  const int status = victim.wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return false;
  REQUIRE(status == 0);
  const auto trace = snapshot(*tracer);
  std::vector<std::vector<std::string>> seen;
  for (const auto& event : trace.events) {
    if (event.type == EventType::scf || event.type == EventType::sys) seen.push_back(fields_of(trace, event));
    if (by_pid) CHECK(event.pid == victim.pid());
  }
  std::size_t at = 0;
  for (const auto& line : split(output, '\n')) {
    auto wanted = split(line, '\t');
    if (wanted.empty() || wanted[0] != "expect") continue;
    wanted.erase(wanted.begin());
    INFO("event " << at << ", wanted " << joined(wanted));
    REQUIRE(wanted.size() == 8);
    REQUIRE(at < seen.size());
    if (wanted[2] == "?") wanted[2] = seen[at][2];
    if (wanted[3] == "*") wanted[3] = seen[at][3];
    // Before Linux 5.19, a completion does not identify its request, and therefore neither the file nor the operation.
    if (wanted[1] == "io_uring_enter" && rose::kernel::uring_form() == ROSE_URING_DATA)
      std::fill(wanted.begin() + 3, wanted.end(), "");
    INFO("seen           " << joined(seen[at]));
    CHECK(wanted == seen[at]);
    ++at;
  }
  CHECK(at > 0);
  for (; at < seen.size(); ++at) FAIL_CHECK("not done by the victim: " << joined(seen[at]));
  CHECK(trace.meta.lost == 0);
  return true;
}

}  // namespace

TEST_CASE("paths are recorded: relative, at descriptors, removed, mounted, in chroots, of any length") {
  CHECK(compare("paths"));
}

TEST_CASE("sockets of all families have their peers, and a non-blocking connect is a state change") {
  CHECK(compare("sockets"));
}

TEST_CASE("restarted calls are recorded once, with their final result") { CHECK(compare("restarts")); }

TEST_CASE("io_uring operations are recorded inline, in a worker and in a polling thread") {
  if (!compare("uring")) rose::test::skip_case("needs io_uring, with a polling thread");
}
