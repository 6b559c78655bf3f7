#include "logs_support.h"

#include <cerrno>
#include <csignal>

#include "logs/evidence.h"
#include "kernel/syscalls.h"

using namespace rose;
using namespace rose::logs;
using namespace rose::logs::test;

// Messages of real systems, word for word.
TEST_CASE("what messages say") {
  struct Row {
    const char* text;
    int error;
    const char* call;   // the likeliest
    const char* path;
    const char* peer;
  };
  const Row rows[] = {
      {"Write error saving DB on disk(rdbSaveRio): No space left on device", ENOSPC, "write", "", ""},
      {"Failed opening the temp RDB file temp-333.rdb (in server root dir /data) for saving: No space left on device", ENOSPC, "write", "/data", ""},
      {"could not write to file \"pg_wal/xlogtemp.1520\": No space left on device", ENOSPC, "write", "pg_wal/xlogtemp.1520", ""},
      {"could not fsync file \"base/13/2601\": Input/output error", EIO, "fsync", "base/13/2601", ""},
      {"*7 open() \"/srv/www/none\" failed (2: No such file or directory), client: 127.0.0.1, server: , request: \"GET /none HTTP/1.1\"", ENOENT, "openat", "/srv/www/none", "127.0.0.1"},
      {"*10 pwrite() \"/mnt/tmp/0000000001\" failed (28: No space left on device), client: 127.0.0.1", ENOSPC, "write", "/mnt/tmp/0000000001", "127.0.0.1"},
      {"*7 connect() failed (111: Connection refused) while connecting to upstream, client: 127.0.0.1, upstream: \"http://10.0.0.2:9001/app/\"", ECONNREFUSED, "connect", "", "10.0.0.2:9001"},
      {"Error trying to connect to route (attempt 1): dial tcp 127.0.0.1:6223: connect: connection refused", ECONNREFUSED, "connect", "", "127.0.0.1:6223"},
      {"cannot save record 2\nTraceback (most recent call last):\n  File \"store.py\", line 7\nOSError: [Errno 28] No space left on device", ENOSPC, "write", "", ""},
      {"FileNotFoundError: [Errno 2] No such file or directory: '/srv/sv/none/x'", ENOENT, "openat", "/srv/sv/none/x", ""},
      {"peer 127.0.0.1:7002 is lost: [Errno 111] Connection refused", ECONNREFUSED, "connect", "", "127.0.0.1:7002"},
      {"cannot open /var/backups/db.tar: Permission denied", EACCES, "openat", "/var/backups/db.tar", ""},
      {"Severe unrecoverable error, exiting\njava.io.IOException: No space left on device\n\tat java.io.FileOutputStream.writeBytes(Native Method)", ENOSPC, "write", "", ""},
      {"java.nio.file.AccessDeniedException: /var/lib/x/log.1", EACCES, "openat", "/var/lib/x/log.1", ""},
      {"accept4: too many open files; retrying in 5ms", EMFILE, "accept4", "", ""},
      {"fsync of /data/wal/000.wal failed with EIO", EIO, "fsync", "/data/wal/000.wal", ""},
      {"thread 'main' panicked at 'called `Result::unwrap()` on an `Err` value: Os { code: 28, kind: StorageFull, message: \"No space left on device\" }'", ENOSPC, "write", "", ""},
      {"rename data.tmp failed: os error 5", EIO, "rename", "", ""},
      {"can't start new thread", EAGAIN, "clone", "", ""},
      {"read tcp 10.0.0.1:2380->10.0.0.3:50412: read: connection reset by peer", ECONNRESET, "read", "", "10.0.0.3:50412"},
      {"saved record 1, 400000 bytes", 0, "", "", ""},
      {"Ready to accept connections", 0, "", "", ""},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const Meaning meaning = read_meaning(row.text);
    CHECK(kernel::errno_name(meaning.error) == kernel::errno_name(row.error));
    const std::vector<std::string_view> calls = calls_that_fail(meaning.error, meaning.operation);
    CHECK(std::string(calls.empty() || meaning.error == 0 ? "" : calls[0]) == row.call);
    CHECK(meaning.path == row.path);
    CHECK(meaning.peer == row.peer);
  }
}

