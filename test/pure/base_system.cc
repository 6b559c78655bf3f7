// Tests of files and helper commands.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/clock.h"
#include "base/file.h"
#include "base/program.h"
#include "base/subprocess.h"
#include "environment.h"
#include "folder.h"
#include "opened.h"

using namespace rose;
using rose::test::Environment;
using rose::test::Folder;
using rose::test::Opened;
namespace fs = std::filesystem;

namespace {

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a file that is not a regular one is examined without being opened") {
  const Folder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  fs::create_symlink("pipe", folder / "link");
  REQUIRE(write_file(folder / "file", "content"));
  const Opened pipe(folder / "pipe");
  for (const char* name : {"pipe", "link", "."}) {
    CAPTURE(name);
    CHECK_FALSE(open_regular(folder / name));
    CHECK(errno == EINVAL);
    CHECK_FALSE(pipe.yes());
  }
  CHECK_FALSE(open_regular(folder / "missing"));
  CHECK(errno == ENOENT);
  fs::create_symlink("file", folder / "other");
  const Fd in(::open(folder.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  CHECK(open_regular_at(in.get(), "other"));
  CHECK_FALSE(open_regular_at(in.get(), "other", O_NOFOLLOW));
  const Fd file = open_regular_at(in.get(), "file", O_NOFOLLOW);
  char got[16] = {};
  CHECK(::read(file.get(), got, sizeof got) == 7);
}

TEST_CASE("a file is written completely or not at all") {
  const Folder folder;
  REQUIRE(write_file(folder / "a", "one").has_value());
  REQUIRE(write_file(folder / "a", "two").has_value());
  CHECK(*read_file(folder / "a") == "two");
  struct stat info{};
  REQUIRE(::stat((folder / "a").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(folder.entries() == 1);
  {
    auto file = AtomicFile::create(folder / "b");
    REQUIRE(file.has_value());
    REQUIRE(file->write("half").has_value());
    CHECK(folder.entries() == 1);  // the new file has no name yet
  }
  CHECK(folder.entries() == 1);  // a file that was never committed leaves nothing
  CHECK_FALSE(fs::exists(folder / "b"));
  fs::create_directory(folder / "c");
  CHECK_FALSE(write_file(folder / "c", "x").has_value());  // because a file cannot replace a folder
  CHECK(folder.entries() == 2);
  CHECK_FALSE(write_file(folder / "none/d", "x").has_value());
}

TEST_CASE("a killed writer leaves no file") {
  const Folder folder;
  const pid_t writer = ::fork();
  REQUIRE(writer >= 0);
  if (writer == 0) {
    auto file = AtomicFile::create(folder / "dump.bin");
    if (!file || !file->write("half")) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(writer, &status, 0) == writer);
  REQUIRE(WIFSIGNALED(status));
  CHECK(folder.entries() == 0);
}

TEST_CASE("unfinished files of a killed writer are removed, other files are not") {
  const Folder folder;
  for (const char* name : {".dump.bin.rose-a1B2c3", ".dump.bin.rose-lock01", ".dump.bin.rose-",
                           ".other.bin.rose-a1B2c3", "dump.bin.backup"})
    std::ofstream(folder / name) << "half";
  const Fd at_work(::open((folder / ".dump.bin.rose-lock01").c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(::flock(at_work.get(), LOCK_EX | LOCK_NB) == 0);
  remove_unfinished(folder / "", "dump.bin");
  CHECK_FALSE(fs::exists(folder / ".dump.bin.rose-a1B2c3"));
  CHECK(folder.entries() == 4);
}

TEST_CASE("temporary folders of killed processes are removed, those in use and those of others are not") {
  const Folder folder;
  const Environment here("TMPDIR", (folder / "").string());
  const pid_t killed = ::fork();
  REQUIRE(killed >= 0);
  if (killed == 0) {
    const auto made = TemporaryFolder::make("rose-work");
    if (!made || !write_file(made->path() / "half", "x")) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(killed, &status, 0) == killed);
  REQUIRE(WIFSIGNALED(status));
  CHECK(folder.entries() == 1);
  for (const char* name : {"rose-work.12345", "rose-work-123456", "rose-other.123456"})
    fs::create_directory(folder / name);
  {
    const auto first = TemporaryFolder::make("rose-work");
    REQUIRE(first.has_value());
    CHECK(folder.entries() == 4);
    const auto second = TemporaryFolder::make("rose-work");
    REQUIRE(second.has_value());
    CHECK(fs::is_directory(first->path()));
    CHECK(fs::is_directory(second->path()));
  }
  CHECK(folder.entries() == 3);
}

TEST_CASE("devices and pipes are written to, not replaced") {
  const Folder folder;
  struct stat before{}, after{};
  REQUIRE(::lstat("/dev/null", &before) == 0);
  REQUIRE(S_ISCHR(before.st_mode));
  if (::mknod((folder / "null").c_str(), S_IFCHR | 0600, before.st_rdev) == 0) {  // only root may create a device
    REQUIRE(write_file(folder / "null", "gone").has_value());
    REQUIRE(::lstat((folder / "null").c_str(), &after) == 0);
    CHECK(S_ISCHR(after.st_mode));
    CHECK(folder.entries() == 1);
    fs::remove(folder / "null");
  }

  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  {
    REQUIRE(AtomicFile::create(folder / "pipe").has_value());
  }  // creating an AtomicFile must not open the pipe: that would block without a reader, and affect one that waits
  // A write does not wait for a reader either. If it did, only kill -9 could end this test.
  const Result<void> unread = write_file(folder / "pipe", "x");
  REQUIRE_FALSE(unread);
  CHECK(unread.error().message.find("nobody reads this pipe") != std::string::npos);
  const int reader = ::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  REQUIRE(write_file(folder / "pipe", "through").has_value());
  char got[16] = {};
  CHECK(::read(reader, got, sizeof got) == 7);
  CHECK(std::string(got) == "through");
  ::close(reader);
  fs::remove(folder / "pipe");

  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  REQUIRE(write_file(fmt::format("/dev/fd/{}", ends[1]), "descriptor").has_value());
  CHECK(::read(ends[0], got, sizeof got) == 10);
  ::close(ends[0]);
  ::close(ends[1]);
  const std::string closed = fmt::format("/dev/fd/{}", ends[1]);
  CHECK_FALSE(write_file(closed, "x").has_value());

  // A link must be replaced, not followed, because other users may write to the folder.
  REQUIRE(::symlink("/dev/full", (folder / "link").c_str()) == 0);
  REQUIRE(write_file(folder / "link", "here").has_value());
  CHECK(*read_file(folder / "link") == "here");
  CHECK(folder.entries() == 1);
}

TEST_CASE("reading a file stops at the size limit") {
  const Folder folder;
  REQUIRE(write_file(folder / "a", std::string(1000, 'x')).has_value());
  CHECK(read_file(folder / "a", 1000)->size() == 1000);
  const auto large = read_file(folder / "a", 999);
  REQUIRE_FALSE(large.has_value());
  CHECK(large.error().message == fmt::format("{} is larger than 999 bytes", (folder / "a").string()));
  CHECK(read_file(folder / "b").error().kind == ErrorKind::input);
}

TEST_CASE("a program is searched in PATH, but not in the current directory") {
  const Folder folder;
  for (const char* name : {"a/tool", "b/tool", "b/data", "b/other"}) {
    fs::create_directories((folder / name).parent_path());
    REQUIRE(write_file(folder / name, "", 0755));
  }
  fs::permissions(folder / "b/data", fs::perms::owner_read);
  fs::create_directory(folder / "a/other");
  const std::string path = (folder / "a").string() + "::.:" + (folder / "b").string();
  CHECK(program_in(path, "tool") == (folder / "a/tool").string());
  CHECK(program_in(path, "other") == (folder / "b/other").string());  // `a/other` is a folder, so it is not the program
  CHECK(program_in(path, "data").empty());
  const fs::path here = fs::current_path();
  fs::current_path(folder / "b");
  CHECK(program_in(".::b", "tool").empty());
  fs::current_path(here);
  CHECK_FALSE(program_in("", "sh").empty());
  CHECK_FALSE(program_in_path("sh").empty());
}

TEST_CASE("a command's output and status are captured") {
  const std::size_t before = open_descriptors();
  const auto both = run_command({"sh", "-c", "echo out; echo err >&2; exit 7"});
  REQUIRE(both.has_value());
  CHECK(both->out == "out\n");
  CHECK(both->err == "err\n");
  CHECK(both->exit_code == 7);
  CHECK(run_command({"cat"}, "some\ninput")->out == "some\ninput");
  CHECK(run_command({"cat"})->out.empty());  // stdin is empty, not that of this test
  CHECK(run_command({"printf", "%s|", "a b", "$HOME", ""})->out == "a b|$HOME||");  // no shell interprets the words
  CHECK(run_command({"sh", "-c", "kill -TERM $$"})->exit_code == 128 + SIGTERM);
  const std::string large(3 << 20, 'x');
  const auto cut = run_command({"cat"}, large);
  REQUIRE(cut.has_value());
  CHECK(cut->out.size() == std::size_t{1} << 20);
  CHECK(cut->exit_code == 0);  // the rest of the output was read and dropped, so that cat could end
  CHECK(open_descriptors() == before);
}

TEST_CASE("parallel commands each have their own output, status and time limit") {
  const std::size_t before = open_descriptors();
  std::map<std::size_t, std::string> out;
  SideBySide how;
  how.at_once = 3;
  how.timeout_ns = 60'000'000'000;
  how.out = [&](std::size_t i, std::string_view bytes) {
    out[i] += bytes;
    return i != 4 || out[i].size() < 100'000;
  };
  const auto ended = run_side_by_side({{"echo", "one"},
                                       {"sh", "-c", "echo two; echo no >&2; exit 3"},
                                       {"rose-no-such-program"},
                                       {"seq", "100000"},
                                       {"yes"},
                                       {"sh", "-c", "kill -KILL $$"},
                                       {"cat"}},
                                      how);
  REQUIRE(ended.has_value());
  REQUIRE(ended->size() == 7);
  CHECK(out[0] == "one\n");
  CHECK(out[1] == "two\n");
  CHECK(ended->at(1).err == "no\n");
  CHECK(ended->at(1).exit_code == 3);
  CHECK_FALSE(ended->at(2).started);
  CHECK(ended->at(2).err == "cannot run 'rose-no-such-program': it was not found");
  CHECK(out[3].size() == 588'895);
  CHECK(ended->at(4).refused);
  CHECK_FALSE(ended->at(4).timed_out);
  CHECK(ended->at(5).exit_code == 128 + SIGKILL);
  CHECK(ended->at(6).exit_code == 0);  // because it had nothing to read
  how.timeout_ns = 200'000'000;
  const auto late = run_side_by_side({{"sleep", "600"}, {"sh", "-c", "sleep 600 & wait"}}, how);
  REQUIRE(late.has_value());
  for (const Ended& one : *late) {
    CHECK(one.timed_out);
    CHECK(one.exit_code == 128 + SIGKILL);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("a command that does not exist is reported") {
  const auto missing = run_command({"rose-no-such-program"});
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().message == "cannot run 'rose-no-such-program': it was not found");
  CHECK(missing.error().hint == "install 'rose-no-such-program' or add its folder to PATH");
  CHECK_FALSE(run_command({"/dev/null"}).has_value());
}

TEST_CASE("a command that exceeds its time limit is killed with its children") {
  const Folder folder;
  const std::string pids = (folder / "pids").string();
  const std::int64_t start = monotonic_ns();
  const auto slow = run_command({"sh", "-c", "sleep 300 & echo $$ $! > \"$0.new\"; mv \"$0.new\" \"$0\"; wait", pids},
                                {}, 2'000'000'000);
  REQUIRE_FALSE(slow.has_value());
  CHECK(slow.error().kind == ErrorKind::inconclusive);
  CHECK(slow.error().message.find("did not end within 2s and was killed") != std::string::npos);
  CHECK(monotonic_ns() - start < 60'000'000'000);
  const auto text = read_file(pids);
  REQUIRE(text.has_value());
  int shell = 0;
  int child = 0;
  REQUIRE(std::sscanf(text->c_str(), "%d %d", &shell, &child) == 2);
  CHECK(::kill(shell, 0) != 0);
  // The killed child is a zombie until its new parent, init, reaps it. Both states are accepted.
  bool gone = false;
  for (int i = 0; i < 1000 && !gone; ++i) {
    const auto state = read_file(fmt::format("/proc/{}/stat", child));
    gone = !state || state->find(") Z ") != std::string::npos;
    if (!gone) ::usleep(10'000);
  }
  CHECK(gone);
}

TEST_CASE("a command's end is not delayed by a daemon that keeps the pipes open") {
  const std::int64_t start = monotonic_ns();
  const auto left = run_command({"sh", "-c", "sleep 300 & echo $!"}, {}, 120'000'000'000);
  REQUIRE(left.has_value());
  CHECK(monotonic_ns() - start < 60'000'000'000);
  const int daemon = std::atoi(left->out.c_str());
  REQUIRE(daemon > 1);
  CHECK(::kill(daemon, SIGKILL) == 0);
}

TEST_CASE("children receive signals that rose blocks or ignores") {
  sigset_t blocked;
  sigset_t old;
  sigemptyset(&blocked);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) sigaddset(&blocked, signal);
  REQUIRE(::pthread_sigmask(SIG_BLOCK, &blocked, &old) == 0);
  auto* const old_pipe = ::signal(SIGPIPE, SIG_IGN);
  const auto status = run_command({"grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status"});
  ::signal(SIGPIPE, old_pipe);
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  REQUIRE(status.has_value());
  unsigned long long blocked_mask = 1;
  unsigned long long ignored_mask = 1;
  REQUIRE(std::sscanf(status->out.c_str(), "SigBlk: %llx SigIgn: %llx", &blocked_mask, &ignored_mask) == 2);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) CHECK((blocked_mask >> (signal - 1) & 1) == 0);
  CHECK((ignored_mask >> (SIGPIPE - 1) & 1) == 0);
}
