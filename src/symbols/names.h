// How the name of a function may be spelled: which parts of the demangled form a pattern must contain, and which are
// optional. Private to symbols.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace rose::symbols {

// The spellings with which a normalised pattern is compared.
struct Spelling {
  std::string full;       // without return type and clone suffix: "Raft::append(Entry const&)"
  std::string bare;       // `full` without parameters: "Raft::append"
  bool outlined = false;  // a part of a function that the compiler split off (".cold", ".part.0")
  // a Go name, whose leading path components may be omitted: "go.etcd.io/etcd/raft.(*raft).becomeLeader"
  bool go = false;
  bool thunk = false;  // "virtual thunk to ...": code that only jumps to the function
};

[[nodiscard]] Spelling spell(std::string_view name, std::string_view linkage_name);

// True if `pattern` matches one of the function's spellings. `name` is the result of demangle().
[[nodiscard]] bool spelling_matches(std::string_view pattern, std::string_view name, std::string_view linkage_name,
                                    const Spelling& spelling);

// These two functions serve an index of names. for_each_spelling() reports the keys under which the index stores a
// function. for_each_lookup() reports the keys to look up for a pattern without '*' and '?'. The caller must still
// check each function that it finds with spelling_matches().
void for_each_spelling(std::string_view name, std::string_view linkage_name, const Spelling& spelling,
                       const std::function<void(std::string_view)>& each);
void for_each_lookup(std::string_view pattern, const std::function<void(std::string_view)>& each);

// Removes spaces that have no meaning: "Entry const &" equals "Entry const&", "> >" equals ">>".
[[nodiscard]] std::string normalise(std::string_view text);

// Demangles Rust's v0 scheme: "_RNvCs1234_7mycrate3foo" becomes "mycrate::foo". Returns "" for other names. As rustfilt
// does, it omits the hashes of crates, and the crates that instantiate functions.
[[nodiscard]] std::string demangle_rust_v0(std::string_view linkage_name);

// Cleans a name of Rust's legacy scheme after it was demangled as C++: "core::fmt::Write::write_fmt::h0123456789abcdef"
// becomes "core::fmt::Write::write_fmt". Returns "" for other names.
[[nodiscard]] std::string clean_rust_legacy(std::string_view demangled);

// True if the name ends with "::h" and 16 hexadecimal digits.
[[nodiscard]] bool has_rust_hash(std::string_view name);

}  // namespace rose::symbols
