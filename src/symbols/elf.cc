#include "symbols/elf.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <tuple>

#include "base/file.h"
#include "symbols/go_prologue.h"
#include "symbols/mini_debug_info.h"

namespace rose::symbols {
namespace {

constexpr int kMostDieDepth = 48;                // deepest nesting of scopes that contain functions
constexpr std::uint64_t kMostDies = 50'000'000;  // most DIEs that are visited in a file
constexpr std::size_t kMostNameBytes = 65536;
constexpr std::size_t kMostErrorTypes = 4096;
constexpr std::size_t kMostSlots = 4'000'000;
// most bytes that are read at once, which is more than any function has
constexpr std::uint64_t kMostCodeBytes = std::uint64_t{1} << 20;

// Opens only regular files. With a pipe, a folder or an empty file, libelf would block or read nonsense.
Result<Fd> open_program(const std::filesystem::path& path) {
  Fd fd = open_regular(path);
  if (fd) return fd;
  if (errno == EINVAL)
    return fail(ErrorKind::input, fmt::format("{}: not a regular file", path.native()),
                "name an ELF program or shared library");
  return fail_errno(ErrorKind::input, path.native(), errno);
}

std::span<const std::uint8_t> bytes_of(Elf_Scn* section) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || data->d_buf == nullptr) return {};
  return {static_cast<const std::uint8_t*>(data->d_buf), data->d_size};
}

std::vector<std::uint8_t> build_id(Elf* elf) {
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_NOTE) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) continue;
    GElf_Nhdr note;
    std::size_t name_at = 0;
    std::size_t desc_at = 0;
    std::size_t next = 0;
    for (std::size_t at = 0; (next = gelf_getnote(data, at, &note, &name_at, &desc_at)) > at; at = next) {
      const auto* bytes = static_cast<const std::uint8_t*>(data->d_buf);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz >= 2 && note.n_descsz <= 64 &&
          std::memcmp(bytes + name_at, "GNU", 4) == 0) {
        return {bytes + desc_at, bytes + desc_at + note.n_descsz};
      }
    }
  }
  return {};
}

struct DebugLink {
  std::string name;
  std::uint32_t crc = 0;
};

DebugLink debug_link(Elf* elf) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return {};
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name == nullptr || std::strcmp(name, ".gnu_debuglink") != 0) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) return {};
    const auto* text = static_cast<const char*>(data->d_buf);
    const std::size_t length = ::strnlen(text, data->d_size);
    const std::size_t crc_at = (length + 4) & ~std::size_t{3};
    if (length == 0 || crc_at + 4 > data->d_size) return {};
    DebugLink link;
    link.name.assign(text, length);
    // If the name could contain a slash, the file could direct rose to any path.
    if (link.name.find('/') != std::string::npos || link.name == "." || link.name == "..") return {};
    std::memcpy(&link.crc, text + crc_at, 4);
    return link;
  }
  return {};
}

// The CRC-32 of a file as .gnu_debuglink contains it (zlib's polynomial).
std::optional<std::uint32_t> file_crc(int fd) {
  static const std::vector<std::uint32_t> table = [] {
    std::vector<std::uint32_t> made(256);
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xedb88320U ^ (c >> 1) : c >> 1;
      made[i] = c;
    }
    return made;
  }();
  std::uint32_t crc = 0xffffffffU;
  std::vector<std::uint8_t> buffer(1 << 16);
  off_t at = 0;
  for (;;) {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), at);
    if (got < 0) return std::nullopt;
    if (got == 0) return ~crc;
    for (ssize_t i = 0; i < got; ++i) {
      crc = table[(crc ^ buffer[static_cast<std::size_t>(i)]) & 0xff] ^ (crc >> 8);
    }
    at += got;
  }
}

// Collects the entry address and the source file of every subprogram with code.
class SourceWalk {
 public:
  explicit SourceWalk(std::map<std::uint64_t, std::string>& found) : found_(found) {}

  void unit(Dwarf_Die& cu) {
    cu_ = cu;
    const char* name = dwarf_diename(&cu);
    unit_name_ = name != nullptr ? name : "";
    children(cu, 0);
  }

