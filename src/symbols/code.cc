#include "symbols/code.h"

#include <capstone/capstone.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "symbols/elf.h"
#include "symbols/library_calls.h"
#include "symbols/names.h"
#include "symbols/symbols.h"

namespace rose::symbols {
namespace {

constexpr int kDeepest = 3;  // calls are followed this many levels below a call
// size limit in bytes for functions that are reached from the analysed one
constexpr std::uint64_t kMostOfOne = 64 << 10;
constexpr std::uint64_t kMostBelowOne = 40'000;  // most instructions that are decoded to analyse one call
// most instructions that are decoded to analyse all calls of a function
constexpr std::uint64_t kMostBelowAll = 1'500'000;
// most instructions of an entry in a .plt: endbr64 and bnd jmp; on arm64: bti, adrp, ldr, add and br
constexpr int kStubInstructions = 5;

// Shows whether a call leads to a system call and, if so, the properties of the most relevant such system call.
struct Reach {
  bool enters = false;
  bool changes = false;
  int depth = 0;

  [[nodiscard]] bool better_than(const Reach& other) const {
    if (!enters || !other.enters) return enters && !other.enters;
    return std::tuple(!changes, depth) < std::tuple(!other.changes, other.depth);
  }
};

struct Instruction {
  std::uint64_t address = 0;
  std::uint64_t next = 0;
  enum class Flow { none, call, jump, branch, ret, syscall } flow = Flow::none;
  std::optional<std::uint64_t> target;  // destination of a call, jump or branch, if it is in the code
  std::optional<std::uint64_t> slot;    // address of the word that holds the destination of a call or jump
  bool tail = false;                    // a jump through memory other than the jump table of a switch
  std::optional<std::uint32_t> number;  // from mov $number,%eax: this may be the number of a system call
  // arm64: the address of the page that adrp computes, and the offset of the word that ldr reads, relative to a
  // register.
  std::optional<std::uint64_t> page, within_page;
  bool probed = true;         // the kernel accepts a probe on this instruction
  std::string_view mnemonic;  // valid only during the callback
};

class Decoder {
 public:
  explicit Decoder(const Machine& machine) : arm64_(machine.elf == EM_AARCH64) {
    const auto opened =
        arm64_ ? cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &handle_) : cs_open(CS_ARCH_X86, CS_MODE_64, &handle_);
    if (opened != CS_ERR_OK) return;
    cs_option(handle_, CS_OPT_DETAIL, CS_OPT_ON);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() {
    if (handle_ != 0) cs_close(&handle_);
  }

  // Decodes until `each` returns false, or until bytes are no instruction. Nothing after such bytes is used, because
  // the decoder may have lost synchronisation. `each` may itself decode other code.
  template <typename Each>
  void decode(const std::vector<std::uint8_t>& code, std::uint64_t address, const Each& each) const {
    if (handle_ == 0) return;
    const std::unique_ptr<cs_insn, decltype([](cs_insn* one) { cs_free(one, 1); })> raw(cs_malloc(handle_));
    const std::uint8_t* bytes = code.data();
    std::size_t left = code.size();
    while (raw && left > 0 && cs_disasm_iter(handle_, &bytes, &left, &address, raw.get()))
      if (!each(arm64_ ? read_arm64(*raw) : read(*raw))) return;
  }

