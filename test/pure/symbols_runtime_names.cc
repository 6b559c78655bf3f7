// Reads the files in which a runtime lists the code that it compiled. Runtimes write them for perf.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "folder.h"
#include "symbols/interpreters.h"
#include "symbols/runtime_names.h"

using namespace rose;
using namespace rose::symbols;

namespace {

struct List {
  explicit List(const std::string& text) { std::ofstream(path) << text; }
  const rose::test::Folder folder;
  const std::filesystem::path path = folder / "perf-1.map";
};

void check_name(const std::string& text, const std::string& function, const std::string& file, int line) {
  INFO(text);
  const auto name = parse_runtime_name(text);
  CHECK(name.function == function);
  CHECK(name.file == file);
  CHECK(name.line == line);
}

}  // namespace

TEST_CASE("names that runtimes give their code are split into function, file and line") {
  check_name("LazyCompile:*handle /srv/app.js:12:3", "handle", "/srv/app.js", 12);
  check_name("JS:~Store.append file:///srv/my%20app.mjs:7:1", "Store.append", "/srv/my%20app.mjs", 7);
  check_name("Function:^get a b /srv/app.js:4:2", "get", "a b /srv/app.js",
             4);  // a path may contain blanks, but a function name of V8 does not
  check_name("JS:+ /srv/app.js:1:9", "(anonymous)", "/srv/app.js", 1);
  check_name("Script:~/srv/app.js", "/srv/app.js", "", 0);
  check_name("Eval:~ :3", "(anonymous)", "", 3);
  check_name("Builtin:ArrayPrototypeForEach", "Builtin:ArrayPrototypeForEach", "", 0);
  check_name("py::Store.append:/srv/app.py", "Store.append", "/srv/app.py", 0);
  check_name("py::<module>", "<module>", "", 0);
  check_name("Lorg/x/Learner;::sync", "Lorg/x/Learner;::sync", "", 0);
  check_name("JS:", "(anonymous)", "", 0);
}

TEST_CASE("an address has the name of the last line that covers it") {
  const List list(
      "1000 20 first\n"
      "1020 10 second, with blanks\n"
      "0x2000 0x10 prefixed\n"
      "1000 8 compiled anew\n"
      "fffffffffffffff0 100 at the end of all\n"
      "3000 10 not whole");
  const auto names = runtime_names(
      list.path, {0x1030, 0x1000, 0x1007, 0x1008, 0x101f, 0x1020, 0x200f, 0x2010, 0xfffffffffffffff8, 0x3000, 0x1000});
  REQUIRE(names.size() == 7);
  CHECK(names.at(0x1000).function == "compiled anew");
  CHECK(names.at(0x1007).function == "compiled anew");
  CHECK(names.at(0x1008).function == "first");
  CHECK(names.at(0x101f).function == "first");
  CHECK(names.at(0x1020).function == "second, with blanks");
  CHECK(names.at(0x200f).function == "prefixed");
  CHECK(names.at(0xfffffffffffffff8).function == "at the end of all");
}

TEST_CASE("damaged lines of a list are skipped") {
  const List list(
      "\n \n1000\n1000 \n1000 20\nzz 20 no number\n1000 zz no size\n-1000 20 negative\n10000000000000000000 1 too "
      "large\n" +
      std::string(200'000, 'x') + "\n1000 20 " + std::string(200'000, 'y') + "\n2000 0 empty\n1000 20 good\x1b[2J\n");
  const auto names = runtime_names(list.path, {0x1000, 0x2000});
  REQUIRE(names.size() == 1);
  // control characters are replaced, because they could control a terminal
  CHECK(names.at(0x1000).function == "good\\x1b[2J");
}

TEST_CASE("only regular files are read as lists") {
  const List list("1000 20 it\n");
  CHECK(runtime_names(list.path, {0x1000}).size() == 1);
  CHECK(runtime_names(list.folder.path, {0x1000}).empty());
  CHECK(runtime_names(list.folder / "absent", {0x1000}).empty());
  std::filesystem::create_symlink(list.path, list.folder / "link");
  CHECK(runtime_names(list.folder / "link", {0x1000}).empty());
  REQUIRE(::mkfifo((list.folder / "pipe").c_str(), 0600) == 0);
  CHECK(runtime_names(list.folder / "pipe", {0x1000}).empty());
}

TEST_CASE("a process with a runtime is recognised by its file name, with or without a version") {
  for (const auto& [file, language] :
       std::vector<std::pair<std::string, std::string>>{{"/usr/bin/python3.11", "Python"},
                                                        {"/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0", "Python"},
                                                        {"libruby-3.1.so.3.1", "Ruby"},
                                                        {"/usr/lib/x86_64-linux-gnu/libnode.so.108", "JavaScript"},
                                                        {"/usr/bin/node", "JavaScript"},
                                                        {"node", "JavaScript"},
                                                        {"/srv/app/node", ""},
                                                        {"/opt/jdk/lib/server/libjvm.so", "Java"},
                                                        {"/opt/jdk/bin/java", "Java"},
                                                        {"/usr/lib/erlang/erts-13.1.5/bin/beam.smp", "Erlang"},
                                                        {"/bin/dash", "shell"},
                                                        {"/usr/share/dotnet/dotnet", ".NET"},
                                                        {"/srv/app/pythonic", ""},
                                                        {"/srv/app/libpythonic.so", ""},
                                                        {"/srv/app/javac", ""},
                                                        {"", ""},
                                                        {".so", ""},
                                                        {"lib.so", ""}}) {
    INFO(file);
    CHECK(language_run_by(file) == language);
  }
}