 private:
  void children(Dwarf_Die& parent, int depth) {
    if (depth > kMostDieDepth) return;
    Dwarf_Die die;
    if (dwarf_child(&parent, &die) != 0) return;
    do {
      if (++seen_ > kMostDies) return;
      switch (dwarf_tag(&die)) {
        case DW_TAG_subprogram:
          subprogram(die);
          children(die, depth + 1);  // finds nested functions, and members of local classes
          break;
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
        case DW_TAG_enumeration_type:  // in Rust, the impl block of an enum contains functions
        case DW_TAG_lexical_block: children(die, depth + 1); break;
        default: break;
      }
    } while (dwarf_siblingof(&die, &die) == 0);
  }

  void subprogram(Dwarf_Die& die) {
    Dwarf_Addr entry = 0;
    const bool has_entry = dwarf_entrypc(&die, &entry) == 0;
    // A function that is split into a hot and a cold part has several ranges. The symbols show which range is which
    // part.
    std::vector<Dwarf_Addr> entries;
    if (has_entry && entry != 0) entries.push_back(entry);
    Dwarf_Addr base = 0;
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    if (dwarf_hasattr(&die, DW_AT_ranges) != 0) {
      ptrdiff_t at = 0;
      for (int i = 0; i < 16 && (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0; ++i) {
        if (begin != 0) entries.push_back(begin);
      }
    }
    if (entries.empty()) return;
    std::string file;
    if (const char* declared = dwarf_decl_file(&die); declared != nullptr) {
      file = declared;
    } else if (Dwarf_Line* line = dwarf_getsrc_die(&cu_, entries.front()); line != nullptr) {
      const char* source = dwarf_linesrc(line, nullptr, nullptr);
      if (source != nullptr) file = source;
    }
    if (file.empty()) file = unit_name_;
    if (file.empty() || file.size() > kMostNameBytes) return;
    for (const Dwarf_Addr address : entries) found_.emplace(address, file);
  }

  std::map<std::uint64_t, std::string>& found_;
  Dwarf_Die cu_ = {};
  std::string unit_name_;
  std::uint64_t seen_ = 0;
};

// `without_go` skips Go's units, because Go's own table has already supplied their sources.
void add_sources(Elf* elf, bool without_go, std::map<std::uint64_t, std::string>& found) {
  if (!is_safe_to_read(elf)) return;
  const std::unique_ptr<Dwarf, decltype(&dwarf_end)> dwarf(dwarf_begin_elf(elf, DWARF_C_READ, nullptr), dwarf_end);
  if (!dwarf) return;
  SourceWalk walk(found);
  Dwarf_CU* unit = nullptr;
  Dwarf_Half version = 0;
  std::uint8_t type = 0;
  Dwarf_Die die;
  Dwarf_Die sub_die;
  while (dwarf_get_units(dwarf.get(), unit, &unit, &version, &type, &die, &sub_die) == 0) {
    if (without_go && dwarf_srclang(&die) == DW_LANG_Go) continue;
    if (type == DW_UT_compile || type == DW_UT_partial) {
      walk.unit(die);
    } else if (type == DW_UT_skeleton && sub_die.addr != nullptr) {
      walk.unit(sub_die);
    }
  }
}

// What the loader writes to a word.
enum class Relocation {
  moved,     // an address in this file
  resolved,  // the address that a function of this file returns
  symbol,    // the address of a symbol
  other,
};

Relocation meaning_of(const Elf64_Rela& rela, const Machine& machine) {
  const auto type = ELF64_R_TYPE(rela.r_info);
  if (machine.elf == EM_AARCH64) {
    if (type == R_AARCH64_RELATIVE) return Relocation::moved;
    if (type == R_AARCH64_IRELATIVE) return Relocation::resolved;
    return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_ABS64 ? Relocation::symbol
                                                                                                : Relocation::other;
  }
  if (type == R_X86_64_RELATIVE) return Relocation::moved;
  if (type == R_X86_64_IRELATIVE) return Relocation::resolved;
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_64 ? Relocation::symbol
                                                                                        : Relocation::other;
}

}  // namespace

