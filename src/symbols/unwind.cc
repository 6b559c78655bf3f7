#include "symbols/unwind.h"

#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/units.h"
#include "symbols/elf.h"
#include "symbols/frame_names.h"
#include "symbols/runtime_names.h"

namespace rose::symbols {
namespace {

constexpr std::size_t kMostMaps = 4096;
constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kStackPointer = machine::kOwn.stack, kInstruction = machine::kOwn.instruction;
constexpr std::int64_t kThread = 1;  // libdw requires the id of a thread, and there is only one thread

std::uint64_t page_below(std::uint64_t address) { return address & ~(kPage - 1); }

// The identity of a file when it was opened.
struct FileState {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  std::int64_t changed_ns = 0;
  auto operator<=>(const FileState&) const = default;
};

// Caches the names of code addresses, so that several stacks can use them. The runs of a deployment use the same few
// libraries. Reading their symbols takes long, because distributions compress them: for libc alone, it takes a tenth of
// a second.
class KnownNames {
 public:
  [[nodiscard]] const std::vector<StackFrame>* find(const FileState& file, std::uint64_t address) const {
    const auto at = names_.find({file, address});
    return at == names_.end() ? nullptr : &at->second;
  }
  void keep(const FileState& file, std::uint64_t address, const std::vector<StackFrame>& frames) {
    if (names_.size() >= kMostKnown) names_.clear();
    names_.emplace(std::pair{file, address}, frames);
  }

 private:
  static constexpr std::size_t kMostKnown = 20'000;  // this takes a few MiB
  std::map<std::pair<FileState, std::uint64_t>, std::vector<StackFrame>> names_;
};

// A file with the address range at which it was mapped.
struct Module {
  const Mapping* map = nullptr;
  Fd fd;
  FileState file;
  std::uint64_t start = 0, end = 0;
  std::uint64_t bias = 0;
  std::filesystem::path debug_file;
  bool looked_for_debug_file = false;
};

struct ElfEnd {
  void operator()(Elf* elf) const { elf_end(elf); }
};

// Sets the address range that the file's segments occupy. Returns false if no segment belongs to the mapping.
bool place(Module& module) {
  std::unique_ptr<Elf, ElfEnd> elf(elf_begin(module.fd.get(), ELF_C_READ, nullptr));
  GElf_Ehdr header;
  std::size_t count = 0;
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF || gelf_getehdr(elf.get(), &header) == nullptr) return false;
  if (header.e_machine != machine::kOwn.elf || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      elf_getphdrnum(elf.get(), &count) != 0)
    return false;
  std::uint64_t first = UINT64_MAX, last = 0;
  bool found = false;
  for (std::size_t i = 0; i < count && i < 4096; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf.get(), static_cast<int>(i), &segment) == nullptr || segment.p_type != PT_LOAD) continue;
    if (segment.p_memsz == 0 || segment.p_vaddr + segment.p_memsz < segment.p_vaddr ||
        segment.p_offset + segment.p_filesz < segment.p_offset)
      continue;
    first = std::min(first, page_below(segment.p_vaddr));
    last = std::max(last, page_below(segment.p_vaddr + segment.p_memsz + kPage - 1));
    const auto offset = module.map->offset;
    if (found || (segment.p_flags & PF_X) == 0 || offset < page_below(segment.p_offset) ||
        offset >= segment.p_offset + segment.p_filesz)
      continue;
    found = true;
    module.bias = module.map->start - offset + segment.p_offset - segment.p_vaddr;
  }
  if (!found || first >= last) return false;
  module.start = module.bias + first;
  module.end = module.bias + last;
  return module.start < module.end && module.start <= module.map->start &&
         module.end - module.start < (std::uint64_t{1} << 40);
}

class Unwinder {
 public:
  Unwinder(const Snapshot& snapshot, KnownNames& known, std::int64_t limit_ns)
      : snapshot_(snapshot), known_(known), until_ns_(monotonic_ns() + limit_ns) {}

