// What other programs add around a program's lines is removed layer by layer. Every line must get its node and its
// time.
#include "logs_support.h"

using namespace rose;
using namespace rose::logs;
using namespace rose::logs::test;

namespace {

// A file that contains lines of n1 and n2. A host belongs to the node with whose name it begins.
struct Shared {
  Templates kinds;
  Logs logs;
  explicit Shared(std::string text) : logs(read_text(std::move(text), {"all.log", ""}, options(), kinds)) {}
  static ReadOptions options() {
    ReadOptions options;
    options.node_of = [](std::string_view host) {
      for (const std::string_view node : {"n1", "n2"})
        if (host.starts_with(node)) return std::string(node);
      return std::string();
    };
    return options;
  }
  [[nodiscard]] std::vector<std::string> texts_of(const std::string& node) const {
    std::vector<std::string> texts;
    for (const NodeLog& one : logs.nodes)
      if (one.node == node)
        for (const Message& message : one.messages) texts.emplace_back(logs.text(message));
    return texts;
  }
  [[nodiscard]] bool all_timed() const {
    for (const NodeLog& one : logs.nodes)
      for (const Message& message : one.messages)
        if (message.ts_ns == kNoTime) return false;
    return true;
  }
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a program's usual leading blanks are stripped, and deeper indentation continues a message") {
  const Read one(
      "Oct 24 10:00:00 db1 kvd[123]:  [shard 0] init - serving\n"
      "Oct 24 10:00:20 db1 kvd[123]:  [shard 1] tables - compacted\n"
      "Oct 24 10:00:21 db1 kvd[123]:  [shard 1] tables - failed\n"
      "Oct 24 10:00:21 db1 kvd[123]:      at Table.compact\n"
      "Oct 24 10:00:42 db1 kvd[123]:  [shard 1] tables - again\n");
  REQUIRE(one.messages().size() == 4);
  CHECK(one.text(2).find("Table.compact") != std::string::npos);
}

TEST_CASE("lines that were cut at a width are joined", "[logs]") {
  const Texts whole = {
      "2026-01-02 03:04:05 INFO compaction of 41 tables in /srv/kv/data is done, 812 MB were freed by it on this node",
      "2026-01-02 03:04:06 ERROR cannot append to the log: write /srv/kv/wal/0000000100000007.log: no space left on "
      "device",
      "2026-01-02 03:04:07 INFO ready",
      "2026-01-02 03:04:08 WARN replica 10.0.0.2:7000 is behind: dial tcp 10.0.0.2:7000: connect: connection refused"};
  std::string columns, words;
  for (const std::string& line : whole) {
    for (std::size_t at = 0; at < line.size(); at += 72) columns += line.substr(at, 72) + "\n";
    std::size_t end = line.size() > 90 ? line.rfind(' ', 90) : line.size();
    words += line.substr(0, end) + "\n" + (end < line.size() ? line.substr(end + 1) + "\n" : "");
  }
  for (const std::string& text : {columns, words}) {
    INFO(text);
    const Read one(text);
    REQUIRE(one.messages().size() == whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) CHECK(whole[i].ends_with(one.text(i)));
    CHECK(one.messages()[1].line == 3);
    CHECK(one.source().lines == static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')));
  }
  // This is one sentence that was cut into two lines. It occurs twice.
  const std::string sentence = "WARN replication: dial tcp 10.0.0.2:7000: connect: connection\nrefused\n";
  const Read twice("2026-01-02 03:04:05 " + sentence + "2026-01-02 03:04:09 " + sentence);
  REQUIRE(twice.messages().size() == 2);
  CHECK(twice.text(0).ends_with("connection refused"));
}

TEST_CASE("messages of several lines are not taken for lines that were cut", "[logs]") {
  const std::string trace =
      " ERROR the query for the report of the month failed on this server: java.io.IOException: x\n"
      "\tat org.x.Y.z(Y.java:7)\n";
  const Read frames("2026-01-02 03:04:05" + trace + "2026-01-02 03:04:06" + trace);
  CHECK(frames.text(0).find('\n') != std::string::npos);
  const std::string detail =
      " ERROR the query for the report of the month failed on this server, see below:\nCause: 7\n";
  const Read details("2026-01-02 03:04:05" + detail + "2026-01-02 03:04:06" + detail);
  CHECK(details.text(0).find('\n') != std::string::npos);
}

TEST_CASE("a frame around pasted lines is removed", "[logs]") {
  const Read one(
      "\u2502 2026-01-02 03:04:05 ERROR write /x.db: no space left on device   \u2502\n"
      "\u2502 2026-01-02 03:04:06 INFO ready                                 \u2502\n");
  REQUIRE(one.messages().size() == 2);
  CHECK(one.text(0) == "write /x.db: no space left on device");
}

TEST_CASE("a single object with a service's name before it is no header of a table", "[logs]") {
  const Read one(
      "web | {\"level\":\"error\",\"ts\":1710151200.12,\"msg\":\"dial tcp 10.0.0.2:80: connection refused\"}\n");
  REQUIRE(one.messages().size() == 1);
  CHECK(one.text(0) == "dial tcp 10.0.0.2:80: connection refused");
}

TEST_CASE("systemd's lines between a program's lines are separate messages") {
  const Read one(
      "Oct 15 10:32:55 kv1 kvd[811]: INFO listening on 10.9.0.11:9042\n"
      "Oct 15 10:36:55 kv1 kvd[811]: INFO compacted 3 tables\n"
      "Oct 15 10:39:30 kv1 systemd[1]: kvd.service: Main process exited, code=killed, status=9/KILL\n"
      "Oct 15 10:39:30 kv1 systemd[1]: kvd.service: Failed with result 'signal'.\n");
  REQUIRE(one.messages().size() >= 3);
  CHECK(one.text(2).find("code=killed") != std::string::npos);
  CHECK(one.text(1).find("code=killed") == std::string::npos);
}

TEST_CASE("lines without a form do not continue a message if most lines have none", "[logs]") {
  const Read one(
      "May  2 20:23:31 gate1 relay[811]: creating a handle in session 17\n"
      "May  2 20:23:34 gate1 relay[811]: [2461387960.387678] the handshake is done\n"
      "May  2 20:23:36 gate1 kernel: [2539500.417151] traps: relay[823] trap int3 ip:7ffa24d04261\n"
      "May  2 20:23:36 gate1 relay[811]: creating a handle in session 18\n"
      "May  2 20:23:38 gate1 relay[811]: creating pipes: Too many open files\n");
  REQUIRE(one.messages().size() >= 4);
  CHECK(one.text(one.messages().size() - 1) == "creating pipes: Too many open files");
}

TEST_CASE("the journal's byte lists are decoded as text") {
  const Read one(
      R"({"__REALTIME_TIMESTAMP": "1728988575418207", "_HOSTNAME": "n1", "MESSAGE": "serving"})"
      "\n"
      R"({"__REALTIME_TIMESTAMP": "1728988970226118", "_HOSTNAME": "n1", "MESSAGE": [27,91,51,49,109,98,97,100,27,91,48,109]})"
      "\n");
  REQUIRE(one.messages().size() == 2);
  CHECK(one.text(1) == "bad");
}

TEST_CASE("services that share a file are distinguished by the names at their lines' beginning") {
  const Texts own = {"raft: became leader", "wal: input/output error"};
  const auto check = [&](const char* text) {
    const Shared all(text);
    CHECK(all.texts_of("n1") == own);
    CHECK(all.texts_of("n2") == Texts{"raft: lost leader"});
    CHECK(all.all_timed());
  };
  SECTION("Compose with colours") {
    check(
        "\x1b[36mn1-1  | \x1b[0m2024-10-15T10:32:55.418Z INFO raft: became leader\n"
        "\x1b[36mn1-1  | \x1b[0m2024-10-15T10:33:26.418Z ERROR wal: input/output error\n"
        "\x1b[33mn2-1  | \x1b[0m2024-10-15T10:33:29.458Z WARN raft: lost leader\n");
  }
  SECTION("stern with pod and container") {
    check(
        "n1-0 kv 2024-10-15T10:32:55.418Z INFO raft: became leader\n"
        "n1-0 kv 2024-10-15T10:33:26.418Z ERROR wal: input/output error\n"
        "n2-0 kv 2024-10-15T10:33:29.458Z WARN raft: lost leader\n");
  }
  SECTION("a collector's JSON with the pod in a nested object") {
    check(
        R"({"@timestamp":"2024-10-15T10:32:55.47Z","kubernetes":{"pod_name":"n1-0"},"log":"INFO raft: became leader"})"
        "\n"
        R"({"@timestamp":"2024-10-15T10:33:26.47Z","kubernetes":{"pod_name":"n1-0"},"log":"ERROR wal: input/output error"})"
        "\n"
        R"({"@timestamp":"2024-10-15T10:33:29.47Z","kubernetes":{"pod_name":"n2-0"},"log":"WARN raft: lost leader"})"
        "\n");
  }
  SECTION("Cloud Logging with the pod as a resource label") {
    check(
        R"({"timestamp":"2024-10-15T10:32:55Z","resource":{"labels":{"pod_name":"n1-0"}},"textPayload":"INFO raft: became leader"})"
        "\n"
        R"({"timestamp":"2024-10-15T10:33:26Z","resource":{"labels":{"pod_name":"n1-0"}},"textPayload":"ERROR wal: input/output error"})"
        "\n"
        R"({"timestamp":"2024-10-15T10:33:29Z","resource":{"labels":{"pod_name":"n2-0"}},"textPayload":"WARN raft: lost leader"})"
        "\n");
  }
  SECTION("CSV with JSON labels") {
    check(
        "\"labels\",\"Time\",\"Line\"\n"
        "\"{\"\"pod\"\":\"\"n1-0\"\"}\",\"1728988575418\",\"INFO raft: became leader\"\n"
        "\"{\"\"pod\"\":\"\"n1-0\"\"}\",\"1728988606418\",\"ERROR wal: input/output error\"\n"
        "\"{\"\"pod\"\":\"\"n2-0\"\"}\",\"1728988609458\",\"WARN raft: lost leader\"\n");
  }
  SECTION("CSV with Kibana's dates and a host column") {
    check(
        "@timestamp,host.name,message\n"
        "\"Oct 15, 2024 @ 10:32:55.418\",n1,INFO raft: became leader\n"
        "\"Oct 15, 2024 @ 10:33:26.418\",n1,ERROR wal: input/output error\n"
        "\"Oct 15, 2024 @ 10:33:29.458\",n2,WARN raft: lost leader\n");
  }
  SECTION("a collector's JSON quoted in an issue") {
    check(
        "> {\"time\":\"2024-10-15T10:32:55Z\",\"labels\":{\"pod\":\"n1-0\"},\"line\":\"INFO raft: became leader\"}\n"
        "> {\"time\":\"2024-10-15T10:33:26Z\",\"labels\":{\"pod\":\"n1-0\"},\"line\":\"ERROR wal: input/output "
        "error\"}\n"
        "> {\"time\":\"2024-10-15T10:33:29Z\",\"labels\":{\"pod\":\"n2-0\"},\"line\":\"WARN raft: lost leader\"}\n");
  }
}

TEST_CASE("a multi-line message in a CSV field is one message") {
  const Read one(
      "time,message\n"
      "2024-10-15T10:32:55Z,\"cannot save\n"
      "java.io.IOException: Input/output error\"\n"
      "2024-10-15T10:32:56Z,\"saved\"\n");
  REQUIRE(one.messages().size() == 2);
  CHECK(one.text(0) == "cannot save\njava.io.IOException: Input/output error");
}

TEST_CASE("a tool's timestamp before each line does not split stack traces") {
  const Read one(
      "2024-10-15T10:39:26.233469406Z INFO  [main] 2024-10-15 10:39:26,233 Guard.java:600 - serving\n"
      "2024-10-15T10:39:30.233469406Z ERROR [log] 2024-10-15 10:39:30,233 Guard.java:617 - cannot persist\n"
      "2024-10-15T10:39:30.233471802Z java.io.IOException: Input/output error\n"
      "2024-10-15T10:39:30.233474309Z \tat java.base/sun.nio.ch.FileDispatcherImpl.force0(Native Method)\n");
  REQUIRE(one.messages().size() == 2);
  CHECK(one.text(1).find("force0") != std::string::npos);
}

TEST_CASE("a program's own timestamps are not taken for a tool's") {
  const Read one(
      "2024-10-15T10:39:26.233Z INFO serving\n"
      "2024-10-15T10:39:27.233Z ERROR cannot persist\n");
  REQUIRE(one.messages().size() == 2);
  CHECK(one.messages()[1].level == Level::error);
  CHECK(one.text(1) == "cannot persist");
}

TEST_CASE("a chained traceback of Python is one message") {
  const Read one(
      "[2024-10-08 14:48:43,982: INFO/MainProcess] ready\n"
      "[2024-10-08 14:50:56,836: WARNING/MainProcess] connection lost\n"
      "Traceback (most recent call last):\n"
      "  File \"conn.py\", line 417, in send\n"
      "ConnectionResetError: [Errno 104] Connection reset by peer\n"
      "\n"
      "During handling of the above exception, another exception occurred:\n"
      "\n"
      "Traceback (most recent call last):\n"
      "  File \"consumer.py\", line 352, in start\n"
      "OSError: Server closed the connection\n");
  CHECK(one.messages().size() == 2);
}

TEST_CASE("timestamps of old servers and of exports are read") {
  const auto timed = [](const char* text) {
    const Read one(text);
    return one.source().timed == one.source().messages;
  };
  CHECK(timed("731:M 14 Nov 06:13:07.275 * saved\n731:M 14 Nov 06:18:08.162 # Can't save\n"));
  CHECK(timed("[2310] 07 Mar 11:42:09.118 # up\n[2310] 07 Mar 11:42:10.118 # down\n"));
}

TEST_CASE("a timestamp between equal marks at the beginning of the line is read") {
  for (const char* text :
       {"{2026-12-02T22:41:54.080Z} kiosk is up\n{2026-12-02T22:41:57.383Z} kiosk is mute\n",
        "~~ 22:25:10 ~~ the season is in\n~~ 22:25:11 ~~ the season is out\n",
        "|22:35:04.084| bale 4 is tied\n|22:35:05.084| bale 5 is tied\n",
        "*1796251144.778* volume 5 is off\n*1796251145.778* volume 6 is off\n",
        "== 2026-12-02 22:41:54 == the shop is open\n== 2026-12-02 22:41:55 == the shop is shut\n"}) {
    CAPTURE(text);
    const Read one(text);
    REQUIRE(one.messages().size() == 2);
    CHECK(one.source().timed == 2);
    CHECK(one.messages()[1].ts_ns - one.messages()[0].ts_ns >= 1'000'000'000);
  }
  for (const char* text : {"{12} cannot load x\n", "*1* cannot load x\n", "{2026-12-02 22:41:54 cannot load x}\n",
                           "* 22:41:54 cannot load x\n"}) {
    CAPTURE(text);
    CHECK(Read(text).source().timed == 0);
  }
}

TEST_CASE("all lines without a timestamp after a journal's line continue its message") {
  Shared one(
      "Sep 05 15:17:29 n1 kvd[522]: ERR consensus failed err=\"open /srv/kv/839.ldb: too many open files\" stack=\"[\n"
      "runtime/debug.Stack(0xc015937c08)\n"
      "kv/consensus.receive(0xc000156380)\n"
      "panic(0x1994aa0)\n"
      "kv/store.get(0xc000c8bbc0)\n");
  REQUIRE(one.texts_of("n1").size() == 1);
  CHECK(one.texts_of("n1")[0].find("kv/store.get") != std::string::npos);
}

TEST_CASE("a node's name before each line, as its thread or in brackets is that of the writer") {
  const auto check = [](const std::string& text) {
    Shared one(text);
    REQUIRE(one.texts_of("n1").size() == 1);
    REQUIRE(one.texts_of("n2").size() == 1);
    CHECK(one.texts_of("n2")[0].find("n1 is gone") != std::string::npos);
    CHECK(one.all_timed());
  };
  check("[n1] [INFO] [05/31/2026 14:25:11.772] serving\n[n2] [WARN] [05/31/2026 14:25:12.772] n1 is gone\n");
  check("n1 - 2345:M 17 Nov 21:28:45.968 * serving\nn2 - 2346:M 17 Nov 21:28:46.968 # n1 is gone\n");
  check("/tmp/n1.log-INFO  2026-12-20 11:26:16,539 serving\n/tmp/n2.log:WARN  2026-12-20 11:26:17,539 n1 is gone\n");
  check(
      "[INFO ] 2026-11-27 07:36:58,954 [n1.app] kv - serving\n[WARN ] 2026-11-27 07:37:14,955 [n2.app] kv - n1 is "
      "gone\n");
  check(
      "[2026-10-24T04:36:40,525][INFO ][k.Checker] [n1] serving\n[2026-10-24T04:36:41,525][WARN ][k.Checker] [n2] n1 "
      "is gone\n");
}

TEST_CASE("a node's name in a few lines is not that of their writer") {
  const Shared one(
      "2026-10-24 04:36:40 INFO serving\n2026-10-24 04:36:41 WARN [n1] is gone\n2026-10-24 04:36:42 INFO again\n");
  CHECK(one.texts_of("n1").empty());
}

TEST_CASE("commands before pasted output are not log lines") {
  const Shared one(
      "$ grep -B1 failed /tmp/n[12].log\n"
      "/tmp/n1.log-INFO  2026-12-20 11:26:16,539 serving\n"
      "/tmp/n1.log:kvd: Assertion `left == 0' failed.\n"
      "--\n"
      "[root@n2 tmp]# tail /tmp/n2.log\n"
      "/tmp/n2.log-INFO  2026-12-20 11:26:17,539 serving\n");
  CHECK(one.texts_of("n1").size() == 2);
  CHECK(one.texts_of("n2").size() == 1);
}

TEST_CASE("a timestamp that a web page adds before the line's own is a layer") {
  const Read one(
      "Sat, Jan 28 2026 3:58:55 am | 2026-01-28 3:58:55 0 [Note] view {\n"
      "Sat, Jan 28 2026 3:58:55 am | 85ac4dd7-ae37,0\n"
      "Sat, Jan 28 2026 3:58:55 am | })\n"
      "Sat, Jan 28 2026 3:58:58 am | 2026-01-28 3:58:58 0 [Note] forgetting 85ac4dd7 (tcp://10.0.0.2:4567)\n");
  REQUIRE(one.messages().size() == 2);
  CHECK(one.text(1) == "forgetting 85ac4dd7 (tcp://10.0.0.2:4567)");
}

TEST_CASE("a file name before each line, as grep prints it, is a layer") {
  const Read one(
      "bundle/ns/manager-6504/current.log:2026-04-25T18:14:12.417+02:00 INFO serving 3 volumes\n"
      "bundle/ns/manager-6504/current.log:2026-04-25T18:14:13.417+02:00 ERROR cannot read: r/w timeout\n");
  REQUIRE(one.messages().size() == 2);
  CHECK(one.text(1) == "cannot read: r/w timeout");
  CHECK(one.source().timed == 2);
  const Read numbered(
      "current.log.1:118:2026-04-25 18:14:12 INFO serving\n"
      "current.log.1:119:2026-04-25 18:14:13 ERROR lost\n");
  REQUIRE(numbered.messages().size() == 2);
  CHECK(numbered.text(1) == "lost");
  CHECK(numbered.source().timed == 2);
}

TEST_CASE("the columns of CSV rows without a header are derived from their fields") {
  const Shared one(
      "\"Oct 9, 2026 @ 17:05:57.122\",INFO,\"received a new view\",\"n1\",\"store.CLUSTER\"\n"
      "\"Oct 9, 2026 @ 17:05:58.205\",WARN,\"n2 left the cluster, \"\"half\"\" of it\",\"n1\",\"store.CLUSTER\"\n"
      "\"Oct 9, 2026 @ 17:06:39.736\",INFO,\"received a new view\",\"n2\",\"store.CLUSTER\"\n");
  REQUIRE(one.texts_of("n1").size() == 2);
  CHECK(one.texts_of("n1")[1] == "n2 left the cluster, \"half\" of it");
  CHECK(one.texts_of("n2").size() == 1);
  CHECK(one.all_timed());
}

TEST_CASE("level and time in one bracket, between bars, and in other languages are read") {
  const auto check = [](const char* text, Level level, const char* expected) {
    CAPTURE(text);
    const Read one(text);
    REQUIRE(one.messages().size() == 1);
    CHECK(one.source().timed == 1);
    CHECK(one.messages()[0].level == level);
    CHECK(one.text(0) == expected);
  };
  check("[E 2026-04-23 08:11:02] cannot load x\n", Level::error, "cannot load x");
  check("[W 260423 08:11:02 web:2064] 404 GET /x\n", Level::warning, "404 GET /x");
  check("EROR[07-29|16:15:56] cannot load x\n", Level::error, "cannot load x");
  check("DBUG[07-29|16:15:56] loading x\n", Level::debug, "loading x");
  check("2026-01-02 16:06:26.003123 W | store: cannot load x\n", Level::warning, "store: cannot load x");
  check("26-10-5 09:36:41.6|Fatal|ConsoleApp|cannot load x\n", Level::fatal, "cannot load x");
  check("2026-10-05 09:36:41.6000|ERROR|App.Store|cannot load x|y z\n", Level::error, "cannot load x|y z");
  check("2026-01-02 16:06:26.003 | WARNING  |   271 | app.api:check:549 | cannot load x\n", Level::warning,
        "cannot load x");
  check("Store 2026-01-02 16:06:26.003 WARNING: cannot load x\n", Level::warning, "cannot load x");
  check("[Nest] 18  - 01/02/2026, 4:06:26 PM     LOG [Api:Store] loading x\n", Level::info, "loading x");
  check("[Nest] 18  - 01/02/2026, 4:06:26 PM   ERROR [Api:Store] cannot load x\n", Level::error, "cannot load x");
  check("janv. 07 11:34:48 n1 kvd[1]: cannot load x\n", Level::none, "cannot load x");
  check("févr. 07 11:34:48 n1 kvd[1]: cannot load x\n", Level::none, "cannot load x");
  check("Okt 07 11:34:48 n1 kvd[1]: cannot load x\n", Level::none, "cannot load x");
  check("[0511/163509.125:ERROR:store.cc(88)] cannot load x\n", Level::error, "cannot load x");
  check("[42:43:0511/163509.125120:WARNING:store.cc(88)] cannot load x\n", Level::warning, "cannot load x");
  check("05/11-16:35.09.125 ERROR cannot load x\n", Level::error, "cannot load x");
  check("05/11-16:35:09.125120 ERROR cannot load x\n", Level::error, "cannot load x");
  check("2026-01-02 16:06:26.003 SCHWERWIEGEND: cannot load x\n", Level::error, "cannot load x");
  check("2026-01-02 16:06:26.003 Avertissement: cannot load x\n", Level::warning, "cannot load x");
  check("2026-01-02 16:06:26.003 \xe8\xad\xa6\xe5\x91\x8a: cannot load x\n", Level::warning, "cannot load x");
  check("ago 07 11:34:48 n1 kvd[1]: cannot load x\n", Level::none, "cannot load x");
}

TEST_CASE("numeric levels are converted by the scale of their format", "[logs]") {
  const auto check = [](const char* text, Level level, const char* expected) {
    CAPTURE(text);
    const Read one(text);
    REQUIRE(one.messages().size() == 1);
    CHECK(one.source().timed == 1);
    CHECK(one.messages()[0].level == level);
    CHECK(one.text(0) == expected);
  };
  check(R"({"level":50,"time":"2026-01-02T03:04:05Z","msg":"no disk"})"
        "\n",
        Level::error, "no disk");  // pino
  check(R"({"level":30,"time":"2026-01-02T03:04:05Z","msg":"no disk"})"
        "\n",
        Level::info, "no disk");
  check(R"({"message":"no disk","level":400,"datetime":"2026-01-02T03:04:05.000000+00:00"})"
        "\n",
        Level::error,
        "no disk");  // Monolog
  check(R"({"message":"no disk","level":100,"datetime":"2026-01-02T03:04:05.000000+00:00"})"
        "\n",
        Level::debug, "no disk");
  check(R"({"level":3,"time":"2026-01-02T03:04:05+00:00","message":"no disk"})"
        "\n",
        Level::none, "no disk");
  check(R"({"version":"1.1","host":"n1","short_message":"no disk","timestamp":1767323045.5,"level":3})"
        "\n",
        Level::error, "no disk");  // GELF
  check(R"({"host":"n1","short_message":"no disk","full_message":"no disk at x","timestamp":1767323045.5,"level":6})"
        "\n",
        Level::info, "no disk at x");
}
