// How recordings are written, and how damaged ones are read.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <map>
#include <thread>

#include "rr_support.h"

using namespace rose;
using namespace rose::rr;
using namespace rose::rr::test;

namespace {

constexpr std::size_t kReserved = offsetof(FileHead, reserved);

std::uint64_t& word(std::string& bytes, std::size_t at) { return *reinterpret_cast<std::uint64_t*>(bytes.data() + at); }

// The position in the file at which the nth record begins.
std::size_t place(const Read& read, std::size_t n) {
  return kHeadBytes + (read.records.at(n).position & (read.reading.facts().ring_bytes - 1));
}

}  // namespace

TEST_CASE("records are read back in order") {
  MadeRing made;
  CHECK(made.append("a", "hello"));
  CHECK(made.append("bb", ""));
  CHECK(made.append("a", std::string(1000, 'x'), Kind::checkpoint));
  const Read read(made.file());
  REQUIRE(read.why == nullptr);
  REQUIRE(read.records.size() == 3);
  CHECK(read.records[0].key == "a");
  CHECK(read.records[0].data == "hello");
  CHECK(read.records[1].key == "bb");
  CHECK(read.records[1].data.empty());
  CHECK(read.records[2].kind == Kind::checkpoint);
  CHECK(read.records[2].data == std::string(1000, 'x'));
  const Facts& facts = read.reading.facts();
  CHECK(facts.node == "n1");
  CHECK(facts.pid == static_cast<std::uint32_t>(::getpid()));
  CHECK_FALSE(facts.overwritten);
  CHECK_FALSE(facts.damaged);
  CHECK_FALSE(facts.ended);
  CHECK(facts.unfinished == 0);
  struct stat info{};
  REQUIRE(::stat((made.folder / "r").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("eight threads lose no record, and each keeps its order") {
  MadeRing made(32 << 20);
  constexpr std::uint64_t kEach = 20000;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (std::uint64_t n = 0; n < kEach; ++n) made.append("t" + std::to_string(i), std::to_string(n));
    });
  for (std::thread& thread : threads) thread.join();
  const Read read(made.file());
  REQUIRE(read.why == nullptr);
  REQUIRE(read.records.size() == 8 * kEach);
  std::map<std::string, std::uint64_t> next;
  bool in_order = true;
  for (const Record& record : read.records)
    in_order = in_order && record.data == std::to_string(next[std::string(record.key)]++);
  CHECK(in_order);
}

TEST_CASE("a window that wrapped many times contains all of the last records") {
  MadeRing made;
  constexpr std::uint64_t kEach = 30000;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (std::uint64_t n = 0; n < kEach; ++n)
        made.append("t" + std::to_string(i), std::string(n % 61, 'x') + std::to_string(n));
    });
  for (std::thread& thread : threads) thread.join();
  const Read read(made.file());
  REQUIRE(read.why == nullptr);
  const Facts& facts = read.reading.facts();
  CHECK(facts.overwritten);
  CHECK_FALSE(facts.damaged);
  CHECK(facts.lost == 0);
  CHECK(facts.unfinished == 0);
  CHECK(facts.end == facts.reserved);
  CHECK(facts.end - facts.begin >= kLeastRing / 64 * 62);
  // There must be no gap: each record follows directly after the one before, and the numbers of each thread are
  // consecutive.
  std::map<std::string, std::uint64_t> last;
  std::uint64_t position = facts.begin;
  bool whole = true;
  for (const Record& record : read.records) {
    whole = whole && record.position == position;
    position += record_bytes(record.key.size(), record.data.size());
    const std::uint64_t n = std::stoull(std::string(record.data.substr(record.data.find_first_not_of('x'))));
    const auto [at, first] = last.try_emplace(std::string(record.key), n);
    whole = whole && (first || n == at->second + 1);
    at->second = n;
  }
  CHECK(whole);
}

TEST_CASE("unfinished calls leave gaps, which are not damage") {
  MadeRing made;
  for (int i = 0; i < 10; ++i) made.append("key", std::to_string(i));
  std::string file = made.file();
  SECTION("a gap at the end") {
    word(file, kReserved) += 128;
    const Read read(file);
    REQUIRE(read.records.size() == 10);
    CHECK(read.reading.facts().unfinished == 1);
    CHECK_FALSE(read.reading.facts().damaged);
  }
  SECTION("a gap between records") {
    const Read whole(file);
    *reinterpret_cast<std::uint32_t*>(file.data() + place(whole, 4)) = 0;
    word(file, offsetof(FileHead, finished)) -= record_bytes(3, 1);
    const Read read(file);
    REQUIRE(read.records.size() == 9);
    CHECK(read.records[4].data == "5");
    CHECK(read.reading.facts().unfinished == 1);
    CHECK_FALSE(read.reading.facts().damaged);
  }
}

