// How a function's name may be spelt: what of the demangled form a pattern must name, and what is
// optional. Private to this room.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace rose::symbols {

// The spellings that a pattern without oddities is held against.
struct Spelling {
  std::string full;       // no return type, no clone suffix: "Raft::append(Entry const&)"
  std::string bare;       // no parameters either: "Raft::append"
  bool outlined = false;  // a part the compiler split off (".cold", ".part.0"): not a function of its own
  bool go = false;        // "go.etcd.io/etcd/raft.(*raft).becomeLeader": the front may be left out
  bool thunk = false;     // "virtual thunk to ...": it only jumps to the function
};

[[nodiscard]] Spelling spell(std::string_view name, std::string_view linkage_name);

// Is `pattern` one of the function's spellings? `name` as demangle() gives it.
[[nodiscard]] bool spelling_matches(std::string_view pattern, std::string_view name, std::string_view linkage_name,
                                    const Spelling& spelling);

// For a table of names: every text that equals a pattern without '*' and '?' which spelling_matches() accepts is
// among a function's spellings, once the pattern's lookups are held against them.
void for_each_spelling(std::string_view name, std::string_view linkage_name, const Spelling& spelling,
                       const std::function<void(std::string_view)>& each);
void for_each_lookup(std::string_view pattern, const std::function<void(std::string_view)>& each);

// Spaces that carry no meaning removed ("Entry const &" == "Entry const&", "> >" == ">>").
[[nodiscard]] std::string normalise(std::string_view text);

// Rust's v0 mangling ("_RNvCs1234_7mycrate3foo" -> "mycrate::foo"); "" when it isn't one.
// Crate hashes and instantiating crates are left out, as rustfilt does.
[[nodiscard]] std::string demangle_rust_v0(std::string_view linkage_name);

// Rust's legacy mangling after it went through the C++ demangler:
// "core::fmt::Write::write_fmt::h0123456789abcdef" -> "core::fmt::Write::write_fmt". "" when it isn't one.
[[nodiscard]] std::string clean_rust_legacy(std::string_view demangled);

// "::h" and 16 hexadecimal digits at the end.
[[nodiscard]] bool has_rust_hash(std::string_view name);

}  // namespace rose::symbols
