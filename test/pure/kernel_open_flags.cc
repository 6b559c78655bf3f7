#include <fcntl.h>

#include <catch2/catch.hpp>
#include <random>

#include "kernel/open_flags.h"
#include "kernel/uring.h"

using namespace rose::kernel;

TEST_CASE("open flags are printed as text", "[open-flags]") {
  struct Case {
    std::uint32_t flags;
    const char* text;
  };
  const Case cases[] = {
      {O_RDONLY, "O_RDONLY"},
      {O_WRONLY | O_CREAT | O_TRUNC, "O_WRONLY|O_CREAT|O_TRUNC"},
      {O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, "O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC"},
      {O_WRONLY | O_SYNC, "O_WRONLY|O_SYNC"},
      {O_WRONLY | O_DSYNC, "O_WRONLY|O_DSYNC"},
      {O_RDWR | 020200000, "O_RDWR|O_TMPFILE"},
      {O_DIRECTORY, "O_RDONLY|O_DIRECTORY"},
      {3, "O_ACCMODE"},
      {0x80000000U | O_CREAT, "O_RDONLY|O_CREAT|0x80000000"},
      {0100000, "O_RDONLY|O_LARGEFILE"},
  };
  for (const auto& [flags, text] : cases) {
    CHECK(open_flags_text(flags) == text);
    CHECK(open_flags_number(text) == flags);
  }
  CHECK(open_flags_number("O_CREAT|O_WRONLY|0x40|0x80000000") == (O_WRONLY | O_CREAT | 0x80000000U));
  for (const char* text :
       {"", "|", "O_CREAT|", "o_creat", "0x", "0xg", "0x100000000", "64", "O_CREAT O_EXCL", "-0x1"}) {
    INFO(text);
    CHECK_FALSE(open_flags_number(text));
  }
  std::mt19937 rng(1);
  for (int i = 0; i < 10000; ++i) {
    const auto flags = static_cast<std::uint32_t>(rng());
    REQUIRE(open_flags_number(open_flags_text(flags)) == flags);
  }
}

TEST_CASE("io_uring operations have names", "[open-flags]") {
  CHECK(uring_operation_name(22) == "READ");
  CHECK(uring_operation_name(0) == "NOP");
  CHECK(uring_operation_name(62) == "PIPE");
  CHECK(uring_operation_name(63) == "op_63");
  for (int i = 0; i <= 255; ++i) CHECK(uring_operation_number(uring_operation_name(i)) == i);
  for (const char* text : {"", "read", "op_", "op_256", "op_-1", "op_1x"}) CHECK_FALSE(uring_operation_number(text));
}

TEST_CASE("open flags in dumps are independent of the processor", "[open-flags]") {
  for (int bit = 0; bit < 32; ++bit) {
    const std::uint32_t flag = 1U << bit;
    CAPTURE(flag);
    CHECK(native_open_flags(portable_open_flags(flag)) == flag);
  }
  CHECK(portable_open_flags(O_DIRECTORY | O_CREAT) == (0200000U | 0100U));
  CHECK(portable_open_flags(O_NOFOLLOW) == 0400000U);
  CHECK(open_flags_text(native_open_flags(0200000U)) == "O_RDONLY|O_DIRECTORY");
}
