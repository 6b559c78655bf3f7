// Recordings that rose adds to a dump: finding them by their names, copying them while the targets still write, sending
// them, and storing them with the dump.
#include <atomic>
#include <fstream>
#include <map>
#include <thread>

#include "observe/control.h"
#include "observe/dump_files.h"
#include "observe/recordings.h"
#include "opened.h"
#include "rr_support.h"

using namespace rose;
using namespace rose::observe;
using rose::rr::test::MadeRing;
using rose::rr::test::Read;
using rose::test::Folder;
namespace fs = std::filesystem;

namespace {

void make_recording(const fs::path& folder, const std::string& name, std::uint64_t bytes, int records) {
  fs::create_directories(folder);
  rr::Ring ring;
  char why[256] = "";
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(ring.create(fd.get(), name.c_str(), bytes, "", why, sizeof why));
  for (int i = 0; i < records; ++i) ring.append(rr::Kind::value, 0, {"k", 1}, {&i, sizeof i});
}

bool has_problem(const std::vector<std::string>& problems, const std::string& part) {
  return std::any_of(problems.begin(), problems.end(),
                     [&](const std::string& problem) { return problem.find(part) != std::string::npos; });
}

Result<DumpTotals> plain_dump(const fs::path& path, const DumpRoom&) {
  std::ofstream(path) << "dump";
  return DumpTotals{};
}

}  // namespace

TEST_CASE("file names of recordings match their pattern with numbers") {
  CHECK(fits_recording_name("n1.%n.rr", "n1.12.rr"));
  CHECK(fits_recording_name("n1.rr", "n1.rr"));
  CHECK(fits_recording_name("%p-%n", "41-7"));
  for (const char* other : {"n1..rr", "n1.1.rr.bak", "n1.x.rr", "n2.1.rr", "", "n1.1"})
    CHECK_FALSE(fits_recording_name("n1.%n.rr", other));
}

