// Writes what the agent knows about the code of watched methods (read by jvm/code_book.h): one line per method and per
// call. Private to the agent. Call under the agent's lock.
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
  // An empty path means that nothing is to be written.
  void open(std::string_view path);
  [[nodiscard]] bool wanted() const { return fd_ >= 0; }
  void add(std::string_view name, Code code, const ConstantPool& pool, const LineEntry* lines, std::int32_t line_count);
  // Writes the text that was added since the last call, with a single write.
  void flush();

 private:
  int fd_ = -1;
  std::size_t left_ = std::size_t{8} << 20;
  std::string text_;
};

}  // namespace rose::jvm