 private:
  static Instruction read(const cs_insn& raw) {
    Instruction found;
    found.address = raw.address;
    found.next = raw.address + raw.size;
    found.mnemonic = raw.mnemonic;
    if (raw.size == 5 && raw.bytes[0] == 0xb8) {
      std::uint32_t number = 0;
      std::memcpy(&number, raw.bytes + 1, sizeof number);
      found.number = number;
    }
    if (raw.detail == nullptr) return found;
    const cs_x86& x86 = raw.detail->x86;
    // The kernel (arch/x86/kernel/uprobes.c, is_prefix_bad) refuses probes on instructions with these prefixes, on
    // traps and on privileged instructions.
    for (const std::uint8_t prefix : x86.prefix)
      if (prefix == 0xf0 || prefix == 0x26 || prefix == 0x2e || prefix == 0x36 || prefix == 0x3e) found.probed = false;
    switch (raw.id) {
      case X86_INS_INT3:
      case X86_INS_INT1:
      case X86_INS_INT:
      case X86_INS_HLT:
      case X86_INS_UD0:
      case X86_INS_UD2: found.probed = false; return found;
      case X86_INS_SYSCALL:
      case X86_INS_SYSENTER: found.flow = Instruction::Flow::syscall; return found;
      case X86_INS_CALL: found.flow = Instruction::Flow::call; break;
      case X86_INS_JMP: found.flow = Instruction::Flow::jump; break;
      case X86_INS_RET: found.flow = Instruction::Flow::ret; return found;
      default:
        for (int i = 0; i < raw.detail->groups_count; ++i)
          if (raw.detail->groups[i] == CS_GRP_JUMP) found.flow = Instruction::Flow::branch;
        if (found.flow != Instruction::Flow::branch) return found;
        break;
    }
    if (x86.op_count < 1) return found;
    const cs_x86_op& to = x86.operands[0];
    if (to.type == X86_OP_IMM) {
      found.target = static_cast<std::uint64_t>(to.imm);
    } else if (to.type == X86_OP_MEM) {
      if (to.mem.base == X86_REG_RIP && to.mem.index == X86_REG_INVALID)
        found.slot = found.next + static_cast<std::uint64_t>(to.mem.disp);
      else if (to.mem.base == X86_REG_INVALID && to.mem.index == X86_REG_INVALID && to.mem.segment == X86_REG_INVALID)
        found.slot = static_cast<std::uint64_t>(to.mem.disp);
      found.tail = to.mem.index == X86_REG_INVALID;
    }
    return found;
  }

  static Instruction read_arm64(const cs_insn& raw) {
    Instruction found;
    found.address = raw.address;
    found.next = raw.address + raw.size;
    found.mnemonic = raw.mnemonic;
    if (raw.detail == nullptr) return found;
    const cs_arm64& arm = raw.detail->arm64;
    const auto immediate = [&](int i) -> std::optional<std::uint64_t> {
      if (arm.op_count <= i || arm.operands[i].type != ARM64_OP_IMM) return std::nullopt;
      return static_cast<std::uint64_t>(arm.operands[i].imm);
    };
    switch (raw.id) {
      // The kernel (arch/arm64/kernel/probes/decode-insn.c) refuses probes on instructions that raise exceptions and on
      // exclusive accesses.
      case ARM64_INS_SVC:
        found.flow = Instruction::Flow::syscall;
        found.probed = false;
        return found;
      case ARM64_INS_BRK:
      case ARM64_INS_HLT:
      case ARM64_INS_HVC:
      case ARM64_INS_SMC: found.probed = false; return found;
      case ARM64_INS_RET: found.flow = Instruction::Flow::ret; return found;
      case ARM64_INS_BL:
        found.flow = Instruction::Flow::call;
        found.target = immediate(0);
        return found;
      case ARM64_INS_BLR: found.flow = Instruction::Flow::call; return found;
      case ARM64_INS_B:
        found.flow =
            arm.cc == ARM64_CC_INVALID || arm.cc == ARM64_CC_AL ? Instruction::Flow::jump : Instruction::Flow::branch;
        found.target = immediate(0);
        return found;
      // A branch through a register. Stubs use x16 and x17, so a branch through these leads to the function of the
      // stub. Other registers contain a function pointer or an entry of a switch table.
      case ARM64_INS_BR:
        found.flow = Instruction::Flow::jump;
        found.tail =
            arm.op_count == 1 && (arm.operands[0].reg == ARM64_REG_X16 || arm.operands[0].reg == ARM64_REG_X17);
        return found;
      case ARM64_INS_CBZ:
      case ARM64_INS_CBNZ:
        found.flow = Instruction::Flow::branch;
        found.target = immediate(1);
        return found;
      case ARM64_INS_TBZ:
      case ARM64_INS_TBNZ:
        found.flow = Instruction::Flow::branch;
        found.target = immediate(2);
        return found;
      case ARM64_INS_ADRP: found.page = immediate(1); return found;
      case ARM64_INS_MOV:
      case ARM64_INS_MOVZ:
        if (arm.op_count > 0 && (arm.operands[0].reg == ARM64_REG_X8 || arm.operands[0].reg == ARM64_REG_W8)) {
          if (const auto number = immediate(1)) found.number = static_cast<std::uint32_t>(*number);
        }
        return found;
      case ARM64_INS_LDR:
        if (arm.op_count == 2 && arm.operands[1].type == ARM64_OP_MEM && arm.operands[1].mem.index == ARM64_REG_INVALID)
          found.within_page = static_cast<std::uint64_t>(arm.operands[1].mem.disp);
        return found;
      default: break;
    }
    const std::string_view name = raw.mnemonic;
    if (name.starts_with("ldx") || name.starts_with("ldax") || name.starts_with("stx") || name.starts_with("stlx") ||
        name == "mrs" || name == "msr" || name == "prfm")
      found.probed = false;
    return found;
  }

