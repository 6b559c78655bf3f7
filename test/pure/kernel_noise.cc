#include "kernel/noise.h"

#include <catch2/catch.hpp>
#include <cerrno>

using namespace rose;
using namespace rose::kernel;

namespace {

bool has(const NoiseTable& table, const char* call, int err) {
  return table.expected[static_cast<std::size_t>(find_syscall(call)->number)].test(static_cast<std::size_t>(err));
}
bool nonblocking(const NoiseTable& table, const char* call) {
  return table.again_when_nonblocking.test(static_cast<std::size_t>(find_syscall(call)->number));
}

}  // namespace

TEST_CASE("the built-in list of expected failures contains common ones only", "[noise]") {
  const NoiseTable table = builtin_noise();
  CHECK(has(table, "futex", ETIMEDOUT));
  CHECK(has(table, "connect", EINPROGRESS));
  CHECK_FALSE(has(table, "connect", ETIMEDOUT));
  CHECK_FALSE(has(table, "read", EAGAIN));
  CHECK(nonblocking(table, "read"));
  CHECK_FALSE(has(table, "read", EIO));
  bool found = false;
  for (const std::string& line : describe_noise(table))
    found |= line.starts_with("EINTR:") && line.find(" poll") != std::string::npos;
  CHECK(found);
}

TEST_CASE("noise rules change the list in order", "[noise]") {
  const auto table = noise_table({"stat:ENOENT", "-read:EAGAIN", "-futex:EINTR"});
  REQUIRE(table);
  CHECK(has(*table, "stat", ENOENT));
  CHECK_FALSE(nonblocking(*table, "read"));
  CHECK(nonblocking(*table, "write"));
  CHECK_FALSE(has(*table, "futex", EINTR));
  CHECK(has(*table, "futex", EAGAIN));

  const auto cleared = noise_table({"none", "read:EAGAIN"});
  REQUIRE(cleared);
  CHECK(has(*cleared, "read", EAGAIN));  // a rule that names a call also applies to blocking descriptors
  CHECK_FALSE(has(*cleared, "futex", EAGAIN));
  CHECK(describe_noise(*cleared).size() == 1);

  const auto all = noise_table({"*:ENOENT", "-open*:ENOENT"});
  REQUIRE(all);
  CHECK(has(*all, "stat", ENOENT));
  CHECK_FALSE(has(*all, "openat", ENOENT));
}

TEST_CASE("noise rules with unknown names are refused", "[noise]") {
  const auto refused = [](const char* rule) {
    const auto table = noise_table({rule});
    INFO(rule);
    REQUIRE_FALSE(table);
    CHECK(table.error().kind == ErrorKind::usage);
    CHECK_FALSE(table.error().hint.empty());
    return table.error();
  };
  CHECK(refused("opneat:ENOENT").hint == "did you mean 'openat'?");
  CHECK(refused("openat:ENOENTT").hint == "did you mean 'ENOENT'?");
  (void)refused("openat");
  (void)refused(":ENOENT");
  (void)refused("openat:");
  (void)refused("zz*:ENOENT");
  (void)refused("openat:E4000");
  (void)refused("-openat:ENOENT");  // refused, because the list contains no such entry
}
