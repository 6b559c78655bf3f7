// Reads one ELF file and its debug file: symbols, segments, and the source file of an address. The files may be
// hostile. Private to symbols.
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
#include "symbols/machine.h"

struct Elf;

namespace rose::symbols {

struct RawSymbol {
  std::string linkage_name;
  std::uint64_t address = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  int binding = 0;          // 0: global, 1: weak, 2: local; the smallest is preferred
  std::uint64_t check = 0;  // length of Go's stack check at the entry, in bytes; 0: none
};

// What the dynamic linker stores in a slot: the address of a function. A function in another file is known by its name,
// and one in this file by its address.
struct Slot {
  std::string name;           // "" if the function has no name
  std::uint64_t address = 0;  // address in this file; 0: the function is in another file
};

class ElfFile {
 public:
  // Fails with ErrorKind::input if the file is missing, is no program or shared library for x86-64 or arm64, or has
  // damaged headers.
  [[nodiscard]] static Result<ElfFile> open(const std::filesystem::path& path);
  ElfFile(ElfFile&&) noexcept = default;
  ElfFile& operator=(ElfFile&&) noexcept = default;

  [[nodiscard]] const Machine& machine() const { return *machine_; }

  // The function symbols that have code in the file, from .symtab, .dynsym, the debug file and MiniDebugInfo, sorted by
  // address and without duplicates. If the file has Go's .gopclntab, functions without a symbol are taken from it.
  [[nodiscard]] std::vector<RawSymbol> functions() const;

  // The source file of each function entry, from DWARF or Go's .gopclntab. Empty if the file has neither.
  [[nodiscard]] std::map<std::uint64_t, std::string> sources() const;

  // The slots through which code makes indirect calls (.got and similar), by address.
  [[nodiscard]] std::map<std::uint64_t, Slot> slots() const;

  // The types that implement Go's interface `error` ("*fs.PathError"). Key: the first word of an interface value that
  // contains the type. Empty if the program is stripped or is not a Go program.
  [[nodiscard]] std::map<std::int64_t, std::string> go_error_types() const;

  // The bytes of code at an address. If the file ends earlier, returns fewer than `size` bytes.
  [[nodiscard]] std::vector<std::uint8_t> code(std::uint64_t address, std::uint64_t size) const;

  // True if the file has Go's function table.
  [[nodiscard]] bool is_go() const { return !go_.empty(); }

  // The file offset of the code at an address; nullopt if there is no code.
  [[nodiscard]] std::optional<std::uint64_t> file_offset(std::uint64_t address) const;

  // Handles for libdw, which are valid as long as this object exists. debug_handle() is nullptr if there is no debug
  // file.
  [[nodiscard]] Elf* handle() const { return elf_.get(); }
  [[nodiscard]] Elf* debug_handle() const { return debug_.get(); }

  // The path of the separate debug file that is used; "" if there is none.
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
  const Machine* machine_ = &machine::kOwn;
  Fd debug_fd_;
  std::unique_ptr<Elf, ElfEnd> elf_;
  std::unique_ptr<Elf, ElfEnd> debug_;
  std::vector<char> mini_bytes_;
  std::unique_ptr<Elf, ElfEnd> mini_;  // reads from mini_bytes_
  std::filesystem::path debug_path_;
  std::vector<Segment> segments_;
  std::vector<GoFunction> go_;
};

// True if libdw can read this file's debug information safely: its strings are terminated, its compressed sections do
// not expand to an excessive size, and an alternate debug file, which libdw would open by itself, is in the
// distribution's folder.
[[nodiscard]] bool is_safe_to_read(Elf* elf);

// The paths at which the debug file may be, the best one first. `link` comes from .gnu_debuglink and may be "".
[[nodiscard]] std::vector<std::filesystem::path> debug_candidates(const std::filesystem::path& binary,
                                                                  std::span<const std::uint8_t> build_id,
                                                                  const std::string& link);

}  // namespace rose::symbols