  bool arm64_ = false;
  csh handle_ = 0;
};

}  // namespace

class CodeFile::Reader {
 public:
  explicit Reader(ElfFile file, std::filesystem::path path)
      : file_(std::move(file)),
        path_(std::move(path)),
        symbols_(file_.functions()),
        slots_(file_.slots()),
        decoder_(file_.machine()) {
    // If the file imports nothing, it is linked statically and contains its libraries.
    whole_ = std::none_of(slots_.begin(), slots_.end(), [](const auto& slot) { return slot.second.address == 0; });
  }

  Result<std::vector<Place>> places(std::string_view wanted) {
    const RawSymbol* function = find(wanted);
    if (function == nullptr)
      return fail(ErrorKind::input, fmt::format("no function '{}' in '{}'", wanted, path_.native()),
                  "functions that were inlined everywhere or stripped have no code of their own");
    const std::uint64_t size = size_of(*function);
    const std::vector<std::uint8_t> code = file_.code(function->address, size);
    if (code.empty())
      return fail(ErrorKind::input, fmt::format("the code of '{}' in '{}' cannot be read", wanted, path_.native()));
    std::uint64_t below_all = 0;
    const Span own{function->address, function->address + size};
    std::vector<Place> found;
    std::vector<bool> silent;  // by index of the place: true if the call there has no visible effect
    std::set<std::uint64_t> leaders;
    std::vector<Span> loops;
    std::string_view entered;  // the system call that a `syscall` instruction would make at this position
    decoder_.decode(code, function->address, [&](const Instruction& at) {
      follow(at, entered);
      if (at.flow == Instruction::Flow::branch || at.flow == Instruction::Flow::jump) {
        if (at.target && own.has(*at.target)) leaders.insert(*at.target);
        leaders.insert(at.next);
        if (at.target && own.has(*at.target) && *at.target <= at.address) loops.push_back({*at.target, at.next});
      }
      const std::uint64_t offset = at.address - function->address;
      if (offset > function->check && at.probed && offset != 0) {
        bool quiet = false;
        budget_ = std::min(kMostBelowOne, kMostBelowAll - below_all);
        const std::uint64_t before = budget_;
        found.push_back(place(at, own, entered, quiet));
        found.back().offset = offset;
        silent.push_back(quiet);
        below_all += before - budget_;
      }
      return true;
    });
    mark_loops(found, std::move(loops), function->address);
    return sorted(std::move(found), silent, leaders, function->address);
  }

  bool loops_back(std::uint64_t function, std::uint64_t address) const {
    const RawSymbol* symbol = at(function);
    if (symbol == nullptr) return false;
    bool found = false;
    decoder_.decode(file_.code(symbol->address, size_of(*symbol)), symbol->address, [&](const Instruction& one) {
      found = found || ((one.flow == Instruction::Flow::branch || one.flow == Instruction::Flow::jump) && one.target &&
                        one.address >= address && *one.target <= address && *one.target >= function);
      return !found;
    });
    return found;
  }

  Result<Exits> exits(std::uint64_t address) const {
    const RawSymbol* function = at(address);
    if (function == nullptr)
      return fail(ErrorKind::input, fmt::format("no function begins at {:#x} in '{}'", address, path_.native()));
    Exits exits;
    // GCC moves rarely executed parts of a function f into a function f.cold.
    const std::string cold = function->linkage_name + ".cold";
    std::vector<const RawSymbol*> parts{function};
    for (const RawSymbol& symbol : symbols_)
      if (symbol.linkage_name.starts_with(cold) &&
          (symbol.linkage_name.size() == cold.size() || symbol.linkage_name[cold.size()] == '.'))
        parts.push_back(&symbol);
    for (const RawSymbol* part : parts) ROSE_CHECK(exits_of(*part, exits));
    std::sort(exits.returns.begin(), exits.returns.end());
    return exits;
  }

