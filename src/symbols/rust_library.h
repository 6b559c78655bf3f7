// Determines whether a source file belongs to Rust's standard library.
#pragma once

#include <string_view>

namespace rose::symbols {

// True for "/rustc/HASH/library/core/src/str/mod.rs", and for the paths of newer toolchains:
// "library/core/src/str/mod.rs" (relative to a folder below /rustc) and, for crates that the standard library uses,
// "/rust/deps/hashbrown-0.16.1/src/raw.rs".
[[nodiscard]] bool of_rust_library(std::string_view file);

}  // namespace rose::symbols
