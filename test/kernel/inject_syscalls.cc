// Syscall faults: the victim must get the planned result at exactly the planned call, and the real call must be made
// only if planned.
#include "inject_rig.h"

using namespace rose;
using namespace rose::test;

TEST_CASE("the nth matching call fails and is not executed") {
  Rig rig;
  rig.add({"append", "data.log", "write", "one", "write", "two", "write", "three", "print", "done"});
  rig.start(R"(
[[fault]]
id = "bad-write"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/data.log"
error = "EIO"
count = 2
)");
  rig.wait_end();
  const auto outcome = rig.finish().at(0);
  CHECK(rig.out() == "append data.log = 0\nwrite = 3\nwrite = EIO\nwrite = 5\ndone\n");
  CHECK(rig.read("n1/data.log") == "onethree");
  CHECK(outcome.fired);
  CHECK(outcome.armed);
  CHECK(outcome.seen == 2);
  CHECK(outcome.injected == 1);
  CHECK(outcome.pid > 0);
  CHECK(outcome.tid == outcome.pid);
  CHECK(outcome.detail == "write(" + rig.path("n1/data.log") + ")");
  CHECK(outcome.why_not.empty());
}

TEST_CASE("paths match relative, at descriptors, duplicated, by either name of a rename, and inherited") {
  Rig rig;
  rig.add({"mkdir",  "sub",    "chdir",  "sub",    "openr", "../sub/./absent", "openr",  "absent", "chdir",  "..",
           "openat", "sub",    "a.file", "openat", "sub",   "b.file",          "create", "c.file", "dup",    "write",
           "x",      "fork",   "write",  "y",      ";",     "write",           "z",      "rename", "c.file", "d.file",
           "rename", "d.file", "e.file", "print",  "done"});
  rig.start(R"(
[[fault]]
id = "relative"
kind = "syscall"
node = "n1"
syscall = "openat"
path = "*/n1/sub/absent"
error = "EACCES"
count = 2
[[fault]]
id = "dirfd"
kind = "syscall"
node = "n1"
syscall = "open*"
path = "*/n1/sub/b.*"
error = "EMFILE"
[[fault]]
id = "inherited"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/n1/c.file"
error = "ENOSPC"
count = 2
[[fault]]
id = "second-path"
kind = "syscall"
node = "n1"
syscall = "rename"
path = "*/e.file"
error = "EROFS"
)");
  rig.wait_end();
  const auto outcomes = rig.finish_fired();
  CHECK(rig.out() ==
        "mkdir sub = 0\nchdir = 0\nopenr ../sub/./absent = ENOENT\nopenr absent = EACCES\nchdir = 0\n"
        "openat a.file = 0\nopenat b.file = EMFILE\ncreate c.file = 0\ndup = 0\nwrite = 1\nwrite = ENOSPC\nwrite = 1\n"
        "rename d.file = 0\nrename e.file = EROFS\ndone\n");
  CHECK(rig.exists("n1/sub/a.file"));
  CHECK_FALSE(rig.exists("n1/sub/b.file"));
  CHECK(rig.read("n1/d.file") == "xz");
}

namespace {

// Each round opens its own file and writes 40 times from 8 threads. All writes from the nth on fail, or only the nth.
// Therefore the bytes in the file and the errors show exactly which write was the first to fail. Returns the number of
// rounds that were exact.
int exact_rounds(int first, int rounds) {
  Rig rig;
  std::vector<std::string> steps;
  std::string schedule;
  const auto nth = [](int round) { return 1 + round % 40; };
  const auto forever = [](int round) { return round % 2 == 0; };
  for (int round = first; round < first + rounds; ++round) {
    const auto file = fmt::format("f{}", round);
    steps.insert(steps.end(), {"append", file, "threads", "8", "5", "write", "x", ";", "close"});
    schedule += fmt::format(
        "[[fault]]\nid = \"{0}\"\nkind = \"syscall\"\nnode = \"n1\"\nsyscall = \"write\"\npath = \"*/n1/{0}\"\n"
        "error = \"EIO\"\ncount = {1}\ntimes = {2}\n",
        file, nth(round), forever(round) ? "\"forever\"" : "1");
  }
  rig.add(steps);
  rig.start(schedule);
  rig.wait_end();
  const auto outcomes = rig.finish();
  int exact = 0, errors = 0;
  for (int i = 0; i < rounds; ++i) {
    const int round = first + i;
    const auto expected = forever(round) ? nth(round) - 1 : 39;
    const auto& one = outcomes.at(static_cast<std::size_t>(i));
    errors += 40 - expected;
    const auto size = static_cast<int>(rig.read(fmt::format("n1/f{}", round)).size());
    if (size == expected && one.fired && static_cast<int>(one.injected) == 40 - expected) ++exact;
  }
  CHECK(rig.lines("write = EIO") == errors);
  return exact;
}

}  // namespace

