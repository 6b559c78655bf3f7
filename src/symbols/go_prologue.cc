#include "symbols/go_prologue.h"

#include <cstring>
#include <initializer_list>

namespace rose::symbols {
namespace {

// Limits for the offset of gopc in g. The offset cannot be smaller, because g begins with the bounds of the stack and
// the registers.
constexpr std::uint32_t kLeastOfCreator = 128, kMostOfCreator = 2048;

// Reads known instructions from the front of the code.
class Code {
 public:
  explicit Code(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  // Consumes the given bytes and then `any` arbitrary ones.
  bool eat(std::initializer_list<std::uint8_t> known, std::size_t any = 0) {
    if (bytes_.size() - at_ < known.size() + any) return false;
    if (std::memcmp(bytes_.data() + at_, known.begin(), known.size()) != 0) return false;
    at_ += known.size() + any;
    return true;
  }
  // Consumes a forward conditional jump, short or near: 0x76 is jbe, 0x72 is jb.
  bool jump(std::uint8_t condition) {
    if (eat({condition}, 1)) return bytes_[at_ - 1] < 0x80;
    return eat({0x0f, static_cast<std::uint8_t>(condition + 0x10)}, 4) && bytes_[at_ - 1] < 0x80;
  }
  [[nodiscard]] std::size_t eaten() const { return at_; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

// Recognises the check that cmd/internal/obj/arm64 (stacksplit) generates. g is in x28.
std::size_t arm64_stack_check_bytes(std::span<const std::uint8_t> bytes) {
  std::size_t at = 0;
  const auto eat = [&](std::uint32_t mask, std::uint32_t wanted) {
    std::uint32_t word = 0;
    if (bytes.size() < at + sizeof word) return false;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    if ((word & mask) != wanted) return false;
    at += sizeof word;
    return true;
  };
  if (!eat(0xffffffe0, 0xf9400b80)) return 0;                                        // ldr xN,[x28,#16]
  if (!eat(0xffffffe0, 0x910003e0))                                                  // mov xN,sp
    (void)eat(0xff8003e0, 0xd10003e0);                                               // sub xN,sp,#n
  const bool compared = eat(0xff20001f, 0xeb00001f) || eat(0xff20001f, 0xeb20001f);  // cmp xN or sp,xM
  return compared && eat(0xff80001f, 0x54000009) ? at : 0;                           // b.ls forward
}

}  // namespace

// Recognises the check that cmd/internal/obj/x86 (stacksplit) generates. The limit of the stack is at offset 16 in the
// goroutine's g.
std::size_t stack_check_bytes(std::span<const std::uint8_t> bytes, const Machine& machine) {
  if (machine.elf == EM_AARCH64) return arm64_stack_check_bytes(bytes);
  Code code(bytes);
  bool compared = false;
  if (code.eat({0x64, 0x48, 0x8b, 0x0c, 0x25, 0xf8, 0xff, 0xff,
                0xff})) {  // mov %fs:-8,%rcx: g until Go 1.16, and in assembly
    if (code.eat({0x48, 0x8d, 0x44, 0x24}, 1) || code.eat({0x48, 0x8d, 0x84, 0x24}, 4))  // lea -n(%rsp),%rax
      compared = code.eat({0x48, 0x3b, 0x41, 0x10});                                     // cmp 16(%rcx),%rax
    else compared = code.eat({0x48, 0x3b, 0x61, 0x10});                                  // cmp 16(%rcx),%rsp
  } else if (code.eat({0x49, 0x3b, 0x66, 0x10})) {                                       // cmp 16(%r14),%rsp
    compared = true;
  } else if (code.eat({0x4c, 0x8d, 0x64, 0x24}, 1) || code.eat({0x4c, 0x8d, 0xa4, 0x24}, 4)) {  // lea -n(%rsp),%r12
    compared = code.eat({0x4d, 0x3b, 0x66, 0x10});                                              // cmp 16(%r14),%r12
  } else if (code.eat({0x49, 0x89, 0xe4})) {                                                    // mov %rsp,%r12
    compared = code.eat({0x49, 0x81, 0xec}, 4) && code.jump(0x72) &&                            // sub $n,%r12; jb
               code.eat({0x4d, 0x3b, 0x66, 0x10});
  }
  return compared && code.jump(0x76) ? code.eaten() : 0;
}

std::optional<std::uint64_t> go_creator_offset(std::span<const std::uint8_t> code, const Machine& machine) {
  const bool arm64 = machine.elf == EM_AARCH64;
  for (std::size_t at = 0; at + 7 <= code.size(); at += arm64 ? 4 : 1) {
    std::uint32_t word = 0, offset = 0;
    std::memcpy(&word, &code[at], sizeof word);
    if (arm64 && (word & 0xffc003e0) == 0xf9400000) offset = (word >> 10 & 0xfff) * 8;                // ldr xN,[x0,#n]
    if (!arm64 && (word & 0xc7fffb) == 0x808b48) std::memcpy(&offset, &code[at + 3], sizeof offset);  // mov n(%rax),%rN
    if (offset >= kLeastOfCreator && offset < kMostOfCreator && offset % 8 == 0) return offset;
  }
  return std::nullopt;
}

}  // namespace rose::symbols
