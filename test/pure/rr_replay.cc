// Programs that record themselves are replayed by the library alone.
#include <array>
#include <set>

#include <signal.h>
#include <sys/wait.h>

#include "rr_support.h"

using namespace rose;
using namespace rose::rr;
using namespace rose::rr::test;

namespace {

struct Recorded {
  rose::test::Folder folder;
  std::string file = folder / "r";
  Output output;
  Recorded(const std::vector<std::string>& arguments, std::string_view input = {}, std::vector<std::string> more = {}) {
    more.push_back("ROSE_RR=record:" + file);
    output = victim(more, arguments, input);
  }
  [[nodiscard]] Output replay(const std::vector<std::string>& arguments, std::vector<std::string> more = {}) const {
    more.push_back("ROSE_RR=replay:" + file);
    return victim(more, arguments);
  }
};

std::string lines(int count, const std::string& last) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "line number " + std::to_string(i) + "\n";
  return text + last + "\n";
}

}  // namespace

TEST_CASE("nothing is recorded unless requested") {
  const Output output = victim({}, {"on"});
  CHECK(output.out == "0\n");
  CHECK(output.err.empty());
}

TEST_CASE("the order of threads and their random values are replayed") {
  const Recorded made({"order", "4", "300"});
  REQUIRE(made.output.exit_code == 0);
  for (int i = 0; i < 3; ++i) {
    const Output again = made.replay({"order", "4", "300"});
    CHECK(again.err.empty());
    CHECK(again.exit_code == 0);
    CHECK(again.out == made.output.out);
  }
}

TEST_CASE("messages from outside are replayed between the timer's ticks") {
  const Recorded made({"server"}, lines(200, "quit"));
  REQUIRE(made.output.exit_code == 0);
  REQUIRE(made.output.err.empty());
  for (int i = 0; i < 3; ++i) {
    const Output again = made.replay({"server"});
    CHECK(again.err.empty());
    CHECK(again.exit_code == 0);
    CHECK(again.out == made.output.out);
  }
}

TEST_CASE("a crash is replayed at the same point") {
  const Recorded made({"server"}, lines(50, "boom"));
  REQUIRE(made.output.exit_code == 128 + 6);
  for (int i = 0; i < 3; ++i) {
    const Output again = made.replay({"server"});
    CHECK(again.err.empty());
    CHECK(again.exit_code == 128 + 6);
  }
}

TEST_CASE("a replay that diverges reports where, and exits with 1") {
  const Recorded made({"differs"});
  REQUIRE(made.output.out == "done\n");
  CHECK(made.replay({"differs"}).exit_code == 0);
  const auto [variant, message] = GENERATE(table<std::string, std::string>({
      {"size", "rose-rr: diverged at record 2 of 4: expected value 'two' of 8 bytes, got value 'two' of 4 bytes\n"},
      {"key", "rose-rr: diverged at record 2 of 4: expected value 'two' of 8 bytes, got only calls of 'other'\n"},
      {"kind", "rose-rr: diverged at record 2 of 4: expected value 'two' of 8 bytes, got lock 'two'\n"},
      {"exit",
       "rose-rr: diverged at record 2 of 4: expected value 'two' of 8 bytes, got the process ends itself by exit\n"},
      {"compare",
       "rose-rr: diverged at record 3 of 4: expected compare 'small' of 5 bytes, from byte 1 on 65 6c 6c 6f, got "
       "compare 'small' of 5 bytes, from byte 1 on 78 6c 6c 6f\n"},
  }));
  INFO(variant);
  const Output again = made.replay({"differs"}, {"VARIANT=" + variant, "ROSE_RR_PATIENCE=1s"});
  CHECK(again.exit_code == 1);
  CHECK(again.err == message);
  const Output hashed = made.replay({"differs"}, {"VARIANT=hash"});
  CHECK(hashed.exit_code == 1);
  CHECK(hashed.err.find("rose-rr: diverged at record 4 of 4: expected compare 'large' of 100 bytes with hash ") == 0);
}

TEST_CASE("a process that does not end by itself is ended when all records are replayed") {
  const Recorded made({"differs"}, {}, {"VARIANT=unfinished"});
  REQUIRE(made.output.exit_code == 0);
  // The program asks for one record more than the recording contains. By then, all records have been replayed.
  const Output again = made.replay({"differs"}, {"VARIANT=more"});
  CHECK(again.exit_code == 0);
  CHECK(again.err.empty());
}