  Unwound run() {
    open_modules();
    dwfl_.reset(dwfl_begin(&kCallbacks));
    if (!dwfl_ || modules_.empty()) {
      why(snapshot_.maps.empty() ? "the process's memory map is not known"
                                 : "none of the files that the process ran can be read");
      only_the_instruction();
      return std::move(out_);
    }
    dwfl_report_begin(dwfl_.get());
    for (auto& module : modules_) {
      Dwfl_Module* reported = dwfl_report_module(dwfl_.get(), module.map->name.c_str(), module.start, module.end);
      void** own = nullptr;
      if (reported == nullptr) continue;
      dwfl_module_info(reported, &own, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
      if (own != nullptr) *own = &module;
    }
    dwfl_report_end(dwfl_.get(), nullptr, nullptr);
    if (!dwfl_attach_state(dwfl_.get(), nullptr, kThread, &kThreadCallbacks, this)) {
      why("cannot unwind: " + last_error());
      only_the_instruction();
      return std::move(out_);
    }
    const int ended = dwfl_getthread_frames(dwfl_.get(), kThread, on_frame, this);
    // If libdw has tried frame pointers as a fallback, it stops without giving a reason.
    if (ended < 0 || unread_) tell_end(ended < 0 ? last_error() : "there is no unwind information for the next frame");
    if (out_.frames.empty()) only_the_instruction();
    name_runtime_code();
    if (nameless_ > 0)
      why(nameless_ == 1 ? "1 frame has no name: install its debug symbols"
                         : fmt::format("{} frames have no name: install their debug symbols", nameless_));
    return std::move(out_);
  }

 private:
  struct DwflEnd {
    void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
  };
  static const Dwfl_Callbacks kCallbacks;
  static const Dwfl_Thread_Callbacks kThreadCallbacks;

  static std::string last_error() {
    const char* text = dwfl_errmsg(-1);
    return text != nullptr ? text : "no reason is given";
  }

  void why(std::string text) {
    if (!out_.incomplete.empty()) out_.incomplete += "; ";
    out_.incomplete += text;
  }

  void open_modules() {
    std::uint64_t taken = 0;  // where the previous module ends, because modules must not overlap
    std::vector<const Mapping*> maps;
    for (const auto& map : snapshot_.maps) {
      if (!map.file.empty() && map.start < map.end && maps.size() < kMostMaps) maps.push_back(&map);
    }
    std::sort(maps.begin(), maps.end(), [](const Mapping* a, const Mapping* b) { return a->start < b->start; });
    for (const Mapping* map : maps) {
      if (map->start < taken) continue;  // the mapping is another part of the previous module
      Module module;
      module.map = map;
      module.fd = open_regular(map->file);
      struct stat status = {};
      if (!module.fd || ::fstat(module.fd.get(), &status) != 0 || !place(module) || module.start < taken) continue;
      module.file = {status.st_dev, status.st_ino, status.st_size,
                     status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec};
      taken = module.end;
      modules_.push_back(std::move(module));
    }
  }

  [[nodiscard]] bool late() const { return monotonic_ns() > until_ns_; }

  // libdw calls this to read the memory word by word.
  bool read(std::uint64_t address, Dwarf_Word* word) {
    const auto sp = snapshot_.registers[kStackPointer];
    const auto size = snapshot_.stack.size();
    if (late()) return false;
    if (address >= sp && size >= sizeof *word && address - sp <= size - sizeof *word) {
      std::memcpy(word, snapshot_.stack.data() + (address - sp), sizeof *word);
      return true;
    }
    unread_ = true;
    if (address >= sp && address - sp < (std::uint64_t{1} << 23)) ran_out_ = true;
    return false;
  }

  int take(std::uint64_t pc, bool exact) {
    if (out_.frames.size() >= kMostFrames) {
      why(fmt::format("only the innermost {} frames are shown", kMostFrames));
      return DWARF_CB_ABORT;
    }
    if (late()) {
      why("the time limit was reached");
      return DWARF_CB_ABORT;
    }
    // A return address is the address of the instruction after the call. The call may be the function's last
    // instruction, so look up the byte before.
    const auto at = exact ? pc : pc - 1;
    Dwfl_Module* reported = dwfl_addrmodule(dwfl_.get(), at);
    void** own = nullptr;
    if (reported != nullptr) dwfl_module_info(reported, &own, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    // For addresses directly after a file's segments, libdw returns this file, so check that the address really belongs
    // to it.
    if (own == nullptr || *own == nullptr || in_no_file(at)) {
      add_unknown(at);
      return DWARF_CB_OK;
    }
    const Module& module = *static_cast<Module*>(*own);
    const auto address = at - module.bias;
    const auto* known = known_.find(module.file, address);
    auto frames = known != nullptr ? *known : names_.at(reported, at, address, module.map->file);
    if (known == nullptr) known_.keep(module.file, address, frames);
    for (auto& frame : frames) {
      frame.binary = module.map->name;
      frame.address = address;
    }
    add(std::move(frames));
    return DWARF_CB_OK;
  }

  void add(std::vector<StackFrame> frames) {
    for (auto& frame : frames) {
      if (out_.frames.size() >= kMostFrames) return;
      if (frame.function.empty()) ++nameless_;
      out_.frames.push_back(std::move(frame));
    }
  }

  [[nodiscard]] bool in_no_file(std::uint64_t pc) const {
    return std::any_of(snapshot_.maps.begin(), snapshot_.maps.end(), [&](const Mapping& map) {
      return pc >= map.start && pc < map.end && map.file.empty() && map.name.empty();
    });
  }

  // Describes a frame whose code is in no readable file.
  StackFrame describe(std::uint64_t pc) const {
    StackFrame frame;
    frame.address = pc;
    for (const auto& map : snapshot_.maps) {
      if (pc < map.start || pc >= map.end) continue;
      frame.binary = map.name;
      frame.address = pc - map.start + map.offset;
    }
    return frame;
  }

  void add_unknown(std::uint64_t pc) {
    auto frame = describe(pc);
    if (frame.binary.empty()) made_[out_.frames.size()] = pc;
    add({std::move(frame)});
  }

  void only_the_instruction() {
    if (out_.frames.empty()) add_unknown(snapshot_.registers[kInstruction]);
  }

  void name_runtime_code() {
    if (snapshot_.runtime_list.empty() || made_.empty()) return;
    std::vector<std::uint64_t> addresses;
    for (const auto& [index, pc] : made_) addresses.push_back(pc);
    auto names = runtime_names(snapshot_.runtime_list, std::move(addresses));
    for (const auto& [index, pc] : made_) {
      const auto name = names.find(pc);
      if (name == names.end()) continue;
      out_.frames[index].function = name->second.function;
      out_.frames[index].file = name->second.file;
      out_.frames[index].line = name->second.line;
      --nameless_;
    }
  }

  void tell_end(const std::string& reason) {
    if (ran_out_) {
      why(fmt::format("the stack is deeper than the {} bytes that were copied", snapshot_.stack.size()));
    } else if (late()) {
      why("the time limit was reached");
    } else if (out_.frames.empty() || !is_outermost(out_.frames.back().function)) {
      why("outer frames are missing: " + reason);
    }
  }

  static bool is_outermost(const std::string& name) {
    return name == "_start" || name == "clone3" || name == "__clone3" || name == "clone" || name == "__clone" ||
           name == "runtime.goexit" || name == "runtime.goexit.abi0" || name == "runtime.mstart" ||
           name == "runtime.rt0_go" || name == "runtime.rt0_go.abi0";
  }

  // Callbacks for libdw.
  static int find_elf(Dwfl_Module*, void** own, const char*, Dwarf_Addr, char** file_name, Elf** elf) {
    auto& module = *static_cast<Module*>(*own);
    // Read the file instead of mapping it. If the file shrinks meanwhile, rose then gets an error instead of SIGBUS.
    *elf = elf_begin(module.fd.get(), ELF_C_READ, nullptr);
    *file_name = ::strdup(module.map->file.c_str());
    return -1;
  }
  static int find_debug_file(Dwfl_Module*, void** own, const char*, Dwarf_Addr, const char*, const char*, GElf_Word,
                             char** file_name) {
    auto& module = *static_cast<Module*>(*own);
    if (!module.looked_for_debug_file) {
      module.looked_for_debug_file = true;
      if (const auto file = ElfFile::open(module.map->file); file) module.debug_file = file->debug_path();
    }
    if (module.debug_file.empty()) return -1;
    // Open only a regular file. The file may have been replaced by a pipe, on which the reader would block.
    Fd fd = open_regular(module.debug_file);
    if (fd) *file_name = ::strdup(module.debug_file.c_str());
    return fd.release();
  }
  static int no_section(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, GElf_Word, const GElf_Shdr*,
                        Dwarf_Addr*) {
    return -1;
  }

  static pid_t next_thread(Dwfl*, void* self, void** state) {
    if (*state != nullptr) return 0;
    *state = self;
    return kThread;
  }
  static bool get_thread(Dwfl*, pid_t, void* self, void** state) {
    *state = self;
    return true;
  }
  static bool read_memory(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* self) {
    return static_cast<Unwinder*>(self)->read(address, word);
  }
  static bool set_registers(Dwfl_Thread* thread, void* self) {
    const auto& registers = static_cast<Unwinder*>(self)->snapshot_.registers;
    // On arm64, libdw does not accept the instruction pointer among the registers.
    constexpr unsigned kCount = machine::kOwn.elf == EM_AARCH64 ? kInstruction : kInstruction + 1;
    Dwarf_Word words[kInstruction + 1];
    std::copy(registers.begin(), registers.end(), words);
    dwfl_thread_state_register_pc(thread, words[kInstruction]);
    return dwfl_thread_state_registers(thread, 0, kCount, words);
  }
  static int on_frame(Dwfl_Frame* frame, void* self) {
    Dwarf_Addr pc = 0;
    bool exact = false;
    if (!dwfl_frame_pc(frame, &pc, &exact)) return DWARF_CB_ABORT;
    return static_cast<Unwinder*>(self)->take(pc, exact);
  }

  const Snapshot& snapshot_;
  KnownNames& known_;
  const std::int64_t until_ns_;
  std::vector<Module> modules_;
  std::unique_ptr<Dwfl, DwflEnd> dwfl_;  // keeps the files of its modules open
  FrameNames names_;
  Unwound out_;
  // The frames whose code a runtime generated: index and address.
  std::map<std::size_t, std::uint64_t> made_;
  std::size_t nameless_ = 0;
  bool unread_ = false, ran_out_ = false;
};

const Dwfl_Callbacks Unwinder::kCallbacks = {find_elf, find_debug_file, no_section, nullptr};
const Dwfl_Thread_Callbacks Unwinder::kThreadCallbacks = {next_thread,   get_thread, read_memory,
                                                          set_registers, nullptr,    nullptr};

}  // namespace

Unwound unwind(const Snapshot& snapshot, std::int64_t limit_ns) {
  // libdw has global state, so only one thread at a time may use it.
  static std::mutex one_at_a_time;
  static KnownNames known;
  const std::lock_guard lock(one_at_a_time);
  elf_version(EV_CURRENT);
  return Unwinder(snapshot, known, limit_ns).run();
}

}  // namespace rose::symbols
