// ELF and DWARF: functions of a binary or shared library, by name, glob or source file, with the
// file offsets that uprobes need. Stripped files are looked up in their separate debug files
// (.gnu_debuglink, build-id under /usr/lib/debug, debugaltlink not needed).
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
  // File offset that every call passes once: the entry, but in Go behind the stack check, for a call that had to
  // make the stack larger enters anew.
  std::uint64_t probe_offset = 0;
  std::uint64_t size = 0;  // bytes; 0 unknown
  std::string source;      // path of the source file; "" without DWARF
};

// All functions with code in the file (FUNC symbols of .symtab, .dynsym and the debug file), by address, aliases once.
[[nodiscard]] Result<std::vector<Function>> list_functions(const std::filesystem::path& binary,
                                                           bool with_sources = false);

// Does a name or glob mean this function? Parameters are optional: "Raft::append" and "Raft::*"
// both match "Raft::append(Entry const&)". Rust hashes ("::h0123456789abcdef") are optional too.
[[nodiscard]] bool name_matches(std::string_view pattern, const Function& function);

// A quick no for most of a large binary's functions, before names are compared in full.
[[nodiscard]] bool may_be_named(std::string_view pattern, std::string_view linkage_name, std::string_view name);

// Functions that match any of the names or globs, or are defined in a source file whose path ends with one of
// `sources`. A pattern or source that matches nothing is an error that suggests near names.
[[nodiscard]] Result<std::vector<Function>> find_functions(const std::filesystem::path& binary,
                                                           const std::vector<std::string>& patterns,
                                                           const std::vector<std::string>& sources);

// The functions of one file, for who looks for one after the other.
class FunctionTable {
 public:
  [[nodiscard]] static FunctionTable of(const ElfFile& file, const std::filesystem::path& binary);
  FunctionTable(FunctionTable&&) noexcept;
  FunctionTable& operator=(FunctionTable&&) noexcept;
  ~FunctionTable();
  [[nodiscard]] Result<std::vector<Function>> find(const std::string& pattern);  // as find_functions()
  [[nodiscard]] std::vector<Function> all() const;                               // as list_functions()

 private:
  struct Held;
  explicit FunctionTable(std::unique_ptr<Held> held);
  std::unique_ptr<Held> held_;
};

// The same over several files: each is read once, and a pattern or source must match in one of them.
struct Located {
  std::filesystem::path binary;
  Function function;
};
[[nodiscard]] Result<std::vector<Located>> find_functions(const std::vector<std::filesystem::path>& binaries,
                                                          const std::vector<std::string>& patterns,
                                                          const std::vector<std::string>& sources);

// Names that this build may lack, such as those that were learnt from another: what is found, and which were not.
struct Known {
  std::vector<Located> functions;
  std::vector<std::string> missing;
};
[[nodiscard]] Result<Known> find_known_functions(const std::vector<std::filesystem::path>& binaries,
                                                 const std::vector<std::string>& names);

[[nodiscard]] std::string demangle(std::string_view linkage_name);

}  // namespace rose::symbols
