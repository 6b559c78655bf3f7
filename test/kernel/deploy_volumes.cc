// The kernel reuses the device numbers of file systems. Rose must not mistake another program's file system for its
// own.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "deploy/volumes.h"
#include "folder.h"
#include "skip.h"

using namespace rose;

TEST_CASE("a foreign file system that got the device number of a former one of rose is left alone") {
  if (::geteuid() != 0) test::skip_case("root");
  const test::Folder folder;
  const std::string id = "rose-test-volumes";
  for (const char* name : {"own", "other"}) std::filesystem::create_directory(folder / name);
  auto at = OpenFolder::open(folder / "own");
  REQUIRE(at);
  std::vector<deploy::volume::Mounted> mounted;
  {
    auto volume = deploy::Volume::make(*at, id);
    if (!volume) test::skip_case("the right to mount");
    mounted = deploy::volume::of(id);
    REQUIRE(mounted.size() == 1);
    REQUIRE(::umount2((folder / "own").c_str(), MNT_DETACH) == 0);
  }
  // The kernel frees a device number only some time after the unmount.
  bool same = false;
  for (int round = 0; round < 2000 && !same; ++round) {
    REQUIRE(::mount("somebody", (folder / "other").c_str(), "tmpfs", 0, "size=1m") == 0);
    auto other = OpenFolder::open(folder / "other");
    REQUIRE(other);
    same = deploy::volume::number(*other) == mounted[0].number;
    if (!same) {
      REQUIRE(::umount2((folder / "other").c_str(), MNT_DETACH) == 0);
      ::usleep(1000);
    }
  }
  if (!same) test::skip_case("a kernel that gives out numbers of mounts again");
  CHECK(write_file(folder / "other" / "file", "theirs"));
  const auto done = deploy::volume::dissolve(mounted[0]);
  REQUIRE(done);
  CHECK(*done == deploy::volume::Dissolved::gone);
  CHECK(read_file(folder / "other" / "file").value_or("") == "theirs");
  CHECK(::umount2((folder / "other").c_str(), MNT_DETACH) == 0);
}