TEST_CASE("the nth call fails exactly under 8 threads, 120 times") { CHECK(exact_rounds(0, 120) == 120); }

// For `kernel_inject [long]`. ROSE_ROUNDS is the number of rounds in hundreds (default 10).
TEST_CASE("the nth call fails exactly under 8 threads, 1,000 times", "[.][long]") {
  const char* hundreds = std::getenv("ROSE_ROUNDS");
  const int count = hundreds != nullptr ? std::atoi(hundreds) : 10;
  int exact = 0;
  for (int i = 0; i < count; ++i) exact += exact_rounds(i * 100, 100);
  CHECK(exact == count * 100);
  WARN(exact << " of " << count * 100 << " exact");
}

TEST_CASE("times limits how often a call fails") {
  Rig rig;
  rig.add({"append", "data", "repeat", "6", "write", "x", ";"});
  rig.start(R"(
[[fault]]
id = "some"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/data"
error = "EAGAIN"
count = 2
times = 3
)");
  rig.wait_end();
  const auto outcome = rig.finish().at(0);
  CHECK(rig.out() ==
        "append data = 0\nwrite = 1\nwrite = EAGAIN\nwrite = EAGAIN\nwrite = EAGAIN\nwrite = 1\nwrite = 1\n");
  CHECK(rig.read("n1/data") == "xxx");
  CHECK(outcome.injected == 3);
}

TEST_CASE("a call may return a false result, a short write, or an error after its effect") {
  Rig rig;
  rig.leave_to_seccomp();
  rig.add({"create", "lie", "write", "abcdef", "create", "short", "write", "abcdef", "create", "late", "write",
           "abcdef", "ftruncate", "2", "writev", "abc", "def", "print", "done"});
  rig.start(R"(
[[fault]]
id = "lie"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/lie"
result = 6
[[fault]]
id = "short"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/short"
result = 2
effect = { bytes = 2 }
[[fault]]
id = "late"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/late"
error = "EIO"
effect = "full"
[[fault]]
id = "late-truncate"
kind = "syscall"
node = "n1"
syscall = "ftruncate"
error = "EIO"
effect = "full"
[[fault]]
id = "late-vector"
kind = "syscall"
node = "n1"
syscall = "writev"
error = "ENOSPC"
effect = { bytes = 4 }
)");
  rig.wait_end();
  rig.finish_fired();
  CHECK(rig.out() ==
        "create lie = 0\nwrite = 6\ncreate short = 0\nwrite = 2\ncreate late = 0\nwrite = EIO\nftruncate = EIO\n"
        "writev = ENOSPC\ndone\n");
  CHECK(rig.read("n1/lie").empty());
  CHECK(rig.read("n1/short") == "ab");
  // Six bytes were written, truncated to two, and then four were written at offset six.
  CHECK(rig.read("n1/late") == std::string("ab\0\0\0\0abcd", 10));
}

TEST_CASE("a write ends as on a full disk: it does a part, and the next ones fail") {
  Rig rig;
  rig.leave_to_seccomp();
  rig.add({"create", "log", "write", "abcdef", "write", "cdef", "write", "gh", "write", "ij", "print", "done"});
  rig.start(R"(
[[fault]]
id = "full"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/log"
result = 2
effect = { bytes = 2 }
error = "ENOSPC"
times = 2
)");
  rig.wait_end();
  rig.finish_fired();
  CHECK(rig.out() == "create log = 0\nwrite = 2\nwrite = ENOSPC\nwrite = ENOSPC\nwrite = 2\ndone\n");
  CHECK(rig.read("n1/log") == "abij");
}

TEST_CASE("a short write never returns more than was asked for") {
  Rig rig;
  rig.leave_to_seccomp();
  rig.add({"create", "short", "write", "abcdef", "write", "gh", "print", "done"});
  rig.start(R"(
[[fault]]
id = "short"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/short"
result = 4
effect = { bytes = 4 }
times = "forever"
)");
  rig.wait_end();
  rig.finish_fired();
  CHECK(rig.out() == "create short = 0\nwrite = 4\nwrite = 2\ndone\n");
  CHECK(rig.read("n1/short") == "abcdgh");
}

