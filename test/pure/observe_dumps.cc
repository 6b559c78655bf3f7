// When dumps are written, and to which files. The clock is simulated.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "folder.h"
#include "observe/collect.h"
#include "observe/dump_files.h"
#include "observe/dump_plan.h"
#include "observe/triggers.h"
#include "skip.h"

using namespace rose;
using namespace rose::observe;

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kS = 1'000'000'000;
using Answer = DumpPlan::Answer;

struct Dumps : rose::test::Folder {
  // The content of each file, by name.
  [[nodiscard]] std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(path)) {
      std::stringstream content;
      content << std::ifstream(entry.path()).rdbuf();
      all[entry.path().filename().string()] = content.str();
    }
    return all;
  }
};

DumpFiles::Writer text(const std::string& content) {
  return [content](const fs::path& file, const DumpRoom&) -> Result<DumpTotals> {
    ROSE_CHECK(write_file(file, content));
    return DumpTotals{content.size(), 0, 0, {}};
  };
}

DumpFiles opened(const fs::path& out, int keep) {
  auto files = DumpFiles::open(out, keep, "host/1");
  if (!files) FAIL(files.error().message);
  return std::move(*files);
}

}  // namespace

TEST_CASE("a triggered dump is written after its delay, and further triggers wait for the cooldown", "[dumps]") {
  DumpPlan plan(10 * kS, 60 * kS);
  CHECK(plan.trigger({TriggerKind::crash, "one"}, 100 * kS) == Answer::planned);
  CHECK_FALSE(plan.due(109 * kS));
  CHECK(plan.next_ns() == 110 * kS);
  // Until the dump is written, further triggers join it.
  CHECK(plan.trigger({TriggerKind::log, "two"}, 105 * kS) == Answer::joined);
  const auto due = plan.due(110 * kS);
  REQUIRE(due);
  CHECK(due->text() == "crash: one");
  CHECK_FALSE(plan.due(1000 * kS));
  CHECK(plan.trigger({TriggerKind::crash, "three"}, 159 * kS) == Answer::cooling);
  CHECK(plan.left_out() == 2);
  CHECK(plan.take_left_out() == 2);
  CHECK(plan.trigger({TriggerKind::crash, "four"}, 160 * kS) == Answer::planned);
  CHECK(plan.left_out() == 2);
  CHECK(plan.take_left_out() == 0);
  REQUIRE(plan.pending());
  CHECK(plan.pending()->what == "four");
}

TEST_CASE("dumps on request ignore the cooldown", "[dumps]") {
  DumpPlan plan(0, 60 * kS);
  CHECK(plan.trigger({TriggerKind::crash, ""}, 1 * kS) == Answer::planned);
  CHECK(plan.due(1 * kS)->text() == "crash");
  for (int i = 2; i < 6; ++i) {
    CHECK(plan.trigger({TriggerKind::signal, "SIGUSR1"}, i * kS) == Answer::planned);
    CHECK(plan.due(i * kS)->text() == "signal: SIGUSR1");
  }
  // A dump that a user requests joins one that is planned already.
  DumpPlan later(10 * kS, 0);
  CHECK(later.trigger({TriggerKind::signal, ""}, 0) == Answer::planned);
  CHECK(later.trigger({TriggerKind::crash, "x"}, 1 * kS) == Answer::planned);
  CHECK(later.trigger({TriggerKind::signal, ""}, 2 * kS) == Answer::joined);
  CHECK(later.pending()->kind == TriggerKind::crash);
}

TEST_CASE("an oracle must miss between two hits", "[dumps]") {
  using Meaning = OracleAnswers::Meaning;
  OracleAnswers oracle;
  CHECK(oracle.take(0) == Meaning::hit);
  CHECK(oracle.take(0) == Meaning::nothing);
  CHECK(oracle.take(2) == Meaning::unclear);
  CHECK(oracle.take(std::nullopt) == Meaning::unclear);
  CHECK(oracle.take(0) == Meaning::nothing);
  CHECK(oracle.take(1) == Meaning::nothing);
  CHECK(oracle.take(0) == Meaning::hit);
  CHECK(oracle.asked == 7);
  CHECK(oracle.hits == 2);
  CHECK(oracle.unclear == 2);
}

