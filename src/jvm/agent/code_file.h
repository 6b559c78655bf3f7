// The agent's file about the code of watched methods (jvm/code_book.h reads it): one line a method, one a call in it.
// Private to the agent, under its lock.
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
  // "": nobody wants to know.
  void open(std::string_view path);
  [[nodiscard]] bool wanted() const { return fd_ >= 0; }
  void add(std::string_view name, Code code, const ConstantPool& pool, const LineEntry* lines, std::int32_t line_count);
  // What was added since, in one write.
  void flush();

 private:
  int fd_ = -1;
  std::size_t left_ = std::size_t{8} << 20;
  std::string text_;
};

}  // namespace rose::jvm
