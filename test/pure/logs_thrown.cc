// Reads stack traces in the formats of the JVM, logback, log4j and java.util.logging, and traces that ZooKeeper, Kafka
// and HDFS wrote.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "logs/thrown.h"
#include "logs_support.h"

using namespace rose::logs;
using namespace rose::logs::test;

namespace {

StackTrace only(std::string_view text) {
  std::vector<StackTrace> traces = read_traces(text);
  REQUIRE(traces.size() == 1);
  return std::move(traces[0]);
}

std::string at(const Frame& frame) {
  return fmt::format("{}.{} {}:{}", frame.class_name, frame.method, frame.file, frame.line);
}

// A stack trace of an exception that was wrapped within a lambda, with a suppressed exception. `module` is put before
// the JDK's frames, `data` after every frame, and `more` after the number of omitted frames.
std::string printed(const std::string& module, const std::string& data, const std::string& more) {
  std::string text =
      "java.lang.IllegalStateException: load /nowhere/block\n"
      "\tat org.x.Store.lambda$load$0(Store.java:16)@\n"
      "\tat org.x.Store$1.accept(Store.java:18)@\n"
      "\tat %java.lang.Iterable.forEach(Iterable.java:75)@\n"
      "\tat org.x.Store.load(Store.java:18)@\n"
      "\tat org.x.Store.main(Store.java:21)@\n"
      "\tSuppressed: java.io.IOException: cannot close\n"
      "for a reason\n"
      "\t\tat org.x.Store$Reader.close(Store.java:11)@\n"
      "\t\t... 4 more\n"
      "\tCaused by: java.io.IOException: nor that\n"
      "\t\tat org.x.Store$Reader.that(Store.java:12)@\n"
      "Caused by: java.io.FileNotFoundException: /nowhere/block (No such file or directory)\n"
      "\tat %java.io.FileInputStream.open0(Native Method)@\n"
      "\tat %java.io.FileInputStream.<init>(FileInputStream.java:157)@\n"
      "\tat org.x.Store$Reader.read(Store.java:9)@\n"
      "\tat org.x.Store.lambda$load$0(Store.java:15)@\n"
      "\t... 4 more";
  for (std::size_t i = 0; (i = text.find_first_of("@%", i)) != std::string::npos;) {
    const std::string& by = text[i] == '@' ? data : module;
    text.replace(i, 1, by);
    i += by.size();
  }
  return text.replace(text.rfind("4 more"), 6, "4 " + more);
}

void is_that(const StackTrace& trace) {
  REQUIRE(trace.size() == 2);
  CHECK(trace[0].class_name == "java.lang.IllegalStateException");
  CHECK(trace[0].message == "load /nowhere/block");
  REQUIRE(trace[0].frames.size() == 5);
  CHECK(at(trace[0].frames[1]) == "org.x.Store$1.accept Store.java:18");
  CHECK(at(trace[0].frames[2]) == "java.lang.Iterable.forEach Iterable.java:75");
  const Thrown& root = trace[1];
  CHECK(root.class_name == "java.io.FileNotFoundException");
  CHECK(root.message == "/nowhere/block (No such file or directory)");
  REQUIRE(root.frames.size() == 8);
  CHECK(at(root.frames[0]) == "java.io.FileInputStream.open0 :0");
  CHECK(at(root.frames[1]) == "java.io.FileInputStream.<init> FileInputStream.java:157");
  CHECK(at(root.frames[2]) == "org.x.Store$Reader.read Store.java:9");
  CHECK(root.common == 4);  // the lambda caught it on another line, so that frame is not common
}

}  // namespace