// Refuses files in three cases. libdw 0.188 searches for the end of a string without checking the end of the section:
// if a damaged file has no final zero byte, libdw would read beyond its memory. libdw opens whatever alternate file the
// file names, and expands compressed sections of any size.
bool is_safe_to_read(Elf* elf) {
  constexpr unsigned kMostPacked = 40;
  constexpr std::uint64_t kUnpackedAnyway = std::uint64_t{16} << 20;  // bytes
  // libdw decompresses sections by itself and without a limit, so the sizes of all compressed sections are added up.
  // Compression reduces debug information to a third or a tenth of its size. A higher ratio indicates a file that was
  // made to exhaust rose's memory.
  std::uint64_t unpacked = 0, end = 0;  // end: end of the last compressed section, up to which the file has bytes
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return false;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name == nullptr) continue;
    const std::string_view text = name;
    if (text == ".gnu_debugaltlink" || text == ".debug_sup") {
      // libdw would open the named file as root, and would block if that file is a pipe. Therefore only files in the
      // distribution's folder are accepted.
      const auto bytes = bytes_of(section);
      const std::string_view link(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      const std::string_view file = link.substr(0, link.find('\0'));
      if (!file.starts_with("/usr/lib/debug/") || file.find("..") != std::string_view::npos) return false;
    }
    const bool is_packed = (header.sh_flags & SHF_COMPRESSED) != 0;
    if (is_packed) {
      GElf_Chdr packed;
      if (gelf_getchdr(section, &packed) == nullptr) return false;
      end = std::max<std::uint64_t>(end, header.sh_offset + header.sh_size);
      if (packed.ch_size > kMostPacked * end + kUnpackedAnyway - unpacked) return false;
      unpacked += packed.ch_size;
    }
    const bool strings = text.ends_with("_str") || text.ends_with("_str.dwo");
    if (!strings || !(text.starts_with(".debug") || text.starts_with(".zdebug"))) continue;
    if (is_packed && elf_compress(section, 0, 0) < 0) return false;
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr || data->d_size == 0) return false;
    if (static_cast<const char*>(data->d_buf)[data->d_size - 1] != '\0') return false;
  }
  return true;
}

void ElfFile::ElfEnd::operator()(Elf* elf) const { elf_end(elf); }

std::vector<std::filesystem::path> debug_candidates(const std::filesystem::path& binary,
                                                    std::span<const std::uint8_t> build_id, const std::string& link) {
  const std::filesystem::path root = "/usr/lib/debug";
  std::vector<std::filesystem::path> candidates;
  if (build_id.size() >= 2) {
    std::string hex;
    for (const std::uint8_t byte : build_id) hex += fmt::format("{:02x}", byte);
    candidates.push_back(root / ".build-id" / hex.substr(0, 2) / (hex.substr(2) + ".debug"));
  }
  std::error_code ignored;
  std::filesystem::path real = std::filesystem::weakly_canonical(binary, ignored);
  if (ignored) real = std::filesystem::absolute(binary, ignored);
  const std::filesystem::path folder = real.parent_path();
  if (!link.empty()) {
    candidates.push_back(folder / link);
    candidates.push_back(folder / ".debug" / link);
    candidates.push_back(root / folder.relative_path() / link);
  }
  candidates.push_back(root / (real.relative_path().native() + ".debug"));
  return candidates;
}

Result<ElfFile> ElfFile::open(const std::filesystem::path& path) {
  elf_version(EV_CURRENT);
  ElfFile file;
  ROSE_TRY(file.fd_, open_program(path));
  // Read the file instead of mapping it. If the file shrinks meanwhile, rose then gets an error instead of SIGBUS.
  file.elf_.reset(elf_begin(file.fd_.get(), ELF_C_READ, nullptr));
  GElf_Ehdr header;
  if (!file.elf_ || elf_kind(file.elf_.get()) != ELF_K_ELF || gelf_getehdr(file.elf_.get(), &header) == nullptr) {
    return fail(ErrorKind::input, fmt::format("{}: not an ELF file", path.native()),
                "functions are looked up in programs and shared libraries; for a script, set `binary` of the node "
                "to its interpreter or to a .so file");
  }
  file.machine_ = machine_of(header.e_machine);
  if (file.machine_ == nullptr || header.e_ident[EI_CLASS] != ELFCLASS64) {
    return fail(ErrorKind::input,
                fmt::format("{}: built for another machine (ELF machine {}, class {})", path.native(), header.e_machine,
                            header.e_ident[EI_CLASS] * 32),
                "rose knows 64-bit files of x86-64 and arm64");
  }
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN) {
    return fail(ErrorKind::input,
                fmt::format("{}: neither a program nor a shared library (ELF type {})", path.native(), header.e_type));
  }
  std::size_t count = 0;
  if (elf_getphdrnum(file.elf_.get(), &count) != 0) {
    return fail(ErrorKind::input, fmt::format("{}: damaged ELF file: {}", path.native(), elf_errmsg(-1)));
  }
  struct stat about{};
  if (::fstat(file.fd_.get(), &about) != 0)
    return fail_errno(ErrorKind::input, fmt::format("cannot read '{}'", path.native()), errno);
  const auto file_size = static_cast<std::uint64_t>(about.st_size);
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr program;
    if (gelf_getphdr(file.elf_.get(), static_cast<int>(i), &program) == nullptr) {
      return fail(ErrorKind::input,
                  fmt::format("{}: damaged ELF file: program header {}: {}", path.native(), i, elf_errmsg(-1)));
    }
    if (program.p_type != PT_LOAD || (program.p_flags & PF_X) == 0) continue;
    if (program.p_offset >= file_size) continue;
    // A damaged header may describe more code than the file has, but no offset may be outside the file.
    const std::uint64_t size = std::min(program.p_filesz, file_size - program.p_offset);
    if (program.p_vaddr + size < program.p_vaddr) continue;
    file.segments_.push_back({program.p_vaddr, program.p_offset, size});
  }
  if (file.segments_.empty()) {
    return fail(ErrorKind::input, fmt::format("{}: contains no code (no executable segment)", path.native()),
                "is this a separate debug file? name the program itself");
  }
  file.open_debug_file(path);
  file.open_mini_debug_info();
  file.read_go_table();
  return file;
}