TEST_CASE("a false fsync returns 0 without syncing, and a delay affects only its own call") {
  Rig rig;
  rig.leave_to_seccomp();
  rig.add({"create", "data", "fsync", "threads", "2", "1", "write", "x", ";", "fdatasync", "print", "done"});
  const auto before = monotonic_ns();
  rig.start(R"(
[[fault]]
id = "lie"
kind = "syscall"
node = "n1"
syscall = "fsync"
result = 0
[[fault]]
id = "slow"
kind = "syscall"
node = "n1"
syscall = "fdatasync"
delay = "300ms"
)");
  rig.wait_printed("write = 1\nwrite = 1\n");
  rig.wait_end();
  const auto took = monotonic_ns() - before;
  const auto outcomes = rig.finish();
  CHECK(rig.out() == "create data = 0\nfsync = 0\nwrite = 1\nwrite = 1\nfdatasync = 0\ndone\n");
  CHECK(outcomes.at(0).fired);
  CHECK(outcomes.at(1).fired);
  CHECK(took >= 300'000'000);
}

TEST_CASE("sockets match by peer and by local address") {
  Rig rig(config::Network::netns);
  rig.add({"server", "7100", "create", "up", "gate", "end"});
  rig.add({"gate", "../n1/up", "connect", "10.251.9.1", "7100", "send", "a", "recv", "1", "send", "b", "connect",
           "10.251.9.1", "7100", "send", "c", "print", "done"});
  rig.config.nodes[0].ready = config::Ready{.tcp = 7100, .log = {}, .command = {}, .timeout_ns = 120 * kSecond};
  const std::string schedule = R"(
[[fault]]
id = "send"
kind = "syscall"
node = "n2"
syscall = "sendto"
peer = "10.251.9.1:7100"
error = "ECONNRESET"
count = 2
[[fault]]
id = "connect"
kind = "syscall"
node = "n2"
syscall = "connect"
peer = ":7100"
error = "ECONNREFUSED"
count = 2
[[fault]]
id = "accepted"
kind = "syscall"
node = "n1"
syscall = "sendto"
local = ":7100"
delay = "1ms"
)";
  // Only seccomp can delay, so the other backend skips this fault. inject_backends.cc tests local addresses with both
  // backends.
  rig.start(Rig::overriding() ? schedule.substr(0, schedule.rfind("[[fault]]")) : schedule);
  rig.wait_end(1);
  const auto outcomes = rig.finish_fired();
  CHECK(rig.out(1) ==
        "connect = 0\nsend = 1\nrecv = 1\nsend = ECONNRESET\nconnect = ECONNREFUSED\nsend = EPIPE\ndone\n");
}

TEST_CASE("arguments and the process's name restrict a match") {
  Rig rig;
  rig.add({"openr", "absent", "create", "data", "create", "other", "write", "ab", "write", "abc", "print", "done"});
  rig.start(R"(
[[fault]]
id = "creating"
kind = "syscall"
node = "n1"
syscall = "openat"
args = { 2 = "O_CREAT|O_TRUNC" }
process = "inject_vic*"
path = "*/n1/*"
error = "EDQUOT"
[[fault]]
id = "length"
kind = "syscall"
node = "n1"
syscall = "write"
args = { 2 = "3" }
path = "*/other"
error = "EFBIG"
[[fault]]
id = "nobody"
kind = "syscall"
node = "n1"
syscall = "write"
process = "something-else"
error = "EIO"
)");
  rig.wait_end();
  const auto outcomes = rig.finish();
  CHECK(rig.out() == "openr absent = ENOENT\ncreate data = EDQUOT\ncreate other = 0\nwrite = 2\nwrite = EFBIG\ndone\n");
  CHECK(outcomes.at(0).fired);
  CHECK(outcomes.at(1).fired);
  CHECK_FALSE(outcomes.at(2).fired);
  CHECK(outcomes.at(2).why_not == "no call matched write(process something-else) on n1 once it was armed");
}

TEST_CASE("counts continue across restarts, and every start has its own listener") {
  Rig rig;
  auto& node = rig.add({"append", "data", "write", "x", "write", "y"});
  node.restart = config::Restart{.delay_ns = 1'000'000, .max = 2};
  rig.start(R"(
[[fault]]
id = "fifth"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/data"
error = "EIO"
count = 5
)");
  REQUIRE(eventually([&] { return rig.lines("append data = 0") == 3 && rig.deployment->processes(0).empty(); }));
  const auto outcome = rig.finish().at(0);
  CHECK(rig.read("n1/data") == "xyxyy");
  CHECK(rig.lines("write = EIO") == 1);
  CHECK(outcome.seen == 5);
}

