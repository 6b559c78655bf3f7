// DWARF's location expressions, as what a probe at one address can read: registers, memory by them, constants. Private
// to this room.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <string>
#include <vector>

#include "symbols/values.h"

namespace rose::symbols {

// Where an object stands when a thread is at an address.
struct Stand {
  enum class How {
    value,   // the chain comes to its bits, from `shift` on
    memory,  // the chain comes to its address
    pieces,  // one behind the other
    unknown,
  };
  How how = How::unknown;
  Chain chain;
  std::uint8_t shift = 0;
  std::vector<std::pair<Stand, std::uint64_t>> pieces;  // with their bytes
  std::string refused;                                  // unknown: why, in a few words

  static Stand nowhere(std::string why) { return {How::unknown, {}, 0, {}, std::move(why)}; }
  static Stand in_register(std::uint8_t number) { return {How::value, {number, {0}}, 0, {}, {}}; }
  static Stand at(Chain address) { return {How::memory, std::move(address), 0, {}, {}}; }
};

// Where a part of it stands.
[[nodiscard]] Stand part_of(const Stand& whole, std::uint64_t offset, std::uint64_t size);
// Where that stands which it, a pointer, points to.
[[nodiscard]] Stand pointed_to(const Stand& pointer);

// What is needed to know of an address beside the expression.
struct Context {
  std::uint64_t address = 0;      // of the probe, in the file
  bool entry = false;             // a function's first instruction
  Dwarf_CFI* eh_frame = nullptr;  // may be null
  Dwarf_CFI* debug_frame = nullptr;
  Dwarf_Die* function = nullptr;  // whose frame it is; may be null
};

// Of a variable or parameter. Unknown without any location there: "optimized out at that address".
[[nodiscard]] Stand stand_of(Dwarf_Die* variable, const Context& context);

}  // namespace rose::symbols
