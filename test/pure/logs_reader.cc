#include "logs_support.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cstdlib>
#include <fstream>

#include "base/units.h"
#include "folder.h"
#include "logs/evidence.h"
#include "logs/line/lines.h"
#include "logs/quote.h"

using namespace rose;
using namespace rose::logs;
using namespace rose::logs::test;

TEST_CASE("real logs are read in their format") {
  struct Row {
    const char* name;
    const char* form;
    std::uint64_t lines, messages, timed;
  };
  const Row rows[] = {
      {"etcd.failure", "JSON, one object per line", 37, 37, 37},
      {"journald-export.failure", "the journal's export form", 90, 5, 5},
      {"journald-json.failure", "the journal as JSON", 5, 5, 5},
      {"journald-short.failure", "syslog (RFC 3164)", 7, 5, 5},
      {"klog.failure", "glog", 18, 17, 17},
      {"mosquitto.failure", "'time message'", 35, 35, 35},
      {"nats.failure", "'[number] time [level] message'", 39, 39, 39},
      {"nginx-access.failure", "a web server's access log", 8, 8, 8},
      {"nginx.failure", "'time [level] number: message'", 24, 24, 24},
      {"postgresql.failure", "'time [number] level: message'", 25, 25, 25},
      {"prometheus.failure", "key=value", 134, 7, 5},
      {"python.failure", "'time level thread logger: message'", 18, 7, 7},
      {"redis.failure", "'number:role time mark message'", 29, 29, 29},
      {"redis-replica.failure", "'number:role time mark message'", 33, 33, 33},
      {"supervisor.failure", "'time level message'", 18, 18, 18},
      {"syslog.failure", "syslog (RFC 3164)", 6, 6, 6},
      {"syslog-rfc5424.failure", "syslog (RFC 5424)", 6, 6, 6},
      {"zookeeper.failure", "'time [thread] - level [logger] - message'", 177, 148, 148},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    Templates kinds;
    const Logs logs = read_files({{log_file(row.name), "n1"}}, kinds);
    const Source& source = logs.sources[0];
    CHECK(source.form == row.form);
    CHECK(source.lines == row.lines);
    CHECK(source.messages == row.messages);
    CHECK(source.timed == row.timed);
    CHECK(source.problem == "");
    CHECK(words(source).find(row.form) != std::string::npos);
    std::uint64_t counted = 0;
    for (const std::uint64_t count : logs.nodes.at(0).counts) counted += count;
    CHECK(counted == row.messages);
  }
}

TEST_CASE("real messages are read with text, level and template") {
  struct Row {
    const char* name;
    const char* text;
    Level level;
    const char* kind;
  };
  const Row rows[] = {
      {"redis.failure", "Background saving error", Level::warning, "Background saving error"},
      {"postgresql.failure", "could not write to file \"pg_wal/xlogtemp.1520\": No space left on device", Level::fatal,
       ""},
      {"nats.failure",
       "Error trying to connect to route (attempt 1): dial tcp 127.0.0.1:6223: connect: connection refused",
       Level::error, "Error trying to connect to route (attempt <n>): dial tcp <addr>: connect: connection refused"},
      {"nginx.failure", "*7 no live upstreams while connecting to upstream", Level::error, ""},
      {"supervisor.failure", "exited: worker (terminated by SIGKILL; not expected)", Level::warning, ""},
      {"python.failure", "cannot save record 2\nTraceback (most recent call last):", Level::error, ""},
      {"journald-export.failure", "Traceback (most recent call last):\n  File \"store.py\", line 3, in save\nOSError",
       Level::error, ""},
      {"journald-short.failure", "cannot write /var/lib/store/data: No space left on device", Level::none,
       "cannot write <path>: No space left on device"},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    Templates kinds;
    const Logs logs = read_files({{log_file(row.name), "n1"}}, kinds);
    bool found = false;
    for (const Message& one : logs.nodes.at(0).messages) {
      if (logs.text(one).find(row.text) == std::string_view::npos) continue;
      found = true;
      CHECK(one.level == row.level);
      CHECK(one.ts_ns != kNoTime);
      if (*row.kind != '\0') CHECK(kinds.text(one.kind) == row.kind);
    }
    CHECK(found);
  }
}