TEST_CASE("the forms of a stack trace are read", "[logs]") {
  SECTION("printed by the JVM") { is_that(only(printed("java.base/", "", "more"))); }
  SECTION("an uncaught exception") { is_that(only("Exception in thread \"main thread\" " + printed("", "", "more"))); }
  SECTION("with class loaders and module versions") { is_that(only(printed("app//java.base@17.0.15/", "", "more"))); }
  SECTION("logback with packaging data") {
    is_that(only("cannot load\n" + printed("java.base/", " ~[x-1.0.jar:1.0]", "common frames omitted")));
  }
  SECTION("log4j 2") { is_that(only("cannot load\n" + printed("", " [classes/:?]", "more"))); }
  SECTION("after the message on the same line") { is_that(only("cannot load block 7: " + printed("", "", "more"))); }
  SECTION("with Windows line ends and other indentation") {
    std::string text = printed("", "", "more");
    for (std::size_t i = 0; (i = text.find('\n', i)) != std::string::npos; i += 2) text.insert(i, "\r");
    for (std::size_t i = 0; (i = text.find('\t', i)) != std::string::npos;) text.replace(i, 1, "    ");
    is_that(only(text));
  }
}

TEST_CASE("a trace with the root cause first is read, as logback's and log4j's rEx print it", "[logs]") {
  const StackTrace trace = only(
      "cannot load\n"
      "java.io.FileNotFoundException: /nowhere/block (No such file or directory)\n"
      "\tat java.io.FileInputStream.open0(Native Method) ~[?:?]\n"
      "\tat org.x.Store$Reader.read(Store.java:9) ~[out/:?]\n"
      "\t... 5 more\n"
      "Wrapped by: java.lang.IllegalStateException: load /nowhere/block\n"
      "\tat org.x.Store.lambda$load$0(Store.java:16) ~[out/:?]\n"
      "\tat org.x.Store.main(Store.java:21) [out/:?]\n");
  REQUIRE(trace.size() == 2);
  CHECK(trace[0].class_name == "java.lang.IllegalStateException");
  CHECK(trace[1].class_name == "java.io.FileNotFoundException");
  CHECK(trace[1].common == 0);
}

TEST_CASE("a cause without frames of its own shares its wrapper's", "[logs]") {
  const StackTrace trace = only(
      "Exception in thread \"main\" java.lang.reflect.InvocationTargetException\n"
      "\tat java.base/java.lang.reflect.Method.invoke(Method.java:569)\n"
      "\tat org.x.Store.main(Store.java:27)\n"
      "Caused by: java.lang.Exception: java.util.concurrent.TimeoutException\n"
      "\tat org.x.Store.load2(Store.java:30)\n"
      "\t... 2 more\n"
      "Caused by: java.util.concurrent.TimeoutException\n"
      "\t... 3 more\n");
  REQUIRE(trace.size() == 3);
  CHECK(trace[0].message.empty());
  CHECK(trace[1].frames.size() == 3);
  CHECK(trace[1].common == 2);
  CHECK(trace[2].class_name == "java.util.concurrent.TimeoutException");
  CHECK(trace[2].common == 3);
}

TEST_CASE("JVM-generated classes and methods are recognised", "[logs]") {
  Frame frame;
  for (const char* line : {"at org.x.Y$$Lambda$14/0x0000000840066440.run(Unknown Source)",
                           "\tat app//org.x.Y$$Lambda/0x00007f0.run(Unknown Source)",
                           "at com.sun.proxy.$Proxy166.addBlock(Unknown Source)",
                           "at jdk.internal.reflect.GeneratedMethodAccessor12.invoke(Unknown Source)",
                           "at org.x.Y$$FastClassBySpringCGLIB$$e7645040.invoke(<generated>)"}) {
    INFO(line);
    REQUIRE(read_frame(line, frame));
    CHECK(frame.generated);
  }
  REQUIRE(read_frame("at org.x.Y$$Lambda$14/0x0000000840066440.run(Unknown Source)", frame));
  CHECK(frame.class_name == "org.x.Y$$Lambda$14");
  REQUIRE(read_frame("    at kafka.cluster.Partition$$anonfun$10.apply(Partition.scala:486)", frame));
  CHECK(at(frame) == "kafka.cluster.Partition$$anonfun$10.apply Partition.scala:486");
  CHECK(!frame.generated);
  REQUIRE(
      read_frame("at "
                 "org.apache.hadoop.hdfs.protocol.proto.ClientNamenodeProtocolProtos$2.callBlockingMethod("
                 "ClientNamenodeProtocolProtos.java)",
                 frame));
  CHECK(frame.line == 0);
  REQUIRE(read_frame("at org.x.Fo\xc3\xb6.<clinit>(Fo\xc3\xb6.java:3)", frame));
  CHECK(frame.method == "<clinit>");
}