TEST_CASE("a dump that could not be written is retried at growing intervals, and later triggers join it", "[dumps]") {
  DumpPlan plan(0, 60 * kS);
  REQUIRE(plan.trigger({TriggerKind::crash, "one"}, 0) == Answer::planned);
  std::int64_t now = 0;
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 9; ++i) {
    auto cause = plan.due(now);
    REQUIRE(cause);
    CHECK(cause->what == "one");
    waits.push_back(plan.failed(std::move(*cause), now) / kS);
    CHECK_FALSE(plan.due(now));
    REQUIRE(plan.next_ns());
    now = *plan.next_ns();
  }
  CHECK(waits == std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 60, 60, 60});
  // Until the dump is written, further triggers join it, and their events become part of it.
  CHECK(plan.trigger({TriggerKind::crash, "two"}, now) == Answer::joined);
  REQUIRE(plan.pending());
  CHECK(plan.pending()->what == "one");
  REQUIRE(plan.due(now));
  plan.succeeded();
  REQUIRE(plan.trigger({TriggerKind::signal, ""}, now) == Answer::planned);
  CHECK(plan.failed(*plan.due(now), now) == 1 * kS);
}

TEST_CASE("output to a file: the newest dump has the given name, earlier ones also have a number", "[dumps]") {
  const Dumps folder;
  DumpFiles files = opened(folder / "d.bin", 2);
  CHECK(folder.files().empty());  // because open() only checks that a file can be created, and removes that file again
  using Files = std::map<std::string, std::string>;
  REQUIRE(files.write({TriggerKind::crash, ""}, 1, text("1")));
  CHECK(folder.files() == Files{{"d.bin", "1"}});
  REQUIRE(files.write({TriggerKind::log, ""}, 2, text("2")));
  CHECK(folder.files() == Files{{"d.bin", "2"}, {"d.bin.1", "1"}});
  REQUIRE(files.write({TriggerKind::signal, ""}, 3, text("3")));
  CHECK(folder.files() == Files{{"d.bin", "3"}, {"d.bin.1", "2"}, {"d.bin.2", "1"}});
  REQUIRE(files.written().size() == 3);
  CHECK(files.written()[0].file == folder / "d.bin.2");

  // If a dump cannot be written, the existing ones are renumbered only once, however often the write is attempted.
  // Otherwise each attempt would remove one of them. Until a dump is written, d.bin and d.bin.1 are the same file.
  const DumpFiles::Writer broken = [](const fs::path&, const DumpRoom&) -> Result<DumpTotals> {
    return fail(ErrorKind::input, "the disk is full");
  };
  CHECK_FALSE(files.write({TriggerKind::crash, ""}, 4, broken));
  CHECK_FALSE(files.write({TriggerKind::crash, ""}, 4, broken));
  CHECK(folder.files() == Files{{"d.bin", "3"}, {"d.bin.1", "3"}, {"d.bin.2", "2"}});

  REQUIRE(files.write({TriggerKind::end, ""}, 5, text("5")));
  CHECK(folder.files() == Files{{"d.bin", "5"}, {"d.bin.1", "3"}, {"d.bin.2", "2"}});
  REQUIRE(files.written().size() == 4);
  CHECK(files.written()[0].file.empty());
  CHECK(files.written()[1].file == folder / "d.bin.2");
  CHECK(files.written()[2].file == folder / "d.bin.1");
  CHECK(files.written()[3].file == folder / "d.bin");
}

TEST_CASE("output to a file: a dump by `rose dump` is rotated too, and keeping none is possible", "[dumps]") {
  const Dumps folder;
  DumpFiles files = opened(folder / "d.bin", 5);
  std::ofstream(folder / "d.bin") << "by rose dump";
  REQUIRE(files.write({TriggerKind::end, ""}, 1, text("end")));
  CHECK(folder.files() == std::map<std::string, std::string>{{"d.bin", "end"}, {"d.bin.1", "by rose dump"}});

  DumpFiles none = opened(folder / "e.bin", 0);
  REQUIRE(none.write({TriggerKind::crash, ""}, 1, text("1")));
  REQUIRE(none.write({TriggerKind::end, ""}, 2, text("2")));
  CHECK_FALSE(fs::exists(folder / "e.bin.1"));
  CHECK(none.written()[0].file.empty());
}

TEST_CASE("output to a file: an earlier tracer's dump is kept, whatever its time", "[dumps]") {
  const auto age = GENERATE(std::chrono::hours(1), std::chrono::hours(-1));
  const Dumps folder;
  std::ofstream(folder / "d.bin") << "the crash";
  fs::last_write_time(folder / "d.bin", fs::file_time_type::clock::now() - age);
  DumpFiles files = opened(folder / "d.bin", 2);
  REQUIRE(files.write({TriggerKind::end, ""}, 1, text("1")));
  CHECK(folder.files() == std::map<std::string, std::string>{{"d.bin", "1"}, {"d.bin.1", "the crash"}});
}

