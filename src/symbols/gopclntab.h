// Reads the table with which Go's runtime unwinds stacks (.gopclntab): the name, entry and source file of every
// function. Stripped programs contain it, too. Pure; the bytes may be hostile. Private to symbols.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rose::symbols {

struct GoFunction {
  std::string name;    // as the runtime prints it: "go.etcd.io/etcd/raft.(*raft).becomeLeader"
  std::string source;  // "" if unknown
  std::uint64_t address = 0;
  std::uint64_t size = 0;
};

struct GoHeader {
  int version = 0;  // the Go 1.x release that introduced this layout: 2, 16, 18 or 20
  std::uint64_t functions = 0;
  std::uint64_t text = 0;   // base of the entries; 0: unknown, or not needed (1.2, 1.16)
  std::uint64_t first = 0;  // entry of the first function, and end of the last one, as the table contains them
  std::uint64_t last = 0;
  [[nodiscard]] bool relative() const { return version >= 18; }
};

// Returns the header if a table begins here. Accepts only tables for 64-bit little-endian machines, such as x86-64 and
// arm64.
[[nodiscard]] std::optional<GoHeader> go_header(std::span<const std::uint8_t> table);

// The offsets in `bytes` at which the magic number occurs. go_header() decides whether a table begins there.
[[nodiscard]] std::vector<std::size_t> go_table_candidates(std::span<const std::uint8_t> bytes);

// All functions. `text` is the base address of the entries (since Go 1.18). Stops at the first inconsistency, and
// returns what was read before it.
[[nodiscard]] std::vector<GoFunction> go_functions(std::span<const std::uint8_t> table, std::uint64_t text,
                                                   bool with_sources);

}  // namespace rose::symbols
