// Reads the mappings of a process from the kernel's text.
#include "kernel/maps.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <fstream>
#include <string>

#include "base/fd.h"
#include "base/read_at.h"
#include "folder.h"

using namespace rose;
using namespace rose::kernel;

TEST_CASE("lines of /proc/PID/maps are read, with names that contain blanks and without names", "[kernel]") {
  const auto all = read_maps(
      "55d000-55e000 r-xp 00001000 fd:01 393 /opt/a b (deleted)\n"
      "7f0000000000-7f0000001000 rw-s 00000000 00:05 7                          /dev/shm/ring.rr\n"
      "7f1000-7f2000 rw-p 00000000 00:00 0 \n"
      "7ffff000-7ffff100 r-xp 00000000 00:00 0                          [vdso]\n"
      "no line of maps\n"
      "7f-\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]");
  REQUIRE(all.size() == 5);
  CHECK(all[0].begin == 0x55d000);
  CHECK(all[0].end == 0x55e000);
  CHECK(all[0].offset == 0x1000);
  CHECK(all[0].inode == 393);
  CHECK(all[0].executable());
  CHECK(all[0].name == "/opt/a b (deleted)");
  CHECK(all[1].access == "rw-s");
  CHECK(all[1].name == "/dev/shm/ring.rr");
  CHECK_FALSE(all[1].executable());
  CHECK(all[2].name.empty());
  CHECK(all[3].name == "[vdso]");
  CHECK(all[4].begin == 0xffffffffff600000);
  CHECK(read_maps("").empty());
}

TEST_CASE("a function of this program is located in its file", "[kernel]") {
  const auto place = own_place(reinterpret_cast<const void*>(&read_maps));
  CHECK(place.offset != 0);
  CHECK(place.file.starts_with('/'));
  CHECK(own_place(nullptr).file.empty());
  CHECK(maps_of(::getpid()).size() > 4);
}

TEST_CASE("parts of files are read completely, and end of file is reported", "[kernel]") {
  const rose::test::Folder folder;
  const auto path = folder / "bytes";
  std::ofstream(path) << "0123456789";
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[8] = {};
  CHECK(read_at(file.get(), text, 4, 3) == 4);
  CHECK(std::string(text, 4) == "3456");
  CHECK(read_at(file.get(), text, 8, 6) == 4);
  CHECK(errno == 0);
  CHECK(read_at(-1, text, 1, 0) == 0);
  CHECK(errno == EBADF);
}
