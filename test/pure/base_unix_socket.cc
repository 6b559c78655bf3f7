#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/unix_socket.h"
#include "folder.h"

using namespace rose;

TEST_CASE("sockets are reached by paths of any length") {
  const rose::test::Folder folder;
  const std::filesystem::path deep = folder / std::string(100, 'a') / std::string(100, 'b');
  std::filesystem::create_directories(deep);
  for (const std::filesystem::path& path : {folder / "s", deep / "s"}) {
    INFO(path.string());
    const auto address = unix_address(path);
    REQUIRE(address.has_value());
    const Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(listener.get(), address->get(), address->size()) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    struct stat made {};
    CHECK(::lstat(path.c_str(), &made) == 0);
    CHECK(S_ISSOCK(made.st_mode));
    const auto again = unix_address(path);
    REQUIRE(again.has_value());
    const Fd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    CHECK(::connect(client.get(), again->get(), again->size()) == 0);
  }
  for (const std::filesystem::path& path :
       {folder / "none/s", folder / "", folder / "..",
        deep / std::string(100, 'c')}) {
    INFO(path.string());
    const auto address = unix_address(path);
    REQUIRE_FALSE(address.has_value());
    CHECK(address.error().kind == ErrorKind::input);
  }
}

TEST_CASE("a descriptor arrives with its word, or not at all") {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  const Fd here(pair[0]);
  Fd there(pair[1]);
  const Fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  REQUIRE(send_descriptor(here.get(), file.get(), 7));
  const Fd arrived = receive_descriptor(there.get(), 7);
  REQUIRE(arrived);
  struct stat one {}, other {};
  REQUIRE(::fstat(file.get(), &one) == 0);
  REQUIRE(::fstat(arrived.get(), &other) == 0);
  CHECK(one.st_rdev == other.st_rdev);
  CHECK((::fcntl(arrived.get(), F_GETFD) & FD_CLOEXEC) != 0);

  REQUIRE(send_descriptor(here.get(), file.get(), 8));
  CHECK_FALSE(receive_descriptor(there.get(), 7));
  REQUIRE(::send(here.get(), "word", 4, 0) == 4);
  CHECK_FALSE(receive_descriptor(there.get(), 7));
  there.reset();
  CHECK_FALSE(send_descriptor(here.get(), file.get(), 7));
}
