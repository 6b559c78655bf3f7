// The command line of java shows which methods belong to the application itself.
#include <zip.h>
#include <zlib.h>
#include <catch2/catch.hpp>

#include <fstream>

#include "folder.h"
#include "jvm/application.h"
#include "jvm/jar.h"
#include "jvm/names.h"

using namespace rose;
using Words = std::vector<std::string>;

namespace {

void write_jar(const std::string& path, const std::vector<std::pair<std::string, std::string>>& entries) {
  const zipFile zip = ::zipOpen64(path.c_str(), APPEND_STATUS_CREATE);
  REQUIRE(zip != nullptr);
  for (const auto& [name, text] : entries) {
    REQUIRE(::zipOpenNewFileInZip(zip, name.c_str(), nullptr, nullptr, 0, nullptr, 0, nullptr, Z_DEFLATED,
                                  Z_DEFAULT_COMPRESSION) == ZIP_OK);
    REQUIRE(::zipWriteInFileInZip(zip, text.data(), static_cast<unsigned>(text.size())) == ZIP_OK);
    REQUIRE(::zipCloseFileInZip(zip) == ZIP_OK);
  }
  REQUIRE(::zipClose(zip, nullptr) == ZIP_OK);
}

}  // namespace

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

TEST_CASE("the own methods of an application in a jar are those of the main class in its manifest") {
  const test::Folder scratch;
  const std::filesystem::path folder = scratch.path;
  const std::string version = "Manifest-Version: 1.0\r\n";
  write_jar(folder / "server.jar", {{"META-INF/MANIFEST.MF", version + "Main-Class: com.acme.shop.orders.Main\r\n\r\n"},
                                    {"com/acme/shop/orders/Main.class", "x"}});
  CHECK(jvm::own_methods({"java", "-Xmx64m", "-jar", "server.jar", "org.x.Other"}, folder) == Words{"com.acme.shop.*"});
  CHECK(jvm::own_methods({"java", "-jar", (folder / "server.jar").string()}, "/") == Words{"com.acme.shop.*"});
  write_jar(folder / "boot.jar",
            {{"META-INF/MANIFEST.MF", version + "Main-Class: org.springframework.boot.loader.JarLauncher\r\n"
                                                "Start-Class: com.acme.Application\r\n"}});
  CHECK(jvm::own_methods({"java", "-jar", "boot.jar"}, folder) == Words{"com.acme.*"});
  write_jar(folder / "small.jar", {{"META-INF/MANIFEST.MF", version + "Main-Class: Sessions\r\n"},
                                   {"Sessions.class", "x"},
                                   {"Sessions$1.class", "x"},
                                   {"lib/Other.class", "x"}});
  CHECK(jvm::own_methods({"java", "-jar", "small.jar"}, folder) == Words{"Sessions.*", "Sessions$1.*"});
}

TEST_CASE("a main class in a manifest may be continued on the next line, and ends with the first section") {
  CHECK(jvm::main_class("Main-Class: com.acme.a.very.long.package.na\n me.Server\n") ==
        "com.acme.a.very.long.package.name.Server");
  CHECK(jvm::main_class("Created-By: 17\n\nName: a.class\nMain-Class: com.acme.Wrong\n").empty());
  CHECK(jvm::main_class("").empty());
  CHECK(jvm::main_class("Main-Class:com.acme.Main").empty());
}

TEST_CASE("a file that is no jar names no application") {
  const test::Folder scratch;
  const std::filesystem::path folder = scratch.path;
  std::ofstream(folder / "cut.jar") << "PK\x03\x04 and no more";
  CHECK_FALSE(jvm::read_jar(folder / "cut.jar"));
  CHECK_FALSE(jvm::read_jar(folder / "absent.jar"));
  CHECK_FALSE(jvm::read_jar(folder));
  CHECK(jvm::own_methods({"java", "-jar", "cut.jar"}, folder).empty());
}

TEST_CASE("the own methods of a module are those of its main class's package") {
  CHECK(jvm::own_methods({"java", "-p", "mods", "-m", "com.acme/com.acme.Main"}, "/") == Words{"com.acme.*"});
  CHECK(jvm::own_methods({"java", "--module=com.acme/com.acme.x.y.Main"}, "/") == Words{"com.acme.x.*"});
  CHECK(jvm::own_methods({"java", "-m", "com.acme"}, "/").empty());
}

TEST_CASE("without a known main class the application has no own methods") {
  CHECK(jvm::own_methods({"java", "-jar", "app.jar", "org.x.Main"}, "/").empty());
  CHECK(jvm::own_methods({"java", "@arguments"}, "/").empty());
  CHECK(jvm::own_methods({"java", "-version"}, "/").empty());
  CHECK(jvm::own_methods({"./server", "org.x.Main"}, "/").empty());
  CHECK(jvm::own_methods({}, "/").empty());
}