TEST_CASE("an unreadable finished record is damage, and the recording ends there") {
  MadeRing made;
  for (int i = 0; i < 10; ++i) made.append("key", std::to_string(i));
  const std::string file = made.file();
  const Read whole(file);
  const std::size_t at = place(whole, 6);
  for (const std::size_t byte : {0, 5, 9, 17, 26, 27, 29, 40, 43}) {
    INFO("byte " << byte);
    std::string bad = file;
    bad[at + byte] = static_cast<char>(bad[at + byte] ^ 0x10);
    const Read read(bad);
    REQUIRE(read.why == nullptr);
    CHECK(read.records.size() == 6);
    CHECK(read.reading.facts().damaged);
    CHECK(read.reading.facts().end == whole.records[6].position);
  }
}

TEST_CASE("files that are not recordings are refused with the reason") {
  MadeRing made;
  made.append("key", "data");
  const std::string file = made.file();
  CHECK(std::string(Read("").why) == "it is too short to be a recording");
  CHECK(std::string(Read(file.substr(0, file.size() - 1)).why) ==
        "its size differs from that in its header: it is truncated or incomplete");
  std::string bad = file;
  bad[0] = 'X';
  CHECK(std::string(Read(bad).why) == "it is not a recording of librose-rr");
  bad = file;
  bad[offsetof(FileHead, version)] = 9;
  CHECK(std::string(Read(bad).why) == "it is a recording of another version; this rose reads version 1");
  bad = file;
  word(bad, offsetof(FileHead, ring_bytes)) = 12345;
  CHECK(std::string(Read(bad).why) == "its head is damaged");
}

// The victim counts, for each thread, the calls that have returned. Whenever it is killed, the recording must contain
// all of these calls, in their order.
TEST_CASE("a kill by SIGKILL loses no call that had returned") {
  for (int round = 0; round < 20; ++round) {
    const rose::test::Folder folder;
    const std::string counts_file = folder / "counts", recording = folder / "r";
    REQUIRE(write_file(counts_file, std::string(4096, '\0')).has_value());
    const int fd = ::open(counts_file.c_str(), O_RDWR | O_CLOEXEC);
    auto* counts =
        static_cast<std::atomic<std::uint64_t>*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    ::close(fd);
    REQUIRE(counts != MAP_FAILED);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    const std::string window = round % 2 == 0 ? "64KiB" : "4MiB";
    const auto pid = spawn_process(
        {"env", "ROSE_RR=record:" + recording, "ROSE_RR_WINDOW=" + window, ROSE_RR_VICTIM, "flood", counts_file, "8"},
        null, null, null);
    ::close(null);
    REQUIRE(pid.has_value());
    while (counts[8 * (round % 8)].load() < 2000U + 100U * static_cast<unsigned>(round)) {
      REQUIRE(::waitpid(*pid, nullptr, WNOHANG) == 0);
      ::usleep(500);
    }
    ::kill(*pid, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(*pid, &status, 0) == *pid);
    REQUIRE(WIFSIGNALED(status));

    const Read read(file_of(recording));
    REQUIRE(read.why == nullptr);
    const Facts& facts = read.reading.facts();
    INFO("round " << round << ": " << facts.records << " records, " << facts.unfinished << " unfinished");
    CHECK_FALSE(facts.damaged);
    CHECK(facts.lost == 0);
    CHECK(facts.unfinished <= 8);
    std::map<std::string, std::uint64_t> last;
    bool whole = true;
    for (const Record& record : read.records) {
      std::uint64_t n = 0;
      std::memcpy(&n, record.data.data(), sizeof n);
      whole = whole && record.data.size() == 8 + n % 190;
      const auto [at, first] = last.try_emplace(std::string(record.key), n);
      whole = whole && (first || n == at->second + 1);
      at->second = n;
    }
    CHECK(whole);
    for (int i = 0; i < 8; ++i) {
      const auto at = last.find("t" + std::to_string(i));
      if (at == last.end()) continue;  // this thread wrote no record, or all of them were overwritten
      const std::uint64_t returned = counts[8 * i].load();
      CHECK(at->second >= returned);
      CHECK(at->second <= returned + 1);
    }
    ::munmap(counts, 4096);
  }
}
