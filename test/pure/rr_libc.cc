// A program that does not support recording is recorded by librose-rr-libc.so and replayed: times, random numbers,
// names, and the order in which descriptors became ready.
#include <algorithm>

#include "base/text.h"
#include "rr_support.h"

using namespace rose;
using namespace rose::rr;
using namespace rose::rr::test;

#ifdef ROSE_LIBC_RECORDER
namespace {

Output unforeseen(const std::string& mode, const std::string& sources, const std::vector<std::string>& arguments = {}) {
  std::vector<std::string> words = {"env",
                                    "LD_PRELOAD=" ROSE_LIBC_RECORDER,
                                    "ROSE_RR_LIBC=" + sources,
                                    "ROSE_RR=" + mode,
                                    "ROSE_RR_PATIENCE=2",
                                    ROSE_PROGRAMS_DIR "/unforeseen"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto output = run_command(words, {}, 120'000'000'000);
  REQUIRE(output);
  return *output;
}

// The lines in alphabetical order. Their order differs between runs, because it depends on a lock that is not recorded.
std::vector<std::string> sorted_lines(const std::string& text) {
  auto lines = split(text, '\n');
  std::sort(lines.begin(), lines.end());
  return lines;
}

constexpr const char* kAll = "time,random,pid,hostname,ready";

}  // namespace

TEST_CASE("a program without support for recording sees the same unpredictable values in a replay") {
  const rose::test::Folder folder;
  const std::string file = folder / "r";
  const Output made = unforeseen("record:" + file, kAll);
  REQUIRE(made.exit_code == 0);
  CHECK(made.err.empty());
  const Output other = unforeseen("", kAll);
  CHECK(sorted_lines(other.out) != sorted_lines(made.out));
  for (int i = 0; i < 3; ++i) {
    const Output again = unforeseen("replay:" + file, kAll);
    CHECK(again.err.empty());
    CHECK(again.exit_code == 0);
    CHECK(sorted_lines(again.out) == sorted_lines(made.out));
  }
  // The key of a record consists of the source, the call and the thread.
  const Read read(file_of(file));
  REQUIRE(read.why == nullptr);
  for (const char* key : {"libc/time/clock_gettime/0", "libc/random/getrandom/0.2", "libc/pid/getpid/0",
                          "libc/hostname/uname/0", "libc/ready/epoll_wait/0", "libc/ready/select/0"})
    CHECK(std::any_of(read.records.begin(), read.records.end(),
                      [key](const Record& record) { return record.key == key; }));
}

TEST_CASE("epoll events in a replay have the replay's own data, also for a closed descriptor") {
  const rose::test::Folder folder;
  const std::string file = folder / "r";
  const Output made = unforeseen("record:" + file, kAll);
  REQUIRE(made.exit_code == 0);
  CHECK(made.out.find("then ready late 1\n") != std::string::npos);
  const Output again = unforeseen("replay:" + file, kAll, {"fresh"});
  CHECK(again.exit_code == 0);
  CHECK(again.err.empty());
  CHECK(sorted_lines(again.out) == sorted_lines(made.out));
}

TEST_CASE("only the requested functions of the C library are recorded") {
  const rose::test::Folder folder;
  const std::string file = folder / "r";
  const Output made = unforeseen("record:" + file, "hostname,random");
  REQUIRE(made.exit_code == 0);
  const Read read(file_of(file));
  REQUIRE(read.why == nullptr);
  for (const Record& record : read.records)
    CHECK((record.key.starts_with("libc/hostname/") || record.key.starts_with("libc/random/") ||
           record.kind == Kind::end));
  const Output again = unforeseen("replay:" + file, "hostname,random");
  CHECK(again.exit_code == 0);
  const auto line = [](const Output& output, const char* beginning) {
    for (const std::string& one : split(output.out, '\n'))
      if (one.starts_with(beginning)) return one;
    return std::string("none");
  };
  CHECK(line(again, "random") == line(made, "random"));
  CHECK(line(again, "time") != line(made, "time"));

  const Output nothing = unforeseen("record:" + file + "2", "");
  CHECK(nothing.exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(file + "2"));
  const Output wrong = unforeseen("record:" + file + "2", "time,tme");
  CHECK(wrong.exit_code == 0);
  CHECK(wrong.err ==
        "rose-rr: ROSE_RR_LIBC: 'tme' is not one of time, random, pid, hostname, ready; nothing of the C library is "
        "recorded\n");
  CHECK_FALSE(std::filesystem::exists(file + "2"));
}

TEST_CASE("a program with other requests is reported as diverged, other programs are not replayed") {
  const rose::test::Folder folder;
  const std::string file = folder / "r";
  REQUIRE(unforeseen("record:" + file, kAll).exit_code == 0);
  const Output more = unforeseen("replay:" + file, kAll, {"more"});
  CHECK(more.exit_code == 1);
  CHECK(more.err.find("diverged at record 4") != std::string::npos);
  CHECK(more.err.find("expected value 'libc/random/getrandom/0' of 16 bytes, got only calls of 'libc/time/time/0'") !=
        std::string::npos);
  std::filesystem::copy_file(ROSE_PROGRAMS_DIR "/unforeseen", folder / "other");
  const auto other = run_command({"env", "LD_PRELOAD=" ROSE_LIBC_RECORDER, std::string("ROSE_RR_LIBC=") + kAll,
                                  "ROSE_RR=replay:" + file, folder / "other"},
                                 {}, 60'000'000'000);
  REQUIRE(other);
  CHECK(other->exit_code == 0);
  CHECK(other->err.empty());
}
#endif
