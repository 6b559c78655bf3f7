// Reads the stacks of a JVM's threads from the file of rose's agent.
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "folder.h"
#include "jvm/stacks.h"

using namespace rose::jvm;

namespace {

struct File {
  std::string bytes = std::string(kStacksNamesAt, '\0');
  StacksHead head;

  void name(const std::string& function, const std::string& file, std::uint32_t line) {
    StackName one;
    one.line = line;
    one.function = static_cast<std::uint16_t>(function.size());
    one.file = static_cast<std::uint16_t>(file.size());
    std::memcpy(one.text, (function + file).data(), function.size() + file.size());
    bytes.append(reinterpret_cast<const char*>(&one), sizeof one);
    ++head.names;
  }
  StackSlot& slot(std::uint32_t index) { return reinterpret_cast<StackSlot*>(bytes.data() + sizeof head)[index]; }
  void put(std::uint32_t index, int tid, std::int64_t at_ns, std::vector<std::uint32_t> frames) {
    StackSlot& one = slot(index);
    one.tid = tid;
    one.at_ns = at_ns;
    one.count = static_cast<std::uint32_t>(frames.size());
    std::copy(frames.begin(), frames.end(), one.frames);
  }
  std::string text() {
    std::memcpy(bytes.data(), &head, sizeof head);
    return bytes;
  }
};

File two_threads() {
  File file;
  file.name("org.x.Store.append", "Store.java", 40);
  file.name("org.x.Store.run\x1b", "", 0);
  file.put(1, 7, 5'000, {1, 2});
  file.put(1 + kStackThreads, 7, 2'000, {2});
  file.put(2 + kStackThreads, 9, 2'500, {2, 99, 0});
  file.head.kept = 2;
  return file;
}

}  // namespace

TEST_CASE("stacks that a JVM recorded are read back") {
  const auto stacks = parse_noted(two_threads().text());
  REQUIRE(stacks.size() == 3);
  CHECK(stacks[0].tid == 7);
  REQUIRE(stacks[0].frames.size() == 2);
  CHECK(stacks[0].frames[0].function == "org.x.Store.append");
  CHECK(stacks[0].frames[0].file == "Store.java");
  CHECK(stacks[0].frames[0].line == 40);
  CHECK(stacks[0].frames[1].function == "org.x.Store.run?");
  CHECK(stacks[2].frames[1].function == "");  // there is no name for the frame's index
  // The stack of a thread at a given time is the last one recorded before that time, or one that was kept for that
  // time.
  CHECK(stack_of(stacks, 7, 6'000) == &stacks[0]);
  CHECK(stack_of(stacks, 7, 1'990) == &stacks[1]);
  CHECK(stack_of(stacks, 9, 2'600) == &stacks[2]);
  CHECK(stack_of(stacks, 8, 2'600) == nullptr);
  CHECK(stack_of(stacks, 7, 60'000'000'000) == nullptr);
}

TEST_CASE("truncated, foreign and invalid files of stacks are read safely") {
  const std::string whole = two_threads().text();
  CHECK(parse_noted("").empty());
  CHECK(parse_noted(std::string(8192, 'x')).empty());
  for (std::size_t size = 0; size < whole.size(); size += 977)
    (void)parse_noted(std::string_view(whole).substr(0, size));
  File wrong = two_threads();
  wrong.slot(1).count = kStackFrames + 1;
  wrong.head.kept = 0xffffffff;
  wrong.head.names = 0xffffffff;
  wrong.slot(1 + kStackThreads).frames[0] = 0xffffffff;
  CHECK(parse_noted(wrong.text()).size() == 2);
}

TEST_CASE("a process's file of stacks is found in its maps") {
  CHECK(stacks_file("7f00-7f01 rw-s 00000000 08:01 12 /tmp/r/rose.jvm/n1/0123456789abcdef.jvm\n"
                    "7f01-7f02 rw-s 00000000 08:01 13 /tmp/r/rose.jvm/n1/0123456789abcdef.stacks\n") ==
        "0123456789abcdef.stacks");
  CHECK(stacks_file("7f01-7f02 rw-s 00000000 08:01 13 /tmp/x/other.stacks\n") == "");
  CHECK(stacks_file("7f01-7f02 rw-s 00000000 08:01 13 /tmp/x/0123456789abcdef.stacks (deleted)\n") == "");
  CHECK(stacks_file("") == "");
}

TEST_CASE("a stack request gets an answer, or a reason why there is none") {
  const rose::test::Folder folder;
  const auto path = folder / "0123456789abcdef.stacks";
  CHECK(ask(path, ::getpid()).missing.find("no file") != std::string::npos);
  REQUIRE(rose::write_file(path, "short", 0600));
  CHECK(ask(path, ::getpid()).missing.find("no file") != std::string::npos);
  File file = two_threads();
  REQUIRE(rose::write_file(path, file.text(), 0600));
  CHECK(ask(path, ::getpid()).missing.find("still starting") != std::string::npos);
  file.head.live = 1;
  REQUIRE(rose::write_file(path, file.text(), 0600));

  SECTION("the JVM answers") {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    auto* head = static_cast<StacksHead*>(
        ::mmap(nullptr, sizeof(StacksHead) + sizeof(StackSlot), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    REQUIRE(head != MAP_FAILED);
    const int me = ::getpid();
    std::thread agent([head] {
      while (__atomic_load_n(&head->asked, __ATOMIC_ACQUIRE) == 0)
        ::syscall(SYS_futex, &head->asked, FUTEX_WAIT, 0, nullptr, nullptr, 0);
      auto* slot = reinterpret_cast<StackSlot*>(head + 1);
      slot->tid = head->asked_tid;
      slot->count = 1;
      slot->frames[0] = 1;
      head->answer = static_cast<std::uint32_t>(StackAnswer::recorded);
      head->begun = head->asked;
      __atomic_store_n(&head->answered, head->asked, __ATOMIC_RELEASE);
      ::syscall(SYS_futex, &head->answered, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    });
    const JavaStack stack = ask(path, me);
    agent.join();
    CHECK(stack.missing == "");
    CHECK(stack.tid == me);
    REQUIRE(stack.frames.size() == 1);
    CHECK(stack.frames[0].function == "org.x.Store.append");
    ::munmap(head, sizeof(StacksHead) + sizeof(StackSlot));
    ::close(fd);
  }
  SECTION("the JVM begins to answer and does not finish") {
    file.head.begun = file.head.asked + 1;
    REQUIRE(rose::write_file(path, file.text(), 0600));
    const auto began = rose::monotonic_ns();
    CHECK(ask(path, ::getpid()).missing.find("inside the JVM, which did not report its position") != std::string::npos);
    CHECK(rose::monotonic_ns() - began >= kAskNs);
  }
  SECTION("the JVM's agent does not run") {
    CHECK(ask(path, ::getpid()).missing.find("did not run") != std::string::npos);
  }
  SECTION("the file is a symbolic link") {
    REQUIRE(::symlink(path.c_str(), (folder / "fedcba9876543210.stacks").c_str()) == 0);
    CHECK(ask(folder / "fedcba9876543210.stacks", ::getpid()).missing.find("no file") != std::string::npos);
  }
}
