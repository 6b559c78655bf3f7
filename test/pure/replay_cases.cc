// Which schedules `rose replay` takes from files and folders, and which configuration it uses for each.
#include "replay/cases.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "base/file.h"
#include "folder.h"

using namespace rose;
using namespace rose::replay;
namespace fs = std::filesystem;

namespace {

// A folder of tests. It is the current folder, so that names are as short as a user types them.
struct Tests : test::Folder {
  fs::path before = fs::current_path();
  Tests() { fs::current_path(path); }
  ~Tests() {
    std::error_code ignored;
    fs::current_path(before, ignored);
  }
  void file(const fs::path& name, std::string_view text) const {
    if (name.has_parent_path()) fs::create_directories(name.parent_path());
    REQUIRE(write_file(name, text));
  }
  void schedule(const fs::path& name) const { file(name, "version = 1\n"); }
};

std::string cases_of(const CaseQuery& query) {
  const auto cases = find_cases(query);
  if (!cases) return "error: " + cases.error().message;
  std::string out;
  for (const Case& each : *cases) out += each.name + "=" + each.schedule.string() + "@" + each.config.string() + " ";
  return out;
}

}  // namespace

TEST_CASE("schedules are found in files and folders with their configuration", "[cases]") {
  const Tests tests;
  tests.schedule("suite/b/schedule.toml");
  tests.file("suite/b/rose.toml", "name = 'b'\n[[node]]\n");
  tests.schedule("suite/a/x/one.toml");
  tests.file("suite/rose.toml", "name = 'all'\n");
  tests.schedule("suite/.git/schedule.toml");
  tests.file("suite/a/pyproject.toml", "[project]\nname = 'none of ours'\n");
  fs::create_directory_symlink("..", "suite/a/loop");
  tests.file("rose.toml", "name = 'here'\n");

  const std::string both = "a/x/one=suite/a/x/one.toml@suite/rose.toml b=suite/b/schedule.toml@suite/b/rose.toml ";
  CHECK(cases_of({{"suite"}, "rose.toml", {}, {}}) == both);
  CHECK(cases_of({{"./suite/"}, "rose.toml", {}, {}}) == both);
  CHECK(cases_of({{"."}, "rose.toml", {"*one"}, {}}) == "suite/a/x/one=./suite/a/x/one.toml@suite/rose.toml ");
  // A configuration given with its folder is used for all schedules.
  CHECK(cases_of({{"suite"}, "./rose.toml", {}, {"a*"}}) == "b=suite/b/schedule.toml@./rose.toml ");
  // A schedule given as a file is always used. Names must be unique.
  CHECK(cases_of({{"suite/b/schedule.toml"}, "rose.toml", {}, {}}) == "b=suite/b/schedule.toml@rose.toml ");
  CHECK(cases_of({{"suite/b/schedule.toml", "suite/b"}, "rose.toml", {}, {}}) ==
        "b=suite/b/schedule.toml@rose.toml b-2=suite/b/schedule.toml@suite/b/rose.toml ");
  CHECK(CaseQuery{{"suite/b/schedule.toml"}, "", {}, {}}.is_single());
  CHECK_FALSE(CaseQuery{{"suite"}, "", {}, {}}.is_single());
  // A configuration in the current folder is used for all schedules. If there is none anywhere, that is an error.
  tests.file("mine.toml", "");
  CHECK(cases_of({{"suite/b"}, "mine.toml", {}, {}}) == "b=suite/b/schedule.toml@mine.toml ");
  CHECK(cases_of({{"suite/b"}, "fixed.toml", {}, {}}) ==
        "error: suite/b/schedule.toml: no fixed.toml beside it or above it");

  CHECK(cases_of({{"suite", "nowhere"}, "rose.toml", {}, {}}) == "error: nowhere: there is no such schedule or folder");
  CHECK(cases_of({{"suite"}, "rose.toml", {"c"}, {}}) == "error: --filter and --exclude leave no schedule");
  fs::create_directory("empty");
  CHECK(cases_of({{"empty"}, "rose.toml", {}, {}}) == "error: empty: no schedule in this folder");
  // A broken file may be a test whose absence nobody would notice, so it must never be skipped.
  tests.file("suite/broken.toml", "version = = 1\n");
  CHECK(cases_of({{"suite"}, "rose.toml", {}, {}}).starts_with("error: suite/broken.toml:1"));
  CHECK(cases_of({{"suite"}, "rose.toml", {}, {"broken"}}) == both);
}