 private:
  struct Span {
    std::uint64_t begin = 0, end = 0;
    [[nodiscard]] bool has(std::uint64_t address) const { return address >= begin && address < end; }
  };
  // What is known about the destination of a call.
  struct Callee {
    std::string name;
    LibraryCall library;
    std::uint64_t address = 0;  // address in this file; 0: in another file, or unknown
    bool outlined = false;      // it is a part of a function that the compiler split off
  };

  const RawSymbol* find(std::string_view wanted) const {
    const RawSymbol* best = nullptr;
    for (const RawSymbol& symbol : symbols_) {
      if (!may_be_named(wanted, symbol.linkage_name, {})) continue;
      const std::string name = demangle(symbol.linkage_name);
      if (!spelling_matches(wanted, name, symbol.linkage_name, spell(name, symbol.linkage_name))) continue;
      if (best == nullptr || size_of(symbol) > size_of(*best)) best = &symbol;
    }
    return best;
  }

  Result<void> exits_of(const RawSymbol& part, Exits& exits) const {
    const std::uint64_t size = size_of(part);
    const std::vector<std::uint8_t> code = file_.code(part.address, size);
    if (code.empty())
      return fail(ErrorKind::input,
                  fmt::format("the code of '{}' in '{}' cannot be read", demangle(part.linkage_name), path_.native()));
    const Span own{part.address, part.address + size};
    std::uint64_t end = part.address;
    decoder_.decode(code, part.address, [&](const Instruction& one) {
      end = one.next;
      if (one.flow == Instruction::Flow::ret && one.probed)
        exits.returns.push_back(part.offset + (one.address - part.address));
      const bool jumps = one.flow == Instruction::Flow::jump || one.flow == Instruction::Flow::branch;
      if (!jumps ||
          (one.target ? own.has(*one.target) : one.flow == Instruction::Flow::branch || (!one.slot && !one.tail)))
        return true;
      // A jump between parts of the same function does not leave it.
      if (one.target && same_function(*one.target, part)) return true;
      const std::string to = callee(one).name;
      if (std::find(exits.jumps.begin(), exits.jumps.end(), to) == exits.jumps.end()) exits.jumps.push_back(to);
      return true;
    });
    exits.whole = exits.whole && end == part.address + code.size();
    return {};
  }

  // True if `target` is in the same function as `part`, including the parts of the function that the compiler split
  // off.
  bool same_function(std::uint64_t target, const RawSymbol& part) const {
    auto symbol = std::upper_bound(symbols_.begin(), symbols_.end(), target,
                                   [](std::uint64_t address, const RawSymbol& s) { return address < s.address; });
    if (symbol == symbols_.begin()) return false;
    --symbol;
    const auto whole = [](const std::string& name) { return std::string_view(name).substr(0, name.find(".cold")); };
    if (whole(symbol->linkage_name) != whole(part.linkage_name)) return false;
    return symbol->address != target || symbol->linkage_name.find(".cold") != std::string::npos;
  }

  // A function written in assembly may have size 0. It ends where the next function begins.
  std::uint64_t size_of(const RawSymbol& symbol) const {
    if (symbol.size != 0) return symbol.size;
    const auto next = std::upper_bound(symbols_.begin(), symbols_.end(), symbol.address,
                                       [](std::uint64_t address, const RawSymbol& s) { return address < s.address; });
    return next == symbols_.end() ? kMostOfOne : std::min(next->address - symbol.address, kMostOfOne);
  }

  // The first symbol with that address; its aliases follow it. nullptr if there is none.
  const RawSymbol* at(std::uint64_t address) const {
    const auto it = std::lower_bound(symbols_.begin(), symbols_.end(), address,
                                     [](const RawSymbol& s, std::uint64_t wanted) { return s.address < wanted; });
    return it != symbols_.end() && it->address == address ? &*it : nullptr;
  }

  Callee named(std::string_view linkage_name, std::uint64_t address, bool library) const {
    Callee callee;
    const std::string name = demangle(linkage_name);
    const Spelling spelling = spell(name, linkage_name);
    callee.name = spelling.bare.empty() ? std::string(linkage_name) : spelling.bare;
    callee.library = library_call(linkage_name, spelling.bare, library);
    callee.address = address;
    callee.outlined = spelling.outlined;
    return callee;
  }