void ElfFile::open_debug_file(const std::filesystem::path& path) {
  const std::vector<std::uint8_t> id = build_id(elf_.get());
  const DebugLink link = debug_link(elf_.get());
  if (id.empty() && link.name.empty()) return;
  struct stat own = {};
  if (::fstat(fd_.get(), &own) != 0) return;
  for (const std::filesystem::path& candidate : debug_candidates(path, id, link.name)) {
    Fd fd = open_regular(candidate);
    struct stat other = {};
    if (!fd || ::fstat(fd.get(), &other) != 0) continue;
    if (other.st_dev == own.st_dev && other.st_ino == own.st_ino) continue;
    std::unique_ptr<Elf, ElfEnd> elf(elf_begin(fd.get(), ELF_C_READ, nullptr));
    if (!elf || elf_kind(elf.get()) != ELF_K_ELF) continue;
    // The debug file must belong to this build, because otherwise its addresses would be in the middle of functions.
    const std::vector<std::uint8_t> other_id = build_id(elf.get());
    if (!id.empty() && !other_id.empty() ? id != other_id : link.name.empty() || file_crc(fd.get()) != link.crc) {
      continue;
    }
    debug_fd_ = std::move(fd);
    debug_ = std::move(elf);
    debug_path_ = candidate;
    return;
  }
}

void ElfFile::open_mini_debug_info() {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf_.get(), &names) != 0) return;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf_.get(), section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_PROGBITS) continue;
    const char* name = elf_strptr(elf_.get(), names, header.sh_name);
    if (name == nullptr || std::strcmp(name, ".gnu_debugdata") != 0) continue;
    mini_bytes_ = unpack_mini_debug_info(bytes_of(section));
    mini_.reset(mini_bytes_.empty() ? nullptr : elf_memory(mini_bytes_.data(), mini_bytes_.size()));
    if (mini_ && elf_kind(mini_.get()) != ELF_K_ELF) mini_.reset();
    return;
  }
}

std::optional<std::uint64_t> ElfFile::file_offset(std::uint64_t address) const {
  for (const Segment& segment : segments_) {
    if (address >= segment.address && address - segment.address < segment.size) {
      return address - segment.address + segment.offset;
    }
  }
  return std::nullopt;
}

std::map<std::int64_t, std::string> ElfFile::go_error_types() const {
  std::map<std::int64_t, std::string> out;
  Elf_Scn* section = nullptr;
  while (is_go() && (section = elf_nextscn(elf_.get(), section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_SYMTAB || header.sh_entsize == 0) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) continue;
    const std::size_t count = std::min<std::size_t>(data->d_size / sizeof(Elf64_Sym), INT32_MAX);
    for (std::size_t i = 0; i < count && out.size() < kMostErrorTypes; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      const char* text = elf_strptr(elf_.get(), header.sh_link, symbol.st_name);
      if (text == nullptr || symbol.st_value == 0) continue;
      std::string_view name(text, ::strnlen(text, kMostNameBytes + 1));
      constexpr std::string_view kNew = "go:itab.", kOld = "go.itab.", kOf = ",error";  // before Go 1.20: kOld
      if ((!name.starts_with(kNew) && !name.starts_with(kOld)) || !name.ends_with(kOf) || name.size() > kMostNameBytes)
        continue;
      name.remove_prefix(kNew.size());
      name.remove_suffix(kOf.size());
      out.emplace(static_cast<std::int64_t>(symbol.st_value), name);
    }
  }
  return out;
}

