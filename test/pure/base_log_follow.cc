#include "base/log_follow.h"
#include "folder.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using rose::LogFollower;

namespace {

namespace fs = std::filesystem;
using rose::test::Folder;

void append(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::app) << text; }

std::vector<std::string> lines(LogFollower& follower) {
  std::vector<std::string> all;
  while (follower.read([&](std::string_view line) {
    all.emplace_back(line);
    return true;
  })) {
  }
  return all;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("only lines after the starting point are read", "[log]") {
  const Folder folder;
  append(folder / "log", "old\nhalf");
  LogFollower follower(folder / "log");
  follower.begin_at_end();
  CHECK(lines(follower).empty());
  append(folder / "log", " and whole\nnew\nnot yet");
  CHECK(lines(follower) == Lines{"half and whole", "new"});
  append(folder / "log", " but now\n\n");
  CHECK(lines(follower) == Lines{"not yet but now", ""});
}

TEST_CASE("a file that is created later is read from its beginning", "[log]") {
  const Folder folder;
  LogFollower follower(folder / "log");
  follower.begin_at_end();
  CHECK(lines(follower).empty());
  append(folder / "log", "first\n");
  CHECK(lines(follower) == Lines{"first"});
}

TEST_CASE("truncation and rotation are followed", "[log]") {
  const Folder folder;
  append(folder / "log", "a\n");
  LogFollower follower(folder / "log");
  CHECK(lines(follower) == Lines{"a"});

  fs::resize_file(folder / "log", 0);
  CHECK(lines(follower).empty());
  append(folder / "log", "b\n");
  CHECK(lines(follower) == Lines{"b"});

  SECTION("renamed, still written to, and recreated") {
    fs::rename(folder / "log", folder / "log.1");
    append(folder / "log.1", "c\n");
    CHECK(lines(follower) == Lines{"c"});  // as long as there is no new file, the renamed one is still followed
    append(folder / "log.1", "d\nlast");
    append(folder / "log", "e\n");
    CHECK(lines(follower) == Lines{"d", "last", "e"});
    append(folder / "log", "f\n");
    CHECK(lines(follower) == Lines{"f"});
  }
  SECTION("removed and recreated") {
    fs::remove(folder / "log");
    CHECK(lines(follower).empty());
    append(folder / "log", "c\n");
    CHECK(lines(follower) == Lines{"c"});
  }
  SECTION("replaced by a rename over it") {
    append(folder / "new", "c\nd\n");
    fs::rename(folder / "new", folder / "log");
    CHECK(lines(follower) == Lines{"c", "d"});
  }
}

TEST_CASE("long lines are truncated, and long files are read in parts", "[log]") {
  const Folder folder;
  append(folder / "log", std::string(100'000, 'x') + "\nshort\n");
  LogFollower follower(folder / "log");
  const Lines read = lines(follower);
  REQUIRE(read.size() == 2);
  CHECK(read[0] == std::string(LogFollower::kLongestLine, 'x'));
  CHECK(read[1] == "short");

  std::string many;
  for (int i = 0; i < 1'500'000; ++i) many += "0123456\n";
  append(folder / "log", many);
  std::size_t count = 0;
  int calls = 1;
  while (follower.read([&](std::string_view line) {
    count += line == "0123456" ? 1 : 0;
    return true;
  })) {
    ++calls;
  }
  CHECK(count == 1'500'000);
  CHECK(calls >= 2);
}

TEST_CASE("a reader that stops early continues there later", "[log]") {
  const Folder folder;
  append(folder / "log", "1\n2\n3\n");
  LogFollower follower(folder / "log");
  Lines read;
  const auto two = [&](std::string_view line) {
    read.emplace_back(line);
    return read.size() != 2;
  };
  CHECK(follower.read(two));
  CHECK(read == Lines{"1", "2"});
  CHECK(lines(follower) == Lines{"3"});
}

TEST_CASE("pipes and folders are not followed", "[log]") {
  const Folder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  LogFollower pipe(folder / "pipe");
  pipe.begin_at_end();
  CHECK(lines(pipe).empty());
  fs::create_directory(folder / "folder");
  LogFollower directory(folder / "folder");
  CHECK(lines(directory).empty());
}
