// The temporary folders of runs are all in one place. They are removed by age and number, but never while they are in
// use.
#include "replay/runs_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <ctime>
#include <set>

#include "base/file.h"
#include "folder.h"
#include "profile/profile.h"

using namespace rose;
using namespace rose::replay;
namespace fs = std::filesystem;

namespace {

void make_older(const fs::path& folder, std::int64_t seconds) {
  const timespec times[2] = {{std::time(nullptr) - seconds, 0}, {std::time(nullptr) - seconds, 0}};
  REQUIRE(::utimensat(AT_FDCWD, folder.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("the newest and the requested folders of runs are kept, old ones are removed unless in use", "[replay]") {
  const test::Folder temporary;
  std::vector<RunsFolder> open;
  std::vector<fs::path> made;
  for (int i = 0; i < 9; ++i) {
    auto folder = make_runs_folder(temporary.path);
    REQUIRE(folder);
    made.push_back(folder->path);
    REQUIRE(write_file(folder->path / "log", "text"));
    open.push_back(std::move(*folder));
  }
  CHECK(std::set<fs::path>(made.begin(), made.end()).size() == 9);
  for (const fs::path& each : made) {
    CHECK(each.parent_path() == made[0].parent_path());
    // so that the paths of two runs have the same pattern
    CHECK(profile::path_pattern(each.filename().string()) == "*");
  }
  struct stat info{};
  REQUIRE(::stat(made[0].parent_path().c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0711);
  for (const fs::path& each : made) CHECK(fs::exists(each / "log"));  // because all of them are in use

  keep_runs_folder(made[1], true);
  for (int i = 0; i < 9; ++i) make_older(made[static_cast<std::size_t>(i)], 100 * (9 - i));
  make_older(made[8], (kKeptDays * 24 + 1) * std::int64_t{3600});
  // Run 0 stays in use, so run 8 is the oldest one that can be removed.
  for (std::size_t i = 1; i < 9; ++i) open[i].in_use.reset();
  const auto next = make_runs_folder(temporary.path);
  REQUIRE(next);
  std::set<fs::path> left;
  for (const auto& entry : fs::directory_iterator(made[0].parent_path())) left.insert(entry.path());
  CHECK(left == std::set<fs::path>{next->path, made[7], made[6], made[5], made[4], made[1], made[0]});
}

TEST_CASE("folders of runs have unpredictable names, and no other user can rename a parent", "[replay]") {
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) names.insert(unforeseen_name("run-"));
  CHECK(names.size() == 100);
  for (const std::string& name : names) CHECK(profile::path_pattern(name) == "run-*");
  const test::Folder temporary;
  REQUIRE(::chmod(temporary.path.c_str(), 0777) == 0);
  const auto refused = make_runs_folder(temporary.path);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("others may rename") == 0);
  REQUIRE(::chmod(temporary.path.c_str(), 01777) == 0);
  CHECK(make_runs_folder(temporary.path));
}

TEST_CASE("a parent folder that other users could replace is not used", "[replay]") {
  const test::Folder temporary;
  const auto first = make_runs_folder(temporary.path);
  REQUIRE(first);
  const fs::path place = first->path.parent_path();
  SECTION("others may write there") { REQUIRE(::chmod(place.c_str(), 0777) == 0); }
  SECTION("it is a symbolic link") {
    fs::rename(place, temporary.path + "/elsewhere");
    fs::create_symlink(temporary.path + "/elsewhere", place);
  }
  const auto second = make_runs_folder(temporary.path);
  REQUIRE(second);
  CHECK(second->path.parent_path() == temporary.path);
}

TEST_CASE("folders that one command kept are removed only by its own later runs", "[replay]") {
  const test::Folder temporary;
  const auto kept_by = [&](const std::string& command) {
    auto folder = make_runs_folder(temporary.path, command);
    REQUIRE(folder);
    REQUIRE(write_file(folder->path / "log", "text"));
    keep_runs_folder(folder->path, false, command);
    return folder->path;
  };
  const fs::path of_diagnose = kept_by("diagnose");
  make_older(of_diagnose, (kKeptDays * 24 + 1) * std::int64_t{3600});
  std::vector<fs::path> of_replay;
  for (std::size_t i = 0; i < kKeptFolders + 3; ++i) {
    of_replay.push_back(kept_by("replay"));
    make_older(of_replay.back(), static_cast<std::int64_t>(1000 - i));
  }
  CHECK(fs::exists(of_diagnose / "log"));
  CHECK_FALSE(fs::exists(of_replay.front()));
  CHECK(fs::exists(of_replay.back() / "log"));
  (void)kept_by("diagnose");
  CHECK_FALSE(fs::exists(of_diagnose));
  CHECK(fs::exists(of_replay.back() / "log"));
}