TEST_CASE("who ended, and how") {
  struct Row {
    const char* text;
    bool ended;
    int signal, code;
  };
  const Row rows[] = {
      {"exited: worker (terminated by SIGKILL; not expected)", true, SIGKILL, -1},
      {"server process (PID 1520) was terminated by signal 6: Aborted", true, SIGABRT, -1},
      {"Main process exited, code=exited, status=1/FAILURE", true, 0, 1},
      {"Out of memory: Killed process 3121 (etcd) total-vm:100kB", true, SIGKILL, -1},
      {"worker process 725 exited with code 0", false, 0, -1},
      {"container died, exit code 137", true, SIGKILL, 137},
      {"received SIGTERM indicating exit request", false, 0, -1},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const Meaning meaning = read_meaning(row.text);
    CHECK(meaning.ended == row.ended);
    if (!row.ended) continue;
    CHECK(meaning.signal == row.signal);
    CHECK(meaning.exit_code == row.code);
  }
  CHECK(read_meaning("panic: runtime error: index out of range").panic);
  CHECK(read_meaning("Connection with replica 127.0.0.1:6380 lost.").lost);
  CHECK(read_meaning("User requested shutdown...").stopping);
}

TEST_CASE("every call that a message may stand for exists") {
  for (int error = 1; error < 134; ++error)
    for (int operation = 0; operation < 16; ++operation)
      for (const std::string_view call : calls_that_fail(error, static_cast<Operation>(operation))) {
        INFO(call);
        CHECK(kernel::find_syscall(call) != nullptr);
      }
}

namespace {

std::vector<Hint> hints_of(const Logs& failure, const Logs& normal, Templates& kinds, const std::vector<NodeName>& names = {{"n1", {}}}) {
  const Difference difference = compare(failure, normal, kinds);
  return find_hints(failure, normal, difference, names);
}

}  // namespace

TEST_CASE("hints of real logs: the failed call comes first") {
  struct Row {
    const char* system;
    int error;
    const char* words;
  };
  const Row rows[] = {
      {"redis", ENOSPC, "'Write error saving DB on disk"}, {"postgresql", ENOSPC, "could not write to file"},
      {"python", ENOSPC, "'cannot save record 2'"},        {"mosquitto", ENOSPC, "No space left on device"},
      {"syslog", EACCES, "cannot open /var/backups/db.tar"}, {"etcd", ENOSPC, "no space left"},
      {"journald-export", ENOSPC, "No space left on device"},
  };
  for (const Row& row : rows) {
    INFO(row.system);
    Templates kinds;
    const Logs normal = read_files({{log_file(std::string(row.system) + ".normal"), "n1"}}, kinds);
    const Logs failure = read_files({{log_file(std::string(row.system) + ".failure"), "n1"}}, kinds);
    const std::vector<Hint> hints = hints_of(failure, normal, kinds);
    std::string all;
    for (const Hint& hint : hints) all += fmt::format("{} {} {} {}\n", static_cast<int>(hint.kind), kernel::errno_name(hint.error), hint.weight, hint.words);
    INFO(all);
    bool found = false;
    for (const Hint& hint : hints) found = found || (hint.kind == Hint::Kind::call && hint.error == row.error && hint.weight > 0.4 && hint.words.find(row.words) != std::string::npos);
    CHECK(found);
    // Of a run without faults nothing of weight is said.
    Templates fresh;
    const Logs usual = read_files({{log_file(std::string(row.system) + ".normal"), "n1"}}, fresh);
    const Logs same = read_files({{log_file(std::string(row.system) + ".normal"), "n1"}}, fresh);
    for (const Hint& hint : hints_of(usual, same, fresh)) {
      INFO(hint.words);
      CHECK(hint.weight <= 0.2);
    }
  }
}

TEST_CASE("a panic at the log's end is the end of its process") {
  Templates kinds;
  const Logs normal = read_files({{log_file("prometheus.normal"), "n1"}}, kinds);
  const Logs failure = read_files({{log_file("prometheus.failure"), "n1"}}, kinds);
  const std::vector<Hint> hints = hints_of(failure, normal, kinds);
  REQUIRE(!hints.empty());
  CHECK(hints[0].kind == Hint::Kind::end);
  CHECK(hints[0].itself);
}

