// What somebody asks a running program for: an argument of a function, what it returns, the calls it makes, who calls
// it, a variable at a line. Pure; nothing is looked up here. Every text is taken for hostile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rose::symbols {

struct Query {
  enum class Kind {
    argument,  // f(arg1), f(name): as the function is entered
    result,    // f:return
    calls,     // f:calls: which calls it makes
    callers,   // f:callers: who calls it, and where
    variable,  // file.c:123:name: before that line is executed
  };
  // `.member` or `->member`: which of the two is written makes no difference, pointers are followed.
  std::string text;  // as it was asked
  Kind kind = Kind::argument;
  std::string function;  // argument, result, calls, callers
  std::string file;      // variable: the end of a source file's path
  int line = 0;
  std::string name;                  // of the argument or variable
  int number = 0;                    // "arg3": 3, unless a parameter has that very name; 0: none
  std::vector<std::string> members;  // to go down
  bool contents = false;             // `*name`: what it points to
};

// The forms that are accepted, for messages and help.
inline constexpr std::string_view kQueryForms =
    "'f(arg1)', 'f(name)', 'f(name->member)', 'f(*name)', 'f:return', 'f:calls', 'f:callers', 'file.c:123:name'; of "
    "Java, too: 'org.x.C.m(name.field)', 'C.m(this.field)', 'C.m:return', 'C.m:callers', 'C.java:123:name'";

inline constexpr std::size_t kMostQueryBytes = 1024, kMostMembers = 6, kMostArguments = 32;

// ErrorKind::usage: what is wrong where, and the accepted forms.
[[nodiscard]] Result<Query> parse_query(std::string_view text);

}  // namespace rose::symbols
