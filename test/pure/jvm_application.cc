// Which methods belong to the application itself, according to the java command line.
#include <catch2/catch.hpp>

#include <fstream>

#include "folder.h"
#include "jvm/application.h"
#include "jvm/names.h"

using namespace rose;
using Words = std::vector<std::string>;

TEST_CASE("the application's own methods are those of its main class's package") {
  CHECK(jvm::own_methods({"java", "-Xmx32m", "-cp", "a.jar:b.jar", "-XX:+UseSerialGC",
                          "org.apache.zookeeper.server.quorum.QuorumPeerMain", "zoo.cfg"},
                         "/") == Words{"org.apache.zookeeper.*"});
  CHECK(jvm::own_methods({"/usr/bin/java", "--add-opens", "java.base/java.lang=ALL-UNNAMED", "-Dx=y", "kafka.Kafka"},
                         "/") == Words{"kafka.*"});
  CHECK(jvm::own_methods({"java", "com/acme/Main"}, "/") == Words{"com.acme.*"});
  CHECK(jvm::looks_like_java("kafka.*"));
}

TEST_CASE("without a package the application's own methods are those of the main class's folder") {
  const test::Folder scratch;
  const std::filesystem::path folder = scratch.path;
  for (const char* name : {"Sessions.class", "Sessions$1.class", "Other.class", "notes.txt"})
    std::ofstream(folder / name) << "x";
  const Words wanted{"Other.*", "Sessions$1.*", "Sessions.*"};
  CHECK(jvm::own_methods({"java", "-cp", "/nowhere:" + folder.string(), "Sessions", "7000"}, "/") == wanted);
  CHECK(jvm::own_methods({"java", "--class-path=.", "Sessions"}, folder) == wanted);
  CHECK(jvm::own_methods({"java", "Sessions"}, folder) == wanted);
  CHECK(jvm::own_methods({"java", "-cp", "/nowhere", "Sessions"}, folder).empty());
}

TEST_CASE("without a known main class the application has no own methods") {
  CHECK(jvm::own_methods({"java", "-jar", "app.jar", "org.x.Main"}, "/").empty());
  CHECK(jvm::own_methods({"java", "@arguments"}, "/").empty());
  CHECK(jvm::own_methods({"java", "-version"}, "/").empty());
  CHECK(jvm::own_methods({"./server", "org.x.Main"}, "/").empty());
  CHECK(jvm::own_methods({}, "/").empty());
}
