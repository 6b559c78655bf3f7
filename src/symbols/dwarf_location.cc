#include "symbols/dwarf_location.h"

#include <dwarf.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

namespace rose::symbols {
namespace {

constexpr std::size_t kMostOperations = 64;
constexpr int kDeepestExpression = 4;  // deepest nesting of expressions, such as a frame base or the address of a frame

const char* const kGone = "optimized out at that address";
Stand gone() { return Stand::nowhere(kGone); }
Stand unsupported(std::string what) { return Stand::nowhere("location not supported: " + std::move(what)); }

class Evaluation {
 public:
  Evaluation(const Context& context, Dwarf_Attribute* attribute, int depth)
      : context_(context), attribute_(attribute), depth_(depth) {}

  Stand run(const Dwarf_Op* ops, std::size_t count) {
    if (count == 0) return gone();
    if (count > kMostOperations || depth_ > kDeepestExpression) return unsupported("a long expression");
    for (std::size_t i = 0; i < count; ++i) {
      if (auto failed = step(ops[i])) return *failed;
      if (stack_.size() > 16) return unsupported("a long expression");
    }
    if (!pieces_.empty()) {
      if (current_ || !stack_.empty()) return unsupported("pieces and an incomplete rest");
      if (pieces_.size() == 1) return pieces_.front().stand;
      Stand whole;
      whole.how = Stand::How::pieces;
      whole.pieces = std::move(pieces_);
      return whole;
    }
    return settle();
  }

 private:
  // The location that the operations so far describe.
  Stand settle() {
    if (current_) return *std::exchange(current_, std::nullopt);
    if (stack_.size() != 1) return gone();
    Stand stand = Stand::at(stack_.back());
    stack_.clear();
    return stand;
  }

  std::optional<Stand> push(Chain chain) {
    stack_.push_back(std::move(chain));
    return std::nullopt;
  }
  std::optional<Stand> constant(std::uint64_t value) { return push({kNoRegister, {value}}); }

  [[nodiscard]] bool is_real(std::uint64_t number) const {
    return context_.machine->elf == EM_AARCH64 ? number >= 64 && number <= 95 : number <= 32;
  }

  std::optional<Stand> in_register(std::uint64_t number) {
    if (number > context_.machine->instruction)
      return unsupported(is_real(number) ? "in a floating-point register" : "in a register of another kind");
    current_ = Stand::in_register(static_cast<std::uint8_t>(number));
    return std::nullopt;
  }
  std::optional<Stand> by_register(std::uint64_t number, std::uint64_t offset) {
    if (number > context_.machine->instruction) return unsupported("relative to a register of another kind");
    return push({static_cast<std::uint8_t>(number), {offset}});
  }

  std::optional<Stand> frame_address() {
    for (Dwarf_CFI* cfi : {context_.eh_frame, context_.debug_frame}) {
      Dwarf_Frame* found = nullptr;
      if (cfi == nullptr || dwarf_cfi_addrframe(cfi, context_.address, &found) != 0) continue;
      const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> frame(found, &std::free);
      Dwarf_Op* ops = nullptr;
      std::size_t count = 0;
      if (dwarf_frame_cfa(frame.get(), &ops, &count) != 0 || count == 0) continue;
      const Stand at = Evaluation(context_, nullptr, depth_ + 1).run(ops, count);
      if (at.how == Stand::How::memory) return push(at.chain);
      return unsupported("a frame that is not relative to registers");
    }
    return unsupported("no unwind table describes the frame at that address");
  }

  std::optional<Stand> frame_base(std::uint64_t offset) {
    Dwarf_Attribute attribute;
    Dwarf_Op* ops = nullptr;
    std::size_t count = 0;
    if (context_.function == nullptr ||
        dwarf_attr_integrate(context_.function, DW_AT_frame_base, &attribute) == nullptr ||
        dwarf_getlocation_addr(&attribute, context_.address, &ops, &count, 1) != 1)
      return unsupported("the frame at that address is unknown");
    Stand base = Evaluation(context_, &attribute, depth_ + 1).run(ops, count);
    if (base.how != Stand::How::memory && base.how != Stand::How::value) return base;
    base.chain.offsets.back() += offset;
    return push(std::move(base.chain));
  }

  static bool is_constant(const Chain& chain) { return chain.base == kNoRegister && chain.offsets.size() == 1; }

  std::optional<Stand> add(bool minus) {
    if (stack_.size() < 2) return unsupported("a damaged expression");
    Chain second = std::move(stack_.back());
    stack_.pop_back();
    Chain& first = stack_.back();
    if (!minus && is_constant(first) && !is_constant(second)) std::swap(first, second);
    if (!is_constant(second)) return unsupported("computed from several registers");
    first.offsets.back() += minus ? 0 - second.offsets[0] : second.offsets[0];
    return std::nullopt;
  }

  std::optional<Stand> implicit(const Dwarf_Op& op) {
    Dwarf_Block block;
    if (attribute_ == nullptr || dwarf_getlocation_implicit_value(attribute_, &op, &block) != 0 || block.length > 8)
      return unsupported("a constant that is not a number");
    std::uint64_t value = 0;
    std::memcpy(&value, block.data, block.length);
    current_ = Stand{Stand::How::value, {kNoRegister, {value}}, 0, {}, {}};
    return std::nullopt;
  }

