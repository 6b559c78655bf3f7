// Writes what the agent knows about the code of watched methods (read by jvm/code_book.h): one line per method and per
// call. Private to the agent; call under its lock.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jvm/agent/interface.h"
#include "jvm/bytecode.h"
#include "jvm/call_sites.h"

namespace rose::jvm {

class CodeFile {
 public:
  // "" means that this information is not wanted.
  void open(std::string_view path);
  [[nodiscard]] bool wanted() const { return fd_ >= 0; }
  void add(std::string_view name, Code code, const ConstantPool& pool, const LineEntry* lines, std::int32_t line_count);
  // Writes what was added since the last call, in one write.
  void flush();

 private:
  int fd_ = -1;
  std::size_t left_ = std::size_t{8} << 20;
  std::string text_;
};

}  // namespace rose::jvm
