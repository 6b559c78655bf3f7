// Data from untrusted JVMs: the agent's state file, the code of a method, names. No input may crash the readers of such
// data.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "jvm/bytecode.h"
#include "jvm/call_sites.h"
#include "jvm/code_book.h"
#include "jvm/names.h"
#include "jvm/stacks.h"
#include "jvm/state.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  rose::jvm::JvmState state;
  (void)rose::jvm::parse_state(text, state);
  for (const auto& stack : rose::jvm::parse_noted(text)) {
    if (stack.frames.size() > rose::jvm::kStackFrames) std::abort();
  }
  (void)rose::jvm::stacks_file(text);

  const rose::jvm::Code code(data, size);
  std::size_t steps = 0;
  for (std::size_t at = 0; at < size;) {
    const std::size_t bytes = rose::jvm::instruction_size(code, at);
    if (bytes == 0) break;
    if (at + bytes > size) std::abort();
    const auto jumps = rose::jvm::jumps_of(code, at);
    for (std::size_t i = 0; i < jumps.targets && ++steps < 100'000; ++i) (void)rose::jvm::jump_target(code, at, i);
    at += bytes;
  }
  (void)rose::jvm::begins_at(code, size / 2);

  // Read the first half as a constant pool, and the rest as code.
  const rose::jvm::ConstantPool pool(code.first(size / 2), size);
  for (const auto& site : rose::jvm::call_sites(code.subspan(size / 2), pool)) {
    if (site.offset >= size) std::abort();
  }
  rose::jvm::CodeBook book;
  book.learn_text("n", text);
  (void)book.places("n", "a");

  const std::string_view part = text.substr(0, 256);
  const std::size_t half = part.size() / 2;
  const rose::jvm::NamePattern pattern(part.substr(0, half));
  const rose::jvm::Method method{part.substr(half), "m", part.substr(half), "X.java", 0};
  // The fast check must never exclude a method that the full check accepts.
  if (pattern.matches(method) && !pattern.may_be_in(method.class_name)) std::abort();
  (void)rose::jvm::looks_like_java(part);
  (void)rose::jvm::parameters_of(part);
  return 0;
}
