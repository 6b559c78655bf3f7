#include <catch2/catch.hpp>

#include "jvm/names.h"
#include "jvm/node.h"

using namespace rose::jvm;

namespace {

bool fits(std::string_view pattern, std::string_view klass, std::string_view name, std::string_view descriptor = "()V",
          std::uint32_t flags = 0, std::string_view source = "X.java") {
  const NamePattern one(pattern);
  const bool found = one.matches({klass, name, descriptor, source, flags});
  // may_be_in() is a fast check before the full one, so it must never exclude a class that the full check accepts.
  if (found) CHECK(one.may_be_in(klass));
  return found;
}

}  // namespace

TEST_CASE("method patterns match names as written in Java") {
  struct Row {
    const char *pattern, *klass, *name, *descriptor;
    bool fits;
  };
  const Row rows[] = {
      {"org.x.Learner.sync", "org.x.Learner", "sync", "()V", true},
      {"Learner.sync", "org.x.Learner", "sync", "(J)V", true},
      {"x.Learner.sync", "org.x.Learner", "sync", "()V", true},
      {"earner.sync", "org.x.Learner", "sync", "()V", false},
      {"Learner.sync", "org.x.Learner", "syncWithLeader", "()V", false},
      {"Learner.sync", "org.x.Learner$Sub", "sync", "()V", false},
      {"Learner.Sub.sync", "org.x.Learner$Sub", "sync", "()V", true},
      {"Learner$Sub.sync", "org.x.Learner$Sub", "sync", "()V", true},
      {"org.x.Learner.*", "org.x.Learner", "sync", "()V", true},
      {"org.x.*", "org.x.Learner$Sub", "sync", "()V", true},
      {"Learner.s?nc", "org.x.Learner", "sync", "()V", true},
      {"*Snap*.save*", "org.x.FileSnapLog", "saveAll", "()V", true},
      {"*Snap*.save*", "org.x.FileLog", "saveAll", "()V", false},
      // The pattern "Node.*" is meant for a class of the program, not for inner classes of the JDK's maps.
      {"Node.*", "java.util.HashMap$Node", "getKey", "()V", false},
      {"*Node*", "java.util.HashMap$Node", "getKey", "()V", false},
      {"Node.*", "Node", "run", "()V", true},
      {"java.util.HashMap.*", "java.util.HashMap$Node", "getKey", "()V", true},
      {"HashMap.put", "java.util.HashMap", "put", "()V", true},
      {"Learner.sync(long,List)", "org.x.Learner", "sync", "(JLjava/util/List;)V", true},
      {"Learner.sync(long, java.util.List<String> names)", "org.x.Learner", "sync", "(JLjava/util/List;)V", true},
      {"Learner.sync(long)", "org.x.Learner", "sync", "(JLjava/util/List;)V", false},
      {"Learner.sync()", "org.x.Learner", "sync", "(J)V", false},
      {"Learner.sync(byte[], int...)", "org.x.Learner", "sync", "([B[I)V", true},
      {"Learner.Learner", "org.x.Learner", "<init>", "()V", true},
      {"Learner.<init>", "org.x.Learner", "<init>", "()V", true},
      {"Learner.<clinit>", "org.x.Learner", "<clinit>", "()V", true},
      {"Learner.lambda$run$0", "org.x.Learner", "lambda$run$0", "()V", true},
      {"Main.m", "Main", "m", "()V", true},
      // Kotlin: functions of a file, and of companion objects. Scala: functions of objects.
      {"FileKt.read", "org.x.FileKt", "read", "()V", true},
      {"Log.Companion.open", "org.x.Log$Companion", "open", "()V", true},
      {"kafka.log.Log.append", "kafka.log.Log$", "append", "()V", true},
      // No class has such a name, but a hostile process may report one.
      {".m", ".", "m", "()V", true},
      // A name without a class is that of a native function.
      {"sync", "org.x.Learner", "sync", "()V", false},
      {"s*", "org.x.Learner", "sync", "()V", false},
      {"Lear*", "org.x.Learner", "sync", "()V", true},
  };
  for (const Row& row : rows) {
    INFO(row.pattern << " and " << row.klass << "." << row.name << row.descriptor);
    CHECK(fits(row.pattern, row.klass, row.name, row.descriptor) == row.fits);
  }
}