TEST_CASE("output to a folder: each dump has its own name, and the oldest of this host are removed", "[dumps]") {
  const Dumps folder;
  std::ofstream(folder / "rose-other-20200101T000000Z-crash.bin") << "";
  std::ofstream(folder / "rose-host_1-notes.bin") << "";
  std::ofstream(folder / "rose-host_1-20200101T000000Z-end.bin") << "";
  DumpFiles files = opened(folder.path + "/", 2);
  const std::int64_t at = 1'795'311'901 * kS;  // 2026-11-22T01:45:01Z
  const auto first = files.write({TriggerKind::crash, ""}, at, text("1"));
  REQUIRE(first);
  CHECK(first->file.filename() == "rose-host_1-20261122T014501Z-crash.bin");
  const auto second = files.write({TriggerKind::crash, ""}, at, text("2"));
  REQUIRE(second);
  CHECK(second->file.filename() == "rose-host_1-20261122T014501Z-crash-2.bin");
  fs::last_write_time(second->file,
                      // as if both files were written within one tick of the file system's clock
                      fs::last_write_time(first->file));
  REQUIRE(files.write({TriggerKind::end, ""}, at + kS, text("3")));
  std::set<std::string> names;
  for (const auto& [name, content] : folder.files()) names.insert(name);
  CHECK(names == std::set<std::string>{"rose-other-20200101T000000Z-crash.bin", "rose-host_1-notes.bin",
                                       "rose-host_1-20261122T014501Z-crash-2.bin",
                                       "rose-host_1-20261122T014502Z-end.bin"});
  CHECK(files.written()[0].file.empty());
}

TEST_CASE("output to a folder: without space the oldest dump is removed first, never the last one", "[dumps]") {
  const Dumps folder;
  const int keep = GENERATE(1, 2, 3);
  DumpFiles files = opened(folder.path + "/", keep);
  // Behaves like a disk with space for `keep` dumps.
  const auto fits = [&](const std::string& content) -> DumpFiles::Writer {
    return [&, content](const fs::path& file, const DumpRoom& room) -> Result<DumpTotals> {
      if (folder.files().size() >= static_cast<std::size_t>(keep)) return fail(ErrorKind::input, "the disk is full");
      return text(content)(file, room);
    };
  };
  for (int i = 1; i <= keep; ++i) REQUIRE(files.write({TriggerKind::crash, ""}, i * kS, fits(std::to_string(i))));
  const auto more = files.write({TriggerKind::crash, ""}, 9 * kS, fits("more"));
  std::set<std::string> contents;
  for (const auto& [name, content] : folder.files()) contents.insert(content);
  if (keep == 1) {
    CHECK_FALSE(more);
    CHECK(contents == std::set<std::string>{"1"});
    return;
  }
  REQUIRE(more);
  CHECK(contents.size() == static_cast<std::size_t>(keep));
  CHECK(contents.count("more") == 1);
  CHECK(contents.count("1") == 0);
}

namespace {

// A disk of the given size, as long as the object exists.
struct SmallDisk {
  SmallDisk(std::string folder, const char* size) : at(std::move(folder)) {
    fs::create_directory(at);
    mounted = ::mount("rose-test", at.c_str(), "tmpfs", 0, fmt::format("size={}", size).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted) ::umount2(at.c_str(), MNT_DETACH);
  }
  std::string at;
  bool mounted = false;
};

// A writer of blocks of one KiB. If there is no space for all of them, it writes the newest ones. Without `asks`, it
// does not ask how much space there is.
DumpFiles::Writer blocks(std::uint64_t count, bool asks = true) {
  return [=](const fs::path& file, const DumpRoom& room) -> Result<DumpTotals> {
    std::uint64_t most = count * 1024;
    if (asks && room) most = std::min(most, room(most));
    DumpTotals totals;
    totals.events = most / 1024;
    totals.left_out = totals.lost = count - totals.events;
    ROSE_CHECK(write_file(file, std::string(totals.events * 1024, 'x')));
    return totals;
  };
}

}  // namespace

