// The table that Go's runtime unwinds by (.gopclntab): every function's name, entry and source file. It stays in
// stripped programs. Pure, and every byte of it is taken for hostile. Private to this room.
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
  std::string source;  // "" unknown
  std::uint64_t address = 0;
  std::uint64_t size = 0;
};

struct GoHeader {
  int version = 0;  // 2, 16, 18 or 20: the Go 1.x that brought this layout
  std::uint64_t functions = 0;
  std::uint64_t text = 0;   // what entries are relative to; 0 unknown or (1.2, 1.16) not needed
  std::uint64_t first = 0;  // entry of the first function and end of the last, as they stand in the table
  std::uint64_t last = 0;
  [[nodiscard]] bool relative() const { return version >= 18; }
};

// Does a table begin here? Only 64-bit little-endian ones for x86.
[[nodiscard]] std::optional<GoHeader> go_header(std::span<const std::uint8_t> table);

// Where in `bytes` tables may begin (a quick look at the magic; go_header decides).
[[nodiscard]] std::vector<std::size_t> go_table_candidates(std::span<const std::uint8_t> bytes);

// All functions. `text`: the address that entries are relative to (since Go 1.18). Stops at the first thing
// that makes no sense; what was read until then is given.
[[nodiscard]] std::vector<GoFunction> go_functions(std::span<const std::uint8_t> table, std::uint64_t text,
                                                   bool with_sources);

}  // namespace rose::symbols
