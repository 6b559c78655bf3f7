#include "symbols/rust_library.h"

#include <algorithm>

namespace rose::symbols {

bool of_rust_library(std::string_view file) {
  if (file.starts_with("/rustc/") || file.starts_with("/rust/deps/")) return true;
  constexpr std::string_view kFolder = "library/";
  if (!file.starts_with(kFolder)) return false;
  file.remove_prefix(kFolder.size());
  constexpr std::string_view kCrates[] = {
      "alloc",      "backtrace", "compiler-builtins", "core",    "panic_abort", "panic_unwind", "portable-simd",
      "proc_macro", "std",       "stdarch",           "sysroot", "test",        "unwind"};
  return std::any_of(std::begin(kCrates), std::end(kCrates), [&](std::string_view crate) {
    return file.starts_with(crate) && file.substr(crate.size()).starts_with("/");
  });
}

}  // namespace rose::symbols