  Callee through(std::uint64_t slot_address, const char* suffix) const {
    const auto slot = slots_.find(slot_address);
    if (slot == slots_.end()) return {"through a pointer", {}, 0, false};
    if (slot->second.name.empty()) return at_address(slot->second.address, 0);
    Callee callee = named(slot->second.name, slot->second.address, slot->second.address == 0 || whole_);
    callee.name += suffix;
    return callee;
  }

  Callee at_address(std::uint64_t address, int stubs) const {
    if (const RawSymbol* symbol = at(address); symbol != nullptr) {
      // The linker mold gives names to the entries of a .plt.
      if (constexpr std::string_view kStub = "$plt"; symbol->linkage_name.ends_with(kStub)) {
        const std::string_view name = symbol->linkage_name;
        Callee callee = named(name.substr(0, name.size() - kStub.size()), 0, true);
        callee.name += "@plt";
        return callee;
      }
      // Among aliases, prefer a name that library_call() knows, then one without a leading '_': "write" rather than
      // "__write".
      Callee best = named(symbol->linkage_name, address, whole_);
      for (const RawSymbol* other = symbol + 1; other != symbols_.data() + symbols_.size() && other->address == address;
           ++other) {
        Callee next = named(other->linkage_name, address, whole_);
        const bool more = next.library.enters && !best.library.enters;
        const bool shorter =
            next.library.enters == best.library.enters && best.name.starts_with('_') && !next.name.starts_with('_');
        if (more || shorter) best = std::move(next);
      }
      return best;
    }
    // No named function begins here, but an entry of a .plt may.
    std::optional<std::uint64_t> slot, page;
    int count = 0;
    if (stubs == 0)
      decoder_.decode(file_.code(address, 32), address, [&](const Instruction& one) {
        if (one.page) page = one.page;
        if (page && one.within_page) slot = *page + *one.within_page;
        if (one.flow == Instruction::Flow::jump && one.slot) slot = one.slot;
        return one.flow == Instruction::Flow::none && ++count < kStubInstructions;
      });
    if (slot && slots_.contains(*slot)) return through(*slot, "@plt");
    return {fmt::format("{:#x}", address), {}, address, false};
  }

  Callee callee(const Instruction& at) const {
    if (at.target) return at_address(*at.target, 0);
    if (at.slot) return through(*at.slot, "");
    return {"through a pointer", {}, 0, false};
  }

  // Determines whether a call of `callee` leads to a system call within `deepest` levels of calls.
  Reach reach(const Callee& callee, int deepest) {
    Reach best;
    if (callee.library.enters) return {true, callee.library.changes, callee.library.depth};
    if (callee.library.quiet || callee.address == 0 || deepest <= 0) return best;
    const auto [known, fresh] = reached_.try_emplace({callee.address, deepest});
    // If the function calls itself, the outer analysis has made this entry but has not ended, so the entry is still {}.
    if (!fresh) return known->second;
    const RawSymbol* symbol = at(callee.address);
    const std::uint64_t size = symbol == nullptr ? 4096 : std::min(size_of(*symbol), kMostOfOne);
    const Span own{callee.address, callee.address + size};
    std::vector<Callee> below;
    std::set<std::uint64_t> seen;
    std::string_view entered;
    decoder_.decode(file_.code(callee.address, size), callee.address, [&](const Instruction& one) {
      if (budget_ == 0) return false;
      --budget_;
      follow(one, entered);
      if (one.flow == Instruction::Flow::syscall) {
        if (Reach direct{true, library_call(entered, entered, true).changes, 1}; direct.better_than(best))
          best = direct;
      } else if (leaves(one, own)) {
        if (!one.target || seen.insert(*one.target).second) below.push_back(this->callee(one));
      }
      // If the size of the function is unknown, it ends at its first return or jump.
      return symbol != nullptr || (one.flow != Instruction::Flow::ret && one.flow != Instruction::Flow::jump);
    });
    for (const Callee& one : below) {
      if (budget_ == 0) break;
      Reach next = reach(one, deepest - 1);
      ++next.depth;
      if (next.better_than(best)) best = next;
    }
    return reached_[{callee.address, deepest}] = best;
  }

