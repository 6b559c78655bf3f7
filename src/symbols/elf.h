// One ELF file with its debug file: symbols, segments, and which source file an address comes from.
// Every file is taken for hostile. Private to this room.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "symbols/gopclntab.h"

struct Elf;

namespace rose::symbols {

struct RawSymbol {
  std::string linkage_name;
  std::uint64_t address = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  int binding = 0;          // 0 global, 1 weak, 2 local: smaller is better
  std::uint64_t check = 0;  // bytes of Go's stack check at its entry
};

// What the dynamic linker puts at an address: a function of another file by name, or one of this file.
struct Slot {
  std::string name;           // "" none
  std::uint64_t address = 0;  // in this file; 0: elsewhere
};

class ElfFile {
 public:
  // ErrorKind::input: missing, not an x86-64 program or shared library, damaged headers.
  [[nodiscard]] static Result<ElfFile> open(const std::filesystem::path& path);
  ElfFile(ElfFile&&) noexcept = default;
  ElfFile& operator=(ElfFile&&) noexcept = default;

  // FUNC symbols with code in the file, from .symtab, .dynsym, the debug file and MiniDebugInfo; by address, equal
  // (address, name) pairs once. What no symbol names is known from Go's .gopclntab, where there is one.
  [[nodiscard]] std::vector<RawSymbol> functions() const;

  // Source file of each function entry that DWARF or Go's .gopclntab knows; empty without either.
  [[nodiscard]] std::map<std::uint64_t, std::string> sources() const;

  // Where code finds the addresses it calls through (.got and the like), by the slot's address.
  [[nodiscard]] std::map<std::uint64_t, Slot> slots() const;

  // Bytes of code at an address; fewer, or none, where the file ends before.
  [[nodiscard]] std::vector<std::uint8_t> code(std::uint64_t address, std::uint64_t size) const;

  // Of Go, as its table of functions tells.
  [[nodiscard]] bool is_go() const { return !go_.empty(); }

  // Where in the file the code at an address stands; nullopt: it is no code.
  [[nodiscard]] std::optional<std::uint64_t> file_offset(std::uint64_t address) const;

  // For libdw: the file, and its debug file (nullptr: none), for as long as this lives.
  [[nodiscard]] Elf* handle() const { return elf_.get(); }
  [[nodiscard]] Elf* debug_handle() const { return debug_.get(); }

  // The separate debug file in use; "" none.
  [[nodiscard]] const std::filesystem::path& debug_path() const { return debug_path_; }

 private:
  struct Segment {
    std::uint64_t address, offset, size;
  };
  struct ElfEnd {
    void operator()(Elf* elf) const;
  };
  ElfFile() = default;
  void add_symbols(Elf* elf, std::vector<RawSymbol>& symbols) const;
  void open_debug_file(const std::filesystem::path& path);
  void open_mini_debug_info();
  void read_go_table();
  [[nodiscard]] std::uint64_t go_text(const GoHeader& header, std::uint64_t table) const;
  [[nodiscard]] std::uint64_t stack_check(std::uint64_t offset) const;

  Fd fd_;
  Fd debug_fd_;
  std::unique_ptr<Elf, ElfEnd> elf_;
  std::unique_ptr<Elf, ElfEnd> debug_;
  std::vector<char> mini_bytes_;
  std::unique_ptr<Elf, ElfEnd> mini_;  // over mini_bytes_
  std::filesystem::path debug_path_;
  std::vector<Segment> segments_;
  std::vector<GoFunction> go_;
};

// Whether libdw may read this file's strings: it looks for their ends without looking for the end of their section.
[[nodiscard]] bool strings_end(Elf* elf);

// Where a file's debug file may be, best first; `link` from .gnu_debuglink, may be "".
[[nodiscard]] std::vector<std::filesystem::path> debug_candidates(const std::filesystem::path& binary,
                                                                  std::span<const std::uint8_t> build_id,
                                                                  const std::string& link);

}  // namespace rose::symbols