TEST_CASE("lines that are no Java frames are rejected", "[logs]") {
  Frame frame;
  for (const char* line :
       {"at System.IO.File.Open(String path) in C:\\x.cs:line 3", "    at Object.<anonymous> (/srv/x.js:10:5)",
        "at noon (12:00)", "at (x.java:1)", "at x(y.java:1)", "at a.b(c.java:99999999)", "at a.(b.java:1)", "at a.b(",
        "at", "at a b.c(d.java:1)", "main.main()", "at .x.y(z.java:1)"}) {
    INFO(line);
    CHECK(!read_frame(line, frame));
  }
  CHECK(read_traces("we met\n\tat org.x.Y.z(Y.java:1)").empty());  // the text names no exception
  CHECK(read_traces("").empty());
}

TEST_CASE("exceptions of real systems are read", "[logs]") {
  SECTION("ZooKeeper") {
    Templates kinds;
    const Logs logs = read_files({{log_file("zookeeper.failure"), "n1"}}, kinds);
    std::vector<StackTrace> all;
    for (const Message& message : logs.nodes[0].messages)
      for (StackTrace& trace : read_traces(logs.text(message))) all.push_back(std::move(trace));
    REQUIRE(all.size() >= 4);
    CHECK(all[0].back().class_name == "java.io.EOFException");
    CHECK(at(all[0].back().frames[1]) == "org.apache.jute.BinaryInputArchive.readInt BinaryInputArchive.java:96");
    CHECK(kind_of(all[0].back().class_name) == ThrownKind::network);
    CHECK(at(all[1].back().frames[1]) ==
          "org.apache.zookeeper.server.quorum.QuorumCnxManager$RecvWorker.run QuorumCnxManager.java:1390");
    CHECK(kind_of(all[2].back().class_name) == ThrownKind::stopping);
  }
  SECTION("Kafka") {
    const StackTrace trace = only(
        "[Replica Manager on Broker 0]: Halting due to unrecoverable I/O error while handling produce request:  "
        "(kafka.server.ReplicaManager)\n"
        "kafka.common.KafkaStorageException: I/O exception in append to log '__consumer_offsets-11'\n"
        "        at kafka.log.Log.append(Log.scala:585)\n"
        "        at kafka.cluster.Partition$$anonfun$10.apply(Partition.scala:486)\n"
        "        at kafka.utils.CoreUtils$.inLock(CoreUtils.scala:213)\n"
        "        at java.lang.Thread.run(Thread.java:748)\n"
        "Caused by: java.io.IOException: No space left on device\n"
        "        at sun.nio.ch.FileDispatcherImpl.write0(Native Method)\n"
        "        at org.apache.kafka.common.record.MemoryRecords.writeFullyTo(MemoryRecords.java:95)\n"
        "        at kafka.log.Log.append(Log.scala:581)\n"
        "        ... 3 more\n");
    REQUIRE(trace.size() == 2);
    CHECK(trace[1].message == "No space left on device");
    CHECK(trace[1].common == 3);
    CHECK(kind_of(trace[0].class_name) == ThrownKind::outside);
  }
  SECTION("HDFS") {
    const StackTrace trace = only(
        "DataStreamer Exception\n"
        "org.apache.hadoop.ipc.RemoteException(java.io.IOException): File /user/root/input/yarn-site.xml._COPYING_ "
        "could only be replicated to 0 nodes\n"
        "\tat "
        "org.apache.hadoop.hdfs.server.blockmanagement.BlockManager.chooseTarget4NewBlock(BlockManager.java:1814)\n"
        "\tat org.apache.hadoop.ipc.Server$RpcCall.run(Server.java:817)\n"
        "\n"
        "\tat org.apache.hadoop.ipc.Client.getRpcResponse(Client.java:1489)\n");
    REQUIRE(trace.size() == 2);
    CHECK(trace[0].class_name == "org.apache.hadoop.ipc.RemoteException");
    CHECK(trace[0].message.starts_with("File /user/root"));
    CHECK(!trace[0].elsewhere);
    REQUIRE(trace[0].frames.size() == 1);
    CHECK(trace[0].frames[0].class_name == "org.apache.hadoop.ipc.Client");
    // This is the exception that the name node threw. Its frames are those of the name node.
    CHECK(trace[1].elsewhere);
    CHECK(trace[1].class_name == "java.io.IOException");
    CHECK(trace[1].message == trace[0].message);
    REQUIRE(trace[1].frames.size() == 2);
    CHECK(trace[1].frames[0].method == "chooseTarget4NewBlock");
  }
  SECTION("HDFS of 2012, without empty lines, as the cause of another exception") {
    const StackTrace trace = only(
        "java.io.IOException: cannot close the file\n"
        "\tat org.apache.hadoop.hdfs.DFSOutputStream.close(DFSOutputStream.java:1600)\n"
        "Caused by: org.apache.hadoop.ipc.RemoteException: "
        "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException: No lease on /a\n"
        "\tat org.apache.hadoop.hdfs.server.namenode.FSNamesystem.checkLease(FSNamesystem.java:1600)\n"
        "\tat org.apache.hadoop.ipc.Server$Handler.run(Server.java:1434)\n"
        "\tat org.apache.hadoop.ipc.Client.call(Client.java:1107)\n"
        "\tat org.apache.hadoop.hdfs.DFSOutputStream.close(DFSOutputStream.java:1600)\n");
    REQUIRE(trace.size() == 3);
    CHECK(trace[1].message == "No lease on /a");
    CHECK(trace[1].frames.size() == 2);
    CHECK(trace[2].elsewhere);
    CHECK(trace[2].class_name == "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException");
    CHECK(trace[2].frames.size() == 2);
  }
  SECTION("a remote exception without a remote stack trace") {
    const StackTrace trace = only(
        "org.apache.hadoop.ipc.RemoteException(java.io.IOException): no\n"
        "\tat org.apache.hadoop.ipc.Client.call(Client.java:1427)\n");
    REQUIRE(trace.size() == 1);
    CHECK(trace[0].frames.size() == 1);
  }
}

TEST_CASE("several traces per message are read, up to limits for traces, frames and causes", "[logs]") {
  std::string text;
  for (int i = 0; i < 9; ++i) text += fmt::format("java.io.IOException: {}\n\tat org.x.Y.z(Y.java:{})\n", i, i + 1);
  const std::vector<StackTrace> traces = read_traces(text);
  REQUIRE(traces.size() == kMostTraces);
  CHECK(traces[3].back().frames[0].line == 4);
  std::string deep = "java.lang.StackOverflowError\n";
  for (int i = 0; i < 2000; ++i) deep += "\tat org.x.Y.z(Y.java:7)\n";
  CHECK(only(deep).back().frames.size() == kMostFrames);
  std::string causes = "java.io.IOException: 0\n\tat org.x.Y.z(Y.java:7)\n";
  for (int i = 1; i < 100; ++i)
    causes += fmt::format("Caused by: java.io.IOException: {}\n\tat org.x.Y.z(Y.java:7)\n", i);
  CHECK(only(causes).size() == kMostCauses);
}
