#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/unix_socket.h"
#include "folder.h"

using namespace rose;

TEST_CASE("sockets are reached at paths of any length") {
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
    struct stat made{};
    CHECK(::lstat(path.c_str(), &made) == 0);
    CHECK(S_ISSOCK(made.st_mode));
    const auto again = unix_address(path);
    REQUIRE(again.has_value());
    const Fd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    CHECK(::connect(client.get(), again->get(), again->size()) == 0);
  }
  for (const std::filesystem::path& path :
       {folder / "none/s", folder / "", folder / "..", deep / std::string(100, 'c')}) {
    INFO(path.string());
    const auto address = unix_address(path);
    REQUIRE_FALSE(address.has_value());
    CHECK(address.error().kind == ErrorKind::input);
  }
}

TEST_CASE("a descriptor is received with its number or not at all") {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  const Fd here(pair[0]);
  Fd there(pair[1]);
  const Fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  REQUIRE(send_descriptor(here.get(), file.get(), 7));
  const Fd arrived = receive_descriptor(there.get(), 7);
  REQUIRE(arrived);
  struct stat one{}, other{};
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

TEST_CASE("descriptors arrive in order with the first byte of their message, or are closed") {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  const Fd here(pair[0]);
  const Fd there(pair[1]);
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Fd zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  const std::array both = {null.get(), zero.get()};
  const auto device = [](const Fd& fd) {
    struct stat info{};
    return ::fstat(fd.get(), &info) == 0 ? info.st_rdev : 0;
  };

  REQUIRE(send_with_descriptors(here.get(), "abc", both) == 3);
  std::array<char, 2> bytes{};
  SentDescriptors sent;
  REQUIRE(receive_with_descriptors(there.get(), bytes, sent) == 2);
  CHECK(std::string_view(bytes.data(), 2) == "ab");
  REQUIRE(sent.count == 2);
  CHECK(device(sent.fds[0]) == device(null));
  CHECK(device(sent.fds[1]) == device(zero));
  REQUIRE(receive_with_descriptors(there.get(), bytes, sent) == 1);
  CHECK(sent.count == 0);
  CHECK_FALSE(sent.fds[0]);

  const std::vector<int> too_many(kMostSentDescriptors + 1, null.get());
  CHECK(send_with_descriptors(here.get(), "abc", too_many) == -1);
  CHECK(errno == EINVAL);

  // If two descriptors arrive where one is expected, neither is accepted, and neither stays open.
  const auto open_ones = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto before = open_ones();
  REQUIRE(send_descriptors(here.get(), both, 7));
  CHECK_FALSE(receive_descriptor(there.get(), 7));
  CHECK(open_ones() == before);
}