TEST_CASE("a window whose beginning was overwritten is replayed from a checkpoint") {
  const std::vector<std::string> small = {"ROSE_RR_WINDOW=64KiB"};
  const Recorded made({"window", "20000"}, {}, small);
  REQUIRE(made.output.exit_code == 0);
  const Output again = made.replay({"window", "20000"});
  CHECK(again.err.empty());
  CHECK(again.exit_code == 0);
  CHECK(again.out == made.output.out);
  const Output forgets = made.replay({"window", "20000"}, {"VARIANT=forgets"});
  CHECK(forgets.exit_code == 1);
  CHECK(forgets.err.find("rose_rr_restore() must come first") != std::string::npos);

  std::vector<std::string> bare = small;
  bare.emplace_back("VARIANT=bare");
  const Recorded without({"window", "20000"}, {}, bare);
  const Output refused = without.replay({"window", "20000"}, {"VARIANT=bare"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("no checkpoint is left to start from") != std::string::npos);
}

// This must hold whatever the process is doing when it is killed: all threads may be between two calls, some threads
// may be in a call, or a thread may hold the mutex.
TEST_CASE("a recording of a killed process is replayed up to the kill") {
  for (int round = 0; round < 20; ++round) {
    const rose::test::Folder folder;
    const std::string file = folder / "r";
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    const auto pid =
        spawn_process({"env", "ROSE_RR=record:" + file, ROSE_RR_VICTIM, "order", "4", "100000000"}, null, null, null);
    ::close(null);
    REQUIRE(pid.has_value());
    std::uint64_t reserved = 0;
    while (reserved < 20'000U + 5'000U * static_cast<unsigned>(round)) {
      REQUIRE(::waitpid(*pid, nullptr, WNOHANG) == 0);
      if (const Fd there = open_regular(file))
        REQUIRE(::pread(there.get(), &reserved, sizeof reserved, offsetof(FileHead, reserved)) >= 0);
      ::usleep(200);
    }
    ::kill(*pid, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(*pid, &status, 0) == *pid);
    const Read read(file_of(file));
    INFO("round " << round << ": " << read.records.size() << " records, " << read.reading.facts().unfinished
                  << " unfinished");
    CHECK_FALSE(read.reading.facts().damaged);
    CHECK_FALSE(read.reading.facts().ended);
    REQUIRE(!read.records.empty());
    const Output again = victim({"ROSE_RR=replay:" + file}, {"order", "4", "100000000"});
    CHECK(again.err.empty());
    CHECK(again.exit_code == 0);
  }
}

TEST_CASE("the child of a fork is neither recorded nor replayed") {
  const Recorded made({"forks"});
  CHECK(made.output.out == "0\n");
  const Read read(file_of(made.file));
  REQUIRE(read.records.size() == 3);
  CHECK(read.records[2].kind == Kind::end);
  CHECK(read.reading.facts().ended);
  // Without leak detection, because it waits for the allocator's locks when the child ends, and another thread of the
  // parent may have held these during the fork.
  CHECK(made.replay({"forks"}, {"ASAN_OPTIONS=detect_leaks=0"}).out == "0\n");
}

TEST_CASE("an invalid request is reported, and the program runs unrecorded") {
  const rose::test::Folder folder;
  const std::string file = folder / "r";
  const auto run = [&](const std::string& rr, const std::string& more) {
    return victim({"ROSE_RR=" + rr, more}, {"on"});
  };
  for (const auto& [rr, more, message] : std::vector<std::array<std::string, 3>>{
           {"tape:x", "A=", "rose-rr: ROSE_RR='tape:x': expected record:FILE or replay:FILE; nothing is recorded\n"},
           {"record:" + folder.path + "/none/r", "A=", "none/: No such file or directory; nothing is recorded\n"},
           {"record:" + file, "ROSE_RR_WINDOW=lots",
            "rose-rr: ROSE_RR_WINDOW='lots' is not a size from 64KiB to 4GiB, such as 16MiB; nothing is recorded\n"},
           {"record:" + file, "ROSE_RR_KEEP=0",
            "rose-rr: ROSE_RR_KEEP='0' is not a number from 1; nothing is recorded\n"},
           {"record:" + folder.path + "/%n/r",
            "A=", "%n is possible in the file's name only, not in a folder's; nothing is recorded\n"}}) {
    const Output output = run(rr, more);
    CHECK(output.exit_code == 0);
    CHECK(output.out == "0\n");
    CHECK(output.err.find(message) != std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(file));
  // A file that exists must not be overwritten.
  REQUIRE(write_file(file, "precious").has_value());
  CHECK(run("record:" + file, "A=").err.find("nothing is recorded (with %n in its name") != std::string::npos);
  CHECK(file_of(file) == "precious");
}

TEST_CASE("%n numbers a process's incarnations, and only the newest recordings are kept") {
  const rose::test::Folder folder;
  for (int life = 1; life <= 5; ++life)
    REQUIRE(victim({"ROSE_RR=record:" + folder.path + "/n1.%n.rr", "ROSE_RR_KEEP=3"}, {"on"}).out == "1\n");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path)) names.insert(entry.path().filename());
  CHECK(names == std::set<std::string>{"n1.3.rr", "n1.4.rr", "n1.5.rr"});
}

TEST_CASE("an invalid recording ends the program before it starts") {
  const rose::test::Folder folder;
  REQUIRE(write_file(folder / "r", "no recording").has_value());
  const Output output = victim({"ROSE_RR=replay:" + folder.path + "/r"}, {"differs"});
  CHECK(output.exit_code == 2);
  CHECK(output.out.empty());
  CHECK(output.err == "rose-rr: " + folder.path + "/r: it is too short to be a recording\n");
  CHECK(victim({"ROSE_RR=replay:/dev/null"}, {"differs"}).err == "rose-rr: /dev/null: it is not a regular file\n");
  CHECK(victim({"ROSE_RR=replay:" + folder.path + "/none"}, {"differs"}).exit_code == 2);
}
