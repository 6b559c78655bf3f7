// Translates DWARF location expressions into what a probe at one address can read: registers, memory relative to
// registers, constants. Private to symbols.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <string>
#include <vector>

#include "symbols/machine.h"
#include "symbols/values.h"

namespace rose::symbols {

// Where an object is stored when a thread is at a given address.
struct Stand {
  struct Piece;
  enum class How {
    value,   // the chain yields the object's bits, from bit `shift` on
    memory,  // the chain yields the object's address
    pieces,  // the object is in several pieces, one after the other
    unknown,
  };
  How how = How::unknown;
  Chain chain;
  std::uint8_t shift = 0;
  std::vector<Piece> pieces;
  std::string refused;  // for `unknown`: a short reason

  static Stand nowhere(std::string why);
  static Stand in_register(std::uint8_t number);
  static Stand at(Chain address);
};

struct Stand::Piece {
  Stand stand;
  std::uint64_t bytes = 0;  // size of the piece
};

inline Stand Stand::nowhere(std::string why) { return {How::unknown, {}, 0, {}, std::move(why)}; }
inline Stand Stand::in_register(std::uint8_t number) { return {How::value, {number, {0}}, 0, {}, {}}; }
inline Stand Stand::at(Chain address) { return {How::memory, std::move(address), 0, {}, {}}; }

// Where a part of an object is stored.
[[nodiscard]] Stand part_of(const Stand& whole, std::uint64_t offset, std::uint64_t size);
// Where the object to which a pointer refers is stored.
[[nodiscard]] Stand pointed_to(const Stand& pointer);

// The context in which a location expression is evaluated.
struct Context {
  std::uint64_t address = 0;      // address of the probe, in the file
  bool entry = false;             // the probe is on the first instruction of a function
  Dwarf_CFI* eh_frame = nullptr;  // may be null
  Dwarf_CFI* debug_frame = nullptr;
  const Machine* machine = &machine::kOwn;
  Dwarf_Die* function = nullptr;  // the function to which the frame belongs; may be null
};

// Where a variable or parameter is stored. If it has no location while the thread is at the context's address, the
// result is `unknown`, with the reason "optimized out at that address".
[[nodiscard]] Stand stand_of(Dwarf_Die* variable, const Context& context);

}  // namespace rose::symbols