  // The value at the function's entry is known only if the probe is at the entry, because the registers then still have
  // the values that they had at the entry.
  std::optional<Stand> entry_value(const Dwarf_Op& op) {
    if (!context_.entry || attribute_ == nullptr)
      return Stand::nowhere(std::string(kGone) + ": only its value at the function's entry is known");
    Dwarf_Attribute inner;
    Dwarf_Op* ops = nullptr;
    std::size_t count = 0;
    if (dwarf_getlocation_attr(attribute_, &op, &inner) != 0 || dwarf_getlocation(&inner, &ops, &count) != 0)
      return unsupported("an entry's value");
    Stand at = Evaluation(context_, &inner, depth_ + 1).run(ops, count);
    if (at.how != Stand::How::value) return unsupported("an entry's value");
    return push(std::move(at.chain));
  }

  std::optional<Stand> step(const Dwarf_Op& op) {
    const auto atom = op.atom;
    if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31) return in_register(atom - DW_OP_reg0);
    if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) return by_register(atom - DW_OP_breg0, op.number);
    if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) return constant(atom - DW_OP_lit0);
    switch (atom) {
      case DW_OP_regx: return in_register(op.number);
      case DW_OP_bregx: return by_register(op.number, op.number2);
      case DW_OP_fbreg: return frame_base(op.number);
      case DW_OP_call_frame_cfa: return frame_address();
      // The address is relative to the instruction pointer, so that it is right wherever the file is loaded.
      case DW_OP_addr: return push({context_.machine->instruction, {op.number - context_.address}});
      case DW_OP_const1u:
      case DW_OP_const1s:
      case DW_OP_const2u:
      case DW_OP_const2s:
      case DW_OP_const4u:
      case DW_OP_const4s:
      case DW_OP_const8u:
      case DW_OP_const8s:
      case DW_OP_constu:
      case DW_OP_consts: return constant(op.number);
      case DW_OP_plus_uconst:
        if (stack_.empty()) return unsupported("a damaged expression");
        stack_.back().offsets.back() += op.number;
        return std::nullopt;
      case DW_OP_plus: return add(false);
      case DW_OP_minus: return add(true);
      case DW_OP_deref:
        if (stack_.empty()) return unsupported("a damaged expression");
        if (stack_.back().offsets.size() > kMostReads) return unsupported("more pointers to follow than supported");
        stack_.back().offsets.push_back(0);
        return std::nullopt;
      case DW_OP_nop: return std::nullopt;
      case DW_OP_stack_value: {
        if (stack_.size() != 1) return unsupported("computed");
        current_ = Stand{Stand::How::value, std::move(stack_.back()), 0, {}, {}};
        stack_.clear();
        return std::nullopt;
      }
      case DW_OP_implicit_value: return implicit(op);
      case DW_OP_entry_value:
      case DW_OP_GNU_entry_value: return entry_value(op);
      case DW_OP_piece: pieces_.push_back({settle(), op.number}); return std::nullopt;
      case DW_OP_implicit_pointer:
      case DW_OP_GNU_implicit_pointer:
        return Stand::nowhere(std::string(kGone) + ": it points to a value that is not in memory");
      case DW_OP_form_tls_address:
      case DW_OP_GNU_push_tls_address: return unsupported("a thread-local variable");
      default: return unsupported(fmt::format("computed (operation {:#x})", atom));
    }
  }

  const Context& context_;
  Dwarf_Attribute* attribute_;
  int depth_;
  std::vector<Chain> stack_;
  std::optional<Stand> current_;
  std::vector<Stand::Piece> pieces_;
};

}  // namespace

Stand part_of(const Stand& whole, std::uint64_t offset, std::uint64_t size) {
  Stand part = whole;
  switch (whole.how) {
    case Stand::How::unknown: return whole;
    case Stand::How::memory: part.chain.offsets.back() += offset; return part;
    case Stand::How::value:
      if (offset >= 8 || size > 8 - offset || whole.shift + 8 * offset >= 64)
        return unsupported("a part of a value in several registers");
      part.shift = static_cast<std::uint8_t>(whole.shift + 8 * offset);
      return part;
    case Stand::How::pieces: {
      std::uint64_t begin = 0;
      for (const auto& [piece, bytes] : whole.pieces) {
        if (offset >= begin && offset - begin < bytes) {
          if (size > bytes - (offset - begin)) return unsupported("in several pieces");
          return part_of(piece, offset - begin, size);
        }
        if (bytes > UINT64_MAX - begin) break;
        begin += bytes;
      }
      return gone();
    }
  }
  return gone();
}

Stand pointed_to(const Stand& pointer) {
  if (pointer.how == Stand::How::unknown) return pointer;
  if (pointer.how == Stand::How::pieces) return unsupported("in several pieces");
  if (pointer.shift != 0) return unsupported("a pointer in a part of a register");
  Stand there = pointer;
  if (pointer.how == Stand::How::memory) {
    if (there.chain.offsets.size() > kMostReads) return unsupported("more pointers to follow than supported");
    there.chain.offsets.push_back(0);
  }
  there.how = Stand::How::memory;
  return there;
}

Stand stand_of(Dwarf_Die* variable, const Context& context) {
  Dwarf_Attribute attribute;
  if (dwarf_attr_integrate(variable, DW_AT_location, &attribute) != nullptr) {
    Dwarf_Op* ops = nullptr;
    std::size_t count = 0;
    if (dwarf_getlocation_addr(&attribute, context.address, &ops, &count, 1) != 1) return gone();
    return Evaluation(context, &attribute, 0).run(ops, count);
  }
  Dwarf_Sword value = 0;
  if (dwarf_attr_integrate(variable, DW_AT_const_value, &attribute) != nullptr &&
      dwarf_formsdata(&attribute, &value) == 0)
    return {Stand::How::value, {kNoRegister, {static_cast<std::uint64_t>(value)}}, 0, {}, {}};
  return gone();
}

}  // namespace rose::symbols
