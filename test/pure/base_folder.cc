// Folders in which another user may write: no name in them leads outside, and a folder that was replaced is not used.
#include "base/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "base/file.h"
#include "folder.h"
#include "skip.h"

using namespace rose;
namespace fs = std::filesystem;

namespace {

constexpr uid_t kStranger = 65534;

bool is_root() { return ::geteuid() == 0; }

std::string text_of(const Fd& fd) {
  char buffer[256];
  const ssize_t n = fd ? ::read(fd.get(), buffer, sizeof buffer) : 0;
  return {buffer, static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

OpenFolder opened(const fs::path& path) {
  auto folder = OpenFolder::open(path);
  REQUIRE(folder);
  return std::move(*folder);
}

struct stat status_of(const fs::path& path) {
  struct stat info{};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info;
}

// A folder `node` that belongs to another user (if the test is permitted to create one), beside files of root.
struct Scene {
  Scene() {
    fs::create_directory(top / "node");
    fs::create_directory(top / "secret");
    REQUIRE(write_file(top / "secret" / "shadow", "secret"));
    if (is_root()) REQUIRE(::chown((top / "node").c_str(), kStranger, kStranger) == 0);
  }
  void link(const std::string& name, const std::string& target) const {
    fs::create_symlink(target, top / "node" / name);
  }
  test::Folder top;
};

}  // namespace

TEST_CASE("files that the folder's user may not read are not read", "[base]") {
  if (!is_root()) test::skip_case("root");
  const Scene scene;
  // The user may rename one of their own folders even after root has written to it.
  fs::create_directory(scene.top / "node" / "moved");
  REQUIRE(::chown((scene.top / "node" / "moved").c_str(), kStranger, kStranger) == 0);
  fs::create_directory(scene.top / "node" / "moved" / "closed");
  for (const char* name : {"moved/secret", "moved/of_group", "moved/open", "moved/closed/open"})
    REQUIRE(write_file(scene.top / "node" / name, "text"));
  REQUIRE(::chmod((scene.top / "node/moved/secret").c_str(), 0600) == 0);
  REQUIRE(::chmod((scene.top / "node/moved/of_group").c_str(), 0640) == 0);
  REQUIRE(::chmod((scene.top / "node/moved/open").c_str(), 0644) == 0);
  REQUIRE(::chmod((scene.top / "node/moved/closed/open").c_str(), 0644) == 0);
  REQUIRE(::chmod((scene.top / "node/moved/closed").c_str(), 0700) == 0);
  const OpenFolder node = opened(scene.top / "node"), above = opened(scene.top.path);
  for (const char* name : {"moved/secret", "moved/of_group", "moved/closed/open"}) {
    INFO(name);
    CHECK_FALSE(node.file(name));
    CHECK_FALSE(above.file(fs::path("node") / name));
  }
  CHECK(text_of(node.file("moved/open")) == "text");
  CHECK(text_of(above.file("node/moved/open")) == "text");
  // When the calls return, this thread must have its rights again.
  CHECK(text_of(opened(scene.top / "node/moved/closed").file("open")) == "text");
  CHECK(read_file(scene.top / "node/moved/secret"));
}

TEST_CASE("a folder of root that another user has moved into a removed one is kept", "[base]") {
  if (!is_root()) test::skip_case("root");
  const test::Folder top;
  fs::create_directories(top / "theirs/closed");
  REQUIRE(write_file(top / "theirs/closed/file", "text"));
  REQUIRE(::chown((top / "theirs").c_str(), kStranger, kStranger) == 0);
  struct statx status{};
  if (::statx(AT_FDCWD, top.path.c_str(), 0, STATX_BTIME, &status) != 0 || (status.stx_mask & STATX_BTIME) == 0)
    test::skip_case("a file system that records when files were made");
  ::usleep(20'000);  // so that folders made from now on have a later time of creation
  fs::create_directories(top / "run/node/own");
  REQUIRE(::chown((top / "run/node").c_str(), kStranger, kStranger) == 0);
  REQUIRE(write_file(top / "run/node/own/file", "text"));
  // 70 levels are more than a removal keeps open at once. Deeper folders are first moved up, which must not bypass the
  // check.
  fs::path deep = top / "run/node";
  for (int i = 0; i < 70; ++i) {
    deep /= "d";
    fs::create_directory(deep);
    REQUIRE(::chown(deep.c_str(), kStranger, kStranger) == 0);
  }
  const bool is_deep = GENERATE(false, true);
  fs::rename(top / "theirs", is_deep ? deep / "moved" : top / "run/node/moved");
  const auto removed = opened(top.path).remove("run");
  REQUIRE_FALSE(removed);
  CHECK(removed.error().message.find("is left: a folder of root") != std::string::npos);
  std::size_t kept = 0;
  for (const auto& entry : fs::recursive_directory_iterator(top / "run"))
    if (entry.path().filename() == "file") {
      CHECK(entry.path().parent_path().filename() == "closed");
      ++kept;
    }
  CHECK(kept == 1);
}

TEST_CASE("reading follows symbolic links inside the folder, and no others", "[base]") {
  const Scene scene;
  REQUIRE(write_file(scene.top / "node" / "server.1.log", "text", 0644));
  scene.link("current.log", "server.1.log");
  scene.link("absolute", (scene.top / "secret/shadow").string());
  scene.link("relative", "../secret/shadow");
  scene.link("folder", "../secret");
  scene.link("loop", "loop");
  scene.link("absent", "nothing");
  const OpenFolder node = opened(scene.top / "node");
  CHECK(text_of(node.file("server.1.log")) == "text");
  CHECK(text_of(node.file("current.log")) == "text");
  for (const char* name :
       {"absolute", "relative", "folder/shadow", "loop", "absent", "../secret/shadow", "", ".", "..", "folder"})
    CHECK_FALSE(node.file(name));
  CHECK(text_of(open_inside(scene.top / "node", scene.top / "node/current.log")) == "text");
  CHECK_FALSE(open_inside(scene.top / "node", scene.top / "secret/shadow"));
  CHECK_FALSE(open_inside(scene.top / "node/folder", "shadow"));  // the folder itself is a link
  CHECK(text_of(open_inside({}, scene.top / "node/absolute")) == "secret");
  CHECK(status_inside(scene.top / "node", "current.log")->st_size == 4);
  CHECK_FALSE(status_inside(scene.top / "node", "absolute"));
  CHECK(read_inside(scene.top / "node", "current.log", 4).value() == "text");
  CHECK_FALSE(read_inside(scene.top / "node", "current.log", 3));
  // a file that is opened for a change must not be reached through a link
  CHECK_FALSE(node.file_to_change("current.log"));
  CHECK(node.file_to_change("server.1.log"));
}

TEST_CASE("pipes and devices in a folder are not opened", "[base]") {
  const Scene scene;
  REQUIRE(::mkfifo((scene.top / "node" / "server.log").c_str(), 0666) == 0);
  const OpenFolder node = opened(scene.top / "node");
  CHECK_FALSE(node.file("server.log"));
  CHECK_FALSE(node.file_to_change("server.log"));
  if (is_root() && ::mknod((scene.top / "node" / "null").c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0) {
    CHECK_FALSE(node.file("null"));
  }
}

TEST_CASE("a hard link to another user's file is neither read nor written", "[base]") {
  if (!is_root()) return;
  const Scene scene;
  fs::create_hard_link(scene.top / "secret/shadow", scene.top / "node/server.log");
  const OpenFolder node = opened(scene.top / "node");
  errno = 0;
  CHECK_FALSE(node.file("server.log"));
  CHECK(errno == EPERM);
  CHECK_FALSE(node.file_to_change("server.log"));
  // A file of the user's own may have several hard links.
  REQUIRE(write_file(scene.top / "node/data", "own"));
  REQUIRE(::chown((scene.top / "node/data").c_str(), kStranger, kStranger) == 0);
  fs::create_hard_link(scene.top / "node/data", scene.top / "node/snapshot");
  CHECK(text_of(node.file("snapshot")) == "own");
  // A file of root in one of root's folders may also have several hard links.
  fs::create_hard_link(scene.top / "secret/shadow", scene.top / "secret/again");
  CHECK(text_of(opened(scene.top / "secret").file("again")) == "secret");
}

TEST_CASE("folders are created and their ownership changed only inside the folder", "[base]") {
  const Scene scene;
  const OpenFolder node = opened(scene.top / "node");
  const std::optional<Owner> owner = is_root() ? std::optional(Owner{kStranger, kStranger}) : std::nullopt;
  const auto made = node.make("a/b", owner, 0750);
  REQUIRE(made);
  CHECK((status_of(scene.top / "node/a/b").st_mode & 07777) == 0750);
  if (is_root()) CHECK(status_of(scene.top / "node/a").st_uid == kStranger);
  CHECK(node.make("a/b", owner, 0755));  // the folder exists already, which is no error
  CHECK((status_of(scene.top / "node/a/b").st_mode & 07777) == 0750);
  scene.link("out", "../secret");
  scene.link("shadow", "../secret/shadow");
  for (const char* inside : {"out", "out/more", "../more", "shadow"}) CHECK_FALSE(node.make(inside, owner));
  CHECK(status_of(scene.top / "secret").st_uid == ::geteuid());
  CHECK_FALSE(fs::exists(scene.top / "secret/more"));
  CHECK_FALSE(fs::exists(scene.top / "more"));
  CHECK_FALSE(node.enter("out"));
  CHECK_FALSE(node.create("out", std::nullopt, 0600));
  CHECK_FALSE(node.create("../new", std::nullopt, 0600));
  CHECK(node.create("new", std::nullopt, 0640));
  CHECK((status_of(scene.top / "node/new").st_mode & 07777) == 0640);
  CHECK_FALSE(node.create("new", std::nullopt, 0640));
}

TEST_CASE("removal follows no symbolic link and works at any depth", "[base]") {
  const Scene scene;
  const OpenFolder top = opened(scene.top.path);
  scene.link("out", "../secret");
  fs::create_directories(scene.top / "node/a/b/c");
  fs::create_directory_symlink(scene.top / "secret", scene.top / "node/a/b/out");
  {  // more levels than a removal keeps open at once, and more than the usual limit of 1024 open descriptors
    OpenFolder at = opened(scene.top / "node");
    for (int i = 0; i < 1500; ++i) {
      auto inner = at.make("d", std::nullopt);
      REQUIRE(inner);
      at = std::move(*inner);
    }
    REQUIRE(at.create("file", std::nullopt, 0600));
  }
  REQUIRE(opened(scene.top / "node").clear([](const std::string& name) { return name == "out"; }));
  CHECK(opened(scene.top / "node").names() == std::vector<std::string>{"out"});
  REQUIRE(top.remove("node"));
  CHECK_FALSE(fs::exists(scene.top / "node"));
  CHECK(read_file(scene.top / "secret/shadow").value() == "secret");
  REQUIRE(top.remove("node"));  // a folder that does not exist counts as removed
  CHECK_FALSE(top.remove(".."));
}

TEST_CASE("a copy keeps contents and attributes, and follows no link to outside", "[base]") {
  const Scene scene;
  const fs::path from = scene.top / "node";
  fs::create_directories(from / "a/b");
  REQUIRE(write_file(from / "a/file", "text", 0640));
  fs::create_hard_link(from / "a/file", from / "a/b/same");
  scene.link("out", "../secret/shadow");
  REQUIRE(::mkfifo((from / "pipe").c_str(), 0620) == 0);
  {
    const Fd holes(::open((from / "holes").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    REQUIRE(::pwrite(holes.get(), "middle", 6, 8 << 20) == 6);
    REQUIRE(::ftruncate(holes.get(), 64 << 20) == 0);
  }
  const bool attributes = ::setxattr((from / "a/file").c_str(), "user.rose", "x", 1, 0) == 0;
  const timespec times[2] = {{1000, 5}, {2000, 7}};
  REQUIRE(::utimensat(AT_FDCWD, (from / "a/file").c_str(), times, 0) == 0);
  REQUIRE(::chmod((from / "a").c_str(), 0705) == 0);
  if (is_root()) REQUIRE(::chown((from / "a/file").c_str(), kStranger, 12) == 0);
  fs::create_directory(scene.top / "copy");
  REQUIRE(opened(from).copy_into(opened(scene.top / "copy")));
  const fs::path to = scene.top / "copy";
  CHECK(read_file(to / "a/file").value() == "text");
  CHECK((status_of(to / "a/file").st_mode & 07777) == 0640);
  CHECK((status_of(to / "a").st_mode & 07777) == 0705);
  CHECK(status_of(to / "a/file").st_mtim.tv_nsec == 7);
  CHECK(status_of(to / "a/file").st_ino == status_of(to / "a/b/same").st_ino);
  CHECK(fs::read_symlink(to / "out") == "../secret/shadow");
  CHECK(S_ISFIFO(status_of(to / "pipe").st_mode));
  CHECK(status_of(to / "holes").st_size == 64 << 20);
  CHECK(status_of(to / "holes").st_blocks * 512 < 8 << 20);
  const Fd holes(::open((to / "holes").c_str(), O_RDONLY | O_CLOEXEC));
  char middle[6];
  REQUIRE(::pread(holes.get(), middle, 6, 8 << 20) == 6);
  CHECK(std::string(middle, 6) == "middle");
  char value[4];
  if (attributes) CHECK(::getxattr((to / "a/file").c_str(), "user.rose", value, sizeof value) == 1);
  if (is_root()) CHECK(status_of(to / "a/file").st_uid == kStranger);
  // copy_into() must not write to a file that exists, in particular not through a link.
  fs::create_directory(scene.top / "other");
  fs::create_symlink(scene.top / "secret/shadow", scene.top / "other/holes");
  fs::create_directory_symlink(scene.top / "secret", scene.top / "other/a");
  CHECK_FALSE(opened(from).copy_into(opened(scene.top / "other")));
  CHECK(read_file(scene.top / "secret/shadow").value() == "secret");
  CHECK_FALSE(fs::exists(scene.top / "secret/file"));
  CHECK(fs::is_fifo(scene.top / "other/pipe"));  // the error did not prevent the rest from being copied
}

TEST_CASE("names that change during access never lead outside the folder", "[base]") {
  const Scene scene;
  const fs::path node = scene.top / "node";
  fs::create_directories(node / "d");
  REQUIRE(write_file(node / "d/shadow", "harmless", 0644));
  fs::create_directory_symlink(scene.top / "secret", node / "evil");
  std::atomic<bool> stop{false};
  std::thread attacker([&] {  // exchanges the folder `d` and a link to `secret` all the time
    while (!stop) (void)::renameat2(AT_FDCWD, (node / "evil").c_str(), AT_FDCWD, (node / "d").c_str(), RENAME_EXCHANGE);
  });
  const OpenFolder folder = opened(node);
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = text_of(folder.file("d/shadow"));
    if (text == "secret") {
      stop = true;
      FAIL("what is outside was read");
    }
    read += text == "harmless" ? 1 : 0;
    (void)folder.make("d/more", std::nullopt);
    if (const Fd changed = folder.file_to_change("d/shadow")) (void)::pwrite(changed.get(), "harmless", 8, 0);
  }
  stop = true;
  attacker.join();
  CHECK(read > 0);
  CHECK(read_file(scene.top / "secret/shadow").value() == "secret");
  CHECK_FALSE(fs::exists(scene.top / "secret/more"));
}

TEST_CASE("a user who could replace the path to a folder is detected", "[base]") {
  if (!is_root()) test::skip_case("root");
  const test::Folder top;
  REQUIRE(::chmod(top.path.c_str(), 0755) == 0);
  fs::create_directories(top / "a/b");
  const UserGroups user{kStranger, {7}};
  CHECK_FALSE(exchangeable_by(user, top / "a/b"));
  REQUIRE(::chown((top / "a").c_str(), kStranger, 0) == 0);
  CHECK(exchangeable_by(user, top / "a/b") == top / "a");
  CHECK_FALSE(exchangeable_by({kStranger - 1, {}}, top / "a/b"));
  REQUIRE(::chown((top / "a").c_str(), 0, 7) == 0);
  REQUIRE(::chmod((top / "a").c_str(), 0775) == 0);
  CHECK(exchangeable_by(user, top / "a/b") == top / "a");
  REQUIRE(::chmod((top / "a").c_str(), 01777) == 0);
  CHECK_FALSE(exchangeable_by(user, top / "a/b"));
  REQUIRE(::chmod((top / "a").c_str(), 0777) == 0);
  CHECK(exchangeable_by(user, top / "a/b") == top / "a");
}

TEST_CASE("a path that anybody but trusted users could replace is detected", "[base]") {
  if (!is_root()) test::skip_case("root");
  const test::Folder top;
  REQUIRE(::chmod(top.path.c_str(), 0755) == 0);
  fs::create_directories(top / "a/b");
  const std::vector<uid_t> root{0}, both{0, kStranger};
  CHECK_FALSE(exchangeable_by_others(root, top / "a/b/new/er"));
  REQUIRE(::chown((top / "a").c_str(), kStranger, 0) == 0);
  CHECK(exchangeable_by_others(root, top / "a/b") == top / "a");
  CHECK(exchangeable_by_others(root, top / "a/new") == top / "a");
  CHECK_FALSE(exchangeable_by_others(root, top / "a"));  // what is checked is the path to the folder, not its content
  CHECK_FALSE(exchangeable_by_others(both, top / "a/b/new"));
  REQUIRE(::chown((top / "a").c_str(), 0, 7) == 0);
  REQUIRE(::chmod((top / "a").c_str(), 0775) == 0);
  CHECK_FALSE(exchangeable_by_others(root, top / "a/b"));
  REQUIRE(::chmod((top / "a").c_str(), 0777) == 0);
  CHECK(exchangeable_by_others(both, top / "a/b") == top / "a");
  REQUIRE(::chmod((top / "a").c_str(), 01777) == 0);
  CHECK_FALSE(exchangeable_by_others(root, top / "a/b"));
  CHECK_FALSE(exchangeable_by_others(root, top / "a/new"));
  REQUIRE(::chown((top / "a/b").c_str(), kStranger, 0) == 0);
  CHECK(exchangeable_by_others(root, top / "a/b") == top / "a");
  // The path contains a link that another user made.
  fs::create_symlink(top / "a", top / "a/link");
  CHECK_FALSE(exchangeable_by_others(root, top / "a/link/new"));
  REQUIRE(::lchown((top / "a/link").c_str(), kStranger, 0) == 0);
  CHECK(exchangeable_by_others(root, top / "a/link/new") == top / "a");
}

TEST_CASE("a user who could replace a link in a folder's path, or may write by its access list, is detected",
          "[base]") {
  if (!is_root()) test::skip_case("root");
  const test::Folder top;
  REQUIRE(::chmod(top.path.c_str(), 0755) == 0);
  const UserGroups user{kStranger, {7}};
  fs::create_directories(top / "real/b");
  fs::create_directories(top / "theirs");
  REQUIRE(::chown((top / "theirs").c_str(), kStranger, 0) == 0);
  fs::create_symlink(top / "real", top / "theirs/link");
  fs::create_symlink("theirs/link", top / "way");
  CHECK_FALSE(exchangeable_by(user, top / "real/b"));
  CHECK(exchangeable_by(user, top / "way/b") == top / "theirs");
  CHECK(exchangeable_by(user, top / "real/../way/b") == top / "theirs");
  fs::create_symlink("loop", top / "loop");
  CHECK(exchangeable_by(user, top / "loop/b"));

  // An access list that grants all rights to the owner (root) and to kStranger, and all but writing to everybody else.
  struct Entry {
    std::uint16_t tag, rights;
    std::uint32_t id;
  };
  struct {
    std::uint32_t version = 2;
    Entry entries[5] = {{1, 7, ~0U}, {2, 7, kStranger}, {4, 5, ~0U}, {16, 7, ~0U}, {32, 5, ~0U}};
  } const list;
  if (::setxattr((top / "real").c_str(), "system.posix_acl_access", &list, sizeof list, 0) != 0)
    test::skip_case("this file system has no access lists");
  CHECK(exchangeable_by(user, top / "real/b") == top / "real");
}

TEST_CASE("a folder that replaces one being copied does not change its owner", "[base]") {
  if (!is_root()) test::skip_case("root");
  const test::Folder top;
  constexpr int kFolders = 300;
  for (int i = 0; i < kFolders; ++i) {
    const fs::path one = top / "from" / std::to_string(i);
    fs::create_directories(one);
    REQUIRE(::chown(one.c_str(), kStranger, 0) == 0);
  }
  for (int round = 0; round < 10; ++round) {
    const fs::path to = top / "to";
    fs::create_directories(to / "keys");
    REQUIRE(::chown(to.c_str(), kStranger, 0) == 0);
    REQUIRE(::chmod((to / "keys").c_str(), 0700) == 0);
    const Fd keys(::open((to / "keys").c_str(), O_PATH | O_CLOEXEC));
    // so that the timestamps of `keys` are older than those of the folders that the copy creates
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::atomic<bool> stop{false};
    std::thread attacker([&] {
      for (int next = 0; !stop && next < kFolders;) {
        const std::string name = std::to_string(next);
        if (::renameat2(AT_FDCWD, (to / name).c_str(), AT_FDCWD, (to / "keys").c_str(), RENAME_EXCHANGE) != 0) continue;
        (void)::renameat2(AT_FDCWD, (to / name).c_str(), AT_FDCWD, (to / "keys").c_str(), RENAME_EXCHANGE);
        ++next;
      }
    });
    const auto copied = opened(top / "from").copy_into(opened(to));
    stop = true;
    attacker.join();
    struct stat status{};
    REQUIRE(::fstatat(keys.get(), "", &status, AT_EMPTY_PATH) == 0);
    CHECK(status.st_uid == 0);
    CHECK((status.st_mode & 0777) == 0700);
    (void)copied;  // copying may fail, if rose noticed the change
    fs::remove_all(to);
  }
}