void ElfFile::add_symbols(Elf* elf, std::vector<RawSymbol>& symbols) const {
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if ((header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) || header.sh_entsize == 0) continue;
    Elf_Data* data = elf_getdata(section, nullptr);  // libelf checks that the section is in the file
    if (data == nullptr || data->d_buf == nullptr) continue;
    const std::size_t count = std::min<std::size_t>(data->d_size / sizeof(Elf64_Sym), INT32_MAX);
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) {
        continue;
      }
      const auto offset = file_offset(symbol.st_value);
      if (!offset) continue;
      const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
      if (name == nullptr || *name == '\0') continue;
      const std::size_t length = ::strnlen(name, kMostNameBytes + 1);
      if (length > kMostNameBytes) continue;
      const int binding = GELF_ST_BIND(symbol.st_info);
      symbols.push_back({std::string(name, length), symbol.st_value, *offset, symbol.st_size,
                         binding == STB_GLOBAL ? 0
                         : binding == STB_WEAK ? 1
                                               : 2,
                         0});
    }
  }
}

namespace {

// Calls `each` for the sections that contain program data, with their headers and names.
template <typename Each>
void each_data_section(Elf* elf, const Each& each) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_PROGBITS) continue;
    if ((header.sh_flags & SHF_ALLOC) == 0 || (header.sh_flags & (SHF_EXECINSTR | SHF_COMPRESSED)) != 0) continue;
    const char* name = elf_strptr(elf, names, header.sh_name);
    each(section, header, std::string_view(name != nullptr ? name : ""));
  }
}

}  // namespace

// Since Go 1.18, entries are relative to runtime.text, which is not the start of .text if C code is linked in. Until Go
// 1.26, the header contained the address of runtime.text. Since then, it must be found in the runtime's module data.
// The module data begin with the address of the table, and also contain the first and the last address of code, one
// after the other. In a PIE, the file has these words only in its relocations.
std::uint64_t ElfFile::go_text(const GoHeader& header, std::uint64_t table) const {
  if (!header.relative()) return 0;
  const auto good = [&](std::uint64_t text) {
    return text != 0 && file_offset(text + header.first) && file_offset(text + header.last - 1);
  };
  if (good(header.text)) return header.text;
  std::map<std::uint64_t, std::uint64_t> moved;  // address -> word
  std::vector<std::uint64_t> modules;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf_.get(), section)) != nullptr) {
    GElf_Shdr info;
    if (gelf_getshdr(section, &info) == nullptr || info.sh_type != SHT_RELA) continue;
    const auto bytes = bytes_of(section);
    for (std::size_t at = 0; at + sizeof(Elf64_Rela) <= bytes.size(); at += sizeof(Elf64_Rela)) {
      Elf64_Rela rela;
      std::memcpy(&rela, bytes.data() + at, sizeof rela);
      if (meaning_of(rela, *machine_) != Relocation::moved) continue;
      const auto word = static_cast<std::uint64_t>(rela.r_addend);
      moved.emplace(rela.r_offset, word);
      if (word == table) modules.push_back(rela.r_offset);
    }
  }
  if (const auto word = moved.find(table + 24); word != moved.end() && good(word->second)) return word->second;

  constexpr std::uint64_t kMostModuleBytes = 1024;
  std::uint64_t text = 0, begin_of_text = 0;
  each_data_section(elf_.get(), [&](Elf_Scn* one, const GElf_Shdr& info, std::string_view) {
    if ((info.sh_flags & SHF_WRITE) == 0 || text != 0) return;
    const auto bytes = bytes_of(one);
    const auto word = [&](std::uint64_t at) {
      if (const auto found = moved.find(info.sh_addr + at); found != moved.end()) return found->second;
      std::uint64_t value = 0;
      if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
      return value;
    };
    const auto try_module = [&](std::uint64_t at) {
      for (std::uint64_t i = 8; i < kMostModuleBytes && at + i + 16 <= bytes.size() && text == 0; i += 8) {
        const std::uint64_t least = word(at + i), most = word(at + i + 8);
        if (most - least == header.last - header.first && good(least - header.first)) text = least - header.first;
      }
    };
    for (const auto address : modules) {
      if (address >= info.sh_addr && address - info.sh_addr < bytes.size()) try_module(address - info.sh_addr);
    }
    int tried = 0;
    for (std::uint64_t at = 0; at + 8 <= bytes.size() && text == 0 && tried < 64; at += 8) {
      std::uint64_t value = 0;
      std::memcpy(&value, bytes.data() + at, sizeof value);
      if (value != table) continue;
      ++tried;
      try_module(at);
    }
  });
  if (text != 0) return text;
  // If there is no C code, runtime.text is the start of .text.
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf_.get(), &names) != 0) return 0;
  while ((section = elf_nextscn(elf_.get(), section)) != nullptr) {
    GElf_Shdr info;
    if (gelf_getshdr(section, &info) == nullptr) continue;
    const char* name = elf_strptr(elf_.get(), names, info.sh_name);
    if (name != nullptr && std::strcmp(name, ".text") == 0) begin_of_text = info.sh_addr;
  }
  return good(begin_of_text) ? begin_of_text : 0;
}