TEST_CASE("hashicorp's JSON logs are read, and a member called time is not taken as the timestamp") {
  const Read one(
      "{\"@level\":\"warn\",\"@message\":\"failed to "
      "contact\",\"@module\":\"raft\",\"@timestamp\":\"2026-11-26T15:06:06.656359Z\",\"server-id\":\"eu1\",\"time\":"
      "400396095}\n"
      "{\"@level\":\"error\",\"@message\":\"failed to "
      "heartbeat\",\"@timestamp\":\"2026-11-26T15:06:07.000000Z\",\"error\":\"EOF\"}\n");
  REQUIRE(one.messages().size() == 2);
  CHECK(one.text(0) == "failed to contact server-id=eu1 time=400396095");
  CHECK(one.messages()[0].level == Level::warning);
  CHECK(one.messages()[1].level == Level::error);
  CHECK(one.messages()[1].ts_ns - one.messages()[0].ts_ns == 343'641'000);
}

TEST_CASE("a tool's timestamp before the program's own is stripped") {
  for (const std::string before : {"", "[nsqd] "}) {
    const Read one("2026-11-26T14:36:14.257290Z " + before +
                   "2026/11/26 14:36:14.257290 ERROR: sync failed\n"
                   "2026-11-26T14:36:15.257290Z " +
                   before + "2026/11/26 14:36:15.257290 INFO: 3 topics\n");
    REQUIRE(one.messages().size() == 2);
    CHECK(one.text(0) == "sync failed");
    CHECK(one.messages()[0].level == Level::error);
    CHECK(one.messages()[1].ts_ns - one.messages()[0].ts_ns == 1'000'000'000);
  }
  const Read json(
      "2026-11-26T14:36:14.257290Z {\"level\":\"error\",\"ts\":\"2026-11-26T14:36:14.257Z\",\"msg\":\"sync failed\"}\n"
      "2026-11-26T14:36:15.257290Z {\"level\":\"info\",\"ts\":\"2026-11-26T14:36:15.257Z\",\"msg\":\"up\"}\n");
  REQUIRE(json.messages().size() == 2);
  CHECK(json.text(0) == "sync failed");
  CHECK(json.messages()[0].level == Level::error);
}

TEST_CASE("a phrase in brackets that ends a line is the message and no thread") {
  for (const std::string line : {"2026-01-02 03:04:05 ERROR [connection to 10.0.0.2:7000 refused]",
                                 "2026-01-02 03:04:05 [ERROR] [connection to 10.0.0.2:7000 refused]",
                                 "[2026-01-02 03:04:05] [worker-1] [connection to 10.0.0.2:7000 refused]"}) {
    INFO(line);
    const Read one(line + "\n");
    REQUIRE(one.messages().size() == 1);
    CHECK(one.text(0).find("connection to 10.0.0.2:7000 refused") != std::string_view::npos);
  }
}

TEST_CASE("the name of an exception is no logger") {
  for (const std::string header : {"2026-01-02 03:04:05 ERROR ", "2026-01-02 03:04:05 ERROR [main] ",
                                   "2026-01-02 03:04:05,123 [main] ERROR a.b.Client: "}) {
    INFO(header);
    const Read one(header + "java.net.UnknownHostException: db2\n");
    REQUIRE(one.messages().size() == 1);
    CHECK(one.text(0) == "java.net.UnknownHostException: db2");
  }
}

TEST_CASE("a stack trace is one message, and the exception distinguishes its template") {
  const Read one(
      "2026-01-02 03:04:05,678 [main] ERROR o.x.Store - cannot save\n"
      "java.io.IOException: No space left on device\n"
      "\tat java.io.FileOutputStream.writeBytes(Native Method)\n"
      "Caused by: java.lang.Foo: bar\n"
      "\t... 3 more\n"
      "2026-01-02 03:04:06,000 [main] ERROR o.x.Store - cannot save\n"
      "java.io.EOFException\n"
      "2026-01-02 03:04:07,000 [io] INFO o.x.Store - saved\n");
  REQUIRE(one.messages().size() == 3);
  CHECK(one.text(0).find("\tat java.io") != std::string::npos);
  CHECK(one.messages()[0].kind != one.messages()[1].kind);
  CHECK(one.logs.streams.at(one.messages()[0].stream) == "main");
  CHECK(one.logs.streams.at(one.messages()[2].stream) == "io");
  CHECK(one.messages()[1].ts_ns - one.messages()[0].ts_ns == 322'000'000);
}

TEST_CASE("a Python traceback ends with its exception, and later output of others is separate") {
  const std::string failed =
      "2026-01-02 03:04:05,179 ERROR store: failed to load\nTraceback (most recent call last):\n  File \"s.py\", line "
      "3\nPermissionError: [Errno 13] Permission denied: '/data/dump'\n";
  const std::string served =
      "----------------------------------------\nException occurred during processing of request from ('10.0.0.4', "
      "42920)\nTraceback (most recent call last):\n  File \"h.py\", line 9\nBrokenPipeError: [Errno 32] Broken "
      "pipe\n----------------------------------------\n";
  Templates kinds;
  const Logs logs =
      read_text(failed + served + "2026-01-02 03:04:06,001 INFO store: goes on\n", {"n1.log", "n1"}, {}, kinds);
  const Logs alone = read_text(failed, {"n1.log", "n1"}, {}, kinds);
  const std::vector<Message>& messages = logs.nodes[0].messages;
  REQUIRE(messages.size() > 2);
  CHECK(messages[0].kind == alone.nodes[0].messages.at(0).kind);
  CHECK(logs.text(messages[0]).find("BrokenPipe") == std::string::npos);
  CHECK(quote(logs, 0, messages[0]).find("failed to load / PermissionError") != std::string::npos);
  // If an exception was raised while another one was handled, both belong to the same message.
  const Logs chained = read_text(
      "2026-01-02 03:04:05,179 ERROR store: failed to load\nTraceback (most recent call last):\n  File \"s.py\", line "
      "3\nKeyError: 'x'\n\n"
      "During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  "
      "File \"s.py\", line 5\nOSError: [Errno 28] No space left on device\n",
      {"n1.log", "n1"}, {}, kinds);
  REQUIRE(chained.nodes[0].messages.size() == 1);
  CHECK(quote(chained, 0, chained.nodes[0].messages[0]).find("failed to load / OSError") != std::string::npos);
}

TEST_CASE("OpenLDAP's hexadecimal seconds and nanoseconds are read") {
  Templates kinds;
  const Logs logs = read_text(
      "6b0877f8.06283fe5 0x7f17bb7fe6c0 conn=1000 fd=10 closed (connection lost)\n6b0877fc.0a864bc4 0x7f8e950ba6c0 "
      "mdb_add: txn_commit failed : No space left on device (28)\n",
      {"b.log", "b"}, {}, kinds);
  REQUIRE(logs.nodes[0].messages.size() == 2);
  CHECK(logs.sources[0].timed == 2);
  CHECK(logs.nodes[0].messages[0].ts_ns == 0x6b0877f8LL * 1'000'000'000 + 0x06283fe5);
  CHECK(logs.nodes[0].messages[1].ts_ns > logs.nodes[0].messages[0].ts_ns);
}

TEST_CASE("a container's JSON around a server's own lines is read") {
  const Read one(
      R"({"log":"2026-01-02 03:04:05,678 [main] ERROR o.x.Store - cannot save\n","stream":"stderr","time":"2026-01-02T03:04:05.679Z"})"
      "\n"
      R"({"log":"java.io.IOException: Broken pipe\n","stream":"stderr","time":"2026-01-02T03:04:05.679Z"})"
      "\n"
      R"({"log":"2026-01-02 03:04:06,678 [main] INFO o.x.Store - saved\n","stream":"stderr","time":"2026-01-02T03:04:06.679Z"})"
      "\n");
  REQUIRE(one.messages().size() == 2);
  CHECK(one.messages()[0].level == Level::error);
  CHECK(one.text(0).find("cannot save\njava.io.IOException: Broken pipe") == 0);
}

TEST_CASE("timestamps without zone, year or date are read") {
  const auto span = [](const char* text, const ReadOptions& options = {}) {
    const Read one(text, options);
    REQUIRE(one.messages().size() == 2);
    return one.messages()[1].ts_ns - one.messages()[0].ts_ns;
  };
  CHECK(span("2026-01-02T03:04:05Z a\n2026-01-02T05:04:05+02:00 b\n") == 0);
  CHECK(span("Dec 31 23:59:59 h p[1]: a\nJan  1 00:00:01 h p[1]: b\n") == 2 * kSecond);
  CHECK(span("23:59:59.500 INFO a\n00:00:00.250 INFO b\n") == kSecond * 3 / 4);
  CHECK(span("[   12.000000] a\n[   13.500000] b\n") == kSecond * 3 / 2);
  ReadOptions custom;
  custom.custom.push_back({"*.log", R"(^<(?P<time>[^>]*)> (?P<message>.*)$)", "%d.%m.%Y %H:%M:%S", std::nullopt});
  CHECK(pattern_problem(custom.custom[0].pattern) == "");
  CHECK(pattern_problem("(") != "");
  CHECK(pattern_problem(".*") == "has no group named message: (?P<message>...) is needed");
  CHECK(pattern_problem("(?P<message>" + std::string(1000, 'x') + ")") != "");
  CHECK(pattern_problem("()()()()()()()()()()()()()()()(?P<message>.*)") == "has more than 15 groups");
  CHECK(span("<02.01.2026 03:04:05> a\n<02.01.2026 03:05:05> b\n", custom) == 60 * kSecond);
}

TEST_CASE("a missing year is that of other times in the line, the file or the other files") {
  // the time 2024-03-11 10:00:00
  constexpr std::int64_t kMorning = 1'710'151'200 * kSecond;
  const Read wrapped(
      "Mar 11 10:00:00 n1 kvd[9]: 2024-03-11 10:00:00,123 - kv - INFO - ready\n"
      "Mar 11 10:00:01 n1 kvd[9]: 2024-03-11 10:00:01,123 - kv - INFO - ready\n");
  CHECK(wrapped.messages()[0].ts_ns == kMorning);
  const Read mixed(
      "I0311 10:00:00.000000    49 gc.cpp:95] freed a folder\n"
      "2024-03-11 10:00:01,000:49(0x7f):ZOO_INFO@log_env@726: connected\n"
      "I0311 10:00:02.000000    49 gc.cpp:95] freed a folder\n");
  CHECK(mixed.messages()[0].ts_ns == kMorning);
  CHECK(mixed.messages()[2].ts_ns == kMorning + 2 * kSecond);
  rose::test::Folder folder;
  std::ofstream(folder / "1.log") << "Mar 11 10:00:00 n1 kvd[9]: ready\n";
  std::ofstream(folder / "2.log") << "2024-03-11 10:00:00 INFO ready\n";
  Templates kinds;
  const Logs both = read_files({{folder / "1.log", "n1"}, {folder / "2.log", "n2"}}, kinds);
  CHECK(both.nodes[0].messages[0].ts_ns == kMorning);
  CHECK(words(both.sources[0]).find("it follows from the other files") != std::string::npos);
}

TEST_CASE("a log whose clock has another zone is moved, one of a node that ended early is not") {
  const auto log = [](int from_minute, int to_minute) {
    std::string text;
    for (int minute = from_minute; minute < to_minute; ++minute)
      text += fmt::format("2024-03-11 {:02}:{:02}:00 INFO answered a client\n", 6 + minute / 60, minute % 60);
    return text;
  };
  const auto shift_of_last = [](const std::vector<std::string>& texts) {
    rose::test::Folder folder;
    std::vector<Input> inputs;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      inputs.push_back({folder / fmt::format("{}.log", i), fmt::format("n{}", i)});
      std::ofstream(inputs.back().path) << texts[i];
    }
    Templates kinds;
    return read_files(inputs, kinds).sources.back().shifted_ns / (60 * kSecond);
  };
  // the log overlaps with the others
  CHECK(shift_of_last({log(0, 70), log(0, 70), log(60, 130)}) == -60);
  CHECK(shift_of_last({log(0, 70), log(0, 70), log(300, 370)}) == -300);  // without an overlap
  CHECK(shift_of_last({log(0, 70), log(0, 70), log(300, 330)}) == -300);  // without an overlap, and the log ends early
  CHECK(shift_of_last({log(0, 70), log(0, 70), log(0, 10)}) == 0);
  CHECK(shift_of_last({log(0, 70), log(0, 70), log(60, 70)}) == 0);
  CHECK(shift_of_last({log(0, 70), log(0, 70), log(60, 123)}) == 0);
}

TEST_CASE("files of one node are one log in order of time, compressed or not") {
  const rose::test::Folder folder;
  const std::string older = "2026-01-02 03:04:05 INFO one\n2026-01-02 03:04:06 INFO two\n";
  REQUIRE(write_file(folder / "server.log", "2026-01-02 03:04:07 INFO three\n"));
  const gzFile packed = ::gzopen((folder / "server.log.1.gz").c_str(), "wb");
  REQUIRE(::gzwrite(packed, older.data(), static_cast<unsigned>(older.size())) == static_cast<int>(older.size()));
  ::gzclose(packed);
  Templates kinds;
  const Logs logs = read_files({{folder / "server.log", "n1"}, {folder / "server.log.1.gz", "n1"}}, kinds);
  REQUIRE(logs.nodes.size() == 1);
  std::string all;
  for (const Message& one : logs.nodes[0].messages) all += std::string(logs.text(one)) + " ";
  CHECK(all == "one two three ");
  CHECK(logs.sources[1].packing == "gzip");
  CHECK(logs.sources[1].log == logs.sources[0].log);
  Templates none;
  const Input missing{folder / "missing.log", ""};
  const Result<Logs> gone = read_logs(std::span(&missing, 1), {}, none);
  REQUIRE(!gone);
  CHECK(gone.error().kind == ErrorKind::input);
  CHECK(gone.error().message.find("missing.log") != std::string::npos);
}

TEST_CASE("names of rotated files are reduced to the log's name") {
  CHECK(log_name("/var/log/server.log.2.gz") == "server.log");
  CHECK(log_name("app-2026-11-22.log") == "app.log");
  CHECK(log_name("server.log") == "server.log");
}

TEST_CASE("hostile logs are read safely") {
  SECTION("a line of 100 MB") {
    const Read one(std::string(100'000'000, 'x') + "\n2026-01-02 03:04:05 ERROR end\n");
    CHECK(one.source().cut == 1);
    CHECK(one.messages().size() == 2);
    CHECK(one.text(0).size() <= kLongestText);
  }
  SECTION("binary content") {
    std::string bytes;
    for (std::uint32_t i = 0, x = 1; i < 100'000; ++i) bytes += static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
    const Read one(bytes);
    CHECK(one.source().messages == 0);
    CHECK(one.source().problem.find("binary") != std::string::npos);
  }
  SECTION("a million templates") {
#ifdef __SANITIZE_ADDRESS__
    constexpr std::uint32_t kLines = 60'000;  // still more than are kept; in this build, each takes thirty times longer
#else
    constexpr std::uint32_t kLines = 1'000'000;
#endif
    std::string text;
    const auto letters = [](std::uint32_t n) {
      std::string word;
      for (int i = 0; i < 5; ++i, n /= 26) word += static_cast<char>('a' + n % 26);
      return word;
    };
    for (std::uint32_t i = 0; i < kLines; ++i) text += letters(i * 7919U) + " " + letters(i * 104729U) + "\n";
    const Read one(std::move(text));
    CHECK(one.source().messages == kLines);
    CHECK(one.kinds.size() <= Templates::kMost + 8);
    CHECK((one.kinds.overflow() > 0 || one.kinds.size() < Templates::kMost));
  }
  SECTION("no newline, control characters and terminal colours") {
    const Read one(
        "2026-01-02 03:04:05 \x1b[31mERROR\x1b[0m a\x01"
        "b");
    REQUIRE(one.messages().size() == 1);
    CHECK(one.messages()[0].level == Level::error);
    CHECK(one.text(0) == "a?b");
  }
  SECTION("an empty file") { CHECK(Read("").source().messages == 0); }
  SECTION("a truncated gzip file") {
    const std::string text = "2026-01-02 03:04:05 INFO one\n2026-01-02 03:04:06 INFO two\n";
    std::string packed(200, '\0');
    z_stream stream{};
    REQUIRE(::deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    REQUIRE(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
    packed.resize(stream.total_out - 12);
    ::deflateEnd(&stream);
    const Read one(packed);
    CHECK(one.source().problem == "the gzip data end in the middle");
    CHECK(one.source().packing == "gzip");
  }
}

TEST_CASE("a message that two logs of a node have at the same time is counted once") {
  rose::test::Folder folder;
  constexpr std::size_t kLines = 30'000;
  const std::vector<Input> both = {{folder / "server.log", "n1"}, {folder / "stderr.log", "n1"}};
  std::string lines;
  for (std::size_t i = 0; i < kLines; ++i) lines += "2026-01-02 03:00:00 INFO one tick\n";
  std::ofstream(both[0].path) << lines;
  std::ofstream(both[1].path) << lines.substr(0, lines.size() / 2) << "2026-01-02 03:00:05 INFO one tick\n";
  Templates kinds;
  const Logs logs = read_files(both, kinds);
  const NodeLog& node = logs.nodes.at(0);
  CHECK(node.counts.at(node.messages.at(0).kind) == kLines + 1);
  CHECK(node.messages.back().source == 1);
}

TEST_CASE("a final line without a timestamp does not continue an ordinary message") {
  const std::string up = "2026-11-22 18:24:21 INFO saved\n2026-11-22 18:24:22 INFO saved\n";
  const Read failed(up + "cannot create a watcher: too many open files\n");
  REQUIRE(failed.messages().size() == 3);
  CHECK(failed.text(2) == "cannot create a watcher: too many open files");
  CHECK(failed.messages()[2].ts_ns == failed.messages()[1].ts_ns);
  // the line is indented, so it belongs to the message
  CHECK(Read(up + "  and too many open files\n").messages().size() == 2);
  CHECK(Read(up + "and 17 more\n").messages().size() == 2);
  CHECK(Read(up + "2026-11-22 18:24:23 ERROR cannot save\ntoo many open files\n").messages().size() == 3);
}

TEST_CASE("a file that begins with its newest line is read from its end") {
  const auto line = [](int second, const char* text) {
    return fmt::format("2026-01-02 03:04:{:02} {}\n", second, text);
  };
  const Read one(line(9, "INFO stopped") + line(7, "ERROR cannot flush: Input/output error\n  at x.Y.z(Y.java:7)") +
                 line(7, "INFO flushing") + line(1, "INFO up"));
  REQUIRE(one.messages().size() == 4);
  CHECK(one.source().newest_first);
  CHECK(one.logs.jumps.empty());
  CHECK(one.text(0) == "up");
  CHECK(one.messages()[0].line == 5);
  CHECK(one.text(2) == "cannot flush: Input/output error\n  at x.Y.z(Y.java:7)");
  CHECK(one.text(3) == "stopped");
  CHECK(words(one.source()).find("it begins with the newest") != std::string::npos);
  // In one log, the clock was set back; in the other one, two threads write at the same time. Neither log is sorted
  // from new to old.
  CHECK_FALSE(Read(line(9, "a") + line(10, "b") + line(3, "c") + line(4, "d") + line(5, "e")).source().newest_first);
  CHECK_FALSE(Read(line(9, "a") + line(8, "b")).source().newest_first);
}

TEST_CASE("a web page's timestamp before the program's own may have no blank after it") {
  const Read one(
      "3/7/2026 10:32:39 PM2026-03-07 21:32:39,103 - store - WARNING - cannot ask\n"
      "3/7/2026 10:32:39 PM  before or while it asked\n"
      "3/7/2026 10:32:40 PM2026-03-07 21:32:40,103 - store - INFO - asked\n");
  CHECK(one.source().timed >= 2);
  CHECK(one.messages().back().ts_ns - one.messages()[0].ts_ns == 1'000'000'000);
  CHECK(one.text(0).find("2026") == std::string::npos);
}

TEST_CASE("one error line does not turn a program's timestamps into a tool's") {
  const Read one(
      "2026-11-22T18:24:21Z begin 1\n2026-11-22T18:24:22Z begin 2\n2026-11-22T18:24:23Z Error: connect failed\n"
      "2026-11-22T18:24:24Z begin 3\n");
  CHECK(one.messages().size() == 4);
  CHECK(one.source().timed == 4);
}

TEST_CASE("levels that are aligned to the right are read, and their blank continues no message") {
  // Verdaccio
  const Read aligned(
      " warn --- config file  - /srv/config.yaml\n info --- plugin loaded: htpasswd\n http --- 10.0.0.9 requested 'PUT "
      "/a'\n http --- 200, user: null\nerror--- unexpected error: ENOSPC: no space left on device, write\nError: "
      "ENOSPC: no space left on device, write\n    at write (fs.js:1)\n http --- 10.0.0.9 requested 'PUT /b'\n");
  REQUIRE(aligned.messages().size() == 7);
  CHECK(aligned.text(0) == "config file  - /srv/config.yaml");
  CHECK(aligned.messages()[0].level == Level::warning);
  CHECK(aligned.messages()[1].level == Level::info);
  CHECK(aligned.messages()[4].level == Level::error);
  CHECK(aligned.text(4) == "unexpected error: ENOSPC: no space left on device, write");
  CHECK(aligned.source().rest == 1);
}

TEST_CASE("without times, a few lines with levels do not make the other lines continuations") {
  const Read few(
      "listening on 7000\npeer 2 joined\nError: write failed\n    at write (fs.js:1)\npeer 3 joined\npeer 4 joined\n");
  CHECK(few.messages().size() == 5);
}

TEST_CASE("numbered frames of a native stack trace belong to the message before them") {
  const Read one(
      "2026.01.02 03:04:05.000001 [ 7 ] {} <Error> part: cannot remove /srv/x\n0. 0xbc3ed9c store::Part::remove()  in "
      "/usr/bin/store\n1. store::Data::clear(bool) @ 0x0000000009006e22\n#2 0x00007f1 in main () at main.cc:7\n"
      "2026.01.02 03:04:06.000001 [ 7 ] {} <Information> part: 3 parts are left\n");
  CHECK(one.messages().size() == 2);
}

TEST_CASE("java.util.logging's two lines are one message") {
  const Read one(
      "Nov 26, 2026 9:20:15 PM com.example.store.impl.Keeper\nINFO: opened the store\n"
      "Nov 26, 2026 9:20:16 PM com.example.store.impl.Keeper lambda$run$0\nSEVERE: cannot write\njava.io.IOException: "
      "No space left on device\n\tat com.example.A.b(A.java:3)\n"
      "Nov 26, 2026 9:20:17 PM com.example.store.impl.Keeper\nWARNING: slow\n");
  REQUIRE(one.messages().size() == 3);
  CHECK(one.text(0) == "opened the store");
  CHECK(one.text(1).starts_with("cannot write\njava.io.IOException: No space left on device"));
  CHECK(one.messages()[1].level == Level::error);
  CHECK(one.messages()[2].ts_ns - one.messages()[0].ts_ns == 2 * kSecond);
  CHECK(one.messages()[2].line == 7);
}

TEST_CASE("lines of several nodes in one file are assigned to the nodes that they name") {
  ReadOptions options;
  options.node_of = [](std::string_view host) {
    return std::string(host == "db-1" || host == "db-1/postgres" ? "n1" : host == "web-1" ? "n2" : "");
  };
  Templates kinds;
  const auto node = [](const Logs& logs, const std::string& name) -> const NodeLog& {
    for (const NodeLog& one : logs.nodes)
      if (one.node == name) return one;
    FAIL("no node " << name);
    return logs.nodes[0];
  };
  SECTION("docker compose") {
    const Logs logs = read_text(
        "db-1     | 2024-05-05 05:05:05.000 UTC [1] LOG:  ready\n"
        "web-1    | Traceback (most recent call last):\n"
        "db-1     | 2024-05-05 05:05:06.000 UTC [7] ERROR:  could not extend file\n"
        "web-1    |   File \"a.py\", line 3\n"
        "web-1    | ValueError: odd\n"
        "cache-1  | ready\n"
        "db-1 exited with code 137\n",
        {"all.log", ""}, options, kinds);
    const NodeLog& db = node(logs, "n1");
    REQUIRE(db.messages.size() == 3);
    CHECK(logs.text(db.messages[2]) == "exited with code 137");
    CHECK(db.messages[2].line == 7);
    const NodeLog& web = node(logs, "n2");
    REQUIRE(web.messages.size() == 1);
    CHECK(logs.text(web.messages[0]) == "Traceback (most recent call last):\n  File \"a.py\", line 3\nValueError: odd");
    REQUIRE(node(logs, "").messages.size() == 1);
    CHECK(logs.sources[0].unknown_hosts == std::vector<std::string>{"cache-1"});
    CHECK(words(logs.sources[1]).starts_with("all.log, n1 (db-1): 3 lines, 3 messages"));
  }
  SECTION("kubectl logs --prefix, syslog of several hosts, and JSON with a pod's name") {
    for (const char* text :
         {"[pod/db-1/postgres] 2024-05-05T05:05:05.1Z INFO up\n[pod/web-1] 2024-05-05T05:05:05.2Z INFO up\n",
          "Nov 22 18:24:21 db-1 kvd[964]: up\nNov 22 18:24:22 web-1 kvd[4]: up\n",
          "{\"ts\":1714900000.1,\"level\":\"info\",\"pod\":\"db-1\",\"msg\":\"up\"}\n{\"ts\":1714900000.2,\"level\":"
          "\"info\",\"pod\":\"web-1\",\"msg\":\"up\"}\n"}) {
      INFO(text);
      Templates fresh;
      const Logs logs = read_text(text, {"all.log", ""}, options, fresh);
      CHECK(node(logs, "n1").messages.size() == 1);
      CHECK(node(logs, "n2").messages.size() == 1);
      CHECK(logs.nodes.size() == 2);
    }
  }
  SECTION("control characters in host names are escaped") {
    const Logs logs = read_text("{\"ts\":1714900000.1,\"level\":\"info\",\"pod\":\"x\\ny\",\"msg\":\"up\"}\n",
                                {"all.log", ""}, options, kinds);
    CHECK(logs.sources[0].unknown_hosts == std::vector<std::string>{"x\\x0ay"});
  }
  SECTION("the file's given node takes precedence") {
    const Logs logs = read_text("Nov 22 18:24:21 db-1 kvd[964]: up\nNov 22 18:24:22 web-1 kvd[4]: up\n",
                                {"all.log", "n3"}, options, kinds);
    REQUIRE(logs.nodes.size() == 1);
    CHECK(logs.nodes[0].node == "n3");
    CHECK(logs.sources[0].lines == 2);
  }
}

TEST_CASE("a log that is one JSON value is not parsed if it is nested too deep or has too many members") {
  const auto repeat = [](std::string_view what, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += what;
    return all;
  };
  const std::string record = R"({"events":[{"message":"disk full"}]})";
  CHECK(Read(record).text(0).find("\"log\":\"disk full\"") != std::string::npos);
  std::string wide = "[{";
  for (int i = 0; i < 300'000; ++i) wide += fmt::format("{}\"k{}\":1", i == 0 ? "" : ",", i);
  for (const std::string& hostile :
       {R"({"events":[)" + std::string(3'000'000, '[') + std::string(3'000'000, ']') + "]}",
        "[" + repeat("{\"m\":", 2'000'000) + "1" + repeat("}", 2'000'000) + "]", wide + "}]"})
    CHECK(Read(hostile).logs.nodes.size() <= 1);
}