TEST_CASE("on a disk too small for all dumps the newest is written and the oldest are removed", "[dumps]") {
  const Dumps folder;
  const SmallDisk disk(folder / "disk", "512k");
  if (!disk.mounted) rose::test::skip_case("mounting a tmpfs, which root may");
  const bool into_file = GENERATE(true, false);
  // This must also work with a writer that attempts to write without asking for the free space.
  const bool asks = GENERATE(true, false);
  CAPTURE(into_file, asks);
  DumpFiles files = opened(into_file ? disk.at + "/d.bin" : disk.at + "/", 5);
  for (int i = 1; i <= 7; ++i) {
    const auto written =
        files.write({TriggerKind::crash, ""}, i * kS, blocks(150 + static_cast<std::uint64_t>(i), asks));
    REQUIRE(written);
    CHECK(written->size.events == 150 + static_cast<std::uint64_t>(i));
    CHECK(written->size.left_out == 0);
    CHECK(fs::file_size(written->file) == (150 + static_cast<std::uint64_t>(i)) * 1024);
  }
  std::set<std::uintmax_t> sizes;
  for (const auto& entry : fs::directory_iterator(disk.at)) sizes.insert(entry.file_size() / 1024);
  CHECK(sizes == std::set<std::uintmax_t>{155, 156, 157});
  // The last dump needs the whole disk, so no other one is kept.
  const auto large = files.write({TriggerKind::crash, ""}, 8 * kS, blocks(480, asks));
  REQUIRE(large);
  CHECK(large->size.left_out == 0);
  CHECK(fs::file_size(large->file) == 480 * 1024);
  CHECK(std::distance(fs::directory_iterator(disk.at), fs::directory_iterator()) == 1);
}

TEST_CASE("of a dump larger than the disk the newest events are written", "[dumps]") {
  const Dumps folder;
  const SmallDisk disk(folder / "disk", "256k");
  if (!disk.mounted) rose::test::skip_case("mounting a tmpfs, which root may");
  const bool into_file = GENERATE(true, false);
  DumpFiles files = opened(into_file ? disk.at + "/d.bin" : disk.at + "/", 3);
  REQUIRE(files.write({TriggerKind::crash, ""}, 1 * kS, blocks(100)));
  const auto written = files.write({TriggerKind::crash, ""}, 2 * kS, blocks(1000));
  REQUIRE(written);
  CHECK(written->size.events > 150);
  CHECK(written->size.events + written->size.left_out == 1000);
  CHECK(fs::file_size(written->file) == written->size.events * 1024);
}

