// Calls that rose makes on behalf of the caller. They have the caller's rights and view of files, never write into
// another process, and never let rose itself wait forever.
#include <fcntl.h>
#include <linux/netlink.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "inject/carry_out.h"
#include "inject_rig.h"

using namespace rose;
using namespace rose::test;

TEST_CASE("the injector ends although an emulated read waits for data that another reader took") {
  if (Rig::overriding()) return;
  Rig rig;
  const std::string fifo = rig.path("fifo");
  rig.add({"gate", "../made", "threads", "8", "1", "openr", "../fifo", "repeat", "1000000", "read", "1", ";", ";"});
  rig.prepare(R"(
[[fault]]
id = "late"
kind = "syscall"
node = "n1"
syscall = "read"
path = "*/fifo"
effect = "full"
error = "EIO"
times = "forever"
)");
  // Create the pipe only now, because a run directory is empty at first. The writer's end stays open, so that readers
  // do not see the end of the file.
  REQUIRE(::mkfifo(fifo.c_str(), 0666) == 0);
  const Fd writer(::open(fifo.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  REQUIRE(writer);
  rig.touch("made");
  rig.begin();
  REQUIRE(eventually([&] { return rig.lines("openr ../fifo = 0") == 8; }));
  // All threads poll, and one of them receives the byte. Repeat this until another thread is waiting in its read.
  const auto caught = [&] {
    std::error_code error;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
      const auto words = split(read_file(thread.path() / "syscall", 4096).value_or(""), ' ');
      if (words.size() < 2 || words[0] != std::to_string(SYS_read)) continue;
      if (std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", std::stoul(words[1], nullptr, 16)), error) ==
          fifo)
        return true;
    }
    return false;
  };
  int round = 0;
  for (; round < 3000 && !caught(); ++round) (void)!::write(writer.get(), "x", 1);
  INFO("rounds: " << round);
  CHECK(rig.finish().at(0).fired);
  std::atomic<bool> ended{false};
  std::thread end([&] {
    rig.injector.reset();  // this waits for the workers that still read
    ended = true;
  });
  CHECK(eventually([&] { return ended.load(); }));
  while (!ended) (void)!::write(writer.get(), "x", 1);
  end.join();
}

TEST_CASE("an emulated call has the caller's rights") {
  if (Rig::overriding()) return;
  Rig rig;
  auto& node = rig.add({"gate", "../go", "openr", "../roots", "fchmod", "777", "create", "own", "fchmod", "600",
                        "openr", "../roots", "read", "5", "print", "done"});
  node.user = "nobody";
  // The victim's user may not be able to access the build folder.
  std::filesystem::copy(kVictim, rig.path("victim"));
  node.command[0] = rig.path("victim");
  node.binaries = {rig.path("victim")};
  rig.prepare(R"(
[[fault]]
id = "lie"
kind = "syscall"
node = "n1"
syscall = "fchmod"
effect = "full"
result = 0
times = 2
[[fault]]
id = "short"
kind = "syscall"
node = "n1"
syscall = "read"
path = "*/roots"
effect = { bytes = 2 }
result = 2
)");
  REQUIRE(write_file(rig.path("roots"), "hello", 0644));
  rig.touch("go");
  rig.begin();
  rig.wait_printed("done");
  (void)rig.finish();
  CHECK(rig.lines("fchmod = 0") == 2);
  CHECK(rig.lines("read = 2") == 1);
  struct stat info{};
  REQUIRE(::stat(rig.path("roots").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0644);
  REQUIRE(::stat(rig.path("n1/own").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  // rose has its own identity again.
  CHECK(write_file(rig.path("after"), "").has_value());
}

TEST_CASE("emulated socket calls use the caller's folder, root, mounts and credentials") {
  if (Rig::overriding()) return;
  Rig rig;
  auto& near = rig.add({"udgram", "here.sock", "near", "print", "done"});
  near.user = "nobody";
  std::filesystem::copy(kVictim, rig.path("victim"));  // the victim's user may not be able to access the build folder
  near.command[0] = rig.path("victim");
  auto& mounted = rig.add({});
  mounted.command = {
      "/usr/bin/unshare",
      "--mount",
      "--pid",
      "--fork",
      "--mount-proc",
      "/bin/sh",
      "-c",
      fmt::format("mkdir m && mount -t tmpfs rose-test m && exec {} udgram $PWD/m/there.sock far print done", kVictim)};
  std::string schedule;
  for (const char* name : {"n1", "n2"})
    schedule += fmt::format(
        "[[fault]]\nid = \"late-{}\"\nkind = \"syscall\"\nnode = \"{}\"\nsyscall = \"sendto\"\neffect = \"full\"\n"
        "error = \"ECONNREFUSED\"\n",
        name, name);
  rig.start(schedule);
  for (std::size_t node = 0; node < 2; ++node) rig.wait_printed("done", node);
  CHECK(rig.out(0) == "udgram = ECONNREFUSED\narrived near from itself = 4\ndone\n");
  CHECK(rig.out(1) == "udgram = ECONNREFUSED\narrived far from itself = 3\ndone\n");
  rig.finish_fired();
}

TEST_CASE("memory of a process that has ended is neither read nor written") {
  // The child stands for a process whose id was that of a caller that has ended. Only the last argument of carry_out(),
  // which checks whether the caller is still alive, shows that the child is not the caller.
  constexpr std::size_t kSize = 16;
  char* memory = static_cast<char*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(memory != MAP_FAILED);
  std::memcpy(memory, "its own secrets", kSize);
  int ends[2];
  int back[2];
  REQUIRE(::pipe(ends) == 0);
  REQUIRE(::pipe(back) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGSTOP);  // the code below reads this process's memory while it is stopped
    if (::write(back[1], memory, kSize) < 0) ::_exit(1);
    ::_exit(0);
  }
  REQUIRE(::waitpid(child, nullptr, WUNTRACED) == child);
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  int looks = 0;
  REQUIRE(::write(ends[1], "evil", 4) == 4);
  inject::NotifiedCall reading(SYS_read, child, {static_cast<std::uint64_t>(ends[0]), address, 4, 0, 0, 0});
  const auto pipe = inject::carried_file(reading);
  REQUIRE(pipe);
  CHECK(inject::carry_out(reading, *pipe, -1, [&] { return ++looks < 2; }) < 0);
  CHECK(looks >= 2);

  const std::string file = "/tmp/rose-carry-" + std::to_string(::getpid());
  const Fd out(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  ::kill(child, SIGCONT);
  char seen[kSize] = {};
  REQUIRE(::read(back[0], seen, kSize) == kSize);
  CHECK(std::string(seen) == "its own secrets");
  ::waitpid(child, nullptr, 0);
  // This child also has the descriptor of the file, because it is forked after the file was opened.
  const pid_t second = ::fork();
  if (second == 0) {
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  REQUIRE(::waitpid(second, nullptr, WUNTRACED) == second);
  inject::NotifiedCall writing(SYS_write, second, {static_cast<std::uint64_t>(out.get()), address, kSize, 0, 0, 0});
  const auto target = inject::carried_file(writing);
  REQUIRE(target);
  CHECK(inject::carry_out(writing, *target, -1, [] { return false; }) < 0);
  struct stat info{};
  REQUIRE(::fstat(out.get(), &info) == 0);
  CHECK(info.st_size == 0);
  ::kill(second, SIGKILL);
  ::waitpid(second, nullptr, 0);
  ::unlink(file.c_str());
  for (const int fd : {ends[0], ends[1], back[0], back[1]}) ::close(fd);
  ::munmap(memory, 4096);
}

TEST_CASE("rose emulates calls only on descriptors that mean the same in its own process") {
  const auto is_carried = [](int fd) {
    inject::NotifiedCall call(SYS_write, ::gettid(), {static_cast<std::uint64_t>(fd), 0, 0, 0, 0, 0});
    const auto file = inject::carried_file(call);
    return file.has_value() && file->fd;
  };
  sigset_t signals;
  sigemptyset(&signals);
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const Fd reader(ends[0]), writer(ends[1]);
  const Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC)), folder(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Fd tcp(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      near(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (const Fd* fd : {&reader, &writer, &null, &folder, &tcp, &near}) CHECK(is_carried(fd->get()));
  const Fd own_signals(::signalfd(-1, &signals, SFD_CLOEXEC)), event(::eventfd(0, EFD_CLOEXEC));
  const Fd kernel(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  const Fd own_facts(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC)), device(::open("/sys/dev", O_RDONLY | O_CLOEXEC));
  for (const Fd* fd : {&own_signals, &event, &kernel, &own_facts, &device}) {
    REQUIRE(*fd);
    CHECK_FALSE(is_carried(fd->get()));
  }
  inject::NotifiedCall closed(SYS_write, ::gettid(), {999'999, 0, 0, 0, 0, 0});
  const auto none = inject::carried_file(closed);
  REQUIRE(none);
  CHECK(inject::carry_out(closed, *none, -1, [] { return true; }) == -EBADF);
}
