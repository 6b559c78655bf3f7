// Finds functions of a binary or shared library by name, glob or source file, with the file offsets that uprobes need.
// Demangles names, reads DWARF, unwinds stacks and locates values. Uses separate debug files for stripped binaries
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
  std::string linkage_name;   // as in the symbol table
  std::uint64_t address = 0;  // virtual address in the file
  std::uint64_t offset = 0;   // file offset of the entry
  // A file offset that every call passes exactly once: the entry, or in Go the instruction after the stack check. In
  // Go, a call that has to enlarge the stack starts again at the entry.
  std::uint64_t probe_offset = 0;
  std::uint64_t size = 0;  // in bytes; 0: unknown
  std::string source;      // path of the source file; "" without DWARF
};

// All functions with code in the file (from .symtab, .dynsym and the debug file), sorted by address, without aliases.
[[nodiscard]] Result<std::vector<Function>> list_functions(const std::filesystem::path& binary,
                                                           bool with_sources = false);

// The inlined copies of functions, with one entry for each copy: the address at which it begins. `size` is 0. Functions
// of library headers are left out. Empty without DWARF; at most kMostInlinedCode. The result for each file is cached.
inline constexpr std::size_t kMostInlinedCode = 20'000;
[[nodiscard]] Result<std::vector<Function>> list_inlined(const std::filesystem::path& binary);

// Whether inlined copies count as functions, too.
enum class Copies { none, inlined };

// True if a name or glob denotes this function. Parameters are optional: both "Raft::append" and "Raft::*" match
// "Raft::append(Entry const&)". Rust hashes ("::h0123456789abcdef") are optional, too.
[[nodiscard]] bool name_matches(std::string_view pattern, const Function& function);

// A fast filter that rejects most functions of a large binary before names are compared in full. It may return true for
// functions that do not match.
[[nodiscard]] bool may_be_named(std::string_view pattern, std::string_view linkage_name, std::string_view name);

// Functions that match one of the names or globs, or that are defined in a source file whose path ends with one of
// `sources`. If a name, glob or source matches nothing, returns an error with similar names.
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

// A function and the file that contains it. find_functions() for several files reads each file once; a pattern or
// source must match in at least one of them.
struct Located {
  std::filesystem::path binary;
  Function function;
};
[[nodiscard]] Result<std::vector<Located>> find_functions(const std::vector<std::filesystem::path>& binaries,
                                                          const std::vector<std::string>& patterns,
                                                          const std::vector<std::string>& sources,
                                                          Copies copies = Copies::none);

// For names that may be missing in this build, such as names from an older profile: the functions that were found, and
// the names that were not.
struct Known {
  std::vector<Located> functions;
  std::vector<std::string> missing;
};
[[nodiscard]] Result<Known> find_known_functions(const std::vector<std::filesystem::path>& binaries,
                                                 const std::vector<std::string>& names, Copies copies = Copies::none);

[[nodiscard]] std::string demangle(std::string_view linkage_name);

}  // namespace rose::symbols