TEST_CASE("if a quota is exceeded, fewer events are tried until they fit", "[dumps]") {
  const Dumps folder;
  DumpFiles files = opened(folder / "d.bin", 2);
  int tries = 0;
  const auto written =
      files.write({TriggerKind::crash, ""}, kS, [&](const fs::path& file, const DumpRoom& room) -> Result<DumpTotals> {
        ++tries;
        const std::uint64_t most = room(1'000'000);
        if (most > 100'000) return fail_errno(ErrorKind::input, "cannot write", EDQUOT);
        DumpTotals totals;
        totals.left_out = 1'000'000 - most;
        ROSE_CHECK(write_file(file, "x"));
        return totals;
      });
  REQUIRE(written);
  CHECK(tries > 2);
  CHECK(written->size.left_out >= 900'000);
  // If there is space for nothing at all, the message says so.
  CHECK_FALSE(
      files.write({TriggerKind::crash, ""}, 2 * kS, [&](const fs::path&, const DumpRoom& room) -> Result<DumpTotals> {
        (void)room(1'000'000);
        return fail_errno(ErrorKind::input, "cannot write", ENOSPC);
      }));
}

TEST_CASE("a pipe without a reader is refused at once", "[dumps]") {
  const Dumps folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const auto refused = DumpFiles::open(folder / "pipe", 1, "h");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("nobody reads this pipe") != std::string::npos);
  // The reader of the pipe gets the dump, and sees no end of the file until rose ends.
  const Fd reader(::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::optional<DumpFiles> files = opened(folder / "pipe", 1);
  char got[16] = {};
  CHECK(::read(reader.get(), got, sizeof got) == -1);
  REQUIRE(files->write({TriggerKind::crash, ""}, kS, text("dump")));
  CHECK(::read(reader.get(), got, sizeof got) == 4);
  CHECK(::read(reader.get(), got, sizeof got) == -1);
  files.reset();
  CHECK(::read(reader.get(), got, sizeof got) == 0);
}

TEST_CASE("unfinished files of a killed tracer are removed when the next one starts", "[dumps]") {
  const Dumps folder;
  std::ofstream(folder / ".d.bin.rose-a1B2c3") << "half";
  std::ofstream(folder / ".other.bin.rose-a1B2c3") << "half";
  (void)opened(folder / "d.bin", 1);
  CHECK(folder.files() == std::map<std::string, std::string>{{".other.bin.rose-a1B2c3", "half"}});
  std::ofstream(folder / ".rose-host_1-20260101T000000Z-crash.bin.rose-a1B2c3") << "half";
  std::ofstream(folder / ".rose-host_2-20260101T000000Z-crash.bin.rose-a1B2c3") << "another's";
  (void)opened(folder.path, 1);
  CHECK(folder.files() ==
        std::map<std::string, std::string>{{".other.bin.rose-a1B2c3", "half"},
                                           {".rose-host_2-20260101T000000Z-crash.bin.rose-a1B2c3", "another's"}});
}

TEST_CASE("missing output folders are created, and invalid outputs are refused", "[dumps]") {
  const Dumps folder;
  DumpFiles files = opened(folder.path + "/new/", 2);
  CHECK(fs::is_directory(folder / "new"));
  CHECK_FALSE(DumpFiles::open(folder.path + "/no/folder/", 2, "h"));
  CHECK_FALSE(DumpFiles::open(folder.path + "/no/d.bin", 2, "h"));
  CHECK_FALSE(DumpFiles::open("", 2, "h"));
  std::ofstream(folder / "file") << "";
  CHECK_FALSE(DumpFiles::open(folder.path + "/file/", 2, "h"));
}

TEST_CASE("FILE:REGEX options are parsed, and invalid ones are refused", "[dumps]") {
  const auto watch = parse_log_watch("--dump-on-log", "/var/log/db.log:panic: (a|b)");
  REQUIRE(watch);
  CHECK(watch->file == "/var/log/db.log");
  CHECK(watch->regex == "panic: (a|b)");
  for (const char* bad : {"", "file", ":regex", "file:", "/tmp:x", "file:(", "file:(?=a)", "file:(a)\\1"}) {
    const auto refused = parse_log_watch("--dump-on-log", bad);
    INFO(bad);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::usage);
    CHECK(refused.error().message.find("--dump-on-log") == 0);
  }
}

TEST_CASE("a dump's file name gives host, time and trigger", "[dumps]") {
  const auto plain = parse_dump_name("rose-db1-20261122T014501Z-crash.bin");
  REQUIRE(plain);
  CHECK(plain->host == "db1");
  CHECK(plain->stamp == "20261122T014501Z");
  CHECK(plain->trigger == "crash");
  const auto odd = parse_dump_name("rose-a-20200101T000000Z-b-20261122T014501Z-log-2.bin");
  REQUIRE(odd);
  CHECK(odd->host == "a-20200101T000000Z-b");
  CHECK(odd->trigger == "log-2");
  for (const char* none : {"", "rose-.bin", "rose-db1-20261122T014501Z.bin", "rose-db1-20261122T014501Z-crash.tmp",
                           "rose-db1-2026112AT014501Z-crash.bin", "rose-20261122T014501Z-crash.bin", "rose--",
                           "rose----------------------.bin"})
    CHECK_FALSE(parse_dump_name(none));
}

TEST_CASE("each source of dumps is collected with its command", "[dumps]") {
  CollectOptions options;
  options.deadline_ns = 7'500'000'000;
  options.control = "/run/my rose.sock";
  const auto words = [&](const char* text) {
    return fmt::format("{}", fmt::join(collect_command(parse_source(text).value(), options), "|"));
  };
  CHECK(words("me@db1") ==
        "ssh|-T|-o|BatchMode=yes|-o|ConnectTimeout=7|me@db1|rose dump -o - --control '/run/my rose.sock'");
  CHECK(words("ssh:::1") ==
        "ssh|-T|-o|BatchMode=yes|-o|ConnectTimeout=7|::1|rose dump -o - --control '/run/my rose.sock'");
  CHECK(words("kubectl:prod/db-0:main") ==
        "kubectl|exec|-n|prod|db-0|-c|main|--|rose|dump|-o|-|--control|/run/my rose.sock");
  CHECK(words("kubectl:db-0") == "kubectl|exec|db-0|--|rose|dump|-o|-|--control|/run/my rose.sock");
  CHECK(parse_source("./here")->kind == DumpSource::Kind::folder);
  for (const char* bad : {"", "-l", "a b", "a;b", "a\nb", "ssh:", "ssh:-x", "ssh:a/b", "kubectl:", "kubectl:/",
                          "kubectl:-n/a", "kubectl:a:", "$x", "`x`"})
    CHECK_FALSE(parse_source(bad));
}
