// Finds the calls in a Java method from its instructions and the constant pool of its class. Both rose and its agent
// use it, so it needs only headers of the standard library. It can read arbitrary bytes safely.
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
  // `count`, as in class files, is the highest index plus one.
  ConstantPool(std::span<const unsigned char> bytes, std::size_t count);
  // The called method: "java.io.Writer.write" for a Methodref or InterfaceMethodref; without the class for an
  // InvokeDynamic; "" for other entries.
  [[nodiscard]] std::string callee(std::size_t index) const;

 private:
  [[nodiscard]] std::size_t at(std::size_t index, unsigned char kind) const;
  [[nodiscard]] std::string_view text(std::size_t index) const;
  [[nodiscard]] std::size_t number(std::size_t at) const {
    return static_cast<std::size_t>(bytes_[at]) << 8 | bytes_[at + 1];
  }
  std::span<const unsigned char> bytes_;
  std::vector<std::uint32_t> entries_;  // by index: 1 + the offset of the entry's tag; 0: no entry
};

struct CallSite {
  std::uint32_t offset = 0;
  std::int32_t line = 0;  // 0: unknown
  bool loop = false;      // the call is in a loop, because a jump leads back over it
  std::string callee;
};

// The call sites in the code. Their line numbers are not set, because these are in another table.
[[nodiscard]] std::vector<CallSite> call_sites(Code code, const ConstantPool& pool);

}  // namespace rose::jvm