TEST_CASE("a recording is copied consistently while four threads write it") {
  MadeRing made;  // the ring has 64 KiB, so it wraps around many times
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t n = 0; !stop; ++n) {
        made.append("t" + std::to_string(i), std::to_string(n));
        if (n % 16 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  const Folder folder;
  const fs::path copy = folder / "copy";
  int overwritten = 0;
  // The test ends when enough copies were made of a ring that had wrapped around.
  for (int round = 0; round < 5000 && overwritten < 50; ++round) {
    const Fd file = open_regular(made.folder / "r");
    const auto done = copy_recording(file, copy);
    if (!done) CHECK(done.error().message.find("faster") != std::string::npos);  // possible on a busy machine
    if (!done) continue;
    const Read read(read_file(copy).value());
    REQUIRE(read.why == nullptr);
    const rr::Facts& facts = read.reading.facts();
    CHECK_FALSE(facts.damaged);
    CHECK(facts.lost == 0);
    if (facts.overwritten) ++overwritten;
    else if (!read.records.empty()) CHECK(facts.begin == 0);
    // Between the first and the last record of a thread in the copy, no record of that thread may be missing.
    std::map<std::string_view, std::uint64_t> next;
    for (const rr::Record& record : read.records) {
      const std::uint64_t number = std::stoull(std::string(record.data));
      if (const auto known = next.find(record.key); known != next.end()) REQUIRE(known->second == number);
      next[record.key] = number + 1;
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(overwritten == 50);
}

TEST_CASE("the newest recordings of a folder are opened up to a total size, and a note names the others") {
  const Folder folder;
  for (int life = 1; life <= 6; ++life)
    make_recording(folder / "a", fmt::format("n.{}.rr", life), rr::kLeastRing, life);
  make_recording(folder / "b", "n.1.rr", rr::kLeastRing, 1);
  std::ofstream(folder / "a" / "n.9.rr") << "something else";
  std::ofstream(folder / "a" / "notes.txt") << "mine";
  fs::create_symlink(folder / "b" / "n.1.rr", folder / "a" / "n.10.rr");

  RecordingSources sources;
  REQUIRE(sources.add("n1", folder / "a", "n.%n.rr"));
  REQUIRE(sources.add("n2", folder / "b", ""));
  REQUIRE(sources.add("n3", folder / "later", ""));
  CHECK_FALSE(sources.add("n1", folder / "a" / "notes.txt", ""));
  OpenRecordings open = sources.open();
  REQUIRE(open.all.size() == 5);
  CHECK(open.all[0].name == "n.6.rr");
  CHECK(open.all[1].node == "n2");
  CHECK(open.all[4].name == "n.3.rr");
  CHECK(has_problem(open.problems, "2 older recordings of n1"));
  CHECK(has_problem(open.problems, "n.9.rr: it is too short for a recording"));
  CHECK(has_problem(open.problems, "n.10.rr cannot be opened"));
  CHECK(open.problems.size() == 3);

  RecordingSources small(3 * (rr::kHeadBytes + 1000));
  REQUIRE(small.add("n1", folder / "a", "n.%n.rr"));
  open = small.open();
  CHECK(open.all.size() == 3);
  CHECK(has_problem(open.problems, "n.3.rr of n1 is not copied"));
  RecordingSources none(0);
  REQUIRE(none.add("n1", folder / "a", ""));
  CHECK(none.open().all.empty());
}

TEST_CASE("the path that a process gives for its recording is opened only if it is a file") {
  const Folder folder;
  REQUIRE(::mkfifo((folder / "watchdog").c_str(), 0600) == 0);
  const rose::test::Opened pipe(folder / "watchdog");
  RecordingSources sources;
  REQUIRE(sources.add("n1", folder.path, "watchdog"));
  CHECK(sources.open().all.empty());
  CHECK_FALSE(pipe.yes());
}

TEST_CASE("recordings are stored beside their dump and removed with it") {
  const Folder folder;
  make_recording(folder / "own", "r.1", rr::kLeastRing, 3);
  const auto sources = std::make_shared<RecordingSources>();
  REQUIRE(sources->add("n/1", folder / "own", ""));
  const fs::path out = folder / "dump.bin";
  auto files = DumpFiles::open(out, 1, "host");
  REQUIRE(files);
  files->take_along(sources);
  const auto first = files->write({TriggerKind::signal, ""}, 1, plain_dump);
  REQUIRE(first);
  REQUIRE(first->recordings == std::vector<std::string>{"n_1/r.1"});
  const fs::path there = folder / "dump.bin.recordings" / "n_1" / "r.1";
  CHECK(first->recording_files() == std::vector<std::string>{there.string()});
  CHECK(Read(read_file(there).value()).records.size() == 3);
  CHECK((fs::status(there).permissions() & fs::perms::all) == (fs::perms::owner_read | fs::perms::owner_write));

  make_recording(folder / "own", "r.2", rr::kLeastRing, 4);
  REQUIRE(files->write({TriggerKind::signal, ""}, 2, plain_dump));
  CHECK(fs::exists(folder / "dump.bin.1.recordings" / "n_1" / "r.1"));
  CHECK_FALSE(fs::exists(folder / "dump.bin.1.recordings" / "n_1" / "r.2"));
  CHECK(fs::exists(folder / "dump.bin.recordings" / "n_1" / "r.2"));
  CHECK(files->written()[0].recording_files() ==
        std::vector<std::string>{(folder / "dump.bin.1.recordings" / "n_1" / "r.1").string()});
  fs::remove_all(folder / "own");
  REQUIRE(files->write({TriggerKind::signal, ""}, 3, plain_dump));
  CHECK(fs::exists(folder / "dump.bin.1.recordings" / "n_1" / "r.2"));
  CHECK_FALSE(fs::exists(folder / "dump.bin.recordings"));

  make_recording(folder / "own", "r.3", rr::kLeastRing, 1);
  auto many = DumpFiles::open(folder / "dumps/", 1, "host");
  REQUIRE(many);
  many->take_along(sources);
  for (int i = 1; i <= 2; ++i) REQUIRE(many->write({TriggerKind::crash, ""}, i * 2'000'000'000, plain_dump));
  CHECK(std::distance(fs::directory_iterator(folder / "dumps"), fs::directory_iterator()) ==
        2);  // the dump and its recordings

  const auto to_pipe = copy_recordings(sources->open(), "/dev/null");
  CHECK(to_pipe.files.empty());
  CHECK(has_problem(to_pipe.problems, "is not a file"));
}

TEST_CASE("a tracer sends recordings on request") {
  const Folder folder;
  for (int life = 1; life <= 4; ++life) make_recording(folder / "own", fmt::format("r.{}", life), rr::kLeastRing, life);
  RecordingSources sources;
  REQUIRE(sources.add("n1", folder / "own", ""));
  const auto socket = folder / "t.sock";
  auto server = ControlServer::start(
      socket, [](const trace::DumpWriter::Sink&) -> Result<std::string> { return "0 events"; },
      [&] {
        OpenRecordings open = sources.open();
        open.problems.push_back("a\nword");
        return open;
      });
  REQUIRE(server);
  auto got = request_recordings(socket);
  REQUIRE(got);
  CHECK(got->problems == std::vector<std::string>{"a word"});
  REQUIRE(got->all.size() == 4);
  fs::remove_all(folder / "own");  // the recordings can still be read through descriptors that are open
  REQUIRE(plain_dump(folder / "dump.bin", {}));
  const auto copied = copy_recordings(std::move(*got), folder / "dump.bin");
  CHECK(copied.problems == std::vector<std::string>{"a word"});
  REQUIRE(copied.files.size() == 4);
  CHECK(Read(read_file(copied.files[0]).value()).records.size() == 4);
  CHECK(copied.files[0] == folder / "dump.bin.recordings" / "n1" / "r.4");

  auto without = ControlServer::start(folder / "u.sock",
                                      [](const trace::DumpWriter::Sink&) -> Result<std::string> { return "0 events"; });
  REQUIRE(without);
  got = request_recordings(folder / "u.sock");
  REQUIRE(got);
  CHECK(got->all.empty());
}
