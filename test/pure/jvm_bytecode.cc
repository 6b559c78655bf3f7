#include <catch2/catch.hpp>
#include <vector>

#include "jvm/bytecode.h"

using namespace rose::jvm;

using Bytes = std::vector<unsigned char>;

TEST_CASE("the sizes of bytecode instructions are known") {
  CHECK(instruction_size(Bytes{0x00}, 0) == 1);                    // nop
  CHECK(instruction_size(Bytes{0x10, 1}, 0) == 2);                 // bipush
  CHECK(instruction_size(Bytes{0xb8, 0, 1}, 0) == 3);              // invokestatic
  CHECK(instruction_size(Bytes{0xb9, 0, 1, 1, 0}, 0) == 5);        // invokeinterface
  CHECK(instruction_size(Bytes{0xba, 0, 1, 0, 0}, 0) == 5);        // invokedynamic
  CHECK(instruction_size(Bytes{0xc4, 0x15, 0, 1}, 0) == 4);        // wide iload
  CHECK(instruction_size(Bytes{0xc4, 0x84, 0, 1, 0, 1}, 0) == 6);  // wide iinc
  // tableswitch 0..1 at offset 1: padding up to offset 4, then the default target, the lowest and the highest value,
  // and two targets
  const Bytes table{0x00, 0xaa, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3, 0xff, 0xff, 0xff, 0xff};
  CHECK(instruction_size(table, 1) == 23);
  CHECK(jumps_of(table, 1).targets == 3);
  CHECK_FALSE(jumps_of(table, 1).goes_on);
  CHECK(jump_target(table, 1, 0) == 10);
  CHECK(jump_target(table, 1, 1) == 4);
  CHECK(jump_target(table, 1, 2) == 0);
  const Bytes lookup{0xab, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 20};
  CHECK(instruction_size(lookup, 0) == 20);
  CHECK(jump_target(lookup, 0, 0) == 8);
  CHECK(jump_target(lookup, 0, 1) == 20);
}

TEST_CASE("the targets of bytecode jumps are known") {
  const Bytes back{0x00, 0x00, 0x9d, 0xff, 0xfe};  // ifgt -2
  CHECK(jumps_of(back, 2).targets == 1);
  CHECK(jumps_of(back, 2).goes_on);
  CHECK(jump_target(back, 2, 0) == 0);
  CHECK_FALSE(jumps_of(Bytes{0xa7, 0, 3}, 0).goes_on);  // goto
  CHECK(jumps_of(Bytes{0xb1}, 0).targets == 0);         // return
  CHECK_FALSE(jumps_of(Bytes{0xb1}, 0).goes_on);
}

TEST_CASE("an offset is recognised as an instruction's beginning or not") {
  const Bytes code{0x1a, 0x10, 5, 0xb8, 0, 1, 0xb1};
  for (const std::size_t at : {0, 1, 3, 6}) CHECK(begins_at(code, at));
  for (const std::size_t at : {2, 4, 5, 7, 100}) CHECK_FALSE(begins_at(code, at));
}

TEST_CASE("damaged bytecode ends the reading") {
  for (const Bytes& code : {Bytes{}, Bytes{0xb8, 0}, Bytes{0xff}, Bytes{0xaa, 0, 0, 0}, Bytes{0xc4},
                            Bytes{0xaa, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff},
                            Bytes{0xab, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}})
    CHECK(instruction_size(code, 0) == 0);
}
