#include <catch2/catch.hpp>

#include "base/text.h"
#include "symbols/names.h"
#include "symbols/symbols.h"

using rose::symbols::demangle;
using rose::symbols::Function;
using rose::symbols::name_matches;

namespace {
Function function(const std::string& linkage) {
  Function made;
  made.linkage_name = linkage;
  made.name = demangle(linkage);
  return made;
}
}  // namespace

TEST_CASE("names are demangled as in source code") {
  struct Row {
    const char* linkage;
    const char* name;
  };
  const Row rows[] = {
      {"main", "main"},
      {"", ""},
      {"open64@@GLIBC_2.2.5", "open64"},
      {"_ZN4Raft6appendERK5Entry", "Raft::append(Entry const&)"},
      {"_ZN4Raft6appendERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", "Raft::append(std::string const&)"},
      {"_ZN4Raft6appendEv.cold", "Raft::append() [clone .cold]"},
      {"_ZN4Raft6appendEv.llvm.1234567", "Raft::append()"},
      {"_ZN4Raft6appendEv.lto_priv.0", "Raft::append()"},
      {"_ZN12_GLOBAL__N_16hiddenEi", "(anonymous namespace)::hidden(int)"},
      {"_Z7largestIiET_S0_S0_", "int largest<int>(int, int)"},
      {"_ZNK4RaftclEi", "Raft::operator()(int) const"},
      {"_Zgarbage", "_Zgarbage"},
      {"_Z", "_Z"},
      // Go
      {"main.(*Server).Apply", "main.(*Server).Apply"},
      {"main.(*Server).Apply.func1", "main.(*Server).Apply.func1"},
      {"github.com/hashicorp/raft.(*Raft).runLeader", "github.com/hashicorp/raft.(*Raft).runLeader"},
      // Rust, legacy
      {"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
      {"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
       "<Test + 'static as foo::Bar<Test>>::bar"},
      {"_ZN4kvdb4raft8snapshot28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE", "kvdb::raft::snapshot::{{closure}}"},
      // Rust, v0
      {"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
      {"_RNvMs_Cs4Cv8Wi1oAIB_7mycrateNtB4_4Raft6append", "mycrate::Raft::append"},
      {"_RNvMs_Cs4Cv8Wi1oAIB_7mycrateNtB4_4Raft6appen", ""},  // the name is truncated, so it stays as it is
      {"_RNvMCs9ltgdHTiPiY_4testNtB2_4Raft6append", "test::Raft::append"},
      {"_RNvXCs9ltgdHTiPiY_4testNtB2_3FooNtB2_3Bar3run", "<test::Foo as test::Bar>::run"},
      {"_RNCNvCsgStHSCytQ6I_7mycrate4main0B3_", "mycrate::main::{closure#0}"},
      {"_RINvCs7qp2U7fqm6G_7mycrate3maxhE", "mycrate::max::<u8>"},
      {"_RINvNtC3std3mem8align_ofjdE", "std::mem::align_of::<usize, f64>"},
      {"_RINvC1a3arrKj8_E", "a::arr::<8>"},
      {"_RINvC1a1fTRShPmFhEuEE", "a::f::<(&[u8], *const u32, fn(u8))>"},
      {"_RINvC1a1fDNtNtC4core3fmt5DebugEL_E", "a::f::<dyn core::fmt::Debug>"},
      {"_RINvC1a1fDIINtC1b2FnhEp6OutputtEL_E", ""},  // the nesting is wrong
      {"_R", ""},
      {"_RB_", ""},        // the name refers to itself
      {"_RNvB_3foo", ""},  // a nested name refers to itself
      {"_RNvC9999999999999999999999_3foo", ""},
      {"_R0NvC1a1b", ""},  // this version does not exist yet
  };
  for (const Row& row : rows) {
    CAPTURE(row.linkage);
    const std::string expected = std::string_view(row.name).empty() ? row.linkage : row.name;
    CHECK(demangle(row.linkage) == expected);
  }
}

TEST_CASE("a mangled name that would expand to terabytes is left mangled") {
  // Each pair of substitutions doubles the length of the text.
  std::string bomb = "_Z1fI1aE";
  bomb = "_Z1f1aIS_S_E";
  for (int i = 0; i < 60; ++i) {
    const std::string last = i == 0 ? "S0_" : "S" + std::to_string(i % 10) + "_";
    bomb += "1aI" + last + last + "E";
  }
  CHECK(demangle(bomb) == bomb);
  CHECK(demangle("_Z" + std::string(100000, 'P') + "v").size() == 100003);
  // Rust: the elements of the tuple are back references to the tuple itself (position 8), so that its text would never
  // end.
  std::string rust = "_RINvC1a1f";
  for (int i = 0; i < 200; ++i) rust += "TB7_B7_B7_";
  CHECK(demangle(rust) == rust);
  // A back reference must point to an earlier position than its own.
  CHECK(demangle("_RINvC1a1fTB8_B8_B8_EE") == "_RINvC1a1fTB8_B8_B8_EE");
  CHECK(demangle("_RINvC1a1f" + std::string(50000, 'R')).size() == 50010);
}

TEST_CASE("patterns match functions with or without parameters") {
  struct Row {
    const char* pattern;
    const char* linkage;
    bool matches;
  };
  const Row rows[] = {
      {"Raft::append", "_ZN4Raft6appendERK5Entry", true},
      {"Raft::*", "_ZN4Raft6appendERK5Entry", true},
      {"*append", "_ZN4Raft6appendERK5Entry", true},
      {"Raft::append(Entry const&)", "_ZN4Raft6appendERK5Entry", true},
      {"Raft::append(Entry const &)", "_ZN4Raft6appendERK5Entry", true},
      {"Raft::append(*)", "_ZN4Raft6appendERK5Entry", true},
      {"Raft::append(int)", "_ZN4Raft6appendERK5Entry", false},
      {"append", "_ZN4Raft6appendERK5Entry", false},
      {"Raft::apend", "_ZN4Raft6appendERK5Entry", false},
      {"Raft", "_ZN4Raft6appendERK5Entry", false},
      {"", "_ZN4Raft6appendERK5Entry", false},
      {"_ZN4Raft6appendERK5Entry", "_ZN4Raft6appendERK5Entry", true},
      {"_ZN4Raft*", "_ZN4Raft6appendERK5Entry", true},
      {"Raft::append(std::string const&)", "_ZN4Raft6appendERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
       true},
      // operators
      {"Raft::operator()", "_ZNK4RaftclEi", true},
      {"Raft::operator()(int) const", "_ZNK4RaftclEi", true},
      {"Raft::operator<<", "_ZN4RaftlsEi", true},
      {"operator new", "_Znwm", true},
      {"operator new(unsigned long)", "_Znwm", true},
      {"Raft::operator bool", "_ZNK4RaftcvbEv", true},
      {"Raft::operator->", "_ZN4RaftptEv", true},
      // templates: the arguments are part of the name; the return type is not needed
      {"largest<int>", "_Z7largestIiET_S0_S0_", true},
      {"largest<int>(int, int)", "_Z7largestIiET_S0_S0_", true},
      {"int largest<int>(int, int)", "_Z7largestIiET_S0_S0_", true},
      {"largest<*>", "_Z7largestIiET_S0_S0_", true},
      {"largest", "_Z7largestIiET_S0_S0_", false},
      {"Queue<int>::push", "_ZN5QueueIiE4pushEi", true},
      {"Queue<int>::push", "_ZN5QueueIcE4pushEc", false},
      {"Queue<std::vector<int, std::allocator<int>>>::push", "_ZN5QueueISt6vectorIiSaIiEEE4pushES2_", true},
      {"std::vector<int, std::allocator<int> >::push_back", "_ZNSt6vectorIiSaIiEE9push_backERKi", true},
      // the name of an unnamed namespace may be left out
      {"hidden", "_ZN12_GLOBAL__N_16hiddenEi", true},
      {"hidden(int)", "_ZN12_GLOBAL__N_16hiddenEi", true},
      {"(anonymous namespace)::hidden", "_ZN12_GLOBAL__N_16hiddenEi", true},
      // outlined parts are not functions; specialised copies are
      {"Raft::append", "_ZN4Raft6appendEv.cold", false},
      {"*", "_ZN4Raft6appendEv.cold", false},
      {"Raft::*", "_ZN4Raft6appendEv.part.0", false},
      {"raft_log_create", "raft_log_create.cold", false},
      {"raft_log_create", "raft_log_create.cold.1", false},
      {"raft_log_create.cold", "raft_log_create.cold", true},
      {"*.cold", "raft_log_create.cold", true},
      {"Raft::append() [clone .cold]", "_ZN4Raft6appendEv.cold", true},
      {"raft_log_create", "raft_log_create.constprop.0", true},
      {"raft_log_create", "raft_log_create.constprop.0.isra.0", true},
      {"raft_log_create", "raft_log_create.constprop.0.cold", false},
      {"Raft::append", "_ZN4Raft6appendEv.constprop.0", true},
      {"Raft::append()", "_ZN4Raft6appendEv.isra.0", true},
      // a thunk only jumps to the function
      {"Raft::append", "_ZThn8_N4Raft6appendEv", false},
      {"*append", "_ZThn8_N4Raft6appendEv", false},
      {"non-virtual thunk to Raft::append*", "_ZThn8_N4Raft6appendEv", true},
      // Go
      {"main.(*Server).Apply", "main.(*Server).Apply", true},
      {"main.(*Server).*", "main.(*Server).Apply", true},
      {"main.*", "main.(*Server).Apply.func1", true},
      {"main.(*Server)", "main.(*Server).Apply", false},
      {"main.part.func1", "main.part.func1", true},
      // Rust
      {"core::fmt::Write::write_fmt", "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", true},
      {"core::fmt::Write::write_fmt::h0123456789abcdef", "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", true},
      {"core::fmt::Write::write_fmt::h0123456789abcdee", "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", false},
      {"test::Raft::append", "_RNvMCs9ltgdHTiPiY_4testNtB2_4Raft6append", true},
      {"mycrate::*", "_RNvCs1234_7mycrate3foo", true},
  };
  for (const Row& row : rows) {
    const Function f = function(row.linkage);
    CAPTURE(row.pattern, row.linkage, f.name);
    CHECK(name_matches(row.pattern, f) == row.matches);
  }
}

TEST_CASE("a function known only by its demangled name still matches") {
  Function f;
  f.name = "Raft::append(Entry const&)";
  CHECK(name_matches("Raft::append", f));
  CHECK(name_matches("Raft::append(Entry const&)", f));
  CHECK_FALSE(name_matches("Raft::app", f));
}

TEST_CASE("unusual names are handled") {
  for (const char* name : {"(",
                           ")",
                           "()",
                           "a)",
                           "(a",
                           "operator",
                           "operator()",
                           "operator()()",
                           "<",
                           ">",
                           "a<b",
                           "[clone ",
                           " [clone .x]",
                           "x [clone .cold]",
                           "thunk to ",
                           " ",
                           "  ",
                           ".cold",
                           "::h0123456789abcdef",
                           "f(int)(char)",
                           "void (*f<int>(int))(char)",
                           "]]]",
                           "[abi:]",
                           "a[abi:cxx11]()"}) {
    CAPTURE(name);
    CHECK_NOTHROW(rose::symbols::spell(name, name));
    Function f;
    f.name = name;
    CHECK(name_matches(name, f));
  }
  Function tagged;
  tagged.name = "Raft::name[abi:cxx11]()";
  CHECK(name_matches("Raft::name", tagged));
}

TEST_CASE("patterns match Go names from any path segment and without the package") {
  const Function function{
      "go.etcd.io/etcd/raft.(*raft).becomeLeader", "go.etcd.io/etcd/raft.(*raft).becomeLeader", 0, 0, 0, 0, ""};
  for (const char* pattern :
       {"go.etcd.io/etcd/raft.(*raft).becomeLeader", "etcd/raft.(*raft).becomeLeader", "raft.(*raft).becomeLeader",
        "(*raft).becomeLeader", "(*raft).become*", "raft.*", "*becomeLeader", "go.etcd.io/*"}) {
    CAPTURE(pattern);
    CHECK(name_matches(pattern, function));
  }
  for (const char* pattern : {"aft.(*raft).becomeLeader", "becomeLeader", "raft).becomeLeader",
                              "etcd.io/etcd/raft.(*raft).becomeLeader", "cd/raft.*"}) {
    CAPTURE(pattern);
    CHECK_FALSE(name_matches(pattern, function));
  }
}
