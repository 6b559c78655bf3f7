// Where a Java method calls, and what: from its instructions and its class's constant pool, both as in class files. For
// rose and for its agent; nothing but headers of the standard library. Any bytes are safe to read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jvm/bytecode.h"

namespace rose::jvm {

class ConstantPool {
 public:
  // `count` as in class files: one more than the highest index.
  ConstantPool(std::span<const unsigned char> bytes, std::size_t count);
  // "java.io.Writer.write" of a Methodref, InterfaceMethodref or (without a class) InvokeDynamic; "" when it is none.
  [[nodiscard]] std::string callee(std::size_t index) const;

 private:
  [[nodiscard]] std::size_t at(std::size_t index, unsigned char kind) const;
  [[nodiscard]] std::string_view text(std::size_t index) const;
  [[nodiscard]] std::size_t number(std::size_t at) const {
    return static_cast<std::size_t>(bytes_[at]) << 8 | bytes_[at + 1];
  }
  std::span<const unsigned char> bytes_;
  std::vector<std::uint32_t> entries_;  // index -> where its tag stands + 1; 0: nowhere
};

struct CallSite {
  std::uint32_t offset = 0;
  std::int32_t line = 0;  // 0: not known
  bool loop = false;      // a jump goes back over it
  std::string callee;
};

// Without lines, which stand elsewhere.
[[nodiscard]] std::vector<CallSite> call_sites(Code code, const ConstantPool& pool);

}  // namespace rose::jvm