void ElfFile::read_go_table() {
  constexpr std::uint64_t kMostSearched = std::uint64_t{512} << 20;
  bool go = false;
  const auto take = [&](std::span<const std::uint8_t> bytes, std::uint64_t address) {
    const auto header = go_header(bytes);
    if (!header || !go_.empty()) return;
    const std::uint64_t text = go_text(*header, address);
    if (header->relative() && text == 0) return;
    go_ = go_functions(bytes, text, true);
    std::erase_if(go_, [this](const GoFunction& function) { return !file_offset(function.address); });
    std::stable_sort(go_.begin(), go_.end(),
                     [](const GoFunction& a, const GoFunction& b) { return a.address < b.address; });
  };
  each_data_section(elf_.get(), [&](Elf_Scn* section, const GElf_Shdr& header, std::string_view name) {
    go = go || name.starts_with(".go.") || name.starts_with(".note.go");
    if (name == ".gopclntab" || name == ".data.rel.ro.gopclntab") take(bytes_of(section), header.sh_addr);
  });
  if (!go_.empty() || !go) return;
  // In a PIE that was linked by a C linker, the table is a part of .data.rel.ro.
  each_data_section(elf_.get(), [&](Elf_Scn* section, const GElf_Shdr& header, std::string_view name) {
    if (!go_.empty() || header.sh_size > kMostSearched || !(name.starts_with(".data.rel.ro") || name == ".rodata"))
      return;
    const auto bytes = bytes_of(section);
    for (const std::size_t at : go_table_candidates(bytes)) take(bytes.subspan(at), header.sh_addr + at);
  });
}

std::uint64_t ElfFile::stack_check(std::uint64_t offset) const {
  std::array<std::uint8_t, 48> code{};  // the longest stack check has 27 bytes
  const ssize_t got = ::pread(fd_.get(), code.data(), code.size(), static_cast<off_t>(offset));
  return got <= 0 ? 0 : stack_check_bytes(std::span(code).first(static_cast<std::size_t>(got)), *machine_);
}