TEST_CASE("a fault that does not fire has a reason") {
  Rig rig;
  rig.add({"create", "data", "write", "x", "write", "y"});
  rig.start(R"(
[[fault]]
id = "third"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/data"
error = "EIO"
count = 3
[[fault]]
id = "waiting"
kind = "syscall"
node = "n1"
syscall = "write"
error = "EIO"
when = [ { syscall = "write", path = "*/data", count = 2 }, { function = "step_function", count = 2 } ]
[[fault]]
id = "after"
kind = "crash"
node = "n1"
after = ["third"]
[[fault]]
id = "late"
kind = "crash"
node = "n1"
when = [ { elapsed = "1h" } ]
)");
  rig.wait_end();
  const auto outcomes = rig.finish();
  for (const auto& one : outcomes) CHECK_FALSE(one.fired);
  CHECK(outcomes.at(0).why_not == "2 matching calls of write(*/data) were seen on n1 of 3 required");
  CHECK(outcomes.at(0).armed);
  CHECK(outcomes.at(1).why_not == "condition 2 of 2 (entry of step_function on n1) was not met: never entered");
  REQUIRE(outcomes.at(1).conditions.size() == 2);
  CHECK(outcomes.at(1).conditions.at(0).met);
  CHECK(outcomes.at(1).conditions.at(0).seen == 2);
  CHECK_FALSE(outcomes.at(1).conditions.at(1).met);
  CHECK(outcomes.at(2).why_not == "it comes after 'third', which did not fire");
  CHECK(outcomes.at(3).why_not == "condition 1 of 1 (after 1h) was not met: the run ended before");
}

TEST_CASE("the first fault of a group fires and the others are withdrawn") {
  Rig rig;
  rig.add({"create", "data", "write", "x", "fsync", "write", "y", "fsync"});
  rig.start(R"(
[[fault]]
id = "a"
group = "g"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/data"
error = "EIO"
count = 2
[[fault]]
id = "b"
group = "g"
kind = "syscall"
node = "n1"
syscall = "fsync"
error = "EIO"
)");
  rig.wait_end();
  const auto outcomes = rig.finish();
  CHECK(rig.out() == "create data = 0\nwrite = 1\nfsync = EIO\nwrite = 1\nfsync = 0\n");
  CHECK_FALSE(outcomes.at(0).fired);
  CHECK(outcomes.at(0).withdrawn);
  CHECK(outcomes.at(0).why_not == "'b' of the same group fired first");
  CHECK(outcomes.at(1).fired);
}

TEST_CASE("an interrupted call counts once, whether the kernel restarts it or it returns EINTR") {
  Rig rig;
  rig.add({"interrupted", "5", "again", "interrupted", "2", "eintr", "create", "mark", "print", "done"});
  rig.start(R"(
[[fault]]
id = "fourth"
kind = "syscall"
node = "n1"
syscall = "read"
path = "pipe:*"
error = "EIO"
count = 4
[[fault]]
id = "seen"
kind = "syscall"
node = "n1"
syscall = "openat"
path = "*/mark"
error = "EDQUOT"
when = [ { syscall = "read", path = "pipe:*", count = 2, result = "EINTR" } ]
)");
  rig.wait_end();
  const auto outcomes = rig.finish();
  // The first read is interrupted five times and repeated. Then two reads return EINTR themselves, and the 4th fails.
  CHECK(rig.out() == "read = 1\nread = EINTR\nread = EINTR\nread = EIO\ncreate mark = EDQUOT\ndone\n");
  CHECK(outcomes.at(0).fired);
  CHECK(outcomes.at(0).seen == 4);
  CHECK(outcomes.at(1).fired);
}

// Prints the cost of supervision: `ROSE_BENCH=program kernel_inject [cost]` runs the program once for each of these
// calls, while a fault selects the call but never matches. The program prints its own figures.
TEST_CASE("the cost of an injected fault per call is printed", "[.][cost]") {
  const char* program = std::getenv("ROSE_BENCH");
  REQUIRE(program != nullptr);
  for (const std::string syscall : {"mkdir", "openat", "read"}) {
    Rig rig;
    rig.add({});
    rig.config.nodes[0].command = {program};
    rig.start(
        fmt::format("[[fault]]\nid = \"f\"\nkind = \"syscall\"\nnode = \"n1\"\nsyscall = \"{}\"\npath = \"*/no-such\"\n"
                    "error = \"EIO\"\n",
                    syscall));
    rig.wait_end();
    WARN(syscall << " selected:\n" << rig.out());
  }
}
