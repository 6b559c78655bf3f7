// Finds functions of a program or shared library by name, glob or source file, with the file offsets that uprobes need.
// Demangles names, reads DWARF, unwinds stacks and locates values. For stripped programs, uses separate debug files
// (.gnu_debuglink, build-id below /usr/lib/debug). Knows nothing about processes; observe and inject attach the probes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rose::symbols {

class ElfFile;

struct Function {
  std::string name;           // demangled, as people write it: "Raft::append(Entry const&)"
  std::string linkage_name;   // the name as in the symbol table
  std::uint64_t address = 0;  // virtual address in the file
  std::uint64_t offset = 0;   // file offset of the entry
  // A file offset that every call passes exactly once. It is the entry or, in Go, the instruction after the stack
  // check, because in Go a call that has to enlarge the stack starts again at the entry.
  std::uint64_t probe_offset = 0;
  std::uint64_t size = 0;  // in bytes; 0: unknown
  std::string source;      // path of the source file; "" without DWARF
};

// All functions that have code in the file (from .symtab, .dynsym and the debug file), sorted by address, without
// aliases.
[[nodiscard]] Result<std::vector<Function>> list_functions(const std::filesystem::path& binary,
                                                           bool with_sources = false);

// The inlined copies of functions, at most kMostInlinedCode. There is one entry for each copy, with the address at
// which the copy begins; `size` is 0. Copies of functions from library headers are left out. Empty without DWARF. The
// result for each file is cached.
inline constexpr std::size_t kMostInlinedCode = 20'000;
[[nodiscard]] Result<std::vector<Function>> list_inlined(const std::filesystem::path& binary);

// Whether inlined copies count as functions, too.
enum class Copies { none, inlined };

// True if a name or a glob denotes this function. Parameters are optional: "Raft::append" and "Raft::*" both match
// "Raft::append(Entry const&)". Rust's hashes ("::h0123456789abcdef") are optional, too.
[[nodiscard]] bool name_matches(std::string_view pattern, const Function& function);

// A fast filter. It rejects most functions of a large program before names are compared in full, and may return true
// for functions that do not match.
[[nodiscard]] bool may_be_named(std::string_view pattern, std::string_view linkage_name, std::string_view name);

// The functions that match one of the names or globs, or are defined in a source file whose path ends with one of
// `sources`. If a name, glob or source matches nothing, returns an error that contains similar names.
[[nodiscard]] Result<std::vector<Function>> find_functions(const std::filesystem::path& binary,
                                                           const std::vector<std::string>& patterns,
                                                           const std::vector<std::string>& sources);

// The functions of one file, for repeated lookups.
class FunctionTable {
 public:
  [[nodiscard]] static FunctionTable of(const ElfFile& file, const std::filesystem::path& binary);
  FunctionTable(FunctionTable&&) noexcept;
  FunctionTable& operator=(FunctionTable&&) noexcept;
  ~FunctionTable();
  [[nodiscard]] Result<std::vector<Function>> find(const std::string& pattern);  // like find_functions()
  [[nodiscard]] std::vector<Function> all() const;                               // like list_functions()

 private:
  struct Held;
  explicit FunctionTable(std::unique_ptr<Held> held);
  std::unique_ptr<Held> held_;
};

// A function, and the file that contains it. The find_functions() for several files reads each file once; a pattern or
// source needs to match in only one of the files.
struct Located {
  std::filesystem::path binary;
  Function function;
};
[[nodiscard]] Result<std::vector<Located>> find_functions(const std::vector<std::filesystem::path>& binaries,
                                                          const std::vector<std::string>& patterns,
                                                          const std::vector<std::string>& sources,
                                                          Copies copies = Copies::none);

// For names that may be missing in this build, such as those from an older profile: the functions that were found, and
// the names that were not found.
struct Known {
  std::vector<Located> functions;
  std::vector<std::string> missing;
};
[[nodiscard]] Result<Known> find_known_functions(const std::vector<std::filesystem::path>& binaries,
                                                 const std::vector<std::string>& names, Copies copies = Copies::none);

[[nodiscard]] std::string demangle(std::string_view linkage_name);

}  // namespace rose::symbols