  // Keeps track of the number that `mov $1,%eax` loads, because such an instruction usually precedes `syscall`.
  void follow(const Instruction& at, std::string_view& entered) const {
    if (at.number) entered = call_of_number(*at.number, file_.machine());
    if (at.flow == Instruction::Flow::call) entered = {};
  }

  // True for a call, and for a jump to another function that takes the place of a call.
  static bool leaves(const Instruction& at, const Span& own) {
    if (at.flow == Instruction::Flow::call) return true;
    if (at.flow != Instruction::Flow::jump) return false;
    return at.target ? !own.has(*at.target) : at.slot.has_value() || at.tail;
  }

  Place place(const Instruction& at, const Span& own, std::string_view entered, bool& quiet) {
    Place place;
    if (at.flow == Instruction::Flow::syscall) {
      place.kind = PlaceKind::syscall;
      place.name = entered.empty() ? "syscall" : entered;
      place.changes = library_call(entered, entered, true).changes;
      return place;
    }
    if (leaves(at, own)) {
      const Callee to = callee(at);
      if (at.flow == Instruction::Flow::call || !to.outlined) {
        const Reach reached = reach(to, kDeepest);
        place.kind = reached.enters ? PlaceKind::syscall : PlaceKind::call;
        place.name = to.name;
        place.changes = reached.changes;
        place.depth = reached.depth;
        quiet = to.library.quiet;
        return place;
      }
    }
    place.name = at.mnemonic;
    return place;
  }

  // Marks the places that are in loops. `places` must be sorted by address.
  static void mark_loops(std::vector<Place>& places, std::vector<Span> loops, std::uint64_t base) {
    std::sort(loops.begin(), loops.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
    std::uint64_t end = 0;
    auto next = loops.begin();
    for (Place& place : places) {
      for (; next != loops.end() && next->begin <= base + place.offset; ++next) end = std::max(end, next->end);
      place.loop = base + place.offset < end;
    }
  }

  static std::vector<Place> sorted(std::vector<Place> found, const std::vector<bool>& silent,
                                   const std::set<std::uint64_t>& leaders, std::uint64_t base) {
    std::vector<std::pair<std::tuple<PlaceKind, int, int, std::uint64_t>, std::size_t>> order;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Place& p = found[i];
      int within = 0;
      if (p.kind == PlaceKind::syscall) within = p.changes ? 0 : 1;
      if (p.kind == PlaceKind::call) within = silent[i] ? 1 : 0;
      if (p.kind == PlaceKind::other)
        within = p.name.starts_with("ret") ? 0 : leaders.contains(base + p.offset) ? 1 : 2;
      order.emplace_back(std::tuple(p.kind, within, p.depth, p.offset), i);
    }
    std::sort(order.begin(), order.end());
    std::vector<Place> places;
    places.reserve(found.size());
    for (const auto& [key, i] : order) places.push_back(std::move(found[i]));
    return places;
  }

  const ElfFile file_;
  const std::filesystem::path path_;
  const std::vector<RawSymbol> symbols_;  // sorted by address
  const std::map<std::uint64_t, Slot> slots_;
  bool whole_ = false;
  const Decoder decoder_;
  std::uint64_t budget_ = 0;  // number of instructions that may still be decoded
  std::map<std::pair<std::uint64_t, int>, Reach> reached_;
};

CodeFile::CodeFile(std::unique_ptr<Reader> reader) : reader_(std::move(reader)) {}
CodeFile::CodeFile(CodeFile&&) noexcept = default;
CodeFile& CodeFile::operator=(CodeFile&&) noexcept = default;
CodeFile::~CodeFile() = default;

Result<CodeFile> CodeFile::open(const std::filesystem::path& binary) {
  ROSE_TRY(ElfFile file, ElfFile::open(binary));
  return CodeFile(std::make_unique<Reader>(std::move(file), binary));
}

Result<std::vector<Place>> CodeFile::places(std::string_view function) const { return reader_->places(function); }
bool CodeFile::loops_back(std::uint64_t function, std::uint64_t address) const {
  return reader_->loops_back(function, address);
}
Result<Exits> CodeFile::exits(std::uint64_t address) const { return reader_->exits(address); }

}  // namespace rose::symbols