TEST_CASE("restarts, silence and gaps are seen in the log itself") {
  const auto at = [](int second, const char* text) { return fmt::format("2026-01-02 03:{:02}:{:02},000 INFO {}\n", second / 60, second % 60, text); };
  std::string usual = at(0, "server version 3 starting") + at(1, "opened the store");
  for (int i = 2; i < 30; ++i) usual += at(i, "heart beats");
  Templates kinds;
  const Logs normal = read_text(usual, {"n1.log", "n1"}, {}, kinds);
  SECTION("it begins again, and nothing says why") {
    std::string text = at(0, "server version 3 starting") + at(1, "opened the store") + at(2, "heart beats") + at(3, "heart beats") +
                       at(5, "server version 3 starting") + at(6, "opened the store") + at(7, "heart beats");
    const Logs failure = read_text(text, {"n1.log", "n1"}, {}, kinds);
    const std::vector<Hint> hints = hints_of(failure, normal, kinds);
    REQUIRE(!hints.empty());
    CHECK(hints[0].kind == Hint::Kind::end);
    CHECK(hints[0].signal == SIGKILL);
    CHECK(!hints[0].itself);
    CHECK(hints[0].until_ns - hints[0].ts_ns == 2'000'000'000);
  }
  SECTION("it stops in order") {
    const Logs failure = read_text(at(0, "server version 3 starting") + at(1, "opened the store") + at(2, "heart beats") + at(3, "received SIGTERM, shutting down") +
                                       at(5, "server version 3 starting") + at(6, "opened the store"), {"n1.log", "n1"}, {}, kinds);
    const std::vector<Hint> hints = hints_of(failure, normal, kinds);
    REQUIRE(!hints.empty());
    CHECK(hints[0].signal == SIGTERM);
    CHECK(hints[0].weight < 0.5);
  }
  SECTION("it ends itself") {
    const Logs failure = read_text(at(0, "server version 3 starting") + at(1, "opened the store") + at(2, "panic: index out of range") +
                                       at(5, "server version 3 starting") + at(6, "opened the store"), {"n1.log", "n1"}, {}, kinds);
    const std::vector<Hint> hints = hints_of(failure, normal, kinds);
    REQUIRE(!hints.empty());
    CHECK(hints[0].itself);
  }
  SECTION("it stands still") {
    std::string text = at(0, "server version 3 starting") + at(1, "opened the store") + at(2, "heart beats");
    for (int i = 14; i < 30; ++i) text += at(i, "heart beats");
    const Logs failure = read_text(text, {"n1.log", "n1"}, {}, kinds);
    const std::vector<Hint> hints = hints_of(failure, normal, kinds);
    REQUIRE(hints.size() == 1);
    CHECK(hints[0].kind == Hint::Kind::stop);
    CHECK(hints[0].until_ns - hints[0].ts_ns == 12'000'000'000);
  }
}

TEST_CASE("a peer that others miss is named by its address or its name") {
  Templates kinds;
  const Logs normal;
  const Logs failure = read_text("2026-01-02 03:04:05 WARN lost connection to 10.1.0.2:7000\n2026-01-02 03:04:09 WARN lost connection to 10.1.0.2:7000\n"
                                 "2026-01-02 03:04:07 WARN peer n3 is unreachable\n", {"n1.log", "n1"}, {}, kinds);
  const std::vector<Hint> hints = hints_of(failure, normal, kinds, {{"n1", {}}, {"n2", {"10.1.0.2"}}, {"n3", {}}});
  std::string peers;
  for (const Hint& hint : hints)
    if (hint.kind == Hint::Kind::silence) peers += hint.peer + " ";
  CHECK(peers == "n2 n3 ");
}

TEST_CASE("what a run shows of the failure's messages") {
  Templates kinds;
  Evidence evidence;
  evidence.normal = read_files({{log_file("redis.normal"), "n1"}}, kinds);
  evidence.failure = read_files({{log_file("redis.failure"), "n1"}}, kinds);
  evidence.difference = compare(evidence.failure, evidence.normal, kinds);
  Judge judge(evidence, kinds, {});
  CHECK(judge.shown({{log_file("redis.normal"), "n1"}}).empty());
  CHECK(judge.shown({{log_file("redis.failure"), "n2"}}).size() == evidence.difference.observed.size());
  CHECK(judge.shown({{"/nowhere/at/all.log", "n1"}}).empty());
}
