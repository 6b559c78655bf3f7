// Finds the calls in a Java method from its instructions and the constant pool of its class. Used by rose and its
// agent, so it needs only standard headers. Any bytes are safe to read.
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
  // `count` as in class files: the highest index plus one.
  ConstantPool(std::span<const unsigned char> bytes, std::size_t count);
  // "java.io.Writer.write" for a Methodref, InterfaceMethodref or InvokeDynamic (without a class); "" for other
  // entries.
  [[nodiscard]] std::string callee(std::size_t index) const;

 private:
  [[nodiscard]] std::size_t at(std::size_t index, unsigned char kind) const;
  [[nodiscard]] std::string_view text(std::size_t index) const;
  [[nodiscard]] std::size_t number(std::size_t at) const {
    return static_cast<std::size_t>(bytes_[at]) << 8 | bytes_[at + 1];
  }
  std::span<const unsigned char> bytes_;
  std::vector<std::uint32_t> entries_;  // by index: offset of its tag + 1; 0: none
};

struct CallSite {
  std::uint32_t offset = 0;
  std::int32_t line = 0;  // 0: unknown
  bool loop = false;      // a jump leads back over it
  std::string callee;
};

// The call sites, without line numbers, which are in another table.
[[nodiscard]] std::vector<CallSite> call_sites(Code code, const ConstantPool& pool);

}  // namespace rose::jvm
