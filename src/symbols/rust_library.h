// Determines whether a source file belongs to Rust's standard library.
#pragma once

#include <string_view>

namespace rose::symbols {

// True for "/rustc/HASH/library/core/src/str/mod.rs", and for the paths in newer toolchains:
// "library/core/src/str/mod.rs" (relative to a folder below /rustc), and "/rust/deps/hashbrown-0.16.1/src/raw.rs" for
// crates that the standard library uses.
[[nodiscard]] bool of_rust_library(std::string_view file);

}  // namespace rose::symbols