TEST_CASE("a pattern prefers a method to its bridge or forwarder") {
  CHECK_FALSE(fits("A.compareTo", "x.A", "compareTo", "(Ljava/lang/Object;)I", kBridge | kSynthetic));
  CHECK(fits("A.compareTo(Object)", "x.A", "compareTo", "(Ljava/lang/Object;)I", kBridge | kSynthetic));
  CHECK_FALSE(fits("Log.append", "kafka.Log", "append", "()V", kStatic, "Log.scala"));
  CHECK(fits("Log.append", "x.Log", "append", "()V", kStatic, "Log.java"));
}

TEST_CASE("names of Java methods are recognised") {
  for (const char* name : {"a.b.C.m", "C.m", "Foo$Bar.<init>(int)", "C.<clinit>", "org.x.*", "C.lambda$m$0",
                           "a.B.m(long,List)", "C.m throws IOException", "a.C.m(int) throws java.io.IOException"}) {
    INFO(name);
    CHECK(looks_like_java(name));
  }
  for (const char* name : {"main", "Raft::apply", "(*raft).step", "", ".", "a..b", "a.b.", "a.b<int>", "operator()",
                           "a.m(int", "main throws IOException", "C.m throws ", "C.m throws a b"}) {
    INFO(name);
    CHECK_FALSE(looks_like_java(name));
  }
}

TEST_CASE("descriptors are printed as in source code") {
  CHECK(parameters_of("(JLjava/util/List;[B)V") == "(long,List,byte[])");
  CHECK(parameters_of("(Ljava/util/List").empty());
  CHECK(class_of_signature("Lorg/x/Outer$Inner;") == "org.x.Outer$Inner");
}

TEST_CASE("the configuration determines which nodes run a JVM") {
  const auto node = [](std::vector<std::string> command, std::vector<std::string> binaries = {},
                       std::vector<std::string> sources = {}) {
    rose::config::Node one;
    one.command = std::move(command);
    one.binaries =
        binaries.empty() && !one.command.empty() ? std::vector<std::string>{one.command.front()} : std::move(binaries);
    one.sources = std::move(sources);
    return one;
  };
  CHECK(is_method(node({"/usr/bin/java", "-jar", "kv.jar"}), "C.m"));
  CHECK(is_method(node({"env", "A=b", "java", "org.x.Main"}), "C.m"));
  CHECK(is_method(node({"./kv"}, {}, {"Store.java"}), "C.m"));
  CHECK(is_method(node({"./start"}, {"lib/kv.jar"}), "C.m"));
  rose::config::Node both = node({"java", "-jar", "kv.jar"}, {"java", "libkv.so"}, {"Store.java", "native.c"});
  both.functions = {"org.x.Store.*", "flush_all"};
  CHECK(native_of(both).functions == std::vector<std::string>{"flush_all"});
  CHECK(native_of(both).sources == std::vector<std::string>{"native.c"});
  rose::config::Node go = node({"./kv"});
  go.functions = {"raft.step"};
  CHECK(native_of(go).functions == go.functions);
  // The program that a shell starts is unknown, so the form of the name decides.
  CHECK(is_method(node({"sh", "-c", "exec $JAVA org.x.Main"}), "org.x.Main.run"));
  CHECK_FALSE(is_method(node({"sh", "-c", "exec ./kv"}), "raft.step"));
  CHECK_FALSE(is_method(node({"./kv"}), "org.x.Main.run"));
  CHECK_FALSE(is_method(node({"java", "-jar", "kv.jar"}), "Raft::step"));
  CHECK_FALSE(is_method(node({"sh", "-c", "exec ./kv"}, {"./kv"}), "org.x.Main.run"));
}