std::vector<RawSymbol> ElfFile::functions() const {
  std::vector<RawSymbol> symbols;
  add_symbols(elf_.get(), symbols);
  if (debug_) add_symbols(debug_.get(), symbols);
  if (mini_) add_symbols(mini_.get(), symbols);
  std::sort(symbols.begin(), symbols.end(), [](const RawSymbol& a, const RawSymbol& b) {
    return std::tie(a.address, a.linkage_name, a.binding) < std::tie(b.address, b.linkage_name, b.binding);
  });
  symbols.erase(std::unique(symbols.begin(), symbols.end(),
                            [](const RawSymbol& a, const RawSymbol& b) {
                              return a.address == b.address && a.linkage_name == b.linkage_name;
                            }),
                symbols.end());
  if (go_.empty()) return symbols;
  for (RawSymbol& symbol : symbols) {
    const auto at =
        std::lower_bound(go_.begin(), go_.end(), symbol.address,
                         [](const GoFunction& function, std::uint64_t wanted) { return function.address < wanted; });
    if (at != go_.end() && at->address == symbol.address) symbol.check = stack_check(symbol.offset);
  }
  const auto named = [end = symbols.size(), &symbols](std::uint64_t address) {
    const auto last = symbols.begin() + static_cast<std::ptrdiff_t>(end);
    const auto at = std::lower_bound(symbols.begin(), last, address, [](const RawSymbol& symbol, std::uint64_t wanted) {
      return symbol.address < wanted;
    });
    return at != last && at->address == address;
  };
  std::vector<RawSymbol> unnamed;
  for (const GoFunction& function : go_) {
    if (named(function.address)) continue;
    const std::uint64_t offset = *file_offset(function.address);
    unnamed.push_back({function.name, function.address, offset, function.size, 0, stack_check(offset)});
  }
  symbols.insert(symbols.end(), std::make_move_iterator(unnamed.begin()), std::make_move_iterator(unnamed.end()));
  std::stable_sort(symbols.begin(), symbols.end(),
                   [](const RawSymbol& a, const RawSymbol& b) { return a.address < b.address; });
  return symbols;
}

std::map<std::uint64_t, Slot> ElfFile::slots() const {
  std::map<std::uint64_t, Slot> found;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf_.get(), section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_RELA || (header.sh_flags & SHF_ALLOC) == 0)
      continue;
    GElf_Shdr symbols_header = {};
    Elf_Scn* symbols_section = header.sh_link != 0 ? elf_getscn(elf_.get(), header.sh_link) : nullptr;
    Elf_Data* symbols = nullptr;
    if (symbols_section != nullptr && gelf_getshdr(symbols_section, &symbols_header) != nullptr &&
        (symbols_header.sh_type == SHT_DYNSYM || symbols_header.sh_type == SHT_SYMTAB))
      symbols = elf_getdata(symbols_section, nullptr);
    const auto bytes = bytes_of(section);
    for (std::size_t at = 0; at + sizeof(Elf64_Rela) <= bytes.size() && found.size() < kMostSlots;
         at += sizeof(Elf64_Rela)) {
      Elf64_Rela rela;
      std::memcpy(&rela, bytes.data() + at, sizeof rela);
      Slot slot;
      switch (meaning_of(rela, *machine_)) {
        case Relocation::moved:
        // the symbol is a resolver, which selects the implementation; calls are named after it
        case Relocation::resolved: slot.address = static_cast<std::uint64_t>(rela.r_addend); break;
        case Relocation::symbol: {
          GElf_Sym symbol;
          if (symbols == nullptr || ELF64_R_SYM(rela.r_info) > INT32_MAX ||
              gelf_getsym(symbols, static_cast<int>(ELF64_R_SYM(rela.r_info)), &symbol) == nullptr)
            continue;
          const char* name = elf_strptr(elf_.get(), symbols_header.sh_link, symbol.st_name);
          if (name != nullptr && ::strnlen(name, kMostNameBytes + 1) <= kMostNameBytes) slot.name = name;
          if (symbol.st_shndx != SHN_UNDEF) slot.address = symbol.st_value + static_cast<std::uint64_t>(rela.r_addend);
          break;
        }
        case Relocation::other: continue;
      }
      if (slot.address != 0 && !file_offset(slot.address)) slot.address = 0;  // the address is in data, not in code
      if (slot.address != 0 || !slot.name.empty()) found.emplace(rela.r_offset, std::move(slot));
    }
  }
  return found;
}

std::vector<std::uint8_t> ElfFile::code(std::uint64_t address, std::uint64_t size) const {
  for (const Segment& segment : segments_) {
    if (address < segment.address || address - segment.address >= segment.size) continue;
    const std::uint64_t within = address - segment.address;
    std::vector<std::uint8_t> bytes(std::min({size, segment.size - within, kMostCodeBytes}));
    const ssize_t got = ::pread(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(segment.offset + within));
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }
  return {};
}

std::map<std::uint64_t, std::string> ElfFile::sources() const {
  std::map<std::uint64_t, std::string> found;
  for (const GoFunction& function : go_) {
    if (!function.source.empty()) found.emplace(function.address, function.source);
  }
  const std::size_t from_go = found.size();
  add_sources(elf_.get(), from_go > 0, found);
  if (found.size() == from_go && debug_) add_sources(debug_.get(), from_go > 0, found);
  return found;
}

}  // namespace rose::symbols
